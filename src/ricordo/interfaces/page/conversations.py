"""Conversations as they were, and what may be done with one."""

from __future__ import annotations

from starlette.responses import Response

from ricordo.interfaces.page.visit import Visit, link

_MOST = 100


async def show_all(visit: Visit) -> Response:
    """Show the latest conversations."""
    return visit.page("conversations.html", conversations=await visit.call("sessions", limit=_MOST))


async def show(visit: Visit) -> Response:
    """Show what was said in one conversation."""
    return visit.page("conversation.html", conversation=await visit.call("session", id=visit.named()))


async def end(visit: Visit) -> Response:
    """Mark the conversation as finished."""
    await visit.act("ended", "end_session", session=visit.named())
    return visit.go(link("conversation", visit.named()))


async def consolidate(visit: Visit) -> Response:
    """Turn the conversation into knowledge."""
    run = await visit.act("consolidated", "consolidate", session=visit.named())
    return visit.go(link("run", run.id))


async def go_off_record(visit: Visit) -> Response:
    """Store nothing more of the conversation."""
    await visit.call("off_record", session=visit.named())
    visit.session.notice = visit.texts("done.off_record"), None
    return visit.go(link("conversation", visit.named()))


async def go_on_record(visit: Visit) -> Response:
    """Store what is said in the conversation again."""
    await visit.call("on_record", session=visit.named())
    visit.session.notice = visit.texts("done.on_record"), None
    return visit.go(link("conversation", visit.named()))


PAGES = (
    ("GET", "/page/conversations", "conversations", show_all),
    ("GET", "/page/conversation", "conversations", show),
    ("POST", "/page/conversation/end", "conversations", end),
    ("POST", "/page/conversation/consolidate", "conversations", consolidate),
    ("POST", "/page/conversation/off-record", "conversations", go_off_record),
    ("POST", "/page/conversation/on-record", "conversations", go_on_record),
)
