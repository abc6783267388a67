"""What decides how long memories are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ricordo.decay import STATED, Vital
from ricordo.model import Scope
from ricordo.storage.database.nodes import Nodes
from ricordo.storage.database.statements import Statements

# The property of the store under which upkeep notes, per space, when it last ran.
_LAST_DECAY = "last decay at"


class Lifecycle:
    """What decides how long memories are kept."""

    def __init__(self, sql: Statements, nodes: Nodes) -> None:
        self._sql = sql
        self._nodes = nodes

    def vitals(self, scope: Scope, keys: Sequence[int], *, often: int) -> list[Vital]:
        values = {
            "keys": json.dumps(list(keys)),
            "spaces": json.dumps(self._sql.visible(scope)),
            "often": often,
            "stated": STATED,
        }
        return [
            Vital._make((*row[:12], *map(bool, row[12:16]), row[16])) for row in self._sql.rows("vitals_of", values)
        ]

    def knowledge(self, scope: Scope) -> list[int]:
        text = self._sql.value("live_knowledge", {"spaces": json.dumps(self._sql.visible(scope))})
        return sorted(int(key) for key in text.split(",")) if text else []

    def size(self, scope: Scope) -> tuple[int, int]:
        row = self._sql.rows("knowledge_size", {"spaces": json.dumps(self._sql.visible(scope))})[0]
        return row[0], row[1]

    def scopes(self) -> list[Scope]:
        return [Scope(owner=owner, chat=chat or None) for owner, chat in self._sql.rows("spaces_all")]

    def whose(self, node_id: str) -> Scope | None:
        known = self._nodes.known_ids([node_id]).get(node_id)
        if known is None:
            return None
        ((owner, chat),) = self._sql.rows("space_owner", {"space": known[0]})
        return Scope(owner=owner, chat=chat or None) if owner else None

    def note_decay(self, scope: Scope, *, at: int) -> None:
        for space in self._sql.visible(scope):
            self._sql.rows("meta_put", {"name": f"{_LAST_DECAY} {space}", "value": str(at)})

    def last_decay(self, scope: Scope) -> int | None:
        noted = (self._sql.meta(f"{_LAST_DECAY} {space}") for space in self._sql.visible(scope))
        return max((int(at) for at in noted if at is not None), default=None)
