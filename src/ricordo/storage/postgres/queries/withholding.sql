-- name: withheld_lift
UPDATE withheld SET is_lifted = 1 WHERE key = ANY (ints(:numbers))
  OR (is_shared = 1 AND node IN (SELECT s.node FROM withheld s
    WHERE s.is_shared = 1 AND s.key = ANY (ints(:numbers))))

-- name: withheld_matching
-- The entries that withhold a sentence, erased ones first. Its words are those of a withheld sentence, plus or minus one. A
-- person may say it again later, but not in the session it came from.
SELECT w.key, w.is_erased FROM withheld_prints p JOIN withheld w ON w.key = p.withheld
WHERE p.space = :space AND w.is_lifted = 0
  AND (p.print IN (SELECT decode(t, 'hex') FROM unnest(texts(:whole)) t)
    OR (p.is_whole = 1 AND p.print IN (SELECT decode(l, 'hex') FROM unnest(texts(:less)) l)))
  AND (w.is_bound = 0 OR w.session IS NOT DISTINCT FROM :session)
  AND (CAST(:said_at AS bigint) IS NULL OR CAST(:said_at AS bigint) <= w.at
    OR (w.session IS NOT NULL AND w.session IS NOT DISTINCT FROM :session))
ORDER BY w.is_erased DESC, w.key LIMIT 1

-- name: withheld_saying
SELECT w.key FROM withheld_prints p JOIN withheld w ON w.key = p.withheld
WHERE p.space = :space AND w.is_lifted = 0
  AND (p.print IN (SELECT decode(t, 'hex') FROM unnest(texts(:whole)) t)
    OR (p.is_whole = 1 AND p.print IN (SELECT decode(l, 'hex') FROM unnest(texts(:less)) l)))
ORDER BY w.key

-- name: withheld_spans_of
SELECT s.node, s.start, s.length FROM withheld_spans s JOIN withheld w ON w.key = s.withheld
WHERE s.node = ANY (ints(:nodes)) AND w.is_lifted = 0

-- name: withheld_texts
SELECT n.key, n.content, s.session_id, n.speaker, n.source_role, n.source_type FROM nodes n LEFT JOIN sessions s ON s.key = n.session
WHERE n.key = ANY (ints(:nodes)) AND n.type = 'episodic'
