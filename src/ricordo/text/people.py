"""Find the people that a statement names by their role or their act: "my sister Lena", "Rowan walks the dog". Pure.

The forms are in the language files (`people`). Questions, quotations and conditions are ignored, and unclear cases are
not counted as people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ricordo.text.languages import NEVER, LanguageSet, all_languages, cached, fold_letters, is_ordinary, languages_of
from ricordo.text.languages.schema import Endings
from ricordo.text.names import (
    NOT_PEOPLE,
    folded_name,
    folded_relation,
    given_names,
    is_inflected,
    looks_nominative,
    nominatives,
    relation_forms,
    relation_words,
    written_titles,
)
from ricordo.text.sentences import plain_sentences

_NAME = r"[A-ZÀ-ÖØ-Þ\u0410-\u042f\u0401][^\W\d_]+(?:[-’'](?!s\b)[^\W\d_]+)*"
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_QUOTE = re.compile(r"[\"“”„«»]")


_ALONE = re.compile(rf"(?<![\w@#/.’'&-])(?<!\bSt )(?<!\bSt\. )(?<!\b[Dd]a ){_NAME}(?![\w@/&-]|\s+{_NAME}|\.\w)")
"""A capitalised word before which no other one ends, and behind which none begins."""

_CAPITALISED_BEFORE = re.compile(rf"{_NAME}\s\Z")


class Person(NamedTuple):
    """A person's name, in the nominative if that is clear. `is_sure`: the text states their role, not only an act."""

    name: str
    is_sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Forms:
    """The forms of some languages; see `People` in the language schema."""

    languages: LanguageSet
    role_words: frozenset[str]
    compound: re.Pattern[str]
    by_role: tuple[re.Pattern[str], ...]
    sure: tuple[re.Pattern[str], ...]
    likely: tuple[re.Pattern[str], ...]
    unreal: re.Pattern[str]
    animals: re.Pattern[str]
    role: re.Pattern[str]
    no_names: frozenset[str]
    given: Mapping[str, str]
    place_before: re.Pattern[str]
    place_behind: re.Pattern[str]
    titles: frozenset[str]
    has_capital_nouns: bool
    oblique_roles: Mapping[str, str]
    feminine: re.Pattern[str]
    feminine_cases: Endings
    masculine_cases: Endings


