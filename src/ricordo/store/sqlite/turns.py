"""Turns and their order as a process has read them, kept from search to search.

A search looks at the turns around its candidates, and the next search at many of the same. What was read stays valid
while only new turns arrive: those change the order of their own session and nothing else. Anything that alters or
removes a row moves a counter in the store, and then everything kept is dropped.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ricordo.traits import HEADER, term_code

if TYPE_CHECKING:
    from ricordo.store.sqlite.snapshot import Snapshot

    Floats = NDArray[np.float32]
    Keys = NDArray[np.int64]
    Places = NDArray[np.intp]
    Codes = NDArray[np.uint32]

KEPT_MOST = 50_000
"""So many turns are kept by a process, about 10 MB; then it begins anew."""

WHOLE_MOST = 20_000
"""Up to so many memories a caller's turns are all read at once, when they ask a second time."""

_UNKNOWN = -1
_NONE = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """What ranking knows of some memories, in parallel arrays of length n.

    Attributes:
        keys: int64[n].
        sessions: int64[n]; of a memory outside any session the negative of its key.
        event_times: int64[n], Unix milliseconds.
        speakers: int32[n], places in `names`.
        names: of all speakers, None for a memory nobody speaks.
        flags: uint32[n], those of `ricordo.traits`.
        lengths: float32[n], in characters.
        codes: uint32[m], the codes of all words of all turns, turn by turn.
        starts: intp[n], where each turn begins in `codes`.
        before, after: places of the turns one and two before and after in the session, intp[2, n]; -1 for one that
            there is not or that is not among these.
    """

    keys: Keys
    sessions: Keys
    event_times: Keys
    speakers: NDArray[np.int32]
    names: Sequence[str | None]
    flags: Codes
    lengths: Floats
    codes: Codes
    starts: Places
    before: Places
    after: Places

    def __len__(self) -> int:
        return len(self.keys)

    def counts(self, terms: Sequence[str]) -> Floats:
        """How often each turn holds each term, float32[terms, n]."""
        found = np.zeros((len(terms), len(self)), np.float32)
        for row, term in enumerate(terms):
            places = np.flatnonzero(self.codes == term_code(term))
            holders = self.starts.searchsorted(places, side="right") - 1
            found[row] = np.bincount(holders, minlength=len(self))
        return found


@dataclass(slots=True)
class _Columns:
    """Rows in the order they were read; `previous` and `following` are keys, 0 at a session's end, -1 unknown."""

    keys: Keys = field(default_factory=lambda: np.empty(0, np.int64))
    spaces: Keys = field(default_factory=lambda: np.empty(0, np.int64))
    sessions: Keys = field(default_factory=lambda: np.empty(0, np.int64))
    event_times: Keys = field(default_factory=lambda: np.empty(0, np.int64))
    speakers: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    flags: Codes = field(default_factory=lambda: np.empty(0, np.uint32))
    lengths: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    starts: Places = field(default_factory=lambda: np.empty(0, np.intp))
    sizes: Places = field(default_factory=lambda: np.empty(0, np.intp))
    previous: Keys = field(default_factory=lambda: np.empty(0, np.int64))
    following: Keys = field(default_factory=lambda: np.empty(0, np.int64))
    known: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))

    def extend(self, **rows: NDArray[np.generic]) -> None:
        for name in self.__slots__:
            setattr(self, name, np.concatenate([getattr(self, name), rows[name]]))


