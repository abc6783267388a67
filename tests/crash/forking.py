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
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ricordo.interfaces.cli import run

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "tests.crash.workload",
        "tests.crash.warm",
        "pydantic_core",
        "ricordo.interfaces.cli.app",
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
        status = _status(_be, program, arguments, errors.name, timeout_s=timeout_s, errors=Path(errors.name))
        return Ended(status, errors.read())


def _status(work: Callable[..., object], *given: object, timeout_s: float, errors: Path) -> int:
    """Run a function in a forked process and return its exit status."""
    child = FORKED.Process(target=work, args=given)
    child.start()
    child.join(timeout_s)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise TimeoutError(f"still running after {timeout_s} s:\n{errors.read_text('utf-8', 'replace')}")
    status = child.exitcode
    child.close()
    return status


@dataclass(frozen=True, slots=True)
class Done:
    """A finished command: its exit status, negative for a signal, and what it wrote."""

    returncode: int
    stdout: bytes
    stderr: bytes


def run_command(
    *arguments: str | bytes,
    stdin: bytes = b"",
    environment: Mapping[str, str],
    cwd: Path | None = None,
    timeout_s: float = 120,
) -> Done:
    """Run `ricordo ARGUMENTS` with warnings as errors, in a process with streams of its own."""
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "err")]
        streams[0].write_bytes(stdin)
        given = [os.fsencode(each) for each in arguments]
        place = cwd or Path.cwd()
        status = _status(_be_command, given, dict(environment), place, streams, timeout_s=timeout_s, errors=streams[2])
        return Done(status, streams[1].read_bytes(), streams[2].read_bytes())


def _be_command(
    arguments: Sequence[bytes], environment: Mapping[str, str], cwd: Path, streams: Sequence[Path]
) -> NoReturn:
    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY, 0o600), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    encoding, _, errors = environment.get("PYTHONIOENCODING", "utf-8").partition(":")
    sys.stdin = os.fdopen(0, encoding=encoding, errors=errors or "strict", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=encoding, errors=errors or "strict", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding=encoding, errors="backslashreplace", closefd=False)
    sys.argv = ["ricordo", *map(os.fsdecode, arguments)]
    warnings.simplefilter("error")
    sys.exit(run())


def _be(program: str, arguments: tuple[str, ...], errors: str) -> None:
    with Path(errors).open("wb") as file:
        os.dup2(file.fileno(), 2)
    sys.argv = ["-c", *arguments]
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
