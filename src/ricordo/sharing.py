"""Create shared spaces, and change their members. The storage checks what members may do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ricordo.encoding.validation import TextRules, short_name
from ricordo.errors import ConflictError, InvalidError, NotFoundError
from ricordo.model import Change, Member, MemberRole, Scope, Space
from ricordo.storage import Snapshot

ROLES: tuple[MemberRole, ...] = ("reader", "writer", "keeper")


def checked_name(given: str, *, name: str, rules: TextRules) -> str:
    """Validate the name of a space or member. Raises InvalidError if it is blank, too long or holds a credential."""
    if not isinstance(given, str) or short_name(given, name=name, rules=rules) != given:
        raise InvalidError(
            f"{name}: {given!r:.80} cannot be used as a name", hint="use text without a credential or blanks around it"
        )
    return given


def spaces_of(snapshot: Snapshot, scope: Scope) -> Sequence[Space]:
    """Return the shared spaces that a caller reads, by name."""
    joined = snapshot.members.joined(scope.owner).items()
    return [
        _space(snapshot, name, role) for name, role in sorted(joined) if scope.spaces is None or name in scope.spaces
    ]


def _space(snapshot: Snapshot, name: str, role: MemberRole) -> Space:
    present = tuple(each for each in snapshot.members.of(name) if each.role != "none")
    return Space(name=name, role=role, members=present)


def created(
    snapshot: Snapshot, name: str, scope: Scope, *, writers: Sequence[str], at: datetime, is_opener: bool
) -> tuple[Change, Space]:
    """Return the change that creates a space with the caller as its keeper, and with other members as writers.

    Raises:
        InvalidError: the caller has no owner.
        ConflictError: a space has the name, or a chat does: only the store's opener can turn it into a space, and must
            name those who use it, since the others are shut out.
    """
    if not scope.owner:
        raise InvalidError("only an owner can be a member of a space", hint="open the memory with Scope(owner=...)")
    is_chat = snapshot.space("", name) is not None
    if snapshot.members.of(name) or (is_chat and not is_opener):
        hint = "choose another name; a keeper of a space takes members in with `set_member`"
        raise ConflictError(f"name: {name!r} is taken", hint=hint)
    if is_chat and not writers:
        raise ConflictError(
            f"name: {name!r} is a chat that is in use: as a space, only its members could read it",
            hint="name everybody who uses it as a member, or just yourself; or choose another name",
        )
    keeper = Member(space=name, owner=scope.owner, role="keeper", changed_at=at)
    others = [Member(space=name, owner=each, role="writer", changed_at=at) for each in dict.fromkeys(writers)]
    members = (keeper, *(each for each in others if each.owner != scope.owner))
    return Change(members=members), Space(name=name, role="keeper", members=members)


def with_member(
    snapshot: Snapshot, space: str, owner: str, role: MemberRole, scope: Scope, *, at: datetime
) -> tuple[Change, Space | None]:
    """Return the change that gives an owner a role in a space, and the resulting space as the caller sees it.

    Raises:
        NotFoundError: the caller is not a member, or the role is "none" and the owner is not a member.
    """
    known = {each.owner: each for each in snapshot.members.of(space) if each.role != "none"}
    if scope.owner not in known:
        raise NotFoundError(f"you are not a member of a space {space!r}", hint="list yours with `spaces`")
    if role == "none" and owner not in known:
        raise NotFoundError(f"{owner!r} is not a member of the space {space!r}")
    changed = Member(space=space, owner=owner, role=role, changed_at=at)
    after = {**known, owner: changed}
    if role == "none":
        del after[owner]
    mine = after.get(scope.owner)
    members = tuple(after[each] for each in sorted(after))
    change = Change() if owner in known and known[owner].role == role else Change(members=(changed,))
    return change, None if mine is None else Space(name=space, role=mine.role, members=members)
