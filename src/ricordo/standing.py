"""Answers to questions, and standing questions: stored with an answer, which is stale once its memories have changed.

A standing question is a receipt that is not deleted by age. Nothing is recorded when memories change: staleness is
computed when an answer is read, from the versions of its memories since the last commit visible to the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ricordo.clock import from_ms, new_id, shortens, to_ms
from ricordo.consolidation import answers
from ricordo.consolidation.context import ConsolidationContext, as_shown
from ricordo.errors import ConflictError, InvalidError, NotFoundError
from ricordo.forgetting.upkeep import Concluded
from ricordo.model import (
    Answer,
    AnswerSentence,
    Contradiction,
    Given,
    Hit,
    Json,
    Node,
    Receipt,
    Scope,
    StaleReason,
    StandingQuestion,
)
from ricordo.retrieval import service
from ricordo.retrieval.hits import may_be_quoted, only_asks
from ricordo.retrieval.query import Request, asks_for_tasks, days_asked, query_of
from ricordo.retrieval.receipts import Screen
from ricordo.retrieval.service import Asking
from ricordo.storage import Snapshot
from ricordo.storage.values import STANDING
from ricordo.text.dates import find_interval
from ricordo.text.dates.grammar import asks_what_is_to_come
from ricordo.text.dates.resolution import day_named_in

_KEPT_MOST = 100
_MOST_CHARS = 2_000
_NOT_SHOWN = frozenset(("forgotten", "retracted", "quarantined", "hidden"))
"""Sentences based on a memory with one of these reasons are hidden until the question is renewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """The parts needed to answer a caller.

    Attributes:
        context: its model is None if the caller may not spend the owner's tokens.
        screen: removes credentials and personal data; None if nothing is removed.
    """

    asking: Asking
    context: ConsolidationContext
    screen: Screen | None

    @property
    def scope(self) -> Scope:
        """The caller."""
        return self.asking.scope

    def clean(self, value: str) -> str:
        """Return a text in the form in which it may be stored."""
        return value if self.screen is None else str(self.screen(value))


AnsweringOf = Callable[[Scope], Answering]


async def answer(answering: Answering, request: Request) -> Answer:
    """Answer a question from the memories alone.

    Raises:
        InvalidError: an argument of the request is invalid.
    """
    results = await service.search(answering.asking, request)
    hits = [hit for hit in results.hits if may_be_quoted(hit) and not only_asks(hit.content, request.text)]
    listed = _listed(answering.asking, request, hits)
    given = await answers.answer(answering.context, request.text, hits, listed=listed)
    return replace(given, degraded=(*results.degraded, *given.degraded), receipt=results.receipt)


def _listed(asking: Asking, request: Request, hits: Sequence[Hit]) -> int:
    """Return how many of the first hits belong to the list that a question asks for: plans, open tasks, or what names
    one of the days that it names.
    """
    question = query_of(request, now=asking.now, zone=asking.zone).text
    if asks_what_is_to_come(question) or asks_for_tasks(question):
        return len(hits)
    days = days_asked(question, now=asking.now, zone=asking.zone)
    said = [(hit.content, (hit.event_time or from_ms(asking.now)).astimezone(asking.zone).date()) for hit in hits]
    return sum(day_named_in(text, days, said=day, returns=days[0][0]) is not None for text, day in said if days)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingQuestions:
    """The standing questions of one caller."""

    answering_of: AnsweringOf
    scope: Scope

    @property
    def _asking(self) -> Asking:
        return self.answering_of(self.scope).asking

    async def keep(self, question: str, *, limit: int) -> Receipt:
        """Store a question and answer it. If it is already stored, return it unchanged.

        Raises:
            InvalidError: an argument is invalid.
            ConflictError: the caller has the maximum number of standing questions.
        """
        answering = self.answering_of(self.scope)
        new = _unanswered(answering, question, limit=limit)
        kept = await self._asking.store.derive(partial(_put, self.scope, new))
        if not kept.setup:
            await renew(answering, kept)
        return await self.named(kept.id)

    async def listed(self) -> list[Receipt]:
        """Return the questions that the caller may read here, oldest first. Those of other chats are omitted."""
        found = await self._asking.store.read(lambda tx: tx.receipts.standing(self.scope))
        return [each for each in found if each.chat in ("", self.scope.chat)]

    async def named(self, id: str) -> Receipt:
        """Return a question by its id, or a unique beginning or end of it.

        Raises:
            NotFoundError: the caller has no such question, or several ids end like this.
        """
        kept = await self.listed()
        found = [each for each in kept if shortens(id, each.id)]
        if len(found) != 1:
            raise NotFoundError(f"there is no standing question {id}", hint="`questions` lists them")
        return found[0]

    async def judged(self, kept: Receipt) -> StandingQuestion:
        """Return a question with its answer, and why the answer is stale for the caller who stored the question."""
        return await judged(self.answering_of(_scope_of(kept)), kept)

    async def renew(self, id: str | None, *, fresh: bool) -> list[Receipt]:
        """Answer one question, or all with a stale answer, or all if `fresh`. Raises NotFoundError."""
        kept = await self.listed() if id is None else [await self.named(id)]
        chosen = [each for each in kept if id is not None or fresh or (await self.judged(each)).stale]
        for each in chosen:
            await renew(self.answering_of(_scope_of(each)), each)
        return [await self.named(each.id) for each in chosen]

    async def drop(self, id: str) -> None:
        """Delete a question with its answer. Raises NotFoundError."""
        found = await self.named(id)
        await self._asking.store.derive(lambda tx: tx.receipts.blank([found.id]))

    async def renew_stale(self, *, dry_run: bool) -> Concluded:
        """Renew the stale answers of the caller in all chats. In a dry run, only count them."""
        kept = await self._asking.store.read(lambda tx: tx.receipts.standing(self.scope))
        stale = [each for each in kept if (await self.judged(each)).stale]
        if dry_run:
            return Concluded(waited=len(stale))
        made = [await renew(self.answering_of(_scope_of(each)), each) for each in stale]
        return Concluded(waited=len(stale), made=sum(made))


