"""MCP over standard input and output: a client starts this process and owns it, so the process is the caller."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ricordo.errors import UnavailableError
from ricordo.interfaces.call import Caller, Dispatcher, StoreConfig, nightly_maintenance

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

    from ricordo.memory import Memory


async def serve(config: StoreConfig, *, caller: Caller, profile: str) -> None:
    """Serve until the client closes its end, then finish pending writes.

    The client is answered before the store is open: opening begins with its first message.

    Raises:
        UnavailableError: The SDK is not installed.
        InvalidError: There is no such profile or tool.
    """
    try:
        from mcp.server.stdio import stdio_server

        from ricordo.interfaces.mcp.server import build
    except ImportError as error:
        raise UnavailableError(
            "MCP needs a package that is not installed", hint='pip install "ricordo[mcp]"'
        ) from error
    answered = asyncio.Event()
    dispatcher = Dispatcher(_open_after(answered, config))
    try:
        async with nightly_maintenance(config, dispatcher):
            server = build(dispatcher, profile=profile, caller_of=lambda ctx: caller)
            _set_after_first_answer(server, answered)
            async with stdio_server() as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await dispatcher.close()


def _set_after_first_answer(server: Server[Any], answered: asyncio.Event) -> None:
    async def middleware(ctx: Any, call_next: Any) -> Any:
        try:
            return await call_next(ctx)
        finally:
            answered.set()

    server.middleware.append(middleware)


async def _open_after(answered: asyncio.Event, config: StoreConfig) -> Memory:
    await answered.wait()
    await asyncio.sleep(0)  # send the answer before modules are loaded
    return await config.open()
