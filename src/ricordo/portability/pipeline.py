"""The import: read a file, then store its people, messages, facts, relations and links, in batches of one commit each.

Records that exist already stay unchanged, so an interrupted import can simply be repeated.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from ricordo.clock import from_ms, new_id
from ricordo.consolidation import resolve, reviews
from ricordo.encoding import documents, entities, episodes, facts
from ricordo.encoding.episodes import Instant
from ricordo.encoding.validation import TextRules, redactions, short_name
from ricordo.errors import InvalidError
from ricordo.model import AGENT, Change, Edge, Entity, Fact, ImportPart, ImportReport, Node, Scope
from ricordo.portability import markdown
from ricordo.portability.documents import is_document
from ricordo.portability.identity import settle
from ricordo.portability.importers import UNKNOWN_FORMAT, complete, exports_in, format_of, parse
from ricordo.portability.records import (
    MALFORMED,
    Destination,
    ImportedFact,
    ImportedLink,
    ImportedMessage,
    ImportedPerson,
    ImportedRelation,
    Records,
)
from ricordo.portability.sources import NOT_TEXT, Source
from ricordo.ports import Progress
from ricordo.storage import Snapshot, Store
from ricordo.text.analyzer import name_key
from ricordo.text.names import SINGLE, predicate_of
from ricordo.text.relations import stated_own_names
from ricordo.text.tasks import is_done_task, is_open_task

T = TypeVar("T", ImportedPerson, ImportedRelation, ImportedLink, Node)
M = TypeVar("M", ImportedMessage, ImportedFact)

HELD = "quarantined"

_NAMED = "The user's name is {}"
_BATCH = 1_000
_SHOWN_REFUSALS = 20
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportContext:
    """What an import needs to know: the scope, the current time, and the rules for texts and times.

    `holds_untrusted`: quarantine everything that tools and web pages say, or only what reads like an instruction.
    `is_own`: the file is the owner's own complete export or log, so the origins it states are trusted.
    `me`: the keys of the names under which the owner speaks in chats.
    `changed_at`: when the imported file or folder was last changed: the time of what the file does not date.
    `zone`: the name of the time zone in which `instant` reads times without one.
    `planned`: in a dry run, the ids that the parts of a folder would add so far.
    `redactions`: the number of credentials replaced in each memory, by its id.
    `said`: the number of messages under each speaker's name, in all files.
    `named_before`: the number of messages under each of the owner's names that an earlier import stored under it.
    `earlier`: the numbers of commits of these imports, by run.
    """

    scope: Scope
    now: int
    instant: Instant
    rules: TextRules
    holds_untrusted: bool = True
    is_own: bool = False
    me: frozenset[str] = frozenset()
    changed_at: datetime | None = None
    zone: str = ""
    planned: set[str] | None = None
    redactions: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    named_before: Counter[str] = field(default_factory=Counter)
    earlier: dict[str, int] = field(default_factory=dict)

    def time_of_file(self, changed_at: datetime | None) -> datetime:
        """Return when the file of a record was last changed, but not a time in the future."""
        now = from_ms(self.now)
        return min(changed_at or self.changed_at or now, now)

    def reasons_to_hold(self, node: Node) -> tuple[str, ...]:
        """Return why a fact is quarantined; () if it is not."""
        return reviews.reasons_to_hold(node, holds_untrusted=self.holds_untrusted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a batch: how many records were added, how many existed already, how many of these are tasks that
    are done now, and why others were refused.
    """

    added: int = 0
    known: int = 0
    completed: int = 0
    redacted: int = 0
    refused: tuple[str, ...] = ()


Decide = Callable[[Snapshot], tuple[Change, Outcome]]


@dataclass(slots=True)
class _Counts:
    """The results of all batches, by kind."""

    added: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    completed: int = 0
    redacted: int = 0
    refused: list[str] = field(default_factory=list)
    dated: list[datetime] = field(default_factory=list)
    """The times of what the file dates."""

    def add(self, kind: str, outcome: Outcome) -> None:
        self.added[kind] += outcome.added
        self.completed += outcome.completed
        self.redacted += outcome.redacted
        self.known[kind] += outcome.known
        self.refused += outcome.refused


Write = Callable[[str, str, Decide], Awaitable[Outcome]]
"""Writes a batch as one commit of an import: (reason, id that all commits of one file share, decision)."""


