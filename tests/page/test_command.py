"""`ricordo page` and `ricordo demo --page` as programs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.interfaces.conftest import RUN, clean_environment

pytest.importorskip("jinja2", reason="the extra `server` is not installed")


@contextmanager
def started(*arguments: str) -> Iterator[str]:
    """Run a command until the end of the block; provide the link that it prints."""
    command = [sys.executable, "-W", "error", "-c", RUN, "--embedder", "hashing", *arguments, "--no-browser"]
    with subprocess.Popen(command, env=clean_environment(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        try:
            for line in process.stderr:
                said += line
                if found := re.search(r"http://\S+", line):
                    yield found[0]
                    break
            else:
                pytest.fail(said)
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGTERM)
            process.communicate(timeout=120)


def test_a_page_opens_by_the_link_and_a_second_command_opens_the_same_server(tmp_path: Path) -> None:
    store = str(tmp_path / "me.db")
    with (
        started("--store", store, "page", "--port", "0") as link,
        httpx.Client(follow_redirects=True, timeout=120) as browser,
    ):
        assert "The memory is empty" in browser.get(link).text
        url = httpx.URL(link)
        with started("--store", store, "page", "--port", str(url.port)) as second, httpx.Client(timeout=120) as other:
            assert httpx.URL(second).port == url.port
            asked = other.get(second)
            assert asked.status_code == 200 and "<b>me</b>" in asked.text
            key = httpx.URL(second).params["key"]
            origin = {"Origin": f"http://127.0.0.1:{url.port}"}
            entered = other.post(f"{origin['Origin']}/page/enter", data={"key": key}, headers=origin)
            assert entered.status_code == 303 and "Inbox" in other.get(f"{origin['Origin']}/").text


def test_the_demo_shows_its_memories() -> None:
    with started("demo", "--page", "--port", "0") as link, httpx.Client(follow_redirects=True, timeout=120) as browser:
        first = browser.get(link)
        assert "probation talk" in first.text
        base = first.url.join("/")
        assert "genmaicha" in browser.get(base.join("/?q=what+does+Jonas+drink")).text
        for path in ("inbox", "people", "graph", "runs", "timeline", "changes", "fading", "archive", "access"):
            assert browser.get(base.join(f"/page/{path}")).status_code == 200, path
