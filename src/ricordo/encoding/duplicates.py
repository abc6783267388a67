"""Find entities that are probably the same person or thing, with the evidence. The user decides: see `reviews`.

Proposed are entities of one owner or chat
- whose names are the same in another spelling or script;
- of which one name is a part of the other ("Sarah", "Sarah Miller") or nearly the same ("Karin", "Karen"), if something
  ties them: a relation, a fact, an address, or somebody who is hardly named without them;
- that a memory, a relation or the consolidation calls the same, whatever their names are;
- that have an e-mail address in common which is made from the name of one of them.

Not proposed are entities
- of different types, or with different full names ("Sarah Miller", "Sarah Jones");
- with a relation to each other, which includes a refused proposal (`DISTINCT`);
- with different relations to the same person, or facts of which only one can be true;
- that one memory names beside each other;
- if the shorter name fits several longer ones equally well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Literal
from uuid import UUID, uuid5

from ricordo.clock import from_ms
from ricordo.encoding.entities import SAME, add_relation
from ricordo.encoding.entity_merge import merge
from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import GUESSED_TYPE, MERGE, Change, Decision, Entity, Node, Relation, Review, Scope
from ricordo.storage import Snapshot
from ricordo.storage.values import KnownName
from ricordo.text.analyzer import index_terms
from ricordo.text.languages import cached
from ricordo.text.name_match import NameForm, NameMatch, are_full_names_of_two, group_keys, match, name_form
from ricordo.text.names import MIN_SOUND_CHARS, folded_name, name_words, nominatives
from ricordo.text.statement import compare

DISTINCT = "distinct from"
"""The relation between two entities of which the user has refused a merge."""
_IDS = UUID("6f1c2c52-7a0c-4f6e-9d0b-5b1f4a1d5e37")
_SAME = (SAME, "alias", "alias of", "aka", "also known as", "nickname", "nickname of", "short for", "full name")

_MOST_IN_GROUP = 40
"""A name that as many others resemble says nothing."""
_MOST_LONGER = 3
"""A first name that more than so many people have says little."""
_MOST_PAIRS = 300
_FEW = 5
_MEMORIES = 40
_FACTS = 12
_CHARS = 2_000
_EVIDENCE = 3
_SHARE_OF_TIE = 1 / 3
"""Somebody is a tie if at least this part of the memories that name them also names one of the two."""

_STATED = "stated to be the same"
_ALIKE: Mapping[NameMatch, str] = {
    "spelling": "the same name in another spelling",
    "variant": "nearly the same name",
    "short": "one name is part of the other",
}
_SHORT = _ALIKE["short"]
_FACT = "the same fact"
_ROLE, _ADDRESS, _COMPANION = "the same relation: {}", "the same address: {}", "both with: {}"

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_SENTENCE_END = re.compile(r"[.!?\n]+")
_PHONE = re.compile(r"(?<![\w.-])\+?\d[\d ()/-]{7,30}\d(?![\w-])")
_ADDRESS_WORDS = ("email", "mail", "почта", "phone", "telefon", "телефон")


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """Two entities that are probably one, the one to keep first; why; and the memories that show it."""

    keep: Entity
    other: Entity
    reasons: tuple[str, ...]
    evidence: tuple[Node, ...]


def find_duplicates(snapshot: Snapshot, scope: Scope, *, now: int) -> list[Duplicate]:
    """Return the entities that are probably the same, those with the most reasons first."""
    names = snapshot.entities.all_names(scope)
    stated = {frozenset(pair) for pair in snapshot.entities.related_by(scope, _SAME)}
    addresses = _addresses(snapshot, scope, names)
    pairs = dict.fromkeys((*stated, *_sharing(addresses), *_with_alike_names(names)))
    found: dict[frozenset[int], Duplicate] = {}
    sides = _Sides(snapshot, scope, addresses, now=now)
    for pair in list(pairs)[:_MOST_PAIRS]:
        one, other = (sides.of(key) for key in sorted(pair))
        if one and other and (duplicate := _Pair(one, other, sides).duplicate(is_stated=pair in stated)):
            found[pair] = duplicate
    kept = [found[pair] for pair in found if pair in stated or not _is_unclear(pair, found)]
    return sorted(kept, key=lambda each: (-len(each.reasons), each.keep.id, each.other.id))


def proposed_merges(snapshot: Snapshot, scope: Scope, *, now: int) -> list[Review]:
    """Return a review for each pair of entities that are probably one. Reviews are not stored: only a decision is."""
    return [_review(each) for each in find_duplicates(snapshot, scope, now=now)]


def decide_merge(
    snapshot: Snapshot, scope: Scope, review_id: str, decision: Decision, *, now: int
) -> tuple[Change, Review]:
    """Merge two entities ("approve"), or record that they are distinct ("refuse").

    Raises:
        NotFoundError: the review does not exist, or no longer.
        InvalidError: the decision applies to pairs of facts only.
    """
    if decision not in ("approve", "refuse"):
        raise InvalidError(
            f"decision: {decision!r} applies only to two conflicting facts", hint="approve to merge, or refuse"
        )
    review = next((each for each in proposed_merges(snapshot, scope, now=now) if each.id == review_id), None)
    if review is None:
        raise NotFoundError(f"there is no review {review_id}", hint="`review` lists them")
    keep, other = (each.id for each in review.entities)
    decided = replace(review, decided_at=from_ms(now), decision=decision)
    if decision == "approve":
        change, kept = merge(snapshot, keep, other, scope=scope, now=now)
        return change, replace(decided, entities=(kept, review.entities[1]))
    change, _ = add_relation(snapshot, keep, DISTINCT, other, scope=scope, now=now, start=None, end=None)
    return change, decided


def _review(found: Duplicate) -> Review:
    keep, other = found.keep, found.other
    at = max(keep.first_seen, other.first_seen)
    question = Node(
        id="",
        type="semantic",
        content=f"{other.name} and {keep.name} are the same {keep.type}",
        event_time=at,
        created_at=at,
        valid_from=at,
        owner=keep.owner,
        chat=keep.chat,
        about=(keep.name, other.name),
    )
    return Review(
        id=f"{MERGE}{uuid5(_IDS, ' '.join(sorted((keep.id, other.id))))}",
        kind="merge",
        newer=question,
        older=None,
        created_at=at,
        owner=keep.owner,
        chat=keep.chat,
        reasons=found.reasons,
        about=question.about,
        entities=(keep, other),
        evidence=found.evidence,
    )


def _is_unclear(pair: frozenset[int], found: dict[frozenset[int], Duplicate]) -> bool:
    """Return whether the shorter name of a pair may also be short for another found entity."""
    if _SHORT not in found[pair].reasons:
        return False
    short = found[pair].other.key
    rivals = [each for other, each in found.items() if other != pair and short in other]
    return any(_SHORT in each.reasons and each.other.key == short for each in rivals)


# ---- pairs to look at


def _with_alike_names(names: Sequence[KnownName]) -> Iterator[frozenset[int]]:
    groups: defaultdict[str, dict[tuple[int, NameForm], None]] = defaultdict(dict)
    for each in names:
        form = name_form(each.name)
        for key in group_keys(form):
            groups[key][each.entity, form] = None
    longer: defaultdict[int, set[frozenset[int]]] = defaultdict(set)
    for group in groups.values():
        if len(group) > _MOST_IN_GROUP:
            continue
        for (one, form), (other, other_form) in combinations(group, 2):
            found = match(form, other_form) if one != other else None
            if found == "short":
                longer[one if len(form.words) < len(other_form.words) else other].add(frozenset((one, other)))
            elif found:
                yield frozenset((one, other))
    for pairs in longer.values():
        yield from sorted(pairs, key=sorted) if len(pairs) <= _MOST_LONGER else ()


def _addresses(snapshot: Snapshot, scope: Scope, names: Sequence[KnownName]) -> dict[int, set[str]]:
    """Return the e-mail addresses and phone numbers of entities: from their attributes, and from facts about them."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for each in names:
        if each.attributes != "{}":
            found[each.entity] |= _addresses_in(each.attributes)
    words = [index_terms(word) for word in _ADDRESS_WORDS]
    for owner, chat in dict.fromkeys(((scope.owner, ""), ("", scope.chat or ""))):
        for key, (content, _) in snapshot.nodes.facts_with(owner, chat, words, most=_MOST_PAIRS).items():
            subjects = snapshot.nodes.subjects(key) if (given := _addresses_in(content)) else []
            if len(subjects) == 1 and (entity := snapshot.entities.by_id(scope, subjects[0])) is not None:
                found[entity.key] |= given
    return found


