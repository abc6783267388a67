-- The chats that the caller sees, and those without members in which the caller wrote: policies hide the latter while another
-- chat is the present one.
CREATE FUNCTION chats_of(of_owner text) RETURNS TABLE (chat text, messages bigint, facts bigint, last_at bigint)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
  SELECT s.chat,
    (SELECT count(*) FROM main.nodes n WHERE n.space = s.key AND n.closed_at IS NULL AND n.type = 'episodic'),
    (SELECT count(*) FROM main.nodes n WHERE n.space = s.key AND n.closed_at IS NULL AND n.type != 'episodic'),
    (SELECT c.at FROM main.commits c WHERE c.space = s.key ORDER BY c.seq DESC LIMIT 1) AS last_at
  FROM main.spaces s
  WHERE s.owner = '' AND EXISTS (SELECT 1 FROM main.commits c WHERE c.space = s.key)
    AND (s.key = ANY (main.seen())
      OR (EXISTS (SELECT 1 FROM main.commits c WHERE c.space = s.key AND c.actor IN (of_owner, of_owner || ' (agent)'))
        AND of_owner = current_setting('ricordo.owner', true)
        AND NOT EXISTS (SELECT 1 FROM main.members m WHERE m.space = s.key)))
  ORDER BY last_at DESC, s.chat;
END;
