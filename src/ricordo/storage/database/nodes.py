"""Nodes by id, by key and by condition."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ricordo.clock import from_ms
from ricordo.errors import NotFoundError
from ricordo.model import Edge, Node, Scope
from ricordo.storage.database.filters import conditions
from ricordo.storage.database.integrity import FINGERPRINT_KEY, id_fingerprint
from ricordo.storage.database.rows import asserted_edge, node_of
from ricordo.storage.database.statements import Statements
from ricordo.storage.values import Filter, Weights
from ricordo.trust import trust_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.int64]

# More ids than this in one statement are fetched in slices.
_SLICE = 5_000
# How many statements on either side are read: those that share a frame with a statement stand next to it.
_NEIGHBOURS = 3


class Nodes:
    """Nodes by id, by key and by condition."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def get(self, scope: Scope, node_id: str) -> Node | None:
        if not isinstance(node_id, str) or not node_id.isprintable():  # SQLite cannot even be asked for some
            return None
        rows = self._sql.rows("node_by_id", self._sql.scoped(scope, id=node_id))
        return node_of(rows[0]) if rows else None

    def known(self, scope: Scope, node_id: str) -> Node:
        node = self.get(scope, node_id)
        if node is None:
            erased = self.erased_at(scope, node_id) if isinstance(node_id, str) else None
            if erased is not None:
                raise NotFoundError(f"memory {node_id} was erased on {erased:%Y-%m-%d}", hint="it is gone for good")
            raise NotFoundError(f"there is no memory {node_id}", hint="`list` or `search` show ids")
        return node

    def by_key(self, scope: Scope, keys: Iterable[int]) -> dict[int, Node]:
        wanted = [int(key) for key in keys]
        found: dict[int, Node] = {}
        for start in range(0, len(wanted), _SLICE):
            values = self._sql.scoped(scope, keys=json.dumps(wanted[start : start + _SLICE]))
            found.update((row[0], node_of(row)) for row in self._sql.rows("nodes_by_key", values))
        return found

    def known_ids(self, ids: Sequence[str]) -> dict[str, tuple[int, str]]:
        return {row[0]: (row[1], row[2]) for row in self._sql.rows("node_ids_known", {"ids": json.dumps(ids)})}

    def page(self, scope: Scope, filter_: Filter, *, now: int, before_key: int | None, limit: int) -> list[Node]:
        clause, values = conditions(filter_)
        query = (
            f"SELECT n.key FROM nodes AS n WHERE {clause} AND n.key < :before_key"
            " AND (n.expires_at IS NULL OR n.expires_at > :now) ORDER BY n.key DESC LIMIT :limit"
        )
        values |= self._sql.scoped(scope, before_key=before_key or 1 << 62, limit=limit, now=now)
        keys = [key for (key,) in self._sql.connection.execute(query, values)]
        found = self.by_key(scope, keys)
        return [found[key] for key in keys]

    def latest(self, scope: Scope, filter_: Filter, *, now: int, limit: int) -> list[Node]:
        clause, values = conditions(filter_)
        query = (
            f"SELECT n.key FROM nodes AS n WHERE {clause} AND (n.expires_at IS NULL OR n.expires_at > :now)"
            " ORDER BY n.event_time DESC, n.key DESC LIMIT :limit"
        )
        keys = [
            key
            for (key,) in self._sql.connection.execute(query, values | self._sql.scoped(scope, limit=limit, now=now))
        ]
        found = self.by_key(scope, keys)
        return [found[key] for key in keys]

    def edges(self, scope: Scope, node: Node) -> list[Edge]:
        return [asserted_edge(row) for row in self._sql.rows("edges_of_node", self._sql.scoped(scope, key=node.key))]

    def matching(self, scope: Scope, filter_: Filter) -> Keys:
        import numpy as np

        clause, values = conditions(filter_)
        query = f"SELECT group_concat(key) FROM (SELECT n.key FROM nodes AS n WHERE {clause})"
        text = self._sql.connection.execute(query, values | self._sql.scoped(scope)).get
        return np.sort(np.fromstring(text, dtype=np.int64, sep=",")) if text else np.empty(0, np.int64)

    def within(self, scope: Scope, filter_: Filter, *, after: int, before: int, most: int) -> Keys:
        import numpy as np

        clause, values = conditions(replace(filter_, after=None, before=None))
        query = (
            f"SELECT n.key FROM nodes AS n WHERE {clause} AND n.event_time >= :start AND n.event_time < :end"
            " ORDER BY n.event_time DESC LIMIT :most"
        )
        values |= self._sql.scoped(scope, start=after, end=before, most=most)
        return np.array([key for (key,) in self._sql.connection.execute(query, values)], np.int64)

    def successor(self, key: int) -> int | None:
        found: int | None = self._sql.value("superseded_by", {"key": key})
        return found

    def replaced(self, key: int) -> list[int]:
        return [each for each, _ in self._sql.rows("replaced_by_node", {"key": key})]

    def replacing(self, key: int) -> list[int]:
        return [each for each, _ in self._sql.rows("replacing_node", {"key": key})]

    def sources(self, key: int, *, most: int) -> list[int]:
        return [each for (each,) in self._sql.rows("sources_of_node", {"key": key, "most": most})]

    def lost_a_source(self, key: int) -> bool:
        return bool(self._sql.value("rests_on_ended", {"node": key}))

    def next_turns(self, keys: Iterable[int]) -> dict[int, int]:
        rows = self._sql.rows("windows", {"keys": json.dumps(list(keys)), "each": 1})
        return {key: int(after) for key, _, after in rows if after is not None}

    def shelf(self, key: int) -> str | None:
        found: str | None = self._sql.value("node_shelf", {"key": key})
        return found

    def names(self, key: int) -> list[str]:
        return [name for (name,) in self._sql.rows("names_in_node", {"key": key})]

    def lineage(self, scope: Scope, node: Node) -> list[Node]:
        keys = {key for (key,) in self._sql.rows("lineage", {"key": node.key})} - {node.key}
        return [node, *self.by_key(scope, keys).values()] if keys else [node]

    def succession(self, keys: Iterable[int]) -> list[tuple[int, int]]:
        rows = self._sql.rows("succession", {"keys": json.dumps([int(key) for key in keys])})
        return [(newer, older) for newer, older in rows]

    def near_statements(self, owner: str, chat: str, subjects: Sequence[str], line: str) -> list[tuple[int, str]]:
        space = self._sql.space(owner, chat)
        keys = [self._sql.value("entity_place", {"id": each}) for each in subjects]
        if space is None or None in keys:
            return []
        first = line.partition(" ")[0]
        values = {
            "space": space,
            "subjects": ",".join(map(str, sorted(keys))),
            "line": line,
            "most": _NEIGHBOURS,
            "first": first,
            "after": f"{first}!",  # "!" comes right after a blank
        }
        return [(key, content) for key, content in self._sql.rows("slots_near", values)]

    def subjects(self, key: int) -> list[str]:
        return [entity_id for (entity_id,) in self._sql.rows("subjects_of", {"node": key})]

    def weights(self, scope: Scope, keys: Sequence[int]) -> dict[int, Weights]:
        rows = self._sql.rows("weights_of", self._sql.scoped(scope, keys=json.dumps(keys)))
        return {
            key: Weights(confidence, score, since, expires_at, is_live, trust_of(origin, role))
            for key, confidence, score, since, expires_at, is_live, origin, role in rows
        }

    def concluded_from(self, key: int) -> list[int]:
        return [found for (found,) in self._sql.rows("concluded_from", {"node": key})]

    def erased_at(self, scope: Scope, node_id: str) -> datetime | None:
        key = self._sql.meta(FINGERPRINT_KEY)
        if key is None:
            return None
        hashed = id_fingerprint(bytes.fromhex(key), node_id)
        at: int | None = self._sql.value("erased_id_at", self._sql.scoped(scope, id=hashed))
        return None if at is None else from_ms(at)
