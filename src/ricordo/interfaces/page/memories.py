"""One memory: its text, sources, versions and edges, and the actions on it."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, date, datetime, timedelta
from typing import Any

from starlette.responses import Response

from ricordo.clock import handle_of
from ricordo.errors import InvalidError
from ricordo.interfaces.page.visit import Visit, link
from ricordo.model import BY_AGENT, Archive, Explanation, Node, Version
from ricordo.text.reported import reporter
from ricordo.trust import trust_of

_WORDS = re.compile(r"[^\W_]+")
_TYPED = 3
"""How many words of a memory a person has to type to erase it."""
_MOST = 100


async def show(visit: Visit) -> Response:
    """Show a memory with its sources and what will happen to it."""
    why: Explanation = await visit.call("explain", id=visit.named(), as_of=visit.as_of)
    node = why.node
    resting = [edge.source for edge in why.edges if edge.type == "derived_from" and edge.target == node.id]
    tied = [(edge.target if edge.source == node.id else edge.source, edge) for edge in why.edges]
    ties = [(other, edge) for other, edge in tied if edge.type not in ("derived_from", "supersedes")]
    known = await visit.memory.store_view.nodes([*resting, *(other for other, _ in ties)])
    own = [version for version in why.versions if version.node.id == node.id]
    day = node.event_time.astimezone(visit.memory.store_view.zone).date()
    return visit.page(
        "memory.html",
        node=node,
        why=why,
        day=(day, day + timedelta(days=1)) if day < date.max else (day, day),
        trust=trust_of(node.origin, node.role),
        steps=_steps(why.versions),
        latest=own[-1] if own else None,
        writer=_writer(node, own),
        resting=[known[id] for id in dict.fromkeys(resting) if id in known],
        ties=[(known[other], edge) for other, edge in ties if other in known],
        can_restore=node.closed_at is not None and node.closed_reason not in ("superseded", "quarantined"),
    )


def _writer(node: Node, own: list[Version]) -> str:
    """Return who wrote a memory of a chat or space; "" for one's own memory."""
    first = own[0].commit if own else None
    authors = () if first is None else first.proposed_by or (first.actor,)
    return (reporter(node.speaker) or node.speaker or "".join(authors[:1]).removesuffix(BY_AGENT)) if node.chat else ""


def _steps(versions: tuple[Version, ...]) -> list[tuple[Version, str | None]]:
    """Return each version with the previous text (None for the first version), latest first."""
    steps: list[tuple[Version, str | None]] = []
    before: str | None = None
    for version in versions:
        steps.append((version, before))
        before = version.content
    return steps[::-1]


def _here(visit: Visit, id: str | None = None) -> Response:
    return visit.go(link("memory", id or visit.named()))


async def correct(visit: Visit) -> Response:
    """Replace the text with the corrected one."""
    node: Node = await visit.act("corrected", "correct", id=visit.named(), content=visit.form.get("content", ""))
    return _here(visit, node.id)


async def forget(visit: Visit) -> Response:
    """Forget the memory: it no longer appears in answers."""
    await visit.act("forgotten", "forget", id=visit.named(), reason=visit.given("reason"))
    return visit.back() if visit.given("back") else _here(visit)


async def keep(visit: Visit) -> Response:
    """Remove the expiry of the memory."""
    await visit.act("kept", "update", id=visit.named(), expires="never")
    return _here(visit)


def _simple(method: str, done: str) -> Any:
    async def work(visit: Visit) -> Response:
        await visit.act(done, method, id=visit.named())
        return visit.back() if visit.given("back") else _here(visit)

    return work


# erasing


def words_to_type(node: Node) -> str:
    """Return what a person has to type to erase a memory: its first words or, if it has no words, its short id."""
    text = unicodedata.normalize("NFKC", node.content[:2_000])
    found = [word for word in _WORDS.findall(text) if len(word) <= 40][:_TYPED]
    return " ".join(found) or handle_of(node.id)


async def ask_to_erase(visit: Visit) -> Response:
    """Show what erasing would remove, and ask the person to type the words."""
    return await _asked_to_erase(visit, await visit.call("get", id=visit.named()), problem="")


async def _asked_to_erase(visit: Visit, node: Node, *, problem: str) -> Response:
    report = await visit.call("erase", id=node.id, dry_run=True)
    status = InvalidError.http_status if problem else 200
    values = {"node": node, "report": report, "words": words_to_type(node), "problem": problem}
    return visit.page("erase.html", status=status, **values)


async def erase(visit: Visit) -> Response:
    """Erase the memory if the typed words match."""
    node: Node = await visit.call("get", id=visit.named())
    typed = _WORDS.findall(unicodedata.normalize("NFKC", visit.form.get("words", "")))
    if [word.casefold() for word in typed] != words_to_type(node).casefold().split():
        return await _asked_to_erase(visit, node, problem=visit.texts("erase.mismatch"))
    report = await visit.call("erase", id=node.id)
    return visit.page("erased.html", report=report)


# weak and closed memories


async def show_fading(visit: Visit) -> Response:
    """Show what is uncertain, fading or about to expire."""
    now = datetime.fromtimestamp(visit.memory.store_view.now() / 1_000, UTC)
    return visit.page("fading.html", weak=await visit.call("weak", limit=_MOST), now=now)


async def show_archive(visit: Visit) -> Response:
    """Show what was closed, and why."""
    archive: Archive = await visit.call("archive", limit=_MOST, reason=visit.asked("reason"))
    return visit.page("archive.html", archive=archive, reason=visit.asked("reason"))


PAGES = (
    ("GET", "/page/memory", "search", show),
    ("POST", "/page/memory/correct", "search", correct),
    ("POST", "/page/memory/confirm", "search", _simple("confirm", "confirmed")),
    ("POST", "/page/memory/reinforce", "search", _simple("reinforce", "reinforced")),
    ("POST", "/page/memory/demote", "search", _simple("demote", "demoted")),
    ("POST", "/page/memory/keep", "search", keep),
    ("POST", "/page/memory/forget", "search", forget),
    ("POST", "/page/memory/restore", "search", _simple("restore", "restored")),
    ("GET", "/page/memory/erase", "search", ask_to_erase),
    ("POST", "/page/memory/erase", "search", erase),
    ("GET", "/page/fading", "fading", show_fading),
    ("GET", "/page/archive", "archive", show_archive),
)
