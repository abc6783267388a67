-- The spaces that a transaction may see are worked out once in a statement. In a bare call PostgreSQL works them out again for
-- every row that an index on another column finds.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['commits', 'sessions', 'nodes', 'entities', 'aliases', 'relations', 'reviews', 'runs', 'failures',
      'slots', 'linked', 'traits', 'relations_to_link', 'shelves', 'embeddings', 'centres', 'proposals', 'erasures', 'erased_ids',
      'erasing', 'withheld', 'withheld_prints', 'model_calls', 'words', 'receipts', 'exchanged', 'stamps', 'unplaced', 'members'] LOOP
    EXECUTE format('ALTER POLICY of_owner ON %I USING (space = ANY ((SELECT seen())::bigint[]))', name);
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION live_holders(match text, most bigint) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
  RETURN (SELECT string_agg(node::text, ',' ORDER BY node) FROM (SELECT node FROM main.words WHERE is_live
    AND terms && main.quoted(match) AND space = ANY ((SELECT main.seen())::bigint[]) ORDER BY node LIMIT nullif(most, -1)));
CREATE OR REPLACE FUNCTION closed_holders(match text, most bigint) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
  RETURN (SELECT string_agg(node::text, ',' ORDER BY node) FROM (SELECT node FROM main.words WHERE NOT is_live
    AND terms && main.quoted(match) AND space = ANY ((SELECT main.seen())::bigint[]) ORDER BY node LIMIT nullif(most, -1)));
