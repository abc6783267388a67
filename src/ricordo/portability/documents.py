"""Read a document (PDF, DOCX, HTML, Markdown, e-mail, source code or plain text) into blocks with their places.

Files are untrusted: sizes, page counts and unpacked sizes are limited, and nothing is fetched. Whatever a reader of the
document would not see is left out, such as scripts, comments and hidden elements.
"""

from __future__ import annotations

import email
import email.policy
import io
import logging
import re
import stat
import time
import tomllib
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from ricordo.encoding.documents import Block, Draft
from ricordo.encoding.validation import short_name
from ricordo.errors import InvalidError
from ricordo.model import OPEN_TASK, EntityType
from ricordo.portability.note_text import plain
from ricordo.portability.sources import decoded
from ricordo.portability.vaults import date_in, date_of, name_of, properties, type_of
from ricordo.portability.visible_text import (
    HIDDEN_TAGS,
    HIDING_STYLE,
    front_matter,
    heading_in,
    is_furniture,
    is_private,
    unmarked,
    unread_fields,
    visible,
    without_code,
)
from ricordo.text.analyzer import name_key

if TYPE_CHECKING:
    from pypdf import PdfReader

MAX_BYTES = 100_000_000
MAX_PAGES = 5_000
MAX_CHARS = 20_000_000
_MAX_SECONDS = 300.0
_MOST_NAME = 100
_MAX_UNPACKED_BYTES = 500_000_000
_MOST_SQUEEZED = 100
_SUSPICIOUS_BYTES = 20_000_000
"""A file that unpacks to at least this size and to more than 100 times its own size is refused."""
_REPEATED = 0.5
_REPEATED_LEAST = 4
_EDGE_LINES = 2
_SHORT_LINE = 0.75
_STOPS = ".!?:…。！？"

_DATA = tomllib.loads((files("ricordo.portability") / "data" / "documents.toml").read_text(encoding="utf-8"))
FORMATS: Mapping[str, str] = {f".{suffix}": name for name, found in _DATA["suffixes"].items() for suffix in found}
"""The format of a file by its suffix."""
MAILBOXES = frozenset((".mbox", ".mbx"))
ALWAYS_DOCUMENTS = frozenset((".pdf", ".docx", ".html", ".htm", ".xhtml", ".eml")) | MAILBOXES
"""Suffixes of files that are always documents, never another program's memory."""

Place = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a file.

    Attributes:
        pages: number of pages; None for formats without pages.
        title: the title that the document states; "" if it states none.
        left_out: parts that could not be read.
        date, tags_of, subject, names, types: see `Draft`.
    """

    blocks: Sequence[Block]
    pages: int | None = None
    title: str = ""
    left_out: tuple[str, ...] = ()
    date: str | None = None
    tags_of: Callable[[str], tuple[str, ...]] = lambda text: ()
    subject: str = ""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    types: Mapping[str, EntityType] = field(default_factory=dict)


def read_document(
    content: bytes,
    *,
    name: str,
    id: str,
    changed_at: datetime,
    format: str | None = None,
    title: str | None = None,
    version: str | None = None,
    source: str | None = None,
    device: str | None = None,
) -> Draft:
    """Read a document into blocks.

    Args:
        name: name of the file; its suffix decides the format if none is given.
        title: the title to show; by default the document's own or the name of the file.
        device: the device that watches the file.

    Raises:
        InvalidError: a name is too long, or the content is too large, encrypted, without text, not of its format, or
            needs an extra.
    """
    title, version, source = (
        short_name(value, name=label) for label, value in (("title", title), ("version", version), ("source", source))
    )
    if len(content) > MAX_BYTES:
        raise InvalidError(f"{name} has more than {MAX_BYTES // 1_000_000} MB", hint="split the document")
    chosen = format_of(name, content, format)
    is_path = title is not None and title.endswith(f"/{name}")  # of a file in a watched folder
    found = _READERS[chosen](content, title if is_path and title else name)
    if sum(len(block.text) for block in found.blocks) > MAX_CHARS:
        raise InvalidError(f"{name} has more than {MAX_CHARS:,} characters", hint="split the document")
    if not any(block.text.strip() for block in found.blocks):
        raise InvalidError(f"{name} holds no text", hint="only text can be stored and found")
    return Draft(
        id=id,
        title=title or found.title or name,
        format=chosen,
        digest=sha256(content).hexdigest(),
        blocks=found.blocks,
        changed_at=changed_at,
        version=version,
        pages=found.pages,
        source=source or name,
        device=device,
        left_out=found.left_out,
        date=found.date,
        tags_of=found.tags_of,
        subject=found.subject,
        names=found.names,
        types=found.types,
    )


def is_document(path: Path, format: str | None) -> bool:
    """Return whether a file to import is a document, rather than another program's memory."""
    return format == "document" or (format is None and path.suffix.lower() in ALWAYS_DOCUMENTS)


