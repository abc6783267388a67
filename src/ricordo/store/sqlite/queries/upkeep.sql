-- name: count_types
SELECT type, count(*) FROM live_nodes WHERE space IN (SELECT value FROM json_each(:spaces)) GROUP BY type

-- name: count_categories
SELECT category, count(*) FROM live_nodes
WHERE space IN (SELECT value FROM json_each(:spaces)) AND category IS NOT NULL GROUP BY category

-- name: count_closed
SELECT count(*) FROM nodes WHERE space IN (SELECT value FROM json_each(:spaces)) AND closed_at IS NOT NULL

-- name: count_edges
-- Temporal ones are counted from the sessions they follow from: a session of n episodes has n - 1.
SELECT e.relation_type, count(*) FROM edges e JOIN nodes n ON n.key = e.source
WHERE e.closed_at IS NULL AND n.space IN (SELECT value FROM json_each(:spaces)) GROUP BY e.relation_type
UNION ALL
SELECT 'temporal', count(*) - count(DISTINCT session) FROM live_nodes
WHERE space IN (SELECT value FROM json_each(:spaces)) AND type = 'episodic' AND session IS NOT NULL

-- name: count_entities
SELECT count(*) FROM live_entities WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: count_sessions
SELECT count(*), coalesce(sum(consolidated_at IS NULL), 0) FROM sessions
WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: count_commits
SELECT count(*) FROM commits WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: count_embedded
SELECT count(*) FROM embeddings e JOIN live_nodes n ON n.key = e.node
WHERE e.model = :model AND n.space IN (SELECT value FROM json_each(:spaces))

-- name: event_span
SELECT min(event_time), max(event_time) FROM live_nodes WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: store_bytes
SELECT (SELECT * FROM pragma_page_count) * (SELECT * FROM pragma_page_size)

-- name: counts_off
-- For `doctor`: shelves whose counts do not agree with the nodes.
SELECT space, shelf FROM (
  SELECT space, shelf, count(*) AS nodes, sum(length(replace(content, char(0), ' '))) AS chars FROM live_nodes GROUP BY space, shelf
  EXCEPT SELECT space, shelf, nodes, chars FROM shelves)

-- name: text_index_off
-- For `doctor`: live nodes that the full-text index does not know, or the reverse.
SELECT (SELECT count(*) FROM (SELECT key FROM live_nodes EXCEPT SELECT id FROM nodes_fts_docsize))
  + (SELECT count(*) FROM (SELECT id FROM nodes_fts_docsize EXCEPT SELECT key FROM live_nodes))
