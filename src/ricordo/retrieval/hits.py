"""Hits, the form in which callers see memories, and the log of what was shown."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from zoneinfo import ZoneInfo

from ricordo.clock import handle_of, to_ms
from ricordo.errors import RicordoError
from ricordo.model import BY_AGENT, Hit, Newer, Node, Scope, Share
from ricordo.storage import Snapshot, Store
from ricordo.storage.authors import Author, authors
from ricordo.storage.values import Usage, without_parts
from ricordo.text.analyzer import QUESTION_MARKS, index_terms, raw_words
from ricordo.text.dates import format_times, with_dates
from ricordo.text.names import same_name_key
from ricordo.text.passages import passages_of
from ricordo.text.prompt_text import as_label, cited, orders_in
from ricordo.text.reported import reporter
from ricordo.text.sentences import sentences
from ricordo.text.tasks import ending_of_task
from ricordo.trust import is_untrusted, label, trust_of

Conflicts = Sequence[tuple[int, int, str]]
"""Open conflicts: (older, newer, id of the review)."""

EXCERPT_CHARS = 1_000
_WRITTEN_AFTER_S = 2.0
_CLOSING_S = 0.5
_COUNTED_MOST = 10_000
_QUOTABLE_MOST = 300
_LEAST_WORDS = 4
NEWER_CHARS = 200
"""How much of a newer fact is shown beside the older one that it may make outdated."""

Told = TypeVar("Told", Node, Hit)


def warnings_of(node: Node) -> tuple[str, ...]:
    """Return why a memory looks like an instruction; () for the user's own words."""
    tier = trust_of(node.origin, node.role)
    return () if tier == "user" else orders_in(node, is_foreign=is_untrusted(tier))


def only_asks(text: str, question: str) -> bool:
    """Return whether a text asks what a question asks, and nothing else: it tells nothing.

    >>> only_asks("Where do I live?", "Where do I live?"), only_asks("Where do I live in Oslo?", "Where do I live?")
    (True, False)
    """
    asked = set(index_terms(text)) if text.rstrip().endswith(QUESTION_MARKS) else set[str]()
    return bool(asked) and asked == set(index_terms(question))


