"""Tell the names of people and pets from other capitalised words, and give them in the nominative. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher

from ricordo.text.languages import fold_letters, is_ordinary, languages_of
from ricordo.text.languages.schema import Endings
from ricordo.text.names import folded_relation
from ricordo.text.relation_forms import CAPITALISED, RelationForms, words_everywhere

_ENDS_OF_NAMES = ("s", "er")
"""Endings of many names ("Anders", "Asher") that are also endings of words."""


def name_in(
    written: str, forms: RelationForms, *, is_loose: bool = False, is_first: bool = False, is_pet: bool = False
) -> str | None:
    """Return the leading words that may be a name, without titles; None if there are none.

    Args:
        is_loose: whether ordinary words and places may be names, as in "she is called Hope".
        is_first: whether words before the name may have been taken for it: "So Marcus".
        is_pet: whether ordinary words may be names: "my cat Biscuit".
    """
    words = [word.rstrip(".") for word in written.split()]
    while is_first and len(words) > 1 and words[0].lower() not in forms.titles:
        if not (words[0].lower() in forms.silent or folded_relation(words[0]) in forms.kin):
            break
        words = words[1:]
    titles = next((place for place, word in enumerate(words) if word.lower() not in forms.titles), len(words))
    kept: list[str] = []
    for word in words[titles:]:
        is_shouted = len(word) > 1 and word.isupper()
        if len(word) < 2 or is_shouted or fold_letters(word.lower()) in forms.silent:
            if kept and is_shouted:  # "my cousin Vinny DVD"
                return None
            break
        if kept and forms.has_capital_nouns and forms.is_no_name(word):  # "meine Freundin Lima Reise"
            return None
        if not (kept or is_loose or titles or _may_begin_name(word, forms, is_pet=is_pet)):
            break
        kept.append(word[0].upper() + word[1:])
    return " ".join(kept) or None


_WORD = re.compile(r"\w[\w’'-]*")
_RUN = re.compile(rf"{CAPITALISED}(?:\s+{CAPITALISED}){{0,2}}")


def names_instead(old: str, new: str, former: Collection[str]) -> tuple[str, ...]:
    """Return the names that a new wording has in the place of some names of the old one. Ordinary words are no names.

    >>> names_instead("Our contact is Sabine Kroll", "Our contact is Jonas Kroll now", ["Sabine Kroll"])
    ('Jonas Kroll',)
    """
    put = set(_words_instead(old, new, {word for name in former for word in _WORD.findall(name)}))
    runs = (found.group() for found in _RUN.finditer(new) if found.start())
    return tuple(
        dict.fromkeys(run for run in runs if not put.isdisjoint(run.split()) and not _is_ordinary_run(run, new))
    )


def _words_instead(old: str, new: str, former: Collection[str]) -> Iterator[str]:
    """Yield the words in the place of some words of an old wording."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    for change, start, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if change == "replace" and not set(before[start:end]).isdisjoint(former):
            yield from after[first:last]


def _is_ordinary_run(run: str, text: str) -> bool:
    return all(is_ordinary(word.lower(), each) for word in run.split() for each in languages_of(text))


def title_in(written: str, forms: RelationForms) -> str:
    """Return the titles that stand right before a name: "Dr." of "Dr. Bell"; "" if there are none."""
    words = written.split()
    count = next((place for place, word in enumerate(words) if word.rstrip(".").lower() not in forms.titles), 0)
    return " ".join(words[:count])


def _may_begin_name(word: str, forms: RelationForms, *, is_pet: bool) -> bool:
    lower = fold_letters(word.lower())
    everywhere = words_everywhere()
    if lower in everywhere.also_names:
        return True
    if forms.is_no_name(lower) or lower in forms.kin:
        return False
    if is_pet or lower in everywhere.ordinary:
        return is_pet
    return lower.endswith(_ENDS_OF_NAMES) or not any(is_ordinary(lower, each) for each in forms.languages)


def in_nominative(name: str, forms: RelationForms, *, is_woman: bool, is_oblique: bool, is_called: bool) -> str | None:
    """Return the nominative of a name in an inflected language; None if it is unclear, or does not fit the relation.

    Args:
        is_oblique: whether the name stands beside a relation in another case: "моему брату Денису".
        is_called: whether it stands behind a verb that may take the instrumental: "зовут Сарой".
    """
    if is_called:
        return _after_calling(name, forms, is_woman=is_woman)
    if is_oblique:
        people = (each.people for each in forms.languages)
        cases = tuple(row for each in people for row in (each.feminine_cases if is_woman else each.masculine_cases))
        turned = [_turned(word, cases) for word in name.split()]
        return " ".join(word for word in turned if word) if all(turned) else None
    first = name.split()[0].lower()
    is_agreeing = first.endswith(("а", "я", "ь")) if is_woman else not first.endswith(("у", "ю", "ы", "и", "е"))
    return name if is_agreeing else None


def _after_calling(name: str, forms: RelationForms, *, is_woman: bool) -> str | None:
    """Return a name that may be in the instrumental in the nominative; None for a form that several names share."""
    done = []
    for word in name.split():
        for each in (language.names for language in forms.languages):
            if not is_woman and each.masculine_unclear and word.endswith(each.masculine_unclear):
                return None
            cases = each.feminine_instrumental if is_woman else each.masculine_instrumental
            done.append(_turned(word, cases) or word)
    return " ".join(done)


def _turned(word: str, cases: Endings) -> str | None:
    return next((re.sub(ending, others[0], word) for ending, others in cases if re.search(ending, word)), None)
