"""Simulate power cuts: only synced data is sure to survive.

    python -m tests.crash.power --cuts 3000

A process works on a store while every write, sync, rename and removal of its files is recorded: those of SQLite by a
VFS, those of the plain files at the system calls. Then the recording is cut at random places. What
was synced by then is on disk; of each other write, all, some sectors or nothing; of files created or
removed since their folder was synced, the first few. Writes acknowledged before the cut must be there, and nothing may
be damaged.
"""

# The wrappers of system calls use paths as these functions do.
# ruff: noqa: PTH112, PTH115, PTH120, PTH123
from __future__ import annotations

import argparse
import asyncio
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from ricordo import Memory, Message, Settings
from ricordo.errors import RicordoError
from ricordo.storage.registry import open_store
from tests.crash.kills import ROOT, machine

RESULT = ROOT / "benchmarks" / "results" / "power.json"
SECTOR = 512
CUTS_PER_RECORDING = 50

Op = tuple[Any, ...]
"""A recorded operation: its name, the path, and details. Those of a sync are how many operations preceded its call:
it covers no later ones, which other threads made while it ran."""


# recording, in a separate process


class Recorder:
    """Records operations on the files below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.ops: list[Op] = []
        self._known: dict[str, bytes] = {}
        self._opened: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def is_ours(self, path: str) -> bool:
        return path.startswith(self.root)

    def capture(self, path: str) -> None:
        """Record the changes of a plain file since the last check."""
        try:
            with open(path, "rb") as file:
                now = file.read()
        except OSError:
            return
        if path not in self._known:
            self.ops.append(("create", path))
        before = self._known.get(path, b"")
        if now != before:
            start = len(before) if now.startswith(before) else 0
            if len(now) < len(before):
                self.ops.append(("truncate", path, len(now)))
            self.ops.append(("write", path, start, now[start:]))
        self._known[path] = now

    def opened(self, path: str) -> None:
        """Record the creation of a file that SQLite has opened, once, however many connections open it.

        Its size says nothing: SQLite empties its log, and a connection that opens an empty log creates no new file.
        """
        with self._lock:
            found = Path(path).stat()
            if self._opened.get(path) != (found.st_dev, found.st_ino):
                self._opened[path] = (found.st_dev, found.st_ino)
                self.ops.append(("create", path))

    def removed(self, path: str, remove: Callable[[], None]) -> None:
        """Remove a file and record it before another file may get its inode."""
        with self._lock:
            remove()
            self.ops.append(("unlink", path))
            self._known.pop(path, None)
            self._opened.pop(path, None)

    def install(self) -> None:
        """Wrap the calls that change files."""
        fsync, replace, rename, unlink, truncate = os.fsync, os.replace, os.rename, os.unlink, os.truncate

        def synced(file: int) -> None:
            path = os.readlink(f"/proc/self/fd/{file}")
            if not self.is_ours(path):
                fsync(file)
                return
            is_folder = os.path.isdir(path)
            if not is_folder:
                self.capture(path)
            before = len(self.ops)
            fsync(file)
            self.ops.append(("syncdir" if is_folder else "sync", path, before))

        def named(act: Any) -> Any:
            def moved(source: Any, target: Any, **more: Any) -> None:
                source, target = os.fspath(source), os.fspath(target)
                if self.is_ours(source) and source not in self._opened:
                    self.capture(source)
                act(source, target, **more)
                if self.is_ours(source):
                    self.ops.append(("rename", source, target))
                    for known in (self._known, self._opened):
                        known.pop(target, None)
                        if source in known:
                            known[target] = known.pop(source)

            return moved

        def removed(path: Any, **more: Any) -> None:
            if self.is_ours(os.fspath(path)):
                self.removed(os.fspath(path), lambda: unlink(path, **more))
            else:
                unlink(path, **more)

        def cut(path: Any, size: int) -> None:
            self.capture(os.fspath(path))
            truncate(path, size)
            self.ops.append(("truncate", os.fspath(path), size))
            self._known[os.fspath(path)] = self._known[os.fspath(path)][:size]

        os.fsync, os.truncate = synced, cut  # type: ignore[assignment]
        os.replace, os.rename = named(replace), named(rename)
        os.unlink = os.remove = removed  # type: ignore[assignment]


class RecordingVFS(apsw.VFS):
    """Records SQLite's file operations."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        super().__init__("recording", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return RecordingFile(self.recorder, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        if not self.recorder.is_ours(filename):
            super().xDelete(filename, syncdir)
            return
        self.recorder.removed(filename, lambda: super(RecordingVFS, self).xDelete(filename, syncdir))
        if syncdir:
            self.recorder.ops.append(("syncdir", os.path.dirname(filename), len(self.recorder.ops)))


