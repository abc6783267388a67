"""Facts are compared by meaning alike, whatever range the cosines of an embedder lie in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ricordo import Memory
from ricordo.models.embedding import resolve
from ricordo.ports import Embedder

PAIRS = [
    ("Anna lives in Rome", "Anna likes tea", "Where does Anna live?", "older"),
    (
        "Vera's cat is called Mila",
        "Vera's dog is called Bruno and barks at the cat",
        "What is Vera's cat called?",
        "older",
    ),
    (
        "Die Bücherei schließt um sechs",
        "Das Café der Bücherei schließt um vier",
        "Wann schließt die Bücherei?",
        "older",
    ),
    ("I drive a silver Corolla", "Sold the Corolla, picked up a used Outback", "What car do I drive?", "newer"),
    ("Катя работает в поликлинике", "Катя уволилась, теперь она в частной клинике", "Где работает Катя?", "newer"),
]


class Narrow:
    """An embedder whose cosines all lie between .6 and 1, like those of many models."""

    name, dimension, max_chars = "narrow", 257, None

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.batches: list[list[str]] = []

    async def embed(self, text: str, *, kind: str = "query") -> Any:
        return _narrowed(await self._inner.embed(text, kind=kind))

    async def embed_batch(self, texts: Sequence[str], *, kind: str = "passage") -> list[Any]:
        self.batches.append(list(texts))
        return [_narrowed(each) for each in await self._inner.embed_batch(texts, kind=kind)]


class Constant(Narrow):
    """An embedder that gives each text the same vector."""

    async def embed_batch(self, texts: Sequence[str], *, kind: str = "passage") -> list[Any]:
        return [np.ones(self.dimension, np.float32)] * len(texts)


def _narrowed(vector: Any) -> Any:
    return np.append(np.sqrt(0.4) * vector / np.linalg.norm(vector), np.sqrt(0.6)).astype(np.float32)


def _default() -> Embedder:
    found = resolve("default")
    assert found is not None
    return found


@pytest.mark.parametrize("make", [_default, lambda: Narrow(_default())], ids=["default", "narrow"])
@pytest.mark.parametrize(("older", "newer", "question", "first"), PAIRS)
async def test_what_answers_stands_first_with_any_range_of_cosines(make, older, newer, question, first) -> None:
    async with Memory.open(":memory:", embedder=make()) as memory:
        ids = {"older": (await memory.remember(older)).id, "newer": (await memory.remember(newer)).id}
        await memory.settle()
        assert (await memory.search(question)).ids[0] == ids[first]


@pytest.mark.parametrize(
    "make", [lambda: Constant(_default()), lambda: resolve("hashing")], ids=["constant", "hashing"]
)
async def test_an_embedder_that_tells_no_meaning_changes_no_order(make) -> None:
    async with Memory.open(":memory:", embedder=make()) as memory:
        rome = await memory.remember("Anna lives in Rome")
        await memory.remember("Anna likes tea")
        await memory.settle()
        assert (await memory.search("where does Anna live")).ids[0] == rome.id


async def test_the_range_is_measured_once_by_one_batch() -> None:
    embedder = Narrow(_default())
    async with Memory.open(":memory:", embedder=embedder) as memory:
        await memory.remember("Anna lives in Rome")
        await memory.settle()
        before = len(embedder.batches)
        for question in ("Where does Anna live?", "Who lives in Rome?"):
            await memory.search(question)
        assert [each for each in embedder.batches[before:] if "Anna likes tea" in each] == embedder.batches[before:]
        assert len(embedder.batches) == before + 1


async def test_the_range_is_measured_again_after_a_failure() -> None:
    class Failing(Narrow):
        fails = True

        async def embed_batch(self, texts: Sequence[str], *, kind: str = "passage") -> list[Any]:
            if self.fails and "Anna likes tea" in texts:
                raise OSError("too many requests")
            return await super().embed_batch(texts, kind=kind)

        async def embed(self, text: str, *, kind: str = "query") -> Any:
            if self.fails and kind == "passage":
                raise OSError("too many requests")
            return await super().embed(text, kind=kind)

    embedder = Failing(_default())
    async with Memory.open(":memory:", embedder=embedder) as memory:
        await memory.remember("I drive a silver Corolla")
        newer = await memory.remember("Sold the old car, picked up a used Outback")
        await memory.settle()
        await memory.search("What car do I drive?")
        embedder.fails = False
        assert (await memory.search("What car do I drive?")).ids[0] == newer.id


async def test_upkeep_lists_changes_in_other_words_with_other_embedders() -> None:
    async with Memory.open(":memory:", embedder=Narrow(_default())) as memory:
        for text in ("I drink two cups of coffee a day", "My sister has two cats", "The car is a Golf"):
            await memory.remember(text)
        await memory.remember("Down to herbal tea these days, the caffeine was too much")
        await memory.settle()
        await memory.maintain()
        assert [each.older.content for each in await memory.review()] == ["I drink two cups of coffee a day"]
