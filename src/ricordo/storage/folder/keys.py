"""The keys of rows by their public names, while lines are read."""

from __future__ import annotations

from typing import Any

import apsw

from ricordo.storage.database.queries import sql
from ricordo.storage.folder.lines import Line, Shape


class KnownKeys:
    """Keys by public names: of the lines seen so far, else of the index."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[str, dict[Any, int]] = {}
        self._spaces: dict[tuple[str, str], int] = {}

    def learn(self, shape: Shape, line: Line, row: str) -> None:
        """Note the key of a row that a line stands for."""
        if shape.table.key != ("key",) or not row.isdigit() or line.get("removed"):
            return
        table = shape.table.name
        if table == "sessions":
            name = (
                self.space(str(line.get("owner_user_id") or ""), str(line.get("chat_id") or "")),
                line.get("session_id"),
            )
            self._known.setdefault(table, {})[name] = int(row)
        elif "id" in line:
            self._known.setdefault(table, {})[line["id"]] = int(row)

    def note(self, table: str, name: Any, key: int) -> None:
        """Note the key of a row that is about to be written."""
        self._known.setdefault(table, {})[name] = key

    def space(self, owner: str, chat: str) -> int:
        """The key of a space, made at its first use."""
        if (owner, chat) not in self._spaces:
            values = {"owner": owner, "chat": chat}
            key = self._connection.execute(sql("space_by_owner"), values).get
            if key is None:
                key = self._connection.execute(sql("space_insert"), values).get
            self._spaces[owner, chat] = int(key)
        return self._spaces[owner, chat]

    def key(self, target: str, name: Any, *, space: int | None) -> int | None:
        """The key of a row of a table by its id, a session's by its name in its space."""
        public = (space, name) if target == "sessions" else name
        known = self._known.setdefault(target, {})
        if public not in known:
            found = self._asked(target, name, space)
            if found is None:
                return None
            known[public] = found
        return known[public]

    def _asked(self, target: str, name: Any, space: int | None) -> int | None:
        found: int | None
        if target == "sessions":
            found = self._connection.execute(sql("session_by_id"), {"space": space, "session": name}).get
        else:
            found = self._connection.execute(f'SELECT key FROM "{target}" WHERE id = ?', (name,)).get
        return found
