"""Resolve names to entities: look them up, add unknown ones, and learn relations that are stated outright.

No other module adds entities that a model found.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import get_args

from ricordo.clock import from_ms, new_id, to_ms
from ricordo.encoding.validation import AS_GIVEN, SCREENED, TextRules, check_choice, short_name
from ricordo.errors import ConflictError, InvalidError
from ricordo.model import (
    GUESSED_TYPE,
    Assertion,
    Change,
    Entity,
    EntityType,
    Introduction,
    Json,
    Node,
    Origin,
    Relation,
    Scope,
)
from ricordo.storage import Snapshot, entity_meant, names_of_owner_alone, told_apart
from ricordo.storage.values import Named
from ricordo.text.analyzer import index_terms, name_key
from ricordo.text.canonical import is_of_one_member, means_owner
from ricordo.text.change import topics
from ricordo.text.denied_names import without_denied_names
from ricordo.text.entity_recognition import entities_named, is_body
from ricordo.text.names import (
    NOT_PEOPLE,
    SINGLE,
    folded_name,
    known_relation,
    likeness,
    looks_nominative,
    name_words,
    predicate_of,
    relation_named,
    split_title,
)
from ricordo.text.relation_forms import may_state_relation
from ricordo.text.relations import (
    COUPLE,
    LASTING,
    are_alike,
    are_of_two,
    ended_relations,
    is_owners_word,
    is_persons_word,
    may_end_relation,
    may_state_alias,
    plain_subjects,
    self_words,
    stated_aliases,
    stated_own_names,
)
from ricordo.text.relative_names import names_instead
from ricordo.text.relatives import Stated, may_be_a_friend, stated_relations, takes_over
from ricordo.text.reported import reporter
from ricordo.text.sentences import content_words, in_first_person

SAME = "same as"
"""The relation of two entities that are said to be one person or thing. They are not merged: the user is asked."""

_ENTITY_TYPES: frozenset[str] = frozenset(get_args(EntityType))

_NAMING: frozenset[Origin] = frozenset(("user", "cli", "rpc", "agent"))
"""Origins of facts that may introduce people and things: the user's own words, and an agent's notes for the user."""

_PET: EntityType = "concept"
"""The type of pets: they are no people, and the other types are for work."""

_MAX_SPEAKER_CHARS = 80
_MOST_EVIDENCE = 20
_MOST_NAMES = 200
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_PARTICLES = frozenset(("van", "von", "de", "da", "del", "di", "bin", "der", "la", "zu"))
_NO_NAME = re.compile(r"[\d@_/\\<>{}\[\]:]")
_ROLES = frozenset(
    ("assistant", "system", "tool", "bot", "ai", "agent", "customer", "client", "support", "admin", "unknown")
)


def checked_names(about: str | Collection[str], *, rules: TextRules = SCREENED) -> tuple[str, ...]:
    """Return names given by the caller as a list, or one name as a text, checked and without repeats.

    Raises:
        InvalidError: a name is invalid, or there are too many.
    """
    about = (about,) if isinstance(about, str) else about
    if not isinstance(about, Collection):
        raise InvalidError(f"about: {about!r} is not a list of names", hint='pass ["Anna"]')
    if len(about) > _MOST_NAMES:
        hint = f"at most {_MOST_NAMES} are allowed; divide them between several calls"
        raise InvalidError(f"about: {len(about):,} names", hint=hint)
    names = tuple(dict.fromkeys(short_name(name, name="about", rules=rules) or "" for name in about))
    for name in names:
        _check_name(name)
    return names


def _check_name(name: str) -> None:
    if not name_key(name):
        raise InvalidError(f"name: {name!r} has no letters or digits", hint="give a name with letters")


def new_entity(
    name: str,
    *,
    scope: Scope,
    now: int,
    type: EntityType = "person",
    aliases: Sequence[str] = (),
    protected: bool = False,
    rules: TextRules = SCREENED,
    attributes: Json | None = None,
) -> Entity:
    """Return a new entity. Raises InvalidError: a name has no letters or digits, or the type is unknown."""
    check_choice(type, _ENTITY_TYPES, name="type")
    name = short_name(name, name="name", rules=rules) or ""
    _check_name(name)
    at = from_ms(now)
    return Entity(
        id=new_id(now),
        type=type,
        name=name,
        owner=scope.owner,
        chat="" if scope.owner else scope.chat or "",
        aliases=checked_names(aliases, rules=rules),
        protected=bool(protected),
        attributes=dict(attributes or {}),
        first_seen=at,
        last_updated=at,
    )


def _type_by_words(name: str) -> EntityType:
    return "organization" if is_body(name) else "person"


def scope_of(owner: str, chat: str) -> Scope:
    """Return the scope in which a memory's names are looked up: its owner or, if it has none, its chat."""
    return Scope.of(owner, chat)


_MOST_NAMED = 20
"""How many of the latest facts with the owner's name are searched for relations."""


