"""Commits, and the versions of what they changed."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ricordo.errors import UnavailableError
from ricordo.model import Commit, Node, Scope
from ricordo.storage.database.rows import commit_of, former_node
from ricordo.storage.database.statements import Statements
from ricordo.storage.database.undo import Ledger, truth_of
from ricordo.storage.values import ChangeEvent


class History:
    """Commits, and the versions of what they changed."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def commits(self, scope: Scope, *, before: int | None, most: int) -> list[Commit]:
        values = self._sql.scoped(scope, before=before or 1 << 62, most=most)
        return [commit_of(row) for row in self._sql.rows("commits_listed", values)]

    def versions(self, node: Node) -> list[tuple[Node, Commit | None]]:
        images = [json.loads(row[0]) for row in self._sql.rows("history_of_node", {"key": str(node.key)})]
        former = [(former_node(node, image), self.get(image["commit_seq"])) for image in images]
        return [*former, (node, self.commit_of(node.key))]

    def get(self, seq: int) -> Commit | None:
        rows = self._sql.rows("commit_by_seq", {"seq": seq})
        return commit_of(rows[0]) if rows else None

    def made(self, seq: int) -> Commit:
        found = self.get(seq)
        if found is None:
            raise UnavailableError(f"change {seq} is written, but the index cannot follow yet", hint="free some space")
        return found

    def events(self, *, after: int, most: int) -> list[ChangeEvent]:
        commits = self._sql.rows("commits_following", {"after": after, "most": most})
        if not commits:
            return []
        span = {"first": commits[0][0], "last": commits[-1][0]}
        kinds: dict[int, set[str]] = {}
        for seq, table in self._sql.rows("history_kinds", span):
            kinds.setdefault(seq, set()).add(table)
        for table in truth_of(self._sql.connection).tables:  # built from the schema: a new truth table is covered
            statement = f'SELECT DISTINCT commit_seq FROM "{table}" WHERE commit_seq BETWEEN :first AND :last'
            for (seq,) in self._sql.connection.execute(statement, span):
                kinds.setdefault(seq, set()).add(table)
        return [
            ChangeEvent(
                commit=seq, owner=owner, chat=chat, actor=actor, origin=origin, kinds=frozenset(kinds.get(seq, ()))
            )
            for seq, owner, chat, actor, origin in commits
        ]

    def next_commit(self) -> int:
        return int((self._sql.rows("commit_last") or [(0, b"")])[0][0]) + 1

    def commit_of(self, key: int) -> Commit:
        return commit_of(self._sql.rows("commit_of_node", {"key": key})[0])

    def erasures(self, commits: Iterable[int]) -> list[int]:
        rows = self._sql.rows("commits_erasing", {"seqs": json.dumps(sorted(commits))})
        return [row[0] for row in rows]

    def ledger(self) -> Ledger:
        return Ledger(self._sql)
