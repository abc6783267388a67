"""Every form in which a memory can be taken along, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError
from ricordo.model import ExportReport, Scope
from ricordo.portability.exporters import complete, markdown, mcp_graph
from ricordo.portability.format_names import EXPORTED
from ricordo.ports import Progress
from ricordo.storage import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """Who leaves and where to: `now` in Unix milliseconds, `zone` for the days in what is to be read."""

    path: Path
    scope: Scope
    now: int
    zone: ZoneInfo


def writer_of(format: str, leaving: Leaving, progress: Progress | None) -> Callable[[Snapshot], ExportReport]:
    """What writes a format from a snapshot.

    Raises:
        InvalidError: there is no such format.
    """
    path, scope = leaving.path, leaving.scope
    if format == complete.NAME:
        return lambda tx: complete.write(path, tx, scope=scope, progress=progress)
    if format == markdown.NAME:
        return lambda tx: markdown.write(path, tx.export.holdings(scope, now=leaving.now), zone=leaving.zone)
    if format == mcp_graph.NAME:
        owner = scope.owner or scope.chat or ""
        return lambda tx: mcp_graph.write(path, tx.export.holdings(scope, now=leaving.now), owner=owner)
    raise InvalidError(f"format: {format!r} is unknown", hint=f"choose one of {', '.join(EXPORTED)}")
