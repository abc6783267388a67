-- name: entities_by_key
-- Live entities, oldest first. Names and counts include those of all entities merged into it; the relation to the owner
-- comes from current relations. `+` makes SQLite search by target, which has few relations, instead of by owner.
SELECT e.key, e.id, e.type, e.canonical_name,
  (SELECT string_agg(p.predicate, ', ' ORDER BY p.first) FROM (SELECT r.predicate, min(r.key) AS first FROM relations r
    WHERE r.target IN (SELECT key FROM entities WHERE key = e.key OR merged_into = e.key) AND r.source IS NULL
      AND r.space = e.space AND r.closed_at IS NULL AND r.valid_until IS NULL GROUP BY r.predicate) p),
  e.summary, e.protected, e.attributes, e.first_seen, e.last_updated, e.closed_at,
  (SELECT id FROM entities WHERE key = e.merged_into), s.owner, s.chat,
  (SELECT coalesce(json_agg(a.alias ORDER BY a.entity, a.folded, a.alias)::text, '[]') FROM (
    SELECT DISTINCT ON (alias) alias, entity, folded FROM aliases
    WHERE entity IN (SELECT key FROM entities WHERE key = e.key OR merged_into = e.key) AND alias != e.canonical_name ORDER BY alias, entity, folded) a),
  (SELECT coalesce(sum(nodes), 0) FROM entity_counts WHERE entity IN (SELECT key FROM entities WHERE key = e.key OR merged_into = e.key))
FROM entities e JOIN spaces s ON s.key = e.space
WHERE e.key = ANY (ints(:keys)) AND e.space = ANY (ints(:spaces))
ORDER BY e.key

-- name: names_like
-- Names that match by folded form or by sound, and the entity each belongs to now.
SELECT a.alias, coalesce(e.merged_into, e.key) FROM aliases a JOIN entities e ON e.key = a.entity
WHERE a.space = ANY (ints(:spaces)) AND a.folded = ANY (texts(:keys))
  AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)
UNION
SELECT a.alias, coalesce(e.merged_into, e.key) FROM aliases a JOIN entities e ON e.key = a.entity
WHERE a.space = ANY (ints(:spaces)) AND a.sound = ANY (texts(:sounds))
  AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)

-- name: names_all
-- All names, each with the entity that has it now and the attributes of the entity it was given to.
SELECT a.alias, coalesce(e.merged_into, e.key), e.attributes FROM aliases a JOIN entities e ON e.key = a.entity
WHERE a.space = ANY (ints(:spaces)) AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)

-- name: related_by
-- Two entities, as they are now, for each open relation of some kinds between them.
SELECT coalesce(o.merged_into, o.key), coalesce(e.merged_into, e.key)
FROM relations r JOIN entities o ON o.key = r.source JOIN entities e ON e.key = r.target
WHERE r.space = ANY (ints(:spaces)) AND r.predicate = ANY (texts(:predicates))
  AND r.closed_at IS NULL AND r.valid_until IS NULL
  AND coalesce(o.merged_into, o.key) != coalesce(e.merged_into, e.key)

-- name: names_longer
-- The current people with a name of several words that begins with one of some words. "!" is the character after the
-- space.
SELECT DISTINCT w.value, coalesce(e.merged_into, e.key)
FROM unnest(texts(:words)) AS w (value)
JOIN aliases a ON a.folded >= w.value || ' ' AND a.folded < w.value || '!' JOIN entities e ON e.key = a.entity
WHERE a.space = ANY (ints(:spaces)) AND e.type = 'person' AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)

-- name: names_any
SELECT EXISTS (SELECT 1 FROM aliases WHERE space = ANY (ints(:spaces)))

-- name: names_known
-- The same for names found in texts of one tenant: matching key, the entity with the name, and its current entity.
SELECT a.folded, a.alias, e.key, coalesce(e.merged_into, e.key) FROM aliases a JOIN entities e ON e.key = a.entity
WHERE a.space = :space AND a.folded = ANY (texts(:keys))
  AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)
UNION
SELECT a.sound, a.alias, e.key, coalesce(e.merged_into, e.key) FROM aliases a JOIN entities e ON e.key = a.entity
WHERE a.space = :space AND a.sound = ANY (texts(:sounds))
  AND (e.closed_at IS NULL OR e.merged_into IS NOT NULL)

