"""Turn conversations into knowledge: read, ask a model, check, compare, commit. Also: summarise, replay and accept.

No transaction is open while a model is asked. The messages shown to it are checked again before anything is written.
After a failure, a conversation waits as before.

A replay asks a model again about a run's conversations. Accepting it, completely or item by item, makes one change: new
facts are added, and facts that were not found again are closed, unless they changed since the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ricordo.clock import from_ms, new_id, to_ms
from ricordo.consolidation.apply import Draft, LearningRules, Transcript, learn, learn_again, with_summary
from ricordo.consolidation.context import (
    BudgetError,
    ConsolidationContext,
    Spent,
    ask_model,
    new_run,
    note_failure,
    note_outcome,
    require_model,
    with_cost,
)
from ricordo.consolidation.extraction import BUSY, make_draft, prompt_pages, transcript, waiting_conversations
from ricordo.consolidation.judge import Accepted, Judged
from ricordo.consolidation.prompts import VERSION, extraction
from ricordo.consolidation.proposed import Summary
from ricordo.consolidation.reviews import MAX_TRIES
from ricordo.errors import ConflictError, DeniedError, InvalidError, NotFoundError, RicordoError, UnavailableError
from ricordo.model import Assertion, Change, Closing, Introduction, Node, Run, RunItem, Scope
from ricordo.models.language import AnswerError
from ricordo.storage import Snapshot
from ricordo.storage.values import Waiting
from ricordo.text.analyzer import name_key
from ricordo.text.canonical import MUCH, likeness

_MAX_SUMMARY_CHARS = 2_000
_SUMMARISE = "summarise.1"

Offer = tuple[RunItem, Accepted | None]
"""An item of a replay, and the fact it would add."""


async def consolidate(
    context: ConsolidationContext, session: str | None, *, dry_run: bool, finished_before: int | None = None
) -> Run:
    """Turn one conversation, or all that wait, into knowledge: one commit each, under the id of one run.

    Args:
        session: this conversation, even if it failed before; None: all that wait and have not failed three times.
        finished_before: only conversations that ended, or were last active, before this time; Unix milliseconds.

    Raises:
        NotFoundError: there is no such session.
    """
    run = new_run(context, "consolidation", prompt=VERSION, dry_run=dry_run)
    failed: list[RunItem] = []
    has_asked = False
    waiting = await context.store.read(lambda tx: _waiting(tx, context.scope, session, finished_before=finished_before))
    for each in waiting:
        spent = Spent(run=run, session=each.session)
        try:
            async with context.conversation((each.owner, each.chat), each.session, dry_run=dry_run) as is_ours:
                if is_ours:
                    run = await _consolidate_one(context, each, run, spent, dry_run=dry_run)
                else:
                    left = RunItem(what="left", text=each.session or "", reason=BUSY)
                    run = replace(run, items=(*run.items, left))
        except RicordoError as error:
            run = with_cost(run, spent, context.limits)
            failed.append(await _record_failure(context, run, each, error, counts=not dry_run))
            if not isinstance(error, AnswerError):
                break  # an unreachable provider fails for every conversation
        finally:
            has_asked |= spent.calls > 0
    if failed:
        has_done = any(item.what != "left" for item in run.items)
        reason = failed[0].reason if not has_done else ""
        state = run.state if has_done else "failed"
        run = replace(run, state=state, reason=reason, items=(*run.items, *failed))
    if has_asked or failed:
        await note_outcome(context, run)
    return replace(run, ended_at=from_ms(context.now()))


def _waiting(snapshot: Snapshot, scope: Scope, session: str | None, *, finished_before: int | None) -> list[Waiting]:
    waiting = waiting_conversations(snapshot, scope, session)
    if session is not None:
        return waiting
    failures = snapshot.runs.failures(scope)
    given_up = {(each.owner, each.chat, each.session) for each in failures if each.tries >= MAX_TRIES}
    return [
        each
        for each in waiting
        if (each.owner, each.chat, each.session) not in given_up
        and (finished_before is None or each.is_over(quiet_since=from_ms(finished_before)))
    ]


async def _consolidate_one(
    context: ConsolidationContext, waiting: Waiting, run: Run, spent: Spent, *, dry_run: bool
) -> Run:
    place, session = (waiting.owner, waiting.chat), waiting.session
    said = await context.store.read(
        lambda tx: transcript(tx, place, session, tx.runs.waiting_episodes(context.scope, place, session))
    )
    draft = await make_draft(context, said, spent)
    paid = with_cost(run, spent, context.limits)

    def decide(tx: Snapshot) -> tuple[Change, Run]:
        return learn(tx, draft, context.learning, run=paid, now=context.now())

    if dry_run:
        return await context.store.read(lambda tx: decide(tx)[1])
    done = await context.write("consolidate", decide, run_id=run.id, scope=draft.said.scope)
    await context.store.derive(lambda tx: _settle(tx, draft, at=context.now()))
    return done


def _settle(snapshot: Snapshot, draft: Draft, *, at: int) -> None:
    """Delete the failures and stored answers of a conversation that was learnt. A failed page counts as a failure."""
    place, session = draft.said.place, draft.said.session
    snapshot.proposals.drop(draft.answers)
    if draft.failed:
        snapshot.runs.note_failure(place, session, at=at, reason=next(iter(draft.failed.values())))
    else:
        snapshot.runs.forget_failures(place, session)


async def _record_failure(
    context: ConsolidationContext, run: Run, waiting: Waiting, error: RicordoError, *, counts: bool
) -> RunItem:
    """Record that a conversation failed. After three failures it becomes a review."""
    reason = await note_failure(context, run, error, waiting.session)
    if counts and not isinstance(error, BudgetError | DeniedError):
        place, at = (waiting.owner, waiting.chat), context.now()
        await context.store.derive(lambda tx: tx.runs.note_failure(place, waiting.session, at=at, reason=reason))
    return RunItem(what="failed", text=waiting.session or "", reason=reason)


async def summarise(context: ConsolidationContext, session: str) -> str:
    """Summarise a complete conversation, and store the summary with its session.

    Raises:
        NotFoundError: there is no such session.
        UnavailableError: no language model is configured, or its summary was refused.
    """
    require_model(context)
    run, parts = new_run(context, "summary", prompt=_SUMMARISE), list[str]()
    place = context.scope.owner, context.scope.chat or ""
    found = await context.store.read(lambda tx: _whole(tx, context.scope, place, session))
    if not found.episodes:
        raise NotFoundError(f"there is no session {session!r}", hint="a session begins with its first message")
    spent = Spent(run=run, session=session)
    try:
        for page in prompt_pages(context, found.shown, prompt=_SUMMARISE):
            turns = extraction(page.lines, before=page.before, day=page.day, name=_SUMMARISE)
            parts.append((await ask_model(context, turns, Summary, spent)).summary)
    except RicordoError as error:
        await note_failure(context, run, error, session)
        raise
    await note_outcome(context, run)
    text, shown = " ".join(" ".join(parts).split())[:_MAX_SUMMARY_CHARS], {node.id for node in found.episodes}
    if not text or context.rules.has_credential(text) or context.rules.is_instruction(text):
        raise UnavailableError("the model gave no usable summary")

    def decide(tx: Snapshot) -> tuple[Change, str]:
        known = tx.sessions.get(context.scope, session)
        present = [node for node in _whole(tx, context.scope, place, session).episodes if node.id in shown]
        if known is None or not present:
            return Change(), text
        change = Change(sessions=(replace(known, summary=text),), close=_summaries_of(tx, context, present))
        return with_summary(change, text, present, node_id=new_id(context.now()), at=from_ms(context.now())), text

    return await context.write("summarise", decide)


def _summaries_of(snapshot: Snapshot, context: ConsolidationContext, episodes: Sequence[Node]) -> tuple[Closing, ...]:
    """Return the closings of a conversation's existing summaries, which a new summary replaces."""
    keys = {key for node in episodes for key in snapshot.nodes.concluded_from(node.key)}
    nodes = snapshot.nodes.by_key(context.scope, keys).values()
    told = [node for node in nodes if node.category == "summary" and node.session == episodes[0].session]
    return tuple(Closing(id=node.id, at=from_ms(context.now()), reason="expired") for node in told)


