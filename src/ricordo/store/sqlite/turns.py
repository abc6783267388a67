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

from ricordo.store.sqlite.vectors.keys import ascending
from ricordo.traits import HEADER, term_code

if TYPE_CHECKING:
    from ricordo.store.sqlite.snapshot import Snapshot

    Floats = NDArray[np.float32]
    Keys = NDArray[np.int64]
    Places = NDArray[np.intp]
    Codes = NDArray[np.uint32]

KEPT_MOST = 200_000
"""So many turns are kept by a process, about 35 MB; then it begins anew. A caller who has no more than that and asks a
second time has them all read beside other work.
"""

PIECE = 1_000
"""So many are read at a time: some milliseconds, in which nobody else looks at the table."""

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
        names: of all speakers, None, the first, for a memory nobody speaks.
        flags: uint32[n], those of `ricordo.traits`.
        lengths: float32[n], in characters.
        codes: uint32[m], the codes of all words of all turns, turn by turn.
        starts: intp[n], where each turn begins in `codes`.
        nearby: places of the turns one and two before each candidate in its session, then one and two after it,
            intp[4, candidates]; that of nobody for one that there is not or that is not among these.

    The last of them is nobody, with nothing in any array: what is asked of the turn before the first of a session.
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
    nearby: Places

    def __len__(self) -> int:
        return len(self.keys)

    def counts(self, terms: Sequence[str]) -> Floats:
        """How often each turn holds each term, float32[terms, n]."""
        asked = [term_code(term) for term in terms]
        # What any term may have is found first: it is little, and the rest of the work is done on that alone.
        is_asked, is_this = np.zeros(len(self.codes), np.bool_), np.empty(len(self.codes), np.bool_)
        for code in asked:
            np.logical_or(is_asked, np.equal(self.codes, np.uint32(code), out=is_this), out=is_asked)
        places = is_asked.nonzero()[0]
        holders, codes = self.starts.searchsorted(places, side="right") - 1, self.codes.take(places)
        counts = np.empty((len(asked), len(self)), np.float32)
        for row, code in enumerate(asked):
            counts[row] = np.bincount(holders[codes == np.uint32(code)], minlength=len(self))
        return counts


