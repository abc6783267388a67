"""A network between clients and a server that breaks when it is told to: a proxy on a port of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
import time
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

_PART = 65_536
_RESET = struct.pack("ii", 1, 0)


class Network:
    """Forwards connections to a server until it breaks; new ones are refused while it is down.

    Attributes:
        breaks: how often it broke.
    """

    def __init__(self, address: str) -> None:
        """Listen, and forward to the server of an address: a socket in a folder."""
        parts = urlsplit(address)
        self._server = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.address = f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}?sslmode=disable"
        self.breaks = 0
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._plan: tuple[str, bytes, int] | None = None
        self._down_until = 0.0
        threading.Thread(target=self._accept, daemon=True).start()

    def break_at(self, direction: str, mark: bytes, *, passes: int) -> None:
        """Break in the middle of a message: at the given pass of a part that holds the mark.

        Args:
            mark: b"" is in every part.
            direction: "asked" of what clients send, of which half still arrives; "committed" of the same, which arrives
                whole while its answer does not; "answered" of what the server sends, of which half still arrives.
        """
        with self._lock:
            self._plan = (direction, mark, passes)

    def mend(self) -> None:
        """Forget a break that has not come."""
        with self._lock:
            self._plan = None

    def close(self) -> None:
        """Stop listening and break what is open."""
        self._listener.close()
        self._break(down_s=0)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if time.monotonic() < self._down_until:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._server)
                except OSError:
                    client.close()
                    continue
                with self._lock:
                    self._pairs.add((client, server))
                for direction, source, target in (("asked", client, server), ("answered", server, client)):
                    threading.Thread(target=self._pump, args=(direction, source, target), daemon=True).start()

    def _pump(self, direction: str, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(_PART):
                self._saw(direction, source, part)
                how = self._due(direction, part)
                if how is None:
                    target.sendall(part)
                    continue
                target.sendall(part if how == "committed" else part[: len(part) // 2])
                if how == "committed":
                    time.sleep(0.02)  # the server gets to its work
                self._break(down_s=0.3)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _saw(self, direction: str, source: socket.socket, part: bytes) -> None:
        """Called with each part before it is forwarded."""

    def _due(self, direction: str, part: bytes) -> str | None:
        """Return how to break at a part, if it is time."""
        with self._lock:
            if self._plan is None:
                return None
            how, mark, passes = self._plan
            if direction != ("answered" if how == "answered" else "asked") or mark not in part:
                return None
            self._plan = None if passes <= 1 else (how, mark, passes - 1)
            return how if passes <= 1 else None

    def _break(self, *, down_s: float) -> None:
        """Reset every connection."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
            self._down_until = time.monotonic() + down_s
            self.breaks += bool(pairs)
        for each in (each for pair in pairs for each in pair):
            with contextlib.suppress(OSError):
                if each.family == socket.AF_INET:
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                each.shutdown(socket.SHUT_RDWR)
                each.close()


class Requests(Network):
    """A network that notes the requests of clients: what is sent before waiting for an answer is one request."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._unread: dict[socket.socket, bytes] = {}
        self._asked: dict[socket.socket, list[bytes]] = {}

    def latest_with(self, mark: bytes) -> list[bytes]:
        """Return the requests of the latest transaction that contains a mark, without its rollback."""
        found: list[bytes] = []
        for asked in list(self._asked.values()):
            begins = [place for place, each in enumerate(asked) if b"BEGIN" in each]
            for begin, end in pairwise([*begins, len(asked)]):
                if any(mark in each for each in asked[begin:end]):
                    found = [each for each in asked[begin:end] if b"ROLLBACK" not in each]
        return found

    def forget(self) -> None:
        """Forget the requests so far."""
        self._asked = {}

    async def settle(self, *, quiet_s: float = 0.3, most_s: float = 10.0) -> None:
        """Wait until no client has asked for anything for some time."""
        for _ in range(round(most_s / quiet_s)):
            self.forget()
            await asyncio.sleep(quiet_s)
            if not self._asked:
                return

    def _saw(self, direction: str, source: socket.socket, part: bytes) -> None:
        if direction != "asked":
            return
        if source not in self._unread:  # the first message has no type
            part = part[int.from_bytes(part[:4]) :]
            self._unread[source] = b""
        unread = self._unread[source] + part
        at = 0
        while len(unread) >= at + 5 and len(unread) > (end := at + int.from_bytes(unread[at + 1 : at + 5])):
            at, is_last = end + 1, unread[at : at + 1] in (b"S", b"Q")
            if is_last:
                self._asked.setdefault(source, []).append(unread[:at])
                unread, at = unread[at:], 0
        self._unread[source] = unread
