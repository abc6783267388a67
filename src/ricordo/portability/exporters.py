"""Exporters: the complete export, markdown, and the MCP reference server's knowledge graph.

Files are private, appear complete or not at all, and never overwrite others.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError, StoreError
from ricordo.model import Entity, ExportReport, Node, Scope
from ricordo.portability import EXPORTED
from ricordo.portability.markdown import bullet, comment, escaped
from ricordo.portability.records import vocabulary
from ricordo.ports import Progress
from ricordo.storage import Snapshot
from ricordo.storage.complete import ARCHIVE, COMMITS, ENTITIES, EPISODES, MEMORIES, lines_of, schema_version
from ricordo.storage.values import Holdings

COMPLETE = "jsonl"
MARKDOWN = "markdown"
MCP = "mcp"

VERSION = 1
"""The version of the complete export's format."""

_PROGRESS_EACH_LINES = 500


def exporter(
    format: str, path: Path, *, scope: Scope, now: int, zone: ZoneInfo, progress: Progress | None
) -> Callable[[Snapshot], ExportReport]:
    """Return the function that writes a format from a snapshot, as for `Memory.export`. `now`: Unix milliseconds."""
    if format == COMPLETE:
        return lambda tx: _write_complete(path, tx, scope=scope, progress=progress)
    if format == MARKDOWN:
        return lambda tx: _write_markdown(path, tx.export.holdings(scope, now=now), zone=zone)
    if format == MCP:
        owner = scope.owner or scope.chat or ""
        return lambda tx: _write_mcp(path, tx.export.holdings(scope, now=now), owner=owner)
    raise InvalidError(f"format: {format!r} is unknown", hint=f"choose one of {', '.join(EXPORTED)}")


def _write_complete(path: Path, snapshot: Snapshot, *, scope: Scope, progress: Progress | None) -> ExportReport:
    """Write everything a caller may see into one file: rows, history, vectors, commits.

    The lines are those of a folder store, each with the name of its file. The first line says what the file is and
    who owns it; the last line holds the number of lines in between.
    """
    whole = lines_of(snapshot, scope)
    total, counts = whole.count(), Counter[str]()
    owner = {"owner_user_id": scope.owner or None, "chat_id": scope.chat}
    head = {"ricordo": "export", "version": VERSION, "schema": schema_version(), **owner}
    head["is_whole"] = whole.is_all
    with _new_file(path) as file:
        file.write(json.dumps(head, ensure_ascii=False) + "\n")
        written = 0
        for name, line in whole.lines():
            kind = "" if b'"kind":' not in line[:9] else "."
            counts[name + kind] += 1
            file.write(f'{{"in":"{name.removesuffix(".jsonl")}",{line.decode()[1:]}')
            written += 1
            if progress is not None and written % _PROGRESS_EACH_LINES == 0:
                progress(written, max(total, written))
        file.write(json.dumps({"ricordo": "end", "lines": written}) + "\n")
    if progress is not None:
        progress(written, written)
    return ExportReport(
        format=COMPLETE,
        path=str(path),
        facts=counts[MEMORIES],
        messages=counts[EPISODES],
        closed=counts[ARCHIVE],
        people=counts[ENTITIES],
        commits=counts[COMMITS],
        bytes=path.stat().st_size,
    )


# markdown

