"""A night's work, step by step, in its order. What a step cannot do keeps no other from being done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ricordo.errors import RicordoError, UnavailableError
from ricordo.forgetting.gc import gc
from ricordo.forgetting.prune import prune
from ricordo.forgetting.upkeep import Conclusion, Keeping
from ricordo.model import BY_RULE, ArchiveReport, MaintenanceReport, Step

Work = Callable[[Keeping], Awaitable[tuple[str, ArchiveReport | None]]]
"""A step: what came of it in words, and its report where it has one."""


async def _sessions(keeping: Keeping) -> tuple[str, ArchiveReport | None]:
    """Conversations that are over become knowledge. A dry run asks no model: that would cost as much as doing it."""
    if keeping.dry_run:
        return "conversations that are over would become knowledge", None
    runs = [await keeping.consolidate(scope) for scope in keeping.scopes]
    done, failed = sum(len(run.sessions) for run in runs), [run for run in runs if run.state == "failed"]
    if failed:
        raise UnavailableError(f"{done:,} conversations became knowledge, others wait: {failed[0].reason}")
    if any(run.model == BY_RULE for run in runs):
        kept = sum(item.what == "added" for run in runs for item in run.items)
        return f"{kept:,} plain statements kept by rule; conversations wait for a language model", None
    return f"{done:,} conversations became knowledge" if done else "nothing to do", None


async def _gc(keeping: Keeping) -> tuple[str, ArchiveReport | None]:
    report = await gc(keeping)
    return told(report), report


async def _prune(keeping: Keeping) -> tuple[str, ArchiveReport | None]:
    report = await prune(keeping)
    return told(report), report


async def _enrich(keeping: Keeping) -> tuple[str, ArchiveReport | None]:
    """Who is named often and has no summary yet gets one."""
    return await _concluded(keeping, "enrich", "people and things")


async def _causes(keeping: Keeping) -> tuple[str, ArchiveReport | None]:
    """What led to what, where somebody said so."""
    return await _concluded(keeping, "causes", "pairs of messages")


async def _concluded(keeping: Keeping, kind: Conclusion, things: str) -> tuple[str, ArchiveReport | None]:
    """A dry run counts what would be asked about, and asks nobody."""
    found = [await keeping.conclude(kind, scope, keeping.dry_run) for scope in keeping.scopes]
    waited, made = sum(each.waited for each in found), sum(each.made for each in found)
    if failed := next((each.failed for each in found if each.failed), ""):
        raise UnavailableError(f"{waited:,} {things} wait: {failed}")
    if not waited:
        return "nothing to do", None
    if any(each.needs_model for each in found):
        return f"{waited:,} {things} wait for a language model", None
    if keeping.dry_run:
        return f"{waited:,} {things} would be looked at", None
    return f"{waited:,} {things} looked at, {made:,} {_MADE[kind]}", None


_MADE: Mapping[Conclusion, str] = {"enrich": "summed up", "causes": "causes found"}


async def _tidy(keeping: Keeping) -> tuple[str, ArchiveReport | None]:
    """Let go of rows of the store's own that nobody needs any more. They are nobody's, and hold no text."""
    gone = 0 if keeping.dry_run else await keeping.store.derive(lambda tx: tx.models.drop_removals())
    return (f"{gone:,} rows that nothing needs any more" if gone else "nothing to do"), None


STEPS: Mapping[str, Work] = {
    "sessions": _sessions,
    "gc": _gc,
    "prune": _prune,
    "enrich": _enrich,
    "causes": _causes,
    "tidy": _tidy,
}
"""By name, in order."""


async def maintain(keeping: Keeping) -> MaintenanceReport:
    """Do all steps; running it again changes nothing."""
    return MaintenanceReport(
        steps=tuple([await _done(name, work, keeping) for name, work in STEPS.items()]), dry_run=keeping.dry_run
    )


async def _done(name: str, work: Work, keeping: Keeping) -> Step:
    try:
        detail, report = await work(keeping)
    except RicordoError as error:
        return Step(name=name, ok=False, detail=f"{error.message}. {error.hint}".strip())
    return Step(name=name, ok=True, detail=detail, report=report)


def told(report: ArchiveReport) -> str:
    """A report in a few words. Pure."""
    if not report.archived:
        return "nothing to do"
    counted = ", ".join(f"{count:,} {reason}" for reason, count in report.archived.items())
    return f"{counted}; {report.live:,} live"
