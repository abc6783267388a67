"""The store: one state in memory. A reader is given the state as it is; a writer a copy that becomes the state."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from ricordo.errors import InvalidError, UnavailableError
from ricordo.model import BackupFile, Change, Finding, Reason, Report, Scope
from ricordo.storage.membership import check_change
from ricordo.storage.values import NOTHING_FORESEEN, Cleaned, Foreseen, When
from tests.contract.reference.apply import apply, visible
from tests.contract.reference.snapshot import PastSnapshot, Snapshot
from tests.contract.reference.tables import State

T = TypeVar("T")
Decide = Callable[[Snapshot], tuple[Change, T]]
Links = Callable[[Snapshot, int, Sequence[int]], Iterable[tuple[int, int]]]

_log = logging.getLogger("ricordo.reference")


class _Kept:
    """What outlives an opened store: its state, and who may write."""

    def __init__(self) -> None:
        self.state = State()
        self.lock = threading.RLock()


_kept: dict[str, _Kept] = {}


def forget_all() -> None:
    """Forget every store, as if its files were deleted."""
    _kept.clear()


class ReferenceStore:
    """A store in memory, by name. Closed and opened again it is what it was, for as long as the process lives."""

    erases_in_one_commit = True
    has_plain_files = False
    reads_at_once = False

    def __init__(self, location: str) -> None:
        """Open the store of a location such as "reference://name", creating it if there is none."""
        self.path = Path(f"{location.partition('://')[2]}.reference")
        self._kept = _kept.setdefault(location, _Kept())
        self._is_open = True
        self._failures = 0

    def _check(self) -> None:
        if not self._is_open:
            raise UnavailableError("the store is closed", hint="open it again")

    # writing

    def holds_turns(self, scope: Scope) -> bool:
        return True

    def seen_by(self, scope: Scope) -> ReferenceStore:
        return self

    def check_writable(self) -> None:
        """Do nothing: it can be written."""

    async def write(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> T:
        self._check()
        return self._commit(decide, scope, reason, at)

    def write_nowait(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> None:
        self._check()
        try:
            self._commit(decide, scope, reason, at)
        except Exception as error:  # noqa: BLE001 - nobody waits for it
            self._failures += 1
            _log.warning("a write failed: %s", error)

    def _commit(self, decide: Decide[T], scope: Scope, reason: Reason, at: datetime) -> T:
        def work(snapshot: Snapshot) -> T:
            change, result = decide(snapshot)
            if not change.is_empty:
                check_change(snapshot, change, scope)
                apply(snapshot.state, change, scope=scope, reason=reason, at=at)
            return result

        return self._written(work)

    async def derive(self, work: Callable[[Snapshot], T]) -> T:
        self._check()
        return self._written(work)

    def _written(self, work: Callable[[Snapshot], T]) -> T:
        """All of it becomes the state, or nothing."""
        with self._kept.lock:
            draft = self._kept.state.copy()
            result = work(Snapshot(draft))
            self._kept.state = draft
            return result

    # reading

    async def read(self, ask: Callable[[Snapshot], T], foreseen: Foreseen = NOTHING_FORESEEN) -> T:
        self._check()
        return ask(Snapshot(self._kept.state))

    async def look(self, ask: Callable[[Snapshot], T]) -> T:
        return await self.read(ask)

    async def read_past(self, ask: Callable[[PastSnapshot], T], *, scope: Scope, when: When, links: Links) -> T:
        self._check()
        today = self._kept.state
        commit, at = _commit_of(today, scope, when)
        past = today.at(commit)
        snapshot = PastSnapshot(past, today=today, commit=commit, at=at)
        for space in sorted({row["space"] for row in past.all("nodes")}):
            keys = [row["key"] for row in past.all("nodes", lambda row, space=space: row["space"] == space)]  # type: ignore[misc]
            snapshot.mentions.put_links(list(links(snapshot, space, keys)))
        return ask(snapshot)

    # upkeep

    async def doctor(self) -> Report:
        self._check()
        failures = Finding(check="writes nobody awaited", ok=not self._failures, detail=f"{self._failures} failed")
        return Report(findings=(failures,))

    async def mend(self, report: Report) -> None:
        """Nothing here can be damaged."""

    async def rebuild(self, progress: object = None) -> int:
        raise InvalidError("this store has no plain files to rebuild from")

    def copy_to(self, target: Path) -> int:
        raise InvalidError("this store cannot be copied to a file")

    def copy_files(self, target: Path, look: Callable[[Snapshot], T]) -> tuple[T, dict[str, BackupFile]]:
        raise InvalidError("this store has no plain files to copy")

    async def compact(self) -> int:
        return 0

    async def clean(self, *, patience_s: float | None = None) -> Cleaned:
        return Cleaned(is_done=True, bytes_before=0, bytes_after=0)

    def close(self) -> None:
        self._is_open = False


def _commit_of(state: State, scope: Scope, when: When) -> tuple[int, int]:
    """The commit meant and the instant that counts as now. Of an instant it is the last one not after it, by number."""
    spaces = visible(state, scope)
    mine = [row for row in state.commits.values() if row["space"] in spaces]
    fitting = [row for row in mine if (row["at"] <= when.at if when.commit is None else row["seq"] <= when.commit)]
    last = max(fitting, key=lambda row: row["seq"], default=None)
    if when.commit is None:
        return (0 if last is None else last["seq"]), when.at
    return (0, 0) if last is None else (last["seq"], last["at"])