def _whole(snapshot: Snapshot, scope: Scope, place: tuple[str, str], session: str) -> Transcript:
    return transcript(snapshot, place, session, snapshot.runs.session_episodes(scope, place, session))


# ---- replay


async def replay(context: ConsolidationContext, run: Run) -> Run:
    """Ask a model again about the conversations of a run, and store the result for `accept`. Nothing else changes.

    An item is "added" if it is new, "repeated" if a memory already states it, and "missing" if the run produced it, it
    still exists, and the model did not find it again.
    """
    if run.kind not in ("consolidation", "extraction", "replay"):
        raise InvalidError(
            f"run: {run.id} cannot be replayed: its kind is {run.kind}",
            hint="choose a run that consolidated conversations",
        )
    drafts, offers, place = list[Draft](), list[Offer](), (run.owner, run.chat)
    fresh = replace(
        new_run(context, "replay", prompt=VERSION),
        state="proposed",
        sessions=run.sessions,
        owner=run.owner,
        chat=run.chat,
    )
    spent = Spent(run=fresh)
    try:
        for session in run.sessions:
            spent.session = session
            found = await context.store.read(lambda tx, at=session: _whole(tx, context.scope, place, at))  # type: ignore[misc]
            drafts.append(await make_draft(context, found, spent, replays=run.id))
    except RicordoError as error:
        await note_failure(context, fresh, error)
        raise
    made = await context.store.read(lambda tx: _still_known(tx, context.scope, run))
    again: set[str] = set()
    for draft in drafts:
        found_again = _matched(draft.judged.facts, made)
        again |= set(found_again.values())
        others = await context.store.read(lambda tx, of=draft: _outcomes(tx, context, of, fresh))  # type: ignore[misc]
        for number, fact in enumerate(draft.judged.facts):
            evidence = tuple(node.id for node in fact.evidence)
            item = RunItem(what="added", text=fact.content, evidence=evidence)
            if number in found_again:
                item = replace(item, what="repeated", id=found_again[number])
            elif (other := others.get(fact.content)) is not None:
                item = replace(item, what=other.what, id=other.id, reason=other.reason)
            offers.append((item, fact))
        offers += [(RunItem(what="refused", text=each.text, reason=each.reason), None) for each in draft.judged.refused]
    again |= {item.id for item, _ in offers if item.what == "repeated" and item.id}
    offers += [(replace(item, what="missing", reason=""), None) for id, item in made.items() if id not in again]
    fresh = replace(fresh, items=tuple(item for item, _ in offers), ended_at=from_ms(context.now()))
    paid, at = with_cost(fresh, spent, context.limits), context.now()
    await context.store.derive(lambda tx: _keep_replay(tx, context.scope, paid, run, drafts, offers, now=at))
    await note_outcome(context, paid)
    return paid


