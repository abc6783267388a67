"""A vault of notes, edited by hand in random ways while the library writes.

python -m tests.flows.note_edits [NOTES] [EDITS] [SEED]

Each edit adds a line, changes one, deletes one, moves one to another note, ticks a task, renames a note, or saves an
older state of a note a moment after the library wrote. At the end, what should be known is compared with the memory.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from ricordo import ConflictError, Memory, Settings

_MARK = re.compile(r"\s*\^[0-9a-f]{12}$")


class Editor:
    """A person who edits files, and who knows what should be remembered."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.wanted: set[str] = set()
        self.unwanted: set[str] = set()
        self.count = 0

    def fact(self) -> str:
        self.count += 1
        return f"Item {self.count} of the shelf costs {self.random.randrange(10, 99)} coins at stand {self.count * 7}"

    def notes(self) -> list[Path]:
        return sorted(self.folder.rglob("[!.]*.md"))

    def edit(self) -> str:
        """Edit one note in a random way; return what was done."""
        path = self.random.choice(self.notes())
        lines = path.read_text("utf-8").split("\n")
        facts = [at for at, line in enumerate(lines) if line.startswith("- ") and self.said(line) in self.wanted]
        kind = self.random.choice(["add", "add plain", "change", "delete", "move", "rename", "unmark", "reorder"])
        if kind in ("add", "add plain") or not facts:
            text = self.fact()
            at = self.random.randrange(self.top(lines), len(lines) + 1)
            lines.insert(at, text if kind == "add plain" else f"- {text}")
            if kind == "add plain":
                lines.insert(at, "")
            self.wanted.add(text)
        elif kind == "change":
            at = self.random.choice(facts)
            old = self.said(lines[at])
            new = re.sub(r"\d+ coins", f"{self.random.randrange(100, 999)} coins", old)
            lines[at] = lines[at].replace(old, new)
            self.wanted.discard(old)
            self.unwanted.add(old)
            self.wanted.add(new)
        elif kind == "delete":
            at = self.random.choice(facts)
            self.wanted.discard(self.said(lines[at]))
            self.unwanted.add(self.said(lines[at]))
            del lines[at]
        elif kind == "move":
            line = lines.pop(self.random.choice(facts))
            other = self.random.choice([each for each in self.notes() if each != path] or [path])
            if other != path:
                self.save(other, other.read_text("utf-8").rstrip("\n") + "\n" + line + "\n")
            else:
                lines.append(line)
        elif kind == "rename":
            path.rename(path.with_name(f"{path.stem} {self.count}.md"))
            return kind
        elif kind == "unmark":
            at = self.random.choice(facts)
            lines[at] = _MARK.sub("", lines[at])
        else:
            one, other = self.random.choice(facts), self.random.choice(facts)
            lines[one], lines[other] = lines[other], lines[one]
        self.save(path, "\n".join(lines))
        return kind

    @staticmethod
    def said(line: str) -> str:
        return _MARK.sub("", line.removeprefix("- "))

    @staticmethod
    def top(lines: list[str]) -> int:
        return lines.index("---", 1) + 1 if lines and lines[0] == "---" else 0

    def save(self, path: Path, text: str) -> None:
        """Save as editors do: in place, or by a new file that is renamed."""
        if self.random.random() < 0.5:
            path.write_text(text, "utf-8")
        else:
            fresh = path.with_name(f".{path.name}.tmp")
            fresh.write_text(text, "utf-8")
            fresh.rename(path)


async def run(folder: Path, *, notes: int, edits: int, seed: int) -> dict[str, object]:
    """Edit while the library writes; return the figures and what is wrong."""
    vault = folder / "vault" / "notes"
    vault.mkdir(parents=True)
    editor = Editor(vault, seed)
    for number in range(notes):
        facts = [editor.fact() for _ in range(3)]
        editor.wanted.update(facts)
        listed = "\n".join(f"- {each}" for each in facts)
        (vault / f"Note {number}.md").write_text(f"# Note {number}\n\nSome words > here.\n\n{listed}\n", "utf-8")
    started = time.monotonic()
    async with Memory.open(f"{folder}/vault/", embedder=None, settings=Settings(durability="process")) as memory:
        opened_s = time.monotonic() - started
        done: dict[str, int] = {}
        prose = sum("# Note" in path.read_text("utf-8") for path in editor.notes())
        for step in range(edits):
            kind = editor.edit()
            done[kind] = done.get(kind, 0) + 1
            if step % 3 == 0:
                text = editor.fact()
                await memory.remember(text)
                editor.wanted.add(text)
            await asyncio.sleep(editor.random.choice([0, 0.01, 0.4, 0.8]))
        await memory.settle()
        await asyncio.sleep(0.5)
        await memory.settle()
        known = await _known(memory)
        written = [Editor.said(line) for path in editor.notes() for line in path.read_text("utf-8").split("\n")]
        lost = editor.wanted - known.keys()
        doubled = [text for text in known if known[text] > 1]
        in_notes = [text for text in editor.wanted if written.count(text) != 1]
        kept = sum("# Note" in path.read_text("utf-8") for path in editor.notes())
        undone, blocked = await _undo_all(memory)
        return {
            "notes": notes,
            "edits": edits,
            "by kind": done,
            "facts": len(editor.wanted),
            "opened in s": round(opened_s, 2),
            "lost": sorted(lost),
            "doubled": doubled,
            "not once in the notes": in_notes,
            "should be gone": sorted((editor.unwanted - editor.wanted) & known.keys()),
            "headings lost": prose - kept,
            "undone one by one": undone,
            "not undone": blocked,
        }


async def _known(memory: Memory) -> dict[str, int]:
    known: dict[str, int] = {}
    cursor = None
    while True:
        page = await memory.list(type="semantic", limit=1_000, cursor=cursor)
        for node in page.nodes:
            known[node.content] = known.get(node.content, 0) + 1
        if (cursor := page.cursor) is None:
            return known


async def _undo_all(memory: Memory) -> tuple[int, int]:
    """Undo the latest edits, each by itself, and count those that refuse."""
    undone = blocked = 0
    for commit in await memory.log(40):
        try:
            await memory.undo(commit.seq)
            undone += 1
        except ConflictError:
            blocked += 1
    return undone, blocked


def main() -> int:
    notes, edits, seed = (int(each) for each in (sys.argv[1:] + ["2000", "200", "1"][len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(run(Path(folder), notes=notes, edits=edits, seed=seed))
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 1 if any(found[name] for name in ("lost", "doubled", "not once in the notes", "should be gone")) else 0


if __name__ == "__main__":
    sys.exit(main())
