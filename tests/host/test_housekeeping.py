"""A server runs nightly upkeep only if the settings ask for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ricordo import Memory, Scope, Settings
from ricordo.host.journal import Journal, journal_path
from ricordo.interfaces.call import Dispatcher, StoreConfig, nightly_maintenance


class _Past:
    def now(self) -> int:
        return 1_546_300_800_000  # 2019-01-01


async def _store(path: Path) -> None:
    async with Memory.open(path, embedder=None, clock=_Past()) as memory:
        for owner in ("me", "bob"):
            await memory.scoped(Scope(owner=owner)).remember("tea at five", expires="2020-01-01")


async def _live(path: Path) -> int:
    async with Memory.open(path, embedder=None) as memory:
        return sum([len((await memory.scoped(Scope(owner=each)).archive()).nodes) for each in ("me", "bob")])


async def _served(path: Path, settings: Settings) -> None:
    config = StoreConfig(location=str(path), embedder=None, model=None, settings=settings)
    dispatcher = Dispatcher(config.open())
    async with nightly_maintenance(config, dispatcher):
        for _ in range(100):
            await asyncio.sleep(0.05)
            if not settings.nightly or (path.with_name("me.db.host").exists() and await _live(path) == 2):
                break
    await dispatcher.close()


async def test_nightly_upkeep_covers_all_owners_only_with_the_setting(tmp_path: Path) -> None:
    path = tmp_path / "me.db"
    await _store(path)
    await _served(path, Settings(durability="process"))
    assert not (tmp_path / "me.db.host").exists()
    always = Settings(durability="process", nightly=True, maintain_at="* * * * *")
    await _served(path, always)  # the first time it reads its schedules
    journal = await Journal.open(journal_path(path))
    await journal.change(lambda rows: rows._connection.execute("UPDATE jobs SET last_due_at = last_due_at - 3600000"))
    await journal.close()
    await _served(path, always)
    assert await _live(path) == 2
