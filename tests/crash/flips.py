"""Flip single bits of stores and check that none goes unnoticed.

    python -m tests.crash.flips --flips 1000

Each flip is noticed (the store does not open, or `doctor` reports it) or harmless (all data of the store is
unchanged). A folder with a flip in its index is fine after a rebuild; a flip in its plain files is imported as
an edit by hand, which `log` shows, or reported as an unreadable line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ricordo import Memory, Settings
from ricordo.errors import RicordoError
from ricordo.storage.jsonl.layout import FILES
from ricordo.storage.registry import open_store
from tests.crash.kills import ROOT, machine
from tests.storage.folders import everything, everything_of
from tests.storage.histories import HandClock, History

BY_HAND = "SELECT count(*) FROM commits WHERE origin = 'hand'"
RESULT = ROOT / "benchmarks" / "results" / "flips.json"
OPTIONS: dict[str, Any] = {"embedder": "hashing", "settings": Settings(durability="process")}


@dataclass(slots=True)
class Tally:
    """The results of the flips by file; `silent` must stay empty."""

    outcomes: Counter[str] = field(default_factory=Counter)
    silent: list[str] = field(default_factory=list)


async def grow(place: str, *, seed: int) -> None:
    """A store with some data of every kind."""
    clock = HandClock()
    async with Memory.open(place, clock=clock, **OPTIONS) as memory:
        history = History(memory, clock, Path(place), seed=seed)
        for _ in range(40):
            await history.step()
        await memory.settle(600)


def flip(path: Path, dice: random.Random) -> int:
    """Flip a bit and return its byte."""
    content = bytearray(path.read_bytes())
    place = dice.randrange(len(content))
    content[place] ^= 1 << dice.randrange(8)
    path.write_bytes(content)
    return place


async def examined(place: str) -> tuple[bool, str]:
    """Return whether a store opens and passes `doctor`, and the message if not."""
    try:
        store = await asyncio.to_thread(open_store, place, durability="process")
    except RicordoError as error:
        return False, f"not opened: {error.message[:80]}"
    try:
        report = await store.doctor()
        off = [each for each in report.findings if not each.ok]
        unread = [each for each in report.findings if each.check == "plain files" and "not used" in each.detail]
        hands = await store.read(lambda tx: tx.connection.execute(BY_HAND).get)
        said = [each.check for each in off] + ["a line not used" for _ in unread] + ["a change by hand"] * bool(hands)
        return not said, ", ".join(said)
    finally:
        with contextlib.suppress(RicordoError):
            await asyncio.to_thread(store.close)


def held(place: Path) -> Any:
    """Return all data of a store, or nothing if it cannot be read."""
    try:
        return everything(place) if place.is_dir() else everything_of(place)
    except Exception as error:  # noqa: BLE001 - whatever a damaged file does to the reader
        return repr(error)


def one(whole: Path, wanted: Any, *, name: str, dice: random.Random, tally: Tally, label: str) -> None:
    """Flip a bit in one file of a copy of a store."""
    with tempfile.TemporaryDirectory(prefix="ricordo-flips-") as folder:
        copy = Path(folder) / whole.name
        (shutil.copytree if whole.is_dir() else shutil.copy2)(whole, copy)
        hit = copy / name if whole.is_dir() else copy
        byte = flip(hit, dice)
        place = f"{copy}/" if whole.is_dir() else str(copy)
        is_well, _ = asyncio.run(examined(place))
        where = f"{label}: {'index' if name == 'index.db' else 'plain files' if name else 'file'}"
        if is_well and held(copy) == wanted:
            tally.outcomes[f"{where}: harmless"] += 1
        elif is_well:
            tally.silent.append(f"{label}, {name or whole.name} at byte {byte}")
        else:
            tally.outcomes[f"{where}: noticed"] += 1
        if name == "index.db":
            mended(copy, wanted, tally, where, byte)


def mended(copy: Path, wanted: Any, tally: Tally, where: str, byte: int) -> None:
    """A damaged index is harmless after a rebuild."""
    for path in copy.glob("index.db*"):
        if ".damaged" not in path.name:
            path.unlink()
    is_well, said = asyncio.run(examined(f"{copy}/"))
    if is_well and held(copy) == wanted:
        tally.outcomes[f"{where}: well after a rebuild"] += 1
    else:
        tally.silent.append(f"{where} at byte {byte}: not mended by a rebuild: {said}")


def many(flips: int, *, seed: int, until: float = float("inf")) -> Tally:
    """Flip that many bits: half in a single file, a quarter each in the index and the plain files of a folder."""
    tally, dice, started, done = Tally(), random.Random(seed), time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="ricordo-flips-") as folder:
        file, plain = Path(folder) / "me.db", Path(folder) / "me"
        asyncio.run(grow(str(file), seed=seed))
        asyncio.run(grow(f"{plain}/", seed=seed))
        wanted = {file: held(file), plain: held(plain)}
        names = [name for name in FILES if (plain / name).exists()]
        sizes = [(plain / name).stat().st_size for name in names]
        while done < flips and time.monotonic() < until:
            for whole, name in ((file, ""), (plain, "index.db"), (file, ""), (plain, dice.choices(names, sizes)[0])):
                one(whole, wanted[whole], name=name, dice=dice, tally=tally, label="folder" if name else "file")
                done += 1
            sys.stderr.write(
                f"\r{done}/{flips} flips, {len(tally.silent)} unnoticed, {time.monotonic() - started:.0f} s "
            )
            sys.stderr.flush()
    tally.outcomes["flips"] = done
    sys.stderr.write("\n")
    return tally


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--flips", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--minutes", type=float, default=120)
    given = options.parse_args()
    tally = many(given.flips, seed=given.seed, until=time.monotonic() + given.minutes * 60)
    result = {
        **dict(sorted(tally.outcomes.items())),
        "unnoticed": tally.silent,
        "seed": given.seed,
        "machine": machine(),
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(RESULT.read_text(encoding="utf-8"))
    return 1 if tally.silent else 0


if __name__ == "__main__":
    sys.exit(main())
