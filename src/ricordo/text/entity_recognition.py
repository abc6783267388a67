"""Who and what a message names, with the kind of it, by rule: as far as the words beside the name say so. Pure.

English and Russian. A name of which nothing says what it is, or of which two things are said, is nobody: "Paris said"
may be of a person, a town or a government. What waits for a model stays a message and is found all the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ricordo.model import EntityType
from ricordo.text import function_words, index_terms
from ricordo.text.entity_cues import (
    CERTAIN,
    CUES,
    HINTS,
    IN_PLACE,
    NAMES_LIKE_VERBS,
    NO_SINGLE,
    SETTLES,
    UNREAL,
    VERB_FIRST,
)
from ricordo.text.kinship import NOT_PEOPLE
from ricordo.text.kinship import words_of as kinship_words
from ricordo.text.names import folded_name, looks_nominative, nominatives
from ricordo.text.spoken import MAX_CHARS, SENTENCE
from ricordo.text.word_lists import is_deed, is_ordinary, words_of

_SIDE_CHARS = 100
_MOST_WORDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Somebody or something by the name that was used, a Russian one in the nominative.

    Attributes:
        texts: which of the messages name it, by their places.
    """

    name: str
    type: EntityType
    texts: tuple[int, ...] = (0,)


class _Sighting(NamedTuple):
    """A name where it stands.

    `is_bold` where a sentence begins there, so that its capital letter says nothing. `case` is what is known of its
    form: "plain" is the name itself; "subject" a Russian one, which is the name itself if a verb is behind it; "other"
    one behind a preposition.
    """

    name: str
    before: str
    behind: str
    is_bold: bool
    case: str


class _Said(NamedTuple):
    """That a name is of a kind: how surely, and by which cue."""

    type: EntityType
    weight: int
    cue: int


def plainly_named(texts: Sequence[str]) -> tuple[Named, ...]:
    """Who and what the messages of one person name plainly; a name of two kinds in them is left out.

    >>> [(found.name, found.type) for found in plainly_named(["Lunch with Mira Aldous. She is at Hollow Lab."])]
    [('Mira Aldous', 'person'), ('Hollow Lab', 'organization')]
    """
    seen: dict[str, list[tuple[int, _Sighting]]] = defaultdict(list)
    for place, text in enumerate(texts):
        for sighting in _sightings(text[:MAX_CHARS]):
            seen[folded_name(sighting.name)].append((place, sighting))
    found: dict[str, EntityType] = {}
    for key, each in seen.items():
        words = key.split()
        is_plain = len(words) > 1 and all(is_ordinary(word) for word in words)
        kind = _kind({said for _, sighting in each for said in _said_of(sighting)}, is_ordinary=is_plain)
        is_name = any(not sighting.is_bold for _, sighting in each) or _may_be_name(key, texts)
        if kind and is_name and not (kind != "place" and _known_place(each[0][1].name)):
            found[key] = kind
    return tuple(
        Named(name=seen[key][0][1].name, type=kind, texts=tuple(dict.fromkeys(place for place, _ in seen[key])))
        for key, kind in found.items()
        if not _is_part(key, found)
    )


