"""The canonical form of a statement, to compare facts however they were remembered, extracted or proposed. Pure.

"I work at Globex" (said by Anna), "Anna works at Globex" and, for the owner, "The user works at Globex" have one form:
a subject, and the statement in the first person. If the statement is about something that people have one of at a time
(an employer), that is its slot. Polarity and value are read from the words; the time is taken from the fact. Facts
about one subject are compared by this form, or by `likeness`, the share of common content, if the words cannot be
aligned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ricordo.text.analyzer import index_terms, shows_no_person, speaks_for_group, speaks_only_for_group
from ricordo.text.change import topics, without_other_senses
from ricordo.text.languages import NEVER, LanguageSet, all_languages, cached, fold_letters, is_ordinary, languages_of
from ricordo.text.names import folded_name, relation_named, relation_words, same_name_key
from ricordo.text.relatives import with_relation_first
from ricordo.text.sentences import content_words, in_first_person
from ricordo.text.statement import Verdict, compare, holds_several, is_reserved, statement, statement_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Canonical:
    """A statement in the words of its subject.

    Attributes:
        text: the original text.
        subject: "" for the owner, the folded name of another person, None if it is about nobody in particular.
        said: the statement in the first person of its subject.
        slot: the slot whose value it gives, recognised by words or as named by a model; "" if unknown.
    """

    text: str
    subject: str | None
    said: str
    slot: str = ""

    def verdict(self, newer: Canonical) -> Verdict | None:
        """Return how a newer statement affects this one; None if they are unrelated or about different people."""
        if self.subject == newer.subject:
            return compare(self.said, newer.said)
        return compare(self.text, newer.text) if None in (self.subject, newer.subject) else None

    def has_value_of(self, newer: Canonical) -> bool:
        """Return whether a newer statement gives the same slot the same value in other words.

        >>> canonical("I moved to Oslo").has_value_of(canonical("I live in Oslo"))
        True
        >>> canonical("I moved to Oslo").has_value_of(canonical("I no longer live in Oslo"))
        False
        """
        if not self.slot or (self.slot, self.subject) != (newer.slot, newer.subject):
            return False
        values = _values(self.said)
        return bool(values) and values == _values(newer.said) and not is_reserved(self.said, newer.said)

    def may_both_hold(self, other: Canonical) -> bool:
        """Return whether both give values of different known slots, or of one slot that usually has several values."""
        if self.slot and self.slot == other.slot:
            return False
        return {self.slot, other.slot} <= slots() or holds_several(self.said, other.said)


def canonical(
    text: str, *, speaker: str | None = None, owner: str = "", about: Sequence[str] = (), slot: str = ""
) -> Canonical:
    """Return the canonical form of a statement.

    Args:
        speaker: who said it; None for the owner.
        owner: the name of the owner; "" for a group's memory.
        about: names of the people and things it is about.
        slot: the slot as named by a model.

    >>> canonical("Anna works at Globex", about=["Anna"]).said, canonical("The user works at Globex").said
    ('I work at Globex', 'I work at Globex')
    """
    whose = "" if speaker is None or is_owner(speaker, owner) else folded_name(speaker)
    if list(about) == [OWNER]:
        form = _canonical(text, whose, "", slot)
        return replace(form, subject=whose) if form.subject is None else form
    return _canonical(text, whose, about[0] if len(about) == 1 else "", slot)


@cached(maxsize=16_384)
def _canonical(text: str, whose: str, name: str, slot: str) -> Canonical:
    """Return the form of a statement by `whose` ("" is the owner) about the person `name`, or "" for nobody."""
    plain = _without_role(with_relation_first(text), name)
    if name and plain[: len(name)].casefold() == name.casefold() and not plain[len(name) : len(name) + 1].isalnum():
        subject: str | None = folded_name(name)
        said = in_first_person(plain, plain[: len(name)])
    else:
        said = in_first_person(text)
        is_own = said != text or topics(said).is_own
        subject = whose if is_own else folded_name(name) if name else None
    return Canonical(text=text, subject=subject, said=said, slot=slot_named(slot) or _slot_said(said))


def _without_role(text: str, name: str) -> str:
    """Return a statement without the relation of a person to the speaker: "My sister Anna lives" is "Anna lives"."""
    before, found, behind = text.partition(name) if name else ("", "", "")
    return f"{found}{behind}" if found and before and relation_named(before.strip(" ,")) else text


OWNER = "the user"
"""The name of the owner as the subject of a private fact whose text does not name them: "Collects stamps"."""


def is_owner(speaker: str, owner: str) -> bool:
    """Return whether a speaker is the owner of a memory, by name or by a transcript's label such as "me" or "user"."""
    speakers = all_languages().words(lambda each: each.sentences.speakers)
    return speaker.casefold() in speakers or same_name_key(speaker) == same_name_key(owner) != ""


