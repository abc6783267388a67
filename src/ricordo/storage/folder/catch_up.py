"""An index follows files that have changed since it last looked, without being made anew.

Files that have grown are read from where they ended: commits of another process, or of one that died before its index
could follow, are done over in the index; lines nobody committed are cut off. Files that were altered are compared row
by row with the index: what differs was done by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from ricordo.model import RowId, RowState
from ricordo.storage.database.ledger import current_image
from ricordo.storage.database.queries import sql
from ricordo.storage.database.reader import DatabaseSnapshot
from ricordo.storage.database.rows import bare, chain, is_sealed
from ricordo.storage.database.truth_tables import Table
from ricordo.storage.database.undo import Restored, put_back
from ricordo.storage.folder.files import lines_of, prefix_sum
from ricordo.storage.folder.keys import KnownKeys
from ricordo.storage.folder.layout import (
    COMMITS,
    HISTORY,
    MEMORIES,
    MEMORY_FILES,
    PEOPLE,
    ROW_FILES,
    SETTLED,
    STORE,
    VECTORS,
)
from ricordo.storage.folder.lines import Line, Shape, Shapes, Unfit, content_hash, line_mark, parsed
from ricordo.storage.folder.load_rows import (
    adopted_by,
    commit_row,
    history_row,
    names_row,
    put_kept,
    put_vector,
    shape_of,
    whole_image,
)
from ricordo.storage.folder.rebuild import Loose
from ricordo.storage.folder.state import State, Unused


class Outrun(Exception):
    """The files went where the index cannot follow step by step: back, or past what it understands."""


@dataclass(slots=True)
class Found:
    """What following found beyond commits: rows as somebody's hand wants them, loose lines, and lines to cut off."""

    commits: int = 0
    states: list[RowState] = field(default_factory=list)
    loose: list[Loose] = field(default_factory=list)
    uncommitted: dict[str, list[int]] = field(default_factory=dict)
    unused: Unused = field(default_factory=Unused)
    altered: tuple[str, ...] = ()
    """Files of which more is another than their end."""
    put_back: bool = False
    """Whether lines are missing whose rows cannot go: the files are to be written anew."""


@dataclass(slots=True)
class _Batch:
    """The lines of one new commit."""

    row: tuple[Any, ...]
    rows: list[tuple[str, int, Line, Shape]] = field(default_factory=list)
    history: list[tuple[int, str, str, str]] = field(default_factory=list)