def _addresses_in(text: str) -> set[str]:
    phones = (re.sub(r"\D", "", found) for found in _PHONE.findall(text))
    return {found.lower() for found in _EMAIL.findall(text)} | set(phones)


def _sharing(addresses: dict[int, set[str]]) -> Iterator[frozenset[int]]:
    """Yield the pairs of entities that share an address."""
    holders: defaultdict[str, set[int]] = defaultdict(set)
    for entity, given in addresses.items():
        for address in given:
            holders[address].add(entity)
    for entities in holders.values():
        if len(entities) <= _EVIDENCE:
            yield from map(frozenset, combinations(sorted(entities), 2))


# ---- what is known of each


@dataclass(kw_only=True)
class _Side:
    """One of two entities, with what is known of it."""

    entity: Entity
    forms: tuple[NameForm, ...]
    relations: tuple[Relation, ...]
    facts: tuple[Node, ...]
    mentions: tuple[Node, ...]
    addresses: frozenset[str]

    @property
    def names(self) -> tuple[str, ...]:
        return (self.entity.name, *self.entity.aliases)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(_read(node) for node in (*self.facts, *self.mentions))

    @property
    def spoke_in(self) -> set[str]:
        """The conversations in which it has spoken."""
        names = {folded_name(name) for name in self.names}
        return {node.session for node in self.mentions if node.session and folded_name(node.speaker or "") in names}

    @property
    def roles(self) -> dict[str | None, set[str]]:
        """Its open relations to each entity; None is the owner."""
        found: defaultdict[str | None, set[str]] = defaultdict(set)
        for each in self.relations:
            if each.valid_until is None and each.target == self.entity.id:
                found[each.source].add(each.predicate)
            elif each.valid_until is None:
                found[each.target].add(f"has {each.predicate}")
        return found


