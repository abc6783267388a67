"""Recognise people, organisations, projects and places by the words next to their names. Pure.

The words are in the language files. A name without evidence of its kind, or with conflicting evidence, is skipped:
"Paris said" may refer to a person, a town or a government. The message remains searchable until a model reads it.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Literal, NamedTuple

from ricordo.model import EntityType
from ricordo.text.analyzer import index_terms
from ricordo.text.denied_names import without_denied_names
from ricordo.text.languages import (
    NEVER,
    LanguageSet,
    Lexicon,
    all_languages,
    bases_of,
    cached,
    endings_of,
    fold_letters,
    is_ordinary,
    languages_of,
    pattern_of,
    words_of,
)
from ricordo.text.languages.schema import Endings, Entities, Language
from ricordo.text.names import (
    NOT_PEOPLE,
    folded_name,
    is_inflected,
    looks_nominative,
    nominatives,
    relation_words,
    split_title,
    with_name_capitals,
)
from ricordo.text.people import people_named
from ricordo.text.sentences import plain_sentences

CERTAIN, SETTLES, HINTS = 4, 2, 1
"""The weights of cues. One cue that settles is enough for the kind of a name; of the hints, two are needed."""

_SIDE_CHARS = 100
_MOST_WORDS = 5
_COMPOUND_CHARS = 5  # shorter words also end names: "Tobag"

Between = Literal["blank", "verb", "possessive", "comma", "comma or blank"]

_BETWEEN: Mapping[Between, str] = {
    "blank": r"\s+",
    "possessive": r"['’]s\s+",
    "comma": r",\s+",
    "comma or blank": r",?\s+",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _CueKind:
    """A cue next to a name that shows its kind; entity_cues.toml describes the fields."""

    name: str
    type: EntityType
    between: Between | None = None
    weight: int = SETTLES
    needs: int = 1
    is_plain: bool = False


_CUES = tuple(
    _CueKind(name=name, **row)
    for name, row in tomllib.loads((files("ricordo.text") / "entity_cues.toml").read_text("utf-8")).items()
)


class _Cue(NamedTuple):
    """A cue with its pattern in some languages."""

    kind: _CueKind
    pattern: re.Pattern[str]


def folded_words(languages: LanguageSet, of: Callable[[Entities], Sequence[str]]) -> frozenset[str]:
    """Return a word list of some languages, folded."""
    return frozenset(map(fold_letters, languages.words(lambda each: of(each.entities))))


def _folded(of: Callable[[Entities], Sequence[str]]) -> cached_property[frozenset[str]]:
    return cached_property(lambda lexicon: frozenset(map(folded_name, folded_words(lexicon.languages, of))))


_AFTER_BLANK = r"(?:^|\s)(?:{})\s+\Z"
_WORD = r"(?<!\w)[A-ZÀ-ÖØ-Þ\u0410-\u042f\u0401][^\W_]*(?:[-’'](?!s\b)[^\W_]+)*"
_PARTICLE = r"\s+(?:van|von|de|da|del|di|bin)\s+(?:der\s+|den\s+|la\s+)?"


class _CueWords(Lexicon):
    """The words that recognise names and their kinds; see `Entities` in the language schema."""

    in_place = pattern_of(lambda each: each.entities.in_place, r"(?:^|\W)(?i:{})\s+\Z")
    unreal = pattern_of(lambda each: each.entities.unreal, r"\b(?:{})\b", flags=re.IGNORECASE)
    verb_first = pattern_of(lambda each: each.entities.verb_first, r"(?:{})\Z")
    no_single = pattern_of(lambda each: each.entities.no_single, r"(?:{})\Z")
    doing = pattern_of(lambda each: each.entities.doing)
    pronoun = pattern_of(lambda each: each.entities.pronouns, r"[,;:—–-]\s(?:[\w'’ ]{0,60}\s)?(?:{})\b")
    beside = pattern_of(lambda each: each.entities.conjunctions, rf"\s+(?:{{}})\s+{_WORD}(?:\s+{_WORD})?\s+([^\W\d_]+)")
    preposition = pattern_of(lambda each: each.names.preposition, _AFTER_BLANK, flags=re.IGNORECASE)
    instrumental_preposition = pattern_of(
        lambda each: each.names.instrumental_preposition, _AFTER_BLANK, flags=re.IGNORECASE
    )
    instrumental = endings_of(lambda each: each.names.instrumental)
    locative = endings_of(lambda each: each.names.locative)
    function_words = words_of(lambda each: each.function_words)
    inflected_function_words = words_of(lambda each: each.function_words if each.letters.inflected else ())
    not_names = words_of(lambda each: map(folded_name, each.names.not_names))
    also_names = words_of(lambda each: map(folded_name, (*each.names.also_words, *each.relations.also_names)))
    titles = words_of(lambda each: map(folded_name, each.people.titles))
    role_stops = words_of(lambda each: each.entities.role_stops)
    of = words_of(lambda each: each.entities.of)
    two_word_bodies = words_of(lambda each: each.entities.two_word_bodies)
    names_like_verbs = _folded(lambda each: each.names_like_verbs)
    acting = _folded(lambda each: each.acting)
    adverbs = _folded(lambda each: each.adverbs)
    bodies = _folded(lambda each: each.bodies)
    bodies_first = _folded(lambda each: each.bodies_first)
    common = _folded(lambda each: each.common)
    heads = _folded(lambda each: each.heads)
    openings = _folded(lambda each: each.openings)
    place_beginnings = _folded(lambda each: each.place_beginnings)
    places = _folded(lambda each: each.places)
    role_words = _folded(lambda each: each.roles)
    things = _folded(lambda each: each.things)

    @cached_property
    def cues(self) -> tuple[_Cue, ...]:
        return tuple(_cues(self.languages))

    @cached_property
    def run(self) -> re.Pattern[str]:
        """A run of capitalised words."""
        bodies = self.languages.in_order(lambda each: each.entities.bodies_with_of)
        of_body = rf"(?:{'|'.join(bodies) or NEVER})\s+of\s+(?:the\s+)?{_WORD}(?:\s+{_WORD})*"
        return re.compile(rf"{of_body}|{_WORD}(?:{_PARTICLE}{_WORD}|\s+{_WORD})*")

    @cached_property
    def apposed(self) -> re.Pattern[str]:
        other = "|".join(self.languages.in_order(lambda each: each.entities.other)) or NEVER
        return re.compile(rf"\s*(?:,|\(|—|–)\s*(?:(?:{other})\s\w+\s[—–-]\s)?([^,.;:()—–]{{2,60}})")

    @cached_property
    def compound_ends(self) -> tuple[str, ...]:
        """The bodies that end longer words in languages that join nouns."""
        joining = (each.entities.bodies for each in self.languages if each.letters.has_capital_nouns)
        return tuple(folded_name(word) for bodies in joining for word in bodies if len(word) >= _COMPOUND_CHARS)

    @cached_property
    def kinship(self) -> frozenset[str]:
        return frozenset(relation_words(self.languages))

    @cached_property
    def has_capital_nouns(self) -> bool:
        return any(each.letters.has_capital_nouns for each in self.languages)

    @cached_property
    def roles(self) -> frozenset[str]:
        relations = relation_words(self.languages)
        people = {word for word, name in relations.items() if name not in NOT_PEOPLE}
        return self.role_words | people | set(map(folded_name, people))

    @cached_property
    def role_stems(self) -> frozenset[str]:
        return frozenset(term for word in self.roles if not word.isascii() for term in index_terms(word))

    def is_ordinary(self, word: str) -> bool:
        """Return whether a folded word is an ordinary word of one of the languages, so not a name by itself."""
        return any(is_ordinary(word, language) for language in self.languages)

    def is_common(self, word: str) -> bool:
        """Return whether a folded word is an ordinary word or looks like a verb: "Started learning Italian"."""
        return self.is_verb(word) or self.is_ordinary(word)

    def is_verb(self, word: str) -> bool:
        """Return whether a folded word has the ending of a verb."""
        return self.verb_first.match(word) is not None and word not in self.names_like_verbs

    def is_deed(self, word: str) -> bool:
        """Return whether a folded word is a verb for an act of people: "whistled", "нарисовала"."""
        return any(is_deed(word, language) for language in self.languages)

    def is_no_name(self, word: str) -> bool:
        return word in self.not_names or word in self.function_words


@cached(maxsize=16_384)
def is_deed(word: str, language: Language) -> bool:
    """Return whether a folded word is a form of a verb for an act that is typical of people."""
    deeds, forms = _deeds(language)
    entities = language.entities
    if any(base in deeds for base in bases_of(word, forms)) or word in entities.past_deeds:
        return True
    stem = re.sub("|".join(entities.past_suffix) or NEVER, "", word)
    return stem != word and stem in deeds


@cached()
def _deeds(language: Language) -> tuple[frozenset[str], Endings]:
    entities = language.entities
    forms = tuple(each for each in entities.word_forms if each[0] in entities.deed_forms)
    return frozenset(map(fold_letters, entities.deeds)), forms


def _short(text: str, past_endings: str) -> str:
    """Return a pattern of short alternatives, in which _ is a blank and ~ stands for the past endings."""
    return "|".join(text.split()).replace("_", r"\s+").replace("~", past_endings)


def _cues(languages: LanguageSet) -> Iterator[_Cue]:
    adverbs = "|".join(languages.in_order(lambda each: each.entities.adverbs_between)) or NEVER
    between = {**_BETWEEN, "verb": rf"(?:(?:\s+(?i:{adverbs})|['’]s)(?=\s)){{0,3}}\s+"}
    for kind in _CUES:
        texts = [
            _short(text, each.entities.past_endings)
            for each in languages
            if (text := each.entities.cues.get(kind.name, ""))
        ]
        if texts and kind.between:
            yield _Cue(kind, re.compile(rf"{between[kind.between]}(?i:{'|'.join(texts)})(?!\w)"))
        elif texts:
            yield _Cue(kind, re.compile(rf"(?:^|(?<=[\s(—–-]))(?i:{'|'.join(texts)})\s+[\"«“„]?\Z"))
    yield from _unnamed_cues(languages)


def _unnamed_cues(languages: LanguageSet) -> Iterator[_Cue]:
    """Yield the cues with case-sensitive patterns: lists of names, and origins of people."""
    listed = _CueKind(name="person_listed", type="person", weight=HINTS, needs=2)
    yield _Cue(listed, re.compile(r"[a-z\u0430-\u044f\u0451]{4,},\s+\Z"))
    of_body = languages.in_order(lambda each: each.entities.cues.get("person_of_body", "").split())
    bodies = "|".join(sorted(folded_words(languages, lambda each: each.bodies)))
    if of_body and bodies:
        kind = _CueKind(name="person_of_body", type="person", between="blank", needs=2)
        words = "|".join(of_body)
        yield _Cue(kind, re.compile(rf"\s+(?:{words})\s+(?:the\s+)?(?:[A-Z]\w+\s+){{1,4}}(?i:{bodies})(?!\w)"))
    origins = [text for each in languages if (text := each.entities.cues.get("person_from", ""))]
    if origins:
        kind = _CueKind(name="person_from", type="person", between="blank", needs=2, weight=HINTS)
        yield _Cue(kind, re.compile(rf"\s+(?:{'|'.join(origins)})"))


_known = cached()(_CueWords)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A person or thing by the name that was used. An inflected name is given in the nominative.

    Attributes:
        texts: the positions of the messages that name it.
    """

    name: str
    type: EntityType
    texts: tuple[int, ...] = (0,)


