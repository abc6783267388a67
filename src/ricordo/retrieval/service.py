"""Search from the request to the answer. The only asynchronous part of retrieval."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError
from ricordo.model import Hit, ReceiptId, Results, Scope, Share
from ricordo.models.embedding import Embedded
from ricordo.ports import Reranker
from ricordo.retrieval.hits import as_own, closing_of, may_be_quoted
from ricordo.retrieval.needs import needed_memories, own_memories
from ricordo.retrieval.query import (
    KNOWLEDGE,
    Intent,
    Query,
    Request,
    Weighing,
    asked_in,
    asks_about_asker,
    filter_of,
    follows_up,
    intent_of,
    make_plan,
    needs_of,
    query_of,
)
from ricordo.retrieval.receipts import Draft
from ricordo.storage import Links, PastSnapshot, Snapshot, Store, When
from ricordo.storage.values import NOTHING_FORESEEN, EmbeddingModel, Filter, Floor, Foreseen
from ricordo.text.analyzer import QUESTION_MARKS, index_terms
from ricordo.text.change import load_patterns, topics
from ricordo.text.dates import Interval, find_interval, parse_instant

if TYPE_CHECKING:
    from ricordo.models.embedding.scale import Scale
    from ricordo.retrieval.calibration import Exemplars
    from ricordo.retrieval.query import Plan
    from ricordo.retrieval.search import Found

T = TypeVar("T")
AsOf = datetime | str | int | None
"""A time, or the number of a commit; None for now."""

# Loading an embedder or calibration, or a busy reader, may use up the deadline. The store is still searched this long.
_GRACE_S = 1.0
# A process that asks only once has exited by then.
_QUIET_S = 0.1
# Two computations side by side on one core take longer than in sequence; but no search waits longer than this.
_PATIENCE_S = 0.1
_READ_CHARS = 20_000
# At most this part of a full answer makes room for what must not be missed.
_NEEDED = 5
_OF_NEEDED = 2  # the place of what must not be missed, from 0
# Minimum raw value by signal: nearly half of the question's words, or a similar meaning.
_TELLING = {"words": 0.45, "meaning": 0.4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An embedded question.

    Attributes:
        vectors: by the key of each model that can answer, the active model first.
        degraded: what could not be used, with reasons.
        models: the models of the store when the question was embedded; None if the question does not depend on them.
        scale: of the cosines of the first model; None if facts cannot be compared by meaning (yet).
        intent: the intent by meaning; None if the words show it, or if it is unknown.
        interval: the time that the question names.
        waits: whether the search waits for background computations on memories.
    """

    vectors: Mapping[int, Embedded] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()
    models: Sequence[EmbeddingModel] | None = None
    scale: Scale | None = None
    intent: Intent | None = None
    interval: Interval | None = None
    waits: bool = False

    def fits(self, snapshot: Snapshot) -> bool:
        """Return whether the store still has the models that the question was embedded with."""
        return self.models is None or snapshot.models.known() == self.models


