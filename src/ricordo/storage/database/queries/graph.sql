-- name: kinds_of_links
-- Whether the store has any causes, associates, versions and statement lines: if not, searches skip them. Every
-- memory with versions has an edge or a review.
SELECT EXISTS (SELECT 1 FROM edges INDEXED BY edges_causal WHERE relation_type = 'causal'),
  EXISTS (SELECT 1 FROM associates), EXISTS (SELECT 1 FROM edges) OR EXISTS (SELECT 1 FROM reviews),
  EXISTS (SELECT 1 FROM slots)

-- name: entity_near
-- The latest live memories about one entity and those that name it, with the fields that rank them. Each half is a bounded
-- walk along its index, because an entity may have a hundred thousand of them.
SELECT n.key, n.shelf, n.confidence, n.score FROM (
    SELECT node FROM (SELECT node FROM subjects WHERE entity = :entity ORDER BY node DESC LIMIT :walk)
    UNION
    SELECT node FROM (SELECT node FROM found_mentions WHERE entity = :entity ORDER BY node DESC LIMIT :walk)) AS walked
  CROSS JOIN live_nodes n ON n.key = walked.node
WHERE n.space IN (SELECT value FROM json_each(:spaces))

-- name: linked_to
-- The given nodes that are about, or name, one of the given entities.
SELECT node FROM subjects
  WHERE node IN (SELECT value FROM json_each(:nodes)) AND entity IN (SELECT value FROM json_each(:entities))
UNION
SELECT node FROM found_mentions
  WHERE node IN (SELECT value FROM json_each(:nodes)) AND entity IN (SELECT value FROM json_each(:entities))

-- name: causes_and_effects
-- One step along causal edges, in both directions. Single steps visit each node once, however many paths lead to it, and
-- follow a limited number of its edges.
SELECT walked.node, n.shelf, walked.origin, walked.weight FROM (
    SELECT * FROM (SELECT e.target AS node, e.source AS origin, e.weight * e.confidence AS weight FROM edges e
      WHERE e.source IN (SELECT value FROM json_each(:nodes)) AND e.relation_type = 'causal' AND e.closed_at IS NULL
      LIMIT :most)
    UNION ALL
    SELECT * FROM (SELECT e.source, e.target, e.weight * e.confidence FROM edges e
      WHERE e.target IN (SELECT value FROM json_each(:nodes)) AND e.relation_type = 'causal' AND e.closed_at IS NULL
      LIMIT :most)) AS walked
  CROSS JOIN live_nodes n ON n.key = walked.node
WHERE n.space IN (SELECT value FROM json_each(:spaces))

-- name: associates_of
-- The strongest associates of each given node.
SELECT a.other, n.shelf, a.node, a.weight FROM json_each(:nodes) AS walked
  CROSS JOIN associates a ON a.node = walked.value AND a.other IN (
    SELECT b.other FROM associates b WHERE b.node = walked.value ORDER BY b.weight DESC LIMIT :each)
  CROSS JOIN live_nodes n ON n.key = a.other
WHERE n.space IN (SELECT value FROM json_each(:spaces))

-- name: associate_put
-- Each time the weight moves by a fixed share of its distance to 1.
INSERT INTO associates VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET weight = weight + excluded.weight * (1 - weight)

-- name: reinforced_since
-- Memories of one tenant reinforced since a moment, latest first.
SELECT n.id FROM nodes n WHERE n.space = :space AND n.reinforced_at >= :since AND n.closed_at IS NULL
ORDER BY n.reinforced_at DESC LIMIT :most

-- name: usage_put
-- (node, times shown, last time shown). A node may have been erased since it was shown.
INSERT INTO usage
SELECT n.key, shown.value ->> 1, shown.value ->> 2 FROM json_each(:shown) shown JOIN nodes n ON n.key = shown.value ->> 0
WHERE TRUE
ON CONFLICT DO UPDATE SET count = count + excluded.count, last_access = max(last_access, excluded.last_access)

-- name: usage_of
SELECT node, count, last_access FROM usage WHERE node IN (SELECT value FROM json_each(:nodes))

-- name: lines_of
-- The statement line of each of some facts, and its valid_from. Of long statements only the beginning is stored.
SELECT s.node, s.subjects, s.line, n.valid_from FROM slots s JOIN nodes n ON n.key = s.node
WHERE s.node IN (SELECT value FROM json_each(:nodes)) AND length(n.content) <= :most
