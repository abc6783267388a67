"""Conversations become knowledge: read, ask a model, judge, ask it once more where something is alike, commit.

A model is never asked inside a transaction, and what it was shown is looked at again before anything is written.
Whatever fails leaves a conversation as it was, waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ricordo.clock import from_ms
from ricordo.consolidation import accept as accepting
from ricordo.consolidation.apply import Draft, learn
from ricordo.consolidation.context import (
    BudgetError,
    House,
    Spent,
    asked,
    check_budget,
    model_of,
    name_of,
    new_run,
    note_use,
    paid,
    spending,
    why_failed,
)
from ricordo.consolidation.draft import Talk, drafted, pages_of, talk, waiting_talk
from ricordo.consolidation.lease import leased
from ricordo.consolidation.prompts import VERSION, extraction
from ricordo.consolidation.proposal import Summary
from ricordo.consolidation.run_history import MOST_TRIES
from ricordo.consolidation.suppression import is_much_the_same
from ricordo.errors import DeniedError, InvalidError, NotFoundError, RicordoError, UnavailableError
from ricordo.ids import new_id
from ricordo.model import Change, Reason, Run, RunItem, RunItemKind, Scope
from ricordo.models.language import AnswerError
from ricordo.storage import Snapshot, values

_MOST_SUMMARY_CHARS = 2_000


async def consolidate(house: House, session: str | None, *, dry_run: bool, finished_before: int | None = None) -> Run:
    """Make knowledge of one conversation, or of all that wait, one commit each under the id of one run.

    Args:
        session: this one, whatever became of it before; None: all that wait and have not failed three times.
        finished_before: only conversations that are over, or in which nothing was said since then; Unix milliseconds.

    Raises:
        NotFoundError: nothing was said in that session.
    """
    run = new_run(house, "consolidation", prompt=VERSION, dry_run=dry_run)
    failed: list[RunItem] = []
    for each in await _waiting(house, session, finished_before=finished_before):
        spent = Spent()
        try:
            await check_budget(house)
            run = await _take_in_alone(house, each, run, spent, dry_run=dry_run)
        except RicordoError as error:
            run = paid(run, spent, house.limits)
            failed.append(await _failure(house, each, error, run, counts=not dry_run))
            if not isinstance(error, AnswerError):
                break  # who is not there for one is not there for the next
        finally:
            await note_use(house, spent)
    if failed:
        has_done = any(item.what != "left" for item in run.items)
        reason = failed[0].reason if not has_done else ""
        state = run.state if has_done else "failed"
        run = replace(run, state=state, reason=reason, items=(*run.items, *failed))
    return replace(run, ended_at=from_ms(house.now()))


async def _waiting(house: House, session: str | None, *, finished_before: int | None) -> list[values.Waiting]:
    def ask_store(snapshot: Snapshot) -> list[values.Waiting]:
        waiting = snapshot.runs.waiting(house.scope)
        if session is not None:
            if snapshot.sessions.get(house.scope, session) is None:
                raise NotFoundError(f"session: nothing was said in {session!r}")
            return [each for each in waiting if each.session == session]
        tired = {
            (each.owner, each.chat, each.session)
            for each in snapshot.runs.failures(house.scope)
            if each.tries >= MOST_TRIES
        }
        return [
            each
            for each in waiting
            if (each.owner, each.chat, each.session) not in tired and _is_finished(each, finished_before)
        ]

    return await house.store.read(ask_store)


def _is_finished(waiting: values.Waiting, before: int | None) -> bool:
    if before is None:
        return True
    last: datetime = max(waiting.last_added_at, waiting.last_said_at)
    return waiting.ended_at is not None or last < from_ms(before)


async def _take_in_alone(house: House, waiting: values.Waiting, run: Run, spent: Spent, *, dry_run: bool) -> Run:
    """Take a conversation in unless somebody else is at it: a model is paid once. Rules cost nothing, and a dry run
    leaves nothing: they need not be alone.
    """
    if dry_run or house.model is None:
        return await _take_in(house, waiting, run, spent, dry_run=dry_run)
    place = waiting.owner, waiting.chat
    name = await house.store.read(lambda tx: tx.runs.lease_of(place, waiting.session))
    async with leased(house.store, name) as is_ours:
        if is_ours:
            return await _take_in(house, waiting, run, spent, dry_run=dry_run)
    left = RunItem(what="left", text=waiting.session or "", reason="somebody else is taking it in just now")
    return replace(run, items=(*run.items, left))


async def _take_in(house: House, waiting: values.Waiting, run: Run, spent: Spent, *, dry_run: bool) -> Run:
    place = (waiting.owner, waiting.chat)
    found = await house.store.read(lambda tx: waiting_talk(tx, house.scope, place, waiting.session))
    draft = await drafted(house, found, spent)
    dear = paid(run, spent, house.limits)

    def decide(tx: Snapshot) -> tuple[Change, Run]:
        return learn(tx, draft, house.terms, run=dear, now=house.now())

    if dry_run:
        return await house.store.read(lambda tx: decide(tx)[1])
    reason = house.reason("consolidate", run.id)
    done = await house.store.write(decide, scope=draft.scope, reason=reason, at=from_ms(house.now()))
    await house.store.derive(lambda tx: tx.runs.forget_failures(place, waiting.session))
    return done


async def _failure(house: House, waiting: values.Waiting, error: RicordoError, run: Run, *, counts: bool) -> RunItem:
    """Note that a conversation failed; after three times somebody is to look at it."""
    place = (waiting.owner, waiting.chat)
    reason = why_failed(error)
    if counts and not isinstance(error, BudgetError | DeniedError):
        at = house.now()
        await house.store.derive(lambda tx: tx.runs.note_failure(place, waiting.session, at=at, reason=reason))
    return RunItem(what="failed", text=waiting.session or "", reason=reason)


async def summarise(house: House, session: str) -> str:
    """Sum up all of a conversation, and keep that with it: for whoever goes on with it, or before it is cut short.

    Raises:
        NotFoundError: nothing was said in that session.
        UnavailableError: no language model is chosen, or it gave no summary that may be kept.
    """
    model, said = model_of(house), list[str]()
    place = house.scope.owner, house.scope.chat or ""
    found = await house.store.read(lambda tx: _whole(tx, house.scope, place, session))
    if not found.episodes:
        raise NotFoundError(f"session: nothing was said in {session!r}")
    async with spending(house) as spent:
        for page in pages_of(house, found.shown, prompt="summarise.1"):
            turns = extraction(page.lines, before=page.before, day=page.day, name="summarise.1")
            said.append((await asked(model, turns, Summary, spent)).summary)
    text = " ".join(" ".join(said).split())[:_MOST_SUMMARY_CHARS]
    if not text or house.rules.has_credential(text) or house.rules.is_instruction(text):
        raise UnavailableError("the model gave no summary that may be kept")

    def decide(tx: Snapshot) -> tuple[Change, str]:
        known = tx.sessions.get(house.scope, session)
        return (Change() if known is None else Change(sessions=(replace(known, summary=text),))), text

    reason = Reason(actor=house.scope.owner or house.scope.chat or "", origin="summarise", reason="summarise")
    return await house.store.write(decide, scope=house.scope, reason=reason, at=from_ms(house.now()))


async def replay(house: House, run: Run) -> Run:
    """What a model makes of the conversations of a run now, beside what is known of them. Nothing is changed; `accept`
    takes it over.

    An item is "added" where nothing known says it, "repeated" where something does, "missing" where what the run made
    and is still known was not found again.
    """
    if run.kind not in ("consolidation", "replay"):
        raise InvalidError(
            f"run: {run.id} is of another kind: {run.kind}", hint="what took conversations in can be replayed"
        )
    spent, drafts, offers = Spent(), list[Draft](), list[accepting.Offer]()
    made = {item.id: item for item in run.items if item.what in ("added", "repeated") and item.id and item.text}
    again: set[str] = set()
    place = run.owner, run.chat
    try:
        for session in run.sessions:
            await check_budget(house)
            found = await house.store.read(lambda tx, at=session: _whole(tx, house.scope, place, at))  # type: ignore[misc]
            draft = await drafted(house, found, spent, compares=False)
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
        await note_use(house, spent)
    offers += [(replace(item, what="missing", reason=""), None) for id, item in made.items() if id not in again]
    now = from_ms(house.now())
    fresh = replace(
        run,
        id=new_id(house.now()),
        kind="replay",
        state="proposed",
        model=name_of(house.model),
        prompt="" if house.model is None else VERSION,
        started_at=now,
        ended_at=now,
        tokens_in=0,
        tokens_out=0,
        key=0,
        items=tuple(item for item, _ in offers),
    )
    dear = paid(fresh, spent, house.limits)
    at = house.now()
    await house.store.derive(lambda tx: accepting.keep(tx, house.scope, dear, run.id, drafts, offers, now=at))
    return dear


def _whole(snapshot: Snapshot, scope: Scope, place: tuple[str, str], session: str) -> Talk:
    return talk(snapshot, place, session, snapshot.runs.session_episodes(scope, place, session))


async def accept(house: House, run_id: str, numbers: Sequence[int] | None) -> Run:
    """Take over what a replay found, or some items of it, as one change under its id.

    Raises: as `accepting.accept`.
    """
    actor = house.scope.owner or house.scope.chat or ""
    known = await house.store.read(lambda tx: accepting.whole_id(tx, house.scope, run_id))
    reason = Reason(actor=actor, origin="accept", reason="accept", run_id=known)

    def decide(tx: Snapshot) -> tuple[Change, Run]:
        return accepting.accept(tx, house.scope, known, numbers, house.terms, now=house.now())

    return await house.store.write(decide, scope=house.scope, reason=reason, at=from_ms(house.now()))