_JOURNALS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL


class RecordingFile(apsw.VFSFile):
    def __init__(self, recorder: Recorder, name: Any, flags: list[int]) -> None:
        self.name = str(name.filename() if isinstance(name, apsw.URIFilename) else name or "")
        self.recorder = recorder
        # The first sync of a log or journal by a connection also syncs its folder: `unixSync` in SQLite's os_unix.c.
        self.syncs_folder = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _JOURNALS)
        super().__init__("unix", name, flags)
        if self.name and recorder.is_ours(self.name):
            recorder.opened(self.name)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        if self.recorder.is_ours(self.name):
            self.recorder.ops.append(("write", self.name, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        super().xTruncate(size)
        if self.recorder.is_ours(self.name):
            self.recorder.ops.append(("truncate", self.name, size))

    def xSync(self, flags: int) -> None:  # noqa: N802
        before = len(self.recorder.ops)
        super().xSync(flags)
        if self.recorder.is_ours(self.name):
            self.recorder.ops.append(("sync", self.name, before))
            if self.syncs_folder:
                self.recorder.ops.append(("syncdir", os.path.dirname(self.name), before))
                self.syncs_folder = False


async def work(place: str, recorder: Recorder, *, seed: int, durability: str) -> None:
    """Perform some user actions and record those that returned as acknowledged."""
    dice = random.Random(seed)
    number = 0

    def text() -> str:
        nonlocal number
        number += 1
        return f"mark{number} " + " ".join(
            dice.choices(("tea", "Anna", "garden", "Lisbon"), k=dice.choice((3, 9, 300)))
        )

    async def caller(memory: Memory) -> None:
        for _ in range(dice.randrange(2, 6)):
            match dice.choice(("add", "add", "many", "remember", "correct", "erase", "gc")):
                case "add":
                    said = text()
                    recorder.ops.append(("ack", await memory.add(said, session="s"), said))
                case "many":
                    texts = [text() for _ in range(3)]
                    ids = await memory.add_many([Message(text=each, session="many") for each in texts])
                    recorder.ops += [("ack", id_, each) for id_, each in zip(ids, texts, strict=True)]
                case "remember":
                    node = await memory.remember(text(), about=["Anna"])
                    recorder.ops.append(("ack", node.id, node.content))
                case "correct":
                    node = await memory.remember(text())
                    recorder.ops.append(("ack", node.id, node.content))
                    fresh = await memory.correct(node.id, text())
                    recorder.ops.append(("ack", fresh.id, fresh.content))
                case "erase" if dice.random() < 0.5:
                    gone = await memory.add(text())
                    await memory.erase(id=gone)
                    recorder.ops.append(("gone", gone))
                case "gc" if place.endswith("/"):
                    await memory.gc()

    for _ in range(3):
        async with Memory.open(place, embedder=None, settings=Settings(durability=durability)) as memory:  # type: ignore[arg-type]
            await asyncio.gather(*(caller(memory) for _ in range(3)))


def record(place: str, *, seed: int, durability: str) -> list[Op]:
    recorder = Recorder(Path(place).parent)
    recorder.install()
    vfs = RecordingVFS(recorder)
    try:
        asyncio.run(work(place, recorder, seed=seed, durability=durability))
    finally:
        vfs.unregister()
    return recorder.ops


# the cut


@dataclass(slots=True)
class Inode:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, Op]] = field(default_factory=list)
    """Writes that are not synced, with their place in the recording."""

    def sync(self, before: int) -> None:
        """Make the writes durable that precede this place in the recording."""
        for _, op in (each for each in self.pending if each[0] < before):
            apply(self.durable, op)
        self.pending = [each for each in self.pending if each[0] >= before]


