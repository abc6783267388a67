"""What becomes of a model's proposal. Pure: the model proposes, this disposes.

An item is refused when it rests on nothing that was handed out, says nothing of what its evidence says, is unsure,
holds a credential, or tells an assistant what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from ricordo.consolidation.pages import Page, own_words
from ricordo.consolidation.proposal import Proposal, ProposedEntity, ProposedFact, ProposedRelation
from ricordo.decay import STATED
from ricordo.model import Assertion, Category, EntityType, Introduction, Node, NodeType
from ricordo.text import index_terms, name_terms, question_terms, statement_line
from ricordo.text.languages import LanguageSet, all_languages, cached, languages_of

_TYPES: Mapping[str, NodeType] = {
    "fact": "semantic",
    "preference": "semantic",
    "opinion": "opinion",
    "procedure": "procedural",
}
_CATEGORIES: frozenset[str] = frozenset(get_args(Category)) - {"reflection", "summary"}
_ENTITY_TYPES: frozenset[str] = frozenset(get_args(EntityType))
_MOST_CHARS = 1_000
_MOST_NAME_CHARS = 100
_MOST_CAUSES = 50
_MOST_SUMMARY_CHARS = 1_000

_NOT_HANDED_OUT = "names evidence that was not handed out"
_NO_EVIDENCE = "has no evidence"
_NOT_OF_EVIDENCE = "says nothing of what its evidence says"
_UNFOUNDED = frozenset((_NOT_HANDED_OUT, _NO_EVIDENCE, _NOT_OF_EVIDENCE))

CONCLUDED = 0.6
"""How sure what a model extracted is: said outright, or concluded. What a user states himself is 1."""


@cached()
def _user_words() -> frozenset[str]:
    """Return the names under which a model speaks of the user."""
    return all_languages().words(lambda each: each.sentences.user_words)


@cached()
def _causal(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.causal, r"\b(?:{})\b", flags=re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is asked of an item. The functions say whether a text holds a credential, or is an instruction."""

    min_confidence: float
    has_credential: Callable[[str], bool]
    is_instruction: Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A fact that may become a memory. `sure` is how sure the model was of it."""

    content: str
    type: NodeType
    category: Category | None
    about: tuple[str, ...]
    slot: str
    confidence: float
    sure: float
    evidence: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An item that was refused, and why."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is left of proposals. `causes` are pairs of messages, the cause first."""

    facts: tuple[Accepted, ...] = ()
    entities: tuple[Introduction, ...] = ()
    relations: tuple[Assertion, ...] = ()
    causes: tuple[tuple[Node, Node], ...] = ()
    summary: str = ""
    refused: tuple[Refused, ...] = ()

    @property
    def is_unfounded(self) -> bool:
        """Whether there are statements, and none rests on what was said: whoever made them has not understood it."""
        return not self.facts and any(each.reason in _UNFOUNDED for each in self.refused)


def judge(proposal: Proposal, page: Page, rules: Rules) -> Judged:
    """Accept or refuse each item of what a model made of one page."""
    court = _Court(page, rules)
    facts = [found for each in proposal.facts if (found := court.fact(each))]
    entities = [somebody for each in proposal.entities if (somebody := court.entity(each))]
    relations = [tie for each in proposal.relations if (tie := court.relation(each))]
    causes = [pair for each in proposal.causes if (pair := court.cause(each.cause, each.effect))]
    summary = " ".join(proposal.summary.split())[:_MOST_SUMMARY_CHARS]
    return Judged(
        facts=_without_repeats(facts),
        entities=tuple(entities),
        relations=tuple(relations),
        causes=_pairs(causes),
        summary="" if objection(summary, rules) else summary,
        refused=tuple(court.refused),
    )


def joined(pages: Sequence[Judged]) -> Judged:
    """What all pages of a conversation leave behind, repeats taken together."""
    return Judged(
        facts=_without_repeats(fact for page in pages for fact in page.facts),
        entities=tuple(each for page in pages for each in page.entities),
        relations=tuple(each for page in pages for each in page.relations),
        causes=_pairs(pair for page in pages for pair in page.causes),
        summary=" ".join(page.summary for page in pages if page.summary)[:_MOST_SUMMARY_CHARS],
        refused=tuple(each for page in pages for each in page.refused),
    )


def _pairs(causes: Iterable[tuple[Node, Node]]) -> tuple[tuple[Node, Node], ...]:
    """Each pair once, and not more than a run may have."""
    return tuple({(cause.id, effect.id): (cause, effect) for cause, effect in causes}.values())[:_MOST_CAUSES]


def _without_repeats(facts: Iterable[Accepted]) -> tuple[Accepted, ...]:
    """Facts that say the same are one, with the evidence of all."""
    kept: dict[tuple[str, str], Accepted] = {}
    for fact in facts:
        line = fact.type, statement_line(fact.content) or fact.content
        if line in kept:
            evidence = {node.id: node for node in (*kept[line].evidence, *fact.evidence)}
            kept[line] = replace(kept[line], evidence=tuple(evidence.values()))
        else:
            kept[line] = fact
    return tuple(kept.values())


