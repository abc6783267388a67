"""Every door on a store whose files and folder cannot be written, by a user who is not exempt from permissions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from tests.interfaces.conftest import RUN, Outcome, clean_environment

from ricordo import Memory

# Root writes anywhere, so the capabilities for that (CAP_DAC_OVERRIDE and the like) are dropped first.
DROP = """
import ctypes, os, sys
for capability in (1, 2, 3):
    if os.getuid() == 0 and ctypes.CDLL(None).prctl(24, capability, 0, 0, 0):
        sys.exit("the capability cannot be dropped")
os.execv(sys.executable, [sys.executable, "-W", "error", "-c", *sys.argv[1:]])
"""

ALL = """
import contextlib, io, json, sys
from ricordo.interfaces.cli.app import main
outcomes = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        outcomes.append([main(arguments), out.getvalue(), err.getvalue()])
print(json.dumps(outcomes))
"""
"""Commands one after the other, each as in a process of its own, for less time."""


@pytest.fixture(params=["me.db", "folder/"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the location of a store in a folder that only can be read, as everything in it."""
    place = tmp_path / "disk"
    place.mkdir()
    location = f"{place}/{request.param}"

    async def fill() -> None:
        async with Memory.open(location, embedder="hashing") as memory:
            await memory.remember("Anna drinks tea")
            await memory.settle(600)

    asyncio.run(fill())
    paths = sorted(place.rglob("*"), reverse=True)
    for path in (*paths, place):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.read_bytes() for path in paths if path.is_file()}
    yield location
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    for path in (place, *sorted(place.rglob("*"))):
        path.chmod(0o700)


