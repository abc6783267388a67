"""Proposals: changes of a memory requested by a caller without the right to make them. The user decides.

A proposed fact is quarantined like other facts under review. Any other proposal is a quarantined node of its own: its
content states the request, and its attribute `proposes` holds the method, the memory and the arguments. On approval,
the method runs in the name of the requesting caller, on the current state of the memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, get_args

from ricordo.clock import from_ms, new_id
from ricordo.errors import InvalidError, RicordoError
from ricordo.model import PROPOSED, PROPOSES, Change, FieldChange, Node, Origin, Review, Scope
from ricordo.storage import Snapshot
from ricordo.storage.authors import authors

Method = Literal["correct", "update", "forget"]

_CHANGED = "the memory has changed since"
_DIGEST_CHARS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A requested change.

    Attributes:
        arguments: arguments of the method, as JSON.
        state: a digest of the memory when the change was proposed.
    """

    method: Method
    id: str
    arguments: Mapping[str, Any]
    state: str


CarryOut = Callable[[Snapshot, Proposal, Node], tuple[Change, Node]]
"""Returns the change that a proposal, stored in the given node, would make, and the resulting memory.

Raises NotFoundError or ConflictError if the memory is gone.
"""


def proposed(
    target: Node, method: Method, arguments: Mapping[str, Any], *, text: str, origin: Origin, now: int
) -> tuple[Change, Node]:
    """Return the change that stores a proposal and its review, and the node that holds it.

    Args:
        text: the new words, or the reason; it is checked like every stored text.
        now: Unix milliseconds, UTC.
    """
    at = from_ms(now)
    value = {"method": method, "id": target.id, "arguments": dict(arguments), "state": _state(target)}
    held = Node(
        id=new_id(now),
        type="semantic",
        content=f"{method}: {text}" if text else method,
        event_time=at,
        created_at=at,
        valid_from=at,
        owner=target.owner,
        chat=target.chat,
        origin=origin,
        attributes={PROPOSES: value},
        closed_at=at,
        closed_reason="quarantined",
    )
    review = Review(
        id=new_id(now),
        kind="quarantine",
        newer=held,
        older=None,
        created_at=at,
        owner=held.owner,
        chat=held.chat,
        reasons=(PROPOSED, method),
    )
    return Change(add=(held,), reviews=(review,)), held


def proposal_in(review: Review) -> Proposal | None:
    """Return the change that a review requests; None if the review is about a fact or about two facts.

    Only the reasons of the review are trusted, because the library writes them. A fact may have any attribute.
    """
    methods: tuple[Method, ...] = get_args(Method)
    method = next((each for each in methods if review.reasons[:2] == (PROPOSED, each)), None)
    if review.kind != "quarantine" or method is None:
        return None
    given = review.newer.attributes[PROPOSES]
    return Proposal(method=method, id=given["id"], arguments=given["arguments"], state=given["state"])


def as_shown(snapshot: Snapshot, scope: Scope, review: Review, carry_out: CarryOut) -> Review:
    """Return a review with its author and, for a proposed change, with the memory before and after it, the differences,
    and current obstacles to the change.

    A proposal to forget has no memory after it: `newer` then states the reason.
    """
    if review.kind != "quarantine" or review.decision is not None:
        return review
    author = authors(snapshot, [review.newer.key]).get(review.newer.key)
    review = replace(review, by=author.name if author else "")
    proposal = proposal_in(review)
    if proposal is None:
        return review
    before = snapshot.nodes.get(scope, proposal.id)
    against: tuple[str, ...] = ()
    after = review.newer
    try:
        _, after = carry_out(snapshot, proposal, review.newer)
    except RicordoError as error:
        against = (str(error),)
    else:
        if before is not None and _state(before) != proposal.state:
            against = (_CHANGED,)
    held = review.newer
    changes = _changes(before, after) if before is not None and after is not held else ()
    if proposal.method == "forget":  # its content is the reason
        after, changes = held, (FieldChange(field="closed_reason", old="", new="forgotten"),)
    shown = replace(
        after, id=held.id, key=held.key, origin=held.origin, closed_at=held.closed_at, closed_reason=held.closed_reason
    )
    return replace(review, newer=shown, older=before, changes=changes, reasons=(*review.reasons, *against))


_CHANGEABLE = "content", "tags", "attributes", "event_time", "expires_at"
"""The fields that a proposal can change."""


def _changes(before: Node, after: Node) -> tuple[FieldChange, ...]:
    values = ((name, _plain(getattr(before, name)), _plain(getattr(after, name))) for name in _CHANGEABLE)
    return tuple(FieldChange(field=name, old=old, new=new) for name, old, new in values if old != new)


def _plain(value: object) -> str:
    """Return the value of a field as text for people."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes")
    if isinstance(value, tuple):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value else ""


def possible(snapshot: Snapshot, held: Iterable[Review], carry_out: CarryOut) -> list[Review]:
    """Return the reviews that can be approved together: one proposal per memory, and none whose memory is gone."""
    found: list[Review] = []
    concerned: set[str] = set()
    for review in held:
        proposal = proposal_in(review)
        if proposal is not None:
            if proposal.id in concerned:
                continue
            try:
                carry_out(snapshot, proposal, review.newer)
            except RicordoError:
                continue
            concerned.add(proposal.id)
        found.append(review)
    return found


def edited(review: Review, content: str) -> Review:
    """Return a review with its text replaced by the user's words.

    Raises:
        InvalidError: the proposal has no text.
    """
    held, proposal = review.newer, proposal_in(review)
    if proposal is None:
        return replace(review, newer=replace(held, content=content))
    if proposal.method == "forget":
        raise InvalidError("content: a proposal to forget a memory has no content to edit", hint="leave it out")
    value = {**held.attributes[PROPOSES], "arguments": {**proposal.arguments, "content": content}}
    return replace(review, newer=replace(held, attributes={**held.attributes, PROPOSES: value}))


def instant_in(proposal: Proposal, name: str) -> datetime | None:
    """Return an argument that is a time."""
    given = proposal.arguments.get(name)
    return None if given is None else datetime.fromisoformat(given)


def _state(node: Node) -> str:
    """Return a digest of the properties that proposals can change."""
    until = None if node.expires_at is None else node.expires_at.isoformat()
    parts = [node.content, list(node.tags), dict(node.attributes), until]
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:_DIGEST_CHARS]
