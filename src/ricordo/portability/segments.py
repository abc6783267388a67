"""The files in a folder through which devices exchange commits. Each device writes its own files and reads all.

A file is never appended to. It gets its name when it is complete; its first line describes the content, and its last
line has a hash of all other lines. So whatever copies the folder (git, Syncthing, a network drive) can neither mix two
writers nor pass off a part as complete, and a second copy of a file does no harm.

With a key, the files of all spaces are in one folder, and each line but the first is encrypted. The first line holds a
salt, a check value of the key, and a random name of the file, to which every other line and its place are bound.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ricordo.errors import DeniedError, InvalidError, StoreError
from ricordo.storage import faults
from ricordo.storage.exchange import Delta, ExchangedCommit, Vector
from ricordo.storage.exchange_check import is_valid
from ricordo.storage.key import Key, LineCipher, line_cipher, missing_key, new_salt, wrong_key
from ricordo.storage.staging import make_folders, sync

_VERSION = 1
_ENDING = ".jsonl"
_PARTIAL = ".partial"
_END_BYTES = 512
_FIRST_BYTES = 16_000_000
_FILES_MOST = 64
"""A device with more files than this replaces them all by one."""
_SEALED = "sealed segment"
_SEALED_FOLDER = "ricordo-sealed"
_NOT_SEALED = "sync on the device that wrote it, with the key; or delete the file"


@dataclass(frozen=True, slots=True, repr=False)
class _Seal:
    """Encrypts the lines of one file.

    Attributes:
        first: the first line of the file, which is readable.
    """

    first: bytes
    salt: bytes
    file: str
    cipher: LineCipher

    @classmethod
    def new(cls, key: Key, salt: bytes) -> _Seal:
        file = secrets.token_hex(8)
        cipher, check = line_cipher(key, salt)
        first = {"ricordo": _SEALED, "version": _VERSION, "salt": salt.hex(), "check": check.hex(), "file": file}
        return cls(_line(first), salt, file, cipher)

    @classmethod
    def of(cls, first: bytes, key: Key, path: Path) -> _Seal | None:
        """Return the seal of a file; None if another key made it. Raises InvalidError if the first line is damaged."""
        head = _object(first)
        try:
            salt, check, file = bytes.fromhex(head["salt"]), bytes.fromhex(head["check"]), str(head["file"])
        except (KeyError, TypeError, ValueError):
            raise InvalidError(f"{path.name}: its first line is damaged", hint="copy the file again") from None
        cipher, expected = line_cipher(key, salt)
        return cls(first, salt, file, cipher) if secrets.compare_digest(expected, check) else None

    def seal(self, place: int | str, line: bytes) -> bytes:
        """Encrypt a line at its place in the file."""
        return self.cipher.seal(f"{self.file}:{place}", line)

    def open(self, place: int | str, line: bytes) -> bytes:
        """Decrypt a line; return b"" if it was changed or moved."""
        try:
            return self.cipher.open(f"{self.file}:{place}", line.removesuffix(b"\n"))
        except ValueError:
            return b""


@dataclass(frozen=True, slots=True)
class Segment:
    """A file that looks complete.

    Attributes:
        device: the device that wrote it.
        erased_at: the writer's last commit that erased something before the file was written.
        holds: for each device, the number before the first commit in the file, and the number of the last.
        chats: in files of an owner, the chats that the device exchanges for this owner.
        seal: decrypts the file; None if it is readable.
    """

    path: Path
    space: str
    device: str
    erased_at: int
    holds: Mapping[str, tuple[int, int]]
    chats: frozenset[str]
    seal: _Seal | None


@dataclass(frozen=True, slots=True)
class Shelf:
    """The segments of one space in a folder.

    Attributes:
        seal: encrypts the next file; None if files are readable.
        unusable: files that cannot be used, with the reason.
        readable: files in plain text, beside encrypted ones.
    """

    space: str
    folder: Path
    seal: _Seal | None
    segments: tuple[Segment, ...]
    unusable: tuple[str, ...]
    readable: tuple[Path, ...]

    @property
    def chats(self) -> frozenset[str]:
        """The chats that devices exchange for the owner of this space."""
        return frozenset[str]().union(*(each.chats for each in self.segments))

    def left_out(self, device: str) -> tuple[str, ...]:
        """Return why files were not used. Files in plain text that `device` wrote are replaced by encrypted ones."""
        others = [each.name for each in self.readable if not each.name.startswith(f"{device}-")]
        return (
            *self.unusable,
            *(f"{each} is not encrypted, and the folder has a key ({_NOT_SEALED})" for each in others),
        )

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
        if any(each.name.startswith(f"{device}-") for each in self.readable):
            return True
        return len(own) > _FILES_MOST or any(each.erased_at < erased_at for each in own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a device writes besides commits.

    Attributes:
        chats: see `Segment`.
        instead: whether the new file replaces all files that the device has written before.
    """

    device: str
    erased_at: int
    chats: frozenset[str] = frozenset()
    instead: bool = False


