"""Synchronize the files of folders into a memory: notes and documents as documents, exported chats as messages.

The store has the SHA-256 of each document, so no other state is needed: after a restart nothing is stored again, and
several watchers of one folder store each file once.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache as cached
from hashlib import sha256
from itertools import chain, product
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from ricordo.encoding.documents import DEVICE, TITLE_PAGE, document_of
from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import DOCUMENT, ROOT_ENDS, Document
from ricordo.portability import markdown
from ricordo.portability.documents import FORMATS, MAX_BYTES
from ricordo.portability.importers import format_of
from ricordo.portability.note_text import fields_of
from ricordo.portability.records import Destination
from ricordo.portability.sources import Source, decoded, is_folder_store
from ricordo.portability.vaults import is_conflict_copy, properties, templates_of
from ricordo.portability.visible_text import is_private, is_template
from ricordo.ports import Progress

if TYPE_CHECKING:
    from ricordo.memory import Memory

_SETTLED_S = 1.0
_POLL_S = 2.0
_MAX_FILES = 50_000
_CHATS = frozenset((".json", ".jsonl", ".txt", ".zip"))
_SUFFIXES = FORMATS.keys() | _CHATS
_KNOWLEDGE = ("semantic", "procedural", "opinion")
_MAX_ID_CHARS = 380
_MOST_NAMED = 20
_OTHER_KIND = "of other kinds"
_CONFLICT_COPY = "conflict copies"
_SOME = 2
_ELSEWHERE = "nothing is removed; if this is another folder of that name, give it another with --name"
_IMPORTED = "`import` has stored its facts; to watch it instead, `undo` the import, which `log` lists"
_SKIPPED_FOLDERS = frozenset(("node_modules", "__pycache__"))

Ignores = Callable[[Path], bool]
"""A function that returns whether to leave out a file or folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The changes of one scan of a folder, as relative paths of files.

    Attributes:
        erased: files that were not stored, because all of their text was erased before.
        refused, left_out: why files, and parts of files, could not be read.
        skipped_files: the first 20 files that were skipped for each reason.
        redacted: how many credentials were replaced.
    """

    added: Sequence[str] = ()
    changed: Sequence[str] = ()
    moved: Sequence[str] = ()
    removed: Sequence[str] = ()
    imported: Sequence[str] = ()
    erased: Sequence[str] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    skipped: int = 0
    skipped_files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    redacted: int = 0
    waiting: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.moved or self.removed or self.imported or self.refused)


_Said = tuple[str, str]
"""The text of a fact, and its day in ISO form; "" if its note gives none."""


class _Seen(NamedTuple):
    """The metadata of a file, to detect changes without reading it."""

    size: int
    changed_ns: int
    inode: int


class _File(NamedTuple):
    path: Path
    relative: str
    seen: _Seen


class _Watched(NamedTuple):
    """A document of a watched folder, its path there, and the device that last stored it; "" if that is unknown."""

    document: Document
    folder: str
    path: str
    device: str


class Watch:
    """Synchronizes one folder into a memory."""

    def __init__(self, memory: Memory, folder: Path, *, name: str | None = None, ignores: Ignores) -> None:
        """Args:
            name: the prefix of the documents' ids; the name of the folder by default.
            ignores: returns whether to leave out a file or folder.

        Raises:
            InvalidError: `folder` is not a folder.
        """
        if not folder.is_dir():
            raise InvalidError(f"{folder} is not a folder", hint="`document-add` takes a single file")
        self._memory, self._ignores = memory, ignores
        self.folder = folder.resolve()
        self._is_named_after_folder = name is None
        self.name = (name or self.folder.name).replace("/", "_") or "files"
        self._done: dict[str, _Seen] = {}
        self._first_seen: dict[str, tuple[_Seen, float]] = {}
        self._imported: Mapping[_Said, Set[str]] | None = None  # in this scan
        self._devices: Collection[str] = ()  # the names of this one
        self._unread: Mapping[str, str] = {}  # what could not be read in the last scan

    async def step(self, *, settled_s: float = _SETTLED_S, progress: Progress | None = None) -> Step:
        """Scan the folder once and update the memory.

        Args:
            progress: called with (files so far, new and changed files).
            settled_s: a file that changed less than this many seconds ago may be half written and is left for later.
        """
        unread: dict[str, str] = {}
        files, skipped = await asyncio.to_thread(self._files, unread)
        known, ids = await self._documents(files)
        waiting = [each for each in files.values() if not self._is_settled(each, settled_s)]
        for name in (name for name, each in known.items() if not each.digest):  # several devices had several versions
            self._done.pop(name, None)
        fresh = [each for each in files.values() if self._done.get(each.relative) != each.seen and each not in waiting]
        gone = {source: each for source, each in known.items() if source not in files and not _is_in(source, unread)}
        done = _Changes(waiting=len(waiting))
        for name, reason in skipped.items():
            done.skip(name, reason)
        self._imported = None
        look = _Look(known, gone, ids, unread, done)
        is_elsewhere = len(known) >= _SOME and len(gone) == len(known)
        for number, each in enumerate(fresh, start=1):
            await self._take_in(each, look)
            if progress is not None:
                progress(number, len(fresh))
        done.refused |= {name: why for name, why in unread.items() if self._unread.get(name) != why}  # each once
        self._unread = unread
        if is_elsewhere and len(gone) == len(known):
            done.refused["."] = f"none of the {len(known)} documents of {self.name!r} is here: {_ELSEWHERE}"
        elif not waiting:  # a missing file may have been renamed to one that is still being written
            for source, document in gone.items():
                await self._remove(document, source, done)
        self._done = {name: seen for name, seen in self._done.items() if name in files}
        return done.step()

    async def catch_up(self, progress: Progress | None = None) -> list[Step]:
        """Update the memory with all files, waiting for those that are still being written. `progress`: see `step`."""
        steps = [await self.step(progress=progress)]
        while steps[-1].waiting:
            await asyncio.sleep(_SETTLED_S)
            steps.append(await self.step(progress=progress))
        return [replace(each, waiting=0) for each in steps if not each.waiting or each]

    # files

    def _files(self, unread: dict[str, str]) -> tuple[dict[str, _File], dict[str, str]]:
        """Return the files to remember by relative path, and why others are left out. Why files and folders cannot be
        read is added to `unread`.
        """
        found: dict[str, _File] = {}
        skipped = dict[str, str]()

        def refuse(path: Path, error: OSError) -> None:
            unread[path.relative_to(self.folder).as_posix()] = str(error.strerror or error)

        for path, status in _walk(self.folder, self._ignores, refuse):
            relative = path.relative_to(self.folder).as_posix()
            if status.st_size > MAX_BYTES or path.suffix.lower() not in _SUFFIXES:
                skipped[relative] = _OTHER_KIND
                continue
            if is_conflict_copy(relative):
                skipped[relative] = _CONFLICT_COPY
                continue
            found[relative] = _File(path, relative, _Seen(status.st_size, status.st_mtime_ns, status.st_ino))
            if len(found) > _MAX_FILES:
                raise InvalidError(f"{self.folder} holds more than {_MAX_FILES:,} files", hint="watch parts of it")
        return found, skipped

    def _is_settled(self, file: _File, settled_s: float) -> bool:
        """Return whether a file has not changed for a while; until then, another program may be writing it."""
        if self._done.get(file.relative) == file.seen or time.time() - file.seen.changed_ns / 1e9 > settled_s:
            return True
        seen, since = self._first_seen.get(file.relative, (None, 0.0))
        if seen != file.seen:
            self._first_seen[file.relative] = file.seen, time.monotonic()
            return settled_s <= 0
        return time.monotonic() - since >= settled_s

    # documents

    async def _documents(self, files: Mapping[str, _File]) -> tuple[dict[str, Document], frozenset[str]]:
        """Return this folder's documents by relative path, and all ids in use by folders of the same name.

        A document of a same-named folder that does not exist on this machine counts as this folder's: the folder was
        moved here, or is on another device. Another device's folder may also have a path that exists here: then its
        documents count if their files are here, too.
        """
        watched = await self._watched()
        if self._is_named_after_folder and not any(each.document.id.startswith(f"{self.name}/") for each in watched):
            self.name = await asyncio.to_thread(_former_name, watched, files, self)
        found: dict[str, Document] = {}
        ids = set[str]()
        is_there = cached(os.path.isdir)
        for document, folder, path, device in watched:
            if document.id.startswith(f"{self.name}/"):
                ids.add(document.id)
                if folder == str(self.folder) or (
                    path not in found and (not is_there(folder) or (path in files and await self._is_elsewhere(device)))
                ):
                    found[path] = document
        return found, frozenset(ids)

    async def _is_elsewhere(self, device: str) -> bool:
        """Return whether a device is another one than this store's."""
        if device and not self._devices:
            self._devices = await self._memory.store_view.device_names()
        return bool(device) and device not in self._devices

    async def _watched(self) -> list[_Watched]:
        """Return the documents of all watched folders."""
        found = list[_Watched]()
        cursor: str | None = None
        while True:
            page = await self._memory.list(type="episodic", where=TITLE_PAGE, limit=1_000, cursor=cursor)
            for node in (node for node in page if node.is_title_page):
                document = document_of(node)
                folder, mark, path = (document.source or "").partition(ROOT_ENDS)
                if mark and document.chat == (self._memory.scope.chat or ""):
                    found.append(_Watched(document, folder, path, str(node.attributes.get(DEVICE, ""))))
            cursor = page.cursor
            if cursor is None:
                return found

    async def _take_in(self, file: _File, look: _Look) -> None:
        try:
            content = await asyncio.to_thread(file.path.read_bytes)
        except OSError as error:
            look.unread[file.relative] = str(error.strerror or error)
            return
        try:
            await self._remember(file, content, look)
            self._done[file.relative] = file.seen
        except InvalidError as error:
            self._done[file.relative] = file.seen  # until it changes
            look.done.refused[file.relative] = str(error).removeprefix(f"{file.path.name}: ")

    async def _remember(self, file: _File, content: bytes, look: _Look) -> None:
        known, gone, ids, _, done = look
        digest, before = sha256(content).hexdigest(), known.get(file.relative)
        if before is not None and before.digest == digest:
            return
        if before is None and await asyncio.to_thread(self._is_chat, file):
            imported = await self._memory.import_(file.path)
            done.imported += [file.relative] if imported.added else []
            done.redacted += imported.redacted
            return
        if file.path.suffix.lower() not in FORMATS or (not _is_binary_format(file.path) and b"\0" in content):
            done.skip(file.relative, _OTHER_KIND)
            return
        text = "" if _is_binary_format(file.path) else await asyncio.to_thread(decoded, content, name=file.path.name)
        if _is_markdown(file.path) and (reason := self._says_nothing(file.relative, text)):
            if before is not None:
                await self._remove(before, file.relative, done)
            done.skip(file.relative, reason)
            return
        moved = next((path for path, each in gone.items() if before is None and each.digest == digest), None)
        if moved is None and before is None and await self._is_imported(file):
            raise InvalidError(f"not stored twice: {_IMPORTED}")
        document = gone.pop(moved) if moved is not None else before
        id = self._new_id(file.relative, digest, ids) if document is None else document.id
        source = f"{self.folder}{ROOT_ENDS}{file.relative}"
        report = await self._memory.add_document(path=file.path, id=id, title=file.relative, source=source)
        done.redacted += report.redacted
        if report.left_out:
            done.left_out[file.relative] = "; ".join(report.left_out)
        if report.erased and not (report.added or report.kept):
            done.erased.append(file.relative)
            done.removed += [moved or file.relative] if document is not None else []
            return
        (done.moved if moved is not None else done.changed if before is not None else done.added).append(file.relative)

    async def _is_imported(self, file: _File) -> bool:
        """Return whether `import` has stored facts of a note: one from a note of its path, or most of them from
        anywhere, as a few may also be in other notes.
        """
        if not _is_markdown(file.path):
            return False
        if self._imported is None:
            self._imported = await self._imported_facts()
        if not self._imported:
            return False
        read = await asyncio.to_thread(markdown.read, Source(file.path), Destination(owner="", chat=""))
        said, path = 0, file.path.as_posix()
        for each in read.facts.values():
            day, heading = str(each.at or "")[:10], (each.fact.attributes or {}).get("heading", "")
            texts = {each.fact.content, each.fact.content.removeprefix(f"{heading}: ")}
            found = [self._imported[text, day] for text in texts if (text, day) in self._imported]
            if any(path.endswith(f"/{title}") for title in chain.from_iterable(found)):
                return True
            said += bool(found)
        return said * 2 > len(read.facts)

    def _says_nothing(self, name: str, text: str) -> str:
        """Return why a note is not remembered; "" if it is."""
        if is_private(text):
            return "private"
        if name.startswith(templates_of(self.folder)) or is_template(text):
            return "templates"
        is_said = any(isinstance(each, markdown.Item) for each in markdown.outline(text))
        return "" if is_said or any(properties(fields_of(text))) else "empty"

    async def _imported_facts(self) -> Mapping[_Said, Set[str]]:
        """Return what imported facts say, each with its day and without one, and the paths of their files."""
        found, zone = defaultdict[_Said, set[str]](set), self._memory.store_view.zone
        for type, archived in product(_KNOWLEDGE, (False, True)):
            cursor: str | None = None
            while True:
                page = await self._memory.list(type=type, archived=archived, limit=1_000, cursor=cursor)
                for node in page.nodes:
                    if node.origin == "import":
                        day = node.event_time.astimezone(zone).date().isoformat()
                        for said in ((node.content, day), (node.content, "")):
                            found[said] |= {title for title in (node.attributes.get("title"),) if title}
                if (cursor := page.cursor) is None:
                    break
        return found

    def _is_chat(self, file: _File) -> bool:
        """Return whether a file is an exported chat or an export of another memory."""
        if file.path.suffix.lower() not in _CHATS:
            return False
        try:
            format_of(Source(file.path), None)
        except InvalidError:
            return False
        return True

    def _new_id(self, relative: str, digest: str, taken: Collection[str]) -> str:
        """Return the id of a new document: its path, with a hash if another document has that id. That document
        was moved away, or belongs to another folder of the same name.

        The id depends only on the folder and the store, so that two watchers choose the same.
        """
        id = f"{self.name}/{relative}"
        if len(id) > _MAX_ID_CHARS:
            id = f"{id[:_MAX_ID_CHARS]}~{sha256(id.encode()).hexdigest()[:8]}"
        return f"{id}~{digest[:8]}" if id in taken else id

    async def _remove(self, document: Document, source: str, done: _Changes) -> None:
        try:
            await self._memory.remove_document(f"{DOCUMENT}{document.id}")
        except NotFoundError:  # another watcher has already removed it
            return
        done.removed.append(source)


