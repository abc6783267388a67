"""What a reader of a Markdown file sees: without comments, hidden elements and the queries of Obsidian's plugins, and
not at all if the author says so.

Source: CommonMark 0.31, sections 4.5 (fences), 4.7 (link reference definitions, of which some are comments), 6.1 (code
spans) and 6.6 (raw HTML); help.obsidian.md, "Comments" (`%%`), "Internal links" (with ids of blocks), "Embed files",
"Templates", "Callouts" and "Basic formatting syntax" (highlights, footnotes).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files

_DATA = tomllib.loads((files("ricordo.portability") / "data" / "documents.toml").read_text(encoding="utf-8"))
HIDDEN_TAGS = frozenset(_DATA["html"]["hidden"])
"""Elements of HTML that are never shown."""
HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0(?:\.0*)?\s*(?:;|!|\Z)|font-size\s*:\s*0"
    r"(?![.\d]*[1-9])|clip\s*:\s*rect\(\s*0|text-indent\s*:\s*-\d{3}|(?:left|top)\s*:\s*-\d{3,}",
    re.IGNORECASE,
)
"""A style that hides an element."""
_HIDDEN = re.compile(
    r"(?P<code>^[ \t>]*(?P<fence>`{3,}|~{3,})[^\n]*$.*?(?:^[ \t>]*(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?P<ticks>(?<![`\\])`+(?!`))[^\n](?:(?!\n\s*\n).){0,2000}?(?<!`)(?P=ticks)(?!`)"
    r"|<!--\s*ricordo\s+\{[^\n]*?\}\s*-->)"
    r"|(?<!\\)<!--.*?(?:-->|\Z)"
    r"|(?<!\\)%%(?:(?!<!--\s*ricordo).)*?%%"
    r"|^[ \t]*%%.*\Z"
    r"|^ {0,3}\[(?://|comment|_metadata_[^\]\n]*)\]:[^\n]*$"
    r"|(?<!\\)<(?P<tag>[A-Za-z][\w-]*+)(?P<attributes>[^<>]*)>",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_HIDING = re.compile(r"\shidden(?=[\s=/]|\Z)|\saria-hidden\s*=\s*[\"']?true", re.IGNORECASE)
_STYLE = re.compile(r"\sstyle\s*=\s*(?P<mark>[\"'])(?P<style>.*?)(?P=mark)", re.IGNORECASE | re.DOTALL)
_MOST_TAGS = 1_000
_FIELD = re.compile(r"([\w -]+):\s*(.*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:\s(.*))?\Z", re.DOTALL)
_QUERY = re.compile(
    r"[ \t>]*(?:`{3,}|~{3,})[ \t]*(?:dataview|dataviewjs|tasks|query|base|tracker|button)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""The beginning of a block of code that a plugin replaces by what it finds."""
_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_EMBED = re.compile(r"!\[\[[^\[\]\n]*\]\]|!\[[^\[\]\n]*\]\([^()\n]*\)|`\$?=[^`\n]*`")
_INNER_LINK = re.compile(r"\[\[[^\[\]\n]*\]\]|\[[^\[\]\n]*\]\((?![a-z][a-z0-9+.-]*:)[^()\n]*\)", re.IGNORECASE)
_DATE_LINK = re.compile(r"\[\[[^\[\]|\n]*\d{4}-\d{2}-\d{2}(?:[|#^][^\[\]\n]*)?\]\]")
_PLACEHOLDER = re.compile(r"\{\{ *(?:title|date|time)\b[^{}\n]*\}\}|<%[^%\n]*\btp\.", re.IGNORECASE)
_CODE = re.compile(r"(?ms)^[^\S\n]*(`{3,}|~{3,}).*?(?:^[^\S\n]*\1|\Z)|`[^`\n]+`")
_HIGHLIGHT = re.compile(r"(?<![\w=\\])==(?=\S)([^=\n]*[^\s=])==(?![\w=])")
_BLOCK_ID = re.compile(r"(?m)(?:^|(?<=\s))\^(?=[\d-]*[A-Za-z])[\dA-Za-z-]{2,}[ \t]*$")
_FOOTNOTE = re.compile(r"(?m)^ {0,3}\[\^([^\]\s]+)\]:[ \t]*(.*)$")
_FOOTNOTE_MARK = re.compile(r"\[\^([^\]\s]+)\]")
_CALLOUT = re.compile(
    r"(?m)^(?P<indent>[ \t]*)>[ \t]*\[!(?P<kind>[\w-]+)\][+-]?[ \t]*(?P<title>.*)(?P<rest>(?:\n[ \t]*>.*)*)"
)
_QUOTED = re.compile(r"(?m)^[ \t]*>[ \t]?")
_QUOTATIONS = ("quote", "cite")
"""The callouts that hold somebody else's words; all others are a box of the author's own text."""


