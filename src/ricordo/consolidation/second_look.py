"""A second look at new facts, as soon as their meaning is known: which older ones may they make out of date?

`remember` compares words only, so that it need not wait for an embedder. When the vectors of a fact are stored, it is
compared again with the facts that share a telling word with it, this time by meaning as well. What is found is listed
for review, and the newer fact ranks first; nothing is closed behind the caller's back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ricordo.clock import from_ms
from ricordo.consolidation.resolve import LATEST, is_rival, review_of_two
from ricordo.model import Change, Node, Reason, Review, ReviewKind, Scope
from ricordo.storage import Snapshot, Store
from ricordo.storage.values import Filter, Unembedded
from ricordo.text.change import NEAR, Judged, judge, topics

_LATEST_IN_MEANING = 300  # of so many facts, the latest of an owner, the nearest are looked at
_NEAREST = 6


async def look_again(store: Store, facts: Sequence[Unembedded], *, model: int, now: int) -> None:
    """List for review which older facts these may make out of date.

    Args:
        facts: knowledge whose vectors of a model were just stored.
        model: the key of the model.
        now: Unix milliseconds.
    """
    for (owner, chat), group in groupby(sorted(facts, key=_place), key=_place):
        scope, keys = Scope(owner=owner, chat=chat or None), [fact.key for fact in group]

        def decide(tx: Snapshot, scope: Scope = scope, keys: Sequence[int] = keys) -> tuple[Change, None]:
            found = tx.nodes.by_key(scope, keys)
            latest = tx.nodes.latest(scope, Filter(shelves=("k",)), now=now, limit=_LATEST_IN_MEANING)
            meanings = _Meanings(tx, model)
            meanings.read([*found, *(node.key for node in latest)])
            reviews = (_review(tx, scope, found[key], meanings, now=now) for key in sorted(found))
            return Change(reviews=tuple(filter(None, reviews))), None

        if (await store.read(decide))[0].reviews:
            reason = Reason(actor=owner or chat, origin="compare", reason="compared by meaning")
            await store.write(decide, scope=scope, reason=reason, at=from_ms(now))


def _place(fact: Unembedded) -> tuple[str, str]:
    return fact.owner, fact.chat


class _Meanings:
    """The vectors of some facts by key, read as they are needed."""

    def __init__(self, snapshot: Snapshot, model: int) -> None:
        self._snapshot = snapshot
        self._model = model
        self._vectors: dict[int, NDArray[np.float32]] = {}

    def read(self, keys: Iterable[int]) -> None:
        missing = set(keys) - self._vectors.keys()
        if missing:
            self._vectors.update(self._snapshot.vectors.of(self._model, sorted(missing)))

    def cosine(self, one: int, other: int) -> float | None:
        """Return the cosine of two facts; None if one has no vector."""
        first, second = self._vectors.get(one), self._vectors.get(other)
        return None if first is None or second is None else float(np.dot(first, second))

    def nearest(self, key: int) -> list[int]:
        """Return the older of the facts read so far that are nearest in meaning."""
        older = [other for other in self._vectors if other < key]
        if key not in self._vectors or not older:
            return []
        cosines = np.stack([self._vectors[other] for other in older]) @ self._vectors[key]
        best = np.argsort(-cosines)[:_NEAREST]
        return [older[place] for place in best if cosines[place] >= NEAR]


def _review(snapshot: Snapshot, scope: Scope, node: Node, meanings: _Meanings, *, now: int) -> Review | None:
    """Return the review of a fact and the one it most likely makes out of date; None if there is none."""
    if not node.is_live:
        return None
    sharing = snapshot.nodes.facts_with(node.owner, node.chat, topics(node.content).stems, most=LATEST)
    keys = {key for key in (*sharing, *meanings.nearest(node.key)) if key < node.key}
    found = snapshot.nodes.by_key(scope, keys - snapshot.reviews.compared(node.key))
    meanings.read(found)
    likely: dict[int, Judged] = {}
    for key, old in found.items():
        cosine = meanings.cosine(node.key, key)
        judged = judge(old.content, node.content, cosine=cosine, speakers=(old.speaker, node.speaker))
        if judged and is_rival(old, node, now=from_ms(now)):
            likely[key] = judged
    if not likely:
        return None
    likeliest = max(likely, key=lambda key: (likely[key].likelihood, key))
    kind: ReviewKind = "several" if likely[likeliest].verdict == "several" else "conflict"
    return review_of_two(kind, node, found[likeliest], now=now)
