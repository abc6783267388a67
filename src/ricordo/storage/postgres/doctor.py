"""The checks of `doctor` for a PostgreSQL store, and the removal of erased rows from the server's files."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from ricordo.errors import UnavailableError
from ricordo.model import Report
from ricordo.storage.database.maintenance import Check, report_of, truth_checks
from ricordo.storage.postgres.connection import connect, translated
from ricordo.storage.postgres.location import Location
from ricordo.storage.postgres.schema import migrations, version_of
from ricordo.storage.postgres.snapshot import PostgresSnapshot
from ricordo.storage.postgres.words import words_off
from ricordo.storage.values import Cleaned
from ricordo.text.sentences import plural

_LOCKED = "55P03"
_RESTORE = "restore the database from a backup"


def examine(snapshot: PostgresSnapshot, *, unawaited_failures: int) -> Report:
    """Run every check, even if another one has failed."""
    checks: dict[str, Check] = {
        "server": lambda: (str(snapshot.connection.execute("SHOW server_version").get), ""),
        "schema": lambda: _schema(snapshot),
        "owners": lambda: _owners(snapshot),
        **truth_checks(snapshot),
        "full text": lambda: _words(snapshot),
    }
    return report_of(checks, unawaited_failures=unawaited_failures)


def _schema(snapshot: PostgresSnapshot) -> tuple[str, str]:
    connection: Any = snapshot.connection
    version = version_of(connection)
    return f"version {version}", "" if version == migrations()[-1][0] else "open the store with this version of Ricordo"


def _owners(snapshot: PostgresSnapshot) -> tuple[str, str]:
    """Report whether policies apply. They do not for a role that owns the tables or is a superuser."""
    connection: Any = snapshot.connection
    if connection.upkeep is not None:
        return f"kept apart by the server, upkeep as {connection.upkeep}", ""
    return f"kept apart by statements alone: policies do not bind {connection.execute('SELECT session_user').get}", ""


def _words(snapshot: PostgresSnapshot) -> tuple[str, str]:
    off = words_off(snapshot)
    return (f"{plural(off, 'memory', 'memories')} out of step", _RESTORE) if off else ("in step", "")


def clean(location: Location, *, patience_s: float) -> Cleaned:
    """Remove deleted rows from the tables. The server's log, its replicas and its backups keep them for a while."""
    with translated("cannot clean the store"), connect(location) as raw:
        before = _size(raw, location)
        tables = raw.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace(%s)",
            (location.schema,),
        ).fetchall()
        for (table,) in tables:
            _vacuum(raw, f'"{location.schema}"."{table}"', until=time.monotonic() + patience_s)
        return Cleaned(is_done=True, bytes_before=before, bytes_after=_size(raw, location))


def _vacuum(raw: psycopg.Connection[Any], table: str, *, until: float) -> None:
    """Vacuum a table, waiting a while for its lock. `lock_timeout` would stay set in the connection of a pooler, since
    VACUUM does not run in a transaction.
    """
    skipped: list[str | None] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        skipped.append(notice.sqlstate)

    raw.add_notice_handler(note)
    while True:
        skipped.clear()
        raw.execute(f"VACUUM (TRUNCATE FALSE, SKIP_LOCKED) {table}")
        if _LOCKED not in skipped:
            raw.remove_notice_handler(note)
            return
        if time.monotonic() >= until:
            raise UnavailableError(f"cannot clean the store: {table} is in use", hint="try again")
        time.sleep(0.1)


def _size(raw: psycopg.Connection[Any], location: Location) -> int:
    statement = (
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
        " WHERE relkind = 'r' AND relnamespace = to_regnamespace(%s)"
    )
    row = raw.execute(statement, (location.schema,)).fetchone()
    return int(row[0]) if row else 0
