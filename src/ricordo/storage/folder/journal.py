"""The write protocol of a folder: lines first, the commit's line last, the index after it.

Before the line of a commit is on the disk, any failure cuts the files back to where they were, and the batch may be
tried again. After it, the batch has happened: only the index may be stale then, and catches up at the next opening or
writing.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import apsw

from ricordo.storage import faults
from ricordo.storage.database.commit_hook import Journal
from ricordo.storage.database.queries import sql
from ricordo.storage.folder.change_lines import commits_after, lines_of_commit, touched_lines, watch
from ricordo.storage.folder.files import Disk, FolderLock, stamp_of
from ricordo.storage.folder.layout import COMMITS, FILES, INDEX
from ricordo.storage.folder.lines import Line, Shapes, shapes_of
from ricordo.storage.folder.rewrite import finish, is_unfinished, rewrite
from ricordo.storage.folder.state import Followed, State, Unused, changed, read_state, write_state, write_unused

_log = logging.getLogger("ricordo.storage")

Connect = Callable[[], apsw.Connection]
Follow = Callable[[apsw.Connection, list[str]], apsw.Connection]
"""Brings the index to what changed files say; returns the connection to write with from then on."""


class FolderJournal(Journal):
    """Writes what a batch changed to the files of a folder, in step with the index's transaction."""

    def __init__(
        self, folder: Path, lock: FolderLock, disk: Disk, *, follow: Follow, connect: Connect, reopen: Connect
    ) -> None:
        """Args:
        connect: a connection to the index that stands there now.
        reopen: the same where the index is another file than before, or none; by way of `connected`.
        """
        self.folder = folder
        self.lock = lock
        self.disk = disk
        self.is_written = False
        self.rewrites = False
        """Whether this batch shall leave the files without what newer lines replaced."""
        self._follow = follow
        self._connect = connect
        self._reopen = reopen
        self._inode = 0
        self._known: apsw.Connection | None = None
        self._shapes: Shapes | None = None
        self._state: dict[str, Followed] = {}
        self._pending: dict[str, list[bytes]] = {}
        self._seq = 0
        self._seq_before = 0

    def connected(self) -> apsw.Connection:
        """A connection to write with, and the memory of which index it is to."""
        # Looked at before it is opened: where it is replaced in between, the next batch notices.
        self._inode = stamp_of(self.folder / INDEX).inode
        connection = self._connect()
        self._inode = self._inode or stamp_of(self.folder / INDEX).inode
        return connection

    def replaced(self) -> None:
        """The index is another file: whoever holds a connection gets a new one at their next batch."""
        self._inode = 0

    @property
    def place(self) -> int:
        """Which file the index is now, for those who read; while it is being replaced, the one before."""
        return stamp_of(self.folder / INDEX).inode or self._inode

    @property
    def shapes(self) -> Shapes:
        """How rows are written."""
        assert self._shapes is not None, "no batch has begun"
        return self._shapes

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        with self.lock.held():
            self.is_written = False
            yield

    def current(self, connection: apsw.Connection) -> apsw.Connection:
        with failing_as_sqlite():
            if stamp_of(self.folder / INDEX).inode != self._inode:
                _log.info("the index of %s was replaced; opened anew", self.folder)
                fresh = self._reopen()
                connection.close()
                connection = fresh
            if is_unfinished(self.folder):
                finish(self.folder, self.disk)
            self._know(connection)
            if names := changed(self.folder, read_state(connection)):
                connection = self._follow(connection, names)
                self._know(connection)
        return connection

    def _know(self, connection: apsw.Connection) -> None:
        if self._known is not connection:
            self._shapes = shapes_of(connection)
            watch(connection, self._shapes)
            self._known = connection

    def begin(self, connection: apsw.Connection) -> None:
        self._know(connection)
        self.is_written = False
        self._pending = {}
        self.rewrites = False
        self._state = dict(read_state(connection))
        self._seq = self._seq_before = int(connection.execute(sql("commit_last_seq")).get or 0)
        connection.execute(sql("touched_forget"))

    @property
    def state(self) -> State:
        """The files as the index knows them in this batch."""
        return self._state

    def note(self, state: State) -> None:
        """The index knows files otherwise now."""
        self._state |= state

    def followed(self, connection: apsw.Connection) -> None:
        """What this batch did so far stands in the files already."""
        self._seq = int(connection.execute(sql("commit_last_seq")).get or 0)
        connection.execute(sql("touched_forget"))
        write_state(connection, self._state)

    def worked(self, connection: apsw.Connection) -> None:
        self.worked_by_hand(connection, {})

    def worked_by_hand(self, connection: apsw.Connection, extra: Line) -> None:
        """As `worked`, with something to say in the commit's line."""
        for seq in commits_after(connection, self._seq):
            self._seq = seq
            for name, line in lines_of_commit(connection, self.shapes, seq, extra):
                self._pending.setdefault(name, []).append(line)

    def write(self, connection: apsw.Connection) -> None:
        if self.rewrites or connection.execute(sql("erasures_since"), {"seq": self._seq_before}).get:
            with failing_as_sqlite():
                sums = rewrite(connection, self.shapes, self.folder, self.disk, self._state)
                self.is_written = True
                faults.reached("folder: after the marker")
                finish(self.folder, self.disk)
            connection.execute(sql("touched_forget"))
            self.note({name: Followed(stamp_of(self.folder / name), total) for name, total in sums.items()})
            write_state(connection, self._state)
            write_unused(connection, Unused())  # they were set aside
            return
        for name, line in touched_lines(connection, self.shapes):
            self._pending.setdefault(name, []).append(line)
        if self._pending:
            with failing_as_sqlite():
                self._append()
            self.is_written = True
            faults.reached("folder: after commit line")
            write_state(connection, self._state)

    def _append(self) -> None:
        written = {name: b"".join(self._pending[name]) for name in FILES if name in self._pending}
        try:
            for name, data in written.items():
                faults.reached("folder: before commit line" if name == COMMITS else "folder: between files")
                self.disk.append(self.folder / name, data)
        except BaseException:
            self._take_back(written)
            raise
        for name, data in written.items():
            self._state[name] = self._state[name].grown(self.folder / name, data)
        self._pending = {}

    def _take_back(self, written: Mapping[str, bytes]) -> None:
        """Cut what was begun. Where even that fails, the next one to look finds lines that no commit vouches for."""
        for name in written:
            with contextlib.suppress(OSError):
                self.disk.cut(self.folder / name, self._state[name].stamp.size)


@contextlib.contextmanager
def failing_as_sqlite() -> Iterator[None]:
    """Errors of files in SQLite's words: to the writer a batch that cannot be written is one that cannot."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise apsw.FullError(f"{error.filename or 'the folder'}: no space left") from error
        raise apsw.IOError(str(error)) from error