@cached()
def _forms(languages: LanguageSet) -> _Forms:
    bases = {
        folded_relation(form): folded_relation(word)
        for each in languages
        for word in (*each.entities.roles, *each.people.roles, *(w for ws in each.kinship.words.values() for w in ws))
        for form in relation_forms(word, each.kinship)
    }
    animals = {word for word, relation in relation_words(languages).items() if relation in NOT_PEOPLE}
    roles = bases.keys() - animals
    # A folded letter also matches the original one: "тетя" is also written "тётя".
    words = "|".join(re.escape(word).replace("е", "[её]") for word in sorted(roles, key=len, reverse=True))
    joined = "|".join(languages.in_order(lambda each: each.entities.conjunctions)) or NEVER
    titles = "|".join(map(re.escape, languages.in_order(lambda each: each.people.titles))) or NEVER
    compounds = "|".join(languages.in_order(lambda each: each.people.compounds)) or NEVER
    leads = "|".join(languages.in_order(lambda each: each.relations.leads)) or NEVER
    before = "|".join(map(re.escape, sorted(written_titles(), key=len, reverse=True)))
    name = rf"(?:(?:{before})\.?\s+)*{_NAME}(?:\s+{_NAME}){{0,2}}"
    parts = {
        "<ROLE>": rf"(?:{words or NEVER}|{compounds})",
        "<NAMES>": rf"(?P<name>{name})(?:(?:,\s+(?P<third>{name}))?,?\s+(?i:{joined})\s+(?P<second>{name}))?",
        "<NAME>": rf"(?P<name>{name})",
        "<DOES>": rf"(?:{'|'.join(languages.in_order(lambda each: each.people.does)) or NEVER})",
        "<BETWEEN>": rf"(?:(?:{'|'.join(languages.in_order(lambda each: each.people.between)) or NEVER})\s+)*",
        "<TITLE>": rf"(?:{titles})",
        # Possessive: "and" both leads and joins, so each word would double the ways to match.
        "<LEAD>": rf"^(?i:(?:{leads})[,:!]?\s+){{0,4}}+",
        "<CLAUSE>": rf"(?:^|[,;]\s+)(?i:(?:{leads}|{joined})[,:!]?\s+){{0,4}}+",
    }
    silent = languages.words(lambda each: (*each.function_words, *each.names.not_names, *each.people.no_names))
    more = languages.words(lambda each: (*each.entities.acting, *each.entities.openings, *each.entities.things))
    sure = languages.in_order(lambda each: each.people.sure)
    return _Forms(
        languages=languages,
        role_words=frozenset(role.split()[0] for role in roles),
        compound=re.compile(rf"\b{compounds}\b", re.IGNORECASE),
        by_role=tuple(_compiled(each, parts) for each in sure if "<ROLE>" in each),
        sure=tuple(_compiled(each, parts) for each in sure if "<ROLE>" not in each),
        likely=tuple(_compiled(each, parts) for each in languages.in_order(lambda each: each.people.likely)),
        unreal=languages.pattern(lambda each: each.entities.unreal, r"\b(?:{})\b", flags=re.IGNORECASE),
        animals=languages.pattern(lambda each: each.people.animals, r"\b(?:{})\b", flags=re.IGNORECASE),
        role=re.compile(rf"(?i:\b{parts['<ROLE>']}\b)"),
        no_names=frozenset(map(fold_letters, silent | more | roles)),
        given={_nominative_key(each): each for each in given_names(languages).values()},
        place_before=languages.pattern(
            lambda each: each.names.places_before, rf"(?<!\w)(?i:{{}})\.?\s+(?:\w{{1,3}}\s+){{0,2}}(?:{_NAME}\s+)?\Z"
        ),
        # Short notes seldom show their language: "wohn in der karl heine str 41".
        place_behind=all_languages().pattern(
            lambda each: each.names.places_behind, r"(?:\s+[^\W\d_]+)?\s+(?i:{})(?!\w)"
        ),
        titles=frozenset(map(str.lower, written_titles())),
        has_capital_nouns=any(each.letters.has_capital_nouns for each in languages),
        oblique_roles={form: word for form, word in bases.items() if form not in bases.values()},
        feminine=languages.pattern(lambda each: each.people.feminine, flags=re.IGNORECASE),
        feminine_cases=languages.endings(lambda each: each.people.feminine_cases),
        masculine_cases=languages.endings(lambda each: each.people.masculine_cases),
    )


def _compiled(form: str, parts: dict[str, str]) -> re.Pattern[str]:
    for mark, part in parts.items():
        form = form.replace(mark, part)
    return re.compile(form)


def people_named(text: str) -> tuple[Person, ...]:
    """Return the distinct people that a statement names, the sure ones first.

    >>> [person.name for person in people_named("My coworkers Hamid and Sunniva share an office.")]
    ['Hamid', 'Sunniva']
    """
    found: dict[str, Person] = {}
    for sentence in plain_sentences(text):
        forms = _forms(languages_of(text))
        if sentence.endswith("?") or _QUOTE.search(sentence) or _is_unreal(sentence, forms):
            continue
        for person in _in_sentence(sentence, forms):
            found.setdefault(folded_name(person.name), person)
    return tuple(sorted(found.values(), key=lambda person: not person.is_sure))


def _is_unreal(sentence: str, forms: _Forms) -> bool:
    """Return whether a sentence is about a condition or a story, such as "роман". "Роман" is also a name."""
    names = forms.languages.words(lambda each: each.names.also_words)
    found = (match.group() for match in forms.unreal.finditer(sentence))
    return any(word[0].islower() or word.lower() not in names for word in found)


