"""What an importer read goes into the store: people first, then messages, facts, relations and links, in batches that
are a commit each. What is there already is left as it is, so an interrupted import goes on where it was.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from ricordo.clock import from_ms
from ricordo.consolidation import quarantine, resolve
from ricordo.encoding import entities, episodes, facts
from ricordo.encoding.episodes import Instant
from ricordo.encoding.validation import TextRules, short_name
from ricordo.errors import InvalidError
from ricordo.model import Change, Edge, Entity, ImportReport, Node, Scope
from ricordo.portability.records import Known, Link, Parsed, Person, Reader, Said, Tie
from ricordo.ports import Progress
from ricordo.storage import Snapshot
from ricordo.text import name_key
from ricordo.text.kinship import SINGLE, predicate_of

T = TypeVar("T", Person, Tie, Link, Node)
M = TypeVar("M", Said, Known)

HELD = "quarantined"

_BATCH = 1_000
_SHOWN_REFUSALS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Importing:
    """What an import needs of the house: whose it is, the present, and the rules for texts and times.

    `holds_untrusted`: whether all that tools and pages say waits, or only what reads like an order.
    """

    scope: Scope
    now: int
    instant: Instant
    rules: TextRules
    holds_untrusted: bool = True

    def held(self, node: Node) -> tuple[str, ...]:
        """Why a fact waits for somebody's word; () where it does not."""
        return quarantine.reasons_to_hold(node, holds_untrusted=self.holds_untrusted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a batch: how many of it are new, how many were there, and why others are neither."""

    added: int = 0
    known: int = 0
    refused: tuple[str, ...] = ()


Decide = Callable[[Snapshot], tuple[Change, Outcome]]


@dataclass(slots=True)
class _Counts:
    """What became of all of them, by kind."""

    added: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)

    def note(self, kind: str, outcome: Outcome) -> None:
        self.added[kind] += outcome.added
        self.known[kind] += outcome.known
        self.refused += outcome.refused


async def bring_in(
    parsed: Parsed,
    importing: Importing,
    *,
    write: Callable[[Decide], Awaitable[Outcome]],
    read: Callable[[Callable[[Snapshot], Outcome]], Awaitable[Outcome]],
    progress: Progress | None,
    dry_run: bool,
) -> ImportReport:
    """Record what a file holds. A dry run decides the same and writes nothing.

    Args:
        write: decides and applies as one commit.
        read: asks from one snapshot.
        progress: told (records so far, records in all).
    """
    counts = _Counts()
    steps = await asyncio.to_thread(_steps, parsed, importing, counts)
    total, done = sum(size for _, size, _ in steps), 0
    for kind, size, decide in steps:
        if not dry_run:
            counts.note(kind, await write(decide))
        elif kind not in ("relations", "links"):  # these are of what a dry run did not bring in
            counts.note(kind, await read(partial(_outcome_of, decide)))
        done += size
        if progress is not None:
            progress(done, total)
    return _report(parsed, counts, dry_run=dry_run)


def _outcome_of(decide: Decide, tx: Snapshot) -> Outcome:
    return decide(tx)[1]


def _steps(parsed: Parsed, importing: Importing, counts: _Counts) -> list[tuple[str, int, Decide]]:
    """(kind, records, decision) of each batch in order. What cannot be stored is told before anything is."""
    chats = replace(importing, scope=replace(importing.scope, owner=""))
    messages = _made(parsed.messages, partial(_episode, importing=importing), counts)
    own = _made([each for each in parsed.facts if not each.in_chat], partial(_knowledge, importing=importing), counts)
    group = _made([each for each in parsed.facts if each.in_chat], partial(_knowledge, importing=chats), counts)
    return [
        *_batches("people", parsed.people, partial(_people, importing)),
        *_batches("messages", messages, partial(_messages, importing)),
        *_batches("facts", own, partial(_facts, importing)),
        *_batches("facts", group, partial(_facts, chats)),
        *_batches("relations", parsed.ties, partial(_ties, importing)),
        *_batches("links", parsed.links, partial(_links, importing)),
    ]


def _batches(
    kind: str, records: Sequence[T], step: Callable[[Sequence[T], Snapshot], tuple[Change, Outcome]]
) -> list[tuple[str, int, Decide]]:
    """Always cut at the same places, so that an import that goes on decides as one that was never interrupted."""
    parts = [records[start : start + _BATCH] for start in range(0, len(records), _BATCH)]
    return [(kind, len(part), partial(step, part)) for part in parts]


def _report(parsed: Parsed, counts: _Counts, *, dry_run: bool) -> ImportReport:
    refused = [*parsed.refused, *counts.refused]
    added = Counter[str]() if dry_run else counts.added
    fresh = counts.added["messages"] + counts.added["facts"]
    known = counts.known["messages"] + counts.known["facts"]
    return ImportReport(
        format=parsed.format,
        read=fresh + known,
        added=0 if dry_run else fresh,
        known=known,
        messages=added["messages"],
        facts=added["facts"],
        people=added["people"],
        relations=added["relations"],
        links=added["links"],
        refused=tuple(refused[:_SHOWN_REFUSALS]),
        refused_count=len(refused),
        sessions=len({each.message.session for each in parsed.messages if each.message.session}),
    )


def _made(records: Sequence[M], node_of: Callable[[M], Node], counts: _Counts) -> list[Node]:
    """The nodes of messages or facts, the earliest first; those that break a rule are refused with their place."""
    found: dict[str, Node] = {}
    for each in records:
        try:
            node = node_of(each)
            found.setdefault(node.id, node)
        except (InvalidError, ValueError, TypeError) as error:
            counts.refused.append(f"{each.place}: {error}")
    return sorted(found.values(), key=lambda node: node.event_time)


def _episode(said: Said, importing: Importing) -> Node:
    node = episodes.episode(
        said.message, scope=importing.scope, now=importing.now, instant=importing.instant, rules=importing.rules
    )
    return replace(node, tags=said.tags) if said.tags else node


def _knowledge(known: Known, importing: Importing) -> Node:
    """The node of a fact from elsewhere: of the time it was observed, recorded now."""
    node = facts.knowledge(
        known.fact, scope=importing.scope, now=importing.now, instant=importing.instant, rules=importing.rules
    )
    at = node.event_time if known.at is None else from_ms(importing.instant(known.at, "event_time"))
    until = None if known.ended is None else from_ms(importing.instant(known.ended, "valid_until"))
    decay = node.decay_rate if known.decay_rate is None else known.decay_rate
    if known.closed is None and importing.held(node):
        node = quarantine.held(node, at=from_ms(importing.now))
    elif known.closed is not None:
        node = replace(node, closed_at=from_ms(importing.now), closed_reason=known.closed)
    return replace(
        node,
        event_time=at,
        valid_from=at if known.fact.valid_from is None else node.valid_from,
        valid_until=until,
        score=known.score,
        decay_rate=decay,
    )


# one batch of a kind, inside the transaction


def _people(importing: Importing, batch: Sequence[Person], tx: Snapshot) -> tuple[Change, Outcome]:
    """Who is not known by that name becomes known; who is keeps their kind and gets the names that are new."""
    gathered = entities.People(tx, scope=importing.scope, now=importing.now)
    fresh: dict[str, Entity] = {}
    put: dict[str, Entity] = {}
    refused: list[str] = []
    for person in batch:
        try:
            name = short_name(person.name, name="name") or ""
            entity = fresh.get(name_key(name)) or gathered.known(name)
            if entity is None:
                entity = entities.new_entity(
                    name, scope=importing.scope, now=importing.now, type=person.type, aliases=person.aliases
                )
                gathered.introduce(entity)
                fresh |= {name_key(each): entity for each in (name, *entity.aliases)}
            elif entity.key:
                _also_called(entity, person, put)
            _relate(tx, gathered, importing.scope, person.relation, entity)
        except InvalidError as error:
            refused.append(f"{person.place}: {error}")
    change = gathered.into(Change(put_entities=tuple(put.values())))
    added = len(change.entities)
    return change, Outcome(added=added, known=len(batch) - added, refused=tuple(refused))


def _also_called(entity: Entity, person: Person, put: dict[str, Entity]) -> None:
    entity = put.get(entity.id, entity)
    fresh = tuple(each for each in entities.names_of(person.aliases) if each not in (entity.name, *entity.aliases))
    if fresh:
        put[entity.id] = replace(entity, aliases=(*entity.aliases, *fresh))


def _relate(tx: Snapshot, gathered: entities.People, scope: Scope, relation: str | None, entity: Entity) -> None:
    """What somebody is to the owner, unless another is that already: a file does not end a marriage.

    Raises:
        InvalidError: another is.
    """
    if relation is None:
        return
    predicate = predicate_of(short_name(relation, name="relation") or "")
    held = [each for each in tx.entities.open_relations(scope, predicate) if each.target != entity.id]
    if predicate in SINGLE and held:
        hint = "`relate` alters that"
        raise InvalidError(f"{entity.name}: {held[0].target_name} is the {predicate} already", hint=hint)
    gathered.relate(predicate, entity)


def _messages(importing: Importing, batch: Sequence[Node], tx: Snapshot) -> tuple[Change, Outcome]:
    fresh = _fresh(tx, batch)
    change = episodes.ingest(tx, fresh, claimed=frozenset(node.id for node in fresh), scope=importing.scope)
    return change, _outcome(batch, fresh, change)


def _facts(importing: Importing, batch: Sequence[Node], tx: Snapshot) -> tuple[Change, Outcome]:
    """Facts from elsewhere close none that is here: where two may not hold together, somebody is asked."""
    fresh = _fresh(tx, batch)
    scope, now = importing.scope, importing.now
    learnt = facts.learn(tx, [_known_once(node) for node in fresh], scope=scope, now=now, claimed=True)
    was = {node.id: node for node in fresh}
    added = tuple(
        replace(node, closed_at=was[node.id].closed_at, closed_reason=was[node.id].closed_reason)
        for node in learnt.change.add
    )
    arrived = resolve.arrive(
        tx, replace(learnt.change, add=added), scope=scope, now=now, claimed=was.keys(), may_close=False
    )
    held = {node.id: importing.held(node) for node in fresh if node.closed_reason == HELD}
    if held:
        arrived = quarantine.listed(tx, arrived, fresh, held, claimed=was.keys(), now=now)
    return arrived.change, _outcome(batch, fresh, arrived.change)


def _known_once(node: Node) -> Node:
    """What another memory had put away is about somebody, too; what is held back makes nobody known."""
    return node if node.closed_reason == HELD else replace(node, closed_at=None, closed_reason=None)


def _ties(importing: Importing, batch: Sequence[Tie], tx: Snapshot) -> tuple[Change, Outcome]:
    gathered = entities.People(tx, scope=importing.scope, now=importing.now)
    refused: list[str] = []
    for tie in batch:
        try:
            predicate = predicate_of(short_name(tie.predicate, name="relation") or "")
            source, target = gathered.named(tie.source), gathered.named(tie.target)
            if source.id == target.id:
                raise InvalidError(f"{tie.source} cannot be related to itself")
            gathered.relate(predicate, target, source=source)
        except InvalidError as error:
            refused.append(f"{tie.place}: {error}")
    change = gathered.into(Change())
    added = len(change.relations)
    return change, Outcome(added=added, known=len(batch) - added - len(refused), refused=tuple(refused))


def _links(importing: Importing, batch: Sequence[Link], tx: Snapshot) -> tuple[Change, Outcome]:
    """Those whose both ends are here; the others were of what could not be used, and are not told of twice."""
    ends = {each: tx.nodes.get(importing.scope, each) for link in batch for each in (link.source, link.target)}
    edges: dict[tuple[str, str, str], Edge] = {}
    for link in batch:
        source, target = ends[link.source], ends[link.target]
        if source is None or target is None or source.id == target.id:
            continue
        if not tx.graph.has_edge(source.key, link.type, target.key):
            edges[link.source, link.type, link.target] = Edge(source=source.id, target=target.id, type=link.type)
    return Change(link=tuple(edges.values())), Outcome(added=len(edges), known=len(batch) - len(edges))


def _fresh(tx: Snapshot, nodes: Sequence[Node]) -> list[Node]:
    """Those whose ids are not taken: what was imported before stays as it is, whatever became of it since. An id that
    is another's gives way to one made from it, and nobody is told.
    """
    taken = tx.nodes.known_ids([node.id for node in nodes])
    found = []
    for node in nodes:
        if node.id in taken and taken[node.id][0] != tx.space(node.owner, node.chat):
            node = replace(node, id=Reader(owner=node.owner, chat=node.chat).id_of("taken", node.id))
            taken |= tx.nodes.known_ids([node.id])
        if node.id not in taken:
            found.append(node)
    return found


def _outcome(batch: Sequence[Node], fresh: Sequence[Node], change: Change) -> Outcome:
    silent = len(fresh) - len(change.add)
    refused = (f"{silent} were said off the record",) if silent else ()
    return Outcome(added=len(change.add), known=len(batch) - len(fresh), refused=refused)
