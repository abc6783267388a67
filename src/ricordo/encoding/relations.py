"""What is said outright about people: "my wife is Sarah", "моя жена — Сара", "Anna lives in Paris". Pure.

Conservative: a relation is learnt from a plain present statement of the owner's and from nothing else. A question,
a negation, the past, a condition or a quotation teaches nothing, nor does a capitalised word that is no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ricordo.text import function_words
from ricordo.text.kinship import NOT_PEOPLE, known_relation, may_name_relation, relation_pattern
from ricordo.text.word_lists import words_of

MAX_CHARS = 5_000
"""What is said outright is said in a few words; the rest of a document is not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Who somebody is to whoever speaks, and the sentence that says so."""

    predicate: str
    name: str
    sentence: str


Case = Literal["feminine", "masculine"]
"""The gender of a name that may stand in the instrumental case."""

_WORD = r"[^\W\d_a-zа-яё][^\W\d_]*(?:['’-][^\W\d_a-zа-яё][^\W\d_]*)*"
_NAME = rf"(?P<name>(?:(?:Dr|Mr|Mrs|Ms|Prof)\.?\s+)?{_WORD}(?:\s+{_WORD}){{0,2}})"
_END = r"(?!['’]s\b)(?=\s*(?:$|[,;)!—–]|and\b|who\b|from\b|и\b|с\b|из\b))"
_LEAD = (
    r"^(?:(?:and|so|well|oh|ok|okay|yes|yeah|hi|hello|hey|btw|by the way|also|actually|fyi|"
    r"remember(?:\s+that)?|note(?:\s+that)?|"
    r"а|и|ну|да|привет|кстати|вообще|запомни|запомни,?\s+что|имей в виду)[,:!]?\s+)*"
)
_KIND_EN = r"(?:(?:dear|lovely|beloved|wonderful|older|elder|younger|little|big|twin|new)\s+)?"
_KIND_RU = r"(?:(?:любим\w+|старш\w+|младш\w+|нов\w+)\s+)?"
_MINE_EN = r"(?:my|(?:the\s+)?user['’]s)"
_MINE_RU = r"(?:мой|моя|моё|мое)"


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    what = f"(?P<what>{relation_pattern()})"
    mine, mine_ru = rf"{_MINE_EN}\s+{_KIND_EN}{what}", rf"{_MINE_RU}\s+{_KIND_RU}{what}"
    forms = (
        rf"{_LEAD}{mine}\s+is\s+(?:called\s+|named\s+)?{_NAME}{_END}",
        rf"{_LEAD}{mine}['’]s\s+name\s+is\s+{_NAME}{_END}",
        rf"{_LEAD}{_NAME}\s+is\s+{mine}{_END}",
        rf"{_LEAD}(?:this\s+is|meet)\s+{_NAME},\s+{mine}{_END}",
        rf"{_LEAD}(?:this\s+is|meet)\s+{mine},?\s+{_NAME}{_END}",
        rf"(?:{_LEAD}|(?<!\w)(?:with|for|to|from|about|by|of|and)\s+){mine}\s+{_NAME}(?!\w)",
        rf"(?<!\w){mine},\s+{_NAME},",
        rf"{_LEAD}{mine_ru}\s*(?:[—–:-]\s*)?(?:это\s+)?{_NAME}(?!\w)",
        rf"{_LEAD}(?:мою|моего)\s+{_KIND_RU}{what}\s+зовут\s+{_NAME}{_END}",
        rf"{_LEAD}{_NAME}\s*[—–,-]?\s*(?:это\s+)?{mine_ru}{_END}",
    )
    # Everything but the names is said in any case; a name has to be capitalised.
    return tuple(re.compile(_any_case(form)) for form in forms)


def _any_case(form: str) -> str:
    before, name, after = form.partition(_NAME)
    return f"(?i:{before}){name}(?i:{after})"


_SENTENCE = re.compile(r"[^.!?\n…]+(?:(?<=\b(?:Dr|Mr|Ms))\.[^.!?\n…]+|(?<=\bMrs)\.[^.!?\n…]+)*[.!?…]*")
_QUOTED = re.compile(r"[\"«»“”„‟]|(?<!\w)['‘]|['’](?!\w)")
_DOUBTFUL = re.compile(
    r"(?<!\w)(?:not|never|no longer|was|were|if|would|could|might|maybe|perhaps|wish|imagine|suppose|pretend|unless|"
    r"former|used to be|не|нет|уже не|была|был|было|бы|если|звали|кажется|может|наверное|допустим|представь)(?!\w)"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_TRANSCRIPT = re.compile(r"\s*[^\s:]+(?:\s[^\s:]+)?:\s")
_LABEL = re.compile(r"\s*(?:note|fyi|btw|remember|запомни|кстати)\s*:", re.IGNORECASE)


def stated_relations(text: str) -> list[Stated]:
    """Who is what to the speaker, as the text says outright; in order, without repeats.

    >>> [(found.predicate, found.name) for found in stated_relations("Hi, my wife is Sarah. Is my boss Tom?")]
    [('wife', 'Sarah')]
    """
    text = text[:MAX_CHARS]
    if not may_name_relation(text):
        return []
    found: dict[tuple[str, str], Stated] = {}
    for sentence in _sentences(text):
        for stated in _stated_in(sentence):
            found.setdefault((stated.predicate, stated.name), stated)
    return list(found.values())


def _sentences(text: str) -> Iterator[str]:
    for part in _SENTENCE.finditer(text):
        sentence = part.group().strip()
        is_transcript = _TRANSCRIPT.match(sentence) and not _LABEL.match(sentence)
        if not (sentence.endswith("?") or _QUOTED.search(sentence) or _DOUBTFUL.search(sentence) or is_transcript):
            yield sentence.rstrip(".!… ")


def _stated_in(sentence: str) -> Iterator[Stated]:
    if not may_name_relation(sentence):
        return
    for pattern in _patterns():
        for found in pattern.finditer(sentence):
            predicate = known_relation(found["what"])
            name = _name(found["name"], case=_case(found.group()))
            is_first = found.start("name") < found.start("what")
            if predicate and predicate not in NOT_PEOPLE and name and not (is_first and _is_thing(name)):
                yield Stated(predicate=predicate, name=name, sentence=sentence)


def _case(said: str) -> Case | None:
    """Whether a name may stand in the instrumental case ("зовут Сарой"), and of which gender."""
    words = said.lower().split()
    if "зовут" not in words:
        return None
    return "feminine" if "мою" in words else "masculine"


def _name(written: str, *, case: Case | None) -> str | None:
    """The name in capitalised words, up to the first of them that is none; None where nothing is left."""
    kept: list[str] = []
    for word in written.split():
        bare = word.rstrip(".")
        if bare in ("Dr", "Mr", "Mrs", "Ms", "Prof") and not kept:
            continue
        if not _is_name(bare):
            break
        kept.append(bare)
    if not kept:
        return None
    return _in_nominative(kept, case) if case else " ".join(kept)


def _is_name(word: str) -> bool:
    lower = word.lower()
    is_shouted = len(word) > 1 and word.isupper()
    known = function_words("en") | function_words("ru") | words_of("not_names")
    return len(word) > 1 and not is_shouted and lower not in known and not lower.endswith("'s")


# The instrumental case of a name by the end of its words. Masculine "ем" is left out: Игорем is of Игорь, Сергеем of
# Сергей, Артем himself.
_INSTRUMENTAL: Mapping[Case, tuple[tuple[str, str], ...]] = {
    "feminine": (
        (r"ией\Z", "ия"),
        (r"ь[её]й\Z", "ья"),
        (r"(?<=[жшчщц])ей\Z", "а"),
        (r"ей\Z", "я"),
        (r"ой\Z", "а"),
        (r"овью\Z", "овь"),
    ),
    "masculine": (
        (r"ь[её]й\Z", "ья"),
        (r"ой\Z", "а"),
        (r"(?<=ов)ым\Z|(?<=ев)ым\Z|(?<=ин)ым\Z", ""),
        (r"(?<=[^аеёиоуыэюяьй]{2})ом\Z|(?<=[аеёиоуыэюя][^аеёиоуыэюяьй])ом\Z", ""),
    ),
}


def _in_nominative(words: list[str], case: Case) -> str | None:
    """ "Сарой" is Сара; of a form that several names share nothing is learnt."""
    done = []
    for word in words:
        if case == "masculine" and word.endswith("ем"):
            return None
        changed = (re.sub(ending, other, word) for ending, other in _INSTRUMENTAL[case] if re.search(ending, word))
        done.append(next(changed, word))
    return " ".join(done)


# What people say is their wife, boss or best friend, besides people. It stands first and is therefore capitalised.
_ABSTRACT = re.compile(r"(?:ing|ness|tion|sion|ity|ment|ism|ость|ение|ание|изм)\Z")


def _is_thing(name: str) -> bool:
    first = name.split()[0].lower()
    return first in words_of("things") or bool(_ABSTRACT.search(first))


# Whom a plain statement is about: a name at its very beginning with a verb behind it, and nothing possessive.
_SUBJECT = re.compile(
    rf"\s*(?P<first>{_WORD}(?:\s+{_WORD}){{0,2}})(?:\s+(?:and|и)\s+(?P<second>{_WORD}(?:\s+{_WORD}){{0,2}}))?\s+(?P<next>[^\W\d_][\w'’-]*)"
)


def plain_subjects(text: str) -> tuple[str, ...]:
    """The names a statement begins with, as candidates: whoever is not known by exactly that name is not meant.

    >>> plain_subjects("Anna lives in Paris"), plain_subjects("Anna's sister lives in Rome")
    (('Anna',), ())
    """
    found = _SUBJECT.match(text[:200])
    if found is None or found["next"][0].isupper():
        return ()
    return tuple(name for name in (found["first"], found["second"]) if name)
