"""Erase requested data for good, with everything derived from it alone, and report what was erased."""

from __future__ import annotations

import json
import logging
import re
import unicodedata
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from ricordo.clock import shortens, to_ms
from ricordo.errors import DeniedError, InvalidError, NotFoundError, RicordoError, StoreError, UnavailableError
from ricordo.forgetting.questions import AskedText, names_anybody, revealing_questions
from ricordo.forgetting.undone import Wanted, former, having, listed, summed_up_with, undone_sessions, with_undone
from ricordo.model import BY_AGENT, DOCUMENT, ROOT_ENDS, Erased, ErasureReport, Json, KeptBack, Node, Scope
from ricordo.ports import Progress
from ricordo.storage import Snapshot, Store, entity_meant, faults, session_meant
from ricordo.storage.authors import authors
from ricordo.storage.staging import copies_in_use
from ricordo.storage.values import (
    Cleaned,
    ErasureTargets,
    Filter,
    OpenErasure,
    Undone,
    UndoneRow,
    check_encodable,
    of_text,
    of_wordless,
)
from ricordo.text.sentences import plural

_log = logging.getLogger(__name__)

Link = Callable[[Snapshot, Scope], bool]
"""Links a batch of a caller's texts that still wait for the background work; returns whether more may wait.

An erasure also removes people that no other text mentions, so all links must be there when it decides.
"""

DocumentMeant = Callable[[Snapshot, Scope, str], str]

AT_ONCE_ROWS = 1_000
"""Maximum number of rows erased in one transaction. More are erased in steps, so that other writers get their turn.

A store that rewrites its files afterwards (a folder) erases everything at once: until the files are rewritten, an index
rebuilt from them would still contain all rows.
"""

_NAMED_MOST = 1_000
_AT_OPENING_S = 1.0
# Limits of suppression: memories whose sources are searched, and memories whose sentences are suppressed.
_SOURCES_MOST = 200
_WITHHELD_MOST = 20_000

