"""Forgets or updates every memory that meets some conditions, as one commit, or reports what that would change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ricordo.clock import from_ms
from ricordo.consolidation import evolution
from ricordo.encoding.validation import TextRules, checked_attributes, checked_tags
from ricordo.errors import ConflictError, InvalidError
from ricordo.forgetting import forget
from ricordo.model import BulkReport, Change, Json, Node, Scope
from ricordo.ports import Progress
from ricordo.retrieval.hits import as_shown
from ricordo.retrieval.query import Query, Request, filter_of, query_of
from ricordo.retrieval.service import Asking
from ricordo.storage import Snapshot
from ricordo.storage.values import Filter

MOST = 100_000
"""Maximum number of memories changed in one commit, because all other writes wait for it."""

# Memories read at once.
_PAGE = 2_000
# Maximum number of memories shown in a report.
_SAMPLE = 10

Work = Callable[[Snapshot, Sequence[Node]], tuple[Change, BulkReport]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The memories that a change selects, and the expected number of changes.

    Attributes:
        expect: how many memories must change; None for any number.
        with_replaced: also select the facts that were replaced, since answers quote them beside the newer ones.
        progress: called with (memories read so far, memories in total).
    """

    asking: Asking
    query: Query
    expect: int | None
    with_replaced: bool = False
    progress: Progress | None = None

    def changed(self, snapshot: Snapshot, work: Work) -> tuple[Change, BulkReport]:
        """Return the change that `work` makes to the selected memories.

        Raises:
            InvalidError: too many memories are selected.
            ConflictError: the number of changed memories differs from `expect`.
        """
        nodes = self._selected(snapshot)
        change, report = work(snapshot, nodes)
        if self.expect is not None and report.count != self.expect:
            raise ConflictError(
                f"{report.count:,} memories would change, not {self.expect:,}",
                hint="repeat the dry run: memories were added, changed or removed since",
            )
        return change, report

    def _selected(self, snapshot: Snapshot) -> list[Node]:
        scope, now = self.asking.scope, snapshot.current(self.asking.now)
        wanted = filter_of(snapshot, scope, self.query)
        total = len(snapshot.nodes.matching(scope, wanted))
        _check_number(total)
        nodes: list[Node] = []
        for page in _pages(snapshot, scope, wanted, now=now):
            nodes += page
            if self.progress is not None:
                self.progress(len(nodes), max(total, len(nodes)))
        if self.with_replaced:
            for page in _pages(snapshot, scope, replace(wanted, archived=True), now=now):
                nodes += [node for node in page if node.closed_reason == "superseded"]
                _check_number(len(nodes))
        return nodes


def _check_number(found: int) -> None:
    if found > MOST:
        raise InvalidError(
            f"{found:,} memories meet the conditions, and at most {MOST:,} can change at once",
            hint="change them in parts, with `after` and `before`",
        )


def _pages(snapshot: Snapshot, scope: Scope, wanted: Filter, *, now: int) -> Iterator[list[Node]]:
    """Yield memories, last recorded first."""
    last: int | None = None
    while page := snapshot.nodes.page(scope, wanted, now=now, before_key=last, limit=_PAGE):
        yield page
        last = page[-1].key


def selection(
    asking: Asking,
    request: Request,
    *,
    everything: bool,
    expect: int | None,
    progress: Progress | None,
    with_replaced: bool = False,
) -> Selection:
    """Validate the conditions of a change.

    Raises:
        InvalidError: an argument is invalid, or not exactly one of a condition and `everything` is given.
    """
    query = query_of(replace(request, type=request.type or "any", limit=1), now=asking.now, zone=asking.zone)
    if expect is not None and (isinstance(expect, bool) or not isinstance(expect, int) or expect < 0):
        raise InvalidError(
            f"expect: {expect!r} is not a number of memories", hint="use the count that a dry run reports"
        )
    given = query.filter
    has_one = (given.categories, given.tags, given.session, given.after, given.before, query.entity)
    is_all = request.type in (None, "any") and not any(each not in (None, ()) for each in has_one)
    is_all = is_all and _is_met_by_all(given.where or {})
    if is_all and not everything:
        raise InvalidError(
            "no condition is given, so every memory would change", hint="pass everything=True to confirm"
        )
    if everything and not is_all:
        raise InvalidError(
            "everything: cannot be combined with conditions", hint="leave out `everything` or the conditions"
        )
    return Selection(asking=asking, query=query, expect=expect, with_replaced=with_replaced, progress=progress)


