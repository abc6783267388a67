-- name: run_put
INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET sessions = excluded.sessions, ended_at = excluded.ended_at,
  tokens_in = excluded.tokens_in, tokens_out = excluded.tokens_out, cost = excluded.cost, items = excluded.items,
  commit_seq = excluded.commit_seq, seal = excluded.seal

-- name: run_place
SELECT key FROM runs WHERE id = :id

-- name: run_last_key
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'runs'), 0)

-- name: run_by_id
SELECT r.key, r.id, r.kind, r.model, r.prompt,
  (SELECT json_group_array(ss.session_id ORDER BY e.key) FROM json_each(r.sessions) e JOIN sessions ss ON ss.key = e.value),
  r.started_at, r.ended_at, r.tokens_in, r.tokens_out, r.cost, r.items, s.owner, s.chat
FROM runs r JOIN spaces s ON s.key = r.space
WHERE r.id = :id AND r.space IN (SELECT value FROM json_each(:spaces))

-- name: runs_listed
-- Latest first.
SELECT r.key, r.id, r.kind, r.model, r.prompt,
  (SELECT json_group_array(ss.session_id ORDER BY e.key) FROM json_each(r.sessions) e JOIN sessions ss ON ss.key = e.value),
  r.started_at, r.ended_at, r.tokens_in, r.tokens_out, r.cost, r.items, s.owner, s.chat
FROM runs r JOIN spaces s ON s.key = r.space
WHERE r.space IN (SELECT value FROM json_each(:spaces)) ORDER BY r.key DESC LIMIT :most

-- name: sessions_listed
-- Sessions with live messages, those with the latest messages first, without documents; or only one. The title is the one
-- that its first message was imported with; the last column is the key of that message.
SELECT l.session_id, l.messages, l.begun_at, l.last_at, l.ended_at, l.consolidated_at, l.summary, l.owner, l.chat,
  (SELECT CAST(f.attributes ->> '$.title' AS TEXT) FROM nodes f WHERE f.key = l.first), l.first
FROM (SELECT ss.session_id, count(*) AS messages, min(n.event_time) AS begun_at, max(n.event_time) AS last_at, ss.ended_at,
  ss.consolidated_at, ss.summary, s.owner, s.chat, min(n.key) AS first, ss.key
FROM sessions ss JOIN spaces s ON s.key = ss.space JOIN live_nodes n ON n.session = ss.key AND n.type = 'episodic'
WHERE ss.space IN (SELECT value FROM json_each(:spaces)) AND (ss.session_id = :session_id
  OR (:session_id IS NULL AND substr(ss.session_id, 1, 9) != 'document:'))
GROUP BY ss.key ORDER BY max(n.event_time) DESC, ss.key DESC LIMIT :most) l ORDER BY l.last_at DESC, l.key DESC

-- name: sessions_waiting
-- Sessions with unconsolidated messages, oldest first; NULL for messages without a session. Documents never wait.
SELECT sp.owner, sp.chat, ss.session_id, count(*), max(n.event_time), max(n.created_at), ss.ended_at
FROM live_nodes n JOIN spaces sp ON sp.key = n.space LEFT JOIN sessions ss ON ss.key = n.session
WHERE n.space IN (SELECT value FROM json_each(:spaces)) AND n.shelf = 'e'
  AND coalesce(substr(ss.session_id, 1, 9), '') != 'document:'
GROUP BY n.space, n.session ORDER BY min(n.event_time), min(n.key)

-- name: conversations_waiting_latest
-- Sessions of the latest unconsolidated messages, of all owners, without documents.
SELECT DISTINCT sp.owner, sp.chat, n.session_id
FROM (SELECT e.space, ws.session_id FROM live_nodes e LEFT JOIN sessions ws ON ws.key = e.session
  WHERE e.shelf = 'e' AND coalesce(substr(ws.session_id, 1, 9), '') != 'document:' ORDER BY e.key DESC LIMIT :most) n
JOIN spaces sp ON sp.key = n.space

-- name: episodes_waiting
-- Unconsolidated messages of one session, in order.
SELECT n.key FROM live_nodes n LEFT JOIN sessions ss ON ss.key = n.session
WHERE n.space = :space AND n.shelf = 'e' AND ss.session_id IS :session ORDER BY n.event_time, n.key

