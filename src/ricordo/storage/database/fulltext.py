"""The full-text index: its postings, and the merging of its segments."""

from __future__ import annotations

from ricordo.storage.database.statements import Statements

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
