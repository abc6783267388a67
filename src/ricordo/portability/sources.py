"""Untrusted files, folders, archives and databases, read within limits.

Nothing is unpacked to disk, no link out of a folder is followed, and no size in a header is trusted.
"""

from __future__ import annotations

import json
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from ricordo.errors import InvalidError
from ricordo.storage import foreign

Row = Mapping[str, Any]
Placed = tuple[str, Row]
"""A row and its place as users know it, such as "line 3"."""

MAX_FILE_BYTES = 2_000_000_000
MAX_LINE_BYTES = 50_000_000
MAX_FILES = 10_000
MAX_MEMBER_BYTES = 1_000_000_000
_MOST_SQUEEZED = 1_000
"""Text compresses about 20 times; a file that unpacks to 1,000 times its size is treated as an attack."""
_SUSPICIOUS_BYTES = 20_000_000
_MOST_SQUEEZED_IN_ALL = 100
_SUSPICIOUS_IN_ALL_BYTES = 50_000_000
NOT_TEXT = "give a text file in a known format"
_CONTAINERS = 1_000_000
_CHARS_EACH = 16
"""JSON with more than one list or object per this many characters takes over ten times its size in memory."""
_PART_BYTES = 1_000_000
_LOOKED_AT_LINES = 20
_HEAD_BYTES = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A text, the name by which users know it, and when its file was last changed."""

    name: str
    text: str
    changed_at: datetime


class Source:
    """A file, folder, archive or database. Its parts are read on demand."""

    def __init__(self, path: Path, *, store: Path | None = None) -> None:
        self.path = path
        self.notes: list[str] = []
        self.damaged: dict[str, None] = {}  # notes on incomplete files, in order
        self.watched: frozenset[Path] = frozenset()  # the files that are documents already
        self._unpacked: dict[str, int] = {}  # bytes by member
        self._status = _checked_place(path, store)

    @cached_property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self._status.st_mode)

    @property
    def changed_at(self) -> datetime:
        """When the file or folder was last changed."""
        return datetime.fromtimestamp(self._status.st_mtime, UTC)

    @cached_property
    def is_database(self) -> bool:
        return not self.is_folder and foreign.is_database(self.path)

    @cached_property
    def tables(self) -> Mapping[str, frozenset[str]]:
        """The tables of a database with their columns; empty if it is not a database."""
        return foreign.tables(self.path) if self.is_database else {}

    def table(self, name: str) -> list[Placed]:
        """Return the rows of a table with their places; [] if there is no such table."""
        if name not in self.tables:
            return []
        return [(f"{name} row {number}", row) for number, row in foreign.rows(self.path, name)]

    @cached_property
    def is_archive(self) -> bool:
        return not self.is_folder and not self.is_database and zipfile.is_zipfile(self.path)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The sorted relative paths of the files in a folder or an archive; for a single file, its name."""
        if self.is_folder:
            return tuple(sorted(self._inside))
        if self.is_archive:
            return tuple(sorted(_members(self.path, self.notes)))
        return (self.path.name,)

    @cached_property
    def _inside(self) -> dict[str, Path]:
        return _walked(self.path, self.notes)

    def text(self, name: str | None = None) -> TextFile:
        """Return the text of one file in a folder or archive, or of the single file.

        Raises:
            InvalidError: the content is not UTF-8 text, or is too large.
        """
        if self.is_archive:
            name = name or self.names[0]
            text = decoded(self._member(name), name=name)
            return TextFile(name=f"{self.path.name}/{name}", text=text, changed_at=self.changed_at)
        path = self._inside[name] if self.is_folder and name is not None else self.path
        content, changed_at = _bytes(path)
        return TextFile(name=name or path.name, text=decoded(content, name=str(name or path)), changed_at=changed_at)

    def _member(self, name: str) -> bytes:
        """Unpack a member of an archive, within the limit for all members together."""
        left = _most_in_all(self._status.st_size) - sum(self._unpacked.values())
        content = _unpacked(self.path, name, most=left + self._unpacked.get(name, 0))
        self._unpacked[name] = len(content)
        return content

    @cached_property
    def head(self) -> bytes:
        """The first bytes of a single text file; empty otherwise."""
        if self.is_folder or self.is_database or self.is_archive:
            return b""
        with self.path.open("rb") as file:
            return file.read(_HEAD_BYTES)

    @cached_property
    def own_text(self) -> str:
        """The text of a single text file; empty otherwise."""
        return "" if self.is_folder or self.is_database or self.is_archive else self.text().text

    @cached_property
    def document(self) -> Any:
        """The JSON value of a single file; None if it is not one JSON value."""
        return None if self._has_lines else one_document(self.own_text, name=str(self.path))

    @cached_property
    def _has_lines(self) -> bool:
        return has_json_lines(self.own_text)

    @cached_property
    def lines(self) -> JsonLines:
        """The JSON objects of a single file, one per line, or its one object."""
        if self._has_lines:
            return json_lines(self.own_text)
        if isinstance(self.document, dict):
            return JsonLines(rows=(("line 1", self.document),), refused=())
        return JsonLines(rows=(), refused=())

    @cached_property
    def first_rows(self) -> Sequence[Row]:
        """The first 20 JSON objects, from which a format is recognized."""
        return [row for _, row in self.lines.rows[:_LOOKED_AT_LINES]]

    def json_file(self, *wanted: Callable[[str], bool]) -> list[tuple[str, Any]]:
        """Return (name, value) of the JSON files whose names match, or of the single file."""
        if not (self.is_folder or self.is_archive):
            return [] if self.document is None else [(self.path.name, self.document)]
        found = []
        for name in self.names:
            if any(fits(PurePosixPath(name).name) for fits in wanted):
                file = self.text(name)
                found.append((file.name, one_document(file.text, name=file.name)))
                if found[-1][1] is None and (damage := _damage(file.text)):
                    self.damaged[f"{file.name}: {damage}"] = None
        return found

    def check_complete(self) -> None:
        """Raise InvalidError if a JSON file in the source is incomplete or damaged."""
        if damage := _damage(self.own_text):
            self.damaged[f"{self.path.name}: {damage}"] = None
        for note in self.damaged:
            raise InvalidError(f"{self.path} cannot be imported: {note}", hint="export or download it again")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLines:
    """JSON objects with their places, and why other lines were refused."""

    rows: Sequence[Placed]
    refused: tuple[str, ...]


