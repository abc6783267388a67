"""What a backup holds, in a file beside it: by that it is known later to be whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from ricordo.errors import StoreError
from ricordo.model import Backup, BackupFile
from ricordo.storage.database.connection import add_functions, moment, translated
from ricordo.storage.database.reader import DatabaseSnapshot
from ricordo.storage.database.truth_tables import truth_of

VERSION = 1
_ENDING = ".manifest.json"
_INSIDE = "manifest.json"


def manifest_path(backup: Path, *, is_folder: bool) -> Path:
    """Where the manifest of a backup lies: inside a folder, beside a file."""
    return backup / _INSIDE if is_folder else backup.with_name(f"{backup.name}{_ENDING}")


def written(manifest: Backup) -> bytes:
    """A manifest as it stands in its file. It holds no word of any memory."""
    plain = {"manifest": VERSION, **asdict(manifest), "made_at": manifest.made_at.isoformat()}
    return json.dumps(plain, indent=2, ensure_ascii=False).encode() + b"\n"


def read(path: Path) -> Backup | None:
    """The manifest in a file; None where there is none.

    Raises:
        StoreError: it cannot be read, or is of a later version.
    """
    try:
        plain: dict[str, Any] = json.loads(path.read_bytes())
        if plain.pop("manifest") != VERSION:
            raise StoreError(f"{path} is of a later version", hint="upgrade with pip install -U ricordo")
        files = {name: BackupFile(**each) for name, each in plain.pop("files").items()}
        return Backup(**{**plain, "files": files, "made_at": datetime.fromisoformat(plain["made_at"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} cannot be read: {error}", hint="use another backup") from error


def counted(snapshot: DatabaseSnapshot) -> dict[str, Any]:
    """Of a store: its schema, how many rows each truth table has, its last commit and the head of the chain. Names come
    from the schema, so the statements are put together.
    """
    tables = sorted(truth_of(snapshot.connection).tables)
    rows = {name: int(snapshot.connection.execute(f'SELECT count(*) FROM "{name}"').get or 0) for name in tables}
    seq, head = (snapshot.rows("commit_last") or [(0, b"")])[0]
    schema = int(snapshot.connection.pragma("user_version"))
    return {"schema": schema, "commits": int(seq), "head": head.hex(), "rows": rows}


@contextmanager
def still(path: Path) -> Iterator[DatabaseSnapshot]:
    """A look into a store that nobody writes to, which leaves nothing beside it."""
    with translated(f"cannot read {path}"):
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=flags)
        try:
            add_functions(connection)
            with moment(connection):
                yield DatabaseSnapshot(connection)
        finally:
            connection.close()
