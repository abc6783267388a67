"""Lines written by hand become rows of a commit: whole ones, altered ones, and those of the seed's files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import apsw

from ricordo.ids import new_id
from ricordo.model import Category, Origin, RowId, RowState
from ricordo.storage.folder.keys import KnownKeys
from ricordo.storage.folder.layout import ARCHIVE, EPISODES
from ricordo.storage.folder.lines import Line, Shape, Shapes, Unfit, encode, line_mark, milliseconds
from ricordo.storage.folder.load_rows import names_row
from ricordo.storage.folder.rebuild import Loose
from ricordo.storage.folder.state import Unused
from ricordo.storage.values import Image, content
from ricordo.text import name_key, same_name_key

_CATEGORIES = frozenset(get_args(Category))
_ORIGINS = frozenset(get_args(Origin))
_REASONS = {"ephemeral_decay": "expired"}
_ORIGIN = "import"
_OWNER = "me"
"""Whose memory it is where nobody says: that of who opens one without saying either."""


class Adoption:
    """Rows as lines written by hand want them. Lives inside one transaction, under the lock."""

    def __init__(self, connection: apsw.Connection, shapes: Shapes, *, now: int) -> None:
        """Args:
        now: Unix milliseconds, for what a line does not say.
        """
        self._connection = connection
        self._shapes = shapes
        self._now = now
        self._keys = KnownKeys(connection)
        self._next: dict[str, int] = {}
        self._rows: dict[RowId, RowState] = {}
        self.lines: dict[RowId, Loose] = {}
        """The line that each row is of."""
        self.idle: list[Loose] = []
        """Lines that say what is so already."""
        self.unused = Unused()

    def states(self, lines: Sequence[Loose]) -> tuple[RowState, ...]:
        """The rows that shall be, of all lines that can be one; people first, since memories are about them."""
        for loose in sorted(lines, key=lambda each: each.table != "entities"):
            known = len(self._rows)
            try:
                self._adopt(loose)
            except (Unfit, TypeError, ValueError, OverflowError) as error:
                self.unused.note(loose.file, loose.offset, str(error))
                continue
            fresh = [*self._rows][known:]
            self.lines.update(dict.fromkeys(fresh, loose))
            self.idle += [] if fresh else [loose]
        return tuple(self._rows.values())

    def _adopt(self, loose: Loose) -> None:
        shape = self._shapes.rows[loose.table]
        if "seal" in loose.line:
            self._altered(shape, loose.line)
        elif loose.table == "nodes":
            self._memory(shape, loose)
        elif loose.table == "entities":
            self._person(loose)
        else:
            self._put(shape, self._key(shape, loose.line), shape.image(loose.line, self._keys))

    def _altered(self, shape: Shape, line: Line) -> None:
        """A line that a commit wrote and somebody changed since."""
        if not names_row(line.get("row"), shape):
            raise Unfit("it names no row")
        image = shape.image(line, self._keys)
        key = (int(line["row"]),) if shape.table.key == ("key",) else tuple(image[name] for name in shape.table.key)
        self._put(shape, key, image)

    def _key(self, shape: Shape, line: Line) -> tuple[Any, ...] | None:
        if shape.table.key != ("key",):
            return None
        known = self._keys.key(shape.table.name, line["id"], space=None) if "id" in line else None
        return (known if known is not None else self._fresh(shape.table.name),)

    def _put(self, shape: Shape, key: tuple[Any, ...] | None, image: Mapping[str, Any]) -> RowId:
        """Note a row as it shall be, unless it is so already."""
        row = RowId(table=shape.table.name, key=key or tuple(image[name] for name in shape.table.key))
        whole = dict(image)
        if shape.table.key == ("key",):
            whole["key"] = row.key[0]
        self._rows[row] = RowState(row=row, values={**whole, "commit_seq": 0, "seal": b""})
        return row

    def _fresh(self, table: str) -> int:
        """A key nobody has had."""
        if table not in self._next:
            last = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).get
            most = self._connection.execute(f'SELECT max(key) FROM "{table}"').get
            self._next[table] = max(int(last or 0), int(most or 0))
        self._next[table] += 1
        return self._next[table]

    def _memory(self, shape: Shape, loose: Loose) -> None:
        """A memory of whatever version of the files, whole or in part."""
        line = dict(loose.line)
        if not isinstance(line.get("content"), str) or not line["content"].strip():
            raise Unfit("it has no content")
        identity = line.setdefault("id", f"hand-{line_mark(loose.line)}")
        known = self._keys.key("nodes", identity, space=None)
        present = self._present(shape, known)
        if not line.get("chat_id"):
            line["owner_user_id"] = line.get("owner_user_id") or _OWNER
        space = self._keys.space(str(line.get("owner_user_id") or ""), str(line.get("chat_id") or ""))
        if line.get("source_session_id"):
            self._session(space, str(line["source_session_id"]), line)
        people = line.pop("subject_person_ids", None) or ()
        self._named_as_here(line, is_new=present is None)
        image = {**self._defaults(loose, line), **(present or {}), **self._given(shape, line)}
        if present is None:
            image["space"] = space
        elif loose.file != ARCHIVE and "archived_at" not in line:
            image["closed_at"] = image["closed_reason"] = None
        key = known if known is not None else self._fresh("nodes")
        self._keys.learn(shape, line, str(key))
        if present is None or content({**image, "key": key}) != content(present):
            self._put(shape, (key,), image)
        for person in people:
            self._subject(key, str(person))

    def _present(self, shape: Shape, key: int | None) -> Image | None:
        if key is None:
            return None
        named = ", ".join(f'"{name}"' for name in shape.table.columns)
        row = self._connection.execute(f'SELECT {named} FROM "{shape.table.name}" WHERE key = ?', (key,)).fetchone()
        return None if row is None else dict(zip(shape.table.columns, row, strict=True))

    def _given(self, shape: Shape, line: Line) -> dict[str, Any]:
        """The columns that a line speaks of."""
        image = shape.image(line, self._keys)
        spoken = {each.name for each in shape.columns if line.get(each.field) is not None and each.kind != "space"}
        return {name: value for name, value in image.items() if name in spoken}

    def _named_as_here(self, line: Line, *, is_new: bool) -> None:
        """Where a line comes from, in our words."""
        if line.get("source") not in _ORIGINS and (is_new or line.get("source")):
            line["source"] = _ORIGIN
        if line.get("memory_type") is not None and line["memory_type"] not in _CATEGORIES:
            line["memory_type"] = "knowledge"

    def _defaults(self, loose: Loose, line: Line) -> dict[str, Any]:
        """What a memory is where its line does not say: learnt when it was written, by whoever wrote it."""
        is_episode = loose.file == EPISODES
        created = self._milliseconds(line, "created_at") or self._now
        since = self._milliseconds(line, "observed_at") or created
        self._closing(loose, line)
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

    def _closing(self, loose: Loose, line: Line) -> None:
        """The seed says when a memory was replaced or archived; here one thing says both."""
        at = line.get("archived_at") or line.get("superseded_at")
        if at is None and loose.file == ARCHIVE:
            at = line.get("created_at")
        if at is not None:
            reason = str(line.get("archive_reason") or ("superseded" if line.get("superseded_at") else "expired"))
            line["archived_at"], line["archive_reason"] = at, _REASONS.get(reason, reason)

    def _milliseconds(self, line: Line, name: str) -> int | None:
        return None if line.get(name) is None else milliseconds(line[name])

    def _session(self, space: int, name: str, line: Line) -> None:
        """A session that memories speak of, made at its first one."""
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
            raise Unfit(f"subject_person_ids: {person!r} is not there")
        self._put(self._shapes.rows["subjects"], (node, entity), {"node": node, "entity": entity, "name": ""})

    def _person(self, loose: Loose) -> None:
        """A person of the seed's, or an entity by hand, with the names it goes by."""
        line = dict(loose.line)
        if not isinstance(line.get("name"), str) or not line["name"].strip():
            raise Unfit("it has no name")
        identity = line.setdefault("id", f"hand-{line_mark(loose.line)}")
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
