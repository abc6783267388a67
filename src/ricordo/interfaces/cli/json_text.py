"""Edit the text of a JSON file without reformatting it: comments and unchanged parts stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ricordo.errors import InvalidError

_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_REPAIR = "repair the file by hand first"
_LITERAL = re.compile(r"[^\s,\]}/]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A member of an object (with its name) or an element of an array; `begin` is where its name begins."""

    name: str | None
    begin: int
    value: int
    end: int


class JsonText:
    """The text of a JSON document, with or without comments.

    Raises:
        InvalidError: the text is not JSON, or not an object.
    """

    def __init__(self, text: str, *, name: str) -> None:
        self.text = text if text.strip() else "{}\n"
        self._name = name
        if not isinstance(self.value(), dict):
            raise InvalidError(f"{name} is not a JSON object", hint=_REPAIR)

    def value(self) -> Any:
        """Return the parsed document."""
        try:
            return json.loads(_without_comments(self.text))
        except (ValueError, RecursionError) as error:
            raise InvalidError(f"{self._name} is not JSON: {error}", hint=_REPAIR) from error

    def put(self, path: Sequence[str], value: object) -> None:
        """Set a member, creating missing objects on its path."""
        place = self._root()
        for depth, name in enumerate(path):
            if self.text[place] != "{":
                raise InvalidError(f"{self._name}: {path[depth - 1]!r} is not an object", hint=_REPAIR)
            found = next((each for each in self._parts(place) if each.name == name), None)
            if found is None:
                for outer in reversed(path[depth + 1 :]):
                    value = {outer: value}
                self._insert(place, depth, f"{json.dumps(name)}: ", value)
                return
            if depth == len(path) - 1:
                self._replace(found, depth, value)
                return
            place = found.value

    def append(self, path: Sequence[str], value: object) -> None:
        """Append an element to an array, creating the array if it is missing."""
        place = self._find(path)
        if place is None:
            self.put(path, [value])
        elif self.text[place] != "[":
            raise InvalidError(f"{self._name}: {path[-1]!r} is not an array", hint=_REPAIR)
        else:
            self._insert(place, len(path), "", value)

    def remove(self, path: Sequence[str], element: int | None = None) -> None:
        """Remove a member, or one element of the array at `path`, and any container that becomes empty."""
        place = self._find(path if element is not None else path[:-1])
        if place is None:
            return
        parts = list(self._parts(place))
        at = (
            element if element is not None else next((n for n, each in enumerate(parts) if each.name == path[-1]), None)
        )
        if at is None or at >= len(parts):
            return
        if len(parts) == 1 and path[:-1]:
            self.remove(path if element is not None else path[:-1])
            return
        begin = parts[at - 1].end if at else place + 1
        end = parts[at].end if at or len(parts) == 1 else parts[1].begin
        if not at and len(parts) > 1:
            begin = parts[0].begin
        elif len(parts) == 1:
            end = self._close(parts[0].end)
        self.text = self.text[:begin] + self.text[end:]

    # inside

    def _root(self) -> int:
        return self._after_space(0)

    def _after_space(self, place: int) -> int:
        found = _SPACE.match(self.text, place)
        return place if found is None else found.end()

    def _find(self, path: Sequence[str]) -> int | None:
        place = self._root()
        for name in path:
            if self.text[place] != "{":
                return None
            found = next((each for each in self._parts(place) if each.name == name), None)
            if found is None:
                return None
            place = found.value
        return place

    def _parts(self, place: int) -> Iterator[_Part]:
        """Yield the parts of the object or array that begins at a position."""
        is_object = self.text[place] == "{"
        place = self._after_space(place + 1)
        while self.text[place] not in "}]":
            begin, name = place, None
            if is_object:
                end = self._end(place)
                name = json.loads(self.text[place:end])
                place = self._after_space(self._after_space(end) + 1)  # the colon
            end = self._end(place)
            yield _Part(name=name, begin=begin, value=place, end=end)
            place = self._after_space(end)
            if self.text[place] == ",":
                place = self._after_space(place + 1)

    def _end(self, place: int) -> int:
        """Return the end of the value that begins at a position."""
        if self.text[place] in "{[":
            last = place + 1
            for each in self._parts(place):
                last = each.end
            return self._close(last) + 1
        found = (_STRING if self.text[place] == '"' else _LITERAL).match(self.text, place)
        if found is None:
            raise InvalidError(f"{self._name} is not JSON", hint=_REPAIR)
        return found.end()

    def _close(self, place: int) -> int:
        """Return the position of the closing bracket after the last part, which a trailing comma may follow."""
        place = self._after_space(place)
        return self._after_space(place + 1) if self.text[place] == "," else place

    def _indent(self) -> str:
        found = re.search(r"\n([ \t]+)\"", self.text)
        return found[1] if found else "  "

    def _written(self, value: object, depth: int) -> str:
        text = json.dumps(value, indent=self._indent(), ensure_ascii=False)
        return text.replace("\n", "\n" + self._indent() * depth)

    def _insert(self, place: int, depth: int, head: str, value: object) -> None:
        inner, parts = "\n" + self._indent() * (depth + 1), list(self._parts(place))
        new = inner + head + self._written(value, depth + 1)
        if parts:
            at = parts[-1].end
            self.text = self.text[:at] + "," + new + self.text[at:]
            return
        close = self._close(place + 1)
        held = self.text[place + 1 : close].rstrip()
        self.text = self.text[: place + 1] + held + new + "\n" + self._indent() * depth + self.text[close:]

    def _replace(self, part: _Part, depth: int, value: object) -> None:
        self.text = self.text[: part.value] + self._written(value, depth + 1) + self.text[part.end :]


def _without_comments(text: str) -> str:
    """Return JSON without comments and trailing commas."""
    parts = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL)
    return parts.sub(lambda found: found[1] or "", text)
