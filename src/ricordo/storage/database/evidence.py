"""What derived memories rest on: the messages and memories they were learnt from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ricordo.storage.database.statements import Statements
from ricordo.storage.values import ClosedFact, LearntFact
from ricordo.text import statement_line


class Evidence:
    """What derived memories rest on. A memory rests on a node if it has a `derived_from` edge to it."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def learnt_from(
        self, owner: str, chat: str, content: str, *, evidence: Sequence[str], least: int
    ) -> LearntFact | None:
        values = {
            "content": content,
            "line": statement_line(content),
            "space": self._sql.space(owner, chat),
            "evidence": json.dumps(evidence),
            "least": least,
        }
        rows = self._sql.rows("learnt_already", values)
        return LearntFact(rows[0][0], bool(rows[0][1])) if rows else None

    def count(self, key: int, *, among: Sequence[str]) -> int:
        found: int = self._sql.value("rests_on_count", {"node": key, "evidence": json.dumps(among)})
        return found

    def resting_on(self, evidence: Iterable[str], *, most: int) -> list[int]:
        values = {"evidence": json.dumps(list(evidence)), "most": most}
        return [key for (key,) in self._sql.rows("resting_on", values)]

    def reflections_on(self, keys: Iterable[int]) -> list[int]:
        return [key for (key,) in self._sql.rows("reflections_on", {"nodes": json.dumps(list(keys))})]

    def dismissed(
        self, owner: str, chat: str, type_: str, content: str, *, evidence: Sequence[str]
    ) -> list[ClosedFact]:
        values = {
            "space": self._sql.space(owner, chat),
            "type": type_,
            "content": content,
            "line": statement_line(content),
            "evidence": json.dumps(evidence),
        }
        rows = self._sql.rows("forgotten_like", values)
        return [ClosedFact(content, closed_at, bool(is_same)) for content, closed_at, is_same in rows]
