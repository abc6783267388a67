"""The schema of a language file: one dataclass per table of the file, and the reader that checks it.

Files are TOML. Only `code`, `name` and `script` are required: rules that need a missing field do not apply to the
language. `docs/reference/languages.md` describes every field.
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
"""In a file: one string of words separated by blanks, or an array of words and phrases."""

Patterns = Annotated[tuple[str, ...], "patterns"]
"""In a file: one regular expression, or an array of alternatives. `<NAME>` stands for `parts.NAME` of its table."""

Endings = tuple[tuple[str, Words], ...]
"""In a file: an array of `[ending, replacements]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """The letters of a language, and its inflection.

    Attributes:
        contractions: words whose apostrophe many people leave out, if no other word is spelled like that: "don't", but
            not "we're". All words and patterns of the file are read with and without it.
    """

    inflected: str = ""
    folds: Mapping[str, str] = field(default_factory=dict)
    latin_lookalikes: Mapping[str, str] = field(default_factory=dict)
    has_capital_nouns: bool = False
    elided: Words = ()
    contractions: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Words around names, and the inflection of names. `given` are common given names, `words` those of any language
    that are words of this one in lower case, `words_elsewhere` those of which this holds unless a relation is stated.
    `possessive` is the ending of a name's possessive form without an apostrophe ("Lauras"). A name behind one of
    `places_before`, or before one of `places_behind`, is part of a place's name: "st george", "karl heine str".
    `degrees` are the titles that tell what somebody is: two people with "Dr" may be alike, two with "Mrs" are not.
    """

    given: Words = ()
    words: Words = ()
    words_elsewhere: Words = ()
    also_words: Words = ()
    not_names: Words = ()
    titles: Words = ()
    degrees: Words = ()
    possessive: str = ""
    places_before: Words = ()
    places_behind: Words = ()
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
    """Statements of a relation to the speaker: "my wife is Sarah", "my wife Sarah left"; and of its end (`endings`,
    which are read only in texts with one of `ending_cues`; those that name no relation end that of a couple, those
    without any name a marriage). `deaths` say that somebody died, and are read in the same texts. `counts` are words
    before a relation that show several people: "two sons", "мои дочери". `have` names them as <COUNT>. `also_friends`
    are words for somebody's partner that also mean a friend. `new` tells that somebody took a relation over.
    `reporting` is what stands behind a name that is only the source of a statement about something else: "wrote that".
    """

    words: Mapping[str, Words] = field(default_factory=dict)
    plurals: Mapping[str, Words] = field(default_factory=dict)
    reporting: Patterns = ()
    whole: Mapping[str, Words] = field(default_factory=dict)
    new: Patterns = ()
    bare: Words = ()
    before_bare: Words = ()
    have: Patterns = ()
    counts: Patterns = ()
    titles: Words = ()
    kinds_behind: Patterns = ()
    possessives_behind: Patterns = ()
    feminine: Patterns = ()
    also_friends: Words = ()
    leads: Patterns = ()
    mine: Patterns = ()
    forms: Patterns = ()
    links: Patterns = ()
    pronouns: Mapping[str, str] = field(default_factory=dict)
    others: Patterns = ()
    own_verbs: Patterns = ()
    next_words: Patterns = ()
    not_stated: Patterns = ()
    asking: Patterns = ()
    afterthoughts: Patterns = ()
    unreal: Patterns = ()
    fiction: Patterns = ()
    stories: Patterns = ()
    past: Patterns = ()
    also_names: Words = ()
    not_people: Words = ()
    no_names: Patterns = ()
    name_ends: Words = ()
    doubt: Patterns = ()
    doubt_endings: Patterns = ()
    labels: Words = ()
    abstract: Patterns = ()
    alias_cues: Words = ()
    aliases: Patterns = ()
    ending_cues: Words = ()
    endings: Patterns = ()
    deaths: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """Words and patterns for dates and times.

    Attributes:
        bare_years: whether a year in a question about the past needs no preposition: "Wo waren wir 2021?".
        year_neighbours: words beside which a number is a year: "our 2018 trip", "Christmas 2019", "around 2015".
        numeric: patterns of a date in figures with what stands before it: "am 3.12.", "le 3/12/2026". <D>, <M> and <Y>
            are the figures of the day, the month and the year, in this order.
        mornings: words for "tomorrow" that also mean the morning: "mañana".
        hours: words after a number that make it a time of day: "Friday 9 am", "Freitag 18 Uhr".
        weekday_lists: lists of short weekdays, which tell a habit: "mon wed fri".
        each_week: articles with which a weekday is every one: "los" in "los lunes".
        since: what a time that has come follows: "since Monday", not "from Monday".
        since_or_from: what a time follows that has come or is to come: "da lunedì". It lists words of
            `since`, too, that mean a time to come in a sentence about the future: "desde el lunes trabajaré".
        upcoming: questions about what is to come, without a day: "What is coming up?".
        yearly: what comes back every year, also if it is told with its year: "was born on 3 May 2015".
    """

    table: str = ""
    phrases: Mapping[str, str] = field(default_factory=dict)
    ordinals: Patterns = ()
    numeric: Patterns = ()
    future: Words = ()
    future_endings: Words = ()
    past: Words = ()
    present: Words = ()
    planned: Words = ()
    mornings: Words = ()
    weekday_lists: Patterns = ()
    each_week: Words = ()
    since: Patterns = ()
    since_or_from: Patterns = ()
    loose: Words = ()
    now: Words = ()
    clock_ago: Patterns = ()
    bare_years: bool = False
    year_neighbours: Words = ()
    sides: Mapping[str, str] = field(default_factory=dict)
    idioms: Mapping[str, str] = field(default_factory=dict)
    clock: Patterns = ()
    hours: Words = ()
    short_units: Mapping[str, str] = field(default_factory=dict)
    end_of: Patterns = ()
    never: Words = ()
    written: str = ""
    months: Words = ()
    months_alone: Words = ()
    reminders: Patterns = ()
    reminder_leads: Patterns = ()
    reminder_openings: Words = ()
    upcoming: Patterns = ()
    yearly: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """Signs that a statement is temporary or lasting. Patterns match anywhere in a statement, ignoring case.

    Attributes:
        lasting: habits, duties, medicines and conditions: such a statement never expires by itself.
        begins: what begins on the day that a statement names.
        happened: what arrived, was received or was signed: said of today, it happened, and does not expire.
        past: signs that a statement is about the past.
        arranged: words before a date for which something was arranged, "for" in "tickets for 14 January". Such a date
            is a coming one even in a statement about the past.
        own: signs that a text is in this language and not in one without rules that writes some dates in the same way:
            "op 12 december". Without a sign, a date in a calendar sets no lifetime. Empty for languages that are
            recognised by their words. Case matters.
        states: states that end by themselves: by the number of days that they last at most, how such a statement
            begins: "I'm pregnant".
    """

    parts: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    own: Patterns = ()
    lasting: Patterns = ()
    begins: Patterns = ()
    happened: Patterns = ()
    past: Patterns = ()
    arranged: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """Words for the rule that decides whether a fact replaces another. All are compared folded, in lower case."""

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
    contrasts: Words = ()
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
    """Patterns for statements that report a change, or that nothing changed. They match complete words in lower case.

    Attributes:
        no_longer: denials of an earlier state: no longer, not any more.
        ended: verbs and phrases for an end without a successor: quit, sold, died.
        replaced: a change to something else: switched, moved, instead.
        acquired: those words of `replaced` that say only that somebody got something: bought, new.
        units: words behind a number that say nothing of what is counted: minutes, euros.
        now: the present as opposed to the past: these days, since Monday.
        corrected: an earlier statement was wrong: correction, I meant.
        taken_back: what was said was a joke or a lie, or does not take place: kidding about, is not happening. It
            counts as corrected, whatever else the words say.
        not_so: words by which a denial that names nothing new counts as corrected: after all, actually.
        added: an addition to what is known: also, another.
        unchanged: nothing changed: still, not yet.
        unsure: a guess, a wish, a condition, a plan without a date.
        reported: the content of a book, a dream or a joke, or what other people say.
        past: an earlier time. `future`: a change that is settled for a later time.
        same: groups of words about one thing of which people have one, by its name: live, moved, reside.
        of_self: such groups that count only in what people say of themselves: "I am a teacher".
        not_same: phrases whose words do not belong to these groups: "moved the studio".
        placed: what stands before the place where something is: is in, lies on.
        own_beginnings: beginnings of statements that omit I or we: "Sold the car".
        own_endings, other_endings: how verbs that say I or we end, and how other words do that look like them: the
            longest ending of a word decides, "_" is its beginning. Without them, each word of `own_beginnings` counts.
        before_own_verbs: what may stand before such a verb: "В мае переехала", "машину продал".
        anybodys_beginnings: those of them whose verb shows no person.
        owner_before: prepositions before an owner ("у Риты").
        owner_ending: the ending of an owner that stands before the thing owned ("Emils Schloss").
        theirs: words for someone else's things: his, her, their.
        pronouns: the pronouns of somebody or something else as a subject: she, they.
        in_full: patterns of short ways to say a thing, and the same with the word that is meant: "I start at Bosch" is
            "I start work at Bosch".
        companions: prepositions before a person who does something with the speaker: with.
        denials: further words that deny, besides those of `statements`: nobody, nothing.
        kin: further words for people by their relation to someone, in all their forms.
        common: words so frequent that sharing one does not mean that two statements have the same topic.
        events: words for kinds of events, and for arranging and attending them. Two statements with dates that share
            only these are about two events: "Dentist appointment on 3 May", "Vet appointment on 4 June".
    """

    no_longer: Patterns = ()
    ended: Patterns = ()
    replaced: Patterns = ()
    acquired: Patterns = ()
    units: Words = ()
    now: Patterns = ()
    corrected: Patterns = ()
    taken_back: Patterns = ()
    not_so: Patterns = ()
    added: Patterns = ()
    unchanged: Patterns = ()
    unsure: Patterns = ()
    reported: Patterns = ()
    past: Patterns = ()
    future: Patterns = ()
    same: Mapping[str, Words] = field(default_factory=dict)
    of_self: Mapping[str, Words] = field(default_factory=dict)
    not_same: Patterns = ()
    placed: Patterns = ()
    own_beginnings: Patterns = ()
    own_endings: Words = ()
    other_endings: Words = ()
    before_own_verbs: Patterns = ()
    anybodys_beginnings: Patterns = ()
    owner_before: Words = ()
    owner_ending: str = ""
    theirs: Words = ()
    pronouns: Words = ()
    in_full: Endings = ()
    companions: Words = ()
    denials: Words = ()
    kin: Words = ()
    common: Words = ()
    events: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """Words at the beginning of sentences, marks of jokes, and words for the speaker.

    Attributes:
        jokes: what says that a sentence, or the one before, is not meant: "just kidding", "/s". Ignores case.
        laughs: what says so at the end of a sentence or after it: "lol", "haha".
        after_ordinals: words before which the full stop of a number ends no sentence: "3. Mai".
        we_verbs: verbs in the first person plural, where people leave "we" out: "Temos", "Решили".
        to_oneself: verbs that end in a word for "me": Spanish "darme", Italian "darmi".
        we_words: other words for "we" in conversation, which may also mean anybody: French "on".
    """

    leads: Patterns = ()
    jokes: Patterns = ()
    laughs: Patterns = ()
    self_words: Words = ()
    speakers: Words = ()
    user_words: Words = ()
    abbreviations: Words = ()
    after_ordinals: Words = ()
    first_person: Words = ()
    first_person_plural: Words = ()
    we_verbs: Patterns = ()
    to_oneself: Patterns = ()
    we_words: Words = ()
    number_words: Words = ()
    naming: Words = ()
    having: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Persons:
    """How a statement about a person is rephrased in the first person: "The user works", "I work".

    `i` is empty where people leave it out: "Trabajo en Acme". `named` are statements of the user's own name, <NAME>;
    each has one of the words `naming`. People ask what is known about themselves by the phrases of `oneself` and by
    `sentences.user_words`. `address` are statements about how to talk to the user: in which language, how briefly.
    """

    i: str = ""
    subject: Patterns = ()
    forms: Endings = ()
    own: Endings = ()
    between: Words = ()
    verbs: Mapping[str, str] = field(default_factory=dict)
    endings: Endings = ()
    contractions: Endings = ()
    named: Patterns = ()
    naming: Words = ()
    oneself: Words = ()
    address: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Things that people have one of at a time: names that models give them, and words in statements about them.

    Attributes:
        clauses: patterns of normalised words before a value that have other words between them: "bought a house in".
        finders: words of such clauses that find statements of the slot.
        at_employer: words between a profession and an employer: "an engineer at Arup".
    """

    labels: Mapping[str, Words] = field(default_factory=dict)
    said: Mapping[str, Words] = field(default_factory=dict)
    clauses: Mapping[str, Patterns] = field(default_factory=dict)
    finders: Mapping[str, Words] = field(default_factory=dict)
    at_employer: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainStatements:
    """Statements clear enough to be kept without a model.

    Attributes:
        unsaid: beginnings of what asks to forget something that was told, also as an agent reports it ("the user asked
            me to forget"), or not to remember what follows.
        answering: lasting wishes about how the assistant answers.
        task: orders to work on a text or to play a part: what follows in the message tells nothing.
        life: what people say about their lives, themselves or their relatives: diets, moves, jobs, marriages, contacts,
            habits. It begins a sentence or a part of one, and two words are enough.
    """

    parts: Mapping[str, str] = field(default_factory=dict)
    task: Patterns = ()
    doubtful: Patterns = ()
    vague: Patterns = ()
    leads: Patterns = ()
    please: Words = ()
    remember: Patterns = ()
    commitment: Patterns = ()
    decision: Patterns = ()
    unsaid: Patterns = ()
    answering: Patterns = ()
    preference: Patterns = ()
    opinion: Patterns = ()
    life: Patterns = ()
    fact: Patterns = ()
    will: Patterns = ()
    unlikely: Patterns = ()
    tails: Patterns = ()
    loose_ends: Patterns = ()
    context: Patterns = ()
    passing: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entities:
    """Words that show whether a name is a person's, an organisation's, a project's or a place's.

    `bodies` are last words of an organisation's name ("Hollow Lab") or, in a language that joins words, endings of it
    ("Pestalozzischule"); `bodies_first` first words of one ("Kita Regenbogen").
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
    bodies_first: Words = ()
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
    """How a statement names people by their roles or their acts.

    Attributes:
        sure: forms that state a person's role. <NAME> is a name, <NAMES> one to three, <ROLE> a word for a relative, a
            profession or another role, <TITLE> a title, <LEAD> the opening of a sentence, <BETWEEN> words in between.
        likely: forms that state a person's act: <DOES> is its verb. Ordinary words are not accepted as names there.
        roles: roles besides those of `kinship` and `entities`; `compounds` patterns of more.
        does: verbs for acts of people; `between` words between a name and the statement about it.
        titles: words that stay with a name: Frau, Onkel. `no_names` words that are not names.
        animals: words for pets: a name beside one is not a person's.
        feminine: endings of words for women; `feminine_cases`, `masculine_cases` pairs of endings, in another case and
            in the nominative, of a name after such a word.
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
    """Patterns of orders to an assistant."""

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
    """Patterns and words of questions.

    Attributes:
        present: what asks for the present state: "now", "currently".
        of_asking: what asks about questions of the user: "what did I ask".
        manner: what asks how something is done.
        of_identity: what asks who somebody is, before a name.
        of_asker: whole questions for all that is known about who asks: "what do you know about me", "who am I".
        of_people: whole questions for the list of known people: "who do you know".
        of_changes: what asks for changes of any kind: "what has changed lately".
        before: what stands before an event up to which a state is asked for: "before I moved".
    """

    present: Patterns = ()
    before: Patterns = ()
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
    of_asking: Patterns = ()
    of_asker: Patterns = ()
    of_people: Patterns = ()
    manner: Patterns = ()
    of_identity: Patterns = ()
    of_changes: Patterns = ()
    of_assistant: Patterns = ()
    of_both: Patterns = ()
    causal: Patterns = ()
    exemplars: Mapping[str, Words] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTalk:
    """Messages that need no memory, and follow-up questions about what was just said."""

    phrases: Patterns = ()
    fillers: Words = ()
    idle: Patterns = ()
    follow_ups: Words = ()
    referring: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What must not be missed about a topic, such as an allergy when somebody cooks.

    A prompt with one of the words `asked` is on the topic; if `of_oneself`, only in the first person: not "How do
    vaccines work?". A fact belongs to it with one of the words `stated`, or with one of `denied` in a negated sentence
    ("Nora does not eat fish"), unless all that it names is `elsewhere`: an allergy to penicillin for a meal.
    `forbidden` finds questions for such facts: "What can't Nora eat?". Two words of `asked` are joined by "_".
    """

    asked: Words
    stated: Words
    denied: Words = ()
    elsewhere: Words = ()
    forbidden: Patterns = ()
    of_oneself: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A thing of which people have one at a time, in questions; it adds to the group of its name in `change.same`.

    A question with one of the words `asked` is about it: "What car do I drive?"; its `verbs` say nothing more. One of
    `values` in a statement says which one it is: "We picked up a Skoda". Names count in every language. `told` is how
    people tell which one it is without any of these words: "I teach chemistry".
    """

    asked: Words = ()
    verbs: Words = ()
    values: Words = ()
    told: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Personal:
    """Words before a number that name it as a `phone` number or as a personal `document`."""

    phone: Words = ()
    document: Words = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How people who work together state decisions, rules and tasks.

    `decided` and `rules` are words by which such facts are looked up. The patterns find statements in messages to a
    coding agent: decisions, rules and remaining tasks. `cause` finds reasons for failures in the agent's answers. A
    sentence with a match of `unsure` states nothing, unless a word of `contrast` follows.
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
class Tasks:
    """How people say what they still have to do.

    `duties` find a duty or a reminder in a sentence, `promises` what somebody will do for others ("I promised to call
    Mum"), `notes` a whole sentence that somebody notes for themselves, such as "Buy milk". A sentence with a match of
    `lasting` states a habit, a rule or no duty at all. What stands before `withdrawn` ("oh wait") is no task. `asked`
    finds questions for what is still to be done.
    """

    parts: Mapping[str, str] = field(default_factory=dict)
    duties: Patterns = ()
    promises: Patterns = ()
    notes: Patterns = ()
    lasting: Patterns = ()
    withdrawn: Patterns = ()
    asked: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Headings:
    """The headings of notes that people keep for an assistant, in lower case. `people` and `things`: the headings below
    them, or the notes in a folder of that name, are each about one. `person_tags`: the tags of a note about a person.
    `thing_words`: words in the name of a note about something else. `conflicts`: what a file syncer calls the second
    copy of a file that was changed on two devices. `clippings`: folders of pages of the web.
    """

    clippings: Words = ()
    nameless: Words = ()
    people: Words = ()
    things: Words = ()
    person_tags: Words = ()
    thing_words: Words = ()
    conflicts: Words = ()
    self: Words = ()
    about: Words = ()
    categories: Mapping[str, Words] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """What shows that a statement made in a project is about its user, or about the project.

    Attributes:
        user: the user or something of theirs as the first words of a statement: the user's, my.
        here: words that limit a statement to the project: in this repo. <PROJECT> stands for its name.
        things: what a project consists of, and who works on it: tests, the team. Words are complete, in any case.
    """

    user: Patterns = ()
    here: Patterns = ()
    things: Patterns = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """All tables of one language file."""

    code: str
    name: str
    script: str
    is_default: bool = False
    stemmer: str = ""
    function_words: Words = ()
    spoken: Words = ()
    everyday: Words = ()
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
    tasks: Tasks = field(default_factory=Tasks)
    states: Mapping[str, State] = field(default_factory=dict)
    needs: Mapping[str, Need] = field(default_factory=dict)
    personal: Personal = field(default_factory=Personal)
    headings: Headings = field(default_factory=Headings)
    filing: Filing = field(default_factory=Filing)
    categories: Mapping[str, Patterns] = field(default_factory=dict)


def read_language(path: Path, *, is_checked: bool = True) -> Language:
    """Read a language file.

    Args:
        is_checked: whether to compile each pattern to check it; for the package's files, tests do that.

    Raises:
        InvalidError: the file cannot be read or is not TOML, or a field is unknown, missing or of the wrong type; the
            message names the field.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise InvalidError(f"{path.name}: not a readable TOML file: {error}") from error
    reader = _Reader(path.name, is_checked=is_checked)
    if isinstance(letters := raw.get("letters"), dict):
        reader.read_contractions(letters.get("contractions", ""))
    language = reader.table(Language, raw, where="")
    assert isinstance(language, Language)
    return language


class _Reader:
    """Reads the values of a file; errors name the field."""

    def __init__(self, file: str, *, is_checked: bool) -> None:
        self._file = file
        self._is_checked = is_checked
        self._unmarked: dict[str, str] = {}
        self._contraction = _NEVER

    def read_contractions(self, raw: object) -> None:
        """Read the words and patterns that follow with and without the apostrophe of some contractions."""
        words = self._words(raw, "letters.contractions")
        self._unmarked = {each: each.replace("'", "") for each in words}
        written = "|".join(re.escape(each).replace("'", _APOSTROPHE) for each in words)
        self._contraction = re.compile(rf"(?<![a-z\\])(?<!\(\?<[!=])(?:{written})(?![a-z?])") if words else _NEVER

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
        words = raw.split() if isinstance(raw, str) else raw
        if isinstance(words, list) and all(isinstance(each, str) for each in words):
            return (*words, *(self._unmarked[each] for each in words if each in self._unmarked))
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
            pattern = self._contraction.sub(lambda found: _ANY_APOSTROPHE.sub("['’]?", found[0]), pattern)
            if self._is_checked:
                try:
                    re.compile(pattern)
                except re.error as error:
                    raise self._error(f"{where}[{place}] is not a regular expression: {error}") from error
            found.append(pattern)
        return tuple(found)

    def _error(self, message: str, *, hint: str = "") -> InvalidError:
        return InvalidError(f"{self._file}: {message}", hint=hint)


_NEVER = re.compile("(?!)")
_APOSTROPHE = r"(?:['’]|\['’\]|\[’'\])"
_ANY_APOSTROPHE = re.compile(_APOSTROPHE)
_PART = re.compile(r"<([A-Z][A-Z_]*)>")


@cache
def _types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)