def _kind(said: Collection[_Said], *, is_ordinary: bool) -> EntityType | None:
    """What the cues agree on: at least twice as surely as on anything else. Ordinary words in capitals, such as
    a heading or a project has them, are a person's name only where two cues settle it.
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


def _may_be_name(key: str, texts: Sequence[str]) -> bool:
    """Whether what only begins sentences is a name all the same: no plural, and no word that is used as one, too."""
    first = key.split()[0]
    return not NO_SINGLE.search(first) and not any(re.search(rf"\b{re.escape(first)}\b", text) for text in texts)


def _is_part(key: str, found: Mapping[str, EntityType]) -> bool:
    """Whether it is the first or last name of somebody who is named whole: "Iset", beside Iset Karadzic."""
    return found[key] == "person" and any(
        kind == "person" and other != key and key in (other.split()[0], other.split()[-1])
        for other, kind in found.items()
    )


_WORD = r"(?<!\w)[A-ZÀ-ÖØ-ÞА-ЯЁ][^\W_]*(?:[-’'](?!s\b)[^\W_]+)*"
_BODY_OF = r"(?:University|Institute|Bank|Museum|Ministry|College|Academy|School|Department|Church|Society|Council)"
_RUN = re.compile(
    rf"{_BODY_OF}\s+of\s+(?:the\s+)?{_WORD}(?:\s+{_WORD})*"
    rf"|{_WORD}(?:\s+(?:van|von|de|da|del|di|bin)\s+(?:der\s+|den\s+|la\s+)?{_WORD}|\s+{_WORD})*"
)
_QUOTE = re.compile(r"[\"“”„«»]")
_QUOTED_NAME = re.compile(rf"(?<=\w )[\"“„«]({_WORD}(?:\s+[^\W_]+){{0,3}})[\"”“»]")


def _sightings(text: str) -> Iterator[_Sighting]:
    for part in SENTENCE.finditer(text):
        sentence = part.group().strip()
        bare = _QUOTED_NAME.sub("", sentence)
        if sentence.endswith("?") or _QUOTE.search(bare) or UNREAL.search(sentence):
            continue
        for found in _RUN.finditer(sentence):
            if sighting := _sighting(sentence, found):
                yield sighting


def _sighting(sentence: str, found: re.Match[str]) -> _Sighting | None:
    """The name in a run of capitalised words, without what only leads up to it."""
    parts = list(re.finditer(r"\S+", found.group()))
    is_bold = _begins(sentence[: found.start()])
    while parts and _leads_up([part.group() for part in parts], is_bold=is_bold):
        parts, is_bold = parts[1:], False
    while parts and _is_no_name(folded_name(parts[-1].group())):
        parts = parts[:-1]
    words = [part.group() for part in parts]
    if not words or len(words) > _MOST_WORDS or not _can_be_name(words):
        return None
    start, end = found.start() + parts[0].start(), found.start() + parts[-1].end()
    before, behind = sentence[max(0, start - _SIDE_CHARS) : start], sentence[end : end + _SIDE_CHARS]
    name, case = _nominative(words, before, behind)
    return _Sighting(name, before, behind, is_bold, case) if name else None


def _is_no_name(word: str) -> bool:
    return word in words_of("not_names") or word in function_words("en") or word in function_words("ru")


def _begins(before: str) -> bool:
    return before.strip(" *-–—•>\t") == "" or before.rstrip()[-1] in ":;("


def _leads_up(words: Sequence[str], *, is_bold: bool) -> bool:
    """Whether the first of capitalised words belongs to what is before the name."""
    first, rest = folded_name(words[0]), words[1:]
    if first in words_of("roles") or (_is_no_name(first) and first not in words_of("not_names")):
        return True
    if rest and first in words_of("not_names"):
        return folded_name(words[-1]) not in words_of("bodies")
    if not (is_bold and rest):
        return False
    is_mixed = not words[0].isascii() and rest[0].isascii()
    is_verb = VERB_FIRST.match(first) is not None and first not in NAMES_LIKE_VERBS
    return is_mixed or is_verb or first in words_of("openings") or first in words_of("acting")


def _can_be_name(words: Sequence[str]) -> bool:
    """Letters and more than initials; no day or nation, nobody's mother, nothing that everybody knows by that name."""
    if len(words) > 1:
        return not all(word.isupper() for word in words)
    word = folded_name(words[0])
    if len(word) < 2 or words[0].isupper() or any(char.isdigit() for char in word):
        return False
    no_names = (words_of("not_names"), words_of("acting"), words_of("openings"), words_of("roles"), words_of("things"))
    return word not in kinship_words() and not any(word in each for each in no_names)


