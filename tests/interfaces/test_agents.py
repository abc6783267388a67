"""Coding agents: their files are changed and restored, their hooks answered, their logs taken in once."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from benchmarks.agent_logs import Session, repository, sessions, write_log
from benchmarks.agents import measure
from tests.interfaces.conftest import Cli, clean_environment

from ricordo import DeniedError, InvalidError, Memory, Scope
from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.catalog import tools
from ricordo.interfaces.cli.agents import agents, path_of
from ricordo.interfaces.cli.clients import clients
from ricordo.interfaces.cli.json_text import JsonText
from ricordo.interfaces.cli.projects import is_private, project_of
from ricordo.text.work import statements_of_work

AGENTS = tuple(agents())


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def _hook(cli: Cli, monkeypatch: pytest.MonkeyPatch, agent: str, event: str, **given: Any) -> Any:
    """Run a hook in this process and return what it printed."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(given)))
    done = cli("hook", agent, event)
    assert (done.status, done.err) == (0, "")
    return done.out if agent == "opencode" else json.loads(done.out or "{}")


def _text(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    told = answer.get("hookSpecificOutput") or {}
    return str(answer.get("additional_context") or told.get("additionalContext") or "")


def _session_of(agent: str) -> Session:
    """Return the session in which sessions were decided to be in Postgres, as one of a client."""
    return replace(next(each for each in sessions() if "JWTs" in str(each.steps)), client=agent)


# the logs


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("first", ["hook", "import"])
def test_a_session_goes_in_once_by_hook_and_by_import_and_the_next_briefing_holds_its_decision(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, first: str
) -> None:
    session = _session_of(agent)
    root = repository(tmp_path, session)
    log = write_log(session, home, root)
    given = {"session_id": session.id, "cwd": str(root), "transcript_path": str(log)}

    def take_in(way: str) -> None:
        if way == "hook":
            _hook(cli, monkeypatch, agent, "take-in", **given)
        else:
            done = cli("import", "--format", agent, str(log))
            assert done.status == 0, done.err

    counts = []
    for way in (first, first, "import" if first == "hook" else "hook"):
        take_in(way)
        counts.append(cli("--chat", "github.com/ann/kiln", "--json", "stats").json["nodes"])
    assert counts[0] == counts[1] == counts[2] and counts[0]["episodic"] == 6
    briefing = _text(_hook(cli, monkeypatch, agent, "session-start", session_id="next", cwd=str(root)))
    assert "server-side sessions in Postgres instead" in briefing
    assert "never" in briefing.lower() or "cookie" in briefing
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert "Postgres" not in _text(_hook(cli, monkeypatch, agent, "session-start", cwd=str(elsewhere)))


def test_the_folder_of_a_client_is_imported_by_project_and_private_ones_are_left_out(
    cli: Cli, home: Path, tmp_path: Path
) -> None:
    told = [replace(each, client="claude-code") for each in sessions()]
    chosen = [next(each for each in told if each.project == name) for name in ("kiln", "atlas", "brief")]
    roots = {each.project: repository(tmp_path / "code", each) for each in chosen}
    for each in chosen:
        write_log(each, home, roots[each.project])
    (roots["brief"] / ".ricordoignore").write_text("", encoding="utf-8")
    done = cli("--json", "import", "--format", "claude-code", str(home / ".claude/projects"))
    assert done.json["sessions"] == 2 and any(".ricordoignore" in each for each in done.json["refused"])
    assert done.json["refused_count"] == 1 and not any("of other kinds" in each for each in done.json["refused"])
    assert len(done.json["skipped"]) == 2
    assert all(re.match(r"[\w-]+\.jsonl: \d lines of other kinds \(", each) for each in done.json["skipped"])
    again = cli("import", "--format", "claude-code", str(home / ".claude/projects")).out
    assert "Not imported (1):" in again and done.json["skipped"][0] in again
    for project, chat, word in (
        ("kiln", "github.com/ann/kiln", "sqlc"),
        ("atlas", "gitlab.example.org/maps/atlas", "uv"),
    ):
        texts = str(cli("--chat", chat, "--json", "list", "--limit", "500").json)
        assert word in texts and ("sqlc" in texts) == (project == "kiln")
    assert cli("--chat", "github.com/kontor/brief", "--json", "stats").json["nodes"].get("episodic", 0) == 0
    assert cli("--json", "stats").json["nodes"].get("episodic", 0) == 0


def test_commands_that_worked_and_failed_and_their_causes_are_known(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = next(each for each in sessions() if "inherited this Python" in str(each.steps))
    root = repository(tmp_path, session)
    log = write_log(session, home, root)
    cli("import", "--format", session.client, str(log))
    texts = str(cli("--chat", project_of(root), "--json", "list", "--tag", "command").json)
    assert "`pytest` fails; `uv run pytest` works instead" in texts and "`uv run pytest` works" in texts
    causes = str(cli("--chat", project_of(root), "--json", "list", "--tag", "cause").json)
    assert "GDAL is only installed in the uv environment" in causes


def test_a_command_is_known_as_it_ran(cli: Cli, home: Path, tmp_path: Path) -> None:
    commands = (
        "sudo systemctl start docker",
        "cd api && NODE_ENV=test npm test 2>&1 | tail -5",
        "make all",  # the log goes to the folder of the session first
        "PGPASSWORD=Tr0ub4dor-3x psql -c 'select 1'",
        "cd api && ls -l",
    )
    session = _session_of("claude-code")
    root = repository(tmp_path, session)
    session.steps = [("run", each, True) for each in commands]
    cli("import", "--format", "claude-code", str(write_log(session, home, root)))
    found = cli("--chat", project_of(root), "--json", "list", "--tag", "command").json["nodes"]
    assert {node["content"] for node in found} == {
        "`sudo systemctl start docker` works",
        "`cd api && NODE_ENV=test npm test` works",
        "`make all` works",
        "`PGPASSWORD=[redacted: password] psql -c 'select 1'` works",
    }


def test_secrets_and_the_clients_own_insertions_are_not_kept(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = _session_of("claude-code")
    key = "sk-ant-api03-" + "Zq9" * 31 + "AA"
    session.steps.append(("user", f"Use the key {key} for the demo", True))
    root = repository(tmp_path, session)
    cli("import", "--format", "claude-code", str(write_log(session, home, root)))
    texts = cli("--chat", project_of(root), "--json", "list", "--limit", "500").out
    assert key not in texts and "for the demo" in texts


async def test_what_is_nothing_but_a_credential_becomes_no_fact(cli: Cli, home: Path, tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "Zq9" * 31 + "AA"
    bare = (f"The user's API key is {key}", f"My token is {key} use it for the push", f"Mein Schlüssel ist {key}")
    session = _session_of("claude-code")
    session.steps = [("user", f"Remember that: {each}", True) for each in bare]
    async with Memory.open(":memory:", embedder=None) as memory:
        log = write_log(session, home, repository(tmp_path, session))
        await memory.import_(log, format="claude-code", own=True)
        await memory.extract()
        assert (await memory.list(type="semantic")).nodes == ()
        for each in bare:
            with pytest.raises(InvalidError, match="hardly anything is left"):
                await memory.scoped(Scope(trust="agent")).remember(each)
        kept = await memory.scoped(Scope(trust="agent")).remember(f"The key {key} opens the demo shop of the bakery")
        assert kept.content.startswith("The key [redacted: ")


async def test_only_a_record_of_the_users_own_program_counts_as_said_by_the_user(tmp_path: Path) -> None:
    session = _session_of("codex")
    log = write_log(session, tmp_path / "home", repository(tmp_path, session))
    for own, tiers in ((True, {"user", "agent"}), (False, {"import"})):
        async with Memory.open(":memory:", embedder=None) as memory:
            await memory.import_(log, format="codex", own=own)
            hits = (await memory.search("cookie", type="episodic", limit=50)).hits
            assert {hit.trust for hit in hits} == tiers
            with pytest.raises(DeniedError):
                await memory.scoped(Scope(trust="agent")).import_(log, format="codex", own=True)


async def test_a_share_of_the_questions_at_a_sessions_start_is_answered(tmp_path: Path) -> None:
    """All sixty: python benchmarks/agents.py; benchmarks/results/agents.json."""
    result = await measure(tmp_path, embedder=None, projects=2)
    assert result["questions"] >= 40 and result["answered"] >= 0.9 * result["questions"], result["missed"]
    assert result["leaks"] == []


# hooks


@pytest.mark.parametrize(
    ("event", "stdin"),
    [
        ("session-start", b""),
        ("session-start", b"no json"),
        ("session-end", b"[]"),
        ("compaction", b'{"cwd": 5, "transcript_path": "/nowhere"}'),
        ("take-in", b'{"cwd": 5, "transcript_path": "/nowhere"}'),
        ("take-in", b"\xff\xfe"),
    ],
)
def test_a_hook_never_fails_the_client(cli: Cli, event: str, stdin: bytes) -> None:
    done = cli.process("hook", "claude-code", event, stdin=stdin, embedder=None)
    assert done.status == 0 and "Traceback" not in done.err
    assert not done.out.strip() or json.loads(done.out) == {}


def test_the_end_of_a_session_does_not_wait_for_its_log(cli: Cli, home: Path, tmp_path: Path) -> None:
    session = _session_of("claude-code")
    root = repository(tmp_path, session)
    log = write_log(session, home, root)
    given = json.dumps({"session_id": session.id, "cwd": str(root), "transcript_path": str(log)}).encode()
    done = cli.process("hook", "claude-code", "session-end", stdin=given, HOME=str(home), embedder=None)
    assert done.status == 0 and json.loads(done.out) == {}
    for _ in range(300):
        found = cli.process("--chat", project_of(root), "--json", "stats", HOME=str(home), embedder=None)
        if found.status == 0 and found.json["nodes"].get("semantic"):
            break
        time.sleep(0.2)
    assert found.json["nodes"]["episodic"] == 6


@pytest.mark.parametrize(
    ("wish", "kept"),
    [
        ("please remember: we deploy on Thursdays only", "We deploy on Thursdays only"),
        ("Ok, please remember, please: always say please to users, please.", "Always say please to users"),
        ("Bitte merk dir: wir deployen immer donnerstags", "Wir deployen immer donnerstags"),
        ("N'oublie pas, s'il te plaît : on ne déploie jamais le vendredi", "On ne déploie jamais le vendredi"),
        ("No olvides, por favor: nunca desplegamos los viernes", "Nunca desplegamos los viernes"),
        ("Запомни, пожалуйста: мы используем pnpm вместо npm", "Мы используем pnpm вместо npm"),
    ],
)
def test_a_wish_is_stored_once_however_politely_it_is_put(
    cli: Cli, home: Path, tmp_path: Path, wish: str, kept: str
) -> None:
    session = replace(_session_of("claude-code"), steps=[("user", wish, True)])
    root = repository(tmp_path, session)
    cli("import", "--format", "claude-code", str(write_log(session, home, root)))
    found = cli("--chat", project_of(root), "--json", "list").json["nodes"]
    assert [node["content"] for node in found if node["type"] != "episodic"] == [kept]


def test_the_projects_of_a_person_are_listed_and_named_where_they_are_missing(
    cli: Cli, home: Path, tmp_path: Path
) -> None:
    session = _session_of("claude-code")
    root = repository(tmp_path, session)
    assert "no chats and no projects" in cli("chats").out
    cli("import", "--format", "claude-code", str(write_log(session, home, root)))
    (chat,) = cli("--json", "chats").json["chats"]
    assert (chat["name"], chat["messages"]) == (project_of(root), 6)
    assert project_of(root) in cli("chats").out
    for verb in ("list", "sessions", "stats"):
        told = cli(verb).err
        assert f"Also: {6 + chat['facts']} memories in 1 chat or project" in told and "`ricordo chats`" in told
        assert cli("--json", verb).err == cli("--chat", project_of(root), verb).err == ""
    for verb in (["brief"], ["search", "database"], ["list"]):
        assert "There is no chat or project 'github.com/ann/klin'" in cli("--chat", "github.com/ann/klin", *verb).err


def test_off_the_record_holds_for_the_sessions_of_agents_also_when_their_logs_are_read_later(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path, _session_of("claude-code"))

    def said(text: str, **cut: int) -> Path:
        session = replace(_session_of("claude-code"), at=datetime.now(UTC).replace(**cut), steps=[("user", text, True)])
        log = write_log(session, home, root)
        given = {"session_id": session.id, "cwd": str(root), "transcript_path": str(log)}
        _hook(cli, monkeypatch, "claude-code", "take-in", **given)
        return log

    def texts() -> str:
        return cli("--chat", project_of(root), "--json", "list", "--type", "any").out

    done = cli("off-record")
    assert "in every chat and project" in done.out and "`ricordo on-record`" in done.out
    log = said("Let's use haiku instead of sonnets", microsecond=0)
    assert "haiku" not in texts()
    told = cli("--chat", project_of(root), "on-record").out
    assert (
        told == "Still off the record: everything you say, in every chat and project. `ricordo on-record` ends that.\n"
    )
    assert "project, is on the record again" in cli("on-record").out
    imported = cli("--json", "import", "--format", "claude-code", str(log)).json
    assert imported["added"] == 0 and any("off the record" in each for each in imported["refused"])
    assert "haiku" not in texts()
    said("Let's use ballads instead of sonnets")
    assert "ballads" in texts()
    assert f"What you say in {project_of(root)} is off" in cli("--chat", project_of(root), "off-record").out
    said("Let's use limericks instead of sonnets")
    assert "limericks" not in texts()


# the files of clients

_BEFORE = {
    "claude-code": '{\n    "theme": "dark",\n    "hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}\n}\n',
    "codex": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}',
    "cursor": '{\n  "version": 1,\n  "hooks": {\n    "stop": [{"command": "./audit.sh"}]\n  }\n}\n',
    "gemini-cli": '{\n\t"ui": {"theme": "x"}, // mine\n\t"mcpServers": {"other": {"command": "o"}},\n}\n',
    "opencode": '{\n  "$schema": "https://opencode.ai/config.json",\n  "mcp": {}\n}\n',
}
_MCP_BEFORE = {
    "claude-code": '{"mcpServers": {"other": {"type": "stdio", "command": "o", "args": []}}, "numStartups": 7}',
    "codex": 'model = "gpt-5"  # mine\n\n[mcp_servers.other]\ncommand = "o"\n\n[profiles.x]\nmodel = "o3"\n',
    "cursor": '{"mcpServers": {}}\n',
}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("with_files", [True, False])
def test_uninstalling_restores_what_was_there_before(cli: Cli, agent: str, with_files: bool) -> None:
    kinds: dict[Path, str | None] = {path_of(agent, "mcp"): _MCP_BEFORE.get(agent, _BEFORE[agent])}
    if agents()[agent]["shape"] != "plugin":
        kinds[path_of(agent, "hooks")] = _BEFORE[agent]
    for file, text in kinds.items():
        if with_files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text or "", encoding="utf-8")
    preview = cli("install", agent, "--dry-run")
    assert preview.status == 0 and preview.err == "" and "+" in preview.out and "ricordo" in preview.out
    assert all(file.exists() == with_files for file in kinds)
    assert cli("install", agent, "--yes", "--owner", "ann").status == 0
    assert "already connected" in cli("install", agent, "--yes", "--owner", "ann").out
    mcp = path_of(agent, "mcp").read_text(encoding="utf-8")
    assert "--project" in mcp and str(cli.store) in mcp
    if with_files:
        for file, text in kinds.items():
            assert [each.read_text(encoding="utf-8") for each in file.parent.glob(f"{file.name}.before-ricordo-*")][
                :1
            ] == [text]
    rows = {row["client"]: row for row in cli("--json", "install").json}
    assert rows[agent]["server"] and rows[agent]["hooks"]
    done = cli("uninstall", agent, "--yes")
    copies = [each for file in kinds for each in file.parent.glob("*.before-ricordo-*")]
    assert done.status == 0 and all(str(each) in done.out for each in copies)
    assert bool(copies) == with_files  # and none of what only Ricordo wrote
    for file, text in kinds.items():
        if with_files and text != '{"mcpServers": {}}\n':
            left = file.read_text(encoding="utf-8") if file.exists() else None
            assert left == text or JsonText(left or "", name="x").value() == {
                "$schema": "https://opencode.ai/config.json"
            }
        elif not with_files:
            assert not file.exists()
    rows = {row["client"]: row for row in cli("--json", "install").json}
    assert not rows[agent]["server"] and not rows[agent]["hooks"]


@pytest.mark.parametrize("agent", [each for each in AGENTS if agents()[each]["shape"] != "plugin"])
def test_the_hooks_are_written_as_the_client_documents_them_and_run(cli: Cli, home: Path, agent: str) -> None:
    assert cli("install", agent, "--yes").status == 0
    hooks = json.loads(path_of(agent, "hooks").read_text(encoding="utf-8"))["hooks"]
    wanted = {name for names in agents()[agent]["events"].values() for name in names}
    assert set(hooks) == wanted
    lines = [(entry.get("command") or entry["hooks"][0]["command"]) for (entry,) in hooks.values()]
    assert all(f"hook {agent} " in line and str(cli.store) in line for line in lines)
    if agent == AGENTS[0]:
        environment = {**clean_environment(), "HOME": str(home)}
        done = subprocess.run(lines[0], shell=True, input=b"{}", capture_output=True, env=environment, check=False)
        assert done.returncode == 0 and json.loads(done.stdout) == {}
    text = path_of(agent, "mcp").read_text(encoding="utf-8")
    whole = tomllib.loads(text) if agent == "codex" else json.loads(text)
    assert whole[agents()[agent]["member"]]["ricordo"]["args"][-1] == "--project"


@pytest.mark.parametrize("before", [None, '{"theme": 1, "mcpServers": {"other": {"command": "o"}}}'])
def test_a_client_without_hooks_is_listed_and_taken_out_again(cli: Cli, before: str | None) -> None:
    file = clients(Path.home(), {})["claude-desktop"].file

    def is_served() -> bool:
        return next(each for each in cli("--json", "install").json if each["client"] == "claude-desktop")["server"]

    if before:
        file.parent.mkdir(parents=True)
        file.write_text(before, encoding="utf-8")
    for install in (["mcp", "install", "--client", "claude-desktop"], ["install", "claude-desktop"]):
        assert not is_served()
        assert cli(*install, "--yes").status == 0
        assert is_served() and str(cli.store) in file.read_text(encoding="utf-8")
        done = cli("uninstall", "claude-desktop", "--yes")
        assert "Claude Desktop is disconnected" in done.out
        assert (file.read_text(encoding="utf-8") if file.exists() else None) == before
    assert len(list(file.parent.glob("*.before-ricordo-*"))) == (2 if before else 0)


def test_the_settings_of_opencode_with_comments_are_used(cli: Cli) -> None:
    file = path_of("opencode", "mcp").with_suffix(".jsonc")
    file.parent.mkdir(parents=True)
    file.write_text('{\n  // mine\n  "theme": "x"\n}\n', encoding="utf-8")
    assert cli("install", "opencode", "--yes").status == 0
    assert "ricordo" in file.read_text(encoding="utf-8") and not file.with_suffix(".json").exists()
    assert cli("uninstall", "opencode", "--yes").status == 0
    assert "// mine" in file.read_text(encoding="utf-8") and "ricordo" not in file.read_text(encoding="utf-8")
    assert not (file.parent / "plugins").exists()


def test_a_file_that_is_no_json_is_left_alone(cli: Cli) -> None:
    file = path_of("cursor", "hooks")
    file.parent.mkdir(parents=True)
    file.write_text("{ not json", encoding="utf-8")
    done = cli("install", "cursor", "--yes")
    assert done.status == 2 and "repair the file by hand" in done.err
    assert file.read_text(encoding="utf-8") == "{ not json" and not path_of("cursor", "mcp").exists()


@pytest.mark.parametrize("text", ["[]", "5", '{"a": 1,, }', '{"a" 1}'])
def test_text_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidError):
        JsonText(text, name="settings.json")


# projects


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        ("git@github.com:ann/shop.git", "github.com/ann/shop"),
        ("https://ann:token@GitHub.com/ann/shop.git", "github.com/ann/shop"),
        ("ssh://git@host.org:2222/team/x.git/", "host.org/team/x"),
        ("/srv/git/x.git", None),
        ("", None),
    ],
)
def test_a_project_is_named_by_its_remote_or_its_root(tmp_path: Path, remote: str, name: str | None) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text(
        f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {remote}\n', encoding="utf-8"
    )
    (tmp_path / "a/b").mkdir(parents=True)
    assert project_of(tmp_path / "a/b") == (name or str(tmp_path.resolve()))


