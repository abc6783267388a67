"""Words for what somebody is to somebody: "my wife", "моей жене". A relation goes by its English word in the store.

English and Russian. Another language is a column here, and its way of saying "X is my wife" in `stated`.
"""

from __future__ import annotations

import re
from functools import cache

from ricordo.text.analyzer import index_terms

# Each: English words, the first of them the relation's name; Russian words, in the nominative. "Single" ones have one
# holder at a time: a new wife ends the relation with the one before.
_SINGLE = (
    ("wife", ("жена", "супруга")),
    ("husband", ("муж", "супруг")),
    ("spouse", ()),
    ("girlfriend", ("девушка", "подруга жизни")),
    ("boyfriend", ("парень",)),
    ("fiancée|fiancee", ("невеста",)),
    ("fiancé|fiance", ("жених",)),
    ("partner", ()),
    ("mother|mom|mum|mama|mommy|mummy", ("мама", "мать", "мамочка")),
    ("father|dad|papa|daddy", ("папа", "отец", "батя")),
    ("mother-in-law", ("тёща", "свекровь")),
    ("father-in-law", ("тесть", "свёкор")),
    ("boss|manager|supervisor", ("начальник", "начальница", "шеф", "руководитель", "босс")),
    ("landlord", ()),
    ("landlady", ()),
    ("ex-wife", ("бывшая жена",)),
    ("ex-husband", ("бывший муж",)),
    ("best friend", ("лучший друг", "лучшая подруга")),
)
_SEVERAL = (
    ("son", ("сын",)),
    ("daughter", ("дочь", "дочка")),
    ("child|kid", ()),
    ("sister", ("сестра", "сестрёнка")),
    ("brother", ("брат",)),
    ("grandmother|grandma|granny|nana", ("бабушка",)),
    ("grandfather|grandpa|granddad", ("дедушка", "дед")),
    ("grandson", ("внук",)),
    ("granddaughter", ("внучка",)),
    ("uncle", ("дядя",)),
    ("aunt|auntie|aunty", ("тётя", "тётка")),
    ("cousin", ("двоюродный брат", "двоюродная сестра")),
    ("nephew", ("племянник",)),
    ("niece", ("племянница",)),
    ("sister-in-law", ()),
    ("brother-in-law", ()),
    ("son-in-law", ("зять",)),
    ("daughter-in-law", ("невестка",)),
    ("stepmother|stepmom", ("мачеха",)),
    ("stepfather|stepdad", ("отчим",)),
    ("friend", ("друг", "подруга")),
    ("colleague|coworker|co-worker|teammate", ("коллега",)),
    ("assistant", ("помощник", "помощница")),
    ("neighbor|neighbour", ("сосед", "соседка")),
    ("roommate|flatmate", ()),
    ("doctor", ("врач",)),
    ("dentist", ("стоматолог",)),
    ("therapist", ("психотерапевт",)),
    ("teacher", ("учитель", "учительница")),
    ("lawyer", ("адвокат",)),
    ("trainer|coach", ("тренер",)),
    ("dog", ("собака", "пёс")),
    ("cat", ("кошка", "кот")),
)

NOT_PEOPLE = frozenset(("dog", "cat"))
"""Whose names are not learnt from a sentence: a name that is learnt becomes a person."""

SINGLE = frozenset(words.partition("|")[0] for words, _ in _SINGLE)

# Agents write facts about whom they serve in the third person.
_POSSESSIVE_EN = r"my|our|(?:the\s+)?user['’]s"
# Every word of the two begins with one of these, or holds it: to look for them takes a fraction of the time.
_BEGINNINGS = ("my", "our", "user", "мо", "наш")
_POSSESSIVE_RU = (
    "мой|моя|моё|мое|мои|моего|моей|моему|моим|моём|моем|мою|моею|моих|моими|наш|наша|нашего|нашей|нашему|нашим|нашу"
)

# Oblique stems that the rules of declension do not give.
_IRREGULAR = {
    "мать": ("матери", "матерью"),
    "дочь": ("дочери", "дочерью"),
    "отец": ("отца", "отцу", "отцом", "отце"),
    "пёс": ("пса", "псу", "псом", "псе"),
    "свёкор": ("свёкра", "свёкру", "свёкром"),
}
_CASES_A = ("а", "ы", "и", "е", "у", "ой", "ою", "ей", "ею")
_CASES_YA = ("я", "и", "е", "ю", "ей", "ею", "ёй")
_CASES_HARD = ("", "а", "у", "ом", "ем", "е")
_CASES_SOFT = ("ь", "й", "я", "ю", "ем", "е", "и", "ью")
_CASES_ADJECTIVE = ("ый", "ий", "ая", "его", "ого", "ему", "ому", "им", "ым", "ем", "ом", "ую", "ей", "ой")


