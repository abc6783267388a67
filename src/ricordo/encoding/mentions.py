"""Who and what a text names, among those that are known. Rules only, in any script; nobody new is made here.

Every run of up to four words is looked up among the folded names. Latin names must match as whole words, Russian ones
as a case of the name; a capitalised word may also be the name in another script or spelling. A name that is also a
function word ("Will", "May") counts only where it is capitalised. "My wife" is looked up among the owner's relations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ricordo.encoding.speech import is_owners_word
from ricordo.store.sqlite.linking import Holder, Text
from ricordo.words import function_words
from ricordo.words.fold import name_tokens
from ricordo.words.kinship import relations_in
from ricordo.words.names import likeness, look_up_keys, sound_keys

MAX_NAME_WORDS = 4
# Names stand at the beginning of long documents; a 10 MB text must not be cut into forty million runs.
MAX_CHARS = 20_000

_INFLECTED = re.compile(r"[а-яё]")


@dataclass(frozen=True, slots=True)
class Run:
    """Some words in a row that could be a name: what they are looked up by, and as they are written."""

    key: str
    written: str
    is_capital: bool
    follows: bool
    """Whether a word or a comma stands before it, so that its capital letter means something."""

    @property
    def sounds(self) -> tuple[str, ...]:
        return sound_keys(self.written) if self.is_capital else ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The run's key and, of a capitalised Russian word, those of what it may be a case of."""
        if self.is_capital and " " not in self.key and _INFLECTED.search(self.key):
            return tuple(dict.fromkeys((self.key, *look_up_keys(self.written))))
        return (self.key,)


Known = Mapping[str, Sequence[tuple[str, int]]]
"""Folded name, or sound, to the names as they are written and the entities that go by them."""


@lru_cache(maxsize=1_024)
def runs_in(text: str) -> tuple[Run, ...]:
    """Every run of one to four words, distinct: what could be a name."""
    tokens = name_tokens(text[:MAX_CHARS])
    found: dict[Run, None] = {}
    for start in range(len(tokens)):
        for size in range(1, min(MAX_NAME_WORDS, len(tokens) - start) + 1):
            part = tokens[start : start + size]
            found[
                Run(
                    key=" ".join(token.term for token in part),
                    written=" ".join(token.written for token in part),
                    is_capital=all(token.is_capital for token in part),
                    follows=part[0].follows,
                )
            ] = None
    return tuple(found)


def candidates(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """All keys and all sounds of several texts, for one look-up."""
    runs = [run for text in texts for run in runs_in(text)]
    keys = dict.fromkeys(key for run in runs for key in run.keys)
    sounds = dict.fromkeys(sound for run in runs for sound in run.sounds)
    return list(keys), list(sounds)


def mentions(texts: Sequence[Text], known: Known, *, holders: Sequence[Holder], owner: str) -> list[tuple[int, int]]:
    """Pairs (node key, entity key): which node names whom. Pure."""
    pairs: dict[tuple[int, int], None] = {}
    for text in texts:
        for run in runs_in(text.text):
            for entity in _meant(run, known, text.text):
                pairs[text.key, entity] = None
        if holders and is_owners_word(text.role, text.origin, text.speaker, owner=owner):
            for entity in _related(text, holders):
                pairs[text.key, entity] = None
    return list(pairs)


def _meant(run: Run, known: Known, text: str) -> list[int]:
    """Whom a run names: all that bear exactly this name, else the one it is a case or a spelling of."""
    likely: dict[str, set[int]] = {}
    for key in (*run.keys, *run.sounds):
        for alias, entity in known.get(key, ()):
            if like := _likeness(run, key, alias):
                likely.setdefault(like, set()).add(entity)
    if "same" in likely:
        return sorted(likely["same"]) if is_name_here(run.key, text) else []
    for like in ("form", "sound"):
        if like in likely:
            return sorted(likely[like]) if len(likely[like]) == 1 else []
    return []


def _likeness(run: Run, key: str, alias: str) -> str | None:
    if key == run.key and not _INFLECTED.search(key):
        return "same"  # as a whole: Latin keys are not stemmed, and CJK ones are pairs that a word does not show
    like = likeness(run.written, alias)
    is_bold = like == "sound" and not run.follows and run.written.isascii() == alias.isascii()
    return None if is_bold else like


def _related(text: Text, holders: Sequence[Holder]) -> list[int]:
    """Whom "my wife" and the like mean in a text, by who it was when it was said; of several brothers nobody."""
    found = []
    for predicate in relations_in(text.text[:MAX_CHARS]):
        at_the_time = {
            holder.entity
            for holder in holders
            if holder.predicate == predicate
            and (holder.start is None or holder.start <= text.at)
            and (holder.end is None or text.at < holder.end)
        }
        found += at_the_time if len(at_the_time) == 1 else []
    return found


def is_name_here(name: str, text: str) -> bool:
    """Whether a folded name can be one in this text: function words only where they are capitalised."""
    if name not in _ambiguous():
        return True
    return re.search(rf"(?<!^)(?<![.!?] )\b{re.escape(name.capitalize())}\b", text[:MAX_CHARS]) is not None


def _ambiguous() -> frozenset[str]:
    return function_words("en") | frozenset(("may", "april", "june", "august", "mark", "rose", "grace", "hope", "joy"))
