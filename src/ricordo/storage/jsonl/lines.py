"""Lines of JSON: reading, checking and writing them, and converting their values.

A line refers to other rows by public ids. Besides its content, it contains `row` (the row's own key), `commit` (the
commit that wrote it) and `seal` (a hash that reveals later changes). Tables without history have a `sum` instead.
Absent values and defaults are left out.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from ricordo.clock import from_ms, to_ms
from ricordo.model import RowState
from ricordo.storage.key import LineCipher
from ricordo.text.passages import passages_of

Line = dict[str, Any]
"""A parsed line: field to value."""

LARGEST_NUMBER = 1 << 63
_PART_BYTES = 1 << 22
_SUM_BYTES = 8
_SUM, _SUM_END = b',"sum":"', b'"}'
_SUM_AT = -(len(_SUM) + 2 * _SUM_BYTES + len(_SUM_END))
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_FIELD_TYPES: Mapping[str, tuple[type, ...]] = {
    "commit": (int,),
    "row": (str, list),
    "kind": (str,),
    "id": (str,),
    "seal": (str,),
    "sum": (str,),
    "owner_user_id": (str,),
    "chat_id": (str,),
    "session_id": (str,),
}
"""The fields that describe a line itself, with the types of their values."""
_NAMED_MOST = 20

_valid_types: set[tuple[type, ...]] = set()
"""The combinations of field types found valid so far. They are few, while there may be a million lines."""

encode: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class LineError(ValueError):
    """A line that cannot become a row. The message says why."""


@dataclass(frozen=True, slots=True)
class HandLine:
    """A line that no commit wrote in this form: it was written or altered by hand."""

    file: str
    offset: int
    line: Line
    table: str


class UnusedLines(dict[tuple[str, int], str]):
    """Lines that did not become rows, with the reason, by file and byte offset (negative if unknown)."""

    def after(self, cut: Mapping[str, Sequence[tuple[int, int]]]) -> UnusedLines:
        """Return the same lines at their new offsets after others, given as (offset, bytes) by file, were cut."""
        return UnusedLines(
            {
                (file, offset - sum(size for at, size in cut.get(file, ()) if at < offset)): why
                for (file, offset), why in self.items()
            }
        )

    @property
    def places(self) -> list[str]:
        """Descriptions of the first lines."""
        named = islice(self.items(), _NAMED_MOST)
        return [f"{file}{'' if offset < 0 else f' at byte {offset}'}: {why}" for (file, offset), why in named]


@dataclass(slots=True)
class Findings:
    """What was found in the files.

    Args:
        commits: the number of new commits.
        by_hand: lines written or changed by hand.
        states: the new state of rows whose lines were deleted by hand.
        uncommitted: offsets of lines that belong to no commit, by file.
        unused: lines that cannot become rows.
    """

    lines: int = 0
    commits: int = 0
    by_hand: list[HandLine] = field(default_factory=list)
    states: list[RowState] = field(default_factory=list)
    uncommitted: dict[str, list[int]] = field(default_factory=dict)
    unused: UnusedLines = field(default_factory=UnusedLines)

    @property
    def changed_by_hand(self) -> int:
        """The number of changes made by hand."""
        return len(self.by_hand) + len(self.states)

    def cut(self, file: str, offset: int) -> None:
        """Record a line that belongs to no commit."""
        self.uncommitted.setdefault(file, []).append(offset)


# reading files


def lines_of(path: Path, *, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line without its newline) for each line of a file, including a last line without a newline."""
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(start)
        offset = start
        for raw in file:
            yield offset, raw.removesuffix(b"\n")
            offset += len(raw)


