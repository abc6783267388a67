-- name: to_erase_done
DELETE FROM to_erase WHERE erasing = :erasing AND tbl = :table AND row = ANY (ints(:rows))

-- name: erased_id_put
INSERT INTO erased_ids VALUES (?, ?, ?) ON CONFLICT (space, id) DO UPDATE SET at = excluded.at

-- name: erased_id_at
SELECT max(at) FROM erased_ids WHERE id = :id AND space = ANY (ints(:spaces))

-- name: commits_erasing
-- The given commits that are erasures.
SELECT commit_seq FROM erasures WHERE commit_seq = ANY (ints(:seqs))

-- name: words_erase
-- The reason a person gave for a change. An undo names only a number. An import names its file as long as a memory of it is left.
INSERT INTO erased SELECT seq, 'words', bare(seal), NULL, :erasing FROM commits
WHERE seq = ANY (ints(:seqs)) AND length(seal) > 16 AND reason != origin AND origin != 'undo'
  AND (origin != 'import' OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.commit_seq = commits.seq))
ON CONFLICT DO NOTHING

-- name: imports_naming_files
-- The imports of a space, and those that some memories come from.
SELECT seq, reason FROM commits WHERE origin = 'import' AND reason NOT IN ('', origin) AND (space = :space
  OR seq IN (SELECT commit_seq FROM nodes WHERE key = ANY (ints(:nodes))))

-- name: import_words_erase
INSERT INTO erased SELECT seq, 'words', bare(seal), NULL, :erasing FROM commits
WHERE seq = ANY (ints(:seqs)) AND length(seal) > 16 ON CONFLICT DO NOTHING

-- name: words_blank
UPDATE commits SET reason = '', seal = bare(seal)
WHERE seq = ANY (ints(:seqs)) AND length(seal) > 16
  AND EXISTS (SELECT 1 FROM erased e WHERE e.made = seq AND e.what = 'words')

-- name: owner_words_erase
INSERT INTO erased SELECT seq, 'words', bare(seal), NULL, :erasing FROM commits
WHERE (space = :space OR actor IN (:owner, :owner || ' (agent)')) AND length(seal) > 16 ON CONFLICT DO NOTHING

-- name: owner_words_blank
UPDATE commits SET actor = '', reason = '', seal = bare(seal)
WHERE (space = :space OR actor IN (:owner, :owner || ' (agent)')) AND length(seal) > 16

-- name: owner_unnamed
-- Commits refer to the tenant, so its row stays, under a name that no tenant can have (a tenant has an owner or a chat).
UPDATE spaces SET owner = 'erased', chat = 'erased ' || key::text WHERE key = :space

-- name: packs_erase
SELECT 1 WHERE FALSE

-- name: proposals_erase
-- Stored replays may contain erased text; they can be run again. Others keep theirs, unless a replay ran during the erasure.
DELETE FROM proposals WHERE space = ANY (ints(:spaces)) OR at >= :at

-- name: floors_erase
-- Calibrations that used erased memories; they are computed again. They hold no text, and those of others stay.
DELETE FROM floors WHERE translate(spaces, '[] ', '{}')::bigint[] && ints(:spaces)

-- name: centres_erase
DELETE FROM centres WHERE space = ANY (ints(:spaces))

-- name: history_images
-- All versions of some rows of a table.
SELECT made, row, seq, before FROM history WHERE tbl = :table AND row = ANY (texts(:rows))

-- name: history_erase_rows
DELETE FROM history WHERE tbl = :table AND row = ANY (texts(:rows))

-- name: erase_ids
SELECT key, id, space FROM nodes WHERE key = ANY (ints(:nodes))

-- name: spans_at_nodes
-- The entities whose time span begins or ends with one of some memories.
SELECT DISTINCT c.entity FROM mentions m JOIN nodes n ON n.key = m.node JOIN entity_counts c ON c.entity = m.entity
WHERE m.node = ANY (ints(:nodes)) AND (n.event_time <= c.first_at OR n.event_time >= c.last_at)