async def import_path(
    path: Path,
    *,
    format: str | None,
    context: ImportContext,
    store: Store,
    write: Write,
    add_document: Callable[[Path], Awaitable[ImportReport]],
    progress: Progress | None,
    dry_run: bool,
) -> ImportReport:
    """Import a file or a folder, as for `Memory.import_`. A dry run makes the same decisions and writes nothing.

    If a folder holds separate exports, each is imported; those that cannot be read are named in the report.
    """
    if is_document(path, format):
        return await add_document(path)
    scope = context.scope
    destination = Destination(owner=scope.owner, chat=scope.chat or "")
    source = await asyncio.to_thread(Source, path, store=store.path)
    if format is None and (parts := await asyncio.to_thread(exports_in, source)):
        one = partial(
            import_path,
            format=None,
            context=context,
            store=store,
            write=write,
            add_document=add_document,
            progress=progress,
            dry_run=dry_run,
        )
        return await _import_each(parts, one)
    chosen = await asyncio.to_thread(format_of, source, format)
    context = replace(context, changed_at=source.changed_at)
    if chosen.name == markdown.NAME:
        at = from_ms(context.now)
        source.watched = await store.read(lambda tx: documents.watched_files(tx, scope, path.resolve(), at=at))
    with ExitStack() as stack:
        if chosen.name == complete.NAME and not dry_run:
            export = await asyncio.to_thread(lambda: stack.enter_context(complete.unpacked(path)))
            if context.is_own:
                report = await complete.restore(
                    export, scope=scope, rules=context.rules, progress=progress, derive=store.derive
                )
                if report is not None:
                    return report
            records = await asyncio.to_thread(complete.records_of, export, destination, is_own=context.is_own)
        else:
            records = await asyncio.to_thread(parse, source, chosen, destination)
        await store.read(lambda tx: settle(tx, records, scope=scope, instant=context.instant))
        name = "".join(char if char.isprintable() else "?" for char in path.name)[:_SHOWN_CHARS]
        one_file = partial(write, f"import of {name} ({records.format})", new_id(context.now))
        return await _store(records, context, store=store, write=one_file, progress=progress, dry_run=dry_run)


async def _import_each(parts: Sequence[Path], one: Callable[[Path], Awaitable[ImportReport]]) -> ImportReport:
    total, failed, unknown = ImportReport(), list[str](), list[str]()
    for part in parts:
        try:
            report = await one(part)
        except InvalidError as error:
            if error.hint in (UNKNOWN_FORMAT, NOT_TEXT):
                unknown.append(part.name)
            else:
                failed.append(str(error))
            continue
        named = tuple(f"{part.name}: {each.removeprefix('not imported: ')}" for each in report.refused)
        undecided = tuple(f"{part.name}: {each}" for each in report.undecided_dates)
        days = {"first_at": report.first_at, "last_at": report.last_at}
        part_of = ImportPart(name=part.name, format=report.format, read=report.read, **days)
        total = sum_of(total, replace(report, refused=named, undecided_dates=undecided, parts=(part_of,)))
    if unknown:
        failed.append(f"in no known format: {', '.join(unknown)} ({UNKNOWN_FORMAT})")
    return sum_of(ImportReport(refused=tuple(failed), refused_count=len(failed)), total)


def sum_of(one: ImportReport, other: ImportReport) -> ImportReport:
    """Return the sum of two import reports, with the formats of both."""
    counts = [each.name for each in fields(ImportReport) if each.type in ("int", "tuple[ImportPart, ...]")]
    formats = dict.fromkeys(filter(None, (*one.format.split(", "), other.format)))
    return ImportReport(
        format=", ".join(formats),
        refused=(*one.refused, *other.refused)[:_SHOWN_REFUSALS],
        skipped=(*one.skipped, *other.skipped),
        time_zone=one.time_zone or other.time_zone,
        first_at=min(filter(None, (one.first_at, other.first_at)), default=None),
        last_at=max(filter(None, (one.last_at, other.last_at)), default=None),
        undecided_dates=(*one.undecided_dates, *other.undecided_dates),
        **{name: getattr(one, name) + getattr(other, name) for name in counts},
    )


