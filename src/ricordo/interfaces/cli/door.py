"""How a command reaches the memory: the options that every command takes, and opening the store by them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer
from rich.console import Console

from ricordo.errors import InvalidError, NotFoundError, UnavailableError
from ricordo.interfaces.cli.progress import progress_bar_once_told
from ricordo.interfaces.cli.screen import dim, notices_console, results_console, shown
from ricordo.settings import Settings, default_chat, default_embedder, default_location, default_owner, load, zone_of

if TYPE_CHECKING:
    from ricordo.memory import Memory

PANEL = "Options of every command"

# What is written is kept at once; this is how long a command then stays for its meaning to be worked out.
_SETTLE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options of every command, as typed before or after the verb. None and False: not given."""

    store: str | None = None
    config: Path | None = None
    owner: str | None = None
    chat: str | None = None
    embedder: str | None = None
    model: str | None = None
    as_json: bool = False

    def over(self, before: Given) -> Given:
        """These, and where nothing is given, those."""
        said = {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name)}
        return replace(before, **said)


def _option(*names: str, metavar: str | None = None, text: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=PANEL)


def everywhere(
    store: Annotated[
        str | None,
        _option(metavar="PATH", text="The memory's file or folder. [default: $RICORDO_STORE, else a file of yours]"),
    ] = None,
    config: Annotated[
        Path | None, _option(metavar="FILE", text="Settings. [default: ricordo.toml beside the store]")
    ] = None,
    owner: Annotated[
        str | None, _option(metavar="NAME", text="Whose memory. [default: $RICORDO_OWNER, else me]")
    ] = None,
    chat: Annotated[
        str | None, _option(metavar="NAME", text="Look into this group's memory, too. [default: $RICORDO_CHAT]")
    ] = None,
    embedder: Annotated[
        str | None,
        _option(
            metavar="NAME",
            text="What finds by meaning; none: by words only. [default: $RICORDO_EMBEDDER, else as last time]",
        ),
    ] = None,
    model: Annotated[
        str | None,
        _option(metavar="NAME", text="What turns conversations into knowledge. [default: $RICORDO_MODEL, else none]"),
    ] = None,
    as_json: Annotated[bool, _option("--json", metavar="", text="Print one JSON document on standard output.")] = False,
) -> Given:
    """The options of every command; their one description.

    Raises:
        InvalidError: a name is blank, as of a variable that is not set: somebody else's memory would answer.
    """
    for name, value in (("store", store), ("owner", owner), ("chat", chat)):
        if value is not None and not value.strip():
            raise InvalidError(f"--{name} is blank", hint="give a name, or leave the option out")
    return Given(store=store, config=config, owner=owner, chat=chat, embedder=embedder, model=model, as_json=as_json)


class Door:
    """One command's way to the memory, and to the person at the terminal."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.out: Console = results_console()
        self.err: Console = notices_console()

    @property
    def location(self) -> str:
        """The store's path as given, or the default one."""
        return self.given.store or default_location()

    @property
    def is_there(self) -> bool:
        return "://" in self.location or Path(self.location).expanduser().exists()

    def settings(self) -> Settings:
        """Raises:
        InvalidError: the file given does not exist, or a value does not fit.
        """
        if self.given.config is not None and not self.given.config.is_file():
            raise InvalidError(f"config: there is no file {self.given.config}")
        return load(file=self.given.config or Path(self.location).expanduser().parent / "ricordo.toml")

    @property
    def zone(self) -> ZoneInfo:
        """The user's time zone."""
        return zone_of(self.settings().time_zone)

    @property
    def embedder(self) -> str | None:
        if self.given.embedder is None:
            return default_embedder()
        return None if self.given.embedder == "none" else self.given.embedder

    @property
    def model(self) -> str | None:
        name = self.given.model or self.settings().model
        return None if name in ("", "none") else name

    @asynccontextmanager
    async def open(self, *, makes: bool = False, uses_model: bool = False) -> AsyncIterator[Memory]:
        """The memory, opened.

        Args:
            makes: make the store if there is none. A command that only looks does not: to it, a mistyped
                path is an empty memory.
            uses_model: name the language model to it. Most commands need none, and should not fail for want of it.
        """
        from ricordo.memory import Memory  # brings numpy: `--help` need not wait for it
        from ricordo.model import Scope

        settings = self.settings()
        location = self.location
        if not makes and not self.is_there:
            self.notice(f"There is no memory at {location} yet; `ricordo remember TEXT` begins it.")
            location = ":memory:"
        scope = Scope(owner=self.given.owner or default_owner(), chat=self.given.chat or default_chat())
        with progress_bar_once_told(self.err, "Making the index anew") as progress:
            async with Memory.open(
                location,
                embedder=self.embedder,
                model=self.model if uses_model else None,
                settings=settings,
                scope=scope,
                progress=progress,
            ) as memory:
                yield memory

    def must_exist(self) -> None:
        """Raises:
        NotFoundError: there is no store; a check or a copy of nothing must not look like a success.
        """
        if not self.is_there:
            raise NotFoundError(f"there is no memory at {self.location}", hint="check --store or $RICORDO_STORE")

    async def settle(self, memory: Memory) -> None:
        """Stay until what was written is found by meaning, but not for ever."""
        try:
            with self.waiting("Working out what it means…"):
                await memory.settle(timeout=_SETTLE_S)
        except UnavailableError:
            self.notice("It is kept. What it means is worked out later; till then, its words find it.")

    # for people

    def notice(self, text: str) -> None:
        """Something to know that is no result."""
        self.err.print(dim(shown(text)), soft_wrap=True)

    def hint(self, text: str) -> None:
        """What one could do next; nobody reads it in a file or a pipe."""
        if self.out.is_terminal and not self.given.as_json:
            self.err.print(dim(text))

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        if not self.err.is_terminal:
            yield
            return
        with self.err.status(dim(text)):
            yield
