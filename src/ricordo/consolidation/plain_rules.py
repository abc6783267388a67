"""Statements worth keeping that rules can find, because they need no model to be understood. Pure.

The patterns are in the language files; languages without them are ignored. They are conservative, because junk is worse
than a gap: everything else stays an episode and can be found as such. A sentence is kept as it was said, without a
final question or address to the listener. Questions, quotations, jokes, guesses, wishes and small talk ("I love it", "I
think so") are ignored. So is anything that a stranger would not understand: opinions on things that only the
conversation names ("I think the first one is better"), brief moments and figures of speech ("decided to try a pizza").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ricordo.text.canonical import canonical
from ricordo.text.change import CHANGES, Cue, says_change, topics
from ricordo.text.change import cues as change_cues
from ricordo.text.dates.grammar import mentions_time
from ricordo.text.languages import LanguageSet, Lexicon, all_languages, cached, languages_of, pattern_of
from ricordo.text.sentences import plain_sentences, without_jokes
from ricordo.text.statement import subject_of
from ricordo.text.work import to_remember

_LEAST_WORDS, _MOST_WORDS = 3, 60
_LEAST_OF_LIFE = 2  # "I'm vegan"
_OPENING = 9
_FEW_WORDS = 8
"""So few words may not show their language: "Soy zurda"."""

_PART_END = re.compile(r"[,;:]\s+|(?<!\s)\s+[–—-]\s+")

Kind = Literal["fact", "preference", "opinion", "decision", "commitment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A statement worth keeping: its kind of knowledge, and the sentence without its introduction."""

    kind: Kind
    text: str


def plain_statements(text: str) -> tuple[Plain, ...]:
    """Return the distinct statements of a message that are worth keeping, in order.

    >>> [(found.kind, found.text) for found in plain_statements("Well, I love hiking. Do you? I think so.")]
    [('preference', 'I love hiking')]
    """
    languages = languages_of(text)
    found = _statements(text, languages)
    if found or len(text.split()) > _FEW_WORDS or not all(each.is_default for each in languages):
        return found
    return _statements(text, all_languages())


def _statements(text: str, languages: LanguageSet) -> tuple[Plain, ...]:
    cues = _cues(languages)
    found = (
        _statement(sentence, cues)
        if (asked := to_remember(sentence, languages)) is None
        else _kept("fact", asked, least=_LEAST_OF_LIFE)
        for sentence in _sentences(text, cues)
    )
    return tuple(dict.fromkeys(each for each in found if each is not None))


def states_liking(text: str) -> bool:
    """Return whether a statement says what somebody likes or dislikes."""
    return _cues(languages_of(text)).preference.search(text) is not None


def told_changes(text: str) -> tuple[str, ...]:
    """Return the sentences of a message that may make a known fact out of date, in order.

    They say that something has changed, or give a value ("My phone number is"). What has come in place of something
    that ended belongs to the sentence about its end: "I left Acme. I'm at Globex now".

    >>> told_changes("I left Acme in May. I'm at Globex now. Nice weather. If I sold the car, I would walk.")
    ("I left Acme in May. I'm at Globex now",)
    """
    languages = languages_of(text)
    cues, found, before = _cues(languages), list[str](), frozenset[Cue]()
    for sentence in _sentences(text, cues, without_tails=True):
        signs = change_cues(sentence, languages_of(sentence))
        said = sentence if "corrected" in signs else cues.lead.sub("", sentence)  # "No, I live in Bergen"
        comes_instead = before & _ENDS and signs & CHANGES and not signs & (_ENDS | _NO_CHANGE)
        if found and comes_instead and _statement(sentence, cues) is None:
            found[-1] = f"{found[-1]}. {said}"
        elif to_remember(sentence, languages) is not None:  # stored as it was asked for
            continue
        elif not signs & _NO_CHANGE and (says_change(said) or _gives_value(said)):
            found.append(said)
        before = signs
    kept = (_kept("fact", said, least=_LEAST_OF_LIFE) for said in found)
    return tuple(dict.fromkeys(each.text for each in kept if each))


