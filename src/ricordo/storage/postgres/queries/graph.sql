-- name: kinds_of_links
-- Whether the store has any causes, associates, versions and statement lines: if not, searches skip them. Every
-- memory with versions has an edge or a review.
SELECT EXISTS (SELECT 1 FROM edges WHERE relation_type = 'causal'),
  EXISTS (SELECT 1 FROM associates), EXISTS (SELECT 1 FROM edges) OR EXISTS (SELECT 1 FROM reviews),
  EXISTS (SELECT 1 FROM slots)

-- name: entity_near
-- The latest live memories about one entity and those that name it, with the fields that rank them. Each half is a bounded
-- walk along its index, because an entity may have a hundred thousand of them.
SELECT n.key, n.shelf, n.confidence, n.score FROM (
    SELECT node FROM (SELECT node FROM subjects WHERE entity = :entity ORDER BY node DESC LIMIT :walk)
    UNION
    SELECT node FROM (SELECT node FROM found_mentions WHERE entity = :entity ORDER BY node DESC LIMIT :walk)) AS walked
  JOIN live_nodes n ON n.key = walked.node
WHERE n.space = ANY (ints(:spaces))

-- name: entity_near_guarded
-- By a function: below policies, the walk would look up all memories of the caller.
SELECT key, shelf, confidence, score FROM near_entity(:entity, :walk)

-- name: linked_to
-- The given nodes that are about, or name, one of the given entities.
SELECT node FROM subjects
  WHERE node = ANY (ints(:nodes)) AND entity = ANY (ints(:entities))
UNION
SELECT node FROM found_mentions
  WHERE node = ANY (ints(:nodes)) AND entity = ANY (ints(:entities))

-- name: linked_around
-- The same for the given nodes and for those that `traits_around` returned right before.
SELECT node FROM subjects
  WHERE node = ANY (ints(:nodes) || ints('[' || current_setting('ricordo.around', true) || ']')) AND entity = ANY (ints(:entities))
UNION
SELECT node FROM found_mentions
  WHERE node = ANY (ints(:nodes) || ints('[' || current_setting('ricordo.around', true) || ']')) AND entity = ANY (ints(:entities))

-- name: causes_and_effects
-- One step along causal edges, in both directions. Single steps visit each node once, however many paths lead to it, and
-- follow a limited number of its edges.
SELECT walked.node, n.shelf, walked.origin, walked.weight FROM (
    SELECT * FROM (SELECT e.target AS node, e.source AS origin, e.weight * e.confidence AS weight FROM edges e
      WHERE e.source = ANY (ints(:nodes)) AND e.relation_type = 'causal' AND e.closed_at IS NULL
      LIMIT :most)
    UNION ALL
    SELECT * FROM (SELECT e.source, e.target, e.weight * e.confidence FROM edges e
      WHERE e.target = ANY (ints(:nodes)) AND e.relation_type = 'causal' AND e.closed_at IS NULL
      LIMIT :most)) AS walked
  JOIN live_nodes n ON n.key = walked.node
WHERE n.space = ANY (ints(:spaces))

-- name: associates_of
-- The strongest associates of each given node.
SELECT a.other, n.shelf, a.node, a.weight FROM unnest(ints(:nodes)) AS walked (key)
  CROSS JOIN LATERAL (SELECT b.node, b.other, b.weight FROM associates b WHERE b.node = walked.key
    ORDER BY b.weight DESC, b.other LIMIT :each) AS a
  JOIN live_nodes n ON n.key = a.other
WHERE n.space = ANY (ints(:spaces))

-- name: associate_put
-- Each time the weight moves by a fixed share of its distance to 1.
INSERT INTO associates VALUES (?1, ?2, ?3)
ON CONFLICT (node, other) DO UPDATE SET weight = associates.weight + excluded.weight * (1 - associates.weight)

-- name: reinforced_since
-- Memories of one tenant reinforced since a moment, latest first.
SELECT n.id FROM nodes n WHERE n.space = :space AND n.reinforced_at >= :since AND n.closed_at IS NULL
ORDER BY n.reinforced_at DESC, n.key LIMIT :most

-- name: usage_put
-- (node, times shown, last time shown). A node may have been erased since it was shown.
INSERT INTO usage
SELECT n.key, (shown ->> 1)::int, (shown ->> 2)::bigint
FROM jsonb_array_elements(:shown::jsonb) shown JOIN nodes n ON n.key = (shown ->> 0)::bigint
ON CONFLICT (node) DO UPDATE SET count = usage.count + excluded.count,
  last_access = greatest(usage.last_access, excluded.last_access)

-- name: usage_of
SELECT node, count, last_access FROM usage WHERE node = ANY (ints(:nodes))

-- name: lines_of
-- The statement line of each of some facts, and its valid_from. Of long statements only the beginning is stored.
SELECT s.node, s.subjects, s.line, n.valid_from FROM slots s JOIN nodes n ON n.key = s.node
WHERE s.node = ANY (ints(:nodes)) AND length(n.content) <= :most
