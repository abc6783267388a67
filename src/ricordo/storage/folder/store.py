"""A store in a folder: plain text files are the truth, and a database is their index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import apsw

from ricordo.errors import InvalidError, RicordoError, StoreError
from ricordo.model import BackupFile, Report
from ricordo.ports import Progress
from ricordo.storage.database.maintenance import DERIVED
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.store import DatabaseStore, Options
from ricordo.storage.folder.files import ASIDE
from ricordo.storage.folder.index import FolderIndex
from ricordo.storage.jsonl.layout import FILES, INDEX, NOTES, PEOPLE
from ricordo.storage.key import KEY_FILE

T = TypeVar("T")

_DAMAGED = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError)

_REBUILT = (
    frozenset(
        (
            "file",
            "references",
            "row seals",
            "history",
            "commit chain",
            "commit rows",
            "settings and vectors",
            "erasures",
        )
    )
    | DERIVED
)
"""The checks of `doctor` whose damage a rebuilt index repairs, if the files are undamaged."""


class FolderStore(DatabaseStore):
    """A store whose truth is the plain files of a folder."""

    has_plain_files = True
    reads_at_once = False
    erases_in_one_commit = True  # each erasing commit rewrites the files

    index: FolderIndex

    @classmethod
    def open(cls, folder: Path, options: Options, *, progress: Progress | None = None) -> FolderStore:
        """Open the store in an existing folder, and bring its index up to date.

        Args:
            progress: called with (lines so far, lines in all) while the index is rebuilt.

        Raises:
            InvalidError: the folder contains other files, or a file of the memory is a link.
            OSError, StoreError: the files cannot be read or written.
        """
        _check_is_ours(folder)
        index = FolderIndex(folder, options, progress=progress)
        connection = index.open()
        _write_gitignore(folder)
        own = replace(options, key=index.key)
        store = cls(index.path, connection, options=own, hook=index.journal, release=index.close)
        store.index, store.copy_key = index, options.key
        return store

    async def answered(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        """Query the index. If another program has damaged it, rebuild it from the files and query again."""
        if self.index.journal.is_behind:
            with suppress(RicordoError):  # otherwise the next write catches up
                await self.derive(lambda _: None)
        try:
            return await super().answered(ask)
        except StoreError as error:
            if not isinstance(error.__cause__, _DAMAGED):
                raise
            self.index.journal.distrust()
            await self.derive(lambda _: None)
            return await super().answered(ask)

    async def derive(self, work: Callable[[DatabaseSnapshot], T]) -> T:
        """Run upkeep in a write. While the process that held the folder at opening still holds it, fail at once: a
        search must not wait to store what it has measured, nor closing to store counts.
        """
        if self.index.journal.is_behind:
            self.index.journal.lock.check_free()
        return await super().derive(work)

    async def doctor(self) -> Report:
        """Look for damage in the index and in the files. Changes nothing."""
        report = await super().doctor()
        files = await self.read(lambda _: self.index.findings())
        return Report(findings=(*report.findings, *files))

    async def mend(self, report: Report) -> None:
        """Restrict files to their owner if others can read them, and rebuild a damaged index."""
        failed = {finding.check for finding in report.findings if not finding.ok}
        if {"permissions", "who can read"} & failed:
            self.path.chmod(0o600)
            self.index.make_private()
        if failed & _REBUILT:
            await self.rebuild()
        if "plain files" in failed:
            await self.derive(self.index.set_unused_aside)

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Rebuild the index from the files. Return how many lines were read."""
        self.check_process()
        built = await asyncio.to_thread(self.index.rebuild, progress)
        return built.lines

    async def compact(self) -> int:
        """Rewrite files with many outdated lines. Return how many lines were dropped."""
        return await self.derive(self.index.compact)

    def copy_files(self, target: Path, look: Callable[[DatabaseSnapshot], T]) -> tuple[T, dict[str, BackupFile]]:
        return self.index.copy_files(target, look)


_GITIGNORE = """# What ricordo can make again, and what belongs to this machine.
index.db*
.lock
*.partial
*.new
set-aside-*
notes/.ricordo.jsonl
notes/.ricordo.lock
notes/.new-*
notes/.aside-*
"""


def _write_gitignore(folder: Path) -> None:
    """Exclude the index and the lock from git, unless the folder already has a .gitignore."""
    with suppress(OSError):
        path = folder / ".gitignore"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(_GITIGNORE, encoding="utf-8")


def _is_set_aside(name: str) -> bool:
    """Return whether a file is hidden, or was set aside because it was damaged."""
    return name.startswith((".", "damaged-", ASIDE)) or ".damaged-" in name


def _check_is_ours(folder: Path) -> None:
    """Raise InvalidError if the folder contains only files of other programs, or a file of the memory is a link."""
    linked = sorted(path for path in folder.iterdir() if path.name in {*FILES, PEOPLE} and path.is_symlink())
    if linked:  # a rewrite would replace the link, and leave erased text in its target
        raise InvalidError(f"location: {linked[0]} is a link", hint="link the whole folder, not single files of it")
    names = {path.name for path in folder.iterdir() if not _is_set_aside(path.name)}
    has_notes = names <= {NOTES} or any((folder / NOTES).glob(".ricordo.*"))  # a vault may have a folder of that name
    if not has_notes and not names & {*FILES, PEOPLE, INDEX, KEY_FILE}:
        raise InvalidError(
            f"location: {folder} contains files of other programs", hint="give an empty folder, or the path of a file"
        )
