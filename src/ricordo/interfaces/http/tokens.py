"""Access tokens: each is bound to an owner, a chat, a trust level and permissions. Secrets are stored as hashes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from ricordo.errors import ConflictError, InvalidError, NotFoundError, StoreError
from ricordo.interfaces.call import Caller
from ricordo.model import Trust
from ricordo.rights import Access
from ricordo.storage.staging import keep_owner, named

_PREFIX = "ric_"
FIRST_ACCESS: frozenset[Access] = frozenset({"read", "write", "admin"})
"""The permissions of the token that is created at the first start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token. `digest` is the SHA-256 of its secret, without a salt, because the secret has 256 random bits."""

    name: str
    digest: str
    owner: str
    chat: str | None
    trust: Trust
    access: frozenset[Access]
    created_at: str

    @property
    def caller(self) -> Caller:
        return Caller(owner=self.owner, chat=self.chat, trust=self.trust, access=self.access, name=self.name)

    def plain(self) -> dict[str, Any]:
        """Return the token as JSON values."""
        return asdict(self) | {"access": sorted(self.access)}


class Tokens:
    """The tokens of one store, in a file that only its owner can read. Running servers see changes at once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._read_at: tuple[int, int] | None = None
        self._known: dict[str, Token] = {}

    def caller(self, secret: str) -> Caller | None:
        """Return the caller of the token with this secret, or None."""
        return self.of_digest(digest(secret))

    def of_digest(self, digest: str) -> Caller | None:
        """Return the caller of the token with this digest, or None."""
        token = self._tokens().get(digest)
        return None if token is None else token.caller

    def all(self) -> list[Token]:
        """Return every token, oldest first."""
        return list(self._tokens().values())

    def add(self, name: str, *, owner: str, chat: str | None, trust: Trust, access: Iterable[str]) -> tuple[Token, str]:
        """Create a token; return it with its secret, which is not stored.

        Raises:
            ConflictError: A token of that name exists.
            InvalidError: The name or a permission is not valid.
        """
        if not name or len(name) > 100 or not name.isprintable():
            raise InvalidError("name must be 1 to 100 printable characters")
        secret = _PREFIX + secrets.token_urlsafe(32)
        fresh = Token(
            name=name,
            digest=digest(secret),
            owner=owner,
            chat=chat,
            trust=checked_trust(trust),
            access=checked_access(access),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        known = self.all()
        if any(each.name == name for each in known):
            raise ConflictError(f"a token {name!r} already exists", hint="revoke it first, or choose another name")
        self._write([*known, fresh])
        return fresh, secret

    def revoke(self, name: str) -> Token:
        """Revoke a token; running servers refuse it at once.

        Raises:
            NotFoundError: There is no token of that name.
        """
        known = {each.name: each for each in self.all()}
        if name not in known:
            raise NotFoundError(f"there is no token {name!r}", hint="`ricordo token list` shows all tokens")
        gone = known.pop(name)
        self._write(list(known.values()))
        return gone

    def _tokens(self) -> dict[str, Token]:
        try:
            state = self.file.stat()
        except FileNotFoundError:
            self._read_at, self._known = None, {}
            return self._known
        seen = (state.st_mtime_ns, state.st_ino)
        if seen != self._read_at:
            self._known = {each.digest: each for each in self._read()}
            self._read_at = seen
        return self._known

    def _read(self) -> list[Token]:
        try:
            found = json.loads(self.file.read_text(encoding="utf-8"))["tokens"]
            return [_token(each) for each in found]
        except (OSError, ValueError, KeyError, TypeError) as error:
            hint = "no token is accepted until the file is repaired"
            raise StoreError(f"{self.file} cannot be read: {error}", hint=hint) from error

    def _write(self, tokens: list[Token]) -> None:
        """Replace the file atomically. The temporary file is also a lock: only one process at a time can create it."""
        text = json.dumps({"tokens": [each.plain() for each in tokens]}, indent=2, ensure_ascii=False) + "\n"
        fresh = self.file.with_name(self.file.name + ".new")
        try:
            fresh.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(fresh, text)
            keep_owner(fresh, self.file, self.file.with_name(self.file.name.removesuffix(".tokens.json")))
            fresh.replace(self.file)
        except FileExistsError as error:
            hint = f"try again; if no other program is running, delete {fresh}"
            raise ConflictError("another program is changing the tokens", hint=hint) from error
        except OSError as error:
            with contextlib.suppress(OSError):
                fresh.unlink()
            hint = "make its folder writable, or set XDG_DATA_HOME to one that is; tokens of a read-only store go there"
            raise StoreError(f"{self.file} cannot be written: {error.strerror}", hint=hint) from error


def write_private(file: Path, text: str) -> None:
    """Write a new file that only its owner can read. Raises FileExistsError or another OSError."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())


def tokens_file(location: str | Path) -> Path:
    """Return the path of a store's tokens: next to the store or, for a store on a database server or one without tokens
    on a read-only disk, in the user's data folder, so that each machine has its own tokens. There the file name is a
    hash, because URLs can contain passwords.

    Raises:
        InvalidError: the store is in memory only.
    """
    if str(location) == ":memory:":
        raise InvalidError(f"store: {location} cannot be served", hint="give the path of a file or folder")
    if "://" in str(location):
        return _of_the_user(str(location))
    path = named(location)
    beside = path.with_name(path.name + ".tokens.json")
    is_elsewhere = path.exists() and not beside.exists() and not os.access(path.parent, os.W_OK)
    return _of_the_user(str(path.absolute())) if is_elsewhere else beside


def _of_the_user(location: str) -> Path:
    from platformdirs import user_data_path

    name = hashlib.blake2b(location.encode(), digest_size=8).hexdigest()
    return user_data_path("ricordo", appauthor=False) / f"server-{name}.tokens.json"


def first_token(tokens: Tokens, caller: Caller) -> Path | None:
    """Create a token for the owner if there are no tokens; return the file with its secret, else None."""
    if tokens.file.exists():
        return None
    file = tokens.file.with_name(tokens.file.name.removesuffix("s.json"))
    with contextlib.suppress(FileNotFoundError):
        file.unlink()  # left by an earlier server whose tokens were deleted
    _, secret = tokens.add("default", owner=caller.owner, chat=caller.chat, trust="user", access=FIRST_ACCESS)
    write_private(file, secret + "\n")
    keep_owner(file, tokens.file)
    return file


def checked_access(access: Iterable[str]) -> frozenset[Access]:
    """Return the permissions. Raises InvalidError if one does not exist, or none is given."""
    known: tuple[Access, ...] = get_args(Access)
    given = frozenset(access)
    if not given or not given <= set(known):
        raise InvalidError(
            f"access: {', '.join(sorted(given)) or 'none'} is invalid", hint=f"choose from {', '.join(known)}"
        )
    return frozenset(each for each in known if each in given)


def checked_trust(trust: str) -> Trust:
    """Return the trust level. Raises InvalidError if it does not exist."""
    known: tuple[Trust, ...] = get_args(Trust)
    if trust not in known:
        raise InvalidError(f"trust: {trust!r} is unknown", hint=f"choose {', '.join(known)}")
    return known[known.index(trust)]


def digest(secret: str) -> str:
    """Return the SHA-256 digest of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _token(plain: Mapping[str, Any]) -> Token:
    checked = {"trust": checked_trust(plain["trust"]), "access": checked_access(plain["access"])}
    return Token(**{name: plain[name] for name in Token.__dataclass_fields__} | checked)
