-- name: facts_alive
-- Current knowledge of some tenants, earliest first.
SELECT key FROM live_nodes
WHERE space IN (SELECT value FROM json_each(:spaces)) AND type != 'episodic' AND (expires_at IS NULL OR expires_at > :now)
ORDER BY event_time, key

-- name: entities_alive
SELECT key FROM live_entities WHERE space IN (SELECT value FROM json_each(:spaces)) ORDER BY key

-- name: relations_alive
-- (source, predicate, target) of current relations, by id; NULL as source is the owner.
SELECT x.id, r.predicate, t.id FROM relations r
  JOIN entities o ON o.key = r.target JOIN entities t ON t.key = coalesce(o.merged_into, o.key)
  LEFT JOIN entities p ON p.key = r.source LEFT JOIN entities x ON x.key = coalesce(p.merged_into, p.key)
WHERE r.space IN (SELECT value FROM json_each(:spaces)) AND r.closed_at IS NULL AND r.valid_until IS NULL
  AND t.closed_at IS NULL AND x.key IS NOT t.key
ORDER BY r.key

-- name: spaces_known
SELECT key FROM spaces

-- name: spaces_named
SELECT key, owner, chat FROM spaces

-- name: whole_size
-- Approximate number of lines of a complete export: memories, their vectors, and other rows.
SELECT sum(n) FROM (
  SELECT count(*) AS n FROM nodes WHERE space IN (SELECT value FROM json_each(:spaces))
  UNION ALL SELECT count(*) FROM embeddings WHERE space IN (SELECT value FROM json_each(:spaces))
  UNION ALL SELECT count(*) FROM commits WHERE space IN (SELECT value FROM json_each(:spaces))
  UNION ALL SELECT count(*) FROM subjects
  UNION ALL SELECT count(*) FROM history)

-- name: whole_vectors
SELECT node, model FROM embeddings WHERE space IN (SELECT value FROM json_each(:spaces)) ORDER BY node, model

-- name: whole_history
SELECT seq, tbl, row, before FROM history ORDER BY seq, tbl, row

-- name: whole_commits
SELECT seq, space FROM commits ORDER BY seq

-- name: space_of_gone
-- The tenant of a removed row.
SELECT json_extract(before, '$.space') FROM history WHERE tbl = :table AND row = :row LIMIT 1

-- name: memories_all
-- All memories of some tenants, including closed ones, in the order in which they were recorded.
SELECT key FROM nodes WHERE space IN (SELECT value FROM json_each(:spaces)) ORDER BY key

-- name: edges_all
-- (source, type, target) of current edges between memories of some tenants, by id.
SELECT a.id, e.relation_type, b.id FROM edges e JOIN nodes a ON a.key = e.source JOIN nodes b ON b.key = e.target
WHERE e.closed_at IS NULL AND a.space IN (SELECT value FROM json_each(:spaces))
  AND b.space IN (SELECT value FROM json_each(:spaces))
ORDER BY e.source, e.target
