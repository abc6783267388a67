"""Merge two entities into one, or split one into two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ricordo.clock import from_ms
from ricordo.encoding.entities import checked_names, find_entity, new_entity
from ricordo.errors import ConflictError, InvalidError, NotFoundError
from ricordo.model import Change, Entity, NameMove, Scope
from ricordo.storage import Snapshot
from ricordo.text.names import folded_name, runs_in


def merge(snapshot: Snapshot, keep: str, other: str, *, scope: Scope, now: int) -> tuple[Change, Entity]:
    """Merge `other` into `keep`, and close `other`.

    The names, memories and relations of `other` stay attached to it, and count as those of `keep`. Nothing is
    rewritten, so that undoing or splitting restores everything.

    Raises:
        NotFoundError: one of them is unknown.
        ConflictError: both are already the same entity, or belong to different owners or chats.
    """
    kept, gone = find_entity(snapshot, scope, keep), find_entity(snapshot, scope, other)
    if kept.id == gone.id:
        raise ConflictError(
            f"{keep!r} and {other!r} are already the same entity: {kept.name}",
            hint="if two entities share a name, give their ids",
        )
    if (kept.owner, kept.chat) != (gone.owner, gone.chat):
        raise ConflictError(
            f"{kept.name} and {gone.name} belong to different owners or chats",
            hint="only entities of the same owner or chat can be merged",
        )
    at = from_ms(now)
    result = replace(
        kept,
        summary=kept.summary or gone.summary,
        protected=kept.protected or gone.protected,
        attributes={**gone.attributes, **kept.attributes},
        first_seen=min(kept.first_seen, gone.first_seen),
        last_updated=at,
    )
    merged = tuple(
        replace(each, aliases=(), closed_at=each.closed_at or at, merged_into=kept.id, last_updated=at)
        for each in snapshot.entities.members(scope, gone.key)
    )
    change = Change(put_entities=(replace(result, aliases=()), *merged))
    names = dict.fromkeys((*kept.aliases, gone.name, *gone.aliases))
    names.pop(kept.name, None)
    relations = dict.fromkeys(each for each in (kept.relation, gone.relation) if each)
    count = kept.mention_count + gone.mention_count
    return change, replace(result, aliases=tuple(names), relation=", ".join(relations) or None, mention_count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Both entities, and the mentions found by rule that move to `other`: (node key, former entity key)."""

    kept: Entity
    other: Entity
    mentions: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _NameSplit:
    """The folded names that move, and those that stay."""

    go: frozenset[str]
    stay: frozenset[str]

    def takes(self, used: str, text: str) -> bool:
        """Return whether a memory moves as well: by the name it used or, if that is "", by the names in its text."""
        if used:
            return used in self.go
        runs = {run.written for run in runs_in(text)}
        return bool(runs & self.go) and not runs & self.stay


def split(snapshot: Snapshot, entity: str, names: Sequence[str], *, scope: Scope, now: int) -> tuple[Change, Split]:
    """Move names, and the memories that used them, from an entity to another one.

    The other one is a merged entity all of whose names move, or else a new one.

    Raises:
        NotFoundError: the entity, or one of its names, is unknown.
        InvalidError: no name is given, or the entity's own name is among them.
    """
    kept = find_entity(snapshot, scope, entity)
    given = checked_names(names)
    members = snapshot.entities.members(scope, kept.key)
    borne = {member.id: snapshot.entities.own_names(member.key) for member in members}
    go = frozenset(folded_name(name) for name in given)
    _check_names(snapshot, kept, given, borne, members)
    back = [each for each in members if each.id != kept.id and all(folded_name(name) in go for name in borne[each.id])]
    staying = [each for each in members if each not in back]
    moving = [(each, name) for each in staying for name in borne[each.id] if folded_name(name) in go]
    other = _other(kept, given, back, [name for _, name in moving], scope=scope, now=now)
    name_split = _NameSplit(
        go=go, stay=frozenset(folded_name(name) for each in staying for name in borne[each.id]) - go
    )
    change = Change(
        entities=() if back else (other,),
        put_entities=tuple(_reopened(each, other, now=now) for each in back),
        moved_names=tuple(NameMove(alias=name, source=each.id, target=other.id) for each, name in moving),
        moved_subjects=tuple(
            (node_id, each.id, other.id)
            for each in staying
            for node_id, used, text in snapshot.entities.subject_uses(each.key)
            if name_split.takes(used, text)
        ),
    )
    mentions = tuple(
        (key, each.key)
        for each in staying
        for key, text in snapshot.mentions.mentions_of(each.key)
        if name_split.takes("", text)
    )
    left = tuple(name for name in kept.aliases if folded_name(name) not in go)
    return change, Split(kept=replace(kept, aliases=left), other=other, mentions=mentions)


def _check_names(
    snapshot: Snapshot, kept: Entity, given: Sequence[str], borne: dict[str, list[str]], members: Sequence[Entity]
) -> None:
    if not given:
        raise InvalidError("names: the list is empty", hint="say which names belong to the other entity")
    used = {use.name for each in members for use in snapshot.entities.subject_uses(each.key)}
    used |= {folded_name(name) for each in borne.values() for name in each}
    for name in given:
        if folded_name(name) == folded_name(kept.name):
            raise InvalidError(
                f"names: {kept.name} is the entity's own name, which cannot be split off",
                hint="split off the other names instead",
            )
        if folded_name(name) not in used:
            raise NotFoundError(f"names: {kept.name} is not known as {name!r}")


def _other(
    kept: Entity, given: Sequence[str], back: Sequence[Entity], moving: Sequence[str], *, scope: Scope, now: int
) -> Entity:
    """Return the entity that takes the names: the first merged entity to reopen, else a new one of the same type."""
    if back:
        return replace(back[0], closed_at=None, merged_into=None)
    fresh = new_entity(given[0], scope=scope, now=now, type=kept.type)
    aliases = tuple(dict.fromkeys(name for name in (*moving, *given) if name != fresh.name))
    return replace(fresh, aliases=aliases, owner=kept.owner, chat=kept.chat)


def _reopened(member: Entity, other: Entity, *, now: int) -> Entity:
    """Return a merged entity reopened as `other`, or merged into `other` if another one was reopened."""
    is_first = member.id == other.id
    return replace(
        member,
        aliases=(),
        last_updated=from_ms(now),
        closed_at=None if is_first else member.closed_at,
        merged_into=None if is_first else other.id,
    )


def move_mentions(snapshot: Snapshot, split: Split) -> None:
    """Move the mentions found by rule (derived rows) to the other entity, and queue their texts for a new search."""
    other = snapshot.entities.key_of(split.other.id)
    assert other is not None  # the split has been committed
    snapshot.mentions.drop_links(split.mentions)
    snapshot.mentions.put_links([(node, other) for node, _ in split.mentions])
    snapshot.mentions.look_again([node for node, _ in split.mentions])
