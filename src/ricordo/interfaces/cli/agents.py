"""Commands that connect coding agents: install, uninstall, hook, and the import of session logs."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click
from rich.console import Console
from rich.text import Text

from ricordo.errors import InvalidError, RicordoError
from ricordo.interfaces.cli import serve
from ricordo.interfaces.cli.clients import (
    Client,
    Edit,
    appended,
    clients,
    copies_of,
    read_text,
    text_or_none,
    toml_entry,
    with_server,
    without_server,
    write_edit,
)
from ricordo.interfaces.cli.json_text import JsonText
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.projects import IGNORE_FILE, folder_of_slug, is_private, project_of
from ricordo.interfaces.cli.terminal import Output, dim, table
from ricordo.model import ImportReport, Scope

if TYPE_CHECKING:
    from ricordo.memory import Memory

Agent = Literal["claude-code", "codex", "cursor", "gemini-cli", "opencode"]
ToolsOnly = Literal["claude-desktop", "vscode", "windsurf"]
"""The MCP clients without hooks. The others are coding agents."""
Event = Literal["session-start", "session-end", "compaction", "take-in"]

_NAME = "ricordo"
_BRIEFING_TOKENS = 800
_START_S = 10.0
_SETTLE_S = 120.0
_MOST_STDIN_CHARS = 1_000_000
_SESSION = re.compile(r"\w[\w-]{7,99}")


@cache
def agents() -> Mapping[str, Mapping[str, Any]]:
    """Return the configuration for each supported coding agent, by name."""
    return tomllib.loads((files("ricordo.interfaces.cli") / "agents.toml").read_text(encoding="utf-8"))


def path_of(agent: str, kind: Literal["mcp", "hooks", "logs"], *, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of an agent's MCP settings, hooks or session logs."""
    home = Path.home()
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    claude = environment.get("CLAUDE_CONFIG_DIR")
    folders = {
        "beside_claude": Path(claude or home),
        "claude": Path(claude or home / ".claude"),
        "codex": Path(environment.get("CODEX_HOME") or home / ".codex"),
        "cursor": home / ".cursor",
        "gemini": home / ".gemini",
        "opencode": config / "opencode",
        "data": Path(environment.get("XDG_DATA_HOME") or home / ".local/share"),
    }
    path = Path(agents()[agent][kind].format(**folders))
    other = path.with_suffix(".jsonc")  # OpenCode reads either
    is_other = agent == "opencode" and path.suffix == ".json" and other.is_file()
    return other if is_other and not (path.is_file() and _NAME in path.read_text(encoding="utf-8")) else path


def _tools_only() -> dict[str, Client]:
    known = clients(Path.home(), os.environ)
    return {name: known[name] for name in get_args(ToolsOnly)}


# install and uninstall


@command
async def install(
    ctx: CommandContext,
    agent: Agent | ToolsOnly | None = None,
    profile: str = "core",
    yes: bool = False,
    dry_run: bool = False,
) -> Output:
    if agent is None:
        return _status()
    serve.check_installed("mcp", ["mcp"])
    start, client = serve.start_of(ctx, chat=None, profile=profile), _tools_only().get(agent)
    edits = [with_server(client, start, name=_NAME)] if client else _installed(agent, start)
    return _write(ctx, agent, edits, yes=yes, dry_run=dry_run, done="connected")


@command
async def uninstall(ctx: CommandContext, agent: Agent | ToolsOnly, yes: bool = False, dry_run: bool = False) -> Output:
    client = _tools_only().get(agent)
    edits = [without_server(client, name=_NAME)] if client else _uninstalled(agent)
    return _write(ctx, agent, edits, yes=yes, dry_run=dry_run, done="disconnected")


def _installed(agent: str, start: Mapping[str, Any]) -> list[Edit]:
    """Return the edits of an installation. Installing again changes nothing."""
    edits = {edit.file: edit for edit in _uninstalled(agent)}
    spec = agents()[agent]
    for kind, add in (("mcp", _with_server), ("hooks", _with_hooks)):
        file = path_of(agent, kind)  # type: ignore[arg-type]
        known = edits[file]
        edits[file] = replace(known, after=add(spec, agent, known.after, start, file))
    return [replace(each, after=each.before) if _says_the_same(each) else each for each in edits.values()]