class EntityResolver:
    """Resolves names within one change, and collects the entities and relations that the change adds.

    It sees the entities of one owner or one chat only (`scope_of`). Otherwise a private memory about a member of a
    group would count for that member where the others see it.
    """

    def __init__(self, snapshot: Snapshot, *, scope: Scope, now: int) -> None:
        self._snapshot = snapshot
        self._scope = scope
        self._now = now
        self._found: dict[str, Entity] = {}
        self._stored: dict[str, Named] = {}
        self._types: dict[str, EntityType] = {}
        self._new: dict[str, Entity] = {}
        self._new_names: dict[tuple[str, ...], str] = {}
        self._put: dict[str, Entity] = {}
        self._relations: list[Relation] = []
        self._altered: dict[str, Relation] = {}
        self._owner_names: tuple[str, ...] | None = None
        self._said: dict[str, Node] = {}

    def named(self, name: str) -> Entity:
        """Return the entity with a name; add a person if there is none. Raises InvalidError if several people match."""
        if name not in self._found:
            given = self._snapshot.entities.by_id(self._scope, name) if _ID.fullmatch(name) else None
            self._found[name] = given or self._known(name) or self._make(name)
        return self._found[name]

    def named_clearly(self, name: str) -> Entity | None:
        """Return the entity as `named` does, but None if several people match."""
        with contextlib.suppress(InvalidError):
            return self.named(name)
        return None

    def typed(self, name: str, type: EntityType, *, is_certain: bool) -> Entity | None:
        """Return the entity as `named_clearly` does; a new one gets a type.

        Args:
            is_certain: also correct the type of a known entity, if it was guessed.
        """
        self._types.setdefault(folded_name(name), type)
        entity = self.named_clearly(name)
        if is_certain and entity is not None and entity.type != type and entity.attributes.get(GUESSED_TYPE):
            entity = replace(entity, type=type, last_updated=from_ms(self._now))
            self.alter(entity)
            self._found[name] = entity
        return entity

    def find_any(self, names: Sequence[str]) -> Entity | None:
        """Return the entity of the first name that matches exactly one, stored or added by this change."""
        for name in names:
            with contextlib.suppress(InvalidError):
                if (entity := self.find(name)) is not None:
                    return entity
        return None

    def find(self, name: str) -> Entity | None:
        """Return the entity with a name, or None. Raises InvalidError if several people match."""
        return self._found.get(name) or self._known(name)

    def known(self, name: str) -> Entity | None:
        """Return the one entity of exactly this name; None if there is none or more than one."""
        new = self._found.get(name) or self._new.get(self._new_names.get(tuple(name_words(name)), ""))
        if new is not None and any(likeness(name, each) == "same" for each in (new.name, *new.aliases)):
            return new
        found = self._named_in_store(name)
        return found.entities[0] if found.by == "same" and found.is_clear else None

    def _named_in_store(self, name: str) -> Named:
        if name not in self._stored:
            self._stored[name] = self._snapshot.entities.named(self._scope, name)
        return self._stored[name]

    def _of_own_space(self, found: Sequence[Entity]) -> list[Entity]:
        """Return the entities of the space that is written to: it need not matter that another space knows the name."""
        place = (self._scope.owner, "" if self._scope.owner else self._scope.chat or "")
        return [each for each in found if (each.owner, each.chat) == place]

    def _known(self, name: str) -> Entity | None:
        if (new := self._new_names.get(tuple(name_words(name)))) is not None:
            return self._new[new]
        found = self._named_in_store(name)
        if found.by == "same" and not found.is_clear and len(own := self._of_own_space(found.entities)) == 1:
            return own[0]
        if found.by in ("same", "relation") and not found.is_clear:
            several = told_apart(found.entities)
            raise InvalidError(f"about: {name!r} may be any of {several}", hint="give the name or the id")
        if found.by == "same":
            return found.entities[0]
        if found.by == "form" and all(looks_nominative(word) for word in name_words(name)):
            return None  # "Александра" is a woman's name in the nominative, not the genitive of "Александр"
        return found.entities[0] if found.is_clear else None

    def _make(self, name: str) -> Entity:
        if (bearer := self.bearer(name)) is not None:
            return bearer
        entity = self.guess(name, self._types.get(folded_name(name), _type_by_words(name)))
        if predicate := relation_named(name):  # such as "my wife", whose name is not known yet
            self.relate(predicate, entity)
        return entity

    def bearer(self, name: str) -> Entity | None:
        """Return the known person that a new name with a title means, and learn the name: "Dr. Bell" is Bell, but "Mrs.
        Lee" is not "Mr. Lee", and "Uncle Bob" is no colleague. None if there is none.
        """
        titles, bare = split_title(name)
        known = self.known(bare) if titles else None
        known = None if known is None else self._put.get(known.id, known)
        if known is None or known.type != "person" or self._has_another_title(known, titles, bare):
            return None
        own = {relation.predicate for relation in self._own_open_with(known)}
        kin = {relation for title in titles if (relation := known_relation(title))}
        if own and kin and own.isdisjoint(kin):
            return None
        self.add_aliases(known, (name,))
        return self._found.get(name, known)

    def _has_another_title(self, known: Entity, titles: frozenset[str], bare: str) -> bool:
        named = [split_title(each) for each in (known.name, *known.aliases)]
        held = [its for its, rest in named if its and folded_name(rest) == folded_name(bare)]
        return any(not (its <= titles or its >= titles) for its in held)

    def _bare_name(self, name: str) -> tuple[str, ...]:
        """Return a new person's name without its title, as an alias. Two of one surname share it, but "Uncle Bob" does
        not share the name of Bob.
        """
        titles, bare = split_title(name)
        is_kin = any(known_relation(title) for title in titles)
        return (bare,) if titles and not (is_kin and self.is_taken(bare)) else ()

    def is_taken(self, name: str) -> bool:
        """Return whether one or several entities have a name."""
        with contextlib.suppress(InvalidError):
            return self.find(name) is not None
        return True

    def add_aliases(self, entity: Entity, names: Sequence[str]) -> None:
        """Add those names to an entity that no entity has; they resolve to it from then on."""
        fresh = [name for name in dict.fromkeys(names) if name_key(name) and self.find_any((name,)) is None]
        if fresh:
            held = self._new if entity.id in self._new else self._put
            now = held.get(entity.id, entity)
            held[entity.id] = replace(now, aliases=(*now.aliases, *fresh), last_updated=from_ms(self._now))
            self._note_new(held[entity.id])
            self._found |= dict.fromkeys(fresh, held[entity.id])

    def add(self, entity: Entity) -> None:
        self._new[entity.id] = entity
        self._note_new(entity)

    def _note_new(self, entity: Entity) -> None:
        """Index the names of an entity that this change adds; the first entity with a name keeps it."""
        if entity.id in self._new:
            for each in (entity.name, *entity.aliases):
                self._new_names.setdefault(tuple(name_words(each)), entity.id)

    def guess(self, name: str, type: EntityType) -> Entity:
        """Add an entity with a guessed type, which may be corrected later."""
        aliases = self._bare_name(name) if type == "person" else ()
        guessed = {GUESSED_TYPE: True}
        entity = new_entity(name, scope=self._scope, now=self._now, type=type, aliases=aliases, attributes=guessed)
        self.add(entity)
        return entity

    def introduced(self, given: Introduction) -> Entity:
        """Return a new entity as introduced. Raises InvalidError."""
        aliases = (*given.aliases, *(self._bare_name(given.name) if given.type == "person" else ()))
        return new_entity(given.name, scope=self._scope, now=self._now, type=given.type, aliases=aliases)

    def alter(self, entity: Entity) -> None:
        """Update an entity that is stored or that this change adds."""
        (self._new if entity.id in self._new else self._put)[entity.id] = entity
        self._note_new(entity)

    def name_all(self, texts: Sequence[str]) -> None:
        """Add the unknown people that texts clearly name, and correct guessed types."""
        for named in entities_named(texts):
            self._types[folded_name(named.name)] = named.type
            try:
                known = self.find(named.name)
            except InvalidError:
                continue
            if known is None and self.bearer(named.name) is not None:
                continue
            if known is None and named.type == "person" and not self._is_part_of_known(named.name):
                self.guess(named.name, named.type)
            elif known is None:
                continue
            elif known.type != named.type and known.attributes.get(GUESSED_TYPE) and known.type == "person":
                self.alter(replace(known, type=named.type, last_updated=from_ms(self._now)))

    def _is_part_of_known(self, name: str) -> bool:
        """Return whether a name may be short for a known person's; if so, it stays unresolved."""
        word = folded_name(name)
        fresh = (known for each in self._new.values() for known in (each.name, *each.aliases))
        return any(word in name_words(known)[:-1] for known in fresh) or bool(
            self._snapshot.entities.begun_by(self._scope, [word])
        )

    def relate(
        self,
        predicate: str,
        target: Entity,
        *,
        evidence: Sequence[str] = (),
        source: Entity | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        may_end: bool = True,
        takes_over: bool = False,
    ) -> None:
        """Relate the owner, or `source`, to `target`; or add dates and evidence to a known one.

        A nameless entity, such as "my wife", is merged into the target. If one has only one such relation at a time,
        such as a wife, the new one ends the previous one; with `may_end=False` it is not added while one is open. An
        imported message ends only what earlier imported messages state. With `takes_over`, the new one also ends the
        only other one of a kind that may have several holders, such as a dentist.
        """
        whose = None if source is None else source.id
        at = self._imported_at(evidence)
        if source is None:
            stored: Sequence[Relation] = self._snapshot.entities.open_relations(self._scope, predicate)
        else:
            stored = self._snapshot.entities.relations(source.key) if source.key else ()
        known_so_far = (self._altered.get(each.id, each) for each in (*stored, *self._relations))
        kind = (predicate, whose, None)
        present = [each for each in known_so_far if (each.predicate, each.source, each.valid_until) == kind]
        if known := self._same(predicate, target, whose, end=end, at=at):
            if at is None or not known.key:  # an import repeats what is stored without depending on it
                self._extend(known, start=start, end=end, evidence=evidence)
            return
        is_single = end is None and (predicate in SINGLE or (takes_over and may_end and len(present) == 1))
        if is_single and at is not None:
            may_end = may_end and all(self._is_outdated(each, at) for each in present)
            if present and not may_end:
                return
        for each in present:
            nameless = self._snapshot.entities.by_id(self._scope, each.target)
            if nameless is not None and relation_named(nameless.name) == predicate:
                self._name(nameless, target, each, evidence=evidence)
                return
        if is_single:
            if present and not may_end:
                return
            at = at or from_ms(self._now)
            start = start or (at if present else None)
            for each in present:
                self._altered[each.id] = replace(each, valid_until=at)
        self._relations.append(
            Relation(
                id=new_id(self._now),
                predicate=predicate,
                target=target.id,
                source=whose,
                valid_from=start,
                valid_until=end,
                evidence=tuple(evidence),
                created_at=from_ms(self._now),
                owner=target.owner,
                chat=target.chat,
            )
        )

    def _imported_at(self, evidence: Sequence[str]) -> datetime | None:
        """Return when the latest of some memories was said, if all are imported; None if not, or if there are none."""
        said = [self._said.get(each) or self._snapshot.nodes.get(self._scope, each) for each in evidence]
        times = [node.event_time for node in said if node is not None and node.origin == "import"]
        return max(times) if times and len(times) == len(said) else None

    def _is_outdated(self, known: Relation, at: datetime) -> bool:
        """Return whether a relation rests only on imported memories from before a time."""
        said = self._imported_at(known.evidence)
        return said is not None and said < at

    def _same(
        self, predicate: str, target: Entity, whose: str | None, *, end: datetime | None, at: datetime | None
    ) -> Relation | None:
        """Return a known relation to the same entity: an open one, one that ended after `at` or, given an end, any."""
        stored = self._snapshot.entities.relations(target.key) if target.key else ()
        known = [self._altered.get(each.id, each) for each in (*self._relations, *stored)]
        same = [each for each in known if (each.predicate, each.target, each.source) == (predicate, target.id, whose)]
        return next(
            (each for each in same if (ended := each.valid_until) is None or end or (at is not None and at < ended)),
            None,
        )

    def _extend(
        self, known: Relation, *, start: datetime | None, end: datetime | None, evidence: Sequence[str]
    ) -> None:
        """Add dates and evidence to a known relation. Raises InvalidError if it would end before it begins."""
        altered = replace(
            known,
            valid_from=start or known.valid_from,
            valid_until=end or known.valid_until,
            evidence=_enough(tuple(dict.fromkeys((*known.evidence, *evidence)))),
        )
        check_period(altered.valid_from, altered.valid_until)
        if altered != known:
            self._altered[known.id] = altered

    def _name(self, nameless: Entity, target: Entity, relation: Relation, *, evidence: Sequence[str]) -> None:
        """Merge a nameless entity, such as "my wife", into `target`, and let the relation lead there."""
        at = from_ms(self._now)
        for each in self._snapshot.entities.members(self._scope, nameless.key):
            self._put[each.id] = replace(
                each, aliases=(), closed_at=each.closed_at or at, merged_into=target.id, last_updated=at
            )
        said_by = (*relation.evidence, *evidence)
        self._altered[relation.id] = replace(relation, target=target.id, evidence=said_by)

    def note_own_names(self, facts: Sequence[Node]) -> None:
        """Note the names that facts of this change give the owner, whatever the order of the facts."""
        owner = self._scope.owner
        for node in facts:
            is_owners = is_owners_word(node.role, node.origin, node.speaker, owner=owner) or _is_noted(node)
            if owner and is_owners and node.is_live and (named := stated_own_names(node.content)):
                self._owner_names = tuple(dict.fromkeys((*self.owner_names, *named)))

    def learn_relations(self, node: Node, *, owner: str) -> list[Entity]:
        """Learn the relations that a node states of the owner or a known speaker; return the people related to them."""
        # In a fact that an agent notes for the user, "my wife" is the user's wife.
        is_noted = _is_noted(node)
        if not is_noted and not is_persons_word(node.role, node.origin):
            return []
        is_owners = is_owners_word(node.role, node.origin, node.speaker, owner=owner) or (is_noted and bool(owner))
        if node.chat and not node.speaker:
            return []
        is_fact = is_owners and node.type != "episodic"
        if is_fact and (named := stated_own_names(node.content)):
            self._learn_named(named)
        names = self.owner_names if is_fact and may_state_relation(node.content) else None
        said = stated_relations(node.content, own_names=names)
        source = self.known(node.speaker) if said and node.speaker and not is_owners else None
        if not is_owners and source is None:
            return []
        if node.origin == "import":
            self._said[node.id] = node
        heard = self._relate_all(said, node, source=source, may_end=not is_noted)
        if is_owners:
            self._end_relations(node)
        return heard

    def replace_relations(self, node: Node, replaced: Collection[str]) -> None:
        """Learn the owner's relations from an agent's note that replaces facts: a relation of the same kind to somebody
        else has ended if no other live memory states it.
        """
        if not _is_noted(node):
            return
        own_names = self.owner_names if may_state_relation(node.content) else None
        said = {each.predicate for each in stated_relations(node.content, own_names=own_names)}
        at, told = from_ms(self._now), {*replaced, node.id}
        ended = [each for kind in said for each in self._own_open(kind) if self._rests_on(each, told)]
        for known in ended:
            if node.id not in known.evidence:
                self._altered[known.id] = replace(known, valid_until=at)
        self.learn_relations(node, owner=self._scope.owner)

    def _rests_on(self, known: Relation, told: Collection[str]) -> bool:
        """Return whether the live memories that state a relation are all among some."""
        others = [self._snapshot.nodes.get(self._scope, each) for each in known.evidence if each not in told]
        return bool(known.evidence) and not any(node is not None and node.is_live for node in others)

    def _relate_all(self, said: Sequence[Stated], node: Node, *, source: Entity | None, may_end: bool) -> list[Entity]:
        heard = []
        for stated in said:
            is_pet = stated.predicate in NOT_PEOPLE
            type = _PET if is_pet else _type_by_words(stated.name)
            entity = self._namesake(stated, source=source) if type == "person" else None
            entity = entity or self._stated(stated, type)
            if entity is None or (entity.type == _PET) != is_pet or (source is not None and source.id == entity.id):
                continue
            self.relate(
                stated.predicate if source is not None else self._predicate_of(stated, entity),
                entity,
                evidence=[node.id],
                source=source,
                may_end=may_end,
                takes_over=takes_over(stated),
            )
            if not is_pet:  # "My dog is called Rex" is about the speaker
                heard.append(entity)
        return heard

    def _predicate_of(self, stated: Stated, entity: Entity) -> str:
        """Return how somebody is related to the owner: a friend if the word means that, too, and a partner is known."""
        if stated.predicate not in COUPLE or not may_be_a_friend(stated):
            return stated.predicate
        others = (each for kind in COUPLE if kind != stated.predicate for each in self._own_open(kind))
        return "friend" if any(each.target != entity.id for each in others) else stated.predicate

    def _namesake(self, stated: Stated, *, source: Entity | None) -> Entity | None:
        """Return the person of a first name whose relation is stated, if others of the name are known by the relation:
        a new one if a relative and somebody else have it. None if the name alone tells who is meant.
        """
        if stated.title or " " in stated.name or (stated.is_told and stated.sentence.startswith(stated.name)):
            return None  # "Sarah is my boss" is about the Sarah who is known
        bearers = {each.id: each for each in self._bearers(stated.name)}
        held = {id: self._relations_with(each, source=source) for id, each in bearers.items()}
        alike = [id for id in held if any(are_alike(stated.predicate, each) for each in held[id])]
        fitting = alike or [id for id in held if not any(are_of_two(stated.predicate, each) for each in held[id])]
        if held and not fitting:
            return self.guess(stated.name, "person")
        return bearers[fitting[0]] if len(fitting) == 1 else None

    def _bearers(self, name: str) -> list[Entity]:
        """Return the people of a name, stored or added by this change."""
        found = self._named_in_store(name)
        stored = found.entities if found.by == "same" else [known] if (known := self._known_clearly(name)) else []
        new = [each for each in self._new.values() if likeness(name, each.name) == "same"]
        every = (self._put.get(each.id, each) for each in (*(self._of_own_space(stored) or stored), *new))
        return [each for each in every if each.type == "person"]

    def _known_clearly(self, name: str) -> Entity | None:
        with contextlib.suppress(InvalidError):
            return self._known(name)
        return None

    def _relations_with(self, other: Entity, *, source: Entity | None) -> set[str]:
        """Return the relations of the owner, or of `source`, to a person, present and past."""
        stored = self._snapshot.entities.relations(other.key) if other.key else ()
        whose = None if source is None else source.id
        own = [each for each in (*stored, *self._relations) if (each.target, each.source) == (other.id, whose)]
        return {each.predicate for each in own}

    def _stated(self, stated: Stated, type: EntityType) -> Entity | None:
        """Return the one whose relation is stated; a new one has the name without the title, unless another has it."""
        titled = f"{stated.title} {stated.name}".lstrip()
        if not stated.title or (self.find_any((titled,)) is None and not self.is_taken(stated.name)):
            entity = self.typed(stated.name, type, is_certain=False)
            if entity is not None and stated.title:
                self.add_aliases(entity, (titled,))
            return entity
        return self.typed(titled, type, is_certain=False)

    def _learn_named(self, names: Sequence[str]) -> None:
        """Learn the relations that earlier facts state of the owner by a name that is known only now."""
        stems = [(stem,) for stem in content_words(" ".join(names))]
        place = Scope.of(self._scope.owner, "")
        found = self._snapshot.nodes.facts_with(self._scope.owner, "", stems, most=_MOST_NAMED)
        for node in self._snapshot.nodes.by_key(place, found).values():
            if node.is_live and node.speaker is None and may_state_relation(node.content):
                said = stated_relations(node.content, own_names=names)
                self._relate_all(said, node, source=None, may_end=False)

    def _end_relations(self, node: Node) -> None:
        """End the relations of the owner that a node says have ended."""
        for ended in ended_relations(node.content):
            meant = None if ended.name is None else self.find_any((ended.name,))
            if ended.name is not None and meant is None:
                continue
            open_ = [each for predicate in ended.predicates for each in self._own_open(predicate)]
            if ended.by_death and meant is not None:
                open_ = self._own_open_with(meant)
            elif meant is None and len(open_) > 1:  # "my friend died", of several
                continue
            for known in open_:
                is_told = node.origin != "import" or self._is_outdated(known, node.event_time)
                if is_told and (meant is None or known.target == meant.id):
                    end = max(node.event_time, known.valid_from or node.event_time)
                    said_by = tuple(dict.fromkeys((*known.evidence, node.id)))
                    self._altered[known.id] = replace(known, valid_until=end, evidence=said_by)

    def _own_open(self, predicate: str) -> list[Relation]:
        """Return the owner's open relations of a kind, stored or added by this change."""
        stored = self._snapshot.entities.open_relations(self._scope, predicate)
        known = [self._altered.get(each.id, each) for each in (*stored, *self._relations)]
        return [each for each in known if (each.predicate, each.source, each.valid_until) == (predicate, None, None)]

    def _own_open_with(self, other: Entity) -> list[Relation]:
        """Return the owner's open relations to an entity that its death ends."""
        stored = self._snapshot.entities.relations(other.key) if other.key else ()
        known = [self._altered.get(each.id, each) for each in (*stored, *self._relations)]
        open_ = [each for each in known if (each.target, each.source, each.valid_until) == (other.id, None, None)]
        return [each for each in open_ if each.predicate not in LASTING]

    @property
    def owner_names(self) -> tuple[str, ...]:
        """The names by which statements may call the owner."""
        if self._owner_names is None:
            self._owner_names = names_of_owner_alone(self._snapshot, self._scope.owner)
        return self._owner_names

    def learn_aliases(self, node: Node) -> None:
        """Relate known entities that a person says are the same; `find_duplicates` proposes to merge them."""
        if is_persons_word(node.role, node.origin):
            for pair in stated_aliases(node.content):
                self.note_same([entity for name in pair if (entity := self.find_any((name,)))], evidence=[node.id])

    def note_same(self, entities: Sequence[Entity], *, evidence: Sequence[str]) -> None:
        """Relate the first of some entities to each other one, as the same."""
        for other in {each.id: each for each in entities[1:]}.values():
            if other.id != entities[0].id:
                self.relate(SAME, other, source=entities[0], evidence=evidence)

    def subjects_of(self, node: Node) -> list[tuple[str, Entity]]:
        """Return (name used, entity) for each subject of a statement: the ones given; else the people whose relation it
        states; else, in a chat, the person who says it of themselves; else the known names it begins with ("Anna's
        sister ..." is not about Anna).
        """
        is_own = bool(node.chat and node.speaker) and is_of_one_member(node.content)
        is_own = is_own and topics(in_first_person(node.content)).names_speaker  # "Dad hates carp" is about Dad
        own = self.named_clearly(node.speaker or "") if is_own and not reporter(node.speaker) else None
        heard = self.learn_relations(node, owner=self._scope.owner)
        if node.origin in _NAMING:
            self.name_all([node.content])
        self.learn_aliases(node)
        if about := [name for name in node.about if not reporter(name)]:
            named = {folded_name(entity.name): entity for entity in heard}
            return [(name, named.get(folded_name(name)) or self.named(name)) for name in about]
        if heard:
            return [(entity.name, entity) for entity in heard]
        if own is not None:
            return [(own.name, own)]
        found = [(name, self.known(name) or self.bearer(name)) for name in plain_subjects(node.content)]
        return [(name, entity) for name, entity in found if entity is not None]

    def extend(self, change: Change) -> Change:
        """Return the change with all entities and relations collected so far."""
        return replace(
            change,
            entities=(*change.entities, *self._new.values()),
            put_entities=(*change.put_entities, *self._put.values()),
            relations=(*change.relations, *(self._altered.get(each.id, each) for each in self._relations)),
            put_relations=(*change.put_relations, *(each for each in self._altered.values() if each.key)),
        )