def live_turns(snapshot: Snapshot, spaces: Sequence[int]) -> Keys:
    """The keys of all live turns of some spaces, in no order."""
    return _numbers(snapshot.value("turns_live", {"spaces": json.dumps(spaces)}) or "")


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
    _row_of: NDArray[np.int32]
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
        # By key, the last of them always nobody: four bytes for each memory there ever was, of which the system gives
        # those that are written to. Ordered keys would be written anew for each few that come.
        self._row_of = np.zeros(last + 2, np.int32)
        self._names, self._known_names = [None], {None: 0}

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
            if last + 1 >= len(self._row_of):
                self._row_of = np.append(self._row_of, np.zeros(last, np.int32))
        self._last = last
        return True

    def read(self, snapshot: Snapshot, keys: Keys) -> None:
        """Read some turns, ahead of the searches that will look at them."""
        self._read(snapshot, keys)

    def read_all(self, snapshot: Snapshot, spaces: Sequence[int]) -> None:
        """Read all live turns of some spaces, as far as they are not here, and their order."""
        keys = live_turns(snapshot, spaces)
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
        # Of what is near the best, the order is then known as far as of the others.
        self._read_order(snapshot, found, 2 * reach, at, reach)
        near = self._near(found, reach)
        if allowed is not None:
            near = near[np.isin(self._rows["key"][near], allowed)]
        if shelves is not None:
            near = near[np.isin(self._rows["key"][near], self._on(snapshot, near, shelves))]
        candidates = self._distinct(np.append(at, near), spaces)
        beside = self._near(candidates, reach)
        return self._taken(candidates, self._distinct(beside, spaces), beside), len(candidates)

    def _on(self, snapshot: Snapshot, at: Places, shelves: Sequence[str]) -> list[int]:
        """The keys of those rows that lie on some shelves. A turn changes its shelf once; the table need not follow."""
        keys = json.dumps(np.unique(self._rows["key"][at]).tolist())
        return [key for (key,) in snapshot.rows("keys_on_shelves", {"keys": keys, "shelves": json.dumps(shelves)})]

    def _taken(self, candidates: Places, around: Places, beside: Places) -> Turns:
        """The candidates, then what is around them and none itself, then nobody.

        Args:
            beside: what `_near` gave for the candidates.
        """
        places = np.zeros(self._count, np.int32)  # from 1 on: the system gives zeros for nothing
        places[candidates] = np.arange(1, len(candidates) + 1)
        at = np.concatenate([candidates, around[places.take(around) == 0], [_NOBODY]])
        places[at] = np.arange(1, len(at) + 1)
        nearby = places.take(beside).reshape(-1, len(candidates)).astype(np.intp) - 1
        nearby[nearby < 0] = len(at) - 1
        rows = self._rows.take(at)  # an eighth of what `[at]` takes, with rows of many fields
        keys, sessions = rows["key"].copy(), rows["session"]
        sizes = rows["size"].astype(np.intp)
        starts = sizes.cumsum() - sizes
        where = np.arange(int(sizes.sum())) + np.repeat(rows["start"] - starts, sizes)
        return Turns(
            keys=keys, sessions=np.where(sessions == 0, -keys, sessions), event_times=rows["event_time"],
            speakers=rows["speaker"], names=self._names, flags=rows["flags"], lengths=rows["length"],
            codes=self._codes.take(where), starts=starts, nearby=nearby,
        )  # fmt: skip

    def _links(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return self._rows["previous"], self._rows["following"]

    def _near(self, at: Places, within: int) -> Places:
        """The turns one to so many steps before given ones, then those after, repeats and nobody included."""
        found = []
        for links in self._links():
            step: NDArray[np.integer] = at
            for _ in range(within):
                step = links[step]
                found.append(step)
        return np.concatenate(found)

    def _distinct(self, at: Places, spaces: Sequence[int]) -> Places:
        """Rows of some spaces, each once, ascending by key; nobody left out."""
        keys = ascending(self._rows["key"][at])
        found = self._found(keys[keys > 0])
        whose = self._rows["space"][found]  # `take` would copy the whole column
        return found[np.logical_or.reduce([whose == space for space in (0, *spaces)])]

    def _found(self, keys: Keys) -> Places:
        """Rows of keys; nobody for a key that is not here."""
        return self._row_of.take(keys, mode="clip").astype(np.intp)

    def _read(self, snapshot: Snapshot, keys: Keys) -> Places:
        """Make sure of some turns; their rows."""
        at = self._found(keys)
        missing = keys[(at == _NOBODY) & (keys != 0)]
        rows = snapshot.rows("traits_of", {"keys": json.dumps(ascending(missing).tolist())}) if len(missing) else []
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
        self._row_of[new["key"]] = np.arange(self._count, self._count + len(rows))
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

    def _read_order(self, snapshot: Snapshot, best: Places, far: int, others: Places, near: int) -> None:
        """Make sure of what stands around some turns: `far` steps either way of the best, `near` of the others."""
        known = self._rows["known"]
        unsure = [(at[(known[at] < reach) & (at != _NOBODY)], reach) for at, reach in ((best, far), (others, near))]
        if not any(len(at) for at, _ in unsure):
            return
        walks = self._walks(snapshot, unsure)
        self._read(snapshot, np.concatenate(walks))
        for walk, (onward, backward) in zip(walks, (self._links(), self._links()[::-1]), strict=True):
            rows = self._found(walk)
            joined = (walk[1:] != 0) & (walk[:-1] != 0)  # walks stand apart by zeros
            onward[rows[:-1][joined]] = rows[1:][joined]
            backward[rows[1:][joined]] = rows[:-1][joined]
        for at, reach in unsure:
            self._knows(at, reach)

    def _walks(self, snapshot: Snapshot, asked: Sequence[tuple[Places, int]]) -> tuple[Keys, Keys]:
        """The keys met on the way from some turns back, and on: so many steps, then a zero before the next walk."""
        back, on = list[str](), list[str]()
        for at, steps in asked:
            inside = at[self._rows["session"][at] != 0]
            if len(inside):
                values = {"keys": json.dumps(self._rows["key"][inside].tolist()), "each": steps}
                for key, before, after in snapshot.rows("windows", values):
                    back += [f"{key},{before}"] if before else []
                    on += [f"{key},{after}"] if after else []
        return _numbers(",0,".join(back)), _numbers(",0,".join(on))

    def _knows(self, at: Places, reach: int) -> None:
        """Note how far around some turns, and around those near them, the order is known now."""
        known = self._rows["known"]
        known[at] = np.maximum(known[at], reach)
        for links in self._links():
            step: NDArray[np.integer] = at
            for left in range(reach - 1, 0, -1):
                step = links[step]
                known[step] = np.maximum(known[step], left)


def _numbers(text: str) -> Keys:
    return np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, np.int64)