class _Sides:
    """The entities of a scope, each read once."""

    def __init__(self, snapshot: Snapshot, scope: Scope, addresses: dict[int, set[str]], *, now: int) -> None:
        self.snapshot = snapshot
        self.scope = scope
        self._addresses = addresses
        self._now = now
        self._read: dict[int, _Side | None] = {}

    def of(self, key: int) -> _Side | None:
        if key not in self._read:
            entities = self.snapshot.entities.by_key(self.scope, [key])
            self._read[key] = self._side(entities[0]) if entities else None
        return self._read[key]

    def _side(self, entity: Entity) -> _Side:
        return _Side(
            entity=entity,
            forms=tuple(form for name in (entity.name, *entity.aliases) if (form := name_form(name)).words),
            relations=self.snapshot.entities.relations(entity.key),
            facts=self._latest(entity, "subject"),
            mentions=self._latest(entity, "mention"),
            addresses=frozenset(self._addresses.get(entity.key, ())),
        )

    def _latest(self, entity: Entity, link: Literal["subject", "mention"]) -> tuple[Node, ...]:
        found = self.snapshot.entities.latest(entity.key, link, now=self._now, most=_MEMORIES)
        return tuple(self.snapshot.nodes.by_key(self.scope, [each.key for each in found]).values())


# ---- one pair


