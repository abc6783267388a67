"""Measure the value of each ranking signal: quality with all, without each, without an embedder, and with RRF.

    python benchmarks/ablation.py FILE.jsonl [--out benchmarks/results/ablation.json]

FILE is as for `quality.py`. Each conversation and each question is embedded once. Each variant opens the same
store with other settings (`Settings.without_signals`, `Settings.fusion`) and asks again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from quality import DEPTHS, Answered, Part, answer, conversations, interval, machine, ranked, summary
from ricordo import Memory, Settings
from ricordo.model import SignalName
from ricordo.models.embedding import resolve
from ricordo.ports import Embedder
from search_systems import index_of, message


class Remembering:
    """An embedder that embeds no question twice."""

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder
        self._questions: dict[str, Any] = {}
        self.name: str = embedder.name
        self.dimension: int = embedder.dimension

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    async def embed(self, text: str, *, kind: str = "query") -> Any:
        return await self._embedder.embed(text, kind=kind)

    async def embed_batch(self, texts: Sequence[str], *, kind: str = "passage") -> Any:
        return await self._embedder.embed_batch(texts, kind=kind)

    async def embed_with_words(self, texts: Sequence[str], *, kind: str = "passage") -> Any:
        if kind != "query" or len(texts) != 1:
            return await self._embedder.embed_with_words(texts, kind=kind)
        if texts[0] not in self._questions:
            self._questions[texts[0]] = await self._embedder.embed_with_words(texts, kind=kind)
        return self._questions[texts[0]]


def variants() -> dict[str, tuple[Settings, bool]]:
    """Return the variants by name: settings, and whether there is an embedder."""
    found = {"everything": (_settings(), True)}
    found |= {f"without {name}": (_settings(without_signals=name), True) for name in get_args(SignalName)}
    found["without an embedder"] = (_settings(), False)
    found["rrf in place of scores"] = (_settings(fusion="rrf"), True)
    return found


def _settings(**given: Any) -> Settings:
    return Settings(durability="process", **given)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    started = time.monotonic()
    answered = asyncio.run(run(options.file, options.embedder))
    report = {
        "file": options.file.name,
        "embedder": options.embedder,
        "machine": machine(),
        "seconds": round(time.monotonic() - started),
        "variants": compared(answered),
    }
    print(table(report["variants"]))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=1) + "\n")


async def run(file: Path, spec: str) -> dict[str, list[Answered]]:
    """Return every variant's answers to every question, in the same order."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    embedder = Remembering(resolve(spec))
    answered: dict[str, list[Answered]] = {name: [] for name in variants()}
    for part in conversations(rows):
        with tempfile.TemporaryDirectory() as folder:
            ids = await filled(Path(folder) / "me.db", part, embedder)
            for name, (settings, has_embedder) in variants().items():
                chosen = embedder if has_embedder else None
                async with Memory.open(Path(folder) / "me.db", embedder=chosen, settings=settings) as memory:
                    index = index_of(memory, ids)
                    answered[name] += [await answer(index, part, row, ranked) for row in part.questions]
                sys.stderr.write(f"\r{part.name}: {name:40}")
    sys.stderr.write("\n")
    return answered


async def filled(path: Path, part: Part, embedder: Embedder) -> dict[str, str]:
    """Fill a store with the conversation's turns and vectors; return their ids by the names of the turns."""
    async with Memory.open(path, embedder=embedder, settings=_settings()) as memory:
        ids = await memory.add_many([message(row) for row in part.turns])
        await memory.settle()
    return {row["id"]: id for row, id in zip(part.turns, ids, strict=True)}


def compared(answered: Mapping[str, list[Answered]]) -> dict[str, Any]:
    """Return each variant's figures and the change of recall@10 against all signals, question by question."""
    whole = answered["everything"]
    return {
        name: {
            "results": summary(each),
            "recall@10 lost": interval(
                [
                    before.scores["recall@10"] - after.scores["recall@10"]
                    for before, after in zip(whole, each, strict=True)
                    if before.category != "adversarial"
                ]
            ),
        }
        for name, each in answered.items()
    }


def table(found: Mapping[str, Any]) -> str:
    """As Markdown."""
    lines = [
        "| | recall@5 | recall@10 | recall@10 lost (95 %) | multi-hop@10 | adversarial@10 |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, values in found.items():
        results, lost = values["results"], values["recall@10 lost"]
        cells = [
            *(_mean(results["all"], k) for k in DEPTHS[:2]),
            f"{lost['mean']:+.3f} ({lost['low']:+.3f} to {lost['high']:+.3f})",
            _mean(results["multi-hop"], 10),
            _mean(results["adversarial"], 10),
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(group: Mapping[str, Any], depth: int) -> str:
    return f"{group[f'recall@{depth}']['mean']:.3f}"


if __name__ == "__main__":
    main()
