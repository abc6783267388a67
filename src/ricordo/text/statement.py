"""Normalise a sentence to a statement, and decide whether a new fact replaces an older one. Pure.

Stores sort facts by the line of their statement. Facts with the same beginning ("anna lives in ...") are neighbours, so
one index look-up finds the few facts that a new one could replace.

Two statements are aligned. Their common beginning and end are the frame, and the parts that differ are the values. The
new value replaces the old one only if the frame asks for something that has one value at a time ("lives in", "the
capital of ... is"). The words for this are in the language files. In a language without them, statements are only
compared for equality.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from ricordo.text.languages import (
    LanguageSet,
    Lexicon,
    cached,
    endings_of,
    fold_letters,
    languages_of,
    list_of,
    pattern_of,
    words_of,
)
from ricordo.text.languages.schema import Language, Statements, Words
from ricordo.text.sentences import in_first_person, with_apostrophes

MAX_STATEMENT_CHARS = 400
"""A longer text tells a story rather than one fact, so only its beginning is read."""

# Matches words with their joining characters, a minus before a number, dashes in place of a verb, and symbols with a
# meaning: "C++" is not "C", and emoji differ. Punctuation that only separates is skipped.
_DIVIDES = re.escape(".,!;:'\"«»“”„()[]…—–-。、「」『』・")
_TOKEN = re.compile(
    r"(?:(?<!\S)-(?=\d))?[^\W_]+(?:[-./:@'_][^\W_]+)*|[—–]|(?<=\s)-(?=\s)|:(?=\s)"
    rf"|[^\w\s{_DIVIDES}]|_"
)
_APOSTROPHE = re.compile("[’ʼ]")
DASHES = frozenset(("—", "–", "-", ":"))
_MOST_VALUE_WORDS_FIRST = 5


class _Reading(Lexicon):
    """The words by which sentences in some languages are normalised."""

    fillers = words_of(lambda each: each.statements.fillers)
    silent = words_of(lambda each: (*each.statements.articles, *DASHES))
    contractions = endings_of(lambda each: each.persons.contractions)
    not_a_value = words_of(lambda each: each.statements.not_a_value)

    @cached_property
    def spellings(self) -> dict[str, str]:
        return self.languages.mapping(lambda each: each.statements.spellings)

    @cached_property
    def value_first(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(re.compile, self.languages.in_order(lambda each: each.statements.value_first)))


_reading = cached()(_Reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The tokens of a sentence as written, and `words`, the same tokens normalised. Both have the same length.

    Statements that differ only in articles, punctuation or letter case have the same line.
    """

    tokens: tuple[str, ...]
    words: tuple[str, ...]
    line: str


@cached(maxsize=4_096)
def statement(text: str) -> Statement:
    """Normalise a sentence: drop fillers, put the holder of a role last, and use the first person for the user.

    >>> statement("Lena Holm is now the CEO of Acme.").line, statement("The user lives in Rome").line
    ('ceo of acme is lena holm', 'i live in rome')
    """
    text = in_first_person(text[:MAX_STATEMENT_CHARS])
    languages = languages_of(text)
    reading = _reading(languages)
    begun = with_apostrophes(_APOSTROPHE.sub("'", unicodedata.normalize("NFKC", text)), languages)
    for short, (whole, *_) in reading.contractions:
        begun = re.sub(rf"\b{short}\b", whole, begun, flags=re.IGNORECASE)
    found = [(token, _folded(token, reading.spellings)) for token in _TOKEN.findall(begun)]
    tokens = [token for token, word in found if word not in reading.fillers]
    words = [word for _, word in found if word not in reading.fillers]
    if start := _value_first(words, reading):
        verb, rest = tokens[start], tokens[start + 1 :]
        tokens = [*rest, verb, *tokens[:start]]
        words = [_folded(token, reading.spellings) for token in tokens]
    line = " ".join([word for word in words if word not in reading.silent])
    return Statement(tokens=tuple(tokens), words=tuple(words), line=line)


def _folded(token: str, spellings: dict[str, str]) -> str:
    """Normalise letter case and spelling variants. Other accents are kept, because they distinguish words."""
    word = fold_letters(token.casefold())
    return spellings.get(word, word)