def _in_sentence(sentence: str, forms: _Forms) -> Iterator[Person]:
    words = {folded_relation(word) for word in _WORD.findall(sentence)}
    words |= {word.removesuffix("s") for word in words}
    # Every language has hundreds of roles, and most sentences contain none.
    has_role = not forms.role_words.isdisjoint(words) or forms.compound.search(sentence)
    for is_sure, patterns in ((True, forms.by_role if has_role else ()), (True, forms.sure), (False, forms.likely)):
        for pattern in patterns:
            for match in pattern.finditer(sentence):
                if forms.animals.search(sentence) and not forms.role.search(match.group()):
                    continue
                for written in match.groupdict().values():
                    name = _name(written or "", match.group(), sentence, forms, is_sure=is_sure)
                    if name:
                        yield Person(name=name, is_sure=is_sure)
    yield from _by_given_name(sentence, forms)


def _by_given_name(sentence: str, forms: _Forms) -> Iterator[Person]:
    """Yield those with a common given name: "lunch with Marta". With a surname they may be known to everybody."""
    for match in _ALONE.finditer(sentence):
        key = _nominative_key(match.group())
        named = next((name for each in nominatives(key) if (name := forms.given.get(each))), None)
        if named is None or _is_no_name(match.group(), sentence, forms, is_sure=False):
            continue
        if forms.place_before.search(sentence, 0, match.start()) or forms.place_behind.match(sentence, match.end()):
            continue
        if forms.has_capital_nouns or not _CAPITALISED_BEFORE.search(sentence, 0, match.start()):
            yield Person(name=named, is_sure=False)


def _nominative_key(name: str) -> str:
    """Return a name in lower case, and folded if its language inflects names: "Völker" is no form of Volker."""
    folded = folded_name(name)
    return folded if is_inflected(folded) else name.lower()


def _name(written: str, said: str, sentence: str, forms: _Forms, *, is_sure: bool) -> str:
    """Return the name in some capitalised words; "" if they cannot be one."""
    words: list[str] = []
    for word in written.split():
        if _is_title(word, forms) and all(_is_title(each, forms) for each in words):
            words.append(word)
        elif _is_no_name(word, sentence, forms, is_sure=is_sure or bool(words)):
            break
        else:
            words.append(word)
    if all(_is_title(word, forms) for word in words):
        return ""
    if not is_inflected(folded_name(" ".join(words))):
        return " ".join(words)
    return _in_nominative(words, said, forms)


def _is_title(word: str, forms: _Forms) -> bool:
    return word.lower().removesuffix(".") in forms.titles


def _is_no_name(word: str, sentence: str, forms: _Forms, *, is_sure: bool) -> bool:
    folded_relation = fold_letters(word.lower())
    if folded_relation in forms.no_names or (word.isupper() and len(word) > 1):
        return True
    if is_sure:
        return False
    is_common = any(is_ordinary(folded_relation, language) for language in forms.languages)
    places = forms.languages.words(lambda each: each.entities.places)
    return is_common or folded_relation in places or re.search(rf"\b{re.escape(word.lower())}\b", sentence) is not None


def _in_nominative(words: list[str], said: str, forms: _Forms) -> str:
    """Return a name in the nominative. After a word for a relative in another case, the name has the same case."""
    role = fold_letters((said.split(words[0])[0].rstrip(" ,—–-").split()[-1:] or [""])[0].lower())
    if role not in forms.oblique_roles and looks_nominative(folded_name(words[0])):
        return " ".join(words)
    is_woman = forms.feminine.search(forms.oblique_roles.get(role, role)) is not None
    cases = forms.feminine_cases if is_woman else forms.masculine_cases
    return " ".join(
        next((re.sub(old, new[0], word) for old, new in cases if re.search(old, word)), word) for word in words
    )
