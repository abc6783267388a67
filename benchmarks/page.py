"""Time the pages of a large memory on the server, and weigh what a browser loads.

    python benchmarks/page.py [--nodes 100000] [--store FILE] [--out benchmarks/results/page.json]

The store holds synthetic conversation of English words (see benchmarks/english.py) and facts about 300 people, and is
opened with the default embedder. Requests go to the application in this process, so the times are those of the server.
Sizes are those of a page with its styles and scripts, compressed with gzip.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import platform
import random
import re
import statistics
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.english import StandIn, english
from benchmarks.speed import questions, talk

from ricordo import Fact, Memory, Message, Settings
from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.http.app import build
from ricordo.interfaces.http.guard import Limits
from ricordo.interfaces.http.tokens import Tokens, tokens_file

PEOPLE = 300
FACTS = 3_000


async def fill(store: Path, nodes: int) -> None:
    """Add turns in sessions of fifty, and facts about 300 people."""
    async with Memory.open(store, embedder=StandIn(), settings=Settings(durability="process")) as memory:
        turns, number = talk(nodes - FACTS, vocabulary=english()), 0
        while batch := list(islice(turns, 5_000)):
            await memory.add_many(
                [Message(text=text, session=f"s{(number + at) // 50}") for at, text in enumerate(batch)]
            )
            number += len(batch)
        chosen, words = random.Random(1), english()
        names = [f"{chosen.choice(words).title()} {chosen.choice(words).title()}son" for _ in range(PEOPLE)]
        for _ in range(FACTS // 100):
            facts = []
            for _ in range(100):
                about = chosen.sample(names, 2)
                facts.append(Fact(content=f"{about[0]} {' '.join(chosen.sample(words, 6))} {about[1]}", about=about))
            await memory.remember_many(facts)
        await memory.settle()


class Timed:
    """The pages of one store, and how long each took."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.ms: dict[str, list[float]] = {}
        self.kilobytes: dict[str, float] = {}

    async def open(self, name: str, path: str) -> str:
        begun = time.perf_counter()
        answer = await self.client.get(path)
        self.ms.setdefault(name, []).append(1_000 * (time.perf_counter() - begun))
        assert answer.status_code == 200, (path, answer.status_code)
        return answer.text

    async def weigh(self, name: str, path: str) -> None:
        """Add up a page and the files it names, each compressed by itself."""
        html = (await self.client.get(path)).text
        bodies = [html.encode()]
        named = re.findall(r'(?:src|href)="(/page/static/[^"]+)"|data-(?:from|plot)="([^"]+)"', html)
        for file in dict.fromkeys(one or other.replace("&amp;", "&") for one, other in named):
            bodies += [(await self.client.get(file)).content]
        self.kilobytes[name] = round(sum(len(gzip.compress(body)) for body in bodies) / 1_000, 1)

    def summary(self) -> dict[str, Any]:
        def of(values: list[float]) -> dict[str, float]:
            ordered = sorted(values)
            return {
                "p50_ms": round(statistics.median(ordered), 1),
                "p95_ms": round(ordered[int(0.95 * (len(ordered) - 1))], 1),
                "first_ms": round(values[0], 1),
                "requests": len(values),
            }

        return {"pages": {name: of(values) for name, values in self.ms.items()}, "kilobytes": self.kilobytes}


async def measure(store: Path, *, repeat: int) -> dict[str, Any]:
    """Open each page several times, and type some questions."""
    dispatcher = Dispatcher(_opened(store))
    await dispatcher.opened()
    app = build(dispatcher, Tokens(tokens_file(store)), limits=Limits(rate=1e9, burst=10**9))
    assert app.page is not None
    transport = httpx.ASGITransport(app=app)
    headers = {"Sec-Fetch-Site": "same-origin"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7411", headers=headers) as client:
        await client.get(app.page.key(Caller(trust="user")))
        timed = Timed(client)
        memory = await dispatcher.opened()
        fact = (await memory.list(type="semantic", limit=1)).nodes[0]
        person = (await memory.people(limit=1))[0]
        opened = "&".join(f"open={each.id}" for each in (await memory.people(limit=15)))
        pages = {
            "first": "/",
            "memory": f"/page/memory?id={fact.id}",
            "inbox": "/page/inbox",
            "conversation": "/page/conversation?id=s7",
            "changes": "/page/changes",
            "timeline": "/page/timeline",
            "people": "/page/people",
            "entity": f"/page/entity?id={person.id}",
            "graph": f"/page/graph.json?{opened}",
            "graph page": f"/page/graph?{opened}",
            "runs": "/page/runs",
            "fading": "/page/fading",
            "archive": "/page/archive",
            "health": "/page/health",
        }
        for name, path in pages.items():
            for _ in range(repeat):
                await timed.open(name, path)
        drawn = json.loads(await timed.open("graph", pages["graph"]))
        asked = questions(vocabulary=english())[: repeat * 4]
        for question in asked:
            for end in range(3, min(len(question), 30), 4):
                await timed.open("typed", f"/page/results?q={question[:end]}")
            await timed.open("context", f"/page/context?q={question}")
            await timed.open("search page", f"/?q={question}")
        for name, path in {**pages, "search page": f"/?q={asked[0]}"}.items():
            if name != "graph":
                await timed.weigh(name, path)
    await dispatcher.close()
    return timed.summary() | {"graph_nodes": len(drawn["nodes"]), "graph_edges": len(drawn["edges"])}


async def _opened(store: Path) -> Memory:
    memory = await Memory.open(store)
    await memory.warm()
    await memory.settle()
    await asyncio.sleep(5)  # a server has as long before the first visit
    return memory


def main() -> None:
    """Fill, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--store", type=Path, help="keep the store here, and use it if it is there")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/page.json"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or Path(folder) / "page.db"
        if not store.exists():
            asyncio.run(fill(store, given.nodes))
        result = asyncio.run(measure(store, repeat=given.repeat))
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}
    given.out.write_text(json.dumps({"nodes": given.nodes, "machine": machine, **result}, indent=2) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
