-- What searches and contexts gave, for receipts: as in the schema of a file.
CREATE TABLE receipts (
  id            text COLLATE "C" PRIMARY KEY,
  space         bigint NOT NULL REFERENCES spaces DEFERRABLE,  -- the caller's own
  in_chat       text COLLATE "C" NOT NULL,                     -- the present chat; '' for none
  trust         text COLLATE "C" NOT NULL,
  verb          text COLLATE "C" NOT NULL,
  at            bigint NOT NULL,
  commit_number bigint NOT NULL,                               -- the last commit that the caller saw; 0 before the first
  asked         text COLLATE "C" NOT NULL DEFAULT '{}',        -- JSON: the question and its arguments; '{}' once erased
  setup         text COLLATE "C" NOT NULL DEFAULT '{}',        -- JSON: what ranking depended on besides the memories
  given         text COLLATE "C" NOT NULL DEFAULT '[]',        -- JSON: ids with scores and shares, best first
  left_out      text COLLATE "C" NOT NULL DEFAULT '[]'         -- JSON: ids with reasons
);
CREATE INDEX receipts_by_space ON receipts (space, id);
CREATE INDEX receipts_by_chat ON receipts (in_chat) WHERE in_chat != '';
