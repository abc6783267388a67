"""The parts of an open memory and their life cycle. All scopes of a store share them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

from ricordo.clock import SystemClock, from_ms, part_of_id
from ricordo.consolidation.debounce import Conversation, Debouncer
from ricordo.encoding.mentions import links
from ricordo.encoding.validation import TextRules, gate_of, screen_of
from ricordo.encoding.worker import LEASE, BackgroundWorker
from ricordo.errors import DeniedError, InvalidError, RicordoError
from ricordo.forgetting.erase import resume, undone_ids
from ricordo.forgetting.upkeep import QUIET_MS, Concluded, Conclusion, Rules, Upkeep, single_scopes
from ricordo.loop_thread import Home
from ricordo.model import Change, Commit, Finding, Json, Member, Node, Origin, Reason, Run, Scope
from ricordo.models.embedding import Embedded, embed_question, resolve
from ricordo.ports import Clock, Embedder, LanguageModel, Progress, Reranker
from ricordo.retrieval.calibration import Floors
from ricordo.retrieval.hits import ContextLog, UsageLog, as_shown
from ricordo.retrieval.inspection import Difference, changed_by
from ricordo.retrieval.query import DEFAULT_SHELVES, Weighing
from ricordo.retrieval.receipts import ReceiptLog
from ricordo.retrieval.service import Asking, AsOf, Prefetch, Question, Reranking, empty_past, load_rules, read
from ricordo.rights import Holder, allows
from ricordo.settings import Settings, api_key, zone_of
from ricordo.storage import Snapshot, Store, owner_names, values, witness
from ricordo.storage.exchange import Exchange
from ricordo.storage.key import Key, key_of
from ricordo.storage.leases import LeaseHolder
from ricordo.storage.registry import open_store
from ricordo.text import lifetimes
from ricordo.text.dates import parse_expiry, parse_instant, stated_expiry
from ricordo.text.languages import register
from ricordo.text.sentences import in_first_person

if TYPE_CHECKING:
    from ricordo.consolidation.context import ConsolidationContext
    from ricordo.models.embedding.scale import Scale
    from ricordo.retrieval.calibration import Exemplars
    from ricordo.standing import Answering

_log = logging.getLogger(__name__)
T = TypeVar("T")

STORED = "stored"
"""Stands for the embedder that the store was last opened with."""

# A search waits at most this long for the scale of its cosines: the embedder may be busy with an import.
_SCALE_WAIT_S = 1.0
# Origins whose text may set its own expiry.
_MAY_SET_EXPIRY: frozenset[Origin] = frozenset(("user", "cli", "rpc", "agent", "conversation"))
# A search waits for the vectors of at most this many new memories, so it does not wait for a bulk import.
_FRESH_MOST = 64
_PAGE = 1_000
# Maximum number of memories, quoted in one answer, that become associates.
_MAX_QUOTED = 5


class Engine:
    """A store with its embedder, its background work and its clock."""

    def __init__(
        self,
        store: Store,
        *,
        embedder: Embedder | None,
        model: values.EmbeddingModel | None,
        language: LanguageModel | None,
        settings: Settings,
        clock: Clock,
        reranker: Reranker | None = None,
        key: Key | None = None,
    ) -> None:
        self.store = store
        self.key = key
        self.home = Home()
        self.settings = settings
        self._witness = Path(settings.witness).expanduser() if settings.witness else None
        self.clock = clock
        self.zone: ZoneInfo = zone_of(settings.time_zone)
        personal = settings.redacted_kinds()
        self.rules = TextRules(secrets=settings.secrets, max_chars=settings.max_text_chars, personal=personal)
        self.embedder = embedder
        self.language = language
        self.reranker = reranker
        self._weighing = Weighing(
            fusion=settings.fusion, without=settings.signals_left_out(), reranker=settings.reranker_weight
        )
        self._earlier: dict[int, Embedder] = {}
        self._models: list[values.EmbeddingModel] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._exemplars: asyncio.Task[tuple[int, Exemplars] | None] | None = None
        self._scales: dict[int, asyncio.Task[Scale | None]] = {}
        self._prefetch = Prefetch(store, shelves=DEFAULT_SHELVES, beside=self._background)
        self._usage = UsageLog(store)
        self._told = ContextLog()
        self.receipts = ReceiptLog(store, self.setup, screen=screen_of(self.rules))
        self._floors = Floors(
            store,
            embedder_of=self._embedder_by_key,
            is_settled=lambda: self.backlog.is_settled,
            beside=self._background,
        )
        self.exchanges = Debouncer(
            self._extract,
            wait_s=settings.extraction_wait_s,
            unread=self._latest_said if settings.extraction_enabled else None,
        )
        self.backlog = BackgroundWorker(store, embedder=embedder, model=model, batch=settings.embedding_batch)

    @classmethod
    async def open(
        cls,
        location: str | Path,
        *,
        embedder: str | Embedder | None,
        settings: Settings,
        clock: Clock | None,
        language: str | LanguageModel | None = None,
        reranker: str | Reranker | None = None,
        progress: Progress | None = None,
        key: str | None = None,
    ) -> Engine:
        """Open a store and start its background work. Arguments and errors are those of `Memory.open`."""
        speaking = _language_of(language, settings)
        rating = _reranker_of(settings.reranker if reranker is None else reranker, settings, speaking)
        _register_languages(settings)
        opening = await asyncio.to_thread(key_of, key or settings.key)
        store = await asyncio.to_thread(
            open_store,
            location,
            durability=settings.durability,
            patience_s=settings.patience_s,
            queue_limit=settings.queue_limit,
            reader_threads=settings.reader_threads,
            gate=gate_of(TextRules(secrets=settings.secrets, personal=settings.redacted_kinds())),
            progress=progress,
            key=opening,
        )
        try:
            await resume(store)
            spec = await _stored_spec(store) if embedder == STORED else embedder
            chosen = _resolved(spec, settings)
            model = None
            if chosen is not None:
                model = await _adopted(store, chosen, spec if isinstance(spec, str) else "")
            return cls(
                store,
                embedder=chosen,
                model=model,
                language=speaking,
                settings=settings,
                clock=clock or SystemClock(),
                reranker=rating,
                key=opening,
            )
        except BaseException:
            await asyncio.to_thread(store.close)
            raise

    async def on_copy(self, path: Path) -> Engine:
        """Return a similar engine on a copy of the store, without upkeep, extraction and receipts."""
        store = await asyncio.to_thread(open_store, path, durability="process", key=self.key)
        await LeaseHolder(store, LEASE, lease_ms=0).free()
        known = await store.read(lambda tx: tx.models.known())
        mine = self.backlog.model
        return Engine(
            store,
            embedder=self.embedder,
            model=next((each for each in known if mine is not None and each.key == mine.key), None),
            language=None,
            settings=replace(self.settings, extraction_enabled=False, auto_gc=False, receipts="off"),
            clock=self.clock,
            reranker=self.reranker,
            key=self.key,
        )

    async def close(self) -> None:
        """Finish the current batch, write pending data, and close the store."""
        self._prefetch.close()
        try:
            await self.home.run(self._end_tasks)
            await self._tell_witness()
        finally:
            await asyncio.to_thread(self.store.close)

    async def _end_tasks(self) -> None:
        await self.exchanges.close()
        await self.backlog.close()
        await self._usage.close()
        await self.receipts.close()

    async def _tell_witness(self) -> None:
        try:
            await self.note_head()
        except OSError as error:
            _log.warning("the witness %s cannot be written: %s", self._witness, error.strerror)

    async def note_head(self) -> None:
        """Record the newest commit in the witness file, if there is one. Raises OSError."""
        if (path := self._witness) is not None:
            now = self.now()
            await self.store.read(lambda tx: witness.note(tx, path, now=now))

    async def witnessed(self) -> tuple[Finding, ...]:
        """Compare the store with its witness file, then record the newest commit in it; () without a witness."""
        if (path := self._witness) is None:
            return ()
        found = await self.store.look(lambda tx: witness.compare(tx, path))
        try:
            await self.note_head()
        except OSError as error:
            hint = "check the path and its permissions"
            return (Finding(check="witness", ok=False, detail=f"cannot be written: {error.strerror}", remedy=hint),)
        return (found,)

    def now(self) -> int:
        """Return the current time in Unix milliseconds, UTC."""
        return self.clock.now()

    def today(self) -> str:
        """Return the date in the user's time zone, ISO 8601."""
        return from_ms(self.now()).astimezone(self.zone).date().isoformat()

    def instant(self, value: datetime | str, name: str) -> int:
        """Return a caller's time as Unix milliseconds. Raises InvalidError that names the parameter."""
        return parse_instant(value, now=self.now(), zone=self.zone, field=name)

    def expiry(self, given: datetime | str) -> datetime | None:
        """Return the expiry that a caller requests; None for never. Raises InvalidError as `timed` does."""
        until = parse_expiry(given, now=self.now(), zone=self.zone, field="expires")
        return None if until is None else from_ms(until)

    def timed(self, node: Node, given: datetime | str | None) -> Node:
        """Return a new fact with the dates in its text and its expiry: as given, as its text asks, or by its lifetime.

        Raises:
            InvalidError: the given expiry cannot be read, or is in the past.
        """
        if given is not None:
            return lifetimes.expiring(lifetimes.timed(node, zone=self.zone), self.expiry(given))
        if node.origin in _MAY_SET_EXPIRY and (until := stated_expiry(node.content, now=self.now(), zone=self.zone)):
            node = replace(node, expires_at=from_ms(until))
        return lifetimes.timed(node, zone=self.zone)

    def asking(self, scope: Scope) -> Asking:
        """Return the parts that a search in a scope needs."""
        return Asking(
            store=self.store.seen_by(scope),
            scope=scope,
            now=self.now(),
            zone=self.zone,
            read=partial(self._prefetch.read, scope),
            embed=self.embed_question,
            is_behind=self.backlog.is_behind,
            read_by_is_behind=self.backlog.read_by_is_behind,
            missing=self._missing,
            warm=lambda: self._prefetch.asked(scope, by_vector=self.embedder is not None),
            exemplars=self._known_questions,
            shown=partial(self._shown, scope),
            told=lambda hits: self._told.keep(scope, hits),
            floor=partial(self._floors.floor, scope),
            deadline_s=self.settings.search_deadline_ms / 1_000,
            context_tokens=self.settings.context_tokens,
            links=links,
            keep=self.receipts.keep,
            leaves_receipts=self.settings.receipts != "off",
            weighing=self._weighing,
            reranking=self._reranking(scope),
        )

    def setup(self) -> Json:
        """Return what ranking depends on besides the memories, for receipts."""
        settings = self.settings
        named = {
            "version": version("ricordo"),
            "embedder": None if self.embedder is None else self.embedder.name,
            "reranker": None if self.reranker is None else type(self.reranker).__name__,
            "fusion": settings.fusion,
            "without_signals": sorted(settings.signals_left_out()),
            "context_tokens": settings.context_tokens,
            "time_zone": settings.time_zone,
        }
        return {name: value for name, value in named.items() if value not in (None, [])}

    def _reranking(self, scope: Scope) -> Reranking | None:
        """Return the reranker with its limits. The calls of a language model are recorded for the scope."""
        found = self.reranker
        if found is None:
            return None
        from ricordo.models.reranker import LanguageModelReranker
        from ricordo.wiring import recorded_model

        is_language = False
        if isinstance(found, LanguageModelReranker):
            is_language = True
            found = LanguageModelReranker(recorded_model(self.consolidation_context(scope, model=found.model)))
        return Reranking(
            reranker=found,
            candidates=self.settings.reranker_candidates,
            chars=self.settings.reranker_chars,
            deadline_s=self.settings.reranker_deadline_ms / 1_000,
            on_request=is_language,
        )

    def _shown(self, scope: Scope, keys: Sequence[int]) -> None:
        self._usage.note(keys, now=self.now())
        self._prefetch.answered(scope)

    def consolidation_context(self, scope: Scope, *, model: str | LanguageModel | None = None) -> ConsolidationContext:
        """Return the parts that consolidation needs, with the memory's language model or another one."""
        from ricordo.wiring import consolidation_context

        return consolidation_context(
            scope,
            store=self.store.seen_by(scope),
            settings=self.settings,
            model=_language_of(model, self.settings) or self.language,
            now=self.now,
            zone=self.zone,
            asking=self.asking,
        )

    def answering(self, scope: Scope) -> Answering:
        """Return the parts needed to answer a caller."""
        from ricordo.standing import Answering

        context = replace(self.consolidation_context(scope), scope=scope)
        if not allows("ask.model", Holder(scope.trust, proposes=scope.propose)):
            context = replace(context, model=None)
        return Answering(asking=self.asking(scope), context=context, screen=screen_of(self.rules))

    def warm(self, scope: Scope) -> None:
        """Load weights, vectors, turns, patterns and the questions of known intent in the background."""
        if self.embedder is not None:
            self._background(self._embed_something())
            self._prefetch.load_vectors(scope)
            self._known_questions()
        self._prefetch.load_turns(scope)
        self._background(asyncio.to_thread(load_rules))

    async def _embed_something(self) -> None:
        await self.embed_question("ready")

    async def upkeep(self, scope: Scope | None, *, dry_run: bool = False, progress: Progress | None = None) -> Upkeep:
        """Return the parts that upkeep of a scope or all owners needs. Write pending counts and receipts first."""
        await self._usage.flush()
        await self.receipts.flush()
        settings = self.settings
        rules = Rules(
            decay_closes=settings.decay_closes,
            protect_mentions=settings.protect_mentions,
            max_entries=settings.max_entries,
            max_size=settings.max_size,
            reflect_days=settings.reflect_days,
            receipts_days=settings.receipts_days,
        )
        scopes = await self.store.read(lambda tx: tx.lifecycle.scopes()) if scope is None else single_scopes(scope)
        actor = "upkeep" if scope is None else scope.actor
        return Upkeep(
            store=self.store if scope is None else self.store.seen_by(scope),
            scopes=tuple(scopes),
            now=self.now(),
            zone=self.zone,
            rules=rules,
            actor=actor,
            dry_run=dry_run,
            progress=progress,
            meaning_model=self._meaning_model(),
            consolidate=self._consolidate_what_is_over,
            conclude=self._conclude,
        )

    async def note_quotes(self, scope: Scope, texts: Iterable[str]) -> None:
        """Count memories as shown if an assistant quotes them from a context."""
        quoted = {id for text in texts for id in self._told.quoted_in(scope, text)}
        if quoted:
            keys = await self.store.seen_by(scope).read(
                lambda snapshot: [node.key for id in quoted if (node := snapshot.nodes.get(scope, id)) is not None]
            )
            self._usage.note(keys, now=self.now())
            if len(quoted) > 1:
                await self._associate(scope, sorted(quoted))

    async def _associate(self, scope: Scope, quoted: Sequence[str]) -> None:
        """Make the memories quoted in one answer associates, because they proved useful together."""

        def decide(tx: Snapshot) -> tuple[Change, None]:
            there = [id for id in quoted if (node := tx.nodes.get(scope, id)) is not None and node.is_live]
            return Change(associates=tuple(combinations(there[:_MAX_QUOTED], 2))), None

        reason = Reason(actor=scope.actor, origin="quote", reason="quoted in one answer")
        await self.store.seen_by(scope).write(decide, scope=scope, reason=reason, at=from_ms(self.now()))

    async def _consolidate_what_is_over(self, scope: Scope) -> Run:
        """Consolidate the conversations that are over."""
        from ricordo.consolidation import run as running

        run = await running.consolidate(
            self.consolidation_context(scope), None, dry_run=False, finished_before=self.now() - QUIET_MS
        )
        self.backlog.note(len(run.items))
        return run

    def said(self, scope: Scope, sessions: Iterable[str | None]) -> None:
        """Note that messages were added to conversations. They are extracted when the conversation pauses."""
        if self.settings.extraction_enabled:
            self.exchanges.note(scope, sessions)

    async def _latest_said(self) -> list[Conversation]:
        """Return the sessions that an earlier process may have left unread."""
        return await self.store.read(lambda tx: tx.runs.latest_waiting())

    async def _extract(self, place: tuple[str, str], session: str | None) -> Run:
        """Extract knowledge from the new messages of a conversation."""
        from ricordo.consolidation.extraction import extract_one

        owner, chat = place
        run = await extract_one(self.consolidation_context(Scope.of(owner, chat)), place, session)
        self.backlog.note(len(run.items))
        return run

    async def settle(self, timeout_s: float | None) -> None:
        """Wait until conversations are extracted, and all memories are embedded and linked; see `Memory.settle`."""
        began = time.monotonic()
        await self.exchanges.settle(timeout_s)
        await self.backlog.settle(None if timeout_s is None else max(0.0, timeout_s - (time.monotonic() - began)))

    async def _conclude(self, kind: Conclusion, scope: Scope, dry_run: bool) -> Concluded:
        """Run a step that draws conclusions from the memories of a scope."""
        from ricordo.standing import StandingQuestions
        from ricordo.wiring import conclude

        if kind == "questions":
            return await StandingQuestions(answering_of=self.answering, scope=scope).renew_stale(dry_run=dry_run)
        if kind == "changes":
            return await self._list_changes(scope, dry_run=dry_run)
        context = self.consolidation_context(scope)
        return await conclude(
            context, kind, dry_run=dry_run, note=self.backlog.note, reflect_days=self.settings.reflect_days
        )

    async def _list_changes(self, scope: Scope, *, dry_run: bool) -> Concluded:
        """Compare recent facts with older ones by meaning. An embedder that counts words finds what `remember` did."""
        from ricordo.consolidation.comparison import Comparison
        from ricordo.models.embedding.local import HASHING

        model = self.backlog.model
        if model is None or model.name == HASHING or (scale := await self._scale(model.key)) is None:
            return Concluded()
        store = self.store.seen_by(scope)
        comparison = Comparison(
            store=store, scope=scope, model=model.key, scale=scale, now=self.now(), zone=self.zone, actor=scope.actor
        )
        found = await comparison.list_changes(dry_run=dry_run)
        return Concluded(waited=found, made=0 if dry_run else found)

    def _meaning_model(self) -> int | None:
        """Return the key of the default embedder's model, whose vectors were fitted on; None without it."""
        model = self.backlog.model
        if model is None:
            return None
        from ricordo.models.embedding.default import NAME

        return model.key if model.name == NAME else None

    def _known_questions(self) -> Awaitable[tuple[int, Exemplars] | None]:
        """Return questions of known intent and the model of their vectors. They are embedded once, by the first search
        that needs them, even if that search is cancelled.
        """
        if self._exemplars is None:
            self._exemplars = self._background(self._embed_exemplars())
        return asyncio.shield(self._exemplars)

    async def _embed_exemplars(self) -> tuple[int, Exemplars] | None:
        from ricordo.retrieval.calibration import embed_exemplars

        model, embedder = self.backlog.model, self.embedder
        with contextlib.suppress(RicordoError):  # if the embedder fails, only the guess of an intent is lost
            if model is not None and embedder is not None and (found := await embed_exemplars(embedder)) is not None:
                return model.key, found
        return None

    async def _scale(self, model: int, *, within_s: float | None = None) -> Scale | None:
        """Return the scale of the cosines of a model; None if it tells nothing, or is not known in time. It is measured
        once, even if the first search is cancelled, and again after a failure.
        """
        from ricordo.models.embedding.scale import scale_of

        embedder = self._embedder_by_key(model)
        if embedder is None:
            return None
        if model not in self._scales:
            self._scales[model] = self._background(scale_of(embedder))
        measuring = self._scales[model]
        await asyncio.wait({measuring}, timeout=within_s)
        if not measuring.done():
            return None
        if measuring.cancelled() or measuring.exception() is not None:
            self._scales.pop(model, None)
            return None
        return measuring.result()

    def _background(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception() and None)
        return task

    async def embed_question(self, text: str, *, refresh: bool = False) -> Question:
        """Embed the question with each model that has vectors in the store. Models that failed are reported. Questions
        about "the user" are embedded in the first person, like facts about the user.

        Args:
            refresh: read the models from the store, instead of using those of an earlier question.
        """
        if self.embedder is None:
            return Question()
        degraded = []
        self.backlog.hurry()
        found: dict[int, Embedded] = {}
        if refresh or self._models is None:
            self._models = await self.store.read(lambda tx: tx.models.known())
        known = self._models
        for model in sorted(known, key=lambda model: model.state):
            embedder = self._embedder_of(model)
            if model.state == "coming":
                degraded.append("embedding: the store is changing its model")
            if embedder is None:
                continue
            try:
                embedded = await embed_question(embedder, in_first_person(text))
            except Exception as error:  # noqa: BLE001 - embedders may be foreign code; search by words still works
                degraded.append(f"embedding: {type(error).__name__}: {str(error)[:200]}")
                continue
            if embedded.vector is None:
                degraded.append("embedding: the question's vector is unsound")
            else:
                found[model.key] = embedded
        wait_s = min(self.settings.fresh_wait_ms / 1_000, _SCALE_WAIT_S)
        scale = await self._scale(next(iter(found)), within_s=wait_s) if found else None
        return Question(vectors=found, scale=scale, degraded=tuple(degraded), models=known)

    async def _missing(self) -> tuple[str, ...]:
        """Wait for background computations on memories; return what is still missing."""
        wait_s = self.settings.fresh_wait_ms / 1_000
        count, is_unlinked = await self.backlog.caught_up(wait_s, most=_FRESH_MOST)
        number = f"more than {_FRESH_MOST}" if count > _FRESH_MOST else str(count)
        waiting = "1 memory waits for its vector" if count == 1 else f"{number} memories wait for their vector"
        missing = {f"embedding: {waiting}": count > 0, "links: names in recent memories are not linked": is_unlinked}
        return tuple(text for text, is_missing in missing.items() if is_missing)

    def _embedder_by_key(self, key: int) -> Embedder | None:
        """Return the embedder of the model with a key, if this process has it."""
        mine = self.backlog.model
        return self.embedder if mine is not None and mine.key == key else self._earlier.get(key)

    def _embedder_of(self, model: values.EmbeddingModel) -> Embedder | None:
        """Return the embedder of a model: the current one, or an earlier one whose vectors are still in use."""
        mine = self.backlog.model
        if mine is not None and model.key == mine.key:
            return self.embedder
        if model.state == "retiring" or not model.spec:
            return None
        if model.key not in self._earlier:
            with contextlib.suppress(RicordoError):
                earlier = _resolved(model.spec, self.settings)
                if earlier is not None and (earlier.name, earlier.dimension) == (model.name, model.dimension):
                    self._earlier[model.key] = earlier
        return self._earlier.get(model.key)


