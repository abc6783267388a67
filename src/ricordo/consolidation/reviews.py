"""Questions that wait for the user: two facts that a rule could not settle, quarantined facts, failed conversations.

Quarantined is what untrusted sources say, and what reads like an instruction. Such a fact is stored closed, with the
reason "quarantined", so that no index of live memories contains it and no query has to leave it out. It adds no
entities, and repeats and replaces nothing. A review says why it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import get_args

from ricordo.clock import from_ms, new_id
from ricordo.consolidation.evolution import superseded, supersedes
from ricordo.consolidation.resolve import Arrived, arrive
from ricordo.errors import ConflictError, DeniedError, InvalidError, NotFoundError
from ricordo.model import Change, Decision, Node, Review, ReviewKind, Run, Scope, Trust
from ricordo.rights import Holder, allows
from ricordo.storage import Snapshot
from ricordo.text.disguise import hides_text
from ricordo.text.prompt_text import orders_in, reasons, strings_of
from ricordo.trust import UNAPPROVED, is_untrusted, trust_of

_DECISIONS: tuple[Decision, ...] = get_args(Decision)
_OF_ONE: tuple[Decision, ...] = ("approve", "refuse")

UNCONFIRMED = "unconfirmed source"
"""The reason to quarantine everything that a tool or a page says."""

SESSION = "session:"
"""The beginning of the id of a review about a conversation; the session's name follows."""

MAX_TRIES = 3
"""A conversation that failed this often waits until the user names it or approves another try."""

AddSubjects = Callable[[Snapshot, Node], Change]
"""Returns the change that adds a fact's entities and subjects."""


def checked_decision(given: str) -> Decision:
    """Return a decision, whether its words are joined by spaces, hyphens or underscores.

    Raises:
        InvalidError: it is unknown.
    """
    plain = " ".join(given.replace("_", " ").replace("-", " ").lower().split()) if isinstance(given, str) else ""
    for each in _DECISIONS:
        if plain == each:
            return each
    raise InvalidError(f"decision: {given!r} is unknown", hint=f"choose one of {', '.join(_DECISIONS)}")


def check_kind(kind: str | None) -> None:
    """Raise InvalidError if this is not a kind of review."""
    if kind is not None and kind not in get_args(ReviewKind):
        raise InvalidError(f"kind: {kind!r} is unknown", hint=f"choose one of {', '.join(get_args(ReviewKind))}")


def find_review(snapshot: Snapshot, scope: Scope, review_id: str) -> Review:
    """Return a review by its id.

    Raises:
        NotFoundError: this caller sees none of that id.
    """
    review = snapshot.reviews.get(scope, review_id)
    if review is None:
        raise NotFoundError(f"there is no review {review_id}", hint="`review` lists them")
    return review


def find_run(snapshot: Snapshot, scope: Scope, run_id: str) -> Run:
    """Return a run by its id, with the texts of its items.

    Raises:
        NotFoundError: this caller sees none of that id.
    """
    run = snapshot.runs.get(scope, run_id)
    if run is None:
        raise NotFoundError(f"there is no run {run_id}", hint="`runs` lists them")
    return run


# two facts


