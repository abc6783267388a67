"""Measure the default embedder: a question, short turns and long messages, against an earlier commit in one process.

    python benchmarks/embedding.py FILE [--before COMMIT] [--out benchmarks/results/embedding.json]

FILE has conversations in the form that benchmarks/quality.py describes. Rounds of the two versions alternate, so that
other work on the machine slows both; use the ratios. The vectors of both are compared, too.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quality import machine

ROUNDS = 5
QUESTIONS, TURNS, MESSAGES = 40, 192, 16  # in each round
LONG = 1_000  # characters: a long message has more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--before", help="a commit to compare with, such as v0.1.0")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(run(versions(arguments.before, Path(folder)), texts(arguments.files), arguments.before))
    print(json.dumps(report, indent=2))
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def texts(files: Sequence[Path]) -> dict[str, list[str]]:
    """Return questions, short turns and long messages, as many as all rounds need."""
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    turns = [row["text"] for row in rows if row["kind"] == "turn" and row["text"]]
    found = {
        "question": [row["question"] for row in rows if row["kind"] == "query"],
        "turns": [text for text in turns if len(text) <= LONG],
        "messages": [text for text in turns if len(text) > LONG],
    }
    needed = {"question": QUESTIONS, "turns": TURNS, "messages": MESSAGES}
    return {name: spread(found[name], (ROUNDS + 1) * count) for name, count in needed.items()}


def spread(texts: list[str], count: int) -> list[str]:
    """Return texts from all over a list; each occurs once if there are enough."""
    step = max(1, len(texts) // count)
    return (texts[::step] * (count // max(1, len(texts[::step])) + 1))[:count]


def versions(before: str | None, folder: Path) -> dict[str, Any]:
    """Return the default embedder as it is now, and as it was in a commit."""
    found = {"now": load(Path(__file__).parent.parent / "src")}
    if before:
        archive = subprocess.run(["git", "archive", before, "src/ricordo"], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        found["before"] = load(folder / "src")
    return found


async def run(embedders: dict[str, Any], texts: dict[str, list[str]], before: str | None) -> dict[str, Any]:
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in embedders}
    for number in range(ROUNDS + 1):
        for name, embedder in embedders.items():
            rounds[name].append(await one_round(embedder, texts, number))
    return summary({name: each[1:] for name, each in rounds.items()}, before)  # the first round loads


def load(source: Path) -> Any:
    """Return the default embedder of the package in a folder; the packages of other folders stay usable."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "ricordo"]:
        del sys.modules[name]
    sys.path.insert(0, str(source))
    return importlib.import_module("ricordo.models.embedding").resolve("default")


async def one_round(embedder: Any, texts: dict[str, list[str]], number: int) -> dict[str, Any]:
    questions = []
    for text in part(texts["question"], QUESTIONS, number):
        started = time.perf_counter()
        await embedder.embed_with_words([text], kind="query")
        questions.append((time.perf_counter() - started) * 1_000)
    turns, turn_vectors = await rate(embedder, part(texts["turns"], TURNS, number))
    messages, message_vectors = await rate(embedder, part(texts["messages"], MESSAGES, number))
    vectors = np.stack([found.vector for found in [*turn_vectors, *message_vectors]])
    return {"questions": questions, "turns": turns, "messages": messages, "vectors": vectors}


def part(texts: list[str], count: int, number: int) -> list[str]:
    return texts[number * count : (number + 1) * count]


async def rate(embedder: Any, texts: list[str]) -> tuple[float, list[Any]]:
    """Embed texts as a batch; return texts per second, and what was found."""
    started = time.perf_counter()
    found = await embedder.embed_with_words(texts, kind="passage")
    return len(texts) / (time.perf_counter() - started), found


def summary(rounds: dict[str, list[dict[str, Any]]], before: str | None) -> dict[str, Any]:
    report: dict[str, Any] = {"machine": machine(), "before": before}
    for name, each in rounds.items():
        milliseconds = sorted(ms for of_round in each for ms in of_round["questions"])
        report[name] = {
            "question_p50_ms": round(statistics.median(milliseconds), 2),
            "question_p95_ms": round(milliseconds[int(0.95 * len(milliseconds))], 2),
            "turns_per_s": round(statistics.median(of_round["turns"] for of_round in each), 1),
            "messages_per_s": round(statistics.median(of_round["messages"] for of_round in each), 2),
        }
    if before:
        report["ratios"] = ratios(rounds["now"], rounds["before"])
    return report


def ratios(now: list[dict[str, Any]], before: list[dict[str, Any]]) -> dict[str, float]:
    """Return medians over rounds of how many times as fast it is now, and how well the vectors agree."""
    pairs = list(zip(now, before, strict=True))
    cosines = np.concatenate([np.einsum("ij,ij->i", one["vectors"], other["vectors"]) for one, other in pairs])
    questions = [statistics.median(b["questions"]) / statistics.median(n["questions"]) for n, b in pairs]
    return {
        "question": round(statistics.median(questions), 2),
        "turns": round(statistics.median(n["turns"] / b["turns"] for n, b in pairs), 2),
        "messages": round(statistics.median(n["messages"] / b["messages"] for n, b in pairs), 2),
        "cosine_mean": round(float(cosines.mean()), 5),
        "cosine_least": round(float(cosines.min()), 5),
    }


if __name__ == "__main__":
    main()
