"""Truncated, zeroed and foreign files in every place of a store: is the error clear, and does its one command mend it?

python -m tests.crash.damage [CASES] [SEED]

A case damages one file of a store, opens it, and if that fails, or `doctor` finds something, runs the one command that
the message names. Afterwards the store must open, answer, take a new memory, and `doctor` must find nothing.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ricordo.interfaces.cli.app import main as main_of_program

KINDS = ("empty", "half", "one byte", "zeroed", "garbled", "text", "image", "database", "folder")
_COMMAND = re.compile(r"`ricordo ([^`]*)`")


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    """Standard output alone."""
    text: str
    """Standard output, then errors."""


def ricordo(store: str, *arguments: str) -> Ran:
    """Run a command in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main_of_program(["--store", store, "--embedder", "none", *arguments])
    printed, errors = (each.buffer.getvalue().decode("utf-8") for each in (out, err))  # type: ignore[attr-defined]
    return Ran(status, printed, printed + errors)


def built(folder: Path) -> dict[str, Path]:
    """Return one store of each form, with facts, messages and a closed memory."""
    stores = {"file": folder / "me.db", "folder": folder / "memories", "notes": folder / "vault"}
    (folder / "vault/notes").mkdir(parents=True)
    (folder / "memories").mkdir()
    script = """
import asyncio, sys
from ricordo import Memory
async def main():
    async with Memory.open(sys.argv[1], embedder=None) as memory:
        for number in range(30):
            await memory.remember(f"Anna keeps thing {number} in box {number * 7}", about=["Anna"])
            await memory.add(f"we spoke of thing {number}", session="s")
        await memory.forget((await memory.list()).nodes[0].id)
asyncio.run(main())
"""
    for store in stores.values():
        subprocess.run([sys.executable, "-c", script, str(store)], check=True)
    return stores


def damage(path: Path, kind: str, rng: random.Random) -> None:
    data = path.read_bytes()
    match kind:
        case "empty":
            path.write_bytes(b"")
        case "half":
            path.write_bytes(data[: len(data) // 2])
        case "one byte":
            path.write_bytes(data[:1])
        case "zeroed" | "garbled":
            at, size = rng.randrange(max(1, len(data))), min(4_096, len(data))
            fill = bytes(size) if kind == "zeroed" else rng.randbytes(size)
            path.write_bytes((data[:at] + fill + data[at + size :])[: max(len(data), 1)])
        case "text":
            path.write_bytes(b"Dear reader, this is a letter.\nIt is not a store.\n")
        case "image":
            path.write_bytes(b"\x89PNG\r\n\x1a\n" + rng.randbytes(5_000))
        case "database":
            path.unlink()
            import apsw

            connection = apsw.Connection(str(path))
            connection.execute("CREATE TABLE songs (name TEXT); INSERT INTO songs VALUES ('x')")
            connection.close()
        case "folder":
            path.unlink()
            path.mkdir()


def case(stores: dict[str, Path], work: Path, rng: random.Random) -> dict[str, object]:
    form = rng.choice(list(stores))
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    target = work / stores[form].name
    (shutil.copytree if stores[form].is_dir() else shutil.copy2)(stores[form], target)
    if form == "file":
        path = target
    else:
        path = rng.choice(sorted(each for each in target.rglob("*") if each.is_file() and each.name != ".gitignore"))
    kind = rng.choice(KINDS)
    damage(path, kind, rng)
    store = str(target) if form == "file" else f"{target}/"
    return {"form": form, "file": path.relative_to(work).as_posix(), "damage": kind, **mended(store)}


def mended(store: str) -> dict[str, object]:
    """Use a damaged store, run the one command that its messages name, and use it again."""
    first, checked = ricordo(store, "search", "thing"), ricordo(store, "doctor")
    result: dict[str, object] = {}
    result["noticed"] = first.status != 0 or checked.status != 0
    named: list[str] = []
    told = "\n".join(ran.text for ran in (first, checked) if ran.status)
    if told:
        named = _COMMAND.findall(told)
        result["says"] = told[-300:]
    if named and "Traceback" not in told:
        ricordo(store, *named[-1].split())
        first, checked = ricordo(store, "search", "thing"), ricordo(store, "doctor")
    fresh = ricordo(store, "remember", "a fresh fact about zebras")
    found = ricordo(store, "search", "zebras")
    result["command"] = named[-1] if named else ""
    result["mended"] = (
        all(ran.status == 0 for ran in (first, checked, fresh, found))
        and "zebras" in found.text
        and "Traceback" not in first.text + checked.text + fresh.text
    )
    listed = ricordo(store, "list", "--limit", "100", "--json")
    result["facts left"] = len(json.loads(listed.out)["nodes"]) if listed.status == 0 else 0
    if not result["mended"]:
        result["after"] = "\n".join(ran.text for ran in (first, checked, fresh, found) if ran.status)[-400:]
    return result


def run(cases: int, seed: int) -> list[dict[str, object]]:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        stores = built(Path(folder))
        return [case(stores, Path(folder) / "work", rng) for _ in range(cases)]


def main() -> int:
    cases, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 1
    results = run(cases, seed)
    failed = [each for each in results if not each["mended"]]
    commands = Counter(str(each["command"]) for each in results)
    report = {"cases": cases, "noticed": sum(bool(each["noticed"]) for each in results), "mended": cases - len(failed)}
    sys.stdout.write(json.dumps({**report, "commands": commands, "failed": failed}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
