"""An index made anew from the files of a folder: the same rows, keys, seals and history; derived rows made again.

No embedding model is asked: vectors stand in the files. Each file is read twice: once to find the newest line of each
row, once to write those.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from ricordo.ports import Progress
from ricordo.store.folder.files import count_lines, lines_of
from ricordo.store.folder.gathering import where_key
from ricordo.store.folder.layout import (
    AFTER_ROWS,
    COMMITS,
    FILES,
    HISTORY,
    MEMORY_FILES,
    PEOPLE,
    ROW_FILES,
    STORE,
    VECTORS,
)
from ricordo.store.folder.lines import (
    Line,
    Shape,
    Shapes,
    Unfit,
    content_hash,
    encode,
    line_mark,
    milliseconds,
    parsed,
    shapes_of,
)
from ricordo.store.sqlite.apply import Rows, write_rows
from ricordo.store.sqlite.connection import connect, transaction
from ricordo.store.sqlite.queries import sql
from ricordo.store.sqlite.rows import is_sealed
from ricordo.store.sqlite.schema import Migration, prepare

_LOT = 1_000


@dataclass(slots=True)
class Unused:
    """Lines that did not become rows: why, in how many lines, and where the first ones stand."""

    reasons: dict[str, int] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)

    def note(self, file: str, offset: int, why: str) -> None:
        self.reasons[why] = self.reasons.get(why, 0) + 1
        if len(self.places) < 20:
            self.places.append(f"{file} at byte {offset}: {why}")


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
class _Newest:
    """Of one row: who wrote it last, and where that stands; `offset` is None where it was removed."""

    commit: int
    file: int
    offset: int | None


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
        self._total = sum(count_lines(folder / name) * (1 + (name in ROW_FILES)) for name in FILES)
        self._built = Built()
        self._commits: set[int] = set()
        self._adopted: set[str] = set()
        self._newest: dict[str, dict[str, _Newest]] = {name: {} for name in self._shapes.rows}
        self._keys = KnownKeys(connection)
        self._made_from: dict[str, tuple[int, str]] = {}

    def run(self) -> Built:
        """All of it, inside one transaction."""
        self._kept(before_rows=True)
        self._commit_rows()
        for number, name in enumerate(ROW_FILES):
            self._find_newest(number, name)
        for table in self._shapes.rows:
            self._write_table(table)
        self._history()
        self._drop_dangling()
        self._vectors()
        self._kept(before_rows=False)
        self._finish()
        return self._built

    def _lines(self, name: str) -> Iterator[tuple[int, Line]]:
        """What can be read of a file; the rest is noted. A torn end is nobody's line."""
        path = self._folder / name
        size = path.stat().st_size if path.exists() else 0
        for offset, raw in lines_of(path):
            self._built.lines += 1
            if self._built.lines % _LOT == 0:
                self._progress(self._built.lines, max(self._total, self._built.lines))
            if not raw.strip():
                continue
            try:
                yield offset, parsed(raw)
            except Unfit as error:
                if offset + len(raw) == size:
                    self._built.uncommitted.setdefault(name, []).append(offset)
                else:
                    self._built.unused.note(name, offset, str(error))

    def _kept(self, *, before_rows: bool) -> None:
        """What stands in no commit. What refers to memories comes after them."""
        for offset, line in self._lines(STORE):
            shape = self._shapes.by_kind.get((STORE, str(line.get("kind", ""))))
            if shape is not None and before_rows == (shape.table.name not in AFTER_ROWS):
                try:
                    put_kept(self._connection, shape, line, self._keys)
                except (Unfit, apsw.Error) as error:
                    self._built.unused.note(STORE, offset, str(error))

    def _commit_rows(self) -> None:
        rows = []
        for offset, line in self._lines(COMMITS):
            try:
                rows.append(commit_row(line, self._keys))
                self._adopted.update(line.get("adopted", ()))
            except Unfit as error:
                self._built.unused.note(COMMITS, offset, str(error))
        self._connection.executemany(sql("commit_insert"), rows)
        self._commits = {row[0] for row in rows}

    def _find_newest(self, number: int, name: str) -> None:
        for offset, line in self._lines(name):
            shape = shape_of(self._shapes, name, line)
            commit, row = line.get("commit"), line.get("row")
            if shape is None:
                self._built.unused.note(name, offset, f"no such kind of line: {line.get('kind')!r}")
            elif commit is None or not isinstance(row, str):
                self._loose(name, offset, line, shape)
            elif commit not in self._commits:
                self._built.uncommitted.setdefault(name, []).append(offset)
            else:
                self._keys.learn(shape, line, row)
                seen = self._newest[shape.table.name].get(row)
                if seen is None or commit >= seen.commit:
                    found = _Newest(commit, number, None if line.get("removed") else offset)
                    self._newest[shape.table.name][row] = found

    def _loose(self, name: str, offset: int, line: Line, shape: Shape) -> None:
        if line_mark(line) not in self._adopted:
            self._built.by_hand.append(Loose(name, offset, line, shape.table.name))

    def _write_table(self, table: str) -> None:
        """The newest line of each row, in the order of the files."""
        shape, newest = self._shapes.rows[table], self._newest.pop(table)
        wanted: dict[int, set[int]] = {}
        for found in newest.values():
            if found.offset is not None:
                wanted.setdefault(found.file, set()).add(found.offset)
        write = self._write_nodes if table == "nodes" else self._writer_of(shape)
        lot: list[dict[str, Any]] = []
        for number, offsets in sorted(wanted.items()):
            for offset, line in self._lines(ROW_FILES[number]):
                if offset in offsets and (image := self._image(shape, ROW_FILES[number], offset, line)):
                    lot.append(image)
                    if len(lot) == _LOT:
                        write(lot)
                        lot.clear()
        write(lot)
        if shape.table.key == ("key",):
            last = max((int(row) for row in newest), default=0)
            self._raise_sequence(table, last)
            if table == "erasures":  # each takes the key of what was being erased
                self._raise_sequence("erasing", last)

    def _image(self, shape: Shape, file: str, offset: int, line: Line) -> dict[str, Any] | None:
        """A row as its line says; one that was altered since it was sealed is left to be adopted."""
        try:
            image = whole_image(shape, line, self._keys)
        except Unfit as error:
            self._built.unused.note(file, offset, str(error))
            return None
        values = [image[name] for name in shape.table.sealed]
        if not is_sealed(values, image["seal"]):
            self._loose(file, offset, line, shape)
        self._built.rows += 1
        return image

    def _writer_of(self, shape: Shape) -> Callable[[list[dict[str, Any]]], None]:
        columns = shape.table.columns
        named, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
        statement = f'INSERT INTO "{shape.table.name}" ({named}) VALUES ({marks}) ON CONFLICT DO NOTHING'

        def write(lot: list[dict[str, Any]]) -> None:
            self._connection.executemany(statement, [tuple(image[name] for name in columns) for image in lot])

        return write

    def _write_nodes(self, lot: list[dict[str, Any]]) -> None:
        columns = self._shapes.rows["nodes"].table.columns
        rows = Rows()
        for image in lot:
            row = tuple(image[name] for name in columns)
            rows.add("node_insert", row)
            rows.index(row, is_live=image["closed_at"] is None)
            self._made_from[image["id"]] = image["key"], content_hash(image["content"], image["speaker"])
        write_rows(self._connection, rows)

    def _raise_sequence(self, table: str, key: int) -> None:
        """Keys of rows that have gone are not given out again: the history knows them."""
        values = {"table": table, "key": key}
        self._connection.execute(sql("sequence_begin"), values)
        self._connection.execute(sql("sequence_raise"), values)

    def _history(self) -> None:
        rows, last = [], dict.fromkeys(self._shapes.rows, 0)
        for offset, line in self._lines(HISTORY):
            try:
                seq, table, row, before = (line[name] for name in ("commit", "table", "row", "before"))
            except KeyError as error:
                self._built.unused.note(HISTORY, offset, f"lacks {error}")
                continue
            if seq not in self._commits:
                self._built.uncommitted.setdefault(HISTORY, []).append(offset)
                continue
            rows.append((seq, table, row, encode(before)))
            if row.isdigit() and table in last:
                last[table] = max(last[table], int(row))
        self._connection.executemany(sql("history_put"), rows)
        for table, key in last.items():
            if self._shapes.rows[table].table.key == ("key",):
                self._raise_sequence(table, key)

    def _drop_dangling(self) -> None:
        """Rows that refer to what is not there, because somebody took lines out: the lines stay, the index does
        without them.
        """
        while broken := self._broken():
            for table, rowid, target, _ in broken:
                self._built.unused.note(table, rowid or 0, f"refers to a missing row of {target}")
            for table in {row[0] for row in broken}:
                drop_dangling(self._connection, self._shapes, table)

    def _broken(self) -> list[tuple[Any, ...]]:
        """(table, rowid or None, referred table, which of its references) of rows that refer to nothing."""
        return self._connection.execute("PRAGMA foreign_key_check").fetchall()

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
        self._progress(max(self._total, self._built.lines), max(self._total, self._built.lines))


