"""Complete exports: all lines of a store that a caller may see, and loading them into an empty store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ricordo.model import Scope
from ricordo.ports import Progress
from ricordo.storage.database.connection import connect
from ricordo.storage.database.integrity import renew_chain
from ricordo.storage.database.schema import migrations
from ricordo.storage.database.snapshot import DatabaseSnapshot, database_of
from ricordo.storage.jsonl.builder import build, fill
from ricordo.storage.jsonl.layout import ARCHIVE, COMMITS, ENTITIES, EPISODES, FILES, MEMORIES, STORE
from ricordo.storage.jsonl.lines import Findings
from ricordo.storage.jsonl.writer import ScopedLines
from ricordo.storage.protocol import Snapshot
from ricordo.storage.sql import read_snapshot

__all__ = [
    "ARCHIVE",
    "COMMITS",
    "ENTITIES",
    "EPISODES",
    "FILES",
    "MEMORIES",
    "STORE",
    "has_models",
    "holds_only",
    "is_empty",
    "lines_of",
    "load_lines",
    "opened_lines",
    "schema_version",
]


def schema_version() -> int:
    """Return the schema version of complete exports."""
    return migrations()[-1].version


def lines_of(snapshot: Snapshot, scope: Scope) -> ScopedLines:
    """Return the lines of everything a caller may see."""
    return ScopedLines(database_of(snapshot), scope)


def is_empty(snapshot: Snapshot) -> bool:
    """Return whether nothing was ever written to a store."""
    database = database_of(snapshot)
    return not database.rows("spaces_known") and not database.rows("commit_last")


def holds_only(snapshot: Snapshot, scope: Scope) -> bool:
    """Return whether a caller may see everything in a store."""
    pairs = {(owner, chat) for _, owner, chat in database_of(snapshot).rows("spaces_named")}
    return pairs <= {(scope.owner, ""), ("", scope.chat or "")}


def has_models(snapshot: Snapshot) -> bool:
    """Return whether a store has an embedding model."""
    return bool(snapshot.models.known())


def load_lines(snapshot: Snapshot, folder: Path, *, is_whole: bool, progress: Progress | None) -> Findings:
    """Fill an empty store from files, in the running transaction. Unless `is_whole`, compute a new commit chain."""
    connection = database_of(snapshot).connection
    built = fill(connection, folder, progress=progress)
    if not is_whole:
        renew_chain(connection)
    return built


@contextmanager
def opened_lines(folder: Path, target: Path) -> Iterator[tuple[Snapshot, Findings]]:
    """Build a database at an unused path from the files of a folder, and read it. The caller deletes it."""
    built = build(target, folder, steps=migrations())
    with closing(connect(target, read_only=True, patience_s=1)) as connection, read_snapshot(connection):
        yield DatabaseSnapshot(connection), built
