"""What a decision about two facts closes, settles and opens, and that it says so."""

from __future__ import annotations

from itertools import pairwise, permutations
from pathlib import Path

import pytest
from tests.interfaces.conftest import Cli
from tests.interfaces.serving import house
from tests.interfaces.test_mcp import connected

from ricordo import Memory

JOBS = ["Tom works as a waiter", "Tom works as a singer", "Tom works as a baker"]


async def _pairs(memory: Memory) -> list[tuple[str, str]]:
    return [(each.newer.content, each.older.content) for each in await memory.review() if each.older]


async def test_what_the_closed_fact_was_in_review_with_stays_in_review() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        for said in JOBS:
            await memory.remember(said)
        before = await _pairs(memory)
        assert before == [(JOBS[2], JOBS[1]), (JOBS[1], JOBS[0])]
        decided = await memory.resolve((await memory.review())[0], decision="replace")
        assert [(each.newer.content, each.older and each.older.content) for each in decided.settled] == [before[1]]
        assert [each.id for each in decided.opened] == [each.id for each in await memory.review()]
        assert await _pairs(memory) == [(JOBS[2], JOBS[0])]
        assert decided.commit is not None
        await memory.undo(decided.commit)
        assert await _pairs(memory) == before


async def test_keeping_the_old_fact_asks_the_newer_ones_about_it() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        for said in JOBS:
            await memory.remember(said)
        decided = await memory.resolve((await memory.review())[1], decision="keep old")
        assert len(decided.settled) == len(decided.opened) == 1
        assert await _pairs(memory) == [(JOBS[2], JOBS[0])]
        last = await memory.resolve(decided.opened[0], decision="replace")
        assert (last.settled, last.opened, await memory.review()) == ((), (), [])


async def test_a_pair_that_was_decided_is_not_asked_again() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        for said in JOBS:
            await memory.remember(said)
        first, second = await memory.review()
        carried = (await memory.resolve(first, decision="replace")).opened[0]
        await memory.resolve(carried, decision="keep both")
        assert await memory.review() == []
        assert second.decision is None


async def test_what_only_the_closed_fact_said_is_not_asked_again() -> None:
    said = ["Our office in Kiel has a gym", "We no longer go to the gym", "Our office is now in Bonn"]
    async with Memory.open(":memory:", embedder=None) as memory:
        for each in said:
            await memory.remember(each)
        assert sorted(await _pairs(memory)) == sorted([(said[1], said[0]), (said[2], said[0])])
        (moved,) = (each for each in await memory.review() if each.newer.content == said[2])
        decided = await memory.resolve(moved, decision="replace")
        assert (len(decided.settled), decided.opened) == (1, ())


ACCOUNTS = [
    "I do my accounts myself in an Excel sheet",
    "I have hired an accountant, Madame Keller; the evenings with the sheet are over",
    "Madame Keller has stopped; Monsieur Tran keeps my books now",
    "Monsieur Tran has retired, and a firm in Lyon does the books now",
]


async def _chain(memory: Memory, length: int) -> list[tuple[str, str]]:
    """Store a chain of facts of which each makes the one before out of date, and return the pairs in review."""
    for said in ACCOUNTS[:length]:
        await memory.remember(said)
    return [(newer, older) for older, newer in pairwise(ACCOUNTS[:length])]


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_what_begins_a_chain_stays_in_doubt_in_any_order_of_deciding(order: tuple[int, ...]) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        chain = await _chain(memory, 4)
        assert sorted(await _pairs(memory)) == sorted(chain)
        for older in order:  # the reviews of the chain are decided by the older fact, or what is asked instead of it
            before = await _pairs(memory)
            (asked,) = (each for each in await memory.review() if each.older and each.older.content == ACCOUNTS[older])
            decided = await memory.resolve(asked, decision="replace")
            left = {each.content for each in await memory.list()}
            doubted = {old for _, old in await _pairs(memory)}
            assert doubted == left - {ACCOUNTS[3]}
            assert decided.commit is not None
            undone = await memory.undo(decided.commit)
            assert await _pairs(memory) == before
            await memory.undo(undone.seq)
        assert [each.content for each in await memory.list()] == [ACCOUNTS[3]]


