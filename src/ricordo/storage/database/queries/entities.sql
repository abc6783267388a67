-- name: entities_by_key
-- Live entities, oldest first. Names and counts include those of all entities merged into it; the relation to the owner
-- comes from current relations. `+` makes SQLite search by target, which has few relations, instead of by owner.
SELECT e.key, e.id, e.type, e.canonical_name,
  (SELECT group_concat(predicate, ', ') FROM (SELECT predicate FROM relations r
    WHERE r.target IN (SELECT key FROM entities WHERE key = e.key OR merged_into = e.key) AND +r.source IS NULL
      AND +r.space = e.space AND r.closed_at IS NULL AND r.valid_until IS NULL
    GROUP BY predicate ORDER BY min(r.key))),
  e.summary, e.protected, e.attributes, e.first_seen, e.last_updated, e.closed_at,
  (SELECT id FROM entities WHERE key = e.merged_into), s.owner, s.chat,
  (SELECT json_group_array(alias) FROM (SELECT alias, min(entity) AS whose, folded FROM aliases
    WHERE entity IN (SELECT key FROM entities WHERE key = e.key OR merged_into = e.key) AND alias != e.canonical_name
    GROUP BY alias ORDER BY whose, folded, alias)),
  (SELECT coalesce(sum(nodes), 0) FROM entity_counts
    WHERE entity IN (SELECT key FROM entities WHERE key = e.key OR merged_into = e.key))
FROM entities e CROSS JOIN spaces s ON s.key = e.space
WHERE e.key IN (SELECT value FROM json_each(:keys)) AND e.space IN (SELECT value FROM json_each(:spaces))
ORDER BY e.key

-- name: names_like
-- Names that match by folded form or by sound, and the entity each belongs to now.
SELECT a.alias, coalesce(e.merged_into, e.key) FROM aliases a JOIN entities e ON e.key = a.entity
WHERE a.space IN (SELECT value FROM json_each(:spaces)) AND a.folded IN (SELECT value FROM json_each(:keys))
  AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)
UNION
SELECT a.alias, coalesce(e.merged_into, e.key) FROM aliases a JOIN entities e ON e.key = a.entity
WHERE a.space IN (SELECT value FROM json_each(:spaces)) AND a.sound IN (SELECT value FROM json_each(:sounds))
  AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)

-- name: names_all
-- All names, each with the entity that has it now and the attributes of the entity it was given to.
SELECT a.alias, coalesce(e.merged_into, e.key), e.attributes FROM aliases a JOIN entities e ON e.key = a.entity
WHERE a.space IN (SELECT value FROM json_each(:spaces)) AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)

-- name: related_by
-- Two entities, as they are now, for each open relation of some kinds between them.
SELECT coalesce(o.merged_into, o.key), coalesce(e.merged_into, e.key)
FROM relations r JOIN entities o ON o.key = r.source JOIN entities e ON e.key = r.target
WHERE r.space IN (SELECT value FROM json_each(:spaces)) AND r.predicate IN (SELECT value FROM json_each(:predicates))
  AND r.closed_at IS NULL AND r.valid_until IS NULL
  AND coalesce(o.merged_into, o.key) != coalesce(e.merged_into, e.key)

-- name: names_longer
-- The current people with a name of several words that begins with one of some words. "!" is the character after the
-- space. CROSS JOIN keeps the order: the aliases are looked up, not walked.
SELECT DISTINCT w.value, coalesce(e.merged_into, e.key)
FROM json_each(:spaces) s CROSS JOIN json_each(:words) w
CROSS JOIN aliases a ON a.space = s.value AND a.folded >= w.value || ' ' AND a.folded < w.value || '!'
CROSS JOIN entities e ON e.key = a.entity
WHERE e.type = 'person' AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)

-- name: names_any
SELECT EXISTS (SELECT 1 FROM aliases WHERE space IN (SELECT value FROM json_each(:spaces)))

-- name: names_known
-- The same for names found in texts of one tenant: matching key, the entity with the name, and its current entity.
SELECT a.folded, a.alias, e.key, coalesce(e.merged_into, e.key) FROM aliases a JOIN entities e ON e.key = a.entity
WHERE a.space = :space AND a.folded IN (SELECT value FROM json_each(:keys))
  AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)
UNION
SELECT a.sound, a.alias, e.key, coalesce(e.merged_into, e.key) FROM aliases a JOIN entities e ON e.key = a.entity
WHERE a.space = :space AND a.sound IN (SELECT value FROM json_each(:sounds))
  AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)

