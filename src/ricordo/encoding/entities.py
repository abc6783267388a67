"""Names become entities: looked up, made where they are unknown, and related to the owner as is said outright."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import get_args

from ricordo.clock import from_ms, to_ms
from ricordo.encoding.relations import plain_subjects, stated_relations
from ricordo.encoding.speakers import is_owners_word, is_persons_word
from ricordo.encoding.validation import check_choice, short_name
from ricordo.errors import ConflictError, InvalidError, NotFoundError
from ricordo.ids import new_id
from ricordo.model import Change, Entity, EntityType, Node, Relation, Scope
from ricordo.storage import Snapshot
from ricordo.text import name_key
from ricordo.text.kinship import SINGLE, may_name_relation, predicate_of, relation_named
from ricordo.text.names import likeness, looks_nominative, name_words

_ENTITY_TYPES: frozenset[str] = frozenset(get_args(EntityType))


def names_of(about: Sequence[str]) -> tuple[str, ...]:
    """Names as a caller gives them, without repeats.

    Raises:
        InvalidError: it is one text, or one of them has no letters or digits.
    """
    if isinstance(about, str):
        raise InvalidError("about must be a list of names, not one text", hint=f"pass [{about!r}]")
    names = tuple(dict.fromkeys(short_name(name, name="about") or "" for name in about))
    for name in names:
        _check_name(name)
    return names


def _check_name(name: str) -> None:
    if not name_key(name):
        raise InvalidError(f"name: {name!r} has no letters or digits", hint="give a name one could say")


def new_entity(
    name: str,
    *,
    scope: Scope,
    now: int,
    type: EntityType = "person",
    aliases: Sequence[str] = (),
    protected: bool = False,
) -> Entity:
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
        aliases=names_of(aliases),
        protected=bool(protected),
        first_seen=at,
        last_updated=at,
    )


def scope_of(owner: str, chat: str) -> Scope:
    """The scope in which the people of a memory are looked up: those of its owner, or of its chat, and no others."""
    return Scope(owner=owner, chat=None if owner else chat or None)


class People:
    """Looks names up within one change, and gathers what the change makes known: people and relations.

    It sees those of one owner or of one chat (`scope_of`): a private memory about somebody of the group would be
    counted where others see it.
    """

    def __init__(self, snapshot: Snapshot, *, scope: Scope, now: int) -> None:
        self._snapshot = snapshot
        self._scope = scope
        self._now = now
        self._found: dict[str, Entity] = {}
        self._new: dict[str, Entity] = {}
        self._put: dict[str, Entity] = {}
        self._relations: list[Relation] = []
        self._altered: dict[str, Relation] = {}

    def named(self, name: str) -> Entity:
        """Whom a name means; a person who is made where nobody does.

        Raises:
            InvalidError: it says what several people are to the owner.
        """
        if name not in self._found:
            self._found[name] = self._known(name) or self._make(name)
        return self._found[name]

    def found(self, name: str) -> Entity | None:
        """Whom a name means, if anybody. Raises as `named` does."""
        return self._found.get(name) or self._known(name)

    def known(self, name: str) -> Entity | None:
        """Who goes by exactly this name; nobody where several do."""
        found = self._snapshot.entities.named(self._scope, name)
        return found.entities[0] if found.by == "same" and found.is_clear else None

    def _known(self, name: str) -> Entity | None:
        for entity in self._new.values():
            if any(likeness(name, each) == "same" for each in (entity.name, *entity.aliases)):
                return entity
        found = self._snapshot.entities.named(self._scope, name)
        if found.by == "same":
            return found.entities[0]
        if found.by == "relation" and not found.is_clear:
            several = ", ".join(entity.name for entity in found.entities)
            raise InvalidError(f"about: {name!r} may be any of {several}", hint="give the name")
        if found.by == "form" and all(looks_nominative(word) for word in name_words(name)):
            return None  # "Александра" is her own name before it is a case of his
        return found.entities[0] if found.is_clear else None

    def _make(self, name: str) -> Entity:
        entity = new_entity(name, scope=self._scope, now=self._now)
        self.introduce(entity)
        if predicate := relation_named(name):  # "my wife", whose name is not known yet
            self.relate(predicate, entity)
        return entity

    def introduce(self, entity: Entity) -> None:
        """Make an entity known with this change."""
        self._new[entity.id] = entity

    def relate(
        self,
        predicate: str,
        target: Entity,
        *,
        evidence: str | None = None,
        source: Entity | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        """Make known what somebody is to the owner, or to another. What is known already is left as it is.

        Who was called "my wife" for want of a name becomes one with her who has it; of what one has but one of, the one
        before ends.
        """
        whose = None if source is None else source.id
        present = [self._altered.get(each.id, each) for each in (*self._before(predicate, source), *self._relations)]
        present = [
            each
            for each in present
            if each.predicate == predicate and each.source == whose and each.valid_until is None
        ]
        if any(each.target == target.id for each in present):
            return
        for each in present:
            nameless = self._snapshot.entities.by_id(self._scope, each.target)
            if nameless is not None and relation_named(nameless.name) == predicate:
                self._name(nameless, target, each, evidence=evidence)
                return
        if predicate in SINGLE and end is None:
            start = start or (from_ms(self._now) if present else None)
            for each in present:
                self._altered[each.id] = replace(each, valid_until=from_ms(self._now))
        self._relations.append(self._relation(predicate, target, source, evidence=evidence, start=start, end=end))

    def _before(self, predicate: str, source: Entity | None) -> Sequence[Relation]:
        if source is None:
            return self._snapshot.entities.open_relations(self._scope, predicate)
        return self._snapshot.entities.relations(source.key) if source.key else ()

    def _relation(
        self,
        predicate: str,
        target: Entity,
        source: Entity | None,
        *,
        evidence: str | None,
        start: datetime | None,
        end: datetime | None,
    ) -> Relation:
        return Relation(
            id=new_id(self._now),
            predicate=predicate,
            target=target.id,
            source=None if source is None else source.id,
            valid_from=start,
            valid_until=end,
            evidence=() if evidence is None else (evidence,),
            created_at=from_ms(self._now),
            owner=target.owner,
            chat=target.chat,
        )

    def _name(self, nameless: Entity, target: Entity, relation: Relation, *, evidence: str | None) -> None:
        """The one called "my wife" is Sarah: she becomes one with her, and the relation is to her by name."""
        at = from_ms(self._now)
        for each in self._snapshot.entities.members(self._scope, nameless.key):
            self._put[each.id] = replace(
                each, aliases=(), closed_at=each.closed_at or at, merged_into=target.id, last_updated=at
            )
        said_by = relation.evidence if evidence is None else (*relation.evidence, evidence)
        self._altered[relation.id] = replace(relation, target=target.id, evidence=said_by)

    def listen(self, node: Node, *, owner: str) -> list[Entity]:
        """Learn the relations that a node says outright: the owner's, or those of another speaker who is known. Returns
        whom they are to.
        """
        if not is_persons_word(node.role, node.origin):
            return []
        is_owners = is_owners_word(node.role, node.origin, node.speaker, owner=owner)
        said = [] if node.chat and not node.speaker else stated_relations(node.content)
        source = self.known(node.speaker) if said and node.speaker and not is_owners else None
        if not is_owners and source is None:
            return []
        heard = []
        for stated in said:
            try:
                entity = self.named(stated.name)
            except InvalidError:
                continue
            if source is not None and source.id == entity.id:
                continue
            self.relate(stated.predicate, entity, evidence=node.id, source=source)
            heard.append(entity)
        return heard

    def about(self, node: Node) -> list[tuple[str, Entity]]:
        """Whom a statement is about, by which name: who is given, else whose relation it states, else who stands at its
        beginning and is known. "Anna's sister ..." is not about Anna.
        """
        heard = self.listen(node, owner=self._scope.owner)
        if node.about:
            return [(name, self.named(name)) for name in node.about]
        if heard:
            return [(entity.name, entity) for entity in heard]
        found = [(name, self.known(name)) for name in plain_subjects(node.content)]
        return [(name, entity) for name, entity in found if entity is not None]

    def into(self, change: Change) -> Change:
        """The change with all that was made known."""
        return replace(
            change,
            entities=(*change.entities, *self._new.values()),
            put_entities=(*change.put_entities, *self._put.values()),
            relations=(*change.relations, *(self._altered.get(each.id, each) for each in self._relations)),
            put_relations=(*change.put_relations, *(each for each in self._altered.values() if each.key)),
        )


def overhear(snapshot: Snapshot, change: Change, *, scope: Scope, heard: Mapping[str, str]) -> Change:
    """A change that adds messages, with the relations that the owner says outright in them.

    Args:
        heard: what may be learnt from a message, by id, where that is not all of it.
    """
    told = (replace(node, content=heard[node.id]) if node.id in heard else node for node in change.add)
    telling = [node for node in told if may_name_relation(node.content)]
    if not telling:
        return change
    homes: dict[Scope, People] = {}
    for node in telling:
        is_owners = is_owners_word(node.role, node.origin, node.speaker, owner=scope.owner)
        home = scope_of(scope.owner, "") if is_owners else scope_of(node.owner, node.chat)
        people = homes.setdefault(home, People(snapshot, scope=home, now=to_ms(node.created_at)))
        people.listen(node, owner=scope.owner)
    for people in homes.values():
        change = people.into(change)
    return change


def introduce(
    snapshot: Snapshot, entity: Entity, *, relation: str | None, scope: Scope, now: int
) -> tuple[Change, Entity]:
    """Add an entity, and what it is to the owner.

    Raises:
        ConflictError: one of that name is known already.
        InvalidError: the relation is no short text.
    """
    found = snapshot.entities.named(scope, entity.name)
    same = [each for each in found.entities if found.by == "same" and each.type == entity.type]
    if same:
        raise ConflictError(f"{entity.name} is known already", hint=f"its id is {same[0].id}")
    people = People(snapshot, scope=scope_of(entity.owner, entity.chat), now=now)
    people.introduce(entity)
    predicate = short_name(relation, name="relation")
    if predicate is not None:
        people.relate(predicate_of(predicate), entity)
    change = people.into(Change())
    return change, replace(entity, relation=None if predicate is None else predicate_of(predicate))


def relate(
    snapshot: Snapshot,
    source: str | None,
    predicate: str,
    target: str,
    *,
    scope: Scope,
    now: int,
    start: datetime | None,
    end: datetime | None,
) -> tuple[Change, None]:
    """Say what `target` is to `source`, or to the owner.

    Raises:
        NotFoundError: nobody is known by a name.
        InvalidError: the predicate is no short text, or somebody would be related to themselves.
    """
    label = predicate_of(short_name(predicate, name="predicate") or "")
    whose = None if source is None else sought(snapshot, scope, source)
    whom = sought(snapshot, scope, target)
    if whose is not None and (whose.id == whom.id or (whose.owner, whose.chat) != (whom.owner, whom.chat)):
        raise InvalidError(f"target: {whom.name} cannot be related to {whose.name}", hint="name two of one memory")
    people = People(snapshot, scope=scope_of(whom.owner, whom.chat), now=now)
    people.relate(label, whom, source=whose, start=start, end=end)
    return people.into(Change()), None


def sought(snapshot: Snapshot, scope: Scope, name: str) -> Entity:
    """The entity of a name or an id.

    Raises:
        NotFoundError: nobody and nothing goes by it.
        InvalidError: it may be one of several.
    """
    found = snapshot.entities.by_id(scope, name) if isinstance(name, str) else None
    if found is not None:
        return found
    named = snapshot.entities.named(scope, short_name(name, name="name") or "")
    if not named.entities:
        raise NotFoundError(f"entity: nobody and nothing is known as {name!r}")
    if named.by != "same" and not named.is_clear:
        several = ", ".join(f"{entity.name} ({entity.id})" for entity in named.entities)
        raise InvalidError(f"entity: {name!r} may be any of {several}", hint="give the name or the id")
    return named.entities[0]
