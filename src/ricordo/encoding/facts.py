"""A statement becomes a fact, and the people it names become known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import get_args

from ricordo.clock import from_ms
from ricordo.encoding.attributes import checked_attributes, checked_tags
from ricordo.encoding.category import infer_category
from ricordo.encoding.episodes import Instant, check_same, is_silent
from ricordo.encoding.text import TextRules, check_choice, short_name, storable
from ricordo.errors import ConflictError, InvalidError
from ricordo.ids import checked_id, new_id
from ricordo.model import Category, Change, Entity, EntityType, Fact, Node, NodeType, Origin, Scope
from ricordo.store import Snapshot
from ricordo.words import name_key

_CATEGORIES: frozenset[str] = frozenset(get_args(Category))
_TYPES: frozenset[str] = frozenset(get_args(NodeType)) - {"episodic"}
ORIGINS: frozenset[str] = frozenset(get_args(Origin))
_ENTITY_TYPES: frozenset[str] = frozenset(get_args(EntityType))


def knowledge(fact: Fact, *, scope: Scope, now: int, instant: Instant, rules: TextRules) -> Node:
    """The node of a fact, its category inferred by rule where none is given.

    Raises:
        InvalidError: a field cannot be accepted; the message names it.
    """
    _check(fact)
    content = storable(fact.content, name="content", rules=rules)
    at = from_ms(now)
    return Node(
        id=new_id(now) if fact.id is None else checked_id(fact.id),
        type=fact.type,
        content=content,
        category=fact.category or infer_category(content),
        owner=scope.owner,
        chat="" if scope.owner else scope.chat or "",
        role="user",
        session=short_name(fact.session, name="session"),
        origin=fact.origin,
        about=_names(fact.about),
        tags=checked_tags(fact.tags),
        attributes=checked_attributes(fact.attributes),
        event_time=at,
        created_at=at,
        valid_from=at if fact.valid_from is None else from_ms(instant(fact.valid_from, "valid_from")),
        expires_at=None if fact.expires is None else from_ms(instant(fact.expires, "expires")),
        confidence=float(fact.confidence),
    )


def _check(fact: Fact) -> None:
    check_choice(fact.type, _TYPES, name="type")
    check_choice(fact.origin, ORIGINS, name="origin")
    if fact.category is not None:
        check_choice(fact.category, _CATEGORIES, name="category")
    number = fact.confidence
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number) or not 0 <= number <= 1:
        raise InvalidError(f"confidence: {number!r} is not a number from 0 to 1")


def _names(about: Sequence[str]) -> tuple[str, ...]:
    if isinstance(about, str):
        raise InvalidError("about must be a list of names, not one text", hint=f"pass [{about!r}]")
    names = tuple(dict.fromkeys(short_name(name, name="about") or "" for name in about))
    for name in names:
        _check_name(name)
    return names


def _check_name(name: str) -> None:
    if not name_key(name):
        raise InvalidError(f"name: {name!r} has no letters or digits", hint="give a name one could say")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What came of some facts: the nodes as stored, and the change that stores what is new."""

    nodes: tuple[Node, ...]
    change: Change


def learn(snapshot: Snapshot, facts: Sequence[Node], *, scope: Scope, now: int, claimed: bool) -> Learnt:
    """Add facts, and the people they are about who are not known yet.

    Raises:
        ConflictError: an id is taken.
    """
    if len({node.id for node in facts}) < len(facts):
        raise ConflictError("an id is given to two facts", hint="leave ids out to get fresh ones")
    known = snapshot.known_ids([node.id for node in facts]) if claimed else {}
    silent = snapshot.off_record(scope.owner, "")
    people = People(snapshot, scope=scope, now=now)
    added: list[Node] = []
    subjects: list[tuple[str, str]] = []
    for node in facts:
        check_same(snapshot, node, known)
        if node.id in known or is_silent(node.session, silent):
            continue
        entities = [people.named(name) for name in node.about]
        subjects += [(node.id, entity.id) for entity in entities]
        added.append(replace(node, about=tuple(entity.name for entity in entities)))
    stored = {node.id: node for node in added}
    nodes = tuple(stored.get(node.id) or snapshot.node(scope, node.id) or node for node in facts)
    change = Change(add=tuple(added), entities=tuple(people.new), subjects=tuple(dict.fromkeys(subjects)))
    return Learnt(nodes=nodes, change=change)


class People:
    """Looks names up, and makes a person of a name that is unknown."""

    def __init__(self, snapshot: Snapshot, *, scope: Scope, now: int) -> None:
        self._snapshot = snapshot
        self._scope = scope
        self._now = now
        self._found: dict[str, Entity] = {}
        self.new: list[Entity] = []

    def named(self, name: str) -> Entity:
        """The entity of that name; the oldest where several share it."""
        key = name_key(name)
        if key not in self._found:
            known = self._snapshot.entities(self._scope, [key])
            self._found[key] = known[0] if known else self._make(name)
        return self._found[key]

    def _make(self, name: str) -> Entity:
        entity = new_entity(name, scope=self._scope, now=self._now)
        self.new.append(entity)
        return entity


def new_entity(name: str, *, scope: Scope, now: int, type: EntityType = "person", aliases: Sequence[str] = (),
               relation: str | None = None, protected: bool = False) -> Entity:  # fmt: skip
    """An entity that is not known yet.

    Raises:
        InvalidError: the name or an alias has no letters or digits, or the type is unknown.
    """
    check_choice(type, _ENTITY_TYPES, name="type")
    name = short_name(name, name="name") or ""
    _check_name(name)
    at = from_ms(now)
    return Entity(
        id=new_id(now),
        type=type,
        name=name,
        owner=scope.owner,
        chat="" if scope.owner else scope.chat or "",
        aliases=_names(aliases),
        relation=short_name(relation, name="relation"),
        protected=bool(protected),
        first_seen=at,
        last_updated=at,
    )


def introduce(snapshot: Snapshot, entity: Entity, *, scope: Scope) -> tuple[Change, Entity]:
    """Add an entity.

    Raises:
        ConflictError: one of that name is known already.
    """
    known = [found for found in snapshot.entities(scope, [name_key(entity.name)]) if found.type == entity.type]
    if known:
        raise ConflictError(f"{entity.name} is known already", hint=f"its id is {known[0].id}")
    return Change(entities=(entity,)), entity
