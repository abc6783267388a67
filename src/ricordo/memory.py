"""The front: one short method per capability. What they do is written in the four rooms."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TypeVar, get_args

from ricordo.clock import SystemClock, from_ms
from ricordo.consolidation import evolution, quarantine, reviews, run_history
from ricordo.consolidation import resolve as arrivals
from ricordo.encoding import entities, episodes, facts, sessions
from ricordo.encoding import merge as merging
from ricordo.encoding.attributes import checked_attributes, checked_tags
from ricordo.encoding.validation import TextRules, check_choice, check_encodable, storable
from ricordo.engine import Engine
from ricordo.errors import DeniedError, InvalidError, RicordoError, UnavailableError
from ricordo.forgetting import erase as erasure
from ricordo.forgetting import forget, gc, maintain, undo, weak
from ricordo.forgetting.upkeep import Upkeep
from ricordo.ids import new_id
from ricordo.model import (
    Archive,
    ArchiveReport,
    Backup,
    Category,
    Change,
    ClosedReason,
    Commit,
    Context,
    Decision,
    Entity,
    EntityType,
    ErasureReport,
    Explanation,
    ExportReport,
    Fact,
    ImportReport,
    Json,
    MaintenanceReport,
    Message,
    Node,
    NodeType,
    Origin,
    Page,
    Profile,
    Reason,
    Report,
    Restored,
    Results,
    Review,
    ReviewKind,
    Role,
    Run,
    Scope,
    Stats,
    Trust,
    Version,
    Weak,
)
from ricordo.ports import Clock, Embedder, LanguageModel, Progress
from ricordo.retrieval import as_of as past
from ricordo.retrieval import listing, profile, sections, service
from ricordo.retrieval import timeline as observing
from ricordo.retrieval.query import Request, checked_limit, checked_name, checked_position
from ricordo.settings import Settings
from ricordo.storage import Snapshot
from ricordo.storage.backup import back_up, restore_backup, verify_backup
from ricordo.trust import capped, check_may_alter, trust_of

T = TypeVar("T")

_ADDING = frozenset(("add", "remember", "end session"))
"""What every caller may do, however little they are believed."""


class Memory:
    """A long-term memory. Open it with `async with Memory.open(path) as memory`, or `memory = await Memory.open(path)`.

    Every method may raise `UnavailableError` (closing, or another process holds the store for too long) and
    `StoreError` (damaged, disk full); what else it raises is said at each. Cancelling an awaited write stops the
    waiting, not the write.
    """

    def __init__(self, start: Callable[[], object], scope: Scope) -> None:
        self._start = start
        self._scope = scope
        self._engine: Engine | None = None
        self._owns_engine = True

    @classmethod
    def open(
        cls,
        location: str | Path,
        *,
        embedder: str | Embedder | None = "default",
        model: str | LanguageModel | None = None,
        settings: Settings | None = None,
        scope: Scope = Scope(owner="me"),
        clock: Clock | None = None,
        progress: Progress | None = None,
    ) -> Memory:
        """A store at a path, made if there is none.

        Args:
            location: a file's path; a folder's, which exists or ends in a slash, for a store of plain text files; or
                ":memory:" for a store that goes when it is closed.
            embedder: "default" (English and other languages), "minilm", "multilingual", "openai:MODEL",
                "ollama:MODEL", "http://.../v1#MODEL", any object of the `Embedder` protocol, or None for full text
                only. Another one than last time re-embeds in the background, while the store goes on answering;
                "stored" stands for the one of last time.
            model: the language model that turns conversations into knowledge: "openai:MODEL", "anthropic:MODEL",
                "ollama:MODEL", "http://.../v1#MODEL", "file:PATH.gguf", any object of the `LanguageModel` protocol, or
                None. It is asked for nothing else, and never while somebody waits for an answer.
            settings: how the store is used.
            scope: whose memory this is.
            clock: where "now" comes from; the machine's by default.
            progress: called with (lines so far, lines in all) where the index of a folder has to be made anew.

        Raises:
            InvalidError: an argument does not fit.
            StoreError: the file is another program's, newer than this code, damaged or out of reach.
        """

        async def start() -> Engine:
            return await Engine.open(
                location,
                embedder=embedder,
                language=model,
                settings=settings or Settings(),
                clock=clock,
                progress=progress,
            )

        return cls(start, _checked(scope))

    def scoped(self, scope: Scope) -> Memory:
        """The same store for another caller. Closing it closes nothing."""
        other = Memory(self._start, _checked(scope))
        other._engine = self._engine
        other._owns_engine = False
        return other

    async def close(self) -> None:
        """Write what is queued and let go of the file. Closing twice is fine."""
        engine, self._engine = self._engine, None
        if engine is not None and self._owns_engine:
            await engine.close()

    async def __aenter__(self) -> Memory:
        if self._engine is None:
            self._engine = await self._start()  # type: ignore[misc]
            if self._engine.settings.auto_gc:
                await self._collect_at_opening()
        return self

    async def _collect_at_opening(self) -> None:
        """Of no use to a store that cannot be written just now, which can be read all the same."""
        with contextlib.suppress(RicordoError):
            await gc.gc(await self._opened.upkeep(None))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[object, None, Memory]:
        return self.__aenter__().__await__()

    # encoding

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
        """Record one message; returns its id when it is durable. The same id with the same text is stored once.

        Args:
            at: when it was said; now by default.
            id: your own id; a fresh one by default.

        Raises:
            InvalidError: a field cannot be accepted, or the text holds a credential and `secrets` is "refuse".
            ConflictError: `id` is taken by another text.
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
        """Like `add`, without waiting: the id is known at once, the message durable soon, at the latest at `close`.

        Raises:
            InvalidError: a field cannot be accepted.
            UnavailableError: too many writes are waiting.
        """
        message = Message(
            text=text, role=role, speaker=speaker, session=session, at=at, id=id, origin=origin, attributes=attributes
        )
        scope, rules = self._scope, self._opened.rules
        (node,) = self._episodes([message], rules=rules.at_once)
        self._opened.store.write_nowait(
            lambda tx: (
                episodes.ingest(tx, [episodes.redacted(node, rules)], claimed=_claimed([message]), scope=scope),
                None,
            ),
            scope=scope,
            reason=self._reason("add"),
            at=node.created_at,
        )
        self._opened.backlog.note(1)
        self._opened.said(scope, [session])
        return node.id

    async def add_many(self, messages: Sequence[Message]) -> list[str]:
        """Record many messages as one commit, all or none; returns their ids in order.

        Raises:
            InvalidError: a field of a message cannot be accepted.
            ConflictError: an id is taken by another text.
        """
        if not messages:
            return []
        nodes = await asyncio.to_thread(self._episodes, messages) if len(messages) > 50 else self._episodes(messages)
        claimed, scope = _claimed(messages), self._scope
        await self._write("add", lambda tx: (episodes.ingest(tx, nodes, claimed=claimed, scope=scope), None))
        self._opened.backlog.note(len(nodes))
        self._opened.said(scope, [each.session for each in messages])
        await self._opened.note_quotes(scope, [each.text for each in messages if each.role == "assistant"])
        return [node.id for node in nodes]

    def _episodes(self, messages: Sequence[Message], *, rules: TextRules | None = None) -> list[Node]:
        engine = self._opened
        now = engine.now()
        rules = engine.rules if rules is None else rules
        return [
            episodes.episode(message, scope=self._scope, now=now, instant=engine.instant, rules=rules)
            for message in messages
        ]

    async def end_session(self, session: str) -> None:
        """Mark a conversation as over; it is then ready to be consolidated. Ending it twice is fine.

        Raises:
            NotFoundError: nothing was said in it.
        """
        at = from_ms(self._opened.now())
        await self._write("end session", lambda tx: (sessions.end(tx, self._scope, session, at=at), None))

    async def off_record(self, session: str | None = None) -> None:
        """Store nothing of a session, or nothing at all, until `on_record`. Adding then gives an id of nothing."""
        await self._opened.store.derive(lambda tx: sessions.go_off_record(tx, self._scope, session))

    async def on_record(self, session: str | None = None) -> None:
        """Take `off_record` back."""
        await self._opened.store.derive(lambda tx: sessions.go_on_record(tx, self._scope, session))

    async def settle(self, timeout: float | None = None) -> None:
        """Wait until background work (embedding, linking, and reading conversations where that is switched on) is done,
        at most `timeout` seconds.

        Raises:
            UnavailableError: it is not done in time; it goes on.
        """
        await self._opened.settle(timeout)

    async def warm(self) -> None:
        """Begin to read what the first question needs, weights and vectors, so that it waits less. Returns at once."""
        self._opened.warm(self._scope)

    # knowledge

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
    ) -> Node:
        """Keep a piece of knowledge.

        What is known already, word for word, is reinforced and returned instead of being kept twice. A new value for
        something there is only one of ("Anna lives in Rome") replaces the old one, about the same subjects; where both
        could be true, both stay, the new one stands first in answers, and `review` lists the pair.

        What a tool or a page says, and what reads like an order and is not the user's, is held in quarantine: it comes
        back closed, and is in no answer until it is approved (`review`, `resolve`).

        Args:
            category: what decides how long it lives; inferred by rule when None.
            about: names of the people or things it is about; an unknown name becomes a person.
            expires: how long to keep it, "for 2 weeks", or until when: "until Friday", "до пятницы", a date, a time.
                Where it is not given, the text itself may say so ("Remember for 2 weeks: ..."); else for good. The
                node that is returned tells: `expires_at`.
            confidence: from 0 to 1.
            shared: keep it for the group of this chat, instead of for its owner alone.

        Raises:
            InvalidError: a field cannot be accepted, or there is no chat to share it with.
            ConflictError: `id` is taken.
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
        )
        return (await self.remember_many([fact]))[0]

    async def remember_many(self, facts_: Sequence[Fact]) -> list[Node]:
        """Keep several pieces of knowledge as one commit, all or none. Raises as `remember` does."""
        engine = self._opened
        now = engine.now()
        nodes = [
            facts.knowledge(
                fact, scope=self._scope, now=now, instant=engine.instant, expiry=engine.expiry, rules=engine.rules
            )
            for fact in facts_
        ]
        claimed = frozenset(fact.id for fact in facts_ if fact.id is not None)
        waits = engine.settings.untrusted_knowledge == "hold"
        held = {node.id: why for node in nodes if (why := quarantine.reasons_to_hold(node, holds_untrusted=waits))}
        nodes = [quarantine.held(node, at=from_ms(now)) if node.id in held else node for node in nodes]

        def decide(tx: Snapshot) -> tuple[Change, list[Node]]:
            learnt = facts.learn(tx, nodes, scope=self._scope, now=now, claimed=bool(claimed))
            arrived = arrivals.arrive(tx, learnt.change, scope=self._scope, now=now, claimed=claimed)
            if held:
                arrived = quarantine.listed(tx, arrived, nodes, held, claimed=claimed, now=now)
            return arrived.change, [arrived.kept.get(node.id, node) for node in learnt.nodes]

        kept = await self._write("remember", decide)
        engine.backlog.note(len(nodes))
        return kept

    async def correct(self, id: str, content: str, *, origin: Origin = "user", evidence: Sequence[str] = ()) -> Node:
        """Say what is right instead. The new version takes the old one's place, with its category, tags and subjects;
        the old one goes to the archive, and a `supersedes` edge leads back to it.

        Args:
            evidence: ids of memories that show it.

        Raises:
            InvalidError: the content cannot be accepted, or is what it was.
            NotFoundError: there is none of that id.
            ConflictError: it is closed; where a newer version took its place, the hint names that.
            DeniedError: the correction comes from a tool or a page, or reads like an order and is not the user's.
        """
        text, at = self._text(content), from_ms(self._opened.now())
        check_choice(origin, facts.ORIGINS, name="origin")
        said = capped(origin, "user", caller=self._scope.trust)
        quarantine.check_words(text, tier=trust_of(said, "user"))
        fresh = new_id(self._opened.now())

        def decide(tx: Snapshot) -> tuple[Change, Node]:
            old = self._living(tx, id)
            shown = [evolution.evidence_for(old, tx.nodes.known(self._scope, each)).id for each in evidence]
            return evolution.correct(
                old, text, subjects=tx.nodes.subjects(old.key), at=at, new_id=fresh, origin=said, evidence=shown
            )

        return await self._noted("correct", decide)

    async def update(
        self, id: str, *, content: str | None = None, tags: Sequence[str] | None = None, attributes: Json | None = None
    ) -> Node:
        """Alter a memory in place; what is given takes the place of what was there, and `history` keeps that.

        Raises:
            InvalidError: nothing is given, or a field cannot be accepted.
            NotFoundError: there is none of that id.
            ConflictError: it is closed.
        """
        text = None if content is None else self._text(content)
        quarantine.check_words(text or "", tier=self._scope.trust)
        labels = None if tags is None else checked_tags(tags)
        values = None if attributes is None else checked_attributes(attributes)
        return await self._noted(
            "update",
            lambda tx: evolution.update(
                self._living(tx, id), content=text, tags=labels, attributes=values, caller=self._scope.trust
            ),
        )

    async def confirm(self, id: str) -> Node:
        """Say that a memory is right: it is sure from now on and does not fade. Raises as `reinforce` does."""
        at = from_ms(self._opened.now())
        return await self._write("confirm", lambda tx: evolution.confirm(self._living(tx, id), at=at))

    async def reinforce(self, id: str) -> Node:
        """Say that a memory was of use: its score rises (by 3, a setting; at most to 10), and its age counts from now.

        What is reinforced within the same minute proved useful together: later, one helps to find the other.

        Raises:
            NotFoundError: there is none of that id.
            ConflictError: it is closed.
        """
        amount, at = self._opened.settings.reinforce_amount, self._opened.now()

        def decide(tx: Snapshot) -> tuple[Change, Node]:
            node = self._living(tx, id)
            together = tx.graph.reinforced_with(node.owner, node.chat, node.id, at=at)
            return evolution.reinforce(node, amount, at=from_ms(at), together=together)

        return await self._write("reinforce", decide)

    async def demote(self, id: str) -> Node:
        """Say that a memory was of no use: its score falls (by 1, a setting; at most to -10), and it stays.

        Raises as `reinforce` does.
        """
        amount = self._opened.settings.demote_amount
        return await self._write("demote", lambda tx: evolution.demote(self._living(tx, id), amount))

    async def review(self, limit: int = 50, *, kind: ReviewKind | None = None) -> Sequence[Review]:
        """What waits for your word: conversations that could not be consolidated first, then pairs of facts that may
        conflict, what is held in quarantine, what may well hold together, and what a rule replaced by itself; the
        latest first.

        Args:
            kind: "quarantine", or another kind of `Review`, for those alone.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000, or there is no such kind.
        """
        most = checked_limit(limit)
        reviews.check_kind(kind)

        def ask_store(tx: Snapshot) -> Sequence[Review]:
            stuck = run_history.stuck(tx, self._scope) if kind in (None, "session") else []
            return [*stuck, *tx.reviews.listed(self._scope, most=most, kind=kind)][:most]

        return await self._opened.store.read(ask_store)

    async def resolve(self, item: Review | str, *, decision: Decision) -> Review:
        """Decide on what `review` lists.

        Args:
            item: the review, or its id.
            decision: of two facts, "replace" closes the older one, "keep old" the newer one; "keep both" leaves both
                live, each in its own place in answers. What a rule had closed comes back unless it is to be replaced.
                Of what is in quarantine, "approve" lets it into answers, with the trust it has, and "refuse" keeps it
                out, now and when it is said again. Of a conversation, "approve" has it tried again with the next run.

        Raises:
            InvalidError: there is no such decision, or not about this.
            NotFoundError: there is no review of that id.
            ConflictError: it is decided already, or what it is about has gone since.
            DeniedError: only a caller trusted as the user decides on what is in quarantine.
        """
        chosen, now = reviews.checked_decision(decision), self._opened.now()
        wanted = item.id if isinstance(item, Review) else item

        def decide(tx: Snapshot) -> tuple[Change, Review]:
            if isinstance(wanted, str) and wanted.startswith(run_history.SESSION):
                return run_history.try_again(tx, self._scope, wanted, chosen)
            review = reviews.found(tx, self._scope, wanted)
            if review.kind != "quarantine":
                return reviews.resolve(review, chosen, at=from_ms(now))
            return quarantine.decide(
                tx,
                review,
                chosen,
                caller=self._scope.trust,
                now=now,
                learn=lambda tx, node: facts.whom(tx, node, now=now),
            )

        return await self._noted("resolve", decide)

    async def forget(self, id: str, reason: str | None = None) -> None:
        """Take a memory out of every answer, with the sentences it came from and what was concluded from it, and do not
        learn it from them again. It goes to the archive, and `restore` brings it back; so does saying it anew.

        Raises:
            NotFoundError: there is none of that id.
        """
        at = from_ms(self._opened.now())

        def decide(tx: Snapshot) -> tuple[Change, None]:
            node = tx.nodes.known(self._scope, id)
            return forget.with_conclusions(tx, self._scope, node, forget.forget(node, at=at), at=at), None

        await self._write("forget", decide, said=reason)

    async def restore(self, id: str) -> Node:
        """Bring back what was forgotten or archived. What upkeep had closed is as if it were new: its age counts from
        now, and an expiry that is over is gone.

        Raises:
            NotFoundError: there is none of that id.
            ConflictError: a newer version took its place.
        """
        at = from_ms(self._opened.now())
        node = await self._write("restore", lambda tx: forget.restore(tx.nodes.known(self._scope, id), at=at))
        self._opened.backlog.note(1)
        return node

    async def erase(
        self,
        *,
        id: str | None = None,
        session: str | None = None,
        entity: str | None = None,
        owner: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ErasureReport:
        """Remove for good: the rows, what history says of them, what was derived from them alone, and every byte of it
        in the store's files. It cannot be undone. Returns what went, what was kept and why, and what is out of reach.

        Args:
            id: a memory, with the older versions it took the place of.
            session: a conversation, with everything said and learnt in it.
            entity: somebody or something by name or id, with every memory about it or naming it.
            owner: all of the caller's own memory; only their own name is accepted.
            dry_run: tell what would go, remove nothing.
            progress: called with (rows so far, rows in all).

        Raises:
            InvalidError: not exactly one thing is named.
            NotFoundError: there is no such thing.
            DeniedError: `owner` is somebody else.
        """
        asked = erasure.Asked(id=id, session=session, entity=entity, owner=owner)
        engine = self._opened
        return await erasure.erase(
            engine.store,
            asked,
            scope=self._scope,
            now=engine.now(),
            sought=entities.sought,
            dry_run=dry_run,
            progress=progress,
        )

    async def add_entity(
        self,
        name: str,
        *,
        type: EntityType = "person",
        aliases: Sequence[str] = (),
        relation: str | None = None,
        protected: bool = False,
    ) -> Entity:
        """Make a person, project, place or other thing known, so that what names it is linked to it.

        Raises:
            InvalidError: a field cannot be accepted.
            ConflictError: one of that name and type is known already.
        """
        now = self._opened.now()
        entity = entities.new_entity(name, scope=self._scope, now=now, type=type, aliases=aliases, protected=protected)
        added = await self._write(
            "add entity", lambda tx: entities.introduce(tx, entity, relation=relation, scope=self._scope, now=now)
        )
        self._opened.backlog.note(1)
        return added

    async def relate(
        self,
        target: str,
        predicate: str,
        *,
        source: str | None = None,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
    ) -> None:
        """Say what somebody is to you or, with `source`, to another: `relate("Acme", "employer", source="Sarah")`.

        Of a wife, a boss and the like there is one at a time: a new one ends the relation to the one before.

        Args:
            predicate: what `target` is to `source`; "wife" and "жена" are one.
            source: whose wife, employer, ...; yours when None.
            valid_from: since when; as long as anybody remembers when None.

        Raises:
            NotFoundError: nobody is known by one of the names.
            InvalidError: an argument does not fit.
        """
        engine = self._opened
        start = None if valid_from is None else from_ms(engine.instant(valid_from, "valid_from"))
        end = None if valid_until is None else from_ms(engine.instant(valid_until, "valid_until"))
        now, scope = engine.now(), self._scope
        await self._write(
            "relate",
            lambda tx: entities.relate(tx, source, predicate, target, scope=scope, now=now, start=start, end=end),
        )
        engine.backlog.note(1)

    async def merge(self, keep: str, other: str) -> Entity:
        """Two entities are one: the names, memories and relations of `other` are those of `keep` from now on.

        Args:
            keep: a name or an id; its name stays.
            other: a name or an id. `split` or undoing the commit takes it apart again.

        Raises:
            NotFoundError: one of them is not known.
            ConflictError: they are one already, or belong to different memories.
        """
        now = self._opened.now()
        return await self._write("merge", lambda tx: merging.merge(tx, keep, other, scope=self._scope, now=now))

    async def split(self, entity: str, names: Sequence[str]) -> tuple[Entity, Entity]:
        """One entity is two: `names` are another's, and the memories that used them follow. Returns both.

        Args:
            entity: a name or an id.
            names: who bore exactly these before a merge comes back; else somebody new is made of them.

        Raises:
            NotFoundError: the entity is not known, or not by such a name.
            InvalidError: no name is given, or none would be left.
        """
        engine = self._opened
        now = engine.now()
        parted = await self._write("split", lambda tx: merging.split(tx, entity, names, scope=self._scope, now=now))
        await engine.store.derive(lambda tx: merging.hand_over(tx, parted))
        engine.backlog.note(1)
        return parted.kept, parted.other

    # retrieval

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
        limit: int = 10,
        trace: bool = False,
        why_not: str | None = None,
    ) -> Results:
        """What matters for a question, best first: knowledge, and episodes that have not become knowledge yet.

        Args:
            type: "episodic" for all episodes, "semantic", "procedural" or "opinion" for that kind of knowledge,
                "any" for everything.
            where: keys and values the attributes must have.
            after, before: a time, or an expression such as "last_week" or "3 days ago"; `before` is exclusive.
            as_of: look among what was known at a time, or right after a change of that number, as it was then; the
                order is that of today's figures. Where a clock went back, the later of two moments is meant.
            archived: look among what was forgotten or replaced, instead.
            only_relevant: leave out what chance would bring up, too; `limit` is then a most and no hits may be right.
            trace: say how the answer came about.
            why_not: the id of a memory you had expected; `results.trace.absence` says where it fell out.

        Raises:
            InvalidError: an argument does not fit.
            NotFoundError: nobody is known by the name given as `entity`.
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
            limit=limit,
            trace=trace or why_not is not None,
            why_not=why_not,
        )
        return await service.search(self._asking, request)

    async def query(self, keywords: str, *, limit: int = 5) -> Results:
        """Recall by keywords an agent chose, from full text alone. Raises InvalidError as `search` does."""
        return await service.search(self._asking, Request(text=keywords, limit=limit, words_only=True))

    async def context(
        self,
        prompt: str,
        *,
        budget: int | None = None,
        session: str | None = None,
        as_of: datetime | str | int | None = None,
    ) -> str | None:
        """A markdown block of what an agent should know before it answers `prompt`, or None when nothing matters.

        Args:
            budget: the most tokens it may have; by default the setting `context_tokens`, half of it for a simple
                prompt, half more for a complex one.
            session: the conversation at hand: what was said in it is known to the agent and left out.
            as_of: from what was known at that time, as in `search`.

        Raises:
            InvalidError: an argument does not fit.
        """
        return (await self.context_parts(prompt, budget=budget, session=session, as_of=as_of)).text

    async def context_parts(
        self,
        prompt: str,
        *,
        budget: int | None = None,
        session: str | None = None,
        as_of: datetime | str | int | None = None,
    ) -> Context:
        """What `context` says, also in its parts: facts, people, what was said, and what that rests on.

        Args:
            budget, session, as_of: as in `context`.

        Raises:
            InvalidError: an argument does not fit.
        """
        return await sections.brief(self._asking, prompt, budget=budget, session=session, as_of=as_of)

    async def get(self, id: str, *, as_of: datetime | str | int | None = None) -> Node:
        """A memory by its id, closed ones too; `as_of` a time (as in `search`), as it was then.

        Raises:
            NotFoundError: there is none, or there was none then.
            InvalidError: `as_of` is no time and no change's number.
        """
        return await past.read(self._asking, lambda tx: tx.nodes.known(self._scope, id), as_of)

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
        """Memories, the latest recorded first, in pages. The conditions are those of `search`.

        Raises:
            InvalidError: an argument does not fit.
            NotFoundError: nobody is known by the name given as `entity`.
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
        return await listing.page(self._asking, request, cursor=cursor)

    async def entity(self, name: str, *, limit: int = 10, as_of: datetime | str | int | None = None) -> Profile:
        """What is known of a person, project, place or other thing.

        Args:
            name: any of its names, in any script; "my wife"; or its id.
            limit: the most facts, and the most mentions, it brings.

        Raises:
            NotFoundError: nobody and nothing goes by that name.
            InvalidError: it may be one of several.
        """
        now, most = self._opened.now(), checked_limit(limit)
        wanted = checked_name(name)
        return await past.read(
            self._asking, lambda tx: profile.profile(tx, self._scope, wanted, now=tx.current(now), limit=most), as_of
        )

    async def people(self, *, limit: int = 100) -> Sequence[Entity]:
        """Who is known, those who are named most often first.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000.
        """
        most = checked_limit(limit)
        return await self._opened.store.read(lambda tx: profile.known_people(tx, self._scope, most=most))

    # consolidation

    async def consolidate(self, session: str | None = None, *, dry_run: bool = False) -> Run:
        """Have the language model turn conversations into knowledge, one commit each, under one run that `undo` takes
        back. What cannot be had from the model leaves a conversation waiting; the run's items say why. Without a model
        what is said plainly is kept by rule, and conversations wait on.

        Args:
            session: this conversation only; all that wait, but those that failed three times, when None.
            dry_run: ask the model and say what would be done, and leave everything as it is.

        Raises:
            NotFoundError: nothing was said in that session.
            DeniedError: the caller speaks for a tool or a page.
        """
        from ricordo.consolidation import run as running  # brings pydantic, which takes a tenth of a second

        check_may_alter(self._scope.trust)
        await self._opened.exchanges.leave(self._scope, session)
        run = await running.consolidate(self._opened.house(self._scope), session, dry_run=dry_run)
        self._opened.backlog.note(len(run.items))
        return run

    async def extract(self, session: str | None = None, *, dry_run: bool = False) -> Run:
        """Take from conversations that go on what was said since they were last read: by the language model, or what is
        said plainly by rule. They wait on, and `consolidate` repeats nothing of it. With `extraction_enabled` this is
        done by itself whenever a conversation pauses.

        Args:
            session: this conversation only; all that wait when None.
            dry_run: ask the model and say what would be kept, and leave everything as it is.

        Raises:
            NotFoundError: nothing was said in that session.
            DeniedError: the caller speaks for a tool or a page.
        """
        from ricordo.consolidation import extraction

        check_may_alter(self._scope.trust)
        run = await extraction.extract(self._opened.house(self._scope), session, dry_run=dry_run)
        self._opened.backlog.note(len(run.items))
        return run

    async def replay(self, run: str, *, model: str | LanguageModel | None = None) -> Run:
        """What another model (or this one, again) makes of a run's conversations, beside what is known: "added" is new,
        "repeated" known, "missing" what the run made and the model did not find. Nothing is changed; what is found can
        be accepted for 30 days.

        Raises:
            NotFoundError: there is no such run.
            InvalidError: there is no such model.
            UnavailableError: no model is chosen, or it cannot be had.
        """
        from ricordo.consolidation import run as running

        house = self._opened.house(self._scope, model=model)
        return await running.replay(house, await self.run(run))

    async def accept(self, run: Run | str, items: Sequence[int] | None = None) -> Run:
        """Take over what a replay found, as one change under its id: what is "added" comes, what is "missing" is closed
        unless anybody touched it or it was said again since. `undo` takes it back. Returns what was done.

        Args:
            run: what `replay` returned, or its id.
            items: only these of its items, by their numbers, counted from 1.

        Raises:
            NotFoundError: there is no such replay, or something was erased since.
            InvalidError: it has no such item, or one that cannot be accepted.
            ConflictError: a message that was read has changed since, or the replayed run was undone.
            DeniedError: the caller speaks for a tool or a page.
        """
        from ricordo.consolidation import run as running

        check_may_alter(self._scope.trust)
        wanted = run.id if isinstance(run, Run) else run
        done = await running.accept(self._opened.house(self._scope), wanted, items)
        self._opened.backlog.note(len(done.items))
        return done

    async def summarise(self, session: str) -> str:
        """A conversation in a few sentences, by the language model: kept with the session, and returned. For whoever
        goes on with it, or before an agent's own record of it is cut short.

        Raises:
            NotFoundError: nothing was said in that session.
            UnavailableError: no model is chosen, or it gave no summary.
        """
        from ricordo.consolidation import run as running

        check_may_alter(self._scope.trust)
        return await running.summarise(self._opened.house(self._scope), session)

    async def reflect(
        self, *, after: datetime | str = "7 days ago", before: datetime | str | None = None, dry_run: bool = False
    ) -> Run:
        """Have the language model look back on what was learnt in a span of time: what several memories show together
        is kept as memories of the category "reflection", with what each rests on. `undo` of the run takes it back.

        Args:
            after, before: the span, as in `search`; until now when `before` is None.
            dry_run: ask the model and say what would be kept, and leave everything as it is.

        Raises:
            InvalidError: a time cannot be read.
            UnavailableError: no model is chosen.
            DeniedError: the caller speaks for a tool or a page.
        """
        from ricordo.consolidation import reflection

        check_may_alter(self._scope.trust)
        engine = self._opened
        start = engine.instant(after, "after")
        end = engine.now() + 1 if before is None else engine.instant(before, "before")
        run = await reflection.reflect(engine.house(self._scope), after=start, before=end, dry_run=dry_run)
        engine.backlog.note(len(run.items))
        return run

    async def enrich(self, *, dry_run: bool = False) -> Run:
        """Have the language model say in a sentence or two who somebody is, for those who are named in at least three
        memories and have no summary yet. It is a memory of its own, too. `maintain` does so every night; arguments and
        errors are those of `reflect`.
        """
        from ricordo.consolidation import enrichment

        check_may_alter(self._scope.trust)
        run = await enrichment.enrich(self._opened.house(self._scope), dry_run=dry_run)
        self._opened.backlog.note(len(run.items))
        return run

    async def infer_causes(self, *, dry_run: bool = False) -> Run:
        """Have the language model look for what led to what, among messages that follow one another, where somebody
        says so in words: at most 50 pairs, the next run goes on. `maintain` does so every night; arguments and errors
        are those of `reflect`.
        """
        from ricordo.consolidation import causal

        check_may_alter(self._scope.trust)
        return await causal.infer_causes(self._opened.house(self._scope), dry_run=dry_run)

    async def runs(self, limit: int = 50) -> Sequence[Run]:
        """Runs, the latest first, without the texts of what they did; `run` brings those.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000.
        """
        most = checked_limit(limit)
        return await self._opened.store.read(lambda tx: tx.runs.listed(self._scope, most=most))

    async def run(self, id: str) -> Run:
        """One run, with what the memories it made and touched say now.

        Raises:
            NotFoundError: there is none of that id, or it was undone.
        """
        return await self._opened.store.read(lambda tx: run_history.found(tx, self._scope, id))

    # time and figures

    async def history(self, id: str, *, as_of: datetime | str | int | None = None) -> Sequence[Version]:
        """Every version of a memory, oldest first, each with the commit that made it; what it replaced and what
        replaced it belong to it. `as_of` a time, up to then.

        Raises:
            NotFoundError: there is none of that id, or was none then.
            InvalidError: `as_of` is no time and no change's number.
        """
        return await past.read(self._asking, lambda tx: listing.history(tx, self._scope, id), as_of)

    async def log(self, limit: int = 50, *, before: int | None = None) -> Sequence[Commit]:
        """The latest changes, newest first; `before` a sequence number goes further back.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000, or `before` is no whole number.
        """
        most, below = checked_limit(limit), checked_position(before, name="before")
        return await self._opened.store.read(lambda tx: tx.history.commits(self._scope, before=below, most=most))

    async def timeline(
        self,
        *,
        entity: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        as_of: datetime | str | int | None = None,
        limit: int = 50,
    ) -> Sequence[Node]:
        """What happened, in order of event time: messages and knowledge, the latest `limit` of the span.

        Args:
            entity: only what is linked to this person or thing.
            after, before: a time or an expression, as in `search`.
            as_of: from what was known at that time, as in `search`.

        Raises:
            InvalidError: an argument does not fit.
            NotFoundError: nobody is known by the name given as `entity`.
        """
        request = Request(entity=entity, after=after, before=before, as_of=as_of, limit=limit)
        return await observing.timeline(self._asking, request)

    async def explain(self, id: str, *, as_of: datetime | str | int | None = None) -> Explanation:
        """Why a memory is here and what becomes of it: its change and run, what it rests on, what it replaced and what
        replaced it, its versions and links, and when it fades.

        Raises:
            NotFoundError: there is none of that id, or was none at `as_of`.
            InvalidError: `as_of` is no time and no change's number.
        """
        now, closes = self._opened.now(), self._opened.settings.decay_closes
        often = self._opened.settings.protect_mentions

        def read(tx: Snapshot) -> Explanation:
            return observing.explain(tx, self._scope, id, now=tx.current(now), closes=closes, often=often)

        return await past.read(self._asking, read, as_of)

    async def undo(self, commit_or_run: int | str, *, with_later: bool = False) -> Commit:
        """Take a change back: everything it touched becomes what it was before. Returns the undoing, which is a
        change itself and can be undone.

        Args:
            commit_or_run: the number of a change, as `log` shows it, or the id of a run: all changes of it.
            with_later: take back the later changes that build on it, too.

        Raises:
            NotFoundError: there is no such change or run.
            ConflictError: later changes build on it (`error.commits` lists them), it is undone already, or what it
                touched was erased.
        """

        def decide(tx: Snapshot) -> tuple[Change, int]:
            return undo.undo(tx, self._scope, commit_or_run, with_later=with_later), tx.history.next_commit()

        also = " and what builds on it" if with_later else ""
        number = await self._write("undo", decide, said=f"undo of {str(commit_or_run)[:100]}{also}")
        self._opened.backlog.note(1)
        return await self._opened.store.read(lambda tx: tx.history.made(number))

    async def stats(self) -> Stats:
        """What this memory holds. The size is that of the store for who opened it; for others, of their own texts."""
        return await self._opened.store.read(
            lambda tx: tx.statistics.summary(self._scope, whole_store=self._owns_engine)
        )

    # upkeep

    async def weak(self, limit: int = 20) -> Sequence[Weak]:
        """What is low in confidence, has faded or soon will, or is soon over: what upkeep will close first, the first
        to go first, then what stays, the weakest first. `confirm` or `reinforce` keeps it.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000.
        """
        most = checked_limit(limit)
        return await weak.weak(await self._opened.upkeep(self._scope), limit=most)

    async def archive(self, limit: int = 50, *, reason: ClosedReason | None = None) -> Archive:
        """What ended, the latest first, with counts by reason. `search(..., archived=True)` searches it, and `restore`
        brings one back.

        Raises:
            InvalidError: `limit` is not from 1 to 1,000, or there is no such reason.
        """
        most = checked_limit(limit)
        if reason is not None:
            check_choice(reason, frozenset(get_args(ClosedReason)), name="reason")
        return await self._opened.store.read(lambda tx: listing.archive(tx, self._scope, reason, limit=most))

    async def gc(
        self, *, dry_run: bool = False, all_owners: bool = False, progress: Progress | None = None
    ) -> ArchiveReport:
        """Take to the archive what is over: expired, past the lifetime of its category, faded (as `decay_closes`
        says), or too much for `max_entries`. Running it again changes nothing.

        Args:
            dry_run: say what would go, and leave it.
            all_owners: everybody's memories, not only those of this scope. For who opened the store.
            progress: called with (memories so far, memories in all).

        Raises:
            DeniedError: `all_owners` by a scoped caller.
        """
        return await gc.gc(await self._upkeep(dry_run=dry_run, all_owners=all_owners, progress=progress))

    async def prune(
        self, *, dry_run: bool = False, all_owners: bool = False, progress: Progress | None = None
    ) -> ArchiveReport:
        """Take the least of what is known to the archive until the rest fits into `max_size` bytes, one in a hundred
        at a time; nothing where that is not set. Running it again changes nothing. Arguments and errors are those of
        `gc`.
        """
        return await gc.prune(await self._upkeep(dry_run=dry_run, all_owners=all_owners, progress=progress))

    async def maintain(
        self, *, dry_run: bool = False, all_owners: bool = False, progress: Progress | None = None
    ) -> MaintenanceReport:
        """A night's work, step by step: conversations that are over become knowledge, then `gc` and `prune`, `enrich`
        and `infer_causes` (where there is a model), then tidying up inside. Arguments and errors are those of `gc`; a
        step that fails says so.
        """
        return await maintain.maintain(await self._upkeep(dry_run=dry_run, all_owners=all_owners, progress=progress))

    async def _upkeep(self, *, dry_run: bool, all_owners: bool, progress: Progress | None) -> Upkeep:
        check_may_alter(self._scope.trust)
        if all_owners and not self._owns_engine:
            raise DeniedError("all_owners: only who opened the store looks after everybody's", hint="leave it out")
        scope = None if all_owners else self._scope
        return await self._opened.upkeep(scope, dry_run=dry_run, progress=progress)

    async def doctor(self, *, fix: bool = False) -> Report:
        """Look for damage: pages, schema, seals, the chain of commits, indexes, permissions, the files of a folder.
        Changes nothing, unless `fix`: then what is safe is done, nothing is deleted, and the report is of afterwards.
        """
        store = self._opened.store
        report = await store.doctor()
        if fix and not report.ok:
            await store.mend(report)
            report = await store.doctor()
        return report

    async def rebuild_index(self, *, progress: Progress | None = None) -> int:
        """Make the index of a folder anew from its files, without asking the embedding model. Returns how many lines
        were read.

        Args:
            progress: called with (lines so far, lines in all).

        Raises:
            InvalidError: the store is a single file.
        """
        return await self._opened.store.rebuild(progress)

    async def migrate(self, path: str | Path) -> None:
        """Copy the whole store, history included, to one of the other kind: a folder of plain files where the path
        ends in a slash, else a single file. This store stays as it is.

        Raises:
            InvalidError: there is something at the path.
        """
        await asyncio.to_thread(self._opened.store.migrate, path)

    async def backup(self, path: str | Path) -> Backup:
        """Copy the whole store to a new file, also while others write; the plain files of a folder to a new folder
        where the path ends in a slash. A manifest beside the file, or in the folder, says what the copy holds.

        Returns:
            What the manifest says.

        Raises:
            InvalidError: there is something at the path, or a single file is to become a folder.
        """
        return await asyncio.to_thread(back_up, self._opened.store, path, now=from_ms(self._opened.now()))

    @staticmethod
    async def verify_backup(path: str | Path) -> Report:
        """A drill: try a backup without touching it or any store. A copy of it is compared with its manifest, opened,
        looked through as by `doctor`, and asked for a memory.

        Raises:
            NotFoundError: there is no backup at the path.
        """
        return await asyncio.to_thread(verify_backup, path)

    @staticmethod
    async def restore_backup(path: str | Path, location: str | Path, *, replace: bool = False) -> Restored:
        """Make a store at a location from a backup, once the drill of `verify_backup` has found it sound: all of it or
        nothing.

        Args:
            location: a file's path; a folder's, which exists or ends in a slash, to have plain files.
            replace: what is at the location gives way; it is kept beside, under the name that is returned.

        Raises:
            NotFoundError: there is no backup at the path.
            InvalidError: there is something at the location, and `replace` was not given.
            UnavailableError: somebody has the file open that is to be replaced.
        """
        now = from_ms(SystemClock().now())
        return await asyncio.to_thread(restore_backup, path, location, replace=replace, now=now)

    async def import_(
        self, path: str | Path, *, format: str | None = None, dry_run: bool = False, progress: Progress | None = None
    ) -> ImportReport:
        """Bring in what another memory or a chat left: messages, facts, people and how they hang together.

        What is there already is left as it is, so bringing in the same again adds nothing, and an import that was
        interrupted is simply repeated. Facts keep the time they were observed and get the origin "import"; they close
        none that is here, `review` lists what may not hold beside another.

        Everything that `export` took along comes back as it was into an empty store of the same owner; into another
        come its memories.

        Args:
            path: a file, or a folder for formats of several files.
            format: "jsonl" (everything that `export` took along), "markdown", "memories-jsonl", "memories-sqlite",
                "mcp", "mem0", "langgraph", "chatgpt", "claude", "chat" (JSON lines of role or speaker, text, time,
                session) or "locomo"; told from the content when None.
            dry_run: read and check everything, record nothing.
            progress: called with (records so far, records in all).

        Raises:
            InvalidError: it cannot be read, or is of no known format.
        """
        from ricordo.portability.import_path import Hands, bring
        from ricordo.portability.pipeline import Importing

        engine = self._opened
        store = engine.store
        report = await bring(
            Path(path),
            format=format,
            importing=Importing(
                scope=self._scope,
                now=engine.now(),
                instant=engine.instant,
                rules=engine.rules,
                holds_untrusted=engine.settings.untrusted_knowledge == "hold",
            ),
            hands=Hands(write=partial(self._noted, "import"), read=store.read, derive=store.derive, place=store.path),
            progress=progress,
            dry_run=dry_run,
        )
        engine.backlog.note(report.added)
        return report

    async def export(
        self, path: str | Path, *, format: str = "jsonl", progress: Progress | None = None
    ) -> ExportReport:
        """Take along what this caller may see.

        Args:
            path: a new file; for "markdown" a new folder, unless the name ends in `.md`.
            format: "jsonl" for everything, with history, provenance and vectors, which `import_` makes an equal store
                of; "markdown" to read, by person and category; "mcp" for the MCP reference server. The last two hold
                the knowledge that holds now.
            progress: called with (lines so far, lines in all).

        Raises:
            InvalidError: there is something at `path`, or there is no such format.
            StoreError: it cannot be written; nothing is left of it.
        """
        from ricordo.portability import export as leaving

        engine = self._opened
        leave = leaving.Leaving(path=Path(path), scope=self._scope, now=engine.now(), zone=engine.zone)
        return await engine.store.look(leaving.writer_of(format, leave, progress))

    # inside

    @property
    def _opened(self) -> Engine:
        if self._engine is None:
            raise UnavailableError("the memory is not open", hint="use `async with Memory.open(...)`")
        return self._engine

    @property
    def _asking(self) -> service.Asking:
        return self._opened.asking(self._scope)

    @property
    def scope(self) -> Scope:
        """Whose memory this is."""
        return self._scope

    def _text(self, content: str) -> str:
        return storable(content, name="content", rules=self._opened.rules)

    def _living(self, tx: Snapshot, id: str) -> Node:
        return evolution.living(tx, self._scope, tx.nodes.known(self._scope, id))

    async def _noted(self, verb: str, decide: Callable[[Snapshot], tuple[Change, T]]) -> T:
        """Write what may need a new vector."""
        result = await self._write(verb, decide)
        self._opened.backlog.note(1)
        return result

    def _reason(self, verb: str, said: str | None = None) -> Reason:
        if said is not None and (not isinstance(said, str) or len(said) > 500):
            raise InvalidError("reason must be text of at most 500 characters")
        check_encodable(said or "", name="reason")
        return Reason(actor=self._scope.owner or self._scope.chat or "", origin=verb, reason=said or verb)

    async def _write(self, verb: str, decide: Callable[[Snapshot], tuple[Change, T]], *, said: str | None = None) -> T:
        engine = self._opened
        if verb not in _ADDING:
            check_may_alter(self._scope.trust)
        reason = self._reason(verb, said)
        return await engine.store.write(decide, scope=self._scope, reason=reason, at=from_ms(engine.now()))


def _checked(scope: Scope) -> Scope:
    check_choice(scope.trust, get_args(Trust), name="scope.trust")
    for name, value in (("owner", scope.owner), ("chat", scope.chat)):
        if value is not None and (not isinstance(value, str) or len(value) > 500 or "\0" in value):
            raise InvalidError(f"scope.{name} must be text of at most 500 characters")
        check_encodable(value or "", name=f"scope.{name}")
    if not scope.owner and not scope.chat:
        raise InvalidError("scope: neither owner nor chat is given", hint="say whose memory it is")
    return scope


def _claimed(messages: Sequence[Message]) -> frozenset[str]:
    return frozenset(message.id for message in messages if message.id is not None)
