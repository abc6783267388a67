"""The store as it was right after a commit: the same tables and views, with the rows of that time.

On a separate connection, a temporary view shadows each truth table. It combines rows unchanged since then with former
versions of the others, so that the usual statements read the past. Vectors, counts and full text are those of today;
`altered` lists the texts that today's indexes lack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

import apsw
import numpy as np
from numpy.typing import NDArray

from ricordo.model import Scope
from ricordo.storage.database.connection import all_terms
from ricordo.storage.database.embeddings import Corpus, mean_vector
from ricordo.storage.database.history import Table, marks, named, truth_of
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import column, sql
from ricordo.storage.database.vector_math import decode
from ricordo.storage.database.word_index import matching
from ricordo.storage.protocol import Links
from ricordo.storage.sql import read_snapshot, translated
from ricordo.storage.values import FormerText, Image, When
from ricordo.text.analyzer import index_terms
from ricordo.text.names import stems_of

Keys = NDArray[np.int64]


_BODY = re.compile(r"\bAS\s")
"""What comes before the body of a view in its statement."""


class DatabasePastSnapshot(DatabaseSnapshot):
    """The store as it was after a commit. `at` is the instant that counts as now, `today` the present store."""

    is_past = True

    def __init__(self, connection: apsw.Connection, *, today: DatabaseSnapshot, commit: int, at: int) -> None:
        super().__init__(connection)
        self.today = today
        self.commit_number = commit
        self.at = at

    def current(self, now: int) -> int:
        return self.at

    @cached_property
    def altered(self) -> dict[int, FormerText]:
        """The former texts by node that today's indexes lack, since the node was changed or removed."""
        return {key: FormerText(*text) for key, *text in self.rows("past_altered")}

    def holders(self, scope: Scope, term: str) -> set[int]:
        spaces = self.visible(scope)
        match = matching([term], spaces)
        if not match:
            return set()
        held = {key for key in self._indexed(match) if key not in self.altered}
        texts = ((key, text) for key, text in self.altered.items() if text.space in spaces)
        found = ((key, all_terms(text.content, text.tags, text.speaker)) for key, text in texts)
        return held | {key for key, terms in found if term in terms}

    def closed_since(self, keys: Keys) -> Keys:
        return np.array(column(self.rows("past_closed_since", {"keys": json.dumps(keys.tolist())})), np.int64)

    def similar(
        self,
        scope: Scope,
        vectors: Mapping[int, NDArray[np.float32]],
        *,
        among: Keys,
        shelves: Sequence[str],
        most: int,
    ) -> dict[int, float]:
        unaltered = among[~np.isin(among, np.array(list(self.altered), np.int64))]
        found: dict[int, float] = {}
        for model, vector in vectors.items() if len(unaltered) else ():
            corpus = Corpus(model, len(vector), self.visible(scope), shelves)
            everywhere = corpus._replace(shelves=("k", "e", "c"))
            live, _ = self.today.vector_shelves.nearest(self.today, everywhere, vector, limit=most, among=unaltered)
            cosines = self._cosines(corpus, np.concatenate([live, self.closed_since(unaltered)]), vector)
            best = sorted(cosines.items(), key=lambda pair: (-pair[1], -pair[0]))[:most]
            found.update((key, max(cosine, found.get(key, 0.0))) for key, cosine in best if cosine > 0)
        return found

    def _cosines(self, corpus: Corpus, keys: Keys, question: NDArray[np.float32]) -> dict[int, float]:
        """Return cosines with the question after today's mean is subtracted from both, for keys with a vector today."""
        rows = self.rows("embeddings_of", {"model": corpus.model, "nodes": json.dumps(keys.tolist())})
        if not rows:
            return {}
        held = {node: decode(vector) for node, vector in rows}
        mean = mean_vector(self.today, corpus)
        differences, asked = np.stack(list(held.values())) - mean, question - mean
        norms = np.linalg.norm(differences, axis=1) * np.linalg.norm(asked)
        return dict(zip(held, (differences @ asked / np.maximum(norms, 1e-9)).tolist(), strict=True))

    def _indexed(self, match: str) -> Iterator[int]:
        for name in ("live_postings", "archive_postings"):
            text = self.value(name, {"match": match, "most": -1})
            yield from map(int, text.split(",")) if text else ()

    def may_name(self, space: int, name: str) -> list[int]:
        """Return the nodes of a space that may contain a name, without those in `altered`."""
        terms = index_terms(name)
        if not terms:
            return []
        lists = [set(self._indexed(matching([term], [space]))) for term in terms]
        return sorted(lists[0].intersection(*lists[1:]) - self.altered.keys())