class _Sighting(NamedTuple):
    """An occurrence of a name.

    `is_bold`: a sentence begins there, so its capital letter is not significant. `case` describes the form: "plain" is
    the name itself; "subject" an inflected name, which is the name itself if a verb follows; "other" a form after a
    preposition.
    """

    name: str
    before: str
    behind: str
    is_bold: bool
    case: str


class _Evidence(NamedTuple):
    """Evidence that a name is of a kind: its weight, and the cue."""

    type: EntityType
    weight: int
    cue: str


def entities_named(texts: Sequence[str]) -> tuple[Named, ...]:
    """Return the people and things that the messages of one person clearly name. A name with two kinds is skipped.

    >>> [(found.name, found.type) for found in entities_named(["Lunch with Mira Aldous. She is at Hollow Lab."])]
    [('Mira Aldous', 'person'), ('Hollow Lab', 'organization')]
    """
    texts = [without_denied_names(with_name_capitals(text, is_of_relation=False)) for text in texts]
    seen: dict[str, list[tuple[int, _Sighting]]] = defaultdict(list)
    known = _known(_languages_of(texts))
    for place, text in enumerate(texts):
        for sighting in _sightings(text, known):
            seen[folded_name(sighting.name)].append((place, sighting))
    found: dict[str, EntityType] = {}
    for key, each in seen.items():
        words = key.split()
        is_plain = len(words) > 1 and all(known.is_ordinary(word) for word in words)
        kind = _kind({said for _, sighting in each for said in _said_of(sighting, known)}, is_ordinary=is_plain)
        is_name = any(not sighting.is_bold for _, sighting in each) or _may_be_name(key, texts, known)
        if kind and is_name and not (kind != "place" and _known_place(each[0][1].name, known)):
            found[key] = kind
    recognised = [
        Named(name=seen[key][0][1].name, type=kind, texts=tuple(dict.fromkeys(place for place, _ in seen[key])))
        for key, kind in found.items()
        if not _is_part(key, found)
    ]
    besides = tuple(_people_besides(texts, found))
    nominative = {folded_name(each.name) for each in besides}
    cases = {each.name for each in recognised if nominative.intersection(nominatives(folded_name(each.name))[1:])}
    return (*(each for each in recognised if each.name not in cases), *besides)


