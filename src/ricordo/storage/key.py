"""The key of an encrypted store: where it comes from, what is derived from it, and how files are opened with it.

SQLite files and their logs are encrypted page by page by SQLite3 Multiple Ciphers (ChaCha20-Poly1305). Each line of a
folder is encrypted with AES-256-GCM. The secret that a person gives is stretched by scrypt with the salt of the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import apsw

from ricordo.errors import DeniedError, InvalidError, StoreError

KEY_FILE = "key.json"
"""Holds the salt of an encrypted folder and a check value of its key, but no secret."""

_SALT_BYTES = 16
_PLAIN_HEADER = b"SQLite format 3\0"
# Bytes 20 to 23 of page 1 stay readable: 32 bytes of each page are reserved for nonce and tag, then 3 fixed numbers.
_SEALED_MARK = b"\x20\x40\x20\x20"
_HEADER_BYTES = 24
_RAW_DIGITS = 64
# scrypt with 32 MiB (128 * n * r): about 80 ms, once for each file and process. Source: RFC 7914.
_SCRYPT = {"n": 1 << 15, "r": 8, "p": 1, "maxmem": 64 << 20}
_WHERE = "give it as key=..., $RICORDO_KEY or the setting `key`"
_INSTALL = "pip uninstall -y apsw && pip install --force-reinstall apsw-sqlite3mc"
_PREFIX, _SUFFIX = b'{"sealed":"', b'"}'
_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """A secret that opens stores: a passphrase, or 64 hexadecimal digits (32 random bytes), which are not stretched."""

    secret: str

    def derived(self, salt: bytes) -> bytes:
        """Return the 32-byte key for files with this salt."""
        return _derived(self.secret, salt)


@dataclass(frozen=True, slots=True, repr=False)
class DerivedKey:
    """A key that was derived for one store and ignores the salt of a file: the key of a folder's index."""

    bytes_: bytes

    def derived(self, salt: bytes) -> bytes:
        """Return the same 32 bytes for every salt."""
        return self.bytes_


AnyKey = Key | DerivedKey


@lru_cache(maxsize=32)  # a store opens many connections
def _derived(secret: str, salt: bytes) -> bytes:
    if len(secret) == _RAW_DIGITS and not set(secret) - set("0123456789abcdefABCDEF"):
        return hashlib.blake2b(salt, key=bytes.fromhex(secret), digest_size=32).digest()
    return hashlib.scrypt(secret.encode(), salt=salt, dklen=32, **_SCRYPT)


# where the secret comes from


def key_of(given: str | None) -> Key | None:
    """Return the key given by a setting or an argument; None if it is empty.

    Args:
        given: `file:PATH` (the first line of a file), `keyring:NAME` (the system's keyring), `env:NAME`, or the key.

    Raises:
        InvalidError: that place holds no key, or the key is not text.
    """
    if given is None or given == "":
        return None
    if not isinstance(given, str):
        raise InvalidError(f"key must be text, not {type(given).__name__}", hint="give a passphrase, or 64 hex digits")
    source, _, name = given.partition(":")
    secret = _SOURCES[source](name) if name and source in _SOURCES else given
    if not secret.strip():
        raise InvalidError(f"key: {given} holds no key", hint=_WHERE)
    try:
        secret.encode()
    except UnicodeEncodeError as error:
        raise InvalidError("key: it has an unpaired surrogate", hint=_WHERE) from error
    return Key(secret)


def _from_file(name: str) -> str:
    path = Path(name).expanduser()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"key: {path} cannot be read: {error}", hint="check the path and its permissions") from error
    return lines[0] if lines else ""


def _from_keyring(name: str) -> str:
    try:
        from keyring import get_password  # type: ignore[import-not-found, unused-ignore]  # an extra
        from keyring.errors import KeyringError  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise InvalidError(
            "key: the system's keyring needs a package that is not installed", hint='pip install "ricordo[keys]"'
        ) from error
    try:
        return get_password("ricordo", name) or ""
    except KeyringError as error:
        raise InvalidError(f"key: the keyring cannot be read: {error}", hint="use a key file") from error


