"""Which file of a folder each table is written to, and under which names. The one description of the files.

Names are those of the seed's files where it has them (`memory_type`, `owner_user_id`, `observed_at`, ...), so that its
files open as they are and its readers are at home.
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
"""The seed's; read, never written."""

MEMORY_FILES: Final[tuple[str, ...]] = (MEMORIES, EPISODES, ARCHIVE)
"""Those a memory may stand in, by what has become of it."""

ROW_FILES: Final[tuple[str, ...]] = (*MEMORY_FILES, ENTITIES, EDGES, SESSIONS, RUNS, REVIEWS, OTHERS)
"""Those that hold rows of the truth."""

FILES: Final[tuple[str, ...]] = (*ROW_FILES, HISTORY, VECTORS, STORE, COMMITS)
"""In the order in which they are written: the line of a commit comes last, and makes the others count."""

RESERVED: Final = frozenset(("kind", "row", "commit", "seal", "sum", "removed", "owner_user_id", "chat_id"))
"""What a line says of itself. A column of that name is written with a line below it."""

INDEX: Final = "index.db"
BUILDING: Final = ".index.building"
LOCK: Final = ".lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How rows of a table become lines: their file, what sort of line that is, and fields not named like their column.

    `kind` is empty for the rows a file is named after.
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
"""The truth tables. A test fails where the schema has one that is missing here; its rows go to `others.jsonl`."""

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
    "failures": Form(file=STORE, kind="failure"),
    "withheld": Form(file=STORE, kind="withheld"),
    "withheld_prints": Form(file=STORE, kind="withheld_print"),
    "withheld_spans": Form(file=STORE, kind="withheld_span"),
    "meta": Form(file=STORE, kind="setting"),
}
"""No truth, and without a history, but nothing that could be made again."""

SETTINGS: Final = ("fingerprint_key",)
"""What of `meta` is kept; the rest are marks of how far background work has come."""

SEQUENCE: Final = "sequence"
"""A line of `store.jsonl` that says up to where keys of a table were given out: they are not given out again once their
rows have been erased, since what is withheld and what a run did go by them.
"""

AFTER_ROWS: Final = frozenset(("associates", "failures", "to_erase", "withheld_prints", "withheld_spans"))
"""Kept tables that refer to others."""

SETTLED: Final = frozenset(("withheld",))
"""Kept tables that triggers of rows change as well: what their lines say was settled after that."""

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
"""Made again when the index is, from the rows and from `vectors.jsonl`; or, as `usage`, allowed to be lost."""

OWN: Final = frozenset(("commits", "history"))
"""Tables with a file of their own."""


def form_of(table: str) -> Form:
    """How rows of a truth table are written."""
    return FORMS.get(table) or Form(file=OTHERS, kind=table)


def file_of(table: str, image: Mapping[str, Any]) -> str:
    """Which file a row goes to: a memory's depends on what has become of it."""
    if table != "nodes":
        return form_of(table).file
    if image["closed_at"] is not None:
        return ARCHIVE
    return EPISODES if image["type"] == "episodic" else MEMORIES
