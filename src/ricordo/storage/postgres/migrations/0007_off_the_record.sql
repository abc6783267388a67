-- When a person is off the record, as in the schema of a file: a person's own rows, whatever chat they are about.
ALTER TABLE off_record ADD COLUMN begun_at bigint NOT NULL DEFAULT 0, ADD COLUMN ended_at bigint;
ALTER TABLE off_record DROP CONSTRAINT off_record_pkey, ADD PRIMARY KEY (owner, chat, session_id, begun_at);
DROP POLICY of_owner ON off_record;
CREATE POLICY of_owner ON off_record USING (is_own(owner, CASE WHEN owner = '' THEN chat ELSE '' END));