class ExchangeFolder:
    """A folder through which devices exchange commits."""

    def __init__(self, folder: Path, key: Key | None) -> None:
        """Read the first lines of encrypted files.

        Raises:
            DeniedError: the folder is encrypted, and the key is missing or opens none of its files.
            StoreError: the folder cannot be read.
        """
        self.folder = folder
        self.key = key
        sealed = folder / _SEALED_FOLDER
        self._sealed, self._unusable = _beginnings(_files(sealed), key) if key is not None else ([], [])
        self._salt = next((each.seal.salt for each in self._sealed if each.seal), None) or new_salt()
        if key is None and _files(sealed):
            raise missing_key(str(folder))

    def shelf(self, space: str) -> Shelf:
        """Return the files of a space. Raises StoreError if the folder cannot be read."""
        plain = self.folder / f"ricordo-{space}"
        if self.key is None:
            found, unusable = _beginnings(_files(plain), None)
            of_others = [
                f"{each.path.name} belongs to another owner (it is ignored)" for each in found if each.space != space
            ]
            return Shelf(space, plain, None, _of(space, found), (*unusable, *of_others), ())
        place, readable = self.folder / _SEALED_FOLDER, tuple(_files(plain))
        seal = _Seal.new(self.key, self._salt)
        return Shelf(space, place, seal, _of(space, self._sealed), tuple(self._unusable), readable)


def _of(space: str, segments: Iterable[Segment]) -> tuple[Segment, ...]:
    return tuple(each for each in segments if each.space == space)


def _files(place: Path) -> list[Path]:
    try:
        return sorted(filter(_is_plain, place.glob(f"*{_ENDING}"))) if place.exists() else []
    except OSError as error:
        raise StoreError(f"cannot read {place}: {error.strerror}", hint="check the path and its permissions") from error


def _is_plain(path: Path) -> bool:
    """Return whether a path is a file: reading a device or a pipe may never end, and a link may lead anywhere."""
    return stat.S_ISREG(path.lstat().st_mode)


def _beginnings(paths: Sequence[Path], key: Key | None) -> tuple[list[Segment], list[str]]:
    """Read the beginnings of files; return those that can be used, and why others cannot."""
    found, unusable, of_others = list[Segment](), list[str](), list[str]()
    for path in paths:
        try:
            found.append(_beginning(path, key))
        except DeniedError as error:
            of_others.append(str(error))
        except InvalidError as error:
            unusable.append(str(error))
        except OSError as error:
            hint = "check the path and its permissions"
            raise StoreError(f"cannot read {path}: {error.strerror}", hint=hint) from error
    if of_others and not found:
        raise wrong_key(str(paths[0].parent.parent))
    return found, [*unusable, *of_others]


def name_of(owner: str, chat: str) -> str:
    """Return the name of a space in a folder: a hash, so that the folder reveals no names."""
    return blake2b(json.dumps([owner, chat]).encode(), digest_size=8).hexdigest()