_SOURCES: dict[str, Callable[[str], str]] = {
    "file": _from_file,
    "keyring": _from_keyring,
    "env": lambda name: os.environ.get(name, ""),
}


# SQLite files


def has_cipher() -> bool:
    """Return whether the installed SQLite can encrypt."""
    return bool(getattr(apsw, "mc_version", None))


def header_of(path: Path) -> bytes:
    """Return the first bytes of a database, or b"". SQLite itself opens it, since any other way drops its locks."""
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return _header(connection)
    except apsw.Error:
        return b""


def _header(connection: apsw.Connection) -> bytes:
    """Return the first bytes of the file of a connection without a key; b"" if the file is empty."""
    is_whole, data = connection.read("main", 0, 0, _HEADER_BYTES)
    return data if is_whole else b""


def is_sealed(path: Path) -> bool:
    """Return whether a file is an encrypted database."""
    return _is_sealed(header_of(path))


def is_encrypted(location: Path) -> bool:
    """Return whether the store in a file or a folder is encrypted."""
    location = location.expanduser()
    return (location / KEY_FILE).exists() if location.is_dir() else is_sealed(location)


def _is_sealed(header: bytes) -> bool:
    return header[20:24] == _SEALED_MARK and not header.startswith(_PLAIN_HEADER)


def fitting(path: Path, key: AnyKey | None) -> AnyKey | None:
    """Return the key if the file is encrypted, else None: for a backup, or a file that is only examined."""
    return key if is_sealed(path) else None


def cipher_text(key: AnyKey, header: bytes = b"") -> str:
    """Return a key as SQLite3 Multiple Ciphers takes it, with the salt of the file, or a new salt for a new file."""
    salt = header[:_SALT_BYTES] or secrets.token_bytes(_SALT_BYTES)
    return f"raw:{key.derived(salt).hex()}{salt.hex()}"


def unlock(connection: apsw.Connection, path: Path, key: AnyKey | None) -> None:
    """Give a new connection its key, and check that the key opens the file.

    Raises:
        DeniedError: the file is encrypted, and the key is missing or wrong.
        InvalidError: there is a key, and the file is not encrypted.
    """
    what, header = str(path), _header(connection)
    if key is None:
        if _is_sealed(header):
            raise missing_key(what)
        return
    if header.startswith(_PLAIN_HEADER):
        raise InvalidError(
            f"{what} is not encrypted, and a key was given",
            hint="`ricordo rekey --to KEY` encrypts it; or open it without a key",
        )
    require_cipher()
    connection.execute(f"PRAGMA key = '{cipher_text(key, header)}'").fetchall()
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.NotADBError as error:
        raise wrong_key(what) from error


def missing_key(what: str) -> DeniedError:
    """Return the error for an encrypted file or folder that is opened without a key."""
    return DeniedError(f"{what} is encrypted, and no key was given", hint=_WHERE)


def wrong_key(what: str) -> DeniedError:
    """Return the error for a key that does not open a file or folder."""
    return DeniedError(
        f"the key is wrong for {what}", hint="check the key; if it is right, the file was damaged: restore a backup"
    )


def require_cipher() -> None:
    """Raise InvalidError if the installed SQLite cannot encrypt."""
    if not has_cipher():
        raise InvalidError(
            "key: the installed SQLite cannot encrypt: another package installed its own `apsw`", hint=_INSTALL
        )


# lines of folders