def document_at(path: str | Path) -> tuple[bytes, str, datetime]:
    """Return the content of a file, its name, and when it was last changed.

    Raises:
        InvalidError: the path is not a file, the file is too large, or it cannot be read.
    """
    if not isinstance(path, str | Path):
        raise InvalidError(f"path: {path!r} is not a path", hint="give the path of a file, or `text`")
    path = Path(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InvalidError(f"{path}: it is not a file", hint="`watch` takes folders")
        if status.st_size > MAX_BYTES:
            raise InvalidError(f"{path} has more than {MAX_BYTES // 1_000_000} MB", hint="split the document")
        return path.read_bytes(), path.name, datetime.fromtimestamp(status.st_mtime, UTC)
    except OSError as error:
        raise InvalidError(f"{path} cannot be read: {error.strerror or error}") from error


def format_of(name: str, content: bytes, format: str | None) -> str:
    """Return the format of a document.

    Raises:
        InvalidError: the format is unknown, or the content has another format.
    """
    if format is not None and format not in _READERS:
        raise InvalidError(f"format: there is no format {format!r}", hint=f"choose {', '.join(_READERS)}")
    is_pdf, is_zip = b"%PDF-" in content[:1_024], content.startswith(b"PK\x03\x04")
    guessed = "pdf" if is_pdf else FORMATS.get(Path(name).suffix.lower(), "text")
    chosen = format or guessed
    if chosen == "pdf" and not is_pdf:
        raise InvalidError(f"{name}: it is not a PDF", hint="give the format it has, such as format='text'")
    if chosen == "docx" and not is_zip:
        raise InvalidError(f"{name}: it is not a DOCX file", hint="save a DOC file as DOCX first")
    return chosen


# text, Markdown and code


def _text(content: bytes, name: str) -> Content:
    return Content(blocks=list(_paragraphs(decoded(content, name=name).splitlines())))


def _code(content: bytes, name: str) -> Content:
    return Content(blocks=list(_paragraphs(decoded(content, name=name).splitlines(), keeps_lines=True)))


_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_INLINE_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_OPEN_BOX = re.compile(r"^[^\S\n]*(?:[-*+]|\d{1,9}[.)])\s+\[[ /<>]\]\s+\S", re.MULTILINE)
_LIST_ITEM = re.compile(r"\s*(?:[-*+•>|#]|\d+[.)]\s|\t| {4})")


def _markdown(content: bytes, name: str) -> Content:
    text = decoded(content, name=name)
    if is_private(text):
        raise InvalidError(f"{name}: its front matter says `ricordo: false`", hint="remove the line to remember it")
    lines, path = unmarked(visible(text.replace("\r\n", "\n"))).split("\n"), _Headings()
    fields, start = front_matter(lines)
    body = without_code("\n".join(lines[start:]))
    stem = Path(name).stem
    headings = [*_markdown_headings(lines, start), (len(lines), "", 0)]
    top, title, level = headings[0]
    is_title = level in (1, -1) and not any(map(str.strip, lines[start : top if level > 0 else top - 1]))
    if not is_title or sum(level in (1, -1) for *_, level in headings) > 1:  # several of them are sections
        title = name_of(stem)
        path.enter(0, title, date_in(stem))
    said = tuple(properties(fields))
    blocks = [Block(text="\n".join(said), places=((0, {"line": 2}),), headings=(title,) * bool(title))] if said else []
    for number, heading, level in headings:
        end = number if level >= 0 else number - 1  # an underlined heading begins one line earlier
        shown = [_INLINE_TAG.sub("", line) for line in lines[start:end]]
        blocks += _paragraphs(shown, first=start + 1, headings=path.titles, at=path.at, is_empty=is_furniture)
        path.enter(abs(level), heading, date_in(heading))
        start = number + 1
    if not any(block.text.strip() for block in blocks) and title:  # nothing else says what the note is about
        blocks = [Block(text=title, places=((0, {"line": 1}),))]
    tags = tuple(filter(_is_name, (tag.strip("# ") for tag in fields.get("tags", ()))))
    aliases = tuple(filter(_is_name, fields.get("aliases", fields.get("alias", ()))))
    linked = tuple(filter(_is_name, plain(body)[1]))
    is_subject = name_of(stem) and _is_name(stem) and (aliases or "/" in name)
    unread = unread_fields(lines)
    own = type_of(name, map(str.lower, tags), least_words=1 if aliases else 2)
    return Content(
        blocks=blocks,
        left_out=tuple(f"front matter {each}" for each in unread),
        date=date_in(stem) or date_of(fields),
        tags_of=lambda text: (*tags, *filter(_is_name, plain(without_code(text))[2]), *_states_of(text)),
        subject=stem,
        names=dict.fromkeys(linked, ()) | ({stem: aliases} if is_subject else {}),
        types={link: type_of(link) for link in linked} | {stem: own},
    )


def _states_of(text: str) -> tuple[str, ...]:
    """Return a tag for a passage with open tasks, by which they are listed and found."""
    return (OPEN_TASK,) if _OPEN_BOX.search(without_code(text)) else ()


def _is_name(text: str) -> bool:
    return bool(name_key(text)) and len(text) <= _MOST_NAME


def _markdown_headings(lines: Sequence[str], start: int) -> Iterator[tuple[int, str, int]]:
    """Yield (line, heading, level) of each heading outside code; the level of an underlined heading is negative."""
    fence = ""
    for number in range(start, len(lines)):
        line = lines[number]
        if found := _FENCE.match(line):
            mark = found[1]
            fence = "" if fence and mark[0] == fence[0] and len(mark) >= len(fence) else fence or mark
        elif fence:
            continue
        elif heading := heading_in(line):
            yield number, _plain(heading[1]), heading[0]
        elif number > start and (found := _UNDERLINE.match(line)):
            above = lines[number - 1]
            if above.strip() and not _LIST_ITEM.match(above) and not heading_in(above):
                yield number, _plain(above), -1 if found[1][0] == "=" else -2


def _plain(heading: str) -> str:
    return " ".join(re.sub(r"[*_`]+", "", _INLINE_TAG.sub("", heading)).split())


class _Headings:
    """The headings above the current place."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str, str | None]] = []

    def enter(self, level: int, title: str, at: str | None = None) -> None:
        """Begin a section with a heading.

        Args:
            level: 1 is the outermost.
            at: the day that the heading gives, in ISO form.
        """
        self._open = [each for each in self._open if each[0] < level]
        if title:
            self._open.append((level, title[:200], at))

    @property
    def at(self) -> str | None:
        """The day that the innermost heading with a date gives."""
        return next((at for *_, at in reversed(self._open) if at), None)

    @property
    def titles(self) -> tuple[str, ...]:
        """The titles, outermost first, without one that repeats the title above, as first sections often do."""
        titles = [title for _, title, _ in self._open]
        return tuple(
            title for above, title in zip(["", *titles], titles, strict=False) if _letters(above) != _letters(title)
        )


def _paragraphs(
    lines: Sequence[str],
    *,
    first: int = 1,
    headings: tuple[str, ...] = (),
    at: str | None = None,
    keeps_lines: bool = False,
    is_empty: Callable[[str], bool] = lambda line: False,
) -> Iterator[Block]:
    """Yield the paragraphs, which are separated by empty lines. Lines of prose are joined.

    Args:
        first: the number of the first line.
        at: the day of all of them, in ISO form, if they have one of their own.
        keeps_lines: whether line breaks have a meaning, as in code.
        is_empty: returns whether a line outside code counts as empty.
    """
    text, places, fence = "", list[tuple[int, Place]](), ""
    for number, line in enumerate(lines, first):
        if found := _FENCE.match(line):
            fence = "" if fence else found[1]
        if not fence and (not line.strip() or is_empty(line)):
            if text.strip():
                yield Block(text=text, places=tuple(places), headings=headings, at=at)
            text, places = "", []
            continue
        breaks = keeps_lines or fence or found or _LIST_ITEM.match(line) is not None
        text += ("\n" if breaks else " ") if text else ""
        places.append((len(text), {"line": number}))
        text += line.rstrip() if breaks else line.strip()
    if text.strip():
        yield Block(text=text, places=tuple(places), headings=headings, at=at)


# HTML

_VOID, _BLOCKS = (frozenset(_DATA["html"][name]) for name in ("void", "blocks"))


class _Page(HTMLParser):
    """Collects the blocks of a page that a reader sees."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.title = ""
        self._path = _Headings()
        self._open: list[tuple[str, bool]] = []  # each with whether it, or an element around it, is hidden
        self._count: Counter[str] = Counter()
        self._text, self._line, self._has_text = list[str](), 1, False
        self._in_title = False

    @property
    def _is_hidden(self) -> bool:
        return bool(self._open) and self._open[-1][1]

    def _close_from(self, depth: int) -> None:
        self._count.subtract(tag for tag, _ in self._open[depth:])
        del self._open[depth:]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self._end_block()
            if tag != "p" and self._open and self._open[-1][0] == "p":
                self._close_from(len(self._open) - 1)
        self._in_title = tag == "title"
        if tag in _VOID:
            self._text += ["\n"] if tag == "br" else []
            return
        self._open.append((tag, self._is_hidden or tag in HIDDEN_TAGS or _hides(dict(attrs))))
        self._count[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        if tag in _BLOCKS:
            level = int(tag[1]) if re.fullmatch(r"h[1-6]", tag) else 0
            self._end_block(heading=level)
        if self._count[tag]:
            self._close_from(next(at for at in range(len(self._open) - 1, -1, -1) if self._open[at][0] == tag))

    def handle_data(self, data: str) -> None:
        if self._in_title and not self.title:
            self.title = " ".join(data.split())[:200]
        if self._is_hidden:
            return
        if not self._has_text and data.strip():
            self._line = self.getpos()[0] + data[: len(data) - len(data.lstrip())].count("\n")
            self._has_text = True
        self._text.append(data if self._count["pre"] else re.sub(r"\s+", " ", data))

    def close(self) -> None:
        super().close()
        self._end_block()

    def _end_block(self, *, heading: int = 0) -> None:
        text, self._text, self._has_text = "".join(self._text).strip(), [], False
        if heading:
            self._path.enter(heading, " ".join(text.split()))
        elif text:
            place = (0, {"line": self._line})
            self.blocks.append(Block(text=text, places=(place,), headings=self._path.titles))


def _hides(attributes: Mapping[str, str | None]) -> bool:
    return (
        "hidden" in attributes
        or (attributes.get("aria-hidden") or "").lower() == "true"
        or HIDING_STYLE.search(attributes.get("style") or "") is not None
    )


def _html(content: bytes, name: str) -> Content:
    charset = re.search(rb"charset=[\"']?([\w-]+)", content[:2_048])
    text = ""
    if charset is not None:
        try:
            text = content.decode(charset[1].decode("ascii"))
        except (LookupError, UnicodeDecodeError):
            text = ""
    return _seen(text or decoded(content, name=name))


_COMMENT_OR_SCRIPT = re.compile(r"<!--|-->|</?(?:script|style)\b", re.IGNORECASE)


def _without_traps(text: str) -> str:
    """Return HTML without what `HTMLParser` would search in vain to the end of the text, again and again: comments,
    marked sections such as `<![CDATA[`, and tags that nothing closes. Line numbers stay the same.
    """
    text = _without_comments(text).replace("<!--", "&lt;!--").replace("<![", "<!x")
    last = text.rfind(">") + 1
    return text[:last] + text[last:].replace("<", "&lt;")


def _without_comments(text: str) -> str:
    """Remove comments, but neither one that nothing closes nor what looks like one in a script."""
    parts, start, begun, in_script = list[str](), 0, -1, False
    for found in _COMMENT_OR_SCRIPT.finditer(text):
        mark = found[0].lower()
        if begun >= 0:
            if mark == "-->":
                parts += [text[start:begun], "\n" * text.count("\n", begun, found.start())]
                start, begun = found.end(), -1
        elif mark == "<!--" and not in_script:
            begun = found.start()
        elif mark not in ("<!--", "-->"):
            in_script = not mark.startswith("</")
    return "".join([*parts, text[start:]])


def _seen(text: str) -> Content:
    page = _Page()
    page.feed(_without_traps(text))
    page.close()
    return Content(blocks=page.blocks, title=page.title)


# e-mail

_ENVELOPE = re.compile(rb"^From \S.*\d{4}\s*$", re.MULTILINE)
_MAX_LETTERS = 100_000
_MAX_HEADER_BYTES = 8_000
_LONG_HEADER = re.compile(
    rb"^(?:content-[a-z-]+|from|to|cc|subject|date):(?:[^\n]|\n[ \t]){%d,}" % _MAX_HEADER_BYTES,
    re.MULTILINE | re.IGNORECASE,
)
"""The parser of the standard library takes the square of the length of a header."""


def _mail(content: bytes, name: str) -> Content:
    try:
        return _letters_of(content, name)
    except RecursionError:
        raise InvalidError(f"{name}: messages are nested too deeply", hint="save the inner messages apart") from None


def _letters_of(content: bytes, name: str) -> Content:
    is_box = content.startswith(b"From ")
    starts = [found.start() for found in _ENVELOPE.finditer(content)] if is_box else [0]
    starts = [at for at in starts if at == 0 or content[max(0, at - 4) : at].endswith((b"\n\n", b"\r\n\r\n"))]
    if len(starts) > _MAX_LETTERS:
        raise InvalidError(f"{name} holds more than {_MAX_LETTERS:,} messages", hint="split the mailbox")
    blocks, attached = list[Block](), 0
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(content)], strict=True), 1):
        raw = _LONG_HEADER.sub(lambda found: found[0][:_MAX_HEADER_BYTES], content[start:end])
        letter = email.message_from_bytes(raw.partition(b"\n")[2] if is_box else raw, policy=email.policy.default)
        if not is_box and letter.get("From") is None:
            raise InvalidError(f"{name}: it is not an e-mail", hint="an .eml file begins with its headers")
        blocks += _letter(letter, number)
        attached += sum(1 for _ in letter.iter_attachments()) if letter.is_multipart() else 0
    left_out = (f"attachments of mail ({attached:,})",) if attached else ()
    return Content(blocks=blocks, left_out=left_out)


