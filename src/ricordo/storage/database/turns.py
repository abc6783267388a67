"""Turns and their order, cached by a process from one search to the next.

A search looks at the turns around its candidates, and the next search at many of the same turns. A cached turn stays
valid while only new turns arrive: they change the order of their own session and nothing else. Anything that alters or
removes a row increases a counter in the store, and then the whole cache is dropped.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ricordo.storage.candidates import Turns, codes_of, stretches
from ricordo.storage.database.statements import Asked, Row, Statements
from ricordo.storage.database.vector_math import ascending, numbers_in, runs_of
from ricordo.text.passages import HEADER

Keys = NDArray[np.int64]
Places = NDArray[np.intp]
Codes = NDArray[np.uint32]


KEPT_MOST = 200_000
"""The number of turns that a process caches, about 60 MB. At the limit, the turns of the caller who searched longest
ago are dropped. The turns of a caller with at most this many are prefetched in the background.
"""

_CALLERS_MOST = 64
"""The number of callers whose turns are cached: an empty table takes about 200 kB."""

KEPT_CHARS = 40_000_000
"""The maximum number of characters to prefetch: twice what 200,000 turns of talk have. Documents are longer."""

# If at least one key in this many is wanted, all turns from the first to the last are read; otherwise one by one.
_CLOSE = 4

# At most this many turns may arrive after all turns were read; with more, the full-text index is used.
_LATER_MOST = 5_000

# Row 0 stands for no turn: beyond the end of a session, or an unknown neighbour.
_NOBODY = 0
# More steps than any search needs.
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
    """Return the keys of all live turns of some spaces, ascending."""
    there, closed = (numbers_in(text) for text in snapshot.rows("turns_live", {"spaces": json.dumps(spaces)})[0])
    return np.sort(there[~np.isin(there, closed)] if len(closed) else there)


class Fetched(NamedTuple):
    """Turns as read from the store, by column; the codes of all turns are concatenated, each after its header."""

    keys: Keys
    spaces: Keys
    sessions: Keys
    event_times: Keys
    speakers: list[str | None]
    sizes: Keys
    codes: Codes


def fetch_close(snapshot: Statements, spaces: Sequence[int], keys: Keys) -> Fetched | None:
    """Return turns of some spaces by ascending key; if the keys are close together, all turns from first to last."""
    if keys[-1] - keys[0] >= _CLOSE * len(keys):
        return _fetch(snapshot, keys)
    span = {"first": int(keys[0]), "last": int(keys[-1]), "spaces": json.dumps(spaces)}
    return fetched_of(snapshot.rows("traits_between", span)[0])


def _fetch(snapshot: Statements, keys: Keys) -> Fetched | None:
    """Return turns by key, in no order; None if there are none."""
    return fetched_of(snapshot.rows("traits_of", {"keys": json.dumps(ascending(keys).tolist())})[0])


def fetched_of(row: Row) -> Fetched | None:
    """Build turns from the columns of the statements that begin with `traits_`."""
    *columns, speakers, codes = row
    if not codes:
        return None
    ids, spaces, sessions, event_times, sizes = map(numbers_in, columns)
    return Fetched(ids, spaces, sessions, event_times, json.loads(speakers), sizes, np.frombuffer(codes, "<u4"))


@dataclass(frozen=True, slots=True)
class _Held:
    """Which of the live turns of some spaces hold which word. All of these turns are in the table, with their order.

    Attributes:
        holders, later_holders: of the turns that were read at once, and of those that were written later.
        later: the keys of the latter, ascending.
    """

    spaces: tuple[int, ...]
    holders: Holders
    later: Keys
    later_holders: Holders | None = None


class TurnTable:
    """The cached turns of one caller. The readers of a process share it: hold `lock` from `follow` on.

    A row is a turn, in the order of reading. `previous` and `following` are rows; they are valid up to `known` steps
    around the row. Columns that searches use most are arrays of their own; the others are copied by whole rows.
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

    def __init__(self, *, most: int = KEPT_MOST, closed: bool = False) -> None:
        """
        Args:
            most: the number of cached turns. The cache is emptied at this limit, or when more new turns have arrived.
            closed: whether the table is for closed turns. Live turns can be around a closed one, but not the reverse.
        """
        self.lock = threading.Lock()
        self._most = most
        self._is_of_closed = closed
        self.drop(changes=-1, last=0)

    @property
    def count(self) -> int:
        """The number of cached turns."""
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
        # Row by key, with the placeholder for the last one: four bytes for each key ever used, of which the system
        # provides only the pages written to. Sorted keys would be rewritten for every few new ones. `np.zeros` would
        # write to all pages if it got memory that was used before.
        self._row_of = np.frombuffer(mmap(-1, 4 * (last + 2)), np.int32)
        self._spaces = set()
        self._names, self._known_names = [None], {None: 0}
        self._held = None

    def follow(self, snapshot: Statements, spaces: Sequence[int]) -> bool:
        """Bring the table to the state of a snapshot. Return False if the table is already ahead of it.

        Args:
            spaces: the spaces that the caller sees.
        """
        changes, last = snapshot.rows_of_store("turns_position")[0]
        if changes < self._changes or (changes == self._changes and last < self._last):
            return False
        if changes != self._changes or self._count > self._most or last - self._last > self._most:
            self.drop(changes=changes, last=last)
        elif last > self._last:
            if last + 1 >= len(self._row_of):
                self._row_of = np.append(self._row_of, np.zeros(last, np.int32))
            if not self._read_later(snapshot, spaces):
                self._forget_grown(snapshot, spaces)
        self._last = last
        return True

    def news(self, spaces: tuple[int, ...]) -> list[Asked]:
        """Return what `follow` will ask if turns were written."""
        if self._held is not None and self._held.spaces == spaces:
            return [self._asks_later(spaces)]
        return [self._asks_grown(spaces)] if self.count else []

    def _asks_later(self, spaces: Sequence[int]) -> Asked:
        return "traits_since", {"after": self._last, "spaces": json.dumps(spaces), "most": _LATER_MOST + 1}

    def _asks_grown(self, spaces: Sequence[int]) -> Asked:
        return "sessions_grown", {"after": self._last, "spaces": json.dumps(spaces)}

    def _read_later(self, snapshot: Statements, spaces: Sequence[int]) -> bool:
        """Add new turns to a table with all turns of some spaces. Return False if it lacks any or many are new."""
        held, self._held = self._held, None
        if held is None or held.spaces != tuple(spaces):
            return False
        fetched = fetched_of(snapshot.rows(*self._asks_later(spaces))[0])
        if fetched is None:
            self._held = held
            return True
        later = np.concatenate((held.later, np.sort(fetched.keys)))
        if len(later) > _LATER_MOST or later[-1] >= KEYS_BELOW:
            return False
        self.keep(fetched)
        new = self._found(fetched.keys)
        self._known[new] = _ALL_AROUND
        sessions = self._rows["session"][: self._count]
        of_grown = np.isin(sessions, sessions[new]) & (self._known[: self._count] == _ALL_AROUND)
        self._put_in_order(of_grown.nonzero()[0])
        self._held = replace(held, later=later, later_holders=Holders(self.words_of(later)))
        return True

    def _forget_grown(self, snapshot: Statements, spaces: Sequence[int]) -> None:
        """Forget the order of sessions with new turns."""
        grown = [row[0] for row in snapshot.rows(*self._asks_grown(spaces))]
        rows = np.isin(self._rows["session"][: self._count], grown).nonzero()[0]
        for column in (self._known, self._previous, self._following):
            column[rows] = 0

    def keep(self, fetched: Fetched, *, among: Keys | None = None) -> None:
        """Add fetched turns that are not in the table yet.

        Args:
            among: the keys to add; None for all.
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
        """Read all live turns of some spaces that are not in the table yet, and their order.

        Args:
            keys: the result of `live_turns`.
        """
        self._read(snapshot, keys)
        self._put_in_order(self._found(keys))

    def _put_in_order(self, at: Places) -> None:
        """Record the order of all live turns of some sessions."""
        rows = self._rows
        at = at[np.lexsort((self._keys[at], rows["event_time"][at], rows["session"][at]))]
        sessions = rows["session"][at]
        goes_on = sessions[1:] == sessions[:-1]
        self._previous[at] = np.append(_NOBODY, np.where(goes_on, at[:-1], _NOBODY))
        self._following[at] = np.append(np.where(goes_on, at[1:], _NOBODY), _NOBODY)
        self._known[at] = _ALL_AROUND

    def words_of(self, keys: Keys) -> Words:
        """Return the words of the turns that are in the table."""
        at = self._found(keys)
        at = at[at != _NOBODY]
        rows = self._rows.take(at)
        return Words(self._keys.take(at), self._codes, rows["start"], rows["size"])

    def keep_holders(self, holders: Holders, *, spaces: tuple[int, ...], through: int) -> None:
        """Store which turns hold which word, for all live turns of some spaces up to a key.

        Args:
            through: the last key at the time of reading.
        """
        if through == self._last:
            self._held = _Held(spaces, holders, np.empty(0, np.int64))

    @property
    def position(self) -> tuple[int, int]:
        """How often turns were altered, and the last key: equal if nothing has changed."""
        return self._changes, self._last

    def holding(self, terms: Sequence[str], spaces: tuple[int, ...]) -> list[Keys] | None:
        """Return for each term the live turns of some spaces that hold it, ascending; None if that is not in memory."""
        held = self._held
        if held is None or held.spaces != spaces:
            return None
        asked = codes_of(terms)
        if held.later_holders is None:
            return held.holders.of(asked)
        both = zip(held.holders.of(asked), held.later_holders.of(asked), strict=True)
        return [np.concatenate(each) for each in both]

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
        along: Callable[[Keys], Sequence[Asked]] = lambda _: (),
    ) -> tuple[Turns, int]:
        """Return the candidates of a search and then the turns within `reach` steps of them; and the number of
        candidates.

        Args:
            chosen: keys of candidates.
            best: those of them whose neighbours, within `reach` steps, are candidates as well.
            allowed: ascending keys to which these neighbours are limited; None for all.
            spaces: the spaces whose turns may be returned.
            shelves: the partitions to which these neighbours are limited; None for any.
            along: returns what to ask of turns in memory together with what a server is asked here. The server adds the
                turns that it returns.
        """
        # For neighbours of the best, the order is then known as far as for the other candidates.
        self._read_around(snapshot, best, 2 * reach, chosen, reach, along)
        at, near = self._found(chosen), self._near(self._found(best), reach)
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
        """Return the candidates, then the turns beside them that are not candidates, then the placeholder.

        Args:
            beside: the result of `_near` for the candidates.
        """
        # The new place of each row taken; -1 for all others, which indexes the last place, the placeholder.
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
        """Return the rows 1 to `within` steps before given ones, then those after, with repeats and placeholders."""
        found = []
        for links in (self._previous, self._following):
            step: NDArray[np.integer] = at
            for _ in range(within):
                step = links.take(step)
                found.append(step)
        return np.concatenate(found, dtype=np.intp)

    def _distinct(self, at: Places, spaces: Sequence[int]) -> Places:
        """Return the rows in some spaces, each once, ascending by key, without the placeholder."""
        keys = np.sort(self._keys.take(at))
        found = self._found(keys[runs_of(keys)])
        if len(found) and found[0] == _NOBODY:
            found = found[1:]
        if self._spaces.issubset(spaces):
            return found
        whose = self._rows["space"][found]  # `take` would copy the whole column
        return found[np.logical_or.reduce([whose == space for space in (0, *spaces)])]

    def _found(self, keys: Keys) -> Places:
        """Return the rows of keys; the placeholder for a key that is not in the table."""
        return self._row_of.take(keys, mode="clip").astype(np.intp)

    def _read(self, snapshot: Statements, keys: Keys) -> None:
        """Read the turns that are not in the table."""
        missing = keys[(self._found(keys) == _NOBODY) & (keys != 0)]
        fetched = _fetch(snapshot, missing) if len(missing) else None
        if fetched is not None:
            self.keep(fetched)

    def _make_room(self, rows: int) -> None:
        """Make room for this many rows in all."""
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
        """Return the index of each speaker in `names`; new names are added at its end."""
        known = self._known_names
        for speaker in dict.fromkeys(speakers):
            if speaker not in known:
                known[speaker] = len(self._names)
                self._names.append(speaker)
        return np.fromiter(map(known.__getitem__, speakers), np.int32, len(speakers))

    def _read_around(
        self,
        snapshot: Statements,
        best: Keys,
        far: int,
        others: Keys,
        near: int,
        along: Callable[[Keys], Sequence[Asked]],
    ) -> None:
        """Read turns that are not in the table, and the order around turns that is not known yet, with the turns in it:
        `far` steps around the best, `near` around others.
        """
        of_best, of_others = self._unsure(best, far), self._unsure(others, near)
        if not len(of_best) and not len(of_others):
            return
        unsure = (of_best, far), (np.setdiff1d(of_others, of_best), near)
        walks = self._walks(
            snapshot, unsure, along(self._held_around(best, others, near)) if snapshot.reads_around else ()
        )
        there, back = self._previous, self._following
        for walk, onward, backward in ((walks[0], there, back), (walks[1], back, there)):
            rows = self._found(walk)
            joined = (walk[1:] != 0) & (walk[:-1] != 0)  # walks stand apart by zeros
            onward[rows[:-1][joined]] = rows[1:][joined]
            if self._is_of_closed:
                joined[:1] = False
                joined[1:] &= walk[:-2] != 0
            backward[rows[1:][joined]] = rows[:-1][joined]
        for keys, reach in unsure:
            self._knows(self._found(keys), reach)

    def _held_around(self, best: Keys, others: Keys, near: int) -> Keys:
        """Return candidates and the turns around them, as far as they are in the table."""
        of_best = self._found(best)
        candidates = np.concatenate((of_best, self._near(of_best, near), self._found(others)))
        around = self._keys.take(np.concatenate((candidates, self._near(candidates, near))))
        return np.setdiff1d(np.concatenate((best, others, around)), [0])

    def _unsure(self, keys: Keys, steps: int) -> Keys:
        """Return the keys that are not in the table, or whose order is not known as many steps around them."""
        at = self._found(keys)
        is_unsure: NDArray[np.bool_] = (at == _NOBODY) | (self._known.take(at) < steps)
        return keys[is_unsure]

    def _walks(
        self, snapshot: Statements, asked: Sequence[tuple[Keys, int]], along: Sequence[Asked]
    ) -> tuple[Keys, Keys]:
        """Read turns and those around them that are not in the table. Return the keys of walks back from the former,
        and of walks on, each with a zero before the next walk.
        """
        values = [{"keys": json.dumps(keys.tolist()), "each": steps} for keys, steps in asked]
        if snapshot.reads_around:
            far, near = values
            both = {"far": far["keys"], "far_each": far["each"], "near": near["keys"], "near_each": near["each"]}
            snapshot.ahead(("traits_around", both), *along)
            *columns, before, after = snapshot.rows("traits_around", both)[0]
            if (fetched := fetched_of(tuple(columns))) is not None:
                self.keep(fetched)
            return numbers_in(before), numbers_in(after)
        back, on = list[str](), list[str]()
        for key, before, after in chain.from_iterable(snapshot.rows_of_each("windows", values)):
            back += [f"{key},{before}"] if before else []
            on += [f"{key},{after}"] if after else []
        walks = numbers_in(",0,".join(back)), numbers_in(",0,".join(on))
        self._read(snapshot, np.concatenate((*(keys for keys, _ in asked), *walks)))
        return walks

    def _knows(self, at: Places, reach: int) -> None:
        """Record how far the order is now known around some turns and around their neighbours."""
        known = self._known
        known[at] = np.maximum(known[at], reach)
        for links in (self._previous, self._following):
            step: NDArray[np.integer] = at
            for left in range(reach - 1, 0, -1):
                step = links.take(step)
                known[step] = np.maximum(known[step], left)


class TurnTables:
    """One table per caller, so that a search does not depend on other callers' turns. Shared by a process's readers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[tuple[int, ...], TurnTable] = {}  # the latest used last

    @property
    def count(self) -> int:
        """The number of cached turns."""
        with self._lock:
            return sum(table.count for table in self._tables.values())

    def of(self, spaces: tuple[int, ...]) -> TurnTable:
        """Return the table of a caller by the spaces it sees. The tables used longest ago make room."""
        with self._lock:
            table = self._tables.pop(spaces, None) or TurnTable()
            count = sum(each.count for each in self._tables.values()) + table.count
            while self._tables and (count > KEPT_MOST or len(self._tables) >= _CALLERS_MOST):
                count -= self._tables.pop(next(iter(self._tables))).count
            self._tables[spaces] = table
            return table

    def are_held(self, spaces: tuple[int, ...]) -> bool:
        """Return whether it is in memory which turns of a caller hold which word."""
        table = self._tables.get(spaces)
        return table is not None and table.holding((), spaces) is not None

    def news(self, spaces: tuple[int, ...]) -> list[Asked]:
        """Return what the table of a caller will ask if turns were written."""
        table = self._tables.get(spaces)
        return table.news(spaces) if table else []


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return a copy with room for twice the length, filled with zeros."""
    grown = np.zeros(2 * length, array.dtype)
    grown[: len(array)] = array
    return grown


_KEY_BITS = np.uint64(32)


_KEY = np.uint64((1 << 32) - 1)


KEYS_BELOW = 1 << 32
"""Postings cover turns with keys below 4,294,967,296; above, the full-text index is used."""


class Words(NamedTuple):
    """The words of some turns. They stay valid whatever is read later.

    Attributes:
        keys: int64[n], below `KEYS_BELOW`.
        codes: uint32[m], which also contains words of other turns.
        starts: int64[n], where the words of each turn begin in `codes`.
        sizes: int32[n], the number of words of each turn, repeats included.
    """

    keys: Keys
    codes: Codes
    starts: Keys
    sizes: NDArray[np.int32]


_SCANNED_MOST = 60_000
"""Up to this many words, the first search looks at all of them, in a fifth of the time that sorting takes."""


class Holders:
    """Keys of turns by the code of each word they hold. What they answer never changes; hold the table's lock.

    Code and key are combined into one number of 64 bits, which sorts in a tenth of the time of an argsort of codes.
    """

    def __init__(self, words: Words) -> None:
        """Keep words as they are until they are needed.

        Args:
            words: of turns with ascending keys.
        """
        self._codes = words.codes.take(stretches(words.starts, words.sizes))
        self._keys = words.keys.repeat(words.sizes)
        self._is_new = len(self._codes) <= _SCANNED_MOST
        self._sorted = None if self._is_new else self._by_code()

    def _by_code(self) -> NDArray[np.uint64]:
        both = self._codes.astype(np.uint64)
        both <<= _KEY_BITS
        both |= self._keys.astype(np.uint64)
        both.sort()
        self._codes, self._keys = self._codes[:0], self._keys[:0]
        return both.take(runs_of(both))

    def of(self, asked: Codes) -> list[Keys]:
        """Return for each code the turns that hold it, ascending."""
        if not len(asked):
            return []
        if self._is_new:
            self._is_new = False
            found = (self._keys[self._codes == code] for code in asked)
            return [keys.take(runs_of(keys)) for keys in found]
        if self._sorted is None:
            self._sorted = self._by_code()
        both, first = self._sorted, asked.astype(np.uint64) << _KEY_BITS
        spans = zip(both.searchsorted(first), both.searchsorted(first | _KEY, "right"), strict=True)
        return [(both[begin:end] & _KEY).astype(np.int64) for begin, end in spans]
