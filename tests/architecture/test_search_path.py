"""A reader who follows a search reads few files."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import ricordo
from ricordo import Memory

ROOT = str(Path(ricordo.__file__).parent)
MOST = 30
EMBEDDER = "models/embedding/"


async def test_a_warm_search_passes_through_few_files(monkeypatch):
    """A warm search passes through at most 30 files, besides those of the embedder, where no spans are recorded.

    A question about a meal also looks for allergies, in more files. The fewest of several searches count: work in the
    background passes through others at the same time.
    """
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    entered: set[str] = set()
    searches: list[set[str]] = []
    is_watched = False

    def watch(frame, event, arg):
        if is_watched and event == "call" and frame.f_code.co_filename.startswith(ROOT):
            entered.add(frame.f_code.co_filename[len(ROOT) + 1 :])

    before = sys.getprofile(), threading.getprofile()
    threading.setprofile(watch)  # for the threads that are started from here on
    sys.setprofile(watch)
    try:
        async with Memory.open(":memory:", embedder="hashing") as memory:
            for number in range(20):
                await memory.add(f"Anna told of day {number} of her trip to Rome", session="s", speaker="Anna")
            await memory.remember("My wife is Sarah")
            await memory.remember("Sarah likes sushi")
            await memory.settle()
            for _ in range(3):
                await memory.search("Which fish does my wife like?")
            for _ in range(25):
                await memory.settle()
                entered, is_watched = set(), True
                results = await memory.search("Which fish does my wife like?")
                is_watched = False
                searches.append(entered)
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])
    files = {each.replace("\\", "/") for each in min(searches, key=len)}
    assert results.hits and "retrieval/search.py" in files and "storage/database/candidates.py" in files
    assert len([each for each in files if not each.startswith(EMBEDDER)]) <= MOST, sorted(files)
