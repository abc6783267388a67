"""`ricordo chat` in a real terminal, with a model behind a real server, and a movable clock."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interfaces.conftest import Cli, clean_environment
from tests.models.language.serving import ModelServer
from tests.models.language.test_streaming import delta, streamed

from ricordo import Memory

MINUTE = 60_000
RUN = """
import os, sys, time
import ricordo.clock
shift = int(os.environ["SHIFT_MS"])
ricordo.clock.SystemClock.now = lambda self: time.time_ns() // 1_000_000 + shift
from ricordo.storage import faults
DIES_AT = os.environ.get("DIES_AT")
ASKED, WRITTEN = [], []
def may_die(point):
    if ASKED and point == "apply: after nodes":
        WRITTEN.append(1)
    if WRITTEN and point == DIES_AT:
        os._exit(9)
faults.install(may_die)
from ricordo.models.language.servers import OpenAIModel
complete = OpenAIModel.complete
async def noted(*given, **named):
    ASKED.append(1)
    if DIES_AT == "asking":
        os._exit(9)
    return await complete(*given, **named)
OpenAIModel.complete = noted
from ricordo.interfaces.cli import run
sys.exit(run())
"""
"""The program with its clock moved, killed at a point of the commit after a model's answer. Vectors are
written in the background meanwhile; their commits hold no nodes and do not count."""


class Assistant:
    """The server's answers: it replies from its prompt, and consolidates a conversation."""

    def __init__(self) -> None:
        self.taken_in: list[str] = []
        self.prompts: list[list[dict]] = []

    def __call__(self, asked: dict):
        if not asked.get("stream"):
            return self._learn(asked)
        messages = asked["messages"]
        self.prompts.append(messages)
        said, known = messages[-1]["content"], "\n".join(each["content"] for each in messages[:-1])
        if "slowly" in said:
            words = [f"word{number} " for number in range(2_000)]
        elif "in Markdown" in said:
            words = ["**Important:** ", *["bookshops of the neighbourhood "] * 9, "end."]
        elif "parrot called" in said:
            words = ["It is ", "called Coco."] if "Coco" in known else ["I do not", " know."]
        else:
            words = ["I see", "."]
        return streamed(*[delta(each) for each in words], delta(None, "stop"))(asked)

    def _learn(self, asked: dict):
        text = "\n".join(each["content"] for each in asked["messages"])
        title = asked["response_format"]["json_schema"]["name"]
        answer: object = {"verdicts": []}
        if title == "Proposal":
            self.taken_in.append(text)
            fact = {
                "text": "The user's parrot is called Coco",
                "kind": "fact",
                "category": "knowledge",
                "about": [],
                "slot": "",
                "evidence": ["e1"],
                "said": True,
                "confidence": 0.9,
            }
            answer = {
                "facts": [fact] if "Coco" in text else [],
                "entities": [],
                "relations": [],
                "causes": [],
                "summary": "A talk.",
            }
        choice = {"message": {"content": json.dumps(answer)}, "finish_reason": "stop"}
        return 200, {}, json.dumps({"choices": [choice]})


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        server.assistant = server.always = Assistant()
        yield server


