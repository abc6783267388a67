"""What is linked to memories: entities, causes and effects, memories that proved useful together."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

from ricordo.model import EdgeType, Scope
from ricordo.storage.database.statements import Statements
from ricordo.storage.values import Kinds, Near, Step, Usage
from ricordo.text.names import Bearer, NameIndex, candidates
from ricordo.text.statement import MAX_STATEMENT_CHARS

REINFORCED_TOGETHER_MS = 60_000
"""What is reinforced within so long of each other proved useful together."""

_COMPANIONS = 8


class Graph:
    """What is linked to memories: entities, causes and effects, memories that proved useful together."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def kinds(self) -> Kinds:
        return self._sql.once(("kinds",), lambda: Kinds(*map(bool, self._sql.rows("kinds_of_links")[0])))

    def known_names(self, scope: Scope, text: str) -> NameIndex:
        keys, sounds = candidates([text])
        values = {"keys": json.dumps(keys), "sounds": json.dumps(sounds)}
        found: dict[str, tuple[Bearer, ...]] = {}
        for space in self._sql.visible(scope):
            for key, *bearer in self._sql.rows("names_known", {**values, "space": space}):
                found[key] = (*found.get(key, ()), Bearer(*bearer))
        return found

    def entity_keys(self, entities: Iterable[int]) -> list[int]:
        return [row[0] for entity in entities for row in self._sql.rows("entity_members", {"entity": entity})]

    def near_entity(self, scope: Scope, entity: int, *, walk: int) -> list[Near]:
        values = {"entity": entity, "walk": walk, "spaces": json.dumps(self._sql.visible(scope))}
        return [Near(*row) for row in self._sql.rows("entity_near", values)]

    def linked_to(self, nodes: Iterable[int], entities: Iterable[int]) -> set[int]:
        values = {"nodes": json.dumps(list(nodes)), "entities": json.dumps(list(entities))}
        return {row[0] for row in self._sql.rows("linked_to", values)}

    def causes_and_effects(self, scope: Scope, nodes: Iterable[int], *, most: int) -> list[Step]:
        values = {"nodes": json.dumps(list(nodes)), "most": most, "spaces": json.dumps(self._sql.visible(scope))}
        return [Step(*row) for row in self._sql.rows("causes_and_effects", values)]

    def is_causal_between(self, one: int, other: int) -> bool:
        return bool(self._sql.rows("causal_between", {"one": one, "other": other}))

    def associates(self, scope: Scope, nodes: Iterable[int], *, each: int) -> list[Step]:
        values = {"nodes": json.dumps(list(nodes)), "each": each, "spaces": json.dumps(self._sql.visible(scope))}
        return [Step(*row) for row in self._sql.rows("associates_of", values)]

    def has_edge(self, source: int, type: EdgeType, target: int) -> bool:
        return bool(self._sql.rows("edge_of", {"source": source, "type": type, "target": target}))

    def reinforced_with(self, owner: str, chat: str, node_id: str, *, at: int) -> list[str]:
        values = {"space": self._sql.space(owner, chat), "since": at - REINFORCED_TOGETHER_MS, "most": _COMPANIONS + 1}
        return [found for (found,) in self._sql.rows("reinforced_since", values) if found != node_id][:_COMPANIONS]

    def put_usage(self, shown: Mapping[int, Usage]) -> None:
        for node, usage in shown.items():
            self._sql.rows("usage_put", {"node": node, "count": usage.shown, "at": usage.last_access})

    def usage(self, nodes: Collection[int]) -> dict[int, Usage]:
        rows = self._sql.rows("usage_of", {"nodes": json.dumps(list(nodes))})
        return {node: Usage(count, last) for node, count, last in rows}

    def lines(self, nodes: Iterable[int]) -> list[tuple[int, str, str, int]]:
        if not self.kinds().lines:
            return []
        values = {"nodes": json.dumps(list(nodes)), "most": MAX_STATEMENT_CHARS}
        return [(key, subjects, line, since) for key, subjects, line, since in self._sql.rows("lines_of", values)]