def shape_of(shapes: Shapes, file: str, line: Line) -> Shape | None:
    """What sort of row a line of a file is; a memory may be in three files."""
    kind = str(line.get("kind", ""))
    if not kind and file in MEMORY_FILES:
        return shapes.rows["nodes"]
    return shapes.by_kind.get((file, kind))


def drop_dangling(connection: apsw.Connection, shapes: Shapes, table: str) -> None:
    """Take rows out of a table whose references lead nowhere. Names come from the schema."""
    for reference in shapes.truth.references:
        if reference.table == table:
            connection.execute(
                f'DELETE FROM "{table}" WHERE "{reference.column}" IS NOT NULL AND NOT EXISTS '
                f'(SELECT 1 FROM "{reference.target}" AS o WHERE o.rowid = "{table}"."{reference.column}")'
            )


class KnownKeys:
    """Keys by public names: of the lines seen so far, else of the index."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[str, dict[Any, int]] = {}
        self._spaces: dict[tuple[str, str], int] = {}

    def learn(self, shape: Shape, line: Line, row: str) -> None:
        """Note the key of a row that a line stands for."""
        if shape.table.key != ("key",) or not row.isdigit() or line.get("removed"):
            return
        table = shape.table.name
        if table == "sessions":
            name = (
                self.space(str(line.get("owner_user_id") or ""), str(line.get("chat_id") or "")),
                line.get("session_id"),
            )
            self._known.setdefault(table, {})[name] = int(row)
        elif "id" in line:
            self._known.setdefault(table, {})[line["id"]] = int(row)

    def note(self, table: str, name: Any, key: int) -> None:
        """Note the key of a row that is about to be written."""
        self._known.setdefault(table, {})[name] = key

    def space(self, owner: str, chat: str) -> int:
        """The key of a space, made at its first use."""
        if (owner, chat) not in self._spaces:
            values = {"owner": owner, "chat": chat}
            key = self._connection.execute(sql("space_by_owner"), values).get
            if key is None:
                key = self._connection.execute(sql("space_insert"), values).get
            self._spaces[owner, chat] = int(key)
        return self._spaces[owner, chat]

    def key(self, target: str, name: Any, *, space: int | None) -> int | None:
        """The key of a row of a table by its id, a session's by its name in its space."""
        public = (space, name) if target == "sessions" else name
        known = self._known.setdefault(target, {})
        if public not in known:
            found = self._asked(target, name, space)
            if found is None:
                return None
            known[public] = found
        return known[public]

    def _asked(self, target: str, name: Any, space: int | None) -> int | None:
        found: int | None
        if target == "sessions":
            found = self._connection.execute(sql("session_by_id"), {"space": space, "session": name}).get
        else:
            found = self._connection.execute(f'SELECT key FROM "{target}" WHERE id = ?', (name,)).get
        return found


