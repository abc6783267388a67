"""The public conformance suite of MCP against `/mcp`: `python -m tests.interfaces.conformance [--out FILE]`.

Its scenarios expect a server without tokens, so a token is added to every request. Most of them are written for the
suite's own reference server: they call tools, prompts and resources of fixed names, or what Ricordo does not offer.
Those of `OFFERED` apply to any server with the feature and must pass; the others are only recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvicorn
from tests.interfaces.serving import house

from ricordo.interfaces.http.server import Address, listening

SUITE = "@modelcontextprotocol/conformance@0.1.16"
NODE = "node@22"
"""Node.js for the suite; it comes with a package."""

OFFERED = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)

_SCENARIO = re.compile(r"^  - (\S+) \[", re.MULTILINE)
_CHECKS = re.compile(r"Passed: (\d+)/(\d+), (\d+) failed")


class Suite:
    """Install the suite in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._environment = {**os.environ, "PATH": f"{folder}/node_modules/.bin{os.pathsep}{os.environ['PATH']}"}
        self._run("npm", "install", "--no-fund", "--no-audit", NODE, SUITE, may_fail=False)

    def names(self) -> list[str]:
        return _SCENARIO.findall(self._run("conformance", "list", "--server", may_fail=False))

    def result(self, url: str, name: str) -> str:
        """Return how many checks of a scenario pass: "2 of 2"."""
        checks = _CHECKS.search(self._run("conformance", "server", "--url", url, "--scenario", name))
        found = f"{checks[1]} of {checks[2]}" if checks else "no result"
        sys.stderr.write(f"{name}: {found}\n")
        return found

    def _run(self, *command: str, may_fail: bool = True) -> str:
        return subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=not may_fail,
        ).stdout


def with_token(app: Any, secret: str) -> Any:
    """Return the application for a client that cannot send a token."""

    async def entered(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {secret}".encode())]}
        await app(scope, receive, send)

    return entered


async def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, listening(Address(port=0)) as (sockets, urls):
        suite = await asyncio.to_thread(Suite, folder)
        names = await asyncio.to_thread(suite.names)
        assert set(OFFERED) <= set(names), names
        async with house(Path(folder) / "me.db") as held:
            app = with_token(held.app, held.secret("me"))
            server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none"))
            serving = asyncio.create_task(server.serve(sockets=sockets))
            found = {name: await asyncio.to_thread(suite.result, f"{urls[0]}/mcp", name) for name in names}
            server.should_exit = True
            await serving
    return {
        "suite": SUITE,
        "offered": {name: found.pop(name) for name in OFFERED},
        "written for the reference server": found,
    }


def _is_passed(result: str) -> bool:
    passed, _, checks = result.partition(" of ")
    return passed == checks != "0"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if shutil.which("npm") is None:
        sys.stderr.write("npm is needed: the suite is a package of its registry\n")
        return 1
    report = asyncio.run(run())
    if given.out:
        given.out.write_text(json.dumps(report, indent=1) + "\n")
    failed = [name for name, result in report["offered"].items() if not _is_passed(result)]
    sys.stderr.write(f"failed: {', '.join(failed)}\n" if failed else "all that holds for this server is passed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