def count_lines(path: Path) -> int:
    """Return the number of newlines in a file."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(part.count(b"\n") for part in iter(lambda: file.read(_PART_BYTES), b""))


# reading lines


def opened(cipher: LineCipher | None, name: str, raw: bytes) -> bytes:
    """Return a line of the file `name` decrypted. Raises LineError."""
    try:
        return raw if cipher is None else cipher.open(name, raw)
    except ValueError as error:
        raise LineError(str(error)) from None


def quick_reader() -> Callable[[bytes], Any]:
    """Return a JSON reader that is twice as fast as `json`, but takes as long to import as a thousand lines."""
    from pydantic_core import from_json

    return partial(from_json, cache_strings="keys")


def parsed(raw: bytes, read: Callable[[bytes], Any] = json.loads) -> Line:
    """Parse and check a line. Raises LineError."""
    found = decoded(raw, read)
    # A line edited by hand may have no sum.
    if raw[_SUM_AT : _SUM_AT + len(_SUM)] == _SUM and raw[_SUM_AT + len(_SUM) :] != _sum_of(raw[:_SUM_AT]) + _SUM_END:
        raise LineError("altered since it was written")
    _check_fields(raw, found)
    return found


def decoded(raw: bytes, read: Callable[[bytes], Any] = json.loads) -> Line:
    """Parse a line that `parsed` has accepted before. Raises LineError if it is not a JSON object."""
    try:
        found = read(raw)
    except (ValueError, RecursionError):
        # The strict reader rejects some JSON that others accept, such as an unpaired surrogate.
        if read is json.loads:
            raise LineError("not JSON") from None
        return decoded(raw)
    if not isinstance(found, dict):
        raise LineError("not a JSON object")
    return found


def _check_fields(raw: bytes, line: Line) -> None:
    types = tuple(map(type, map(line.get, _FIELD_TYPES)))
    if types not in _valid_types:
        for (name, allowed), given in zip(_FIELD_TYPES.items(), types, strict=True):
            if given not in (*allowed, type(None)):
                raise LineError(f"{name} is {line[name]!r:.40}")
        _valid_types.add(types)
    if not 0 <= (line.get("commit") or 0) < LARGEST_NUMBER:
        raise LineError(f"{line['commit']} is not a commit")
    if (b"\\u" in raw or b"\xed" in raw) and _SURROGATE.search(raw):
        try:
            encode(line).encode()
        except UnicodeEncodeError:
            raise LineError("it has an unpaired surrogate, which is not text") from None


# reading values


def text_in(line: Line, name: str) -> str:
    """Return a text field; "" if it is absent. Raises LineError."""
    value = line.get(name)
    if value is not None and not isinstance(value, str):
        raise LineError(f"{name} is not text")
    return value or ""


def milliseconds(text: Any) -> int:
    """Return the Unix milliseconds of ISO 8601 text, which is UTC if it has no zone. Raises LineError."""
    try:
        return _milliseconds(text)
    except (TypeError, ValueError, OverflowError):
        raise LineError(f"{text!r} is not a time") from None


@lru_cache(maxsize=4_096)  # a time is often repeated within a line and in the lines next to it
def _milliseconds(text: str) -> int:
    at = datetime.fromisoformat(text)
    return to_ms(at if at.tzinfo is not None else at.replace(tzinfo=UTC))


def whole_number(value: Any) -> int:
    """Return an integer that SQLite can store. Raises LineError."""
    if not isinstance(value, int) or not -LARGEST_NUMBER <= value < LARGEST_NUMBER:
        raise LineError(f"{value!r:.40} is not a number that fits")
    return int(value)


def real_number(value: Any) -> float:
    """Return a number as a float. Raises LineError."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise LineError(f"{value!r} is not a number")
    try:
        return float(value)
    except OverflowError:
        raise LineError(f"{value!r:.40} is not a number that fits") from None


def json_text(value: Any) -> str:
    """Return a JSON value as text; a text is returned unchanged."""
    return value if isinstance(value, str) else encode(value)


def base64_bytes(value: Any) -> bytes:
    """Return the bytes of base64 text. Raises LineError."""
    try:
        return b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise LineError("not base64") from None


# writing


def iso(ms: int) -> str:
    """Return Unix milliseconds as ISO 8601 text in UTC."""
    return from_ms(ms).isoformat(timespec="milliseconds")


def data(line: Mapping[str, Any]) -> bytes:
    """Return the bytes of a line, with its newline."""
    return encode(line).encode() + b"\n"


def summed(line: Mapping[str, Any]) -> bytes:
    """Return the bytes of a line without a seal, with a sum that reveals damage."""
    plain = encode(line).encode()[:-1]
    return b"".join((plain, _SUM, _sum_of(plain), _SUM_END, b"\n"))


def sealed(cipher: LineCipher | None, name: str, lines: Iterable[bytes]) -> Iterable[bytes]:
    """Return lines as they are stored in the file `name`, encrypted if there is a cipher."""
    return lines if cipher is None else (cipher.seal(name, line) for line in lines)


def _sum_of(plain: bytes) -> bytes:
    return blake2b(plain, digest_size=_SUM_BYTES).hexdigest().encode()


def content_hash(content: str, speaker: str | None) -> str:
    """Return a hash of the text from which vectors were computed, and of its division into passages."""
    passages = len(passages_of(content))
    return _hash(f"{speaker or ''}\0{content}" if passages == 1 else f"{passages}\0{speaker or ''}\0{content}")


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()


def line_mark(line: Line) -> str:
    """Return the mark by which a commit names an adopted line."""
    return _hash("\0" + json.dumps(line, sort_keys=True, ensure_ascii=True))