class _Look(NamedTuple):
    """The state of one scan of the folder.

    Attributes:
        known: the documents of the folder by path.
        gone: the documents whose files no longer exist.
        unread: why files and folders cannot be read.
        ids: the ids in use by documents of this folder and others of the same name.
        done: the changes so far.
    """

    known: Mapping[str, Document]
    gone: dict[str, Document]
    ids: Collection[str]
    unread: dict[str, str]
    done: _Changes


@dataclass(slots=True)
class _Changes:
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    imported: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    skipped: int = 0
    skipped_files: dict[str, list[str]] = field(default_factory=dict)
    redacted: int = 0
    waiting: int = 0

    def skip(self, name: str, reason: str) -> None:
        self.skipped += 1
        names = self.skipped_files.setdefault(reason, [])
        names += [name] if len(names) < _MOST_NAMED else []

    def step(self) -> Step:
        return Step(**{name: getattr(self, name) for name in self.__slots__})


def _former_name(watched: Sequence[_Watched], files: Mapping[str, _File], now: Watch) -> str:
    """Return the former name of a renamed folder: that of its documents or, if it has none yet, of a folder that is
    gone and most of whose documents are here, unchanged and at the same paths. Without one, return its name now.
    """
    named: dict[str, dict[str, Document]] = {}
    for document, folder, path, _ in watched:
        name = document.id.partition("/")[0]
        if folder == str(now.folder):
            return name
        if not Path(folder).is_dir():
            named.setdefault(name, {})[path] = document
    for former, documents in named.items():
        if len(documents) >= _SOME:
            same = sum(_has(files.get(path), each) for path, each in documents.items())
            if 2 * same > len(documents):
                return former
    return now.name