async def _store(
    records: Records,
    context: ImportContext,
    *,
    store: Store,
    write: Callable[[Decide], Awaitable[Outcome]],
    progress: Progress | None,
    dry_run: bool,
) -> ImportReport:
    counts = _Counts()
    steps = await asyncio.to_thread(_steps, records, context, counts)
    total, done = sum(size for _, size, _ in steps), 0
    for kind, size, decide in steps:
        if not dry_run:
            counts.add(kind, await write(decide))
        elif kind not in ("relations", "links", "evidence"):  # a dry run has not stored the records they connect
            counts.add(kind, await store.read(partial(_outcome_of, decide)))
        done += size
        if progress is not None:
            progress(done, total)
    return _report(records, counts, zone=context.zone)


def _outcome_of(decide: Decide, tx: Snapshot) -> Outcome:
    return decide(tx)[1]


def _steps(records: Records, context: ImportContext, counts: _Counts) -> list[tuple[str, int, Decide]]:
    """Return (kind, number of records, decision) of each batch, in order. Invalid records are refused here."""
    chats = replace(context, scope=replace(context.scope, owner="", member=context.scope.who))
    facts = records.facts.values()
    episode = partial(_episode, context=context, is_complete=records.format == complete.NAME)
    messages = _made(records.messages.values(), episode, counts)
    undated = {each.message.id for each in records.messages.values() if each.message.at is None}
    counts.dated += [each.event_time for each in messages if each.id not in undated]
    undated = {each.fact.id for each in facts if each.at is None}
    shared = {each.fact.id: bool(context.scope.chat) if each.in_chat is None else each.in_chat for each in facts}
    own = _made([each for each in facts if not shared[each.fact.id]], partial(_knowledge, context=context), counts)
    group = _made([each for each in facts if shared[each.fact.id]], partial(_knowledge, context=chats), counts)
    is_of_group = bool(group) and not own
    counts.dated += [each.event_time for each in (*own, *group) if each.id not in undated]
    own_people = [each for each in records.people if each.relation or not is_of_group]
    names = _own_names(records, context)
    introduced = _made([name for name, _ in names], partial(_knowledge, context=context), counts)
    return [
        *_batches("names", introduced, partial(_facts, context)),
        *_batches("people", own_people, partial(_people, context)),
        *_batches("people", [each for each in records.people if each not in own_people], partial(_people, chats)),
        *_batches("messages", messages, partial(_messages, context)),
        *_batches("facts", own, partial(_facts, context)),
        *_batches("facts", group, partial(_facts, chats)),
        *_batches("relations", list(records.relations), partial(_relations, context)),
        *_batches("links", records.links, partial(_links, context)),
        *_batches("evidence", [link for _, links in names for link in links], partial(_links, context)),
    ]


def _own_names(records: Records, context: ImportContext) -> list[tuple[ImportedFact, list[ImportedLink]]]:
    """Return a fact for each name under which the owner speaks, so that it means the owner when others say it. A shared
    space has many users, so it holds no such fact. The first and the last message under a name are its evidence, so
    that it stays when another import that states it is undone.
    """
    if context.scope.chat:
        return []
    said: dict[str, list[ImportedMessage]] = {}
    for each in records.messages.values():
        name = each.message.speaker
        if name and name_key(name) in context.me and stated_own_names(_NAMED.format(name)):  # not "Me"
            said.setdefault(name, []).append(each)
    return [_own_name(name, each, records.destination) for name, each in said.items()]


def _own_name(
    name: str, said: Sequence[ImportedMessage], destination: Destination
) -> tuple[ImportedFact, list[ImportedLink]]:
    id = destination.id_of("the owner's name", name)
    fact = Fact(content=_NAMED.format(name), id=id, origin="import", category="identity")
    ends = {each.message.id: each for each in (said[0], said[-1])}
    return ImportedFact(fact=fact, place=said[0].place, at=said[0].message.at), [
        ImportedLink(source=id, target=target, type="derived_from", place=each.place)
        for target, each in ends.items()
        if target is not None
    ]


def _batches(
    kind: str, records: Sequence[T], step: Callable[[Sequence[T], Snapshot], tuple[Change, Outcome]]
) -> list[tuple[str, int, Decide]]:
    """Split records at fixed positions, so that a repeated import decides like an uninterrupted one."""
    parts = [records[start : start + _BATCH] for start in range(0, len(records), _BATCH)]
    return [(kind, len(part), partial(step, part)) for part in parts]


