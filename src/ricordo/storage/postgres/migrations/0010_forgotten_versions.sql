-- A version that is already closed can be forgotten, too, and be a replaced one again.
CREATE OR REPLACE FUNCTION nodes_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  closes boolean := OLD.closed_at IS NULL AND NEW.closed_at IS NOT NULL;
  opens boolean := OLD.closed_at IS NOT NULL AND NEW.closed_at IS NULL;
BEGIN
  IF OLD.closed_at IS NULL THEN
    UPDATE shelves SET nodes = nodes - 1, chars = chars - char_count(OLD.content)
      WHERE space = OLD.space AND shelf = OLD.shelf;
  END IF;
  IF NEW.closed_at IS NULL THEN
    INSERT INTO shelves VALUES (NEW.space, NEW.shelf, 1, char_count(NEW.content))
      ON CONFLICT (space, shelf) DO UPDATE SET nodes = shelves.nodes + 1, chars = shelves.chars + excluded.chars;
  END IF;
  IF closes OR opens THEN
    UPDATE entity_counts SET nodes = nodes + CASE WHEN opens THEN 1 ELSE -1 END WHERE entity IN (
      SELECT entity FROM subjects WHERE node = NEW.key UNION SELECT entity FROM found_mentions WHERE node = NEW.key);
  END IF;
  IF OLD.content IS DISTINCT FROM NEW.content THEN
    DELETE FROM embeddings WHERE node = NEW.key;
  END IF;
  IF closes THEN
    INSERT INTO removals (node, model) VALUES (NEW.key, NULL);
  END IF;
  IF NEW.closed_at IS NULL AND (opens OR OLD.shelf IS DISTINCT FROM NEW.shelf OR OLD.space IS DISTINCT FROM NEW.space) THEN
    INSERT INTO removals (node, model) VALUES (NEW.key, NULL);
    UPDATE embeddings SET space = NEW.space, shelf = NEW.shelf, id = nextval('embeddings_id_seq') WHERE node = NEW.key;
  END IF;
  IF NEW.closed_reason = 'forgotten' AND OLD.closed_reason IS DISTINCT FROM 'forgotten' THEN
    UPDATE withheld SET is_lifted = 0 WHERE node = NEW.key;
  ELSIF opens OR (OLD.closed_reason = 'forgotten' AND NEW.closed_reason IS DISTINCT FROM 'forgotten') THEN
    UPDATE withheld SET is_lifted = 1 WHERE node = NEW.key;
  END IF;
  IF OLD.content IS DISTINCT FROM NEW.content OR OLD.speaker IS DISTINCT FROM NEW.speaker THEN
    INSERT INTO to_link (node) VALUES (NEW.key);
  END IF;
  RETURN NULL;
END $$;
