"""Memory as markdown: `MEMORY.md`, `memory/*.md`, or any file or folder of headings and bullets.

Each bullet, paragraph or row of a table is a memory. Headings give its entity and category; a date in the file name, in
a heading or before a bullet gives its time. An exported fact is a bullet with a comment that holds the other fields, so
it is read back exactly. The parser is more lenient than CommonMark: notes are often indented wrongly.

Source: CommonMark 0.31, sections 2.4 (backslash escapes), 4.2 (headings), 4.5 (fences), 5.2 (list items) and 6.7 (hard
line breaks); docs.openclaw.ai, "Memory" (`MEMORY.md` for what lasts, `memory/YYYY-MM-DD.md` for each day).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Category, Fact
from ricordo.portability import note_text
from ricordo.portability.records import (
    Destination,
    ImportedFact,
    ImportedPerson,
    Records,
    clamped,
    entity_type,
    texts_of,
)
from ricordo.portability.sources import Source
from ricordo.portability.text_tables import without_tables
from ricordo.portability.vaults import (
    category_of,
    date_in,
    date_of,
    heading_key,
    heading_words,
    is_clipping,
    is_conflict_copy,
    name_of,
    properties,
    templates_of,
    type_of,
)
from ricordo.portability.visible_text import (
    front_matter,
    heading_in,
    is_furniture,
    is_private,
    is_template,
    unmarked,
    unread_fields,
    visible,
)
from ricordo.text.analyzer import name_key
from ricordo.text.categories import infer_category
from ricordo.text.entity_recognition import entities_named
from ricordo.text.headed import HEADING, HEADINGS_BETWEEN, is_of_author
from ricordo.text.names import known_relation
from ricordo.text.sentences import plural

_BULLET = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])(?:\s+(?P<text>\S.*)|\s*\Z)")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_RULE = re.compile(r"\s*([-*_])(\s*\1){2,}\s*\Z")
_BOX = re.compile(r"\[(?P<mark>[ xX/<>-])\](?:\s+|\Z)")
"""The box of a task, with the marks that themes of Obsidian have in common: "/" is begun, "<" and ">" are planned for
later, and "-" is cancelled."""
_LEADING = re.compile(r"[\[(]?(?P<date>\d{4}-\d{2}-\d{2})[\])]?\s*(?:[:–—-]\s+|\s)\s*")
_TRAILING = re.compile(r"(?<!\s)\s+\((?P<date>\d{4}-\d{2}-\d{2})\)\s*\Z")
_COMMENT = re.compile(r"(?<!\s)\s*<!--\s*ricordo\s+(?P<json>\{.*\})\s*-->\s*\Z", re.DOTALL)
_STRONG_LABEL = re.compile(r"(\*\*|__)(?P<label>[^*_\\]{1,80}?)(?P<colon>:?)\1(?P<colon2>:?)\s*")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPECIAL = re.compile(r"([\\`*_<\[\]#]|(?<=%)%)")
_PARAGRAPH = -1
"""The indentation of a paragraph: bullets after "For example:" belong to the paragraph."""
_SHORT = 80
"""A longer bullet is a statement of its own, not a title of the bullets below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading; `level` counts from 1."""

    level: int
    text: str
    line: int
    said: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A bullet or a paragraph with its lines joined, the row of a table, or a block of code; `under` holds the titles
    of the bullets above it.
    """

    text: str
    line: int
    under: tuple[str, ...] = ()
    is_row: bool = False
    is_code: bool = False
    is_quote: bool = False


Block = Heading | Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An item's text, its ISO date, and the fields of the Ricordo comment after it."""

    text: str
    at: str | None
    is_task: bool
    said: dict[str, Any]
    is_done: bool = False
    is_cancelled: bool = False
    label: str = ""
    about: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


_CATEGORY_LABEL = re.compile(r"\[([A-Za-z][\w -]{1,30})\]\s+(?=\S)")
_WIKI_RELATION = re.compile(r"([a-z]+(?:_[a-z]+)*) \[\[([^\[\]|]+)(?:\|[^\[\]]*)?\]\]\s*\Z")