-- name: spans_renew
UPDATE entity_counts SET first_at = s.first_at, last_at = s.last_at
FROM (SELECT m.entity, min(n.event_time) AS first_at, max(n.event_time) AS last_at
  FROM mentions m JOIN nodes n ON n.key = m.node
  WHERE m.entity = ANY (ints(:entities)) GROUP BY m.entity) AS s
WHERE entity_counts.entity = s.entity

-- name: spans_erase
-- No memory names these any more.
DELETE FROM entity_counts WHERE entity = ANY (ints(:entities))
  AND NOT EXISTS (SELECT 1 FROM mentions m WHERE m.entity = entity_counts.entity)

-- name: erase_older
-- The versions that a memory replaced, step by step.
WITH RECURSIVE older (node, depth) AS (
  SELECT CAST(:key AS bigint), 0
  UNION
  SELECT e.target, older.depth + 1 FROM older JOIN edges e ON e.source = older.node
  WHERE e.relation_type = 'supersedes' AND older.depth < 100)
SELECT DISTINCT node FROM older

-- name: erase_in_session
SELECT n.key FROM nodes n WHERE n.session = ANY (ints(:sessions))

-- name: erase_sessions
-- The sessions with an id that the caller can see.
SELECT key FROM sessions WHERE session_id = :session AND space = ANY (ints(:spaces))

-- name: erase_derived
-- Memories derived from some of these; the number of memories each rests on; how many of those are among these, where the
-- summary of a conversation counts as resting on each alone; and the verb that created it.
SELECT d.source, (SELECT count(*) FROM edges a WHERE a.source = d.source AND a.relation_type = 'derived_from'),
  CASE WHEN n.category = 'summary' AND n.session IS NOT NULL THEN
    (SELECT count(*) FROM edges a WHERE a.source = d.source AND a.relation_type = 'derived_from') ELSE count(*) END,
  (SELECT origin FROM commits WHERE seq = coalesce((SELECT min(h.made) FROM history h
    WHERE h.tbl = 'nodes' AND h.row = n.key::text), n.commit_seq)), n.id
FROM edges d JOIN nodes n ON n.key = d.source
WHERE d.relation_type = 'derived_from' AND d.target = ANY (ints(:nodes))
GROUP BY d.source, n.key, n.category, n.session, n.commit_seq, n.id ORDER BY d.source

-- name: erase_proposed
-- What was proposed about these memories.
SELECT h.key FROM reviews r JOIN nodes h ON h.key = r.newer
WHERE r.kind = 'quarantine' AND h.closed_reason = 'quarantined'
  AND r.space IN (SELECT space FROM nodes WHERE key = ANY (ints(:nodes)))
  AND h.attributes::jsonb #>> '{proposes,id}' IN (SELECT id FROM nodes WHERE key = ANY (ints(:nodes)))
ORDER BY h.key

-- name: erase_resting
-- The other memories that these memories were derived from.
SELECT DISTINCT n.id FROM edges d JOIN nodes n ON n.key = d.target
WHERE d.relation_type = 'derived_from' AND d.source = ANY (ints(:nodes))
  AND d.target <> ALL (ints(:nodes))

-- name: erase_relations
-- Relations with no other evidence than these memories, or with these entities at either end.
SELECT r.key, r.id FROM relations r
WHERE r.source = ANY (ints(:entities)) OR r.target = ANY (ints(:entities))
  OR (r.evidence != '[]' AND NOT EXISTS (SELECT 1 FROM unnest(texts(r.evidence)) said
    WHERE said NOT IN (SELECT n.id FROM nodes n WHERE n.key = ANY (ints(:nodes)))))
ORDER BY r.key