def _people_besides(texts: Sequence[str], found: Mapping[str, EntityType]) -> Iterator[Named]:
    """Yield further people that the texts name by a role or an act."""
    words = _known(_languages_of(texts))
    known = {key for key, kind in found.items() if kind == "person"}
    places: dict[str, list[int]] = defaultdict(list)
    names: dict[str, str] = {}
    for place, text in enumerate(texts):
        for person in people_named(text):
            key = folded_name(person.name)
            if not person.is_sure and not _may_be_name(key, texts, words):
                continue
            if not any(key == other or key in other.split() for other in known) and key not in found:
                places[key].append(place)
                names[key] = person.name
    for key, name in names.items():
        if not any(key != other and key in other.split() for other in names):
            yield Named(name=name, type="person", texts=tuple(places[key]))


def _languages_of(texts: Sequence[str]) -> LanguageSet:
    """Return the languages of all texts together, because a name may occur in several."""
    found = languages_of(texts[0] if texts else "")
    for text in texts:
        found = found.union(languages_of(text))
    return found


def _kind(said: Collection[_Evidence], *, is_ordinary: bool) -> EntityType | None:
    """Return the kind with at least twice the weight of any other. Ordinary capitalised words, as in a heading, are a
    person's name only if two cues settle it.
    """
    sums: dict[EntityType, int] = defaultdict(int)
    said = [each for each in said if each.weight == CERTAIN] or list(said)
    for each in said:
        sums[each.type] += each.weight
    ranked = sorted(sums, key=lambda kind: -sums[kind])
    if not ranked or sums[ranked[0]] < SETTLES:
        return None
    if is_ordinary and ranked[0] == "person" and sums["person"] < 2 * SETTLES:
        return None
    return ranked[0] if len(ranked) == 1 or sums[ranked[0]] >= 2 * sums[ranked[1]] else None


