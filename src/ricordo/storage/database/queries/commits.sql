-- name: space_by_owner
SELECT key FROM spaces WHERE owner = :owner AND chat = :chat

-- name: space_insert
INSERT INTO spaces (owner, chat) VALUES (:owner, :chat) RETURNING key

-- name: spaces_joined
-- The shared spaces of a member, by key; in the past, too, those of today.
SELECT m.space, s.chat, m.role FROM main.members m JOIN main.spaces s ON s.key = m.space
WHERE m.member = :member AND m.role != 'none' ORDER BY m.space

-- name: space_is_shared
SELECT EXISTS (SELECT 1 FROM main.members WHERE space = :space)

-- name: members_of_space
-- Everybody who is or was a member, by name.
SELECT s.chat, m.member, m.role, m.changed_at FROM main.members m JOIN main.spaces s ON s.key = m.space
WHERE m.space = :space ORDER BY m.member

-- name: space_chat
SELECT chat FROM spaces WHERE key = :space

-- name: chats_of
-- The author of the changes in a chat is nearly always found at the first one, so no index is kept for authors.
SELECT s.chat,
  (SELECT count(*) FROM live_nodes n WHERE n.space = s.key AND n.type = 'episodic'),
  (SELECT count(*) FROM live_nodes n WHERE n.space = s.key AND n.type != 'episodic'),
  (SELECT c.at FROM commits c WHERE c.space = s.key ORDER BY c.seq DESC LIMIT 1) AS last_at
FROM spaces s
WHERE s.owner = '' AND EXISTS (SELECT 1 FROM commits c WHERE c.space = s.key)
  AND (s.key IN (SELECT value FROM json_each(:spaces))
    OR (EXISTS (SELECT 1 FROM commits c WHERE c.space = s.key AND c.actor IN (:owner, :owner || ' (agent)'))
      AND NOT EXISTS (SELECT 1 FROM members m WHERE m.space = s.key)))
ORDER BY last_at DESC, s.chat

-- name: member_put
INSERT INTO members VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (space, member) DO UPDATE SET role = excluded.role, changed_at = excluded.changed_at,
  commit_seq = excluded.commit_seq, seal = excluded.seal

-- name: commit_last
-- The head of the chain.
SELECT seq, hash FROM commits ORDER BY seq DESC LIMIT 1

-- name: commit_insert
INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: commits_listed
-- Newest first.
SELECT seq, at, actor, origin, reason, run_id, hash FROM commits
WHERE space IN (SELECT value FROM json_each(:spaces)) AND seq < :before ORDER BY seq DESC LIMIT :most

-- name: commits_following
-- Of all spaces, oldest first.
SELECT c.seq, s.owner, s.chat, c.actor, c.origin FROM commits c JOIN spaces s ON s.key = c.space
WHERE c.seq > :after ORDER BY c.seq LIMIT :most

-- name: history_kinds
-- The tables of which some commits replaced, removed or once wrote a row.
SELECT seq, tbl FROM history WHERE seq BETWEEN :first AND :last
UNION
SELECT made, tbl FROM history WHERE made BETWEEN :first AND :last

-- name: commit_by_seq
SELECT seq, at, actor, origin, reason, run_id, hash FROM commits WHERE seq = :seq

-- name: history_sealed
-- Except for rows replaced by a hand edit: if no index knew the edited line, the edited version stands for the earlier one.
SELECT seq, tbl, row, before FROM history
WHERE seq NOT IN (SELECT seq FROM commits WHERE origin = 'hand')
ORDER BY seq, tbl, row

-- name: commits_all
-- For `doctor`: the chain from its start; first the columns that a commit's hash covers.
SELECT seq, space, at, origin, run_id, substr(seal, -16), digest, actor, reason, seal, hash FROM commits ORDER BY seq

-- name: commit_digest
UPDATE commits SET digest = :digest, hash = :hash WHERE seq = :seq

-- name: commit_words_erased
-- For `doctor`: whether a commit's actor and reason were erased.
SELECT 1 FROM erased WHERE made = :seq AND what = 'words' AND hash = :hash

-- name: erasures_all
-- For `doctor`: the digests to compare.
SELECT key, rows, digest FROM erasures

-- name: erased_of
-- The hashes that an erasure left of the rows it removed.
SELECT made, what, hash, now FROM erased WHERE erasure = :erasure

-- name: history_of_node
-- Before-images of a node, oldest first.
SELECT before FROM history WHERE tbl = 'nodes' AND row = :key ORDER BY seq

-- name: commit_of_node
SELECT c.seq, c.at, c.actor, c.origin, c.reason, c.run_id, c.hash
FROM nodes n JOIN commits c ON c.seq = n.commit_seq WHERE n.key = :key

-- name: meta_get
SELECT value FROM meta WHERE name = :name

-- name: meta_put
INSERT INTO meta VALUES (:name, :value) ON CONFLICT DO UPDATE SET value = excluded.value

-- name: lease_take
-- Takes the lease if it is free, has expired, or is already ours.
INSERT INTO leases VALUES (:name, :holder, :until)
ON CONFLICT DO UPDATE SET holder = excluded.holder, until = excluded.until
  WHERE leases.holder = excluded.holder OR leases.until < :now
RETURNING holder

-- name: lease_holder
SELECT holder FROM leases WHERE name = :name

-- name: lease_drop
DELETE FROM leases WHERE name = :name AND holder = :holder

-- name: off_record_of
-- In stores from before version 8, a row without an owner is about everyone in a chat.
SELECT chat, session_id, begun_at, ended_at FROM off_record
WHERE (owner = :owner AND chat IN ('', :chat)) OR (owner = '' AND chat = :chat)

-- name: off_record_open
SELECT chat, session_id, begun_at, ended_at FROM off_record WHERE owner = :owner AND ended_at IS NULL
ORDER BY chat, session_id

-- name: off_record_begin
INSERT INTO off_record (owner, chat, session_id, begun_at)
SELECT :owner, :chat, :session, :at WHERE NOT EXISTS (
  SELECT 1 FROM off_record WHERE owner = :owner AND chat = :chat AND session_id = :session AND ended_at IS NULL)
ON CONFLICT (owner, chat, session_id, begun_at) DO UPDATE SET ended_at = NULL

-- name: off_record_end
-- A pause from before version 8 is dropped: it is unknown when it began.
INSERT INTO off_record (owner, chat, session_id, begun_at, ended_at)
SELECT owner, chat, :kept, begun_at, :at FROM off_record
WHERE owner = :owner AND chat = :chat AND session_id = :session AND ended_at IS NULL AND begun_at > 0
ON CONFLICT (owner, chat, session_id, begun_at) DO UPDATE SET ended_at = excluded.ended_at

-- name: off_record_drop
DELETE FROM off_record WHERE owner = :owner AND chat = :chat AND session_id = :session AND ended_at IS NULL

-- name: commits_by_hand
-- How many commits took over what was changed in the files of a folder, and the number of the last.
SELECT count(*), max(seq) FROM commits WHERE origin = 'hand'

-- name: recorded_by
-- The first commits of memories: (memory, commit).
SELECT n.key, c.seq, c.at, c.actor, c.origin, c.reason, c.run_id, c.hash FROM nodes n JOIN commits c ON c.seq = coalesce(
  (SELECT min(h.made) FROM history h WHERE h.tbl = 'nodes' AND h.row = CAST(n.key AS TEXT)), n.commit_seq)
WHERE n.key IN (SELECT value FROM json_each(:nodes))
