"""Create shared spaces, change their members, and share single facts. The storage checks what members may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches

from ricordo.encoding.validation import TextRules, short_name
from ricordo.errors import ConflictError, DeniedError, InvalidError, NotFoundError
from ricordo.model import BY_AGENT, Change, Closing, Fact, Member, MemberRole, Node, Scope, Space
from ricordo.storage import Snapshot
from ricordo.storage.authors import authors
from ricordo.storage.membership import check_change, no_member
from ricordo.text.analyzer import raw_words
from ricordo.text.names import same_name_key
from ricordo.text.reported import reporter

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
        alike = get_close_matches(space, [each.name for each in spaces_of(snapshot, scope)])
        asked = f"did you mean {' or '.join(alike)}? " if alike else ""
        raise no_member(space, asked=asked)
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


def writer_of(snapshot: Snapshot, node: Node) -> str | None:
    """Return who wrote a memory of a chat: its speaker, or who wrote in their name, or else the owner who recorded it;
    None in an owner's memory.
    """
    if not node.chat:
        return None
    if node.speaker:
        return reporter(node.speaker) or node.speaker
    author = authors(snapshot, [node.key]).get(node.key)
    return author.name.removesuffix(BY_AGENT) or None if author else None


def shared_copy(node: Node, *, text: str) -> Fact:
    """Return a private fact as others may read it: its text, kind and times, and those subjects that its text names.
    Nothing that tells of its source goes along: no message, session, tag, attribute, earlier version or other name.

    Args:
        text: its content without credentials.

    Raises:
        InvalidError: it is a message, or it holds a credential.
    """
    if node.type == "episodic":
        raise InvalidError(
            "shared: a message stays in its conversation", hint="`remember` what it says, with shared=True"
        )
    if text != node.content:
        raise InvalidError(
            "shared: it holds a credential, which is not shared", hint="`remember` the rest, with shared=True"
        )
    said = _words(node.content)
    fact = _moved(node, about=tuple(name for name in node.about if _words(name) in said))
    return replace(fact, shared=True)


def private_copy(snapshot: Snapshot, node: Node, scope: Scope, *, at: datetime) -> Fact:
    """Return a shared fact as one of its writer's own memory.

    Raises:
        InvalidError: it is a message.
        DeniedError: somebody else wrote it, or the caller may not change it where it is.
    """
    if node.type == "episodic":
        raise InvalidError("shared: a message stays in its conversation", hint="`forget` or `erase` it")
    check_change(snapshot, Change(close=(Closing(id=node.id, at=at, reason="forgotten"),)), scope)
    writer = writer_of(snapshot, node)
    if writer != scope.owner:
        raise DeniedError(
            f"shared: {writer or 'somebody else'} wrote this, so you cannot make it private",
            hint="`forget` takes it out of the answers of everybody",
        )
    own = same_name_key(scope.owner)
    fact = _moved(node, about=tuple(name for name in node.about if same_name_key(name) != own))
    kept = {name: value for name, value in node.attributes.items() if name != "dates"}
    return replace(fact, tags=node.tags, attributes=kept or None)


def _moved(node: Node, *, about: Sequence[str]) -> Fact:
    return Fact(
        content=node.content,
        type=node.type,
        category=node.category,
        about=about,
        expires=node.expires_at or "never",
        confidence=node.confidence,
        valid_from=node.valid_from,
        origin=node.origin,
        at=node.event_time,
    )


def _words(text: str) -> str:
    return f" {' '.join(raw_words(text))} "