def _may_be_name(key: str, texts: Sequence[str], known: _CueWords) -> bool:
    """Return whether a word that only begins sentences is a name: no common word, and nowhere in lower case."""
    first, *rest = key.split()
    if any(re.search(rf"\b{re.escape(first)}\b", text) for text in texts):
        return False
    return first in known.also_names or not (known.no_single.search(first) or (not rest and known.is_common(first)))


def _is_part(key: str, found: Mapping[str, EntityType]) -> bool:
    """Return whether a name is the first or last name of a person with a full name: "Iset" with Iset Karadzic."""
    return found[key] == "person" and any(
        kind == "person" and other != key and key in (other.split()[0], other.split()[-1])
        for other, kind in found.items()
    )


_QUOTE = re.compile(r"[\"“”„«»]")
_QUOTED_NAME = re.compile(rf"(?<=\w )[\"“„«]({_WORD}(?:\s+[^\W_]+){{0,3}})[\"”“»]")


def _sightings(text: str, known: _CueWords) -> Iterator[_Sighting]:
    for sentence in plain_sentences(text):
        bare = _QUOTED_NAME.sub("", sentence)
        if sentence.endswith("?") or _QUOTE.search(bare) or known.unreal.search(sentence):
            continue
        for found in known.run.finditer(sentence):
            if sighting := _sighting(sentence, found, known):
                yield sighting