def _letter(letter: EmailMessage, number: int) -> Iterator[Block]:
    subject, sender = _header(letter, "Subject") or "(no subject)", _header(letter, "From")
    headings = (f"{subject} ({sender})" if sender else subject,)
    try:
        body = letter.get_body(preferencelist=("plain", "html"))
        text = "" if body is None else str(body.get_content())
    except (LookupError, ValueError, KeyError, AssertionError):  # the charset or encoding is unknown
        return
    if body is not None and body.get_content_type() == "text/html":
        text = "\n\n".join(block.text for block in _seen(text).blocks)
    own = [line for line in text.splitlines() if not line.startswith(">")]
    for block in _paragraphs(own):
        yield Block(text=block.text, places=((0, {"message": number}),), headings=headings, at=_sent_at(letter))


def _header(letter: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(letter.get(name) or "").split())[:150]
    except (ValueError, IndexError, AttributeError):  # the parser of the standard library fails on some headers
        return ""


def _sent_at(letter: EmailMessage) -> datetime | None:
    try:
        sent = getattr(letter.get("Date"), "datetime", None)
    except (ValueError, IndexError, TypeError):
        return None
    return sent if sent is None or sent.tzinfo is not None else sent.replace(tzinfo=UTC)


# PDF

_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
"""Replaces ligatures, such as the single characters "ff", "fi" and "fl", by two or three letters."""
_HEADING_LINES = 3