-- name: entity_key_by_id
-- The live entity of an id, or the one it was merged into.
SELECT coalesce(merged_into, key) FROM entities
WHERE id = :id AND space IN (SELECT value FROM json_each(:spaces)) AND (closed_at IS NULL OR merged_into IS NOT NULL)

-- name: entity_members
-- An entity and all entities merged into it, oldest merge first.
SELECT key FROM entities WHERE key = :entity
UNION ALL
SELECT key FROM entities WHERE merged_into = :entity

-- name: people_listed
-- Most often named first.
SELECT e.key FROM live_entities e WHERE e.space IN (SELECT value FROM json_each(:spaces)) AND e.type = 'person'
ORDER BY (SELECT coalesce(sum(nodes), 0) FROM entity_counts
  WHERE entity IN (SELECT key FROM entities WHERE key = e.key OR merged_into = e.key)) DESC, e.key
LIMIT :most

-- name: entity_span
-- Time span of all memories that ever named an entity.
SELECT min(first_at), max(last_at) FROM entity_counts
WHERE entity IN (SELECT key FROM entities WHERE key = :entity OR merged_into = :entity)

-- name: relations_of_owner
-- Relations of an entity to the owner of a tenant, newest first, including ended ones.
SELECT r.key, r.id, r.predicate, NULL, NULL, t.id, t.canonical_name, r.valid_from, r.valid_until, r.evidence, r.created_at,
  s.owner, s.chat
FROM relations r JOIN entities o ON o.key = r.target JOIN entities t ON t.key = coalesce(o.merged_into, o.key)
  JOIN spaces s ON s.key = r.space
WHERE r.space = :space AND r.source IS NULL AND r.predicate = :predicate AND r.closed_at IS NULL AND t.closed_at IS NULL
ORDER BY r.key DESC

-- name: related_to_owner
-- The visible entities that are now in a relation to the owner of a tenant, oldest first.
SELECT DISTINCT t.key FROM relations r JOIN entities o ON o.key = r.target
  JOIN entities t ON t.key = coalesce(o.merged_into, o.key)
WHERE r.space = :space AND r.source IS NULL AND r.predicate = :predicate AND r.closed_at IS NULL AND r.valid_until IS NULL
  AND t.closed_at IS NULL AND t.space IN (SELECT value FROM json_each(:spaces))
ORDER BY t.key

-- name: relations_of_entity
-- Relations of an entity in both directions, newest first, including ended ones.
SELECT r.key, r.id, r.predicate, x.id, x.canonical_name, t.id, t.canonical_name, r.valid_from, r.valid_until, r.evidence,
  r.created_at, s.owner, s.chat
FROM relations r JOIN entities o ON o.key = r.target JOIN entities t ON t.key = coalesce(o.merged_into, o.key)
  LEFT JOIN entities p ON p.key = r.source LEFT JOIN entities x ON x.key = coalesce(p.merged_into, p.key)
  JOIN spaces s ON s.key = r.space
WHERE r.closed_at IS NULL AND t.closed_at IS NULL AND x.key IS NOT t.key AND r.key IN (
  SELECT key FROM relations WHERE target IN (SELECT key FROM entities WHERE key = :entity OR merged_into = :entity)
  UNION
  SELECT key FROM relations WHERE source IN (SELECT key FROM entities WHERE key = :entity OR merged_into = :entity))
ORDER BY r.key DESC

-- name: relations_in_space
-- Relations to the owner of a tenant, for resolving "my wife"; the latest statement comes last.
SELECT r.predicate, o.key, coalesce(o.merged_into, o.key), r.valid_from, r.valid_until
FROM relations r JOIN entities o ON o.key = r.target
WHERE r.space = :space AND r.source IS NULL AND r.closed_at IS NULL
  AND (o.closed_at IS NULL OR o.merged_into IS NOT NULL)
ORDER BY r.key

-- name: relations_to_link
SELECT space, predicate, max(id) FROM relations_to_link GROUP BY space, predicate ORDER BY 3

-- name: relations_to_link_done
DELETE FROM relations_to_link WHERE id <= :through

-- name: subjects_latest
-- The latest live knowledge about one entity, newest first. The walk along subjects_back is bounded, because an entity may
-- have a hundred thousand facts that are all closed.
SELECT n.key, n.type, n.confidence, n.score FROM (SELECT node FROM subjects WHERE entity = :entity ORDER BY node DESC LIMIT :walk) AS walked
  CROSS JOIN live_nodes n ON n.key = walked.node
