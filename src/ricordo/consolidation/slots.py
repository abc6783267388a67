"""Whether a new fact gives another value for the slot an older one fills. A rule, without a model.

Two statements are laid side by side: what they share at the beginning and the end is their frame, what differs is the
value. Only a frame that ends in something one can have but one of ("lives in", "the capital of ... is") lets the new
value replace the old; the lists are for English and Russian. A statement in another language is only ever the same
as another, or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ricordo.consolidation.slot_words import (
    AGE,
    ALSO,
    COPULAS,
    DEFINITE,
    FAVOURITE,
    MEASURE,
    NEGATIONS,
    PAST,
    PREPOSITIONS,
    SEVERAL,
    SHARED,
    STRICT,
    TYPED,
    UNSURE,
    USUAL,
    YEAR,
    is_past_event,
    is_verb,
)
from ricordo.words import Statement, statement
from ricordo.words.statement import ARTICLES, DASHES

Verdict = Literal["same", "replaced", "conflict", "several"]
"""What an older fact is to a new one: the same statement, replaced by it, in conflict with it (another value for a slot
that mostly holds one), or one of several values that may all hold.
"""

_MOST_VALUE_WORDS = 8
_MOST_WORDS = 60
# Values may share their first words: Ubuntu 22.04 and Ubuntu 24.04, New York and New Jersey.
_SHARED_VALUE_WORDS = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aligned:
    """Two statements laid side by side. `frame` and `tail` are what they share, before and after the values."""

    frame: tuple[str, ...]
    tail: tuple[str, ...]
    frame_tokens: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]
    old_kind: str
    new_kind: str

    @property
    def before(self) -> str:
        return " ".join(self.frame)


def compare(old: str, new: str) -> Verdict | None:
    """What an older fact is to a new one, or None where they have nothing to do with each other. Pure."""
    first, second = statement(old), statement(new)
    if first.line == second.line:
        return "same" if first.line else None
    if first.words[:1] != second.words[:1] or max(len(first.words), len(second.words)) > _MOST_WORDS:
        return None
    before, now = _tone(old), _tone(new)
    if _is_reserved(before, now):
        return None
    aligned = _align(first, second)
    if aligned is None or not _are_two_values(aligned):
        return None
    return _weighed(aligned, is_denied=before.is_denied)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tone:
    """How a statement is said: not outright, as one among others, of the past, or as a denial."""

    is_unsure: bool
    is_beside: bool
    is_denied: bool


@lru_cache(maxsize=4_096)
def _tone(text: str) -> _Tone:
    said = statement(text)
    return _Tone(
        is_unsure=UNSURE.in_(said.words) or "may" in said.tokens,  # May is a month
        is_beside=ALSO.in_(said.words) or PAST.in_(said.words),
        is_denied=any(word in NEGATIONS or word.endswith("n't") for word in said.words),
    )


def _is_reserved(old: _Tone, new: _Tone) -> bool:
    """Whether either is not said outright, the new one not of now, or only one of them is a denial."""
    return old.is_unsure or new.is_unsure or new.is_beside or old.is_denied != new.is_denied


def _align(old: Statement, new: Statement) -> _Aligned | None:
    """Lay the statements side by side; None where too little is shared or one value is empty."""
    shorter = min(len(old.words), len(new.words))
    start = next((n for n in range(shorter) if old.words[n] != new.words[n]), shorter)
    end = next((n for n in range(shorter - start) if old.words[-1 - n] != new.words[-1 - n]), shorter - start)
    values = [each.words[start : len(each.words) - end] for each in (old, new)]
    if start == 0 or not all(values) or (start + end < 2 and not _are_ages(old, new, start)):
        return None
    if _are_ages(old, new, start):
        values, end = [old.words[start:], new.words[start:]], 0
    tokens = [each.tokens[start : len(each.tokens) - end] for each in (old, new)]
    return _Aligned(
        frame=old.words[:start],
        tail=old.words[len(old.words) - end :],
        frame_tokens=old.tokens[:start],
        old=values[0],
        new=values[1],
        old_kind=_kind(tokens[0]),
        new_kind=_kind(tokens[1]),
    )


def _are_ages(old: Statement, new: Statement, start: int) -> bool:
    return all(AGE.match(" ".join(each.words[start:])) for each in (old, new))


def _kind(value: tuple[str, ...]) -> str:
    """The look of a value: a number, address or code; a name; or plain words."""
    if any(char.isdigit() or char in "@/_" for char in value[0]) or any(token[0].isdigit() for token in value):
        return "number"
    told = next((token for token in value if token.lower() not in ARTICLES), value[0])
    return "name" if told[0].isupper() else "words"


def _are_two_values(aligned: _Aligned) -> bool:
    """Whether what differs can be two values of one slot: not two subjects, and not one value said more exactly."""
    old, new = set(aligned.old), set(aligned.new)
    if max(len(aligned.old), len(aligned.new)) > _MOST_VALUE_WORDS:
        return False
    if not COPULAS.isdisjoint(old | new) or any(word.endswith("'s") for word in old | new):
        return False  # the verb, or an owner, is inside: the subjects differ
    if old <= new or new <= old:
        return False
    leading = [next((word for word in value if word not in ARTICLES), "") for value in (aligned.old, aligned.new)]
    if not PREPOSITIONS.isdisjoint(leading):
        return False  # another preposition, another relation
    if (aligned.old_kind == "number") != (aligned.new_kind == "number") and not TYPED.search(aligned.before):
        return False
    is_dated = any(YEAR.fullmatch(word) for word in aligned.new)
    return not is_dated or any(char.isdigit() for word in aligned.old for char in word)


def _weighed(aligned: _Aligned, *, is_denied: bool) -> Verdict | None:
    """How strongly the frame asks for one value."""
    frames = _frames(aligned)
    is_strict = any(STRICT.search(frame) for frame in frames)
    if (len(aligned.tail) > 2 and not is_strict) or not COPULAS.isdisjoint(aligned.tail):
        return None
    if is_denied:
        return "several" if _has_verb(aligned) else None
    is_typed = TYPED.search(aligned.before) is not None
    is_choice = FAVOURITE.search(aligned.before) is not None
    alike = is_typed or is_choice or aligned.old_kind == aligned.new_kind
    if alike and (is_strict or _is_measure(aligned)):
        return "replaced"
    slot = next((head for frame in frames if (head := _slot(frame))), "")
    if slot and not SEVERAL.search(slot):
        is_telling = is_choice or (aligned.old_kind != "words" and not SHARED.search(slot))
        return "replaced" if alike and is_telling else "conflict"
    if slot:
        return "several"
    if alike and (is_typed or any(USUAL.search(frame) for frame in frames) or _is_state(aligned)):
        return "conflict"
    return "several" if _has_verb(aligned) else None


def _frames(aligned: _Aligned) -> list[str]:
    """The frame, and without what it ends in that may begin both values: an article, names, numbers."""
    found = [aligned.before]
    if aligned.frame[-1] in ARTICLES:
        found.append(" ".join(aligned.frame[:-1]))
    for count in _SHARED_VALUE_WORDS:
        shared = aligned.frame_tokens[-count:]
        if len(aligned.frame) - count >= 2 and all(token[0].isupper() or token[0].isdigit() for token in shared):
            found.append(" ".join(aligned.frame[:-count]))
    return found


def _slot(frame: str) -> str:
    """What a frame asks for that is one thing and is named: the "capital" of `the capital of France is`, the "dog" of
    `my dog is`; "" where it asks for nothing of the kind.
    """
    *rest, last = frame.split(" ")
    is_definite = last in DASHES or (last in ("is", "are", "was") and DEFINITE.search(frame) is not None)
    if not is_definite or len(rest) < 2:
        return ""
    return " ".join(rest[: rest.index("of")]) if "of" in rest[1:] else _head(rest, is_dash=last in DASHES)


def _head(words: list[str], *, is_dash: bool) -> str:
    """English names the thing last ("Anna's old friend"), Russian first ("друг Анны") or last ("мой друг")."""
    return " ".join(words) if is_dash else words[-1]


def _is_measure(aligned: _Aligned) -> bool:
    """An age, a weight, a height: it changes. What was run or slept is another each time."""
    if all(AGE.match(" ".join(value)) for value in (aligned.old, aligned.new)):
        return True
    are_numbers = aligned.old_kind == aligned.new_kind == "number"
    return (
        are_numbers
        and len(aligned.frame) <= 2
        and MEASURE.match(" ".join(aligned.tail)) is not None
        and _has_verb(aligned)
        and not _is_event(aligned)
    )


def _is_state(aligned: _Aligned) -> bool:
    """`is famous for`: what is told with a copula and a word after it, of one thing as a rule."""
    if SEVERAL.search(aligned.before) or _is_event(aligned):
        return False
    has_copula = not COPULAS.isdisjoint(aligned.frame[1:])
    return has_copula and (aligned.new_kind == "number" or (aligned.new_kind == "name" and len(aligned.frame) > 2))


def _is_event(aligned: _Aligned) -> bool:
    return any(is_past_event(word, before) for before, word in _pairs(aligned.frame))


def _has_verb(aligned: _Aligned) -> bool:
    """Whether the verb is part of the frame: otherwise two different things are said of one subject."""
    return any(is_verb(word, before) for before, word in _pairs(aligned.frame))


def _pairs(words: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    """Each word with the one before it."""
    return zip(("", *words), words, strict=False)
