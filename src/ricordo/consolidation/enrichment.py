"""Who somebody is, in a sentence or two: for those who are named often enough and have no summary yet.

A summary is a memory of its own, of the category `summary`: it is embedded and found like any other, leads to what it
rests on, and goes when that is forgotten. The entity shows it. What a person wrote of somebody is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

from ricordo.clock import from_ms
from ricordo.consolidation.conclusions import (
    MOST_CHARS,
    Decide,
    as_they_were,
    batches,
    concluded,
    conclusion,
    is_vouched_for,
    looked_at,
    resting,
    with_items,
)
from ricordo.consolidation.context import House, Spent, asked, model_of, new_run, paid, room_of
from ricordo.consolidation.evolution import superseded, supersedes
from ricordo.consolidation.judge import CONCLUDED, Refused, clean_handle, fault, handed
from ricordo.consolidation.pages import own_words, who
from ricordo.consolidation.prompts import enrichment, one_line
from ricordo.consolidation.proposal import ProposedSummary, Summaries
from ricordo.consolidation.suppression import as_shown
from ricordo.ids import new_id
from ricordo.model import SUMMARY_MEMORY, Change, Entity, Node, Run, RunItem
from ricordo.storage import Snapshot

LEAST_MENTIONS = 3
"""Who is named in fewer memories needs no summary."""

MOST_ENTITIES = 20
"""How many a run sums up; the next goes on."""

_PROMPT = "enrich.1"
_CANDIDATES = 200
_EACH = 5
_FACTS, _MENTIONS, _LINES = 40, 20, 16
_LINE_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Somebody, and what a model is shown of what is known of them."""

    entity: Entity
    memories: tuple[Node, ...]

    @property
    def text(self) -> str:
        """All of it, to be counted."""
        return "\n".join((self.entity.name, *(line_of(node) for node in self.memories)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """A summary that may be kept, and what it rests on."""

    entity: Entity
    text: str
    evidence: tuple[Node, ...]


async def enrich(house: House, *, dry_run: bool = False) -> Run:
    """Sum up who is named in at least three memories and has no summary.

    Raises:
        UnavailableError: no language model is chosen.
    """
    model_of(house)
    run = new_run(house, "enrichment", prompt=_PROMPT, dry_run=dry_run)
    known = await to_enrich(house)
    if not known:
        return run

    async def work(spent: Spent) -> Decide:
        found, refused = await _found(house, known, spent)
        dear = paid(run, spent, house.limits)
        return lambda tx: _change(tx, house, dear, known, found, refused)

    return await concluded(house, run, work)


async def to_enrich(house: House) -> list[Known]:
    """Whom a run would sum up, those who are named most often first."""
    return await house.store.read(lambda tx: _to_enrich(tx, house))


def _to_enrich(snapshot: Snapshot, house: House) -> list[Known]:
    space = snapshot.space(*house.place)
    rows = snapshot.rows("entities_to_enrich", {"space": space, "least": LEAST_MENTIONS, "most": _CANDIDATES})
    keys = [key for (key,) in rows]
    found = {entity.key: entity for entity in snapshot.entities.by_key(house.scope, keys)}
    seen = _seen(snapshot, house)
    known: list[Known] = []
    for entity in (found[key] for key in keys if key in found):
        memories = memories_of(snapshot, house, entity)
        if len(known) < MOST_ENTITIES and not {node.key for node in memories} <= seen:
            known.append(Known(entity=entity, memories=memories))
    return known


def _seen(snapshot: Snapshot, house: House) -> set[int]:
    """What earlier runs were shown and made no summary of."""
    return {key for _, shown in looked_at(snapshot, house, "enrichment") for key in shown}


def memories_of(snapshot: Snapshot, house: House, entity: Entity) -> tuple[Node, ...]:
    """The best of what is known of somebody, what merely names them after it, in the order of time."""
    now = house.now()
    about = snapshot.entities.latest(entity.key, "subject", now=now, most=_FACTS)
    named = snapshot.entities.latest(entity.key, "mention", now=now, most=_MENTIONS)
    best = sorted(about, key=lambda each: each.confidence * exp(0.2 * each.score), reverse=True)
    nodes = snapshot.nodes.by_key(house.scope, [each.key for each in (*best, *named)])
    chosen = [nodes[each.key] for each in (*best, *named) if each.key in nodes and may_rest_on(nodes[each.key])]
    shown = as_shown(snapshot, chosen)[:_LINES]
    return tuple(sorted(shown, key=lambda node: (node.event_time, node.key)))


def may_rest_on(node: Node) -> bool:
    """Whether a summary may rest on a memory: not on conclusions, nor on what an assistant or a tool said. Pure."""
    is_conclusion = node.category in ("summary", "reflection")
    is_answer = node.type == "episodic" and node.role in ("assistant", "system", "tool")
    return not is_conclusion and not is_answer and is_vouched_for(node)


def line_of(node: Node) -> str:
    """A memory as a model is shown it: of a message, who said it."""
    said = f"{who(node)}: " if node.type == "episodic" else ""
    return f"{said}{one_line(own_words(node))}"[:_LINE_CHARS]


async def _found(house: House, known: Sequence[Known], spent: Spent) -> tuple[list[Summed], list[Refused]]:
    model, found, refused = model_of(house), list[Summed](), list[Refused]()
    room = room_of(model, house.tokens, _PROMPT)
    for part in batches(known, lambda each: each.text, room=room, most=_EACH, tokens=house.tokens):
        them, lines = _handles(part)
        shown = [
            (handle, _named(each.entity), [(line, line_of(node)) for line, node in lines[handle].items()])
            for handle, each in them.items()
        ]
        said = await asked(model, enrichment(shown), Summaries, spent)
        for each in said.summaries:
            handle = clean_handle(each.entity)
            if handle in them:
                summed = judged(house, each, them[handle].entity, lines[handle])
                (found if isinstance(summed, Summed) else refused).append(summed)  # type: ignore[arg-type]  # one of two
    return list({each.entity.id: each for each in found}.values()), refused


def _handles(part: Sequence[Known]) -> tuple[dict[str, Known], dict[str, dict[str, Node]]]:
    """Short names for everybody, and for everything that is known of each."""
    them = {f"p{number}": each for number, each in enumerate(part, start=1)}
    lines: dict[str, dict[str, Node]] = {}
    count = 0
    for handle, each in them.items():
        lines[handle] = {f"m{count + place}": node for place, node in enumerate(each.memories, start=1)}
        count += len(each.memories)
    return them, lines


def _named(entity: Entity) -> str:
    what = ", ".join(part for part in (entity.type, entity.relation) if part)
    return f"{entity.name} ({what})"


def judged(house: House, given: ProposedSummary, entity: Entity, lines: Mapping[str, Node]) -> Summed | Refused:
    """A summary that may be kept, or why it may not."""
    text = " ".join(given.text.split())
    evidence = handed(given.evidence, lines)
    reason = fault(text, evidence, house.rules, most_chars=MOST_CHARS)
    if reason or evidence is None:
        return Refused(text=text[:MOST_CHARS], reason=reason)
    return Summed(entity=entity, text=text, evidence=evidence)


def _change(
    snapshot: Snapshot,
    house: House,
    run: Run,
    known: Sequence[Known],
    found: Sequence[Summed],
    refused: Sequence[Refused],
) -> tuple[Change, Run]:
    items = [RunItem(what="refused", text=each.text, reason=each.reason) for each in refused]
    change = Change()
    for each in found:
        part = summary_change(snapshot, house, each)
        if part is None:
            items.append(RunItem(what="refused", text=each.text, reason="something has changed meanwhile"))
            continue
        change = replace(
            change,
            add=(*change.add, *part.add),
            put=(*change.put, *part.put),
            link=(*change.link, *part.link),
            put_entities=(*change.put_entities, *part.put_entities),
            subjects=(*change.subjects, *part.subjects),
        )
        evidence = tuple(node.id for node in each.evidence)
        items.append(RunItem(what="added", id=part.add[0].id, text=each.text, evidence=evidence))
    summed = {each.entity.id for each in found}
    left = [node.key for each in known if each.entity.id not in summed for node in each.memories]
    seen = snapshot.nodes.by_key(house.scope, sorted({*left, *_seen(snapshot, house)}))
    ids = tuple(node.id for node in seen.values() if node.is_live)
    done = with_items(house, run, [*items, RunItem(what="looked", reason=f"{len(known)} names", evidence=ids)])
    return replace(change, runs=(done,)), done


def summary_change(snapshot: Snapshot, house: House, summed: Summed) -> Change | None:
    """What gives somebody a summary; None where they have one by now, or what it rests on has changed."""
    entity = snapshot.entities.by_id(house.scope, summed.entity.id)
    there = as_they_were(snapshot, house, summed.evidence)
    if entity is None or entity.id != summed.entity.id or entity.summary != summed.entity.summary:
        return None
    if len(there) < len(summed.evidence):
        return None
    node = conclusion(
        house,
        summed.text,
        summed.evidence,
        node_id=new_id(house.now()),
        type="semantic",
        category="summary",
        sure=CONCLUDED,
        about=(entity.name,),
    )
    if house.terms.is_withheld(snapshot, node, summed.evidence):
        return None
    before = snapshot.nodes.get(house.scope, entity.attributes.get(SUMMARY_MEMORY, ""))
    is_renewed = before is not None and before.is_live
    at = from_ms(house.now())
    return Change(
        add=(node,),
        subjects=((node.id, entity.id),),
        put=(superseded(before, by=node, at=at),) if before is not None and is_renewed else (),
        link=(
            *resting(node, summed.evidence),
            *((supersedes(node, before, [each.id for each in summed.evidence]),) if before and is_renewed else ()),
        ),
        put_entities=(
            replace(
                entity, summary=node.content, last_updated=at, attributes={**entity.attributes, SUMMARY_MEMORY: node.id}
            ),
        ),
    )
