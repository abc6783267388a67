"""Output for people: consoles, text without control characters, tables, and progress bars on standard error."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from string import Formatter
from typing import TYPE_CHECKING, Any, TextIO, cast
from zoneinfo import ZoneInfo

import click
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ricordo.clock import handle_of
from ricordo.ports import Progress
from ricordo.text.sentences import shortened

if TYPE_CHECKING:
    from ricordo.memory import Memory

# The width without a terminal (in jobs and tests): rich's default of 80 would truncate tables.
_FILE_WIDTH = 120
_POLL_S = 0.2
_PRINTED_S = 10.0

# Memories may come from the web. Their text must not move the cursor, change the window's title or reverse a line.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output of a command: data for `--json`, and a function that prints it, unless the verb has a view."""

    data: object
    show: Callable[[Console], None] | None = None
    exit_status: int = 0


def results_console() -> Console:
    """Return the console for results: standard output."""
    return _console(sys.stdout)


def notices_console() -> Console:
    """Return the console for progress, hints and errors: standard error."""
    return _console(sys.stderr)


_LINE_BREAK = "↵"
_PADDING = re.compile(r"(?<! ) +((?:\x1b\[[0-9;]*m)*)(?=\n)")


class _Console(Console):
    """A console that does not end the program itself if the reader of its output is gone, such as `head`."""

    def on_broken_pipe(self) -> None:
        discard_stdout()
        raise  # called while the BrokenPipeError is handled


class _Trimmed:
    """A stream without spaces at the ends of lines. Tables are padded to the width of their longest line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_PADDING.sub(r"\1", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _console(file: TextIO) -> Console:
    console = _Console(file=cast("TextIO", _Trimmed(file)), highlight=False, markup=False, emoji=False)
    if not any(os.isatty(descriptor) for descriptor in (0, 1, 2)) and "COLUMNS" not in os.environ:
        console.width = _FILE_WIDTH
    return console


def replace_unprintable() -> None:
    """Print "?" for characters that the terminal cannot encode, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def discard_stdout() -> None:
    """Discard buffered output after an error of standard output, so that Python does not fail again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


# text


def safe(text: str) -> str:
    """Replace control characters."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def one_line(text: str, *, most: int = 300) -> str:
    """Return the beginning of a text, at most `most` characters, on one line, with a mark for each line break."""
    lines = (" ".join(line.split()) for line in safe(text[: most * 4]).splitlines())
    joined = f" {_LINE_BREAK} ".join(filter(None, lines))
    return shortened(joined, most)


def dim(text: str) -> Text:
    return Text(text, style="dim")


def with_article(category: str) -> str:
    """Return the name of a category with its article, if it takes one."""
    if category in ("knowledge", "context", "identity"):
        return category
    return f"{'an' if category[:1] in tuple('aeio') else 'a'} {category}"


def minute(at: datetime | None, zone: ZoneInfo) -> str:
    """Return an instant to the minute, in the user's time zone."""
    return "" if at is None else at.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def short_id(id: str) -> Text:
    return dim(one_line(handle_of(id)))


def help_page(ctx: click.Context, panels: Mapping[str, Sequence[tuple[str, ...]]]) -> str:
    """Return the help of a command: usage, description, and panels of options or verbs."""
    console = results_console()
    with console.capture() as page:
        console.print(f"\nUsage: {ctx.command_path} {' '.join(ctx.command.collect_usage_pieces(ctx))}\n", style="bold")
        console.print(f"{ctx.command.help}\n")
        for title, rows in panels.items():
            if rows:
                console.print(Panel(_help_rows(rows), title=title, title_align="left", border_style="dim"))
    return page.get()


def _help_rows(rows: Sequence[tuple[str, ...]]) -> Table:
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="cyan", no_wrap=True)
    for row in rows:
        lines.add_row(*row)
    return lines


# templates

_STYLED = re.compile(r"\[(\w+)\](.*?)\[/\]|([^\[]+)")


