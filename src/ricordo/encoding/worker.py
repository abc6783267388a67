"""What is done in the background: names are linked, and what lacks a vector gets one.

Nothing is queued: what remains to be done is asked of the store, so a crash loses nothing. One process at a time
does it, by a lease; the others wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from ricordo.encoding.linker import links
from ricordo.encoding.mentions import mentions
from ricordo.errors import RicordoError, UnavailableError
from ricordo.models.embedding.vectors import embed_with_words
from ricordo.ports import Embedder
from ricordo.storage import Snapshot, Store
from ricordo.storage import values as values_
from ricordo.storage.database import fulltext
from ricordo.text.kinship import stems_of
from ricordo.text.names import candidates

_log = logging.getLogger("ricordo.backlog")

_LEASE = "backlog"
_LEASE_MS = 10_000
_LINK_BATCH = 500
_POLL_S = (0.1, 1.0)  # how often to look for what other processes wrote: soon after work, seldom when idle
_COMPANY_S = 0.05
_RETRY_S = 60.0  # a text whose embedding failed is tried again after this


@dataclass(slots=True)
class _Cursor:
    """Where the search for missing vectors goes on, so that a million done ones are not looked at each time. It holds
    for one `generation` of the database: a rebuilt one counts its removals from the start.
    """

    generation: int
    after: int
    removals: int
    noted: tuple[int, int]
    failed: bool = False
    is_behind: bool = False
    started: float = 0.0


class Backlog:
    """One background task per opened store."""

    def __init__(
        self, store: Store, *, embedder: Embedder | None, model: values_.EmbeddingModel | None, batch: int
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._model = model
        self._batch = batch
        self._holder = f"{os.getpid()}-{id(self):x}"
        self._leased_until = 0
        self._cursor: _Cursor | None = None
        self._closing = False
        self._wake = asyncio.Event()
        self._urgent = asyncio.Event()
        self._idle = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.fresh = 0
        """How many memories this process wrote since the backlog was last empty."""
        self._noted = self._done = 0
        """How many memories were noted since the start, and up to which of them all is done."""
        self._is_cut = self._is_joining = False
        self._step = asyncio.Condition()
        self._task = self._loop.create_task(self._run(), name="ricordo-backlog")

    @property
    def model(self) -> values_.EmbeddingModel | None:
        """The model that gets vectors now."""
        return self._model

    def note(self, count: int) -> None:
        """Something was written. Callable from any thread."""
        was_idle, self.fresh = self.fresh == 0, self.fresh + count
        self._noted += count
        if was_idle:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the next opening finds the work
                self._loop.call_soon_threadsafe(self._wake.set)

    def _begin(self) -> None:
        """Somebody waits: do not wait for company."""
        self._idle.clear()
        self._wake.set()
        self._urgent.set()

    def hurry(self) -> None:
        """What this process wrote is about to be asked for."""
        if self.fresh and not self._closing:
            self._begin()

    async def caught_up(self, timeout_s: float) -> bool:
        """Wait until what this process wrote so far is done, but not for long, nor for what others write meanwhile."""
        if self.fresh == 0 or self._closing or self._done >= self._noted:
            return self.fresh == 0 or self._done >= self._noted
        so_far = self._noted
        self._begin()
        try:
            async with asyncio.timeout(timeout_s), self._step:
                await self._step.wait_for(lambda: self._done >= so_far or self._closing)
        except TimeoutError:
            return False
        return self._done >= so_far

    async def settle(self, timeout_s: float | None) -> None:
        """Wait until nothing is left to do, in the whole store.

        Raises:
            UnavailableError: not done in time.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        await self._store.derive(lambda _: None)  # behind every write that is queued already
        if self._cursor is not None and self._cursor.failed:
            self._cursor.after, self._cursor.failed = 0, False  # whoever waits wants another try now
        while not self._closing:
            self._begin()
            left = None if deadline is None else deadline - time.monotonic()
            if (left is not None and left <= 0) or not await self._wait(left):
                raise UnavailableError("background work is not done yet", hint="wait longer; nothing is lost")
            if self._has_failed or not await self._store.read(self._is_left):
                return
            await asyncio.sleep(_POLL_S[0])  # another process holds the lease

    async def _wait(self, timeout_s: float | None) -> bool:
        try:
            await asyncio.wait_for(asyncio.shield(self._idle.wait()), timeout_s)
        except TimeoutError:
            return False
        return True

    def _is_left(self, snapshot: Snapshot) -> bool:
        return bool(
            self._lacking(snapshot, 1)
            or any(snapshot.mentions.unlinked(space, 1) for space in snapshot.mentions.spaces_with_names())
            or snapshot.mentions.spaces_to_link()
            or snapshot.mentions.new_names()
            or snapshot.mentions.new_relations()
        )

    async def close(self) -> None:
        """Stop after the batch at hand. What is left is found at the next opening."""
        self._closing = True
        self._begin()
        await asyncio.shield(self._task)  # a cancelled `close` must not cut the batch in two

    # the task

    async def _run(self) -> None:
        pause = 0
        while not self._closing:
            self._wake.clear()
            self._urgent.clear()
            noted, so_far, self._is_cut = self.fresh, self._noted, False
            try:
                busy = await self._hold() and await self._pass()
            except RicordoError as error:
                _log.warning("background work is put off: %s", error)
                busy = False
            except Exception:  # noqa: BLE001 - a dead task would leave `settle` waiting for ever
                _log.exception("background work failed; it is tried again")
                busy = False
            if not self._is_cut:
                await self._tell_done(so_far)
            pause = 0 if busy else min(pause + 1, 10)
            if busy:
                continue
            self.fresh -= noted
            if self.fresh == 0:
                self._idle.set()
                await self._rest(_POLL_S[0] if pause < 10 else _POLL_S[1])
        self._idle.set()
        await self._tell_done(self._done)
        await self._let_go()

    async def _tell_done(self, through: int) -> None:
        """Searches that wait for no more than that need wait no longer."""
        async with self._step:
            self._done = through
            self._step.notify_all()

    async def _let_go(self) -> None:
        """Give the lease back; where that cannot be written, it runs out."""
        if self._leased_until:
            with contextlib.suppress(RicordoError):
                await self._store.derive(lambda tx: tx.rows("lease_drop", {"name": _LEASE, "holder": self._holder}))

    async def _rest(self, seconds: float) -> None:
        """Until something is written, or so long. Messages come in company: a moment's wait does them together, and
        leaves the processor to whoever writes them.
        """
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
            await asyncio.wait_for(self._urgent.wait(), _COMPANY_S)

    async def _hold(self) -> bool:
        """Whether the lease is ours; taken or prolonged only when there is something to do."""
        now = time.time_ns() // 1_000_000  # between processes: the machine's clock, not one a test moves
        if self._leased_until - now > _LEASE_MS // 2:
            return True
        if not await self._store.read(self._is_worth_a_lease):
            return False
        values = {"name": _LEASE, "holder": self._holder, "until": now + _LEASE_MS, "now": now}
        taken = await self._store.derive(lambda tx: tx.rows("lease_take", values))
        self._leased_until = now + _LEASE_MS if taken else 0
        return bool(taken)

    def _is_worth_a_lease(self, snapshot: Snapshot) -> bool:
        return (
            bool(self._lacking(snapshot, 1))
            or any(snapshot.mentions.unlinked(space, 1) for space in snapshot.mentions.spaces_with_names())
            or bool(snapshot.mentions.spaces_to_link())
            or bool(snapshot.mentions.new_names() or snapshot.mentions.new_relations())
            or any(self._needs_change(model) for model in snapshot.models.known())
            or bool(self._serves(snapshot) and snapshot.models.centres_due(self._key))
            or self._joins(snapshot)
        )

    def _needs_change(self, model: values_.EmbeddingModel) -> bool:
        is_mine = self._model is not None and model.key == self._model.key
        return model.state == "retiring" or (model.state == "coming" and is_mine)

    async def _pass(self) -> bool:
        """Some of everything. Returns whether there may be more."""
        steps: tuple[Callable[[], object], ...] = (
            self._link,
            self._link_again,
            self._link_new_names,
            self._link_new_relations,
            self._embed,
            self._centre,
            self._change_model,
            self._join_words,
        )
        busy = False
        for step in steps:
            busy = bool(await step()) or busy  # type: ignore[misc]
        return busy

    async def _link(self) -> bool:
        found = False
        for space in await self._store.read(lambda tx: tx.mentions.spaces_with_names()):
            texts = await self._store.read(lambda tx, space=space: tx.mentions.unlinked(space, _LINK_BATCH))  # type: ignore[misc]
            if texts:
                found, self._is_cut = True, self._is_cut or len(texts) == _LINK_BATCH
                await self._link_texts(space, texts, through=texts[-1].key)
        return found

    async def _link_again(self) -> bool:
        """What was altered or came back, and what had a name that is none any more."""
        spaces = await self._store.read(lambda tx: tx.mentions.spaces_to_link())
        for space in spaces:
            noted = await self._store.read(lambda tx, space=space: tx.mentions.to_link(space, _LINK_BATCH))  # type: ignore[misc]
            notes, keys = [note for note, _ in noted], sorted({key for _, key in noted})
            self._is_cut = self._is_cut or len(noted) == _LINK_BATCH
            pairs = await self._store.read(lambda tx, space=space, keys=keys: links(tx, space, keys))  # type: ignore[misc]
            await self._store.derive(
                lambda tx, notes=notes, keys=keys, pairs=pairs: tx.mentions.put_links_again(notes, keys, pairs)  # type: ignore[misc]
            )
        return bool(spaces)

    async def _link_texts(self, space: int, texts: list[values_.LinkText], *, through: int | None) -> None:
        keys, sounds = candidates(text.text for text in texts)
        known, holders, owner = await self._store.read(
            lambda tx: (
                tx.mentions.known_names(space, keys, sounds),
                tx.mentions.holders_of(space),
                tx.mentions.owner_of(space),
            )
        )
        pairs = mentions(texts, known, holders=holders, owner=owner)

        def write(tx: Snapshot) -> None:
            if through is None:  # what is known now may also mean that somebody else was meant before
                tx.mentions.drop_all_links([text.key for text in texts])
            tx.mentions.put_links(pairs)
            if through is not None:
                tx.mentions.mark_linked(space, through)

        await self._store.derive(write)

    async def _link_new_names(self) -> bool:
        """Older memories are searched for the names that were learnt since."""
        fresh = await self._store.read(lambda tx: tx.mentions.new_names())
        for space, _, name, _, _ in fresh:
            await self._link_holding(space, name)
        if fresh:
            await self._store.derive(lambda tx: tx.mentions.mark_names(fresh[-1][4]))
        return bool(fresh)

    async def _link_new_relations(self) -> bool:
        """What speaks of "my wife" is searched again when it is learnt who that is, or was."""
        fresh = await self._store.read(lambda tx: tx.mentions.new_relations())
        for space, predicate, _ in fresh:
            for words in stems_of(predicate):
                await self._link_holding(space, words)
        if fresh:
            await self._store.derive(lambda tx: tx.mentions.mark_relations(fresh[-1][2]))
        return bool(fresh)

    async def _link_holding(self, space: int, words: str) -> None:
        texts = await self._store.read(lambda tx: tx.mentions.texts_with(space, words, most=100_000))
        for start in range(0, len(texts), _LINK_BATCH):
            await self._link_texts(space, texts[start : start + _LINK_BATCH], through=None)

    async def _embed(self) -> bool:
        """One batch of what lacks a vector."""
        if self._embedder is None or self._model is None:
            return False
        rows = await self._store.read(lambda tx: self._lacking(tx, self._batch))
        cursor = self._cursor
        if cursor is None:
            return False
        cursor.is_behind = bool(rows)
        self._is_cut = self._is_cut or len(rows) == self._batch
        if not rows:
            await self._note_progress()
            return False
        from ricordo.storage.database.embeddings import pack_full_shelves, put_vectors
        from ricordo.storage.values import NewVectors

        model = self._model
        texts = [_embedded_text(content, who) for _, content, who in rows]
        made = await embed_with_words(self._embedder, texts, kind="passage")
        found = [
            NewVectors(key=key, content=content, vector=new.vector, pieces=new.pieces, words=new.words)
            for (key, content, _), new in zip(rows, made, strict=True)
            if new.vector is not None
        ]
        left = await self._store.derive(lambda tx: put_vectors(tx, model.key, model.dimension, found))
        cursor.after = rows[-1][0] if left is None else left - 1
        if len(found) < len(rows):
            cursor.failed, cursor.started = True, time.monotonic()
        while await self._store.derive(pack_full_shelves):
            pass
        return True

    async def _centre(self) -> bool:
        """The mean that ranking takes from vectors follows a shelf as it grows."""
        model = self._model
        if model is None or self._cursor is None or self._cursor.is_behind:
            return False
        from ricordo.storage.database.embeddings import recentre

        return await self._store.derive(lambda tx: recentre(tx, model.key, model.dimension))

    def _joins(self, snapshot: Snapshot) -> bool:
        return self._is_joining or fulltext.is_fragmented(snapshot)

    async def _join_words(self) -> bool:
        """The word index becomes one part, some milliseconds' worth at a time."""
        if await self._store.read(self._joins):
            self._is_joining = await self._store.derive(fulltext.merge_step)
        return self._is_joining

    def _lacking(self, snapshot: Snapshot, most: int) -> list[tuple[int, str, str | None]]:
        if not self._serves(snapshot):
            return []
        self._rewind(snapshot)
        assert self._cursor is not None
        values = {"model": self._key, "after": self._cursor.after, "most": most}
        return [(row[0], row[1], row[2]) for row in snapshot.rows("lacking", values)]

    @property
    def _has_failed(self) -> bool:
        return self._cursor is not None and self._cursor.failed

    @property
    def _key(self) -> int:
        return self._model.key if self._model else 0

    def _serves(self, snapshot: Snapshot) -> bool:
        """Whether the store still wants our model: another process may have brought it another one since."""
        return any(known.key == self._key and known.state != "retiring" for known in snapshot.models.known())

    def _rewind(self, snapshot: Snapshot) -> None:
        """Go back to what lost its vector since, and now and then to the beginning where embedding failed."""
        generation = self._store.generation
        if self._cursor is None or self._cursor.generation != generation:
            self._cursor = _Cursor(generation, *snapshot.models.progress(self._key))
        cursor = self._cursor
        if cursor.failed and time.monotonic() - cursor.started > _RETRY_S:
            cursor.after, cursor.failed = 0, False
        removals, least = snapshot.models.lost_since(cursor.removals)
        cursor.removals = removals
        if least is not None:
            cursor.after = min(cursor.after, least - 1)

    async def _note_progress(self) -> None:
        """Everything up to here has its vector: the next opening need not look at it again."""
        cursor, key = self._cursor, self._key
        if cursor is None or cursor.failed or (cursor.after, cursor.removals) == cursor.noted:
            return
        cursor.noted = (cursor.after, cursor.removals)

        def note(tx: Snapshot) -> None:
            if self._store.generation == cursor.generation:
                tx.models.note_progress(key, *cursor.noted)

        await self._store.derive(note)

    async def _change_model(self) -> bool:
        """When the coming model has every vector it takes over, and the old one's are dropped bit by bit."""
        known = await self._store.read(lambda tx: tx.models.known())
        mine = next((model for model in known if self._model and model.key == self._model.key), None)
        if mine is not None and mine.state == "coming" and not self._has_failed:
            if not await self._store.derive(lambda tx: tx.models.switch(mine.key)):
                if self._cursor is not None:
                    self._cursor.after = 0
                return True
            _log.info("the store now answers from %s", mine.name)
        return await self._store.derive(lambda tx: tx.models.drop_retired())


def _embedded_text(content: str, speaker: str | None) -> str:
    """Who said it is part of what it means: with the speaker, LoCoMo's recall from vectors alone nearly doubles."""
    return f"{speaker}: {content}" if speaker else content
