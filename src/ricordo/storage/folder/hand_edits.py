"""Lines written or altered by hand become rows of a commit: whole rows, parts of rows, lines of the seed's files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import apsw

from ricordo.clock import from_ms, new_id
from ricordo.errors import RicordoError
from ricordo.model import Category, Change, Origin, Reason, RowId, RowState, Scope
from ricordo.storage.database.apply import apply
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.folder.journal import FolderJournal
from ricordo.storage.jsonl.layout import ARCHIVE, EPISODES
from ricordo.storage.jsonl.lines import (
    Findings,
    HandLine,
    Line,
    LineError,
    UnusedLines,
    encode,
    line_mark,
    milliseconds,
)
from ricordo.storage.jsonl.loader import KnownKeys, names_row
from ricordo.storage.jsonl.shapes import Shape, Shapes
from ricordo.storage.values import Image, content
from ricordo.text import name_key, same_name_key
from ricordo.text.sentences import plural

_CATEGORIES = frozenset(get_args(Category))
_ORIGINS = frozenset(get_args(Origin))
_REASONS = {"ephemeral_decay": "expired"}
_ORIGIN = "import"
_OWNER = "me"
"""The owner where a line names none: the same as of a memory opened without one."""
_IMPOSSIBLE = (apsw.ConstraintError, apsw.MismatchError, RicordoError)


def adopt(connection: apsw.Connection, journal: FolderJournal, found: Findings, *, now: int) -> None:
    """Apply changes made by hand as one commit; if that fails, row by row, so that a wrong line does not block others.

    Args:
        found: the lines and rows; lines that cannot become rows are added to its unused ones.
        now: Unix milliseconds.
    """
    adoption = _Adoption(connection, journal.shapes, found.unused, now=now)
    rows = (*found.states, *adoption.states(found.by_hand))
    if not rows:
        return
    try:
        _commit(connection, journal, rows, [*adoption.lines.values(), *adoption.unchanged], now=now)
    except _IMPOSSIBLE:
        _adopt_one_by_one(connection, journal, rows, adoption, now=now)


def _adopt_one_by_one(
    connection: apsw.Connection, journal: FolderJournal, rows: Sequence[RowState], adoption: _Adoption, *, now: int
) -> None:
    """Commit row by row. A line counts as adopted with the last of its rows, if all of them fit."""
    last, unchanged = {id(given): row for row, given in adoption.lines.items()}, adoption.unchanged
    for row in rows:
        given = adoption.lines.get(row.row)
        is_whole = (
            given is not None and last[id(given)] == row.row and (given.file, given.offset) not in adoption.unused.lines
        )
        try:
            _commit(connection, journal, (row,), [*unchanged, *([given] if given and is_whole else [])], now=now)
            unchanged = []
        except _IMPOSSIBLE as error:
            file, offset = (given.file, given.offset) if given else (f"row {row.row.key} of {row.row.table}", -1)
            adoption.unused.note(file, offset, str(error))


def _commit(
    connection: apsw.Connection,
    journal: FolderJournal,
    rows: Sequence[RowState],
    lines: Iterable[HandLine],
    *,
    now: int,
) -> None:
    reason = Reason(actor="hand", origin="hand", reason=f"{plural(len(rows), 'row')} by hand")
    marks = list(dict.fromkeys(line_mark(given.line) for given in lines))
    extra: Line = {"adopted": marks} if marks else {}
    connection.execute("SAVEPOINT by_hand")
    try:
        change = Change(rows=tuple(rows))
        apply(DatabaseSnapshot(connection), change, scope=Scope(owner=_OWNER), reason=reason, at=from_ms(now))
    except BaseException:
        connection.execute("ROLLBACK TO by_hand")
        connection.execute("RELEASE by_hand")
        raise
    connection.execute("RELEASE by_hand")
    journal.collect(connection, extra)


class _Adoption:
    """Works out the rows that lines written by hand ask for. Lives inside one transaction, under the lock."""

    def __init__(self, connection: apsw.Connection, shapes: Shapes, unused: UnusedLines, *, now: int) -> None:
        """Args:
        unused: receives the lines that cannot become rows.
        now: Unix milliseconds, for times that a line does not state.
        """
        self._connection = connection
        self._shapes = shapes
        self._now = now
        self._keys = KnownKeys(connection)
        self._next: dict[str, int] = {}
        self._rows: dict[RowId, RowState] = {}
        self.lines: dict[RowId, HandLine] = {}
        """The line of each row."""
        self.unchanged: list[HandLine] = []
        """Lines that repeat what the rows hold already."""
        self.unused = unused

    def states(self, lines: Sequence[HandLine]) -> tuple[RowState, ...]:
        """Return the rows as they should be, from all usable lines. People first, since memories refer to them."""
        for given in sorted(lines, key=lambda each: each.table != "entities"):
            known = len(self._rows)
            try:
                self._adopt(given)
            except (LineError, TypeError, ValueError, OverflowError) as error:
                self.unused.note(given.file, given.offset, str(error))
                continue
            fresh = [*self._rows][known:]
            self.lines.update(dict.fromkeys(fresh, given))
            self.unchanged += [] if fresh else [given]
        return tuple(self._rows.values())

    def _adopt(self, given: HandLine) -> None:
        shape = self._shapes.rows[given.table]
        if "seal" in given.line:
            self._altered(shape, given.line)
        elif given.table == "nodes":
            self._memory(shape, given)
        elif given.table == "entities":
            self._person(given)
        else:
            self._put(shape, self._key(shape, given.line), shape.image(given.line, self._keys))

    def _altered(self, shape: Shape, line: Line) -> None:
        """Take over a line that a commit wrote and that was altered by hand."""
        if not names_row(line.get("row"), shape):
            raise LineError("it names no row")
        image = shape.image(line, self._keys)
        key = (int(line["row"]),) if shape.table.key == ("key",) else tuple(image[name] for name in shape.table.key)
        self._put(shape, key, image)

    def _key(self, shape: Shape, line: Line) -> tuple[Any, ...] | None:
        if shape.table.key != ("key",):
            return None
        known = self._keys.key(shape.table.name, line["id"], space=None) if "id" in line else None
        return (known if known is not None else self._fresh(shape.table.name),)

    def _put(self, shape: Shape, key: tuple[Any, ...] | None, image: Mapping[str, Any]) -> RowId:
        """Note a row as it should be."""
        row = RowId(table=shape.table.name, key=key or tuple(image[name] for name in shape.table.key))
        whole = dict(image)
        if shape.table.key == ("key",):
            whole["key"] = row.key[0]
        self._rows[row] = RowState(row=row, values={**whole, "commit_seq": 0, "seal": b""})
        return row

    def _fresh(self, table: str) -> int:
        """Return a key that was never used."""
        if table not in self._next:
            last = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).get
            most = self._connection.execute(f'SELECT max(key) FROM "{table}"').get
            self._next[table] = max(int(last or 0), int(most or 0))
        self._next[table] += 1
        return self._next[table]

    def _memory(self, shape: Shape, given: HandLine) -> None:
        """Take over a memory, whole or in part, of any version of the files."""
        line = dict(given.line)
        if not isinstance(line.get("content"), str) or not line["content"].strip():
            raise LineError("it has no content")
        identity = line.setdefault("id", f"hand-{line_mark(given.line)}")
        known = self._keys.key("nodes", identity, space=None)
        present = self._present(shape, known)
        if not line.get("chat_id"):
            line["owner_user_id"] = line.get("owner_user_id") or _OWNER
        space = self._keys.space(str(line.get("owner_user_id") or ""), str(line.get("chat_id") or ""))
        if line.get("source_session_id"):
            self._session(space, str(line["source_session_id"]), line)
        people = line.pop("subject_person_ids", None) or ()
        self._normalise(line, is_new=present is None)
        image = {**self._defaults(given, line), **(present or {}), **self._given(shape, line)}
        if present is None:
            image["space"] = space
        elif given.file != ARCHIVE and "archived_at" not in line:
            image["closed_at"] = image["closed_reason"] = None
        key = known if known is not None else self._fresh("nodes")
        self._keys.learn(shape, line, str(key))
        if present is None or content({**image, "key": key}) != content(present):
            self._put(shape, (key,), image)
        for person in people:
            self._subject(key, str(person))

    def _present(self, shape: Shape, key: int | None) -> Image | None:
        return next(iter(shape.table.images(self._connection, "key = ?", (key,))), None)

    def _given(self, shape: Shape, line: Line) -> dict[str, Any]:
        """Return the columns that a line states."""
        image = shape.image(line, self._keys)
        spoken = {each.name for each in shape.columns if line.get(each.field) is not None and each.kind != "space"}
        return {name: value for name, value in image.items() if name in spoken}

    def _normalise(self, line: Line, *, is_new: bool) -> None:
        """Replace unknown origins and categories of a line."""
        if line.get("source") not in _ORIGINS and (is_new or line.get("source")):
            line["source"] = _ORIGIN
        if line.get("memory_type") is not None and line["memory_type"] not in _CATEGORIES:
            line["memory_type"] = "knowledge"

    def _defaults(self, given: HandLine, line: Line) -> dict[str, Any]:
        """Return the values of a memory that its line does not state."""
        is_episode = given.file == EPISODES
        created = self._milliseconds(line, "created_at") or self._now
        since = self._milliseconds(line, "observed_at") or created
        self._closing(given, line)
        confidence = line.get("extraction_confidence")
        return {
            "shelf": "e" if is_episode else "k",
            "type": "episodic" if is_episode else "semantic",
            "category": None if is_episode else "knowledge",
            "source_role": "user" if is_episode else None,
            "speaker": None,
            "session": None,
            "tags": "[]",
            "attributes": "{}",
            "event_time": since,
            "created_at": created,
            "valid_from": since,
            "valid_until": None,
            "expires_at": None,
            "closed_at": None,
            "closed_reason": None,
            "confidence": float(confidence) if isinstance(confidence, int | float) else 1.0,
            "decay_rate": 0.1,
            "score": 0.0,
            "reinforced_at": None,
            "source_type": _ORIGIN,
        }

    def _closing(self, given: HandLine, line: Line) -> None:
        """Read when and why a memory was closed. The seed has two fields for it, replaced and archived."""
        at = line.get("archived_at") or line.get("superseded_at")
        if at is None and given.file == ARCHIVE:
            at = line.get("created_at")
        if at is not None:
            reason = str(line.get("archive_reason") or ("superseded" if line.get("superseded_at") else "expired"))
            line["archived_at"], line["archive_reason"] = at, _REASONS.get(reason, reason)

    def _milliseconds(self, line: Line, name: str) -> int | None:
        return None if line.get(name) is None else milliseconds(line[name])

    def _session(self, space: int, name: str, line: Line) -> None:
        """Create the session that a memory names, at its first memory."""
        if self._keys.key("sessions", name, space=space) is not None:
            return
        shape, key = self._shapes.rows["sessions"], self._fresh("sessions")
        at = self._milliseconds(line, "observed_at") or self._milliseconds(line, "created_at") or self._now
        image = {
            "space": space,
            "session_id": name,
            "first_seen_at": at,
            "ended_at": None,
            "consolidated_at": None,
            "summary": None,
        }
        self._put(shape, (key,), {**dict.fromkeys(c for c in shape.table.columns if c not in image), **image})
        self._keys.note("sessions", (space, name), key)

    def _subject(self, node: int, person: str) -> None:
        entity = self._keys.key("entities", person, space=None)
        if entity is None:
            raise LineError(f"subject_person_ids: {person!r} does not exist")
        self._put(self._shapes.rows["subjects"], (node, entity), {"node": node, "entity": entity, "name": ""})

    def _person(self, given: HandLine) -> None:
        """Take over a person of the seed, or an entity, with its names."""
        line = dict(given.line)
        if not isinstance(line.get("name"), str) or not line["name"].strip():
            raise LineError("it has no name")
        identity = line.setdefault("id", f"hand-{line_mark(given.line)}")
        shape = self._shapes.rows["entities"]
        known = self._keys.key("entities", identity, space=None)
        present = self._present(shape, known)
        key = known if known is not None else self._fresh("entities")
        self._keys.learn(shape, line, str(key))
        line["owner_user_id"] = line.get("owner_user_id") or _OWNER
        space = self._keys.space(str(line["owner_user_id"]), str(line.get("chat_id") or ""))
        since = self._milliseconds(line, "created_at") or self._now
        base = {
            "space": space,
            "type": "person",
            "summary": None,
            "protected": 0,
            "attributes": "{}",
            "first_seen": since,
            "last_updated": since,
            "closed_at": None,
            "merged_into": None,
        }
        self._put(shape, (key,), {**base, **(present or {}), **self._given(shape, line)})
        self._names(space, key, [line["name"], *(line.get("aliases") or ())])
        if isinstance(line.get("relation"), str) and line["relation"].strip():
            self._relation(space, key, line["relation"], since)

    def _names(self, space: int, entity: int, names: Iterable[Any]) -> None:
        shape = self._shapes.rows["aliases"]
        for name in dict.fromkeys(str(each) for each in names):
            image = {
                "space": space,
                "folded": name_key(name),
                "entity": entity,
                "alias": name,
                "sound": same_name_key(name),
            }
            self._put(shape, None, image)

    def _relation(self, space: int, entity: int, predicate: str, since: int) -> None:
        shape, key = self._shapes.rows["relations"], self._fresh("relations")
        image = {
            "id": new_id(self._now),
            "space": space,
            "source": None,
            "predicate": predicate,
            "target": entity,
            "valid_from": None,
            "valid_until": None,
            "evidence": encode([]),
            "created_at": since,
            "closed_at": None,
        }
        self._put(shape, (key,), image)
