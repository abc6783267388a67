"""The code that accepts or refuses a model's proposals. Pure.

An item is refused if it cites nothing that was shown, has no word in common with its evidence, is uncertain, contains a
credential, or gives an assistant instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from ricordo.consolidation.evidence import doubt, states_relation
from ricordo.consolidation.prompts import Page, own_words
from ricordo.decay import STATED
from ricordo.model import Assertion, Category, EntityType, Introduction, Node, NodeType
from ricordo.text.analyzer import index_terms, name_terms, question_terms
from ricordo.text.canonical import slot_named
from ricordo.text.categories import infer_category
from ricordo.text.dates.resolution import resolved_dates
from ricordo.text.languages import LanguageSet, all_languages, cached, languages_of
from ricordo.text.sentences import is_bare_credential
from ricordo.text.statement import statement_line

if TYPE_CHECKING:
    from ricordo.consolidation.proposed import Proposal, ProposedEntity, ProposedFact, ProposedRelation

_TYPES: Mapping[str, NodeType] = {
    "fact": "semantic",
    "preference": "semantic",
    "opinion": "opinion",
    "procedure": "procedural",
}
_CATEGORIES: frozenset[str] = frozenset(get_args(Category)) - {"reflection", "summary"}
_ENTITY_TYPES: frozenset[str] = frozenset(get_args(EntityType))
_MAX_CHARS = 1_000
_MAX_NAME_CHARS = 100
_MAX_CAUSES = 50
_MAX_SUMMARY_CHARS = 1_000

_NOT_HANDED_OUT = "cites evidence that it was not shown"
_NO_EVIDENCE = "has no evidence"
NOT_STATED = "its evidence does not state the relation"
NOT_OF_EVIDENCE = "shares no word with its evidence"
_UNFOUNDED = frozenset((_NOT_HANDED_OUT, _NO_EVIDENCE, NOT_OF_EVIDENCE))

CONCLUDED = 0.6
"""Confidence in a model's conclusions. A direct statement has `STATED`; the user's own statement has 1."""


@cached()
def _user_words() -> frozenset[str]:
    """Return the names by which models refer to the user."""
    return all_languages().words(lambda each: each.sentences.user_words)


@cached()
def _causal(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.causal, r"\b(?:{})\b", flags=re.IGNORECASE)


Relationship = Literal["same", "contradicts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The requirements for an item. The functions return whether a text contains a credential or is an instruction."""

    min_confidence: float
    has_credential: Callable[[str], bool]
    is_instruction: Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A fact that may become a memory.

    Attributes:
        sure: the model's certainty, from 0 to 1.
        doubt: why it may differ from its evidence; such a fact is held back for review.
        is_update: whether it is kept only if it makes a known fact out of date.
    """

    content: str
    type: NodeType
    category: Category | None
    about: tuple[str, ...]
    slot: str
    confidence: float
    sure: float
    evidence: tuple[Node, ...]
    doubt: str = ""
    is_update: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A refused item, and the reason."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The accepted and refused items of proposals. `causes` are pairs of messages, the cause first."""

    facts: tuple[Accepted, ...] = ()
    entities: tuple[Introduction, ...] = ()
    relations: tuple[Assertion, ...] = ()
    causes: tuple[tuple[Node, Node], ...] = ()
    summary: str = ""
    refused: tuple[Refused, ...] = ()

    @property
    def is_unfounded(self) -> bool:
        """Whether there are statements but none is supported by the messages: the model did not understand them."""
        return not self.facts and any(each.reason in _UNFOUNDED for each in self.refused)


def scaled(confidence: float) -> float:
    """Return a confidence on a scale from 0 to 1, even if a model used a scale of 10 or 100; -1 if it is out of range.

    >>> scaled(0.9), scaled(7), scaled(95)
    (0.9, 0.7, 0.95)
    """
    if not 0 <= confidence <= 100:
        return -1.0
    return confidence if confidence <= 1 else confidence / (10 if confidence <= 10 else 100)


def judge(proposal: Proposal, page: Page, rules: Rules) -> Judged:
    """Accept or refuse each item that a model proposes for one page."""
    items = _PageJudge(page, rules)
    facts = [fact for each in proposal.facts if (fact := items.fact(each))]
    entities = [entity for each in proposal.entities if (entity := items.entity(each))]
    relations = [relation for each in proposal.relations if (relation := items.relation(each))]
    causes = [pair for each in proposal.causes if (pair := items.cause(each.cause, each.effect))]
    summary = " ".join(proposal.summary.split())[:_MAX_SUMMARY_CHARS]
    return Judged(
        facts=_without_repeats(facts),
        entities=tuple(entities),
        relations=tuple(relations),
        causes=_pairs(causes),
        summary="" if objection(summary, rules) else summary,
        refused=tuple(items.refused),
    )


