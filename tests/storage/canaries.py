"""An encrypted store holds no plain byte of what it knows: 200 made-up words in every place that stores text.

    python -m tests.storage.canaries --out benchmarks/results/keys.json

A store is filled, used, killed, backed up, given another key, cleaned and restored; after each step every file below
its folder is searched for the words, as UTF-8, UTF-16 and base64. The same is done with an open store, where the words
must be found: a search that cannot fail proves nothing. Then adding and searching are timed in both, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from ricordo import Message, Scope, Settings
from ricordo.host import Host
from ricordo.language import ScriptedModel
from ricordo.storage import faults
from ricordo.sync import Memory

KEYS = ("file key one", "5f" * 32)
_LETTERS = "bcdfghjklmnpqrstvwxz"


def words(count: int, *, seed: int = 7) -> list[str]:
    """Return made-up words of ten letters that no other text has."""
    chosen = random.Random(seed)
    return ["zq" + "".join(chosen.choices(_LETTERS, k=8)) for _ in range(count)]


@dataclass(slots=True)
class Search:
    """What was found in files, by step."""

    folder: Path
    words: list[str]
    files: int = 0
    found: dict[str, list[str]] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)

    def look(self, step: str) -> None:
        """Search every file for every word."""
        for path in sorted(self.folder.rglob("*")):
            if not path.is_file():
                continue
            self.files += 1
            data = path.read_bytes().lower()
            for word in self.words:
                if any(form in data for form in _forms(word)):
                    self.met.add(word)
                    self.found.setdefault(step, []).append(f"{word} in {path.name}")


def _forms(word: str) -> tuple[bytes, ...]:
    inner = (b64encode(b" " * pad + word.encode()).lower()[4:-4] for pad in range(3))
    return word.encode(), word.encode("utf-16-le"), *inner


def fill(memory: Memory, told: Iterator[str]) -> None:
    """Store words in every kind of place; `told` yields them, 20 a round."""
    for number, word in enumerate(told):
        PLACES[number % len(PLACES)](memory, word)


def _correct(memory: Memory, word: str) -> None:
    fact = memory.remember(f"the harbour master is called {word}")
    memory.correct(fact.id, f"the harbour master is called Peter, no longer {word}")


def _forget(memory: Memory, word: str) -> None:
    memory.forget(memory.remember(f"the ferry sells {word}").id, reason=f"because of {word}")


def _people(memory: Memory, word: str) -> None:
    memory.add_entity(word.capitalize(), aliases=[f"{word} the second"])
    memory.update_entity(word.capitalize(), attributes={"note": f"about {word}"})
    memory.relate(word.capitalize(), "neighbour")


def _learn(memory: Memory, word: str) -> None:
    memory.add(f"I work at {word} since May", session=f"talk {word}")
    memory.end_session(f"talk {word}")
    memory.consolidate(f"talk {word}")


def _tell_another(memory: Memory, word: str) -> None:
    memory.scoped(Scope(owner=f"owner {word}", chat=f"chat {word}")).add(f"we said {word}", session="s")


def _ask(memory: Memory, word: str) -> None:
    memory.search(f"who knows {word}?", receipt=True)
    memory.context(f"tell me of {word}", receipt=True)


PLACES: tuple[Callable[[Memory, str], object], ...] = (
    lambda memory, word: memory.add(f"a message about {word}", session="s"),
    lambda memory, word: memory.add("hello", speaker=word, session="s"),
    lambda memory, word: memory.add("good morning", session=f"session {word}"),
    lambda memory, word: memory.add("good evening", session="s", attributes={word: 1, "note": word}),
    lambda memory, word: memory.add_many([Message(text=f"many {word}", session="s"), Message(text="rest")]),
    lambda memory, word: memory.remember(f"the user likes {word}"),
    lambda memory, word: memory.remember("the user likes tea", tags=[word]),
    lambda memory, word: memory.remember("the user likes rain", attributes={"why": {"deep": [word]}}),
    lambda memory, word: memory.remember("the user likes snow", about=[word]),
    lambda memory, word: memory.remember(f"first do {word}, then rest", type="procedural"),
    lambda memory, word: memory.remember(f"the web says {word}", origin="web"),
    lambda memory, word: memory.add("an id", id=f"id-{word}"),
    _correct,
    _forget,
    _people,
    _learn,
    _tell_another,
    _ask,
    lambda memory, word: memory.remember(f"the user may like {word}", expires="for 2 days"),
    lambda memory, word: memory.add_nowait(f"soon {word}", session="s"),
)


async def _event(location: str, key: str, word: str) -> None:
    async with Host(location, [], settings=Settings(key=key)) as host:
        await host.bus.publish("canary", {"said": f"an event about {word}"}, once=word)


def live(location: str, search: Search, *, keys: tuple[str, str], rounds: int = 1) -> None:
    """Fill a store, use it and search its files after each step."""
    told, first, beside = iter(search.words * rounds), keys[0] or None, Path(location).parent
    model = ScriptedModel(lambda turns, schema: {"facts": [], "note": search.words[0]})
    asyncio.run(_event(location, keys[0], search.words[0]))
    with Memory.open(location, embedder=None, key=first, model=model, settings=Settings(receipts="reads")) as memory:
        fill(memory, told)
        search.look("open")
        target = f"{beside}/copy/" if location.endswith("/") else f"{beside}/copy.db"
        memory.backup(target)
        memory.backup(f"{beside}/single.db")
        search.look("backup")
        for hit in memory.search(search.words[5], limit=1).hits:
            memory.erase(id=hit.id)
        memory.gc()
        memory.prune()
        search.look("erase, gc, prune")
    search.look("closed")
    kill(location, first, search.words)
    search.look("killed while writing")
    assert Memory.verify_backup(target, key=first).ok
    if keys[0]:
        for point in ("rekey: before naming", "folder: before the marker", "folder: between renames"):
            kill_rekey(location, keys, point)
            search.look(f"killed in rekey at {point}")
        Memory.rekey(location, key=keys[0], new_key=keys[1])
        search.look("another key")
    last = keys[1] or None
    with Memory.open(location, embedder=None, key=last) as memory:
        assert memory.doctor().ok
        assert memory.search(search.words[0]).hits
        search.look("open again")
    Memory.restore_backup(target, location, replace=True, key=first)
    search.look("restored")


def kill(location: str, key: str | None, told: list[str]) -> None:
    """Kill a process in the middle of writing."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.storage.canaries", "--write", location, "--words", ",".join(told)],
        env={**os.environ, "CANARY_KEY": key or ""},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    for _ in range(30):
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


