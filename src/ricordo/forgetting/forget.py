"""Forget a memory on request, and restore it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from ricordo.errors import ConflictError
from ricordo.model import SUMMARY_MEMORY, Change, Closing, Node, Scope, Session
from ricordo.storage import Snapshot

_CLOSED_BY_UPKEEP = frozenset(("expired", "decayed", "pruned", "evicted"))


def forget(node: Node, *, at: datetime) -> Change:
    """Return the change that closes a live node and suppresses its sentences where they were said. Pure."""
    if not node.is_live:
        return Change()
    return Change(close=(Closing(id=node.id, at=at, reason="forgotten"),), withhold=(node.id,))


def with_conclusions(snapshot: Snapshot, scope: Scope, node: Node, change: Change, *, at: datetime) -> Change:
    """Extend the change that forgets a node: close reflections and summaries that rest on it; they can be remade."""
    if change.is_empty:
        return change
    keys = snapshot.nodes.concluded_from(node.key)
    ended = [each for each in snapshot.nodes.by_key(scope, keys).values() if each.id != node.id]
    ended += [each for each in _told_in(snapshot, scope, node) if each.id not in {one.id for one in (node, *ended)}]
    summaries = [each for each in (node, *ended) if each.category == "summary"]
    entities = {
        entity.id: entity
        for each in summaries
        for entity_id in snapshot.nodes.subjects(each.key)
        if (entity := snapshot.entities.by_id(scope, entity_id)) is not None
        and entity.attributes.get(SUMMARY_MEMORY) == each.id
    }
    closings = tuple(Closing(id=each.id, at=at, reason="expired") for each in ended)
    put = tuple(
        replace(each, summary=None, attributes={k: v for k, v in each.attributes.items() if k != SUMMARY_MEMORY})
        for each in entities.values()
    )
    sessions = _sessions_without(snapshot, scope, [each for each in summaries if each.session])
    return replace(change, close=(*change.close, *closings), put_entities=put, sessions=sessions)


def _told_in(snapshot: Snapshot, scope: Scope, node: Node) -> list[Node]:
    """Return the summaries of the conversations that a fact was learnt from: they may tell it, too."""
    evidence = snapshot.nodes.evidence(scope, [node.key]).get(node.key, ())
    messages = (snapshot.nodes.get(scope, each) for each in evidence)
    keys = {key for each in messages if each is not None for key in snapshot.nodes.concluded_from(each.key)}
    found = snapshot.nodes.by_key(scope, keys).values()
    return [each for each in found if each.category == "summary" and each.session is not None]


def _sessions_without(snapshot: Snapshot, scope: Scope, summaries: Iterable[Node]) -> tuple[Session, ...]:
    """Return the sessions of some summaries without what those say."""
    found: dict[str, Session] = {}
    for each in summaries:
        session = found.get(each.session or "") or snapshot.sessions.get(scope, each.session or "")
        if session is not None and session.summary:
            left = " ".join(session.summary.replace(each.content, " ").split())
            found[session.id] = replace(session, summary=left or None)
    return tuple(found.values())


def restore(node: Node, *, at: datetime) -> tuple[Change, Node]:
    """Return the change that reopens a closed node, and the node as it will be. Pure.

    What upkeep closed counts as fresh from `at`; otherwise upkeep would close it again.

    Raises:
        ConflictError: a newer version replaced it, or it is held in quarantine.
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
    if node.closed_reason in _CLOSED_BY_UPKEEP:
        back = replace(back, reinforced_at=at)
    return Change(put=(back,)), back
