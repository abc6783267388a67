-- name: event_put
-- Returns nothing if an event with that `once` exists.
INSERT INTO events (id, topic, payload, once, at) VALUES (:id, :topic, :payload, :once, :at)
ON CONFLICT (once) DO NOTHING RETURNING key

-- name: event_by_once
SELECT id FROM events WHERE once = :once

-- name: deliveries_put
-- One row for each subscribed handler, running or not.
INSERT INTO deliveries (event, handler, due_at)
SELECT :event, handler, :at FROM subscriptions WHERE topic = :topic

-- name: deliveries_many
-- Whether more than `most` deliveries wait.
SELECT 1 FROM deliveries WHERE is_dead = 0 LIMIT 1 OFFSET :most

-- name: subscription_put
INSERT INTO subscriptions (handler, topic, seen_at) VALUES (:handler, :topic, :now)
ON CONFLICT (handler) DO UPDATE SET topic = excluded.topic, seen_at = excluded.seen_at

-- name: delivery_holders
SELECT DISTINCT holder FROM deliveries WHERE handler = :handler AND holder IS NOT NULL AND is_dead = 0

-- name: delivery_next
-- The oldest due delivery without a holder; `gone` are holders whose process has ended.
SELECT d.event, e.id, e.topic, e.payload, e.at, d.tries
FROM deliveries d JOIN events e ON e.key = d.event
WHERE d.handler = :handler AND d.is_dead = 0 AND d.due_at <= :now
  AND (d.holder IS NULL OR d.held_until < :wall OR d.holder IN (SELECT value FROM json_each(:gone)))
ORDER BY d.event LIMIT 1

-- name: delivery_take
-- Counted before the try, so that a handler that kills its process is not tried forever.
UPDATE deliveries SET holder = :holder, held_until = :until, tries = tries + 1
WHERE event = :event AND handler = :handler

-- name: delivery_hold
UPDATE deliveries SET held_until = :until WHERE event = :event AND handler = :handler AND holder = :holder

-- name: delivery_done
-- Returns nothing if another process has taken it over.
DELETE FROM deliveries WHERE event = :event AND handler = :handler AND holder = :holder RETURNING event

-- name: delivery_again
UPDATE deliveries SET holder = NULL, held_until = NULL, due_at = :due_at, reason = :reason
WHERE event = :event AND handler = :handler AND holder = :holder

-- name: delivery_let_go
-- Not counted as an attempt: the holder was stopped.
UPDATE deliveries SET holder = NULL, held_until = NULL, tries = tries - 1
WHERE event = :event AND handler = :handler AND holder = :holder

-- name: delivery_bury
UPDATE deliveries SET holder = NULL, held_until = NULL, is_dead = 1, reason = :reason
WHERE event = :event AND handler = :handler AND (:holder IS NULL OR holder = :holder)

-- name: event_blank
-- The payload is deleted once all handlers are done.
UPDATE events SET payload = '{}'
WHERE key = :event AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event = :event)

-- name: deliveries_open
-- The number of waiting deliveries, and of those due now.
SELECT count(*), coalesce(sum(due_at <= :now), 0) FROM deliveries
WHERE is_dead = 0 AND handler IN (SELECT value FROM json_each(:handlers))

-- name: dead_letters
SELECT e.id, d.handler, e.topic, e.payload, e.at, d.tries, d.reason
FROM deliveries d JOIN events e ON e.key = d.event
WHERE d.is_dead = 1 ORDER BY d.event DESC LIMIT :most

-- name: dead_letter_again
UPDATE deliveries SET is_dead = 0, tries = 0, due_at = :now
WHERE is_dead = 1 AND handler = :handler AND event = (SELECT key FROM events WHERE id = :id) RETURNING event

-- name: deliveries_orphaned
-- Handlers without a subscriber for a long time.
UPDATE deliveries SET is_dead = 1, reason = 'the handler has not subscribed for a long time'
WHERE is_dead = 0 AND handler IN (SELECT handler FROM subscriptions WHERE seen_at < :before)

-- name: subscriptions_old
DELETE FROM subscriptions WHERE seen_at < :before

-- name: dead_letters_old
DELETE FROM deliveries WHERE is_dead = 1 AND (event, handler) NOT IN (
  SELECT d.event, d.handler FROM deliveries d JOIN events e ON e.key = d.event
  WHERE d.is_dead = 1 AND e.at >= :before ORDER BY d.event DESC LIMIT :most)

-- name: events_old
-- Finished events: the latest are kept for a while, so that `once` is still recognised.
DELETE FROM events WHERE NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event = events.key)
  AND (at < :before OR key NOT IN (SELECT key FROM events ORDER BY key DESC LIMIT :most))
