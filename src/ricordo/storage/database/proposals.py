"""Replays of runs that may be accepted. No truth: what is lost is asked for anew; erasing anything drops all."""

from __future__ import annotations

import json

from ricordo.model import Scope
from ricordo.storage.database.statements import Statements

_KEPT_MS = 30 * 86_400_000


class Proposals:
    """Replays of runs that may be accepted. No truth: what is lost is asked for anew; erasing anything drops all."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def put(self, run_id: str, *, space: int, at: int, body: str) -> None:
        """Keep one for 30 days; `at` in Unix milliseconds, `body` JSON."""
        self._sql.rows("proposals_drop", {"before": at - _KEPT_MS})
        self._sql.rows("proposal_put", {"id": run_id, "space": space, "at": at, "body": body})

    def body(self, scope: Scope, run_id: str) -> str | None:
        """What was kept under an id, or the last 8 characters of one; None where this caller sees none."""
        if not isinstance(run_id, str) or not run_id.isprintable():
            return None
        values = {"id": run_id, "spaces": json.dumps(self._sql.visible(scope))}
        found = self._sql.rows("proposal_by_id", values)
        return str(found[0][0]) if len(found) == 1 else None
