"""What devices exchange: the commits of a space as changed fields with public names, and their merge into rows.

Each field of each row takes its value from the commit that is last on a logical clock shared by all devices: a number,
then the device. So the state does not depend on the order in which commits arrive, nor on any wall clock. A row exists
if the last commit that wrote or removed it wrote it, and if the rows that it refers to exist.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final, Literal, NamedTuple

from ricordo.clock import from_ms
from ricordo.model import Change, Node, Reason, RowId, RowState, Scope
from ricordo.storage.database.apply import apply
from ricordo.storage.database.history import TABLES, Table, names_of, truth_of
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import Row
from ricordo.storage.protocol import Snapshot
from ricordo.storage.values import Image, voices_in

State = Literal["new", "changed", "gone", "erased"]

_ALL, _THERE, _GONE, _ERASED = "*", "+", "-", "x"
_OWN = frozenset(("key", "space", "commit_seq", "seal"))
"""Columns that have a meaning only in the store that holds the row."""
_ORDER: Final[Mapping[str, int]] = {name: place for place, name in enumerate(TABLES["exchanged"])}
_TOGETHER: Final[Mapping[str, Sequence[str]]] = TABLES["together"]
_NEXT_KEY: Final[Mapping[str, str]] = {
    "sessions": "session_last_key",
    "nodes": "node_last_key",
    "entities": "entity_last_key",
    "relations": "relation_last_key",
    "reviews": "review_last_key",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """What a commit did to one row.

    Args:
        record: the hash of its table and public name.
        values: column to value, including the identifying columns; all columns of a new row, none of a removed one.
    """

    table: str
    record: str
    state: State
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangedCommit:
    """A commit as devices exchange it.

    Args:
        number: its place on the logical clock that the devices share.
        after: the number of the same device's previous commit; 0 for its first.
    """

    device: str
    number: int
    after: int
    actor: str = ""
    origin: str = ""
    reason: str = ""
    run_id: str | None = None
    deltas: tuple[Delta, ...] = ()


Vector = Mapping[str, int]
"""Which commits of each device are known: device to the number of its last known commit."""


@dataclass(slots=True)
class Merged:
    """What merging commits of other devices changed here.

    Attributes:
        commits: how many were merged.
        created: (table, id) of rows that are new here, or reopened.
        needed: by table, keys of rows that one device erased and another one still uses.
        disputed: ids of reviews that were decided differently on two devices.
        missing: devices with missing commits, and the number of the last one before the gap.
        told: memories that got their text, by record, each with the number of the commit.
    """

    commits: int = 0
    created: list[tuple[str, str]] = field(default_factory=list)
    needed: dict[str, list[int]] = field(default_factory=dict)
    disputed: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    told: dict[str, tuple[Node, int]] = field(default_factory=dict)


class Stamp(NamedTuple):
    """A time on the logical clock that devices share."""

    number: int
    device: str


class Chat(NamedTuple):
    """A chat of the store, as an owner sees it.

    Attributes:
        is_shared: whether it has, or had, members.
        is_kept: whether the owner is a keeper of it.
        is_joined: whether the owner wrote something in it.
    """

    name: str
    is_shared: bool
    is_kept: bool
    is_joined: bool


Settle = Callable[[Snapshot, "Exchange", Merged], Change]
"""Returns the change that follows from a merge of other devices' commits, in the same transaction."""


class _Written(NamedTuple):
    stamp: Stamp
    row: str
    fields: frozenset[str]