def _value_first(words: list[str], reading: _Reading) -> int:
    """Return the index of the verb in "<value> is the <role> of <something>", or 0."""
    text = " ".join(words)
    for pattern in reading.value_first:
        for found in pattern.finditer(text):
            place = text[: found.start()].count(" ")
            is_whole_word = found.start() > 0 and text[found.start() - 1] == " "
            if is_whole_word and place <= _MOST_VALUE_WORDS_FIRST and reading.not_a_value.isdisjoint(words[:place]):
                return place
    return 0


def statement_line(text: str) -> str:
    """Return the line by which a text is sorted."""
    return statement(text).line


# ---- the words of a slot


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signs:
    """Words and phrases (or beginnings of words), any of which gives a statement a certain property."""

    words: frozenset[str]
    phrases: tuple[str, ...]

    def in_(self, words: Sequence[str], text: str) -> bool:
        """Return whether normalised words contain a sign; `text` is the words with a blank before and after each."""
        return not self.words.isdisjoint(words) or any(phrase in text for phrase in self.phrases)


_ONE_WORD = r"\b(?:{})\b"


class _SlotWords(Lexicon):
    """The words and patterns that recognise slots and values; see `Statements` in the language schema."""

    unsure_as_written = words_of(lambda each: each.statements.unsure_as_written)
    negations = words_of(lambda each: each.statements.negations)
    negated_endings = list_of(lambda each: each.statements.negated_endings)
    copulas = words_of(lambda each: (*each.statements.copulas, *DASHES))
    definite_copulas = words_of(lambda each: each.statements.definite_copulas)
    articles = words_of(lambda each: each.statements.articles)
    determiners = words_of(lambda each: each.statements.determiners)
    prepositions = words_of(lambda each: each.statements.prepositions)
    of = words_of(lambda each: each.statements.of)
    possessive_endings = list_of(lambda each: each.statements.possessive_endings)
    typed = pattern_of(lambda each: each.statements.typed)
    definite = pattern_of(lambda each: each.statements.definite)
    favourite = pattern_of(lambda each: each.statements.favourite, _ONE_WORD)
    several = pattern_of(lambda each: each.statements.several, _ONE_WORD)
    shared = pattern_of(lambda each: each.statements.shared, _ONE_WORD)
    indefinite = words_of(lambda each: each.statements.indefinite)
    measure = pattern_of(lambda each: each.statements.measures, r"^(?:{})\b")
    age = pattern_of(lambda each: each.statements.ages, r"^\d+ (?:{})$")
    compared = words_of(lambda each: each.statements.compared)
    plain_verbs = words_of(lambda each: each.statements.plain_verbs)
    verb = pattern_of(lambda each: each.statements.verb)
    past_verbs = words_of(lambda each: each.statements.past_verbs)
    past_verb = pattern_of(lambda each: each.statements.past_verb)
    participle = pattern_of(lambda each: each.statements.participle)
    dates = words_of(lambda each: each.statements.dates)
    date_beginnings = list_of(lambda each: each.statements.date_beginnings)
    countries = words_of(lambda each: each.statements.countries)
    country_beginnings = list_of(lambda each: each.statements.country_beginnings)

    @cached_property
    def also(self) -> _Signs:
        return self._signs(lambda each: each.also, lambda each: each.also_phrases)

    @cached_property
    def unsure(self) -> _Signs:
        return self._signs(lambda each: each.unsure, lambda each: each.unsure_phrases)

    @cached_property
    def past(self) -> _Signs:
        return self._signs(lambda each: each.past, lambda each: each.past_phrases)

    def _signs(self, words: Callable[[Statements], Words], phrases: Callable[[Statements], Words]) -> _Signs:
        return _Signs(
            words=self.languages.words(lambda each: words(each.statements)),
            phrases=self.languages.in_order(lambda each: phrases(each.statements)),
        )

    @cached_property
    def speakers(self) -> frozenset[str]:
        said = self.languages.words(lambda each: (*each.sentences.first_person, *each.sentences.self_words))
        return said - self.determiners

    @cached_property
    def auxiliaries(self) -> frozenset[str]:
        return self.copulas | self.languages.words(lambda each: each.statements.auxiliaries)

    @cached_property
    def strict(self) -> re.Pattern[str]:
        return self._before_value(lambda each: each.statements.strict)

    @cached_property
    def usual(self) -> re.Pattern[str]:
        return self._before_value(lambda each: each.statements.usual)

    def _before_value(self, of: Callable[[Language], Iterable[str]]) -> re.Pattern[str]:
        heads = "|".join(self.languages.in_order(lambda each: each.statements.place_heads))
        return self.languages.pattern(of, rf"(?:^| )(?:{{}})(?:{heads})?$")

    def is_past_event(self, word: str, before: str) -> bool:
        """Return whether a word describes an event in the past; "was founded" describes a state."""
        if word in self.past_verbs or self.past_verb.match(word):
            return True
        return before not in self.auxiliaries and self.participle.match(word) is not None

    def is_verb(self, word: str, before: str) -> bool:
        """Return whether a word is likely to be the verb of its sentence: not "parents" in "my parents"."""
        if word in self.copulas or word in self.plain_verbs or self.is_past_event(word, before):
            return True
        if not before or before in self.determiners or before.endswith(self.possessive_endings):
            return False
        return self.verb.match(word) is not None

    def may_begin(self, word: str) -> bool:
        """Return whether a word may be the verb of a sentence without a subject: "Lives in Rome"."""
        return word in self.plain_verbs or self.is_past_event(word, "") or self.verb.match(word) is not None

    def is_date(self, words: Sequence[str]) -> bool:
        """Return whether normalised words are a day, a month or a season, with or without numbers."""
        is_named = any(word in self.dates or word.startswith(self.date_beginnings) for word in words)
        return is_named and (len(words) == 1 or _has_digit(words))

    def is_country(self, words: Sequence[str]) -> bool:
        """Return whether normalised words name a country or a region: "Italy" does not contradict "Rome"."""
        return any(word in self.countries or word.startswith(self.country_beginnings) for word in words)


