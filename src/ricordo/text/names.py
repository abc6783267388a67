"""Names as people write them: the same name in another script, another romanisation, or another case.

Nothing here decides that two people are one. `likeness` says how surely a written form is a known name; a looser
likeness is only asked for where a stricter one finds nobody.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from anyascii import anyascii

from ricordo.text.analyzer import fold_word, name_key, raw_words

Likeness = Literal["same", "form", "sound"]
"""The same letters; an inflected form of it; another spelling of it, perhaps in another script."""

_CYRILLIC = re.compile(r"[а-яё]")
_VOWELS = "аеёиоуыэюя"

# Endings of a Russian case, and what the nominative may end in instead; what stands before them stays. Closed classes:
# the declensions of first names, surnames and patronymics. "Alexandra" is not taken for a form of "Alexander" where
# she is known herself: the same letters always come first.
_DECLENSION: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("иями", ("ия",)),
    ("ией", ("ия",)),
    ("иею", ("ия",)),
    ("ию", ("ия", "ий")),
    ("ии", ("ия", "ий")),
    ("ием", ("ий",)),
    ("ия", ("ий",)),
    ("ьей", ("ья",)),
    ("ьёй", ("ья",)),
    ("ью", ("ья", "ь")),
    ("ье", ("ья",)),
    ("ьи", ("ья",)),
    ("ого", ("ий", "ый", "ой")),
    ("его", ("ий",)),
    ("ому", ("ий", "ый", "ой")),
    ("ему", ("ий",)),
    ("ой", ("а", "ая")),
    ("ою", ("а",)),
    ("ую", ("ая",)),
    ("ей", ("я", "а")),
    ("ею", ("я", "а")),
    ("ёй", ("я",)),
    ("ым", ("ий", "ый", "")),
    ("им", ("ий",)),
    ("ом", ("", "ий", "ый")),
    ("ем", ("ь", "й", "")),
    ("ы", ("а",)),
    ("и", ("а", "я", "ь")),
    ("у", ("а", "")),
    ("ю", ("я", "й", "ь")),
    ("е", ("а", "я", "", "й", "ь")),
    ("а", ("",)),
    ("я", ("й", "ь")),
)

# A vowel that flees: Павел, Павла. The consonants around it, in the nominative and in the other cases.
_FLEEING = {"павл": "павел", "льв": "лев", "петк": "петёк"}
# Likewise before the suffix of pets and diminutives: Пушок, Пушка; Орешек, Орешка; Огонёк, Огонька.
_FLEEING_SUFFIX = re.compile(r"(?<=[бвгджзклмнпрстфхцчшщ])ь?к\Z")
_OF_MEN = frozenset(("а", "у", "ом", "е", "и"))


def name_words(text: str) -> list[str]:
    """The words of a name, folded but not stemmed: "Сарой" stays "сарой", "José" becomes "jose"."""
    return [fold_word(word) for word in raw_words(text)]


def folded_name(name: str) -> str:
    """A name as it is compared with others letter by letter."""
    return " ".join(name_words(name))


@lru_cache(maxsize=16_384)
def nominatives(word: str) -> tuple[str, ...]:
    """What a folded Russian word could be a case of; itself first. Other scripts have only themselves here.

    >>> nominatives("сарой")
    ('сарой', 'сара', 'сарая')
    """
    if not _CYRILLIC.search(word):
        return (word,)
    found = [word]
    for ending, endings in _DECLENSION:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 2:
            bare = _FLEEING.get(stem)
            found += [stem + other for other in endings if other or stem[-1] not in _VOWELS + "ьй"]
            found += [bare] if bare else []
            if ending in _OF_MEN and (shorter := _FLEEING_SUFFIX.sub("", stem)) != stem:
                found += [shorter + "ок", shorter + "ек"]
    return tuple(dict.fromkeys(fold_word(form) for form in found))


def looks_nominative(word: str) -> bool:
    """Whether a folded word may well be a name's own form: a consonant, й, а, я at its end, or no Cyrillic."""
    return not _CYRILLIC.search(word) or not re.search(r"(?:[ыуюеи]|ой|ом|ем|ым)\Z", word)


