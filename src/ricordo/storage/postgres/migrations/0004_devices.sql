-- What several devices need to exchange their changes: as in the schema of a file.
CREATE TABLE exchanged (
  space  bigint NOT NULL REFERENCES spaces DEFERRABLE,
  device text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  seq    bigint NOT NULL,
  PRIMARY KEY (space, device, number)
);
CREATE INDEX exchanged_by_seq ON exchanged (space, seq);
CREATE TABLE stamps (
  space  bigint NOT NULL REFERENCES spaces DEFERRABLE,
  record text COLLATE "C" NOT NULL,
  device text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  tbl    text COLLATE "C" NOT NULL,
  row    text COLLATE "C" NOT NULL,
  fields text COLLATE "C" NOT NULL,
  PRIMARY KEY (space, record, device, number)
);
CREATE INDEX stamps_by_commit ON stamps (space, device, number);
CREATE INDEX stamps_by_row ON stamps (tbl, row);
CREATE TABLE unplaced (
  space  bigint NOT NULL REFERENCES spaces DEFERRABLE,
  record text COLLATE "C" NOT NULL,
  tbl    text COLLATE "C" NOT NULL,
  line   text COLLATE "C" NOT NULL,
  PRIMARY KEY (space, record)
);
SELECT guard(name, 'space = ANY (seen())') FROM unnest(ARRAY['exchanged', 'stamps', 'unplaced']) AS name;
