"""What the works that conclude something from memories have in common: one process at a time, within the budget, kept
whole or not at all, and how a conclusion becomes a memory.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from ricordo.clock import from_ms
from ricordo.consolidation.apply import SURE, tier_of
from ricordo.consolidation.context import House, Spent, spending, why_failed
from ricordo.consolidation.judge import CONCLUDED
from ricordo.consolidation.lease import leased
from ricordo.consolidation.suppression import as_shown
from ricordo.errors import RicordoError
from ricordo.model import Category, Change, Edge, Node, NodeType, Run, RunItem
from ricordo.ports import TokenCounter
from ricordo.storage import Snapshot
from ricordo.trust import awaits_a_word, capped, role_of_derived, trust_of

T = TypeVar("T")

MOST_CHARS = 500
"""How long a conclusion may be."""

Decide = Callable[[Snapshot], tuple[Change, Run]]
"""What of a model's answer still holds in the moment of writing: the change, and the run with what it does."""

Work = Callable[[Spent], Awaitable[Decide]]
"""Asks a model, outside any transaction, and returns what is to be decided."""


async def concluded(house: House, run: Run, work: Work) -> Run:
    """Do a work of a kind alone, and keep what comes of it as one commit under the id of its run. What fails leaves
    nothing behind; a dry run neither.
    """
    try:
        if run.state == "dry":
            async with spending(house) as spent:
                decide = await work(spent)
            found = await house.store.read(lambda tx: decide(tx)[1])
        else:
            space = await house.store.read(lambda tx: tx.space(*house.place))
            async with leased(house.store, f"{run.kind} {space}") as is_ours:
                found = await _kept(house, run, work) if is_ours else _left(run)
    except RicordoError as error:
        reason = why_failed(error)
        found = replace(run, state="failed", reason=reason, items=(RunItem(what="failed", reason=reason),))
    return replace(found, ended_at=from_ms(house.now()))


async def _kept(house: House, run: Run, work: Work) -> Run:
    async with spending(house) as spent:
        decide = await work(spent)
    reason = house.reason(_VERBS[run.kind], run.id)
    return await house.store.write(decide, scope=house.scope, reason=reason, at=from_ms(house.now()))


_VERBS = {"reflection": "reflect", "enrichment": "enrich", "causes": "infer causes"}


def _left(run: Run) -> Run:
    return replace(run, items=(RunItem(what="left", reason="somebody else is at it just now"),))


def conclusion(
    house: House,
    text: str,
    evidence: Sequence[Node],
    *,
    node_id: str,
    type: NodeType,
    category: Category,
    sure: float,
    about: tuple[str, ...] = (),
) -> Node:
    """What a model concluded from memories, as a memory: trusted no more than the least of them, and unsure."""
    owner, chat = house.place
    at, tier = from_ms(house.now()), tier_of(evidence)
    last: datetime = max(node.event_time for node in evidence)
    return Node(
        id=node_id,
        type=type,
        category=category,
        content=text,
        owner=owner,
        chat=chat,
        about=about,
        role=role_of_derived([tier]),
        origin=capped("consolidation", "user", caller=tier),
        attributes={SURE: sure},
        event_time=last,
        created_at=at,
        valid_from=last,
        confidence=CONCLUDED,
    )


def resting(node: Node, evidence: Iterable[Node], *, sure: float = 1.0) -> tuple[Edge, ...]:
    """The edges from a conclusion to what it rests on."""
    return tuple(
        Edge(source=node.id, target=each.id, type="derived_from", confidence=min(1.0, sure)) for each in evidence
    )


def is_vouched_for(node: Node) -> bool:
    """Whether conclusions may be drawn from a memory: what tools and pages say is nobody's knowledge yet. Pure."""
    return not awaits_a_word(trust_of(node.origin, node.role))


def as_they_were(snapshot: Snapshot, house: House, shown: Iterable[Node]) -> dict[str, Node]:
    """Those of some memories that still live, and that a model would be shown in the same words, by their ids."""
    before = {node.id: node for node in shown}
    found = (snapshot.nodes.get(house.scope, each) for each in before)
    present = [node for node in found if node is not None and node.is_live]
    return {node.id: node for node in as_shown(snapshot, present) if node.content == before[node.id].content}


def with_items(house: House, run: Run, items: Iterable[RunItem]) -> Run:
    """The run with what it did, and its end."""
    return replace(run, items=tuple(items), ended_at=from_ms(house.now()))


def looked_at(snapshot: Snapshot, house: House, kind: str) -> list[tuple[int | None, list[int]]]:
    """How far the latest run of a kind has come: (key of the last it looked at, keys of what it was shown)."""
    space = snapshot.space(*house.place)
    items = snapshot.value("run_items_last", {"space": space, "kind": kind})
    return [(node, evidence) for what, _, node, _, evidence in json.loads(items or "[]") if what == "looked"]


def batches(
    items: Sequence[T], text: Callable[[T], str], *, room: int, most: int, tokens: TokenCounter
) -> Iterator[list[T]]:
    """Consecutive items, as many together as fit into a prompt; each fits alone, however long.

    Args:
        room: in tokens, of one batch.
        most: how many items a batch has at most.
    """
    held: list[T] = []
    taken = 0
    for item in items:
        cost = tokens.count(text(item)) + 6
        if held and (len(held) >= most or taken + cost > room):
            yield held
            held, taken = [], 0
        held.append(item)
        taken += cost
    if held:
        yield held
