"""Additions for a server that is away wait in a folder, and are delivered in order, once."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces.conftest import clean_environment
from tests.interfaces.serving import served

from ricordo.interfaces import sandbox_client
from ricordo.interfaces.outbox import Outbox, RefusedError
from ricordo.interfaces.sandbox_client import address_of

THIN = "import sys; from ricordo.interfaces.sandbox_client import main; sys.exit(main())"


class Client:
    """`ricordo-sb` with an outbox, for the server of a folder."""

    def __init__(self, folder: Path) -> None:
        self.socket, self.box = folder / "s.sock", folder / "outbox"
        self.environment = {**clean_environment(), "RICORDO_SOCKET": str(self.socket), "RICORDO_OUTBOX": str(self.box)}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", THIN, *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self.environment, stdout=pipe, stderr=pipe, text=True)

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=60)
            return process.returncode, out, err

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        return sandbox_client.call(method, params, environment=self.environment)

    def wait(self) -> None:
        """Wait until the server listens."""
        for _ in range(300):
            try:
                self.call("memory.list", {})
            except RefusedError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError("the server does not listen")

    def stored(self) -> list[str]:
        """Return what the server has, oldest first."""
        return [node["content"] for node in self.call("memory.list", {"limit": 1_000})["nodes"]][::-1]


def test_what_could_not_be_delivered_waits_in_order_and_arrives_once(tmp_path: Path) -> None:
    client = Client(tmp_path)
    for number in range(3):
        status, out, err = client("memory", "add", f"Box {number} holds books", "--subject", "Anna")
        assert (status, f"{number + 1} waiting" in err, f"Box {number}" in out) == (0, True, True)
    status, out, err = client("outbox", "send")
    assert status == 6
    assert "0 delivered, 3 waiting." in out
    assert [line.partition("Z  ")[2] for line in client("outbox", "list")[1].splitlines()] == [
        f"Box {number} holds books" for number in range(3)
    ]
    assert {stat.S_IMODE(each.stat().st_mode) for each in client.box.iterdir()} == {0o600}
    with served(tmp_path):
        client.wait()
        assert client("memory", "add", "Box 3 holds books")[0] == 0
        assert client.stored() == [f"Box {number} holds books" for number in range(4)]
        assert client("outbox", "send")[:2] == (0, "0 delivered, 0 waiting.\n")
        assert len(client.stored()) == 4
    assert list(client.box.iterdir()) == []


def test_an_answer_that_is_lost_doubles_nothing_and_a_late_addition_keeps_its_time(tmp_path: Path) -> None:
    client = Client(tmp_path)
    box = Outbox(client.box, address="here")
    kept = box.keep("memory.add", {"content": "Ann was away yesterday"})
    box.keep("memory.add_many", {"messages": [{"text": "We meet tomorrow", "session": "s"}, {"text": "Fine"}]})
    for each in box.waiting():
        replace(each, kept_at=each.kept_at - 864_000).write()

    def lose(method: str, params: Mapping[str, Any]) -> Any:
        client.call(method, params)
        raise RefusedError("the connection broke")

    with served(tmp_path):
        client.wait()
        for _ in range(2):
            assert box.send(lose).away == "the connection broke"
        told = box.waiting()[1]
        assert client.call(told.method, told.params) == [each["id"] for each in told.params["messages"]]
        answer = box.send(client.call).answers[kept]
        assert client.stored() == ["Ann was away yesterday", "We meet tomorrow", "Fine"]
        assert 9 < (datetime.now(UTC) - datetime.fromisoformat(answer["event_time"])).days + 1 < 12
        assert not box.waiting()


def test_what_the_server_refuses_waits_apart_and_can_be_dropped(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client("memory", "add", "Box 1 holds books", "--expires-days", "99999999")
    client("memory", "add", "Box 2 holds books")
    with served(tmp_path):
        client.wait()
        status, out, _ = client("outbox", "send")
        assert (status, "1 delivered, 1 waiting." in out, "refused" in out) == (0, True, True)
        assert client.stored() == ["Box 2 holds books"]
        status, _, err = client("memory", "add", "Box 3", "--expires-days", "99999999")
        assert (status, "expires_days" in err) == (2, True)
        assert client("outbox", "drop", "1")[0] == 0
        assert client("outbox", "drop", "1")[0] == 3
        assert client("outbox", "list")[1] == ""


def test_what_waits_for_one_server_is_not_sent_to_another(tmp_path: Path) -> None:
    one, other = (Outbox(tmp_path / "box", address=name) for name in ("one", "other"))
    one.keep("memory.add", {"content": "for one"})
    assert other.send(lambda method, params: pytest.fail("it was sent")).answers == {}
    assert [each.address for each in other.waiting()] == ["one"]


def test_what_waits_for_another_server_is_listed_with_its_address(tmp_path: Path) -> None:
    Outbox(tmp_path / "box", address="http://127.0.0.1:9").keep("memory.add", {"content": "Box 1"})
    environment = {**os.environ, "RICORDO_URL": "http://127.0.0.1:1", "RICORDO_OUTBOX": str(tmp_path / "box")}
    command = [sys.executable, "-m", "ricordo.interfaces.sandbox_client", "outbox", "list"]
    listed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert "for http://127.0.0.1:9: another server, caller or token" in listed.stdout
    assert "Box 1" not in listed.stdout


def test_what_one_token_kept_is_neither_shown_to_another_nor_sent_with_it(tmp_path: Path) -> None:
    def client(token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "RICORDO_URL": "http://127.0.0.1:1", "RICORDO_TOKEN": token}
        environment["RICORDO_OUTBOX"] = str(tmp_path / "box")
        command = [sys.executable, "-m", "ricordo.interfaces.sandbox_client", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    client("ric_dia", "memory", "add", "Dia hides the key")
    assert "Dia" in client("ric_dia", "outbox", "list").stdout
    for arguments in (("list",), ("list", "--json"), ("send",)):
        assert "Dia" not in client("ric_ann", "outbox", *arguments).stdout
    sent = Outbox(
        tmp_path / "box", address=address_of({"RICORDO_URL": "http://127.0.0.1:1", "RICORDO_TOKEN": "ric_ann"})
    )
    assert sent.send(lambda method, params: pytest.fail("it was sent")).answers == {}
    client("ric_new", "outbox", "send", "--any-token")
    assert "Dia" in client("ric_new", "outbox", "list").stdout


def test_without_an_outbox_nothing_is_kept(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.environment["RICORDO_OUTBOX"] = ""
    assert client("memory", "add", "Box 1")[0] == 6
    status, _, err = client("outbox", "list")
    assert (status, "RICORDO_OUTBOX is not set" in err) == (2, True)


def killed(folder: Path, *, runs: int, seed: int) -> dict[str, int]:
    """Kill clients while they add and send, with a server that stops and comes back; count what is wrong.

    Additions that a client reported must be on the server in the end, each once, in the order of the outbox.
    """
    client, dice, told, kills = Client(folder), random.Random(seed), list[str](), 0
    number = 0
    for _ in range(4):
        for is_up in (False, True):
            with served(folder) if is_up else contextlib.nullcontext():
                for _ in range(runs // 8):
                    number += 1
                    process = client.start("memory", "add", f"Box {number} holds books")
                    time.sleep(dice.uniform(0.0, 0.6))
                    if process.poll() is None:
                        os.kill(process.pid, signal.SIGKILL)
                    out, _ = process.communicate()
                    if process.returncode == 0:
                        told.append(out.partition("  ")[2].strip())
                    kills += process.returncode == -9
    with served(folder):
        client.wait()
        client("outbox", "send")
        stored = client.stored()
        waiting = len(client("outbox", "list")[1].splitlines())
    order = [int(text.split()[1]) for text in stored]
    return {
        "kills": kills,
        "acknowledged": len(told),
        "stored": len(stored),
        "lost": len(set(told) - set(stored)),
        "doubled": len(stored) - len(set(stored)),
        "out_of_order": sum(first > second for first, second in itertools.pairwise(order)),
        "waiting": waiting,
    }


@pytest.mark.slow
def test_a_client_killed_at_any_moment_loses_and_doubles_nothing(tmp_path: Path) -> None:
    found = killed(tmp_path, runs=8, seed=1)
    assert (found["lost"], found["doubled"], found["out_of_order"], found["waiting"]) == (0, 0, 0, 0), found


@pytest.mark.parametrize(
    "planted",
    [
        {"method": "memory.delete", "params": {"memory_id": "1"}},
        {"method": "memory.add", "params": ["x"]},
        {"method": "memory.add", "params": {"content": "x"}, "kept_at": "yesterday"},
        {"method": "memory.add_many", "params": {"messages": [1]}},
    ],
)
def test_only_additions_are_sent(tmp_path: Path, planted: Mapping[str, Any]) -> None:
    box, sent = Outbox(tmp_path / "box", address="here"), list[str]()
    with pytest.raises(RefusedError, match="cannot wait"):
        box.keep("memory.delete", {"memory_id": "1"})
    kept = box.keep("memory.add", {"content": "Anna likes tea"})
    values = {"address": "here", "kept_at": 0, "refused": "", **planted}
    kept.with_name(kept.name.replace("000000001", "000000002")).write_text(json.dumps(values))
    box.send(lambda method, params: sent.append(method))
    assert sent == ["memory.add"]
    assert [each.refused for each in box.waiting()] == ["damaged file"]


def test_a_folder_that_others_can_write_to_is_no_outbox(tmp_path: Path) -> None:
    """What others put there would be sent with the token of the user of `outbox send`."""
    box = Outbox(tmp_path / "box", address="here")
    box.keep("memory.add", {"content": "Anna likes tea"})
    box.folder.chmod(0o777)
    with pytest.raises(RefusedError, match="others can write"):
        box.send(lambda method, params: None)
    with pytest.raises(RefusedError, match="others can write"):
        box.keep("memory.add", {"content": "Anna likes milk"})
