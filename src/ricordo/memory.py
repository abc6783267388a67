"""`Memory`, the public API: one short method per capability. The packages behind it do the work."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, get_args
from zoneinfo import ZoneInfo

from ricordo import bulk, sharing, spans
from ricordo.clock import SystemClock, from_ms, handle_of, new_id
from ricordo.consolidation import evolution, proposals, resolve, reviews
from ricordo.decay import DAY_MS
from ricordo.encoding import documents as documents_
from ricordo.encoding import duplicates, entities, entity_merge, episodes, facts
from ricordo.encoding.mentions import link_waiting
from ricordo.encoding.validation import (
    TextRules,
    check_choice,
    checked_attributes,
    checked_tags,
    redactions,
    removal_notice,
    short_name,
    storable,
    stored_id,
)
from ricordo.engine import Engine, StoreView
from ricordo.errors import ConflictError, DeniedError, InvalidError, NotFoundError, RicordoError, UnavailableError
from ricordo.forgetting import erase as erasure
from ricordo.forgetting import forget, gc
from ricordo.forgetting.upkeep import Upkeep
from ricordo.model import (
    BY_AGENT,
    DOCUMENT,
    MERGE,
    PROPOSED,
    ROOT_ENDS,
    Answer,
    Archive,
    ArchiveReport,
    Backup,
    Briefing,
    BulkReport,
    Category,
    Change,
    Chat,
    ClosedReason,
    Closing,
    Commit,
    Context,
    Conversation,
    Decision,
    Document,
    DocumentReport,
    Entity,
    EntityType,
    ErasureReport,
    Explanation,
    ExportReport,
    Fact,
    ImportReport,
    ImportSpeaker,
    Json,
    Judging,
    MaintenanceReport,
    MemberRole,
    Message,
    ModelUse,
    Node,
    NodeType,
    Origin,
    Page,
    Pause,
    Profile,
    Reason,
    Receipt,
    ReceiptReplay,
    Rekeyed,
    Report,
    Restored,
    Results,
    Review,
    ReviewKind,
    Role,
    Run,
    Scope,
    Space,
    StandingQuestion,
    Stats,
    SyncReport,
    Trust,
    Version,
    Weak,
)
from ricordo.ports import Clock, Embedder, LanguageModel, Progress, Reranker
from ricordo.retrieval import commit_words, inspection, service
from ricordo.retrieval import context as context_
from ricordo.retrieval.query import Request, checked_limit, checked_name, checked_position
from ricordo.retrieval.receipts import Draft, ids_in
from ricordo.rights import IN_A_SPACE, Holder, SpaceAction, allows, governed, narrowed, require, role_allows
from ricordo.settings import Settings
from ricordo.storage import Snapshot, Store, changes, owner_names, session_meant, with_openings
from ricordo.storage.membership import no_member
from ricordo.storage.values import check_encodable
from ricordo.trust import capped, trust_of

if TYPE_CHECKING:
    from ricordo.consolidation.context import ConsolidationContext
    from ricordo.consolidation.operations import Operations
    from ricordo.portability.devices import Side
    from ricordo.portability.notes import Notes
    from ricordo.standing import StandingQuestions

T = TypeVar("T")

_SHOWN_SPEAKERS = 100
_FEW = 100  # of more facts at once, it is not told what they make out of date in other spaces
_LONG_FACT_CHARS = 10_000
_NEW_WORDS = frozenset(("correct", "update", "propose", "add entity", "relate", "update entity"))
"""The changes, besides those that add memories, that store what somebody says now."""


def _of_search(found: Results) -> dict[str, spans.Attribute]:
    return {"ricordo.hits": len(found.hits), "ricordo.intent": found.intent, "ricordo.degraded": len(found.degraded)}


def _of_run(run: Run) -> dict[str, spans.Attribute]:
    return {"ricordo.items": len(run.items), "ricordo.state": run.state, "ricordo.run": run.id}


_SPANS: Mapping[str, Callable[[Any], dict[str, spans.Attribute]]] = {
    "search": _of_search,
    "query": _of_search,
    "context_parts": lambda found: {
        "ricordo.memories": len(found.ids),
        "ricordo.tokens": found.tokens,
        "ricordo.budget": found.budget,
    },
    "ask": lambda answer: {"ricordo.sentences": len(answer.sentences), "ricordo.known": answer.known},
    "add_many": lambda ids: {"ricordo.messages": len(ids)},
    "remember_many": lambda nodes: {"ricordo.facts": len(nodes)},
    "consolidate": _of_run,
    "extract": _of_run,
}
"""The methods that OpenTelemetry records, and the attributes of each span."""


def _spanned(cls: T) -> T:
    for name, said in _SPANS.items():
        setattr(cls, name, _recorded(name, getattr(cls, name), said))
    return cls


def _recorded(
    name: str, work: Callable[..., Awaitable[Any]], said: Callable[[Any], dict[str, spans.Attribute]]
) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(work)
    async def call(called: Memory, /, *given: Any, **options: Any) -> Any:
        if spans.API not in sys.modules:
            return await work(called, *given, **options)
        with spans.span(f"ricordo.{name}") as current:
            answer = await work(called, *given, **options)
            current.set_attributes(said(answer))
            return answer

    return call


def _in_spaces(cls: T) -> T:
    """Make the methods that work on a complete chat check the caller's role in it."""
    for name, action in IN_A_SPACE.items():
        setattr(cls, name, _with_role(getattr(cls, name), action))
    return cls


def _with_role(work: Callable[..., Awaitable[Any]], action: SpaceAction) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(work)
    async def call(called: Memory, /, *given: Any, **options: Any) -> Any:
        if called.scope.chat is not None:
            await called._check_role(action)
        return await work(called, *given, **options)

    return call


_HERE: Mapping[MemberRole, str] = {"reader": "a reader", "writer": "a writer", "keeper": "a keeper"}