class Following:
    """One catching up, inside one transaction, under the lock."""

    def __init__(self, connection: apsw.Connection, shapes: Shapes, folder: Path, state: State, *, now: int) -> None:
        """Args:
        state: the files as the index saw them last.
        now: Unix milliseconds, for when a line was found missing.
        """
        self._connection = connection
        self._snapshot = DatabaseSnapshot(connection)
        self._shapes = shapes
        self._folder = folder
        self._state = state
        self._now = now
        self._keys = KnownKeys(connection)
        self._found = Found()
        self._batches: dict[int, _Batch] = {}
        self._adopted: set[str] = set()
        self._settled: list[tuple[Shape, Line]] = []
        self._last = int(connection.execute(sql("commit_last_seq")).get or 0)

    def run(self, names: list[str]) -> Found:
        """Follow these files.

        Raises:
            Outrun: the index must be made anew.
        """
        altered = [name for name in names if not self._has_only_grown(name)]
        self._found.altered = tuple(altered)
        if {COMMITS, HISTORY, STORE} & {*altered}:
            raise Outrun(", ".join(altered))
        grown = [name for name in names if name not in altered and name != PEOPLE]
        self._read_commits(COMMITS in grown)
        if self._batches and altered:
            raise Outrun(", ".join(altered))
        self._read_kept(STORE in grown)
        for name in grown:
            if name in ROW_FILES:
                self._read_rows(name)
        self._read_history(HISTORY in grown)
        for seq in sorted(self._batches):
            self._replay(self._batches[seq])
        if self._batches:
            for shape, line in self._settled:
                put_kept(self._connection, shape, line, self._keys)
        if VECTORS in grown:
            self._read_vectors()
        self._compare(altered)
        if PEOPLE in names:
            self._read_people()
        self._found.commits = len(self._batches)
        return self._found

    def _has_only_grown(self, name: str) -> bool:
        seen = self._state[name]
        return prefix_sum(self._folder / name, seen.stamp.size) == seen.total

    def _tail(self, name: str, *, start: int | None = None) -> Iterator[tuple[int, Line]]:
        """What can be read of the end of a file. A torn last line is nobody's."""
        path = self._folder / name
        size = path.stat().st_size if path.exists() else 0
        for offset, raw in lines_of(path, start=self._state[name].stamp.size if start is None else start):
            if not raw.strip():
                continue
            try:
                yield offset, parsed(raw)
            except Unfit as error:
                if offset + len(raw) == size:
                    self._cut(name, offset)
                else:
                    self._found.unused.note(name, offset, str(error))

    def _cut(self, name: str, offset: int) -> None:
        self._found.uncommitted.setdefault(name, []).append(offset)

    def _read_commits(self, has_grown: bool) -> None:
        head = (self._snapshot.rows("commit_last") or [(0, b"")])[0][1]
        for _, line in self._tail(COMMITS) if has_grown else ():
            try:
                row = commit_row(line, self._keys)
            except Unfit as error:
                raise Outrun(str(error)) from None
            seq, space, at, _, origin, _, run_id, words, digest, hashed = row
            values = (seq, space, at, origin, run_id, bare(words), digest)
            if seq != self._last + 1 + len(self._batches) or chain(head, values) != hashed:
                raise Outrun(f"commit {seq} does not follow")
            self._batches[seq] = _Batch(row)
            self._adopted.update(adopted_by(line))
            head = hashed

    def _read_kept(self, has_grown: bool) -> None:
        for offset, line in self._tail(STORE) if has_grown else ():
            shape = self._shapes.by_kind.get((STORE, str(line.get("kind", ""))))
            try:
                if shape is None:
                    raise Unfit("no such kind of line")
                put_kept(self._connection, shape, line, self._keys)
                if shape.table.name in SETTLED:
                    self._settled.append((shape, line))
            except (Unfit, apsw.Error) as error:
                # It may refer to what comes with a commit: a rebuild reads in another order.
                raise Outrun(f"{STORE} at byte {offset}: {error}") from None

    def _read_rows(self, name: str) -> None:
        for offset, line in self._tail(name):
            shape, commit = shape_of(self._shapes, name, line), line.get("commit")
            if shape is None:
                self._found.unused.note(name, offset, f"no such kind of line: {line.get('kind')!r}")
            elif commit is None or not names_row(line.get("row"), shape):
                self._note_loose(name, offset, line, shape)
            elif commit in self._batches:
                self._batches[commit].rows.append((name, offset, line, shape))
                self._keys.learn(shape, line, str(line.get("row", "")))
            elif commit <= self._last:
                self._note_copy(name, offset, line, shape)
            else:
                self._cut(name, offset)

    def _note_copy(self, name: str, offset: int, line: Line, shape: Shape) -> None:
        """A line of an old commit at the end of a file: unless it says what is so already, somebody put it there."""
        try:
            image = whole_image(shape, line, self._keys)
        except Unfit as error:
            self._found.unused.note(name, offset, str(error))
            return
        row = RowId(table=shape.table.name, key=tuple(image[each] for each in shape.table.key))
        now = current_image(self._connection, shape.table, row)
        if now is None or now["seal"] != image["seal"] or not _seal_holds(shape.table, image):
            self._note_loose(name, offset, line, shape)

    def _note_loose(self, name: str, offset: int, line: Line, shape: Shape) -> None:
        if line_mark(line) not in self._adopted:
            self._found.loose.append(Loose(name, offset, line, shape.table.name))

    def _read_history(self, has_grown: bool) -> None:
        for offset, line in self._tail(HISTORY) if has_grown else ():
            try:
                values = history_row(self._shapes, line)
            except Unfit as error:
                self._found.unused.note(HISTORY, offset, str(error))
                continue
            seq = values[0]
            if seq in self._batches:
                self._batches[seq].history.append(values)
            elif seq > self._last:
                self._cut(HISTORY, offset)
            else:
                self._found.unused.note(HISTORY, offset, "no before-image of a commit that was just read")

    def _replay(self, batch: _Batch) -> None:
        """Do a commit over in the index, to the byte."""
        self._connection.execute(sql("commit_insert"), batch.row)
        gone, come = [], {}
        for name, offset, line, shape in batch.rows:
            try:
                restored = self._restored(shape, line, batch)
            except Unfit as error:
                raise Outrun(f"{name} at byte {offset}: {error}") from None
            if restored is None:
                continue
            if restored.then is None:
                gone.append(restored)
            else:
                come[shape.table.row_id(restored.then)] = restored
        put_back(self._snapshot, [*gone, *come.values()])
        self._connection.executemany(sql("history_put"), batch.history)

    def _restored(self, shape: Shape, line: Line, batch: _Batch) -> Restored | None:
        table = shape.table
        if line.get("removed"):
            row = str(line.get("row"))
            before = next((each[3] for each in batch.history if each[1:3] == (table.name, row)), None)
            if before is None:
                raise Unfit("nothing says what was removed")
            now = current_image(self._connection, table, table.row_id(table.image(before, row)))
            return None if now is None else Restored(table=table, now=now, then=None, seal=None)
        then = whole_image(shape, line, self._keys)
        if not _seal_holds(table, then):
            raise Unfit("it is not as its commit wrote it")
        now = current_image(self._connection, table, table.row_id(then))
        return Restored(table=table, now=now, then=then, seal=then["seal"])

    def _read_vectors(self) -> None:
        models = {(name, size): key for key, name, size, *_ in self._snapshot.rows("models_known")}
        for offset, line in self._tail(VECTORS):
            rows = self._snapshot.rows("vector_source", {"id": str(line.get("memory"))})
            made_from = {id_: (key, content_hash(text, speaker)) for id_, key, text, speaker in rows}
            try:
                put_vector(self._connection, line, models=models, made_from=made_from)
            except Unfit as error:
                self._found.unused.note(VECTORS, offset, str(error))

    def _read_people(self) -> None:
        adopted = {mark for _, line in self._tail(COMMITS, start=0) for mark in adopted_by(line)}
        for offset, line in self._tail(PEOPLE, start=0):
            if line_mark(line) not in adopted:
                self._found.loose.append(Loose(PEOPLE, offset, line, "entities"))

    # what was done by hand

    def _compare(self, altered: list[str]) -> None:
        """Rows of files that were altered, with those of the index."""
        if VECTORS in altered:
            self._found.put_back = True
        files = [name for name in altered if name in ROW_FILES]
        if {*files} & {*MEMORY_FILES}:
            files = [*MEMORY_FILES, *(name for name in files if name not in MEMORY_FILES)]
        newest: dict[str, dict[str, tuple[int, Loose]]] = {}
        for name in files:
            self._read_whole(name, newest)
        for shape in self._shapes.rows.values():
            table_file = MEMORIES if shape.table.name == "nodes" else shape.form.file
            if table_file in files:
                self._compare_table(shape, newest.get(shape.table.name, {}))

    def _read_whole(self, name: str, newest: dict[str, dict[str, tuple[int, Loose]]]) -> None:
        for offset, line in self._tail(name, start=0):
            shape, commit, row = shape_of(self._shapes, name, line), line.get("commit"), line.get("row")
            if shape is None:
                self._found.unused.note(name, offset, f"no such kind of line: {line.get('kind')!r}")
            elif commit is None or not names_row(row, shape):
                self._note_loose(name, offset, line, shape)
            elif commit > self._last:
                self._cut(name, offset)
            else:
                self._keys.learn(shape, line, row)
                rows = newest.setdefault(shape.table.name, {})
                if row not in rows or commit >= rows[row][0]:
                    rows[row] = commit, Loose(name, offset, line, shape.table.name)

    def _compare_table(self, shape: Shape, newest: Mapping[str, tuple[int, Loose]]) -> None:
        """Names come from the schema, so the statement is put together."""
        table = shape.table
        named = ", ".join(f'"{name}"' for name in table.columns)
        left = dict(newest)
        for row in self._connection.execute(f'SELECT {named} FROM "{table.name}"').fetchall():
            image: dict[str, Any] = dict(zip(table.columns, row, strict=True))
            key = table.row_id(image)
            _, loose = left.pop(">".join(map(str, key.key)), (0, None))
            if loose is None or loose.line.get("removed"):
                self._missing(table, key, image)
            elif loose.line.get("seal") != image["seal"].hex() or not self._says(shape, loose, image):
                self._note_loose(loose.file, loose.offset, loose.line, shape)
        for _, loose in left.values():
            if not loose.line.get("removed"):
                self._note_loose(loose.file, loose.offset, loose.line, shape)

    def _says(self, shape: Shape, loose: Loose, image: Mapping[str, Any]) -> bool:
        """Whether a line with the seal of a row says what the row says."""
        try:
            said = whole_image(shape, loose.line, self._keys)
        except Unfit:
            return False
        return all(said[name] == image[name] for name in shape.table.sealed)

    def _missing(self, table: Table, row: RowId, image: Mapping[str, Any]) -> None:
        """Whoever takes a line out wants it forgotten: what can be closed is closed, links are taken away. What others
        rest on comes back into its file.
        """
        values: dict[str, Any] | None
        if "closed_at" in table.columns:
            if image["closed_at"] is not None:
                self._found.put_back = True
                return
            reason = {"closed_reason": "forgotten"} if "closed_reason" in table.columns else {}
            values = {**image, "closed_at": self._now, **reason}
        elif self._shapes.truth.children(table.name) or table.name == "erasures":
            self._found.put_back = True
            return
        else:
            values = None
        self._found.states.append(RowState(row=row, values=values))


def _seal_holds(table: Table, image: Mapping[str, Any]) -> bool:
    return is_sealed([image[name] for name in table.sealed], image["seal"])
