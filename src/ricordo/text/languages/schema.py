"""The schema of a language file: one dataclass for each table of the file, and the reader that checks it.

A file is TOML. Every field may be left out, apart from `code`, `name` and `script`: rules that need a missing field
do not apply to the language. `docs/reference/languages.md` describes every field.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

from ricordo.errors import InvalidError

Words = tuple[str, ...]
"""In a file: one string of words with blanks between, or an array of words and phrases."""

Patterns = Annotated[tuple[str, ...], "patterns"]
"""In a file: one regular expression, or an array of alternatives. `<NAME>` stands for `parts.NAME` of its table."""

Endings = tuple[tuple[str, Words], ...]
"""In a file: an array of `[ending, replacements]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """The letters of a language whose words change their form."""

    inflected: str = ""
    folds: Mapping[str, str] = field(default_factory=dict)
    latin_lookalikes: Mapping[str, str] = field(default_factory=dict)
    has_capital_nouns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names: words around them, and their cases."""

    also_words: Words = ()
    not_names: Words = ()
    titles: Words = ()
    uneven_stems: Mapping[str, str] = field(default_factory=dict)
    stem_ending: str = ""
    declension: Endings = ()
    vowels: str = ""
    fleeing_stems: Mapping[str, str] = field(default_factory=dict)
    fleeing_suffix: str = ""
    fleeing_forms: Words = ()
    fleeing_endings: Words = ()
    oblique: Patterns = ()
    preposition: Patterns = ()
    instrumental_preposition: Patterns = ()
    instrumental: Endings = ()
    locative: Endings = ()
    feminine_instrumental: Endings = ()
    masculine_instrumental: Endings = ()
    masculine_unclear: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinship:
    """Words for the relations of people."""

    words: Mapping[str, Words] = field(default_factory=dict)
    irregular: Mapping[str, Words] = field(default_factory=dict)
    noun_endings: Endings = ()
    adjective_endings: Words = ()
    possessives: Patterns = ()
    beginnings: Words = ()
    kinds: Patterns = ()
    owner_behind: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """Statements of a relation to the speaker: "my wife is Sarah"."""

    leads: Patterns = ()
    mine: Patterns = ()
    forms: Patterns = ()
    name_ends: Words = ()
    doubt: Patterns = ()
    doubt_endings: Patterns = ()
    labels: Words = ()
    abstract: Patterns = ()
    instrumental_verb: str = ""
    feminine_sign: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """The words of time."""

    table: str = ""
    phrases: Mapping[str, str] = field(default_factory=dict)
    ordinals: Patterns = ()
    future: Words = ()
    future_endings: Words = ()
    past: Words = ()
    present: Words = ()
    planned: Words = ()
    loose: Words = ()
    now: Words = ()
    clock_ago: Patterns = ()
    sides: Mapping[str, str] = field(default_factory=dict)
    idioms: Mapping[str, str] = field(default_factory=dict)
    clock: Patterns = ()
    short_units: Mapping[str, str] = field(default_factory=dict)
    end_of: Patterns = ()
    never: Words = ()
    written: str = ""
    months: Words = ()
    months_alone: Words = ()
    reminders: Patterns = ()
    reminder_leads: Patterns = ()
    reminder_openings: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """What passes and what lasts. Patterns are looked for anywhere in a statement, in any case."""

    parts: Mapping[str, str] = field(default_factory=dict)
    lasting: Patterns = ()
    begins: Patterns = ()
    passing: Patterns = ()
    now: Patterns = ()
    past: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """Words that the rule for a fact's successor reads; all are compared folded, in lower case."""

    fillers: Words = ()
    articles: Words = ()
    spellings: Mapping[str, str] = field(default_factory=dict)
    value_first: Patterns = ()
    not_a_value: Words = ()
    also: Words = ()
    also_phrases: Words = ()
    unsure: Words = ()
    unsure_phrases: Words = ()
    unsure_as_written: Words = ()
    past: Words = ()
    past_phrases: Words = ()
    negations: Words = ()
    negated_endings: Words = ()
    copulas: Words = ()
    definite_copulas: Words = ()
    determiners: Words = ()
    prepositions: Words = ()
    of: Words = ()
    possessive_endings: Words = ()
    strict: Patterns = ()
    usual: Patterns = ()
    place_heads: Patterns = ()
    typed: Patterns = ()
    definite: Patterns = ()
    favourite: Patterns = ()
    several: Patterns = ()
    shared: Patterns = ()
    indefinite: Words = ()
    measures: Patterns = ()
    ages: Patterns = ()
    compared: Words = ()
    plain_verbs: Words = ()
    verb: Patterns = ()
    past_verbs: Words = ()
    past_verb: Patterns = ()
    participle: Patterns = ()
    auxiliaries: Words = ()
    dates: Words = ()
    date_beginnings: Words = ()
    countries: Words = ()
    country_beginnings: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a statement says that something changed, or that it did not; patterns of whole words in lower case.

    Attributes:
        no_longer: a denial of what was so: no longer, not any more.
        ended: verbs and phrases of an end without a successor: quit, sold, died.
        replaced: of a change to something else: switched, moved, instead.
        now: the present as opposed to before: these days, since Monday.
        corrected: what was said was wrong: correction, I meant.
        added: it stands beside what is known: also, another.
        unchanged: it is as it was: still, not yet.
        unsure: a guess, a wish, a condition, a plan without a date.
        reported: what a book, a dream, a joke or other people say.
        past: an earlier time. `future`: a change that is settled for a later time.
        same: words that speak of one thing one has one of, by its name: live, moved, reside.
        own_beginnings: how a statement begins that leaves out I or we: "Sold the car".
        owner_before: prepositions before the one that something belongs to ("у Риты").
        owner_ending: how such a word ends where it stands before what belongs to it ("Emils Schloss").
        theirs: words that say that something is someone else's: his, her, their.
        denials: words that deny, besides those of `statements`: nobody, nothing.
        kin: further words for people by what they are to someone, in all their forms.
        common: words so frequent that two statements with one of them need not be about the same.
    """

    no_longer: Patterns = ()
    ended: Patterns = ()
    replaced: Patterns = ()
    now: Patterns = ()
    corrected: Patterns = ()
    added: Patterns = ()
    unchanged: Patterns = ()
    unsure: Patterns = ()
    reported: Patterns = ()
    past: Patterns = ()
    future: Patterns = ()
    same: Mapping[str, Words] = field(default_factory=dict)
    own_beginnings: Patterns = ()
    owner_before: Words = ()
    owner_ending: str = ""
    theirs: Words = ()
    denials: Words = ()
    kin: Words = ()
    common: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """Words at the beginning of sentences, and words for the speaker."""

    leads: Patterns = ()
    self_words: Words = ()
    speakers: Words = ()
    user_words: Words = ()
    abbreviations: Words = ()
    first_person: Words = ()
    number_words: Words = ()
    naming: Words = ()
    having: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Persons:
    """How a statement about somebody reads when they make it themselves: "The user works", "I work"."""

    i: str = ""
    subject: Patterns = ()
    forms: Endings = ()
    own: Endings = ()
    between: Words = ()
    verbs: Mapping[str, str] = field(default_factory=dict)
    endings: Endings = ()
    contractions: Endings = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """What one has one of at a time: the names that models give it, and the words of statements that give its value."""

    labels: Mapping[str, Words] = field(default_factory=dict)
    said: Mapping[str, Words] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainStatements:
    """Statements so plain that they are kept without a model."""

    parts: Mapping[str, str] = field(default_factory=dict)
    doubtful: Patterns = ()
    vague: Patterns = ()
    leads: Patterns = ()
    please: Words = ()
    remember: Patterns = ()
    commitment: Patterns = ()
    decision: Patterns = ()
    preference: Patterns = ()
    opinion: Patterns = ()
    fact: Patterns = ()
    will: Patterns = ()
    unlikely: Patterns = ()
    tails: Patterns = ()
    loose_ends: Patterns = ()
    context: Patterns = ()
    passing: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entities:
    """The words by which a name is known to be a person's, an organisation's, a project's or a place's."""

    cues: Mapping[str, str] = field(default_factory=dict)
    past_endings: str = ""
    adverbs_between: Words = ()
    in_place: Patterns = ()
    unreal: Patterns = ()
    verb_first: Patterns = ()
    names_like_verbs: Words = ()
    no_single: Patterns = ()
    doing: Patterns = ()
    pronouns: Words = ()
    conjunctions: Words = ()
    other: Words = ()
    role_stops: Words = ()
    bodies_with_of: Words = ()
    of: Words = ()
    two_word_bodies: Words = ()
    acting: Words = ()
    adverbs: Words = ()
    bodies: Words = ()
    common: Words = ()
    deeds: Words = ()
    past_deeds: Words = ()
    past_suffix: Patterns = ()
    deed_forms: Words = ()
    word_forms: Endings = ()
    heads: Words = ()
    openings: Words = ()
    place_beginnings: Words = ()
    places: Words = ()
    roles: Words = ()
    things: Words = ()
    ordinary: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """How a statement names people by what they are or do.

    Attributes:
        sure: forms that say what somebody is. <NAME> is a name, <NAMES> one to three, <ROLE> a word for a relative, a
            profession or another role, <TITLE> a title, <LEAD> what opens a sentence, <BETWEEN> words in between.
        likely: forms that say what somebody does: <DOES> is such a verb. An ordinary word is no name there.
        roles: besides those of `kinship` and `entities`; `compounds` patterns of more.
        does: verbs of what people do; `between` words between a name and what is said of it.
        titles: words that stay with a name: Frau, Onkel. `no_names` words that are none.
        animals: words for pets: a name beside one is not a person's.
        feminine: how words for women end; `feminine_cases`, `masculine_cases` the endings of a name behind such a word
            in another case, and the nominative's.
    """

    sure: Words = ()
    likely: Words = ()
    roles: Words = ()
    compounds: Patterns = ()
    does: Patterns = ()
    between: Patterns = ()
    titles: Words = ()
    no_names: Words = ()
    animals: Patterns = ()
    feminine: Patterns = ()
    feminine_cases: Endings = ()
    masculine_cases: Endings = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """Orders to an assistant."""

    parts: Mapping[str, str] = field(default_factory=dict)
    override: Patterns = ()
    standing_order: Patterns = ()
    delayed_trigger: Patterns = ()
    system_prompt: Patterns = ()
    claims_to_be_the_user: Patterns = ()
    sends_data_away: Patterns = ()
    frames: Mapping[str, str] = field(default_factory=dict)
    markers: Mapping[str, Words] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Words of questions."""

    why: Patterns = ()
    when: Patterns = ()
    when_first: Patterns = ()
    when_last: Patterns = ()
    who: Patterns = ()
    what: Patterns = ()
    empty: Patterns = ()
    aggregates: Patterns = ()
    conjunctions: Patterns = ()
    asking: Words = ()
    parts_joined_by: Words = ()
    of_anything: Patterns = ()
    lists: Patterns = ()
    list_verbs: Words = ()
    a_time: Patterns = ()
    a_number: Patterns = ()
    a_name: Patterns = ()
    of_assistant: Patterns = ()
    of_both: Patterns = ()
    causal: Patterns = ()
    exemplars: Mapping[str, Words] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTalk:
    """What asks a memory for nothing, and what asks about what was just said."""

    phrases: Patterns = ()
    fillers: Words = ()
    idle: Patterns = ()
    follow_ups: Words = ()
    referring: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Personal:
    """Words before a number that say what it is: of a `phone`, or of a person's `document`."""

    phone: Words = ()
    document: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How people who work on something together state what holds.

    `decided` and `rules` are words by which such facts are looked up. The patterns find the statements in what is said
    to a coding agent: decisions, rules and what is left to do; `cause` finds why something failed in its answers. What
    is `unsure` states nothing, unless a word of `contrast` follows.
    """

    parts: Mapping[str, str] = field(default_factory=dict)
    decided: Words = ()
    rules: Words = ()
    decision: Patterns = ()
    rule: Patterns = ()
    left: Patterns = ()
    cause: Patterns = ()
    unsure: Patterns = ()
    contrast: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Headings:
    """The headings of notes that people keep for an assistant, in lower case."""

    nameless: Words = ()
    people: Words = ()
    self: Words = ()
    about: Words = ()
    categories: Mapping[str, Words] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """The record of one language."""

    code: str
    name: str
    script: str
    is_default: bool = False
    stemmer: str = ""
    function_words: Words = ()
    name_particles: Words = ()
    letters: Letters = field(default_factory=Letters)
    names: Names = field(default_factory=Names)
    kinship: Kinship = field(default_factory=Kinship)
    relations: Relations = field(default_factory=Relations)
    dates: Dates = field(default_factory=Dates)
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    statements: Statements = field(default_factory=Statements)
    change: Change = field(default_factory=Change)
    sentences: Sentences = field(default_factory=Sentences)
    persons: Persons = field(default_factory=Persons)
    slots: Slots = field(default_factory=Slots)
    plain: PlainStatements = field(default_factory=PlainStatements)
    entities: Entities = field(default_factory=Entities)
    people: People = field(default_factory=People)
    suspicion: Suspicion = field(default_factory=Suspicion)
    questions: Questions = field(default_factory=Questions)
    small_talk: SmallTalk = field(default_factory=SmallTalk)
    work: Work = field(default_factory=Work)
    personal: Personal = field(default_factory=Personal)
    headings: Headings = field(default_factory=Headings)
    categories: Mapping[str, Words] = field(default_factory=dict)


def read_language(path: Path, *, is_checked: bool = True) -> Language:
    """Read the record of a language.

    Args:
        is_checked: compile each pattern to see that it can be; tests do so with the files of the package.

    Raises:
        InvalidError: the file cannot be read, is no TOML, or a field is unknown, missing or of the wrong kind; the
            message names the field.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise InvalidError(f"{path.name}: not a readable TOML file: {error}") from error
    language = _Reader(path.name, is_checked=is_checked).table(Language, raw, where="")
    assert isinstance(language, Language)
    return language


class _Reader:
    """Reads the values of a file; errors name the field."""

    def __init__(self, file: str, *, is_checked: bool) -> None:
        self._file = file
        self._is_checked = is_checked

    def table(self, kind: Any, raw: object, *, where: str) -> object:
        if not isinstance(raw, dict):
            raise self._error(f"{where} has to be a table")
        known = {each.name: each for each in fields(kind)}
        prefix = f"{where}." if where else ""
        if unknown := next((name for name in raw if name not in known), None):
            raise self._error(f"{prefix}{unknown} is no field", hint=f"fields of it: {', '.join(sorted(known))}")
        for name, each in known.items():
            if name not in raw and each.default is MISSING and each.default_factory is MISSING:
                raise self._error(f"{prefix}{name} is missing")
        types, parts = _types(kind), raw.get("parts", {})
        return kind(**{name: self._value(types[name], value, prefix + name, parts) for name, value in raw.items()})

    def _value(self, kind: Any, raw: object, where: str, parts: Mapping[str, str]) -> object:
        if is_dataclass(kind):
            return self.table(kind, raw, where=where)
        if kind in (str, bool):
            if not isinstance(raw, kind):
                raise self._error(f"{where} has to be {'text' if kind is str else 'true or false'}")
            return raw
        if kind == Patterns:
            return self._patterns(raw, where, parts)
        if kind == Endings:
            return self._endings(raw, where)
        if kind == Words:
            return self._words(raw, where)
        if not isinstance(raw, dict):
            raise self._error(f"{where} has to be a table")
        return {key: self._value(get_args(kind)[1], value, f"{where}.{key}", {}) for key, value in raw.items()}

    def _words(self, raw: object, where: str) -> Words:
        if isinstance(raw, str):
            return tuple(raw.split())
        if isinstance(raw, list) and all(isinstance(each, str) for each in raw):
            return tuple(raw)
        raise self._error(f"{where} has to be words: text, or an array of texts")

    def _endings(self, raw: object, where: str) -> Endings:
        try:
            return tuple((str(ending), tuple(map(str, others))) for ending, others in raw)  # type: ignore[attr-defined]
        except (TypeError, ValueError) as error:
            raise self._error(f"{where} has to be an array of [ending, [replacements]]") from error

    def _patterns(self, raw: object, where: str, parts: Mapping[str, str]) -> tuple[str, ...]:
        found = []
        for place, pattern in enumerate((raw,) if isinstance(raw, str) else self._words(raw, where)):
            while any(name[1] in parts for name in _PART.finditer(pattern)):
                pattern = _PART.sub(lambda name: parts.get(name[1], name[0]), pattern)
            if self._is_checked:
                try:
                    re.compile(pattern)
                except re.error as error:
                    raise self._error(f"{where}[{place}] is not a regular expression: {error}") from error
            found.append(pattern)
        return tuple(found)

    def _error(self, message: str, *, hint: str = "") -> InvalidError:
        return InvalidError(f"{self._file}: {message}", hint=hint)


_PART = re.compile(r"<([A-Z][A-Z_]*)>")


@cache
def _types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)