def _enough(evidence: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first and the latest of the memories that state a relation, because there may be thousands."""
    return (*evidence[:1], *evidence[1:][1 - _MOST_EVIDENCE :])


def _is_noted(node: Node) -> bool:
    """Return whether a node is a fact that an agent notes for the user."""
    return node.type != "episodic" and node.origin == "agent" and node.speaker is None


def _is_persons_name(speaker: str) -> bool:
    """Return whether a speaker is a person's name, and not an account, a number or a role."""
    if len(speaker) > _MAX_SPEAKER_CHARS or _NO_NAME.search(speaker) or not name_key(speaker) or reporter(speaker):
        return False
    is_mixed = any(word.islower() for word in speaker.split()) and not speaker.islower()
    is_part = speaker.casefold() in self_words() or speaker.casefold() in _ROLES
    return not is_part and not (is_mixed and _PARTICLES.isdisjoint(speaker.split()))


def with_people(snapshot: Snapshot, change: Change, *, scope: Scope, heard: Mapping[str, str]) -> Change:
    """Return a change with its named speakers and stated relations. `heard`: shortened texts to read, by node id."""
    homes: dict[Scope, EntityResolver] = {}

    def people_of(home: Scope, node: Node) -> EntityResolver:
        return homes.setdefault(home, EntityResolver(snapshot, scope=home, now=to_ms(node.created_at)))

    for node in {(node.owner, node.chat, node.speaker): node for node in change.add if node.speaker}.values():
        if _is_another_person(node, owner=scope.owner):
            people_of(scope_of(node.owner, node.chat), node).named_clearly(node.speaker or "")
    for node in (replace(node, content=heard[node.id]) if node.id in heard else node for node in change.add):
        if may_state_relation(node.content) or may_end_relation(node.content):
            is_owners = is_owners_word(node.role, node.origin, node.speaker, owner=scope.owner)
            home = scope_of(scope.owner, "") if is_owners else scope_of(node.owner, node.chat)
            people_of(home, node).learn_relations(node, owner=scope.owner)
        if may_state_alias(node.content):
            people_of(scope_of(node.owner, node.chat), node).learn_aliases(node)
    for people in homes.values():
        change = people.extend(change)
    return change


def _is_another_person(node: Node, *, owner: str) -> bool:
    """Return whether a message was said by a named person other than the owner."""
    is_owners = is_owners_word(node.role, node.origin, node.speaker, owner=owner)
    return is_persons_word(node.role, node.origin) and not is_owners and _is_persons_name(node.speaker or "")


def add_entity(
    snapshot: Snapshot, entity: Entity, *, relation: str | None, scope: Scope, now: int
) -> tuple[Change, Entity]:
    """Add an entity, and its relation to the owner if one is given.

    If it is known, new names and a new relation are added, and a guessed type is replaced.

    Raises:
        ConflictError: an entity with that name and type exists, and nothing new is given.
        InvalidError: the relation is blank or too long.
    """
    people = EntityResolver(snapshot, scope=scope_of(entity.owner, entity.chat), now=now)
    known = _addressed(snapshot, scope, entity)
    if known is None:
        people.add(entity)
    else:
        fresh = [each for each in entity.aliases if each not in (known.name, *known.aliases)]
        is_same = known.type == entity.type and not known.attributes.get(GUESSED_TYPE)
        if is_same and not fresh and relation is None and entity.protected <= known.protected:
            raise ConflictError(f"{entity.name} is already known", hint=f"its id is {known.id}")
        entity = replace(
            known,
            type=entity.type,
            aliases=(*known.aliases, *fresh),
            protected=known.protected or entity.protected,
            attributes=_with_stated_type(known.attributes),
            last_updated=from_ms(now),
        )
        people.alter(entity)
    predicate = short_name(relation, name="relation")
    if predicate is not None:
        people.relate(predicate_of(predicate), entity)
    change = people.extend(Change())
    return change, entity if predicate is None else replace(entity, relation=predicate_of(predicate))


def _addressed(snapshot: Snapshot, scope: Scope, entity: Entity) -> Entity | None:
    """Return the known entity with the same name and with the same or a guessed type."""
    found = snapshot.entities.named(scope, entity.name)
    same = found.entities if found.by == "same" else ()
    exact = [each for each in same if each.type == entity.type]
    guessed = [each for each in same if each.attributes.get(GUESSED_TYPE)]
    return next(iter([*exact, *guessed]), None)


def _with_stated_type(attributes: Json) -> Json:
    return {name: value for name, value in attributes.items() if name != GUESSED_TYPE}


def update_entity(
    snapshot: Snapshot,
    name: str,
    *,
    scope: Scope,
    now: int,
    type: EntityType | None,
    aliases: Sequence[str],
    attributes: Json | None,
    protected: bool | None,
) -> tuple[Change, Entity]:
    """Change a known entity. Given values replace stored ones; aliases are added.

    Raises:
        NotFoundError: no entity has that name.
        InvalidError: the name may mean several entities, nothing is given, or a field is invalid.
    """
    if type is None and not aliases and attributes is None and protected is None:
        raise InvalidError("nothing to change is given", hint="give type, aliases, attributes or protected")
    known = find_entity(snapshot, scope, name)
    fresh = [each for each in aliases if each not in (known.name, *known.aliases)]
    given = known.attributes if attributes is None else attributes
    altered = replace(
        known,
        type=known.type if type is None else type,
        aliases=(*known.aliases, *fresh),
        attributes=given if type is None else _with_stated_type(given),
        protected=known.protected if protected is None else protected,
    )
    if altered == known:
        return Change(), known
    altered = replace(altered, last_updated=from_ms(now))
    return Change(put_entities=(altered,)), altered


def check_is_no_owner(name: str, scope: Scope) -> None:
    """Raise InvalidError for a new entity that is called "me" or "the user"."""
    if scope.owner and means_owner(name):
        raise InvalidError(
            f"name: {name!r} means the user, who needs no entity",
            hint="remember facts about the user without `about`, and their name with: My name is ...",
        )


def check_period(start: datetime | None, end: datetime | None) -> None:
    """Raise InvalidError if a relation would end before it begins or at the same time."""
    if start is not None and end is not None and end <= start:
        raise InvalidError(
            f"valid_until: {end.isoformat()} is not after valid_from, {start.isoformat()}",
            hint="a relation must end after it begins",
        )


def add_relation(
    snapshot: Snapshot,
    source: str | None,
    predicate: str,
    target: str,
    *,
    scope: Scope,
    now: int,
    start: datetime | None,
    end: datetime | None,
    evidence: Sequence[str] = (),
) -> tuple[Change, None]:
    """Add a relation from `source` (None: the owner) to `target`, or extend a known one.

    Args:
        evidence: ids of memories that state the relation.

    Raises:
        NotFoundError: a name or a memory is unknown.
        InvalidError: the predicate is blank or too long, the end is not after the start, or both are the same entity
            or belong to different owners or chats.
    """
    check_period(start, end)
    source = None if source is not None and scope.owner and means_owner(source) else source
    shown = [snapshot.nodes.known(scope, each).id for each in evidence]
    label = predicate_of(short_name(predicate, name="predicate") or "")
    one = None if source is None else find_entity(snapshot, scope, source, by_part=True)
    other = find_entity(snapshot, scope, target, by_part=True)
    if one is not None and (one.id == other.id or (one.owner, one.chat) != (other.owner, other.chat)):
        raise InvalidError(
            f"target: {other.name} cannot be related to {one.name}", hint="give two entities of the same owner or chat"
        )
    people = EntityResolver(snapshot, scope=scope_of(other.owner, other.chat), now=now)
    people.relate(label, other, source=one, start=start, end=end, evidence=shown)
    return people.extend(Change()), None


def find_entity(snapshot: Snapshot, scope: Scope, name: str, *, by_part: bool = False) -> Entity:
    """Return the entity with a name or an id, as given. Takes `by_part`, and raises, like `entity_meant`."""
    return entity_meant(snapshot, scope, short_name(name, name="name", rules=AS_GIVEN) or "", by_part=by_part)


def add_entities(
    snapshot: Snapshot,
    change: Change,
    introductions: Sequence[Introduction],
    assertions: Sequence[Assertion],
    *,
    scope: Scope,
    now: int,
) -> Change:
    """Return a change with the entities that its facts are about, and with introduced entities and relations.

    A name, an alias or "my wife" resolves to one entity; a name that may mean several people is dropped. Only the
    owner's own words state relations of the owner, and only a person's words relations between others: the words of
    tools and web pages state none.

    Args:
        scope: the scope of the conversation; only its entities are known.
    """
    people = EntityResolver(snapshot, scope=scope, now=now)
    for each in introductions:
        _introduce(people, each, snapshot=snapshot, scope=scope, now=now)
    for given in assertions:
        source, target = people.named_clearly(given.source), people.named_clearly(given.target)
        is_said = _are_said(snapshot, scope, given.evidence, by_owner=False)
        if source is not None and target is not None and source.id != target.id and is_said:
            people.relate(predicate_of(given.predicate), target, source=source, evidence=given.evidence[:1])
    added: list[Node] = []
    names: list[tuple[str, str, str]] = []
    for node in change.add:
        found = [(name, entity) for name in node.about if not reporter(name) and (entity := people.named_clearly(name))]
        names += [(node.id, entity.id, folded_name(name)) for name, entity in found]
        added.append(replace(node, about=tuple(dict.fromkeys(entity.name for _, entity in found))))
    return people.extend(with_subjects(replace(change, add=tuple(added)), names))


def with_more_subjects(snapshot: Snapshot, node: Node, names: Sequence[str], *, now: int) -> tuple[Change, Node]:
    """File a memory under more people and things; unknown ones are added."""
    people = EntityResolver(snapshot, scope=scope_of(node.owner, node.chat), now=now)
    found = [(name, people.named(name)) for name in names]
    known = set(snapshot.nodes.subjects(node.key))
    more = [(node.id, entity.id, folded_name(name)) for name, entity in found if entity.id not in known]
    about = tuple(dict.fromkeys((*node.about, *(entity.name for _, entity in found))))
    return people.extend(with_subjects(Change(), more)), replace(node, about=about)


def subjects_of_correction(snapshot: Snapshot, scope: Scope, old: Node, text: str) -> list[Entity]:
    """Return what a memory is still about under other words: not the former landlord or contact if they name another
    one, and no name that they deny.
    """
    ids = snapshot.nodes.subjects(old.key)
    about = [each for each in (snapshot.entities.by_id(scope, id) for id in ids) if each is not None]
    said = without_denied_names(text)
    names_another = may_state_relation(text) or bool(names_instead(old.content, said, _names_of(about)))
    if said == text and not names_another:
        return about
    before, after = set(index_terms(old.content)), set(index_terms(said))
    return [each for each in about if not _is_named_in(before, each) or _is_named_in(after, each)]


def with_people_of_correction(snapshot: Snapshot, change: Change, *, old: Node) -> tuple[Change, Node]:
    """Return the change of a correction with the relations that it states, and the new version with their people.
    Relations that only the former version stated, of people that it is no longer about, end.
    """
    (new,) = change.add
    home = scope_of(new.owner, new.chat)
    people = EntityResolver(snapshot, scope=home, now=to_ms(new.created_at))
    found = people.subjects_of(new)
    kept = {entity for _, entity in change.subjects}
    former = [snapshot.entities.by_id(home, each) for each in snapshot.nodes.subjects(old.key)]
    gone = [each for each in former if each is not None and each.id not in kept]
    said = without_denied_names(new.content)
    if change.subjects or not found:
        found = [(name, people.named(name)) for name in names_instead(old.content, said, _names_of(gone))]
    if found and new.type != "episodic":
        new = replace(new, about=tuple(dict.fromkeys((*new.about, *(entity.name for _, entity in found)))))
        change = _with_added_subjects(change, [(new.id, entity.id, folded_name(name)) for name, entity in found])
    change = people.extend(replace(change, add=(new,)))
    kept |= {entity for _, entity in change.subjects}
    altered = {each.id for each in change.put_relations}
    ended = [
        replace(relation, valid_until=new.valid_from)
        for entity in gone
        if entity.id not in kept
        for relation in snapshot.entities.relations(entity.key)
        if relation.evidence == (old.id,) and relation.valid_until is None and relation.id not in altered
    ]
    return replace(change, put_relations=(*change.put_relations, *ended)), new


def _names_of(entities: Iterable[Entity]) -> list[str]:
    return [name for each in entities for name in (each.name, *each.aliases)]


def _is_named_in(terms: set[str], entity: Entity) -> bool:
    """Return whether the index terms of a text hold a whole name of an entity."""
    return any(terms.issuperset(index_terms(name)) for name in (entity.name, *entity.aliases))


def _with_added_subjects(change: Change, names: Sequence[tuple[str, str, str]]) -> Change:
    """Return the change with subjects beside those that it has, given as for `with_subjects`."""
    added = with_subjects(change, names)
    subjects = tuple(dict.fromkeys((*change.subjects, *added.subjects)))
    return replace(added, subjects=subjects, subject_names=(*change.subject_names, *added.subject_names))


def with_subjects(change: Change, names: Sequence[tuple[str, str, str]]) -> Change:
    """Return the change with subjects, given as (node id, entity id, folded name used)."""
    subjects = dict.fromkeys((node_id, entity_id) for node_id, entity_id, _ in names)
    return replace(change, subjects=tuple(subjects), subject_names=tuple(names))


def _introduce(people: EntityResolver, given: Introduction, *, snapshot: Snapshot, scope: Scope, now: int) -> None:
    entity = people.find_any((given.name, *given.aliases)) or people.bearer(given.name)
    if entity is None and people.is_taken(given.name):  # by several
        return
    if entity is None:
        try:
            entity = people.introduced(given)
        except InvalidError:
            return
        people.add(entity)
    else:
        if _are_said(snapshot, scope, given.evidence, by_owner=False):
            named = [found for name in (given.name, *given.aliases) if (found := people.find_any((name,)))]
            people.note_same([entity, *named], evidence=given.evidence[:1])
        people.add_aliases(entity, (given.name, *given.aliases))
    if not given.relation:
        return
    if _are_said(snapshot, scope, given.evidence, by_owner=True):
        people.relate(predicate_of(given.relation), entity, evidence=given.evidence[:1])
    elif (speaker := _speaker(people, snapshot, scope, given.evidence)) is not None and speaker.id != entity.id:
        people.relate(predicate_of(given.relation), entity, evidence=given.evidence[:1], source=speaker)


def _speaker(people: EntityResolver, snapshot: Snapshot, scope: Scope, evidence: Sequence[str]) -> Entity | None:
    """Return the one named person who said all of the evidence, so "my boss" is theirs; None if not exactly one."""
    nodes = [snapshot.nodes.get(scope, each) for each in evidence]
    names = {node.speaker if is_persons_word(node.role, node.origin) else None for node in nodes if node is not None}
    name = names.pop() if len(names) == 1 else None
    return None if name is None or reporter(name) else people.named_clearly(name)


def _are_said(snapshot: Snapshot, scope: Scope, evidence: Sequence[str], *, by_owner: bool) -> bool:
    """Return whether all messages are a person's own words or, if `by_owner`, the owner's."""
    for node in (snapshot.nodes.get(scope, each) for each in evidence):
        if node is None or not is_persons_word(node.role, node.origin):
            return False
        if by_owner and not is_owners_word(node.role, node.origin, node.speaker, owner=scope.owner):
            return False
    return bool(evidence)
