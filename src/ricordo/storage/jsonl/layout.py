"""The files of a folder: which table is written to which file, and under which names.

Where the seed's files have a name for a field (`memory_type`, `owner_user_id`, `observed_at`, ...), it is used here, so
that its files can be opened as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

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
"""A file of the seed: read, never written."""

MEMORY_FILES: Final[tuple[str, ...]] = (MEMORIES, EPISODES, ARCHIVE)
"""The files of memories: live knowledge, live episodes, closed memories."""

ROW_FILES: Final[tuple[str, ...]] = (*MEMORY_FILES, ENTITIES, EDGES, SESSIONS, RUNS, REVIEWS, OTHERS)
"""The files that hold rows of the truth."""

FILES: Final[tuple[str, ...]] = (*ROW_FILES, HISTORY, VECTORS, STORE, COMMITS)
"""In the order of writing: the line of a commit comes last and makes the others count."""

RESERVED: Final = frozenset(("kind", "row", "commit", "seal", "sum", "removed", "owner_user_id", "chat_id"))
"""Fields that describe a line itself. A column of that name is written with an underscore appended."""

INDEX: Final = "index.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How rows of a table become lines.

    Args:
        kind: the `kind` of the lines; empty for the table that a file is named after.
        names: the fields that are not named like their column.
    """

    file: str
    kind: str = ""
    names: Mapping[str, str] = field(default_factory=dict)


FORMS: Final[Mapping[str, Form]] = {
    "nodes": Form(
        file=MEMORIES,
        names={
            "category": "memory_type",
            "source_type": "source",
            "source_role": "role",
            "session": "source_session_id",
            "attributes": "metadata",
            "event_time": "observed_at",
            "closed_at": "archived_at",
            "closed_reason": "archive_reason",
        },
    ),
    "sessions": Form(file=SESSIONS),
    "entities": Form(
        file=ENTITIES,
        names={
            "canonical_name": "name",
            "attributes": "metadata",
            "first_seen": "created_at",
            "last_updated": "updated_at",
        },
    ),
    "aliases": Form(file=ENTITIES, kind="alias"),
    "relations": Form(file=ENTITIES, kind="relation"),
    "subjects": Form(file=EDGES, kind="subject", names={"node": "memory"}),
    "edges": Form(file=EDGES),
    "reviews": Form(file=REVIEWS, names={"kind": "what"}),
    "runs": Form(file=RUNS, names={"kind": "what"}),
    "erasures": Form(file=RUNS, kind="erasure", names={"kind": "what"}),
}
"""The truth tables. Rows of one that is missing here go to `others.jsonl`; a test reports it."""

KEPT: Final[Mapping[str, Form]] = {
    "spaces": Form(file=STORE, kind="space", names={"owner": "owner_user_id", "chat": "chat_id"}),
    "models": Form(file=STORE, kind="model"),
    "off_record": Form(file=STORE, kind="off_record"),
    "associates": Form(file=STORE, kind="associate", names={"node": "memory"}),
    "erased": Form(file=STORE, kind="erased"),
    "erased_ids": Form(file=STORE, kind="erased_id"),
    "erasing": Form(file=STORE, kind="erasing", names={"kind": "what"}),
    "to_erase": Form(file=STORE, kind="to_erase", names={"row": "key"}),
    "model_use": Form(file=STORE, kind="model_use"),
    "model_calls": Form(file=STORE, kind="model_call", names={"kind": "what"}),
    "failures": Form(file=STORE, kind="failure"),
    "withheld": Form(file=STORE, kind="withheld"),
    "withheld_prints": Form(file=STORE, kind="withheld_print"),
    "withheld_spans": Form(file=STORE, kind="withheld_span"),
    "meta": Form(file=STORE, kind="setting"),
}
"""Tables outside the truth, without history, that cannot be computed again."""

SETTINGS: Final = ("fingerprint_key",)
"""The rows of `meta` that are kept. The others note the progress of background work."""

SEQUENCE: Final = "sequence"
"""A line of `store.jsonl` with the last key used in a table. Keys of erased rows are not used again: suppressions and
runs refer to them.
"""

AFTER_ROWS: Final = frozenset(
    ("associates", "failures", "model_calls", "to_erase", "withheld_prints", "withheld_spans")
)
"""Kept tables that refer to rows of the truth."""

SETTLED: Final = frozenset(("withheld",))
"""Kept tables that are also changed by triggers of rows; their lines are written after those."""

DERIVED: Final = frozenset(
    (
        "usage",
        "slots",
        "found_mentions",
        "entity_counts",
        "linked",
        "traits",
        "to_link",
        "relations_to_link",
        "shelves",
        "embeddings",
        "word_vectors",
        "centres",
        "removals",
        "packs",
        "leases",
        "floors",
        "proposals",
        "sums",
    )
)
"""Tables computed again when the index is rebuilt, from rows and `vectors.jsonl`; `usage` may be lost."""

OWN: Final = frozenset(("commits", "history"))
"""Tables with files of their own."""


def form_of(table: str) -> Form:
    """Return how rows of a truth table are written."""
    return FORMS.get(table) or Form(file=OTHERS, kind=table)


def file_of(table: str, image: Mapping[str, Any]) -> str:
    """Return the file a row is written to. The file of a memory depends on its state."""
    if table != "nodes":
        return form_of(table).file
    if image["closed_at"] is not None:
        return ARCHIVE
    return EPISODES if image["type"] == "episodic" else MEMORIES
