"""What every command shares: its registration, the common options, opening the store, and the two forms of output."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from zoneinfo import ZoneInfo

import typer
from rich.console import Console

from ricordo.errors import InvalidError, NotFoundError, UnavailableError
from ricordo.interfaces.cli.terminal import (
    Output,
    dim,
    discard_stdout,
    notices_console,
    progress_bar_if_needed,
    results_console,
    safe,
)
from ricordo.interfaces.serialize import json_text
from ricordo.settings import Settings, default_chat, default_embedder, default_location, default_owner, load, zone_of

if TYPE_CHECKING:
    from ricordo.memory import Memory

COMMON_PANEL = "Options of every command"

# A write is durable at once; this is how long a command then waits for its embedding.
_SETTLE_S = 20.0


# options that several commands take


def option(*names: str, metavar: str, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help)


def flag(name: str, help: str) -> Any:
    return typer.Option(name, metavar="", help=help)


MemoryId = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, or its last 8 characters.")]
Limit = Annotated[int, option(metavar="N", help="Maximum number of results.")]
PositiveLimit = Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of results.")]
SessionOption = Annotated[str | None, option(metavar="ID", help="The conversation it belongs to.")]
EntityOption = Annotated[str | None, option(metavar="NAME", help="Only what is linked to this person or thing.")]
AfterOption = Annotated[
    str | None, option(metavar="TIME", help="Only from this time on: 2026-03-01, last_week, '3 days ago'.")
]
BeforeOption = Annotated[str | None, option(metavar="TIME", help="Only before this time.")]
AsOfOption = Annotated[
    str | None, option(metavar="TIME|N", help="Answer with what was known at this time, or after change N of the log.")
]
TagOption = Annotated[list[str] | None, option(metavar="TAG", help="A label. Repeatable.")]
YesOption = Annotated[bool, flag("--yes", help="Do not ask for confirmation.")]


def text_or_stdin(text: str) -> str:
    """Return the argument; for `-`, standard input."""
    if text != "-":
        return text
    return sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\r\n")


def parse_as_of(given: str | None) -> str | int | None:
    """Return a time as typed, or the number of a change. "2026" is a year: write four-digit numbers with a #."""
    if given is None:
        return None
    digits = given.removeprefix("#")
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(digits) if is_number and (digits != given or len(digits) != 4) else given


# the common options


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """The options of every command, as typed before or after it. None and False: not given."""

    store: str | None = None
    config: Path | None = None
    owner: str | None = None
    chat: str | None = None
    embedder: str | None = None
    model: str | None = None
    as_json: bool = False

    def over(self, before: CommonOptions) -> CommonOptions:
        """Return these options, completed by those typed before the command."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name)}
        return replace(before, **given)


def _common(*names: str, metavar: str | None = None, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=COMMON_PANEL)


def common_options(
    store: Annotated[
        str | None,
        _common(metavar="PATH", help="The store: a file or folder. [default: $RICORDO_STORE or a user file]"),
    ] = None,
    config: Annotated[
        Path | None, _common(metavar="FILE", help="The settings. [default: ricordo.toml beside the store]")
    ] = None,
    owner: Annotated[
        str | None, _common(metavar="NAME", help="Whose memory to use. [default: $RICORDO_OWNER or me]")
    ] = None,
    chat: Annotated[
        str | None, _common(metavar="NAME", help="Also use the memory of this group. [default: $RICORDO_CHAT]")
    ] = None,
    embedder: Annotated[
        str | None,
        _common(
            metavar="NAME",
            help="The embedding model, or none to search by words only. [default: $RICORDO_EMBEDDER or as before]",
        ),
    ] = None,
    model: Annotated[
        str | None,
        _common(
            metavar="NAME",
            help="The language model that turns conversations into knowledge. [default: $RICORDO_MODEL or none]",
        ),
    ] = None,
    as_json: Annotated[bool, _common("--json", metavar="", help="Print one JSON document on standard output.")] = False,
) -> CommonOptions:
    """Declare the options of every command.

    Raises:
        InvalidError: A name is blank, as from an unset variable: another user's memory would answer.
    """
    for name, value in (("store", store), ("owner", owner), ("chat", chat)):
        if value is not None and not value.strip():
            raise InvalidError(f"--{name} is blank", hint="give a name, or omit the option")
    return CommonOptions(
        store=store, config=config, owner=owner, chat=chat, embedder=embedder, model=model, as_json=as_json
    )


# the context of a command


class CommandContext:
    """Gives a command its store and the person at the terminal."""

    def __init__(self, options: CommonOptions) -> None:
        self.options = options
        self.out: Console = results_console()
        self.err: Console = notices_console()

    @property
    def location(self) -> str:
        """The store's path as given, or the default one."""
        return self.options.store or default_location()

    @property
    def store_exists(self) -> bool:
        return "://" in self.location or Path(self.location).expanduser().exists()

    @property
    def owner(self) -> str:
        return self.options.owner or default_owner()

    @property
    def chat(self) -> str | None:
        return self.options.chat or default_chat()

    def settings(self) -> Settings:
        """Raises:
        InvalidError: The given file does not exist, or a value is not valid.
        """
        if self.options.config is not None and not self.options.config.is_file():
            raise InvalidError(f"the file {self.options.config} does not exist", hint="check --config")
        return load(file=self.options.config or Path(self.location).expanduser().parent / "ricordo.toml")

    @property
    def zone(self) -> ZoneInfo:
        """The user's time zone."""
        return zone_of(self.settings().time_zone)

    @property
    def embedder(self) -> str | None:
        if self.options.embedder is None:
            return default_embedder()
        return None if self.options.embedder == "none" else self.options.embedder

    @property
    def model(self) -> str | None:
        name = self.options.model or self.settings().model
        return None if name in ("", "none") else name

    @asynccontextmanager
    async def open(self, *, create: bool = False, with_model: bool = False) -> AsyncIterator[Memory]:
        """Open the memory.

        Args:
            create: Create the store if there is none. A command that only reads does not: to it, a mistyped path is
                an empty memory.
            with_model: Give it the language model. Most commands need none, and should not fail without one.
        """
        from ricordo.memory import Memory  # imports numpy: `--help` should not wait for it
        from ricordo.model import Scope

        settings = self.settings()
        location = self.location
        if not create and not self.store_exists:
            self.notice(f"There is no memory at {location} yet; `ricordo remember TEXT` creates it.")
            location = ":memory:"
        with progress_bar_if_needed(self.err, "Rebuilding the index") as progress:
            async with Memory.open(
                location,
                embedder=self.embedder,
                model=self.model if with_model else None,
                settings=settings,
                scope=Scope(owner=self.owner, chat=self.chat),
                progress=progress,
            ) as memory:
                yield memory

    def require_store(self) -> None:
        """Raises:
        NotFoundError: There is no store; a check or a copy of nothing must not look like a success.
        """
        if not self.store_exists:
            raise NotFoundError(f"there is no memory at {self.location}", hint="check --store or $RICORDO_STORE")

    async def settle(self, memory: Memory) -> None:
        """Wait until recent writes are embedded, but not for ever."""
        try:
            with self.status("Embedding…"):
                await memory.settle(timeout=_SETTLE_S)
        except UnavailableError:
            self.notice("Stored. Search finds it by its words now, and by its meaning once it is embedded.")

    # the person at the terminal

    def notice(self, text: str) -> None:
        """Print something that is not a result."""
        self.err.print(dim(safe(text)), soft_wrap=True)

    def hint(self, text: str) -> None:
        """Print a possible next step, at a terminal only."""
        if self.out.is_terminal and not self.options.as_json:
            self.err.print(dim(text))

    @contextmanager
    def status(self, text: str) -> Iterator[None]:
        """Show what is going on, at a terminal only."""
        if not self.err.is_terminal:
            yield
            return
        with self.err.status(dim(text)):
            yield


