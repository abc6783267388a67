"""Measure how soon a fresh process answers: a command, the MCP server, and `import ricordo`.

    python benchmarks/startup.py [--runs 9] [--against CHECKOUT] [--out benchmarks/results/startup.json]

Each is a whole process, from its start. With `--against`, another checkout runs in turn with this one on the same
store, so that the ratio holds on a machine whose speed varies. The store has 21 memories and the default embedder. Byte
code is compiled before, as an installer does it.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RUN = "import sys; from ricordo.interfaces.cli import run; sys.exit(run())"
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


FILL = """
import sys
from ricordo.sync import Memory

with Memory.open(sys.argv[1]) as memory:
    for number in range(20):
        memory.add(f"My sister Anna moved to Porto, house {number}", session="s", speaker="Ann")
    memory.remember("I work at Acme")
    memory.settle()
"""


def run(checkout: Path, arguments: list[str], *, hello: bool = False) -> dict[str, float]:
    """Run a process; return its seconds until the end, or until it answers `initialize`, and what it used."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RICORDO", "PYTHONDONTWRITE"))}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=kept | {"PYTHONPATH": str(checkout / "src")},
    )
    assert process.stdin is not None and process.stdout is not None
    if hello:
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        assert b"serverInfo" in process.stdout.readline()
        spent = time.perf_counter() - begun
    process.stdin.close()
    process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    if not hello:
        spent = time.perf_counter() - begun
    return {"s": spent, "cpu_s": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss * 1024 / 1e6}


def summary(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Return the least, the median and the most of each figure."""
    figures = {name: sorted(each[name] for each in runs) for name in runs[0]}
    return {name: [round(each, 3) for each in (v[0], statistics.median(v), v[-1])] for name, v in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--against", type=Path, help="the folder of another checkout")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/startup.json")
    options = parser.parse_args()
    checkouts = {"this": ROOT} | ({"other": options.against.resolve()} if options.against else {})
    for checkout in checkouts.values():
        compileall.compile_dir(checkout / "src", quiet=2)
    report: dict[str, Any] = {
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "figures": "least, median, most",
    }
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "memory.db"
        run(ROOT, [FILL, str(store)])  # in a process of its own: the peak of a child counts that of its parent
        command = [RUN, "--store", str(store)]
        for name, arguments in {
            "search": [*command, "search", "where does Anna live"],
            "search, no embedder": [*command, "--embedder", "none", "search", "where does Anna live"],
            "help": [*command, "--help"],
            "mcp until initialize": [*command, "mcp"],
            "import ricordo": ["import ricordo"],
        }.items():
            runs: dict[str, list[dict[str, float]]] = {of: [] for of in checkouts}
            for number in range(options.runs + 1):
                for of, checkout in checkouts.items():
                    found = run(checkout, arguments, hello=name.startswith("mcp"))
                    runs[of] += [found] if number else []  # the first one warms the disk
            report[name] = {of: summary(each) for of, each in runs.items()}
            if options.against:
                pairs = [a["s"] / b["s"] for a, b in zip(runs["this"], runs["other"], strict=True)]
                report[name]["this / other"] = round(statistics.median(pairs), 3)
    if options.against:
        commit = ["git", "-C", str(options.against), "rev-parse", "--short", "HEAD"]
        report["other"] = subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip()
    report["load_average"] = [round(each, 1) for each in os.getloadavg()]
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