def without_unfounded(judged: Judged) -> Judged:
    """Refuse the doubtful facts that share no word with their evidence. The others stay doubtful."""
    unfounded = [fact for fact in judged.facts if fact.doubt and not has_in_common(fact.content, fact.evidence)]
    refused = (Refused(text=fact.content, reason=NOT_OF_EVIDENCE) for fact in unfounded)
    kept = tuple(fact for fact in judged.facts if fact not in unfounded)
    return replace(judged, facts=kept, refused=(*judged.refused, *refused))


def combine(pages: Sequence[Judged]) -> Judged:
    """Merge the results of all pages of a conversation, without repetitions."""
    return Judged(
        facts=_without_repeats(fact for page in pages for fact in page.facts),
        entities=tuple(each for page in pages for each in page.entities),
        relations=tuple(each for page in pages for each in page.relations),
        causes=_pairs(pair for page in pages for pair in page.causes),
        summary=" ".join(page.summary for page in pages if page.summary)[:_MAX_SUMMARY_CHARS],
        refused=tuple(each for page in pages for each in page.refused),
    )


def _pairs(causes: Iterable[tuple[Node, Node]]) -> tuple[tuple[Node, Node], ...]:
    """Return each pair once, up to the limit of a run."""
    return tuple({(cause.id, effect.id): (cause, effect) for cause, effect in causes}.values())[:_MAX_CAUSES]


def _without_repeats(facts: Iterable[Accepted]) -> tuple[Accepted, ...]:
    """Merge facts with the same statement about the same days, and their evidence."""
    kept: dict[tuple[str, str, tuple[str, ...]], Accepted] = {}
    for fact in facts:
        said = max(node.event_time for node in fact.evidence).date()
        days = tuple(resolved_dates(fact.content, today=said).values())
        line = fact.type, statement_line(fact.content) or fact.content, days
        if line in kept:
            evidence = {node.id: node for node in (*kept[line].evidence, *fact.evidence)}
            is_update = kept[line].is_update and fact.is_update
            kept[line] = replace(kept[line], evidence=tuple(evidence.values()), is_update=is_update)
        else:
            kept[line] = fact
    return tuple(kept.values())