def _has(file: _File | None, document: Document) -> bool:
    try:
        return file is not None and sha256(file.path.read_bytes()).hexdigest() == document.digest
    except OSError:
        return False


def _is_markdown(path: Path) -> bool:
    return path.suffix.lower() in markdown.SUFFIXES


def _is_binary_format(path: Path) -> bool:
    return FORMATS[path.suffix.lower()] in ("pdf", "docx", "html", "mail")


def _is_in(source: str, folders: Collection[str]) -> bool:
    """Return whether a relative path is one of some paths, or in one of them."""
    return any(PurePosixPath(source).is_relative_to(each) for each in folders)


def _walk(
    folder: Path, ignores: Ignores, refuse: Callable[[Path, OSError], None]
) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files of a folder, except hidden and ignored ones, symbolic links, and stores with their notes.

    Args:
        refuse: called with each file or folder that cannot be read, and why.
    """
    if ignores(folder):
        return
    for place, folders, files in os.walk(folder, onerror=lambda error: refuse(Path(error.filename), error)):
        here = Path(place)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED_FOLDERS
            and not (here / name).is_symlink()
            and not is_folder_store(here / name)
            and not ignores(here / name)
        )
        for name in sorted(files):
            path = here / name
            if name.startswith((".", "~$")):
                continue
            try:
                status = path.lstat()
            except FileNotFoundError:  # deleted a moment ago
                continue
            except OSError as error:
                refuse(path, error)
                continue
            if stat.S_ISREG(status.st_mode) and not ignores(path):
                yield path, status


async def watched(watches: Sequence[Watch]) -> AsyncIterator[Step]:
    """Scan the folders forever, after each change or every few seconds; yield the changes of each scan."""
    changed = _changes([each.folder for each in watches])
    while True:
        is_waiting = False
        for each in watches:
            step = await each.step()
            is_waiting |= step.waiting > 0
            yield step
        await (asyncio.sleep(_SETTLED_S) if is_waiting else changed())


def _changes(folders: Sequence[Path]) -> Callable[[], Awaitable[object]]:
    """Return a function that waits for the next change or, without the extra `watch`, for a few seconds."""
    try:
        from watchfiles import awatch
    except ImportError:
        return lambda: asyncio.sleep(_POLL_S)
    events = awatch(*folders, rust_timeout=60_000, yield_on_timeout=True)
    return lambda: anext(events)
