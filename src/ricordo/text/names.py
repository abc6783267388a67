"""Compare written forms of names, and find known names in a text.

A name may occur in another script, romanisation or grammatical case. Nothing here decides that two people are one.
`likeness` tells how closely a written form matches a known name; a looser match counts only if no stricter one exists.
To find names, every run of up to four words is looked up among the folded names. Latin names match as complete words,
names of inflected languages in any case, and a capitalised word also in another script or spelling. "My wife" names a
person by a relation to the speaker.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any, Literal, NamedTuple

from anyascii import anyascii

from ricordo.text.analyzer import fold_word, index_terms, name_key, name_tokens, raw_words
from ricordo.text.languages import (
    NEVER,
    LanguageSet,
    all_languages,
    cached,
    default_languages,
    fold_letters,
    is_ordinary,
    languages_of,
)
from ricordo.text.languages.schema import Endings, Kinship

Likeness = Literal["same", "form", "sound"]
"""The same letters, an inflected form, or another spelling, perhaps in another script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cases:
    """The grammatical cases of names in one language. `letters` matches a letter of the language in a folded word."""

    letters: re.Pattern[str]
    endings: Endings
    vowels: str
    fleeing: Mapping[str, str]
    fleeing_suffix: re.Pattern[str]
    fleeing_forms: tuple[str, ...]
    fleeing_endings: frozenset[str]
    oblique: re.Pattern[str]


@cached()
def _cases() -> tuple[_Cases, ...]:
    return tuple(
        _Cases(
            letters=re.compile(f"[{each.letters.inflected}]"),
            endings=each.names.declension,
            vowels=each.names.vowels,
            fleeing=each.names.fleeing_stems,
            fleeing_suffix=re.compile(each.names.fleeing_suffix or NEVER),
            fleeing_forms=each.names.fleeing_forms,
            fleeing_endings=frozenset(each.names.fleeing_endings),
            oblique=re.compile("|".join(each.names.oblique) or NEVER),
        )
        for each in all_languages()
        if each.letters.inflected
    )


@cached(maxsize=16_384)
def _cases_of(word: str) -> _Cases | None:
    """Return the cases of a folded word's language, judged by its letters; None if names are not inflected there."""
    return next((cases for cases in _cases() if cases.letters.search(word)), None)


def is_inflected(text: str) -> bool:
    """Return whether a folded text has letters of a language that inflects names."""
    return _cases_of(text) is not None


def name_words(text: str) -> list[str]:
    """Return the words of a name, normalised but not stemmed: "Сарой" becomes "сарой", "José" becomes "jose"."""
    return [fold_word(word) for word in raw_words(text)]


def untitled_words(name: str) -> list[str]:
    """Return the words of a name without titles; all of them if it has nothing else.

    >>> untitled_words("Dr. Bell"), untitled_words("Dr")
    (['bell'], ['dr'])
    """
    words = name_words(name)
    return [word for word in words if word not in _titles()] or words


def split_title(name: str) -> tuple[frozenset[str], str]:
    """Return the titles and words for relatives that a name begins with, folded, and the rest; none if nothing is left.

    >>> split_title("Dr. Bell"), split_title("Uncle Bob"), split_title("Oma")
    ((frozenset({'dr'}), 'Bell'), (frozenset({'uncle'}), 'Bob'), (frozenset(), 'Oma'))
    """
    words = name.split()
    count = next((place for place, word in enumerate(words) if folded_name(word) not in _titles()), 0)
    return frozenset(map(folded_name, words[:count])), " ".join(words[count:])


_LOWER = re.compile(r"(?<![\w@#/.'’-])[^\W\d_]{3,}(?![\w@/-]|[.]\w)")


