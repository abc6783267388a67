"""Infer the category of a statement, which decides how fast it decays."""

from __future__ import annotations

import re

from ricordo.model import Category
from ricordo.text import passing
from ricordo.text.change import Cue, cues
from ricordo.text.languages import LanguageSet, all_languages, cached, languages_of
from ricordo.text.lifetimes import gives_a_value, may_pass
from ricordo.text.tasks import states_task

_PASSING_FROM = 1.0
"""The score from which a statement that names today, or says "currently", is about that time only. Of 44 lasting ones
in benchmarks/data/knowledge none is taken for an event, of 178 passing ones 145 are.
"""

_CHANGED: frozenset[Cue] = frozenset(("no_longer", "ended", "replaced"))

_OF_A_TIME: frozenset[Category] = frozenset(("event", "context"))

# From the most to the least specific.
_BY_RULE: tuple[Category, ...] = ("preference", "relationship", "event", "context", "identity")


def infer_category(content: str, *, may_be_task: bool = True) -> Category:
    """Return the category of a simple statement. The rules are tried from the most to the least specific; `knowledge`
    if none matches.

    What holds from today on is no event: "Since today I take 88 micrograms", "I was diagnosed with diabetes yesterday".

    Args:
        may_be_task: whether words alone make a task. In notes, a task has a box.
    """
    start = content[:1_000]
    if may_be_task and states_task(start):
        return "task"
    languages = languages_of(start)
    for category, rule in _categories(languages):
        if rule.search(start) and (category not in _OF_A_TIME or _is_of_a_time(start, is_by_weekday=False)):
            return category
        is_by_weekday = category == "event" and _weekday(languages).search(start) is not None
        if is_by_weekday and _is_of_a_time(start, is_by_weekday=True):
            return category
    return "knowledge"


@cached()
def _categories(languages: LanguageSet) -> tuple[tuple[Category, re.Pattern[str]], ...]:
    answering = languages.pattern(lambda each: each.plain.answering, flags=re.IGNORECASE)
    return ("preference", answering), *((name, _category(languages, name)) for name in _BY_RULE)


@cached()
def _weekday(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.categories.get("weekday", ()), flags=re.IGNORECASE)


def _category(languages: LanguageSet, name: Category) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.categories.get(name, ()), flags=re.IGNORECASE)


def _is_of_a_time(text: str, *, is_by_weekday: bool) -> bool:
    """Return whether a statement is about the time that it names, and tells no change or condition that outlasts it.

    Args:
        is_by_weekday: it names a weekday, which is rarely the beginning of something: "I went to Bern on Monday".
    """
    if gives_a_value(text) or not _CHANGED.isdisjoint(cues(text, languages_of(text))):
        return False
    if not _conditions().isdisjoint(_words(text)):
        return False
    return is_by_weekday or (passing.score(text) >= _PASSING_FROM and may_pass(text))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@cached()
def _conditions() -> frozenset[str]:
    """Return the words for conditions that last, such as allergies, in all languages."""
    return frozenset(
        word.lower() for language in all_languages() for need in language.needs.values() for word in need.stated
    )
