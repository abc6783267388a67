"""The graph of entities and facts. The server computes the layout, which is the same each time."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from starlette.responses import Response

from ricordo.interfaces.http.guard import json_response
from ricordo.interfaces.page.visit import Visit
from ricordo.model import Entity
from ricordo.storage.values import Holdings

MOST_NODES = 300
_ENTITIES = 120
"""The most entities to draw. Facts of the opened entities use the remaining nodes, up to `MOST_NODES`."""
_FACTS_EACH = 12
_STEPS = 120
_SELF = "you"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A node with coordinates from 0 to 1. `kind` is "fact", "you" or the type of an entity."""

    id: str
    name: str
    kind: str
    weight: int
    ties: int = 0
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """A line between two nodes: a relation, two entities in the same fact, or a fact and an entity it is about."""

    source: str
    target: str
    name: str = ""


def graph_of(holdings: Holdings, opened: Collection[str], *, you: str) -> tuple[list[Spot], list[Tie]]:
    """Return the nodes and lines to draw: the most mentioned entities, and the facts of the opened ones."""
    ranked = sorted(holdings.entities.values(), key=lambda each: (each.id not in opened, -each.mention_count, each.id))
    entities = {each.id: each for each in ranked[:_ENTITIES]}
    ties = _relations(holdings, entities) + _shared_facts(holdings, entities)
    spots = [Spot(id=each.id, name=each.name, kind=each.type, weight=each.mention_count) for each in entities.values()]
    if any(_SELF in (tie.source, tie.target) for tie in ties):
        spots.append(Spot(id=_SELF, name=you, kind=_SELF, weight=10))
    facts, about = _facts(holdings, entities, opened, most=MOST_NODES - len(spots))
    return place(spots + facts, ties + about), ties + about


def _relations(holdings: Holdings, entities: Collection[str]) -> list[Tie]:
    known = {*entities, _SELF}
    found = (Tie(source=source or _SELF, target=target, name=name) for source, name, target in holdings.relations)
    return [tie for tie in found if tie.source in known and tie.target in known]


def _by_name(entities: dict[str, Entity]) -> dict[str, str]:
    return {name: each.id for each in entities.values() for name in (each.name, *each.aliases)}


def _shared_facts(holdings: Holdings, entities: dict[str, Entity]) -> list[Tie]:
    ids, pairs = _by_name(entities), Counter[tuple[str, str]]()
    for fact in holdings.facts:
        pairs.update(combinations(sorted({ids[name] for name in fact.about if name in ids}), 2))
    return [Tie(source=one, target=other) for (one, other), _ in pairs.most_common(3 * _ENTITIES)]


def _facts(
    holdings: Holdings, entities: dict[str, Entity], opened: Collection[str], *, most: int
) -> tuple[list[Spot], list[Tie]]:
    ids, spots, ties, each = _by_name(entities), dict[str, Spot](), list[Tie](), Counter[str]()
    for fact in reversed(holdings.facts):
        about = {ids[name] for name in fact.about if name in ids}
        wanted = {id for id in about & set(opened) if each[id] < _FACTS_EACH}
        if wanted and len(spots) < most:
            each.update(wanted)
            spots[fact.id] = Spot(id=fact.id, name=" ".join(fact.content.split())[:80], kind="fact", weight=1)
            ties += [Tie(source=fact.id, target=id) for id in sorted(about)]
    return list(spots.values()), ties


def place(spots: Sequence[Spot], ties: Sequence[Tie]) -> list[Spot]:
    """Lay out the graph: lines pull nodes together, and nodes repel each other. The same graph gets the same layout.

    Source: Fruchterman and Reingold, Graph Drawing by Force-directed Placement, 1991.
    """
    numbers = {spot.id: number for number, spot in enumerate(spots)}
    lines = np.array([(numbers[tie.source], numbers[tie.target]) for tie in ties], dtype=np.int64).reshape(-1, 2)
    at = np.array([_start(spot.id) for spot in spots], dtype=np.float32).reshape(-1, 2)
    if len(spots) > 1:
        at = _settled(at, lines)
    ends = Counter(lines.ravel().tolist())
    return [
        Spot(id=spot.id, name=spot.name, kind=spot.kind, weight=spot.weight, ties=ends[number], x=float(x), y=float(y))
        for (number, spot), (x, y) in zip(enumerate(spots), at.round(4).tolist(), strict=True)
    ]


def _start(id: str) -> tuple[float, float]:
    digest = hashlib.sha256(id.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:4]) / 2**32, int.from_bytes(digest[4:8]) / 2**32


def _settled(at: NDArray[np.float32], lines: NDArray[np.int64]) -> NDArray[np.float32]:
    ideal = 0.64 / len(at)  # the square of the distance at which pull and push of two nodes are equal
    pull = np.zeros((len(at), len(at)), dtype=np.float32)
    np.add.at(pull, (lines[:, 0], lines[:, 1]), 1)
    pull += pull.T
    np.fill_diagonal(pull, 0)
    for step in range(_STEPS):
        across, along = (np.subtract.outer(at[:, axis], at[:, axis]) for axis in (0, 1))
        squared = np.maximum(across * across + along * along, 1e-6)
        push = ideal / squared - pull * np.sqrt(squared / ideal)
        force = np.stack(((push * across).sum(axis=1), (push * along).sum(axis=1)), axis=1) - (at - 0.5) * 0.6
        length = np.maximum(np.sqrt((force**2).sum(axis=1, keepdims=True)), 1e-9)
        at = at + force / length * np.minimum(length, 0.1 * (1 - step / _STEPS))
    low, high = at.min(axis=0), at.max(axis=0)
    placed: NDArray[np.float32] = (at - low) / np.maximum(high - low, 1e-9)
    return placed


async def _drawn(visit: Visit) -> tuple[list[str], list[Spot], list[Tie]]:
    visit.caller.require("store_view.holdings")
    holdings = await visit.memory.store_view.holdings(visit.as_of)
    opened = [id for id in visit.request.query_params.getlist("open") if id in holdings.entities][:20]
    return opened, *await asyncio.to_thread(graph_of, holdings, opened, you=visit.texts("graph.you"))


async def show(visit: Visit) -> Response:
    """Show the graph, with a table of its nodes."""
    opened, spots, ties = await _drawn(visit)
    ranked = sorted(spots, key=lambda each: (-each.ties, each.name))
    return visit.page("graph.html", spots=ranked, ties=ties, opened=opened, query=visit.request.url.query)


async def data(visit: Visit) -> Response:
    """Return the graph as JSON for the script that draws it."""
    _, spots, ties = await _drawn(visit)
    return json_response({"nodes": spots, "edges": ties})


PAGES = (("GET", "/page/graph", "graph", show), ("GET", "/page/graph.json", "graph", data))
