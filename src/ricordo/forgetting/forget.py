"""Forgetting on request, and taking it back."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from ricordo.errors import ConflictError
from ricordo.model import SUMMARY_MEMORY, Change, Closing, Entity, Node, Scope
from ricordo.storage import Snapshot

_BY_UPKEEP = frozenset(("expired", "decayed", "pruned", "evicted"))


def found(snapshot: Snapshot, scope: Scope, node_id: str) -> Node:
    """The node of that id.

    Raises:
        NotFoundError: there is none this caller may see.
    """
    return snapshot.nodes.known(scope, node_id)


def forget(node: Node, *, at: datetime) -> Change:
    """Close a node, and see to it that it is not learnt again from where it was said. Forgetting what is closed already
    changes nothing. Pure.
    """
    if not node.is_live:
        return Change()
    return Change(close=(Closing(id=node.id, at=at, reason="forgotten"),), withhold=(node.id,))


def with_conclusions(snapshot: Snapshot, scope: Scope, node: Node, change: Change, *, at: datetime) -> Change:
    """The change, with what was concluded from a memory that is forgotten: reflections end, and nobody's summary tells
    of it any more. They may be drawn anew from what is left.
    """
    if change.is_empty:
        return change
    keys = [key for (key,) in snapshot.rows("concluded_from", {"node": node.key})]
    ended = [each for each in snapshot.nodes.by_key(scope, keys).values() if each.id != node.id]
    summaries = [each for each in (node, *ended) if each.category == "summary"]
    entities = {
        entity.id: entity
        for each in summaries
        for entity_id in snapshot.nodes.subjects(each.key)
        if (entity := snapshot.entities.by_id(scope, entity_id)) is not None
        and entity.attributes.get(SUMMARY_MEMORY) == each.id
    }
    closings = tuple(Closing(id=each.id, at=at, reason="expired") for each in ended)
    return replace(
        change, close=(*change.close, *closings), put_entities=tuple(_unsummed(each) for each in entities.values())
    )


def _unsummed(entity: Entity) -> Entity:
    attributes = {name: value for name, value in entity.attributes.items() if name != SUMMARY_MEMORY}
    return replace(entity, summary=None, attributes=attributes)


def restore(node: Node, *, at: datetime) -> tuple[Change, Node]:
    """Bring a closed node back as it was. What upkeep closed counts from now, or it would be closed again. Pure.

    Raises:
        ConflictError: a newer version took its place.
    """
    if node.is_live:
        return Change(), node
    if node.closed_reason == "quarantined":
        raise ConflictError(f"{node.id} is held in quarantine", hint="`review` lists it, `resolve` approves it")
    if node.closed_reason in ("superseded", "merged"):
        raise ConflictError(f"{node.id} was {node.closed_reason}", hint="correct its successor instead")
    back = replace(node, closed_at=None, closed_reason=None)
    if back.expires_at is not None and back.expires_at <= at:
        back = replace(back, expires_at=None)
    if node.closed_reason in _BY_UPKEEP:
        back = replace(back, reinforced_at=at)
    return Change(put=(back,)), back
