-- name: facts_alive
-- The knowledge of some spaces that holds now, the earliest first.
SELECT key FROM live_nodes
WHERE space IN (SELECT value FROM json_each(:spaces)) AND type != 'episodic' AND (expires_at IS NULL OR expires_at > :now)
ORDER BY event_time, key

-- name: entities_alive
SELECT key FROM live_entities WHERE space IN (SELECT value FROM json_each(:spaces)) ORDER BY key

-- name: relations_alive
-- (source, predicate, target) of what holds now, by id; no source stands for the owner.
SELECT x.id, r.predicate, t.id FROM relations r
  JOIN entities o ON o.key = r.target JOIN entities t ON t.key = coalesce(o.merged_into, o.key)
  LEFT JOIN entities p ON p.key = r.source LEFT JOIN entities x ON x.key = coalesce(p.merged_into, p.key)
WHERE r.space IN (SELECT value FROM json_each(:spaces)) AND r.closed_at IS NULL AND r.valid_until IS NULL
  AND t.closed_at IS NULL AND x.key IS NOT t.key
ORDER BY r.key