def is_folder_store(path: Path) -> bool:
    """Return whether a folder is a store of Ricordo. Its index may be missing, or all else before its first change."""
    commits, index, lock, store = (
        os.path.exists(path / name)  # noqa: PTH110  # False, not an error, in a folder that cannot be read
        for name in ("commits.jsonl", "index.db", ".lock", "store.jsonl")
    )
    return (lock and index) or (commits and (index or store))


def _checked_place(path: Path, store: Path | None) -> os.stat_result:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidError(f"{path} cannot be read: {reason}", hint="check the path and its permissions") from error
    if path.name.endswith(("-wal", "-shm", "-journal")):  # reading one in use would drop SQLite's locks on it
        raise InvalidError(f"{path} is part of a database", hint="give the path of the database itself")
    if store is not None and store.exists() and os.path.samestat(status, store.stat()):
        raise InvalidError(f"{path} is this memory's own store", hint="give the path of another file")
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise InvalidError(f"{path} is neither a file nor a folder", hint="write it to a file and import that")
    if stat.S_ISDIR(status.st_mode) and is_folder_store(path):
        raise InvalidError(f"{path} is a Ricordo store", hint=f"`ricordo --store {path} export all.jsonl`")
    return status


def _bytes(path: Path) -> tuple[bytes, datetime]:
    """Return the content of a file, and when it was last changed."""
    try:
        status = path.stat()
        if status.st_size > MAX_FILE_BYTES:
            raise InvalidError(f"{path} is larger than 2 GB", hint="split it")
        return path.read_bytes(), datetime.fromtimestamp(status.st_mtime, UTC)
    except OSError as error:
        raise InvalidError(f"{path} cannot be read: {error.strerror}", hint="check its permissions") from error


def _walked(folder: Path, notes: list[str]) -> dict[str, Path]:
    """Return the files of a folder by relative path, without those of a store in it. Links out of the folder are
    skipped and noted.
    """
    root = folder.resolve()
    found: dict[str, Path] = {}

    def unread(error: OSError) -> None:
        notes.append(f"{Path(error.filename).relative_to(folder)}: it cannot be read: {error.strerror}")

    for place, folders, files in os.walk(folder, onerror=unread):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [name for name in folders if not is_folder_store(Path(place) / name)]
        links = [path for path in (Path(place) / name for name in sorted(folders)) if path.is_symlink()]
        notes += (f"{path.relative_to(folder)}: a link to a folder is not followed" for path in links)
        for name in sorted(files):
            path = Path(place) / name
            shown = path.relative_to(folder).as_posix()
            if name.startswith("."):
                continue
            if not path.resolve().is_relative_to(root):
                notes.append(f"{shown}: a link that leads out of the folder is not followed")
            elif os.path.isfile(path):  # noqa: PTH113  # as above
                found[shown] = path
            elif not os.access(place, os.X_OK):
                notes.append(f"{shown}: it cannot be read: its folder cannot be opened")
            if len(found) > MAX_FILES:
                raise InvalidError(f"{folder} holds more than {MAX_FILES:,} files", hint="import parts of it")
    return found


