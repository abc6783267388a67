"""Decay and expiry of memories. Pure. Computed when read, so that repeated runs cannot compound the decay."""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

from ricordo.model import Category, ClosedReason, DecayCloses, Fading

FADED = 0.05
"""A memory counts as faded if less than this is left of it."""

STATED = 0.8
"""Confidence in what a model repeats from a conversation. Inferences of a model have less."""

DAY_MS = 86_400_000

EPHEMERAL: frozenset[Category] = frozenset(("context", "event", "task", "observation"))
"""Categories whose faded memories may be closed, unless the user stated them. They do not expire by themselves."""

_POWER = 0.8
_RECENCY_A_DAY = 0.01
_SCORE_WEIGHT = 0.2
_USED_BONUS, _USED_OFTEN = 0.05, 20
_LONGEST_DAYS = 365_000


class Vital(NamedTuple):
    """The values that decide how long a memory is kept. Instants are Unix milliseconds.

    Attributes:
        shown, last_access: how often it was returned, and when last.
        is_said: the user stated it, or a model repeats the user's statement.
        is_inferred: a model inferred it.
        is_protected: it is about a protected entity.
        is_frequent: it is about an entity that is mentioned very often.
        size: bytes of its text in UTF-8.
    """

    key: int
    id: str
    category: Category | None
    confidence: float
    rate: float
    score: float
    created_at: int
    reinforced_at: int | None
    valid_from: int
    expires_at: int | None
    shown: int
    last_access: int | None
    is_said: bool
    is_inferred: bool
    is_protected: bool
    is_frequent: bool
    size: int

    @property
    def proved_at(self) -> int:
        """When it was last learnt or reinforced. Being shown does not count."""
        return max(self.created_at, self.reinforced_at or self.created_at)

    @property
    def touched_at(self) -> int:
        """When it was last learnt, reinforced or shown. Decay counts from this time."""
        return max(self.proved_at, self.last_access or self.proved_at)

    @property
    def fades(self) -> bool:
        """Whether it can fade. Confirmed and protected memories cannot, and are never evicted."""
        return self.rate > 0 and not (self.is_protected or self.is_frequent)


def retention(confidence: float, rate: float, days: float) -> float:
    """Return how much of a memory is left after some days without use: `confidence × exp(−rate × days^0.8)`.

    Args:
        days: a negative value (the clock went back) counts as 0.

    Source: FEATURES R6.1, after Ebbinghaus.
    """
    return confidence * exp(-rate * max(0.0, days) ** _POWER)


def days_until_faded(confidence: float, rate: float) -> float | None:
    """Return after how many days less than `FADED` of a memory is left; None if never."""
    if confidence <= FADED:
        return 0.0
    return None if rate <= 0 else float((log(confidence / FADED) / rate) ** (1 / _POWER))


def used(confidence: float, shown: int) -> float:
    """Return the confidence raised by use: `confidence + 0.05 × log(1 + shown / 20)`, at most 1.

    This only slows decay. Source: FEATURES R4.8.
    """
    return min(1.0, confidence + _USED_BONUS * log(1 + max(0, shown) / _USED_OFTEN))


def remaining(vital: Vital, *, now: int) -> float:
    """Return how much of a memory is left now, from 0 to 1."""
    firmness = used(vital.confidence, vital.shown)
    return retention(firmness, vital.rate if vital.fades else 0.0, (now - vital.touched_at) / DAY_MS)


def fades_at(vital: Vital) -> int | None:
    """Return when less than `FADED` of an unused memory is left, in Unix milliseconds; None if never."""
    days = days_until_faded(used(vital.confidence, vital.shown), vital.rate) if vital.fades else None
    return None if days is None else vital.touched_at + int(min(days, _LONGEST_DAYS) * DAY_MS)


def fate(vital: Vital, closes: DecayCloses) -> Fading:
    """Return what happens to a faded memory. With "ephemeral", short-lived and inferred memories are closed, except
    statements of the user.
    """
    if not vital.fades:
        return "never"
    if closes == "all":
        return "closes"
    passes = vital.category in EPHEMERAL or vital.is_inferred
    return "closes" if passes and not vital.is_said else "sinks"


def due(vital: Vital, *, now: int, closes: DecayCloses) -> ClosedReason | None:
    """Return why a live memory must be closed now; None if it stays."""
    if vital.expires_at is not None and vital.expires_at <= now:
        return "expired"
    is_faded = remaining(vital, now=now) < FADED
    return "decayed" if is_faded and fate(vital, closes) == "closes" else None


def belief(confidence: float, score: float) -> float:
    """Return how credible and useful a memory is: `confidence × exp(0.2 × score)`."""
    return confidence * exp(_SCORE_WEIGHT * score)


def standing(vital: Vital, *, now: int) -> float:
    """Return the value of a memory for ranking without a question: `exp(0.2 × score) × 1 / (1 + 0.01 × days)`.

    Source: FEATURES R6.8, with the weights of R4.7.
    """
    days = max(0.0, (now - vital.proved_at) / DAY_MS)
    return belief(1.0, vital.score) / (1 + _RECENCY_A_DAY * days)


def worth(vital: Vital, *, now: int) -> float:
    """Return the value that would be lost with a memory: its standing times the part of it that is left."""
    return standing(vital, now=now) * remaining(vital, now=now)
