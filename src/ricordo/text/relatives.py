"""Find the people and pets that a speaker names as their own: "my wife Sarah", "my boss is Karen". Pure.

The rules are conservative: a relation is learnt only from a speaker's plain statement about the present. Questions,
negations, jokes, the past, conditions, fiction and quotations are ignored, and so are capitalised words that are not
names. The forms are in `relation_forms.py` and in the language files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from ricordo.text.analyzer import first_person_words, leaves_out_its_subject
from ricordo.text.denied_names import without_denied_names
from ricordo.text.languages import cached, fold_letters
from ricordo.text.names import NOT_PEOPLE, SINGLE, folded_relation, name_words, relation_named, with_name_capitals
from ricordo.text.relation_forms import (
    BARE,
    CAPITALISED,
    MANY,
    MAX_CHARS,
    ONE,
    Kin,
    Kind,
    RelationForms,
    languages_that_mention,
    relation_words_in,
    stories,
)
from ricordo.text.relative_names import in_nominative, name_in, title_in
from ricordo.text.sentences import in_first_person, plain_sentences, with_own_subjects, without_jokes
from ricordo.text.statement import compare


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A person's or pet's relation to the speaker, and the sentence that states it. `title` goes before the name.

    `is_told`: the sentence tells the relation, and does not only name it: "my boss is Karen", not "my boss Karen left".
    """

    predicate: str
    name: str
    sentence: str
    title: str = ""
    is_told: bool = False


class _Mention(NamedTuple):
    """A mention of a relation to the speaker. `is_oblique`: it is in another case than the nominative."""

    kin: Kin
    is_oblique: bool = False


class _Sentence(NamedTuple):
    """A sentence with its mentions replaced by characters, and the mentions by their place in it."""

    written: str
    text: str
    mentions: Mapping[int, _Mention] = MappingProxyType({})
    is_question: bool = False


class _Told(NamedTuple):
    """A name given to a mention. `is_statement`: by a verb, not by standing beside it."""

    mention: _Mention
    name: str
    is_statement: bool
    title: str = ""


_MOST_MENTIONS = 16
"""The number of mentions in a sentence that are read: with more, a list would take long."""

_FEMALE = """wife, girlfriend, fiancée, mother, mother-in-law, landlady, ex-wife, daughter, sister, grandmother,
granddaughter, aunt, niece, sister-in-law, daughter-in-law, stepmother, stepdaughter, stepsister"""
_MALE = """husband, boyfriend, fiancé, father, father-in-law, landlord, ex-husband, son, brother, grandfather, grandson,
uncle, nephew, brother-in-law, son-in-law, stepfather, stepson, stepbrother"""
_NEVER_CALLED = {"he": frozenset(re.split(r",\s+", _FEMALE)), "she": frozenset(re.split(r",\s+", _MALE))}
_MARKS = f"[{ONE}{MANY}{BARE}]"
_QUOTATION = re.compile(r"\"[^\"\n]*(?:\"|$)|«[^»]*(?:»|$)|„[^“”\"]*(?:[“”\"]|$)|“[^”\"]*(?:[”\"]|$)")
_QUOTED = re.compile(r">|.*(?:[\"«»“”„‟]|(?<!\w)['‘]|(?<!s)['’](?!\w))", re.DOTALL)
_TRANSCRIPT = re.compile(rf"\s*(?:[\[<@]|\d\d?[:.]\d\d|{CAPITALISED}(?:\s[^\s:]+)?:\s)")