def _still_known(snapshot: Snapshot, scope: Scope, run: Run) -> dict[str, RunItem]:
    """Return the items that a run added or repeated and that still exist, by id."""
    made = {item.id: item for item in run.items if item.what in ("added", "repeated") and item.id and item.text}
    nodes = ((id, snapshot.nodes.get(scope, id)) for id in made)
    return {id: made[id] for id, node in nodes if node is not None and node.is_live}


def _matched(facts: Sequence[Accepted], made: Mapping[str, RunItem]) -> dict[int, str]:
    """Match facts (by index) with items of a run (by id) that say the same: best first, each item at most once.

    An item that stands for an older memory may have other words; the same evidence is then enough.
    """
    scores: list[tuple[float, int, str]] = []
    for number, fact in enumerate(facts):
        evidence = {node.id for node in fact.evidence}
        for id, item in made.items():
            score = likeness(item.text, fact.content)
            if score < MUCH and item.what == "repeated" and set(item.evidence) == evidence:
                score = MUCH / 2
            if score:
                scores.append((score, number, id))
    found: dict[int, str] = {}
    for score, number, id in sorted(scores, key=lambda each: -each[0]):
        is_taken = id in found.values() and score < 1
        if number not in found and not is_taken and (score >= MUCH or made[id].what == "repeated"):
            found[number] = id
    return found


def _outcomes(snapshot: Snapshot, context: ConsolidationContext, draft: Draft, run: Run) -> dict[str, RunItem]:
    """Return, by text, the outcomes of facts that would not be added if they were accepted now."""
    _, done = learn_again(snapshot, replace(draft, waits_on=False), context.learning, run=run, now=context.now())
    refused = {each.text for each in draft.judged.refused}
    return {
        item.text: item
        for item in done.items
        if item.text not in refused and (item.what == "refused" or (item.what == "repeated" and item.id))
    }