-- name: entity_key_by_id
-- The live entity of an id, or the one it was merged into.
SELECT coalesce(merged_into, key) FROM entities
WHERE id = :id AND space = ANY (ints(:spaces)) AND (closed_at IS NULL OR merged_into IS NOT NULL)

-- name: people_listed
-- Most often named first.
SELECT e.key FROM live_entities e WHERE e.space = ANY (ints(:spaces)) AND e.type = 'person'
ORDER BY (SELECT coalesce(sum(nodes), 0) FROM entity_counts
  WHERE entity IN (SELECT key FROM entities WHERE key = e.key OR merged_into = e.key)) DESC, e.key
LIMIT :most

-- name: related_to_owner
-- The visible entities that are now in a relation to the owner of a tenant, oldest first.
SELECT DISTINCT t.key FROM relations r JOIN entities o ON o.key = r.target
  JOIN entities t ON t.key = coalesce(o.merged_into, o.key)
WHERE r.space = :space AND r.source IS NULL AND r.predicate = :predicate AND r.closed_at IS NULL AND r.valid_until IS NULL
  AND t.closed_at IS NULL AND t.space = ANY (ints(:spaces))
ORDER BY t.key

-- name: entities_named
-- The entities that a text may name, by their names or by relations to the owner of a tenant: each with all entities merged
-- into it, as `entity_members`, and what is near each of these, as `entity_near` but by column (shelves are single letters).
SELECT named.whole, m.key, array_agg(near.key) FILTER (WHERE near.key IS NOT NULL), string_agg(near.shelf, ''),
  array_agg(near.confidence), array_agg(near.score) FROM (
    SELECT coalesce(e.merged_into, e.key) AS whole FROM aliases a JOIN entities e ON e.key = a.entity
    WHERE a.space = ANY (ints(:spaces)) AND a.folded = ANY (texts(:keys))
    UNION SELECT coalesce(e.merged_into, e.key) FROM aliases a JOIN entities e ON e.key = a.entity
    WHERE a.space = ANY (ints(:spaces)) AND a.sound = ANY (texts(:sounds))
    UNION SELECT coalesce(e.merged_into, e.key) FROM unnest(texts(:words)) AS w (value)
    JOIN aliases a ON a.folded >= w.value || ' ' AND a.folded < w.value || '!' JOIN entities e ON e.key = a.entity
    WHERE a.space = ANY (ints(:spaces)) AND e.type = 'person'
    UNION SELECT coalesce(o.merged_into, o.key) FROM relations r JOIN entities o ON o.key = r.target
    WHERE r.space = :space AND r.source IS NULL AND r.predicate = ANY (texts(:predicates)) AND r.closed_at IS NULL
    LIMIT :most) AS named
  CROSS JOIN LATERAL (SELECT key FROM entities WHERE key = named.whole
    UNION ALL SELECT key FROM entities WHERE merged_into = named.whole) AS m
  LEFT JOIN LATERAL (SELECT n.key, n.shelf, n.confidence, n.score FROM (
      SELECT node FROM (SELECT node FROM subjects WHERE entity = m.key ORDER BY node DESC LIMIT :walk)
      UNION
      SELECT node FROM (SELECT node FROM found_mentions WHERE entity = m.key ORDER BY node DESC LIMIT :walk)) AS walked
    JOIN live_nodes n ON n.key = walked.node WHERE n.space = ANY (ints(:spaces))) AS near ON TRUE
GROUP BY named.whole, m.key ORDER BY named.whole, m.key != named.whole, m.key