def test_a_worktree_belongs_to_the_project_of_its_repository(tmp_path: Path) -> None:
    real = tmp_path / "repo/.git"
    (real / "worktrees/w").mkdir(parents=True)
    (real / "config").write_text('[remote "origin"]\n\turl = git@h.org:a/b\n', encoding="utf-8")
    (real / "worktrees/w/commondir").write_text("../..\n", encoding="utf-8")
    (tmp_path / "w").mkdir()
    (tmp_path / "w/.git").write_text(f"gitdir: {real / 'worktrees/w'}\n", encoding="utf-8")
    assert project_of(tmp_path / "w") == "h.org/a/b"


@pytest.mark.parametrize(
    ("patterns", "where", "private"),
    [
        ("", "shop", True),
        ("# only this\nsecret\n", "shop/secret/deep", True),
        ("# only this\nsecret\n", "shop/open", False),
        ("clients/*\n!clients/open\n", "shop/clients/acme", True),
        ("clients/*\n!clients/open\n", "shop/clients/open", False),
    ],
)
def test_an_ignore_file_keeps_folders_private(tmp_path: Path, patterns: str, where: str, private: bool) -> None:
    (tmp_path / where).mkdir(parents=True)
    (tmp_path / "shop/.ricordoignore").write_text(patterns, encoding="utf-8")
    assert is_private(tmp_path / where, home=tmp_path / "home") == private