def disk_after(ops: list[Op], dice: random.Random) -> dict[str, bytes]:
    """Return the disk content if the power fails after these operations."""
    live: dict[str, Inode] = {}
    names: dict[str, Inode] = {}
    unsynced_names: list[tuple[int, Op]] = []
    for number, op in enumerate(ops):
        match op:
            case ("create", path):
                live[path] = Inode()
                unsynced_names.append((number, ("link", path, live[path])))
            case ("write" | "truncate", path, *_):
                live[path].pending.append((number, op))
            case ("sync", path, before):
                if path in live:
                    live[path].sync(before)
            case ("rename", source, target):
                live[target] = live.pop(source)
                unsynced_names += [(number, ("link", target, live[target])), (number, ("unlink", source))]
            case ("unlink", path):
                live.pop(path, None)
                unsynced_names.append((number, ("unlink", path)))
            case ("syncdir", path, before):
                folder = path.rstrip("/")
                is_synced = [at < before and os.path.dirname(each[1]) == folder for at, each in unsynced_names]
                relink(names, [each for (_, each), synced in zip(unsynced_names, is_synced, strict=True) if synced])
                unsynced_names = [each for each, synced in zip(unsynced_names, is_synced, strict=True) if not synced]
    relink(names, [each for _, each in unsynced_names[: dice.randint(0, len(unsynced_names))]])
    luck = dice.choice((0.0, 0.5, 0.5, 0.5, 1.0))
    found = {}
    for path, inode in names.items():
        content = bytearray(inode.durable)
        for _, op in inode.pending:
            survive(content, op, luck, dice)
        found[path] = bytes(content)
    return found


def relink(names: dict[str, Inode], ops: list[Op]) -> None:
    for op in ops:
        if op[0] == "link":
            names[op[1]] = op[2]
        else:
            names.pop(op[1], None)


def apply(content: bytearray, op: Op) -> None:
    if op[0] == "truncate":
        del content[op[2] :]
        content.extend(bytes(op[2] - len(content)))
        return
    _, _, offset, data = op
    content.extend(bytes(max(0, offset + len(data) - len(content))))
    content[offset : offset + len(data)] = data