class _Pair:
    """Two entities beside each other: what ties them, and what keeps them apart."""

    def __init__(self, one: _Side, other: _Side, sides: _Sides) -> None:
        self._one, self._other = sorted((one, other), key=_worth, reverse=True)
        self._snapshot, self._scope = sides.snapshot, sides.scope
        self._alike = _best(match(mine, theirs) for mine in one.forms for theirs in other.forms)

    def duplicate(self, *, is_stated: bool) -> Duplicate | None:
        """Return the proposal to merge the two; None if too little ties them, or something keeps them apart."""
        one, other = self._one, self._other
        if (one.entity.owner, one.entity.chat) != (other.entity.owner, other.entity.chat) or self._is_refused():
            return None
        if is_stated:
            return self._proposal({_STATED: self._stated_in()})
        if self._are_apart() or (facts := self._shared_facts()) is None:
            return None
        ties = facts | self._shared_roles() | self._shared_addresses() | self._companions()
        if self._alike is None:
            return self._proposal(ties) if self._are_named_in_address() else None
        return self._proposal({_ALIKE[self._alike]: (), **ties}) if ties or self._is_one_name() else None

    def _proposal(self, reasons: Mapping[str, Sequence[Node]]) -> Duplicate:
        shown = {node.id: node for nodes in reasons.values() for node in nodes if node.is_live}
        return Duplicate(
            keep=self._one.entity,
            other=self._other.entity,
            reasons=tuple(reasons),
            evidence=tuple(shown.values())[:_EVIDENCE],
        )

    def _is_one_name(self) -> bool:
        """Return whether the names are so much the same that nothing else has to tie the two.

        A user who writes both Sara and Sarah again and again, in one script, knows two people.
        """
        one, other = self._one, self._other
        are_kept_apart = min(one.entity.mention_count, other.entity.mention_count) > _FEW and not any(
            form.is_full for side in (one, other) for form in side.forms
        )
        are_of_one_script = one.entity.name.isascii() == other.entity.name.isascii()
        return self._alike == "spelling" and not (are_kept_apart and are_of_one_script)

    def _between(self) -> list[Relation]:
        return [each for each in self._one.relations if self._other.entity.id in (each.source, each.target)]

    def _is_refused(self) -> bool:
        return any(each.predicate == DISTINCT for each in self._between())

    def _stated_in(self) -> list[Node]:
        ids = [each for relation in self._between() if relation.predicate in _SAME for each in relation.evidence]
        return [node for each in ids if (node := self._snapshot.nodes.get(self._scope, each)) is not None]

    def _are_apart(self) -> bool:
        one, other = self._one, self._other
        mine, theirs = one.roles, other.roles
        is_guess = any(each.entity.attributes.get(GUESSED_TYPE) for each in (one, other))
        return (
            bool(self._between())
            or (one.entity.type != other.entity.type and not is_guess)
            or are_full_names_of_two(one.forms, other.forms)
            or any(mine[whose].isdisjoint(theirs[whose]) for whose in mine.keys() & theirs.keys())
            or not one.spoke_in.isdisjoint(other.spoke_in)
            or any(self._names_both(text) for text in {*one.texts, *other.texts})
        )

    def _names_both(self, text: str) -> bool:
        """Return whether a text names both, and not one of them twice: "Vera (Вера)", "Anna Berg came. Anna ..."."""
        is_short = self._alike == "short"
        return any(self._names_two(part) for part in (_SENTENCE_END.split(text) if is_short else (text,)))

    def _names_two(self, text: str) -> bool:
        one, other = _places(text, self._one.names), _places(text, self._other.names)
        if not (_apart(one, other) and _apart(other, one)):
            return False
        names = ["|".join(map(re.escape, side.names)) for side in (self._one, self._other)]
        pair = rf"(?:{names[0]})\s*[(/=]\s*(?:{names[1]})|(?:{names[1]})\s*[(/=]\s*(?:{names[0]})"
        return re.search(pair, text, re.IGNORECASE) is None

    def _shared_facts(self) -> dict[str, list[Node]] | None:
        """Return facts that both have; None if some of their facts contradict each other."""
        found: list[Node] = []
        mine, theirs = (self._nameless(side.facts[-_FACTS:]) for side in (self._one, self._other))
        for (node, text), (each, other) in product(mine, theirs):
            if node.id == each.id:
                continue
            older, newer = (text, other) if node.created_at <= each.created_at else (other, text)
            verdict = compare(older, newer)
            if verdict in ("replaced", "conflict"):
                return None
            found += (node, each) if verdict == "same" else ()
        return {_FACT: found} if found else {}

    def _nameless(self, facts: Sequence[Node]) -> list[tuple[Node, str]]:
        names = sorted((*self._one.names, *self._other.names), key=len, reverse=True)
        pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)", re.IGNORECASE)
        return [(node, pattern.sub("X", node.content)) for node in facts]

    def _shared_roles(self) -> dict[str, list[Node]]:
        mine, theirs = self._one.roles, self._other.roles
        shared = [each for whose in mine.keys() & theirs.keys() for each in mine[whose] & theirs[whose]]
        return {_ROLE.format(each): [] for each in sorted(shared)}

    def _shared_addresses(self) -> dict[str, list[Node]]:
        return {_ADDRESS.format(each): [] for each in sorted(self._one.addresses & self._other.addresses)}

    def _are_named_in_address(self) -> bool:
        """Return whether a shared e-mail address is made from the name of one of them, so it is not an office's."""
        shared = self._one.addresses & self._other.addresses
        words = {word for side in (self._one, self._other) for name in side.names for word in name_words(name)}
        local = {part for each in shared if "@" in each for part in re.findall(r"[^\W\d_]+", each.partition("@")[0])}
        return not local.isdisjoint(word for word in words if len(word) >= MIN_SOUND_CHARS)

    def _companions(self) -> dict[str, list[Node]]:
        """Return who is named with both and hardly without them, and the memories that name them together."""
        own = [self._own_memories(self._one, self._other), self._own_memories(self._other, self._one)]
        both = {node.id for node in own[0]} & {node.id for node in own[1]}
        own = [[node for node in nodes if node.id not in both] for nodes in own]
        one, other = (self._named_with(side, nodes) for side, nodes in zip((self._one, self._other), own, strict=True))
        found = {}
        for name in sorted(one.keys() & other.keys()):
            known = self._snapshot.entities.named(self._scope, name).entities
            is_tie = len(known) == 1 and one[name] + other[name] >= known[0].mention_count * _SHARE_OF_TIE
            if is_tie and not self._is_alike(name):
                naming = (node for nodes in own for node in nodes if _places(_read(node), [name]))
                found[_COMPANION.format(name)] = list(naming)
        return dict(list(found.items())[:_EVIDENCE])

    def _named_with(self, side: _Side, nodes: Sequence[Node]) -> dict[str, int]:
        keys = [node.key for node in nodes]
        found = self._snapshot.entities.named_together(side.entity.key, keys, most=_MEMORIES)
        return {each.name: each.together for each in found}

    def _is_alike(self, name: str) -> bool:
        """Return whether a name may be one of the two names."""
        return any(match(name_form(name), form) for form in (*self._one.forms, *self._other.forms))

    def _own_memories(self, side: _Side, other: _Side) -> list[Node]:
        """Return the memories that name an entity in other words than the longer name of the other one."""
        named = [
            node
            for node in side.mentions
            if _apart(_places(_read(node), side.names), _places(_read(node), other.names))
        ]
        return [*side.facts, *named]


