"""Turn accepted items into one change: facts with their evidence and subjects, and the facts they repeat or replace.

This runs inside the write transaction and checks the current state, which may have changed since a model was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from ricordo.clock import from_ms, new_id
from ricordo.consolidation.evolution import superseded, supersedes
from ricordo.consolidation.judge import CONCLUDED, Accepted, Judged, Relationship
from ricordo.consolidation.resolve import (
    SLOT,
    Arrived,
    are_of_one,
    arrive,
    carried,
    form_of,
    in_owners_person,
    is_withheld,
    may_replace,
    repeated,
    review_of_two,
    reviews_of,
    saying_the_same,
)
from ricordo.consolidation.reviews import quarantined, reasons_to_hold, with_quarantine_reviews
from ricordo.model import (
    Assertion,
    Category,
    Change,
    Edge,
    Introduction,
    Node,
    NodeType,
    Review,
    Run,
    RunItem,
    RunItemKind,
    Scope,
    Session,
    Trust,
)
from ricordo.storage import Snapshot
from ricordo.text.analyzer import name_key
from ricordo.text.names import SINGLE, predicate_of, relation_named
from ricordo.trust import capped, least_of, role_of_derived, trust_of

AddEntities = Callable[..., Change]
"""`encoding.entities.add_entities`: (snapshot, change, introductions, assertions, scope=, now=) -> Change."""

SURE = "extraction_confidence"
"""The attribute of a derived memory that holds the model's certainty."""

