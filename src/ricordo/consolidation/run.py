"""Turn conversations into knowledge: read, ask a model, judge, compare, commit. Also: summarise, replay and accept.

No transaction is open while a model is asked, and what it was shown is checked again before anything is written. A
failure leaves a conversation waiting as it was.

A replay asks a model again about a run's conversations. Accepting it, whole or item by item, makes one change: what it
adds is added, and what it did not find again is closed, unless it was touched since the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ricordo.clock import from_ms, to_ms
from ricordo.consolidation.apply import Draft, LearningRules, Transcript, learn, learn_again
from ricordo.consolidation.context import (
    BudgetError,
    ConsolidationContext,
    Spent,
    ask_model,
    check_budget,
    failure_reason,
    model_name,
    new_run,
    note_use,
    require_model,
    with_cost,
    within_budget,
)
from ricordo.consolidation.extraction import BUSY, make_draft, prompt_pages, transcript, waiting_conversations
from ricordo.consolidation.judge import Accepted, Judged, Summary
from ricordo.consolidation.prompts import VERSION, extraction
from ricordo.consolidation.resolve import is_much_the_same
from ricordo.consolidation.reviews import MAX_TRIES
from ricordo.errors import ConflictError, DeniedError, InvalidError, NotFoundError, RicordoError, UnavailableError
from ricordo.ids import new_id
from ricordo.model import Assertion, Change, Closing, Introduction, Node, Run, RunItem, RunItemKind, Scope
from ricordo.models.language import AnswerError
from ricordo.storage import Snapshot
from ricordo.storage.values import Waiting
from ricordo.text import name_key

_MAX_SUMMARY_CHARS = 2_000

Offer = tuple[RunItem, Accepted | None]
"""An item of a replay, and the fact it would add."""


async def consolidate(
    context: ConsolidationContext, session: str | None, *, dry_run: bool, finished_before: int | None = None
) -> Run:
    """Turn one conversation, or all that wait, into knowledge: one commit each, under the id of one run.

    Args:
        session: this conversation, even if it failed before; None: all that wait and have not failed three times.
        finished_before: only conversations that are over or silent since then; Unix milliseconds.

    Raises:
        NotFoundError: there is no such session.
    """
    run = new_run(context, "consolidation", prompt=VERSION, dry_run=dry_run)
    failed: list[RunItem] = []
    waiting = await context.store.read(lambda tx: _waiting(tx, context.scope, session, finished_before=finished_before))
    for each in waiting:
        spent = Spent()
        try:
            await check_budget(context)
            async with context.conversation((each.owner, each.chat), each.session, dry_run=dry_run) as is_ours:
                if is_ours:
                    run = await _consolidate_one(context, each, run, spent, dry_run=dry_run)
                else:
                    left = RunItem(what="left", text=each.session or "", reason=BUSY)
                    run = replace(run, items=(*run.items, left))
        except RicordoError as error:
            run = with_cost(run, spent, context.limits)
            failed.append(await _record_failure(context, each, error, counts=not dry_run))
            if not isinstance(error, AnswerError):
                break  # a provider that is down fails for every conversation
        finally:
            await note_use(context, spent)
    if failed:
        has_done = any(item.what != "left" for item in run.items)
        reason = failed[0].reason if not has_done else ""
        state = run.state if has_done else "failed"
        run = replace(run, state=state, reason=reason, items=(*run.items, *failed))
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
        if (each.owner, each.chat, each.session) not in given_up and _is_finished(each, finished_before)
    ]


def _is_finished(waiting: Waiting, before: int | None) -> bool:
    if before is None or waiting.ended_at is not None:
        return True
    return max(waiting.last_added_at, waiting.last_said_at) < from_ms(before)


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
    reason = context.reason("consolidate", run.id)
    done = await context.store.write(decide, scope=draft.said.scope, reason=reason, at=from_ms(context.now()))
    await context.store.derive(lambda tx: tx.runs.forget_failures(place, session))
    return done


async def _record_failure(
    context: ConsolidationContext, waiting: Waiting, error: RicordoError, *, counts: bool
) -> RunItem:
    """Record that a conversation failed; after three times it becomes a review."""
    reason = failure_reason(error)
    if counts and not isinstance(error, BudgetError | DeniedError):
        place, at = (waiting.owner, waiting.chat), context.now()
        await context.store.derive(lambda tx: tx.runs.note_failure(place, waiting.session, at=at, reason=reason))
    return RunItem(what="failed", text=waiting.session or "", reason=reason)


async def summarise(context: ConsolidationContext, session: str) -> str:
    """Summarise a whole conversation, and store the summary with its session.

    Raises:
        NotFoundError: there is no such session.
        UnavailableError: no language model is chosen, or it gave no summary that may be kept.
    """
    model, parts = require_model(context), list[str]()
    place = context.scope.owner, context.scope.chat or ""
    found = await context.store.read(lambda tx: _whole(tx, context.scope, place, session))
    if not found.episodes:
        raise NotFoundError(f"there is no session {session!r}", hint="a session begins with its first message")
    async with within_budget(context) as spent:
        for page in prompt_pages(context, found.shown, prompt="summarise.1"):
            turns = extraction(page.lines, before=page.before, day=page.day, name="summarise.1")
            parts.append((await ask_model(model, turns, Summary, spent)).summary)
    text = " ".join(" ".join(parts).split())[:_MAX_SUMMARY_CHARS]
    if not text or context.rules.has_credential(text) or context.rules.is_instruction(text):
        raise UnavailableError("the model gave no summary that may be kept")

    def decide(tx: Snapshot) -> tuple[Change, str]:
        known = tx.sessions.get(context.scope, session)
        return (Change() if known is None else Change(sessions=(replace(known, summary=text),))), text

    reason = context.reason("summarise")
    return await context.store.write(decide, scope=context.scope, reason=reason, at=from_ms(context.now()))


def _whole(snapshot: Snapshot, scope: Scope, place: tuple[str, str], session: str) -> Transcript:
    return transcript(snapshot, place, session, snapshot.runs.session_episodes(scope, place, session))


# replay


async def replay(context: ConsolidationContext, run: Run) -> Run:
    """Ask a model again about the conversations of a run, and keep the result for `accept`. Nothing else changes.

    An item is "added" if no known memory says it, "repeated" if one does, and "missing" if the run made it, it is
    still known, and the model did not find it again.
    """
    if run.kind not in ("consolidation", "replay"):
        raise InvalidError(
            f"run: {run.id} is of another kind: {run.kind}", hint="what took conversations in can be replayed"
        )
    spent, drafts, offers = Spent(), list[Draft](), list[Offer]()
    made = {item.id: item for item in run.items if item.what in ("added", "repeated") and item.id and item.text}
    again: set[str] = set()
    place = run.owner, run.chat
    try:
        for session in run.sessions:
            await check_budget(context)
            found = await context.store.read(lambda tx, at=session: _whole(tx, context.scope, place, at))  # type: ignore[misc]
            draft = await make_draft(context, found, spent, compares=False)
            drafts.append(draft)
            for fact in draft.judged.facts:
                same = next((id for id, item in made.items() if is_much_the_same(item.text, fact.content)), None)
                again |= {same} if same else set()
                evidence = tuple(node.id for node in fact.evidence)
                what: RunItemKind = "repeated" if same else "added"
                offers.append((RunItem(what=what, id=same, text=fact.content, evidence=evidence), fact))
            offers += [
                (RunItem(what="refused", text=each.text, reason=each.reason), None) for each in draft.judged.refused
            ]
    finally:
        await note_use(context, spent)
    offers += [(replace(item, what="missing", reason=""), None) for id, item in made.items() if id not in again]
    now = from_ms(context.now())
    fresh = replace(
        run,
        id=new_id(context.now()),
        kind="replay",
        state="proposed",
        model=model_name(context.model),
        prompt="" if context.model is None else VERSION,
        started_at=now,
        ended_at=now,
        tokens_in=0,
        tokens_out=0,
        key=0,
        items=tuple(item for item, _ in offers),
    )
    paid = with_cost(fresh, spent, context.limits)
    at = context.now()
    await context.store.derive(lambda tx: _keep_replay(tx, context.scope, paid, run.id, drafts, offers, now=at))
    return paid


def _keep_replay(
    snapshot: Snapshot, scope: Scope, run: Run, base: str, drafts: Sequence[Draft], offers: Sequence[Offer], *, now: int
) -> None:
    """Store a replay until it is accepted, unless a message was removed while the model read.

    Args:
        base: id of the run that was replayed.
    """
    shown = {node.id: _digest(node) for draft in drafts for node in draft.said.episodes}
    space = snapshot.space(run.owner, run.chat)
    if space is None or len(_unchanged(snapshot, scope, run, shown)) < len(shown):
        return
    body = {
        "base": base,
        "shown": shown,
        "items": [_offer_json(item, fact) for item, fact in offers],
        "run": {**asdict(replace(run, items=())), "started_at": to_ms(run.started_at), "ended_at": to_ms(run.ended_at)},
        "entities": [asdict(each) for draft in drafts for each in draft.judged.entities],
        "relations": [asdict(each) for draft in drafts for each in draft.judged.relations],
    }
    snapshot.proposals.put(run.id, space=space, at=now, body=json.dumps(body, ensure_ascii=False))


def _offer_json(item: RunItem, fact: Accepted | None) -> dict[str, Any]:
    """Return an item as it is stored; without the text of memories that are known and of refused items."""
    found = {"what": item.what, "id": item.id, "evidence": item.evidence}
    if fact is None or item.what != "added":
        return found
    more = {name: getattr(fact, name) for name in ("type", "category", "about", "slot", "confidence", "sure")}
    return {**found, "text": item.text, "fact": more}


def _digest(node: Node) -> str:
    return hashlib.sha256(node.content.encode()).hexdigest()


def _unchanged(snapshot: Snapshot, scope: Scope, run: Run, shown: Mapping[str, str]) -> dict[str, Node]:
    """Return the messages that still say what a model was shown."""
    place = run.owner, run.chat
    there = [node for each in run.sessions for node in snapshot.runs.session_episodes(scope, place, each)]
    return {node.id: node for node in there if shown.get(node.id) == _digest(node)}


# accept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replay:
    """A stored replay. `base` is the id of the run it replays, `shown` digests of messages by id."""

    run: Run
    base: str
    shown: Mapping[str, str]
    items: Sequence[Mapping[str, Any]]
    entities: Sequence[Mapping[str, Any]]
    relations: Sequence[Mapping[str, Any]]


async def accept(context: ConsolidationContext, run_id: str, numbers: Sequence[int] | None) -> Run:
    """Apply what a replay found, or some items of it, as one change under its id. No item is applied twice.

    Args:
        run_id: the replay's id, or its last 8 characters.
        numbers: of its items, counted from 1; None for all.

    Raises:
        NotFoundError: no replay of that id is stored.
        InvalidError: it has no such item, or the item cannot be accepted.
        ConflictError: its messages, or the run it replays, have changed since.
    """
    known = await context.store.read(lambda tx: _stored_replay(tx, context.scope, run_id).run.id)

    def decide(tx: Snapshot) -> tuple[Change, Run]:
        return _accept(tx, context.scope, known, numbers, context.learning, now=context.now())

    reason = context.reason("accept", known)
    return await context.store.write(decide, scope=context.scope, reason=reason, at=from_ms(context.now()))


def _accept(
    snapshot: Snapshot, scope: Scope, run_id: str, numbers: Sequence[int] | None, rules: LearningRules, *, now: int
) -> tuple[Change, Run]:
    found = _stored_replay(snapshot, scope, run_id)
    chosen = _chosen(found.items, numbers)
    base = snapshot.runs.get(scope, found.base)
    if base is None:
        raise ConflictError(f"the run that {run_id} replays was undone", hint="consolidate again")
    there = _unchanged(snapshot, scope, found.run, found.shown)
    if len(there) < len(found.shown):
        raise ConflictError(
            "a message that was read has changed or gone since", hint="replay the run once more and accept that"
        )
    before = snapshot.runs.get(scope, found.run.id)
    run = replace(found.run, items=() if before is None else before.items)
    draft = _accepted_draft(found, chosen, there, is_whole=numbers is None)
    change, done = learn_again(snapshot, draft, rules, run=run, now=now)
    closings, items = _closings(snapshot, scope, chosen, base, done, now=now)
    done = replace(done, items=(*done.items, *items), ended_at=from_ms(now))
    if change.is_empty and not items:  # nothing new, or only refusals
        return Change(), done
    return replace(change, close=(*change.close, *closings), runs=(done,)), done


def _stored_replay(snapshot: Snapshot, scope: Scope, run_id: str) -> _Replay:
    body = snapshot.proposals.body(scope, run_id)
    if body is None:
        raise NotFoundError(f"there is no replay {run_id} to accept", hint="replay a run; the replay's id accepts it")
    found = json.loads(body)
    stored = found.pop("run")
    times = {name: from_ms(stored[name]) for name in ("started_at", "ended_at")}
    run = Run(**{**stored, **times, "state": "done", "items": (), "sessions": tuple(stored["sessions"])})
    return _Replay(run=run, **found)


def _chosen(items: Sequence[Mapping[str, Any]], numbers: Sequence[int] | None) -> list[Mapping[str, Any]]:
    """Return the items of these numbers. Known and refused items cannot be accepted.

    Raises:
        InvalidError: a number is not that of an item that can be accepted.
    """
    if numbers is None:
        return [item for item in items if item["what"] in ("added", "missing")]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(items):
            raise InvalidError(f"items: there is no item {number!r}", hint=f"they are counted from 1 to {len(items)}")
        if (what := items[number - 1]["what"]) not in ("added", "missing"):
            raise InvalidError(f"items: item {number} is {what!r}", hint='only "added" and "missing" can be accepted')
    return [items[number - 1] for number in dict.fromkeys(numbers)]


def _accepted_draft(
    found: _Replay, chosen: Iterable[Mapping[str, Any]], there: Mapping[str, Node], *, is_whole: bool
) -> Draft:
    """Return what is to be added with its subjects; all entities and relations only if the whole is accepted."""
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
    """Return what to close: what the replayed run made, the model did not find again, and was not touched since."""
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
    """Return whether a run made a memory and it is unchanged since: not confirmed, corrected, reinforced, demoted,
    updated or repeated. A change that was undone does not count.
    """
    versions = snapshot.history.versions(node)
    first = versions[0][1]
    mine = [was for was, commit in versions if commit is not None and commit.run_id == base.id]
    return first is not None and first.run_id == base.id and mine[-1] == node
