"""Turn a statement into a fact, and add the people it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from typing import get_args

from ricordo.clock import from_ms, new_id
from ricordo.encoding.entities import EntityResolver, checked_names, scope_of, with_subjects
from ricordo.encoding.episodes import Instant, check_same, is_off_record, pauses_of, speaker_in_chat
from ricordo.encoding.validation import (
    KEEPING,
    TextRules,
    check_choice,
    checked_attributes,
    checked_tags,
    may_learn,
    removed,
    said_again,
    short_name,
    storable,
    stored_id,
)
from ricordo.errors import ConflictError, InvalidError
from ricordo.model import Category, Change, Fact, Node, NodeType, Origin, Pause, Scope
from ricordo.storage import Snapshot
from ricordo.text import tasks
from ricordo.text.canonical import OWNER, is_of_one_member, is_of_one_speaker, means_owner
from ricordo.text.categories import infer_category
from ricordo.text.filing import names_user
from ricordo.text.names import folded_name
from ricordo.text.sentences import is_bare_credential, is_redacted
from ricordo.text.work import asks_to_forget, is_bare_question
from ricordo.trust import capped

_CATEGORIES: frozenset[str] = frozenset(get_args(Category))
_TYPES: frozenset[str] = frozenset(get_args(NodeType)) - {"episodic"}
ORIGINS: frozenset[str] = frozenset(get_args(Origin))


Timing = Callable[[Node, datetime | str | None], Node]
"""Sets the dates and the expiry of a new fact: those given, else those its text names, else its default lifetime."""


def new_fact(
    fact: Fact, *, scope: Scope, now: int, instant: Instant, rules: TextRules, timing: Timing | None = None
) -> Node:
    """Return the node of a fact. If no category is given, it is inferred by rule.

    Args:
        timing: sets dates and expiry. None: `instant` parses the given expiry, and the text is not read.

    Raises:
        InvalidError: a field is invalid; the error names it.
    """
    _check(fact)
    is_shared = fact.shared or (scope.shares and bool(scope.chat))
    if is_shared and not scope.chat:
        raise InvalidError(
            "shared: there is no chat or space to share the fact with",
            hint="name one: Scope(chat=...) in Python, --chat in a command, or a token made with --chat",
        )
    is_personal = bool(scope.owner) and not is_shared
    rules = rules.open if fact.keep_secrets else rules
    content = storable(fact.content, name="content", rules=rules)
    if scope.trust != "user" and is_bare_credential(content):
        raise InvalidError(
            f"content: without its credential ({removed(fact.content, content)}), hardly anything is left: {content}",
            hint=f"state the rest as a sentence that says more; {KEEPING}",
        )
    at = from_ms(now)
    happened = at if fact.at is None else from_ms(instant(fact.at, "at"))
    until = None if timing or fact.expires is None else from_ms(instant(fact.expires, "expires"))
    origin = capped(fact.origin, "user", caller=scope.trust)
    speaker = None if is_personal else speaker_in_chat(scope, role="user", origin=origin)
    if speaker is not None and not is_of_one_member(content):
        speaker = None
    node = Node(
        id=new_id(now) if fact.id is None else stored_id(fact.id, rules=rules),
        type=fact.type,
        content=content,
        category=fact.category or infer_category(content),
        owner=scope.owner if is_personal else "",
        chat="" if is_personal else scope.chat or "",
        role="user",
        speaker=speaker,
        session=short_name(fact.session, name="session", rules=rules),
        origin=origin,
        about=subjects_named(
            checked_names(fact.about, rules=rules), scope, content=fact.content, is_personal=is_personal
        ),
        tags=checked_tags(fact.tags, rules=rules),
        attributes=checked_attributes(fact.attributes, rules=rules),
        event_time=happened,
        created_at=at,
        valid_from=happened if fact.valid_from is None else from_ms(instant(fact.valid_from, "valid_from")),
        expires_at=until,
        confidence=float(fact.confidence),
    )
    return timing(node, fact.expires) if timing else node


def without_box(fact: Fact) -> Fact:
    """Return a task that is written as in notes, "- [ ] pay the rent", without its box; others are unchanged."""
    text, ending = tasks.without_box(fact.content) if isinstance(fact.content, str) else ("", None)
    if ending is None:
        return fact
    attributes = {**(fact.attributes or {}), **ending} or None
    return replace(fact, content=text, category=fact.category or "task", attributes=attributes)


def subjects_named(names: Sequence[str], scope: Scope, *, content: str, is_personal: bool) -> tuple[str, ...]:
    """Return the names that a fact is about, with all words for the owner, such as "me" and "я", replaced: in a shared
    fact by the caller's name, in a private one by OWNER, or by nothing if the text says itself that it is about them.
    """
    if not scope.owner:
        return tuple(names)
    if is_personal:
        owner = None if is_of_one_speaker(content) or names_user(content) else OWNER
    else:
        owner = speaker_in_chat(scope, role="user", origin="user")
    named = dict.fromkeys(owner if means_owner(name) else name for name in names)
    return tuple(name for name in named if name is not None)


def twin_of(fact: Fact, node: Node, *, rules: TextRules) -> str | None:
    """Return the text of a fact with the credentials replaced that it keeps, or with those that were replaced in it;
    None if it has none.
    """
    if not fact.keep_secrets:
        return fact.content if is_redacted(node.content) and node.content != fact.content else None
    screened = storable(node.content, name="content", rules=replace(rules, secrets="redact"))
    return screened if screened != node.content else None


def check_is_told(content: str) -> None:
    """Raise InvalidError if what a person or an agent asks to remember is only a question, or asks to forget."""
    if is_bare_question(content):
        raise InvalidError(
            "content: a question states no fact",
            hint="ask it with `ask` or `search`, or state what is to be remembered: I asked where the car is",
        )
    if asks_to_forget(content):
        raise InvalidError(
            "content: it asks to forget something, so it is not stored",
            hint="to forget a memory, search for it, and forget its id",
        )


def _check(fact: Fact) -> None:
    check_choice(fact.type, _TYPES, name="type")
    check_choice(fact.origin, ORIGINS, name="origin")
    if fact.category is not None:
        check_choice(fact.category, _CATEGORIES, name="category")
    number = fact.confidence
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number) or not 0 <= number <= 1:
        raise InvalidError(f"confidence: {number!r} is not a number from 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntFacts:
    """The nodes of facts as stored, and the change that stores the new ones. A node that is not stored has no id.

    The change has no people yet; `with_people` adds them once it is known which facts are replaced.
    """

    nodes: tuple[Node, ...]
    change: Change
    people: Mapping[tuple[str, str], EntityResolver]

    def with_people(self, change: Change) -> Change:
        """Add the people and relations of the new facts. A relation that only replaced facts state has ended if the
        fact that replaces them names another person, even if an agent noted it.
        """
        replaced = {node.id for node in (*change.add, *change.put) if node.closed_reason == "superseded"}
        by = {edge.source for edge in change.link if edge.type == "supersedes" and edge.target in replaced}
        for node in change.add:
            if node.id in by:
                self.people[node.owner, node.chat].replace_relations(node, replaced)
        for each in self.people.values():
            change = each.extend(change)
        return change


def learn(snapshot: Snapshot, facts: Sequence[Node], *, scope: Scope, now: int, claimed: bool) -> LearntFacts:
    """Add facts and the unknown people they are about; a quarantined fact adds no people. Raises ConflictError."""
    if len({node.id for node in facts}) < len(facts):
        raise ConflictError("an id is given to two facts", hint="leave ids out to get new ones")
    known = snapshot.nodes.known_ids([node.id for node in facts]) if claimed else {}
    pauses = pauses_of(snapshot, scope) if facts else []
    spaces = {(node.owner, node.chat) for node in facts}
    people = {space: EntityResolver(snapshot, scope=scope_of(*space), now=now) for space in spaces}
    for space, resolver in people.items():
        resolver.note_own_names([node for node in facts if (node.owner, node.chat) == space])
    added: list[Node] = []
    subjects: list[tuple[str, str, str]] = []
    for node in facts:
        check_same(snapshot, node, known)
        space = node.owner, node.chat
        if node.id in known or is_off_record(node, pauses) or not may_learn(snapshot, node):
            continue
        entities = people[space].subjects_of(node) if node.is_live else []
        subjects += [(node.id, entity.id, folded_name(name)) for name, entity in entities]
        added.append(replace(node, about=tuple(dict.fromkeys(entity.name for _, entity in entities))))
    stored = {node.id: node for node in added}
    nodes = tuple(
        stored.get(node.id) or snapshot.nodes.get(scope, node.id) or _unstored(node, pauses) for node in facts
    )
    change = with_subjects(
        Change(add=tuple(added), said_anew=said_again(snapshot, [each for each in added if each.is_live])), subjects
    )
    return LearntFacts(nodes=nodes, change=change, people=people)


OFF_RECORD, REMOVED = "off the record (`ricordo on-record` ends that)", "forgotten or erased before"


def _unstored(node: Node, pauses: Sequence[Pause]) -> Node:
    """Return a fact that is not stored: it has no id, and a notice that tells why."""
    return replace(node, id="", notice=OFF_RECORD if is_off_record(node, pauses) else REMOVED)


def with_confirmed_relations(snapshot: Snapshot, change: Change, node: Node, *, closed: str, now: int) -> Change:
    """Add to a change what a fact says of the owner's relations, now that the owner decided for it and against the fact
    `closed`: a new boss ends the relation of the previous one, even if an agent noted the fact.
    """
    if node.origin != "agent":
        return change
    people = EntityResolver(snapshot, scope=scope_of(node.owner, node.chat), now=now)
    people.replace_relations(node, {closed})
    people.learn_relations(replace(node, origin="user"), owner=node.owner)
    return people.extend(change)


def subjects_change(snapshot: Snapshot, nodes: Sequence[Node], *, now: int) -> Change:
    """Return the change that adds the subjects of stored facts that become live, and any unknown people among them."""
    spaces = dict.fromkeys((node.owner, node.chat) for node in nodes)
    people = {space: EntityResolver(snapshot, scope=scope_of(*space), now=now) for space in spaces}
    subjects = [
        (node.id, entity.id, folded_name(name))
        for node in nodes
        for name, entity in people[node.owner, node.chat].subjects_of(node)
    ]
    change = with_subjects(Change(said_anew=said_again(snapshot, nodes)), subjects)
    for each in people.values():
        change = each.extend(change)
    return change
