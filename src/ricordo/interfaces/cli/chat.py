"""The command `chat`: an assistant at the terminal that remembers.

Memory, host and conversation run in an event loop of their own. The main thread reads the keyboard: it waits for lines
and for Ctrl-C, while the loop streams answers, ends sessions and runs jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from rich.text import Text

from ricordo.errors import RicordoError
from ricordo.interfaces.cli import hits
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.terminal import Output, dim, one_line, safe
from ricordo.interfaces.serialize import resolve_id
from ricordo.text.wording import plural

if TYPE_CHECKING:
    from ricordo.host import Conversation, Exchange
    from ricordo.model import Hit, Results


T = TypeVar("T")

_POLL_S = 0.1
_RECALLED = 60
_COMMANDS = {
    "/memory [QUESTION]": "search the memory; without a question, show what was recalled last",
    "/why": "why that was recalled",
    "/forget NUMBER|ID|WORDS": "remove a memory from every answer",
    "/off-the-record": "store nothing from here on, until /on-the-record",
    "/new": "end this session; it becomes knowledge",
    "/help": "this list",
    "/quit": "leave, like Ctrl-D. Ctrl-C stops an answer",
}
_NO_MODEL = """No language model is set, so what you type is looked up in the memory. To chat, choose a model:
  ricordo chat --model ollama:NAME          a model on your machine, free
  ricordo chat --model openai:NAME          with a key in $OPENAI_API_KEY
  ricordo chat --model anthropic:NAME       with a key in $ANTHROPIC_API_KEY
  ricordo chat --model http://HOST/v1#NAME  any server with OpenAI's protocol
or set $RICORDO_MODEL, or `model` and `chat_model` in ricordo.toml."""


@command()
def chat(ctx: CommandContext, message: str | None = None) -> Output:
    """Chat with a language model that remembers you. Without a model, search the memory."""
    with ctx.status("Opening the memory…"):
        session = ChatSession(ctx)
    prompt = _Prompt(ctx, session)
    try:
        prompt.greet(is_single=message is not None)
        if message is not None:
            prompt.run_line(message)
        else:
            prompt.run_lines()
    finally:
        with ctx.status("Saving…"):
            session.close()
    return Output(data={"model": session.model, "turns": prompt.turns}, show=lambda out: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What was put before the model, with the reason for each hit; `others` were found by the people and things they
    are about, not by the question.
    """

    question: str
    results: Results
    hits: tuple[Hit, ...]
    others: int