def command(location: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", DROP, RUN, *arguments, *options(location)]


def options(location: str) -> list[str]:
    return ["--store", location, "--embedder", "hashing"]


def environment(home: Path) -> dict[str, str]:
    names = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME")
    return clean_environment() | dict.fromkeys(names, str(home))


def done(location: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    asked = command(location, *arguments)
    return subprocess.run(asked, env=environment(home), capture_output=True, text=True, timeout=120)


def all_done(location: str, asked: Sequence[Sequence[str]], *, home: Path) -> list[Outcome]:
    commands = json.dumps([[*arguments, *options(location)] for arguments in asked])
    program = [sys.executable, "-c", DROP, ALL, commands]
    ran = subprocess.run(program, env=environment(home), capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return [Outcome(status=status, out=out, err=err) for status, out, err in json.loads(ran.stdout)]


@pytest.mark.slow
@pytest.mark.parametrize("is_home_writable", [True, False])
def test_the_command_line_reads_and_refuses_writes(store: str, tmp_path: Path, is_home_writable: bool) -> None:
    home, out = tmp_path if is_home_writable else Path(store).parent, tmp_path / "out.jsonl"
    reads = [["search", "tea"], ["context", "what does Anna drink?"], ["list"], ["export", str(out)], ["doctor"]]
    writes = [["remember", "Bob drinks tea"], ["off-record"], ["import", __file__]]
    outcomes = all_done(store, [*reads, *writes], home=home)
    answers, refused = outcomes[: len(reads)], outcomes[len(reads) :]
    assert [each.status for each in answers] == [0] * len(reads), answers
    assert all("Anna drinks tea" in each.out for each in answers[:3])
    assert "Anna drinks tea" in out.read_text("utf-8")
    for each in refused:
        assert each.status == 7, each.err
        assert "is read-only" in each.err
        assert "make it writable" in each.err
    assert done(store, "search", "tea", home=home).returncode == 0


def test_notes_that_cannot_be_written_stop_nothing_and_are_named(tmp_path: Path) -> None:
    location, notes = f"{tmp_path}/folder/", tmp_path / "folder" / "notes"

    def used(*asked: Sequence[str]) -> list[Outcome]:
        return all_done(location, asked, home=tmp_path)

    used(["notes"], ["remember", "Rita drinks tea"], ["remember", "I like figs"])
    (notes / "People").mkdir()
    (notes / "Rita.md").rename(notes / "People" / "Rita.md")
    used(["list"])
    notes.chmod(0o555)
    (notes / "People").chmod(0o000)
    kept, doctor, listed, erased = used(
        ["remember", "I like marzipan"], ["doctor"], ["list"], ["erase", "--entity", "Rita", "--yes"]
    )
    assert kept.status == 0 and "Remembered" in kept.out and "Traceback" not in kept.err
    assert kept.err.count("Permission denied") == 1 and "writable" in kept.err
    assert (doctor.status, "Permission denied" in doctor.out, "writable" in doctor.out) == (7, True, True)
    assert all(text in listed.out for text in ("marzipan", "figs", "Rita drinks tea"))
    assert erased.status == 0 and "Permission denied" in erased.out and "not all bytes are gone yet" in erased.out
    (notes / "People").chmod(0o755)
    notes.chmod(0o755)
    (found,) = used(["list"])
    assert "marzipan" in (notes / "Me.md").read_text("utf-8")
    assert found.err == "" and "figs" in found.out
    assert "Rita drinks tea" not in (notes / "People" / "Rita.md").read_text("utf-8")


def test_a_folder_that_cannot_be_read_stops_neither_watch_nor_import(tmp_path: Path) -> None:
    location, vault = f"{tmp_path}/me.db", tmp_path / "vault"
    for name in ("Home", "Recipes/Curry", "Recipes/Soup/Leek", "Diary/Monday", "Closed/Plan"):
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / f"{name}.md").write_text(f"# {name}\n\nThe {name} is blue.\n", "utf-8")
    (vault / "Closed").chmod(0o000)

    def used(*asked: Sequence[str]) -> list[Outcome]:
        return all_done(location, asked, home=tmp_path)

    first, again = used(*[["watch", str(vault), "--once"]] * 2)
    (imported,) = all_done(f"{tmp_path}/other.db", [["import", str(vault)]], home=tmp_path)
    for each in (first, again):
        assert each.status == 0 and "refused  Closed: Permission denied" in each.out, each
    assert imported.status == 0 and "Closed: it cannot be read: Permission denied" in imported.out, imported
    (vault / "Closed").chmod(0o755)
    (vault / "Recipes").chmod(0o000)
    (vault / "Diary").chmod(0o444)
    (vault / "Home.md").write_text("# Home\n\nThe chimney sweep is called Hubert.\n", "utf-8")
    watched, documents = used(["watch", str(vault), "--once"], ["documents"])
    for folder in ("Recipes", "Diary"):
        (vault / folder).chmod(0o755)
    assert watched.status == 0
    assert "added    Closed/Plan.md" in watched.out and "changed  Home.md" in watched.out
    assert "Diary/Monday.md, Recipes: Permission denied" in watched.out and "removed" not in watched.out
    assert all(name in documents.out for name in ("Curry", "Leek", "Monday", "Plan"))


async def test_an_agent_reads_over_mcp_and_is_told_why_it_cannot_write(store: str, tmp_path: Path) -> None:
    program, *arguments = command(store, "mcp")
    started = StdioServerParameters(command=program, args=arguments, env=environment(tmp_path))
    async with Client(stdio_client(started)) as client:
        found = await client.call_tool("search_memory", {"query": "who drinks tea?"})
        assert "Anna drinks tea" in found.content[0].text
        refused = await client.call_tool("remember_fact", {"content": "Bob drinks tea"})
        assert refused.is_error
        assert "make it writable" in refused.content[0].text


@pytest.mark.slow
def test_a_server_starts_and_keeps_its_tokens_with_the_user(store: str, tmp_path: Path) -> None:
    with serving(store, home=tmp_path) as url:
        (secret,) = (tmp_path / "ricordo").glob("server-*.token")
        token = f"Bearer {secret.read_text('utf-8').strip()}"
        headers = {"Authorization": token, "Content-Type": "application/json"}
        assert b"Anna drinks tea" in answered(urllib.request.Request(f"{url}/v1/search", b'{"text": "tea"}', headers))
    refused = done(store, "serve", "--port", "0", home=Path(store).parent)
    assert refused.returncode == 7
    assert "XDG_DATA_HOME" in refused.stderr


def answered(asked: urllib.request.Request) -> bytes:
    """Return an answer of a server that may just be starting."""
    for _ in range(100):
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError:
            raise
        except OSError:
            time.sleep(0.1)
    pytest.fail("the server does not answer")


@contextlib.contextmanager
def serving(location: str, *, home: Path) -> Iterator[str]:
    server = subprocess.Popen(
        command(location, "serve", "--port", "0"), env=environment(home), stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        assert line.startswith("Listening on "), line + server.stderr.read()
        yield line.removeprefix("Listening on ").strip()
    finally:
        server.terminate()
        server.communicate(timeout=120)