def whole_image(shape: Shape, line: Line, keys: KnownKeys) -> dict[str, Any]:
    """A row from a line that a commit wrote. Raises Unfit."""
    image = shape.image(line, keys)
    try:
        image["commit_seq"], image["seal"] = int(line["commit"]), bytes.fromhex(line["seal"])
        if shape.table.key == ("key",):
            image["key"] = int(line["row"])
    except (KeyError, TypeError, ValueError):
        raise Unfit("its commit, seal or row is missing or no such thing") from None
    return image


def commit_row(line: Line, keys: KnownKeys) -> tuple[Any, ...]:
    """The columns of `commits` in the order of its table. Raises Unfit."""
    try:
        return (
            int(line["commit"]), keys.space(line.get("owner_user_id") or "", line.get("chat_id") or ""),
            milliseconds(line["at"]), line["actor"], line["origin"], line["reason"], line.get("run_id"),
            bytes.fromhex(line["seal"]), bytes.fromhex(line["digest"]), bytes.fromhex(line["hash"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise Unfit(f"no commit: {error}") from None


def put_kept(connection: apsw.Connection, shape: Shape, line: Line, keys: KnownKeys) -> None:
    """Bring a row outside the truth to what its line says. Names come from the schema. Raises Unfit."""
    table = shape.table
    if line.get("removed"):
        connection.execute(f'DELETE FROM "{table.name}" WHERE {where_key(shape)}', line["row"])
        return
    image = shape.image(line, keys)
    if table.key == ("key",):
        image["key"] = int(line["row"])
    named, marks = ", ".join(f'"{name}"' for name in table.columns), ", ".join("?" * len(table.columns))
    values = [image[name] for name in table.columns]
    updates = ", ".join(f'"{name}" = excluded."{name}"' for name in table.columns if name not in table.key)
    then = f"DO UPDATE SET {updates}" if updates else "DO NOTHING"
    key = ", ".join(f'"{name}"' for name in table.key)
    connection.execute(f'INSERT INTO "{table.name}" ({named}) VALUES ({marks}) ON CONFLICT ({key}) {then}', values)


def put_vector(connection: apsw.Connection, line: Line, *, models: Mapping[tuple[Any, Any], int],
               made_from: Mapping[str, tuple[int, str]]) -> None:  # fmt: skip
    """Write the vector of a line, if it was made from what the memory says now, and by a model still in use.

    Raises:
        Unfit: the line holds no vector.
    """
    model = models.get((line.get("model"), line.get("dimension")))
    key, wanted = made_from.get(str(line.get("memory")), (0, ""))
    if model is None or wanted != line.get("made_from"):
        return
    try:
        vector, pieces = b64decode(line["vector"], validate=True), line.get("pieces")
        words = None if pieces is None else b64decode(line["words"], validate=True)
    except (KeyError, TypeError, ValueError):
        raise Unfit("no vector") from None
    if len(vector) != line["dimension"] + 4:
        raise Unfit("a vector of another length")
    embedding = connection.execute(sql("vector_put"), (key, model, vector)).get
    if embedding is not None and words is not None:
        values = {"embedding": embedding, "pieces": pieces, "vectors": words}
        connection.execute(sql("word_vectors_insert"), values)