def resolve(review: Review, decision: Decision, *, at: datetime) -> tuple[Change, Review]:
    """Carry out a decision about two facts.

    "replace" closes the older fact, "keep old" the newer one, "keep both" neither. A fact that a rule had closed is
    reopened.

    Raises:
        ConflictError: it is decided already, or one of the facts was closed since.
        InvalidError: the decision is one about a quarantined fact.
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
    put = () if older.is_live else (replace(older, closed_at=None, closed_reason=None, valid_until=None),)
    if decision == "keep old":
        put = (*put, replace(newer, closed_at=at, closed_reason="retracted"))
    unlink = (supersedes(newer, older),) if was_replaced else ()
    return replace(change, put=put, unlink=unlink), decided


# quarantine


def reasons_to_hold(node: Node, *, holds_untrusted: bool) -> tuple[str, ...]:
    """Return why a fact has to be quarantined; () if it need not be. The user's visible text is never quarantined.

    Args:
        holds_untrusted: whether everything that tools and pages say waits, or only what reads like an instruction.
    """
    tier = trust_of(node.origin, node.role)
    if tier == "user":
        return ("hidden text",) if hides_text(node.content) else ()
    found = orders_in(node, is_foreign=is_untrusted(tier))
    return (UNCONFIRMED, *found) if holds_untrusted and tier in UNAPPROVED else found


def check_words(*given: object, tier: Trust) -> None:
    """Check words that are to replace others: they are never quarantined, but accepted or refused.

    Args:
        given: texts, and values that hold texts.

    Raises:
        DeniedError: they come from a tool or a page, or read like an instruction and are not the user's.
    """
    if tier in UNAPPROVED:
        raise DeniedError(f"what comes from a {tier} corrects nothing", hint="`remember` keeps it until it is approved")
    for text in strings_of(given) if tier != "user" else ():
        if found := reasons(text, is_foreign=is_untrusted(tier)):
            raise DeniedError(
                f"it reads like an order to an assistant ({', '.join(found)})", hint="the user may say so"
            )


def quarantined(node: Node, *, at: datetime) -> Node:
    """Return a fact as it is stored in quarantine."""
    return replace(node, closed_at=at, closed_reason="quarantined")


def with_quarantine_reviews(
    snapshot: Snapshot,
    arrived: Arrived,
    given: Collection[Node],
    held_for: Mapping[str, tuple[str, ...]],
    *,
    claimed: Collection[str],
    now: int,
) -> Arrived:
    """Add a review for each quarantined fact. The same words are quarantined once, and refused once.

    Args:
        given: the facts as they came, with the names of their subjects.
        held_for: why each is quarantined, by id.
        claimed: ids that the caller gave: such a fact keeps its id even if the same words are quarantined already.
    """
    change, kept = arrived.change, dict(arrived.kept)
    about = {node.id: node.about for node in given}
    reviews: list[Review] = []
    fresh: dict[tuple[str, str, str, str], Node] = {}
    for node in change.add:
        if node.id not in held_for:
            continue
        words = (node.owner, node.chat, node.type, node.content)
        known = fresh.get(words) or snapshot.reviews.of_quarantined(node)
        if known is not None and node.id not in claimed:
            change = replace(change, add=tuple(each for each in change.add if each.id != node.id))
            kept[node.id] = known
            continue
        fresh[words] = node
        reviews.append(
            Review(
                id=new_id(now),
                kind="quarantine",
                newer=node,
                older=None,
                created_at=from_ms(now),
                owner=node.owner,
                chat=node.chat,
                reasons=held_for[node.id],
                about=about[node.id],
            )
        )
    return Arrived(change=replace(change, reviews=(*change.reviews, *reviews)), kept=kept)


def decide(
    snapshot: Snapshot, review: Review, decision: Decision, *, caller: Trust, now: int, learn: AddSubjects
) -> tuple[Change, Review]:
    """Approve a quarantined fact, as if it arrived now with its own trust, or refuse it for good.

    Raises:
        InvalidError: the decision is one about two facts.
        ConflictError: it is decided already, or the fact is not in quarantine any more.
        DeniedError: the caller does not speak for the user.
    """
    if decision not in _OF_ONE:
        raise InvalidError(f"decision: {decision!r} is for two facts", hint="approve it, or refuse it")
    if not allows("resolve.quarantine", Holder(caller)):
        raise DeniedError("only the user decides what leaves quarantine", hint="ask them; `review` shows what waits")
    if review.decision is not None:
        raise ConflictError(f"{review.id} is decided already: {review.decision}", hint="`undo` takes a decision back")
    if review.newer.closed_reason != "quarantined":
        raise ConflictError(f"{review.newer.id} is not held any more", hint="there is nothing left to decide")
    decided = replace(review, decided_at=from_ms(now), decision=decision)
    if decision == "refuse":
        return Change(reviews=(decided,)), decided
    node = replace(review.newer, closed_at=None, closed_reason=None, about=review.about)
    change = _release(snapshot, node, learn(snapshot, node), now=now)
    return replace(change, reviews=(*change.reviews, decided)), replace(decided, newer=node)


def _release(snapshot: Snapshot, node: Node, learnt: Change, *, now: int) -> Change:
    """Return the change that makes a quarantined node one of the live facts."""
    scope = Scope(owner=node.owner, chat=node.chat or None)
    change = arrive(snapshot, replace(learnt, add=(node,)), scope=scope, now=now, claimed=()).change
    if change.add:
        return replace(change, add=(), put=(*change.put, *change.add))
    merged = replace(node, closed_at=from_ms(now), closed_reason="merged")  # it was learnt otherwise in the meantime
    return replace(change, put=(*change.put, merged))


# failed conversations


def failed_conversations(snapshot: Snapshot, scope: Scope) -> list[Review]:
    """Return conversations that could not be consolidated, each with its first waiting message and the reason."""
    found = []
    for each in snapshot.runs.failures(scope):
        waiting = snapshot.runs.waiting_episodes(scope, (each.owner, each.chat), each.session)
        if each.tries >= MAX_TRIES and waiting:
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
    """Let a failed conversation be consolidated with the next that wait ("approve"), or leave it ("refuse").

    Raises:
        NotFoundError: there is no such review.
        InvalidError: the decision is one about two facts.
    """
    if decision not in _OF_ONE:
        raise InvalidError(f"decision: {decision!r} is for two facts", hint="approve to try it again, or refuse")
    review = next((each for each in failed_conversations(snapshot, scope) if each.id == review_id), None)
    if review is None:
        raise NotFoundError(f"there is no review {review_id}", hint="`review` lists them")
    if decision == "approve":
        snapshot.runs.forget_failures((review.owner, review.chat), review_id.removeprefix(SESSION) or None)
    return Change(), review