-- name: erase_forsaken
-- Entities that only these memories mention and that were not added explicitly.
SELECT e.key FROM entities e WHERE e.protected = 0
  AND e.key IN (SELECT entity FROM subjects WHERE node = ANY (ints(:nodes))
    UNION SELECT entity FROM found_mentions WHERE node = ANY (ints(:nodes))
    UNION SELECT target FROM relations WHERE key = ANY (ints(:relations))
    UNION SELECT source FROM relations WHERE key = ANY (ints(:relations)))
  AND NOT EXISTS (SELECT 1 FROM subjects s WHERE s.entity = e.key
    AND s.node <> ALL (ints(:nodes)))
  AND NOT EXISTS (SELECT 1 FROM found_mentions m WHERE m.entity = e.key
    AND m.node <> ALL (ints(:nodes)))
  AND NOT EXISTS (SELECT 1 FROM relations r WHERE (r.target = e.key OR r.source = e.key)
    AND r.key <> ALL (ints(:relations)))
  AND NOT EXISTS (SELECT 1 FROM entities m WHERE m.merged_into = e.key)
  AND coalesce((SELECT origin FROM commits WHERE seq = coalesce((SELECT min(h.made) FROM history h
    WHERE h.tbl = 'entities' AND h.row = e.key::text), e.commit_seq)), '') NOT IN ('add entity', 'relate', 'split')

-- name: erase_members
-- An entity with all entities merged into it.
WITH RECURSIVE one (key, depth) AS (
  SELECT CAST(:entity AS bigint), 0
  UNION
  SELECT e.key, one.depth + 1 FROM one JOIN entities e ON e.merged_into = one.key WHERE one.depth < 100)
SELECT key FROM one

-- name: erase_names
-- The names of some entities, and whether another entity has the same name.
SELECT a.space, a.alias, EXISTS (SELECT 1 FROM aliases b JOIN live_entities e ON e.key = b.entity
  WHERE b.space = a.space AND b.folded = a.folded AND b.entity <> ALL (ints(:entities)))
FROM aliases a WHERE a.entity = ANY (ints(:entities))

-- name: erase_naming
SELECT node FROM subjects WHERE entity = ANY (ints(:entities))
UNION SELECT node FROM found_mentions WHERE entity = ANY (ints(:entities))

-- name: erase_texts
-- All text stored for the memories of a tenant.
SELECT key, content || chr(10) || coalesce(speaker, '') || chr(10) || tags || chr(10) || attributes
FROM nodes WHERE space = :space ORDER BY key

-- name: erase_emptied
-- Sessions that are empty without these memories.
SELECT DISTINCT n.session FROM nodes n WHERE n.key = ANY (ints(:nodes)) AND n.session IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM nodes o WHERE o.session = n.session AND o.key <> ALL (ints(:nodes)))

-- name: erase_summarised
-- Sessions and entities whose summary used these memories.
SELECT 'sessions', s.key FROM sessions s WHERE s.summary IS NOT NULL
  AND s.key IN (SELECT session FROM nodes WHERE key = ANY (ints(:nodes)))
UNION ALL
SELECT 'entities', e.key FROM entities e WHERE e.summary IS NOT NULL
  AND e.key IN (SELECT entity FROM subjects WHERE node = ANY (ints(:nodes))
    UNION SELECT entity FROM found_mentions WHERE node = ANY (ints(:nodes)))

-- name: erase_rows_listed
-- The rows as the report may show them: (kind, id) of memories, entities, relations and sessions.
SELECT * FROM (
  SELECT type, id FROM nodes WHERE key = ANY (ints(:nodes)) ORDER BY key)
UNION ALL SELECT 'entity', id FROM entities WHERE key = ANY (ints(:entities))
UNION ALL SELECT 'relation', id FROM relations WHERE key = ANY (ints(:relations))
UNION ALL SELECT 'session', session_id FROM sessions WHERE key = ANY (ints(:sessions))

-- name: erase_entities_needed
-- Of the entities marked for erasure, those mentioned by memories written since.
SELECT k FROM unnest(ints(:keys)) AS k WHERE EXISTS (SELECT 1 FROM subjects WHERE entity = k)
  OR EXISTS (SELECT 1 FROM relations WHERE target = k OR source = k)
  OR EXISTS (SELECT 1 FROM entities WHERE merged_into = k)

-- name: erase_sessions_needed
-- Of the sessions marked for erasure, those with messages written since.
SELECT k FROM unnest(ints(:keys)) AS k WHERE EXISTS (SELECT 1 FROM nodes WHERE session = k)
