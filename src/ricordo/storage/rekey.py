"""Change the key of a closed store: encrypt it, decrypt it, or replace its key.

A single file is copied to a new file, which is then renamed. A folder writes all its files and its key file beside the
old ones; a marker makes them valid. Whenever a process dies, the store opens with the old key or with the new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import apsw

from ricordo.errors import DeniedError, InvalidError, NotFoundError, StoreError
from ricordo.model import Rekeyed
from ricordo.storage import faults
from ricordo.storage.database.connection import connect, exclusive
from ricordo.storage.database.store import Options
from ricordo.storage.folder.files import ASIDE
from ricordo.storage.folder.index import FolderIndex
from ricordo.storage.jsonl.layout import INDEX, NOTES
from ricordo.storage.key import Key, cipher_text, require_cipher
from ricordo.storage.sql import translated
from ricordo.storage.staging import staging_folder, sync

_PATIENCE_S = 5.0
_COPY = re.compile(r"\.(?:v\d+\.backup|rescued-.+|replaced-.+|damaged-.+|single-file.*)(?<!-wal)(?<!-shm)")
"""Matches the endings of copies that a store leaves beside itself."""


def rekey(location: str | Path, *, key: Key | None, new: Key | None) -> Rekeyed:
    """Change the key of a store that no program has open. Repeated after an interruption, it skips what is done.

    Args:
        key: the present key; None for a store that is not encrypted.
        new: the new key; None decrypts the store.

    Raises:
        NotFoundError: there is no store.
        DeniedError: the present key is missing or wrong.
        InvalidError: a key is given and the store is not encrypted; or it has notes, which cannot be encrypted.
        UnavailableError: another program has the store open.
        StoreError: the disk is full or failing; the store stays as it was.
    """
    path = Path(location).expanduser()
    if "://" in str(location) or not path.exists():
        raise NotFoundError(f"there is no memory at {location}", hint="give the path of a file or a folder")
    if new is not None:
        require_cipher()
    try:
        if path.is_dir():
            _once(path, key, new, _change_folder)
            copies = [*path.glob(f"{ASIDE}*"), *path.glob(f"{INDEX}.*"), *path.glob("damaged-*"), *path.glob(NOTES)]
        else:
            _once(path, key, new, _change_file)
            copies = []
        host = path.with_name(f"{path.name}.host")
        if host.exists():
            _once(host, key, new, _change_file)
    except OSError as error:
        hint = "check the path, its permissions and the free disk space"
        raise StoreError(f"cannot change the key of {path}: {error.strerror or error}", hint=hint) from error
    beside = path.parent.glob(f"{path.name}.*")
    copies += [each for each in beside if _COPY.fullmatch(each.name.removeprefix(path.name))]
    left = tuple(sorted(str(each) for each in copies))
    return Rekeyed(location=str(path), is_encrypted=new is not None, left=left)


def _once(path: Path, key: Key | None, new: Key | None, change: Callable[[Path, Key | None, Key | None], None]) -> None:
    """Change a key, unless the new one already opens the file, because an interrupted call got that far."""
    try:
        change(path, key, new)
    except (DeniedError, InvalidError):
        if not _opens(path, new):
            raise


def _opens(path: Path, key: Key | None) -> bool:
    with suppress(DeniedError, InvalidError, StoreError):
        if path.is_dir():
            FolderIndex(path, Options(key=key, patience_s=_PATIENCE_S)).close()
        else:
            connect(path, patience_s=_PATIENCE_S, key=key).close()
        return True
    return False


def _change_file(path: Path, key: Key | None, new: Key | None) -> None:
    with translated(f"cannot change the key of {path}"), exclusive(path, key) as source, staging_folder(path) as beside:
        copy = beside / path.name
        copy.touch(mode=0o600)
        cipher = "" if new is None else cipher_text(new)
        faults.reached("rekey: before copy")
        source.execute("VACUUM INTO ?", (f"{copy.absolute().as_uri()}?key={cipher}",))
        _check(copy, new)
        sync(copy)
        faults.reached("rekey: before naming")
        copy.replace(path)
        sync(path.parent)
        faults.reached("rekey: after naming")


def _check(copy: Path, new: Key | None) -> None:
    """Raise CorruptError unless the copy is undamaged and opens with its key."""
    with closing(connect(copy, read_only=True, patience_s=1, key=new)) as connection:
        if connection.pragma("quick_check") != "ok":
            raise apsw.CorruptError("the copy is damaged")


def _change_folder(folder: Path, key: Key | None, new: Key | None) -> None:
    if new is not None and (folder / NOTES).is_dir():
        raise InvalidError(
            f"{folder / NOTES} holds notes, which are plain text", hint="move them out of the folder, then try again"
        )
    with closing(FolderIndex(folder, Options(key=key, patience_s=_PATIENCE_S))) as index:
        index.rekey(new)