_REPLACED_CONFIDENCE, _REPLACED_DECAY_RATE = 0.3, 0.5
NOT_COMPARED = "the model did not compare them with older memories"
CAUSAL_CONFIDENCE = 0.7
"""The confidence of a causal edge, lower than for a stated fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A model's verdict on an accepted fact (by its index) and an older memory."""

    fact: int
    old: Node
    says: Relationship
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """Messages of one conversation, and the same as shown to a model: without forgotten sentences.

    `place` is (owner, chat).
    """

    place: tuple[str, str]
    session: str | None
    episodes: tuple[Node, ...]
    shown: tuple[Node, ...] = ()

    @property
    def scope(self) -> Scope:
        """The scope of the conversation."""
        owner, chat = self.place
        return Scope.of(owner, chat)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The knowledge from a conversation, before it is compared with the current state of the store.

    Attributes:
        waits_on: whether a model has yet to read the complete conversation.
        is_verbatim: whether the facts are the speakers' own words.
        failed: messages without a usable answer, by id, with the reason; they are not in `said`.
        answers: keys of the model's answers, which are stored until the draft is learnt.
        not_compared: why the model did not compare some facts with older memories; "" if it did.
    """

    said: Transcript
    judged: Judged
    compared: tuple[Compared, ...] = ()
    waits_on: bool = False
    is_verbatim: bool = False
    failed: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    not_compared: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRules:
    """Settings for learning, and functions of other packages.

    Attributes:
        min_conflict: the certainty, from 0 to 1, that a model needs to close a fact.
        holds_untrusted: whether everything from tools and pages is quarantined.
        timed: adds to a new fact its lifetime and the dates in its text.
        is_over: whether a new fact is about something that has ended already.
    """

    min_conflict: float
    holds_untrusted: bool
    add_entities: AddEntities
    timed: Callable[[Node], Node]
    is_over: Callable[[Node], bool]


@dataclass(slots=True)
class _Learning:
    """The state of learning one draft."""

    snapshot: Snapshot
    draft: Draft
    rules: LearningRules
    now: int
    at: datetime
    items: list[RunItem] = field(default_factory=list)
    put: dict[str, Node] = field(default_factory=dict)
    links: dict[tuple[str, str, str], Edge] = field(default_factory=dict)
    reviews: list[Review] = field(default_factory=list)
    settled: set[frozenset[str]] = field(default_factory=set)

    def link(self, edge: Edge) -> None:
        self.links.setdefault((edge.source, edge.type, edge.target), edge)


def learn(snapshot: Snapshot, draft: Draft, rules: LearningRules, *, run: Run, now: int) -> tuple[Change, Run]:
    """Return the change that stores a draft, and the run with its new items. Empty if another run was first.

    Args:
        run: the run so far; the items of this conversation are added to it.
        now: Unix milliseconds, UTC.
    """
    waiting = snapshot.runs.waiting_episodes(draft.said.scope, draft.said.place, draft.said.session)
    unchanged = {node.id: node for node in waiting}
    shown = {node.id: node for node in draft.said.episodes}
    sound = [node_id for node_id, node in shown.items() if _is_same(node, unchanged.get(node_id))]
    if not sound:
        return Change(), run
    learning = _Learning(snapshot=snapshot, draft=draft, rules=rules, now=now, at=from_ms(now))
    learning.items += _failed_pages(draft)
    change = _change(learning, frozenset(sound))
    is_whole = len(sound) == len(waiting)
    if draft.waits_on and all(item.what in ("refused", "failed") for item in learning.items):
        return Change(), replace(run, items=(*run.items, *learning.items))
    if not draft.waits_on:
        change = replace(change, consolidated=tuple(sound), sessions=_session(learning, is_whole=is_whole))
        told = [node for node in draft.said.episodes if node.id in sound]
        if draft.judged.summary and change.sessions:
            change = with_summary(change, draft.judged.summary, told, node_id=_summary_id(learning), at=learning.at)
    done = add_items(run, learning.items, at=learning.at, session=draft.said.session)
    return replace(change, runs=(done,)), done


def _failed_pages(draft: Draft) -> list[RunItem]:
    """Return an item for each reason why messages were skipped, or facts not compared with older memories."""
    ids: dict[str, tuple[str, ...]] = {}
    for node_id, reason in draft.failed.items():
        ids[reason] = (*ids.get(reason, ()), node_id)
    text = draft.said.session or ""
    items = [RunItem(what="failed", text=text, reason=reason, evidence=each) for reason, each in ids.items()]
    if draft.not_compared:
        items.append(RunItem(what="failed", text=text, reason=f"{NOT_COMPARED}: {draft.not_compared}"))
    return items


def add_items(run: Run, items: Iterable[RunItem], *, at: datetime, session: str | None = None) -> Run:
    """Return a run with more items and, if new to the run, a session. The run ends at `at`."""
    known = (session,) if session and session not in run.sessions else ()
    return replace(run, sessions=(*run.sessions, *known), items=(*run.items, *items), ended_at=at)


def learn_again(snapshot: Snapshot, draft: Draft, rules: LearningRules, *, run: Run, now: int) -> tuple[Change, Run]:
    """Return the change that learns more from messages already consolidated, and the run with its new items.

    Facts that an earlier run learnt from them are skipped.

    Args:
        draft: its messages must be unchanged since they were shown to the model.
        now: Unix milliseconds, UTC.
    """
    learning = _Learning(snapshot=snapshot, draft=draft, rules=rules, now=now, at=from_ms(now))
    change = _change(learning, frozenset(node.id for node in draft.said.episodes))
    return change, replace(run, items=(*run.items, *learning.items))


def _is_same(shown: Node, now: Node | None) -> bool:
    return now is not None and now.content == shown.content


def _session(learning: _Learning, *, is_whole: bool) -> tuple[Session, ...]:
    """Return the conversation's session with its new summary; an empty tuple if it has no session.

    Args:
        is_whole: mark it as consolidated. If messages arrived in the meantime, the next run takes it again.
    """
    draft = learning.draft
    known = None if draft.said.session is None else learning.snapshot.sessions.get(draft.said.scope, draft.said.session)
    if known is None:
        return ()
    summary = draft.judged.summary
    if summary:
        learning.items.append(RunItem(what="summary", id=new_id(learning.now), text=summary))
    whole = " ".join(part for part in (known.summary, summary) if part) or None
    at = learning.at if is_whole else known.consolidated_at
    return (replace(known, summary=whole, consolidated_at=at),)


def _summary_id(learning: _Learning) -> str:
    return next(item.id for item in learning.items if item.what == "summary" and item.id)


def with_summary(change: Change, text: str, told: Sequence[Node], *, node_id: str, at: datetime) -> Change:
    """Return the change with the summary of a conversation as a memory. The summary is found by its words and time, and
    is deleted when a message it is based on is forgotten.
    """
    last = max(told, key=lambda node: (node.event_time, node.key))
    place = last.owner, last.chat
    node = conclusion(text, told, place=place, node_id=node_id, at=at, type="semantic", category="summary")
    node = replace(node, session=last.session)
    return replace(change, add=(*change.add, node), link=(*change.link, *evidence_edges(node, told)))


def conclusion(
    text: str,
    evidence: Sequence[Node],
    *,
    place: tuple[str, str],
    node_id: str,
    at: datetime,
    type: NodeType,
    category: Category,
    sure: float | None = None,
    about: tuple[str, ...] = (),
) -> Node:
    """Return a conclusion as a memory: uncertain, and with the trust of its least trusted evidence."""
    tier, last = tier_of(evidence), max(node.event_time for node in evidence)
    return Node(
        id=node_id,
        type=type,
        category=category,
        content=text,
        owner=place[0],
        chat=place[1],
        about=about,
        role=role_of_derived([tier]),
        origin=capped("consolidation", "user", caller=tier),
        attributes={} if sure is None else {SURE: sure},
        event_time=last,
        created_at=at,
        valid_from=last,
        confidence=CONCLUDED,
    )


def evidence_edges(node: Node, evidence: Iterable[Node], *, sure: float = 1.0) -> tuple[Edge, ...]:
    """Return the edges from a conclusion to its evidence."""
    return tuple(
        Edge(source=node.id, target=each.id, type="derived_from", confidence=min(1.0, sure)) for each in evidence
    )


def _change(learning: _Learning, sound: Collection[str]) -> Change:
    """Return facts, entities, relations and causes based on messages that are unchanged since they were shown."""
    draft = learning.draft = _without_overriding(learning)
    snapshot = learning.snapshot
    for refused in draft.judged.refused:
        learning.items.append(RunItem(what="refused", text=refused.text, reason=refused.reason))
    facts = {
        new_id(learning.now): (place, fact)
        for place, fact in enumerate(draft.judged.facts)
        if not _is_learnt(learning, fact) and _rests_on(fact, sound, learning)
    }
    timed = learning.rules.timed
    nodes = {node_id: timed(_node(node_id, fact, draft, at=learning.at)) for node_id, (_, fact) in facts.items()}
    kept = [node for node_id, node in nodes.items() if not _is_withheld(learning, node, facts[node_id][1])]
    if draft.is_verbatim:  # the message says that it was so; a fact would say that it is
        kept = [node for node in kept if not learning.rules.is_over(node)]
    waits = learning.rules.holds_untrusted
    held_for: dict[str, tuple[str, ...]] = {}
    for node in kept:
        doubts = (doubt,) if (doubt := facts[node.id][1].doubt) and not draft.is_verbatim else ()
        if why := (*reasons_to_hold(node, holds_untrusted=waits), *doubts):
            held_for[node.id] = why
    updates = {node_id for node_id, (_, fact) in facts.items() if fact.is_update}
    kept = [node for node in kept if node.id not in updates & held_for.keys()]  # what is held is not compared
    held_for = {node_id: why for node_id, why in held_for.items() if node_id not in updates}
    given = [quarantined(node, at=learning.at) if node.id in held_for else node for node in kept]
    change = learning.rules.add_entities(
        snapshot,
        Change(add=tuple(given)),
        _sound(draft.judged.entities, sound),
        _sound(draft.judged.relations, sound),
        scope=draft.said.scope,
        now=learning.now,
    )
    learning.items += [RunItem(what="entity", text=each.name) for each in change.entities]
    learning.items += [
        RunItem(what="relation", text=each.predicate, evidence=each.evidence) for each in change.relations
    ]
    change, same = _without_same(learning, change, facts)
    arrived = arrive(snapshot, change, scope=draft.said.scope, now=learning.now, claimed=(), updates=updates)
    if held_for:
        arrived = with_quarantine_reviews(snapshot, arrived, given, held_for, claimed=(), now=learning.now)
    arrived = _as_derived(arrived, facts)
    learning.put |= {node.id: node for node in arrived.change.put}
    _replace_contradicted(learning, arrived, facts)
    arrived = _without_settled(learning, arrived)
    _link_and_record(learning, arrived, facts, same)
    for cause, effect in draft.judged.causes:
        if {cause.id, effect.id} <= set(sound):
            _cause(learning, cause, effect)
    return replace(
        arrived.change,
        put=tuple(learning.put.values()),
        link=(*arrived.change.link, *learning.links.values()),
        reviews=(*arrived.change.reviews, *learning.reviews),
    )


def _without_overriding(learning: _Learning) -> Draft:
    """Return the draft without relations that would end a known one, such as a second wife. They become facts that wait
    for review.
    """
    draft, snapshot, scope = learning.draft, learning.snapshot, learning.draft.said.scope
    entities, held = list[Introduction](), list[Accepted]()
    for each in draft.judged.entities:
        predicate = predicate_of(each.relation or "")
        known = snapshot.entities.open_relations(scope, predicate) if predicate in SINGLE else ()
        others = [one for one in (snapshot.entities.by_id(scope, relation.target) for relation in known) if one]
        names = {name_key(name) for name in (each.name, *each.aliases)}
        is_other = any(
            names.isdisjoint(map(name_key, (one.name, *one.aliases))) and not relation_named(one.name) for one in others
        )
        entities.append(replace(each, relation=None) if is_other else each)
        evidence = tuple(node for node in draft.said.episodes if node.id in each.evidence)
        if is_other and evidence:
            held.append(_other_relation(predicate, each.name, evidence))
    relations = tuple(each for each in draft.judged.relations if not _ends_another(snapshot, scope, each))
    facts = (*draft.judged.facts, *held)
    return replace(draft, judged=replace(draft.judged, facts=facts, entities=tuple(entities), relations=relations))


def _other_relation(predicate: str, name: str, evidence: tuple[Node, ...]) -> Accepted:
    return Accepted(
        content=f"The user's {predicate} is {name}",
        type="semantic",
        category="relationship",
        about=(name,),
        slot=predicate,
        confidence=CONCLUDED,
        sure=1.0,
        evidence=evidence,
        doubt="another one is known",
    )


def _ends_another(snapshot: Snapshot, scope: Scope, given: Assertion) -> bool:
    """Return whether a relation between two other people would end a known relation."""
    predicate = predicate_of(given.predicate)
    found = snapshot.entities.named(scope, given.source).entities if predicate in SINGLE else ()
    return any(
        relation.predicate == predicate and relation.valid_until is None
        for entity in found
        for relation in snapshot.entities.relations(entity.key)
        if relation.source == entity.id
        and (one := snapshot.entities.by_id(scope, relation.target)) is not None
        and name_key(given.target) not in {name_key(name) for name in (one.name, *one.aliases)}
    )


Facts = Mapping[str, tuple[int, Accepted]]
"""Accepted facts by the ids of the nodes they become, each with its index in the draft."""

Claim = TypeVar("Claim", Introduction, Assertion)


def _sound(claims: Sequence[Claim], sound: Collection[str]) -> list[Claim]:
    """Return the claims based on messages that are unchanged since they were shown."""
    return [each for each in claims if set(each.evidence) <= set(sound)]


def _rests_on(fact: Accepted, sound: Collection[str], learning: _Learning) -> bool:
    if {node.id for node in fact.evidence} <= set(sound):
        return True
    learning.items.append(RunItem(what="refused", text=fact.content, reason="its evidence has changed"))
    return False


def _is_learnt(learning: _Learning, fact: Accepted) -> bool:
    """Return whether an earlier run learnt this fact from the same messages, so that it is not a repetition.

    A waiting conversation is read several times. Facts learnt from it before are then skipped silently.
    """
    draft = learning.draft
    evidence = tuple(node.id for node in fact.evidence)
    least = 1 if draft.waits_on else len(evidence)
    found = learning.snapshot.evidence.learnt_from(*draft.said.place, fact.content, evidence=evidence, least=least)
    if found and not draft.waits_on:
        repeat = RunItem(what="repeated", id=found.id, text=fact.content, reason="was learnt before", evidence=evidence)
        ended = RunItem(what="refused", text=fact.content, reason="was learnt before, and has ended since")
        learning.items.append(repeat if found.is_live else ended)
    return found is not None


def _is_withheld(learning: _Learning, node: Node, fact: Accepted) -> bool:
    if not is_withheld(learning.snapshot, node, fact.evidence):
        return False
    if not fact.is_update:
        learning.items.append(RunItem(what="refused", text=node.content, reason="was forgotten"))
    return True


def _node(node_id: str, fact: Accepted, draft: Draft, *, at: datetime) -> Node:
    """Return a derived memory with the session, time and speaker of its evidence."""
    last = max(fact.evidence, key=lambda node: (node.event_time, node.key))
    speakers = {node.speaker for node in fact.evidence}
    owner, chat = draft.said.place
    return Node(
        id=node_id,
        type=fact.type,
        content=fact.content,
        category=fact.category,
        owner=owner,
        chat=chat,
        role=last.role,
        speaker=last.speaker if len(speakers) == 1 else None,
        session=last.session,
        # A rule keeps the speaker's words; a model writes its own.
        origin=last.origin if draft.is_verbatim else capped("extraction", "user", caller=tier_of(fact.evidence)),
        about=fact.about,
        attributes={SURE: fact.sure, **({SLOT: fact.slot} if fact.slot else {})},
        event_time=last.event_time,
        created_at=at,
        valid_from=last.event_time,
        confidence=fact.confidence,
    )


def tier_of(evidence: Sequence[Node]) -> Trust:
    """Return the trust level of the least trusted message. Derived memories must not gain trust."""
    return least_of(trust_of(node.origin, node.role) for node in evidence)


def _as_derived(arrived: Arrived, facts: Facts) -> Arrived:
    """Fade facts replaced by a rule like those replaced by a model, and name the evidence on the edges."""
    change = arrived.change
    put = tuple(_faded(node) if node.closed_reason == "superseded" else node for node in change.put)
    link = tuple(
        replace(edge, evidence=tuple(node.id for node in facts[edge.source][1].evidence))
        if edge.type == "supersedes" and edge.source in facts
        else edge
        for edge in change.link
    )
    return replace(arrived, change=replace(change, put=put, link=link))


def _faded(node: Node) -> Node:
    """Return a replaced fact with lower confidence and faster decay, so that it ranks low in the archive."""
    return replace(
        node,
        confidence=min(node.confidence, _REPLACED_CONFIDENCE),
        decay_rate=max(node.decay_rate, _REPLACED_DECAY_RATE),
    )


def _without_same(learning: _Learning, change: Change, facts: Facts) -> tuple[Change, Mapping[str, str]]:
    """Return the change without facts that, according to a model, repeat a memory; and the ids of these memories by the
    ids of the facts.

    The score of the repeated memory rises, unless it already has all the evidence of the fact. Both must have the same
    subjects.
    """
    snapshot = learning.snapshot
    same: dict[str, str] = {}
    for node in change.add:
        if not node.is_live:  # quarantined facts are not compared
            continue
        for verdict in _verdicts(learning, facts[node.id][0], "same"):
            old = _present(learning, verdict.old)
            if old is None or set(old.about) != set(node.about) or verdict.confidence < learning.rules.min_conflict:
                continue
            evidence = [each.id for each in facts[node.id][1].evidence]
            if snapshot.evidence.count(old.key, among=evidence) < len(evidence):
                learning.put[old.id] = repeated(old, replace(node, attributes={}), at=learning.at)
            same[node.id] = old.id
            break
    kept = tuple(node for node in change.add if node.id not in same)
    subjects = tuple(pair for pair in change.subjects if pair[0] not in same)
    return replace(change, add=kept, subjects=subjects), same


def _verdicts(learning: _Learning, place: int, says: Relationship) -> list[Compared]:
    return [each for each in learning.draft.compared if each.fact == place and each.says == says]


def _present(learning: _Learning, shown: Node) -> Node | None:
    """Return the current state of a memory; None if its text changed or it was closed since it was shown."""
    if shown.id in learning.put:
        present: Node | None = learning.put[shown.id]
    else:
        present = learning.snapshot.nodes.get(learning.draft.said.scope, shown.id)
    return present if present is not None and present.is_live and present.content == shown.content else None


def _replace_contradicted(learning: _Learning, arrived: Arrived, facts: Facts) -> None:
    """Close facts about the same subject if a model is certain that they are outdated; else ask the user."""
    added = {node.id: node for node in arrived.change.add}
    for node_id, node in added.items():
        for verdict in _verdicts(learning, facts[node_id][0], "contradicts") if node.is_live else ():
            old = _present(learning, verdict.old)
            if old is None or not are_of_one(*(said := in_owners_person(learning.snapshot, old, node))):
                continue
            learning.settled.add(frozenset((node_id, old.id)))
            if verdict.confidence >= learning.rules.min_conflict and _may_close(*said):
                _replace(learning, node, old, facts[node_id][1])
                for each in saying_the_same(learning.snapshot, old, now=learning.now):
                    if learning.put.get(each.id, each).is_live:
                        _replace(learning, node, learning.put.get(each.id, each), facts[node_id][1])
            else:
                learning.reviews.append(review_of_two("conflict", node, old, now=learning.now))


def _without_settled(learning: _Learning, arrived: Arrived) -> Arrived:
    """Drop a rule's reviews of pairs that a model has judged, so that the user is asked only once per pair."""
    change = arrived.change
    reviews = tuple(
        each
        for each in change.reviews
        if each.older is None or frozenset((each.newer.id, each.older.id)) not in learning.settled
    )
    return replace(arrived, change=replace(change, reviews=reviews))


