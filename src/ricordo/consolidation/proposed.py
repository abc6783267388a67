"""The formats of what a model answers, and what the rules propose in its place.

Apart from the code that judges them, because pydantic takes a tenth of the time in which a process starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from ricordo.consolidation.plain_rules import Kind, plain_statements, told_changes
from ricordo.consolidation.prompts import Page, own_words
from ricordo.model import AGENT, Category, Node
from ricordo.text.analyzer import says_we
from ricordo.text.categories import infer_category
from ricordo.text.change import topics
from ricordo.text.entity_recognition import entities_named
from ricordo.text.reported import reporter
from ricordo.text.sentences import without_jokes
from ricordo.text.statement import subject_of
from ricordo.text.work import WorkStatement, statements_of_work
from ricordo.trust import trust_of

MAX_ITEMS = 200
"""Maximum number of items of a kind in one answer, far more than 30 messages need. Longer answers are invalid."""


def _choice(*words: str) -> Any:
    """Return a text field whose schema lists the allowed words. Any other word invalidates only the item."""
    return Field(json_schema_extra={"enum": list(words)})


class ProposedFact(BaseModel, extra="ignore"):
    is_update: ClassVar[bool] = False

    text: str
    kind: str = _choice("fact", "preference", "opinion", "procedure")
    category: str = _choice(
        "preference", "identity", "relationship", "knowledge", "context", "event", "task", "observation"
    )
    about: list[str]
    slot: str
    evidence: list[str]
    said: bool
    confidence: float


class ProposedUpdate(ProposedFact):
    """A statement that is worth keeping only if it makes a known fact out of date. Only the rules propose it."""

    is_update: ClassVar[bool] = True


class ProposedEntity(BaseModel, extra="ignore"):
    name: str
    type: str = _choice("person", "project", "organization", "place", "concept", "tool")
    aliases: list[str]
    relation: str
    evidence: list[str]


class ProposedRelation(BaseModel, extra="ignore"):
    source: str
    predicate: str
    target: str
    evidence: list[str]


class ProposedCause(BaseModel, extra="ignore"):
    cause: str
    effect: str


class Proposal(BaseModel, extra="ignore"):
    """What a page of a conversation leaves behind."""

    facts: list[ProposedFact] = Field(max_length=MAX_ITEMS)
    entities: list[ProposedEntity] = Field(default=[], max_length=MAX_ITEMS)
    relations: list[ProposedRelation] = Field(default=[], max_length=MAX_ITEMS)
    causes: list[ProposedCause] = Field(default=[], max_length=MAX_ITEMS)
    summary: str = ""


class Summary(BaseModel, extra="ignore"):
    """A conversation in short."""

    summary: str


class Check(BaseModel, extra="ignore"):
    claim: str
    is_: str = Field(alias="is", json_schema_extra={"enum": ["stated", "otherwise", "more"]})
    confidence: float


class Checks(BaseModel, extra="ignore"):
    """Whether statements are said by the lines they rest on."""

    checks: list[Check] = Field(max_length=MAX_ITEMS)


class Verdict(BaseModel, extra="ignore"):
    pair: str
    is_: str = Field(alias="is", json_schema_extra={"enum": ["same", "contradicts", "neither"]})
    confidence: float


class Verdicts(BaseModel, extra="ignore"):
    """What new statements are to older ones."""

    verdicts: list[Verdict] = Field(max_length=MAX_ITEMS)


class SaidCause(BaseModel, extra="ignore"):
    pair: str
    cause: str = _choice("first", "then")
    confidence: float


class Causes(BaseModel, extra="ignore"):
    """Pairs of messages of which one led to the other."""

    causes: list[SaidCause] = Field(max_length=MAX_ITEMS)


class ProposedSummary(BaseModel, extra="ignore"):
    entity: str
    text: str
    evidence: list[str]


class Summaries(BaseModel, extra="ignore"):
    """Who or what some people and things are."""

    summaries: list[ProposedSummary] = Field(max_length=MAX_ITEMS)


class ProposedReflection(BaseModel, extra="ignore"):
    text: str
    about: list[str]
    evidence: list[str]
    confidence: float


class Reflections(BaseModel, extra="ignore"):
    """What some memories show together."""

    reflections: list[ProposedReflection] = Field(max_length=MAX_ITEMS)


def propose(page: Page) -> Proposal:
    """Return the clear statements of people on a page in the form of a model's proposal, to be judged like one."""
    facts: dict[tuple[str, str], ProposedFact] = {}
    updates: dict[tuple[str, str], ProposedFact] = {}
    for handle, node in page.episodes.items():
        plain = plain_statements(node.content) if node.role == "user" else ()
        for said in plain:
            fact = ProposedFact(
                text=said.text,
                kind=_KINDS[said.kind],
                category=_CATEGORIES.get(said.kind, infer_category(said.text)),
                about=_speakers(node, said.text),
                slot="",
                evidence=[handle],
                said=True,
                confidence=1.0,
            )
            facts.setdefault((node.id, said.text), fact)
        for sentence in told_changes(node.content) if node.role == "user" else ():
            updates.setdefault((node.id, sentence), _update(node, sentence, handle))
        for told in statements_of_work(node.content) if node.role == "user" and AGENT in node.attributes else ():
            if told.kind != "cause" and not any(_is_one(told.text, said.text) for said in plain):
                facts.setdefault((node.id, told.text), _of_work(told, handle))
    found = [*facts.values(), *(update for key, update in updates.items() if key not in facts)]
    return Proposal(facts=found[:MAX_ITEMS], entities=_named(page)[:MAX_ITEMS])


def _update(node: Node, text: str, handle: str) -> ProposedUpdate:
    return ProposedUpdate(
        text=text,
        kind="fact",
        category=infer_category(text),
        about=_speakers(node, text),
        slot="",
        evidence=[handle],
        said=True,
        confidence=1.0,
    )


def _speakers(node: Node, text: str) -> list[str]:
    """Return the speaker of a message, if they state something of themselves, alone or with others: "We live here", "On
    habite ici". What somebody wrote in another member's name tells nothing of that member.
    """
    is_theirs = topics(text).names_speaker or subject_of(text) == () or says_we(text)
    return [node.speaker] if node.speaker and is_theirs and not reporter(node.speaker) else []


def _is_one(one: str, other: str) -> bool:
    """Return whether two readings of a message are of the same sentence: one of them has more around it."""
    one, other = one.casefold(), other.casefold()
    return one in other or other in one


def _of_work(told: WorkStatement, handle: str) -> ProposedFact:
    return ProposedFact(
        text=told.text,
        kind="fact",
        category="task" if told.kind == "left" else "knowledge",
        about=[],
        slot="",
        evidence=[handle],
        said=True,
        confidence=1.0,
    )


def _named(page: Page) -> list[ProposedEntity]:
    """Return the entities that the people of a page clearly name. Quoted pages and tools add no entities."""
    texts = [
        (handle, without_jokes(own_words(node)))
        for handle, node in page.episodes.items()
        if node.role == "user" and trust_of(node.origin, node.role) == "user"
    ]
    return [
        ProposedEntity(
            name=found.name,
            type=found.type,
            aliases=[],
            relation="",
            evidence=[texts[place][0] for place in found.texts],
        )
        for found in entities_named([text for _, text in texts])
    ]


_KINDS: Mapping[Kind, str] = {
    "fact": "fact",
    "decision": "fact",
    "commitment": "fact",
    "preference": "preference",
    "opinion": "opinion",
}
_CATEGORIES: Mapping[Kind, Category] = {"commitment": "task", "decision": "knowledge", "opinion": "knowledge"}
