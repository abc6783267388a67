"""Whether a new fact gives another value for the slot an older one fills. A rule, without a model.

Two statements are laid side by side: what they share at the beginning and the end is their frame, what differs is the
value. Only a frame that ends in something one can have but one of ("lives in", "the capital of ... is") lets the new
value replace the old; the lists are for English and Russian. A statement in another language is only ever the same
as another, or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ricordo.text import Statement, statement
from ricordo.text.frames import Frame, frame_of
from ricordo.text.slot_words import AGE, ALSO, COMPARED, COPULAS, MEASURE, NEGATIONS, PAST, PREPOSITIONS, UNSURE, YEAR
from ricordo.text.statement import ARTICLES, MAX_STATEMENT_CHARS
from ricordo.text.value_kinds import is_country, is_date

Verdict = Literal["same", "replaced", "conflict", "several"]
"""What an older fact is to a new one: the same statement, replaced by it, in conflict with it (another value for a slot
that mostly holds one), or one of several values that may all hold.
"""

_MOST_VALUE_WORDS = 8
_MOST_WORDS = 60
_QUALIFIERS = PREPOSITIONS - {"of"}


Kind = Literal["number", "date", "country", "name", "words"]
"""How a value looks: a number (an address, a code), a date, a country, another name, or plain words."""

_LOOKS: dict[Kind, str] = {"number": "number", "date": "date", "country": "name", "name": "name", "words": "words"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """What one of two statements says in the place where they differ."""

    words: tuple[str, ...]
    kind: Kind
    units: frozenset[str]

    @property
    def first(self) -> str:
        """Its first word that is no article."""
        return next((word for word in self.words if word not in ARTICLES), "")

    @property
    def is_qualified(self) -> bool:
        """Whether it says where, when or for whom it holds: another may then hold elsewhere."""
        return not _QUALIFIERS.isdisjoint(self.words[1:])

    def is_like(self, other: _Value) -> bool:
        """Whether both can be values of one slot by their looks; numbers only where they count the same."""
        return _LOOKS[self.kind] == _LOOKS[other.kind] and (self.kind != "number" or self.units == other.units)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aligned:
    """Two statements laid side by side: what they share before and after the values, and the values."""

    frame: Frame
    tail: tuple[str, ...]
    old: _Value
    new: _Value
    are_ages: bool


def compare(old: str, new: str) -> Verdict | None:
    """What an older fact is to a new one, or None where they have nothing to do with each other. Pure."""
    first, second = statement(old), statement(new)
    if first.line == second.line:
        return "same" if first.line and _is_whole(old, new) else None
    if first.words[:1] != second.words[:1] or max(len(first.words), len(second.words)) > _MOST_WORDS:
        return None
    before, now = _tone(old), _tone(new)
    if _is_reserved(before, now):
        return None
    aligned = _align(first, second)
    if aligned is None or not _are_two_values(aligned):
        return None
    return _weighed(aligned, is_denied=before.is_denied)


def _is_whole(old: str, new: str) -> bool:
    """Whether all of two texts was compared: of long ones only the beginning is."""
    return max(len(old), len(new)) <= MAX_STATEMENT_CHARS or old == new


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tone:
    """How a statement is said: not outright, as one among others, of the past, or as a denial."""

    is_unsure: bool
    is_beside: bool
    is_denied: bool


@lru_cache(maxsize=4_096)
def _tone(text: str) -> _Tone:
    said = statement(text)
    words = f" {' '.join(said.words)} "
    return _Tone(
        is_unsure=UNSURE.in_(said.words, words) or "may" in said.tokens,  # May is a month
        is_beside=ALSO.in_(said.words, words) or PAST.in_(said.words, words),
        is_denied=not NEGATIONS.isdisjoint(said.words) or "n't " in words,
    )


def _is_reserved(old: _Tone, new: _Tone) -> bool:
    """Whether either is not said outright, the new one not of now, or only one of them is a denial."""
    return old.is_unsure or new.is_unsure or new.is_beside or old.is_denied != new.is_denied


def _align(old: Statement, new: Statement) -> _Aligned | None:
    """Lay the statements side by side; None where too little is shared or one value is missing or long."""
    shorter = min(len(old.words), len(new.words))
    start = next((n for n in range(shorter) if old.words[n] != new.words[n]), shorter)
    end = next((n for n in range(shorter - start) if old.words[-1 - n] != new.words[-1 - n]), shorter - start)
    are_ages = all(AGE.match(" ".join(each.words[start : start + 3])) for each in (old, new))
    if are_ages:
        end = 0
    sizes = [len(each.words) - start - end for each in (old, new)]
    if start == 0 or not 0 < min(sizes) <= max(sizes) <= _MOST_VALUE_WORDS or (start + end < 2 and not are_ages):
        return None
    return _Aligned(
        frame=frame_of(old.words[:start], old.tokens[:start]),
        tail=old.words[len(old.words) - end :],
        old=_value(old, start, end),
        new=_value(new, start, end),
        are_ages=are_ages,
    )


def _value(said: Statement, start: int, end: int) -> _Value:
    tokens = said.tokens[start : len(said.tokens) - end]
    words = said.words[start : len(said.words) - end]
    return _Value(words=words, kind=_kind(words, tokens), units=frozenset(_units(tokens)))


def _kind(words: tuple[str, ...], tokens: tuple[str, ...]) -> Kind:
    if is_date(words):
        return "date"
    is_address = not {"@", "/", "_"}.isdisjoint(tokens[0])
    if is_address or _has_digit(tokens[:1]) or any(token[0].isdigit() for token in tokens):
        return "number"
    told = next((token for token in tokens if token.lower() not in ARTICLES), tokens[0])
    if not told[0].isupper():
        return "words"
    return "country" if is_country(words) else "name"


def _has_digit(words: tuple[str, ...]) -> bool:
    return any(char.isdigit() for word in words for char in word)


def _units(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """The plain words of a value: of a number they say what is counted."""
    return tuple(token for token in tokens if token.islower() and token.isalpha())


def _are_two_values(aligned: _Aligned) -> bool:
    """Whether what differs can be two values of one slot: not two subjects, and not one value said more exactly."""
    old, new = set(aligned.old.words), set(aligned.new.words)
    if old <= new or new <= old:
        return False
    if not COPULAS.isdisjoint(old | new) or any(word.endswith("'s") for word in old | new):
        return False  # the verb, or an owner, is inside: the subjects differ
    if aligned.old.first in PREPOSITIONS or aligned.new.first in PREPOSITIONS:
        return False  # another preposition, another relation
    if not COMPARED.isdisjoint(old | new):
        return False
    if (aligned.old.kind == "number") != (aligned.new.kind == "number") and not aligned.frame.is_typed:
        return False
    return not any(YEAR.fullmatch(word) for word in new) or _has_digit(aligned.old.words)


def _weighed(aligned: _Aligned, *, is_denied: bool) -> Verdict | None:
    """How strongly the frame asks for one value."""
    frame = aligned.frame
    if (len(aligned.tail) > 2 and not frame.is_strict) or not COPULAS.isdisjoint(aligned.tail):
        return None
    if is_denied:
        return "several" if frame.has_verb else None
    alike = aligned.are_ages or frame.is_typed or frame.is_choice or aligned.old.is_like(aligned.new)
    is_place_in_place = "country" in (aligned.old.kind, aligned.new.kind) and aligned.old.kind != aligned.new.kind
    if frame.is_strict and is_place_in_place and not frame.is_typed:
        return "several"
    if alike and (frame.is_strict or _is_measure(aligned)) and not frame.is_indefinite:
        is_open = frame.is_several or aligned.old.is_qualified or aligned.new.is_qualified
        return "conflict" if is_open else "replaced"
    if alike and frame.has_slot and not frame.is_several:
        is_telling = frame.is_choice or aligned.old.kind != "words"
        is_open = frame.is_shared or aligned.old.is_qualified or aligned.new.is_qualified
        return "replaced" if is_telling and not is_open else "conflict"
    if alike and not frame.has_slot and (frame.is_typed or frame.is_usual or _is_state(aligned)):
        return "conflict"
    return "several" if frame.has_verb else None


def _is_measure(aligned: _Aligned) -> bool:
    """An age, a weight, a height: it changes. What was run or slept is another each time."""
    if aligned.are_ages:
        return True
    frame = aligned.frame
    is_number = aligned.old.kind == aligned.new.kind == "number" and MEASURE.match(" ".join(aligned.tail)) is not None
    return is_number and frame.size <= 2 and frame.has_verb and not frame.is_event


def _is_state(aligned: _Aligned) -> bool:
    """`is famous for`: what is told with a copula and a word after it, of one thing as a rule."""
    frame = aligned.frame
    if frame.is_several or frame.is_event or not frame.has_copula:
        return False
    return aligned.new.kind in ("number", "date") or (aligned.new.kind in ("name", "country") and frame.size > 2)
