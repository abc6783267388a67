"""Looking back: what the memories of a span of time show together, and none of them says alone.

A reflection is a memory of the category `reflection`, unsure as everything that is concluded, with edges to what it
rests on; it goes when that is forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ricordo.clock import from_ms
from ricordo.consolidation.conclusions import (
    MOST_CHARS,
    Decide,
    as_they_were,
    concluded,
    conclusion,
    is_vouched_for,
    looked_at,
    resting,
    with_items,
)
from ricordo.consolidation.context import House, Spent, asked, model_of, new_run, paid, room_of
from ricordo.consolidation.judge import Refused, fault, handed
from ricordo.consolidation.prompts import one_line, reflection
from ricordo.consolidation.proposal import ProposedReflection, Reflections
from ricordo.consolidation.suppression import as_shown, is_much_the_same
from ricordo.ids import new_id
from ricordo.model import Change, Node, Run, RunItem
from ricordo.storage import Snapshot
from ricordo.text import name_terms

LEAST_EVIDENCE = 2
"""What rests on a single memory is that memory in other words."""

_PROMPT = "reflect.1"
_MOST_MEMORIES = 200
_MOST_REFLECTIONS = 5
_LINE_CHARS = 300
_MOST_ABOUT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A reflection that may be kept, how sure the model is of it, and what it rests on."""

    text: str
    about: tuple[str, ...]
    sure: float
    evidence: tuple[Node, ...]


async def reflect(house: House, *, after: int, before: int, dry_run: bool = False) -> Run:
    """Have a model look back on what was learnt of a span of time. Where it has seen all of that before, nothing is
    asked.

    Args:
        after, before: Unix milliseconds; `before` is exclusive.

    Raises:
        UnavailableError: no language model is chosen.
    """
    model = model_of(house)
    run = new_run(house, "reflection", prompt=_PROMPT, dry_run=dry_run)
    learnt, seen = await house.store.read(lambda tx: _learnt(tx, house, after=after, before=before))
    shown = _fitting(house, learnt, room=room_of(model, house.tokens, _PROMPT))
    if len(shown) < LEAST_EVIDENCE or {node.key for node in shown} <= seen:
        return run

    async def work(spent: Spent) -> Decide:
        out = {f"m{number}": node for number, node in enumerate(shown, start=1)}
        lines = [(handle, node.event_time.date().isoformat(), _line(node)) for handle, node in out.items()]
        span = f"from {from_ms(after).date()} to {from_ms(before - 1).date()}"
        said = await asked(model, reflection(lines, span=span), Reflections, spent)
        judged = [_judged(house, each, out) for each in said.reflections[:_MOST_REFLECTIONS]]
        dear = paid(run, spent, house.limits)
        return lambda tx: _change(tx, house, dear, shown, judged)

    return await concluded(house, run, work)


def _learnt(snapshot: Snapshot, house: House, *, after: int, before: int) -> tuple[list[Node], set[int]]:
    """What was learnt, in order of time, and the keys of what the latest reflection has seen."""
    values = {
        "space": snapshot.space(*house.place),
        "after": after,
        "before": before,
        "now": house.now(),
        "most": _MOST_MEMORIES,
    }
    keys = [key for (key,) in snapshot.rows("learnt_between", values)]
    seen = {key for _, shown in looked_at(snapshot, house, "reflection") for key in shown}
    found = snapshot.nodes.by_key(house.scope, keys)
    kept = [found[key] for key in keys if key in found and is_vouched_for(found[key])]
    return list(as_shown(snapshot, kept)), seen


def _fitting(house: House, nodes: Sequence[Node], *, room: int) -> list[Node]:
    """The latest of them that fit into a prompt, in order."""
    fitting: list[Node] = []
    for node in reversed(nodes):
        room -= house.tokens.count(_line(node)) + 12
        if room < 0:
            break
        fitting.append(node)
    return fitting[::-1]


def _line(node: Node) -> str:
    return one_line(node.content)[:_LINE_CHARS]


def _judged(house: House, given: ProposedReflection, out: dict[str, Node]) -> _Seen | Refused:
    """A reflection that may be kept, or why it may not."""
    text = " ".join(given.text.split())
    evidence = handed(given.evidence, out)
    reason = fault(text, evidence, house.rules, sure=given.confidence, least=LEAST_EVIDENCE, most_chars=MOST_CHARS)
    if reason or evidence is None:
        return Refused(text=text[:MOST_CHARS], reason=reason)
    return _Seen(text=text, about=_about(given.about, evidence), sure=given.confidence, evidence=evidence)


def _about(names: Sequence[str], evidence: Sequence[Node]) -> tuple[str, ...]:
    """Whom it is about, of those whom its evidence is about or names."""
    used = {term for node in evidence for term in name_terms(" ".join((node.content, *node.about)))}
    given = (" ".join(name.split()) for name in names[:_MOST_ABOUT])
    return tuple(dict.fromkeys(name for name in given if name and used.issuperset(name_terms(name))))


def _change(
    snapshot: Snapshot, house: House, run: Run, shown: Sequence[Node], judged: Sequence[_Seen | Refused]
) -> tuple[Change, Run]:
    """The reflections of what still says what was shown; what an earlier one says already is left out."""
    there = as_they_were(snapshot, house, shown)
    items = [
        RunItem(what="refused", text=each.text, reason=each.reason) for each in judged if isinstance(each, Refused)
    ]
    added: dict[str, tuple[Node, _Seen]] = {}
    for each in judged:
        if isinstance(each, Refused):
            continue
        evidence = tuple(node.id for node in each.evidence)
        node = conclusion(
            house,
            each.text,
            each.evidence,
            node_id=new_id(house.now()),
            type="opinion",
            category="reflection",
            sure=each.sure,
            about=each.about,
        )
        if not set(evidence) <= there.keys():
            items.append(RunItem(what="refused", text=each.text, reason="its evidence has changed"))
        elif house.terms.is_withheld(snapshot, node, each.evidence):
            items.append(RunItem(what="refused", text=each.text, reason="was forgotten"))
        elif (same := _said_before(snapshot, house, each)) is not None:
            items.append(RunItem(what="repeated", id=same.id, text=each.text, evidence=evidence))
        else:
            added[node.id] = node, each
            items.append(RunItem(what="added", id=node.id, text=each.text, evidence=evidence))
    seen = RunItem(what="looked", reason=f"{len(there)} memories", evidence=tuple(there))
    done = with_items(house, run, [*items, seen])
    nodes = tuple(node for node, _ in added.values())
    change = house.terms.acquaint(snapshot, Change(add=nodes), (), (), scope=house.scope, now=house.now())
    links = tuple(edge for node, each in added.values() for edge in resting(node, each.evidence, sure=each.sure))
    return replace(change, link=links, runs=(done,)), done


def _said_before(snapshot: Snapshot, house: House, seen: _Seen) -> Node | None:
    """A reflection that rests on some of the same memories and says much the same."""
    values = {"nodes": json.dumps([node.key for node in seen.evidence])}
    found = snapshot.nodes.by_key(house.scope, [key for (key,) in snapshot.rows("reflections_on", values)])
    return next((node for node in found.values() if is_much_the_same(node.content, seen.text)), None)