def _unanswered(answering: Answering, question: str, *, limit: int) -> Receipt:
    asking, scope = answering.asking, answering.scope
    text = query_of(Request(text=question, limit=limit), now=asking.now, zone=asking.zone).text.strip()
    if not 0 < len(text) <= _MOST_CHARS:
        raise InvalidError(f"question must be text of 1 to {_MOST_CHARS:,} characters")
    return Receipt(
        id=new_id(asking.now),
        at=from_ms(asking.now),
        verb=STANDING,
        question=answering.clean(text),
        asked={"limit": limit},
        owner=scope.owner,
        chat=scope.chat or "",
        trust=scope.trust,
        commit=0,
    )


def _put(scope: Scope, new: Receipt, snapshot: Snapshot) -> Receipt:
    kept = snapshot.receipts.standing(scope)
    for each in kept:
        if (each.question, each.chat) == (new.question, new.chat):
            return each
    if len(kept) >= _KEPT_MOST:
        raise ConflictError(f"{_KEPT_MOST} questions are kept already", hint="drop one with `drop_question`")
    snapshot.receipts.put(new)
    return new


def _scope_of(kept: Receipt) -> Scope:
    """Return the caller who stored a question. It is answered from the memories that this caller sees."""
    return Scope(owner=kept.owner, chat=kept.chat or None, trust=kept.trust, spaces=None if kept.owner else ())


async def renew(answering: Answering, kept: Receipt) -> bool:
    """Answer a standing question again and store the answer; return whether it was stored.

    It is not stored if the question was deleted or something was erased meanwhile, because it might repeat erased text.
    """
    store, scope = answering.asking.store, answering.scope
    seen = await store.read(lambda tx: tx.history.seen(scope))
    given = await answer(_unnoticed(answering), _request(kept))
    ids = [hit.id for hit in given.hits]
    shown = await store.read(lambda tx: {id: _shown_chars(tx, tx.nodes.get(scope, id)) for id in ids})
    fresh = replace(
        kept,
        at=from_ms(answering.asking.now),
        commit=seen,
        setup={"answer": _as_json(answering, given), "shown": shown},
        given=tuple(Given(id=id) for id in ids),
    )
    return await store.derive(partial(_put_answer, scope, fresh))


def _put_answer(scope: Scope, fresh: Receipt, snapshot: Snapshot) -> bool:
    later = snapshot.history.ledger().visible(scope, range(fresh.commit + 1, snapshot.history.next_commit()))
    if snapshot.history.erasures(later) or any(each.state == "rows" for each in snapshot.erasure.unfinished()):
        return False
    return snapshot.receipts.answer(fresh)


def _unnoticed(answering: Answering) -> Answering:
    """Return the same, but do not count the memories that are found as used."""
    return replace(answering, asking=replace(answering.asking, shown=lambda keys: None, told=lambda hits: None))


def _request(kept: Receipt) -> Request:
    limit = int(kept.asked.get("limit", 12))
    return Request(text=kept.question or "", type="any", only_relevant=True, limit=limit, receipt=False, verb="ask")


# ---- staleness


async def judged(answering: Answering, kept: Receipt) -> StandingQuestion:
    """Return a standing question with its answer, and the reasons why the answer is stale.

    Args:
        answering: the parts for the caller who stored the question.
    """
    given, asking = _answer_of(kept), answering.asking
    question = StandingQuestion(id=kept.id, question=kept.question or "", chat=kept.chat, limit=_request(kept).limit)
    if given is None:
        return replace(question, stale=(StaleReason(why="unanswered"),))
    seen, stale = await asking.store.read(lambda tx: (tx.history.seen(asking.scope), _outdated(tx, asking, kept)))
    if seen != kept.commit and not stale:
        stale = await _newer(answering, kept)
    if _has_moved(asking, kept):
        stale.append(StaleReason(why="time"))
    if given.model is None and given.known and answering.context.model is not None:
        stale.append(StaleReason(why="model"))
    return replace(
        question,
        answer=_without(given, {each.id for each in stale if each.why in _NOT_SHOWN}),
        answered_at=kept.at,
        commit=kept.commit,
        rests_on=tuple(each.id for each in kept.given),
        stale=tuple(stale),
    )


