"""What is held back until somebody approves it: knowledge of sources nobody vouches for, and what reads like an order.

Such a fact is stored closed, as 'quarantined', so that no index of the living ever holds it and no question needs to
leave it out. It makes nobody known, repeats and replaces nothing. A review says why it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime

from ricordo.clock import from_ms
from ricordo.consolidation.resolve import Arrived, arrive
from ricordo.errors import ConflictError, DeniedError, InvalidError
from ricordo.ids import new_id
from ricordo.model import Change, Decision, Node, Review, Scope, Trust
from ricordo.storage import Snapshot
from ricordo.text.injection import hides_text, reasons
from ricordo.trust import awaits_a_word, is_untrusted, may_decide, trust_of

UNCONFIRMED = "unconfirmed source"
"""The reason to hold what a tool or a page says, however ordinary."""

Learn = Callable[[Snapshot, Node], Change]
"""Makes known whom a fact is about: the entities and subjects to add."""


def reasons_to_hold(node: Node, *, holds_untrusted: bool) -> tuple[str, ...]:
    """Why a fact is not taken in at once; () where it is. Pure.

    What a user says in plain sight is never held, however it is put.

    Args:
        holds_untrusted: whether all that tools and pages say waits, or only what reads like an order.
    """
    tier = trust_of(node.origin, node.role)
    if tier == "user":
        return ("hidden text",) if hides_text(node.content) else ()
    found = reasons("\n".join((node.content, *node.tags, *node.about)), is_foreign=is_untrusted(tier))
    return (UNCONFIRMED, *found) if holds_untrusted and awaits_a_word(tier) else found


def check_words(content: str, *, tier: Trust) -> None:
    """Words that take the place of others are not held: either they may, or they are refused.

    Raises:
        DeniedError: they come from a tool or a page, or read like an order and are not the user's.
    """
    if awaits_a_word(tier):
        raise DeniedError(f"what comes from a {tier} corrects nothing", hint="`remember` keeps it until it is approved")
    if tier != "user" and (found := reasons(content, is_foreign=is_untrusted(tier))):
        raise DeniedError(
            f"content reads like an order to an assistant ({', '.join(found)})", hint="the user may say so"
        )


def held(node: Node, *, at: datetime) -> Node:
    """A fact as it is held. Pure."""
    return replace(node, closed_at=at, closed_reason="quarantined")


def listed(
    snapshot: Snapshot,
    arrived: Arrived,
    given: Collection[Node],
    held_for: Mapping[str, tuple[str, ...]],
    *,
    claimed: Collection[str],
    now: int,
) -> Arrived:
    """What arrived, with a review for each fact that is held. The same words are held once, and refused once.

    Args:
        given: the facts as they came, with the names they are about.
        held_for: why, by id.
        claimed: ids the caller gave: such a fact is kept under its id even where the same words are held already.
    """
    change, kept = arrived.change, dict(arrived.kept)
    about = {node.id: node.about for node in given}
    reviews: list[Review] = []
    fresh: dict[tuple[str, str, str, str], Node] = {}
    for node in change.add:
        if node.id not in held_for:
            continue
        words = (node.owner, node.chat, node.type, node.content)
        known = fresh.get(words) or _held_before(snapshot, node)
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


def _held_before(snapshot: Snapshot, node: Node) -> Node | None:
    """The node that holds the same words: one that waits, was refused, or was approved and lives."""
    space = snapshot.space(node.owner, node.chat)
    if space is None:
        return None
    rows = snapshot.rows("review_of_held", {"space": space, "content": node.content, "type": node.type})
    return snapshot.nodes.get(Scope(owner=node.owner, chat=node.chat or None), rows[0][1]) if rows else None


def decide(
    snapshot: Snapshot, review: Review, decision: Decision, *, caller: Trust, now: int, learn: Learn
) -> tuple[Change, Review]:
    """Let a held fact in, as if it arrived now with the trust it has, or leave it out for good.

    Raises:
        InvalidError: the decision is one about two facts.
        ConflictError: it is decided already, or the fact has gone since.
        DeniedError: the caller does not speak for the user.
    """
    if decision not in ("approve", "refuse"):
        raise InvalidError(f"decision: {decision!r} is for two facts", hint="approve it, or refuse it")
    if not may_decide(caller):
        raise DeniedError("only the user decides what leaves quarantine", hint="ask them; `review` shows what waits")
    if review.decision is not None:
        raise ConflictError(f"{review.id} is decided already: {review.decision}", hint="`undo` takes a decision back")
    if review.newer.closed_reason != "quarantined":
        raise ConflictError(f"{review.newer.id} is not held any more", hint="there is nothing left to decide")
    decided = replace(review, decided_at=from_ms(now), decision=decision)
    if decision == "refuse":
        return Change(reviews=(decided,)), decided
    node = replace(review.newer, closed_at=None, closed_reason=None, about=review.about)
    change = _let_in(snapshot, node, learn(snapshot, node), now=now)
    return replace(change, reviews=(*change.reviews, decided)), replace(decided, newer=node)


def _let_in(snapshot: Snapshot, node: Node, learnt: Change, *, now: int) -> Change:
    """The change by which a stored node takes its place among the facts that are there."""
    scope = Scope(owner=node.owner, chat=node.chat or None)
    change = arrive(snapshot, replace(learnt, add=(node,)), scope=scope, now=now, claimed=()).change
    if change.add:
        return replace(change, add=(), put=(*change.put, *change.add))
    merged = replace(node, closed_at=from_ms(now), closed_reason="merged")  # it was known by the time it was approved
    return replace(change, put=(*change.put, merged))
