"""The files in a folder through which devices exchange commits. Each device writes its own files and reads all.

A file is never appended to. It gets its name when it is complete; its first line describes the content, and its last
line has a hash of all other lines. So whatever copies the folder (git, Syncthing, a network drive) can neither mix two
writers nor pass off a part as complete, and a second copy of a file does no harm.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ricordo.errors import InvalidError, StoreError
from ricordo.storage import faults
from ricordo.storage.exchange import Delta, ExchangedCommit, Vector
from ricordo.storage.staging import make_folders, sync

_VERSION = 1
_ENDING = ".jsonl"
_PARTIAL = ".partial"
_END_BYTES = 256
_FILES_MOST = 64
"""A device with more files than this replaces them all by one."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A file that looks complete.

    Attributes:
        device: the device that wrote it.
        erased_at: the writer's last commit that erased something before the file was written.
        holds: for each device, the number before the first commit in the file, and the number of the last.
    """

    path: Path
    device: str
    erased_at: int
    holds: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Shelf:
    """The segments of one space in a folder, and the files that cannot be used, with the reason."""

    folder: Path
    segments: tuple[Segment, ...]
    left_out: tuple[str, ...]

    def known(self, *, without: str = "") -> dict[str, int]:
        """Return the last commit number of each device in the files, leaving out files of the device `without`."""
        spans = [
            (device, *span) for each in self.segments if each.device != without for device, span in each.holds.items()
        ]
        found: dict[str, int] = {}
        for device, after, last in sorted(spans, key=lambda span: span[1:]):
            if after <= found.get(device, 0):
                found[device] = max(last, found.get(device, 0))
        return found

    def of(self, device: str) -> list[Segment]:
        """Return the files that a device wrote, including copies of them."""
        return [each for each in self.segments if each.device == device]

    def needs_rewriting(self, device: str, *, erased_at: int) -> bool:
        """Return whether a device must write its files again: one may hold erased data, or there are too many."""
        own = self.of(device)
        return len(own) > _FILES_MOST or any(each.erased_at < erased_at for each in own)


def shelf_of(folder: Path, space: str) -> Shelf:
    """Read the first lines of the files of a space. Raises StoreError if the folder cannot be read."""
    place, found, left_out = folder / f"ricordo-{space}", [], []
    try:
        paths = sorted(place.glob(f"*{_ENDING}")) if place.exists() else []
        for path in paths:
            try:
                found.append(_beginning(path, space))
            except InvalidError as error:
                left_out.append(str(error))
    except OSError as error:
        raise StoreError(f"cannot read {place}: {error.strerror}", hint="check the path and its permissions") from error
    return Shelf(place, tuple(found), tuple(left_out))


def name_of(owner: str, chat: str) -> str:
    """Return the name of a space in a folder: a hash, so that the folder reveals no names."""
    return blake2b(json.dumps([owner, chat]).encode(), digest_size=8).hexdigest()


def _beginning(path: Path, space: str) -> Segment:
    """Read the first line of a file, and check that it has a last one. Raises InvalidError, OSError."""
    with path.open("rb") as file:
        first = file.readline()
        file.seek(max(0, path.stat().st_size - _END_BYTES))
        last = file.read().rpartition(b"\n{")[2]
    head = _object(first)
    if head.get("ricordo") != "segment":
        raise InvalidError(f"{path.name} was not written by Ricordo", hint="it is ignored")
    if head.get("version") != _VERSION:
        raise InvalidError(f"{path.name} was written by a newer version", hint="update Ricordo on this device")
    if head.get("space") != space:
        raise InvalidError(f"{path.name} belongs to another owner", hint="it is ignored")
    if not last.endswith(b"}\n") or b'"blake2b"' not in last:
        raise InvalidError(f"{path.name} is incomplete, or still being copied", hint="sync again later")
    try:
        holds = {str(name): (int(after), int(end)) for name, (after, end) in head["holds"].items()}
        return Segment(path, str(head["device"]), int(head["erased_at"]), holds)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidError(f"{path.name}: its first line is damaged", hint="copy the file again") from None


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read(segment: Segment) -> list[ExchangedCommit]:
    """Return the commits of a file. Raises InvalidError if it is damaged, StoreError if it cannot be read."""
    try:
        data = segment.path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {segment.path}: {error.strerror}") from error
    *lines, last = data.removesuffix(b"\n").split(b"\n")
    end = _object(last)
    whole = b"\n".join(lines) + b"\n"
    if end.get("end") != len(lines) or end.get("blake2b") != _hash(whole):
        raise InvalidError(f"{segment.path.name} is damaged", hint="copy the file again")
    try:
        return [_commit(_object(line)) for line in lines[1:]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidError(f"{segment.path.name}: a commit in it is malformed", hint="copy the file again") from None


def _commit(line: Mapping[str, Any]) -> ExchangedCommit:
    deltas = tuple(Delta(**{each.name: raw[each.name] for each in fields(Delta)}) for raw in line["deltas"])
    return ExchangedCommit(**{**line, "deltas": deltas})


def write(
    shelf: Shelf, commits: Sequence[ExchangedCommit], *, space: str, device: str, erased_at: int, instead: bool
) -> None:
    """Write commits to a new file of a device.

    Args:
        instead: whether it replaces all files that the device has written before.

    Raises:
        StoreError: the file cannot be written; nothing of it remains.
    """
    try:
        make_folders(shelf.folder)
        for left in shelf.folder.glob(f".{device}-*{_PARTIAL}"):
            left.unlink()
        if commits:
            head = {"ricordo": "segment", "version": _VERSION, "space": space, "device": device}
            _put(shelf.folder, {**head, "erased_at": erased_at, "holds": _holds(commits)}, commits)
        if instead:
            for each in shelf.of(device):
                faults.reached("sync: between files")
                each.path.unlink(missing_ok=True)
            sync(shelf.folder)
    except OSError as error:
        hint = "check the path, its permissions and the free space"
        raise StoreError(f"cannot write to {shelf.folder}: {error.strerror}", hint=hint) from error


def _holds(commits: Iterable[ExchangedCommit]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for each in commits:
        found[each.device] = found.get(each.device, (each.after, 0))[0], each.number
    return found


def _put(folder: Path, head: Mapping[str, Any], commits: Sequence[ExchangedCommit]) -> None:
    device, number = head["device"], 1
    while (path := folder / f"{device}-{number:06}{_ENDING}").exists():
        number += 1
    lines = [_line(head), *(_line(asdict(each)) for each in commits)]
    whole = b"".join(lines)
    end = _line({"end": len(lines), "blake2b": _hash(whole)})
    partial = folder / f".{path.name}{_PARTIAL}"
    with _removed_if_it_fails(partial):
        partial.touch(mode=0o600)
        with partial.open("wb") as file:
            file.write(whole)
            faults.reached("sync: within a file")
            file.write(end)
            file.flush()
            os.fsync(file.fileno())
        faults.reached("sync: before naming")
        partial.replace(path)
        sync(folder)
    faults.reached("sync: file written")


@contextlib.contextmanager
def _removed_if_it_fails(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def unread(shelf: Shelf, known: Vector) -> tuple[list[ExchangedCommit], list[str]]:
    """Return the commits in a folder that are not known yet, and why some files could not be read."""
    found, left_out = [], []
    for each in shelf.segments:
        if any(last > known.get(device, 0) for device, (_, last) in each.holds.items()):
            try:
                found += read(each)
            except InvalidError as error:
                left_out.append(str(error))
    return found, left_out
