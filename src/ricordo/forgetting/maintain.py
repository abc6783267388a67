"""A night's work, step by step, in its order. What a step cannot do keeps no other from being done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ricordo.errors import RicordoError, UnavailableError
from ricordo.forgetting.gc import gc
from ricordo.forgetting.keeping import Keeping
from ricordo.forgetting.prune import prune
from ricordo.model import BY_RULE, ArchiveReport, MaintenanceReport, Step
from ricordo.store.sqlite.models import drop_removals

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


async def _tidy(keeping: Keeping) -> tuple[str, ArchiveReport | None]:
    """Let go of rows of the store's own that nobody needs any more. They are nobody's, and hold no text."""
    gone = 0 if keeping.dry_run else await keeping.store.derive(drop_removals)
    return (f"{gone:,} rows that nothing needs any more" if gone else "nothing to do"), None


STEPS: Mapping[str, Work] = {"sessions": _sessions, "gc": _gc, "prune": _prune, "tidy": _tidy}
"""By name, in order. What links facts to their causes and reflects on them has its place before the last."""


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