async def test_if_the_middle_of_a_chain_was_never_right_its_ends_are_in_review() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        (middle, _) = await _chain(memory, 3)
        (asked,) = (each for each in await memory.review() if each.newer.content == middle[0])
        await memory.resolve(asked, decision="keep old")
        assert await _pairs(memory) == [(ACCOUNTS[2], ACCOUNTS[0])]


async def test_a_rule_or_a_correction_leaves_in_doubt_what_the_closed_fact_made_doubtful() -> None:
    said = "I commute in a Corolla", "I commute by Vespa now", "Sold the Vespa to some college kid"
    async with Memory.open(":memory:", embedder=None) as memory:
        for each in said[:2]:
            vespa = await memory.remember(each)
        sold = await memory.remember(said[2])
        assert {each.content: each.is_closed for each in sold.outdates} == {said[1]: True, said[0]: False}
        assert await _pairs(memory) == [(said[2], said[0]), (said[2], said[1])]
        replaced = next(each for each in await memory.review() if each.kind == "replaced")
        await memory.resolve(replaced, decision="keep old")
        assert await _pairs(memory) == [(said[1], said[0])]
        await memory.correct(vespa.id, "My boss gives me a lift")
        assert await _pairs(memory) == [("My boss gives me a lift", said[0])]


def test_the_command_says_what_was_closed_settled_and_opened(cli: Cli) -> None:
    for said in JOBS:
        cli("remember", said)
    first = cli("review", "--json").json["reviews"][0]["id"]
    shown = cli("resolve", first, "replace").out
    assert "Closed: Tom works as a singer" in shown
    assert "No longer in review: “Tom works as a singer” / “Tom works as a waiter”" in shown
    assert "Now in review: “Tom works as a baker” / “Tom works as a waiter”" in shown


def test_a_long_fact_is_said_to_be_closed_as_a_whole(cli: Cli) -> None:
    cli("remember", "Annelies works as a vet in Groningen with two horses")
    cli("remember", "Annelies works as a dentist")
    first = cli("review", "--json").json["reviews"][0]["id"]
    assert "It is closed as a whole" in cli("resolve", first, "replace").out.replace("\n", " ")


async def test_http_and_mcp_say_it_too(tmp_path: Path) -> None:
    store = tmp_path / "me.db"
    async with Memory.open(store, embedder="hashing") as memory:
        for said in [*JOBS, "Tom works as a pilot"]:
            await memory.remember(said)
    async with house(store) as at:
        user = at.client(at.secret("a", owner="me", trust="user"))
        first = (await user.post("/v1/review", json={})).json()[0]["id"]
        decided = (await user.post("/v1/resolve", json={"item": first, "decision": "replace"})).json()
        assert len(decided["settled"]) == len(decided["opened"]) == 1
    async with connected(store, profile="full") as client:
        answer = await client.call_tool("resolve_review", {"item": decided["opened"][0]["id"], "decision": "replace"})
        assert "Now in review" in answer.content[0].text


def test_a_decision_is_found_in_the_log_and_taken_back(cli: Cli) -> None:
    cli("remember", "I like tea")
    cli("remember", "I don't like tea")
    (review,) = cli("--json", "review").json["reviews"]
    cli("resolve", review["id"], "keep both")
    assert "Nothing to decide" in cli("review").out
    again = cli("resolve", review["id"], "replace")
    assert again.status == 4
    assert "`undo` its change, which `log` lists as resolve" in again.err
    (change,) = [each["seq"] for each in cli("--json", "log").json["commits"] if each["origin"] == "resolve"]
    assert "keep both" in cli("log").out
    cli("undo", str(change))
    assert [each["id"] for each in cli("--json", "review").json["reviews"]] == [review["id"]]