def stated_relations(text: str, *, own_names: Sequence[str] | None = None) -> list[Stated]:
    """Return the relations that the text states outright, in order, without repeats.

    Args:
        own_names: names of the one whose relations they are: "Katrin's husband Reto" is then "my husband Reto", and
            "The user has a daughter" is "I have a daughter". None if only the speaker's own words count.

    >>> [(found.predicate, found.name) for found in stated_relations("Hi, my wife is Sarah. Is my boss Tom?")]
    [('wife', 'Sarah')]
    """
    text = without_denied_names(with_name_capitals(text[:MAX_CHARS]))
    for name in () if own_names is None else ("", *own_names):
        text = with_own_subjects(text, name)
    found: dict[tuple[str, str], Stated] = {}
    for forms, words in languages_that_mention(text):
        plain = re.sub(_MARKS, " ", _QUOTATION.sub('""', text))
        for stated in _stated_in(plain, words, forms):
            known = found.setdefault((stated.predicate, stated.name), stated)
            if stated.is_told and not known.is_told:
                found[stated.predicate, stated.name] = replace(known, is_told=True)
    return list(found.values())


@cached(maxsize=4_096)
def with_relation_first(text: str) -> str:
    """Return a statement that begins with a person and, between commas, who that is to the speaker, with the relation
    before the name. Others are unchanged.

    >>> with_relation_first("Ronan, the husband of the user, is a nurse"), with_relation_first("Mum, Dad, and I left")
    ('My husband Ronan is a nurse', 'Mum, Dad, and I left')
    """
    if (found := _APPOSITION.match(text)) is None:
        return text
    for name, role in (found.groups(), found.groups()[::-1]):
        said = in_first_person(role)
        if not _CAPITALISED.fullmatch(name) or relation_named(said) is None or relation_named(in_first_person(name)):
            continue
        return f"{said[:1].upper()}{said[1:]} {name} {text[found.end() :]}"
    return text


_MOST_IN_APPOSITION = 50
_APPOSITION = re.compile(
    rf"([^\s,][^,.;:!?\n]{{1,{_MOST_IN_APPOSITION}}}), ([^\s,][^,;:!?\n]{{1,{_MOST_IN_APPOSITION}}}), (?=\w)"
)
_CAPITALISED = re.compile(rf"{CAPITALISED}(?:\.? {CAPITALISED}){{0,2}}")


def tells_another_holder(old: str, new: str) -> bool:
    """Return whether a newer statement tells that somebody else has a relation to the speaker that one has at a time.

    The order of the words does not matter. Without a word for change, a person may have two dentists.

    >>> tells_another_holder("My boss is Karen", "Tom Low is my boss now")
    True
    >>> tells_another_holder("My friend is Karen", "Tom Low is my friend now")
    False
    """
    later = [each for each in stated_relations(new) if each.is_told]
    earlier = [each for each in stated_relations(old) if each.is_told] if len(later) == 1 else []
    names = [each.name for each in earlier if each.predicate == later[0].predicate]
    if len(names) != 1 or not set(name_words(names[0])).isdisjoint(name_words(later[0].name)):
        return False
    return later[0].predicate in SINGLE or takes_over(later[0])


def takes_over(stated: Stated) -> bool:
    """Return whether a statement tells that somebody has a relation now that another one had, if one may have several:
    "My dentist is Dr. Weiss now", "My new dentist is Dr. Weiss", but not "Tom is my friend now".

    >>> [takes_over(each) for each in stated_relations("Our new dentist is Dr. Weiss. My doctor is Dr. Ito.")]
    [True, False]
    """
    said = [f"My {stated.predicate} is {name}" for name in ("Ann Low", "Tom Ray")]
    return stated.is_told and compare(*said) == "replaced" and _says_now(stated.sentence)


def may_be_a_friend(stated: Stated) -> bool:
    """Return whether the sentence has a word for somebody's partner that also means a friend.

    >>> said = "Meine Freundin Anke wohnt in Freiburg", "My girlfriend Ada lives in Leeds"
    >>> [may_be_a_friend(each) for text in said for each in stated_relations(text)]
    [True, False]
    """
    words = frozenset(re.findall(r"\w+", stated.sentence.lower()))
    return any(not words.isdisjoint(forms.also_friends) for forms, _ in languages_that_mention(stated.sentence))