# commands

W = TypeVar("W", bound=Callable[..., Any])

app = typer.Typer(
    name="ricordo",
    help="A long-term memory for AI agents and people: store what was said, and find it by meaning.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

_COMMON = inspect.signature(common_options, eval_str=True).parameters


def with_common_options(work: Callable[..., Any]) -> Callable[..., Any]:
    """Add the common options to a function's parameters, in place of `**common`.

    Typer reads a command's parameters from its signature, so both kinds must be in it.
    """
    own = inspect.signature(work, eval_str=True).parameters.values()
    named = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*named, *_COMMON.values())]

    def wrapped(**arguments: Any) -> Any:
        return work(**arguments)

    wrapped.__doc__ = work.__doc__
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapped


def command(name: str, *, panel: str) -> Callable[[W], W]:
    """Register a function as a command; it takes the common options too. A coroutine gets an event loop."""

    def register(work: W) -> W:
        app.command(name, rich_help_panel=panel)(_typer_function(work))
        return work

    return register


def _typer_function(work: Callable[..., Output | Coroutine[Any, Any, Output]]) -> Callable[..., int]:
    """Return the function that Typer calls: the parameters are those of `work`, with Typer's context as the first."""

    def function(ctx: typer.Context, **arguments: Any) -> int:
        common = common_options(**{each: arguments.pop(each) for each in _COMMON})
        context = CommandContext(common.over(ctx.obj))
        output = work(context, **arguments)
        return _print(output if isinstance(output, Output) else asyncio.run(output), context)

    own = list(inspect.signature(work, eval_str=True).parameters.values())[1:]
    context_parameter = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context_parameter, *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own)]
    function.__doc__ = work.__doc__
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return with_common_options(function)


def _print(output: Output, ctx: CommandContext) -> int:
    """Print the output of a command; return the exit status.

    Raises:
        UnavailableError: It cannot be written, for example because the disk is full.
    """
    try:
        if ctx.options.as_json:
            # As bytes: JSON is UTF-8, whatever the terminal's encoding.
            typer.echo(json_text(output.data).encode())
        else:
            output.show(ctx.out)
    except BrokenPipeError:  # the reader has read enough
        raise
    except OSError as error:
        discard_stdout()
        raise UnavailableError(f"the output cannot be written: {error.strerror}") from error
    return output.exit_status
