"""Trust tiers: how much a memory is believed, and what each tier may do to another. Pure.

A tier is never stored: it is the lower one of the tiers of a memory's origin and of its speaker's role. A derived
memory has the lowest tier of its sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from ricordo.model import Origin, Role, Trust

_RANK: Mapping[Trust, int] = {"web": 0, "tool": 1, "import": 2, "agent": 3, "user": 4}

_BY_ORIGIN: Mapping[Origin, Trust] = {
    "conversation": "user",
    "user": "user",
    "cli": "user",
    "rpc": "user",
    "agent": "agent",
    "extraction": "agent",
    "consolidation": "agent",
    "import": "import",
    "tool_result": "tool",
    "web": "web",
}
# System messages come from the operator of the agent, not from the user.
_BY_ROLE: Mapping[Role, Trust] = {"user": "user", "assistant": "agent", "system": "agent", "tool": "tool"}
_ORIGIN_OF: Mapping[Trust, Origin] = {"agent": "agent", "import": "import", "tool": "tool_result", "web": "web"}
_ROLE_OF: Mapping[Trust, Role] = {"agent": "assistant", "import": "tool", "tool": "tool", "web": "tool"}

UNAPPROVED: frozenset[Trust] = frozenset(("tool", "web"))
"""The tiers whose knowledge is quarantined until it is approved. An import is an action of the user."""

_LABELS: Mapping[Trust, str] = {
    "user": "",
    "agent": "noted by the assistant",
    "import": "imported",
    "tool": "from a tool, unverified",
    "web": "from the web, unverified",
}


@cache
def trust_of(origin: Origin, role: Role | None) -> Trust:
    """Return the trust tier of a memory: the lower one of its origin's and its speaker's tier.

    >>> trust_of("conversation", "tool"), trust_of("web", "user"), trust_of("user", None)
    ('tool', 'web', 'user')
    """
    # A file edited by hand may contain anything, so unknown words get the lowest tier.
    return lower(_BY_ORIGIN.get(origin, "web"), _BY_ROLE.get(role or "user", "web"))


def lower(one: Trust, other: Trust) -> Trust:
    """Return the less trusted of two tiers."""
    return one if _RANK[one] <= _RANK[other] else other


def is_untrusted(tier: Trust) -> bool:
    """Return whether a tier is below an agent: imports, tools and web pages."""
    return _RANK[tier] < _RANK["agent"]


def may_override(new: Trust, old: Trust) -> bool:
    """Return whether new knowledge may close, outrank, repeat or change old knowledge. Agents act for the user and may.
    Other sources may not override more trusted knowledge.
    """
    return not is_untrusted(new) or _RANK[new] >= _RANK[old]


def capped(origin: Origin, role: Role | None, *, caller: Trust) -> Origin:
    """Return the origin to store for a caller's words: never above the caller's own tier.

    >>> capped("user", "user", caller="agent"), capped("web", "user", caller="agent")
    ('agent', 'web')
    """
    said = trust_of(origin, role)
    return origin if lower(said, caller) == said else _ORIGIN_OF[caller]


def least_of(tiers: Iterable[Trust]) -> Trust:
    """Return the lowest of some tiers; the user's if there are none."""
    least: Trust = "user"
    for tier in tiers:
        least = lower(least, tier)
    return least


def role_of_derived(tiers: Iterable[Trust]) -> Role:
    """Return the role to store for a derived memory, so that its tier is at most the lowest of its sources."""
    least = least_of(tiers)
    return "user" if least == "user" else _ROLE_OF[least]


def label(tier: Trust) -> str:
    """Return the label shown with a memory of this tier; "" for the user's own."""
    return _LABELS[tier]
