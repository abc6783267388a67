"""Looking at a memory from outside: what happened in order, and where one piece of it came from."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from ricordo.clock import to_ms
from ricordo.fading import days_until_faded, retention
from ricordo.model import Explanation, Fading, Node, Origin, Scope
from ricordo.retrieval import past
from ricordo.retrieval.ask import Asking
from ricordo.retrieval.listing import history
from ricordo.retrieval.names import entity_key
from ricordo.retrieval.plan import Plan
from ricordo.retrieval.request import Request, query_of
from ricordo.store import Snapshot

_DAY_MS = 86_400_000
_LONGEST_DAYS = 365_000
_EPHEMERAL = frozenset(("context", "event", "task", "observation"))
_INFERRED: frozenset[Origin] = frozenset(("extraction", "consolidation"))


async def timeline(asking: Asking, request: Request) -> tuple[Node, ...]:
    """The latest events of a span, in order of event time.

    Raises:
        InvalidError: an argument does not fit.
        NotFoundError: nobody is known by the name given as `entity`.
    """
    query = query_of(replace(request, type="any"), now=asking.now, zone=asking.zone)
    plan = Plan(query=query, now=asking.now, terms=(), ignored=(), interval=None)

    def read(snapshot: Snapshot) -> tuple[Node, ...]:
        entity = None if query.entity is None else entity_key(snapshot, asking.scope, query.entity)
        found = snapshot.latest(asking.scope, plan.filter(entity), now=snapshot.current(asking.now), limit=query.limit)
        return tuple(reversed(found))

    return await past.read(asking, read, request.as_of)


def explain(snapshot: Snapshot, scope: Scope, node_id: str, *, now: int) -> Explanation:
    """All there is to say about why a memory is here and what becomes of it.

    Raises:
        NotFoundError: there is none of that id.
    """
    node = snapshot.known_node(scope, node_id)
    versions = history(snapshot, scope, node_id)
    own = [version for version in versions if version.node.id == node.id]
    edges = snapshot.edges(scope, node)
    sources = [edge.target for edge in edges if edge.type == "derived_from" and edge.source == node.id]
    sources += [proof for edge in edges if edge.source == node.id for proof in edge.evidence]
    is_protected = bool(snapshot.value("is_protected", {"key": node.key}))
    left, fades_at, fading = _fading(node, now=now, is_protected=is_protected)
    read = (snapshot.node(scope, each) for each in dict.fromkeys(sources))
    return Explanation(
        node=node,
        made=own[0].commit,
        versions=versions,
        sources=tuple(source for source in read if source is not None),
        supersedes=_chain(snapshot, scope, node, "replaced_by_node"),
        superseded_by=_chain(snapshot, scope, node, "replacing_node"),
        edges=tuple(edges),
        mentions=tuple(name for (name,) in snapshot.rows("names_in_node", {"key": node.key})),
        retention=left,
        fades_at=fades_at,
        fading=fading,
    )


def _chain(snapshot: Snapshot, scope: Scope, node: Node, statement: str) -> tuple[Node, ...]:
    keys = [key for key, _ in snapshot.rows(statement, {"key": node.key})]
    found = snapshot.nodes(scope, keys)
    return tuple(found[key] for key in keys if key in found)


def _fading(node: Node, *, now: int, is_protected: bool) -> tuple[float, datetime | None, Fading]:
    """How much is left of a memory, when it will have faded, and what happens then. Pure."""
    if is_protected:
        return node.confidence, None, "never"
    since = node.reinforced_at or node.created_at
    left = retention(node.confidence, node.decay_rate, (now - to_ms(since)) / _DAY_MS)
    until = days_until_faded(node.confidence, node.decay_rate)
    if until is None:
        return left, None, "never"
    closes = node.category in _EPHEMERAL or node.origin in _INFERRED
    return left, since + timedelta(days=min(until, _LONGEST_DAYS)), "closes" if closes else "sinks"