def _members(path: Path, notes: list[str]) -> list[str]:
    """Return the files of an archive. Names that lead out of the archive are skipped and noted."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise InvalidError(f"{path} is not a complete ZIP archive: {error}", hint="download it again") from error
    if len(members) > MAX_FILES:
        raise InvalidError(f"{path} holds more than {MAX_FILES:,} files", hint="unpack what you need")
    if sum(member.file_size for member in members) > _most_in_all(
        path.stat().st_size
    ):  # headers may lie: see `_member`
        raise InvalidError(f"{path} unpacks to too much data", hint="unpack it yourself, and inspect it")
    names = []
    for member in members:
        parts = PurePosixPath(member.filename.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or ":" in str(parts)[:2]:
            notes.append(f"{member.filename[:100]!r}: a name that leads out of the archive is not read")
        elif not member.is_dir():
            names.append(member.filename)
    return names


def _most_in_all(archive_bytes: int) -> int:
    """Return the number of bytes to which all members of an archive may unpack together."""
    return min(MAX_FILE_BYTES, max(_SUSPICIOUS_IN_ALL_BYTES, archive_bytes * _MOST_SQUEEZED_IN_ALL))


def _unpacked(path: Path, name: str, *, most: int) -> bytes:
    """Unpack a member, counting its bytes, since the size in its header is not trusted.

    Args:
        most: the bytes that are left for this member.
    """
    parts: list[bytes] = []
    size = 0
    try:
        with zipfile.ZipFile(path) as archive:
            squeezed = archive.getinfo(name).compress_size * _MOST_SQUEEZED
            most = min(most, max(_SUSPICIOUS_BYTES, min(MAX_MEMBER_BYTES, squeezed)))
            with archive.open(name) as member:
                while size <= most and (part := member.read(_PART_BYTES)):
                    parts.append(part)
                    size += len(part)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError, zlib.error) as error:
        hint = "unpack it yourself, without a password, and import what is in it"
        raise InvalidError(f"{path}: {name} cannot be unpacked: {error}", hint=hint) from error
    if size > most:
        raise InvalidError(f"{path}: {name} unpacks to too much data", hint="unpack it yourself, and inspect it")
    return b"".join(parts)


def decoded(content: bytes, *, name: str) -> str:
    """Decode UTF-8 text, with or without a byte order mark.

    Raises:
        InvalidError: the content has another encoding, is not text, is a damaged archive, or is JSON that would take
            too much memory.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidError(f"{name} line 1: the text is UTF-16, not UTF-8", hint="iconv -f UTF-16 -t UTF-8 FILE > NEW")
    if content.startswith(b"PK\x03\x04"):
        raise InvalidError(f"{name} is an incomplete ZIP archive", hint="export or download it again")
    if (zero := content.find(b"\0")) >= 0:
        line = content.count(b"\n", 0, zero) + 1
        raise InvalidError(f"{name} line {line}: the content is not text", hint=NOT_TEXT)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidError(
            f"{name} line {line}: byte 0x{content[error.start]:02x} is not UTF-8",
            hint="iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW, or another source encoding",
        ) from error
    if text.lstrip()[:1] in ("{", "[") and text.count("[") + text.count("{") > max(
        _CONTAINERS, len(text) // _CHARS_EACH
    ):
        raise InvalidError(f"{name} holds too many tiny lists or objects", hint="no export looks like that; inspect it")
    return text


def one_document(text: str, *, name: str, is_checked: bool = True) -> Any:
    """Return the JSON value of a text, or None if it is not JSON.

    Raises:
        InvalidError: the JSON is nested too deeply, and `is_checked` is set.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except RecursionError as error:
        if not is_checked:
            return None
        raise InvalidError(f"{name}: nested too deeply", hint="no export is nested like that") from error
    except ValueError:
        return None


def _damage(text: str) -> str:
    """Return where JSON breaks off or is damaged; "" if it is complete, or is not JSON."""
    if text.lstrip()[:1] not in ("{", "[") or has_json_lines(text):
        return ""
    try:
        json.loads(text)
    except RecursionError:
        return "nested too deeply"
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip() or error.msg.startswith("Unterminated"):
            return f"incomplete, it ends within line {error.lineno}"
        return f"not valid JSON in line {error.lineno}: {error.msg}"
    except ValueError:
        return "not valid JSON: a number in it is too long"
    return ""


def has_json_lines(text: str) -> bool:
    """Return whether one of the first lines is a JSON object that is not the whole text."""
    lines = (line for line in text.split("\n") if line.strip())  # JSON may contain other separators of `splitlines`
    for line in islice(lines, _LOOKED_AT_LINES):
        if line.lstrip().startswith("{") and isinstance(one_document(line, name="", is_checked=False), dict):
            return len(text.strip()) > len(line.strip())
    return False


def objects_in(document: object, *keys: str) -> list[Row]:
    """Return the JSON objects in a list, or in the list under the first of some keys that an object has."""
    if isinstance(document, dict):
        document = next((document[key] for key in keys if key in document), None)
    return [row for row in document if isinstance(row, dict)] if isinstance(document, list) else []


def json_lines(text: str) -> JsonLines:
    """Return the JSON objects of a text with one per line."""
    rows: list[Placed] = []
    refused: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if len(line) > MAX_LINE_BYTES:
            refused.append(f"line {number}: longer than {MAX_LINE_BYTES // 1_000_000} MB")
            continue
        try:
            row = json.loads(line)
        except RecursionError:
            refused.append(f"line {number}: nested too deeply")
        except ValueError as error:
            refused.append(f"line {number}: not JSON: {error}")
        else:
            if isinstance(row, dict):
                rows.append((f"line {number}", row))
            else:
                refused.append(f"line {number}: not a JSON object")
    return JsonLines(rows=tuple(rows), refused=tuple(refused))
