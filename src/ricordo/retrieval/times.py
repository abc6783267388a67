"""What a question about a time asks for: what happened in it, and what held in it, in the past or today. Pure.

What somebody cannot have, and who somebody is, are states as well; several of them hold at once.

The time that a text tells counts, else the time at which it was said or since which it is true. A state holds until it
ends, or until the next statement about the same thing: "I moved to Ghent in 2020" answers where the speaker lived in
2021, unless they moved again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ricordo.clock import from_ms
from ricordo.model import Node
from ricordo.retrieval.query import Needs, Plan, asked_before
from ricordo.text.analyzer import index_terms, question_terms, raw_words, speaks_of_themselves
from ricordo.text.canonical import canonical
from ricordo.text.change import (
    CHANGES,
    AskedStates,
    Topics,
    cues,
    is_quotation,
    job_stems,
    names_job,
    state_terms,
    states_asked,
    tells_own,
    things_said,
    topics,
    without_other_senses,
)
from ricordo.text.dates.grammar import vocabulary
from ricordo.text.dates.resolution import DatedPhrase, Span, dated_phrases
from ricordo.text.languages import LanguageSet, all_languages, any_of, cached, languages_of
from ricordo.text.sentences import plain_sentences
from ricordo.trust import trust_of

_HOME, _WORK = "home", "work"
_NAME_WITHIN = re.compile(r"(?<=[^\W_] )[^\W\d_a-zа-яё]")
_DAY = timedelta(days=1)
_EARLIEST_MS, _LATEST_MS = -62_135_510_400_000, 253_402_214_400_000  # a day within the calendar, for any time zone
_SAYS_WHO_WITHIN = 3  # significant words
_NO_BEGINNING = date(1, 1, 3)  # of a span such as "before 2019"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeQuestion:
    """A question about a time.

    Attributes:
        span: the days that it names, or today; None if it names an event: "before I moved to Lyon".
        states: the index terms of statements about the state that it asks for; empty if it asks for none.
        asked_for: the states that its words ask for.
        needs: what the question asks for, if it asks what somebody cannot have.
        asks_who: it asks who somebody is.
        event: the index terms that name the event.
        named: the stems of what the question names, apart from the state, the event and times.
        names_somebody: it names a known entity.
    """

    text: str
    span: Span | None
    states: frozenset[str]
    asked_for: AskedStates
    needs: Needs | None
    asks_who: bool
    event: frozenset[str]
    named: frozenset[str]
    names_somebody: bool
    zone: ZoneInfo

    def days_told(self, node: Node) -> tuple[DatedPhrase, ...]:
        """Return the phrases of a memory that name days."""
        said = node.event_time.astimezone(self.zone).date()
        return dated_phrases(node.content, today=said, languages=_of_both(self.text, node.content))

    def share_within(self, node: Node) -> float:
        """Return how much a memory is of the days asked about: 1, 0 for other days, 0.5 if it tells only a longer time
        that contains them.
        """
        if self.span is None:
            return 0.0
        first, last = self.span
        told = [(each.first, each.last) for each in self.days_told(node) if not each.is_deadline]
        if meant := [end - start <= last - first for start, end in told if start <= last and first <= end]:
            return 1.0 if any(meant) else 0.5
        if told and len(list(plain_sentences(node.content))) == 1:
            return 0.0
        times = (node.event_time, node.valid_from)
        return float(any(first <= each.astimezone(self.zone).date() <= last for each in times))

    def begins_within(self, node: Node) -> tuple[date, datetime]:
        """Return when in the days asked about a memory happened or began, and when it was said."""
        first, last = self.span or (date.min, date.max)
        told = [
            max(each.first, first)
            for each in self.days_told(node)
            if each.first <= last and first <= each.last and each.last - each.first < last - first
        ]
        said = (each.astimezone(self.zone).date() for each in (node.event_time, node.valid_from))
        return min(told, default=next((day for day in said if first <= day <= last), first)), node.event_time

    def spells(self, nodes: Iterable[Node]) -> list[Spell]:
        """Return from when until when each of some memories holds that state what the question asks for.

        What others say of themselves answers a question of the owner only if the owner says nothing about it; and other
        work ("The work starts on Monday"), only if no profession is known.
        """
        if not self.states and not self.asks_who:
            return []
        stating = [node for node in nodes if self._states(node)]
        if self._is_of_asker:
            stating = [node for node in stating if node.speaker is None] or stating
            if any(map(self._tells_job, stating)):
                stating = [node for node in stating if self._tells_job(node) or topics(node.content).is_of_self]
        return [spell for node in stating if (spell := self._spell(node)) is not None]

    def in_force(self, spells: Sequence[Spell]) -> list[int]:
        """Return the keys of the memories that say what held in the days asked about, best first.

        The longer a state held in these days, the better; of equals, the one that began last. Of needs one has several:
        they keep their order.
        """
        if self.needs is not None:
            held = set(self._held(spells))
            return [each.key for each in spells if each.key in held]
        if not self._is_single:
            return self._held(spells)
        sure = [each for each in spells if each.is_sure]  # "My way to work is long" is about no other job
        return self._held(sure) or self._held(spells)

    @property
    def _is_single(self) -> bool:
        """Whether people have one at a time of what the question asks for."""
        return self.needs is None and not self.asks_who

    def _held(self, spells: Sequence[Spell]) -> list[int]:
        """Return the keys of the statements that held in the days asked about, best first."""
        span = self.span or _before_event(spells)
        if span is None:
            return []
        begun = {each.first for each in spells if each.first != date.min}
        following = dict(pairwise(sorted(begun))) if self._is_single else {}
        ended = [min(each.last, following.get(each.first, date.max) - _DAY) for each in spells]
        held = [
            (min(last, span[1]) - max(each.first, span[0]), each)
            for each, last in zip(spells, ended, strict=True)
            if each.first <= span[1] and span[0] <= last
        ]
        if span[0] <= _NO_BEGINNING and held:  # what held last
            latest = max(each.first for _, each in held)
            held = [(days, each) for days, each in held if each.first == latest]
        held.sort(key=lambda each: (each[0], each[1].first, each[1].is_knowledge, each[1].key), reverse=True)
        return [each.key for _, each in held]

    def _states(self, node: Node) -> bool:
        """Return whether a memory is a statement about the state, of the person in the question."""
        text = node.content
        if node.role == "assistant" or trust_of(node.origin, node.role) in ("tool", "web") or is_quotation(text):
            return False
        if text.rstrip().endswith("?") or not (self._is_answered_by(text) or self._tells_job(node)):
            return False
        said_of_it = cues(text, languages_of(text))
        if not {"reported", "unsure"}.isdisjoint(said_of_it) or ("future" in said_of_it and not self.days_told(node)):
            return False
        return (self._is_of_asker and self._tells_job(node)) or self.is_about_asked(node)

    def _tells_job(self, node: Node) -> bool:
        """Return whether a memory tells a job, which the question asks for, without a word for work: "I am a nurse"."""
        is_named = self._asks_for_work and node.category == "identity" and names_job(node.content)
        return is_named or (self.asks_for_own_work and tells_own(_WORK, node.content))

    def _is_answered_by(self, text: str) -> bool:
        terms = set(index_terms(without_other_senses(text)))
        if self.asks_who:
            return not self.named.isdisjoint(terms) and _says_who(text, self.named)
        if self.needs is not None:
            return not self.states.isdisjoint(terms) and self.needs.are_in(text)
        return not self.states.isdisjoint(terms) and self.asked_for.are_told_in(text, _of_both(self.text, text))

    def is_about_asked(self, node: Node) -> bool:
        """Return whether a memory is about the person in the question."""
        said = topics(node.content)
        if self._is_of_asker:
            is_of_asker = said.is_of_self or not (
                node.about or _people_in(said, self.states) or self._is_home_of_another(said, node.content)
            )
            if is_of_asker and not _others_in(said, self.states):
                return True
            parts = (part for part in things_said(node.content) if self._is_answered_by(part))
            return any(each.is_of_self and not _others_in(each, self.states) for each in map(topics, parts))
        people = {term for name in (*node.about, node.speaker or "") for term in index_terms(name)}
        return not self.named.isdisjoint(said.all_stems | people)

    def _is_home_of_another(self, said: Topics, text: str) -> bool:
        """Return whether a statement is about a home, but of something or of somebody called by a pronoun: "The meeting
        moved to 5", "She moved to the window".
        """
        if _HOME not in self.asked_for.names or said.is_own:
            return False
        stems = {stem for stems in said.subject or () for stem in stems}
        if stems:
            return self.states.isdisjoint(stems) and not any(stem.startswith("=") for stem in stems)
        return not _pronouns().isdisjoint(word.partition("'")[0] for word in raw_words(text)[:1])

    @property
    def asks_for_own_work(self) -> bool:
        """Whether the question asks where or as what the asker works, which what others do does not answer."""
        names = not speaks_of_themselves(self.text) and _NAME_WITHIN.search(self.text) is not None
        is_of_others = names or bool(topics(self.text).others)  # "¿Dónde trabaja Tom?", "Where does my husband work?"
        return self._asks_for_work and self._is_of_asker and not is_of_others

    @property
    def _asks_for_work(self) -> bool:
        return state_terms(_WORK) <= self.states

    @property
    def _is_of_asker(self) -> bool:
        if self.needs and self.names_somebody:  # "What should I know about Ana's health?"
            return False
        return (speaks_of_themselves(self.text) and not topics(self.text).others) or not self.named

    def _spell(self, node: Node) -> Spell | None:
        """Return from when until when a statement about a state held; None if it is about a time to come."""
        said = node.event_time.astimezone(self.zone).date()
        all_told = self.days_told(node)
        told = [each for each in all_told if each.first <= said]
        if all_told and not told:
            return None
        since = next((each for each in told if not each.is_deadline), None)
        until = next((each.last for each in told if each.is_deadline), None)
        first = since.first if since else date.min if until else node.valid_from.astimezone(self.zone).date()
        last = until or (node.valid_until.astimezone(self.zone).date() if node.valid_until else date.max)
        if since is not None and since.precision == "range" and not since.is_open:  # "from 2015 to 2018"
            last = min(last, since.last)
        said_of_change = cues(node.content, _of_both(self.text, node.content))
        values = [word for word in raw_words(node.content) if not self.asked_for.values.isdisjoint(index_terms(word))]
        lasts = {"replaced", "now"} if "no_longer" not in said_of_change else {"replaced"}
        is_ended = not {"no_longer", "ended"}.isdisjoint(said_of_change) and lasts.isdisjoint(said_of_change)
        if is_ended and len(set(values)) <= 1:  # "We sold the Volvo and took a Skoda"
            first, last = date.min, first
        is_change = not said_of_change.isdisjoint(CHANGES)
        is_sure = bool(values or canonical(node.content).slot or is_change or (told and not self.asked_for.values))
        names_event = not self.event.isdisjoint(index_terms(node.content))
        return Spell(first, max(first, last), node.key, is_sure, node.type != "episodic", names_event)


class Spell(NamedTuple):
    """From when until when a statement about a state held.

    `is_sure`: it tells when, or that something changed, or gives a value in common words. `names_event`: it names the
    event of the question.
    """

    first: date
    last: date
    key: int
    is_sure: bool
    is_knowledge: bool
    names_event: bool


def _before_event(spells: Sequence[Spell]) -> Span | None:
    """Return the days before the latest beginning of a state that the words of the event name."""
    begun = [each.first for each in spells if each.names_event and each.first > date.min]
    return (date.min, max(begun) - _DAY) if begun else None


def _says_who(text: str, named: Set[str]) -> bool:
    """Return whether a statement begins by saying who somebody is: "Priya is my boss", "My boss is called Priya"."""
    words, jobs = topics(text).words[:_SAYS_WHO_WITHIN], set(job_stems(text))
    is_named = [not named.isdisjoint(word.stems) for word in words]
    is_role = [word.is_kin or not jobs.isdisjoint(word.stems) for word in words]
    return any(is_named) and any(is_role) and (is_named[0] or is_role[0])


def time_question(plan: Plan, zone: ZoneInfo, *, names_somebody: bool = False) -> TimeQuestion:
    """Return what a question asks for of a time."""
    interval = plan.interval
    text, states, span = plan.query.text, frozenset(plan.states), None
    asked_for = states_asked(text)
    asked, event = (text, "") if interval else asked_before(text)
    if interval is not None:
        span = _day(interval.start, zone), _day(interval.end - 1, zone)
    elif plan.is_of_now:
        span = _day(plan.now, zone), _day(plan.now, zone)
    terms = frozenset(question_terms(event)) - states if event else frozenset[str]()
    words = (word for word in topics(text).words if word.start < len(asked) and word.worth >= 1)
    stems = {stem for word in words for stem in word.stems if stem[:1] != "="}
    # A short question may be taken for another language.
    named = frozenset(stems - states - asked_for.verbs - _function_words())
    return TimeQuestion(
        text=text,
        span=span,
        states=states,
        asked_for=asked_for,
        needs=plan.needs,
        asks_who=plan.asks_who,
        event=terms,
        named=named,
        names_somebody=names_somebody,
        zone=zone,
    )


def _day(at: int, zone: ZoneInfo) -> date:
    return from_ms(min(max(at, _EARLIEST_MS), _LATEST_MS)).astimezone(zone).date()


@cached()
def _function_words() -> frozenset[str]:
    return all_languages().words(lambda each: each.function_words)


@cached()
def _pronouns() -> frozenset[str]:
    return all_languages().words(lambda each: each.change.pronouns)


def _people_in(said: Topics, states: frozenset[str]) -> set[str]:
    """Return the stems of a statement that name people, for all that is known: "since May" and "moved" name none."""
    named = {stem for stems in said.persons if states.isdisjoint(stems) for stem in stems} | _others_in(said, states)
    return {each for each in named if each.isalpha()} - vocabulary(all_languages()).anchors - said.numbers


def _others_in(said: Topics, states: frozenset[str]) -> set[str]:
    """Return the stems of the other people of a statement, apart from the state: "my doctor" is of the speaker."""
    return {stem for stem in said.others - states if stem[:1] != "="}


def _of_both(*texts: str) -> LanguageSet:
    return any_of(tuple(sorted({each.code for text in texts for each in languages_of(text)})))
