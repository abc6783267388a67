"""An outbox: additions for a server that may be away wait in a folder, in order, until the server has stored them.

It needs only Python's standard library. Each addition has an id that the client chooses, and a server stores an id
once. So if an answer was lost, or the client was killed, the addition is sent again without doubling it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Call = Callable[[str, Mapping[str, Any]], Any]
"""Calls a method of the server and returns its result, or raises `RefusedError`."""

_NAME = re.compile(r"(\d{9})-[0-9a-f]{32}\.json")
METHODS = frozenset(("memory.add", "memory.remember", "memory.add_many", "memory.remember_many"))
"""The methods that can wait: they only add, and an id makes a repetition harmless."""
_AWAY = frozenset(("unavailable", "unauthorized", "store"))
"""The codes after which nothing more is sent: the server is away, full, or does not know the token."""
_LATE_S = 60.0
_LEFT_S = 3_600.0


class RefusedError(Exception):
    """The server refused a call, or did not answer."""

    def __init__(self, message: str, *, code: str = "unavailable", hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An addition that was not delivered yet.

    Attributes:
        path: its file.
        number: its place in the order; two processes may choose the same one.
        address: the server that it is for.
        refused: why the server refused it; "" if the server did not decide yet.
    """

    path: Path
    number: int
    address: str
    method: str
    params: Mapping[str, Any]
    kept_at: float
    refused: str = ""

    def write(self) -> None:
        """Write its file, completely or not at all."""
        partial = self.path.with_suffix(".partial")
        values = {name: getattr(self, name) for name in ("address", "method", "params", "kept_at", "refused")}
        partial.touch(mode=0o600)
        with partial.open("w", encoding="utf-8") as file:
            json.dump(values, file, ensure_ascii=True)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)
        _sync(self.path.parent)

    def remove(self) -> None:
        """Remove its file."""
        self.path.unlink(missing_ok=True)
        _sync(self.path.parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The result of sending what waits.

    Attributes:
        answers: the server's answer to each delivered addition, by its file.
        away: why sending stopped; "" if everything was sent.
    """

    answers: Mapping[Path, Any]
    away: str = ""


class Outbox:
    """A folder of additions for servers, each in a file of its own. Several processes may use it."""

    def __init__(self, folder: str | Path, *, address: str) -> None:
        """
        Args:
            address: names the server. Only what was kept for it is sent to it.
        """
        self.folder = Path(folder).expanduser()
        self.address = address

    def keep(self, method: str, params: Mapping[str, Any]) -> Path:
        """Keep an addition durably, behind those that wait already; return its file.

        Args:
            method: one of `METHODS`.
            params: its parameters. What has no id gets one.

        Raises:
            RefusedError: the method cannot wait, or others can write to the folder.
            OSError: it cannot be written.
        """
        if method not in METHODS:
            raise RefusedError(f"{method} cannot wait", code="invalid", hint=f"these can: {', '.join(sorted(METHODS))}")
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = max((each.number for each in self.waiting()), default=0) + 1
        kept = Waiting(
            path=self.folder / f"{number:09}-{uuid.uuid4().hex}.json",
            number=number,
            address=self.address,
            method=method,
            params=_with_ids(params),
            kept_at=time.time(),
        )
        kept.write()
        return kept.path

    def waiting(self) -> list[Waiting]:
        """Return what was not delivered yet, in the order in which it is sent.

        Raises:
            RefusedError: others can write to the folder, so what waits there may not be yours.
        """
        if not self.folder.exists():
            return []
        _check_own(self.folder)
        names = sorted(each.name for each in self.folder.glob("*.json") if each.is_file() and not each.is_symlink())
        found = (_read(self.folder / name, int(match[1])) for name in names if (match := _NAME.fullmatch(name)))
        return [each for each in found if each is not None]

    def send(self, call: Call) -> Delivery:
        """Send what waits for this server, in order, until it does not answer. What it refuses waits apart, with the
        reason, and is tried again with the next call.
        """
        self._tidy()
        answers: dict[Path, Any] = {}
        for each in self.waiting():
            if each.address != self.address:
                continue
            try:
                answers[each.path] = call(each.method, _dated(each))
            except RefusedError as error:
                if error.code in _AWAY:
                    return Delivery(answers=answers, away=str(error))
                if str(error) != each.refused:
                    replace(each, refused=str(error)).write()
            else:
                each.remove()
        return Delivery(answers=answers)

    def _tidy(self) -> None:
        """Remove incomplete files of killed processes."""
        for path in self.folder.glob("*.partial") if self.folder.exists() else ():
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _LEFT_S:
                    path.unlink()


def _check_own(folder: Path) -> None:
    """Raise RefusedError if somebody else could have put files into a folder: they would be sent with our token."""
    state = folder.stat()
    is_ours = not hasattr(os, "getuid") or state.st_uid in (os.getuid(), 0)
    if not is_ours or state.st_mode & stat.S_IWOTH:
        raise RefusedError(f"others can write to {folder}", code="invalid", hint="use a folder that is yours alone")


def _read(path: Path, number: int) -> Waiting | None:
    """Read a file; None if another process delivered it meanwhile."""
    try:
        found = Waiting(path=path, number=number, **json.loads(path.read_bytes()))
        if found.method not in METHODS or not isinstance(found.params, dict) or _dated(found) is None:
            raise ValueError
        return found
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, OverflowError, RecursionError):
        return Waiting(path=path, number=number, address="", method="", params={}, kept_at=0, refused="damaged file")


def _sync(folder: Path) -> None:
    """Make changes of the names in a folder durable."""
    with contextlib.suppress(OSError):  # Windows cannot open folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


_LISTS = ("messages", "facts_")
"""The parameters that hold several additions."""


def _each(params: Mapping[str, Any], fill: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Return parameters with something filled in, in each addition if there are several."""
    if not (lists := [name for name in _LISTS if name in params]):
        return fill(params)
    return {**params, **{name: [fill(each) for each in params[name]] for name in lists}}


def _with_ids(params: Mapping[str, Any]) -> dict[str, Any]:
    return _each(params, lambda given: {**given, "id": given.get("id") or str(uuid.uuid4())})


def _dated(each: Waiting) -> Mapping[str, Any]:
    """Return the parameters, with the time at which a late addition was made."""
    if time.time() - each.kept_at < _LATE_S:
        return each.params
    at = datetime.fromtimestamp(each.kept_at, UTC).isoformat()
    return _each(each.params, lambda given: {"at": at, **given})