class Terminal:
    """A chat in its own pseudo-terminal."""

    def __init__(self, cli: Cli, url: str, *, minutes: float = 0, dies_at: str = "") -> None:
        self.master, slave = pty.openpty()
        environment = {
            **clean_environment(),
            "RICORDO_STORE": str(cli.store),
            "RICORDO_EMBEDDER": "hashing",
            "TERM": "dumb",
            "RICORDO_MODEL": f"{url}#tiny" if url else "none",
            "SHIFT_MS": str(int(minutes * MINUTE)),
            "DIES_AT": dies_at,
            "RICORDO_DURABILITY": "process",
        }
        self.child = subprocess.Popen(
            [sys.executable, "-c", RUN, "chat"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: _own_terminal(slave),
        )
        os.close(slave)
        self.heard = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        os.close(self.master)

    def until(self, pattern: str, *, seconds: float = 60) -> str:
        """Read until the pattern and consume it."""
        ends = time.monotonic() + seconds
        while not (found := re.search(pattern, self.heard)):
            assert time.monotonic() < ends, f"{pattern!r} never came: {self.heard!r}"
            assert self._hears(0.2), f"it ended before {pattern!r}: {self.heard!r}"
        said, self.heard = self.heard[: found.end()], self.heard[found.end() :]
        return said

    def _hears(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            part = os.read(self.master, 65_536)
        except OSError:  # the other end is closed
            return False
        self.heard += part.decode(errors="replace").replace("\r\n", "\n")
        return bool(part)

    def type(self, line: str) -> None:
        self.until("you( .off the record.)?> ")
        os.write(self.master, line.encode() + b"\n")

    def ask(self, line: str, answer: str) -> str:
        self.type(line)
        return self.until(answer)

    def interrupt(self) -> None:
        # A prompt is shown shortly before input is read, and a signal in between waits for a key.
        time.sleep(0.5)
        os.write(self.master, b"\x03")

    def leave(self) -> None:
        self.type("/quit")
        self.ended()
        assert self.child.returncode == 0

    def ended(self, seconds: float = 60) -> int:
        ends = time.monotonic() + seconds
        while self._hears(0.1) and time.monotonic() < ends:
            pass
        return self.child.wait(timeout=120)


def _own_terminal(slave: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell may start tests with SIGINT ignored


def learnt(cli: Cli) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the sessions of each run, and the knowledge."""

    async def look():
        async with Memory.open(cli.store, embedder="hashing") as memory:
            runs = [run.sessions for run in await memory.runs() if run.state == "done"]
            known = (await memory.list(type="semantic")).nodes
            return runs, [node.content for node in known if node.category != "summary"]

    return asyncio.run(look())


def consolidated(cli: Cli, terminal: Terminal, *, runs: int) -> None:
    for _ in range(150):
        if len(learnt(cli)[0]) >= runs:
            return
        terminal._hears(0.1)
    raise AssertionError(f"{learnt(cli)}; {terminal.heard}")


def test_a_chat_remembers_across_restarts_and_sessions(cli: Cli, server: ModelServer) -> None:
    with Terminal(cli, server.url) as terminal:
        terminal.until("Chatting with http:tiny")
        terminal.ask("My parrot is called Coco", "I see\\.")
        terminal.leave()
    with Terminal(cli, server.url, minutes=5) as terminal:
        terminal.until("The last session continues")
        terminal.ask("What is my parrot called?", "It is called Coco\\.")
        terminal.leave()
    assert learnt(cli) == ([], [])
    with Terminal(cli, server.url, minutes=36) as terminal:  # more than half an hour after the last message
        consolidated(cli, terminal, runs=1)
        terminal.ask("What is my parrot called?", "It is called Coco\\.")
        shown = terminal.ask("/memory", "The model read this with your last message")
        assert "The user's parrot is called Coco" in shown
        assert "found by the words" in terminal.ask("/why", "/forget NUMBER removes one")
        terminal.leave()
    with Terminal(cli, server.url, minutes=120) as terminal:
        consolidated(cli, terminal, runs=2)
        terminal.leave()
    runs, known = learnt(cli)
    assert len({session for run in runs for session in run}) == len(runs) == 2
    assert known == ["The user's parrot is called Coco"]
    assistant: Assistant = server.assistant
    assert len(assistant.taken_in) == 2
    assert "The user's parrot is called Coco" not in assistant.taken_in[1]  # recalled and not learnt again
    system = assistant.prompts[-1][0]["content"]
    assert "<recalled-memory>" in system and "Coco" in system


@pytest.mark.slow
@pytest.mark.parametrize("dies_at", ["asking", "writer: after commit"])
def test_a_session_killed_during_consolidation_is_consolidated_once(cli: Cli, server, dies_at: str) -> None:
    with Terminal(cli, server.url) as terminal:
        terminal.ask("My parrot is called Coco", "I see\\.")
        terminal.leave()
    with Terminal(cli, server.url, minutes=31, dies_at=dies_at) as terminal:
        assert terminal.ended() == 9
    for minutes in (31.1, 31.2):
        with Terminal(cli, server.url, minutes=minutes) as terminal:
            consolidated(cli, terminal, runs=1)
            terminal.leave()
    runs, known = learnt(cli)
    assert (len(runs), known) == (1, ["The user's parrot is called Coco"])
    assert len(server.assistant.taken_in) == 1, "a page is paid for once"


def test_off_the_record_forgetting_interrupts_and_help(cli: Cli, server: ModelServer) -> None:
    with Terminal(cli, server.url) as terminal:
        terminal.ask("/off-the-record", "nothing is stored from here on, until /on-the-record")
        terminal.ask("My secret is a canary", "I see\\.")
        terminal.leave()
    with Terminal(cli, server.url, minutes=45) as terminal:
        terminal.until("off the record: nothing is stored")
        terminal.ask("The canary sings", "I see\\.")
        terminal.ask("/on-the-record", "is stored again")
        terminal.ask("Talk slowly", "word1 ")
        terminal.interrupt()
        terminal.until("Stopped|you> ")
        if "Stopped" not in terminal.heard:
            os.write(terminal.master, b"\n")
        terminal.ask("/help", "/off-the-record")
        terminal.ask("/nothing", "no such command")
        terminal.until("you> ")
        terminal.interrupt()
        terminal.until("Press Ctrl-C again")
        terminal.interrupt()
        assert terminal.ended() == 0
    texts = [node.content for node in _episodes(cli)]
    assert [text for text in texts if "canary" in text.lower()] == [] and "Talk slowly" in texts
    for file in cli.folder.iterdir():
        assert b"canary" not in file.read_bytes().lower()
    cli("remember", "The user likes green tea")
    with Terminal(cli, "") as terminal:
        terminal.until("No language model is set")
        terminal.until("openai:NAME")
        terminal.ask("what tea does the user like", "green tea")
        terminal.ask("/forget 1", "Forgotten: “The user likes green tea”")
        assert "green tea" not in terminal.ask("what tea does the user like", "Nothing|by related words|found")
        terminal.leave()


def test_an_answer_is_shown_as_markdown_and_wrapped_between_words(cli: Cli, server: ModelServer) -> None:
    with Terminal(cli, server.url) as terminal:
        answer = terminal.ask("Tell me in Markdown", "end\\.").rpartition("Important:")[2]
        terminal.leave()
    assert "**" not in answer
    lines = answer.splitlines()
    assert len(lines) > 3
    assert [line for line in lines if len(line) > 100] == []
    assert set(answer.split()) == {"bookshops", "of", "the", "neighbourhood", "end."}


def _episodes(cli: Cli):
    async def look():
        async with Memory.open(cli.store, embedder=None) as memory:
            return (await memory.list(type="episodic", limit=100)).nodes

    return asyncio.run(look())


def test_one_message_and_lines_from_a_pipe_are_answered_as_json(cli: Cli, server: ModelServer) -> None:
    model = ("--model", f"{server.url}#tiny")
    once = cli("chat", "My parrot is called Coco", "--json", *model).json
    assert (once["model"], once["turns"][0]["answer"]) == ("http:tiny", "I see.")
    piped = cli.process("chat", "--json", *model, stdin=b"What is my parrot called?\n\n/quit\nnever read\n").json
    assert [turn["answer"] for turn in piped["turns"]] == ["It is called Coco."]
    server.always = lambda asked: (401, {}, "no")
    refused = cli("chat", "hello", *model)
    assert "refused the key" in refused.err
    nobody = cli("chat", "parrot", "--json").json
    assert nobody["model"] is None and "Coco" in nobody["turns"][0]["hits"][0]["content"]
    assert cli("chat", "hello", "--model", "nonsense").status == 2


def test_without_a_model_what_it_is_told_to_remember_is_stored(cli: Cli) -> None:
    told = cli("chat", "Please remember that I parked in row 7")
    assert "I parked in row 7" in told.out and told.status == 0
    assert [each["content"] for each in cli("list", "--json").json["nodes"]] == ["I parked in row 7"]
    assert "Nothing in the memory answers" in cli("chat", "hi").out
    asked = cli("chat", "Do you remember where I parked?", "--json").json
    assert asked["turns"][0]["hits"][0]["content"] == "I parked in row 7"
    lines = b"/off-the-record\nremember that I am hungry\n/on-the-record\nMerk dir: Anna mag Tee\n"
    piped = cli.process("chat", "--json", stdin=lines)
    assert "Not stored" in piped.err and piped.json["turns"][-1]["remembered"]["content"] == "Anna mag Tee"
    assert "hungry" not in cli("list").out


def test_model_output_cannot_control_the_terminal(cli: Cli, server: ModelServer) -> None:
    server.always = streamed(delta("red: \x1b["), delta("31m\x07 end"), delta(None, "stop"))
    out = cli("chat", "hello", "--model", f"{server.url}#tiny").out
    assert "\x1b" not in out and "\x07" not in out and "end" in out


def test_a_termination_signal_finishes_running_work(cli: Cli, server: ModelServer) -> None:
    with Terminal(cli, server.url) as terminal:
        terminal.ask("My parrot is called Coco", "I see\\.")
        terminal.until("you> ")
        terminal.child.send_signal(signal.SIGKILL)
        terminal.ended()
    assert [node.content for node in _episodes(cli)] == ["I see.", "My parrot is called Coco"]


def test_chat_works_with_a_folder_store(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    place = f"{tmp_path}/memories/"
    done = cli("--store", place, "chat", "My parrot is called Coco", "--model", f"{server.url}#tiny")
    assert (done.status, done.out.strip()) == (0, "I see.")
    assert (tmp_path / "memories.host").exists()
    assert "Coco" in cli("--store", place, "search", "parrot").out
