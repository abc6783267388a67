-- name: model_packs_drop
SELECT 1 WHERE FALSE

-- name: passage_vectors_of
SELECT e.node, p.vectors FROM embeddings e JOIN passage_vectors p ON p.embedding = e.id
WHERE e.model = :model AND e.node = ANY (ints(:nodes))

-- name: word_vectors_of
SELECT e.node, w.vectors FROM embeddings e JOIN word_vectors w ON w.embedding = e.id
WHERE e.model = :model AND length(w.vectors) > 0 AND e.node = ANY (ints(:nodes))

-- name: word_vectors_around
-- The same for the given nodes and for those that `traits_around` returned right before.
SELECT e.node, w.vectors FROM embeddings e JOIN word_vectors w ON w.embedding = e.id
WHERE e.model = :model AND length(w.vectors) > 0
  AND e.node = ANY (ints(:nodes) || ints('[' || current_setting('ricordo.around', true) || ']'))

-- name: lacking_guarded
-- Of what the caller sees, space by space: the planner would walk through the keys of all spaces.
SELECT lacking.key, lacking.content, lacking.speaker FROM unnest(seen()) AS s (space) CROSS JOIN LATERAL (
  SELECT n.key, n.content, n.speaker FROM nodes n WHERE n.space = s.space AND n.key > :after AND n.closed_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.node = n.key AND e.model = :model)
  ORDER BY n.key LIMIT :most) AS lacking
ORDER BY lacking.key LIMIT :most

-- name: embeddings_new
-- Vectors of a partition that are newer than the reader's: the last id, the nodes, the vectors; and the vectors of passages,
-- with how many bytes each node has of them. Closed nodes are not in the live index; they are few, and looking up each node
-- would take ten times as long. One row, because stepping over a row per vector takes longer.
SELECT max(id), string_agg(node::text, ','), string_agg(vector, ''::bytea),
  string_agg(coalesce(length(passages), 0)::text, ','), string_agg(passages, ''::bytea) FROM (
  SELECT e.id, e.node, e.vector, p.vectors AS passages FROM embeddings e LEFT JOIN passage_vectors p ON p.embedding = e.id
  WHERE e.model = :model AND e.space = :space AND e.shelf = :shelf AND e.id > :after
    AND e.node NOT IN (SELECT key FROM nodes WHERE space = :space AND closed_at IS NOT NULL)
  ORDER BY e.id LIMIT :most)

-- name: embeddings_of
SELECT node, vector FROM embeddings WHERE model = :model AND node = ANY (ints(:nodes)) ORDER BY node

-- name: centre_put
INSERT INTO centres VALUES (:model, :space, :shelf, :count, :vector)
ON CONFLICT (model, space, shelf) DO UPDATE SET count = excluded.count, vector = excluded.vector

-- name: centres_of
SELECT count, vector FROM centres WHERE model = :model AND space = ANY (ints(:spaces))
  AND shelf = ANY (texts(:shelves))

-- name: removals_needed
-- The position up to which every segment was purged and every model has vectors: a reader starting there needs nothing earlier.
SELECT least(CAST(:least AS bigint), (SELECT max(id) FROM removals)) WHERE EXISTS (SELECT 1 FROM removals)

-- name: packs_of
SELECT 0, 0, 0, 0 WHERE FALSE

-- name: shelves_to_pack
-- Partitions with many vectors outside any segment, and the position up to which segments go.
SELECT 0, 0, '', 0 WHERE FALSE

-- name: embeddings_position
SELECT coalesce(embedding, 0), coalesce((SELECT max(id) FROM removals), 0), coalesce(erasure, 0) FROM positions

-- name: embeddings_position_guarded
-- Of what the caller sees, except for removals.
SELECT coalesce((SELECT max(latest.id) FROM models m CROSS JOIN unnest(seen()) AS s (space) CROSS JOIN unnest(ARRAY['e', 'k', 'c'])
    AS h (shelf) CROSS JOIN LATERAL (SELECT e.id FROM embeddings e WHERE e.model = m.key AND e.space = s.space
      AND e.shelf = h.shelf ORDER BY e.id DESC LIMIT 1) AS latest), 0),
  coalesce((SELECT max(id) FROM removals), 0), coalesce(erasure, 0) FROM positions
