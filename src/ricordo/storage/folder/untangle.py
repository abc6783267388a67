"""Take apart two histories that were merged line by line, as git does it with two clones of a folder.

Both clones have counted on from the same commit, so numbers of commits and keys of rows occur twice. The first history
stays as it is. What the second one changed is merged into it row by row, as lines without a commit, which are adopted
like lines written by hand. The commits, former versions and runs of the second one are set aside in files beside.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, product
from pathlib import Path

from ricordo.storage.database.hashes import bare, digest, former_hash
from ricordo.storage.folder.files import Disk
from ricordo.storage.folder.row_merge import merged_rows
from ricordo.storage.jsonl.layout import COMMITS, FILES, HISTORY, ROW_FILES, RUNS, STORE, VECTORS
from ricordo.storage.jsonl.lines import Line, LineError, lines_of, parsed
from ricordo.text.sentences import plural

_log = logging.getLogger("ricordo.storage")

_MARKERS = (b"<<<<<<< ", b"||||||| ", b"=======", b">>>>>>> ")
_BESIDE = frozenset((COMMITS, HISTORY, RUNS))
_TRIED_MOST = 20_000


@dataclass(frozen=True, slots=True)
class _Read:
    """A line of a file: as it is, and parsed; {} if it is unreadable."""

    raw: bytes
    line: Line

    @property
    def commit(self) -> int:
        found = self.line.get("commit")
        return found if isinstance(found, int) else 0


def untangle(folder: Path, disk: Disk) -> int:
    """Rewrite the files of a folder that hold two histories. Return how many commits the second one had.

    The file of commits is written last, so that this can be repeated if the process is killed.
    """
    if not _may_be_tangled(folder):
        return 0
    files = {name: list(_lines(folder / name)) for name in FILES}
    first, second = _histories(files[COMMITS])
    if not second:
        _rewrite(folder, disk, files)  # without marks
        return 0
    start = min(each.commit for each in second)
    tails = {name: [each for each in files[name] if each.commit >= start] for name in (*ROW_FILES, HISTORY)}
    splits = _splits(tails, {each.commit: each.line for each in first if each.commit >= start})
    others = {name: tail[splits[name] :] for name, tail in tails.items()} | {COMMITS: second}
    for name, gone in others.items():
        leaving = {*map(id, gone)}
        files[name] = [each for each in files[name] if id(each) not in leaving]
    files[STORE] = list(_without_suppressions(files[STORE], first, second))
    rows, other_rows = _rows_of(files), _rows_of(others)
    for name, line in merged_rows(rows, other_rows, start=start):
        files[name].append(_Read(json.dumps(line, ensure_ascii=False).encode(), {}))
    for name, gone in others.items():
        if gone and name in _BESIDE:  # never rows that live on: erasing does not reach there
            disk.set_aside(folder, name, b"".join(each.raw + b"\n" for each in gone))
    _rewrite(folder, disk, files)
    _log.warning(
        "%s: two histories were merged, as git does it; what the second one (%s) changed was taken over by hand",
        folder,
        plural(len(second), "commit"),
    )
    return len(second)


def _may_be_tangled(folder: Path) -> bool:
    """Return whether a commit has two versions, or a file holds the marks of an unresolved conflict."""
    last = 0
    for each in _lines(folder / COMMITS):
        if each.line and each.commit <= last:
            return True
        last = max(last, each.commit)
    return any(raw.startswith(_MARKERS) for name in FILES if name != VECTORS for _, raw in lines_of(folder / name))


def _is_forked(commits: Sequence[_Read]) -> bool:
    """Return whether two different commits have the same number. The same line may stand there twice."""
    hashes: dict[int, object] = {}
    return any(each.line.get("hash") != hashes.setdefault(each.commit, each.line.get("hash")) for each in commits)


def _lines(path: Path) -> Iterator[_Read]:
    """Yield the lines of a file without the marks of a conflict."""
    for _, raw in lines_of(path):
        if not raw.startswith(_MARKERS):
            try:
                yield _Read(raw, parsed(raw, json.loads))
            except LineError:
                yield _Read(raw, {})


def _histories(commits: Sequence[_Read]) -> tuple[list[_Read], list[_Read]]:
    """Return the commits up to the first number that does not rise, and those of another history behind them."""
    if not _is_forked(commits):
        return list(commits), []
    first, last = list[_Read](), 0
    for each in commits:
        if each.line and each.commit <= last:
            break
        first.append(each)
        last = max(last, each.commit)
    known = {each.raw for each in first}
    return first, [each for each in commits[len(first) :] if each.raw not in known]


def _splits(tails: Mapping[str, Sequence[_Read]], commits: Mapping[int, Line]) -> dict[str, int]:
    """Return how many lines of the end of each file belong to the first history, so that the digests of its commits
    hold; without such numbers, as many as can.
    """
    possible = {name: _possible_splits(tail) for name, tail in tails.items()}
    for tried in islice(product(*possible.values()), _TRIED_MOST):
        splits = dict(zip(possible, tried, strict=True))
        if all(_holds(seq, line, tails, splits) for seq, line in commits.items()):
            return splits
    return {name: max(places) for name, places in possible.items()}


def _possible_splits(tail: Sequence[_Read]) -> list[int]:
    """Return the places at which a second history may begin: both parts rise, and have no row twice in a commit."""
    return [place for place in range(len(tail) + 1) if _is_one(tail[:place]) and _is_one(tail[place:])] or [len(tail)]


def _is_one(lines: Sequence[_Read]) -> bool:
    rows = [(each.commit, each.line.get("table") or each.line.get("kind"), each.line.get("row")) for each in lines]
    seqs = [each.commit for each in lines]
    return seqs == sorted(seqs) and len(set(rows)) == len(rows)


def _holds(seq: int, commit: Line, tails: Mapping[str, Sequence[_Read]], splits: Mapping[str, int]) -> bool:
    hashes = list[bytes]()
    for name, tail in tails.items():
        for each in tail[: splits[name]]:
            if each.commit == seq:
                hashes += _hashes(name, each.line)
    return digest(hashes).hex() == commit.get("digest")


def _hashes(name: str, line: Line) -> Iterable[bytes]:
    try:
        if name == HISTORY:
            return [former_hash(line["table"], str(line["row"]), json.dumps(line["before"]))]
        return [] if line.get("removed") else [bare(bytes.fromhex(line["seal"]))]
    except (KeyError, TypeError, ValueError):
        return []


def _rows_of(files: Mapping[str, Sequence[_Read]]) -> list[tuple[str, Line]]:
    return [(name, each.line) for name in ROW_FILES for each in files.get(name, ()) if each.line]


def _without_suppressions(lines: Sequence[_Read], first: Sequence[_Read], second: Sequence[_Read]) -> Iterator[_Read]:
    """Yield the lines of the store without the second history's suppressions of forgotten text: they have the keys of
    other rows here. Adoption makes them again for the memories that it forgot.
    """
    ours, theirs = ({each.commit: each.line.get("at") for each in commits} for commits in (first, second))
    for commit, group in groupby(lines, key=lambda each: each.commit):
        found = list(group)
        times = {each.line.get("at") for each in found if each.line.get("kind") == "withheld"}
        is_theirs = theirs.get(commit) in times and ours.get(commit) not in times
        yield from (each for each in found if not (is_theirs and _is_suppression(each.line)))


def _is_suppression(line: Line) -> bool:
    return str(line.get("kind", "")).startswith("withheld") or line.get("name") == "fingerprint_key"


def _rewrite(folder: Path, disk: Disk, files: Mapping[str, Sequence[_Read]]) -> None:
    """Write files that have changed. A last line without a newline keeps none: it counts as not written."""
    for name in FILES:
        path = folder / name
        if path.exists():
            before = path.read_bytes()
            data = b"".join(each.raw + b"\n" for each in files[name])
            data = data if before.endswith(b"\n") else data.removesuffix(b"\n")
            if data != before:
                disk.replace(path, iter([data]))
