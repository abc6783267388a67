"""One SQLite file as a store: its life from opening to closing, one writer, many readers."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import apsw

from ricordo.errors import InvalidError, StoreError, UnavailableError
from ricordo.model import Change, Durability, Finding, Reason, Report, Scope
from ricordo.ports import Progress
from ricordo.storage import faults
from ricordo.storage.database.apply import apply
from ricordo.storage.database.as_of import Links, PastSnapshot, commit_of, past
from ricordo.storage.database.connection import connect, moment, patient, translated
from ricordo.storage.database.doctor import examine
from ricordo.storage.database.reader import DatabaseSnapshot
from ricordo.storage.database.readers import Readers
from ricordo.storage.database.schema import Migration, copy_database, migrations, prepare
from ricordo.storage.database.vacuum import clean
from ricordo.storage.database.writer import Writer, outcome
from ricordo.storage.values import Cleaned, When

if TYPE_CHECKING:
    from ricordo.storage.folder.folder import Folder

T = TypeVar("T")

_MADE_AGAIN = frozenset(
    (
        "file",
        "references",
        "row seals",
        "history",
        "commit chain",
        "commit rows",
        "settings and vectors",
        "erasures",
        "full text",
        "slots",
        "counts",
    )
)
"""What `doctor` finds of an index that a new one mends, if the files are well."""

_TIDY_PATIENCE_S = 1.0

Decide = Callable[[DatabaseSnapshot], tuple[Change, T]]
"""Read what is there, decide purely, return the change and what the caller shall get."""


class Store:
    """Commits go in through `write`, questions through `read`. Safe from any thread and any event loop."""

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability,
        patience_s: float,
        queue_limit: int,
        reader_threads: int,
        throw_away: bool,
        folder: Folder | None = None,
    ) -> None:
        self.path = path
        self.folder = folder
        self._durability: Durability = durability
        self._patience_s = patience_s
        self._throw_away = throw_away
        self._process = os.getpid()
        writing = folder.open() if folder else connect(path, durability=durability, patience_s=patience_s)
        self._writer = Writer(writing, limit=queue_limit, journal=folder.journal if folder else None)
        self._readers = Readers(self._connect_reader, threads=reader_threads, place=lambda: self.place)
        self._is_open = True
        _open_stores.add(self)

    @classmethod
    def open(
        cls,
        location: str | Path,
        *,
        durability: Durability = "disk",
        patience_s: float = 30.0,
        queue_limit: int = 10_000,
        reader_threads: int = 2,
        steps: tuple[Migration, ...] | None = None,
        progress: Progress | None = None,
    ) -> Store:
        """Open the store at a path, making it if there is none.

        Args:
            location: a file's path; a folder's, which exists or ends in a slash; or ":memory:" for a store that goes
                when it is closed.
            patience_s: how long a write waits for other processes, in seconds.
            queue_limit: how many writes may wait in this process.
            progress: told of the lines of a folder whose index has to be made anew.

        Raises:
            InvalidError: the location is of a kind this version cannot open.
            StoreError: the file is another program's, newer, damaged, or out of reach.
        """
        if is_folder(location):
            folder = _opened_folder(location, durability, patience_s, steps or migrations(), progress)
            return cls(
                folder.index,
                durability=durability,
                patience_s=patience_s,
                queue_limit=queue_limit,
                reader_threads=reader_threads,
                throw_away=False,
                folder=folder,
            )
        path, throw_away = _place(location)
        _create_private(path)
        with translated(f"cannot open {path}"):
            connection = connect(path, durability=durability, patience_s=patience_s)
            try:
                prepare(connection, path, steps or migrations())
            finally:
                connection.close()
            return cls(
                path,
                durability=durability,
                patience_s=patience_s,
                queue_limit=queue_limit,
                reader_threads=reader_threads,
                throw_away=throw_away,
            )

    @property
    def place(self) -> int:
        """Which file the index of a folder is now: what was read from another one is out of date."""
        return self.folder.place if self.folder else 0

    def _connect_reader(self, *, waits: bool = True) -> apsw.Connection:
        if self.folder and not self.path.exists():
            if not waits:
                raise UnavailableError("the index was deleted", hint="it is made anew")
            self._writer.submit(lambda _: None).result()  # the index was deleted: whoever writes makes it anew first
        return connect(self.path, read_only=True, patience_s=self._patience_s if waits else 0)

    def _check(self) -> None:
        """A forked child shares the file's locks but not the threads: it must open the store itself."""
        if os.getpid() != self._process:
            raise UnavailableError("this store was opened before a fork", hint="open it anew in the child process")

    # writing

    async def write(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> T:
        """Decide and apply as one commit; returns when it is durable.

        Raises:
            StoreError: the disk is full or failing; nothing of the change was kept.
            UnavailableError: the store is closing or busy for longer than its patience.
        """
        self._check()
        return await outcome(self._writer.submit(_commit(decide, scope, reason, at)))

    def write_nowait(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> None:
        """Like `write`, without waiting: a failure is logged and counted in `doctor`."""
        self._check()
        self._writer.submit_unseen(_commit(decide, scope, reason, at))

    async def derive(self, work: Callable[[DatabaseSnapshot], T]) -> T:
        """Write derived rows: durable like the rest, but no commit, since they can be made again."""
        self._check()
        return await outcome(self._writer.submit(work))

    # reading

    async def read(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        """Ask from one snapshot, in a reader's thread. Keep it short: nothing else may wait inside."""
        self._check()
        return await outcome(self._readers.submit(ask))

    def read_here(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        """Ask from one snapshot, in the thread of the caller, who waits for nobody.

        Raises:
            UnavailableError: somebody would have to be waited for: let a reader's thread do it.
        """
        self._check()
        return self._readers.answer_here(ask)

    async def read_past(self, ask: Callable[[PastSnapshot], T], *, scope: Scope, when: When, links: Links) -> T:
        """Ask the store as it was, in a reader's thread.

        Args:
            scope: whose past. An instant stands for the last commit of this caller whose own time is not after it.
            links: finds who is named in texts, where texts or names were others then.
        """

        def answer(today: DatabaseSnapshot) -> T:
            commit, at = commit_of(today, scope, when)
            with past(self._connect_reader(), today, commit=commit, at=at, links=links) as snapshot:
                return ask(snapshot)

        return await self.read(answer)

    async def look(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        """Ask at length, by a connection and in a thread of its own: nobody else waits for it."""
        self._check()
        return await asyncio.to_thread(self._looked, ask)

    def _looked(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        connection = self._connect_reader()
        try:
            with translated("cannot read"), moment(connection):
                return ask(DatabaseSnapshot(connection))
        finally:
            connection.close()

    # upkeep

    async def doctor(self) -> Report:
        """Look for damage. Changes nothing."""
        return await self.read(lambda _: self._examined())

    def _examined(self) -> Report:
        """By a fresh connection: FTS5 checks itself against the structure a connection saw last, and cries
        corruption when another one has written since.
        """
        connection = self._connect_reader()
        try:
            with moment(connection):
                report = examine(DatabaseSnapshot(connection), self.path, failures_unseen=self._writer.failures_unseen)
        finally:
            connection.close()
        if self.folder is None:
            return report
        told = self.folder.checks().items()
        found = (Finding(check=name, ok=not remedy, detail=said, remedy=remedy) for name, (said, remedy) in told)
        return Report(findings=(*report.findings, *found))

    async def mend(self, report: Report) -> None:
        """Do what is safe about what `doctor` found: privacy, and for a folder an index made anew. Deletes nothing."""
        off = {finding.check for finding in report.findings if not finding.ok}
        if {"permissions", "who can read"} & off:
            self.path.chmod(0o600)
            if self.folder:
                self.folder.make_private()
        if self.folder and off & _MADE_AGAIN:
            await self.rebuild()

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Make the index of a folder anew from its files. Returns how many lines were read.

        Raises:
            InvalidError: the store is a single file, which is itself the truth.
        """
        self._check()
        if self.folder is None:
            raise InvalidError(
                "this store is a single file: there is nothing to make it anew from",
                hint="`ricordo migrate` makes a folder of it, or restore a backup",
            )
        built = await asyncio.to_thread(self.folder.rebuild, progress)
        return built.lines

    def migrate(self, target: str | Path) -> None:
        """Copy the whole store to one of the other kind: a folder where the target ends in a slash, else a file.

        Raises:
            InvalidError: the target exists and is not empty.
            StoreError: it cannot be written.
        """
        self._check()
        if not is_folder(target):
            self.backup(Path(target).expanduser())
            return
        path = Path(target).expanduser()
        _check_is_free(path)
        source = self._connect_reader()
        try:
            _fill_folder(path, source, durability=self._durability, patience_s=self._patience_s)
        finally:
            source.close()

    async def clean(self, *, patience_s: float | None = None) -> Cleaned:
        """Leave no byte of what was deleted in the file or its log: both are rewritten, which takes a second for every
        hundred megabytes.

        Args:
            patience_s: how long to wait for other processes; as for a write by default.

        Raises:
            StoreError: the disk is full.
            UnavailableError: another process kept writing.
        """
        self._check()
        patience = self._patience_s if patience_s is None else patience_s
        return await asyncio.to_thread(clean, self.path, patience_s=patience)

    async def compact(self) -> int:
        """Write the files of a folder anew where many of their lines are outdated. Returns how many lines went; 0 for
        a single file.
        """
        return await self.derive(self.folder.compact) if self.folder else 0

    def backup(self, target: Path) -> int:
        """Copy the whole store to a new file, also while others write. Returns its size in bytes.

        Raises:
            InvalidError: the target exists already.
            StoreError: it cannot be written; nothing is left of it.
        """
        self._check()
        _check_name(str(target), name="path")
        if target.exists():
            raise InvalidError(f"path: {target} exists already", hint="choose a new name; nothing is overwritten")
        doing = f"cannot back up to {target}"
        try:
            make_folders(target.parent)
            with translated(doing):
                source = self._connect_reader()
                try:
                    copy_database(source, target)
                finally:
                    source.close()
            return target.stat().st_size
        except OSError as error:
            hint = "check the path and its permissions"
            raise StoreError(f"{doing}: {error.strerror}", hint=hint) from error

    def close(self) -> None:
        """Write what is queued, then let go of the file. Closing twice is fine."""
        if not self._is_open or os.getpid() != self._process:
            return
        self._is_open = False
        _open_stores.discard(self)
        self._writer.close()
        self._readers.close()
        faults.reached("close: after drain")
        self._tidy()
        faults.reached("close: before letting go")
        with translated("cannot close"):
            self._writer.connection.close()
        if self.folder:
            self.folder.close()
        if self._throw_away:
            shutil.rmtree(self.path.parent, ignore_errors=True)

    def _tidy(self) -> None:
        """Leave statistics and a short log behind, where that can be had: a full disk or a busy neighbour is no
        reason to fail, since everything is written and SQLite tidies up at the next opening.
        """
        self._writer.connection.set_busy_handler(patient(_TIDY_PATIENCE_S))
        with contextlib.suppress(apsw.Error):
            self._writer.connection.execute("PRAGMA optimize")
        with contextlib.suppress(apsw.Error):
            self._writer.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _commit(decide: Decide[T], scope: Scope, reason: Reason, at: datetime) -> Callable[[DatabaseSnapshot], T]:
    def work(snapshot: DatabaseSnapshot) -> T:
        change, result = decide(snapshot)
        if not change.is_empty:
            apply(snapshot, change, scope=scope, reason=reason, at=at)
        return result

    return work


def _place(location: str | Path) -> tuple[Path, bool]:
    """The file behind a location, and whether it goes when closed."""
    text = str(location)
    if text == ":memory:":
        # A folder of files rather than SQLite's memory: readers and the writer then work side by side as they do
        # everywhere else.
        return Path(tempfile.mkdtemp(prefix="ricordo-")) / "memory.db", True
    if "://" in text:
        raise InvalidError(
            f"location: {text.partition('://')[0]} stores cannot be opened yet", hint="give a file's path"
        )
    _check_name(text, name="location")
    return Path(text).expanduser(), False


def is_folder(location: str | Path) -> bool:
    """A location that is one, or that says by its end that it shall be one."""
    text = str(location)
    if text == ":memory:" or "://" in text:
        return False
    _check_name(text, name="location")
    return text.endswith(("/", os.sep)) or Path(text).expanduser().is_dir()


def _opened_folder(
    location: str | Path,
    durability: Durability,
    patience_s: float,
    steps: tuple[Migration, ...],
    progress: Progress | None = None,
) -> Folder:
    from ricordo.storage.folder.convert import take_in_single_file, turn_into_folder
    from ricordo.storage.folder.folder import Folder, check_is_ours

    path = Path(location).expanduser()
    try:
        turn_into_folder(path, durability=durability, patience_s=patience_s)
        make_folders(path)
        take_in_single_file(path, durability=durability, patience_s=patience_s)
        check_is_ours(path)
        return Folder(path, durability=durability, patience_s=patience_s, steps=steps, progress=progress)
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}", hint="check the path and its permissions") from error


def _check_is_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidError(f"path: {folder} is not empty", hint="choose a new name; nothing is overwritten")


def _fill_folder(path: Path, source: apsw.Connection, *, durability: Durability, patience_s: float) -> None:
    from ricordo.storage.folder.convert import fill_folder  # as above

    try:
        make_folders(path.parent)
        fill_folder(path, source, durability=durability, patience_s=patience_s)
    except OSError as error:
        hint = "check the path and its permissions"
        raise StoreError(f"cannot write {path}: {error.strerror}", hint=hint) from error


def _check_name(text: str, *, name: str) -> None:
    """What no file can be called is said to be so, before the system says it in its own words."""
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidError(f"{name}: {text!r} cannot be the name of a file", hint="choose another path")


def _create_private(path: Path) -> None:
    """A store is for its user's eyes only; SQLite gives the files beside it the same mode."""
    try:
        make_folders(path.parent)
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}", hint="check the path and its permissions") from error


def make_folders(folder: Path) -> None:
    """Private ones, one by one: `parents=True` would leave all but the last open to everybody."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)


# Held strongly: a store that was dropped unclosed still has writes to finish when the interpreter ends.
_open_stores: set[Store] = set()


@atexit.register
def _close_all() -> None:
    """At the end of the interpreter: what was queued and never awaited is still written."""
    for store in list(_open_stores):
        store.close()