async def _stored_spec(store: Store) -> str | None:
    """Return the embedder name that the store was last opened with: "default" if new, None if it was an object."""
    known = await store.read(lambda tx: tx.models.known())
    latest = next((model for model in known if model.state == "coming"), None)
    latest = latest or next((model for model in known if model.state == "active"), None)
    return "default" if latest is None else latest.spec or None


def _resolved(embedder: str | Embedder | None, settings: Settings) -> Embedder | None:
    """Return the embedder that a name stands for. A remote one gets the key that its provider's tools would use."""
    key = api_key("openai") if isinstance(embedder, str) and embedder.startswith("openai:") else None
    return resolve(embedder, api_key=key, timeout_s=settings.provider_timeout_s)


def _register_languages(settings: Settings) -> None:
    """Register the language files that the setting names."""
    for path in filter(None, map(str.strip, settings.languages.split(","))):
        try:
            register(path)
        except InvalidError as error:
            hint = (
                "give paths of language files, separated by commas (RICORDO_LANGUAGES, or `languages` in ricordo.toml)"
            )
            raise InvalidError(f"the setting `languages` names an invalid file: {error.message}", hint=hint) from error


def _language_of(model: str | LanguageModel | None, settings: Settings) -> LanguageModel | None:
    if model is None:
        return None
    from ricordo.models.language import model_from_settings  # pydantic takes a tenth of a second to import

    return model_from_settings(model, settings)


