-- name: live_postings
-- The live nodes that contain a term, up to a limit. As text, because parsing all numbers at once is three times faster than
-- stepping over the rows.
SELECT group_concat(rowid) FROM (
  SELECT rowid FROM nodes_fts WHERE nodes_fts MATCH :match LIMIT :most)

-- name: word_parts
-- Pages of the largest part of the full-text index, and of all parts.
SELECT coalesce(max(pages), 0), coalesce(sum(pages), 0) FROM (SELECT count(*) AS pages FROM nodes_fts_idx GROUP BY segid)

-- name: word_parts_join
-- A negative number merges all parts into one, this many pages now.
INSERT INTO nodes_fts (nodes_fts, rank) VALUES ('merge', :pages)

-- name: archive_postings
SELECT group_concat(rowid) FROM (
  SELECT rowid FROM archive_fts WHERE archive_fts MATCH :match LIMIT :most)

-- name: replaced_holding
-- The replaced nodes that hold the most of some terms, with the live ends of their chains of versions, the furthest first.
WITH RECURSIVE held (key, terms) AS (
  SELECT n.key, count(*) FROM json_each(:matches) AS asked JOIN archive_fts ON archive_fts MATCH asked.value
    JOIN nodes AS n ON n.key = archive_fts.rowid WHERE n.closed_reason = 'superseded'
    GROUP BY n.key ORDER BY count(*) DESC, n.key DESC LIMIT :most
),
chain (start, node, depth) AS (
  SELECT key, key, 0 FROM held
  UNION
  SELECT chain.start, e.source, chain.depth + 1 FROM chain JOIN edges e ON e.target = chain.node
  WHERE e.relation_type = 'supersedes' AND e.closed_at IS NULL AND chain.depth < 100
)
SELECT held.key, old.content, newest.key FROM held JOIN nodes old ON old.key = held.key JOIN chain ON chain.start = held.key
  JOIN live_nodes newest ON newest.key = chain.node ORDER BY held.terms DESC, held.key DESC, chain.depth DESC

-- name: shelf_counts
SELECT space, shelf, nodes, chars FROM shelves WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: live_within
-- The latest live memories in some partitions that happened in a span, latest first, as a list.
SELECT group_concat(key) FROM (SELECT n.key FROM nodes AS n WHERE n.space IN (SELECT value FROM json_each(:spaces))
  AND n.shelf IN (SELECT value FROM json_each(:shelves)) AND n.closed_at IS NULL AND n.event_time >= :start AND n.event_time < :end
  ORDER BY n.event_time DESC, n.key DESC LIMIT :most)

-- name: data_version
-- The number changes when another connection has written.
PRAGMA data_version

-- name: windows
-- For each node of a session, the live ones before it (nearest first) and after it. Each list takes a few steps along
-- nodes_by_session, however long the session is.
SELECT t.node,
  (SELECT group_concat(key) FROM (SELECT b.key FROM nodes b
    WHERE b.session = t.session AND b.closed_at IS NULL AND (b.event_time, b.key) < (t.event_time, t.node)
    ORDER BY b.event_time DESC, b.key DESC LIMIT :each)),
  (SELECT group_concat(key) FROM (SELECT b.key FROM nodes b
    WHERE b.session = t.session AND b.closed_at IS NULL AND (b.event_time, b.key) > (t.event_time, t.node)
    ORDER BY b.event_time, b.key LIMIT :each))
FROM traits t WHERE t.node IN (SELECT value FROM json_each(:keys)) AND t.session != 0

-- name: traits_of
-- The features of candidates and the turns around them, by column. The reader checks their owner. One row, because stepping
-- over a row per turn takes longer and blocks other threads at each one. Bytes are joined as text and cast back: as
-- hexadecimal digits they would be twice as long.
SELECT group_concat(node), group_concat(space), group_concat(session), group_concat(event_time),
  group_concat(length(traits) / 4), json_group_array(speaker), CAST(group_concat(traits, '') AS BLOB)
FROM traits WHERE node IN (SELECT value FROM json_each(:keys))

-- name: traits_between
-- The same for all turns of some tenants within a range, in a third of the time of looking up each one.
SELECT group_concat(node), group_concat(space), group_concat(session), group_concat(event_time),
  group_concat(length(traits) / 4), json_group_array(speaker), CAST(group_concat(traits, '') AS BLOB)
FROM traits WHERE node BETWEEN :first AND :last AND space IN (SELECT value FROM json_each(:spaces))

-- name: turns_position
SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'turns_changed'), coalesce((SELECT max(node) FROM traits), 0)

-- name: sessions_grown
-- The sessions of some tenants with turns added after a given one.
SELECT DISTINCT session FROM nodes WHERE space IN (SELECT value FROM json_each(:spaces)) AND key > :after
  AND session IS NOT NULL

-- name: turns_live
-- All turns of some tenants, and the closed ones among them, each from a covering index. As text for the reason above.
SELECT (SELECT group_concat(key) FROM nodes WHERE space IN (SELECT value FROM json_each(:spaces))),
  (SELECT group_concat(key) FROM nodes WHERE space IN (SELECT value FROM json_each(:spaces)) AND closed_at IS NOT NULL)

-- name: traits_since
-- The same as `traits_of` for the live turns of some tenants after a given one, up to a limit.
SELECT group_concat(node), group_concat(space), group_concat(session), group_concat(event_time),
  group_concat(length(traits) / 4), json_group_array(speaker), CAST(group_concat(traits, '') AS BLOB)
FROM traits WHERE node IN (SELECT key FROM live_nodes WHERE key > :after
  AND space IN (SELECT value FROM json_each(:spaces)) LIMIT :most)

-- name: keys_on_shelves
-- The given memories that are in one of the given partitions.
SELECT key FROM nodes WHERE key IN (SELECT value FROM json_each(:keys))
  AND shelf IN (SELECT value FROM json_each(:shelves))

-- name: node_shelf
SELECT shelf FROM nodes WHERE key = :key

-- name: floor_of
-- The calibration of a caller for an embedder, and the number of memories at that time. The column `rule` holds a checksum
-- over the rule and the row.
SELECT rule, count, middle, spread, chance FROM floors WHERE spaces = :spaces AND model = :model

-- name: floor_put
INSERT INTO floors VALUES (:spaces, :model, :rule, :count, :middle, :spread, :chance)
ON CONFLICT DO UPDATE SET rule = excluded.rule, count = excluded.count, middle = excluded.middle,
  spread = excluded.spread, chance = excluded.chance
