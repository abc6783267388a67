"""What a caller takes along: the knowledge that holds now, and who is known, of the spaces they see."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ricordo.model import EdgeType, Entity, Node, Scope
from ricordo.storage.database.entities import entities as entities_of
from ricordo.storage.database.reader import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """Facts the earliest first; entities by id; (source or None for the owner, predicate, target), by id."""

    facts: Sequence[Node]
    entities: Mapping[str, Entity]
    relations: Sequence[tuple[str | None, str, str]]


def holdings(snapshot: Snapshot, scope: Scope, *, now: int) -> Holdings:
    """What the caller may see of what holds now.

    Args:
        now: Unix milliseconds; what has expired by then is left out.
    """
    spaces = json.dumps(snapshot.visible(scope))
    keys = [key for (key,) in snapshot.rows("facts_alive", {"spaces": spaces, "now": now})]
    nodes = snapshot.nodes(scope, keys)
    known = entities_of(snapshot, scope, [key for (key,) in snapshot.rows("entities_alive", {"spaces": spaces})])
    relations = snapshot.rows("relations_alive", {"spaces": spaces})
    return Holdings(
        facts=[nodes[key] for key in keys],
        entities={entity.id: entity for entity in known},
        relations=[(source, predicate, target) for source, predicate, target in relations],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """All memories in the order they were recorded, closed ones too; all entities; relations and edges by id."""

    nodes: Sequence[Node]
    entities: Sequence[Entity]
    relations: Sequence[tuple[str | None, str, str]]
    edges: Sequence[tuple[str, EdgeType, str]]


def everything(snapshot: Snapshot, scope: Scope) -> Everything:
    """What the caller may see, of now and of before."""
    spaces = json.dumps(snapshot.visible(scope))
    keys = [key for (key,) in snapshot.rows("memories_all", {"spaces": spaces})]
    nodes = snapshot.nodes(scope, keys)
    known = entities_of(snapshot, scope, [key for (key,) in snapshot.rows("entities_alive", {"spaces": spaces})])
    relations = snapshot.rows("relations_alive", {"spaces": spaces})
    return Everything(
        nodes=[nodes[key] for key in keys],
        entities=known,
        relations=[(source, predicate, target) for source, predicate, target in relations],
        edges=[(source, kind, target) for source, kind, target in snapshot.rows("edges_all", {"spaces": spaces})],
    )
