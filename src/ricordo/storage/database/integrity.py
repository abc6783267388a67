"""Detection of silent damage: commits with digests in a hash chain, sums of unsealed tables, and fingerprints."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import groupby
from typing import Any, Final

import apsw

from ricordo.clock import to_ms
from ricordo.model import Reason
from ricordo.storage.database.hashes import bare, chain, digest, row_sum, seal
from ricordo.storage.database.history import TABLES, truth_of
from ricordo.storage.database.schema import migrations
from ricordo.storage.database.statements import Statements, sql

FINGERPRINT_KEY = "fingerprint_key"

SUM_MASK: Final = (1 << 62) - 1

WHICH: Final[Mapping[str, str]] = {"meta": f"WHERE name IN ('{FINGERPRINT_KEY}')"}
"""Which rows of a table are summed, if not all. The other rows of `meta` record the progress of background work."""


def unsealed(connection: apsw.Connection) -> Mapping[str, tuple[str, ...]]:
    """Return the columns of the unsealed tables, in order."""
    return columns_of(connection, TABLES["unsealed"])


def columns_of(connection: apsw.Connection, names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the columns of the given tables, as far as these exist."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for table, column, _ in connection.execute(sql("schema_columns")):
        if table in found:
            found[table].append(column)
    return {name: tuple(columns) for name, columns in found.items() if columns}


def table_sum(connection: apsw.Connection, table: str, columns: Iterable[str]) -> int:
    """Return the checksum of a table's rows as they are now; `sums` holds the one of the rows as written."""
    names = ", ".join(f'"{name}"' for name in columns)
    rows = connection.execute(f'SELECT {names} FROM "{table}" {WHICH.get(table, "")}')
    return sum(row_sum(*row) for row in rows) & SUM_MASK


def hashes_of(connection: apsw.Connection, commit: int) -> list[bytes]:
    """Return the hashes that a commit's digest covers: the bare hashes of all rows it wrote, including rows replaced
    since, and the hashes of the former versions it replaced or removed. Requires that nothing of the commit is erased.
    """
    other = getattr(connection, "hashes_of", None)  # another backend's own way
    if other is not None:
        return list(other(commit))
    return [row[0] for row in connection.execute(_one_commit(connection, migrations()[-1].version), (commit,))]


def wrong_digests(connection: apsw.Connection) -> Iterator[int]:
    """Yield the commits with a missing row, or with a row that they did not write."""
    expected = dict(connection.execute("SELECT seq, digest FROM commits"))
    for commit, found in _digests(connection):
        wanted = expected.pop(commit, None)
        if wanted is not None and found != wanted:
            yield commit
    nothing = digest(())
    yield from (commit for commit, wanted in expected.items() if wanted != nothing)


def renew_chain(connection: apsw.Connection) -> None:
    """Compute all digests and the chain again, for a copy that lacks commits or rows of the original."""
    digests, head = dict[object, bytes](_digests(connection)), b""
    for seq, space, at, origin, run_id, words, *_ in connection.execute(sql("commits_all")).fetchall():
        values = (seq, space, at, origin, run_id, words, digests.get(seq, digest(())))
        head = chain(head, values)
        connection.execute(sql("commit_digest"), {"seq": seq, "digest": values[-1], "hash": head})


def _digests(connection: apsw.Connection) -> Iterator[tuple[int, bytes]]:
    """Yield (commit, digest over its rows, including erased ones) for every commit with any row left."""
    other = getattr(connection, "all_hashes", None)  # another backend's own way
    rows = connection.execute(_all_commits(connection)) if other is None else other()
    for commit, found in groupby(rows, key=lambda row: row[0]):
        hashes, replacing = [], set()
        for _, hash_, is_standing_in in found:
            replacing.add(hash_) if is_standing_in else hashes.append(hash_)
        yield commit, digest(each for each in hashes if each not in replacing)


# The statements are built from the names in the schema, so that a new truth table is covered at once.

_FORMER = "unhex(substr(json_extract(before, '$.seal'), -32))"
_REPLACED = "former_hash(tbl, row, before)"
_CACHED: dict[int, str] = {}


def _one_commit(connection: apsw.Connection, version: int) -> str:
    """Return the statement for one commit, cached by schema version."""
    if version not in _CACHED:
        parts = [
            f'SELECT substr(seal, -16) FROM "{name}" WHERE commit_seq = ?1' for name in truth_of(connection).tables
        ]
        parts += [f"SELECT {_FORMER} FROM history WHERE made = ?1", f"SELECT {_REPLACED} FROM history WHERE seq = ?1"]
        _CACHED[version] = " UNION ALL ".join(parts)
    return _CACHED[version]


def _all_commits(connection: apsw.Connection) -> str:
    parts = [
        f'SELECT commit_seq AS made, substr(seal, -16) AS hash, 0 FROM "{name}"' for name in truth_of(connection).tables
    ]
    parts.append(f"SELECT made, {_FORMER}, 0 FROM history")
    parts.append(f"SELECT seq, {_REPLACED}, 0 FROM history")
    parts.append("SELECT made, hash, 0 FROM erased WHERE what != 'words'")
    parts.append("SELECT made, now, 1 FROM erased WHERE what != 'words' AND now IS NOT NULL")
    return f"SELECT * FROM ({' UNION ALL '.join(parts)}) ORDER BY made"


def fingerprint_key(sql: Statements) -> bytes:
    """Return the key for the store's fingerprints: random, created at first use, and different in each store."""
    known = sql.meta(FINGERPRINT_KEY)
    if known is None:
        known = os.urandom(32).hex()
        sql.rows("meta_put", {"name": FINGERPRINT_KEY, "value": known})
    return bytes.fromhex(known)


def id_fingerprint(key: bytes, node_id: str) -> bytes:
    """Return the keyed hash that is kept in place of the id of an erased memory."""
    return blake2b(node_id.encode("utf-8", "surrogatepass"), key=key, digest_size=16).digest()


CommitValues = tuple[Any, ...]
"""The values that the hash of a commit covers, the digest last."""


def put_commit(
    snapshot: Statements, head: bytes, seq: int, *, space: int, reason: Reason, at: datetime, hashes: Sequence[bytes]
) -> CommitValues:
    """Write the row of a commit, before the rows that refer to it.

    Args:
        head: the hash of the previous commit.
        hashes: the bare hashes of its rows' seals, as far as they are known.
    """
    words = seal((reason.actor, reason.reason))
    values = (seq, space, to_ms(at), reason.origin, reason.run_id, bare(words), digest(hashes))
    row = (*values[:3], reason.actor, reason.origin, reason.reason, reason.run_id, words, values[-1])
    snapshot.many("commit_insert", [(*row, chain(head, values))])
    return values


def settle_digest(snapshot: Statements, head: bytes, values: CommitValues) -> None:
    """Correct the digest of a commit from its rows in the database: a row may be written twice, or exist already."""
    settled = (*values[:-1], digest(hashes_of(snapshot.connection, values[0])))
    if settled != values:
        digests = {"seq": values[0], "digest": settled[-1], "hash": chain(head, settled)}
        snapshot.rows("commit_digest", digests)