def _keep_replay(
    snapshot: Snapshot, scope: Scope, run: Run, base: Run, drafts: Sequence[Draft], offers: Sequence[Offer], *, now: int
) -> None:
    """Store a replay of the run `base` until it is accepted, unless a message was removed while the model read."""
    snapshot.proposals.drop([key for draft in drafts for key in draft.answers])
    shown = {node.id: _digest(node) for draft in drafts for node in draft.said.episodes}
    space = snapshot.space(run.owner, run.chat)
    if space is None or len(_unchanged(snapshot, scope, run, shown)) < len(shown):
        return
    body = {
        "base": base.id,
        "is_undone": base.state in ("undone", "failed"),
        "shown": shown,
        "items": [_offer_json(item, fact) for item, fact in offers],
        "run": {**asdict(replace(run, items=())), "started_at": to_ms(run.started_at), "ended_at": to_ms(run.ended_at)},
        "entities": [asdict(each) for draft in drafts for each in draft.judged.entities],
        "relations": [asdict(each) for draft in drafts for each in draft.judged.relations],
    }
    snapshot.proposals.put(run.id, space=space, at=now, body=json.dumps(body, ensure_ascii=False))


def _offer_json(item: RunItem, fact: Accepted | None) -> dict[str, Any]:
    """Return an item as it is stored, without the text of existing memories and of refused items."""
    found = {"what": item.what, "id": item.id, "evidence": item.evidence}
    if fact is None or item.what != "added":
        return found
    more = {name: getattr(fact, name) for name in ("type", "category", "about", "slot", "confidence", "sure", "doubt")}
    return {**found, "text": item.text, "fact": more}


def _digest(node: Node) -> str:
    return hashlib.sha256(node.content.encode()).hexdigest()


def _unchanged(snapshot: Snapshot, scope: Scope, run: Run, shown: Mapping[str, str]) -> dict[str, Node]:
    """Return the messages that are unchanged since they were shown to a model."""
    place = run.owner, run.chat
    there = [node for each in run.sessions for node in snapshot.runs.session_episodes(scope, place, each)]
    return {node.id: node for node in there if shown.get(node.id) == _digest(node)}


# ---- accept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replay:
    """A stored replay. `base` is the id of the replayed run, which may have been undone or failed before; `shown` are
    digests of messages by id.
    """

    run: Run
    base: str
    is_undone: bool = False
    shown: Mapping[str, str]
    items: Sequence[Mapping[str, Any]]
    entities: Sequence[Mapping[str, Any]]
    relations: Sequence[Mapping[str, Any]]


async def accept(context: ConsolidationContext, run_id: str, numbers: Sequence[int] | None) -> Run:
    """Apply a replay, or some of its items, as one change under its id. No item is applied twice.

    Args:
        run_id: the replay's id, or a unique beginning or end of it.
        numbers: numbers of items, counted from 1; None for all.

    Raises:
        NotFoundError: no replay with this id is stored.
        InvalidError: there is no such item, or the item cannot be accepted.
        ConflictError: its messages, or the run it replays, have changed since.
    """
    known = await context.store.read(lambda tx: _stored_replay(tx, context.scope, run_id).run.id)

    def decide(tx: Snapshot) -> tuple[Change, Run]:
        return _accept(tx, context.scope, known, numbers, context.learning, now=context.now())

    return await context.write("accept", decide, run_id=known)


def _accept(
    snapshot: Snapshot, scope: Scope, run_id: str, numbers: Sequence[int] | None, rules: LearningRules, *, now: int
) -> tuple[Change, Run]:
    found = _stored_replay(snapshot, scope, run_id)
    chosen = _chosen(found.items, numbers)
    base = snapshot.runs.get(scope, found.base)
    if base is None or (base.state == "undone" and not found.is_undone):
        raise ConflictError(f"the run that {run_id} replays was undone", hint="consolidate again")
    there = _unchanged(snapshot, scope, found.run, found.shown)
    if len(there) < len(found.shown):
        raise ConflictError(
            "a message that the replay read was changed or removed since",
            hint="replay the run again and accept the new replay",
        )
    before = snapshot.runs.get(scope, found.run.id)
    run = replace(found.run, items=() if before is None or before.state != "done" else before.items)
    draft = _accepted_draft(found, chosen, there, is_whole=numbers is None)
    change, done = learn_again(snapshot, draft, rules, run=run, now=now)
    closings, items = _closings(snapshot, scope, chosen, base, done, now=now)
    done = replace(done, items=(*done.items, *items), ended_at=from_ms(now))
    if change.is_empty and not items:  # nothing new, or only refusals
        return Change(), done
    return replace(change, close=(*change.close, *closings), runs=(done,)), done


