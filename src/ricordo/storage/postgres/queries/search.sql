-- name: live_postings
-- The live nodes that contain a term, up to a limit. As text, because parsing all numbers at once is three times faster than
-- stepping over the rows.
SELECT string_agg(node::text, ',' ORDER BY node) FROM (
  SELECT node FROM words WHERE is_live AND terms && quoted(:match) ORDER BY node LIMIT nullif(CAST(:most AS bigint), -1))

-- name: live_postings_guarded
-- The same under row-level security.
SELECT live_holders(:match, :most)

-- name: postings_of
-- The same as `live_postings` for each of some terms in some partitions; no rows for tenants with at most a given number of
-- memories, who are read whole. The limit grows with their number. Without OFFSET, nodes might be looked through by their key.
SELECT (SELECT string_agg(node::text, ',' ORDER BY node) FROM (SELECT node FROM
  (SELECT node FROM words WHERE is_live AND terms && quoted(asked.match) OFFSET 0) held ORDER BY node LIMIT asked.most) cut)
FROM (SELECT place, CAST(CAST(:least AS bigint) + CAST(:share AS float8) * held.nodes AS bigint) AS most,
    (SELECT string_agg('"' || term || '·' || space || shelf || '"', ' OR ') FROM unnest(ints(:spaces)) s (space),
      unnest(texts(:shelves)) h (shelf)) AS match
  FROM unnest(texts(:terms)) WITH ORDINALITY AS given (term, place),
    (SELECT sum(nodes)::float8 AS nodes FROM shelves WHERE space = ANY (ints(:spaces))) held
  WHERE held.nodes > :more_than) asked
ORDER BY place

-- name: postings_of_guarded
SELECT live_holders(asked.match, asked.most)
FROM (SELECT place, CAST(CAST(:least AS bigint) + CAST(:share AS float8) * held.nodes AS bigint) AS most,
    (SELECT string_agg('"' || term || '·' || space || shelf || '"', ' OR ') FROM unnest(ints(:spaces)) s (space),
      unnest(texts(:shelves)) h (shelf)) AS match
  FROM unnest(texts(:terms)) WITH ORDINALITY AS given (term, place),
    (SELECT sum(nodes)::float8 AS nodes FROM shelves WHERE space = ANY (ints(:spaces))) held
  WHERE held.nodes > :more_than) asked
ORDER BY place

-- name: own_space
-- Find the space of an owner outside chats who is a member of no shared space, and keep it for this transaction: statements that
-- are sent together with this one read it.
SELECT set_config('ricordo.own', coalesce(max(key)::text, ''), true) FROM spaces WHERE owner = :owner AND chat = ''
  AND NOT EXISTS (SELECT 1 FROM members WHERE member = :owner AND role != 'none')

-- name: archive_postings_guarded
SELECT closed_holders(:match, :most)

-- name: archive_postings
SELECT string_agg(node::text, ',' ORDER BY node) FROM (
  SELECT node FROM words WHERE NOT is_live AND terms && quoted(:match) ORDER BY node LIMIT nullif(CAST(:most AS bigint), -1))

-- name: replaced_holding
-- The replaced nodes that hold the most of some terms, with the live ends of their chains of versions, the furthest first.
WITH RECURSIVE held (key, terms) AS (
  SELECT n.key, count(*) FROM unnest(texts(:matches)) AS asked (match),
    LATERAL (SELECT node FROM words WHERE NOT is_live AND terms && quoted(asked.match)) held JOIN nodes AS n ON n.key = held.node
    WHERE n.closed_reason = 'superseded' GROUP BY n.key ORDER BY count(*) DESC, n.key DESC LIMIT :most
),
chain (start, node, depth) AS (
  SELECT key, key, 0 FROM held
  UNION
  SELECT chain.start, e.source, chain.depth + 1 FROM chain JOIN edges e ON e.target = chain.node
  WHERE e.relation_type = 'supersedes' AND e.closed_at IS NULL AND chain.depth < 100
)
SELECT held.key, old.content, newest.key FROM held JOIN nodes old ON old.key = held.key JOIN chain ON chain.start = held.key
  JOIN live_nodes newest ON newest.key = chain.node ORDER BY held.terms DESC, held.key DESC, chain.depth DESC

