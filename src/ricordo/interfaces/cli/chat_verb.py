"""The verb `chat`: an assistant at the terminal that remembers."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ricordo.errors import RicordoError
from ricordo.interfaces.cli import show_hits
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.screen import Answer, dim, one_line, shown
from ricordo.interfaces.cli.verb import blocking_verb

if TYPE_CHECKING:
    from ricordo.interfaces.cli.talking import Talk
    from ricordo.model import Hit

_HELP = {
    "/memory [QUESTION]": "what is remembered that answers a question; without one, what was recalled last",
    "/why": "why that was recalled",
    "/forget NUMBER|ID|WORDS": "take a memory out of every answer",
    "/off-the-record": "keep nothing from here on, until /on-the-record",
    "/new": "end this session; what was said in it becomes knowledge",
    "/help": "this",
    "/quit": "leave; Ctrl-D does, too. Ctrl-C stops an answer",
}
_NEEDS = """No language model is chosen, so nobody answers; what you type is looked up in the memory. What it takes:
  ricordo chat --model ollama:NAME          a model of your own machine's, at no cost
  ricordo chat --model openai:NAME          with a key in $OPENAI_API_KEY
  ricordo chat --model anthropic:NAME       with a key in $ANTHROPIC_API_KEY
  ricordo chat --model http://HOST/v1#NAME  any server that speaks OpenAI's protocol
