"""Read the tables of a plain text: Markdown tables, boxes of dashes and pipes, and CSV. Each row becomes a sentence."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

_BORDER = re.compile(r"(?=.*[|+])[|+]?\s*:?[-=]{2,}:?\s*(?:[|+]\s*:?[-=]{2,}:?\s*)*[|+]?\Z")
_PIPE = re.compile(r"(?<!\\)\|")
_LEAST_LINES = 3
"""Two lines with as many commas may be prose."""


def without_tables(lines: Sequence[str]) -> Iterator[tuple[int, list[str], bool]]:
    """Split lines into texts and rows of tables: the place of the first line, the lines or the row, and whether it is a
    row, written as "Plant: Cactus, Water: monthly".
    """
    start = at = 0
    while at < len(lines):
        end = _end_of_table(lines, at)
        if end > at:
            if start < at:
                yield start, list(lines[start:at]), False
            yield from ((at + place, [row], True) for place, row in _rows(lines[at:end]))
            start = at = end
        else:
            at += 1
    if start < len(lines):
        yield start, list(lines[start:]), False


def _end_of_table(lines: Sequence[str], start: int) -> int:
    """Return the end of the table that begins at a line; `start` if none does."""
    end = start
    while end < len(lines) and (_PIPE.search(lines[end]) or _BORDER.match(lines[end])):
        end += 1
    drawn = lines[start:end]
    borders = [bool(_BORDER.match(line)) for line in drawn]
    if len(drawn) > 1 and not all(borders) and (any(borders[:2]) or all(line.startswith("|") for line in drawn)):
        return end
    return _end_of_csv(lines, start)


def _end_of_csv(lines: Sequence[str], start: int) -> int:
    for mark, least in (("\t", 2), (";", 3), (",", 3)):
        end, width = start, len(_values(lines[start], mark))
        while end < len(lines) and len(_values(lines[end], mark)) == width >= least:
            end += 1
        if end - start >= _LEAST_LINES:
            return end
    return start


def _values(line: str, mark: str) -> list[str]:
    """Return the values of a line of CSV; none if it is prose, where a space follows a comma, or not CSV at all."""
    try:
        found = next(csv.reader([line], delimiter=mark), []) if mark in line else []
    except csv.Error:
        return []
    return [] if any(value.startswith(" ") for value in found) else found


def _rows(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield each row of a table as a sentence, with its place."""
    is_drawn = any(_PIPE.search(line) for line in lines)
    mark = next((each for each in "\t;," if each in lines[0]), ",")
    table = [
        (place, _cells(line) if is_drawn else [each.strip() for each in _values(line, mark)])
        for place, line in enumerate(lines)
        if not _BORDER.match(line)
    ]
    head = table[0][1]
    has_border = is_drawn and len(table) > 1 and table[1][0] > table[0][0] + 1
    has_head = has_border or (not is_drawn and not any(char.isdigit() for cell in head for char in cell))
    names = head if has_head else []
    for place, cells in table[has_head:]:
        labels = [*names, *[""] * len(cells)]
        said = [f"{label}: {cell}" if label else cell for label, cell in zip(labels, cells, strict=False) if cell]
        if said:
            yield place, ", ".join(said)


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip().replace("\\|", "|") for cell in _PIPE.split(inner)]
