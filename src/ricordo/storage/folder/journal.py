"""The write protocol of a folder: first the lines of rows, then the line of the commit, then the index.

Until the line of a commit is on disk, any failure cuts the files back to their former ends, and the batch may be tried
again. After it, the batch counts as done: only the index may be outdated, and catches up at the next write or opening.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import apsw

from ricordo.errors import DeniedError, StoreError
from ricordo.storage import faults
from ricordo.storage.database.statements import sql
from ricordo.storage.database.threads import CommitHook
from ricordo.storage.folder.files import Disk, FolderLock, Followed, Stamp, followed, stamp_of
from ricordo.storage.folder.rewrite import finish, is_unfinished, rewrite
from ricordo.storage.jsonl.layout import COMMITS, FILES, INDEX, PEOPLE
from ricordo.storage.jsonl.lines import Line, UnusedLines, lines_of, sealed
from ricordo.storage.jsonl.shapes import Shapes, shapes_of
from ricordo.storage.jsonl.writer import commits_after, lines_of_commit, touched_lines, watch
from ricordo.storage.key import KEY_FILE, LineCipher
from ricordo.storage.sql import IS_FOLDER, MENDING

_log = logging.getLogger("ricordo.storage")

State = Mapping[str, Followed]
"""How far an index has read the files of its folder. It is stored in the index, so it always matches the index."""

_STATE = "folder"
_UNUSED = "lines not used"


class Connect(Protocol):
    """Opens the index."""

    def __call__(self, *, read_only: bool = False) -> apsw.Connection: ...


Reopen = Callable[[], apsw.Connection]
Follow = Callable[[apsw.Connection, list[str]], apsw.Connection]
"""Brings the index up to date with changed files; returns the connection for further writes."""


def read_state(connection: apsw.Connection) -> State:
    """Return the files as the index last read them; a new index has read none."""
    text = connection.execute(sql("meta_get"), {"name": _STATE}).get
    found = {name: Followed(Stamp(*stamp), total) for name, (*stamp, total) in json.loads(text or "{}").items()}
    return {name: found.get(name, Followed()) for name in (*FILES, PEOPLE)}


def write_state(connection: apsw.Connection, state: State) -> None:
    """Store how far the index has read its files, in the running transaction."""
    plain = {name: [*each.stamp, each.total] for name, each in state.items() if each.stamp != Stamp()}
    connection.execute(sql("meta_put"), {"name": _STATE, "value": json.dumps(plain, separators=(",", ":"))})


def read_unused(connection: apsw.Connection) -> UnusedLines:
    """Return the lines of the files that the index could not use."""
    text = connection.execute(sql("meta_get"), {"name": _UNUSED}).get
    return UnusedLines({(file, offset): why for file, offset, why in json.loads(text or "[]")})


def write_unused(connection: apsw.Connection, unused: UnusedLines) -> None:
    """Store the lines that the index could not use, in the running transaction."""
    plain = [(file, offset, why) for (file, offset), why in unused.items()]
    connection.execute(sql("meta_put"), {"name": _UNUSED, "value": json.dumps(plain)})


def is_state_readable(connection: apsw.Connection) -> bool:
    """Return whether the index's records about its files are readable. They may be damaged."""
    try:
        read_state(connection), read_unused(connection)
    except (ValueError, TypeError, LookupError, AttributeError):
        return False
    return True


