"""Memories as they lie in the store: pages, versions and figures."""

from __future__ import annotations

from dataclasses import replace

from ricordo.errors import InvalidError
from ricordo.model import Archive, ClosedReason, Page, Scope, Version
from ricordo.retrieval import service
from ricordo.retrieval.names import entity_key
from ricordo.retrieval.plan import Plan
from ricordo.retrieval.query import Request, query_of
from ricordo.retrieval.service import Asking
from ricordo.storage import Snapshot


async def page(asking: Asking, request: Request, *, cursor: str | None) -> Page:
    """One page, the latest recorded first. Without a type, everything is listed.

    Raises:
        InvalidError: an argument does not fit.
    """
    query = query_of(replace(request, type=request.type or "any"), now=asking.now, zone=asking.zone)
    plan = Plan(query=query, now=asking.now, terms=(), ignored=(), interval=None)
    before = _position(cursor)

    def read(snapshot: Snapshot) -> Page:
        entity = None if query.entity is None else entity_key(snapshot, asking.scope, query.entity)
        nodes = snapshot.nodes.page(
            asking.scope,
            plan.filter(entity),
            now=snapshot.current(asking.now),
            before_key=before,
            limit=query.limit + 1,
        )
        more = len(nodes) > query.limit
        return Page(nodes=tuple(nodes[: query.limit]), cursor=str(nodes[query.limit - 1].key) if more else None)

    return await service.read(asking, read, request.as_of)


def archive(snapshot: Snapshot, scope: Scope, reason: ClosedReason | None, *, limit: int) -> Archive:
    """What ended, the latest first; for one reason, or for any."""
    keys = snapshot.statistics.closed_keys(scope, reason, limit=limit)
    nodes = snapshot.nodes.by_key(scope, keys)
    return Archive(nodes=tuple(nodes[key] for key in keys), counts=snapshot.statistics.closed(scope))


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (isinstance(cursor, str) and cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidError("cursor is not one that `list` gave", hint="leave it out to begin again")
    return int(cursor)


def history(snapshot: Snapshot, scope: Scope, node_id: str) -> tuple[Version, ...]:
    """Every version of a node, oldest first: its before-images and itself, and so of each node that it replaced or
    that replaced it.

    Raises:
        NotFoundError: there is none of that id.
    """
    node = snapshot.nodes.known(scope, node_id)
    found = [pair for each in snapshot.nodes.lineage(scope, node) for pair in snapshot.history.versions(each)]
    found.sort(key=lambda pair: (pair[1].seq if pair[1] else 0, pair[0].key))
    return tuple(
        Version(content=was.content, commit=commit, closed_at=was.closed_at, closed_reason=was.closed_reason, node=was)
        for was, commit in found
    )
