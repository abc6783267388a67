"""Find what people who work together state: decisions, rules, remaining tasks and causes. Pure.

The patterns are in the language files (`work`) and expect one sentence. Questions, guesses, code and quoted output are
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ricordo.text.analyzer import QUESTION_MARKS
from ricordo.text.languages import LanguageSet, Lexicon, cached, languages_of, pattern_of
from ricordo.text.sentences import MAX_PLAIN_CHARS, plain_sentences

Kind = Literal["decision", "rule", "left", "cause"]

_LEAST_WORDS, _MOST_WORDS, _MOST_CHARS = 3, 45, 320
_MOST_POLITE = 3
_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"^[^\S\n]*(?:>|\||\$ |#!|diff |[+-]{3} |@@ ).*$", re.MULTILINE)
_BULLET = re.compile(r"^[^\S\n]*(?:[-*+•]|\d+[.)]|#+)\s+|\*\*|__", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStatement:
    """A statement and its kind."""

    kind: Kind
    text: str


class _Cues(Lexicon):
    unsure = pattern_of(lambda each: each.work.unsure, flags=re.IGNORECASE)
    contrast = pattern_of(lambda each: each.work.contrast, r"[\s,;]+(?:{})\s+", flags=re.IGNORECASE)
    leads = pattern_of(lambda each: each.plain.leads, r"^(?:(?:{})[,:!—–-]*\s+)+", flags=re.IGNORECASE)
    left = pattern_of(lambda each: each.work.left, flags=re.IGNORECASE)
    decision = pattern_of(lambda each: each.work.decision, flags=re.IGNORECASE)
    rule = pattern_of(lambda each: each.work.rule, flags=re.IGNORECASE)
    cause = pattern_of(lambda each: each.work.cause, flags=re.IGNORECASE)


class _Wishes(Lexicon):
    leads = _Cues.leads
    please = pattern_of(lambda each: each.plain.please, r"[,\s]*\b(?:{})\b,?(?:\s+(?=:))?", flags=re.IGNORECASE)
    last_please = pattern_of(lambda each: each.plain.please, r",\s*(?:{})\W*$", flags=re.IGNORECASE)
    remember = pattern_of(lambda each: each.plain.remember, r"^(?:{})", flags=re.IGNORECASE)


_cues = cached()(_Cues)
_wishes = cached()(_Wishes)
_KINDS: tuple[Kind, ...] = ("left", "decision", "rule", "cause")
"""From the most to the least specific."""


def statements_of_work(text: str) -> tuple[WorkStatement, ...]:
    """Return the distinct statements of a message in order.

    >>> [(found.kind, found.text) for found in statements_of_work("Ok, let's use pnpm instead of npm. Does that work?")]
    [('decision', "Let's use pnpm instead of npm")]
    """
    languages = languages_of(text)
    cues = _cues(languages)
    told = ((to_remember(sentence, languages) or sentence) for sentence in _sentences(text))
    found = (_statement(sentence, cues) for sentence in told)
    return tuple(dict.fromkeys(each for each in found if each is not None))


def to_remember(sentence: str, languages: LanguageSet) -> str | None:
    """Return what a sentence asks to remember, however politely; None if it does not ask.

    >>> to_remember("Please remember: we deploy on Thursdays", languages_of("remember"))
    'we deploy on Thursdays'
    """
    cues = _wishes(languages)
    for plain in (sentence, cues.leads.sub("", sentence)):
        for polite in range(_MOST_POLITE):  # "please" after the request is part of it
            said = cues.please.sub("", plain, count=polite).lstrip() if polite else plain
            asked = cues.remember.match(said)
            if asked and not cues.please.match(said, asked.end()):
                return cues.last_please.sub("", said[asked.end() :])
    return None


def asks_to_forget(text: str) -> bool:
    """Return whether a text asks to forget what was told, or not to remember what it says.

    >>> [asks_to_forget(text) for text in ("Forget what I told you about it", "I forget names", "Delete it")]
    [True, False, False]
    """
    return _unsaid(languages_of(text)).match(text.lower()) is not None


@cached()
def _unsaid(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.plain.unsaid, r"\s*(?:{})")


_NOTED = re.compile(r"\w:\s|[\"«»“”„]")
"""What shows that a question is noted or quoted: "Open question: who pays?"."""


def is_bare_question(text: str) -> bool:
    """Return whether a text consists of questions only, and asks neither to remember something nor notes a question.

    >>> is_bare_question("Anna moved. Where to?"), is_bare_question("Please remember that I parked in row 7, ok?")
    (False, False)
    >>> is_bare_question("Where did I park?"), is_bare_question("Open question: who pays?")
    (True, False)
    """
    asked = [sentence for sentence in plain_sentences(text) if sentence]
    if len(text) > MAX_PLAIN_CHARS or _NOTED.search(text) or not asked:
        return False
    languages = languages_of(text)
    return all(each.endswith(QUESTION_MARKS) and to_remember(each, languages) is None for each in asked)


def _sentences(text: str) -> Iterator[str]:
    plain = _BULLET.sub("", _QUOTED_LINE.sub("", _CODE.sub("\n", text)))
    for sentence in plain_sentences(plain):
        for part in re.split(r"(?<=\w);\s+", sentence):
            yield part.strip()


def _statement(sentence: str, cues: _Cues) -> WorkStatement | None:
    if sentence.endswith("?") or len(sentence) > _MOST_CHARS:
        return None
    said = cues.leads.sub("", sentence).lstrip(" ,:;.!—–-").rstrip(" ,;.!—–-")
    if cues.unsure.search(said):  # "I was thinking of A, but let's take B"
        said = cues.leads.sub("", cues.contrast.split(said, maxsplit=1)[-1])
    if not _LEAST_WORDS <= len(said.split()) <= _MOST_WORDS or cues.unsure.search(said):
        return None
    kind = _kind(said, cues) or _kind(said.partition(": ")[2], cues)  # "Change of plan: we take A instead"
    return None if kind is None else WorkStatement(kind=kind, text=said[0].upper() + said[1:])


def _kind(said: str, cues: _Cues) -> Kind | None:
    return next((kind for kind in _KINDS if said and getattr(cues, kind).search(said)), None)
