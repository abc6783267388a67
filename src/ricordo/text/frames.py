"""The beginning that two statements share, up to where their values differ: what it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ricordo.text.slot_words import (
    COPULAS,
    DEFINITE,
    FAVOURITE,
    INDEFINITE,
    SEVERAL,
    SHARED,
    STRICT,
    TYPED,
    USUAL,
    is_past_event,
    is_verb,
)
from ricordo.text.statement import ARTICLES, DASHES

# Values may share their first words: Ubuntu 22.04 and Ubuntu 24.04, New York and New Jersey.
_SHARED_VALUE_WORDS = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a frame asks for.

    Attributes:
        is_strict: one can have only one of it ("lives in").
        is_usual: one has one of it, mostly ("works at").
        is_typed: the kind of the value is named ("plays the position of").
        is_choice: a favourite or a kind of something, so that plain words are a value, too.
        has_slot: it names one thing and asks what it is ("the capital of France is").
        is_shared: that thing may be two ("the author of Emma is").
        is_indefinite: it is about one of many ("a cat is called").
        is_several: it is usual to have several of it.
        has_verb: the verb is part of it; otherwise two different things are said of one subject.
        is_event: it tells of something that happened.
        has_copula: it says what something is, with a word before that.
    """

    size: int
    is_strict: bool
    is_usual: bool
    is_typed: bool
    is_choice: bool
    has_slot: bool
    is_shared: bool
    is_indefinite: bool
    is_several: bool
    has_verb: bool
    is_event: bool
    has_copula: bool


@lru_cache(maxsize=8_192)
def frame_of(words: tuple[str, ...], tokens: tuple[str, ...]) -> Frame:
    """Read a frame. Cached: a new fact shares one with most of its neighbours.

    Args:
        words: folded, at least one.
        tokens: the same as written.
    """
    text = " ".join(words)
    readings = _readings(words, tokens)
    slot = next((head for reading in readings if (head := _slot(reading))), "")
    pairs = list(zip(("", *words), words, strict=False))
    return Frame(
        size=len(words),
        is_strict=any(STRICT.search(reading) for reading in readings),
        is_usual=any(USUAL.search(reading) for reading in readings),
        is_typed=TYPED.search(text) is not None,
        is_choice=FAVOURITE.search(text) is not None,
        has_slot=slot != "",
        is_shared=SHARED.search(slot) is not None,
        is_indefinite=words[0] in INDEFINITE,
        is_several=SEVERAL.search(slot or text) is not None,
        has_verb=any(is_verb(word, before) for before, word in pairs),
        is_event=any(is_past_event(word, before) for before, word in pairs),
        has_copula=not COPULAS.isdisjoint(words[1:]),
    )


def _readings(words: tuple[str, ...], tokens: tuple[str, ...]) -> list[str]:
    """The frame, and without what it ends in that may begin both values: an article, names, numbers."""
    found = [" ".join(words)]
    if words[-1] in ARTICLES:
        found.append(" ".join(words[:-1]))
    for count in _SHARED_VALUE_WORDS:
        may_be_value = all(token[0].isupper() or token[0].isdigit() for token in tokens[-count:])
        if len(words) - count >= 2 and may_be_value:
            found.append(" ".join(words[:-count]))
    return found


def _slot(frame: str) -> str:
    """What a frame asks for that is one thing and is named: "the capital" of `the capital of France is`, the "dog" of
    `my dog is`; "" where it asks for nothing of the kind.
    """
    *rest, last = frame.split(" ")
    is_definite = last in DASHES or (last in ("is", "are", "was") and DEFINITE.search(frame) is not None)
    if not is_definite or len(rest) < 2:
        return ""
    if "of" in rest[1:]:
        return " ".join(rest[: rest.index("of", 1)])
    # English names the thing last ("Anna's old friend"), Russian first ("друг Анны") or last ("мой друг").
    return " ".join(rest) if last in DASHES else rest[-1]