def _reranker_of(reranker: str | Reranker, settings: Settings, language: LanguageModel | None) -> Reranker | None:
    if reranker in ("", "none"):
        return None
    from ricordo.models.reranker import resolve as resolve_reranker

    if reranker == "llm" and language is None:  # the command line opens the model only for some verbs
        language = _language_of(settings.model if settings.model not in ("", "none") else None, settings)
    provider = reranker.partition(":")[0] if isinstance(reranker, str) else ""
    key = api_key(provider) if provider in ("cohere", "jina") else None
    return resolve_reranker(reranker, api_key=key, timeout_s=settings.reranker_deadline_ms / 1_000, language=language)


async def _adopted(store: Store, embedder: Embedder, spec: str) -> values.EmbeddingModel:
    name, dimension = embedder.name, embedder.dimension
    if not isinstance(name, str) or not name or not isinstance(dimension, int) or not 1 <= dimension <= 16_384:
        raise InvalidError("embedder: the object needs a `name` and a `dimension` from 1 to 16,384")
    known = await store.read(lambda tx: tx.models.known())
    active = next((model for model in known if model.state == "active"), None)
    if active is not None and (active.name, active.dimension) == (name, dimension) and len(known) == 1:
        return active
    return await store.derive(lambda tx: tx.models.adopt(name=name, dimension=dimension, spec=spec))


