"""Garbage collection and pruning: archive what has expired or faded, or exceeds `max_entries` or `max_size`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from heapq import nsmallest
from math import ceil

from ricordo.clock import from_ms
from ricordo.decay import DAY_MS, FADED, Vital, due, fades_at, fate, remaining, standing, worth
from ricordo.errors import RicordoError, UnavailableError
from ricordo.forgetting.upkeep import BATCH, PAGE, Archiver, Conclusion, Removal, Upkeep, pages
from ricordo.model import BY_RULE, ArchiveReport, ClosedReason, MaintenanceReport, Node, Scope, Step, Weak
from ricordo.storage import Snapshot
from ricordo.text import passing
from ricordo.text.lifetimes import PASSING_DAYS, ends_by, passes_by_meaning
from ricordo.text.sentences import plural

_PRUNED_SHARE = 0.01


async def gc(upkeep: Upkeep) -> ArchiveReport:
    """Archive what is due, batch by batch. Running it again changes nothing."""
    archiver = Archiver(upkeep)
    for scope in upkeep.scopes:
        await _collect(upkeep, scope, archiver)
    if not upkeep.dry_run:
        await upkeep.store.compact()
    return archiver.report()


async def _collect(upkeep: Upkeep, scope: Scope, archiver: Archiver) -> None:
    known = await upkeep.vitals(scope)
    passed = await _passing(upkeep, scope, known, until=upkeep.now)
    over = [
        Removal(vital=vital, reason=reason, why=_BY_MEANING if vital.key in passed else _why(upkeep, vital, reason))
        for vital in known
        if (reason := "expired" if vital.key in passed else _due(upkeep, vital)) is not None
    ]
    evicted = _least_valuable(upkeep, known, gone={each.vital.key for each in over})
    archiver.total += len(over) + len(evicted)
    run = upkeep.new_run()

    def still_due(snapshot: Snapshot, fresh: Sequence[Vital]) -> list[Vital]:
        suspects = [each for each in fresh if each.key in passed and each.touched_at == passed[each.key].touched_at]
        still = _passing_among(snapshot, upkeep, scope, suspects)
        return [each for each in fresh if each.key in still or _due(upkeep, each) is not None]

    for reason in ("expired", "decayed"):
        for batch in pages([each for each in over if each.reason == reason], BATCH):
            await archiver.archive(scope, batch, origin="gc", run=run, still=still_due)

    def still_too_many(snapshot: Snapshot, fresh: Sequence[Vital]) -> list[Vital]:
        count, _ = snapshot.lifecycle.size(scope)  # another process may have made room meanwhile
        least = sorted(fresh, key=lambda vital: (worth(vital, now=upkeep.now), vital.key))
        return least[: max(0, count - upkeep.rules.max_entries)]

    for batch in pages(evicted, BATCH):
        await archiver.archive(scope, batch, origin="gc", run=run, still=still_too_many)
    await archiver.count_live(scope, archived=[each.vital for each in (*over, *evicted)])
    if not upkeep.dry_run:
        await upkeep.store.derive(lambda tx: tx.lifecycle.note_decay(scope, at=upkeep.now))
        kept_ms = upkeep.rules.receipts_days * DAY_MS
        await upkeep.store.derive(lambda tx: tx.receipts.expire(scope, before=upkeep.now - kept_ms))


def _least_valuable(upkeep: Upkeep, known: Sequence[Vital], *, gone: set[int]) -> list[Removal]:
    """Choose the memories beyond `max_entries`, least valuable first. Confirmed and protected memories stay."""
    limit = upkeep.rules.max_entries
    excess = len(known) - len(gone) - limit if limit else 0
    if excess <= 0:
        return []
    candidates = [vital for vital in known if vital.fades and vital.key not in gone]
    least = nsmallest(excess, candidates, key=lambda vital: (worth(vital, now=upkeep.now), vital.key))
    why = f"more than {limit:,} memories, and this one is worth least"
    return [Removal(vital=vital, reason="evicted", why=why) for vital in least]


def _why(upkeep: Upkeep, vital: Vital, reason: ClosedReason) -> str:
    if reason == "decayed":
        return f"{remaining(vital, now=upkeep.now):.0%} of it was left"
    assert vital.expires_at is not None
    return f"it was to be kept until {upkeep.day(vital.expires_at)}"


def _due(upkeep: Upkeep, vital: Vital) -> ClosedReason | None:
    return due(vital, now=upkeep.now, closes=upkeep.rules.decay_closes)


_BY_MEANING = f"temporary by its meaning, and not stated again for {PASSING_DAYS} days"


async def _passing(upkeep: Upkeep, scope: Scope, known: Sequence[Vital], *, until: int) -> dict[int, Vital]:
    """Return the memories without an expiry that are temporary by their meaning, by key. Only those whose days end
    between the last upkeep and `until` are judged, so that a night's work is small however many memories there are.
    """
    if upkeep.meaning_model is None:
        return {}
    since = await upkeep.store.read(lambda tx: tx.lifecycle.last_decay(scope)) or 0
    ending = [vital for vital in known if vital.expires_at is None and since < _passes_at(vital) <= until]
    found: dict[int, Vital] = {}
    for page in pages([vital for vital in ending if vital.fades], PAGE):
        found |= await upkeep.store.read(partial(_passing_among, upkeep=upkeep, scope=scope, vitals=page))
    return found


def _passes_at(vital: Vital) -> int:
    """Return when a temporary memory ends that has no expiry."""
    return max(vital.touched_at, vital.valid_from) + PASSING_DAYS * DAY_MS


def _passing_among(snapshot: Snapshot, upkeep: Upkeep, scope: Scope, vitals: Sequence[Vital]) -> dict[int, Vital]:
    """Return the memories that are temporary by their words and vectors together, by key."""
    known = {vital.key: vital for vital in vitals if vital.fades and vital.expires_at is None}
    if upkeep.meaning_model is None or not known:
        return {}
    vectors = snapshot.vectors.of(upkeep.meaning_model, known)
    likely = passing.likely_by_meaning(vectors)
    nodes = snapshot.nodes.by_key(scope, likely)
    return {key: known[key] for key, node in nodes.items() if passes_by_meaning(node, likely[key], zone=upkeep.zone)}


async def prune(upkeep: Upkeep) -> ArchiveReport:
    """Archive the least valuable knowledge while it exceeds `max_size`. Running it again changes nothing."""
    archiver = Archiver(upkeep)
    for scope in upkeep.scopes:
        parts = await _parts(upkeep, scope) if upkeep.rules.max_size else []
        archiver.total += sum(map(len, parts))
        run = upkeep.new_run()

        def while_over(snapshot: Snapshot, fresh: Sequence[Vital], scope: Scope = scope) -> Sequence[Vital]:
            _, size = snapshot.lifecycle.size(scope)  # another process may have made room meanwhile
            return [vital for vital in fresh if vital.fades] if size > upkeep.rules.max_size else ()

        for part in parts:
            await archiver.archive(scope, part, origin="prune", run=run, still=while_over)
        await archiver.count_live(scope, archived=[each.vital for part in parts for each in part])
    return archiver.report()


async def _parts(upkeep: Upkeep, scope: Scope) -> list[list[Removal]]:
    limit = upkeep.rules.max_size
    _, size = await upkeep.store.read(lambda tx: tx.lifecycle.size(scope))
    if size <= limit:
        return []
    known = await upkeep.vitals(scope)
    why = f"more than {limit:,} bytes of knowledge, and this memory ranked lowest"
    return [
        [Removal(vital=vital, reason="pruned", why=why) for vital in part]
        for part in removals_to_fit(known, most=limit, now=upkeep.now)
    ]


def removals_to_fit(known: Sequence[Vital], *, most: int, now: int) -> list[list[Vital]]:
    """Return what to remove until the rest fits into `most` bytes, lowest first, in steps of 1 % of all memories. Pure.

    Confirmed and protected memories stay, however large they are.
    """
    order = sorted((vital for vital in known if vital.fades), key=lambda vital: (standing(vital, now=now), vital.key))
    size, count = sum(vital.size for vital in known), len(known)
    parts: list[list[Vital]] = []
    while size > most and order:
        step = ceil(count * _PRUNED_SHARE)
        part, order = order[:step], order[step:]
        parts.append(part)
        size, count = size - sum(vital.size for vital in part), count - len(part)
    return parts


_UNSURE = 0.5
_SOON_DAYS = 14
_ENDS_SOON_DAYS = 7


async def weak(upkeep: Upkeep, *, limit: int) -> tuple[Weak, ...]:
    """Return the memories that upkeep closes soon, soonest first; then other weak ones, most faded first."""
    found: list[tuple[tuple[float, float], Vital]] = []
    nodes: dict[int, Node] = {}
    passing_by_meaning: dict[int, Vital] = {}
    for scope in upkeep.scopes:
        known = await upkeep.vitals(scope)
        passing_by_meaning |= await _passing(upkeep, scope, known, until=upkeep.now + _ENDS_SOON_DAYS * DAY_MS)
        ending = [
            vital._replace(expires_at=_passes_at(vital)) if vital.key in passing_by_meaning else vital
            for vital in known
        ]
        found += [(_order(upkeep, vital), vital) for vital in ending if reasons(upkeep, vital)]
    best = [vital for _, vital in nsmallest(limit, found, key=lambda each: (each[0], each[1].key))]
    for scope in upkeep.scopes:
        nodes |= await upkeep.store.read(partial(_nodes, scope=scope, keys=[vital.key for vital in best]))
    return tuple(
        _weak(upkeep, vital, nodes[vital.key], by_meaning=vital.key in passing_by_meaning)
        for vital in best
        if vital.key in nodes
    )


def reasons(upkeep: Upkeep, vital: Vital) -> list[str]:
    """Return why a memory is weak, in words; nothing if it is not. Pure."""
    found = []
    if vital.confidence < _UNSURE:
        found.append(f"only {vital.confidence:.0%} sure")
    end = vital.expires_at
    if end is not None and end <= upkeep.now + _ENDS_SOON_DAYS * DAY_MS:
        found.append(f"{'expired on' if end <= upkeep.now else 'expires on'} {upkeep.day(end)}")
    at = fades_at(vital)
    if at is not None and at <= upkeep.now + _SOON_DAYS * DAY_MS:
        faded = remaining(vital, now=upkeep.now) < FADED
        found.append(f"{'faded since' if faded else 'faded by'} {upkeep.day(at)}")
    return found


def leaves_at(upkeep: Upkeep, vital: Vital) -> int | None:
    """Return when upkeep will close a memory if it is not used, in Unix milliseconds. Pure."""
    closes = fate(vital, upkeep.rules.decay_closes) == "closes"
    ends = [] if vital.expires_at is None else [vital.expires_at]
    ends += [at for at in [fades_at(vital)] if at is not None and closes]
    return min(ends, default=None)


def _nodes(snapshot: Snapshot, *, scope: Scope, keys: Sequence[int]) -> dict[int, Node]:
    return snapshot.nodes.by_key(scope, keys)


def _order(upkeep: Upkeep, vital: Vital) -> tuple[float, float]:
    leaves = leaves_at(upkeep, vital)
    soon = leaves is not None and leaves <= upkeep.now + _SOON_DAYS * DAY_MS
    return (0, float(leaves or 0)) if soon else (1, remaining(vital, now=upkeep.now))


def _weak(upkeep: Upkeep, vital: Vital, node: Node, *, by_meaning: bool) -> Weak:
    return Weak(
        node=node,
        retention=remaining(vital, now=upkeep.now),
        fades_at=_instant(fades_at(vital)),
        fading=fate(vital, upkeep.rules.decay_closes),
        ends_at=_instant(vital.expires_at),
        ends_by="lifetime" if by_meaning else ends_by(node, zone=upkeep.zone),
        leaves_at=_instant(leaves_at(upkeep, vital)),
        why="; ".join([*reasons(upkeep, vital), *(["temporary by its meaning"] if by_meaning else [])]),
    )


def _instant(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)


Result = tuple[str, ArchiveReport | None]
"""The result of a step in words, and its report, if any."""

Work = Callable[[Upkeep], Awaitable[Result]]


async def maintain(upkeep: Upkeep) -> MaintenanceReport:
    """Run all steps. Running it again changes nothing."""
    wanted = {name: work for name, work in STEPS.items() if name != "reflect" or upkeep.rules.reflect_days > 0}
    steps = tuple([await _run(name, work, upkeep) for name, work in wanted.items()])
    return MaintenanceReport(steps=steps, dry_run=upkeep.dry_run)


async def _run(name: str, work: Work, upkeep: Upkeep) -> Step:
    try:
        detail, report = await work(upkeep)
    except RicordoError as error:
        return Step(name=name, ok=False, detail=f"{error.message}. {error.hint}".strip())
    return Step(name=name, ok=True, detail=detail, report=report)


async def _sessions(upkeep: Upkeep) -> Result:
    """Consolidate finished conversations. A dry run asks no model, because that would cost as much as the real run."""
    if upkeep.dry_run:
        return "finished conversations would become knowledge", None
    runs = [await upkeep.consolidate(scope) for scope in upkeep.scopes]
    waiting = sum([await upkeep.waiting(scope) for scope in upkeep.scopes])
    counted, wait = plural(waiting, "conversation"), "waits" if waiting == 1 else "wait"
    done, failed = sum(len(run.sessions) for run in runs), [run for run in runs if run.state == "failed"]
    if failed:
        raise UnavailableError(f"{plural(done, 'conversation')} consolidated, others still wait: {failed[0].reason}")
    if any(run.model == BY_RULE for run in runs):
        kept = sum(item.what == "added" for run in runs for item in run.items)
        left = f"{counted} {wait} for a language model" if waiting else "no conversation waits"
        return (f"{plural(kept, 'plain statement')} kept by rule; {left}" if kept or waiting else "nothing to do"), None
    parts = [f"{plural(done, 'conversation')} became knowledge"] if done else []
    return "; ".join((*parts, f"{counted} {wait}") if waiting else parts) or "nothing to do", None


async def _archive(upkeep: Upkeep, *, work: Callable[[Upkeep], Awaitable[ArchiveReport]]) -> Result:
    """Archive memories, by `gc` or `prune`."""
    report = await work(upkeep)
    counted = ", ".join(f"{count:,} {reason}" for reason, count in report.archived.items())
    return (f"{counted}; {report.live:,} live" if counted else "nothing to do"), report


async def _conclude(upkeep: Upkeep, *, kind: Conclusion, things: tuple[str, str], made_what: str) -> Result:
    """Run a step that asks a model. A dry run asks nothing and counts what would be asked."""
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


async def _tidy(upkeep: Upkeep) -> Result:
    """Delete bookkeeping rows that are no longer needed. They contain no text."""
    gone = 0 if upkeep.dry_run else await upkeep.store.derive(lambda tx: tx.models.drop_removals())
    return (f"{plural(gone, 'bookkeeping row')} deleted" if gone else "nothing to do"), None


STEPS: Mapping[str, Work] = {
    "sessions": _sessions,
    "gc": partial(_archive, work=gc),
    "prune": partial(_archive, work=prune),
    # recent facts that may make older ones outdated, by meaning
    "changes": partial(_conclude, kind="changes", things=("likely change", "likely changes"), made_what="listed"),
    # summaries of entities that are mentioned often and have none
    "enrich": partial(
        _conclude, kind="enrich", things=("person or thing", "people and things"), made_what="summarised"
    ),
    # explicitly stated causes and effects
    "causes": partial(
        _conclude, kind="causes", things=("pair of messages", "pairs of messages"), made_what="causes found"
    ),
    # memories learnt since the last reflection, if one is due
    "reflect": partial(_conclude, kind="reflect", things=("reflection", "reflections"), made_what="made"),
    # stale answers to standing questions
    "questions": partial(_conclude, kind="questions", things=("stale answer", "stale answers"), made_what="renewed"),
    "tidy": _tidy,
}
"""The steps by name, in order of execution."""