def _says_now(text: str) -> bool:
    return any(forms.now.search(text) or forms.new.search(text) for forms, _ in languages_that_mention(text))


def _stated_in(text: str, words: Collection[str], forms: RelationForms) -> list[Stated]:
    found: list[tuple[_Told, str]] = []
    before: _Sentence | None = None
    for written in plain_sentences(text):
        lowered = fold_letters(written.lower())
        sentence = _Sentence(written, written)
        if any(word in lowered for word in words):
            sentence = _marked(forms.now.sub(_without_now, written), forms)
        if (sentence.mentions or (before is not None and before.mentions)) and not _is_plain(sentence.written, forms):
            before, sentence = None, _outer_clause(sentence, forms)
            if not sentence.mentions:
                continue
        found += [(told, written) for told in _told_in(sentence, before, forms)]
        before = sentence
    if not found or stories().search(text):  # somebody else speaks in a story
        return []
    kept, serious = without_jokes(text, with_laughs=True), without_jokes(text)
    return [
        Stated(
            predicate=told.mention.kin.relation,
            name=told.name,
            sentence=written,
            title=told.title,
            is_told=told.is_statement,
        )
        for told, written in found
        if written in (serious if told.is_statement else kept)
    ]


def _without_now(found: re.Match[str]) -> str:
    """Return what is left of a word for "now": a comma, if a clause follows: "Tom left, now my boss is Ann"."""
    return "," if "," in found.group() and re.match(r"\s+\w+\s+\w", found.string[found.end() :]) else ""


def _marked(written: str, forms: RelationForms) -> _Sentence:
    """Return a sentence with its mentions replaced. Of "My dog is ill, ¿qué hago?", only the statement is kept."""
    is_question = written.endswith("?")
    if is_question and (turn := written.find("¿")) > 0:
        written, is_question = written[:turn].rstrip(", "), False
    text, end = "", 0
    mentions: dict[int, _Mention] = {}
    for found in islice(forms.mention.finditer(written), _MOST_MENTIONS):
        if mention := _mention(found, forms):
            text += written[end : found.start()]
            mentions[len(text)] = mention
            text += BARE if found["bare"] else MANY if mention.kin.is_many else ONE
            end = found.end()
    return _Sentence(written, text + written[end:], mentions, is_question)


def _mention(found: re.Match[str], forms: RelationForms) -> _Mention | None:
    word = next(word for group in ("own", "had", "behind", "whole", "bare") if (word := found[group]))
    kin = forms.kin[folded_relation(word)]
    if forms.several.search(found.group()):  # "две сестры" has the form of one sister
        kin = kin._replace(is_many=True)
    whose = found["mine"] or found["whose"] or ""
    if kin.relation == "partner" and not forms.plural_possessives.isdisjoint(whose.lower().split()):  # a firm's
        return None
    is_title = whose[:1].isupper() and word[0].isupper() and not whose.isupper()
    if is_title and not forms.has_capital_nouns:  # "My Cousin Vinny"
        return None
    if not forms.is_inflected or not whose or kin.is_many or forms.owner.match(whose):
        return _Mention(kin)
    is_woman = forms.feminine.match(whose) is not None
    if kin.relation in _NEVER_CALLED["he" if not is_woman else "she"]:  # "внучку моему" is no granddaughter
        return None
    return _Mention(kin._replace(is_woman=is_woman), is_oblique=forms.nominative.match(whose) is None)


def _is_plain(written: str, forms: RelationForms) -> bool:
    """Return whether a sentence is the speaker's own, about the present and about what is real."""
    if _QUOTED.match(written) or (_TRANSCRIPT.match(written) and not forms.labelled.match(written)):
        return False
    return not (forms.fiction.search(written) or forms.past.search(written))


