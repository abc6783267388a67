"""Too much is known: the least of it makes room, one part in a hundred at a time, until the rest fits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import ceil

from ricordo.decay import Vital, standing
from ricordo.forgetting.upkeep import Keeping, Parting, Tally, new_run
from ricordo.model import ArchiveReport, Scope
from ricordo.storage import Snapshot

_PART = 0.01


async def prune(keeping: Keeping) -> ArchiveReport:
    """Take the least of what is known to the archive where it is over `max_size`. Running it again changes nothing."""
    tally = Tally(keeping)
    for scope in keeping.scopes:
        parts = await _parts(keeping, scope) if keeping.rules.max_size else []
        tally.total += sum(map(len, parts))
        run = new_run(keeping)
        for part in parts:
            await tally.close(scope, part, origin="prune", run=run, still=partial(_while_over, keeping, scope))
        await tally.look(scope, going=[each.vital for part in parts for each in part])
    return tally.report()


async def _parts(keeping: Keeping, scope: Scope) -> list[list[Parting]]:
    most = keeping.rules.max_size
    _, size = await keeping.store.read(lambda tx: tx.lifecycle.size(scope))
    if size <= most:
        return []
    known = await keeping.vitals(scope)
    why = f"more than {most:,} bytes are known, and this one stood lowest"
    return [
        [Parting(vital=vital, reason="pruned", why=why) for vital in part]
        for part in lowest(known, most=most, now=keeping.now)
    ]


def lowest(known: Sequence[Vital], *, most: int, now: int) -> list[list[Vital]]:
    """What is to go for the rest to fit into `most` bytes, in steps of one in a hundred of what is there. Pure.

    What was confirmed, and what is protected, stays, whatever that comes to.
    """
    order = sorted((vital for vital in known if vital.fades), key=lambda vital: (standing(vital, now=now), vital.key))
    size, count = sum(vital.size for vital in known), len(known)
    parts: list[list[Vital]] = []
    while size > most and order:
        step = ceil(count * _PART)
        part, order = order[:step], order[step:]
        parts.append(part)
        size, count = size - sum(vital.size for vital in part), count - len(part)
    return parts


def _while_over(keeping: Keeping, scope: Scope, snapshot: Snapshot, fresh: Sequence[Vital]) -> Sequence[Vital]:
    """Another process may have made room since."""
    _, size = snapshot.lifecycle.size(scope)
    return [vital for vital in fresh if vital.fades] if size > keeping.rules.max_size else ()
