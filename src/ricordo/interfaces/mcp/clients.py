"""The configuration of MCP clients: where each keeps it, in which format, and how our entry is added."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ricordo.errors import ConflictError, InvalidError

ClientName = Literal["claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "gemini", "codex"]
Format = Literal["json", "toml"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program that starts MCP servers.

    Attributes:
        file: Its configuration.
        member: The object in it that holds the servers.
        has_type: Whether each entry has a "type", which is "stdio".
    """

    name: ClientName
    title: str
    file: Path
    member: str = "mcpServers"
    format: Format = "json"
    has_type: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How a client starts our server."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an installation writes: the whole new text, and the part that is ours."""

    client: Client
    before: str | None
    after: str
    ours: str

    @property
    def changes(self) -> bool:
        return self.before != self.after


def clients(home: Path, environment: Mapping[str, str], platform: str = sys.platform) -> dict[str, Client]:
    """Return every supported client, by name."""
    settings = _settings_folder(home, environment, platform)
    return {
        each.name: each
        for each in (
            Client(name="claude-desktop", title="Claude Desktop", file=settings / "Claude/claude_desktop_config.json"),
            Client(name="claude-code", title="Claude Code", file=home / ".claude.json", has_type=True),
            Client(name="cursor", title="Cursor", file=home / ".cursor/mcp.json"),
            Client(
                name="vscode", title="VS Code", file=settings / "Code/User/mcp.json", member="servers", has_type=True
            ),
            Client(name="windsurf", title="Windsurf", file=home / ".codeium/windsurf/mcp_config.json"),
            Client(name="gemini", title="Gemini CLI", file=home / ".gemini/settings.json"),
            Client(
                name="codex", title="Codex CLI", file=home / ".codex/config.toml", member="mcp_servers", format="toml"
            ),
        )
    }


def _settings_folder(home: Path, environment: Mapping[str, str], platform: str) -> Path:
    if platform == "win32":
        return Path(environment.get("APPDATA") or home / "AppData/Roaming")
    if platform == "darwin":
        return home / "Library/Application Support"
    return Path(environment.get("XDG_CONFIG_HOME") or home / ".config")


def start_entry(store: Path | str, *, owner: str, chat: str | None, profile: str, embedder: str | None) -> Entry:
    """Return how to start a server for this store. Clients know neither our folder nor our environment."""
    script = Path(sys.executable).with_name("ricordo.exe" if os.name == "nt" else "ricordo")
    command, first = (str(script), ()) if script.exists() else (sys.executable, ("-m", "ricordo"))
    args = [*first, "mcp", "--store", str(store)]
    args += ["--owner", owner] if owner != "me" else []
    args += ["--chat", chat] if chat else []
    args += ["--profile", profile] if profile != "core" else []
    env = {"RICORDO_EMBEDDER": embedder} if embedder else {}
    return Entry(command=command, args=tuple(args), env=env)


def make_plan(client: Client, entry: Entry, *, name: str) -> Plan:
    """Plan the client's file with our entry in it; everything else stays as it is.

    Raises:
        InvalidError: The file cannot be parsed.
        ConflictError: The entry exists already, and a file of this format cannot be rewritten in place.
    """
    before = _read(client.file)
    if client.format == "toml":
        return _toml_plan(client, entry, before, name=name)
    given: Any = {"type": "stdio"} if client.has_type else {}
    given |= {"command": entry.command, "args": list(entry.args)} | ({"env": dict(entry.env)} if entry.env else {})
    whole = _object(client, before)
    servers = whole.setdefault(client.member, {})
    if not isinstance(servers, dict):
        raise InvalidError(f"{client.file}: {client.member!r} is not an object", hint="repair it by hand first")
    servers[name] = given
    ours = _json({client.member: {name: given}})
    same = before is not None and _object(client, before) == whole
    return Plan(client=client, before=before, after=before if same and before else _json(whole), ours=ours)


def _toml_plan(client: Client, entry: Entry, before: str | None, *, name: str) -> Plan:
    lines = [f"[{client.member}.{name}]", f"command = {_text(entry.command)}"]
    lines.append(f"args = [{', '.join(map(_text, entry.args))}]")
    if entry.env:
        lines.append(f"env = {{ {', '.join(f'{key} = {_text(value)}' for key, value in entry.env.items())} }}")
    ours = "\n".join(lines) + "\n"
    if before is not None:
        try:
            known = tomllib.loads(before).get(client.member, {})
        except tomllib.TOMLDecodeError as error:
            raise InvalidError(f"{client.file} is not valid TOML: {error}", hint="repair it by hand first") from error
        if name in known and known[name] == tomllib.loads(ours)[client.member][name]:
            return Plan(client=client, before=before, after=before, ours=ours)
        if name in known:
            raise ConflictError(
                f"{client.file} has an entry {name!r} already", hint="edit it by hand, or choose another --name"
            )
    text = before or ""
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return Plan(client=client, before=before, after=text + gap + ours, ours=ours)


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"{file} cannot be read: {error}") from error


def _object(client: Client, text: str | None) -> dict[str, Any]:
    if text is None or not text.strip():
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        hint = "it may contain comments: add the lines by hand"
        raise InvalidError(f"{client.file} is not plain JSON: {error}", hint=hint) from error
    if not isinstance(found, dict):
        raise InvalidError(f"{client.file} is not a JSON object", hint="repair it by hand first")
    return found


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _text(value: str) -> str:
    """Return a TOML basic string, which is written like a JSON string."""
    return json.dumps(value)


def write_plan(plan: Plan, *, stamp: str) -> Path | None:
    """Write the new text, whole or not at all; return the backup of the old file, if there was one.

    Args:
        stamp: A time for the name of the backup.

    Raises:
        ConflictError: The file has changed since it was read.
        InvalidError: It cannot be written.
    """
    file = plan.client.file.resolve()  # keep a symbolic link
    if _read(file) != plan.before:
        raise ConflictError(f"{file} has just been changed by another program", hint="try again")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        copy = None
        if plan.before is not None:
            copy = file.with_name(f"{file.name}.before-ricordo-{stamp}")
            _write_private(copy, plan.before, like=file)
        fresh = file.with_name(f".{file.name}.ricordo-{os.getpid()}")
        _write_private(fresh, plan.after, like=file)
        fresh.replace(file)
    except OSError as error:
        raise InvalidError(f"{file} cannot be written: {error.strerror}") from error
    return copy


def _write_private(file: Path, text: str, *, like: Path) -> None:
    """Write a new file with the permissions of another, or readable by its owner only: such files hold keys."""
    mode = like.stat().st_mode & 0o777 if like.exists() else 0o600
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    file.chmod(mode)
