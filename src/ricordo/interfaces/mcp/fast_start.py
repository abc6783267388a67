"""`ricordo mcp` as clients start it, without loading the whole command line: somebody waits for its first answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from ricordo.errors import RicordoError
from ricordo.interfaces.call import Caller, Place
from ricordo.settings import default_chat, default_embedder, default_location, default_owner, load

_KNOWN = ("--store", "--owner", "--chat", "--embedder", "--model", "--profile")


def options(arguments: Sequence[str]) -> dict[str, str] | None:
    """The options of `ricordo mcp`, by name; None where the command line has to look at them itself."""
    if not arguments or arguments[0] != "mcp" or len(arguments) % 2 == 0:
        return None
    pairs = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    is_plain = all(name in _KNOWN and value and not value.startswith("-") for name, value in pairs.items())
    return pairs if is_plain and 2 * len(pairs) + 1 == len(arguments) else None


def run(given: dict[str, str]) -> int:
    """Serve until the client goes; return the exit status."""
    from ricordo.interfaces.mcp.stdio import serve

    caller = bound_caller(given.get("--owner"), given.get("--chat"))
    try:
        asyncio.run(serve(_place(given), caller=caller, profile=given.get("--profile", "core")))
    except RicordoError as error:
        sys.stderr.write(f"ricordo: {error}\n")
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    return 0


def _place(given: dict[str, str]) -> Place:
    location = given.get("--store") or default_location()
    settings = load(file=Path(location).expanduser().parent / "ricordo.toml")
    embedder, model = given.get("--embedder") or default_embedder(), given.get("--model") or settings.model
    return Place(
        location=location,
        embedder=None if embedder == "none" else embedder,
        model=None if model in ("", "none") else model,
        settings=settings,
    )


def bound_caller(owner: str | None, chat: str | None) -> Caller:
    """Whoever started the process, under the owner and chat of its command line or environment."""
    return Caller(owner=owner or default_owner(), chat=chat or default_chat())
