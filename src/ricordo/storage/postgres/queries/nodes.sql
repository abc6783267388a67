-- name: node_by_id
-- One node by its public id, including closed ones, if the caller may see it.
SELECT n.key, n.id, n.type, n.category, n.content, n.source_type, n.source_role, n.speaker, n.tags, n.attributes,
  n.event_time, n.created_at, n.valid_from, n.valid_until, n.expires_at, n.closed_at, n.closed_reason,
  n.confidence, n.decay_rate, n.score, n.reinforced_at, s.owner, s.chat, ss.session_id,
  (SELECT coalesce(json_agg(a.name ORDER BY a.first)::text, '[]') FROM (
    SELECT e.canonical_name AS name, min(o.key) AS first FROM subjects x JOIN entities o ON o.key = x.entity
      JOIN entities e ON e.key = coalesce(o.merged_into, o.key) WHERE x.node = n.key GROUP BY e.canonical_name) a)
FROM nodes n JOIN spaces s ON s.key = n.space LEFT JOIN sessions ss ON ss.key = n.session
WHERE n.id = :id AND n.space = ANY (ints(:spaces))

-- name: node_ids_with
-- Reads every id of these tenants, since there is no index of the ends of ids.
SELECT id FROM (SELECT id, lower(replace(id, '-', '')) AS plain FROM nodes WHERE space = ANY (ints(:spaces))) AS own
WHERE left(plain, length(:part)) = :part OR right(plain, length(:part)) = :part
  OR left(right(plain, 8), length(:part)) = :part LIMIT 10

-- name: nodes_by_key
-- Nodes by key, in no order. The caller found the keys within its own tenants.
SELECT n.key, n.id, n.type, n.category, n.content, n.source_type, n.source_role, n.speaker, n.tags, n.attributes,
  n.event_time, n.created_at, n.valid_from, n.valid_until, n.expires_at, n.closed_at, n.closed_reason,
  n.confidence, n.decay_rate, n.score, n.reinforced_at, s.owner, s.chat, ss.session_id,
  (SELECT coalesce(json_agg(a.name ORDER BY a.first)::text, '[]') FROM (
    SELECT e.canonical_name AS name, min(o.key) AS first FROM subjects x JOIN entities o ON o.key = x.entity
      JOIN entities e ON e.key = coalesce(o.merged_into, o.key) WHERE x.node = n.key GROUP BY e.canonical_name) a)
FROM nodes n JOIN spaces s ON s.key = n.space LEFT JOIN sessions ss ON ss.key = n.session
WHERE n.key = ANY (ints(:keys)) AND n.space = ANY (ints(:spaces))

-- name: node_ids_known
-- The given ids that exist, of any owner: ids are unique in the whole store.
SELECT id, space, content FROM nodes WHERE id = ANY (texts(:ids))

-- name: node_ids_known_guarded
SELECT id, space, content FROM ids_taken(:ids)

-- name: node_index
-- Index the terms of a new node, in the same transaction.
INSERT INTO words (node, space, shelf, is_live, terms)
SELECT n.key, n.space, n.shelf, n.closed_at IS NULL, labelled(given.terms)
FROM (VALUES (?::bigint, ?)) AS given (key, terms) JOIN nodes n ON n.key = given.key

-- name: node_slot
WITH kept AS (UPDATE words SET line = ?3 WHERE node = ?1)
INSERT INTO slots VALUES (?1, ?2, '', ?3)

-- name: node_index_closed
INSERT INTO words (node, space, shelf, is_live, terms)
SELECT n.key, n.space, n.shelf, n.closed_at IS NULL, labelled(given.terms)
FROM (VALUES (?::bigint, ?)) AS given (key, terms) JOIN nodes n ON n.key = given.key

-- name: shelf_grew
INSERT INTO shelves VALUES (?, ?, ?, ?)
ON CONFLICT (space, shelf) DO UPDATE SET nodes = shelves.nodes + excluded.nodes, chars = shelves.chars + excluded.chars

-- name: node_last_key
SELECT coalesce((SELECT last FROM counters WHERE tbl = 'nodes'), 0)

-- name: node_contents
-- The fields that a background job needs of its nodes.
SELECT key, content, speaker, source_role, source_type, event_time FROM nodes WHERE key = ANY (ints(:keys))

-- name: session_last_key
-- The highest key ever given to a session, live or not: runs keep the keys of their sessions. Version 0.1.0 did not record it;
-- in its stores it is the highest that a session, a run or the history holds.
SELECT coalesce((SELECT last FROM counters WHERE tbl = 'sessions'), 0)

-- name: sequence_raise
UPDATE counters SET last = greatest(last, :key) WHERE tbl = :table

-- name: sequence_begin
INSERT INTO counters VALUES (:table, :key) ON CONFLICT DO NOTHING

-- name: session_row
-- The oldest first: sessions of an owner and of the chat may have the same name.
SELECT ss.key, ss.session_id, ss.first_seen_at, ss.ended_at, ss.consolidated_at, ss.summary, s.owner, s.chat
FROM sessions ss JOIN spaces s ON s.key = ss.space
WHERE ss.session_id = :session AND ss.space = ANY (ints(:spaces)) ORDER BY ss.key

-- name: edge_put
INSERT INTO edges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source, relation_type, target) DO UPDATE SET predicate = excluded.predicate, weight = excluded.weight,
  confidence = excluded.confidence, valid_from = excluded.valid_from, valid_until = excluded.valid_until,
  evidence = excluded.evidence, created_at = excluded.created_at, closed_at = NULL,
  commit_seq = excluded.commit_seq, seal = excluded.seal

-- name: superseded_by
-- The live end of the chain of versions that starts at a node. UNION and a depth limit stop at cycles.
WITH RECURSIVE chain (node, depth) AS (
  SELECT CAST(:key AS bigint), 0
  UNION
  SELECT e.source, chain.depth + 1 FROM chain JOIN edges e ON e.target = chain.node
  WHERE e.relation_type = 'supersedes' AND e.closed_at IS NULL AND chain.depth < 100
)
SELECT n.key FROM chain JOIN live_nodes n ON n.key = chain.node ORDER BY chain.depth DESC LIMIT 1