_WITHOUT_TEXTS = (".token", ".tokens.json", ".manifest.json")
_ELSEWHERE = (
    "backups and exports made before",
    "copies of the file, a git history of it, and what a disk or file system keeps of overwritten blocks",
    "what agents and language models were told about it, with the logs and checkpoints of their programs",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The target of an erasure: exactly one field is set."""

    id: str | None = None
    session: str | None = None
    document: str | None = None
    entity: str | None = None
    where: Json | None = None
    writer: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The rows that an erasure removes, what the history alone holds of these and others, and its report."""

    targets: ErasureTargets
    undone: Undone
    report: ErasureReport


async def erase(
    store: Store,
    asked: Asked,
    *,
    scope: Scope,
    now: int,
    link: Link,
    document_meant: DocumentMeant,
    dry_run: bool,
    progress: Progress | None,
) -> ErasureReport:
    """Erase a target, or with `dry_run` only report what would be erased.

    Args:
        now: Unix milliseconds, UTC.
        document_meant: returns the id of the document with a name.
        progress: called with (rows so far, rows in all).

    Raises:
        InvalidError: not exactly one target is given, or it is not text.
        NotFoundError: the caller can see no such target.
        DeniedError: the owner is not the caller.
    """
    _check(asked, scope)

    def decide(tx: Snapshot) -> Plan:
        document = None if asked.document is None else document_meant(tx, scope, asked.document)
        return planned(tx, replace(asked, document=document), scope, path=store.path)

    if dry_run:
        if _is_writable(store):
            await _link_all(store, link, scope)
        plan = await store.read(decide)
        return replace(plan.report, dry_run=True)

    actor = "" if asked.owner is not None else scope.actor
    return await _carried_out(store, decide, actor=actor, scope=scope, now=now, link=link, progress=progress)


async def _link_all(store: Store, link: Link, scope: Scope) -> None:
    """Link all texts of the caller, in batches, so that other writers get their turn."""
    while await store.derive(lambda tx: link(tx, scope)):
        pass


def _is_writable(store: Store) -> bool:
    try:
        store.check_writable()
    except StoreError:
        return False
    return True


async def follow(
    store: Store, rows: Mapping[str, Sequence[int]], *, scope: Scope, now: int, link: Link
) -> ErasureReport:
    """Erase what another device erased, also if it was undone here, with what is derived from it alone on this device.

    Args:
        rows: keys by table. An entity that something else refers to stays.
        now: Unix milliseconds, UTC.
    """

    def plan(snapshot: Snapshot) -> Plan:
        space = snapshot.visible(scope)[0]
        nodes, entities, relations = (tuple(rows.get(table, ())) for table in ("nodes", "entities", "relations"))
        asked = ErasureTargets(kind="memory", space=space, nodes=nodes, entities=entities, relations=relations)
        undone = snapshot.erasure.undone((space,))
        targets = _completed(snapshot, scope, asked, undone, Wanted(with_versions=True))
        erased = _counted(_listed(snapshot, targets, undone))
        report = ErasureReport(dry_run=False, erased=erased, kept=(), out_of_reach=())
        return Plan(targets=targets, undone=undone, report=report)

    actor = scope.actor
    return await _carried_out(store, plan, actor=actor, scope=scope, now=now, link=link, progress=None)


async def _carried_out(
    store: Store,
    decide: Callable[[Snapshot], Plan],
    *,
    actor: str,
    scope: Scope,
    now: int,
    link: Link,
    progress: Progress | None,
) -> ErasureReport:
    await _link_all(store, link, scope)

    def start(snapshot: Snapshot) -> tuple[Plan, OpenErasure]:
        while link(snapshot, scope):
            pass  # what was written meanwhile
        plan = decide(snapshot)
        _withhold(snapshot, plan, scope, at=now)
        revealing = _forget_questions(snapshot, plan, scope)
        number = snapshot.erasure.begin(plan.targets, at=now)
        snapshot.erasure.forget_files(number, revealing)
        begun = next(each for each in snapshot.erasure.unfinished() if each.number == number)
        if plan.report.count <= AT_ONCE_ROWS or store.erases_in_one_commit:
            while snapshot.erasure.step(number, kind=begun.kind, at=now):
                pass
            _finish(snapshot, begun, actor)
        return plan, begun

    plan, begun = await store.derive(start)
    faults.reached("erase: begun")
    await _remove(store, begun, actor=actor, progress=progress, total=plan.report.count)
    faults.reached("erase: rows gone")
    return await _cleaned(store, plan.report)


def _withhold(snapshot: Snapshot, plan: Plan, scope: Scope, *, at: int) -> None:
    """Suppress the erased sentences, so that they are not learnt again. For an erased owner, suppress nothing."""
    going = set(plan.targets.nodes)
    for space, node in islice(_going(snapshot, plan, scope), _WITHHELD_MOST):
        found = [*of_text(node, is_erased=True, spans=False), *of_wordless(node)]
        if (rest := snapshot.nodes.get(scope, id_of_rest(node.id))) is not None:
            kept = {each.words for each in of_text(rest, is_erased=True, spans=False)}
            found = [each for each in found if each.words not in kept]
        if node.type != "episodic" and len(going) <= _SOURCES_MOST:
            sources = snapshot.suppression.sources(node, space)
            found += [each for each in sources if going.isdisjoint(span[0] for span in each.spans)]
        snapshot.suppression.put(space, found, at=at)


def id_of_rest(id: str) -> str:
    """Return the id of the memory that takes the place of another device's when a part of that one was erased before.

    All devices choose the same.
    """
    return str(uuid.UUID(bytes=blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16, person=b"rest").digest()))


def _going(snapshot: Snapshot, plan: Plan, scope: Scope) -> Iterator[tuple[int, Node]]:
    """Yield (space, memory) of what is erased, also of what exists only in the history."""
    nodes = plan.targets.nodes[:_WITHHELD_MOST]
    for node in snapshot.nodes.by_key(scope, nodes).values():
        space = snapshot.space(node.owner, node.chat)
        assert space is not None
        yield space, node
    yield from former(plan.undone, frozenset(nodes), session=lambda key: _session_id(snapshot, plan, key))


def _session_id(snapshot: Snapshot, plan: Plan, key: int) -> str | None:
    undone = [row.versions[-1]["session_id"] for row in plan.undone["sessions"] if row.key == key]
    live = snapshot.erasure.listed(replace(plan.targets, nodes=(), entities=(), relations=(), sessions=(key,)))
    return next((each for each in (*undone, *(id_ for _, id_ in live))), None)


