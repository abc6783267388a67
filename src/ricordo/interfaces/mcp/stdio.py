"""MCP over standard input and output: a client starts this process and owns it, so the process is the caller."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

from ricordo.errors import UnavailableError
from ricordo.interfaces.call import Caller, Calls, Place
from ricordo.interfaces.mcp.sparing import built_when_used, spare_packages
from ricordo.interfaces.nightly import keeping_house

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

    from ricordo.memory import Memory

_MISSING = "MCP needs a package that is not installed"
_REMEDY = 'pip install "ricordo[mcp]"'


async def serve(place: Place, *, caller: Caller, profile: str) -> None:
    """Answer until the client closes its end; then finish what is being written.

    The client is answered before the store is open: opening begins with its first message.

    Raises:
        UnavailableError: the SDK is not installed.
        InvalidError: there is no such profile or tool.
    """
    begun = asyncio.Event()
    calls = Calls(_opened(begun, place))
    try:
        async with keeping_house(place, calls):
            await _serve(_server(calls, caller, profile, begun))
    finally:
        await calls.close()


def _server(calls: Calls, caller: Caller, profile: str, begun: asyncio.Event) -> Server[Any]:
    try:
        # The SDK makes some thousand classes: looking for garbage among them takes a sixth of the time.
        gc.disable()
        spare_packages()
        with built_when_used():
            from ricordo.interfaces.mcp.server import build
    except ImportError as error:
        raise UnavailableError(_MISSING, hint=_REMEDY) from error
    finally:
        gc.enable()
        gc.freeze()
    server = build(calls, profile=profile, caller_of=lambda ctx: caller)

    async def begin(ctx: Any, call_next: Any) -> Any:
        try:
            return await call_next(ctx)
        finally:
            begun.set()

    server.middleware.append(begin)
    return server


async def _serve(server: Server[Any]) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _opened(begun: asyncio.Event, place: Place) -> Memory:
    await begun.wait()
    await asyncio.sleep(0)  # the answer goes out before modules are loaded
    return await place.opened()
