"""Embedders that compute in this process: the async face over a blocking model.

Each embedder has two threads: one for single texts, which somebody waits for, and one for batches, which are
cut into slices. So a question is never stuck behind ten thousand messages, and two callers' batches take
turns. Questions that wait for the thread are taken together: four at once cost less than two one by one,
since most of the time goes into reading weights.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ricordo.ports import Kind

Floats = NDArray[np.float32]

SLICE = 32  # texts: a third of a second at most on the slowest model, and enough to fill its matrices
_TOGETHER = 8  # single texts at once: the first of them waits for the last
_TOGETHER_CHARACTERS = 2_000  # a longer one goes alone


class Model(Protocol):
    """A blocking model, safe to call from two threads at once."""

    def encode(self, texts: Sequence[str], kind: Kind) -> Floats:
        """float32[len(texts), dimension]; any text whatever is accepted."""
        ...


class Worded(NamedTuple):
    """What one pass over a text gives: its vector, its word pieces, and float32[pieces, k] of their own."""

    vector: Floats
    pieces: list[str]
    words: Floats


class WordModel(Model, Protocol):
    """A model whose pass over a text also gives a vector for each word piece."""

    def encode_words(self, texts: Sequence[str], kind: Kind) -> list[Worded]: ...


M = TypeVar("M")
S = TypeVar("S", bound=Model)
T = TypeVar("T")
R = TypeVar("R")


class Lanes(Generic[M]):
    """Loads a model on first use, once, and runs it on one thread for single texts and one for batches."""

    def __init__(self, name: str, load: Callable[[], M], *, size: int = SLICE) -> None:
        self._load = load
        self._size = size
        self._loading = threading.Lock()
        self._lock = threading.Lock()
        self._model: M | None = None
        self._single = ThreadPoolExecutor(1, thread_name_prefix=f"{name}-single")
        self._batch = ThreadPoolExecutor(1, thread_name_prefix=f"{name}-batch")
        self._waiting: dict[Hashable, list[tuple[str, Future[Any]]]] = {}

    async def single(
        self, text: str, run: Callable[[M, list[str]], Sequence[R]], *, alike: Hashable | None = None
    ) -> R:
        """Run one text ahead of any batch.

        Args:
            alike: what is run for the same value of it does the same, and may be run together where it waits.
        """
        loop = asyncio.get_running_loop()
        if alike is None or len(text) > _TOGETHER_CHARACTERS:
            return (await loop.run_in_executor(self._single, self._run, run, [text]))[0]
        mine: Future[R] = Future()
        with self._lock:
            self._waiting.setdefault(alike, []).append((text, mine))
        self._single.submit(self._run_waiting, alike, run)
        return await asyncio.wrap_future(mine)

    async def batch(self, texts: Sequence[str], run: Callable[[M, list[str]], Sequence[R]]) -> list[R]:
        """Run many texts in slices; a cancelled caller stops after the slice under way."""
        loop = asyncio.get_running_loop()
        found: list[R] = []
        for start in range(0, len(texts), self._size):
            part = list(texts[start : start + self._size])
            found += await loop.run_in_executor(self._batch, self._run, run, part)
        return found

    def _run(self, run: Callable[[M, list[str]], Sequence[R]], texts: list[str]) -> Sequence[R]:
        return run(self._loaded(), texts)

    def _run_waiting(self, alike: Hashable, run: Callable[[M, list[str]], Sequence[Any]]) -> None:
        """The first of those that wait; there is a call of this for each, and later ones may find nothing left."""
        with self._lock:
            waiting = self._waiting.get(alike, [])
            taken, waiting[:] = waiting[:_TOGETHER], waiting[_TOGETHER:]
        wanted = [(text, asked) for text, asked in taken if asked.set_running_or_notify_cancel()]
        if not wanted:
            return
        try:
            found = self._run(run, [text for text, _ in wanted])
        except Exception as error:  # noqa: BLE001 - whatever it is, those who asked get it
            for _, asked in wanted:
                asked.set_exception(error)
            return
        for (_, asked), each in zip(wanted, found, strict=True):
            asked.set_result(each)

    def _loaded(self) -> M:
        with self._loading:
            if self._model is None:
                self._model = self._load()
            return self._model


class LocalEmbedder(Generic[S]):
    """A model of this process as an Embedder. Nothing is loaded before the first text."""

    def __init__(self, name: str, *, dimension: int, load: Callable[[], S]) -> None:
        self.name = name
        self.dimension = dimension
        self._lanes = Lanes(name, load)

    async def embed(self, text: str, *, kind: Kind = "query") -> Floats:
        """One text as float32[dimension]."""
        return await self._lanes.single(text, lambda model, texts: list(model.encode(texts, kind)), alike=kind)

    async def embed_batch(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Floats | None]:
        """Many texts, in order: float32[dimension] each."""
        return list(await self._lanes.batch(texts, lambda model, part: list(model.encode(part, kind))))


class LocalWordEmbedder(LocalEmbedder[WordModel]):
    """As LocalEmbedder, and gives vectors of word pieces too."""

    async def embed_words(self, texts: Sequence[str]) -> list[tuple[list[str], Floats]]:
        """For each text its word pieces and their unit vectors, float32[pieces, 64]; none for blank text.

        A single text goes ahead of batches, like a question.
        """
        return [(found.pieces, found.words) for found in await self.embed_with_words(texts)]

    async def embed_with_words(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Worded]:
        """The vector of each text and those of its word pieces, from one pass of the model."""
        if len(texts) == 1:
            alike = ("words", kind)
            return [await self._lanes.single(texts[0], lambda model, some: model.encode_words(some, kind), alike=alike)]
        return await self._lanes.batch(texts, lambda model, part: model.encode_words(part, kind))