-- name: replaced_holding_guarded
-- The same under row-level security.
WITH RECURSIVE held (key, terms) AS (
  SELECT n.key, count(*) FROM unnest(texts(:matches)) AS asked (match),
    LATERAL unnest(string_to_array(closed_holders(asked.match, -1), ',')::bigint[]) AS held (node) JOIN nodes AS n ON n.key = held.node
    WHERE n.closed_reason = 'superseded' GROUP BY n.key ORDER BY count(*) DESC, n.key DESC LIMIT :most
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
SELECT space, shelf, nodes, chars FROM shelves WHERE space = ANY (ints(:spaces))

-- name: live_within
-- The latest live memories in some partitions that happened in a span, latest first, as a list.
SELECT string_agg(key::text, ',' ORDER BY event_time DESC, key DESC) FROM (SELECT n.key, n.event_time FROM nodes AS n
  WHERE n.space = ANY (ints(:spaces)) AND n.shelf = ANY (texts(:shelves)) AND n.closed_at IS NULL
  AND n.event_time >= :start AND n.event_time < :end ORDER BY n.event_time DESC, n.key DESC LIMIT :most) latest

-- name: data_version
-- The number changes when another connection has written.
SELECT last FROM counters WHERE tbl = 'writes'

-- name: windows
-- For each node of a session, the live ones before it (nearest first) and after it. Each list takes a few steps along
-- nodes_by_session, however long the session is.
SELECT t.node,
  (SELECT string_agg(b.key::text, ',' ORDER BY b.event_time DESC, b.key DESC) FROM (SELECT b.key, b.event_time FROM nodes b
    WHERE b.session = t.session AND b.closed_at IS NULL AND (b.event_time, b.key) < (t.event_time, t.node)
    ORDER BY b.event_time DESC, b.key DESC LIMIT :each) b),
  (SELECT string_agg(b.key::text, ',' ORDER BY b.event_time, b.key) FROM (SELECT b.key, b.event_time FROM nodes b
    WHERE b.session = t.session AND b.closed_at IS NULL AND (b.event_time, b.key) > (t.event_time, t.node)
    ORDER BY b.event_time, b.key LIMIT :each) b)
FROM traits t WHERE t.node = ANY (ints(:keys)) AND t.session != 0

-- name: traits_of
-- The features of candidates and the turns around them, by column. The reader checks their owner. One row, because stepping
-- over a row per turn takes longer and blocks other threads at each one. Bytes are joined as text and cast back: as
-- hexadecimal digits they would be twice as long.
SELECT string_agg(node::text, ','), string_agg(space::text, ','), string_agg(session::text, ','),
  string_agg(event_time::text, ','), string_agg((length(traits) / 4)::text, ','), json_agg(speaker), string_agg(traits, ''::bytea)
FROM traits WHERE node = ANY (ints(:keys))

-- name: traits_between
-- The same for all turns of some tenants within a range, in a third of the time of looking up each one.
SELECT string_agg(node::text, ','), string_agg(space::text, ','), string_agg(session::text, ','),
  string_agg(event_time::text, ','), string_agg((length(traits) / 4)::text, ','), json_agg(speaker), string_agg(traits, ''::bytea)
FROM traits WHERE node BETWEEN :first AND :last AND space = ANY (ints(:spaces))

-- name: traits_whole
-- The same for all live turns of some tenants; NULL if they have more than a given number of memories.
SELECT string_agg(node::text, ','), string_agg(space::text, ','), string_agg(session::text, ','),
  string_agg(event_time::text, ','), string_agg((length(traits) / 4)::text, ','), json_agg(speaker), string_agg(traits, ''::bytea)
FROM traits WHERE node = ANY (ARRAY(SELECT key FROM nodes WHERE space = ANY (ints(:spaces)) AND closed_at IS NULL
  AND (SELECT sum(nodes) FROM shelves WHERE space = ANY (ints(:spaces))) <= :most))

-- name: turns_position
SELECT (SELECT value::bigint FROM meta WHERE name = 'turns_changed'), coalesce((SELECT turn FROM positions), 0)

-- name: turns_position_guarded
-- Of what the caller sees, so that other callers' writes change nothing.
SELECT (SELECT value::bigint FROM meta WHERE name = 'turns_changed'), coalesce((SELECT max(latest.key)
  FROM unnest(seen()) AS s (space) CROSS JOIN LATERAL (SELECT n.key FROM nodes n WHERE n.space = s.space
    ORDER BY n.key DESC LIMIT 1) AS latest), 0)

-- name: sessions_grown
-- The sessions of some tenants with turns added after a given one.
SELECT DISTINCT session FROM nodes WHERE space = ANY (ints(:spaces)) AND key > :after AND session IS NOT NULL

-- name: turns_live
-- All turns of some tenants, and the closed ones among them, each from a covering index. As text for the reason above.
SELECT (SELECT string_agg(key::text, ',') FROM nodes WHERE space = ANY (ints(:spaces))),
  (SELECT string_agg(key::text, ',') FROM nodes WHERE space = ANY (ints(:spaces)) AND closed_at IS NOT NULL)

-- name: traits_since
-- The same as `traits_of` for the live turns of some tenants after a given one, up to a limit.
SELECT string_agg(node::text, ','), string_agg(space::text, ','), string_agg(session::text, ','),
  string_agg(event_time::text, ','), string_agg((length(traits) / 4)::text, ','), json_agg(speaker), string_agg(traits, ''::bytea)
FROM traits WHERE node = ANY (ARRAY(SELECT key FROM live_nodes WHERE key > :after AND space = ANY (ints(:spaces)) LIMIT :most))

-- name: traits_around
-- The same as `traits_of` for some turns and the live ones around them, as in `windows`, more steps around the first of them. Then
-- the keys of walks back from each turn, and of walks on, each with a zero before the next walk. Statements that are sent together
-- with this one can read the keys of all turns it returned.
WITH walks AS MATERIALIZED (SELECT t.node,
    (SELECT string_agg(b.key::text, ',' ORDER BY b.event_time DESC, b.key DESC) FROM (SELECT b.key, b.event_time FROM nodes b
      WHERE b.session = t.session AND b.closed_at IS NULL AND (b.event_time, b.key) < (t.event_time, t.node)
      ORDER BY b.event_time DESC, b.key DESC LIMIT asked.each) b) AS before,
    (SELECT string_agg(b.key::text, ',' ORDER BY b.event_time, b.key) FROM (SELECT b.key, b.event_time FROM nodes b
      WHERE b.session = t.session AND b.closed_at IS NULL AND (b.event_time, b.key) > (t.event_time, t.node)
      ORDER BY b.event_time, b.key LIMIT asked.each) b) AS after
  FROM (VALUES (ints(:far), CAST(:far_each AS bigint)), (ints(:near), CAST(:near_each AS bigint))) AS asked (keys, each)
  CROSS JOIN LATERAL unnest(asked.keys) AS given (key) JOIN traits t ON t.node = given.key AND t.session != 0)
SELECT nullif(set_config('ricordo.around', coalesce(string_agg(node::text, ','), ''), true), ''),
  string_agg(space::text, ','), string_agg(session::text, ','),
  string_agg(event_time::text, ','), string_agg((length(traits) / 4)::text, ','), json_agg(speaker), string_agg(traits, ''::bytea),
  (SELECT string_agg(concat_ws(',', walks.node, before), ',0,') FROM walks WHERE before IS NOT NULL),
  (SELECT string_agg(concat_ws(',', walks.node, after), ',0,') FROM walks WHERE after IS NOT NULL)
FROM traits WHERE node = ANY (ints(:far) || ints(:near)
  || string_to_array((SELECT string_agg(concat_ws(',', before, after), ',') FROM walks WHERE coalesce(before, after) IS NOT NULL),
    ',')::bigint[])

-- name: keys_on_shelves
-- The given memories that are in one of the given partitions.
SELECT key FROM nodes WHERE key = ANY (ints(:keys))
  AND shelf = ANY (texts(:shelves))

-- name: floor_put
INSERT INTO floors VALUES (:spaces, :model, :rule, :count, :middle, :spread, :chance)
ON CONFLICT (spaces, model) DO UPDATE SET rule = excluded.rule, count = excluded.count, middle = excluded.middle,
  spread = excluded.spread, chance = excluded.chance
