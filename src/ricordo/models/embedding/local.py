"""Embedders that run in this process: an async interface over a blocking model.

Each embedder has two threads: one for single texts, whose callers are waiting, and one for batches, which are split
into slices. A question therefore never waits for 10,000 messages, and the batches of two callers take turns. Waiting
questions are embedded together: four together take less time than two separately, because most time is spent on
reading weights.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from ricordo.ports import Kind

Floats = NDArray[np.float32]

SLICE = 32  # texts: at most 0.3 s on the slowest model, and enough to fill its matrices
_TOGETHER = 8  # the most single texts to embed together; all of them wait until the last one is done
_TOGETHER_CHARACTERS = 2_000  # a longer text is embedded alone


class Model(Protocol):
    """A blocking model; safe to call from two threads at once."""

    def encode(self, texts: Sequence[str], kind: Kind) -> Floats:
        """Return float32[len(texts), dimension]; every text is accepted."""
        ...


class Worded(NamedTuple):
    """The result of one pass over a text: its vector, its word pieces, and their vectors float32[pieces, k]."""

    vector: Floats
    pieces: list[str]
    words: Floats


class WordModel(Model, Protocol):
    """A model that also returns a vector for each word piece."""

    def encode_words(self, texts: Sequence[str], kind: Kind) -> list[Worded]: ...


M = TypeVar("M")
S = TypeVar("S", bound=Model)
T = TypeVar("T")
R = TypeVar("R")


class Lanes(Generic[M]):
    """Loads a model once, on first use, and runs it on one thread for single texts and one for batches."""

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
            alike: waiting texts with the same value are run together, so their `run` must be equivalent.
        """
        loop = asyncio.get_running_loop()
        if alike is None or len(text) > _TOGETHER_CHARACTERS:
            return (await loop.run_in_executor(self._single, self._run, run, [text]))[0]
        future: Future[R] = Future()
        with self._lock:
            self._waiting.setdefault(alike, []).append((text, future))
        self._single.submit(self._run_waiting, alike, run)
        return await asyncio.wrap_future(future)

    async def batch(self, texts: Sequence[str], run: Callable[[M, list[str]], Sequence[R]]) -> list[R]:
        """Run many texts in slices; a cancelled call stops after the current slice."""
        loop = asyncio.get_running_loop()
        found: list[R] = []
        for start in range(0, len(texts), self._size):
            part = list(texts[start : start + self._size])
            found += await loop.run_in_executor(self._batch, self._run, run, part)
        return found

    def _run(self, run: Callable[[M, list[str]], Sequence[R]], texts: list[str]) -> Sequence[R]:
        model = self._loaded()
        with one_thread():
            return run(model, texts)

    def _run_waiting(self, alike: Hashable, run: Callable[[M, list[str]], Sequence[Any]]) -> None:
        """Run the first of the waiting texts together. It is called once per text, so later calls may find none."""
        with self._lock:
            waiting = self._waiting.get(alike, [])
            batch, waiting[:] = waiting[:_TOGETHER], waiting[_TOGETHER:]
        wanted = [(text, future) for text, future in batch if future.set_running_or_notify_cancel()]
        if not wanted:
            return
        try:
            found = self._run(run, [text for text, _ in wanted])
        except Exception as error:  # noqa: BLE001 - any error goes to the callers
            for _, future in wanted:
                future.set_exception(error)
            return
        for (_, future), each in zip(wanted, found, strict=True):
            future.set_result(each)

    def _loaded(self) -> M:
        with self._loading:
            if self._model is None:
                self._model = self._load()
            return self._model


class LocalEmbedder(Generic[S]):
    """A local model as an Embedder. Nothing is loaded before the first text."""

    def __init__(self, name: str, *, dimension: int, load: Callable[[], S]) -> None:
        self.name = name
        self.dimension = dimension
        self._lanes = Lanes(name, load)

    async def embed(self, text: str, *, kind: Kind = "query") -> Floats:
        """Embed one text as float32[dimension]."""
        return await self._lanes.single(text, lambda model, texts: list(model.encode(texts, kind)), alike=kind)

    async def embed_batch(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Floats | None]:
        """Embed many texts, in order, as float32[dimension] each."""
        return list(await self._lanes.batch(texts, lambda model, part: list(model.encode(part, kind))))