or $RICORDO_MODEL, or `model` and `chat_model` in ricordo.toml."""


@blocking_verb("chat", panel="Try it")
def chat(
    door: Door,
    message: Annotated[
        str | None, typer.Argument(metavar="[MESSAGE]", help="Say this, and leave after the answer; else it is a talk.")
    ] = None,
) -> Answer:
    """Talk with a language model that remembers you. Without a model, ask the memory itself."""
    from ricordo.interfaces.cli.talking import Talk  # brings the memory: `--help` need not wait for it

    with door.waiting("Opening the memory…"):
        talk = Talk(door)
    talking = _Talking(door, talk)
    try:
        talking.begin(is_alone=message is not None)
        if message is not None:
            talking.line(message)
        else:
            talking.all_lines()
    finally:
        with door.waiting("Writing what is left…"):
            talk.close()
    return Answer(data={"model": talk.model, "turns": talking.turns}, show=lambda out: None)


class _Talking:
    """A chat line by line. `turns` is what was said, for those who read JSON."""

    def __init__(self, door: Door, talk: Talk) -> None:
        self._door = door
        self._talk = talk
        self._listed: list[Hit] = []
        self._is_live = door.out.is_terminal and not door.given.as_json
        self.turns: list[dict[str, object]] = []
        self._commands: Mapping[str, Callable[[str], None]] = {
            "/memory": self._memory,
            "/why": self._why,
            "/forget": self._forget,
            "/help": self._help,
            "/off-the-record": lambda _: self._off(True),
            "/on-the-record": lambda _: self._off(False),
            "/new": self._new,
        }

    def begin(self, *, is_alone: bool) -> None:
        """Say what is needed to begin, and no more."""
        talk = self._talk
        if talk.model is None:
            self._door.err.print(dim(_NEEDS), soft_wrap=True)
        elif self._is_live and not is_alone:
            going = " We go on where we were." if talk.goes_on() else ""
            self._door.notice(f"You talk with {talk.model}.{going} /help lists what else you can type.")
        if talk.is_off_record():
            self._door.notice("This is off the record: nothing is kept until /on-the-record.")
        for each in talk.left_over():
            self._door.notice(f"This could not be done: {each}")

    def all_lines(self) -> None:
        """Read lines until there are no more. Ctrl-C at an empty prompt leaves when it comes twice."""
        if sys.stdin.isatty():
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401  # editing and the lines before, by the arrow keys
        interrupts = 0
        while interrupts < 2:
            try:
                text = input(self._prompt()) if sys.stdin.isatty() else _piped()
                interrupts = 0
                if text.strip() in ("/quit", "/exit"):
                    return
                self.line(text)
            except EOFError:
                if self._is_live:
                    self._door.out.print()
                return
            except KeyboardInterrupt:
                interrupts += 1
                if interrupts < 2:
                    self._door.err.print(dim("\nCtrl-C once more, or /quit, to leave."))

    def _prompt(self) -> str:
        return "you (off the record)> " if self._talk.is_off_record() else "you> "

    def line(self, text: str) -> None:
        """Do what a line says. What goes wrong is told, and the talk goes on."""
        text = text.strip()
        if not text:
            return
        try:
            if text.startswith("/"):
                name, _, rest = text.partition(" ")
                self._commands.get(name, self._unknown)(rest.strip())
            elif self._talk.model is None:
                self._search(text)
            else:
                self._say(text)
        except RicordoError as error:
            if self._door.given.as_json:
                self.turns.append({"text": text, "error": {"code": error.code, "message": error.message}})
            self._door.err.print(
                Text.assemble((shown(error.message), "red"), dim(f"  {shown(error.hint)}")), soft_wrap=True
            )

    def _say(self, text: str) -> None:
        out, is_stopped = self._door.out, False
        try:
            for piece in self._talk.answer(text):
                if not self._door.given.as_json:
                    out.print(Text(shown(piece)), end="", soft_wrap=True)
                    out.file.flush()
        except KeyboardInterrupt:
            is_stopped = True
        finally:
            if not self._door.given.as_json:
                out.print()
        last = self._talk.last
        if last is not None:
            self.turns.append(
                {
                    "text": text,
                    "answer": last.answer,
                    "session": last.session,
                    "recalled": last.context,
                    "ended": last.ended,
                }
            )
            for each in last.problems:
                self._door.notice(each)
        if is_stopped:
            self._door.notice("Stopped; what came so far is kept.")
        elif last is not None and last.ended == "cut":
            self._door.notice("The answer ended where it became too long.")

    # commands

    def _help(self, _: str) -> None:
        for name, meaning in _HELP.items():
            self._door.err.print(Text.assemble((f"{name:<26}", "bold"), dim(meaning)), soft_wrap=True)

    def _unknown(self, _: str) -> None:
        self._door.notice("There is no such command; /help lists those there are.")

    def _search(self, text: str) -> None:
        results = self._talk.search(text)
        self._listed = list(results.hits)
        self.turns.append({"text": text, "hits": results.hits})
        if not self._door.given.as_json:
            show_hits.hits(self._door.out, text, results)

    def _memory(self, question: str) -> None:
        if question:
            self._search(question)
            return
        last = self._talk.last
        if last is not None and last.context:
            self._door.out.print(Text(shown(last.context)), soft_wrap=True)
            self._door.notice("That was put before the model for your last message. /why says why.")
        elif last is not None:
            self._door.notice("Nothing was recalled for your last message. /memory QUESTION asks for something.")
        else:
            counts = self._talk.run(self._talk.memory.stats()).nodes
            known = ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "nothing yet"
            self._door.notice(f"Remembered so far: {known}. /memory QUESTION asks for something.")

    def _why(self, _: str) -> None:
        recalled = self._talk.recalled()
        if recalled is None:
            self._door.notice("Nothing was recalled for your last message.")
            return
        self._listed = list(recalled.hits)
        trace = recalled.results.trace
        terms = frozenset(trace.terms if trace else ())
        for number, hit in enumerate(recalled.hits, start=1):
            why = show_hits.reason(hit, terms, interval=trace.interval if trace else "")
            line = Text.assemble((f"{number:>2}  ", "dim"), show_hits.said(hit, terms), f"\n    found {why}")
            self._door.out.print(line.append(f"; {hit.event_time_relative}", "dim"), soft_wrap=True)
        if recalled.others:
            self._door.notice(f"{recalled.others} more stand in it because of whom or what the others are about.")
        if recalled.hits:
            self._door.notice("/forget NUMBER takes one out.")

    def _forget(self, which: str) -> None:
        if which.isdecimal() and 1 <= int(which) <= len(self._listed):
            which = self._listed[int(which) - 1].id
        elif not which:
            self._door.notice("Which? /forget and a number of the last list, an id, or words to look for.")
            return
        elif " " in which or not _looks_like_id(which):
            self._search(which)
            if self._listed:
                self._door.notice("Which of these? /forget NUMBER")
            return
        content = self._talk.forget(which)
        self._door.notice(f"Forgotten: “{one_line(content, most=100)}”. `ricordo restore` brings it back.")

    def _off(self, is_off: bool) -> None:
        self._talk.off_record(is_off)
        if is_off:
            self._door.notice("From here on nothing is kept, until /on-the-record. What was said before is.")
        else:
            self._door.notice("From here on what is said is kept again.")

    def _new(self, _: str) -> None:
        is_over = self._talk.new_session()
        self._door.notice("A new session begins." if is_over else "Nothing was said in this one yet.")


def _looks_like_id(text: str) -> bool:
    """An id, or the end of one as [id:...] shows it: words have no digit."""
    inner = text.removeprefix("[id:").removesuffix("]")
    return len(inner) >= 8 and any(char.isdigit() for char in inner)


def _piped() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line