def with_name_capitals(text: str, *, is_of_relation: bool = True) -> str:
    """Return a text with capitals for the given names that it has in lower case, except those that are also words.

    Args:
        is_of_relation: whether only statements of relations are looked for. Elsewhere, a word of any language is no
            name, because people quote others ("cacio e pepe"), unless a statement begins with it: "pepe hat ein Auto".

    >>> with_name_capitals("my sister birgit works with mark, not with tom")
    'my sister Birgit works with mark, not with Tom'
    """
    languages = languages_of(text)
    if is_of_relation:
        return _capitalised(_LOWER, text, given_names(languages))
    return _capitalised(_SUBJECT, _capitalised(_LOWER, text, _unmistakable_names()), _names_of_subjects(languages))


def _capitalised(word: re.Pattern[str], text: str, names: Mapping[str, str]) -> str:
    return word.sub(lambda found: names.get(found.group(), found.group()), text)


# The first word of a clause with at least two further words.
_SUBJECT = re.compile(r"(?:^|(?<=[.!?;:,\n] ))[^\W\d_]{3,}(?=\s+[^\W\d_]+\s+\w)", re.MULTILINE)


@cached()
def _names_of_subjects(languages: LanguageSet) -> Mapping[str, str]:
    """Return the given names that are words neither of these languages nor of the one that people mix into others."""
    mixed = languages.union(default_languages())
    words = mixed.words(lambda each: each.names.words_elsewhere)
    return {lower: name for lower, name in given_names(mixed).items() if lower not in words}


@cached()
def _unmistakable_names() -> Mapping[str, str]:
    languages = all_languages()
    words = languages.words(lambda each: each.names.words_elsewhere)
    return {lower: name for lower, name in given_names(languages).items() if lower not in words}


@cached()
def given_names(languages: LanguageSet) -> Mapping[str, str]:
    """Return the given names of all languages, by how they are written in lower case, that are no words of these."""
    names = all_languages().words(lambda each: each.names.given)
    words = languages.words(lambda each: (*each.names.words, *each.names.also_words, *each.function_words))
    # "Jules" is Jule's in German, Andreas not Andrea's.
    own = languages.words(lambda each: each.names.given if each.letters.has_capital_nouns else ())
    genitives = {f"{name}s" for name in own} - own
    return {each.lower(): each for each in names - genitives if each.lower() not in words}


@cached()
def written_titles(*, has_relatives: bool = True) -> frozenset[str]:
    """Return the titles of all languages as they are written before a name, without those that are names, too: "Don". A
    person keeps a title in a sentence of another language: "My dentist is Dra. Sousa".

    Args:
        has_relatives: whether words for relatives count, as in "zia Carla".
    """
    languages = all_languages()
    given = languages.words(lambda each: (*each.names.titles, *each.relations.titles))
    given |= languages.words(lambda each: each.people.titles) if has_relatives else frozenset()
    names = languages.words(lambda each: each.relations.also_names)
    bare = frozenset(title.removesuffix(".") for title in given)
    titles = frozenset(title for title in bare if names.isdisjoint(name_words(title)))
    return titles | {title[0].upper() + title[1:] for title in titles}


@cached()
def _titles() -> frozenset[str]:
    """Return the titles of all languages, folded."""
    return frozenset(word for title in written_titles() for word in name_words(title))


def folded_name(name: str) -> str:
    """Return a name in the form in which names are compared letter by letter."""
    return " ".join(name_words(name))


@cached(maxsize=16_384)
def nominatives(word: str) -> tuple[str, ...]:
    """Return a folded word and its possible nominatives; only the word if its language does not inflect names.

    >>> nominatives("сарой")
    ('сарой', 'сара', 'сарая')
    """
    cases = _cases_of(word)
    if cases is None:
        return (word,)
    found = [word]
    for ending, endings in cases.endings:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 2:
            bare = cases.fleeing.get(stem)
            found += [stem + other for other in endings if other or stem[-1] not in cases.vowels]
            found += [bare] if bare else []
            if ending in cases.fleeing_endings and (shorter := cases.fleeing_suffix.sub("", stem)) != stem:
                found += [shorter + form for form in cases.fleeing_forms]
    return tuple(dict.fromkeys(fold_word(form) for form in found))


