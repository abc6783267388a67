"""Import of a complete export: an empty store of its owner is restored exactly; another store gets its memories.

Source: `ricordo.portability.exporters`, which writes it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, Any, TypeVar

from ricordo.encoding.validation import TextRules, holds_credentials
from ricordo.errors import InvalidError
from ricordo.model import Fact, ImportReport, Message, Node, Origin, Scope, Trust
from ricordo.portability import exporters
from ricordo.portability.records import (
    Destination,
    ImportedFact,
    ImportedLink,
    ImportedMessage,
    ImportedPerson,
    ImportedRelation,
    Records,
)
from ricordo.portability.sources import MAX_LINE_BYTES, Source
from ricordo.ports import Progress
from ricordo.storage import Snapshot
from ricordo.storage.complete import (
    FILES,
    STORE,
    has_models,
    holds_only,
    is_empty,
    load_lines,
    opened_lines,
    schema_version,
)
from ricordo.storage.staging import temporary_folder
from ricordo.trust import capped

R = TypeVar("R", Message, Fact)

NAME = exporters.COMPLETE

_START = b'{"ricordo": "export"'
_NAMES = {name.removesuffix(".jsonl"): name for name in FILES}


class _NotRestorableError(Exception):
    """The store cannot be restored exactly; the memories can still be imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """The lines of an export, sorted into files of a temporary folder, and their scope."""

    folder: Path
    scope: Scope
    schema: int
    is_whole: bool
    lines: int


def fits(source: Source) -> bool:
    """Return whether the source begins like a complete export."""
    return source.head.startswith(_START)


@contextmanager
def unpacked(path: Path) -> Iterator[Unpacked]:
    """Sort the lines of an export into their files, in a private temporary folder.

    Raises:
        InvalidError: the export is truncated, damaged, or was written by a later version.
    """
    with ExitStack() as stack, _readable(path):
        folder = stack.enter_context(temporary_folder())
        with path.open("rb") as file:
            head = _object(file.readline(MAX_LINE_BYTES), path, 1)
            schema = int(head.get("schema") or 0)
            if head.get("version") != exporters.VERSION or schema > schema_version():
                raise InvalidError(
                    f"{path} was written by a later version of Ricordo", hint="upgrade with pip install -U ricordo"
                )
            (folder / "files").mkdir(mode=0o700)
            lines = _sort(file, folder / "files", path)
        scope = Scope(owner=str(head.get("owner_user_id") or ""), chat=head.get("chat_id"))
        yield Unpacked(folder=folder, scope=scope, schema=schema, is_whole=head.get("is_whole") is True, lines=lines)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidError(f"{path} cannot be read: {error.strerror}", hint="check its permissions") from error


def _sort(file: IO[bytes], folder: Path, path: Path) -> int:
    """Write each line into the file it names; return the number of lines."""
    with ExitStack() as stack:
        files = {name: stack.enter_context((folder / name).open("wb")) for name in FILES}
        number = 1
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            if raw.startswith(b'{"in":"'):
                name, _, rest = raw[7:].partition(b'",')
                line = b"{" + rest
            else:
                row = _object(raw, path, number)
                if row.get("ricordo") == "end":
                    if row.get("lines") == number - 2:
                        return number - 2
                    break
                name = str(row.pop("in", "")).encode("utf-8", "replace")
                text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
                line = text.encode("utf-8", "surrogatepass") + b"\n"  # the reader refuses lone surrogates
            wanted = _NAMES.get(name.decode("utf-8", "replace"))
            if wanted is None or not line.endswith(b"\n"):
                raise InvalidError(
                    f"{path} line {number}: the line is damaged", hint="copy the file again, or export again"
                )
            files[wanted].write(line)
    raise InvalidError(f"{path} line {number}: the file ends too early", hint="copy the file again, or export again")