def _stored_replay(snapshot: Snapshot, scope: Scope, run_id: str) -> _Replay:
    body = snapshot.proposals.body(scope, run_id)
    found = {} if body is None else json.loads(body)
    if "base" not in found:
        raise NotFoundError(
            f"there is no replay {run_id} to accept", hint="replay a run first, then accept it by the replay's id"
        )
    stored = found.pop("run")
    times = {name: from_ms(stored[name]) for name in ("started_at", "ended_at")}
    run = Run(**{**stored, **times, "state": "done", "items": (), "sessions": tuple(stored["sessions"])})
    return _Replay(run=run, **found)


def _chosen(items: Sequence[Mapping[str, Any]], numbers: Sequence[int] | None) -> list[Mapping[str, Any]]:
    """Return the items with these numbers. Repeated and refused items cannot be accepted.

    Raises:
        InvalidError: a number does not belong to an item that can be accepted.
    """
    if numbers is None:
        return [item for item in items if item["what"] in ("added", "missing")]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(items):
            raise InvalidError(f"items: there is no item {number!r}", hint=f"items are numbered from 1 to {len(items)}")
        if (what := items[number - 1]["what"]) not in ("added", "missing"):
            raise InvalidError(f"items: item {number} is {what!r}", hint='only "added" and "missing" can be accepted')
    return [items[number - 1] for number in dict.fromkeys(numbers)]


def _accepted_draft(
    found: _Replay, chosen: Iterable[Mapping[str, Any]], there: Mapping[str, Node], *, is_whole: bool
) -> Draft:
    """Return the accepted facts with their subjects. All entities and relations are included only if `is_whole`."""
    facts = [
        Accepted(
            **{**item["fact"], "about": tuple(item["fact"]["about"])},
            content=item["text"],
            evidence=tuple(there[each] for each in item["evidence"]),
        )
        for item in chosen
        if item["what"] == "added"
    ]
    named = {name_key(name) for fact in facts for name in fact.about}
    entities = [
        Introduction(**{**each, "aliases": tuple(each["aliases"]), "evidence": tuple(each["evidence"])})
        for each in found.entities
        if is_whole or not named.isdisjoint(map(name_key, (each["name"], *each["aliases"])))
    ]
    relations = [Assertion(**{**each, "evidence": tuple(each["evidence"])}) for each in found.relations if is_whole]
    judged = Judged(facts=tuple(facts), entities=tuple(entities), relations=tuple(relations))
    place = found.run.owner, found.run.chat
    said = Transcript(place=place, session=None, episodes=tuple(there.values()))
    return Draft(said=said, judged=judged, waits_on=True)


def _closings(
    snapshot: Snapshot, scope: Scope, chosen: Iterable[Mapping[str, Any]], base: Run, done: Run, *, now: int
) -> tuple[list[Closing], list[RunItem]]:
    """Return the closings of memories that the replayed run made, the model missed, and nobody changed since."""
    closings, items = list[Closing](), list[RunItem]()
    known = {(item.what, item.id) for item in done.items}
    for item in chosen:
        node = snapshot.nodes.get(scope, item["id"]) if item["what"] == "missing" else None
        if node is None or not node.is_live:
            continue
        if _is_as_made(snapshot, node, base):
            closings.append(Closing(id=node.id, at=from_ms(now), reason="retracted"))
            items.append(RunItem(what="missing", id=node.id, text=node.content))
        elif ("kept", node.id) not in known:
            items.append(RunItem(what="kept", id=node.id, text=node.content, reason="was touched since"))
    return closings, items


def _is_as_made(snapshot: Snapshot, node: Node, base: Run) -> bool:
    """Return whether a run made a memory that is unchanged since: not confirmed, corrected, reinforced, demoted,
    updated or repeated. Changes that were undone do not count.
    """
    versions = snapshot.history.versions(node)
    first = versions[0][1]
    mine = [was for was, commit in versions if commit is not None and commit.run_id == base.id]
    return first is not None and first.run_id == base.id and mine[-1] == node
