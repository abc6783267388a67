"""The command `chat`: an assistant at the terminal that remembers.

Memory, host and conversation run in an event loop in a second thread, which streams answers, ends sessions and runs
jobs. The main thread reads lines from the keyboard and handles Ctrl-C.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import sys
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from rich.text import Text

from ricordo.errors import RicordoError
from ricordo.interfaces.cli import hits
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.terminal import Output, dim, one_line, safe
from ricordo.interfaces.cli.write import remember
from ricordo.interfaces.serialize import resolve_id
from ricordo.text.analyzer import QUESTION_MARKS
from ricordo.text.languages import languages_of
from ricordo.text.sentences import plural
from ricordo.text.work import to_remember

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from ricordo.host import Conversation, ConversationState, Exchange
    from ricordo.model import Hit, Results


T = TypeVar("T")

_POLL_S = 0.1
_RECALLED = 60


@command
def chat(ctx: CommandContext, message: str | None = None) -> Output:
    with ctx.status("Opening the memory…"):
        chat = _Chat(ctx)
    try:
        chat.greet(is_single=message is not None)
        if message is not None:
            chat.run_line(message)
        else:
            chat.run_lines()
    finally:
        with ctx.status("Saving…"):
            chat.close()
    data = {"model": chat.model, "turns": chat.turns}
    return Output(data=data, show=lambda out: None, exit_status=chat.exit_status)


class _Chat:
    """A line-by-line chat with the chosen model, or without one. Blocking; not thread-safe.

    `turns` are the messages, for `--json`.
    """

    def __init__(self, ctx: CommandContext) -> None:
        """Raises:
        RicordoError: The memory or the journal cannot be opened, or there is no such model.
        """
        from ricordo.host import ConversationKey  # a slow import that `--help` should not wait for
        from ricordo.loop_thread import Portal

        # Errors in the background are shown by the chat itself, so that log lines do not interrupt it.
        logging.getLogger("ricordo").addHandler(logging.NullHandler())
        self._ctx = ctx
        self._is_single = False
        self._is_live = ctx.out.is_terminal and not ctx.options.as_json
        self._listed: list[Hit] = []
        self.turns: list[dict[str, object]] = []
        self.exit_status = 0
        """The exit status of the first message that failed; 0 in an interactive chat."""
        self._key = ConversationKey(owner=ctx.owner, chat=ctx.chat or "", channel="terminal")
        self._conversation: Conversation | None = None
        self._answering: asyncio.Task[None] | None = None
        self._stack = contextlib.AsyncExitStack()
        self._portal = Portal()
        try:
            self._run(self._open())
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
        self._store = await self._stack.enter_async_context(
            Memory.open(
                ctx.location,
                embedder=ctx.embedder,
                model=models.consolidation,
                settings=settings,
                scope=Scope(owner=ctx.owner, chat=ctx.chat),
            )
        )
        await self._store.warm()
        extension = MemoryExtension(self._store, settings, tools=agent_tools(self._store))
        self._host = await self._stack.enter_async_context(
            Host(ctx.location, [extension], settings=settings, models=models)
        )
        self._conversation = None if model is None else Conversation(self._host, model, self._key)
        self.model = None if model is None else model.name

    def close(self) -> None:
        """Finish pending writes and close everything."""
        with contextlib.suppress(RicordoError):
            self._run(self._stack.aclose())
        self._portal.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop and wait for its result."""
        return self._portal.call(work)

    @property
    def _last(self) -> Exchange | None:
        """The latest message and its answer."""
        return None if self._conversation is None else self._conversation.last

    def _state(self) -> ConversationState | None:
        return self._run(self._host.router.standing(self._key))

    def _is_off_record(self) -> bool:
        state = self._state()
        return state is not None and state.is_off_record

    # lines

    def greet(self, *, is_single: bool) -> None:
        """Print a short introduction."""
        self._is_single = is_single
        if self.model is None:
            self._ctx.err.print(dim(self._ctx.spec["no_model"]), soft_wrap=True)
        elif self._is_live and not is_single:
            state = self._state()
            resumed = " The last session continues." if state is not None and state.session is not None else ""
            self._ctx.notice(f"Chatting with {self.model}.{resumed} /help lists the commands.")
        if self._is_off_record():
            self._ctx.notice("This chat is off the record: nothing is stored until /on-the-record.")
        for each in self._run(self._host.bus.dead_letters(5)):
            tries = plural(each.tries, "try", "tries")
            self._ctx.notice(f"A background job failed: {each.topic} ({each.reason}, {tries})")

    def run_lines(self) -> None:
        """Read lines until the end of input, or until Ctrl-C is pressed twice in a row at the prompt."""
        if sys.stdin.isatty():
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401  # line editing and history
        interrupts = 0
        while interrupts < 2:
            try:
                text = self._typed_line() if sys.stdin.isatty() else _piped_line()
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

    def _typed_line(self) -> str:
        return input("you (off the record)> " if self._is_off_record() else "you> ")

    def run_line(self, text: str) -> None:
        """Handle one line. Print errors and continue."""
        text = text.strip()
        if not text:
            return
        try:
            if text.startswith("/"):
                name, _, rest = text.partition(" ")
                self._command(name, rest.strip())
            elif self.model is not None:
                self._say(text)
            elif (asked := to_remember(text, languages_of(text))) and not text.endswith(QUESTION_MARKS):
                self._remember(text, asked)
            else:
                self._search(text)
        except RicordoError as error:
            if not (self._is_live and sys.stdin.isatty()) or self._is_single:
                self.exit_status = self.exit_status or error.exit_status
            if self._ctx.options.as_json:
                self.turns.append({"text": text, "error": {"code": error.code, "message": error.message}})
            message = Text.assemble((safe(error.message), "red"), dim(f"  {safe(error.hint)}"))
            self._ctx.err.print(message, soft_wrap=True)

    # a message and its answer

    def _say(self, text: str) -> None:
        out, is_stopped, as_json = self._ctx.out, False, self._ctx.options.as_json
        try:
            with contextlib.nullcontext() if as_json else _Page(out) as page:
                for piece in self._answer(text):
                    if page is not None:
                        page.write(safe(piece))
        except KeyboardInterrupt:
            is_stopped = True
        last = self._last
        if last is not None:
            said = {"answer": last.answer, "session": last.session, "recalled": last.context, "ended": last.ended}
            self.turns.append({"text": text, **said, **({"did": last.did} if last.did else {})})
            for each in last.did:
                self._ctx.notice(each)
            for each in last.problems:
                self._ctx.notice(each)
        if is_stopped:
            self._ctx.notice("Stopped; what arrived so far is stored.")
        elif last is not None and last.ended == "cut":
            self._ctx.notice("The answer was cut at the maximum length.")

    def _answer(self, text: str) -> Iterator[str]:
        """Yield the answer as it arrives. If it is interrupted or not read to the end, the part so far is recorded."""
        pieces: queue.SimpleQueue[str | BaseException | None] = queue.SimpleQueue()
        self._portal.begin(self._speak(text, pieces))
        try:
            while (piece := _next(pieces)) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            self._run(self._stop())

    async def _speak(self, text: str, pieces: queue.SimpleQueue[str | BaseException | None]) -> None:
        self._answering = asyncio.current_task()
        assert self._conversation is not None
        try:
            async with contextlib.aclosing(self._conversation.say(text)) as answer:
                async for piece in answer:
                    pieces.put(piece)
            pieces.put(None)
        except BaseException as error:  # raised in the thread that reads the answer
            pieces.put(error)
            raise

    async def _stop(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
            await asyncio.gather(self._answering, return_exceptions=True)
            self._answering = None

    # commands

    def _command(self, name: str, rest: str) -> None:
        match name:
            case "/memory":
                self._memory(rest)
            case "/why":
                self._why()
            case "/forget":
                self._forget(rest)
            case "/off-the-record" | "/on-the-record":
                self._set_off_record(name == "/off-the-record")
            case "/new":
                ended = self._run(self._host.router.complete(self._key))
                self._ctx.notice("A new session begins." if ended else "Nothing has been said in this session yet.")
            case "/help":
                for command, meaning in self._ctx.spec["commands"].items():
                    self._ctx.err.print(Text.assemble((f"{command:<26}", "bold"), dim(meaning)), soft_wrap=True)
            case _:
                self._ctx.notice("There is no such command; /help lists the commands.")

    def _found(self, text: str, limit: int) -> Results:
        return self._run(self._store.search(text, limit=limit, trace=True))

    def _search(self, text: str) -> None:
        results = self._run(self._store.search(text, limit=5, trace=True, judge=True))
        if all(hit.is_relevant is False for hit in results.hits):  # "hi" asks for nothing
            results = replace(results, hits=())
        self._listed = list(results.hits)
        self.turns.append({"text": text, "hits": results.hits})
        if not self._ctx.options.as_json:
            hits.listing(self._ctx.out, text, results)

    def _remember(self, text: str, asked: str) -> None:
        if self._is_off_record():
            self._ctx.notice("Not stored: this chat is off the record until /on-the-record.")
            return
        stored = self._run(remember(self._ctx, self._store, asked))
        self.turns.append({"text": text, "remembered": stored.data})
        if stored.show is not None and not self._ctx.options.as_json:
            stored.show(self._ctx.out)

    def _memory(self, question: str) -> None:
        if question:
            self._search(question)
            return
        last = self._last
        if last is not None and last.context:
            self._ctx.out.print(Text(safe(last.context)), soft_wrap=True)
            self._ctx.notice("The model read this with your last message. /why shows the reasons.")
        elif last is not None:
            self._ctx.notice("Nothing was recalled for your last message. /memory QUESTION searches.")
        else:
            totals = self._run(self._store.stats()).nodes
            known = ", ".join(f"{count:,} {name}" for name, count in totals.items()) or "nothing yet"
            self._ctx.notice(f"Remembered so far: {known}. /memory QUESTION searches.")

    def _why(self) -> None:
        """Print why each hit was recalled, and how many more memories were found through entities."""
        from ricordo.text.prompt_text import cited

        last = self._last
        if last is None or not last.context:
            self._ctx.notice("Nothing was recalled for your last message.")
            return
        handles, results = cited(last.context), self._found(last.text, _RECALLED)
        by_handle = {hit.handle: hit for hit in results.hits}
        self._listed = [by_handle[each] for each in handles if each in by_handle]
        trace = results.trace
        terms = frozenset(trace.terms if trace else ())
        for number, hit in enumerate(self._listed, start=1):
            why = hits.reason(hit, terms, interval=trace.interval if trace else "")
            line = Text.assemble((f"{number:>2}  ", "dim"), hits.content(hit, terms), f"\n    found {why}")
            self._ctx.out.print(line.append(f"; {hit.event_time_relative}", "dim"), soft_wrap=True)
        if others := len(handles) - len(self._listed):
            found = plural(others, "more memory was", "more memories were")
            self._ctx.notice(f"{found} found through people and things in these.")
        if self._listed:
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

        async def forget() -> str:
            node = await self._store.get(await resolve_id(self._store, which.removeprefix("[id:").removesuffix("]")))
            await self._store.forget(node.id, reason="forgotten in a chat")
            return node.content

        content = one_line(self._run(forget()), most=100)
        self._ctx.notice(f"Forgotten: “{content}”. `ricordo restore` brings it back.")

    def _set_off_record(self, is_off: bool) -> None:
        async def mark() -> None:
            state = await self._host.router.standing(self._key)
            if state is not None and state.session is not None:
                await (self._store.off_record if is_off else self._store.on_record)(state.session)
            await self._host.router.off_record(self._key, is_off)

        self._run(mark())
        off = "Off the record: nothing is stored from here on, until /on-the-record."
        self._ctx.notice(off if is_off else "On the record: what is said from here on is stored again.")


class _Page:
    """Prints an answer as it arrives: as wrapped Markdown at a terminal, unchanged elsewhere.

    The current paragraph is redrawn with each piece until it is complete.
    """

    def __init__(self, out: Console) -> None:
        self._out = out
        self._text = ""
        self._live: Live | None = None

    def __enter__(self) -> _Page:
        return self

    def write(self, piece: str) -> None:
        if not self._out.is_terminal:
            self._out.print(Text(piece), end="", soft_wrap=True)
            self._out.file.flush()
            return
        self._text += piece
        while (end := _end_of_block(self._text)) is not None:
            block, self._text = self._text[:end], self._text[end:].lstrip("\n")
            self._show(block)
            self._end()
            self._out.print()
        if self._text.strip():
            self._show(self._text)

    def _show(self, text: str) -> None:
        from rich.live import Live
        from rich.markdown import Markdown

        if self._live is None:
            self._live = Live(console=self._out, auto_refresh=False, vertical_overflow="visible")
            self._live.start()
        self._live.update(Markdown(text), refresh=True)

    def _end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __exit__(self, *_: object) -> None:
        self._end()
        if not self._out.is_terminal:
            self._out.print()


def _end_of_block(text: str) -> int | None:
    """Return the end of the first complete paragraph. Blank lines inside a code fence do not end a paragraph."""
    end = text.find("\n\n")
    while end >= 0 and text[:end].count("```") % 2:
        end = text.find("\n\n", end + 2)
    return end if end >= 0 else None


def _next(pieces: queue.SimpleQueue[str | BaseException | None]) -> str | BaseException | None:
    """Return the next piece. Wait in short steps, so that Ctrl-C works on every system."""
    while True:
        with contextlib.suppress(queue.Empty):
            return pieces.get(timeout=_POLL_S)


def _looks_like_id(text: str) -> bool:
    """Return whether a text looks like an id or a short id: it contains a digit, unlike words."""
    inner = text.removeprefix("[id:").removesuffix("]")
    return len(inner) >= 8 and any(char.isdigit() for char in inner)


def _piped_line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line
