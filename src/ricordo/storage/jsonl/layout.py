"""The files of a folder: which table is written to which file, and under which field names.

If the seed's files have a name for a field (`memory_type`, `owner_user_id`, `observed_at`, ...), it is used here, so
that the seed's files can be opened unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ricordo.storage.database.history import TABLES

MEMORIES: Final = "memories.jsonl"
EPISODES: Final = "episodes.jsonl"
ARCHIVE: Final = "archive.jsonl"
ENTITIES: Final = "entities.jsonl"
EDGES: Final = "edges.jsonl"
SESSIONS: Final = "sessions.jsonl"
RUNS: Final = "runs.jsonl"
REVIEWS: Final = "reviews.jsonl"
OTHERS: Final = "others.jsonl"
HISTORY: Final = "history.jsonl"
VECTORS: Final = "vectors.jsonl"
STORE: Final = "store.jsonl"
COMMITS: Final = "commits.jsonl"
PEOPLE: Final = "people.jsonl"
"""A file of the seed: it is read but never written."""

MEMORY_FILES: Final[tuple[str, ...]] = (MEMORIES, EPISODES, ARCHIVE)
"""The files of memories: live knowledge, live episodes, closed memories."""

ROW_FILES: Final[tuple[str, ...]] = (*MEMORY_FILES, ENTITIES, EDGES, SESSIONS, RUNS, REVIEWS, OTHERS)
"""The files that hold rows of the truth."""

FILES: Final[tuple[str, ...]] = (*ROW_FILES, HISTORY, VECTORS, STORE, COMMITS)
"""In the order of writing: the line of a commit is written last and makes the other lines valid."""

RESERVED: Final = frozenset(("kind", "row", "commit", "seal", "sum", "removed", "owner_user_id", "chat_id"))
"""Fields that describe a line itself. A column with such a name gets an underscore appended."""

INDEX: Final = "index.db"

NOTES: Final = "notes"
"""A folder of Markdown notes beside the files. A memory keeps it in sync; the store does not touch it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How rows of a table are written as lines.

    Args:
        kind: the `kind` of the lines; "" for the table that the file is named after.
        names: the fields whose name differs from their column.
    """

    file: str
    kind: str = ""
    names: Mapping[str, str] = field(default_factory=dict)


FORMS: Final[Mapping[str, Form]] = {name: Form(**each) for name, each in TABLES["truth"].items()}
"""The truth tables. Rows of a table that is missing here go to `others.jsonl`, and a test fails."""

KEPT: Final[Mapping[str, Form]] = {name: Form(file=STORE, **each) for name, each in TABLES["kept"].items()}
"""Tables outside the truth, without history, that cannot be computed again."""

SETTINGS: Final = ("fingerprint_key",)
"""The rows of `meta` that are kept. The others record the progress of background work."""

SEQUENCE: Final = "sequence"
"""A line of `store.jsonl` with the last key used in a table. Keys of erased rows are not reused, since suppressions
and runs refer to them.
"""

AFTER_ROWS: Final = frozenset(TABLES["after_rows"])
SETTLED: Final = frozenset(TABLES["settled"])


def form_of(table: str) -> Form:
    """Return how rows of a truth table are written as lines."""
    return FORMS.get(table) or Form(file=OTHERS, kind=table)


def file_of(table: str, image: Mapping[str, Any] | None = None) -> str:
    """Return the file for a row. For a memory it depends on the state of the row; a removal has no image."""
    if table != "nodes" or image is None:
        return form_of(table).file
    if image["closed_at"] is not None:
        return ARCHIVE
    return EPISODES if image["type"] == "episodic" else MEMORIES
