"""Notes: the knowledge of a folder store as Markdown files that people read and edit, in sync with the memory.

A line added by hand becomes a memory, an edited line corrects its memory, and a deleted line forgets it. Whatever else
the memory learns, corrects or forgets is written into the notes. Decision 25 gives the reasons.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ricordo.encoding.validation import removed
from ricordo.errors import InvalidError, NotFoundError, RicordoError
from ricordo.loop_thread import Home
from ricordo.model import Category, Commit, Explanation, Fact, Finding, Node, Page
from ricordo.portability.note_text import (
    Item,
    Note,
    as_tag,
    fields_of,
    mark_of,
    marked,
    note_tags,
    parse,
    says,
    state_of,
    task_state,
    written,
)
from ricordo.portability.vaults import is_of_person
from ricordo.portability.visible_text import says_private
from ricordo.text.analyzer import name_key
from ricordo.text.canonical import means_owner
from ricordo.text.categories import infer_category
from ricordo.text.change import are_companions
from ricordo.text.entity_recognition import entities_named
from ricordo.text.names import folded_relation, relation_named, relation_words
from ricordo.text.people import people_named
from ricordo.text.sentences import plural
from ricordo.text.tasks import CANCELLED, closed_by

try:
    import fcntl
except ImportError:  # pragma: no cover - other systems than POSIX
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)

_STATE, _LOCK, _OWNER, _ASIDE = ".ricordo.jsonl", ".ricordo.lock", ".ricordo.owner", ".aside-"
_LINES = ".ricordo.lines"
"""The marks of the lines of each note. Git tracks it, unlike the state: it tells another clone what was deleted."""
_ATTRIBUTES = ".gitattributes"
_MOST_GONE = 1_000
_TYPES = ("semantic", "procedural", "opinion")
_HEADINGS: Mapping[Category, str] = {
    "preference": "Preferences",
    "identity": "Identity",
    "relationship": "Relationships",
    "knowledge": "Knowledge",
    "event": "Events",
    "task": "Tasks",
    "context": "Context",
    "reflection": "Reflections",
    "observation": "Observations",
}
"""The headings of a note, by the category of the facts below them."""
_POLL_S = 0.5
_BUSY_PART = 10  # looking for changes may take at most a tenth of the time
_SETTLED_NS = 300_000_000
"""A file that was just changed may be half written: an editor empties it first."""
_STALE_NS = 3_000_000_000
"""An editor that saves this soon after us had not read our text: lines missing in its text are not deletions."""
_PATIENCE_S, _TRIES = 3.0, 60
_MOST_LINES = 2_000
_MANY, _LOT = 50, 100
_ALIKE = 0.6
_REMEDY = "make the notes readable and writable for you, or free space on their disk; the next command writes them"


Stamp = tuple[int, int, int]
"""The size, the time of the last change and the inode of a file."""


class Knowledge(Protocol):
    """The methods that notes need of a memory, opened for the owner of the notes."""

    async def remember_many(self, *args: Any, **given: Any) -> Sequence[Node]: ...
    async def correct(self, *args: Any, **given: Any) -> Node: ...
    async def update(self, *args: Any, **given: Any) -> Node: ...
    async def forget(self, *args: Any, **given: Any) -> Node: ...
    async def restore(self, *args: Any, **given: Any) -> Node: ...
    async def get(self, *args: Any, **given: Any) -> Node: ...
    async def explain(self, *args: Any, **given: Any) -> Explanation: ...
    async def list(self, *args: Any, **given: Any) -> Page: ...
    async def log(self, *args: Any, **given: Any) -> Sequence[Commit]: ...
    async def entity(self, *args: Any, **given: Any) -> object: ...
    async def add_entity(self, *args: Any, **given: Any) -> object: ...


class Entry(NamedTuple):
    """A line of a note that belongs to a known memory.

    Attributes:
        said: the hash of the line when it was last read.
        state: the hash of the memory from which the line was written.
        was: the memory's id before the last correction, to which an undo may return.
    """

    mark: str
    id: str
    said: str
    state: str
    was: str = ""


@dataclass(slots=True)
class Seen:
    """A note as it was last read."""

    stamp: Stamp
    entries: list[Entry]


@dataclass(slots=True)
class Writing:
    """Our last write to a note: its time, the entries before it, and the marks of the lines it added."""

    at: int
    before: dict[str, Entry]
    added: frozenset[str]


@dataclass(slots=True)
class Changed:
    """A note that was changed by hand: its stamp, its content, and the memory of each item."""

    stamp: Stamp
    data: bytes
    note: Note
    known: dict[int, Entry] = field(default_factory=dict)
    """By the item's place in the note."""
    refused: list[Entry] = field(default_factory=list)
    """Those of edited lines that cannot be stored: the lines stay as they are, and so do their memories."""


_NewLine = tuple[str, Changed, int]
"""A line that belongs to no memory yet: the name of its note, the note, and the place of the item."""


