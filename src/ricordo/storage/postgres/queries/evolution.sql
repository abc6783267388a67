-- name: slots_near
-- The facts of one subject whose statements are next to a line in sort order: those that share the longest prefix with it.
-- Facts that do not share the first word (up to :after) are left out.
SELECT n.key, n.content FROM (
  (SELECT 0 AS part, node, line FROM slots
    WHERE space = :space AND subjects = :subjects AND line >= :line AND line < :after ORDER BY line, node LIMIT :most)
  UNION ALL
  (SELECT 1, node, line FROM slots
    WHERE space = :space AND subjects = :subjects AND line < :line AND line >= :first ORDER BY line DESC, node DESC LIMIT :most)
) x JOIN nodes n ON n.key = x.node
ORDER BY part, CASE part WHEN 0 THEN x.line END, CASE part WHEN 0 THEN node END, x.line DESC, node DESC

-- name: facts_with
-- The latest live facts that hold an index term.
SELECT n.key, n.content, n.speaker FROM (
  SELECT node FROM words WHERE is_live AND terms && quoted(:match) ORDER BY node DESC LIMIT :most
) w JOIN nodes n ON n.key = w.node ORDER BY n.key DESC

-- name: succession
-- Pairs (newer, older) with these nodes: facts that replaced one another, open conflicts, and facts that replaced what was
-- learnt from a message (newest version, message).
WITH RECURSIVE asked AS (SELECT unnest(ints(:keys)) AS key),
chain (message, node) AS (
  SELECT e.target, e.source FROM edges e JOIN nodes n ON n.key = e.source
  WHERE e.target IN (SELECT key FROM asked) AND e.relation_type = 'derived_from' AND e.closed_at IS NULL
    AND n.closed_reason = 'superseded'
  UNION SELECT chain.message, e.source FROM chain JOIN edges e ON e.target = chain.node
  WHERE e.relation_type = 'supersedes' AND e.closed_at IS NULL
)
SELECT source, target FROM edges
  WHERE source IN (SELECT key FROM asked) AND relation_type = 'supersedes' AND closed_at IS NULL
UNION SELECT source, target FROM edges
  WHERE target IN (SELECT key FROM asked) AND relation_type = 'supersedes' AND closed_at IS NULL
UNION SELECT newer, older FROM reviews
  WHERE newer IN (SELECT key FROM asked) AND decided_at IS NULL AND kind IN ('conflict', 'same')
UNION SELECT newer, older FROM reviews
  WHERE older IN (SELECT key FROM asked) AND decided_at IS NULL AND kind IN ('conflict', 'same')
UNION SELECT chain.node, chain.message FROM chain JOIN live_nodes n ON n.key = chain.node
  WHERE NOT EXISTS (SELECT 1 FROM edges e WHERE e.source = chain.node AND e.target = chain.message
    AND e.relation_type = 'derived_from' AND e.closed_at IS NULL)
ORDER BY 1, 2

-- name: reviews_against
-- Open conflicts in which one of these nodes is the older: (older, newer, id of the review).
SELECT older, newer, id FROM reviews WHERE older = ANY (ints(:keys)) AND decided_at IS NULL AND kind = 'conflict' ORDER BY key

-- name: decided_among
-- Pairs of these nodes that the user has decided on.
SELECT newer, older FROM reviews WHERE newer = ANY (ints(:keys)) AND older IS NOT NULL AND decided_at IS NOT NULL

-- name: review_last_key
SELECT coalesce((SELECT last FROM counters WHERE tbl = 'reviews'), 0)

-- name: review_by_id
SELECT r.key, r.id, r.kind, r.newer, r.older, r.created_at, r.decided_at, r.decision, r.reasons, r.about, s.owner, s.chat
FROM reviews r JOIN spaces s ON s.key = r.space
WHERE r.id = :id AND r.space = ANY (ints(:spaces))

-- name: reviews_open
-- Reviews that can still be decided, latest first: if one of the two memories is gone, there is nothing to decide.
SELECT r.key, r.id, r.kind, r.newer, r.older, r.created_at, r.decided_at, r.decision, r.reasons, r.about, s.owner, s.chat
FROM reviews r JOIN spaces s ON s.key = r.space JOIN nodes n ON n.key = r.newer LEFT JOIN nodes o ON o.key = r.older
WHERE r.space = ANY (ints(:spaces)) AND r.decided_at IS NULL AND coalesce(r.kind = :kind, TRUE)
  AND coalesce(:node IN (r.newer, coalesce(r.older, 0)), TRUE)
  AND CASE r.kind WHEN 'quarantine' THEN n.closed_reason IS NOT DISTINCT FROM 'quarantined'
    WHEN 'replaced' THEN n.closed_at IS NULL AND o.closed_reason IS NOT DISTINCT FROM 'superseded'
    ELSE n.closed_at IS NULL AND o.closed_at IS NULL END
ORDER BY r.kind = 'replaced', r.kind = 'several', r.kind = 'quarantine', r.key DESC LIMIT :most

-- name: count_held
-- Open reviews of quarantined memories.
SELECT count(*) FROM reviews r JOIN nodes n ON n.key = r.newer
WHERE r.kind = 'quarantine' AND r.decided_at IS NULL AND n.closed_reason IS NOT DISTINCT FROM 'quarantined'
  AND r.space = ANY (ints(:spaces))
