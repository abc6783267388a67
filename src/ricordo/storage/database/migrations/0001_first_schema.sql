-- The first schema. STRICT tables, explicit integer keys, public ids as sortable UUIDv7 text.
--
-- Durable tables (nodes, edges, sessions, entities, aliases, relations, subjects, reviews, runs, erasures): every row carries
-- the commit that wrote it and a seal (8 bytes of salt, 16 of hash), and leaves its before-image in `history` when it is
-- changed or removed.
-- Derived tables (full text, features, slots, embeddings, segments, rule-made mentions, counts): no history; they can be rebuilt.

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- How often a turn was changed or removed: readers that cache turns check it.
INSERT INTO meta VALUES ('turns_changed', '0');

-- The tenant of a row. Everything that is looked up or counted has it as the first key.
CREATE TABLE spaces (
  key   INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  chat  TEXT NOT NULL,
  UNIQUE (owner, chat)
) STRICT;

CREATE TABLE commits (
  seq    INTEGER PRIMARY KEY AUTOINCREMENT,
  space  INTEGER NOT NULL REFERENCES spaces,
  at     INTEGER NOT NULL,
  actor  TEXT NOT NULL,
  origin TEXT NOT NULL,
  reason TEXT NOT NULL,
  run_id TEXT,                   -- of the run it was part of, which is undone as one
  seal   BLOB NOT NULL,          -- salt and hash over actor and reason; the hash alone once these were erased
  digest BLOB NOT NULL,          -- over the seals of the rows this commit wrote, and the versions it replaced
  hash   BLOB NOT NULL           -- over the previous commit's hash and this row: the chain
) STRICT;
CREATE INDEX commits_by_space ON commits (space, seq);
CREATE INDEX commits_by_run ON commits (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE history (
  seq    INTEGER NOT NULL,       -- the commit that replaced or removed the row
  tbl    TEXT NOT NULL,
  row    TEXT NOT NULL,          -- the key of the row, as text; the parts of a longer one with '>' between them
  before TEXT NOT NULL,          -- the whole row as JSON, the parts of a longer key included
  made   INTEGER GENERATED ALWAYS AS (json_extract(before, '$.commit_seq')) VIRTUAL,  -- the commit that wrote it so
  PRIMARY KEY (tbl, row, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX history_by_commit ON history (seq);
CREATE INDEX history_by_making ON history (made);

CREATE TABLE sessions (
  key             INTEGER PRIMARY KEY,
  space           INTEGER NOT NULL REFERENCES spaces,
  session_id      TEXT NOT NULL,
  first_seen_at   INTEGER NOT NULL,
  ended_at        INTEGER,
  consolidated_at INTEGER,
  summary         TEXT,
  commit_seq      INTEGER NOT NULL REFERENCES commits,
  seal            BLOB NOT NULL,
  UNIQUE (space, session_id)
) STRICT;
CREATE INDEX sessions_by_commit ON sessions (commit_seq);

-- For an IN of three values or more SQLite builds a tree at each row, which took longer than the rest of an insert. So the
-- most frequent value is compared first.
CREATE TABLE nodes (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: indexes in other processes hold it
  id            TEXT NOT NULL UNIQUE,
  space         INTEGER NOT NULL REFERENCES spaces,
  shelf         TEXT NOT NULL CHECK (shelf = 'e' OR shelf IN ('k', 'c')),  -- knowledge, episode, consolidated episode
  type          TEXT NOT NULL CHECK (type = 'episodic' OR type IN ('semantic', 'procedural', 'opinion')),
  category      TEXT CHECK (category IS NULL OR category IN ('preference', 'identity', 'relationship', 'knowledge',
                  'reflection', 'summary', 'context', 'event', 'task', 'observation')),
  content       TEXT NOT NULL,
  source_type   TEXT NOT NULL,
  source_role   TEXT,
  speaker       TEXT,
  session       INTEGER REFERENCES sessions,
  tags          TEXT NOT NULL DEFAULT '[]',
  attributes    TEXT NOT NULL DEFAULT '{}',
  event_time    INTEGER NOT NULL,
  created_at    INTEGER NOT NULL,
  valid_from    INTEGER NOT NULL,
  valid_until   INTEGER,
  expires_at    INTEGER,
  closed_at     INTEGER,
  closed_reason TEXT,
  confidence    REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  decay_rate    REAL NOT NULL,
  score         REAL NOT NULL DEFAULT 0 CHECK (score BETWEEN -10 AND 10),
  reinforced_at INTEGER,         -- when it last proved useful: age counts from here
  commit_seq    INTEGER NOT NULL REFERENCES commits,
  seal          BLOB NOT NULL,
  CHECK ((closed_at IS NULL) = (closed_reason IS NULL))
) STRICT;
-- The order of the live nodes of a session: the turns around another are read from this index alone.
CREATE INDEX nodes_by_session ON nodes (session, event_time, key, closed_at)
  WHERE session IS NOT NULL AND closed_at IS NULL;
CREATE INDEX nodes_by_time ON nodes (space, event_time);
CREATE INDEX nodes_by_space ON nodes (space, key);
CREATE INDEX nodes_reinforced ON nodes (space, reinforced_at) WHERE reinforced_at IS NOT NULL;
CREATE INDEX nodes_closed ON nodes (space, closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX nodes_by_commit ON nodes (commit_seq);
CREATE INDEX nodes_knowledge ON nodes (space, type, category) WHERE type != 'episodic';

CREATE TABLE edges (
  source        INTEGER NOT NULL REFERENCES nodes,
  relation_type TEXT NOT NULL CHECK (relation_type IN ('causal', 'entity', 'derived_from', 'supersedes')),
  target        INTEGER NOT NULL REFERENCES nodes,
  predicate     TEXT,
  weight        REAL NOT NULL,
  confidence    REAL NOT NULL,
  valid_from    INTEGER NOT NULL,
  valid_until   INTEGER,
  evidence      TEXT NOT NULL DEFAULT '[]',
  created_at    INTEGER NOT NULL,
  closed_at     INTEGER,
  commit_seq    INTEGER NOT NULL REFERENCES commits,
  seal          BLOB NOT NULL,
  PRIMARY KEY (source, relation_type, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_back ON edges (target, relation_type, source);
CREATE INDEX edges_causal ON edges (source) WHERE relation_type = 'causal';
CREATE INDEX edges_by_commit ON edges (commit_seq);

CREATE TABLE entities (
  key            INTEGER PRIMARY KEY AUTOINCREMENT,
  id             TEXT NOT NULL UNIQUE,
  space          INTEGER NOT NULL REFERENCES spaces,
  type           TEXT NOT NULL CHECK (type IN ('person', 'project', 'organization', 'place', 'concept', 'tool')),
  canonical_name TEXT NOT NULL,
  summary        TEXT,
  protected      INTEGER NOT NULL DEFAULT 0,
  attributes     TEXT NOT NULL DEFAULT '{}',
  first_seen     INTEGER NOT NULL,
  last_updated   INTEGER NOT NULL,
  closed_at      INTEGER,
  merged_into    INTEGER REFERENCES entities,  -- whose names, memories and relations its own are since it was merged
  commit_seq     INTEGER NOT NULL REFERENCES commits,
  seal           BLOB NOT NULL,
  CHECK (merged_into IS NULL OR closed_at IS NOT NULL)
) STRICT;
CREATE INDEX entities_by_space ON entities (space) WHERE closed_at IS NULL;
CREATE INDEX entities_by_commit ON entities (commit_seq);
CREATE INDEX entities_merged ON entities (merged_into) WHERE merged_into IS NOT NULL;

-- Every name of an entity, including its canonical one, folded like text.
CREATE TABLE aliases (
  space      INTEGER NOT NULL REFERENCES spaces,
  folded     TEXT NOT NULL,
  entity     INTEGER NOT NULL REFERENCES entities,
  alias      TEXT NOT NULL,
  sound      TEXT NOT NULL,      -- roughly the same for the same name in another script
  commit_seq INTEGER NOT NULL REFERENCES commits,
  seal       BLOB NOT NULL,
  PRIMARY KEY (space, folded, entity, alias)
) STRICT, WITHOUT ROWID;
CREATE INDEX aliases_of ON aliases (entity);
CREATE INDEX aliases_by_sound ON aliases (space, sound);
CREATE INDEX aliases_by_commit ON aliases (commit_seq);

-- Relations between entities: the owner's wife is Sarah, Sarah works at Acme.
CREATE TABLE relations (
  key         INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT NOT NULL UNIQUE,
  space       INTEGER NOT NULL REFERENCES spaces,
  source      INTEGER REFERENCES entities,  -- NULL: the owner of the space
  predicate   TEXT NOT NULL,
  target      INTEGER NOT NULL REFERENCES entities,
  valid_from  INTEGER,                      -- NULL: always, as far as we know
  valid_until INTEGER,
  evidence    TEXT NOT NULL DEFAULT '[]',   -- ids of the memories that say so
  created_at  INTEGER NOT NULL,
  closed_at   INTEGER,
  commit_seq  INTEGER NOT NULL REFERENCES commits,
  seal        BLOB NOT NULL
) STRICT;
CREATE INDEX relations_of_owner ON relations (space, predicate) WHERE source IS NULL;
CREATE INDEX relations_by_source ON relations (source) WHERE source IS NOT NULL;
CREATE INDEX relations_by_target ON relations (target);
CREATE INDEX relations_by_commit ON relations (commit_seq);

-- The subjects of a memory, as stated.
CREATE TABLE subjects (
  node       INTEGER NOT NULL REFERENCES nodes,
  entity     INTEGER NOT NULL REFERENCES entities,
  name       TEXT NOT NULL DEFAULT '',  -- the name that was used, folded; '' where none was
  commit_seq INTEGER NOT NULL REFERENCES commits,
  seal       BLOB NOT NULL,
  PRIMARY KEY (node, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX subjects_back ON subjects (entity, node);
CREATE INDEX subjects_by_commit ON subjects (commit_seq);

-- Open decisions: two facts that may contradict each other, or one that a rule replaced by the other. While a 'conflict' or a
-- 'same' is open, `newer` ranks before `older`.
CREATE TABLE reviews (
  key        INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL UNIQUE,
  space      INTEGER NOT NULL REFERENCES spaces,
  kind       TEXT NOT NULL CHECK (kind IN ('replaced', 'conflict', 'several', 'same', 'quarantine')),
  newer      INTEGER NOT NULL REFERENCES nodes,
  older      INTEGER REFERENCES nodes,   -- NULL: `newer` is held back, closed as 'quarantined' until it is approved
  created_at INTEGER NOT NULL,
  decided_at INTEGER,
  decision   TEXT CHECK (decision IN ('replace', 'keep both', 'keep old', 'approve', 'refuse')),
  reasons    TEXT NOT NULL DEFAULT '[]', -- why it is held back
  about      TEXT NOT NULL DEFAULT '[]', -- the names it came with, which nobody is known by yet
  commit_seq INTEGER NOT NULL REFERENCES commits,
  seal       BLOB NOT NULL,
  CHECK ((decided_at IS NULL) = (decision IS NULL)),
  CHECK ((older IS NULL) = (kind = 'quarantine'))
) STRICT;
CREATE INDEX reviews_open ON reviews (space, key) WHERE decided_at IS NULL;
CREATE INDEX reviews_newer ON reviews (newer);
CREATE INDEX reviews_held ON reviews (space, newer) WHERE kind = 'quarantine';
CREATE INDEX reviews_older ON reviews (older);
CREATE INDEX reviews_by_commit ON reviews (commit_seq);

-- Consolidation runs, each one unit. A row holds keys and no content: the memories themselves hold what the run made.
CREATE TABLE runs (
  key        INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL UNIQUE,
  space      INTEGER NOT NULL REFERENCES spaces,
  kind       TEXT NOT NULL CHECK (kind IN ('consolidation', 'replay', 'extraction', 'reflection', 'enrichment',
               'causes')),
  model      TEXT NOT NULL,
  prompt     TEXT NOT NULL,      -- which version of the prompts
  sessions   TEXT NOT NULL,      -- JSON: their keys
  started_at INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  tokens_in  INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  cost       REAL,
  items      TEXT NOT NULL,      -- JSON: [what, reason, node, other node, nodes that are its evidence] for each thing
  commit_seq INTEGER NOT NULL REFERENCES commits,
  seal       BLOB NOT NULL
) STRICT;
CREATE INDEX runs_by_space ON runs (space, key);
CREATE INDEX runs_by_commit ON runs (commit_seq);

-- Tokens used by language models per day, for budgets. Undoing a run does not change them. No history.
CREATE TABLE model_use (
  day        TEXT NOT NULL,      -- of the user's time zone, ISO 8601
  model      TEXT NOT NULL,
  calls      INTEGER NOT NULL,
  tokens_in  INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  PRIMARY KEY (day, model)
) STRICT, WITHOUT ROWID;

-- Sessions that could not be consolidated, and why; NULL is for messages without a session. No history.
CREATE TABLE failures (
  key     INTEGER PRIMARY KEY,
  space   INTEGER NOT NULL REFERENCES spaces,
  session INTEGER REFERENCES sessions ON DELETE CASCADE,
  tries   INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  reason  TEXT NOT NULL          -- holds nothing of what was said
) STRICT;
CREATE UNIQUE INDEX failures_by_session ON failures (space, coalesce(session, 0));
CREATE INDEX failures_of_session ON failures (session);

-- Live facts by subjects and statement line, so that similar statements are neighbours. Derived.
CREATE TABLE slots (
  node     INTEGER PRIMARY KEY REFERENCES nodes ON DELETE CASCADE,
  space    INTEGER NOT NULL,
  subjects TEXT NOT NULL,        -- keys of entities, ascending, separated by commas
  line     TEXT NOT NULL
) STRICT;
CREATE INDEX slots_by_line ON slots (space, subjects, line);

-- Names found in a text by rule. Derived.
CREATE TABLE found_mentions (
  node   INTEGER NOT NULL REFERENCES nodes,
  entity INTEGER NOT NULL REFERENCES entities,
  PRIMARY KEY (node, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX found_mentions_back ON found_mentions (entity, node);

-- The number of live memories that name an entity, as subject or in passing, and the time span of all that ever did. Kept by
-- triggers: counting a hundred thousand would make a profile too slow.
CREATE TABLE entity_counts (
  entity   INTEGER PRIMARY KEY REFERENCES entities,
  nodes    INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at  INTEGER NOT NULL
) STRICT;

-- Memories that were useful together, in both directions; the weight moves towards 1 each time. Derived, no history: it
-- affects how a memory is found, never what it says.
CREATE TABLE associates (
  node   INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
  other  INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
  weight REAL NOT NULL,
  PRIMARY KEY (node, other)
) STRICT, WITHOUT ROWID;
CREATE INDEX associates_strongest ON associates (node, weight DESC, other);
CREATE INDEX associates_back ON associates (other);

-- How often a memory was shown, and when last. Written later and lost at a crash without harm. Ranking never reads it: a memory
-- must not become true by being shown.
CREATE TABLE usage (
  node        INTEGER PRIMARY KEY REFERENCES nodes ON DELETE CASCADE,
  count       INTEGER NOT NULL,
  last_access INTEGER NOT NULL
) STRICT;

-- Nodes above this mark have not been searched for mentions yet, per tenant.
CREATE TABLE linked (
  space   INTEGER PRIMARY KEY REFERENCES spaces,
  through INTEGER NOT NULL       -- nodes.key
) STRICT;

-- The features that ranking reads instead of the text: a few dozen bytes, next to those of neighbouring turns. Derived; see
-- ricordo.text.features.
CREATE TABLE traits (
  node       INTEGER PRIMARY KEY,
  space      INTEGER NOT NULL,
  session    INTEGER NOT NULL,   -- 0 outside any
  event_time INTEGER NOT NULL,
  speaker    TEXT,
  traits     BLOB NOT NULL       -- uint32: flags, length in characters, a code for each index term; little-endian
) STRICT;

-- Nodes below that mark to search for names again: their text changed, they were restored, or a name they were linked by was
-- removed. `id` only grows, so entries added while a batch runs are not lost with it.
CREATE TABLE to_link (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  node INTEGER NOT NULL
) STRICT;

-- Relations to owners that were added, changed or removed: texts with "my wife" must be searched again.
CREATE TABLE relations_to_link (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  space     INTEGER NOT NULL,
  predicate TEXT NOT NULL
) STRICT;

-- The number of live nodes per partition: statistics for ranking, per tenant so that tenants do not affect each other.
CREATE TABLE shelves (
  space INTEGER NOT NULL REFERENCES spaces,
  shelf TEXT NOT NULL,
  nodes INTEGER NOT NULL,
  chars INTEGER NOT NULL,
  PRIMARY KEY (space, shelf)
) STRICT, WITHOUT ROWID;

-- Full text. Terms are folded and stemmed and end with their tenant and partition ("peanut·1k"). So the ASCII tokenizer only
-- splits at blanks, a search reads no row of another owner, and term statistics are per owner.
CREATE VIRTUAL TABLE nodes_fts USING fts5 (
  terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE archive_fts USING fts5 (
  terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);

CREATE TABLE models (
  key       INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: other processes hold vectors by it
  name      TEXT NOT NULL,
  dimension INTEGER NOT NULL,
  spec      TEXT NOT NULL,       -- how to build the embedder again, '' when the caller brought it
  state     TEXT NOT NULL CHECK (state IN ('active', 'coming', 'retiring')),
  UNIQUE (name, dimension)
) STRICT;

-- One vector per node and model: 4 bytes of scale, then int8. `id` only grows: a new or moved row gets a new one, so that "what
-- is new" is a range.
CREATE TABLE embeddings (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  node   INTEGER NOT NULL REFERENCES nodes,
  model  INTEGER NOT NULL REFERENCES models,
  space  INTEGER NOT NULL,
  shelf  TEXT NOT NULL,
  vector BLOB NOT NULL,
  UNIQUE (node, model)
) STRICT;
CREATE INDEX embeddings_by_shelf ON embeddings (model, space, shelf, id);

-- A vector for each content word of a node, for late interaction: int8 unit vectors, one row per word piece.
CREATE TABLE word_vectors (
  embedding INTEGER PRIMARY KEY REFERENCES embeddings ON DELETE CASCADE ON UPDATE CASCADE,
  pieces    TEXT NOT NULL,       -- separated by blanks
  vectors   BLOB NOT NULL        -- int8[pieces, k]
) STRICT;

-- The mean of a partition's vectors, subtracted from both sides of a cosine. Stored, so that every process uses the same one.
CREATE TABLE centres (
  model  INTEGER NOT NULL REFERENCES models ON DELETE CASCADE,
  space  INTEGER NOT NULL,
  shelf  TEXT NOT NULL,
  count  INTEGER NOT NULL,       -- of how many vectors
  vector BLOB NOT NULL,          -- float32[dimension], little-endian
  PRIMARY KEY (model, space, shelf)
) STRICT, WITHOUT ROWID;

-- Replays of runs until they are accepted. Any erasure deletes them all, so no foreign key is needed.
CREATE TABLE proposals (
  id    TEXT PRIMARY KEY,        -- the run's that it becomes
  space INTEGER NOT NULL,
  at    INTEGER NOT NULL,        -- Unix milliseconds
  body  TEXT NOT NULL            -- JSON
) STRICT, WITHOUT ROWID;

-- Calibration of the relevance floor for what a caller sees, by its tenants and the embedder (0: no embedder). Stored, so that
-- every process uses the same floor.
CREATE TABLE floors (
  spaces TEXT NOT NULL,          -- JSON
  model  INTEGER NOT NULL,
  rule   INTEGER NOT NULL,       -- which way of measuring
  count  INTEGER NOT NULL,       -- of how many memories
  middle TEXT NOT NULL,          -- JSON, a number for each measure
  spread TEXT NOT NULL,
  chance REAL NOT NULL,          -- what the sum of all measures reaches, in these units
  PRIMARY KEY (spaces, model)
) STRICT, WITHOUT ROWID;

-- Nodes that left the live index, for readers that hold it in memory.
CREATE TABLE removals (
  id    INTEGER PRIMARY KEY AUTOINCREMENT,
  node  INTEGER NOT NULL,
  model INTEGER                  -- NULL: of every model
) STRICT;

-- Segments: many vectors in one row, so that a million are read quickly. A cache of `embeddings`.
CREATE TABLE packs (
  key      INTEGER PRIMARY KEY,
  model    INTEGER NOT NULL,
  space    INTEGER NOT NULL,
  shelf    TEXT NOT NULL,
  through  INTEGER NOT NULL,     -- embeddings.id of the last one inside
  removals INTEGER NOT NULL,     -- removals.id up to which it was purged
  sketch   BLOB NOT NULL,        -- int64 node keys, uint64 signs: by column. A search of very many begins with these
  segment  BLOB NOT NULL         -- int64 node keys, float32 scales, int8 rows: by column. All little-endian
) STRICT;
CREATE INDEX packs_by_shelf ON packs (model, space, shelf, through);

-- Off the record: a session that is not stored, or ('') everything until further notice.
CREATE TABLE off_record (
  owner      TEXT NOT NULL,
  chat       TEXT NOT NULL,
  session_id TEXT NOT NULL,
  PRIMARY KEY (owner, chat, session_id)
) STRICT, WITHOUT ROWID;

-- Erasures, without what was erased. One row per request.
CREATE TABLE erasures (
  key        INTEGER PRIMARY KEY,  -- that of `erasing`, which it takes the place of
  space      INTEGER NOT NULL REFERENCES spaces,
  kind       TEXT NOT NULL CHECK (kind IN ('memory', 'session', 'entity', 'owner')),
  at         INTEGER NOT NULL,
  rows       INTEGER NOT NULL,     -- how many rows of `erased` are its own
  digest     BLOB NOT NULL,        -- over these
  commit_seq INTEGER NOT NULL REFERENCES commits,
  seal       BLOB NOT NULL
) STRICT;
CREATE INDEX erasures_by_commit ON erasures (commit_seq);

-- The remains of an erased row: the hash of its seal, without the salt. With it, the digest of the commit that wrote the row can
-- still be computed, so nothing else can pass as erased. A 'former' one is the hash of a version that the commit replaced; the
-- 'words' of a commit are its own actor and reason.
CREATE TABLE erased (
  made    INTEGER NOT NULL,        -- the commit
  what    TEXT NOT NULL CHECK (what IN ('row', 'former', 'words')),  -- see below
  hash    BLOB NOT NULL,
  now     BLOB,                    -- the hash of the seal of what stands in its place, where a part was taken out
  erasure INTEGER NOT NULL,
  PRIMARY KEY (made, what, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX erased_by_erasure ON erased (erasure);

-- The ids of erased memories, as keyed hashes, so that a request for one says that it was erased.
CREATE TABLE erased_ids (
  space INTEGER NOT NULL REFERENCES spaces,
  id    BLOB NOT NULL,
  at    INTEGER NOT NULL,
  PRIMARY KEY (space, id)
) STRICT, WITHOUT ROWID;

-- Running erasures: the intention, without content. The next opening after a crash finishes them.
CREATE TABLE erasing (
  key    INTEGER PRIMARY KEY AUTOINCREMENT,
  space  INTEGER NOT NULL REFERENCES spaces,
  kind   TEXT NOT NULL,
  at     INTEGER NOT NULL,
  state  TEXT NOT NULL CHECK (state IN ('rows', 'bytes'))  -- what is still there: rows, or bytes of rows that are gone
) STRICT;
CREATE TABLE to_erase (
  erasing INTEGER NOT NULL REFERENCES erasing ON DELETE CASCADE,
  tbl     TEXT NOT NULL,
  row     INTEGER NOT NULL,
  PRIMARY KEY (erasing, tbl, row)
) STRICT, WITHOUT ROWID;

-- Withheld sentences: forgotten or erased text that is not learnt again from its source. Keyed hashes, no words.
CREATE TABLE withheld (
  key       INTEGER PRIMARY KEY AUTOINCREMENT,
  space     INTEGER NOT NULL REFERENCES spaces,
  node      INTEGER NOT NULL,      -- the memory it is withheld for; it may be erased by now
  at        INTEGER NOT NULL,      -- what a person says later is said anew
  session   BLOB,                  -- keyed hash of the id of the conversation it was said in
  is_bound  INTEGER NOT NULL,      -- in that conversation alone
  is_erased INTEGER NOT NULL,      -- not even to be stored again
  is_shared INTEGER NOT NULL,      -- with all that is withheld for the same memory it says one thing
  is_lifted INTEGER NOT NULL
) STRICT;
CREATE INDEX withheld_now ON withheld (space) WHERE is_lifted = 0;
CREATE INDEX withheld_for ON withheld (node);
CREATE TABLE withheld_prints (
  space    INTEGER NOT NULL,
  print    BLOB NOT NULL,
  withheld INTEGER NOT NULL REFERENCES withheld ON DELETE CASCADE,
  is_whole INTEGER NOT NULL,       -- of all its words; else of all but one
  PRIMARY KEY (space, print, withheld)
) STRICT, WITHOUT ROWID;
CREATE INDEX withheld_prints_of ON withheld_prints (withheld);
-- The positions of withheld sentences in a text: answers leave them out.
CREATE TABLE withheld_spans (
  node     INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
  start    INTEGER NOT NULL,       -- in characters
  length   INTEGER NOT NULL,
  withheld INTEGER NOT NULL REFERENCES withheld ON DELETE CASCADE,
  PRIMARY KEY (node, start, withheld)
) STRICT, WITHOUT ROWID;
CREATE INDEX withheld_spans_by ON withheld_spans (withheld);

-- Checksums of the tables without seals, to detect damage. Kept by triggers.
CREATE TABLE sums (
  tbl   TEXT PRIMARY KEY,
  total INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One process at a time does a background job; the others wait.
CREATE TABLE leases (
  name   TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  until  INTEGER NOT NULL        -- Unix milliseconds
) STRICT, WITHOUT ROWID;

-- Views of live rows, so that no query can forget the condition.
CREATE VIEW live_nodes AS SELECT * FROM nodes WHERE closed_at IS NULL;
CREATE VIEW live_entities AS SELECT * FROM entities WHERE closed_at IS NULL;
-- All edges between live memories. Temporal edges follow from the order of a session and are not stored.
CREATE VIEW live_edges AS
  SELECT source, relation_type, target, predicate, weight, confidence, evidence FROM edges WHERE closed_at IS NULL
  UNION ALL
  SELECT source, 'temporal', target, NULL, 1.0, 1.0, '[]' FROM (
    SELECT key AS source, lead(key) OVER (PARTITION BY session ORDER BY event_time, key) AS target
    FROM live_nodes WHERE type = 'episodic' AND session IS NOT NULL
  ) WHERE target IS NOT NULL;
CREATE VIEW mentions AS
  SELECT node, entity, 'subject' AS role FROM subjects
  UNION ALL
  SELECT node, entity, 'mention' FROM found_mentions AS found
  WHERE NOT EXISTS (SELECT 1 FROM subjects s WHERE s.node = found.node AND s.entity = found.entity);

-- Triggers keep full text and counts in step with nodes that are changed or removed. New nodes are indexed by a statement next
-- to their INSERT: inside a trigger FTS5 flushes its buffer to disk at each row, which makes an import eight times slower.
-- Removals from an index run BEFORE the row changes, additions AFTER: SQLite does not promise an order for triggers of one
-- kind, and a changed node could be removed from the index right after it was added.
CREATE TRIGGER nodes_left_live BEFORE UPDATE OF content, tags, speaker, shelf, space, closed_at ON nodes
WHEN OLD.closed_at IS NULL BEGIN
  DELETE FROM nodes_fts WHERE rowid = OLD.key;
  UPDATE shelves SET nodes = nodes - 1, chars = chars - char_count(OLD.content)
    WHERE space = OLD.space AND shelf = OLD.shelf;
END;
CREATE TRIGGER nodes_left_archive BEFORE UPDATE OF content, tags, speaker, shelf, space, closed_at ON nodes
WHEN OLD.closed_at IS NOT NULL BEGIN
  DELETE FROM archive_fts WHERE rowid = OLD.key;
END;
CREATE TRIGGER nodes_reindexed AFTER UPDATE OF content, tags, speaker, shelf, space, closed_at ON nodes
WHEN NEW.closed_at IS NULL BEGIN
  INSERT INTO nodes_fts (rowid, terms)
    VALUES (NEW.key, index_terms(NEW.content, NEW.tags, NEW.speaker, NEW.space || NEW.shelf));
  INSERT INTO shelves VALUES (NEW.space, NEW.shelf, 1, char_count(NEW.content))
    ON CONFLICT DO UPDATE SET nodes = nodes + 1, chars = chars + excluded.chars;
END;
CREATE TRIGGER nodes_rearchived AFTER UPDATE OF content, tags, speaker, shelf, space, closed_at ON nodes
WHEN NEW.closed_at IS NOT NULL BEGIN
  INSERT INTO archive_fts (rowid, terms)
    VALUES (NEW.key, index_terms(NEW.content, NEW.tags, NEW.speaker, NEW.space || NEW.shelf));
END;
CREATE TRIGGER nodes_deleted_live AFTER DELETE ON nodes WHEN OLD.closed_at IS NULL BEGIN
  DELETE FROM nodes_fts WHERE rowid = OLD.key;
  UPDATE shelves SET nodes = nodes - 1, chars = chars - char_count(OLD.content)
    WHERE space = OLD.space AND shelf = OLD.shelf;
END;
CREATE TRIGGER nodes_deleted_closed AFTER DELETE ON nodes WHEN OLD.closed_at IS NOT NULL BEGIN
  DELETE FROM archive_fts WHERE rowid = OLD.key;
END;

-- Counts of entities follow the memories linked to them.
CREATE TRIGGER subjects_counted AFTER INSERT ON subjects
WHEN NOT EXISTS (SELECT 1 FROM found_mentions WHERE node = NEW.node AND entity = NEW.entity) BEGIN
  INSERT INTO entity_counts SELECT NEW.entity, closed_at IS NULL, event_time, event_time FROM nodes WHERE key = NEW.node
    ON CONFLICT DO UPDATE SET nodes = nodes + excluded.nodes, first_at = min(first_at, excluded.first_at),
      last_at = max(last_at, excluded.last_at);
END;
CREATE TRIGGER subjects_uncounted AFTER DELETE ON subjects
WHEN NOT EXISTS (SELECT 1 FROM found_mentions WHERE node = OLD.node AND entity = OLD.entity) BEGIN
  UPDATE entity_counts SET nodes = nodes - 1
    WHERE entity = OLD.entity AND EXISTS (SELECT 1 FROM live_nodes WHERE key = OLD.node);
END;
CREATE TRIGGER mentions_counted AFTER INSERT ON found_mentions
WHEN NOT EXISTS (SELECT 1 FROM subjects WHERE node = NEW.node AND entity = NEW.entity) BEGIN
  INSERT INTO entity_counts SELECT NEW.entity, closed_at IS NULL, event_time, event_time FROM nodes WHERE key = NEW.node
    ON CONFLICT DO UPDATE SET nodes = nodes + excluded.nodes, first_at = min(first_at, excluded.first_at),
      last_at = max(last_at, excluded.last_at);
END;
CREATE TRIGGER mentions_uncounted AFTER DELETE ON found_mentions
WHEN NOT EXISTS (SELECT 1 FROM subjects WHERE node = OLD.node AND entity = OLD.entity) BEGIN
  UPDATE entity_counts SET nodes = nodes - 1
    WHERE entity = OLD.entity AND EXISTS (SELECT 1 FROM live_nodes WHERE key = OLD.node);
END;
CREATE TRIGGER nodes_uncounted AFTER UPDATE OF closed_at ON nodes
WHEN OLD.closed_at IS NULL AND NEW.closed_at IS NOT NULL BEGIN
  UPDATE entity_counts SET nodes = nodes - 1 WHERE entity IN (
    SELECT entity FROM subjects WHERE node = NEW.key UNION SELECT entity FROM found_mentions WHERE node = NEW.key);
END;
CREATE TRIGGER nodes_counted AFTER UPDATE OF closed_at ON nodes
WHEN OLD.closed_at IS NOT NULL AND NEW.closed_at IS NULL BEGIN
  UPDATE entity_counts SET nodes = nodes + 1 WHERE entity IN (
    SELECT entity FROM subjects WHERE node = NEW.key UNION SELECT entity FROM found_mentions WHERE node = NEW.key);
END;

-- Features follow the row, also while it is closed: the archive is searched, too.
CREATE TRIGGER nodes_traits_outdated AFTER UPDATE OF content, tags, speaker, session, space, event_time ON nodes
WHEN OLD.content IS NOT NEW.content OR OLD.tags IS NOT NEW.tags OR OLD.speaker IS NOT NEW.speaker
  OR OLD.session IS NOT NEW.session OR OLD.space IS NOT NEW.space OR OLD.event_time IS NOT NEW.event_time BEGIN
  INSERT OR REPLACE INTO traits VALUES (NEW.key, NEW.space, coalesce(NEW.session, 0), NEW.event_time, NEW.speaker,
    traits_of(NEW.content, NEW.tags, NEW.speaker));
END;
CREATE TRIGGER nodes_traits_gone AFTER DELETE ON nodes BEGIN
  DELETE FROM traits WHERE node = OLD.key;
  UPDATE meta SET value = value + 1 WHERE name = 'turns_changed';
END;
CREATE TRIGGER nodes_turns_changed
AFTER UPDATE OF content, tags, speaker, session, space, event_time, closed_at ON nodes BEGIN
  UPDATE meta SET value = value + 1 WHERE name = 'turns_changed';
END;

-- Vectors follow: changed text needs a new vector, a closed node leaves the live index, a restored or moved one re-enters.
CREATE TRIGGER nodes_vector_outdated AFTER UPDATE OF content ON nodes WHEN OLD.content IS NOT NEW.content BEGIN
  DELETE FROM embeddings WHERE node = NEW.key;
END;
CREATE TRIGGER nodes_vector_leaves AFTER UPDATE OF closed_at ON nodes
WHEN OLD.closed_at IS NULL AND NEW.closed_at IS NOT NULL BEGIN
  INSERT INTO removals (node, model) VALUES (NEW.key, NULL);
END;
CREATE TRIGGER nodes_vector_moves AFTER UPDATE OF closed_at, shelf, space ON nodes
WHEN NEW.closed_at IS NULL
  AND (OLD.closed_at IS NOT NULL OR OLD.shelf IS NOT NEW.shelf OR OLD.space IS NOT NEW.space) BEGIN
  INSERT INTO removals (node, model) VALUES (NEW.key, NULL);
  UPDATE embeddings SET space = NEW.space, shelf = NEW.shelf, id = (SELECT max(id) + model FROM embeddings)
    WHERE node = NEW.key;
  -- AUTOINCREMENT learns of INSERTs only: without this the id of a moved row is given out again once it has gone.
  UPDATE sqlite_sequence SET seq = max(seq, (SELECT max(id) FROM embeddings))
    WHERE name = 'embeddings' AND EXISTS (SELECT 1 FROM embeddings);
END;
CREATE TRIGGER embeddings_deleted AFTER DELETE ON embeddings BEGIN
  INSERT INTO removals (node, model) VALUES (OLD.node, OLD.model);
END;

-- Sentences are withheld while their memory is forgotten, however it is closed and restored.
CREATE TRIGGER nodes_withheld_no_more AFTER UPDATE OF closed_at ON nodes
WHEN OLD.closed_at IS NOT NULL AND NEW.closed_at IS NULL BEGIN
  UPDATE withheld SET is_lifted = 1 WHERE node = NEW.key;
END;
CREATE TRIGGER nodes_withheld_again AFTER UPDATE OF closed_at ON nodes
WHEN OLD.closed_at IS NULL AND NEW.closed_reason IS 'forgotten' BEGIN
  UPDATE withheld SET is_lifted = 0 WHERE node = NEW.key;
END;

-- Slots follow, too. The slot of a new fact is inserted by the statement next to its INSERT: a trigger would run for every
-- message as well. Its subjects are added after it, by the triggers of `subjects`.
CREATE TRIGGER nodes_slot_moves AFTER UPDATE OF content, shelf, space, closed_at ON nodes
WHEN OLD.content IS NOT NEW.content OR OLD.shelf IS NOT NEW.shelf OR OLD.space IS NOT NEW.space
  OR OLD.closed_at IS NOT NEW.closed_at BEGIN
  DELETE FROM slots WHERE node = NEW.key;
  INSERT INTO slots SELECT NEW.key, NEW.space, coalesce((SELECT group_concat(entity) FROM
      (SELECT entity FROM subjects WHERE node = NEW.key ORDER BY entity)), ''), statement_line(NEW.content)
    WHERE NEW.closed_at IS NULL AND NEW.shelf = 'k' AND statement_line(NEW.content) != '';
END;
CREATE TRIGGER subjects_slot_added AFTER INSERT ON subjects BEGIN
  UPDATE slots SET subjects = (SELECT group_concat(entity) FROM
    (SELECT entity FROM subjects WHERE node = NEW.node ORDER BY entity)) WHERE node = NEW.node;
END;
CREATE TRIGGER subjects_slot_changed AFTER UPDATE ON subjects BEGIN
  UPDATE slots SET subjects = (SELECT group_concat(entity) FROM
    (SELECT entity FROM subjects WHERE node = NEW.node ORDER BY entity)) WHERE node = NEW.node;
END;
CREATE TRIGGER subjects_slot_gone AFTER DELETE ON subjects BEGIN
  UPDATE slots SET subjects = coalesce((SELECT group_concat(entity) FROM
    (SELECT entity FROM subjects WHERE node = OLD.node ORDER BY entity)), '') WHERE node = OLD.node;
END;

-- Links found by rule follow: changed text may name other entities, and a removed name links nothing.
CREATE TRIGGER nodes_links_outdated AFTER UPDATE OF content, speaker ON nodes
WHEN OLD.content IS NOT NEW.content OR OLD.speaker IS NOT NEW.speaker BEGIN
  INSERT INTO to_link (node) VALUES (NEW.key);
END;
CREATE TRIGGER aliases_removed AFTER DELETE ON aliases BEGIN
  INSERT INTO to_link (node) SELECT node FROM found_mentions WHERE entity = OLD.entity;
END;
CREATE TRIGGER aliases_moved AFTER UPDATE OF space, folded, entity ON aliases
WHEN OLD.space IS NOT NEW.space OR OLD.folded IS NOT NEW.folded OR OLD.entity IS NOT NEW.entity BEGIN
  INSERT INTO to_link (node) SELECT node FROM found_mentions WHERE entity = OLD.entity;
END;

CREATE TRIGGER relations_added AFTER INSERT ON relations WHEN NEW.source IS NULL BEGIN
  INSERT INTO relations_to_link (space, predicate) VALUES (NEW.space, NEW.predicate);
END;
CREATE TRIGGER relations_removed AFTER DELETE ON relations WHEN OLD.source IS NULL BEGIN
  INSERT INTO relations_to_link (space, predicate) VALUES (OLD.space, OLD.predicate);
END;
CREATE TRIGGER relations_changed AFTER UPDATE ON relations WHEN OLD.source IS NULL OR NEW.source IS NULL BEGIN
  INSERT INTO relations_to_link (space, predicate)
    VALUES (OLD.space, OLD.predicate) UNION VALUES (NEW.space, NEW.predicate);
END;
-- When two brothers are merged, "my brother" may become unambiguous.
CREATE TRIGGER entities_merged AFTER UPDATE OF closed_at, merged_into ON entities
WHEN OLD.closed_at IS NOT NEW.closed_at OR OLD.merged_into IS NOT NEW.merged_into BEGIN
  INSERT INTO relations_to_link (space, predicate)
    SELECT space, predicate FROM relations WHERE target = NEW.key AND source IS NULL;
END;

-- Before-images of every durable table (one whose rows have a commit and a seal), of changed and removed rows.
-- Inserts cost nothing. A row changed twice in one commit keeps its first before-image. `undo` and `as_of` need only
-- these triggers: a new durable table needs no other code. Generated by tools/generate_history.py: do not edit below.
CREATE TRIGGER entities_history_update BEFORE UPDATE ON entities BEGIN
  INSERT INTO history VALUES (NEW.commit_seq, 'entities',
    OLD.key, json_object(
    'id', OLD.id, 'space', OLD.space, 'type', OLD.type, 'canonical_name', OLD.canonical_name,
    'summary', OLD.summary, 'protected', OLD.protected, 'attributes', OLD.attributes, 'first_seen', OLD.first_seen,
    'last_updated', OLD.last_updated, 'closed_at', OLD.closed_at, 'merged_into', OLD.merged_into,
    'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER entities_history_delete BEFORE DELETE ON entities BEGIN
  INSERT INTO history VALUES ((SELECT max(seq) FROM commits), 'entities',
    OLD.key, json_object(
    'id', OLD.id, 'space', OLD.space, 'type', OLD.type, 'canonical_name', OLD.canonical_name,
    'summary', OLD.summary, 'protected', OLD.protected, 'attributes', OLD.attributes, 'first_seen', OLD.first_seen,
    'last_updated', OLD.last_updated, 'closed_at', OLD.closed_at, 'merged_into', OLD.merged_into,
    'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER erasures_history_update BEFORE UPDATE ON erasures BEGIN
  INSERT INTO history VALUES (NEW.commit_seq, 'erasures',
    OLD.key, json_object(
    'space', OLD.space, 'kind', OLD.kind, 'at', OLD.at, 'rows', OLD.rows, 'digest', OLD.digest,
    'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER erasures_history_delete BEFORE DELETE ON erasures BEGIN
  INSERT INTO history VALUES ((SELECT max(seq) FROM commits), 'erasures',
    OLD.key, json_object(
    'space', OLD.space, 'kind', OLD.kind, 'at', OLD.at, 'rows', OLD.rows, 'digest', OLD.digest,
    'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER sessions_history_update BEFORE UPDATE ON sessions BEGIN
  INSERT INTO history VALUES (NEW.commit_seq, 'sessions',
    OLD.key, json_object(
    'space', OLD.space, 'session_id', OLD.session_id, 'first_seen_at', OLD.first_seen_at, 'ended_at', OLD.ended_at,
    'consolidated_at', OLD.consolidated_at, 'summary', OLD.summary, 'commit_seq', OLD.commit_seq,
    'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER sessions_history_delete BEFORE DELETE ON sessions BEGIN
  INSERT INTO history VALUES ((SELECT max(seq) FROM commits), 'sessions',
    OLD.key, json_object(
    'space', OLD.space, 'session_id', OLD.session_id, 'first_seen_at', OLD.first_seen_at, 'ended_at', OLD.ended_at,
    'consolidated_at', OLD.consolidated_at, 'summary', OLD.summary, 'commit_seq', OLD.commit_seq,
    'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER runs_history_update BEFORE UPDATE ON runs BEGIN
  INSERT INTO history VALUES (NEW.commit_seq, 'runs',
    OLD.key, json_object(
    'id', OLD.id, 'space', OLD.space, 'kind', OLD.kind, 'model', OLD.model, 'prompt', OLD.prompt,
    'sessions', OLD.sessions, 'started_at', OLD.started_at, 'ended_at', OLD.ended_at, 'tokens_in', OLD.tokens_in,
    'tokens_out', OLD.tokens_out, 'cost', OLD.cost, 'items', OLD.items, 'commit_seq', OLD.commit_seq,
    'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER runs_history_delete BEFORE DELETE ON runs BEGIN
  INSERT INTO history VALUES ((SELECT max(seq) FROM commits), 'runs',
    OLD.key, json_object(
    'id', OLD.id, 'space', OLD.space, 'kind', OLD.kind, 'model', OLD.model, 'prompt', OLD.prompt,
    'sessions', OLD.sessions, 'started_at', OLD.started_at, 'ended_at', OLD.ended_at, 'tokens_in', OLD.tokens_in,
    'tokens_out', OLD.tokens_out, 'cost', OLD.cost, 'items', OLD.items, 'commit_seq', OLD.commit_seq,
    'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER aliases_history_update BEFORE UPDATE ON aliases BEGIN
  INSERT INTO history VALUES (NEW.commit_seq, 'aliases',
    OLD.space || '>' || OLD.folded || '>' || OLD.entity || '>' || OLD.alias, json_object(
    'space', OLD.space, 'folded', OLD.folded, 'entity', OLD.entity, 'alias', OLD.alias, 'sound', OLD.sound,
    'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER aliases_history_delete BEFORE DELETE ON aliases BEGIN
  INSERT INTO history VALUES ((SELECT max(seq) FROM commits), 'aliases',
    OLD.space || '>' || OLD.folded || '>' || OLD.entity || '>' || OLD.alias, json_object(
    'space', OLD.space, 'folded', OLD.folded, 'entity', OLD.entity, 'alias', OLD.alias, 'sound', OLD.sound,
    'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER relations_history_update BEFORE UPDATE ON relations BEGIN
  INSERT INTO history VALUES (NEW.commit_seq, 'relations',
    OLD.key, json_object(
    'id', OLD.id, 'space', OLD.space, 'source', OLD.source, 'predicate', OLD.predicate, 'target', OLD.target,
    'valid_from', OLD.valid_from, 'valid_until', OLD.valid_until, 'evidence', OLD.evidence,
    'created_at', OLD.created_at, 'closed_at', OLD.closed_at, 'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER relations_history_delete BEFORE DELETE ON relations BEGIN
  INSERT INTO history VALUES ((SELECT max(seq) FROM commits), 'relations',
    OLD.key, json_object(
    'id', OLD.id, 'space', OLD.space, 'source', OLD.source, 'predicate', OLD.predicate, 'target', OLD.target,
    'valid_from', OLD.valid_from, 'valid_until', OLD.valid_until, 'evidence', OLD.evidence,
    'created_at', OLD.created_at, 'closed_at', OLD.closed_at, 'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER nodes_history_update BEFORE UPDATE ON nodes BEGIN
  INSERT INTO history VALUES (NEW.commit_seq, 'nodes',
    OLD.key, json_object(
    'id', OLD.id, 'space', OLD.space, 'shelf', OLD.shelf, 'type', OLD.type, 'category', OLD.category,
    'content', OLD.content, 'source_type', OLD.source_type, 'source_role', OLD.source_role, 'speaker', OLD.speaker,
    'session', OLD.session, 'tags', OLD.tags, 'attributes', OLD.attributes, 'event_time', OLD.event_time,
    'created_at', OLD.created_at, 'valid_from', OLD.valid_from, 'valid_until', OLD.valid_until,
    'expires_at', OLD.expires_at, 'closed_at', OLD.closed_at, 'closed_reason', OLD.closed_reason,
    'confidence', OLD.confidence, 'decay_rate', OLD.decay_rate, 'score', OLD.score,
    'reinforced_at', OLD.reinforced_at, 'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER nodes_history_delete BEFORE DELETE ON nodes BEGIN
  INSERT INTO history VALUES ((SELECT max(seq) FROM commits), 'nodes',
    OLD.key, json_object(
    'id', OLD.id, 'space', OLD.space, 'shelf', OLD.shelf, 'type', OLD.type, 'category', OLD.category,
    'content', OLD.content, 'source_type', OLD.source_type, 'source_role', OLD.source_role, 'speaker', OLD.speaker,
    'session', OLD.session, 'tags', OLD.tags, 'attributes', OLD.attributes, 'event_time', OLD.event_time,
    'created_at', OLD.created_at, 'valid_from', OLD.valid_from, 'valid_until', OLD.valid_until,
    'expires_at', OLD.expires_at, 'closed_at', OLD.closed_at, 'closed_reason', OLD.closed_reason,
    'confidence', OLD.confidence, 'decay_rate', OLD.decay_rate, 'score', OLD.score,
    'reinforced_at', OLD.reinforced_at, 'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER edges_history_update BEFORE UPDATE ON edges BEGIN
  INSERT INTO history VALUES (NEW.commit_seq, 'edges',
    OLD.source || '>' || OLD.relation_type || '>' || OLD.target, json_object(
    'source', OLD.source, 'relation_type', OLD.relation_type, 'target', OLD.target, 'predicate', OLD.predicate,
    'weight', OLD.weight, 'confidence', OLD.confidence, 'valid_from', OLD.valid_from,
    'valid_until', OLD.valid_until, 'evidence', OLD.evidence, 'created_at', OLD.created_at,
    'closed_at', OLD.closed_at, 'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER edges_history_delete BEFORE DELETE ON edges BEGIN
  INSERT INTO history VALUES ((SELECT max(seq) FROM commits), 'edges',
    OLD.source || '>' || OLD.relation_type || '>' || OLD.target, json_object(
    'source', OLD.source, 'relation_type', OLD.relation_type, 'target', OLD.target, 'predicate', OLD.predicate,
    'weight', OLD.weight, 'confidence', OLD.confidence, 'valid_from', OLD.valid_from,
    'valid_until', OLD.valid_until, 'evidence', OLD.evidence, 'created_at', OLD.created_at,
    'closed_at', OLD.closed_at, 'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER reviews_history_update BEFORE UPDATE ON reviews BEGIN
  INSERT INTO history VALUES (NEW.commit_seq, 'reviews',
    OLD.key, json_object(
    'id', OLD.id, 'space', OLD.space, 'kind', OLD.kind, 'newer', OLD.newer, 'older', OLD.older,
    'created_at', OLD.created_at, 'decided_at', OLD.decided_at, 'decision', OLD.decision, 'reasons', OLD.reasons,
    'about', OLD.about, 'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER reviews_history_delete BEFORE DELETE ON reviews BEGIN
  INSERT INTO history VALUES ((SELECT max(seq) FROM commits), 'reviews',
    OLD.key, json_object(
    'id', OLD.id, 'space', OLD.space, 'kind', OLD.kind, 'newer', OLD.newer, 'older', OLD.older,
    'created_at', OLD.created_at, 'decided_at', OLD.decided_at, 'decision', OLD.decision, 'reasons', OLD.reasons,
    'about', OLD.about, 'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER subjects_history_update BEFORE UPDATE ON subjects BEGIN
  INSERT INTO history VALUES (NEW.commit_seq, 'subjects',
    OLD.node || '>' || OLD.entity, json_object(
    'node', OLD.node, 'entity', OLD.entity, 'name', OLD.name, 'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER subjects_history_delete BEFORE DELETE ON subjects BEGIN
  INSERT INTO history VALUES ((SELECT max(seq) FROM commits), 'subjects',
    OLD.node || '>' || OLD.entity, json_object(
    'node', OLD.node, 'entity', OLD.entity, 'name', OLD.name, 'commit_seq', OLD.commit_seq, 'seal', hex(OLD.seal)))
  ON CONFLICT DO NOTHING;
END;

-- A checksum over the rows of each durable table without seals, to detect damage.
INSERT INTO sums VALUES ('spaces', 0);
CREATE TRIGGER spaces_sum_insert AFTER INSERT ON spaces BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.key, NEW.owner, NEW.chat)) & 4611686018427387903 WHERE tbl = 'spaces';
END;
CREATE TRIGGER spaces_sum_update AFTER UPDATE ON spaces BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.key, NEW.owner, NEW.chat) - row_sum(
    OLD.key, OLD.owner, OLD.chat)) & 4611686018427387903 WHERE tbl = 'spaces';
END;
CREATE TRIGGER spaces_sum_delete AFTER DELETE ON spaces BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.key, OLD.owner, OLD.chat)) & 4611686018427387903 WHERE tbl = 'spaces';
END;
INSERT INTO sums VALUES ('models', 0);
CREATE TRIGGER models_sum_insert AFTER INSERT ON models BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.key, NEW.name, NEW.dimension, NEW.spec, NEW.state)) & 4611686018427387903 WHERE tbl = 'models';
END;
CREATE TRIGGER models_sum_update AFTER UPDATE ON models BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.key, NEW.name, NEW.dimension, NEW.spec, NEW.state) - row_sum(
    OLD.key, OLD.name, OLD.dimension, OLD.spec, OLD.state)) & 4611686018427387903 WHERE tbl = 'models';
END;
CREATE TRIGGER models_sum_delete AFTER DELETE ON models BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.key, OLD.name, OLD.dimension, OLD.spec, OLD.state)) & 4611686018427387903 WHERE tbl = 'models';
END;
INSERT INTO sums VALUES ('off_record', 0);
CREATE TRIGGER off_record_sum_insert AFTER INSERT ON off_record BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.owner, NEW.chat, NEW.session_id)) & 4611686018427387903 WHERE tbl = 'off_record';
END;
CREATE TRIGGER off_record_sum_update AFTER UPDATE ON off_record BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.owner, NEW.chat, NEW.session_id) - row_sum(
    OLD.owner, OLD.chat, OLD.session_id)) & 4611686018427387903 WHERE tbl = 'off_record';
END;
CREATE TRIGGER off_record_sum_delete AFTER DELETE ON off_record BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.owner, OLD.chat, OLD.session_id)) & 4611686018427387903 WHERE tbl = 'off_record';
END;
INSERT INTO sums VALUES ('associates', 0);
CREATE TRIGGER associates_sum_insert AFTER INSERT ON associates BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.node, NEW.other, NEW.weight)) & 4611686018427387903 WHERE tbl = 'associates';
END;
CREATE TRIGGER associates_sum_update AFTER UPDATE ON associates BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.node, NEW.other, NEW.weight) - row_sum(
    OLD.node, OLD.other, OLD.weight)) & 4611686018427387903 WHERE tbl = 'associates';
END;
CREATE TRIGGER associates_sum_delete AFTER DELETE ON associates BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.node, OLD.other, OLD.weight)) & 4611686018427387903 WHERE tbl = 'associates';
END;
INSERT INTO sums VALUES ('erased', 0);
CREATE TRIGGER erased_sum_insert AFTER INSERT ON erased BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.made, NEW.what, NEW.hash, NEW.now, NEW.erasure)) & 4611686018427387903 WHERE tbl = 'erased';
END;
CREATE TRIGGER erased_sum_update AFTER UPDATE ON erased BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.made, NEW.what, NEW.hash, NEW.now, NEW.erasure) - row_sum(
    OLD.made, OLD.what, OLD.hash, OLD.now, OLD.erasure)) & 4611686018427387903 WHERE tbl = 'erased';
END;
CREATE TRIGGER erased_sum_delete AFTER DELETE ON erased BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.made, OLD.what, OLD.hash, OLD.now, OLD.erasure)) & 4611686018427387903 WHERE tbl = 'erased';
END;
INSERT INTO sums VALUES ('erased_ids', 0);
CREATE TRIGGER erased_ids_sum_insert AFTER INSERT ON erased_ids BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.space, NEW.id, NEW.at)) & 4611686018427387903 WHERE tbl = 'erased_ids';
END;
CREATE TRIGGER erased_ids_sum_update AFTER UPDATE ON erased_ids BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.space, NEW.id, NEW.at) - row_sum(
    OLD.space, OLD.id, OLD.at)) & 4611686018427387903 WHERE tbl = 'erased_ids';
END;
CREATE TRIGGER erased_ids_sum_delete AFTER DELETE ON erased_ids BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.space, OLD.id, OLD.at)) & 4611686018427387903 WHERE tbl = 'erased_ids';
END;
INSERT INTO sums VALUES ('erasing', 0);
CREATE TRIGGER erasing_sum_insert AFTER INSERT ON erasing BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.key, NEW.space, NEW.kind, NEW.at, NEW.state)) & 4611686018427387903 WHERE tbl = 'erasing';
END;
CREATE TRIGGER erasing_sum_update AFTER UPDATE ON erasing BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.key, NEW.space, NEW.kind, NEW.at, NEW.state) - row_sum(
    OLD.key, OLD.space, OLD.kind, OLD.at, OLD.state)) & 4611686018427387903 WHERE tbl = 'erasing';
END;
CREATE TRIGGER erasing_sum_delete AFTER DELETE ON erasing BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.key, OLD.space, OLD.kind, OLD.at, OLD.state)) & 4611686018427387903 WHERE tbl = 'erasing';
END;
INSERT INTO sums VALUES ('to_erase', 0);
CREATE TRIGGER to_erase_sum_insert AFTER INSERT ON to_erase BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.erasing, NEW.tbl, NEW.row)) & 4611686018427387903 WHERE tbl = 'to_erase';
END;
CREATE TRIGGER to_erase_sum_update AFTER UPDATE ON to_erase BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.erasing, NEW.tbl, NEW.row) - row_sum(
    OLD.erasing, OLD.tbl, OLD.row)) & 4611686018427387903 WHERE tbl = 'to_erase';
END;
CREATE TRIGGER to_erase_sum_delete AFTER DELETE ON to_erase BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.erasing, OLD.tbl, OLD.row)) & 4611686018427387903 WHERE tbl = 'to_erase';
END;
INSERT INTO sums VALUES ('model_use', 0);
CREATE TRIGGER model_use_sum_insert AFTER INSERT ON model_use BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.day, NEW.model, NEW.calls, NEW.tokens_in, NEW.tokens_out)) & 4611686018427387903 WHERE tbl = 'model_use';
END;
CREATE TRIGGER model_use_sum_update AFTER UPDATE ON model_use BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.day, NEW.model, NEW.calls, NEW.tokens_in, NEW.tokens_out) - row_sum(
    OLD.day, OLD.model, OLD.calls, OLD.tokens_in, OLD.tokens_out)) & 4611686018427387903 WHERE tbl = 'model_use';