def _pdf(content: bytes, name: str) -> Content:
    reader = _opened_pdf(content, name)
    pages, until = list[list[str]](), time.monotonic() + _MAX_SECONDS
    chars, unread = 0, list[int]()
    for number, page in enumerate(reader.pages, 1):
        try:
            text = page.extract_text().translate(_LIGATURES)
        except Exception:  # noqa: BLE001 - a damaged page may raise anything; other pages can still be read
            text = ""
            unread.append(number)
        chars += len(text)
        if chars > MAX_CHARS or time.monotonic() > until:
            raise InvalidError(f"{name} holds too much text, or takes too long to read", hint="split the document")
        pages.append([line for line in (" ".join(each.split()) for each in text.splitlines()) if line])
    if not any(map(len, pages)):
        raise InvalidError(
            f"{name}: its pages hold no text, as scanned ones do", hint="recognise the text first: ocrmypdf IN OUT"
        )
    left_out = (f"pages that cannot be read: {', '.join(map(str, unread[:20]))}",) if unread else ()
    blocks = _flowed(_without_running_lines(pages), _outline(reader))
    return Content(blocks=blocks, pages=len(pages), left_out=left_out)


def _opened_pdf(content: bytes, name: str) -> PdfReader:
    try:
        from pypdf import PdfReader
    except ImportError as error:
        raise _needs_extra(name, "PDF") from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every flaw of a file, even if it can be read
    try:
        reader = PdfReader(io.BytesIO(content), strict=False)
        is_locked = reader.is_encrypted and not reader.decrypt("")
        pages = 0 if is_locked else len(reader.pages)
    except Exception as error:  # damaged files raise errors of many kinds
        raise InvalidError(
            f"{name}: it is a damaged PDF, or an encrypted one: {error}", hint="open and save it"
        ) from error
    if is_locked:
        raise InvalidError(f"{name}: it is encrypted with a password", hint="save a copy without the password")
    if pages > MAX_PAGES:
        raise InvalidError(f"{name}: it has {pages:,} pages", hint=f"at most {MAX_PAGES:,} are read; split it")
    return reader