def outline(text: str) -> Iterator[Block]:
    """Yield headings and items in order. Indented code belongs to the item before it, other code to the paragraph
    before it. Front matter, rules, and lines that only embed or link something else are skipped.
    """
    pending: list[_Open] = []
    was_code = False
    for number, line, is_code in _lines(text):
        heading = None if is_code else heading_in(line)
        bullet = None if is_code or heading else _BULLET.match(line)
        begins, was_code = is_code and not was_code, is_code
        if begins and not (pending and pending[-1].takes(line)):
            yield from _closed(pending, down_to=-1)
            pending.append(_Open(indent=_PARAGRAPH, line=number, lines=[], is_block=True))
        if is_code:
            pending[-1].lines.append(line)
            pending[-1].is_code = True
            pending[-1].is_ended = pending[-1].is_block
        elif bullet and (not bullet["text"] or is_furniture(line)):
            yield from _closed(pending, down_to=len(bullet["indent"].expandtabs(4)))
        elif heading or (bullet and not _RULE.match(line)):
            if heading:
                yield from _closed(pending, down_to=-1)
                yield _heading(heading[1], level=heading[0], line=number)
            elif bullet:
                indent = len(bullet["indent"].expandtabs(4))
                yield from _closed(pending, down_to=indent)
                pending.append(_Open(indent=indent, line=number, lines=[bullet["text"]]))
        elif not line.strip() or _RULE.match(line) or is_furniture(line):
            for item in pending[-1:]:
                item.is_ended = True
        else:
            is_quote = line.lstrip().startswith(">")
            words = line.lstrip().removeprefix(">").strip() if is_quote else line.strip()
            goes_on = pending and not pending[-1].is_block and (not pending[-1].is_ended or line[:1].isspace())
            if goes_on and pending[-1].is_quote == is_quote:
                pending[-1].lines.append(words)
            else:
                yield from _closed(pending, down_to=-1)
                pending.append(_Open(indent=_PARAGRAPH, line=number, lines=[words], is_quote=is_quote))
            pending[-1].is_code |= words.startswith("|")  # a table keeps its lines
    yield from _closed(pending, down_to=-1)


def _heading(text: str, *, level: int, line: int) -> Heading:
    found = _comment_in(text)
    said = _object(found["json"]) if found else {}
    text = text[: found.start()] if found else text
    return Heading(level=level, text=plain(text), line=line, said=said)


