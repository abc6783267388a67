"""The words by which the rule of `slots` tells slots, values and reservations apart, in English and Russian.

All of it is matched against folded words: lower case, е for ё, single blanks between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Words, and phrases or beginnings of words, any of which makes a statement what the set is named after."""

    words: frozenset[str]
    parts: tuple[str, ...] = ()

    def in_(self, words: Sequence[str], text: str) -> bool:
        """Whether folded words hold one; `text` is the same words with a blank before and after each.

        Looked up rather than matched: each new fact is compared with several.
        """
        return not self.words.isdisjoint(words) or any(part in text for part in self.parts)


ALSO = Signs(
    words=frozenset(
        (
            "also",
            "too",
            "another",
            "other",
            "besides",
            "additionally",
            "second",
            "еще",
            "также",
            "тоже",
            "другой",
            "другая",
            "другое",
            "другие",
            "вторая",
            "второй",
            "второе",
        )
    ),
    parts=(" as well ", " one of ", " один из ", " одна из "),
)
"""The new fact says itself that it stands beside others."""

UNSURE = Signs(
    words=frozenset(
        (
            "want",
            "wants",
            "might",
            "would",
            "hope",
            "hopes",
            "if",
            "said",
            "says",
            "think",
            "thinks",
            "wishes",
            "dream",
            "dreams",
            "considering",
            "could",
            "maybe",
            "perhaps",
            "probably",
            "possibly",
            "наверное",
            "возможно",
            "может",
            "хочет",
            "хочу",
            "мечтает",
            "если",
            "сказал",
            "сказала",
            "говорят",
            "думает",
            "планирует",
            "собирается",
            "вероятно",
        )
    ),
    parts=(" plan to ", " plans to ", " говорит что ", " хотел"),
)
PAST = Signs(
    words=frozenset(
        (
            "previously",
            "formerly",
            "former",
            "once",
            "before",
            "earlier",
            "until",
            "ago",
            "раньше",
            "прежде",
            "когда-то",
            "ранее",
        )
    ),
    parts=(" used to ", " back in ", " до этого ", " бывш", " прежн"),
)
NEGATIONS = frozenset(("not", "never", "no", "without", "cannot", "не", "нет", "никогда", "без"))

COPULAS = frozenset(("is", "are", "was", "were", "am", "—", "–", "-", ":", "это"))
DETERMINERS = frozenset(
    (
        "the",
        "a",
        "an",
        "my",
        "your",
        "his",
        "her",
        "our",
        "their",
        "its",
        "this",
        "мой",
        "моя",
        "мое",
        "мои",
        "твой",
        "твоя",
        "наш",
        "наша",
        "его",
        "ее",
        "их",
        "этот",
        "эта",
    )
)
PREPOSITIONS = frozenset(
    (
        "in",
        "at",
        "on",
        "for",
        "with",
        "to",
        "by",
        "from",
        "of",
        "and",
        "or",
        "about",
        "as",
        "without",
        "during",
        "в",
        "во",
        "на",
        "с",
        "со",
        "к",
        "о",
        "об",
        "по",
        "у",
        "и",
        "из",
        "за",
        "до",
        "от",
        "для",
        "без",
    )
)

_PLACE = r"(?: the (?:city|country|continent|state|language|year|town) of)?$"

STRICT = re.compile(
    r"(?:^| )(?:"
    r"(?:lives?|resides?) in|(?:is|are|am|was) (?:located|based|situated|headquartered) (?:in|at)|"
    r"(?:was|were) (?:born|founded|created|established) in|(?:was|were) born on|died (?:in|on)|"
    r"(?:is|am|are) (?:married|engaged) to|(?:is|are) (?:scheduled|planned|set) (?:for|on|to)|"
    r"(?:is|are) due(?: (?:on|by))?|weighs?|costs?|runs on|am (?:called|named)|"
    r"(?:живет|живу|проживает|проживаю) (?:в|на)|родил(?:ся|ась)(?: (?:в|на))?|умер(?:ла)? (?:в|на)|замужем за|"
    r"женат на|меня зовут|находится в|расположен[аоы]? в|назначен[аоы]? на|стоит|весит"
    rf"){_PLACE}"
)
"""Before a value: something one can have only one of. A new value replaces the old one."""

USUAL = re.compile(
    r"(?:^| )(?:"
    r"works? (?:at|for|as|in)|(?:is|am|are) employed by|(?:is|am) dating|(?:is|am) a citizen of|"
    r"(?:is|are|was) (?:called|named)|зовут|называется|"
    r"(?:was|were|is) (?:written|directed|performed|developed|produced|invented|composed|designed|discovered|founded|"
    r"created|established) by|(?:is|are) (?:written|implemented|coded) in|drives an?|studies at|attends|"
    r"(?:работает|работаю) (?:в|на|у)|(?:учится|учусь) в|написан[аоы]? (?:на|в)|основан[аоы]?"
    rf"){_PLACE}"
)
"""Before a value: mostly one at a time, but two jobs, two founders and two dogs are known."""

