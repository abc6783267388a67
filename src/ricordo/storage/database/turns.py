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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ricordo.storage.candidates import Turns, codes_of, stretches
from ricordo.storage.database.statements import Row, Statements
from ricordo.storage.database.vector_math import ascending, runs_of
from ricordo.text.passages import HEADER

Floats = NDArray[np.float32]
Keys = NDArray[np.int64]
Places = NDArray[np.intp]
Codes = NDArray[np.uint32]


KEPT_MOST = 200_000
"""The number of turns that a process caches, about 60 MB; at the limit those of the caller who searched longest ago are
dropped. The turns of a caller with at most that many are prefetched in the background.
"""

_CALLERS_MOST = 64
"""The number of callers whose turns are cached: an empty table takes some 200 kB."""

KEPT_CHARS = 40_000_000
"""Nor more characters than this, twice as many as there are in so many turns of talk: documents are longer."""

# Turns among so many keys each are read from the first to the last; others one by one.
_CLOSE = 4

# So many may have come after the words of all were put in order; when there are more, full text tells.
_LATER_MOST = 5_000

# Row 0 stands for no turn: the end of a session, or an unknown neighbour.
_NOBODY = 0
# More steps than any search asks for.
_ALL_AROUND = np.iinfo(np.int8).max

_ROW = np.dtype(
    [
        ("space", "i8"),
        ("session", "i8"),
        ("event_time", "i8"),
        ("start", "i8"),
        ("size", "i4"),
        ("speaker", "i4"),
        ("flags", "u4"),
        ("length", "f4"),
    ]
)


def live_turns(snapshot: Statements, spaces: Sequence[int]) -> Keys:
    """The keys of all live turns of some spaces, ascending."""
    there, closed = (_numbers(text or "") for text in snapshot.rows("turns_live", {"spaces": json.dumps(spaces)})[0])
    return np.sort(there[~np.isin(there, closed)] if len(closed) else there)


class Fetched(NamedTuple):
    """Turns as they came from the store, by column; the codes of one after another, each behind its header."""

    keys: Keys
    spaces: Keys
    sessions: Keys
    event_times: Keys
    speakers: list[str | None]
    sizes: Keys
    codes: Codes


def fetch_close(snapshot: Statements, spaces: Sequence[int], keys: Keys) -> Fetched | None:
    """Turns of some spaces by ascending key; where they lie close together, all of these spaces from first to last."""
    if keys[-1] - keys[0] >= _CLOSE * len(keys):
        return _fetch(snapshot, keys)
    span = {"first": int(keys[0]), "last": int(keys[-1]), "spaces": json.dumps(spaces)}
    return _fetched(snapshot.rows("traits_between", span)[0])


def _fetch(snapshot: Statements, keys: Keys) -> Fetched | None:
    """Turns by key, in no order; None where there are none."""
    return _fetched(snapshot.rows("traits_of", {"keys": json.dumps(ascending(keys).tolist())})[0])


def _fetched(row: Row) -> Fetched | None:
    """Turns from the columns of the statements that begin `traits_`."""
    *columns, speakers, codes = row
    if not codes:
        return None
    ids, spaces, sessions, event_times, sizes = map(_numbers, columns)
    return Fetched(ids, spaces, sessions, event_times, json.loads(speakers), sizes, np.frombuffer(codes, "<u4"))


@dataclass(frozen=True, slots=True)
class _Held:
    """Which turns of some spaces hold which word, of all that there were up to a key."""

    spaces: tuple[int, ...]
    through: int
    holders: Holders


