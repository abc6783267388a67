-- name: run_last_key
SELECT coalesce((SELECT last FROM counters WHERE tbl = 'runs'), 0)

-- name: run_by_id
SELECT r.key, r.id, r.kind, r.model, r.prompt,
  (SELECT coalesce(json_agg(ss.session_id ORDER BY e.place)::text, '[]')
    FROM jsonb_array_elements_text(r.sessions::jsonb) WITH ORDINALITY AS e (value, place)
    JOIN sessions ss ON ss.key = e.value::bigint),
  r.started_at, r.ended_at, r.tokens_in, r.tokens_out, r.cost, r.items, s.owner, s.chat
FROM runs r JOIN spaces s ON s.key = r.space
WHERE r.id = :id AND r.space = ANY (ints(:spaces))

-- name: runs_listed
-- Latest first.
SELECT r.key, r.id, r.kind, r.model, r.prompt,
  (SELECT coalesce(json_agg(ss.session_id ORDER BY e.place)::text, '[]')
    FROM jsonb_array_elements_text(r.sessions::jsonb) WITH ORDINALITY AS e (value, place)
    JOIN sessions ss ON ss.key = e.value::bigint),
  r.started_at, r.ended_at, r.tokens_in, r.tokens_out, r.cost, r.items, s.owner, s.chat
FROM runs r JOIN spaces s ON s.key = r.space
WHERE r.space = ANY (ints(:spaces)) ORDER BY r.key DESC LIMIT :most

-- name: sessions_listed
-- Sessions with live messages, those with the latest messages first, without documents; or only one. The title is the one
-- that its first message was imported with; the last column is the key of that message.
SELECT l.session_id, l.messages, l.begun_at, l.last_at, l.ended_at, l.consolidated_at, l.summary, l.owner, l.chat,
  (SELECT f.attributes::jsonb ->> 'title' FROM nodes f WHERE f.key = l.first), l.first
FROM (SELECT ss.session_id, count(*) AS messages, min(n.event_time) AS begun_at, max(n.event_time) AS last_at, ss.ended_at,
  ss.consolidated_at, ss.summary, s.owner, s.chat, min(n.key) AS first, ss.key
FROM sessions ss JOIN spaces s ON s.key = ss.space JOIN live_nodes n ON n.session = ss.key AND n.type = 'episodic'
WHERE ss.space = ANY (ints(:spaces)) AND (ss.session_id = :session_id
  OR (CAST(:session_id AS text) IS NULL AND substr(ss.session_id, 1, 9) != 'document:'))
GROUP BY ss.key, s.key ORDER BY max(n.event_time) DESC, ss.key DESC LIMIT :most) l ORDER BY l.last_at DESC, l.key DESC

-- name: sessions_waiting
-- Sessions with unconsolidated messages, oldest first; NULL for messages without a session. Documents never wait.
SELECT min(sp.owner), min(sp.chat), min(ss.session_id), count(*), max(n.event_time), max(n.created_at), min(ss.ended_at)
FROM live_nodes n JOIN spaces sp ON sp.key = n.space LEFT JOIN sessions ss ON ss.key = n.session
WHERE n.space = ANY (ints(:spaces)) AND n.shelf = 'e'
  AND coalesce(substr(ss.session_id, 1, 9), '') != 'document:'
GROUP BY n.space, n.session ORDER BY min(n.event_time), min(n.key)

-- name: conversations_waiting_latest
-- Sessions of the latest unconsolidated messages, of all owners, without documents.
SELECT sp.owner, sp.chat, n.session_id
FROM (SELECT e.key, e.space, ws.session_id FROM live_nodes e LEFT JOIN sessions ws ON ws.key = e.session
  WHERE e.shelf = 'e' AND coalesce(substr(ws.session_id, 1, 9), '') != 'document:' ORDER BY e.key DESC LIMIT :most) n
JOIN spaces sp ON sp.key = n.space
GROUP BY sp.owner, sp.chat, n.session_id ORDER BY max(n.key) DESC

-- name: episodes_waiting
-- Unconsolidated messages of one session, in order.
SELECT n.key FROM live_nodes n LEFT JOIN sessions ss ON ss.key = n.session
WHERE n.space = :space AND n.shelf = 'e' AND ss.session_id IS NOT DISTINCT FROM :session ORDER BY n.event_time, n.key

-- name: model_call_begin
-- Nothing is recorded if the tokens of the day are used up; 0 means no limit.
INSERT INTO model_calls (space, session, run, kind, model, prompt, day, at, calls, tokens_in, tokens_out, outcome, reason)
SELECT CAST(:space AS bigint), CAST(:session AS bigint), :run, :kind, :model, :prompt, :day, CAST(:at AS bigint), 1,
  CAST(:tokens_in AS bigint), 0, 'open', ''
WHERE :most = 0 OR :most > (SELECT coalesce(sum(tokens_in + tokens_out), 0) FROM model_calls
  WHERE space = :space AND day = :day)
RETURNING key

