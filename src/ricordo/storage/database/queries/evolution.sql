-- name: slots_near
-- The facts of one subject whose statements are next to a line in sort order: those that share the longest prefix with it.
-- Facts that do not share the first word (up to :after) are left out.
SELECT n.key, n.content FROM (
  SELECT node FROM (SELECT node FROM slots
    WHERE space = :space AND subjects = :subjects AND line >= :line AND line < :after ORDER BY line LIMIT :most)
  UNION ALL
  SELECT node FROM (SELECT node FROM slots
    WHERE space = :space AND subjects = :subjects AND line < :line AND line >= :first ORDER BY line DESC LIMIT :most)
) JOIN nodes n ON n.key = node

-- name: facts_with
-- The latest live facts that hold an index term.
SELECT n.key, n.content, n.speaker FROM (
  SELECT rowid FROM nodes_fts WHERE nodes_fts MATCH :match ORDER BY rowid DESC LIMIT :most
) JOIN nodes n ON n.key = rowid

-- name: subjects_of
SELECT e.id FROM subjects s JOIN entities e ON e.key = s.entity WHERE s.node = :node ORDER BY e.key

-- name: slots_off
-- For `doctor`: facts whose slot does not match their text, owner or subjects, or slots without a live fact.
SELECT (SELECT count(*) FROM live_nodes n LEFT JOIN slots s ON s.node = n.key
    WHERE n.shelf = 'k' AND (coalesce(s.line, '') != statement_line(n.content) OR s.space != n.space
      OR s.subjects != coalesce((SELECT group_concat(entity) FROM
        (SELECT entity FROM subjects WHERE node = n.key ORDER BY entity)), '')))
  + (SELECT count(*) FROM slots s WHERE NOT EXISTS (SELECT 1 FROM live_nodes n WHERE n.key = s.node AND n.shelf = 'k'))

-- name: succession
-- Pairs (newer, older) with these nodes: facts that replaced one another, open conflicts, and facts that replaced what was
-- learnt from a message (newest version, message).
WITH RECURSIVE asked (key) AS (SELECT value FROM json_each(:keys)),
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

-- name: reviews_against
-- Open conflicts in which one of these nodes is the older: (older, newer, id of the review).
SELECT older, newer, id FROM reviews WHERE older IN (SELECT value FROM json_each(:keys)) AND decided_at IS NULL AND kind = 'conflict' ORDER BY key

-- name: decided_among
-- Pairs of these nodes that the user has decided on.
SELECT newer, older FROM reviews WHERE newer IN (SELECT value FROM json_each(:keys)) AND older IS NOT NULL
  AND decided_at IS NOT NULL

-- name: edge_of
SELECT source, relation_type, target, predicate, weight, confidence, valid_from, valid_until, evidence, created_at
FROM edges WHERE source = :source AND relation_type = :type AND target = :target AND closed_at IS NULL

-- name: edge_close
UPDATE edges SET closed_at = ?4, commit_seq = ?5, seal = ?6 WHERE source = ?1 AND relation_type = ?2 AND target = ?3

-- name: review_put
INSERT INTO reviews VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET decided_at = excluded.decided_at, decision = excluded.decision,
  commit_seq = excluded.commit_seq, seal = excluded.seal

-- name: review_place
SELECT key FROM reviews WHERE id = :id

-- name: review_last_key
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'reviews'), 0)

-- name: review_by_id
SELECT r.key, r.id, r.kind, r.newer, r.older, r.created_at, r.decided_at, r.decision, r.reasons, r.about, s.owner, s.chat
FROM reviews r JOIN spaces s ON s.key = r.space
WHERE r.id = :id AND r.space IN (SELECT value FROM json_each(:spaces))

-- name: reviews_decided_with
SELECT older FROM reviews WHERE newer = :node AND older IS NOT NULL AND decided_at IS NOT NULL
UNION SELECT newer FROM reviews WHERE older = :node AND decided_at IS NOT NULL

-- name: reviews_open
-- Reviews that can still be decided, latest first: if one of the two memories is gone, there is nothing to decide.
SELECT r.key, r.id, r.kind, r.newer, r.older, r.created_at, r.decided_at, r.decision, r.reasons, r.about, s.owner, s.chat
FROM reviews r JOIN spaces s ON s.key = r.space JOIN nodes n ON n.key = r.newer LEFT JOIN nodes o ON o.key = r.older
WHERE r.space IN (SELECT value FROM json_each(:spaces)) AND r.decided_at IS NULL AND coalesce(r.kind = :kind, 1)
  AND coalesce(:node IN (r.newer, coalesce(r.older, 0)), 1)
  AND CASE r.kind WHEN 'quarantine' THEN n.closed_reason IS 'quarantined'
    WHEN 'replaced' THEN n.closed_at IS NULL AND o.closed_reason IS 'superseded'
    ELSE n.closed_at IS NULL AND o.closed_at IS NULL END
ORDER BY r.kind = 'replaced', r.kind = 'several', r.kind = 'quarantine', r.key DESC LIMIT :most

-- name: review_of_held
-- The latest quarantine review of the same words.
SELECT r.id FROM reviews r JOIN nodes n ON n.key = r.newer
WHERE r.kind = 'quarantine' AND r.space = :space AND n.content = :content AND n.type = :type
  AND (n.closed_at IS NULL OR n.closed_reason = 'quarantined')
ORDER BY r.key DESC LIMIT 1

-- name: count_held
-- Open reviews of quarantined memories.
SELECT count(*) FROM reviews r JOIN nodes n ON n.key = r.newer
WHERE r.kind = 'quarantine' AND r.decided_at IS NULL AND n.closed_reason IS 'quarantined'
  AND r.space IN (SELECT value FROM json_each(:spaces))
