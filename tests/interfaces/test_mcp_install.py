"""`ricordo mcp install`: the client's settings are shown, then written; other entries stay."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from tests.interfaces.conftest import Cli, clean_environment

from ricordo import ConflictError, InvalidError
from ricordo.interfaces.cli.clients import clients, start_entry, with_server, write_edit

HOME = Path("/home/ann")
NAMES = tuple(clients(HOME, {}))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/.config"))
    return tmp_path / "home"


def _entry(file: Path, client: str) -> dict[str, Any]:
    """Return our entry as the client reads it."""
    known = clients(HOME, {})[client]
    text = file.read_text("utf-8")
    whole = tomllib.loads(text) if known.format == "toml" else json.loads(text)
    return dict(whole[known.member]["ricordo"])


@pytest.mark.parametrize("client", NAMES)
def test_the_written_settings_start_a_working_server(cli: Cli, home: Path, client: str) -> None:
    assert cli("mcp", "install", "--client", client, "--yes", "--owner", "ann").status == 0
    file = next(
        each.file for each in clients(home, {"XDG_CONFIG_HOME": str(home / ".config")}).values() if each.name == client
    )
    entry = _entry(file, client)
    assert entry["args"][-4:] == ["--store", str(cli.store), "--owner", "ann"]
    assert Path(entry["command"]).is_absolute()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    if client == NAMES[0]:
        environment = clean_environment() | entry.get("env", {})
        program = StdioServerParameters(command=entry["command"], args=entry["args"], env=environment)
        assert len(asyncio.run(_tools(program))) == 10  # the core profile, with `resolve_review`


def test_the_written_settings_bind_the_agent_as_asked(cli: Cli, home: Path) -> None:
    assert (
        cli("mcp", "install", "--client", "cursor", "--yes", "--propose", "--project", "--profile", "full").status == 0
    )
    entry = _entry(home / ".cursor/mcp.json", "cursor")
    assert entry["args"][-2:] == ["--propose", "--project"]
    program = StdioServerParameters(command=entry["command"], args=entry["args"], env=clean_environment())
    assert asyncio.run(_tools(program)).isdisjoint({"undo_change", "add_message"})


async def _tools(program: StdioServerParameters) -> set[str]:
    async with Client(stdio_client(program)) as connected:
        return {each.name for each in (await connected.list_tools()).tools}


@pytest.mark.parametrize("client", [name for name in NAMES if name != "codex"])
def test_other_servers_and_settings_stay_and_a_copy_is_kept(cli: Cli, tmp_path: Path, client: str) -> None:
    member = clients(HOME, {})[client].member
    file = tmp_path / "client.json"
    other = {"theme": "dark", member: {"other": {"command": "x", "args": ["é"]}}}
    file.write_text(json.dumps(other), encoding="utf-8")
    file.chmod(0o640)
    arguments = ("mcp", "install", "--client", client, "--config-file", str(file))
    shown = cli(*arguments, "--dry-run")
    assert (shown.status, json.loads(file.read_text("utf-8"))) == (0, other)
    assert "Nothing was written" in shown.out
    assert '"ricordo"' in shown.out and shown.err == ""
    written = cli(*arguments, "--yes", "--json")
    assert json.loads(file.read_text("utf-8")) == {
        **other,
        member: {**other[member], "ricordo": _entry(file, client)},  # type: ignore[dict-item]
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert json.loads(Path(written.json["backup"]).read_text("utf-8")) == other
    again = cli(*arguments, "--yes")
    assert "is already configured" in again.out
    assert len(list(tmp_path.glob("client.json*"))) == 2


def test_toml_is_added_to_and_never_rewritten(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y"', encoding="utf-8")
    arguments = ("mcp", "install", "--client", "codex", "--config-file", str(file), "--yes")
    assert cli(*arguments).status == 0
    text = file.read_text("utf-8")
    assert text.startswith('# mine\nmodel = "x"')
    assert set(tomllib.loads(text)["mcp_servers"]) == {"other", "ricordo"}
    assert "already" in cli(*arguments).out
    assert cli(*arguments, "--profile", "full").status == ConflictError.exit_status


def test_comments_and_the_form_of_a_settings_file_stay(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{ // mine\n\t"theme": "dark", /* and\n this */\n}\n', encoding="utf-8")
    arguments = ("mcp", "install", "--client", "cursor", "--config-file", str(file), "--yes")
    assert cli(*arguments).status == 0
    text = file.read_text("utf-8")
    assert text.startswith('{ // mine\n\t"theme": "dark"')
    assert "/* and\n this */" in text
    assert '\t"mcpServers": {' in text
    assert "already" in cli(*arguments).out


@pytest.mark.parametrize("text", ["{ // mine", "[]", "{", '{"mcpServers": []}'])
def test_a_settings_file_that_cannot_be_preserved_is_not_changed(cli: Cli, tmp_path: Path, text: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text, encoding="utf-8")
    done = cli("mcp", "install", "--client", "cursor", "--config-file", str(file), "--yes")
    assert done.status == InvalidError.exit_status
    assert "by hand" in done.err
    assert file.read_text("utf-8") == text


def test_nothing_is_written_without_consent(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    done = cli.process("mcp", "install", "--client", "cursor", "--config-file", str(file))
    assert done.status == InvalidError.exit_status
    assert "--yes" in done.err
    assert not file.exists()
    assert cli("mcp", "install").status == InvalidError.exit_status


def test_a_file_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    client = clients(tmp_path, {})["cursor"]
    entry = start_entry("/x.db", owner="me", chat=None, profile="core", embedder=None)
    edit = with_server(client, entry, name="ricordo")
    client.file.parent.mkdir(parents=True)
    client.file.write_text("{}", encoding="utf-8")
    with pytest.raises(ConflictError, match="another program"):
        write_edit(edit, stamp="now")


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("darwin", "Library/Application Support/Claude"),
        ("linux", ".config/Claude"),
        ("win32", "AppData/Roaming/Claude"),
    ],
)
def test_each_system_has_its_own_settings_path(platform: str, folder: str) -> None:
    assert clients(HOME, {}, platform)["claude-desktop"].file.parent == HOME / folder


def test_the_configured_command_is_this_program() -> None:
    entry = start_entry("/x.db", owner="me", chat="team", profile="full", embedder="none")
    assert Path(entry["command"]).parent == Path(sys.executable).parent
    assert entry["args"][-6:] == ["--store", "/x.db", "--chat", "team", "--profile", "full"]
    assert entry["env"] == {"RICORDO_EMBEDDER": "none"}