class LineCipher:
    """Encrypts the lines of a folder's files, each on its own, so that files can still grow line by line.

    An encrypted line is bound to its file. Lines are bound to each other by the chain of commits within them.
    """

    def __init__(self, key: bytes) -> None:
        """Take the 32-byte key of a folder."""
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # an extra
        except ImportError as error:
            raise InvalidError(
                "key: an encrypted folder needs a package that is not installed (cryptography)",
                hint='pip install "ricordo[keys]"; a store in a single file does without it',
            ) from error
        self._cipher = AESGCM(_part(key, b"lines"))
        self.index_key = DerivedKey(_part(key, b"index"))

    def seal(self, name: str, line: bytes) -> bytes:
        """Return a line, which ends in a newline, as it is stored, encrypted, in the file `name`."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, line.removesuffix(b"\n"), name.encode())
        return b"".join((_PREFIX, b64encode(nonce + sealed), _SUFFIX, b"\n"))

    def open(self, name: str, raw: bytes) -> bytes:
        """Return the plain line, without its newline. Raises ValueError if this key and name did not encrypt it."""
        from cryptography.exceptions import InvalidTag

        if not looks_sealed(raw):
            raise ValueError("not encrypted, in an encrypted folder")
        try:
            data = b64decode(raw[len(_PREFIX) : -len(_SUFFIX)], validate=True)
            return self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], name.encode())
        except (ValueError, InvalidTag) as error:
            raise ValueError("altered, or encrypted with another key") from error


def looks_sealed(raw: bytes) -> bool:
    """Return whether a line has the form of an encrypted one."""
    return raw.startswith(_PREFIX) and raw.endswith(_SUFFIX)


def _part(key: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(key=key, person=purpose, digest_size=32).digest()


def new_folder_key(key: Key) -> tuple[LineCipher, bytes]:
    """Return the cipher for a folder to be encrypted, and the content of its key file."""
    salt = new_salt()
    cipher, check = line_cipher(key, salt)
    plain = {"version": 1, "kdf": "scrypt", "salt": salt.hex(), "check": check.hex()}
    return cipher, json.dumps(plain).encode() + b"\n"


def new_salt() -> bytes:
    """Return a random salt."""
    return secrets.token_bytes(_SALT_BYTES)


def line_cipher(key: AnyKey, salt: bytes) -> tuple[LineCipher, bytes]:
    """Return the cipher for a key and a salt, and a check value that tells whether a key is the right one."""
    derived = key.derived(salt)
    return LineCipher(derived), _part(derived, b"check")


def folder_cipher(
    folder: Path, key: AnyKey | None, *, files: tuple[str, ...], write: Callable[[Path, Iterator[bytes]], None]
) -> LineCipher | None:
    """Return the cipher of a folder; None if it is not encrypted. A new folder gets a key file, if there is a key.

    Args:
        files: the names of the files that hold lines.
        write: writes a file, completely or not at all.

    Raises:
        DeniedError: the folder is encrypted, and the key is missing or wrong.
        InvalidError: there is a key, and the folder is not encrypted.
        StoreError: the key file is missing or damaged.
    """
    path = folder / KEY_FILE
    if not path.exists():
        if not _may_be_new(folder, key, files):
            return None
        assert isinstance(key, Key)
        cipher, content = new_folder_key(key)
        write(path, iter([content]))
        return cipher
    if key is None:
        raise missing_key(str(folder))
    try:
        plain = json.loads(path.read_bytes())
        salt, check = bytes.fromhex(plain["salt"]), bytes.fromhex(plain["check"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged", hint="restore it from a backup of the folder") from error
    cipher, expected = line_cipher(key, salt)
    if not secrets.compare_digest(expected, check):
        raise wrong_key(str(folder))
    return cipher


def _may_be_new(folder: Path, key: AnyKey | None, files: tuple[str, ...]) -> bool:
    """Return whether a folder without a key file is new and is to be encrypted."""
    first = next((line for name in files for line in [_first_line(folder / name)] if line), b"")
    if looks_sealed(first):
        raise StoreError(
            f"{folder / KEY_FILE} is missing, and the lines beside it are encrypted", hint="restore it from a backup"
        )
    if key is None:
        return False
    if first:
        raise InvalidError(
            f"{folder} is not encrypted, and a key was given",
            hint="`ricordo rekey --to KEY` encrypts it; or open it without a key",
        )
    require_cipher()
    return True


def _first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.readline().removesuffix(b"\n")
    except OSError:
        return b""
