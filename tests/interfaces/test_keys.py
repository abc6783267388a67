"""A store with a key at the command line and in servers: they take the key from the settings, and do not show it."""

from __future__ import annotations

import pytest
from tests.interfaces.conftest import Cli

from ricordo import DeniedError, Settings
from ricordo.interfaces.call import StoreConfig
from ricordo.storage.key import has_cipher, is_encrypted

pytestmark = pytest.mark.skipif(not has_cipher(), reason="another package brought its own apsw")
KEY, OTHER = "1a" * 32, "2b" * 32


def test_a_store_is_encrypted_used_and_decrypted(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("remember", "the user likes tea").status == 0
    monkeypatch.setenv("NEW_KEY", KEY)
    done = cli("--json", "rekey", "--to", "env:NEW_KEY").json
    assert done["is_encrypted"] is True
    assert is_encrypted(cli.store)
    missing = cli("search", "tea")
    assert missing.status == DeniedError.exit_status
    assert "no key was given" in missing.err
    assert "RICORDO_KEY" in missing.err
    monkeypatch.setenv("RICORDO_KEY", KEY)
    assert "likes tea" in cli("search", "tea").out
    assert cli("backup", str(cli.folder / "copy.db"), "--verify").status == 0
    assert cli("verify-backup", str(cli.folder / "copy.db")).status == 0
    assert "Decrypted" in cli("rekey", "--to", "none").out
    assert "is not encrypted" in cli("search", "tea").err
    monkeypatch.delenv("RICORDO_KEY")
    assert "likes tea" in cli("search", "tea").out


def test_the_key_may_be_typed_and_is_then_told_where_to_put_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("remember", "the user likes tea")
    done = cli.process("rekey", "--to", "-", stdin=KEY.encode() + b"\n")
    assert "ricordo config set key" in done.out
    assert KEY not in done.out + done.err
    monkeypatch.setenv("RICORDO_KEY", KEY)
    assert "likes tea" in cli("search", "tea").out


def test_a_wrong_key_repairs_and_moves_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_KEY", KEY)
    cli("remember", "the user likes tea")
    before = cli.store.read_bytes()
    for key in (OTHER, ""):
        monkeypatch.setenv("RICORDO_KEY", key)
        assert cli("doctor", "--fix").status == DeniedError.exit_status
        assert cli("rekey", "--to", KEY).status in (0, DeniedError.exit_status)
    assert cli.store.read_bytes() == before
    assert [path.name for path in cli.folder.glob("memory.db*")] == ["memory.db"]


def test_a_damaged_store_with_a_key_is_salvaged_with_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_KEY", KEY)
    cli("remember", "the user likes tea")
    data = bytearray(cli.store.read_bytes())
    data[3 * 4096 + 100] ^= 1
    cli.store.write_bytes(data)
    assert "1 memory kept" in cli("doctor", "--fix").out
    assert "likes tea" in cli("search", "tea").out
    assert not any(b"likes tea" in path.read_bytes() for path in cli.folder.iterdir() if path.is_file())


def test_settings_show_where_a_key_is_and_not_the_key(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_KEY", "correct horse")
    shown = cli("--json", "config", "show", "key").out + cli("config").out
    assert "correct horse" not in shown
    assert "(not shown)" in shown
    assert "correct horse" not in cli("config", "set", "key", "correct horse").out
    monkeypatch.setenv("RICORDO_KEY", "file:~/key")
    assert "file:~/key" in cli("config", "show", "key").out


async def test_servers_take_the_key_from_the_settings(cli: Cli) -> None:
    config = StoreConfig(location=str(cli.store), embedder=None, model=None, settings=Settings(key=KEY))
    memory = await config.open()
    try:
        await memory.remember("the user likes tea")
    finally:
        await memory.close()
    assert is_encrypted(cli.store)
    with pytest.raises(DeniedError, match="no key was given"):
        await StoreConfig(location=str(cli.store), embedder=None, model=None, settings=Settings()).open()
