"""What was judged becomes one change: facts with their evidence, whom they are about, what they repeat or replace.

It runs inside the write transaction, on what is there then: what a model was shown may have changed since.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from ricordo.clock import from_ms
from ricordo.consolidation.evolution import superseded, supersedes
from ricordo.consolidation.judge import Accepted, Judged
from ricordo.consolidation.proposal import Relationship
from ricordo.consolidation.quarantine import held, listed, reasons_to_hold
from ricordo.consolidation.resolve import Arrived, arrive, comes_after, may_replace, repeated
from ricordo.ids import new_id
from ricordo.model import (
    Assertion,
    Change,
    Edge,
    Introduction,
    Node,
    Review,
    Run,
    RunItem,
    RunItemKind,
    Scope,
    Session,
    Trust,
)
from ricordo.storage import Snapshot
from ricordo.text import statement_line
from ricordo.text.statement import compare
from ricordo.trust import capped, least_of, trust_of

Acquaint = Callable[..., Change]
"""`encoding.acquaint.acquaint`: (snapshot, change, introductions, assertions, scope=, now=) -> Change."""

IsWithheld = Callable[[Snapshot, Node, Sequence[Node]], bool]
"""Whether a fact was forgotten or erased, and its evidence says nothing anew: (snapshot, fact, evidence)."""

SLOT = "slot"
SURE = "extraction_confidence"
"""Attributes of a derived memory: what it gives the value of, and how sure the model was."""

_LEAST_CONFIDENCE, _FADING = 0.3, 0.5
CAUSAL_CONFIDENCE = 0.7
"""How sure a causal edge is: less than what anybody stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a model says an accepted fact (its place among them) is to a memory it was shown."""

    fact: int
    old: Node
    says: Relationship
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a conversation is to leave behind, before it is held against the store as it is at that moment.

    `episodes` are the messages that were shown; `place` is (owner, chat). `waits_on` where a model is still to read it
    as a whole, `is_verbatim` where its facts are the very words of whoever said them.
    """

    place: tuple[str, str]
    session: str | None
    episodes: tuple[Node, ...]
    judged: Judged
    compared: tuple[Compared, ...] = ()
    waits_on: bool = False
    is_verbatim: bool = False

    @property
    def scope(self) -> Scope:
        """That of the conversation: nobody outside it is known to it."""
        owner, chat = self.place
        return Scope(owner=owner, chat=chat or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What learning goes by: settings, and what other rooms do, handed in as functions."""

    min_conflict: float
    holds_untrusted: bool
    acquaint: Acquaint
    is_withheld: IsWithheld


@dataclass(slots=True)
class _Learning:
    """One draft as it is learnt."""

    snapshot: Snapshot
    draft: Draft
    terms: Terms
    now: int
    at: datetime
    items: list[RunItem] = field(default_factory=list)
    put: dict[str, Node] = field(default_factory=dict)
    links: dict[tuple[str, str, str], Edge] = field(default_factory=dict)
    reviews: list[Review] = field(default_factory=list)
    settled: set[frozenset[str]] = field(default_factory=set)

    def link(self, edge: Edge) -> None:
        self.links.setdefault((edge.source, edge.type, edge.target), edge)


def learn(snapshot: Snapshot, draft: Draft, terms: Terms, *, run: Run, now: int) -> tuple[Change, Run]:
    """The change that keeps a draft, and the run with what it does. Empty where another run has been there first.

    Args:
        run: as it is so far; the items of this conversation come to it.
        now: Unix milliseconds, UTC.
    """
    waiting = snapshot.runs.waiting_episodes(draft.scope, draft.place, draft.session)
    unchanged = {node.id: node for node in waiting}
    shown = {node.id: node for node in draft.episodes}
    sound = [node_id for node_id, node in shown.items() if _is_same(node, unchanged.get(node_id))]
    if not sound:
        return Change(), run
    learning = _Learning(snapshot=snapshot, draft=draft, terms=terms, now=now, at=from_ms(now))
    change = _change(learning, frozenset(sound))
    is_whole = len(sound) == len(waiting)
    if draft.waits_on and all(item.what == "refused" for item in learning.items):  # next time, the same
        return Change(), replace(run, items=(*run.items, *learning.items))
    if not draft.waits_on:
        change = replace(change, consolidated=tuple(sound), sessions=_session(learning, is_whole=is_whole))
    known = (draft.session,) if draft.session and draft.session not in run.sessions else ()
    done = replace(run, sessions=(*run.sessions, *known), items=(*run.items, *learning.items), ended_at=learning.at)
    return replace(change, runs=(done,)), done


def learn_again(snapshot: Snapshot, draft: Draft, terms: Terms, *, run: Run, now: int) -> tuple[Change, Run]:
    """The change that keeps more of messages that have become knowledge already, and the run with what it does. What
    they gave to an earlier run is left out.

    Args:
        draft: of which all messages still say what was shown.
        now: Unix milliseconds, UTC.
    """
    learning = _Learning(snapshot=snapshot, draft=draft, terms=terms, now=now, at=from_ms(now))
    change = _change(learning, frozenset(node.id for node in draft.episodes))
    return change, replace(run, items=(*run.items, *learning.items))


def _is_same(shown: Node, now: Node | None) -> bool:
    return now is not None and now.content == shown.content


def _session(learning: _Learning, *, is_whole: bool) -> tuple[Session, ...]:
    """The session, consolidated; with messages that came meanwhile it waits on."""
    draft = learning.draft
    known = None if draft.session is None else learning.snapshot.sessions.get(draft.scope, draft.session)
    if known is None:
        return ()
    summary = draft.judged.summary
    if summary:
        learning.items.append(RunItem(what="summary", text=summary))
    whole = " ".join(part for part in (known.summary, summary) if part) or None
    at = learning.at if is_whole else known.consolidated_at
    return (replace(known, summary=whole, consolidated_at=at),)


def _change(learning: _Learning, sound: Collection[str]) -> Change:
    """Facts, people, relations and causes that rest on messages which still say what was shown."""
    draft, snapshot = learning.draft, learning.snapshot
    for refused in draft.judged.refused:
        learning.items.append(RunItem(what="refused", text=refused.text, reason=refused.reason))
    facts = {
        new_id(learning.now): (place, fact)
        for place, fact in enumerate(draft.judged.facts)
        if not _is_learnt(learning, fact) and _rests_on(fact, sound, learning)
    }
    nodes = {node_id: _node(node_id, fact, draft, at=learning.at) for node_id, (_, fact) in facts.items()}
    kept = [node for node_id, node in nodes.items() if not _is_withheld(learning, node, facts[node_id][1])]
    waits = learning.terms.holds_untrusted
    held_for = {node.id: why for node in kept if (why := reasons_to_hold(node, holds_untrusted=waits))}
    given = [held(node, at=learning.at) if node.id in held_for else node for node in kept]
    change = learning.terms.acquaint(
        snapshot,
        Change(add=tuple(given)),
        _sound(draft.judged.entities, sound),
        _sound(draft.judged.relations, sound),
        scope=draft.scope,
        now=learning.now,
    )
    learning.items += [RunItem(what="entity", text=each.name) for each in change.entities]
    change, same = _without_same(learning, change, facts)
    arrived = arrive(snapshot, change, scope=draft.scope, now=learning.now, claimed=())
    if held_for:
        arrived = listed(snapshot, arrived, given, held_for, claimed=(), now=learning.now)
    arrived = _as_derived(arrived, facts)
    learning.put |= {node.id: node for node in arrived.change.put}
    _replace_contradicted(learning, arrived, facts)
    arrived = _without_settled(learning, arrived)
    _tell(learning, arrived, facts, same)
    for cause, effect in draft.judged.causes:
        if {cause.id, effect.id} <= set(sound):
            _cause(learning, cause, effect)
    return replace(
        arrived.change,
        put=tuple(learning.put.values()),
        link=(*arrived.change.link, *learning.links.values()),
        reviews=(*arrived.change.reviews, *learning.reviews),
    )


Facts = Mapping[str, tuple[int, Accepted]]
"""Accepted facts by the ids of the nodes they become, each with its place in the draft."""

Told = TypeVar("Told", Introduction, Assertion)


def _sound(told: Sequence[Told], sound: Collection[str]) -> list[Told]:
    """What rests on messages that still say what was shown."""
    return [each for each in told if set(each.evidence) <= set(sound)]


def _rests_on(fact: Accepted, sound: Collection[str], learning: _Learning) -> bool:
    if {node.id for node in fact.evidence} <= set(sound):
        return True
    learning.items.append(RunItem(what="refused", text=fact.content, reason="its evidence has changed"))
    return False


def _is_learnt(learning: _Learning, fact: Accepted) -> bool:
    """Whether an earlier run has this fact from these very messages: they are no repetition of themselves.

    A conversation that waits on is read again and again, and each time says nothing of what it gave before.
    """
    draft = learning.draft
    values = {
        "content": fact.content,
        "line": statement_line(fact.content),
        "space": learning.snapshot.space(*draft.place),
        "evidence": json.dumps([node.id for node in fact.evidence]),
        "least": 1 if draft.waits_on else len(fact.evidence),
    }
    found = learning.snapshot.rows("learnt_already", values)
    if found and not draft.waits_on:
        node_id, is_live = found[0]
        evidence = tuple(node.id for node in fact.evidence)
        told = RunItem(what="repeated", id=node_id, text=fact.content, reason="was learnt before", evidence=evidence)
        ended = RunItem(what="refused", text=fact.content, reason="was learnt before, and has ended since")
        learning.items.append(told if is_live else ended)
    return bool(found)


def _is_withheld(learning: _Learning, node: Node, fact: Accepted) -> bool:
    if not learning.terms.is_withheld(learning.snapshot, node, fact.evidence):
        return False
    learning.items.append(RunItem(what="refused", text=node.content, reason="was forgotten"))
    return True


def _node(node_id: str, fact: Accepted, draft: Draft, *, at: datetime) -> Node:
    """A derived memory stands where its evidence stands: in that session, at that time, by that speaker."""
    last = max(fact.evidence, key=lambda node: (node.event_time, node.key))
    speakers = {node.speaker for node in fact.evidence}
    owner, chat = draft.place
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
        # What a rule kept are the very words of whoever said them; what a model made of them is the model's.
        origin=last.origin if draft.is_verbatim else capped("extraction", "user", caller=tier_of(fact.evidence)),
        about=fact.about,
        attributes={SURE: fact.sure, **({SLOT: fact.slot} if fact.slot else {})},
        event_time=last.event_time,
        created_at=at,
        valid_from=last.event_time,
        confidence=fact.confidence,
    )


def tier_of(evidence: Sequence[Node]) -> Trust:
    """That of the least trusted message: what a source may not do, its derivatives may not do either. Pure."""
    return least_of(trust_of(node.origin, node.role) for node in evidence)


def _as_derived(arrived: Arrived, facts: Facts) -> Arrived:
    """What a rule let a derived fact replace fades as what a model contradicted; the edge names the evidence."""
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
    """No longer believed: it stays in the archive, and weighs little there."""
    return replace(node, confidence=min(node.confidence, _LEAST_CONFIDENCE), decay_rate=max(node.decay_rate, _FADING))


def _without_same(learning: _Learning, change: Change, facts: Facts) -> tuple[Change, Mapping[str, str]]:
    """The change without the facts that a model found to say what a memory says already; those, by their ids.

    Such a memory counts for more instead. That holds only where both are about the same.
    """
    same: dict[str, str] = {}
    for node in change.add:
        if not node.is_live:  # held back: it has to do with nothing
            continue
        for verdict in _verdicts(learning, facts[node.id][0], "same"):
            old = _present(learning, verdict.old)
            if old is None or set(old.about) != set(node.about) or verdict.confidence < learning.terms.min_conflict:
                continue
            if not _rests_on_all(learning, old, facts[node.id][1]):
                learning.put[old.id] = repeated(old, replace(node, attributes={}), at=learning.at)
            same[node.id] = old.id
            break
    kept = tuple(node for node in change.add if node.id not in same)
    subjects = tuple(pair for pair in change.subjects if pair[0] not in same)
    return replace(change, add=kept, subjects=subjects), same


def _rests_on_all(learning: _Learning, old: Node, fact: Accepted) -> bool:
    """Whether a memory has all the evidence of a fact that says the same: then it was not said again."""
    values = {"node": old.key, "evidence": json.dumps([node.id for node in fact.evidence])}
    return bool(learning.snapshot.value("rests_on_count", values) >= len(fact.evidence))


def _verdicts(learning: _Learning, place: int, says: Relationship) -> list[Compared]:
    return [each for each in learning.draft.compared if each.fact == place and each.says == says]


def _present(learning: _Learning, shown: Node) -> Node | None:
    """A memory as it is now; None where it no longer says what was shown, or does not live."""
    if shown.id in learning.put:
        present: Node | None = learning.put[shown.id]
    else:
        present = learning.snapshot.nodes.get(learning.draft.scope, shown.id)
    return present if present is not None and present.is_live and present.content == shown.content else None


def _replace_contradicted(learning: _Learning, arrived: Arrived, facts: Facts) -> None:
    """What a model is sure no longer holds gives way, of the same subject and slot; else somebody is asked."""
    added = {node.id: node for node in arrived.change.add}
    for node_id, node in added.items():
        for verdict in _verdicts(learning, facts[node_id][0], "contradicts") if node.is_live else ():
            old = _present(learning, verdict.old)
            if old is None or set(old.about) != set(node.about):
                continue
            learning.settled.add(frozenset((node_id, old.id)))
            if verdict.confidence >= learning.terms.min_conflict and _fills_the_slot(node, old):
                _replace(learning, node, old, facts[node_id][1])
            else:
                learning.reviews.append(_question(learning, node, old))


def _without_settled(learning: _Learning, arrived: Arrived) -> Arrived:
    """Nobody is asked twice about a pair: what a model says of it goes before what a rule makes of its words."""
    change = arrived.change
    reviews = tuple(
        each
        for each in change.reviews
        if each.older is None or frozenset((each.newer.id, each.older.id)) not in learning.settled
    )
    return replace(arrived, change=replace(change, reviews=reviews))


def _fills_the_slot(new: Node, old: Node) -> bool:
    """Whether both give the value of one slot, and the newer may close the older. Pure."""
    named = new.attributes.get(SLOT)
    is_one_slot = compare(old.content, new.content) in ("replaced", "conflict") or (
        bool(named) and named == old.attributes.get(SLOT)
    )
    return is_one_slot and new.type == old.type and may_replace(new, old)


def _replace(learning: _Learning, new: Node, old: Node, fact: Accepted) -> None:
    learning.put[old.id] = _faded(superseded(old, by=new, at=learning.at))
    learning.link(supersedes(new, old, [node.id for node in fact.evidence]))
    learning.items.append(RunItem(what="replaced", id=old.id, other=new.id, text=old.content))


def _question(learning: _Learning, new: Node, old: Node) -> Review:
    return _doubt(new, old, now=learning.now)


def _doubt(new: Node, old: Node, *, now: int) -> Review:
    newer, older = (new, old) if comes_after(new, old) else (old, new)
    return Review(
        id=new_id(now),
        kind="conflict",
        newer=newer,
        older=older,
        created_at=from_ms(now),
        owner=new.owner,
        chat=new.chat,
    )


def replacing(
    new: Node, old: Node, *, sure: float, least: float, now: int, evidence: Sequence[str]
) -> tuple[Change, RunItem | None]:
    """What becomes of a memory that another, kept already, is said to contradict; None where they do not compare. Pure.

    Args:
        sure: how sure whoever says so is, from 0 to 1; below `least` somebody is asked.
        now: Unix milliseconds, UTC.
    """
    if not (new.is_live and old.is_live) or new.id == old.id or set(new.about) != set(old.about):
        return Change(), None
    if least <= sure <= 1 and _fills_the_slot(new, old):
        change = Change(put=(_faded(superseded(old, by=new, at=from_ms(now))),), link=(supersedes(new, old, evidence),))
        return change, RunItem(what="replaced", id=old.id, other=new.id, text=old.content)
    doubt = RunItem(what="in doubt", id=new.id, text=new.content, other=old.id)
    return Change(reviews=(_doubt(new, old, now=now),)), doubt


def _tell(learning: _Learning, arrived: Arrived, facts: Facts, same: Mapping[str, str]) -> None:
    """Tie each fact, or what stands for it, to its evidence, and note what became of it."""
    added = {node.id: node for node in arrived.change.add}
    for node_id, (_, fact) in facts.items():
        kept = same.get(node_id) or (arrived.kept[node_id].id if node_id in arrived.kept else None)
        if kept is None:  # withheld
            continue
        evidence = tuple(node.id for node in fact.evidence)
        for each in evidence:
            learning.link(Edge(source=kept, target=each, type="derived_from", confidence=min(1.0, fact.sure)))
        what: RunItemKind = "added" if kept in added and kept == node_id else "repeated"
        what = "held" if what == "added" and not added[kept].is_live else what
        learning.items.append(RunItem(what=what, id=kept, text=fact.content, evidence=evidence))
    for edge in arrived.change.link:
        if edge.type == "supersedes":
            learning.items.append(RunItem(what="replaced", id=edge.target, other=edge.source))
    for review in (*arrived.change.reviews, *learning.reviews):
        if review.kind == "conflict" and review.older is not None:
            doubt = RunItem(what="in doubt", id=review.newer.id, text=review.newer.content, other=review.older.id)
            learning.items.append(doubt)


def _cause(learning: _Learning, cause: Node, effect: Node) -> None:
    """One message led to the other; so did what was learnt from the one alone to what was learnt from the other."""
    pairs = [(cause.id, effect.id), *_learnt_from(learning, cause, effect)]
    for source, target in pairs:
        edge = Edge(
            source=source,
            target=target,
            type="causal",
            predicate="led to",
            confidence=CAUSAL_CONFIDENCE,
            evidence=(cause.id, effect.id),
        )
        learning.link(edge)
    learning.items.append(RunItem(what="cause", id=cause.id, text=cause.content, other=effect.id))


def _learnt_from(learning: _Learning, cause: Node, effect: Node) -> list[tuple[str, str]]:
    """The first facts that rest on each of two messages, as they are kept."""
    kept = {each.target: each.source for each in reversed(learning.links.values()) if each.type == "derived_from"}
    pair = kept.get(cause.id), kept.get(effect.id)
    return [(pair[0], pair[1])] if pair[0] and pair[1] and pair[0] != pair[1] else []
