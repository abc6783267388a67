"""The full-text index: its postings, and the merging of its segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from ricordo.storage.database import queries
from ricordo.storage.database.statements import Statements
from ricordo.storage.database.vectors.keys import runs_of, stretches
from ricordo.storage.sql import transaction
from ricordo.text.languages import analyzer_version

if TYPE_CHECKING:
    Keys = NDArray[np.int64]
    Codes = NDArray[np.uint32]


_ANALYZER_KEY = "analyzer"
"""The version of the analyzer that made a store's index terms, features and statement lines."""

_ANALYZE_AGAIN = (
    "text_live_clear",
    "text_live_fill",
    "text_archive_clear",
    "text_archive_fill",
    "features_refill",
    "slots_clear",
    "slots_fill",
    "turns_changed",
)

# Segments are merged when the largest holds less than this share: a word is then written about four times in all.
_LARGEST_SHARE = 0.75
# Fewer pages are searched quickly anyway.
_LEAST_PAGES = 64
# Pages merged per step: some milliseconds, in which nothing else can be written.
_PAGES_PER_STEP = 64


def space_postings(sql: Statements, space: int, term: str, *, most: int) -> list[int]:
    """Return the nodes of one space that hold an index term, closed ones too; at most `most` of either."""
    match = " OR ".join(f'"{term}·{space}{shelf}"' for shelf in "kec")
    lists = (sql.value(name, {"match": match, "most": most}) for name in ("live_postings", "archive_postings"))
    return [int(key) for text in lists if text for key in text.split(",")]


def is_fragmented(sql: Statements, *, least: int = _LEAST_PAGES) -> bool:
    """Return whether merging the segments of the full-text index pays. Each write adds a segment, each search reads
    all; SQLite merges some of equal size and stops at about a dozen.

    Args:
        least: an index of fewer pages is left as it is.
    """
    pages = sql.rows_of_store("word_parts")[0]
    return bool(pages[1] >= least and pages[0] < _LARGEST_SHARE * pages[1])


def merge_step(sql: Statements) -> bool:
    """Merge the segments a little further. Return False when only one is left."""
    before = sql.connection.total_changes()
    sql.rows("word_parts_join", {"pages": -_PAGES_PER_STEP})
    return sql.connection.total_changes() - before > 1  # the command itself counts as one


def analyze_again(connection: apsw.Connection) -> None:
    """Rebuild the index terms, features and statement lines of a store if another analyzer made them.

    Takes some seconds for 100,000 memories, in one transaction: other processes wait or see the former index.
    """
    version = analyzer_version()
    if _stored_version(connection) == version:
        return
    with transaction(connection):
        if _stored_version(connection) == version:  # another process was first
            return
        for name in _ANALYZE_AGAIN:
            connection.execute(queries.sql(name))
        connection.execute(queries.sql("meta_put"), {"name": _ANALYZER_KEY, "value": version})


def _stored_version(connection: apsw.Connection) -> str | None:
    found: str | None = connection.execute(queries.sql("meta_get"), {"name": _ANALYZER_KEY}).get
    return found


_KEY_BITS = np.uint64(32)
_KEY = np.uint64((1 << 32) - 1)

KEYS_BELOW = 1 << 32
"""Postings cover turns with keys below 4,294,967,296; above, the full-text index is used."""


class Words(NamedTuple):
    """The words of some turns, which stay as they are whatever is read after them.

    Attributes:
        keys: int64[n], below `KEYS_BELOW`.
        codes: uint32[m], those of their words among many others.
        starts: int64[n], where the words of each turn begin in `codes`.
        sizes: int32[n], how many they are, repeats included.
    """

    keys: Keys
    codes: Codes
    starts: Keys
    sizes: NDArray[np.int32]


class Holders:
    """Keys of turns by the code of each word they hold. Never altered once it is made.

    Code and key are one number of 64 bits: those are sorted in a tenth of the time that an order of codes takes.
    """

    def __init__(self, words: Words) -> None:
        both = words.codes.take(stretches(words.starts, words.sizes)).astype(np.uint64)
        both <<= _KEY_BITS
        both |= words.keys.astype(np.uint64).repeat(words.sizes)
        both.sort()
        begins = runs_of(both)
        self._both = both.take(begins)
        self._times = np.diff(begins, append=len(both)).astype(np.uint32)

    def of(self, asked: Codes) -> list[Keys]:
        """For each of some codes the turns that hold it, ascending."""
        spans = zip(*(each.tolist() for each in self._spans(asked)), strict=True)
        return [(self._both[begin:end] & _KEY).astype(np.int64) for begin, end in spans]

    def occurrences(self, asked: Codes, *, most: int) -> tuple[NDArray[np.intp], Keys, NDArray[np.uint32]] | None:
        """Return (index of the code, turn, count) for each code and each turn with it; None if there are more than
        `most`.
        """
        begins, ends = self._spans(asked)
        sizes = ends - begins
        if sizes.sum() > most:
            return None
        where = stretches(begins, sizes)
        keys = (self._both.take(where) & _KEY).astype(np.int64)
        return np.arange(len(asked)).repeat(sizes), keys, self._times.take(where)

    def _spans(self, asked: Codes) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where the turns of each code begin and end."""
        first = asked.astype(np.uint64) << _KEY_BITS
        return self._both.searchsorted(first), self._both.searchsorted(first | _KEY, "right")
