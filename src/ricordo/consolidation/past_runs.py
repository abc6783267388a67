"""Runs that were: what asks no model, and needs nothing of what it takes to ask one."""

from __future__ import annotations

from ricordo.errors import NotFoundError
from ricordo.model import Run, Scope
from ricordo.store import Snapshot
from ricordo.store.sqlite import runs


def found(snapshot: Snapshot, scope: Scope, run_id: str) -> Run:
    """A run by its id, with the texts of what it did.

    Raises:
        NotFoundError: there is none this caller may see.
    """
    run = runs.run(snapshot, scope, run_id)
    if run is None:
        raise NotFoundError(f"there is no run {run_id}", hint="`runs` lists them; what was undone is not kept")
    return run