def _needs_extra(name: str, what: str) -> InvalidError:
    return InvalidError(f"{name}: reading {what} needs an extra", hint="pip install 'ricordo[documents]'")


def _without_running_lines(pages: Sequence[list[str]]) -> list[list[str]]:
    """Return pages without running headers and footers: lines at the edge of most pages, such as title and number."""
    edges = Counter(
        line for page in pages for line in {_numberless(page[place]) for place in _edges(page)} if len(line) < 120
    )
    least = max(_REPEATED_LEAST, _REPEATED * len(pages))
    inside = {
        _numberless(line) for page in pages for place, line in enumerate(page) if place not in _edges(page)
    }  # a line that also occurs inside pages, such as a table row, is kept
    running = {line for line, count in edges.items() if count >= least} - inside
    return [
        [line for place, line in enumerate(page) if place not in _edges(page) or _numberless(line) not in running]
        for page in pages
    ]


def _edges(page: Sequence[str]) -> set[int]:
    return {*range(min(_EDGE_LINES, len(page))), *range(max(0, len(page) - _EDGE_LINES), len(page))}


def _letters(text: str) -> str:
    """Return a text without spaces and case, for comparison: PDF bookmarks lack spaces where a heading is wrapped."""
    return "".join(text.split()).casefold()


def _numberless(line: str) -> str:
    return re.sub(r"\d+", "#", line)


