"""Compare Ricordo and its peers on the same documents with the same vectors, one after another on one machine.

    python benchmarks/peers.py FILE.jsonl [--only NAME ...] [--keep FOLDER] [--out benchmarks/results/peers.json]
    python benchmarks/peers.py --tables    only rewrite the tables of the README and the docs

FILE is as for `benchmarks/quality.py`, whose loader and metrics are used: every conversation is a store, every turn a
document. Ricordo's default embedder reads every turn ("speaker: text") and question once, before anything is timed;
each peer looks up its vectors. So only retrieval differs.

Each peer gets its own virtual environment, installed from the package registry into a temporary folder and deleted at
the end (`--keep` keeps it for the next run), and its own process. Ricordo is measured first and again last: the
difference is noise of the machine. `--only` measures some peers again and merges them into the results. The tables of
the README and the docs are written from the results.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import quality
import search_systems
from peer_task import Conversation, Document, Question, Task, Words, write_task

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results" / "peers.json"
INSTALL_S, RUN_S = 900, 900
# No telemetry, no downloads: the measurement needs neither.
QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "MEM0_TELEMETRY": "False",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """`packages` are pinned and installed with their dependencies; the first is the peer itself."""

    packages: tuple[str, ...]
    search: str


OURS = "ricordo"
AGAIN = "ricordo again"
PLAIN = "ricordo, one vector"
RICORDO = (OURS, AGAIN, PLAIN)
PEERS = {
    OURS: Peer(packages=("ricordo",), search="all signals, default configuration"),
    PLAIN: Peer(packages=("ricordo",), search="the same without vectors of words"),
    "chroma": Peer(packages=("chromadb==1.5.9",), search="vectors"),
    "txtai": Peer(packages=("txtai==9.14.0",), search="vectors and BM25"),
    "lancedb": Peer(packages=("lancedb==0.40.0",), search="vectors and full text, fused (RRF)"),
    "langgraph memory": Peer(packages=("langgraph==1.2.22", "numpy"), search="vectors, in memory only"),
    "langgraph sqlite": Peer(
        packages=("langgraph-checkpoint-sqlite==3.1.2", "langgraph==1.2.22", "pysqlite3-binary"), search="vectors"
    ),
    "mem0": Peer(packages=("mem0ai==2.2.1",), search="vectors; no language model (`infer=False`)"),
    "mempalace": Peer(packages=("mempalace==3.11.0",), search="vectors and BM25, no language model"),
    "llama-index": Peer(
        packages=("llama-index-core==0.14.25", "llama-index-retrievers-bm25==0.8.0"),
        search="vectors and BM25, fused (RRF), in memory",
    ),
    "haystack": Peer(packages=("haystack-ai==3.4.0",), search="vectors and BM25, fused (RRF), in memory"),
    "sqlite-vec + fts5": Peer(
        packages=("sqlite-vec==0.1.9", "pysqlite3-binary"), search="vectors and full text, fused (RRF), by hand"
    ),
    "bm25s": Peer(packages=("bm25s==0.3.16", "PyStemmer"), search="full text only, in memory"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--only", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="NAME")
    parser.add_argument("--keep", type=Path, help="a folder that keeps the environments and vectors for the next run")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--tables", action="store_true", help="only write the tables from existing results")
    options = parser.parse_args()
    if options.tables:
        write_tables(json.loads(options.out.read_text()))
        return
    if options.file is None:
        parser.error("FILE is needed: conversations with questions, as for benchmarks/quality.py")
    with working_folder(options.keep) as folder:
        report = run(options.file, options.only, folder=folder, out=options.out)
    if options.out == RESULTS:
        write_tables(report)
    print(table(report, SHORT))
    print(claim(report))


@contextmanager
def working_folder(kept: Path | None) -> Any:
    """Yield the folder to keep, or a temporary one."""
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
    else:
        with tempfile.TemporaryDirectory(prefix="ricordo-peers-") as name:
            yield Path(name)


def run(file: Path, names: list[str], *, folder: Path, out: Path) -> dict[str, Any]:
    """Install all peers, then measure them one after another, and Ricordo again at the end.

    Each row is written as soon as it is measured, merged into the rows of an earlier run on the same documents.
    """
    task = prepared(file, folder)
    report = described(file, task)
    rows = earlier_rows(out, report)
    environments = {name: installed(name, folder / "environments") for name in names}
    for row in [*names, *([AGAIN] if OURS in names else [])]:
        sys.stderr.write(f"{row} ...\n")
        name = OURS if row == AGAIN else row
        rows[row] = measured(name, task, environment=environments[name], folder=folder)
        report["rows"] = {known: rows[known] for known in [*PEERS, AGAIN] if known in rows}
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(report, indent=1) + "\n")
    return report


def described(file: Path, task: Task) -> dict[str, Any]:
    return {
        "file": file.name,
        "embedder": quality_embedder(),
        "documents": sum(len(each.documents) for each in task.conversations),
        "questions": sum(len(each.questions) for each in task.conversations),
        "stores": len(task.conversations),
        "machine": quality.machine() | {"model": processor()},
    }


def earlier_rows(out: Path, report: dict[str, Any]) -> dict[str, Any]:
    """Return the rows measured on the same documents and the same kind of machine; others are not comparable."""
    if not out.exists():
        return {}
    earlier = json.loads(out.read_text())
    return dict(earlier.get("rows", {})) if all(earlier.get(key) == value for key, value in report.items()) else {}


def quality_embedder() -> str:
    from ricordo.models.embedding.default import NAME

    return NAME


def processor() -> str:
    """Return the name of the processor, on Linux."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


