"""The table of rights: what a caller needs for each capability. Every interface and every method checks rights here.

A capability is a public method of `Memory`, an argument or effect of a method that needs more ("gc.all_owners"), or a
feature of a server or the command line. A capability without a row is reserved to the owner of the process.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, Literal, TypeVar

from ricordo.errors import DeniedError
from ricordo.model import MemberRole, Scope, Trust
from ricordo.trust import lower

Access = Literal["read", "propose", "write", "admin", "erase"]
Door = Literal["python", "cli", "rest", "rpc", "mcp", "tools"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Right:
    """The requirements for a capability.

    Attributes:
        access: The permission that a network caller's token needs; "any": any token; None: no token is sufficient.
        trust: The minimum trust of the caller.
        is_whole_store: It concerns the complete store, so only the memory that opened the store has it.
    """

    access: Access | Literal["any"] | None
    trust: Trust
    is_whole_store: bool = False


@dataclass(frozen=True, slots=True)
class Holder:
    """A caller and its permissions.

    Attributes:
        is_opener: It is the memory that opened the store, not one scoped from it.
        access: The permissions of a network caller; None: the call comes from this process.
        proposes: It can only propose changes, on which the user decides.
    """

    trust: Trust
    is_opener: bool = False
    access: frozenset[Access] | None = None
    proposes: bool = False


OWNER_ALONE = Right(None, "user", True)
"""The right required for everything without a row. Only the owner of the process has it."""

_READS = Right("read", "web")
_ADDS = Right("write", "web")
_CHANGES = Right("write", "agent")
_DECIDES = Right("write", "user")
_KEEPS = Right("admin", "agent")
_ANYONE = Right(None, "web")
_ANY_TOKEN = Right("any", "web")
_PROPOSE = "the caller may read, and propose changes with `remember`, `correct`, `update` and `forget`"

RIGHTS: Mapping[str, Right] = {
    # the memory itself
    "open": OWNER_ALONE,
    "close": _ANYONE,
    "scope": _ANYONE,
    "scoped": _ANYONE,
    "scoped.others": Right(None, "web", True),
    "settle": _ANYONE,
    "warm": _ANYONE,
    "store_view": _ANYONE,
    "store_view.owners": Right(None, "web", True),
    "store_view.commits": _READS,
    "store_view.changed_by": _READS,
    "store_view.empty_past": _READS,
    "store_view.ids": _READS,
    "store_view.holdings": _READS,
    # questions
    "search": _READS,
    "query": _READS,
    "context": _READS,
    "context_parts": _READS,
    "brief": _READS,
    "brief_parts": _READS,
    "brief.model": Right("read", "agent"),
    "ask": _READS,
    "ask.model": Right("read", "agent"),  # it costs the owner's tokens
    "get": _READS,
    "list": _READS,
    "entity": _READS,
    "people": _READS,
    "timeline": _READS,
    "history": _READS,
    "explain": _READS,
    "receipts": _READS,
    "receipt": _READS,
    "replay_receipt": Right("read", "agent"),  # it copies the store
    "questions": _READS,
    "question": _READS,
    "keep_question": _CHANGES,
    "renew_questions": _CHANGES,
    "drop_question": _CHANGES,
    "stats": _READS,
    "stats.store_size": Right(None, "web", True),
    "weak": _READS,
    "archive": _READS,
    "log": _READS,
    "changes": _READS,
    "review": _READS,
    "staged": _READS,
    "review.quarantined_text": Right("read", "user"),
    "sessions": _READS,
    "session": _READS,
    "documents": _READS,
    "document": _READS,
    "runs": _READS,
    "run": _READS,
    "spending": _READS,
    "spending.all_owners": Right(None, "user", True),
    # additions that change no existing data
    "add": _ADDS,
    "add_many": _ADDS,
    "add_nowait": _ADDS,
    "remember": _ADDS,
    "remember.keep_secrets": _DECIDES,
    "remember_many": _ADDS,
    "end_session": _ADDS,
    # changes
    "off_record": _CHANGES,
    "on_record": _CHANGES,
    "add_entity": _CHANGES,
    "update_entity": _CHANGES,
    "relate": _CHANGES,
    "correct": _CHANGES,
    "update": _CHANGES,
    "update.shared": _DECIDES,  # the user alone decides what others may read
    "confirm": _CHANGES,
    "reinforce": _CHANGES,
    "demote": _CHANGES,
    "resolve": _CHANGES,
    "resolve.quarantine": _DECIDES,
    "resolve_many": _DECIDES,
    "approve": _DECIDES,
    "refuse": _DECIDES,
    "merge": _CHANGES,
    "split": _CHANGES,
    "forget": _CHANGES,
    "forget_where": _DECIDES,
    "update_where": _DECIDES,
    "restore": _CHANGES,
    "undo": _CHANGES,
    "erase": Right("erase", "agent"),
    "erase.owner": Right("erase", "user"),
    "consolidate": _CHANGES,
    "extract": _CHANGES,
    "summarise": _CHANGES,
    "reflect": _CHANGES,
    "enrich": _CHANGES,
    "infer_causes": _CHANGES,
    "replay": Right(None, "agent"),
    "write_operations": Right(None, "agent"),
    "add_document": _CHANGES,
    "add_document.path": Right(None, "agent"),  # a file on the machine of the store
    "remove_document": _CHANGES,
    "import_": _CHANGES,
    "import_.own": Right(None, "user"),  # the file is trusted like the owner
    # maintenance
    "accept": _KEEPS,
    "gc": _KEEPS,
    "gc.all_owners": Right(None, "user", True),
    "prune": _KEEPS,
    "prune.all_owners": Right(None, "user", True),
    "maintain": _KEEPS,
    "maintain.all_owners": Right(None, "user", True),
    "doctor": _KEEPS,
    "doctor.fix": OWNER_ALONE,
    "rebuild_index": OWNER_ALONE,
    "migrate": OWNER_ALONE,
    "backup": OWNER_ALONE,
    "spaces": _READS,
    "chats": _READS,
    "create_space": _DECIDES,
    "set_member": _DECIDES,
    "remove_member": _DECIDES,
    "sync": OWNER_ALONE,  # the other device gets the rights of the owner
    "verify_backup": OWNER_ALONE,
    "restore_backup": OWNER_ALONE,
    "rekey": OWNER_ALONE,
    "export": Right(None, "user"),
    # features of a server only
    "health": _ANY_TOKEN,
    "openapi": _ANY_TOKEN,
    "metrics": Right("admin", "web"),
    # features of the command line only
    "quarantine": _DECIDES,
    "install": OWNER_ALONE,
    "uninstall": OWNER_ALONE,
    "hook": OWNER_ALONE,
    "mcp": OWNER_ALONE,
    "serve": OWNER_ALONE,
    "page": OWNER_ALONE,
    "page.tokens": OWNER_ALONE,
    "token": OWNER_ALONE,
    "demo": OWNER_ALONE,
    "test": OWNER_ALONE,
    "help": OWNER_ALONE,
    "completion": OWNER_ALONE,
    "config": OWNER_ALONE,
    "chat": OWNER_ALONE,
    "notes": OWNER_ALONE,
    "watch": OWNER_ALONE,
}

SpaceAction = Literal["read", "propose", "write", "approve", "erase", "invite", "leave"]

ROLE_NEEDED: Mapping[SpaceAction, MemberRole] = {
    "read": "reader",
    "propose": "reader",
    "leave": "reader",
    "write": "writer",
    "approve": "keeper",
    "erase": "keeper",
    "invite": "keeper",
}
"""The minimum role in a shared space for each action. Callers who are not members may do nothing."""

IN_A_SPACE: Mapping[str, SpaceAction] = {
    "off_record": "write",
    "on_record": "write",
    "consolidate": "write",
    "extract": "write",
    "summarise": "write",
    "reflect": "write",
    "enrich": "write",
    "infer_causes": "write",
    "replay": "write",
    "accept": "write",
    "weak": "read",
    "archive": "read",
    "gc": "erase",
    "prune": "erase",
    "maintain": "erase",
    "erase": "erase",
}
"""Methods that work on the caller's complete chat, with their action if it is a shared space. All other methods are
checked when a change is applied, and find nothing for callers who are not members.
"""

_RANKS: tuple[MemberRole, ...] = ("none", "reader", "writer", "keeper")


def role_allows(role: MemberRole, action: SpaceAction) -> bool:
    """Return whether a role in a shared space allows an action there."""
    return _RANKS.index(role) >= _RANKS.index(ROLE_NEEDED[action])


PROPOSED = frozenset(("remember", "remember_many", "correct", "update", "forget"))
"""The changes that a caller without the right to make them may propose."""

MOST_TRUST: Mapping[Door, Trust] = {
    "python": "user",
    "cli": "user",
    "rest": "user",
    "rpc": "user",
    "mcp": "agent",
    "tools": "agent",
}
"""The maximum trust of a caller at an interface. Behind `mcp` and `tools` there is always a model."""


def right_to(capability: str) -> Right:
    """Return the requirements for a capability."""
    return RIGHTS.get(capability, OWNER_ALONE)


def permission_for(capability: str) -> str:
    """Return the permission that a token needs for a capability, in words: "write", "write or propose", "none"."""
    needed = right_to(capability).access or "none"
    return f"{needed} or propose" if capability in PROPOSED else needed


def at_door(door: Door, trust: Trust) -> Trust:
    """Return the trust of a caller at an interface: its own, limited to the interface's maximum."""
    return lower(trust, MOST_TRUST[door])