def _worth(side: _Side) -> tuple[bool, bool, int, int, int]:
    """Order the two: the one to keep has a full name, is protected, or is named more often, or is older."""
    entity = side.entity
    length = max((len(form.words) for form in side.forms), default=0)
    return (length > 1, entity.protected, length, entity.mention_count, -entity.key)


def _read(node: Node) -> str:
    """Return the beginning of a memory with its speaker, without addresses."""
    return f"{node.speaker or ''}: {_EMAIL.sub('', node.content[:_CHARS])}"


@cached(maxsize=2_048)
def _words(text: str) -> list[str]:
    return name_words(text)


def _best(found: Iterable[NameMatch | None]) -> NameMatch | None:
    order: tuple[NameMatch, ...] = ("spelling", "variant", "short")
    given = set(found)
    return next((each for each in order if each in given), None)


def _places(text: str, names: Sequence[str]) -> set[tuple[int, int]]:
    """Return where a text has one of some names, in any case of an inflected language: (first word, word after)."""
    words = _words(text)
    found = set()
    for wanted in {tuple(name_words(name)) for name in names}:
        for start, word in enumerate(words[: len(words) - len(wanted) + 1]):
            if wanted[0] in nominatives(word) and all(
                each in nominatives(words[start + place]) for place, each in enumerate(wanted)
            ):
                found.add((start, start + len(wanted)))
    return found


def _apart(mine: set[tuple[int, int]], theirs: set[tuple[int, int]]) -> bool:
    """Return whether one of my places is not within one of theirs."""
    return any(not any(start <= begin and end <= stop for start, stop in theirs) for begin, end in mine)