def checked_conditions(asking: Asking, where: Json) -> Json:
    """Return conditions on attributes, checked. Raises InvalidError if they are invalid, or met by every memory."""
    checked = query_of(Request(text="", where=where, type="any"), now=asking.now, zone=asking.zone).filter.where or {}
    if _is_met_by_all(checked):
        raise InvalidError("where: no condition is given", hint="to erase everything, give the owner")
    return checked


def _is_met_by_all(where: Json) -> bool:
    """Return whether a condition is met by every memory: it is empty, or contains only empty conditions."""
    return all(name == "and" and all(map(_is_met_by_all, each)) for name, each in where.items())


def forgotten(
    snapshot: Snapshot, nodes: Sequence[Node], *, scope: Scope, now: int, protected: bool
) -> tuple[Change, BulkReport]:
    """Return the change that forgets memories. Those about a protected entity are kept unless `protected`."""
    kept = set() if protected else _protected(snapshot, scope, nodes)
    going = [node for node in nodes if node.key not in kept]
    at = from_ms(now)
    closed = tuple(replace(node, closed_at=at, closed_reason="forgotten") for node in going)
    change = Change(put=closed, withhold=tuple(node.id for node in going))
    change = forget.with_conclusions(snapshot, scope, going, change, at=at)
    report = _report(snapshot, going, protected=len(kept), concluded=len(change.close))
    return change, report


def _protected(snapshot: Snapshot, scope: Scope, nodes: Sequence[Node]) -> set[int]:
    found: set[int] = set()
    for start in range(0, len(nodes), _PAGE):
        keys = sorted(node.key for node in nodes[start : start + _PAGE])
        vitals = snapshot.lifecycle.vitals(scope, keys, often=0)
        found |= {vital.key for vital in vitals if vital.is_protected}
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """The changes to each memory: labels and attributes to add or remove; all others stay."""

    add_tags: tuple[str, ...]
    remove_tags: tuple[str, ...]
    set_attributes: Json
    remove_attributes: tuple[str, ...]
    expiry: evolution.Expiry
    rules: TextRules

    def __post_init__(self) -> None:
        given = (self.add_tags, self.remove_tags, self.set_attributes, self.remove_attributes)
        if not any(given) and self.expiry is evolution.UNCHANGED:
            raise InvalidError("nothing to change is given", hint="give labels, attributes or expires")

    def tags(self, node: Node) -> tuple[str, ...]:
        gone = {each.casefold() for each in self.remove_tags}
        return checked_tags([each for each in (*node.tags, *self.add_tags) if each.casefold() not in gone])

    def attributes(self, node: Node) -> Json:
        merged = {**node.attributes, **self.set_attributes}
        return {name: value for name, value in merged.items() if name not in self.remove_attributes}


def alteration(
    *,
    add_tags: Sequence[str],
    remove_tags: Sequence[str],
    set_attributes: Json | None,
    remove_attributes: Sequence[str],
    expiry: evolution.Expiry,
    rules: TextRules,
) -> Alteration:
    """Validate the requested changes. Raises InvalidError."""
    names = [remove_attributes] if isinstance(remove_attributes, str) else list(remove_attributes)
    if not all(isinstance(each, str) for each in names):
        raise InvalidError("remove_attributes must be a list of names")
    return Alteration(
        add_tags=checked_tags(add_tags, rules=rules),
        remove_tags=checked_tags(remove_tags),
        set_attributes=checked_attributes(set_attributes, rules=rules),
        remove_attributes=tuple(names),
        expiry=expiry,
        rules=rules,
    )


def updated(
    snapshot: Snapshot, nodes: Sequence[Node], *, change: Alteration, update: Callable[..., tuple[Change, Node]]
) -> tuple[Change, BulkReport]:
    """Return the change that updates memories in place. Memories that would not change are only counted.

    Args:
        update: `evolution.update`, with the time and the caller.
    """
    altered = [
        each
        for node in nodes
        for each in update(
            node,
            content=None,
            tags=change.tags(node),
            attributes=checked_attributes(change.attributes(node)),
            expiry=change.expiry,
        )[0].put
    ]
    report = _report(snapshot, altered, unchanged=len(nodes) - len(altered))
    return Change(put=tuple(altered)), report


def _report(
    snapshot: Snapshot, nodes: Sequence[Node], *, protected: int = 0, unchanged: int = 0, concluded: int = 0
) -> BulkReport:
    shown: Mapping[int, Node] = as_shown(snapshot, {node.key: node for node in nodes[:_SAMPLE]})
    return BulkReport(
        count=len(nodes), sample=tuple(shown.values()), protected=protected, unchanged=unchanged, concluded=concluded
    )