class Notes:
    """The notes of one folder, kept in sync with one memory."""

    def __init__(self, memory: Knowledge, folder: Path, *, stored: Callable[[str], str]) -> None:
        """`stored` returns a text as it would be stored: without the credentials in it."""
        self._memory = memory
        self._folder = folder
        self._stored = stored
        self._seen: dict[str, Seen] = {}
        self._gone: dict[str, str] = {}  # mark to id, for lines that were deleted
        self._state_stamp: Stamp | None = None
        self._commit = -1
        self._writings: dict[str, Writing] = {}
        self._problems: dict[str, list[str]] = {}
        self._failure = self._told_failure = ""  # of the last sync, and the one that was reported last
        self._conflicts: dict[str, int] = {}
        self._unread: dict[str, Stamp] = {}  # the next process reads these files, too
        self._forgotten: dict[str, tuple[Node, str]] | None = None  # by text, with its mark, in this sync
        self._names: dict[str, bool] = {}  # whether a heading is a known person or thing, in this sync
        self._private: dict[str, bool] = {}  # whether a note excludes itself, in this sync
        self._by_about: dict[str, str] | None = None  # the note about each subject, in this sync
        self._busy = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._home = Home()

    def belongs_to(self, owner: str) -> bool:
        """Return whether the notes belong to an owner: the first one to open them."""
        path, known = self._folder / _OWNER, ""
        try:
            known = path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            pass
        except (OSError, UnicodeDecodeError):
            return not os.access(self._folder, os.R_OK | os.X_OK)  # `sync` reports a folder that cannot be opened
        if known:
            return known == owner
        with contextlib.suppress(OSError):  # `sync` reports it
            path.write_text(owner + "\n", encoding="utf-8")
        return True

    async def start(self) -> None:
        """Read changes made by hand, and keep looking for more. If that fails, the memory works without its notes."""
        try:
            await self.settle()
        except RicordoError as error:
            _log.warning("the notes in %s cannot be synchronized yet: %s", self._folder, error)
        self._task = asyncio.create_task(self._keep_looking(), name="ricordo-notes")

    async def close(self) -> None:
        """Look once more, then stop. If the event loop of `start` has ended, the next opening looks."""
        await self._home.run(self._stop)

    async def _stop(self) -> None:
        if self._task is not None:
            async with self._busy:  # a thread that reads or writes notes would go on after the task is cancelled
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(RicordoError):
            await self.settle()

    async def _keep_looking(self) -> None:
        while True:
            started = time.monotonic()
            try:
                await self.sync()
            except RicordoError as error:  # a full disk or another process: try again soon
                _log.warning("the notes in %s cannot be synchronized yet: %s", self._folder, error)
            await asyncio.sleep(max(_POLL_S, _BUSY_PART * (time.monotonic() - started)))

    async def settle(self) -> None:
        """Synchronize notes and memory, waiting for files that are being written."""
        for _ in range(_TRIES):
            if await self.sync() or self._failure:
                return
            await asyncio.sleep(_PATIENCE_S / _TRIES)

    async def findings(self) -> tuple[Finding, ...]:
        """Return what `doctor` has to say about the notes."""
        for name, problems in (await asyncio.to_thread(self._credentials)).items():
            self._problems.setdefault(name, []).extend(each for each in problems if each not in self._problems[name])
        conflicts = [f"{name} line {line}" for name, line in sorted(self._conflicts.items()) if line]
        problems = [f"{name}: {each}" for name, listed in sorted(self._problems.items()) for each in listed]
        if self._failure:
            return (Finding(check="notes", ok=False, detail=self._failure, remedy=_REMEDY),)
        detail = plural(len(self._seen), "note")
        if conflicts:
            detail = f"git conflicts in {', '.join(conflicts[:5])}; these notes are not read or written meanwhile"
        elif problems:
            detail = f"not used: {'; '.join(problems[:5])}"
        remedy = "keep the lines you want in an editor, and delete the lines of <<<<<<<, ======= and >>>>>>>"
        if not conflicts and self._conflicts:
            remedy = "make these notes readable for you, and save them as UTF-8 in an editor"
        is_whole = not self._conflicts
        return (Finding(check="notes", ok=is_whole, detail=detail, remedy="" if is_whole else remedy),)

    def _credentials(self) -> dict[str, list[str]]:
        """Return what an earlier process refused: the lines with a credential that belong to no memory."""
        found: dict[str, list[str]] = {}
        for name, seen in self._seen.items():
            taken = {entry.said for entry in seen.entries}
            with contextlib.suppress(UnicodeDecodeError, OSError):
                for item in _parsed(_bytes_of(self._folder / name) or b"").items:
                    if item.hash not in taken and (problem := self._refusal(item)):
                        found.setdefault(name, []).append(f"line {item.first + 1}: {problem}")
        return found

    async def after_erasure(self) -> str:
        """Remove erased text from the notes, and from the record of what they contain. Return why it failed, or ""."""
        await self.settle()
        async with self._busy:
            try:
                await asyncio.to_thread(self._compact)
            except OSError as error:
                self._fail(error)
        return self._failure

    async def sync(self) -> bool:
        """Apply manual changes to the memory, then write its own changes to the notes. Return whether both agree.

        If notes cannot be read or written, that is reported once, and the memory works without them.
        """
        async with self._busy:
            self._failure, is_done = "", False
            try:
                with _locked(self._folder / _LOCK) as is_ours:
                    is_done = is_ours and await self._sync()
            except OSError as error:
                self._fail(error)
            if self._failure and self._failure != self._told_failure:
                _log.warning("%s; the memory itself is stored. To mend it, %s", self._failure, _REMEDY)
            self._told_failure = self._failure
            return is_done and not self._failure

    def _fail(self, error: OSError) -> None:
        """Note why notes cannot be read or written; the first reason counts."""
        about = f": {Path(error.filename).name.removeprefix('.new-')}" if error.filename else ""
        reason = f"the notes in {self._folder} are not in step{about}: {error.strerror or error}"
        self._failure = self._failure or reason

    async def _sync(self) -> bool:
        await asyncio.to_thread(self._recover)
        self._load()
        stamps = await asyncio.to_thread(self._stamps)
        commits = await self._memory.log(1)
        commit = commits[0].seq if commits else 0
        for name in self._conflicts.keys() - stamps.keys():
            del self._conflicts[name], self._unread[name]
        altered = {name: at for name, at in stamps.items() if at not in (self._stamp(name), self._unread.get(name))}
        gone = [name for name in self._seen if name not in stamps]
        if not altered and not gone and commit == self._commit:
            return True
        read = await asyncio.to_thread(self._read, altered)
        waits = len(read) < len(altered)
        self._commit = -1  # until all notes are written
        self._names, self._private, self._forgotten, self._by_about = {}, {}, None, None
        nodes = await self._nodes()
        if not stamps and self._seen:  # the folder was moved or not mounted, so nothing is forgotten
            _log.warning("%s contains no notes any more; they are written again", self._folder)
            self._seen, gone = {}, []
        if read or gone:
            await self._take_over(read, [] if waits else gone, nodes)
            commits = await self._memory.log(1)
            commit = commits[0].seq if commits else 0
            nodes = await self._nodes()
        is_whole = await self._write(read, nodes)
        if is_whole and not waits:
            await asyncio.to_thread(self._record_lines)
        self._commit = commit if is_whole else -1
        return is_whole and not waits

    # what is on disk

    def _stamp(self, name: str) -> Stamp | None:
        return self._seen[name].stamp if name in self._seen else None

    def _stamps(self) -> dict[str, Stamp]:
        """Return the stamp of each note. Those known in a folder that cannot be read count as unchanged."""
        found: dict[str, Stamp] = {}

        def unread(error: OSError) -> None:
            self._fail(error)
            within = Path(error.filename).relative_to(self._folder)
            found.update((name, seen.stamp) for name, seen in self._seen.items() if Path(name).is_relative_to(within))

        for place, folders, files in os.walk(self._folder, onerror=unread):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for path in (Path(place) / name for name in files if name.endswith(".md") and not name.startswith(".")):
                if (stamp := _stamp_of(path)) is not None:
                    found[path.relative_to(self._folder).as_posix()] = stamp
        return found

    def _read(self, altered: Mapping[str, Stamp]) -> dict[str, Changed]:
        """Return the changed notes, without those that may still be half written."""
        found = {}
        for name, stamp in altered.items():
            for each in (self._conflicts, self._unread, self._problems):
                each.pop(name, None)
            if 0 <= time.time_ns() - stamp[1] < _SETTLED_NS:
                continue
            try:
                data = (self._folder / name).read_bytes()
                note = _parsed(data)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._refuse(name, f"it cannot be read, so it is not written either: {error.strerror or error}")
                data, note = b"", Note(lines=(), items=(), conflict=0)
            except UnicodeDecodeError:
                self._refuse(name, "it is not UTF-8, so it is neither read nor written: save it as UTF-8")
                note = Note(lines=(), items=(), conflict=0)
            if _stamp_of(self._folder / name) == stamp:
                if note.conflict is not None:
                    self._conflicts[name], self._unread[name] = note.conflict, stamp
                found[name] = Changed(stamp, data, note)
        return found

    def _load(self) -> None:
        """Read the state of the notes again, if another process has written it since."""
        path = self._folder / _STATE
        stamp = _stamp_of(path)
        if stamp == self._state_stamp:
            return
        self._state_stamp, self._seen, self._gone = stamp, {}, {}
        for raw in path.read_bytes().split(b"\n") if stamp else ():
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):  # torn or damaged
                line = json.loads(raw)
                if "gone" in line:
                    self._gone.update(line["gone"])
                elif line["stamp"] is None:
                    self._seen.pop(line["file"], None)
                else:
                    entries = [Entry(*each) for each in line["lines"]]
                    self._seen[line["file"]] = Seen(tuple(line["stamp"]), entries)
        self._commit = -1

    def _note(self, name: str, seen: Seen | None) -> None:
        """Record the state of a file that was read, durably, before anything is concluded from it."""
        if seen is None:
            self._seen.pop(name, None)
        else:
            self._seen[name] = seen
        self._append(_state_line(name, seen))

    def _append(self, line: Mapping[str, Any]) -> None:
        path = self._folder / _STATE
        if path.exists() and path.stat().st_size > 1 << 20 and path.stat().st_size > 4 * self._size():
            self._compact()
        with path.open("ab") as file:
            file.write(b"\n" + json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self._state_stamp = _stamp_of(path)

    def _size(self) -> int:
        return 200 * sum(1 + len(seen.entries) for seen in self._seen.values())

    def _compact(self) -> None:
        lines: list[Mapping[str, Any]] = [{"gone": self._gone}]
        lines += (_state_line(name, seen) for name, seen in self._seen.items())
        fresh = self._folder / f"{_STATE}.new"
        fresh.write_bytes(b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in lines))
        fresh.replace(self._folder / _STATE)

    def _recorded_lines(self) -> dict[str, list[str]]:
        """Return the marks of the lines that the notes of a git commit had, by note; nothing without git.

        A commit brings the notes together with this record, so that a line that only the record has was deleted.
        Programs that copy file by file may bring the record before the note.
        """
        here = self._folder.resolve()
        found: dict[str, list[str]] = {}
        if any((each / ".git").exists() for each in (here, *here.parents)):
            for raw in (_bytes_of(self._folder / _LINES) or b"").split(b"\n"):
                with contextlib.suppress(ValueError, TypeError):  # such as the marks of a conflict: both sides count
                    name, mark = json.loads(raw)
                    found.setdefault(name, []).append(mark)
        return found

    def _record_lines(self) -> None:
        """Record the lines of the notes for other clones, after the notes are on disk."""
        pairs = sorted((name, entry.mark) for name, seen in self._seen.items() for entry in seen.entries)
        data = b"".join(json.dumps(pair, ensure_ascii=False).encode() + b"\n" for pair in dict.fromkeys(pairs))
        path, attributes = self._folder / _LINES, self._folder / _ATTRIBUTES
        if data == (_bytes_of(path) or b""):
            return
        if not attributes.exists():
            attributes.write_text(f"{_LINES} merge=union\n", encoding="utf-8")
        fresh = self._folder / f".new-{_LINES}"
        fresh.write_bytes(data)
        fresh.replace(path)

    # from the notes into the memory

    async def _nodes(self) -> dict[str, Node]:
        """Return all live knowledge by id."""
        found: dict[str, Node] = {}
        for kind in _TYPES:
            cursor = None
            while True:
                page = await self._memory.list(type=kind, limit=1_000, cursor=cursor)
                found.update((node.id, node) for node in page.nodes if not node.chat and node.category != "summary")
                if (cursor := page.cursor) is None:
                    break
        return found

    async def _take_over(self, read: Mapping[str, Changed], gone: Sequence[str], nodes: Mapping[str, Node]) -> None:
        """Store lines added by hand as memories, edited lines as corrections, and forget memories of deleted lines."""
        known = {entry.mark: entry for seen in self._seen.values() for entry in seen.entries}
        by_mark = {mark_of(id): id for id in nodes}
        elsewhere = [e.mark for name, seen in self._seen.items() if name not in {*read, *gone} for e in seen.entries]
        present = Counter(elsewhere)
        for name, changed in read.items():
            if changed.note.conflict is not None:
                self._hold(name, changed.note.disputed, by_mark)
                present.update(entry.mark for entry in self._entries(name))
            present.update(item.mark for item in changed.note.items if item.mark and changed.note.is_ours)
        recorded = await asyncio.to_thread(self._recorded_lines)
        for name, changed in read.items():
            if _is_same_note(changed, recorded.get(name, ())):
                self._hold(name, [mark for mark in recorded[name] if not present[mark]], by_mark)
        missing = {
            name: [entry for entry in self._entries(name) if not present[entry.mark] and entry.id in nodes]
            for name in [*read, *gone]
        }
        fresh: list[_NewLine] = []
        ours = {name: each for name, each in read.items() if each.note.conflict is None and each.note.is_ours}
        said = {mark: entry.said for mark, entry in known.items()}
        items = [item for changed in ours.values() for item in changed.note.items if item.mark]
        taken = {item.mark for item in items if item.hash == said.get(item.mark or "")}.union(elsewhere)
        for name, changed in ours.items():
            fresh += await self._take_over_note(name, changed, known, by_mark, nodes, present, missing, taken)
        await self._take_new(fresh)
        for name in [*read, *gone]:
            is_kept = name in read and read[name].data and read[name].note.is_ours
            unread = self._unread_writing(name) if is_kept else None
            for entry in self._entries(name):
                if present[entry.mark] or entry.id not in nodes:
                    continue
                if unread is not None and entry.mark in unread.added:
                    continue  # it is written again
                self._gone[entry.mark] = entry.id
                self._append({"gone": {entry.mark: entry.id}})
                with contextlib.suppress(NotFoundError):
                    await self._memory.forget(entry.id, reason=f"deleted from {name}")
        for name in gone:
            self._note(name, None)

    def _hold(self, name: str, marks: Sequence[str], by_mark: Mapping[str, str]) -> None:
        """Record that a note has had lines that this clone did not see: of both sides of a git conflict, or of another
        clone. The memories whose lines are gone afterwards are forgotten.
        """
        entries = self._entries(name)
        known = {entry.mark for entry in entries}
        more = [Entry(mark, by_mark[mark], "", "") for mark in dict.fromkeys(marks) if mark in by_mark.keys() - known]
        if more:
            self._note(name, Seen((0, 0, 0), [*entries, *more]))

    def _unread_writing(self, name: str) -> Writing | None:
        """Return our last write to a note, if an editor saved the note so soon after it that it had not read it."""
        writing, stamp = self._writings.get(name), _stamp_of(self._folder / name)
        return writing if writing is not None and stamp is not None and stamp[1] - writing.at < _STALE_NS else None

    def _entries(self, name: str) -> list[Entry]:
        return self._seen[name].entries if name in self._seen else []

    async def _take_over_note(
        self,
        name: str,
        changed: Changed,
        known: Mapping[str, Entry],
        by_mark: Mapping[str, str],
        nodes: Mapping[str, Node],
        present: Counter[str],
        missing: Mapping[str, list[Entry]],
        taken: set[str | None],
    ) -> list[_NewLine]:
        """Take over the edited lines of a note; return its new lines. `taken` are the marks of lines that are as they
        were: an edited copy of such a line is a separate fact.
        """
        unread = self._unread_writing(name)
        fresh: list[_NewLine] = []
        for place, item in enumerate(changed.note.items):
            entry = known.get(item.mark or "")
            if entry is None and item.mark and (id := by_mark.get(item.mark) or self._gone.get(item.mark)):
                entry = Entry(item.mark, id, "", "")
            if entry is not None and present[item.mark or ""] > 1 and item.hash != entry.said:
                entry = None if item.mark in taken else entry
                taken.add(item.mark)  # of several edited copies, the first one is the correction
            elif entry is None and (entry := _same(item, name, missing, nodes)) is not None:
                present[entry.mark] += 1
            elif entry is None:
                entry = await self._typed_again(item)
            before = unread.before.get(item.mark or "") if unread is not None else None
            was_ours = before is not None and item.hash == before.said
            if entry is None:
                fresh.append((name, changed, place))
                continue
            try:
                now = await self._taken(name, changed.note, item, entry, nodes, is_untouched=was_ours)
            except RicordoError as error:
                self._refuse(name, f"line {item.first + 1}: {error.message}")
                changed.refused.append(entry)
                continue
            if now is not None:
                changed.known[place] = now
        return fresh

    def _refuse(self, name: str, problem: str) -> None:
        """Report what cannot be stored, once for each version of a note. `doctor` repeats it."""
        self._problems.setdefault(name, []).append(problem)
        _log.warning("%s: %s", self._folder / name, problem)

    def _check_open(self, item: Item) -> None:
        """Raise InvalidError if a line has a credential: it would be replaced in a file that is its owner's."""
        if problem := self._refusal(item):
            raise InvalidError(problem)

    def _refusal(self, item: Item) -> str:
        """Return why a line is not stored; "" if it may be."""
        try:
            kinds = removed(item.text, self._stored(item.text))
        except InvalidError as error:
            return error.message
        return f"it has a credential ({kinds}), so it is not stored, and stays in the note as it is" if kinds else ""

    async def _typed_again(self, item: Item) -> Entry | None:
        """Return the entry of a line that was deleted earlier and says the same."""
        if self._forgotten is None:
            self._forgotten = {}
            for mark, id in [*self._gone.items()][-_MOST_GONE:]:
                with contextlib.suppress(NotFoundError):
                    node = await self._memory.get(id)
                    if node.closed_reason == "forgotten":
                        self._forgotten[" ".join(node.content.split())] = node, mark
        text = " ".join(item.text.split())
        if text not in self._forgotten or not says(item, self._forgotten[text][0]):
            return None
        node, mark = self._forgotten.pop(text)
        return Entry(mark, node.id, "", "")

    async def _take_new(self, fresh: Sequence[_NewLine]) -> None:
        """Store new lines: a few as one commit each, so that each can be undone; many in batches."""
        size = _LOT if len(fresh) > _MANY else 1
        for start in range(0, len(fresh), size):
            lot = fresh[start : start + size]
            try:
                await self._take_lot(lot)
            except RicordoError:  # if one line is refused, try each by itself
                for each in lot:
                    try:
                        await self._take_lot([each])
                    except RicordoError as error:
                        name, changed, place = each
                        self._refuse(name, f"line {changed.note.items[place].first + 1}: {error.message}")

    async def _take_lot(self, lot: Sequence[_NewLine]) -> None:
        facts = [await self._fact(name, changed.note, changed.note.items[place]) for name, changed, place in lot]
        stored = await self._memory.remember_many(facts)
        for (_, changed, place), node in zip(lot, stored, strict=True):
            if node.id:
                item = changed.note.items[place]
                changed.known[place] = Entry(mark_of(node.id), node.id, item.hash, "")

    async def _taken(
        self, name: str, note: Note, item: Item, entry: Entry, nodes: Mapping[str, Node], *, is_untouched: bool
    ) -> Entry | None:
        """Make the memory say what a line says. Return the line's entry; None if it belongs to no memory."""
        if item.hash == entry.said or is_untouched:
            return Entry(entry.mark, entry.id, item.hash, entry.state, entry.was)
        found = nodes.get(entry.id) or await self._last(entry.id)
        if found is None or not found.is_live:
            if found is not None and says(item, found):  # the line was put back
                node = await self._memory.restore(found.id)
                self._gone.pop(entry.mark, None)
                return Entry(entry.mark, node.id, item.hash, state_of(node))
            (node,) = await self._memory.remember_many([await self._fact(name, note, item)])
            return Entry(mark_of(node.id), node.id, item.hash, "") if node.id else None
        if says(item, found) and not _new_links(item, found):
            return Entry(entry.mark, found.id, item.hash, state_of(found), entry.was)
        fresh = await self._edited(item, found)
        return Entry(entry.mark, fresh.id, item.hash, "", found.id if fresh.id != found.id else entry.was)

    async def _edited(self, item: Item, node: Node) -> Node:
        """Correct a memory by an edited line; a changed box or tag, or a new link, updates it in place."""
        fresh = node
        if " ".join(item.text.split()) != " ".join(node.content.split()) and item.text:
            self._check_open(item)
            fresh = await self._memory.correct(node.id, item.text)
        kept = {as_tag(tag).casefold(): tag for tag in node.tags}
        tags = [kept.get(tag.casefold(), tag) for tag in item.tags]
        tags += [kept[tag] for tag in kept if tag in item.of_note - item.own_tags]
        if {*tags} != {*fresh.tags}:
            fresh = await self._memory.update(fresh.id, tags=tags)
        if item.box is not None and item.state != task_state(fresh.attributes):
            ended = closed_by(item.box)
            fresh = await self._memory.update(fresh.id, done="done" in ended)
            if CANCELLED in ended:
                fresh = await self._memory.update(fresh.id, attributes={**fresh.attributes, **ended})
        if links := _new_links(item, fresh):
            fresh = await self._memory.update(fresh.id, about=links)
        return fresh

    async def _fact(self, name: str, note: Note, item: Item) -> Fact:
        self._check_open(item)
        category = "task" if item.box is not None else infer_category(item.text)
        if category == "knowledge":  # the text does not tell the category; the heading may, but a task has a box
            stated = (key for key, title in _HEADINGS.items() if title in item.headings[:1] and key != "task")
            category = next(stated, category)
        subjects = await self._subjects(name, note, item)
        if item.about:  # "Plays the [[Cello]]" and "Studies with [[Giulia]]" are still about the person of the note
            said = item.text.casefold()
            subjects = tuple(sorted({*item.about, *subjects}, key=lambda each: said.find(each.casefold())))
        tags = [*item.tags, *note.fields.get("tags", ())]
        return Fact(
            content=item.text,
            about=subjects,
            tags=list(dict.fromkeys(tags)),
            category=category,
            attributes=closed_by(item.box or " ") or None,
        )

    async def _subjects(self, name: str, note: Note, item: Item) -> tuple[str, ...]:
        """Return the subjects of a line by its place: the closest known heading above it, the front matter, or the name
        of the note. If the line names other people than companions, return () instead.
        """
        people = [each.name for each in entities_named([item.text]) if each.type == "person"]
        people += [person.name for person in people_named(item.text)]
        named = set() if are_companions(item.text, people) else {name_key(each) for each in people}
        headings = [each for each in item.headings if each and each not in _HEADINGS.values()]
        stated, stem = note.fields.get("about", ()), Path(name).stem
        if is_of_person(name, map(str.lower, note.fields.get("tags", ()))):
            await self._introduce(stem)
        for subjects in [*((each,) for each in headings), stated, (stem,)]:
            known = [_without_relation(each) for each in subjects if subjects is stated or await self._is_known(each)]
            if known:
                return tuple(known) if not named or named & {name_key(each) for each in known} else ()
        return ()

    async def _introduce(self, name: str) -> None:
        """Make the person of a note known."""
        if not await self._is_known(name) and not means_owner(name):
            with contextlib.suppress(RicordoError):
                await self._memory.add_entity(name)
                self._names[name] = True

    async def _is_known(self, name: str) -> bool:
        """Return whether a heading is a known person or thing. "Oscar (brother)" makes a person known."""
        if name not in self._names:
            try:
                if relation := _relation_in(name):
                    await self._memory.add_entity(_without_relation(name), relation=relation)
                await self._memory.entity(_without_relation(name))
                self._names[name] = not means_owner(name)  # a heading "About me" is nobody's name
            except RicordoError:
                self._names[name] = False
        return self._names[name]

    async def _last(self, id: str) -> Node | None:
        """Return the memory with an id, or the one that replaced it; None if it was undone or erased."""
        try:
            node = await self._memory.get(id)
            for _ in range(100):
                if node.closed_reason != "superseded":
                    return node
                later = (await self._memory.explain(node.id)).superseded_by
                if not later:
                    return node
                node = later[-1]
        except NotFoundError:
            return None
        return node

    # from the memory into the notes

    async def _write(self, read: Mapping[str, Changed], nodes: Mapping[str, Node]) -> bool:
        """Write the state of the memory into the notes. Return whether all could be written."""
        placed = {each.id for changed in read.values() for each in (*changed.known.values(), *changed.refused)}
        held = set(self._conflicts)
        there = [seen for name, seen in self._seen.items() if name not in read or name in held]
        placed |= {entry.id for seen in there for entry in seen.entries}
        is_whole = True
        stale: dict[str, list[Entry]] = {}
        for name, seen in self._seen.items():
            if name not in read and name not in held:
                stale[name] = [e for e in seen.entries if e.id not in nodes or state_of(nodes[e.id]) != e.state]
        for name in [*read, *(name for name, entries in stale.items() if entries)]:
            if name in held:
                continue
            try:
                is_whole &= await self._rewrite(name, read.get(name), nodes, placed)
            except OSError as error:  # other notes are written all the same
                self._fail(error)
        fresh = [node for node in nodes.values() if node.id not in placed]
        for name, group in (await asyncio.to_thread(self._places, fresh)).items():
            try:
                is_whole &= await asyncio.to_thread(self._add, name, group)
            except OSError as error:
                self._fail(error)
        return is_whole and not self._failure

    async def _rewrite(self, name: str, changed: Changed | None, nodes: Mapping[str, Node], placed: set[str]) -> bool:
        """Rewrite the lines of a note whose memories have changed, and keep every other line as it is."""
        was_read = changed is None
        if changed is None:
            data = await asyncio.to_thread(_bytes_of, self._folder / name)
            stamp = _stamp_of(self._folder / name)
            if data is None or stamp is None or stamp != self._stamp(name):
                return False
            changed = Changed(stamp, data, _parsed(data))
            by_mark = {entry.mark: entry for entry in self._entries(name)}
            items = enumerate(changed.note.items)
            changed.known = {at: by_mark[item.mark] for at, item in items if item.mark and item.mark in by_mark}
        lines: list[str | None] = list(changed.note.lines)
        entries = [*changed.refused]
        for at, entry in changed.known.items():
            item = changed.note.items[at]
            node = nodes.get(entry.id) or await self._replacement(entry, nodes, placed)
            if was_read and entry.said and item.hash != entry.said:  # it was refused, and stays as it is
                if node is not None:
                    placed.add(node.id)
                    entries.append(Entry(entry.mark, node.id, entry.said, state_of(node), entry.was))
                continue
            if node is None:
                lines[item.first : item.end] = [None] * (item.end - item.first)
                continue
            placed.add(node.id)
            mark = mark_of(node.id)
            state = state_of(node)
            hidden = (line.strip() for line in changed.note.hidden[item.first : item.end])
            comments = "".join(f" {each}" for each in hidden if each)
            if not says(item, node):
                elsewhere = item.of_note - item.own_tags
                prefix, stem = item.prefix or "- ", Path(name).stem
                text = written(node, prefix=prefix, stem=stem, without=elsewhere, block=item.block)
            elif item.mark != mark:
                text = marked("\n".join(changed.note.shown[item.first : item.end]), mark)
            else:
                entries.append(Entry(mark, node.id, item.hash, state, entry.was))
                continue
            (fresh,) = parse(text).items or (item,)
            lines[item.first : item.end] = [text + comments] + [None] * (item.end - item.first - 1)
            entries.append(Entry(mark, node.id, fresh.hash, state, entry.was))
        whole = None
        if lines != list(changed.note.lines):
            whole = "\n".join(line for line in lines if line is not None)
        return await asyncio.to_thread(self._replace, name, changed.data, whole, entries, stamp=changed.stamp)

    async def _replacement(self, entry: Entry, nodes: Mapping[str, Node], placed: set[str]) -> Node | None:
        """Return the memory that a line now belongs to: the one that replaced its own, or one restored by an undo."""
        last = await self._last(entry.id)
        found = nodes.get(last.id if last is not None else entry.was)
        return None if found is None or found.id in placed else found

    def _places(self, fresh: Sequence[Node]) -> dict[str, list[Node]]:
        """Return new memories by the name of their note, which is the first subject, or "Me" for the owner."""
        found: dict[str, list[Node]] = {}
        for node in sorted(fresh, key=lambda node: (node.event_time, node.id)):
            stem = re.sub(r'[\\/:*?"<>|#^\[\]\x00-\x1f.\s]+', " ", _subject(node)).strip()[:80]
            stem, number = stem or "Me", 1
            if f"{stem}.md" not in self._seen:
                stem = self._note_about(_subject(node)) or stem
            name = f"{stem}.md"
            while len(self._entries(name)) + len(found.get(name, ())) >= _MOST_LINES or self._is_private(name):
                number += 1
                name = f"{stem} {number}.md"
            if name not in self._conflicts:  # else it is written once the conflict is resolved
                found.setdefault(name, []).append(node)
        return found

    def _note_about(self, subject: str) -> str:
        """Return the path, without its ending, of a renamed note whose front matter says that it is about a subject, or
        of a note with its name in another folder; "" if there is none.
        """
        if self._by_about is None:
            self._by_about = {}
            for name in sorted(self._seen):
                data = _bytes_of(self._folder / name) or b""
                about = fields_of(data.decode("utf-8-sig", "replace").replace("\r\n", "\n")).get("about", ())
                if len(about) == 1:
                    self._by_about.setdefault(name_key(about[0]), name.removesuffix(".md"))
            for name in sorted(self._seen):
                self._by_about.setdefault(name_key(Path(name).stem), name.removesuffix(".md"))
        return self._by_about.get(name_key(subject), "") if subject else ""

    def _is_private(self, name: str) -> bool:
        """Return whether a note excludes itself from the memory. Then nothing is written into it."""
        if name not in self._private:
            data = _bytes_of(self._folder / name) or b""
            self._private[name] = says_private(fields_of(data.decode("utf-8-sig", "replace")))
        return self._private[name]

    def _add(self, name: str, nodes: Sequence[Node]) -> bool:
        """Write new memories into a note, each below the heading of its category."""
        path = self._folder / name
        data = _bytes_of(path)
        if data is not None and (name not in self._seen or _stamp_of(path) != self._stamp(name)):
            return False  # it was changed meanwhile: the next sync reads it first
        stem = Path(name).stem
        text = (data or b"").decode("utf-8", "replace").replace("\r\n", "\n")
        lines = text.rstrip("\n").split("\n") if text.strip() else _beginning(stem, nodes)
        entries, fields = list(self._entries(name)), fields_of("\n".join(lines))
        for node in nodes:
            line = written(node, stem=stem, without=note_tags(fields))
            lines = _inserted(lines, f"## {_HEADINGS[node.category or 'knowledge']}", line)
            (item,) = parse(line).items or (None,)
            entries.append(Entry(mark_of(node.id), node.id, item.hash if item else "", state_of(node)))
        added = frozenset(mark_of(node.id) for node in nodes)
        return self._replace(name, data, "\n".join(lines) + "\n", entries, added=added)

    def _replace(
        self,
        name: str,
        before: bytes | None,
        text: str | None,
        entries: list[Entry],
        *,
        stamp: Stamp | None = None,
        added: frozenset[str] = frozenset(),
    ) -> bool:
        """Replace a note if its content is still what was read, and record its entries once it is on disk.

        Args:
            text: the new text; None if it does not change.
            stamp: the stamp with which `before` was read. What an editor saves while this writes has another one, so
                that the next sync reads it.
            added: the marks of lines that no editor can have read before.
        """
        path = self._folder / name
        data = before if text is None else text.encode("utf-8", "replace")
        if text is not None and data is not None and before is not None and b"\r\n" in before:
            data = data.replace(b"\n", b"\r\n")
        if data != before and data is not None:
            if (stamp := _swap(path, before, data)) is None:
                return False
            old = {entry.mark: entry for entry in self._entries(name)}
            self._writings[name] = Writing(time.time_ns(), old, added)
        self._note(name, Seen(stamp or (0, 0, 0), entries))
        return True

    def _recover(self) -> None:
        """Restore files that a killed process had moved aside."""
        for aside in self._folder.rglob(f"{_ASIDE}*"):
            path = aside.with_name(aside.name.removeprefix(_ASIDE))
            if not path.exists():
                aside.rename(path)
            else:
                aside.unlink()


