"""Embedders that compute in this process: the async face over a blocking model.

Each embedder has two threads: one for single texts, which somebody waits for, and one for batches, which are
cut into slices. So a question is never stuck behind ten thousand messages, and two callers' batches take
turns.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ricordo.ports import Kind

Floats = NDArray[np.float32]

SLICE = 32  # texts: a third of a second at most on the slowest model, and enough to fill its matrices


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
T = TypeVar("T")
R = TypeVar("R")


class Lanes(Generic[M]):
    """Loads a model on first use, once, and runs it on one thread for single texts and one for batches."""

    def __init__(self, name: str, load: Callable[[], M], *, size: int = SLICE) -> None:
        self._load = load
        self._size = size
        self._lock = threading.Lock()
        self._model: M | None = None
        self._single = ThreadPoolExecutor(1, thread_name_prefix=f"{name}-single")
        self._batch = ThreadPoolExecutor(1, thread_name_prefix=f"{name}-batch")

    async def single(self, text: str, run: Callable[[M, list[str]], Sequence[R]]) -> R:
        """Run one text ahead of any batch."""
        loop = asyncio.get_running_loop()
        return (await loop.run_in_executor(self._single, self._run, run, [text]))[0]

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

    def _loaded(self) -> M:
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model


class LocalEmbedder:
    """A model of this process as an Embedder. Nothing is loaded before the first text."""

    def __init__(self, name: str, *, dimension: int, load: Callable[[], Model]) -> None:
        self.name = name
        self.dimension = dimension
        self._lanes = Lanes(name, load)

    async def embed(self, text: str, *, kind: Kind = "query") -> Floats:
        """One text as float32[dimension]."""
        return await self._lanes.single(text, lambda model, texts: list(model.encode(texts, kind)))

    async def embed_batch(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Floats | None]:
        """Many texts, in order: float32[dimension] each."""
        return list(await self._lanes.batch(texts, lambda model, part: list(model.encode(part, kind))))


class LocalWordEmbedder:
    """As LocalEmbedder, and gives vectors of word pieces too."""

    def __init__(self, name: str, *, dimension: int, load: Callable[[], WordModel]) -> None:
        self.name = name
        self.dimension = dimension
        self._lanes = Lanes(name, load)

    async def embed(self, text: str, *, kind: Kind = "query") -> Floats:
        """One text as float32[dimension]."""
        return await self._lanes.single(text, lambda model, texts: list(model.encode(texts, kind)))

    async def embed_batch(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Floats | None]:
        """Many texts, in order: float32[dimension] each."""
        return list(await self._lanes.batch(texts, lambda model, part: list(model.encode(part, kind))))

    async def embed_words(self, texts: Sequence[str]) -> list[tuple[list[str], Floats]]:
        """For each text its word pieces and their unit vectors, float32[pieces, 64]; none for blank text.

        A single text goes ahead of batches, like a question.
        """
        return [(found.pieces, found.words) for found in await self.embed_with_words(texts)]

    async def embed_with_words(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Worded]:
        """The vector of each text and those of its word pieces, from one pass of the model."""
        if len(texts) == 1:
            return [await self._lanes.single(texts[0], lambda model, one: model.encode_words(one, kind))]
        return await self._lanes.batch(texts, lambda model, part: model.encode_words(part, kind))