-- name: episodes_of
-- All live messages of one session, in order.
SELECT n.key FROM live_nodes n JOIN sessions ss ON ss.key = n.session
WHERE n.space = :space AND n.type = 'episodic' AND ss.session_id = :session ORDER BY n.event_time, n.key

-- name: model_use_before
-- Model usage on days before calls were recorded one by one; of all owners together.
SELECT day, '', '', model, calls, tokens_in, tokens_out FROM model_use WHERE day >= :since ORDER BY day DESC, model

-- name: model_call_begin
-- Nothing is recorded if the tokens of the day are used up; 0 means no limit.
INSERT INTO model_calls (space, session, run, kind, model, prompt, day, at, calls, tokens_in, tokens_out, outcome, reason)
SELECT :space, :session, :run, :kind, :model, :prompt, :day, :at, 1, :tokens_in, 0, 'open', ''
WHERE :most = 0 OR :most > (SELECT coalesce(sum(tokens_in + tokens_out), 0) FROM model_calls
  WHERE space = :space AND day = :day)
RETURNING key

-- name: model_call_end
UPDATE model_calls SET tokens_in = :tokens_in, tokens_out = :tokens_out, cost = :cost, outcome = '' WHERE key = :key

-- name: run_outcome_add
INSERT INTO model_calls (space, session, run, kind, model, prompt, day, at, calls, tokens_in, tokens_out, outcome, reason)
VALUES (:space, :session, :run, :kind, :model, :prompt, :day, :at, 0, 0, 0, :outcome, :reason)

-- name: model_calls_of
-- Model usage by day, owner and model, latest first.
SELECT m.day, s.owner, s.chat, m.model, sum(m.calls), sum(m.tokens_in), sum(m.tokens_out), sum(m.cost), count(DISTINCT m.run)
FROM model_calls m JOIN spaces s ON s.key = m.space
WHERE m.day >= :since AND (:all OR m.space IN (SELECT value FROM json_each(:spaces))) AND m.calls > 0
GROUP BY m.day, m.space, m.model ORDER BY m.day DESC, s.owner, s.chat, m.model

-- name: runs_unlisted
-- Runs that called a model and left nothing: failed, interrupted, dry, proposed or undone ones.
SELECT 0, m.run, m.kind, m.model, max(m.prompt),
  (SELECT json_group_array(session_id) FROM (SELECT ss.session_id FROM model_calls c JOIN sessions ss ON ss.key = c.session
    WHERE c.run = m.run GROUP BY c.session ORDER BY min(c.key))),
  min(m.at), max(m.at), sum(m.tokens_in), sum(m.tokens_out), sum(m.cost), '[]', s.owner, s.chat,
  (SELECT outcome FROM model_calls l WHERE l.run = m.run ORDER BY l.key DESC LIMIT 1),
  (SELECT reason FROM model_calls l WHERE l.run = m.run ORDER BY l.key DESC LIMIT 1)
FROM model_calls m JOIN spaces s ON s.key = m.space
WHERE m.space IN (SELECT value FROM json_each(:spaces)) AND (:id IS NULL OR m.run = :id)
  AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = m.run)
GROUP BY m.run ORDER BY min(m.key) DESC LIMIT :most

-- name: run_costs
-- All that was spent on runs, including sessions of them that failed.
SELECT run, sum(tokens_in), sum(tokens_out), sum(cost) FROM model_calls
WHERE run IN (SELECT value FROM json_each(:runs)) GROUP BY run

-- name: run_failures
-- The sessions of a run that failed, and why.
SELECT ss.session_id, m.reason FROM model_calls m LEFT JOIN sessions ss ON ss.key = m.session
WHERE m.run = :run AND m.calls = 0 AND m.outcome = 'failed' AND m.session IS NOT NULL ORDER BY m.key

-- name: failure_add
INSERT INTO failures (space, session, tries, at, reason) VALUES (:space, :session, 1, :at, :reason)
ON CONFLICT (space, coalesce(session, 0)) DO UPDATE SET tries = tries + 1, at = excluded.at, reason = excluded.reason