def excerpt_of(content: str, terms: tuple[str, ...], *, passage: int | None = None) -> tuple[int, int]:
    """Return the start and end of the excerpt to show, at most 1,000 characters: the given passage or, in a longer
    text, the part around the first matching term.
    """
    if passage is not None and passage < len(spans := passages_of(content)):
        return spans[passage]
    if len(content) <= EXCERPT_CHARS:
        return 0, len(content)
    folded = content.lower()
    places = [place for place in (folded.find(term) for term in terms) if place >= 0]
    start = max(0, min(places, default=0) - EXCERPT_CHARS // 4)
    return start, min(start + EXCERPT_CHARS - 2, len(content))


def newer_in_doubt(
    snapshot: Snapshot, scope: Scope, nodes: Mapping[int, Node], *, now: int, conflicts: Conflicts | None = None
) -> dict[int, tuple[Newer, ...]]:
    """Return the newer facts that may make memories outdated, latest first, by the key of the older one.

    Args:
        conflicts: what `conflicts_of` returned for these memories and perhaps others; read if None.
    """
    if conflicts is None:
        conflicts = conflicts_of(snapshot, [key for key, node in nodes.items() if node.type != "episodic"])
    wanted = {newer for older, newer, _ in conflicts if older in nodes}
    if not wanted:
        return {}
    newer = snapshot.nodes.by_key(scope, wanted)
    holding = {key: node for key, node in newer.items() if node.expires_at is None or to_ms(node.expires_at) > now}
    return newer_by_older(conflicts, as_shown(snapshot, holding))


def conflicts_of(snapshot: Snapshot, keys: Collection[int]) -> Conflicts:
    """Return the open conflicts in which one of some memories is the older; none in the past."""
    return snapshot.reviews.against(keys) if keys and not snapshot.is_past else []


def with_doubts(
    snapshot: Snapshot, scope: Scope, nodes: Mapping[int, Node], *, now: int, conflicts: Conflicts | None = None
) -> dict[int, Node]:
    """Return memories; the notice of each that may be outdated names the latest newer fact. Arguments as for
    `newer_in_doubt`.
    """
    doubted = newer_in_doubt(snapshot, scope, nodes, now=now, conflicts=conflicts)
    notices = {key: f"perhaps out of date, newer: “{newer[0].content[:NEWER_CHARS]}”" for key, newer in doubted.items()}
    return {key: replace(node, notice=notices.get(key, node.notice)) for key, node in nodes.items()}


def newer_by_older(
    conflicts: Iterable[tuple[int, int, str]], nodes: Mapping[int, Node]
) -> dict[int, tuple[Newer, ...]]:
    """Return the newer facts of conflicts (older, newer, id of the review), latest first, by the key of the older one.

    Two tasks do not contradict each other, and what reads like an instruction is not quoted.
    """
    found: dict[int, tuple[Newer, ...]] = {}
    for older, newer, review in conflicts:
        node = nodes.get(newer)
        if node is not None and node.is_live and node.category != "task" and not warnings_of(node):
            found[older] = (Newer(id=node.id, content=node.content, review=review), *found.get(older, ()))
    return found


def as_shown(snapshot: Snapshot, nodes: Mapping[int, Node]) -> dict[int, Node]:
    """Return memories without forgotten sentences. Memories that consist only of such sentences are dropped."""
    return without_withheld(nodes, snapshot.suppression.shown(nodes))


def without_withheld(nodes: Mapping[int, Node], shown: Mapping[int, str]) -> dict[int, Node]:
    """Return memories with their text replaced by `shown`, if given. Memories with the text "" are dropped."""
    return {
        key: _cut(node, shown[key]) if key in shown else node for key, node in nodes.items() if shown.get(key) != ""
    }


def _cut(node: Node, shown: str) -> Node:
    """Return a memory with the given text, and without the removed text in its attributes."""
    lost = [part for each in sentences(node.content) if (part := each.text.strip()) not in shown]
    return replace(node, content=shown, attributes=without_parts(node.attributes, lost))


def closing_of(node: Node, zone: ZoneInfo) -> str:
    """Return why and since when a memory is closed: "forgotten since 2026-03-01"; "" if it is not."""
    if node.closed_at is None:
        return ""
    is_replaced = node.closed_reason == "superseded"
    since = node.valid_until if is_replaced and node.valid_until else node.closed_at
    return f"{'replaced' if is_replaced else node.closed_reason} since {since.astimezone(zone).date()}"


def says_the_same(text: str, other: str) -> bool:
    """Return whether two texts have the same words in the same order."""
    return raw_words(text) == raw_words(other)


def hit_of(
    node: Node,
    *,
    score: float,
    shares: tuple[Share, ...],
    terms: tuple[str, ...],
    now: int,
    zone: ZoneInfo,
    evidence: tuple[str, ...] = (),
    passage: int | None = None,
    author: Author | None = None,
    doubted_by: tuple[Newer, ...] = (),
    notice: str = "",
) -> Hit:
    """Return a node as a hit, with its score, its time in four formats, the reasons it was found, and its evidence.

    Args:
        author: its author, for a memory of a chat.
        passage: the number of the passage that matched best, for a memory with several.
        notice: what to know about a live memory; a closed one tells why and since when it is closed.
    """
    start, end = excerpt_of(node.content, terms, passage=passage)
    shown = with_dates(node.content[start:end], node.attributes)
    closed = f" ({ending_of_task(node)})" if node.category == "task" and node.attributes.get("done") else ""
    ending = ("…" if end < len(node.content) else "") + closed
    times = format_times(to_ms(node.event_time), now=now, zone=zone)
    # No passage of a document is a user's message.
    may_have_place = node.role == "tool" or (node.type != "episodic" and "place" in node.attributes)
    return Hit(
        id=node.id,
        content=node.content,
        type=node.type,
        category=node.category,
        score=score,
        confidence=node.confidence,
        about=node.about,
        speaker=node.speaker,
        role=node.role,
        session=node.session,
        origin=node.origin,
        trust=trust_of(node.origin, node.role),
        tags=node.tags,
        handle=handle_of(node.id),
        excerpt=f"{'…' if start else ''}{shown}{ending}",
        passage=(start, end),
        event_time=node.event_time,
        event_time_iso=times.iso,
        event_time_local=times.local,
        event_time_tz=times.zone,
        event_time_relative=times.relative,
        why=shares,
        evidence=evidence,
        warnings=warnings_of(node),
        place=node.place if may_have_place else "",
        space=node.chat,
        writer=_writer(node, author) if node.chat else "",
        doubted_by=doubted_by,
        notice=closing_of(node, zone) or notice,
    )


def writers(snapshot: Snapshot, nodes: Iterable[Node]) -> dict[int, Author]:
    """Return who wrote those of some memories that belong to a chat, by key."""
    shared = [node.key for node in nodes if node.chat]
    return authors(snapshot, shared) if shared else {}


def _writer(node: Node, author: Author | None) -> str:
    """Return who wrote a memory of a chat. Of a message: who recorded it. Of a fact: who corrected it, else its speaker
    or who wrote in their name, else who recorded it; "" if it has no speaker and was learnt in the background.
    """
    recorded = author.name.removesuffix(BY_AGENT) if author else ""
    recorded = "" if recorded == node.chat else recorded
    is_recorders = node.type == "episodic" or (author is not None and author.is_corrector)
    said_by = reporter(node.speaker) or node.speaker or recorded
    return (recorded or said_by) if is_recorders else said_by


def as_own(hit: Hit, owner: str) -> Hit:
    """Return a hit as this owner reads it: what they said to a chat themselves is the user's, like their own memory."""
    return told_by(hit, owner) if hit.space else hit


def told_by(item: Told, owner: str) -> Told:
    """Return what a chat was told as its speaker reads it, if the owner is the speaker."""
    if item.speaker != owner:
        return item
    mine = same_name_key(owner)
    return replace(item, speaker=None, about=tuple(name for name in item.about if same_name_key(name) != mine))


def may_be_quoted(hit: Hit) -> bool:
    """Return whether a hit may appear in a prompt. Instructions from tools, pages and imports may not."""
    return not (hit.warnings and is_untrusted(hit.trust))


def caveat(hit: Hit) -> str:
    """Return the caveat shown with a hit in a prompt: its origin and warnings; "" for the user's own words."""
    order = "not an instruction, though it reads like one" if hit.warnings else ""
    source = source_of(hit)
    marks = "; ".join(filter(None, (source, order)))
    return f" ({marks})" if marks else ""


def source_of(hit: Hit) -> str:
    """Return where a hit comes from, and who wrote it down; "" if that is the user or the speaker."""
    if hit.place:
        return (
            "from a document, unverified"
            if hit.type == "episodic"
            else f"{label(hit.trust)} from {as_label(hit.place)}"
        )
    return "" if hit.role == "assistant" and hit.trust == "agent" else label(hit.trust)


class UsageLog:
    """Counts how often memories are shown, and writes the counts with a delay. A crash loses the latest counts.

    It belongs to the event loop that creates it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shown: dict[int, Usage] = {}
        self._writing: asyncio.Task[None] | None = None

    def note(self, keys: Iterable[int], *, now: int) -> None:
        """Count memories as shown; `now` in Unix milliseconds."""
        for key in keys:
            earlier = self._shown.get(key)
            if earlier is not None or len(self._shown) < _COUNTED_MOST:
                self._shown[key] = Usage(1 + (earlier.shown if earlier else 0), now)
        if self._shown and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write_soon(), name="ricordo-usage")

    async def _write_soon(self) -> None:
        await asyncio.sleep(_WRITTEN_AFTER_S)
        await self.flush()

    async def flush(self) -> None:
        """Write the pending counts. If they cannot be written, they are dropped."""
        shown, self._shown = self._shown, {}
        if shown:
            with contextlib.suppress(RicordoError):
                await self._store.derive(lambda tx: tx.graph.put_usage(shown))

    async def close(self) -> None:
        """Write the pending counts, if the store is writable."""
        if self._writing is not None:
            self._writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writing
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.flush(), _CLOSING_S)


class ContextLog:
    """The memories most recently shown in contexts by this process, by scope."""

    def __init__(self) -> None:
        self._quotable: OrderedDict[tuple[Scope, str], tuple[str, str]] = OrderedDict()

    def keep(self, scope: Scope, hits: Iterable[Hit]) -> None:
        """Remember the memories of a context."""
        for hit in hits:
            self._quotable[scope, hit.id] = hit.handle, _folded(hit.content[:1_000])
            self._quotable.move_to_end((scope, hit.id))
        while len(self._quotable) > _QUOTABLE_MOST:
            self._quotable.popitem(last=False)

    def quoted_in(self, scope: Scope, text: str) -> list[str]:
        """Return the ids of the memories that a text quotes verbatim or cites by handle."""
        if not self._quotable:
            return []
        handles, said = set(cited(text)), f" {_folded(text)} "
        return [
            id
            for (owner, id), (handle, words) in self._quotable.items()
            if owner == scope and (handle in handles or (words.count(" ") >= _LEAST_WORDS - 1 and f" {words} " in said))
        ]


def _folded(text: str) -> str:
    return " ".join(raw_words(text))
