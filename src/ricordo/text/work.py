"""Find what people who work together state: decisions, rules, remaining tasks and causes. Pure.

The patterns are in the language files (`work`) and expect one sentence. Questions, guesses, code and quoted output are
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ricordo.text.languages import LanguageSet, cached, languages_of
from ricordo.text.sentences import plain_sentences

Kind = Literal["decision", "rule", "left", "cause"]

_LEAST_WORDS, _MOST_WORDS, _MOST_CHARS = 3, 45, 320
_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"^\s*(?:>|\||\$ |#!|diff |[+-]{3} |@@ ).*$", re.MULTILINE)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)]|#+)\s+|\*\*|__", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStatement:
    """A statement and its kind."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cues:
    unsure: re.Pattern[str]
    contrast: re.Pattern[str]
    leads: re.Pattern[str]
    kinds: tuple[tuple[Kind, re.Pattern[str]], ...]


@cached()
def _cues(languages: LanguageSet) -> _Cues:
    flags = re.IGNORECASE
    return _Cues(
        unsure=languages.pattern(lambda each: each.work.unsure, flags=flags),
        contrast=languages.pattern(lambda each: each.work.contrast, r"[\s,;]+(?:{})\s+", flags=flags),
        leads=languages.pattern(lambda each: each.plain.leads, r"^(?:(?:{})[,:!—–-]*\s+)+", flags=flags),
        kinds=(
            ("left", languages.pattern(lambda each: each.work.left, flags=flags)),
            ("decision", languages.pattern(lambda each: each.work.decision, flags=flags)),
            ("rule", languages.pattern(lambda each: each.work.rule, flags=flags)),
            ("cause", languages.pattern(lambda each: each.work.cause, flags=flags)),
        ),
    )


def statements_of_work(text: str) -> tuple[WorkStatement, ...]:
    """Return the distinct statements of a message in order.

    >>> [(found.kind, found.text) for found in stated("Ok, let's use pnpm instead of npm. Does that work?")]
    [('decision', "Let's use pnpm instead of npm")]
    """
    cues = _cues(languages_of(text))
    found = (_statement(sentence, cues) for sentence in _sentences(text))
    return tuple(dict.fromkeys(each for each in found if each is not None))


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
    return next((kind for kind, pattern in cues.kinds if said and pattern.search(said)), None)
