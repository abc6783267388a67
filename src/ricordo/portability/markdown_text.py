"""Markdown for memories: headings, nested bullets and paragraphs, and facts as bullets that read back exactly.

It is more lenient than a CommonMark parser: notes are often indented wrongly, and every bullet is a memory. Pure.

Source: CommonMark 0.31, sections 2.4 (backslash escapes), 4.2 (headings), 4.5 (fences), 5.2 (list items) and 6.7 (hard
line breaks).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*\Z")
_BULLET = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])\s+(?P<text>\S.*)\Z")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_RULE = re.compile(r"\s*([-*_])(\s*\1){2,}\s*\Z")
_BOX = re.compile(r"\[(?P<mark>[ xX])\]\s+")
_ISO = re.compile(r"(?<!\d)(\d{4})[-_./](\d{2})[-_./](\d{2})(?!\d)")
_MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october"]
_MONTHS += ["november", "december"]
_WRITTEN = re.compile(
    r"\b(?:(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+(?P<month>[A-Za-z]{3,9})|(?P<month2>[A-Za-z]{3,9})\s+(?P<day2>\d{1,2})"
    r"(?:st|nd|rd|th)?),?\s+(?P<year>\d{4})\b"
)
_LEADING = re.compile(r"[\[(]?(?P<date>\d{4}-\d{2}-\d{2})[\])]?\s*(?:[:–—-]\s+|\s)\s*")
_TRAILING = re.compile(r"\s+\((?P<date>\d{4}-\d{2}-\d{2})\)\s*\Z")
_COMMENT = re.compile(r"\s*<!--\s*ricordo\s+(?P<json>\{.*\})\s*-->\s*\Z", re.DOTALL)
_ANY_COMMENT = re.compile(r"(?<!\\)<!--.*?-->", re.DOTALL)
_STRONG_LABEL = re.compile(r"(\*\*|__)(?P<label>[^*_\\]{1,80}?)(?P<colon>:?)\1(?P<colon2>:?)\s*")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPECIAL = re.compile(r"([\\`*_<\[\]#])")
_PARAGRAPH = -1
"""The indentation of a paragraph: bullets after "For example:" belong to it."""
_SHORT = 80
"""A longer bullet is a statement of its own and not a title of the bullets under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading; `level` counts from 1."""

    level: int
    text: str
    line: int
    said: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A bullet or a paragraph, its lines joined; `under` are the titles of the bullets above it."""

    text: str
    line: int
    under: tuple[str, ...] = ()


