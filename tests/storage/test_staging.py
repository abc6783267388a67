"""Folders for what must appear whole: each process sweeps those of killed ones, and none of those in use."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ricordo.sync
from ricordo.storage.staging import staging_folder, temporary_folder


def test_no_folder_is_swept_between_its_creation_and_its_lock(tmp_path: Path) -> None:
    def use(number: int) -> bool:
        with staging_folder(tmp_path / "store") as folder:
            (folder / "part").write_text(str(number))
            return (folder / "part").read_text() == str(number)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(use, range(400)))
    assert list(tmp_path.iterdir()) == []


def test_an_erasure_names_copies_of_its_own_store_only(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    with (
        temporary_folder() as nobodys,
        temporary_folder(tmp_path / "other.db") as other,
        temporary_folder(store) as own,
        staging_folder(tmp_path / "other.db") as beside,
        ricordo.sync.Memory.open(store, embedder=None) as memory,
    ):
        (tmp_path / "set-aside-photos").touch()
        node = memory.remember("Ann likes tea")
        told = "; ".join(memory.erase(id=node.id, dry_run=True).out_of_reach)
    assert str(own) in told
    assert not [each for each in (nobodys, other, beside, "set-aside-photos") if str(each) in told], told
