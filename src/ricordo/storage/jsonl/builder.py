"""Build a database from files of lines: the same rows, keys, seals and history. Derived rows are computed again.

No embedding model is called: vectors are in the files. To save memory, files of rows are read twice: first to find the
newest line of each row, then to write these lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from ricordo.ports import Progress
from ricordo.storage.database.apply import Rows, write_rows
from ricordo.storage.database.connection import connect
from ricordo.storage.database.schema import Migration, prepare
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import Row, sql
from ricordo.storage.jsonl.layout import (
    AFTER_ROWS,
    COMMITS,
    FILES,
    HISTORY,
    PEOPLE,
    ROW_FILES,
    SEQUENCE,
    SESSIONS,
    STORE,
    VECTORS,
)
from ricordo.storage.jsonl.lines import (
    Findings,
    Line,
    LineError,
    content_hash,
    count_lines,
    decoded,
    lines_of,
    quick_reader,
)
from ricordo.storage.jsonl.loader import (
    COMMIT_COLUMNS,
    KnownKeys,
    LineReader,
    adopted_marks,
    commit_row,
    drop_dangling,
    history_row,
    insert_rows,
    put_kept,
    put_vector,
)
from ricordo.storage.jsonl.shapes import Shape, shapes_of
from ricordo.storage.key import LineCipher
from ricordo.storage.sql import transaction

T = TypeVar("T")

# From this many lines on, importing the faster reader is worthwhile.
_MANY_LINES = 2_000

# Sessions first, since triggers of other rows read them.
_IN_ORDER = (SESSIONS, *(name for name in ROW_FILES if name != SESSIONS))

# The words of a batch go to disk together: smaller batches leave FTS5 more to merge. 5,000 rows are a few MB.
_LOT = 5_000
_PROGRESS_EVERY = 1_000
_LARGEST_KEY = 1 << 62


@dataclass(slots=True)
class _Lot:
    """A batch of rows of one table to be written, with the places of their lines."""

    shape: Shape
    rows: list[Row] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)


def build(
    target: Path,
    folder: Path,
    *,
    steps: tuple[Migration, ...],
    progress: Progress | None = None,
    cipher: LineCipher | None = None,
) -> Findings:
    """Build a database at an unused path from the files of a folder; `cipher` decrypts them. Raises StoreError."""
    key = None if cipher is None else cipher.index_key
    with closing(connect(target, durability="process", patience_s=1, key=key)) as connection:
        prepare(connection, target, steps, key=key)
        # An interrupted build starts again: the file is not used until it is complete.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        with transaction(connection):
            built = fill(connection, folder, progress=progress, cipher=cipher)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return built


def fill(
    connection: apsw.Connection, folder: Path, *, progress: Progress | None = None, cipher: LineCipher | None = None
) -> Findings:
    """Fill an empty database from the files of a folder, inside the running transaction."""
    connection.execute("PRAGMA defer_foreign_keys = ON")
    return _Builder(connection, folder, progress, cipher).run()


class _Builder:
    """One build of a database."""

    def __init__(
        self, connection: apsw.Connection, folder: Path, progress: Progress | None, cipher: LineCipher | None
    ) -> None:
        self._connection = connection
        self._folder = folder
        self._shapes = shapes_of(connection)
        self._progress = progress or (lambda done, total: None)
        lines = {name: count_lines(folder / name) for name in FILES}
        self._found = Findings(lines=sum(lines.values()))
        self._reader = LineReader(folder, self._shapes, self._found, cipher)
        # Rows and the lines of the store are read twice.
        self._total = sum(count * (1 + (name in (*ROW_FILES, STORE))) for name, count in lines.items())
        self._passed = 0
        if self._total > _MANY_LINES:
            self._reader.parse = quick_reader()
        self._commits: set[int] = set()
        self._last_commit = 0
        self._newest: dict[str, dict[str, tuple[int, str, int | None]]] = {name: {} for name in self._shapes.rows}
        """For each row: the commit that wrote it last, the file and the offset of the line; no offset if removed."""
        self._keys = KnownKeys(connection)
        self._has_vectors = lines[VECTORS] > 0
        self._sources: dict[str, tuple[int, str]] = {}

    def run(self) -> Findings:
        """Build everything, inside one transaction."""
        ahead = LineReader(self._folder, self._shapes, Findings(), self._reader.cipher)
        ahead.parse = self._reader.parse
        self._last_commit = max((line.get("commit") or 0 for _, line in ahead.lines(COMMITS)), default=0)
        self._kept(before_rows=True)
        self._commit_rows()
        for name in ROW_FILES:
            self._find_newest(name)
        wanted: dict[str, set[int]] = {name: set() for name in ROW_FILES}
        for rows in self._newest.values():
            for _, file, offset in rows.values():
                if offset is not None:
                    wanted[file].add(offset)
        for name in _IN_ORDER:
            self._write_file(name, wanted[name])
        self._raise_sequences()
        self._history()
        self._vectors()
        self._kept(before_rows=False)
        self._drop_dangling()
        self._finish()
        return self._found

    def _counted(self, lines: Iterator[T]) -> Iterator[T]:
        """Yield lines, and report progress."""
        for each in lines:
            self._passed += 1
            if self._passed % _PROGRESS_EVERY == 0:
                self._progress(self._passed, max(self._total, self._passed))
            yield each

    def _kept(self, *, before_rows: bool) -> None:
        """Write what is outside the truth. Rows that refer to memories are written after these."""
        for offset, line in self._counted(self._reader.lines(STORE)):
            if (line.get("commit") or 0) > self._last_commit:
                self._found.cut(STORE, offset)
                continue
            if before_rows and line.get("kind") == SEQUENCE:
                self._raise_stated_sequence(offset, line)
            shape = self._shapes.by_kind.get((STORE, str(line.get("kind", ""))))
            if shape is not None and before_rows == (shape.table.name not in AFTER_ROWS):
                try:
                    put_kept(self._connection, shape, line, self._keys)
                except (LineError, apsw.Error) as error:
                    self._reader.unused(STORE, offset, error)

    def _raise_stated_sequence(self, offset: int, line: Line) -> None:
        table, last = str(line.get("table")), line.get("last")
        is_known = table in self._shapes.rows or table in self._shapes.kept
        if is_known and isinstance(last, int) and 0 < last < _LARGEST_KEY:
            self._raise_sequence(table, last)
        else:
            self._reader.unused(STORE, offset, "it names no table, or no last key")

    def _commit_rows(self) -> None:
        def taken(line: Line) -> Row:
            row = commit_row(line, self._keys)
            self._reader.adopted.update(adopted_marks(line))
            return row

        found = list(self._counted(self._reader.made(COMMITS, taken)))
        why_not = insert_rows(self._connection, "commits", COMMIT_COLUMNS, [row for _, row in found])
        for (offset, row), why in zip(found, why_not, strict=True):
            if why is None:
                self._commits.add(row[0])
            else:
                self._reader.unused(COMMITS, offset, why)

    def _find_newest(self, name: str) -> None:
        for offset, line, shape in self._counted(self._reader.committed(name)):
            commit, row = line["commit"], line["row"]
            if commit not in self._commits:
                self._found.cut(name, offset)
                continue
            self._keys.learn(shape, line, row)
            newest = self._newest[shape.table.name]
            seen = newest.get(row)
            if seen is None or commit >= seen[0]:
                newest[row] = commit, name, None if line.get("removed") else offset

    def _write_file(self, name: str, wanted: set[int]) -> None:
        """Write the rows of the newest lines in a file, in the order of the file."""
        if not wanted:
            return
        lots: dict[str, _Lot] = {}
        for offset, raw in self._counted(lines_of(self._folder / name)):
            if offset not in wanted:
                continue
            line = decoded(self._reader.opened(name, raw), self._reader.parse)
            shape = self._shapes.of_line(name, line)
            if shape is None:
                continue
            lot = lots.get(shape.table.name)
            if lot is None:
                lot = lots[shape.table.name] = _Lot(shape)
            self._take(lot, name, offset, line)
            if len(lot.rows) == _LOT:
                self._write(lot)
        for each in self._shapes.rows:
            if each in lots:
                self._write(lots[each])

    def _take(self, lot: _Lot, name: str, offset: int, line: Line) -> None:
        """Add the row of a line to a batch. A line changed after it was sealed is also adopted later."""
        try:
            row = lot.shape.whole(line, self._keys)
        except LineError as error:
            self._reader.unused(name, offset, error)
            return
        if not lot.shape.holds(row):
            self._reader.by_hand(name, offset, line, lot.shape.table.name)
        lot.rows.append(row)
        lot.places.append((name, offset))

    def _write(self, lot: _Lot) -> None:
        table = lot.shape.table
        why_not = insert_rows(self._connection, table.name, table.columns, lot.rows)
        for (name, offset), why in zip(lot.places, why_not, strict=True):
            if why is not None:
                self._reader.unused(name, offset, why)
        if table.name == "nodes":
            self._index([row for row, why in zip(lot.rows, why_not, strict=True) if why is None])
        lot.rows.clear()
        lot.places.clear()

    def _index(self, nodes: list[Row]) -> None:
        """Write the rows derived from new nodes."""
        columns = self._shapes.rows["nodes"].table.columns
        key, id_, content, speaker, closed_at = map(columns.index, ("key", "id", "content", "speaker", "closed_at"))
        rows = Rows()
        for row in nodes:
            rows.index(row, is_live=row[closed_at] is None)
            if self._has_vectors:
                self._sources[row[id_]] = row[key], content_hash(row[content], row[speaker])
        write_rows(DatabaseSnapshot(self._connection), rows)

    def _raise_sequences(self) -> None:
        for table, newest in self._newest.items():
            if self._shapes.rows[table].has_own_key:
                last = max((int(row) for row in newest), default=0)
                if table == "sessions":  # runs may refer to sessions that no longer exist
                    last = max(last, int(self._connection.execute(sql("session_last_key")).get))
                self._raise_sequence(table, last)
                if table == "erasures":  # an erasure has the same key as its row in `erasing`
                    self._raise_sequence("erasing", last)

    def _raise_sequence(self, table: str, key: int) -> None:
        """Make sure that keys of removed rows are not reused, since the history refers to them."""
        values = {"table": table, "key": key}
        self._connection.execute(sql("sequence_begin"), values)
        self._connection.execute(sql("sequence_raise"), values)

    def _history(self) -> None:
        rows, last = [], dict.fromkeys(self._shapes.rows, 0)
        for offset, image in self._counted(self._reader.made(HISTORY, partial(history_row, self._shapes))):
            seq, table, row, _ = image
            if seq not in self._commits:
                self._found.cut(HISTORY, offset)
                continue
            rows.append(image)
            if row.isdigit():
                last[table] = max(last[table], int(row))
        self._connection.executemany(sql("history_put"), rows)
        for table, key in last.items():
            if self._shapes.rows[table].has_own_key:
                self._raise_sequence(table, key)

    def _drop_dangling(self) -> None:
        """Delete rows that refer to missing rows, whose lines were deleted. The lines of the deleted rows stay."""
        while tables := {row[0] for row in self._connection.execute("PRAGMA foreign_key_check")}:
            for table in tables:
                for row, target in drop_dangling(self._connection, self._shapes, table):
                    _, file, offset = self._newest.get(table, {}).get(row, (0, f"row {row} of {table}", None))
                    self._reader.unused(file, -1 if offset is None else offset, f"refers to a missing row of {target}")
        self._newest.clear()

    def _vectors(self) -> None:
        models = {(name, size): key for key, name, size, *_ in self._connection.execute(sql("models_known"))}
        put = partial(put_vector, self._connection, models=models, sources=self._sources)
        for _ in self._counted(self._reader.made(VECTORS, put)):
            pass

    def _finish(self) -> None:
        """Record the progress of background work. All memories are searched for names again."""
        self._connection.execute(sql("relations_to_link_forget"))
        last = str(max(self._commits, default=0))
        self._connection.execute(sql("meta_put"), {"name": "aliases linked through commit", "value": last})
        if (self._folder / PEOPLE).exists():
            for offset, line in self._counted(self._reader.lines(PEOPLE)):
                self._reader.by_hand(PEOPLE, offset, line, "entities")
        self._progress(max(self._total, self._passed), max(self._total, self._passed))
