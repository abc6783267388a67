"""Conversations become knowledge: read, ask a model, judge, ask it once more where something is alike, commit.

A model is never asked inside a transaction, and what it was shown is looked at again before anything is written.
Whatever fails leaves a conversation as it was, waiting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from pydantic import BaseModel

from ricordo.clock import from_ms
from ricordo.consolidation import accepting
from ricordo.consolidation.judge import Accepted, Rules, joined, judge
from ricordo.consolidation.learning import Compared, Draft, Terms, learn
from ricordo.consolidation.lease import leased
from ricordo.consolidation.pages import pages
from ricordo.consolidation.past_runs import MOST_TRIES
from ricordo.consolidation.plain import proposed
from ricordo.consolidation.prompts import VERSION, extraction, instructions, verification
from ricordo.consolidation.proposal import Proposal, Summary, Verdicts
from ricordo.consolidation.withheld import is_much_the_same
from ricordo.errors import DeniedError, InvalidError, NotFoundError, RicordoError, UnavailableError
from ricordo.ids import new_id
from ricordo.language import ask
from ricordo.language.asking import AnswerError
from ricordo.model import BY_RULE, Change, Node, Reason, Run, RunItem, RunItemKind, Scope
from ricordo.ports import LanguageModel, TokenCounter, Turn
from ricordo.store import Snapshot, Store
from ricordo.store.sqlite import runs

Shape = TypeVar("Shape", bound=BaseModel)

_ANSWER_TOKENS = 4_000
_PAIRS = 20
_PAIR_CHARS = 400
_MOST_SUMMARY_CHARS = 2_000
_CANDIDATES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a run may go. Prices are for a million tokens; 0 stands for unknown, `daily_tokens` 0 for no limit."""

    daily_tokens: int
    price_in: float
    price_out: float


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """All that consolidating needs of the house, handed in.

    Without a `model` what is said plainly is kept by rule, and conversations wait on for one. `similar` gives the live
    memories that mean something near a text: (scope, text, type, names of whom it is about). `day` is today for the
    user, ISO 8601.
    """

    model: LanguageModel | None
    scope: Scope
    store: Store
    now: Callable[[], int]
    day: Callable[[], str]
    tokens: TokenCounter
    similar: Callable[[Scope, str, str, Sequence[str]], Awaitable[Sequence[Node]]]
    rules: Rules
    terms: Terms
    limits: Limits