async def test_what_an_agent_remembers_in_a_project_stays_there_except_for_what_is_about_the_user() -> None:
    opened = Memory.open(":memory:", embedder=None)
    memory = await opened
    dispatcher = Dispatcher(_given(memory))
    remember = next(each for each in tools("core") if each.tool == "remember_fact")
    caller = Caller(owner="me", chat="h.org/a", shares=True)
    for content in ("The queue runs on port 5672", "I prefer short commit messages"):
        await dispatcher.call(remember, {"content": content}, caller=caller, as_tool=True)
    here = str(await memory.scoped(Scope(chat="h.org/a")).brief()) + str(
        (await memory.scoped(Scope(chat="h.org/a")).list()).nodes
    )
    there = str((await memory.scoped(Scope(chat="h.org/b")).list()).nodes)
    assert "5672" in here and "short commit" in here
    assert "5672" not in there and "short commit" in there
    await memory.close()


async def _given(memory: Memory) -> Memory:
    return memory


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Let's go with SQLite instead of Postgres.", "decision"),
        ("We've settled on trunk-based development.", "decision"),
        ("All endpoints must return JSON.", "rule"),
        ("Never push to main directly.", "rule"),
        ("The retry logic is still missing.", "left"),
        ("Wir nehmen ab jetzt Poetry statt pip.", "decision"),
        ("Alle Beträge müssen in Cent gespeichert werden.", "rule"),
        ("Мы решили перейти на Kotlin.", "decision"),
        ("Все даты должны быть в UTC.", "rule"),
        ("Nous avons décidé de passer à PostgreSQL.", "decision"),
        ("Toutes les dates doivent être en UTC.", "rule"),
        ("Hemos decidido usar Redis para las sesiones.", "decision"),
        ("Todas las fechas deben estar en UTC.", "rule"),
        ("Should we use SQLite?", None),
        ("Maybe we could use SQLite.", None),
        ("Can you look at the failing test", None),
        ("Thanks, that looks great.", None),
        ("Fix the typo in the header.", None),
        ("```\nWe always use tabs\n```", None),
    ],
)
def test_what_is_stated_at_work(said: str, kind: str | None) -> None:
    assert [found.kind for found in statements_of_work(said)] == ([kind] if kind else [])


