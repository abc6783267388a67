"""Knowledge as markdown to read: by category, and by whom it is about. One file, or a folder with a file for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ricordo.model import Category, Entity, ExportReport, Node
from ricordo.portability.markdown_text import bullet, comment, escaped
from ricordo.portability.output import file_name, new_file, new_folder
from ricordo.storage.values import Holdings

NAME = "markdown"

_HEADINGS: Mapping[Category | None, str] = {
    "identity": "Identity",
    "preference": "Preferences",
    "relationship": "Relationships",
    "knowledge": "Knowledge",
    "task": "Tasks",
    "event": "Events",
    "context": "Context",
    "observation": "Observations",
    "reflection": "Reflections",
    "summary": "Summaries",
    None: "Notes",
}
_ORDER = {category: place for place, category in enumerate(_HEADINGS)}
_NOTE = "<!-- Written by Ricordo. `ricordo import` reads it back; the comments hold what headings cannot. -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """All about somebody or something; `entity` None for what is about nobody."""

    entity: Entity | None
    relation: str | None
    facts: Sequence[Node]


def write(path: Path, held: Holdings, *, zone: ZoneInfo) -> ExportReport:
    """Write what holds now. A name that ends in `.md` is a file, any other a folder."""
    pages = _pages(held)
    if path.suffix.lower() in (".md", ".markdown"):
        with new_file(path) as file:
            file.write(_document(pages, zone))
        files = 1
    else:
        with new_folder(path) as folder:
            files = _write_folder(folder, pages, zone)
    return ExportReport(
        format=NAME,
        path=str(path),
        facts=len(held.facts),
        people=len(pages) - 1,
        relations=len(held.relations),
        files=files,
        bytes=_size(path),
    )


def _size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*.md")
    return sum(each.stat().st_size for each in files)


def _pages(held: Holdings) -> list[_Page]:
    """What is about nobody first, then people, then things, by name. A fact stands with the first it is about."""
    by_name: dict[str, list[Node]] = {}
    for node in held.facts:
        by_name.setdefault(node.about[0] if node.about else "", []).append(node)
    relations = {target: predicate for source, predicate, target in held.relations if source is None}
    known = sorted(held.entities.values(), key=lambda each: (each.type != "person", each.name.casefold(), each.id))
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
    """`MEMORY.md` for what is about nobody, `people/` and `things/` for the rest."""
    first = "\n".join(["# Memory", "", _NOTE, "", *_facts(pages[0], zone, level=2)])
    _put(folder / "MEMORY.md", first)
    taken: dict[str, set[str]] = {}
    for page in pages[1:]:
        assert page.entity is not None
        place = "people" if page.entity.type == "person" else "things"
        (folder / place).mkdir(mode=0o700, exist_ok=True)
        name = file_name(page.entity.name, taken.setdefault(place, set()), suffix=".md")
        _put(folder / place / name, "\n".join([f"# {_title(page)}", "", *_facts(page, zone, level=2)]))
    return len(pages)


def _put(path: Path, text: str) -> None:
    with new_file(path) as file:
        file.write(text)


def _title(page: _Page) -> str:
    """The name and what it is, and in a comment the other names."""
    entity = page.entity
    assert entity is not None
    what = page.relation or (entity.type if entity.type != "person" else "")
    said: dict[str, Any] = {"name": entity.name, "type": entity.type}
    if page.relation:
        said["relation"] = page.relation
    if entity.aliases:
        said["aliases"] = list(entity.aliases)
    name = escaped(" ".join(entity.name.split()))
    return f"{name} ({what}) {comment(said)}" if what else f"{name} {comment(said)}"


def _facts(page: _Page, zone: ZoneInfo, *, level: int) -> list[str]:
    """Bullets under a heading for each category."""
    lines: list[str] = []
    by_category: dict[Category | None, list[Node]] = {}
    for node in page.facts:
        by_category.setdefault(node.category, []).append(node)
    for category in sorted(by_category, key=lambda each: _ORDER[each]):
        lines += [f"{'#' * level} {_HEADINGS[category]}", "", *_bullets(by_category[category], page, zone), ""]
    return lines


def _bullets(nodes: Iterable[Node], page: _Page, zone: ZoneInfo) -> list[str]:
    return [
        bullet(node.content, day=node.event_time.astimezone(zone).date().isoformat(), said=_said(node, page))
        for node in nodes
    ]


def _said(node: Node, page: _Page) -> dict[str, Any]:
    """What headings and the date do not say of a fact."""
    said: dict[str, Any] = {"id": node.id, "at": node.event_time.isoformat()}
    if node.valid_from != node.event_time:
        said["since"] = node.valid_from.isoformat()
    if node.about != ((page.entity.name,) if page.entity else ()):
        said["about"] = list(node.about)
    if node.tags:
        said["tags"] = list(node.tags)
    if node.type != "semantic":
        said["type"] = node.type
    if node.confidence != 1.0:
        said["confidence"] = node.confidence
    if node.decay_rate == 0.0:
        said["confirmed"] = True
    if node.score:
        said["score"] = node.score
    if node.expires_at is not None:
        said["expires"] = node.expires_at.isoformat()
    if node.attributes:
        said["attributes"] = dict(node.attributes)
    return said
