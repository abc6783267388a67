"""Servers for tests: the application in this process, and `ricordo serve` as a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.interfaces.conftest import RUN, clean_environment
from tests.waiting import until

from ricordo import Memory
from ricordo.interfaces.call import Dispatcher
from ricordo.interfaces.http.app import build
from ricordo.interfaces.http.guard import Limits
from ricordo.interfaces.http.tokens import Tokens, tokens_file
from ricordo.model import Trust
from ricordo.ports import LanguageModel

BASE = "http://127.0.0.1:7411"
ALL = ("read", "write", "admin", "erase")


class House:
    """An application with one store, and clients for any owner."""

    def __init__(self, store: Path, calls: Dispatcher, limits: Limits) -> None:
        self.tokens = Tokens(tokens_file(store))
        self.app = build(calls, self.tokens, limits=limits)
        self.answering = 0
        """How many answers have begun; an open stream has begun one."""
        self._clients: list[httpx.AsyncClient] = []

    async def _counted(self, scope: Any, receive: Any, send: Any) -> None:
        async def counting(message: Any) -> None:
            await send(message)
            self.answering += message["type"] == "http.response.start"

        await self.app(scope, receive, counting)

    async def until_answering(self, number: int) -> None:
        await until(lambda: self.answering >= number)

    def secret(
        self,
        name: str,
        *,
        owner: str | None = None,
        chat: str | None = None,
        access: Iterable[str] = ALL,
        trust: Trust = "user",
    ) -> str:
        return self.tokens.add(name, owner=owner or name, chat=chat, trust=trust, access=access)[1]

    def client(self, token: str | None, base: str = BASE, **headers: str) -> httpx.AsyncClient:
        given = {"Authorization": f"Bearer {token}"} if token else {}
        # If a test wants the exception, the application must not swallow it; it still answers 500.
        transport = httpx.ASGITransport(app=self._counted, raise_app_exceptions=False)
        client = httpx.AsyncClient(transport=transport, base_url=base, headers={**given, **headers})
        self._clients.append(client)
        return client

    async def close(self) -> None:
        for each in self._clients:
            await each.aclose()


@asynccontextmanager
async def house(
    store: Path, *, limits: Limits | None = None, model: LanguageModel | None = None
) -> AsyncIterator[House]:
    async def opened() -> Memory:
        return await Memory.open(store, embedder="hashing", model=model)

    calls = Dispatcher(opened())
    built = House(store, calls, limits or Limits(rate=1e6, burst=1_000_000))
    try:
        yield built
    finally:
        await built.close()
        await calls.close()


@dataclass
class Served:
    """A server process."""

    url: str
    store: Path
    socket: Path
    process: subprocess.Popen[bytes]

    @property
    def token(self) -> str:
        return self.store.with_name(self.store.name + ".token").read_text("utf-8").strip()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self.headers, timeout=120, **options)


@contextmanager
def served(folder: Path, *options: str, embedder: str = "hashing") -> Iterator[Served]:
    """Run `ricordo serve` on a free port and a socket; stop it with SIGTERM."""
    store, path = folder / "me.db", folder / "s.sock"
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        RUN,
        "serve",
        "--store",
        str(store),
        "--embedder",
        embedder,
        "--port",
        "0",
        "--socket",
        str(path),
        *options,
    ]
    with subprocess.Popen(command, env=clean_environment(), stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said, url = [], None
        for line in process.stderr:
            said.append(line.decode())
            url = url or ((found := re.search(r"http://\S+", said[-1])) and found[0])
            if "oken" in said[-1]:
                break
        assert url, "".join(said)
        reader = threading.Thread(target=process.stderr.read, daemon=True)
        reader.start()
        try:
            yield Served(url=url, store=store, socket=path, process=process)
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGTERM)
            process.wait(timeout=120)
            reader.join(timeout=120)
