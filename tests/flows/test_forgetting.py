"""Fading, lifetimes and upkeep: what ends, what never does, and what is shown of it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from math import exp, log
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest

from ricordo import DeniedError, Fact, InvalidError, Memory, Scope, Settings, UnavailableError
from ricordo.model import Category
from tests.flows.conftest import DAY, ConfirmingModel, HandClock, Place

BERLIN = ZoneInfo("Europe/Berlin")

# For full confidence without use: (ln(1 / 0.05) / 0.1) ^ (1 / 0.8) days.
FADED_DAY = (log(20) / 0.1) ** 1.25


async def inferred(memory: Any, text: str, **fields: Any) -> Any:
    return await memory.remember(text, origin="consolidation", **fields)


async def test_a_memory_fades_on_the_day_the_formula_says_however_often_upkeep_runs(
    memory: Any, clock: HandClock
) -> None:
    start = clock.ms
    node = await inferred(memory, "Anna seems to prefer mornings")
    for day in range(1, 71):
        clock.ms = start + day * DAY
        for _ in range(3):
            assert (await memory.maintain()).ok
        why = await memory.explain(node.id)
        assert why.retention == pytest.approx(exp(-0.1 * day**0.8))
        assert (why.fades_at - node.created_at).total_seconds() == pytest.approx(FADED_DAY * 86_400, abs=1)
    assert (await memory.get(node.id)).is_live
    clock.ms = start + 71 * DAY
    assert (await memory.gc()).archived == {"decayed": 1}
    assert (await memory.get(node.id)).closed_reason == "decayed"
    assert [commit.origin for commit in await memory.log() if commit.run_id] == ["gc"]


async def test_what_a_user_said_is_never_closed_by_fading(memory: Any, clock: HandClock) -> None:
    said = [
        await memory.remember("I am allergic to peanuts"),
        await memory.remember("The spare key is under the third pot", confidence=0.06),
        await memory.remember("Kim was tired", category="observation", expires="for 3 days", confidence=0.05),
        await memory.remember("I like tea", origin="cli"),
    ]
    clock.ms += 2 * DAY
    assert (await memory.gc()).archived == {}
    clock.ms += 9_000 * DAY
    assert (await memory.gc()).archived == {"expired": 1}  # observations are kept for three days
    assert [(await memory.get(node.id)).is_live for node in said] == [True, True, False, True]
    assert {weak.node.id for weak in await memory.weak()} == {said[0].id, said[1].id, said[3].id}
    assert (await memory.search("peanuts allergic")).ids[0] == said[0].id


async def test_a_clock_that_goes_backwards_breaks_nothing(memory: Any, clock: HandClock) -> None:
    now = clock.ms
    node = await inferred(memory, "Anna seems to prefer mornings")
    clock.ms = now - 400 * DAY
    why = await memory.explain(node.id)
    assert why.retention == 1.0
    assert (await memory.maintain()).ok
    assert [weak.node.id for weak in await memory.weak()] == []
    await memory.reinforce(node.id)
    clock.ms = now + 10 * DAY
    assert (await memory.explain(node.id)).retention == pytest.approx(exp(-0.1 * 10**0.8))
    assert (await memory.gc()).archived == {}


@pytest.mark.slow
async def test_a_thousand_searches_slow_the_fading_of_a_memory_and_do_not_raise_its_rank(
    place: Place, clock: HandClock
) -> None:
    settings = Settings(durability="process")
    async with Memory.open(place.location, embedder=None, clock=clock, settings=settings) as memory:
        shown = await memory.remember("The boat lies in the northern harbour", confidence=0.5)
        other = await memory.remember("The boat lies in the southern harbour", confidence=0.5)
        clock.ms += 20 * DAY

        async def scores() -> list[tuple[str, float]]:
            hits = (await memory.search("where does the boat lie in the harbour")).hits
            return [(hit.id, hit.score) for hit in hits]

        before = await scores()
        assert {node_id for node_id, _ in before} == {shown.id, other.id}
        for _ in range(1_000):
            assert len((await memory.search("boat northern", limit=1)).hits) == 1
        await memory._opened._usage.flush()
        assert await scores() == before
        held = (await memory.explain(shown.id)).retention
        assert held == pytest.approx(0.5 + 0.05 * log(1 + 1_001 / 20), abs=1e-2)
        clock.ms += 400 * DAY
        assert [node_id for node_id, _ in await scores()] == [node_id for node_id, _ in before]


async def test_untouched_memories_rank_below_confirmed_and_reinforced_ones(memory: Any, clock: HandClock) -> None:
    plain, sure, useful = [
        await memory.remember(f"The boat {name} lies in the harbour", valid_from="2025-01-01")
        for name in ("Alba", "Bora", "Cima")
    ]
    clock.ms += 300 * DAY
    await memory.confirm(sure.id)
    await memory.reinforce(useful.id)
    found = (await memory.search("which boat lies in the harbour", type="semantic", trace=True)).hits
    assert [hit.id for hit in found] == [useful.id, sure.id, plain.id]
    (share,) = [share for share in found[-1].why if share.strategy == "recency"]
    assert share.raw == pytest.approx(0.9 + 0.1 / (1 + 300 * 0.01), abs=1e-3)


async def test_what_is_plainly_passing_has_a_lifetime(memory: Any, clock: HandClock) -> None:
    node = await memory.remember("I'm waiting for the plumber")
    why = await memory.explain(node.id)
    assert (why.ends_at, why.ends_by) == (node.expires_at, "lifetime")
    assert node.expires_at.astimezone(BERLIN).strftime("%m-%d %H:%M") == "02-01 00:00"
    clock.ms += round((node.expires_at - node.created_at).total_seconds() * 1_000) - 1
    assert (await memory.gc()).archived == {}
    clock.ms += 1
    report = await memory.gc(dry_run=True)
    assert (report.archived, report.dry_run, report.commits, report.live) == ({"expired": 1}, True, (), 0)
    assert (await memory.get(node.id)).is_live
    done = await memory.gc()
    assert (done.archived, done.items[0].why, done.live) == (report.archived, report.items[0].why, 0)
    assert done.items[0].why == "it was to be kept until 2026-02-01"
    assert (await memory.get(node.id)).closed_reason == "expired"
    assert (await memory.gc()).archived == {}


@pytest.mark.parametrize("category", get_args(Category))
async def test_a_category_alone_is_no_lifetime(memory: Any, clock: HandClock, category: Any) -> None:
    node = await memory.remember("The plumber has the key", category=category)
    clock.ms += 5_000 * DAY
    assert (await memory.gc()).archived == {}
    assert (await memory.explain(node.id)).ends_at is None


async def test_reinforcing_restarts_a_lifetime_and_future_ones_have_not_started(memory: Any, clock: HandClock) -> None:
    cold = await memory.remember("I have a bad cold")
    trip = await memory.remember("Kim is staying with us", valid_from="2026-03-01T10:00:00Z")
    clock.ms += 20 * DAY
    assert (await memory.reinforce(cold.id)).expires_at - cold.expires_at == timedelta(days=20)
    clock.ms += 20 * DAY
    assert (await memory.gc()).archived == {}
    clock.ms += 40 * DAY
    assert [leaving.node.id for leaving in (await memory.gc()).items] == [cold.id]
    assert (await memory.get(trip.id)).is_live


async def test_confirmed_and_protected_memories_stay(memory: Any, clock: HandClock) -> None:
    await memory.add_entity("Anna", protected=True)
    kept = [
        await inferred(memory, "Anna seems to prefer mornings", about=["Anna"]),
        await memory.remember("Anna has a dentist's appointment", category="event", about=["Anna"]),
        await memory.confirm((await inferred(memory, "Boris may like chess", category="context", confidence=0.2)).id),
    ]
    gone = await inferred(memory, "Boris may like go")
    clock.ms += 3_000 * DAY
    assert [leaving.node.id for leaving in (await memory.gc()).items] == [gone.id]
    whys = [await memory.explain(node.id) for node in kept]
    assert [(why.fading, why.fades_at, why.retention) for why in whys] == [("never", None, 1.0)] * 3


async def test_facts_about_frequently_named_people_stay(place: Place, clock: HandClock) -> None:
    settings = Settings(durability="process", protect_mentions=3)
    async with Memory.open(place.location, embedder=None, clock=clock, settings=settings) as memory:
        facts = [await inferred(memory, f"Anna seems to like song {number}", about=["Anna"]) for number in range(4)]
        rare = await inferred(memory, "Boris seems to like songs", about=["Boris"])
        clock.ms += 300 * DAY
        assert [leaving.node.id for leaving in (await memory.gc()).items] == [rare.id]
        assert {(await memory.explain(node.id)).fading for node in facts} == {"never"}


async def test_repeated_user_statements_count_as_said_and_inferred_ones_do_not(place: Place, clock: HandClock) -> None:
    given = {"kind": "fact", "category": "knowledge", "about": [], "slot": "", "confidence": 0.9}
    facts = [
        {"text": "The user lives near the lake", "evidence": ["e1"], "said": True, **given},
        {"text": "The user is near the lake often", "evidence": ["e1"], "said": False, **given},
    ]
    model = ConfirmingModel([{"facts": facts, "entities": [], "relations": [], "causes": [], "summary": ""}])
    settings = Settings(durability="process")
    async with Memory.open(place.location, embedder=None, model=model, clock=clock, settings=settings) as memory:
        await memory.add("I live near the lake", session="s1")
        await memory.consolidate("s1")
        clock.ms += 100 * DAY
        assert (await memory.gc()).archived == {"decayed": 1}
        assert [node.content for node in (await memory.list(type="semantic")).nodes] == ["The user lives near the lake"]


async def test_lasting_facts_from_other_sources_fade(memory: Any) -> None:
    assert (await memory.explain((await memory.remember("A", origin="extraction")).id)).fading == "closes"
    assert (await memory.explain((await memory.remember("B", origin="agent")).id)).fading == "sinks"


async def test_a_setting_lets_everything_fade(place: Place, clock: HandClock) -> None:
    settings = Settings(durability="process", decay_closes="all")
    async with Memory.open(place.location, embedder=None, clock=clock, settings=settings) as memory:
        await memory.remember("I like tea")
        clock.ms += 71 * DAY
        assert (await memory.gc()).archived == {"decayed": 1}


async def test_an_explicit_expiry_also_closes_long_lived_memories(memory: Any, clock: HandClock) -> None:
    node = await memory.confirm((await memory.remember("The door code is 4711", expires="2026-01-15")).id)
    clock.ms += 20 * DAY
    report = await memory.gc()
    assert (report.archived, report.items[0].why) == ({"expired": 1}, "it was to be kept until 2026-01-15")
    assert (await memory.search("door code", archived=True)).ids == [node.id]
    back = await memory.restore(node.id)
    assert back.expires_at is None
    assert (await memory.gc()).archived == {}


async def test_an_expiry_in_words_is_parsed_and_reported(memory: Any, clock: HandClock) -> None:
    given = await memory.remember("The lift is broken", expires="for 2 weeks")
    until = await memory.remember("Ключ у Ани", expires="до пятницы")
    asked = await memory.remember("Remember for 3 days: the locker is number 12")
    untrusted = await memory.remember("Remember for 3 days: the moon is green", origin="web")
    ends = [node.expires_at.astimezone(BERLIN).strftime("%m-%d %H:%M") for node in (given, until, asked)]
    assert (ends, untrusted.expires_at) == (["01-15 11:00", "01-03 00:00", "01-04 11:00"], None)
    why = await memory.explain(asked.id)
    assert (why.ends_at, why.ends_by) == (asked.expires_at, "expiry")
    with pytest.raises(InvalidError, match="expires"):
        await memory.remember("The lift works again", expires="last week")
    clock.ms += 4 * DAY
    assert (await memory.search("locker number", type="semantic")).ids[:1] != [asked.id]
    assert {leaving.node.id for leaving in (await memory.gc()).items} == {until.id, asked.id}


async def test_a_restored_memory_counts_as_new(memory: Any, clock: HandClock) -> None:
    node = await inferred(memory, "Anna seems to prefer mornings")
    clock.ms += 72 * DAY
    await memory.gc()
    await memory.restore(node.id)
    clock.ms += 70 * DAY
    assert (await memory.gc()).archived == {}
    clock.ms += DAY
    assert (await memory.gc()).archived == {"decayed": 1}


@pytest.mark.slow
async def test_upkeep_can_be_undone_as_a_whole(memory: Any, clock: HandClock) -> None:
    nodes = await memory.remember_many(
        [Fact(content=f"Errand {number}", expires="for 2 weeks") for number in range(1_100)]
    )
    clock.ms += 15 * DAY
    told: list[tuple[int, int]] = []
    report = await memory.gc(progress=lambda done, total: told.append((done, total)))
    assert (report.archived, len(report.items), len(report.commits)) == ({"expired": 1_100}, 1_000, 6)
    assert told[:2] + told[-1:] == [(200, 1_100), (400, 1_100), (1_100, 1_100)]
    assert (await memory.stats()).closed == 1_100
    (run,) = report.runs
    await memory.undo(run)
    assert ((await memory.stats()).closed, (await memory.get(nodes[7].id)).is_live) == (0, True)
    assert all(finding.ok for finding in (await memory.doctor()).findings)


async def test_maintain_starts_with_ended_sessions(place: Place, clock: HandClock) -> None:
    asked: list[object] = []

    def answer(*given: object) -> dict[str, object]:
        asked.append(given)
        return {"facts": [], "entities": [], "relations": [], "causes": [], "summary": "They spoke."}

    settings = Settings(durability="process")
    model = ConfirmingModel(answer)
    async with Memory.open(place.location, embedder=None, model=model, clock=clock, settings=settings) as memory:
        await memory.add("I was at the lake", session="s1")
        quiet = (await memory.maintain()).steps[0]
        assert (quiet.name, quiet.detail, asked) == ("sessions", "nothing to do", [])
        clock.ms += DAY
        assert "would" in (await memory.maintain(dry_run=True)).steps[0].detail
        assert asked == []
        assert (await memory.maintain()).steps[0].detail == "1 conversation became knowledge"
        assert len(asked) == 1
        assert (await memory.maintain()).steps[0].detail == "nothing to do"


async def test_a_failing_step_does_not_stop_the_others(place: Place, clock: HandClock) -> None:
    def answer(*given: object) -> dict[str, object]:
        raise UnavailableError("the model is down")

    settings = Settings(durability="process")
    model = ConfirmingModel(answer)
    async with Memory.open(place.location, embedder=None, model=model, clock=clock, settings=settings) as memory:
        await memory.add("I was at the lake", session="s1")
        await memory.remember("Call the plumber", expires="for 2 weeks")
        clock.ms += 20 * DAY
        report = await memory.maintain()
        assert (report.ok, [step.ok for step in report.steps]) == (False, [False, *[True] * 7])
        assert "the model is down" in report.steps[0].detail
        assert report.steps[1].report.archived == {"expired": 1}


@pytest.mark.slow
async def test_concurrent_upkeep_closes_each_memory_once(place: Place, clock: HandClock) -> None:
    options: dict[str, Any] = {"embedder": None, "clock": clock, "settings": Settings(durability="process")}
    async with Memory.open(place.location, **options) as one, Memory.open(place.location, **options) as two:
        await one.remember_many([Fact(content=f"Errand {number}", expires="for 2 weeks") for number in range(900)])
        clock.ms += 15 * DAY
        reports = await asyncio.gather(one.maintain(all_owners=True), two.gc(), one.gc())
        done = [reports[0].steps[1].report, *reports[1:]]
        assert sum(report.archived.get("expired", 0) for report in done if report) == 900
        assert sum(len(report.items) for report in done if report) == 900
        assert (await two.stats()).closed == 900
        assert [len(versions) for versions in [await one.history((await two.archive(1)).nodes[0].id)]] == [2]


@pytest.mark.slow
async def test_interrupted_upkeep_is_finished_by_the_next_run(place: Place, clock: HandClock) -> None:
    settings = Settings(durability="process")
    async with Memory.open(place.location, embedder=None, clock=clock, settings=settings) as memory:
        await memory.remember_many([Fact(content=f"Errand {number}", expires="for 2 weeks") for number in range(900)])
        clock.ms += 15 * DAY

        def stop(done: int, total: int) -> None:
            if done >= 400:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await memory.gc(progress=stop)
        assert (await memory.stats()).closed == 400
        assert (await memory.gc()).archived == {"expired": 500}


async def test_too_many_memories_evict_the_least_valuable(place: Place, clock: HandClock) -> None:
    settings = Settings(durability="process", max_entries=3)
    async with Memory.open(place.location, embedder=None, clock=clock, settings=settings) as memory:
        old = await memory.remember("The old boat is green")
        sure = await memory.confirm((await memory.remember("The very old boat is red")).id)
        useful = await memory.reinforce((await memory.remember("The useful boat is blue")).id)
        clock.ms += 30 * DAY
        fresh = [await memory.remember(f"The new boat number {number} is white") for number in range(2)]
        dry = await memory.gc(dry_run=True)
        report = await memory.gc()
        assert dry.items == report.items
        assert (dry.live, dry.live_bytes, dry.fits) == (report.live, report.live_bytes, True)
        assert (report.archived, report.live) == ({"evicted": 2}, 3)
        assert [leaving.node.id for leaving in report.items] == [old.id, useful.id]
        assert {node.id for node in (await memory.list()).nodes} == {sure.id, fresh[0].id, fresh[1].id}
        assert (await memory.gc()).archived == {}


async def test_too_much_text_prunes_the_lowest_until_it_fits(place: Place, clock: HandClock) -> None:
    settings = Settings(durability="process", max_size=4_000)
    async with Memory.open(place.location, embedder=None, clock=clock, settings=settings) as memory:
        nodes = await memory.remember_many([Fact(content=f"Fact {number:03} " + "я" * 20) for number in range(100)])
        await memory.demote(nodes[50].id)
        await memory.reinforce(nodes[0].id)
        dry = await memory.prune(dry_run=True)
        report = await memory.prune()
        assert dry.items == report.items
        assert report.items[0].node.id == nodes[50].id
        assert nodes[0].id not in {leaving.node.id for leaving in report.items}
        size = len(nodes[0].content.encode())
        assert (report.live, report.live_bytes, report.fits) == (4_000 // size, 4_000 // size * size, True)
        assert report.archived == {"pruned": 100 - 4_000 // size}
        assert (await memory.prune()).archived == {}
        await memory.undo(report.runs[0])
        assert (await memory.prune()).archived == report.archived


async def test_a_low_score_alone_never_prunes(memory: Any) -> None:
    node = await memory.remember("I like tea")
    for _ in range(10):
        await memory.demote(node.id)
    assert ((await memory.prune()).archived, (await memory.gc()).archived) == ({}, {})


async def test_opening_a_store_can_run_gc(place: Place, clock: HandClock) -> None:
    async def opened(*, auto_gc: bool) -> int:
        settings = Settings(durability="process", auto_gc=auto_gc)
        async with Memory.open(place.location, embedder=None, clock=clock, settings=settings) as memory:
            return (await memory.scoped(Scope(owner="ann")).stats()).closed

    async with Memory.open(place.location, embedder=None, clock=clock) as memory:
        await memory.scoped(Scope(owner="ann")).remember("Call the plumber", expires="for 2 weeks")
    clock.ms += 20 * DAY
    assert [await opened(auto_gc=False), await opened(auto_gc=True)] == [0, 1]


async def test_upkeep_covers_the_caller_unless_all_owners_is_allowed(memory: Any, clock: HandClock) -> None:
    ann, group = memory.scoped(Scope(owner="ann")), memory.scoped(Scope(owner="ann", chat="ski"))
    hers = await ann.remember("Call the plumber", expires="for 2 weeks")
    await memory.scoped(Scope(owner="", chat="ski")).remember("Wax the skis", expires="for 2 weeks")
    clock.ms += 20 * DAY
    assert ((await memory.gc()).archived, list(await memory.weak())) == ({}, [])
    assert (await memory.gc()).live == 0
    with pytest.raises(DeniedError):
        await ann.gc(all_owners=True)
    assert [leaving.node.id for leaving in (await ann.gc(dry_run=True)).items] == [hers.id]
    assert (await group.gc(dry_run=True)).archived == {"expired": 2}
    assert (await ann.stats()).last_decay is None
    report = await memory.maintain(all_owners=True)
    assert [step.name for step in report.steps] == [
        "sessions",
        "gc",
        "prune",
        "changes",
        "enrich",
        "causes",
        "questions",
        "tidy",
    ]
    assert report.steps[1].report.archived == {"expired": 2}
    changes = [(commit.actor, commit.reason) for commit in await ann.log()]
    # In a folder store, rewriting the files is a change, too.
    assert [each for each in changes if each[1] != "files written anew"] == [("upkeep", "expired"), ("ann", "remember")]
    assert [commit.origin for commit in await memory.log()] == []
    (run,) = [commit.run_id for commit in await ann.log() if commit.run_id]
    await ann.undo(run)
    assert (await ann.get(hers.id)).is_live


async def test_weak_lists_what_ends_first_and_why(memory: Any, clock: HandClock) -> None:
    unsure = await memory.remember("Kim may move to Riga", confidence=0.3)
    await memory.remember("I like tea")
    cold = await memory.remember("I have a bad cold", expires="2026-01-15")
    code = await memory.remember("The door code is 4711", expires="2026-01-14")
    clock.ms += 10 * DAY
    found = await memory.weak()
    assert [weak.node.id for weak in found] == [code.id, cold.id, unsure.id]
    assert [weak.fading for weak in found] == ["sinks"] * 3
    assert "only 30% sure" in found[2].why
    assert ("expires on 2026-01-14" in found[0].why, found[0].ends_by) == (True, "expiry")
    assert (found[2].leaves_at, found[2].retention) == (None, pytest.approx(0.3 * exp(-0.1 * 10**0.8)))
    assert found[1].leaves_at == cold.expires_at
    assert [weak.node.id for weak in await memory.weak(1)] == [code.id]
    with pytest.raises(InvalidError):
        await memory.weak(0)
