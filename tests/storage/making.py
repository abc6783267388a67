"""Small stores for tests: short ways to make nodes, write changes, and read raw rows."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

from ricordo.clock import new_id
from ricordo.model import Change, Closing, Node, Reason, Scope
from ricordo.storage import Store
from ricordo.storage.database.connection import add_functions
from ricordo.storage.registry import open_store

ME = Scope(owner="me")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WHY = Reason(actor="me", origin="test", reason="test")


def fact(content: str, *, minutes: int = 0, **fields) -> Node:
    """Make a fact of the owner "me"."""
    at = NOON + timedelta(minutes=minutes)
    given = {"id": new_id(0), "type": "semantic", "owner": "me", **fields}
    return Node(content=content, event_time=at, created_at=at, valid_from=at, **given)


def said(content: str, *, minutes: int = 0, session: str | None = None, **fields) -> Node:
    """Make an episode of the owner "me"."""
    return fact(content, minutes=minutes, session=session, type="episodic", role="user", **fields)


def closing(node: Node) -> Closing:
    return Closing(id=node.id, at=NOON, reason="forgotten")


async def commit(store: Store, scope: Scope = ME, **change) -> None:
    """Write one change as one commit."""
    await store.write(lambda _: (Change(**change), None), scope=scope, reason=WHY, at=NOON)


def opened(path: Path, work, **options):
    """Open a store, run `work(store)` (a coroutine function), close."""

    async def main():
        store = open_store(path, **{"durability": "process", **options})
        try:
            return await work(store)
        finally:
            await asyncio.to_thread(store.close)

    return asyncio.run(main())


def raw(path: Path) -> apsw.Connection:
    """Open a raw connection, to inspect and to damage."""
    connection = apsw.Connection(str(path))
    add_functions(connection)
    return connection


def rows(path: Path, sql: str, values=None) -> list[tuple]:
    connection = raw(path)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def failing(report) -> set[str]:
    """Return the names of the checks of `doctor` that failed."""
    return {finding.check for finding in report.findings if not finding.ok}
