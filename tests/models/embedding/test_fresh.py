"""Searches for recent messages that have no vector yet."""

from __future__ import annotations

import asyncio

import numpy as np

from ricordo import Memory, Settings

LOADING_S = 2.0
"""Three quarters of it are more than anything else in these tests takes, also on a busy machine."""


class LoadedLate:
    """An embedder that is slow before its first answer, like one that is loaded from disk."""

    name = "loaded-late"
    dimension = 2

    def __init__(self) -> None:
        self._loaded = asyncio.Lock()
        self._is_loaded = False

    async def embed(self, text, *, kind="query"):
        return (await self.embed_batch([text]))[0]

    async def embed_batch(self, texts, *, kind="passage"):
        async with self._loaded:
            if not self._is_loaded:
                await asyncio.sleep(LOADING_S)
                self._is_loaded = True
        return [np.array([1.0, 0.1], np.float32) for _ in texts]


async def test_the_time_an_embedder_takes_to_load_is_not_taken_from_the_wait_for_new_vectors():
    settings = Settings(durability="process", fresh_wait_ms=int(LOADING_S * 750), search_deadline_ms=60_000)
    async with Memory.open(":memory:", embedder=LoadedLate(), settings=settings) as memory:
        await memory.add("I'm allergic to peanuts")
        results = await memory.search("what must she not eat?")
        assert results.degraded == ()
        assert [hit.content for hit in results.hits] == ["I'm allergic to peanuts"]


class SlowToKeep(LoadedLate):
    """An embedder that takes two seconds for a memory."""

    async def embed_batch(self, texts, *, kind="passage"):
        if any("peanuts" in text for text in texts):
            await asyncio.sleep(2)
        return [np.array([1.0, 0.1], np.float32) for _ in texts]

    async def embed(self, text, *, kind="query"):
        return (await self.embed_batch([text], kind=kind))[0]


async def test_a_search_whose_deadline_ends_the_wait_for_new_vectors_says_so():
    settings = Settings(durability="process", fresh_wait_ms=60_000, search_deadline_ms=1_000)
    async with Memory.open(":memory:", embedder=SlowToKeep(), settings=settings) as memory:
        await memory.add("I'm allergic to peanuts")
        results = await memory.search("who is allergic?")
        assert [hit.content for hit in results.hits] == ["I'm allergic to peanuts"]
        assert results.degraded == ("embedding: no time left to wait for recent memories",)


async def test_a_search_that_waited_in_vain_says_so_and_answers_from_words():
    settings = Settings(durability="process", fresh_wait_ms=50)
    async with Memory.open(":memory:", embedder=SlowToKeep(), settings=settings) as memory:
        await memory.add("I'm allergic to peanuts")
        results = await memory.search("who is allergic?")
        assert [hit.content for hit in results.hits] == ["I'm allergic to peanuts"]
        assert any("waits for its vector" in said for said in results.degraded)


async def test_an_embedder_that_takes_all_of_the_deadline_leaves_time_to_look():
    settings = Settings(durability="process", search_deadline_ms=50)
    embedder = LoadedLate()
    async with Memory.open(":memory:", embedder=embedder, settings=settings) as memory:
        await memory.add("I'm allergic to peanuts")
        results = await memory.search("who is allergic?")
        assert [hit.content for hit in results.hits] == ["I'm allergic to peanuts"]
        assert results.degraded == ("embedding: no answer within 0.05 s",)


async def test_what_the_first_question_learns_of_chance_is_not_taken_from_the_time_to_look():
    class Late(LoadedLate):
        """An embedder that is slow for more than one text, such as the generic prompts."""

        async def embed_batch(self, texts, *, kind="passage"):
            if kind == "query" or len(texts) > 1:
                await asyncio.sleep(LOADING_S)
            return [np.array([1.0, 0.1 * (len(text) % 7)], np.float32) for text in texts]

        async def embed(self, text, *, kind="query"):
            return np.array([1.0, 0.1], np.float32)

    settings = Settings(durability="process", search_deadline_ms=int(LOADING_S * 750))
    async with Memory.open(":memory:", embedder=Late(), settings=settings) as memory:
        await memory.add("I'm allergic to peanuts")
        results = await memory.search("who is allergic to peanuts?", only_relevant=True)
        assert results.degraded == ()
        assert [hit.content for hit in results.hits] == ["I'm allergic to peanuts"]


class Steady(LoadedLate):
    """An embedder that takes 10 ms for a text, and notes which ones it is given."""

    def __init__(self) -> None:
        self.given = []
        self.begun = asyncio.Event()

    async def embed_batch(self, texts, *, kind="passage"):
        if kind == "passage":
            self.given += texts
            self.begun.set()
        await asyncio.sleep(0.01 * len(texts))
        return [np.array([1.0, 0.1], np.float32) for _ in texts]


LONG = " ".join(f"word{number}" for number in range(20_000))
SETTINGS = Settings(durability="process", fresh_wait_ms=5_000)


async def test_short_texts_do_not_wait_for_a_long_one_and_closing_neither(tmp_path):
    path, embedder = tmp_path / "me.db", Steady()
    async with Memory.open(path, embedder=embedder, settings=SETTINGS) as memory:
        await memory.remember(LONG)
        await embedder.begun.wait()
        await memory.remember("The coffee machine is repaired by Stepan")
        started = asyncio.get_running_loop().time()
        found = await memory.search("Stepan")
        assert asyncio.get_running_loop().time() - started < 1 and "1 " in "".join(found.degraded)
        assert (await memory.stats()).embedding_missing == 1
    assert len(embedder.given) < 100
    async with Memory.open(path, embedder=embedder, settings=SETTINGS) as memory:
        await memory.settle()
        assert (await memory.stats()).embedding_missing == 0
        assert len(embedder.given) > 200


async def test_a_long_text_that_is_forgotten_is_not_embedded_to_its_end():
    embedder = Steady()
    async with Memory.open(":memory:", embedder=embedder, settings=SETTINGS) as memory:
        kept = await memory.remember(LONG)
        await embedder.begun.wait()
        await memory.forget(kept.id)
        await memory.settle()
        assert len(embedder.given) < 100


async def test_a_long_text_whose_embedding_fails_holds_up_no_other():
    class Failing(Steady):
        async def embed_batch(self, texts, *, kind="passage"):
            await super().embed_batch(texts, kind=kind)
            if any("word7 " in text for text in texts):
                raise ValueError("no vector")
            return [np.array([1.0, 0.1], np.float32) for _ in texts]

    embedder = Failing()
    async with Memory.open(":memory:", embedder=embedder, settings=SETTINGS) as memory:
        await memory.remember(LONG)
        for number in range(100):
            await memory.add(f"The coffee machine number {number} is repaired by Stepan")
        await memory.settle()
        assert (await memory.stats()).embedding_missing == 1
