"""Replays of runs that may be accepted. No truth: what is lost is asked for anew; erasing anything drops all."""

from __future__ import annotations

import json

from ricordo.model import Scope
from ricordo.storage.database.reader import Snapshot

_KEPT_MS = 30 * 86_400_000


def put(snapshot: Snapshot, run_id: str, *, space: int, at: int, body: str) -> None:
    """Keep one for 30 days; `at` in Unix milliseconds, `body` JSON."""
    snapshot.rows("proposals_drop", {"before": at - _KEPT_MS})
    snapshot.rows("proposal_put", {"id": run_id, "space": space, "at": at, "body": body})


def body(snapshot: Snapshot, scope: Scope, run_id: str) -> str | None:
    """What was kept under an id, or the last 8 characters of one; None where this caller sees none."""
    if not isinstance(run_id, str) or not run_id.isprintable():
        return None
    values = {"id": run_id, "spaces": json.dumps(snapshot.visible(scope))}
    found = snapshot.rows("proposal_by_id", values)
    return str(found[0][0]) if len(found) == 1 else None