END;
CREATE TRIGGER model_use_sum_delete AFTER DELETE ON model_use BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.day, OLD.model, OLD.calls, OLD.tokens_in, OLD.tokens_out)) & 4611686018427387903 WHERE tbl = 'model_use';
END;
INSERT INTO sums VALUES ('failures', 0);
CREATE TRIGGER failures_sum_insert AFTER INSERT ON failures BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.key, NEW.space, NEW.session, NEW.tries, NEW.at, NEW.reason)) & 4611686018427387903 WHERE tbl = 'failures';
END;
CREATE TRIGGER failures_sum_update AFTER UPDATE ON failures BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.key, NEW.space, NEW.session, NEW.tries, NEW.at, NEW.reason) - row_sum(
    OLD.key, OLD.space, OLD.session, OLD.tries, OLD.at, OLD.reason)) & 4611686018427387903 WHERE tbl = 'failures';
END;
CREATE TRIGGER failures_sum_delete AFTER DELETE ON failures BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.key, OLD.space, OLD.session, OLD.tries, OLD.at, OLD.reason)) & 4611686018427387903 WHERE tbl = 'failures';
END;
INSERT INTO sums VALUES ('withheld', 0);
CREATE TRIGGER withheld_sum_insert AFTER INSERT ON withheld BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.key, NEW.space, NEW.node, NEW.at, NEW.session, NEW.is_bound, NEW.is_erased, NEW.is_shared, NEW.is_lifted)) & 4611686018427387903 WHERE tbl = 'withheld';
END;
CREATE TRIGGER withheld_sum_update AFTER UPDATE ON withheld BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.key, NEW.space, NEW.node, NEW.at, NEW.session, NEW.is_bound, NEW.is_erased, NEW.is_shared, NEW.is_lifted) - row_sum(
    OLD.key, OLD.space, OLD.node, OLD.at, OLD.session, OLD.is_bound, OLD.is_erased, OLD.is_shared, OLD.is_lifted)) & 4611686018427387903 WHERE tbl = 'withheld';
