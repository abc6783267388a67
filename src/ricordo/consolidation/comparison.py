"""Compare recent facts with older ones by meaning, in upkeep, and list likely changes for review. No model is asked.

`remember` compares words only, because it waits for no embedder. A change in other words ("We unlock the door at nine
these days", after "The shop opens at eight") is found here. Nothing is closed or edited: the user decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from ricordo.clock import from_ms, new_id
from ricordo.consolidation.resolve import are_apart, comes_after, form_of, in_owners_person, is_rival, review_of_two
from ricordo.model import Change, Node, Reason, Scope
from ricordo.models.embedding.scale import Scale
from ricordo.storage import Snapshot, Store
from ricordo.text.change import are_of_one_text, are_of_two_people, by_meaning, succession
from ricordo.text.headed import are_of_two_notes
from ricordo.text.lifetimes import has_lifetime, lasting
from ricordo.text.occasions import are_of_two_days

Vectors = Mapping[int, NDArray[np.float32]]

_RECENT = timedelta(days=7)
_MOST_FACTS = 20_000  # the latest facts of a space that are compared
_PAGE = 500
_NEAREST = 6  # as in an answer, for which the coefficients were fitted
_LEAST_COSINE = 0.2  # below it, no change was found among the pairs for tuning
_LEAST = 0.45
"""The likelihood from which a change is listed; decision 43 has the figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Compares the facts of one space.

    Attributes:
        model: the key of the embedding model.
        scale: of its cosines.
        now: Unix milliseconds.
        zone: the user's time zone.
    """

    store: Store
    scope: Scope
    model: int
    scale: Scale
    now: int
    zone: ZoneInfo
    actor: str

    async def list_changes(self, *, dry_run: bool) -> int:
        """List likely changes for review; return how many. A dry run only counts them."""
        found = await self.store.read(self._found)
        if dry_run or not found:
            return len(found)

        def decide(snapshot: Snapshot) -> tuple[Change, int]:
            known = snapshot.nodes.by_key(self.scope, [key for pair in found for key in pair])
            pairs = [(known[new], known[old]) for new, old in found if {new, old} <= known.keys()]
            pairs = [(new, old) for new, old in pairs if new.is_live and self._may_change(old, new)]
            reviews = tuple(review_of_two("conflict", new, old, now=self.now) for new, old in pairs)
            changed = {new.id: new for new, old in pairs if old.expires_at is None}
            estimated = (new for new in changed.values() if has_lifetime(new, zone=self.zone))
            lasts = tuple(kept for new in estimated if (kept := lasting(new)) is not new)
            return Change(reviews=reviews, put=lasts), len(reviews)

        reason = Reason(actor=self.actor, origin="upkeep", reason="compared by meaning", run_id=new_id(self.now))
        return await self.store.write(decide, scope=self.scope, reason=reason, at=from_ms(self.now))

    def _found(self, snapshot: Snapshot) -> list[tuple[int, int]]:
        """Return the keys of recent facts, and of the older one that each most likely makes outdated."""
        keys = sorted(snapshot.lifecycle.knowledge(self.scope)[-_MOST_FACTS:])
        recent = self._recent(snapshot, keys)
        vectors = snapshot.vectors.of(self.model, keys) if recent else {}
        if len(vectors) < 2:
            return []
        embedded = np.array(sorted(vectors))
        matrix = np.stack([vectors[int(key)] for key in embedded])
        found = list[tuple[int, int]]()
        for new in (node for node in recent if node.key in vectors):
            before = int(np.searchsorted(embedded, new.key))
            cosines = self.scale.as_default(matrix[:before] @ vectors[new.key])
            nearest = [place for place in np.argsort(-cosines)[:_NEAREST] if cosines[place] >= _LEAST_COSINE]
            near = [int(embedded[place]) for place in nearest]
            if (old := self._likeliest(snapshot, new, near, vectors)) is not None:
                found.append((new.key, old))
        return found

    def _recent(self, snapshot: Snapshot, keys: Sequence[int]) -> list[Node]:
        """Return the recent facts that no review is about yet."""
        since = from_ms(self.now) - _RECENT
        found = list[Node]()
        for end in range(len(keys), 0, -_PAGE):
            page = snapshot.nodes.by_key(self.scope, keys[max(0, end - _PAGE) : end]).values()
            fresh = [node for node in page if node.created_at >= since]
            found += [node for node in fresh if node.type == "semantic"]
            if not fresh:
                break
        asked = {review.newer.id for review in snapshot.reviews.listed(self.scope, most=_MOST_FACTS)}
        return [node for node in found if node.id not in asked and not snapshot.reviews.decided_with(node.key)]

    def _likeliest(self, snapshot: Snapshot, new: Node, near: Sequence[int], vectors: Vectors) -> int | None:
        """Return the older fact that a new one most likely makes outdated; None if that is unlikely for all."""
        said, *nodes = in_owners_person(snapshot, new, *snapshot.nodes.by_key(self.scope, near).values())
        found = [
            (likelihood_of(old, said, nodes, vectors, self.scale), old.key)
            for old in nodes
            if self._may_change(old, said)
        ]
        likelihood, likeliest = max(found, default=(0.0, 0))
        return likeliest if likelihood >= _LEAST else None

    def _may_change(self, old: Node, new: Node) -> bool:
        is_of_space = (old.owner, old.chat) == (new.owner, new.chat)
        is_next = is_rival(old, new, now=from_ms(self.now)) and comes_after(new, old)
        return is_of_space and is_next and not are_apart(old, new) and not are_of_one_text(old, new)


def likelihood_of(old: Node, new: Node, near: Sequence[Node], vectors: Vectors, scale: Scale) -> float:
    """Return how likely a new fact makes an older one outdated, from 0 to 1. Pure.

    Args:
        near: the facts nearest to the new one, among them the older one.
    """
    if are_of_two_days(old, new) or are_of_two_notes(old, new):
        return 0.0
    before, after = vectors[old.key], vectors[new.key]
    others = [vectors[each.key] for each in near if each.key != old.key]
    context = by_meaning(
        scale.as_default(float(before @ after)),
        of_old=[scale.as_default(float(before @ each)) for each in others],
        of_new=[
            scale.as_default(float(after @ vectors[each.key]))
            for each in near
            if each.key != old.key and not are_of_two_people(each.content, new.content)
        ],
    )
    change = succession((old.content, old.speaker), (new.content, new.speaker), context)
    if change is None or change.stands_aside or change.is_beside:
        return 0.0
    old_form, new_form = form_of(old, beside=new), form_of(new, beside=old)
    are_both = old_form.may_both_hold(new_form) or old_form.verdict(new_form) == "several"
    return 0.0 if old_form.has_value_of(new_form) or (change.is_plain and are_both) else change.likelihood
