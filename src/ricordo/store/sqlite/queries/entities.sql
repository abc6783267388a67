-- name: entity_by_alias
-- Live entities of these spaces that go by one of the folded names. Mentions are counted past their view: SQLite would
-- walk both of its tables for each entity.
SELECT e.key, e.id, e.type, e.canonical_name, e.relation, e.summary, e.protected, e.attributes, e.first_seen,
  e.last_updated, s.owner, s.chat,
  (SELECT json_group_array(alias) FROM aliases WHERE entity = e.key AND alias != e.canonical_name),
  (SELECT count(*) FROM (
    SELECT node FROM subjects WHERE entity = e.key UNION SELECT node FROM found_mentions WHERE entity = e.key))
FROM live_entities e JOIN spaces s ON s.key = e.space
WHERE e.key IN (SELECT entity FROM aliases WHERE space IN (SELECT value FROM json_each(:spaces))
  AND folded IN (SELECT value FROM json_each(:names)))
ORDER BY e.key

-- name: alias_hits
-- Which of these folded names are known in a space, and whose they are.
SELECT folded, entity FROM aliases WHERE space = :space AND folded IN (SELECT value FROM json_each(:names))

-- name: aliases_since
-- Names that were learnt after a commit: older memories have not been searched for them yet.
SELECT space, folded, alias, entity, commit_seq FROM aliases WHERE commit_seq > :seq ORDER BY commit_seq

-- name: entity_insert
INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: entity_place
SELECT key FROM entities WHERE id = :id

-- name: entity_last_key
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'entities'), 0)

-- name: alias_insert
INSERT INTO aliases VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: subject_insert
INSERT INTO subjects VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: found_mention_insert
-- Either may have gone since they were read.
INSERT INTO found_mentions SELECT n.key, e.key FROM nodes n, entities e WHERE n.key = :node AND e.key = :entity
ON CONFLICT DO NOTHING

-- name: unlinked
-- Nodes whose names have not been looked for, oldest first, in spaces that know any names.
SELECT n.key, n.space, n.content, n.speaker FROM nodes n
WHERE n.space = :space AND n.key > coalesce((SELECT through FROM linked WHERE space = :space), 0)
ORDER BY n.key LIMIT :most

-- name: linked_through
INSERT INTO linked VALUES (:space, :through) ON CONFLICT DO UPDATE SET through = max(through, excluded.through)

-- name: spaces_with_aliases
SELECT DISTINCT space FROM aliases