def looks_nominative(word: str) -> bool:
    """Return whether a folded word may be the nominative of a name."""
    cases = _cases_of(word)
    return cases is None or not cases.oblique.search(word)


def likeness(written: str, known: str) -> Likeness | None:
    """Return how a written name matches a known one; None if it does not."""
    mine, theirs = name_words(written), name_words(known)
    if mine == theirs:
        return "same"
    if len(mine) == len(theirs) and all(name in nominatives(word) for word, name in zip(mine, theirs, strict=True)):
        return "form"
    is_other_script = any(not word.isascii() and not is_inflected(word) for word in mine)
    if is_other_script and name_key(written) == name_key(known):
        return "form"
    sounds = sound_keys(written)
    return "sound" if sounds and same_name_key(known) in sounds else None


def look_up_keys(written: str) -> tuple[str, ...]:
    """Return the keys under which a name may be stored: its own and those of its nominatives."""
    words = name_words(written)
    forms = nominatives(words[0]) if len(words) == 1 else ()
    return tuple(dict.fromkeys(name_key(form) for form in (written, *forms) if name_key(form)))


MIN_SOUND_CHARS = 3
"""Two characters are too few to recognise a name by its sound."""


def sound_keys(written: str) -> tuple[str, ...]:
    """Return the sound keys of a name and its nominatives; none if they are too short to distinguish names."""
    words = name_words(written)
    forms = nominatives(words[0]) if len(words) == 1 else (written,)
    keys = dict.fromkeys(key for form in forms for key in _variants(same_name_key(form)))
    return tuple(key for key in keys if len(key) >= MIN_SOUND_CHARS)


def _variants(key: str) -> tuple[str, ...]:
    """Return a sound key and those of spellings that keep or drop the soft sign of a vowel: Liudmila, Ludmila."""
    return key, _SOFT_U.sub("u", key), _HARD_U.sub("iu", key, count=1)


_SOFT_U = re.compile("(?<=[b-df-hj-np-tv-xz])iu")
_HARD_U = re.compile("(?<=[b-df-hj-np-tv-xz])u")


@cached(maxsize=16_384)
def same_name_key(name: str) -> str:
    """Return the approximate sound of a name in Latin letters, equal for its spellings in all scripts.

    Use it to look up a name that has no exact match, never to decide that two known people are one. Empty for a name
    without letters. In scripts that omit vowels (Hebrew, Arabic), a name matches only itself.

    >>> same_name_key("Йонас") == same_name_key("Jonas"), same_name_key("Юлия") == same_name_key("Julia")
    (True, True)
    """
    return "".join(_sound(word) for word in name_words(name))


def _sound(word: str) -> str:
    if not word.isascii():
        word = anyascii(_GREEK.sub(lambda pair: _SPELLINGS["greek"][pair.group()], word)).lower()
    word = re.sub(r"[^a-z0-9]", "", word)
    for pattern, replacement in _ROMANISATIONS:
        word = pattern.sub(replacement, word)
    return word


_SPELLINGS: Mapping[str, Any] = tomllib.loads((files("ricordo.text") / "romanisation.toml").read_text("utf-8"))
_GREEK = re.compile("μπ|ντ|γκ|ου|αυ|ευ|τζ|γι(?=[αεουω])|χ|υ|η")
_ROMANISATIONS = tuple((re.compile(pattern), replacement) for pattern, replacement in _SPELLINGS["rules"])


# ---- names within a text

MAX_NAME_WORDS = 4
# In long documents, names are searched at the beginning only: a 10 MB text would give forty million runs.
MAX_CHARS = 20_000