def _is_same_note(changed: Changed, marks: Sequence[str]) -> bool:
    """Return whether a note is a version of the one that had the lines with these marks: it still has one of them, or
    its lines are gone and a heading is left. Otherwise, another text has its name, such as a pointer of Git LFS.
    """
    left = any(item.mark in marks for item in changed.note.items)
    is_emptied = not changed.note.items and bool(changed.data.strip())
    return bool(marks) and changed.note.conflict is None and (left or is_emptied)


def _same(item: Item, name: str, missing: Mapping[str, list[Entry]], nodes: Mapping[str, Node]) -> Entry | None:
    """Return, and remove, the missing entry that a line without a mark belongs to: the line lost its mark, or was
    typed again.
    """
    for entries in missing.values():
        for entry in entries:
            if item.hash == entry.said:
                entries.remove(entry)
                return entry
    own = missing[name]
    best = max(own, key=lambda entry: _likeness(item, nodes[entry.id]), default=None)
    if best is None or _likeness(item, nodes[best.id]) < _ALIKE:
        return None
    own.remove(best)
    return best


def _likeness(item: Item, node: Node) -> float:
    return SequenceMatcher(None, item.text[:500], node.content[:500], autojunk=False).ratio()


def _new_links(item: Item, node: Node) -> list[str]:
    """Return the names that a line links to, and under which its memory is not filed."""
    known = {name.casefold() for name in node.about}
    return [name for name in item.about if name.casefold() not in known]


