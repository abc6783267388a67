"""Search while typing, the context an agent would get, the timeline, and the time that all pages are set to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from ricordo.clock import from_ms
from ricordo.errors import NotFoundError, RicordoError
from ricordo.interfaces.page.rendering import LANGUAGES, bars
from ricordo.interfaces.page.visit import Visit
from ricordo.model import Explanation, Hit, Node, Results, Share
from ricordo.text.dates import parse_instant

_FILTERS = ("type", "category", "entity", "tag", "session", "after", "before")
_FLAGS = ("archived", "only_relevant")
_LATEST = 12
_LEAST_SHARE = 0.0005
_LANES = 4
_MOST_EVENTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What one signal added to a score. `width` is a percentage of the largest signal, from 0 to 100."""

    name: str
    share: float
    width: float


def bars_of(shares: Sequence[Share]) -> list[Bar]:
    """Return the parts of a score that are not negligible, the largest first."""
    counted = sorted((each for each in shares if abs(each.share) >= _LEAST_SHARE), key=lambda each: -each.share)
    widths = bars([each.share for each in counted])
    return [Bar(name=each.strategy, share=each.share, width=width) for each, width in zip(counted, widths, strict=True)]


def _asked(visit: Visit) -> dict[str, Any]:
    """Return the filters in the query parameters, as arguments of a search."""
    given: dict[str, Any] = {name: visit.asked(name) for name in _FILTERS}
    return given | {name: True if visit.asked(name) else None for name in _FLAGS}


async def _results(visit: Visit, question: str) -> Results:
    filters, missing = _asked(visit), visit.asked("why_not") or await _meant(visit)
    found: Results = await visit.call(
        "search", text=question, as_of=visit.as_of, trace=True, judge="if_known", why_not=missing, **filters
    )
    return found


async def _meant(visit: Visit) -> str | None:
    """Return the id of the memory that the field `missing` describes: one the user expected among the results.

    Raises:
        NotFoundError: no live or archived memory matches the description.
    """
    if (words := visit.asked("missing")) is None:
        return None
    for archived in (None, True):
        found: Results = await visit.call(
            "search", text=words, as_of=visit.as_of, limit=1, only_relevant=True, archived=archived
        )
        if found.hits:
            return found.hits[0].id
    raise NotFoundError(visit.texts("search.missing_nowhere"))


def _passage(hit: Hit) -> tuple[str, tuple[int, int]]:
    """Return the text to show for a hit, with the start and end of the part that matched."""
    if len(hit.content) <= 2 * len(hit.excerpt) or not hit.passage[0]:
        return hit.content[:2_000], hit.passage
    return hit.excerpt, (0, len(hit.excerpt))


async def _shown(visit: Visit, results: Results) -> Mapping[str, Any]:
    terms = frozenset(results.trace.terms) if results.trace else frozenset()
    absence = results.trace.absence if results.trace else None
    return {
        "results": results,
        "terms": terms,
        "passages": {hit.id: _passage(hit) for hit in results.hits},
        "bars": {hit.id: bars_of(hit.why) for hit in results.hits},
        "absence": absence,
        "absent": None if absence is None or absence.stage == "unknown" else await _as_seen(visit, absence.id),
        "absence_bars": bars_of(absence.shares) if absence else [],
        "took": sum(results.trace.timings_ms.values()) if results.trace else 0.0,
    }


async def _as_seen(visit: Visit, id: str) -> Node:
    why: Explanation = await visit.call("explain", id=id, as_of=visit.as_of)
    return why.node


async def show(visit: Visit) -> Response:
    """Show the first page: the latest memories, or the answer to a question."""
    question = visit.asked("q") or ""
    values: dict[str, Any] = {"question": question, "filters": _asked(visit), "problem": None, "results": None}
    values |= {"latest": (), "elsewhere": (), "context": None}
    try:
        if question:
            values |= await _shown(visit, await _results(visit, question))
            values["context"] = await visit.memory.context_parts(question, as_of=visit.as_of)
        else:
            page = await visit.call("list", limit=_LATEST, as_of=visit.as_of, **_asked(visit))
            values["latest"], values["elsewhere"] = page.nodes, await visit.elsewhere()
    except RicordoError as error:
        values["problem"] = error
    return visit.page("search.html", **values)


