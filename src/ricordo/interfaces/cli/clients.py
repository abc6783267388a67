"""The settings files of MCP clients, and how to add our server to them."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, cast

from ricordo.errors import ConflictError, InvalidError
from ricordo.interfaces.cli.json_text import JsonText
from ricordo.interfaces.http.tokens import write_private

ClientName = Literal["claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "gemini-cli", "codex"]
Format = Literal["json", "toml"]
Entry = Mapping[str, Any]
"""How to start our server: `command`, `args` and, if needed, `env`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program that starts MCP servers.

    Attributes:
        file: The settings file.
        member: The member of the file that contains the servers.
        has_type: Whether each entry needs `"type": "stdio"`.
    """

    name: ClientName
    title: str
    file: Path
    member: str = "mcpServers"
    format: Format = "json"
    has_type: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The text of a settings file before and after a change; None means that there is no file.

    `is_ours`: the file holds nothing but what Ricordo wrote, so that no copy of it is kept.
    """

    file: Path
    before: str | None
    after: str | None
    is_ours: bool = False

    @property
    def changes(self) -> bool:
        return self.before != self.after


def clients(home: Path, environment: Mapping[str, str], platform: str = sys.platform) -> dict[str, Client]:
    """Return every supported client, by name."""
    settings = _settings_folder(home, environment, platform)
    tables = tomllib.loads((files("ricordo.interfaces.cli") / "clients.toml").read_text(encoding="utf-8"))
    folders = {"home": home, "settings": settings}
    return {
        name: Client(name=cast(ClientName, name), **{**table, "file": Path(table["file"].format(**folders))})
        for name, table in tables.items()
    }


def _settings_folder(home: Path, environment: Mapping[str, str], platform: str) -> Path:
    if platform == "win32":
        return Path(environment.get("APPDATA") or home / "AppData/Roaming")
    if platform == "darwin":
        return home / "Library/Application Support"
    return Path(environment.get("XDG_CONFIG_HOME") or home / ".config")


def start_entry(
    store: Path | str, *, owner: str, chat: str | None, profile: str, embedder: str | None
) -> dict[str, Any]:
    """Return how to start a server for a store. The paths are absolute, because clients run in another folder."""
    script = Path(sys.executable).with_name("ricordo.exe" if os.name == "nt" else "ricordo")
    command, first = (str(script), ()) if script.exists() else (sys.executable, ("-m", "ricordo"))
    args = [*first, "mcp", "--store", str(store)]
    args += ["--owner", owner] if owner != "me" else []
    args += ["--chat", chat] if chat else []
    args += ["--profile", profile] if profile != "core" else []
    env = {"env": {"RICORDO_EMBEDDER": embedder}} if embedder else {}
    return {"command": command, "args": args, **env}


def server_text(client: Client, entry: Entry, *, name: str) -> str:
    """Return our entry as text in the format of the client's file."""
    if client.format == "toml":
        return toml_entry(client.member, name, entry)
    return json.dumps({client.member: {name: _given(client, entry)}}, indent=2, ensure_ascii=False) + "\n"


def _given(client: Client, entry: Entry) -> Entry:
    return {**({"type": "stdio"} if client.has_type else {}), **entry}


def with_server(client: Client, entry: Entry, *, name: str) -> Edit:
    """Return an edit that adds our entry to the client's file and changes no other byte.

    Raises:
        InvalidError: The file cannot be parsed.
        ConflictError: The file is TOML and has another entry of this name; TOML files are only appended to.
    """
    before = read_text(client.file)
    add = _with_toml_server if client.format == "toml" else _with_json_server
    return Edit(file=client.file, before=before, after=add(client, entry, before or "", name))


def _with_json_server(client: Client, entry: Entry, before: str, name: str) -> str:
    edited = JsonText(before, name=str(client.file))
    given = _given(client, entry)
    servers = edited.value().get(client.member)
    if isinstance(servers, dict) and servers.get(name) == given:
        return before
    edited.put([client.member, name], given)
    return edited.text


def _with_toml_server(client: Client, entry: Entry, before: str, name: str) -> str:
    ours = toml_entry(client.member, name, entry)
    try:
        known = tomllib.loads(before).get(client.member, {})
    except tomllib.TOMLDecodeError as error:
        raise InvalidError(f"{client.file} is not valid TOML: {error}", hint="repair the file by hand first") from error
    if name not in known:
        return appended(before, ours)
    if known[name] == tomllib.loads(ours)[client.member][name]:
        return before
    raise ConflictError(
        f"{client.file} has an entry {name!r} already", hint="edit it by hand, or choose another --name"
    )


def toml_entry(member: str, name: str, entry: Entry) -> str:
    """Return the TOML table of a server."""
    # Strings and lists of strings are written in TOML as in JSON.
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items() if key != "env"]
    lines += [f"env = {{ {key} = {json.dumps(value)} }}" for key, value in entry.get("env", {}).items()]
    return "\n".join([f"[{member}.{name}]", *lines]) + "\n"


def appended(text: str, ours: str) -> str:
    """Append a paragraph to a text."""
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return text + gap + ours


def read_text(file: Path) -> str | None:
    """Return the text of a file; None if the file does not exist."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"{file} cannot be read: {error}") from error


def copies_of(file: Path) -> list[Path]:
    """Return the copies that were kept of a settings file before Ricordo changed it, the oldest first."""
    return sorted(file.parent.glob(f"{file.name}.before-ricordo-*"))


def without_server(client: Client, *, name: str) -> Edit:
    """Return an edit that removes our entry from a client's JSON file. Raises InvalidError if it cannot be parsed."""
    before = read_text(client.file)
    edited = JsonText(before or "", name=str(client.file))
    edited.remove([client.member, name])
    after = None if before is None else text_or_none(edited, before)
    return Edit(file=client.file, before=before, after=after, is_ours=before is not None and after is None)


def text_or_none(edited: JsonText, before: str) -> str | None:
    """Return the edited text; None to delete the file if only empty or generated content is left."""
    is_empty = edited.text != before and edited.value() in ({}, {"version": 1})
    return None if is_empty else edited.text


def write_edit(edit: Edit, *, stamp: str) -> Path | None:
    """Write the new text atomically, or delete the file; return the path of the backup, None if it needs none.

    Args:
        stamp: A suffix for the name of the backup.

    Raises:
        ConflictError: The file has changed since it was read.
        InvalidError: It cannot be written.
    """
    file, before, after = edit.file.resolve(), edit.before, edit.after  # keep a symbolic link
    if read_text(file) != before:
        raise ConflictError(f"{file} was changed by another program in the meantime", hint="try again")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        copy = None
        if before is not None and not edit.is_ours:
            copy = next((each for each in copies_of(file) if read_text(each) == before), None)
        if before is not None and not edit.is_ours and copy is None:
            copy = file.with_name(f"{file.name}.before-ricordo-{stamp}")
            _write_like(copy, before, like=file)
        if after is None:
            file.unlink(missing_ok=True)
            return copy
        fresh = file.with_name(f".{file.name}.ricordo-{os.getpid()}")
        _write_like(fresh, after, like=file)
        fresh.replace(file)
    except OSError as error:
        raise InvalidError(f"{file} cannot be written: {error.strerror}") from error
    return copy


def _write_like(file: Path, text: str, *, like: Path) -> None:
    """Write a file with the permissions of `like`, else readable by its owner only: settings can contain API keys."""
    mode = like.stat().st_mode & 0o777 if like.exists() else 0o600
    write_private(file, text)
    file.chmod(mode)
