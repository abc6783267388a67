-- name: withheld_any
SELECT EXISTS (SELECT 1 FROM withheld WHERE space = :space AND is_lifted = 0)

-- name: withheld_put
INSERT INTO withheld (space, node, at, session, is_bound, is_erased, is_shared, is_lifted)
VALUES (:space, :node, :at, :session, :is_bound, :is_erased, :is_shared, 0) RETURNING key

-- name: withheld_print_put
INSERT INTO withheld_prints VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: withheld_span_put
INSERT INTO withheld_spans VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: withheld_drop
DELETE FROM withheld WHERE node = :node

-- name: withheld_lift
UPDATE withheld SET is_lifted = 1 WHERE key IN (SELECT value FROM json_each(:numbers))
  OR (is_shared = 1 AND node IN (SELECT s.node FROM withheld s
    WHERE s.is_shared = 1 AND s.key IN (SELECT value FROM json_each(:numbers))))

-- name: withheld_matching
-- The entries that withhold a sentence, erased ones first. Its words are those of a withheld sentence, plus or minus one. A
-- person may say it again later, but not in the session it came from.
SELECT w.key, w.is_erased FROM withheld_prints p JOIN withheld w ON w.key = p.withheld
WHERE p.space = :space AND w.is_lifted = 0
  AND (p.print IN (SELECT unhex(value) FROM json_each(:whole))
    OR (p.is_whole = 1 AND p.print IN (SELECT unhex(value) FROM json_each(:less))))
  AND (w.is_bound = 0 OR w.session IS :session)
  AND (:said_at IS NULL OR :said_at <= w.at OR (w.session IS NOT NULL AND w.session IS :session))
ORDER BY w.is_erased DESC LIMIT 1

-- name: withheld_saying
SELECT w.key FROM withheld_prints p JOIN withheld w ON w.key = p.withheld
WHERE p.space = :space AND w.is_lifted = 0
  AND (p.print IN (SELECT unhex(value) FROM json_each(:whole))
    OR (p.is_whole = 1 AND p.print IN (SELECT unhex(value) FROM json_each(:less))))

-- name: withheld_spans_any
SELECT EXISTS (SELECT 1 FROM withheld_spans)

-- name: withheld_spans_of
SELECT s.node, s.start, s.length FROM withheld_spans s JOIN withheld w ON w.key = s.withheld
WHERE s.node IN (SELECT value FROM json_each(:nodes)) AND w.is_lifted = 0

-- name: withheld_sources
SELECT target FROM edges WHERE source = :node AND relation_type = 'derived_from'

-- name: withheld_texts
SELECT n.key, n.content, s.session_id, n.speaker, n.source_role, n.source_type FROM nodes n LEFT JOIN sessions s ON s.key = n.session
WHERE n.key IN (SELECT value FROM json_each(:nodes)) AND n.type = 'episodic'
