"""Decide whether a new statement makes an older one outdated, in any wording: "Sold the Corolla, picked up an Outback".

`compare` in `statement` aligns two sentences of the same form, but people seldom repeat a form. An update shares its
topic with the statement it updates, and expresses somehow that something changed. The features below measure both, and
also signs against a change: a wish, a quotation, the distant past, another person. The features are the same in every
language; the words come from the table `change` of the language files. A logistic regression weighs them.
`tools/fit_change.py` writes its coefficients to change.json. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import exp
from typing import Literal, NamedTuple, TypeAlias, TypeVar, get_args

from ricordo.model import Node
from ricordo.text.analyzer import (
    asks_for_oneself,
    function_words,
    index_terms,
    leaves_out_its_subject,
    speaks_of_themselves,
)
from ricordo.text.dates.grammar import find_all_days, mentions_time, vocabulary
from ricordo.text.dates.resolution import dated_phrases
from ricordo.text.languages import (
    NEVER,
    Expressions,
    LanguageSet,
    all_languages,
    any_of,
    cached,
    fold_letters,
    is_ordinary,
    languages_of,
)
from ricordo.text.names import NOT_PEOPLE, written_titles
from ricordo.text.relatives import Stated, stated_relations, with_relation_first
from ricordo.text.sentences import with_apostrophes, without_elisions
from ricordo.text.statement import subject_of
from ricordo.text.tasks import states_task

Cue: TypeAlias = Literal[
    "no_longer",
    "ended",
    "replaced",
    "now",
    "corrected",
    "added",
    "unchanged",
    "unsure",
    "reported",
    "past",
    "future",
    "asks",
]
_IN_FILES: tuple[Cue, ...] = tuple(cue for cue in get_args(Cue) if cue != "asks")

K = TypeVar("K")

MAX_CHARS = 600
"""A longer text tells a story, so only its beginning is read."""

_ANY_DAY = date(2000, 1, 1)
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W_]+(?:['’.:,/-][^\W_]+)*")
_NAME_WITHIN = re.compile(r"(?<=[^\W_] )(?!I\b)[^\W\d_a-zа-яё][^\W_]*")
_MARKS = '"„“”«»'
_ONLY_QUOTED = re.compile(r"(?:[^“”]+: )?“[^“”]+”\W*")
_QUOTED = re.compile(  # three words or more, because a name may also be in quotation marks
    rf"[{_MARKS}][^{_MARKS}\s]+\s\S+\s[^{_MARKS}]+[{_MARKS}]|(?<!\w)[‘‚'](?=\w)\S+\s\S+\s.{{4,}}?['‘](?!\w)", re.DOTALL
)
_SENTENCE_END = re.compile(r"(?<=[.!?;…])\s+|(?<!\s)\s+[–—-]\s+")
_CLAUSE_END = re.compile(r"(?<=[.!?;…,])\s+|(?<!\s)\s+[–—-]\s+|(?<=\w): ")
_NUMERAL = re.compile(r"\b[A-Z][\w-]{1,30} I(?=[.,;:)]|$)")  # "Ardashir I.", not "so do I"
_IDENTIFIER = re.compile(r"[^\W\d_]+[-/.]?\d[\w/-]*|\d{3,}[-/]\d{2,5}")  # "LH1234", "INV-77", "2026-041"
_CLOCK = re.compile(r"\d{1,2}(?:[:.]\d\d|h(?:\d\d)?)")
_YEAR = re.compile(r"1\d\d\d|20\d\d")
_DAY_OR_YEAR = re.compile(r"(?:[12]?\d|3[01])(?:st|nd|rd|th|\.)?|(?:19|20)\d\d")
_AMOUNT = re.compile(r"(?!(?:19|20)\d\d$)\d{3,}(?:[.,]\d+)*|\d{1,3}(?:[.,]\d{3})+(?:[.,]\d+)?")
_HEAD = 2  # content words that name the topic of a statement
_BEGINNING = 5  # words in which the subject of a statement is searched
_BEYOND_FAMILY = frozenset(("assistant", "boss", "colleague", "dentist", "doctor", "landlady", "landlord")) | frozenset(
    ("lawyer", "teacher", "therapist", "trainer")
)
"""The kinds of relatives that are no family: they change what is the user's ("The landlord raised the rent")."""
_LEAST_SAID = 3  # words of a clause that says something
_OF_A_PART = 0.75  # the likelihood from which a change of one clause counts
_PLAIN_WORDS = 12  # maximum length of a statement whose subject can be recognised
_OF_KIN_WITHIN = 2  # words from "my" to "brother"
_ONE_MATTER = 0.55  # the cosine of two statements about one matter of a person, with the default embedder
_LAST_CHARS = 20  # characters in which the word before a word begins
_BEFORE = 3  # words in which the owner of a thing is searched
_DENIED_WITHIN = 4  # words before a change
_DENIABLE: frozenset[Cue] = frozenset(("ended", "replaced"))
_HOME_AND_WORK = frozenset(("=home",)), frozenset(("=work", "=job"))
_OPPOSITE = (([True, False], [False, True]), ([False, True], [True, False]))
_ALONE = 0.3  # by how much more of a fact must be repeated than of any other, so that it is the one meant
_SHARE_OF_THE_SAME = 0.6  # of the words of a fact that a clause of a later statement repeats
_SHARE_OF_A_VERSION = 0.4  # of the words of a fact that a later version of it repeats
_AS_LIKELY_AS_NOT = 0.5  # in conversations, hardly any sentence below it was about a change
_OF_AN_END: frozenset[Cue] = frozenset(("no_longer", "ended"))
_OF_A_CHANGE: frozenset[Cue] = _OF_AN_END | {"replaced"}
_SAME_BEGINNING = 6  # common first letters of two forms of a word with different stems
_SAME_NAME = 3  # common first letters of two forms of a name
_JOB = "=job"
_NAMED_STATES = frozenset(("car", "phone"))  # whose values are names that people use instead of the word
_OF_A_PRONOUN, _OF_A_NAME = 2, 3  # letters; in some language, "for" is a stem of "Ford"
_LEAST_ABROAD = 2  # letters; "M" and "Fr" are titles in one language only
_COMMON, _NUMBER, _NAME = 0.25, 0.5, 2.0  # weights of words; any other word has weight 1


