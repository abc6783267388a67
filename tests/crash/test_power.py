"""Power cuts and bit flips. The short versions of `power.py` and `flips.py`."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from tests.crash import flips, power


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_with_durability_disk_no_power_cut_loses_or_damages_anything(kind):
    tally = power.many(15, seed=40, kind=kind)
    assert (tally.lost, tally.damaged) == ([], [])
    assert tally.acknowledged > 20


@pytest.mark.slow
def test_without_disk_durability_some_cuts_lose_data():
    assert power.many(25, seed=40, kind="file", durability="process").lost != []


def test_no_flipped_bit_goes_unnoticed():
    tally = flips.many(16, seed=4)
    assert tally.silent == []
    assert tally.outcomes["flips"] == 16


def test_a_connection_that_opens_an_emptied_log_does_not_undo_its_syncs(tmp_path):
    """A reader that connects while the log is empty creates no file; the simulation once took it for a new one."""
    place = str(tmp_path / "some.db")
    recorder = power.Recorder(tmp_path)
    vfs = power.RecordingVFS(recorder)
    try:
        with closing(apsw.Connection(place)) as writer, closing(apsw.Connection(place)) as reader:
            writer.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE said (text)").fetchall()
            writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            reader.execute("SELECT * FROM said").fetchall()
            writer.execute("INSERT INTO said VALUES ('tea')")
            recorded = list(recorder.ops)
    finally:
        vfs.unregister()
    for seed in range(20):
        disk = power.disk_after(recorded, random.Random(seed))
        for path, content in disk.items():
            Path(path.replace("some.db", f"cut{seed}.db")).write_bytes(content)
        with closing(apsw.Connection(str(tmp_path / f"cut{seed}.db"))) as after:
            assert after.execute("SELECT text FROM said").fetchall() == [("tea",)]


def test_a_sync_covers_no_write_that_began_after_it():
    ops = [
        ("create", "/f/a"),
        ("write", "/f/a", 0, b"1"),
        ("write", "/f/a", 1, b"2"),
        ("sync", "/f/a", 2),
        ("syncdir", "/f", 3),
    ]
    assert {bytes(power.disk_after(ops, random.Random(seed))["/f/a"]) for seed in range(50)} == {b"1", b"12"}
