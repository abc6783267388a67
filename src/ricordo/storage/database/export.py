"""What a caller takes along: the knowledge that holds now, and who is known, of the spaces they see."""

from __future__ import annotations

import json

from ricordo.model import Scope
from ricordo.storage.database.entities import entities as entities_of
from ricordo.storage.database.reader import Snapshot
from ricordo.storage.values import Everything, Holdings


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