END;
CREATE TRIGGER withheld_sum_delete AFTER DELETE ON withheld BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.key, OLD.space, OLD.node, OLD.at, OLD.session, OLD.is_bound, OLD.is_erased, OLD.is_shared, OLD.is_lifted)) & 4611686018427387903 WHERE tbl = 'withheld';
END;
INSERT INTO sums VALUES ('withheld_prints', 0);
CREATE TRIGGER withheld_prints_sum_insert AFTER INSERT ON withheld_prints BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.space, NEW.print, NEW.withheld, NEW.is_whole)) & 4611686018427387903 WHERE tbl = 'withheld_prints';
END;
CREATE TRIGGER withheld_prints_sum_update AFTER UPDATE ON withheld_prints BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.space, NEW.print, NEW.withheld, NEW.is_whole) - row_sum(
    OLD.space, OLD.print, OLD.withheld, OLD.is_whole)) & 4611686018427387903 WHERE tbl = 'withheld_prints';
END;
CREATE TRIGGER withheld_prints_sum_delete AFTER DELETE ON withheld_prints BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.space, OLD.print, OLD.withheld, OLD.is_whole)) & 4611686018427387903 WHERE tbl = 'withheld_prints';
END;
INSERT INTO sums VALUES ('withheld_spans', 0);
CREATE TRIGGER withheld_spans_sum_insert AFTER INSERT ON withheld_spans BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.node, NEW.start, NEW.length, NEW.withheld)) & 4611686018427387903 WHERE tbl = 'withheld_spans';
END;
CREATE TRIGGER withheld_spans_sum_update AFTER UPDATE ON withheld_spans BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.node, NEW.start, NEW.length, NEW.withheld) - row_sum(
    OLD.node, OLD.start, OLD.length, OLD.withheld)) & 4611686018427387903 WHERE tbl = 'withheld_spans';