def visible(text: str) -> str:
    """Return a Markdown text without its comments and hidden elements. Lines keep their numbers; the front matter, code
    and the comments in which Ricordo exports a fact's fields stay.
    """
    kept, at = list[str](), 0
    for start, end in _hidden(text):
        kept += [text[at:start], "\n" * text.count("\n", start, end)]
        at = end
    return "".join([*kept, text[at:]])


def hidden_lines(text: str) -> tuple[str, ...]:
    """Return what `visible` leaves out of each line."""
    kept, at = list[str](), 0
    for start, end in _hidden(text):
        kept += ["\n" * text.count("\n", at, start), text[start:end]]
        at = end
    return tuple("".join([*kept, "\n" * text.count("\n", at)]).split("\n"))


def _hidden(text: str) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each hidden part."""
    lines = text.split("\n")
    at = sum(len(line) + 1 for line in lines[: front_matter(lines)[1]])
    while found := _HIDDEN.search(text, at):
        at = found.end() if found["tag"] is None else _end_of_hidden(text, found)
        is_shown = found["code"] is not None and not _QUERY.match(found["code"])
        if not is_shown and (found["tag"] is None or at > found.end()):
            yield found.start(), at


def _end_of_hidden(text: str, opened: re.Match[str]) -> int:
    """Return the end of a hidden element, or the end of its tag if it is not hidden, or is not closed."""
    tag, attributes = opened["tag"].lower(), opened["attributes"]
    style = _STYLE.search(attributes)
    is_hidden = tag in HIDDEN_TAGS or _HIDING.search(attributes) or (style and HIDING_STYLE.search(style["style"]))
    if not is_hidden or attributes.endswith("/"):
        return opened.end()
    depth = 1
    for number, found in enumerate(re.compile(rf"<(/?){tag}\b[^<>]*>", re.IGNORECASE).finditer(text, opened.end())):
        depth += -1 if found[1] else 1
        if not depth or number > _MOST_TAGS:
            return found.end()
    return opened.end()


def is_furniture(line: str) -> bool:
    """Return whether a line says nothing itself: it consists of embedded files, or of links that lead elsewhere. In an
    item of a list, a link may stand for itself, except to other days.
    """
    bullet = _BULLET.match(line)
    text = line[bullet.end() :] if bullet else line
    rest = (_DATE_LINK if bullet else _INNER_LINK).sub("", _EMBED.sub("", text))
    return len(rest) < len(text) and not any(map(str.isalnum, rest))


def unmarked(text: str) -> str:
    """Return a Markdown text without the marks of highlights, blocks and callouts, and with each footnote at its place.
    Code stays as it is, and lines keep their numbers.

    >>> unmarked("Fire it at ==1,220 degrees==[^1] ^kiln\\n\\n[^1]: cone 6")
    'Fire it at 1,220 degrees (cone 6) \\n\\n'
    """
    notes = {found[1]: found[2].strip() for found in _FOOTNOTE.finditer(without_code(text))}
    parts, at = list[str](), 0
    for code in [*_CODE.finditer(text), None]:
        parts.append(_unmarked(text[at : code.start() if code else None], notes))
        parts.append(code[0] if code else "")
        at = code.end() if code else at
    return "".join(parts)


def _unmarked(text: str, notes: Mapping[str, str]) -> str:
    text = _FOOTNOTE_MARK.sub(
        lambda mark: f" ({note})" if (note := notes.get(mark[1])) else "", _FOOTNOTE.sub("", text)
    )
    return _BLOCK_ID.sub("", _HIGHLIGHT.sub(r"\1", _CALLOUT.sub(_boxed, text)))


def _boxed(found: re.Match[str]) -> str:
    """Return a callout as text of the author under its title, or as a quotation with its title as the source."""
    title, rest = found["title"].strip(), found["rest"]
    if found["kind"].lower() in _QUOTATIONS:
        return f"{rest} — {title}" if title and rest else rest
    inner = re.sub(r"(?m)^#{1,6} +", "", _QUOTED.sub("", rest))
    return f"{found['indent']}{title.rstrip(':')}:{inner}" if title and inner.strip() else f"{title}{inner}"


def without_code(text: str) -> str:
    """Return a Markdown text without blocks and spans of code."""
    return _CODE.sub("", text)


def is_template(text: str) -> bool:
    """Return whether a note is a template of Obsidian or of its plugin Templater."""
    return _PLACEHOLDER.search(without_code(text)) is not None


def is_private(text: str) -> bool:
    """Return whether the front matter says `ricordo: false`: the note stays out of the memory."""
    return says_private(front_matter(text.replace("\r\n", "\n").removeprefix("\ufeff").split("\n"))[0])


def says_private(fields: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the fields of a front matter keep a note out of the memory."""
    return next(iter(fields.get("ricordo", ())), "").lower() in ("false", "no")