def _forget_questions(snapshot: Snapshot, plan: Plan, scope: Scope) -> set[int]:
    """Remove the answers of all standing questions in the affected spaces. In receipts, blank the questions that reveal
    something about erased memories. Return the commits of imports whose files have such names.
    """
    targets = plan.targets
    revealing_imports: set[int] = set()
    if targets.whole_space:
        return revealing_imports  # its receipts and commits are erased with it
    nodes = snapshot.nodes.by_key(scope, targets.nodes)
    ids = {node.id for node in nodes.values()} | {id_ for _, id_ in _listed(snapshot, targets, plan.undone)}
    names = snapshot.erasure.own_names(targets.entities)
    for space in {targets.space, *(snapshot.space(node.owner, node.chat) for node in nodes.values())} - {None}:
        snapshot.receipts.unanswer(space)  # type: ignore[arg-type]  # None was taken out
        asked = snapshot.receipts.asked(space)  # type: ignore[arg-type]
        imports = snapshot.erasure.imports(space, targets.nodes)  # type: ignore[arg-type]
        files = {f"import {seq}": (seq, _IMPORT.sub(r"\1", said)) for seq, said in imports}
        if not asked and not files:
            continue
        going = set(targets.nodes)
        former = snapshot.erasure.former_texts(space)  # type: ignore[arg-type]
        erased = [text for row, _, text in former if row.isdecimal() and int(row) in going]
        erased += [text for node in nodes.values() for text in _texts_of(node)]
        left = (text for key, text in snapshot.erasure.texts(space) if key not in going)  # type: ignore[arg-type]
        questions = [AskedText(id_, text, not ids.isdisjoint(given)) for id_, text, given in asked]
        questions += [AskedText(id_, file, False) for id_, (_, file) in files.items()]
        # A query that is still open when another statement runs can stay open, and cleaning the file would wait for it.
        with closing(left):
            revealing = revealing_questions(questions, erased=erased, names=names, left=left)
        snapshot.receipts.blank(each for each in revealing if each not in files)
        revealing += [id_ for id_, (_, file) in files.items() if names_anybody(file, names)]
        revealing_imports |= {files[each][0] for each in revealing if each in files}
    return revealing_imports


_IMPORT = re.compile(r"\Aimport of (.*) \([^()]*\)\Z", re.DOTALL)
"""Matches the reason of an import: "import of NAME (FORMAT)"."""


def _texts_of(node: Node) -> tuple[str, ...]:
    attributes = json.dumps(dict(node.attributes or {}), ensure_ascii=False)
    return node.content, node.speaker or "", node.session or "", " ".join(node.tags), attributes


async def resume(store: Store) -> None:
    """Finish erasures that a process left unfinished. Does not wait for other processes: every opening tries again."""
    left = await store.read(lambda tx: tx.erasure.unfinished())
    for each in left:
        if each.state == "rows":
            await _remove(store, each, actor="", progress=None, total=0)
    if not left:
        return
    try:
        await _clean(store, patience_s=_AT_OPENING_S)
    except RicordoError as error:  # reading and writing are safe, and `doctor` reports the unfinished erasure
        _log.warning("an erasure is not finished, and the next opening tries again: %s", error)


def _check(asked: Asked, scope: Scope) -> None:
    given = {name: value for name, value in asdict(asked).items() if value is not None}
    if len(given) != 1:
        raise InvalidError("erase: give exactly one of id, session, document, entity, where, writer and owner")
    for name, value in given.items():
        if name == "where":  # checked by the caller
            continue
        if not isinstance(value, str) or not value:
            raise InvalidError(f"{name}: {value!r} is not a name or an id")
        check_encodable(value, name=name)
    if asked.writer is not None and not scope.chat:
        raise InvalidError(
            "writer: there is no chat or space in which to erase what somebody wrote",
            hint="name one: Scope(chat=...) in Python, --chat in a command, or a token made with --chat",
        )
    if asked.owner is not None and asked.owner != scope.owner:
        raise DeniedError("owner: callers can erase only their own memory", hint="use that owner's scope")