def _beginning(path: Path, key: Key | None) -> Segment:
    """Read the first line of a file, and check that it has a last one.

    Raises:
        InvalidError: it cannot be used.
        DeniedError: another key encrypted it.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        first = file.readline(_FIRST_BYTES)
        seal = None if key is None else _seal_of(path, first, key)
        if seal is not None:
            first = seal.open(1, file.readline(_FIRST_BYTES))
        file.seek(max(0, path.stat().st_size - _END_BYTES))
        last = file.read().rpartition(b"\n{")[2]
    head = _object(first)
    if seal is not None and not head:
        raise InvalidError(f"{path.name} is incomplete, or still being copied", hint="sync again later")
    if head.get("ricordo") != "segment":
        raise InvalidError(f"{path.name} was not written by Ricordo", hint="it is ignored")
    if head.get("version") != _VERSION:
        raise InvalidError(f"{path.name} was written by a newer version", hint="update Ricordo on this device")
    last = b"{" + last if seal is None else seal.open("end", b"{" + last)
    if b'"blake2b"' not in last or not (seal or last.endswith(b"}\n")):
        raise InvalidError(f"{path.name} is incomplete, or still being copied", hint="sync again later")
    try:
        holds = {str(name): (int(after), int(end)) for name, (after, end) in head["holds"].items()}
        chats = frozenset(map(str, head.get("chats", ())))
        return Segment(path, str(head["space"]), str(head["device"]), int(head["erased_at"]), holds, chats, seal)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidError(f"{path.name}: its first line is damaged", hint="copy the file again") from None


def _seal_of(path: Path, first: bytes, key: Key) -> _Seal:
    head = _object(first)
    if head.get("ricordo") != _SEALED:
        raise InvalidError(f"{path.name} is not a file that Ricordo encrypted", hint="it is ignored")
    if head.get("version") != _VERSION:
        raise InvalidError(f"{path.name} was written by a newer version", hint="update Ricordo on this device")
    if (seal := _Seal.of(first, key, path)) is None:
        raise DeniedError(f"{path.name} is encrypted with another key", hint="use one key on all devices")
    return seal


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
    if (seal := segment.seal) is not None:
        lines, last = [seal.open(place, line) for place, line in enumerate(lines[1:], start=1)], seal.open("end", last)
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
    commit = ExchangedCommit(**{**line, "deltas": deltas})
    if not is_valid(commit):
        raise ValueError
    return commit


def write(shelf: Shelf, commits: Sequence[ExchangedCommit], entry: Entry) -> None:
    """Write commits to a new file of a device.

    Raises:
        StoreError: the file cannot be written; nothing of it remains.
    """
    try:
        make_folders(shelf.folder)
        for left in shelf.folder.glob(f".{entry.device}-*{_PARTIAL}"):
            left.unlink()
        if commits or entry.chats:
            head = {"ricordo": "segment", "version": _VERSION, "space": shelf.space, "device": entry.device}
            head |= {"erased_at": entry.erased_at, "holds": _holds(commits)}
            _put(shelf, {**head, "chats": sorted(entry.chats)} if entry.chats else head, commits)
        if entry.instead:
            _remove_former(shelf, entry.device)
    except OSError as error:
        hint = "check the path, its permissions and the free space"
        raise StoreError(f"cannot write to {shelf.folder}: {error.strerror}", hint=hint) from error


def _remove_former(shelf: Shelf, device: str) -> None:
    """Remove the files that a device wrote before, also those in plain text."""
    readable = [each for each in shelf.readable if each.name.startswith(f"{device}-")]
    for path in (*(each.path for each in shelf.of(device)), *readable):
        faults.reached("sync: between files")
        path.unlink(missing_ok=True)
    sync(shelf.folder)
    if readable:
        sync(readable[0].parent)
        with contextlib.suppress(OSError):  # other devices have files there
            readable[0].parent.rmdir()


def _holds(commits: Iterable[ExchangedCommit]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for each in commits:
        found[each.device] = found.get(each.device, (each.after, 0))[0], each.number
    return found


def _put(shelf: Shelf, head: Mapping[str, Any], commits: Sequence[ExchangedCommit]) -> None:
    device, number = head["device"], 1
    while (path := shelf.folder / f"{device}-{number:06}{_ENDING}").exists():
        number += 1
    lines = [_line(head), *(_line(asdict(each)) for each in commits)]
    end = _line({"end": len(lines), "blake2b": _hash(b"".join(lines))})
    if (seal := shelf.seal) is not None:
        end = seal.seal("end", end)
        lines = [seal.first, *(seal.seal(place, line) for place, line in enumerate(lines, start=1))]
    partial = shelf.folder / f".{path.name}{_PARTIAL}"
    with _removed_if_it_fails(partial):
        # Exclusive: the name could be a link that somebody else put into the folder.
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(b"".join(lines))
            faults.reached("sync: within a file")
            file.write(end)
            file.flush()
            os.fsync(file.fileno())
        faults.reached("sync: before naming")
        partial.replace(path)
        sync(shelf.folder)
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
