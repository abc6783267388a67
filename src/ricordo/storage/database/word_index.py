"""The word index of the database: which nodes hold a term, its maintenance, and its rebuilding for a new analyzer."""

from __future__ import annotations

import json
from collections.abc import Iterable

import apsw

from ricordo.storage.database.statements import Group, Statements
from ricordo.storage.database.statements import sql as statement
from ricordo.storage.sql import transaction
from ricordo.text.analyzer import index_terms
from ricordo.text.languages import analyzer_version

_ANALYZER_KEY = "analyzer"
"""Names the version of the analyzer that made a store's index terms, features and statement lines."""

_ANALYZE_AGAIN = (
    "text_live_clear",
    "text_live_fill",
    "text_archive_clear",
    "text_archive_fill",
    "features_clear",
    "features_fill",
    "slots_clear",
    "slots_fill",
    "turns_changed",
)

# Segments are merged while the largest holds less than this share: each word is then written about four times.
_LARGEST_SHARE = 0.75
# An index with fewer pages is fast enough without merging.
_LEAST_PAGES = 64
# Texts with one name that are linked again when somebody no longer bears it.
_MOST_OF_NAME = 100_000
# Pages merged per step: it takes some milliseconds, in which nothing else can be written.
_PAGES_PER_STEP = 64


def matching(terms: Iterable[str], spaces: Iterable[int], shelves: str = "kec") -> str:
    """Return the full-text query for nodes that hold any of some index terms, in some spaces and on some shelves."""
    return " OR ".join(f'"{term}·{space}{shelf}"' for term in terms for space in spaces for shelf in shelves)


def space_postings(sql: Statements, space: int, term: str, *, most: int) -> list[int]:
    """Return the nodes of one space that hold an index term: at most `most` live ones, and as many closed ones."""
    values = {"match": matching([term], [space]), "most": most}
    lists = (sql.value(name, values) for name in ("live_postings", "archive_postings"))
    return [int(key) for text in lists if text for key in text.split(",")]


def nodes_with(sql: Statements, space: int, words: str, *, most: int) -> list[int]:
    """Return the nodes of one space that hold all index terms of some words, of at most `most` for each term."""
    lists = [space_postings(sql, space, term, most=most) for term in index_terms(words)]
    return sorted(set(lists[0]).intersection(*lists[1:])) if lists else []


def look_again_for(sql: Statements, names: Iterable[tuple[int, str]]) -> None:
    """Note the texts with some names, each with its space, that somebody no longer bears: they may now mean another."""
    nodes = {key for space, name in names for key in nodes_with(sql, space, name, most=_MOST_OF_NAME)}
    sql.rows("to_link_put", {"nodes": json.dumps(sorted(nodes))})


def is_analyzed(connection: apsw.Connection) -> bool:
    """Return whether the present analyzer made the index terms of a store."""
    return _stored_version(connection) == analyzer_version()


def analyze_again(connection: apsw.Connection) -> None:
    """Rebuild the index terms, features and statement lines of a store if another analyzer made them.

    It takes some seconds for 100,000 memories, in one transaction. Other processes wait or see the former index.
    """
    if is_analyzed(connection):
        return
    version = analyzer_version()
    with transaction(connection):
        if _stored_version(connection) == version:  # another process was first
            return
        fill_again(connection)
        connection.execute(statement("meta_put"), {"name": _ANALYZER_KEY, "value": version})


def fill_again(connection: apsw.Connection) -> None:
    """Rebuild the index terms, features and statement lines from the memories, in the running transaction."""
    for name in _ANALYZE_AGAIN:
        connection.execute(statement(name))


def _stored_version(connection: apsw.Connection) -> str | None:
    found: str | None = connection.execute(statement("meta_get"), {"name": _ANALYZER_KEY}).get
    return found


class Upkeep(Group):
    """Maintenance of the backend's word index, in short steps, so that other writers wait only milliseconds."""

    def is_due(self, *, least: int = _LEAST_PAGES) -> bool:
        """Return whether merging segments is worthwhile. Each write adds a segment, and each search reads all of them;
        SQLite itself stops merging at about a dozen. An index of fewer than `least` pages is not merged.
        """
        pages = self._sql.rows_of_store("word_parts")[0]
        return bool(pages[1] >= least and pages[0] < _LARGEST_SHARE * pages[1])

    def step(self) -> bool:
        """Merge the segments a little further. Return False once only one is left."""
        before = self._sql.connection.total_changes()
        self._sql.rows("word_parts_join", {"pages": -_PAGES_PER_STEP})
        return self._sql.connection.total_changes() - before > 1  # the command itself counts as one
