"""What was known at a time: any question asked of the store as it was, and the search of it.

The set a search may return, and what its hits hold, is exactly that of then. Their order is today's: by how many of the
question's telling words a memory holds and how near its meaning is, with no use counted and no turns around it read.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import datetime
from math import log
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ricordo.clock import to_ms
from ricordo.errors import InvalidError
from ricordo.model import Absence, Node, Scope, Share
from ricordo.retrieval.hits import hit_of
from ricordo.retrieval.names import entity_key
from ricordo.storage import PastSnapshot, Snapshot, When
from ricordo.text.dates import parse_instant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ricordo.retrieval.plan import Plan
    from ricordo.retrieval.search import Found
    from ricordo.retrieval.service import Asking

    Keys = NDArray[np.int64]

T = TypeVar("T")
AsOf = datetime | str | int | None
"""A time, or the number of a commit; None for now."""

_NEAREST = 80
_IN_TIME = 40


async def read(asking: Asking, ask: Callable[[Snapshot], T], as_of: AsOf) -> T:
    """Ask the store, as it is or as it was.

    Raises:
        InvalidError: `as_of` names no time and no commit.
    """
    if as_of is None:
        return await asking.store.read(ask)
    return await read_past(asking, ask, as_of)


async def read_past(asking: Asking, ask: Callable[[PastSnapshot], T], as_of: datetime | str | int) -> T:
    """Ask the store as it was. Raises InvalidError as `read` does."""
    when = when_of(as_of, asking=asking)
    return await asking.store.read_past(ask, scope=asking.scope, when=when, links=asking.links)


def when_of(as_of: datetime | str | int, *, asking: Asking) -> When:
    """Raises:
    InvalidError: it names no time and no commit.
    """
    if isinstance(as_of, int):
        if isinstance(as_of, bool) or not 0 <= as_of < 1 << 62:
            raise InvalidError(f"as_of: {as_of!r} is no commit's number", hint="`log` shows them; or give a time")
        return When(commit=as_of)
    at = parse_instant(as_of, now=asking.now, zone=asking.zone, field="as_of")
    return When(at=min(at, asking.now))


def find(snapshot: PastSnapshot, plan: Plan, *, asking: Asking) -> Found:
    """Answer a plan from the past.

    Raises:
        NotFoundError: the question is limited to an entity nobody knew then.
    """
    from ricordo.retrieval.search import Found

    started = time.perf_counter()
    scope = asking.scope
    entity = None if plan.query.entity is None else entity_key(snapshot, scope, plan.query.entity)
    allowed = snapshot.nodes.matching(scope, plan.filter(entity))
    within = set(allowed.tolist())
    work: dict[str, Callable[[], dict[int, float]]] = {
        "words": lambda: _words(snapshot, scope, plan, within),
        "meaning": lambda: _meaning(snapshot, plan, asking=asking, allowed=allowed),
        "date": lambda: _date(snapshot, scope, plan, within),
    }
    signals = {name: measure() for name, measure in work.items() if name not in plan.weighing.without}
    ranked = _ranked(snapshot, signals, plan, scope=scope)
    best = tuple(
        hit_of(each.node, score=each.score, shares=each.shares, terms=plan.terms, now=plan.now, zone=asking.zone)
        for each in ranked[: plan.query.limit]
    )
    return Found(
        best=best,
        candidates={name: len(found) for name, found in signals.items()},
        timings_ms={"the past": (time.perf_counter() - started) * 1_000},
        degraded=(),
        absence=None if plan.query.why_not is None else _absence(snapshot, plan, ranked, scope=scope, within=within),
    )


def _words(snapshot: PastSnapshot, scope: Scope, plan: Plan, allowed: set[int]) -> dict[int, float]:
    """For each memory the part of the question's telling words that it held."""
    held = {term: snapshot.holders(scope, term) & allowed for term in plan.terms}
    telling = {term: log(1 + len(allowed) / (len(keys) + 0.5)) for term, keys in held.items()}
    total = sum(telling.values())
    found: dict[int, float] = {}
    for term, keys in held.items():
        for key in keys:
            found[key] = found.get(key, 0.0) + telling[term] / total
    return found


