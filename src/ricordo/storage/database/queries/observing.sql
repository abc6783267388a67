-- name: edges_of_node
-- What links a memory to others, as far as the caller may see both: from itself first, then from others to it.
SELECT e.relation_type, s.id, t.id, e.predicate, e.weight, e.confidence, e.evidence
FROM edges e JOIN nodes s ON s.key = e.source JOIN nodes t ON t.key = e.target
WHERE e.source = :key AND e.closed_at IS NULL AND t.space IN (SELECT value FROM json_each(:spaces))
UNION ALL
SELECT e.relation_type, s.id, t.id, e.predicate, e.weight, e.confidence, e.evidence
FROM edges e JOIN nodes s ON s.key = e.source JOIN nodes t ON t.key = e.target
WHERE e.target = :key AND e.closed_at IS NULL AND s.space IN (SELECT value FROM json_each(:spaces))

-- name: names_in_node
-- Whom a memory names, as found by rule; whom it is about is not among them.
SELECT DISTINCT e.canonical_name FROM found_mentions m JOIN entities o ON o.key = m.entity
  JOIN entities e ON e.key = coalesce(o.merged_into, o.key)
WHERE m.node = :key AND e.key NOT IN (
  SELECT coalesce(o.merged_into, o.key) FROM subjects s JOIN entities o ON o.key = s.entity WHERE s.node = :key)
ORDER BY e.key

-- name: replaced_by_node
-- What a memory took the place of, step by step, the latest first. UNION and a depth, so that a ring cannot spin.
WITH RECURSIVE chain (node, depth) AS (
  SELECT :key, 0
  UNION
  SELECT e.target, chain.depth + 1 FROM chain JOIN edges e ON e.source = chain.node
  WHERE e.relation_type = 'supersedes' AND e.closed_at IS NULL AND chain.depth < 100
)
SELECT node, min(depth) FROM chain WHERE node != :key GROUP BY node ORDER BY min(depth), node DESC

-- name: replacing_node
-- What took its place, step by step, the first first.
WITH RECURSIVE chain (node, depth) AS (
  SELECT :key, 0
  UNION
  SELECT e.source, chain.depth + 1 FROM chain JOIN edges e ON e.target = chain.node
  WHERE e.relation_type = 'supersedes' AND e.closed_at IS NULL AND chain.depth < 100
)
SELECT node, min(depth) FROM chain WHERE node != :key GROUP BY node ORDER BY min(depth), node

-- name: count_orphans
-- Live memories that nothing links to anything: no conversation, nobody, no other memory.
SELECT count(*) FROM live_nodes n WHERE n.space IN (SELECT value FROM json_each(:spaces)) AND n.session IS NULL
  AND NOT EXISTS (SELECT 1 FROM subjects WHERE node = n.key)
  AND NOT EXISTS (SELECT 1 FROM found_mentions WHERE node = n.key)
  AND NOT EXISTS (SELECT 1 FROM edges WHERE source = n.key AND closed_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM edges WHERE target = n.key AND closed_at IS NULL)

-- name: last_consolidated
SELECT max(consolidated_at) FROM sessions WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: sources_of_node
-- What a memory rests on, the latest first.
SELECT e.target FROM edges e WHERE e.source = :key AND e.relation_type = 'derived_from' AND e.closed_at IS NULL
ORDER BY e.target DESC LIMIT :most