async def _remove(store: Store, begun: OpenErasure, *, actor: str, progress: Progress | None, total: int) -> None:
    done = 0
    while some := await store.derive(lambda tx: tx.erasure.step(begun.number, kind=begun.kind, at=begun.at)):
        faults.reached("erase: between steps")
        done += some
        if progress is not None:
            progress(min(done, total), total)
    await store.derive(lambda tx: _finish(tx, begun, actor))


def _finish(snapshot: Snapshot, begun: OpenErasure, actor: str) -> None:
    snapshot.erasure.finish(begun.number, space=begun.space, kind=begun.kind, at=begun.at, actor=actor)
    snapshot.receipts.sweep()


async def _cleaned(store: Store, report: ErasureReport) -> ErasureReport:
    try:
        cleaned = await _clean(store, patience_s=None)
    except UnavailableError:
        return replace(report, out_of_reach=(*report.out_of_reach, _BUSY))
    left = () if cleaned.is_done else (_READ,)
    return replace(report, out_of_reach=(*report.out_of_reach, *left), **asdict(cleaned))


_BUSY = "free pages of the store's file: another process kept writing; the next opening tries again"
_READ = "the store's log (its -wal file): another process still reads an older state; the next opening tries again"


async def _clean(store: Store, *, patience_s: float | None) -> Cleaned:
    """Clear free pages and the log. An erasure is finished only when no byte of the data is left."""
    left = [each.number for each in await store.read(lambda tx: tx.erasure.unfinished()) if each.state == "bytes"]
    cleaned = await store.clean(patience_s=patience_s)
    if cleaned.is_done:
        await store.derive(lambda tx: tx.erasure.end(left))
    return cleaned


# ---- targets


def planned(snapshot: Snapshot, asked: Asked, scope: Scope, *, path: Path) -> Plan:
    """Return what an erasure removes. Changes nothing."""
    if asked.owner is not None:
        space = snapshot.space(asked.owner, "")
        if space is None and not snapshot.erasure.changes_by(asked.owner):
            raise NotFoundError(
                f"there is no memory of {asked.owner}",
                hint="what they shared with a chat or space belongs to it: a keeper erases it there",
            )
        targets = ErasureTargets(kind="owner", space=space or 0, whole_space=True, owner=asked.owner)
        undone = snapshot.erasure.undone((targets.space,))
    else:
        undone = snapshot.erasure.undone(snapshot.visible(scope))
        if asked.session is not None:
            targets = _of_session(snapshot, scope, undone, session_meant(snapshot, scope, asked.session))
        elif asked.document is not None:
            session = f"{DOCUMENT}{asked.document}"
            targets = _of_session(snapshot, scope, undone, session, named=f"document {asked.document}")
        elif asked.entity is not None:
            targets = _of_entity(snapshot, scope, undone, asked.entity)
        elif asked.where is not None:
            targets = _with_attributes(snapshot, scope, undone, asked.where)
        elif asked.writer is not None:
            targets = _by_writer(snapshot, scope, undone, asked.writer)
        else:
            targets = _of_memory(snapshot, scope, undone, asked.id or "")
    page = _title_page(snapshot, scope, targets, undone) if asked.document is not None else {}
    report = ErasureReport(
        dry_run=False,
        erased=_counted(_listed(snapshot, targets, undone) if targets.space else [("name", targets.owner)]),
        kept=tuple(_kept(snapshot, targets, scope)),
        out_of_reach=(*_ELSEWHERE, *_copies_beside(path), *_file_of(page)),
        document=str(page.get("title", asked.document)) if asked.document is not None else None,
    )
    return Plan(targets=targets, undone=undone, report=report)


def _title_page(snapshot: Snapshot, scope: Scope, targets: ErasureTargets, undone: Undone) -> Json:
    """Return the attributes of the title page among the targets, also if it was undone."""
    found = [node.attributes for node in snapshot.nodes.by_key(scope, targets.nodes).values() if node.is_title_page]
    rows = (row for row in undone["nodes"] if row.key in set(targets.nodes))
    former = (json.loads(row.versions[-1]["attributes"]) for row in rows)
    return next((each for each in (*found, *former) if "digest" in each and "place" not in each), {})


