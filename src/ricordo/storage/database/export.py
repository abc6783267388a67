"""What an export holds: knowledge and entities of the spaces a caller sees."""

from __future__ import annotations

import json

from ricordo.model import Scope
from ricordo.storage.database.entities import Entities
from ricordo.storage.database.nodes import Nodes
from ricordo.storage.database.statements import Statements
from ricordo.storage.values import Everything, Holdings


class Export:
    """What an export holds: knowledge and entities of the spaces a caller sees."""

    def __init__(self, sql: Statements, nodes: Nodes, entities: Entities) -> None:
        self._sql = sql
        self._nodes = nodes
        self._entities = entities

    def holdings(self, scope: Scope, *, now: int) -> Holdings:
        spaces = json.dumps(self._sql.visible(scope))
        keys = [key for (key,) in self._sql.rows("facts_alive", {"spaces": spaces, "now": now})]
        nodes = self._nodes.by_key(scope, keys)
        known = self._entities.by_key(scope, [key for (key,) in self._sql.rows("entities_alive", {"spaces": spaces})])
        relations = self._sql.rows("relations_alive", {"spaces": spaces})
        return Holdings(
            facts=[nodes[key] for key in keys],
            entities={entity.id: entity for entity in known},
            relations=[(source, predicate, target) for source, predicate, target in relations],
        )

    def everything(self, scope: Scope) -> Everything:
        spaces = json.dumps(self._sql.visible(scope))
        keys = [key for (key,) in self._sql.rows("memories_all", {"spaces": spaces})]
        nodes = self._nodes.by_key(scope, keys)
        known = self._entities.by_key(scope, [key for (key,) in self._sql.rows("entities_alive", {"spaces": spaces})])
        relations = self._sql.rows("relations_alive", {"spaces": spaces})
        return Everything(
            nodes=[nodes[key] for key in keys],
            entities=known,
            relations=[(source, predicate, target) for source, predicate, target in relations],
            edges=[(source, kind, target) for source, kind, target in self._sql.rows("edges_all", {"spaces": spaces})],
        )
