-- Rows of each owner by the server itself, besides the conditions of the statements. Policies apply to roles that neither
-- own the tables nor do upkeep; `admit` grants two such roles their rights.

-- The spaces that the transaction may see (see `see`).
CREATE FUNCTION seen() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE
  RETURN coalesce(string_to_array(nullif(current_setting('ricordo.spaces', true), ''), ',')::bigint[], '{}');

-- Let a transaction see what a caller sees: the caller's own space, and that of the present chat ('' for none).
CREATE FUNCTION see(of_owner text, of_chat text) RETURNS void LANGUAGE sql AS $$
  SELECT set_config('ricordo.owner', of_owner, true), set_config('ricordo.chat', of_chat, true);
  SELECT set_config('ricordo.spaces', coalesce((SELECT string_agg(key::text, ',') FROM main.spaces
    WHERE (owner, chat) IN ((of_owner, ''), ('', of_chat))), ''), true);
$$;
-- Whether a row of an owner or a chat belongs to the caller.
CREATE FUNCTION is_own(of_owner text, of_chat text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
  RETURN (of_owner, of_chat) IN ((current_setting('ricordo.owner', true), ''), ('', current_setting('ricordo.chat', true)))
    AND (of_owner != '' OR of_chat != '');
CREATE FUNCTION see_new_space() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('ricordo.spaces', concat_ws(',', nullif(current_setting('ricordo.spaces', true), ''), NEW.key), true);
  RETURN NULL;
END $$;
CREATE TRIGGER see_new_space AFTER INSERT ON spaces FOR EACH ROW EXECUTE FUNCTION see_new_space();

-- The space of a memory, also of one that was removed: for what its history holds.
CREATE FUNCTION space_of_node(of_node bigint) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER
  RETURN coalesce((SELECT space FROM main.nodes WHERE key = of_node), (SELECT (before ->> 'space')::bigint FROM main.history
    WHERE tbl = 'nodes' AND row = of_node::text LIMIT 1));

-- Those of these ids that exist, of any owner, since ids are unique in the whole store; the text is the caller's own alone.
CREATE FUNCTION ids_taken(ids text) RETURNS TABLE (id text, space bigint, content text) LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
  SELECT n.id, n.space, CASE WHEN n.space = ANY (main.seen()) THEN n.content END FROM main.nodes n
  WHERE n.id = ANY (main.texts(ids));
END;

-- Numbers of the whole store that every reader needs: the head of the chain, and how far the indexes have come.
CREATE VIEW chain_head AS SELECT seq, hash FROM commits ORDER BY seq DESC LIMIT 1;
CREATE VIEW past.chain_head AS SELECT seq, hash FROM main.commits WHERE seq <= main.as_of() ORDER BY seq DESC LIMIT 1;
CREATE VIEW positions AS SELECT (SELECT max(node) FROM traits) AS turn, (SELECT max(id) FROM embeddings) AS embedding,
  (SELECT max(key) FROM erasures) AS erasure;

-- The nodes that hold a term, of the spaces that the transaction may see. Below a policy the index of terms cannot be used,
-- because its operators may show what they compare.
CREATE FUNCTION live_holders(match text, most bigint) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
  RETURN (SELECT string_agg(node::text, ',' ORDER BY node) FROM (SELECT node FROM main.words
    WHERE is_live AND terms && main.quoted(match) AND space = ANY (main.seen()) ORDER BY node LIMIT nullif(most, -1)));
CREATE FUNCTION closed_holders(match text, most bigint) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
  RETURN (SELECT string_agg(node::text, ',' ORDER BY node) FROM (SELECT node FROM main.words
    WHERE NOT is_live AND terms && main.quoted(match) AND space = ANY (main.seen()) ORDER BY node LIMIT nullif(most, -1)));

-- Give a table its policies: what the caller sees by a rule, and everything for the owner of the tables and upkeep.
CREATE FUNCTION guard(name text, rule text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  roles text := (SELECT string_agg(quote_ident(r.rolname), ', ') FROM pg_policy p, unnest(p.polroles) u, pg_roles r
    WHERE r.oid = u AND p.polname = 'everything' AND p.polrelid = 'main.spaces'::regclass);
BEGIN
  EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
  EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
  EXECUTE format('CREATE POLICY of_owner ON %I USING (%s)', name, rule);
  EXECUTE format('CREATE POLICY everything ON %I TO %s USING (true)', name, coalesce(roles, 'CURRENT_USER'));
END $$;

-- Let a role work for callers, one at a time, and another one do upkeep for all of them. Run it as the owner of the tables.
CREATE PROCEDURE admit(callers text, upkeep text) LANGUAGE plpgsql AS $$
DECLARE
  role text;
  name text;
BEGIN
  FOREACH role IN ARRAY ARRAY[callers, upkeep] LOOP
    FOREACH name IN ARRAY string_to_array('main. past.', ' ') LOOP
      name := rtrim(name, '.');
      EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', name, role);
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %I', name, role);
      EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %s TO %I', name, role);
      EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %s GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %I', name, role);
      EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %s GRANT USAGE ON SEQUENCES TO %I', name, role);
      IF current_setting('server_version_num')::int >= 170000 THEN
        EXECUTE format('GRANT MAINTAIN ON ALL TABLES IN SCHEMA %s TO %I', name, role);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %s GRANT MAINTAIN ON TABLES TO %I', name, role);
      END IF;
    END LOOP;
  END LOOP;
  FOR name IN SELECT polrelid::regclass FROM pg_policy JOIN pg_class c ON c.oid = polrelid
    WHERE polname = 'everything' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'main.spaces'::regclass) LOOP
    EXECUTE format('ALTER POLICY everything ON %s TO CURRENT_USER, %I', name, upkeep);
  END LOOP;
END $$;

SELECT guard('spaces', 'is_own(owner, chat)');
SELECT guard('off_record', 'is_own(owner, chat)');
SELECT guard(name, 'space = ANY (seen())') FROM unnest(ARRAY['commits', 'sessions', 'nodes', 'entities', 'aliases', 'relations',
  'reviews', 'runs', 'failures', 'slots', 'linked', 'traits', 'relations_to_link', 'shelves', 'embeddings', 'centres', 'proposals',
  'erasures', 'erased_ids', 'erasing', 'withheld', 'withheld_prints', 'model_calls', 'words', 'receipts']) name;
SELECT guard(name, 'EXISTS (SELECT 1 FROM nodes n WHERE n.key = ' || name || '.node)')
  FROM unnest(ARRAY['subjects', 'found_mentions', 'associates', 'usage', 'withheld_spans']) name;
SELECT guard('edges', 'EXISTS (SELECT 1 FROM nodes n WHERE n.key = source)');
SELECT guard('entity_counts', 'EXISTS (SELECT 1 FROM entities e WHERE e.key = entity)');
SELECT guard(name, 'EXISTS (SELECT 1 FROM embeddings e WHERE e.id = embedding)')
  FROM unnest(ARRAY['word_vectors', 'passage_vectors']) name;
SELECT guard('history', $$coalesce((before ->> 'space')::bigint,
  space_of_node(coalesce(before ->> 'source', before ->> 'node')::bigint)) = ANY (seen())$$);
SELECT guard('erased', 'EXISTS (SELECT 1 FROM commits c WHERE c.seq = made)');
SELECT guard('to_erase', 'EXISTS (SELECT 1 FROM erasing e WHERE e.key = to_erase.erasing)');
SELECT guard('floors', $$translate(spaces, '[] ', '{}')::bigint[] <@ seen()$$);

-- Views ask with the rights of who reads them, not with those of their owner.
ALTER VIEW live_nodes SET (security_invoker = true);
ALTER VIEW live_entities SET (security_invoker = true);
ALTER VIEW mentions SET (security_invoker = true);
ALTER VIEW past.nodes SET (security_invoker = true);
ALTER VIEW past.edges SET (security_invoker = true);
ALTER VIEW past.sessions SET (security_invoker = true);
ALTER VIEW past.entities SET (security_invoker = true);
ALTER VIEW past.aliases SET (security_invoker = true);
ALTER VIEW past.relations SET (security_invoker = true);
ALTER VIEW past.subjects SET (security_invoker = true);
ALTER VIEW past.reviews SET (security_invoker = true);
ALTER VIEW past.runs SET (security_invoker = true);
ALTER VIEW past.erasures SET (security_invoker = true);
ALTER VIEW past.commits SET (security_invoker = true);
ALTER VIEW past.history SET (security_invoker = true);
ALTER VIEW past.live_nodes SET (security_invoker = true);
ALTER VIEW past.live_entities SET (security_invoker = true);
