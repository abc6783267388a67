"""Folders for what must appear whole: each process sweeps those of killed ones, and none of those in use."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ricordo.storage.staging import staging_folder


def test_no_folder_is_swept_between_its_creation_and_its_lock(tmp_path: Path) -> None:
    def use(number: int) -> bool:
        with staging_folder(tmp_path / "store") as folder:
            (folder / "part").write_text(str(number))
            return (folder / "part").read_text() == str(number)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(use, range(400)))
    assert list(tmp_path.iterdir()) == []
