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
        """Return a node by id, closed or not; None if this caller sees none."""
        if not isinstance(node_id, str) or not node_id.isprintable():  # SQLite cannot even be asked for some
            return None
        rows = self._sql.rows("node_by_id", self._sql.scoped(scope, id=node_id))
        return node_of(rows[0]) if rows else None

    def known(self, scope: Scope, node_id: str) -> Node:
        """Return a node by id, closed or not.

        Raises:
            NotFoundError: this caller sees none.
        """
        node = self.get(scope, node_id)
        if node is None:
            erased = self.erased_at(scope, node_id) if isinstance(node_id, str) else None
            if erased is not None:
                raise NotFoundError(f"memory {node_id} was erased on {erased:%Y-%m-%d}", hint="it is gone for good")
            raise NotFoundError(f"there is no memory {node_id}", hint="`list` or `search` show ids")
        return node

    def by_key(self, scope: Scope, keys: Iterable[int]) -> dict[int, Node]:
        """Return nodes by key, without those the caller may not see."""
        wanted = [int(key) for key in keys]
        found: dict[int, Node] = {}
        for start in range(0, len(wanted), _SLICE):
            values = self._sql.scoped(scope, keys=json.dumps(wanted[start : start + _SLICE]))
            found.update((row[0], node_of(row)) for row in self._sql.rows("nodes_by_key", values))
        return found

    def known_ids(self, ids: Sequence[str]) -> dict[str, tuple[int, str]]:
        """Return which ids are taken: id to (space, content)."""
        return {row[0]: (row[1], row[2]) for row in self._sql.rows("node_ids_known", {"ids": json.dumps(ids)})}

    def page(self, scope: Scope, filter_: Filter, *, now: int, before_key: int | None, limit: int) -> list[Node]:
        """Return matching nodes, newest record first, from below a key."""
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
        """Return matching nodes, latest event first."""
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
        """Return the links of a node to others the caller may see, its own edges first."""
        return [asserted_edge(row) for row in self._sql.rows("edges_of_node", self._sql.scoped(scope, key=node.key))]

    def matching(self, scope: Scope, filter_: Filter) -> Keys:
        """Return the keys of all matching nodes, ascending."""
        import numpy as np

        clause, values = conditions(filter_)
        query = f"SELECT group_concat(key) FROM (SELECT n.key FROM nodes AS n WHERE {clause})"
        text = self._sql.connection.execute(query, values | self._sql.scoped(scope)).get
        return np.sort(np.fromstring(text, dtype=np.int64, sep=",")) if text else np.empty(0, np.int64)

    def within(self, scope: Scope, filter_: Filter, *, after: int, before: int, most: int) -> Keys:
        """Return the keys of the latest matching nodes in a period, in no order."""
        import numpy as np

        clause, values = conditions(replace(filter_, after=None, before=None))
        query = (
            f"SELECT n.key FROM nodes AS n WHERE {clause} AND n.event_time >= :start AND n.event_time < :end"
            " ORDER BY n.event_time DESC LIMIT :most"
        )
        values |= self._sql.scoped(scope, start=after, end=before, most=most)
        return np.array([key for (key,) in self._sql.connection.execute(query, values)], np.int64)

    def successor(self, key: int) -> int | None:
        """Return the live newest version of a node: itself if it is live, None if the chain ended."""
        found: int | None = self._sql.value("superseded_by", {"key": key})
        return found

    def replaced(self, key: int) -> list[int]:
        """Return the nodes that a node took the place of, step by step, the latest first."""
        return [each for each, _ in self._sql.rows("replaced_by_node", {"key": key})]

    def replacing(self, key: int) -> list[int]:
        """Return the nodes that took the place of a node, step by step, the earliest first."""
        return [each for each, _ in self._sql.rows("replacing_node", {"key": key})]

    def sources(self, key: int, *, most: int) -> list[int]:
        """Return what a node rests on, the latest first."""
        return [each for (each,) in self._sql.rows("sources_of_node", {"key": key, "most": most})]

    def lost_a_source(self, key: int) -> bool:
        """Return whether something that a node rests on has ended."""
        return bool(self._sql.value("rests_on_ended", {"node": key}))

    def next_turns(self, keys: Iterable[int]) -> dict[int, int]:
        """Return the live turn right after each of some turns in its session, by key; none after the last."""
        rows = self._sql.rows("windows", {"keys": json.dumps(list(keys)), "each": 1})
        return {key: int(after) for key, _, after in rows if after is not None}

    def shelf(self, key: int) -> str | None:
        """Return the shelf of a node: "k" for knowledge, "e" for a turn, "c" for a consolidated turn."""
        found: str | None = self._sql.value("node_shelf", {"key": key})
        return found

    def names(self, key: int) -> list[str]:
        """Return the names of the entities that a node's text names, found by rule."""
        return [name for (name,) in self._sql.rows("names_in_node", {"key": key})]

    def lineage(self, scope: Scope, node: Node) -> list[Node]:
        """Return a node with all that it replaced and all that replaced it, in no order."""
        keys = {key for (key,) in self._sql.rows("lineage", {"key": node.key})} - {node.key}
        return [node, *self.by_key(scope, keys).values()] if keys else [node]

    def succession(self, keys: Iterable[int]) -> list[tuple[int, int]]:
        """Return pairs (newer, older) of nodes: one replaced the other, or ranks before it."""
        rows = self._sql.rows("succession", {"keys": json.dumps([int(key) for key in keys])})
        return [(newer, older) for newer, older in rows]

    def near_statements(self, owner: str, chat: str, subjects: Sequence[str], line: str) -> list[tuple[int, str]]:
        """Return (key, content) of live facts of exactly these subjects whose statements are next to a line in sorted
        order.

        Args:
            subjects: ids of entities; one that is not stored yet has no facts.
            line: the result of `statement_line`.
        """
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
        """Return the ids of the entities a node is about."""
        return [entity_id for (entity_id,) in self._sql.rows("subjects_of", {"node": key})]

    def weights(self, scope: Scope, keys: Sequence[int]) -> dict[int, Weights]:
        """Return what ranking knows of nodes besides their words, by key, without those the caller may not see."""
        rows = self._sql.rows("weights_of", self._sql.scoped(scope, keys=json.dumps(keys)))
        return {
            key: Weights(confidence, score, since, expires_at, is_live, trust_of(origin, role))
            for key, confidence, score, since, expires_at, is_live, origin, role in rows
        }

    def concluded_from(self, key: int) -> list[int]:
        """Return the keys of live reflections and summaries that rest on a node."""
        return [found for (found,) in self._sql.rows("concluded_from", {"node": key})]

    def erased_at(self, scope: Scope, node_id: str) -> datetime | None:
        """Return when a memory of that id was erased, if this caller could see it."""
        key = self._sql.meta(FINGERPRINT_KEY)
        if key is None:
            return None
        hashed = id_fingerprint(bytes.fromhex(key), node_id)
        at: int | None = self._sql.value("erased_id_at", self._sql.scoped(scope, id=hashed))
        return None if at is None else from_ms(at)
