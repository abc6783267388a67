"""The trace adds up to the score, to the last digit, for every store, question and setting."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from math import fsum
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ricordo import ConflictError, Fact, InvalidError, Memory, Message, Settings
from ricordo.model import Fusion, Results, SignalName
from ricordo.retrieval.signals import FITTED, SIGNALS
from tests.flows.conftest import START

NOW = datetime.fromtimestamp(START / 1_000, UTC)
SPEAKERS = ("Anna", "Bo", "Тимур", None)
SAID = (
    "Anna Bo likes tea coffee and cakes two three on Monday in May 2025 garden Berlin my I we dog dogs yesterday "
    "Тимур любит чай собака собаки в мае два Казань мы я вчера"
)
WORDS = SAID.split()
QUESTIONS = (
    "what does Anna like?",
    "what kinds of dogs have we seen",
    "when did Bo drink tea in May 2025?",
    "who was in Berlin yesterday",
    "how many cakes",
    "все собаки Тимура",
    "когда Тимур пил чай в мае?",
    "garden",
)

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
conflicting = st.sampled_from(WORDS).map(lambda word: f"Anna works at {word}")  # linked; the newer ranks first
messages = st.builds(
    lambda text, asks, speaker, session, days: Message(
        text=text + "?" * asks, speaker=speaker, session=session, at=NOW - timedelta(days=days)
    ),
    texts,
    st.booleans(),
    st.sampled_from(SPEAKERS),
    st.sampled_from(["one", "two", None]),
    st.integers(0, 400),
)
facts = st.builds(
    lambda text, confidence, days: Fact(
        content=text, confidence=confidence, expires=None if days is None else NOW + timedelta(days=days)
    ),
    texts | conflicting,
    st.floats(0.05, 1),
    st.sampled_from([None, 1, 5]),
)
left_out = st.sets(st.sampled_from(get_args(SignalName)), max_size=3).map(lambda names: ", ".join(sorted(names)))


class MovedClock:
    """Search three days after the store was filled, so that some facts have expired."""

    def __init__(self) -> None:
        self.ms = START

    def now(self) -> int:
        return self.ms


async def asked(
    turns: Sequence[Message],
    known: Sequence[Fact],
    *,
    afterwards: Sequence[str | None] = (),
    options: Settings,
    limit: int,
) -> list[Results]:
    clock = MovedClock()
    async with Memory.open(":memory:", embedder="hashing", settings=options, clock=clock) as memory:
        await memory.add_many(turns)
        nodes = {node.id: node for node in await memory.remember_many(known)}
        for node, done in zip(nodes.values(), afterwards, strict=False):
            with suppress(ConflictError):  # already replaced by a newer one
                if done == "correct":
                    await memory.correct(node.id, f"{node.content} in Kazan")
                elif done is not None:
                    await (memory.reinforce(node.id) if done == "reinforce" else memory.demote(node.id))
        await memory.settle()
        clock.ms += 3 * 86_400_000
        return [await memory.search(question, limit=limit, trace=True) for question in QUESTIONS]


@pytest.mark.slow
@given(
    turns=st.lists(messages, max_size=12),
    known=st.lists(facts, max_size=6),
    afterwards=st.lists(st.sampled_from(["reinforce", "demote", "correct", None]), max_size=6),
    fusion=st.sampled_from(get_args(Fusion)),
    without=left_out,
    limit=st.integers(1, 12),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_shares_of_every_hit_add_up_to_its_score(turns, known, afterwards, fusion, without, limit):
    options = Settings(durability="process", fusion=fusion, without_signals=without)
    for results in asyncio.run(asked(turns, known, afterwards=afterwards, options=options, limit=limit)):
        assert results.trace is not None
        assert results.trace.hits == tuple((hit.id, hit.why) for hit in results.hits)
        assert [hit.score for hit in results.hits] == sorted((hit.score for hit in results.hits), reverse=True)
        for hit in results.hits:
            parts = [share.share for share in hit.why]
            assert abs(fsum(parts) - hit.score) <= 1e-9 * max(abs(hit.score), max(map(abs, parts), default=0))
            assert {share.strategy for share in hit.why}.isdisjoint(options.signals_left_out())


def test_every_signal_can_be_named_in_the_settings():
    assert {*SIGNALS, "alike", "session"} == set(get_args(SignalName))  # these two are computed from all others


async def test_reciprocal_ranks_weight_a_signal_by_rank():
    texts = ("tea and cake", "tea", "a dog in the garden")
    turns = [Message(text=text, speaker="Bo", session="s") for text in texts]
    options = Settings(durability="process", fusion="rrf")
    results = (await asked(turns, [], options=options, limit=3))[0]
    shares = [share for hit in results.hits for share in hit.why if share.strategy in SIGNALS]
    assert shares
    for share in shares:
        assert share.rank is not None
        weight = FITTED["signals"][share.strategy] / 26.25
        assert share.share == pytest.approx(weight * 61 / (60 + share.rank), rel=1e-6)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"fusion": "best"}, "score or rrf"),
        ({"without_signals": "person, colour"}, "words in context, words, keywords, meaning, person"),
        ({"without_signals": ",".join(get_args(SignalName))}, "at least one"),
    ],
)
def test_an_invalid_setting_lists_valid_values(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidError) as raised:
        Settings(**given)
    assert named in f"{raised.value} {raised.value.hint}"


ASK = f"""
import asyncio, json, sys
from ricordo import Memory, Settings