class Filler(Formatter):
    """Fills the templates of `commands.toml` with an answer and the parameters of a verb.

    "{name}" is a field; "{this|that}" is the first of two fields that is not empty. Instants are shown to the minute.
    A format is a maximum length, "handle" for a short id, or Python's own format for a number. A format with % is a
    text around a value that is not empty (" (also %)"); after |, it has a text for empty ones ("Session %|All").
    """

    def __init__(self, zone: ZoneInfo, typed: Mapping[str, Any]) -> None:
        self._zone = zone
        self._typed = typed

    def fill(self, template: str, answer: object) -> Text:
        """Fill a template. Styles such as "[green]...[/]" apply in the template but not in the values."""
        text = Text()
        for style, styled, plain in _STYLED.findall(template):
            text.append(self.vformat(styled or plain, (answer,), {}), style)
        return text

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        """Return the value of the first field, of those separated by "|", that is not empty."""
        found = (self._one(name, args, kwargs) for name in field_name.split("|"))
        return next((value for value in found if value not in (None, "", ())), None), field_name

    def _one(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the value of a field; None if an object on its path is None."""
        try:
            return super().get_field(name, args, kwargs)[0]
        except AttributeError:
            return None

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return a field of the answer, else a parameter of the verb."""
        answer, name = args[0], str(key)
        known = answer if isinstance(answer, Mapping) else self._typed
        return getattr(answer, name) if hasattr(answer, name) else known.get(name)

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a value as text without control characters."""
        if isinstance(value, int | float):
            return format(value, format_spec)
        if "%" in format_spec:
            some, _, none = format_spec.partition("|")
            return some.replace("%", self.format_field(value, "")) if value else none
        if value is None:
            return ""
        text = minute(value, self._zone) if isinstance(value, datetime) else value
        text = ", ".join(text) if isinstance(text, tuple | list) else str(text)
        if format_spec == "handle":
            text = handle_of(text)
        return one_line(text, most=int(format_spec)) if format_spec.isdigit() else safe(text)


# tables


def table(*columns: str) -> Table:
    """Return a table without borders. The last column takes the remaining width; longer texts are truncated."""
    made = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False, expand=True)
    for name in columns[:-1]:
        made.add_column(name, no_wrap=True)
    made.add_column(columns[-1], no_wrap=True, overflow="ellipsis", ratio=1)
    return made


def fields(rows: Iterable[tuple[str, Text]]) -> Table:
    """Return labelled values, one per line."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


_COUNTED = {"closed": "in the archive", "people": "people and things", "commits": "changes"}
_ONE = {"people and things": "person or thing", "in the archive": "in the archive"}


def meant(name: str, known: Iterable[str]) -> str:
    """Return which known names are like a name that may be mistyped, as a sentence after another; "" if none is."""
    alike = get_close_matches(name, list(known))
    return f" Did you mean {' or '.join(alike)}?" if alike else ""


def counts(report: object, names: Iterable[str]) -> Table:
    """Return the counts in the named fields of a report, one per line, without zeros."""
    made = Table.grid(padding=(0, 2))
    for name in names:
        if count := getattr(report, name):
            words = _COUNTED.get(name, name)
            made.add_row(Text(f"{count:>9,}"), dim(_ONE.get(words, words[:-1]) if count == 1 else words))
    return made


# progress


@contextmanager
def progress_bar(console: Console, task: str) -> Iterator[Progress]:
    """Show a progress bar or, without a terminal, print a line every ten seconds."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    if not console.is_terminal:
        yield _printed(console, task)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(task, total=None)

        def report(done: int, total: int) -> None:
            bars.update(bar, completed=done, total=total)

        yield report


def _printed(console: Console, task: str) -> Progress:
    """Return a function that prints how much is done, at most every ten seconds, for a log or another program."""
    shown_at = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at >= _PRINTED_S:
            shown_at = time.monotonic()
            console.print(Text(f"{task}: {done:,} of {total:,}"))

    return report


@contextmanager
def progress_bar_if_needed(console: Console, task: str) -> Iterator[Progress]:
    """Show a progress bar from the first progress report until the work is done."""
    with ExitStack() as bars:
        bar: Progress | None = None

        def report(done: int, total: int) -> None:
            nonlocal bar
            if bar is None and done < total:
                bar = bars.enter_context(progress_bar(console, task))
            if bar is not None:
                bar(done, total)
            if done >= total:
                bar = None
                bars.close()

        yield report


async def wait_for_embeddings(console: Console, memory: Memory) -> None:
    """Wait until every memory is embedded, however long that takes."""
    work = asyncio.create_task(memory.settle())
    every_s = _POLL_S if console.is_terminal else _PRINTED_S
    with progress_bar(console, "Embedding") as report:
        while not (await asyncio.wait([work], timeout=every_s))[0]:
            stats = await memory.stats()
            report(stats.embedded, stats.embedded + stats.embedding_missing)
    await work
