"""Sessions, and the open questions of review."""

from __future__ import annotations

from ricordo.model import Node, Review, ReviewKind, Scope, Session
from ricordo.storage.database.nodes import Nodes
from ricordo.storage.database.rows import review_of, session_of
from ricordo.storage.database.statements import Statements


class Sessions:
    """Sessions of a caller, and those that are off the record."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def get(self, scope: Scope, session_id: str) -> Session | None:
        rows = self._sql.rows("session_row", self._sql.scoped(scope, session=session_id))
        return session_of(rows[0]) if rows else None

    def off_record(self, owner: str, chat: str) -> set[str]:
        return {row[0] for row in self._sql.rows("off_record_of", {"owner": owner, "chat": chat})}

    def go_off_record(self, owner: str, chat: str, session: str) -> None:
        self._sql.rows("off_record_begin", {"owner": owner, "chat": chat, "session": session})

    def go_on_record(self, owner: str, chat: str, session: str) -> None:
        self._sql.rows("off_record_end", {"owner": owner, "chat": chat, "session": session})


class Reviews:
    """Questions that wait for a decision."""

    def __init__(self, sql: Statements, nodes: Nodes) -> None:
        self._sql = sql
        self._nodes = nodes

    def listed(self, scope: Scope, *, most: int, kind: ReviewKind | None = None) -> list[Review]:
        rows = self._sql.rows("reviews_open", self._sql.scoped(scope, most=most, kind=kind))
        nodes = self._nodes.by_key(scope, {key for row in rows for key in row[3:5] if key is not None})
        return [review_of(row, nodes) for row in rows]

    def get(self, scope: Scope, review_id: str) -> Review | None:
        if not isinstance(review_id, str) or not review_id.isprintable():
            return None
        rows = self._sql.rows("review_by_id", self._sql.scoped(scope, id=review_id))
        return review_of(rows[0], self._nodes.by_key(scope, filter(None, rows[0][3:5]))) if rows else None

    def of_quarantined(self, node: Node) -> Node | None:
        values = {"space": self._sql.space(node.owner, node.chat), "content": node.content, "type": node.type}
        rows = self._sql.rows("review_of_held", values)
        return self._nodes.get(Scope(owner=node.owner, chat=node.chat or None), rows[0][1]) if rows else None