def _sighting(sentence: str, found: re.Match[str], known: _CueWords) -> _Sighting | None:
    """Return the name in a run of capitalised words, without words that lead up to it."""
    parts = list(re.finditer(r"\S+", found.group()))
    is_bold = _begins(sentence[: found.start()])
    while parts and _leads_up([part.group() for part in parts], known, is_bold=is_bold):
        parts, is_bold = parts[1:], False
    while parts and known.is_no_name(folded_name(parts[-1].group())):
        parts = parts[:-1]
    words = [part.group() for part in parts]
    if not words or len(words) > _MOST_WORDS or not _can_be_name(words, known):
        return None
    start, end = found.start() + parts[0].start(), found.start() + parts[-1].end()
    before, behind = sentence[max(0, start - _SIDE_CHARS) : start], sentence[end : end + _SIDE_CHARS]
    name, case = _nominative(words, before, known)
    return _Sighting(name, before, behind, is_bold, case) if name else None


def _begins(before: str) -> bool:
    return before.strip(" *-–—•>\t") == "" or before.rstrip()[-1] in ":;("


def _leads_up(words: Sequence[str], known: _CueWords, *, is_bold: bool) -> bool:
    """Return whether the first of some capitalised words belongs to the text before the name."""
    first, rest = folded_name(words[0]), words[1:]
    if first in known.role_words or (known.is_no_name(first) and first not in known.not_names):
        return True
    if rest and known.has_capital_nouns and first in known.roles and first not in known.titles:
        return True
    if rest and first in known.not_names:
        return folded_name(words[-1]) not in known.bodies
    if not (is_bold and rest):
        return False
    is_mixed = not words[0].isascii() and rest[0].isascii()
    return is_mixed or known.is_verb(first) or first in known.openings or first in known.acting


def _can_be_name(words: Sequence[str], known: _CueWords) -> bool:
    """Return whether words may be a name: not only initials, nor a day, nationality, relation or common thing."""
    if len(words) > 1:
        return not all(word.isupper() for word in words)
    word = folded_name(words[0])
    if len(word) < 2 or words[0].isupper() or any(char.isdigit() for char in word):
        return False
    no_names = (known.not_names, known.acting, known.openings, known.role_words, known.things)
    return word not in known.kinship and not any(word in each for each in no_names)


def _nominative(words: Sequence[str], before: str, known: _CueWords) -> tuple[str, str]:
    """Return the name in the nominative and its form as in `_Sighting.case`; "" if the nominative is unclear."""
    name = " ".join(words)
    if before.endswith(tuple('"“„«')):
        return name, "plain"
    if not is_inflected(name.lower()):
        return name, "plain"
    if place := _known_place(name, known):
        return place, "plain"
    if not known.preposition.search(before):
        return name, "subject"
    is_instrumental = known.instrumental_preposition.search(before) is not None
    turned = [_turned(word, known.instrumental if is_instrumental else known.locative) for word in words]
    return (" ".join(turned), "plain") if all(turned) else ("", "")


def _turned(word: str, endings: Endings) -> str:
    return next((re.sub(old, new[0], word) for old, new in endings if re.search(old, word)), "")


def _known_place(name: str, known: _CueWords) -> str:
    """Return a well-known place in the nominative; "" for another name."""
    if " " in name:
        return ""
    found = next((form for form in nominatives(folded_name(name)) if form in known.places), "")
    return found and (name if folded_name(name) == found else found.capitalize())


def _said_of(seen: _Sighting, known: _CueWords) -> Iterator[_Evidence]:
    words = [folded_name(word) for word in seen.name.split()]
    for kind, pattern in known.cues:
        if len(words) < kind.needs or (seen.case == "subject" and kind.between is None and not kind.is_plain):
            continue
        if seen.case == "subject" and not all(looks_nominative(word) for word in words):
            continue
        if pattern.match(seen.behind) if kind.between else pattern.search(seen.before):
            yield _Evidence(kind.type, kind.weight, kind.name)
    yield from _said_by_shape(seen, words, known)
    if _is_work(words, known) and not seen.is_bold:
        yield _Evidence("project", SETTLES, "its shape")
    elif _is_body(words, known):
        yield _Evidence("organization", CERTAIN, "its shape")
    elif seen.case == "plain" or not known.preposition.search(seen.before):
        yield from _said_by_role(seen, known)
    if _known_place(seen.name, known):
        yield _Evidence("place", SETTLES if known.in_place.search(seen.before) else HINTS, "a known place")


