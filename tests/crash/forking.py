"""Child programs to kill, forked from a process that has imported everything.

Starting Python, importing everything and compiling patterns takes several times as long as the work of such a program.
The process they are forked from has opened no store but one in memory, which it has closed, so no lock and no thread is
carried over.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "tests.crash.workload",
        "tests.crash.warm",
        "pydantic_core",
        "ricordo.models.embedding.local",
        "ricordo.retrieval.search",
        "ricordo.storage.folder.store",
        "ricordo.storage.conversion",
        "ricordo.storage.backup",
        "ricordo.storage.database.runs",
        "ricordo.consolidation.run",
        "ricordo.models.language",
        "ricordo.portability.pipeline",
        "ricordo.portability.importers.memories",
    ]
)


@dataclass(frozen=True, slots=True)
class Ended:
    """A finished program: its exit status, negative for a signal, and its standard error."""

    returncode: int
    stderr: str


def run_forked(program: str, *arguments: str, timeout_s: float = 120) -> Ended:
    """Run a program like `python -c PROGRAM ARGUMENTS`."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="replace") as errors:
        child = FORKED.Process(target=_be, args=(program, arguments, errors.name))
        child.start()
        child.join(timeout_s)
        if child.exitcode is None:
            child.kill()
            child.join()
            raise TimeoutError(f"still running after {timeout_s} s:\n{errors.read()}")
        ended = Ended(child.exitcode, errors.read())
        child.close()
        return ended


def _be(program: str, arguments: tuple[str, ...], errors: str) -> None:
    with Path(errors).open("wb") as file:
        os.dup2(file.fileno(), 2)
    sys.argv = ["-c", *arguments]
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