-- name: failure_drop
DELETE FROM failures WHERE space = :space AND session IS :session

-- name: failures_of
SELECT sp.owner, sp.chat, ss.session_id, f.tries, f.at, f.reason
FROM failures f JOIN spaces sp ON sp.key = f.space LEFT JOIN sessions ss ON ss.key = f.session
WHERE f.space IN (SELECT value FROM json_each(:spaces)) ORDER BY f.at DESC

-- name: proposal_put
INSERT INTO proposals VALUES (:id, :space, :at, :body)

-- name: proposal_by_id
SELECT body FROM proposals
WHERE (id = :id OR :part != '' AND (substr(replace(id, '-', ''), 1, length(:part)) = :part
  OR substr(replace(id, '-', ''), -length(:part)) = :part
  OR substr(replace(id, '-', ''), -8, length(:part)) = :part)) AND space IN (SELECT value FROM json_each(:spaces))

-- name: proposals_remove
DELETE FROM proposals WHERE id IN (SELECT value FROM json_each(:ids))

-- name: proposals_drop
DELETE FROM proposals WHERE at < :before

-- name: forgotten_like
-- Facts of a type that were forgotten or refused, and that say the same or rest on the same messages. A fact
-- closed by accepting a replay may be learnt again.
SELECT n.content, n.closed_at, n.content IS :content OR statement_line(n.content) = statement_line(:content)
FROM nodes n
WHERE n.space = :space AND n.type = :type AND n.closed_reason IN ('forgotten', 'retracted')
  AND NOT EXISTS (SELECT 1 FROM commits c WHERE c.seq = n.commit_seq AND c.origin = 'accept')
  AND (n.content IS :content
    OR (statement_line(:content) != '' AND statement_line(n.content) = statement_line(:content)) OR EXISTS (SELECT 1 FROM edges e
    JOIN nodes m ON m.key = e.target WHERE e.source = n.key AND e.relation_type = 'derived_from'
    AND m.id IN (SELECT value FROM json_each(:evidence))))

-- name: node_ids_of
-- The ids of keys in a run.
SELECT key, id FROM nodes WHERE key IN (SELECT value FROM json_each(:keys))

-- name: evidence_of
-- The source messages of derived memories: (memory, message id), in order.
SELECT e.source, n.id FROM edges e JOIN live_nodes n ON n.key = e.target
WHERE e.source IN (SELECT value FROM json_each(:nodes)) AND e.relation_type = 'derived_from' AND e.closed_at IS NULL
  AND n.space IN (SELECT value FROM json_each(:spaces))
ORDER BY e.source, n.event_time, n.key

-- name: learnt_already
-- The memory, possibly closed, with the same statement and a given number of these messages as evidence; live ones first.
-- A fact closed by accepting a replay may be learnt again.
SELECT n.id, n.closed_at IS NULL FROM nodes m JOIN edges e ON e.target = m.key AND e.relation_type = 'derived_from'
  JOIN nodes n ON n.key = e.source
WHERE m.space = :space AND m.id IN (SELECT value FROM json_each(:evidence))
  AND (n.content IS :content OR (statement_line(:content) != '' AND statement_line(n.content) = statement_line(:content)))
  AND (n.closed_reason IS NULL OR n.closed_reason != 'retracted'
    OR NOT EXISTS (SELECT 1 FROM commits c WHERE c.seq = n.commit_seq AND c.origin = 'accept'))
GROUP BY n.key HAVING count(DISTINCT m.key) >= :least ORDER BY n.closed_at IS NULL DESC, n.key LIMIT 1

-- name: rests_on_count
-- The number of these messages that a memory rests on.
SELECT count(*) FROM edges e JOIN nodes m ON m.key = e.target
WHERE e.source = :node AND e.relation_type = 'derived_from' AND e.closed_at IS NULL
  AND m.id IN (SELECT value FROM json_each(:among))

-- name: resting_on
-- Live memories that rest on one of some messages, oldest first.
SELECT DISTINCT n.key FROM nodes m JOIN edges e ON e.target = m.key AND e.relation_type = 'derived_from'
  JOIN live_nodes n ON n.key = e.source