def _subject(node: Node) -> str:
    """Return the person or thing in whose note a memory belongs: the one with which it begins, or the first one."""
    text = node.content.casefold()
    return next((each for each in node.about if text.startswith(each.casefold())), next(iter(node.about), ""))


_RELATED = re.compile(r"([^(),]*[^(),\s])\s*(?:,\s+([^(),]+)|\(([^(),]+)\))\s*")


def _relation_in(heading: str) -> str | None:
    """Return the relation that a heading gives its person: "brother" for "Oscar (brother)" and "Oscar, my brother"."""
    if not (found := _RELATED.fullmatch(heading)):
        return None
    stated = found[2] or found[3]
    return relation_named(stated) or relation_words().get(folded_relation(stated))


def _without_relation(heading: str) -> str:
    found = _RELATED.fullmatch(heading) if _relation_in(heading) else None
    return found[1] if found else heading


def _beginning(stem: str, nodes: Sequence[Node]) -> list[str]:
    """Return the first lines of a new note."""
    about = next(filter(None, map(_subject, nodes)), "")
    front = ["---", f'about: "{about}"', "---"] if about else []
    return [*front, f"# {about or stem}"]


def _inserted(lines: list[str], heading: str, text: str) -> list[str]:
    """Return the lines with `text` added at the end of a heading's section; a missing heading is added."""
    if heading not in lines:
        return [*lines, "", heading, text]
    at = lines.index(heading) + 1
    while at < len(lines) and not lines[at].startswith("#"):
        at += 1
    while not lines[at - 1].strip():
        at -= 1
    return [*lines[:at], text, *lines[at:]]