class FolderJournal(CommitHook):
    """Writes the changes of a batch to the files of a folder, together with the transaction of the index."""

    def __init__(
        self,
        folder: Path,
        lock: FolderLock,
        disk: Disk,
        *,
        follow: Follow,
        connect: Connect,
        reopen: Reopen,
        cipher: LineCipher | None,
        key_stamp: Stamp,
    ) -> None:
        """Start with the functions that open the index.

        Args:
            connect: opens the present index.
            reopen: also rebuilds it if it is missing or damaged.
            key_stamp: the stamp of the key file that the cipher was read from.
        """
        self.folder, self.lock, self.disk, self.cipher = folder, lock, disk, cipher
        self.is_written = False
        self.is_distrusted = False  # whether a reader found the index damaged
        self.is_behind = False  # whether the index was opened without catching up, since another process held the lock
        self.rewrites = False  # whether this batch rewrites the files without outdated lines
        self.taken_over: dict[str, set[int]] = {}  # offsets of lines by hand that this batch turned into rows
        self._follow, self._connect, self._reopen = follow, connect, reopen
        self._key_stamp: Stamp | None = key_stamp
        self._inode = 0
        self._prepared: apsw.Connection | None = None
        self._shapes: Shapes | None = None
        self._state: dict[str, Followed] = {}
        self._pending: dict[str, list[bytes]] = {}
        self._seq = 0
        self._seq_before = 0
        self._first = 0  # the first commit of this batch that its lines contain

    def connected(self, *, read_only: bool = False) -> apsw.Connection:
        """Open a connection, and record which index it belongs to."""
        # The inode is read before opening: if the index is replaced in between, the next batch notices.
        self._inode = stamp_of(self.folder / INDEX).inode
        connection = self._connect(read_only=read_only)
        self._inode = self._inode or stamp_of(self.folder / INDEX).inode
        return connection

    def forget_index(self) -> None:
        """Record that the index was replaced, so that the next batch opens a new connection."""
        self._inode = 0

    @property
    def generation(self) -> int:
        """The inode of the index; while it is being replaced, the inode of the old one."""
        return stamp_of(self.folder / INDEX).inode or self._inode

    @property
    def is_readable(self) -> bool:
        """Whether the index exists. It may be deleted at any time."""
        return (self.folder / INDEX).exists()

    def distrust(self) -> None:
        """Record that the index cannot be read, so that the next batch rebuilds it."""
        self.is_distrusted = True

    @property
    def shapes(self) -> Shapes:
        """How rows are written as lines."""
        assert self._shapes is not None, "no batch has begun"
        return self._shapes

    @property
    def state(self) -> State:
        """The files as the index knows them in this batch."""
        return self._state

    @contextlib.contextmanager
    def locked(self, *, patience_s: float | None = None) -> Iterator[None]:
        """Hold the lock of the folder, after waiting for at most `patience_s` seconds, or as long as a write does."""
        with self.lock.held(patience_s=patience_s):
            self.is_written = False
            yield

    def current(self, connection: apsw.Connection) -> apsw.Connection:
        """Bring the index up to date with its files; return the connection for writing."""
        self._check_key()
        try:
            return self._current(connection)
        except BaseException:
            self.forget_index()  # the caller's connection may be closed by now
            raise

    def _current(self, connection: apsw.Connection) -> apsw.Connection:
        with os_errors_as_sqlite():
            stamp = stamp_of(self.folder / INDEX)
            if stamp.inode != self._inode or not stamp.size or self.is_distrusted or self.is_behind:
                _log.info("opening the index of %s again", self.folder)
                fresh = self._reopen()
                connection.close()
                connection = fresh
                self.is_distrusted = self.is_behind = False
            if is_unfinished(self.folder):
                finish(self.folder, self.disk)
            self._prepare(connection)
            state = read_state(connection)
            if names := [name for name, seen in state.items() if stamp_of(self.folder / name) != seen.stamp]:
                connection = self._follow(connection, names)
                self._prepare(connection)
        return connection

    def _check_key(self) -> None:
        """Raise DeniedError if another process has changed the key: this key cannot read what it wrote."""
        stamp = stamp_of(self.folder / KEY_FILE)
        if self._key_stamp is None:
            self._key_stamp = stamp
        if stamp != self._key_stamp:
            raise DeniedError(f"the key of {self.folder} was changed", hint="open the memory again with the new key")

    def _prepare(self, connection: apsw.Connection) -> None:
        if self._prepared is not connection:
            self._shapes = shapes_of(connection)
            watch(connection, self._shapes)
            self._prepared = connection

    def begin(self, connection: apsw.Connection) -> None:
        """Begin a batch, with nothing to write yet."""
        self._prepare(connection)
        self.is_written = False
        self._pending = {}
        self.rewrites = False
        self.taken_over = {}
        self._state = dict(read_state(connection))
        self._seq = self._seq_before = int(connection.execute(sql("commit_last_seq")).get or 0)
        self._first = self._seq + 1
        connection.execute(sql("touched_forget"))

    def note_followed(self, connection: apsw.Connection, state: State) -> None:
        """Record that the files, in the given state, contain what this batch has done so far."""
        self._state |= state
        self._seq = int(connection.execute(sql("commit_last_seq")).get or 0)
        self._first = self._seq + 1
        connection.execute(sql("touched_forget"))
        write_state(connection, self._state)

    def work_done(self, connection: apsw.Connection) -> None:
        """Collect the lines of the commits that one job has made."""
        self.collect(connection, {})

    def collect(self, connection: apsw.Connection, extra: Line) -> None:
        """Collect the lines of new commits; `extra` fields are added to the lines of the commits themselves.

        A commit that is not the first of its batch names the first, so that a reader knows what was written together.
        """
        for seq in commits_after(connection, self._seq):
            self._seq = seq
            batch: Line = {"batch": self._first} if seq > self._first else {}
            for name, line in lines_of_commit(connection, self.shapes, seq, extra | batch):
                self._pending.setdefault(name, []).append(line)

    def write(self, connection: apsw.Connection) -> None:
        """Append the lines of the batch or, after an erasure, rewrite the files."""
        if self.rewrites or connection.execute(sql("erasures_since"), {"seq": self._seq_before}).get:
            self.rewrite(connection, self.cipher)
            return
        commit = self._seq if COMMITS in self._pending else None
        for name, line in touched_lines(connection, self.shapes, commit=commit):
            self._pending.setdefault(name, []).append(line)
        if self._pending:
            with os_errors_as_sqlite():
                self._append()
            self.is_written = True
            faults.reached("folder: after commit line")
            self._leave_out_taken_over(connection)
            write_state(connection, self._state)

    def rewrite(self, connection: apsw.Connection, cipher: LineCipher | None, *, key_file: bytes | None = None) -> None:
        """Rewrite the files from the index, encrypted by `cipher`.

        Args:
            key_file: the new content of the key file; b"" deletes the file, None leaves it unchanged.
        """
        with os_errors_as_sqlite():
            unused = read_unused(connection)
            sums = rewrite(
                connection,
                self.shapes,
                self.folder,
                self.disk,
                state=self._state,
                unused=unused,
                cipher=cipher,
                key_file=key_file,
            )
            self.cipher, self._key_stamp = cipher, None
            self.is_written = True
            faults.reached("folder: after the marker")
            finish(self.folder, self.disk)
        connection.execute(sql("touched_forget"))
        self._state |= {name: Followed(stamp_of(self.folder / name), total) for name, total in sums.items()}
        write_state(connection, self._state)
        write_unused(connection, UnusedLines())  # they were set aside

    def _leave_out_taken_over(self, connection: apsw.Connection) -> None:
        """Remove adopted lines, since their rows now have lines of a commit and each memory should be in its file once.

        After a crash they remain, but do not count again, since the commit names them. An edited file is not changed.
        """
        cut: dict[str, list[tuple[int, int]]] = {}
        for name, gone in self.taken_over.items():
            path = self.folder / name
            lines = list(lines_of(path))
            if name == PEOPLE or stamp_of(path) != self._state[name].stamp:
                continue
            with contextlib.suppress(OSError):
                self.disk.replace(path, (raw + b"\n" for offset, raw in lines if offset not in gone))
                cut[name] = [(offset, len(raw) + 1) for offset, raw in lines if offset in gone]
            self._state[name] = followed(path)
        if cut:
            write_unused(connection, read_unused(connection).after(cut))

    def _append(self) -> None:
        pending = {name: self._pending[name] for name in FILES if name in self._pending}
        written = {name: b"".join(sealed(self.cipher, name, lines)) for name, lines in pending.items()}
        try:
            for name, data in written.items():
                faults.reached("folder: before commit line" if name == COMMITS else "folder: between files")
                self.disk.append(self.folder / name, data)
        except BaseException:
            for name in written:  # if this fails as well, the next reader finds lines without a commit
                with contextlib.suppress(OSError):
                    self.disk.cut(self.folder / name, self._state[name].stamp.size)
            raise
        for name, data in written.items():
            self._state[name] = self._state[name].grown(self.folder / name, data)
        self._pending = {}


@contextlib.contextmanager
def os_errors_as_sqlite() -> Iterator[None]:
    """Raise file errors as SQLite errors, so that the writer treats both alike."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EISDIR:
            message = f"{error.filename or 'the place of a file'} {IS_FOLDER}"
            raise StoreError(message, hint=MENDING) from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise apsw.FullError(f"{error.filename or 'the folder'}: no space left") from error
        raise apsw.IOError(str(error)) from error
