"""The index of a folder: a database that is kept up to date with the plain files, and can be rebuilt from them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

from ricordo.clock import SystemClock, from_ms
from ricordo.errors import DeniedError, InvalidError, RicordoError, StoreError, UnavailableError
from ricordo.model import BackupFile, Finding
from ricordo.ports import Progress
from ricordo.storage import faults
from ricordo.storage.database.connection import connect
from ricordo.storage.database.schema import copy_database, is_current, prepare
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import sql
from ricordo.storage.database.store import Options
from ricordo.storage.folder.catch_up import CatchUp, NeedsRebuildError
from ricordo.storage.folder.files import (
    ASIDE,
    Disk,
    FolderHeldError,
    FolderLock,
    Stamp,
    copy_start,
    followed,
    prefix_sum,
    stamp_of,
)
from ricordo.storage.folder.hand_edits import adopt
from ricordo.storage.folder.journal import (
    FolderJournal,
    is_state_readable,
    os_errors_as_sqlite,
    read_state,
    read_unused,
    write_state,
    write_unused,
)
from ricordo.storage.folder.rewrite import BUILDING, finish, link_files, replace_files, sweep
from ricordo.storage.folder.untangle import untangle
from ricordo.storage.jsonl.builder import build
from ricordo.storage.jsonl.layout import COMMITS, FILES, HISTORY, INDEX, PEOPLE, ROW_FILES, STORE
from ricordo.storage.jsonl.lines import Findings, HandLine, UnusedLines, count_lines, lines_of, opened
from ricordo.storage.key import KEY_FILE, AnyKey, Key, LineCipher, folder_cipher, new_folder_key
from ricordo.storage.sql import transaction, translated
from ricordo.storage.staging import copy_file
from ricordo.text.sentences import plural

_log = logging.getLogger("ricordo.storage")

T = TypeVar("T")

# The files are rewritten if at least one line in this many is outdated.
_WORTH_REWRITING = 100
# How long opening waits for the lock. A batch of writes holds it for milliseconds; a stopped process, without end.
_OPENING_S = 0.5
_ASIDE_REMEDY = "correct the line, or `ricordo doctor --fix` moves such lines to a file beside"
_SIDE_FILES = ("-wal", "-shm", "-journal")

Cut = Mapping[str, Sequence[tuple[int, int]]]
"""Removed lines by file, as (offset, bytes)."""


class FolderIndex:
    """The index of one folder, kept in step with its files."""

    def __init__(
        self,
        folder: Path,
        options: Options,
        *,
        progress: Progress | None = None,
        disk: Disk | None = None,
        fresh: Path | None = None,
    ) -> None:
        """Start with an existing folder.

        Args:
            progress: called with (lines so far, lines in all) while the index is rebuilt.
            fresh: the folder whose files `take_over` moves here; the key must open those files.
        """
        self.folder, self.path = folder, folder / INDEX
        self.found = Findings()  # what the last catch-up or rebuild found in the files
        self.was_rebuilt = False
        self._options = options
        self._opening_s = min(_OPENING_S, options.patience_s)
        self._progress = progress
        self.disk = disk or Disk(syncs=options.durability == "disk")
        lock = FolderLock(folder, patience_s=options.patience_s)
        self.cipher, key_stamp = self._cipher(lock, fresh or folder)
        self.journal = FolderJournal(
            folder,
            lock,
            self.disk,
            follow=self._follow,
            connect=self._connect,
            reopen=self._reopen,
            cipher=self.cipher,
            key_stamp=key_stamp,
        )

    def _cipher(self, lock: FolderLock, source: Path) -> tuple[LineCipher | None, Stamp]:
        """Return the cipher for the files in `source`, and the stamp of the key file of this folder."""
        try:
            return self._locked_cipher(lock, source, patience_s=self._opening_s)
        except FolderHeldError:
            stamp = stamp_of(self.folder / KEY_FILE)
            with contextlib.suppress(RicordoError):  # the other process may be creating or changing the key
                return folder_cipher(source, self._options.key, files=FILES, write=_refuse), stamp
        return self._locked_cipher(lock, source, patience_s=self._options.patience_s)

    def _locked_cipher(self, lock: FolderLock, source: Path, *, patience_s: float) -> tuple[LineCipher | None, Stamp]:
        with lock.held(patience_s=patience_s):
            finish(self.folder, self.disk)  # it may replace the key file
            cipher = folder_cipher(source, self._options.key, files=FILES, write=self.disk.replace)
            return cipher, stamp_of(self.folder / KEY_FILE)

    @property
    def key(self) -> AnyKey | None:
        """The key of the index; None if the folder is not encrypted."""
        return None if self.cipher is None else self.cipher.index_key

    def open(self) -> apsw.Connection:
        """Bring the index up to date with the files. Return the connection for writing.

        If another process holds the folder, return a connection for reading what was last committed. That process
        completes or undoes what it has begun; the index catches up before the next write, or once the lock is free.
        """
        try:
            return self._caught_up(patience_s=self._opening_s)
        except FolderHeldError:
            if (connection := self._as_committed()) is not None:
                return connection
        return self._caught_up(patience_s=self._options.patience_s)

    def _as_committed(self) -> apsw.Connection | None:
        """Return a connection for reading the index as it is; None if it must be changed first. Needs no lock."""
        try:
            connection = self.journal.connected(read_only=True)
            with translated(f"cannot open {self.folder}"):
                is_usable = is_current(connection, self.path, self._options.steps) and is_state_readable(connection)
        except RicordoError:  # it is missing or damaged, or has another key
            return None
        if not is_usable:
            connection.close()
            return None
        self.journal.is_behind = True
        _log.warning("%s is held by another process: it is opened as last committed", self.folder)
        return connection

    def _caught_up(self, *, patience_s: float) -> apsw.Connection:
        with self._locked("open", patience_s=patience_s):
            finish(self.folder, self.disk)
            sweep(self.folder)
            self.make_private()  # an editor or git may have made files readable to others
            return self.journal.current(self._reopen())

    def rebuild(self, progress: Progress | None = None) -> Findings:
        """Rebuild the index from the files, even if it seems intact."""
        self._progress = progress or self._progress
        with self._locked("rebuild the index of"):
            if self._is_usable():  # its last catch-up may recognize files that were cut
                with contextlib.closing(self.journal.connected()) as connection:
                    self.journal.current(connection)
            built = self._rebuild("on request")
            self.journal.forget_index()
            return built

    def fill(self, source: apsw.Connection) -> None:
        """Fill an empty folder with exactly the rows of a single file. The file stays unchanged."""
        with self._locked("fill"):
            copy_database(source, self.path, key=self.key)
            with contextlib.closing(self.journal.connected()) as connection:
                prepare(connection, self.path, self._options.steps, key=self.key)
                with transaction(connection):
                    write_state(connection, {})  # the file may have been the index of another folder
                    self.journal.begin(connection)
                    self.journal.rewrites = True
                    self.journal.write(connection)
            self.journal.forget_index()

    def take_over(self, fresh: Path, *, aside: Path | None = None) -> Findings:
        """Move the files of another folder here, all or none; keep the old files in the new folder `aside`."""
        with self._locked("fill"):
            finish(self.folder, self.disk)
            if aside is not None:
                link_files(self.folder, aside)
            replace_files(self.folder, fresh, self.disk)
            built = self._rebuild("the files were replaced")
            self.journal.forget_index()
            return built

    def rekey(self, key: Key | None) -> None:
        """Write all files again, encrypted with another key or with none, then the index. All files change, or none."""
        with self._locked("change the key of"):
            with contextlib.closing(self.journal.current(self._reopen())) as connection, transaction(connection):
                self.journal.begin(connection)
                cipher, content = (None, b"") if key is None else new_folder_key(key)
                self.journal.rewrite(connection, cipher, key_file=content)
            self.cipher = cipher
            _remove(self.path)  # the old key could still open it
            self._rebuild("the key was changed")
            self.journal.forget_index()

    def copy_files(self, target: Path, look: Callable[[DatabaseSnapshot], T]) -> tuple[T, dict[str, BackupFile]]:
        """Copy the files as of one moment. Return what `look` returned at that moment, and the copies by name."""
        with contextlib.ExitStack() as opened:
            with self._locked("copy"):
                try:
                    with contextlib.closing(self.journal.current(self.journal.connected())) as connection:
                        found, state = look(DatabaseSnapshot(connection)), read_state(connection)
                finally:
                    self.journal.forget_index()
                # Later writes append to these files, or create other files with the same names.
                files = {
                    name: opened.enter_context((self.folder / name).open("rb"))
                    for name, seen in state.items()
                    if seen.stamp.size
                }
            copies = {name: copy_start(file, state[name], target / name) for name, file in files.items()}
            if self.cipher is not None:
                copies[KEY_FILE] = copy_file(self.folder / KEY_FILE, target / KEY_FILE)
            return found, copies

    def compact(self, snapshot: DatabaseSnapshot) -> int:
        """Let this batch rewrite the files if enough lines are outdated. Return how many go. Makes no commit."""
        lines = sum(count_lines(self.folder / name) for name in ROW_FILES)
        known = sum(
            snapshot.connection.execute(f'SELECT count(*) FROM "{table}"').get for table in self.journal.shapes.rows
        )
        outdated = lines - known
        if outdated * _WORTH_REWRITING < max(lines, 1):
            return 0
        self.journal.rewrites = True
        return int(outdated)

    def make_private(self) -> None:
        """Restrict the files of the memory to their owner."""
        for path in self.folder.iterdir():
            if (_is_ours(path) or path.name.startswith(ASIDE)) and _is_open(path):
                path.chmod(0o600)

    def findings(self) -> tuple[Finding, ...]:
        """Return what `doctor` reports about the files."""
        with self.journal.locked():
            with contextlib.closing(self._connect()) as connection:
                state, unused = read_state(connection), read_unused(connection)
                count, last = connection.execute(sql("commits_by_hand")).fetchall()[0]
            changed = [
                name
                for name, seen in state.items()
                if stamp_of(self.folder / name).size != seen.stamp.size
                or prefix_sum(self.folder / name, seen.stamp.size) != seen.total
            ]
        size = sum(seen.stamp.size for seen in state.values())
        places = unused.places
        not_used = f"; {plural(len(unused), 'line')} not used: {self._in_lines(next(iter(unused)))}" if places else ""
        open_files = sorted(path.name for path in self.folder.iterdir() if _is_ours(path) and _is_open(path))
        aside = sorted(path.name for path in self.folder.glob(f"{ASIDE}*"))
        aside += sorted(path.name for path in self.folder.glob(f"{INDEX}.damaged-*"))
        return (
            _finding(
                "plain files",
                f"{', '.join(changed)} changed since" if changed else f"{size / 1e6:.1f} MB, all indexed{not_used}",
                "open the memory again: it follows its files" if changed else _ASIDE_REMEDY if places else "",
            ),
            _finding(
                "who can read",
                f"others can read {', '.join(open_files[:5])}" if open_files else "private",
                f"chmod 600 in {self.folder}" if open_files else "",
            ),
            _finding(
                "changes by hand", f"{plural(int(count), 'commit')}, the latest is {last}" if count else "none", ""
            ),
            _finding("set aside", ", ".join(aside[:5]) or "nothing", ""),
        )

    def _in_lines(self, place: tuple[str, int]) -> str:
        """Return the place of an unusable line with its line number, as editors show it."""
        file, offset = place
        if offset < 0:
            return file
        with (self.folder / file).open("rb") as opened:
            return f"{file} line {opened.read(offset).count(bytes([10])) + 1}"

    def set_unused_aside(self, snapshot: DatabaseSnapshot) -> None:
        """Let this batch rewrite the files without unusable lines, which are kept in files beside them."""
        self.journal.rewrites = True

    def close(self) -> None:
        """Close the file of the lock."""
        self.journal.lock.close()

    @contextlib.contextmanager
    def _locked(self, doing: str, *, patience_s: float | None = None) -> Iterator[None]:
        held = self.journal.locked(patience_s=patience_s)
        with translated(f"cannot {doing} {self.folder}"), held, os_errors_as_sqlite():
            yield

    def _connect(self, *, read_only: bool = False) -> apsw.Connection:
        # The files are synced, and the index can be rebuilt from them, so it need not be synced.
        patience_s = self._options.patience_s
        return connect(self.path, durability="process", read_only=read_only, patience_s=patience_s, key=self.key)

    def _reopen(self) -> apsw.Connection:
        """Return a connection for writing to the index, which may have been deleted, damaged or replaced."""
        if self.journal.is_distrusted and self.path.exists():
            self._rename_damaged()
        if not self._is_usable():
            self._rebuild("it was missing or damaged")
        return self.journal.connected()

    def _is_usable(self) -> bool:
        """Return whether there is an index that can catch up; rename an unreadable one."""
        if not self.path.exists():
            return False
        try:
            with contextlib.closing(self._connect()) as connection:
                prepare(connection, self.path, self._options.steps, key=self.key)
                is_usable = is_state_readable(connection)
        except (DeniedError, InvalidError):  # it has another key, or none
            _remove(self.path)
            return False
        except StoreError as error:
            if not isinstance(error.__cause__, apsw.NotADBError | apsw.CorruptError):
                raise
            is_usable = False
        if not is_usable:
            self._rename_damaged()
        return is_usable

    def _rename_damaged(self) -> None:
        day = from_ms(SystemClock().now()).strftime("%Y%m%d-%H%M%S")
        kept = self.path.with_name(f"{INDEX}.damaged-{day}")
        for ending in ("", *_SIDE_FILES):
            source = Path(f"{self.path}{ending}")
            if source.exists():
                source.rename(f"{kept}{ending}")
        _log.warning("%s is damaged and was renamed to %s", self.path, kept.name)

    def _follow(self, connection: apsw.Connection, names: list[str]) -> apsw.Connection:
        """Bring the index up to date with changed files; rebuild it if necessary."""
        try:
            self._catch_up(connection, names)
        except NeedsRebuildError as error:
            if torn := self._torn(connection, names):
                self._write_again(connection, torn)
                return connection
            self._rebuild(f"the files changed otherwise than by commits: {error}")
            connection.close()
            return self.journal.connected()
        return connection

    def _torn(self, connection: apsw.Connection, names: list[str]) -> list[str]:
        """Return files that another program has cut while other files go on: they contain less than the index.

        If all files are in an older state, as after a git checkout, none is returned. Nor is any if an older index sees
        a rewrite, which replaces the file of commits, so that its inode differs; or if git has brought the commits of
        another clone, since the inode of a replaced file is often used again.
        """
        state = read_state(connection)
        has_same_file = stamp_of(self.folder / COMMITS).inode == state[COMMITS].stamp.inode
        shorter = [each for each in names if stamp_of(self.folder / each).size < state[each].stamp.size]
        if COMMITS not in shorter:
            cut = [each for each in shorter if each in (HISTORY, STORE)]
            return cut if cut and has_same_file and self._has_commits_of(connection) else []
        last = max(self._commits_in(COMMITS), default=0)
        known = int(connection.execute(sql("commit_last_seq")).get or 0)
        later = (seq for name in (*ROW_FILES, HISTORY) for seq in self._commits_in(name))
        return shorter if any(last < seq <= known for seq in later) else []

    def _has_commits_of(self, connection: apsw.Connection) -> bool:
        """Return whether the file of commits has the last commit of an index, and so all before it: each commit has a
        hash that covers the one before.
        """
        seq, known = connection.execute(sql("commit_last")).get or (0, b"")
        return any(each.get("commit") == seq and each.get("hash") == known.hex() for each in self._lines_in(COMMITS))

    def _commits_in(self, name: str) -> Iterator[int]:
        """Yield the commit numbers in the lines of a file."""
        return (each["commit"] for each in self._lines_in(name) if isinstance(each.get("commit"), int))

    def _lines_in(self, name: str) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of a file that are JSON objects."""
        for _, raw in lines_of(self.folder / name):
            with contextlib.suppress(ValueError):
                if isinstance(found := json.loads(opened(self.cipher, name, raw)), dict):
                    yield found

    def _write_again(self, connection: apsw.Connection, torn: list[str]) -> None:
        """Write all files from the index again, and keep the rest of the cut files in files beside them."""
        for name in torn:
            if data := b"".join(raw + b"\n" for _, raw in lines_of(self.folder / name)):
                self.disk.set_aside(self.folder, name, data)
        _log.error("%s: another program has cut %s; written again from the index", self.folder, ", ".join(torn))
        with transaction(connection):
            self.journal.begin(connection)
            self.journal.note_followed(connection, {name: followed(self.folder / name) for name in (*FILES, PEOPLE)})
            self.journal.rewrites = True
            self.journal.write(connection)

    def _catch_up(self, connection: apsw.Connection, names: list[str]) -> None:
        now = SystemClock().now()
        with transaction(connection):
            self.journal.begin(connection)
            catch_up = CatchUp(
                connection, self.journal.shapes, self.folder, self.journal.state, now=now, cipher=self.cipher
            )
            found = catch_up.run(names)
            cut = self._cut_uncommitted(found.uncommitted)
            changed = (
                name for name in (*FILES, PEOPLE) if stamp_of(self.folder / name) != self.journal.state[name].stamp
            )
            self.journal.note_followed(connection, {name: followed(self.folder / name) for name in changed})
            self.journal.rewrites = catch_up.put_back
            self.journal.taken_over = _places(adopt(connection, self.journal, found, now=now), cut)
            known = {line: why for line, why in read_unused(connection).items() if line[0] not in catch_up.altered}
            write_unused(connection, UnusedLines(known | found.unused).after(cut))
            self.journal.write(connection)
        self._note(found)

    def _note(self, found: Findings, *, was_rebuilt: bool = False) -> None:
        self.found, self.was_rebuilt = found, was_rebuilt
        for place in found.unused.places:
            _log.warning("%s: not used: %s", self.folder, place)
        if found.changed_by_hand:
            _log.warning(
                "%s: %s changed by hand; `ricordo log` shows the change",
                self.folder,
                plural(found.changed_by_hand, "row"),
            )

    def _rebuild(self, why: str) -> Findings:
        _log.info("the index of %s is rebuilt: %s", self.folder, why)
        finish(self.folder, self.disk)  # an incomplete rewrite would look like damage
        if self.cipher is None:
            untangle(self.folder, self.disk)
        building = self.folder / BUILDING
        _remove(building)
        building.touch(mode=0o600)
        try:
            steps, progress = self._options.steps, self._progress
            built = build(building, self.folder, steps=steps, progress=progress, cipher=self.cipher)
            cut = self._cut_uncommitted(built.uncommitted)
            self._complete(building, built, cut)
            faults.reached("folder: before replacing the index")
            _remove(self.path)
            building.rename(self.path)
            self.disk.sync(self.folder)
        finally:
            _remove(building)
        self._note(built, was_rebuilt=True)
        return built

    def _complete(self, building: Path, built: Findings, cut: Cut) -> None:
        """Record in a new index the files it was built from, and commit lines written by hand. This must happen before
        it replaces the old index: afterwards those lines would not be read again.
        """
        with contextlib.closing(connect(building, durability="process", patience_s=1, key=self.key)) as connection:
            with transaction(connection):
                write_state(connection, {name: followed(self.folder / name) for name in (*FILES, PEOPLE)})
                self.journal.begin(connection)
                self.journal.taken_over = _places(adopt(connection, self.journal, built, now=SystemClock().now()), cut)
                write_unused(connection, built.unused.after(cut))
                self.journal.write(connection)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _cut_uncommitted(self, uncommitted: Mapping[str, Iterable[int]]) -> Cut:
        """Move lines without a commit to files beside; add the newline that a last line lacks."""
        cut = {name: self._cut(name, offsets) for name, offsets in uncommitted.items()}
        for name in FILES:
            path = self.folder / name
            if path.exists() and path.stat().st_size:
                with path.open("rb") as file:
                    file.seek(-1, os.SEEK_END)
                    is_whole = file.read(1) == b"\n"
                if not is_whole:
                    self.disk.append(path, b"\n")
        return cut

    def _cut(self, name: str, offsets: Iterable[int]) -> list[tuple[int, int]]:
        path, gone = self.folder / name, set(offsets)
        lines = list(lines_of(path, start=min(gone)))
        data = b"".join(raw + b"\n" for offset, raw in lines if offset in gone)
        kept = self.disk.set_aside(self.folder, name, data)
        _log.warning("%s: %s without a commit set aside in %s", path, plural(len(gone), "line"), kept.name)
        if all(offset in gone for offset, _ in lines):
            self.disk.cut(path, min(gone))
        else:
            self.disk.replace(path, (raw + b"\n" for offset, raw in lines_of(path) if offset not in gone))
        return [(offset, len(raw) + 1) for offset, raw in lines if offset in gone]


def _refuse(path: Path, parts: Iterator[bytes]) -> None:
    raise UnavailableError(f"{path} cannot be written without the lock of its folder", hint="try again")


def _places(lines: Sequence[HandLine], cut: Cut) -> dict[str, set[int]]:
    """Return the offsets of lines by file after other lines were cut."""
    places: dict[str, set[int]] = {}
    for file, offset in UnusedLines({(each.file, each.offset): "" for each in lines}).after(cut):
        places.setdefault(file, set()).add(offset)
    return places


def _finding(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check=check, ok=not remedy, detail=detail, remedy=remedy)


def _is_ours(path: Path) -> bool:
    return path.name in {*FILES, PEOPLE, INDEX, KEY_FILE}


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o077)


def _remove(path: Path) -> None:
    for ending in ("", *_SIDE_FILES):
        Path(f"{path}{ending}").unlink(missing_ok=True)
