"""The intent and the complexity of a question, by its words. Pure.

Intent says why, when, who, what, or nothing in particular (general). It moves weights a little and closes nothing, so a
wrong guess costs little. `exemplars` guesses by meaning, where an embedder is at hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import Entity, Scope
from ricordo.storage import Snapshot
from ricordo.text import index_terms
from ricordo.text.kinship import relations_in, stems_of
from ricordo.text.languages import LanguageSet, cached, languages_of
from ricordo.text.names import meant, runs_in

if TYPE_CHECKING:
    from ricordo.storage.candidates import Naming


Intent = Literal["why", "when", "who", "what", "general"]
Complexity = Literal["simple", "complex"]

INTENTS: tuple[Intent, ...] = ("why", "when", "who", "what")
"""Those there are words and exemplars for."""

QUESTION_MARKS = ("?", "？", "؟")
_LOOKED_AT = 2_000
_LONG = 10
_JOINED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The words of questions in some languages, in lower case: patterns that ignore case take half as long again.

    Attributes:
        intents: the first that is found decides: "why did Anna move when she did" asks why, "who was it when we met"
            asks who only where nothing asks for a time before it. English questions may begin with anything ("In which
            year ..."), so the words are looked for anywhere; those that also join clauses ("when", "who", "когда")
            count where a question begins.
        empty: phrases that ask for nothing: "do you know what I mean".
    """

    intents: tuple[tuple[Intent, re.Pattern[str]], ...]
    empty: re.Pattern[str]
    aggregates: re.Pattern[str]
    conjunctions: re.Pattern[str]


@cached()
def _words(languages: LanguageSet) -> _Words:
    return _Words(
        intents=(
            ("why", languages.pattern(lambda each: each.questions.why)),
            ("when", languages.pattern(lambda each: each.questions.when)),
            ("when", languages.pattern(lambda each: each.questions.when_first)),
            ("who", languages.pattern(lambda each: each.questions.who)),
            ("what", languages.pattern(lambda each: each.questions.what)),
            ("when", languages.pattern(lambda each: each.questions.when_last)),
        ),
        empty=languages.pattern(lambda each: each.questions.empty, r"\b(?:{})\b"),
        aggregates=languages.pattern(lambda each: each.questions.aggregates, r"\b(?:{})\b"),
        conjunctions=languages.pattern(lambda each: each.questions.conjunctions, r"\b(?:{})\b"),
    )


_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def intent_of(text: str) -> Intent:
    """Return what a question asks for, by its words.

    >>> intent_of("Why did Anna quit?"), intent_of("В каком году мы переехали?"), intent_of("peanut allergy")
    ('why', 'when', 'general')
    """
    words = _words(languages_of(text[:_LOOKED_AT]))
    asked = words.empty.sub(" ", text[:_LOOKED_AT].strip().lower())
    return next((intent for intent, pattern in words.intents if pattern.search(asked)), "general")


def complexity_of(text: str) -> Complexity:
    """Return whether a question is long, asks for many things, or joins several.

    >>> complexity_of("Where does Anna live?"), complexity_of("List all of Anna's homes")
    ('simple', 'complex')
    """
    words = _words(languages_of(text[:_LOOKED_AT]))
    asked = text[:_LOOKED_AT].lower()
    is_long = len(_WORD.findall(asked)) >= _LONG
    is_joined = len(words.conjunctions.findall(asked)) >= _JOINED
    return "complex" if is_long or is_joined or words.aggregates.search(asked) else "simple"


# Names are looked for in the first 2,000 characters of a question. A question names at most eight entities, and a name
# means at most eight.
_NAMED_CHARS = 2_000
_ENTITIES = 8


def entity_key(snapshot: Snapshot, scope: Scope, name: str) -> int:
    """Return the key of the entity a name means: a name or alias in any script, a case of it, "my wife", or an id.

    Raises:
        NotFoundError: no entity has that name.
        InvalidError: several do.
    """
    return entity_meant(snapshot, scope, name).key


def entity_meant(snapshot: Snapshot, scope: Scope, name: str) -> Entity:
    """Return the entity a name means. Raises like `entity_key`."""
    found = snapshot.entities.named(scope, name)
    if not found.entities:
        entity = snapshot.entities.by_id(scope, name)
        if entity is None:
            raise NotFoundError(f"entity: nobody and nothing is known as {name!r}")
        return entity
    if found.by != "same" and not found.is_clear:
        several = ", ".join(entity.name for entity in found.entities)
        raise InvalidError(f"entity: {name!r} may be any of {several}", hint="give the name")
    return found.entities[0]


def namings(snapshot: Snapshot, scope: Scope, question: str) -> tuple[Naming, ...]:
    """Return how a question names entities, in any form or as "my wife", with those that were merged into them."""
    if not snapshot.graph.kinds().names:  # the owner's wife has a name, too
        return ()
    from ricordo.storage.candidates import Naming  # it needs numpy

    text = question[:_NAMED_CHARS]
    found: dict[frozenset[str], dict[int, None]] = {}
    if known := snapshot.graph.known_names(scope, text):
        wholes = {bearer.entity: bearer.whole for bearers in known.values() for bearer in bearers}
        for run in runs_in(text):
            if those := [wholes[key] for key in meant(run, known, text)]:
                found.setdefault(frozenset(index_terms(run.written)), {}).update(dict.fromkeys(those))
    for predicate in relations_in(text):
        if those := [entity.key for entity in snapshot.entities.related_as(scope, predicate)]:
            terms = frozenset(term for word in stems_of(predicate) for term in index_terms(word))
            found.setdefault(terms, {}).update(dict.fromkeys(those))
    return tuple(
        Naming(terms, tuple(snapshot.graph.entity_keys(list(those)[:_ENTITIES])))
        for terms, those in islice(found.items(), _ENTITIES)
    )
