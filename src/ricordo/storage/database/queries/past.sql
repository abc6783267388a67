-- name: schema_text
SELECT group_concat(sql, ';') FROM main.sqlite_schema

-- name: schema_columns
-- The columns of every table in order, with their position in the primary key (0: not part of it).
SELECT t.name, c.name, c.pk FROM main.sqlite_schema AS t, pragma_table_info(t.name, 'main') AS c
WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY t.name, c.cid

-- name: schema_unique
-- The unique columns of a table, apart from its key.
SELECT t.name, i.name, c.name FROM main.sqlite_schema AS t, pragma_index_list(t.name, 'main') AS i,
  pragma_index_info(i.name, 'main') AS c
WHERE t.type = 'table' AND i.origin = 'u' ORDER BY t.name, i.name, c.seqno

-- name: schema_references
SELECT t.name, f."from", f."table", f.on_delete = 'SET NULL' FROM main.sqlite_schema AS t, pragma_foreign_key_list(t.name, 'main') AS f
WHERE t.type = 'table'

-- name: schema_views
SELECT name, sql FROM main.sqlite_schema WHERE type = 'view' ORDER BY rowid

-- name: commits_of_run
-- The commits of a run that this caller may see.
SELECT seq FROM commits WHERE run_id = :run AND space IN (SELECT value FROM json_each(:spaces)) ORDER BY seq

-- name: commits_visible
-- Which of these commits this caller may see.
SELECT seq FROM commits
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND space IN (SELECT value FROM json_each(:spaces))

-- name: commit_at
-- The last commit of these tenants with a time not after an instant. Ordered by number, because clocks go backwards.
SELECT seq, at FROM commits WHERE space IN (SELECT value FROM json_each(:spaces)) AND at <= :at
ORDER BY seq DESC LIMIT 1

-- name: commit_upto
-- The last commit of these tenants up to a number.
SELECT seq, at FROM commits WHERE space IN (SELECT value FROM json_each(:spaces)) AND seq <= :seq
ORDER BY seq DESC LIMIT 1

-- name: commit_first
-- The first commit of these tenants.
SELECT seq, at, actor, origin, reason, run_id, hash FROM commits
WHERE space IN (SELECT value FROM json_each(:spaces)) ORDER BY seq LIMIT 1

-- name: history_touched
-- The rows that a commit replaced or removed, and rows it wrote that were replaced since.
SELECT tbl, row, before FROM history WHERE seq = :seq
UNION ALL
SELECT tbl, row, before FROM history WHERE made = :seq

-- name: history_of_row
-- All former versions of one row, oldest first.
SELECT seq, before FROM history WHERE tbl = :table AND row = :row ORDER BY seq

-- name: history_spanning
-- The versions that were current right after a commit and were replaced or removed since. At most one for each row, since
-- the versions of a row follow one another without a gap.
SELECT tbl, row, before FROM main.history WHERE seq > :commit AND made <= :commit

-- name: to_link_of
-- Nodes to search for names again.
SELECT l.id, n.key FROM to_link l JOIN nodes n ON n.key = l.node
WHERE n.space = :space ORDER BY l.id LIMIT :most

-- name: to_link_spaces
SELECT DISTINCT n.space FROM to_link l JOIN nodes n ON n.key = l.node

-- name: to_link_done
-- Including those of removed nodes.
DELETE FROM to_link WHERE id IN (SELECT value FROM json_each(:ids))
  OR NOT EXISTS (SELECT 1 FROM nodes WHERE key = to_link.node)

-- name: to_link_put
INSERT INTO to_link (node) SELECT value FROM json_each(:nodes)

-- name: links_drop
DELETE FROM found_mentions WHERE node IN (SELECT value FROM json_each(:nodes))

-- name: nodes_archive_again
-- Restored nodes enter the archive's index like new ones, by a separate statement.
INSERT INTO archive_fts (rowid, terms) SELECT key, index_terms(content, tags, speaker, space || shelf) FROM nodes
WHERE key IN (SELECT value FROM json_each(:nodes))

-- name: nodes_traits_again
-- Runs next to the INSERT, as for new nodes. Readers that cache turns see them when they are opened.
INSERT INTO traits SELECT key, space, coalesce(session, 0), event_time, speaker, traits_of(content, tags, speaker, source_role)
FROM nodes WHERE key IN (SELECT value FROM json_each(:nodes))

-- name: nodes_reopen
UPDATE nodes SET closed_at = NULL, closed_reason = NULL WHERE key IN (SELECT value FROM json_each(:nodes))

