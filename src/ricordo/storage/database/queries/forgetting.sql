-- name: vitals_of
-- The fields that decide how long memories are kept, in the order of `Vital`. An entity named in more than :often live
-- memories counts as frequent (0: none does). If a model repeats the user's own words with confidence :stated or more, the
-- memory counts as said by the user.
SELECT n.key, n.id, n.category, n.confidence, CASE WHEN n.type = 'episodic' THEN 0.0 ELSE n.decay_rate END, n.score,
  n.created_at, n.reinforced_at, n.valid_from, n.expires_at, coalesce(u.count, 0), u.last_access,
  n.source_type IN ('user', 'cli', 'rpc')
    OR (n.source_type = 'conversation' AND n.source_role IN ('user', 'system'))
    OR n.confidence >= :stated AND EXISTS (SELECT 1 FROM edges x JOIN nodes t ON t.key = x.target
      WHERE x.source = n.key AND x.relation_type = 'derived_from' AND x.closed_at IS NULL
        AND (t.source_type IN ('user', 'cli', 'rpc') OR (t.source_type = 'conversation' AND t.source_role = 'user'))),
  n.source_type IN ('extraction', 'consolidation'),
  EXISTS (SELECT 1 FROM subjects s JOIN entities o ON o.key = s.entity
    JOIN entities e ON e.key = coalesce(o.merged_into, o.key) WHERE s.node = n.key AND e.protected),
  :often > 0 AND EXISTS (SELECT 1 FROM subjects s JOIN entities o ON o.key = s.entity
    JOIN entity_counts c ON c.entity = coalesce(o.merged_into, o.key) WHERE s.node = n.key AND c.nodes > :often),
  octet_length(n.content)
FROM nodes n LEFT JOIN usage u ON u.node = n.key
WHERE n.key IN (SELECT value FROM json_each(:keys)) AND n.space IN (SELECT value FROM json_each(:spaces))
ORDER BY n.key

-- name: live_knowledge
-- The keys of knowledge in some tenants. The condition on `type` makes SQLite walk only the index of knowledge.
SELECT group_concat(key) FROM nodes
WHERE space IN (SELECT value FROM json_each(:spaces)) AND type != 'episodic' AND closed_at IS NULL

-- name: knowledge_size
-- Size of the knowledge: number of memories, and bytes of their texts.
SELECT count(*), coalesce(sum(octet_length(content)), 0) FROM nodes
WHERE space IN (SELECT value FROM json_each(:spaces)) AND type != 'episodic' AND closed_at IS NULL

-- name: spaces_all
-- Without those of erased owners.
SELECT owner, chat FROM spaces WHERE NOT (owner = 'erased' AND chat LIKE 'erased %') ORDER BY key

-- name: archive_counts
-- Number of closed memories by type and reason. Quarantined memories never were live and do not count.
SELECT closed_reason, count(*) FROM nodes
WHERE space IN (SELECT value FROM json_each(:spaces)) AND closed_at IS NOT NULL AND closed_reason != 'quarantined'
GROUP BY closed_reason

-- name: archive_listed
-- Closed memories, latest first.
SELECT key FROM nodes
WHERE space IN (SELECT value FROM json_each(:spaces)) AND closed_at IS NOT NULL
  AND closed_reason != 'quarantined' AND (:reason IS NULL OR closed_reason = :reason)
ORDER BY closed_at DESC, key DESC LIMIT :limit
