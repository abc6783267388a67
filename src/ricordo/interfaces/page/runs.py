"""The runs of a language model: what each proposed, what became of it, and what it cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from starlette.responses import Response

from ricordo.interfaces.http.guard import json_response
from ricordo.interfaces.page.visit import Visit, link
from ricordo.model import ModelUse, Run

_MOST = 50
_DAYS = 60


async def show_all(visit: Visit) -> Response:
    """Show the latest runs, and what models used by day."""
    runs: Sequence[Run] = [each for each in await visit.call("runs", limit=_MOST) if each.started_at <= visit.moment]
    uses: Sequence[ModelUse] = await visit.call("spending", days=_DAYS)
    return visit.page("runs.html", runs=runs, uses=uses)


async def spending(visit: Visit) -> Response:
    """Return tokens by day for the plot, the oldest day first."""
    uses: Sequence[ModelUse] = await visit.call("spending", days=_DAYS)
    days: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for use in uses:
        days[use.day][0] += use.tokens_in
        days[use.day][1] += use.tokens_out
    ordered = sorted(days.items())
    texts = visit.texts
    return json_response(
        {
            "days": [day for day, _ in ordered],
            "series": [
                {"name": texts("runs.tokens_in"), "values": [each[0] for _, each in ordered]},
                {"name": texts("runs.tokens_out"), "values": [each[1] for _, each in ordered]},
            ],
        }
    )


async def show(visit: Visit) -> Response:
    """Show what one run did. A replay is shown beside what is known."""
    run: Run = await visit.call("run", id=visit.named())
    numbered = list(enumerate(run.items, start=1))
    counts = Counter(item.what for item in run.items)
    can_replay = visit.is_owner and visit.may_change and run.kind in ("consolidation", "extraction")
    return visit.page("run.html", run=run, items=numbered, counts=counts, can_replay=can_replay)


async def replay(visit: Visit) -> Response:
    """Ask the model again, and show what differs. Nothing is changed."""
    visit.require("replay")
    again = await visit.memory.replay(visit.named())
    return visit.go(link("run", again.id))


async def accept(visit: Visit) -> Response:
    """Apply what a replay found."""
    run = await visit.act("accepted", "accept", run=visit.named())
    return visit.go(link("run", run.id))


PAGES = (
    ("GET", "/page/runs", "runs", show_all),
    ("GET", "/page/spending.json", "runs", spending),
    ("GET", "/page/run", "runs", show),
    ("POST", "/page/run/replay", "runs", replay),
    ("POST", "/page/run/accept", "runs", accept),
)