def _says_the_same(edit: Edit) -> bool:
    """Return whether an edit only changes the formatting of a file, not its content."""
    if edit.before is None or edit.after is None or edit.file.suffix == ".js":
        return False
    if edit.file.suffix == ".toml":
        return tomllib.loads(edit.before) == tomllib.loads(edit.after)
    before, after = (JsonText(text, name=str(edit.file)).value() for text in (edit.before, edit.after))
    return bool(before == after)


def _uninstalled(agent: str) -> list[Edit]:
    """Return the edits of an uninstallation."""
    spec, edits = agents()[agent], dict[Path, Edit]()
    for kind, remove in (("mcp", _without_server), ("hooks", _without_hooks)):
        file = path_of(agent, kind)  # type: ignore[arg-type]
        known = edits.get(file) or Edit(file=file, before=(text := read_text(file)), after=text)
        edits[file] = replace(known, after=None if known.after is None else remove(spec, agent, known.after, file))
    return [replace(each, is_ours=each.before is not None and each.after is None) for each in edits.values()]


def _with_server(spec: Mapping[str, Any], agent: str, text: str | None, start: Mapping[str, Any], file: Path) -> str:
    args = [*start["args"], "--project"]
    if file.suffix == ".toml":
        return appended(text or "", toml_entry(spec["member"], _NAME, {**start, "args": args}))
    entry: dict[str, Any] = {"command": start["command"], "args": args}
    if spec.get("entry") == "local":
        entry = {"type": "local", "command": [start["command"], *args], "enabled": True}
    elif spec.get("has_type"):
        entry = {"type": "stdio", **entry}
    if "env" in start:
        entry["environment" if spec.get("entry") == "local" else "env"] = start["env"]
    edited = JsonText(text or "", name=str(file))
    edited.put([spec["member"], _NAME], entry)
    return edited.text


def _without_server(spec: Mapping[str, Any], agent: str, text: str, file: Path) -> str | None:
    if file.suffix == ".toml":
        table = re.compile(
            rf"\n?^\[{spec['member']}\.{_NAME}(?:\.[^\]]*)?\][^\n]*\n(?:(?!\[)[^\n]*(?:\n|\Z))*", re.MULTILINE
        )
        shorter = table.sub("", text)
        _check_toml(shorter, file)
        return shorter or None
    edited = JsonText(text, name=str(file))
    edited.remove([spec["member"], _NAME])
    return text_or_none(edited, text)


def _check_toml(text: str, file: Path) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidError(f"{file} is not valid TOML: {error}", hint="repair the file by hand first") from error


def _with_hooks(spec: Mapping[str, Any], agent: str, text: str | None, start: Mapping[str, Any], file: Path) -> str:
    if spec["shape"] == "plugin":
        return _plugin(start)
    edited = JsonText(text or "", name=str(file))
    if spec["shape"] == "flat" and "version" not in edited.value():
        edited.put(["version"], 1)
    for event, names in spec["events"].items():
        line = shlex.join(_hook_command(start, agent, event))
        for name in names:
            edited.append(["hooks", name], _hook(spec, event, line))
    return edited.text


def _hook(spec: Mapping[str, Any], event: str, line: str) -> dict[str, Any]:
    if spec["shape"] == "flat":
        return {"command": line}
    matcher = spec.get("matchers", {}).get(event)
    hook = {"type": "command", "command": line, "timeout": spec["timeout"]}
    return {**({"matcher": matcher} if matcher else {}), "hooks": [hook]}


def _hook_command(start: Mapping[str, Any], agent: str, event: str) -> list[str]:
    """Return the command of a hook: the command of the server, with the verb `hook`."""
    at = start["args"].index("mcp")
    common = start["args"][at + 1 :]
    profile = common.index("--profile") if "--profile" in common else len(common)
    return [start["command"], *start["args"][:at], "hook", agent, event, *common[:profile], *common[profile + 2 :]]


