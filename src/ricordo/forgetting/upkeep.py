"""What gc, pruning and the list of weak memories have in common, and the archiving of memories batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeVar
from zoneinfo import ZoneInfo

from ricordo.clock import from_ms, new_id
from ricordo.decay import Vital
from ricordo.model import ArchiveReport, Change, ClosedReason, DecayCloses, Leaving, Node, Reason, Run, Scope
from ricordo.ports import Progress
from ricordo.storage import Snapshot, Store

T = TypeVar("T")

QUIET_MS = 3_600_000
"""A conversation is over after a silence of this length."""

BATCH = 200
"""Memories closed in one commit. Other writers get their turn between commits."""

PAGE = 2_000
"""Memories read in one snapshot. A long read would keep the write-ahead log from being truncated."""

# Maximum number of memories named in a report.
_REPORTED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Limits on the age and number of memories, from the settings of the same names; 0 means no limit."""

    decay_closes: DecayCloses = "ephemeral"
    protect_mentions: int = 50
    max_entries: int = 0
    max_size: int = 0
    reflect_days: int = 0
    receipts_days: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Concluded:
    """The result of a maintenance step that draws conclusions, most of them by a language model.

    Attributes:
        waited: number of items that waited for it.
        made: number of results.
        failed: why it failed, or "".
        needs_model: no model is configured.
    """

    waited: int = 0
    made: int = 0
    failed: str = ""
    needs_model: bool = False


Conclusion = Literal["changes", "enrich", "causes", "reflect", "questions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """One run of upkeep.

    Attributes:
        scopes: one space each, so that no commit contains rows of two owners.
        now: Unix milliseconds.
        actor: the actor of the commits.
        meaning_model: key of the model of the default embedder's vectors; None with another embedder, or none.
        consolidate: consolidates the finished sessions of a scope.
        conclude: runs a step that draws conclusions or, with True (dry run), counts the waiting items.
    """

    store: Store
    scopes: tuple[Scope, ...]
    now: int
    zone: ZoneInfo
    rules: Rules
    actor: str
    dry_run: bool = False
    progress: Progress | None = None
    meaning_model: int | None = None
    consolidate: Callable[[Scope], Awaitable[Run]]
    conclude: Callable[[Conclusion, Scope, bool], Awaitable[Concluded]]

    def day(self, at: int) -> str:
        """Return the date of an instant in the user's time zone."""
        return from_ms(at).astimezone(self.zone).strftime("%Y-%m-%d")

    async def waiting(self, scope: Scope) -> int:
        """Return how many conversations of a scope are over and wait for consolidation."""
        quiet = from_ms(self.now - QUIET_MS)
        return await self.store.read(lambda tx: sum(each.is_over(quiet_since=quiet) for each in tx.runs.waiting(scope)))

    async def vitals(self, scope: Scope) -> list[Vital]:
        """Return the same as `read` for all live knowledge of a scope."""
        keys = await self.store.read(lambda tx: tx.lifecycle.knowledge(scope))
        found: list[Vital] = []
        for page in pages(keys, PAGE):
            found += await self.store.read(partial(self.read, scope=scope, keys=page))
        return found

    def read(self, snapshot: Snapshot, scope: Scope, keys: Sequence[int]) -> list[Vital]:
        """Return the values that decide the fate of memories (see `decay.Vital`), by ascending key."""
        return snapshot.lifecycle.vitals(scope, keys, often=self.rules.protect_mentions)

    def new_run(self) -> str:
        """Return a new run id. All commits of a run can be undone together."""
        return new_id(self.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A memory to archive, with the reason, also in words."""

    vital: Vital
    reason: ClosedReason
    why: str


StillDue = Callable[[Snapshot, Sequence[Vital]], Sequence[Vital]]
"""Returns the memories that are still to be archived at the moment of writing."""


@dataclass(slots=True)
class Archiver:
    """Archives memories, and counts them for the report."""

    upkeep: Upkeep
    total: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    items: list[Leaving] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    live: int = 0
    live_bytes: int = 0
    fits: bool = True

    async def archive(
        self, scope: Scope, removals: Sequence[Removal], *, origin: str, run: str, still: StillDue
    ) -> None:
        """Archive one batch as one commit. In a dry run, only count it."""
        upkeep = self.upkeep
        if upkeep.dry_run:
            self._count(removals, await upkeep.store.read(lambda tx: _nodes(tx, scope, removals)))
            return
        reason = Reason(actor=upkeep.actor, origin=origin, reason=removals[0].reason, run_id=run)

        def decide(tx: Snapshot) -> tuple[Change, tuple[dict[int, Node], int]]:
            nodes = {key: node for key, node in _nodes(tx, scope, removals).items() if node.is_live}
            going = {vital.key for vital in still(tx, upkeep.read(tx, scope, list(nodes)))}
            change = _closing([each for each in removals if each.vital.key in going], nodes, at=upkeep.now)
            return change, ({key: nodes[key] for key in going}, tx.history.next_commit())

        nodes, commit = await upkeep.store.write(decide, scope=scope, reason=reason, at=from_ms(upkeep.now))
        if nodes:
            self._count([each for each in removals if each.vital.key in nodes], nodes)
            self.commits.append(commit)
            self.runs += [run] if run not in self.runs else []

    def _count(self, removals: Sequence[Removal], nodes: dict[int, Node]) -> None:
        for each in removals:
            self.counts[each.reason] += 1
            if len(self.items) < _REPORTED and each.vital.key in nodes:
                self.items.append(Leaving(node=nodes[each.vital.key], reason=each.reason, why=each.why))
        if self.upkeep.progress is not None:
            self.upkeep.progress(sum(self.counts.values()), max(self.total, sum(self.counts.values())))

    async def count_live(self, scope: Scope, *, archived: Sequence[Vital]) -> None:
        """Add the remaining memories of a scope to the report. In a dry run, `archived` must be subtracted."""
        count, size = await self.upkeep.store.read(lambda tx: tx.lifecycle.size(scope))
        if self.upkeep.dry_run:
            count, size = count - len(archived), size - sum(vital.size for vital in archived)
        self.live, self.live_bytes = self.live + count, self.live_bytes + size
        rules = self.upkeep.rules
        self.fits = self.fits and not (0 < rules.max_entries < count) and not (0 < rules.max_size < size)

    def report(self) -> ArchiveReport:
        return ArchiveReport(
            archived=dict(self.counts),
            items=tuple(self.items),
            live=self.live,
            live_bytes=self.live_bytes,
            fits=self.fits,
            commits=tuple(self.commits),
            runs=tuple(self.runs),
            dry_run=self.upkeep.dry_run,
        )


def pages(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield consecutive slices of at most `size` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def single_scopes(scope: Scope) -> list[Scope]:
    """Split a caller's scope into single spaces: the caller's own, and the current chat's."""
    own = [Scope.of(scope.owner, "")] if scope.owner else []
    return own + ([scope.chat_alone()] if scope.chat else [])


def _nodes(snapshot: Snapshot, scope: Scope, removals: Sequence[Removal]) -> dict[int, Node]:
    return snapshot.nodes.by_key(scope, [each.vital.key for each in removals])


def _closing(removals: Sequence[Removal], nodes: Mapping[int, Node], *, at: int) -> Change:
    """Close nodes that were just read. `Change.close` would read each of them again."""
    when = from_ms(at)
    return Change(
        put=tuple(replace(nodes[each.vital.key], closed_at=when, closed_reason=each.reason) for each in removals)
    )
