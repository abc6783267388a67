"""Turns and their order as a process has read them, kept from search to search.

A search looks at the turns around its candidates, and the next search at many of the same. What was read stays valid
while only new turns arrive: those change the order of their own session and nothing else. Anything that alters or
removes a row moves a counter in the store, and then everything kept is dropped.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
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

KEPT_MOST = 200_000
"""So many turns are kept by a process, about 35 MB; then it begins anew."""

WHOLE_MOST = 20_000
"""Up to so many memories a caller's turns are all read at once, when they ask a second time."""

# Row 0 is nobody: where a session ends, or where it is not known how it goes on.
_NOBODY = 0

_ROW = np.dtype([
    ("key", "i8"), ("space", "i8"), ("session", "i8"), ("event_time", "i8"), ("start", "i8"), ("size", "i4"),
    ("speaker", "i4"), ("flags", "u4"), ("length", "f4"), ("previous", "i4"), ("following", "i4"), ("known", "i1"),
])  # fmt: skip


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
        if not terms:
            return np.zeros((0, len(self)), np.float32)
        asked = [term_code(term) for term in terms]
        # What any term may have is found first: it is little, and the rest of the work is done on that alone.
        places = np.flatnonzero(np.logical_or.reduce([self.codes == code for code in asked]))
        holders, codes = self.starts.searchsorted(places, side="right") - 1, self.codes.take(places)
        return np.stack([
            np.bincount(holders[codes == code], minlength=len(self)).astype(np.float32) for code in asked
        ])  # fmt: skip