class TurnTable:
    """The turns of one caller that were read. Shared by the readers of a process: hold `lock` from `follow` on.

    A row is a turn, in the order they were read; `previous` and `following` are rows, and right as far as `known` steps
    around it. What searches look up most stands in columns of its own: of the rest a whole row is copied at once.
    """

    _changes: int
    _last: int
    _count: int
    _rows: NDArray[np.void]
    _keys: Keys
    _previous: NDArray[np.int32]
    _following: NDArray[np.int32]
    _known: NDArray[np.int8]
    _places: NDArray[np.int32]
    _codes: Codes
    _codes_count: int
    _row_of: NDArray[np.int32]
    _spaces: set[int]
    _names: list[str | None]
    _known_names: dict[str | None, int]
    _held: _Held | None
    _held_later: _Held | None

    def __init__(self, *, most: int = KEPT_MOST, closed: bool = False) -> None:
        """
        Args:
            most: the number of cached turns. The cache is emptied at this limit, or when more new turns have arrived.
            closed: whether the turns that are asked about are closed: live ones stand around them, they around none.
        """
        self.lock = threading.Lock()
        self._most = most
        self._is_of_closed = closed
        self.drop(changes=-1, last=0)

    @property
    def count(self) -> int:
        """How many turns are kept."""
        return self._count - 1

    def drop(self, *, changes: int, last: int) -> None:
        """Empty the cache."""
        self._changes, self._last = changes, last
        self._count = 1
        self._rows, self._keys = np.zeros(1_024, _ROW), np.zeros(1_024, np.int64)
        self._previous, self._following = np.zeros(1_024, np.int32), np.zeros(1_024, np.int32)
        self._known = np.zeros(1_024, np.int8)
        self._known[_NOBODY] = _ALL_AROUND
        self._places = np.full(1_024, -1, np.int32)
        self._codes, self._codes_count = np.empty(16_384, np.uint32), 0
        # By key, the last of them always nobody: four bytes for each memory there ever was, of which the system gives
        # those that are written to. Sorted keys would be rewritten for every few new ones.
        self._row_of = np.zeros(last + 2, np.int32)
        self._spaces = set()
        self._names, self._known_names = [None], {None: 0}
        self._held: _Held | None = None
        self._held_later: _Held | None = None

    def follow(self, snapshot: Statements) -> bool:
        """Bring the table to the state of a snapshot. Return False if the table is ahead of it."""
        changes, last = snapshot.rows_of_store("turns_position")[0]
        if changes < self._changes or (changes == self._changes and last < self._last):
            return False
        if changes != self._changes or self._count > self._most or last - self._last > self._most:
            self.drop(changes=changes, last=last)
        elif last > self._last:
            grown = [row[0] for row in snapshot.rows("sessions_grown", {"after": self._last})]
            rows = np.isin(self._rows["session"][: self._count], grown).nonzero()[0]
            for column in (self._known, self._previous, self._following):
                column[rows] = 0
            if last + 1 >= len(self._row_of):
                self._row_of = np.append(self._row_of, np.zeros(last, np.int32))
        self._last = last
        return True

    def keep(self, fetched: Fetched, *, among: Keys | None = None) -> None:
        """Add turns that were fetched from the followed snapshot and are not in the table yet.

        Args:
            among: only these; None for all.
        """
        keys, _, sessions, event_times, speakers, sizes, codes = fetched
        heads = sizes.cumsum() - sizes
        unknown = self._row_of.take(keys) == _NOBODY
        new = (unknown if among is None else unknown & np.isin(keys, among)).nonzero()[0]
        begin, end = self._count, self._count + len(new)
        self._make_room(end)
        rows = self._rows[begin:end]
        for name, values in (
            ("space", fetched.spaces),
            ("session", np.where(sessions == 0, -keys, sessions)),
            ("event_time", event_times),
            ("speaker", self._named(speakers)),
            ("flags", codes[heads]),
            ("length", codes[heads + 1]),
            ("size", sizes - HEADER),
            ("start", self._codes_count + heads + HEADER),
        ):
            rows[name] = values.take(new)
        self._keys[begin:end] = keys.take(new)
        self._keep_codes(codes)
        self._row_of[keys.take(new)] = np.arange(begin, end)
        self._spaces.update(fetched.spaces.tolist())
        self._count = end

    def read_all(self, snapshot: Statements, keys: Keys) -> None:
        """Read all live turns of some spaces, as far as they are not here, and their order.

        Args:
            keys: what `live_turns` gives.
        """
        at, rows = self._read(snapshot, keys), self._rows
        at = at[np.lexsort((self._keys[at], rows["event_time"][at], rows["session"][at]))]
        sessions = rows["session"][at]
        goes_on = sessions[1:] == sessions[:-1]
        self._previous[at] = np.append(_NOBODY, np.where(goes_on, at[:-1], _NOBODY))
        self._following[at] = np.append(np.where(goes_on, at[1:], _NOBODY), _NOBODY)
        self._known[at] = _ALL_AROUND

    def words_of(self, keys: Keys) -> Words:
        """The words of those of some turns that are here."""
        at = self._found(keys)
        at = at[at != _NOBODY]
        rows = self._rows.take(at)
        return Words(self._keys.take(at), self._codes, rows["start"], rows["size"])

    def keep_holders(self, holders: Holders, *, spaces: tuple[int, ...], through: int) -> None:
        """Take in which turns hold which word, of all live ones of some spaces up to a key.

        Args:
            through: the last key when they were read.
        """
        self._held, self._held_later = _Held(spaces, through, holders), None

    @property
    def position(self) -> tuple[int, int]:
        """What tells whether anything has changed: how often turns were altered, and the last key."""
        return self._changes, self._last

    def holding(self, snapshot: Statements, terms: Sequence[str], spaces: tuple[int, ...]) -> list[Keys] | None:
        """For each term the live turns of some spaces that hold it, ascending; None where that is not in memory."""
        held = self._holders(snapshot, spaces)
        if not held:
            return None
        asked = codes_of(terms)
        found = [each.of(asked) for each in held]
        return found[0] if len(found) == 1 else [np.concatenate(each) for each in zip(*found, strict=True)]

    def _holders(self, snapshot: Statements, spaces: tuple[int, ...]) -> list[Holders]:
        """Who holds which word of all live turns of some spaces; none where that is not in memory."""
        held = self._held
        if held is None or held.spaces != spaces:
            return []
        if held.through == self._last:
            return [held.holders]
        later = self._later(snapshot, held)
        if later is None:
            self._held = self._held_later = None
            return []
        return [held.holders, later]

    def _later(self, snapshot: Statements, held: _Held) -> Holders | None:
        """The same of what came since; None where that is too much."""
        known = self._held_later
        if known is not None and known.through == self._last:
            return known.holders
        if self._last >= KEYS_BELOW:
            return None
        keys = _numbers(snapshot.value("turns_since", {"after": held.through, "spaces": json.dumps(held.spaces)}) or "")
        if len(keys) > _LATER_MOST:
            return None
        self._read(snapshot, keys)
        later = Holders(self.words_of(keys))
        self._held_later = _Held(held.spaces, self._last, later)
        return later

    def around(
        self,
        snapshot: Statements,
        chosen: Keys,
        best: Keys,
        *,
        reach: int,
        allowed: Keys | None,
        spaces: Sequence[int],
        shelves: Sequence[str] | None = None,
    ) -> tuple[Turns, int]:
        """The candidates of a search, then the turns within `reach` steps of these; and how many candidates there are.

        Args:
            chosen: keys of candidates.
            best: those of them near which, within `reach` steps, others are candidates, too.
            allowed: ascending keys that these others must be among; None for all.
            spaces: whose turns may be given.
            shelves: of which partitions these others must be; None for any.
        """
        at = self._read(snapshot, chosen)
        found = self._found(best)
        # Of what is near the best, the order is then known as far as of the others.
        self._read_order(snapshot, found, 2 * reach, at, reach)
        near = self._near(found, reach)
        if allowed is not None:
            near = near[np.isin(self._keys[near], allowed)]
        if shelves is not None:
            near = near[np.isin(self._keys[near], self._on(snapshot, near, shelves))]
        candidates = self._distinct(np.concatenate((at, near)), spaces)
        return self._taken(candidates, self._near(candidates, reach), spaces), len(candidates)

    def _on(self, snapshot: Statements, at: Places, shelves: Sequence[str]) -> list[int]:
        """Return the keys of the rows that are in some partitions. The table does not record partitions."""
        keys = json.dumps(np.unique(self._keys[at]).tolist())
        return [key for (key,) in snapshot.rows("keys_on_shelves", {"keys": keys, "shelves": json.dumps(shelves)})]

    def _taken(self, candidates: Places, beside: Places, spaces: Sequence[int]) -> Turns:
        """The candidates, then those beside them that are none themselves, then nobody.

        Args:
            beside: what `_near` gave for the candidates.
        """
        # The place of each row that is taken; of all others -1, the last place of all, which is nobody's.
        places, size = self._places, len(candidates)
        places[candidates] = np.arange(size)
        others = self._distinct(beside[places.take(beside) < 0], spaces)
        places[others] = np.arange(size, size + len(others))
        nearby = places.take(beside).reshape(-1, size).astype(np.intp)
        at = np.concatenate((candidates, others, [_NOBODY]))
        places[at] = -1
        rows = self._rows.take(at)  # an eighth of what `[at]` takes, with rows of many fields
        return Turns(
            keys=self._keys.take(at),
            passages=np.zeros(len(at), np.int32),
            several=np.zeros(len(at), np.bool_),
            sessions=rows["session"],
            event_times=rows["event_time"],
            speakers=rows["speaker"],
            names=self._names,
            flags=rows["flags"],
            lengths=rows["length"],
            codes=self._codes,
            starts=rows["start"],
            sizes=rows["size"].astype(np.intp),
            nearby=nearby,
        )

    def _near(self, at: Places, within: int) -> Places:
        """The turns one to so many steps before given ones, then those after, repeats and nobody included."""
        found = []
        for links in (self._previous, self._following):
            step: NDArray[np.integer] = at
            for _ in range(within):
                step = links.take(step)
                found.append(step)
        return np.concatenate(found, dtype=np.intp)

    def _distinct(self, at: Places, spaces: Sequence[int]) -> Places:
        """Rows of some spaces, each once, ascending by key; nobody left out."""
        keys = np.sort(self._keys.take(at))
        found = self._found(keys[runs_of(keys)])
        if len(found) and found[0] == _NOBODY:
            found = found[1:]
        if self._spaces.issubset(spaces):
            return found
        whose = self._rows["space"][found]  # `take` would copy the whole column
        return found[np.logical_or.reduce([whose == space for space in (0, *spaces)])]

    def _found(self, keys: Keys) -> Places:
        """Rows of keys; nobody for a key that is not here."""
        return self._row_of.take(keys, mode="clip").astype(np.intp)

    def _read(self, snapshot: Statements, keys: Keys) -> Places:
        """Make sure of some turns; their rows."""
        at = self._found(keys)
        if at.all():
            return at
        missing = keys[(at == _NOBODY) & (keys != 0)]
        fetched = _fetch(snapshot, missing) if len(missing) else None
        if fetched is None:
            return at
        self.keep(fetched)
        return self._found(keys)

    def _make_room(self, rows: int) -> None:
        """For so many rows in all."""
        have = len(self._rows)
        if rows > have:
            self._rows, self._keys = _longer(self._rows, rows), _longer(self._keys, rows)
            self._previous, self._following = _longer(self._previous, rows), _longer(self._following, rows)
            self._known = _longer(self._known, rows)
            self._places = np.full(len(self._rows), -1, np.int32)

    def _keep_codes(self, codes: Codes) -> None:
        end = self._codes_count + len(codes)
        if end > len(self._codes):
            self._codes = _longer(self._codes, end)
        self._codes[self._codes_count : end] = codes
        self._codes_count = end

    def _named(self, speakers: Sequence[str | None]) -> NDArray[np.int32]:
        """The place of each in `names`; those not met before come in at its end."""
        known = self._known_names
        for speaker in dict.fromkeys(speakers):
            if speaker not in known:
                known[speaker] = len(self._names)
                self._names.append(speaker)
        return np.fromiter(map(known.__getitem__, speakers), np.int32, len(speakers))

    def _read_order(self, snapshot: Statements, best: Places, far: int, others: Places, near: int) -> None:
        """Make sure of what stands around some turns: `far` steps either way of the best, `near` of the others."""
        known = self._known
        of_best, of_others = best[known.take(best) < far], others[known.take(others) < near]
        if not len(of_best) and not len(of_others):
            return
        unsure = (of_best, far), (np.setdiff1d(of_others, of_best), near)
        walks = self._walks(snapshot, unsure)
        self._read(snapshot, np.concatenate(walks))
        there, back = self._previous, self._following
        for walk, onward, backward in ((walks[0], there, back), (walks[1], back, there)):
            rows = self._found(walk)
            joined = (walk[1:] != 0) & (walk[:-1] != 0)  # walks stand apart by zeros
            onward[rows[:-1][joined]] = rows[1:][joined]
            if self._is_of_closed:
                joined[:1] = False
                joined[1:] &= walk[:-2] != 0
            backward[rows[1:][joined]] = rows[:-1][joined]
        for at, reach in unsure:
            self._knows(at, reach)

    def _walks(self, snapshot: Statements, asked: Sequence[tuple[Places, int]]) -> tuple[Keys, Keys]:
        """The keys met on the way from some turns back, and on: so many steps, then a zero before the next walk."""
        back, on = list[str](), list[str]()
        for at, steps in asked:
            inside = at[self._rows["session"][at] > 0]
            if len(inside):
                values = {"keys": json.dumps(self._keys[inside].tolist()), "each": steps}
                for key, before, after in snapshot.rows("windows", values):
                    back += [f"{key},{before}"] if before else []
                    on += [f"{key},{after}"] if after else []
        return _numbers(",0,".join(back)), _numbers(",0,".join(on))

    def _knows(self, at: Places, reach: int) -> None:
        """Note how far around some turns, and around those near them, the order is known now."""
        known = self._known
        known[at] = np.maximum(known[at], reach)
        for links in (self._previous, self._following):
            step: NDArray[np.integer] = at
            for left in range(reach - 1, 0, -1):
                step = links.take(step)
                known[step] = np.maximum(known[step], left)


