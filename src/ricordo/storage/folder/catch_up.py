"""Catching up: update the index with files that have changed since it last read them, without a rebuild.

Files that have grown are read from their former end: commits of another process, or of one that died before it updated
the index, are applied to the index, and lines without a commit are cut off. Files that were changed elsewhere are
compared row by row with the index: the differences were made by hand.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from ricordo.model import RowId, RowState
from ricordo.storage.database.hashes import bare, chain, is_sealed
from ricordo.storage.database.history import Restored, Table, put_back, text_of_key
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import sql
from ricordo.storage.folder.files import prefix_sum
from ricordo.storage.folder.journal import State
from ricordo.storage.jsonl.layout import (
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
from ricordo.storage.jsonl.lines import Findings, HandLine, Line, LineError, content_hash, lines_of
from ricordo.storage.jsonl.loader import (
    KnownKeys,
    LineReader,
    adopted_marks,
    commit_row,
    history_row,
    put_kept,
    put_vector,
)
from ricordo.storage.jsonl.shapes import Shape, Shapes
from ricordo.storage.key import LineCipher


class NeedsRebuildError(Exception):
    """The index cannot be updated step by step: the files went back to an older state, or changed in an unknown way."""


@dataclass(slots=True)
class _Batch:
    """The lines of one new commit."""

    row: tuple[Any, ...]
    rows: list[tuple[str, int, Line, Shape]] = field(default_factory=list)
    history: list[tuple[int, str, str, str]] = field(default_factory=list)


_ROW = re.compile(rb'(?<!\\)"row":\s?"(\d+)"')


class CatchUp:
    """One catch-up, inside one transaction and under the lock of the folder."""

    def __init__(
        self,
        connection: apsw.Connection,
        shapes: Shapes,
        folder: Path,
        state: State,
        *,
        now: int,
        cipher: LineCipher | None,
    ) -> None:
        """Start with the state of the files when the index last read them. `now` is in Unix milliseconds."""
        self._connection = connection
        self._snapshot = DatabaseSnapshot(connection)
        self._shapes = shapes
        self._folder = folder
        self._state = state
        self._now = now
        self._keys = KnownKeys(connection)
        self._found = Findings()
        self._reader = LineReader(folder, shapes, self._found, cipher)
        self._batches: dict[int, _Batch] = {}
        self.altered: list[str] = []
        """Files that were changed other than at their end."""
        self.put_back = False
        """Whether lines are missing whose rows must stay, so that the files must be rewritten."""
        self._settled: list[tuple[Shape, Line]] = []
        self._last = int(connection.execute(sql("commit_last_seq")).get or 0)

    def run(self, names: list[str]) -> Findings:
        """Update the index with these files. Raises NeedsRebuildError."""
        seen = ((name, self._state[name]) for name in names)
        altered = [name for name, was in seen if prefix_sum(self._folder / name, was.stamp.size) != was.total]
        self.altered = altered
        if {COMMITS, HISTORY, STORE} & {*altered}:
            raise NeedsRebuildError(", ".join(altered))
        grown = [name for name in names if name not in altered and name != PEOPLE]
        self._read_commits(COMMITS in grown)
        if self._batches and altered:
            raise NeedsRebuildError(", ".join(altered))
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
            for _, line in self._reader.lines(COMMITS):
                self._reader.adopted.update(adopted_marks(line))
            for offset, line in self._reader.lines(PEOPLE):
                self._reader.by_hand(PEOPLE, offset, line, "entities")
        self._found.commits = len(self._batches)
        return self._found

    def _new_lines(self, name: str) -> Iterator[tuple[int, Line]]:
        return self._reader.lines(name, start=self._state[name].stamp.size)

    def _read_commits(self, has_grown: bool) -> None:
        head = (self._snapshot.rows("commit_last") or [(0, b"")])[0][1]
        for _, line in self._new_lines(COMMITS) if has_grown else ():
            try:
                row = commit_row(line, self._keys)
            except LineError as error:
                raise NeedsRebuildError(str(error)) from None
            seq, space, at, _, origin, _, run_id, words, digest, hashed = row
            values = (seq, space, at, origin, run_id, bare(words), digest)
            if seq != self._last + 1 + len(self._batches) or chain(head, values) != hashed:
                raise NeedsRebuildError(f"commit {seq} does not follow the previous commit")
            self._batches[seq] = _Batch(row)
            self._reader.adopted.update(adopted_marks(line))
            head = hashed

    def _read_kept(self, has_grown: bool) -> None:
        for offset, line in self._new_lines(STORE) if has_grown else ():
            if (line.get("commit") or 0) > self._last + len(self._batches):
                self._found.cut(STORE, offset)
                continue
            shape = self._shapes.by_kind.get((STORE, str(line.get("kind", ""))))
            try:
                if shape is None:
                    raise LineError("unknown kind of line")
                put_kept(self._connection, shape, line, self._keys)
                if shape.table.name in SETTLED:
                    self._settled.append((shape, line))
            except (LineError, apsw.Error) as error:
                # The line may refer to rows of a commit, which a rebuild reads first.
                raise NeedsRebuildError(f"{STORE} at byte {offset}: {error}") from None

    def _read_rows(self, name: str) -> None:
        for offset, line, shape in self._reader.committed(name, start=self._state[name].stamp.size):
            commit = line["commit"]
            if commit in self._batches:
                self._batches[commit].rows.append((name, offset, line, shape))
                self._keys.learn(shape, line, line["row"])
            elif commit <= self._last:
                self._note_copy(name, offset, line, shape)
            else:
                self._found.cut(name, offset)

    def _note_copy(self, name: str, offset: int, line: Line, shape: Shape) -> None:
        """Check a line of an old commit at the end of a file: it repeats the present row, or was added by hand."""
        try:
            image = shape.whole_image(line, self._keys)
        except LineError as error:
            self._reader.unused(name, offset, error)
            return
        now = shape.table.current(self._connection, shape.table.row_id(image).key)
        if now is None or now["seal"] != image["seal"] or not _seal_holds(shape.table, image):
            self._reader.by_hand(name, offset, line, shape.table.name)

    def _read_history(self, has_grown: bool) -> None:
        start = self._state[HISTORY].stamp.size
        made = self._reader.made(HISTORY, partial(history_row, self._shapes), start=start)
        for offset, values in made if has_grown else ():
            seq = values[0]
            if seq in self._batches:
                self._batches[seq].history.append(values)
            elif seq > self._last:
                self._found.cut(HISTORY, offset)
            else:
                self._reader.unused(HISTORY, offset, "a before-image of an older commit")

    def _replay(self, batch: _Batch) -> None:
        """Apply a commit to the index, with exactly the same rows."""
        self._connection.execute(sql("commit_insert"), batch.row)
        gone, come = [], {}
        for name, offset, line, shape in batch.rows:
            try:
                restored = self._restored(shape, line, batch)
            except LineError as error:
                raise NeedsRebuildError(f"{name} at byte {offset}: {error}") from None
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
                raise LineError("the history does not contain the removed row")
            now = table.current(self._connection, table.row_id(table.image(before, row)).key)
            return None if now is None else Restored(table, now, None)
        then = shape.whole_image(line, self._keys)
        if not _seal_holds(table, then):
            raise LineError("the line differs from what its commit wrote")
        now = table.current(self._connection, table.row_id(then).key)
        return Restored(table, now, then)

    def _read_vectors(self) -> None:
        models = {(name, size): key for key, name, size, *_ in self._snapshot.rows("models_known")}

        def put(line: Line) -> None:
            rows = self._snapshot.rows("vector_source", {"id": str(line.get("memory"))})
            sources = {id_: (key, content_hash(text, speaker)) for id_, key, text, speaker in rows}
            put_vector(self._connection, line, models=models, sources=sources)

        for _ in self._reader.made(VECTORS, put, start=self._state[VECTORS].stamp.size):
            pass

    # changes made by hand

    def _compare(self, altered: list[str]) -> None:
        """Compare the rows of altered files with those of the index."""
        if VECTORS in altered:
            self.put_back = True
        files = [name for name in altered if name in ROW_FILES]
        if {*files} & {*MEMORY_FILES}:
            files = [*MEMORY_FILES, *(name for name in files if name not in MEMORY_FILES)]
        newest: dict[str, dict[str, tuple[int, HandLine]]] = {}
        for name in files:
            self._read_whole(name, newest)
        broken = {row for name in files for row in self._broken(name)}
        for shape in self._shapes.rows.values():
            table_file = MEMORIES if shape.table.name == "nodes" else shape.form.file
            if table_file in files:
                self._compare_table(shape, newest.get(shape.table.name, {}), broken)

    def _read_whole(self, name: str, newest: dict[str, dict[str, tuple[int, HandLine]]]) -> None:
        for offset, line, shape in self._reader.committed(name):
            commit, row = line["commit"], line["row"]
            if commit > self._last:
                self._found.cut(name, offset)
                continue
            self._keys.learn(shape, line, row)
            rows = newest.setdefault(shape.table.name, {})
            if row not in rows or commit >= rows[row][0]:
                rows[row] = commit, HandLine(name, offset, line, shape.table.name)

    def _broken(self, name: str) -> Iterator[str]:
        """Yield the rows of lines that cannot be read: a slip of the hand, by which nothing is forgotten."""
        offsets = {offset for file, offset in self._found.unused if file == name}
        for offset, raw in lines_of(self._folder / name) if offsets else ():
            if offset in offsets and (found := _ROW.search(raw)):
                yield found[1].decode()

    def _compare_table(self, shape: Shape, newest: Mapping[str, tuple[int, HandLine]], broken: Collection[str]) -> None:
        """Compare the newest lines of a table with its rows. Those whose line is broken stay as they are."""
        table = shape.table
        left = dict(newest)
        for image in table.images(self._connection):
            key = table.row_id(image)
            _, given = left.pop(text_of_key(key.key), (0, None))
            if given is None and text_of_key(key.key) in broken:
                continue
            if given is None or given.line.get("removed"):
                self._missing(table, key, image)
            elif given.line.get("seal") != image["seal"].hex() or not self._says(shape, given, image):
                self._reader.by_hand(given.file, given.offset, given.line, given.table)
        for _, given in left.values():
            if not given.line.get("removed"):
                self._reader.by_hand(given.file, given.offset, given.line, given.table)

    def _says(self, shape: Shape, given: HandLine, image: Mapping[str, Any]) -> bool:
        """Return whether a line with the seal of a row has its content."""
        try:
            said = shape.whole_image(given.line, self._keys)
        except LineError:
            return False
        return all(said[name] == image[name] for name in shape.table.sealed)

    def _missing(self, table: Table, row: RowId, image: Mapping[str, Any]) -> None:
        """Handle a deleted line: close its row as forgotten, remove a link, or keep a row that others refer to."""
        values: dict[str, Any] | None
        if "closed_at" in table.columns:
            if image["closed_at"] is not None:
                self.put_back = True
                return
            reason = {"closed_reason": "forgotten"} if "closed_reason" in table.columns else {}
            values = {**image, "closed_at": self._now, **reason}
        elif self._shapes.truth.children(table.name) or table.name == "erasures":
            self.put_back = True
            return
        else:
            values = None
        self._found.states.append(RowState(row=row, values=values))


def _seal_holds(table: Table, image: Mapping[str, Any]) -> bool:
    return is_sealed([image[name] for name in table.sealed], image["seal"])
