"""Words for relations: "my wife", "моей жене". The store names a relation by its English word."""

from __future__ import annotations

import re

from ricordo.text.analyzer import index_terms
from ricordo.text.languages import LanguageSet, all_languages, cached, fold_letters, languages_of
from ricordo.text.languages.schema import Kinship

SINGLE = frozenset(
    (
        "wife",
        "husband",
        "spouse",
        "girlfriend",
        "boyfriend",
        "fiancée",
        "fiancé",
        "partner",
        "mother",
        "father",
        "mother-in-law",
        "father-in-law",
        "boss",
        "landlord",
        "landlady",
        "ex-wife",
        "ex-husband",
        "best friend",
    )
)
"""Relations with one holder at a time: a new wife ends the relation with the one before."""

NOT_PEOPLE = frozenset(("dog", "cat"))
"""Relations whose names are not learnt from a sentence: a name that is learnt becomes a person."""


@cached()
def relation_words(languages: LanguageSet | None = None) -> dict[str, str]:
    """Return every form of every relation word, folded, to the relation's name: "жене" to "wife".

    Args:
        languages: those to take the words of; all of them by default.
    """
    found: dict[str, str] = {}
    for language in all_languages() if languages is None else languages:
        kinship = language.kinship
        for relation, words in kinship.words.items():
            for form in (form for word in words for form in forms_of(word, kinship)):
                found.setdefault(folded(form), relation)
    return found


def folded(text: str) -> str:
    """Fold a relation as relations are compared: lower case, single blanks."""
    return " ".join(fold_letters(text.lower()).split())


def forms_of(word: str, kinship: Kinship) -> list[str]:
    """Return the forms of a word, or of an adjective and a noun."""
    if not kinship.noun_endings:
        return [word]
    *adjectives, noun = word.split()
    nouns = [*kinship.irregular.get(noun, ()), noun]
    ending, cases = next((each for each in kinship.noun_endings if noun.endswith(each[0])), ("", ("",)))
    nouns += [noun.removesuffix(ending) + case for case in cases]
    if not adjectives:
        return nouns
    return [f"{adjectives[0][:-2]}{case} {form}" for case in kinship.adjective_endings for form in nouns]


@cached()
def relation_pattern(languages: LanguageSet) -> str:
    """Return a regular expression of every form of every relation word, the longest first."""
    words = sorted(relation_words(languages), key=len, reverse=True)
    return "|".join(_either_letter(re.escape(word)).replace(r"\ ", r"\s+") for word in words)


def _either_letter(pattern: str) -> str:
    """Let a folded letter stand for those that fold to it."""
    for letter, other in all_languages().mapping(lambda each: each.letters.folds).items():
        pattern = pattern.replace(other, f"[{other}{letter}]")
    return pattern


@cached()
def _phrase(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of "my older brother", with the relation as its group."""
    kinds = "|".join(languages.in_order(lambda each: each.kinship.kinds))
    mine = "|".join(languages.in_order(lambda each: each.kinship.possessives))
    return re.compile(
        rf"(?<![\w-])(?:{mine})\s+(?:(?:{kinds})\s+)?({relation_pattern(languages)})(?![\w-])", re.IGNORECASE
    )


def relation_named(name: str) -> str | None:
    """Return the relation a whole text names, seen from the speaker: "my wife" and "моей жене" are "wife".

    >>> relation_named("моей жене"), relation_named("my wife's sister")
    ('wife', None)
    """
    languages = all_languages()
    found = _phrase(languages).fullmatch(name.strip())
    return None if found is None else relation_words(languages)[folded(found.group(1))]


@cached()
def _after_possessive(languages: LanguageSet) -> re.Pattern[str]:
    kinds = "|".join(languages.in_order(lambda each: each.kinship.kinds))
    mine = "|".join(languages.in_order(lambda each: each.kinship.possessives))
    return re.compile(rf"(?<![\w-])(?:{mine})\s+(?:(?:{kinds})\s+)?([\w-]+)", re.IGNORECASE)


@cached()
def _first_words(languages: LanguageSet) -> frozenset[str]:
    return frozenset(word.split()[0] for word in relation_words(languages))


@cached()
def _owner_behind(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.kinship.owner_behind, r"\b(?:{})\b", flags=re.IGNORECASE)


def may_name_relation(text: str) -> bool:
    """Return whether a text may speak of a relation of the speaker's: quick, and true a little too often."""
    lowered = text.lower()
    languages = languages_of(text)
    first_words = _first_words(languages)
    if _owner_behind(languages).search(text):
        return not first_words.isdisjoint(map(folded, re.findall(r"[\w-]+", text)))
    if not any(beginning in lowered for each in languages for beginning in each.kinship.beginnings):
        return False
    return any(folded(found.group(1)) in first_words for found in _after_possessive(languages).finditer(text))


def relations_in(text: str) -> frozenset[str]:
    """Return the relations of the speaker that a text speaks of. "My wife's sister" speaks of the wife alone."""
    if not may_name_relation(text):
        return frozenset()
    languages = languages_of(text)
    words = relation_words(languages)
    return frozenset(words[folded(found.group(1))] for found in _phrase(languages).finditer(text))


def stems_of(predicate: str) -> list[str]:
    """Return the words of a relation, one for each stem that an index may hold; none of an unknown relation."""
    forms = [word for word, name in relation_words().items() if name == predicate]
    return list({" ".join(index_terms(form)): form for form in forms}.values())


def known_relation(word: str) -> str | None:
    """Return the relation of a bare word: "wife", "начальница"."""
    return relation_words().get(folded(word))


def predicate_of(label: str) -> str:
    """Return the store's name of a relation: "жена" is "wife"; an unknown label is kept folded."""
    label = folded(label)
    return known_relation(label) or relation_named(label) or label
