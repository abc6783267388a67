"""What is learnt of short texts by rule, or by a language model, against what one would keep.

    python benchmarks/extraction.py memories.jsonl [--model ollama:qwen3:4b] [--out FILE] [--show]

A line of the file holds `text`, `lang` and `label.memories`: a list of `type` (decision, preference, fact, opinion,
commitment) and `content`. A statement counts as right if the text has a memory of its type that none before it has
taken, and, where both are in the same script, that shares a third of its telling words with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ricordo import Memory
from ricordo.consolidation.plain import Plain, plainly_said
from ricordo.consolidation.plain_cues import Kind
from ricordo.model import Node
from ricordo.words import function_words, index_terms

ROOT = Path(__file__).parent
_SHARED = 1 / 3


def is_right(found: Plain, memory: dict[str, str]) -> bool:
    """Whether a statement is one of the memories a person would keep."""
    if found.kind != memory["type"]:
        return False
    if not (found.text.isascii() and memory["content"].isascii()):
        return True  # another language: only its kind can be compared without knowing both
    ours, theirs = telling(found.text), telling(memory["content"])
    return len(ours & theirs) >= _SHARED * min(len(ours), len(theirs))


def telling(text: str) -> set[str]:
    """The stems of the words that say something."""
    ignored = {term for word in function_words("en") for term in index_terms(word)}
    return set(index_terms(text)) - ignored


Learnt = Callable[[str], Awaitable[Sequence[Plain]]]


async def by_rule(text: str) -> Sequence[Plain]:
    return plainly_said(text)


async def by_model(name: str, text: str) -> Sequence[Plain]:
    """What consolidation leaves of a text alone in a conversation. A model tells no decision from a fact."""
    async with Memory.open(":memory:", embedder=None, model=name) as memory:
        await memory.add(text, session="one")
        await memory.consolidate("one")
        nodes = (await memory.list(limit=1_000)).nodes
    return [Plain(kind=kind_of(node), text=node.content) for node in nodes if node.type != "episodic"]


def kind_of(node: Node) -> Kind:
    if node.type == "opinion":
        return "opinion"
    known: dict[str | None, Kind] = {"preference": "preference", "task": "commitment"}
    return known.get(node.category, "fact")


async def scored(rows: list[dict[str, Any]], learnt: Learnt) -> tuple[dict[str, Any], list[str]]:
    """Precision and recall by language and by kind, and what was found wrongly."""
    counts: Counter[tuple[str, str, str]] = Counter()
    wrong = []
    for row in rows:
        left = list(row["label"]["memories"])
        for memory in left:
            counts.update([(row["lang"], "all", "wanted"), (row["lang"], memory["type"], "wanted")])
        for found in await learnt(row["text"]):
            right = next((memory for memory in left if is_right(found, memory)), None)
            counts.update((row["lang"], kind, "found") for kind in ("all", found.kind))
            if right is None:
                wrong.append(f"{row['lang']}  {found.kind}: {found.text}")
            else:
                left.remove(right)
                counts.update((row["lang"], kind, "right") for kind in ("all", found.kind))
    report: dict[str, Any] = {}
    for lang, kind in sorted({(lang, kind) for lang, kind, _ in counts}):
        wanted, found_, right_ = (counts[lang, kind, name] for name in ("wanted", "found", "right"))
        report.setdefault(lang, {})[kind] = {
            "wanted": wanted, "found": found_, "right": right_,
            "precision": round(right_ / found_, 3) if found_ else None,
            "recall": round(right_ / wanted, 3) if wanted else None,
        }  # fmt: skip
    return report, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "extraction.json")
    parser.add_argument("--model", help="a language model by name; the rules when left out")
    parser.add_argument("--show", action="store_true", help="print what was found wrongly")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines() if line.strip()]
    learnt: Learnt = partial(by_model, options.model) if options.model else by_rule
    report, wrong = asyncio.run(scored(rows, learnt))
    options.out.write_text(
        json.dumps({"file": options.file.name, "by": options.model or "rules", "figures": report}, indent=1) + "\n"
    )
    for lang, kinds in report.items():
        for kind, figures in kinds.items():
            print(f"{lang}  {kind:11} precision {figures['precision']}  recall {figures['recall']}")
    if options.show:
        print("\n".join(wrong))


if __name__ == "__main__":
    main()
