-- name: words_sources
-- The columns from which the words of a node are derived.
SELECT key, space, shelf, content, tags, speaker, source_role, session, event_time, closed_at IS NULL FROM nodes
WHERE key = ANY (ints(:keys)) ORDER BY key

-- name: words_put
INSERT INTO words VALUES (?1, ?2, ?3, ?4, ?5, labelled(?6))
ON CONFLICT (node) DO UPDATE SET space = excluded.space, shelf = excluded.shelf, is_live = excluded.is_live,
  line = excluded.line, terms = excluded.terms

-- name: traits_put
INSERT INTO traits VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (node) DO UPDATE SET space = excluded.space, session = excluded.session, event_time = excluded.event_time,
  speaker = excluded.speaker, traits = excluded.traits

-- name: slots_drop
DELETE FROM slots WHERE node = ANY (ints(:keys))

-- name: slots_put
INSERT INTO slots SELECT ?1, ?2, coalesce((SELECT string_agg(entity::text, ',' ORDER BY entity) FROM subjects
  WHERE node = ?1), ''), ?3

-- name: nodes_all
SELECT key FROM nodes ORDER BY key

-- name: nodes_following
SELECT key FROM nodes WHERE key > :after ORDER BY key LIMIT :most

-- name: words_stray
SELECT (SELECT count(*) FROM traits t WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.key = t.node))
  + (SELECT count(*) FROM slots s WHERE NOT EXISTS (SELECT 1 FROM live_nodes n WHERE n.key = s.node AND n.shelf = 'k'))

-- name: words_held
SELECT w.node, w.space, w.shelf, w.is_live, CASE WHEN w.is_live THEN coalesce(s.line, '') END,
  array_to_string(w.terms, ' '), t.session, t.event_time, t.speaker, t.traits
FROM words w JOIN traits t ON t.node = w.node LEFT JOIN slots s ON s.node = w.node WHERE w.node = ANY (ints(:keys))

-- name: tags_occurring
SELECT DISTINCT tags FROM nodes WHERE space = ANY (ints(:spaces)) AND tags != '[]'

-- name: attributes_occurring
SELECT DISTINCT attributes FROM nodes WHERE space = ANY (ints(:spaces)) AND attributes != '{}'
