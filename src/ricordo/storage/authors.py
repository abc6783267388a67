"""Who wrote what. An approved change is made in a commit of the approver; its author is the caller that proposed it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ricordo.model import PROPOSED, PROPOSES, Commit, RowId
from ricordo.storage.protocol import Snapshot
from ricordo.storage.values import Image

_DECIDES = "resolve"
_CORRECTS = "correct"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A proposal that a commit approved.

    Attributes:
        memory: the id of the memory that it would add or change.
        by: who proposed it, in the form of `Commit.actor`.
    """

    memory: str
    by: str


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote a memory, in the form of `Commit.actor`; `is_corrector` if they corrected an older version."""

    name: str
    is_corrector: bool


def authors(snapshot: Snapshot, nodes: Sequence[int]) -> dict[int, Author]:
    """Return who wrote each of some nodes, by key: the author of its first commit or, if that approved a proposal, its
    proposer.
    """
    found = {}
    for key, commit in snapshot.history.recorded(nodes).items():
        replaced = (
            [_id_of(snapshot, each) for each in snapshot.nodes.replaced(key)] if commit.origin == _DECIDES else []
        )
        proposers = with_proposers(snapshot, commit, replaced).proposed_by if replaced else ()
        is_corrector = commit.origin == _CORRECTS or bool(proposers)  # only proposals about others replace them
        found[key] = Author(proposers[0] if proposers else commit.actor, is_corrector)
    return found


def with_proposers(snapshot: Snapshot, commit: Commit, memories: Collection[str] | None = None) -> Commit:
    """Return a commit with the callers whose proposals it approved.

    Args:
        memories: the ids of the memories whose proposals count; None for all.
    """
    approved = [each for each in approved_in(snapshot, commit) if memories is None or each.memory in memories]
    return replace(commit, proposed_by=tuple(dict.fromkeys(each.by for each in approved)))


def approved_in(snapshot: Snapshot, commit: Commit) -> list[Approved]:
    """Return the proposals that a commit approved."""
    if commit.origin != _DECIDES:
        return []
    ledger = snapshot.history.ledger()
    images = [ledger.state(row, commit.seq) or {} for row in ledger.touched(commit.seq) if row.table == "reviews"]
    approved = [each for each in images if each.get("decision") == "approve" and is_proposed(each)]
    held = {int(each["newer"]): method_in(each) for each in approved}
    first = snapshot.history.recorded([*held])
    return [
        Approved(memory=target_of(snapshot, key) if method else _id_of(snapshot, key), by=first[key].actor)
        for key, method in held.items()
        if key in first
    ]


def is_proposed(review: Image) -> bool:
    """Return whether a row of `reviews` is about a proposal."""
    return _reasons(review)[:1] == [PROPOSED]


def method_in(review: Image) -> str:
    """Return the method that a row of `reviews` proposes; "" if it is about a fact."""
    return next((each for each in _reasons(review)[1:2] if each in ("correct", "update", "forget")), "")


def proposal_of(snapshot: Snapshot, held: int) -> Mapping[str, Any]:
    """Return what the node of a proposed change says: the id of the memory and the arguments."""
    image = snapshot.history.ledger().current(RowId(table="nodes", key=(held,))) or {}
    found: Mapping[str, Any] = (_json(image, "attributes") or {}).get(PROPOSES, {})
    return found


def target_of(snapshot: Snapshot, held: int) -> str:
    """Return the id of the memory that a proposal would change."""
    return str(proposal_of(snapshot, held).get("id", ""))


def _id_of(snapshot: Snapshot, node: int) -> str:
    image = snapshot.history.ledger().current(RowId(table="nodes", key=(node,))) or {}
    return str(image.get("id", ""))


def _reasons(review: Image) -> list[str]:
    return list(_json(review, "reasons") or ())


def _json(image: Image, name: str) -> Any:
    """Return a value that is stored as JSON; None if there is none."""
    value = image.get(name)
    return json.loads(value) if isinstance(value, str) else value