@dataclass(slots=True, kw_only=True)
class _Open:
    """An item that later lines may still belong to."""

    indent: int
    line: int
    lines: list[str]
    is_ended: bool = False
    is_code: bool = False
    is_yielded: bool = False
    is_quote: bool = False
    is_block: bool = False
    """A block of code that belongs to no item."""

    def takes(self, code: str) -> bool:
        """Return whether the first line of a block of code belongs to the item."""
        return not self.is_block and len(code.expandtabs(4)) - len(code.expandtabs(4).lstrip()) > self.indent


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (number, line, whether it is code), without front matter and what is hidden."""
    lines = unmarked(visible(text.replace("\r\n", "\n"))).split("\n")
    start = front_matter(lines)[1]
    fence = ""
    for number, line in enumerate(lines[start:], start=start + 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            yield number, line, True
        else:
            yield number, line, bool(fence)


def _closed(pending: list[_Open], *, down_to: int) -> Iterator[Item]:
    """Yield the items that no later line can belong to: those as deep as a new bullet, or deeper.

    A bullet is yielded before the bullets below it, when the first of them begins.
    """
    for place, item in enumerate(pending):
        if not item.is_yielded:
            above = tuple(_title(each) for each in pending[:place])
            item.is_yielded = True
            is_label = _is_title(_joined(item)) and (down_to > item.indent or len(_joined(item)) <= _SHORT)
            if not is_label or _BOX.match(item.lines[0]):
                yield from _items(item, tuple(each for each in above if each))
    pending[:] = [
        item for item in pending if item.indent < down_to and (item.indent != _PARAGRAPH or _is_title(_joined(item)))
    ]


def _items(item: _Open, under: tuple[str, ...]) -> Iterator[Item]:
    """Yield an item, and each row of a table in it as an item. A title before a table is above its rows."""
    if item.is_block:
        yield Item(text=_joined(item), line=item.line, under=under, is_code=True)
        return
    has_fence = any(_FENCE.match(line) for line in item.lines)
    for place, lines, is_row in [(0, item.lines, False)] if has_fence else without_tables(item.lines):
        text = lines[0] if is_row else _joined(replace(item, lines=lines))
        if not is_row and place + len(lines) < len(item.lines) and _is_title(text):
            under = (*under, plain(text).rstrip(" :"))
        else:
            yield Item(text=text, line=item.line + place, under=under, is_row=is_row, is_quote=item.is_quote)


def _joined(item: _Open) -> str:
    """Join lines into one text. A backslash at the end of a line keeps its line break; code keeps all line breaks."""
    if item.is_code:
        return "\n".join(item.lines)
    return "".join(
        line[:-1] + "\n" if line.endswith("\\") and not line.endswith("\\\\") else f"{line} " for line in item.lines
    ).rstrip()


def _is_title(text: str) -> bool:
    return text.endswith((":", ":**"))


def _title(item: _Open) -> str:
    text = _joined(item)
    box = _BOX.match(text)
    text = plain(note_text.plain(text[box.end() :] if box else text)[0]).rstrip(" :")
    return text if len(text) <= _SHORT else ""


def entry_of(item: Item, *, headings: Sequence[str] = (), is_clipped: bool = False) -> Entry:
    """Read an item. Its date is before the text, or in brackets after it. Who says "I" in a quotation is somebody else
    than the author of the note, so it stands between quotation marks.

    Args:
        headings: the headings that its text needs to be understood, outermost first.
        is_clipped: whether the note is a page of the web, which is quoted as a whole.
    """
    text, said = item.text, {}
    if found := _comment_in(text):
        said, text = _object(found["json"]), text[: found.start()]
    box = _BOX.match(text)
    text = text[box.end() :] if box else text
    # basic-memory writes "- [decision] text" and "- works_with [[Maria]]".
    labelled = None if said or box else _CATEGORY_LABEL.match(text)
    text = text[labelled.end() :] if labelled else text
    related = None if said else _WIKI_RELATION.match(text)
    text = f"{related[1].replace('_', ' ')} {related[2]}" if related else text
    at = None
    for pattern in (_LEADING, _TRAILING):
        dated = pattern.match(text) if pattern is _LEADING else pattern.search(text)
        if at is None and dated and date_in(dated["date"]):
            at, text = date_in(dated["date"]), text[: dated.start()] + text[dated.end() :]
    text, linked, tags = (text, (), ()) if said or item.is_code else note_text.plain(text)
    words = unescaped(text) if said else plain(text)
    if (is_clipped or item.is_quote) and not said and is_of_author(words):
        words = f"“{words}”"
    said_in = words.casefold()
    path = HEADINGS_BETWEEN.join(each for each in headings if each.casefold() not in said_in)[:_MOST_HEADING]
    under = "" if said else ": ".join(filter(None, (path, *item.under)))
    exact = said.get("text")
    between = ":\n" if item.is_code else ": "
    return Entry(
        text=exact if isinstance(exact, str) else f"{under}{between}{words}" if under and words else words,
        at=at,
        is_task=box is not None,
        said=said,
        is_done=box is not None and box["mark"] in "xX",
        is_cancelled=box is not None and box["mark"] == "-",
        label=labelled[1].lower() if labelled else "",
        about=note_text.linked(f"[[{related[2]}]]") if related else linked,
        tags=tags,
    )


def _comment_in(text: str) -> re.Match[str] | None:
    """Find the Ricordo comment at the end of a text. A comment contains no end of another."""
    rest = text.rstrip().removesuffix("-->")
    is_ended = len(rest) < len(text.rstrip()) and rest.rstrip().endswith("}")
    return _COMMENT.search(text, rest.rfind("-->") + 1) if is_ended else None


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def plain(text: str) -> str:
    """Return the text without escapes, and without emphasis around a label at its beginning."""
    found = _STRONG_LABEL.match(text)
    if found:
        rest = text[found.end() :]
        colon = ": " if (found["colon"] or found["colon2"]) and rest else " " if rest else ""
        text = f"{found['label']}{colon}{rest}"
    return unescaped(text).strip()


def unescaped(text: str) -> str:
    """Remove the backslashes that escape special characters."""
    return _ESCAPED.sub(r"\1", text)


def bullet(text: str, *, day: str, said: Mapping[str, Any]) -> str:
    """Write a fact as a bullet that reads back exactly. If markdown cannot express the text, the comment holds it."""
    written = _bullet(text, day, said)
    items = [each for each in outline(written) if isinstance(each, Item)]
    if len(items) == 1 and entry_of(items[0]).text == text and entry_of(items[0]).at == day:
        return written
    return _bullet(" ".join(text.split()), day, {**said, "text": text})


def _bullet(text: str, day: str, said: Mapping[str, Any]) -> str:
    shown = "\\\n  ".join(escaped(line) for line in text.split("\n"))
    return f"- {day}: {shown} {comment(said)}"


def escaped(line: str) -> str:
    """Escape the special characters in a line."""
    return _SPECIAL.sub(r"\\\1", line)


def comment(said: Mapping[str, Any]) -> str:
    """Write a comment that `entry_of` can read and that rendered markdown does not show."""
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":")).replace("-->", "--\\u003e")
    return f"<!-- ricordo {text} -->"


NAME = "markdown"

SUFFIXES = (".md", ".markdown", ".mdown")
_RELATED = re.compile(
    r"(?P<name>[^()]*?[^()\s])\s*(?:\((?P<relation>[^()]+)\)|(?:(?<=\s)[-–—]|[:,])\s*(?P<after>[^()]+))?\Z"
)
_MOST_TAG = 100
_MOST_HEADING = 200
_FIRST_PROPERTY = 2  # the line of what the front matter says, as in a document
_MOST_SHOWN = 20


def fits(source: Source) -> bool:
    """Return whether the source is markdown, by name or by content, or a folder with markdown files."""
    if source.is_folder:
        return any(name.lower().endswith(SUFFIXES) for name in source.names)
    if source.is_database or source.is_archive or source.document is not None or source.lines.rows:
        return False
    text = source.own_text
    return source.path.name.lower().endswith(SUFFIXES) or re.search(r"(?m)^(#{1,6} |[-*+] )\S", text) is not None


def read(source: Source, destination: Destination) -> Records:
    """Read a single file, or all markdown files of a folder in the order of their names."""
    reading = _Reading(format=NAME, destination=destination)
    names = [name for name in source.names if name.lower().endswith(SUFFIXES)]
    settings = templates_of(source.path) if source.is_folder else ()
    templates, watched = list[str](), list[str]()
    for name in names if source.is_folder else [None]:
        if name is not None and is_conflict_copy(name):
            source.notes.append(f"{name}: left out, as it is a conflict copy")
            continue
        if name is not None and source.path.resolve() / name in source.watched:
            watched.append(name)
            continue
        try:
            file = source.text(name)
        except InvalidError as error:
            if not source.is_folder:
                raise
            reading.refused.append(str(error))
            continue
        if is_private(file.text):
            source.notes.append(f"{file.name}: left out, as its front matter says `ricordo: false`")
        elif source.is_folder and (file.name.startswith(settings) or is_template(file.text)):
            templates.append(file.name)
        else:
            reading.file(file.name, file.text, changed_at=file.changed_at)
            unread = unread_fields(file.text.replace("\r\n", "\n").split("\n"))
            source.notes += (f"{file.name} {each}" for each in unread)
    for kind, left_out in (("template", templates), ("watched note", watched)):
        if left_out:
            shown = ", ".join(left_out[:_MOST_SHOWN]) + (" and more" if len(left_out) > _MOST_SHOWN else "")
            reading.skipped.append(f"{plural(len(left_out), kind)}: {shown}")
    reading.people += reading.names()
    return reading


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """What the headings above a block tell about it."""

    about: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: Category | None = None
    at: str | None = None
    dated: str | None = None
    """The date of the note, if nothing closer gives one. Ids do not depend on it."""
    file: str = ""
    """The name of the file: the title of its facts, as of a document's passages."""
    changed_at: datetime | None = None
    """When the file was last changed: the time of what nothing dates."""
    is_people: bool = False
    headings: tuple[str, ...] = ()
    """The headings that tell neither subject nor category nor date."""
    note: str = ""
    """The name of the note, of which the facts are if nothing closer gives a subject."""
    is_clipping: bool = False
    """Whether the note is a page of the web."""
    has_boxes: bool = False
    """Whether it has boxes to tick. Then its other lines are no tasks, whatever the heading says."""


