"""The latest statement about each thing that somebody has one of at a time, such as a home or an employer."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from ricordo.clock import to_ms
from ricordo.model import Node, Scope
from ricordo.retrieval.hits import as_shown, warnings_of
from ricordo.retrieval.query import ALL_EPISODES
from ricordo.storage import Snapshot
from ricordo.storage.values import Filter
from ricordo.text.canonical import Canonical, canonical
from ricordo.text.change import cues, state_terms, things_said, topics
from ricordo.text.dates.resolution import dated_phrases
from ricordo.text.languages import NEVER, all_languages, cached, languages_of
from ricordo.text.sentences import plain_sentences
from ricordo.text.statement import holds_several, statement

_SLOTS = frozenset(("home", "employer", "occupation", "school", "spouse", "partner", "age", "diet", "doctor"))
_GROUPS = {"home": "home", "employer": "work", "spouse": "marriage", "diet": "diet"}
"""The group of words that statements about a slot use, for slots that people mention in messages."""
_NOT_SAID = frozenset(("reported", "unsure", "past", "future", "asks"))
"""Cues of statements that say nothing about the present."""
_IN_ANY_LANGUAGE = ("home", "employer")
_READ = 40
_SENTENCES = 20


def latest_statements(snapshot: Snapshot, scope: Scope, facts: Sequence[Node], *, until: float) -> dict[int, Node]:
    """Return, by the key of each fact about a state that a later statement of the same kind has made outdated, that
    statement: a fact, or a message of the owner with the sentence as its content.

    What the user decided to keep beside another fact, or confirmed since, is not outdated.

    Args:
        facts: the facts to compare, of any age.
        until: deadline on the clock of `time.monotonic`, in seconds.
    """
    stated = dict[tuple[str, str], list[tuple[Node, Canonical]]]()
    for node in facts:
        form = canonical(node.content, speaker=node.speaker, owner=scope.owner, about=node.about)
        slot = _slot(form)
        if form.subject is None or not slot or not _is_said_of_now(node.content, node):
            continue
        if form.subject or _is_of_speaker(form.said, slot):
            stated.setdefault((form.subject, slot), []).append((node, form))
    found: dict[int, Node] = {}
    for (subject, slot), each in stated.items():
        since = min(to_ms(node.valid_from) for node, _ in each)
        said = [] if subject else _said(snapshot, scope, slot, since=since, until=until)
        newest, form = max([*each, *said], key=lambda one: (one[0].valid_from, one[0].key))
        for node, older in each:
            if node.valid_from < newest.valid_from and _is_outdated(snapshot, node, older, newest, form):
                found[node.key] = newest
    return found


def _is_outdated(snapshot: Snapshot, node: Node, older: Canonical, newest: Node, form: Canonical) -> bool:
    if node.reinforced_at is not None and node.reinforced_at >= newest.valid_from:
        return False
    if older.has_value_of(form) or holds_several(older.said, form.said):
        return False
    return newest.key not in snapshot.reviews.decided_with(node.key)


def _said(snapshot: Snapshot, scope: Scope, slot: str, *, since: int, until: float) -> list[tuple[Node, Canonical]]:
    """Return the owner's latest message since a time that states the slot, as its sentence; [] if there is none."""
    from ricordo.storage.candidates import CandidateQuery  # it needs numpy

    if slot not in _GROUPS or not scope.owner:
        return []
    terms = tuple(sorted(state_terms(_GROUPS[slot])))
    query = CandidateQuery(
        scope=Scope.of(scope.owner, ""),
        filter=Filter(shelves=ALL_EPISODES, after=since),
        terms=terms,
        states=terms,
        strategies=("states",),
        until=until,
    )
    keys = list(snapshot.candidates(query).found.get("states", {}))[:_READ]
    nodes = as_shown(snapshot, snapshot.nodes.by_key(scope, keys))
    for key in keys:  # the latest first
        node = nodes.get(key)
        if node is None or node.role != "user" or node.speaker is not None or warnings_of(node):
            continue
        for sentence in islice(plain_sentences(node.content), _SENTENCES):
            form = canonical(sentence)
            is_stated = slot == (_slot(form) if form.subject == "" else "") or (
                slot == "home" and _is_home_now(sentence)
            )
            if is_stated and _is_of_speaker(sentence, slot) and _is_said_of_now(sentence, node):
                return [(replace(node, content=sentence), form)]
    return []


def _slot(form: Canonical) -> str:
    """Return the slot of a statement, if people have one value of it at a time; a short one in any language."""
    if form.slot:
        return form.slot if form.slot in _SLOTS else ""
    words = f" {' '.join(statement(form.said).words)} "
    return next((name for name, phrases in _phrases().items() if any(phrase in words for phrase in phrases)), "")


@cached()
def _phrases() -> Mapping[str, Collection[str]]:
    return {
        name: {f" {phrase} " for each in all_languages() for phrase in each.slots.said.get(name, ())}
        for name in _IN_ANY_LANGUAGE
    }


def _is_of_speaker(text: str, slot: str) -> bool:
    """Return whether a statement, or a part of it, is about its speaker alone: not "My sister lives in Rome"."""
    known = {*state_terms(_GROUPS[slot]), f"={_GROUPS[slot]}"} if slot in _GROUPS else set[str]()
    return any(
        said.is_own and not (said.people - known) and not (said.others - known)
        for said in map(topics, (text, *things_said(text)))
    )


def _is_home_now(text: str) -> bool:
    """Return whether a statement in other words says where its speaker lives now: "We have been settled in Ghent"."""
    is_new = not cues(text, languages_of(text)).isdisjoint(("now", "replaced"))
    said = topics(text)
    return is_new and said.mentions("home") and not said.mentions("work") and _names_a_place(text)


def _names_a_place(text: str) -> bool:
    """Return whether a name follows a preposition."""
    return any(found.group(1)[0].isupper() for found in _after_preposition().finditer(text))


@cached()
def _after_preposition() -> re.Pattern[str]:
    words = all_languages().words(lambda each: each.statements.prepositions)
    return re.compile(rf"\b(?i:{'|'.join(map(re.escape, sorted(words))) or NEVER})\s+([^\W\d_]\w+)")


def _is_said_of_now(text: str, node: Node) -> bool:
    """Return whether a statement of a memory says what was so when it was made, not what was or will be."""
    said = node.event_time.date()
    told = dated_phrases(text, today=said)
    is_to_come = bool(told) and all(each.first > said for each in told)
    return not is_to_come and cues(text, languages_of(text)).isdisjoint(_NOT_SAID)