-- name: model_calls_of
-- Model usage by day, owner and model, latest first.
SELECT m.day, s.owner, s.chat, m.model, sum(m.calls), sum(m.tokens_in), sum(m.tokens_out), sum(m.cost), count(DISTINCT m.run)
FROM model_calls m JOIN spaces s ON s.key = m.space
WHERE m.day >= :since AND (:all OR m.space = ANY (ints(:spaces))) AND m.calls > 0
GROUP BY m.day, s.key, m.model ORDER BY m.day DESC, s.owner, s.chat, m.model

-- name: runs_unlisted
-- Runs that called a model and left nothing: failed, interrupted, dry, proposed or undone ones.
SELECT 0, m.run, min(m.kind), (array_agg(m.model ORDER BY m.key DESC))[1], max(m.prompt),
  (SELECT coalesce(json_agg(session_id ORDER BY first)::text, '[]') FROM (SELECT ss.session_id, min(c.key) AS first
    FROM model_calls c JOIN sessions ss ON ss.key = c.session WHERE c.run = m.run GROUP BY ss.key)),
  min(m.at), max(m.at), sum(m.tokens_in), sum(m.tokens_out), sum(m.cost), '[]', min(s.owner), min(s.chat),
  (SELECT outcome FROM model_calls l WHERE l.run = m.run ORDER BY l.key DESC LIMIT 1),
  (SELECT reason FROM model_calls l WHERE l.run = m.run ORDER BY l.key DESC LIMIT 1)
FROM model_calls m JOIN spaces s ON s.key = m.space
WHERE m.space = ANY (ints(:spaces)) AND (CAST(:id AS text) IS NULL OR m.run = :id)
  AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = m.run)
GROUP BY m.run ORDER BY min(m.key) DESC LIMIT :most

-- name: run_costs
-- All that was spent on runs, including sessions of them that failed.
SELECT run, sum(tokens_in), sum(tokens_out), sum(cost) FROM model_calls
WHERE run = ANY (texts(:runs)) GROUP BY run

-- name: failure_add
INSERT INTO failures (space, session, tries, at, reason) VALUES (:space, :session, 1, :at, :reason)
ON CONFLICT (space, (coalesce(session, 0))) DO UPDATE SET tries = failures.tries + 1, at = excluded.at,
  reason = excluded.reason

-- name: failure_drop
DELETE FROM failures WHERE space = :space AND session IS NOT DISTINCT FROM :session

-- name: failures_of
SELECT sp.owner, sp.chat, ss.session_id, f.tries, f.at, f.reason
FROM failures f JOIN spaces sp ON sp.key = f.space LEFT JOIN sessions ss ON ss.key = f.session
WHERE f.space = ANY (ints(:spaces)) ORDER BY f.at DESC

-- name: proposal_by_id
SELECT body FROM proposals
WHERE (id = :id OR :part != '' AND (left(replace(id, '-', ''), length(:part)) = :part
  OR right(replace(id, '-', ''), length(:part)) = :part
  OR left(right(replace(id, '-', ''), 8), length(:part)) = :part)) AND space = ANY (ints(:spaces))

-- name: proposals_remove
DELETE FROM proposals WHERE id = ANY (texts(:ids))

-- name: forgotten_like
-- Facts of a type that were forgotten or refused, and that say the same or rest on the same messages. A fact
-- closed by accepting a replay may be learnt again.
SELECT n.content, n.closed_at, n.content = :content OR (:line != '' AND w.line = :line)
FROM nodes n JOIN words w ON w.node = n.key
WHERE n.space = :space AND n.type = :type AND n.closed_reason IN ('forgotten', 'retracted')
  AND NOT EXISTS (SELECT 1 FROM commits c WHERE c.seq = n.commit_seq AND c.origin = 'accept')
  AND (n.content = :content OR (:line != '' AND w.line = :line) OR EXISTS (SELECT 1 FROM edges e
    JOIN nodes m ON m.key = e.target WHERE e.source = n.key AND e.relation_type = 'derived_from'
    AND m.id = ANY (texts(:evidence))))

-- name: node_ids_of
-- The ids of keys in a run.
SELECT key, id FROM nodes WHERE key = ANY (ints(:keys))

-- name: evidence_of
-- The source messages of derived memories: (memory, message id), in order.
SELECT e.source, n.id FROM edges e JOIN live_nodes n ON n.key = e.target
WHERE e.source = ANY (ints(:nodes)) AND e.relation_type = 'derived_from' AND e.closed_at IS NULL
  AND n.space = ANY (ints(:spaces))
ORDER BY e.source, n.event_time, n.key

-- name: learnt_already
-- The memory, possibly closed, with the same statement and a given number of these messages as evidence; live ones first.
-- A fact closed by accepting a replay may be learnt again.
SELECT n.id, n.closed_at IS NULL FROM nodes m JOIN edges e ON e.target = m.key AND e.relation_type = 'derived_from'
  JOIN nodes n ON n.key = e.source JOIN words w ON w.node = n.key
WHERE m.space = :space AND m.id = ANY (texts(:evidence))
  AND (n.content = :content OR (:line != '' AND w.line = :line))
  AND (n.closed_reason IS NULL OR n.closed_reason != 'retracted'
    OR NOT EXISTS (SELECT 1 FROM commits c WHERE c.seq = n.commit_seq AND c.origin = 'accept'))