def _file_of(page: Json) -> Iterator[str]:
    """Yield the file of a document in a watched folder, if it is still there."""
    folder, mark, path = str(page.get("source", "")).partition(ROOT_ENDS)
    if mark and (Path(folder) / path).is_file():
        yield f"the file {Path(folder) / path}, which is still there: delete it, or name it in .ricordoignore"


def undone_ids(snapshot: Snapshot, scope: Scope, part: str) -> list[str]:
    """Return the ids of undone memories that a shortened id can mean."""
    rows = snapshot.erasure.undone(snapshot.visible(scope))["nodes"]
    return [id for row in rows for id in row.values("id") if shortens(part, id)]


def _of_memory(snapshot: Snapshot, scope: Scope, undone: Undone, node_id: str) -> ErasureTargets:
    node = snapshot.nodes.get(scope, node_id)
    meant = [] if node else [row for row in undone["nodes"] if any(shortens(node_id, id) for id in row.values("id"))]
    ids = frozenset(id for row in meant for id in row.values("id"))
    if len(ids) != 1:
        node = snapshot.nodes.known(scope, node_id)
    space = snapshot.space(node.owner, node.chat) if node else meant[0].space
    assert space is not None
    older = tuple(snapshot.erasure.older_versions(node.key)) if node else ()
    targets = ErasureTargets(kind="memory", space=space, nodes=older)
    return _completed(snapshot, scope, targets, undone, Wanted(ids=ids, with_versions=True))


def _with_attributes(snapshot: Snapshot, scope: Scope, undone: Undone, where: Json) -> ErasureTargets:
    """Return all memories with these attributes, live, closed or undone."""
    filters = (Filter(where=where), Filter(where=where, archived=True))
    nodes = tuple(dict.fromkeys(int(key) for each in filters for key in snapshot.nodes.matching(scope, each)))
    wanted = Wanted(is_meant=having(where))
    if not nodes and not any(map(wanted.is_meant, undone["nodes"])):
        raise NotFoundError("there is no memory with these attributes")
    targets = ErasureTargets(kind="memory", space=snapshot.visible(scope)[0], nodes=nodes)
    return _completed(snapshot, scope, targets, undone, wanted)


def _by_writer(snapshot: Snapshot, scope: Scope, undone: Undone, writer: str) -> ErasureTargets:
    """Return all memories that somebody wrote in the chat or space of the scope, live, closed or undone."""
    place, space = scope.chat_alone(), snapshot.space("", scope.chat or "")
    keys = [int(key) for each in (Filter(), Filter(archived=True)) for key in snapshot.nodes.matching(place, each)]
    wrote = (authors(snapshot, keys[start : start + AT_ONCE_ROWS]) for start in range(0, len(keys), AT_ONCE_ROWS))
    nodes = tuple(
        key for found in wrote for key, author in found.items() if author.name.removesuffix(BY_AGENT) == writer
    )

    def is_meant(row: UndoneRow) -> bool:
        commit = snapshot.history.get(row.versions[0]["commit_seq"]) if row.space == space else None
        return commit is not None and commit.actor.removesuffix(BY_AGENT) == writer

    if space is None or not (nodes or any(map(is_meant, undone["nodes"]))):
        hint = "`log` names who made each change; once all memories of an owner are erased, their name is, too"
        raise NotFoundError(f"nothing in {scope.chat} was written by {writer!r}", hint=hint)
    targets = ErasureTargets(kind="memory", space=space, nodes=tuple(sorted(nodes)))
    return _completed(snapshot, place, targets, undone, Wanted(is_meant=is_meant))


def _of_session(snapshot: Snapshot, scope: Scope, undone: Undone, session: str, *, named: str = "") -> ErasureTargets:
    sessions = snapshot.erasure.sessions(scope, session)
    meant = frozenset((session,)) if sessions else undone_sessions(undone, session)
    if not sessions and not meant:
        raise NotFoundError(f"there is no {named or f'session {session}'}")
    nodes = tuple(snapshot.erasure.nodes_in(sessions))
    space = snapshot.visible(scope)[0]
    targets = ErasureTargets(kind="session", space=space, nodes=nodes, sessions=tuple(sessions))
    return _completed(snapshot, scope, targets, undone, Wanted(sessions=meant))


