"""Who may come in: tokens, each bound to an owner, a chat, a trust and permissions. Secrets are kept as hashes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from ricordo.errors import ConflictError, InvalidError, NotFoundError, StoreError
from ricordo.interfaces.call import Caller, Trust
from ricordo.interfaces.catalog import Access

_PREFIX = "ric_"
FIRST_ACCESS: frozenset[Access] = frozenset({"read", "write", "admin"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A way in. `digest` is the SHA-256 of the secret, which has 256 random bits, so it needs no salt."""

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


class Tokens:
    """The tokens of one store, in a file beside it that only its owner can read. Changes to it count at once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._read_at: tuple[int, int] | None = None
        self._known: dict[str, Token] = {}

    def caller(self, secret: str) -> Caller | None:
        """Who has this secret, or None."""
        token = self._tokens().get(_digest(secret))
        return None if token is None else token.caller

    def all(self) -> list[Token]:
        """Every token, the oldest first."""
        return list(self._tokens().values())

    def add(self, name: str, *, owner: str, chat: str | None, trust: Trust, access: Iterable[str]) -> tuple[Token, str]:
        """A new token and its secret, which is told only now.

        Raises:
            ConflictError: there is one of that name.
            InvalidError: the name or a permission does not fit.
        """
        if not name or len(name) > 100 or not name.isprintable():
            raise InvalidError("name must be 1 to 100 printable characters")
        secret = _PREFIX + secrets.token_urlsafe(32)
        fresh = Token(
            name=name,
            digest=_digest(secret),
            owner=owner,
            chat=chat,
            trust=checked_trust(trust),
            access=checked_access(access),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        known = self.all()
        if any(each.name == name for each in known):
            raise ConflictError(f"there is a token {name!r} already", hint="revoke it first, or choose another name")
        self._write([*known, fresh])
        return fresh, secret

    def revoke(self, name: str) -> Token:
        """Shut a token out, also from servers that run.

        Raises:
            NotFoundError: there is none of that name.
        """
        known = self.all()
        gone = next((each for each in known if each.name == name), None)
        if gone is None:
            raise NotFoundError(f"there is no token {name!r}", hint="`ricordo token list` shows them")
        self._write([each for each in known if each is not gone])
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
            raise StoreError(f"{self.file} cannot be read: {error}", hint="nobody is let in until it can") from error

    def _write(self, tokens: list[Token]) -> None:
        """Whole or not at all. The new file is the lock: it can be made once."""
        text = json.dumps({"tokens": [_plain(each) for each in tokens]}, indent=2, ensure_ascii=False) + "\n"
        fresh = self.file.with_name(self.file.name + ".new")
        try:
            write_private(fresh, text)
            fresh.replace(self.file)
        except FileExistsError as error:
            hint = f"try again; if nobody else is at it, remove {fresh}"
            raise ConflictError("another program is changing the tokens", hint=hint) from error
        except OSError as error:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise StoreError(f"{self.file} cannot be written: {error.strerror}") from error


def write_private(file: Path, text: str) -> None:
    """A new file only its owner can read. Raises FileExistsError, OSError."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())


def tokens_file(location: str | Path) -> Path:
    """Where the tokens of a store are.

    Raises:
        InvalidError: the store has no place of its own.
    """
    if str(location) == ":memory:" or "://" in str(location):
        raise InvalidError(f"store: {location} cannot be served", hint="name a file")
    path = Path(location).expanduser()
    return path.with_name(path.name + ".tokens.json")


def first_token(tokens: Tokens, caller: Caller) -> Path | None:
    """Where no token is, one is made for the owner; the file that holds its secret, or None where there are some."""
    if tokens.file.exists():
        return None
    tokens.file.parent.mkdir(parents=True, exist_ok=True)
    file = tokens.file.with_name(tokens.file.name.removesuffix("s.json"))
    with contextlib.suppress(FileNotFoundError):
        file.unlink()  # of a server before, whose tokens somebody took away
    _, secret = tokens.add("default", owner=caller.owner, chat=caller.chat, trust="user", access=FIRST_ACCESS)
    write_private(file, secret + "\n")
    return file


def checked_access(access: Iterable[str]) -> frozenset[Access]:
    """Raises InvalidError: there is no such permission, or none."""
    known: tuple[Access, ...] = get_args(Access)
    given = frozenset(access)
    if not given or not given <= set(known):
        raise InvalidError(f"access: {', '.join(sorted(given)) or 'none'}", hint=f"choose among {', '.join(known)}")
    return frozenset(each for each in known if each in given)


def checked_trust(trust: str) -> Trust:
    """Raises InvalidError: there is no such trust."""
    known: tuple[Trust, ...] = get_args(Trust)
    for each in known:
        if each == trust:
            return each
    raise InvalidError(f"trust: {trust!r} is unknown", hint=f"choose {', '.join(known)}")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _plain(token: Token) -> dict[str, Any]:
    return {
        "name": token.name,
        "digest": token.digest,
        "owner": token.owner,
        "chat": token.chat,
        "trust": token.trust,
        "access": sorted(token.access),
        "created_at": token.created_at,
    }


def _token(plain: Mapping[str, Any]) -> Token:
    return Token(
        name=plain["name"],
        digest=plain["digest"],
        owner=plain["owner"],
        chat=plain["chat"],
        trust=checked_trust(plain["trust"]),
        access=checked_access(plain["access"]),
        created_at=plain["created_at"],
    )