def _outline(reader: PdfReader) -> dict[int, list[tuple[int, str]]]:
    """Return the bookmarks as (level, title), by page from 1."""
    found: dict[int, list[tuple[int, str]]] = {}

    def walk(entries: Iterable[Any], level: int) -> None:
        for entry in entries:
            if isinstance(entry, list):
                walk(entry, level + 1)
            elif (page := reader.get_destination_page_number(entry)) is not None and page >= 0:
                found.setdefault(page + 1, []).append((level, " ".join(str(entry.title).split())))

    try:
        walk(reader.outline, 1)
    except Exception:  # noqa: BLE001 - the outline is damaged; the text can be read without it
        return {}
    return found


def _flowed(pages: Sequence[Sequence[str]], outline: Mapping[int, list[tuple[int, str]]]) -> list[Block]:
    """Return the paragraphs of pages, including those that continue on the next page."""
    usual = median([len(line) for page in pages for line in page])
    path, blocks = _Headings(), list[Block]()
    text, places = "", list[tuple[int, Place]]()

    def end() -> None:
        nonlocal text, places
        if text:
            blocks.append(Block(text=text, places=tuple(places), headings=path.titles))
        text, places = "", []

    for number, page in enumerate(pages, 1):
        headings, inside = _headings_on(page, outline.get(number, ()))
        for place, line in enumerate(page or [""]):
            for level, title in headings.get(place, ()):
                end()
                path.enter(level, title)
            if place in inside or not line:
                continue
            if not text or places[-1][1]["page"] != number:
                places.append((len(text), {"page": number}))
            text = f"{text[:-1]}{line}" if _is_cut(text, line) else f"{text} {line}" if text else line
            if line[-1] in _STOPS and len(line) < _SHORT_LINE * usual:
                end()
    end()
    return blocks