# documents and vectors


def prepared(file: Path, folder: Path) -> Task:
    """Write the task files with all embeddings, once, or reuse those of a kept folder."""
    target = folder / f"task-{file.stem}-{quality_embedder()}"
    if not (target / "ready").exists():
        target.mkdir(parents=True, exist_ok=True)
        conversations = read_conversations(file)
        vectors, words = asyncio.run(embedded(conversations))
        write_task(target, conversations, vectors, words)
        (target / "ready").touch()
    return Task(folder=target)


def read_conversations(file: Path) -> list[Conversation]:
    """Return the turns as `quality.py` adds them, and its questions."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    conversations = []
    for name in dict.fromkeys(row["conv"] for row in rows):
        mine = [row for row in rows if row["conv"] == name]
        documents = tuple(document(row) for row in mine if row["kind"] == "turn")
        known = {each.id for each in documents}
        questions = tuple(
            Question(
                text=row["question"],
                category=quality.CATEGORIES[row["category"]],
                evidence=tuple(sorted(set(row["evidence"]) & known)),
            )
            for row in mine
            if row["kind"] == "query" and set(row.get("evidence") or ()) & known
        )
        conversations.append(Conversation(name=name, documents=documents, questions=questions))
    return conversations


def document(row: dict[str, Any]) -> Document:
    message = search_systems.message(row)
    speaker = message.speaker or ""
    text = f"{speaker}: {message.text}" if speaker else message.text
    return Document(
        id=row["id"],
        text=text,
        dated=f"[{row['date']}] {text}" if row.get("date") else text,
        content=message.text,
        speaker=speaker,
        session=message.session or "",
        at=message.at.isoformat() if isinstance(message.at, datetime) else "",
    )


async def embedded(conversations: list[Conversation]) -> tuple[dict[str, list[float]], dict[str, Words]]:
    """Return the default embedder's vector of each text and, for texts without a date, its word pieces and their
    vectors; also for Ricordo's questions of known intent.
    """
    from ricordo.models.embedding.default import embedder
    from ricordo.retrieval.calibration import known_questions

    default = embedder()
    documents = [document for each in conversations for document in each.documents]
    texts = [each.text for each in documents] + [one.text for each in conversations for one in each.questions]
    texts += [question for known in known_questions().values() for question in known]
    vectors, words = {}, {}
    for part in batches(texts, "turns and questions"):
        for text, found in zip(part, await default.embed_with_words(part), strict=True):
            vectors[text] = found.vector.tolist()
            words[text] = Words(pieces=tuple(found.pieces), vectors=tuple(found.words.tolist()))
    for part in batches([each.dated for each in documents], "turns with their date"):
        for text, vector in zip(part, await default.embed_batch(part), strict=True):
            if vector is not None:
                vectors[text] = vector.tolist()
    return vectors, words


def batches(texts: list[str], what: str) -> Iterator[list[str]]:
    """Embed distinct texts in batches of 256, sorted by length, and show the progress."""
    ordered = sorted(set(texts), key=lambda text: (len(text), text))
    for start in range(0, len(ordered), 256):
        yield ordered[start : start + 256]
        sys.stderr.write(f"\rembedded {min(start + 256, len(ordered)):,} of {len(ordered):,} {what}")
    sys.stderr.write("\n")


# one peer


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """`failed` is the reason why the environment is missing."""

    folder: Path
    size: dict[str, Any]
    failed: str = ""


def measured(name: str, task: Task, *, environment: Environment, folder: Path) -> dict[str, Any]:
    """Return a peer's row: its figures, or the step that failed and why."""
    row: dict[str, Any] = {
        "search": PEERS[name].search,
        "packages": list(PEERS[name].packages),
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_average": round(os.getloadavg()[0], 1),
        **environment.size,
    }
    if environment.failed:
        return row | {"failed": environment.failed}
    out = folder / "out.json"
    packages = [package.split("==")[0] for package in PEERS[name].packages]
    command = [interpreter(environment.folder), HERE / "peer_stores.py", name, task.folder, out, *packages]
    try:
        call(command, step="run", timeout_s=RUN_S, home=environment.folder)
    except StepFailedError as failed:
        sys.stderr.write(f"  {failed}\n")
        return row | {"failed": str(failed)}
    return row | figures(json.loads(out.read_text()), task)


