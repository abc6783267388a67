"""Looking at a memory from outside: what happened in order, and where one piece of it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ricordo.clock import from_ms
from ricordo.decay import Vital, ending, fades_at, fate, left
from ricordo.model import DecayCloses, Explanation, Node, Scope
from ricordo.retrieval import service
from ricordo.retrieval.hits import told
from ricordo.retrieval.listing import history
from ricordo.retrieval.names import entity_key
from ricordo.retrieval.plan import Plan
from ricordo.retrieval.query import Request, query_of
from ricordo.retrieval.service import Asking
from ricordo.storage import Snapshot


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
        found = snapshot.nodes.latest(
            asking.scope, plan.filter(entity), now=snapshot.current(asking.now), limit=query.limit
        )
        return tuple(told(snapshot, {node.key: node for node in reversed(found)}).values())

    return await service.read(asking, read, request.as_of)


def explain(
    snapshot: Snapshot, scope: Scope, node_id: str, *, now: int, closes: DecayCloses, often: int
) -> Explanation:
    """All there is to say about why a memory is here and what becomes of it.

    Args:
        closes, often: the settings `decay_closes` and `protect_mentions`.

    Raises:
        NotFoundError: there is none of that id.
    """
    node = snapshot.nodes.known(scope, node_id)
    versions = history(snapshot, scope, node_id)
    own = [version for version in versions if version.node.id == node.id]
    edges = snapshot.nodes.edges(scope, node)
    sources = [edge.target for edge in edges if edge.type == "derived_from" and edge.source == node.id]
    sources += [proof for edge in edges if edge.source == node.id for proof in edge.evidence]
    vital = _vital(snapshot, scope, node, often=often)
    fades, end = fades_at(vital), ending(vital)
    read = (snapshot.nodes.get(scope, each) for each in dict.fromkeys(sources))
    return Explanation(
        node=node,
        made=own[0].commit,
        versions=versions,
        sources=tuple(source for source in read if source is not None),
        supersedes=_in_order(snapshot, scope, snapshot.nodes.replaced(node.key)),
        superseded_by=_in_order(snapshot, scope, snapshot.nodes.replacing(node.key)),
        edges=tuple(edges),
        mentions=tuple(snapshot.nodes.names(node.key)),
        retention=left(vital, now=now),
        fades_at=None if fades is None else from_ms(fades),
        fading=fate(vital, closes),
        ends_at=None if end is None else from_ms(end.at),
        ends_by=None if end is None else end.why,
    )


def _in_order(snapshot: Snapshot, scope: Scope, keys: Sequence[int]) -> tuple[Node, ...]:
    found = snapshot.nodes.by_key(scope, keys)
    return tuple(found[key] for key in keys if key in found)


def _vital(snapshot: Snapshot, scope: Scope, node: Node, *, often: int) -> Vital:
    """What decides how long a memory is kept. How often it was shown by then nobody knows of the past."""
    (vital,) = snapshot.lifecycle.vitals(scope, [node.key], often=often)
    return vital._replace(shown=0, last_access=None) if snapshot.is_past else vital
