"""The table of `quality.py`'s results: one row for each figure, one column for each system; written into the README."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- quality: from benchmarks/results/quality-*.json -->", "<!-- end of quality -->"
SYSTEMS = {
    "bm25": "BM25",
    "hybrid": "BM25 and vectors",
    "none": "Ricordo, `embedder=None`",
    "default": "Ricordo, default",
}
ROWS: Sequence[tuple[str, str, str, str]] = (
    ("LoCoMo: two people, months of chat", "locomo", "all", "recall@10"),
    ("LoCoMo, several pieces of evidence", "locomo", "multi-hop", "recall@10"),
    ("LoCoMo", "locomo", "all", "hit@1"),
    ("REALTALK: two people, real messages", "realtalk", "all", "recall@10"),
    ("REALTALK", "realtalk", "all", "hit@1"),
    ("BEAM 100K: a person and an assistant, long answers", "beam", "all", "recall@10"),
    ("BEAM 100K, questions that ask for a fact", "beam", "asks for a fact", "recall@10"),
    ("BEAM 100K, questions that ask for a fact", "beam", "asks for a fact", "hit@1"),
    ("RealMem: a person and an assistant, projects over months", "realmem", "all", "sessions@10"),
    ("RealMem", "realmem", "all", "hit@1"),
    ("XQuAD-R: English question, English sentence", "xquad", "en to en", "hit@1"),
    ("XQuAD-R: Russian to Russian", "xquad", "ru to ru", "hit@1"),
    ("XQuAD-R: Russian to English", "xquad", "ru to en", "recall@10"),
    ("XQuAD-R: English to Russian", "xquad", "en to ru", "recall@10"),
    ("XQuAD-R: German to English", "xquad", "de to en", "recall@10"),
    ("XQuAD-R: Spanish to English", "xquad", "es to en", "recall@10"),
    ("XQuAD-R: Chinese to English", "xquad", "zh to en", "recall@10"),
    ("FactConsolidation: facts that change", "factconsolidation", "all", "newest first"),
    ("FactConsolidation, a contradicted fact above (less is better)", "factconsolidation", "all", "stale above"),
)
"""The label, the set, the category and the measure of each row."""


def table(folder: Path) -> str:
    """Return the results in a folder as Markdown. The best figure of a row is bold."""
    reports = {name: path for name in SYSTEMS if (path := folder / f"quality-{name}.json").exists()}
    sets = {name: json.loads(path.read_text(encoding="utf-8"))["sets"] for name, path in reports.items()}
    header = ["", "questions", "measure", *(SYSTEMS[name] for name in sets)]
    lines = [f"| {' | '.join(header)} |", f"|---|---:|---|{'---:|' * len(sets)}"]
    for label, name, category, measure in ROWS:
        found = {system: _figures(each, name, category) for system, each in sets.items()}
        questions = next((str(each["questions"]) for each in found.values() if each), "")
        means = [each[measure]["mean"] if measure in each else None for each in found.values()]
        lines.append(f"| {' | '.join([label, questions, measure, *_cells(means, measure)])} |")
    return "\n".join(lines)


def _figures(sets: Mapping[str, Any], name: str, category: str) -> Mapping[str, Any]:
    figures: Mapping[str, Any] = sets.get(name, {}).get("results", {}).get(category, {})
    return figures


def _cells(means: Sequence[float | None], measure: str) -> list[str]:
    shown = ["" if mean is None else f"{mean:.3f}".removeprefix("0") for mean in means]
    known = [mean for mean in means if mean is not None]
    best = min(known) if measure == "stale above" else max(known)
    return [f"**{cell}**" if mean == best else cell for cell, mean in zip(shown, means, strict=True)]


def write_table(folder: Path) -> None:
    """Replace the table between its marks in the README."""
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    README.write_text(f"{before}{BEGIN}\n{table(folder)}\n{END}{after}", encoding="utf-8")