def _plugin(start: Mapping[str, Any]) -> str:
    words = _hook_command(start, "opencode", "EVENT")
    at = words.index("hook")
    text = (files("ricordo.interfaces.cli") / "opencode_plugin.js").read_text(encoding="utf-8")
    for name, value in (("COMMAND", words[0]), ("FIRST", words[1:at]), ("COMMON", words[at + 3 :])):
        text = text.replace(f'"@{name}@"', json.dumps(value))
    return text


def _without_hooks(spec: Mapping[str, Any], agent: str, text: str, file: Path) -> str | None:
    if spec["shape"] == "plugin":
        return None
    edited = JsonText(text, name=str(file))
    for name in {name for names in spec["events"].values() for name in names}:
        listed = edited.value().get("hooks")
        groups = listed.get(name) if isinstance(listed, dict) else None
        for place in reversed(range(len(groups) if isinstance(groups, list) else 0)):
            if _is_ours(json.dumps(groups[place], ensure_ascii=False), agent):  # type: ignore[index]
                edited.remove(["hooks", name], place)
    return text_or_none(edited, text)


def _is_ours(text: str, agent: str) -> bool:
    return re.search(rf"ricordo\b.*\bhook {agent} (?:session-start|session-end|compaction)\b", text) is not None


def _write(ctx: CommandContext, agent: str, edits: Sequence[Edit], *, yes: bool, dry_run: bool, done: str) -> Output:
    """Show the changes, ask for confirmation, and write them, with a backup of each changed file."""
    client, changed = _tools_only().get(agent), [edit for edit in edits if edit.changes]
    title = client.title if client else agents()[agent]["title"]
    if changed and not ctx.options.as_json and not dry_run:
        for edit in changed:
            ctx.err.print(Text(_difference(edit)), soft_wrap=True)
    writes = bool(changed) and not dry_run and (yes or serve.confirmed(ctx))
    stamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    copies = [write_edit(edit, stamp=stamp) for edit in changed] if writes else []
    for edit in changed if writes else ():
        if edit.after is None and edit.file.parent.name == "plugins":
            with contextlib.suppress(OSError):  # it holds something else
                edit.file.parent.rmdir()
    backups = [str(each) for each in copies if each is not None]
    stay = [str(each) for edit in edits for each in copies_of(edit.file.resolve())] if done == "disconnected" else []
    data = {"client": agent, "files": [str(edit.file) for edit in changed], "written": writes, "backups": backups}

    def show(out: Console) -> None:
        if not changed:
            out.print(f"{title} is already {done}.")
        elif not writes:
            for edit in changed if dry_run else ():
                out.print(Text(_difference(edit)), soft_wrap=True)
            out.print("Nothing was written.")
        else:
            out.print(
                Text.assemble((f"{title} is {done}. ", "green"), ", ".join(str(edit.file) for edit in changed)),
                soft_wrap=True,
            )
            for each in backups if done == "connected" else ():
                out.print(dim(f"Backup of the old file: {each}"), soft_wrap=True)
            out.print(dim(f"Restart {title}."))
            if agent == "codex" and done == "connected":
                out.print(dim("Codex asks once whether to trust the hooks: /hooks."))
        if stay and not dry_run:
            out.print(dim("These copies of changed files stay; delete them when you no longer need them:"))
            for each in stay:
                out.print(dim(each), soft_wrap=True)

    return Output(data=data | ({"copies": stay} if stay else {}), show=show)


def _difference(edit: Edit) -> str:
    lines = difflib.unified_diff(
        (edit.before or "").splitlines(),
        (edit.after or "").splitlines(),
        str(edit.file),
        str(edit.file),
        n=2,
        lineterm="",
    )
    return "\n".join(lines) + "\n"


def _status() -> Output:
    rows = [
        {"client": name, "title": spec["title"], "server": "mcp" in found, "hooks": "hooks" in found, "here": here}
        for name, spec in agents().items()
        for found, here in [(_found(name), _is_here(name))]
    ]
    rows += [
        {
            "client": name,
            "title": each.title,
            "server": _is_served(each),
            "hooks": None,
            "here": each.file.parent.is_dir(),
        }
        for name, each in _tools_only().items()
    ]

    def show(out: Console) -> None:
        lines = table("client", "server", "hooks")
        for row in rows:
            state = [
                "has none"
                if row[each] is None
                else "yes"
                if row[each]
                else "no"
                if row["here"]
                else "not installed here"
                for each in ("server", "hooks")
            ]
            lines.add_row(str(row["client"]), *state)
        out.print(lines)

    return Output(data=rows, show=show)