def _gives_value(said: str) -> bool:
    """Return whether a sentence may give something of the speaker's another value: "My dentist is"."""
    return bool(canonical(said).slot) or (topics(said).is_own and subject_of(said) is not None)


_ENDS: frozenset[Cue] = frozenset(("no_longer", "ended", "replaced"))
_NO_CHANGE: frozenset[Cue] = frozenset(("unsure", "reported", "future", "asks"))


class _Cues(Lexicon):
    """Patterns for statements worth keeping; see `PlainStatements` in the language schema."""

    task = pattern_of(lambda each: each.plain.task, flags=re.IGNORECASE)
    doubtful = pattern_of(lambda each: each.plain.doubtful, flags=re.IGNORECASE)
    vague = pattern_of(lambda each: each.plain.vague, flags=re.IGNORECASE)
    lead = pattern_of(lambda each: each.plain.leads, r"^(?:(?:{})[,:!—–-]*\s+)+", flags=re.IGNORECASE)
    commitment = pattern_of(lambda each: each.plain.commitment, flags=re.IGNORECASE)
    decision = pattern_of(lambda each: each.plain.decision, flags=re.IGNORECASE)
    preference = pattern_of(lambda each: (*each.plain.answering, *each.plain.preference), flags=re.IGNORECASE)
    opinion = pattern_of(lambda each: each.plain.opinion, flags=re.IGNORECASE)
    life = pattern_of(lambda each: each.plain.life, flags=re.IGNORECASE)
    fact = pattern_of(lambda each: each.plain.fact, flags=re.IGNORECASE)
    will = pattern_of(lambda each: each.plain.will, flags=re.IGNORECASE)
    unlikely = pattern_of(lambda each: each.plain.unlikely, flags=re.IGNORECASE)
    tails = pattern_of(lambda each: each.plain.tails, flags=re.IGNORECASE)
    loose_ends = pattern_of(lambda each: each.plain.loose_ends, flags=re.IGNORECASE)
    context = pattern_of(lambda each: each.plain.context, flags=re.IGNORECASE)
    passing = pattern_of(lambda each: each.plain.passing, flags=re.IGNORECASE)


_cues = cached()(_Cues)
_BY_BEGINNING: tuple[Kind, ...] = ("commitment", "decision", "preference", "opinion", "fact")
"""The kinds that a sentence shows by its beginning, the most specific first."""


def _statement(sentence: str, cues: _Cues) -> Plain | None:
    said = cues.tails.sub("", cues.lead.sub("", sentence))
    if cues.vague.search(" ".join(said.split()[:_OPENING])) or cues.loose_ends.search(said):
        return None
    parts = (cues.lead.sub("", part) for part in _PART_END.split(said)[1:])
    of_life = next((part for part in (said, *parts) if cues.life.match(part)), None)
    if of_life is not None:  # "I've sold the Golf, I drive a Skoda now" also tells what has ended
        return _kept("fact", said if says_change(said.removesuffix(of_life)) else of_life, least=_LEAST_OF_LIFE)
    kind = next((kind for kind in _BY_BEGINNING if getattr(cues, kind).search(said)), None)
    if cues.passing.search(said) or (kind == "opinion" and cues.context.search(said)):
        return None
    if kind:
        return _kept(kind, said)
    is_promise = cues.will.match(said) is not None and mentions_time(said) and not cues.unlikely.search(said)
    return _kept("commitment", said) if is_promise else None


def _kept(kind: Kind, said: str, *, least: int = _LEAST_WORDS) -> Plain | None:
    said = said.strip(" ,:;—–-")
    if not least <= len(said.split()) <= _MOST_WORDS:
        return None
    return Plain(kind=kind, text=said[0].upper() + said[1:])


_QUOTED = re.compile(r"^\s*[\"«“„>]|[\"“”„]")


def _sentences(text: str, cues: _Cues, *, without_tails: bool = False) -> Iterator[str]:
    for whole in plain_sentences(without_jokes(text)):
        if cues.task.search(whole):
            return  # the rest is the text to work on
        sentence = cues.tails.sub("", whole) if without_tails else whole
        if not (sentence.endswith("?") or _QUOTED.search(sentence) or cues.doubtful.search(sentence)):
            yield sentence.rstrip(".!… ")
