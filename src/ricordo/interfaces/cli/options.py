"""What every command shares: its registration, the common options, opening the store, and the two forms of output."""

from __future__ import annotations

import asyncio
import inspect
import sys
import tomllib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_origin
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

_TEXTS = tomllib.loads((files("ricordo.interfaces.cli") / "commands.toml").read_text(encoding="utf-8"))
_PANELS = {verb: panel for panel, verbs in _TEXTS["panels"].items() for verb in verbs}


def parse_as_of(given: str | None) -> str | int | None:
    """Return a time as typed, or the number of a change. "2026" is a year: write four-digit numbers with a #."""
    if given is None:
        return None
    digits = given.removeprefix("#")
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(digits) if is_number and (digits != given or len(digits) != 4) else given


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

    def __post_init__(self) -> None:
        """Raises:
        InvalidError: A name is blank, as from an unset variable: another user's memory would answer.
        """
        for name, value in (("store", self.store), ("owner", self.owner), ("chat", self.chat)):
            if value is not None and not value.strip():
                raise InvalidError(f"--{name} is blank", hint="give a name, or omit the option")

    def over(self, before: CommonOptions) -> CommonOptions:
        """Return these options, completed by those typed before the command."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name)}
        return replace(before, **given)


class CommandContext:
    """Gives a command its store and the person at the terminal."""

    def __init__(self, options: CommonOptions) -> None:
        self.options = options
        self.out: Console = results_console()
        self.err: Console = notices_console()
        self.location = options.store or default_location()
        """The store's path as given, or the default one."""

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
        """Open the memory; the arguments are those of `command`."""
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


def command(*, create: bool = False, with_model: bool = False, must_exist: bool = False) -> Callable[[W], W]:
    """Register a function as the verb of its name; `commands.toml` describes its parameters.

    A function with the parameter `memory` gets the memory opened. A parameter of a dataclass stands for its fields. A
    coroutine gets an event loop.

    Args:
        create: Create the store if there is none. A command that only reads does not: to it, a mistyped path is an
            empty memory.
        with_model: Give the memory the language model. Most commands need none, and should not fail without one.
        must_exist: Refuse if there is no store.
    """

    def register(work: W) -> W:
        verb = work.__name__.rstrip("_").replace("_", "-")
        own = inspect.signature(work, eval_str=True, locals={"Memory": object}).parameters
        texts = {**_TEXTS["shared"], **_TEXTS.get(verb, {})}
        groups: dict[str, Any] = {name: each.annotation for name, each in own.items() if is_dataclass(each.annotation)}
        parts = {name: _parameters(kind) for name, kind in groups.items()}
        flat = [each for name in own if name not in ("ctx", "memory") for each in parts.get(name, [own[name]])]
        shown = [_described(each, texts.get(each.name)) for each in flat]
        texts_of_stdin = [name for name in own if isinstance(texts.get(name), dict) and "reads_stdin" in texts[name]]

        async def run_opened(context: CommandContext, arguments: dict[str, Any]) -> Output:
            async with context.open(create=create, with_model=with_model) as memory:
                return await work(context, memory, **arguments)  # type: ignore[no-any-return]

        def run(ctx: typer.Context, common: CommonOptions, **arguments: Any) -> int:
            context = CommandContext(common.over(ctx.obj))
            if must_exist:
                context.require_store()
            for name, kind in groups.items():
                arguments[name] = kind(**{each.name: arguments.pop(each.name) for each in parts[name]})
            for name in texts_of_stdin:
                if arguments[name] == "-":
                    arguments[name] = sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\r\n")
            done: Output | Coroutine[Any, Any, Output]
            done = run_opened(context, arguments) if "memory" in own else work(context, **arguments)
            return _print(done if isinstance(done, Output) else asyncio.run(done), context)

        run.__doc__ = work.__doc__
        app.command(verb, rich_help_panel=_PANELS[verb])(with_common_options(run, shown))
        return work

    return register


def sort_commands() -> None:
    """List the verbs in the help in the order of `commands.toml`."""
    verbs = list(_PANELS)
    app.registered_commands.sort(key=lambda each: verbs.index(str(each.name)))


def with_common_options(work: Callable[..., Any], own: Sequence[inspect.Parameter]) -> Callable[..., Any]:
    """Return a function that Typer can call: its signature has these parameters and the common options.

    `work` gets Typer's context and a `CommonOptions`, then its own parameters by name.
    """

    def function(ctx: typer.Context, **arguments: Any) -> Any:
        common = CommonOptions(**{each.name: arguments.pop(each.name) for each in _COMMON})
        return work(ctx, common, **arguments)

    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    function.__doc__ = work.__doc__
    function.__signature__ = inspect.Signature([context, *own, *_COMMON])  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in (context, *own, *_COMMON)}
    return function


def _described(parameter: inspect.Parameter, text: Any, **more: Any) -> inspect.Parameter:
    """Return a parameter with its words, as an argument or an option. An annotation with words of its own is kept."""
    if get_origin(parameter.annotation) is Annotated:
        return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    words = text if isinstance(text, dict) else {"help": text} if isinstance(text, str) else _pair(*text)
    names = [words["name"]] if "name" in words else []
    make: Any = typer.Option
    if words.get("argument", parameter.default is parameter.empty):
        make = typer.Argument
    elif parameter.annotation is bool:  # a flag: no value, and no option that denies it
        names, words = names or [f"--{parameter.name.replace('_', '-')}"], {**words, "metavar": ""}
    info = make(*names, **{name: words[name] for name in ("metavar", "min", "help") if name in words}, **more)
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[parameter.annotation, info])


def _pair(metavar: str, help: str) -> dict[str, Any]:
    return {"metavar": metavar, "help": help}


def _parameters(kind: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(kind, eval_str=True).parameters.values())


_COMMON = [
    _described(each, _TEXTS["common"][each.name], rich_help_panel=COMMON_PANEL) for each in _parameters(CommonOptions)
]


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