class _Court:
    """Judges the items of one page, and keeps what was refused."""

    def __init__(self, page: Page, rules: Rules) -> None:
        self._page = page
        self._rules = rules
        self._names = frozenset(name_terms("\n".join((*page.before, *page.lines))))
        self.refused: list[Refused] = []

    def fact(self, given: ProposedFact) -> Accepted | None:
        """The fact, or None and a reason among those refused."""
        text = " ".join(given.text.split())
        evidence = self._handed(given.evidence)
        if reason := self._against(text, given, evidence):
            self.refused.append(Refused(text=text[:_MOST_CHARS], reason=reason))
            return None
        category = "preference" if given.kind == "preference" else given.category
        return Accepted(
            content=text,
            type=_TYPES.get(given.kind, "semantic"),
            category=category if category in _CATEGORIES else None,  # type: ignore[arg-type]  # just looked up
            about=self._about(given.about),
            slot=" ".join(given.slot.casefold().split())[:_MOST_NAME_CHARS],
            confidence=STATED if given.said else CONCLUDED,
            sure=given.confidence,
            evidence=evidence or (),
        )

    def _against(self, text: str, given: ProposedFact, evidence: tuple[Node, ...] | None) -> str:
        """Why a fact is refused, "" where it is not."""
        if evidence and all(node.role in ("assistant", "system") for node in evidence):
            return "rests on the assistant's own words"
        return fault(text, evidence, self._rules, sure=given.confidence)

    def entity(self, given: ProposedEntity) -> Introduction | None:
        """Somebody who is named on this page, by the names used there."""
        evidence = self._handed(given.evidence)
        name = self._name(given.name)
        if not evidence or not name:
            reason = "has no evidence that was handed out" if not evidence else "is not named in the conversation"
            self.refused.append(Refused(text=" ".join(given.name.split())[:_MOST_NAME_CHARS], reason=reason))
            return None
        aliases = (known for each in given.aliases if (known := self._name(each)))
        relation = " ".join(given.relation.split())[:_MOST_NAME_CHARS]
        return Introduction(
            name=name,
            type=given.type if given.type in _ENTITY_TYPES else "concept",  # type: ignore[arg-type]  # just looked up
            aliases=tuple(dict.fromkeys(each for each in aliases if each != name)),
            relation=relation or None,
            evidence=_ids(evidence),
        )

    def relation(self, given: ProposedRelation) -> Assertion | None:
        """A relation between two who are named on this page."""
        evidence, source, target = self._handed(given.evidence), self._name(given.source), self._name(given.target)
        predicate = " ".join(given.predicate.split())
        if not (evidence and source and target and predicate) or len(predicate) > _MOST_NAME_CHARS:
            return None
        return Assertion(source=source, predicate=predicate, target=target, evidence=_ids(evidence))

    def cause(self, cause: str, effect: str) -> tuple[Node, Node] | None:
        """Two messages of which one led to the other, where either says so in words."""
        pair = self._handed([cause]), self._handed([effect])
        if not pair[0] or not pair[1]:
            return None
        (first,), (second,) = pair[0], pair[1]
        is_said = any(says_why(node.content) for node in (first, second))
        return (first, second) if is_said and first.id != second.id else None

    def _handed(self, handles: Sequence[str]) -> tuple[Node, ...] | None:
        return handed(handles, self._page.episodes)

    def _name(self, given: str) -> str:
        """A name that is used on this page; "" for another, and for the user."""
        name = " ".join(given.split())
        terms = name_terms(name)
        is_used = bool(terms) and self._names.issuperset(terms)
        return name if is_used and len(name) <= _MOST_NAME_CHARS and name.casefold() not in _user_words() else ""

    def _about(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for each in names[:10] if (name := self._name(each))))


def _ids(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(node.id for node in nodes)


def clean_handle(given: str) -> str:
    """A handle as it was handed out: models put it in brackets, or begin it with a capital."""
    return given.strip().strip("[]").lower()


def handed(handles: Sequence[str], out: Mapping[str, Node]) -> tuple[Node, ...] | None:
    """What was handed out under some handles, each once; None where one of them was not."""
    found = [out.get(clean_handle(each)) for each in handles]
    if any(node is None for node in found):
        return None
    return tuple({node.id: node for node in found if node is not None}.values())


def fault(
    text: str,
    evidence: Sequence[Node] | None,
    rules: Rules,
    *,
    sure: float = 1.0,
    least: int = 1,
    most_chars: int = _MOST_CHARS,
) -> str:
    """Why a statement may not be kept, "" where it may.

    Args:
        evidence: what it is said to rest on, as `handed` found it.
        least: on how many memories it must rest.
    """
    if evidence is None:
        return _NOT_HANDED_OUT
    if len(evidence) < least:
        return "rests on a single memory" if evidence else _NO_EVIDENCE
    if not text or len(text) > most_chars:
        return "is no short statement"
    if not rules.min_confidence <= sure <= 1:
        return "is not sure enough"
    return objection(text, rules) if has_in_common(text, evidence) else _NOT_OF_EVIDENCE


def has_in_common(text: str, evidence: Sequence[Node]) -> bool:
    """Whether a statement holds at least one telling word of what it is said to rest on."""
    said = {term for node in evidence for term in index_terms(f"{node.speaker or ''} {own_words(node)}")}
    return not said.isdisjoint(question_terms(text) or index_terms(text))


def objection(text: str, rules: Rules) -> str:
    """Why a text may not be kept at all, "" where it may."""
    if rules.has_credential(text):
        return "holds a credential"
    return "is an instruction" if rules.is_instruction(text) else ""


def says_why(text: str) -> bool:
    """Whether a text says in words that one thing led to another."""
    return _causal(languages_of(text)).search(text) is not None
