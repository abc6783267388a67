"""Deliberate changes of a memory: correct, update, confirm, reinforce, demote. Pure, except for `require_live`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from ricordo.errors import ConflictError, InvalidError
from ricordo.model import Category, Change, Edge, Entity, Json, Node, Origin, Scope, Trust
from ricordo.storage import Snapshot
from ricordo.text.categories import infer_category
from ricordo.text.lifetimes import expiring, has_lifetime, prolonged, retimed
from ricordo.text.tasks import CANCELLED
from ricordo.trust import capped, trust_of

_MAX_SCORE = 10.0
_MOMENT = timedelta(milliseconds=1)


def require_live(snapshot: Snapshot, scope: Scope, node: Node) -> Node:
    """Return the node if it is live.

    Raises:
        ConflictError: it is closed; the hint names its current version, or how to restore it.
    """
    if node.is_live:
        return node
    hint = "`restore` brings it back"
    if node.closed_reason == "quarantined":
        hint = "`review` lists it, `resolve` approves it"
    if node.closed_reason in ("superseded", "merged"):
        key = snapshot.nodes.successor(node.key)
        successor = None if key is None else snapshot.nodes.by_key(scope, [key]).get(key)
        hint = f"its present version is {successor.id}" if successor else "`history` shows what became of it"
    raise ConflictError(f"{node.id} was {node.closed_reason}", hint=hint)


def correct(
    old: Node,
    content: str,
    *,
    about: Sequence[Entity],
    at: datetime,
    new_id: str,
    origin: Origin,
    evidence: Sequence[str],
    zone: ZoneInfo,
    since: datetime | None = None,
) -> Change:
    """Replace a live node by a new version with other words and the same properties.

    Args:
        about: the entities that the new version is about.
        evidence: ids of memories that prove the correction; if empty, the new version is its own evidence.
        since: when the new version became true, and the old one ceased to be; None: the old one was never right. The
            beginning of the day on which the old one became true stands for that day. Before the old one was told, it
            moves the time since when that one was true.

    Raises:
        InvalidError: the words are the same, or the new version cannot be true since then.
    """
    if content == old.content:
        raise InvalidError("content is the same as before", hint="use `confirm` if the memory is right as it is")
    if since is not None:
        since = _checked_since(since, old, at=at, zone=zone)
        old = replace(old, valid_from=min(old.valid_from, since - _MOMENT))
    new = replace(
        old,
        id=new_id,
        key=0,
        content=content,
        about=tuple(each.name for each in about),
        category=_category_of(old, content),
        event_time=since or old.event_time,
        created_at=at,
        valid_from=since or at,
        confidence=1.0,
        origin=capped(old.origin, old.role, caller=trust_of(origin, None)) if old.type == "episodic" else origin,
    )
    new = retimed(new, old, at=at, zone=zone)
    return Change(
        add=(new,),
        put=(superseded(old, by=new if since else None, at=at),),
        link=(supersedes(new, old, evidence),),
        subjects=tuple((new_id, each.id) for each in about),
    )


def _category_of(node: Node, content: str) -> Category | None:
    """Return the category of a memory under new words. One that the rules gave follows the words; one that was chosen,
    and that of a task that is done, stays.
    """
    is_by_rule = node.type != "episodic" and node.category == infer_category(node.content)
    return infer_category(content) if is_by_rule and not node.attributes.get("done") else node.category


def _checked_since(since: datetime, old: Node, *, at: datetime, zone: ZoneInfo) -> datetime:
    """Return since when a new version is true: right after the old one became true, if `since` is that day.

    Raises:
        InvalidError: the memory cannot have changed at that time.
    """
    if old.type == "episodic":
        raise InvalidError("at: the time of a message cannot be changed", hint="leave it out")
    if since > at:
        raise InvalidError("at: it is in the future", hint="`remember` what will change, and correct this afterwards")
    day, begun = since.astimezone(zone), old.valid_from.astimezone(zone)
    if day.time() == time.min and day.date() == begun.date():
        return max(since, old.valid_from + _MOMENT)
    if since <= old.valid_from and old.valid_from != old.created_at:
        raise InvalidError(
            f"at: the old version is true only since {begun:%Y-%m-%d %H:%M}",
            hint=f"give {begun:%Y-%m-%d} or a later time, or leave it out if the old version was never right",
        )
    return since


def evidence_for(node: Node, shown: Node) -> Node:
    """Return `shown` if it may be evidence for `node`: everyone who sees the node must see its evidence.

    Raises:
        InvalidError: the evidence is private, and the node belongs to a group.
    """
    if node.chat and shown.owner:
        raise InvalidError(
            f"evidence: {shown.id} is private", hint="evidence for a shared memory must be visible to the group"
        )
    return shown


def superseded(old: Node, *, by: Node | None, at: datetime) -> Node:
    """Return the old version, closed. If a newer fact `by` replaced it, it was true until then."""
    until = old.valid_until
    if by is not None:
        until = by.valid_from if until is None else min(until, by.valid_from)
    return replace(old, closed_at=at, closed_reason="superseded", valid_until=until)


def supersedes(new: Node, old: Node, evidence: Sequence[str] = ()) -> Edge:
    """Return the edge from a version to the one it replaced."""
    return Edge(source=new.id, target=old.id, type="supersedes", evidence=tuple(evidence) or (new.id,))


@dataclass(frozen=True, slots=True)
class Expiry:
    """A new expiry: `at` is None to remove the expiry. `UNCHANGED` keeps the existing one."""

    at: datetime | None


UNCHANGED = Expiry(None)


def update(
    node: Node,
    *,
    content: str | None,
    tags: tuple[str, ...] | None,
    attributes: Json | None,
    expiry: Expiry,
    at: datetime,
    zone: ZoneInfo,
    happened: datetime | None = None,
    done: bool | None = None,
    caller: Trust = "user",
) -> tuple[Change, Node]:
    """Change a live node in place. Its history keeps the previous version. New words lower its trust to the caller's.

    Args:
        happened: the new time of the event; what begins with the old one begins with the new one.
        at: when the change was stated.

    Raises:
        InvalidError: no change is given, the node is a message, whose time is its place in the conversation, or `done`
            is given for something else than a task.
    """
    if all(each is None for each in (content, tags, attributes, happened, done)) and expiry is UNCHANGED:
        raise InvalidError("nothing to change is given", hint="give a field besides the id, such as content or tags")
    if done is not None and node.category != "task":
        raise InvalidError("done: this memory is not a task", hint="leave it out; only a task is done or open")
    if happened is not None and node.type == "episodic":
        raise InvalidError("at: the time of a message cannot be changed", hint="leave it out")
    former, values = node, node.attributes if attributes is None else attributes
    if done is not None:
        values = {name: value for name, value in values.items() if name not in ("done", CANCELLED)}
        values |= {"done": True} if done else {}
    if happened is not None:
        begins = happened if node.valid_from == node.event_time else node.valid_from
        at, node = happened, replace(node, event_time=happened, valid_from=begins)
    altered = replace(
        node,
        content=node.content if content is None else content,
        category=node.category if content is None else _category_of(replace(node, attributes=values), content),
        tags=node.tags if tags is None else tags,
        attributes=values,
        origin=node.origin if content is None else capped(node.origin, node.role, caller=caller),
    )
    altered = retimed(altered, former, at=at, zone=zone)
    return _put(former, altered if expiry is UNCHANGED else expiring(altered, expiry.at))


def confirm(node: Node, *, at: datetime, zone: ZoneInfo) -> tuple[Change, Node]:
    """Make a node certain: it does not decay, expires only if that was explicitly set, and its age counts from now.

    Confirming it again changes nothing.
    """
    if (node.confidence, node.decay_rate) == (1.0, 0.0):
        return Change(), node
    until = None if has_lifetime(node, zone=zone) else node.expires_at
    return _put(node, replace(node, confidence=1.0, decay_rate=0.0, reinforced_at=at, expires_at=until))


def reinforce(
    node: Node, amount: float, *, at: datetime, zone: ZoneInfo, together: Sequence[str] = ()
) -> tuple[Change, Node]:
    """Raise the score of a node that proved useful. Its age counts from now.

    Args:
        together: ids of memories reinforced with it (`graph.reinforced_with`), which become its associates.
    """
    longer = prolonged(node, at=at, zone=zone)
    change, node = _put(node, replace(longer, score=min(_MAX_SCORE, node.score + amount), reinforced_at=at))
    return replace(change, associates=tuple((node.id, other) for other in together)), node


def demote(node: Node, amount: float) -> tuple[Change, Node]:
    """Lower the score of a node that was not useful. This never closes it."""
    return _put(node, replace(node, score=max(-_MAX_SCORE, node.score - amount)))


def _put(node: Node, altered: Node) -> tuple[Change, Node]:
    """Return the change, empty if the node is unchanged."""
    return (Change(), node) if altered == node else (Change(put=(altered,)), altered)
