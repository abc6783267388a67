"""Turn messages into episodes, end sessions, and pause the recording of sessions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from typing import get_args

from ricordo.clock import from_ms, new_id
from ricordo.encoding.entities import with_people
from ricordo.encoding.validation import (
    Screened,
    TextRules,
    all_screened,
    check_choice,
    checked_attributes,
    short_name,
    storable,
    stored_id,
)
from ricordo.errors import ConflictError, NotFoundError
from ricordo.model import BY_AGENT, Change, Message, Node, Origin, Pause, Role, Scope
from ricordo.storage import Snapshot
from ricordo.text.relations import self_words
from ricordo.text.reported import reported
from ricordo.trust import UNAPPROVED, capped, trust_of

Instant = Callable[[datetime | str, str], int]
"""Parses a time given by the caller: (value, name of the parameter) to Unix milliseconds, UTC."""

_LATEST = 500
"""How many of the latest changes in a chat without members tell who writes to it."""

_ROLES: frozenset[str] = frozenset(get_args(Role))
_ORIGINS: frozenset[str] = frozenset(get_args(Origin))


def new_episode(message: Message, *, scope: Scope, now: int, instant: Instant, rules: TextRules) -> Node:
    """Return the node of a message. It belongs to the chat of the scope or, without a chat, to the owner.

    Args:
        now: Unix milliseconds, UTC; also the event time of a message without a time of its own.

    Raises:
        InvalidError: a field is invalid; the error names it.
    """
    check_choice(message.role, _ROLES, name="role")
    check_choice(message.origin, _ORIGINS, name="origin")
    received = from_ms(now)
    at = received if message.at is None else from_ms(instant(message.at, "at"))
    origin = message.origin if scope.trust == "user" else capped(message.origin, message.role, caller=scope.trust)
    speaker = speaker_in_chat(scope, role=message.role, origin=origin) if message.speaker is None else message.speaker
    return Node(
        id=new_id(now) if message.id is None else stored_id(message.id, rules=rules),
        type="episodic",
        content=storable(message.text, name="text", rules=rules),
        owner="" if scope.chat else scope.owner,
        chat=scope.chat or "",
        role=message.role,
        speaker=short_name(speaker, name="speaker", rules=rules),
        session=short_name(message.session, name="session", rules=rules),
        origin=origin,
        attributes=checked_attributes(message.attributes, rules=rules),
        event_time=at,
        created_at=received,
        valid_from=at,
        decay_rate=0.0,  # episodes never fade
    )


def speaker_in_chat(scope: Scope, *, role: Role, origin: Origin) -> str | None:
    """Return the caller as the speaker of what they write to a chat, so that the others know whose "I" it is. None for
    assistants, tools and pages, and for an owner without a name of their own ("me").
    """
    has_name = bool(scope.chat and scope.owner) and scope.owner.casefold() not in self_words()
    return scope.owner if has_name and role == "user" and trust_of(origin, role) not in UNAPPROVED else None


def redacted(node: Node, rules: TextRules) -> Node:
    """Return an episode made with `TextRules.at_once`, with credentials and personal data replaced."""
    clean = replace(
        node,
        content=storable(node.content, name="text", rules=rules),
        speaker=short_name(node.speaker, name="speaker", rules=rules),
        session=short_name(node.session, name="session", rules=rules),
        attributes=checked_attributes(node.attributes, rules=rules),
    )
    return node if clean == node else clean


def ingest(snapshot: Snapshot, episodes: Sequence[Node], *, claimed: Collection[str], scope: Scope) -> Change:
    """Return the change that adds the new episodes of one caller, and the relations stated outright in them.

    A message with a known id and the same text is not added again.

    Args:
        claimed: the ids that the caller chose; generated ids need no check.

    Raises:
        ConflictError: an id already belongs to another text.
    """
    episodes = _with_writers(snapshot, episodes, scope)
    ids = [node.id for node in episodes if node.id in claimed] if claimed else []
    known = snapshot.nodes.known_ids(ids) if ids else {}
    pauses = pauses_of(snapshot, scope) if episodes else []
    fresh: dict[str, Node] = {}
    seen: list[Screened] = []
    for given, passed in zip(episodes, all_screened(snapshot, episodes), strict=True):
        node = passed.node
        if node is None:  # all its sentences were erased before
            continue
        if known:
            check_same(snapshot, node, known, given=given)
        if fresh.get(node.id, node).content != node.content:
            raise ConflictError(f"id {node.id} is given to two messages", hint="leave ids out to get new ones")
        if node.id not in fresh and node.id not in known and not is_off_record(node, pauses):
            fresh[node.id] = node
            seen.append(passed)
    change = Change(
        add=tuple(fresh.values()),
        withheld_spans=tuple(span for each in seen for span in each.spans),
        said_anew=tuple({number: None for each in seen for number in each.restated}),
    )
    cut = {node.id: each.heard for node, each in zip(change.add, seen, strict=True) if each.heard != node.content}
    return with_people(snapshot, change, scope=scope, heard=cut)


def _with_writers(snapshot: Snapshot, episodes: Sequence[Node], scope: Scope) -> Sequence[Node]:
    """Return messages with the writer named where the speaker is another of those who write to the chat."""
    named = {node.chat for node in episodes if node.chat and node.speaker not in (None, scope.who)} if scope.who else ()
    members = {chat: _writers(snapshot, chat) for chat in named}
    return [
        replace(node, speaker=reported(node.speaker, writer=scope.who, members=members[node.chat]))
        if node.speaker and node.chat in members
        else node
        for node in episodes
    ]


def _writers(snapshot: Snapshot, chat: str) -> Collection[str]:
    """Return the present and former members of a space or, in a chat without any, who made its latest changes."""
    if members := snapshot.members.of(chat):
        return [each.owner for each in members]
    commits = snapshot.history.commits(Scope(owner="", chat=chat), before=None, most=_LATEST)
    return {each.actor.removesuffix(BY_AGENT) for each in commits}


def check_same(
    snapshot: Snapshot, node: Node, known: Mapping[str, tuple[int, str]], *, given: Node | None = None
) -> None:
    """Check that a node's id is free, or belongs to the same message.

    Args:
        given: the node as received, if erased text was removed from `node`.

    Raises:
        ConflictError: the id belongs to another text or another owner; the error does not say which.
    """
    texts = (node.content, (given or node).content)
    if node.id in known and known[node.id] not in {(snapshot.space(node.owner, node.chat), text) for text in texts}:
        raise ConflictError(f"id {node.id} already exists", hint="leave it out to get a new one")


def pauses_of(snapshot: Snapshot, scope: Scope) -> Sequence[Pause]:
    """Return when a caller was and is off the record: everywhere, or in the present chat."""
    return snapshot.sessions.off_record(scope.who, scope.chat or "")


def is_off_record(node: Node, pauses: Sequence[Pause]) -> bool:
    """Return whether a message or fact is not to be stored: a pause lasts, or it was said in one that is over.

    A pause counts from the beginning of its second, since the times in many logs are cut to seconds.
    """
    if not pauses:
        return False
    names = {"", node.session, _past_name(node.session)}
    return any(
        pause.session in names
        and (pause.ended_at is None or pause.begun_at.replace(microsecond=0) <= node.event_time < pause.ended_at)
        for pause in pauses
    )


def is_paused(snapshot: Snapshot, scope: Scope) -> bool:
    """Return whether a caller is off the record now, in all sessions."""
    return any(pause.ended_at is None and not pause.session for pause in pauses_of(snapshot, scope))


def check_on_record(snapshot: Snapshot, scope: Scope) -> None:
    """Raise ConflictError if a caller is off the record now, in all sessions."""
    if is_paused(snapshot, scope):
        raise ConflictError("nothing is stored while you are off the record", hint="`on_record` ends that")


def end_session(snapshot: Snapshot, scope: Scope, session: str, *, at: datetime, rules: TextRules) -> Change:
    """Mark a session as over, unless it already is. Raises NotFoundError."""
    known = snapshot.sessions.get(scope, _session_name(session, rules))
    if known is None:
        raise NotFoundError(f"there is no session {session!r}", hint="a session begins with its first message")
    return Change() if known.ended_at else Change(sessions=(replace(known, ended_at=at),))


def go_off_record(snapshot: Snapshot, scope: Scope, session: str | None, *, at: int, rules: TextRules) -> None:
    """Stop storing what the caller says: in the present chat or, if there is none, anywhere (in one session only)."""
    snapshot.sessions.go_off_record(scope.who, scope.chat or "", _session_name(session, rules), at=at)


def go_on_record(
    snapshot: Snapshot, scope: Scope, session: str | None, *, at: int, rules: TextRules
) -> Sequence[Pause]:
    """Store again what `go_off_record` paused; return the caller's other pauses that last."""
    name = _session_name(session, rules)
    for owner in (scope.who, ""):  # without an owner: about everyone in the chat, from before version 8
        if owner or scope.chat:
            snapshot.sessions.go_on_record(owner, scope.chat or "", name, at=at, kept=_past_name(name))
    return snapshot.sessions.paused(scope.who)


def _session_name(session: str | None, rules: TextRules) -> str:
    return short_name(session, name="session", rules=rules) or ""


def _past_name(session: str | None) -> str:
    """Return the name of a session in a pause that is over: a hash, since nothing else is known of the session."""
    if not session:
        return ""
    return blake2b(session.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