def _outdated(snapshot: Snapshot, asking: Asking, kept: Receipt) -> list[StaleReason]:
    """Return the memories of an answer that changed since the last commit visible to the answer."""
    shown = kept.setup.get("shown", {})
    found = []
    for id in (each.id for each in kept.given):
        node = snapshot.nodes.get(asking.scope, id)
        if node is None:
            found.append(StaleReason(why="hidden", id=id))
        elif (reason := _changed(snapshot, node, since=kept.commit)) is not None:
            found.append(reason)
        elif _shown_chars(snapshot, node) != shown.get(id):
            found.append(StaleReason(why="hidden", id=id))
        elif _is_over(node, after=to_ms(kept.at), now=asking.now):
            found.append(StaleReason(why="expired", id=id))
    return found


def _changed(snapshot: Snapshot, node: Node, *, since: int) -> StaleReason | None:
    """Return how a memory differs from its state right after a commit; None if it states the same."""
    versions = [(0 if made is None else made.seq, each) for each, made in snapshot.history.versions(node)]
    before = [each for seq, each in versions if seq <= since]
    if not before:
        return StaleReason(why="new", id=node.id, commit=versions[0][0])
    if _said(before[-1]) == _said(node):
        return None
    commit = next(seq for seq, each in versions if seq > since and _said(each) != _said(before[-1]))
    return StaleReason(why=node.closed_reason or "changed", id=node.id, commit=commit)


def _said(node: Node) -> tuple[object, ...]:
    return node.content, node.is_live, node.valid_from, node.valid_until, node.about


def _shown_chars(snapshot: Snapshot, node: Node | None) -> int:
    """Return how many characters of a memory may be shown, without its forgotten sentences."""
    return 0 if node is None else sum(len(each.content) for each in as_shown(snapshot, [node]))


def _is_over(node: Node, *, after: int, now: int) -> bool:
    """Return whether the validity or the storage of a memory ended between two instants."""
    ends = (to_ms(each) for each in (node.valid_until, node.expires_at) if each is not None)
    return any(after < end <= now for end in ends)


async def _newer(answering: Answering, kept: Receipt) -> list[StaleReason]:
    """Return the memories that are relevant to a question and were added or changed since its answer."""
    asking, known = _unnoticed(answering).asking, {each.id for each in kept.given}
    hits = (await service.search(asking, _request(kept))).hits
    is_new = (may_be_quoted(hit) and not only_asks(hit.content, kept.question or "") for hit in hits)
    ids = [hit.id for hit, is_quoted in zip(hits, is_new, strict=True) if is_quoted and hit.id not in known]

    def changed(snapshot: Snapshot) -> list[StaleReason]:
        nodes = [node for id in ids if (node := snapshot.nodes.get(asking.scope, id)) is not None]
        reasons = [_changed(snapshot, node, since=kept.commit) for node in nodes]
        return [replace(each, why="new") for each in reasons if each is not None]

    return await asking.store.read(changed)


def _has_moved(asking: Asking, kept: Receipt) -> bool:
    """Return whether a period in the question, such as "this week", now refers to other days."""

    def days(now: int) -> Sequence[object]:
        found = find_interval(kept.question or "", now=now, zone=asking.zone)
        ends = () if found is None else (found.start, found.end)
        return [from_ms(end).astimezone(asking.zone).date() for end in ends]

    return days(to_ms(kept.at)) != days(asking.now)


# ---- the answer in a receipt


def _as_json(answering: Answering, given: Answer) -> Json:
    sentences = [[answering.clean(each.text), list(each.ids), each.support] for each in given.sentences]
    return {
        "known": given.known,
        "sentences": sentences,
        "contradictions": [[each.newer, each.older] for each in given.contradictions],
        "model": given.model,
        "cut": given.cut,
        "degraded": list(given.degraded),
    }


def _answer_of(kept: Receipt) -> Answer | None:
    held = kept.setup.get("answer")
    if held is None:
        return None
    sentences = (AnswerSentence(text=text, ids=tuple(ids), support=support) for text, ids, support in held["sentences"])
    return _of(
        Answer(
            known=held["known"],
            contradictions=tuple(Contradiction(newer=newer, older=older) for newer, older in held["contradictions"]),
            model=held["model"],
            cut=held["cut"],
            degraded=tuple(held["degraded"]),
        ),
        sentences,
    )


def _of(given: Answer, sentences: Iterator[AnswerSentence]) -> Answer:
    """Return an answer with these sentences and their text."""
    kept = tuple(sentences)
    text = ("\n" if given.model is None else " ").join(each.text for each in kept)
    return replace(given, sentences=kept, text=text, known=bool(kept))


def _without(given: Answer, ids: set[str | None]) -> Answer:
    """Return an answer without the sentences that are based on some memories."""
    return _of(given, (each for each in given.sentences if ids.isdisjoint(each.ids)))
