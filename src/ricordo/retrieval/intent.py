"""The intent and the complexity of a question, by its words. Pure.

Intent says why, when, who, what, or nothing in particular (general). It moves weights a little and closes nothing, so a
wrong guess costs little. `exemplars` guesses by meaning, where an embedder is at hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ricordo.text.languages import LanguageSet, cached, languages_of

Intent = Literal["why", "when", "who", "what", "general"]
Complexity = Literal["simple", "complex"]

INTENTS: tuple[Intent, ...] = ("why", "when", "who", "what")
"""Those there are words and exemplars for."""

QUESTION_MARKS = ("?", "？", "؟")
_LOOKED_AT = 2_000
_LONG = 10
_JOINED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The words of questions in some languages, in lower case: patterns that ignore case take half as long again.

    Attributes:
        intents: the first that is found decides: "why did Anna move when she did" asks why, "who was it when we met"
            asks who only where nothing asks for a time before it. English questions may begin with anything ("In which
            year ..."), so the words are looked for anywhere; those that also join clauses ("when", "who", "когда")
            count where a question begins.
        empty: phrases that ask for nothing: "do you know what I mean".
    """

    intents: tuple[tuple[Intent, re.Pattern[str]], ...]
    empty: re.Pattern[str]
    aggregates: re.Pattern[str]
    conjunctions: re.Pattern[str]


@cached()
def _words(languages: LanguageSet) -> _Words:
    return _Words(
        intents=(
            ("why", languages.pattern(lambda each: each.questions.why)),
            ("when", languages.pattern(lambda each: each.questions.when)),
            ("when", languages.pattern(lambda each: each.questions.when_first)),
            ("who", languages.pattern(lambda each: each.questions.who)),
            ("what", languages.pattern(lambda each: each.questions.what)),
            ("when", languages.pattern(lambda each: each.questions.when_last)),
        ),
        empty=languages.pattern(lambda each: each.questions.empty, r"\b(?:{})\b"),
        aggregates=languages.pattern(lambda each: each.questions.aggregates, r"\b(?:{})\b"),
        conjunctions=languages.pattern(lambda each: each.questions.conjunctions, r"\b(?:{})\b"),
    )


_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def intent_of(text: str) -> Intent:
    """Return what a question asks for, by its words.

    >>> intent_of("Why did Anna quit?"), intent_of("В каком году мы переехали?"), intent_of("peanut allergy")
    ('why', 'when', 'general')
    """
    words = _words(languages_of(text[:_LOOKED_AT]))
    asked = words.empty.sub(" ", text[:_LOOKED_AT].strip().lower())
    return next((intent for intent, pattern in words.intents if pattern.search(asked)), "general")


def complexity_of(text: str) -> Complexity:
    """Return whether a question is long, asks for many things, or joins several.

    >>> complexity_of("Where does Anna live?"), complexity_of("List all of Anna's homes")
    ('simple', 'complex')
    """
    words = _words(languages_of(text[:_LOOKED_AT]))
    asked = text[:_LOOKED_AT].lower()
    is_long = len(_WORD.findall(asked)) >= _LONG
    is_joined = len(words.conjunctions.findall(asked)) >= _JOINED
    return "complex" if is_long or is_joined or words.aggregates.search(asked) else "simple"
