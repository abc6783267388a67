"""Reviews that await a decision: possible conflicts, proposed merges, quarantined texts, conversations that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response

from ricordo.interfaces.page.visit import Visit
from ricordo.model import MERGE, Profile, Review, ReviewKind
from ricordo.text.disguise import hidden_text

_PAIR = (("replace", "r"), ("keep both", "b"), ("keep old", "o"))
DECISIONS: Mapping[ReviewKind, Sequence[tuple[str, str]]] = {
    "quarantine": (("approve", "a"), ("refuse", "x")),
    "session": (("approve", "a"),),
    "merge": (("approve", "a"), ("refuse", "x")),
    "replaced": _PAIR,
    "conflict": _PAIR,
    "several": _PAIR,
    "same": _PAIR,
}
"""The possible decisions for each kind of review, each with its keyboard shortcut."""

GROUPS: tuple[tuple[str, tuple[ReviewKind, ...]], ...] = (
    ("stuck", ("session",)),
    ("conflicts", ("conflict",)),
    ("merges", ("merge",)),
    ("held", ("quarantine",)),
    ("both", ("several", "same")),
    ("replaced", ("replaced",)),
)
_DONE_OF_MERGE = {"approve": "merged", "refuse": "kept_apart"}
_MOST = 100
_FACTS = 3


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
        profiles=await _profiles(visit, found),
    )


async def _profiles(visit: Visit, found: Sequence[Review]) -> Mapping[str, Profile]:
    """Return the profiles of the entities that reviews propose to merge, by id."""
    ids = dict.fromkeys(each.id for review in found for each in review.entities)
    return {id: await visit.call("entity", name=id, limit=_FACTS) for id in ids}


async def decide(visit: Visit) -> Response:
    """Resolve one review."""
    decision, item = visit.form.get("decision", ""), visit.named()
    of_merge = _DONE_OF_MERGE if item.startswith(MERGE) else {}
    done = of_merge.get(decision, decision.replace(" ", "_"))
    decided: Review = await visit.act(done, "resolve", item=item, decision=decision)
    pair = [decided.newer, decided.older] if decided.older is not None else []
    visit.add_to_notice("done.closed", [node.content for node in pair if not node.is_live])
    return visit.go("/page/inbox")


PAGES = (("GET", "/page/inbox", "inbox", show), ("POST", "/page/inbox/decide", "inbox", decide))