def _meaning(snapshot: PastSnapshot, plan: Plan, *, asking: Asking, allowed: Keys) -> dict[int, float]:
    """The nearest by meaning, as cosines: of what is alive today by its index, of what was closed since by its vectors.
    Texts that were altered since have no vector any more; their words find them.
    """
    import numpy as np

    unaltered = allowed[~np.isin(allowed, np.array(list(snapshot.altered), np.int64))]
    found: dict[int, float] = {}
    spaces = snapshot.visible(asking.scope)
    for model, question in plan.vectors.items():
        if question.vector is None or not len(unaltered):
            continue
        live, _ = asking.vectors.nearest(
            snapshot.today,
            question.vector,
            model=model,
            spaces=spaces,
            shelves=("k", "e", "c"),
            limit=_NEAREST,
            among=unaltered,
        )
        keys = np.concatenate([live, snapshot.closed_since(unaltered)])
        cosines = _cosines(snapshot, keys, question.vector, model=model, spaces=spaces, plan=plan)
        best = sorted(cosines.items(), key=lambda pair: (-pair[1], -pair[0]))[:_NEAREST]
        found.update((key, max(cosine, found.get(key, 0.0))) for key, cosine in best if cosine > 0)
    return found


def _cosines(
    snapshot: PastSnapshot,
    keys: Keys,
    question: NDArray[np.float32],
    *,
    model: int,
    spaces: tuple[int, ...],
    plan: Plan,
) -> dict[int, float]:
    """Cosines with the question after today's mean is taken from both sides."""
    import numpy as np

    from ricordo.storage.database.embeddings import centre

    held = snapshot.vectors(keys.tolist(), model)
    if not held:
        return {}
    mean = centre(snapshot.today, model=model, dimension=len(question), spaces=spaces, shelves=plan.shelves)
    rows, asked = np.stack(list(held.values())) - mean, question - mean
    norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(asked)
    return dict(zip(held, (rows @ asked / np.maximum(norms, 1e-9)).tolist(), strict=True))


def _date(snapshot: PastSnapshot, scope: Scope, plan: Plan, allowed: set[int]) -> dict[int, float]:
    """What happened in the span the question names."""
    if plan.interval is None:
        return {}
    start, end = plan.interval.start, plan.interval.end
    within = snapshot.nodes.within(scope, plan.filter(None), after=start, before=end, most=_IN_TIME)
    return dict.fromkeys(set(within.tolist()) & allowed, 1.0)


class _Ranked(NamedTuple):
    """A memory of then with its score and what that is made of."""

    node: Node
    score: float
    shares: tuple[Share, ...]


def _ranked(
    snapshot: PastSnapshot, signals: Mapping[str, Mapping[int, float]], plan: Plan, *, scope: Scope
) -> list[_Ranked]:
    """All that any signal found, best first."""
    from ricordo.retrieval.signals import WEIGHTS

    shares: dict[int, list[Share]] = {}
    for name, found in signals.items():
        order = sorted(found.values())
        for key, raw in found.items():
            place = 1 + len(order) - bisect_right(order, raw)
            shares.setdefault(key, []).append(Share(strategy=name, rank=place, raw=raw, share=WEIGHTS[name] * raw))
    nodes = snapshot.nodes.by_key(scope, shares)
    ranked = [
        _weighed(nodes[key], shares[key]) for key in shares if key in nodes and not _is_over(nodes[key], snapshot, plan)
    ]
    return sorted(ranked, key=lambda each: (-each.score, -each.node.key))


def _weighed(node: Node, shares: Sequence[Share]) -> _Ranked:
    score = sum(each.share for each in shares)
    if node.confidence == 1:
        return _Ranked(node, score, tuple(shares))
    lost = Share(strategy="confidence", rank=None, raw=node.confidence, share=score * (node.confidence - 1))
    return _Ranked(node, score + lost.share, (*shares, lost))


def _absence(
    snapshot: PastSnapshot, plan: Plan, ranked: Sequence[_Ranked], *, scope: Scope, within: Container[int]
) -> Absence:
    """Where the memory that `why_not` names stood among those of then, or why it is not among them."""
    asked = plan.query.why_not or ""
    node = snapshot.nodes.get(scope, asked)
    if node is None:
        return Absence(id=asked, stage="unknown", detail="there was no such memory then")
    if node.key not in within or _is_over(node, snapshot, plan):
        detail = "it was closed or had expired then, or a condition of the question leaves it out"
        return Absence(id=node.id, stage="left out", detail=detail)
    place = next((place for place, each in enumerate(ranked) if each.node.key == node.key), None)
    if place is None:
        return Absence(id=node.id, stage="not found", detail="it shares no word with the question, nor its meaning")
    return Absence(
        id=node.id,
        stage="found" if place < plan.query.limit else "ranked below",
        rank=place + 1,
        detail=f"{place + 1} of {len(ranked)} candidates",
        shares=ranked[place].shares,
    )


def _is_over(node: Node, snapshot: PastSnapshot, plan: Plan) -> bool:
    """Whether it had expired then."""
    return node.expires_at is not None and to_ms(node.expires_at) <= snapshot.at and not plan.query.archived
