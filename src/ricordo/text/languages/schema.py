"""The schema of a language file: one dataclass for each table of the file, and the reader that checks it.

A file is TOML. Every field may be left out, apart from `code`, `name` and `script`: rules that need a missing field
do not apply to the language. `docs/reference/languages.md` lists the fields that a new language needs most.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from ricordo.errors import InvalidError

Words = tuple[str, ...]
"""In a file: one string of words with blanks between, or an array of words and phrases."""

Patterns = Annotated[tuple[str, ...], "patterns"]
"""In a file: one regular expression, or an array of alternatives. `<NAME>` stands for `parts.NAME` of its table."""

Endings = tuple[tuple[str, Words], ...]
"""In a file: an array of `[ending, replacements]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """The letters of a language whose words change their form.

    Attributes:
        inflected: the characters of a regular expression's class, lower case: words of these letters have cases.
        folds: letters that are written either way: `{ "ё" = "е" }`.
        latin_lookalikes: letters that look like a Latin one, for text that is disguised with them.
    """

    inflected: str = ""
    folds: Mapping[str, str] = field(default_factory=dict)
    latin_lookalikes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names: words around them, and their cases.

    Attributes:
        also_words: names that are ordinary words, too: they count only where they are capitalised.
        not_names: words that are capitalised without being names: nations, days, titles.
        titles: what stands before a name: Dr, Mrs.
        uneven_stems: stems of cases to the stem of the nominative.
        stem_ending: an ending that the stemmer leaves on some forms of a name.
        declension: endings of a case, and what the nominative may end in instead.
        vowels: the letters a name without an ending cannot end in.
        fleeing_stems: stems of cases whose nominative has another vowel.
        fleeing_suffix: what is left of a suffix in which a vowel flees, `fleeing_forms` what it is in the nominative,
            `fleeing_endings` the endings before which it flees.
        oblique: how words end that are no nominative.
        preposition: what stands right before a name in another case; `instrumental_preposition` before that case.
        instrumental: pairs of an ending of that case and the nominative's, `locative` likewise, of towns.
        feminine_instrumental, masculine_instrumental: the same where the gender is known.
        masculine_unclear: an ending that several masculine names share.
    """

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
    """Words for the relations of people.

    Attributes:
        words: the store's name of a relation (English) to the words for it.
        irregular: forms of a word that the endings below do not give.
        noun_endings: the ending of a noun, and those of its forms; "" applies where no other does.
        adjective_endings: those of the adjective before such a noun ("former wife").
        possessives: my, our; `beginnings` what such a word begins with, or holds.
        kinds: adjectives between the two: dear, older.
    """

    words: Mapping[str, Words] = field(default_factory=dict)
    irregular: Mapping[str, Words] = field(default_factory=dict)
    noun_endings: Endings = ()
    adjective_endings: Words = ()
    possessives: Patterns = ()
    beginnings: Words = ()
    kinds: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """Statements of a relation to the speaker: "my wife is Sarah".

    Attributes:
        leads: what may open such a sentence.
        forms: patterns. <MINE> is "my", an adjective and the relation; <WHAT> the relation, <KIND> the adjective,
            <NAME> the name, <LEAD> what opens a sentence, <END> the end of a name.
        mine: the possessives of <MINE>.
        name_ends: what may follow a name that ends a statement.
        doubt: words that make it no plain statement; `doubt_endings` the same as the end of a word.
        labels: words before a colon that do not make a sentence part of a transcript.
        abstract: endings of words that are not names.
        instrumental_verb: where it is said, the name stands in the instrumental; `feminine_sign` if with this word,
            it is a woman's.
    """

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
    """The words of time.

    Attributes:
        table: lines of a kind, a number and words; the kinds are listed in `text/dates/grammar.py`.
        phrases: several words that are read as one: `"il y a" = "A 0"`.
        ordinals: what makes an ordinal of a number: st, nd.
        future, past, present: words by which a sentence speaks of that time; `future_endings` the same as endings.
        planned: "for" the weekend: plans, and not what was done at it.
        loose: words before an "ago" that is not as long ago as it says: more than.
        now: the present, as a filter; `clock_ago` "3 minutes ago", with the groups count, minutes and hours.
        sides: before, after, through, until, for, in, on: the words for each.
        idioms: a pattern to what it means in the words of the table: half an hour.
        clock: an amount of minutes or hours, with the groups count, minutes and hours.
        short_units: abbreviations of days (0), weeks (1), months (2), years (3).
        end_of: "the end of next week", with the groups which and unit.
        never: words for "never", as an expiry.
        written: how a day is written, with the fields day, month and year; `months` the names of the months there,
            `months_alone` without a day, where they differ.
        reminders: what leads to how long a text asks to be kept: "remember for"; `reminder_leads` what may stand
            before that within a sentence, `reminder_openings` right before it.
    """

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
    """What passes and what lasts. Patterns are looked for anywhere in a statement, in any case.

    Attributes:
        lasting: habits, duties, medicines, conditions, rules: such a statement never expires by itself.
        begins: what begins or stays on the date that it names: a wedding, a new job.
        passing: what is over within days or a few weeks: a cold, a parcel on its way.
        now: what holds for the day or week in which it is said: tonight, this week.
        past: how a statement tells what happened.
    """

    parts: Mapping[str, str] = field(default_factory=dict)
    lasting: Patterns = ()
    begins: Patterns = ()
    passing: Patterns = ()
    now: Patterns = ()
    past: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """Words that the rule for a fact's successor reads; all are compared folded, in lower case.

    Attributes:
        fillers: words that change nothing: now, currently.
        articles: words that tell no two statements apart.
        spellings: variants of one word.
        value_first: patterns of "<value> is the <role> of", with the group is; `not_a_value` words that no value has.
        also, also_phrases: the new fact says itself that it stands beside others.
        unsure, unsure_phrases: not said outright; `unsure_as_written` the same, only as it is written.
        past, past_phrases: no longer so.
        negations: words; `negated_endings` of words: n't.
        copulas: is, are; `definite_copulas` those behind which one thing is asked for.
        determiners, prepositions: words; `of` the preposition of possession; `possessive_endings` the ending: 's.
        strict: before a value of which there is only one: "lives in". A new value replaces the old one.
        usual: before a value of which there is mostly one: "works at".
        place_heads: what may stand between those and a place: "the city of".
        typed: patterns of frames that name the kind of their value.
        definite: how a frame begins or what it holds that names one thing.
        favourite, several, shared: words that say that a frame is of that kind.
        indefinite: the first words of a statement about one of many.
        measures: units after a number that changes; `ages` years old.
        compared: than, more.
        plain_verbs: verbs that no ending tells; `verb` how others look, unless a determiner stands before them.
        past_verbs: words of the past; `past` how others look, `participle` how those look that are none behind a
            copula or one of `auxiliaries`.
        dates, date_beginnings: days, months and seasons; `countries`, `country_beginnings` likewise.
    """

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
        owner_before: prepositions before the one that something belongs to ("у Риты").
        owner_ending: how such a word ends where it stands before what belongs to it ("Emils Schloss").
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
    owner_before: Words = ()
    owner_ending: str = ""
    kin: Words = ()
    common: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """Words at the beginning of sentences, and words for the speaker.

    Attributes:
        leads: what merely leads up to what is said; `self_words` how a fact refers to the speaker, such as "I".
        speakers: how a transcript names the owner of a memory; `user_words` how a model does.
        abbreviations: whose full stop ends no sentence.
        first_person: I, my, us; `number_words` two, half, twice.
        naming: words before or behind a name that is added: named, called; `having` words for having something.
    """

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
class PlainStatements:
    """Statements so plain that they are kept without a model.

    Attributes:
        doubtful: a guess, a wish or a condition; `vague` what only the messages around it explain.
        leads: what opens a sentence and says nothing.
        remember: what tells to keep what follows; `please` what may stand before that.
        commitment, decision, preference, opinion, fact: how such a sentence begins.
        will: "I will"; `unlikely` what makes no promise of it.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entities:
    """The words by which a name is known to be a person's, an organisation's, a project's or a place's.

    Attributes:
        cues: the name of a cue (`text/entity_recognition.py` lists them) to its short patterns, with blanks between; in
            them _ is a blank and ~ stands for `past_endings`.
        adverbs_between: patterns of what may stand between a name and its verb.
        deeds: verbs of what only people do, by their base; `deed_forms` names endings that are a verb's, `past_deeds`
            their irregular past, `past_suffix` the ending of a past that is cut off.
        ordinary: words of the language, without the forms that `word_forms` makes of them.
        The others are lists of words, described where they stand.
    """

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
class Suspicion:
    """Orders to an assistant. Patterns over lower-case text with single blanks; lines stay.

    Attributes:
        markers: for each reason, groups of the first five letters of words: a text without one of each group fits
            none of the patterns. A reason without markers is always looked for.
    """

    parts: Mapping[str, str] = field(default_factory=dict)
    override: Patterns = ()
    standing_order: Patterns = ()
    delayed_trigger: Patterns = ()
    system_prompt: Patterns = ()
    claims_to_be_the_user: Patterns = ()
    sends_data_away: Patterns = ()
    markers: Mapping[str, Words] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Words of questions.

    Attributes:
        why, when, who, what: words that ask for it. `when_first` and `when_last` where they begin or end a question.
        empty: phrases that ask for nothing. `aggregates` ask for many things, `conjunctions` join several.
        asking: words that ask for an answer and do not say about what; `parts_joined_by` words between parts.
        of_anything: patterns said of anything: "tell me". `lists` what asks for several things, `list_verbs` as the
            first word.
        a_time, a_number, a_name: patterns of what asks for a turn that holds one.
        exemplars: questions of known intent, for an embedder; see `retrieval/exemplars.py`.
        causal: words by which something follows from something.
    """

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
    causal: Patterns = ()
    exemplars: Mapping[str, Words] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headings:
    """The headings of notes that people keep for an assistant, in lower case.

    Attributes:
        nameless: those that say nothing; `people` those over people, `self` those over the user.
        about: words before a name: about.
        categories: a category to the headings over such memories.
    """

    nameless: Words = ()
    people: Words = ()
    self: Words = ()
    about: Words = ()
    categories: Mapping[str, Words] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """The record of one language.

    Attributes:
        code: ISO 639-1: "de".
        name: in English.
        script: the first word of its letters' Unicode names: LATIN, CYRILLIC.
        is_default: whether texts of this script are taken for it unless something says otherwise.
        stemmer: a Snowball algorithm; "" leaves words as they are.
        function_words: articles, pronouns, prepositions, auxiliaries, question words: they leave a question.
        name_particles: function words that names have: they tell no language.
        categories: a category to patterns of statements that belong to it.
    """

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
    plain: PlainStatements = field(default_factory=PlainStatements)
    entities: Entities = field(default_factory=Entities)
    suspicion: Suspicion = field(default_factory=Suspicion)
    questions: Questions = field(default_factory=Questions)
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
    language = _table(Language, raw, where="", file=path.name)
    if is_checked:
        _check(language, where="", file=path.name)
    if not isinstance(language, Language):  # for the type checker
        raise TypeError("a language file makes a Language")
    return language


def _table(kind: Any, raw: object, *, where: str, file: str) -> object:
    if not isinstance(raw, dict):
        raise InvalidError(f"{file}: {where} has to be a table")
    known = {each.name: each for each in fields(kind)}
    types = _types(kind)
    prefix = f"{where}." if where else ""
    for name in raw:
        if name not in known:
            raise InvalidError(f"{file}: {prefix}{name} is no field", hint=f"fields of it: {', '.join(sorted(known))}")
    missing = [
        name
        for name, each in known.items()
        if name not in raw and each.default is MISSING and each.default_factory is MISSING
    ]
    if missing:
        raise InvalidError(f"{file}: {prefix}{missing[0]} is missing")
    parts = raw.get("parts", {})
    return kind(
        **{name: _value(types[name], value, where=prefix + name, file=file, parts=parts) for name, value in raw.items()}
    )


_TYPES: dict[type, dict[str, Any]] = {}


def _types(kind: type) -> dict[str, Any]:
    if kind not in _TYPES:
        _TYPES[kind] = get_type_hints(kind, include_extras=True)
    return _TYPES[kind]


def _value(kind: Any, raw: object, *, where: str, file: str, parts: Mapping[str, str]) -> object:
    if is_dataclass(kind):
        return _table(kind, raw, where=where, file=file)
    if kind in (str, bool):
        if not isinstance(raw, kind):
            raise InvalidError(f"{file}: {where} has to be {'text' if kind is str else 'true or false'}")
        return raw
    if get_origin(kind) is Annotated:
        return _patterns(raw, where=where, file=file, parts=parts)
    if kind == Endings:
        return _endings(raw, where=where, file=file)
    if kind == Words:
        return _words(raw, where=where, file=file)
    if not isinstance(raw, dict):
        raise InvalidError(f"{file}: {where} has to be a table")
    _, of = get_args(kind)
    return {key: _value(of, value, where=f"{where}.{key}", file=file, parts={}) for key, value in raw.items()}


def _words(raw: object, *, where: str, file: str) -> Words:
    if isinstance(raw, str):
        return tuple(raw.split())
    if isinstance(raw, list) and all(isinstance(each, str) for each in raw):
        return tuple(raw)
    raise InvalidError(f"{file}: {where} has to be words: text, or an array of texts")


def _endings(raw: object, *, where: str, file: str) -> Endings:
    try:
        return tuple((str(ending), tuple(map(str, others))) for ending, others in raw)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise InvalidError(f"{file}: {where} has to be an array of [ending, [replacements]]") from error


_PART = re.compile(r"<([A-Z][A-Z_]*)>")


def _patterns(raw: object, *, where: str, file: str, parts: Mapping[str, str]) -> tuple[str, ...]:
    found = []
    for pattern in (raw,) if isinstance(raw, str) else _words(raw, where=where, file=file):
        while any(name[1] in parts for name in _PART.finditer(pattern)):
            pattern = _PART.sub(lambda name: parts.get(name[1], name[0]), pattern)
        found.append(pattern)
    return tuple(found)


def _check(record: Any, *, where: str, file: str) -> None:
    """Compile every pattern of a record."""
    types = _types(type(record))
    for each in fields(record):
        value = getattr(record, each.name)
        if is_dataclass(value):
            _check(value, where=f"{where}{each.name}.", file=file)
        for place, pattern in enumerate(value if get_origin(types[each.name]) is Annotated else ()):
            try:
                re.compile(pattern)
            except re.error as error:
                message = f"{file}: {where}{each.name}[{place}] is not a regular expression: {error}"
                raise InvalidError(message) from error
