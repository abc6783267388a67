"""Permissions in shared spaces. Each change is checked inside its transaction, in every backend."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ricordo.errors import ConflictError, DeniedError, NotFoundError
from ricordo.model import Change, Member, RowState, Scope
from ricordo.rights import SpaceAction, role_allows

if TYPE_CHECKING:
    from ricordo.storage.protocol import Snapshot

Touch = tuple[str, SpaceAction]
"""The name of a space, and what a change does in it."""


def check_change(snapshot: Snapshot, change: Change, scope: Scope) -> None:
    """Check that a caller may make a change in the shared spaces that the change affects.

    Raises:
        NotFoundError: the caller is not a member.
        DeniedError: the caller has no role that allows the change, or writes to another space.
        ConflictError: the space would have no keeper left.
    """
    if scope.is_chat_itself:
        return  # background work, which writes only to the space that it read
    members: dict[str, dict[str, Member]] = {}
    touched = dict.fromkeys(_touched(snapshot, change, scope))
    for space, action in touched:
        if space not in members:
            members[space] = {each.owner: each for each in snapshot.members.of(space)}
        if members[space]:
            _check(members[space].get(scope.who), space, action, scope)
    for space in {name for name, action in touched if action in ("invite", "leave")}:
        _check_keepers(snapshot, change, space)


def no_member(space: str, *, asked: str = "") -> NotFoundError:
    """Return the error for a caller without a role in a space, the same whether it exists or not.

    Args:
        asked: what to say before the hint.
    """
    return NotFoundError(f"you are not a member of a space {space!r}", hint=f"{asked}list yours with `spaces`")


def _check(member: Member | None, space: str, action: SpaceAction, scope: Scope) -> None:
    if member is None or member.role == "none":
        raise no_member(space)
    if not role_allows(member.role, action):
        raise DeniedError(
            f"a {member.role} of the space {space!r} may not {_IN_WORDS[action]}", hint="ask one of its keepers"
        )
    if scope.chat != space:
        raise DeniedError(
            f"this concerns the space {space!r}, which you only read here",
            hint=f"name it as the one you write to: Scope(chat={space!r}) in Python, --chat in a command, or a token "
            f"made with `ricordo token add NAME --owner {shlex.quote(scope.who)} --chat {shlex.quote(space)}`",
        )


_IN_WORDS: dict[SpaceAction, str] = {
    "read": "read it",
    "propose": "propose anything in it",
    "write": "change anything in it",
    "approve": "decide what waits in it for approval",
    "erase": "erase anything in it",
    "invite": "change its members",
    "leave": "leave it",
}


def _check_keepers(snapshot: Snapshot, change: Change, space: str) -> None:
    after = {each.owner: each.role for each in snapshot.members.of(space)}
    after |= {each.owner: each.role for each in change.members if each.space == space}
    for row in change.rows:
        if row.row.table == "members" and snapshot.members.place(int(row.row.key[0])) == space:
            after[str(row.row.key[1])] = "none" if row.values is None else row.values["role"]
    if "keeper" not in after.values():
        raise ConflictError(
            f"the space {space!r} would be left without a keeper", hint="make another member a keeper first"
        )


def _touched(snapshot: Snapshot, change: Change, scope: Scope) -> Iterator[Touch]:
    """Yield what a change does in chats, shared or not."""
    chats = [each.chat for each in (*change.add, *change.put)]
    chats += [each.chat for each in (*change.entities, *change.put_entities)]
    chats += [each.chat for each in (*change.relations, *change.put_relations)]
    chats += [*(each.chat for each in change.sessions), *(each.chat for each in change.runs)]
    chats += [each.chat for each in change.reviews]
    is_proposal = scope.propose and change.is_waiting
    yield from ((chat, "propose" if is_proposal else "write") for chat in dict.fromkeys(chats) if chat)
    for review in change.reviews:
        if review.chat and review.kind == "quarantine" and review.decision is not None:
            yield review.chat, "approve"
    for member in change.members:
        yield member.space, "leave" if member.owner == scope.who and member.role == "none" else "invite"
    added = {each.id for each in change.add}
    for node_id in dict.fromkeys(each for each in _named(change) if each not in added):
        node = snapshot.nodes.get(scope, node_id)
        if node is not None and node.chat:
            yield node.chat, "write"
    for row in change.rows:
        yield from _restored(snapshot, row, scope)


def _named(change: Change) -> Iterator[str]:
    """Yield the ids of memories that a change alters by id only."""
    yield from (each.id for each in change.close)
    yield from (*change.consolidated, *change.withhold)
    yield from (each.source for each in (*change.link, *change.unlink))
    yield from (pair[0] for pair in (*change.subjects, *change.moved_subjects))


def _restored(snapshot: Snapshot, state: RowState, scope: Scope) -> Iterator[Touch]:
    """Yield what restoring or removing a row does."""
    table, key = state.row.table, state.row.key
    ledger = snapshot.history.ledger()
    image = ledger.current(state.row) or state.values or {}
    if "space" in image:
        space = snapshot.members.place(image["space"])
    else:
        node = snapshot.nodes.by_key(scope, [int(key[0])]).get(int(key[0]))
        space = "" if node is None else node.chat
    if space:
        is_held = table == "reviews" and image.get("kind") == "quarantine"
        yield space, "invite" if table == "members" else "approve" if is_held else "write"
