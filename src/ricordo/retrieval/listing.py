"""Memories as they lie in the store: pages, versions and figures."""

from __future__ import annotations

from dataclasses import replace

from ricordo.clock import from_ms
from ricordo.errors import InvalidError
from ricordo.model import Archive, ClosedReason, Page, Scope, Stats, Version
from ricordo.retrieval import as_of
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

    return await as_of.read(asking, read, request.as_of)


def archive(snapshot: Snapshot, scope: Scope, reason: ClosedReason | None, *, limit: int) -> Archive:
    """What ended, the latest first; for one reason, or for any."""
    counts: dict[str, int] = dict(snapshot.counts(scope, "archive_counts"))
    keys = [key for (key,) in snapshot.counts(scope, "archive_listed", reason=reason, most=limit)]
    nodes = snapshot.nodes.by_key(scope, keys)
    return Archive(nodes=tuple(nodes[key] for key in keys), counts=counts)


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


def stats(snapshot: Snapshot, scope: Scope, *, is_whole: bool) -> Stats:
    """Figures of what the caller sees.

    Args:
        is_whole: whether the size is that of the whole store, for who opened it, or that of the caller's own texts.
    """
    models = {model.state: model for model in snapshot.models.known()}
    active, coming = models.get("active"), models.get("coming")
    nodes: dict[str, int] = dict(snapshot.counts(scope, "count_types"))
    embedded, arrived = (
        snapshot.counts(scope, "count_embedded", model=model.key)[0][0] if model else 0 for model in (active, coming)
    )
    sessions, waiting = snapshot.counts(scope, "count_sessions")[0]
    oldest, newest = snapshot.counts(scope, "event_span")[0]
    edges = {kind: count for kind, count in snapshot.counts(scope, "count_edges") if count}
    consolidated = snapshot.counts(scope, "last_consolidated")[0][0]
    decayed = snapshot.lifecycle.last_decay(scope)
    return Stats(
        nodes=nodes,
        categories=dict(snapshot.counts(scope, "count_categories")),
        closed=snapshot.counts(scope, "count_closed")[0][0],
        edges=edges,
        edges_per_node=sum(edges.values()) / max(1, sum(nodes.values())),
        orphans=snapshot.counts(scope, "count_orphans")[0][0],
        entities=snapshot.counts(scope, "count_entities")[0][0],
        sessions=sessions,
        sessions_waiting=waiting,
        last_consolidation=None if consolidated is None else from_ms(consolidated),
        last_decay=None if decayed is None else from_ms(decayed),
        embedder=active.name if active else None,
        embedded=embedded,
        embedding_missing=sum(nodes.values()) - embedded if active else 0,
        next_embedder=coming.name if coming else None,
        next_embedded=arrived,
        commits=snapshot.counts(scope, "count_commits")[0][0],
        size_mb=(snapshot.value("store_bytes") if is_whole else snapshot.counts(scope, "own_bytes")[0][0]) / 1_000_000,
        oldest=None if oldest is None else from_ms(oldest),
        newest=None if newest is None else from_ms(newest),
        quarantined=snapshot.counts(scope, "count_held")[0][0],
    )