class ChatSession:
    """A chat with the chosen model, or with none. Blocking; for one thread."""

    def __init__(self, ctx: CommandContext) -> None:
        """Raises:
        RicordoError: The memory or the journal cannot be opened, or there is no such model.
        """
        from ricordo.host import ConversationKey  # imports the memory: `--help` should not wait for it
        from ricordo.loop_thread import Portal

        # Background errors are reported in the chat, not between its lines.
        logging.getLogger("ricordo").addHandler(logging.NullHandler())
        self._ctx = ctx
        self._stack = contextlib.AsyncExitStack()
        self._answering: asyncio.Task[None] | None = None
        self._conversation: Conversation | None = None
        self.place = ConversationKey(owner=ctx.owner, chat=ctx.chat or "", channel="terminal")
        self._portal = Portal()
        try:
            self._portal.call(self._open())
        except BaseException:
            self.close()
            raise

    async def _open(self) -> None:
        from ricordo.host import Conversation, Host, MemoryExtension, Models
        from ricordo.interfaces.tools import agent_tools
        from ricordo.memory import Memory
        from ricordo.model import Scope

        ctx, settings = self._ctx, self._ctx.settings()
        models = Models(settings, consolidation=ctx.model)
        model = models.chat()
        self.memory = await self._stack.enter_async_context(
            Memory.open(
                ctx.location,
                embedder=ctx.embedder,
                model=models.consolidation,
                settings=settings,
                scope=Scope(owner=ctx.owner, chat=ctx.chat),
            )
        )
        await self.memory.warm()
        extension = MemoryExtension(self.memory, settings, tools=agent_tools(self.memory))
        self.host = await self._stack.enter_async_context(
            Host(ctx.location, [extension], settings=settings, models=models)
        )
        self._conversation = None if model is None else Conversation(self.host, model, self.place)
        self.model = None if model is None else model.name

    def close(self) -> None:
        """Finish pending writes and close everything."""
        with contextlib.suppress(RicordoError):
            self._portal.call(self._stack.aclose())
        self._portal.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work of the memory or the host from the keyboard's thread."""
        return self._portal.call(work)

    @property
    def last(self) -> Exchange | None:
        """The latest message and its answer."""
        return None if self._conversation is None else self._conversation.last

    # a message and its answer

    def answer(self, text: str) -> Iterator[str]:
        """Yield the answer as it arrives. An interrupt, or reading no further, ends it; what arrived is recorded.

        Raises:
            RicordoError: The model gave no answer, or broke off.
        """
        pieces: queue.SimpleQueue[str | BaseException | None] = queue.SimpleQueue()
        self._portal.begin(self._speak(text, pieces))
        try:
            while (piece := _next(pieces)) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            self._portal.call(self._stop())

    async def _speak(self, text: str, pieces: queue.SimpleQueue[str | BaseException | None]) -> None:
        self._answering = asyncio.current_task()
        assert self._conversation is not None
        try:
            async with contextlib.aclosing(self._conversation.say(text)) as answer:
                async for piece in answer:
                    pieces.put(piece)
            pieces.put(None)
        except BaseException as error:  # raised where the answer is read
            pieces.put(error)
            raise

    async def _stop(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
            await asyncio.gather(self._answering, return_exceptions=True)
            self._answering = None

    # commands

    def search(self, text: str, limit: int = 5) -> Results:
        """Return hits with their reasons."""
        return self.run(self.memory.search(text, limit=limit, trace=True))

    def recalled(self) -> Recalled | None:
        """Return the reasons for what was recalled last; None if nothing was."""
        from ricordo.text.recalled import cited

        last = self.last
        if last is None or not last.context:
            return None
        handles = cited(last.context)
        results = self.search(last.text, limit=_RECALLED)
        by_handle = {hit.handle: hit for hit in results.hits}
        found = tuple(by_handle[each] for each in handles if each in by_handle)
        return Recalled(question=last.text, results=results, hits=found, others=len(handles) - len(found))

    def forget(self, id: str) -> str:
        """Remove a memory from every answer; return its text. Raises NotFoundError: there is none."""

        async def forget() -> str:
            node = await self.memory.get(await resolve_id(self.memory, id.removeprefix("[id:").removesuffix("]")))
            await self.memory.forget(node.id, reason="forgotten in a chat")
            return node.content

        return self.run(forget())

    def set_off_record(self, is_off: bool) -> None:
        """Store nothing of this conversation from here on, or store it again."""

        async def mark() -> None:
            standing = await self.host.router.standing(self.place)
            if standing is not None and standing.session is not None:
                marking = self.memory.off_record if is_off else self.memory.on_record
                await marking(standing.session)
            await self.host.router.off_record(self.place, is_off)

        self.run(mark())

    def is_off_record(self) -> bool:
        standing = self.run(self.host.router.standing(self.place))
        return standing is not None and standing.is_off_record

    def is_resumed(self) -> bool:
        """Return whether an earlier session goes on."""
        standing = self.run(self.host.router.standing(self.place))
        return standing is not None and standing.session is not None

    def new_session(self) -> bool:
        """End the session; return whether there was one."""
        return self.run(self.host.router.complete(self.place)) is not None

    def failed_jobs(self) -> Sequence[str]:
        """Return what the host could not do, in words."""
        letters = self.run(self.host.bus.dead_letters(5))
        return [f"{each.topic} ({each.reason}, {plural(each.tries, 'try', 'tries')})" for each in letters]


def _next(pieces: queue.SimpleQueue[str | BaseException | None]) -> str | BaseException | None:
    """Wait in short steps: an interrupt must come through on every system."""
    while True:
        with contextlib.suppress(queue.Empty):
            return pieces.get(timeout=_POLL_S)


class _Prompt:
    """The chat line by line. `turns` is what was said, for JSON."""

    def __init__(self, ctx: CommandContext, session: ChatSession) -> None:
        self._ctx = ctx
        self._session = session
        self._listed: list[Hit] = []
        self._is_live = ctx.out.is_terminal and not ctx.options.as_json
        self.turns: list[dict[str, object]] = []
        self._commands: Mapping[str, Callable[[str], None]] = {
            "/memory": self._memory,
            "/why": self._why,
            "/forget": self._forget,
            "/help": self._help,
            "/off-the-record": lambda _: self._set_off_record(True),
            "/on-the-record": lambda _: self._set_off_record(False),
            "/new": self._new,
        }

    def greet(self, *, is_single: bool) -> None:
        """Print what is needed to begin, and no more."""
        session = self._session
        if session.model is None:
            self._ctx.err.print(dim(_NO_MODEL), soft_wrap=True)
        elif self._is_live and not is_single:
            resumed = " The last session goes on." if session.is_resumed() else ""
            self._ctx.notice(f"Chatting with {session.model}.{resumed} /help lists the commands.")
        if session.is_off_record():
            self._ctx.notice("This chat is off the record: nothing is stored until /on-the-record.")
        for each in session.failed_jobs():
            self._ctx.notice(f"A background job failed: {each}")

    def run_lines(self) -> None:
        """Read lines until there are no more. Two Ctrl-C in a row at the prompt leave."""
        if sys.stdin.isatty():
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401  # line editing and history
        interrupts = 0
        while interrupts < 2:
            try:
                text = input(self._prompt()) if sys.stdin.isatty() else _piped_line()
                interrupts = 0
                if text.strip() in ("/quit", "/exit"):
                    return
                self.run_line(text)
            except EOFError:
                if self._is_live:
                    self._ctx.out.print()
                return
            except KeyboardInterrupt:
                interrupts += 1
                if interrupts < 2:
                    self._ctx.err.print(dim("\nPress Ctrl-C again, or type /quit, to leave."))

    def _prompt(self) -> str:
        return "you (off the record)> " if self._session.is_off_record() else "you> "

    def run_line(self, text: str) -> None:
        """Run one line. An error is printed, and the chat goes on."""
        text = text.strip()
        if not text:
            return
        try:
            if text.startswith("/"):
                name, _, rest = text.partition(" ")
                self._commands.get(name, self._unknown)(rest.strip())
            elif self._session.model is None:
                self._search(text)
            else:
                self._say(text)
        except RicordoError as error:
            if self._ctx.options.as_json:
                self.turns.append({"text": text, "error": {"code": error.code, "message": error.message}})
            message = Text.assemble((safe(error.message), "red"), dim(f"  {safe(error.hint)}"))
            self._ctx.err.print(message, soft_wrap=True)

    def _say(self, text: str) -> None:
        out, is_stopped, as_json = self._ctx.out, False, self._ctx.options.as_json
        try:
            for piece in self._session.answer(text):
                if not as_json:
                    out.print(Text(safe(piece)), end="", soft_wrap=True)
                    out.file.flush()
        except KeyboardInterrupt:
            is_stopped = True
        finally:
            if not as_json:
                out.print()
        last = self._session.last
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
                self._ctx.notice(each)
        if is_stopped:
            self._ctx.notice("Stopped; what arrived so far is stored.")
        elif last is not None and last.ended == "cut":
            self._ctx.notice("The answer was cut at the maximum length.")

    # commands

    def _help(self, _: str) -> None:
        for name, meaning in _COMMANDS.items():
            self._ctx.err.print(Text.assemble((f"{name:<26}", "bold"), dim(meaning)), soft_wrap=True)

    def _unknown(self, _: str) -> None:
        self._ctx.notice("There is no such command; /help lists the commands.")

    def _search(self, text: str) -> None:
        results = self._session.search(text)
        self._listed = list(results.hits)
        self.turns.append({"text": text, "hits": results.hits})
        if not self._ctx.options.as_json:
            hits.listing(self._ctx.out, text, results)

    def _memory(self, question: str) -> None:
        if question:
            self._search(question)
            return
        last = self._session.last
        if last is not None and last.context:
            self._ctx.out.print(Text(safe(last.context)), soft_wrap=True)
            self._ctx.notice("The model read this with your last message. /why shows the reasons.")
        elif last is not None:
            self._ctx.notice("Nothing was recalled for your last message. /memory QUESTION searches.")
        else:
            totals = self._session.run(self._session.memory.stats()).nodes
            known = ", ".join(f"{count:,} {name}" for name, count in totals.items()) or "nothing yet"
            self._ctx.notice(f"Remembered so far: {known}. /memory QUESTION searches.")

    def _why(self, _: str) -> None:
        recalled = self._session.recalled()
        if recalled is None:
            self._ctx.notice("Nothing was recalled for your last message.")
            return
        self._listed = list(recalled.hits)
        trace = recalled.results.trace
        terms = frozenset(trace.terms if trace else ())
        for number, hit in enumerate(recalled.hits, start=1):
            why = hits.reason(hit, terms, interval=trace.interval if trace else "")
            line = Text.assemble((f"{number:>2}  ", "dim"), hits.content(hit, terms), f"\n    found {why}")
            self._ctx.out.print(line.append(f"; {hit.event_time_relative}", "dim"), soft_wrap=True)
        if recalled.others:
            self._ctx.notice(f"{recalled.others} more are about the people or things that the others mention.")
        if recalled.hits:
            self._ctx.notice("/forget NUMBER removes one.")

    def _forget(self, which: str) -> None:
        if which.isdecimal() and 1 <= int(which) <= len(self._listed):
            which = self._listed[int(which) - 1].id
        elif not which:
            self._ctx.notice("Which one? Give a number of the last list, an id, or words to look for.")
            return
        elif " " in which or not _looks_like_id(which):
            self._search(which)
            if self._listed:
                self._ctx.notice("Which of these? /forget NUMBER")
            return
        content = self._session.forget(which)
        self._ctx.notice(f"Forgotten: “{one_line(content, most=100)}”. `ricordo restore` brings it back.")

    def _set_off_record(self, is_off: bool) -> None:
        self._session.set_off_record(is_off)
        if is_off:
            self._ctx.notice("Off the record: nothing is stored from here on, until /on-the-record.")
        else:
            self._ctx.notice("On the record: what is said from here on is stored again.")

    def _new(self, _: str) -> None:
        is_over = self._session.new_session()
        self._ctx.notice("A new session begins." if is_over else "Nothing has been said in this session yet.")


def _looks_like_id(text: str) -> bool:
    """Return whether it is an id, or the end of one as [id:...] shows it: words have no digit."""
    inner = text.removeprefix("[id:").removesuffix("]")
    return len(inner) >= 8 and any(char.isdigit() for char in inner)


def _piped_line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line