class Prefetch:
    """Loads vectors and turns into memory in the background, so that later searches are faster.

    The first search reads only what it needs. The rest is loaded when the caller has been idle for a moment, or
    searches again (docs/decisions/0005-ranking-features.md). Belongs to the event loop it is used in.
    """

    def __init__(
        self, store: Store, *, shelves: Sequence[str], beside: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    ) -> None:
        """Args:
        shelves: the shelves that searches read by default.
        beside: runs work in the background. A failure only costs time.
        """
        self._store = store
        self._shelves = tuple(shelves)
        self._beside = beside
        self._asked: dict[Scope, int] = {}
        self._quiet: dict[Scope, asyncio.TimerHandle] = {}
        self._turns: dict[Scope, asyncio.Task[None]] = {}
        self._more: asyncio.Task[None] | None = None

    def load_vectors(self, scope: Scope) -> None:
        """Load the vectors of a caller's first search, for example while the embedder loads its weights."""
        self._beside(self._store.seen_by(scope).read(lambda tx: tx.load_vectors(scope, self._shelves)))

    def load_turns(self, scope: Scope, *, ahead: bool = False) -> None:
        """Load a caller's turns, once. With `ahead`, do so only if no other caller's turns must be evicted for them."""
        if scope not in self._turns:
            self._turns[scope] = self._beside(self._load_turns(scope, ahead=ahead))

    def asked(self, scope: Scope, *, by_vector: bool) -> None:
        """Note that a caller searches. The first search needs few vectors; later ones benefit from all of them."""
        asked = self._asked[scope] = self._asked.get(scope, 0) + 1
        if asked == 1:
            if by_vector and not self._store.reads_at_once:
                self.load_vectors(scope)
            return
        is_due = asked & (asked - 1) == 0  # from time to time, because loaded data may have been evicted
        if by_vector and is_due and (self._more is None or self._more.done()):
            self._more = self._beside(self._load_more())
        self.load_turns(scope)

    def answered(self, scope: Scope) -> None:
        """Note that a search was answered. Unless another one follows at once, there is time to load turns."""
        if scope not in self._turns and scope not in self._quiet and not self._store.holds_turns(scope):
            load = partial(self.load_turns, scope, ahead=True)
            self._quiet[scope] = asyncio.get_running_loop().call_later(_QUIET_S, load)

    async def read(self, scope: Scope, ask: Callable[[Snapshot], T], foreseen: Foreseen = NOTHING_FORESEEN) -> T:
        """Read from the store, after a short wait if the caller's turns are being loaded. Arguments as `Store.read`."""
        loading = self._turns.get(scope)
        if loading is not None and not loading.done():
            await asyncio.wait((loading,), timeout=_PATIENCE_S)
        return await self._store.seen_by(scope).read(ask, foreseen)

    def close(self) -> None:
        """Cancel pending loads."""
        for quiet in self._quiet.values():
            quiet.cancel()

    async def _load_turns(self, scope: Scope, *, ahead: bool) -> None:
        if self._more is not None:
            await asyncio.wait((self._more,))  # missing vectors cost each search more than missing turns
        if not await self._store.seen_by(scope).read(lambda tx: tx.load_turns(scope, ahead=ahead)):
            del self._turns[scope]

    async def _load_more(self) -> None:
        """Load step by step, so that other reads get in between and closing does not wait long."""
        while await self._store.read(lambda tx: tx.load_more_vectors()):
            pass


class Read(Protocol):
    """Reads from the store in one snapshot, with the arguments of `Store.read`."""

    def __call__(self, ask: Callable[[Snapshot], T], foreseen: Foreseen = NOTHING_FORESEEN) -> Awaitable[T]: ...


class Embed(Protocol):
    """Embeds a question. `refresh` reads the models from the store first."""

    def __call__(self, text: str, *, refresh: bool = False) -> Awaitable[Question]: ...