_slot_words = cached()(_SlotWords)

_SUBJECT_WORDS = 6


def subject_of(text: str) -> tuple[str, ...] | None:
    """Return the normalised words before the verb of a statement; empty if the speaker is the subject, even unnamed.

    None if none of the first words is recognised as a verb.

    >>> subject_of("The user's sister works in Rome"), subject_of("The user works in Rome"), subject_of("Car: Volvo")
    (('my', 'sister'), (), ('car',))
    """
    words = statement(text).words[: _SUBJECT_WORDS + 1]
    known = _slot_words(languages_of(text))
    if not known.speakers.isdisjoint(words[:2]):
        return ()
    if not known.prepositions.isdisjoint(words[:1]):
        return None
    is_verb = [word in DASHES or known.is_verb(word, before) for before, word in pairwise(("", *words))]
    if words and not any(is_verb[:2]) and known.may_begin(words[0]):
        return ()  # "Lives in Rome"
    return words[: is_verb.index(True)] if True in is_verb else None


# ---- frames

# Two values may have the same first words: Ubuntu 22.04 and Ubuntu 24.04, New York and New Jersey.
_SHARED_VALUE_WORDS = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The common beginning of two statements, and the kind of value that it asks for.

    Attributes:
        is_strict: only one value is possible ("lives in").
        is_usual: one value is usual ("works at").
        is_typed: the frame names the kind of the value ("plays the position of").
        is_choice: the value is a favourite or a kind of something, so it may be an ordinary word.
        has_slot: the frame asks what one thing is ("the capital of France is").
        is_shared: several holders are possible ("the author of Emma is").
        is_indefinite: the frame is about one of many ("a cat is called").
        is_several: several values are usual.
        has_verb: the frame includes the verb; otherwise the statements say two different things about one subject.
        is_event: the frame describes an event in the past.
        has_copula: the frame has a copula after its first word ("Berlin is famous for").
        has_activity: several words say what somebody does ("I am going to the dentist on").
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
    has_activity: bool