def _is_served(client: Client) -> bool:
    """Return whether an MCP client has our server."""
    with contextlib.suppress(InvalidError):
        return without_server(client, name=_NAME).changes
    return False


def _is_here(agent: str) -> bool:
    """Return whether an agent is installed: its folder exists on this machine."""
    kinds: tuple[Literal["mcp", "hooks"], ...] = ("mcp", "hooks")
    folders = {path_of(agent, kind).parent for kind in kinds} - {Path.home()}
    return any(folder.is_dir() for folder in folders)


def _found(agent: str) -> set[str]:
    """Return which of "mcp" and "hooks" are already installed."""
    found = set()
    for kind, remove in (("mcp", _without_server), ("hooks", _without_hooks)):
        file = path_of(agent, kind)  # type: ignore[arg-type]
        with contextlib.suppress(InvalidError):
            text = read_text(file)
            if text is not None and remove(agents()[agent], agent, text, file) != text:
                found.add(kind)
    return found


# hooks


@command
async def hook(ctx: CommandContext, agent: Agent, event: Event) -> Output:
    """Handle an event of an agent. Errors must neither delay nor stop the agent."""
    try:
        given = json.loads(sys.stdin.read(_MOST_STDIN_CHARS) or "{}") if not sys.stdin.isatty() else {}
        if event == "session-start":
            text = await asyncio.wait_for(_briefing(ctx, agent, given), _START_S)
            click.echo(_answer(agent, text))
        elif event == "take-in":
            await _take_in(ctx, agent, given)
        else:
            _detach(ctx, agent, {**given, "event": event})
            click.echo("" if agent == "opencode" else "{}")
    except Exception as error:  # noqa: BLE001  # the agent must continue in any case
        ctx.err.print(Text(f"ricordo: {type(error).__name__}: {error}"), soft_wrap=True)
    return Output(data=None, show=lambda out: None)


def _answer(agent: str, text: str | None) -> str:
    """Return a briefing in the format that the agent expects."""
    if agent == "opencode":
        return text or ""
    if text is None:
        return "{}"
    if agent == "cursor":
        return json.dumps({"additional_context": text}, ensure_ascii=False)
    told = {"hookEventName": "SessionStart", "additionalContext": text}
    return json.dumps({"hookSpecificOutput": told}, ensure_ascii=False)


def _folder(given: Mapping[str, Any]) -> Path | None:
    """Return the agent's working folder."""
    roots = given.get("workspace_roots")
    folder = given.get("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
    return Path(folder) if isinstance(folder, str) and folder else None


def _session(given: Mapping[str, Any]) -> str:
    return str(given.get("session_id") or given.get("conversation_id") or "")


async def _briefing(ctx: CommandContext, agent: str, given: Mapping[str, Any]) -> str | None:
    folder = _folder(given) or Path.cwd()
    if is_private(folder, home=Path.home()) or not ctx.store_exists:
        return None
    async with _in_project(ctx, project_of(folder)) as memory:
        return await memory.brief(budget=_BRIEFING_TOKENS, session=f"{agent}/{_session(given)}")


@contextlib.asynccontextmanager
async def _in_project(ctx: CommandContext, project: str, *, create: bool = False) -> AsyncIterator[Memory]:
    async with ctx.open(create=create, with_model=create) as memory:
        yield memory.scoped(Scope(owner=ctx.owner, chat=project))


def _detach(ctx: CommandContext, agent: str, given: Mapping[str, Any]) -> None:
    """Start a process that imports the session log, without waiting for it."""
    start = serve.start_of(ctx, chat=None, profile="core")
    command_ = _hook_command(start, agent, "take-in")
    with tempfile.TemporaryFile() as asked:
        asked.write(json.dumps(given).encode())
        asked.seek(0)
        started = subprocess.Popen(
            command_,
            stdin=asked,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **start.get("env", {})},
        )
    started.returncode = 0  # avoids Python's warning at exit about a running process