def refusal(capability: str, holder: Holder) -> DeniedError | None:
    """Return why a caller may not use a capability, or None if it may."""
    right, has = right_to(capability), holder.access
    if holder.proposes and right.access != "read" and right not in (_ANYONE, _ANY_TOKEN) and capability not in PROPOSED:
        return DeniedError(f"a caller that only proposes may not use {capability}", hint=_PROPOSE)
    if has is not None and right.access is None:
        return DeniedError(
            f"{capability} is not offered over a network", hint="use the command line of the store's owner"
        )
    may_propose = capability in PROPOSED and has is not None and "propose" in has
    if has is not None and right.access != "any" and right.access not in has and not may_propose:
        listed = ", ".join(sorted(has)) or "none"
        needed = (
            f"{right.access!r}, or 'propose' to have it approved" if capability in PROPOSED else f"{right.access!r}"
        )
        return DeniedError(f"this needs the permission {needed}", hint=f"this caller has {listed}")
    if lower(holder.trust, right.trust) != right.trust:
        hint = f"it needs the trust {right.trust}; a caller of any trust may read, `add` and `remember`"
        return DeniedError(f"a caller with trust {holder.trust} may not use {capability}", hint=hint)
    if right.is_whole_store and not holder.is_opener:
        hint = "leave it out" if "." in capability else "call it on the memory that `Memory.open` returned"
        return DeniedError(f"{capability}: only the opener of the store may use it", hint=hint)
    return None