def _report(records: Records, counts: _Counts, *, zone: str) -> ImportReport:
    refused = [*records.refused, *counts.refused]
    added = counts.added
    new_facts = added["facts"] + added["names"]
    fresh = added["messages"] + new_facts
    known = counts.known["messages"] + counts.known["facts"]
    has_local = any(_is_local(each.message.at) for each in records.messages.values())
    return ImportReport(
        format=records.format,
        read=fresh + known - added["names"],  # no file holds the names: each import states them
        added=fresh,
        known=known,
        messages=added["messages"],
        facts=new_facts,
        people=added["people"],
        relations=added["relations"],
        links=added["links"],
        refused=tuple(refused[:_SHOWN_REFUSALS]),
        refused_count=len(refused),
        skipped=tuple(records.skipped),
        sessions=len({each.message.session for each in records.messages.values() if each.message.session}),
        completed=counts.completed,
        redacted=counts.redacted,
        time_zone=zone if has_local else "",
        first_at=min(counts.dated, default=None),
        last_at=max(counts.dated, default=None),
        undecided_dates=(records.undecided_date,) if records.undecided_date else (),
    )


def _is_local(at: datetime | str | None) -> bool:
    """Return whether a time of day is given without its offset."""
    try:
        return isinstance(at, str) and ":" in at and datetime.fromisoformat(at).tzinfo is None
    except ValueError:
        return False


def _made(records: Iterable[M], node_of: Callable[[M], Node], counts: _Counts) -> list[Node]:
    """Return the nodes of messages or facts, earliest first. Invalid ones are refused with their place."""
    found: dict[str, Node] = {}
    for each in records:
        try:
            node = node_of(each)
            found.setdefault(node.id, node)
        except MALFORMED as error:
            counts.refused.append(f"{each.place}: {error}")
    return sorted(found.values(), key=lambda node: node.event_time)


def _episode(said: ImportedMessage, context: ImportContext, *, is_complete: bool) -> Node:
    is_own_log = context.is_own and AGENT in (said.message.attributes or ())
    message = replace(said.message, origin="conversation") if is_own_log else said.message
    if message.at is None:
        message = replace(message, at=context.time_of_file(None))
    if message.speaker is not None:
        context.said[message.speaker] += 1
        if name_key(message.speaker) in context.me:
            message = replace(message, speaker=None, role="user")
    node = episodes.new_episode(
        message, scope=context.scope, now=context.now, instant=context.instant, rules=context.rules
    )
    context.redactions[node.id] += redactions(message.text, node.content)
    if is_complete and message.speaker is None:  # said by any member of the chat it was exported from
        node = replace(node, speaker=None)
    return replace(node, tags=said.tags) if said.tags else node


def _knowledge(known: ImportedFact, context: ImportContext) -> Node:
    """Return the node of an imported fact, observed at its own time and recorded now."""
    node = facts.new_fact(
        known.fact, scope=context.scope, now=context.now, instant=context.instant, rules=context.rules
    )
    context.redactions[node.id] += redactions(known.fact.content, node.content)
    at = context.time_of_file(known.changed_at) if known.at is None else known.at
    at = from_ms(context.instant(at, "event_time"))
    until = None if known.ended is None else from_ms(context.instant(known.ended, "valid_until"))
    decay = node.decay_rate if known.decay_rate is None else known.decay_rate
    if known.closed is None and context.reasons_to_hold(node):
        node = reviews.quarantined(node, at=from_ms(context.now))
    elif known.closed is not None:
        node = replace(node, closed_at=from_ms(context.now), closed_reason=known.closed)
    return replace(
        node,
        event_time=at,
        valid_from=at if known.fact.valid_from is None else node.valid_from,
        valid_until=until,
        score=known.score,
        decay_rate=decay,
    )


# one batch of each kind, inside the transaction


