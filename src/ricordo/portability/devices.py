"""Exchange commits between devices: directly between two stores, or through a folder that another program copies."""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TypeVar

from ricordo.clock import from_ms
from ricordo.consolidation.evolution import superseded, supersedes
from ricordo.consolidation.resolve import LATEST, form_of
from ricordo.encoding.entity_merge import merge
from ricordo.encoding.mentions import link_waiting
from ricordo.encoding.validation import without_erased
from ricordo.errors import InvalidError, UnavailableError
from ricordo.forgetting.erase import follow, id_of_rest
from ricordo.model import DOCUMENT, ROOT_ENDS, Change, Closing, Node, Review, Scope, SyncReport
from ricordo.portability import segments
from ricordo.portability.segments import ExchangeFolder
from ricordo.ports import Progress
from ricordo.storage import Snapshot, Store, faults
from ricordo.storage.complete import COMMITS
from ricordo.storage.exchange import Exchange, ExchangedCommit, Merged, Vector
from ricordo.storage.key import Key
from ricordo.storage.leases import LeaseHolder
from ricordo.storage.staging import check_file_name
from ricordo.text.change import topics
from ricordo.text.occasions import are_of_two_days
from ricordo.text.statement import compare

T = TypeVar("T")

_AT_ONCE = 100
"""How many commits one transaction merges."""
_ROUNDS = 8
"""How often two stores exchange commits at most. A merge may add a commit, so one exchange is seldom the last."""
_LEASE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Side:
    """A store in an exchange.

    Args:
        now: returns Unix milliseconds, UTC.
        noted: called after each transaction with the number of commits merged.
    """

    store: Store
    scope: Scope
    now: Callable[[], int]
    noted: Callable[[int], None]

    def of_chat(self, chat: str) -> Side:
        """Return the side of the same store for a chat."""
        return replace(self, scope=Scope.of("", chat))

    async def derive(self, work: Callable[[Exchange], T]) -> T:
        """Run some work on the space, in one transaction of the writer."""
        return await self.store.derive(lambda tx: work(Exchange(tx, self.scope)))


def checked_place(other: str | Path, store: Store) -> Path:
    """Return the path of another store or of an exchange folder. Raises InvalidError."""
    check_file_name(str(other), name="other")
    place = Path(other).expanduser()
    if not place.exists():
        hint = "create the folder, or name the store of the other device"
        raise InvalidError(f"other: {place} does not exist", hint=hint)
    own = store.path.parent if store.has_plain_files else store.path
    if place.resolve() == own.resolve():
        raise InvalidError("other: this is the store itself", hint="name the other device's store, or a folder")
    return place


def is_exchange_folder(place: Path) -> bool:
    """Return whether a path is an exchange folder and not a store."""
    return place.is_dir() and not (place / COMMITS).exists()


async def sync_folder(
    side: Side, folder: Path, *, key: Key | None, chats: Sequence[str] | None, dry_run: bool, progress: Progress | None
) -> SyncReport:
    """Exchange commits with the other devices that use a folder.

    Args:
        key: encrypts the files; None: they are readable.
        chats: the chats to exchange besides the owner's own memory; None: all chats of the owner.

    Raises:
        DeniedError: the key is missing or wrong.
        StoreError: the folder cannot be read or written.
        UnavailableError: another process exchanges this store's commits.
    """
    shared = ExchangeFolder(folder, key)
    known = await _chats(side)
    own = shared.shelf(segments.name_of(*_place(side.scope)))
    report = await _sync_shelf(side, own, chats=known.own, dry_run=dry_run, progress=progress)
    wanted, closed = _wanted(known.own | own.chats, known.closed, chats)
    for chat in wanted:
        shelf = shared.shelf(segments.name_of("", chat))
        if shelf.segments or chat in known.here:
            done = await _sync_shelf(side.of_chat(chat), shelf, chats=frozenset(), dry_run=dry_run, progress=progress)
            report = _sum(report, replace(done, chats=(chat,)))
    return replace(report, left_out=tuple(dict.fromkeys((*report.left_out, *closed))))


