-- name: edges_of_node
-- Edges of a memory, if the caller may see both ends: outgoing first, then incoming.
SELECT e.relation_type, s.id, t.id, e.predicate, e.weight, e.confidence, e.evidence
FROM edges e JOIN nodes s ON s.key = e.source JOIN nodes t ON t.key = e.target
WHERE e.source = :key AND e.closed_at IS NULL AND t.space IN (SELECT value FROM json_each(:spaces))
UNION ALL
SELECT e.relation_type, s.id, t.id, e.predicate, e.weight, e.confidence, e.evidence
FROM edges e JOIN nodes s ON s.key = e.source JOIN nodes t ON t.key = e.target
WHERE e.target = :key AND e.closed_at IS NULL AND s.space IN (SELECT value FROM json_each(:spaces))

-- name: names_in_node
-- Entities that a memory mentions, found by rule; its subjects are not included.
SELECT DISTINCT e.canonical_name FROM found_mentions m JOIN entities o ON o.key = m.entity
  JOIN entities e ON e.key = coalesce(o.merged_into, o.key)
WHERE m.node = :key AND e.key NOT IN (
  SELECT coalesce(o.merged_into, o.key) FROM subjects s JOIN entities o ON o.key = s.entity WHERE s.node = :key)
ORDER BY e.key

-- name: replaced_by_node
-- The versions that a memory replaced and that are not forgotten, step by step, latest first. UNION and a depth limit stop at cycles.
WITH RECURSIVE chain (node, depth) AS (
  SELECT :key, 0
  UNION
  SELECT e.target, chain.depth + 1 FROM chain JOIN edges e ON e.source = chain.node
  WHERE e.relation_type = 'supersedes' AND e.closed_at IS NULL AND chain.depth < 100
)
SELECT node, min(depth) FROM chain JOIN nodes n ON n.key = chain.node WHERE node != :key AND n.closed_reason IS NOT 'forgotten'
GROUP BY node ORDER BY min(depth), node DESC

-- name: replacing_node
-- The versions that replaced it, step by step, earliest first.
WITH RECURSIVE chain (node, depth) AS (
  SELECT :key, 0
  UNION
  SELECT e.source, chain.depth + 1 FROM chain JOIN edges e ON e.target = chain.node
  WHERE e.relation_type = 'supersedes' AND e.closed_at IS NULL AND chain.depth < 100
)
SELECT node, min(depth) FROM chain WHERE node != :key GROUP BY node ORDER BY min(depth), node

-- name: count_orphans
-- Live memories without any link: no session, no entity, no other memory.
SELECT count(*) FROM live_nodes n WHERE n.space IN (SELECT value FROM json_each(:spaces)) AND n.session IS NULL
  AND NOT EXISTS (SELECT 1 FROM subjects WHERE node = n.key)
  AND NOT EXISTS (SELECT 1 FROM found_mentions WHERE node = n.key)
  AND NOT EXISTS (SELECT 1 FROM edges WHERE source = n.key AND closed_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM edges WHERE target = n.key AND closed_at IS NULL)

-- name: last_consolidated
SELECT max(consolidated_at) FROM sessions WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: sources_of_node
-- The memories that a memory was derived from, latest first.
SELECT e.target FROM edges e WHERE e.source = :key AND e.relation_type = 'derived_from' AND e.closed_at IS NULL
ORDER BY e.target DESC LIMIT :most
