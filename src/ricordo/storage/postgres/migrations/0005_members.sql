-- The members of shared spaces, as in the schema of a file; see decision 38.
CREATE TABLE members (
  space      bigint NOT NULL REFERENCES spaces DEFERRABLE,
  member     text COLLATE "C" NOT NULL,
  role       text COLLATE "C" NOT NULL CHECK (role IN ('reader', 'writer', 'keeper', 'none')),
  changed_at bigint NOT NULL,
  commit_seq bigint NOT NULL REFERENCES commits DEFERRABLE,
  seal       bytea NOT NULL,
  PRIMARY KEY (space, member)
);
CREATE INDEX members_by_member ON members (member);
CREATE INDEX members_by_commit ON members (commit_seq);
CREATE TRIGGER members_history BEFORE UPDATE OR DELETE ON members
  FOR EACH ROW EXECUTE FUNCTION keep_history('space', 'member');
CREATE VIEW past.members AS SELECT * FROM main.members WHERE commit_seq <= main.as_of()
  UNION ALL SELECT r.* FROM main.history h, jsonb_populate_record(NULL::main.members, h.before - 'seal') r
    WHERE h.tbl = 'members' AND h.seq > main.as_of() AND h.made <= main.as_of();
ALTER VIEW past.members SET (security_invoker = true);
SELECT guard('members', 'space = ANY (seen())');

-- Whether a space is shared: a caller who is not a member may ask, too.
CREATE FUNCTION is_shared(of_space bigint) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
  RETURN EXISTS (SELECT 1 FROM main.members WHERE space = of_space);

-- The members of a space: every change in it is checked against them, also one by a caller who is not a member.
CREATE FUNCTION members_of(of_space bigint) RETURNS TABLE (chat text, member text, role text, changed_at bigint)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
  SELECT s.chat, m.member, m.role, m.changed_at FROM main.members m JOIN main.spaces s ON s.key = m.space
  WHERE m.space = of_space ORDER BY m.member;
END;

-- The spaces that a caller sees: the caller's own, that of the present chat ('' for none), and the shared ones that the caller is
-- a member of: all for '*', those of a JSON list, or none for '-', the space itself at work in the background.
CREATE FUNCTION spaces_seen(of_owner text, of_chat text, shared text) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
  RETURN (SELECT coalesce(string_agg(s.key::text, ','), '') FROM main.spaces s
    LEFT JOIN main.members m ON m.space = s.key AND m.member = of_owner AND m.role != 'none' AND of_owner != ''
    WHERE (s.owner = of_owner AND s.chat = '' AND of_owner != '')
      OR (s.owner = '' AND s.chat = of_chat AND of_chat != ''
        AND (m.member IS NOT NULL OR shared = '-' OR NOT main.is_shared(s.key)))
      OR (m.member IS NOT NULL AND (shared = '*' OR (shared LIKE '[%' AND shared::jsonb ? s.chat))));

DROP FUNCTION see(text, text);
CREATE FUNCTION see(of_owner text, of_chat text, shared text DEFAULT '*') RETURNS void LANGUAGE sql AS $$
  SELECT set_config('ricordo.owner', of_owner, true), set_config('ricordo.chat', of_chat, true);
  SELECT set_config('ricordo.spaces', main.spaces_seen(of_owner, of_chat, shared), true);
$$;
DROP POLICY of_owner ON spaces;
CREATE POLICY of_owner ON spaces USING (is_own(owner, chat) OR key = ANY (seen()));
