"""The runs of a language model: what each proposed, what was applied, and what it cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from starlette.responses import Response

from ricordo.clock import handle_of
from ricordo.interfaces.http.guard import json_response
from ricordo.interfaces.page.visit import Visit, link
from ricordo.model import ModelUse, Run

_MOST = 50
_DAYS = 60
_BACK = 10_000


async def show_all(visit: Visit) -> Response:
    """Show the latest runs, and the tokens that models used per day."""
    runs = await _as_they_were(visit, await visit.call("runs", limit=_MOST))
    return visit.page("runs.html", runs=runs, uses=await _uses(visit))


async def _as_they_were(visit: Visit, runs: Sequence[Run]) -> Sequence[Run]:
    """Return the runs as of the time that the pages are set to: a run that was undone later counts as done."""
    if visit.as_of is None:
        return runs
    visit.caller.require("store_view.commits")
    commits = await visit.memory.store_view.commits(limit=_BACK)
    later = {each.reason for each in commits if each.origin == "undo" and each.at > visit.moment}
    return [
        replace(run, state="done") if {f"undo of {run.id}", f"undo of {handle_of(run.id)}"} & later else run
        for run in runs
        if run.started_at <= visit.moment
    ]


async def _uses(visit: Visit) -> Sequence[ModelUse]:
    """Return the use of models per day, up to the time that the pages are set to."""
    last = visit.moment.date().isoformat()
    return [use for use in await visit.call("spending", days=_DAYS) if use.day <= last]


async def spending(visit: Visit) -> Response:
    """Return the tokens per day for the plot, oldest day first."""
    uses = await _uses(visit)
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
    """Show what one run did, or what a replay proposes compared with the present facts."""
    run: Run = await visit.call("run", id=visit.named())
    run = next(iter(await _as_they_were(visit, [run])), run)
    numbered = list(enumerate(run.items, start=1))
    counts = Counter(item.what for item in run.items)
    can_replay = visit.is_owner and visit.may_change and run.kind in ("consolidation", "extraction")
    return visit.page("run.html", run=run, items=numbered, counts=counts, can_replay=can_replay)


async def replay(visit: Visit) -> Response:
    """Ask the model again and show the differences, without changing the memory."""
    visit.require("replay")
    again = await visit.memory.replay(visit.named())
    return visit.go(link("run", again.id))


async def accept(visit: Visit) -> Response:
    """Apply the changes that a replay proposes."""
    run = await visit.act("accepted", "accept", run=visit.named())
    return visit.go(link("run", run.id))


PAGES = (
    ("GET", "/page/runs", "runs", show_all),
    ("GET", "/page/spending.json", "runs", spending),
    ("GET", "/page/run", "runs", show),
    ("POST", "/page/run/replay", "runs", replay),
    ("POST", "/page/run/accept", "runs", accept),
)
