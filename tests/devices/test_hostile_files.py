"""Files in an exchange folder that somebody else made: they are left out, and the rest is exchanged."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ricordo import Memory, StoreError
from tests.devices.test_devices import two
from tests.storage.making import failing

Line = dict[str, Any]
STRANGE = (
    None,
    "\ud800",
    "",
    -1,
    2**63,
    2**70,
    1e308,
    float("nan"),
    True,
    [],
    {},
    {"a": 1},
    "null",
    "[1]",
    '{"a":' * 9_000,
)
NAMES = ("space", "key", "commit_seq", "seal", 'x" OR 1=1', "content")


def packed(lines: list[Line]) -> bytes:
    whole = b"".join(json.dumps(each).encode() + b"\n" for each in lines)
    end = {"end": len(lines), "blake2b": blake2b(whole, digest_size=16).hexdigest()}
    return whole + json.dumps(end, separators=(",", ":")).encode() + b"\n"


def places(value: Any, *before: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each part of a JSON value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield (*before, name)
        yield from places(part, *before, name)


def altered(lines: list[Line], random: Random) -> list[Line]:
    """Return commits with one value replaced, removed or added."""
    made = deepcopy(lines)
    *path, last = random.choice([each for each in places(made[1:]) if len(each) > 1])
    part: Any = made[1:]
    for name in path:
        part = part[name]
    if isinstance(part[last], dict) and random.random() < 0.5:
        part[last][random.choice(NAMES)] = random.choice(STRANGE)
    elif isinstance(part, dict) and random.random() < 0.2:
        del part[last]
    else:
        part[last] = random.choice(STRANGE)
    return made


async def test_malformed_commits_are_left_out_and_do_no_harm(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, _, shared):
        await one.add("I met Carla in Lisbon", session="s1")
        old = await one.remember("Sarah is allergic to peanuts", about=["Sarah"], tags=["food"], attributes={"a": 1})
        await one.correct(old.id, "Sarah is allergic to nuts")
        await one.forget((await one.remember("Tom likes tea", about=["Tom"])).id)
        await one.sync(shared)
        [file] = shared.rglob("*.jsonl")
        *lines, _ = [json.loads(line) for line in file.read_bytes().splitlines()]
        random = Random(11)
        for number in range(30):
            made = altered(lines, random)
            place = tmp_path / str(number) / file.parent.name
            place.mkdir(parents=True)
            (place / file.name).write_bytes(packed(made))
            async with Memory.open(place / "me.db", embedder=None) as memory:
                with contextlib.suppress(StoreError):  # a value of the right type that the schema does not allow
                    await memory.sync(place.parent)
                for answer in (memory.search("Sarah"), memory.list(type="any"), memory.log(), memory.timeline()):
                    await answer
                assert failing(await memory.doctor()) == set(), made


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
async def test_what_is_no_file_is_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.remember("Sarah is allergic to peanuts")
        await one.sync(shared)
        [file] = shared.rglob("*.jsonl")
        make(file.with_name("0000000000000000-000001.jsonl"))
        assert (await other.sync(shared)).received == 1


async def test_a_link_in_the_folder_leads_no_write_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    async with two(tmp_path) as (one, _, shared):
        await one.remember("Sarah is allergic to peanuts")
        await one.sync(shared)
        await one.remember("Tom likes tea")
        [file] = shared.rglob("*.jsonl")
        left = file.with_name(f".{file.name.replace('000001', '000002')}.partial")
        left.symlink_to(victim)
        monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: None)  # the link is made after the clean-up
        with pytest.raises(Exception, match="cannot write"):
            await one.sync(shared)
        assert victim.read_text() == "mine"
