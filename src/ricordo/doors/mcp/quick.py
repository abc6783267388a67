"""`ricordo mcp` as clients start it, without loading the whole command line: somebody waits for its first answer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ricordo.doors.calling import Caller
from ricordo.errors import RicordoError
from ricordo.settings import default_embedder, default_location, load

_KNOWN = ("--store", "--owner", "--chat", "--embedder", "--profile")


def options(arguments: Sequence[str]) -> dict[str, str] | None:
    """The options of `ricordo mcp`, by name; None where the command line has to look at them itself."""
    if not arguments or arguments[0] != "mcp" or len(arguments) % 2 == 0:
        return None
    pairs = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    is_plain = all(name in _KNOWN and value and not value.startswith("-") for name, value in pairs.items())
    return pairs if is_plain and 2 * len(pairs) + 1 == len(arguments) else None


def run(given: dict[str, str]) -> int:
    """Serve until the client goes; return the exit status."""
    from ricordo.doors.mcp.stdio import serve

    location = given.get("--store") or str(default_location())
    embedder = given.get("--embedder") or default_embedder()
    try:
        settings = load(file=Path(location).expanduser().parent / "ricordo.toml")
        asyncio.run(
            serve(
                location, embedder=None if embedder == "none" else embedder, settings=settings,
                caller=bound_caller(given.get("--owner"), given.get("--chat")), profile=given.get("--profile", "core"),
            )
        )  # fmt: skip
    except RicordoError as error:
        sys.stderr.write(f"ricordo: {error}\n")
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    return 0


def bound_caller(owner: str | None, chat: str | None) -> Caller:
    """Whoever started the process, under the owner and chat of its command line or environment."""
    return Caller(
        owner=owner or os.environ.get("RICORDO_OWNER") or "me", chat=chat or os.environ.get("RICORDO_CHAT") or None
    )
