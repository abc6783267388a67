"""Maintenance of a SQLite file: remove every byte of erased rows, check for damage, and recover readable rows.

Deleted words remain in four places: in segments of a full-text index until they are merged, in free pages, in the
unused part of other pages, and in the write-ahead log. SQLite's statistics also contain samples of names. Merging,
rewriting the file and truncating the log remove all of them.
"""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw

from ricordo.clock import from_ms
from ricordo.errors import StoreError
from ricordo.model import Finding, Report
from ricordo.storage import faults
from ricordo.storage.database.connection import add_functions, connect
from ricordo.storage.database.hashes import chain, digest, erased_hash, is_bare, is_sealed
from ricordo.storage.database.history import TABLES, Table, named, truth_of
from ricordo.storage.database.integrity import columns_of, table_sum, unsealed, wrong_digests
from ricordo.storage.database.schema import migrations
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import sql
from ricordo.storage.database.word_index import fill_again
from ricordo.storage.key import AnyKey, fitting, unlock
from ricordo.storage.sql import transaction, translated
from ricordo.storage.values import Cleaned
from ricordo.text.sentences import plural

_INDEXES = ("nodes_fts", "archive_fts")
_SAMPLES = ("sqlite_stat1", "sqlite_stat4")
# Up to this size, a file is rewritten in memory; a larger one with temporary files of SQLite.
_IN_MEMORY_BYTES = 128 << 20
_RETRY_S = 0.05

Check = Callable[[], tuple[str, str]]
"""Returns (what it found, remedy); the remedy is "" if all is well."""


def clean(path: Path, *, patience_s: float, key: AnyKey | None = None) -> Cleaned:
    """Rewrite the file so that no byte of deleted rows is left. Uses its own connection, outside transactions.

    Args:
        patience_s: how long to wait for other processes, in seconds.

    Raises:
        StoreError: the disk is full, since the file is rewritten beside itself.
        UnavailableError: another process kept writing.
    """
    with translated("cannot clean the store"):
        connection = connect(path, patience_s=patience_s, key=key)
        try:
            connection.execute("PRAGMA secure_delete = ON")
            before = _size(connection)
            _merge_indexes(connection)
            faults.reached("erase: before rewriting")
            if before > _IN_MEMORY_BYTES and key is None:  # temporary files are not encrypted
                connection.execute("PRAGMA temp_store = FILE")
            connection.execute("VACUUM")
            faults.reached("erase: before cutting the log")
            is_done = _truncate_log(connection, patience_s=patience_s)
            return Cleaned(is_done=is_done, bytes_before=before, bytes_after=_size(connection))
        except apsw.FullError as error:
            raise StoreError(
                "erased, but traces remain in the file: the disk is too full to rewrite it",
                hint="free some space and open the store again",
            ) from error
        finally:
            connection.close()


def _size(connection: apsw.Connection) -> int:
    return int(connection.pragma("page_count")) * int(connection.pragma("page_size"))


def _merge_indexes(connection: apsw.Connection) -> None:
    with transaction(connection):
        for name in _INDEXES:
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('optimize')")
        known = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'")}
        for name in known.intersection(_SAMPLES):
            connection.execute(f"DELETE FROM {name}")


def _truncate_log(connection: apsw.Connection, *, patience_s: float) -> bool:
    """Return whether the log was emptied, which is impossible while a reader uses an older state of the store."""
    until = time.monotonic() + patience_s
    while True:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
        if not busy:
            return True
        if time.monotonic() > until:
            return False
        time.sleep(_RETRY_S)


_RESTORE = "restore a backup, or run `ricordo doctor --fix`: it recovers what can be read, and keeps the damaged store"
_RECOUNT = "run `ricordo doctor --fix`: it is worked out from the memories again"
DERIVED = frozenset(("full text", "slots", "counts", "time spans"))
"""The checks of what is worked out from the memories, and can be worked out again."""
_COUNTS_OFF = {"shelves": "counts_off", "entities": "entity_counts_off"}
_OLDEST_SAFE = 3_051_003
"""SQLite before 3.51.3 could lose commits in write-ahead-log mode."""


def examine(snapshot: DatabaseSnapshot, path: Path, *, unawaited_failures: int) -> Report:
    """Run every check, even if another one has failed."""
    version = apsw.sqlite_lib_version()
    is_old = apsw.SQLITE_VERSION_NUMBER < _OLDEST_SAFE
    checks: dict[str, Check] = {
        "file": lambda: _pages(snapshot),
        "schema": lambda: _schema(snapshot),
        "references": lambda: _references(snapshot),
        **truth_checks(snapshot),
        "settings and vectors": lambda: _sums(snapshot),
        "full text": lambda: _in_step(snapshot, "text_index_off", "memory", "memories"),
        "slots": lambda: _in_step(snapshot, "slots_off", "fact", "facts"),
        "time spans": lambda: _spans(snapshot),
        "permissions": lambda: _permissions(path),
        "sqlite": lambda: (version, "pip install -U apsw-sqlite3mc" if is_old else ""),
    }
    return report_of(checks, unawaited_failures=unawaited_failures)


