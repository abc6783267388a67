"""What a model may propose, as the form it is asked for. Nothing here is believed; see judge.py."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

MOST_ITEMS = 200
"""Of a page of 30 messages nobody can keep more than this; an answer that does is none."""


def _choice(*words: str) -> Any:
    """A text of which the schema says what it may be. Another word costs an item, not the answer."""
    return Field(json_schema_extra={"enum": list(words)})


class ProposedFact(BaseModel, extra="ignore"):
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

    facts: list[ProposedFact] = Field(max_length=MOST_ITEMS)
    entities: list[ProposedEntity] = Field(default=[], max_length=MOST_ITEMS)
    relations: list[ProposedRelation] = Field(default=[], max_length=MOST_ITEMS)
    causes: list[ProposedCause] = Field(default=[], max_length=MOST_ITEMS)
    summary: str = ""


class Summary(BaseModel, extra="ignore"):
    """A conversation in short."""

    summary: str


class Verdict(BaseModel, extra="ignore"):
    pair: str
    is_: str = Field(alias="is", json_schema_extra={"enum": ["same", "contradicts", "neither"]})
    confidence: float


class Verdicts(BaseModel, extra="ignore"):
    """What new statements are to older ones."""

    verdicts: list[Verdict] = Field(max_length=MOST_ITEMS)


class SaidCause(BaseModel, extra="ignore"):
    pair: str
    cause: str = _choice("first", "then")
    confidence: float


class Causes(BaseModel, extra="ignore"):
    """Pairs of messages of which one led to the other."""

    causes: list[SaidCause] = Field(max_length=MOST_ITEMS)


class ProposedSummary(BaseModel, extra="ignore"):
    entity: str
    text: str
    evidence: list[str]


class Summaries(BaseModel, extra="ignore"):
    """Who or what some people and things are."""

    summaries: list[ProposedSummary] = Field(max_length=MOST_ITEMS)


class ProposedReflection(BaseModel, extra="ignore"):
    text: str
    about: list[str]
    evidence: list[str]
    confidence: float


class Reflections(BaseModel, extra="ignore"):
    """What some memories show together."""

    reflections: list[ProposedReflection] = Field(max_length=MOST_ITEMS)


Relationship = Literal["same", "contradicts"]
