"""A real browser, and a server with the demo's memories for it."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ricordo import Memory
from ricordo.interfaces.call import Caller, Dispatcher, StoreConfig
from ricordo.interfaces.http.tokens import Tokens, tokens_file
from ricordo.settings import Settings

T = TypeVar("T")
CHROMIUM = os.environ.get("RICORDO_BROWSER") or shutil.which("chromium") or shutil.which("chromium-browser")
WITHOUT = "there is no Chromium: install Debian's package `chromium`, or set RICORDO_BROWSER"
OPTIONS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-gpu-compositing",
    "--disable-gpu-rasterization",
    "--enable-unsafe-swiftshader",
    "--use-angle=swiftshader",
]
SILENCE = ("GPU stall due to ReadPixels", "Automatic fallback to software WebGL")
"""What Chromium itself says of a machine without a graphics card."""


class Site:
    """A running server."""

    def __init__(self, url: str, app: Any, loop: asyncio.AbstractEventLoop, dispatcher: Dispatcher) -> None:
        self.url = url
        self.app = app
        self._loop = loop
        self._dispatcher = dispatcher

    def link(self, caller: Caller | None = None) -> str:
        """Return a one-time link."""
        return self.url + str(self.app.page.key(caller or Caller(trust="user", name="page")))

    def do(self, work: Callable[[Memory], Awaitable[T]]) -> T:
        """Do something with the memory, as another program would."""

        async def run() -> T:
            return await work(await self._dispatcher.opened())

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(60)


@contextmanager
def serving(config: StoreConfig) -> Iterator[Site]:
    """Serve a store on a free port from a thread."""
    import uvicorn

    from ricordo.interfaces.http.app import build
    from ricordo.interfaces.http.guard import Limits

    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.bind(("127.0.0.1", 0))
    ready: list[Any] = []

    async def run() -> None:
        dispatcher = Dispatcher(config.open())
        await dispatcher.opened()
        limits = Limits(rate=1e6, burst=1_000_000)
        app = build(dispatcher, Tokens(tokens_file(config.location)), limits=limits)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=3))
        app.page.dispatcher.is_closing = lambda: server.should_exit
        ready.extend((app, asyncio.get_running_loop(), dispatcher, server))
        await server.serve(sockets=[opened])

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while len(ready) < 4 or not ready[3].started:
        assert thread.is_alive() and time.monotonic() < until, "the server did not start"
        time.sleep(0.05)
    yield Site(f"http://127.0.0.1:{opened.getsockname()[1]}", *ready[:3])
    ready[3].should_exit = True
    thread.join(30)


def demo_config(folder: Path, embedder: str = "hashing") -> StoreConfig:
    """Return the store of `ricordo demo --page`."""
    from ricordo.interfaces.demo.page import DemoConfig

    settings = Settings(time_zone="Europe/Berlin")
    return DemoConfig(location=str(folder / "demo.db"), embedder=embedder, model=None, settings=settings)


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser, or skip the test."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip(WITHOUT)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


class Watched:
    """A window whose console, requests and errors are kept."""

    def __init__(self, browser: Any, site: Site, *, caller: Caller | None = None, **options: Any) -> None:
        self.site = site
        self.context = browser.new_context(base_url=site.url, **{"locale": "en-GB", **options})
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on("console", lambda each: self._hear(each.text))
        self.page.on("pageerror", lambda each: self._hear(str(each)))
        self.page.on("dialog", lambda each: (self._hear(f"dialog: {each.message}"), each.dismiss()))
        self.page.on("request", lambda each: self._note(each.url))
        self.page.goto(site.link(caller))

    def _hear(self, text: str) -> None:
        if not any(known in text for known in SILENCE):
            self.said.append(text)

    def _note(self, url: str) -> None:
        if not url.startswith(self.site.url + "/"):
            self.elsewhere.append(url)

    def check(self) -> None:
        """Fail if the browser complained, or asked anybody else."""
        assert not self.said, self.said
        assert not self.elsewhere, self.elsewhere

    def close(self) -> None:
        self.context.close()