class Exchange:
    """One space of a store and its exchange with other devices. Valid inside one write transaction."""

    def __init__(self, snapshot: Snapshot, scope: Scope) -> None:
        assert isinstance(snapshot, DatabaseSnapshot)  # every backend's snapshot is one
        self._sql = snapshot
        self._scope = scope
        self._ledger = snapshot.history.ledger()
        self._truth = truth_of(snapshot.connection)
        self._at = {"space": self._home()}
        self._referring = {
            name: {each.column: each.target for each in self._truth.parents(name) if each.target in _ORDER}
            for name in _ORDER
        }

    def _home(self) -> int:
        owner, chat = (self._scope.owner, "") if self._scope.owner else ("", self._scope.chat or "")
        key = self._sql.space(owner, chat)
        return int(self._sql.value("space_insert", {"owner": owner, "chat": chat}) if key is None else key)

    @property
    def space(self) -> int:
        return self._at["space"]

    def chats(self, owner: str) -> list[Chat]:
        """Return all chats of the store."""
        found = self._sql.rows("exchanged_chats", {"owner": owner})
        return [Chat(name, bool(shared), bool(kept), bool(joined)) for name, shared, kept, joined in found]

    # what this store did

    def device(self) -> str:
        """Return the name of this store's device, and choose it at first use."""
        return self.names()[0]

    def names(self) -> tuple[str, ...]:
        """Return all names that this store's device has had, the latest first."""
        names = tuple(name for (name,) in self._sql.rows("exchanged_names", self._at))
        return names or (self.rename(),)

    def rename(self) -> str:
        """Take a new name, because another copy of this store uses the old one. Former commits keep the old name."""
        name, names = os.urandom(8).hex(), self._sql.rows("exchanged_names", self._at)
        self._note(name, 0, len(names) + 1)
        return name

    def _last(self) -> tuple[int, int]:
        seq, number = self._sql.rows("exchanged_last", self._at)[0]
        return int(seq), int(number)

    def _note(self, device: str, number: int, seq: int) -> None:
        self._sql.many("exchanged_put", [(self.space, device, number, seq)])

    def vector(self) -> dict[str, int]:
        """Return the number of the last known commit of each device."""
        return dict(self._sql.rows("exchanged_vector", self._at))

    def erased_at(self) -> int:
        """Return the last commit of this store that erased something; 0 if none did."""
        return int(self._sql.value("erasures_last", self._at))

    def number_own(self) -> int:
        """Number the store's own commits since the last exchange that changed rows of the space; return how many."""
        device, (after, number) = self.device(), self._last()
        listed = self._sql.rows("commits_to_exchange", {**self._at, "after": after, "is_group": not self._scope.owner})
        own = [seq for (seq,) in listed]
        erases = bool(own) and (self.erased_at() > after or bool(self._sql.rows("stamps_unnumbered", self._at)))
        count = 0
        for seq in own:
            stamp = Stamp(number + count + 1, device)
            touched = [self._stamp_own(row, seq, stamp) for row in self._ledger.touched(seq) if row.table in _ORDER]
            if any(touched) or (erases and seq == own[-1]):
                self._note(device, stamp.number, seq)
                count += 1
        if erases:
            self._number_erasures(Stamp(number + count, device))
        if self.erased_at() > after:
            self._number_traceless(Stamp(number + count, device))
        if own:
            self._sql.rows("exchanged_reached", {**self._at, "seq": own[-1]})
        return count

    def _number_traceless(self, stamp: Stamp) -> None:
        """Mark rows as gone that were undone and then lost their history to an erasure; mark nodes as erased."""
        aside = self.aside()
        for record, name, text in self._sql.rows("stamps_rows", self._at):
            table, row = self._truth.tables[name], _row_of(name, text)
            if row is None or record in aside or table.current(self._sql.connection, row.key) is not None:
                continue
            if name != "sessions" and _is_there(self.written(record)):
                self.stamp(record, name, "", stamp, {_ERASED if name == "nodes" else _GONE})

    def _number_erasures(self, stamp: Stamp) -> None:
        erased = self._sql.rows("stamps_unnumbered", self._at)
        self._sql.rows("stamps_numbered", self._at)
        for record, table in erased:
            self.stamp(record, table, "", stamp, {_ERASED})

    def _stamp_own(self, row: RowId, seq: int, stamp: Stamp) -> bool:
        """Note what an own commit did to a row; return whether other devices need to know."""
        before, after = self._ledger.state(row, seq - 1), self._ledger.state(row, seq)
        image = after or before
        if image is None or self._space_of(row.table, image) != self.space:
            return False
        named = self.public(row.table, image)
        if named is None or (after is None and row.table == "sessions"):  # only its last message removes a session
            return False
        record = record_of(row.table, named)
        if after is None:
            self.put_aside(record, row.table, named)
            self.stamp(record, row.table, _text(row), stamp, {_GONE})
            return True
        changed = {_ALL} if before is None else self._changed(row.table, before, after)
        if changed:
            self._sql.rows("unplaced_drop", {**self._at, "record": record})
            self.stamp(record, row.table, _text(row), stamp, changed)
            if before is None and row.table == "sessions":  # an earlier one of that name may have had another key
                self.moved(record, row)
        return bool(changed)

    def _changed(self, table: str, before: Image, after: Image) -> set[str]:
        found = {name for name in self.columns(table) if before[name] != after[name]}
        tied = _TOGETHER.get(table, ())
        return found.union(tied) if found.intersection(tied) else found

    def columns(self, table: str) -> list[str]:
        return [name for name in self._truth.tables[table].columns if name not in _OWN]

    def _space_of(self, table: str, image: Image) -> int | None:
        """Return the space of a row, or of the memory it belongs to."""
        if "space" in image:
            return int(image["space"])
        parent = self._former(RowId(table="nodes", key=(image["node" if table == "subjects" else "source"],)))
        return None if parent is None else int(parent["space"])

    def _former(self, row: RowId) -> Image | None:
        """Return the present values of a row, or its last ones if it was removed."""
        found = self._ledger.current(row)
        for seq in () if found else reversed(self._ledger.touches(row)):
            if (found := self._ledger.state(row, seq - 1)) is not None:
                break
        return found

    def public(self, table: str, image: Image) -> dict[str, Any] | None:
        """Return a row with public names instead of keys; None if it refers to something that is erased."""
        found = {name: image[name] for name in self.columns(table)}
        for column, target in self._referring[table].items():
            if found[column] is not None:
                parent = self._former(RowId(table=target, key=(found[column],)))
                if parent is None:
                    return None
                found[column] = parent[names_of(target)[0]]
        return found

    def stamp(self, record: str, table: str, row: str, stamp: Stamp, fields: Iterable[str]) -> None:
        listed = json.dumps(sorted(fields), separators=(",", ":"))
        self._sql.many("stamp_put", [(self.space, record, stamp.device, stamp.number, table, row, listed)])

    def put_aside(self, record: str, table: str, named: Mapping[str, Any]) -> None:
        line = json.dumps(named, ensure_ascii=False, separators=(",", ":"))
        self._sql.rows("unplaced_put", {**self._at, "record": record, "table": table, "line": line})

    # what other devices do not know yet

    def unknown_to(self, known: Vector) -> Iterator[ExchangedCommit]:
        """Yield the commits that `known` does not include, in the order of the logical clock."""
        last: dict[str, int] = {}
        for device, number, seq in self._sql.rows("exchanged_commits", self._at):
            after, last[device] = last.get(device, 0), number
            if number > known.get(device, 0):
                yield self._exchanged(device, number, after, seq)

    def _exchanged(self, device: str, number: int, after: int, seq: int) -> ExchangedCommit:
        made = self._sql.history.get(seq) if seq else None
        rows = self._sql.rows("stamps_of_commit", {**self._at, "device": device, "number": number})
        deltas = [each for row in rows if (each := self._delta(row, seq)) is not None]
        deltas.sort(key=lambda each: (_ORDER[each.table], each.record))
        commit = ExchangedCommit(device=device, number=number, after=after, deltas=tuple(deltas))
        if made is None:
            return commit
        return replace(commit, actor=made.actor, origin=made.origin, reason=made.reason, run_id=made.run_id)

    def _delta(self, stamp: Row, seq: int) -> Delta | None:
        record, table, row, listed = stamp
        fields = set(json.loads(listed))
        if fields <= {_ERASED, _GONE}:
            return Delta(table=table, record=record, state="erased" if _ERASED in fields else "gone")
        named = self._named_then(record, table, row, seq)
        if named is None:
            return None
        is_new = bool(fields & {_ALL, _THERE})
        wanted = self.columns(table) if _ALL in fields else [*names_of(table), *sorted(fields - {_THERE})]
        return Delta(
            table=table,
            record=record,
            state="new" if is_new else "changed",
            values={name: named[name] for name in wanted if name in named},
        )

    def _named_then(self, record: str, table: str, row: str, seq: int) -> dict[str, Any] | None:
        """Return a row as it was after a commit; if that version was erased, the latest one that is left."""
        if row:
            key = RowId(table=table, key=tuple(json.loads(row)))
            image = (self._ledger.state(key, seq) if seq else None) or self._former(key)
            if image is not None:
                return self.public(table, image)
        return self.aside().get(record, (table, None))[1]

    def aside(self) -> dict[str, tuple[str, dict[str, Any]]]:
        found = self._sql.rows("unplaced_of", self._at)
        return {record: (table, json.loads(line)) for record, table, line in found}

    # what other devices did

    def merge(self, commits: Iterable[ExchangedCommit], *, now: datetime, settle: Settle) -> Merged:
        """Merge commits of other devices, each as one commit of this store. Commits known already are skipped.

        Args:
            now: the time of the merge, so that a query of the past shows what this store knew then.
            settle: decides on conflicts between commits of devices that did not know of each other.
        """
        merged, vector = Merged(), self.vector()
        for commit in sorted(commits, key=lambda each: (each.number, each.device)):
            known = vector.get(commit.device, 0)
            if commit.number <= known:
                continue
            if commit.after > known:
                merged.missing.setdefault(commit.device, known)
                continue
            self._take_in(commit, merged, now)
            vector[commit.device] = commit.number
            merged.commits += 1
        self.keep(merged.needed)
        if merged.commits:
            self._apply(Change(rows=tuple(self._straightened())), now)
            self._apply(settle(self._sql, self, merged), now)
        return merged

    def _apply(self, change: Change, now: datetime) -> None:
        if not change.is_empty:
            apply(self._sql, change, scope=self._scope, reason=Reason(actor="", origin="sync", reason="sync"), at=now)

    def maker(self, table: str, id: str) -> str:
        """Return the device that created a row."""
        made = [each.stamp for each in self.written(_hash(table, (id,))) if each.fields & {_ALL, _THERE}]
        return min(made, default=_NEVER).device

    def is_refused(self, table: str, id: str) -> bool:
        """Return whether a row was erased on some device. It is still here until the merge is complete."""
        return is_dead(self.written(_hash(table, (id,))))

    def stated(self, node: int) -> tuple[str, ...]:
        """Return the names that a memory was stated to be about, as they were written then."""
        rows = self._truth.tables["subjects"].images(self._sql.connection, "node = ?", (node,))
        return tuple(sorted(each["name"] for each in rows))

    def _straightened(self) -> Iterator[RowState]:
        """Yield corrected entities: those merged in a circle, or into an entity that is itself merged."""
        table = self._truth.tables["entities"]
        held = table.images(self._sql.connection, "space = ? AND merged_into IS NOT NULL", (self.space,))
        merged = {image["key"]: image for image in held}
        for key, image in merged.items():
            root = _root(key, merged)
            if root != image["merged_into"]:
                straight = {"merged_into": root} if root != key else {"merged_into": None, "closed_at": None}
                yield RowState(row=table.row_id(image), values={**image, **straight})

    def _take_in(self, commit: ExchangedCommit, merged: Merged, now: datetime) -> None:
        joined = _Join(self, Stamp(commit.number, commit.device), merged)
        change = joined.change(commit.deltas)
        reason = Reason(actor=commit.actor, origin=commit.origin or "sync", reason=commit.reason, run_id=commit.run_id)
        seq = 0 if change.is_empty else apply(self._sql, change, scope=self._scope, reason=reason, at=now)
        self._note(commit.device, commit.number, seq)
        if seq:
            self._ledger = self._sql.history.ledger()  # the old one caches rows from before the commit

    def erased_elsewhere(self) -> dict[str, list[int]]:
        """Return the keys, by table, of rows that were erased on another device and are here or in the history."""
        found: dict[str, list[int]] = {}
        for record, table, row in self._sql.rows("stamps_erased", self._at):
            key = tuple(json.loads(row))
            if is_dead(self.written(record)) and self._former(RowId(table=table, key=key)) is not None:
                found.setdefault(table, []).append(key[0])
        return found

    def keep(self, rows: Mapping[str, Sequence[int]]) -> None:
        """Tell other devices that rows erased on one of them are needed here, with the rows that belong to them."""
        device, (_, number) = self.device(), self._last()
        wanted = (RowId(table=table, key=(key,)) for table, keys in rows.items() for key in keys)
        waiting = [row for row in wanted if self.current(row) is not None]
        if waiting:
            self._note(device, number + 1, 0)
        for row in waiting:
            for each in self._with_dependents(row):
                image = self._ledger.current(each)
                if image is not None and (named := self.public(each.table, image)) is not None:
                    record = record_of(each.table, named)
                    self.stamp(record, each.table, _text(each), Stamp(number + 1, device), {_ALL})

    def refuse(self, records: Iterable[str]) -> None:
        """Erase memories of other devices, here and there. `erased_elsewhere` returns those that are here."""
        stamp = Stamp(self._last()[1] + 1, self.device())
        for record in records:
            row = next((each.row for each in self.written(record) if each.row), "")
            self.stamp(record, "nodes", row, stamp, {_ERASED})
            self.drop_if_dead(record)
        self._note(stamp.device, stamp.number, 0)

    def unaware_since(self, number: int) -> int | None:
        """Return when the first erasure was made that another device's commit cannot have known of; None if it may have
        known of all.
        """
        values = {**self._at, "device": self.device(), "number": number}
        found: int | None = self._sql.value("erasures_unaware", values)
        return found

    def node(self, named: Mapping[str, Any]) -> Node:
        """Return a memory as far as its text and its origin go."""
        return Node(
            id=named["id"],
            type=named["type"],
            content=named["content"],
            owner=self._scope.owner,
            chat=(self._scope.chat or "") if not self._scope.owner else "",
            session=named["session"],
            role=named["source_role"],
            origin=named["source_type"],
            speaker=named["speaker"],
            attributes=json.loads(named["attributes"]),
            event_time=from_ms(named["event_time"]),
            valid_from=from_ms(named["valid_from"]),
            created_at=from_ms(named["created_at"]),
        )

    def _with_dependents(self, row: RowId) -> list[RowId]:
        """Return a row, and all rows that were removed with it where it was erased; a session alone."""
        found = [row]
        for each in found if row.table != "sessions" else ():
            found += [child for child in self.children(each) if child not in found]
        return found

    # for `_Join`

    def written(self, record: str) -> list[_Written]:
        """Return which commits wrote which fields of a record."""
        return [
            _Written(Stamp(number, device), row, frozenset(json.loads(fields)))
            for device, number, row, fields in self._sql.rows("stamps_of", {**self._at, "record": record})
        ]

    @property
    def sql(self) -> DatabaseSnapshot:
        return self._sql

    def table(self, name: str) -> Table:
        return self._truth.tables[name]

    def references(self, table: str) -> Mapping[str, str]:
        return self._referring[table]

    def current(self, row: RowId) -> Image | None:
        return self.table(row.table).current(self._sql.connection, row.key)

    def children(self, row: RowId) -> list[RowId]:
        return [each for each in self._ledger.children(row) if each.table in _ORDER]

    def take_back(self, record: str) -> None:
        self._sql.rows("unplaced_drop", {**self._at, "record": record})

    def drop_if_dead(self, record: str) -> None:
        """Drop the values that wait for an erased row, and those of rows that refer to it."""
        for each, (table, named) in self.aside().items() if is_dead(self.written(record)) else ():
            parents = (_hash(target, (named.get(column),)) for column, target in self.references(table).items())
            if record in (each, *parents):
                self.take_back(each)

    def moved(self, record: str, row: RowId) -> None:
        self._sql.rows("stamps_move", {**self._at, "record": record, "row": _text(row)})