def _people(context: ImportContext, batch: Sequence[ImportedPerson], tx: Snapshot) -> tuple[Change, Outcome]:
    """Add unknown entities; known ones keep their type and get new aliases."""
    if episodes.is_paused(tx, context.scope):
        return Change(), Outcome(refused=(_paused(len(batch)),))
    gathered = entities.EntityResolver(tx, scope=context.scope, now=context.now)
    fresh: dict[str, Entity] = {}
    put: dict[str, Entity] = {}
    refused: list[str] = []
    for person in batch:
        try:
            name = short_name(person.name, name="name") or ""
            entity = fresh.get(name_key(name)) or gathered.known(name)
            if entity is None:
                entity = entities.new_entity(
                    name, scope=context.scope, now=context.now, type=person.type, aliases=person.aliases
                )
                gathered.add(entity)
                fresh |= {name_key(each): entity for each in (name, *entity.aliases)}
            elif entity.key:
                _add_aliases(entity, person, put)
            _relate(tx, gathered, context.scope, person.relation, entity)
        except InvalidError as error:
            refused.append(f"{person.place}: {error}")
    change = gathered.extend(Change(put_entities=tuple(put.values())))
    added = len(change.entities)
    return change, Outcome(added=added, known=len(batch) - added, refused=tuple(refused))


def _add_aliases(entity: Entity, person: ImportedPerson, put: dict[str, Entity]) -> None:
    entity = put.get(entity.id, entity)
    fresh = tuple(each for each in entities.checked_names(person.aliases) if each not in (entity.name, *entity.aliases))
    if fresh:
        put[entity.id] = replace(entity, aliases=(*entity.aliases, *fresh))


def _relate(
    tx: Snapshot, gathered: entities.EntityResolver, scope: Scope, relation: str | None, entity: Entity
) -> None:
    """Add a relation to the owner, unless it would replace another entity's: a file does not end a marriage."""
    if relation is None:
        return
    predicate = predicate_of(short_name(relation, name="relation") or "")
    held = [each for each in tx.entities.open_relations(scope, predicate) if each.target != entity.id]
    if predicate in SINGLE and held:
        hint = "change it with `relate`"
        raise InvalidError(f"{entity.name}: {held[0].target_name} is already the {predicate}", hint=hint)
    gathered.relate(predicate, entity)


def _messages(context: ImportContext, batch: Sequence[Node], tx: Snapshot) -> tuple[Change, Outcome]:
    fresh = _fresh(tx, batch, context)
    if context.me:
        new = {node.id for node in fresh}
        _note_named_before(tx, [node for node in batch if node.id not in new and node.speaker is None], context)
    change = episodes.ingest(tx, fresh, claimed=frozenset(node.id for node in fresh), scope=context.scope)
    return change, _outcome(tx, batch, fresh, change, context)


def _note_named_before(tx: Snapshot, nodes: Sequence[Node], context: ImportContext) -> None:
    """Note the owner's messages that are stored under a name, and the import that stored them."""
    stored = [found for node in nodes if (found := tx.nodes.get(context.scope, node.id)) is not None and found.speaker]
    named = [node for node in stored if name_key(node.speaker or "") in context.me]
    context.named_before.update(node.speaker or "" for node in named)
    commit = tx.history.versions(named[0])[0][1] if named else None
    if commit is not None and commit.run_id is not None:
        context.earlier.setdefault(commit.run_id, commit.seq)


def _facts(context: ImportContext, batch: Sequence[Node], tx: Snapshot) -> tuple[Change, Outcome]:
    """Add facts. They close no stored fact: possible conflicts go to review."""
    fresh = _fresh(tx, batch, context)
    scope, now = context.scope, context.now
    learnt = facts.learn(tx, [_as_live(node) for node in fresh], scope=scope, now=now, claimed=True)
    was = {node.id: node for node in fresh}
    added = tuple(
        replace(node, closed_at=was[node.id].closed_at, closed_reason=was[node.id].closed_reason)
        for node in learnt.change.add
    )
    arrived = resolve.arrive(
        tx, replace(learnt.change, add=added), scope=scope, now=now, claimed=was.keys(), may_close=False
    )
    held = {node.id: context.reasons_to_hold(node) for node in fresh if node.closed_reason == HELD}
    if held:
        arrived = reviews.with_quarantine_reviews(tx, arrived, fresh, held, claimed=was.keys(), now=now)
    change = learnt.with_people(arrived.change)
    outcome = _outcome(tx, batch, fresh, change, context)
    altered = {node.id for node in change.put}
    completed = [task for task in _completed(tx, batch, context) if task.id not in altered]
    return replace(change, put=(*change.put, *completed)), replace(outcome, completed=len(completed))


