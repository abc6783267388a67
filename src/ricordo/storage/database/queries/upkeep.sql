-- name: count_types
SELECT type, count(*) FROM live_nodes WHERE space IN (SELECT value FROM json_each(:spaces)) GROUP BY type

-- name: count_categories
SELECT category, count(*) FROM live_nodes
WHERE space IN (SELECT value FROM json_each(:spaces)) AND category IS NOT NULL GROUP BY category

-- name: count_closed
SELECT count(*) FROM nodes WHERE space IN (SELECT value FROM json_each(:spaces)) AND closed_at IS NOT NULL
  AND closed_reason != 'quarantined'

-- name: count_edges
-- Temporal edges are counted from sessions: a session of n episodes has n - 1.
SELECT e.relation_type, count(*) FROM edges e JOIN nodes n ON n.key = e.source
WHERE e.closed_at IS NULL AND n.space IN (SELECT value FROM json_each(:spaces)) GROUP BY e.relation_type
UNION ALL
SELECT 'temporal', count(*) - count(DISTINCT session) FROM live_nodes
WHERE space IN (SELECT value FROM json_each(:spaces)) AND type = 'episodic' AND session IS NOT NULL

-- name: count_entities
SELECT count(*) FROM live_entities WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: count_sessions
-- Without documents, and without sessions that have quarantined messages only. Only live memories have an index by
-- session, so the closed ones are read once, by space.
WITH closed AS MATERIALIZED (
  SELECT session, max(closed_reason IS NOT 'quarantined') AS counts FROM nodes
  WHERE space IN (SELECT value FROM json_each(:spaces)) AND closed_at IS NOT NULL AND session IS NOT NULL
  GROUP BY session
)
SELECT count(*), coalesce(sum(consolidated_at IS NULL), 0) FROM sessions s
WHERE space IN (SELECT value FROM json_each(:spaces)) AND substr(session_id, 1, 9) != 'document:'
  AND (EXISTS (SELECT 1 FROM live_nodes n WHERE n.session = s.key)
    OR coalesce((SELECT counts FROM closed WHERE closed.session = s.key), 1))

-- name: count_commits
SELECT count(*) FROM commits WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: count_embedded
-- By the space of the embeddings: the duration of a walk over all owners' would reveal how many others have.
SELECT count(*) FROM embeddings e JOIN live_nodes n ON n.key = e.node
WHERE e.model = :model AND e.space IN (SELECT value FROM json_each(:spaces))

-- name: event_span
SELECT min(event_time), max(event_time) FROM live_nodes WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: own_bytes
-- The size of a caller's texts.
SELECT coalesce(sum(octet_length(content) + octet_length(tags) + octet_length(attributes)), 0) FROM nodes
WHERE space IN (SELECT value FROM json_each(:spaces))

-- name: store_bytes
SELECT (SELECT * FROM pragma_page_count) * (SELECT * FROM pragma_page_size)

-- name: counts_off
-- For `doctor`: partitions whose counts do not match the nodes. An empty partition keeps its row of zeros.
SELECT DISTINCT space, shelf FROM (
  SELECT space, shelf, sum(nodes) AS nodes, sum(chars) AS chars FROM (
    SELECT space, shelf, 1 AS nodes, char_count(content) AS chars FROM live_nodes
    UNION ALL SELECT space, shelf, -nodes, -chars FROM shelves)
  GROUP BY space, shelf)
WHERE nodes != 0 OR chars != 0

-- name: entity_counts_off
-- For `doctor`: entities whose count does not match the live memories linked to them.
SELECT entity FROM (
  SELECT m.entity, 1 AS nodes FROM mentions m JOIN live_nodes n ON n.key = m.node
  UNION ALL SELECT entity, -nodes FROM entity_counts)
GROUP BY entity HAVING sum(nodes) != 0