class LocalWordEmbedder(LocalEmbedder[WordModel]):
    """A LocalEmbedder that also returns vectors of word pieces."""

    async def embed_words(self, texts: Sequence[str]) -> list[tuple[list[str], Floats]]:
        """Return each text's word pieces and their unit vectors float32[pieces, 64]; none for blank text.

        A single text goes ahead of batches, like a question.
        """
        return [(found.pieces, found.words) for found in await self.embed_with_words(texts)]

    async def embed_with_words(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Worded]:
        """Return the vector of each text and of its word pieces, from one pass of the model."""
        if len(texts) == 1:
            alike = ("words", kind)
            return [await self._lanes.single(texts[0], lambda model, some: model.encode_words(some, kind), alike=alike)]
        return await self._lanes.batch(texts, lambda model, part: model.encode_words(part, kind))


def one_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread inside the `with` block.

    With OpenBLAS on two cores, two threads were slower than one and blocked the second core for other work. The limit
    applies to the process. threadpoolctl 3.8 lets only one thread at a time set it, so two overlapping embedders cannot
    leave the limit in place; at worst, the rest of one pass runs on all threads.
    """
    limit: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limit


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def on_all_cores(run: Callable[[T], R], parts: Sequence[T]) -> list[R]:
    """Run a function on each part, in parallel if the process has several cores. A single part runs in this thread."""
    return [run(part) for part in parts] if len(parts) < 2 else list(_cores().map(run, parts))


@cache
def _cores() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


HASHING = "hashing-256-v1"
_HASHING_DIMENSION = 256

_WORD = re.compile(r"\w+")
_GRAM = 4
_MOST_WORDS = 20_000
_CACHED_WORDS = 65_536


class Hashing:
    """Feature hashing: maps each word and each of its 4-grams to one of 256 dimensions and a sign."""

    def encode(self, texts: Sequence[str], kind: Kind) -> Floats:
        """Return unit vectors float32[n, 256]; zeros for a text without words. Both kinds are embedded alike."""
        features = [[f for w in _WORD.findall(text.lower())[:_MOST_WORDS] for f in _features(w)] for text in texts]
        buckets = np.fromiter(chain.from_iterable(features), np.int64)
        rows = np.repeat(np.arange(len(texts)), [len(of_text) for of_text in features])
        flat = np.bincount(
            rows * _HASHING_DIMENSION + (buckets >> 1), _SIGNS[buckets & 1], len(texts) * _HASHING_DIMENSION
        )
        vectors = flat.reshape(len(texts), _HASHING_DIMENSION)
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        result: Floats = (vectors / lengths).astype(np.float32)
        return result


_SIGNS = np.array([1.0, -1.0])


def hashing_embedder() -> LocalEmbedder[Hashing]:
    """Return the hashing embedder: unit vectors of 256 dimensions."""
    return LocalEmbedder(HASHING, dimension=_HASHING_DIMENSION, load=Hashing)


@lru_cache(maxsize=_CACHED_WORDS)
def _features(word: str) -> tuple[int, ...]:
    """Return each feature as twice its dimension, plus 1 if its sign is negative."""
    edged = f"^{word[:64]}$"
    grams = [edged[at : at + _GRAM] for at in range(max(1, len(edged) - _GRAM + 1))]
    return tuple(_bucket(part) for part in [word, *grams])


def _bucket(part: str) -> int:
    # Lone surrogates cannot be encoded strictly; crc32 because Python's own hash differs between processes.
    return crc32(part.encode("utf-8", "surrogatepass")) % (2 * _HASHING_DIMENSION)