def _completed(tx: Snapshot, nodes: Sequence[Node], context: ImportContext) -> list[Node]:
    """Return the stored open tasks whose boxes are ticked in the file now, as done."""
    ticked = [node for node in nodes if is_done_task(node)]
    stored = tx.together(*(partial(tx.nodes.get, context.scope, node.id) for node in ticked))
    open_ = [node for node in stored if node is not None and node.is_live and is_open_task(node)]
    return [replace(task, attributes={**task.attributes, "done": True}) for task in open_]


def _as_live(node: Node) -> Node:
    """Reopen facts that another memory had closed, so that entities are learnt from them, but not quarantined ones."""
    return node if node.closed_reason == HELD else replace(node, closed_at=None, closed_reason=None)


def _relations(context: ImportContext, batch: Sequence[ImportedRelation], tx: Snapshot) -> tuple[Change, Outcome]:
    if episodes.is_paused(tx, context.scope):
        return Change(), Outcome(refused=(_paused(len(batch)),))
    gathered = entities.EntityResolver(tx, scope=context.scope, now=context.now)
    refused: list[str] = []
    for relation in batch:
        try:
            predicate = predicate_of(short_name(relation.predicate, name="relation") or "")
            source, target = gathered.named(relation.source), gathered.named(relation.target)
            if source.id == target.id:
                raise InvalidError(f"{relation.source} cannot be related to itself")
            gathered.relate(predicate, target, source=source)
        except InvalidError as error:
            refused.append(f"{relation.place}: {error}")
    change = gathered.extend(Change())
    added = len(change.relations)
    return change, Outcome(added=added, known=len(batch) - added - len(refused), refused=tuple(refused))


def _links(context: ImportContext, batch: Sequence[ImportedLink], tx: Snapshot) -> tuple[Change, Outcome]:
    """Add links between existing memories; other links belong to records that were already refused."""
    ends = {each: tx.nodes.get(context.scope, each) for link in batch for each in (link.source, link.target)}
    edges: dict[tuple[str, str, str], Edge] = {}
    for link in batch:
        source, target = ends[link.source], ends[link.target]
        if source is None or target is None or source.id == target.id:
            continue
        if not tx.graph.has_edge(source.key, link.type, target.key):
            edges[link.source, link.type, link.target] = Edge(source=source.id, target=target.id, type=link.type)
    return Change(link=tuple(edges.values())), Outcome(added=len(edges), known=len(batch) - len(edges))


def _fresh(tx: Snapshot, nodes: Sequence[Node], context: ImportContext) -> list[Node]:
    """Return the nodes whose ids are free: a memory imported before stays as it is now, even if it was changed since.

    An id that belongs to another owner is silently replaced by one derived from it.
    """
    taken = tx.nodes.known_ids([node.id for node in nodes])
    found = []
    for node in nodes:
        if node.id in taken and taken[node.id][0] != tx.space(node.owner, node.chat):
            node = replace(node, id=Destination(owner=node.owner, chat=node.chat).id_of("taken", node.id))
            taken |= tx.nodes.known_ids([node.id])
        if node.id not in taken and node.id not in (context.planned or ()):
            found.append(node)
    if context.planned is not None:
        context.planned.update(node.id for node in found)
    return found


def _outcome(
    tx: Snapshot, batch: Sequence[Node], fresh: Sequence[Node], change: Change, context: ImportContext
) -> Outcome:
    redacted = sum(context.redactions[node.id] for node in change.add)
    added = {node.id for node in change.add}
    left_out = [node for node in fresh if node.id not in added]
    pauses = episodes.pauses_of(tx, context.scope) if left_out else []
    paused = sum(episodes.is_off_record(node, pauses) for node in left_out)
    removed = len(left_out) - paused
    facts_removed = any(node.type != "episodic" for node in left_out)
    refused = [_paused(paused)] if paused else []
    refused += [_removed(removed, "forgotten or erased" if facts_removed else "erased")] if removed else []
    return Outcome(added=len(change.add), known=len(batch) - len(fresh), redacted=redacted, refused=tuple(refused))


def _paused(count: int) -> str:
    return f"{count} not stored: off the record"


def _removed(count: int, how: str) -> str:
    return f"{count} not stored: {how} before"
