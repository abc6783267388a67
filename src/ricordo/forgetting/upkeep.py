"""What upkeep works with: whose memories, by which rules, and how it closes some of them, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeVar
from zoneinfo import ZoneInfo

from ricordo.clock import from_ms
from ricordo.decay import Vital
from ricordo.ids import new_id
from ricordo.model import ArchiveReport, Change, ClosedReason, DecayCloses, Leaving, Node, Reason, Run, Scope
from ricordo.ports import Progress
from ricordo.storage import Snapshot, Store

T = TypeVar("T")

BATCH = 200
"""So many memories are closed in one commit: others write in between."""

_PAGE = 2_000
_TOLD = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How long memories are kept and how much of them; the fields are settings of these names. 0 is no limit."""

    decay_closes: DecayCloses = "ephemeral"
    protect_mentions: int = 50
    max_entries: int = 0
    max_size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Concluded:
    """What a night's step with a language model came to: how many things waited for it, and how many it made.

    `failed` says why it could not be done; `needs_model` that none is chosen.
    """

    waited: int = 0
    made: int = 0
    failed: str = ""
    needs_model: bool = False


Conclusion = Literal["enrich", "causes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """All that upkeep needs of the house. `scopes` has one space each, so that nobody's commit holds another's rows;
    `now` is in Unix milliseconds; `actor` is who stands in the log. `consolidate` makes knowledge of the conversations
    of a scope that are over, `conclude` draws conclusions of a kind from what is known in it, or counts what waits.
    """

    store: Store
    scopes: tuple[Scope, ...]
    now: int
    zone: ZoneInfo
    rules: Rules
    actor: str
    dry_run: bool = False
    progress: Progress | None = None
    consolidate: Callable[[Scope], Awaitable[Run]]
    conclude: Callable[[Conclusion, Scope, bool], Awaitable[Concluded]]

    def day(self, at: int) -> str:
        """The day of an instant on the user's calendar."""
        return from_ms(at).astimezone(self.zone).strftime("%Y-%m-%d")

    async def vitals(self, scope: Scope) -> list[Vital]:
        """Of all that is known in a scope, read page by page: a long read would hold the log of writes back."""
        keys = await self.store.read(lambda tx: tx.lifecycle.knowledge(scope))
        found: list[Vital] = []
        for page in pages(keys, _PAGE):
            found += await self.store.read(partial(self.read, scope=scope, keys=page))
        return found

    def read(self, snapshot: Snapshot, scope: Scope, keys: Sequence[int]) -> list[Vital]:
        """The vitals of some memories, by ascending key."""
        return snapshot.lifecycle.vitals(scope, keys, often=self.rules.protect_mentions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """A memory that is to go, and why in words."""

    vital: Vital
    reason: ClosedReason
    why: str


Still = Callable[[Snapshot, Sequence[Vital]], Sequence[Vital]]
"""Which of some memories still are to go, as they are in the moment of writing."""


@dataclass(slots=True)
class Tally:
    """What has gone so far."""

    keeping: Keeping
    total: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    items: list[Leaving] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    live: int = 0
    live_bytes: int = 0
    fits: bool = True

    async def close(self, scope: Scope, parting: Sequence[Parting], *, origin: str, run: str, still: Still) -> None:
        """Take one batch to the archive, as one commit; with `dry_run` only count it."""
        if self.keeping.dry_run:
            nodes = await self.keeping.store.read(lambda tx: _nodes(tx, scope, parting))
            self._note(parting, nodes)
            return
        reason = Reason(actor=self.keeping.actor, origin=origin, reason=parting[0].reason, run_id=run)

        def decide(tx: Snapshot) -> tuple[Change, tuple[dict[int, Node], int]]:
            nodes = {key: node for key, node in _nodes(tx, scope, parting).items() if node.is_live}
            fresh = self.keeping.read(tx, scope, list(nodes))
            going = {vital.key for vital in still(tx, fresh)}
            change = _closing([each for each in parting if each.vital.key in going], nodes, at=self.keeping.now)
            return change, ({key: nodes[key] for key in going}, tx.history.next_commit())

        at = from_ms(self.keeping.now)
        nodes, commit = await self.keeping.store.write(decide, scope=scope, reason=reason, at=at)
        if nodes:
            self._note([each for each in parting if each.vital.key in nodes], nodes)
            self.commits.append(commit)
            self.runs += [run] if run not in self.runs else []

    def _note(self, parting: Sequence[Parting], nodes: dict[int, Node]) -> None:
        for each in parting:
            self.counts[each.reason] += 1
            if len(self.items) < _TOLD and each.vital.key in nodes:
                self.items.append(Leaving(node=nodes[each.vital.key], reason=each.reason, why=each.why))
        if self.keeping.progress is not None:
            self.keeping.progress(sum(self.counts.values()), max(self.total, sum(self.counts.values())))

    async def look(self, scope: Scope, *, going: Sequence[Vital]) -> None:
        """Add what is left of a scope; `going` are those that only a dry run still finds there."""
        count, size = await self.keeping.store.read(lambda tx: tx.lifecycle.size(scope))
        unreal = going if self.keeping.dry_run else ()
        count, size = count - len(unreal), size - sum(vital.size for vital in unreal)
        self.live, self.live_bytes = self.live + count, self.live_bytes + size
        rules = self.keeping.rules
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
            dry_run=self.keeping.dry_run,
        )


def pages(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Consecutive pieces of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def single_scopes(scope: Scope) -> list[Scope]:
    """What a caller sees, space by space: their own, and the present chat's."""
    own = [Scope(owner=scope.owner)] if scope.owner else []
    return own + ([Scope(owner="", chat=scope.chat)] if scope.chat else [])


def new_run(keeping: Keeping) -> str:
    """The id of a run: all its commits can be undone as one."""
    return new_id(keeping.now)


def _nodes(snapshot: Snapshot, scope: Scope, parting: Sequence[Parting]) -> dict[int, Node]:
    return snapshot.nodes.by_key(scope, [each.vital.key for each in parting])


def _closing(parting: Sequence[Parting], nodes: Mapping[int, Node], *, at: int) -> Change:
    """As rows that are known already: `close` would read each of them again."""
    when = from_ms(at)
    return Change(
        put=tuple(replace(nodes[each.vital.key], closed_at=when, closed_reason=each.reason) for each in parting)
    )
