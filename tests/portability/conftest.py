"""Fixture files of each format, and stores to import them into."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from ricordo import Memory, Scope, Settings

FILES = Path(__file__).parents[1] / "fixtures/porting"
NOW = 1_790_000_000_000  # 2026-09-21


class Still:
    """A fixed clock."""

    def now(self) -> int:
        return NOW


def database(sql: Path, folder: Path) -> Path:
    """Return the SQLite file that a script creates."""
    path = folder / f"{sql.stem}.db"
    connection = apsw.Connection(str(path))
    connection.execute(sql.read_text("utf-8"))
    connection.close()
    return path


def zipped(source: Path, folder: Path) -> Path:
    """Return a folder as a ZIP file, like an export."""
    path = folder / f"{source.name}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(source.iterdir()):
            archive.write(file, file.name)
    return path


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Path]:
    """Return a fixture by name: "ash", "by_kind.sql" (as a database), "chatgpt.zip" (packed)."""

    def found(name: str) -> Path:
        if name.endswith(".sql"):
            return database(FILES / name, tmp_path)
        if name.endswith(".zip"):
            return zipped(FILES / name.removesuffix(".zip"), tmp_path)
        return FILES / name

    return found


def opened(path: Path, *, owner: str = "me", chat: str | None = None, embedder: Any = None) -> Memory:
    settings = Settings(durability="process", time_zone="Europe/Berlin")
    return Memory.open(path, embedder=embedder, clock=Still(), settings=settings, scope=Scope(owner=owner, chat=chat))


async def told(memory: Memory, *, archived: bool = False) -> list[tuple[Any, ...]]:
    """Return the content of a memory in comparable form."""
    page = await memory.list(type="any", archived=archived, limit=1_000)
    return sorted(
        (
            node.content,
            node.type,
            node.category,
            node.role,
            node.about,
            node.tags,
            node.event_time.isoformat(),
            node.confidence,
            node.closed_reason,
        )
        for node in page.nodes
    )