-- name: text_index_off
-- For `doctor`: nodes missing from their full-text index (live or archive) or from the features, index entries without a
-- node, and nodes whose features differ.
SELECT (SELECT count(*) FROM (SELECT key FROM nodes EXCEPT SELECT node FROM traits))
  + (SELECT count(*) FROM (SELECT node FROM traits EXCEPT SELECT key FROM nodes))
  + (SELECT count(*) FROM nodes n JOIN traits t ON t.node = n.key
    WHERE (t.space, t.session, t.event_time, t.speaker, t.traits) IS NOT
      (n.space, coalesce(n.session, 0), n.event_time, n.speaker, traits_of(n.content, n.tags, n.speaker, n.source_role)))
  + (SELECT count(*) FROM (SELECT key FROM live_nodes EXCEPT SELECT id FROM nodes_fts_docsize))
  + (SELECT count(*) FROM (SELECT id FROM nodes_fts_docsize EXCEPT SELECT key FROM live_nodes))
  + (SELECT count(*) FROM (SELECT key FROM nodes WHERE closed_at IS NOT NULL EXCEPT SELECT id FROM archive_fts_docsize))
  + (SELECT count(*) FROM (SELECT id FROM archive_fts_docsize EXCEPT SELECT key FROM nodes WHERE closed_at IS NOT NULL))

-- name: pages_off
-- For `doctor`: inner pages that lead nowhere, and pages of no known kind.
SELECT name, pageno FROM dbstat
WHERE (pagetype = 'internal' AND ncell = 0) OR pagetype NOT IN ('internal', 'leaf', 'overflow') LIMIT 5

-- name: backup_question
-- The newest memory, to test a backup.
SELECT key, content, space FROM live_nodes ORDER BY key DESC LIMIT 1

-- name: backup_ids
-- The ids of all memories, to compare them with those erased in the store that a backup replaces, and who may erase them.
SELECT n.id, coalesce(nullif(s.owner, ''), (SELECT min(member) FROM members m WHERE m.space = s.key AND m.role = 'keeper'), ''), s.chat
FROM nodes n JOIN spaces s ON s.key = n.space ORDER BY n.key

-- name: backup_erased
-- The fingerprints of the ids of erased memories.
SELECT id FROM erased_ids

-- name: sums_all
-- For `doctor`: the checksum of each table without row hashes.
SELECT tbl, total FROM sums

-- name: text_live_clear
INSERT INTO nodes_fts (nodes_fts) VALUES ('delete-all')

-- name: text_live_fill
INSERT INTO nodes_fts (rowid, terms) SELECT key, index_terms(content, tags, speaker, space || shelf) FROM live_nodes

-- name: text_archive_clear
INSERT INTO archive_fts (archive_fts) VALUES ('delete-all')

-- name: text_archive_fill
INSERT INTO archive_fts (rowid, terms) SELECT key, index_terms(content, tags, speaker, space || shelf) FROM nodes
WHERE closed_at IS NOT NULL

-- name: features_clear
DELETE FROM traits

-- name: features_fill
INSERT INTO traits SELECT key, space, coalesce(session, 0), event_time, speaker,
  traits_of(content, tags, speaker, source_role)
FROM nodes

-- name: slots_clear
DELETE FROM slots

-- name: slots_fill
INSERT INTO slots SELECT n.key, n.space, coalesce((SELECT group_concat(entity) FROM
    (SELECT entity FROM subjects WHERE node = n.key ORDER BY entity)), ''), statement_line(n.content)
FROM live_nodes n WHERE n.shelf = 'k' AND statement_line(n.content) != ''

-- name: shelves_clear
DELETE FROM shelves

-- name: shelves_fill
INSERT INTO shelves SELECT space, shelf, count(*), sum(char_count(content)) FROM live_nodes GROUP BY space, shelf

-- name: entity_counts_clear
DELETE FROM entity_counts

-- name: entity_counts_fill
INSERT INTO entity_counts SELECT m.entity, count(*) FILTER (WHERE n.closed_at IS NULL), min(n.event_time),
  max(n.event_time)
FROM mentions m JOIN nodes n ON n.key = m.node GROUP BY m.entity

-- name: sum_put
UPDATE sums SET total = :total WHERE tbl = :table

-- name: turns_changed
UPDATE meta SET value = value + 1 WHERE name = 'turns_changed'

-- name: node_remains
-- A live memory by key, without its indexes: they may be damaged.
SELECT id, space, type, category, content, source_role, speaker, session, tags, event_time
FROM nodes WHERE key = :key AND closed_at IS NULL

-- name: spaces_all_by_key
SELECT key, owner, chat FROM spaces

-- name: session_names
SELECT key, session_id FROM sessions
