"""Rows become values, and what many questions ask of rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ricordo.clock import from_ms
from ricordo.model import Commit, Node, Scope
from tests.contract.reference.apply import visible
from tests.contract.reference.tables import Row, State


def at_of(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)


def ms_of(at: datetime) -> int:
    from ricordo.clock import to_ms

    return to_ms(at)


def whole_of(state: State, entity: int) -> Row:
    """Return the entity that an entity is one with: itself, or the one it was merged into."""
    row = state.tables["entities"][(entity,)]
    return row if row["merged_into"] is None else state.tables["entities"][(row["merged_into"],)]


def members_of(state: State, entity: int) -> list[int]:
    """Return an entity and those that were merged into it."""
    merged = [row["key"] for row in state.all("entities", lambda row: row["merged_into"] == entity)]
    return [entity, *merged]


def linked_nodes(state: State, entity: int) -> set[int]:
    """Return the memories that are about an entity or mention it."""
    tables = (state.all("subjects"), state.all("found_mentions"))
    return {row["node"] for table in tables for row in table if row["entity"] == entity}


def mention_count(state: State, entity: int) -> int:
    """Return how many live memories name an entity or one of those merged into it."""
    return sum(is_live(state, node) for member in members_of(state, entity) for node in linked_nodes(state, member))


def is_live(state: State, node: int) -> bool:
    """Return whether a memory is there and open."""
    row = state.get("nodes", node)
    return row is not None and row["closed_at"] is None


def is_known(row: Row) -> bool:
    return row["closed_at"] is None or row["merged_into"] is not None


def has_expired(row: Row, now: int) -> bool:
    return row["expires_at"] is not None and row["expires_at"] <= now


def node_of(state: State, row: Row) -> Node:
    """Return a memory as the rest of the library sees it."""
    space = state.tables["spaces"][(row["space"],)]
    begun = state.get("sessions", row["session"])  # none either if its version of then was erased
    session = None if begun is None else begun["session_id"]
    about = [
        whole_of(state, each["entity"])["canonical_name"]
        for each in state.all("subjects", lambda each: each["node"] == row["key"])
    ]
    return version_of(row, owner=space["owner"], chat=space["chat"], session=session, about=tuple(dict.fromkeys(about)))


def version_of(row: Mapping[str, Any], *, owner: str, chat: str, session: str | None, about: tuple[str, ...]) -> Node:
    return Node(
        key=row["key"],
        id=row["id"],
        type=row["type"],
        category=row["category"],
        content=row["content"],
        origin=row["source_type"],
        role=row["source_role"],
        speaker=row["speaker"],
        tags=row["tags"],
        attributes=json.loads(row["attributes"]),
        event_time=from_ms(row["event_time"]),
        created_at=from_ms(row["created_at"]),
        valid_from=from_ms(row["valid_from"]),
        valid_until=at_of(row["valid_until"]),
        expires_at=at_of(row["expires_at"]),
        closed_at=at_of(row["closed_at"]),
        closed_reason=row["closed_reason"],
        confidence=row["confidence"],
        decay_rate=row["decay_rate"],
        score=row["score"],
        reinforced_at=at_of(row["reinforced_at"]),
        owner=owner,
        chat=chat,
        session=session,
        about=about,
    )


def commit_of(row: Row) -> Commit:
    """Return a commit as the rest of the library sees it."""
    return Commit(
        **{name: row[name] for name in ("seq", "actor", "origin", "reason", "run_id", "hash")}, at=from_ms(row["at"])
    )


class Group:
    def __init__(self, state: State) -> None:
        self._state = state

    def _sees(self, scope: Scope) -> Callable[[Row], bool]:
        spaces = visible(self._state, scope)
        return lambda row: row["space"] in spaces

    def _live(self, where: Callable[[Row], object] = lambda row: True) -> list[Row]:
        return self._state.all("nodes", lambda row: row["closed_at"] is None and where(row))

    def _id(self, key: int) -> str:
        return str(self._state.tables["nodes"][(key,)]["id"])
