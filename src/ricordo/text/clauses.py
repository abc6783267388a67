"""Read the slots that the clauses of a statement fill: "I work at Arup and live in Braga" gives an employer and a home.

A statement with several clauses aligns with no statement of one slot, so its clauses are compared one by one. A clause
never closes a whole statement, of which other clauses may still be true: the user decides. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import dropwhile, islice, takewhile

from ricordo.text.analyzer import index_terms, leaves_out_its_subject, speaks_of_themselves
from ricordo.text.canonical import Canonical, canonical
from ricordo.text.change import AGAINST, cues, job_stems, things_said, topics, without_other_senses
from ricordo.text.languages import (
    LanguageSet,
    Lexicon,
    all_languages,
    any_of,
    cached,
    fold_letters,
    languages_of,
    pattern_of,
    words_of,
)
from ricordo.text.languages.schema import Language
from ricordo.text.sentences import content_words, in_first_person
from ricordo.text.statement import DASHES, is_reserved, statement, subject_of

_EMPLOYER, _OCCUPATION = "employer", "occupation"
_SOMEBODY = "Xx"  # in place of the subject of a clause
_MOST_VALUE_WORDS = 4


class _Words(Lexicon):
    determiners = words_of(lambda each: (*each.statements.articles, *each.statements.determiners))
    copulas = words_of(lambda each: (*each.statements.copulas, *DASHES))
    prepositions = words_of(lambda each: each.statements.prepositions)
    links = words_of(lambda each: (*each.statements.copulas, *each.statements.prepositions))
    things = words_of(lambda each: each.sentences.first_person)
    at_employer = words_of(lambda each: each.slots.at_employer)
    participle = pattern_of(lambda each: each.statements.participle)


_words = cached()(_Words)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotValue:
    """A value that a clause gives to a slot. `is_name`: a name or a number, rather than ordinary words."""

    slot: str
    clause: str
    terms: frozenset[str]
    is_name: bool

    def contradicts(self, other: SlotValue) -> bool:
        """Return whether another value of the same kind is given to the same slot, both without reservation."""
        if (self.slot, self.is_name) != (other.slot, other.is_name) or not self.terms.isdisjoint(other.terms):
            return False
        return not (is_reserved(self.clause, other.clause) or is_reserved(other.clause, self.clause))


def changes_a_clause(old: Canonical, new: Canonical) -> bool:
    """Return whether a clause of a new statement contradicts a clause of an older one with the same subject.

    >>> from ricordo.text.canonical import canonical
    >>> both = canonical("I work as an engineer at Ferrovia Norte and live in Braga")
    >>> changes_a_clause(both, canonical("I've moved to Porto")), changes_a_clause(both, canonical("I play padel"))
    (True, False)
    """
    old, new = _of_one_name(old, new)
    if old.subject is None or old.subject != new.subject:
        return False
    values = _values_of(new)
    return any(before.contradicts(after) for after in values for before in (_values_of(old) if values else ()))


def _of_one_name(*forms: Canonical) -> list[Canonical]:
    """Return statements that begin with the same unknown name as statements about it: "Paul works", "Paul lives"."""
    names = {form.said.partition(" ")[0] for form in forms if form.subject is None}
    name = next(iter(names), "")
    is_name = len(names) == 1 and all(form.subject is None for form in forms) and name.istitle()
    if not is_name or name.lower() in _words(languages_of(forms[0].said)).determiners:
        return list(forms)
    return [canonical(form.said, about=[name]) for form in forms]


def words_to_look_for(form: Canonical) -> frozenset[tuple[str, ...]]:
    """Return, for each slot that a statement fills, the stems that find statements of the slot."""
    filled = {(each.slot, each.clause) for each in _values_of(form)}
    return frozenset(
        (*_slot_stems(slot, all_languages()), *(job_stems(clause) if slot == _EMPLOYER else ()))
        for slot, clause in filled
    )


@cached()
def _slot_stems(slot: str, languages: LanguageSet) -> tuple[str, ...]:
    found = dict[str, None]()
    for each in languages:
        of_one = any_of((each.code,))
        for phrase in (*each.slots.said.get(slot, ()), *each.slots.finders.get(slot, ())):
            words = " ".join(word for word in phrase.split() if word not in each.function_words)
            found |= dict.fromkeys((*sorted(content_words(phrase)), *index_terms(words, languages=of_one)))
    return tuple(found)


def _values_of(form: Canonical) -> tuple[SlotValue, ...]:
    return _slot_values(form.said, is_own=form.subject == "")


@cached(maxsize=4_096)
def _slot_values(said: str, *, is_own: bool) -> tuple[SlotValue, ...]:
    """Return the values of a statement in the first person of its subject, `is_own` if that is the speaker."""
    languages = languages_of(said)
    found: list[SlotValue] = []
    is_of_another = False  # "My sister lives in Linz and works at Voest"
    for place, clause in enumerate(things_said(said) or [said]):
        has_speaker = topics(clause).is_of_self
        if place and has_speaker and not is_own:
            continue
        is_of_another = _has_another_subject(clause) or (is_of_another and not speaks_of_themselves(clause))
        if is_of_another:
            found += _values(clause, languages, of_thing=True)
        else:
            found += _values(_of_subject(clause) if place else clause, languages)
    return tuple(found)


def _has_another_subject(clause: str) -> bool:
    if leaves_out_its_subject(clause, languages_of(clause)):
        return False
    return bool(subject_of(clause) or topics(clause).others)


def _of_subject(clause: str) -> str:
    """Return a clause without a subject in the first person: "works at Arup" is "I work at Arup"."""
    said = in_first_person(f"{_SOMEBODY} {clause}", _SOMEBODY)
    return clause if said.startswith(_SOMEBODY) else said


def _values(clause: str, languages: LanguageSet, *, of_thing: bool = False) -> Iterator[SlotValue]:
    if clause.endswith("?") or not cues(clause, languages).isdisjoint(AGAINST):
        return
    known, read = _words(languages), statement(without_other_senses(clause))
    jobs = frozenset(job_stems(clause))
    subject = frozenset(subject_of(clause) or ())
    phrases = [each for each in _phrases(languages) if not of_thing or (subject and subject.issubset(each[1]))]
    places = [
        *_places(read.words, known, jobs, phrases),
        *([] if of_thing else _places_in_clause(read.words, languages)),
    ]
    for slot, place in dict.fromkeys(places):
        terms, is_name = _value(read.tokens[place:], known)
        is_vague = (slot == _EMPLOYER and not is_name) or (
            slot == _OCCUPATION and read.words[place - 1] not in known.links and jobs.isdisjoint(terms)
        )
        if terms and not is_vague:  # "I work at home"
            yield SlotValue(slot=slot, clause=clause, terms=terms, is_name=is_name)


def _places(
    words: tuple[str, ...], known: _Words, jobs: Set[str], phrases: Sequence[tuple[str, tuple[str, ...]]]
) -> Iterator[tuple[str, int]]:
    """Yield each slot that a clause names by some phrases, and the place where its value begins."""
    for slot, phrase in phrases:
        for place in range(len(phrase), len(words)):
            if words[place - len(phrase) : place] == phrase and (
                (words[place] in known.copulas and not _is_predicate(words[place + 1 :], known))
                or phrase[-1] in known.links
                or known.things.isdisjoint(phrase)  # "my doctor raised the dose"
            ):
                yield slot, place
    for place in range(2, len(words) if len(phrases) > 1 else 0):
        if words[place - 1] in known.at_employer and not jobs.isdisjoint(index_terms(words[place - 2])):
            yield _EMPLOYER, place


def _is_predicate(words: Sequence[str], known: _Words) -> bool:
    """Return whether words behind a copula say what is done with a thing, not which one it is: "insured with AXA"."""
    return len(words) > 1 and known.participle.match(words[0]) is not None and words[1] in known.prepositions


def _places_in_clause(words: tuple[str, ...], languages: LanguageSet) -> Iterator[tuple[str, int]]:
    """Yield each slot that a clause names by words apart from each other, and the place where its value begins."""
    text = " ".join(words)
    for slot, pattern in _clause_patterns(languages).items():
        for found in pattern.finditer(text):
            yield slot, text[: found.end()].count(" ") + 1


@cached()
def _clause_patterns(languages: LanguageSet) -> dict[str, re.Pattern[str]]:
    slots = dict.fromkeys(slot for each in languages for slot in each.slots.clauses)
    return {slot: languages.pattern(_patterns_of(slot), r"(?<!\S)(?:{})(?= )") for slot in slots}


def _patterns_of(slot: str) -> Callable[[Language], Sequence[str]]:
    return lambda each: [fold_letters(pattern) for pattern in each.slots.clauses.get(slot, ())]


@cached()
def _phrases(languages: LanguageSet) -> tuple[tuple[str, tuple[str, ...]], ...]:
    tables = [each.slots.said for each in languages]
    return tuple((slot, tuple(phrase.split())) for table in tables for slot in table for phrase in table[slot])


def _value(tokens: tuple[str, ...], known: _Words) -> tuple[frozenset[str], bool]:
    """Return the terms of the value at the beginning of some words, and whether it is a name or a number."""
    rest = dropwhile(lambda token: token.lower() in known.determiners | known.copulas, tokens)
    words = list(takewhile(lambda token: token.lower() not in known.prepositions, islice(rest, _MOST_VALUE_WORDS)))
    names = list(takewhile(_is_name, dropwhile(lambda token: not _is_name(token), words)))
    return frozenset(term for word in names or words for term in index_terms(word)), bool(names)


def _is_name(token: str) -> bool:
    return token != token.lower() or any(map(str.isdigit, token))
