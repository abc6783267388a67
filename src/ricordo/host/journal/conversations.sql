-- name: job_get
SELECT plan, last_due_at FROM jobs WHERE name = :name

-- name: job_put
INSERT INTO jobs (name, plan, last_due_at) VALUES (:name, :plan, :last_due_at)
ON CONFLICT (name) DO UPDATE SET plan = excluded.plan, last_due_at = excluded.last_due_at

-- name: conversation_get
SELECT session, last_at, is_off_record FROM conversations
WHERE owner = :owner AND chat = :chat AND channel = :channel

-- name: conversation_put
INSERT INTO conversations (owner, chat, channel, session, last_at, is_off_record)
VALUES (:owner, :chat, :channel, :session, :last_at, :is_off_record)
ON CONFLICT (owner, chat, channel) DO UPDATE
SET session = excluded.session, last_at = excluded.last_at, is_off_record = excluded.is_off_record

-- name: conversations_silent
SELECT owner, chat, channel, session, last_at, is_off_record FROM conversations
WHERE session IS NOT NULL AND last_at < :before

-- name: conversations_old
-- Places that were silent for a long time; places off the record are kept.
DELETE FROM conversations WHERE session IS NULL AND is_off_record = 0 AND last_at < :before
