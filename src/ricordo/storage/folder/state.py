"""How far an index has followed the files of its folder, kept in the index itself and so as old or as new as it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from ricordo.storage.database.queries import sql
from ricordo.storage.folder.files import Stamp, added, line_sum, stamp_of
from ricordo.storage.folder.layout import FILES, PEOPLE

_NAME = "folder"
_UNUSED = "lines not used"
_NAMED_MOST = 20


@dataclass(frozen=True, slots=True)
class Followed:
    """A file as it was when the index last looked, and the sum over its lines."""

    stamp: Stamp = Stamp()
    total: int = 0

    def grown(self, path: Path, data: bytes) -> Followed:
        """As it is after lines were added."""
        return Followed(stamp_of(path), added(self.total, line_sum(data)))


State = Mapping[str, Followed]


@dataclass(slots=True)
class Unused:
    """Lines that did not become rows, by file and offset in bytes (below 0 where that is not known), and why."""

    lines: dict[tuple[str, int], str] = field(default_factory=dict)

    def note(self, file: str, offset: int, why: str) -> None:
        """One more, or one more word on it."""
        self.lines.setdefault((file, offset), why)

    def after(self, cut: Mapping[str, Sequence[tuple[int, int]]]) -> Unused:
        """Where they stand once lines (offset, bytes) were taken out before them, by file."""
        return Unused(
            {
                (file, offset - sum(size for at, size in cut.get(file, ()) if at < offset)): why
                for (file, offset), why in self.lines.items()
            }
        )

    @property
    def places(self) -> list[str]:
        """The first ones, in words."""
        named = list(self.lines.items())[:_NAMED_MOST]
        return [f"{file}{'' if offset < 0 else f' at byte {offset}'}: {why}" for (file, offset), why in named]


def read_state(connection: apsw.Connection) -> State:
    """What the index says of its files; a fresh one has seen none."""
    text = connection.execute(sql("meta_get"), {"name": _NAME}).get
    found = json.loads(text) if text else {}
    return {name: _followed(found.get(name)) for name in (*FILES, PEOPLE)}


def _followed(values: list[int] | None) -> Followed:
    return Followed(Stamp(*values[:3]), values[3]) if values else Followed()


def write_state(connection: apsw.Connection, state: State) -> None:
    """Remember it, in the running transaction."""
    plain = {
        name: [each.stamp.size, each.stamp.changed, each.stamp.inode, each.total]
        for name, each in state.items()
        if each.stamp.size or each.stamp.inode
    }
    connection.execute(sql("meta_put"), {"name": _NAME, "value": json.dumps(plain, separators=(",", ":"))})


def read_unused(connection: apsw.Connection) -> Unused:
    """The lines of the files that this index could not use."""
    text = connection.execute(sql("meta_get"), {"name": _UNUSED}).get
    return Unused({(file, offset): why for file, offset, why in json.loads(text)} if text else {})


def write_unused(connection: apsw.Connection, unused: Unused) -> None:
    """Remember them, in the running transaction."""
    plain = [(file, offset, why) for (file, offset), why in unused.lines.items()]
    connection.execute(sql("meta_put"), {"name": _UNUSED, "value": json.dumps(plain)})


def is_telling(connection: apsw.Connection) -> bool:
    """Whether what an index says of its files can be read: it may have been damaged."""
    try:
        read_state(connection), read_unused(connection)
    except (ValueError, TypeError, LookupError, AttributeError):
        return False
    return True


def changed(folder: Path, state: State) -> list[str]:
    """The files that are not as the index saw them."""
    return [name for name, seen in state.items() if stamp_of(folder / name) != seen.stamp]