-- name: entities_named_guarded
SELECT named.whole, m.key, array_agg(near.key) FILTER (WHERE near.key IS NOT NULL), string_agg(near.shelf, ''),
  array_agg(near.confidence), array_agg(near.score) FROM (
    SELECT coalesce(e.merged_into, e.key) AS whole FROM aliases a JOIN entities e ON e.key = a.entity
    WHERE a.space = ANY (ints(:spaces)) AND a.folded = ANY (texts(:keys))
    UNION SELECT coalesce(e.merged_into, e.key) FROM aliases a JOIN entities e ON e.key = a.entity
    WHERE a.space = ANY (ints(:spaces)) AND a.sound = ANY (texts(:sounds))
    UNION SELECT coalesce(e.merged_into, e.key) FROM unnest(texts(:words)) AS w (value)
    JOIN aliases a ON a.folded >= w.value || ' ' AND a.folded < w.value || '!' JOIN entities e ON e.key = a.entity
    WHERE a.space = ANY (ints(:spaces)) AND e.type = 'person'
    UNION SELECT coalesce(o.merged_into, o.key) FROM relations r JOIN entities o ON o.key = r.target
    WHERE r.space = :space AND r.source IS NULL AND r.predicate = ANY (texts(:predicates)) AND r.closed_at IS NULL
    LIMIT :most) AS named
  CROSS JOIN LATERAL (SELECT key FROM entities WHERE key = named.whole
    UNION ALL SELECT key FROM entities WHERE merged_into = named.whole) AS m
  LEFT JOIN LATERAL near_entity(m.key, :walk) AS near ON TRUE
GROUP BY named.whole, m.key ORDER BY named.whole, m.key != named.whole, m.key

-- name: relations_of_entity
-- Relations of an entity in both directions, newest first, including ended ones.
SELECT r.key, r.id, r.predicate, x.id, x.canonical_name, t.id, t.canonical_name, r.valid_from, r.valid_until, r.evidence,
  r.created_at, s.owner, s.chat
FROM relations r JOIN entities o ON o.key = r.target JOIN entities t ON t.key = coalesce(o.merged_into, o.key)
  LEFT JOIN entities p ON p.key = r.source LEFT JOIN entities x ON x.key = coalesce(p.merged_into, p.key)
  JOIN spaces s ON s.key = r.space
WHERE r.closed_at IS NULL AND t.closed_at IS NULL AND x.key IS DISTINCT FROM t.key AND r.key IN (
  SELECT key FROM relations WHERE target IN (SELECT key FROM entities WHERE key = :entity OR merged_into = :entity)
  UNION
  SELECT key FROM relations WHERE source IN (SELECT key FROM entities WHERE key = :entity OR merged_into = :entity))
ORDER BY r.key DESC

-- name: subjects_latest
-- The latest live knowledge about one entity, newest first. The walk along subjects_back is bounded, because an entity may
-- have a hundred thousand facts that are all closed.
SELECT n.key, n.type, n.confidence, n.score FROM (SELECT node FROM subjects WHERE entity = :entity ORDER BY node DESC LIMIT :walk) AS walked
  JOIN live_nodes n ON n.key = walked.node
WHERE n.type != 'episodic' AND (n.expires_at IS NULL OR n.expires_at > :now) ORDER BY n.key DESC LIMIT :most

-- name: mentions_latest
-- The latest live memories that name one entity without being about it, bounded in the same way.
SELECT n.key, n.type, n.confidence, n.score FROM (SELECT node FROM found_mentions WHERE entity = :entity ORDER BY node DESC LIMIT :walk) AS walked
  JOIN live_nodes n ON n.key = walked.node
WHERE NOT EXISTS (SELECT 1 FROM subjects s WHERE s.node = walked.node AND s.entity = :entity)
  AND (n.expires_at IS NULL OR n.expires_at > :now)
ORDER BY n.key DESC LIMIT :most

-- name: named_together
-- Other entities that these memories name, most frequent first.
SELECT e.canonical_name, e.type, count(DISTINCT walked.node) FROM (
    SELECT node, entity FROM subjects WHERE node = ANY (ints(:nodes))
    UNION SELECT node, entity FROM found_mentions WHERE node = ANY (ints(:nodes))) AS walked
  JOIN entities o ON o.key = walked.entity JOIN entities e ON e.key = coalesce(o.merged_into, o.key)
WHERE e.key != :entity AND e.closed_at IS NULL GROUP BY e.key, e.canonical_name, e.type ORDER BY 3 DESC, e.key LIMIT :most

-- name: entity_last_key
SELECT coalesce((SELECT last FROM counters WHERE tbl = 'entities'), 0)

-- name: relation_last_key
SELECT coalesce((SELECT last FROM counters WHERE tbl = 'relations'), 0)

-- name: linked_through
INSERT INTO linked VALUES (:space, :through)
ON CONFLICT (space) DO UPDATE SET through = greatest(linked.through, excluded.through)
