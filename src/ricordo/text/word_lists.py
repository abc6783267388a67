"""The word lists beside the names of people: what a person does or is, what is no name, ordinary words."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files


@cache
def words_of(name: str) -> frozenset[str]:
    """The words of a list, folded: "roles", "places", "things"."""
    lines = (files("ricordo.text") / "people" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word.replace("ё", "е") for line in lines if not line.startswith("#") for word in line.split())


# What an English form may be of: its ending, and what stands in the base instead.
_FORMS = (
    ("s", ("",)),
    ("es", ("",)),
    ("ies", ("y",)),
    ("ed", ("", "e")),
    ("ied", ("y",)),
    ("ing", ("", "e")),
    ("ly", ("",)),
    ("er", ("", "e")),
    ("ers", ("", "e")),
    ("est", ("", "e")),
    ("ness", ("",)),
    ("ier", ("y",)),
    ("iest", ("y",)),
    ("ily", ("y",)),
    ("iness", ("y",)),
    ("ings", ("", "e")),
    ("less", ("",)),
    ("able", ("", "e")),
    ("ful", ("",)),
    ("ally", ("al", "")),
    ("ation", ("e", "")),
    ("ations", ("e", "")),
)


def _bases(word: str, forms: tuple[tuple[str, tuple[str, ...]], ...]) -> list[str]:
    found = []
    for ending, others in forms:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 1:
            found += [stem + other for other in others]
            found += [stem[:-1]] if len(stem) > 3 and stem[-1] == stem[-2] else []
    return found


@lru_cache(maxsize=16_384)
def is_ordinary(word: str) -> bool:
    """Whether a folded word is an English one that is no name by itself. Of other languages none is known here."""
    return word in words_of("ordinary") or any(base in words_of("ordinary") for base in _bases(word, _FORMS))


_VERB_FORMS = tuple(each for each in _FORMS if each[0] in ("s", "es", "ies", "ed", "ied", "ing"))
_RUSSIAN_PAST = re.compile(r"л(?:а|и)?(?:с[ья])?\Z")


@lru_cache(maxsize=16_384)
def is_deed(word: str) -> bool:
    """Whether a folded word tells what hardly anybody does but people: "whistled", "нарисовала".

    >>> is_deed("whistled"), is_deed("whistle"), is_deed("wrote"), is_deed("crashed")
    (True, False, True, False)
    """
    if not word.isascii():
        stem = _RUSSIAN_PAST.sub("", word)
        return stem != word and stem in words_of("deeds")
    if any(base in words_of("deeds") for base in _bases(word, _VERB_FORMS)):
        return True
    return word in words_of("deeds_past")
