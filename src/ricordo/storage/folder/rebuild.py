"""An index made anew from the files of a folder: the same rows, keys, seals and history; derived rows made again.

No embedding model is asked: vectors stand in the files. Files of rows are read twice, so that no more of them is held
than where the newest line of each row stands: once to find that, once to write those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from ricordo.ports import Progress
from ricordo.storage.database.apply import Rows, write_rows
from ricordo.storage.database.connection import connect, transaction
from ricordo.storage.database.queries import sql
from ricordo.storage.database.rows import Row
from ricordo.storage.database.schema import Migration, prepare
from ricordo.storage.folder.files import count_lines, lines_of
from ricordo.storage.folder.keys import KnownKeys
from ricordo.storage.folder.layout import (
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
from ricordo.storage.folder.lines import (
    Line,
    Shape,
    Shapes,
    Unfit,
    content_hash,
    decoded,
    line_mark,
    parsed,
    quick_reader,
    shapes_of,
)
from ricordo.storage.folder.load_rows import (
    COMMIT_COLUMNS,
    Inserting,
    adopted_by,
    commit_row,
    drop_dangling,
    history_row,
    names_row,
    put_kept,
    put_vector,
    shape_of,
)
from ricordo.storage.folder.state import Unused

_MANY_LINES = 2_000
"""From here on it pays to import the quick reader."""

# Rows are read after those that triggers of theirs look into, whatever file they stand in.
_IN_ORDER = (SESSIONS, *(name for name in ROW_FILES if name != SESSIONS))

# The words of a lot go to disk together: from smaller ones FTS5 has more to merge. Five thousand rows are a few MB.
_LOT = 5_000
_TOLD_EVERY = 1_000
_LARGEST_KEY = 1 << 62


@dataclass(frozen=True, slots=True)
class Loose:
    """A line that no commit wrote as it stands: written or altered by hand."""

    file: str
    offset: int
    line: Line
    table: str


@dataclass(slots=True)
class Built:
    """What an index was made of: how many lines, what nobody committed, and what could not be used."""

    lines: int = 0
    rows: int = 0
    by_hand: list[Loose] = field(default_factory=list)
    uncommitted: dict[str, list[int]] = field(default_factory=dict)
    unused: Unused = field(default_factory=Unused)


@dataclass(slots=True)
class _Lot:
    """Rows of one table that wait to be written, and where their lines stand."""

    shape: Shape
    inserting: Inserting
    rows: list[Row] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)


def build(target: Path, folder: Path, *, steps: tuple[Migration, ...], progress: Progress | None = None) -> Built:
    """Make an index at a path from the files of a folder. The path must be free.

    Raises:
        StoreError: the disk is full or failing.
    """
    connection = connect(target, durability="process", patience_s=1)
    try:
        prepare(connection, target, steps)
        # Whoever is interrupted begins again: until it is whole nobody looks at this file.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        with transaction(connection):
            built = fill(connection, folder, progress=progress)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return built
    finally:
        connection.close()


def fill(connection: apsw.Connection, folder: Path, *, progress: Progress | None = None) -> Built:
    """Fill an empty store from the files of a folder, inside the running transaction."""
    connection.execute("PRAGMA defer_foreign_keys = ON")
    return _Builder(connection, folder, progress).run()


class _Builder:
    """One building of an index."""

    def __init__(self, connection: apsw.Connection, folder: Path, progress: Progress | None) -> None:
        self._connection = connection
        self._folder = folder
        self._shapes: Shapes = shapes_of(connection)
        self._progress = progress or (lambda done, total: None)
        lines = {name: count_lines(folder / name) for name in FILES}
        self._built = Built(lines=sum(lines.values()))
        # Rows are read twice, and what is kept beside them, too.
        self._total = sum(count * (1 + (name in (*ROW_FILES, STORE))) for name, count in lines.items())
        self._passed = 0
        self._read = quick_reader() if self._total > _MANY_LINES else json.loads
        self._commits: set[int] = set()
        self._adopted: set[str] = set()
        self._newest: dict[str, dict[str, tuple[int, str, int | None]]] = {name: {} for name in self._shapes.rows}
        """Of each row: who wrote it last, and in which file and where that stands; nowhere if it was removed."""
        self._keys = KnownKeys(connection)
        self._has_vectors = lines[VECTORS] > 0
        self._made_from: dict[str, tuple[int, str]] = {}

    def run(self) -> Built:
        """All of it, inside one transaction."""
        self._kept(before_rows=True)
        self._commit_rows()
        for name in ROW_FILES:
            self._find_newest(name)
        wanted = self._wanted()
        for name in _IN_ORDER:
            self._write_file(name, wanted.get(name, set()))
        self._raise_sequences()
        self._history()
        self._vectors()
        self._kept(before_rows=False)
        self._drop_dangling()
        self._finish()
        return self._built

    def _lines(self, name: str, *, again: Set[int] | None = None) -> Iterator[tuple[int, Line]]:
        """What can be read of a file; the rest is noted. A torn end is nobody's line.

        Args:
            again: where lines begin that could be read before, where only those are wanted.
        """
        path = self._folder / name
        size = path.stat().st_size if path.exists() else 0
        for offset, raw in lines_of(path):
            self._passed += 1
            if self._passed % _TOLD_EVERY == 0:
                self._progress(self._passed, max(self._total, self._passed))
            is_passed_over = not raw.strip() if again is None else offset not in again
            if is_passed_over:
                continue
            try:
                yield offset, parsed(raw, self._read) if again is None else decoded(raw, self._read)
            except Unfit as error:
                if offset + len(raw) == size:
                    self._built.uncommitted.setdefault(name, []).append(offset)
                else:
                    self._built.unused.note(name, offset, str(error))

    def _kept(self, *, before_rows: bool) -> None:
        """What stands in no commit. What refers to memories comes after them."""
        for offset, line in self._lines(STORE):
            if before_rows and line.get("kind") == SEQUENCE:
                self._given_out(offset, line)
            shape = self._shapes.by_kind.get((STORE, str(line.get("kind", ""))))
            if shape is not None and before_rows == (shape.table.name not in AFTER_ROWS):
                try:
                    put_kept(self._connection, shape, line, self._keys)
                except (Unfit, apsw.Error) as error:
                    self._built.unused.note(STORE, offset, str(error))

    def _given_out(self, offset: int, line: Line) -> None:
        table, last = str(line.get("table")), line.get("last")
        is_known = table in self._shapes.rows or table in self._shapes.kept
        if is_known and isinstance(last, int) and 0 < last < _LARGEST_KEY:
            self._raise_sequence(table, last)
        else:
            self._built.unused.note(STORE, offset, "it says of no table up to where its keys were given out")

    def _commit_rows(self) -> None:
        rows: list[Row] = []
        places = []
        for offset, line in self._lines(COMMITS):
            try:
                rows.append(commit_row(line, self._keys))
                places.append(offset)
                self._adopted.update(adopted_by(line))
            except Unfit as error:
                self._built.unused.note(COMMITS, offset, str(error))
        why_not = Inserting(self._connection, "commits", COMMIT_COLUMNS).possible(rows)
        for offset, why in zip(places, why_not, strict=True):
            if why is not None:
                self._built.unused.note(COMMITS, offset, why)
        self._commits = {row[0] for row, why in zip(rows, why_not, strict=True) if why is None}

    def _find_newest(self, name: str) -> None:
        for offset, line in self._lines(name):
            shape = shape_of(self._shapes, name, line)
            commit, row = line.get("commit"), line.get("row")
            if shape is None:
                self._built.unused.note(name, offset, f"no such kind of line: {line.get('kind')!r}")
            elif commit is None or not names_row(row, shape):
                self._loose(name, offset, line, shape)
            elif commit not in self._commits:
                self._built.uncommitted.setdefault(name, []).append(offset)
            else:
                self._keys.learn(shape, line, row)
                newest = self._newest[shape.table.name]
                seen = newest.get(row)
                if seen is None or commit >= seen[0]:
                    newest[row] = commit, name, None if line.get("removed") else offset

    def _wanted(self) -> dict[str, set[int]]:
        """Where the newest lines stand, by file."""
        wanted: dict[str, set[int]] = {}
        for rows in self._newest.values():
            for _, file, offset in rows.values():
                if offset is not None:
                    wanted.setdefault(file, set()).add(offset)
        return wanted

    def _loose(self, name: str, offset: int, line: Line, shape: Shape) -> None:
        if line_mark(line) not in self._adopted:
            self._built.by_hand.append(Loose(name, offset, line, shape.table.name))

    def _write_file(self, name: str, wanted: set[int]) -> None:
        """The newest line of each row that stands in a file, in its order."""
        if not wanted:
            return
        lots: dict[str, _Lot] = {}
        for offset, line in self._lines(name, again=wanted):
            shape = shape_of(self._shapes, name, line)
            if shape is None:
                continue
            lot = lots.get(shape.table.name)
            if lot is None:
                table = shape.table
                lot = lots[table.name] = _Lot(shape, Inserting(self._connection, table.name, table.columns))
            self._take(lot, name, offset, line)
            if len(lot.rows) == _LOT:
                self._write(lot)
        for each in self._shapes.rows:
            if each in lots:
                self._write(lots[each])

    def _take(self, lot: _Lot, name: str, offset: int, line: Line) -> None:
        """A row as its line says; one that was altered since it was sealed is left to be adopted."""
        try:
            row = lot.shape.whole(line, self._keys)
        except Unfit as error:
            self._built.unused.note(name, offset, str(error))
            return
        if not lot.shape.holds(row):
            self._loose(name, offset, line, lot.shape)
        lot.rows.append(row)
        lot.places.append((name, offset))
        self._built.rows += 1

    def _write(self, lot: _Lot) -> None:
        why_not = lot.inserting.possible(lot.rows)
        for (name, offset), why in zip(lot.places, why_not, strict=True):
            if why is not None:
                self._built.unused.note(name, offset, why)
        if lot.shape.table.name == "nodes":
            self._index([row for row, why in zip(lot.rows, why_not, strict=True) if why is None])
        lot.rows.clear()
        lot.places.clear()

    def _index(self, nodes: list[Row]) -> None:
        """What goes with new rows of nodes."""
        columns = self._shapes.rows["nodes"].table.columns
        key, id_, content, speaker, closed_at = (
            columns.index(name) for name in ("key", "id", "content", "speaker", "closed_at")
        )
        rows = Rows()
        for row in nodes:
            rows.index(row, is_live=row[closed_at] is None)
            if self._has_vectors:
                self._made_from[row[id_]] = row[key], content_hash(row[content], row[speaker])
        write_rows(self._connection, rows)

    def _raise_sequences(self) -> None:
        for table, newest in self._newest.items():
            if self._shapes.rows[table].table.key == ("key",):
                last = max((int(row) for row in newest), default=0)
                self._raise_sequence(table, last)
                if table == "erasures":  # each takes the key of what was being erased
                    self._raise_sequence("erasing", last)

    def _raise_sequence(self, table: str, key: int) -> None:
        """Keys of rows that have gone are not given out again: the history knows them."""
        values = {"table": table, "key": key}
        self._connection.execute(sql("sequence_begin"), values)
        self._connection.execute(sql("sequence_raise"), values)

    def _history(self) -> None:
        rows, last = [], dict.fromkeys(self._shapes.rows, 0)
        for offset, line in self._lines(HISTORY):
            try:
                seq, table, row, before = history_row(self._shapes, line)
            except Unfit as error:
                self._built.unused.note(HISTORY, offset, str(error))
                continue
            if seq not in self._commits:
                self._built.uncommitted.setdefault(HISTORY, []).append(offset)
                continue
            rows.append((seq, table, row, before))
            if row.isdigit():
                last[table] = max(last[table], int(row))
        self._connection.executemany(sql("history_put"), rows)
        for table, key in last.items():
            if self._shapes.rows[table].table.key == ("key",):
                self._raise_sequence(table, key)

    def _drop_dangling(self) -> None:
        """Rows that refer to what is not there, because somebody took lines out: the lines stay, the index does
        without them.
        """
        while tables := {row[0] for row in self._connection.execute("PRAGMA foreign_key_check")}:
            for table in tables:
                for row, target in drop_dangling(self._connection, self._shapes, table):
                    _, file, offset = self._newest.get(table, {}).get(row, (0, f"row {row} of {table}", None))
                    self._built.unused.note(
                        file, -1 if offset is None else offset, f"refers to a missing row of {target}"
                    )
        self._newest.clear()

    def _vectors(self) -> None:
        models = {(name, size): key for key, name, size, *_ in self._connection.execute(sql("models_known"))}
        for offset, line in self._lines(VECTORS):
            try:
                put_vector(self._connection, line, models=models, made_from=self._made_from)
            except Unfit as error:
                self._built.unused.note(VECTORS, offset, str(error))

    def _finish(self) -> None:
        """Every memory is searched for names once more, so what was noted of single ones says nothing new."""
        self._connection.execute(sql("relations_to_link_forget"))
        last = str(max(self._commits, default=0))
        self._connection.execute(sql("meta_put"), {"name": "aliases linked through commit", "value": last})
        if (self._folder / PEOPLE).exists():
            for offset, line in self._lines(PEOPLE):
                if line_mark(line) not in self._adopted:
                    self._built.by_hand.append(Loose(PEOPLE, offset, line, "entities"))
        self._progress(max(self._total, self._passed), max(self._total, self._passed))