class _PageJudge:
    """Judges the items of one page, and records refused ones."""

    def __init__(self, page: Page, rules: Rules) -> None:
        self._page = page
        self._rules = rules
        self._names = frozenset(name_terms("\n".join((*page.before, *page.lines))))
        self.refused: list[Refused] = []

    def fact(self, given: ProposedFact) -> Accepted | None:
        """Return the fact; None if it is refused, with the reason in `refused`."""
        text = " ".join(given.text.split())
        evidence = self._handed(given.evidence)
        is_update = given.is_update
        if reason := self._objection(text, given, evidence):
            if not is_update:  # the rules propose many of which nothing comes
                self.refused.append(Refused(text=text[:_MAX_CHARS], reason=reason))
            return None
        category = "preference" if given.kind == "preference" else given.category
        return Accepted(
            content=text,
            type=_TYPES.get(given.kind, "semantic"),
            category=category if category in _CATEGORIES else infer_category(text),  # type: ignore[arg-type]  # looked up
            about=self._about(given.about),
            slot=slot_named(given.slot)[:_MAX_NAME_CHARS],
            confidence=STATED if given.said else CONCLUDED,
            sure=scaled(given.confidence),
            evidence=evidence or (),
            doubt=doubt(text, evidence or ()),
            is_update=is_update,
        )

    def _objection(self, text: str, given: ProposedFact, evidence: tuple[Node, ...] | None) -> str:
        """Return why a fact is refused; "" if it is not."""
        if evidence and all(node.role in ("assistant", "system") for node in evidence):
            return "rests on the assistant's own words"
        reason = rejection(text, evidence, self._rules, sure=scaled(given.confidence))
        # Other words may say the same; verification decides that.
        return objection(text, self._rules) if reason == NOT_OF_EVIDENCE else reason

    def entity(self, given: ProposedEntity) -> Introduction | None:
        """Return an entity that this page names, by the names used there; None if it is refused."""
        evidence = self._handed(given.evidence)
        name = self._name(given.name)
        if not evidence or not name:
            reason = "cites no evidence that it was shown" if not evidence else "is not named in the conversation"
            self.refused.append(Refused(text=" ".join(given.name.split())[:_MAX_NAME_CHARS], reason=reason))
            return None
        aliases = (known for each in given.aliases if (known := self._name(each)))
        relation = " ".join(given.relation.split())[:_MAX_NAME_CHARS]
        if relation and not states_relation(relation, evidence):
            self.refused.append(Refused(text=f"{name}: {relation}", reason=NOT_STATED))
            relation = ""
        return Introduction(
            name=name,
            type=given.type if given.type in _ENTITY_TYPES else "concept",  # type: ignore[arg-type]  # just looked up
            aliases=tuple(dict.fromkeys(each for each in aliases if each != name)),
            relation=relation or None,
            evidence=_ids(evidence),
        )

    def relation(self, given: ProposedRelation) -> Assertion | None:
        """Return a relation between two entities that this page names; None if it is refused."""
        evidence, source, target = self._handed(given.evidence), self._name(given.source), self._name(given.target)
        predicate = " ".join(given.predicate.split())
        if not (evidence and source and target and predicate) or len(predicate) > _MAX_NAME_CHARS:
            return None
        if not states_relation(predicate, evidence):
            self.refused.append(Refused(text=f"{source}: {predicate}: {target}", reason=NOT_STATED))
            return None
        return Assertion(source=source, predicate=predicate, target=target, evidence=_ids(evidence))

    def cause(self, cause: str, effect: str) -> tuple[Node, Node] | None:
        """Return a message and the message it led to, if one of them states the link."""
        pair = self._handed([cause]), self._handed([effect])
        if not pair[0] or not pair[1]:
            return None
        (first,), (second,) = pair[0], pair[1]
        is_said = any(says_why(node.content) for node in (first, second))
        return (first, second) if is_said and first.id != second.id else None

    def _handed(self, handles: Sequence[str]) -> tuple[Node, ...] | None:
        return cited(handles, self._page.episodes)

    def _name(self, given: str) -> str:
        """Return a name that this page uses; "" for any other name, and for the user."""
        name = " ".join(given.split())
        terms = name_terms(name)
        is_used = bool(terms) and self._names.issuperset(terms)
        return name if is_used and len(name) <= _MAX_NAME_CHARS and name.casefold() not in _user_words() else ""

    def _about(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for each in names[:10] if (name := self._name(each))))


def _ids(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(node.id for node in nodes)


def clean_handle(given: str) -> str:
    """Return a handle in its original form: models add brackets or a capital letter."""
    return given.strip().strip("[]").lower()


def cited(handles: Sequence[str], out: Mapping[str, Node]) -> tuple[Node, ...] | None:
    """Return the distinct nodes with these handles; None if any handle is unknown."""
    found = [out.get(clean_handle(each)) for each in handles]
    if any(node is None for node in found):
        return None
    return tuple({node.id: node for node in found if node is not None}.values())


def rejection(
    text: str,
    evidence: Sequence[Node] | None,
    rules: Rules,
    *,
    sure: float = 1.0,
    least: int = 1,
    max_chars: int = _MAX_CHARS,
) -> str:
    """Return why a statement may not be stored; "" if it may.

    Args:
        evidence: the cited evidence, as found by `cited`.
        sure: the model's certainty, from 0 to 1.
        least: minimum number of memories in the evidence.
    """
    if evidence is None:
        return _NOT_HANDED_OUT
    if len(evidence) < least:
        return "rests on a single memory" if evidence else _NO_EVIDENCE
    if not text or len(text) > max_chars:
        return "is not a short statement"
    if not rules.min_confidence <= sure <= 1:
        return "is not certain enough"
    return objection(text, rules) if has_in_common(text, evidence) else NOT_OF_EVIDENCE


def has_in_common(text: str, evidence: Sequence[Node]) -> bool:
    """Return whether a statement shares at least one significant word with its evidence."""
    said = {term for node in evidence for term in index_terms(f"{node.speaker or ''} {own_words(node)}")}
    return not said.isdisjoint(question_terms(text) or index_terms(text))


def objection(text: str, rules: Rules) -> str:
    """Return why a text may never be stored; "" if it may."""
    if rules.has_credential(text):
        return "holds a credential"
    if is_bare_credential(text):
        return "says hardly anything without the credential that was removed"
    return "is an instruction" if rules.is_instruction(text) else ""


def says_why(text: str) -> bool:
    """Return whether a text states that one thing led to another."""
    return _causal(languages_of(text)).search(text) is not None