class StepFailedError(Exception):
    """The step and the last line of a command's output."""


def installed(name: str, folder: Path) -> Environment:
    """Create the environment, unless it was kept from an earlier run, and measure its size.

    Ricordo is always reinstalled.
    """
    sys.stderr.write(f"{name}: ")
    environment = folder / PEERS[name].packages[0].split("==")[0]
    packages = [str(ROOT) if package == OURS else package for package in PEERS[name].packages]
    ready = environment / "ready"
    begun = time.perf_counter()
    pip = [sys.executable, "-m", "pip", "--python", interpreter(environment), "install", "--quiet"]
    try:
        if not ready.exists():
            shutil.rmtree(environment, ignore_errors=True)
            call([sys.executable, "-m", "venv", "--without-pip", environment], step="venv", timeout_s=INSTALL_S)
            call([*pip, *packages], step="install", timeout_s=INSTALL_S)
            ready.touch()
        elif name in RICORDO:
            call([*pip, "--no-deps", "--force-reinstall", *packages], step="install", timeout_s=INSTALL_S)
    except StepFailedError as failed:
        sys.stderr.write(f"{failed}\n")
        return Environment(folder=environment, size={}, failed=str(failed))
    sys.stderr.write(f"installed in {time.perf_counter() - begun:.0f} s\n")
    site = next((environment / "lib").glob("python*/site-packages"))
    size = sum(path.lstat().st_size for path in site.rglob("*"))
    return Environment(
        folder=environment,
        size={"install_mb": round(size / 1e6, 1), "installed_packages": len(list(site.glob("*.dist-info")))},
    )


def interpreter(environment: Path) -> Path:
    return environment / "bin" / "python"


def call(command: list[Any], *, step: str, timeout_s: float, home: Path | None = None) -> None:
    inherited = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        subprocess.run(
            list(map(str, command)),
            check=True,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=inherited | QUIET | ({"HOME": str(home)} if home else {}),
        )
    except subprocess.TimeoutExpired as error:
        raise StepFailedError(f"{step}: not finished within {timeout_s:g} s") from error
    except subprocess.CalledProcessError as error:
        last = [line for line in error.stderr.splitlines() if line.strip()][-1:] or ["said nothing"]
        raise StepFailedError(f"{step}: {last[0][:300]}") from error


def figures(raw: dict[str, Any], task: Task) -> dict[str, Any]:
    """Return recall as `quality.py` measures it, and the costs of a search, a thousand documents and the file."""
    questions = [question for each in task.conversations for question in each.questions]
    documents = sum(len(each.documents) for each in task.conversations)
    dated = raw.get("dated_rankings")
    ordered = sorted(raw["search_ms"])
    return {
        "versions": raw["versions"],
        "results": scored(questions, raw["rankings"], raw["search_ms"]),
        "dated_results": scored(questions, dated, raw["search_ms"]) if dated else None,
        "search_ms": {
            "median": round(statistics.median(ordered), 2),
            "p95": round(ordered[int(len(ordered) * 0.95)], 2),
        },
        "add_1000_s": round(raw["added_s"] / documents * 1_000, 2),
        "disk_mb": round(raw["disk_bytes"] / 1e6, 2) or None,
    }


