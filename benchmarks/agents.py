"""How many questions at the beginning of a coding session the briefing or the first search answers.

    python benchmarks/agents.py [--embedder default|none] [--projects N] [--out benchmarks/results/agents.json]

Thirty made-up sessions of three projects (benchmarks/data/agent_sessions.txt) are written as the logs of five clients
and imported one by one, as their hooks do it, into one store. After a session, its questions are asked: the briefing
has to match, or one of the ten hits of a search for the question. No model takes part. Then every project is searched
for what only the others said.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.agent_logs import Session, repository, sessions, write_log

from ricordo import Memory, Scope
from ricordo.interfaces.cli.projects import project_of
from ricordo.text.work import statements_of_work


async def take_in(opened: Memory, session: Session, folder: Path) -> Memory:
    """Import the log of a session as a hook does; return the memory of its project."""
    root = repository(folder, session)
    memory = opened.scoped(Scope(owner="ann", chat=project_of(root)))
    await memory.import_(write_log(session, folder / "home", root), format=session.client, own=True)
    await memory.extract(f"{session.client}/{session.id}")
    return memory


async def measure(folder: Path, *, embedder: str | None, projects: int = 3) -> dict[str, Any]:
    """Return how many questions were answered, and where, and what got from one project into another."""
    names = list(dict.fromkeys(each.project for each in sessions()))[:projects]
    told = [each for each in sessions() if each.project in names]
    answered: dict[str, int] = {"briefing": 0, "search": 0}
    missed, asked = [], 0
    async with Memory.open(folder / "me.db", embedder=embedder, scope=Scope(owner="ann")) as opened:
        for session in told:
            memory = await take_in(opened, session, folder)
            await memory.settle()
            for question, wanted in session.questions:
                asked += 1
                if re.search(wanted, str(await memory.brief())):
                    answered["briefing"] += 1
                elif any(re.search(wanted, hit.content) for hit in (await memory.search(question)).hits):
                    answered["search"] += 1
                else:
                    missed.append(f"{session.project}: {question}")
        leaks = await _leaks(opened, told)
    total = sum(answered.values())
    return {"sessions": len(told), "questions": asked, "answered": total, **answered, "missed": missed, "leaks": leaks}


async def _leaks(opened: Memory, told: list[Session]) -> list[str]:
    """Return texts of one project that another one's briefing, search or list shows."""
    said: dict[str, set[str]] = {}
    for session in told:
        said.setdefault(session.project, set()).update(text for kind, text, _ in session.steps if kind != "run")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        chats = {each.project: project_of(repository(Path(folder), each)) for each in told}
    for project, chat in chats.items():
        memory = opened.scoped(Scope(owner="ann", chat=chat))
        shown = str(await memory.brief(budget=20_000)) + str((await memory.list(limit=1_000)).nodes)
        for other in said:
            if other == project:
                continue
            for text in sorted(said[other] - said[project]):
                hits = (await memory.search(text, type="any")).hits
                if text in shown or any(text in hit.content for hit in hits):
                    found.append(f"{project} shows {other}: {text}")
    return found


def statements() -> dict[str, int]:
    """Return how many sentences that state something, and how many others, the rules take for a statement."""
    lines = (Path(__file__).parent / "data" / "work_statements.txt").read_text(encoding="utf-8").splitlines()
    told, other = ([line[2:] for line in lines if line.startswith(f"{mark} ")] for mark in "+-")
    found, wrong = (sum(bool(statements_of_work(text)) for text in texts) for texts in (told, other))
    return {"stated": len(told), "found": found, "others": len(other), "taken_for_one": wrong}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--projects", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    embedder = None if given.embedder == "none" else given.embedder
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(measure(Path(folder), embedder=embedder, projects=given.projects))
    written = (
        json.dumps({"embedder": given.embedder, **result, "statements": statements()}, indent=2, ensure_ascii=False)
        + "\n"
    )
    print(written)
    if given.out:
        given.out.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
