"""The state of the store and of the server, and the access tokens."""

from __future__ import annotations

from collections import Counter

from starlette.responses import Response

from ricordo.interfaces.http.guard import json_response
from ricordo.interfaces.page.visit import Visit

_COMMITS = 1_000


async def show(visit: Visit) -> Response:
    """Show the checks of the store, its sizes and the speed of the server, which tells of all callers."""
    visit.require("doctor")
    visit.require("metrics")
    stats = await visit.call("stats")
    report = await visit.call("doctor") if visit.asked("check") else None
    return visit.page("health.html", stats=stats, report=report, routes=visit.metrics.summary())


async def growth(visit: Visit) -> Response:
    """Return the number of changes per day for the plot, oldest day first."""
    visit.caller.require("store_view.commits")
    zone = visit.memory.store_view.zone
    commits = await visit.memory.store_view.commits(limit=_COMMITS)
    days = sorted(Counter(commit.at.astimezone(zone).date().isoformat() for commit in commits).items())
    values = [count for _, count in days]
    return json_response(
        {"days": [day for day, _ in days], "series": [{"name": visit.texts("health.changes"), "values": values}]}
    )


# access tokens: only for the person who started the server, like `ricordo token`


async def show_access(visit: Visit) -> Response:
    """Show the owners of memories in the store, and the tokens."""
    return await _access(visit)


async def _access(visit: Visit, secret: str | None = None) -> Response:
    visit.require("page.tokens")
    owners = await (await visit.dispatcher.opened()).store_view.owners()
    return visit.page("access.html", owners=owners, tokens=visit.tokens.all(), secret=secret)


async def add_token(visit: Visit) -> Response:
    """Create a token, and show its secret once."""
    visit.require("page.tokens")
    visit.tokens.file.parent.mkdir(parents=True, exist_ok=True)
    access = [name for name in ("read", "propose", "write", "admin", "erase") if visit.given(name)]
    _, secret = visit.tokens.add(
        visit.given("name") or "",
        owner=visit.given("owner") or visit.caller.owner,
        chat=visit.given("chat"),
        trust=visit.given("trust") or "user",  # type: ignore[arg-type]  # checked by `Tokens.add`
        access=access,
    )
    return await _access(visit, secret)


async def revoke_token(visit: Visit) -> Response:
    """Revoke a token."""
    visit.require("page.tokens")
    visit.tokens.revoke(visit.named())
    visit.session.notice = visit.texts("done.revoked"), None
    return visit.go("/page/access")


PAGES = (
    ("GET", "/page/health", "health", show),
    ("GET", "/page/growth.json", "health", growth),
    ("GET", "/page/access", "access", show_access),
    ("POST", "/page/access/add", "access", add_token),
    ("POST", "/page/access/revoke", "access", revoke_token),
)