async def _sync_shelf(
    side: Side, shelf: segments.Shelf, *, chats: frozenset[str], dry_run: bool, progress: Progress | None
) -> SyncReport:
    async with _alone(side):
        if dry_run:
            return await _previewed(side, shelf)
        await side.derive(lambda here: _numbered(here, shelf.known()))
        before = await _open_reviews(side)
        device, vector = await side.derive(lambda here: (here.device(), here.vector()))
        commits, left_out = segments.unread(shelf, vector)
        merged, erased = await _taken_in(side, commits, progress)
        missing = [f"commits of the device {name} after {last} are missing" for name, last in merged.missing.items()]
        sent = await _written(side, shelf, chats)
        return SyncReport(
            dry_run=False,
            sent=sent,
            received=merged.commits,
            to_review=max(0, await _open_reviews(side) - before),
            erased=erased,
            left_out=(*shelf.left_out(device), *left_out, *missing),
        )


@contextlib.asynccontextmanager
async def _alone(side: Side) -> AsyncIterator[None]:
    """Let one process at a time exchange a space. Raises UnavailableError if another one does."""
    space = segments.name_of(*_place(side.scope))
    async with LeaseHolder(side.store, f"sync/{space}", lease_ms=_LEASE_MS).held() as is_ours:
        if not is_ours:
            raise UnavailableError("another process syncs this memory", hint="try again when it has finished")
        yield


async def sync_stores(
    side: Side, other: Side, *, chats: Sequence[str] | None, dry_run: bool, progress: Progress | None
) -> SyncReport:
    """Exchange all commits that only one of two stores has.

    Args:
        chats: as for `sync_folder`.

    Raises:
        InvalidError: both are the same store.
        UnavailableError: another process exchanges this store's commits.
    """
    report = await _sync_pair(side, other, dry_run=dry_run, progress=progress)
    here, there = await _chats(side), await _chats(other)
    wanted, closed = _wanted(here.own | there.own, here.closed | there.closed, chats)
    for chat in wanted:
        if chat in here.here | there.here:
            done = await _sync_pair(side.of_chat(chat), other.of_chat(chat), dry_run=dry_run, progress=progress)
            report = _sum(report, replace(done, chats=(chat,)))
    return replace(report, left_out=tuple(dict.fromkeys((*report.left_out, *closed))))


async def _sync_pair(side: Side, other: Side, *, dry_run: bool, progress: Progress | None) -> SyncReport:
    async with _alone(side):
        before, sent, received, erased = await _open_reviews(side), 0, 0, 0
        if dry_run:
            return await _previewed_stores(side, other)
        await _told_apart(side, other)
        for _ in range(_ROUNDS):
            there, here = await _vector(other), await _vector(side)
            theirs = await _unknown(other, here)
            merged, gone = await _taken_in(side, theirs, progress)
            ours = await _unknown(side, there)
            ours_taken, _ = await _taken_in(other, ours, progress)
            received, sent, erased = received + merged.commits, sent + ours_taken.commits, erased + gone
            if not merged.commits and not ours_taken.commits:
                break
        to_review = max(0, await _open_reviews(side) - before)
        return SyncReport(dry_run=False, sent=sent, received=received, to_review=to_review, erased=erased)


def _sum(first: SyncReport, second: SyncReport) -> SyncReport:
    return SyncReport(
        dry_run=first.dry_run,
        sent=first.sent + second.sent,
        received=first.received + second.received,
        to_review=first.to_review + second.to_review,
        erased=first.erased + second.erased,
        chats=(*first.chats, *second.chats),
        left_out=(*first.left_out, *second.left_out),
    )


# the chats of an owner


@dataclass(frozen=True, slots=True)
class _Chats:
    """The chats of a store, as an owner sees them.

    Attributes:
        here: all of them.
        own: the chats that the owner exchanges: open ones in which the owner took part, and shared spaces that the
            owner keeps.
        closed: shared spaces that the owner does not keep, and may not pass on to a device without their members.
    """

    here: frozenset[str]
    own: frozenset[str]
    closed: frozenset[str]


