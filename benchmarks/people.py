"""How long it takes to tell of somebody with very many facts: `python benchmarks/people.py [FACTS]`, 100,000 else."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from ricordo import Fact, Settings
from ricordo.sync import Memory

BATCH = 10_000


def main() -> None:
    facts = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(durability="process", max_text_chars=10_000)
        with Memory.open(Path(folder) / "me.db", embedder=None, settings=settings) as memory:
            _fill(memory, facts)
            memory.settle()
            for name in ("Sarah", "my wife", "Сарой", "Tom"):
                _time(f"entity({name!r})", lambda name=name: memory.entity(name))  # type: ignore[misc]
            _time("people()", memory.people)
            _time("remember(about=['Sarah'])", lambda: memory.remember("She likes rain", about=["Sarah"]))
            _time("list(entity='Sarah')", lambda: memory.list(entity="Sarah"))
            started = time.perf_counter()
            memory.merge("Tom", "Sarah")
            print(f"{'merge':28} {(time.perf_counter() - started) * 1_000:8.2f} ms")
            _time("entity('Sarah') merged", lambda: memory.entity("Sarah"))
            started = time.perf_counter()
            memory.split("Tom", ["Sarah"])
            print(f"{'split':28} {(time.perf_counter() - started) * 1_000:8.2f} ms")


def _fill(memory: Memory, facts: int) -> None:
    memory.add("My wife is Sarah")
    memory.remember("Tom is here", about=["Tom"])
    for start in range(0, facts, BATCH):
        memory.remember_many(
            [
                Fact(content=f"Sarah did thing {number} with Person{number % 300}", about=["Sarah"])
                for number in range(start, min(start + BATCH, facts))
            ]
        )
    for number in range(300):
        memory.add_entity(f"Person{number}")


def _time(what: str, work: Callable[[], object]) -> None:
    took = []
    for _ in range(15):
        started = time.perf_counter()
        work()
        took.append((time.perf_counter() - started) * 1_000)
    print(f"{what:28} {median(took):8.2f} ms median, {max(took):8.2f} worst")


if __name__ == "__main__":
    main()