def test_a_session_id_is_no_path(cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "secret.json").write_text("{}", encoding="utf-8")
    for session in ("../../secret", "*", ""):  # each is refused before a file is looked for
        _hook(cli, monkeypatch, "codex", "take-in", session_id=session, cwd=str(tmp_path))
    assert not cli.store.exists()


async def test_what_an_old_session_left_open_is_shown_no_more(tmp_path: Path) -> None:
    told = [replace(each, client="claude-code") for each in sessions() if each.project == "kiln"]
    async with Memory.open(":memory:", embedder=None) as opened:
        memory = opened.scoped(Scope(chat="h.org/kiln"))
        for number, session in enumerate(told):
            log = write_log(session, tmp_path / "home", repository(tmp_path, session))
            await memory.import_(log, format="claude-code", own=True)
            await memory.extract()
            text = str(await memory.brief(budget=3_000)).partition("## Open ends")[2].partition("##")[0]
            if number == 0:
                assert "overlap check" in text
        assert "overlap check" not in text and "admin list still uses offsets" in text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I was leaning towards Mongo but let's stick with Postgres.", "Let's stick with Postgres"),
        ("Change of plan: we're moving the queue to NATS.", "Change of plan: we're moving the queue to NATS"),
        ("Cache keys must start with v2:", "Cache keys must start with v2:"),
        ("- **Always** rebase before merging", "Always rebase before merging"),
    ],
)
def test_the_statement_is_kept_whole_and_without_what_came_before_it(said: str, text: str) -> None:
    assert [found.text for found in statements_of_work(said)] == [text]


@pytest.mark.parametrize("session", ["{folder}/victim", "../../victim", "--help"])
def test_a_session_id_names_no_other_file(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: str
) -> None:
    victim = tmp_path / "victim.json"
    victim.write_text("{}")
    given = {"session_id": session.format(folder=tmp_path), "cwd": str(tmp_path)}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(given)))
    cli("hook", "opencode", "take-in")
    assert victim.read_text() == "{}"