def means_owner(name: str) -> bool:
    """Return whether a name or a question means the owner of a memory, in any language.

    >>> means_owner("me"), means_owner("Who am I?"), means_owner("my wife")
    (True, True, False)
    """
    return folded_name(name) in owner_phrases()


@cached()
def owner_phrases() -> frozenset[str]:
    """Return the folded phrases that mean the owner of a memory, in all languages."""
    phrases = all_languages().words(lambda each: (*each.sentences.user_words, *each.persons.oneself))
    return frozenset(map(folded_name, phrases))


def in_owners_words(text: str, names: Sequence[str]) -> str:
    """Return a statement about the owner that calls them by name as they would make it. Others are unchanged.

    >>> in_owners_words("Clara works at Globex", ["Clara"]), in_owners_words("Clara's home is Rome", ["Clara"])
    ('I work at Globex', 'My home is Rome')
    """
    own = (in_first_person(text, name) for name in names if name in text)
    return next((said for said in own if said != text), text)


def is_of_one_speaker(text: str) -> bool:
    """Return whether a statement is about the person who makes it, and not about a group they speak for.

    >>> [is_of_one_speaker(text) for text in ("My dog is called Rex", "The user lives in Rome", "We meet on Tuesdays")]
    [True, True, False]
    """
    said = in_first_person(text)
    return topics(said).is_own and not speaks_only_for_group(said)


def is_of_one_member(text: str) -> bool:
    """Return whether what a member shares with a group is about that member or a relative of theirs: not about the
    group, nor about a client or a doctor that all of them may have.

    >>> [is_of_one_member(text) for text in ("I live in Rome", "Mum hates carp", "The client is late", "Temos seguro")]
    [True, True, False, False]
    >>> is_of_one_member("Ditched Stripe, going with Mollie")
    False
    """
    said = in_first_person(text)
    is_own = topics(said).names_speaker or _bare_relative().match(said) is not None
    return is_own and not speaks_for_group(said) and not shows_no_person(said)


@cached()
def _bare_relative() -> re.Pattern[str]:
    """Return the pattern of a relative who needs no "my", at the beginning of a statement: "Mum", "Папа"."""
    words = (word for word in all_languages().words(lambda each: each.relations.bare) if " " not in word)
    return re.compile(rf"\W*(?:{'|'.join(sorted(words)) or NEVER})\b", re.IGNORECASE)


@cached()
def slots() -> frozenset[str]:
    """Return the names of the slots that can be recognised by words, in any language."""
    return frozenset(name for each in all_languages() for name in each.slots.labels)


@cached()
def _labels() -> dict[str, str]:
    tables = [each.slots.labels for each in all_languages()]
    return {_folded_label(label): name for table in tables for name in table for label in table[name]}


def slot_named(label: str) -> str:
    """Return the known slot for a name that a model gave; an unknown name is returned folded.

    >>> slot_named("Place of residence"), slot_named("shoe size")
    ('home', 'shoe size')
    """
    folded = _folded_label(label)
    return _labels().get(folded, folded)


def _folded_label(label: str) -> str:
    return " ".join(re.sub(r"[_\W]+", " ", fold_letters(label.casefold())).split())


def _slot_said(said: str) -> str:
    return _slot_phrase(without_other_senses(said))[0]


@cached(maxsize=4_096)
def _slot_phrase(said: str) -> tuple[str, int]:
    """Return the slot of a statement and how many words stand before the phrase that shows it; ("", 0) without one."""
    words = f" {' '.join(statement(said).words)} "
    tables = [each.slots.said for each in languages_of(said)]
    known = ((name, phrase) for table in tables for name in table for phrase in table[name])
    found = ((name, words.find(f" {phrase} ")) for name, phrase in known)
    return next(((name, len(words[:place].split())) for name, place in found if place >= 0), ("", 0))


