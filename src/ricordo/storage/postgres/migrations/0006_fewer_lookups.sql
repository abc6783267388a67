-- Statements that went through all spaces, or all memories of a caller, use indexes.

-- The spaces that a caller sees: the caller's own, that of the present chat ('' for none), and the shared ones that the caller is
-- a member of: all for '*', those of a JSON list, or none for '-', the space itself at work in the background.
CREATE OR REPLACE FUNCTION spaces_seen(of_owner text, of_chat text, shared text) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
  RETURN (SELECT coalesce(string_agg(key::text, ','), '') FROM (
    SELECT own.key FROM main.spaces own WHERE own.owner = of_owner AND own.chat = '' AND of_owner != ''
    UNION
    SELECT chat.key FROM main.spaces chat WHERE chat.owner = '' AND chat.chat = of_chat AND of_chat != ''
      AND (shared = '-' OR NOT main.is_shared(chat.key))
    UNION
    SELECT s.key FROM main.members m JOIN main.spaces s ON s.key = m.space
    WHERE m.member = of_owner AND m.role != 'none' AND of_owner != '' AND ((s.owner = '' AND s.chat = of_chat AND of_chat != '')
      OR shared = '*' OR (shared LIKE '[%' AND shared::jsonb ? s.chat))) AS seen);

-- The latest live memories about one entity and those that name it, of the spaces that the transaction may see. Below the policies
-- of mentions and memories, PostgreSQL looks up every memory of the caller for it.
CREATE FUNCTION near_entity(of_entity bigint, walk bigint)
RETURNS TABLE (key bigint, shelf text, confidence double precision, score double precision)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
  SELECT n.key, n.shelf, n.confidence, n.score FROM (
      SELECT node FROM (SELECT s.node FROM main.subjects s WHERE s.entity = of_entity ORDER BY s.node DESC LIMIT walk) about
      UNION
      SELECT node FROM (SELECT f.node FROM main.found_mentions f WHERE f.entity = of_entity ORDER BY f.node DESC LIMIT walk) named
    ) AS walked
    CROSS JOIN LATERAL (SELECT m.key, m.shelf, m.confidence, m.score FROM main.nodes m
      WHERE m.key = walked.node AND m.closed_at IS NULL AND m.space = ANY (main.seen()) OFFSET 0) AS n;
END;