_VERB = re.compile(r"\s+([^\W\d_]+)(?:\s+([^\W\d_]+))?(?:\s+([^\W\d_]+))?")


def _said_by_shape(seen: _Sighting, words: Sequence[str], known: _CueWords) -> Iterator[_Evidence]:
    """Yield evidence from the acts of people, and from words that are not ordinary words."""
    if verbs := _VERB.match(seen.behind):
        first = next((word for word in verbs.groups() if word and folded_name(word) not in known.adverbs), "")
        is_doing = not first.endswith("ing") or known.doing.match(seen.behind) is not None
        if known.is_deed(folded_name(first)) and is_doing and seen.case != "other":
            yield _Evidence("person", SETTLES, "a deed")
        if known.pronoun.search(seen.behind):
            yield _Evidence("person", HINTS, "a pronoun")
    beside = known.beside.match(seen.behind)
    if beside and known.is_deed(folded_name(beside[1])) and seen.case != "other":
        yield _Evidence("person", SETTLES, "a deed")
    if words[0] in known.place_beginnings:
        yield _Evidence("place", HINTS, "its first word")
    elif len(words) > 1 and not any(known.is_ordinary(word) or word in known.not_names for word in words):
        yield _Evidence("person", HINTS, "no ordinary word")


def _is_work(words: Sequence[str], known: _CueWords) -> bool:
    """Return whether a name is a subject of work: "Type Systems", but not "Brightwater Systems"."""
    is_either = words[-1] in known.bodies and not all(known.is_ordinary(word) for word in words)
    return len(words) > 1 and words[-1] in known.heads and not is_either


def is_body(name: str) -> bool:
    """Return whether a name is an organisation's by its words, in any language: a school, a company, a club.

    >>> [is_body(name) for name in ("Kita Regenbogen", "Pestalozzischule", "Harbour Choir", "Mia Lenz", "—")]
    [True, True, True, False, False]
    """
    titles, bare = split_title(name)
    words = folded_name(bare).split()
    return bool(words) and not titles and _is_body(words, _known(all_languages()))


def _is_body(words: Sequence[str], known: _CueWords) -> bool:
    if any(word.endswith(known.compound_ends) and word not in known.bodies for word in (words[0], words[-1])):
        return True
    if len(words) < 2:
        return False
    if words[0] in known.bodies_first:
        return True
    is_common = len(words) == 2 and words[0] in known.common
    is_whole = words[1] in known.of or " ".join(words[-2:]) in known.two_word_bodies
    return is_whole or (words[-1] in known.bodies and not is_common)


_LAST_WORDS = re.compile(r"(?<![\w’'-])((?:[\w’'-]+\s+){0,2}[\w’'-]+),?\s+\Z")


def _said_by_role(seen: _Sighting, known: _CueWords) -> Iterator[_Evidence]:
    """Yield evidence from roles, as in "Mira, our gardener", "our gardener Mira" and "наш садовник Мира"."""
    apposed = known.apposed.match(seen.behind)
    is_filler = seen.is_bold and " " not in seen.name  # "Yeah, a friend of mine"
    if apposed and not is_filler and _has_role(apposed[1].split()[:6], known):
        yield _Evidence("person", SETTLES, "a role behind")
    leading = _LAST_WORDS.search(seen.before)
    if leading and _has_role(_phrase_end(leading[1], known), known):
        yield _Evidence("person", SETTLES, "a role before")


def _phrase_end(words: str, known: _CueWords) -> Sequence[str]:
    """Return the last words before a name that belong together: the last one, or in an inflected language those after
    the last function word.
    """
    last = words.split()
    if not is_inflected(last[-1].lower()):
        return last[-1:]
    cut = [place + 1 for place, word in enumerate(last) if folded_name(word) in known.inflected_function_words]
    return [word for word in last[max(cut, default=0) :] if not word.isascii()]


def _has_role(words: Sequence[str], known: _CueWords) -> bool:
    for word in words:
        if word.lower() in known.role_stops:
            return False
        if word.isascii() and folded_name(word) in known.roles:
            return True
        if not word.isascii() and not known.role_stems.isdisjoint(index_terms(word)):
            return True
    return False
