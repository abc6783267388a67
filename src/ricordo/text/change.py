"""Whether a new statement makes an older one out of date, in ordinary words: "Sold the Corolla, picked up an Outback".

`compare` in `statement` aligns two sentences of one form. People seldom repeat a form: what an update shares with what
it updates is the thing it is about, and it says somehow that something changed. The features below measure both, and
what speaks against a change: it is only wished for, quoted, long ago, or about someone else. They are the same in every
language; the words come from the table `change` of the language files. A logistic regression weighs them; its
coefficients stand in change.json, which `tools/fit_change.py` writes. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp
from typing import Literal, TypeAlias

from ricordo.text.analyzer import function_words, index_terms
from ricordo.text.languages import LanguageSet, cached, languages_of

Cue: TypeAlias = Literal[
    "no_longer", "ended", "replaced", "now", "corrected", "added", "unchanged", "unsure", "reported", "past", "future"
]
CUES: tuple[Cue, ...] = (
    "no_longer",
    "ended",
    "replaced",
    "now",
    "corrected",
    "added",
    "unchanged",
    "unsure",
    "reported",
    "past",
    "future",
)

NEAR = 0.4
"""Statements without a common word may be about the same from this cosine of their vectors on."""

MAX_CHARS = 600
"""A longer text tells a story; only its beginning is read."""

_WORD = re.compile(r"[^\W_]+(?:['’.:,/-][^\W_]+)*")
_NAME_WITHIN = re.compile(r"(?<=[^\W_] )(?!I\b)[^\W\d_a-zа-яё][^\W_]*")
_QUOTED = re.compile(r"[\"«„“][^\"»“”]{12,}[\"»“”]|[‘'][^'’]{20,}['’](?!\w)")
_DENIED_WITHIN = 4  # words between a negation and the verb it denies
_HEAD = 2  # content words that name what a statement is about
_BEGINNING = 5  # words in which the subject of a statement is looked for
_SAME_BEGINNING = 6  # letters that two forms of a word share, where their stems differ
_COMMON, _NUMBER, _NAME = 0.25, 0.5, 2.0  # what a word counts; any other counts 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """What a statement is about.

    Attributes:
        words: its content words in order, each as its stems, and what it counts.
        stems: those of each telling word, to look for statements about the same; `all_stems` of all its words.
        beginnings: the first letters of its longer words.
        numbers: words with a digit, as written.
        is_own: it speaks of its speaker: I, my, we.
        is_of_others: it is about someone or something of the world by name: "Frank Zappa", "the capital of France".
        others: stems of who else it begins with: people by role (my cousin) and owners (Emil's).
    """

    words: tuple[tuple[tuple[str, ...], float], ...]
    numbers: frozenset[str]
    is_own: bool
    is_of_others: bool
    others: frozenset[str]
    stems: frozenset[tuple[str, ...]]
    all_stems: frozenset[str]
    beginnings: frozenset[str]

    def likeness(self, stems: tuple[str, ...]) -> float:
        """Return 1 if it has a word, .8 if it has one that begins alike (Cortison, Cortisonsalbe), else 0."""
        if not self.all_stems.isdisjoint(stems):
            return 1.0
        last = stems[0]
        return 0.8 if len(last) >= _SAME_BEGINNING and last[:_SAME_BEGINNING] in self.beginnings else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The word lists of some languages."""

    silent: frozenset[str]
    common: frozenset[str]
    own: frozenset[str]
    same: Mapping[str, str]
    kin: frozenset[str]
    articles: frozenset[str]
    of: frozenset[str]
    owner_before: frozenset[str]
    owner_endings: tuple[str, ...]
    capitals_are_names: bool


@cached()
def _same(languages: LanguageSet) -> dict[str, tuple[str, ...]]:
    """Return, by a mark that no text holds, the words that speak of one thing."""
    found: dict[str, tuple[str, ...]] = {}
    for language in languages:
        for name, words in language.change.same.items():
            found[f"={name}"] = (*found.get(f"={name}", ()), *words)
    return found


@cached()
def _words(languages: LanguageSet) -> _Words:
    return _Words(
        silent=frozenset(word for language in languages for word in function_words(language.code)),
        common=frozenset(
            stem
            for word in languages.words(lambda each: each.change.common)
            for stem in index_terms(word, languages=languages)
        ),
        own=languages.words(lambda each: (*each.sentences.first_person, *each.sentences.self_words)),
        same={word: name for name, words in _same(languages).items() for word in words},
        kin=languages.words(lambda each: each.change.kin)
        | frozenset(form for language in languages for forms in language.kinship.words.values() for form in forms),
        articles=languages.words(lambda each: each.statements.articles),
        of=languages.words(lambda each: each.statements.of),
        owner_before=languages.words(lambda each: each.change.owner_before),
        owner_endings=tuple(filter(None, (language.change.owner_ending for language in languages))),
        capitals_are_names=not any(language.code == "de" for language in languages),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """What is known of a word: whether it says nothing of a topic, its stems, and what it is otherwise."""

    is_silent: bool
    stems: tuple[str, ...]
    is_common: bool
    is_own: bool
    is_kin: bool
    has_digit: bool


@cached(maxsize=65_536)
def _word(low: str, languages: LanguageSet) -> _Word:
    known, cues = _words(languages), _cue_patterns(languages)
    bare = low.partition("'")[0]
    is_silent = low in known.silent or bare in known.silent
    has_digit = any(char.isdigit() for char in low)
    stems = tuple(index_terms(low if has_digit else bare, languages=languages)) or (low,)
    if low in known.same:
        stems = (*stems, known.same[low])
    return _Word(
        is_silent=is_silent or bool(cues["now"].fullmatch(low) or cues["added"].fullmatch(low)),
        stems=stems,
        is_common=low not in known.same and not known.common.isdisjoint(stems),
        is_own=low in known.own or bare in known.own,
        is_kin=not known.kin.isdisjoint((bare, bare.partition("-")[0])),
        has_digit=has_digit,
    )


@cached(maxsize=16_384)
def topics(text: str) -> Topics:
    """Return what a statement is about, without words of change and function words."""
    text = text[:MAX_CHARS].replace("’", "'")
    languages = languages_of(text)
    known = _words(languages)
    words: list[tuple[tuple[str, ...], float]] = []
    numbers, others, is_own = set[str](), set[str](), _begins_own(languages).match(text.lower()) is not None
    before = ""
    for place, found in enumerate(_WORD.finditer(text)):
        written = found.group()
        low = written.lower()
        word = _word(low, languages)
        is_own = is_own or word.is_own
        is_owner = place < _BEGINNING and (
            (before in known.owner_before and not word.is_own)
            or (written[0].isupper() and low.endswith(known.owner_endings) and before not in known.silent)
        )
        before = low
        if word.is_silent:
            continue
        if word.has_digit:
            numbers.add(low.rstrip("."))
        if is_owner or (place < _BEGINNING and word.is_kin):
            others.update(word.stems)
        is_name = written[0].isupper() and found.start() > 0 and known.capitals_are_names
        worth = _NUMBER if word.has_digit else _COMMON if word.is_common else _NAME if is_name else 1.0
        words.append((word.stems, worth))
    return Topics(
        words=tuple(words),
        stems=_to_look_for(words, languages),
        all_stems=frozenset(stem for stems, _ in words for stem in stems),
        beginnings=frozenset(stems[0][:_SAME_BEGINNING] for stems, _ in words if len(stems[0]) >= _SAME_BEGINNING),
        numbers=frozenset(numbers),
        is_own=is_own,
        is_of_others=not is_own and _is_of_others(text, known),
        others=frozenset(others),
    )


@cached()
def _begins_own(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of how a statement begins that leaves out its subject: "Sold the car", "Живу в Перми"."""
    return languages.pattern(lambda each: each.change.own_beginnings, r"\W*(?:{})(?!\w)")


def _to_look_for(words: Iterable[tuple[tuple[str, ...], float]], languages: LanguageSet) -> frozenset[tuple[str, ...]]:
    """Return the stems of each telling word, with those of the words that speak of the same thing."""
    return frozenset(
        _same_stems(languages)[stems[-1]] if stems[-1].startswith("=") else stems
        for stems, worth in words
        if worth > _COMMON
    )


@cached()
def _same_stems(languages: LanguageSet) -> dict[str, tuple[str, ...]]:
    return {
        mark: tuple(dict.fromkeys(index_terms(word, languages=languages)[0] for word in words))
        for mark, words in _same(languages).items()
    }


def _is_of_others(text: str, known: _Words) -> bool:
    first = text.split()[:_BEGINNING]
    if len(first) > 1 and first[0][0].isupper() and first[1][0].isupper():
        return True
    return (
        bool(first) and first[0].lower() in known.articles and not known.of.isdisjoint(word.lower() for word in first)
    )


@cached()
def _cue_patterns(languages: LanguageSet) -> dict[Cue, re.Pattern[str]]:
    def pattern(cue: Cue) -> re.Pattern[str]:
        return languages.pattern(lambda each: getattr(each.change, cue), r"(?<!\w)(?:{})(?!\w)")

    return {cue: pattern(cue) for cue in CUES}


@cached()
def _denied(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of a change that is denied: "did not switch", "haven't sold it", "nie gewechselt"."""
    negations = "|".join(map(re.escape, languages.in_order(lambda each: each.statements.negations)))
    endings = "|".join(map(re.escape, languages.in_order(lambda each: each.statements.negated_endings)))
    changes = "|".join(languages.in_order(lambda each: (*each.change.ended, *each.change.replaced)))
    if not (negations and changes):
        return languages.pattern(lambda each: ())
    denial = rf"(?:(?<!\w)(?:{negations})" + (rf"|\w(?:{endings})" if endings else "") + r")(?!\w)"
    return re.compile(rf"{denial}(?:\W+\w+){{0,{_DENIED_WITHIN - 1}}}?\W+(?:{changes})(?!\w)")


@cached()
def _state(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of predicates that say how something is, whatever their words: "is married to", "died in"."""
    return languages.pattern(lambda each: (*each.statements.strict, *each.statements.usual), r"(?<!\w)(?:{})(?!\w)")


@cached(maxsize=1_024)
def cues(text: str) -> frozenset[Cue | Literal["quoted", "asks"]]:
    """Return how a statement speaks of change."""
    text = text[:MAX_CHARS].replace("’", "'")
    languages = languages_of(text)
    said = _NAME_WITHIN.sub("_", text) if _words(languages).capitals_are_names else text  # New Delhi is not new
    low = _state(languages).sub(" ", said.lower())
    found: set[Cue | Literal["quoted", "asks"]] = {
        cue for cue, pattern in _cue_patterns(languages).items() if pattern.search(low)
    }
    if "no_longer" not in found and _denied(languages).search(low):
        found.add("unchanged")
    if _QUOTED.search(text):
        found.add("quoted")
    if text.rstrip().endswith("?"):
        found.add("asks")
    return frozenset(found)


CHANGES: frozenset[str] = frozenset(("no_longer", "ended", "replaced", "now", "corrected"))
"""Cues that something changed; the others speak against it."""

FEATURES = (
    "telling",
    "share",
    "novel",
    "changes",
    "only repeats",
    "another's",
    "added",
    "unchanged",
    "unsure",
    "reported",
    "past",
    "future",
    "quoted",
    "asks",
    "meaning",
)
_MOST_NOVEL = 6.0


def features(old: str, new: str, cosine: float | None = None) -> dict[str, float] | None:
    """Return the features of a pair, each from 0 to 1; None where they share no word and are not near in meaning.

    Args:
        cosine: of their vectors, if both are known.
    """
    before, after = topics(old), topics(new)
    met = [(worth, worth * after.likeness(stems)) for stems, worth in before.words]
    total, shared = sum(worth for worth, _ in met), sum(likeness for _, likeness in met)
    if not shared and (cosine is None or cosine < NEAR):
        return None
    said = cues(new)
    novel = sum(worth for stems, worth in after.words if not before.likeness(stems))
    is_other = bool(before.numbers and after.numbers) and not after.numbers <= before.numbers
    found = {
        "telling": float(any(likeness > _COMMON for _, likeness in met)),
        "share": shared / total if total else 0.0,
        "novel": min(novel / _MOST_NOVEL, 1.0),
        "changes": float(is_other or not said.isdisjoint(CHANGES)),
        "only repeats": float(shared > 0.99 * total and said.isdisjoint(("ended", "no_longer"))),
        "another's": float(_names_others(before, after)),
        "meaning": cosine or 0.0,
    }
    return {name: found.get(name, float(name in said)) for name in FEATURES}


def _names_others(before: Topics, after: Topics) -> bool:
    """Return whether the newer statement begins with someone that the older one does not name."""
    return any(not before.likeness((other,)) for other in after.others)


@cache
def _coefficients() -> dict[str, dict[str, float]]:
    loaded: dict[str, dict[str, float]] = json.loads(files("ricordo.text").joinpath("change.json").read_text("utf-8"))
    return loaded


def likelihood(old: str, new: str, cosine: float | None = None) -> float:
    """Return how likely it is, from 0 to 1, that a new statement makes an older one out of date.

    >>> likelihood("I drive a Corolla", "Sold the Corolla last week") > 0.5
    True
    >>> likelihood("I drive a Corolla", "Greg dreamt that he sold a Corolla") > 0.5
    False
    """
    return _likelihood(features(old, new, cosine), cosine)


def _likelihood(found: Mapping[str, float] | None, cosine: float | None) -> float:
    if found is None:
        return 0.0
    weights = _coefficients()["words" if cosine is None else "meaning"]
    total = weights["bias"] + sum(weights.get(name, 0.0) * value for name, value in found.items())
    return 1 / (1 + exp(-total))


Succeeds: TypeAlias = Literal["replaced", "conflict", "several"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Succession:
    """What a new statement does to an older one, and how likely it is to make it out of date."""

    verdict: Succeeds
    likelihood: float


_AGAINST = frozenset(("unsure", "reported", "past", "future", "added", "unchanged", "quoted", "asks"))


def succession(
    old: str, new: str, *, cosine: float | None = None, speakers: tuple[str | None, str | None]
) -> Succession | None:
    """Return whether a new statement replaces an older one, may do so, or (None) is another matter.

    Only a statement that says that something changed, and nothing that speaks against it, replaces by itself. One that
    says nothing of a change must be of the speaker's own life and very likely to be ranked first ("conflict");
    otherwise both stand side by side ("several").

    Args:
        speakers: who said the older and the newer one; None is the owner.
    """
    before, after = topics(old), topics(new)
    if _of_different_people(old, new, speakers):
        return None
    is_of_others = before.is_of_others or after.is_of_others
    if is_of_others and not _share_a_head(before, after):
        return None
    found = features(old, new, cosine)
    likely = _likelihood(found, cosine)
    least = _coefficients()["least"]
    if found is None or likely < least["several"]:
        return None
    if not found["changes"] and (is_of_others or not (before.is_own or after.is_own)):
        return None
    if likely < least["conflict" if found["changes"] else "conflict without a word of change"]:
        return Succession(verdict="several", likelihood=likely)
    said = cues(new)
    closes = likely >= least["replaced"] and said & CHANGES and not said & _AGAINST and not _names_others(before, after)
    return Succession(verdict="replaced" if closes else "conflict", likelihood=likely)


def _share_a_head(before: Topics, after: Topics) -> bool:
    """Return whether one of two statements names what the other one begins with.

    Two statements about other people or things are seldom about the same one if neither does: "Amy died in London",
    "Frank died in Berlin".
    """
    return any(after.likeness(stems) for stems, _ in before.words[:_HEAD]) or any(
        before.likeness(stems) for stems, _ in after.words[:_HEAD]
    )


def _of_different_people(old: str, new: str, speakers: tuple[str | None, str | None]) -> bool:
    """Return whether two people speak of themselves, and neither names the other."""
    one, other = speakers
    if one == other or not (topics(old).is_own or topics(new).is_own):
        return False
    named = (one or "").casefold(), (other or "").casefold()
    return not ((named[1] and named[1] in old.casefold()) or (named[0] and named[0] in new.casefold()))
