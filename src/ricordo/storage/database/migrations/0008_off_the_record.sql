-- Off the record: when a person is, in one chat ('' for everywhere) and one session ('' for all). A pause stays after its end, since
-- what was said in it may arrive later, in the log of a session.
DROP TRIGGER IF EXISTS off_record_sum_insert;
DROP TRIGGER IF EXISTS off_record_sum_update;
DROP TRIGGER IF EXISTS off_record_sum_delete;
ALTER TABLE off_record RENAME TO before_8;
CREATE TABLE off_record (
  owner      TEXT NOT NULL,
  chat       TEXT NOT NULL,
  session_id TEXT NOT NULL,
  begun_at   INTEGER NOT NULL DEFAULT 0,  -- 0: unknown
  ended_at   INTEGER,
  PRIMARY KEY (owner, chat, session_id, begun_at)
) STRICT, WITHOUT ROWID;
UPDATE sums SET total = 0 WHERE tbl = 'off_record';
CREATE TRIGGER off_record_sum_insert AFTER INSERT ON off_record BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.owner, NEW.chat, NEW.session_id, NEW.begun_at, NEW.ended_at)) & 4611686018427387903 WHERE tbl = 'off_record';
END;
CREATE TRIGGER off_record_sum_update AFTER UPDATE ON off_record BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.owner, NEW.chat, NEW.session_id, NEW.begun_at, NEW.ended_at) - row_sum(
    OLD.owner, OLD.chat, OLD.session_id, OLD.begun_at, OLD.ended_at)) & 4611686018427387903 WHERE tbl = 'off_record';
END;
CREATE TRIGGER off_record_sum_delete AFTER DELETE ON off_record BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.owner, OLD.chat, OLD.session_id, OLD.begun_at, OLD.ended_at)) & 4611686018427387903 WHERE tbl = 'off_record';
END;
INSERT INTO off_record (owner, chat, session_id) SELECT owner, chat, session_id FROM before_8;
DROP TABLE before_8;
