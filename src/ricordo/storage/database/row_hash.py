"""Which rows a commit wrote, and which versions it replaced: what its digest is over, when it is made and when it is
checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import apsw

from ricordo.storage.database.queries import sql
from ricordo.storage.database.rows import chain, digest
from ricordo.storage.database.schema import migrations
from ricordo.storage.database.truth_tables import truth_of


def hashes_of(connection: apsw.Connection, commit: int) -> list[bytes]:
    """The bare hashes of all rows a commit wrote, those that were replaced since included, and the hashes of the former
    versions it replaced or removed. None of it is erased yet.
    """
    return [row[0] for row in connection.execute(_one_commit(connection, migrations()[-1].version), (commit,))]


def wrong_digests(connection: apsw.Connection) -> Iterator[int]:
    """The commits of which a row is missing, or has come from nowhere."""
    expected = dict(connection.execute("SELECT seq, digest FROM commits"))
    for commit, found in _digests(connection):
        wanted = expected.pop(commit, None)
        if wanted is not None and found != wanted:
            yield commit
    nothing = digest(())
    yield from (commit for commit, wanted in expected.items() if wanted != nothing)


def _digests(connection: apsw.Connection) -> Iterator[tuple[int, bytes]]:
    """(commit, digest over the rows it wrote, erased ones included) of every commit of which anything is left."""
    rows = connection.execute(_all_commits(connection))
    for commit, found in groupby(rows, key=lambda row: row[0]):
        hashes, replacing = [], set()
        for _, hash_, is_standing_in in found:
            replacing.add(hash_) if is_standing_in else hashes.append(hash_)
        yield commit, digest(each for each in hashes if each not in replacing)


def chain_anew(connection: apsw.Connection) -> None:
    """Commits of which some, or some of whose rows, stayed behind in another store make a chain of their own."""
    digests, head = dict[object, bytes](_digests(connection)), b""
    for seq, space, at, origin, run_id, words, *_ in connection.execute(sql("commits_all")).fetchall():
        values = (seq, space, at, origin, run_id, words, digests.get(seq, digest(())))
        head = chain(head, values)
        connection.execute(sql("commit_digest"), {"seq": seq, "digest": values[-1], "hash": head})


# Names come from the schema, so the statements are put together: a new truth table is in them at once.

_FORMER = "unhex(substr(json_extract(before, '$.seal'), -32))"
_REPLACED = "former_hash(tbl, row, before)"
_CACHED: dict[int, str] = {}


def _one_commit(connection: apsw.Connection, version: int) -> str:
    """Of a store of the present schema, so it is the same for all of them."""
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