Block = Heading | Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An item's text, its ISO date, and the fields of Ricordo's own comment after it."""

    text: str
    at: str | None
    is_task: bool
    said: dict[str, Any]


def outline(text: str) -> Iterator[Block]:
    """Yield headings and items in order. Code belongs to the item above it; front matter and rules are skipped."""
    pending: list[_Open] = []
    for number, line, is_code in _lines(text):
        heading = None if is_code else _HEADING.match(line)
        bullet = None if is_code or heading else _BULLET.match(line)
        if heading or (bullet and not _RULE.match(line)):
            if heading:
                yield from _closed(pending, down_to=-1)
                yield _heading(heading[2], level=len(heading[1]), line=number)
            elif bullet:
                indent = len(bullet["indent"].expandtabs(4))
                yield from _closed(pending, down_to=indent)
                pending.append(_Open(indent=indent, line=number, lines=[bullet["text"]]))
        elif is_code and pending:
            pending[-1].lines.append(line)
            pending[-1].is_code = True
        elif not line.strip() or _RULE.match(line):
            for item in pending[-1:]:
                item.is_ended = True
        elif pending and not (pending[-1].is_ended and not line[:1].isspace()):
            pending[-1].lines.append(line.strip())
        else:
            yield from _closed(pending, down_to=-1)
            pending.append(_Open(indent=_PARAGRAPH, line=number, lines=[line.strip()]))
    yield from _closed(pending, down_to=-1)


def _heading(text: str, *, level: int, line: int) -> Heading:
    found = _COMMENT.search(text)
    said = _object(found["json"]) if found else {}
    text = _ANY_COMMENT.sub("", text[: found.start()] if found else text)
    return Heading(level=level, text=plain(text), line=line, said=said)


@dataclass(slots=True, kw_only=True)
class _Open:
    """An item that is still open."""

    indent: int
    line: int
    lines: list[str]
    is_ended: bool = False
    is_code: bool = False
    is_yielded: bool = False


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (number, line, whether it is code), without front matter."""
    lines = text.replace("\r\n", "\n").split("\n")
    start = 0
    if lines[0].strip() == "---" and "---" in (line.strip() for line in lines[1:50]):
        start = next(at for at, line in enumerate(lines[1:], start=1) if line.strip() == "---") + 1
    fence = ""
    for number, line in enumerate(lines[start:], start=start + 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            yield number, line, True
        else:
            yield number, line, bool(fence)


def _closed(pending: list[_Open], *, down_to: int) -> Iterator[Item]:
    """Yield the items that no further line can belong to: those as deep as a new bullet, or deeper.

    A bullet is yielded before the bullets under it, when the first of them begins.
    """
    for place, item in enumerate(pending):
        if not item.is_yielded:
            above = tuple(_title(each) for each in pending[:place])
            item.is_yielded = True
            if not (down_to > item.indent and _is_title(_joined(item))):
                yield Item(text=_joined(item), line=item.line, under=tuple(each for each in above if each))
    pending[:] = [
        item for item in pending if item.indent < down_to and (item.indent != _PARAGRAPH or _is_title(_joined(item)))
    ]


def _joined(item: _Open) -> str:
    """Join lines to one text; a backslash at the end of a line keeps its break, and code keeps its lines."""
    if item.is_code:
        return "\n".join(item.lines)
    return "".join(
        line[:-1] + "\n" if line.endswith("\\") and not line.endswith("\\\\") else f"{line} " for line in item.lines
    ).rstrip()


def _is_title(text: str) -> bool:
    return text.endswith((":", ":**"))


def _title(item: _Open) -> str:
    text = plain(_joined(item)).rstrip(" :")
    return text if len(text) <= _SHORT else ""


def entry_of(item: Item) -> Entry:
    """Read an item. Its date comes before the text, or in brackets after it."""
    text, said = item.text, {}
    if found := _COMMENT.search(text):
        said, text = _object(found["json"]), text[: found.start()]
    text = _ANY_COMMENT.sub("", text)
    box = _BOX.match(text)
    text = text[box.end() :] if box else text
    at = None
    for pattern in (_LEADING, _TRAILING):
        dated = pattern.match(text) if pattern is _LEADING else pattern.search(text)
        if at is None and dated and date_in(dated["date"]):
            at, text = date_in(dated["date"]), text[: dated.start()] + text[dated.end() :]
    words = unescaped(text) if said else plain(text)
    under = "" if said else ": ".join(item.under)
    exact = said.get("text")
    return Entry(
        text=exact if isinstance(exact, str) else f"{under}: {words}" if under and words else words,
        at=at,
        is_task=box is not None and box["mark"] == " ",
        said=said,
    )


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def plain(text: str) -> str:
    """Return the text without the marks around a label at its beginning, and without escapes."""
    found = _STRONG_LABEL.match(text)
    if found:
        rest = text[found.end() :]
        colon = ": " if (found["colon"] or found["colon2"]) and rest else " " if rest else ""
        text = f"{found['label']}{colon}{rest}"
    return unescaped(text).strip()


def unescaped(text: str) -> str:
    """Remove the backslashes that escape marks."""
    return _ESCAPED.sub(r"\1", text)


def date_in(text: str) -> str | None:
    """Return the first date of a text in ISO form; it may be 2026-01-15, January 15, 2026 or 15 January 2026."""
    if found := _ISO.search(text):
        year, month, day = (int(part) for part in found.groups())
    elif (found := _WRITTEN.search(text)) and (month := _month(found["month"] or found["month2"])):
        year, day = int(found["year"]), int(found["day"] or found["day2"])
    else:
        return None
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None


def _month(name: str) -> int:
    return next((number for number, month in enumerate(_MONTHS, start=1) if month.startswith(name.lower())), 0)


def bullet(text: str, *, day: str, said: Mapping[str, Any]) -> str:
    """Write a fact as a bullet that reads back exactly; if markdown cannot express it, its comment has the text."""
    written = _bullet(text, day, said)
    items = [each for each in outline(written) if isinstance(each, Item)]
    if len(items) == 1 and entry_of(items[0]).text == text and entry_of(items[0]).at == day:
        return written
    return _bullet(" ".join(text.split()), day, {**said, "text": text})


def _bullet(text: str, day: str, said: Mapping[str, Any]) -> str:
    shown = "\\\n  ".join(escaped(line) for line in text.split("\n"))
    return f"- {day}: {shown} {comment(said)}"


def escaped(line: str) -> str:
    """Escape the marks in a line."""
    return _SPECIAL.sub(r"\\\1", line)


def comment(said: Mapping[str, Any]) -> str:
    """Write a comment as `entry_of` reads it; rendered markdown does not show it."""
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":")).replace("-->", "--\\u003e")
    return f"<!-- ricordo {text} -->"