def _shown(snapshot: Snapshot, nodes: Sequence[Node]) -> list[Node]:
    return list(as_shown(snapshot, {node.key: node for node in nodes}).values())


class StoreView:
    """The data visible to a memory's scope and, for the memory that opened the store, the owners in the store."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        *,
        now: Callable[[], int],
        zone: ZoneInfo,
        sees_owners: bool,
        asking: Callable[[], Asking],
        told: Callable[[str, object], object],
    ) -> None:
        self._asking = asking
        self._told = told
        self._store = store
        self._seen = store.seen_by(scope)
        self._scope = scope
        self._sees_owners = sees_owners
        self.now = now
        """Return the current time by the store's clock, in Unix milliseconds."""
        self.zone = zone
        """The user's time zone."""

    async def owners(self) -> Sequence[Scope]:
        """Return one scope per owner and chat in the store. Groups without an owner are omitted.

        Raises:
            DeniedError: the memory did not open the store itself.
        """
        self._check_owners()
        found = await self._store.read(lambda tx: tx.lifecycle.scopes())
        return [Scope(owner=each.owner) for each in found if each.owner]

    async def chats(self) -> Sequence[str]:
        """Return the names of all chats and shared spaces in the store. Raises as `owners` does."""
        self._check_owners()
        found = await self._store.read(lambda tx: tx.lifecycle.scopes())
        return [each.chat for each in found if each.chat and not each.owner]

    async def owner_of(self, id: str) -> Scope | None:
        """Return the scope of a memory, closed or not; None if no owner has this id. Raises as `owners` does."""
        self._check_owners()
        found = await self._store.read(lambda tx: tx.lifecycle.whose(id))
        return None if found is None else Scope(owner=found.owner)

    async def device_names(self) -> tuple[str, ...]:
        """Return all names that this store has had among the devices that sync it, the latest first."""
        return await self._store.derive(lambda tx: Exchange(tx, self._scope).names())

    async def owner_names(self) -> tuple[str, ...]:
        """Return the names that the owner's facts give the owner: "The user's name is Katrin"."""
        names = await self._seen.read(lambda tx: owner_names(tx, self._scope.owner))
        self._told("owner_names", names)
        return names

    async def members(self, space: str) -> Sequence[Member]:
        """Return the present and former members of a space; () for an open chat. Raises as `owners` does."""
        self._check_owners()
        return tuple(await self._store.read(lambda tx: tx.members.of(space)))

    async def nodes(self, ids: Sequence[str]) -> dict[str, Node]:
        """Return the memories with these ids that the scope may see, by id, in one read."""

        def read(tx: Snapshot) -> dict[str, Node]:
            found = (tx.nodes.get(self._scope, id) for id in ids)
            return {node.id: node for node in _shown(tx, [node for node in found if node is not None])}

        shown = await self._seen.read(read)
        self._told("nodes", [*shown.values()])
        return shown

    async def newest(self, ids: Sequence[str]) -> dict[str, Node]:
        """Return the newest version of each memory, live or closed, by the id asked for, in one read."""

        def read(tx: Snapshot) -> dict[str, Node]:
            latest = dict[str, Node]()
            for node in (tx.nodes.get(self._scope, id) for id in ids):
                if node is not None:
                    later = () if node.is_live else tx.nodes.replacing(node.key)
                    latest[node.id] = next(iter(_shown(tx, [*tx.nodes.by_key(self._scope, later[-1:]).values()])), node)
            shown = {node.id: node for node in _shown(tx, [*latest.values()])}
            return {id: shown[node.id] for id, node in latest.items() if node.id in shown}

        found = await self._seen.read(read)
        self._told("newest", [*found.values()])
        return found

    async def shown(self, nodes: Sequence[Node]) -> list[Node]:
        """Return memories as they may be shown: without forgotten sentences in their texts and attributes."""
        return await self._seen.read(lambda tx: _shown(tx, nodes))

    async def each(self, where: Json | None) -> AsyncIterator[Node]:
        """Yield live knowledge, and messages that are not yet consolidated, latest first.

        Args:
            where: keys and values that the attributes must have.
        """
        now, wanted = self.now(), values.Filter(shelves=("k", "e"), where=where or None)
        last: int | None = None
        while page := await self._seen.read(
            lambda tx: tx.nodes.page(self._scope, wanted, now=tx.current(now), before_key=last, limit=_PAGE)  # noqa: B023
        ):
            shown = await self.shown(page)
            self._told("each", shown)
            for node in shown:
                yield node
            last = page[-1].key

    async def commits(self, limit: int = 1) -> Sequence[Commit]:
        """Return the latest commits, newest first, without the excerpts of memories that `log` adds."""
        return await self._seen.read(lambda tx: tx.history.commits(self._scope, before=None, most=limit))

    async def changed_by(self, commit: int) -> Difference:
        """Return the changes made by a commit, as far as they still exist and the scope may see them.

        Raises:
            NotFoundError: the scope sees no such commit.
        """
        found = await self._seen.read(lambda tx: changed_by(tx, self._scope, commit))
        self._told("changed_by", found)
        return found

    async def ids(self, part: str, *, as_of: AsOf = None, undone: bool = False) -> Sequence[str]:
        """Return the ids of memories that a shortened id can mean, at most a few.

        Args:
            undone: also memories that exist only in the history.

        Raises:
            InvalidError: `as_of` is neither a time nor a commit number.
        """
        wanted = part_of_id(part)

        def work(tx: Snapshot) -> Sequence[str]:
            found = tx.nodes.ids_with(self._scope, wanted)
            return [*found, *undone_ids(tx, self._scope, part)] if undone else found

        return await read(self._asking(), work, as_of) if wanted else ()

    async def empty_past(self, as_of: AsOf) -> str:
        """Return a note that there were no memories at a time, with the day of the first change; "" if there were some.

        Raises:
            InvalidError: `as_of` is neither a time nor a commit number.
        """
        return await empty_past(self._asking(), as_of)

    async def holdings(self, as_of: AsOf = None) -> values.Holdings:
        """Return the knowledge that is or was valid, with all entities and the relations valid at that time.

        The mention counts of entities are always current.

        Raises:
            InvalidError: `as_of` is neither a time nor a commit number.
        """
        asking = self._asking()
        found = await read(asking, lambda tx: tx.export.holdings(self._scope, now=tx.current(asking.now)), as_of)
        self._told("holdings", found.facts)
        return found

    def _check_owners(self) -> None:
        if not self._sees_owners:
            raise DeniedError("owners: only the caller that opened the store may list them")
