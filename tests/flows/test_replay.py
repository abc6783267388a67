"""A replay lists exactly what differs; accepting one without differences changes nothing; undo restores the store."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ricordo import Memory, Settings
from tests.flows.conftest import ConfirmingModel
from tests.flows.test_consolidation import contents, fact, proposal
from tests.storage.canonical import canonical

SUBJECTS = ("The user", "Anna", "Boris", "The user's sister")
SAID = (
    "has a dog",
    "has a cat",
    "plays chess",
    "plays tennis",
    "lives in Oslo",
    "lives in Rome",
    "likes green tea",
    "likes black tea",
    "works at Acme",
    "is allergic to nuts",
    "drives a red Volvo",
    "was born in 1980",
    "moved to Berlin in 2019",
)
RUNS = 12


def changes(run: Any) -> set[tuple[str, str]]:
    return {(item.what, item.text) for item in run.items if item.what in ("added", "missing")}


async def lived(path: Path, facts: list[dict[str, Any]], other: list[dict[str, Any]] | None = None) -> Any:
    """Consolidate one conversation, and replay it; return the memory, the run and the replay."""
    answers = [proposal(*facts), *([proposal(*facts)] if other is None else [])]
    memory = await Memory.open(
        path, embedder=None, model=ConfirmingModel(answers), settings=Settings(durability="process")
    )
    for each in facts:
        await memory.add(each["text"] + ".", session="s")
    run = await memory.consolidate("s")
    await memory.settle()
    again = await memory.replay(run.id, model=None if other is None else ConfirmingModel([proposal(*other)]))
    return memory, run, again


def drawn(dice: Random) -> list[dict[str, Any]]:
    texts = list(dict.fromkeys(f"{dice.choice(SUBJECTS)} {dice.choice(SAID)}" for _ in range(dice.randint(1, 7))))
    return [fact(text, f"e{number}") for number, text in enumerate(texts, start=1)]


@pytest.mark.parametrize("seed", range(RUNS))
async def test_a_replay_with_the_same_answers_changes_nothing(seed, tmp_path):
    memory, _, again = await lived(tmp_path / "me.db", drawn(Random(seed)))
    assert changes(again) == set()
    before, log = canonical(tmp_path / "me.db"), await memory.log()
    await memory.accept(again)
    assert canonical(tmp_path / "me.db") == before and await memory.log() == log
    await memory.close()


@pytest.mark.parametrize("seed", range(RUNS))
async def test_a_replay_with_another_model_lists_exactly_what_differs(seed, tmp_path):
    dice = Random(seed)
    facts = drawn(dice)
    other = [dict(each) for each in facts]
    changed = dice.randrange(len(facts))
    texts = {each["text"] for each in facts}
    fresh = next(text for said in SAID for text in (f"Clara {said}",) if text not in texts)
    other[changed] = fact(fresh, facts[changed]["evidence"][0])
    memory, _, again = await lived(tmp_path / "me.db", facts, other)
    assert ("missing", facts[changed]["text"]) in changes(again)
    assert {what for what, _ in changes(again)} <= {"missing", "added"} and len(changes(again)) <= 2
    await memory.close()


async def test_statements_about_the_user_are_not_taken_for_one_another(tmp_path):
    facts = [fact("The user has a dog", "e1"), fact("The user plays chess", "e2")]
    memory, _, again = await lived(tmp_path / "me.db", facts)
    assert changes(again) == set()
    await memory.accept(again)
    assert await contents(memory) == {"The user has a dog", "The user plays chess"}
    await memory.close()


async def test_what_accepting_closed_can_be_learnt_again_and_undo_restores_it(tmp_path):
    facts = [fact("The user has a dog", "e1"), fact("The user plays chess", "e2")]
    memory, run, again = await lived(tmp_path / "me.db", facts, facts[:1])
    before = canonical(tmp_path / "me.db")
    await memory.accept(again)
    assert await contents(memory) == {"The user has a dog"}
    third = await memory.replay(run.id, model=ConfirmingModel([proposal(*facts)]))
    await memory.accept(third)
    assert await contents(memory) == {"The user has a dog", "The user plays chess"}
    await memory.undo(third.id)
    await memory.undo(again.id)
    assert canonical(tmp_path / "me.db") == before
    await memory.close()


async def test_an_undone_run_is_listed_and_can_be_replayed(tmp_path):
    facts = [fact("The user has a dog", "e1")]
    memory, run, _ = await lived(tmp_path / "me.db", facts, facts)
    await memory.undo(run.id)
    assert (await memory.run(run.id)).state == "undone" and (await memory.run(run.id)).sessions == ("s",)
    again = await memory.replay(run.id, model=ConfirmingModel([proposal(*facts)]))
    assert changes(again) == {("added", "The user has a dog")}
    await memory.accept(again)
    assert await contents(memory) == {"The user has a dog"}
    await memory.close()


async def many(runs: int) -> int:
    """Return in how many of some random runs a replay with the same answers changes something."""
    wrong = 0
    for seed in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            memory, _, again = await lived(Path(folder) / "me.db", drawn(Random(1_000 + seed)))
            before = canonical(Path(folder) / "me.db")
            await memory.accept(again)
            wrong += bool(changes(again)) or canonical(Path(folder) / "me.db") != before
            await memory.close()
    return wrong


if __name__ == "__main__":
    import asyncio

    sys.stdout.write(f"{asyncio.run(many(200))} of 200 replays differ\n")