def _outer_clause(sentence: _Sentence, forms: RelationForms) -> _Sentence:
    """Return the clause behind the last comma or before the first one, if it begins with a mention and is about the
    present: "Mr Hale died, the new landlady is Ann".
    """
    before, comma, _ = sentence.written.partition(", ")
    for part in (sentence.written.rpartition(", ")[2], before) if comma else ():
        clause = _marked(part, forms)
        if clause.text[:1] in (ONE, BARE) and _is_plain(clause.written, forms):
            return clause
    return _Sentence("", "")


def _told_in(sentence: _Sentence, before: _Sentence | None, forms: RelationForms) -> Iterator[_Told]:
    """Yield the mentions with the names that a sentence gives to them, or to the mention before it."""
    text, mentions = sentence.text, sentence.mentions
    if mentions:
        denied = [found.span() for pattern in forms.not_stated for found in pattern.finditer(text)]
        for pattern, kind in forms.forms:
            for found in pattern.finditer(text):
                place = found.start("what")
                is_denied = any(start <= place < end for start, end in denied)
                if not is_denied and _is_meant(found, kind, sentence, forms):
                    yield from _names_of(found, mentions[place], forms, is_statement=kind == "stated")
    if not sentence.is_question:
        yield from _told_by_pronoun(sentence, before, forms)
        if mentions and before is not None:
            yield from _told_of_the_one_named(sentence, before, forms)


# ---- what is meant


_LISTED = re.compile(rf"(?:{CAPITALISED}|{_MARKS})\s*(?:,|,?\s(?:and|und|y|et|e|и))\s*\Z")
"""What stands before another item of a list: "Karen, Tom, my boss"."""

_TAIL_CHARS = 40
"""So many characters behind a statement may take it back: "my boss is Karen, I think"."""

_TAIL_WORDS = 4
"""A question that begins with a statement goes on for so many words: "my dog is called Rex, which food is best?"."""


def _is_meant(found: re.Match[str], kind: Kind, sentence: _Sentence, forms: RelationForms) -> bool:
    if kind == "stated":
        return _is_stated(found, sentence, forms)
    return _is_beside(found, sentence, forms) and (kind == "behind" or not _LISTED.search(_before(found)))


def _before(found: re.Match[str]) -> str:
    return found.string[: found.start()]


def _is_beside(found: re.Match[str], sentence: _Sentence, forms: RelationForms) -> bool:
    """Return whether a name beside a mention is that one's: not in "if my wife Anna" or "is my boss Karen?"."""
    before = _before(found)
    if forms.unreal.search(before):
        return False
    return not (sentence.is_question and (forms.asking.search(before) or forms.asked_first.match(before)))


def _is_stated(found: re.Match[str], sentence: _Sentence, forms: RelationForms) -> bool:
    """Return whether a statement such as "my boss is Karen" is made without doubt, by the speaker."""
    before, behind = _before(found), found.string[found.end() :]
    said, is_change = before + found.group(), _is_of_change(before, found.group(), sentence, forms)
    if (
        forms.doubtful.search(found.group() if is_change else said)
        or forms.unsure.search(said)
        or forms.afterthoughts.search(behind, 0, _TAIL_CHARS)
    ):
        return False
    if sentence.is_question and (before.strip() or len(behind.split()) < _TAIL_WORDS or not behind.startswith(",")):
        return False
    return not before.strip() or is_change or _is_own_clause(before, found.group(), forms)


def _is_own_clause(before: str, clause: str, forms: RelationForms) -> bool:
    """Return whether the speaker speaks of themselves before a clause, or only announces it: "reminder: ..."."""
    if clause[0] == ":" or ":" in before:
        return forms.labelled.fullmatch(before + clause[0]) is not None
    words = re.findall(r"\w+", before.lower())
    if re.search(_MARKS, before) or not first_person_words(forms.languages).isdisjoint(words):
        return True
    if clause[0] == ";" or forms.ends.search(before):  # "Tom retired, my boss is Karen"
        return True
    return bool(forms.own_verbs.search(before)) or leaves_out_its_subject(before, forms.languages)