def _headings_on(
    page: Sequence[str], bookmarks: Iterable[tuple[int, str]]
) -> tuple[dict[int, list[tuple[int, str]]], set[int]]:
    """Return the (level, title) of the headings that begin at a line of a page, and the lines that belong to headings.

    A heading may be wrapped. One that is missing in the text, such as on a scanned cover, begins where the previous
    one does.
    """
    found, inside, last = dict[int, list[tuple[int, str]]](), set[int](), 0
    for level, title in bookmarks:
        span = next(
            (
                (start, end)
                for start in range(len(page))
                for end in range(start + 1, min(start + _HEADING_LINES, len(page)) + 1)
                if start not in inside and _letters("".join(page[start:end])) == _letters(title)
            ),
            None,
        )
        if span is not None:
            last, title = span[0], " ".join(page[slice(*span)])
            inside.update(range(*span))
        found.setdefault(last, []).append((level, title))
    return found, inside


def _is_cut(text: str, line: str) -> bool:
    """Return whether a word is hyphenated at the end of a line."""
    return len(text) > 1 and text[-1] in "-\u00ad" and text[-2].isalpha() and line[:1].islower()


# DOCX


def _docx(content: bytes, name: str) -> Content:
    try:
        import docx
    except ImportError as error:
        raise _needs_extra(name, "DOCX") from error
    _check_unpacked(content, name)
    try:
        document = docx.Document(io.BytesIO(content))
        found = list(_docx_blocks(document))
    except Exception as error:  # damaged files raise errors of many kinds
        raise InvalidError(f"{name}: it is a damaged DOCX file: {error}", hint="open and save it") from error
    pages = max((block.places[-1][1]["page"] for block in found), default=1)
    if pages > 1:
        return Content(blocks=found, pages=pages)
    numbered = [
        Block(text=block.text, places=((0, {"paragraph": number}),), headings=block.headings)
        for number, block in enumerate(found, 1)
    ]
    return Content(blocks=numbered)