@dataclass(slots=True, kw_only=True)
class _Reading(Records):
    """Collects facts, and the people named in headings, file by file."""

    named: dict[str, ImportedPerson] = field(default_factory=dict)
    notes: dict[str, ImportedPerson] = field(default_factory=dict)
    linked: dict[str, str] = field(default_factory=dict)
    """The place of the first link to each name."""
    counts: Counter[tuple[object, ...]] = field(default_factory=Counter)

    def file(self, name: str, text: str, *, changed_at: datetime) -> None:
        fields = note_text.fields_of(text)
        start = replace(self._of_file(name, fields), file=name, changed_at=changed_at)
        places: list[tuple[int, _Section]] = [(-1, start)]
        blocks = list(outline(text))
        titles = [each for each in blocks if isinstance(each, Heading) and each.level == 1]
        if len(titles) != 1 or blocks[0] is not titles[0]:  # several first-level headings are sections
            blocks.insert(0, Heading(level=0, text=PurePosixPath(name).stem, line=1))
        first = blocks[0] if isinstance(blocks[0], Heading) else None
        titled = replace(self._under(first, start, name) if first else start, category="knowledge")
        titled = replace(titled, headings=(start.at,)) if start.at and not titled.headings else titled
        for said in properties(fields, is_clipping=start.is_clipping):
            self._item(Item(text=escaped(said), line=_FIRST_PROPERTY), titled, f"{name} front matter")
        for number, block in enumerate(blocks):
            if isinstance(block, Heading):
                places = [each for each in places if each[0] < block.level]
                within = takewhile(lambda each: not isinstance(each, Heading), blocks[number + 1 :])
                has_boxes = any(isinstance(each, Item) and entry_of(each).is_task for each in within)
                place = self._under(block, places[-1][1], f"{name} line {block.line}")
                places.append((block.level, replace(place, has_boxes=has_boxes)))
            else:
                self._item(block, places[-1][1], f"{name} line {block.line}")

    def _of_file(self, name: str, said: Mapping[str, tuple[str, ...]]) -> _Section:
        """Return what path and front matter tell: a date, a folder of people, tags, and other names of the note."""
        path = PurePosixPath(name)
        tags = tuple(tag for each in said.get("tags", ()) for tag in _tag(each))
        note = path.stem if name_of(path.stem) and category_of(heading_key(path.stem)) is None else ""
        place = _Section(at=date_in(path.stem), dated=date_of(said), tags=tags, note=note)
        place = replace(place, is_clipping=is_clipping(name, said))
        if note:
            aliases = said.get("aliases", said.get("alias", ()))
            kind = type_of(name, tags, least_words=1 if aliases else 2)
            self.notes.setdefault(name_key(note), ImportedPerson(name=note, aliases=aliases, type=kind, place=name))
        if path.parent.name.lower() in heading_words().people:
            return replace(place, is_people=True)
        return place

    def _under(self, heading: Heading, above: _Section, where: str) -> _Section:
        if isinstance(heading.said.get("name"), str):
            return replace(above, about=(self._exported_entity(heading.said, where),), is_people=False)
        at = date_in(heading.text)
        if heading.level == 0 and (stem := name_of(heading.text)):
            heading = replace(heading, text=stem)
        elif at is not None:
            return replace(above, at=at)
        key = heading_key(heading.text)
        kind = category_of(key)
        if key in heading_words().people:
            return replace(above, is_people=True, category=kind or above.category)
        if key in heading_words().self:
            return replace(above, is_people=False, about=(), note="", category=kind or above.category)
        if kind is not None:
            return replace(above, category=kind)
        is_title = heading.level <= 1 and not above.is_people and above.about == ()
        if not is_title and (name := self._person(heading.text, above, where)):
            return replace(above, about=(name,), is_people=False)
        return above if key in heading_words().nameless else replace(above, headings=(*above.headings, heading.text))

    def names(self) -> Iterator[ImportedPerson]:
        """Yield the people and things that headings, notes and links name."""
        texts = [each.fact.content for each in self.facts.values()]
        kinds = {name_key(each.name): each.type for each in entities_named(texts)}
        used = {name_key(name) for each in self.facts.values() for name in each.fact.about}
        for key, note in self.notes.items():
            if key not in self.named and (note.aliases or key in used):
                is_person = kinds.get(key) == "person" and "/" not in note.place
                self.named[key] = replace(note, type="person") if is_person else note
            elif key in self.named:
                person = self.named[key]
                type_ = note.type if "/" in note.place and not person.relation else person.type
                self.named[key] = replace(person, aliases=(*person.aliases, *note.aliases), type=type_)
        known = {name_key(name) for each in self.named.values() for name in (each.name, *each.aliases)}
        for name, place in self.linked.items():
            if (key := name_key(name)) and key not in known:
                self.named[key] = ImportedPerson(name=name, type=kinds.get(key, type_of(name)), place=place)
        yield from self.named.values()

    def _exported_entity(self, said: Mapping[str, Any], where: str) -> str:
        """Read an entity from the comment of an exported heading."""
        name, relation = str(said["name"]), said.get("relation")
        self.named[name] = ImportedPerson(
            name=name,
            type=entity_type(said.get("type")),
            aliases=texts_of(said.get("aliases")),
            relation=str(relation) if relation else None,
            place=where,
        )
        return name

    def _person(self, text: str, above: _Section, where: str) -> str | None:
        """Return the person in a heading: "Sarah (wife)" under "People", or "About Sarah" anywhere."""
        asked = heading_words().about.match(text)
        if not asked and not above.is_people:
            return None
        named = asked["name"] if asked else text
        found = _RELATED.match(named) if len(named) <= _MOST_HEADING else None
        if found is None or not name_key(found["name"]) or found["name"].lower() in heading_words().self:
            return None
        said = found["relation"] or found["after"]
        relation = known_relation(said.lower().removeprefix("my ").strip()) if said else None
        person = ImportedPerson(name=found["name"], relation=relation, place=where)
        before = self.named.setdefault(name_key(person.name), person)
        if before.relation is None and relation is not None:
            self.named[name_key(person.name)] = replace(before, relation=relation)
        return before.name

    def _item(self, item: Item, place: _Section, where: str) -> None:
        entry = entry_of(item, headings=place.headings, is_clipped=place.is_clipping)
        words = entry_of(replace(item, is_quote=False)).text
        is_nested = item.under or place.category or place.headings[1:]
        is_menu = not is_nested and not entry.is_task and is_furniture(item.text)
        if entry.is_cancelled or is_menu or not any(char.isalnum() for char in words):
            return
        said = entry.said
        about = place.about or (self._subject(words, place) if not said else ())
        self.linked |= {each: where for each in entry.about if each not in self.linked}
        try:
            fact = Fact(
                content=entry.text,
                type=said.get("type", "semantic"),
                category=_category(entry, item, place),
                about=tuple(said.get("about", dict.fromkeys((*about, *entry.about)))),
                tags=(*said.get("tags", place.tags), *filter(None, (entry.label,)), *entry.tags),
                confidence=said.get("confidence", 1.0),
                expires=said.get("expires"),
                valid_from=said.get("since"),
                attributes=said.get("attributes") or (None if said else _attributes(entry, item, place)),
                origin="import",
                id=self._id(words, entry.at or place.at, place, said),
            )
            at = said.get("at") or entry.at or place.at or place.dated
            self.facts[fact.id or ""] = ImportedFact(
                fact=fact,
                at=at,
                changed_at=place.changed_at,
                place=where,
                score=clamped(said.get("score"), -10.0, 10.0, otherwise=0.0),
                decay_rate=0.0 if said.get("confirmed") is True else None,
            )
        except (TypeError, ValueError) as error:
            self.refused.append(f"{where}: its comment cannot be read: {error}")

    def _subject(self, words: str, place: _Section) -> tuple[str, ...]:
        """Return what a line is about by its note. A line about its author is so in a note about a thing, too."""
        note = self.notes.get(name_key(place.note))
        is_of_thing = note is None or note.type != "person"
        return () if not place.note or (is_of_thing and is_of_author(words)) else (place.note,)

    def _id(self, text: str, at: str | None, place: _Section, said: dict[str, Any]) -> str:
        """Derive an id from text, time and entities, so that it is the same in another file or under other headings."""
        if isinstance(said.get("id"), str):
            return str(said["id"])  # Ricordo exported it
        key = (text, at, place.about)
        self.counts[key] += 1
        return self.destination.id_of(NAME, *key, self.counts[key])


def _category(entry: Entry, item: Item, place: _Section) -> Category | None:
    """Return the category of an item. A task has a box to tick, or stands in a list under a heading for tasks."""
    if entry.is_task:
        return "task"
    is_no_task = item.is_row or item.is_code or place.has_boxes
    if place.category and not (place.category == "task" and is_no_task):
        return place.category
    if item.is_code or item.is_quote or place.is_clipping:
        return "knowledge"
    return None if entry.said else infer_category(entry.text, may_be_task=place.category == "task")


def _attributes(entry: Entry, item: Item, place: _Section) -> Mapping[str, Any]:
    """Return the headings above an item and, like those of a document's passage, its file and line."""
    heading = HEADINGS_BETWEEN.join(place.headings)[:_MOST_HEADING]
    found = ({"done": True} if entry.is_done else {}) | ({HEADING: heading} if heading else {})
    return {**found, "title": place.file, "place": f"line {item.line}", "line": item.line}


def _tag(text: str) -> tuple[str, ...]:
    tag = " ".join(text.split()).strip(" :#").lower()[:_MOST_TAG]
    return (tag,) if tag and tag not in heading_words().nameless else ()
