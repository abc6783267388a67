"""A request to the pages: its session and form, calls to the memory, and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ricordo.interfaces.call import EVERY_ACCESS, Caller, Dispatcher
from ricordo.interfaces.catalog import Capability, routes
from ricordo.interfaces.http.guard import Metrics
from ricordo.interfaces.http.tokens import Tokens
from ricordo.interfaces.page.rendering import Texts, environment, time_of
from ricordo.interfaces.page.session import Session
from ricordo.memory import Memory
from ricordo.model import Chat, Node
from ricordo.rights import Holder, allows

_CALLS: Mapping[str, Capability] = {each.method: each for each in routes()}
_SECTIONS: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
    ("look", (("search", "/"), ("timeline", "/page/timeline"), ("people", "/page/people"), ("graph", "/page/graph"))),
    ("decide", (("inbox", "/page/inbox"), ("conversations", "/page/conversations"), ("changes", "/page/changes"))),
    ("keep", (("runs", "/page/runs"), ("fading", "/page/fading"), ("archive", "/page/archive"))),
    ("machine", (("health", "/page/health"), ("access", "/page/access"))),
)
_QUOTED = 300
_NEEDS = {"health": "doctor", "access": "page.tokens"}


@dataclass(slots=True, kw_only=True)
class Visit:
    """One request with its session.

    Attributes:
        memory: The memory, scoped to the session's caller.
        form: The fields of a posted form; empty otherwise.
        section: The entry in the navigation.
        seq: The number of the latest change when the page was requested; the browser is notified of later changes.
    """

    request: Request
    session: Session
    dispatcher: Dispatcher
    memory: Memory
    tokens: Tokens
    metrics: Metrics
    texts: Texts
    section: str = ""
    seq: int = 0
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def caller(self) -> Caller:
        return self.session.caller

    @property
    def as_of(self) -> str | None:
        return self.session.as_of

    @property
    def moment(self) -> datetime:
        """The time that the pages are set to; the latest possible `datetime` for the present."""
        return datetime.max.replace(tzinfo=UTC) if self.as_of is None else datetime.fromisoformat(self.as_of)

    @property
    def travels(self) -> Literal["exactly", "roughly", "not"]:
        """How exactly this page can show an earlier time."""
        if self.section in ("search", "timeline", "conversations", "changes", "people", "graph"):
            return "exactly"
        return "roughly" if self.section == "runs" else "not"

    def asked(self, name: str) -> str | None:
        """Return a query parameter; None if it is missing or empty."""
        return self.request.query_params.get(name, "").strip() or None

    def given(self, name: str) -> str | None:
        """Return a field of the form; None if it is missing or empty."""
        return self.form.get(name, "").strip() or None

    def named(self) -> str:
        """Return the id in the form or the query parameters, unchanged: an id may contain spaces."""
        return self.form.get("id", self.request.query_params.get("id", ""))

    @property
    def is_owner(self) -> bool:
        """Whether the visitor is the person who started the server, not the holder of a token."""
        return self.session.digest is None and self.caller.trust == "user" and self.caller.access == EVERY_ACCESS

    def may(self, capability: str) -> bool:
        return self.caller.may(capability) or (self.is_owner and allows(capability, Holder("user", is_opener=True)))

    def require(self, capability: str) -> None:
        """Raise DeniedError if the visitor may not use a capability."""
        if not self.may(capability):
            self.caller.require(capability)

    @property
    def may_change(self) -> bool:
        """Whether the page offers actions: only for the present, and with the permission to correct."""
        return self.may("correct") and self.as_of is None

    # calls

    async def call(self, method: str, **given: Any) -> Any:
        """Call a capability as the HTTP routes do. Arguments that are None are left out."""
        arguments = {name: value for name, value in given.items() if value is not None}
        return await self.dispatcher.call(_CALLS[method], arguments, caller=self.caller, as_tool=False)

    async def elsewhere(self) -> list[Chat]:
        """Return the visitor's chats and projects with memories that the pages do not show."""
        here = self.memory.scope.chat
        return [each for each in await self.call("chats") if each.name != here and each.messages + each.facts]

    async def latest(self) -> int:
        """Return the number of the latest change."""
        self.caller.require("store_view.commits")
        return next((commit.seq for commit in await self.memory.store_view.commits()), 0)

    async def act(self, done: str, method: str, **given: Any) -> Any:
        """Call a capability that changes the memory, and offer undo on the next page.

        Args:
            done: The key of the message that reports the change.
        """
        before = await self.latest()
        answer = await self.call(method, **given)
        made = [commit.seq for commit in await self.memory.store_view.commits(limit=5) if commit.seq > before]
        # Several changes mean that another program wrote at the same time. The user then undoes from the log.
        key = "proposed" if isinstance(answer, Node) and answer.closed_reason == "quarantined" else done
        self.session.notice = self.texts(f"done.{key}"), made[0] if len(made) == 1 else None
        return answer

    def add_to_notice(self, key: str, quoted: Sequence[str]) -> None:
        """Add a sentence for each of some texts to the message on the next page."""
        said, undoes = self.session.notice or ("", None)
        self.session.notice = " ".join([said, *(self.texts(key, text=each[:_QUOTED]) for each in quoted)]), undoes

    # answers

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page or, for a template in `part/`, a part of one for a script."""
        zone = self.memory.store_view.zone
        shared = {
            "t": self.texts,
            "visit": self,
            "csrf": self.session.csrf,
            "seq": self.seq,
            "sections": self._sections(),
            "when": lambda at: time_of(at, zone),
            "link": link,
            "notice": None,
        }
        if not template.startswith("part/"):
            shared["notice"], self.session.notice = self.session.notice, None
        return HTMLResponse(environment().get_template(template).render(shared | values), status_code=status)

    def go(self, path: str) -> Response:
        """Redirect the browser to another page after a form."""
        return RedirectResponse(path, status_code=303)

    @property
    def way_back(self) -> str:
        """The URL in the form's field `back` if it is one of our pages; "/" otherwise."""
        wanted = self.given("back") or "/"
        is_ours = wanted == "/" or wanted.startswith(("/page/", "/?"))
        return wanted if is_ours and wanted.isprintable() and "\\" not in wanted else "/"

    def back(self) -> Response:
        """Redirect the browser to `way_back`."""
        return self.go(self.way_back)

    def _sections(self) -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
        kept = (
            (title, [each for each in entries if self.may(_NEEDS.get(each[0], "search"))])
            for title, entries in _SECTIONS
        )
        return [(title, entries) for title, entries in kept if entries]


def link(page: str, id: str) -> str:
    """Return the URL of the page about something; its id may be any text."""
    return f"/page/{page}?id={quote(id, safe='')}"
