"""Background work: link mentions, embed texts, change models, and keep indexes compact.

There is no queue: the worker asks the store what remains to be done, so a crash loses nothing. One process at a time
works, under a lease; the others wait for the lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from ricordo.encoding.mentions import Linker, count_unlinked
from ricordo.errors import RicordoError, UnavailableError
from ricordo.models.embedding import Embedded, embed_passages, joined
from ricordo.ports import Embedder
from ricordo.storage import Snapshot, Store
from ricordo.storage.leases import LeaseHolder
from ricordo.storage.values import EmbeddingModel, NewVectors, Unembedded
from ricordo.text.passages import passages_of
from ricordo.text.sentences import in_first_person

_log = logging.getLogger("ricordo.backlog")

LEASE = "backlog"
_LEASE_MS = 10_000
_POLL_S = (0.1, 1.0)  # pause between looks for other processes' writes: soon after work, and when idle for longer
_GATHER_S = 0.05  # how long to wait for further writes, to handle them together
_RETRY_S = 60.0  # pause before a text whose embedding failed is tried again
_BACK_OFF_S = (0.1, 30.0)  # pause after a failure, doubled each time: the first and the longest
_STEP_CHARS = 16_000  # of the texts embedded in one step: about a second of work for the default embedder


@dataclass(slots=True)
class _Cursor:
    """Where the search for missing vectors continues, so that it does not start from the first node each time.

    It is valid for one `generation` of the database: a rebuilt database counts removals from zero.
    """

    generation: int
    after: int
    removals: int
    noted: tuple[int, int]
    failed: bool = False
    is_behind: bool = False
    started: float = 0.0
    tried: set[int] = field(default_factory=set)
    """The nodes after `after` whose embedding failed, until it is tried again."""


@dataclass(slots=True)
class _Slices:
    """A text too long for one step: its passages, and what the embedder made of the first of them."""

    row: Unembedded
    texts: list[str]
    made: list[Embedded] = field(default_factory=list)

    def next(self) -> list[str]:
        """Return the passages for the next step, at least one."""
        begun = len(self.made)
        sizes = accumulate(len(text) for text in self.texts[begun:])
        return self.texts[begun : begun + max(1, sum(size <= _STEP_CHARS // 2 for size in sizes))]


class BackgroundWorker:
    """One background task per opened store."""

    def __init__(self, store: Store, *, embedder: Embedder | None, model: EmbeddingModel | None, batch: int) -> None:
        self._store = store
        self._embedder = embedder
        self._model = model
        self._batch = batch
        self._linker = Linker(store)
        self._lease = LeaseHolder(store, LEASE, lease_ms=_LEASE_MS)
        self._cursor: _Cursor | None = None
        self._slices: _Slices | None = None
        self._closing = False
        self._wake = asyncio.Event()
        self._urgent = asyncio.Event()
        self._idle = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.fresh = 0
        """How many memories this process has written since the last time no work was left."""
        self._has_upkeep = False
        self._failure = ""
        self._failures = 0
        self._retry = asyncio.Event()
        self._step = asyncio.Condition()
        self._task = self._loop.create_task(self._run(), name="ricordo-backlog")

    @property
    def model(self) -> EmbeddingModel | None:
        """The model whose vectors are made now."""
        return self._model

    def note(self, count: int) -> None:
        """Note that memories were written. May be called from any thread."""
        was_idle, self.fresh = self.fresh == 0, self.fresh + count
        if was_idle:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the next opening finds the work
                self._loop.call_soon_threadsafe(self._wake.set)

    def _begin(self) -> None:
        """Start at once, because a caller is waiting."""
        self._idle.clear()
        self._wake.set()
        self._urgent.set()

    def hurry(self) -> None:
        """Start at once if this process has written something that is about to be searched."""
        if self.fresh and not self._closing:
            self._begin()

    @property
    def is_settled(self) -> bool:
        """Whether this process found no work left when it last looked, and has written nothing since."""
        return self.fresh == 0 and self._idle.is_set()

    async def caught_up(self, timeout_s: float, *, most: int) -> tuple[int, bool]:
        """Wait until each memory stored by now has its vector and its links, including those of other processes; not
        for the vector of a text that takes several steps.

        Args:
            most: do not wait if more vectors or links than this are missing, as after a bulk import.

        Returns:
            The number of missing vectors, at most `most` + 1, and whether links are missing.
        """
        lacking, unlinked = await self._store.read(lambda snapshot: self._not_ready(snapshot, most + 1))
        if self._closing or max(len(lacking), unlinked) > most or not (lacking or unlinked):
            return len(lacking), unlinked > 0
        keys, deadline = {row.key for row in lacking}, time.monotonic() + timeout_s
        slow = {row.key for row in lacking if _is_long(row)}
        while (keys - slow or unlinked) and not self._closing:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or self._failures:
                break
            self._begin()
            with contextlib.suppress(TimeoutError):  # another process may be at work
                async with asyncio.timeout(min(left_s, _POLL_S[0])), self._step:
                    await self._step.wait()
            lacking, unlinked = await self._store.read(lambda snapshot: self._not_ready(snapshot, most + 1))
            keys &= {row.key for row in lacking}
        return len(keys), unlinked > 0

    def is_behind(self, snapshot: Snapshot) -> bool:
        """Return whether any memory of a snapshot waits for its vector or its links."""
        lacking, unlinked = self._not_ready(snapshot, 1)
        return bool(lacking or unlinked)

    def read_by_is_behind(self) -> tuple[Callable[[Snapshot], object], ...]:
        """Return what `is_behind` reads, one statement each."""
        cursor, key = self._cursor, self._key
        if cursor is None:
            return ()
        return (
            lambda snapshot: snapshot.models.lost_since(cursor.removals),
            lambda snapshot: snapshot.vectors.lacking(key, after=cursor.after, most=1),
        )

    def _not_ready(self, snapshot: Snapshot, most: int) -> tuple[list[Unembedded], int]:
        """Return the first memories without a vector, and the number of those without links, up to `most` of each.

        Links are counted until this process has found none missing.
        """
        lacking: list[Unembedded] = []
        if self._serves(snapshot):
            lacking = snapshot.vectors.lacking(self._key, after=self._start(snapshot).after, most=most)
        return lacking, 0 if self.is_settled else count_unlinked(snapshot, most)

    async def settle(self, timeout_s: float | None) -> None:
        """Wait until nothing is left to do in the whole store.

        Raises:
            UnavailableError: the work is not done in time.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        await self._store.derive(lambda _: None)  # runs after all writes that are already queued
        if self._cursor is not None and self._cursor.failed:
            self._cursor.after, self._cursor.failed = 0, False  # the caller wants another try now
            self._cursor.tried.clear()
        self._retry.set()
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
        return bool(self._lacking(snapshot, 1)) or count_unlinked(snapshot) > 0

    async def close(self) -> None:
        """Stop after the current batch. The next opening finds the rest."""
        self._closing = True
        self._begin()
        self._retry.set()
        await asyncio.shield(self._task)  # a cancelled `close` must not interrupt the batch

    # the task

    async def _run(self) -> None:
        pause = 0
        while not self._closing:
            self._wake.clear()
            self._urgent.clear()
            self._retry.clear()
            noted = self.fresh
            try:
                busy = await self._hold() and await self._pass()
                self._failure, self._failures = "", 0
            except Exception as error:  # noqa: BLE001 - a dead task would leave `settle` waiting forever
                self._note_failure(error)
                busy = False
            await self._tell_step()
            pause = 0 if busy else min(pause + 1, 10)
            if busy:
                if self.fresh > noted:  # more was written meanwhile
                    await self._gather()
                continue
            self.fresh -= noted
            if self.fresh == 0:
                self._idle.set()
            if self._failures:
                await self._back_off()
            elif self.fresh == 0:
                await self._rest(_POLL_S[0] if pause < 10 else _POLL_S[1])
        self._idle.set()
        await self._tell_step()
        await self._lease.release()

    def _note_failure(self, error: Exception) -> None:
        """Log a failure, but not each time that it is repeated."""
        failure = f"{type(error).__name__}: {error}"
        if failure != self._failure and isinstance(error, RicordoError):
            _log.warning("background work is postponed: %s", error)
        elif failure != self._failure:
            _log.error("background work failed; it will be tried again", exc_info=error)
        self._failure, self._failures = failure, self._failures + 1

    async def _back_off(self) -> None:
        """Wait longer after each failure, until `settle` or `close` is called."""
        first_s, longest_s = _BACK_OFF_S
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._retry.wait(), min(first_s * 2 ** min(self._failures - 1, 20), longest_s))

    async def _tell_step(self) -> None:
        """Wake the callers of `caught_up`."""
        async with self._step:
            self._step.notify_all()

    async def _rest(self, seconds: float) -> None:
        """Wait until something is written, but at most some seconds.

        Messages often come in groups: a short wait handles them together, and leaves the processor to the writer.
        """
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
            await self._gather()

    async def _gather(self) -> None:
        """Wait a little for more writes, unless a caller waits for what was written."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._urgent.wait(), _GATHER_S)

    async def _hold(self) -> bool:
        """Return whether this process holds the lease; take or renew it only if there is work."""
        if self._lease.is_fresh:
            return True
        return await self._store.read(self._has_work) and await self._lease.take()

    def _has_work(self, snapshot: Snapshot) -> bool:
        return (
            self._is_left(snapshot)
            or any(self._needs_change(model) for model in snapshot.models.known())
            or bool(self._serves(snapshot) and snapshot.models.centres_due(self._key))
            or self._upkeep_is_due(snapshot)
        )

    def _needs_change(self, model: EmbeddingModel) -> bool:
        is_mine = self._model is not None and model.key == self._model.key
        return model.state == "retiring" or (model.state == "coming" and is_mine)

    async def _pass(self) -> bool:
        """Do some work of each kind; return whether more may remain."""
        steps: tuple[Callable[[], Awaitable[bool]], ...] = (
            self._link,
            self._embed,
            self._centre,
            self._change_model,
            self._do_upkeep,
        )
        busy = False
        for step in steps:
            busy = await step() or busy
        return busy

    async def _link(self) -> bool:
        return await self._linker.step()

    async def _embed(self) -> bool:
        """Embed the shortest of the next nodes that lack a vector, and a slice of the first that is too long for one
        step: a long text holds up neither others nor `close`, and is given up once it is forgotten.
        """
        if self._embedder is None or self._model is None:
            return False
        rows = await self._store.read(lambda tx: self._lacking(tx, self._batch))
        cursor = self._cursor
        if cursor is None:
            return False
        cursor.is_behind = bool(rows)
        if not rows:
            self._slices = None
            await self._note_progress()
            return False
        model = self._model
        waiting = [row for row in rows if row.key not in cursor.tried]
        chosen = _shortest(waiting)
        part = self._next_slice(waiting)
        texts = [_embedded_texts(row.content, row.speaker) for row in chosen]
        made = await embed_passages(self._embedder, [*texts, *([each] for each in part)])
        done = list(zip(chosen, made, strict=False))
        if self._slices is not None:
            self._slices.made += made[len(chosen) :]
            has_failed = any(each.vector is None for each in made[len(chosen) :])
            if has_failed or len(self._slices.made) == len(self._slices.texts):
                done.append((self._slices.row, joined(self._slices.made)))
                self._slices = None
        found = [
            NewVectors(
                key=row.key,
                content=row.content,
                vector=new.vector,
                passages=new.passages,
                pieces=new.pieces,
                words=new.words,
            )
            for row, new in sorted(done, key=lambda each: each[0].key)
            if new.vector is not None
        ]
        left = await self._store.derive(lambda tx: tx.vectors.put(model.key, model.dimension, found))
        if len(found) < len(done):
            cursor.failed, cursor.started = True, time.monotonic()
        ready = {row.key for row, _ in done}
        open_ = [row.key for row in waiting if row.key not in ready] + ([] if left is None else [left])
        cursor.after = min(open_) - 1 if open_ else rows[-1].key
        cursor.tried |= ready - {each.key for each in found}
        cursor.tried = {key for key in cursor.tried if key > cursor.after}
        while await self._store.derive(lambda tx: tx.vectors.compact()):
            pass
        return True

    def _next_slice(self, waiting: Sequence[Unembedded]) -> list[str]:
        """Return the next passages of the first text that is too long for one step; [] if there is none."""
        first = next((row for row in waiting if _is_long(row)), None)
        if first is None:
            self._slices = None
        elif self._slices is None or self._slices.row != first:
            self._slices = _Slices(first, _embedded_texts(first.content, first.speaker))
        return [] if self._slices is None else self._slices.next()

    async def _centre(self) -> bool:
        """Update the mean vectors that ranking subtracts, as the store grows."""
        model = self._model
        if model is None or self._cursor is None or self._cursor.is_behind:
            return False
        return await self._store.derive(lambda tx: tx.vectors.recentre(model.key, model.dimension))

    def _upkeep_is_due(self, snapshot: Snapshot) -> bool:
        return self._has_upkeep or snapshot.upkeep.is_due()

    async def _do_upkeep(self) -> bool:
        """Do one step of the store's maintenance, if one is due."""
        if await self._store.read(self._upkeep_is_due):
            self._has_upkeep = await self._store.derive(lambda tx: tx.upkeep.step())
        return self._has_upkeep

    def _lacking(self, snapshot: Snapshot, most: int) -> list[Unembedded]:
        if not self._serves(snapshot):
            return []
        self._rewind(snapshot)
        assert self._cursor is not None
        found = snapshot.vectors.lacking(self._key, after=self._cursor.after, most=most)
        page = found
        while len(page) == most > 1 and all(map(_is_long, page)):  # short texts wait behind these
            page = snapshot.vectors.lacking(self._key, after=page[-1].key, most=most)
            found += [row for row in page if not _is_long(row)]
        return found

    @property
    def _has_failed(self) -> bool:
        return self._cursor is not None and self._cursor.failed

    @property
    def _key(self) -> int:
        return self._model.key if self._model else 0

    def _serves(self, snapshot: Snapshot) -> bool:
        """Return whether the store still uses our model: another process may have changed to another model."""
        return any(known.key == self._key and known.state != "retiring" for known in snapshot.models.known())

    def _rewind(self, snapshot: Snapshot) -> None:
        """Move the cursor back to nodes that lost their vector, and to the first node some time after a failure."""
        now = self._start(snapshot)
        if self._cursor is None or self._cursor.generation != now.generation:
            self._cursor = now
        cursor = self._cursor
        if cursor.failed and not now.failed:
            cursor.tried.clear()
        cursor.after, cursor.failed, cursor.removals = now.after, now.failed, now.removals

    def _start(self, snapshot: Snapshot) -> _Cursor:
        """Return the cursor of the next step."""
        cursor = self._cursor
        if cursor is None or cursor.generation != snapshot.generation:
            cursor = _Cursor(snapshot.generation, *snapshot.models.progress(self._key))
        after, failed = cursor.after, cursor.failed
        if failed and time.monotonic() - cursor.started > _RETRY_S:
            after, failed = 0, False
        removals, least = snapshot.models.lost_since(cursor.removals)
        if least is not None:
            after = min(after, least - 1)
        return replace(cursor, after=after, failed=failed, removals=removals)

    async def _note_progress(self) -> None:
        """Record that every node up to the cursor has its vector, so that the next opening skips these nodes."""
        cursor, key = self._cursor, self._key
        if cursor is None or cursor.failed or (cursor.after, cursor.removals) == cursor.noted:
            return
        cursor.noted = (cursor.after, cursor.removals)

        def note(tx: Snapshot) -> None:
            if tx.generation == cursor.generation:
                tx.models.note_progress(key, *cursor.noted)

        await self._store.derive(note)

    async def _change_model(self) -> bool:
        """Switch to a new model once it has all vectors, then drop the old model's vectors in batches."""
        known = await self._store.read(lambda tx: tx.models.known())
        mine = next((model for model in known if self._model and model.key == self._model.key), None)
        if mine is not None and mine.state == "coming" and not self._has_failed:
            if not await self._store.derive(lambda tx: tx.models.switch(mine.key)):
                if self._cursor is not None:
                    self._cursor.after = 0
                return True
            _log.info("the store now searches with the vectors of %s", mine.name)
        return await self._store.derive(lambda tx: tx.models.drop_retired())


def _is_long(row: Unembedded) -> bool:
    return len(row.content) > _STEP_CHARS


def _shortest(rows: Sequence[Unembedded]) -> list[Unembedded]:
    """Return the shortest of some rows, as many as fit into one step; none that is too long for it."""
    ordered = sorted(rows, key=lambda row: len(row.content))
    sizes = accumulate(len(row.content) for row in ordered)
    return [row for row, size in zip(ordered, sizes, strict=True) if size <= _STEP_CHARS]


def _embedded_texts(content: str, speaker: str | None) -> list[str]:
    """Return the passages to embed, each after the speaker's name: this nearly doubles LoCoMo's vector recall.

    A short statement about "the user" is embedded in the first person, like the questions of that user.
    """
    passages = passages_of(content)
    if not speaker and len(passages) == 1:
        return [in_first_person(content)]
    head = f"{speaker}: " if speaker else ""
    return [head + content[start:end] for start, end in passages]