def _parsed(data: bytes) -> Note:
    return parse(data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n"))


def _state_line(name: str, seen: Seen | None) -> Mapping[str, Any]:
    """Return the line that records a note as it was read; None if it is gone."""
    return {"file": name, "stamp": seen and seen.stamp, "lines": seen and seen.entries}


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _stamp_of(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _swap(path: Path, before: bytes | None, data: bytes) -> Stamp | None:
    """Replace a file if it still holds what was read, so that nothing an editor saves meanwhile is lost.

    Returns:
        The stamp of what was written; None if the file was not replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh, aside = path.with_name(f".new-{path.name}"), path.with_name(f"{_ASIDE}{path.name}")
    fresh.unlink(missing_ok=True)
    mode = path.stat().st_mode & 0o777 if before is not None and path.exists() else 0o600
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    stamp = _stamp_of(fresh)
    try:
        if before is not None:
            path.rename(aside)
            if aside.read_bytes() != before:
                with contextlib.suppress(FileExistsError):  # an editor has written a newer file meanwhile
                    os.link(aside, path)
                return None
        try:
            os.link(fresh, path)  # unlike a rename, it does not replace what an editor has just written
        except FileExistsError:
            return None
        return stamp
    except FileNotFoundError:  # it was deleted meanwhile
        return None
    finally:
        aside.unlink(missing_ok=True)
        fresh.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Yield whether this process may work on the notes; another process may hold the lock."""
    if fcntl is None or not path.parent.is_dir():  # pragma: no cover - other systems than POSIX
        yield path.parent.is_dir()
        return
    if path.is_dir():  # nothing is lost: a lock has no content
        path.rename(path.with_name(f"{_ASIDE}{path.name}-{time.time_ns()}"))
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