def allows(capability: str, holder: Holder) -> bool:
    """Return whether a caller may use a capability."""
    return refusal(capability, holder) is None


def require(capability: str, holder: Holder) -> None:
    """Raise DeniedError if a caller may not use a capability."""
    if (found := refusal(capability, holder)) is not None:
        raise found


def governed(holder_of: Callable[[Any], Holder]) -> Callable[[T], T]:
    """Make every public method of a class check the table first. A method with a row "METHOD.ARGUMENT" also needs that
    right if the argument is given and true.

    Args:
        holder_of: returns the caller of an object of the class.
    """

    def govern(cls: T) -> T:
        for name, member in list(vars(cls).items()):
            if not name.startswith("_") and isinstance(member, FunctionType):
                setattr(cls, name, _checked(name, member, holder_of))
        return cls

    return govern


def _checked(name: str, work: Callable[..., Any], holder_of: Callable[[Any], Holder]) -> Callable[..., Any]:
    arguments = _arguments_with_rights(name, work)
    if not arguments and all(allows(name, Holder("web", proposes=each)) for each in (False, True)):
        return work  # no caller can be refused

    def check(called: Any, given: Sequence[Any], options: Mapping[str, Any]) -> None:
        holder = holder_of(called)
        require(name, holder)
        for each, place in arguments.items():
            value = given[place] if place is not None and place < len(given) else options.get(each)
            if value not in (None, False):
                require(f"{name}.{each}", holder)

    @functools.wraps(work)
    async def later(called: Any, /, *given: Any, **options: Any) -> Any:
        check(called, given, options)
        return await work(called, *given, **options)

    @functools.wraps(work)
    def at_once(called: Any, /, *given: Any, **options: Any) -> Any:
        check(called, given, options)
        return work(called, *given, **options)

    return later if inspect.iscoroutinefunction(work) else at_once


def _arguments_with_rights(name: str, work: Callable[..., Any]) -> Mapping[str, int | None]:
    """Return the arguments of a method that have rows, each with its place after `self` if it can be positional."""
    parameters = list(inspect.signature(work).parameters.values())[1:]
    places = {each.name: place for place, each in enumerate(parameters) if each.kind is each.POSITIONAL_OR_KEYWORD}
    rows = [each.partition(".")[2] for each in RIGHTS if each.startswith(f"{name}.")]
    return {each: places.get(each) for each in rows}


def narrowed(wanted: Scope, *, own: Scope, holder: Holder) -> Scope:
    """Return the scope that a caller may hand on: with at most its own trust, and with another owner or chat only if it
    opened the store.

    Raises:
        DeniedError: the scope belongs to others.
    """
    if (wanted.owner not in ("", own.owner) or wanted.chat not in (None, own.chat)) and not allows(
        "scoped.others", holder
    ):
        raise DeniedError(
            "scoped: this memory is already scoped, and keeps its owner and chat",
            hint="for another owner or chat, call `scoped` on the memory that `Memory.open` returned",
        )
    if wanted.spaces is None or (own.spaces is not None and not set(wanted.spaces) <= set(own.spaces)):
        wanted = replace(wanted, spaces=own.spaces)
    trust, propose = lower(wanted.trust, own.trust), wanted.propose or own.propose
    return replace(wanted, trust=trust, propose=propose)
