"""What kind of answer a question asks for, and how much it takes. Pure functions of the question's words.

Intent says why, when, who, what, or nothing in particular (general). It moves weights a little and closes nothing, so a
wrong guess costs little. `exemplars` guesses by meaning, where an embedder is at hand.
"""

from __future__ import annotations

import re
from typing import Literal, cast

Intent = Literal["why", "when", "who", "what", "general"]
Complexity = Literal["simple", "complex"]

INTENTS: tuple[Intent, ...] = ("why", "when", "who", "what")
"""Those there are words and exemplars for."""

QUESTION_MARKS = ("?", "？", "؟")
_LOOKED_AT = 2_000
_LONG = 10
_JOINED = 2

# All are looked for in lower case: patterns that ignore case take half as long again.
#
# The first that is found decides: "why did Anna move when she did" asks why, "who was it when we met" asks who only
# where nothing asks for a time before it. English questions may begin with anything ("In which year ..."), so the words
# are looked for anywhere; those that also join clauses ("when", "who", "когда", "кто") count where a question begins.
_WORDS: tuple[tuple[Intent, re.Pattern[str]], ...] = tuple(
    (cast("Intent", intent), re.compile(pattern))
    for intent, pattern in (
        (
            "why",
            r"\bwhy\b|\bhow come\b|\bwhat (?:made|caused|causes|led|motivated|prompted|drove|inspired)\b"
            r"|\b(?:the|what) (?:reasons?|causes?|motivations?)\b|\bfor what (?:reason|purpose)\b"
            r"|\bwhat\b[^?]{0,60}\bfor\s*\?|\breasons? (?:for|behind|why)\b|\bbecause of what\b"
            r"|\b(?:почему|зачем|отчего|с чего бы|с какой (?:целью|стати)|по какой причине|из-за чего"
            r"|причин[аыуе]|что (?:заставило|побудило|вызвало|привело))\b",
        ),
        (
            "when",
            r"\b(?:in |on |at |by |since |until )?(?:what|which) (?:day|date|month|year|time|week|season)s?\b"
            r"|\bhow (?:long|recently) (?:ago|since|before)\b|\bhow (?:recently|soon|long)\b|\bsince when\b"
            r"|\bуже давно\b|\b(?:с каких пор|до каких пор|как (?:давно|долго|скоро)|какого числа|во сколько"
            r"|в как(?:ом|ой|их) (?:году|месяце|день|дату|неделю|неделе|годах)|в какое время|сколько времени"
            r"|дат[ауы])\b|\bthe (?:date|day|year) (?:of|when|that)\b",
        ),
        (
            "when",
            r"(?:\A|[.?!,;:]\s*|\b(?:and|tell me|know|remember|recall|so|but) )when\b"
            r"|(?:\A|[.?!,;:]\s*|\b(?:а|и|но|скажи|помнишь|вспомни|знаешь|интересно) )когда\b",
        ),
        (
            "who",
            r"\b(?:who|whom|whose|who's|which (?:person|people|friend|colleague|of (?:them|us|my \w+)))\b"
            r"|\b(?:кто|кого|кому|кем|о ком|чей|чья|чьё|чье|чьи|чью|чьего|чьей)\b",
        ),
        (
            "what",
            r"\b(?:what|what's|which|where|how (?:many|much|old|often|far|big|tall))\b"
            r"|\b(?:что|чего|чему|чем|о чём|о чем|какой|какая|какое|какие|какую|каких|каким|какими|какого|какому"
            r"|каков[аоы]?|сколько|где|куда|откуда|котор\w+)\b",
        ),
        ("when", r"\b(?:when|когда)\b\s*\?"),
    )
)

# "Do you know what I mean": these take no part of what is asked.
_EMPTY_PHRASES = re.compile(
    r"\b(?:you know what|guess what|what if|what about|no matter (?:what|who|when|why)|so what|потому что|что-то|кто-то"
    r"|когда-то|кое-что|кое-кто|что-нибудь|кто-нибудь|когда-нибудь|так что|потому, что|что если|ну и что)\b"
)

_AGGREGATES = re.compile(
    r"\b(?:all|every|everything|everyone|everybody|list|compare|comparison|summari[sz]e|summary|overview|overall|total"
    r"|altogether|how many|how often|how has|how have|both|each|differences?|difference between|similarit\w+|trends?"
    r"|history of|timeline|evolution|relationship between|in common|pros and cons|most|least|between"
    r"|все|всех|всём|всем|всеми|всё|каждый|каждая|каждого|список|перечисли\w*|сравни\w*|сравнение|обобщи\w*|итог\w*|обзор"
    r"|сколько раз|сколько всего|всего|оба|обе|обоих|разниц\w+|отличи\w+|общего|истори[яию]|хронологи\w+|между"
    r"|чаще всего|больше всего|меньше всего|как менял\w+|взаимосвяз\w+)\b"
)
_CONJUNCTIONS = re.compile(
    r"\b(?:and|or|but|while|whereas|although|though|because|unless|as well as|и|или|но|а|либо|хотя|зато|потому что|если"
    r"|пока|а также|однако)\b"
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def intent_of(text: str) -> Intent:
    """What a question asks for, by its words.

    >>> intent_of("Why did Anna quit?"), intent_of("В каком году мы переехали?"), intent_of("peanut allergy")
    ('why', 'when', 'general')
    """
    asked = _EMPTY_PHRASES.sub(" ", text[:_LOOKED_AT].strip().lower())
    return next((intent for intent, words in _WORDS if words.search(asked)), "general")


def complexity_of(text: str) -> Complexity:
    """Whether a question is long, asks for many things, or joins several.

    >>> complexity_of("Where does Anna live?"), complexity_of("List all of Anna's homes")
    ('simple', 'complex')
    """
    asked = text[:_LOOKED_AT].lower()
    is_long = len(_WORD.findall(asked)) >= _LONG
    is_joined = len(_CONJUNCTIONS.findall(asked)) >= _JOINED
    return "complex" if is_long or is_joined or _AGGREGATES.search(asked) else "simple"