async def show_results(visit: Visit) -> Response:
    """Return only the list of hits, for search while typing."""
    question = visit.asked("q") or ""
    values: dict[str, Any] = {"question": question, "problem": None, "results": None, "latest": ()}
    try:
        if question:
            values |= await _shown(visit, await _results(visit, question))
        else:
            page = await visit.call("list", limit=_LATEST, as_of=visit.as_of, **_asked(visit))
            values["latest"] = page.nodes
    except RicordoError as error:
        values["problem"] = error
    answer = visit.page("part/results.html", is_part=True, **values)
    fields = [(name, value) for name, value in visit.request.query_params.items() if value]
    answer.headers["HX-Replace-Url"] = f"/?{urlencode(fields)}" if fields else "/"
    return answer


async def show_context(visit: Visit) -> Response:
    """Return the context an agent would get for the question."""
    visit.caller.require("context_parts")
    question = visit.asked("q")
    context = await visit.memory.context_parts(question, as_of=visit.as_of) if question else None
    return visit.page("part/context.html", context=context, question=question or "")


# the time that all pages are set to


async def travel(visit: Visit) -> Response:
    """Set the time that all pages show; without one, they show the present."""
    visit.session.as_of = None
    if wanted := visit.given("as_of"):
        view = visit.memory.store_view
        at = from_ms(parse_instant(wanted, now=view.now(), zone=view.zone, field="as_of"))
        await visit.call("list", limit=1, as_of=at.isoformat())  # raises if the store cannot be read as of then
        visit.session.as_of = at.astimezone(view.zone).isoformat(timespec="minutes")
    return visit.back()


async def choose_language(visit: Visit) -> Response:
    """Set the language of the pages."""
    wanted = visit.given("language")
    visit.session.language = wanted if wanted in LANGUAGES else None
    return visit.back()


# the timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """An event in the drawing: `x` from 0 to 1,000, and the number of its lane from 0."""

    node: Node
    x: float
    lane: int


async def show_timeline(visit: Visit) -> Response:
    """Show events in order, as a drawing and a list, with the slider that sets the time of all pages."""
    filters = {name: visit.asked(name) for name in ("entity", "after", "before")}
    problem, events = None, ()
    try:
        events = await visit.call("timeline", limit=_MOST_EVENTS, as_of=visit.as_of, **filters)
    except RicordoError as error:
        problem = error
    stats = await visit.call("stats")
    dots, ticks = _drawing(events)
    span = (stats.oldest, datetime.fromtimestamp(visit.memory.store_view.now() / 1_000, UTC))
    return visit.page(
        "timeline.html", events=events[::-1], dots=dots, ticks=ticks, filters=filters, problem=problem, span=span
    )


def _drawing(events: Sequence[Node]) -> tuple[list[Dot], list[tuple[float, datetime]]]:
    """Return the events placed by time, close ones in different lanes, and the ticks of the time axis."""
    if not events:
        return [], []
    first, last = events[0].event_time, events[-1].event_time
    whole = (last - first).total_seconds() or 1.0
    free, dots = [-100.0] * _LANES, []
    for event in events:
        x = 1_000 * (event.event_time - first).total_seconds() / whole
        lane = next((lane for lane, until in enumerate(free) if until <= x), min(range(_LANES), key=free.__getitem__))
        free[lane] = x + 12
        dots.append(Dot(node=event, x=round(x, 1), lane=lane))
    return dots, [(250.0 * step, first + (last - first) * step / 4) for step in range(5)]


PAGES = (
    ("GET", "/", "search", show),
    ("GET", "/page", "search", show),
    ("GET", "/page/results", "search", show_results),
    ("GET", "/page/context", "search", show_context),
    ("POST", "/page/as-of", "timeline", travel),
    ("POST", "/page/language", "search", choose_language),
    ("GET", "/page/timeline", "timeline", show_timeline),
)