TYPED = re.compile(r"^(?!the ).+ \S+ (?:.+ )?the \w+ of$")
"""`plays the position of`, `is associated with the sport of`: the kind of the value is named before it."""

DEFINITE = re.compile(r"^(?:the|my|your|his|her|our|their|its) |'s ")
FAVOURITE = re.compile(r"\b(?:favourite|type|kind|colour|genre|language|любим\w*|цвет|вид|тип|жанр)\b")

SEVERAL = re.compile(
    r"\b(?:speaks?|visited|visits?|likes?|loves?|hates?|enjoys?|knows?|studied|been|has|have|owns?|reads?|teach\w*|"
    r"learn\w*|wrote|writes|member|one|allergic|afraid|interested|fond|good|bad|"
    r"friends?|brother|sister|child|son|daughter|colleague|hobby|goals?|pet|customer|client|skill|languages|"
    r"books?|neighbou?r|cousin|uncle|aunt|idea|task|sibling|"
    r"брат|сестра|друг|подруга|хобби|ребенок|сын|дочь|коллега|цель|навык|клиент|сосед\w*|кузен|дядя|тетя|"
    r"любит|люблю|знает|знаю|умеет|говорит|боится)\b"
)
"""In a frame: something one has several of, as a rule."""

SHARED = re.compile(
    r"\b(?:founders?|authors?|writer|creator|inventor|producer|partner|parents?|автор|основатель|родитель|партнер)\b"
)
"""In a frame that asks for one: a role that two may hold."""

INDEFINITE = frozenset(("a", "an", "one", "some", "many", "most", "every", "each", "any", "several", "один", "одна"))
"""A statement that begins so is about one of many, and the next about another."""

MEASURE = re.compile(r"^(?:лет|год|года|years? old|км|kg|кг|cm|см)\b")
AGE = re.compile(r"^\d+ (?:лет|год|года|years? old)$")
YEAR = re.compile(r"(?:19|20)\d\d")

COMPARED = frozenset(("than", "more", "less", "чем", "больше", "меньше"))

_IRREGULAR_PAST = frozenset(
    (
        "went",
        "bought",
        "met",
        "ran",
        "slept",
        "paid",
        "came",
        "told",
        "won",
        "saw",
        "ate",
        "took",
        "gave",
        "made",
        "got",
        "had",
        "said",
        "wrote",
        "found",
        "left",
        "lost",
        "sold",
        "sent",
        "built",
        "drove",
        "flew",
        "began",
        "broke",
        "caught",
        "chose",
        "drank",
        "fell",
        "felt",
        "heard",
        "kept",
        "knew",
        "read",
        "rode",
        "sang",
        "sat",
        "spoke",
        "spent",
        "stood",
        "swam",
        "taught",
        "thought",
        "threw",
        "wore",
        "did",
    )
)
_PLAIN_VERBS = frozenset(
    (
        "live",
        "work",
        "like",
        "love",
        "have",
        "will",
        "can",
        "prefer",
        "want",
        "need",
        "know",
        "speak",
        "play",
        "use",
        "drink",
        "eat",
        "own",
        "read",
        "study",
        "hate",
        "enjoy",
        "drive",
        "run",
        "must",
        "should",
        "always",
        "keep",
    )
)
_RUSSIAN_VERB = re.compile(r"[а-я]{2,}(?:[еиая]т|[ую]т|[ею]шь|[ую]|л|ла|ло|ли|[ая]н[аоы]?|ен[аоы]?)(?:ся|сь)?\Z")
_RUSSIAN_PAST = re.compile(r"[а-я]{3,}(?:л|ла|ло|ли)(?:ся|сь)?\Z")


def is_past_event(word: str, before: str) -> bool:
    """Whether a word tells of something that happened; "was founded" tells of a state."""
    if word in _IRREGULAR_PAST or _RUSSIAN_PAST.match(word):
        return True
    return word.isascii() and len(word) > 3 and word.endswith("ed") and before not in COPULAS and before != "been"


def is_verb(word: str, before: str) -> bool:
    """Whether a word is likely the verb of its sentence. "My parents" holds none: a determiner stands before it."""
    if word in COPULAS or word in _PLAIN_VERBS or is_past_event(word, before):
        return True
    if not before or before in DETERMINERS or before.endswith("'s"):
        return False
    if word.isascii():
        return len(word) > 2 and word.endswith("s") and not word.endswith(("ss", "'s"))
    return _RUSSIAN_VERB.match(word) is not None
