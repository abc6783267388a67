"""Questions for the user: pairs of facts that no rule could decide, quarantined facts, failed conversations.

Proposed merges are made in `encoding.duplicates`.

Quarantined are facts from untrusted sources, facts that look like instructions, and proposals of callers. They are
stored as closed, with the reason "quarantined", so that no index of live memories contains them and no query has to
exclude them. A quarantined fact adds no entities, and repeats or replaces nothing. Its review states why it waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import get_args

from ricordo.clock import from_ms, new_id
from ricordo.consolidation import proposals
from ricordo.consolidation.evolution import superseded, supersedes
from ricordo.consolidation.resolve import Arrived, arrive, carried, reviews_of, saying_the_same
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
"""The reason to quarantine everything from tools and pages."""

WAITS = """\
This waits for approval and changes nothing until then. It is decided with `ricordo quarantine` at the command line, \
in the inbox of the page, or with `approve` and `refuse` over HTTP and in Python."""
"""The notice in the result of a call that stored something in quarantine."""

REFUSED = "This was refused before, so it stays out of every answer. `undo` takes the decision back."
"""The notice in the result of a call that stated what was refused before."""

_LISTED = "`review` lists the open ones, and a search names that of a doubtful fact"
_TAKEN_BACK = "to take it back, `undo` its change, which `log` lists as resolve: the review is then open again"

SESSION = "session:"
"""The prefix of the id of a review about a conversation. The session's name follows."""

MOST_HELD = 100_000
"""How many items in quarantine are read at most."""

MAX_TRIES = 3
"""After this many failures, a conversation waits until the user names it or approves another try."""

AddSubjects = Callable[[Snapshot, Sequence[Node]], Change]
"""Returns the change that adds the entities and subjects of facts."""


def checked_decision(given: str) -> Decision:
    """Return the decision that a text names. Spaces, hyphens and underscores are equivalent.

    Raises:
        InvalidError: the decision is unknown.
    """
    plain = " ".join(given.replace("_", " ").replace("-", " ").lower().split()) if isinstance(given, str) else ""
    for each in _DECISIONS:
        if plain == each:
            return each
    raise InvalidError(f"decision: {given!r} is unknown", hint=f"choose one of {', '.join(_DECISIONS)}")


def check_kind(kind: str | None) -> None:
    """Raise InvalidError if `kind` is not a kind of review."""
    if kind is not None and kind not in get_args(ReviewKind):
        raise InvalidError(f"kind: {kind!r} is unknown", hint=f"choose one of {', '.join(get_args(ReviewKind))}")


_URGENCY: tuple[tuple[ReviewKind, ...], ...] = (
    ("session",),
    ("conflict", "same"),
    ("merge",),
    ("quarantine",),
    ("several",),
    ("replaced",),
)


def urgency(review: Review) -> int:
    """Return the place of a review's kind in `review`: what concerns answers most comes first."""
    return next(place for place, kinds in enumerate(_URGENCY) if review.kind in kinds)


def find_review(snapshot: Snapshot, scope: Scope, review_id: str) -> Review:
    """Return a review by its id, or by the id of what it holds in quarantine.

    Raises:
        NotFoundError: the caller can see no review with this id.
    """
    review = snapshot.reviews.get(scope, review_id)
    held = snapshot.nodes.get(scope, review_id) if review is None else None
    if held is not None and held.closed_reason == "quarantined":
        review = next(iter(snapshot.reviews.listed(scope, most=1, kind="quarantine", node=held.key)), None)
    if review is None:
        raise NotFoundError(f"there is no review {review_id}", hint=_LISTED)
    return review


def find_run(snapshot: Snapshot, scope: Scope, run_id: str) -> Run:
    """Return a run by its id, with the texts of its items.

    Raises:
        NotFoundError: the caller can see no run with this id.
    """
    run = snapshot.runs.get(scope, run_id)
    if run is None:
        raise NotFoundError(f"there is no run {run_id}", hint="`runs` lists them")
    return run


# ---- pairs of facts


