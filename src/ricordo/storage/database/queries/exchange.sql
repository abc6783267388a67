-- name: exchanged_put
INSERT INTO exchanged VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: exchanged_vector
-- The last known commit of each device.
SELECT device, max(number) FROM exchanged WHERE space = :space AND number >= 0 GROUP BY device

-- name: exchanged_last
-- The last commit that was looked at, and the latest time on the shared logical clock.
SELECT coalesce(max(seq), 0), coalesce(max(CASE WHEN number > 0 THEN number END), 0) FROM exchanged
WHERE space = :space AND number != 0

-- name: exchanged_reached
-- How far the store's own commits were looked at.
INSERT INTO exchanged VALUES (:space, '', -1, :seq)
ON CONFLICT (space, device, number) DO UPDATE SET seq = excluded.seq

-- name: exchanged_forget_names
-- The commits numbered so far keep the old names.
DELETE FROM exchanged WHERE number = 0

-- name: exchanged_names
-- All names of this store's device in a space, the latest first.
SELECT device FROM exchanged WHERE space = :space AND number = 0 ORDER BY seq DESC

-- name: exchanged_commits
SELECT device, number, seq FROM exchanged WHERE space = :space AND number > 0 ORDER BY number, device

-- name: exchanged_chats
-- All chats: whether they have members, whether the owner is a keeper, and whether the owner has written in them. Messages are
-- commits of the chat; facts may be listed under the owner.
SELECT s.chat, EXISTS (SELECT 1 FROM members m WHERE m.space = s.key),
  EXISTS (SELECT 1 FROM members m WHERE m.space = s.key AND m.member = :owner AND m.role = 'keeper'),
  EXISTS (SELECT 1 FROM commits c WHERE c.space = s.key AND c.actor IN (:owner, :owner || ' (agent)'))
    OR EXISTS (SELECT 1 FROM nodes n JOIN commits c ON c.seq = n.commit_seq
      WHERE n.space = s.key AND c.actor IN (:owner, :owner || ' (agent)'))
FROM spaces s WHERE s.owner = '' AND s.chat != '' ORDER BY s.chat

-- name: commits_to_exchange
-- A group's commits may be listed under the owner who made them, but under no other group.
SELECT seq FROM commits WHERE seq > :after
  AND (space = :space OR (:is_group AND space IN (SELECT key FROM spaces WHERE chat = ''))) ORDER BY seq

-- name: stamp_put
INSERT INTO stamps VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: stamps_of
SELECT device, number, row, fields FROM stamps WHERE space = :space AND record = :record

-- name: stamps_rows
SELECT DISTINCT record, tbl, row FROM stamps WHERE space = :space AND row != ''

-- name: stamps_of_commit
SELECT record, tbl, row, fields FROM stamps WHERE space = :space AND device = :device AND number = :number

-- name: stamps_move
-- The row of a record has another key now.
UPDATE stamps SET row = :row WHERE space = :space AND record = :record

-- name: stamps_erased
-- Records that were erased on some device and have a row here.
SELECT record, tbl, row FROM stamps WHERE space = :space AND fields = '["x"]' AND row != ''

-- name: stamps_erased_first
-- A trace without content of an erased row that other devices know, unless one of them erased it and none needed it since.
INSERT INTO stamps SELECT DISTINCT space, record, '', 0, tbl, '', '["x"]' FROM stamps s
WHERE tbl = :table AND row = :row AND tbl IN ('nodes', 'entities', 'relations')
  AND NOT EXISTS (SELECT 1 FROM stamps x WHERE x.space = s.space AND x.record = s.record AND x.fields = '["x"]'
    AND NOT EXISTS (SELECT 1 FROM stamps r WHERE r.space = s.space AND r.record = s.record
      AND (r.fields LIKE '%"*"%' OR r.fields LIKE '%"+"%') AND (r.number, r.device) > (x.number, x.device)))
ON CONFLICT DO NOTHING

-- name: stamps_erase
-- A session may continue, so the stamps of its fields are kept.
DELETE FROM stamps WHERE tbl = :table AND row = :row AND fields != '["x"]' AND tbl != 'sessions'

-- name: stamps_erased_last
UPDATE stamps SET row = '' WHERE tbl = :table AND row = :row

-- name: stamps_unnumbered
SELECT record, tbl FROM stamps WHERE space = :space AND device = '' AND number = 0

-- name: stamps_numbered
DELETE FROM stamps WHERE space = :space AND device = '' AND number = 0

-- name: unplaced_put
INSERT INTO unplaced VALUES (:space, :record, :table, :line)
ON CONFLICT (space, record) DO UPDATE SET line = excluded.line

-- name: unplaced_drop
DELETE FROM unplaced WHERE space = :space AND record = :record

-- name: unplaced_of
SELECT record, tbl, line FROM unplaced WHERE space = :space ORDER BY record

-- name: unplaced_erase
-- They may contain erased text.
DELETE FROM unplaced WHERE space = :space

-- name: erasures_unaware
-- When the first erasure was made that a commit with this number cannot have known of: this device told it under the same or a later one.
SELECT min(at) FROM erasures WHERE commit_seq > (SELECT coalesce(max(seq), 0) FROM exchanged
  WHERE space = :space AND device = :device AND number > 0 AND number < :number)

-- name: erasures_last
SELECT coalesce(max(commit_seq), 0) FROM erasures WHERE space = :space