def _may_close(old: Node, new: Node) -> bool:
    """Return whether a fact may close an older one that a model is certain it contradicts.

    It must not if both name different slots, or if their words allow several values at a time ("likes tea").
    """
    return new.type == old.type and may_replace(new, old) and not form_of(old).may_both_hold(form_of(new))


def _replace(learning: _Learning, new: Node, old: Node, fact: Accepted) -> None:
    learning.put[old.id] = _faded(superseded(old, by=new, at=learning.at))
    doubts = carried(learning.snapshot, reviews_of(learning.snapshot, old), old, new, now=learning.now)
    learning.settled |= {frozenset((each.newer.id, each.older.id)) for each in doubts if each.older is not None}
    learning.reviews += doubts
    learning.link(supersedes(new, old, [node.id for node in fact.evidence]))
    learning.items.append(RunItem(what="replaced", id=old.id, other=new.id, text=old.content))


def resolve_contradiction(
    snapshot: Snapshot, new: Node, old: Node, *, sure: float, least: float, now: int, evidence: Sequence[str]
) -> tuple[Change, RunItem | None]:
    """Return the effect on an old memory that a new one is said to contradict; None if they cannot be compared.

    Args:
        sure: the caller's certainty of the contradiction, from 0 to 1; below `least` the user is asked.
        now: Unix milliseconds, UTC.
    """
    said = in_owners_person(snapshot, old, new)
    if not (new.is_live and old.is_live) or new.id == old.id or not are_of_one(*said):
        return Change(), None
    if least <= sure <= 1 and _may_close(*said):
        going = [old, *(each for each in saying_the_same(snapshot, old, now=now) if each.id != new.id)]
        change = Change(
            put=tuple(_faded(superseded(each, by=new, at=from_ms(now))) for each in going),
            link=tuple(supersedes(new, each, evidence) for each in going),
            reviews=tuple(carried(snapshot, reviews_of(snapshot, old), old, new, now=now)),
        )
        return change, RunItem(what="replaced", id=old.id, other=new.id, text=old.content)
    doubt = RunItem(what="in doubt", id=new.id, text=new.content, other=old.id)
    return Change(reviews=(review_of_two("conflict", new, old, now=now),)), doubt