def _of_entity(snapshot: Snapshot, scope: Scope, undone: Undone, name: str) -> ErasureTargets:
    """Return the entity with all its names and every memory that is about it or names it."""
    meant = [row for row in undone["entities"] if name in row.values("id") or _bears(row, (name,))]
    try:
        entity = entity_meant(snapshot, scope, name)
    except NotFoundError as error:
        if not meant:
            raise _unknown(snapshot, scope, name, error) from error
        space, members = meant[0].space, []
    else:
        known = snapshot.space(entity.owner, entity.chat)
        assert known is not None
        space, members = known, snapshot.erasure.members(entity.key)
    own = snapshot.erasure.own_names(members)
    meant += [row for row in undone["entities"] if _bears(row, own) and row not in meant]
    of_others = {each for row in meant for each in row.names if snapshot.entities.named(scope, each).entities}
    names = _mentions_any({*own, *(each for row in meant for each in row.names - of_others)})
    nodes = snapshot.erasure.nodes_naming(members)
    nodes |= {key for key, text in snapshot.erasure.texts(space) if names(text)}
    targets = ErasureTargets(kind="entity", space=space, nodes=tuple(sorted(nodes)), entities=tuple(members))
    targets = _completed(snapshot, scope, targets, undone, Wanted(names=names, entities=lambda row: row in meant))
    summaries = [(table, key) for table, key, text in snapshot.erasure.summaries(space) if names(text)]
    going = {str(key) for key in targets.nodes}
    former = [(row, seq) for row, seq, text in snapshot.erasure.former_texts(space) if row not in going and names(text)]
    return replace(targets, summarised=tuple({*targets.summarised, *summaries}), former=tuple(former))


def _unknown(snapshot: Snapshot, scope: Scope, name: str, error: NotFoundError) -> NotFoundError:
    """Return the error for an unknown name. It tells how many memories of the caller contain the name all the same."""
    has_name = _mentions_any((name,))
    count = sum(has_name(text) for space in snapshot.visible(scope) for _, text in snapshot.erasure.texts(space))
    if not count:
        return error
    contain = f"{plural(count, 'memory', 'memories')} {'contains' if count == 1 else 'contain'} the name"
    hint = "make the name known with `entity-add` and erase it then, or `forget` single memories"
    return NotFoundError(f"{error.message}, but {contain}", hint=hint)


def _bears(row: UndoneRow, names: Collection[str]) -> bool:
    return not {_folded(name) for name in names}.isdisjoint(map(_folded, row.names))