def resolve(snapshot: Snapshot, review: Review, decision: Decision, *, now: int) -> tuple[Change, Review]:
    """Carry out a decision about two facts.

    "replace" closes the older fact, "keep old" the newer one, "keep both" neither. What says the same as a closed fact
    is closed with it, or it would answer instead. A fact that a rule had closed is reopened. The returned review has
    both facts as the decision leaves them. What else the closed fact was in review with, the one that stays is in
    review with from now on.

    Raises:
        ConflictError: the review is already decided, or one of the facts was closed since.
        InvalidError: the decision applies to quarantined facts only.
    """
    if review.decision is not None:
        raise ConflictError(f"{review.id} is already decided: {review.decision}", hint=_TAKEN_BACK)
    at, newer, older = from_ms(now), review.newer, review.older
    if older is None or decision in _OF_ONE:
        raise InvalidError(
            f"decision: {decision!r} applies only to one memory in quarantine",
            hint="choose replace, keep both or keep old",
        )
    was_replaced = review.kind == "replaced" and older.closed_reason == "superseded"
    if not newer.is_live or not (older.is_live or was_replaced):
        gone = older if newer.is_live else newer
        raise ConflictError(f"{gone.id} has since been {gone.closed_reason}", hint="there is nothing left to decide")
    decided = replace(review, decided_at=at, decision=decision)
    change = Change(reviews=(decided,))
    if decision == "replace":
        if older.is_live:
            going = _with_copies(snapshot, older, newer, now=now)
            closed = tuple(superseded(each, by=newer, at=at) for each in going)
            change = replace(change, put=closed, link=tuple(supersedes(newer, each) for each in going))
            decided = _with_others(snapshot, replace(decided, older=closed[0]), going, newer, now=now)
        return replace(change, reviews=(*change.reviews, *decided.opened)), decided
    was_older = older
    if not older.is_live:
        older = replace(older, closed_at=None, closed_reason=None, valid_until=None)
    going = _with_copies(snapshot, newer, older, now=now) if decision == "keep old" else []
    closed = tuple(replace(each, closed_at=at, closed_reason="retracted") for each in going)
    newer = closed[0] if closed else newer
    put = (*closed, *((older,) if older is not was_older else ()))
    unlink = (supersedes(newer, older),) if was_replaced else ()
    decided = replace(decided, newer=newer, older=older)
    if decision == "keep old":
        decided = _with_others(snapshot, decided, going, older, now=now)
    change = replace(change, put=put, unlink=unlink, reviews=(*change.reviews, *decided.opened))
    return change, decided


def _with_copies(snapshot: Snapshot, node: Node, stays: Node, *, now: int) -> list[Node]:
    return [node, *(each for each in saying_the_same(snapshot, node, now=now) if each.id != stays.id)]


def _with_others(snapshot: Snapshot, decided: Review, going: Sequence[Node], stays: Node, *, now: int) -> Review:
    """Return a decision with the other reviews that it settles, and those that it opens instead of them."""
    settled, opened = dict[str, Review](), dict[str, Review]()
    for closed in going:
        found = {each.id: each for each in reviews_of(snapshot, closed) if each.id != decided.id}
        is_replaced = going[0].id != decided.newer.id
        for each in carried(snapshot, found.values(), closed, stays, now=now, is_replaced=is_replaced):
            opened.setdefault(each.older.id if each.older and each.newer.id == stays.id else each.newer.id, each)
        settled |= found
    return replace(decided, settled=tuple(settled.values()), opened=tuple(opened.values()))


def with_doubts(snapshot: Snapshot, change: Change, old: Node, new: Node, *, now: int) -> Change:
    """Add to a change that replaces a fact the reviews of the new one: those of the old one that are still open."""
    opened = carried(snapshot, reviews_of(snapshot, old), old, new, now=now)
    return replace(change, reviews=(*change.reviews, *opened))


