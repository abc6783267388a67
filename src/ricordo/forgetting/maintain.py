"""A night's work, step by step, in its order. What a step cannot do keeps no other from being done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ricordo.errors import RicordoError
from ricordo.forgetting.gc import gc
from ricordo.forgetting.keeping import Keeping
from ricordo.forgetting.prune import prune
from ricordo.model import ArchiveReport, MaintenanceReport, Step

Work = Callable[[Keeping], Awaitable[ArchiveReport]]

STEPS: Mapping[str, Work] = {"gc": gc, "prune": prune}
"""By name, in order. Conversations that wait become knowledge before all, and what is known is linked after all, once
there is a model to do it.
"""


async def maintain(keeping: Keeping) -> MaintenanceReport:
    """Do all steps; running it again changes nothing."""
    return MaintenanceReport(
        steps=tuple([await _done(name, work, keeping) for name, work in STEPS.items()]), dry_run=keeping.dry_run
    )


async def _done(name: str, work: Work, keeping: Keeping) -> Step:
    try:
        report = await work(keeping)
    except RicordoError as error:
        return Step(name=name, ok=False, detail=f"{error.message}. {error.hint}".strip())
    return Step(name=name, ok=True, detail=told(report), report=report)


def told(report: ArchiveReport) -> str:
    """A report in a few words. Pure."""
    if not report.archived:
        return "nothing to do"
    counted = ", ".join(f"{count:,} {reason}" for reason, count in report.archived.items())
    return f"{counted}; {report.live:,} live"