def _link_and_record(learning: _Learning, arrived: Arrived, facts: Facts, same: Mapping[str, str]) -> None:
    """Link each fact, or the memory it repeats, to its evidence, and record the outcome."""
    added = {node.id: node for node in arrived.change.add}
    for node_id, (_, fact) in facts.items():
        kept = same.get(node_id) or (arrived.kept[node_id].id if node_id in arrived.kept else None)
        if kept is None:  # withheld
            continue
        evidence = tuple(node.id for node in fact.evidence)
        for each in evidence:
            learning.link(Edge(source=kept, target=each, type="derived_from", confidence=min(1.0, fact.sure)))
        what: RunItemKind = "added" if kept in added and kept == node_id else "repeated"
        is_held = what == "added" and not added[kept].is_live
        reason = fact.doubt if is_held else ""
        what = "held" if is_held else what
        learning.items.append(RunItem(what=what, id=kept, text=fact.content, reason=reason, evidence=evidence))
    for edge in arrived.change.link:
        if edge.type == "supersedes":
            learning.items.append(RunItem(what="replaced", id=edge.target, other=edge.source))
    for review in (*arrived.change.reviews, *learning.reviews):
        if review.kind == "conflict" and review.older is not None:
            doubt = RunItem(what="in doubt", id=review.newer.id, text=review.newer.content, other=review.older.id)
            learning.items.append(doubt)


def _cause(learning: _Learning, cause: Node, effect: Node) -> None:
    """Link a message to the message it led to, and the first facts based on the two messages."""
    pairs = [(cause.id, effect.id), *_learnt_from(learning, cause, effect)]
    for source, target in pairs:
        learning.link(causal_edge(source, target, evidence=(cause.id, effect.id)))
    learning.items.append(RunItem(what="cause", id=cause.id, text=cause.content, other=effect.id))


def causal_edge(source: str, target: str, *, evidence: tuple[str, str]) -> Edge:
    """Return the edge from a cause to its effect; `evidence` are the two messages, one of which states the link."""
    return Edge(
        source=source, target=target, type="causal", predicate="led to", confidence=CAUSAL_CONFIDENCE, evidence=evidence
    )


def _learnt_from(learning: _Learning, cause: Node, effect: Node) -> list[tuple[str, str]]:
    """Return the ids of the first facts based on each of two messages."""
    kept = {each.target: each.source for each in reversed(learning.links.values()) if each.type == "derived_from"}
    pair = kept.get(cause.id), kept.get(effect.id)
    return [(pair[0], pair[1])] if pair[0] and pair[1] and pair[0] != pair[1] else []
