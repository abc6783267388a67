"""The request of a caller and its validation, the intent and the entities of a question, and the plan of a search.

The intent is why, when, who, what, or general. It changes weights a little and excludes nothing, so a wrong guess costs
little. If there is an embedder, `calibration.Exemplars` guesses the intent by meaning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args
from zoneinfo import ZoneInfo

from ricordo.clock import from_ms
from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import OPEN_TASK, Category, Fusion, Json, Judging, NodeType, Scope
from ricordo.models.embedding import Embedded
from ricordo.storage import Snapshot, entity_meant, session_meant
from ricordo.storage.values import COMPARISONS, Filter, Floor, check_encodable
from ricordo.text.analyzer import (
    QUESTION_MARKS,
    asks_for_oneself,
    begins_with_oneself,
    first_person_words,
    function_terms,
    index_terms,
    language_of_function_words,
    leaves_out_its_subject,
    name_key,
    question_terms,
)
from ricordo.text.canonical import means_owner
from ricordo.text.change import denies, in_full, states_asked, topics
from ricordo.text.dates import Interval, find_interval, parse_instant
from ricordo.text.dates.grammar import asks_what_is_to_come, holds_year, weekdays_in
from ricordo.text.dates.resolution import Span, coming_days, speaks_of_past
from ricordo.text.languages import Expressions, LanguageSet, all_languages, any_of, cached, languages_of
from ricordo.text.languages.schema import Need
from ricordo.text.names import (
    entities_meant_by,
    first_names_in,
    own_relatives,
    relations_asked,
    relations_in,
    runs_in,
    stems_of,
    with_relations,
)
from ricordo.text.passages import names_something
from ricordo.text.prompt_text import without_recalled
from ricordo.text.sentences import plain_sentences, without_elisions, without_jokes
from ricordo.text.tasks import asks_what_to_do

if TYPE_CHECKING:
    from ricordo.models.embedding.scale import Scale
    from ricordo.ports import Vector
    from ricordo.storage.candidates import Naming


MAX_LIMIT = 1_000

_TYPES: frozenset[str] = frozenset(get_args(NodeType)) | {"any"}
_CATEGORIES: frozenset[str] = frozenset(get_args(Category))


KNOWLEDGE, WAITING, CONSOLIDATED = "k", "e", "c"

DEFAULT_SHELVES = (KNOWLEDGE, WAITING)
ALL_EPISODES = (WAITING, CONSOLIDATED)

_SHELVES: Mapping[str | None, tuple[str, ...]] = {
    None: DEFAULT_SHELVES,
    "episodic": ALL_EPISODES,
    "any": (KNOWLEDGE, WAITING, CONSOLIDATED),
    "knowledge": (KNOWLEDGE,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The unvalidated arguments of `search` and `list`."""

    text: str = ""
    type: str | None = None
    category: Category | Sequence[Category] | None = None
    entity: str | None = None
    tag: str | Sequence[str] | None = None
    where: Json | None = None
    session: str | None = None
    after: datetime | str | None = None
    before: datetime | str | None = None
    as_of: datetime | str | int | None = None
    archived: bool = False
    limit: int = 10
    trace: bool = False
    words_only: bool = False
    only_relevant: bool = False
    judge: Judging = False
    why_not: str | None = None
    rerank: bool | None = None
    receipt: bool | None = None
    verb: str = "search"


def query_of(request: Request, *, now: int, zone: ZoneInfo) -> Query:
    """Validate a request and return it as a query.

    Raises:
        InvalidError: an argument is invalid; the message names it.
    """
    if not isinstance(request.text, str):
        raise InvalidError(f"text must be text, not {type(request.text).__name__}")
    if request.type is not None and (not isinstance(request.type, str) or request.type not in _TYPES):
        raise InvalidError(f"type: {request.type!r} is unknown", hint=f"choose one of {', '.join(sorted(_TYPES))}")
    after = _instant("after", request.after, now=now, zone=zone)
    before = _instant("before", request.before, now=now, zone=zone)
    if after is not None and before is not None and after > before:
        raise InvalidError(f"after: {request.after} is later than before: {request.before}", hint="swap the two")
    session = _text("session", request.session)
    is_of_session = request.type is None and session is not None
    return Query(
        # Incomplete characters are accepted. Recalled text in a prompt is not part of the question.
        text=in_full(without_recalled(request.text.encode("utf-8", "replace").decode(), " ")),
        filter=Filter(
            types=() if request.type in _SHELVES else (request.type,),  # type: ignore[arg-type]  # checked above
            shelves=_SHELVES.get("any" if is_of_session else request.type, (KNOWLEDGE,)),
            categories=_categories(request.category),
            tags=_several(request.tag, name="tag"),
            where=_where(request.where),
            session=session,
            after=after,
            before=before,
            archived=bool(request.archived),
        ),
        entity=_text("entity", request.entity),
        limit=checked_limit(request.limit),
        words_only=request.words_only,
        only_relevant=bool(request.only_relevant),
        judge=_judging(request.judge),
        why_not=_text("why_not", request.why_not),
        rerank=_choice("rerank", request.rerank),
    )