def with_commit(snapshot: Snapshot, change: Change, decided: Sequence[Review]) -> tuple[Change, list[Review]]:
    """Return decisions with the number that their commit will have; without one if they change nothing."""
    commit = None if change.is_empty else snapshot.history.next_commit()
    return change, [replace(each, commit=commit) for each in decided]


# ---- quarantine


def reasons_to_hold(node: Node, *, holds_untrusted: bool) -> tuple[str, ...]:
    """Return why a fact must be quarantined; () if it need not be. The user's visible text is never quarantined.

    Args:
        holds_untrusted: whether to quarantine everything from tools and pages, or only what looks like an instruction.
    """
    tier = trust_of(node.origin, node.role)
    if tier == "user":
        return ("hidden text",) if hides_text(node.content) else ()
    found = orders_in(node, is_foreign=is_untrusted(tier))
    return (UNCONFIRMED, *found) if holds_untrusted and tier in UNAPPROVED else found


def check_words(*given: object, tier: Trust) -> None:
    """Validate text that replaces the text of a memory. Such text is never quarantined: it is accepted or refused.

    Args:
        given: texts, and values that contain texts.

    Raises:
        DeniedError: the caller is a tool or a page, or the text looks like an instruction and is not the user's.
    """
    if tier in UNAPPROVED:
        raise DeniedError(
            f"a caller with trust {tier} cannot correct memories", hint="use `remember`; a review then decides"
        )
    for text in strings_of(given) if tier != "user" else ():
        if found := reasons(text, is_foreign=is_untrusted(tier)):
            raise DeniedError(
                f"the text reads like an instruction to an assistant ({', '.join(found)})",
                hint="ask the user to store it",
            )


def quarantined(node: Node, *, at: datetime) -> Node:
    """Return a fact in the form in which it is stored in quarantine."""
    return replace(node, closed_at=at, closed_reason="quarantined")


def with_notice(node: Node, decision: Decision | None = None) -> Node:
    """Return a memory in quarantine with a notice for the caller that stated it: it waits, or was refused before."""
    if node.closed_reason != "quarantined":
        return node
    return replace(node, notice=REFUSED if decision == "refuse" else WAITS)