def _wanted(own: frozenset[str], closed: frozenset[str], named: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Return the chats to exchange, and why some are left out.

    Args:
        own: the owner's chats here or on other devices.
        named: the chats that the caller asks for; None: all.
    """
    if named is not None:
        return list(dict.fromkeys(named)), []
    left_out = [f"the shared space {each!r}: only its keepers sync it" for each in sorted(own & closed)]
    return sorted(own - closed), left_out


async def _chats(side: Side) -> _Chats:
    owner = side.scope.owner
    rows = await side.derive(lambda here: here.chats(owner)) if owner else []
    return _Chats(
        frozenset(each.name for each in rows),
        frozenset(each.name for each in rows if (each.is_kept if each.is_shared else each.is_joined)),
        frozenset(each.name for each in rows if each.is_shared and not each.is_kept),
    )


class _PreviewedError(Exception):
    """Rolls back what a preview had to write."""

    def __init__(self, report: SyncReport) -> None:
        self.report = report


async def _previewed(side: Side, shelf: segments.Shelf) -> SyncReport:
    known = shelf.known()

    def work(here: Exchange) -> None:
        _numbered(here, known)
        commits, left_out = segments.unread(shelf, vector := here.vector())
        new = {(each.device, each.number) for each in commits if each.number > vector.get(each.device, 0)}
        sent = sum(1 for _ in here.unknown_to(known))
        unused = (*shelf.left_out(here.device()), *left_out)
        raise _PreviewedError(SyncReport(dry_run=True, sent=sent, received=len(new), left_out=unused))

    return await _taken_back(side, work)


async def _previewed_stores(side: Side, other: Side) -> SyncReport:
    def count(known: Vector) -> Callable[[Exchange], None]:
        def work(tx: Exchange) -> None:
            tx.number_own()
            raise _PreviewedError(SyncReport(dry_run=True, sent=sum(1 for _ in tx.unknown_to(known)), received=0))

        return work

    there, here = await _looked(other), await _looked(side)
    sent = (await _taken_back(side, count(there))).sent
    return SyncReport(dry_run=True, sent=sent, received=(await _taken_back(other, count(here))).sent)


async def _unknown(side: Side, known: Vector) -> list[ExchangedCommit]:
    return await side.derive(lambda tx: list(tx.unknown_to(known)))


async def _looked(side: Side) -> dict[str, int]:
    return await side.derive(lambda tx: tx.vector())


async def _taken_back(side: Side, work: Callable[[Exchange], None]) -> SyncReport:
    try:
        await side.derive(work)
    except _PreviewedError as previewed:
        return previewed.report
    raise AssertionError("a preview ends with its report")


def _place(scope: Scope) -> tuple[str, str]:
    return (scope.owner, "") if scope.owner else ("", scope.chat or "")


def _numbered(here: Exchange, there: Vector) -> None:
    """Number the store's own commits, under a new device name if others know more commits of this one than it has."""
    device = here.device()
    if there.get(device, 0) > here.vector().get(device, 0):
        here.rename()
    here.number_own()


async def _told_apart(side: Side, other: Side) -> None:
    theirs = await other.derive(lambda tx: tx.device())
    if theirs == await side.derive(lambda tx: tx.device()):  # one store is a copy of the other
        await side.derive(lambda tx: tx.rename())
        if theirs != await other.derive(lambda tx: tx.device()):
            raise InvalidError("other: this is the store itself", hint="name the other device's store, or a folder")
    there, here = await _looked(other), await _looked(side)
    await side.derive(lambda tx: _numbered(tx, there))
    await other.derive(lambda tx: _numbered(tx, here))


async def _vector(side: Side) -> dict[str, int]:
    def work(here: Exchange) -> dict[str, int]:
        here.number_own()
        return here.vector()

    return await side.derive(work)


async def _open_reviews(side: Side) -> int:
    return len(await side.store.read(lambda tx: tx.reviews.listed(side.scope, most=10_000)))


async def _taken_in(side: Side, commits: Sequence[ExchangedCommit], progress: Progress | None) -> tuple[Merged, int]:
    """Merge commits in batches, one transaction each. After an interruption, the next exchange goes on."""
    ordered, total = sorted(commits, key=lambda each: (each.number, each.device)), Merged()
    for part in _parts(ordered):
        now = side.now()

        def work(here: Exchange, part: Sequence[ExchangedCommit] = part, now: int = now) -> Merged:
            here.number_own()
            return here.merge(part, now=from_ms(now), settle=lambda tx, ex, did: settled(tx, ex, did, side.scope, now))

        merged = await side.derive(work)
        total.commits += merged.commits
        total.missing |= merged.missing
        side.noted(merged.commits)
        faults.reached("sync: between parts")
        if progress is not None:
            progress(total.commits, len(ordered))
    return total, await _erased(side)


def _parts(commits: Iterable[ExchangedCommit]) -> Iterator[list[ExchangedCommit]]:
    waiting = iter(commits)
    while part := list(islice(waiting, _AT_ONCE)):
        yield part


async def _erased(side: Side) -> int:
    """Erase what another device erased, except rows still needed here; the other devices are told of those."""
    rows = await side.derive(lambda here: here.erased_elsewhere())
    if not rows:
        return 0
    report = await follow(side.store, rows, scope=side.scope, now=side.now(), link=link_waiting)
    faults.reached("sync: erased")

    def keep(here: Exchange) -> None:
        here.number_own()
        here.keep(here.erased_elsewhere())

    await side.derive(keep)
    return report.count


async def _written(side: Side, shelf: segments.Shelf, chats: frozenset[str]) -> int:
    """Write the commits that the folder lacks; after an erasure, rewrite all files of this device.

    Args:
        chats: the owner's chats here, which the other devices are told of.
    """

    def work(here: Exchange) -> tuple[segments.Entry, list[ExchangedCommit]]:
        here.number_own()
        device, erased_at = here.device(), here.erased_at()
        instead = shelf.needs_rewriting(device, erased_at=erased_at)
        known = shelf.known(without=device if instead else "")
        entry = segments.Entry(device=device, erased_at=erased_at, chats=chats, instead=instead)
        return entry, list(here.unknown_to(known))

    entry, commits = await side.derive(work)
    if commits or entry.instead or not chats <= shelf.chats:
        segments.write(shelf, commits, entry)
    already = shelf.known()
    return sum(each.number > already.get(each.device, 0) for each in commits)


# conflicts between devices that did not know of each other's commits


def settled(tx: Snapshot, exchange: Exchange, merged: Merged, scope: Scope, now: int) -> Change:
    """Return the change that settles a merge: what was erased here is refused, equal facts and equal entities are
    merged, and contradictions go to review. Every device that sees the same commits decides the same.
    """
    change = _without_erased(tx, exchange, merged, scope)
    for id_ in dict.fromkeys(merged.disputed):
        if (review := tx.reviews.get(scope, id_)) is not None and review.decision is not None:
            change = change.joined(_reopened(tx, review, now))
    pairs: set[frozenset[str]] = set()
    for table, id_ in merged.created:
        if table == "nodes" and (node := tx.nodes.get(scope, id_)) is not None:
            change = change.joined(_compared(tx, exchange, node, scope, now, pairs))
    change = change.joined(_documents(tx, exchange, merged, scope, now))
    return change.joined(_people(tx, exchange, merged, scope, now))


def _without_erased(tx: Snapshot, exchange: Exchange, merged: Merged, scope: Scope) -> Change:
    """Refuse memories with text that was erased here: the device that sent them erases them, too. What else they say is
    kept as another memory.
    """
    space = tx.space(scope.owner, "" if scope.owner else scope.chat or "")
    if space is None or not tx.suppression.withholds(space):
        return Change()
    left = {
        record: rest
        for record, (node, number) in merged.told.items()
        if (rest := without_erased(tx, node, unaware_since=exchange.unaware_since(number))) != node
    }
    sessions = {merged.told[record][0].session for record in left}
    gone = {merged.told[record][0].id for record, rest in left.items() if rest is None}
    for record, (node, _) in merged.told.items():
        if node.is_title_page and node.session in sessions and not _has_passages(tx, scope, node, gone):
            left[record] = None
    if not left:
        return Change()
    exchange.refuse(left)
    refused = {merged.told[record][0].id for record in left}
    merged.created = [each for each in merged.created if each[1] not in refused]
    kept = (_rest(tx, scope, merged.told[record][0].id, rest) for record, rest in left.items() if rest is not None)
    return Change(add=tuple(each for each in kept if each is not None))


def _has_passages(tx: Snapshot, scope: Scope, page: Node, gone: Collection[str]) -> bool:
    """Return whether a document has passages besides the ones that are refused."""
    keys = tx.erasure.nodes_in(tx.erasure.sessions(scope, page.session or ""))
    found = tx.nodes.by_key(scope, keys).values()
    return any(node.chat == page.chat and not node.is_title_page and node.id not in gone for node in found)


def _rest(tx: Snapshot, scope: Scope, id: str, rest: Node) -> Node | None:
    """Return the memory that takes the place of a refused one; None if it exists already or the refused one is gone."""
    stored, new = tx.nodes.get(scope, id), id_of_rest(id)
    if stored is None or tx.nodes.get(scope, new) is not None:
        return None
    return replace(stored, id=new, key=0, content=rest.content, attributes=rest.attributes)


def _reopened(tx: Snapshot, review: Review, now: int) -> Change:
    """Reopen a review that another device decided differently, and undo its decision."""
    newer, older = tx_node(tx, review.newer), review.older and tx_node(tx, review.older)
    opened = []
    if older is None:
        if newer.is_live:
            opened.append(replace(newer, closed_at=from_ms(now), closed_reason="quarantined"))
    else:
        if newer.closed_reason == "retracted":
            opened.append(replace(newer, closed_at=None, closed_reason=None))
        if older.closed_reason == "superseded" and tx.graph.has_edge(newer.key, "supersedes", older.key):
            opened.append(replace(older, closed_at=None, closed_reason=None, valid_until=None))
    unlink = (supersedes(newer, older),) if older is not None else ()
    return Change(put=tuple(opened), unlink=unlink, reviews=(replace(review, decided_at=None, decision=None),))


def tx_node(tx: Snapshot, node: Node) -> Node:
    """Return the present state of a node."""
    return tx.nodes.known(Scope.of(node.owner, node.chat), node.id)


def _compared(
    tx: Snapshot, exchange: Exchange, node: Node, scope: Scope, now: int, pairs: set[frozenset[str]]
) -> Change:
    if not node.is_live or node.type == "episodic":
        return Change()
    maker = exchange.maker("nodes", node.id)
    for other, verdict in _rivals(tx, exchange, node, scope):
        pair = frozenset((node.id, other.id))
        if pair in pairs or exchange.maker("nodes", other.id) == maker:
            continue
        pairs.add(pair)
        first, second = sorted((node, other), key=lambda each: each.id)
        if verdict == "same":
            return _one_of(first, second, now)
        if verdict == "conflict":
            return _asked(tx, first, second, scope, now)
    return Change()


def _one_of(first: Node, second: Node, now: int) -> Change:
    """Keep the first of two equal facts, with the tags and attributes of both."""
    tags = tuple(dict.fromkeys((*first.tags, *second.tags)))
    kept = replace(first, tags=tags, attributes={**second.attributes, **first.attributes})
    put = (superseded(second, by=first, at=from_ms(now)), *((kept,) if kept != first else ()))
    return Change(put=put, link=(supersedes(first, second),))


def _asked(tx: Snapshot, first: Node, second: Node, scope: Scope, now: int) -> Change:
    newer, older = (second, first) if second.valid_from >= first.valid_from else (first, second)
    name = blake2b(f"{first.id}\0{second.id}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    id_ = str(uuid.UUID(bytes=name))
    is_asked = any(
        each.older is not None and {each.newer.id, each.older.id} == {first.id, second.id}
        for each in tx.reviews.listed(scope, most=1_000)
    )
    if is_asked or newer.key in tx.reviews.decided_with(older.key) or tx.reviews.get(scope, id_) is not None:
        return Change()
    asked = Review(
        id=id_, kind="conflict", newer=newer, older=older, created_at=from_ms(now), owner=first.owner, chat=first.chat
    )
    return Change(reviews=(asked,))


def _rivals(tx: Snapshot, exchange: Exchange, node: Node, scope: Scope) -> list[tuple[Node, str]]:
    """Return the live facts that say the same as a fact or contradict it; those that say the same come first."""
    keys = {other for older in tx.nodes.replaced(node.key)[:1] for other in tx.nodes.replacing(older)}
    corrected = set(keys)
    keys |= set(tx.nodes.facts_with(node.owner, node.chat, topics(node.content).stems, most=LATEST))
    found = []
    for other in tx.nodes.by_key(scope, keys - {node.key}).values():
        if not other.is_live or other.type != node.type or (other.owner, other.chat) != (node.owner, node.chat):
            continue
        is_of_one = set(node.about) == set(other.about) or exchange.stated(node.key) == exchange.stated(other.key)
        verdict = _verdict(node, other) if is_of_one else ""
        if verdict == "same" or verdict == "conflict" or other.key in corrected:
            found.append((other, verdict or "conflict"))
    return sorted(found, key=lambda pair: (pair[1] != "same", pair[0].id))


def _verdict(node: Node, other: Node) -> str:
    if are_of_two_days(other, node):
        return ""
    if node.content.casefold().split() == other.content.casefold().split():
        return "same"
    found = compare(other.content, node.content) or form_of(other).verdict(form_of(node)) or ""
    return "conflict" if found in ("conflict", "replaced") else "same" if found == "same" else ""


def _documents(tx: Snapshot, exchange: Exchange, merged: Merged, scope: Scope, now: int) -> Change:
    """Merge documents that several devices read for themselves, such as the notes of a vault that they all watch."""
    created = (tx.nodes.get(scope, id_) for table, id_ in merged.created if table == "nodes")
    sessions = {node.session for node in created if node is not None and node.is_live}
    change = Change()
    for session in sorted(each for each in sessions if each is not None and each.startswith(DOCUMENT)):
        keys = tx.erasure.nodes_in(tx.erasure.sessions(scope, session))
        chat = "" if scope.owner else scope.chat or ""
        found = tx.nodes.by_key(scope, keys).values()
        live = [each for each in found if each.is_live and each.chat == chat]
        live = [each for each in live if not exchange.is_refused("nodes", each.id)]
        change = change.joined(_one_document(live, lambda node: exchange.maker("nodes", node.id), now))
    return change


def _one_document(nodes: Sequence[Node], maker: Callable[[Node], str], now: int) -> Change:
    """Return the change that leaves one title page, and each passage as often as one device has it.

    The smallest ids stay, so that devices that see some of them only do not close all. Of a watched file in several
    versions all passages stay, and the title page gets no digest, so that the next look at the file decides.
    """
    pages = sorted((node for node in nodes if node.is_title_page), key=lambda node: node.id)
    digests = {page.attributes["digest"] for page in pages}
    is_watched = all(ROOT_ENDS in str(page.attributes.get("source", "")) for page in pages)
    if len(digests) > 1 and not is_watched:
        return Change()
    spare = pages[1:] if len({maker(page) for page in pages}) > 1 else []
    unread = [replace(pages[0], attributes={**pages[0].attributes, "digest": ""})] if spare and len(digests) > 1 else []
    same: dict[str, list[Node]] = {}
    for node in nodes:
        if not node.is_title_page:
            same.setdefault(" ".join(node.content.split()), []).append(node)
    for copies in same.values():
        most = max(Counter(map(maker, copies)).values()) if len(copies) > 1 else 1
        spare += sorted(copies, key=lambda node: node.id)[most:]
    closings = tuple(Closing(id=node.id, at=from_ms(now), reason="superseded") for node in spare)
    return Change(close=closings, put=tuple(unread))


def _people(tx: Snapshot, exchange: Exchange, merged: Merged, scope: Scope, now: int) -> Change:
    """Merge people and things that have the same name on several devices."""
    change, gone = Change(), set[str]()
    for table, id_ in merged.created:
        entity = tx.entities.by_id(scope, id_) if table == "entities" else None
        if entity is None or entity.id != id_ or entity.closed_at is not None or id_ in gone:
            continue  # `by_id` returned the entity it was merged into
        named = tx.entities.named(scope, entity.name)
        same = [each for each in named.entities if each.type == entity.type and each.id != id_ and each.id not in gone]
        maker = exchange.maker("entities", id_)
        for other in same if named.by == "same" else ():
            if exchange.maker("entities", other.id) != maker:
                keep, leave = sorted((id_, other.id))
                change = change.joined(merge(tx, keep, leave, scope=scope, now=now)[0])
                gone |= {keep, leave}
                break
    return change
