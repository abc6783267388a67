"""How a memory fades with time, and when its time is over. Pure; computed when read, so that it cannot compound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log
from typing import NamedTuple

from ricordo.model import Category, ClosedReason, DecayCloses, EndsBy, Fading

FADED = 0.05
"""Below this a memory counts as faded."""

STATED = 0.8
"""How sure a model's memory is that repeats what was said; what it only concludes is less."""

DAY_MS = 86_400_000

LIFETIME_DAYS: Mapping[Category, int] = {"context": 7, "event": 30, "task": 14, "observation": 3}
"""How long what passes is kept; every other category has no end of its own."""

_POWER = 0.8
_RECENCY_A_DAY = 0.01
_SCORE_WEIGHT = 0.2
_USED_BONUS, _USED_OFTEN = 0.05, 20
_LONGEST_DAYS = 365_000


class Vital(NamedTuple):
    """What of a piece of knowledge decides how long it is kept. Instants are Unix milliseconds.

    `shown` and `last_access` tell how often it was returned, and when last. `is_said`: by the user, or a model repeats
    what the user said; `is_inferred`: a model drew it. `is_protected`: it is about somebody who is marked so;
    `is_frequent`: about somebody who is named very often. `size` is that of its text in bytes of UTF-8.
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
        """When it was last learnt or proved useful; being shown proves nothing."""
        return max(self.created_at, self.reinforced_at or self.created_at)

    @property
    def touched_at(self) -> int:
        """When it was last learnt, reinforced or shown: its fading counts from here."""
        return max(self.proved_at, self.last_access or self.proved_at)

    @property
    def fades(self) -> bool:
        """Whether it ever does. What was confirmed or is protected does not, and makes no room for others either."""
        return self.rate > 0 and not (self.is_protected or self.is_frequent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """When a memory's time is over, Unix milliseconds, and whether somebody said so or its category does."""

    at: int
    why: EndsBy


def retention(confidence: float, rate: float, days: float) -> float:
    """What is left of a memory after so many days without use: `confidence × exp(−rate × days^0.8)`.

    Args:
        days: below 0 (a clock that went back) counts as 0.

    Source: FEATURES R6.1, after Ebbinghaus.
    """
    return confidence * exp(-rate * max(0.0, days) ** _POWER)


def days_until_faded(confidence: float, rate: float) -> float | None:
    """After how many days a memory falls below `FADED`; None if it never does."""
    if confidence <= FADED:
        return 0.0
    return None if rate <= 0 else float((log(confidence / FADED) / rate) ** (1 / _POWER))


def used(confidence: float, shown: int) -> float:
    """How firmly a memory is held that was returned so often: `confidence + 0.05 × log(1 + shown / 20)`, at most 1.

    It slows fading and counts nowhere else. Source: FEATURES R4.8.
    """
    return min(1.0, confidence + _USED_BONUS * log(1 + max(0, shown) / _USED_OFTEN))


def left(vital: Vital, *, now: int) -> float:
    """What is left of a memory now, from 0 to 1."""
    firmness = used(vital.confidence, vital.shown)
    return retention(firmness, vital.rate if vital.fades else 0.0, (now - vital.touched_at) / DAY_MS)


def fades_at(vital: Vital) -> int | None:
    """When it falls below `FADED` if nothing touches it, Unix milliseconds; None if it never does."""
    days = days_until_faded(used(vital.confidence, vital.shown), vital.rate) if vital.fades else None
    return None if days is None else vital.touched_at + int(min(days, _LONGEST_DAYS) * DAY_MS)


def ending(vital: Vital) -> Ending | None:
    """When its time is over: as was said or, sooner, as its category has it. What was confirmed, or is about somebody
    protected, has no end but a stated one. A lifetime counts from when it last proved useful, or from when it begins
    to hold: an appointment is not over before it came.
    """
    stated = None if vital.expires_at is None else Ending(at=vital.expires_at, why="expiry")
    days = lifetime_days(vital.category)
    if days is None or vital.rate <= 0 or vital.is_protected:
        return stated
    over = Ending(at=max(vital.proved_at, vital.valid_from) + days * DAY_MS, why="lifetime")
    return over if stated is None or over.at < stated.at else stated


def lifetime_days(category: Category | None) -> int | None:
    """How long memories of a category are kept; None where it sets no end."""
    return None if category is None else LIFETIME_DAYS.get(category)


def fate(vital: Vital, closes: DecayCloses) -> Fading:
    """What becomes of a memory once it has faded. With "ephemeral" what passes, and what was only inferred, is closed;
    what the user said is not.
    """
    if not vital.fades:
        return "never"
    if closes == "all":
        return "closes"
    passes = vital.category in LIFETIME_DAYS or vital.is_inferred
    return "closes" if passes and not vital.is_said else "sinks"


def due(vital: Vital, *, now: int, closes: DecayCloses) -> ClosedReason | None:
    """Why a live memory is to be closed now; None: it stays."""
    end = ending(vital)
    if end is not None and end.at <= now:
        return "expired"
    is_faded = left(vital, now=now) < FADED
    return "decayed" if is_faded and fate(vital, closes) == "closes" else None


def standing(vital: Vital, *, now: int) -> float:
    """What a memory counts beside others of its kind, whatever is asked: `exp(0.2 × score) × 1 / (1 + 0.01 × days)`.

    Source: FEATURES R6.8, with the weights of R4.7.
    """
    days = max(0.0, (now - vital.proved_at) / DAY_MS)
    return exp(_SCORE_WEIGHT * vital.score) / (1 + _RECENCY_A_DAY * days)


def worth(vital: Vital, *, now: int) -> float:
    """How much would be lost with a memory: its standing, as far as anything is left of it."""
    return standing(vital, now=now) * left(vital, now=now)