def checked_limit(limit: int) -> int:
    """Validate a limit. Raises InvalidError if it is not a whole number from 1 to 1,000."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidError(f"limit: {limit!r} is not a whole number from 1 to {MAX_LIMIT:,}")
    return limit


def checked_name(name: str) -> str:
    """Validate a name and return it. Raises InvalidError if it is not text, or is blank."""
    checked = _text("name", name)
    if checked is None:
        raise InvalidError("name must be text that is not blank")
    return checked


def checked_position(position: int | None, *, name: str) -> int | None:
    """Validate a commit number. Raises InvalidError if it is not a whole number from 1 to 2**62 - 1."""
    if position is None:
        return None
    if isinstance(position, bool) or not isinstance(position, int) or not 1 <= position < 1 << 62:
        raise InvalidError(f"{name}: {position!r} is not a whole number from 1")
    return position


def _instant(name: str, value: datetime | str | None, *, now: int, zone: ZoneInfo) -> int | None:
    return None if value is None else parse_instant(value, now=now, zone=zone, field=name)


def _categories(given: Category | Sequence[Category] | None) -> tuple[Category, ...]:
    names = _several(given, name="category")
    for name in names:
        if name not in _CATEGORIES:
            raise InvalidError(f"category: {name!r} is unknown", hint=f"choose from {', '.join(get_args(Category))}")
    return names  # type: ignore[return-value]  # checked just now


def _choice(name: str, given: bool | None) -> bool | None:
    if given is not None and not isinstance(given, bool):
        raise InvalidError(f"{name} must be true, false or left out")
    return given


def _judging(given: Judging | None) -> Judging:
    if given is not None and not isinstance(given, bool) and given != "if_known":
        raise InvalidError('judge must be true, false or "if_known"')
    return given or False


def _several(given: str | Sequence[str] | None, *, name: str) -> tuple[str, ...]:
    if not isinstance(given, str | Sequence | None):
        raise InvalidError(f"{name} must be text or a list of texts")
    values = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    return tuple(_text(name, value) or "" for value in values)


def _text(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise InvalidError(f"{name} must be text that is not blank")
    check_encodable(value, name=name)
    return value


_DEEPEST = 16
_FORM = 'such as {"price": {"lt": 10}}, or {"or": [{"kind": "a"}, {"not": {"kind": "b"}}]}'


def _check_condition(given: Any, *, path: str, depth: int) -> None:
    """Validate a condition on attributes. Raises InvalidError that names the invalid part."""
    if not isinstance(given, Mapping):
        raise InvalidError(f"{path}: {given!r:.60} is not a condition", hint=_FORM)
    if depth > _DEEPEST:
        raise InvalidError(f"{path}: conditions are nested more than {_DEEPEST} deep", hint="use fewer levels")
    for name, value in given.items():
        if not isinstance(name, str):
            raise InvalidError(f"{path}: the key {name!r:.60} is not text")
        place = f"{path}.{name}"
        if name in ("and", "or") and isinstance(value, list | tuple):
            for number, each in enumerate(value):
                _check_condition(each, path=f"{place}.{number}", depth=depth + 1)
        elif name == "not" and isinstance(value, Mapping):
            _check_condition(value, path=place, depth=depth + 1)
        elif isinstance(value, Mapping):
            _check_comparisons(value, path=place)
        elif not isinstance(value, str | int | float | bool | None):
            raise InvalidError(f"{place}: values are text, numbers, true, false, null or a condition", hint=_FORM)


def _check_comparisons(given: Mapping[Any, Any], *, path: str) -> None:
    if not given:
        raise InvalidError(f"{path}: no operator is given", hint=f"choose from {', '.join(COMPARISONS)}")
    for operator, value in given.items():
        if operator not in COMPARISONS:
            raise InvalidError(
                f"{path}: {operator!r:.60} is not an operator", hint=f"choose from {', '.join(COMPARISONS)}"
            )
        place, is_plain = f"{path}.{operator}", isinstance(value, str | int | float | bool | None)
        is_ordered = isinstance(value, str | int | float) and not isinstance(value, bool)
        if operator == "exists" and not isinstance(value, bool):
            raise InvalidError(f"{place}: {value!r:.60} is not true or false")
        if operator in ("lt", "le", "gt", "ge") and not is_ordered:
            raise InvalidError(f"{place}: {value!r:.60} is neither text nor a number")
        if operator == "in" and not (
            isinstance(value, list | tuple) and all(isinstance(each, str | int | float | bool | None) for each in value)
        ):
            raise InvalidError(f"{place}: {value!r:.60} must be a list of values")
        if operator in ("eq", "ne", "contains") and not is_plain:
            raise InvalidError(f"{place}: {value!r:.60} is neither text, a number, true, false nor null")


def _where(given: Json | None) -> Json | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidError("where must be a JSON object", hint="pass a dict with text keys")
    _check_condition(given, path="where", depth=0)
    try:
        json.dumps(dict(given), allow_nan=False).encode()
    except (ValueError, UnicodeEncodeError) as error:
        raise InvalidError(f"where cannot be written as JSON: {error}") from error
    return given or None


# ---- intent and entities

Intent = Literal["why", "when", "who", "what", "general"]
Complexity = Literal["simple", "complex"]

INTENTS: tuple[Intent, ...] = ("why", "when", "who", "what")
"""The intents that have words and exemplars."""

_LOOKED_AT = 2_000
_LONG = 10
_FEW_TERMS = 4  # a question for a day names little else
_FEWEST_TERMS = 2  # the same for a past day
_NAME_TERMS = 2  # of a person, in a question for their home or job
_DAYS_OF_A_WEEK, _DAYS_OF_A_MONTH = 7, 31
_JOINED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """Question words of some languages, in lower case: patterns that ignore case are 50 % slower.

    Attributes:
        intents: in order; the first match decides: "why did Anna move when she did" asks why. English questions may
            begin with any word ("In which year ..."), so words match anywhere. Words that also join clauses ("when",
            "who", "когда") match only at the beginning.
        empty: phrases without content: "do you know what I mean".
    """

    intents: tuple[tuple[Intent, re.Pattern[str]], ...]
    empty: re.Pattern[str]
    aggregates: re.Pattern[str]
    conjunctions: re.Pattern[str]


_INTENT_PATTERNS = ("why", "when", "when_first", "who", "what", "when_last")


@cached()
def _words(languages: LanguageSet) -> _Words:
    def pattern(field: str, template: str = "{}") -> re.Pattern[str]:
        return languages.pattern(lambda each: getattr(each.questions, field), template)

    words = {field: pattern(field, r"\b(?:{})\b") for field in ("empty", "aggregates", "conjunctions")}
    intents = tuple((field.partition("_")[0], pattern(field)) for field in _INTENT_PATTERNS)
    return _Words(intents=intents, **words)  # type: ignore[arg-type]  # the names begin with the intents


_QUESTION_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def intent_of(text: str) -> Intent:
    """Return the intent of a question by its words.

    >>> intent_of("Why did Anna quit?"), intent_of("В каком году мы переехали?"), intent_of("peanut allergy")
    ('why', 'when', 'general')
    """
    words = _words(languages_of(text[:_LOOKED_AT]))
    asked = words.empty.sub(" ", text[:_LOOKED_AT].strip().lower())
    return next((intent for intent, pattern in words.intents if pattern.search(asked)), "general")


def complexity_of(text: str) -> Complexity:
    """Return "complex" for a question that is long, asks for many things, or joins several; else "simple".

    >>> complexity_of("Where does Anna live?"), complexity_of("List all of Anna's homes")
    ('simple', 'complex')
    """
    words = _words(languages_of(text[:_LOOKED_AT]))
    asked = text[:_LOOKED_AT].lower()
    is_long = len(_QUESTION_WORD.findall(asked)) >= _LONG
    is_joined = len(words.conjunctions.findall(asked)) >= _JOINED
    return "complex" if is_long or is_joined or words.aggregates.search(asked) else "simple"


# ---- small talk and follow-ups

_CLAUSE = re.compile(r"[^.,;:!?¿¡…\n()–—。，！？؟]+")
_SPOKEN_WORD = re.compile(r"[\w+]+(?:['’-][\w]+)*")
# A longer text is a document or a report, and a longer clause has content.
_TALK_CHARS, _TALK_CLAUSES, _TALK_WORDS = 400, 12, 16
_NOD_CHARS = 20  # with 40, REALTALK finds less
_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Talk:
    """Small talk in one language: phrases that begin a clause, filler words between them, and clauses that are small
    talk as a whole; also words of follow-up questions, and words that refer to earlier messages.
    """

    phrases: Expressions[str]
    fillers: frozenset[str]
    idle: Expressions[str]
    has_capital_nouns: bool
    follow_ups: frozenset[str]
    referring: frozenset[str]


@cached()
def _talks() -> tuple[_Talk, ...]:
    return tuple(
        _Talk(
            phrases=Expressions({"": language.small_talk.phrases}, followed_by=r"(?= |\Z)"),
            fillers=frozenset(talk.fillers),
            idle=Expressions({"": language.small_talk.idle}, followed_by=r"\Z"),
            has_capital_nouns=language.letters.has_capital_nouns,
            follow_ups=frozenset(talk.follow_ups),
            referring=frozenset(talk.referring),
        )
        for language in all_languages()
        if (talk := language.small_talk).phrases
    )


@cached(maxsize=1_024)
def asked_in(text: str) -> str:
    """Return a text without greetings, thanks and small talk around its question; "" if there is no question.

    Questions to the assistant about itself and requests for entertainment are also small talk.

    >>> asked_in("Thanks! What can you do?"), asked_in("Hi, what was my sister's address again?")
    ('', "what was my sister's address again?")
    """
    clauses = list(_CLAUSE.finditer(text)) if len(text) <= _TALK_CHARS else []
    spoken = [(each.start(), each.end()) for each in clauses if not _asks_nothing(each.group(), text)]
    if not clauses or len(clauses) > _TALK_CLAUSES or len(spoken) == len(clauses):
        return text
    if not spoken:
        return ""
    end = text.find(next((mark for mark in QUESTION_MARKS if mark in text[spoken[-1][1] :][:2]), "\0"), spoken[-1][1])
    return text[spoken[0][0] : max(spoken[-1][1], end + 1)].strip()


def _asks_nothing(clause: str, text: str) -> bool:
    words = _SPOKEN_WORD.findall(clause.replace("’", "'"))
    if not words or len(words) > _TALK_WORDS:
        return not words
    is_question = any(mark in text for mark in QUESTION_MARKS)
    return any(_is_talk(words, talk, is_question=is_question) for talk in _talks())


def _is_talk(words: Sequence[str], talk: _Talk, *, is_question: bool) -> bool:
    """Return whether a clause is small talk.

    A name may accompany a greeting ("Hello Anna"). Elsewhere a name is the topic of a request ("Write a poem for
    Anna").
    """
    lower = [word.lower() for word in words]
    said = " ".join(lower)
    names_something = not talk.has_capital_nouns and any(len(word) > 1 and word.istitle() for word in words[1:])
    if not names_something and any(talk.idle.matches(said)):
        return True
    begins = [0, *(1 + at for at, char in enumerate(said) if char == " ")]
    left = {0: 0 if is_question else 1}  # position in the clause: how many names may follow
    for number, place in enumerate(begins):
        if place not in left:
            continue
        end, ends = place + len(lower[number]) + 1, dict[int, int]()
        if number and words[number][0].isupper():
            ends[end] = left[place] - 1
        ends |= {found.end() + 1: left[place] for _, found in talk.phrases.matches(said, place)}
        if lower[number] in talk.fillers:
            ends[end] = left[place]
        left.update({each: max(names, left.get(each, 0)) for each, names in ends.items() if names >= 0})
    return len(said) + 1 in left


@cached(maxsize=1_024)
def follows_up(text: str) -> bool:
    """Return whether a text asks about the preceding messages without naming its topic.

    >>> follows_up("And when was that?"), follows_up("When was that trip?")
    (True, False)
    """
    words = {word.lower() for word in _SPOKEN_WORD.findall(text[:_TALK_CHARS].replace("’", "'"))}
    return 0 < len(words) <= _TALK_WORDS and any(
        words <= talk.follow_ups | talk.referring and words & talk.referring for talk in _talks()
    )


@cached(maxsize=1_024)
def told_and_asked(text: str) -> tuple[str, str]:
    """Return what a message tells of its speaker before or after a question, and the question; "" and the whole message
    if it tells nothing, or if the question has no topic of its own.

    >>> told_and_asked("I've got a cat now, what can I cook?"), told_and_asked("My sister has moved. Where to?")
    (("I've got a cat now,", 'what can I cook?'), ('', 'My sister has moved. Where to?'))
    """
    if len(text) > _TALK_CHARS or not any(mark in text for mark in QUESTION_MARKS):
        return "", text
    told, asked = list[str](), list[str]()
    for sentence in plain_sentences(text):
        is_question = any(mark in sentence for mark in QUESTION_MARKS)
        at = _question_behind(sentence) if is_question else len(sentence) if _tells_of_oneself(sentence) else 0
        told.append(sentence[:at].strip())
        asked.append(sentence[at:].strip())
    question = " ".join(filter(None, asked))
    if not any(told) or not _has_topic(question):
        return "", text
    return " ".join(filter(None, told)), question


def _question_behind(sentence: str) -> int:
    """Return where the question begins in a sentence that first tells something of its speaker, else 0."""
    languages = languages_of(sentence)
    subject = _SPOKEN_WORD.match(sentence)
    if subject is None or first_person_words(languages).isdisjoint(re.split("['’]", subject.group().lower())):
        return 0
    questions = (_question_words(languages), *(pattern for _, pattern in _words(languages).intents))
    ends = (comma.end() for comma in _COMMA.finditer(sentence))
    return next((end for end in ends if any(each.match(sentence[end:].lower()) for each in questions)), 0)


@cached()
def _question_words(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(
        lambda each: (*each.questions.manner, *each.questions.a_number, *each.questions.a_name, *each.questions.a_time),
        r"(?:{})(?!\w)",
    )


def _tells_of_oneself(sentence: str) -> bool:
    languages = languages_of(sentence)
    if phrases_of_anything(languages).match(sentence):
        return False
    return begins_with_oneself(sentence) or leaves_out_its_subject(sentence, languages)


def _has_topic(question: str) -> bool:
    """Return whether a question can be understood by itself: it refers to nothing before, and is no "Any ideas?"."""
    words = {word.lower() for word in _SPOKEN_WORD.findall(question.replace("’", "'"))}
    codes = {each.code for each in languages_of(question)}
    referring = (word for each in all_languages() if each.code in codes for word in each.small_talk.referring)
    return len(words) >= _LEAST_WORDS and words.isdisjoint(referring) and bool(question_terms(question))


_COMMA = re.compile(r"[,:;–—-]\s+[¿]?")
_LEAST_WORDS = 3


def is_nod(text: str, intent: Intent) -> bool:
    """Return whether a message only nods, laughs or thanks. If a question asks for nobody, nothing, no time and no
    reason, a nod may answer it, but a laugh does not.

    >>> is_nod("haha ok", "when"), is_nod("at nine", "when"), is_nod("yes", "general"), is_nod("haha", "general")
    (True, False, False, True)
    """
    if not 0 < len(text.strip()) <= _NOD_CHARS or asked_in(text) or names_something(text):
        return False
    return intent != "general" or not without_jokes(text).strip()


# ---- needs


class Needs(NamedTuple):
    """What must not be missed about some topics: index terms anywhere in a fact, and words in a negated one.

    `of_oneself`: only what the speaker needs counts, such as for a medicine, unless the prompt names others.
    `elsewhere`: index terms of what matters for other topics only.
    """

    stated: frozenset[str]
    denied: frozenset[str]
    elsewhere: frozenset[str]
    of_oneself: bool

    @property
    def terms(self) -> tuple[str, ...]:
        """The index terms by which such facts are found."""
        return tuple(sorted(self.stated.union(*map(index_terms, self.denied))))

    def are_in(self, fact: str) -> bool:
        """Return whether a fact states such a need.

        >>> needs = needs_of("What shall I cook?")
        >>> needs.are_in("Nora doesn't eat fish"), needs.are_in("Nora eats fish")
        (True, False)
        """
        is_stated = self._are_denied_in(fact) or not self.stated.isdisjoint(index_terms(fact))
        return is_stated and not self._are_elsewhere_in(fact)

    def warn_in(self, fact: str) -> bool:
        """Return whether a fact says what somebody cannot have, rather than what they take."""
        return self._are_denied_in(fact) or needs_asked(fact) is not None

    def _are_elsewhere_in(self, fact: str) -> bool:
        """Return whether each thing that a fact lists matters elsewhere: "penicillin", not "penicillin and nuts". A
        vegetarian with a cat is no such fact.
        """
        if not _dangers().issuperset(self.stated.intersection(index_terms(fact))):
            return False
        said = (set(index_terms(part)) for part in _parts_listed().split(fact))
        named = [terms for terms in said if terms]
        return bool(self.elsewhere) and not any(self.elsewhere.isdisjoint(terms) for terms in named)

    def _are_denied_in(self, fact: str) -> bool:
        # In any language: a short statement may not tell its own ("Non tollero la penicillina").
        return not self.denied.isdisjoint(_words_in(fact)) and denies(fact.replace("’", "'"), all_languages())


def asks_about_asker(prompt: str) -> bool:
    """Return whether a prompt asks for what is known about who asks, and for nothing else.

    >>> asks_about_asker("Hey, what do you know about me?"), asks_about_asker("What do you know about me and Tom?")
    (True, False)
    """
    return _is_whole(prompt, "of_asker")


def asks_for_people(prompt: str) -> bool:
    """Return whether a prompt asks for the list of known people, in any language with a record.

    >>> asks_for_people("Who do you know?"), asks_for_people("Who works at the museum?")
    (True, False)
    """
    return _is_whole(prompt, "of_people")


def _is_whole(prompt: str, kind: str) -> bool:
    return _whole(kind).fullmatch(prompt[:_LOOKED_AT].replace("’", "'")) is not None


@cached(maxsize=2)
def _whole(kind: str) -> re.Pattern[str]:
    """Return a pattern of the whole questions of a kind, after words such as "hey"."""
    leads = "|".join(all_languages().in_order(lambda each: each.sentences.leads))
    form = rf"\W*(?:(?:{leads})\W+){{0,2}}(?:{{}})\W*"
    return all_languages().pattern(lambda each: getattr(each.questions, kind), form, flags=re.IGNORECASE)


def needs_of(prompt: str) -> Needs | None:
    """Return what must not be missed about the topics of a prompt, such as allergies for a meal; None if nothing.

    >>> needs_of("Suggest a recipe") is None, needs_of("How do vaccines work?") is None
    (False, True)
    """
    prompt = prompt[:_LOOKED_AT]
    words, is_own = _words_in(prompt) | _pairs_in(prompt), asks_for_oneself(prompt)
    languages = languages_of(prompt)
    found = [
        needs
        for topic, asked, needs in _needs()
        if (not asked.isdisjoint(words) and (is_own or not needs.of_oneself))
        or (
            is_own and any(topic in each.needs and not words.isdisjoint(each.needs[topic].stated) for each in languages)
        )
    ]
    if not found:
        return None
    stated, denied, elsewhere = zip(*(needs[:3] for needs in found), strict=True)
    return Needs(
        frozenset().union(*stated),
        frozenset().union(*denied),
        frozenset.intersection(*elsewhere),
        of_oneself=all(needs.of_oneself for needs in found),
    )


@cached(maxsize=1_024)
def needs_asked(question: str) -> Needs | None:
    """Return what a question asks for, if it asks what somebody cannot have, or how healthy they are: "What is Nora
    allergic to?", "Is Nora ill?".
    """
    text = question[:_LOOKED_AT].lower()
    return next((needs for topic, _, needs in _needs() if _forbidden(topic).search(text)), None)


@cached()
def _forbidden(topic: str) -> re.Pattern[str]:
    """Return the pattern of questions for a topic, in every language: many are too short to tell theirs."""
    having = any_of(tuple(each.code for each in all_languages() if topic in each.needs))
    return having.pattern(lambda each: each.needs[topic].forbidden, r"\b(?:{})")


@cached(maxsize=1_024)
def asks_who_it_is(question: str) -> bool:
    """Return whether a question names somebody and asks who they are.

    >>> asks_who_it_is("Who is Priya?"), asks_who_it_is("Who is my doctor?"), asks_who_it_is("Who is late?")
    (True, False, False)
    """
    text = question[:_LOOKED_AT].strip(" \n¿")
    found = _identity(languages_of(text)).match(text)
    if found is None or any(word.is_kin for word in topics(text).words):
        return False
    terms = set(question_terms(text[found.end() :]))
    words = [word for word in _SPOKEN_WORD.findall(text[found.end() :]) if not terms.isdisjoint(index_terms(word))]
    return 0 < len(words) <= _NAME_TERMS and all(word[:1].isupper() for word in words)


@cached()
def _identity(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.of_identity, r"(?:{})(?!\w)", flags=re.IGNORECASE)


def states_need(fact: str) -> bool:
    """Return whether a fact states what must not be missed about some topic, such as an allergy.

    >>> [states_need(fact) for fact in ("Mia is allergic to nuts", "Mia can't eat fish", "Mia is good at chess")]
    [True, True, False]
    """
    if needs_asked(fact):  # in the words of such a question
        return True
    return not frozenset().union(*(needs.stated for *_, needs in _needs())).isdisjoint(index_terms(fact))


def states_danger(fact: str) -> bool:
    """Return whether a fact states what matters for food and for medicine, such as an allergy: not a dose or a diet.

    >>> [states_danger(fact) for fact in ("Mia is allergic to nuts", "Mia is a vegan", "Mia takes 5 mg of X")]
    [True, False, False]
    """
    return not _dangers().isdisjoint(index_terms(fact))


@cached()
def _dangers() -> frozenset[str]:
    return frozenset.intersection(*(frozenset(needs.stated) for topic, _, needs in _needs() if topic != "condition"))


@cached(maxsize=1_024)
def asks_for_the_present(question: str) -> bool:
    """Return whether a question asks for the present state.

    >>> asks_for_the_present("Where does Tom work now?"), asks_for_the_present("Where did Tom work?")
    (True, False)
    """
    text = question[:_LOOKED_AT]
    return _present(languages_of(text)).search(text.lower()) is not None


@cached()
def _present(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.present, r"\b(?:{})\b")


@cached(maxsize=1_024)
def asked_before(question: str) -> tuple[str, str]:
    """Return what a question asks, and the event before which it was so; the whole question and "" if it names none.

    >>> asked_before("Where did I live before I moved to Lyon?"), asked_before("Where do I live?")
    (('Where did I live', 'I moved to Lyon?'), ('Where do I live?', ''))
    """
    text = question[:_LOOKED_AT]
    found = _before_events(languages_of(text)).search(text)
    return (question, "") if found is None else (text[: found.start()].strip(), text[found.end() :].strip())


def asks_for_a_past(question: str, interval: Interval | None, *, now: int) -> bool:
    """Return whether a question is about a time that has begun, or about the time before an event."""
    return bool(asked_before(question)[1]) if interval is None else interval.start <= now


@cached(maxsize=1_024)
def asks_what_was(question: str) -> bool:
    """Return whether a question is in the past tense or about a time before.

    >>> asks_what_was("What was my rent"), asks_what_was("What is my rent")
    (True, False)
    """
    return speaks_of_past(question[:_LOOKED_AT])


@cached(maxsize=1_024)
def asks_for_a_state(question: str) -> bool:
    """Return whether a question asks for something of which a person has one at a time, and for nothing else about it.

    >>> asks_for_a_state("Where do I live now?"), asks_for_a_state("How do I get to work?")
    (True, False)
    """
    text = question[:_LOOKED_AT]
    if speaks_of_past(text) or not (states := (asked_for := states_asked(text)).terms):
        return False
    languages = languages_of(text)
    asked = _present(languages).sub(" ", without_elisions(text.replace("’", "'"), languages))
    terms = set(question_terms(asked))
    words = {word: set(index_terms(word, languages=languages)) for word in _SPOKEN_WORD.findall(asked)}
    silent = states | asked_for.verbs
    others = [word for word, each in words.items() if not terms.isdisjoint(each) and silent.isdisjoint(each)]
    if _manner(languages).search(text.lower()):
        return False
    kin = {stem for word in topics(text).words if word.is_kin for stem in word.stems}
    return len(others) <= _NAME_TERMS and all(word[:1].isupper() or not kin.isdisjoint(words[word]) for word in others)


def asks_for_one_value(question: str) -> bool:
    """Return whether a question asks for somebody, a time, a reason or a state: "Where does Tom live?"."""
    return intent_of(question) in ("who", "when", "why") or asks_for_a_state(question)


@cached()
def _manner(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.manner, r"(?<!\w)(?:{})(?!\w)")


@cached()
def _before_events(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.before, r"(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)


@cached(maxsize=1_024)
def asks_for_changes(question: str) -> bool:
    """Return whether a question, without the time that it names, asks what has changed, and for nothing else.

    >>> asks_for_changes("What has changed lately?"), asks_for_changes("What changed at Acme?")
    (True, False)
    """
    text = " ".join(question[:_LOOKED_AT].lower().split())
    found = _changes(languages_of(text)).match(text)
    return found is not None and not question_terms(text[found.end() :])


@cached()
def _changes(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.of_changes, r"\W*(?:{})(?!\w)")


@cached(maxsize=1_024)
def asks_for_tasks(question: str) -> bool:
    """Return whether a question asks for tasks, and for little else.

    >>> asks_for_tasks("What are my open tasks?"), asks_for_tasks("Which task is about the roof of the garden house?")
    (True, False)
    >>> asks_for_tasks("What do I still have to do?")
    True
    """
    text = question[:_LOOKED_AT]
    if asks_what_to_do(text):
        return True
    words, terms = _words_in(text), set(question_terms(text))
    others = [word for word in words - _tasks() if not terms.isdisjoint(index_terms(word))]
    return not words.isdisjoint(_tasks()) and len(others) <= 1


@cached()
def _tasks() -> frozenset[str]:
    """Return the words for tasks, in every language."""
    return all_languages().words(lambda each: each.headings.categories.get("task", ()))


@cached()
def _parts_listed() -> re.Pattern[str]:
    """Return the pattern of what separates the things that a fact lists, in any language: it may be short."""
    return all_languages().pattern(
        lambda each: each.entities.conjunctions, r"[,;.:&/+]|\b(?:{})\b", flags=re.IGNORECASE
    )


def _words_in(text: str) -> frozenset[str]:
    """Return the words of a text, and pairs of characters where words are not divided, in lower case."""
    words = {word.lower() for word in _SPOKEN_WORD.findall(text)}
    return frozenset(words | {term for term in index_terms(text) if not term.isascii() and len(term) == _PAIR})


def _pairs_in(text: str) -> frozenset[str]:
    """Return each two words of a text that follow each other, joined by "_", in lower case."""
    return frozenset(map("_".join, pairwise(word.lower() for word in _SPOKEN_WORD.findall(text))))


@cached()
def _needs() -> tuple[tuple[str, frozenset[str], Needs], ...]:
    """Return the topics: name, words of a prompt, and the needs. All languages are taken together, because facts may be
    in another one than the prompt.
    """

    def words(topic: str, of: Callable[[Need], Iterable[str]]) -> list[tuple[str, LanguageSet]]:
        having = [each for each in all_languages() if topic in each.needs]
        return [(word.lower(), any_of((each.code,))) for each in having for word in of(each.needs[topic])]

    def terms(topic: str, of: Callable[[Need], Iterable[str]]) -> frozenset[str]:
        found = words(topic, of)
        return frozenset(term for word, language in found for term in index_terms(word, languages=language))

    return tuple(
        (
            topic,
            frozenset(word for word, _ in words(topic, lambda need: need.asked)),
            Needs(
                terms(topic, lambda need: need.stated),
                frozenset(word for word, _ in words(topic, lambda need: need.denied)),
                terms(topic, lambda need: need.elsewhere),
                of_oneself=any(topic in each.needs and each.needs[topic].of_oneself for each in all_languages()),
            ),
        )
        for topic in dict.fromkeys(topic for language in all_languages() for topic in language.needs)
    )


# At most eight entities per question, and eight per name.
_ENTITIES = 8


def filter_of(snapshot: Snapshot, scope: Scope, query: Query) -> Filter:
    """Return all conditions of a query. Raises the errors of `entity_meant` and `session_meant`."""
    entity = None if query.entity is None else _entity_of(snapshot, scope, query.entity)
    session = query.filter.session
    session = None if session is None else session_meant(snapshot, scope, session)
    return replace(query.filter, entity=entity, session=session)


def _entity_of(snapshot: Snapshot, scope: Scope, name: str) -> int:
    """Return the key of an entity. Raises the errors of `entity_meant`."""
    try:
        return entity_meant(snapshot, scope, name, by_part=True).key
    except NotFoundError as error:
        if not (scope.owner and means_owner(name)):
            raise
        told = f"{name!r} is the user, and most memories are theirs: leave the entity out, or ask for their profile"
        raise NotFoundError(told) from error


def namings(snapshot: Snapshot, scope: Scope, question: str) -> tuple[Naming, ...]:
    """Return how a question names entities, in any form or as "my wife", including those merged into them."""
    if not snapshot.graph.has_names(scope):  # the owner's wife has a name, too
        return ()
    text = question[:_LOOKED_AT]
    found: dict[frozenset[str], dict[int, None]] = {}
    if known := snapshot.graph.known_names(scope, with_relations(text)):
        wholes = {bearer.entity: bearer.whole for bearers in known.values() for bearer in bearers}
        for run in runs_in(text):
            if those := [wholes[key] for key in entities_meant_by(run, known, text)]:
                found.setdefault(frozenset(index_terms(run.written)), {}).update(dict.fromkeys(those))
    named = frozenset(term for terms in found for term in terms)
    words = first_names_in(text)
    for word, those in snapshot.entities.begun_by(scope, words).items() if words else ():
        if len(those) == 1 and named.isdisjoint(index_terms(word)):
            found.setdefault(frozenset(index_terms(word)), {}).update(dict.fromkeys(those))
    for predicate, its_words in relations_asked(text).items():
        called = {bearer.whole for word in its_words for bearer in known.get(name_key(word), ())}
        if not (those := snapshot.graph.related(scope, predicate)) and len(called) == 1:
            those = [*called]  # the contact "Mama" of a phone
        if those:
            terms = frozenset(term for word in stems_of(predicate) for term in index_terms(word))
            found.setdefault(terms, {}).update(dict.fromkeys(those))
    return tuple(
        _naming(snapshot, scope, terms, list(those)[:_ENTITIES]) for terms, those in islice(found.items(), _ENTITIES)
    )


def _naming(snapshot: Snapshot, scope: Scope, terms: frozenset[str], entities: Sequence[int]) -> Naming:
    from ricordo.storage.candidates import Naming  # it needs numpy

    keys = tuple(snapshot.graph.entity_keys(entities))
    if len(keys) == len(entities):
        return Naming(terms, keys)
    merged = [each for key in entities for each in snapshot.entities.members(scope, key)]
    return Naming(terms, keys, frozenset(name_key(name) for each in merged for name in (each.name, *each.aliases)))


@cached()
def phrases_of_anything(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of phrases that fit any topic: "tell me"."""
    return languages.pattern(lambda each: each.questions.of_anything, flags=re.IGNORECASE)


def people_told_of(snapshot: Snapshot, scope: Scope, told: str, question: str) -> tuple[str, ...]:
    """Return the known people and the relatives in what a message tells, if its question names nobody: "My sister has
    moved. Any ideas for a present?".
    """
    if namings(snapshot, scope, question) or relations_in(question):
        return ()
    keys = [key for naming in namings(snapshot, scope, told) for key in naming.entities]
    people = (each.name for each in snapshot.entities.by_key(scope, keys) if each.type == "person")
    return tuple(dict.fromkeys((*own_relatives(told), *people)))


# ---- the plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question with its conditions.

    `filter` has all conditions except the entity, whose key requires a snapshot. Without a type, knowledge and
    unconsolidated episodes are searched; within one session, all its messages. `judge`: mark irrelevant hits, but keep
    them; with "if_known", only if the floor need not be measured first. `with_leading`: if anything is relevant, the
    top-ranked hits are returned as well. `rerank`: whether to use the reranker; None uses a local one, but a language
    model only on request.
    """

    text: str
    filter: Filter = Filter(shelves=DEFAULT_SHELVES)
    entity: str | None = None
    limit: int = 10
    words_only: bool = False
    only_relevant: bool = False
    judge: Judging = False
    with_leading: bool = False
    why_not: str | None = None
    rerank: bool | None = None

    @property
    def is_narrowed(self) -> bool:
        """Return whether a memory has to meet other conditions than its type."""
        return self.entity is not None or replace(self.filter, types=(), shelves=()) != Filter(shelves=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """How signals are combined to a score: by values or by reciprocal ranks, which signals are skipped, and the weight
    of the reranker relative to all signals together.
    """

    fusion: Fusion = "score"
    without: frozenset[str] = frozenset()
    reranker: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A query ready to run: its terms, period, intent, and its vectors by model, the active model first.

    `dated` are the terms of a period with a year, which a memory from another time may hold: "our trip in 2019".
    `states` are the terms of statements about what the question asks for, if it asks how things were in the past, or
    for something of which a person has one at a time, or what somebody cannot have (`needs`). `asks_who`: it asks who
    somebody is.
    `days` are the days that the question asks about, if it names little else: those from today on or, if there are
    none, a past day or week. `is_of_changes`: it asks what has changed, and for nothing else.
    `floor` is the chance level, None unless only relevant hits are requested. `scale` is that of the active model's
    cosines, None if facts cannot be compared by meaning. `ratings` are the reranker's, by the keys
    of memories.
    """

    query: Query
    now: int
    terms: tuple[str, ...]
    ignored: tuple[str, ...]
    interval: Interval | None
    dated: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    asks_state: bool = False
    needs: Needs | None = None
    asks_who: bool = False
    days: tuple[Span, ...] = ()
    is_of_changes: bool = False
    vectors: Mapping[int, Embedded] = field(default_factory=dict)
    intent: Intent = "general"
    complexity: Complexity = "simple"
    weighing: Weighing = Weighing()
    floor: Floor | None = None
    scale: Scale | None = None
    ratings: Mapping[int, float] = field(default_factory=dict)

    @property
    def span(self) -> tuple[int, int] | None:
        """The span that the question names, [start, end) in Unix milliseconds."""
        return None if self.interval is None else (self.interval.start, self.interval.end)

    @property
    def is_of_past(self) -> bool:
        """Whether the question is about a time that is over, so that newer facts do not answer it."""
        return bool(asked_before(self.query.text)[1]) if self.interval is None else self.interval.end <= self.now

    @property
    def is_of_now(self) -> bool:
        """Whether the question asks how something is, of which a person has one at a time, or who somebody is."""
        return self.interval is None and (self.asks_state or self.asks_who) and not self.is_of_past

    @property
    def looked_up(self) -> tuple[str, ...]:
        """All index terms to search for, each once."""
        return tuple(dict.fromkeys((*self.terms, *self.dated, *self.states)))

    @property
    def question_vectors(self) -> dict[int, Vector]:
        """Return the question's vector by model, the active model first."""
        return {model: each.vector for model, each in self.vectors.items() if each.vector is not None}

    @property
    def worded(self) -> tuple[int, Embedded | None]:
        """Return the first model with word vectors, and its embedding of the question; 0 and None if there is none."""
        return next(((model, each) for model, each in self.vectors.items() if each.words is not None), (0, None))


def make_plan(
    query: Query,
    *,
    now: int,
    interval: Interval | None,
    vectors: Mapping[int, Embedded],
    intent: Intent | None = None,
    weighing: Weighing = Weighing(),
    zone: ZoneInfo | None = None,
) -> Plan:
    """Return the plan of a query. Words that name a time are not search terms: "what did we do in May". Pure.

    Args:
        intent: derived from the words of the question if None.
        zone: in which a day is meant; None if none is.
    """
    asks_for_day = interval is not None or asks_what_is_to_come(query.text) or _asks_for_weekday(query.text)
    is_of_now = zone is not None and not query.filter.archived
    today = from_ms(now).astimezone(zone).date() if asks_for_day and is_of_now else None
    text = query.text if interval is None else query.text.replace(interval.text, " ", 1)
    terms = question_terms(text)
    days = _days_asked(query.text, interval, zone, today=today, terms=terms) if today and zone else ()
    terms += [term for term in index_terms(OPEN_TASK) if asks_for_tasks(text) and term not in terms]
    ignored = [term for term in dict.fromkeys(index_terms(query.text[:_LOOKED_AT])) if term not in set(terms)]
    is_general = interval is None and (intent or intent_of(query.text)) not in ("when", "why")
    is_of_past = query.filter.archived or asks_for_a_past(query.text, interval, now=now)
    needs = needs_asked(query.text) if is_general else None
    asks_state = needs is not None or (is_general and asks_for_a_state(query.text))
    states: Iterable[str] = ()
    if asks_state or is_of_past:
        states = needs.terms if needs else states_asked(query.text).terms
    return Plan(
        query=query,
        now=now,
        terms=tuple(terms),
        ignored=tuple(ignored),
        interval=interval,
        dated=tuple(question_terms(interval.text)) if interval and holds_year(interval.text) else (),
        states=tuple(sorted(states)),
        asks_state=asks_state,
        needs=needs,
        asks_who=is_general and not asks_state and asks_who_it_is(query.text),
        days=days,
        is_of_changes=asks_for_changes(text),
        vectors=vectors,
        intent=intent or intent_of(query.text),
        complexity=complexity_of(query.text),
        weighing=weighing,
    )


def _asks_for_weekday(question: str) -> bool:
    """Return whether a question names a weekday that may be past or to come: "¿Qué tengo el martes?"."""
    return question.rstrip().endswith("?") and any(True for _ in weekdays_in(question))


def days_asked(question: str, *, now: int, zone: ZoneInfo) -> tuple[Span, ...]:
    """Return the days that a question asks about, if it names little else; see `Plan.days`."""
    interval = find_interval(question, now=now, zone=zone)
    if interval is None and not asks_what_is_to_come(question) and not _asks_for_weekday(question):
        return ()
    return make_plan(Query(text=question), now=now, interval=interval, vectors={}, zone=zone).days


def _days_asked(
    question: str, interval: Interval | None, zone: ZoneInfo, *, today: date, terms: Sequence[str]
) -> tuple[Span, ...]:
    """Return the days that a question asks about: those from today on or else the past ones, if they are few.

    Args:
        terms: of the question without its time. A question that names more is answered by what it names.
    """
    named = set(terms) - function_terms(language_of_function_words(question))
    if len(terms) <= _FEW_TERMS and (coming := coming_days(question, today=today)):
        is_long = any((last - first).days > _DAYS_OF_A_MONTH for first, last in coming)
        return () if is_long and len(named) > _FEWEST_TERMS else tuple(coming)
    if interval is None or len(named) > _FEWEST_TERMS:
        return ()
    first, last = (from_ms(each).astimezone(zone).date() for each in (interval.start, interval.end - 1))
    return ((first, last),) if last <= today and (last - first).days < _DAYS_OF_A_WEEK else ()