_CYRILLIC = re.compile(r"[а-яё]", re.IGNORECASE)
_WITH = re.compile(r"(?:^|\s)(?:с|со|между|над|и|мы с)\s+\Z", re.IGNORECASE)
_PREPOSITION = re.compile(
    r"(?:^|\s)(?:с|со|в|во|на|из|к|ко|у|о|об|от|до|для|без|про|по|за|над|под|через|около|возле|из-за)\s+\Z",
    re.IGNORECASE,
)
_INSTRUMENTAL = (
    (r"ией\Z", "ия"),
    (r"(?<=[жшчщц])ей\Z", "а"),
    (r"(?<=[^аеёиоуыэюяьй])ей\Z", "я"),
    (r"(?<=[^аеёиоуыэюяьй])ой\Z", "а"),
    (r"(?<=[оеи][вн])ым\Z", ""),
    (r"(?<=[^аеёиоуыэюяьй])ом\Z", ""),
)
_IN_TOWN = ((r"(?<=ск)е\Z", ""), (r"(?<=град)е\Z", ""), (r"(?<=бург)е\Z", ""), (r"(?<=город)е\Z", ""))


def _nominative(words: Sequence[str], before: str, behind: str) -> tuple[str, str]:
    """The name itself, and what is known of its form; "" where that cannot be told."""
    name = " ".join(words)
    if before.endswith(tuple('"“„«')):
        return name, "plain"
    if not _CYRILLIC.search(name):
        return name, "plain"
    if place := _known_place(name):
        return place, "plain"
    if not _PREPOSITION.search(before):
        return name, "subject"
    if _WITH.search(before):
        turned = [_turned(word, _INSTRUMENTAL) for word in words]
        return (" ".join(turned), "plain") if all(turned) else ("", "")
    turned = [_turned(word, _IN_TOWN) for word in words]
    return (" ".join(turned), "plain") if all(turned) else ("", "")


def _turned(word: str, endings: Sequence[tuple[str, str]]) -> str:
    return next((re.sub(old, new, word) for old, new in endings if re.search(old, word)), "")


def _known_place(name: str) -> str:
    """A place that everybody knows, in the nominative; "" for another name."""
    if " " in name:
        return ""
    found = next((form for form in nominatives(folded_name(name)) if form in words_of("places")), "")
    return found and (name if folded_name(name) == found else found.capitalize())


def _said_of(seen: _Sighting) -> Iterator[_Said]:
    words = [folded_name(word) for word in seen.name.split()]
    for place, cue in enumerate(CUES):
        if len(words) < cue.needs or (seen.case == "subject" and cue.side == "before" and not cue.is_plain):
            continue
        if seen.case == "subject" and not all(looks_nominative(word) for word in words):
            continue
        is_said = cue.pattern.match(seen.behind) if cue.side == "behind" else cue.pattern.search(seen.before)
        if is_said:
            yield _Said(cue.type, cue.weight, place)
    yield from _said_by_shape(seen, words)
    if _is_work(words) and not seen.is_bold:
        yield _Said("project", SETTLES, -9)
    elif _is_body(words):
        yield _Said("organization", CERTAIN, -1)
    elif seen.case == "plain" or not _PREPOSITION.search(seen.before):
        yield from _said_by_role(seen)
    if _known_place(seen.name):
        yield _Said("place", SETTLES if IN_PLACE.search(seen.before) else HINTS, -2)


_VERB = re.compile(r"\s+([^\W\d_]+)(?:\s+([^\W\d_]+))?(?:\s+([^\W\d_]+))?")
_DOING = re.compile(r"\s+(?:is|was|has been|had been|started|kept|keeps)\b|['’]s\s")
_PRONOUN = re.compile(r"[,;:—–-]\s(?:[\w'’ ]{0,60}\s)?(?:she|he|her|his|him)\b")
_BESIDE = re.compile(rf"\s+(?:and|и)\s+{_WORD}(?:\s+{_WORD})?\s+([^\W\d_]+)")
"""The verb of two: "Mira and Tom Alder discussed"."""