def kill_rekey(location: str, keys: tuple[str, str], point: str) -> bool:
    """Kill a process that changes the key at a fault point. Return whether it came there; the store then opens."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.storage.canaries", "--rekey", location, "--at", point],
        env={**os.environ, "CANARY_KEY": keys[0], "CANARY_NEW": keys[1]},
        check=False,
    )
    opened = []
    for key in keys:
        try:
            with Memory.open(location, embedder=None, key=key or None) as memory:
                opened.append(memory.doctor().ok)
        except Exception:  # noqa: BLE001 - the other key
            continue
    assert opened == [True], (point, opened)
    return child.returncode == -signal.SIGKILL


def _write(location: str, told: list[str]) -> None:
    with Memory.open(location, embedder=None, key=os.environ["CANARY_KEY"] or None) as memory:
        for number in range(100_000):
            fill(memory, iter([told[number % len(told)]]))
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


def _rekey(location: str, at: str) -> None:
    def die(point: str) -> None:
        if point == at:
            os.kill(os.getpid(), signal.SIGKILL)

    faults.install(die)
    Memory.rekey(location, key=os.environ["CANARY_KEY"] or None, new_key=os.environ["CANARY_NEW"] or None)


def searched(kind: str, *, count: int, keys: tuple[str, str]) -> Search:
    """Live with a store of a kind in a temporary folder; return what was found."""
    with tempfile.TemporaryDirectory() as folder:
        search = Search(Path(folder), words(count))
        live(f"{folder}/me/" if kind == "folder" else f"{folder}/me.db", search, keys=keys)
        return search


def timed(kind: str, *, messages: int, questions: int) -> dict[str, Any]:
    """Add and search in an open and an encrypted store of a kind, in turns. Return medians in milliseconds and the
    median of the ratios; of opening, the time of the processor, since other programs disturb that most.
    """
    chosen = random.Random(5)
    vocabulary, ending = words(3_000, seed=1), "/" if kind == "folder" else ".db"
    times: dict[str, dict[str, list[float]]] = {
        what: {"open": [], "encrypted": []} for what in ("add", "search", "open and search")
    }
    with tempfile.TemporaryDirectory() as folder:
        stores = {
            name: Memory.open(f"{folder}/{name}{ending}", embedder=None, key=key)
            for name, key in (("open", None), ("encrypted", KEYS[1]))
        }
        try:
            for number in range(messages + questions):
                what = "add" if number < messages else "search"
                text = " ".join(chosen.choices(vocabulary, k=12 if what == "add" else 3))
                for name in list(stores) if number % 2 else list(stores)[::-1]:
                    started = time.perf_counter()
                    stores[name].add(text, session="s") if what == "add" else stores[name].search(text)
                    times[what][name].append((time.perf_counter() - started) * 1_000)
        finally:
            for memory in stores.values():
                memory.close()
        for number in range(20):
            for name, key in (("open", None), ("encrypted", KEYS[1]))[:: 1 if number % 2 else -1]:
                started = time.process_time()
                with Memory.open(f"{folder}/{name}{ending}", embedder=None, key=key) as memory:
                    memory.search(vocabulary[number])
                    times["open and search"][name].append((time.process_time() - started) * 1_000)
    return {what: _medians(each) for what, each in times.items()}


def _medians(each: dict[str, list[float]]) -> dict[str, float]:
    found = {name: statistics.median(values) for name, values in each.items()}
    pairs = zip(each["encrypted"], each["open"], strict=True)
    ratio = statistics.median(one / other for one, other in pairs)
    return {**{name: round(value, 3) for name, value in found.items()}, "ratio": round(ratio, 3)}


def main() -> None:
    """Run all of it, and write the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--write")
    parser.add_argument("--rekey")
    parser.add_argument("--at", default="")
    parser.add_argument("--words", default="")
    parser.add_argument("--canaries", type=int, default=200)
    parser.add_argument("--messages", type=int, default=3_000)
    given = parser.parse_args()
    if given.write:
        return _write(given.write, given.words.split(","))
    if given.rekey:
        return _rekey(given.rekey, given.at)
    result: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        "sqlite": f"{apsw.sqlite_lib_version()}, {getattr(apsw, 'mc_version', 'no cipher')}",
        "canaries": given.canaries,
    }
    for kind in ("file", "folder"):
        closed = searched(kind, count=given.canaries, keys=KEYS)
        plain = searched(kind, count=given.canaries, keys=("", ""))
        result[kind] = {
            "files_searched": closed.files,
            "found_encrypted": len(closed.met),
            "found_open": len(plain.met),
            "where": closed.found,
            "milliseconds": timed(kind, messages=given.messages, questions=300),
        }
    text = json.dumps(result, indent=2, ensure_ascii=False)
    sys.stdout.write(text + "\n")
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