def names_somebody_before_slot(said: str) -> bool:
    """Return whether words of content stand before the phrase that shows the slot of a statement.

    >>> names_somebody_before_slot("Xmas party moved to the 18th"), names_somebody_before_slot("Married to Ann")
    (True, False)
    """
    _, count = _slot_phrase(said)
    return bool(content_words(" ".join(statement(said).words[:count])))


def slot_words(slot: str, text: str) -> frozenset[tuple[str, ...]]:
    """Return the stems of the words that find statements of a slot, in the languages of a text."""
    languages = languages_of(text)
    phrases = (
        phrase for each in languages for phrase in (*each.slots.labels.get(slot, ()), *each.slots.said.get(slot, ()))
    )
    return frozenset((stem,) for phrase in phrases for stem in content_words(phrase))


# ---- comparison without alignment

MUCH = 0.5
"""Minimum `likeness` of two statements that say much the same."""

_WORD = re.compile(r"[^\W_]+")
# Two forms of a word share at least this many letters, and all but the last of the shorter one.
_FORM_CHARS = 4


def is_much_the_same(one: str, other: str) -> bool:
    """Return whether two statements say much the same, and neither adds more than the two share.

    >>> is_much_the_same("I have a dog", "The user has a dog named Rex")
    True
    """
    if likeness(one, other) < MUCH:
        return False
    fewer, more = sorted((_said(one), _said(other)), key=len)
    naming = all_languages().words(lambda each: each.sentences.naming)
    is_named = any(not naming.isdisjoint(_WORD.findall(text.lower())) for text in (one, other))
    return len(more) <= (2 + is_named) * len(fewer)


def likeness(one: str, other: str) -> float:
    """Return how much of the shorter of two statements is also in the other, from 0 to 1.

    The result is 0 for two values of one slot ("lives in Oslo", "lives in Rome"), for a statement and its denial, for
    statements about different relatives, and if each statement has a name or a number that the other lacks.
    """
    if statement_line(one) == statement_line(other):
        return 1.0
    if {compare(one, other), compare(other, one)} - {None, "same"} or _is_denied(one) != _is_denied(other):
        return 0.0
    fewer, more = sorted((_said(one), _said(other)), key=len)
    lost, added = _without(fewer, more), _without(more, fewer)
    if (lost & _values(one, other) and added & _values(one, other)) or (lost & _kin() and added & _kin()):
        return 0.0
    return 0.99 * (len(fewer) - len(lost)) / len(fewer) if fewer else 0.0


def _said(text: str) -> frozenset[str]:
    """Return the meaningful terms of a statement. Words for having and naming are ignored."""
    return content_words(_silent(all_languages()).sub(" ", text)) or content_words(text)


def _without(terms: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """Return the terms that do not occur among the others in any form."""
    return frozenset(term for term in terms - others if not any(_is_form(term, other) for other in others))


def _is_form(term: str, other: str) -> bool:
    chars = max(_FORM_CHARS, min(len(term), len(other)) - 1)
    return term[:chars] == other[:chars] and len(term) >= chars <= len(other)


def _is_denied(text: str) -> bool:
    languages = languages_of(text)
    lowered = text.lower().replace("’", "'")
    negations = languages.words(lambda each: each.statements.negations)
    endings = tuple(languages.in_order(lambda each: each.statements.negated_endings))
    is_ending = any(word.endswith(endings) for word in lowered.split()) if endings else False
    return is_ending or not negations.isdisjoint(_WORD.findall(fold_letters(lowered)))


def _values(*texts: str) -> frozenset[str]:
    """Return the terms of names and numbers: words with a digit or a capital. An initial capital is not enough."""
    found = [
        word
        for text in texts
        for place, word in enumerate(_WORD.findall(text))
        if any(map(str.isdigit, word)) or (word[0].isupper() and (place or _is_name(word, text)))
    ]
    return frozenset(term for word in found for term in index_terms(word))


def _is_name(word: str, text: str) -> bool:
    folded = fold_letters(word.lower())
    languages = languages_of(text)
    silent = languages.words(lambda each: (*each.function_words, *each.sentences.self_words))
    return folded not in silent and not any(is_ordinary(folded, language) for language in languages)


@cached()
def _kin() -> frozenset[str]:
    return frozenset(term for word in relation_words() for term in index_terms(word))


@cached()
def _silent(languages: LanguageSet) -> re.Pattern[str]:
    words = languages.words(lambda each: (*each.sentences.having, *each.sentences.self_words, *each.sentences.naming))
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b", re.IGNORECASE)
