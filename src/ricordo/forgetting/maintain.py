"""Nightly maintenance: its steps in order. A step that fails does not keep the others from running."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ricordo.errors import RicordoError, UnavailableError
from ricordo.forgetting.gc import gc, prune
from ricordo.forgetting.upkeep import Conclusion, Upkeep
from ricordo.model import BY_RULE, ArchiveReport, MaintenanceReport, Step
from ricordo.text.sentences import plural

Work = Callable[[Upkeep], Awaitable[tuple[str, ArchiveReport | None]]]
"""A step: returns its result in words, and its report if it has one."""


async def maintain(upkeep: Upkeep) -> MaintenanceReport:
    """Run all steps. Running it again changes nothing."""
    steps = tuple([await _run(name, work, upkeep) for name, work in STEPS.items() if _is_wanted(name, upkeep)])
    return MaintenanceReport(steps=steps, dry_run=upkeep.dry_run)


def _is_wanted(name: str, upkeep: Upkeep) -> bool:
    return name != "reflect" or upkeep.rules.reflect_days > 0


async def _run(name: str, work: Work, upkeep: Upkeep) -> Step:
    try:
        detail, report = await work(upkeep)
    except RicordoError as error:
        return Step(name=name, ok=False, detail=f"{error.message}. {error.hint}".strip())
    return Step(name=name, ok=True, detail=detail, report=report)


async def _sessions(upkeep: Upkeep) -> tuple[str, ArchiveReport | None]:
    """Consolidate finished conversations. A dry run asks no model: that would cost as much as the real run."""
    if upkeep.dry_run:
        return "finished conversations would become knowledge", None
    runs = [await upkeep.consolidate(scope) for scope in upkeep.scopes]
    waiting = sum([await upkeep.waiting(scope) for scope in upkeep.scopes])
    counted, wait = plural(waiting, "conversation"), "waits" if waiting == 1 else "wait"
    done, failed = sum(len(run.sessions) for run in runs), [run for run in runs if run.state == "failed"]
    if failed:
        raise UnavailableError(f"{plural(done, 'conversation')} became knowledge, others wait: {failed[0].reason}")
    if any(run.model == BY_RULE for run in runs):
        kept = sum(item.what == "added" for run in runs for item in run.items)
        left = f"{counted} {wait} for a language model" if waiting else "no conversation waits"
        return (f"{plural(kept, 'plain statement')} kept by rule; {left}" if kept or waiting else "nothing to do"), None
    parts = [f"{plural(done, 'conversation')} became knowledge"] if done else []
    return "; ".join((*parts, f"{counted} {wait}") if waiting else parts) or "nothing to do", None


async def _gc(upkeep: Upkeep) -> tuple[str, ArchiveReport | None]:
    report = await gc(upkeep)
    return _summary(report), report


async def _prune(upkeep: Upkeep) -> tuple[str, ArchiveReport | None]:
    report = await prune(upkeep)
    return _summary(report), report


async def _enrich(upkeep: Upkeep) -> tuple[str, ArchiveReport | None]:
    """Write summaries of entities that are mentioned often and have none."""
    return await _conclude(upkeep, "enrich", ("person or thing", "people and things"), "summarised")


async def _causes(upkeep: Upkeep) -> tuple[str, ArchiveReport | None]:
    """Find causes and effects that were said explicitly."""
    return await _conclude(upkeep, "causes", ("pair of messages", "pairs of messages"), "causes found")


async def _conclude(
    upkeep: Upkeep, kind: Conclusion, things: tuple[str, str], made_what: str
) -> tuple[str, ArchiveReport | None]:
    """Run a step that asks a model. A dry run counts what would be asked and asks nothing."""
    found = [await upkeep.conclude(kind, scope, upkeep.dry_run) for scope in upkeep.scopes]
    waited, made = sum(each.waited for each in found), sum(each.made for each in found)
    counted, wait = plural(waited, *things), "waits" if waited == 1 else "wait"
    if failed := next((each.failed for each in found if each.failed), ""):
        raise UnavailableError(f"{counted} {wait}: {failed}")
    if not waited:
        return "nothing to do", None
    if any(each.needs_model for each in found):
        return f"{counted} {wait} for a language model", None
    if upkeep.dry_run:
        return f"{counted} would be looked at", None
    return f"{counted} looked at, {made:,} {made_what}", None


async def _tidy(upkeep: Upkeep) -> tuple[str, ArchiveReport | None]:
    """Delete bookkeeping rows that nothing needs any more. They hold no text."""
    gone = 0 if upkeep.dry_run else await upkeep.store.derive(lambda tx: tx.models.drop_removals())
    return (f"{plural(gone, 'bookkeeping row')} deleted" if gone else "nothing to do"), None


async def _reflect(upkeep: Upkeep) -> tuple[str, ArchiveReport | None]:
    """Reflect on what was learnt since the last time, if that is due."""
    return await _conclude(upkeep, "reflect", ("reflection", "reflections"), "made")


STEPS: Mapping[str, Work] = {
    "sessions": _sessions,
    "gc": _gc,
    "prune": _prune,
    "enrich": _enrich,
    "causes": _causes,
    "reflect": _reflect,
    "tidy": _tidy,
}
"""By name, in order."""


def _summary(report: ArchiveReport) -> str:
    if not report.archived:
        return "nothing to do"
    counted = ", ".join(f"{count:,} {reason}" for reason, count in report.archived.items())
    return f"{counted}; {report.live:,} live"
