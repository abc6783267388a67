-- name: count_types
SELECT type, count(*) FROM live_nodes WHERE space = ANY (ints(:spaces)) GROUP BY type ORDER BY type

-- name: count_categories
SELECT category, count(*) FROM live_nodes
WHERE space = ANY (ints(:spaces)) AND category IS NOT NULL GROUP BY category ORDER BY category

-- name: count_closed
SELECT count(*) FROM nodes WHERE space = ANY (ints(:spaces)) AND closed_at IS NOT NULL
  AND closed_reason != 'quarantined'

-- name: count_edges
-- Temporal edges are counted from sessions: a session of n episodes has n - 1.
SELECT e.relation_type, count(*) FROM edges e JOIN nodes n ON n.key = e.source
WHERE e.closed_at IS NULL AND n.space = ANY (ints(:spaces)) GROUP BY e.relation_type
UNION ALL
SELECT 'temporal', count(*) - count(DISTINCT session) FROM live_nodes
WHERE space = ANY (ints(:spaces)) AND type = 'episodic' AND session IS NOT NULL
ORDER BY 1

-- name: count_entities
SELECT count(*) FROM live_entities WHERE space = ANY (ints(:spaces))

-- name: count_sessions
-- Without documents, and without sessions that have quarantined messages only.
SELECT count(*), count(*) FILTER (WHERE consolidated_at IS NULL) FROM sessions s WHERE space = ANY (ints(:spaces))
  AND substr(session_id, 1, 9) != 'document:'
  AND (EXISTS (SELECT 1 FROM nodes n WHERE n.session = s.key AND n.closed_reason IS DISTINCT FROM 'quarantined')
    OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.session = s.key))

-- name: count_commits
SELECT count(*) FROM commits WHERE space = ANY (ints(:spaces))

-- name: count_embedded
SELECT count(*) FROM embeddings e JOIN live_nodes n ON n.key = e.node
WHERE e.model = :model AND e.space = ANY (ints(:spaces))

-- name: event_span
SELECT min(event_time), max(event_time) FROM live_nodes WHERE space = ANY (ints(:spaces))

-- name: own_bytes
-- The size of a caller's texts.
SELECT coalesce(sum(octet_length(content) + octet_length(tags) + octet_length(attributes)), 0) FROM nodes
WHERE space = ANY (ints(:spaces))

-- name: store_bytes
SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'

-- name: turns_changed
UPDATE meta SET value = (value::bigint + 1)::text WHERE name = 'turns_changed'

-- name: roles_seeing
-- The roles that see the rows of all owners; whether the present one is or has such a role; and whether it may take it. The
-- last is the owner of the tables.
SELECT r.rolname, pg_has_role(current_user, r.oid, 'USAGE') OR me.rolsuper OR me.rolbypassrls, pg_has_role(current_user, r.oid, 'SET')
FROM pg_policy p CROSS JOIN LATERAL unnest(p.polroles) u JOIN pg_roles r ON r.oid = u JOIN pg_class c ON c.oid = p.polrelid
  JOIN pg_roles me ON me.rolname = current_user
WHERE p.polname = 'everything' AND p.polrelid = 'main.spaces'::regclass ORDER BY r.oid = c.relowner, r.rolname