@dataclass(slots=True)
class _Spent:
    """What a conversation has cost so far, whether it succeeds or not."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


async def consolidate(house: House, session: str | None, *, dry_run: bool, finished_before: int | None = None) -> Run:
    """Make knowledge of one conversation, or of all that wait, one commit each under the id of one run.

    Args:
        session: this one, whatever became of it before; None: all that wait and have not failed three times.
        finished_before: only conversations that are over, or in which nothing was said since then; Unix milliseconds.

    Raises:
        NotFoundError: nothing was said in that session.
    """
    started = house.now()
    run = Run(
        id=new_id(started), kind="consolidation", state="dry" if dry_run else "done",
        model=_name(house.model), prompt="" if house.model is None else VERSION,
        started_at=from_ms(started), ended_at=from_ms(started),
        owner=house.scope.owner, chat="" if house.scope.owner else house.scope.chat or "",
    )  # fmt: skip
    failed: list[RunItem] = []
    for each in await _waiting(house, session, finished_before=finished_before):
        spent = _Spent()
        try:
            await _check_budget(house)
            run = await _take_in_alone(house, each, run, spent, dry_run=dry_run)
        except RicordoError as error:
            failed.append(await _failure(house, each, error, run, counts=not dry_run))
            if not isinstance(error, AnswerError):
                break  # who is not there for one is not there for the next
        finally:
            await _note_use(house, spent)
    if failed:
        has_done = any(item.what != "left" for item in run.items)
        reason = failed[0].reason if not has_done else ""
        state = run.state if has_done else "failed"
        run = replace(run, state=state, reason=reason, items=(*run.items, *failed))
    return replace(run, ended_at=from_ms(house.now()))


def _name(model: LanguageModel | None) -> str:
    return BY_RULE if model is None else model.name


async def _waiting(house: House, session: str | None, *, finished_before: int | None) -> list[runs.Waiting]:
    def ask_store(snapshot: Snapshot) -> list[runs.Waiting]:
        waiting = runs.waiting(snapshot, house.scope)
        if session is not None:
            if snapshot.session(house.scope, session) is None:
                raise NotFoundError(f"session: nothing was said in {session!r}")
            return [each for each in waiting if each.session == session]
        tired = {
            (each.owner, each.chat, each.session)
            for each in runs.failures(snapshot, house.scope)
            if each.tries >= MOST_TRIES
        }
        return [
            each for each in waiting
            if (each.owner, each.chat, each.session) not in tired and _is_finished(each, finished_before)
        ]  # fmt: skip

    return await house.store.read(ask_store)


def _is_finished(waiting: runs.Waiting, before: int | None) -> bool:
    if before is None:
        return True
    last: datetime = max(waiting.last_added_at, waiting.last_said_at)
    return waiting.ended_at is not None or last < from_ms(before)


async def _take_in_alone(house: House, waiting: runs.Waiting, run: Run, spent: _Spent, *, dry_run: bool) -> Run:
    """Take a conversation in unless somebody else is at it: a model is paid once. Rules cost nothing, and a dry run
    leaves nothing: they need not be alone.
    """
    if dry_run or house.model is None:
        return await _take_in(house, waiting, run, spent, dry_run=dry_run)
    place = waiting.owner, waiting.chat
    name = await house.store.read(lambda tx: runs.lease_of(tx, place, waiting.session))
    async with leased(house.store, name) as is_ours:
        if is_ours:
            return await _take_in(house, waiting, run, spent, dry_run=dry_run)
    left = RunItem(what="left", text=waiting.session or "", reason="somebody else is taking it in just now")
    return replace(run, items=(*run.items, left))


async def _take_in(house: House, waiting: runs.Waiting, run: Run, spent: _Spent, *, dry_run: bool) -> Run:
    place = (waiting.owner, waiting.chat)
    found = await house.store.read(lambda tx: runs.waiting_episodes(tx, house.scope, place, waiting.session))
    draft = await drafted(house, place, waiting.session, found, spent)
    paid = _paid(run, spent, house.limits)

    def decide(tx: Snapshot) -> tuple[Change, Run]:
        return learn(tx, draft, house.terms, run=paid, now=house.now())

    if dry_run:
        return await house.store.read(lambda tx: decide(tx)[1])
    reason = Reason(
        actor=house.scope.owner or house.scope.chat or "", origin="consolidate", reason="consolidate", run_id=run.id
    )
    done = await house.store.write(decide, scope=draft.scope, reason=reason, at=from_ms(house.now()))
    await house.store.derive(lambda tx: runs.forget_failures(tx, place, waiting.session))
    return done


def _paid(run: Run, spent: _Spent, limits: Limits) -> Run:
    tokens_in, tokens_out = run.tokens_in + spent.tokens_in, run.tokens_out + spent.tokens_out
    is_priced = limits.price_in > 0 or limits.price_out > 0
    cost = (tokens_in * limits.price_in + tokens_out * limits.price_out) / 1_000_000 if is_priced else None
    return replace(run, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost)


async def drafted(house: House, place: tuple[str, str], session: str | None, episodes: Sequence[Node],
                  spent: _Spent, *, compares: bool = True) -> Draft:  # fmt: skip
    """What a model, or the rules, make of messages, judged, and compared with what is alike."""
    model = house.model
    room = _MOST_ROOM if model is None else _room(model, house.tokens)
    judged = []
    for page in pages(episodes, room=room, tokens=house.tokens):
        turns = extraction(page.lines, before=page.before, day=page.day)
        proposal = proposed(page) if model is None else await _asked(model, turns, Proposal, spent)
        judged.append(judge(proposal, page, house.rules))
    whole = joined(judged)
    draft = Draft(place=place, session=session, episodes=tuple(episodes), judged=whole, waits_on=model is None)
    if model is None or not compares:
        return draft
    return replace(draft, compared=await _compared(house, model, draft, spent))


def _room(model: LanguageModel, tokens: TokenCounter) -> int:
    """How many tokens of messages fit beside the instructions, the form and the answer.

    Raises:
        InvalidError: none do.
    """
    beside = tokens.count(instructions("extract.1")) + _FORM_TOKENS
    room = model.context_tokens - _answer_tokens(model) - beside
    if room < 100:
        raise InvalidError(
            f"model: {model.name} takes {model.context_tokens} tokens, too few for any conversation",
            hint="choose another, or set model_context_tokens",
        )
    return min(room, _MOST_ROOM)


_FORM_TOKENS = 700
_MOST_ROOM = 12_000


def _answer_tokens(model: LanguageModel) -> int:
    return min(_ANSWER_TOKENS, model.context_tokens // 3)


async def _asked(model: LanguageModel, turns: Sequence[Turn], shape: type[Shape], spent: _Spent) -> Shape:
    spent.calls += 1
    try:
        asked = await ask(model, turns, shape, max_tokens=_answer_tokens(model))
    except AnswerError as error:
        spent.tokens_in += error.tokens_in
        spent.tokens_out += error.tokens_out
        raise
    except RicordoError:
        raise
    except Exception as error:  # a model may be anybody's code
        raise UnavailableError(f"the model failed with {type(error).__name__}") from error
    spent.tokens_in += asked.tokens_in
    spent.tokens_out += asked.tokens_out
    return asked.value


async def _compared(house: House, model: LanguageModel, draft: Draft, spent: _Spent) -> tuple[Compared, ...]:
    """What the model says each fact is to the memories that are like it. No such memories, no question."""
    pairs: dict[str, tuple[int, Node]] = {}
    for place, fact in enumerate(draft.judged.facts):
        for old in await _alike(house, draft, fact):
            pairs[f"p{len(pairs) + 1}"] = place, old
    found: list[Compared] = []
    for start in range(0, len(pairs), _PAIRS):
        part = dict(list(pairs.items())[start : start + _PAIRS])
        shown = [
            (handle, draft.judged.facts[place].content[:_PAIR_CHARS], old.content[:_PAIR_CHARS])
            for handle, (place, old) in part.items()
        ]
        said = await _asked(model, verification(shown), Verdicts, spent)
        for verdict in said.verdicts:
            if verdict.pair in part and verdict.is_ in ("same", "contradicts") and 0 <= verdict.confidence <= 1:
                place, old = part[verdict.pair]
                found.append(Compared(fact=place, old=old, says=verdict.is_, confidence=verdict.confidence))  # type: ignore[arg-type]  # just looked at
    return tuple(found)


async def _alike(house: House, draft: Draft, fact: Accepted) -> list[Node]:
    """The few memories about the same that a fact may repeat or contradict."""
    found = await house.similar(draft.scope, fact.content, fact.type, fact.about)
    place = draft.place
    return [node for node in found if (node.owner, node.chat) == place and node.content != fact.content][:_CANDIDATES]


async def _check_budget(house: House) -> None:
    """Raises:
    UnavailableError: today's tokens are spent.
    """
    if not house.limits.daily_tokens:
        return
    used = await house.store.read(lambda tx: runs.tokens_used(tx, day=house.day()))
    if used >= house.limits.daily_tokens:
        raise BudgetError(f"today's {house.limits.daily_tokens:,} tokens are spent")


class BudgetError(UnavailableError):
    """No more may be asked today; nothing is wrong with the conversation."""


async def _failure(house: House, waiting: runs.Waiting, error: RicordoError, run: Run, *, counts: bool) -> RunItem:
    """Note that a conversation failed; after three times somebody is to look at it."""
    place = (waiting.owner, waiting.chat)
    # What stands behind the colon may be a server's words, and those may be anybody's.
    reason = error.message if isinstance(error, AnswerError) else error.message.partition(": ")[0]
    if counts and not isinstance(error, BudgetError | DeniedError):
        at = house.now()
        await house.store.derive(lambda tx: runs.note_failure(tx, place, waiting.session, at=at, reason=reason))
    return RunItem(what="failed", text=waiting.session or "", reason=reason)


async def _note_use(house: House, spent: _Spent) -> None:
    model = house.model
    if model is not None and spent.calls:
        await house.store.derive(
            lambda tx: runs.note_use(
                tx, day=house.day(), model=model.name, calls=spent.calls, tokens_in=spent.tokens_in,
                tokens_out=spent.tokens_out,
            )
        )  # fmt: skip


async def summarise(house: House, session: str) -> str:
    """Sum up all of a conversation, and keep that with it: for whoever goes on with it, or before it is cut short.

    Raises:
        NotFoundError: nothing was said in that session.
        UnavailableError: no language model is chosen, or it gave no summary that may be kept.
    """
    model = house.model
    if model is None:
        raise UnavailableError(
            "no language model is chosen", hint="open the memory with model=..., or give --model or $RICORDO_MODEL"
        )
    place = house.scope.owner, house.scope.chat or ""
    episodes = await house.store.read(lambda tx: runs.session_episodes(tx, house.scope, place, session))
    if not episodes:
        raise NotFoundError(f"session: nothing was said in {session!r}")
    await _check_budget(house)
    spent, said = _Spent(), []
    try:
        for page in pages(episodes, room=_room(model, house.tokens), tokens=house.tokens):
            turns = extraction(page.lines, before=page.before, day=page.day, name="summarise.1")
            said.append((await _asked(model, turns, Summary, spent)).summary)
    finally:
        await _note_use(house, spent)
    text = " ".join(" ".join(said).split())[:_MOST_SUMMARY_CHARS]
    if not text or house.rules.has_credential(text) or house.rules.is_instruction(text):
        raise UnavailableError("the model gave no summary that may be kept")

    def decide(tx: Snapshot) -> tuple[Change, str]:
        known = tx.session(house.scope, session)
        return (Change() if known is None else Change(sessions=(replace(known, summary=text),))), text

    reason = Reason(actor=house.scope.owner or house.scope.chat or "", origin="summarise", reason="summarise")
    return await house.store.write(decide, scope=house.scope, reason=reason, at=from_ms(house.now()))


async def replay(house: House, run: Run) -> Run:
    """What a model makes of the conversations of a run now, beside what is known of them. Nothing is changed; `accept`
    takes it over.

    An item is "added" where nothing known says it, "repeated" where something does, "missing" where what the run made
    and is still known was not found again.
    """
    spent, drafts, offers = _Spent(), list[Draft](), list[accepting.Offer]()
    made = {item.id: item for item in run.items if item.what in ("added", "repeated") and item.id and item.text}
    again: set[str] = set()
    place = run.owner, run.chat
    try:
        for session in run.sessions:
            await _check_budget(house)
            shown = await house.store.read(lambda tx, at=session: runs.session_episodes(tx, house.scope, place, at))  # type: ignore[misc]
            draft = await drafted(house, place, session, shown, spent, compares=False)
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
        await _note_use(house, spent)
    offers += [(replace(item, what="missing", reason=""), None) for id, item in made.items() if id not in again]
    now = from_ms(house.now())
    fresh = replace(
        run, id=new_id(house.now()), kind="replay", state="proposed", model=_name(house.model),
        prompt="" if house.model is None else VERSION,
        started_at=now, ended_at=now, tokens_in=0, tokens_out=0, key=0,
        items=tuple(item for item, _ in offers),
    )  # fmt: skip
    found = _paid(fresh, spent, house.limits)
    at = house.now()
    await house.store.derive(lambda tx: accepting.keep(tx, house.scope, found, run.id, drafts, offers, now=at))
    return found


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