END;
CREATE TRIGGER withheld_spans_sum_delete AFTER DELETE ON withheld_spans BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.node, OLD.start, OLD.length, OLD.withheld)) & 4611686018427387903 WHERE tbl = 'withheld_spans';
END;
INSERT INTO sums VALUES ('meta', 0);
CREATE TRIGGER meta_sum_insert AFTER INSERT ON meta WHEN NEW.name IN ('fingerprint_key') BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.name, NEW.value)) & 4611686018427387903 WHERE tbl = 'meta';
END;
CREATE TRIGGER meta_sum_update AFTER UPDATE ON meta WHEN NEW.name IN ('fingerprint_key') BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.name, NEW.value) - row_sum(
    OLD.name, OLD.value)) & 4611686018427387903 WHERE tbl = 'meta';
END;
CREATE TRIGGER meta_sum_delete AFTER DELETE ON meta WHEN OLD.name IN ('fingerprint_key') BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.name, OLD.value)) & 4611686018427387903 WHERE tbl = 'meta';
END;
INSERT INTO sums VALUES ('embeddings', 0);
CREATE TRIGGER embeddings_sum_insert AFTER INSERT ON embeddings BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.id, NEW.node, NEW.model, NEW.space, NEW.shelf, NEW.vector)) & 4611686018427387903 WHERE tbl = 'embeddings';
END;
CREATE TRIGGER embeddings_sum_update AFTER UPDATE ON embeddings BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.id, NEW.node, NEW.model, NEW.space, NEW.shelf, NEW.vector) - row_sum(
    OLD.id, OLD.node, OLD.model, OLD.space, OLD.shelf, OLD.vector)) & 4611686018427387903 WHERE tbl = 'embeddings';
END;
CREATE TRIGGER embeddings_sum_delete AFTER DELETE ON embeddings BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.id, OLD.node, OLD.model, OLD.space, OLD.shelf, OLD.vector)) & 4611686018427387903 WHERE tbl = 'embeddings';
END;
INSERT INTO sums VALUES ('word_vectors', 0);
CREATE TRIGGER word_vectors_sum_insert AFTER INSERT ON word_vectors BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.embedding, NEW.pieces, NEW.vectors)) & 4611686018427387903 WHERE tbl = 'word_vectors';
END;
CREATE TRIGGER word_vectors_sum_update AFTER UPDATE ON word_vectors BEGIN
  UPDATE sums SET total = (total + row_sum(
    NEW.embedding, NEW.pieces, NEW.vectors) - row_sum(
    OLD.embedding, OLD.pieces, OLD.vectors)) & 4611686018427387903 WHERE tbl = 'word_vectors';
END;
CREATE TRIGGER word_vectors_sum_delete AFTER DELETE ON word_vectors BEGIN
  UPDATE sums SET total = (total - row_sum(
    OLD.embedding, OLD.pieces, OLD.vectors)) & 4611686018427387903 WHERE tbl = 'word_vectors';
END;