def likeness(written: str, known: str) -> Likeness | None:
    """How a written name is like a known one; None where it is not."""
    mine, theirs = name_words(written), name_words(known)
    if mine == theirs:
        return "same"
    if len(mine) == len(theirs) and all(name in nominatives(word) for word, name in zip(mine, theirs, strict=True)):
        return "form"
    if any(_CYRILLIC.search(word) is None and not word.isascii() for word in mine) and name_key(written) == name_key(
        known
    ):
        return "form"
    sounds = sound_keys(written)
    return "sound" if sounds and same_name_key(known) in sounds else None


def look_up_keys(written: str) -> tuple[str, ...]:
    """The keys under which a known name may lie that somebody wrote like this: its own, and its nominative's."""
    words = name_words(written)
    forms = nominatives(words[0]) if len(words) == 1 else ()
    return tuple(dict.fromkeys(name_key(form) for form in (written, *forms) if name_key(form)))


MIN_SOUND_CHARS = 3
"""Two letters are too little to know a name by its sound."""


def sound_keys(written: str) -> tuple[str, ...]:
    """The sounds of a written name and of what it may be a case of; none where they are too short to tell."""
    words = name_words(written)
    forms = nominatives(words[0]) if len(words) == 1 else (written,)
    keys = dict.fromkeys(same_name_key(form) for form in forms)
    return tuple(key for key in keys if len(key) >= MIN_SOUND_CHARS)


@lru_cache(maxsize=16_384)
def same_name_key(name: str) -> str:
    """What a name sounds like, roughly, in Latin letters: equal for one name in several scripts and romanisations.

    For looking a name up where no exact one is known, never for deciding that two known people are one. Empty where
    the name has no letters. Scripts that leave vowels out (Hebrew, Arabic) meet only themselves.

    >>> same_name_key("Йонас") == same_name_key("Jonas"), same_name_key("Юлия") == same_name_key("Julia")
    (True, True)
    """
    return "".join(_sound(word) for word in name_words(name))


def _sound(word: str) -> str:
    if not word.isascii():
        word = anyascii(_GREEK.sub(_greek_pair, word)).lower()
    word = re.sub(r"[^a-z0-9]", "", word)
    for pattern, replacement in _RULES:
        word = pattern.sub(replacement, word)
    return word


_GREEK_PAIRS = {
    "μπ": "b",
    "ντ": "d",
    "γκ": "g",
    "ου": "u",
    "αυ": "av",
    "ευ": "ev",
    "τζ": "dzh",
    "γι": "y",
    "χ": "h",
    "υ": "i",
    "η": "i",
}
_GREEK = re.compile(r"μπ|ντ|γκ|ου|αυ|ευ|τζ|γι(?=[αεουω])|χ|υ|η")


def _greek_pair(found: re.Match[str]) -> str:
    return _GREEK_PAIRS[found.group()]


# In this order. Each line is a spelling that differs between romanisations of one name, with such a name.
_RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"tsch|tch", "ch"),  # Tschaikowski
        (r"sch", "sh"),  # Schmidt, Шмидт
        (r"dzh|dj", "j"),  # Джон
        (r"kh", "h"),  # Ханна
        (r"ph", "f"),  # Sophia
        (r"th", "t"),  # Martha
        (r"ck|q", "k"),  # Jack
        (r"c(?=[eiy])", "s"),  # Cecilia
        (r"c(?!h)", "k"),  # Victor
        (r"x", "ks"),  # Xenia, Alexey
        (r"tz", "ts"),  # Moritz
        (r"w", "v"),  # Walter
        (r"\Au(?=[aeio])", "v"),  # Уильям
        (r"(.)\1+", r"\1"),  # Anna
        (r"(?<=[aeiouy])h(?![aeiouy])", ""),  # Sarah, John
        (r"[yj](?![aeiou])", "i"),  # Sergey, Sergej
        (r"j", "y"),  # Jonas
        (r"(?<=[b-df-hj-np-tv-xz])yo", "e"),  # Fyodor, Pyotr
        (r"(?<=[b-df-hj-np-tv-xz])y", "i"),  # Tatyana
        (r"iy", "i"),  # Yuliya
        (r"\Aye", "e"),  # Yelena
        (r"(?<=[b-df-hj-np-tv-z])er\Z", "r"),  # Alexander, Peter
        (r"(.)\1+", r"\1"),  # Dmitriy
    )
)
