"""What is over goes to the archive: expired, past its category's lifetime, faded, or too much for `max_entries`."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest

from ricordo.decay import Vital, due, ending, left, lifetime_days, worth
from ricordo.forgetting.upkeep import BATCH, Keeping, Parting, Tally, new_run, pages
from ricordo.model import ArchiveReport, ClosedReason, Scope
from ricordo.storage import Snapshot


async def gc(keeping: Keeping) -> ArchiveReport:
    """Close what is due, in everybody's memories it is asked for, batch by batch. Running it again changes nothing."""
    tally = Tally(keeping)
    for scope in keeping.scopes:
        await _collect(keeping, scope, tally)
    if not keeping.dry_run:
        await keeping.store.compact()
    return tally.report()


async def _collect(keeping: Keeping, scope: Scope, tally: Tally) -> None:
    known = await keeping.vitals(scope)
    over = [
        Parting(vital=vital, reason=reason, why=_why(keeping, vital, reason))
        for vital in known
        if (reason := due(vital, now=keeping.now, closes=keeping.rules.decay_closes)) is not None
    ]
    evicted = _least(keeping, known, gone={each.vital.key for each in over})
    tally.total += len(over) + len(evicted)
    run = new_run(keeping)
    by_reason = [[each for each in over if each.reason == reason] for reason in ("expired", "decayed")]
    for parting in by_reason:
        for batch in pages(parting, BATCH):
            await tally.close(scope, batch, origin="gc", run=run, still=lambda _, fresh: _still_due(keeping, fresh))
    for batch in pages(evicted, BATCH):
        await tally.close(
            scope, batch, origin="gc", run=run, still=lambda tx, fresh: _still_too_many(keeping, tx, scope, fresh)
        )
    await tally.look(scope, going=[each.vital for each in (*over, *evicted)])
    if not keeping.dry_run:
        await keeping.store.derive(lambda tx: tx.lifecycle.note_decay(scope, at=keeping.now))


def _least(keeping: Keeping, known: Sequence[Vital], *, gone: set[int]) -> list[Parting]:
    """The least valuable of what is left, as many as are too many. What is confirmed or protected stays."""
    most = keeping.rules.max_entries
    too_many = len(known) - len(gone) - most if most else 0
    if too_many <= 0:
        return []
    candidates = [vital for vital in known if vital.fades and vital.key not in gone]
    least = nsmallest(too_many, candidates, key=lambda vital: (worth(vital, now=keeping.now), vital.key))
    why = f"more than {most:,} are known, and this one counts least"
    return [Parting(vital=vital, reason="evicted", why=why) for vital in least]


def _why(keeping: Keeping, vital: Vital, reason: ClosedReason) -> str:
    if reason == "decayed":
        return f"{left(vital, now=keeping.now):.0%} of it was left"
    end = ending(vital)
    assert end is not None
    if end.why == "expiry":
        return f"it was to be kept until {keeping.day(end.at)}"
    return f"{vital.category} is kept for {lifetime_days(vital.category)} days, until {keeping.day(end.at)}"


def _still_due(keeping: Keeping, fresh: Sequence[Vital]) -> list[Vital]:
    return [each for each in fresh if due(each, now=keeping.now, closes=keeping.rules.decay_closes) is not None]


def _still_too_many(keeping: Keeping, snapshot: Snapshot, scope: Scope, fresh: Sequence[Vital]) -> list[Vital]:
    """Another process may have made room since."""
    count, _ = snapshot.lifecycle.size(scope)
    least = sorted(fresh, key=lambda vital: (worth(vital, now=keeping.now), vital.key))
    return least[: max(0, count - keeping.rules.max_entries)]
