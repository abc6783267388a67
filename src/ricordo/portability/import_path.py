"""Bringing in what lies at a path, whatever it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ricordo.model import ImportReport
from ricordo.portability.formats import chosen_format, parse
from ricordo.portability.importers import complete
from ricordo.portability.pipeline import Decide, Importing, Outcome, bring_in
from ricordo.portability.records import Reader
from ricordo.portability.sources import Material
from ricordo.ports import Progress
from ricordo.storage import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What an import may do to the store: `write` decides and applies a commit, `read` asks from one snapshot, `derive`
    writes rows as they are. `place` is the store's own file.
    """

    write: Callable[[Decide], Awaitable[Outcome]]
    read: Callable[[Callable[[Snapshot], Outcome]], Awaitable[Outcome]]
    derive: Callable[[Callable[[Snapshot], ImportReport]], Awaitable[ImportReport]]
    place: Path


async def bring(
    path: Path, *, format: str | None, importing: Importing, hands: Hands, progress: Progress | None, dry_run: bool
) -> ImportReport:
    """Tell the format, read it, record what it holds.

    Raises:
        InvalidError: it cannot be read, is of no known format, or holds nothing to remember.
    """
    scope = importing.scope
    reader = Reader(owner=scope.owner, chat=scope.chat or "")
    material = await asyncio.to_thread(Material, path, store=hands.place)
    chosen = await asyncio.to_thread(chosen_format, material, format)
    with ExitStack() as stack:
        if chosen.name == complete.NAME and not dry_run:
            export = await asyncio.to_thread(lambda: stack.enter_context(complete.unpacked(path)))
            report = await complete.put_back(
                export, scope=scope, rules=importing.rules, progress=progress, derive=hands.derive
            )
            if report is not None:
                return report
            parsed = await asyncio.to_thread(complete.parsed, export, reader)
        else:
            parsed = await asyncio.to_thread(parse, material, chosen, reader)
        return await bring_in(parsed, importing, write=hands.write, read=hands.read, progress=progress, dry_run=dry_run)
