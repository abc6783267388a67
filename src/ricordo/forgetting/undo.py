"""Undo a commit or a run: every row it touched becomes what it was before, as a new commit that can be undone too.

Knows no table: rows, their versions and their references come from the store's ledger.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ricordo.errors import ConflictError, InvalidError, NotFoundError
from ricordo.model import Change, RowId, RowState, Run, Scope
from ricordo.storage import Snapshot
from ricordo.storage.groups import Ledger
from ricordo.storage.values import Image, content

# Rows that many commits share. They stay while any row refers to them.
_SHARED = frozenset(("sessions",))

_LISTED = 20


def undo(snapshot: Snapshot, scope: Scope, commit_or_run: int | str, *, with_later: bool) -> Change:
    """Return the change that undoes a commit, or all commits of a run.

    Raises:
        InvalidError: not a commit number or a run id.
        NotFoundError: this caller sees no such commit or run.
        ConflictError: later commits build on it (`commits` lists them), or nothing is left to undo.
    """
    ledger = snapshot.history.ledger()
    asked = _asked(ledger, scope, commit_or_run)
    wanted = set(asked)
    while True:
        if found := snapshot.history.erasures(wanted):
            raise ConflictError(f"change {found[0]} erased something", hint="what was erased stays erased")
        undoing = _Undoing(ledger, wanted)
        if not undoing.blocking:
            break
        wanted |= undoing.blocking
    later = tuple(sorted(wanted - set(asked)))
    if later:
        if _is_undone(ledger, asked):
            raise ConflictError(f"{commit_or_run} is already undone", hint="undo the undo to redo it", commits=later)
        _check_later(ledger.visible(scope, later), commit_or_run, later, with_later=with_later)
    states = undoing.states()
    if not states:
        raise ConflictError(f"nothing is left of {commit_or_run} to undo", hint="what was erased stays erased")
    return Change(rows=states)


def undone_runs(snapshot: Snapshot, scope: Scope, change: Change) -> list[Run]:
    """Return the runs that an undo takes out of the store, as undone ones."""
    ledger = snapshot.history.ledger()
    images = (ledger.current(each.row) for each in change.rows if each.row.table == "runs" and each.values is None)
    found = (snapshot.runs.get(scope, image["id"]) for image in images if image is not None)
    return [replace(run, state="undone", reason="") for run in found if run is not None]


def _asked(ledger: Ledger, scope: Scope, commit_or_run: int | str) -> list[int]:
    """Return the commits of a number or a run id. Another owner's commit is treated as absent."""
    if isinstance(commit_or_run, bool) or not isinstance(commit_or_run, int | str):
        raise InvalidError(f"commit_or_run: {commit_or_run!r} is not a commit number or a run id")
    if isinstance(commit_or_run, str) and not (commit_or_run.isascii() and commit_or_run.isdigit()):
        found = ledger.commits_of_run(scope, commit_or_run) if commit_or_run.isprintable() else []
    else:
        number = int(commit_or_run) if len(str(commit_or_run)) < 19 else 0
        found = sorted(ledger.visible(scope, [number]))
    if not found:
        raise NotFoundError(f"there is no change {commit_or_run}", hint="`log` lists them")
    return found


def _check_later(mine: Collection[int], commit_or_run: int | str, later: tuple[int, ...], *, with_later: bool) -> None:
    """Raise ConflictError if later commits, of which `mine` are the caller's to see, must not be undone, too."""
    if len(mine) < len(later):  # a private memory about somebody of the group
        seen = tuple(sorted(mine))
        raise ConflictError(f"{commit_or_run} cannot be undone: changes of others build on it", commits=seen)
    if not with_later:
        listed = ", ".join(map(str, later[:_LISTED])) + (", ..." if len(later) > _LISTED else "")
        hint = "undo those first, or undo all of them with with_later (--with-later)"
        raise ConflictError(f"{commit_or_run} cannot be undone alone: {listed} build on it", hint=hint, commits=later)


def _is_undone(ledger: Ledger, asked: Iterable[int]) -> bool:
    """Return whether every row is what it was before these commits."""
    return all(
        content(ledger.current(row)) == content(before) or (before is None and row.table in _SHARED)
        for commit in asked
        for row in ledger.touched(commit)
        for before in [ledger.state(row, commit - 1)]
    )


class _Undoing:
    """The state of rows after commits are undone one by one, last first; `blocking` are later commits in the way."""

    def __init__(self, ledger: Ledger, wanted: Iterable[int]) -> None:
        self._ledger = ledger
        self._wanted = frozenset(wanted)
        self._states: dict[RowId, Image | None] = {}
        self.blocking: set[int] = set()
        for commit in sorted(self._wanted, reverse=True):
            for row in ledger.touched(commit):
                self._take_back(row, commit)
        self._coming: dict[RowId, list[RowId]] = {}
        for row, image in self._states.items():
            for parent in () if image is None else ledger.parents(row, image):
                self._coming.setdefault(parent, []).append(row)
        for row in list(self._states):
            self._keep_references(row)

    def states(self) -> tuple[RowState, ...]:
        """Return the rows that change."""
        return tuple(
            RowState(row=row, values=image)
            for row, image in self._states.items()
            if content(image) != content(self._ledger.current(row))
        )

    def _now(self, row: RowId) -> Image | None:
        return self._states[row] if row in self._states else self._ledger.current(row)

    def _take_back(self, row: RowId, commit: int) -> None:
        after, before = self._ledger.state(row, commit), self._ledger.state(row, commit - 1)
        if content(self._now(row)) == content(after):
            self._states[row] = before
        elif row.table in _SHARED and before is None and self._needed(self._ledger.children(row), row):
            return
        else:
            self._block(seq for seq in self._ledger.touches(row) if seq > commit)

    def _block(self, commits: Iterable[int]) -> None:
        self.blocking |= set(commits) - self._wanted

    def _keep_references(self, row: RowId) -> None:
        """Keep references intact: no row may refer to a row that is removed or missing."""
        image = self._states[row]
        if image is None:
            self._keep_users(row)
            return
        for parent in self._ledger.parents(row, image):
            if self._now(parent) is not None:
                continue
            gone = self._ledger.touches(parent)[-1:]
            self._block(gone)
            if not gone:  # the parent was erased: its rows do not come back
                del self._states[row]
                return
        for rival in self._ledger.rivals(row, image):
            if self._now(rival) is not None:
                self._block(self._ledger.touches(rival)[:1])

    def _keep_users(self, row: RowId) -> None:
        users = self._needed([*self._ledger.children(row), *self._coming.get(row, ())], row)
        if users and row.table in _SHARED:
            del self._states[row]
            return
        for user in users:
            self._block(self._ledger.touches(user)[:1])

    def _needed(self, children: Iterable[RowId], row: RowId) -> list[RowId]:
        """Return which of some rows will refer to a row."""
        images = ((child, self._now(child)) for child in dict.fromkeys(children))
        return [child for child, image in images if image is not None and row in self._ledger.parents(child, image)]
