-- A version that is already closed can be forgotten, too, and be a replaced one again.
DROP TRIGGER nodes_withheld_no_more;
CREATE TRIGGER nodes_withheld_no_more AFTER UPDATE OF closed_at, closed_reason ON nodes
WHEN (OLD.closed_at IS NOT NULL AND NEW.closed_at IS NULL)
  OR (OLD.closed_reason IS 'forgotten' AND NEW.closed_reason IS NOT 'forgotten') BEGIN
  UPDATE withheld SET is_lifted = 1 WHERE node = NEW.key;
END;
DROP TRIGGER nodes_withheld_again;
CREATE TRIGGER nodes_withheld_again AFTER UPDATE OF closed_at, closed_reason ON nodes
WHEN OLD.closed_reason IS NOT 'forgotten' AND NEW.closed_reason IS 'forgotten' BEGIN
  UPDATE withheld SET is_lifted = 0 WHERE node = NEW.key;
END;