WHERE m.id IN (SELECT value FROM json_each(:evidence)) AND e.closed_at IS NULL ORDER BY n.key LIMIT :most

-- name: run_items_last
-- The items of the latest run of a kind in a tenant.
SELECT items FROM runs WHERE space = :space AND kind = :kind ORDER BY key DESC LIMIT 1

-- name: pairs_to_look_at
-- Consecutive messages of people in one session, earliest recorded first.
SELECT p.key, n.key FROM (SELECT key, session, event_time FROM live_nodes
    WHERE space = :space AND key > :after AND type = 'episodic' AND source_role = 'user' AND session IS NOT NULL
    ORDER BY key LIMIT :most) AS n
  JOIN nodes p ON p.key = (SELECT b.key FROM live_nodes b
    WHERE b.session = n.session AND b.closed_at IS NULL AND b.type = 'episodic' AND b.source_role = 'user'
      AND (b.event_time, b.key) < (n.event_time, n.key) ORDER BY b.event_time DESC, b.key DESC LIMIT 1)
ORDER BY n.key

-- name: messages_after
-- The last of a number of messages of people recorded after a given one: how far `pairs_to_look_at` has got.
SELECT max(key) FROM (SELECT key FROM live_nodes
  WHERE space = :space AND key > :after AND type = 'episodic' AND source_role = 'user' AND session IS NOT NULL
  ORDER BY key LIMIT :most)

-- name: causal_between
SELECT 1 FROM edges WHERE relation_type = 'causal' AND closed_at IS NULL
  AND ((source = :one AND target = :other) OR (source = :other AND target = :one)) LIMIT 1

-- name: entities_to_enrich
-- Entities that are named often enough and have no summary, or a generated one whose evidence is outdated; most often named
-- first. A summary that the user corrected or forgot is not replaced.
SELECT e.key FROM live_entities e LEFT JOIN nodes n ON n.id = e.attributes ->> '$.summary_memory'
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

-- name: rests_on_ended
-- Whether any evidence of a memory is closed.
SELECT EXISTS (SELECT 1 FROM edges d JOIN nodes t ON t.key = d.target
  WHERE d.source = :node AND d.relation_type = 'derived_from' AND t.closed_at IS NOT NULL)

-- name: concluded_from
-- Live reflections and summaries that rest on a memory.
SELECT n.key FROM edges e JOIN live_nodes n ON n.key = e.source
WHERE e.target = :node AND e.relation_type = 'derived_from' AND n.category IN ('reflection', 'summary') ORDER BY n.key

-- name: learnt_between
-- Knowledge of a time span, latest last, without conclusions.
SELECT key FROM (SELECT key, event_time FROM live_nodes
  WHERE space = :space AND type != 'episodic' AND event_time >= :after AND event_time < :before
    AND (category IS NULL OR category NOT IN ('reflection', 'summary'))
    AND (expires_at IS NULL OR expires_at > :now)
  ORDER BY event_time DESC, key DESC LIMIT :most) ORDER BY event_time, key

-- name: reflections_on
-- The live reflections that rest on one of some memories.
SELECT DISTINCT n.key FROM nodes m JOIN edges e ON e.target = m.key AND e.relation_type = 'derived_from'
  JOIN live_nodes n ON n.key = e.source
WHERE m.key IN (SELECT value FROM json_each(:nodes)) AND n.category = 'reflection' ORDER BY n.key

-- name: extraction_of
-- The run that extracts knowledge from one session while it is open.
SELECT id FROM runs WHERE space = :space AND kind = 'extraction' AND model = :model
  AND json_array_length(sessions) = (:session IS NOT NULL) AND json_extract(sessions, '$[0]') IS :session
ORDER BY key DESC LIMIT 1

-- name: messages_read
-- The given messages of a session that the model has already seen during extraction.
SELECT DISTINCT e.value FROM runs r, json_each(r.items) i, json_each(i.value, '$[4]') e
WHERE r.space = :space AND r.kind = 'extraction' AND r.model = :model
  AND json_extract(r.sessions, '$[0]') IS :session AND i.value ->> 0 = 'looked'
  AND e.value IN (SELECT value FROM json_each(:keys))

