"""Opening a folder: its index is there and follows the files before anybody asks or writes."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import apsw

from ricordo.clock import SystemClock, from_ms
from ricordo.errors import InvalidError, RicordoError, StoreError
from ricordo.model import BackupFile, Change, Durability, Reason, RowState, Scope
from ricordo.ports import Progress
from ricordo.storage import faults
from ricordo.storage.database.apply import apply
from ricordo.storage.database.connection import connect, transaction, translated
from ricordo.storage.database.reader import DatabaseSnapshot
from ricordo.storage.database.schema import Migration, copy_database, prepare
from ricordo.storage.folder.catch_up import Following, Outrun
from ricordo.storage.folder.copy import copied_start
from ricordo.storage.folder.files import Disk, FolderLock, count_lines, lines_of, prefix_sum, set_aside, stamp_of
from ricordo.storage.folder.hand_edits import Adoption
from ricordo.storage.folder.journal import FolderJournal, failing_as_sqlite
from ricordo.storage.folder.layout import BUILDING, FILES, INDEX, PEOPLE, ROW_FILES
from ricordo.storage.folder.lines import Line, line_mark
from ricordo.storage.folder.rebuild import Built, Loose, build
from ricordo.storage.folder.rewrite import finish, keep_aside, put_in_place, sweep
from ricordo.storage.folder.state import (
    Followed,
    Unused,
    is_telling,
    read_state,
    read_unused,
    write_state,
    write_unused,
)

_log = logging.getLogger("ricordo.storage")

T = TypeVar("T")

# Files are written anew where at least one line in so many is outdated.
_WORTH_IT = 100
_IMPOSSIBLE = (apsw.ConstraintError, apsw.MismatchError, RicordoError)
Cut = Mapping[str, Sequence[tuple[int, int]]]
"""Lines (offset, bytes) that were taken out, by file."""

_BESIDE = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """What an opening found in the files and did about it; for the log, for `doctor` and for whoever asks."""

    was_rebuilt: bool = False
    lines: int = 0
    commits: int = 0
    aside: int = 0
    adopted: int = 0
    notes: tuple[str, ...] = ()


class Folder:
    """The plain files of a store and the index over them."""

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability,
        patience_s: float,
        steps: tuple[Migration, ...],
        progress: Progress | None = None,
        disk: Disk | None = None,
    ) -> None:
        """Args:
        path: the folder; it exists.
        progress: told of lines read, where an index is made.
        """
        self.path = path
        self.index = path / INDEX
        self.caught = Caught()
        self._steps = steps
        self._patience_s = patience_s
        self._progress = progress
        self.disk = disk or Disk(syncs=durability == "disk")
        self.journal = FolderJournal(
            path,
            FolderLock(path, patience_s=patience_s),
            self.disk,
            follow=self._follow,
            connect=self._connect,
            reopen=self._reopen,
        )

    def open(self) -> apsw.Connection:
        """See to the index and follow the files. Returns the connection to write with.

        Raises:
            StoreError: the files or the index cannot be read or written.
            UnavailableError: another process holds the folder.
        """
        with translated(f"cannot open {self.path}"), self.journal.held(), failing_as_sqlite():
            finish(self.path, self.disk)
            sweep(self.path)
            self.make_private()  # an editor or git may have left them open to others
            return self.journal.current(self._reopen())

    def rebuild(self, progress: Progress | None = None) -> Built:
        """Make the index anew, whatever it is like."""
        self._progress = progress or self._progress
        with translated(f"cannot rebuild the index of {self.path}"), self.journal.held(), failing_as_sqlite():
            built = self._rebuild("somebody asked for it")
            self.journal.replaced()
            return built

    def fill(self, source: apsw.Connection) -> None:
        """Make an empty folder hold what a single file holds, to the byte of every row. The file stays as it is.

        Raises:
            StoreError: the disk is full or failing.
        """
        with translated(f"cannot fill {self.path}"), self.journal.held(), failing_as_sqlite():
            copy_database(source, self.index)
            connection = self.journal.connected()
            try:
                prepare(connection, self.index, self._steps)
                with transaction(connection):
                    write_state(connection, {})  # the file may have been the index of another folder
                    self.journal.begin(connection)
                    self.journal.rewrites = True
                    self.journal.write(connection)
            finally:
                connection.close()
            self.journal.replaced()

    def take_over(self, fresh: Path, *, aside: Path | None = None) -> Built:
        """Hold what another folder holds, all or nothing: its files are moved here. Other processes go on with them.

        Args:
            aside: a folder that does not exist; what was here is kept there.

        Raises:
            OSError, StoreError: the disk is full or failing.
        """
        with translated(f"cannot fill {self.path}"), self.journal.held(), failing_as_sqlite():
            finish(self.path, self.disk)
            if aside is not None:
                keep_aside(self.path, aside)
            put_in_place(self.path, fresh, self.disk)
            built = self._rebuild("the files were replaced")
            self.journal.replaced()
            return built

    def copy_to(self, target: Path, look: Callable[[DatabaseSnapshot], T]) -> tuple[T, dict[str, BackupFile]]:
        """Copy the files as they are at one moment to another folder; others write on meanwhile.

        Returns:
            What `look` found in the index at that moment, and the copies by name.

        Raises:
            OSError, StoreError: they cannot be read or written.
            UnavailableError: somebody edited them meanwhile.
        """
        with contextlib.ExitStack() as opened:
            with translated(f"cannot copy {self.path}"), self.journal.held(), failing_as_sqlite():
                connection = self.journal.current(self.journal.connected())
                try:
                    found = look(DatabaseSnapshot(connection))
                    state = read_state(connection)
                finally:
                    connection.close()
                    self.journal.replaced()
                # What is written later comes behind, or into another file of the same name.
                files = {
                    name: opened.enter_context((self.path / name).open("rb"))
                    for name, seen in state.items()
                    if seen.stamp.size
                }
            return found, {name: copied_start(file, state[name], target / name) for name, file in files.items()}

    def checks(self) -> dict[str, tuple[str, str]]:
        """For `doctor`: how the files are, and what to do where they are not well."""
        with self.journal.held():
            connection = self._connect()
            try:
                state, unused = read_state(connection), read_unused(connection)
            finally:
                connection.close()
            off = [
                name
                for name, seen in state.items()
                if stamp_of(self.path / name).size != seen.stamp.size
                or prefix_sum(self.path / name, seen.stamp.size) != seen.total
            ]
            size = sum(seen.stamp.size for seen in state.values())
        places = unused.places
        not_used = f"; {len(unused.lines)} lines not used: {places[0]}" if places else ""
        files = (
            (f"{', '.join(off)} changed since", "open the memory again: it follows its files")
            if off
            else (f"{size / 1e6:.1f} MB as the index knows them{not_used}", "")
        )
        wide = sorted(
            path.name
            for path in self.path.iterdir()
            if path.name in {*FILES, PEOPLE, INDEX} and path.stat().st_mode & 0o077
        )
        private = (f"others can read {', '.join(wide[:5])}", f"chmod 600 in {self.path}") if wide else ("private", "")
        beside = sorted(path.name for path in self.path.glob("set-aside-*")) + sorted(
            path.name for path in self.path.glob(f"{INDEX}.damaged-*")
        )
        return {"plain files": files, "who can read": private, "set aside": (", ".join(beside[:5]) or "nothing", "")}

    def make_private(self) -> None:
        """Nobody but the user reads the files of the memory."""
        for path in self.path.iterdir():
            is_ours = path.name in {*FILES, PEOPLE, INDEX} or path.name.startswith("set-aside-")
            if is_ours and path.stat().st_mode & 0o077:
                path.chmod(0o600)

    def compact(self, snapshot: DatabaseSnapshot) -> int:
        """Have this batch leave the files without outdated lines, if there are enough of them to be worth it. Returns
        how many lines go. What is known stays as it is, so it is no commit.
        """
        lines = sum(count_lines(self.path / name) for name in ROW_FILES)
        known = sum(
            snapshot.connection.execute(f'SELECT count(*) FROM "{table}"').get for table in self.journal.shapes.rows
        )
        outdated = lines - known
        if outdated * _WORTH_IT < max(lines, 1):
            return 0
        self.journal.rewrites = True
        return int(outdated)

    @property
    def place(self) -> int:
        """Which file the index is now; a new one has another number."""
        return self.journal.place

    def close(self) -> None:
        """Let go of the lock's file."""
        self.journal.lock.close()

    def _connect(self) -> apsw.Connection:
        # The files are synced, and the index follows them: it need not be synced by itself.
        return connect(self.index, durability="process", patience_s=self._patience_s)

    def _reopen(self) -> apsw.Connection:
        """A connection to write with, to an index that somebody may have deleted or replaced."""
        if not self._is_sound():
            self._rebuild("it was missing or damaged")
        return self.journal.connected()

    def _is_sound(self) -> bool:
        """Whether there is an index that can be followed up; an unreadable one is put aside."""
        if not self.index.exists():
            return False
        try:
            connection = self._connect()
            try:
                prepare(connection, self.index, self._steps)
                is_sound = is_telling(connection)
            finally:
                connection.close()
        except StoreError as error:
            if not isinstance(error.__cause__, apsw.NotADBError | apsw.CorruptError):
                raise
            is_sound = False
        if not is_sound:
            self._put_aside("damaged")
        return is_sound

    def _put_aside(self, why: str) -> None:
        day = from_ms(SystemClock().now()).strftime("%Y%m%d-%H%M%S")
        kept = self.index.with_name(f"{INDEX}.{why}-{day}")
        for ending in ("", *_BESIDE):
            source = Path(f"{self.index}{ending}")
            if source.exists():
                source.rename(f"{kept}{ending}")
        _log.warning("%s was put aside as %s", self.index, kept.name)

    def _follow(self, connection: apsw.Connection, names: list[str]) -> apsw.Connection:
        """The files are not as the index knew them."""
        try:
            self._follow_step_by_step(connection, names)
        except Outrun as error:
            self._rebuild(f"the files went another way: {error}")
            connection.close()
            return self.journal.connected()
        return connection

    def _follow_step_by_step(self, connection: apsw.Connection, names: list[str]) -> None:
        now = SystemClock().now()
        with transaction(connection):
            self.journal.begin(connection)
            found = Following(connection, self.journal.shapes, self.path, self.journal.state, now=now).run(names)
            cut = self._mend(found.uncommitted)
            self.journal.note(
                {
                    name: self._followed(name)
                    for name in (*FILES, PEOPLE)
                    if stamp_of(self.path / name) != self.journal.state[name].stamp
                }
            )
            self.journal.followed(connection)
            self.journal.rewrites = found.put_back
            self._adopt_rows(connection, found.loose, found.states, found.unused, now=now)
            known = {line: why for line, why in read_unused(connection).lines.items() if line[0] not in found.altered}
            write_unused(connection, Unused(known | found.unused.lines).after(cut))
            self.journal.write(connection)
        by_hand = len(found.loose) + len(found.states)
        self._tell(
            Caught(
                commits=found.commits, adopted=by_hand, aside=len(found.uncommitted), notes=tuple(found.unused.places)
            )
        )

    def _tell(self, caught: Caught) -> None:
        self.caught = caught
        for place in caught.notes:
            _log.warning("%s: not used: %s", self.path, place)
        if caught.adopted:
            _log.warning(
                "%s: %d rows were written, altered or taken out by hand; `ricordo log` shows the change",
                self.path,
                caught.adopted,
            )

    def _rebuild(self, why: str) -> Built:
        _log.info("the index of %s is made anew: %s", self.path, why)
        building = self.path / BUILDING
        _remove(building)
        building.touch(mode=0o600)
        try:
            built = build(building, self.path, steps=self._steps, progress=self._progress)
            cut = self._mend(built.uncommitted)
            self._settle(building, built, cut)
            faults.reached("folder: before replacing the index")
            _remove(self.index)
            building.rename(self.index)
            self.disk.sync(self.path)
        finally:
            _remove(building)
        self._tell(
            Caught(
                was_rebuilt=True,
                lines=built.lines,
                adopted=len(built.by_hand),
                aside=len(built.uncommitted),
                notes=tuple(built.unused.places),
            )
        )
        return built

    def _mend(self, uncommitted: Mapping[str, Iterable[int]]) -> Cut:
        """Lines no commit vouches for did not happen: they are kept beside, and taken out. Others get their end."""
        cut = {name: self._cut(name, offsets) for name, offsets in uncommitted.items()}
        for name in FILES:
            path = self.path / name
            if path.exists() and path.stat().st_size and not _ends_well(path):
                self.disk.append(path, b"\n")
        return cut

    def _cut(self, name: str, offsets: Iterable[int]) -> list[tuple[int, int]]:
        path, gone = self.path / name, set(offsets)
        lines = list(lines_of(path, start=min(gone)))
        data = b"".join(raw + b"\n" for offset, raw in lines if offset in gone)
        kept = set_aside(self.path, name, data, self.disk, day=datetime.now(UTC).strftime("%Y%m%d"))
        _log.warning("%s: %d lines that no commit vouches for were set aside in %s", path, len(gone), kept.name)
        if all(offset in gone for offset, _ in lines):
            self.disk.cut(path, min(gone))
        else:
            self.disk.replace(path, (raw + b"\n" for offset, raw in lines_of(path) if offset not in gone))
        return [(offset, len(raw) + 1) for offset, raw in lines if offset in gone]

    def _settle(self, building: Path, built: Built, cut: Cut) -> None:
        """The new index has followed the files as they are now, and what was written by hand is a commit like any
        other. That is so before the index takes its place: nobody would look at those lines again.
        """
        connection = connect(building, durability="process", patience_s=1)
        try:
            with transaction(connection):
                write_state(connection, {name: self._followed(name) for name in (*FILES, PEOPLE)})
                self.journal.begin(connection)
                self._adopt_rows(connection, built.by_hand, [], built.unused, now=SystemClock().now())
                write_unused(connection, built.unused.after(cut))
                self.journal.write(connection)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()

    def _followed(self, name: str) -> Followed:
        stamp = stamp_of(self.path / name)
        return Followed(stamp, prefix_sum(self.path / name, stamp.size) or 0)

    def _adopt_rows(
        self,
        connection: apsw.Connection,
        loose: Sequence[Loose],
        states: Sequence[RowState],
        unused: Unused,
        *,
        now: int,
    ) -> None:
        """Apply what hands did, at once if that can be, else row by row: a wrong line shall not hold up the others."""
        adoption = Adoption(connection, self.journal.shapes, now=now)
        rows = (*states, *adoption.states(loose))
        unused.lines |= adoption.unused.lines
        if not rows:
            return
        try:
            self._apply_by_hand(connection, rows, [*adoption.lines.values(), *adoption.idle], now=now)
        except _IMPOSSIBLE:
            self._adopt_one_by_one(connection, rows, adoption, unused, now=now)

    def _adopt_one_by_one(
        self, connection: apsw.Connection, rows: Sequence[RowState], adoption: Adoption, unused: Unused, *, now: int
    ) -> None:
        """A line counts as adopted with the last of its rows, if all of them can be."""
        last, idle = {id(loose): row for row, loose in adoption.lines.items()}, adoption.idle
        for row in rows:
            loose = adoption.lines.get(row.row)
            is_whole = (
                loose is not None and last[id(loose)] == row.row and (loose.file, loose.offset) not in unused.lines
            )
            try:
                self._apply_by_hand(connection, (row,), [*idle, *([loose] if loose and is_whole else [])], now=now)
                idle = []
            except _IMPOSSIBLE as error:
                file, offset = (loose.file, loose.offset) if loose else (f"row {row.row.key} of {row.row.table}", -1)
                unused.note(file, offset, str(error))

    def _apply_by_hand(
        self, connection: apsw.Connection, rows: Sequence[RowState], lines: Iterable[Loose], *, now: int
    ) -> None:
        reason = Reason(actor="hand", origin="hand", reason=f"{len(rows)} rows by hand")
        marks = list(dict.fromkeys(line_mark(loose.line) for loose in lines))
        extra: Line = {"adopted": marks} if marks else {}
        connection.execute("SAVEPOINT by_hand")
        try:
            change = Change(rows=tuple(rows))
            apply(DatabaseSnapshot(connection), change, scope=Scope(owner="me"), reason=reason, at=from_ms(now))
        except BaseException:
            connection.execute("ROLLBACK TO by_hand")
            connection.execute("RELEASE by_hand")
            raise
        connection.execute("RELEASE by_hand")
        self.journal.worked_by_hand(connection, extra)


def check_is_ours(folder: Path) -> None:
    """What somebody else keeps in a folder shall not lie among a memory's files, and these not elsewhere.

    Raises:
        InvalidError: the folder holds things, and none of them is a memory's; or one of its files is a link.
    """
    linked = sorted(path for path in folder.iterdir() if path.name in {*FILES, PEOPLE} and path.is_symlink())
    if linked:  # writing files anew would put one in the place of the link, and leave what was erased where it led
        raise InvalidError(f"location: {linked[0]} is a link", hint="link the whole folder, not single files of it")
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    if names and not names & {*FILES, PEOPLE, INDEX}:
        raise InvalidError(f"location: {folder} holds other things", hint="give an empty folder, or a file's path")


def _ends_well(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def _remove(path: Path) -> None:
    for ending in ("", *_BESIDE):
        Path(f"{path}{ending}").unlink(missing_ok=True)