class TurnTables:
    """A table for each caller: a search does not depend on the turns of others. Shared by the readers of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[tuple[int, ...], TurnTable] = {}  # the latest used last

    @property
    def count(self) -> int:
        """How many turns are kept."""
        with self._lock:
            return sum(table.count for table in self._tables.values())

    def of(self, spaces: tuple[int, ...]) -> TurnTable:
        """Return the table of a caller by the spaces it sees. Those used longest ago make room."""
        with self._lock:
            table = self._tables.pop(spaces, None) or TurnTable()
            count = sum(each.count for each in self._tables.values()) + table.count
            while self._tables and (count > KEPT_MOST or len(self._tables) >= _CALLERS_MOST):
                count -= self._tables.pop(next(iter(self._tables))).count
            self._tables[spaces] = table
            return table


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    """A copy with room for twice the length, zeros at its end."""
    grown = np.zeros(2 * length, array.dtype)
    grown[: len(array)] = array
    return grown


def _numbers(text: str) -> Keys:
    return np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, np.int64)


_KEY_BITS = np.uint64(32)


_KEY = np.uint64((1 << 32) - 1)


KEYS_BELOW = 1 << 32
"""Postings cover turns with keys below 4,294,967,296; above, the full-text index is used."""


class Words(NamedTuple):
    """The words of some turns, which stay as they are whatever is read after them.

    Attributes:
        keys: int64[n], below `KEYS_BELOW`.
        codes: uint32[m], those of their words among many others.
        starts: int64[n], where the words of each turn begin in `codes`.
        sizes: int32[n], how many they are, repeats included.
    """

    keys: Keys
    codes: Codes
    starts: Keys
    sizes: NDArray[np.int32]


class Holders:
    """Keys of turns by the code of each word they hold. Never altered once it is made.

    Code and key are one number of 64 bits: those are sorted in a tenth of the time that an order of codes takes.
    """

    def __init__(self, words: Words) -> None:
        both = words.codes.take(stretches(words.starts, words.sizes)).astype(np.uint64)
        both <<= _KEY_BITS
        both |= words.keys.astype(np.uint64).repeat(words.sizes)
        both.sort()
        self._both = both.take(runs_of(both))

    def of(self, asked: Codes) -> list[Keys]:
        """For each of some codes the turns that hold it, ascending."""
        spans = zip(*(each.tolist() for each in self._spans(asked)), strict=True)
        return [(self._both[begin:end] & _KEY).astype(np.int64) for begin, end in spans]

    def _spans(self, asked: Codes) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where the turns of each code begin and end."""
        first = asked.astype(np.uint64) << _KEY_BITS
        return self._both.searchsorted(first), self._both.searchsorted(first | _KEY, "right")
