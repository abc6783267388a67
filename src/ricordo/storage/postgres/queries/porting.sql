-- name: facts_alive
-- Current knowledge of some tenants, earliest first.
SELECT key FROM live_nodes
WHERE space = ANY (ints(:spaces)) AND type != 'episodic' AND (expires_at IS NULL OR expires_at > :now)
ORDER BY event_time, key

-- name: entities_alive
SELECT key FROM live_entities WHERE space = ANY (ints(:spaces)) ORDER BY key

-- name: relations_alive
-- (source, predicate, target) of current relations, by id; NULL as source is the owner.
SELECT x.id, r.predicate, t.id FROM relations r
  JOIN entities o ON o.key = r.target JOIN entities t ON t.key = coalesce(o.merged_into, o.key)
  LEFT JOIN entities p ON p.key = r.source LEFT JOIN entities x ON x.key = coalesce(p.merged_into, p.key)
WHERE r.space = ANY (ints(:spaces)) AND r.closed_at IS NULL AND r.valid_until IS NULL
  AND t.closed_at IS NULL AND x.key IS DISTINCT FROM t.key
ORDER BY r.key

-- name: memories_all
-- All memories of some tenants, including closed ones, in the order in which they were recorded.
SELECT key FROM nodes WHERE space = ANY (ints(:spaces)) ORDER BY key

-- name: edges_all
-- (source, type, target) of current edges between memories of some tenants, by id.
SELECT a.id, e.relation_type, b.id FROM edges e JOIN nodes a ON a.key = e.source JOIN nodes b ON b.key = e.target
WHERE e.closed_at IS NULL AND a.space = ANY (ints(:spaces))
  AND b.space = ANY (ints(:spaces))
ORDER BY e.source, e.target