def commit_of(today: DatabaseSnapshot, scope: Scope, when: When) -> tuple[int, int]:
    """Return the number of the commit that is meant (0: before the first), and the instant that counts as now.

    Commits are ordered by number. An instant means the last commit whose own time is not after it, with all commits
    before. If a clock was set back, an instant may have occurred twice; then the later time counts.
    """
    values = {"spaces": json.dumps(today.visible(scope))}
    if when.commit is None:
        rows = today.rows("commit_at", {**values, "at": when.at})
        return (rows[0][0] if rows else 0), when.at
    rows = today.rows("commit_upto", {**values, "seq": when.commit})
    return rows[0] if rows else (0, 0)


@contextmanager
def past(
    connection: apsw.Connection, today: DatabaseSnapshot, *, commit: int, at: int, links: Links
) -> Iterator[DatabasePastSnapshot]:
    """Yield the store as it was after a commit. Takes over and closes `connection`."""
    try:
        with translated("cannot read"):
            connection.execute("PRAGMA query_only = OFF")  # for temporary tables; the file itself is opened read-only
            with read_snapshot(connection):
                snapshot = DatabasePastSnapshot(connection, today=today, commit=commit, at=at)
                _shadow(snapshot)
                shadow_links(snapshot, links)
                yield snapshot
    finally:
        connection.close()


def _shadow(snapshot: DatabasePastSnapshot) -> None:
    """Shadow all truth tables. SQL is built from strings: names come from the schema, and the commit is an int."""
    connection, commit = snapshot.connection, int(snapshot.commit_number)
    truth = truth_of(connection)
    former: dict[str, list[Image]] = {name: [] for name in truth.tables}
    for name, row, before in connection.execute(sql("history_spanning"), {"commit": commit}):
        former[name].append(truth.tables[name].image(before, row))
    for table in truth.tables.values():
        _shadow_table(connection, table, former[table.name], commit)
    for name in ("commits", "history"):
        connection.execute(f'CREATE TEMP VIEW "{name}" AS SELECT * FROM main."{name}" WHERE seq <= {commit}')
    for name, text in snapshot.rows("schema_views"):
        connection.execute(f'CREATE TEMP VIEW "{name}" AS {_BODY.split(text, 1)[1]}')


def _shadow_table(connection: apsw.Connection, table: Table, former: Sequence[Image], commit: int) -> None:
    columns = named(table.columns)
    own = " INTEGER" if len(table.key) == 1 else ""
    typed = ", ".join(f'"{name}"{own if name in table.key else ""}' for name in table.columns)
    connection.execute(f'CREATE TEMP TABLE "past_{table.name}" ({typed}, PRIMARY KEY ({named(table.key)}))')
    rows = [tuple(image[name] for name in table.columns) for image in former]
    connection.executemany(f'INSERT INTO "past_{table.name}" VALUES ({marks(table.columns)})', rows)
    connection.execute(
        # `+` prevents an index on commits: nearly every row qualifies, and the index would find them one by one.
        f'CREATE TEMP VIEW "{table.name}" AS SELECT {columns} FROM main."{table.name}" WHERE +commit_seq <= {commit}'
        f' UNION ALL SELECT {columns} FROM temp."past_{table.name}"'
    )


def shadow_links(snapshot: DatabasePastSnapshot, links: Links) -> None:
    """Find mentions again for nodes whose text, or entities whose name, was different."""
    for statement in ("past_links_table", "past_renamed_table", "past_renamed_fill", "past_altered_table"):
        snapshot.rows(statement)
    searched = _to_search(snapshot)
    snapshot.many("past_altered_insert", [(key,) for keys in searched.values() for key in keys])
    found = {pair for space, keys in searched.items() for pair in links(snapshot, space, sorted(keys))}
    pairs = {*found, *_links_of_renamed(snapshot, links)}
    snapshot.many("past_link_insert", sorted(pairs))
    snapshot.rows("past_links_view")
    snapshot.rows("past_counts_view")


def _to_search(snapshot: DatabasePastSnapshot) -> dict[int, set[int]]:
    """Return the nodes by space whose words were different, or that may mention a relation that was different."""
    spaces: dict[int, set[int]] = {}
    for key, text in snapshot.altered.items():
        spaces.setdefault(text.space, set()).add(key)
    for space, predicate in snapshot.rows("past_relations_changed"):
        for words in stems_of(predicate):
            spaces.setdefault(space, set()).update(snapshot.may_name(space, words))
    return spaces


def _links_of_renamed(snapshot: DatabasePastSnapshot, links: Links) -> Iterator[tuple[int, int]]:
    renamed = snapshot.rows("past_renamed_names")
    relations = snapshot.rows("past_renamed_relations")
    renamed += [(space, words, entity) for space, predicate, entity in relations for words in stems_of(predicate)]
    entities = {entity for _, _, entity in renamed}
    for space, alias, _ in renamed:
        found = links(snapshot, space, snapshot.may_name(space, alias))
        yield from (pair for pair in found if pair[1] in entities)