_HEADINGS: Mapping[str, str] = vocabulary()["headings"]
_ORDER = {category: place for place, category in enumerate(_HEADINGS)}
_NOTE = "<!-- Written by Ricordo. `ricordo import` reads it back; the comments hold what headings cannot. -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """The facts about one entity or, if `entity` is None, the facts about no entity."""

    entity: Entity | None
    relation: str | None
    facts: Sequence[Node]


def _write_markdown(path: Path, holdings: Holdings, *, zone: ZoneInfo) -> ExportReport:
    """Write present knowledge by category and entity. A path that ends in `.md` is a file, any other a folder."""
    pages = _pages(holdings)
    if path.suffix.lower() in (".md", ".markdown"):
        with _new_file(path) as file:
            file.write(_document(pages, zone))
        files = 1
    else:
        with _new_folder(path) as folder:
            files = _write_folder(folder, pages, zone)
    return ExportReport(
        format=MARKDOWN,
        path=str(path),
        facts=len(holdings.facts),
        people=len(pages) - 1,
        relations=len(holdings.relations),
        files=files,
        bytes=_size(path),
    )


def _size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*.md")
    return sum(each.stat().st_size for each in files)


def _pages(holdings: Holdings) -> list[_Page]:
    """Return pages: facts about no entity, then people, then things, by name. A fact is on its first entity's page."""
    by_name: dict[str, list[Node]] = {}
    for node in holdings.facts:
        by_name.setdefault(node.about[0] if node.about else "", []).append(node)
    relations = {target: predicate for source, predicate, target in holdings.relations if source is None}
    known = sorted(holdings.entities.values(), key=lambda each: (each.type != "person", each.name.casefold(), each.id))
    pages = [
        _Page(entity=entity, relation=relations.get(entity.id), facts=by_name.pop(entity.name, [])) for entity in known
    ]
    rest = [node for nodes in by_name.values() for node in nodes]
    return [_Page(entity=None, relation=None, facts=rest), *pages]


def _document(pages: Sequence[_Page], zone: ZoneInfo) -> str:
    lines = ["# Memory", "", _NOTE, "", *_facts(pages[0], zone, level=2)]
    for title, wanted in (("People", True), ("Things", False)):
        chosen = [page for page in pages[1:] if (page.entity and page.entity.type == "person") == wanted]
        if chosen:
            lines += [f"## {title}", ""]
        for page in chosen:
            lines += [f"### {_title(page)}", "", *_facts(page, zone, level=4)]
    return "\n".join(lines)


def _write_folder(folder: Path, pages: Sequence[_Page], zone: ZoneInfo) -> int:
    """Write `MEMORY.md` for facts about no entity, and `people/` and `things/` for the others."""
    _put(folder / "MEMORY.md", "\n".join(["# Memory", "", _NOTE, "", *_facts(pages[0], zone, level=2)]))
    taken: dict[str, set[str]] = {}
    for page in pages[1:]:
        assert page.entity is not None
        place = "people" if page.entity.type == "person" else "things"
        (folder / place).mkdir(mode=0o700, exist_ok=True)
        name = _file_name(page.entity.name, taken.setdefault(place, set()), suffix=".md")
        _put(folder / place / name, "\n".join([f"# {_title(page)}", "", *_facts(page, zone, level=2)]))
    return len(pages)


def _put(path: Path, text: str) -> None:
    with _new_file(path) as file:
        file.write(text)


def _title(page: _Page) -> str:
    """Return the name with its type or relation, and a comment with all fields."""
    entity = page.entity
    assert entity is not None
    what = page.relation or (entity.type if entity.type != "person" else "")
    fields: dict[str, Any] = {"name": entity.name, "type": entity.type}
    if page.relation:
        fields["relation"] = page.relation
    if entity.aliases:
        fields["aliases"] = list(entity.aliases)
    name = escaped(" ".join(entity.name.split()))
    return f"{name} ({what}) {comment(fields)}" if what else f"{name} {comment(fields)}"


def _facts(page: _Page, zone: ZoneInfo, *, level: int) -> list[str]:
    """Return bullets under a heading for each category."""
    lines: list[str] = []
    by_category: dict[str, list[Node]] = {}
    for node in page.facts:
        by_category.setdefault(node.category or "none", []).append(node)
    for category in sorted(by_category, key=lambda each: _ORDER[each]):
        lines += [f"{'#' * level} {_HEADINGS[category]}", "", *_bullets(by_category[category], page, zone), ""]
    return lines