class Run(NamedTuple):
    """Consecutive words that could be a name: the key for the look-up, and the words as written.

    `follows` is whether the run is inside a sentence, so that its capital letter is significant.
    """

    key: str
    written: str
    is_capital: bool
    follows: bool

    def look_up(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the keys and the sound keys of the run. A capitalised run also has those of its nominatives."""
        keys = (self.key, self.possessor) if self.possessor else (self.key,)
        if not self.is_capital:
            return keys, ()
        if " " in self.key or not is_inflected(self.key):
            return keys, sound_keys(self.written)
        return (*keys, *look_up_keys(self.written)), sound_keys(self.written)

    @property
    def possessor(self) -> str:
        """The name of which the run is the possessive form without an apostrophe: "lauras"; "" if it is none."""
        ending = next((each for each in _possessives() if self.key.endswith(each)), "")
        bare = self.key.removesuffix(ending)
        return bare if ending and len(bare) >= MIN_SOUND_CHARS and bare.isascii() else ""


@cached()
def _possessives() -> tuple[str, ...]:
    """Return the endings of possessive forms without an apostrophe, in all languages."""
    return tuple(sorted(all_languages().words(lambda each: (each.names.possessive,)) - {""}))


class Bearer(NamedTuple):
    """A name and the entity that has it.

    Mentions link to `entity`, which has the name, so they stay valid when it is merged into another entity or split off
    again. `whole` is the entity it is merged into now, and decides whether the name is ambiguous.
    """

    name: str
    entity: int
    whole: int


NameIndex = Mapping[str, Sequence[Bearer]]
"""Map a folded name or a sound key to the entities with that name."""


@cached(maxsize=1_024)
def runs_in(text: str) -> tuple[Run, ...]:
    """Return every distinct run of one to four words, each of which could be a name."""
    tokens = name_tokens(text[:MAX_CHARS])
    found: list[Run] = []
    for start, first in enumerate(tokens):
        key, written, is_capital = first.term, first.written, first.is_capital
        found.append(Run(key, written, is_capital, first.follows))
        for token in tokens[start + 1 : start + MAX_NAME_WORDS]:
            key, written = f"{key} {token.term}", f"{written} {token.written}"
            is_capital = is_capital and token.is_capital
            found.append(Run(key, written, is_capital, first.follows))
    return tuple(dict.fromkeys(found))


def first_names_in(text: str) -> tuple[str, ...]:
    """Return the capitalised words of a text, folded, that may be the first word of somebody's name.

    >>> first_names_in("May I invite Priya for dinner?")
    ('priya',)
    """
    runs = (run for run in runs_in(text) if run.is_capital and " " not in run.written)
    words = dict.fromkeys(folded_name(run.written) for run in runs)
    return tuple(word for word in words if len(word) >= _LEAST_CHARS and is_name_here(word, text))[:_MOST_FIRST_NAMES]


_LEAST_CHARS, _MOST_FIRST_NAMES = 2, 12


def candidates(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return all keys and all sound keys of several texts, for one look-up."""
    return _candidates(tuple(texts))


@lru_cache(maxsize=16)  # a search asks twice
def _candidates(texts: tuple[str, ...]) -> tuple[list[str], list[str]]:
    keys: dict[str, None] = {}
    sounds: dict[str, None] = {}
    for run in {run for text in texts for run in runs_in(text)}:
        its_keys, its_sounds = run.look_up()
        keys.update(dict.fromkeys(its_keys))
        sounds.update(dict.fromkeys(its_sounds))
    return list(keys), list(sounds)


def entities_meant_by(run: Run, known: NameIndex, text: str) -> list[int]:
    """Return the entity that a run names: by the exact name, else by an inflected form or another spelling. If several
    entities have the name, return none, because the name is ambiguous.
    """
    if not run.is_capital and run.key not in known and run.possessor not in known:  # most runs, by far
        return []
    if relation_named(run.written):  # "my wife" depends on who speaks, not on the letters
        return []
    if not run.is_capital and run.written.lower() in _words_and_names(languages_of(text)):
        return []
    likely: dict[str, set[Bearer]] = {}
    keys, sounds = run.look_up()
    for key in (*keys, *sounds):
        for bearer in known.get(key, ()):
            if like := _likeness(run, key, bearer.name, text):
                likely.setdefault(like, set()).add(bearer)
    for like in ("same", "form", "sound"):
        if like in likely:
            is_clear = len({bearer.whole for bearer in likely[like]}) == 1
            is_here = like != "same" or is_name_here(run.key, text)
            return sorted({bearer.entity for bearer in likely[like]}) if is_clear and is_here else []
    return []


@cached()
def _words_and_names(languages: LanguageSet) -> frozenset[str]:
    """Return the ordinary words that are also names: "вера" is faith, Вера a woman."""
    return languages.words(lambda each: each.names.also_words)


def _likeness(run: Run, key: str, alias: str, text: str) -> str | None:
    if key == run.key == name_key(alias) and not is_inflected(key):
        return "same"  # by the key: Latin keys are not stemmed, and a CJK key is a pair of characters
    if key == run.possessor == name_key(alias):
        return "form" if _is_possessive(run, languages_of(text)) else None
    like = likeness(run.written, alias)
    is_bold = like == "sound" and not run.follows and run.written.isascii() == alias.isascii()
    return None if is_bold else like


def _is_possessive(run: Run, languages: LanguageSet) -> bool:
    """Return whether a run is the possessive form of a given name: not "Andreas" of Andrea, nor "roses" of Rose, nor
    "kestrels", which may be birds, of a project Kestrel.
    """
    word, last = run.written.rsplit(maxsplit=1)[-1], run.possessor.rsplit(maxsplit=1)[-1]
    known = given_names(languages)
    if word in known or last not in known or not any(each.names.possessive for each in languages):
        return False
    is_sure = run.is_capital and run.follows
    return is_sure or not any(is_ordinary(each, language) for each in (word, last) for language in languages)


def is_name_here(name: str, text: str) -> bool:
    """Return whether a folded name can be a name in this text. A function word can only if it is capitalised."""
    if name not in _ambiguous(languages_of(text)):
        return True
    return re.search(rf"(?<!^)(?<![.!?] )\b{re.escape(name.capitalize())}\b", text[:MAX_CHARS]) is not None


@cached()
def _ambiguous(languages: LanguageSet) -> frozenset[str]:
    """Return the words that are only sometimes names. Inflected names are stems, which are never function words."""
    uninflected = languages.words(lambda each: () if each.letters.inflected else each.function_words)
    return uninflected | languages.words(lambda each: each.names.also_words)


# ---- relations: "my wife", "моей жене". The store identifies a relation by its English word.

_SINGLE = """wife, husband, spouse, girlfriend, boyfriend, fiancée, fiancé, partner, mother, father, mother-in-law,
father-in-law, boss, landlord, landlady, ex-wife, ex-husband, best friend"""

SINGLE = frozenset(each.strip() for each in _SINGLE.split(","))
"""Relations with one holder at a time: a new wife ends the relation with the previous one."""

NOT_PEOPLE = frozenset(
    (
        *("dog", "cat", "rabbit", "hamster", "parrot", "budgie", "guinea pig"),
        *("tortoise", "horse", "ferret", "canary", "goldfish"),
    )
)
"""Relations whose names are not learnt from a sentence, because a learnt name becomes a person."""


@cached()
def relation_words(languages: LanguageSet | None = None) -> dict[str, str]:
    """Map every form of every relation word, folded, to the relation's name: "жене" to "wife".

    Args:
        languages: the languages of the words; all by default.
    """
    found: dict[str, str] = {}
    for language in all_languages() if languages is None else languages:
        kinship = language.kinship
        for relation, words in kinship.words.items():
            for form in (form for word in words for form in relation_forms(word, kinship)):
                found.setdefault(folded_relation(form), relation)
    return found


def folded_relation(text: str) -> str:
    """Normalise a relation for comparison: lower case, single blanks."""
    return " ".join(fold_letters(text.lower()).split())


def relation_forms(word: str, kinship: Kinship) -> list[str]:
    """Return the inflected forms of a noun, or of an adjective and a noun."""
    if not kinship.noun_endings:
        return [word]
    *adjectives, noun = word.split()
    nouns = [*kinship.irregular.get(noun, ()), noun]
    ending, cases = next((each for each in kinship.noun_endings if noun.endswith(each[0])), ("", ("",)))
    nouns += [noun.removesuffix(ending) + case for case in cases]
    if not adjectives:
        return nouns
    return [f"{adjectives[0][:-2]}{case} {form}" for case in kinship.adjective_endings for form in nouns]


class Relation(NamedTuple):
    """A word for a relation in a text: the relation's name, and the end of the word."""

    name: str
    end: int


def relation_at(text: str, start: int, languages: LanguageSet | None = None) -> Relation | None:
    """Return the relation whose word begins at a place in a text: the longest, such as "best friend".

    Args:
        languages: of the words; all by default.

    >>> relation_at("my ex-wife Jo", 3)
    Relation(name='ex-wife', end=10)
    """
    relations = relation_words(languages)
    ends = [word.end() for word in islice(_WORDS.finditer(text, start), _most_words(languages))]
    found = ((relations.get(folded_relation(text[start:end])), end) for end in reversed(ends))
    return next((Relation(name, end) for name, end in found if name), None)


@cached()
def _most_words(languages: LanguageSet | None) -> int:
    """Return how many words the longest word for a relation has."""
    return max((len(word.split()) for word in relation_words(languages)), default=0)


def either_letter(pattern: str) -> str:
    """Replace each folded letter in a pattern by a class of all letters that fold to it."""
    for letter, other in all_languages().mapping(lambda each: each.letters.folds).items():
        pattern = pattern.replace(other, f"[{other}{letter}]")
    return pattern


def _own_relations(text: str, languages: LanguageSet) -> Iterator[tuple[int, Relation]]:
    """Yield the relations in phrases such as "my older brother", each with the start of its phrase."""
    for found in _possessive(languages).finditer(text):
        starts = (place for place in (found.end("kind"), found.end("mine")) if place >= 0)
        relations = (relation_at(text, start, languages) for start in starts)
        if relation := next(filter(None, relations), None):
            yield found.start(), relation


@cached()
def _possessive(languages: LanguageSet) -> re.Pattern[str]:
    kinds = "|".join(languages.in_order(lambda each: each.kinship.kinds)) or NEVER
    mine = "|".join(languages.in_order(lambda each: each.kinship.possessives)) or NEVER
    return re.compile(rf"(?<![\w-])(?P<mine>(?:{mine})\s+)(?P<kind>(?:{kinds})\s+)?", re.IGNORECASE)


def relation_named(name: str) -> str | None:
    """Return the relation that a complete text names, seen from the speaker: "my wife" and "моей жене" are "wife".

    >>> relation_named("моей жене"), relation_named("my wife's sister")
    ('wife', None)
    """
    languages = all_languages()
    words = folded_relation(name).split()
    if len(words) < 2 or words[-1] not in _last_words(languages):  # most names, quickly
        return None
    name = name.strip()
    own = _own_relations(name, languages)
    whole = (relation.name for start, relation in own if start == 0 and relation.end == len(name))
    mine = _possessive(languages).match(name)
    of_work = _further_relations().get(folded_relation(name[mine.end("mine") :])) if mine else None
    return next(whole, of_work)


@cached()
def _further_relations() -> dict[str, str]:
    """Return the words for relations outside a family, folded, such as those for a boss, with their relations."""
    rows = (
        (form, relation)
        for each in reversed(all_languages())
        for relation, words in each.relations.words.items()
        for word in words
        for form in relation_forms(word, each.kinship)
    )
    return {folded_relation(form): relation for form, relation in rows}


@cached()
def _first_words(languages: LanguageSet) -> frozenset[str]:
    return frozenset(word.split()[0] for word in relation_words(languages))


_WORDS = re.compile(r"[\w-]+")


@cached()
def _last_words(languages: LanguageSet) -> frozenset[str]:
    return frozenset(word.split()[-1] for word in (*relation_words(languages), *_further_relations()))


@cached()
def _owner_behind(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.kinship.owner_behind, r"\b(?:{})\b", flags=re.IGNORECASE)


def has_relation_word(text: str) -> bool:
    """Return whether a text has a word with which the name of a relation begins: "wife", of any person."""
    return not _first_words(all_languages()).isdisjoint(_WORDS.findall(fold_letters(text.lower())))


def may_name_relation(text: str) -> bool:
    """Return whether a text may mention a relation of the speaker. Fast, with some false positives."""
    if not has_relation_word(text):  # most texts, by far
        return False
    lowered, languages = text.lower(), languages_of(text)
    if _owner_behind(languages).search(text):
        return not _first_words(languages).isdisjoint(map(folded_relation, _WORDS.findall(text)))
    if not any(beginning in lowered for each in languages for beginning in each.kinship.beginnings):
        return False
    return next(_own_relations(text, languages), None) is not None


def relations_in(text: str) -> frozenset[str]:
    """Return the relations of the speaker that a text mentions. For "My wife's sister" that is only the wife."""
    if not may_name_relation(text):
        return frozenset()
    return frozenset(relation.name for _, relation in _own_relations(text, languages_of(text)))


def own_relatives(text: str) -> tuple[str, ...]:
    """Return the phrases with which a text mentions relatives of the speaker.

    >>> own_relatives("Yesterday my sister called")
    ('my sister',)
    """
    return tuple(text[start : relation.end] for start, relation in _own_relations(text, languages_of(text)))


def own_things(text: str) -> frozenset[str]:
    """Return the index terms of the two words after each "my" in a text.

    >>> sorted(own_things("What is my rent?"))
    ['rent']
    """
    behind = (text[found.end() :] for found in _possessive(languages_of(text)).finditer(text))
    return frozenset(term for rest in behind for word in _WORDS.findall(rest)[:2] for term in index_terms(word))


def words_for(predicate: str) -> list[str]:
    """Return all forms of all words for a relation, folded."""
    return [word for word, name in relation_words().items() if name == predicate]


def relations_asked(text: str) -> dict[str, list[str]]:
    """Return all words for each relation of the speaker that a text mentions: a contact may have one as its name."""
    return {each: words_for(each) for each in sorted(relations_in(text))}


def with_relations(text: str) -> str:
    """Return a text followed by all words for the relations that it mentions."""
    return " ".join((text, *(word for words in relations_asked(text).values() for word in words)))


def stems_of(predicate: str) -> list[str]:
    """Return the words of a relation, one for each stem that an index may hold; none for an unknown relation."""
    return list({" ".join(index_terms(form)): form for form in words_for(predicate)}.values())


def known_relation(word: str) -> str | None:
    """Return the relation named by a single word: "wife", "начальница"."""
    return relation_words().get(folded_relation(word))


_JOINS = frozenset(["about", "at", "by", "for", "from", "in", "of", "on", "to", "with"])
_VERBS = frozenset(["is", "was", "are", "were", "has", "had", "will"])


def relation_told(target: str, predicate: str, source: str) -> str:
    """Return a relation as a sentence: "Acme is the employer of Ann", but "Karla is married to Denis", since
    other programs name their relations with verbs.
    """
    words = predicate.replace("_", " ").split()
    is_verb = bool(words) and (words[0] in _VERBS or (len(words) > 1 and words[-1] in _JOINS))
    return f"{source} {' '.join(words)} {target}" if is_verb else f"{target} is the {predicate} of {source}"


def predicate_of(label: str) -> str:
    """Return the stored name of a relation: "wife" for "жена". An unknown label is returned folded."""
    label = folded_relation(label)
    return known_relation(label) or relation_named(label) or label