def front_matter(lines: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], int]:
    """Return the fields between two lines of dashes at the top, and the first line after them."""
    if not lines or lines[0].strip() != "---":
        return {}, 0
    end = next((at for at, line in enumerate(lines) if at and line.strip() in ("---", "...")), 0)
    fields: dict[str, list[str]] = {}
    name = ""
    for line in lines[1:end]:
        if found := _FIELD.match(line):
            name = found[1].strip().lower()
            fields[name] = [*_values(found[2])]
        elif name and line.strip().startswith("- "):
            fields[name] += _values(line.strip()[2:])
    return {name: tuple(values) for name, values in fields.items()}, end + 1 if end else 0


def heading_in(line: str) -> tuple[int, str] | None:
    """Return the level and text of a heading, without the marks that close it; None if the line is not a heading.

    >>> heading_in("## About C# ##")
    (2, 'About C#')
    """
    found = _HEADING.match(line)
    if found is None:
        return None
    text = (found[2] or "").strip()
    bare = text.rstrip("#")
    return len(found[1]), bare.rstrip() if not bare or bare[-1].isspace() else text


def unread_fields(lines: Sequence[str]) -> tuple[str, ...]:
    """Return what is wrong with the front matter of a note: it has no end, or lists that are not closed."""
    end = front_matter(lines)[1]
    if not end and len(lines) > 1 and lines[0].strip() == "---" and _FIELD.match(lines[1]):
        return ("line 1: the front matter is not closed by `---`, and is read as text",)
    fields = ((number, _FIELD.match(line)) for number, line in enumerate(lines[:end], start=1))
    return tuple(
        f"line {number}: `{found[1].strip()}` is a list without a closing bracket"
        for number, found in fields
        if found and _is_unclosed(found[2].strip())
    )


def _is_unclosed(value: str) -> bool:
    return value.startswith("[") and not value.endswith("]")


def _values(text: str) -> tuple[str, ...]:
    """Return a single value, or the values of a list in brackets."""
    inner = text.strip()
    if _is_unclosed(inner):
        return ()
    parts = inner[1:-1].split(",") if inner.startswith("[") and not inner.startswith("[[") else [inner]
    stripped = (part.strip().strip("\"'") for part in parts)
    return tuple(re.sub(r"^\[\[(.*)\]\]$", r"\1", part) for part in stripped if part)
