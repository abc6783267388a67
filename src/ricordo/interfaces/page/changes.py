"""The log of changes, what each one did, and undo, which can include later changes that depend on it."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from ricordo.errors import ConflictError
from ricordo.interfaces.page.visit import Visit, link
from ricordo.model import Commit

_MOST = 25
_BACK = 10_000


async def show_all(visit: Visit) -> Response:
    """Show the latest changes."""
    before = visit.asked("before")
    number = int(before) if before and before.isdecimal() and len(before) < 19 else None
    if number is None and visit.as_of is not None:
        number = await _first_after(visit)
    commits: Sequence[Commit] = await visit.call("log", limit=_MOST, before=number)
    more = commits[-1].seq if len(commits) == _MOST else None
    return visit.page("changes.html", commits=commits, more=more)


async def _first_after(visit: Visit) -> int | None:
    """Return the number of the first change after the time that the pages are set to."""
    later = [each.seq for each in await visit.memory.store_view.commits(limit=_BACK) if each.at > visit.moment]
    return later[-1] if later else None


async def show(visit: Visit) -> Response:
    """Show what one change did."""
    visit.caller.require("store_view.changed_by")
    number = visit.named()
    is_number = number.isascii() and number.isdecimal() and len(number) < 19
    difference = await visit.memory.store_view.changed_by(int(number) if is_number else 0)
    return visit.page("change.html", difference=difference, commit=difference.commit)


async def undo(visit: Visit) -> Response:
    """Undo a change or a run. If later changes depend on it, list them and ask for confirmation."""
    wanted, with_later = visit.form.get("change", ""), bool(visit.given("with_later"))
    before = await visit.latest()
    try:
        commit: Commit = await visit.call("undo", commit_or_run=wanted, with_later=with_later or None)
    except ConflictError as error:
        found = [await visit.call("log", limit=1, before=seq + 1) for seq in error.commits[:_MOST]]
        later = [commit for commits in found for commit in commits if commit.seq in error.commits]
        return visit.page("undo.html", status=409, wanted=wanted, later=later, error=error)
    visit.session.notice = visit.texts("done.undone"), commit.seq if commit.seq > before else None
    return visit.back() if visit.given("back") else visit.go(link("change", str(commit.seq)))


PAGES = (
    ("GET", "/page/changes", "changes", show_all),
    ("GET", "/page/change", "changes", show),
    ("POST", "/page/undo", "changes", undo),
)