-- name: receipt_put
INSERT INTO receipts (id, space, in_chat, trust, verb, at, commit_number, asked, setup, given, left_out)
VALUES (:id, :space, :in_chat, :trust, :verb, :at, :commit_number, :asked, :setup, :given, :left_out)
ON CONFLICT DO NOTHING

-- name: receipts_listed
-- Of one caller, latest first, without standing questions.
SELECT r.id, s.owner, r.in_chat, r.trust, r.verb, r.at, r.commit_number, r.asked, r.setup, r.given, r.left_out
FROM receipts r JOIN spaces s ON s.key = r.space
WHERE r.space = :space AND r.id < :before AND r.verb != 'standing' ORDER BY r.id DESC LIMIT :most

-- name: receipts_standing
-- The standing questions of one caller, oldest first. A dropped one has no question.
SELECT r.id, s.owner, r.in_chat, r.trust, r.verb, r.at, r.commit_number, r.asked, r.setup, r.given, r.left_out
FROM receipts r JOIN spaces s ON s.key = r.space
WHERE r.space = :space AND r.verb = 'standing' AND r.asked != '{}' ORDER BY r.id

-- name: receipt_by_id
-- Or by a beginning or an end of the id.
SELECT r.id, s.owner, r.in_chat, r.trust, r.verb, r.at, r.commit_number, r.asked, r.setup, r.given, r.left_out
FROM receipts r JOIN spaces s ON s.key = r.space
WHERE r.space = :space AND r.verb != 'standing'
  AND (r.id = :id OR :part != '' AND (substr(replace(r.id, '-', ''), 1, length(:part)) = :part
    OR substr(replace(r.id, '-', ''), -length(:part)) = :part
    OR substr(replace(r.id, '-', ''), -8, length(:part)) = :part)) ORDER BY r.id = :id DESC LIMIT 2

-- name: receipts_expire
-- Standing questions stay until they are dropped.
DELETE FROM receipts WHERE space = :space AND at < :before AND (verb != 'standing' OR asked = '{}') RETURNING 1

-- name: receipts_asked
-- What the callers asked who saw a space: its owner, everybody in a chat, or its members.
SELECT id, asked, given, left_out FROM receipts
WHERE asked != '{}' AND (space = :space OR (in_chat != '' AND in_chat = (SELECT chat FROM spaces WHERE key = :space))
  OR space IN (SELECT o.key FROM members m JOIN spaces o ON o.owner = m.member AND o.chat = '' WHERE m.space = :space))

-- name: receipts_all
SELECT id, verb, asked, setup, given, left_out FROM receipts

-- name: receipt_rewrite
UPDATE receipts SET asked = :asked, setup = :setup, given = :given, left_out = :left_out WHERE id = :id

-- name: receipt_answer
-- The latest answer to a standing question that was not dropped meanwhile.
UPDATE receipts SET at = :at, commit_number = :commit_number, setup = :setup, given = :given
WHERE id = :id AND verb = 'standing' AND asked != '{}' RETURNING 1

-- name: receipts_unanswer
-- The answers to standing questions of callers who see a space: its owner, everybody in a chat, or its members.
UPDATE receipts SET setup = '{}' WHERE verb = 'standing' AND setup != '{}'
  AND (space = :space OR (in_chat != '' AND in_chat = (SELECT chat FROM spaces WHERE key = :space))
  OR space IN (SELECT o.key FROM members m JOIN spaces o ON o.owner = m.member AND o.chat = '' WHERE m.space = :space))

-- name: ids_known
-- The ids that are in a row or a former version of one.
SELECT id FROM nodes WHERE id IN (SELECT value FROM json_each(:ids))
UNION SELECT id FROM entities WHERE id IN (SELECT value FROM json_each(:ids))
UNION SELECT before ->> 'id' FROM history
WHERE tbl IN ('nodes', 'entities') AND before ->> 'id' IN (SELECT value FROM json_each(:ids))

-- name: commit_seen
-- The last commit that a caller sees.
SELECT max(seq) FROM commits WHERE space IN (SELECT value FROM json_each(:spaces))
