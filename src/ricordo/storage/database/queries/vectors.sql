-- name: models_known
SELECT key, name, dimension, spec, state FROM models ORDER BY key

-- name: model_insert
INSERT INTO models (name, dimension, spec, state) VALUES (:name, :dimension, :spec, :state) RETURNING key

-- name: model_state
UPDATE models SET state = :state WHERE key = :key

-- name: model_vectors_drop
DELETE FROM embeddings WHERE id IN (SELECT id FROM embeddings WHERE model = :model LIMIT :most)

-- name: model_packs_drop
DELETE FROM packs WHERE model = :model

-- name: model_removals_drop
-- No index needs the removals of a retired model.
DELETE FROM removals WHERE model = :model

-- name: model_drop
DELETE FROM models WHERE key = :model AND NOT EXISTS (SELECT 1 FROM embeddings WHERE model = :model)

-- name: lacking
-- Live nodes without a vector of this model, oldest first, from a key on.
SELECT n.key, n.content, n.speaker FROM nodes n
WHERE n.key > :after AND n.closed_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.node = n.key AND e.model = :model)
ORDER BY n.key LIMIT :most

-- name: lacking_count
SELECT count(*) FROM live_nodes n
WHERE NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.node = n.key AND e.model = :model)

-- name: embedding_insert
-- Only if the node still has the embedded text: it may have been changed or removed since it was read.
INSERT INTO embeddings (node, model, space, shelf, vector)
SELECT key, :model, space, shelf, :vector FROM nodes WHERE key = :node AND content = :content
ON CONFLICT DO NOTHING RETURNING id

-- name: word_vectors_insert
INSERT INTO word_vectors VALUES (?, ?, ?)

-- name: passage_vectors_insert
INSERT INTO passage_vectors VALUES (?, ?)

-- name: passage_vectors_of
SELECT e.node, p.vectors FROM embeddings e JOIN passage_vectors p ON p.embedding = e.id
WHERE e.model = :model AND e.node IN (SELECT value FROM json_each(:nodes))

-- name: word_vectors_of
SELECT e.node, w.vectors FROM embeddings e JOIN word_vectors w ON w.embedding = e.id
WHERE e.model = :model AND length(w.vectors) > 0 AND e.node IN (SELECT value FROM json_each(:nodes))

-- name: embeddings_new
-- Vectors of a partition that are newer than the reader's: the last id, the nodes, the vectors. Closed nodes are not in the
-- live index. One row, because stepping over a row per vector takes longer.
SELECT max(id), group_concat(node), CAST(group_concat(vector, '') AS BLOB) FROM (
  SELECT e.id, e.node, e.vector FROM embeddings e JOIN live_nodes n ON n.key = e.node
  WHERE e.model = :model AND e.space = :space AND e.shelf = :shelf AND e.id > :after ORDER BY e.id LIMIT :most)

-- name: embeddings_of
SELECT node, vector FROM embeddings WHERE model = :model AND node IN (SELECT value FROM json_each(:nodes)) ORDER BY node

-- name: embeddings_position
SELECT coalesce((SELECT max(id) FROM embeddings), 0), coalesce((SELECT max(id) FROM removals), 0),
  coalesce((SELECT max(key) FROM erasures), 0)

-- name: centres_due
-- Partitions that have grown by a third since their mean was computed, until it rests on enough vectors.
SELECT s.space, s.shelf FROM shelves s LEFT JOIN centres c ON c.model = :model AND c.space = s.space AND c.shelf = s.shelf
WHERE s.nodes >= :least AND coalesce(c.count, 0) < :most AND s.nodes > coalesce(c.count, 0) * 4 / 3

-- name: centre_sample
SELECT vector FROM embeddings WHERE model = :model AND space = :space AND shelf = :shelf ORDER BY id LIMIT :most

-- name: centre_put
INSERT INTO centres VALUES (:model, :space, :shelf, :count, :vector)
ON CONFLICT DO UPDATE SET count = excluded.count, vector = excluded.vector

-- name: centres_of
SELECT count, vector FROM centres WHERE model = :model AND space IN (SELECT value FROM json_each(:spaces))
  AND shelf IN (SELECT value FROM json_each(:shelves))

-- name: removals_since
SELECT max(id), min(node) FROM removals WHERE id > :after

-- name: removals_needed
-- The position up to which every segment was purged and every model has vectors: a reader starting there needs nothing earlier.
SELECT min(coalesce((SELECT min(removals) FROM packs), :least), :least, (SELECT max(id) FROM removals))

-- name: removals_drop
DELETE FROM removals WHERE id < :before

-- name: removals_new
SELECT id, node FROM removals WHERE id > :after AND (model IS NULL OR model = :model) ORDER BY id

-- name: packs_of
SELECT key, removals, through, length(segment) FROM packs WHERE model = :model AND space = :space AND shelf = :shelf
ORDER BY through

-- name: pack_insert
INSERT INTO packs (model, space, shelf, through, removals, sketch, segment)
VALUES (:model, :space, :shelf, :through, :removals, :sketch, :segment)

-- name: shelves_to_pack
-- Partitions with many vectors outside any segment, and the position up to which segments go.
SELECT model, space, shelf, coalesce((SELECT max(through) FROM packs p
  WHERE p.model = k.model AND p.space = k.space AND p.shelf = k.shelf), 0)
FROM (SELECT DISTINCT m.key AS model, s.space, s.shelf FROM models m, shelves s) AS k
WHERE (SELECT count(*) FROM (SELECT 1 FROM embeddings e
  WHERE e.model = k.model AND e.space = k.space AND e.shelf = k.shelf AND e.id > coalesce((SELECT max(through)
    FROM packs p WHERE p.model = k.model AND p.space = k.space AND p.shelf = k.shelf), 0) LIMIT :least)) >= :least
