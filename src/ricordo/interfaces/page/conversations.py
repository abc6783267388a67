"""Conversations and the actions on them: end, consolidate, off and on the record."""

from __future__ import annotations

from dataclasses import replace

from starlette.responses import Response

from ricordo.interfaces.page.visit import Visit, link
from ricordo.model import Conversation

_MOST = 100
_TURNS = 1_000


async def show_all(visit: Visit) -> Response:
    """Show the latest conversations."""
    found = [each for each in await visit.call("sessions", limit=_MOST) if each.begun_at <= visit.moment]
    return visit.page("conversations.html", conversations=found, elsewhere=await visit.elsewhere())


async def show(visit: Visit) -> Response:
    """Show the messages of one conversation."""
    found: Conversation = await visit.call("session", id=visit.named())
    if visit.as_of is not None:
        known = await visit.call("list", type="episodic", session=found.id, as_of=visit.as_of, limit=_TURNS)
        found = replace(found, turns=tuple(sorted(known.nodes, key=lambda each: (each.event_time, each.key))))
    return visit.page("conversation.html", conversation=found)


async def end(visit: Visit) -> Response:
    """End the conversation."""
    await visit.act("ended", "end_session", session=visit.named())
    return visit.go(link("conversation", visit.named()))


async def consolidate(visit: Visit) -> Response:
    """Consolidate the conversation: let the language model extract facts from it."""
    run = await visit.act("consolidated", "consolidate", session=visit.named())
    return visit.go(link("run", run.id))


async def go_off_record(visit: Visit) -> Response:
    """Stop storing messages of the conversation."""
    await visit.call("off_record", session=visit.named())
    visit.session.notice = visit.texts("done.off_record"), None
    return visit.go(link("conversation", visit.named()))


async def go_on_record(visit: Visit) -> Response:
    """Resume storing messages of the conversation."""
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
