-- name: schema_column_kinds
-- Every table's columns in order, with their declared type and default.
SELECT t.name, c.name, c.type, coalesce(c.dflt_value, '') FROM main.sqlite_schema AS t, pragma_table_info(t.name, 'main') AS c
WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY t.name, c.cid

-- name: commits_after
SELECT seq FROM commits WHERE seq > :seq ORDER BY seq

-- name: history_of_commit
-- The complete rows that a commit replaced or removed.
SELECT tbl, row, before FROM history WHERE seq = :seq

-- name: history_put
-- A line is right where a trigger is not: of several commits of one transaction, the index may have missed the first.
INSERT INTO history (seq, tbl, row, before) VALUES (?, ?, ?, ?)
ON CONFLICT (tbl, row, seq) DO UPDATE SET before = excluded.before

-- name: touched_table
-- Changes of this transaction to tables without history, so that the folder's files can follow. Rolled back with it.
CREATE TEMP TABLE IF NOT EXISTS touched (tbl TEXT NOT NULL, row TEXT NOT NULL, PRIMARY KEY (tbl, row)) WITHOUT ROWID

-- name: touched_rows
SELECT tbl, row FROM temp.touched

-- name: touched_forget
DELETE FROM temp.touched

-- name: vector_lines
-- The vectors of a node under one model, with the hash of their source text.
SELECT n.id, m.name, m.dimension, n.content, n.speaker, e.vector, p.vectors, w.pieces, w.vectors
FROM embeddings e JOIN nodes n ON n.key = e.node JOIN models m ON m.key = e.model
  LEFT JOIN passage_vectors p ON p.embedding = e.id LEFT JOIN word_vectors w ON w.embedding = e.id
WHERE e.node = ?1 AND e.model = ?2

-- name: vector_gone
-- The node of a removed vector.
SELECT n.id, m.name, m.dimension FROM nodes n, models m WHERE n.key = ?1 AND m.key = ?2

-- name: vector_remove
DELETE FROM embeddings WHERE node = ?1 AND model = ?2

-- name: vector_put
INSERT INTO embeddings (node, model, space, shelf, vector) SELECT key, ?2, space, shelf, ?3 FROM nodes WHERE key = ?1
ON CONFLICT DO NOTHING RETURNING id

-- name: sequences
-- The highest key assigned so far.
SELECT name, seq FROM sqlite_sequence WHERE seq > 0 ORDER BY name

-- name: relations_to_link_forget
DELETE FROM relations_to_link

-- name: commit_line
SELECT c.seq, s.owner, s.chat, c.at, c.actor, c.origin, c.reason, c.run_id, c.seal, c.digest, c.hash
FROM commits c JOIN spaces s ON s.key = c.space WHERE c.seq = :seq

-- name: commit_last_seq
SELECT max(seq) FROM commits

-- name: history_whole
SELECT seq, tbl, row, before FROM history ORDER BY seq, tbl, row

-- name: embedding_pairs
SELECT node, model FROM embeddings ORDER BY node, model

-- name: erasures_since
SELECT count(*) FROM erasures WHERE commit_seq > :seq

-- name: vector_source
SELECT id, key, content, speaker FROM nodes WHERE id = :id