def _bullets(nodes: Iterable[Node], page: _Page, zone: ZoneInfo) -> list[str]:
    return [
        bullet(node.content, day=node.event_time.astimezone(zone).date().isoformat(), said=_comment_of(node, page))
        for node in nodes
    ]


def _comment_of(node: Node, page: _Page) -> dict[str, Any]:
    """Return the fields of a fact that its headings and date do not show."""
    day, about = node.event_time, (page.entity.name,) if page.entity else ()
    fields: Mapping[str, Any] = {
        "since": node.valid_from.isoformat() if node.valid_from != day else None,
        "about": list(node.about) if node.about != about else None,
        "tags": list(node.tags) or None,
        "type": node.type if node.type != "semantic" else None,
        "confidence": node.confidence if node.confidence != 1.0 else None,
        "confirmed": True if node.decay_rate == 0.0 else None,
        "score": node.score or None,
        "expires": node.expires_at.isoformat() if node.expires_at else None,
        "attributes": dict(node.attributes) if node.attributes else None,
    }
    return {"id": node.id, "at": day.isoformat(), **{name: each for name, each in fields.items() if each is not None}}


# MCP


def _write_mcp(path: Path, holdings: Holdings, *, owner: str) -> ExportReport:
    """Write current knowledge in the MCP reference server's format: one line per entity and per relation.

    Facts about no entity become observations of the owner.
    """
    observations: dict[str, list[str]] = {}
    for node in holdings.facts:
        for name in node.about or (owner,):
            observations.setdefault(name, []).append(node.content)
    kinds = {entity.name: entity.type for entity in holdings.entities.values()}
    names = dict.fromkeys((*kinds, *observations))
    lines: list[dict[str, Any]] = [
        {
            "type": "entity",
            "name": name,
            "entityType": kinds.get(name, "person"),
            "observations": list(dict.fromkeys(observations.get(name, ()))),
        }
        for name in names
    ]
    for source, predicate, target in holdings.relations:
        start = owner if source is None else holdings.entities[source].name
        ends = {"from": start, "to": holdings.entities[target].name}
        lines.append({"type": "relation", **ends, "relationType": predicate.replace(" ", "_")})
    with _new_file(path) as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return ExportReport(
        format=MCP,
        path=str(path),
        facts=len(holdings.facts),
        people=len(kinds),
        relations=len(holdings.relations),
        files=1,
        bytes=path.stat().st_size,
    )


# files

_UNFIT = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]+')
_MOST_NAME = 80


@contextmanager
def _new_file(path: Path) -> Iterator[IO[str]]:
    """Open a new text file for writing, under a temporary name until all is written."""
    partial = path.with_name(f"{path.name}.partial")
    with _placed(path, partial):
        partial.unlink(missing_ok=True)  # left by a killed export
        partial.touch(mode=0o600)
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Create a new folder, under a temporary name until all is written. Raises like `_new_file`."""
    partial = path.with_name(f"{path.name}.partial")
    with _placed(path, partial):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        yield partial


@contextmanager
def _placed(path: Path, partial: Path) -> Iterator[None]:
    if path.exists() or path.is_symlink():
        raise InvalidError(f"path: {path} exists already", hint="choose a new name; nothing is overwritten")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            yield
            partial.rename(path)
        finally:
            if partial.is_dir():
                shutil.rmtree(partial, ignore_errors=True)
            else:
                partial.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StoreError(
            f"cannot write {path}: {reason}", hint="check the path, its permissions and the disk"
        ) from error


def _file_name(name: str, taken: set[str], *, suffix: str) -> str:
    """Return an unused file name that is valid on every system."""
    plain = _UNFIT.sub(" ", name).strip(" .")[:_MOST_NAME].strip(" .") or "unnamed"
    found, count = f"{plain}{suffix}", 1
    while found.casefold() in taken:
        count += 1
        found = f"{plain} {count}{suffix}"
    taken.add(found.casefold())
    return found
