"""What the page about access and trust says of each level is what each level may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest

from ricordo import DeniedError, Memory, Scope
from ricordo.model import Trust

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "access-and-trust.md"
LEVELS = get_args(Trust)
Try = Callable[[Memory, Memory], Awaitable[bool]]
"""Tries what a row says, with the memory of the user and of the caller; returns whether it was done."""


def rows() -> dict[str, dict[str, str]]:
    """Return the table, row by row: what to do, and the cell of each level."""
    cells = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
    levels = next(row for row in cells if len(row) == len(LEVELS) and row[0] == "`user`")
    names = [each.strip("`") for each in levels]
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in cells if row[-1] in ("yes", "no")}


async def reads_and_states(user: Memory, caller: Memory) -> bool:
    await caller.add("Hello there")
    await caller.search("Hello")
    return bool((await caller.remember("Ben drinks tea")).id)


async def is_in_answers(user: Memory, caller: Memory) -> bool:
    await caller.remember("Ben drinks tea")
    return len((await user.search("what does Ben drink?")).hits) == 1


async def replaces(user: Memory, caller: Memory) -> bool:
    old = await user.remember("I live in Rome")
    await caller.remember("I live in Oslo")
    first = (await user.search("where do I live?")).hits[0].content
    closed = not (await user.get(old.id)).is_live
    assert closed == (first == "I live in Oslo")
    return closed


async def knows_the_wife(user: Memory) -> bool:
    await user.settle(600)
    return "wife" in {each.relation for each in await user.people()}


async def teaches_by_facts(user: Memory, caller: Memory) -> bool:
    await caller.remember("My wife is Katrin")
    return await knows_the_wife(user)


async def teaches_by_messages(user: Memory, caller: Memory) -> bool:
    await caller.add("My wife is Katrin", session="one")
    return await knows_the_wife(user)


async def changes(user: Memory, caller: Memory) -> bool:
    kept = await user.remember("Ben drinks tea")
    kept = await caller.correct(kept.id, "Ben drinks coffee")
    await caller.update(kept.id, tags=["drinks"])
    await caller.confirm(kept.id)
    await caller.forget(kept.id)
    await caller.restore(kept.id)
    return (await user.get(kept.id)).is_live


async def records_people(user: Memory, caller: Memory) -> bool:
    await caller.add_entity("Katrin")
    await caller.relate("Katrin", "wife")
    return await knows_the_wife(user)


async def erases(user: Memory, caller: Memory) -> bool:
    kept = await user.remember("Ben drinks tea")
    await user.remember("Anna is a nurse")
    await caller.undo((await user.log(1))[0].seq)
    await caller.erase(id=kept.id)
    return (await user.list()).nodes == ()


async def goes_off_the_record(user: Memory, caller: Memory) -> bool:
    await caller.off_record("one")
    return True


async def decides_conflicts(user: Memory, caller: Memory) -> bool:
    await user.remember("Anna works at Acme")
    await user.remember("Anna works at Bolt")
    for review in await caller.review():
        await caller.resolve(review, decision="keep both")
    return True


async def decides_quarantine(user: Memory, caller: Memory) -> bool:
    await user.remember("The museum opens at ten", origin="web")
    await caller.approve((await caller.review())[0])
    return True


async def shares_and_changes_many(user: Memory, caller: Memory) -> bool:
    kept = await user.remember("Ben drinks tea")
    await caller.update(kept.id, shared=True)
    await caller.forget_where(tag="drinks")
    return True


async def exports(user: Memory, caller: Memory) -> bool:
    await caller.remember("The door code is 4711", keep_secrets=True)
    with TemporaryDirectory() as folder:
        await caller.export(Path(folder) / "all.jsonl")
    return True


TRIES: Mapping[str, Try] = {
    "read, add messages, state facts": reads_and_states,
    "state facts that are in answers at once": is_in_answers,
    "replace the user's facts with newer ones": replaces,
    "state facts from which the user's people and relations are learnt": teaches_by_facts,
    "add messages from which the user's people and relations are learnt": teaches_by_messages,
    "correct, update, confirm, forget and restore memories": changes,
    "record people and relations": records_people,
    "erase memories, undo changes": erases,
    "take a conversation off the record": goes_off_the_record,
    "decide on facts that conflict": decides_conflicts,
    "decide on quarantine, and read its texts over a network": decides_quarantine,
    "share a private fact later, change many memories at once": shares_and_changes_many,
    "export, keep credentials on purpose": exports,
}


def test_every_row_is_tried() -> None:
    assert list(rows()) == list(TRIES)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("row", list(TRIES))
async def test_a_caller_may_do_what_its_row_says(tmp_path: Path, row: str, level: Trust) -> None:
    async with Memory.open(tmp_path / "me.db", embedder=None) as user:
        caller = user.scoped(Scope(chat="team" if row.startswith("share") else None, trust=level))
        try:
            done = await TRIES[row](user, caller)
        except DeniedError:
            done = False
        assert ("yes" if done else "no") == rows()[row][level]
