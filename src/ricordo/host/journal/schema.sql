-- The durable state of the host, in a file of its own beside the store: deleting it loses no memory. It holds no text of a
-- conversation. Times are Unix milliseconds, UTC; `held_until` uses the machine's clock, all others the caller's.

CREATE TABLE events (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  topic TEXT NOT NULL,
  payload TEXT NOT NULL CHECK (json_valid(payload)),
  once TEXT UNIQUE,
  at INTEGER NOT NULL
) STRICT;

-- Subscriptions of handlers to topics. They last while the process of a handler is not running.
CREATE TABLE subscriptions (
  handler TEXT PRIMARY KEY,
  topic TEXT NOT NULL,
  seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX subscriptions_topic ON subscriptions (topic);

-- One row for each event and handler until it is done; failed ones stay as dead letters.
CREATE TABLE deliveries (
  event INTEGER NOT NULL REFERENCES events (key) ON DELETE CASCADE,
  handler TEXT NOT NULL,
  is_dead INTEGER NOT NULL DEFAULT 0 CHECK (is_dead IN (0, 1)),
  tries INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER NOT NULL,
  holder TEXT,
  held_until INTEGER,
  reason TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (event, handler)
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_waiting ON deliveries (handler, event) WHERE is_dead = 0;
CREATE INDEX deliveries_held ON deliveries (handler, holder) WHERE holder IS NOT NULL;
CREATE INDEX deliveries_dead ON deliveries (event) WHERE is_dead = 1;

-- The last planned time for which a job was started.
CREATE TABLE jobs (
  name TEXT PRIMARY KEY,
  plan TEXT NOT NULL,
  last_due_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The current session of each conversation. NULL: no message since the last session ended.
CREATE TABLE conversations (
  owner TEXT NOT NULL,
  chat TEXT NOT NULL,
  channel TEXT NOT NULL,
  session TEXT,
  last_at INTEGER NOT NULL,
  is_off_record INTEGER NOT NULL DEFAULT 0 CHECK (is_off_record IN (0, 1)),
  PRIMARY KEY (owner, chat, channel)
) STRICT, WITHOUT ROWID;