class TurnTable:
    """The turns that were read. Shared by the readers of a process: hold `lock` from `follow` on.

    A row is a turn, in the order they were read; `previous` and `following` are rows, and right as far as `known` steps
    around it.
    """

    _changes: int
    _last: int
    _rows: NDArray[np.void]
    _count: int
    _codes: Codes
    _codes_count: int
    _sorted: Keys
    _order: Places
    _names: list[str | None]
    _known_names: dict[str | None, int]

    def __init__(self, *, most: int = KEPT_MOST) -> None:
        """
        Args:
            most: how many turns are kept; then it begins anew, as it does when more than that have arrived unseen.
        """
        self.lock = threading.Lock()
        self._most = most
        self.drop(changes=-1, last=0)

    def drop(self, *, changes: int, last: int) -> None:
        """Begin anew."""
        self._changes, self._last = changes, last
        self._rows, self._count = np.zeros(1_024, _ROW), 1
        self._codes, self._codes_count = np.empty(16_384, np.uint32), 0
        self._sorted, self._order = np.empty(0, np.int64), np.empty(0, np.intp)
        self._names, self._known_names = [], {}

    def follow(self, snapshot: Snapshot) -> bool:
        """Come to where a snapshot is, and let go of what is no longer so. False if the table is ahead of it."""
        changes, last = snapshot.rows_of_store("turns_position")[0]
        if changes < self._changes or (changes == self._changes and last < self._last):
            return False
        if changes != self._changes or self._count > self._most or last - self._last > self._most:
            self.drop(changes=changes, last=last)
        elif last > self._last:
            grown = [row[0] for row in snapshot.rows("sessions_grown", {"after": self._last})]
            rows = np.isin(self._rows["session"][: self._count], grown)
            for name in ("known", "previous", "following"):
                self._rows[name][: self._count][rows] = 0
        self._last = last
        return True

    def read_all(self, snapshot: Snapshot, spaces: Sequence[int]) -> None:
        """Read all live turns of some spaces, and their order."""
        keys = np.array([row[0] for row in snapshot.rows("turns_live", {"spaces": json.dumps(spaces)})], np.int64)
        if not len(keys):
            return
        at, rows = self._read(snapshot, keys), self._rows
        at = at[np.lexsort((rows["key"][at], rows["event_time"][at], rows["session"][at]))]
        sessions = rows["session"][at]
        goes_on = (sessions[1:] == sessions[:-1]) & (sessions[1:] != 0)
        rows["previous"][at] = np.append(_NOBODY, np.where(goes_on, at[:-1], _NOBODY))
        rows["following"][at] = np.append(np.where(goes_on, at[1:], _NOBODY), _NOBODY)
        rows["known"][at] = np.iinfo(np.int8).max

    def around(self, snapshot: Snapshot, chosen: Keys, best: Keys, *, reach: int, allowed: Keys | None,
               spaces: Sequence[int], shelves: Sequence[str] | None = None) -> tuple[Turns, int]:  # fmt: skip
        """The candidates of a search, then the turns within `reach` steps of these; and how many candidates there are.

        Args:
            chosen: keys of candidates.
            best: those of them near which, within `reach` steps, others are candidates, too.
            allowed: ascending keys that these others must be among; None for all.
            spaces: whose turns may be given.
            shelves: of which shelves these others must be; None for any.
        """
        at = self._read(snapshot, chosen)
        found = self._found(best)
        self._read_order(snapshot, found, 2 * reach)
        near = self._near(found, reach)
        if allowed is not None:
            near = near[np.isin(self._rows["key"][near], allowed)]
        if shelves is not None:
            near = near[np.isin(self._rows["key"][near], self._on(snapshot, near, shelves))]
        candidates = self._distinct(np.append(at, near), spaces)
        self._read_order(snapshot, candidates, reach)
        around = self._distinct(self._near(candidates, reach), spaces, without=candidates)
        return self._taken(np.append(candidates, around)), len(candidates)

    def _on(self, snapshot: Snapshot, at: Places, shelves: Sequence[str]) -> list[int]:
        """The keys of those rows that lie on some shelves. A turn changes its shelf once; the table need not follow."""
        keys = json.dumps(np.unique(self._rows["key"][at]).tolist())
        return [key for (key,) in snapshot.rows("keys_on_shelves", {"keys": keys, "shelves": json.dumps(shelves)})]

    def _taken(self, at: Places) -> Turns:
        rows = self._rows.take(at)  # an eighth of what `[at]` takes, with rows of many fields
        keys, sessions = rows["key"].copy(), rows["session"]
        sizes = rows["size"].astype(np.intp)
        starts = np.cumsum(sizes) - sizes
        where = np.arange(int(sizes.sum())) + np.repeat(rows["start"] - starts, sizes)
        places = np.full(self._count, -1, np.intp)
        places[at] = np.arange(len(at))
        near = zip((rows["previous"], rows["following"]), self._links(), strict=True)
        before, after = (places.take(np.stack([one, links[one]])) for one, links in near)
        return Turns(
            keys=keys, sessions=np.where(sessions == 0, -keys, sessions), event_times=rows["event_time"],
            speakers=rows["speaker"], names=self._names, flags=rows["flags"], lengths=rows["length"],
            codes=self._codes.take(where), starts=starts, before=before, after=after,
        )  # fmt: skip

    def _links(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return self._rows["previous"], self._rows["following"]

    def _near(self, at: Places, within: int) -> Places:
        """The turns up to so many steps from given ones, repeats and nobody included."""
        found = []
        for links in self._links():
            step: NDArray[np.integer] = at
            for _ in range(within):
                step = links[step]
                found.append(step)
        return np.concatenate(found)

    def _distinct(self, at: Places, spaces: Sequence[int], without: Places | None = None) -> Places:
        """Rows of some spaces, each once, ascending by key."""
        marked = np.zeros(self._count, np.bool_)
        marked[at] = True
        marked[_NOBODY] = False
        if without is not None:
            marked[without] = False
        found = np.flatnonzero(marked)
        whose = self._rows["space"][found]
        found = found[np.logical_or.reduce([whose == space for space in (0, *spaces)])]
        keys = self._rows["key"][found]
        return found if (keys[1:] > keys[:-1]).all() else found[np.argsort(keys)]

    def _found(self, keys: Keys) -> Places:
        """Rows of keys; nobody for a key that is not here."""
        if not len(self._sorted):
            return np.zeros(len(keys), np.intp)
        found = np.minimum(self._sorted.searchsorted(keys), len(self._sorted) - 1)
        return np.where(self._sorted.take(found) == keys, self._order.take(found), _NOBODY)

    def _read(self, snapshot: Snapshot, keys: Keys) -> Places:
        """Make sure of some turns; their rows."""
        at = self._found(keys)
        missing = sorted(set(keys[at == _NOBODY].tolist()))
        rows = snapshot.rows("traits_of", {"keys": json.dumps(missing)}) if missing else []
        if not rows:
            return at
        ids, spaces, sessions, event_times, speakers, traits = zip(*rows, strict=True)
        codes = np.frombuffer(b"".join(traits), "<u4")
        sizes = np.array([len(each) for each in traits], np.intp) // codes.itemsize
        heads = np.cumsum(sizes) - sizes
        new = self._room(len(rows))
        for name, values in (
            ("key", ids), ("space", spaces), ("session", sessions), ("event_time", event_times),
            ("speaker", self._named(speakers)), ("flags", codes[heads]),
            ("length", codes[heads + 1]), ("size", sizes - HEADER), ("start", self._codes_count + heads + HEADER),
        ):  # fmt: skip
            new[name] = values
        self._keep_codes(codes)
        place = self._sorted.searchsorted(new["key"])
        self._order = np.insert(self._order, place, np.arange(self._count, self._count + len(rows)))
        self._sorted = np.insert(self._sorted, place, new["key"])
        self._count += len(rows)
        return self._found(keys)

    def _room(self, rows: int) -> NDArray[np.void]:
        """Rows to be written, past those in use."""
        if self._count + rows > len(self._rows):
            grown = np.zeros(2 * (self._count + rows), _ROW)
            grown[: self._count] = self._rows[: self._count]
            self._rows = grown
        return self._rows[self._count : self._count + rows]

    def _keep_codes(self, codes: Codes) -> None:
        end = self._codes_count + len(codes)
        if end > len(self._codes):
            grown = np.empty(2 * end, np.uint32)
            grown[: self._codes_count] = self._codes[: self._codes_count]
            self._codes = grown
        self._codes[self._codes_count : end] = codes
        self._codes_count = end

    def _named(self, speakers: Sequence[str | None]) -> list[int]:
        """The place of each in `names`; those not met before come in at its end."""
        known = self._known_names
        for speaker in dict.fromkeys(speakers):
            if speaker not in known:
                known[speaker] = len(self._names)
                self._names.append(speaker)
        return [known[speaker] for speaker in speakers]

    def _read_order(self, snapshot: Snapshot, at: Places, reach: int) -> None:
        """Make sure of what stands around some turns, `reach` steps either way."""
        at = at[(self._rows["known"][at] < reach) & (at != _NOBODY)]
        if not len(at):
            return
        inside = at[self._rows["session"][at] != 0]
        if len(inside):
            values = {"keys": json.dumps(self._rows["key"][inside].tolist()), "each": reach}
            lines = [_line(*row) for row in snapshot.rows("windows", values)]
            line = np.fromstring(",".join(lines), dtype=np.int64, sep=",")
            self._read(snapshot, line[line != 0])
            rows = self._found(line)
            joined = (line[1:] != 0) & (line[:-1] != 0)  # pieces stand apart by zeros
            self._rows["previous"][rows[1:][joined]] = rows[:-1][joined]
            self._rows["following"][rows[:-1][joined]] = rows[1:][joined]
        self._knows(at, reach)

    def _knows(self, at: Places, reach: int) -> None:
        """Note how far around some turns, and around those near them, the order is known now."""
        known = self._rows["known"]
        known[at] = reach
        for links in self._links():
            step: NDArray[np.integer] = at
            for left in range(reach - 1, 0, -1):
                step = links[step]
                known[step] = np.maximum(known[step], left)


def _line(key: int, before: str | None, after: str | None) -> str:
    """A piece of a session in order, and a zero."""
    earlier = f"{','.join(reversed(before.split(',')))}," if before else ""
    later = f",{after}" if after else ""
    return f"{earlier}{key}{later},0"
