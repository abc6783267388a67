-- name: live_postings
-- The live nodes that hold a term, up to a limit. Numbers as text: it is three times faster to parse them at once than to
-- step over the rows.
SELECT group_concat(rowid) FROM (
  SELECT rowid FROM nodes_fts WHERE nodes_fts MATCH :match LIMIT :most)

-- name: word_parts
-- How many pages the largest part of the word index has, and all of them.
SELECT coalesce(max(pages), 0), coalesce(sum(pages), 0) FROM (SELECT count(*) AS pages FROM nodes_fts_idx GROUP BY segid)

-- name: word_parts_join
-- Below zero: all parts are to become one, so many pages of it now.
INSERT INTO nodes_fts (nodes_fts, rank) VALUES ('merge', :pages)

-- name: archive_postings
SELECT group_concat(rowid) FROM (
  SELECT rowid FROM archive_fts WHERE archive_fts MATCH :match LIMIT :most)

-- name: shelf_counts
SELECT space, shelf, nodes, chars FROM shelves WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: data_version
-- Another number once somebody else has written.
PRAGMA data_version

-- name: windows
-- For each node of a session, the live ones before it (nearest first) and after it. Each list is a walk of a few steps
-- along nodes_by_session, however long the session is.
SELECT t.node,
  (SELECT group_concat(key) FROM (SELECT b.key FROM nodes b
    WHERE b.session = t.session AND b.closed_at IS NULL AND (b.event_time, b.key) < (t.event_time, t.node)
    ORDER BY b.event_time DESC, b.key DESC LIMIT :each)),
  (SELECT group_concat(key) FROM (SELECT b.key FROM nodes b
    WHERE b.session = t.session AND b.closed_at IS NULL AND (b.event_time, b.key) > (t.event_time, t.node)
    ORDER BY b.event_time, b.key LIMIT :each))
FROM traits t WHERE t.node IN (SELECT value FROM json_each(:keys)) AND t.session != 0

-- name: traits_of
-- What ranking reads of its candidates and of the turns around them, by column. Whose they are is checked by the reader.
-- One row: stepping over as many as there are turns takes longer, and holds up the other threads at each of them.
-- Bytes are joined as if they were text, and taken for bytes again: written as figures they are twice as many.
SELECT group_concat(node), group_concat(space), group_concat(session), group_concat(event_time),
  group_concat(length(traits) / 4), json_group_array(speaker), CAST(group_concat(traits, '') AS BLOB)
FROM traits WHERE node IN (SELECT value FROM json_each(:keys))

-- name: traits_between
-- Likewise of all turns of some spaces from one to another, which takes a third of the time it takes to look for each.
SELECT group_concat(node), group_concat(space), group_concat(session), group_concat(event_time),
  group_concat(length(traits) / 4), json_group_array(speaker), CAST(group_concat(traits, '') AS BLOB)
FROM traits WHERE node BETWEEN :first AND :last AND space IN (SELECT value FROM json_each(:spaces))

-- name: turns_position
SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'turns_changed'), coalesce((SELECT max(node) FROM traits), 0)

-- name: sessions_grown
-- The sessions to which turns came after a given one.
SELECT DISTINCT session FROM traits WHERE node > :after AND session != 0

-- name: turns_live
-- All turns of some spaces, and those of them that are closed: each from an index alone. As text for the reason above.
SELECT (SELECT group_concat(key) FROM nodes WHERE space IN (SELECT value FROM json_each(:spaces))),
  (SELECT group_concat(key) FROM nodes WHERE space IN (SELECT value FROM json_each(:spaces)) AND closed_at IS NOT NULL)

-- name: turns_since
-- The live turns of some spaces after a given one, as text.
SELECT group_concat(key) FROM live_nodes WHERE key > :after AND space IN (SELECT value FROM json_each(:spaces))

-- name: weights_of
-- What is known of memories beside their words, for the best of a search.
SELECT key, confidence, score, coalesce(reinforced_at, created_at), expires_at, closed_at IS NULL, source_type, source_role
FROM nodes
WHERE key IN (SELECT value FROM json_each(:keys)) AND space IN (SELECT value FROM json_each(:spaces))

-- name: keys_on_shelves
-- Which of some memories lie on some shelves.
SELECT key FROM nodes WHERE key IN (SELECT value FROM json_each(:keys))
  AND shelf IN (SELECT value FROM json_each(:shelves))

-- name: node_shelf
SELECT shelf FROM nodes WHERE key = :key

-- name: floor_of
-- What chance reaches for a caller, by an embedder; how many memories there were then.
SELECT count, middle, spread, chance FROM floors WHERE spaces = :spaces AND model = :model AND rule = :rule

-- name: floor_put
INSERT INTO floors VALUES (:spaces, :model, :rule, :count, :middle, :spread, :chance)
ON CONFLICT DO UPDATE SET rule = excluded.rule, count = excluded.count, middle = excluded.middle,
  spread = excluded.spread, chance = excluded.chance
