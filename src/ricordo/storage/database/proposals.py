"""Replays that may be accepted. They are derived data: a lost one can be run again, and any erasure deletes all."""

from __future__ import annotations

import json

from ricordo.model import Scope
from ricordo.storage.database.statements import Statements

_KEPT_MS = 30 * 86_400_000


class Proposals:
    """Replays that may be accepted. They are derived data: a lost one can be run again, and any erasure deletes all."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def put(self, run_id: str, *, space: int, at: int, body: str) -> None:
        self._sql.rows("proposals_drop", {"before": at - _KEPT_MS})
        self._sql.rows("proposal_put", {"id": run_id, "space": space, "at": at, "body": body})

    def body(self, scope: Scope, run_id: str) -> str | None:
        if not isinstance(run_id, str) or not run_id.isprintable():
            return None
        values = {"id": run_id, "spaces": json.dumps(self._sql.visible(scope))}
        found = self._sql.rows("proposal_by_id", values)
        return str(found[0][0]) if len(found) == 1 else None
