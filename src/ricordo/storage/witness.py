"""A witness of a store: a file kept elsewhere with the hashes of its newest commits.

Anyone who can write to a store can rewrite its chain of commits, or replace the store with an older copy, and the store
cannot show that. Each line of the witness is a commit that the store had: its number, its hash and the time it was
noted.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ricordo.clock import from_ms
from ricordo.model import Finding
from ricordo.storage.database.snapshot import database_of
from ricordo.storage.protocol import Snapshot
from ricordo.text.sentences import plural

_CHECK = "witness"


class Noted(NamedTuple):
    """A commit that the store had: its number, its hash in hexadecimal digits, and when it was noted (ISO 8601)."""

    seq: int
    hash: str
    at: str


def noted(path: Path) -> list[Noted]:
    """Read a witness; [] if there is none yet. An incomplete line is ignored. Raises OSError."""
    if not path.exists():
        return []
    found = (line.split() for line in path.read_text(encoding="ascii", errors="replace").splitlines())
    return [Noted(int(line[0]), line[1], line[2]) for line in found if len(line) == 3 and line[0].isdigit()]


def note(snapshot: Snapshot, path: Path, *, now: int) -> None:
    """Append the newest commit of a store, unless it is the last one noted. Raises OSError.

    Args:
        now: Unix milliseconds, UTC.
    """
    last = database_of(snapshot).rows("commit_last")
    if not last:
        return
    seq, digest = int(last[0][0]), bytes(last[0][1]).hex()
    known = noted(path)
    if known and known[-1][:2] == (seq, digest):
        return
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, f"{seq} {digest} {from_ms(now).isoformat(timespec='seconds')}\n".encode("ascii"))
        os.fsync(file)
    finally:
        os.close(file)


def compare(snapshot: Snapshot, path: Path) -> Finding:
    """Compare a store with its witness: each commit noted must still be there, unchanged."""
    try:
        known = noted(path)
    except OSError as error:
        hint = "check the path and its permissions"
        return Finding(check=_CHECK, ok=False, detail=f"{path} cannot be read: {error.strerror}", remedy=hint)
    there = {int(row[0]): bytes(row[-1]).hex() for row in database_of(snapshot).rows("commits_all")}
    wrong = next((each for each in known if there.get(each.seq) != each.hash), None)
    if wrong is None:
        return Finding(check=_CHECK, ok=True, detail=f"{plural(len(known), 'noted commit')} unchanged")
    what = "was rewritten" if wrong.seq in there else "is missing: this is an older copy"
    return Finding(
        check=_CHECK,
        ok=False,
        detail=f"commit {wrong.seq}, noted on {wrong.at}, {what}",
        remedy=f"restore a newer backup; if you restored an older one on purpose, move {path} aside",
    )