def truth_checks(snapshot: DatabaseSnapshot) -> dict[str, Check]:
    """Return the checks that apply to any database: rows, former versions, commits, erasures and counts."""
    return {
        "row seals": lambda: _seals(snapshot),
        "history": lambda: _former(snapshot),
        "commit chain": lambda: _chain(snapshot),
        "commit rows": lambda: _digests(snapshot),
        "erasures": lambda: _erasures(snapshot),
        "counts": lambda: _counts(snapshot),
        "embeddings": lambda: _embeddings(snapshot),
    }


def report_of(checks: Mapping[str, Check], *, unawaited_failures: int) -> Report:
    """Run every check, even if another one has failed."""
    failed = unawaited_failures
    told = f"{failed} failed", "see the log for the reason" if failed else ""
    everything = {**checks, "background writes": lambda: told}
    return Report(findings=tuple(_finding(name, check) for name, check in everything.items()))


def _finding(name: str, check: Check) -> Finding:
    """Run a check. An error counts as damage."""
    try:
        detail, remedy = check()
    except Exception as error:  # noqa: BLE001 - damaged rows may raise anything
        detail, remedy = f"cannot be read: {error}", _RESTORE
    return Finding(check=name, ok=not remedy, detail=detail, remedy=remedy)


def _pages(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    # `quick_check` takes as long, but does not compare indexes with their tables.
    said = [row[0] for row in snapshot.connection.execute("PRAGMA integrity_check(5)")]
    if said == ["ok"]:
        # The check does not see that the only page of an empty index has become an inner page; every use of it fails.
        said = [f"page {page} of {name} is damaged" for name, page in snapshot.rows("pages_off")] or said
    return ("whole", "") if said == ["ok"] else ("; ".join(said), _RESTORE)


def _schema(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    """Compare the tables and not only the version: a migration may leave the right version and wrong tables."""
    mine = apsw.Connection(":memory:")
    add_functions(mine)
    for step in migrations():
        mine.execute(step.sql)
    shape = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY type, name"
    wanted, found = set(mine.execute(shape)), set(snapshot.connection.execute(shape))
    mine.close()
    off = sorted({row[1] for row in wanted ^ found})
    return (f"differs in {', '.join(off[:5])}", _RESTORE) if off else (f"version {migrations()[-1].version}", "")


def _references(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    broken = snapshot.connection.execute("PRAGMA foreign_key_check").fetchall()
    return (f"{plural(len(broken), 'row')} with a broken reference", _RESTORE) if broken else ("none broken", "")


def _seals(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    """Check every truth row. SQLite's own checks miss most flipped bits, since a changed letter is valid to them."""
    rows, off = 0, []
    for table in truth_of(snapshot.connection).tables.values():
        for row in snapshot.connection.execute(f'SELECT {named(table.columns)} FROM "{table.name}"'):
            rows += 1
            if not is_sealed(row[:-1], row[-1]):
                off.append(f"row {row[0]} of {table.name}")
    if off:
        return f"{len(off):,} of {rows:,} rows are not as written, such as {off[0]}", _RESTORE
    return f"{plural(rows, 'row')} as written", ""


def _sums(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    """Check the tables without seals: settings, vectors, suppressions."""
    off = _not_as_written(snapshot, unsealed(snapshot.connection))
    many = len(TABLES["unsealed"])
    return (f"not as written: {', '.join(off)}", _RESTORE) if off else (f"{many} tables as written", "")


def _spans(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    """Check since when and until when entities were named. Nothing else in the store tells it."""
    off = _not_as_written(snapshot, columns_of(snapshot.connection, ("entity_counts",)))
    return ("not as written", _RECOUNT) if off else ("as written", "")


def _not_as_written(snapshot: DatabaseSnapshot, tables: Mapping[str, tuple[str, ...]]) -> list[str]:
    stated = dict(snapshot.connection.execute(sql("sums_all")))
    return [name for name, each in tables.items() if stated.get(name) != table_sum(snapshot.connection, name, each)]


def _former(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    """Check former versions by their own seals, which lack columns that the table got later."""
    tables = truth_of(snapshot.connection).tables
    count, off = 0, []
    for seq, name, row, before in snapshot.rows("history_sealed"):
        count += 1
        if name not in tables or not _is_as_written(tables[name], row, before):
            off.append(f"{name} {row} before change {seq}")
    if off:
        return f"{len(off):,} of {count:,} former versions are not as written, such as {off[0]}", _RESTORE
    return f"{plural(count, 'former version')} as written", ""


def _is_as_written(table: Table, row: str, before: str) -> bool:
    try:
        image = table.image(before, row)
        return is_sealed([image[name] for name in table.sealed if name in image], image["seal"])
    except (ValueError, KeyError, TypeError):
        return False


def _chain(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    head = b""
    count = 0
    for *values, actor, reason, words, hashed in snapshot.rows("commits_all"):
        if chain(head, values) != hashed or not _are_its_words(snapshot, values[0], (actor, reason), words):
            return f"broken at commit {values[0]}", _RESTORE
        head = hashed
        count += 1
    return plural(count, "commit"), ""


def _are_its_words(snapshot: DatabaseSnapshot, seq: int, said: tuple[str, str], words: bytes) -> bool:
    """Return whether actor and reason of a commit are unchanged, or were erased by a recorded erasure."""
    if not is_bare(words):
        return is_sealed(said, words)
    return said[1] == "" and bool(snapshot.rows("commit_words_erased", {"seq": seq, "hash": words}))


def _digests(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    """Compare each commit with the rows it wrote: none may be missing or added, except for erased ones."""
    wrong = next(wrong_digests(snapshot.connection), None)
    return (f"rows of commit {wrong} are missing, or not its own", _RESTORE) if wrong else ("all there", "")


def count_again(snapshot: DatabaseSnapshot) -> None:
    """Count memories and the span of time of each entity again, in the running transaction."""
    for name in ("shelves_clear", "shelves_fill", "entity_counts_clear", "entity_counts_fill"):
        snapshot.rows(name)


def derive_again(snapshot: DatabaseSnapshot) -> None:
    """Compute again what the checks in `DERIVED` examine, in the running transaction. The memories must be sound."""
    fill_again(snapshot.connection)
    count_again(snapshot)
    columns = columns_of(snapshot.connection, ("entity_counts",))["entity_counts"]
    total = table_sum(snapshot.connection, "entity_counts", columns)
    snapshot.rows("sum_put", {"table": "entity_counts", "total": total})


def _erasures(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    """Check that exactly those rows were erased that the erasures state."""
    count, pending = 0, snapshot.value("erasing_count")
    for key, rows, stated in snapshot.rows("erasures_all"):
        left = [erased_hash(row) for row in snapshot.rows("erased_of", {"erasure": key})]
        if len(left) != rows or digest(left) != stated:
            return f"erasure {key} is not as it was written", _RESTORE
        count += rows
    said = f"{plural(count, 'row')} erased" if count else "nothing erased"
    return (f"{said}; the next opening finishes what was begun" if pending else said), ""


def _in_step(snapshot: DatabaseSnapshot, statement: str, one: str, many: str) -> tuple[str, str]:
    off = snapshot.value(statement)
    return (f"{plural(off, one, many)} out of step", _RECOUNT) if off else ("in step", "")


def _counts(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    off = [f"{len(rows)} {what} off" for what in ("shelves", "entities") if (rows := snapshot.rows(_COUNTS_OFF[what]))]
    return (", ".join(off), _RECOUNT) if off else ("right", "")


def _embeddings(snapshot: DatabaseSnapshot) -> tuple[str, str]:
    """Count missing vectors. They are not damage: they are computed in the background."""
    said = [
        f"{name}: {snapshot.value('lacking_count', {'model': key})} to come"
        for key, name, _, _, state in snapshot.rows("models_known")
        if state != "retiring"
    ]
    return "; ".join(said) or "none", ""


def _permissions(path: Path) -> tuple[str, str]:
    mode = stat.S_IMODE(path.stat().st_mode)
    return (f"mode {mode:04o}", f"chmod 600 {path}") if mode & 0o077 else (f"mode {mode:04o}", "")


_READ_MOST = 1_000_000
_MISSES_MOST = 20_000


def read_rows(path: Path, key: AnyKey | None = None) -> list[dict[str, Any]]:
    """Return what can be read of the live memories in a damaged file: their content and some other fields."""
    found: list[dict[str, Any]] = []
    with suppress(apsw.Error), closing(apsw.Connection(str(path))) as connection:
        unlock(connection, path, fitting(path, key))
        spaces = _readable(connection, "spaces_all_by_key")
        sessions = _readable(connection, "session_names")
        misses = 0
        for row_key in range(1, _READ_MOST):
            try:
                rows = connection.execute(sql("node_remains"), {"key": row_key}).fetchall()
            except apsw.Error:
                rows = []
            misses = 0 if rows else misses + 1
            if misses > _MISSES_MOST:
                break
            for row in rows:
                id, space, kind, category, text, role, speaker, session, tags, at = tuple[Any, ...](row)
                owner, chat = spaces.get(space, ("", ""))
                shared = {"id": id, "at": from_ms(at), "owner": owner, "chat": chat, "content": text}
                if kind == "episodic":
                    names = {"role": role or "user", "speaker": speaker, "session": sessions.get(session, (None,))[0]}
                    found.append({**shared, **names})
                else:
                    found.append({**shared, "type": kind, "category": category, "tags": json.loads(tags)})
    return found


def _readable(connection: apsw.Connection, statement: str) -> dict[int, tuple[Any, ...]]:
    """Return the readable rows of a small table, by their first column."""
    found: dict[int, tuple[Any, ...]] = {}
    with suppress(apsw.Error):
        for key, *rest in connection.execute(sql(statement)):
            found[key] = tuple(rest)
    return found