@cached(maxsize=8_192)
def frame_of(words: tuple[str, ...], tokens: tuple[str, ...], languages: LanguageSet) -> Frame:
    """Read a frame. Cached, because a new fact has the same frame as most of its neighbours.

    Args:
        words: normalised, at least one.
        tokens: the same words as written.
    """
    known = _slot_words(languages)
    text = " ".join(words)
    readings = _readings(words, tokens, known)
    slot = next((head for reading in readings if (head := _slot(reading, known))), "")
    pairs = list(zip(("", *words), words, strict=False))
    return Frame(
        size=len(words),
        is_strict=any(known.strict.search(reading) for reading in readings),
        is_usual=any(known.usual.search(reading) for reading in readings),
        is_typed=known.typed.search(text) is not None,
        is_choice=known.favourite.search(text) is not None,
        has_slot=slot != "",
        is_shared=known.shared.search(slot) is not None,
        is_indefinite=words[0] in known.indefinite,
        is_several=known.several.search(slot or text) is not None,
        has_verb=any(known.is_verb(word, before) for before, word in pairs),
        is_event=any(known.is_past_event(word, before) for before, word in pairs),
        has_copula=not known.copulas.isdisjoint(words[1:]),
        has_activity=_words_after_copula(words, known) > 1,
    )


def _words_after_copula(words: Sequence[str], known: _SlotWords) -> int:
    """Return the number of words after the last copula that are neither articles nor prepositions."""
    last = max((place for place, word in enumerate(words) if word in known.copulas), default=len(words))
    return sum(word not in known.articles | known.prepositions for word in words[last + 1 :])


def _readings(words: tuple[str, ...], tokens: tuple[str, ...], known: _SlotWords) -> list[str]:
    """Return the frame, and its versions without final articles, names and numbers: both values may begin with them."""
    found = [" ".join(words)]
    if words[-1] in known.articles:
        found.append(" ".join(words[:-1]))
    for count in _SHARED_VALUE_WORDS:
        may_be_value = all(token[0].isupper() or token[0].isdigit() for token in tokens[-count:])
        if len(words) - count >= 2 and may_be_value:
            found.append(" ".join(words[:-count]))
    return found


def _slot(frame: str, known: _SlotWords) -> str:
    """Return the one thing that a frame asks for: "the capital" for `the capital of France is`, "dog" for `my dog is`;
    "" if there is none.
    """
    *rest, last = frame.split(" ")
    is_definite = last in DASHES or (last in known.definite_copulas and known.definite.search(frame) is not None)
    if not is_definite or len(rest) < 2:
        return ""
    if place := next((place for place, word in enumerate(rest) if place and word in known.of), 0):
        return " ".join(rest[:place])
    # Before a verb, the thing comes last ("Anna's old friend"); before a dash, first ("друг Анны") or last.
    return " ".join(rest) if last in DASHES else rest[-1]


# ---- another value for a slot

Verdict = Literal["same", "replaced", "conflict", "several"]
"""How a new fact affects an older one: the facts are the same, the older one is replaced, both are in conflict (another
value for a slot that usually has one), or both are among several values that can all be true.
"""

_MOST_VALUE_WORDS = 8
_MOST_WORDS = 60
_YEAR = re.compile(r"(?:19|20)\d\d")


Kind = Literal["number", "date", "country", "name", "words"]
"""The kind of a value: a number (an address, a code), a date, a country, another name, or ordinary words."""