WHERE n.type != 'episodic' AND (n.expires_at IS NULL OR n.expires_at > :now) ORDER BY n.key DESC LIMIT :most

-- name: mentions_latest
-- The latest live memories that name one entity without being about it, bounded in the same way.
SELECT n.key, n.type, n.confidence, n.score FROM (SELECT node FROM found_mentions WHERE entity = :entity ORDER BY node DESC LIMIT :walk) AS walked
  CROSS JOIN live_nodes n ON n.key = walked.node
WHERE NOT EXISTS (SELECT 1 FROM subjects s WHERE s.node = walked.node AND s.entity = :entity)
  AND (n.expires_at IS NULL OR n.expires_at > :now)
ORDER BY n.key DESC LIMIT :most

-- name: named_together
-- Other entities that these memories name, most frequent first.
SELECT e.canonical_name, e.type, count(DISTINCT walked.node) FROM (
    SELECT node, entity FROM subjects WHERE node IN (SELECT value FROM json_each(:nodes))
    UNION SELECT node, entity FROM found_mentions WHERE node IN (SELECT value FROM json_each(:nodes))) AS walked
  JOIN entities o ON o.key = walked.entity JOIN entities e ON e.key = coalesce(o.merged_into, o.key)
WHERE e.key != :entity AND e.closed_at IS NULL GROUP BY e.key ORDER BY 3 DESC, e.key LIMIT :most

-- name: subjects_of_entity
-- The memories about an entity, including closed ones, each with the name it used. For a split, which is rare and may scan.
SELECT n.id, x.name, n.content FROM subjects x JOIN nodes n ON n.key = x.node WHERE x.entity = :entity

-- name: mentions_of_entity
SELECT n.key, n.content, n.speaker FROM found_mentions x JOIN nodes n ON n.key = x.node WHERE x.entity = :entity

-- name: aliases_since
-- Names learnt after a commit: older memories have not been searched for them yet.
SELECT space, folded, alias, entity, commit_seq FROM aliases WHERE commit_seq > :seq ORDER BY commit_seq

-- name: aliases_of_entity
SELECT alias FROM aliases WHERE entity = :entity

-- name: alias_space
SELECT space FROM aliases WHERE entity = :entity AND alias = :alias

-- name: entity_insert
INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: entity_update
UPDATE entities SET (id, space, type, canonical_name, summary, protected, attributes, first_seen, last_updated, closed_at,
  merged_into, commit_seq, seal) = (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
WHERE key = ?1

-- name: entity_place
SELECT key FROM entities WHERE id = :id

-- name: entity_last_key
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'entities'), 0)

-- name: alias_insert
INSERT INTO aliases VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: alias_delete
DELETE FROM aliases WHERE space = ? AND folded = ? AND entity = ? AND alias = ?

-- name: relation_insert
INSERT INTO relations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: relation_update
UPDATE relations SET (id, space, source, predicate, target, valid_from, valid_until, evidence, created_at, closed_at,
  commit_seq, seal) = (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
WHERE key = ?1

-- name: relation_last_key
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'relations'), 0)

-- name: subject_insert
INSERT INTO subjects VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: subject_delete
DELETE FROM subjects WHERE node = ? AND entity = ?

-- name: subject_name
SELECT name FROM subjects WHERE node = :node AND entity = :entity

-- name: found_mention_insert
-- Either row may have been removed since it was read.
INSERT INTO found_mentions SELECT n.key, e.key FROM nodes n, entities e WHERE n.key = ?1 AND e.key = ?2
ON CONFLICT DO NOTHING

-- name: found_mention_delete
DELETE FROM found_mentions WHERE node = ?1 AND entity = ?2

-- name: unlinked
-- Nodes not yet searched for names, oldest first, in tenants that know any names.
SELECT n.key, n.content, n.speaker, n.source_role, n.source_type, n.event_time FROM nodes n
WHERE n.space = :space AND n.key > coalesce((SELECT through FROM linked WHERE space = :space), 0)
ORDER BY n.key LIMIT :most

-- name: linked_through
INSERT INTO linked VALUES (:space, :through) ON CONFLICT DO UPDATE SET through = max(through, excluded.through)

-- name: spaces_with_aliases
SELECT DISTINCT space FROM aliases

-- name: space_owner
SELECT owner, chat FROM spaces WHERE key = :space