def with_quarantine_reviews(
    snapshot: Snapshot,
    arrived: Arrived,
    given: Collection[Node],
    held_for: Mapping[str, tuple[str, ...]],
    *,
    claimed: Collection[str],
    now: int,
) -> Arrived:
    """Add a review for each quarantined fact. The same text is quarantined only once, and refused only once.

    Args:
        given: the facts as they arrived, with the names of their subjects.
        held_for: why each fact is quarantined, by id.
        claimed: ids given by the caller. Such a fact keeps its id even if the same text is already quarantined.
    """
    change, kept = arrived.change, dict(arrived.kept)
    about = {node.id: node.about for node in given}
    reviews: list[Review] = []
    fresh: dict[tuple[str, str, str, str], Review] = {}
    for node in change.add:
        if node.id not in held_for:
            continue
        words = (node.owner, node.chat, node.type, node.content)
        known = fresh.get(words) or snapshot.reviews.of_quarantined(node)
        if known is not None and node.id not in claimed:
            change = replace(change, add=tuple(each for each in change.add if each.id != node.id))
            kept[node.id] = with_notice(known.newer, known.decision)
            continue
        fresh[words] = Review(
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
        kept[node.id] = with_notice(node)
        reviews.append(fresh[words])
    return Arrived(change=replace(change, reviews=(*change.reviews, *reviews)), kept=kept)


def decide(
    snapshot: Snapshot,
    asked: Sequence[Review],
    decision: Decision,
    *,
    caller: Trust,
    now: int,
    learn: AddSubjects,
    carry_out: proposals.CarryOut,
    content: str | None = None,
) -> tuple[Change, list[Review]]:
    """Approve quarantined items, as if they arrived now with their own trust, or refuse them; all of them, or none.

    Args:
        content: the user's words, to replace the quarantined text.

    Raises:
        InvalidError: the decision applies to pairs of facts only, or two of several proposals concern the same memory.
        ConflictError: an item is already decided or no longer quarantined, or the memory that it would change is gone.
        DeniedError: the caller does not act for the user.
    """
    if decision not in _OF_ONE:
        raise InvalidError(f"decision: {decision!r} applies only to two conflicting facts", hint="approve or refuse")
    if content is not None and decision != "approve":
        raise InvalidError("content: can be edited only with approve", hint="leave it out")
    if not allows("resolve.quarantine", Holder(caller)):
        raise DeniedError(
            "only the user can release memories from quarantine", hint="ask the user; `review` lists the open reviews"
        )
    for review in asked:
        _check_held(review)
    decided = {each.id: replace(each, decided_at=from_ms(now), decision=decision) for each in asked}
    change = Change(reviews=tuple(decided.values()))
    if decision == "refuse":
        return change, list(decided.values())
    if content is not None:
        asked = [proposals.edited(each, content) for each in asked]
    wanted = {each.id: (each, proposals.proposal_in(each)) for each in asked}
    _check_apart([proposal.id for _, proposal in wanted.values() if proposal is not None])
    opened = [
        replace(each.newer, closed_at=None, closed_reason=None, about=each.about)
        for each, proposal in wanted.values()
        if proposal is None
    ]
    becomes = {node.id: node for node in opened}
    for review, proposal in wanted.values():
        if proposal is not None:
            carried, becomes[review.newer.id] = carry_out(snapshot, proposal, review.newer)
            change = change.joined(carried)
    change = _release(snapshot, opened, learn(snapshot, opened), now=now).joined(change)
    return change, [replace(each, newer=becomes[each.newer.id]) for each in decided.values()]


def _check_held(review: Review) -> None:
    if review.decision is not None:
        raise ConflictError(f"{review.id} is already decided: {review.decision}", hint=_TAKEN_BACK)
    if review.newer.closed_reason != "quarantined":
        raise ConflictError(f"{review.newer.id} is no longer in quarantine", hint="there is nothing left to decide")


def _check_apart(targets: Sequence[str]) -> None:
    if twice := [each for each, count in Counter(targets).items() if count > 1]:
        raise InvalidError(f"items: several proposals concern {twice[0]}", hint="decide on these proposals one by one")


def _release(snapshot: Snapshot, nodes: Sequence[Node], learnt: Change, *, now: int) -> Change:
    """Return the change that makes quarantined nodes live facts."""
    change = replace(learnt, add=())
    for owner, chat in dict.fromkeys((node.owner, node.chat) for node in nodes):
        here = tuple(node for node in nodes if (node.owner, node.chat) == (owner, chat))
        ids = {node.id for node in here}
        mine = Change(add=here, subjects=tuple(each for each in learnt.subjects if each[0] in ids))
        arrived = arrive(snapshot, mine, scope=Scope.of(owner, chat), now=now, claimed=()).change
        live = {node.id for node in arrived.add}
        # facts that were meanwhile learnt from elsewhere
        merged = tuple(replace(n, closed_at=from_ms(now), closed_reason="merged") for n in here if n.id not in live)
        change = replace(change, subjects=tuple(each for each in change.subjects if each[0] not in ids))
        change = change.joined(replace(arrived, add=(), put=(*arrived.put, *arrived.add, *merged)))
    return change


# ---- failed conversations


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
    """Retry a failed conversation at the next consolidation ("approve"), or leave it ("refuse").

    Raises:
        NotFoundError: the review does not exist.
        InvalidError: the decision applies to pairs of facts only.
    """
    if decision not in _OF_ONE:
        raise InvalidError(
            f"decision: {decision!r} applies only to two conflicting facts", hint="approve to try again, or refuse"
        )
    review = next((each for each in failed_conversations(snapshot, scope) if each.id == review_id), None)
    if review is None:
        raise NotFoundError(f"there is no review {review_id}", hint=_LISTED)
    if decision == "approve":
        snapshot.runs.forget_failures((review.owner, review.chat), review_id.removeprefix(SESSION) or None)
    return Change(), review