@cache
def words_of() -> dict[str, str]:
    """Every form of every relation word, folded, to the relation's name: "жене" to "wife"."""
    found: dict[str, str] = {}
    for english, russian in (*_SINGLE, *_SEVERAL):
        name, *others = english.split("|")
        for word in (name, *others, *(form for each in russian for form in _forms(each))):
            found.setdefault(folded(word), name)
    return found


def folded(text: str) -> str:
    """A relation as it is compared: lower case, single blanks, no ё."""
    return " ".join(text.lower().replace("ё", "е").split())


def _forms(russian: str) -> list[str]:
    *adjectives, noun = russian.split()
    nouns = [*_IRREGULAR.get(noun, ()), noun]
    for ending, cases in (("а", _CASES_A), ("я", _CASES_YA), ("ь", _CASES_SOFT), ("й", _CASES_SOFT)):
        if noun.endswith(ending):
            nouns += [noun[:-1] + case for case in cases]
            break
    else:
        nouns += [noun + case for case in _CASES_HARD]
    if not adjectives:
        return nouns
    return [f"{adjectives[0][:-2]}{case} {form}" for case in _CASES_ADJECTIVE for form in nouns]


def _alternatives(words: list[str]) -> str:
    return "|".join(re.escape(word).replace("е", "[её]").replace(r"\ ", r"\s+") for word in words)


@cache
def relation_pattern() -> str:
    """A regular expression of every form of every relation word, the longest first."""
    return _alternatives(sorted(words_of(), key=len, reverse=True))


@cache
def _phrase() -> re.Pattern[str]:
    kinds = rf"(?:(?:{_KINDS})\s+)?"
    mine = f"(?:{_POSSESSIVE_EN}|{_POSSESSIVE_RU})"
    return re.compile(rf"(?<![\w-]){mine}\s+{kinds}({relation_pattern()})(?![\w-])", re.IGNORECASE)


def relation_named(name: str) -> str | None:
    """The relation a whole text names, seen from whoever speaks: "my wife" and "моей жене" are "wife".

    >>> relation_named("моей жене"), relation_named("my wife's sister")
    ('wife', None)
    """
    found = _phrase().fullmatch(name.strip())
    return None if found is None else words_of()[folded(found.group(1))]


_KINDS = (
    "dear|lovely|beloved|wonderful|older|elder|younger|little|big|twin|new|"
    r"любим\w+|старш\w+|младш\w+|нов\w+"
)
_AFTER_MINE = re.compile(
    rf"(?<![\w-])(?:{_POSSESSIVE_EN}|{_POSSESSIVE_RU})\s+(?:(?:{_KINDS})\s+)?([\w-]+)", re.IGNORECASE
)


@cache
def _first_words() -> frozenset[str]:
    return frozenset(word.split()[0] for word in words_of())


def may_name_relation(text: str) -> bool:
    """Whether a text may speak of a relation of the speaker's: quick, and true a little too often."""
    lowered = text.lower()
    for (
        beginning
    ) in _BEGINNINGS:  # `any` over a generator takes twice as long, and nearly all that come here leave here
        if beginning in lowered:
            return any(folded(found.group(1)) in _first_words() for found in _AFTER_MINE.finditer(text))
    return False


def relations_in(text: str) -> frozenset[str]:
    """The relations of the speaker that a text speaks of. "My wife's sister" speaks of the wife alone."""
    if not may_name_relation(text):
        return frozenset()
    return frozenset(words_of()[folded(found.group(1))] for found in _phrase().finditer(text))


def stems_of(predicate: str) -> list[str]:
    """The words of a relation, one for each stem that an index may hold; none of a relation without a vocabulary."""
    forms = [word for word, name in words_of().items() if name == predicate]
    return list({" ".join(index_terms(form)): form for form in forms}.values())


def known_relation(word: str) -> str | None:
    """The relation of a bare word: "wife", "начальница"."""
    return words_of().get(folded(word))


def predicate_of(label: str) -> str:
    """A relation as a caller labels it, by its name in the store: "жена" is "wife"; an unknown one is kept folded."""
    label = folded(label)
    return known_relation(label) or relation_named(label) or label
