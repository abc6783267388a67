"""Reviews that await a decision: possible conflicts, quarantined texts, conversations that failed to consolidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response

from ricordo.interfaces.page.visit import Visit
from ricordo.model import Review, ReviewKind
from ricordo.text.disguise import hidden_text

_PAIR = (("replace", "r"), ("keep both", "b"), ("keep old", "o"))
DECISIONS: Mapping[ReviewKind, Sequence[tuple[str, str]]] = {
    "quarantine": (("approve", "a"), ("refuse", "x")),
    "session": (("approve", "a"),),
    "replaced": _PAIR,
    "conflict": _PAIR,
    "several": _PAIR,
    "same": _PAIR,
}
"""The possible decisions for each kind of review, each with its keyboard shortcut."""

GROUPS: tuple[tuple[str, tuple[ReviewKind, ...]], ...] = (
    ("stuck", ("session",)),
    ("conflicts", ("conflict",)),
    ("held", ("quarantine",)),
    ("both", ("several", "same")),
    ("replaced", ("replaced",)),
)
_MOST = 100


async def show(visit: Visit) -> Response:
    """Show all open reviews, the most important group first."""
    found: Sequence[Review] = await visit.call("review", limit=_MOST)
    groups = [(name, [each for each in found if each.kind in kinds]) for name, kinds in GROUPS]
    return visit.page(
        "inbox.html",
        groups=[(name, reviews) for name, reviews in groups if reviews],
        count=len(found),
        decisions=DECISIONS,
        hidden={each.id: hidden_text(each.newer.content) for each in found},
    )


async def decide(visit: Visit) -> Response:
    """Resolve one review."""
    decision = visit.form.get("decision", "")
    await visit.act(decision.replace(" ", "_"), "resolve", item=visit.named(), decision=decision)
    return visit.go("/page/inbox")


PAGES = (("GET", "/page/inbox", "inbox", show), ("POST", "/page/inbox/decide", "inbox", decide))
