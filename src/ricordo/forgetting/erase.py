"""Erasing: what is asked for leaves the store for good, with all that rests on nothing else; and a report of it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ricordo.errors import DeniedError, InvalidError, NotFoundError, UnavailableError
from ricordo.forgetting.forget import found
from ricordo.model import Entity, Erased, ErasureReport, KeptBack, Scope
from ricordo.ports import Progress
from ricordo.storage import Snapshot, Store, faults
from ricordo.storage.database import suppression
from ricordo.storage.database.vacuum import Cleaned
from ricordo.storage.values import ErasureTargets

Sought = Callable[[Snapshot, Scope, str], Entity]
"""Finds the entity of a name or an id, or raises."""

# What somebody said themselves stands, also where what showed it is gone.
_OWN_WORD = frozenset(("remember", "correct"))

AT_ONCE_ROWS = 1_000
"""So few go in one transaction, of which nobody sees half; more go step by step, and others write in between. Of a
folder all goes at once: its files are written anew when it is done, and until then an index made from them holds all.
"""

_NAMED_MOST = 1_000
_AT_OPENING_S = 1.0
# What was said in more memories than this is not looked for in others, and of more than that not withheld.
_SOURCES_MOST = 200
_WITHHELD_MOST = 20_000

_ELSEWHERE = (
    "backups and exports made before",
    "copies of the file, a git history of it, and what a disk or file system keeps of overwritten blocks",
    "what agents and language models were told of it",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody wants erased: exactly one of these."""

    id: str | None = None
    session: str | None = None
    entity: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to go, and the report of it."""

    targets: ErasureTargets
    report: ErasureReport


async def erase(
    store: Store, asked: Asked, *, scope: Scope, now: int, sought: Sought, dry_run: bool, progress: Progress | None
) -> ErasureReport:
    """Erase, or only tell what would be.

    Args:
        now: Unix milliseconds, UTC.
        progress: called with (rows so far, rows in all).

    Raises:
        InvalidError: not exactly one thing is named, or it is no text.
        NotFoundError: there is no such thing.
        DeniedError: the owner is another than the caller.
    """
    _check(asked, scope)
    if dry_run:
        plan = await store.read(lambda tx: planned(tx, asked, scope, sought=sought, path=store.path))
        return replace(plan.report, dry_run=True)

    def start(snapshot: Snapshot) -> tuple[Plan, int]:
        plan = planned(snapshot, asked, scope, sought=sought, path=store.path)
        _withhold(snapshot, plan.targets, scope, at=now)
        number = snapshot.erasure.begin(plan.targets, at=now)
        if plan.report.count <= AT_ONCE_ROWS or store.folder is not None:
            _remove_all(snapshot, number, plan.targets, now=now, actor=scope.owner or scope.chat or "")
        return plan, number

    plan, number = await store.derive(start)
    faults.reached("erase: begun")
    actor = "" if asked.owner is not None else scope.owner or scope.chat or ""
    await _remove(
        store,
        number,
        plan.targets.space,
        plan.targets.kind,
        now=now,
        actor=actor,
        progress=progress,
        total=plan.report.count,
    )
    faults.reached("erase: rows gone")
    return await _cleaned(store, plan.report)


def _withhold(snapshot: Snapshot, targets: ErasureTargets, scope: Scope, *, at: int) -> None:
    """What is erased is not learnt again from elsewhere, nor stored again. Of an owner nothing is left to withhold."""
    going = set(targets.nodes)
    for node in snapshot.nodes.by_key(scope, targets.nodes[:_WITHHELD_MOST]).values():
        space = snapshot.space(node.owner, node.chat)
        assert space is not None
        found = suppression.of_text(node, is_erased=True, spans=False)
        if node.type != "episodic" and len(going) <= _SOURCES_MOST:
            sources = snapshot.suppression.sources(node, space)
            found += [each for each in sources if going.isdisjoint(span[0] for span in each.spans)]
        snapshot.suppression.put(space, found, at=at)


async def resume(store: Store) -> None:
    """Finish what somebody began to erase before their process ended. Waits for nobody: it is tried again each time."""
    left = await store.read(lambda tx: tx.rows("erasing_open"))
    for number, space, kind, at, state in left:
        if state == "rows":
            await _remove(store, number, space, kind, now=at, actor="", progress=None, total=0)
    if left:
        await _clean(store, patience_s=_AT_OPENING_S)


def _check(asked: Asked, scope: Scope) -> None:
    given = {
        name: value for name in ("id", "session", "entity", "owner") if (value := getattr(asked, name)) is not None
    }
    if len(given) != 1:
        raise InvalidError("erase: give exactly one of id, session, entity and owner")
    for name, value in given.items():
        if not isinstance(value, str) or not value:
            raise InvalidError(f"{name}: {value!r} is no text that names anything")
    if asked.owner is not None and asked.owner != scope.owner:
        raise DeniedError("owner: only their own memory can be erased by a caller", hint="use that owner's scope")


def _remove_all(snapshot: Snapshot, number: int, targets: ErasureTargets, *, now: int, actor: str) -> None:
    while snapshot.erasure.step(number, kind=targets.kind, at=now):
        pass
    actor = "" if targets.whole_space else actor
    snapshot.erasure.finish(number, space=targets.space, kind=targets.kind, at=now, actor=actor)


async def _remove(
    store: Store, number: int, space: int, kind: str, *, now: int, actor: str, progress: Progress | None, total: int
) -> None:
    done = 0
    while some := await store.derive(lambda tx: tx.erasure.step(number, kind=kind, at=now)):
        faults.reached("erase: between steps")
        done += some
        if progress is not None:
            progress(min(done, total), total)
    await store.derive(lambda tx: tx.erasure.finish(number, space=space, kind=kind, at=now, actor=actor))


async def _cleaned(store: Store, report: ErasureReport) -> ErasureReport:
    try:
        cleaned = await _clean(store, patience_s=None)
    except UnavailableError:
        return replace(report, out_of_reach=(*report.out_of_reach, _BUSY))
    if not cleaned.is_done:
        report = replace(report, out_of_reach=(*report.out_of_reach, _READ))
    return replace(report, is_done=cleaned.is_done, bytes_before=cleaned.bytes_before, bytes_after=cleaned.bytes_after)


_BUSY = "free pages of the store's file: another process kept writing; the next opening tries again"
_READ = "the store's log (its -wal file): another process still reads an older state; the next opening tries again"


async def _clean(store: Store, *, patience_s: float | None) -> Cleaned:
    """Free pages and the log. What was erased is noted as gone only when no byte of it is left."""
    left = [row[0] for row in await store.read(lambda tx: tx.rows("erasing_open")) if row[4] == "bytes"]
    cleaned = await store.clean(patience_s=patience_s)
    if cleaned.is_done:
        await store.derive(lambda tx: [tx.rows("erasing_end", {"erasing": number}) for number in left])
    return cleaned


# what is to go


def planned(snapshot: Snapshot, asked: Asked, scope: Scope, *, sought: Sought, path: Path) -> Plan:
    """What is to go with what is asked for. Reads, changes nothing."""
    if asked.owner is not None:
        targets = _of_owner(snapshot, asked.owner)
    elif asked.session is not None:
        targets = _of_session(snapshot, scope, asked.session)
    elif asked.entity is not None:
        targets = _of_entity(snapshot, sought(snapshot, scope, asked.entity))
    else:
        targets = _of_memory(snapshot, scope, asked.id or "")
    report = ErasureReport(
        dry_run=False,
        erased=_listed(snapshot, targets),
        kept=tuple(_kept(snapshot, targets, scope)),
        out_of_reach=(*_ELSEWHERE, *_copies_beside(path)),
    )
    return Plan(targets=targets, report=report)


def _of_owner(snapshot: Snapshot, owner: str) -> ErasureTargets:
    space = snapshot.space(owner, "")
    if space is None:
        raise NotFoundError(f"nothing is known of {owner}")
    return ErasureTargets(kind="owner", space=space, whole_space=True, owner=owner)


def _of_memory(snapshot: Snapshot, scope: Scope, node_id: str) -> ErasureTargets:
    node = found(snapshot, scope, node_id)
    space = snapshot.space(node.owner, node.chat)
    assert space is not None
    older = [key for (key,) in snapshot.rows("erase_older", {"key": node.key})]
    return _with_what_rests_on_it(snapshot, ErasureTargets(kind="memory", space=space, nodes=tuple(older)))


def _of_session(snapshot: Snapshot, scope: Scope, session: str) -> ErasureTargets:
    values = {"session": session, "spaces": json.dumps(snapshot.visible(scope))}
    sessions = [key for (key,) in snapshot.rows("erase_sessions", values)]
    if not sessions:
        raise NotFoundError(f"nothing was said in session {session}")
    nodes = [key for (key,) in snapshot.rows("erase_in_session", {"sessions": json.dumps(sessions)})]
    space = snapshot.visible(scope)[0]
    return _with_what_rests_on_it(
        snapshot, ErasureTargets(kind="session", space=space, nodes=tuple(nodes), sessions=tuple(sessions))
    )


def _of_entity(snapshot: Snapshot, entity: Entity) -> ErasureTargets:
    """Who or what it is, under all names it had, with every memory about it or naming it."""
    space = snapshot.space(entity.owner, entity.chat)
    assert space is not None
    members = [key for (key,) in snapshot.rows("erase_members", {"entity": entity.key})]
    listed = {"entities": json.dumps(members)}
    own = [alias for _, alias, is_shared in snapshot.rows("erase_names", listed) if not is_shared]
    speaks_of = _speaks_of(own)
    nodes = {key for (key,) in snapshot.rows("erase_naming", listed)}
    nodes |= {key for key, text in snapshot.rows("erase_texts", {"space": space}) if speaks_of(text)}
    targets = ErasureTargets(kind="entity", space=space, nodes=tuple(sorted(nodes)), entities=tuple(members))
    targets = _with_what_rests_on_it(snapshot, targets)
    summaries = [
        (table, key) for table, key, text in snapshot.rows("erase_summaries", {"space": space}) if speaks_of(text)
    ]
    former = [
        (row, seq)
        for _, row, seq, before in snapshot.rows("history_images_of_table", {"table": "nodes"})
        if speaks_of(_written(before, space))
    ]
    return replace(targets, summarised=tuple({*targets.summarised, *summaries}), former=tuple(former))


def _speaks_of(names: Iterable[str]) -> Callable[[str], bool]:
    """Whether a text holds one of the names as a word, in whatever case and width it is written."""
    folded = sorted({_folded(name) for name in names} - {""})
    if not folded:
        return lambda text: False
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, folded))})(?!\w)")
    return lambda text: bool(text) and pattern.search(_folded(text)) is not None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _written(before: str, space: int) -> str:
    """All that a former version of a memory of a space said."""
    image = json.loads(before)
    if image["space"] != space:
        return ""
    return "\n".join((image["content"], image["speaker"] or "", image["tags"], image["attributes"]))


def _with_what_rests_on_it(snapshot: Snapshot, targets: ErasureTargets) -> ErasureTargets:
    """What follows from memories that go, and from nothing else, goes with them."""
    nodes = list(dict.fromkeys(targets.nodes))
    while True:
        known = set(nodes)
        fresh = [
            key
            for key, rests_on, of_these, verb, _ in snapshot.rows("erase_derived", {"nodes": json.dumps(nodes)})
            if key not in known and rests_on == of_these and verb not in _OWN_WORD
        ]
        if not fresh:
            break
        nodes += fresh
    listed = json.dumps(nodes)
    entities = json.dumps(targets.entities)
    relations = [key for key, _ in snapshot.rows("erase_relations", {"nodes": listed, "entities": entities})]
    forsaken = snapshot.rows("erase_forsaken", {"nodes": listed, "relations": json.dumps(relations)})
    emptied = [key for (key,) in snapshot.rows("erase_emptied", {"nodes": listed})]
    sessions = tuple(dict.fromkeys((*targets.sessions, *emptied)))
    everyone = tuple(dict.fromkeys((*targets.entities, *(key for (key,) in forsaken))))
    going = {("sessions", key) for key in sessions} | {("entities", key) for key in everyone}
    summarised = {(table, key) for table, key in snapshot.rows("erase_summarised", {"nodes": listed})} - going
    return replace(
        targets,
        nodes=tuple(nodes),
        entities=everyone,
        relations=tuple(relations),
        sessions=sessions,
        summarised=tuple(summarised),
    )


# the report


def _listed(snapshot: Snapshot, targets: ErasureTargets) -> tuple[Erased, ...]:
    counts: Counter[str] = Counter()
    ids: dict[str, list[str]] = {}
    for kind, id_ in _rows(snapshot, targets):
        counts[kind] += 1
        if counts[kind] <= _NAMED_MOST:
            ids.setdefault(kind, []).append(id_)
    return tuple(Erased(kind=kind, count=count, ids=tuple(ids[kind])) for kind, count in counts.items())


def _rows(snapshot: Snapshot, targets: ErasureTargets) -> Iterator[tuple[str, str]]:
    """(kind, id), one by one: of an owner there may be very many."""
    if targets.whole_space:
        return snapshot.each("erase_space_listed", {"space": targets.space})
    values = {name: json.dumps(getattr(targets, name)) for name in ("nodes", "entities", "relations", "sessions")}
    return snapshot.each("erase_rows_listed", values)


def _kept(snapshot: Snapshot, targets: ErasureTargets, scope: Scope) -> Iterator[KeptBack]:
    if targets.whole_space:
        said = snapshot.value("erase_said_in_chats", {"owner": targets.owner})
        if said:
            yield KeptBack(why="said in a group: it belongs to the group", count=said)
        return
    listed = json.dumps(targets.nodes)
    rests = snapshot.rows("erase_derived", {"nodes": listed})
    others = [id_ for key, on, of, verb, id_ in rests if key not in targets.nodes and (on != of or verb in _OWN_WORD)]
    if others:
        yield _back("rests on other memories or on somebody's own word, too", others)
    sources = [id_ for (id_,) in snapshot.rows("erase_resting", {"nodes": listed})]
    if sources:
        yield _back("what it was learnt from, which may say more than that", sources)


def _back(why: str, ids: Collection[str]) -> KeptBack:
    return KeptBack(why=why, count=len(ids), ids=tuple(ids)[:_NAMED_MOST])


def _copies_beside(path: Path) -> Iterator[str]:
    """What lies beside the store and looks like a copy of it, and the repository that it may have been committed to."""
    for pattern in (f"{path.name}.*", "set-aside-*"):
        for other in sorted(path.parent.glob(pattern)):
            yield f"{other} beside the store"
    repositories = (folder / ".git" for folder in path.absolute().parents)
    yield from (f"{found}, if the store is committed there" for found in repositories if found.exists())
