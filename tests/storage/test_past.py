"""`as_of` equals a copy of the store made at that time, whatever changes and clock steps came since."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from tests.storage.histories import NICKNAMES, OPTIONS, PEOPLE, HandClock, History

from ricordo import Memory, NotFoundError
from ricordo.clock import to_ms
from ricordo.model import Profile

NO_SPAN = {"first_seen": None, "last_seen": None}
SEEDS = range(int(os.environ.get("RICORDO_HISTORIES", "1")))
STEPS = 30


async def everything(memory: Any, history: History, **when: Any) -> dict[str, Any]:
    """Return all public answers of a store, now or as of a time."""
    told: dict[str, Any] = {}
    for archived in (False, True):
        told[f"list archived={archived}"] = unmarked(await memory.list(archived=archived, limit=1_000, **when))
        for name in (*PEOPLE, *NICKNAMES):
            told[f"{name} archived={archived}"] = unmarked(
                await answer(memory.list, entity=name, archived=archived, **when)
            )
    told["filtered"] = unmarked(await memory.list(type="episodic", session="s1", limit=7, **when))
    told["tagged"] = unmarked(await memory.list(tag="x", **when))
    for node_id in history.ids:
        told[f"get {node_id}"] = await answer(memory.get, node_id, **when)
        told[f"history {node_id}"] = await answer(memory.history, node_id, **when)
    if hasattr(memory, "entity"):
        for name in (*PEOPLE, *NICKNAMES):
            profile = await answer(memory.entity, name, **when)
            # Today's span includes removed links; that of the past is exact.
            told[f"entity {name}"] = profile if isinstance(profile, str) else replace(unmarked(profile), **NO_SPAN)
    return told


def unmarked(answer: Any) -> Any:
    """Return a page or a profile without the notes on what is closed or in doubt today, which a copy cannot know."""
    if isinstance(answer, str):
        return answer
    name = "facts" if isinstance(answer, Profile) else "nodes"
    return replace(answer, **{name: tuple(replace(node, notice="") for node in getattr(answer, name))})


async def answer(ask: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return await ask(*arguments, **options)
    except NotFoundError as error:
        return str(error)


QUESTIONS = ("who likes tea and chess", "Anna the red bicycle", "Эмма", "what did Annie do yesterday")
CONDITIONS = ({"type": "any"}, {}, {"archived": True, "type": "any"}, {"session": "s1", "type": "any"})


async def check_search(memory: Any, copy: Any, **when: Any) -> None:
    """Only memories of the copy, unchanged; and every memory with a word of the question."""
    for question in QUESTIONS:
        for options in CONDITIONS:
            found = await memory.search(question, limit=100, **options, **when)
            for hit in found.hits:
                node = await copy.get(hit.id)
                assert node.is_live != options.get("archived", False)
                assert node.session == options.get("session", node.session)
                assert shown(hit) == shown(node)
    held = (await copy.list(limit=1_000)).nodes
    found = await memory.search(QUESTIONS[0], type="any", limit=1_000, **when)
    assert {node.id for node in held if "tea" in node.content or "chess" in node.content} <= set(found.ids)


def shown(memory: Any) -> tuple[Any, ...]:
    return (
        memory.content,
        memory.type,
        memory.category,
        memory.tags,
        memory.about,
        memory.confidence,
        memory.speaker,
        memory.session,
        memory.event_time,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_the_past_equals_a_copy_taken_then(tmp_path, seed):
    clock = HandClock()
    copies: list[tuple[int, int]] = []
    async with Memory.open(tmp_path / "m.db", clock=clock, **OPTIONS) as memory:
        history = History(memory, clock, tmp_path / "m.db", seed=seed)
        for number in range(STEPS):
            await history.step()
            if number % 4 == 1:
                await memory.settle(600)
                copies.append((await history.commit(), clock.ms))
                await memory.backup(tmp_path / f"copy{len(copies)}.db")
        await memory.settle(600)
        times = {commit.seq: to_ms(commit.at) for commit in await memory.log(1_000)}
        for place, (commit, taken) in enumerate(copies, start=1):
            at = HandClock(times.get(commit, 0))
            async with Memory.open(tmp_path / f"copy{place}.db", clock=at, **OPTIONS) as copy:
                now = await everything(copy, history)
                then = await everything(memory, history, as_of=commit)
                assert then == now
                await check_search(memory, copy, as_of=commit)
            meant = max((seq for seq, made in times.items() if made <= taken), default=0)
            clock.ms, kept = max(clock.ms, taken), clock.ms
            shown = await memory.list(limit=1_000, as_of=ricordo_time(taken))
            clock.ms = kept
            live = {node.id for node in (await memory.list(limit=1_000, as_of=meant)).nodes}
            expired = {node.id for node in shown.nodes} ^ live
            for node_id in expired:  # evaluated at the instant itself, not at the previous commit
                assert (await memory.get(node_id, as_of=meant)).expires_at is not None


def ricordo_time(ms: int) -> str:
    from ricordo.clock import from_ms

    return from_ms(ms).isoformat()
