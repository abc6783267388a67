"""Names within a text, by whatever knows them: every run of up to four words is looked up among the folded names.

Latin names must match as whole words, Russian ones as a case of the name; a capitalised word may also be the name in
another script or spelling. A name that is also a function word ("Will", "May") counts only where it is capitalised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ricordo.text.analyzer import name_tokens
from ricordo.text.kinship import relation_named
from ricordo.text.names import likeness, look_up_keys, sound_keys
from ricordo.text.query_terms import function_words

MAX_NAME_WORDS = 4
# Names stand at the beginning of long documents; a 10 MB text must not be cut into forty million runs.
MAX_CHARS = 20_000

_INFLECTED = re.compile(r"[а-яё]")


class Run(NamedTuple):
    """Some words in a row that could be a name: what they are looked up by, and as they are written.

    `follows` is whether the run goes on in a sentence, so that its capital letter means something.
    """

    key: str
    written: str
    is_capital: bool
    follows: bool

    def look_up(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Its keys and sounds: its own, and of capitalised words those of what they may be a case or a spelling of."""
        if not self.is_capital:
            return (self.key,), ()
        if " " in self.key or not _INFLECTED.search(self.key):
            return (self.key,), sound_keys(self.written)
        return (self.key, *look_up_keys(self.written)), sound_keys(self.written)


class Bearer(NamedTuple):
    """Who goes by a name, as it is written. Links are to the `entity` that bears it, so that none need be altered when
    it is merged into another or parted from it again; who is meant is judged by whom it is one with now, the `whole`.
    """

    name: str
    entity: int
    whole: int


Known = Mapping[str, Sequence[Bearer]]
"""Folded name, or sound, to those who go by it."""


@lru_cache(maxsize=1_024)
def runs_in(text: str) -> tuple[Run, ...]:
    """Every run of one to four words, distinct: what could be a name."""
    tokens = name_tokens(text[:MAX_CHARS])
    found: list[Run] = []
    for start, first in enumerate(tokens):
        key, written, is_capital = first.term, first.written, first.is_capital
        found.append(Run(key, written, is_capital, first.follows))
        for token in tokens[start + 1 : start + MAX_NAME_WORDS]:
            key, written = f"{key} {token.term}", f"{written} {token.written}"
            is_capital = is_capital and token.is_capital
            found.append(Run(key, written, is_capital, first.follows))
    return tuple(dict.fromkeys(found))


def candidates(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """All keys and all sounds of several texts, for one look-up."""
    keys: dict[str, None] = {}
    sounds: dict[str, None] = {}
    for run in {run for text in texts for run in runs_in(text)}:
        its_keys, its_sounds = run.look_up()
        keys.update(dict.fromkeys(its_keys))
        sounds.update(dict.fromkeys(its_sounds))
    return list(keys), list(sounds)


def meant(run: Run, known: Known, text: str) -> list[int]:
    """Whom a run names: all that bear exactly this name, else the one it is a case or a spelling of."""
    if not run.is_capital and run.key not in known:  # most of them, by far
        return []
    if relation_named(run.written):  # whose wife is meant, and which, is not a matter of the letters
        return []
    likely: dict[str, set[Bearer]] = {}
    keys, sounds = run.look_up()
    for key in (*keys, *sounds):
        for bearer in known.get(key, ()):
            if like := _likeness(run, key, bearer.name):
                likely.setdefault(like, set()).add(bearer)
    if "same" in likely:
        return sorted({bearer.entity for bearer in likely["same"]}) if is_name_here(run.key, text) else []
    for like in ("form", "sound"):
        if like in likely:
            is_clear = len({bearer.whole for bearer in likely[like]}) == 1
            return sorted({bearer.entity for bearer in likely[like]}) if is_clear else []
    return []


def _likeness(run: Run, key: str, alias: str) -> str | None:
    if key == run.key and not _INFLECTED.search(key):
        return "same"  # as a whole: Latin keys are not stemmed, and CJK ones are pairs that a word does not show
    like = likeness(run.written, alias)
    is_bold = like == "sound" and not run.follows and run.written.isascii() == alias.isascii()
    return None if is_bold else like


def is_name_here(name: str, text: str) -> bool:
    """Whether a folded name can be one in this text: function words only where they are capitalised."""
    if name not in _ambiguous():
        return True
    return re.search(rf"(?<!^)(?<![.!?] )\b{re.escape(name.capitalize())}\b", text[:MAX_CHARS]) is not None


def _ambiguous() -> frozenset[str]:
    return function_words("en") | frozenset(("may", "april", "june", "august", "mark", "rose", "grace", "hope", "joy"))