def scored(questions: list[Question], rankings: list[list[str]], search_ms: list[float]) -> dict[str, Any]:
    return quality.summary(
        [
            quality.Answered(category=question.category, scores=quality.ranks(found, set(question.evidence)), ms=ms)
            for question, found, ms in zip(questions, rankings, search_ms, strict=True)
        ]
    )


# its output


def claim(report: dict[str, Any]) -> str:
    """Report whether any peer is both faster and more accurate than the slower of our two runs."""
    rows = report["rows"]
    ours = [rows[name] for name in (OURS, AGAIN) if "results" in rows.get(name, {})]
    if not ours:
        return "Ricordo is not in the results."
    ms = max(row["search_ms"]["median"] for row in ours)
    recall = min(recall_of(row, "all", 10) for row in ours)
    better = [
        name
        for name, row in rows.items()
        if "results" in row
        and name not in RICORDO
        and row["search_ms"]["median"] < ms
        and max(recall_of(row, "all", 10), dated_recall(row)) > recall
    ]
    said = f"{'false: ' + ', '.join(better) if better else 'true'} (ours: recall@10 {recall:.3f}, {ms:g} ms)"
    return f"No peer is both faster and more accurate: {said}"


def dated_recall(row: dict[str, Any]) -> float:
    """Return recall@10 with the date in each document's text; Ricordo has a field for it and needs no second run."""
    return float((row["dated_results"] or row["results"])["all"]["recall@10"]["mean"])


def recall_of(row: dict[str, Any], category: str, depth: int) -> float:
    return float(row["results"][category][f"recall@{depth}"]["mean"])


COLUMNS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("recall@5", lambda row: _share(recall_of(row, "all", 5))),
    ("recall@10", lambda row: _share(recall_of(row, "all", 10))),
    ("with dates@10", lambda row: _share(dated_recall(row))),
    ("multi-hop@10", lambda row: _share(recall_of(row, "multi-hop", 10))),
    ("search, ms (p95)", lambda row: f"{row['search_ms']['median']:.1f} ({row['search_ms']['p95']:.1f})"),
    ("add 1,000, s", lambda row: f"{row['add_1000_s']:.2f}"),
    ("disk, MB", lambda row: "none" if row["disk_mb"] is None else f"{row['disk_mb']:.1f}"),
    ("install, MB (packages)", lambda row: f"{row['install_mb']:,.0f} ({row['installed_packages']})"),
)


# The README shows the most important columns, the reference page shows all.
SHORT = ("recall@10", "with dates@10", "multi-hop@10", "search, ms (p95)", "add 1,000, s", "install, MB (packages)")
PAGES = {ROOT / "README.md": SHORT, ROOT / "docs/reference/peers.md": tuple(name for name, _ in COLUMNS)}


def table(report: dict[str, Any], columns: tuple[str, ...]) -> str:
    """Return a markdown table: best recall first, failed peers last."""
    lines = ["| | searches by | " + " | ".join(columns) + " |", "|---|---|" + "---:|" * len(columns)]
    rows = report["rows"].items()
    done = [(name, row) for name, row in rows if "results" in row]
    for name, row in sorted(done, key=lambda pair: -recall_of(pair[1], "all", 10)):
        cells = [_title(name, row), row["search"], *(cell(row) for column, cell in COLUMNS if column in columns)]
        lines.append(f"| {' | '.join(cells)} |")
    for name, row in rows:
        if "failed" in row:
            lines.append(f"| {name} | failed: {row['failed']} |" + " |" * len(columns))
    return "\n".join(lines)


def _title(name: str, row: dict[str, Any]) -> str:
    main = next(iter(row["versions"].values()))
    return f"**{name}**" if name in RICORDO else f"{name} {main}"


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def write_tables(report: dict[str, Any]) -> None:
    """Replace the table between its marks in every page."""
    begin, end = "<!-- peers: from benchmarks/results/peers.json -->", "<!-- end of peers -->"
    for page, columns in PAGES.items():
        before, rest = page.read_text().split(begin)
        after = rest.split(end)[1]
        page.write_text(f"{before}{begin}\n{table(report, columns)}\n{end}{after}")


if __name__ == "__main__":
    main()