class FloorOf(Protocol):
    """Returns the chance level of a model, by its key, or of words alone (0). None: unknown, and `waits` is false."""

    def __call__(self, model: int, *, waits: bool = True) -> Awaitable[Floor | None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The parts of the engine that a search uses.

    Attributes:
        read: reads from the store once the needed caches are loaded.
        warm: starts to load the vectors of memories.
        is_behind: returns whether background computations on memories are missing from a snapshot.
        read_by_is_behind: what that reads, one statement each.
        missing: waits for them; returns what is still missing.
        exemplars: returns questions with known intent and the key of their model; the first call embeds them.
        shown, told: record the keys that a search showed, and the hits that a context showed.
        links: finds entities named in memories.
        keep: records an answer; returns its receipt.
        leaves_receipts: whether answers leave receipts by default.
    """

    store: Store
    scope: Scope
    now: int
    zone: ZoneInfo
    read: Read
    embed: Embed
    is_behind: Callable[[Snapshot], bool]
    read_by_is_behind: Callable[[], Sequence[Callable[[Snapshot], object]]]
    missing: Callable[[], Awaitable[tuple[str, ...]]]
    warm: Callable[[], None]
    exemplars: Callable[[], Awaitable[tuple[int, Exemplars] | None]]
    shown: Callable[[Sequence[int]], None]
    told: Callable[[Sequence[Hit]], None]
    floor: FloorOf
    deadline_s: float
    context_tokens: int
    links: Links
    keep: Callable[[Draft], ReceiptId] = lambda draft: ReceiptId()
    leaves_receipts: bool = False
    weighing: Weighing = Weighing()
    reranking: Reranking | None = None

    async def needed(self, prompt: str, *, turns: int) -> dict[int, Hit]:
        """Return by key what must not be missed about the topics of a prompt, or who the owner is if it asks that."""
        if asks_about_asker(prompt):
            return await self.read(lambda tx: own_memories(tx, self.scope, now=self.now, zone=self.zone))
        if (needs := needs_of(prompt)) is None:
            return {}
        given: dict[str, Any] = {"now": self.now, "zone": self.zone, "until": time.monotonic() + self.deadline_s}
        return await self.read(
            lambda tx: needed_memories(tx, self.scope, prompt, needs, turns=turns, **given), Foreseen(about=prompt)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranking:
    """A reranker, and its limits: the number of memories, the characters of each, and the deadline.

    `on_request`: the reranker is used only if a search requests it.
    """

    reranker: Reranker
    candidates: int
    chars: int
    deadline_s: float
    on_request: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """A reranker's ratings of the best memories by key, why ratings are missing, and the time taken."""

    ratings: Mapping[int, float] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()
    ms: float = 0.0


async def read(asking: Asking, ask: Callable[[Snapshot], T], as_of: AsOf) -> T:
    """Read the store in its current state or, with `as_of`, in a past one.

    Raises:
        InvalidError: `as_of` is neither a time nor a commit number.
    """
    if as_of is None:
        return await asking.store.read(ask)
    return await read_past(asking, ask, as_of)


async def read_past(asking: Asking, ask: Callable[[PastSnapshot], T], as_of: datetime | str | int) -> T:
    """Read a past state of the store. Raises InvalidError as `read` does."""
    when = when_of(as_of, asking=asking)
    return await asking.store.read_past(ask, scope=asking.scope, when=when, links=asking.links)


async def closings_now(asking: Asking, ids: Sequence[str]) -> dict[str, str]:
    """Return why and since when memories of an earlier time are closed now, by id; without those that are not."""

    def read(snapshot: Snapshot) -> dict[str, str]:
        nodes = (snapshot.nodes.get(asking.scope, id) for id in ids)
        return {node.id: closing_of(node, asking.zone) for node in nodes if node is not None and node.closed_at}

    return await asking.store.read(read)


def when_of(as_of: datetime | str | int, *, asking: Asking) -> When:
    """Return the moment that `as_of` names. Raises InvalidError if it is neither a time nor a commit number."""
    if isinstance(as_of, int):
        if isinstance(as_of, bool) or not 0 <= as_of < 1 << 62:
            raise InvalidError(f"as_of: {as_of!r} is not a commit number", hint="`log` shows them; or give a time")
        return When(commit=as_of)
    at = parse_instant(as_of, now=asking.now, zone=asking.zone, field="as_of")
    return When(at=min(at, asking.now))


async def empty_past(asking: Asking, as_of: AsOf) -> str:
    """Return a note that there were no memories at a time, with the day of the first change; "" if there were some.

    Raises:
        InvalidError: `as_of` is neither a time nor a commit number.
    """
    return "" if as_of is None else await read_past(asking, partial(_note_if_empty, asking), as_of)


def _note_if_empty(asking: Asking, snapshot: PastSnapshot) -> str:
    wanted = filter_of(snapshot, asking.scope, query_of(Request(type="any"), now=asking.now, zone=asking.zone))
    first = snapshot.today.history.first(asking.scope)
    now = snapshot.current(asking.now)
    if first is None or snapshot.nodes.page(asking.scope, wanted, now=now, before_key=None, limit=1):
        return ""
    since = first.at.astimezone(asking.zone).date().isoformat()
    return (
        f"as_of: the memory was empty then; its first change was recorded on {since}. "
        "as_of goes by the time of recording, not by the time that a text is about"
    )


async def search(asking: Asking, request: Request) -> Results:
    """Return the answer to a request. Raises InvalidError for an invalid argument, NotFoundError for the entity."""
    query = query_of(request, now=asking.now, zone=asking.zone)
    wanted = wants_receipt(asking, request.receipt)
    results, found = await answer(
        asking, query, traced=request.trace, as_of=request.as_of, reasons=True, receipt=wanted
    )
    results = await _with_needed(asking, query, results, as_of=request.as_of)
    if not wanted:
        return results
    draft = Draft(
        scope=asking.scope,
        at=asking.now,
        request=request,
        seen=found.seen,
        hits=results.hits,
        left_out=[each for each in found.next_best if each[0] not in results.ids],
        degraded=results.degraded,
    )
    return replace(results, receipt=asking.keep(draft))


async def _with_needed(asking: Asking, query: Query, results: Results, *, as_of: AsOf) -> Results:
    """Return results that end with the facts that must not be missed about the question, if they were not found."""
    if as_of is not None or query.is_narrowed or KNOWLEDGE not in query.filter.shelves or _asks_for_nothing(query.text):
        return results
    needed = await asking.needed(asked_in(query.text), turns=0)
    if not needed:
        return results
    types, known, must = query.filter.types, set(results.ids), {hit.id for hit in needed.values()}
    missing = [hit for hit in needed.values() if hit.id not in known and may_be_quoted(hit)]
    room = max(query.limit - len(results.hits), query.limit // _NEEDED)
    missing = [hit for hit in missing if not types or hit.type in types][:room]
    hits = (*results.hits[: query.limit - len(missing)], *missing)
    if results.intent != "when":
        hits = _with_most_needed(hits, known=needed, question=query.text)
    if query.only_relevant or query.judge:
        hits = tuple(replace(hit, is_relevant=True) if hit.id in must else hit for hit in hits)
    return replace(results, hits=hits)


def _with_most_needed(hits: tuple[Hit, ...], *, known: Mapping[int, Hit], question: str) -> tuple[Hit, ...]:
    """Return hits with the one that must least be missed, if it comes later, in third place: what is needed of somebody
    that the question names, otherwise of the user.
    """
    said = set(index_terms(question))
    is_named = {hit.id: not said.isdisjoint(index_terms(" ".join(hit.about))) for hit in known.values()}
    meant = {hit.id for hit in known.values() if is_named[hit.id] or _is_of_user(hit)}
    found = [(not is_named[hit.id], place) for place, hit in enumerate(hits) if hit.id in meant]
    if not found or (place := min(found)[1]) <= _OF_NEEDED:
        return hits
    hit, score = hits[place], hits[_OF_NEEDED].score
    raised = Share(strategy="needed", rank=None, raw=1.0, share=score - hit.score)
    hit = replace(hit, score=score, why=(*hit.why, raised))
    return (*hits[:_OF_NEEDED], hit, *hits[_OF_NEEDED:place], *hits[place + 1 :])


def _is_of_user(hit: Hit) -> bool:
    """Return whether a need is the user's own, also without a subject: "allergic to nuts"."""
    said = topics(hit.content)
    return said.is_own or not (hit.about or said.others or said.people)


def wants_receipt(asking: Asking, asked: bool | None) -> bool:
    """Return whether an answer leaves a receipt: as requested, or according to the setting.

    Raises:
        InvalidError: `asked` is neither true, false nor None.
    """
    if asked is not None and not isinstance(asked, bool):
        raise InvalidError("receipt must be true, false or left out")
    return asking.leaves_receipts if asked is None else asked


async def answer(
    asking: Asking, query: Query, *, traced: bool, as_of: AsOf, reasons: bool = False, receipt: bool = False
) -> tuple[Results, Found]:
    """Return the answer, and how it was found. Raises NotFoundError if the question is limited to an unknown entity."""
    if query.rerank and asking.reranking is None:
        raise InvalidError("rerank: this memory has no reranker", hint="configure one with the setting `reranker`")
    if query.only_relevant and query.text.strip():
        query = replace(query, text=asked_in(query.text))
        if not query.text or follows_up(query.text):  # it refers to something that is unknown here
            return _silent(query, now=asking.now, traced=traced)
    if not query.words_only:
        asking.warm()
    started = time.monotonic()
    embedding = asyncio.create_task(_embedded(asking, query, refresh=as_of is not None))
    await asyncio.sleep(0)  # meanwhile the embedder, which may have to load, works in its thread
    # numpy takes a tenth of a second to import. The first search pays for it, not `import ricordo`.
    from ricordo.retrieval.search import results_of

    interval = find_interval(query.text, now=asking.now, zone=asking.zone)
    question = replace(await embedding, interval=interval)
    embedding_ms = (time.monotonic() - started) * 1_000
    until = started + asking.deadline_s
    measures = query.only_relevant or query.judge is True
    if question.waits and (measures or as_of is not None or _is_rated(asking, query)):  # that reads the memories, too
        missing = await _missing(asking, question, until=until)
        question = replace(question, waits=False, degraded=(*question.degraded, *missing))
    opinion = await _opinion(asking, query, question, until=until, as_of=as_of)
    find_by = partial(_found, asking, query, until=until, traced=traced, as_of=as_of, reasons=reasons, receipt=receipt)
    got = await find_by(question, ratings=opinion.ratings)
    if got is None:  # another process has just changed the embedder of the store
        question = replace(await _embedded(asking, query, refresh=True), models=None, interval=interval)
        got = await find_by(question)
        assert got is not None
    found, plan = got
    if as_of is None:
        asking.shown(found.shown)
    if opinion.ms:
        found = replace(found, timings_ms={**found.timings_ms, "reranker": opinion.ms})
    if query.judge and _asks_for_nothing(query.text):
        found = replace(found, best=tuple(replace(hit, is_relevant=False) for hit in found.best))
    found = replace(found, best=tuple(as_own(hit, asking.scope.owner) for hit in found.best))
    degraded = question.degraded + opinion.degraded
    if as_of is not None and not found.best and (note := await empty_past(asking, as_of)):
        degraded += (note,)
    return results_of(found, plan, embedding_ms=embedding_ms, degraded=degraded, traced=traced), found


def load_rules() -> None:
    """Import what a search needs, and compile its patterns for the default languages: a fifth of a second in all."""
    import ricordo.retrieval.search  # noqa: F401  # loaded for later

    _asks_for_nothing("ready")
    load_patterns()


def _asks_for_nothing(text: str) -> bool:
    """Return whether a text is small talk, or refers to something that is unknown here."""
    asked = asked_in(text)
    return bool(text.strip()) and (not asked or follows_up(asked))


def _silent(query: Query, *, now: int, traced: bool) -> tuple[Results, Found]:
    from ricordo.retrieval.search import NOTHING, results_of

    plan = make_plan(query, now=now, interval=None, vectors={})
    return results_of(NOTHING, plan, embedding_ms=0.0, degraded=(), traced=traced), NOTHING


def _is_rated(asking: Asking, query: Query) -> bool:
    """Return whether the reranker is to rate the best memories."""
    reranking = asking.reranking
    wanted = query.rerank if query.rerank is not None else reranking is not None and not reranking.on_request
    return reranking is not None and wanted and not query.words_only and bool(query.text.strip())


async def _opinion(asking: Asking, query: Query, question: Question, *, until: float, as_of: AsOf) -> Opinion:
    """Let the reranker, if enabled, rate the best memories. The search stays within its deadline in any case."""
    reranking = asking.reranking
    if reranking is None or not _is_rated(asking, query):
        return Opinion()
    if as_of is not None:
        return Opinion(degraded=("reranker: it does not read the past",))
    from ricordo.models.reranker import rate
    from ricordo.text.secrets import redact  # compiles its patterns, and other searches should not wait for that

    best = replace(query, limit=reranking.candidates, why_not=None)
    got = await _found(asking, best, question, until=until, traced=False, as_of=None)
    hits = {} if got is None else dict(zip(got[0].shown, got[0].best, strict=True))
    texts = {
        key: redact(_passage(hit, reranking.chars)).text[: reranking.chars]
        for key, hit in hits.items()
        if may_be_quoted(hit)
    }
    started = time.monotonic()
    left_s = min(reranking.deadline_s, until - started)
    if left_s <= 0:
        return Opinion(degraded=("reranker: no time left",))
    if len(texts) < 2:
        return Opinion()
    asked = redact(query.text[:_READ_CHARS]).text[: reranking.chars]
    rated = await rate(reranking.reranker, asked, list(texts.values()), timeout_s=left_s)
    known = {key: each for key, each in zip(texts, rated.values, strict=False) if each is not None}
    return Opinion(
        ratings=known if len(set(known.values())) > 1 else {},
        degraded=(f"reranker: {rated.problem}",) if rated.problem else (),
        ms=(time.monotonic() - started) * 1_000,
    )


def _passage(hit: Hit, chars: int) -> str:
    """Return the text of a memory for the reranker; the excerpt if the text is long."""
    text = hit.content if len(hit.content) <= chars else hit.excerpt
    return f"{hit.speaker}: {text}" if hit.speaker else text


async def _found(
    asking: Asking,
    query: Query,
    question: Question,
    *,
    until: float,
    traced: bool,
    as_of: AsOf,
    reasons: bool = False,
    receipt: bool = False,
    ratings: Mapping[int, float] | None = None,
) -> tuple[Found, Plan] | None:
    """Return what a snapshot found for a question, and its plan; None if the question was embedded for other models."""
    from ricordo.retrieval.search import find, find_past

    plan = make_plan(
        query,
        now=asking.now,
        interval=question.interval,
        vectors=question.vectors,
        intent=question.intent,
        weighing=asking.weighing,
        zone=asking.zone,
    )
    plan = replace(plan, scale=question.scale, ratings=ratings or {})
    if as_of is not None:
        found = await read_past(
            asking, lambda snapshot: find_past(snapshot, plan, scope=asking.scope, zone=asking.zone), as_of
        )
        closings = await closings_now(asking, [hit.id for hit in found.best])
        best = tuple(replace(hit, notice=closings.get(hit.id, "")) for hit in found.best)
        return replace(found, best=_close(best, query)), plan

    if query.only_relevant or query.judge:
        floor = await _floor(asking, query, question)
        plan = replace(plan, floor=floor, query=replace(query, judge=query.judge if floor else False))

    is_behind = False

    def look(snapshot: Snapshot) -> Found | None:
        nonlocal is_behind
        if not question.fits(snapshot):
            return None
        is_behind = question.waits and asking.is_behind(snapshot)
        return (
            None
            if is_behind
            else find(
                snapshot,
                plan,
                scope=asking.scope,
                zone=asking.zone,
                traced=traced,
                reasons=reasons,
                receipt=receipt,
                until=max(until, time.monotonic() + _GRACE_S),
            )
        )

    foreseen = Foreseen(
        about=plan.query.text,
        terms=plan.looked_up,
        replaced=plan.terms,
        interval=plan.span if plan.query.filter == Filter(shelves=plan.query.filter.shelves) else None,
        first=asking.read_by_is_behind() if question.waits else (),
    )
    answer = await asking.read(look, foreseen)
    if is_behind:
        question, missing = replace(question, waits=False), await _missing(asking, question, until=until)
        answer = await asking.read(look, replace(foreseen, first=()))
        answer = None if answer is None else replace(answer, degraded=(*missing, *answer.degraded))
    return None if answer is None else (answer, plan)


async def _missing(asking: Asking, question: Question, *, until: float) -> tuple[str, ...]:
    """Wait for background computations on memories; return what is still missing. At the deadline, a busy store may not
    even tell it.
    """
    try:
        async with asyncio.timeout(until - time.monotonic()):
            return await asking.missing()
    except TimeoutError:
        return ("embedding: no time left to wait for recent memories",) if question.vectors else ()


async def _floor(asking: Asking, query: Query, question: Question) -> Floor | None:
    """Return the floor for the answering embedder, or for words alone, as in the archive; None if it is not known yet
    and the query does not wait for it.
    """
    answering = (model for model, embedded in question.vectors.items() if embedded.vector is not None)
    model = 0 if query.filter.archived else next(answering, 0)
    return await asking.floor(model, waits=query.only_relevant or query.judge is True)


async def _embedded(asking: Asking, query: Query, *, refresh: bool = False) -> Question:
    """Return the question's vectors, once the memories have theirs. If an embedder hangs, only words are used."""
    if query.words_only or not query.text.strip():
        return Question()
    until = asyncio.get_running_loop().time() + asking.deadline_s
    try:
        async with asyncio.timeout_at(until):
            question = await asking.embed(query.text, refresh=refresh)
    except TimeoutError:
        return Question(degraded=(f"embedding: no answer within {asking.deadline_s:g} s",))
    question = replace(question, waits=True)
    if not question.vectors or not _hides_its_intent(query.text):
        return question
    try:
        async with asyncio.timeout_at(until):
            return replace(question, intent=await _intent_by_meaning(asking, question.vectors))
    except TimeoutError:
        return replace(question, degraded=(*question.degraded, "intent: no time left"))


def _hides_its_intent(text: str) -> bool:
    """Return whether the words of a question do not show its intent, for example in another language."""
    return any(mark in text for mark in QUESTION_MARKS) and intent_of(text) == "general"


async def _intent_by_meaning(asking: Asking, vectors: Mapping[int, Embedded]) -> Intent | None:
    """Return the intent of a question by its meaning; None if unknown.

    Exemplars are embedded only for such questions, so most processes never embed them. The search waits for them, so
    that every process gives the same answer.
    """
    known = await asking.exemplars()
    question = vectors.get(known[0]) if known else None
    if known is None or question is None or question.vector is None:
        return None
    return known[1].intent_of(question.vector)


def _close(hits: tuple[Hit, ...], query: Query) -> tuple[Hit, ...]:
    """Decide by `is_close` which hits of the past are relevant, if the query wants to know."""
    if query.only_relevant or query.judge:
        hits = tuple(replace(hit, is_relevant=is_close(hit)) for hit in hits)
    return tuple(hit for hit in hits if hit.is_relevant) if query.only_relevant else hits


def is_close(hit: Hit) -> bool:
    """Return whether a hit shares words with the question or is close in meaning: the floor of past searches."""
    return any(share.raw >= _TELLING.get(share.strategy, inf) for share in hit.why)