class Clock:
    def now(self):
        return {START + 86_400_000}

async def main():
    options = Settings(durability="process", search_deadline_ms=60_000)
    async with Memory.open(sys.argv[1], embedder="stored", settings=options, clock=Clock()) as memory:
        print(json.dumps([
            [(hit.id, hit.score.hex(), [(share.strategy, share.rank, share.share.hex()) for share in hit.why])
             for hit in (await memory.search(question, trace=True)).hits]
            for question in json.loads(sys.argv[2])
        ]))

asyncio.run(main())
"""


@pytest.mark.slow
def test_answers_do_not_depend_on_hash_seeds(tmp_path: Path) -> None:
    path = tmp_path / "me.db"

    async def fill() -> None:
        texts = [" ".join(WORDS[(3 * n + k * (n % 5 + 1)) % len(WORDS)] for k in range(6)) for n in range(40)]
        async with Memory.open(path, embedder="default", clock=MovedClock()) as memory:
            await memory.add_many(
                [
                    Message(text=text, speaker=SPEAKERS[n % 4], session=f"s{n % 3}", at=NOW - timedelta(days=n))
                    for n, text in enumerate(texts)
                ]
            )
            await memory.remember_many([Fact(content=text, confidence=0.8) for text in texts[:10]])
            await memory.settle(600)

    asyncio.run(fill())
    answers = [
        subprocess.run(
            [sys.executable, "-c", ASK, str(path), json.dumps(QUESTIONS)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert answers[0] == answers[1]
    assert all(json.loads(answers[0]))


@pytest.mark.parametrize("only_relevant", [False, True])
async def test_full_text_answers_even_after_the_deadline(only_relevant):
    options = Settings(durability="process", search_deadline_ms=50, reader_threads=1)
    async with Memory.open(":memory:", embedder=None, settings=options) as memory:
        known = await memory.remember("Anna likes tea")
        store = memory._opened.store
        busy = asyncio.create_task(store.read(lambda _: time.sleep(0.5)))
        await asyncio.sleep(0.1)
        results = await memory.search("tea", only_relevant=only_relevant)
        assert (results.ids, results.degraded) == ([known.id], ())
        await busy


async def test_turns_without_the_named_person_lose_score() -> None:
    said = {
        "home": [("Anna", "I paint lakes on Sundays"), ("Bo", "You paint so well")],
        "work": [("Cem", "I paint houses all week"), ("Dora", "To paint is hard"), ("Cem", "Well, that is the job")],
        "gossip": [("Cem", "Anna would paint all night"), ("Dora", "Does she paint?")],
    }
    messages = [Message(text=text, speaker=who, session=where) for where, turns in said.items() for who, text in turns]
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.add_many(messages)
        results = await memory.search("What does Anna paint?", limit=10, trace=True)
    counted = {hit.content: share.raw for hit in results.hits for share in hit.why if share.strategy == "person"}
    assert counted["I paint lakes on Sundays"] == 1
    assert counted["You paint so well"] == counted["Anna would paint all night"] == counted["Does she paint?"] == -1
    assert counted["I paint houses all week"] == counted["To paint is hard"] == -3


async def test_a_correction_does_not_rest_on_itself(memory: Any) -> None:
    red = await memory.remember("My favourite colour is red")
    blue = await memory.correct(red.id, "My favourite colour is blue")
    assert blue.id not in [each.id for each in (await memory.explain(blue.id)).sources]


async def test_results_are_a_sequence_with_reasons_and_short_reprs(memory: Memory) -> None:
    for text in ("Anna likes tea", "Bob likes <b>tea</b>", "the car is red"):
        await memory.remember(text)
    results = await memory.search("who likes tea?", limit=2)
    assert (len(results), results[0], results[-1:], list(results)) == (
        2,
        results.hits[0],
        results.hits[1:],
        list(results.hits),
    )
    assert results[0] in results
    assert [*reversed(results)] == [*results.hits][::-1]
    assert all(hit.why and abs(sum(share.share for share in hit.why) - hit.score) < 1e-6 for hit in results)
    assert len(repr(results[0])) < 120
    assert repr(results).count("\n") == 2
    html = results._repr_html_()
    assert html.startswith("<table>")
    assert "<b>tea" not in html
    page = await memory.list()
    assert (len(page), list(page)) == (3, list(page.nodes))
    assert "Anna likes tea" in repr(page)
    assert "Anna likes tea" in page._repr_html_()
    assert not await memory.search("zebra", where={"x": 1})