def _is_of_change(before: str, clause: str, sentence: _Sentence, forms: RelationForms) -> bool:
    """Return whether a clause tells who is new after what another one did: "Tom left, my new boss is Karen"."""
    return (
        clause[0] in ",;" and forms.new.search(sentence.written) is not None and forms.reported.search(before) is None
    )


# ---- pronouns


_RUN = re.compile(rf"(?<=[^.!?]\s){CAPITALISED}(?:\s+{CAPITALISED}){{0,2}}")
"""Capitalised words inside a sentence."""


def _told_by_pronoun(sentence: _Sentence, before: _Sentence | None, forms: RelationForms) -> Iterator[_Told]:
    """Yield the name that a pronoun gives to the mention before it: "I have a sister. Her name is Anna"."""
    for who, pattern in forms.pronouns:
        for found in pattern.finditer(sentence.text):
            told = _before(found)
            mentions = [each for place, each in sentence.mentions.items() if place < found.start()]
            if not told.strip() and before is not None:
                told, mentions = before.text, list(before.mentions.values())
            if len(mentions) == 1 and _may_mean(who, mentions[0], told, forms):
                yield from _names_of(found, mentions[0], forms, is_statement=False)


def _may_mean(who: str, mention: _Mention, told: str, forms: RelationForms) -> bool:
    """Return whether a pronoun means the one mentioned, and nobody else is spoken of after the mention."""
    relation = mention.kin.relation
    if (
        mention.kin.is_many != (who == "they")
        or relation in _NEVER_CALLED.get(who, ())
        or (who == "it" and relation not in NOT_PEOPLE)
    ):
        return False
    behind = re.split(_MARKS, told)[-1]
    if re.match(r"['’]s\b", behind) or relation_words_in(behind) or forms.others.search(behind):
        return False
    return not any(name_in(run, forms) for run in _RUN.findall(behind))


def _told_of_the_one_named(sentence: _Sentence, before: _Sentence, forms: RelationForms) -> Iterator[_Told]:
    """Yield the mention that a pronoun gives to the only name before it: "I work for Karen. She is my boss"."""
    if before.is_question or before.mentions:
        return
    names = [name for run in _RUN.findall(before.text) if (name := name_in(run, forms))]
    if len(names) == 1 and (found := forms.pointing_back.match(sentence.text)):
        yield _Told(sentence.mentions[found.start("what")], names[0], is_statement=True)


# ---- names


def _names_of(found: re.Match[str], mention: _Mention, forms: RelationForms, *, is_statement: bool) -> Iterator[_Told]:
    title = ""
    if names := found.groupdict().get("names"):
        told = [name_in(each, forms) for each in forms.joined.split(re.sub(r"\s*\([^()]*\)", "", names))]
    else:
        told = [_name_of(found, mention, forms)]
        title = title_in(found.groupdict().get("called") or found["name"], forms)
    if all(told):
        yield from (_Told(mention, name, is_statement, title) for name in told if name)


def _name_of(found: re.Match[str], mention: _Mention, forms: RelationForms) -> str | None:
    called = found.groupdict().get("called")
    is_first = called is None and found.start("name") < found.start("what")
    is_pet = mention.kin.relation in NOT_PEOPLE
    is_loose = called is not None and (is_pet or not called.islower())
    name = name_in(called or found["name"], forms, is_loose=is_loose, is_first=is_first, is_pet=is_pet)
    if name is None or (is_first and forms.abstract.search(name.split()[0])):  # "Patience is my best friend"
        return None
    if not forms.is_inflected or (is_first and not mention.is_oblique):
        return name
    is_woman = mention.kin.is_woman
    return in_nominative(name, forms, is_woman=is_woman, is_oblique=mention.is_oblique, is_called=called is not None)
