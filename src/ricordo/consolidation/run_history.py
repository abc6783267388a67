"""Runs that were: what asks no model, and needs nothing of what it takes to ask one."""

from __future__ import annotations

from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import Change, Decision, Review, Run, Scope
from ricordo.storage import Snapshot


def found(snapshot: Snapshot, scope: Scope, run_id: str) -> Run:
    """A run by its id, with the texts of what it did.

    Raises:
        NotFoundError: there is none this caller may see.
    """
    run = snapshot.runs.get(scope, run_id)
    if run is None:
        raise NotFoundError(f"there is no run {run_id}", hint="`runs` lists them; what was undone is not kept")
    return run


SESSION = "session:"
"""What the id of a review of a conversation begins with; its name follows."""

MOST_TRIES = 3
"""A conversation that failed so often waits until somebody names it, or says that it shall be tried again."""


def stuck(snapshot: Snapshot, scope: Scope) -> list[Review]:
    """Conversations that could not be consolidated, each with its first message that waits, and why."""
    found = []
    for each in snapshot.runs.failures(scope):
        waiting = snapshot.runs.waiting_episodes(scope, (each.owner, each.chat), each.session)
        if each.tries >= MOST_TRIES and waiting:
            found.append(
                Review(
                    id=f"{SESSION}{each.session or ''}",
                    kind="session",
                    newer=waiting[0],
                    older=None,
                    created_at=each.at,
                    owner=each.owner,
                    chat=each.chat,
                    reasons=(each.reason,),
                )
            )
    return found


def try_again(snapshot: Snapshot, scope: Scope, review_id: str, decision: Decision) -> tuple[Change, Review]:
    """Let a conversation be consolidated with the next that wait ("approve"), or leave it ("refuse").

    Raises:
        NotFoundError: it does not wait for anybody's word.
        InvalidError: the decision is one about two facts.
    """
    if decision not in ("approve", "refuse"):
        raise InvalidError(f"decision: {decision!r} is for two facts", hint="approve to try it again, or refuse")
    review = next((each for each in stuck(snapshot, scope) if each.id == review_id), None)
    if review is None:
        raise NotFoundError(f"there is no review {review_id}", hint="`review` lists them")
    if decision == "approve":
        snapshot.runs.forget_failures((review.owner, review.chat), review_id.removeprefix(SESSION) or None)
    return Change(), review