def _check_unpacked(content: bytes, name: str) -> None:
    """Check the unpacked size of a ZIP archive. Python reads no more of a member than its header states."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError) as error:
        raise InvalidError(f"{name}: it is a damaged DOCX file: {error}", hint="open and save it") from error
    size = sum(member.file_size for member in members)
    if size > _MAX_UNPACKED_BYTES or (size > _SUSPICIOUS_BYTES and size > _MOST_SQUEEZED * len(content)):
        raise InvalidError(f"{name}: it unpacks to {size:,} bytes", hint="this is unusual for a document; inspect it")


def _docx_blocks(document: Any) -> Iterator[Block]:
    """Yield paragraphs and table rows, each with its page in Word's last layout."""
    path, page = _Headings(), 1
    breaks = _RENDERED_BREAKS if document.element.body.xpath(_RENDERED_BREAKS) else _STATED_BREAKS
    for item in document.iter_inner_content():
        if hasattr(item, "rows"):
            rows = ([" ".join(cell.text.split()) for cell in row.cells] for row in item.rows)
            text = "\n".join(" | ".join(dict.fromkeys(cells)) for cells in rows)
            if text.strip(" |\n"):
                yield Block(text=text, places=((0, {"page": page}),), headings=path.titles)
            continue
        before, after = _breaks_of(item, breaks)
        page += before
        text = _visible(item)
        level = _heading_level(item)
        if level:
            path.enter(level, " ".join(text.split()))
        elif text.strip():
            yield Block(text=text, places=((0, {"page": page}),), headings=path.titles)
        page += after


def _visible(paragraph: Any) -> str:
    """Return the text of a paragraph without text marked as hidden."""
    runs = (run for each in paragraph.iter_inner_content() for run in getattr(each, "runs", [each]))
    return "".join(run.text for run in runs if not run.font.hidden)


def _heading_level(paragraph: Any) -> int:
    """Return the level of a heading; 0 for other paragraphs. Style names are English in every language of Word."""
    name = (paragraph.style.name if paragraph.style is not None else "") or ""
    found = re.fullmatch(r"heading (\d)", name, re.IGNORECASE)
    return int(found[1]) if found else 1 if name == "Title" else 0


_RENDERED_BREAKS = ".//w:lastRenderedPageBreak"
_STATED_BREAKS = ".//w:br[@w:type='page'] | ./w:pPr/w:pageBreakBefore"
"""Word records where pages began in its last layout; other programs record only the page breaks that the author set."""


def _breaks_of(paragraph: Any, breaks: str) -> tuple[int, int]:
    """Return how many pages begin before the text of a paragraph, and how many after its beginning."""
    before, after, has_text = 0, 0, False
    for mark in paragraph._p.xpath(f"{breaks} | .//w:t"):
        is_text = mark.tag.endswith("}t")
        has_text = has_text or (is_text and bool((mark.text or "").strip()))
        before += not is_text and not has_text
        after += not is_text and has_text
    return before, after


_READERS: Mapping[str, Callable[[bytes, str], Content]] = {
    "pdf": _pdf,
    "docx": _docx,
    "html": _html,
    "markdown": _markdown,
    "code": _code,
    "mail": _mail,
    "text": _text,
}