def _mentions_any(names: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a text contains a name as a complete word, in any case and width."""
    folded = sorted({_folded(name) for name in names} - {""})
    if not folded:
        return lambda text: False
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, folded))})(?!\w)")
    return lambda text: bool(text) and pattern.search(_folded(text)) is not None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _with_derived(snapshot: Snapshot, targets: ErasureTargets) -> ErasureTargets:
    """Add the memories derived from these alone, and the proposals about them."""
    nodes = list(dict.fromkeys((*targets.nodes, *snapshot.erasure.proposed(targets.nodes))))
    while True:
        known = set(nodes)
        fresh = [each.key for each in snapshot.erasure.derived(nodes) if each.key not in known and each.rests_alone]
        if not fresh:
            break
        nodes += fresh
    erasure = snapshot.erasure
    relations = dict.fromkeys((*targets.relations, *erasure.relations(nodes, targets.entities)))
    sessions = tuple(dict.fromkeys((*targets.sessions, *erasure.emptied_sessions(nodes))))
    entities = tuple(dict.fromkeys((*targets.entities, *erasure.orphaned_entities(nodes, tuple(relations)))))
    going = {("sessions", key) for key in sessions} | {("entities", key) for key in entities}
    summarised = set(erasure.summarised(nodes)) - going
    return replace(
        targets,
        nodes=tuple(nodes),
        entities=entities,
        relations=tuple(relations),
        sessions=sessions,
        summarised=tuple(summarised),
    )


def _completed(
    snapshot: Snapshot, scope: Scope, targets: ErasureTargets, undone: Undone, wanted: Wanted
) -> ErasureTargets:
    """Add the memories derived from these alone, the proposals about them, and what was undone and belongs to them."""
    targets = _with_derived(snapshot, targets)
    if not any(undone.values()):
        return targets
    nodes = snapshot.nodes.by_key(scope, targets.nodes).values()
    ids = wanted.ids.union(node.id for node in nodes)
    copies = frozenset((node.content, to_ms(node.event_time) if node.type == "episodic" else None) for node in nodes)
    found = with_undone(targets, undone, replace(wanted, ids=ids, copies=copies))
    summed_up = summed_up_with(found, undone)
    summaries = snapshot.erasure.summaries(targets.space) if summed_up else ()
    summarised = {(table, key) for table, key, _ in summaries if (table, key) in summed_up}
    return replace(found, summarised=tuple({*found.summarised, *summarised}))


# ---- the report


def _listed(snapshot: Snapshot, targets: ErasureTargets, undone: Undone) -> Iterator[tuple[str, str]]:
    """Yield (kind, id) of each row that an erasure removes. What was stored again after an undo has an id only once."""
    seen: set[tuple[str, str]] = set()
    for each in snapshot.erasure.listed(targets):
        seen.add(each)
        yield each
    yield from (each for each in dict.fromkeys(listed(targets, undone)) if each not in seen)


def _counted(rows: Iterable[tuple[str, str]]) -> tuple[Erased, ...]:
    counts: Counter[str] = Counter()
    ids: dict[str, list[str]] = {}
    for kind, id_ in rows:
        counts[kind] += 1
        if counts[kind] <= _NAMED_MOST:
            ids.setdefault(kind, []).append(id_)
    return tuple(Erased(kind=kind, count=count, ids=tuple(ids[kind])) for kind, count in counts.items())


def _kept(snapshot: Snapshot, targets: ErasureTargets, scope: Scope) -> Iterator[KeptBack]:
    if targets.whole_space:
        if said := snapshot.erasure.said_in_chats(targets.owner):
            yield KeptBack(why="said or written in a group: it belongs to the group", count=said)
        return
    others = [
        each.id
        for each in snapshot.erasure.derived(targets.nodes)
        if each.key not in targets.nodes and not each.rests_alone
    ]
    if others:
        yield _back("also derived from other memories, or stated by the user", others)
    sources = snapshot.erasure.sources(targets.nodes)
    if sources:
        yield _back("what it was learnt from, which may say more than that", sources)
    if saying := [each for each in _saying(snapshot, targets, scope) if each not in sources]:
        yield _back("messages that say the same: the sentence is in no answer any more", saying)


def _saying(snapshot: Snapshot, targets: ErasureTargets, scope: Scope) -> list[str]:
    """Return the ids of remaining messages that state the same as an erased fact."""
    if len(targets.nodes) > _SOURCES_MOST:
        return []
    going = set(targets.nodes)
    found: dict[int, None] = {}
    for node in snapshot.nodes.by_key(scope, targets.nodes).values():
        space = snapshot.space(node.owner, node.chat)
        if node.type != "episodic" and space is not None:
            spans = (span for each in snapshot.suppression.sources(node, space) for span in each.spans)
            found.update((span[0], None) for span in spans if span[0] not in going)
    return [node.id for node in snapshot.nodes.by_key(scope, found).values()]


def _back(why: str, ids: Collection[str]) -> KeptBack:
    return KeptBack(why=why, count=len(ids), ids=tuple(ids)[:_NAMED_MOST])


def _copies_beside(path: Path) -> Iterator[str]:
    """Yield files next to the store that look like copies of it, and git repositories it may be committed to."""
    is_folder = (path.parent / "commits.jsonl").exists()  # whose files are all the store's own
    for pattern in (f"{path.name}.*", *(("set-aside-*", ".*.partial") if is_folder else (f".{path.name}.*.partial",))):
        for other in sorted(path.parent.glob(pattern)):
            if not other.name.endswith(_WITHOUT_TEXTS):
                yield f"{other} beside the store"
    copies = (other for place in (path, path.parent) for other in copies_in_use(place))
    yield from (f"{other}, which another process uses" for other in copies)
    repositories = (folder / ".git" for folder in path.absolute().parents)
    yield from (f"{found}, if the store is committed there" for found in repositories if found.exists())