-- name: history_forget
-- A state between two statements of one commit is never visible in the past.
DELETE FROM history WHERE tbl = 'nodes' AND seq = :commit AND made = :commit
  AND row IN (SELECT CAST(value AS TEXT) FROM json_each(:nodes))

-- name: past_altered
-- Past rows that today's indexes do not hold. Only rows replaced or removed since can be among them.
SELECT p.key, p.content, p.speaker, p.tags, p.space FROM temp.past_nodes p LEFT JOIN main.nodes n ON n.key = p.key
WHERE n.key IS NULL OR n.content IS NOT p.content OR n.speaker IS NOT p.speaker OR n.tags IS NOT p.tags
  OR n.space IS NOT p.space

-- name: past_links_table
CREATE TEMP TABLE IF NOT EXISTS past_links (node INTEGER, entity INTEGER, PRIMARY KEY (node, entity)) WITHOUT ROWID

-- name: past_altered_table
CREATE TEMP TABLE IF NOT EXISTS past_altered (node INTEGER PRIMARY KEY)

-- name: past_altered_insert
INSERT INTO temp.past_altered VALUES (?)

-- name: past_renamed_table
CREATE TEMP TABLE IF NOT EXISTS past_renamed (entity INTEGER PRIMARY KEY)

-- name: past_renamed_fill
-- Past entities whose names have changed since, and those that shared a name with others then or share it now: who a
-- name stands for depends on all that have it.
WITH changed AS (
  SELECT * FROM (SELECT space, folded, entity FROM temp.aliases EXCEPT SELECT space, folded, entity FROM main.aliases)
  UNION ALL
  SELECT * FROM (SELECT space, folded, entity FROM main.aliases EXCEPT SELECT space, folded, entity FROM temp.aliases))
INSERT INTO temp.past_renamed SELECT entity FROM (SELECT entity FROM changed
  UNION SELECT a.entity FROM temp.aliases a JOIN changed c ON c.space = a.space AND c.folded = a.folded)
WHERE entity IN (SELECT key FROM temp.entities)

-- name: past_link_insert
INSERT INTO temp.past_links VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: past_renamed_names
SELECT space, alias, entity FROM temp.aliases WHERE entity IN (SELECT entity FROM temp.past_renamed)

-- name: past_renamed_relations
-- Past relations of the owner to these entities, by which memories may mention them ("my boss").
SELECT space, predicate, target FROM temp.relations WHERE source IS NULL
  AND target IN (SELECT entity FROM temp.past_renamed)

-- name: past_relations_changed
-- Past relations of the owner that differ from today's.
WITH then_said AS (SELECT r.space AS space, r.predicate AS predicate, r.target, r.valid_from, r.valid_until, r.closed_at,
    e.closed_at, e.merged_into
  FROM temp.relations r JOIN temp.entities e ON e.key = r.target WHERE r.source IS NULL),
said AS (SELECT r.space AS space, r.predicate AS predicate, r.target, r.valid_from, r.valid_until, r.closed_at,
    e.closed_at, e.merged_into
  FROM main.relations r JOIN main.entities e ON e.key = r.target WHERE r.source IS NULL)
SELECT DISTINCT space, predicate FROM (SELECT * FROM (SELECT * FROM then_said EXCEPT SELECT * FROM said)
  UNION ALL SELECT * FROM (SELECT * FROM said EXCEPT SELECT * FROM then_said))

-- name: past_links_view
CREATE TEMP VIEW IF NOT EXISTS found_mentions AS
  SELECT node, entity FROM main.found_mentions AS f
  WHERE NOT EXISTS (SELECT 1 FROM temp.past_altered a WHERE a.node = f.node)
    AND NOT EXISTS (SELECT 1 FROM temp.past_renamed r WHERE r.entity = f.entity)
    AND f.node IN (SELECT key FROM temp.nodes) AND f.entity IN (SELECT key FROM temp.entities)
  UNION ALL SELECT node, entity FROM temp.past_links

-- name: past_closed_since
-- The given nodes that are closed today, and so are not in the index of live nodes.
SELECT key FROM main.nodes WHERE key IN (SELECT value FROM json_each(:keys)) AND closed_at IS NOT NULL

-- name: past_counts_view
-- How often an entity was named; computed here, because the stored count is today's.
CREATE TEMP VIEW IF NOT EXISTS entity_counts AS
  SELECT x.entity AS entity, sum(n.closed_at IS NULL) AS nodes, min(n.event_time) AS first_at, max(n.event_time) AS last_at
  FROM (SELECT node, entity FROM temp.subjects UNION SELECT node, entity FROM temp.found_mentions) AS x
    JOIN temp.nodes AS n ON n.key = x.node
  GROUP BY x.entity