@dataclass(slots=True)
class _Record:
    """The state that a record should have after the merge."""

    table: str
    named: dict[str, Any]
    is_there: bool
    row: RowId | None
    is_unsure: bool = False
    """Whether a later commit decided a field, and its value was erased here."""


class _Join:
    """Turns one commit of another device into a change of rows."""

    def __init__(self, exchange: Exchange, stamp: Stamp, merged: Merged) -> None:
        self._exchange = exchange
        self._stamp = stamp
        self._merged = merged
        self._records: dict[str, _Record] = {}
        self._keys: dict[tuple[str, str], int | None] = {}
        self._next: dict[str, int] = {}
        self._rows: dict[RowId, dict[str, Any] | None] = {}
        self._withhold: list[str] = []
        self._said_anew: list[int] = []
        self._new: set[str] = set()

    def change(self, deltas: Sequence[Delta]) -> Change:
        """Return what the commit changes here, after recording which fields it decides."""
        self._new = {each.record for each in deltas if each.state == "new"}
        for delta in sorted(deltas, key=lambda each: _ORDER[each.table]):
            self._join(delta)
        for record, wanted in list(self._records.items()):
            self._place(record, wanted)
        self._place_waiting()
        return Change(
            rows=tuple(RowState(row=row, values=image) for row, image in self._rows.items()),
            withhold=tuple(self._withhold),
            said_anew=tuple(self._said_anew),
        )

    # which fields it decides

    def _join(self, delta: Delta) -> None:
        written = self._exchange.written(delta.record)
        row = next((each.row for each in written if each.row), "") or self._row_here(delta)
        if delta.state == "erased":
            if not any(_ERASED in each.fields and each.stamp >= self._stamp for each in written):
                self._exchange.stamp(delta.record, delta.table, row, self._stamp, {_ERASED})
            self._exchange.drop_if_dead(delta.record)
            self._keep_if_here(delta, row)
            return
        if self._is_dead(delta, written):
            return
        if delta.state == "gone":
            self._join_gone(delta, written, row)
            return
        was_dead = is_dead(written)
        known = self._known(delta.table, delta.record, row)
        is_new = delta.state == "new"
        won = {name for name in delta.values if self._stamp > _last(written, name)}
        won -= {"first_seen_at"} if known and delta.table == "sessions" else set()  # keep the time it began here
        if not won and not known:  # later commits decided all fields, and the row no longer exists
            return
        is_last = is_new and self._stamp > _last(written, _THERE, _GONE)
        self._note_disputed(delta, known)
        named = {**known, **{name: value for name, value in delta.values.items() if name in won or name not in known}}
        is_all = won >= set(self._exchange.columns(delta.table)) - {"first_seen_at"}
        marks = {_ALL} if is_last and is_all else won
        if marks := marks | ({_THERE} if is_last else set()):
            self._exchange.stamp(delta.record, delta.table, row, self._stamp, marks)
        if was_dead:
            self._keep_if_here(delta, row)
        if delta.table == "nodes" and "content" in won and named.keys() >= set(self._exchange.columns("nodes")):
            self._merged.told[delta.record] = self._exchange.node(named), self._stamp.number
        is_there = is_last or _is_there(written)
        is_unsure = not delta.values.keys() <= won | known.keys() | {"first_seen_at"}
        self._records[delta.record] = _Record(delta.table, named, is_there, _row_of(delta.table, row), is_unsure)

    def _keep_if_here(self, delta: Delta, row: str) -> None:
        """Note a row as needed if one device erased it, another one uses it, and it still exists here: devices that
        erased it may have lost the rows that belong to it.
        """
        key = _row_of(delta.table, row)
        if key is None or is_dead(self._exchange.written(delta.record)) or self._current(key) is None:
            return
        self._merged.needed.setdefault(delta.table, []).append(int(key.key[0]))

    def _row_here(self, delta: Delta) -> str:
        """Return the key of a row that exists here but was never exchanged, as text; "" if there is none."""
        name = delta.values.get(names_of(delta.table)[0])
        if name is None or self._exchange.table(delta.table).key != ("key",):
            return ""
        key = self._key(delta.table, name)
        return "" if key is None else _text(RowId(table=delta.table, key=(key,)))

    def _is_dead(self, delta: Delta, written: Sequence[_Written]) -> bool:
        """Return whether a row, or one that it refers to, stays erased in spite of this commit."""
        named = (
            (target, delta.values.get(column)) for column, target in self._exchange.references(delta.table).items()
        )
        parents = [_hash(target, (name,)) for target, name in named if name is not None]
        return self._is_gone_for_good(delta.record, written) or any(
            self._is_gone_for_good(each, self._exchange.written(each)) for each in parents
        )

    def _is_gone_for_good(self, record: str, written: Sequence[_Written]) -> bool:
        now = [_Written(self._stamp, "", frozenset((_ALL,)))] if record in self._new else []
        return is_dead([*written, *now])

    def _join_gone(self, delta: Delta, written: Sequence[_Written], row: str) -> None:
        if self._stamp <= _last(written, _THERE, _GONE):
            return
        self._exchange.stamp(delta.record, delta.table, row, self._stamp, {_GONE})
        known = self._known(delta.table, delta.record, row)
        self._records[delta.record] = _Record(delta.table, dict(known), False, _row_of(delta.table, row))

    def _known(self, table: str, record: str, row: str) -> dict[str, Any]:
        key = _row_of(table, row)
        image = None if key is None else self._exchange.current(key)
        named = None if image is None else self._exchange.public(table, image)
        return named or self._exchange.aside().get(record, (table, {}))[1]

    def _note_disputed(self, delta: Delta, known: Mapping[str, Any]) -> None:
        told, here = delta.values.get("decision"), known.get("decision")
        if delta.table == "reviews" and told and here and told != here:
            self._merged.disputed.append(delta.values["id"])

    # what becomes of rows

    def _place(self, record: str, wanted: _Record) -> None:
        keys = self._parents(wanted)
        is_whole = wanted.named.keys() >= set(self._exchange.columns(wanted.table))
        if not wanted.is_there or not is_whole or keys is None:
            if wanted.named:
                self._exchange.put_aside(record, wanted.table, wanted.named)
            if wanted.row is not None and self._current(wanted.row) is not None:
                self._remove(wanted.row)
            return
        self._write(record, wanted, keys)

    def _parents(self, wanted: _Record) -> dict[str, int] | None:
        """Return the keys of the rows that a row refers to, by column; None if one of them does not exist."""
        found: dict[str, int] = {}
        for column, target in self._exchange.references(wanted.table).items():
            name = wanted.named.get(column)
            if name is None:
                continue
            key = self._key(target, name)
            if key is None and target == "sessions":
                key = self._new_session(name, wanted.named["created_at"])
            if key is None:
                return None
            found[column] = key
        return found

    def _key(self, target: str, name: str) -> int | None:
        if (target, name) not in self._keys:
            column = names_of(target)[0]
            statement = f'SELECT key FROM "{target}" WHERE space = ? AND "{column}" = ?'
            key = self._exchange.sql.connection.execute(statement, (self._exchange.space, name)).get
            self._keys[target, name] = key
        return self._keys[target, name]

    def _new_session(self, name: str, at: int) -> int:
        """Create a session again that was removed with its last message, with the values that arrived for it since."""
        fresh = {"session_id": name, "first_seen_at": at}
        record = record_of("sessions", fresh)
        fresh |= self._exchange.aside().get(record, ("sessions", {}))[1]
        key = self._free_key("sessions")
        row = RowId(table="sessions", key=(key,))
        named = {column: fresh.get(column) for column in self._exchange.columns("sessions")}
        self._rows[row] = {**named, "key": key, "space": self._exchange.space}
        self._exchange.take_back(record)
        self._exchange.moved(record, row)
        self._keys["sessions", name] = key
        self._merged.needed.setdefault("sessions", []).append(key)
        return key

    def _free_key(self, table: str) -> int:
        if table not in self._next:
            self._next[table] = int(self._exchange.sql.value(_NEXT_KEY[table]))
        self._next[table] += 1
        return self._next[table]

    def _write(self, record: str, wanted: _Record, keys: Mapping[str, int]) -> None:
        table = self._exchange.table(wanted.table)
        image = {**wanted.named, **keys}
        if "space" in table.columns:
            image["space"] = self._exchange.space
        if "key" in table.columns:
            image["key"] = wanted.row.key[0] if wanted.row else self._free_key(wanted.table)
        row = table.row_id(image)
        before = self._current(row)
        self._exchange.take_back(record)
        if row != wanted.row:
            self._exchange.moved(record, row)
        if table.key == ("key",):
            self._keys[wanted.table, wanted.named[names_of(wanted.table)[0]]] = int(row.key[0])
        if before is not None and all(before[name] == value for name, value in image.items()):
            return
        self._rows[row] = image
        if wanted.is_unsure and wanted.table == "sessions":  # all devices take the values that are left
            self._merged.needed.setdefault("sessions", []).append(int(row.key[0]))
        if before is None and "id" in image:
            self._merged.created.append((wanted.table, image["id"]))
        if wanted.table == "nodes":
            self._note_forgotten(before, image)

    def _note_forgotten(self, before: Image | None, image: Mapping[str, Any]) -> None:
        """Suppress here what was forgotten on another device, and lift the suppression of what was restored there."""
        was_open = before is None or before["closed_at"] is None
        if image["closed_reason"] == "forgotten":
            if before is None or before["closed_reason"] != "forgotten":
                self._withhold.append(image["id"])
        elif not was_open and image["closed_at"] is None:
            self._merged.created.append(("nodes", image["id"]))
            found = self._exchange.sql.suppression.said_anew(
                self._exchange.space, image["content"], voices=voices_in(image)
            )
            self._said_anew += found

    def _current(self, row: RowId) -> Image | None:
        return self._rows[row] if row in self._rows else self._exchange.current(row)

    def _remove(self, row: RowId) -> None:
        """Remove a row, and put aside the rows that refer to it."""
        image = self._current(row)
        if image is None:
            return
        for child in self._exchange.children(row):
            held = self._current(child)
            if held is None or not self._refers(child.table, held, row):
                continue
            if (named := self._exchange.public(child.table, held)) is not None:
                self._exchange.put_aside(record_of(child.table, named), child.table, named)
            self._remove(child)
        self._rows[row] = None
        if self._exchange.table(row.table).key == ("key",):
            self._keys[row.table, image[names_of(row.table)[0]]] = None

    def _refers(self, table: str, image: Image, row: RowId) -> bool:
        targets = self._exchange.references(table).items()
        return any(target == row.table and image[column] == row.key[0] for column, target in targets)

    def _place_waiting(self) -> None:
        """Store the rows put aside whose parents exist by now."""
        placed = any(image is not None for image in self._rows.values())
        while placed:
            placed = False
            for record, (table, named) in self._exchange.aside().items():
                written = self._exchange.written(record)
                row = _row_of(table, next((each.row for each in written if each.row), ""))
                wanted = _Record(table, named, _is_there(written), row)
                is_whole = named.keys() >= set(self._exchange.columns(table))
                if wanted.is_there and is_whole and (keys := self._parents(wanted)) is not None:
                    self._write(record, wanted, keys)
                    placed = True


