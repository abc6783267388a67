"""What conversations tell of people and things: the only place where entities are made of what a model found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ricordo.encoding.entities import People, new_entity
from ricordo.encoding.speakers import is_owners_word, is_persons_word
from ricordo.errors import InvalidError
from ricordo.model import Assertion, Change, Entity, Introduction, Node, Scope
from ricordo.storage import Snapshot
from ricordo.text.kinship import predicate_of
from ricordo.text.names import folded_name


def acquaint(
    snapshot: Snapshot,
    change: Change,
    introductions: Sequence[Introduction],
    assertions: Sequence[Assertion],
    *,
    scope: Scope,
    now: int,
) -> Change:
    """The change with whom its facts are about, in the entities they are, and with what is said of them.

    A name, an alias or "my wife" ends in one entity; a name that may mean several people names nobody. What somebody is
    to the owner is the owner's to say, and what others are to each other a person's: neither a tool's nor a page's.

    Args:
        scope: of the conversation; who is outside it is nobody here.
    """
    people = People(snapshot, scope=scope, now=now)
    for each in introductions:
        _introduce(people, each, snapshot=snapshot, scope=scope, now=now)
    for said in assertions:
        source, target = _named(people, said.source), _named(people, said.target)
        is_said = _are_said(snapshot, scope, said.evidence, by_owner=False)
        if source is not None and target is not None and source.id != target.id and is_said:
            people.relate(predicate_of(said.predicate), target, source=source, evidence=said.evidence[0])
    added: list[Node] = []
    names: list[tuple[str, str, str]] = []
    for node in change.add:
        found = [(name, entity) for name in node.about if (entity := _named(people, name))]
        names += [(node.id, entity.id, folded_name(name)) for name, entity in found]
        added.append(replace(node, about=tuple(dict.fromkeys(entity.name for _, entity in found))))
    subjects = tuple(dict.fromkeys((node_id, entity_id) for node_id, entity_id, _ in names))
    return people.into(replace(change, add=tuple(added), subjects=subjects, subject_names=tuple(names)))


def _introduce(people: People, given: Introduction, *, snapshot: Snapshot, scope: Scope, now: int) -> None:
    entity = _known(people, (given.name, *given.aliases))
    if entity is None:
        try:
            entity = new_entity(given.name, scope=scope, now=now, type=given.type, aliases=given.aliases)
        except InvalidError:
            return
        people.introduce(entity)
    if not given.relation:
        return
    if _are_said(snapshot, scope, given.evidence, by_owner=True):
        people.relate(predicate_of(given.relation), entity, evidence=given.evidence[0])
    elif (speaker := _speaker(people, snapshot, scope, given.evidence)) is not None and speaker.id != entity.id:
        people.relate(predicate_of(given.relation), entity, evidence=given.evidence[0], source=speaker)


def _speaker(people: People, snapshot: Snapshot, scope: Scope, evidence: Sequence[str]) -> Entity | None:
    """The one person with a name who said all of this, not the owner: "my boss" is theirs."""
    nodes = [snapshot.nodes.get(scope, each) for each in evidence]
    names = {node.speaker if is_persons_word(node.role, node.origin) else None for node in nodes if node is not None}
    name = names.pop() if len(names) == 1 else None
    return None if name is None else _named(people, name)


def _known(people: People, names: Sequence[str]) -> Entity | None:
    """Who is known by one of the names, by this change or before it."""
    for name in names:
        try:
            if (entity := people.found(name)) is not None:
                return entity
        except InvalidError:
            continue
    return None


def _named(people: People, name: str) -> Entity | None:
    try:
        return people.named(name)
    except InvalidError:
        return None


def _are_said(snapshot: Snapshot, scope: Scope, evidence: Sequence[str], *, by_owner: bool) -> bool:
    """Whether all messages are the owner's own words, or some person's."""
    nodes = [snapshot.nodes.get(scope, each) for each in evidence]
    return bool(nodes) and all(
        node is not None
        and is_persons_word(node.role, node.origin)
        and (not by_owner or is_owners_word(node.role, node.origin, node.speaker, owner=scope.owner))
        for node in nodes
    )
