"""Documents: cut them into passages, and update the stored passages to a new version. Pure.

A passage is an episode with role "tool" in the session "document:ID". So it has the lowest trust except for web pages,
yields no facts by itself, and is found, shown, forgotten and erased like any episode. One more episode, the title page,
holds the title, the headings and the metadata of the whole document.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from zlib import crc32

from ricordo.clock import to_ms
from ricordo.encoding.entities import EntityResolver, scope_of
from ricordo.encoding.episodes import ingest
from ricordo.encoding.validation import all_screened, checked_tags
from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import (
    DOCUMENT,
    ROOT_ENDS,
    Change,
    ClosedReason,
    Closing,
    Document,
    DocumentReport,
    EntityType,
    Json,
    Message,
    Node,
    Scope,
)
from ricordo.storage import Snapshot
from ricordo.storage.values import Filter, check_encodable
from ricordo.text.passages import LEAST, MOST, sentence_ends, size_of

MAX_ID_CHARS = 400
MAX_PASSAGES = 100_000
_MOST_TAGS = 100
_OUTLINE_CHARS = 600
_HEADING_CHARS = 200
DEVICE = "device"
"""The attribute with the device that watches the file of a document."""
TITLE_PAGE: Json = {"document": {"exists": True}, "digest": {"exists": True}}
"""Matches the attributes of title pages."""
_LISTED_MOST = 1_000
_ROW = re.compile(r"\s*\|")
_REPLACED: ClosedReason = "superseded"
_REMOVED: ClosedReason = "retracted"
_MOST_STORED = MAX_PASSAGES + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A paragraph, list, table or code block of a document.

    Attributes:
        places: (offset in the text, in characters; place in the document), such as (0, {"page": 3}).
        headings: the headings above it, outermost first.
        at: when it was, if it has a date of its own, such as a letter, or a section of a note: a time, or a day in ISO
            form.
    """

    text: str
    places: tuple[tuple[int, Json], ...]
    headings: tuple[str, ...] = ()
    at: datetime | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The current version of a document, cut into blocks.

    Attributes:
        device: the device that watches its file.
        date: the day it is about, as a note's front matter or the name of a daily note gives it.
        tags_of: returns the tags of a passage.
        subject: the person or thing that a note is about, by its name.
        names: the people and things it names by links and, each with its other names, in its front matter.
        types: the types of these, as far as the note and its folder tell.
    """

    id: str
    title: str
    format: str
    digest: str
    blocks: Sequence[Block]
    changed_at: datetime
    version: str | None = None
    pages: int | None = None
    source: str | None = None
    device: str | None = None
    left_out: tuple[str, ...] = ()
    date: str | None = None
    tags_of: Callable[[str], tuple[str, ...]] = lambda text: ()
    subject: str = ""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    types: Mapping[str, EntityType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The episodes of a document, made before the transaction that stores them; see `Draft` for the names."""

    page: Node
    passages: tuple[Node, ...]
    left_out: tuple[str, ...] = ()
    subject: str = ""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    types: Mapping[str, EntityType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Passage:
    text: str
    place: Json
    headings: tuple[str, ...]
    at: datetime | str | None


def checked_id(id: str) -> str:
    """Return the id of a document, stripped.

    Raises:
        InvalidError: the id is missing, blank or longer than 400 characters.
    """
    if not isinstance(id, str) or not id.strip() or len(id) > MAX_ID_CHARS:
        raise InvalidError(f"id must be 1 to {MAX_ID_CHARS} characters of text", hint="pass an id or a title")
    check_encodable(id, name="id")
    return id.strip()


def encoded(text: object) -> bytes:
    """Encode a text as UTF-8. Raises InvalidError."""
    if not isinstance(text, str):
        raise InvalidError(f"text must be a str, not {type(text).__name__}", hint="pass a str or a path")
    check_encodable(text, name="text")
    return text.encode()


# passages


def passages_of(blocks: Sequence[Block]) -> list[_Passage]:
    """Return the passages of a document in order: whole sentences under one heading, about 60 to 120 words each."""
    found: list[_Passage] = []
    for (headings, at, _), group in groupby(blocks, key=_part):
        for pieces in _grouped([piece for block in group for piece in _pieces(block)]):
            text = "".join(text for text, _ in pieces).strip()
            if any(char.isalnum() for char in text):
                found.append(_Passage(text, _joined(pieces[0][1], pieces[-1][1]), headings, at))
    return found


def _part(block: Block) -> tuple[tuple[str, ...], datetime | str | None, object]:
    """Return what all blocks of a passage share: no passage spans two sections or two mail messages."""
    return block.headings, block.at, block.places[0][1].get("message")


def _joined(first: Json, last: Json) -> Json:
    """Return the place where a passage begins and, for pages, also the last page."""
    goes_on = "page" in first and first["page"] != last["page"]
    return {**first, "last_page": last["page"]} if goes_on else first


def _pieces(block: Block) -> Iterator[tuple[str, Json]]:
    """Yield the sentences or lines of a block, each with its place."""
    start, places = 0, deque(block.places)
    place = places.popleft()[1]
    for end in sentence_ends(block.text):
        while places and places[0][0] <= start:
            place = places.popleft()[1]
        yield block.text[start:end] + ("\n" if end == len(block.text) else ""), place
        start = end


def _grouped(pieces: Sequence[tuple[str, Json]]) -> Iterator[Sequence[tuple[str, Json]]]:
    """Yield runs of pieces, each the text of one passage."""
    start = 0
    while start < len(pieces):
        end = _end_of_run(pieces, start)
        yield pieces[start:end]
        start = end


def _end_of_run(pieces: Sequence[tuple[str, Json]], start: int) -> int:
    """Return the end of the passage that begins at `start`: the end of a paragraph or, without one in reach, of the
    sentence with the lowest checksum. It depends on nearby text only: an insertion does not move all later ends.
    """
    size, ends = 0, dict[int, int]()
    for place in range(start, len(pieces)):
        text = pieces[place][0]
        size += size_of(text)
        if size > MOST and place > start:
            return min(ends, key=ends.__getitem__, default=place)
        if place + 1 < len(pieces) and all(_ROW.match(each) for each, _ in pieces[place : place + 2]):
            continue  # no end within a table
        if size >= LEAST // 2 and text.endswith("\n"):
            return place + 1
        if size >= LEAST:
            ends[place + 1] = crc32(_folded(text).encode())
    return len(pieces)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _content(passage: _Passage) -> str:
    """Return the text to store: the passage below its headings, which name its subject and may come pages earlier."""
    path = " › ".join(passage.headings)[:_HEADING_CHARS]
    return f"{path}\n{passage.text}" if path else passage.text


def place_name(place: Json) -> str:
    """Return a place as people write it: "page 12", or "pages 12-13" for a passage that ends on a later page."""
    if "last_page" in place:
        return f"pages {place['page']}-{place['last_page']}"
    return " ".join(f"{kind} {number}" for kind, number in place.items())


def prepared(draft: Draft, made: Callable[[Message], Node]) -> Prepared:
    """Return the episodes of a document: its title page and its passages, in order.

    Args:
        made: turns a message into a node.

    Raises:
        InvalidError: the document holds no text or more than 100,000 passages.
    """
    passages = passages_of(draft.blocks)
    if not passages:
        raise InvalidError(f"{draft.title} holds no text", hint="only text can be stored and found")
    if len(passages) > MAX_PASSAGES:
        raise InvalidError(f"{draft.title} has more than {MAX_PASSAGES:,} passages", hint="split the document")
    nodes = tuple(
        replace(made(_message(draft, each)), tags=checked_tags(draft.tags_of(each.text)[:_MOST_TAGS]))
        for each in passages
    )
    page = made(_title_page(draft, passages))
    return Prepared(
        page=page, passages=nodes, left_out=draft.left_out, subject=draft.subject, names=draft.names, types=draft.types
    )


def _message(draft: Draft, passage: _Passage) -> Message:
    attributes = {"document": draft.id, "title": draft.title, "place": place_name(passage.place), **passage.place}
    if passage.headings:
        attributes["heading"] = " › ".join(passage.headings)[:_HEADING_CHARS]
    return _episode(draft, _content(passage), attributes, passage.at or draft.date or draft.changed_at)


def _title_page(draft: Draft, passages: Sequence[_Passage]) -> Message:
    outline = " · ".join(dict.fromkeys(passage.headings[0] for passage in passages if passage.headings))
    known = {
        "document": draft.id,
        "title": draft.title,
        "digest": draft.digest,
        "format": draft.format,
        "passages": len(passages),
        "changed_at": draft.changed_at.isoformat(),
        "version": draft.version,
        "pages": draft.pages,
        "source": draft.source,
        DEVICE: draft.device,
        "date": draft.date,
    }
    text = f"{draft.title}\n{outline[:_OUTLINE_CHARS]}".strip()
    return _episode(
        draft, text, {name: value for name, value in known.items() if value is not None}, draft.date or draft.changed_at
    )


def _episode(draft: Draft, text: str, attributes: Json, at: datetime | str) -> Message:
    return Message(
        text=text, role="tool", origin="import", session=f"{DOCUMENT}{draft.id}", at=at, attributes=attributes
    )


# versions


def put(snapshot: Snapshot, new: Prepared, *, scope: Scope, at: datetime) -> tuple[Change, DocumentReport]:
    """Return the change that brings a stored document to a new version. Unchanged passages stay, with their vectors."""
    id = document_of(new.page).id
    old = stored(snapshot, scope, id, at=at)
    page = next((node for node in old if node.is_title_page), None)
    if page is not None and _is_same(page, new.page):
        return Change(), DocumentReport(document=document_of(page), kept=len(old) - 1)
    closed = stored(snapshot, scope, id, at=at, archived=True)
    is_dated = "date" in new.page.attributes
    step = _compared([node for node in old if not node.is_title_page], closed, new.passages, is_dated=is_dated)
    if page is None:
        page = next((node for node in closed if node.is_title_page and node.closed_reason == _REMOVED), None)
    if page is None:
        step.add.insert(0, new.page)
    else:
        step.put.append(_as_now(page, new.page, is_dated=is_dated))
    change = ingest(snapshot, step.add, claimed=(), scope=scope)
    stored_ids = {node.id for node in change.add}
    missing = [node for node in step.add if node.id not in stored_ids]
    erased = sum(each.node is None for each in all_screened(snapshot, missing))
    if erased and erased == len(new.passages):
        is_there = any(node.is_title_page for node in old)
        gone, report = (
            remove(snapshot, f"{DOCUMENT}{id}", scope=scope, at=at)
            if is_there
            else (Change(), DocumentReport(document=document_of(new.page)))
        )
        return gone, replace(report, left_out=new.left_out, erased=erased)
    added = _naming(snapshot, change, new)
    closing, learnt = _closing(snapshot, scope, step.gone, id, at=at, reason=_REPLACED)
    report = DocumentReport(
        document=document_of(new.page),
        added=sum(not node.is_title_page for node in added.add),
        kept=step.kept,
        moved=step.moved,
        removed=len(step.gone),
        knowledge=learnt,
        left_out=new.left_out,
        erased=erased,
    )
    return added.joined(replace(closing, put=tuple(step.put))), report


def _naming(snapshot: Snapshot, change: Change, new: Prepared) -> Change:
    """Return the change with the people and things that a note names. A name that is known gets no second holder."""
    if not new.names:
        return change
    people = EntityResolver(snapshot, scope=scope_of(new.page.owner, new.page.chat), now=to_ms(new.page.created_at))
    for name, aliases in new.names.items():
        if (entity := people.typed(name, new.types.get(name, "person"), is_certain=name == new.subject)) is not None:
            people.add_aliases(entity, aliases)
    return people.extend(change)


def is_mail(new: Prepared) -> bool:
    """Return whether a document is a mailbox or a letter."""
    return document_of(new.page).format == _MAIL


def put_mail(snapshot: Snapshot, new: Prepared, *, scope: Scope, at: datetime) -> tuple[Change, DocumentReport]:
    """Return the change that adds the letters of a mailbox that no stored mailbox holds, by their content and date.

    It removes none: a later mailbox may hold only later letters.
    """
    id, others, own = document_of(new.page).id, Counter[_Letter](), list[Node]()
    pages = snapshot.nodes.page(
        scope,
        Filter(types=("episodic",), where={**TITLE_PAGE, "format": _MAIL}),
        now=to_ms(at),
        before_key=None,
        limit=MAX_PASSAGES,
    )
    for document in map(document_of, (node for node in pages if node.is_title_page)):
        old = [node for node in stored(snapshot, scope, document.id, at=at) if not node.is_title_page]
        others.update(_letter(node, document.changed_at) for node in old)
        own += old if document.id == id else []
    fresh = list[Node]()
    for node in new.passages:
        letter = _letter(node, document_of(new.page).changed_at)
        fresh += [] if others[letter] else [node]
        others[letter] -= 1
    known = len(new.passages) - len(fresh)
    if not fresh:
        return Change(), DocumentReport(document=document_of(new.page), kept=known)
    passages = (*own, *fresh)
    page = replace(new.page, attributes={**new.page.attributes, "passages": len(passages)})
    change, report = put(snapshot, replace(new, page=page, passages=passages), scope=scope, at=at)
    return change, replace(report, kept=known)


_MAIL = "mail"
_Letter = tuple[str, datetime | None]


def _letter(node: Node, changed_at: datetime) -> _Letter:
    """Return what identifies a passage of a letter: its text and, if the letter has a date, that."""
    return _folded(node.content), None if node.event_time == changed_at else node.event_time


def remove(snapshot: Snapshot, id: str, *, scope: Scope, at: datetime) -> tuple[Change, DocumentReport]:
    """Return the change that archives a document, and the knowledge derived from it alone.

    Raises:
        NotFoundError: no document has this id.
        InvalidError: several documents are meant.
    """
    id = document_meant(snapshot, scope, id, at=at)
    old = stored(snapshot, scope, id, at=at)
    page = title_page_in(old, id)
    change, learnt = _closing(snapshot, scope, old, id, at=at, reason=_REMOVED)
    return change, DocumentReport(document=document_of(page), removed=len(old) - 1, knowledge=learnt)


def stored(snapshot: Snapshot, scope: Scope, id: str, *, at: datetime, archived: bool = False) -> list[Node]:
    """Return the stored episodes of a document in order: in the caller's chat or, without a chat, of the caller."""
    wanted = Filter(types=("episodic",), session=f"{DOCUMENT}{id}", archived=archived)
    found = snapshot.nodes.page(scope, wanted, now=to_ms(at), before_key=None, limit=_MOST_STORED)
    return sorted((node for node in found if node.chat == (scope.chat or "")), key=_order)


def read(snapshot: Snapshot, scope: Scope, id: str, *, at: datetime) -> Document:
    """Return a document with its passages in order.

    Raises:
        NotFoundError: there is no such document.
    """
    id = document_meant(snapshot, scope, id, at=at)
    nodes = stored(snapshot, scope, id, at=at) or stored(snapshot, replace(scope, chat=None), id, at=at)
    page = title_page_in(nodes, id)
    return replace(document_of(page), text=tuple(node for node in nodes if node is not page))


def document_meant(snapshot: Snapshot, scope: Scope, name: str, *, at: datetime, archived: bool = False) -> str:
    """Return the id of the document with an id or title, or whose file in a watched folder is at a path now; `name` if
    there is none. "document:ID" is always an id.

    Args:
        name: a path is absolute, or begins in the folder or with the folder's name.
        archived: also look among removed documents, if no other is meant.

    Raises:
        InvalidError: several documents are meant, such as one that was moved away and keeps its path as its id, and one
            that is at that path now.
    """
    if name.startswith(DOCUMENT):
        return name.removeprefix(DOCUMENT)
    for is_archived in (False, True) if archived else (False,):
        pages = listed(snapshot, scope, at=at, most=MAX_PASSAGES, archived=is_archived)
        placed = {each.id: each.title for each in pages if name == each.id or name in _paths(each)}
        meant = placed or {each.id: each.title for each in pages if name == each.title}
        if len(meant) > 1:
            several = ", ".join(f"{title} ({DOCUMENT}{id})" for id, title in meant.items())
            hint = f"give one of {', '.join(f'{DOCUMENT}{id}' for id in meant)}"
            raise InvalidError(f"document: {name!r} may be {several}", hint=hint)
        if meant:
            return next(iter(meant))
    return name


def _paths(document: Document) -> tuple[str, ...]:
    """Return the present paths of a file in a watched folder."""
    folder, mark, path = (document.source or "").partition(ROOT_ENDS)
    return (f"{folder}/{path}", path, f"{document.id.partition('/')[0]}/{path}") if mark else ()


def listed(snapshot: Snapshot, scope: Scope, *, at: datetime, most: int, archived: bool = False) -> list[Document]:
    """Return documents without their passages, the most recently added first."""
    wanted = Filter(types=("episodic",), where=TITLE_PAGE, archived=archived)
    found = snapshot.nodes.page(scope, wanted, now=to_ms(at), before_key=None, limit=most)
    return [document_of(node) for node in found if node.is_title_page]


def watched_files(snapshot: Snapshot, scope: Scope, path: Path, *, at: datetime) -> frozenset[Path]:
    """Return the files that `watch` keeps in step with the latest documents: a file itself, or those of a folder."""
    found = listed(snapshot, scope, at=at, most=_LISTED_MOST)
    files = [Path(each.source.replace(ROOT_ENDS, "/")) for each in found if each.source and ROOT_ENDS in each.source]
    return frozenset(file for file in files if file.is_relative_to(path))


def document_of(page: Node) -> Document:
    """Return the document that a title page describes, without its passages."""
    known = page.attributes
    return Document(
        id=(page.session or "").removeprefix(DOCUMENT),
        title=str(known["title"]),
        format=str(known["format"]),
        digest=str(known["digest"]),
        passages=int(known["passages"]),
        changed_at=datetime.fromisoformat(str(known["changed_at"])),
        version=known.get("version"),
        pages=known.get("pages"),
        source=known.get("source"),
        owner=page.owner,
        chat=page.chat,
    )


def _is_same(page: Node, new: Node) -> bool:
    """Return whether two title pages describe the same version; the time of the last change may differ."""
    known, given = ({**node.attributes, "changed_at": ""} for node in (page, new))
    return page.content == new.content and known == given


def title_page_in(nodes: Sequence[Node], id: str) -> Node:
    """Return the node with the title of a document. Raises NotFoundError if there is none."""
    page = next((node for node in nodes if node.is_title_page), None)
    if page is None:
        raise NotFoundError(f"there is no document {id!r}", hint="`documents` lists them")
    return page


def _order(node: Node) -> tuple[float, int]:
    position = node.attributes.get("position", 0)
    return (position if isinstance(position, int | float) else 0, node.key)


@dataclass(slots=True)
class _Step:
    """What to add, update and close to get from one version to the next."""

    add: list[Node] = field(default_factory=list)
    put: list[Node] = field(default_factory=list)
    gone: list[Node] = field(default_factory=list)
    kept: int = 0
    moved: int = 0


def _compared(old: Sequence[Node], closed: Sequence[Node], new: Sequence[Node], *, is_dated: bool) -> _Step:
    """Return the difference between two versions. A passage that a user forgot on its own is not added again."""
    there = _by_text(old)
    archived = _by_text(node for node in closed if node.closed_reason in (_REPLACED, _REMOVED))
    forgotten = _by_text(node for node in closed if node.closed_reason == "forgotten")
    step, pairs = _Step(), list[tuple[Node, Node | None]]()
    for node in new:
        text = _folded(node.content)
        same = there.get(text) or archived.get(text)
        if same or text not in forgotten:
            pairs.append((node, same.popleft() if same else None))
    positions = _positions([None if was is None else _order(was)[0] for _, was in pairs])
    for (node, was), position in zip(pairs, positions, strict=True):
        attributes = {**node.attributes, "position": position}
        if was is None:
            step.add.append(replace(node, attributes=attributes))
            continue
        step.kept += 1
        now = _as_now(was, replace(node, content=was.content, attributes=attributes), is_dated=is_dated)
        if now != was:
            step.moved += was.is_live and dict(was.attributes) != attributes
            step.put.append(now)
    step.gone = [node for nodes in there.values() for node in nodes]
    return step


def _by_text(nodes: Iterable[Node]) -> dict[str, deque[Node]]:
    found: dict[str, deque[Node]] = {}
    for node in nodes:
        found.setdefault(_folded(node.content), deque()).append(node)
    return found


def _as_now(was: Node, now: Node, *, is_dated: bool) -> Node:
    at = now if is_dated else was
    return replace(
        was,
        content=now.content,
        attributes=now.attributes,
        tags=now.tags,
        event_time=at.event_time,
        valid_from=at.valid_from,
        closed_at=None,
        closed_reason=None,
    )


def _positions(known: Sequence[float | None]) -> list[float]:
    """Return ascending positions: keep known ones as far as they ascend, and place the new ones between them.

    >>> _positions([1.0, None, 2.0, None])
    [1.0, 1.5, 2.0, 3.0]
    """
    found: list[float] = []
    last, waiting = 0.0, 0
    for position in known:
        if position is None or position <= last:
            waiting += 1
            continue
        found += [last + (position - last) * number / (waiting + 1) for number in range(1, waiting + 1)]
        found.append(position)
        last, waiting = position, 0
    return [*found, *(last + number for number in range(1, waiting + 1))]


def _closing(
    snapshot: Snapshot, scope: Scope, gone: Sequence[Node], id: str, *, at: datetime, reason: ClosedReason
) -> tuple[Change, int]:
    """Return the change that closes passages and the facts derived from them alone, and the number of these facts."""
    if not gone:
        return Change(), 0
    keys = [node.key for node in gone]
    while fresh := [each.key for each in snapshot.erasure.derived(keys) if each.rests_alone and each.key not in keys]:
        keys += fresh
    learnt = [node for node in snapshot.nodes.by_key(scope, keys[len(gone) :]).values() if node.is_live]
    session = snapshot.sessions.get(scope, f"{DOCUMENT}{id}")
    told = (replace(session, summary=None),) if session is not None and session.summary else ()
    closings = [Closing(id=node.id, at=at, reason=reason) for node in gone]
    closings += [Closing(id=node.id, at=at, reason="expired") for node in learnt]
    return Change(close=tuple(closings), sessions=told), len(learnt)