class TopicWord(NamedTuple):
    """A content word of a statement.

    Attributes:
        stems: the word's stems, and the marker of its group of words about one thing, if any.
        worth: the weight of the word.
        start: the offset in the text.
        whose: 1 for a thing of the speaker ("my salary"), -1 for someone else's ("her salary").
        is_kin: whether the word means people by their relation to someone.
    """

    stems: tuple[str, ...]
    worth: float
    start: int
    whose: int
    is_kin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The topic of a statement.

    Attributes:
        words: the content words in order.
        stems: stems of each significant word, to search for statements on the topic; `all_stems` those of all words.
        beginnings: the first letters of longer words.
        numbers: words with a digit, as written; `identifiers` those that name something: LH1234, 2026-041.
        is_dated: it has a word of a date or a time of the day.
        is_own: the speaker is mentioned outside quotations: I, my, we; or somebody of the speaker's family.
        is_of_self: it says something of the speaker, not only whose brother it is about.
        length: the number of words, without those that tell a time.
        others: stems of other people at the beginning: people by role (my cousin) and owners (Emil's).
        has_theirs: something is said to be his, hers or theirs.
        other_senses: the groups of words about one thing of which it has words in another sense: "home" for "moved the
            sofa".
        subject: stems of each word before the verb, empty if that is the speaker; None if no verb is recognised.
        persons: the stems within `subject` that are names or people by role.
    """

    words: tuple[TopicWord, ...]
    numbers: frozenset[str]
    identifiers: frozenset[str]
    is_dated: bool
    is_own: bool
    is_of_self: bool
    length: int
    others: frozenset[str]
    has_theirs: bool
    other_senses: frozenset[str]
    subject: frozenset[tuple[str, ...]] | None
    persons: frozenset[tuple[str, ...]]
    stems: frozenset[tuple[str, ...]]
    all_stems: frozenset[str]
    beginnings: frozenset[str]

    @property
    def people(self) -> frozenset[str]:
        """The stems of the people the statement is about, other than the speaker."""
        return self.others | frozenset(stem for stems in self.persons for stem in stems)

    @property
    def names_speaker(self) -> bool:
        """Whether a word means the speaker: "My dad hates carp". In "Dad hates carp", none does."""
        return self.is_of_self or any(word.whose == 1 for word in self.words)

    def mentions(self, name: str) -> bool:
        """Return whether a word is in the group of that name: for "home", "moved"."""
        return f"={name}" in self.all_stems

    def may_name(self, name: TopicWord) -> bool:
        """Return whether a name occurs in the statement, or a short form of it: "Лёша", "Лёшка"."""
        short = name.stems[0][:_SAME_NAME]
        return bool(self.likeness(name.stems)) or any(stem.startswith(short) for stem in self.all_stems)

    def likeness(self, stems: tuple[str, ...]) -> float:
        """Return 1 if a word is shared, .8 if two words only begin alike (Cortison, Cortisonsalbe), else 0."""
        if not self.all_stems.isdisjoint(stems):
            return 1.0
        last = stems[0]
        return 0.8 if len(last) >= _SAME_BEGINNING and last[:_SAME_BEGINNING] in self.beginnings else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The word lists of some languages."""

    silent: frozenset[str]
    common: frozenset[str]
    own: frozenset[str]
    same: Mapping[str, tuple[str, ...]]
    kin: frozenset[str]
    of: frozenset[str]
    owner_before: frozenset[str]
    owner_endings: tuple[str, ...]
    theirs: frozenset[str]
    companions: frozenset[str]
    conjunctions: frozenset[str]
    articles: frozenset[str]
    degrees: frozenset[str]
    determiners: frozenset[str]
    prepositions: frozenset[str]
    denials: frozenset[str]
    denied_endings: tuple[str, ...]
    capitals_are_names: bool


@cached()
def _same(languages: LanguageSet) -> dict[str, tuple[str, ...]]:
    """Map a marker that no text contains to each group of words about one thing."""
    found: dict[str, tuple[str, ...]] = {}
    for language in languages:
        for name, words in (*language.change.same.items(), *language.change.of_self.items()):
            found[f"={name}"] = (*found.get(f"={name}", ()), *words)
    return found


def _groups_of_words(languages: LanguageSet) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, words in _same(languages).items():
        found |= {word: (*found.get(word, ()), name) for word in dict.fromkeys(words)}
    return found


@cached()
def _not_same(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.change.not_same, r"(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)


def _other_senses(text: str, languages: LanguageSet) -> list[tuple[int, int]]:
    """Return where a text has a word for a state that means something else: "moved the sofa", the title "Frau"."""
    found = [each.span() for each in _not_same(languages).finditer(text)]
    titles = (each.span("titles") for each in _titled_names(text, languages))
    return [*found, *(each for each in titles if not any(start <= each[0] < end for start, end in found))]


def _titled_names(text: str, languages: LanguageSet) -> list[re.Match[str]]:
    """Return the titles in a text with the names behind them. A sentence may have a title of another language."""
    found, known = list[re.Match[str]](), _words(languages)
    for each in _titled(languages).finditer(text):
        before, name = (each["before"] or "").strip().lower(), each["name"]
        is_bare = before not in known.own | known.determiners and before not in known.theirs
        is_bare = is_bare or (known.capitals_are_names and before in known.articles)  # "la signora Bruni"
        is_name = name[0].isupper() or not (name in known.silent or _is_ordinary(name, languages))
        if is_bare and is_name:
            found.append(each)
    return found


@cached()
def _titled(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of the titles before a name: "Frau Dr. Weidlich"."""
    own = languages.words(lambda each: (*each.names.titles, *each.relations.titles))
    foreign = (each for each in written_titles(has_relatives=False) if len(each) > _LEAST_ABROAD)
    titles = "|".join(map(re.escape, sorted({*own, *foreign}, key=len, reverse=True))) or NEVER
    return re.compile(
        rf"(?P<before>(?<!\w)[^\W\d_]+\s+)?(?<!\w)(?P<titles>(?:{titles})(?:\.?\s+(?:{titles}))*)\.?\s+(?P<name>[^\W\d_]+)",
        re.IGNORECASE,
    )


@cached()
def _of_self(languages: LanguageSet) -> frozenset[str]:
    """Return the markers of groups that count only in what people say of themselves."""
    return frozenset(f"={name}" for language in languages for name in language.change.of_self)


@cached()
def _bare_relatives() -> frozenset[str]:
    """Return the words for a relative that need no "my", of all languages: an English sentence may have "Mamma"."""
    return frozenset(word for word in all_languages().words(lambda each: each.relations.bare) if " " not in word)


@cached()
def _words(languages: LanguageSet) -> _Words:
    return _Words(
        silent=frozenset(word for language in languages for word in function_words(language.code)),
        common=frozenset(
            stem
            for word in languages.words(lambda each: each.change.common)
            for stem in index_terms(word, languages=languages)
        ),
        own=languages.words(lambda each: (*each.sentences.first_person, *each.sentences.self_words)),
        same=_groups_of_words(languages),
        kin=_bare_relatives()
        | languages.words(lambda each: each.change.kin)
        | frozenset(form for language in languages for forms in language.kinship.words.values() for form in forms),
        of=languages.words(lambda each: each.statements.of),
        owner_before=languages.words(lambda each: each.change.owner_before),
        owner_endings=tuple(filter(None, (language.change.owner_ending for language in languages))),
        theirs=languages.words(lambda each: each.change.theirs),
        companions=languages.words(lambda each: each.change.companions),
        conjunctions=languages.words(lambda each: each.entities.conjunctions),
        degrees=all_languages().words(lambda each: each.names.degrees),
        articles=languages.words(lambda each: each.statements.articles),
        determiners=languages.words(lambda each: (*each.statements.articles, *each.statements.determiners)),
        prepositions=languages.words(lambda each: each.statements.prepositions),
        denials=languages.words(lambda each: (*each.statements.negations, *each.change.denials)),
        denied_endings=languages.in_order(lambda each: each.statements.negated_endings),
        capitals_are_names=not any(language.code == "de" for language in languages),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """The properties of a word, and its stems. `is_silent`: the word tells nothing about the topic."""

    is_silent: bool
    stems: tuple[str, ...]
    is_common: bool
    is_own: bool
    is_theirs: bool
    is_kin: bool
    has_digit: bool
    is_identifier: bool


@cached(maxsize=65_536)
def _word(low: str, languages: LanguageSet) -> _Word:
    known = _words(languages)
    bare = low.partition("'")[0]
    is_own = low in known.own or bare in known.own
    is_silent = is_own or low in known.silent or bare in known.silent
    has_digit = _has_digit(low)
    is_identifier = has_digit and _IDENTIFIER.fullmatch(low) is not None
    stems = tuple(index_terms(low if has_digit else bare, languages=languages)) or (low,)
    if is_identifier:  # invoice 2026-041 is not invoice 2026-047
        stems = (low,)
    if low in known.same:
        stems = (*stems, *known.same[low])
    of_word = _expressions(languages).matches(low)
    is_of_time = any(cue in ("now", "added") and found.end() == len(low) for cue, found in of_word)
    return _Word(
        is_silent=is_silent or is_of_time,
        stems=stems,
        is_common=low not in known.same and "-" not in bare and not known.common.isdisjoint(stems),  # a "go-live"
        is_own=is_own,
        is_theirs=low in known.theirs,
        is_kin=not known.kin.isdisjoint((bare, bare.partition("-")[0])),
        has_digit=has_digit,
        is_identifier=is_identifier,
    )


@cached(maxsize=16_384)
def topics(text: str) -> Topics:
    """Return the topic of a statement, without function words and words for change.

    >>> topics("The empire was founded by Ardashir I.").is_own, topics("She is taller than I.").is_own
    (False, True)
    """
    text = text[:MAX_CHARS].replace("’", "'")
    languages = languages_of(text)
    known = _words(languages)
    text = with_apostrophes(without_elisions(text, languages), languages)
    words = list[TopicWord]()
    dates = vocabulary(languages).times  # two appointments in December have no topic in common
    is_dated = not dates.isdisjoint(_WORD.findall(text.lower()))
    numbers, others, other_senses = set[str](), set[str](), set[str]()
    is_own = is_without_subject = leaves_out_its_subject(text, languages)
    of_self = list[int]()  # the places of "I" and "my"
    apart = [each.span() for pattern in (_QUOTED, _NUMERAL) for each in pattern.finditer(text)]
    unlike = _other_senses(text, languages)
    titled = _titled_names(text, languages)
    whose, has_theirs = list[int](), False
    is_of_kin = is_of_somebody = False
    of_time, silent = 0, 0  # the words that tell a time, with their articles and prepositions
    before = ""
    for place, found in enumerate(_WORD.finditer(text)):
        written = found.group()
        low = written.lower()
        word = _word(low, languages)
        is_unlike = any(start <= found.start() < end for start, end in unlike)
        is_kin = word.is_kin and not is_unlike
        has_theirs = has_theirs or word.is_theirs
        if word.is_own and not any(start <= found.start() < end for start, end in apart):
            is_own = True
            of_self.append(place)
        elif is_kin and of_self in ([0], [1]) and place <= _OF_KIN_WITHIN:
            of_self = []  # "my brother plays", "o meu irmão joga"
        is_owner = place < _BEGINNING and (
            (before in known.owner_before and not word.is_own)
            or (before in known.of and written[0].isupper() and known.capitals_are_names)
            or (written[0].isupper() and low.endswith(known.owner_endings) and before not in known.silent)
        )
        before = low
        whose.append(1 if word.is_own else -word.is_theirs)
        if word.is_silent:
            silent += 1
            continue
        if word.has_digit:
            numbers.add(low.rstrip("."))
        is_of_kin = is_of_kin or (place < _BEGINNING and is_kin and -1 not in whose)
        is_of_somebody = is_of_somebody or is_owner
        if is_owner or (place < _BEGINNING and is_kin):
            others.update(word.stems)
        is_name = written[0].isupper() and found.start() > 0 and known.capitals_are_names
        is_date = is_dated and (low in dates or _DAY_OR_YEAR.fullmatch(low) is not None)
        is_date = is_date and all(each.start("name") != found.start() for each in titled)  # "Frau Sommer"
        of_time, silent = of_time + (1 + silent if is_date else 0), 0
        is_number = word.has_digit and not word.is_identifier
        worth = _COMMON if word.is_common or is_date else _NUMBER if is_number else _NAME if is_name else 1.0
        near = whose[max(0, place - _BEFORE) : place]
        of_whom = 1 if 1 in near else max(near, key=abs, default=0)
        marked = {each for each in word.stems if each.startswith("=")} if is_unlike else set[str]()
        other_senses |= marked
        of_title = (each["name"] for each in titled if each.start("titles") <= found.start() < each.end("titles"))
        name = (
            next(of_title, "") if low not in known.degrees else ""
        )  # "Frau Lind" and "Frau Kern" have no title in common
        stems = _word(name.lower(), languages).stems if name else _without(word.stems, marked)
        words.append(TopicWord(stems, worth, found.start(), of_whom, is_kin))
    words = _with_states(words, text, languages)
    subject = _subject(text, languages) if len(whose) - of_time <= _PLAIN_WORDS else None
    marks: Set[str] = _of_self(languages) if subject != [] else frozenset()
    if any(not marks.isdisjoint(word.stems) for word in words):  # somebody else is the teacher
        words = [word._replace(stems=_without(word.stems, marks)) for word in words]
        subject = subject and [(_without(stems, marks), is_person) for stems, is_person in subject]
    return Topics(
        words=tuple(words),
        stems=_to_look_for(words, languages),
        all_stems=frozenset(stem for word in words for stem in word.stems),
        beginnings=frozenset(
            word.stems[0][:_SAME_BEGINNING] for word in words if len(word.stems[0]) >= _SAME_BEGINNING
        ),
        numbers=frozenset(numbers),
        identifiers=frozenset(each for each in numbers if _IDENTIFIER.fullmatch(each)),
        is_dated=is_dated,
        is_of_self=is_without_subject or bool(of_self),
        is_own=is_own or (is_of_kin and not is_of_somebody),  # "the cat" is the speaker's, "Vera's cat" is not
        length=len(whose) - of_time,
        others=frozenset(others),
        has_theirs=has_theirs,
        other_senses=frozenset(other_senses),
        subject=None if subject is None else frozenset(stems for stems, _ in subject),
        persons=frozenset(stems for stems, is_person in subject or () if is_person),
    )


def _with_states(words: list[TopicWord], text: str, languages: LanguageSet) -> list[TopicWord]:
    """Return the words of a statement that tells a state or its change, with the marker of the state at each value:
    "We drive a Skoda", "We bought a Kia".
    """
    named = [
        mark for mark, values in _state_values().items() if any(not values.isdisjoint(each.stems) for each in words)
    ]
    if not named:
        return words
    said, is_change = set(_WORD.findall(text.lower())), not cues(text, languages).isdisjoint(_OF_A_CHANGE)
    given = _introduced_stems(text) if is_change else frozenset[str]()
    changed = frozenset(stem for each in words if is_change for stem in each.stems) - given
    told = [
        mark
        for mark in named
        if not said.isdisjoint(_state_words(languages)[mark]) or not changed.isdisjoint(_state_values()[mark])
    ]
    for mark in told:
        values = _state_values()[mark]
        words = [each if values.isdisjoint(each.stems) else each._replace(stems=(*each.stems, mark)) for each in words]
    return words


@cached()
def _state_values() -> dict[str, frozenset[str]]:
    """Return the stems of the names that are values of a state, in any language, by its marker."""
    found: dict[str, frozenset[str]] = {}
    for language in all_languages():
        for name in _NAMED_STATES & language.states.keys():
            stems = _terms(language.states[name].values, [any_of((language.code,))])
            found[f"={name}"] = found.get(f"={name}", frozenset()) | stems
    return found


@cached()
def _state_words(languages: LanguageSet) -> dict[str, frozenset[str]]:
    """Return the words and verbs of states by their markers."""
    states = [language.states for language in languages]
    return {
        f"={name}": frozenset(
            word for each in states if name in each for word in (*each[name].asked, *each[name].verbs)
        )
        for name in _NAMED_STATES
    }


def without_other_senses(text: str) -> str:
    """Return a text without the phrases in which a word for a state means something else: "moved the sofa".

    A text that may be in several languages stays: "mudamos a" is something else in one of them only.
    """
    languages = languages_of(text)
    is_in_one = len({each.script for each in languages}) == len(languages)
    for start, end in sorted(_other_senses(text, languages) if is_in_one else [], reverse=True):
        text = f"{text[:start]} {text[end:]}"
    return text


def _without(stems: tuple[str, ...], marks: Set[str]) -> tuple[str, ...]:
    return tuple(stem for stem in stems if stem not in marks)


def _subject(text: str, languages: LanguageSet) -> list[tuple[tuple[str, ...], bool]] | None:
    """Return stems per significant word before the verb, and whether the word names a person; None without a verb."""
    words = () if leaves_out_its_subject(text, languages) else subject_of(_behind_its_time(text, languages))
    if words is None:
        return None
    titles = {title for each in _titled_names(text, languages) for title in each["titles"].lower().split()}
    titles -= _words(languages).degrees
    telling = [(each, word) for each in words if each not in titles and not (word := _word(each, languages)).is_silent]
    return [(word.stems, word.is_kin or not _is_ordinary(each, languages)) for each, word in telling]


def _behind_its_time(text: str, languages: LanguageSet) -> str:
    """Return a statement without the time that it begins with: "From October the rent is 845"."""
    if not mentions_time(text, languages=languages):  # most statements, quickly
        return text
    named = find_all_days(text, today=_ANY_DAY, ahead=True, languages=languages)
    return text[named[0].end :].lstrip(" ,") if named and not text[: named[0].start].strip() else text


def _is_ordinary(word: str, languages: LanguageSet) -> bool:
    return any(is_ordinary(fold_letters(word), language) for language in languages)


def _to_look_for(words: Iterable[TopicWord], languages: LanguageSet) -> frozenset[tuple[str, ...]]:
    """Return the stems of each significant word, including those of other words for the same thing."""
    return frozenset(_stems_to_look_for(stems, languages) for stems, worth, *_ in words if worth > _COMMON)


def _stems_to_look_for(stems: tuple[str, ...], languages: LanguageSet) -> tuple[str, ...]:
    if marks := [each for each in stems if each.startswith("=")]:
        return tuple(dict.fromkeys(stem for mark in marks for stem in _same_stems(languages)[mark]))
    return tuple(index_terms(stems[0], languages=languages)) if _IDENTIFIER.fullmatch(stems[0]) else stems


@cached()
def _same_stems(languages: LanguageSet) -> dict[str, tuple[str, ...]]:
    found = {
        mark: tuple(dict.fromkeys(index_terms(word, languages=languages)[0] for word in words))
        for mark, words in _same(languages).items()
    }
    for mark, stems in _state_values().items():
        found[mark] = tuple(dict.fromkeys((*found.get(mark, ()), *sorted(stems))))
    return found


def job_stems(text: str) -> tuple[str, ...]:
    """Return the stems of the professions that the languages of a text have words for."""
    return _same_stems(languages_of(text)).get(_JOB, ())


def names_job(text: str) -> bool:
    """Return whether a text names a profession."""
    return _JOB in topics(text).all_stems


def tells_own(state: str, text: str) -> bool:
    """Return whether people tell in a text which thing of a kind is theirs without a word for it.

    >>> tells_own("work", "I teach chemistry"), tells_own("work", "I teach my son to swim")
    (True, False)
    """
    return state in _own_states().kinds_in(text.lower().replace("’", "'"))


@cached()
def _own_states() -> Expressions[str]:
    """Return how people tell of each thing which one is theirs; short statements may be taken for another language."""
    told: dict[str, list[str]] = {}
    for language in all_languages():
        for name, state in language.states.items():
            told.setdefault(name, []).extend(state.told)
    return Expressions(told, followed_by=r"(?!\w)")


class AskedStates(NamedTuple):
    """The things in a question of which people have one at a time: a home, a job, a car.

    Attributes:
        terms: the index terms of all words for them, which find the statements that answer it: "I moved to Porto"
            answers "Where did I live in 2019?".
        verbs: those of words in the question that say nothing more: "drive".
        values: those of words that say which one it is; empty if none are known.
        names: the names of the things.
    """

    terms: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def are_told_in(self, text: str, languages: LanguageSet) -> bool:
        """Return whether a text has a word for one of these things: one that a language of the text knows in some form,
        or any language as it is written. "Rented" has the stem of the German "Rente", but tells of no pension.
        """
        text = without_other_senses(text)
        terms = self.terms.intersection(index_terms(text))
        if not terms or not self.names:
            return bool(terms)
        values = self.values & terms
        if values and not values.issubset(_introduced_stems(text)):  # a phone is no rat called Pixel
            return True
        known, written = _words_of(self.names, languages)
        return not known.isdisjoint(terms) or not written.isdisjoint(_WORD.findall(text.lower()))


@cached(maxsize=1_024)
def states_asked(question: str) -> AskedStates:
    """Return the things in a question of which people have one at a time."""
    words = _WORD.findall(without_other_senses(question.lower()))
    asked, marks = (
        {*words, *(part for word in words for part in word.split("-"))},
        topics(question).all_stems,
    )  # habite-t-on
    # Short questions and statements may be taken for another language.
    said = {name: asked & known for name, known in _states().items() if f"={name}" in marks or asked & known}
    if len(said) > 1:  # "Where does my husband work?" asks for no marriage
        kin = _words(all_languages()).kin
        said = {name: words for name, words in said.items() if not words or not words <= kin} or said
    found = [_state_of(name) for name in said]
    return AskedStates(*(frozenset[str]().union(*each) for each in zip(*found, strict=True)))


@cached()
def _words_of(names: frozenset[str], languages: LanguageSet) -> tuple[frozenset[str], frozenset[str]]:
    """Return the index terms of the words about some things in some languages, and these words in all languages."""
    listed = {
        each.code: [
            word
            for name in names
            for word in (*each.change.same.get(name, ()), *(each.states[name].asked if name in each.states else ()))
        ]
        for each in all_languages()
    }
    terms = (_terms(listed[each.code], [any_of((each.code,))]) for each in languages)
    return frozenset[str]().union(*terms), frozenset(word for words in listed.values() for word in words)


def state_terms(name: str) -> frozenset[str]:
    """Return the index terms of the words about one thing, such as "home", in all languages."""
    return _state_of(name).terms


_OF_TWO_THINGS = frozenset(("tenancy", "online"))
"""Groups of words for one topic that are about several things: "Who is my landlord?" does not ask for the rent."""


@cached()
def _states() -> dict[str, set[str]]:
    """Return the words, in any language, by which a question asks for each thing."""
    found: dict[str, set[str]] = {}
    for language in all_languages():
        for name, group in language.change.same.items():  # "Can Elise cook?" asks for no profession
            if name not in _OF_TWO_THINGS:
                found.setdefault(name, set()).update(group)
        for name, state in language.states.items():
            found.setdefault(name, set()).update(state.asked)
    return found


@cached()
def _state_of(name: str) -> AskedStates:
    """Return the index terms of the words about one thing."""
    every = [any_of((each.code,)) for each in all_languages()]
    terms, verbs, values = set[str](), set[str](), set[str]()
    for language in every:
        terms |= _terms(language[0].change.same.get(name, ()), [language])
        if (state := language[0].states.get(name)) is not None:
            named = {term for term in _terms(state.values, every) if len(term) > _OF_A_NAME or term in state.values}
            terms |= _terms(state.asked, [language]) | named
            verbs |= _terms(state.verbs, [language])
            values |= named
    return AskedStates(*map(frozenset, (terms, verbs, values, (name,))))


def _terms(words: Iterable[str], languages: Sequence[LanguageSet]) -> set[str]:
    """Return the index terms of words in some languages, and in the language that each is taken for."""
    return {
        term
        for word in words
        for language in (*languages, None)
        for term in index_terms(word, languages=language)
        if len(term) > _OF_A_PRONOUN or term == word  # "mudei-me"
    }


@cached()
def _expressions(languages: LanguageSet) -> Expressions[Cue]:
    return Expressions(
        {cue: languages.in_order(lambda each, cue=cue: getattr(each.change, cue)) for cue in _IN_FILES},  # type: ignore[misc]
        followed_by=r"(?!\w)",
    )


@cached()
def _taken_back(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.change.taken_back, r"(?<!\w)(?:{})(?!\w)")


@cached()
def _state(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of predicates that describe a state: "is married to", "died in"."""
    return languages.pattern(lambda each: (*each.statements.strict, *each.statements.usual), r"(?<!\w)(?:{})(?!\w)")


@cached(maxsize=4_096)
def cues(text: str, languages: LanguageSet) -> frozenset[Cue]:
    """Return the cues of change in a sentence. A denied change counts as no change: "never resigned"."""
    said = _NAME_WITHIN.sub(_without_name, text) if _words(languages).capitals_are_names else text
    low = _state(languages).sub(" ", said.lower())
    expressions = _expressions(languages)
    found = expressions.kinds_in(low)
    if "no_longer" not in found:
        for cue in found & _DENIABLE:
            if all(_is_denied(low[: each.start()], languages) for each in expressions.find(low, cue)):
                found = found - {cue} | {"unchanged"}
    if _taken_back(languages).search(low):  # "kidding" tells of a joke, too
        found = found - {"reported", "unchanged", "future"} | {"corrected"}
    return frozenset(found | {"asks"} if text.rstrip().endswith("?") else found)


def _without_name(found: re.Match[str]) -> str:
    """Return a mark in place of a name, since "New" in "New Delhi" is no cue, but "July" in "from July" is."""
    return found.group() if mentions_time(found.group()) else "_"


def _takes_back(text: str) -> bool:
    return _taken_back(languages_of(text)).search(text.lower()) is not None


def _is_not_so(before: Topics, after: Topics, new: str) -> bool:
    """Return whether a statement only denies another one: "I never had a cat", but not "I never had cat food"."""
    languages = languages_of(new)
    found = _not_so(languages).search(new.lower())
    if not found or not denies(new, languages):
        return False
    said = [word for word in after.words if not found.start() <= word.start < found.end()]
    return all(word.worth <= _COMMON or before.likeness(word.stems) for word in said)


@cached()
def _not_so(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.change.not_so, r"(?<!\w)(?:{})(?!\w)")


def load_patterns() -> None:
    """Compile the patterns of the default languages, which takes a tenth of a second at their first use."""
    cues("", languages_of(""))


def _is_denied(before: str, languages: LanguageSet) -> bool:
    """Return whether one of the last words before a change, in the same clause, denies it."""
    clause = _CLAUSE_END.split(before)[-1]
    return denies(" ".join(clause.split()[-_DENIED_WITHIN:]), languages)


CHANGES: frozenset[Cue] = frozenset(("no_longer", "ended", "replaced", "now", "corrected"))
"""Cues that something changed. All other cues are evidence against a change."""

FEATURES = (
    "telling",
    "share",
    "novel",
    "long",
    "head",
    "world",
    "world share",
    "world apart",
    "world plain",
    "own before",
    "own after",
    "changes",
    "says so",
    "share changes",
    "only repeats",
    "another's",
    "possessed",
    "apart",
    "apart plain",
    "people apart",
    "people apart plain",
    "introduced",
    "introduced brief",
    "branched",
    "branched plain",
    "denied",
    "added",
    "unchanged",
    "unsure",
    "reported",
    "past",
    "future",
    "quoted",
    "asks",
)
BY_WORDS = (*FEATURES, "rivals", "rarity", "lead")
BY_MEANING = (*FEATURES, "rivals", "meaning", "contrast", "lead", "behind", "nearest")
"""The features used when a fact is stored (words), and in upkeep and when results are ranked (meaning)."""

USUAL = 0.08
"""The cosine of two facts about different people with the default embedder, used if there is no third fact."""

_MOST_NOVEL, _MOST_RIVALS, _MANY = 2.0, 48.0, 8.0
_BRIEF, _SHORT, _LONG = 8, 10, 22  # words of a simple statement, of a statement of a state, and of a detailed one
AGAINST: tuple[Cue, ...] = ("added", "unchanged", "unsure", "reported", "past", "future", "asks")
_PLAIN = ("world", "apart", "people apart", "branched")
_IDLE: tuple[str, ...] = ("reported", "asks", "quoted")
APART = (
    *("world", "world apart", "world plain", "apart", "apart plain", "people apart", "people apart plain"),
    *("introduced", "introduced brief", "branched", "branched plain"),
)
"""Features of two statements about different things or people, or about somebody other than the speaker."""
DOUBTS = (*AGAINST, "quoted", "another's", "possessed")
"""Features against a change. With one of them, a newer statement may rank below the older one."""


def features(old: str, new: str) -> dict[str, float]:
    """Return the features of two texts, each from 0 to 1."""
    before, after = topics(old), topics(new)
    shared = [word for word in after.words if before.likeness(word.stems)]
    found = _of_topics(before, after)
    return _together(found, _of_cues(before, after, new, shared, are_apart=bool(found["apart"])))


def has_doubts(old: str, new: str) -> bool:
    """Return whether anything speaks against a newer statement as a change of an older one: it is a wish, a memory, a
    quotation or a task, or about somebody else.

    >>> has_doubts("I drive a Golf", "I might get a Tesla")
    True
    >>> has_doubts("I drive a Golf", "Sold it, we go by bike")
    False
    """
    found = features(old, new)
    return any(found[name] for name in DOUBTS) or _is_task(new) or are_of_two_people(old, new)


def _together(of_topics: Mapping[str, float], of_cues: Mapping[str, float]) -> dict[str, float]:
    return {
        **of_topics,
        **of_cues,
        "share changes": of_topics["share"] * of_cues["changes"],
        **{f"{name} plain": of_topics[name] * (1 - of_cues["changes"]) for name in _PLAIN},
        "introduced brief": of_topics["introduced"] * of_topics["brief"] * (1 - of_cues["changes"]),
    }


def _of_topics(before: Topics, after: Topics) -> dict[str, float]:
    """Return the features of the common topic of two statements, and of its owner."""
    met = [(word.worth, word.worth * after.likeness(word.stems)) for word in before.words]
    known = [before.likeness(word.stems) for word in after.words]
    novel = sum(word.worth for word, likeness in zip(after.words, known, strict=True) if not likeness)
    whose = {word.whose for word, likeness in zip(after.words, known, strict=True) if likeness}
    # However much a statement says of it: "Invoice 2026-041 to Weber for 1,850 euros is open and due on 30 October"
    is_identified = not before.identifiers.isdisjoint(after.identifiers)
    share, is_of_world = _share(before, after), float(not (before.is_own or after.is_own))
    # Two statements about other people or things rarely have the same topic if neither mentions the other's first
    # words: "Amy died in London", "Frank died in Berlin".
    head = float(any(likeness for _, likeness in met[:_HEAD]) or any(known[:_HEAD]))
    return {
        "telling": float(any(likeness > _COMMON for _, likeness in met)),
        "share": share,
        "novel": min(novel / _MOST_NOVEL, 1.0),
        "long": 0.0 if is_identified else min(max(before.length - _SHORT, 0) / (_LONG - _SHORT), 1.0),
        "head": head,
        "brief": float(after.length <= _BRIEF),
        "world": is_of_world,
        "world share": is_of_world * share,
        "world apart": is_of_world * (1 - head),
        "own before": float(before.is_own),
        "own after": float(after.is_own),
        "another's": float(_names_others(before, after)),
        "possessed": float(-1 in whose and 1 not in whose and not before.has_theirs),
        **_of_subjects(before, after),
    }


def _share(before: Topics, after: Topics) -> float:
    """Return the share of the older statement's words, by their weights, that the newer one repeats."""
    total = sum(word.worth for word in before.words)
    return sum(word.worth * after.likeness(word.stems) for word in before.words) / total if total else 0.0


def _of_subjects(before: Topics, after: Topics) -> dict[str, float]:
    """Return whether two statements have different subjects.

    They are "apart" if neither mentions the other's subject ("My rent is", "My phone costs"), or if each names another
    person or thing ("The call with Ann is", "The call with Ben is"). A subject is "introduced" if the other statement
    gives its relation to someone: "I have a son, Ben", "Ben plays". It is "branched" if it names another thing of the
    same owner or place: "Vera's cat is", "Vera's dog is".
    """
    none = {"apart": 0.0, "people apart": 0.0, "introduced": 0.0, "branched": 0.0}
    if before.subject is None or after.subject is None or not (before.subject or after.subject):
        return none
    theirs = [each for each in before.subject - after.subject if not after.likeness(each)]
    ours = [each for each in after.subject - before.subject if not before.likeness(each)]
    people = not before.persons.isdisjoint(theirs), not after.persons.isdisjoint(ours)
    are_apart = len(theirs) == len(before.subject) and len(ours) == len(after.subject)
    are_people = all(people) or (are_apart and any(people))
    is_introduced = not are_apart and before.subject.isdisjoint(after.subject)
    is_branched = not before.subject.isdisjoint(after.subject) and bool(after.subject - before.subject)
    found = {
        "apart": are_apart or all(people),
        "people apart": are_people,
        "introduced": is_introduced,
        "branched": is_branched,
    }
    return {name: float(is_so) for name, is_so in found.items()}


def _of_cues(
    before: Topics, after: Topics, new: str, shared: Sequence[TopicWord], *, are_apart: bool
) -> dict[str, float]:
    """Return the features of change in the newer statement. A number about another thing does not count.

    Signs against a change count only in a sentence about the shared topic: "We moved to Bern. I still miss it."
    """
    text = new[:MAX_CHARS].replace("’", "'")
    languages = languages_of(text)
    is_quoted = _QUOTED.search(text) is not None
    text = _QUOTED.sub(lambda each: " " * len(each.group()), text)
    sentences = [
        (cues(said, languages), _holds_any(shared, start, said)) for start, said in _parts(_SENTENCE_END, text)
    ]
    said = frozenset[Cue]().union(*(found for found, _ in sentences))
    if _is_not_so(before, after, new):
        said |= {"corrected"}
    doubts = frozenset[Cue]().union(*(found for found, is_about in sentences if is_about or not shared))
    repeats = all(after.likeness(word.stems) == 1 for word in before.words)
    is_of_one = any(before.likeness(word.stems[:1]) for word in shared) and not are_apart
    is_other = is_of_one and bool(before.numbers and after.numbers) and not after.numbers <= before.numbers
    is_other = is_other and not _are_date_and_amount(before, after)
    denials = [
        _holds_any(shared, start, clause)
        for start, clause in _parts(_CLAUSE_END, text)
        if "no_longer" not in said and denies(clause, languages)
    ]
    return {
        "changes": float(is_other or not said.isdisjoint(CHANGES)),
        "says so": float(not said.isdisjoint(CHANGES)),
        "only repeats": float(repeats and said.isdisjoint(("ended", "no_longer"))),
        "denied": float(any(denials)),
        "denies": float(bool(denials)),
        "quoted": float(is_quoted),
    } | {cue: float(cue in (said if cue == "reported" else doubts)) for cue in AGAINST}


def _are_date_and_amount(before: Topics, after: Topics) -> bool:
    """Return whether one of two statements has a date, the other an amount or a number of something ("iPhone 15"):
    neither is the other's new value.
    """
    dates = [bool(each.numbers) and all(map(_DAY_OR_YEAR.fullmatch, each.numbers)) for each in (before, after)]
    amounts = [bool(each.numbers) and all(map(_AMOUNT.fullmatch, each.numbers)) for each in (before, after)]
    is_counted = not after.is_dated and all(map(str.isdigit, after.numbers))
    return (dates[0] and (amounts[1] or (before.is_dated and is_counted))) or (amounts[0] and dates[1])


def _parts(end: re.Pattern[str], text: str) -> list[tuple[int, str]]:
    """Return the parts of a text, each with its offset."""
    starts = [0, *(found.end() for found in end.finditer(text))]
    return [(start, text[start:until]) for start, until in zip(starts, [*starts[1:], len(text)], strict=True)]


def _holds_any(words: Iterable[TopicWord], start: int, part: str) -> bool:
    return any(start <= word.start < start + len(part) for word in words)


def denies(clause: str, languages: LanguageSet) -> bool:
    """Return whether a clause has a word of negation."""
    known = _words(languages)
    words = [found.group() for found in _WORD.finditer(clause.lower())]
    return not known.denials.isdisjoint(words) or any(word.endswith(known.denied_endings) for word in words)


def _names_others(before: Topics, after: Topics) -> bool:
    """Return whether the newer statement begins with a person that the older one does not mention."""
    return any(not before.likeness((other,)) for other in after.others)


@cache
def _coefficients() -> dict[str, dict[str, float]]:
    loaded: dict[str, dict[str, float]] = json.loads(files("ricordo.text").joinpath("change.json").read_text("utf-8"))
    return loaded


@cache
def _could_tell(rivals: float, rarity: float) -> bool:
    """Return whether a change can be recognised by words in this context, if all features of the texts support it."""
    weights, least = _coefficients()["words"], _coefficients()["least"]["own words"]
    best = {name: 1.0 for name in (*FEATURES, "lead") if weights[name] > 0}
    return _likelihood(best | {"rivals": rivals, "rarity": rarity}, weights) >= least


Said: TypeAlias = tuple[str, str | None]
"""A statement and its speaker; None is the owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Succession:
    """How likely a new statement makes an older one outdated, from 0 to 1, and whether that is certain.

    If `stands_aside`, the new statement is a quotation, a wish or about someone else. `likelihood` is then how likely
    the older statement should rank above it. `says_so`: a word says that something has changed. `is_plain`: not even a
    number expresses a change. `is_beside`: there is a
    sign against a change, or no word expresses one and the statement is about something else or the world.
    """

    likelihood: float
    is_certain: bool = False
    says_so: bool = False
    is_plain: bool = False
    is_beside: bool = False
    stands_aside: bool = False


_SOON = timedelta(days=30)
"""After so long, a change counts as begun that was announced without a day."""


def begins(text: str, *, told: date) -> date | None:
    """Return the day from which a statement holds that did not hold yet when it was told: "From January the rate will
    be 125". None for other statements.
    """
    named = [each.first for each in dated_phrases(text, today=told) if each.first > told]
    if not named and not _announces(text):
        return None
    return min(named, default=told + _SOON)


def has_begun(text: str, *, told: date, today: date) -> bool:
    """Return whether a statement announces a change for a time that it names, and that time has come.

    >>> text, told = "From July I pay 845", date(2026, 5, 3)
    >>> has_begun(text, told=told, today=told), has_begun(text, told=told, today=date(2026, 8, 1))
    (False, True)
    """
    named = dated_phrases(text, today=told) if _announces(text) else ()
    return any(each.first <= today and each.last >= told for each in named)


def _announces(text: str) -> bool:
    return "future" in cues(text, languages_of(text))


def outdated(facts: Mapping[K, Said], new: Said, *, has_begun: bool = False) -> dict[K, Succession]:
    """Return the facts that a new statement may make outdated, judged by words.

    Going back to an earlier version ("on Slack", "moved to Zulip", "on Slack again") repeats more of it than of the
    latest one, which it changes. So the earlier version does not compete with the later one.

    Args:
        facts: by key, the oldest first.
        has_begun: the time has come from which the new statement holds: "From July I pay 845", in August.
    """
    facts, new = {key: _in_order(said) for key, said in facts.items()}, _in_order(new)
    found = _outdated(facts, new, has_begun=has_begun)
    meant = _of_the_value_told(facts, new[0])
    if len(meant) == len(facts):
        return found
    sure = {key for key, change in found.items() if change.is_certain}
    changes = _outdated(meant, new, has_begun=has_begun)
    return {key: replace(change, is_certain=change.is_certain and key in sure) for key, change in changes.items()}


def _outdated(facts: Mapping[K, Said], new: Said, *, has_begun: bool) -> dict[K, Succession]:
    texts = {key: text for key, (text, _) in facts.items()}
    contexts = by_words(texts, new[0])
    if len(facts) > 1:
        leader = max(contexts, key=lambda key: contexts[key]["lead"])
        earlier, later = _versions_of(leader, facts)
        if later:
            others = by_words({key: text for key, text in texts.items() if key != leader}, new[0])
            contexts |= {key: others[key] for key in later}
        if earlier:
            others = by_words({key: text for key, text in texts.items() if key not in earlier}, new[0])
            contexts[leader] = others[leader]
    found = {key: succession(old, new, contexts[key], has_begun=has_begun) for key, old in facts.items()}
    return {key: change for key, change in found.items() if change}


def _of_the_value_told(facts: Mapping[K, Said], new: str) -> Mapping[K, Said]:
    """Return facts without those about a thing of which another one gives what a newer statement gives as well: its
    place, a time or an amount. "I've moved my office, it's on Park Lane now" changes "My office is on Baker Street",
    not "My office has four desks".
    """
    kinds = _kinds_of_value(new) if len(facts) > 1 else frozenset[str]()
    if not kinds:
        return facts
    after, read = topics(new), {key: topics(text) for key, (text, _) in facts.items()}
    things = {key: said.subject or frozenset(word.stems for word in said.words[:1]) for key, said in read.items()}
    of_thing = {key: thing for key, thing in things.items() if _says(after, thing)}
    given = {key for key, (text, _) in facts.items() if not kinds.isdisjoint(_kinds_of_value(text))}
    meant = {thing for key, thing in of_thing.items() if key in given}
    beside = {key for key, said in read.items() if any(_says(said, thing) for thing in meant)} - given
    return {key: said for key, said in facts.items() if key not in beside}


@cached(maxsize=4_096)
def _kinds_of_value(text: str) -> frozenset[str]:
    """Return which kinds of values a statement about a thing gives: its place, a time, an amount."""
    said, languages = topics(text), languages_of(text[:MAX_CHARS])
    has_time = _tells_time(text[:MAX_CHARS], languages)
    has_amount = bool(said.numbers) and any(not _units(languages).isdisjoint(word.stems) for word in said.words)
    is_moved = "=home" in said.other_senses and not has_time
    found = {"time": has_time and not has_amount, "amount": has_amount, "place": is_moved or _tells_place(text)}
    return frozenset(kind for kind, is_given in found.items() if is_given)


def _tells_time(text: str, languages: LanguageSet) -> bool:
    """Return whether a text has a word of a date, or a time of the day: "Thursdays", "19:30"."""
    words = _WORD.findall(text.lower())
    is_named = not vocabulary(languages).times.isdisjoint(words) or mentions_time(text, languages=languages)
    return is_named or any(map(_CLOCK.fullmatch, words))


def _tells_place(text: str) -> bool:
    """Return whether a clause tells where something is: "it's on Park Lane now", but not "it's on Tuesday"."""
    text = text[:MAX_CHARS].replace("’", "'")
    languages = languages_of(text)
    values = (_CLAUSE_END.split(text[found.end() :])[0] for found in _placed(languages).finditer(text))
    return any(value.strip() and not _tells_time(value, languages) for value in values)


@cached()
def _placed(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.change.placed, r"(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)


def _in_order(said: Said) -> Said:
    """Return a statement with a relation to the speaker before the name: "Ronan, my husband, is a nurse"."""
    return with_relation_first(said[0]), said[1]


def _versions_of(one: K, facts: Mapping[K, Said]) -> tuple[list[K], list[K]]:
    """Return the earlier facts that a fact makes out of date, and the later ones that make it out of date; the words of
    all are compared first, because that is fast.
    """
    topic, keys = topics(facts[one][0]), list(facts)
    near = [key for key in keys if key != one and _share(topic, topics(facts[key][0])) >= _SHARE_OF_A_VERSION]
    place = keys.index(one)
    earlier = [key for key in near if keys.index(key) < place and outdated({key: facts[key]}, facts[one])]
    later = [key for key in near if keys.index(key) > place and outdated({one: facts[one]}, facts[key])]
    return earlier, later


def by_words(facts: Mapping[K, str], new: str) -> dict[K, dict[str, float]]:
    """Return the context of each of some facts that share words with a new one.

    The more facts share words, the less each match means. A word that occurs in few of them means more, and so does a
    fact of which more is repeated than of any other: it leads.
    """
    known = {key: topics(text) for key, text in facts.items()}
    telling = [word.stems for word in topics(new).words if word.worth > _COMMON]
    holders = {stems: [key for key, each in known.items() if each.likeness(stems)] for stems in telling}
    fewest = dict.fromkeys(facts, _MANY)
    for keys in holders.values():
        fewest |= {key: min(fewest[key], float(len(keys))) for key in keys}
    shares = {key: _share(each, topics(new)) for key, each in known.items()}
    best = sorted([0.0, 0.0, *shares.values()], reverse=True)[:2]
    return {
        key: {
            "rivals": _rivals(len(facts) - 1),
            "rarity": 1 - fewest[key] / _MANY,
            "lead": share - best[share == best[0]],
        }
        for key, share in shares.items()
    }


def by_meaning(cosine: float, *, of_old: Sequence[float], of_new: Sequence[float]) -> dict[str, float]:
    """Return the context of two facts among search results.

    Args:
        cosine: of the vectors of the two facts.
        of_old: cosines of the older fact and each other result, as a baseline.
        of_new: cosines of the newer fact and each other older result that may be what has changed: not the same fact of
            somebody else (`are_of_two_people`).
    """
    lead = cosine - max(of_new, default=USUAL)
    return {
        "rivals": _rivals(len(of_old)),
        "meaning": cosine,
        "contrast": cosine - (sum(of_old) / len(of_old) if of_old else USUAL),
        "lead": lead,
        "behind": min(lead, 0.0),
        "nearest": cosine - max(of_old, default=USUAL),
    }


def _rivals(count: int) -> float:
    return min(count / _MOST_RIVALS, 1.0)


def succession(old: Said, new: Said, context: Mapping[str, float], *, has_begun: bool = False) -> Succession | None:
    """Return how a new statement affects an older one on the same topic; None if the topics differ.

    A long older statement says several things ("She lives in Bern and works for the post office"). A new statement may
    change one of them, which is never certain to make the whole outdated. Of a statement about others, only whole
    sentences are compared.

    A statement that is not about the speaker's own life must express a change and name the older statement's topic. The
    result is certain only if, in addition, there is no sign against a change.

    Args:
        context: the features beyond the two texts: `by_words` or `by_meaning`.
        has_begun: the time has come from which the new statement holds.
    """
    old, new = _in_order(old), _in_order(new)
    before = topics(old[0])
    if _are_of_one_event(old[0], new[0]) or (_is_task(new[0]) and not _is_task(old[0])):
        return None  # what is still to be done has changed nothing yet
    found = _succession(old, new, context, has_begun=has_begun)
    if not found and (_has_come_about(old, new) or _ends_what_was_introduced(old, new)):
        return _COME_ABOUT
    if found:
        return found
    after = topics(new[0])
    is_own = before.is_own or after.is_own
    parts = list[tuple[str, str]]()
    if before.length > _SHORT:
        parts = [
            (part, new[0]) for part in (_with_subject(before, old[0], beside=after) if is_own else _sentences(old[0]))
        ]
    clauses = _with_subject(after, new[0], beside=before) if is_own else []
    if len(clauses) > 1 and _AGAINST.isdisjoint(cues(new[0], languages_of(new[0]))):
        parts += [(old[0], clause) for clause in clauses]
    of_parts = [
        _succession((one, old[1]), (other, new[1]), _of_part(context, old[0], one, other), has_begun=has_begun)
        for one, other in parts
    ]
    likeliest = max((each for each in of_parts if each and not each.stands_aside), key=_by_likelihood, default=None)
    is_clear = likeliest is not None and likeliest.says_so and likeliest.likelihood >= _OF_A_PART
    return replace(likeliest, is_certain=False) if likeliest and is_clear else None


_AGAINST: frozenset[Cue] = frozenset(("unchanged", "reported", "asks"))
"""Cues of a statement whose clauses tell no change by themselves: "They say I moved. I still live in Bern"."""


@cached(maxsize=16_384)
def _is_task(text: str) -> bool:
    return states_task(text[:MAX_CHARS])


def _are_of_one_event(old: str, new: str) -> bool:
    """Return whether two statements tell a change of one and the same year in two languages."""
    if any(language in languages_of(new) for language in languages_of(old)):
        return False
    years = [{each for each in topics(text).numbers if _YEAR.fullmatch(each)} for text in (old, new)]
    return bool(years[0]) and years[0] == years[1] and says_change(old) and says_change(new)


def _has_come_about(old: Said, new: Said) -> bool:
    """Return whether a statement says that what had not happened yet has happened, in much the same words: "Tom has not
    paid the rent yet", "Tom paid the rent today".
    """
    if old[1] != new[1] or not denies(old[0], languages_of(old[0])) or denies(new[0], languages_of(new[0])):
        return False
    if "unchanged" not in cues(old[0], languages_of(old[0])):  # "yet"
        return False
    said = cues(new[0], languages_of(new[0]))
    before, after = topics(old[0]), topics(new[0])
    if not all(after.likeness(stems) for stems in before.subject or ()):
        return False
    telling = [word for word in before.words if word.worth > _COMMON]
    shared = sum(after.likeness(word.stems) > 0 for word in telling)
    return said.isdisjoint(_NO_NEWS) and len(telling) > 1 and shared >= len(telling) - (len(telling) > 2)


def _ends_what_was_introduced(old: Said, new: Said) -> bool:
    """Return whether a statement begins with the end of something that the older one introduces by name: "Mogli had to
    be put down" after "We have a cat called Mogli", "Ramipril stopped, now candesartan" after "Pills: ramipril 5 mg".

    If the older one only names a relative, what ended may be anything of theirs: "Mira quit the choir".
    """
    begun = _ended_by_name(new[0][:MAX_CHARS])
    if old[1] != new[1] or begun is None or begun not in _introduced(old[0][:MAX_CHARS].lower()):
        return False
    told = _relatives_only_named(old[0])
    return all(each.predicate in NOT_PEOPLE for each in told)


@cached(maxsize=4_096)
def _ended_by_name(text: str) -> str | None:
    """Return the first word of a statement that begins with an end, but for determiners; None for other statements."""
    languages = languages_of(text)
    clause = _CLAUSE_END.split(text)[0].lower()
    ends = _expressions(languages).kinds_in(clause) & _OF_AN_END
    if not ends or not cues(text, languages).isdisjoint(_NO_NEWS - {"past"} | {"unchanged"}):
        return None
    return next((each for each in _LETTERS.findall(clause) if each not in _words(languages).determiners), "")


def _introduced(text: str) -> set[str]:
    """Return the names that a statement in lower case gives: behind a word for naming ("called Mogli"), at its end
    behind a comma ("two rats, Pixel and Bit"), or behind a label ("pills: ramipril 5 mg").
    """
    languages = all_languages()
    joined, naming = "|".join(languages.in_order(lambda each: each.entities.conjunctions)), _naming()
    found = set[str]()
    words = _LETTERS.findall(text)
    for place, word in enumerate(words):
        if word in naming:
            found.update([each for each in words[place + 1 :] if each not in _function_words()][:1])
    listed = re.search(rf",\s+([^\W\d_]+)\s+(?:{joined})\s+([^\W\d_]+)\W*$", text)
    label = re.match(r"[^\W\d_]+(?:\s[^\W\d_]+){0,3}:\s+([^\W\d_]+)", text)
    return found.union(listed.groups() if listed else (), label.groups() if label else ())


def _introduced_stems(text: str) -> frozenset[str]:
    return frozenset(term for name in _introduced(text.lower()) for term in index_terms(name))


@cached()
def _naming() -> frozenset[str]:
    return all_languages().words(lambda each: each.sentences.naming)


@cached()
def _function_words() -> frozenset[str]:
    return all_languages().words(lambda each: each.function_words)


_NO_NEWS: frozenset[Cue] = frozenset(("unsure", "reported", "future", "asks", "past"))
_COME_ABOUT = Succession(likelihood=0.7, says_so=True)


def _sentences(text: str) -> list[str]:
    """Return the sentences of a statement; none if there is only one."""
    found = [part for _, part in _parts(_SENTENCE_END, text[:MAX_CHARS])]
    return found if len(found) > 1 else []


def _with_subject(said: Topics, text: str, *, beside: Topics) -> list[str]:
    """Return the clauses of a statement (`things_said`). If it is about a relative or somebody named, and the other
    statement does not mention them, the clauses that leave out who it is are left out: "My mother lives in Annecy and
    takes 100 mg".
    """
    clauses = things_said(text)
    others = topics(clauses[0]).people if clauses and not said.is_of_self else frozenset[str]()
    names_other = bool(others) and beside.all_stems.isdisjoint(others)
    if not (names_other or _is_of_other_kin(said, beside)):
        return clauses
    return [each for each in clauses if topics(each).people or speaks_of_themselves(each)]


def _says_change_of(shared: Sequence[TopicWord], text: str) -> bool:
    """Return whether a clause of a text that has a word for change also has one of some words of the text."""
    stems = {stem for word in shared for stem in word.stems}
    return any(
        not topics(each).all_stems.isdisjoint(stems) and says_change(each) for each in things_said(text) or [text]
    )


def _are_of_self_and_kin(before: Topics, after: Topics) -> bool:
    """Return whether one statement is about the speaker, the other about a relative not mentioned in it."""
    own, other = (after, before) if after.is_of_self else (before, after)
    return own.is_of_self and _is_of_other_kin(other, own)


def _is_of_other_kin(said: Topics, beside: Topics) -> bool:
    """Return whether a statement begins with a relative that another one does not mention."""
    if said.is_of_self or not beside.all_stems.isdisjoint(said.others):
        return False
    return bool(said.words) and not _family().isdisjoint(said.words[0].stems)


@cached()
def _family() -> frozenset[str]:
    """Return the stems of the words for relatives in all languages."""
    found = set[str]()
    for language in all_languages():
        for relation, forms in language.kinship.words.items():
            found |= set() if relation in _BEYOND_FAMILY else _terms(forms, [any_of((language.code,))])
        bare = _bare_relatives() & frozenset(language.relations.bare)
        found |= _terms(bare, [any_of((language.code,))])
    return frozenset(found)


def _of_part(context: Mapping[str, float], whole: str, part: str, new: str) -> dict[str, float]:
    """Return the context of one clause of a statement: more of it is repeated than of the whole."""
    more = 0.0 if "meaning" in context else _share(topics(part), topics(new)) - _share(topics(whole), topics(new))
    return {**context, "lead": context["lead"] + more}


def _by_likelihood(found: Succession) -> float:
    return found.likelihood


@cached(maxsize=4_096)
def in_full(text: str) -> str:
    """Return a statement with the word that a short way to say it leaves out.

    >>> in_full("I start at Bosch on Monday"), in_full("We start at nine")
    ('I start work at Bosch on Monday', 'We start at nine')
    """
    for pattern, (full, *_) in languages_of(text[:MAX_CHARS]).endings(lambda each: each.change.in_full):
        text = re.sub(pattern, full, text)
    return text


def things_said(text: str) -> list[str]:
    """Return the clauses of a statement that say something of their own; none if there is only one."""
    text = text[:MAX_CHARS]
    ends = _between_things(languages_of(text))
    parts = [part.strip() for part in ends.split(text)]
    return [part for part in parts if len(part.split()) >= _LEAST_SAID] if len(parts) > 1 else []


@cached()
def _between_things(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of what stands between two clauses: punctuation, or a word for "and"."""
    return languages.pattern(
        lambda each: each.entities.conjunctions, r"[.!?;,…]\s+|\s?:\s+(?=\S+\s+\S+\s+\S)|(?<!\s)\s+(?:[–—-]|{})\s+"
    )


def _succession(old: Said, new: Said, context: Mapping[str, float], *, has_begun: bool) -> Succession | None:
    kind = "meaning" if "meaning" in context else "words"
    weights, least = _coefficients()[kind], _coefficients()["least"]
    if kind == "words" and not _could_tell(context["rivals"], context["rarity"]):
        return None  # too many facts share the words to decide by wording
    before, after = topics(old[0]), topics(new[0])
    shared = [word for word in after.words if before.likeness(word.stems)]
    if kind == "meaning":
        enough = least["meaning" if context["rivals"] else "alone"]
    else:
        enough = least["own words" if _are_of_one_of_mine(before, shared) else "words"]
    if _of_different_people(old, new) or _are_numbered_apart(before, after):
        return None
    if _have_two_holders(before, after) or (not before.is_own and _say_the_same_of_two(before, after)):
        return None  # "Emil is allergic to nuts", "I am allergic to bees"
    if (not shared and before.is_own != after.is_own) or _share_states_of_two(before, after, shared):
        return None
    if not shared and not before.all_stems.isdisjoint(after.other_senses):
        return None  # "I live in Bern", "I moved everything to Obsidian"
    if _share_a_place_only(old[0], before, after) or _restates(old[0], new[0], before):
        return None
    if _gets_something_else(new[0], before, shared) or _changes_something_else(new[0], shared):
        return None
    if _are_amounts_of_two(old[0], new[0], shared):
        return None
    if _share_units_only(new[0], shared) or (_is_long_past(old[0]) and not _takes_back(new[0])):
        return None
    is_of_names = _share_states_only(before, shared)
    if is_of_names and "replaced" not in cues(new[0][:MAX_CHARS], languages_of(new[0])):
        return None  # "I own a Ford", "I sold my Honda"
    known = {**context, **_of_topics(before, after)}
    is_of_world = bool(known["world"])
    if kind == "words" and (
        all(word.worth <= _COMMON or _only_tells_change(word, new[0]) for word in shared)
        or (is_of_world and not known["head"])
        or _likelihood(known | _changed(known["share"], is_of_world=is_of_world), weights) < enough
    ):
        return None
    if shared and kind == "meaning" and all(_only_tells_change(word, new[0]) for word in shared):
        return None  # "I moved the call with Ben", "We moved the desk"
    signs = _of_cues(before, after, new[0], shared, are_apart=bool(known["apart"]))
    if has_begun and signs["future"]:
        signs |= {"future": 0.0, "changes": 1.0, "says so": 1.0}
    found = _together(known, signs)
    likely = _likelihood(found, weights)
    is_doubted = any(found[name] for name in DOUBTS)
    is_idle = not found["changes"] and (
        any(found[name] for name in _IDLE) or (bool(found["unsure"]) and likely < least["unsure"])
    )
    if kind == "meaning" and is_doubted and not is_of_world:
        aside = _likelihood(found, _coefficients()["aside"])
        if aside >= max(likely, least["aside"]) or (is_idle and aside + likely >= least["aside"]):
            return Succession(likelihood=aside, stands_aside=True)
    is_added = bool(found["added"]) and not found["changes"]  # "I am also allergic to nuts" replaces nothing
    if likely < enough or (kind == "words" and (is_idle or is_added or (is_of_world and not found["changes"]))):
        return None
    if are_dates_of_two(old[0], new[0]):
        return None
    is_of_person = shared and context.get("meaning", 0.0) < _ONE_MATTER
    only_names = (
        _only_names_a_relative(old, new, shared)
        or _only_named_a_relative(old, new, after, shared)
        or (is_of_person and _only_names_a_person(old, new, before, after, shared))
    )
    if only_names and not (_takes_back(new[0]) or _is_not_so(before, after, new[0])):
        return None
    is_plain = not found["changes"] and not says_change(new[0])
    is_quiet = is_plain or not (after.is_of_self or _says_change_of(shared, new[0]))
    if is_quiet and _are_of_self_and_kin(before, after):
        return None  # "I take 50 mg", "My mother Ida lives in Bern and takes 100 mg"
    are_two = (is_plain and _are_of_two_things(before, after)) or (
        not found["says so"] and _say_the_same_of_two(before, after)
    )
    if kind == "words" and (are_two or (is_plain and _share_a_value_only(before, shared))):
        return None
    told = [word for word in shared if word.stems not in (after.subject or ())] or shared
    is_clear = bool(found["says so"]) and not (is_doubted or found["denies"] or _is_in_passing(new[0], told))
    is_clear = is_clear and _OF_AN_END.isdisjoint(cues(old[0][:MAX_CHARS], languages_of(old[0])))  # "I passed the test"
    is_certain = likely >= least["certain"] and is_clear and not (is_of_names or _names_several(old[0]))
    if kind == "words" and found["says so"] and context["lead"] >= _ALONE and _is_put_off(old, new, before, after):
        is_certain = not any(found[name] for name in ("denies", "quoted", *AGAINST))
    is_beside = is_doubted or are_two or (is_plain and is_of_world)
    return Succession(
        likelihood=likely, is_certain=is_certain, says_so=bool(found["says so"]), is_plain=is_plain, is_beside=is_beside
    )


def _are_of_one_of_mine(before: Topics, shared: Sequence[TopicWord]) -> bool:
    """Return whether two statements share what both call the speaker's: "My cleaner is Olga", "Maria is my cleaner"."""
    mine = {stem for word in before.words if word.whose == 1 for stem in word.stems}
    return any(word.whose == 1 and not mine.isdisjoint(word.stems) for word in shared)


def _changed(share: float, *, is_of_world: bool) -> dict[str, float]:
    """Return the features of a statement that says that something has changed."""
    return {"changes": 1.0, "says so": float(not is_of_world), "share changes": share}


def _are_numbered_apart(before: Topics, after: Topics) -> bool:
    """Return whether two statements are about things with other numbers: "Invoice 2026-041", "Invoice 2026-047"."""
    one, other = (
        {stem for stems in each.subject or () for stem in stems if stem in each.identifiers} for each in (before, after)
    )
    return bool(one and other) and one.isdisjoint(other)


def _names_several(text: str) -> bool:
    """Return whether a statement may name several things, of which a change can mean one: "a Volvo and a Fiat"."""
    return _joined(languages_of(text)).search(text) is not None


@cached()
def _joined(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.entities.conjunctions, r"(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)


def says_change(text: str) -> bool:
    """Return whether a text contains a word for change, even in a predicate that describes a state: "died in"."""
    return not CHANGES.isdisjoint(_expressions(languages_of(text)).kinds_in(text.lower()))


def _are_of_two_things(before: Topics, after: Topics) -> bool:
    """Return whether a newer statement without a word for change says something else, so that both can be true.

    That is: it is about the value of the older one ("My boss is Karen", "Karen is travelling"), each has a subject of
    its own ("My favorite color is", "My favorite food is"; "I live in", "My parents live in"), or both share only
    their subject ("My sister lives in Leeds", "My sister has two cats").
    """
    theirs, ours = _subject_of(before), _subject_of(after)
    is_of_value = after.length <= _BRIEF and ours != theirs and _says(before, ours) and not any(_said(after, theirs))
    if is_of_value and before.words[0].stems not in ours:
        return True
    if before.subject is None or after.subject is None:
        return False
    if before.subject and after.subject:
        are_apart = not _says(before, after.subject) and not _says(after, before.subject)
        return are_apart or _share_subjects_only(before, after)
    other, one = (after, before) if before.subject else (before, after)
    people = [stems for stems in one.subject or () if not one.others.isdisjoint(stems)]
    shared = [word for word in after.words if before.likeness(word.stems)]
    return len(shared) <= 1 and bool(people) and not any(_said(other, people))  # with more in common, it may be a name


def _is_new(word: TopicWord, text: str) -> bool:
    """Return whether a word for change stands before a word: "our new landlady"."""
    last = text[: word.start].split()[-1:]
    return bool(last) and not CHANGES.isdisjoint(cues(last[0], languages_of(text)))


def _only_names_a_person(old: Said, new: Said, before: Topics, after: Topics, shared: Sequence[TopicWord]) -> bool:
    """Return whether two statements share only a person that the older one is about ("Tom is 34", "Tom left"), or that
    the newer one names beside the speaker ("I met Tom at work", "Tom and I married").

    A number may be a new value of an old one, unless one is in a date: "Zoe marries on 6 May", "I paid Zoe 600 euros".
    """
    shared = _without_the_alike(before, shared, new[0])
    beside = {stem for word in before.words if _is_companion(old[0], word) for stem in word.stems}
    if not before.is_own and says_change(new[0]) and not any(beside.isdisjoint(word.stems) for word in shared):
        return False  # "Guitar with Mr Trane is on Tuesdays", "Mr Trane moved me to Thursday"
    have_numbers = bool(before.numbers and after.numbers)
    if have_numbers and (_is_dated(old[0]) == _is_dated(new[0]) or says_change(new[0])):
        return False
    first = before.subject or {word.stems for word in before.words[:_HEAD]}
    begins = {stem for stems in (*first, *_named_behind(old[0], before)) for stem in stems}
    if before.is_of_self or any(begins.isdisjoint(word.stems) for word in shared):
        is_end = not _OF_AN_END.isdisjoint(cues(new[0][:MAX_CHARS], languages_of(new[0])))
        met = [word for word in before.words if _is_companion(old[0], word) and word.stems not in _subject_of(after)]
        met = [] if says_change(new[0]) else met  # "I bank with Barclays", "I switched from Barclays to Monzo"
        return not is_end and all(
            _is_companion(new[0], word) or any(each.stems == word.stems for each in met) for word in shared
        )
    if any(_is_new(word, new[0]) for word in shared):
        return False
    from ricordo.text.entity_recognition import entities_named  # most searches do without it
    from ricordo.text.names import with_name_capitals

    named = entities_named([with_name_capitals(text[:MAX_CHARS]) for text in (old[0], new[0])])
    people = {stem for each in named if each.type == "person" for stem in index_terms(each.name)}
    titled = _titled_names(new[0][:MAX_CHARS], languages_of(new[0][:MAX_CHARS]))
    people |= {stem for each in titled for stem in index_terms(each["name"])}
    return all(
        word.is_kin or not people.isdisjoint(word.stems) or (have_numbers and _is_capital(new[0], word))
        for word in shared
    )


def _named_behind(text: str, said: Topics) -> list[tuple[str, ...]]:
    """Return the stems of the name behind a relation that a statement begins with: "My neighbour Marta"."""
    pairs = (pair for pair in pairwise(said.words[:_HEAD]) if pair[0].is_kin and _is_capital(text, pair[1]))
    return [name.stems for kin, name in pairs if text[kin.start : name.start].rstrip().isalpha()]


def _without_the_alike(before: Topics, shared: Sequence[TopicWord], new: str) -> Sequence[TopicWord]:
    """Return the shared words of a statement, if a clause tells the change of one of them, without those that only look
    alike and stand in other clauses: "Mira is pregnant", "Mira eats meat again, pregnancy cravings".
    """
    same = [word for word in shared if before.likeness(word.stems) == 1]
    told = [each for each in _parts(_CLAUSE_END, new[:MAX_CHARS]) if says_change(each[1])]
    if not any(_holds_any(same, *each) for each in told):
        return shared
    return [word for word in shared if word in same or any(_holds_any([word], *each) for each in told)]


def _is_capital(text: str, word: TopicWord) -> bool:
    return text[word.start : word.start + 1].isupper()


def _is_companion(text: str, word: TopicWord) -> bool:
    """Return whether a word names who does something with the speaker: "Tom and I married", "I moved with Tom"."""
    if not _is_capital(text, word):
        return False
    known = _words(languages_of(text[:MAX_CHARS]))
    _, *following = _WORD.findall(text[word.start : word.start + _LAST_CHARS].lower())
    said = _WORD.findall(text[max(0, word.start - _LAST_CHARS) : word.start].lower())
    said = [each for each in said if each not in known.determiners]
    is_joined = any(
        len(pair) == 2 and pair[0] in known.conjunctions and pair[1] in known.own
        for pair in (following[:2], said[:-3:-1])
    )
    return is_joined or not known.companions.isdisjoint(said[-1:])


def are_companions(text: str, names: Iterable[str]) -> bool:
    """Return whether a text names some people only beside somebody else, who may be left out: behind a preposition,
    such as "with", except "of".

    >>> are_companions("Lives in Ghent with his boyfriend Pim", ["Pim"]), are_companions("Pim lives in Ghent", ["Pim"])
    (True, False)
    """
    known = _words(languages_of(text[:MAX_CHARS]))
    beside = known.companions | known.theirs | (known.prepositions - known.of - known.conjunctions)
    words = [found.group().lower() for found in _WORD.finditer(text[:MAX_CHARS].replace("’", "'"))]
    places = [_place_of(name.split()[0].lower(), words) for name in names]
    return all(not beside.isdisjoint(words[max(1, place - _BEFORE) : place]) for place in places)


def _place_of(name: str, words: Sequence[str]) -> int:
    """Return where some words have a name, in any case of an inflected language; 0 if they do not have it."""
    stem = name[:-1] if len(name) > _SAME_NAME else name
    forms = (place for place, word in enumerate(words) if word.startswith(stem))
    return words.index(name) if name in words else next(forms, 0)


def _share_states_of_two(before: Topics, after: Topics, shared: Sequence[TopicWord]) -> bool:
    """Return whether two statements share only a state, the speaker's in one and somebody else's in the other: "I work
    at Arup", "Tess works at a hospital"; "My brother lives in Rome", "I moved to Bern".
    """
    is_of_one = [not said.is_of_self or said.people == frozenset() for said in (before, after)]
    if before.is_of_self == after.is_of_self or not all(is_of_one):
        return False
    other = after if before.is_of_self else before
    telling = [word for word in shared if word.worth > _COMMON]  # a month they share is no topic
    states = [word for word in telling if word.stems[-1].startswith("=")]
    if any(word.stems in (other.subject or ()) for word in states):  # "The rent went up to 845" is nobody else's
        return False
    unnamed = [word for word in telling if other.people.isdisjoint(word.stems)]
    return bool(unnamed) and all(word in states for word in unnamed)


def _share_states_only(before: Topics, shared: Sequence[TopicWord]) -> bool:
    """Return whether two statements share only the state of which they name different values: a Skoda, a Kia."""
    marks = _state_values().keys()
    return bool(shared) and all(set() < before.all_stems.intersection(word.stems) <= marks for word in shared)


def _share_a_place_only(old: str, before: Topics, after: Topics) -> bool:
    """Return whether one statement is about a home, the other about a job, and they share but a place: "I work as a
    nurse in Tallinn", "I no longer live in Tallinn".
    """
    of_home, of_work = ([not marks.isdisjoint(said.all_stems) for said in (before, after)] for marks in _HOME_AND_WORK)
    shared = [word for word in before.words if after.likeness(word.stems)]
    return (of_home, of_work) in _OPPOSITE and bool(shared) and _is_in_passing(old, shared)


def _gets_something_else(new: str, before: Topics, shared: Sequence[TopicWord]) -> bool:
    """Return whether a newer statement only tells that somebody got something else, and shares with the older one
    nothing but a value that it names beside that: "My car is a Golf", "We got two tickets for golf"; "My phone is a
    Pixel", "We got two rats, Pixel and Bit".
    """
    text = new[:MAX_CHARS]
    languages = languages_of(text)
    acquired = _acquired(languages)
    if not _only_tells_of_getting(text):
        return False
    subject = {stem for stems in _subject_of(before) for stem in stems}
    values = before.all_stems - subject - _state_values().keys()
    if any(values.isdisjoint(word.stems) for word in shared):
        return False
    apart = [(start, said) for start, said in _parts(_CLAUSE_END, text) if not acquired.search(said.lower())]
    added = [
        each for each in apart if subject_of(each[1]) is None
    ]  # ", Pixel and Bit", not ", the Golf is my son's now"
    return all(any(_holds_any([word], *each) for each in added) or _is_beside(text, word, languages) for word in shared)


@cached(maxsize=4_096)
def _only_tells_of_getting(text: str) -> bool:
    """Return whether all words for a change in a statement say that somebody got something."""
    languages = languages_of(text)
    expressions, acquired = _expressions(languages), _acquired(languages)
    told = [found.group() for cue in CHANGES for found in expressions.find(text.lower(), cue)]
    return bool(told) and all(map(acquired.search, told))


def _changes_something_else(new: str, shared: Sequence[TopicWord]) -> bool:
    """Return whether a newer statement tells the change of something else, and names what it shares with the older one
    only in another clause and beside: "My notes are in Evernote", "The key changed, it is on the note by the door".
    """
    text = new[:MAX_CHARS]
    languages = languages_of(text)
    told = [(start, said) for start, said in _parts(_CLAUSE_END, text) if not CHANGES.isdisjoint(cues(said, languages))]
    if not (shared and told) or any(_holds_any(shared, *each) or topics(each[1]).is_own for each in told):
        return False
    return all(subject_of(said) for _, said in told) and all(
        word.start > told[-1][0] and _is_beside(text, word, languages) for word in shared
    )


def _share_units_only(new: str, shared: Sequence[TopicWord]) -> bool:
    """Return whether two statements share only a unit, and the newer one has no word for change: "20 min of Spanish a
    day", "25 min by bike".
    """
    telling, units = [word for word in shared if word.worth > _COMMON], _units(languages_of(new[:MAX_CHARS]))
    return bool(telling) and all(not units.isdisjoint(word.stems) for word in telling) and not says_change(new)


def _are_amounts_of_two(old: str, new: str, shared: Sequence[TopicWord]) -> bool:
    """Return whether two statements share only the unit in which each gives the amount of another thing: "75 mg of
    thyroxine", "400 mg ibuprofen instead of 200".
    """
    telling = [word for word in shared if word.worth > _COMMON]
    units = frozenset(stem for word in telling for stem in word.stems)
    is_unit = bool(telling) and all(new[: word.start].rstrip()[-1:].isdigit() for word in telling)
    return is_unit and all(_names_what_is_measured(text[:MAX_CHARS], units) for text in (old, new))


def _names_what_is_measured(text: str, units: Set[str]) -> bool:
    """Return whether a text has a word of content before an amount in one of some units, or behind it."""
    text = without_elisions(text, languages_of(text))
    known, said = _words(languages_of(text)), {word.start: word for word in topics(text).words}
    words = [found for found in _WORD.finditer(text) if found.group().lower() not in known.of]
    for before, number, unit, behind in zip([None, *words], words, words[1:], [*words[2:], None], strict=False):
        is_amount = (
            _has_digit(number.group()) and unit.start() in said and not units.isdisjoint(said[unit.start()].stems)
        )
        beside = [said[each.start()] for each in (before, behind) if each and each.start() in said]
        if is_amount and any(word.worth >= 1 and not _has_digit(word.stems[0]) for word in beside):
            return True
    return False


@cached()
def _units(languages: LanguageSet) -> frozenset[str]:
    words = languages.words(lambda each: each.change.units)
    return frozenset(stem for word in words for stem in index_terms(word, languages=languages))


@cached(maxsize=4_096)
def _is_long_past(text: str) -> bool:
    """Return whether a statement begins by saying that it is of an earlier time: "I used to work in a bakery"."""
    low = text[:MAX_CHARS].lower()
    languages = languages_of(text[:MAX_CHARS])
    if not CHANGES.isdisjoint(cues(text, languages)):
        return False  # "I used to smoke, now I vape"
    return any(len(low[: each.start()].split()) <= _HEAD for each in _expressions(languages).find(low, "past"))


def _is_beside(text: str, word: TopicWord, languages: LanguageSet) -> bool:
    """Return whether a preposition stands shortly before a word, and not of an owner or a companion: "on the yellow
    note".
    """
    clause, known = _CLAUSE_END.split(text[: word.start])[-1].lower(), _words(languages)
    of_place = known.prepositions - known.owner_before - known.companions
    return not of_place.isdisjoint(_WORD.findall(clause)[-_BEFORE:])


@cached()
def _acquired(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.change.acquired, r"(?<!\w)(?:{})(?!\w)")


def _restates(old: str, new: str, before: Topics) -> bool:
    """Return whether a clause of a statement repeats an older one: "I work at Kestrel", "I left Arup and work at
    Kestrel".
    """
    if things_said(old):
        return False
    languages = languages_of(new[:MAX_CHARS])
    for part in things_said(new):
        said = topics(part)
        has_state = any(word.stems[-1].startswith("=") for word in said.words)
        is_known = has_state and all(before.likeness(word.stems) for word in said.words)
        if is_known and _share(before, said) >= _SHARE_OF_THE_SAME and cues(part, languages).isdisjoint(_OF_A_CHANGE):
            return not denies(part, languages)
    return False


def are_dates_of_two(old: str, new: str) -> bool:
    """Return whether two statements have dates and are about two things: they share only whose they are ("Anna's flight
    is on 3 June", "Anna's thesis is due on 10 June") or the kind of the event.

    >>> are_dates_of_two("Dentist appointment on 3 May", "Vet appointment on 4 June")
    True
    >>> are_dates_of_two("My appointment is on 3 May", "My appointment is on 4 June")
    False
    """
    if says_change(new) or not (_has_day(old) and _has_day(new)):
        return False
    before, after, kinds = topics(old), topics(new), _kinds_of_event(languages_of(new[:MAX_CHARS]))
    if any(not _DAY_OR_YEAR.fullmatch(each) and ":" not in each for each in before.numbers & after.numbers):
        return False  # "Release 2.4"
    theirs, ours = ([word for word in each.words if word.worth > _NUMBER] for each in (before, after))
    shared = [word for word in ours if before.likeness(word.stems[:1])]
    telling = [word for word in shared if kinds.isdisjoint(word.stems)]
    if any(before.others.isdisjoint(word.stems[:1]) for word in telling):
        return False
    if shared == telling != []:
        return True
    is_other = any(kinds.isdisjoint(word.stems) and not after.likeness(word.stems[:1]) for word in theirs)
    return is_other and any(kinds.isdisjoint(word.stems) for word in ours if word not in shared)


def _has_day(text: str) -> bool:
    """Return whether a statement has a date with a day: not "940 euros a month"."""
    return _is_dated(text) and any(map(_DAY_OR_YEAR.fullmatch, topics(text).numbers))


@cached()
def _kinds_of_event(languages: LanguageSet) -> frozenset[str]:
    words = languages.words(lambda each: each.change.events)
    return frozenset(stem for word in words for stem in index_terms(word, languages=languages))


def _is_put_off(old: Said, new: Said, before: Topics, after: Topics) -> bool:
    """Return whether a statement gives what another one plans a new date, or cancels it, and says nothing else.

    "Dentist on 8 December" is put off by "The dentist is moved to 15 December".
    """
    if not _is_dated(old[0]):
        return False
    verb = _stems_of_cue(new[0], "replaced" if _is_dated(new[0]) else "ended")
    one_sided = [
        *(word for word in before.words if not after.likeness(word.stems)),
        *(word for word in after.words if not before.likeness(word.stems) and verb.isdisjoint(word.stems)),
    ]
    return bool(verb) and all(word.worth <= _NUMBER for word in one_sided)


def _only_tells_change(word: TopicWord, text: str) -> bool:
    """Return whether a word says that something was moved, replaced or ended: two events "were moved to" two days, two
    things "were cancelled". The move of a home, a job and so on is a topic.
    """
    if word.stems[-1].startswith("="):
        return False
    told = _stems_of_cue(text, "replaced", most=_PLAIN_CUE).union(
        *(_stems_of_cue(text, cue, most=1) for cue in _OF_AN_END)
    )
    return not told.isdisjoint(word.stems)


_PLAIN_CUE = 3  # words; "put my sertraline up to" has a topic within


@cached(maxsize=4_096)
def _stems_of_cue(text: str, cue: Cue, *, most: int = MAX_CHARS) -> frozenset[str]:
    """Return the stems of the words that express a change of a kind, in expressions of at most `most` words."""
    text = text.lower()
    said = (found.group() for found in _expressions(languages_of(text)).find(text, cue))
    return topics(" ".join(each for each in said if len(each.split()) <= most)).all_stems


def _is_dated(text: str) -> bool:
    """Return whether a statement has a number and a word of a date, in any language."""
    words = _WORD.findall(text[:MAX_CHARS].lower())
    return any(map(_has_digit, words)) and not vocabulary(all_languages()).anchors.isdisjoint(words)


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _only_names_a_relative(old: Said, new: Said, shared: Sequence[TopicWord]) -> bool:
    """Return whether a newer statement only gives the name of a relative, and the older one says something else about
    them: "My mother is called Eve" after "My mother's birthday is on 3 May".
    """
    if says_change(new[0]) or not any(word.is_kin for word in shared):
        return False
    told = _relatives_only_named(new[0])
    before = {each.predicate for each in stated_relations(old[0][:MAX_CHARS], own_names=())} if told else set()
    return bool(told) and before.isdisjoint(each.predicate for each in told)


def _only_named_a_relative(old: Said, new: Said, after: Topics, shared: Sequence[TopicWord]) -> bool:
    """Return whether an older statement only gives the name of one of the family, and the newer one says something else
    about them: "My girlfriend is called Mira", "Mira is pregnant". What ends between them and the speaker is no such
    thing, nor what ends of a pet: "Mira and I broke up".
    """
    if any(word.is_kin for word in shared):
        return False
    told = _relatives_only_named(old[0])
    names = {stem for each in told for stem in index_terms(each.name)}
    predicates = {each.predicate for each in told}
    if not told or not _BEYOND_FAMILY.isdisjoint(predicates) or any(names.isdisjoint(word.stems) for word in shared):
        return False
    is_end = not _OF_AN_END.isdisjoint(cues(new[0], languages_of(new[0][:MAX_CHARS])))
    return not (is_end and (after.is_own or predicates <= NOT_PEOPLE))


@cached(maxsize=4_096)
def _relatives_only_named(text: str) -> tuple[Stated, ...]:
    """Return the relatives whose names a statement gives, if it says nothing else."""
    told = stated_relations(text[:MAX_CHARS], own_names=())
    names = {stem for each in told for stem in index_terms(each.name)}
    said = topics(text).words
    is_all = all(word.is_kin or word.worth == _COMMON or not names.isdisjoint(word.stems) for word in said)
    return tuple(told) if is_all else ()


def _share_a_value_only(before: Topics, shared: Sequence[TopicWord]) -> bool:
    """Return whether two statements share one word that is not what the older one is about: "I live in Rome", "I am off
    to Rome".
    """
    return len(shared) == 1 and before.subject is not None and before.subject.isdisjoint([shared[0].stems])


def _is_in_passing(text: str, shared: Sequence[TopicWord]) -> bool:
    """Return whether what a statement shares with another one is only a place or the like: "No more trams in Oslo"."""
    known = _words(languages_of(text[:MAX_CHARS]))
    before = (_WORD.findall(text[max(0, word.start - _LAST_CHARS) : word.start].lower()) for word in shared)
    return all(bool(words) and words[-1] in known.prepositions for words in before)


def _share_subjects_only(before: Topics, after: Topics) -> bool:
    shared = {word.stems for word in after.words if before.likeness(word.stems)}
    shared |= {word.stems for word in before.words if after.likeness(word.stems)}
    subjects = [{stem for stems in each.subject or () for stem in stems} for each in (before, after)]
    return not any(subject.isdisjoint(stems) for stems in shared for subject in subjects)


def _says(topics: Topics, words: Collection[tuple[str, ...]]) -> bool:
    """Return whether a statement contains all of some words, and there are any."""
    return bool(words) and all(_said(topics, words))


def _said(topics: Topics, words: Iterable[tuple[str, ...]]) -> list[bool]:
    return [topics.likeness(stems) > 0 for stems in words]


def _subject_of(topics: Topics) -> frozenset[tuple[str, ...]]:
    """Return the subject of a statement, or its first significant word if no verb is recognised."""
    first = [word.stems for word in topics.words[:1]]
    return frozenset(first) if topics.subject is None else topics.subject


def asks_for(question: str, new: str, old: str) -> bool:
    """Return whether a question asks for a newer statement that stands aside, by its words or its kind.

    >>> asks_for("What did I dream?", "I dreamt that I was a pilot", "I am a nurse")
    True
    >>> asks_for("What is my job?", "I dreamt that I was a pilot", "I am a nurse")
    False
    """
    question = question[:MAX_CHARS]
    before, after, asked = topics(old), topics(new), topics(question)
    said = cues(question, languages_of(question)) - {"asks"}
    return not said.isdisjoint(AGAINST) or any(
        word.worth > _COMMON and after.likeness(word.stems) and not before.likeness(word.stems) for word in asked.words
    )


def are_of_one_text(old: Node, new: Node) -> bool:
    """Return whether two facts are of one imported note or file, and of one time: neither changes the other."""
    return old.origin == new.origin == "import" and old.valid_from == new.valid_from and old.session == new.session


def are_of_two_people(old: str, new: str) -> bool:
    """Return whether two facts say the same of the speaker and of somebody else.

    >>> are_of_two_people("Dad's birthday is on 3 May", "My birthday is on 12 June")
    True
    >>> are_of_two_people("I take 50 mg of sertraline", "My doctor raised the sertraline to 75")
    False
    """
    return _say_the_same_of_two(topics(old), topics(new))


def _say_the_same_of_two(before: Topics, after: Topics) -> bool:
    own, other = (after, before) if before.people else (before, after)
    if own.people or not (own.is_own and other.people):
        return False
    said = next((word for word in own.words), None)
    stated = next((word for word in other.words if other.people.isdisjoint(word.stems)), None)
    return said is not None and stated is not None and not set(said.stems).isdisjoint(stated.stems)


def _have_two_holders(before: Topics, after: Topics) -> bool:
    """Return whether two statements are about things of one kind, the speaker's and somebody else's: "My dentist is",
    "Anna's dentist is".
    """
    for mine, theirs in ((before, after), (after, before)):
        own = {word.stems for word in mine.words if word.whose == 1} & (mine.subject or frozenset())
        held = {stem for stems in theirs.subject or () for stem in stems}
        heads = {stem for stems in own for stem in stems}
        if not heads.isdisjoint(held) and not any(word.whose == 1 for word in theirs.words):
            kin = {stem for word in theirs.words if word.is_kin for stem in word.stems}
            if (theirs.others & held) - kin - heads - mine.all_stems:
                return True
    return False


def is_quotation(text: str) -> bool:
    """Return whether a fact is a quotation and nothing else, under the headings of a note.

    >>> is_quotation("Clipping: “I drive a Tesla”"), is_quotation("I said “yes” to the Tesla")
    (True, False)
    """
    return _ONLY_QUOTED.fullmatch(text) is not None


def names_another_thing(question: str, old: str, new: str) -> bool:
    """Return whether a newer statement is about another thing than an older one, whose thing the question names.

    >>> names_another_thing("Who insures my car?", "My car is insured with AXA", "My flat is insured with MAIF")
    True
    >>> names_another_thing("Who insures my car?", "My car is insured with AXA", "We are with MAIF now")
    False
    """
    asked, before, after = topics(question).all_stems, topics(old), topics(new)
    thing, other = (frozenset(stem for stems in _subject_of(said) for stem in stems) for said in (before, after))
    return not (thing & asked).issubset(after.all_stems) and bool(other) and other.isdisjoint(before.all_stems | asked)


def of_another(question: str, facts: Mapping[K, str]) -> set[K]:
    """Return which facts are about somebody else than a question, which is about the speaker ("Where do I live?") or
    about somebody named by role ("When was Dad born?").

    >>> of_another("Where do we live?", {1: "We live in Oslo", 2: "My sister lives in Bergen"})
    {2}
    >>> of_another("Where does my sister live?", {1: "We live in Oslo", 2: "My sister lives in Bergen"})
    {1}
    >>> of_another("What car do I drive?", {1: "I drive a Fiat", 2: "Clipping: “I drive a Tesla, says Jane”"})
    {2}
    """
    asked, quoted = topics(question[:MAX_CHARS]), {key for key, fact in facts.items() if is_quotation(fact)}
    if not (asked.is_own or asked.others):
        return quoted if asks_for_oneself(question) else set()
    read = {key: topics(fact) for key, fact in facts.items()}
    if asked.others:
        return quoted | {key for key, said in read.items() if asked.others.isdisjoint(said.all_stems)}
    return quoted | {key for key, said in read.items() if said.people and asked.all_stems.isdisjoint(said.people)}


def of_another_name(question: str, facts: Mapping[K, str]) -> set[K]:
    """Return which facts have another name than a question, if it is the subject of a fact that has all its names.

    >>> of_another_name("Where does Anna live?", {1: "Anna lives in Oslo", 2: "Her boss Ida lives in Bergen"})
    {2}
    >>> of_another_name("Does Anna live in Oslo?", {1: "Anna lives in Oslo", 2: "Anna lives in Bergen"})
    set()
    >>> of_another_name("When is the call with Ann?", {1: "The call with Ann is at 9", 2: "I moved the call with Ben"})
    {2}
    """
    named = [word for word in topics(question[:MAX_CHARS]).words if word.worth == _NAME]
    read = {key: topics(fact) for key, fact in facts.items()} if named else {}
    meant = [said for said in read.values() if all(map(said.may_name, named))]
    heads = [word for word in named if any(_is_head(word, said) for said in meant)]
    things = _things_with(question)
    return {
        key
        for key, said in read.items()
        if (heads and _has_another_name(said, heads))
        or any(things[thing] != name for thing, name in _things_with(facts[key]).items() if thing in things)
    }


def _things_with(text: str) -> dict[str, str]:
    """Return the things that a text names with a person: "the call with Ann"."""
    found = _thing_with(languages_of(text[:MAX_CHARS])).finditer(text[:MAX_CHARS])
    return {each["thing"].lower(): each["name"] for each in found}


@cached()
def _thing_with(languages: LanguageSet) -> re.Pattern[str]:
    known = _words(languages)
    articles, before = (
        "|".join(map(re.escape, sorted(each))) or NEVER for each in (known.determiners, known.companions)
    )
    return re.compile(rf"(?<!\w)(?i:{articles}) (?P<thing>[^\W\d_]+) (?i:{before}) (?P<name>[^\W\d_a-zа-яё][^\W_]*)")


def _is_head(name: TopicWord, said: Topics) -> bool:
    """Return whether a name stands in the subject of a statement or, if it has none, in its first half."""
    stems = set(name.stems)
    if said.subject:
        return any(not stems.isdisjoint(each) for each in said.subject)
    return any(not stems.isdisjoint(word.stems) for word in said.words[: (len(said.words) + 1) // 2])


def _has_another_name(said: Topics, named: Sequence[TopicWord]) -> bool:
    """Return whether a statement lacks one of some names, and names somebody or something else instead."""
    if said.is_own or all(map(said.may_name, named)):
        return False
    stems = {stem for word in named for stem in word.stems}
    return bool(said.persons) or any(word.worth == _NAME and stems.isdisjoint(word.stems) for word in said.words)


def have_common_topic(one: str, other: str) -> bool:
    """Return whether two statements share a significant word, or name the same kind of state.

    >>> have_common_topic("I live in Bonn", "We moved to Kiel"), have_common_topic("I live in Bonn", "Rex is a poodle")
    (True, False)
    """
    before = topics(one)
    return any(word.worth > _COMMON and before.likeness(word.stems) > 0 for word in topics(other).words)


def share_topic(question: str, old: str, new: str) -> bool:
    """Return whether two statements share a significant word that a question asks for.

    >>> share_topic("When is the review?", "The review is on Monday", "Actually the review moved to Friday")
    True
    >>> share_topic("When is the review?", "The review is on Monday", "I moved to Kiel")
    False
    """
    asked, before, after = topics(question[:MAX_CHARS]), topics(old), topics(new)
    return any(
        word.worth > _COMMON and before.likeness(word.stems) and after.likeness(word.stems) for word in asked.words
    )


def likelihood(old: str, new: str) -> float:
    """Return how likely, by words alone, a new statement makes an older one outdated, from 0 to 1.

    >>> likelihood("I drive a Corolla", "Sold the Corolla last week") > 0.5
    True
    >>> likelihood("I drive a Corolla", "My sister is a vet")
    0.0
    """
    found = features(old, new) | by_words({0: old}, new)[0]
    return _likelihood(found, _coefficients()["words"]) if found["share"] else 0.0


def tells_change(old: str, new: str, *, is_liking: bool = False) -> bool:
    """Return whether a sentence of a conversation tells a change of a known fact, and is not only on its topic.

    People say in passing much that shares a word with a fact. So a clause that says that something has changed must
    name what the fact is about, the sentence must repeat a good part of the fact, and be about nobody else.

    Args:
        is_liking: whether the fact is what somebody likes, which does not end with what they do next.

    >>> tells_change("I drive a Skoda", "I've sold the Skoda")
    True
    >>> tells_change("I drive a Skoda", "My brother sold a Skoda")
    False
    """
    before, after = topics(old), topics(new)
    are_of_one = after.is_of_self or not after.others or any(before.likeness((each,)) for each in after.others)
    if not are_of_one or _share(before, after) < _SHARE_OF_A_VERSION:
        return False
    text = new[:MAX_CHARS].replace("’", "'")
    shared, languages = [word for word in after.words if before.likeness(word.stems)], languages_of(text)
    told = [cues(clause, languages) for start, clause in _parts(_CLAUSE_END, text) if _holds_any(shared, start, clause)]
    told.append(cues(text, languages) & {"corrected"})  # "No, that's wrong: I live in Bergen"
    signs = CHANGES if not is_liking else _OF_AN_END
    return any(not each.isdisjoint(signs) for each in told) and likelihood(old, new) >= _AS_LIKELY_AS_NOT


def _likelihood(found: Mapping[str, float], weights: Mapping[str, float]) -> float:
    total = weights["bias"] + sum(weights.get(name, 0.0) * value for name, value in found.items())
    return 1 / (1 + exp(-total))


def _of_different_people(old: Said, new: Said) -> bool:
    """Return whether two people speak of themselves, and neither names the other."""
    if old[1] == new[1] or not (topics(old[0]).is_own or topics(new[0]).is_own):
        return False
    named = (old[1] or "").casefold(), (new[1] or "").casefold()
    return not ((named[1] and named[1] in old[0].casefold()) or (named[0] and named[0] in new[0].casefold()))
