"""A caller that only proposes changes nothing; what it proposes waits until the user decides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ricordo import ConflictError, DeniedError, Fact, InvalidError, Memory, Scope, Settings
from tests.leaks import staged

ANN = Scope(owner="ann")
AGENT = Scope(owner="ann", trust="agent", propose=True)


@pytest.fixture(params=["file", "folder"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Memory]:
    place = tmp_path / ("me.db" if request.param == "file" else "notes/")
    settings = Settings(durability="process")
    async with Memory.open(place, embedder=None, settings=settings, scope=ANN) as opened:
        yield opened


async def texts(memory: Memory) -> set[str]:
    return {node.content for node in (await memory.list()).nodes}


async def test_a_proposed_fact_waits_until_it_is_approved(store: Memory) -> None:
    agent = store.scoped(AGENT)
    await store.remember("I live in Oslo")
    held = await agent.remember("I live in Rome", about=["Anna"], session="monday")
    assert (held.closed_reason, await texts(store), await store.people()) == ("quarantined", {"I live in Oslo"}, ())
    (review,) = await store.review()
    assert (review.newer.content, review.reasons, review.older) == ("I live in Rome", ("proposed",), None)
    await store.resolve(review, decision="approve")
    assert "I live in Rome" in await texts(store)
    assert [each.name for each in await store.people()] == ["Anna"]


async def test_a_refused_proposal_leaves_no_trace_in_answers(store: Memory) -> None:
    kept = await store.remember("Anna is a nurse")
    agent = store.scoped(AGENT)
    await agent.remember("Anna is an engineer")
    await agent.correct(kept.id, "Anna is a doctor")
    decided = await store.resolve_many(decision="refuse")
    assert len(decided) == 2
    assert (await texts(store), await store.review()) == ({"Anna is a nurse"}, [])


async def test_a_review_shows_the_memory_before_and_after(store: Memory) -> None:
    kept = await store.get((await store.remember("Anna is a nurse", tags=["work"])).id)
    agent = store.scoped(AGENT)
    await agent.correct(kept.id, "Anna is a doctor")
    await agent.update(kept.id, tags=["family"], expires="2099-01-01")
    await agent.forget(kept.id, "it is old")
    assert (await store.get(kept.id)) == kept
    forgotten, updated, corrected = await store.review(kind="quarantine")
    for each in (forgotten, updated, corrected):
        assert each.older == kept and each.newer.closed_reason == "quarantined"
    assert (corrected.newer.content, corrected.reasons) == ("Anna is a doctor", ("proposed", "correct"))
    assert (updated.newer.tags, updated.reasons) == (("family",), ("proposed", "update"))
    assert updated.newer.expires_at is not None
    assert (forgotten.reasons, forgotten.newer.content) == (("proposed", "forget"), "forget: it is old")


async def test_approved_changes_are_carried_out_in_the_name_of_who_proposed_them(store: Memory) -> None:
    nurse, oslo, tea = [
        await store.remember(each) for each in ("Anna is a nurse", "The office is in Oslo", "Ben drinks tea")
    ]
    agent = store.scoped(AGENT)
    await agent.correct(nurse.id, "Anna is a doctor")
    await agent.update(oslo.id, tags=["work"])
    await agent.forget(tea.id)
    decided = {each.reasons[1]: each for each in await store.resolve_many(decision="approve")}
    assert await texts(store) == {"Anna is a doctor", "The office is in Oslo"}
    assert (await store.get(oslo.id)).tags == ("work",)
    corrected = await store.get(decided["correct"].newer.id)
    assert (corrected.origin, (await store.get(nurse.id)).closed_reason) == ("agent", "superseded")
    assert (await store.get(tea.id)).closed_reason == "forgotten"


async def test_undo_takes_an_approval_back(store: Memory) -> None:
    kept = await store.remember("Anna is a nurse")
    await store.scoped(AGENT).correct(kept.id, "Anna is a doctor")
    await store.resolve_many(decision="approve")
    await store.undo((await store.log(1))[0].seq)
    assert await texts(store) == {"Anna is a nurse"}
    assert [each.reasons for each in await store.review()] == [("proposed", "correct")]


async def test_the_user_may_edit_what_they_approve(store: Memory) -> None:
    kept = await store.remember("Anna is a nurse")
    agent = store.scoped(AGENT)
    await agent.correct(kept.id, "Anna is a doctor")
    await agent.remember("Ben drinks tee")
    fact, corrected = await store.review(kind="quarantine")
    await store.resolve(fact, decision="approve", content="Ben drinks tea")
    await store.resolve(corrected, decision="approve", content="Anna is a surgeon")
    assert await texts(store) == {"Ben drinks tea", "Anna is a surgeon"}
    with pytest.raises(InvalidError, match="content"):
        await store.resolve(fact, decision="refuse", content="Ben")


async def test_what_is_to_be_forgotten_has_no_words_to_edit(store: Memory) -> None:
    kept = await store.remember("Anna is a nurse")
    await store.scoped(AGENT).forget(kept.id)
    (review,) = await store.review()
    with pytest.raises(InvalidError, match="no content to edit"):
        await store.resolve(review, decision="approve", content="Anna is a doctor")
    assert await texts(store) == {"Anna is a nurse"}


@pytest.mark.parametrize(
    "given", [{}, "forget", {"method": "forget", "id": "ID", "arguments": {}, "state": ""}, {"method": "erase"}]
)
async def test_an_attribute_makes_no_proposal(store: Memory, given: object) -> None:
    kept = await store.remember("Anna is a nurse")
    if isinstance(given, dict) and "id" in given:
        given = {**given, "id": kept.id}
    agent = store.scoped(AGENT)
    await agent.remember("Ben drinks tea", attributes={"proposes": given})
    await store.remember("The museum opens at ten", origin="web", attributes={"proposes": given})
    assert len(await store.review()) == 2
    await store.resolve_many(decision="approve")
    assert await texts(store) == {"Anna is a nurse", "Ben drinks tea", "The museum opens at ten"}


async def test_what_changed_meanwhile_is_shown_and_what_is_gone_cannot_be_approved(store: Memory) -> None:
    kept = await store.remember("Anna is a nurse")
    agent = store.scoped(AGENT)
    await agent.correct(kept.id, "Anna is a doctor")
    await store.update(kept.id, tags=["family"])
    (review,) = await store.review(kind="quarantine")
    assert review.reasons[2:] == ("the memory has changed since",)
    await store.forget(kept.id)
    (review,) = await store.review(kind="quarantine")
    assert "was forgotten" in review.reasons[2]
    with pytest.raises(ConflictError, match="forgotten"):
        await store.resolve(review, decision="approve")
    assert list(await store.resolve_many(decision="approve")) == []
    await store.resolve(review, decision="refuse")


async def test_several_proposals_about_one_memory_are_decided_one_by_one(store: Memory) -> None:
    kept = await store.remember("Anna is a nurse")
    agent = store.scoped(AGENT)
    await agent.correct(kept.id, "Anna is a doctor")
    await agent.correct(kept.id, "Anna is a vet")
    waiting = await store.review(kind="quarantine")
    with pytest.raises(InvalidError, match="several proposals"):
        await store.resolve_many(waiting, decision="approve")
    assert await texts(store) == {"Anna is a nurse"}
    assert [each.newer.content for each in await store.resolve_many(decision="approve")] == ["Anna is a doctor"]


@pytest.mark.slow
async def test_approval_of_a_thousand_is_one_commit_and_can_be_by_trust(store: Memory) -> None:
    said = store.scoped(Scope(owner="ann", propose=True))
    await said.remember("I am allergic to nuts")
    agent = store.scoped(AGENT)
    await agent.remember("Anna is a nurse")
    await store.resolve_many(decision="approve", of_trust="user")
    assert await texts(store) == {"I am allergic to nuts"}
    await agent.remember_many([Fact(content=f"Box {number} holds part {number * 7}") for number in range(1_000)])
    before = (await store.log(1))[0].seq
    decided = await store.resolve_many(decision="approve")
    assert (len(decided), (await store.log(1))[0].seq - before, (await store.stats()).quarantined) == (1_001, 1, 0)
    assert len((await store.search("Box 77", limit=3)).hits) == 3


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("add", ("hello",)),
        ("resolve_many", ()),
        ("confirm", ("x",)),
        ("restore", ("x",)),
        ("undo", (1,)),
        ("erase", ()),
        ("relate", ("Anna", "boss")),
        ("consolidate", ()),
        ("gc", ()),
        ("export", ("x.jsonl",)),
    ],
)
async def test_nothing_else_that_changes_is_open_to_it(store: Memory, name: str, given: tuple[object, ...]) -> None:
    for scope in (AGENT, Scope(owner="ann", propose=True)):
        decision = {"decision": "approve"} if name == "resolve_many" else {}
        with pytest.raises(DeniedError, match="only proposes"):
            await getattr(store.scoped(scope), name)(*given, **decision)
    with pytest.raises(DeniedError):  # and it cannot make itself one that does more
        await store.scoped(AGENT).scoped(ANN).confirm("x")


async def test_erasure_takes_what_was_proposed_about_a_memory(store: Memory, tmp_path: Path) -> None:
    kept = await store.remember("Anna is a nurse")
    agent = store.scoped(AGENT)
    await agent.correct(kept.id, "Anna is a zqzebra")
    await agent.update(kept.id, content="Anna is a zqzebra again")
    await store.erase(id=kept.id)
    assert await store.review() == []
    files = [each for each in tmp_path.rglob("*") if each.is_file()]  # noqa: ASYNC240
    assert [each for each in files if b"zqzebra" in each.read_bytes()] == []


async def test_credentials_in_proposals_are_redacted(store: Memory) -> None:
    kept = await store.remember("The deploy runs at night")
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    await store.scoped(AGENT).correct(kept.id, f"The deploy uses {secret}")
    (review,) = await store.review(kind="quarantine")
    assert secret not in str(review)
    await store.resolve(review, decision="approve")
    assert secret not in str(await texts(store))


@pytest.mark.slow
async def test_proposals_change_no_answer_of_anyone(tmp_path: Path) -> None:
    tally = await staged.run(300, 3)
    assert (tally.canaries, tally.changed) == ([], [])
    assert tally.proposed > 150
