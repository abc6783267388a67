-- A checksum over the counts and time spans of entities, like those of the tables without seals. The spans are wider than the
-- memories that name an entity today, so they cannot be compared with those.
INSERT INTO sums SELECT 'entity_counts', (((coalesce(sum(one >> 31), 0) << 31) & 4611686018427387903)
  + coalesce(sum(one & 2147483647), 0)) & 4611686018427387903
FROM (SELECT row_sum(entity, nodes, first_at, last_at) AS one FROM entity_counts);
CREATE TRIGGER entity_counts_sum_insert AFTER INSERT ON entity_counts BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.entity, NEW.nodes, NEW.first_at, NEW.last_at)) & 4611686018427387903 WHERE tbl = 'entity_counts';
END;
CREATE TRIGGER entity_counts_sum_update AFTER UPDATE ON entity_counts BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.entity, NEW.nodes, NEW.first_at, NEW.last_at) - row_sum(
    OLD.entity, OLD.nodes, OLD.first_at, OLD.last_at)) & 4611686018427387903 WHERE tbl = 'entity_counts';
END;
CREATE TRIGGER entity_counts_sum_delete AFTER DELETE ON entity_counts BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.entity, OLD.nodes, OLD.first_at, OLD.last_at)) & 4611686018427387903 WHERE tbl = 'entity_counts';
END;