class TurnTable:
    """The turns that were read. Shared by the readers of a process: hold `lock` from `follow` on."""

    _changes: int
    _last: int
    _rows: _Columns
    _codes: Codes
    _sorted: Keys
    _order: Places
    _names: list[str | None]
    _known_names: dict[str | None, int]

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.drop(changes=-1, last=0)

    def __len__(self) -> int:
        return len(self._rows.keys)

    def follow(self, snapshot: Snapshot) -> bool:
        """Come to where a snapshot is, and let go of what is no longer so. False if the table is ahead of it."""
        changes, last = snapshot.rows("turns_position")[0]
        if changes < self._changes or (changes == self._changes and last < self._last):
            return False
        if changes != self._changes or len(self) > KEPT_MOST:
            self.drop(changes=changes, last=last)
        elif last > self._last:
            grown = [row[0] for row in snapshot.rows("sessions_grown", {"after": self._last, "most": KEPT_MOST})]
            self._forget_order(np.array(grown, np.int64))
        self._last = last
        return True

    def read_all(self, snapshot: Snapshot, spaces: Sequence[int]) -> None:
        """Read all live turns of some spaces, and their order."""
        keys = np.array([row[0] for row in snapshot.rows("turns_live", {"spaces": json.dumps(spaces)})], np.int64)
        if not len(keys):
            return
        self._read(snapshot, keys)
        slots = self._slots(keys)
        rows = self._rows
        slots = slots[np.lexsort((keys, rows.event_times[slots], rows.sessions[slots]))]
        sessions, ordered = rows.sessions[slots], rows.keys[slots]
        goes_on = (sessions[1:] == sessions[:-1]) & (sessions[1:] != 0)
        rows.previous[slots] = np.append(_NONE, np.where(goes_on, ordered[:-1], _NONE))
        rows.following[slots] = np.append(np.where(goes_on, ordered[1:], _NONE), _NONE)
        rows.known[slots] = np.iinfo(np.int8).max

    def near(self, snapshot: Snapshot, keys: Keys, *, reach: int, within: int) -> Keys:
        """The live turns of the same sessions within some steps of given ones, themselves included, ascending.

        Args:
            keys: ascending.
            reach: so far around each its session is read.
            within: the steps, at most `reach`.
        """
        self._read(snapshot, keys)
        slots = self._slots(keys)
        slots = slots[slots >= 0]
        self._read_order(snapshot, slots[self._rows.known[slots] < reach], reach)
        found = [self._rows.keys[slots]]
        for links in (self._rows.previous, self._rows.following):
            step = slots
            for _ in range(within):
                towards = links[step]
                step = self._slots(towards[towards > _NONE])
                found.append(self._rows.keys[step])
        return np.unique(np.concatenate(found))

    def take(self, snapshot: Snapshot, keys: Keys, *, spaces: Sequence[int]) -> Turns:
        """The given turns in their order, those of other spaces and unknown ones left out."""
        self._read(snapshot, keys)
        slots = self._slots(keys)
        slots = slots[slots >= 0]
        rows = self._rows
        slots = slots[np.isin(rows.spaces[slots], spaces)]
        ids, sizes = rows.keys[slots], rows.sizes[slots]
        starts = np.cumsum(sizes) - sizes
        where = np.arange(int(sizes.sum())) + np.repeat(rows.starts[slots] - starts, sizes)
        sessions = rows.sessions[slots]
        places = np.full(len(self) + 1, -1, np.intp)
        places[slots] = np.arange(len(slots))
        return Turns(
            keys=ids, sessions=np.where(sessions == 0, -ids, sessions), event_times=rows.event_times[slots],
            speakers=rows.speakers[slots], names=self._names, flags=rows.flags[slots], lengths=rows.lengths[slots],
            codes=self._codes[where], starts=starts, before=self._walk(rows.previous, slots, places),
            after=self._walk(rows.following, slots, places),
        )  # fmt: skip

    def _walk(self, links: Keys, slots: Places, places: Places) -> Places:
        """Places of the turns one and two steps along; `places` has -1 for what is not among them, and at its end."""
        first = self._slots(links[slots])
        second = np.where(first >= 0, self._slots(links[first]), -1)
        return np.stack([places[first], places[second]])

    def _slots(self, keys: Keys) -> Places:
        """Rows of keys; -1 for a key that is not here."""
        if not len(self._sorted):
            return np.full(len(keys), -1, np.intp)
        found = np.minimum(self._sorted.searchsorted(keys), len(self._sorted) - 1)
        return np.where(self._sorted[found] == keys, self._order[found], -1)

    def _read(self, snapshot: Snapshot, keys: Keys) -> None:
        """Make sure of the rows of some turns."""
        missing = np.unique(keys[self._slots(keys) < 0])
        rows = snapshot.rows("traits_of", {"keys": json.dumps(missing.tolist())}) if len(missing) else []
        if not rows:
            return
        ids, spaces, sessions, event_times, speakers, traits = zip(*rows, strict=True)
        codes = np.frombuffer(b"".join(traits), "<u4").astype(np.uint32)
        sizes = np.array([len(each) for each in traits], np.intp) // codes.itemsize
        heads = np.cumsum(sizes) - sizes
        known = self._known_names
        for name in set(speakers).difference(known):
            known[name] = len(self._names)
            self._names.append(name)
        new = np.array(ids, np.int64)
        at = self._sorted.searchsorted(new)
        self._order = np.insert(self._order, at, np.arange(len(self), len(self) + len(new)))
        self._sorted = np.insert(self._sorted, at, new)
        self._rows.extend(
            keys=new, spaces=np.array(spaces, np.int64), sessions=np.array(sessions, np.int64),
            event_times=np.array(event_times, np.int64), flags=codes[heads],
            lengths=codes[heads + 1].astype(np.float32),
            speakers=np.array([known[name] for name in speakers], np.int32), starts=len(self._codes) + heads + HEADER,
            sizes=sizes - HEADER, previous=np.full(len(new), _UNKNOWN), following=np.full(len(new), _UNKNOWN),
            known=np.zeros(len(new), np.int8),
        )  # fmt: skip
        self._codes = np.concatenate([self._codes, codes])

    def _read_order(self, snapshot: Snapshot, slots: Places, reach: int) -> None:
        """Make sure of what stands around some turns, `reach` steps either way."""
        rows = self._rows
        outside = slots[rows.sessions[slots] == 0]
        rows.previous[outside] = rows.following[outside] = _NONE
        inside = slots[rows.sessions[slots] != 0]
        if len(inside):
            values = {"keys": json.dumps(rows.keys[inside].tolist()), "each": reach}
            lines = [_line(*row, each=reach) for row in snapshot.rows("windows", values)]
            line = np.fromstring(",".join(lines), dtype=np.int64, sep=",")
            self._read(snapshot, line[line > _NONE])
            self._link(line)
        self._knows(slots, reach)

    def _knows(self, slots: Places, reach: int) -> None:
        """Note how far around some turns, and around those near them, the order is known now."""
        rows = self._rows
        rows.known[slots] = reach
        for links in (rows.previous, rows.following):
            step = slots
            for left in range(reach - 1, 0, -1):
                step = self._slots(links[step])
                step = step[step >= 0]
                rows.known[step] = np.maximum(rows.known[step], left)

    def _link(self, line: Keys) -> None:
        """Take over the order of pieces of sessions: -1 between pieces, 0 where a session begins or ends."""
        rows, slots = self._rows, self._slots(line)
        first, second = line[:-1], line[1:]
        goes_on = (first > _NONE) & (second != _UNKNOWN)
        rows.following[slots[:-1][goes_on]] = second[goes_on]
        came_from = (second > _NONE) & (first != _UNKNOWN)
        rows.previous[slots[1:][came_from]] = first[came_from]

    def _forget_order(self, sessions: Keys) -> None:
        rows = np.isin(self._rows.sessions, sessions)
        self._rows.known[rows] = 0
        self._rows.previous[rows] = self._rows.following[rows] = _UNKNOWN

    def drop(self, *, changes: int, last: int) -> None:
        """Begin anew."""
        self._changes, self._last = changes, last
        self._rows = _Columns()
        self._codes = np.empty(0, np.uint32)
        self._sorted = np.empty(0, np.int64)
        self._order = np.empty(0, np.intp)
        self._names = []
        self._known_names = {}


def _line(key: int, before: str | None, after: str | None, *, each: int) -> str:
    """A piece of a session in order; with a 0 where fewer than asked for stand on a side, and -1 at its end."""
    earlier = before.split(",")[::-1] if before else []
    later = after.split(",") if after else []
    begin = ["0"] if len(earlier) < each else []
    end = ["0"] if len(later) < each else []
    return ",".join([*begin, *earlier, str(key), *later, *end, "-1"])
