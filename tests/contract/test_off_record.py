"""Off the record: what a person says, and where, is not stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from ricordo import ConflictError, Fact, Memory, Message, NotFoundError, Scope
from ricordo.clock import from_ms
from tests.storage.folders import without_index


def of(memory: Memory, owner: str, chat: str | None = None) -> Memory:
    return memory.scoped(Scope(owner=owner, chat=chat))


async def say(memory: Memory, word: str) -> None:
    """Say a word in each way: two messages, and facts for oneself, for the chat and of a session."""
    await memory.add_many([Message(text=f"{word} one"), Message(text=f"{word} two", session="s", role="assistant")])
    facts = [Fact(content=f"The {word} is here"), Fact(content=f"The {word} is ours", session="s")]
    await memory.remember_many(facts)
    if memory.scope.chat:
        await memory.remember(f"The {word} is shared", shared=True)


async def count(memory: Memory) -> int:
    return len((await memory.list(type="any", limit=100)).nodes)


PLACES = (("ann", None), ("ann", "github.com/ann/shop"), ("ann", "climbers"))


async def test_off_the_record_holds_in_every_chat_and_session_and_for_nobody_else(memory):
    await of(memory, "ann").off_record()
    for place in PLACES:
        await say(of(memory, *place), "owl")
        assert await count(of(memory, *place)) == 0
    await say(of(memory, "bob", "climbers"), "fox")
    texts = {node.content for node in (await of(memory, "ann", "climbers").list(type="any")).nodes}
    assert texts == {"fox one", "fox two", "The fox is shared"}
    assert await of(memory, "ann").on_record() == []
    for place in PLACES:
        before = await count(of(memory, *place))
        await say(of(memory, *place), "owl")
        assert await count(of(memory, *place)) >= before + 2


async def test_off_the_record_in_a_chat_holds_there_only_and_for_nobody_else(memory):
    here = of(memory, "ann", "climbers")
    await here.off_record()
    await say(here, "owl")
    assert await count(here) == 0
    await say(of(memory, "bob", "climbers"), "fox")
    await say(of(memory, "ann"), "owl")
    await say(of(memory, "ann", "shop"), "owl")
    assert await count(of(memory, "ann")) >= 4 and await count(here) >= 3
    (left,) = await of(memory, "ann").on_record()
    assert (left.chat, left.session, left.ended_at) == ("climbers", "", None)
    await of(memory, "ann").off_record("s")
    assert [each.session for each in await here.on_record()] == ["s"]
    before = await count(here)
    await say(here, "hen")
    assert await count(here) == before + 3


async def test_what_was_said_off_the_record_is_not_stored_later_either(memory, clock):
    ann = of(memory, "ann")
    early = from_ms(clock.ms)
    clock.ms += 60_000
    await ann.off_record()
    clock.ms += 60_000
    secret = from_ms(clock.ms)
    clock.ms += 60_000
    await ann.on_record()
    clock.ms += 60_000
    shop = of(memory, "ann", "shop")
    said = [Message(text="before", at=early), Message(text="secret", at=secret), Message(text="after")]
    await shop.add_many(said)
    await shop.remember("The secret is out", at=secret)
    await of(memory, "bob", "shop").add("mine", at=secret)
    stored = {node.content for node in (await shop.list(type="any")).nodes}
    assert stored == {"before", "after", "mine"}
    for _ in range(2):  # the second time in the same instant
        await ann.off_record("s")
        await ann.on_record("s")
    secret = from_ms(clock.ms)
    await ann.off_record("s")
    clock.ms += 60_000
    await ann.on_record("s")
    await shop.add_many([Message(text="hushed", at=secret, session="s"), Message(text="said", at=secret, session="t")])
    assert {node.content for node in (await shop.list(type="any")).nodes} == {*stored, "said"}


async def test_nothing_is_corrected_off_the_record(memory):
    fact = await memory.remember("Anna lives in Rome")
    await memory.off_record()
    for change in (
        memory.correct(fact.id, "Anna lives in Oslo"),
        memory.update(fact.id, tags=["x"]),
        memory.add_entity("Bob"),
    ):
        with pytest.raises(ConflictError, match="off the record"):
            await change
    await memory.forget(fact.id)
    await memory.on_record()
    await memory.add_entity("Bob")


async def test_a_pause_lasts_when_the_memory_is_opened_again_and_until_its_owner_is_erased(open_memory, where):
    async with open_memory() as memory:
        await of(memory, "ann").off_record()
        await of(memory, "bob").add("fox")
        await of(memory, "bob").off_record()
    without_index(Path(where))
    async with open_memory() as memory:
        gone = await of(memory, "ann", "shop").add("owl")
        with pytest.raises(NotFoundError):
            await of(memory, "ann", "shop").get(gone)
        await of(memory, "bob").erase(owner="bob")
        assert [each.chat for each in await of(memory, "bob").on_record()] == []
        await of(memory, "ann").on_record()
        await of(memory, "ann", "shop").get(await of(memory, "ann", "shop").add("owl"))