def _said_by_shape(seen: _Sighting, words: Sequence[str]) -> Iterator[_Said]:
    """By what people do, and by words that are nothing but names."""
    if verbs := _VERB.match(seen.behind):
        first = next((word for word in verbs.groups() if word and folded_name(word) not in words_of("adverbs")), "")
        is_doing = not first.endswith("ing") or _DOING.match(seen.behind) is not None
        if is_deed(folded_name(first)) and is_doing and seen.case != "other":
            yield _Said("person", SETTLES, -5)
        if _PRONOUN.search(seen.behind):
            yield _Said("person", HINTS, -8)
    beside = _BESIDE.match(seen.behind)
    if beside and is_deed(folded_name(beside[1])) and seen.case != "other":
        yield _Said("person", SETTLES, -5)
    if words[0] in words_of("place_beginnings"):
        yield _Said("place", HINTS, -6)
    elif len(words) > 1 and not any(is_ordinary(word) or word in words_of("not_names") for word in words):
        yield _Said("person", HINTS, -7)


def _is_work(words: Sequence[str]) -> bool:
    """Whether a name is of what people work on: "Dialogue Engine", "Type Systems", but not "Brightwater Systems"."""
    is_either = words[-1] in words_of("bodies") and not all(is_ordinary(word) for word in words)
    return len(words) > 1 and words[-1] in words_of("heads") and not is_either


def _is_body(words: Sequence[str]) -> bool:
    if len(words) < 2:
        return False
    is_park = words[-1] in ("garden", "gardens") and words[-2] in ("botanic", "botanical", "community")
    is_common = len(words) == 2 and words[0] in words_of("common")
    return "of" in words[1:2] or is_park or (words[-1] in words_of("bodies") and not is_common)


_APPOSED = re.compile(r"\s*(?:,|\(|—|–)\s*(?:(?:different|другой|другая)\s\w+\s[—–-]\s)?([^,.;:()—–]{2,60})")
_LAST_WORDS = re.compile(r"((?:[\w’'-]+\s+){0,2}[\w’'-]+),?\s+\Z")


def _said_by_role(seen: _Sighting) -> Iterator[_Said]:
    """ "Mira, our gardener", "our gardener Mira", "наш садовник Мира"."""
    apposed = _APPOSED.match(seen.behind)
    is_filler = seen.is_bold and " " not in seen.name  # "Yeah, a friend of mine"
    if apposed and not is_filler and _has_role(apposed[1].split()[:6]):
        yield _Said("person", SETTLES, -3)
    leading = _LAST_WORDS.search(seen.before)
    if leading and _has_role(_phrase_end(leading[1])):
        yield _Said("person", SETTLES, -4)


def _phrase_end(words: str) -> Sequence[str]:
    """The last words before a name that belong together: in English the last, in Russian what follows a preposition."""
    last = words.split()
    if last[-1].isascii():
        return last[-1:]
    cut = [place + 1 for place, word in enumerate(last) if folded_name(word) in function_words("ru")]
    return [word for word in last[max(cut, default=0) :] if not word.isascii()]


@cache
def _role_stems() -> frozenset[str]:
    return frozenset(term for word in _roles() if not word.isascii() for term in index_terms(word))


@cache
def _roles() -> frozenset[str]:
    return words_of("roles") | {word for word, relation in kinship_words().items() if relation not in NOT_PEOPLE}


def _has_role(words: Sequence[str]) -> bool:
    for word in words:
        if word.lower() in ("who", "and", "of", "from", "at", "in", "for", "with", "to", "is", "was"):
            return False
        if word.isascii() and folded_name(word) in _roles():
            return True
        if not word.isascii() and not _role_stems().isdisjoint(index_terms(word)):
            return True
    return False