def survive(content: bytearray, op: Op, luck: float, dice: random.Random) -> None:
    """Apply an unsynced write: all of it, some of its sectors, or nothing."""
    kind = dice.random()
    if kind < luck * 0.6 or (kind < luck and op[0] == "truncate"):
        apply(content, op)
    elif kind < luck:
        _, path, offset, data = op
        start = offset
        while start < offset + len(data):
            end = min((start // SECTOR + 1) * SECTOR, offset + len(data))
            if dice.random() < 0.5:
                apply(content, ("write", path, start, data[start - offset : end - offset]))
            start = end


# afterwards


def problems(place: str, ops: list[Op], dice: random.Random) -> tuple[list[str], list[str]]:
    """Return what is lost and damaged after a cut behind these operations."""
    root = Path(place).parent
    with tempfile.TemporaryDirectory(prefix="ricordo-power-") as folder:
        for path, content in disk_after(ops, dice).items():
            target = Path(folder) / Path(path).relative_to(root)
            target.parent.mkdir(exist_ok=True, mode=0o700)
            target.write_bytes(content)
            target.chmod(0o600)
        new_place = f"{folder}/{Path(place).name}{'/' if place.endswith('/') else ''}"
        acknowledged = {op[1]: op[2] for op in ops if op[0] == "ack"}
        gone = {op[1] for op in ops if op[0] == "gone"}
        try:
            return asyncio.run(looked(new_place, acknowledged, gone))
        except RicordoError as error:
            return [], [f"it does not open: {error}"]


async def looked(place: str, acknowledged: dict[str, str], gone: set[str]) -> tuple[list[str], list[str]]:
    store = await asyncio.to_thread(open_store, place, durability="process")
    try:
        stored = await store.read(lambda tx: dict(tx.connection.execute("SELECT id, content FROM nodes").fetchall()))
        lost = [
            f"{id_} {'holds another text' if id_ in stored else 'is not there'}"
            for id_, text in acknowledged.items()
            if stored.get(id_) != text
        ]
        report = await store.doctor()
        off = [f"{each.check}: {each.detail}" for each in report.findings if not each.ok]
        return lost, off + [f"{id_} is erased and there" for id_ in gone & stored.keys()]
    finally:
        await asyncio.to_thread(store.close)


@dataclass(slots=True)
class Tally:
    cuts: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


def recorded(place: str, *, seed: int, durability: str) -> list[Op]:
    """Return a recording made by another process."""
    command = [sys.executable, "-m", "tests.crash.power", "--record", place, "--seed", str(seed)]
    child = subprocess.run(
        [*command, "--durability", durability], cwd=ROOT, capture_output=True, timeout=300, check=False
    )
    if child.returncode:
        raise RuntimeError(child.stderr.decode())
    ops: list[Op] = pickle.loads(child.stdout)
    return ops


def many(cuts: int, *, seed: int, kind: str, durability: str = "disk", until: float = float("inf")) -> Tally:
    """Perform that many cuts, within the time limit, with progress on standard error."""
    tally, started = Tally(), time.monotonic()
    while tally.cuts < cuts and time.monotonic() < until:
        seed += 1
        dice = random.Random(seed)
        with tempfile.TemporaryDirectory(prefix="ricordo-power-") as folder:
            place = f"{folder}/s/{'me/' if kind == 'folder' else 'me.db'}"
            Path(folder, "s").mkdir(mode=0o700)
            ops = recorded(place, seed=seed, durability=durability)
        unsynced = [at for at, op in enumerate(ops, 1) if op[0] == "write" and op[1].endswith(".jsonl")]
        for _ in range(min(CUTS_PER_RECORDING, cuts - tally.cuts)):
            # Plain files are synced right after each write: a random place seldom lies in between.
            end = dice.choice(unsynced) if unsynced and dice.random() < 0.5 else dice.randint(0, len(ops))
            lost, damaged = problems(place, ops[:end], dice)
            tally.cuts += 1
            tally.acknowledged += sum(op[0] == "ack" for op in ops[:end])
            tally.lost += [f"seed {seed}, cut {end}: {each}" for each in lost[:1]]
            tally.damaged += [f"seed {seed}, cut {end}: {each}" for each in damaged[:1]]
        sys.stderr.write(
            f"\r{kind}: {tally.cuts}/{cuts} cuts, {len(tally.lost)} with losses, "
            f"{len(tally.damaged)} damaged, {time.monotonic() - started:.0f} s "
        )
        sys.stderr.flush()
    sys.stderr.write("\n")
    return tally


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--cuts", type=int, default=3000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--record", help="for the process that is recorded")
    options.add_argument("--durability", default="disk")
    options.add_argument("--minutes", type=float, default=60, help="for the first kind, at most; for the others less")
    given = options.parse_args()
    if given.record:
        ops = record(given.record, seed=given.seed, durability=given.durability)
        sys.stdout.buffer.write(pickle.dumps(ops))
        return 0
    result: dict[str, Any] = {}
    wrong = 0
    for name, kind, durability, cuts in (
        ("file", "file", "disk", given.cuts),
        ("folder", "folder", "disk", given.cuts // 3),
        ("file, durability process", "file", "process", given.cuts // 20),
    ):
        until = time.monotonic() + given.minutes * 60 * cuts / given.cuts
        tally = many(cuts, seed=given.seed * 100_000, kind=kind, durability=durability, until=until)
        result[name] = {
            "cuts": tally.cuts,
            "acknowledged_before_them": tally.acknowledged,
            "with_losses": len(tally.lost),
            "damaged": len(tally.damaged),
        }
        if durability == "disk":
            wrong += len(tally.lost) + len(tally.damaged)
            result[name]["such_as"] = [*tally.lost[:5], *tally.damaged[:5]]
        told = {**result, "seed": given.seed, "machine": machine()}
        RESULT.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    with suppress(BrokenPipeError):
        sys.stdout.write(RESULT.read_text(encoding="utf-8"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