def record_of(table: str, named: Mapping[str, Any]) -> str:
    """Return the name by which devices refer to a row. It is a hash, since the row's own name may hold text."""
    return _hash(table, [named[name] for name in names_of(table)])


def _hash(table: str, name: Sequence[Any]) -> str:
    plain = json.dumps([table, *name], ensure_ascii=True)
    return blake2b(plain.encode(), digest_size=16).hexdigest()


def _text(row: RowId) -> str:
    return json.dumps(row.key, ensure_ascii=False, separators=(",", ":"))


def _row_of(table: str, text: str) -> RowId | None:
    return RowId(table=table, key=tuple(json.loads(text))) if text else None


def _root(key: int, merged: Mapping[int, Image]) -> int:
    """Return the entity that an entity is merged into in the end; in a circle, the one with the smallest id."""
    path = [key]
    while path[-1] in merged and merged[path[-1]]["merged_into"] not in path:
        path.append(merged[path[-1]]["merged_into"])
    if path[-1] not in merged:
        return path[-1]
    circle = path[path.index(merged[path[-1]]["merged_into"]) :]
    return min(circle, key=lambda each: str(merged[each]["id"]))


_NEVER = Stamp(-1, "")


def _last(written: Sequence[_Written], *fields: str) -> Stamp:
    """Return the stamp of the last commit that decided one of some fields."""
    wanted = {*fields, _ALL}
    return max((each.stamp for each in written if each.fields & wanted), default=_NEVER)


def _is_there(written: Sequence[_Written]) -> bool:
    return _last(written, _THERE) > max((each.stamp for each in written if _GONE in each.fields), default=_NEVER)


def is_dead(written: Sequence[_Written]) -> bool:
    """Return whether a record was erased and not written again since."""
    erased = max((each.stamp for each in written if _ERASED in each.fields), default=None)
    return erased is not None and erased > max(
        (each.stamp for each in written if each.fields & {_ALL, _THERE}), default=_NEVER
    )
