"""The word index consists of parts, one for each lot that was written; a search looks into all of them for each of its
words. SQLite joins a few of one size at a time and is content with a dozen; here they become one as the index grows.
"""

from __future__ import annotations

from ricordo.storage.database.statements import Statements

# Joined anew when the largest part is less than this share of the whole: a word is then written some four times in all.
_LARGEST_SHARE = 0.75
# So few pages are looked through at once anyway.
_LEAST_PAGES = 64
# So many are written at a time: some milliseconds, in which nobody else writes.
_PAGES_AT_ONCE = 64


def is_scattered(snapshot: Statements, *, least: int = _LEAST_PAGES) -> bool:
    """Whether joining the parts of the word index would pay.

    Args:
        least: an index of fewer pages is left as it is.
    """
    pages = snapshot.rows_of_store("word_parts")[0]
    return bool(pages[1] >= least and pages[0] < _LARGEST_SHARE * pages[1])


def space_postings(sql: Statements, space: int, term: str, *, most: int) -> list[int]:
    """Return the nodes of one space that hold an index term, closed ones too; at most `most` of either."""
    match = " OR ".join(f'"{term}·{space}{shelf}"' for shelf in "kec")
    lists = (sql.value(name, {"match": match, "most": most}) for name in ("live_postings", "archive_postings"))
    return [int(key) for text in lists if text for key in text.split(",")]


def join_on(snapshot: Statements) -> bool:
    """Join the parts a little further. False when they are one."""
    before = snapshot.connection.total_changes()
    snapshot.rows("word_parts_join", {"pages": -_PAGES_AT_ONCE})
    return snapshot.connection.total_changes() - before > 1  # the command itself counts for one
