"""Who may be believed: the tier of what is remembered, and what each tier may do to another. Pure.

A tier is never stored: it follows from where a memory came from (`origin`) and who said it (`role`), and of the two the
lower counts. What is derived from others carries the lowest tier of what it rests on (`lowest_role`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from ricordo.errors import DeniedError
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
# Whoever writes the system's messages runs the agent; they are not the user's words.
_BY_ROLE: Mapping[Role, Trust] = {"user": "user", "assistant": "agent", "system": "agent", "tool": "tool"}
_ORIGIN_OF: Mapping[Trust, Origin] = {"agent": "agent", "import": "import", "tool": "tool_result", "web": "web"}
_ROLE_OF: Mapping[Trust, Role] = {"agent": "assistant", "import": "tool", "tool": "tool", "web": "tool"}

_LABELS: Mapping[Trust, str] = {
    "user": "",
    "agent": "from the assistant",
    "import": "imported",
    "tool": "from a tool, unverified",
    "web": "from the web, unverified",
}


@cache
def trust_of(origin: Origin, role: Role | None) -> Trust:
    """The tier of a memory: the lower of where it came from and of who said it.

    >>> trust_of("conversation", "tool"), trust_of("web", "user"), trust_of("user", None)
    ('tool', 'web', 'user')
    """
    # A file edited by hand may say anything: a word nobody knows is believed least.
    return lower(_BY_ORIGIN.get(origin, "web"), _BY_ROLE.get(role or "user", "web"))


def lower(one: Trust, other: Trust) -> Trust:
    """The less trusted of two tiers."""
    return one if _RANK[one] <= _RANK[other] else other


def is_untrusted(tier: Trust) -> bool:
    """Whether nobody who speaks for the user vouches for it: imports, tools and pages."""
    return _RANK[tier] < _RANK["agent"]


def awaits_a_word(tier: Trust) -> bool:
    """Whether knowledge of this tier is held until somebody approves it: what tools and pages say of the world is no
    knowledge of the user's yet. An import is somebody's own doing.
    """
    return _RANK[tier] < _RANK["import"]


def may_override(new: Trust, old: Trust) -> bool:
    """Whether what is new may close, stand before, repeat or alter what is there. Assistants act for the user: they
    note what the user says. Nobody else overrides what is more trusted than they are.
    """
    return not is_untrusted(new) or _RANK[new] >= _RANK[old]


def check_may_alter(caller: Trust) -> None:
    """Whoever speaks for a tool or a page may add to what is remembered, and alter nothing.

    Raises:
        DeniedError: the caller is one of them.
    """
    if is_untrusted(caller):
        raise DeniedError(f"a caller trusted as {caller} alters nothing", hint="it may `add` and `remember`")


def may_decide(caller: Trust) -> bool:
    """Whether a caller may say what becomes of what is held, and take back what others did. No assistant approves its
    own reading.
    """
    return caller == "user"


def capped(origin: Origin, role: Role | None, *, caller: Trust) -> Origin:
    """The origin under which a caller's words are kept: none above the caller's own tier.

    >>> capped("user", "user", caller="agent"), capped("web", "user", caller="agent")
    ('agent', 'web')
    """
    said = trust_of(origin, role)
    return origin if lower(said, caller) == said else _ORIGIN_OF[caller]


def least_of(tiers: Iterable[Trust]) -> Trust:
    """The tier of what rests on all of these; of nothing, the user's."""
    least: Trust = "user"
    for tier in tiers:
        least = lower(least, tier)
    return least


def role_of_derived(tiers: Iterable[Trust]) -> Role:
    """The role under which a derived memory is kept, so that its tier is no higher than the least of its sources."""
    least = least_of(tiers)
    return "user" if least == "user" else _ROLE_OF[least]


def label(tier: Trust) -> str:
    """What is said beside a memory of this tier where it is shown; "" for the user's own."""
    return _LABELS[tier]