GROUP BY n.key, n.id, n.closed_at HAVING count(DISTINCT m.key) >= :least ORDER BY n.closed_at IS NULL DESC, n.key LIMIT 1

-- name: rests_on_count
-- The number of these messages that a memory rests on.
SELECT count(*) FROM edges e JOIN nodes m ON m.key = e.target
WHERE e.source = :node AND e.relation_type = 'derived_from' AND e.closed_at IS NULL
  AND m.id = ANY (texts(:among))

-- name: resting_on
-- Live memories that rest on one of some messages, oldest first.
SELECT DISTINCT n.key FROM nodes m JOIN edges e ON e.target = m.key AND e.relation_type = 'derived_from'
  JOIN live_nodes n ON n.key = e.source
WHERE m.id = ANY (texts(:evidence)) AND e.closed_at IS NULL ORDER BY n.key LIMIT :most

-- name: entities_to_enrich
-- Entities that are named often enough and have no summary, or a generated one whose evidence is outdated; most often named
-- first. A summary that the user corrected or forgot is not replaced.
SELECT e.key FROM live_entities e LEFT JOIN nodes n ON n.id = substring(e.attributes FROM '"summary_memory":"([^"]+)"')
WHERE e.space = :space AND (SELECT coalesce(sum(nodes), 0) FROM entity_counts
    WHERE entity IN (SELECT key FROM entities WHERE key = e.key OR merged_into = e.key)) >= :least
  AND (e.summary IS NULL OR (n.content = e.summary AND n.closed_at IS NULL AND EXISTS (SELECT 1 FROM edges d
    JOIN nodes t ON t.key = d.target WHERE d.source = n.key AND d.relation_type = 'derived_from' AND t.closed_at IS NOT NULL))
    OR (n.content = e.summary AND n.closed_reason IN ('expired', 'decayed', 'pruned', 'evicted')))
  AND NOT EXISTS (SELECT 1 FROM subjects s JOIN nodes f ON f.key = s.node
    WHERE s.entity = e.key AND f.category = 'summary' AND f.closed_reason IN ('forgotten', 'retracted'))
ORDER BY (SELECT coalesce(sum(nodes), 0) FROM entity_counts
  WHERE entity IN (SELECT key FROM entities WHERE key = e.key OR merged_into = e.key)) DESC, e.key
LIMIT :most

-- name: reflections_on
-- The live reflections that rest on one of some memories.
SELECT DISTINCT n.key FROM nodes m JOIN edges e ON e.target = m.key AND e.relation_type = 'derived_from'
  JOIN live_nodes n ON n.key = e.source
WHERE m.key = ANY (ints(:nodes)) AND n.category = 'reflection' ORDER BY n.key

-- name: extraction_of
-- The run that extracts knowledge from one session while it is open.
SELECT id FROM runs WHERE space = :space AND kind = 'extraction' AND model = :model
  AND jsonb_array_length(sessions::jsonb) = (CAST(:session AS bigint) IS NOT NULL)::int
  AND (sessions::jsonb ->> 0)::bigint IS NOT DISTINCT FROM CAST(:session AS bigint)
ORDER BY key DESC LIMIT 1

-- name: messages_read
-- The given messages of a session that the model has already seen during extraction.
SELECT DISTINCT e.value::bigint FROM runs r CROSS JOIN LATERAL jsonb_array_elements(r.items::jsonb) AS i (value)
  CROSS JOIN LATERAL jsonb_array_elements_text(i.value -> 4) AS e (value)
WHERE r.space = :space AND r.kind = 'extraction' AND r.model = :model
  AND (r.sessions::jsonb ->> 0)::bigint IS NOT DISTINCT FROM CAST(:session AS bigint) AND i.value ->> 0 = 'looked'
  AND e.value::bigint = ANY (ints(:keys))

-- name: receipt_by_id
-- Or by a beginning or an end of the id.
SELECT r.id, s.owner, r.in_chat, r.trust, r.verb, r.at, r.commit_number, r.asked, r.setup, r.given, r.left_out
FROM receipts r JOIN spaces s ON s.key = r.space
WHERE r.space = :space AND r.verb != 'standing'
  AND (r.id = :id OR :part != '' AND (left(replace(r.id, '-', ''), length(:part)) = :part
    OR right(replace(r.id, '-', ''), length(:part)) = :part
    OR left(right(replace(r.id, '-', ''), 8), length(:part)) = :part)) ORDER BY r.id = :id DESC LIMIT 2

-- name: ids_known
-- The ids that are in a row or a former version of one.
SELECT id FROM nodes WHERE id = ANY (texts(:ids))
UNION SELECT id FROM entities WHERE id = ANY (texts(:ids))
UNION SELECT before ->> 'id' FROM history WHERE tbl IN ('nodes', 'entities') AND before ->> 'id' = ANY (texts(:ids))

-- name: commit_seen
-- The last commit that a caller sees.
SELECT max(seq) FROM commits WHERE space = ANY (ints(:spaces))