def _object(raw: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(raw)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise InvalidError(f"{path} line {number}: the line is damaged", hint="copy the file again, or export again")
    return row


def read(source: Source, destination: Destination) -> Records:
    """Read the memories of an export."""
    with unpacked(source.path) as export:
        return records_of(export, destination)


Derive = Callable[[Callable[[Snapshot], ImportReport]], Awaitable[ImportReport]]
"""Writes rows unchanged, in one transaction."""


async def restore(
    export: Unpacked, *, scope: Scope, rules: TextRules, progress: Progress | None, derive: Derive
) -> ImportReport | None:
    """Restore an export exactly, in one step, into an empty store of the same owner.

    Returns:
        None, with the store unchanged, if the store is not empty, or the export is another owner's or was edited.
    """
    is_theirs = (export.scope.owner, export.scope.chat) == (scope.owner, scope.chat)
    if not is_theirs or export.schema != schema_version():
        return None
    try:
        return await derive(lambda tx: _filled(tx, export, scope=scope, rules=rules, progress=progress))
    except _NotRestorableError:
        return None


def _filled(
    tx: Snapshot, export: Unpacked, *, scope: Scope, rules: TextRules, progress: Progress | None
) -> ImportReport:
    """Fill an empty store. Raises _NotRestorableError, which rolls back, if it would differ from the export."""
    if not is_empty(tx):
        raise _NotRestorableError
    files = export.folder / "files"
    if has_models(tx):
        _leave_models_out(files / STORE)
    built = load_lines(tx, files, is_whole=export.is_whole, progress=progress)
    if built.by_hand or built.uncommitted or built.unused.places or not holds_only(tx, scope):
        raise _NotRestorableError
    held = tx.export.everything(scope)
    if holds_credentials((*held.nodes, *held.entities, *held.relations), rules=rules):
        raise _NotRestorableError
    messages = sum(node.type == "episodic" for node in held.nodes)
    return ImportReport(
        format=NAME,
        read=len(held.nodes),
        added=len(held.nodes),
        messages=messages,
        facts=len(held.nodes) - messages,
        people=len(held.entities),
        relations=len(held.relations),
        links=len(held.edges),
    )


def _leave_models_out(path: Path) -> None:
    """Drop the export's models: the store keeps its own, and accepts vectors of a model with the same name."""
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(line for line in lines if not line or json.loads(line).get("kind") != "model"))


def records_of(export: Unpacked, destination: Destination, *, is_own: bool = False) -> Records:
    """Return the memories of an export, to be added to a store; its history is not imported.

    Args:
        is_own: whether the importing owner made the export: then its memories keep their origins.
    """
    caller: Trust = "user" if is_own else "import"
    with opened_lines(export.folder / "files", export.folder / "lines.db") as (tx, built):
        held = tx.export.everything(export.scope)
    names = {entity.id: entity.name for entity in held.entities}
    own = {target: predicate for source, predicate, target in held.relations if source is None}
    records = Records(format=NAME, destination=destination, refused=list(built.unused.places))
    for each in held.entities:
        relation = own.get(each.id)
        records.people.append(
            ImportedPerson(name=each.name, type=each.type, aliases=each.aliases, relation=relation, place=each.name)
        )
    for node in held.nodes:
        place = f"memory {node.id}"
        if node.chat and node.chat != destination.chat:
            records.refused.append(f"{place}: it belongs to the chat {node.chat}")
        elif node.type != "episodic":
            records.facts[node.id] = _known(node, place, caller=caller)
        elif node.is_live:
            records.messages[node.id] = _said(node, place, caller=caller)
        else:
            records.refused.append(f"{place}: a message that was {node.closed_reason} is not imported")
    for source, predicate, target in held.relations:
        if source is not None:
            name = names[source]
            records.relations[ImportedRelation(source=name, predicate=predicate, target=names[target], place=name)] = (
                None
            )
    records.links += [ImportedLink(source=a, target=b, type=kind, place=f"memory {a}") for a, kind, b in held.edges]
    return records


def _said(node: Node, place: str, *, caller: Trust) -> ImportedMessage:
    message = Message(text=node.content, role=node.role or "user", at=node.event_time, origin=_origin(node, caller))
    return ImportedMessage(message=_copied(node, message), tags=node.tags, place=place)


_SAME = ("type", "category", "about", "tags", "confidence", "valid_from", "speaker", "session", "id", "attributes")


def _copied(node: Node, record: R) -> R:
    """Return a message or fact, with the fields that a node has under the same name."""
    known = {each.name for each in fields(record)}
    return replace(record, **{name: getattr(node, name) for name in _SAME if name in known})


def _origin(node: Node, caller: Trust) -> Origin:
    """Limit the origin that a file claims to what its caller may claim."""
    return capped(node.origin, node.role, caller=caller)


def _known(node: Node, place: str, *, caller: Trust) -> ImportedFact:
    fact = Fact(content=node.content, expires=node.expires_at, origin=_origin(node, caller))
    return ImportedFact(
        fact=_copied(node, fact),
        at=node.event_time,
        closed=node.closed_reason,
        ended=node.valid_until,
        score=node.score,
        decay_rate=node.decay_rate,
        in_chat=bool(node.chat),
        place=place,
    )
