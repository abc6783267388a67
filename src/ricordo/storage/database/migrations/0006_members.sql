-- The members of shared spaces; see decision 38. A space with such a row is shared: only its members read it. A row of somebody
-- who left stays, so that a space never becomes an open chat again.
CREATE TABLE members (
  space      INTEGER NOT NULL REFERENCES spaces,
  member     TEXT NOT NULL,
  role       TEXT NOT NULL CHECK (role IN ('reader', 'writer', 'keeper', 'none')),
  changed_at INTEGER NOT NULL,
  commit_seq INTEGER NOT NULL REFERENCES commits,
  seal       BLOB NOT NULL,
  PRIMARY KEY (space, member)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_member ON members (member);
CREATE INDEX members_by_commit ON members (commit_seq);

CREATE TRIGGER members_history_update BEFORE UPDATE ON members BEGIN
  INSERT INTO history VALUES (NEW.commit_seq, 'members',
    OLD.space || '>' || OLD.member, json_object(
    'space', OLD.space, 'member', OLD.member, 'role', OLD.role, 'changed_at', OLD.changed_at, 'commit_seq', OLD.commit_seq,
    'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER members_history_delete BEFORE DELETE ON members BEGIN
  INSERT INTO history VALUES ((SELECT max(seq) FROM commits), 'members',
    OLD.space || '>' || OLD.member, json_object(
    'space', OLD.space, 'member', OLD.member, 'role', OLD.role, 'changed_at', OLD.changed_at, 'commit_seq', OLD.commit_seq,
    'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