_LOOKS: dict[Kind, str] = {"number": "number", "date": "date", "country": "name", "name": "name", "words": "words"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """The part in which one of two statements differs from the other."""

    words: tuple[str, ...]
    kind: Kind
    units: frozenset[str]
    known: _SlotWords

    @property
    def first(self) -> str:
        """The first word that is not an article."""
        return next((word for word in self.words if word not in self.known.articles), "")

    @property
    def is_qualified(self) -> bool:
        """Return whether the value has a condition of place, time or person, so that others may hold elsewhere."""
        return not (self.known.prepositions - self.known.of).isdisjoint(self.words[1:])

    def is_like(self, other: _Value) -> bool:
        """Return whether the kinds of both values fit one slot. Numbers fit only if they have the same unit."""
        return _LOOKS[self.kind] == _LOOKS[other.kind] and (self.kind != "number" or self.units == other.units)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aligned:
    """Two aligned statements: the common frame and tail, and the two values between them."""

    known: _SlotWords
    frame: Frame
    tail: tuple[str, ...]
    old: _Value
    new: _Value
    are_ages: bool

    @property
    def ends_in_several(self) -> bool:
        """Return whether a single word after the value asks for several values: "ich bin gegen Katzen allergisch"."""
        return len(self.tail) == 1 and self.known.several.search(self.tail[0]) is not None

    @property
    def is_several(self) -> bool:
        """Return whether several values are usual."""
        return self.frame.is_several or self.ends_in_several


def compare(old: str, new: str) -> Verdict | None:
    """Return how a new fact relates to an older one, or None if they are unrelated. Pure."""
    first, second = statement(old), statement(new)
    if first.line == second.line:
        return "same" if first.line and _is_whole(old, new) else None
    if first.words[:1] != second.words[:1] or max(len(first.words), len(second.words)) > _MOST_WORDS:
        return None
    if is_reserved(old, new):
        return None
    aligned = _align(first, second, languages_of(old).union(languages_of(new)))
    if aligned is None or not _are_two_values(aligned):
        return None
    return _weighed(aligned, is_denied=_tone(old).is_denied)


def holds_several(old: str, new: str) -> bool:
    """Return whether two statements name values of what usually has several: "likes tea", "likes coffee"."""
    first, second = statement(old), statement(new)
    aligned = _align(first, second, languages_of(old).union(languages_of(new)))
    if aligned is None:
        return False
    # The last word of the frame asks for the value: in "my daughter attends" it is "attends", and in "I am allergic to"
    # it is "allergic".
    known = aligned.known
    silent = known.articles | known.prepositions
    words = [word for word in first.words[: aligned.frame.size] if word not in silent]
    asking = words[-2:] if words[-1:] and words[-1] in known.copulas else words[-1:]
    return aligned.ends_in_several or known.several.search(" ".join(asking)) is not None


def _is_whole(old: str, new: str) -> bool:
    """Return whether two texts were compared completely. Only the beginning of long texts is."""
    return max(len(old), len(new)) <= MAX_STATEMENT_CHARS or old == new


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tone:
    """The reservations of a statement: uncertain, in the past or one among others, or negated."""

    is_unsure: bool
    is_beside: bool
    is_denied: bool


@cached(maxsize=4_096)
def _tone(text: str) -> _Tone:
    said, known = statement(text), _slot_words(languages_of(text))
    words = f" {' '.join(said.words)} "
    return _Tone(
        is_unsure=known.unsure.in_(said.words, words) or not known.unsure_as_written.isdisjoint(said.tokens),
        is_beside=known.also.in_(said.words, words) or known.past.in_(said.words, words),
        is_denied=not known.negations.isdisjoint(said.words)
        or any(f"{end} " in words for end in known.negated_endings),
    )


def is_reserved(old: str, new: str) -> bool:
    """Return whether one of two statements is uncertain, the new one is not current, or only one of them is negated."""
    before, now = _tone(old), _tone(new)
    return before.is_unsure or now.is_unsure or now.is_beside or before.is_denied != now.is_denied


def _align(old: Statement, new: Statement, languages: LanguageSet) -> _Aligned | None:
    """Align two statements. Return None if too little is shared, or a value is missing or too long."""
    known = _slot_words(languages)
    shorter = min(len(old.words), len(new.words))
    start = next((n for n in range(shorter) if old.words[n] != new.words[n]), shorter)
    end = next((n for n in range(shorter - start) if old.words[-1 - n] != new.words[-1 - n]), shorter - start)
    are_ages = all(known.age.match(" ".join(each.words[start : start + 3])) for each in (old, new))
    if are_ages:
        end = 0
    sizes = [len(each.words) - start - end for each in (old, new)]
    if start == 0 or not 0 < min(sizes) <= max(sizes) <= _MOST_VALUE_WORDS or (start + end < 2 and not are_ages):
        return None
    return _Aligned(
        known=known,
        frame=frame_of(old.words[:start], old.tokens[:start], languages),
        tail=old.words[len(old.words) - end :],
        old=_value(old, start, end, known),
        new=_value(new, start, end, known),
        are_ages=are_ages,
    )


def _value(said: Statement, start: int, end: int, known: _SlotWords) -> _Value:
    tokens = said.tokens[start : len(said.tokens) - end]
    words = said.words[start : len(said.words) - end]
    return _Value(words=words, kind=_kind(words, tokens, known), units=frozenset(_units(tokens)), known=known)


def _kind(words: tuple[str, ...], tokens: tuple[str, ...], known: _SlotWords) -> Kind:
    if known.is_date(words):
        return "date"
    is_address = not {"@", "/", "_"}.isdisjoint(tokens[0])
    if is_address or _has_digit(tokens[:1]) or any(token[0].isdigit() for token in tokens):
        return "number"
    first = next((token for token in tokens if token.lower() not in known.articles), tokens[0])
    if not first[0].isupper():
        return "words"
    return "country" if known.is_country(words) else "name"


def _has_digit(words: Iterable[str]) -> bool:
    return any(char.isdigit() for word in words for char in word)


def _units(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ordinary words of a value. For a number, they are its unit."""
    return tuple(token for token in tokens if token.islower() and token.isalpha())


def _are_two_values(aligned: _Aligned) -> bool:
    """Return whether the differing parts are values of one slot: neither two subjects nor one value made more exact."""
    old, new, known = set(aligned.old.words), set(aligned.new.words), aligned.known
    if old <= new or new <= old:
        return False
    if not known.copulas.isdisjoint(old | new) or any(word.endswith(known.possessive_endings) for word in old | new):
        return False  # the difference includes the verb or an owner, so the subjects differ
    if aligned.old.first in known.prepositions or aligned.new.first in known.prepositions:
        return False  # different prepositions express different relations
    if not known.compared.isdisjoint(old | new):
        return False
    if all(known.participle.match(value.words[0]) and value.is_qualified for value in (aligned.old, aligned.new)):
        return False  # "insured with", "parked in": each value is a predicate of its own
    if (aligned.old.kind == "number") != (aligned.new.kind == "number") and not aligned.frame.is_typed:
        return False
    return not any(_YEAR.fullmatch(word) for word in new) or _has_digit(aligned.old.words)


def _weighed(aligned: _Aligned, *, is_denied: bool) -> Verdict | None:
    """Return the verdict from how strongly the frame asks for a single value."""
    frame = aligned.frame
    if (len(aligned.tail) > 2 and not frame.is_strict) or not aligned.known.copulas.isdisjoint(aligned.tail):
        return None
    if is_denied:
        return "several" if frame.has_verb else None
    alike = aligned.are_ages or frame.is_typed or frame.is_choice or aligned.old.is_like(aligned.new)
    is_place_in_place = "country" in (aligned.old.kind, aligned.new.kind) and aligned.old.kind != aligned.new.kind
    if frame.is_strict and is_place_in_place and not frame.is_typed:
        return "several"
    if alike and (frame.is_strict or _is_measure(aligned)) and not frame.is_indefinite:
        is_open = aligned.is_several or aligned.old.is_qualified or aligned.new.is_qualified
        return "conflict" if is_open else "replaced"
    if alike and frame.has_slot and not aligned.is_several:
        is_telling = frame.is_choice or aligned.old.kind != "words"
        is_open = frame.is_shared or aligned.old.is_qualified or aligned.new.is_qualified
        return "replaced" if is_telling and not is_open else "conflict"
    if alike and not frame.has_slot and (frame.is_typed or frame.is_usual or _is_state(aligned)):
        return "conflict"
    return "several" if frame.has_verb else None


def _is_measure(aligned: _Aligned) -> bool:
    """Return whether the values measure a lasting state (age, weight) and not single events (a distance run)."""
    if aligned.are_ages:
        return True
    frame = aligned.frame
    is_number = (
        aligned.old.kind == aligned.new.kind == "number"
        and aligned.known.measure.match(" ".join(aligned.tail)) is not None
    )
    return is_number and frame.size <= 2 and frame.has_verb and not frame.is_event


def _is_state(aligned: _Aligned) -> bool:
    """Return whether the frame is a copula and a word, such as `is famous for`. It usually has one value."""
    frame = aligned.frame
    if aligned.is_several or frame.is_event or not frame.has_copula:
        return False
    if frame.has_activity and aligned.known.is_date((*aligned.new.words, *aligned.tail)):
        return False  # people do the same on several days
    return aligned.new.kind in ("number", "date") or (aligned.new.kind in ("name", "country") and frame.size > 2)
