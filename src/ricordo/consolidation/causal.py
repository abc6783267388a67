"""What led to what: where somebody says so in words, of two messages that follow one another, an edge is drawn.

Only what people said counts, one after the other in a conversation, an assistant's answers between left out. Pairs in
which nobody says why are shown to no model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ricordo.consolidation.apply import CAUSAL_CONFIDENCE
from ricordo.consolidation.conclusions import (
    Decide,
    as_they_were,
    batches,
    concluded,
    is_vouched_for,
    looked_at,
    with_items,
)
from ricordo.consolidation.context import House, Spent, asked, model_of, new_run, paid, room_of
from ricordo.consolidation.judge import clean_handle, says_why
from ricordo.consolidation.pages import own_words, who
from ricordo.consolidation.prompts import causation, one_line
from ricordo.consolidation.proposal import Causes
from ricordo.consolidation.suppression import as_shown
from ricordo.model import Change, Edge, Node, Run, RunItem
from ricordo.storage import Snapshot

MOST_PAIRS = 50
"""How many pairs a run looks at."""

_PROMPT = "causes.1"
_SCAN = 1_000
_CHARS = 400
_PAIRS_EACH = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    first: Node
    then: Node

    @property
    def lines(self) -> tuple[str, str]:
        """Both messages as a model is shown them."""
        return _line(self.first), _line(self.then)


def _line(node: Node) -> str:
    return f"{who(node)}: {one_line(own_words(node))}"[:_CHARS]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """The pairs a run is to look at, and the key of the last message it went through."""

    pairs: tuple[_Pair, ...] = ()
    through: int = 0


async def infer_causes(house: House, *, dry_run: bool = False) -> Run:
    """Draw causal edges between messages that follow one another, and between what was learnt of them.

    Raises:
        UnavailableError: no language model is chosen.
    """
    model_of(house)
    run = new_run(house, "causes", prompt=_PROMPT, dry_run=dry_run)
    look = await looked(house)
    if not look.pairs:
        return run

    async def work(spent: Spent) -> Decide:
        found = await _found(house, look.pairs, spent)
        dear = paid(run, spent, house.limits)
        return lambda tx: _change(tx, house, dear, look, found)

    return await concluded(house, run, work)


async def looked(house: House) -> _Look:
    """The next pairs in which somebody says why, from where the run before ended."""
    through = await house.store.read(lambda tx: _begin(tx, house))
    pairs: list[_Pair] = []
    while len(pairs) < MOST_PAIRS:
        part = await house.store.read(lambda tx, after=through: _next(tx, house, after))  # type: ignore[misc]
        if part is None:
            break
        fits = part.pairs[: MOST_PAIRS - len(pairs)]
        pairs += fits
        through = part.through if len(fits) == len(part.pairs) else fits[-1].then.key
    return _Look(pairs=tuple(pairs), through=through)


def _begin(snapshot: Snapshot, house: House) -> int:
    return max((node for node, _ in looked_at(snapshot, house, "causes") if node is not None), default=0)


def _next(snapshot: Snapshot, house: House, after: int) -> _Look | None:
    """The pairs among the next messages; None where there are none."""
    values = {"space": snapshot.space(*house.place), "after": after, "most": _SCAN}
    through = snapshot.value("messages_after", values)
    if through is None:
        return None
    keys = snapshot.rows("pairs_to_look_at", values)
    nodes = snapshot.nodes.by_key(house.scope, {key for pair in keys for key in pair})
    shown = {node.key: node for node in as_shown(snapshot, list(nodes.values())) if is_vouched_for(node)}
    pairs = (_Pair(first=shown[one], then=shown[two]) for one, two in keys if one in shown and two in shown)
    return _Look(pairs=tuple(each for each in pairs if _is_worth_asking(snapshot, each)), through=through)


def _is_worth_asking(snapshot: Snapshot, pair: _Pair) -> bool:
    is_said = any(says_why(line) for line in pair.lines)
    return is_said and not is_linked(snapshot, pair.first.key, pair.then.key)


def is_linked(snapshot: Snapshot, one: int, other: int) -> bool:
    """Whether it is known already that one of two memories (keys) led to the other."""
    return bool(snapshot.rows("causal_between", {"one": one, "other": other}))


async def _found(house: House, pairs: Sequence[_Pair], spent: Spent) -> list[tuple[Node, Node]]:
    """The pairs (cause, effect) in which, a model says, somebody says so."""
    model, causes = model_of(house), list[tuple[Node, Node]]()
    room = room_of(model, house.tokens, _PROMPT)
    for part in batches(pairs, lambda pair: "\n".join(pair.lines), room=room, most=_PAIRS_EACH, tokens=house.tokens):
        handles = {f"p{number}": pair for number, pair in enumerate(part, start=1)}
        shown = [(handle, *pair.lines) for handle, pair in handles.items()]
        said = await asked(model, causation(shown), Causes, spent)
        for each in said.causes:
            pair = handles.get(clean_handle(each.pair))
            if pair is None or not house.rules.min_confidence <= each.confidence <= 1:
                continue
            if each.cause in ("first", "then"):
                causes.append((pair.first, pair.then) if each.cause == "first" else (pair.then, pair.first))
    return list({frozenset((cause.id, effect.id)): (cause, effect) for cause, effect in causes}.values())


def _change(
    snapshot: Snapshot, house: House, run: Run, look: _Look, found: Sequence[tuple[Node, Node]]
) -> tuple[Change, Run]:
    """The edges of what still says what was shown, and how far the run has come."""
    if _begin(snapshot, house) >= look.through:  # another run has been there meanwhile
        return Change(), run
    there = as_they_were(snapshot, house, {node.id: node for pair in found for node in pair}.values())
    links: dict[tuple[str, str], Edge] = {}
    items: list[RunItem] = []
    for cause, effect in found:
        if not {cause.id, effect.id} <= there.keys() or is_linked(snapshot, cause.key, effect.key):
            continue
        for source, target in ((cause.id, effect.id), *_learnt_from(snapshot, house, cause, effect)):
            links.setdefault((source, target), edge_between(source, target, evidence=(cause.id, effect.id)))
        items.append(RunItem(what="cause", id=cause.id, text=cause.content, other=effect.id))
    last = snapshot.nodes.by_key(house.scope, [look.through]).get(look.through)
    last_id = look.pairs[-1].then.id if last is None else last.id
    done = with_items(house, run, [*items, RunItem(what="looked", id=last_id, reason=f"{len(look.pairs)} pairs")])
    return Change(link=tuple(links.values()), runs=(done,)), done


def _learnt_from(snapshot: Snapshot, house: House, cause: Node, effect: Node) -> list[tuple[str, str]]:
    """The first memories that rest on each of two messages: what led to what holds of them, too."""
    first = [_first_resting(snapshot, house, node) for node in (cause, effect)]
    return [(first[0], first[1])] if first[0] and first[1] and first[0] != first[1] else []


def _first_resting(snapshot: Snapshot, house: House, node: Node) -> str | None:
    keys = snapshot.rows("resting_on", {"evidence": json.dumps([node.id]), "most": 5})
    nodes = snapshot.nodes.by_key(house.scope, [key for (key,) in keys])
    kept = (each for each in nodes.values() if each.category not in ("reflection", "summary"))
    return next((each.id for each in kept), None)


def edge_between(source: str, target: str, *, evidence: tuple[str, str]) -> Edge:
    """One thing led to the other; `evidence` are the messages of which either says so."""
    return Edge(
        source=source, target=target, type="causal", predicate="led to", confidence=CAUSAL_CONFIDENCE, evidence=evidence
    )
