"""A server process: its sockets, its life, and an end that finishes what was begun."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ricordo.errors import ConflictError, InvalidError, UnavailableError
from ricordo.interfaces.call import Caller, Calls, Place
from ricordo.interfaces.nightly import keeping_house

DEFAULT_PORT = 7411
_GRACE_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen. A port of 0 is any free one; no port at all is the socket alone."""

    host: str = "127.0.0.1"
    port: int | None = DEFAULT_PORT
    socket_path: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Who may come in, and how much they may ask."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    rate: float = 100.0
    profile: str = "core"


async def serve(place: Place, *, caller: Caller, address: Address, terms: Terms, ready: Callable[[str], None]) -> None:
    """Answer until the process is told to end.

    Args:
        caller: who comes in through the Unix socket, and whose the first token is.
        ready: told what somebody at the terminal should know, once requests are answered.

    Raises:
        UnavailableError: the extra is not installed, or an address is taken.
        InvalidError: an argument does not fit.
    """
    try:
        import uvicorn

        from ricordo.interfaces.http.app import build
        from ricordo.interfaces.http.guard import Limits
    except ImportError as error:
        raise UnavailableError(
            "serving needs packages that are not installed", hint='pip install "ricordo[server]"'
        ) from error
    from ricordo.interfaces.http.tokens import Tokens, first_token, tokens_file

    tokens = Tokens(tokens_file(place.location))
    limits = Limits(rate=terms.rate, burst=max(1, int(terms.rate * 2)))
    with listening(address) as (sockets, urls):
        calls = Calls(place.opened())
        await calls.memory(caller)  # a store that cannot be opened is said here
        made = first_token(tokens, caller)
        app = build(
            calls,
            tokens,
            limits=limits,
            hosts=terms.hosts,
            origins=terms.origins,
            socket_caller=caller,
            profile=terms.profile,
        )
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            limit_concurrency=limits.concurrent,
            timeout_graceful_shutdown=_GRACE_S,
            timeout_keep_alive=30,
        )
        _announce(ready, urls, tokens.file, made)
        with _ending_calmly():
            async with keeping_house(place, calls):
                await uvicorn.Server(config).serve(sockets=sockets)


@contextlib.contextmanager
def _ending_calmly() -> Iterator[None]:
    """The server passes SIGTERM on once it has finished; what is left to do then is ours, not the system's."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _announce(ready: Callable[[str], None], urls: list[str], tokens: Path, made: Path | None) -> None:
    ready(f"Listening at {' and '.join(urls)}")
    if made is not None:
        ready(f"A token was made for you; it stands in {made}")
    else:
        ready(f"Tokens: {tokens}")


@contextlib.contextmanager
def listening(address: Address) -> Iterator[tuple[list[socket.socket], list[str]]]:
    """Open sockets and what to call them.

    Raises:
        UnavailableError: an address is taken or cannot be had.
        InvalidError: there is nothing to listen at.
    """
    sockets: list[socket.socket] = []
    urls: list[str] = []
    try:
        if address.port is not None:
            sockets.append(_tcp(address.host, address.port))
            name = f"[{address.host}]" if ":" in address.host else address.host
            urls.append(f"http://{name}:{sockets[-1].getsockname()[1]}")
        if address.socket_path is not None:
            sockets.append(_unix(address.socket_path))
            urls.append(f"unix:{address.socket_path}")
        if not sockets:
            raise InvalidError("there is nothing to listen at", hint="give --port or --socket")
        yield sockets, urls
    finally:
        for each in sockets:
            each.close()
        if address.socket_path is not None and len(sockets) == (1 if address.port is None else 2):
            with contextlib.suppress(OSError):
                address.socket_path.unlink()


def _tcp(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named: asyncio sends small answers at once only where it reads TCP here, else after some 40 ms.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        raise UnavailableError(f"port {port} of {host} cannot be had: {error.strerror}", hint="try --port 0") from error
    return opened


def _unix(path: Path) -> socket.socket:
    """A socket only its owner can open; a dead one of a server before is replaced."""
    path = path.expanduser().absolute()
    if path.exists():
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise ConflictError(f"{path} is no socket", hint="choose another path")
        if _answers(path):
            raise ConflictError(f"another server listens at {path}", hint="choose another path")
        path.unlink()
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        opened.bind(str(path))
    except OSError as error:
        opened.close()
        raise UnavailableError(f"{path} cannot be had: {error.strerror or error}") from error
    finally:
        os.umask(before)
    return opened


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True
