-- name: chats_of
SELECT s.chat,
  (SELECT count(*) FROM live_nodes n WHERE n.space = s.key AND n.type = 'episodic'),
  (SELECT count(*) FROM live_nodes n WHERE n.space = s.key AND n.type != 'episodic'),
  (SELECT c.at FROM commits c WHERE c.space = s.key ORDER BY c.seq DESC LIMIT 1) AS last_at
FROM spaces s
WHERE s.owner = '' AND EXISTS (SELECT 1 FROM commits c WHERE c.space = s.key)
  AND (s.key = ANY (ints(:spaces))
    OR (EXISTS (SELECT 1 FROM commits c WHERE c.space = s.key AND c.actor IN (:owner, :owner || ' (agent)'))
      AND NOT EXISTS (SELECT 1 FROM members m WHERE m.space = s.key)))
ORDER BY last_at DESC, s.chat

-- name: chats_of_guarded
-- By a function: policies hide the chats beside the present one.
SELECT chat, messages, facts, last_at FROM chats_of(:owner)

-- name: members_of_space_guarded
-- Also for a caller who is not a member, whose change is to be refused.
SELECT chat, member, role, changed_at FROM members_of(:space)

-- name: space_is_shared
-- By a function: who is no member sees no row of it.
SELECT is_shared(:space)

-- name: commits_listed
-- Newest first.
SELECT seq, at, actor, origin, reason, run_id, hash FROM commits
WHERE space = ANY (ints(:spaces)) AND seq < :before ORDER BY seq DESC LIMIT :most

-- name: commits_all
-- For `doctor`: the chain from its start; first the columns that a commit's hash covers.
SELECT seq, space, at, origin, run_id, bare(seal), digest, actor, reason, seal, hash FROM commits ORDER BY seq

-- name: meta_put
INSERT INTO meta VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: lease_take
-- Takes the lease if it is free, has expired, or is already ours.
INSERT INTO leases VALUES (:name, :holder, :until)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
  WHERE leases.holder = excluded.holder OR leases.until < :now
RETURNING holder

-- name: commit_last
-- The head of the chain.
SELECT seq, hash FROM chain_head

-- name: recorded_by
-- The first commits of memories: (memory, commit).
SELECT n.key, c.seq, c.at, c.actor, c.origin, c.reason, c.run_id, c.hash FROM nodes n JOIN commits c ON c.seq = coalesce(
  (SELECT min(h.made) FROM history h WHERE h.tbl = 'nodes' AND h.row = n.key::text), n.commit_seq)
WHERE n.key = ANY (ints(:nodes))
