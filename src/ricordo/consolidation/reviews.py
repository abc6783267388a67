"""Questions a rule could not settle, or settled by itself: what becomes of two facts is for people to decide."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import get_args

from ricordo.consolidation.evolution import superseded, supersedes
from ricordo.errors import ConflictError, InvalidError, NotFoundError
from ricordo.model import Change, Decision, Node, Review, ReviewKind, Scope
from ricordo.storage import Snapshot

_DECISIONS: tuple[Decision, ...] = get_args(Decision)
_OF_ONE: tuple[Decision, ...] = ("approve", "refuse")


def checked_decision(given: str) -> Decision:
    """A decision, however its words are joined.

    Raises:
        InvalidError: it is none.
    """
    plain = " ".join(given.replace("_", " ").replace("-", " ").lower().split()) if isinstance(given, str) else ""
    for each in _DECISIONS:
        if plain == each:
            return each
    raise InvalidError(f"decision: {given!r} is unknown", hint=f"choose one of {', '.join(_DECISIONS)}")


def check_kind(kind: str | None) -> None:
    """Raises:
    InvalidError: it is no kind of review.
    """
    if kind is not None and kind not in get_args(ReviewKind):
        raise InvalidError(f"kind: {kind!r} is unknown", hint=f"choose one of {', '.join(get_args(ReviewKind))}")


def found(snapshot: Snapshot, scope: Scope, review_id: str) -> Review:
    """Raises:
    NotFoundError: there is none of that id this caller may see.
    """
    review = snapshot.reviews.get(scope, review_id)
    if review is None:
        raise NotFoundError(f"there is no review {review_id}", hint="`review` lists them")
    return review


def resolve(review: Review, decision: Decision, *, at: datetime) -> tuple[Change, Review]:
    """Do what was decided. Pure.

    "replace" closes the older fact, "keep old" the newer one, "keep both" neither; what a rule had closed comes back.

    Raises:
        ConflictError: it is decided already, or one of the facts has gone since.
        InvalidError: the decision is one about a fact that is held back.
    """
    if review.decision is not None:
        raise ConflictError(f"{review.id} is decided already: {review.decision}", hint="`review` lists what is open")
    newer, older = review.newer, review.older
    if older is None or decision in _OF_ONE:
        raise InvalidError(
            f"decision: {decision!r} is for what is held back", hint="choose replace, keep both or keep old"
        )
    was_replaced = review.kind == "replaced" and older.closed_reason == "superseded"
    if not newer.is_live or not (older.is_live or was_replaced):
        gone = older if newer.is_live else newer
        raise ConflictError(f"{gone.id} was {gone.closed_reason} since", hint="there is nothing left to decide")
    decided = replace(review, decided_at=at, decision=decision)
    change = Change(reviews=(decided,))
    if decision == "replace":
        if older.is_live:
            change = replace(change, put=(superseded(older, by=newer, at=at),), link=(supersedes(newer, older),))
        return change, decided
    put = () if older.is_live else (_restored(older),)
    if decision == "keep old":
        put = (*put, replace(newer, closed_at=at, closed_reason="retracted"))
    unlink = (supersedes(newer, older),) if was_replaced else ()
    return replace(change, put=put, unlink=unlink), decided


def _restored(node: Node) -> Node:
    return replace(node, closed_at=None, closed_reason=None, valid_until=None)
