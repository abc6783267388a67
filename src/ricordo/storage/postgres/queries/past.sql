-- name: schema_columns
-- The columns of every table in order, with their position in the primary key (0: not part of it).
SELECT c.relname, a.attname, coalesce(array_position(i.indkey::int2[], a.attnum), -1) + 1
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum

-- name: schema_unique
-- The unique columns of a table, apart from its key.
SELECT c.relname, x.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
  CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
WHERE c.relnamespace = current_schema()::regnamespace AND i.indisunique AND NOT i.indisprimary AND i.indexprs IS NULL
ORDER BY c.relname, x.relname, k.place

-- name: schema_references
SELECT c.relname, a.attname, t.relname, r.confdeltype = 'n' FROM pg_constraint r JOIN pg_class c ON c.oid = r.conrelid
  JOIN pg_class t ON t.oid = r.confrelid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = r.conkey[1]
WHERE r.contype = 'f' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname, a.attnum

-- name: commits_of_run
-- The commits of a run that this caller may see.
SELECT seq FROM commits WHERE run_id = :run AND space = ANY (ints(:spaces)) ORDER BY seq

-- name: commits_visible
-- Which of these commits this caller may see.
SELECT seq FROM commits
WHERE seq = ANY (ints(:seqs)) AND space = ANY (ints(:spaces))

-- name: commit_at
-- The last commit of these tenants with a time not after an instant. Ordered by number, because clocks go backwards.
SELECT seq, at FROM commits WHERE space = ANY (ints(:spaces)) AND at <= :at
ORDER BY seq DESC LIMIT 1

-- name: commit_first
-- The first commit of these tenants.
SELECT seq, at, actor, origin, reason, run_id, hash FROM commits
WHERE space = ANY (ints(:spaces)) ORDER BY seq LIMIT 1

-- name: commit_upto
-- The last commit of these tenants up to a number.
SELECT seq, at FROM commits WHERE space = ANY (ints(:spaces)) AND seq <= :seq
ORDER BY seq DESC LIMIT 1

-- name: to_link_done
-- Including those of removed nodes.
DELETE FROM to_link WHERE id = ANY (ints(:ids))
  OR NOT EXISTS (SELECT 1 FROM nodes WHERE key = to_link.node)

-- name: to_link_put
INSERT INTO to_link (node) SELECT unnest(ints(:nodes))

-- name: links_drop
DELETE FROM found_mentions WHERE node = ANY (ints(:nodes))

-- name: nodes_reopen
UPDATE nodes SET closed_at = NULL, closed_reason = NULL WHERE key = ANY (ints(:nodes))

-- name: history_forget
-- A state between two statements of one commit is never visible in the past.
DELETE FROM history WHERE tbl = 'nodes' AND seq = :commit AND made = :commit AND row = ANY (texts(:nodes))

-- name: past_altered
-- Past rows that today's indexes do not hold. Only rows replaced or removed since can be among them.
SELECT p.key, p.content, p.speaker, p.tags, p.space
FROM (SELECT row::bigint AS key, before ->> 'content' AS content, before ->> 'speaker' AS speaker, before ->> 'tags' AS tags,
    (before ->> 'space')::bigint AS space
  FROM main.history WHERE tbl = 'nodes' AND seq > as_of() AND made <= as_of()) p LEFT JOIN main.nodes n ON n.key = p.key
WHERE n.key IS NULL OR (n.content, n.speaker, n.tags, n.space) IS DISTINCT FROM (p.content, p.speaker, p.tags, p.space)

-- name: past_links_table
CREATE TEMP TABLE past_links (node bigint, entity bigint, PRIMARY KEY (node, entity)) ON COMMIT DROP

-- name: past_altered_table
CREATE TEMP TABLE past_altered (node bigint PRIMARY KEY) ON COMMIT DROP

-- name: past_altered_insert
INSERT INTO past_altered VALUES (?) ON CONFLICT DO NOTHING

-- name: past_renamed_table
CREATE TEMP TABLE past_renamed (entity bigint PRIMARY KEY) ON COMMIT DROP

-- name: past_renamed_fill
-- Past entities whose names have changed since, and those that shared a name with others then or share it now: who a
-- name stands for depends on all that have it.
WITH changed AS (
  SELECT * FROM (SELECT space, folded, entity FROM aliases EXCEPT SELECT space, folded, entity FROM main.aliases)
  UNION ALL
  SELECT * FROM (SELECT space, folded, entity FROM main.aliases EXCEPT SELECT space, folded, entity FROM aliases))
INSERT INTO past_renamed SELECT entity FROM (SELECT entity FROM changed
  UNION SELECT a.entity FROM aliases a JOIN changed c ON c.space = a.space AND c.folded = a.folded)
WHERE entity IN (SELECT key FROM entities)

-- name: past_link_insert
INSERT INTO past_links VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: past_renamed_names
SELECT space, alias, entity FROM aliases WHERE entity IN (SELECT entity FROM past_renamed)

-- name: past_renamed_relations
-- Past relations of the owner to these entities, by which memories may mention them ("my boss").
SELECT space, predicate, target FROM relations WHERE source IS NULL AND target IN (SELECT entity FROM past_renamed)

-- name: past_relations_changed
-- Past relations of the owner that differ from today's.
WITH then_said AS (SELECT r.space AS space, r.predicate AS predicate, r.target, r.valid_from, r.valid_until, r.closed_at,
    e.closed_at, e.merged_into
  FROM relations r JOIN entities e ON e.key = r.target WHERE r.source IS NULL),
said AS (SELECT r.space AS space, r.predicate AS predicate, r.target, r.valid_from, r.valid_until, r.closed_at,
    e.closed_at, e.merged_into
  FROM main.relations r JOIN main.entities e ON e.key = r.target WHERE r.source IS NULL)
SELECT DISTINCT space, predicate FROM (SELECT space, predicate FROM (SELECT * FROM then_said EXCEPT SELECT * FROM said)
  UNION ALL SELECT space, predicate FROM (SELECT * FROM said EXCEPT SELECT * FROM then_said))

-- name: past_links_view
CREATE TEMP VIEW found_mentions AS
  SELECT node, entity FROM main.found_mentions AS f
  WHERE NOT EXISTS (SELECT 1 FROM past_altered a WHERE a.node = f.node)
    AND NOT EXISTS (SELECT 1 FROM past_renamed r WHERE r.entity = f.entity)
    AND f.node IN (SELECT key FROM nodes) AND f.entity IN (SELECT key FROM entities)
  UNION ALL SELECT node, entity FROM past_links

-- name: past_closed_since
-- The given nodes that are closed today, and so are not in the index of live nodes.
SELECT key FROM main.nodes WHERE key = ANY (ints(:keys)) AND closed_at IS NOT NULL

-- name: past_counts_view
-- How often an entity was named; computed here, because the stored count is today's.
CREATE TEMP VIEW entity_counts AS
  SELECT x.entity AS entity, count(*) FILTER (WHERE n.closed_at IS NULL) AS nodes, min(n.event_time) AS first_at,
    max(n.event_time) AS last_at
  FROM (SELECT node, entity FROM subjects UNION SELECT node, entity FROM found_mentions) AS x
    JOIN nodes AS n ON n.key = x.node
  GROUP BY x.entity
