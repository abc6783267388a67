-- name: node_by_id
-- One node by its public id, including closed ones, if the caller may see it.
SELECT n.key, n.id, n.type, n.category, n.content, n.source_type, n.source_role, n.speaker, n.tags, n.attributes,
  n.event_time, n.created_at, n.valid_from, n.valid_until, n.expires_at, n.closed_at, n.closed_reason,
  n.confidence, n.decay_rate, n.score, n.reinforced_at, s.owner, s.chat, ss.session_id,
  (SELECT json_group_array(DISTINCT e.canonical_name) FROM subjects x JOIN entities o ON o.key = x.entity
    JOIN entities e ON e.key = coalesce(o.merged_into, o.key) WHERE x.node = n.key)
FROM nodes n JOIN spaces s ON s.key = n.space LEFT JOIN sessions ss ON ss.key = n.session
WHERE n.id = :id AND n.space IN (SELECT value FROM json_each(:spaces))

-- name: nodes_by_key
-- Nodes by key, in no order. The caller found the keys within its own tenants.
SELECT n.key, n.id, n.type, n.category, n.content, n.source_type, n.source_role, n.speaker, n.tags, n.attributes,
  n.event_time, n.created_at, n.valid_from, n.valid_until, n.expires_at, n.closed_at, n.closed_reason,
  n.confidence, n.decay_rate, n.score, n.reinforced_at, s.owner, s.chat, ss.session_id,
  (SELECT json_group_array(DISTINCT e.canonical_name) FROM subjects x JOIN entities o ON o.key = x.entity
    JOIN entities e ON e.key = coalesce(o.merged_into, o.key) WHERE x.node = n.key)
FROM nodes n JOIN spaces s ON s.key = n.space LEFT JOIN sessions ss ON ss.key = n.session
WHERE n.key IN (SELECT value FROM json_each(:keys)) AND n.space IN (SELECT value FROM json_each(:spaces))

-- name: node_ids_with
-- Reads every id of these tenants, since there is no index of the ends of ids.
SELECT id FROM (SELECT id, lower(replace(id, '-', '')) AS plain FROM nodes
  WHERE space IN (SELECT value FROM json_each(:spaces)))
WHERE substr(plain, 1, length(:part)) = :part OR substr(plain, -length(:part)) = :part
  OR substr(plain, -8, length(:part)) = :part LIMIT 10

-- name: node_place
-- The internal key of a node, and when it happened.
SELECT key, space, shelf, session, event_time FROM nodes WHERE id = :id

-- name: node_ids_known
-- The given ids that exist, of any owner: ids are unique in the whole store.
SELECT id, space, content FROM nodes WHERE id IN (SELECT value FROM json_each(:ids))

-- name: node_insert
INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: node_index
-- Index the terms of a new node, in the same transaction.
INSERT INTO nodes_fts (rowid, terms) VALUES (?, ?)

-- name: node_traits
INSERT INTO traits VALUES (?, ?, ?, ?, ?, ?)

-- name: node_slot
INSERT INTO slots VALUES (?, ?, '', ?)

-- name: node_index_closed
INSERT INTO archive_fts (rowid, terms) VALUES (?, ?)

-- name: shelf_grew
INSERT INTO shelves VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET nodes = nodes + excluded.nodes, chars = chars + excluded.chars

-- name: node_update
-- The complete new row: closing, restoring and changing use one statement.
UPDATE nodes SET (id, space, shelf, type, category, content, source_type, source_role, speaker, session, tags,
  attributes, event_time, created_at, valid_from, valid_until, expires_at, closed_at, closed_reason, confidence,
  decay_rate, score, reinforced_at, commit_seq, seal)
  = (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)
WHERE key = ?1

-- name: node_last_key
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'nodes'), 0)

-- name: node_contents
-- The fields that a background job needs of its nodes.
SELECT key, content, speaker, source_role, source_type, event_time FROM nodes WHERE key IN (SELECT value FROM json_each(:keys))

-- name: session_by_id
SELECT key FROM sessions WHERE space = :space AND session_id = :session

-- name: session_insert
INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: session_last_key
-- The highest key ever given to a session, live or not: runs keep the keys of their sessions. Version 0.1.0 did not record it;
-- in its stores it is the highest that a session, a run or the history holds.
SELECT CASE WHEN noted >= used THEN noted ELSE max(
  used,
  coalesce((SELECT max(e.value) FROM runs r, json_each(r.sessions) e), 0),
  coalesce((SELECT max(CAST(row AS INTEGER)) FROM history WHERE tbl = 'sessions'), 0)) END
FROM (SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'sessions'), -1) AS noted,
  coalesce((SELECT max(key) FROM sessions), 0) AS used)

-- name: sequence_raise
UPDATE sqlite_sequence SET seq = max(seq, :key) WHERE name = :table

-- name: sequence_begin
INSERT INTO sqlite_sequence (name, seq) SELECT :table, :key
WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = :table)

-- name: session_row
-- The oldest first: sessions of an owner and of the chat may have the same name.
SELECT ss.key, ss.session_id, ss.first_seen_at, ss.ended_at, ss.consolidated_at, ss.summary, s.owner, s.chat
FROM sessions ss JOIN spaces s ON s.key = ss.space
WHERE ss.session_id = :session AND ss.space IN (SELECT value FROM json_each(:spaces)) ORDER BY ss.key

-- name: session_update
UPDATE sessions SET (space, session_id, first_seen_at, ended_at, consolidated_at, summary, commit_seq, seal)
  = (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
WHERE key = ?1

-- name: edge_put
INSERT INTO edges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET predicate = excluded.predicate, weight = excluded.weight,
  confidence = excluded.confidence, valid_from = excluded.valid_from, valid_until = excluded.valid_until,
  evidence = excluded.evidence, created_at = excluded.created_at, closed_at = NULL,
  commit_seq = excluded.commit_seq, seal = excluded.seal

-- name: superseded_by
-- The live end of the chain of versions that starts at a node. UNION and a depth limit stop at cycles.
WITH RECURSIVE chain (node, depth) AS (
  SELECT :key, 0
  UNION
  SELECT e.source, chain.depth + 1 FROM chain JOIN edges e ON e.target = chain.node
  WHERE e.relation_type = 'supersedes' AND e.closed_at IS NULL AND chain.depth < 100
)
SELECT n.key FROM chain JOIN live_nodes n ON n.key = chain.node ORDER BY chain.depth DESC LIMIT 1
