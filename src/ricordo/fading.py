"""How a memory fades with time. Pure; computed when read, so that it cannot compound."""

from __future__ import annotations

from math import exp, log

FADED = 0.05
"""Below this a memory counts as faded."""

_POWER = 0.8


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
