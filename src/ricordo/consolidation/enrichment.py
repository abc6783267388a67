"""Summaries of entities: a sentence or two on each entity that is mentioned often and has no summary yet.

A summary is a memory of the category `summary`: it is embedded and found like any other, linked to its evidence, and
deleted when its evidence is forgotten. The entity displays it. Summaries written by people are not changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ricordo.clock import from_ms, new_id
from ricordo.consolidation.apply import add_items, conclusion, evidence_edges
from ricordo.consolidation.conclusions import MAX_CHARS, Decide, last_looked, may_conclude_from, run_alone, unchanged
from ricordo.consolidation.context import (
    ConsolidationContext,
    Spent,
    as_shown,
    ask_model,
    batches,
    new_run,
    prompt_room,
    require_model,
    with_cost,
)
from ricordo.consolidation.evidence import NEW_VALUE, new_values
from ricordo.consolidation.evolution import superseded, supersedes
from ricordo.consolidation.judge import CONCLUDED, Refused, cited, clean_handle, rejection
from ricordo.consolidation.prompts import enrichment, one_line, own_words, speaker_label
from ricordo.consolidation.proposed import ProposedSummary, Summaries
from ricordo.consolidation.resolve import is_withheld
from ricordo.decay import belief
from ricordo.model import SUMMARY_MEMORY, Change, Entity, Node, Run, RunItem
from ricordo.storage import Snapshot

MIN_MENTIONS = 3
"""Minimum number of memories that name an entity to be summarised."""

MAX_ENTITIES = 20
"""Maximum number of entities per run. The next run continues."""

_PROMPT = "enrich.1"
_CANDIDATES = 200
_ENTITIES_IN_PROMPT = 5
_FACTS, _MENTIONS, _LINES = 40, 20, 16
_LINE_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMemories:
    """An entity, and the memories about it that are shown to a model."""

    entity: Entity
    memories: tuple[Node, ...]

    @property
    def text(self) -> str:
        """The complete text, for counting tokens."""
        return "\n".join((self.entity.name, *(_line(node) for node in self.memories)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySummary:
    """A summary that may be stored, and its evidence."""

    entity: Entity
    text: str
    evidence: tuple[Node, ...]


async def enrich(context: ConsolidationContext, *, dry_run: bool = False) -> Run:
    """Summarise entities that are named in at least three memories and have no summary.

    Raises:
        UnavailableError: no language model is configured.
    """
    require_model(context)
    run = new_run(context, "enrichment", prompt=_PROMPT, dry_run=dry_run)
    known = await to_enrich(context)
    if not known:
        return run

    async def work(spent: Spent) -> Decide:
        found, refused = await _ask_summaries(context, known, spent)
        paid = with_cost(run, spent, context.limits)
        return lambda tx: _change(tx, context, paid, known, found, refused)

    return await run_alone(context, run, work)


async def to_enrich(context: ConsolidationContext) -> list[EntityMemories]:
    """Return the entities that a run would summarise, most frequently named first."""
    return await context.store.read(lambda tx: _to_enrich(tx, context))


def _to_enrich(snapshot: Snapshot, context: ConsolidationContext) -> list[EntityMemories]:
    keys = snapshot.entities.to_summarise(*context.place, least=MIN_MENTIONS, most=_CANDIDATES)
    found = {entity.key: entity for entity in snapshot.entities.by_key(context.scope, keys)}
    seen = _seen(snapshot, context)
    known: list[EntityMemories] = []
    for entity in (found[key] for key in keys if key in found):
        memories = _memories_of(snapshot, context, entity)
        if len(known) < MAX_ENTITIES and not {node.key for node in memories} <= seen:
            known.append(EntityMemories(entity=entity, memories=memories))
    return known


def _seen(snapshot: Snapshot, context: ConsolidationContext) -> set[int]:
    """Return the keys of memories that earlier runs were shown without producing a summary from them."""
    return {key for _, shown in last_looked(snapshot, context, "enrichment") for key in shown}


def _memories_of(snapshot: Snapshot, context: ConsolidationContext, entity: Entity) -> tuple[Node, ...]:
    """Return the best facts about an entity, then memories that only name it, in order of time."""
    now = context.now()
    about = snapshot.entities.latest(entity.key, "subject", now=now, most=_FACTS)
    named = snapshot.entities.latest(entity.key, "mention", now=now, most=_MENTIONS)
    best = sorted(about, key=lambda each: belief(each.confidence, each.score), reverse=True)
    nodes = snapshot.nodes.by_key(context.scope, [each.key for each in (*best, *named)])
    chosen = [nodes[each.key] for each in (*best, *named) if each.key in nodes and may_rest_on(nodes[each.key])]
    shown = as_shown(snapshot, chosen)[:_LINES]
    return tuple(sorted(shown, key=lambda node: (node.event_time, node.key)))


def may_rest_on(node: Node) -> bool:
    """Return whether a summary may be based on a memory: not on conclusions, nor on assistants' or tools' messages."""
    is_conclusion = node.category in ("summary", "reflection")
    is_answer = node.type == "episodic" and node.role in ("assistant", "system", "tool")
    return not is_conclusion and not is_answer and may_conclude_from(node)


def _line(node: Node) -> str:
    """Return a memory as shown to a model; a message with its speaker."""
    said = f"{speaker_label(node)}: " if node.type == "episodic" else ""
    return f"{said}{one_line(own_words(node))}"[:_LINE_CHARS]


async def _ask_summaries(
    context: ConsolidationContext, known: Sequence[EntityMemories], spent: Spent
) -> tuple[list[EntitySummary], list[Refused]]:
    model, found, refused = require_model(context), list[EntitySummary](), list[Refused]()
    room = prompt_room(model, context.tokens, _PROMPT)
    for part in batches(known, lambda each: each.text, room=room, most=_ENTITIES_IN_PROMPT, tokens=context.tokens):
        entities, lines = _handles(part)
        shown = [
            (handle, _label(each.entity), [(line, _line(node)) for line, node in lines[handle].items()])
            for handle, each in entities.items()
        ]
        answer = await ask_model(context, enrichment(shown), Summaries, spent)
        for each in answer.summaries:
            handle = clean_handle(each.entity)
            if handle in entities:
                summary = judge_summary(context, each, entities[handle].entity, lines[handle])
                (found if isinstance(summary, EntitySummary) else refused).append(summary)  # type: ignore[arg-type]  # one of two
    return list({each.entity.id: each for each in found}.values()), refused


def _handles(part: Sequence[EntityMemories]) -> tuple[dict[str, EntityMemories], dict[str, dict[str, Node]]]:
    """Return handles for entities, and for the memories of each."""
    entities = {f"p{number}": each for number, each in enumerate(part, start=1)}
    lines: dict[str, dict[str, Node]] = {}
    count = 0
    for handle, each in entities.items():
        lines[handle] = {f"m{count + place}": node for place, node in enumerate(each.memories, start=1)}
        count += len(each.memories)
    return entities, lines


def _label(entity: Entity) -> str:
    what = ", ".join(part for part in (entity.type, entity.relation) if part)
    return f"{entity.name} ({what})"


def judge_summary(
    context: ConsolidationContext, given: ProposedSummary, entity: Entity, lines: Mapping[str, Node]
) -> EntitySummary | Refused:
    """Return a summary that may be stored, or the reason for refusal."""
    text = " ".join(given.text.split())
    evidence = cited(given.evidence, lines)
    reason = rejection(text, evidence, context.rules, max_chars=MAX_CHARS)
    if reason or evidence is None:
        return Refused(text=text[:MAX_CHARS], reason=reason)
    names = " ".join((entity.name, *entity.aliases))
    if new_values(text, [names, *(f"{node.speaker or ''} {node.content}" for node in evidence)]):
        return Refused(text=text[:MAX_CHARS], reason=NEW_VALUE)
    return EntitySummary(entity=entity, text=text, evidence=evidence)


def _change(
    snapshot: Snapshot,
    context: ConsolidationContext,
    run: Run,
    known: Sequence[EntityMemories],
    found: Sequence[EntitySummary],
    refused: Sequence[Refused],
) -> tuple[Change, Run]:
    items = [RunItem(what="refused", text=each.text, reason=each.reason) for each in refused]
    change = Change()
    for each in found:
        part = summary_change(snapshot, context, each)
        if part is None:
            items.append(RunItem(what="refused", text=each.text, reason="something has changed since"))
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
    summarised = {each.entity.id for each in found}
    left = [node.key for each in known if each.entity.id not in summarised for node in each.memories]
    seen = snapshot.nodes.by_key(context.scope, sorted({*left, *_seen(snapshot, context)}))
    ids = tuple(node.id for node in seen.values() if node.is_live)
    looked = RunItem(what="looked", reason=f"{len(known)} names", evidence=ids)
    done = add_items(run, [*items, looked], at=from_ms(context.now()))
    return replace(change, runs=(done,)), done


def summary_change(snapshot: Snapshot, context: ConsolidationContext, summary: EntitySummary) -> Change | None:
    """Return the change that gives an entity a summary; None if its summary or the evidence has changed meanwhile."""
    entity = snapshot.entities.by_id(context.scope, summary.entity.id)
    there = unchanged(snapshot, context, summary.evidence)
    if entity is None or entity.id != summary.entity.id or entity.summary != summary.entity.summary:
        return None
    if len(there) < len(summary.evidence):
        return None
    node = conclusion(
        summary.text,
        summary.evidence,
        place=context.place,
        node_id=new_id(context.now()),
        at=from_ms(context.now()),
        type="semantic",
        category="summary",
        sure=CONCLUDED,
        about=(entity.name,),
    )
    if is_withheld(snapshot, node, summary.evidence):
        return None
    at = from_ms(context.now())
    link, put = evidence_edges(node, summary.evidence), tuple[Node, ...]()
    before = snapshot.nodes.get(context.scope, entity.attributes.get(SUMMARY_MEMORY, ""))
    if before is not None and before.is_live:
        put = (superseded(before, by=node, at=at),)
        link = (*link, supersedes(node, before, [each.id for each in summary.evidence]))
    attributes = {**entity.attributes, SUMMARY_MEMORY: node.id}
    return Change(
        add=(node,),
        subjects=((node.id, entity.id),),
        put=put,
        link=link,
        put_entities=(replace(entity, summary=node.content, last_updated=at, attributes=attributes),),
    )