async def _take_in(ctx: CommandContext, agent: str, given: Mapping[str, Any]) -> None:
    folder = _folder(given)
    if folder is None or is_private(folder, home=Path.home()):
        return
    with _log_of(agent, given) as log:
        if log is None:
            return
        async with _in_project(ctx, project_of(folder), create=True) as memory:
            await memory.import_(log, format=agent, own=True)
            session = f"{agent}/{_session(given) or log.stem}"
            with contextlib.suppress(RicordoError):
                await memory.extract(session)
            if given.get("event") == "session-end":
                with contextlib.suppress(RicordoError):
                    await memory.end_session(session)
            with contextlib.suppress(RicordoError):
                await memory.settle(timeout=_SETTLE_S)


@contextlib.contextmanager
def _log_of(agent: str, given: Mapping[str, Any]) -> Iterator[Path | None]:
    """Yield the log of a session: the file in the event, or the file with the session's id."""
    named, session = given.get("transcript_path"), _session(given)
    session = session if _SESSION.fullmatch(session) else ""  # it becomes the name of a file, and a word of a command
    if isinstance(named, str) and Path(named).expanduser().is_file():
        yield Path(named).expanduser()
    elif agent == "opencode" and session:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{session}.json"
            with file.open("wb") as out:
                done = subprocess.run(
                    ["opencode", "export", session], stdout=out, stderr=subprocess.DEVNULL, timeout=60
                )
            yield file if done.returncode == 0 else None
    else:
        found = path_of(agent, "logs").rglob(f"*{session}.json*") if session else ()
        yield next(iter(sorted(found)), None)


# import of session logs


async def import_logs(ctx: CommandContext, path: Path, agent: str, *, own: bool, dry_run: bool) -> ImportReport:
    """Import the session logs in a file or folder, each for the project it ran in. Private projects are left out.

    Args:
        own: whether the user's messages are trusted even if the log is outside the agent's folder.
    """
    from ricordo.portability.pipeline import sum_of

    is_there, logs = await asyncio.to_thread(_logs_in, path, agent)
    own = own or is_there
    by_project: dict[str, list[Path]] = {}
    refused: list[str] = []
    for log in logs:
        folder = _folder_of(agent, log)
        if folder is None:
            refused.append(f"{log}: it does not say in which folder it ran; give --chat")
        elif is_private(folder, home=Path.home()):
            refused.append(f"{log}: {folder} is private ({IGNORE_FILE})")
        else:
            by_project.setdefault(project_of(folder), []).append(log)
    total = ImportReport(format=agent)
    async with ctx.open(create=not dry_run) as opened:
        for project, mine in by_project.items():
            memory = opened.scoped(Scope(owner=ctx.owner, chat=project))
            for log in mine:
                try:
                    total = sum_of(total, await memory.import_(log, format=agent, own=own, dry_run=dry_run))
                except InvalidError as error:
                    refused.append(f"{log}: {error}")
            if not dry_run:
                await memory.extract()
    refused_count = total.refused_count + len(refused)
    return replace(total, refused=(*refused, *total.refused)[:20], refused_count=refused_count, dry_run=dry_run)


def _logs_in(path: Path, agent: str) -> tuple[bool, list[Path]]:
    """Return whether a path is in the agent's folder of logs, and the logs in it."""
    own = path.expanduser().resolve().is_relative_to(path_of(agent, "logs").resolve())
    logs = [path] if path.is_file() else [each for end in ("jsonl", "json") for each in path.rglob(f"*.{end}")]
    return own, sorted(logs)


def _folder_of(agent: str, log: Path) -> Path | None:
    """Return the working folder of a session: from the log or, failing that, from the name of the log's folder."""
    from ricordo.portability.importers.agents import folder_of

    if said := folder_of(log):
        return Path(said)
    if agent == "gemini-cli":
        marks = (each / ".project_root" for each in log.parents[:3])
        return next((Path(each.read_text(encoding="utf-8").strip()) for each in marks if each.is_file()), None)
    if agent == "cursor" and "agent-transcripts" in log.parts:
        return folder_of_slug(log.parts[log.parts.index("agent-transcripts") - 1])
    return None
