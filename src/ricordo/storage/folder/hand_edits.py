"""Turn lines written or changed by hand into rows of a commit: complete rows, parts of rows, and seed lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import apsw

from ricordo.clock import from_ms, new_id
from ricordo.errors import RicordoError
from ricordo.model import Category, Change, Origin, Reason, RowId, RowState, Scope
from ricordo.storage.database.apply import apply
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import sql
from ricordo.storage.folder.journal import FolderJournal
from ricordo.storage.jsonl.layout import ARCHIVE, EPISODES
from ricordo.storage.jsonl.lines import Findings, HandLine, Line, LineError, UnusedLines, line_mark, milliseconds
from ricordo.storage.jsonl.loader import KnownKeys, names_row
from ricordo.storage.jsonl.shapes import Shape, Shapes
from ricordo.storage.values import Image, content, voices_in
from ricordo.text.analyzer import name_key
from ricordo.text.names import same_name_key
from ricordo.text.sentences import plural

_CATEGORIES = frozenset(get_args(Category))
_ORIGINS = frozenset(get_args(Origin))
_REASONS = {"ephemeral_decay": "expired"}
_ORIGIN = "import"
_OWNER = "me"
"""The default owner of a line, the same as for a memory opened without an owner."""
_DEEPEST = 5
_SEALING = {"commit", "seal", "row", "kind", "owner_user_id", "chat_id", "removed"}
"""Fields of a line that its row does not have."""
_IMPOSSIBLE = (apsw.ConstraintError, apsw.MismatchError, RicordoError)


def adopt(connection: apsw.Connection, journal: FolderJournal, found: Findings, *, now: int) -> list[HandLine]:
    """Apply changes made by hand as one commit; if that fails, row by row, so that a wrong line does not block others.

    Return the adopted lines: their rows now also have lines written by commits.

    Args:
        found: the lines and rows; unusable lines are added to its unused ones.
        now: Unix milliseconds.
    """
    adoption = _Adoption(connection, journal.shapes, found.unused, now=now)
    rows = (*found.states, *adoption.states(found.by_hand))
    unchanged = adoption.unchanged
    for scope, group in _by_owner(connection, journal.shapes, rows).items():
        lines = [adoption.lines[each.row] for each in group if each.row in adoption.lines]
        try:
            _commit(connection, journal, group, [*lines, *unchanged], scope=scope, now=now)
        except _IMPOSSIBLE:
            _adopt_one_by_one(connection, journal, group, adoption, scope=scope, now=now)
        unchanged = adoption.unchanged = []
    return adoption.taken_over(found.by_hand)


def _by_owner(connection: apsw.Connection, shapes: Shapes, rows: Sequence[RowState]) -> dict[Scope, list[RowState]]:
    """Group rows by owner and chat, since a commit is listed in the log of one owner only."""
    given = {each.row: each.values for each in rows}

    def space(row: RowId, depth: int = 0) -> int | None:
        table = shapes.rows[row.table].table
        image = given.get(row) or table.current(connection, row.key)
        if image is None or depth > _DEEPEST:
            return None
        if image.get("space") is not None:
            return int(image["space"])
        parents = ((each.target, image.get(each.column)) for each in shapes.truth.parents(row.table))
        found = (space(RowId(table=name, key=(key,)), depth + 1) for name, key in parents if key is not None)
        return next((each for each in found if each is not None), None)

    grouped: dict[Scope, list[RowState]] = {}
    for each in rows:
        key = space(each.row) if each.row.table in shapes.rows else None
        named = [] if key is None else connection.execute(sql("space_owner"), {"space": key}).fetchall()
        owner, chat = named[0] if named else (_OWNER, "")
        grouped.setdefault(Scope.of(str(owner), str(chat)), []).append(each)
    return grouped


def _adopt_one_by_one(
    connection: apsw.Connection,
    journal: FolderJournal,
    rows: Sequence[RowState],
    adoption: _Adoption,
    *,
    scope: Scope,
    now: int,
) -> None:
    """Commit row by row. A line is adopted with the last of its rows, if all of them were accepted."""
    last, unchanged = {id(given): row for row, given in adoption.lines.items()}, adoption.unchanged
    for row in rows:
        given = adoption.lines.get(row.row)
        is_whole = (
            given is not None and last[id(given)] == row.row and (given.file, given.offset) not in adoption.unused
        )
        try:
            _commit(
                connection,
                journal,
                (row,),
                [*unchanged, *([given] if given and is_whole else [])],
                scope=scope,
                now=now,
            )
            unchanged = []
        except _IMPOSSIBLE as error:
            file, offset = (given.file, given.offset) if given else (f"row {row.row.key} of {row.row.table}", -1)
            adoption.unused.setdefault((file, offset), str(error))


def _commit(
    connection: apsw.Connection,
    journal: FolderJournal,
    rows: Sequence[RowState],
    lines: Iterable[HandLine],
    *,
    scope: Scope,
    now: int,
) -> None:
    reason = Reason(actor="hand", origin="hand", reason=f"{plural(len(rows), 'row')} by hand")
    marks = list(dict.fromkeys(line_mark(given.line) for given in lines))
    extra: Line = {"adopted": marks} if marks else {}
    connection.execute("SAVEPOINT by_hand")
    try:
        change = _change(connection, journal.shapes, rows)
        apply(DatabaseSnapshot(connection), change, scope=scope, reason=reason, at=from_ms(now))
    except BaseException:
        connection.execute("ROLLBACK TO by_hand")
        connection.execute("RELEASE by_hand")
        raise
    connection.execute("RELEASE by_hand")
    journal.collect(connection, extra)


def _change(connection: apsw.Connection, shapes: Shapes, rows: Sequence[RowState]) -> Change:
    """Return the change to these rows. What is forgotten by it must not be learnt again, as after `forget`."""
    suppression, table = DatabaseSnapshot(connection).suppression, shapes.rows["nodes"].table
    withhold, lifted = list[str](), list[int]()
    for row, then in ((each.row, each.values) for each in rows if each.row.table == "nodes" and each.values):
        now = table.current(connection, row.key)
        was_open = now is None or now["closed_at"] is None
        if then["closed_reason"] == "forgotten":
            if now is None or now["closed_reason"] != "forgotten":
                withhold.append(then["id"])
        elif not was_open and then["closed_at"] is None:
            lifted += suppression.said_anew(then["space"], then["content"], voices=voices_in(then))
    return Change(rows=tuple(rows), withhold=tuple(withhold), said_anew=tuple(lifted))


class _Adoption:
    """Determines the rows for lines written by hand. Valid inside one transaction, under the lock."""

    def __init__(self, connection: apsw.Connection, shapes: Shapes, unused: UnusedLines, *, now: int) -> None:
        """Start with the lines that are unusable; `now` (Unix milliseconds) replaces times that a line omits."""
        self._connection = connection
        self._shapes = shapes
        self._now = now
        self._keys = KnownKeys(connection)
        self._next: dict[str, int] = {}
        self._rows: dict[RowId, RowState] = {}
        self.lines: dict[RowId, HandLine] = {}
        """The line from which each row was made."""
        self.unchanged: list[HandLine] = []
        """Lines that repeat the present content of their rows."""
        self.unused = unused

    def states(self, lines: Sequence[HandLine]) -> tuple[RowState, ...]:
        """Return the new state of the rows, from all usable lines. People are read first: memories refer to them."""
        self._reserve(lines)
        for given in sorted(lines, key=lambda each: each.table != "entities"):
            known = len(self._rows)
            try:
                self._adopt(given)
            except (LineError, TypeError, ValueError, OverflowError) as error:
                self.unused.setdefault((given.file, given.offset), str(error))
                continue
            fresh = [*self._rows][known:]
            self.lines.update(dict.fromkeys(fresh, given))
            self.unchanged += [] if fresh else [given]
        order = {name: place for place, name in enumerate(self._shapes.rows)}  # what rows refer to first
        return tuple(sorted(self._rows.values(), key=lambda each: order[each.row.table]))

    def taken_over(self, lines: Sequence[HandLine]) -> list[HandLine]:
        """Return the lines that became rows without losing a field."""

        def is_held(given: HandLine) -> bool:
            known = {each.field for each in self._shapes.rows[given.table].columns}
            return (given.file, given.offset) not in self.unused and {*given.line} <= known | _SEALING

        return [given for given in lines if is_held(given)]

    def _reserve(self, lines: Sequence[HandLine]) -> None:
        """Choose keys for complete rows of another clone: they may refer to each other."""
        for given in lines:
            shape = self._shapes.rows[given.table]
            if _is_whole(given.line) and "row" not in given.line and (key := self._key(shape, given.line)) is not None:
                self._keys.learn(shape, given.line, str(key))

    def _adopt(self, given: HandLine) -> None:
        shape, line = self._shapes.rows[given.table], given.line
        if _is_whole(line) and "row" in line and not names_row(line["row"], shape):
            raise LineError("the line does not identify a row")
        if given.table == "nodes" and not _is_whole(line):
            self._memory(shape, given)
        elif given.table == "entities" and not _is_whole(line):
            self._person(shape, given)
        else:
            image = shape.image(line, self._keys)
            self._put(shape, self._key(shape, line), image, is_removed=bool(line.get("removed")))

    def _key(self, shape: Shape, line: Line) -> int | None:
        """Return the key of the row of a line; None if the key consists of other columns."""
        if not shape.has_own_key:
            return None
        if _is_whole(line) and "row" in line:
            return int(line["row"])
        table, known = shape.table.name, None
        if table == "sessions":
            space = self._keys.space(str(line.get("owner_user_id") or ""), str(line.get("chat_id") or ""))
            known = self._keys.key(table, line.get("session_id"), space=space)
        elif "id" in line:
            known = self._keys.key(table, line["id"], space=None)
        return self._fresh(table) if known is None else known

    def _put(self, shape: Shape, key: int | None, image: Mapping[str, Any], *, is_removed: bool = False) -> None:
        """Record the new state of a row."""
        own = {} if key is None else {"key": key}
        whole = {**image, **own, "commit_seq": 0, "seal": b""}
        row = shape.table.row_id(whole)
        self._rows[row] = RowState(row=row, values=None if is_removed else whole)

    def _fresh(self, table: str) -> int:
        """Return an unused key, one that no row ever had."""
        if table not in self._next:
            last = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).get
            most = self._connection.execute(f'SELECT max(key) FROM "{table}"').get
            self._next[table] = max(int(last or 0), int(most or 0))
        self._next[table] += 1
        return self._next[table]

    def _memory(self, shape: Shape, given: HandLine) -> None:
        """Adopt a complete or partial memory, in any version of the file format."""
        line = dict(given.line)
        if not isinstance(line.get("content"), str) or not line["content"].strip():
            raise LineError("the memory has no content")
        line.setdefault("id", f"hand-{line_mark(given.line)}")
        key, present = self._known(shape, line)
        if not line.get("chat_id"):
            line["owner_user_id"] = line.get("owner_user_id") or _OWNER
        space = self._keys.space(str(line.get("owner_user_id") or ""), str(line.get("chat_id") or ""))
        if line.get("source_session_id"):
            self._session(space, str(line["source_session_id"]), line)
        people = line.pop("subject_person_ids", None) or ()
        if line.get("source") not in _ORIGINS and (present is None or line.get("source")):
            line["source"] = _ORIGIN
        if line.get("memory_type") is not None and line["memory_type"] not in _CATEGORIES:
            line["memory_type"] = "knowledge"
        image = {**self._defaults(given, line), **(present or {}), **self._given(shape, line)}
        if present is None:
            image["space"] = space
        elif given.file != ARCHIVE and "archived_at" not in line:
            image["closed_at"] = image["closed_reason"] = None
        self._keys.learn(shape, line, str(key))
        if present is None or content({**image, "key": key}) != content(present):
            self._put(shape, key, image)
        for person in map(str, people):
            entity = self._keys.key("entities", person, space=None)
            if entity is None:
                raise LineError(f"subject_person_ids: {person!r} does not exist")
            self._add("subjects", None, node=key, entity=entity)

    def _known(self, shape: Shape, line: Line) -> tuple[int, Image | None]:
        """Return the key for a line with an id, and the present row, if any."""
        known = self._keys.key(shape.table.name, line["id"], space=None)
        key = self._fresh(shape.table.name) if known is None else known
        return key, shape.table.current(self._connection, (key,))

    def _given(self, shape: Shape, line: Line) -> dict[str, Any]:
        """Return the columns that a line states."""
        image = shape.image(line, self._keys)
        spoken = {each.name for each in shape.columns if line.get(each.field) is not None and each.kind != "space"}
        return {name: value for name, value in image.items() if name in spoken}

    def _defaults(self, given: HandLine, line: Line) -> dict[str, Any]:
        """Return default values for a memory whose line omits some."""
        is_episode = given.file == EPISODES
        created = self._milliseconds(line, "created_at") or self._now
        since = self._milliseconds(line, "observed_at") or created
        self._closing(given, line)
        confidence = line.get("extraction_confidence")
        return {
            **self._unsaid("nodes"),
            "shelf": "e" if is_episode else "k",
            "type": "episodic" if is_episode else "semantic",
            "category": None if is_episode else "knowledge",
            "source_role": "user" if is_episode else None,
            "event_time": since,
            "created_at": created,
            "valid_from": since,
            "confidence": float(confidence) if isinstance(confidence, int | float) else 1.0,
            "decay_rate": 0.1,
            "source_type": _ORIGIN,
        }

    def _unsaid(self, table: str) -> dict[str, Any]:
        """Return the defaults of the schema for the columns of a row's content."""
        return {each.name: each.default for each in self._shapes.rows[table].columns if each.kind != "own"}

    def _closing(self, given: HandLine, line: Line) -> None:
        """Normalize when and why a memory was closed. The seed has two fields for the time: replaced and archived."""
        at = line.get("archived_at") or line.get("superseded_at")
        if at is None and given.file == ARCHIVE:
            at = line.get("created_at")
        if at is not None:
            reason = str(line.get("archive_reason") or ("superseded" if line.get("superseded_at") else "expired"))
            line["archived_at"], line["archive_reason"] = at, _REASONS.get(reason, reason)

    def _milliseconds(self, line: Line, name: str) -> int | None:
        return None if line.get(name) is None else milliseconds(line[name])

    def _session(self, space: int, name: str, line: Line) -> None:
        """Create the session of a memory, unless it exists."""
        if self._keys.key("sessions", name, space=space) is not None:
            return
        key = self._fresh("sessions")
        at = self._milliseconds(line, "observed_at") or self._milliseconds(line, "created_at") or self._now
        self._add("sessions", key, space=space, session_id=name, first_seen_at=at)
        self._keys.note("sessions", (space, name), key)

    def _add(self, table: str, key: int | None, **said: Any) -> None:
        """Record a new row, with the schema's defaults for columns that are not given."""
        self._put(self._shapes.rows[table], key, {**self._unsaid(table), **said})

    def _person(self, shape: Shape, given: HandLine) -> None:
        """Adopt an entity, or a person in the seed's format, with its names."""
        line = dict(given.line)
        if not isinstance(line.get("name"), str) or not line["name"].strip():
            raise LineError("the entity has no name")
        line.setdefault("id", f"hand-{line_mark(given.line)}")
        key, present = self._known(shape, line)
        self._keys.learn(shape, line, str(key))
        line["owner_user_id"] = line.get("owner_user_id") or _OWNER
        space = self._keys.space(str(line["owner_user_id"]), str(line.get("chat_id") or ""))
        since = self._milliseconds(line, "created_at") or self._now
        base = {
            **self._unsaid("entities"),
            "space": space,
            "type": "person",
            "first_seen": since,
            "last_updated": since,
        }
        self._put(shape, key, {**base, **(present or {}), **self._given(shape, line)})
        for name in dict.fromkeys(str(each) for each in [line["name"], *(line.get("aliases") or ())]):
            names = {"alias": name, "folded": name_key(name), "sound": same_name_key(name)}
            self._add("aliases", None, space=space, entity=key, **names)
        if isinstance(line.get("relation"), str) and line["relation"].strip():
            told = {"id": new_id(self._now), "predicate": line["relation"], "created_at": since}
            self._add("relations", self._fresh("relations"), space=space, target=key, **told)


def _is_whole(line: Line) -> bool:
    """Return whether a commit wrote the line, here or in another clone, so that it holds all of its row."""
    return "seal" in line