@_spanned
@governed(lambda memory: memory._holder)
@_in_spaces
class Memory:
    """A long-term memory. Open it with `async with Memory.open(path) as memory`, or `memory = await Memory.open(path)`.

    Every method may raise `UnavailableError` (the store is closing, or another process locks it for too long),
    `StoreError` (damaged, disk full), and `DeniedError` (the caller lacks the right, see `ricordo.rights`). Docstrings
    list all other errors. Cancelling an awaited write stops the waiting, not the write.
    """

    def __init__(self, start: Callable[[], object], scope: Scope) -> None:
        self._start = start
        self._scope = scope
        self._engine: Engine | None = None
        self._owns_engine = True
        self._notes: Notes | None = None

    @classmethod
    def open(
        cls,
        location: str | Path,
        *,
        embedder: str | Embedder | None = "default",
        model: str | LanguageModel | None = None,
        reranker: str | Reranker | None = None,
        settings: Settings | None = None,
        scope: Scope = Scope(owner="me"),
        clock: Clock | None = None,
        progress: Progress | None = None,
        key: str | None = None,
    ) -> Memory:
        """Open the store at a path; create it if it does not exist.

        Args:
            location: the path of a file; the path of a folder (which exists or ends in a slash) for a store of plain
                text files; or ":memory:" for a store that is deleted when it is closed.
            embedder: "default" (English and other languages), "minilm", "multilingual", "openai:MODEL", "ollama:MODEL",
                "http://.../v1#MODEL", any object of the `Embedder` protocol, or None for full text only. If it differs
                from the one the store was last opened with, all memories are embedded again in the background while the
                store continues to answer. "stored" means the last one.
            model: the language model that turns conversations into knowledge: "openai:MODEL", "anthropic:MODEL",
                "ollama:MODEL", "http://.../v1#MODEL", "file:PATH.gguf", any object of the `LanguageModel` protocol, or
                None. It also answers in `ask`, and rates hits if it is the reranker; no other method waits for it.
            reranker: rates the best memories of each search: "cohere:MODEL", "jina:MODEL", "http://.../v1#MODEL" or
                "http://..." for a server with a /rerank route, "cross-encoder:MODEL", "llm" for the language model
                (only in searches with `rerank=True`), or any object of the `Reranker` protocol. None means the setting
                `reranker`, which is none by default.
            settings: how the store is used.
            scope: the caller, who owns this memory.
            clock: the source of "now", for tests: an object of the `Clock` protocol. Its method `now()` takes no
                argument and returns an `int`, Unix time in milliseconds, UTC: `int(moment.timestamp() * 1000)` for an
                aware `datetime`. None means the system clock.
            progress: called with (lines read, lines in total) while the index of a folder is rebuilt.
            key: opens an encrypted store, or encrypts a new one: "file:PATH", "keyring:NAME", "env:NAME", or the key
                itself. None means the setting `key`, which is none by default.

        Raises:
            InvalidError: an argument is invalid, or a key is given and the store is not encrypted.
            DeniedError: the store is encrypted, and the key is missing or wrong.
            StoreError: the file belongs to another program, is newer than this code, damaged, or unreachable.
        """

        async def start() -> Engine:
            return await Engine.open(
                location,
                embedder=embedder,
                language=model,
                reranker=reranker,
                settings=settings or Settings(),
                clock=clock,
                progress=progress,
                key=key,
            )

        return cls(start, _checked(scope))

    def scoped(self, scope: Scope) -> Memory:
        """Return the store for another caller with at most this one's trust. Closing the result closes nothing.

        Raises:
            InvalidError: the scope is invalid.
            DeniedError: the scope belongs to others, and this memory did not open the store itself.
        """
        other = Memory(self._start, narrowed(_checked(scope), own=self._scope, holder=self._holder))
        other._engine = self._engine
        other._owns_engine = False
        other._notes = self._notes
        return other

    async def close(self) -> None:
        """Write pending data and close the store. Closing twice is allowed; any event loop may close it."""
        if self._notes is not None and self._owns_engine:
            await self._notes.close()
        engine, self._engine = self._engine, None
        if engine is not None and self._owns_engine:
            await engine.close()

    async def __aenter__(self) -> Memory:
        if self._engine is None:
            self._engine = await self._start()  # type: ignore[misc]
            await self._open_notes()
            if self._engine.settings.auto_gc:
                await self._collect_at_opening()
        return self

    async def _open_notes(self) -> None:
        """Synchronise the notes of a folder store, if it has any and they belong to this owner."""
        store = self._opened.store
        folder = Path(store.path).parent / "notes"
        if not store.has_plain_files or not folder.is_dir():
            return
        if self._opened.key is not None:
            raise InvalidError(
                f"{folder} holds notes, which are plain text, and the store is encrypted",
                hint="move them out of the folder",
            )
        from ricordo.portability.notes import Notes

        notes = Notes(self, folder, stored=self._text)
        if notes.belongs_to(self._scope.owner):
            self._notes = notes
            await notes.start()

    async def _collect_at_opening(self) -> None:
        """Run gc. A failure is ignored, because a store that cannot be written now can still be read."""
        with contextlib.suppress(RicordoError):
            await gc.gc(await self._opened.upkeep(None))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[object, None, Memory]:
        return self.__aenter__().__await__()

    # ---- encoding

    async def add(
        self,
        text: str,
        *,
        role: Role = "user",
        speaker: str | None = None,
        session: str | None = None,
        at: datetime | str | None = None,
        id: str | None = None,
        origin: Origin = "conversation",
        attributes: Json | None = None,
    ) -> str:
        """Record one message; return its id once it is durable. Adding the same id and text again stores nothing new.

        Args:
            at: when it was said; now by default. A time to come is refused.
            id: your own id; a new one by default.

        Raises:
            InvalidError: a field is invalid, or the text contains a credential and the setting `secrets` is "refuse".
            ConflictError: `id` belongs to a message with another text.
        """
        message = Message(
            text=text, role=role, speaker=speaker, session=session, at=at, id=id, origin=origin, attributes=attributes
        )
        return (await self.add_many([message]))[0]

    def add_nowait(
        self,
        text: str,
        *,
        role: Role = "user",
        speaker: str | None = None,
        session: str | None = None,
        at: datetime | str | None = None,
        id: str | None = None,
        origin: Origin = "conversation",
        attributes: Json | None = None,
    ) -> str:
        """Record one message without waiting; return its id. The message is durable soon, at the latest after `close`.

        Raises:
            InvalidError: a field is invalid.
            UnavailableError: too many writes are waiting.
        """
        message = Message(
            text=text, role=role, speaker=speaker, session=session, at=at, id=id, origin=origin, attributes=attributes
        )
        engine, scope = self._opened, self._scope
        rules = engine.rules
        if id is not None:
            stored_id(id, rules=rules)
        (node,) = self._episodes([message], rules=rules.at_once)

        def decide(tx: Snapshot) -> tuple[Change, None]:
            whole = episodes.redacted(node, rules)
            return episodes.ingest(tx, [whole], claimed=_claimed([message]), scope=scope), None

        engine.store.seen_by(scope).write_nowait(decide, scope=scope, reason=self._reason("add"), at=node.created_at)
        engine.backlog.note(1)
        engine.said(scope, [node.session])
        return node.id

    async def add_many(self, messages: Sequence[Message]) -> list[str]:
        """Record many messages as one commit, all or none; return their ids in order.

        Raises:
            InvalidError: a field of a message is invalid.
            ConflictError: an id belongs to a message with another text.
        """
        _check_all(messages, Message, 'Message(text="...")', name="messages")
        if not messages:
            return []
        engine = self._opened  # kept because closing the memory must not fail a write that is done
        nodes = await asyncio.to_thread(self._episodes, messages) if len(messages) > 50 else self._episodes(messages)
        claimed, scope = _claimed(messages), self._scope
        await self._write("add", lambda tx: (episodes.ingest(tx, nodes, claimed=claimed, scope=scope), None))
        engine.backlog.note(len(nodes))
        engine.said(scope, [each.session for each in nodes])
        with contextlib.suppress(UnavailableError):
            await engine.note_quotes(scope, [each.text for each in messages if each.role == "assistant"])
        return [node.id for node in nodes]

    def _episodes(self, messages: Sequence[Message], *, rules: TextRules | None = None) -> list[Node]:
        engine = self._opened
        now = engine.now()
        rules = engine.rules if rules is None else rules
        if any(isinstance(each.session, str) and each.session.startswith(DOCUMENT) for each in messages):
            raise InvalidError(
                f"session: {DOCUMENT!r} is reserved for the sessions of documents", hint="use `add_document`"
            )
        return [
            episodes.new_episode(message, scope=self._scope, now=now, instant=partial(self._past, now), rules=rules)
            for message in messages
        ]

    def _past(self, now: int, given: datetime | str, name: str) -> int:
        """Return when something was said. A given day or time may be ahead by a day, as clocks and time zones may be.

        Raises:
            InvalidError: it is not a time, or a time to come.
        """
        at = self._opened.instant(given, name)
        is_in_words = isinstance(given, str) and not any(char.isdigit() for char in given)
        if at > now + (0 if is_in_words else DAY_MS):
            raise InvalidError(
                f"{name}: {given} is in the future, and nothing was said then",
                hint=f"leave {name} out for what is said now; name the coming day in the text",
            )
        return at

    async def end_session(self, session: str) -> None:
        """Mark a conversation as finished, so that it is consolidated next. Ending it twice is allowed.

        Raises:
            NotFoundError: there is no such session.
        """
        at, rules = self._at, self._opened.rules
        given = await self._session_meant(session) or session
        await self._write(
            "end session", lambda tx: (episodes.end_session(tx, self._scope, given, at=at, rules=rules), None)
        )

    async def _session_meant(self, session: str | None) -> str | None:
        """Return the id of the session with an id or a title. Raises InvalidError."""
        if session is None:
            return None
        return await self._read(lambda tx: session_meant(tx, self._scope, session))

    async def off_record(self, session: str | None = None) -> None:
        """Store nothing that this owner says until `on_record`: in the scope's chat or, without one, anywhere. Adding
        then returns an unused id, and corrections raise ConflictError.

        What was said in the meantime is not stored later either, such as from the log of a session. What others say in
        a shared chat is theirs.

        Args:
            session: only this session.
        """
        at, rules = self._opened.now(), self._opened.rules
        self._opened.store.check_writable()
        given = await self._session_meant(session)
        await self._store.derive(lambda tx: episodes.go_off_record(tx, self._scope, given, at=at, rules=rules))

    async def on_record(self, session: str | None = None) -> Sequence[Pause]:
        """Undo `off_record` with the same chat and session; return what is still off the record."""
        at, rules = self._opened.now(), self._opened.rules
        self._opened.store.check_writable()
        given = await self._session_meant(session)
        return await self._store.derive(lambda tx: episodes.go_on_record(tx, self._scope, given, at=at, rules=rules))

    async def settle(self, timeout: float | None = None) -> None:
        """Wait until background work is done: embedding, linking and, if enabled, extraction.

        Args:
            timeout: maximum wait in seconds; None waits without a limit.

        Raises:
            UnavailableError: the timeout expired; the work continues.
        """
        if self._notes is not None:
            await self._notes.settle()
        await self._opened.settle(timeout)

    async def warm(self) -> None:
        """Start loading models and vectors, so that the first question is faster. Returns at once."""
        self._opened.warm(self._scope)

    # ---- documents

    async def add_document(
        self,
        path: str | Path | None = None,
        *,
        text: str | None = None,
        id: str | None = None,
        title: str | None = None,
        version: str | None = None,
        format: str | None = None,
        source: str | None = None,
    ) -> DocumentReport:
        """Store a document, passage by passage, each with its page or line. Adding it again replaces the changed
        passages, and keeps the others with their embeddings.

        Documents are trusted as little as tools: their contents do not become knowledge by themselves.

        Args:
            path: a file: PDF and DOCX (these need the extra `documents`), HTML, Markdown, e-mail (.eml, .mbox), source
                code or plain text.
            text: the text of the document, instead of a file.
            id: identifies later versions of the document; by default the name of the file, or the title.
            title: the name shown with passages; by default the document's own, or the name of the file.
            version: your own name for this version.
            format: "pdf", "docx", "html", "markdown", "mail", "code" or "text"; None: by the extension of the name.
            source: where it comes from; by default the name of the file.

        Raises:
            InvalidError: the document cannot be read, is encrypted or too large, or contains no text.
        """
        given = {"title": title, "version": version, "format": format, "source": source}
        return await self._add_document(path, text=text, id=id, given=given)

    async def _add_document(
        self,
        path: str | Path | None,
        *,
        text: str | None = None,
        id: str | None = None,
        given: Mapping[str, str | None] = MappingProxyType({}),
        is_import: bool = False,
        dry_run: bool = False,
    ) -> DocumentReport:
        from ricordo.portability.documents import document_at, read_document

        engine, scope = self._opened, self._scope
        at, now = self._at, engine.now()
        if (path is None) == (text is None):
            raise InvalidError("add_document: give either a path or a text")
        is_watched = ROOT_ENDS in (given.get("source") or "")
        device = (await self.store_view.device_names())[0] if is_watched else None
        if path is not None:
            content, name, changed_at = await asyncio.to_thread(document_at, path)
        else:
            title = short_name(given.get("title"), name="title", rules=engine.rules)
            content, name, changed_at = documents_.encoded(text), title or id or "", at
        chosen = documents_.checked_id(name if id is None else id)

        def prepare() -> documents_.Prepared:
            draft = read_document(content, name=name, id=chosen, changed_at=changed_at, device=device, **given)
            return documents_.prepared(draft if scope.trust == "user" else replace(draft, names={}), made)

        def made(message: Message) -> Node:
            node = episodes.new_episode(message, scope=scope, now=now, instant=engine.instant, rules=engine.rules)
            redacted[node.id] = redactions(message.text, node.content)
            return node

        def decide(tx: Snapshot) -> tuple[Change, DocumentReport]:
            put = documents_.put_mail if is_import and documents_.is_mail(new) else documents_.put
            change, report = put(tx, new, scope=scope, at=at)
            return change, replace(report, redacted=sum(redacted[node.id] for node in change.add))

        redacted = Counter[str]()
        new = await asyncio.to_thread(prepare)
        if dry_run:
            return await self._read(lambda tx: decide(tx)[1])
        report = await self._write("add document", decide)
        engine.backlog.note(report.added + 1)
        return report

    async def documents(self, limit: int = 50, *, as_of: datetime | str | int | None = None) -> Sequence[Document]:
        """Return the stored documents, latest added first, without their passages.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000, or `as_of` is neither a time nor a commit number.
        """
        most, at = checked_limit(limit), self._at
        read = partial(documents_.listed, scope=self._scope, at=at, most=most)
        return self._told("documents", await service.read(self._asking, read, as_of))

    async def document(self, id: str, *, as_of: datetime | str | int | None = None) -> Document:
        """Return a document with its passages in order; with `as_of` (as in `search`), in its state then.

        Raises:
            NotFoundError: there is no document with this id, or there was none then.
            InvalidError: `as_of` is neither a time nor a commit number.
        """
        wanted, at = checked_name(id), self._at
        found = await service.read(self._asking, lambda tx: documents_.read(tx, self._scope, wanted, at=at), as_of)
        return self._told("document", found, document=wanted, as_of=as_of)

    async def remove_document(self, id: str) -> DocumentReport:
        """Archive a document and everything based on it alone, such as facts learnt from it. Adding it again or `undo`
        restores it. `erase(document=...)` deletes it for good.

        Raises:
            NotFoundError: there is no document with this id.
        """
        wanted, at = checked_name(id), self._at
        return await self._write("remove document", lambda tx: documents_.remove(tx, wanted, scope=self._scope, at=at))

    # ---- knowledge

    async def remember(
        self,
        content: str,
        *,
        type: NodeType = "semantic",
        category: Category | None = None,
        about: Sequence[str] = (),
        tags: Sequence[str] = (),
        attributes: Json | None = None,
        expires: datetime | str | None = None,
        confidence: float = 1.0,
        valid_from: datetime | str | None = None,
        session: str | None = None,
        origin: Origin = "user",
        id: str | None = None,
        shared: bool = False,
        keep_secrets: bool = False,
        at: datetime | str | None = None,
    ) -> Node:
        """Store a fact.

        A fact that is already stored word for word is reinforced and returned with its first date, not stored twice;
        `notice` of the returned node says so if `at` is another day. If a new fact gives
        another value for something that has only one ("Anna lives in Rome"), it replaces the old fact about the same
        subjects. If both could be true, both stay, the new one ranks first, and `review` lists the pair. The returned
        node lists the affected older facts in `outdates`.

        Facts from a tool or a web page, and facts that look like an instruction and are not the user's, are
        quarantined: they are returned closed, and are in no answer until they are approved (`review`, `resolve`). Off
        the record nothing is stored, and the returned node has the id "".

        Args:
            category: inferred by rule if None.
            about: names of the people or things it is about, or one name; an unknown name becomes a person.
            expires: a duration ("for 2 weeks"), an end ("until Friday", "до пятницы", a date, a time), or "never". If
                None, the text decides: it may contain the expiry ("Remember for 2 weeks: ..."); a temporary fact is
                kept for 30 days, a fact with a coming date until at least 30 days after it, and any other fact for
                good. The result is in `expires_at` of the returned node.
            confidence: from 0 to 1.
            shared: store it for everyone in this chat instead of for the owner alone.
            keep_secrets: store credentials in it unchanged, whatever the setting `secrets` says, for example a door
                code that the owner wants to keep. It replaces the same fact that was stored without them.
            at: when it happened or was said; relative dates in the text count from this time. None: now.
            valid_from: since when it is true; None: the same as `at`.

        Raises:
            InvalidError: a field is invalid, or there is no chat to share it with.
            DeniedError: `keep_secrets` by a caller without the trust "user".
            ConflictError: `id` is already used.
        """
        fact = Fact(
            content=content,
            type=type,
            category=category,
            about=about,
            tags=tags,
            attributes=attributes,
            expires=expires,
            confidence=confidence,
            valid_from=valid_from,
            session=session,
            origin=origin,
            id=id,
            shared=shared,
            keep_secrets=keep_secrets,
            at=at,
        )
        return (await self.remember_many([fact]))[0]

    async def remember_many(self, facts_: Sequence[Fact]) -> list[Node]:
        """Store several facts as one commit, all or none. Raises the errors of `remember`.

        Of more than 100 facts, `outdates` names those of the same space only.
        """
        _check_all(facts_, Fact, 'Fact(content="...")', name="facts_")
        facts_ = [facts.without_box(fact) for fact in facts_]
        engine = self._opened
        now = engine.now()
        if any(fact.keep_secrets for fact in facts_):
            require("remember.keep_secrets", self._holder)
        nodes = [
            facts.new_fact(
                fact, scope=self._scope, now=now, instant=engine.instant, timing=engine.timed, rules=engine.rules
            )
            for fact in facts_
        ]
        claimed = frozenset(fact.id for fact in facts_ if fact.id is not None)
        secret = tuple(node.id for node, fact in zip(nodes, facts_, strict=True) if fact.keep_secrets)
        twins = {
            node.id: text
            for node, fact in zip(nodes, facts_, strict=True)
            if (text := facts.twin_of(fact, node, rules=engine.rules)) is not None
        }
        held = {node.id: why for node in nodes if (why := self._held_for(node))}
        dated = {node.id for node, fact in zip(nodes, facts_, strict=True) if fact.expires is not None}
        nodes = [reviews.quarantined(node, at=from_ms(now)) if node.id in held else node for node in nodes]

        def decide(tx: Snapshot) -> tuple[Change, list[Node]]:
            learnt = facts.learn(tx, nodes, scope=self._scope, now=now, claimed=bool(claimed))
            arrived = resolve.arrive(
                tx, learnt.change, scope=self._scope, now=now, claimed=claimed, twins=twins, dated=dated
            )
            if held:
                arrived = reviews.with_quarantine_reviews(tx, arrived, nodes, held, claimed=claimed, now=now)
            kept = [arrived.kept.get(node.id, node) for node in learnt.nodes]
            change = replace(learnt.with_people(arrived.change), kept_secrets=secret if arrived.change.add else ())
            told = [resolve.with_outdated(node, arrived.change.reviews) for node in kept]
            return change, self._with_outdated_elsewhere(tx, told, now) if len(told) <= _FEW else told

        kept = await self._write("remember", decide)
        kept = [_with_length(_with_removals(node, fact.content)) for node, fact in zip(kept, facts_, strict=True)]
        kept = [
            _with_known_date(node, given, zone=engine.zone) if fact.at is not None else node
            for node, given, fact in zip(kept, nodes, facts_, strict=True)
        ]
        engine.backlog.note(len(nodes))
        return kept

    def _with_outdated_elsewhere(self, tx: Snapshot, nodes: list[Node], now: int) -> list[Node]:
        """Return new facts with what they may make out of date in this owner's other spaces, or in their own memory."""
        scope = self._scope
        if not scope.owner or scope.is_chat_itself:
            return nodes
        joined = () if all(node.chat for node in nodes) else tx.members.joined(scope.owner)
        named = [name for name in joined if scope.spaces is None or name in scope.spaces]
        shared = list(dict.fromkeys((*named, *filter(None, [scope.chat]))))
        return [
            resolve.with_outdated_elsewhere(tx, node, scope=scope, spaces=[""] if node.chat else shared, now=now)
            for node in nodes
        ]

    async def correct(
        self,
        id: str,
        content: str,
        *,
        at: datetime | str | None = None,
        origin: Origin = "user",
        evidence: Sequence[str] = (),
    ) -> Node:
        """Replace a memory by a correction. The new version keeps the category, tags and subjects of the old one, but
        "My boss is Ana" is not about the former boss. The old version is archived, and a `supersedes` edge leads to it.

        Args:
            at: since when the new version is true, if the old one was true until then. The day on which the old one
                became true will do: "today". A time before the old version was told will do if no time was given with
                it; it is then taken to be true from just before `at`. None: the old version was never right, and the
                new one keeps its date.
            evidence: ids of memories that support the correction.

        Raises:
            InvalidError: the content is invalid, or unchanged; `at` is in the future or before the old version was
                true, or is given for a message.
            NotFoundError: there is no memory with this id.
            ConflictError: the memory is closed; if a newer version replaced it, the hint names that version.
            DeniedError: the correction comes from a tool or a page, or looks like an instruction and is not the user's.
        """
        text = self._text(content)
        since = None if at is None else from_ms(self._opened.instant(at, "at"))
        check_choice(origin, facts.ORIGINS, name="origin")
        said = capped(origin, "user", caller=self._scope.trust)
        reviews.check_words(text, tier=trust_of(said, "user"))
        if self._scope.propose:
            given = {"content": text, "evidence": list(evidence)} | ({} if since is None else {"at": since.isoformat()})
            return await self._propose("correct", id, text=text, origin=said, **given)

        def decide(tx: Snapshot) -> tuple[Change, Node]:
            return self._corrected(tx, self._living(tx, id), text, origin=said, evidence=evidence, since=since)

        return _with_removals(await self._noted("correct", decide), content)

    def _corrected(
        self,
        tx: Snapshot,
        old: Node,
        text: str,
        *,
        origin: Origin,
        evidence: Sequence[str],
        at: datetime | None = None,
        since: datetime | None = None,
    ) -> tuple[Change, Node]:
        shown = [evolution.evidence_for(old, tx.nodes.known(self._scope, each)).id for each in evidence]
        now = self._opened.now()
        change = evolution.correct(
            old,
            text,
            about=entities.subjects_of_correction(tx, self._scope, old, text),
            at=at or from_ms(now),
            new_id=new_id(now),
            origin=origin,
            evidence=shown,
            zone=self._opened.zone,
            since=since,
        )
        change, new = entities.with_people_of_correction(tx, change, old=old)
        return reviews.with_doubts(tx, change, old, new, now=now), new

    async def update(
        self,
        id: str,
        *,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        about: str | Sequence[str] = (),
        attributes: Json | None = None,
        expires: datetime | str | None = None,
        at: datetime | str | None = None,
        done: bool | None = None,
        shared: bool | None = None,
    ) -> Node:
        """Change a memory in place. Given fields replace the old values, which `history` keeps.

        Args:
            about: more people and things that it is about; the others stay.
            expires: as in `remember`; "never" removes the expiry.
            shared: True shares a private fact with everyone in this chat; False makes a shared fact that this owner
                wrote private again. Both move it: the returned memory is a copy with a new id, and the old one is
                archived. A shared copy has nothing that tells of its source.
            at: when it happened or was said, if the stored date is wrong. A fact that was valid from that date on is
                valid from the new one; dates in its text, and an expiry that follows from them, count from it.
            done: whether a task is done. Questions for tasks find the open ones.

        Raises:
            InvalidError: no field is given, a field is invalid, `expires` is in the past, `done` is given for something
                else than a task, or `shared` together with another field, without a chat, or for a message.
            NotFoundError: there is no memory with this id.
            ConflictError: the memory is closed, or `shared` is given while nothing is recorded.
            DeniedError: `shared` by a caller without the trust "user", or to make private what others wrote.
        """
        if shared is not None:
            require("update.shared", self._holder)
            if any(each is not None for each in (content, tags, attributes, expires, at, done)) or about:
                raise InvalidError(
                    "shared: it cannot be given together with other fields",
                    hint="change the returned memory afterwards",
                )
            return await (self._shared(id) if shared else self._made_private(id))
        text = None if content is None else self._text(content)
        reviews.check_words(text, tags, attributes, tier=self._scope.trust)
        labels = None if tags is None else checked_tags(tags, rules=self._opened.rules)
        names = entities.checked_names(about, rules=self._opened.rules)
        values = None if attributes is None else checked_attributes(attributes, rules=self._opened.rules)
        engine = self._opened
        until = evolution.UNCHANGED if expires is None else evolution.Expiry(engine.expiry(expires))
        moment = None if at is None else from_ms(engine.instant(at, "at"))
        if self._scope.propose:
            given: dict[str, object] = {
                "content": text,
                "tags": None if labels is None else list(labels),
                "attributes": values,
            }
            if until is not evolution.UNCHANGED:
                given["expires"] = None if until.at is None else until.at.isoformat()
            if moment is not None:
                given["at"] = moment.isoformat()
            if done is not None:
                given["done"] = done
            if names:
                given["about"] = list(names)
            said = capped("user", "user", caller=self._scope.trust)
            return await self._propose("update", id, text=text or "", origin=said, **given)

        def decide(tx: Snapshot) -> tuple[Change, Node]:
            node = self._living(tx, id)
            more = facts.subjects_named(names, self._scope, content=text or node.content, is_personal=not node.chat)
            linked, node = entities.with_more_subjects(tx, node, more, now=engine.now())
            if names and all(each is None for each in (text, labels, values, expires, at, done)):
                return linked, node
            change, node = evolution.update(
                node,
                content=text,
                tags=labels,
                attributes=values,
                expiry=until,
                happened=moment,
                done=done,
                caller=self._scope.trust,
                at=self._at,
                zone=engine.zone,
            )
            return change.joined(linked), node

        return _with_removals(await self._noted("update", decide), content or "")

    async def confirm(self, id: str) -> Node:
        """Confirm a memory: it becomes certain and does not fade. Raises the errors of `reinforce`."""
        at, zone = self._at, self._opened.zone
        return await self._write("confirm", lambda tx: evolution.confirm(self._living(tx, id), at=at, zone=zone))

    async def reinforce(self, id: str) -> Node:
        """Mark a memory as useful: its score rises (by 3, a setting; at most to 10) and its age counts from now.

        Memories reinforced within the same minute are associated: later, one helps to find the other.

        Raises:
            NotFoundError: there is no memory with this id.
            ConflictError: the memory is closed.
        """
        amount, at = self._opened.settings.reinforce_amount, self._opened.now()

        def decide(tx: Snapshot) -> tuple[Change, Node]:
            node = self._living(tx, id)
            together = tx.graph.reinforced_with(node.owner, node.chat, node.id, at=at)
            return evolution.reinforce(node, amount, at=from_ms(at), zone=self._opened.zone, together=together)

        return await self._write("reinforce", decide)

    async def demote(self, id: str) -> Node:
        """Mark a memory as not useful: its score falls (by 1, a setting; at most to -10). It is not deleted.

        Raises the errors of `reinforce`.
        """
        amount = self._opened.settings.demote_amount
        return await self._write("demote", lambda tx: evolution.demote(self._living(tx, id), amount))

    async def review(self, limit: int = 50, *, kind: ReviewKind | None = None) -> Sequence[Review]:
        """Return the open reviews, latest first within each kind: first conversations that could not be consolidated,
        then facts that may conflict, people or things that are probably one, quarantined items, facts that are probably
        both true, and replacements by rules.

        Args:
            kind: only reviews of this kind, for example "quarantine".

        Raises:
            InvalidError: `limit` is not from 1 to 1,000, or there is no such kind.
        """
        most, now = checked_limit(limit), self._opened.now()
        reviews.check_kind(kind)

        def ask_store(tx: Snapshot) -> Sequence[Review]:
            found = reviews.failed_conversations(tx, self._scope) if kind in (None, "session") else []
            stored = tx.reviews.listed(self._scope, most=most, kind=kind)
            found += [proposals.as_shown(tx, self._scope, each, self._carry_out) for each in stored]
            found += duplicates.proposed_merges(tx, self._scope, now=now) if kind in (None, "merge") else []
            return sorted(found, key=reviews.urgency)[:most]

        return self._told("review", await self._read(ask_store), kind=kind)

    async def resolve(self, item: Review | str, *, decision: Decision, content: str | None = None) -> Review:
        """Decide on an item of `review`. Return it with both facts as the decision left them, with the number of the
        commit, for `undo`, and with the other reviews that are settled or opened by it.

        Args:
            item: the review, or its id.
            decision: for two facts, "replace" closes the older one, "keep old" the newer one, and "keep both" leaves
                both live and ranked independently. A fact that a rule had closed is reopened unless the decision is
                "replace". For a quarantined memory, "approve" admits it to answers with its own trust, and "refuse"
                rejects it now and whenever it is stated again; a proposed change is carried out, or not. For a
                conversation, "approve" retries it in the next run. "approve" merges two entities that are probably
                one, and "refuse" records that they are two: the merge is not proposed again.
            content: your words, to replace the approved text.

        Raises:
            InvalidError: there is no such decision, or it does not apply to this item.
            NotFoundError: there is no review with this id.
            ConflictError: it is already decided, or its memory is gone.
            DeniedError: only a caller with the trust "user" may decide on quarantined memories.
        """
        chosen, now = reviews.checked_decision(decision), self._opened.now()
        wanted = item.id if isinstance(item, Review) else item
        words = None if content is None else self._text(content)

        def decide(tx: Snapshot) -> tuple[Change, Review]:
            if isinstance(wanted, str) and wanted.startswith(reviews.SESSION):
                return reviews.try_again(tx, self._scope, wanted, chosen)
            if isinstance(wanted, str) and wanted.startswith(MERGE):
                return duplicates.decide_merge(tx, self._scope, wanted, chosen, now=now)
            review = reviews.find_review(tx, self._scope, wanted)
            if review.kind != "quarantine":
                if words is not None:
                    raise InvalidError("content: can be edited only for a memory in quarantine", hint="leave it out")
                change, decided = reviews.resolve(tx, review, chosen, now=now)
                if chosen == "replace" and review.older is not None:
                    change = facts.with_confirmed_relations(tx, change, review.newer, closed=review.older.id, now=now)
                return change, decided
            change, (decided,) = self._decided(tx, [review], chosen, content=words)
            return change, decided

        def numbered(tx: Snapshot) -> tuple[Change, Review]:
            change, decided = decide(tx)
            change, (decided,) = reviews.with_commit(tx, change, [decided])
            return change, decided

        return await self._noted("resolve", numbered)

    async def resolve_many(
        self, items: Sequence[Review | str] | None = None, *, decision: Decision, of_trust: Trust | None = None
    ) -> Sequence[Review]:
        """Approve or refuse many quarantined items as one commit, all or none.

        Args:
            items: reviews, or their ids; None for all quarantined items, except proposals whose memory is gone, and
                except the later ones of several proposals about the same memory.
            decision: "approve" or "refuse".
            of_trust: only items with this trust, for example "user" to exclude those from tools.

        Raises:
            InvalidError: there is no such decision or trust, a review is about two facts, or two of several proposals
                concern the same memory.
            NotFoundError: there is no review with one of the ids.
            ConflictError: an item is already decided, or the memory that it would change is gone.
            DeniedError: only a caller with the trust "user" may decide on quarantined memories.
        """
        chosen = reviews.checked_decision(decision)
        if of_trust is not None:
            check_choice(of_trust, get_args(Trust), name="of_trust")
        ids = None if items is None else [each.id if isinstance(each, Review) else each for each in items]

        def decide(tx: Snapshot) -> tuple[Change, Sequence[Review]]:
            if ids is None:
                held = reversed(tx.reviews.listed(self._scope, most=reviews.MOST_HELD, kind="quarantine"))
                found = proposals.possible(tx, held, self._carry_out) if chosen == "approve" else list(held)
            else:
                found = [reviews.find_review(tx, self._scope, each) for each in dict.fromkeys(ids)]
            if pairs := [each.id for each in found if each.kind != "quarantine"]:
                raise InvalidError(
                    f"items: {pairs[0]} is not a memory in quarantine", hint="decide on this review with `resolve`"
                )
            wanted = [each for each in found if of_trust in (None, trust_of(each.newer.origin, each.newer.role))]
            return reviews.with_commit(tx, *self._decided(tx, wanted, chosen))

        decided = await self._write("resolve", decide)
        self._opened.backlog.note(len(decided))
        return decided

    async def staged(self, limit: int = 1_000) -> Sequence[Review]:
        """Return the proposals that wait for a decision, latest first: what callers with `Scope(propose=True)` wrote.
        `older` is the memory that a proposal would change, `newer` the memory after it, `changes` the differences, and
        `by` who proposed it.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000.
        """
        most = checked_limit(limit)

        def ask_store(tx: Snapshot) -> Sequence[Review]:
            held = tx.reviews.listed(self._scope, most=reviews.MOST_HELD, kind="quarantine")
            found = [each for each in held if each.reasons[:1] == (PROPOSED,)][:most]
            return [proposals.as_shown(tx, self._scope, each, self._carry_out) for each in found]

        return self._told("staged", await self._read(ask_store))

    async def approve(self, ids: str | Review | Sequence[str | Review]) -> Sequence[Review]:
        """Approve one proposal or several as one commit, all or none, each with the trust of the caller that made it.

        Args:
            ids: ids of `staged`, of other quarantined items of `review`, or of the memories they hold; or the items
                themselves.

        Raises the errors of `resolve_many`.
        """
        return await self.resolve_many(_several(ids), decision="approve")

    async def refuse(self, ids: str | Review | Sequence[str | Review]) -> Sequence[Review]:
        """Refuse one proposal or several as one commit, all or none. A refused fact stays out if it is stated again.

        Args:
            ids: as in `approve`.

        Raises the errors of `resolve_many`.
        """
        return await self.resolve_many(_several(ids), decision="refuse")

    def _decided(
        self, tx: Snapshot, asked: Sequence[Review], decision: Decision, *, content: str | None = None
    ) -> tuple[Change, list[Review]]:
        now = self._opened.now()
        return reviews.decide(
            tx,
            asked,
            decision,
            caller=self._scope.trust,
            now=now,
            learn=partial(facts.subjects_change, now=now),
            carry_out=self._carry_out,
            content=content,
        )

    async def forget(self, id: str, reason: str | None = None) -> Node:
        """Remove a memory from all answers, with its source sentences and the conclusions from it, and archive it. It
        is not learnt from these sentences again. `restore` brings it back, and so does stating it again. A version that
        was replaced is no longer quoted beside the newer one. A document is removed as by `remove_document`. Return the
        archived memory or, for a document, its title; its `notice` names facts that say the same, and older ones that
        it may have made outdated, which are found again.

        Args:
            id: of a memory or a document.

        Raises:
            NotFoundError: there is no memory and no document with this id.
            ConflictError: it waits in quarantine, which `resolve` decides.
        """
        if self._scope.propose:
            self._reason("forget", reason)
            said = capped("user", "user", caller=self._scope.trust)
            return await self._propose("forget", id, text=reason or "", origin=said)

        def decide(tx: Snapshot) -> tuple[Change, Node]:
            document = (
                id if tx.nodes.get(self._scope, id) else documents_.document_meant(tx, self._scope, id, at=self._at)
            )
            if document != id or documents_.stored(tx, self._scope, document, at=self._at):
                pages = documents_.stored(tx, self._scope, document, at=self._at)
                node = documents_.title_page_in(pages, document)
                change, _ = documents_.remove(tx, f"{DOCUMENT}{document}", scope=self._scope, at=self._at)
            else:
                node = tx.nodes.known(self._scope, id)
                change = self._forgotten(tx, node)
                same = resolve.saying_the_same(tx, node, now=self._opened.now()) if node.is_live else ()
                node = forget.with_older(tx, self._scope, node, same=same)
            return change, forget.closed(node, change)

        return await self._write("forget", decide, said=reason)

    def _forgotten(self, tx: Snapshot, node: Node) -> Change:
        at = self._at
        return forget.with_conclusions(tx, self._scope, [node], forget.forget(node, at=at), at=at)

    async def forget_where(
        self,
        *,
        type: str | None = None,
        category: Category | Sequence[Category] | None = None,
        entity: str | None = None,
        tag: str | Sequence[str] | None = None,
        where: Json | None = None,
        session: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        everything: bool = False,
        protected: bool = False,
        expect: int | None = None,
        reason: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> BulkReport:
        """Forget every memory that `list` returns under the same conditions, and the facts that were replaced under
        them, which answers quote, as one commit that `undo` reverses.

        Args:
            type, category, entity, tag, where, session, after, before: as in `list`.
            everything: required if there is no condition.
            protected: also forget memories about protected people and things.
            expect: the number of memories that must be forgotten, from the dry run; if it differs, nothing changes.
            reason: why; kept in the log.
            dry_run: report what would be forgotten, and forget nothing.
            progress: called with (memories so far, memories in total).

        Raises:
            InvalidError: an argument is invalid, there is neither a condition nor `everything`, or more than 100,000
                memories match.
            NotFoundError: no entity has the name given as `entity`.
            ConflictError: the number differs from `expect`.
        """
        scope, now = self._scope, self._opened.now()
        request = Request(
            type=type,
            category=category,
            entity=entity,
            tag=tag,
            where=where,
            session=session,
            after=after,
            before=before,
        )
        work = partial(bulk.forgotten, scope=scope, now=now, protected=protected)
        chosen = bulk.selection(
            self._asking,
            request,
            everything=everything,
            expect=expect,
            progress=self._on_loop(progress),
            with_replaced=True,
        )
        return await self._in_bulk("forget", chosen, work, dry_run=dry_run, said=reason)

    async def update_where(
        self,
        *,
        type: str | None = None,
        category: Category | Sequence[Category] | None = None,
        entity: str | None = None,
        tag: str | Sequence[str] | None = None,
        where: Json | None = None,
        session: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        everything: bool = False,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        set_attributes: Json | None = None,
        remove_attributes: Sequence[str] = (),
        expires: datetime | str | None = None,
        expect: int | None = None,
        reason: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> BulkReport:
        """Change the tags, attributes or expiry of every memory that `list` returns under the same conditions, as one
        commit that `undo` reverses.

        Args:
            add_tags, remove_tags: all other tags stay.
            set_attributes, remove_attributes: all other attributes stay.
            expires: as in `update`.
            type, category, entity, tag, where, session, after, before, everything, expect, reason, dry_run, progress:
            as in `forget_where`.

        Raises:
            InvalidError: no change is given, or as in `forget_where`.
            NotFoundError, ConflictError: as in `forget_where`.
        """
        engine, at = self._opened, self._at
        reviews.check_words(add_tags, set_attributes, tier=self._scope.trust)
        change = bulk.alteration(
            add_tags=add_tags,
            remove_tags=remove_tags,
            set_attributes=set_attributes,
            remove_attributes=remove_attributes,
            expiry=evolution.UNCHANGED if expires is None else evolution.Expiry(engine.expiry(expires)),
            rules=engine.rules,
        )
        request = Request(
            type=type,
            category=category,
            entity=entity,
            tag=tag,
            where=where,
            session=session,
            after=after,
            before=before,
        )
        update = partial(evolution.update, at=at, zone=engine.zone, caller=self._scope.trust)
        work = partial(bulk.updated, change=change, update=update)
        chosen = bulk.selection(
            self._asking, request, everything=everything, expect=expect, progress=self._on_loop(progress)
        )
        return await self._in_bulk("update", chosen, work, dry_run=dry_run, said=reason)

    async def _in_bulk(
        self, verb: str, chosen: bulk.Selection, work: bulk.Work, *, dry_run: bool, said: str | None
    ) -> BulkReport:
        if dry_run:
            _, report = await self._read(lambda tx: chosen.changed(tx, work))
            return self._told(f"{verb}_where", replace(report, dry_run=True))

        def decide(tx: Snapshot) -> tuple[Change, BulkReport]:
            change, report = chosen.changed(tx, work)
            return change, replace(report, commit=None if change.is_empty else tx.history.next_commit())

        report = await self._write(verb, decide, said=said)
        self._opened.backlog.note(report.count)
        return self._told(f"{verb}_where", report)

    def _on_loop(self, progress: Progress | None) -> Progress | None:
        """Return a progress function that can be called from the writer's thread."""
        if progress is None:
            return None
        loop = asyncio.get_running_loop()

        def tell(done: int, total: int) -> None:
            loop.call_soon_threadsafe(progress, done, total)

        return tell

    async def restore(self, id: str) -> Node:
        """Restore a forgotten or archived memory, and remove a past expiry. After upkeep, its age counts from now. A
        version that was forgotten after it had been replaced goes back to the archive as replaced. If a live fact says
        the same, that one is kept and returned, as if this were said again.

        Raises:
            NotFoundError: there is no memory with this id.
            ConflictError: a newer version replaced it.
        """
        at, scope, now = self._at, self._scope, self._opened.now()

        def decide(tx: Snapshot) -> tuple[Change, Node]:
            change, node = forget.restore(tx, tx.nodes.known(scope, id), at=at)
            if change.is_empty or not node.is_live:
                return change, node
            if (instead := resolve.restored(tx, node, now=now)) is not None:
                return instead
            learnt = entities.with_people(tx, Change(add=(node,)), scope=scope, heard={})
            return replace(learnt, add=(), put=change.put), node

        return await self._noted("restore", decide)

    async def erase(
        self,
        *,
        id: str | None = None,
        session: str | None = None,
        document: str | None = None,
        entity: str | None = None,
        where: Json | None = None,
        writer: str | None = None,
        owner: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ErasureReport:
        """Delete data for good: the rows, their history, everything derived from them alone, and every byte of them in
        the store's files. This cannot be undone. Return what was erased, what was kept and why, and where copies may
        remain.

        Args:
            id: a memory, with the older versions it replaced.
            session: a conversation, with everything said and learnt in it.
            document: a document in all its versions, with everything learnt from it: by its id, its title or the path
                that its file in a watched folder has now.
            entity: a person or thing by name or id, with every memory that is about it or names it.
            where: all memories with these attributes, as in `list`, also forgotten and replaced ones.
            writer: all that somebody wrote in the chat or space of the scope, and what was learnt from it alone.
            owner: the caller's complete memory; only the caller's own name is accepted.
            dry_run: report what would be erased, and erase nothing.
            progress: called with (rows so far, rows in total).

        Raises:
            InvalidError: not exactly one target is given, or the scope has no chat for `writer`.
            NotFoundError: the target does not exist.
            DeniedError: `owner` is not the caller.
        """
        engine = self._opened
        if where is not None:
            where = bulk.checked_conditions(self._asking, where)
        asked = erasure.Asked(
            id=id, session=session, document=document, entity=entity, where=where, writer=writer, owner=owner
        )
        if not dry_run:
            engine.store.check_writable()
            await engine.receipts.flush()
        report = await erasure.erase(
            self._store,
            asked,
            scope=self._here,
            now=engine.now(),
            link=link_waiting,
            document_meant=partial(documents_.document_meant, at=self._at, archived=True),
            dry_run=dry_run,
            progress=progress,
        )
        if self._notes is None:
            return report
        failed = "" if dry_run else await self._notes.after_erasure()
        kept = (f"what {failed}",) if failed else ()
        left = (*report.out_of_reach, *kept, "what stands in notes beside the facts")
        return replace(report, out_of_reach=left, is_done=report.is_done and not failed)

    async def add_entity(
        self,
        name: str,
        *,
        type: EntityType = "person",
        aliases: Sequence[str] = (),
        relation: str | None = None,
        protected: bool = False,
    ) -> Entity:
        """Add a person, project, place or other thing, so that memories that name it are linked to it.

        A known entity gets the new names and the relation, and also the type if its type was guessed.

        Raises:
            InvalidError: a field is invalid.
            ConflictError: an entity with this name and type exists, and no other field is given.
        """
        now = self._opened.now()
        reviews.check_words(name, aliases, relation, tier=self._scope.trust)
        entities.check_is_no_owner(name, self._scope)
        entity = entities.new_entity(
            name, scope=self._scope, now=now, type=type, aliases=aliases, protected=protected, rules=self._opened.rules
        )
        return await self._noted(
            "add entity", lambda tx: entities.add_entity(tx, entity, relation=relation, scope=self._scope, now=now)
        )

    async def relate(
        self,
        target: str,
        predicate: str,
        *,
        source: str | None = None,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        evidence: Sequence[str] = (),
    ) -> None:
        """State the relation of an entity to the owner or, with `source`, to another entity: `relate("Acme",
        "employer", source="Sarah")`.

        Relations such as wife or boss have one holder at a time: a new one ends the relation to the previous one.
        Stating a known relation again adds the given fields to it: `valid_until` ends it.

        Args:
            predicate: the relation of `target` to `source`; "wife" and "жена" are the same.
            source: the entity whose wife, employer, ... it is; None: the owner.
            valid_from: the start of the relation; None: unknown.
            valid_until: the end of the relation; None: it continues.
            evidence: ids of memories that state the relation.

        Raises:
            NotFoundError: no entity has one of the names, or there is no such memory.
            InvalidError: an argument is invalid, or the relation would end before it begins.
        """
        engine = self._opened
        reviews.check_words(target, predicate, source, tier=self._scope.trust)
        start = None if valid_from is None else from_ms(engine.instant(valid_from, "valid_from"))
        end = None if valid_until is None else from_ms(engine.instant(valid_until, "valid_until"))
        now, scope = engine.now(), self._scope
        await self._noted(
            "relate",
            lambda tx: entities.add_relation(
                tx, source, predicate, target, scope=scope, now=now, start=start, end=end, evidence=evidence
            ),
        )

    async def update_entity(
        self,
        entity: str,
        *,
        type: EntityType | None = None,
        aliases: Sequence[str] = (),
        attributes: Json | None = None,
        protected: bool | None = None,
    ) -> Entity:
        """Change the data of a person, project, place or other thing.

        Args:
            entity: a name or an id.
            type: the new type.
            aliases: further names; `split` removes a name.
            attributes: the new attributes, instead of the old ones.
            protected: whether knowledge about it never fades.

        Raises:
            NotFoundError: no entity has this name.
            InvalidError: no change is given, a field is invalid, or several entities have the name.
        """
        engine = self._opened
        reviews.check_words(aliases, attributes, tier=self._scope.trust)
        if type is not None:
            check_choice(type, get_args(EntityType), name="type")
        names = entities.checked_names(aliases, rules=engine.rules)
        values = None if attributes is None else checked_attributes(attributes, rules=engine.rules)
        now = engine.now()
        return await self._noted(
            "update entity",
            lambda tx: entities.update_entity(
                tx, entity, scope=self._scope, now=now, type=type, aliases=names, attributes=values, protected=protected
            ),
        )

    async def merge(self, keep: str, other: str) -> Entity:
        """Merge two entities: the names, memories and relations of `other` become those of `keep`.

        Args:
            keep: a name or an id; the merged entity has its name.
            other: a name or an id. `split`, or undoing the commit, separates them again.

        Raises:
            NotFoundError: one of them does not exist.
            ConflictError: they are already merged, or belong to different owners.
        """
        now = self._opened.now()
        return await self._write("merge", lambda tx: entity_merge.merge(tx, keep, other, scope=self._scope, now=now))

    async def split(self, entity: str, names: Sequence[str]) -> tuple[Entity, Entity]:
        """Split an entity in two: `names` and the memories that used them move to the second one. Return both.

        Args:
            entity: a name or an id.
            names: the names to move. If an entity had these names before it was merged, that entity is restored;
                otherwise a new one is created.

        Raises:
            NotFoundError: the entity does not exist, or does not have such a name.
            InvalidError: no name is given, or no name would be left.
        """
        engine = self._opened
        now = engine.now()
        parted = await self._write(
            "split", lambda tx: entity_merge.split(tx, entity, names, scope=self._scope, now=now)
        )
        await self._store.derive(lambda tx: entity_merge.move_mentions(tx, parted))
        engine.backlog.note(1)
        return parted.kept, parted.other

    # ---- retrieval

    async def search(
        self,
        text: str,
        *,
        type: str | None = None,
        category: Category | Sequence[Category] | None = None,
        entity: str | None = None,
        tag: str | Sequence[str] | None = None,
        where: Json | None = None,
        session: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        as_of: datetime | str | int | None = None,
        archived: bool = False,
        only_relevant: bool = False,
        judge: Judging = False,
        limit: int = 10,
        trace: bool = False,
        why_not: str | None = None,
        rerank: bool | None = None,
        receipt: bool | None = None,
    ) -> Results:
        """Return the memories that answer a question, best first: knowledge, and episodes not yet consolidated.

        Args:
            type: "episodic" for all episodes, "semantic", "procedural" or "opinion" for that kind of knowledge, "any"
                for everything.
            where: conditions on attributes: values, such as {"kind": "note"}; comparisons, such as {"price": {"ge": 10,
                "lt": 20}}, with eq, ne, lt, le, gt, ge, in, contains and exists; and lists of such conditions under
                "and" and "or", or one condition under "not".
            after, before: a time, or an expression such as "last_week" or "3 days ago"; `before` is exclusive.
            as_of: search the state of the memory at a time, or right after the commit with this number; ranking uses
                today's statistics. If a clock went back, the later of two moments counts.
            archived: search forgotten and replaced memories instead.
            only_relevant: return only hits above the relevance floor; `limit` is then an upper bound, and there may be
                no hit at all.
            judge: return all hits, and say of each whether it is above the relevance floor (`hit.is_relevant`). The
                first search of a store measures the floor, which can take half a second; with "if_known" it does not
                wait, and hits are unmarked until then.
            trace: explain the ranking.
            why_not: the id of a memory you expected; `results.trace.absence` says why it is missing.
            rerank: whether to use the reranker; by default if there is one and it is not a language model.
            receipt: whether to leave a receipt, whose id is `results.receipt.id`; by default according to the setting.

        Raises:
            InvalidError: an argument is invalid, or `rerank` is true and there is no reranker.
            NotFoundError: no entity has the name given as `entity`.
        """
        request = Request(
            text=text,
            type=type,
            category=category,
            entity=entity,
            tag=tag,
            where=where,
            session=session,
            after=after,
            before=before,
            as_of=as_of,
            archived=archived,
            only_relevant=only_relevant,
            judge=judge,
            limit=limit,
            trace=trace or why_not is not None,
            why_not=why_not,
            rerank=rerank,
            receipt=receipt,
        )
        return await service.search(self._asking, request)

    async def query(self, keywords: str, *, limit: int = 5, receipt: bool | None = None) -> Results:
        """Search by keywords chosen by an agent, in full text only. `receipt` and errors are as in `search`."""
        request = Request(text=keywords, limit=limit, words_only=True, receipt=receipt, verb="query")
        return await service.search(self._asking, request)

    async def context(
        self,
        prompt: str,
        *,
        budget: int | None = None,
        session: str | None = None,
        as_of: datetime | str | int | None = None,
        receipt: bool | None = None,
    ) -> str | None:
        """Return a Markdown block of what an agent should know before answering `prompt`; None if nothing is relevant.

        Args:
            budget: maximum number of tokens; by default the setting `context_tokens`, times 0.5 for a simple prompt and
                1.5 for a complex one.
            session: the current conversation, which is excluded because the agent already knows it.
            as_of: use the state of the memory at that time, as in `search`.
            receipt: whether to leave a receipt, as in `search`; `context_parts` returns its id.

        Raises:
            InvalidError: an argument is invalid.
        """
        return (await self.context_parts(prompt, budget=budget, session=session, as_of=as_of, receipt=receipt)).text

    async def context_parts(
        self,
        prompt: str,
        *,
        budget: int | None = None,
        session: str | None = None,
        as_of: datetime | str | int | None = None,
        receipt: bool | None = None,
    ) -> Context:
        """Return the block of `context` together with its parts: facts, people, conversation, and the evidence.

        Args:
            budget, session, as_of, receipt: as in `context`.

        Raises:
            InvalidError: an argument is invalid.
        """
        return await context_.brief(self._asking, prompt, budget=budget, session=session, as_of=as_of, receipt=receipt)

    async def ask(self, question: str, *, limit: int = 12, receipt: bool | None = None) -> Answer:
        """Answer a question from the memories alone, each sentence with the memories that support it. Unsupported
        sentences of the language model are dropped. The answer is not stored.

        The best passages are returned verbatim if there is no model, if the model fails, and for callers with the trust
        of a tool or a page. `keep_question` stores a question with its answer.

        Args:
            limit: maximum number of memories to read.
            receipt: whether its search leaves a receipt, as in `search`.

        Raises:
            InvalidError: an argument is invalid.
        """
        from ricordo import standing

        request = Request(text=question, type="any", only_relevant=True, limit=limit, receipt=receipt, verb="ask")
        return await standing.answer(self._opened.answering(self._scope), request)

    async def keep_question(self, question: str, *, limit: int = 12) -> StandingQuestion:
        """Store a question with its answer, as `ask` gives it. `questions` reports a stale answer, and `maintain`
        renews it. Storing the same question again returns the existing one.

        Args:
            limit: maximum number of memories to read.

        Raises:
            InvalidError: an argument is invalid.
            ConflictError: 100 questions are already stored.
        """
        kept = await self._standing.keep(question, limit=limit)
        return self._told("keep_question", await self._standing.judged(kept), question=kept.id)

    async def questions(self) -> Sequence[StandingQuestion]:
        """Return the standing questions of this caller, oldest first, with their answers, and why an answer is stale.
        In a chat, they include those stored there.
        """
        kept = await self._standing.listed()
        return self._told("questions", [await self._standing.judged(each) for each in kept])

    async def question(self, id: str) -> StandingQuestion:
        """Return one standing question of this caller, with its answer, and why the answer is stale.

        Args:
            id: the id of a question, or a unique beginning or end of it.

        Raises:
            NotFoundError: this caller keeps no such question.
        """
        kept = await self._standing.named(checked_name(id))
        return self._told("question", await self._standing.judged(kept), question=kept.id)

    async def renew_questions(self, id: str | None = None, *, fresh: bool = False) -> Sequence[StandingQuestion]:
        """Answer standing questions again, and return them with their new answers.

        Args:
            id: only this question, even if its answer is not stale; None: all with a stale answer.
            fresh: also renew answers that are not stale.

        Raises:
            NotFoundError: this caller keeps no such question.
        """
        renewed = await self._standing.renew(None if id is None else checked_name(id), fresh=fresh)
        return self._told("renew_questions", [await self._standing.judged(each) for each in renewed])

    async def drop_question(self, id: str) -> None:
        """Delete a standing question of this caller, with its answer. No memory is deleted.

        Args:
            id: the id of a question, or a unique beginning or end of it.

        Raises:
            NotFoundError: this caller keeps no such question.
        """
        await self._standing.drop(checked_name(id))

    async def receipts(self, limit: int = 50, *, before: str | None = None) -> Sequence[Receipt]:
        """Return this caller's receipts, latest first: the questions, and the ids of the memories given and left out.

        Args:
            before: the id of a receipt; only older ones are returned.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000, or `before` is not text.
        """
        most = checked_limit(limit)
        below = None if before is None else checked_name(before)
        await self._opened.receipts.flush()
        found = await self._read(lambda tx: tx.receipts.listed(self._scope, before=below, most=most))
        return self._told("receipts", found)

    async def receipt(self, id: str) -> Receipt:
        """Return one receipt of this caller.

        Args:
            id: the id of a receipt (`results.receipt.id`), or a unique beginning or end of it.

        Raises:
            NotFoundError: there is no such receipt, or it is older than the setting `receipts_days`.
        """
        await self._opened.receipts.flush()
        found = await self._read(lambda tx: tx.receipts.get(self._scope, id))
        if found is None:
            raise NotFoundError(f"there is no receipt {id}", hint="`receipts` lists them")
        return self._told("receipt", found, receipt=found.id)

    async def replay_receipt(self, id: str) -> ReceiptReplay:
        """Answer the question of a receipt again, as of its commit and from today's memories. Return the differences,
        and the commits that cause them. The store is not changed: the past is restored in a temporary copy of it, which
        takes a second per 100 MB.

        Raises:
            NotFoundError: there is no such receipt.
            ConflictError: its question was erased, it was left in another chat, or it is not the receipt of an answer.
        """
        from ricordo.replay import replayed

        receipt = await self.receipt(id)
        return await replayed(self._opened, self._scope, receipt)

    async def brief(
        self, *, budget: int | None = None, since: datetime | str | int | None = None, session: str | None = None
    ) -> str | None:
        """Return a Markdown block for the start of a session: who the user is, valid decisions and rules, current work,
        open questions, and what is new; None if there are no memories.

        Args:
            budget, since, session: as in `brief_parts`.

        Raises:
            InvalidError: an argument is invalid.
        """
        return (await self.brief_parts(budget=budget, since=since, session=session)).text

    async def brief_parts(
        self, *, budget: int | None = None, since: datetime | str | int | None = None, session: str | None = None
    ) -> Briefing:
        """Return the block of `brief` together with its parts: each line with the id of its memory.

        A language model, if available, joins and shortens the lines; lines that its memories do not support are
        dropped. The memories are shown verbatim if there is no model, if it fails, and for callers with the trust of a
        tool or a page.

        Args:
            budget: maximum number of tokens; None: 800.
            since: the time from which changes count: a time, an expression as in `search`, or the `seq` of an earlier
                briefing; None: the beginning of the latest conversation, if there is one.
            session: the current conversation, which is excluded.

        Raises:
            InvalidError: an argument is invalid.
        """
        from ricordo.retrieval import briefing

        room = briefing.checked_budget(budget)
        at = self._opened.instant(since, "since") if isinstance(since, datetime | str) else None
        commit = None if isinstance(since, datetime | str) else checked_position(since, name="since")
        asking = self._asking
        found = await briefing.gather(
            asking, since=at, as_commit=commit, session=session, names=lambda tx: owner_names(tx, self._scope.owner)
        )
        plain = self._told("brief", briefing.compose(found, budget=room), session=session)
        asking.told([hit for hit in found.by_id().values() if hit.id in plain.ids])
        if self._opened.language is None or plain.text is None or not allows("brief.model", self._holder):
            return plain
        from ricordo.consolidation import answers

        context = self._opened.consolidation_context(self._scope)
        written = await answers.brief(context, found.in_order())
        if not written.lines:
            return replace(plain, degraded=(f"model: {written.failed or 'no line is supported by a memory'}",))
        return briefing.rewritten(found, written.lines, budget=room, model=self._opened.language.name, cut=written.cut)

    async def get(self, id: str, *, as_of: datetime | str | int | None = None) -> Node:
        """Return a memory by its id, even if it is closed; with `as_of` (as in `search`), in its state then.

        Raises:
            NotFoundError: there is no memory with this id, or there was none then.
            InvalidError: `as_of` is neither a time nor a commit number.
        """
        found = await service.read(self._asking, lambda tx: tx.nodes.known(self._scope, id), as_of)
        return self._told("get", found, as_of=as_of)

    async def list(
        self,
        *,
        type: str | None = None,
        category: Category | Sequence[Category] | None = None,
        entity: str | None = None,
        tag: str | Sequence[str] | None = None,
        where: Json | None = None,
        session: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        as_of: datetime | str | int | None = None,
        archived: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        """Return memories in pages, last recorded first. The conditions are those of `search`.

        Raises:
            InvalidError: an argument is invalid.
            NotFoundError: no entity has the name given as `entity`.
        """
        request = Request(
            type=type,
            category=category,
            entity=entity,
            tag=tag,
            where=where,
            session=session,
            after=after,
            before=before,
            as_of=as_of,
            archived=archived,
            limit=limit,
        )
        return self._told("list", await inspection.page(self._asking, request, cursor=cursor), type=type, entity=entity)

    async def entity(self, name: str, *, limit: int = 10, as_of: datetime | str | int | None = None) -> Profile:
        """Return the knowledge about a person, project, place or other thing; for "me" or "who am I", about the owner.

        Args:
            name: any of its names, in any script; "my wife"; or its id.
            limit: maximum number of facts, and of mentions.

        Raises:
            NotFoundError: no entity has this name.
            InvalidError: several entities have this name.
        """
        now, most, wanted = self._opened.now(), checked_limit(limit), checked_name(name)

        def read(tx: Snapshot) -> Profile:
            names = owner_names(tx, self._scope.owner)
            return inspection.profile(tx, self._scope, wanted, own_names=names, now=tx.current(now), limit=most)

        found = await service.read(self._asking, read, as_of)
        return self._told("entity", found, as_of=as_of)

    async def people(self, *, limit: int = 100) -> Sequence[Entity]:
        """Return the known people, most frequently mentioned first.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000.
        """
        most = checked_limit(limit)
        found = await self._read(lambda tx: inspection.known_people(tx, self._scope, most=most))
        return self._told("people", found)

    async def chats(self) -> Sequence[Chat]:
        """Return the chats and projects of this owner, most recently changed first: those in which this owner wrote,
        and the shared spaces that the scope reads. `Scope(owner=..., chat=name)` reads one.
        """
        who = self._scope.who
        return self._told("chats", await self._read(lambda tx: tx.statistics.chats(self._scope, who)))

    async def sessions(self, limit: int = 50) -> Sequence[Conversation]:
        """Return conversations with their summaries, without their messages, most recently active first. One without
        title and summary has an `opening`.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000.
        """
        most = checked_limit(limit)

        def read(tx: Snapshot) -> list[Conversation]:
            return with_openings(tx, self._scope, tx.sessions.listed(self._scope, most=most))

        return self._told("sessions", await self._read(read))

    async def session(self, id: str) -> Conversation:
        """Return one conversation with its messages in order, without forgotten parts.

        Args:
            id: its id, or the title that it was imported with.

        Raises:
            NotFoundError: there is no session with this id or title.
            InvalidError: several have this title.
        """

        def read(tx: Snapshot) -> Conversation:
            fits = tx.sessions.listed(self._scope, most=1, session_id=session_meant(tx, self._scope, id))
            if not fits:
                raise NotFoundError(f"there is no session {id!r}", hint="`sessions` lists them")
            (found,) = fits
            turns = tx.runs.session_episodes(self._scope, (found.owner, found.chat), found.id)
            cut = tx.suppression.shown({node.key: node for node in turns})
            shown = (replace(node, content=cut[node.key]) if node.key in cut else node for node in turns)
            return replace(found, turns=tuple(node for node in shown if node.content))

        conversation = await self._read(read)
        return self._told("session", conversation, session=conversation.id)

    # ---- consolidation

    async def consolidate(self, session: str | None = None, *, dry_run: bool = False) -> Run:
        """Turn conversations into knowledge with the language model, one commit each, in one run that `undo` reverses.
        A conversation for which the model fails keeps waiting; the run's items state the reason. Without a model,
        simple statements are stored by rule, and the conversations keep waiting.

        Args:
            session: this conversation only; None: all that wait, except those that failed three times.
            dry_run: ask the model and report what would be done, but change nothing.

        Raises:
            NotFoundError: there is no such session.
            DeniedError: the caller has only the trust of a tool or a page.
        """
        from ricordo.consolidation import run as running  # brings pydantic, which takes a tenth of a second

        session = await self._session_meant(session)
        await self._opened.exchanges.leave(self._scope, session)
        return await self._learn(lambda context: running.consolidate(context, session, dry_run=dry_run))

    async def extract(self, session: str | None = None, *, dry_run: bool = False) -> Run:
        """Extract knowledge from conversations in progress: from the messages since the last extraction, by the
        language model or by rule. The conversations keep waiting, and `consolidate` does not repeat the extracted
        facts. With the setting `extraction_enabled`, this runs automatically when a conversation pauses.

        Args:
            session: this conversation only; None: all that wait.
            dry_run: ask the model and report what would be stored, but change nothing.

        Raises:
            NotFoundError: there is no such session.
            DeniedError: the caller has only the trust of a tool or a page.
        """
        from ricordo.consolidation import extraction

        session = await self._session_meant(session)
        return await self._learn(lambda context: extraction.extract(context, session, dry_run=dry_run))

    async def replay(self, run: str, *, model: str | LanguageModel | None = None) -> Run:
        """Run the conversations of a run through another model (or the same again), and compare the result with the
        memories: "added" is new, "repeated" is known, "missing" was produced by the run and not found by the model.
        Nothing is changed; the result can be accepted for 30 days.

        Raises:
            NotFoundError: there is no such run.
            InvalidError: there is no such model.
            UnavailableError: no model is configured, or it does not answer.
        """
        from ricordo.consolidation import run as running

        context = self._opened.consolidation_context(self._scope, model=model)
        return await running.replay(context, await self.run(run))

    async def accept(self, run: Run | str, items: Sequence[int] | None = None) -> Run:
        """Apply the result of a replay as one commit under its id: "added" items are added, "missing" ones are closed
        unless they were changed or repeated since. `undo` reverses it. Return what was done.

        Args:
            run: the result of `replay`, or its id.
            items: only these items, by number, counted from 1.

        Raises:
            NotFoundError: there is no such replay, or one of its messages was erased.
            InvalidError: there is no such item, or it cannot be accepted.
            ConflictError: a message has changed since it was read, or the replayed run was undone.
            DeniedError: the caller has only the trust of a tool or a page.
        """
        from ricordo.consolidation import run as running

        wanted = run.id if isinstance(run, Run) else run
        return await self._learn(lambda context: running.accept(context, wanted, items))

    async def summarise(self, session: str) -> str:
        """Return a summary of a conversation by the language model, and store it with the session. Useful before an
        agent's context is compacted, or for another agent that continues the conversation.

        Raises:
            NotFoundError: there is no such session.
            UnavailableError: no model is configured, or it gave no summary.
        """
        from ricordo.consolidation import run as running

        given = await self._session_meant(session) or session
        return await running.summarise(self._opened.consolidation_context(self._scope), given)

    async def reflect(
        self, *, after: datetime | str = "7 days ago", before: datetime | str | None = None, dry_run: bool = False
    ) -> Run:
        """Reflect with the language model on what was learnt in a period. Conclusions from several memories are stored
        as memories of the category "reflection", each with its sources. `undo` of the run reverses it.

        Args:
            after, before: the period, as in `search`; None as `before` means now.
            dry_run: ask the model and report what would be stored, but change nothing.

        Raises:
            InvalidError: a time cannot be read.
            UnavailableError: no model is configured.
            DeniedError: the caller has only the trust of a tool or a page.
        """
        from ricordo.consolidation import conclusions

        engine = self._opened
        start = engine.instant(after, "after")
        end = engine.now() + 1 if before is None else engine.instant(before, "before")
        return await self._learn(lambda context: conclusions.reflect(context, after=start, before=end, dry_run=dry_run))

    async def enrich(self, *, dry_run: bool = False) -> Run:
        """Summarise, with the language model, each entity that is named in at least three memories and has no summary
        yet. The summary is also stored as a memory. `maintain` does this every night. Arguments and errors are those of
        `reflect`.
        """
        from ricordo.consolidation import enrichment

        return await self._learn(lambda context: enrichment.enrich(context, dry_run=dry_run))

    async def infer_causes(self, *, dry_run: bool = False) -> Run:
        """Find causes and effects among consecutive messages with the language model, only if they are stated
        explicitly. A run reads at most 50 pairs; the next run continues. `maintain` does this every night. Arguments
        and errors are those of `reflect`.
        """
        from ricordo.consolidation import conclusions

        return await self._learn(lambda context: conclusions.infer_causes(context, dry_run=dry_run))

    async def runs(self, limit: int = 50) -> Sequence[Run]:
        """Return runs, latest first, without the texts of their items, which `run` returns. Runs that failed, were
        interrupted or were undone are included with their cost.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000.
        """
        most = checked_limit(limit)
        return self._told("runs", await self._read(lambda tx: tx.runs.listed(self._scope, most=most)))

    async def spending(self, days: int = 30, *, all_owners: bool = False) -> Sequence[ModelUse]:
        """Return the use of language models in the last days, by day, owner and model, latest first: calls, runs,
        tokens and, if prices are set, the cost. Failed, interrupted and undone runs are included.

        Args:
            days: number of days including today, from 1 to 3,660.
            all_owners: the use of all owners, not only of this scope; only for the opener of the store.

        Raises:
            InvalidError: `days` is out of range.
            DeniedError: `all_owners` by a scoped caller.
        """
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= 3_660:
            raise InvalidError(f"days: {days!r} is not a whole number from 1 to 3,660")
        scope = None if all_owners else self._scope
        since = (date.fromisoformat(self._opened.today()) - timedelta(days=days - 1)).isoformat()
        return self._told("spending", await self._read(lambda tx: tx.runs.model_use(scope, since=since)))

    async def run(self, id: str) -> Run:
        """Return one run, with the current texts of the memories it added or changed. A failed or undone run has none.

        Raises:
            NotFoundError: there is no run with this id.
        """
        return self._told("run", await self._read(lambda tx: reviews.find_run(tx, self._scope, id)), run=id)

    # ---- time and figures

    async def history(self, id: str, *, as_of: datetime | str | int | None = None) -> Sequence[Version]:
        """Return every version of a memory, oldest first, each with its commit, including its predecessors and
        successors. With `as_of`, only up to that time.

        Raises:
            NotFoundError: there is no memory with this id, or there was none then.
            InvalidError: `as_of` is neither a time nor a commit number.
        """
        found = await service.read(self._asking, lambda tx: inspection.history(tx, self._scope, id), as_of)
        return self._told("history", found, as_of=as_of)

    async def log(self, limit: int = 50, *, before: int | None = None) -> Sequence[Commit]:
        """Return the latest commits, newest first. With `before`, a commit number, return only older ones.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000, or `before` is not a whole number.
        """
        most, below, scope = checked_limit(limit), checked_position(before, name="before"), self._scope
        found = await self._read(
            lambda tx: commit_words.in_words(tx, scope, tx.history.commits(scope, before=below, most=most))
        )
        return self._told("log", found)

    async def changes(self, *, after: int | None = None) -> AsyncIterator[Commit]:
        """Yield each change of this memory once, in order, also of other processes; then wait for more, without end.

        Args:
            after: the number of the last change already processed, 0 for all; None: only changes from now on.

        Raises:
            InvalidError: `after` is not a whole number.
            UnavailableError: the memory was closed.
        """
        scope = self._scope
        if after is None:
            latest = await self.log(limit=1)
            after = latest[0].seq if latest else 0
        if isinstance(after, bool) or not isinstance(after, int) or after < 0:
            raise InvalidError("after must be the number of a change, or 0")

        def seen(tx: Snapshot, seq: int) -> Sequence[Commit]:
            found = [each for each in tx.history.commits(scope, before=seq + 1, most=1) if each.seq == seq]
            return commit_words.in_words(tx, scope, found)

        async for event in changes(self._opened.store, after=after):
            for commit in await self._read(partial(seen, seq=event.commit)):
                yield self._told("changes", commit, commit=commit.seq)

    async def timeline(
        self,
        *,
        entity: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        as_of: datetime | str | int | None = None,
        limit: int = 50,
    ) -> Sequence[Node]:
        """Return events in order of event time: messages and knowledge, the latest `limit` of the period.

        The event time of a plan is when it was told; for plans, search for "what is coming up".

        Args:
            entity: only memories linked to this person or thing.
            after, before: a time or an expression, as in `search`.
            as_of: use the state of the memory at that time, as in `search`.

        Raises:
            InvalidError: an argument is invalid.
            NotFoundError: no entity has the name given as `entity`.
        """
        request = Request(entity=entity, after=after, before=before, as_of=as_of, limit=limit)
        return self._told("timeline", await inspection.timeline(self._asking, request), entity=entity)

    async def explain(self, id: str, *, as_of: datetime | str | int | None = None) -> Explanation:
        """Explain a memory: its commit, run, sources, predecessors, successors, versions and links, and when it fades.

        Raises:
            NotFoundError: there is no memory with this id, or there was none at `as_of`.
            InvalidError: `as_of` is neither a time nor a commit number.
        """
        now, zone, settings = self._opened.now(), self._opened.zone, self._opened.settings
        closes, often = settings.decay_closes, settings.protect_mentions

        def read(tx: Snapshot) -> Explanation:
            return inspection.explain(tx, self._scope, id, now=tx.current(now), zone=zone, closes=closes, often=often)

        return self._told("explain", await service.read(self._asking, read, as_of), as_of=as_of)

    async def undo(self, commit_or_run: int | str, *, with_later: bool = False, dry_run: bool = False) -> Commit:
        """Undo a commit or a run: everything it touched returns to its earlier state. Return the new commit, which can
        itself be undone; its `words` describe the changes.

        Args:
            commit_or_run: the number of a commit, as `log` shows it, or the id of a run for all its commits. The number
                of an import undoes its whole file, and what was learnt from it since.
            with_later: also undo the later commits that depend on it.
            dry_run: change nothing, and return what would change as the `words` of a commit with the number 0.

        Raises:
            NotFoundError: there is no such commit or run.
            ConflictError: later commits depend on it (`error.commits` lists them), it is already undone, or data that
                it touched was erased.
        """

        scope = self._scope
        if dry_run:
            _, words = await self._read(
                lambda tx: forget.undo(tx, scope, commit_or_run, with_later=with_later, in_words=commit_words.in_words)
            )
            who = scope.actor
            self._told("undo", None, change=str(commit_or_run))
            return Commit(seq=0, at=self._at, actor=who, origin="undo", reason="dry run", hash="", words=words)

        def decide(tx: Snapshot) -> tuple[Change, tuple[int, str]]:
            change, words = forget.undo(tx, scope, commit_or_run, with_later=with_later, in_words=commit_words.in_words)
            for run in forget.undone_runs(tx, self._scope, change):
                for session in run.sessions or (None,):
                    tx.runs.note_outcome(run, session, day=self._opened.today(), at=self._opened.now())
            return change, (tx.history.next_commit(), words)

        also = " and what builds on it" if with_later else ""
        number, words = await self._noted("undo", decide, said=f"undo of {str(commit_or_run)[:100]}{also}")
        return replace(await self._read(lambda tx: tx.history.made(number)), words=words)

    async def stats(self) -> Stats:
        """Return figures of this memory. `size` is the whole store for its opener, else of the caller's own texts."""
        is_whole = allows("stats.store_size", self._holder)
        return self._told(
            "stats", await self._read(lambda tx: tx.statistics.summary(self._scope, whole_store=is_whole))
        )

    # ---- shared spaces

    async def spaces(self) -> Sequence[Space]:
        """Return the shared spaces of this owner, by name, with their members."""
        return self._told("spaces", await self._read(lambda tx: sharing.spaces_of(tx, self._scope)))

    async def create_space(self, name: str, *, members: Sequence[str] = ()) -> Space:
        """Create a shared space with this owner as its first keeper. Every search of its members includes it;
        `Scope(owner=..., chat=name)` writes to it.

        Args:
            members: the names of owners who become writers in it. A chat that is already in use becomes a space only
                with at least one name, your own or others', because everybody else loses access to it.

        Raises:
            InvalidError: a name is empty or too long.
            ConflictError: the name is taken, or belongs to a chat that is in use and no members are named.
        """
        rules = self._opened.rules
        wanted = sharing.checked_name(name, name="name", rules=rules)
        if isinstance(members, str):
            raise InvalidError("members must be a list of names, not one text", hint=f"pass [{members!r}]")
        writers = [sharing.checked_name(each, name="members", rules=rules) for each in members]
        create = partial(sharing.created, writers=writers, at=self._at, is_opener=self._owns_engine)
        return await self._share("create space", wanted, lambda tx: create(tx, wanted, self._scope))

    async def set_member(self, space: str, member: str, role: MemberRole) -> Space:
        """Add a member to a shared space, or change a member's role. Only a keeper may do this.

        Args:
            member: the name of an owner.
            role: "reader" may search it, and propose changes with `Scope(propose=True)`; "writer" may also add, change
                and forget; "keeper" may also approve, erase, and change the members.

        Raises:
            InvalidError: there is no such role.
            NotFoundError: the caller is not a member of such a space.
            DeniedError: the caller is not a keeper of it.
            ConflictError: the space would be left without a keeper.
        """
        check_choice(role, sharing.ROLES, name="role")
        found = await self._with_member("set member", space, member, role)
        assert found is not None
        return found

    async def remove_member(self, space: str, member: str | None = None) -> None:
        """Leave a shared space or, as a keeper, remove a member. Access ends at once; the member's memories stay there.

        Args:
            member: the member to remove; None: the caller.

        Raises:
            NotFoundError: the space has no such member, or the caller is not one.
            DeniedError: the member is not the caller, and the caller is not a keeper.
            ConflictError: the space would be left without a keeper.
        """
        await self._with_member("remove member", space, self._scope.owner if member is None else member, "none")

    async def _with_member(self, verb: str, space: str, member: str, role: MemberRole) -> Space | None:
        rules = self._opened.rules
        wanted = sharing.checked_name(space, name="space", rules=rules)
        who = sharing.checked_name(member, name="member", rules=rules)
        at, said = self._at, who[:400] if role == "none" else f"{who[:400]} as {role}"
        return await self._share(
            verb, wanted, lambda tx: sharing.with_member(tx, wanted, who, role, self._scope, at=at), said=said
        )

    async def _share(
        self, verb: str, space: str, decide: Callable[[Snapshot], tuple[Change, T]], *, said: str | None = None
    ) -> T:
        """Write a change of the members of a space, which the log lists under the space."""
        engine, scope = self._opened, replace(self._scope, chat=space)
        store, reason = engine.store.seen_by(scope), self._reason(verb, said)
        return await store.write(decide, scope=scope, reason=reason, at=from_ms(engine.now()))

    async def _shared(self, id: str) -> Node:
        """Move a private fact to the current chat: store a copy there, and then close the private one."""
        node = await self._read(lambda tx: self._living(tx, id))
        if node.chat and node.chat == self._scope.chat:
            return node
        copy = await self._moved(sharing.shared_copy(node, text=self._text(node.content)))
        if copy.is_live:
            closing = Change(close=(Closing(id=id, at=self._at, reason="forgotten"),))
            said = f"shared with {self._scope.chat}"[:500]
            await self._write("forget", lambda tx: (closing, None), said=said)
        return copy

    async def _made_private(self, id: str) -> Node:
        """Move a fact that this owner wrote from the current chat to their own memory: store a copy, then forget it."""
        node = await self._read(lambda tx: self._living(tx, id))
        if not node.chat:
            return node
        scope, at = self._scope, self._at
        copy = await self._moved(await self._read(lambda tx: sharing.private_copy(tx, node, scope, at=at)))
        if copy.is_live:
            await self.forget(id, "made private")
        return copy

    async def _moved(self, fact: Fact) -> Node:
        (copy,) = await self.scoped(replace(self._scope, shares=False)).remember_many([fact])
        if not copy.id:
            raise ConflictError("nothing is recorded there at present", hint="`on_record` ends that")
        return copy

    async def _check_role(self, action: SpaceAction) -> None:
        """Raise DeniedError if the caller's role in the current chat does not allow an action, or NotFoundError if they
        have none.
        """
        chat, owner = self._scope.chat, self._scope.owner
        members = await self._read(lambda tx: tx.members.of(chat)) if chat else []
        role: MemberRole = next((each.role for each in members if each.owner == owner), "none")
        if members and role == "none":
            raise no_member(chat or "")
        if members and not role_allows(role, action):
            raise DeniedError(
                f"this needs another role in the space {chat!r}: here you are {_HERE[role]}",
                hint="ask one of its keepers; for your own memory, leave the space out: a token without --chat",
            )

    # ---- upkeep

    async def weak(self, limit: int = 20) -> Sequence[Weak]:
        """Return memories that are uncertain, fading, or about to expire: first those that upkeep will close, soonest
        first, then the others, weakest first. `confirm` or `reinforce` keeps a memory.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000.
        """
        most = checked_limit(limit)
        return self._told("weak", await gc.weak(await self._opened.upkeep(self._scope), limit=most))

    async def archive(self, limit: int = 50, *, reason: ClosedReason | None = None) -> Archive:
        """Return closed memories, latest first, with counts by reason. `search(..., archived=True)` searches them, and
        `restore` brings one back.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000, or there is no such reason.
        """
        most = checked_limit(limit)
        if reason is not None:
            check_choice(reason, frozenset(get_args(ClosedReason)), name="reason")
        found = await self._read(lambda tx: inspection.archive(tx, self._scope, reason, limit=most))
        return self._told("archive", found, reason=reason)

    async def gc(
        self, *, dry_run: bool = False, all_owners: bool = False, progress: Progress | None = None
    ) -> ArchiveReport:
        """Archive memories that are expired, faded (see `decay_closes`), or beyond `max_entries`. Idempotent.

        Args:
            dry_run: report what would be archived, and archive nothing.
            all_owners: the memories of all owners, not only of this scope; only for the opener of the store.
            progress: called with (memories so far, memories in total).

        Raises:
            DeniedError: `all_owners` by a scoped caller.
        """
        report = await gc.gc(await self._upkeep(dry_run=dry_run, all_owners=all_owners, progress=progress))
        return self._told("gc", report)

    async def prune(
        self, *, dry_run: bool = False, all_owners: bool = False, progress: Progress | None = None
    ) -> ArchiveReport:
        """Archive the least valuable knowledge, 1 % at a time, until the rest fits into `max_size` bytes, if that is
        set. Running it again changes nothing. Arguments and errors are those of `gc`.
        """
        report = await gc.prune(await self._upkeep(dry_run=dry_run, all_owners=all_owners, progress=progress))
        return self._told("prune", report)

    async def maintain(
        self, *, dry_run: bool = False, all_owners: bool = False, progress: Progress | None = None
    ) -> MaintenanceReport:
        """Run nightly maintenance: consolidate finished conversations, then `gc` and `prune`, list likely changes that
        only a comparison by meaning finds for review, then `enrich` and `infer_causes` (if there is a model), then
        internal cleaning. Failed steps are reported. Arguments and errors are those of `gc`.
        """
        report = await gc.maintain(await self._upkeep(dry_run=dry_run, all_owners=all_owners, progress=progress))
        return self._told("maintain", report)

    async def _upkeep(self, *, dry_run: bool, all_owners: bool, progress: Progress | None) -> Upkeep:
        scope = None if all_owners else self._scope
        return await self._opened.upkeep(scope, dry_run=dry_run, progress=progress)

    async def doctor(self, *, fix: bool = False) -> Report:
        """Check the store for damage: pages, schema, row hashes, the commit chain, indexes, permissions, the files of a
        folder. Nothing is changed; with `fix`, safe repairs are made without deleting anything.
        """
        store = self._opened.store
        report = await store.doctor()
        if fix and not report.ok:
            store.check_writable()
            await store.mend(report)
            report = await store.doctor()
        report = Report(findings=(*report.findings, *await self._opened.witnessed()))
        if self._notes is not None:
            await self._notes.settle()
            report = Report(findings=(*report.findings, *await self._notes.findings()))
        return report

    async def rebuild_index(self, *, progress: Progress | None = None) -> int:
        """Rebuild the index of a folder from its files, without the embedding model. Return the number of lines read.

        Args:
            progress: called with (lines so far, lines in total).

        Raises:
            InvalidError: the store is a single file.
        """
        return await self._opened.store.rebuild(progress)

    async def migrate(self, path: str | Path) -> None:
        """Copy the complete store, with its history, to a store of another kind: an empty PostgreSQL database
        ("postgresql://..."), a folder of plain files if the path ends in a slash, else a file. This store is not
        changed.

        Raises:
            InvalidError: the path exists, or the database is not empty.
        """
        from ricordo.storage.registry import migrate

        self._told("migrate", None)
        await self._opened.receipts.flush()
        await asyncio.to_thread(migrate, self._opened.store, path, key=self._opened.key)

    async def backup(self, path: str | Path) -> Backup:
        """Copy the complete store to a new file, even while others write; or copy the plain files and the notes of a
        folder store to a new folder, if the path ends in a slash. A manifest next to the file, or in the folder, lists
        the contents.

        Returns:
            The contents of the manifest.

        Raises:
            InvalidError: the path exists, or a single file cannot become a folder.
        """
        from ricordo.storage.backup import back_up

        self._told("backup", None)
        await self._opened.receipts.flush()
        if self._notes is not None:
            await self._notes.settle()
        return await asyncio.to_thread(back_up, self._opened.store, path, now=self._at, key=self._opened.key)

    @staticmethod
    async def verify_backup(path: str | Path, *, key: str | None = None) -> Report:
        """Test a backup without changing it or any store: compare a copy of it with its manifest, open the copy, check
        it as `doctor` does, and search it for a memory.

        Args:
            key: opens an encrypted backup, as in `Memory.open`.

        Raises:
            DeniedError: the backup is encrypted, and the key is missing or wrong.
            NotFoundError: there is no backup at the path.
        """
        from ricordo.storage.backup import verify_backup
        from ricordo.storage.key import key_of

        return await asyncio.to_thread(lambda: verify_backup(path, key_of(key)))

    @staticmethod
    async def restore_backup(
        path: str | Path, location: str | Path, *, replace: bool = False, key: str | None = None
    ) -> Restored:
        """Restore a store from a backup, completely or not at all, after `verify_backup` has found it intact.

        Args:
            location: the path of a file; or of a folder (which exists or ends in a slash) for a folder store.
            replace: replace an existing store at the location; the old store is kept under the returned name.
            key: opens an encrypted backup, as in `Memory.open`; the store has the same key.

        Raises:
            DeniedError: the backup is encrypted, and the key is missing or wrong.
            NotFoundError: there is no backup at the path.
            InvalidError: the location exists, and `replace` is not given.
            UnavailableError: another process has the file to be replaced open.
        """
        from ricordo.storage.backup import restore_backup
        from ricordo.storage.key import key_of

        now = from_ms(SystemClock().now())
        return await asyncio.to_thread(
            lambda: restore_backup(path, location, replace=replace, now=now, key=key_of(key))
        )

    @staticmethod
    async def rekey(location: str | Path, *, key: str | None = None, new_key: str | None = None) -> Rekeyed:
        """Change the key of a store that no program has open: encrypt an unencrypted store, decrypt an encrypted one,
        or change its key. If this is interrupted, the store opens with either the old or the new key.

        Args:
            location: the path of a file or a folder.
            key: the current key, as in `Memory.open`; None for a store that is not encrypted.
            new_key: the new key; None decrypts the store.

        Raises:
            NotFoundError: there is no store at the location.
            InvalidError: a key is given and the store is not encrypted, or a folder has notes.
            DeniedError: the current key is missing or wrong.
            UnavailableError: another program has the store open.
        """
        from ricordo.storage.key import key_of
        from ricordo.storage.rekey import rekey

        if new_key is not None and not new_key.strip():  # empty input must not decrypt the store
            raise InvalidError("new_key is empty", hint="give a key, or None to decrypt the store")
        return await asyncio.to_thread(lambda: rekey(location, key=key_of(key), new=key_of(new_key)))

    async def import_(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        own: bool = False,
        me: Sequence[str] = (),
        shared: bool = True,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import the data of another memory or a chat: messages, facts, people and relations.

        Existing data is not changed, so importing the same data again adds nothing, and an interrupted import can be
        repeated. Facts keep the time they were observed and get the origin "import"; what a file does not date is as
        old as the file. They close no existing facts; `review` lists possible conflicts.

        A file may come from anybody. By default, therefore, a complete `export` adds its memories with at most the
        trust "import", and without its history. With `own`, its memories keep their origins, and an empty store of the
        same owner is restored exactly.

        Args:
            path: a file, a folder for formats of several files, or a folder of separate chat exports.
            format: "document" (for a file, see `add_document`), "jsonl" (a complete `export`), "markdown",
                "memories-jsonl", "memories-sqlite", "mcp", "mem0", "langgraph", "chatgpt", "claude", "claude-code",
                "codex", "cursor", "gemini-cli", "opencode" (logs of coding agents), "chat" (JSON lines of role or
                speaker, text, time, session) or "locomo"; None: detected from the content.
            own: the file belongs to this owner and is unchanged: a complete export, or the log of a coding agent, whose
                messages then count as the user's and an assistant's. Requires the trust "user".
            me: the names under which the owner speaks in the chats; what these say is then about the owner.
            shared: in a chat or space, its members can read what is imported; False: only the owner can, as by default
                over HTTP.
            dry_run: read and check everything, record nothing; the report counts what would be added.
            progress: called with (records so far, records in total).

        Raises:
            InvalidError: the file cannot be read, or its format is unknown.
            DeniedError: `own` by a caller without the trust "user".
        """
        from ricordo.portability.pipeline import ImportContext, import_path
        from ricordo.text.analyzer import name_key

        if not shared and self._scope.owner and self._scope.chat:
            alone = self.scoped(replace(self._scope, chat=None))
            return await alone.import_(path, format=format, own=own, me=me, dry_run=dry_run, progress=progress)

        async def add_document(path: Path) -> ImportReport:
            report = await self._add_document(path, is_import=True, dry_run=dry_run)
            read = report.added + report.kept
            return ImportReport(
                format="document",
                read=read,
                added=report.added,
                known=report.kept,
                passages=report.added,
                redacted=report.redacted,
            )

        engine = self._opened
        context = ImportContext(
            scope=self._scope,
            now=engine.now(),
            instant=engine.instant,
            rules=engine.rules,
            holds_untrusted=engine.settings.untrusted_knowledge == "hold",
            is_own=own,
            me=frozenset(map(name_key, me)),
            zone=str(engine.zone),
            planned=set() if dry_run else None,
        )
        report = await import_path(
            Path(path),
            format=format,
            context=context,
            store=self._store,
            write=self._write_import,
            add_document=add_document,
            progress=progress,
            dry_run=dry_run,
        )
        if not dry_run:
            engine.backlog.note(report.added)
        speakers = [ImportSpeaker(name=name, messages=many) for name, many in context.said.most_common()]
        before = context.named_before
        mine = [each for each in speakers if name_key(each.name) in context.me]
        spoke = {name_key(each.name) for each in mine}
        return replace(
            report,
            chat=self._scope.chat or "",
            dry_run=dry_run,
            speakers=tuple(speakers[:_SHOWN_SPEAKERS]),
            me=tuple(replace(each, messages=each.messages - before[each.name]) for each in mine),
            named_before=tuple(ImportSpeaker(name=name, messages=many) for name, many in before.most_common()),
            earlier=tuple(context.earlier.values()),
            not_found=tuple(name for name in dict.fromkeys(me) if name_key(name) not in spoke),
        )

    async def export(
        self, path: str | Path, *, format: str = "jsonl", progress: Progress | None = None
    ) -> ExportReport:
        """Export the data that this caller may see.

        Args:
            path: a new file; for "markdown" a new folder, unless the name ends in `.md`.
            format: "jsonl" for everything, with history, provenance and vectors, from which `import_` makes an equal
                store; "markdown" for reading, by person and category; "mcp" for the MCP reference server. The last two
                contain the knowledge that is valid now.
            progress: called with (lines so far, lines in total).

        Raises:
            InvalidError: `path` exists, or there is no such format.
            StoreError: it cannot be written; the incomplete export is deleted.
        """
        from ricordo.portability.exporters import exporter

        engine = self._opened
        self._told("export", None, format=format)
        await engine.receipts.flush()
        write = exporter(format, Path(path), scope=self._here, now=engine.now(), zone=engine.zone, progress=progress)
        return await self._store.look(write)

    async def sync(
        self,
        other: str | Path,
        *,
        chats: Sequence[str] | None = None,
        key: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> SyncReport:
        """Synchronise with another device: exchange everything that this owner's memory learnt, changed, forgot and
        erased, in both directions. Repeating it changes nothing, and an interrupted exchange can be repeated.

        The owner's chats are exchanged, too: open ones in which the owner wrote something, such as the projects of
        coding agents, and shared spaces that the owner keeps.

        Commits are ordered by a counter that the devices share, never by clocks. If both devices changed the same
        field, the later commit in that order wins. Equal facts and people with the same name are merged; two
        corrections of one memory both stay, and `review` lists them. The other device is fully trusted.

        Args:
            other: another store; or an existing folder that git, Syncthing or a network drive copies. In such a folder
                each device writes its own files.
            chats: exchange only these chats besides the owner's own memory; None: all.
            key: encrypts the files of a folder, the same on all devices, or opens the other store; as for
                `Memory.open`. By default the key of this store. Without any key, the files are plain text.
            dry_run: only count what would be sent and received.
            progress: called with (commits so far, commits in total), for the owner's memory and for each chat.

        Raises:
            InvalidError: there is neither a store nor a folder at `other`, or it is this store.
            DeniedError: the key is wrong, or missing.
            StoreError: the other store or the folder cannot be read or written.
            UnavailableError: another process is exchanging this memory now.
        """
        from ricordo.portability import devices
        from ricordo.storage.key import is_encrypted, key_of

        side = self._side()
        self._told("sync", None)
        other_key = await asyncio.to_thread(key_of, key) or self._opened.key
        if not (is_server := str(other).startswith("postgresql:")):
            place = devices.checked_place(other, side.store)
            if devices.is_exchange_folder(place):
                return await devices.sync_folder(
                    side, place, key=other_key, chats=chats, dry_run=dry_run, progress=progress
                )
        needs_key = other_key is not None and not is_server and await asyncio.to_thread(is_encrypted, Path(other))
        opening = other_key.secret if other_key is not None and needs_key else None
        clock = self._opened.clock
        async with Memory.open(other, scope=side.scope, embedder=None, clock=clock, key=opening) as memory:
            return await devices.sync_stores(side, memory._side(), chats=chats, dry_run=dry_run, progress=progress)

    def _side(self) -> Side:
        """Return this memory's side of an exchange, for its owner or, without an owner, for its chat."""
        from ricordo.portability.devices import Side

        engine, scope = self._opened, Scope.of(self._scope.owner, self._scope.chat or "")
        return Side(engine.store, scope, engine.now, engine.backlog.note)

    # ---- internals

    @property
    def _opened(self) -> Engine:
        if self._engine is None:
            raise UnavailableError("the memory is not open", hint="use `async with Memory.open(...)`")
        if self._engine.home.has_ended:
            message = "the event loop in which this memory was opened has ended"
            raise UnavailableError(message, hint="open it in the loop that uses it, or use `ricordo.sync.Memory`")
        return self._engine

    @property
    def _store(self) -> Store:
        """The store as this caller sees it."""
        return self._opened.store.seen_by(self._scope)

    @property
    def _holder(self) -> Holder:
        return Holder(self._scope.trust, self._owns_engine, proposes=self._scope.propose)

    @property
    def _here(self) -> Scope:
        """The caller without the shared spaces that are only read, for erasing and exporting."""
        return replace(self._scope, spaces=())

    @property
    def _at(self) -> datetime:
        return from_ms(self._opened.now())

    @property
    def _asking(self) -> service.Asking:
        return self._opened.asking(self._scope)

    @property
    def _standing(self) -> StandingQuestions:
        from ricordo.standing import StandingQuestions

        return StandingQuestions(answering_of=self._opened.answering, scope=self._scope)

    async def _read(self, work: Callable[[Snapshot], T]) -> T:
        return await self._store.read(work)

    def _told(self, verb: str, answer: T, **asked: object) -> T:
        """Return an answer, and leave a receipt for it if the setting `receipts` requires that."""
        engine = self._opened
        if engine.settings.receipts == "reads":
            others = [("", id_) for id_ in ids_in(answer)]
            request = {"verb": verb, "text": "", **asked}
            engine.receipts.keep(Draft(scope=self._scope, at=engine.now(), request=request, seen=None, others=others))
        return answer

    @property
    def scope(self) -> Scope:
        """The caller, who owns this memory."""
        return self._scope if self._scope.owner else replace(self._scope, spaces=None)

    @property
    def store_view(self) -> StoreView:
        """Direct reads of the store for adapters of other libraries. Owners are visible only to the store's opener."""
        engine = self._opened
        sees = allows("store_view.owners", self._holder)
        return StoreView(
            engine.store,
            self._scope,
            now=engine.now,
            zone=engine.zone,
            sees_owners=sees,
            asking=partial(engine.asking, self._scope),
            told=lambda verb, answer: self._told(f"store_view.{verb}", answer),
        )

    def _text(self, content: str) -> str:
        return storable(content, name="content", rules=self._opened.rules)

    def _living(self, tx: Snapshot, id: str) -> Node:
        return evolution.require_live(tx, self._scope, tx.nodes.known(self._scope, id))

    def _target(self, tx: Snapshot, method: proposals.Method, id: str) -> Node:
        """Return the memory that a proposal would change. Any that is not forgotten can be."""
        node = tx.nodes.known(self._scope, id)
        is_ended = node.closed_reason not in (None, "forgotten", "quarantined")
        return node if method == "forget" and is_ended else evolution.require_live(tx, self._scope, node)

    def _held_for(self, node: Node) -> tuple[str, ...]:
        """Return why a new fact must wait for the user's decision; () if it need not."""
        holds_untrusted = self._opened.settings.untrusted_knowledge == "hold"
        why = reviews.reasons_to_hold(node, holds_untrusted=holds_untrusted)
        return (PROPOSED, *why) if self._scope.propose else why

    async def _propose(
        self, method: proposals.Method, id: str, *, text: str, origin: Origin, **arguments: object
    ) -> Node:
        """Store a proposed change for the user's decision. Raises the errors that the method itself would raise now."""

        def decide(tx: Snapshot) -> tuple[Change, Node]:
            target = self._target(tx, method, id)
            now = self._opened.now()
            change, held = proposals.proposed(target, method, arguments, text=text, origin=origin, now=now)
            asked = proposals.proposal_in(change.reviews[0])
            assert asked is not None
            self._carry_out(tx, asked, held)
            return change, reviews.with_notice(held)

        return await self._write("propose", decide)

    def _carry_out(self, tx: Snapshot, proposal: proposals.Proposal, held: Node) -> tuple[Change, Node]:
        """Return the change that a proposal makes; see `proposals.CarryOut`."""
        target, given = self._target(tx, proposal.method, proposal.id), proposal.arguments
        if proposal.method == "forget":
            change = self._forgotten(tx, target)
            return change, forget.closed(target, change)
        if proposal.method == "correct":
            return self._corrected(
                tx,
                target,
                given["content"],
                origin=held.origin,
                evidence=given["evidence"],
                at=held.event_time,
                since=proposals.instant_in(proposal, "at"),
            )
        until = evolution.UNCHANGED
        if "expires" in given:
            until = evolution.Expiry(proposals.instant_in(proposal, "expires"))
        return evolution.update(
            target,
            content=given["content"],
            tags=None if given["tags"] is None else tuple(given["tags"]),
            attributes=given["attributes"],
            expiry=until,
            happened=proposals.instant_in(proposal, "at"),
            done=given.get("done"),
            caller=trust_of(held.origin, None),
            at=held.event_time,
            zone=self._opened.zone,
        )

    async def _noted(
        self,
        verb: str,
        decide: Callable[[Snapshot], tuple[Change, T]],
        *,
        said: str | None = None,
        run_id: str | None = None,
    ) -> T:
        """Write a change after which a memory may need a new vector."""
        engine = self._opened
        result = await self._write(verb, decide, said=said, run_id=run_id)
        engine.backlog.note(1)
        return result

    async def _write_import(self, said: str, run_id: str, decide: Callable[[Snapshot], tuple[Change, T]]) -> T:
        """Write a batch of an import. `undo` takes all batches of one run back together."""
        return await self._noted("import", decide, said=said, run_id=run_id)

    async def _learn(self, work: Callable[[ConsolidationContext], Awaitable[Run]]) -> Run:
        """Run a step of consolidation."""
        engine = self._opened
        run = await work(engine.consolidation_context(self._scope))
        engine.backlog.note(len(run.items))
        return run

    def _reason(self, verb: str, said: str | None = None) -> Reason:
        if said is not None and (not isinstance(said, str) or len(said) > 500):
            raise InvalidError("reason must be text of at most 500 characters")
        check_encodable(said or "", name="reason")
        return Reason(actor=self._scope.actor, origin=verb, reason=said or verb)

    async def _write(
        self,
        verb: str,
        decide: Callable[[Snapshot], tuple[Change, T]],
        *,
        said: str | None = None,
        run_id: str | None = None,
    ) -> T:
        engine = self._opened
        reason = replace(self._reason(verb, said), run_id=run_id)

        def on_record(tx: Snapshot) -> tuple[Change, T]:
            episodes.check_on_record(tx, self._scope)
            return decide(tx)

        work = on_record if verb in _NEW_WORDS else decide
        return await self._store.write(work, scope=self._scope, reason=reason, at=from_ms(engine.now()))


def write_operations(memory: Memory, *, name: str) -> Operations:
    """Return the nine operations of the write path as one run of an agent with the given name.

    Raises:
        DeniedError: the caller has only the trust of a tool or a page.
    """
    from ricordo import wiring

    require("write_operations", memory._holder)
    return wiring.write_operations(memory._opened.consolidation_context(memory._scope), name=name)


def _checked(scope: Scope) -> Scope:
    if not isinstance(scope, Scope):
        raise InvalidError(f"scope: {scope!r} is not a Scope", hint='pass Scope(owner="...")')
    check_choice(scope.trust, get_args(Trust), name="scope.trust")
    for name, value in (("owner", scope.owner), ("chat", scope.chat)):
        if value is not None and (not isinstance(value, str) or len(value) > 500 or "\0" in value):
            raise InvalidError(f"scope.{name} must be text of at most 500 characters")
        if value and value.isspace():
            raise InvalidError(f"scope.{name} is blank", hint="give a name, or leave it out")
        check_encodable(value or "", name=f"scope.{name}")
    if (scope.owner or "").endswith(BY_AGENT):
        raise InvalidError(f"scope.owner must not end in {BY_AGENT!r}", hint="the log marks changes of agents so")
    if not scope.owner and not scope.chat:
        raise InvalidError("scope: neither owner nor chat is given", hint="set owner or chat")
    if scope.spaces is not None and not all(isinstance(each, str) for each in scope.spaces):
        raise InvalidError("scope.spaces must be names of spaces", hint='pass ("family",), or () for none')
    return scope if scope.owner else replace(scope, spaces=())  # only an owner is a member of a space


def _with_removals(node: Node, given: str) -> Node:
    """Return a memory as the result of a call, with a notice if its text lacks something of the given one."""
    notice = node.notice or (removal_notice(given, node.content) if node.id and given else "")
    return replace(node, notice=notice) if notice else node


def _with_known_date(node: Node, given: Node, *, zone: ZoneInfo) -> Node:
    """Return a fact that was known already with a notice if it was stated now with another day."""
    known, stated = (each.event_time.astimezone(zone).date() for each in (node, given))
    if not node.id or node.id == given.id or known == stated:
        return node
    return _noticed(
        node, f"It is known with the date {known}, which stays: `ricordo update {handle_of(node.id)} --at` changes it."
    )


def _noticed(node: Node, notice: str) -> Node:
    return replace(node, notice=" ".join(filter(None, (node.notice, notice))))


def _with_length(node: Node) -> Node:
    """Return a new fact with a notice if it is so long that it should rather be a document."""
    if not node.id or len(node.content) <= _LONG_FACT_CHARS:
        return node
    return _noticed(
        node,
        f"A fact of {len(node.content):,} characters is seldom found: store it with `ricordo document-add` instead.",
    )


def _several(items: str | Review | Sequence[str | Review]) -> Sequence[str | Review]:
    return [items] if isinstance(items, str | Review) else items


def _check_all(given: object, kind: type, example: str, *, name: str) -> None:
    """Raise InvalidError if something is not a sequence of one type, which type checkers see and others do not."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidError(f"{name} must be a list, not {type(given).__name__}", hint=f"[{example}, ...]")
    for place, each in enumerate(given):
        if not isinstance(each, kind):
            hint = f"write {example}, with the text of yours"
            raise InvalidError(f"{name}[{place}] is not a {kind.__name__} but {type(each).__name__}", hint=hint)


def _claimed(messages: Sequence[Message]) -> frozenset[str]:
    return frozenset(message.id for message in messages if message.id is not None)
