"""The HTTP server process: sockets, start, and graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ricordo.errors import ConflictError, InvalidError, UnavailableError
from ricordo.interfaces.call import Caller, Dispatcher, StoreConfig, nightly_maintenance

DEFAULT_PORT = 7411
_GRACE_S = 10
_FILES = 5_000
_OBJECTS_BETWEEN_COLLECTIONS = 5_000

if TYPE_CHECKING:
    from ricordo.interfaces.http.guard import Limits
_EXTRA = 'pip install "ricordo[server]"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address to listen on. Port 0 means any free port; None means the Unix socket only."""

    host: str = "127.0.0.1"
    port: int | None = DEFAULT_PORT
    socket_path: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """The allowed hosts and origins, the rate limit, and the profile of the MCP endpoint."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    rate: float = 100.0
    profile: str = "core"


async def serve(
    config: StoreConfig,
    *,
    caller: Caller,
    address: Address,
    rules: AccessRules,
    notify: Callable[[str], None],
    open_page: Callable[[str], None] | None = None,
) -> None:
    """Serve until the process is stopped.

    Args:
        caller: The caller of requests over the Unix socket; also the owner of the first token.
        notify: Called with messages for the person at the terminal, once the sockets listen.
        open_page: Called with the one-time link to the page, once the sockets listen.

    Raises:
        UnavailableError: An address is in use.
        InvalidError: An argument is not valid, or the extra is not installed.
    """
    try:
        import uvicorn

        from ricordo.interfaces.http.app import build
        from ricordo.interfaces.http.guard import Limits
    except ImportError as error:
        raise InvalidError("serving needs packages that are not installed", hint=_EXTRA) from error
    from ricordo.interfaces.http.tokens import Tokens, first_token, tokens_file

    tokens = Tokens(tokens_file(config.location))
    limits = Limits(rate=rules.rate, burst=max(1, int(rules.rate * 2)))
    with listening(address) as (sockets, urls):
        dispatcher = Dispatcher(config.open())
        await dispatcher.memory(caller)  # raises if the store cannot be opened
        secret_file = first_token(tokens, caller)
        app = build(
            dispatcher,
            tokens,
            limits=limits,
            hosts=rules.hosts,
            origins=rules.origins,
            socket_caller=caller,
            profile=rules.profile,
        )
        uvicorn_config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            http=punctual_protocol(limits),
            timeout_graceful_shutdown=_GRACE_S,
            timeout_keep_alive=int(limits.header_seconds),
        )
        _free_memory_often()  # takes about 100 ms, and no client is connected yet
        notify(f"Listening on {' and '.join(urls)}")
        if app.page is not None and address.port is not None:
            notify(f"Page: {urls[0]}/ (`ricordo page` opens it)")
        first = tokens.file.with_name(tokens.file.name.removesuffix("s.json"))
        known = f"Your token: {first}" if first.exists() else f"Tokens: {tokens.file}"
        notify(known if secret_file is None else f"A token was created for you: {secret_file}")
        if address.port is not None and address.host not in ("127.0.0.1", "::1", "localhost"):
            notify(
                "Other machines can reach this address, and it is not encrypted (no TLS): tokens and memories can be"
                " read on the way. Put a proxy with TLS in front of it; see the page “Serve over HTTP”."
            )
        server = uvicorn.Server(uvicorn_config)
        dispatcher.is_closing = lambda: server.should_exit
        if open_page is not None:
            if app.page is None:
                raise InvalidError("the page needs a package that is not installed", hint=_EXTRA)
            open_page(urls[0] + app.page.key(caller))
        with _ignoring_sigterm():
            async with nightly_maintenance(config, dispatcher):
                await server.serve(sockets=sockets)


def _free_memory_often() -> None:
    """Collect garbage often, except among objects from the start. The command line collects rarely, to start fast, but
    each malformed request leaves up to 20 kB in reference cycles of the HTTP parser's exceptions.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)


def punctual_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with two more limits: the time for receiving headers, and the number of connections. A
    slow or idle client occupies one connection for a limited time and cannot block others.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    silent: dict[Any, asyncio.TimerHandle] = {}  # oldest first
    most = min(limits.connections, _open_files() // 2)

    class Punctual(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > most and silent:
                next((each for each in silent if each.cycle is None), next(iter(silent))).end()
            self.expect_request()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.expect_request()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.expect_request()

        def connection_lost(self, exc: Exception | None) -> None:
            self.expect_nothing()
            super().connection_lost(exc)

        def expect_request(self) -> None:
            """Start the timer for the next request's headers, or stop it while a request is being answered."""
            if self.cycle is not None and not self.cycle.response_complete:
                self.expect_nothing()
            elif self not in silent and not self.transport.is_closing():
                silent[self] = self.loop.call_later(limits.header_seconds, self.end)

        def expect_nothing(self) -> None:
            if (timer := silent.pop(self, None)) is not None:
                timer.cancel()

        def end(self) -> None:
            self.expect_nothing()
            self.transport.abort()

    return Punctual


def _open_files() -> int:
    """Raise the limit of open files (each connection is one) up to `_FILES` if permitted; return the limit."""
    try:
        import resource
    except ImportError:  # pragma: no cover - other systems than POSIX
        return _FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@contextlib.contextmanager
def _ignoring_sigterm() -> Iterator[None]:
    """Ignore the SIGTERM that uvicorn raises again after its shutdown, so that ours can finish."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def listening(address: Address) -> Iterator[tuple[list[socket.socket], list[str]]]:
    """Yield the open sockets and their URLs; close the sockets at the end.

    Raises:
        UnavailableError: An address is in use or cannot be opened.
        InvalidError: There is neither a port nor a socket.
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
            raise InvalidError("there is neither a port nor a socket to listen on", hint="give --port or --socket")
        yield sockets, urls
    finally:
        for each in sockets:
            each.close()
        if address.socket_path is not None and len(sockets) == (1 if address.port is None else 2):
            with contextlib.suppress(OSError):
                address.socket_path.unlink()


def is_free(port: int) -> bool:
    """Return whether this machine can listen on a port now."""
    try:
        _tcp("127.0.0.1", port).close()
    except UnavailableError:
        return False
    return True


def _tcp(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's delay of about 40 ms only for sockets whose protocol is given explicitly as TCP.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen()  # a client that reads the address comes at once
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            raise UnavailableError(
                f"port {port} on {host} is already in use",
                hint="stop the other program, or choose another port, such as --port 0",
            ) from error
        raise UnavailableError(f"cannot listen on {host}, port {port}: {error.strerror}") from error
    return opened


def _unix(path: Path) -> socket.socket:
    """Open a Unix socket that only its owner can connect to. Replace a stale socket of an earlier server."""
    path = path.expanduser().absolute()
    if path.exists():
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise ConflictError(f"{path} is not a socket", hint="choose another path")
        if _answers(path):
            raise ConflictError(f"another server is listening on {path}", hint="choose another path")
        path.unlink()
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        opened.bind(str(path))
        opened.listen()
    except OSError as error:
        opened.close()
        raise UnavailableError(f"cannot listen on {path}: {error.strerror or error}") from error
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
