"""The schema of a PostgreSQL store: create it, or migrate an older one."""

from __future__ import annotations

import random
import re
import time
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from psycopg import errors

from ricordo.errors import StoreError
from ricordo.storage import faults
from ricordo.storage.postgres.connection import PostgresConnection, translated

if TYPE_CHECKING:
    from ricordo.storage.postgres.location import Location

_FILE = re.compile(r"(\d{4})_\w+\.sql\Z")
_LOCK = 0x52434F53
_LOCK_MS = 500
_ATTEMPTS = 60


@cache
def migrations() -> tuple[tuple[int, str], ...]:
    """Return all steps in order as (schema version after the step, statements)."""
    found = (
        (int(match[1]), path.read_text(encoding="utf-8"))
        for path in (files("ricordo.storage.postgres") / "migrations").iterdir()
        if (match := _FILE.match(path.name))
    )
    return tuple(sorted(found))


def prepare(connection: PostgresConnection) -> None:
    """Create the schema of a store, or migrate it step by step. Only one of several processes does each step.

    A step waits for a table only briefly, because all later readers of that table wait behind it. Then it gives way and
    tries again.

    Raises:
        StoreError: the schema is newer, or the role may not create it.
        UnavailableError: a table of the store stayed locked.
    """
    with translated("cannot open the store"):
        given_way = 0
        while (version := _known_version(connection)) < migrations()[-1][0]:
            try:
                _step(connection, version)
            except errors.LockNotAvailable:
                given_way += 1
                if given_way == _ATTEMPTS:
                    raise
                time.sleep(random.uniform(0.2, 1.0))


def _known_version(connection: PostgresConnection) -> int:
    version, newest = version_of(connection), migrations()[-1][0]
    if version > newest:
        raise StoreError(
            f"{connection.location.path} has schema {version}, this Ricordo knows {newest}",
            hint="upgrade with pip install -U ricordo",
        )
    return version


def _step(connection: PostgresConnection, version: int) -> None:
    """Take the step from a version to the next one in a transaction of its own, unless another process has taken it."""
    location = connection.location
    connection.execute(f"BEGIN; SELECT pg_advisory_xact_lock({_LOCK}, hashtext('{location.schema}'))")
    try:
        if version_of(connection) == version:
            connection.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}")
            _run(connection, location, version)
        faults.reached("schema: before commit")
        connection.end("COMMIT")
    except BaseException:
        if not connection.raw.closed:
            connection.end("ROLLBACK")
        raise


def _run(connection: PostgresConnection, location: Location, version: int) -> None:
    if version == 0:
        for schema in (location.schema, location.past):
            connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        connection.execute(f'CREATE TABLE "{location.schema}".migrations (version bigint PRIMARY KEY)')
    connection.execute(f'SET LOCAL search_path = "{location.schema}"')
    after, statements = next(step for step in migrations() if step[0] > version)
    connection.raw.execute(location.worded(statements))
    connection.execute("INSERT INTO migrations VALUES (:version)", {"version": after})
    faults.reached("schema: between steps")


def version_of(connection: PostgresConnection) -> int:
    """Return the version of the store's schema; 0 if it does not exist."""
    schema = connection.location.schema
    if connection.execute(f"SELECT to_regclass('\"{schema}\".migrations')").get is None:
        return 0
    return int(connection.execute(f'SELECT coalesce(max(version), 0) FROM "{schema}".migrations').get)


def role_of_upkeep(connection: PostgresConnection) -> str | None:
    """Return the role that a connection assumes to see all owners; None if policies do not apply to its own role.

    Raises:
        StoreError: policies apply to its role, and it may assume no role that sees everything.
    """
    found = connection.execute(connection.text("roles_seeing"))
    if any(is_own for _, is_own, _ in found):
        return None
    for name, _, is_allowed in found:
        if is_allowed:
            return str(name)
    raise StoreError(
        "the role of this connection cannot read any memory, and may not assume a role that can",
        hint="create the roles in docs/how-to/use-postgresql.md, and grant the maintenance role to this role",
    )
