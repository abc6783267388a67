"""The schema: create a store, or migrate an older one."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import apsw

from ricordo.errors import StoreError
from ricordo.storage import faults
from ricordo.storage.database.connection import APPLICATION_ID
from ricordo.storage.database.word_index import analyze_again, is_analyzed
from ricordo.storage.key import AnyKey, unlock
from ricordo.storage.sql import MENDING, read_snapshot, transaction, translated, use_wal

_FILE = re.compile(r"(\d{4})_(\w+)\.sql\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered step. `version` is the schema version after it."""

    version: int
    name: str
    sql: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Return all steps in order, from an empty file to the newest schema."""
    found = []
    for path in (files("ricordo.storage.database") / "migrations").iterdir():
        if match := _FILE.match(path.name):
            text = path.read_text(encoding="utf-8")
            found.append(Migration(version=int(match[1]), name=match[2], sql=text))
    return tuple(sorted(found, key=lambda step: step.version))


def prepare(
    connection: apsw.Connection, path: Path, steps: tuple[Migration, ...], *, key: AnyKey | None = None
) -> None:
    """Create the store at `path`, or back up and migrate an older one. Raises StoreError."""
    newest = steps[-1].version
    with translated(f"cannot open {path}"):
        with read_snapshot(connection):  # another process may be creating the store right now
            version = _checked_version(connection, path, newest=newest)
        use_wal(connection)  # not earlier: another program's file must stay unchanged
        if version < newest:
            _migrate(connection, path, steps, key)
        analyze_again(connection)


def is_current(connection: apsw.Connection, path: Path, steps: tuple[Migration, ...]) -> bool:
    """Return whether the store at `path` needs no migration and no other index terms. Raises StoreError."""
    with read_snapshot(connection):
        return _checked_version(connection, path, newest=steps[-1].version) == steps[-1].version and is_analyzed(
            connection
        )


def _migrate(connection: apsw.Connection, path: Path, steps: tuple[Migration, ...], key: AnyKey | None = None) -> None:
    """Run all steps in one transaction, which also makes the backup, so that nothing is written in between."""
    with transaction(connection):
        # Another process may have been first.
        version = _checked_version(connection, path, newest=steps[-1].version)
        if 0 < version < steps[-1].version:
            _back_up(path, version, key)
        for step in steps:
            if step.version > version:
                connection.execute(step.sql)
                faults.reached("schema: between steps")
        connection.execute(f"PRAGMA user_version = {steps[-1].version}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        faults.reached("schema: before commit")


def _checked_version(connection: apsw.Connection, path: Path, *, newest: int) -> int:
    version = int(connection.pragma("user_version"))
    application = int(connection.pragma("application_id"))
    is_empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
    if application != APPLICATION_ID and not is_empty:
        raise StoreError(
            f"{path} is another program's database", hint=f"choose another path; if it was a store: {MENDING}"
        )
    if version > newest:
        raise StoreError(
            f"{path} has schema {version}, this Ricordo knows {newest}", hint="upgrade with pip install -U ricordo"
        )
    return version


def _back_up(path: Path, version: int, key: AnyKey | None) -> None:
    """Copy the store to a file beside it, on a second connection: the migrating one cannot copy what it will change."""
    faults.reached("schema: before backup")
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as source:
        unlock(source, path, key)
        copy_database(source, path.with_name(f"{path.name}.v{version}.backup"), key=key)


def copy_database(source: apsw.Connection, target: Path, *, key: AnyKey | None) -> None:
    """Copy a database consistently in one step, even under load. Copying the file lost rows and yet passed every check.

    The target appears complete or not at all; an existing one is replaced.

    Args:
        key: the key of the copy. Copies of an encrypted database must be encrypted, and copies of a plain one plain.
    """
    partial = target.with_name(f"{target.name}.partial")
    try:
        _copy(source, partial, key)
        faults.reached("backup: before naming")
        partial.replace(target)
    finally:
        for path in (partial, partial.with_name(f"{partial.name}-journal")):
            path.unlink(missing_ok=True)


def _copy(source: apsw.Connection, target: Path, key: AnyKey | None) -> None:
    target.unlink(missing_ok=True)  # left by an interrupted attempt
    target.touch(mode=0o600)
    faults.reached("backup: before copy")
    with closing(apsw.Connection(str(target))) as copy:
        unlock(copy, target, key)
        with copy.backup("main", source, "main") as backup:
            backup.step(-1)
            faults.reached("backup: in copy")
