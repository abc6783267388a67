"""The shared parts of all commands: registration, common options, opening the store, and output as text or JSON."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import re
import shlex
import sys
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args
from zoneinfo import ZoneInfo

import click
from rich.console import Console
from rich.table import Table

from ricordo import model
from ricordo.errors import InvalidError, NotFoundError, RicordoError, StoreError, UnavailableError
from ricordo.interfaces.cli.terminal import (
    Filler,
    Output,
    dim,
    discard_stdout,
    fields,
    help_page,
    meant,
    notices_console,
    progress_bar,
    progress_bar_if_needed,
    results_console,
    safe,
    table,
)
from ricordo.interfaces.serialize import json_text, resolve_id
from ricordo.rights import RIGHTS, Holder, at_door, require
from ricordo.settings import Settings, default_chat, default_embedder, default_location, default_owner, load, zone_of
from ricordo.text.sentences import plural

if TYPE_CHECKING:
    from ricordo.memory import Memory
    from ricordo.ports import Progress

COMMON_PANEL = "Options of every command"

# The longest time a command waits for the embedding of what it wrote. The write itself is durable at once.
_SETTLE_S = 20.0
_OWNERS_SHOWN = 5

_VERBS = tomllib.loads((files("ricordo.interfaces.cli") / "commands.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """The options of every command, which may be typed before or after it. None and False mean not given."""

    store: str | None = None
    config: Path | None = None
    owner: str | None = None
    chat: str | None = None
    embedder: str | None = None
    model: str | None = None
    as_json: bool = False

    def __post_init__(self) -> None:
        """Raises:
        InvalidError: A name is blank, probably from an unset variable. The command would use another user's memory.
        """
        for name, value in (("store", self.store), ("owner", self.owner), ("chat", self.chat)):
            if value is not None and not value.strip():
                raise InvalidError(f"--{name} is blank", hint="give a name, or omit the option")

    def over(self, before: CommonOptions) -> CommonOptions:
        """Return these options, with missing ones taken from `before`, the options typed before the command."""
        given = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if getattr(self, each.name)}
        return replace(before, **given)


class CommandContext:
    """The store, settings and consoles of a command."""

    def __init__(self, options: CommonOptions, verb: str) -> None:
        self.options = options
        self.verb = verb
        self.spec: Mapping[str, Any] = _VERBS[verb]
        """The entry of the verb in `commands.toml`."""
        self.out: Console = results_console()
        self.err: Console = notices_console()
        self.location = options.store or default_location()
        check_place(self.location, "store")
        """The location of the store: the given one or the default."""

    @property
    def capability(self) -> str:
        """The name of the verb in the table of rights: a method of `Memory`, or the verb itself."""
        name: str = self.spec.get("calls", self.verb.replace("-", "_"))
        return name if name in RIGHTS else f"{name}_"

    @property
    def store_exists(self) -> bool:
        return "://" in self.location or Path(self.location).expanduser().exists()

    @property
    def owner(self) -> str:
        return self.options.owner or default_owner()

    @property
    def chat(self) -> str | None:
        return self.options.chat or default_chat()

    def command(self, words: str, *, owner: str | None = None, chat: str | None = None) -> str:
        """Return a command to be shown, for the owner and chat of this one: "`ricordo undo 12 --owner bob`".

        Args:
            owner: another owner.
            chat: another chat; "" for the owner's own memory.
        """
        given = (("--owner", owner or self.options.owner), ("--chat", self.options.chat if chat is None else chat))
        options = "".join(f" {name} {shlex.quote(value)}" for name, value in given if value)
        return f"`ricordo {words}{options}`"

    def settings(self) -> Settings:
        """Raises:
        InvalidError: The given file does not exist, or a value is not valid.
        """
        if self.options.config is not None and not self.options.config.is_file():
            raise InvalidError(f"the file {self.options.config} does not exist", hint="check --config")
        return load(file=self.settings_file)

    @property
    def settings_file(self) -> Path:
        """The settings file: the given one, or `ricordo.toml` next to the store."""
        return self.options.config or Path(self.location).expanduser().parent / "ricordo.toml"

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
    async def open(
        self, *, create: bool = False, with_model: bool = False, creator: str | None = "ricordo remember TEXT"
    ) -> AsyncIterator[Memory]:
        """Open the memory.

        Args:
            create: Whether to create a missing store. Commands that only read do not: they treat a mistyped path as an
                empty memory.
            creator: The command to recommend for creating a missing store; None for a dry run of one that does.
            with_model: Whether to open the language model. Most commands do not need it and should not fail without it.
        """
        from ricordo.memory import Memory  # imports numpy, which `--help` should not wait for

        settings = self.settings()
        location = self.location
        if not create and not self.store_exists:
            if creator is not None:
                self.notice(f"There is no memory at {location} yet; `{creator}` creates it.")
            location = ":memory:"
        with progress_bar_if_needed(self.err, "Rebuilding the index") as progress:
            async with Memory.open(
                location,
                embedder=self.embedder,
                model=self.model if with_model else None,
                settings=settings,
                scope=model.Scope(owner=self.owner, chat=self.chat),
                progress=progress,
            ) as memory:
                yield memory

    def require_store(self) -> None:
        """Raises:
        NotFoundError: There is no store. Checking or copying a missing store must not seem to succeed.
        """
        if not self.store_exists:
            raise NotFoundError(f"there is no memory at {self.location}", hint="check --store or $RICORDO_STORE")

    async def settle(self, memory: Memory) -> None:
        """Wait until recent writes are embedded, up to a time limit."""
        try:
            with self.status("Embedding…"):
                await memory.settle(timeout=_SETTLE_S)
        except UnavailableError:
            self.notice("Stored. Search finds it by its words now, and by its meaning once it is embedded.")

    # the person at the terminal

    def show(self, answer: Any, typed: Mapping[str, Any]) -> None:
        """Print an answer with the templates of its verb: `columns` for tables, `shows` for lines."""
        filler = Filler(self.zone, typed)
        if "columns" in self.spec and not answer:
            self.out.print(self.spec["empty"])
        elif "columns" in self.spec:
            lines = table(*self.spec["columns"])
            for row in answer:
                lines.add_row(*(filler.fill(template, row) for template in self.spec["columns"].values()))
            self.out.print(lines)
            if typed.get("limit") == len(answer):  # the list may be cut
                self.out.print(dim(f"{len(answer)} shown. A higher --limit shows more, if there are any."))
        for template in self.spec.get("shows", ()):
            self.out.print(filler.fill(template, answer))

    def labelled(self, answer: object, derived: Mapping[str, Any], *, of: str | None = None) -> Table:
        """Return the labelled values of an answer, without empty ones, from the templates in `fields` of a verb."""
        filler = Filler(self.zone, derived)
        templates = _VERBS[of or self.verb]["fields"]
        filled = ((label, filler.fill(template, answer)) for label, template in templates.items())
        return fields((label, value) for label, value in filled if value.plain)

    @property
    def can_ask(self) -> bool:
        """Whether there is a person at the terminal who can answer a question."""
        return not self.options.as_json and sys.stdin.isatty() and self.err.is_terminal

    def notice(self, text: str) -> None:
        """Print a message to standard error."""
        self.err.print(dim(safe(text)), soft_wrap=True)

    def hint(self, text: str) -> None:
        """Suggest a next step, at a terminal only."""
        if self.out.is_terminal and not self.options.as_json:
            self.err.print(dim(text))

    def tip(self, text: str) -> None:
        """Print a hint once; later calls with it print nothing."""
        if not self.out.is_terminal or self.options.as_json:
            return
        from platformdirs import user_state_path

        known = user_state_path("ricordo", appauthor=False) / "tips.txt"
        with suppress(OSError):
            if known.exists() and text in known.read_text(encoding="utf-8").splitlines():
                return
            known.parent.mkdir(parents=True, exist_ok=True)
            with known.open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")
        self.hint(text)

    @contextmanager
    def waiting(self) -> Iterator[Progress | None]:
        """Show a status text while the verb runs, or yield a progress bar if its method reports progress."""
        with ExitStack() as stack:
            if "status" in self.spec:
                stack.enter_context(self.status(self.spec["status"]))
            wanted = self.spec.get("progress")
            yield stack.enter_context(progress_bar(self.err, wanted)) if wanted else None

    @contextmanager
    def status(self, text: str) -> Iterator[None]:
        """Show a status text inside the `with` block, at a terminal only."""
        if not self.err.is_terminal:
            yield
            return
        with self.err.status(dim(text)):
            yield


# commands

W = TypeVar("W", bound=Callable[..., Any])
FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions of verbs that need more than one call of a method of `Memory`."""
_VIEWS: dict[str, Callable[[CommandContext, Any], None]] = {}


def command(work: W) -> W:
    """Register a function as the implementation of the verb with its name, instead of a method of `Memory`.

    The function gets the context, the memory if it has a parameter `memory`, and the verb's parameters in
    `commands.toml`. It returns the answer or an `Output`.
    """
    FUNCTIONS[work.__name__.rstrip("_").replace("_", "-")] = work
    return work


def view(*verbs: str) -> Callable[[W], W]:
    """Register a function that prints the answers of some verbs, instead of a template."""

    def register(show: W) -> W:
        _VIEWS.update(dict.fromkeys(verbs, show))
        return show

    return register


_HELP_NAMES: Mapping[str, Any] = {"help_option_names": ["-h", "--help"]}


@contextmanager
def _until_closed() -> Iterator[None]:
    """End the program without an error if the reader of its output is gone, such as `head`; click would end it with
    status 1.
    """
    try:
        yield
    except BrokenPipeError:
        discard_stdout()
        raise click.exceptions.Exit(0) from None


class Program(click.Group):
    """The program. Verbs are built on demand: one takes 1 ms, all together 35 ms."""

    def __init__(self, name: str, **given: Any) -> None:
        super().__init__(name, context_settings=dict(_HELP_NAMES), **given)

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        with _until_closed():  # `--help` prints
            return super().make_context(*given, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _until_closed():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_panels())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # for an unknown name, build all verbs, so that click can suggest one
        for verb in [cmd_name] if cmd_name in _panels() else _panels():
            if verb not in self.commands:
                self.commands[verb] = _Verb(verb)
        return self.commands.get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (meant := _VERBS["guesses"].get(args[0])) is not None:
            ctx.fail(f"No such command {args[0]!r}. {meant}")
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        panels: dict[str, list[tuple[str, ...]]] = {}
        for verb, panel in _panels().items():
            panels.setdefault(panel, []).append((verb, _VERBS[verb]["summary"].partition("\n\n")[0]))
        return help_page(ctx, panels | _parameters_by_panel(ctx))


_DASHED = re.compile(r"-(?: |\d\S* )")
"""How a text begins that is no option: an item of a list, such as "- [ ] call Tom", or a number below zero."""


class _Verb(click.Command):
    def __init__(self, verb: str) -> None:
        taken = [parameter(name, _words(verb, name)) for name in _VERBS[verb].get("takes", ())]
        summary = inspect.cleandoc(_VERBS[verb]["summary"])
        super().__init__(
            verb,
            callback=_runner(verb),
            params=[*taken, *common_parameters()],
            help=summary,
            context_settings=dict(_HELP_NAMES),
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(args))
        except click.NoSuchOption as error:
            texts = [each for each in args if _DASHED.match(each)]
            if "--" in args or not any(each.startswith(error.option_name) for each in texts):
                raise
        return super().parse_args(ctx, [*(each for each in args if each not in texts), "--", *texts])

    def get_help(self, ctx: click.Context) -> str:
        return help_page(ctx, _parameters_by_panel(ctx))


def _panels() -> dict[str, str]:
    """Return the verbs in the order of the help, each with the title of its panel."""
    return {verb: panel for panel, verbs in _VERBS["panels"].items() for verb in verbs}


def common_parameters() -> list[click.Parameter]:
    """Return the options that every command has. They may be typed before or after the command."""
    return [parameter(name, _full(words)) for name, words in _VERBS["common"].items()]


def is_common(each: click.Parameter) -> bool:
    """Return whether a parameter belongs to every command."""
    return each.name in _VERBS["common"]


def _parameters_by_panel(ctx: click.Context) -> dict[str, list[tuple[str, ...]]]:
    panels: dict[str, list[tuple[str, ...]]] = {"Arguments": [], "Options": [], COMMON_PANEL: []}
    for each in ctx.command.get_params(ctx):
        panel = "Arguments" if isinstance(each, click.Argument) else COMMON_PANEL if is_common(each) else "Options"
        panels[panel].append(_described(each))
    return panels


def _described(each: click.Parameter) -> tuple[str, ...]:
    """Return a parameter's names, the name of its value, and its help."""
    is_told = isinstance(each.default, str | int | float) and not isinstance(each.default, bool)
    default = f" [default: {each.default}]" if is_told else ""
    needed = " [required]" if each.required and isinstance(each, click.Option) else ""
    if isinstance(each, click.Argument):
        return each.make_metavar(click.Context(click.Command(None))), f"{each.help}{default}"
    return "/".join(each.opts + each.secondary_opts), each.metavar or "", f"{each.help}{default}{needed}"


def _words(verb: str, name: str) -> dict[str, Any]:
    """Return the description of a parameter, from the verb or from the shared parameters."""
    shared, own = (_full(_VERBS[place].get(name, {})) for place in ("shared", verb))
    return own if "help" in own else {**shared, **own}


def _full(words: Any) -> dict[str, Any]:
    return dict(zip(("metavar", "help"), words, strict=True)) if isinstance(words, list) else words


def _runner(verb: str) -> Callable[..., int]:
    """Return the function that runs a verb with the typed arguments."""

    @click.pass_context
    def run(ctx: click.Context, /, **given: Any) -> int:
        context = CommandContext(common_options(given).over(ctx.obj), verb)
        require(context.capability, Holder(at_door("cli", "user"), is_opener=True))
        if context.spec.get("must_exist"):
            context.require_store()
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
        typed = {name: _read_stdin(verb, name, value) for name, value in given.items() if value not in (None, [])}
        _check_paths(verb, typed)
        work = FUNCTIONS.get(verb)
        if work is None or "memory" in inspect.signature(work).parameters:
            done: Any = _run_opened(context, work, typed)
        else:
            done = work(context, **typed)
        return _print(asyncio.run(done) if inspect.iscoroutine(done) else done, context, typed)

    return run


def common_options(given: dict[str, Any]) -> CommonOptions:
    """Remove the common options from the typed arguments and return them."""
    return CommonOptions(**{name: given.pop(name) for name in _VERBS["common"]})


def _check_paths(verb: str, typed: Mapping[str, Any]) -> None:
    """Raises:
    InvalidError: There is nothing to read at a path. Checked first, since a misspelt path must not create a store.
    """
    for name, value in typed.items():
        for path in value if isinstance(value, list) else [value]:
            if _words(verb, name).get("exists") and not path.expanduser().exists():
                raise InvalidError(f"{path} cannot be read: No such file or directory", hint="check the path")


def _read_stdin(verb: str, name: str, value: Any) -> Any:
    if value == "-" and _words(verb, name).get("stdin"):
        return sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\r\n")
    return value


async def _run_opened(context: CommandContext, work: Callable[..., Any] | None, typed: Mapping[str, Any]) -> Any:
    """Run the function of a verb, or the method of `Memory`, with the memory opened if needed."""
    spec = context.spec
    async with context.open(create=spec.get("create", False), with_model=spec.get("with_model", False)) as memory:
        if "as_of" in typed and (note := await memory.store_view.empty_past(_position(typed["as_of"]))):
            context.notice(note.replace("as_of: the", "The").replace("as_of", "--as-of") + ".")
        given = {**await _converted(memory, context.verb, typed), **spec.get("fixed", {})}
        with context.waiting() as progress:
            given |= {"progress": progress} if progress else {}
            answer = await (work(context, memory, **given) if work else getattr(memory, context.capability)(**given))
        if spec.get("settles") and not given.get("dry_run"):
            await context.settle(memory)
        await _name_chats(context, memory)
        await _name_owners(context, memory)
        return answer


async def _name_owners(context: CommandContext, memory: Memory) -> None:
    """After a command that reads, say whose memories are in the store if this owner has none."""
    reads = not context.spec.get("create") and not context.spec.get("must_exist")
    if reads and context.store_exists and not context.options.as_json:
        others = [each.owner for each in await memory.store_view.owners()]
        if others and context.owner not in others:
            more = f" and {len(others) - _OWNERS_SHOWN} more" if len(others) > _OWNERS_SHOWN else ""
            whose = f"of {', '.join(others[:_OWNERS_SHOWN])}{more}"
            text = f"{context.owner} has no memories here. There are some {whose}: choose with --owner NAME."
            context.notice(text + meant(context.owner, others))


async def _name_chats(context: CommandContext, memory: Memory) -> None:
    """Say which memories a person may miss: those of other chats, or of one that does not exist."""
    spec, chat = context.spec, context.chat
    if chat and not spec.get("create") and context.store_exists:
        known = [each.name for each in await memory.chats()]
        if chat not in known:
            alike = meant(chat, known)
            context.notice(f"There is no chat or project {chat!r} yet; `ricordo chats` lists yours.{alike}")
    elif not chat and spec.get("says_chats") and not context.options.as_json:
        others = [each for each in await memory.chats() if each.messages or each.facts]
        count = plural(sum(each.messages + each.facts for each in others), "memory", "memories")
        if others:
            chats = plural(len(others), "chat or project", "chats and projects")
            context.notice(f"Also: {count} in {chats}. `ricordo chats` lists them, `--chat NAME` reads one.")


async def _converted(memory: Memory, verb: str, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Convert typed arguments to the parameters of the method of `Memory`."""
    as_of = _position(typed["as_of"]) if "as_of" in typed else None
    given: dict[str, Any] = {}
    for name, value in typed.items():
        words = _words(verb, name)
        match words.get("type"):
            case "memory" | "memory?":
                value = await resolve_id(memory, value, as_of=as_of, undone=verb == "erase")
            case "memory*":
                value = [await resolve_id(memory, each) for each in value]
            case "position?":
                value = as_of
            case "json?":
                value = _json_object(value)
            case "pairs?":
                value = _attributes(value)
        if name == "tag" and words.get("to") == "tags" and value != [""]:  # "" removes all
            value = [tag.strip() for each in value for tag in each.split(",") if tag.strip()]
        given[words.get("to", name)] = value
    return given


def _position(given: str) -> str | int:
    """Return a time unchanged, or the number of a change. "2026" is a year; change 2026 is written "#2026"."""
    digits = given.removeprefix("#")
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(digits) if is_number and (digits != given or len(digits) != 4) else given


def _json_object(given: str, *, name: str = "attributes") -> Any:
    try:
        return json.loads(given)
    except ValueError as error:
        raise InvalidError(f"{name}: {error}", hint='give one JSON object, such as {"task_id": 7}') from error


def _attributes(given: Sequence[str]) -> Mapping[str, Any]:
    """Parse conditions: JSON objects, or `KEY=VALUE` with a value that is JSON (a number, true, null) or else text."""
    found: dict[str, Any] = {}
    for each in given:
        if each.lstrip().startswith("{"):
            found |= _json_object(each, name="--where")
            continue
        name, sign, value = each.partition("=")
        if not name or not sign:
            hint = """for example --where task_id=7, or --where '{"price": {"lt": 10}}'"""
            raise InvalidError(f"--where {each!r} is neither KEY=VALUE nor a JSON object", hint=hint)
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def check_place(value: str, name: str) -> None:
    """Raise InvalidError for "-", which other programs take as standard input or output."""
    if value == "-":
        raise InvalidError(
            f"{name}: `-` for standard input or output is not supported",
            hint="name a file or a folder; write ./- for one with that name",
        )


class _Place(click.Path):
    """A path or, for stores, the address of a database."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        check_place(str(value), param.name if param and param.name else self.name)
        return super().convert(value, param, ctx)


_TYPES: Mapping[str, click.ParamType[Any]] = {
    "int": click.INT,
    "float": click.FLOAT,
    "bool": click.BOOL,
    "Path": _Place(path_type=Path),
    "place": _Place(path_type=str, readable=False),
}


def parameter(name: str, words: Mapping[str, Any]) -> click.Parameter:
    """Return the click argument or option for a parameter in `commands.toml`."""
    written = words.get("type", "str" if "default" in words else "str?")
    kind, mark = written.rstrip("?*+"), written[-1:]
    is_required = not (mark in ("?", "*") or "default" in words or kind in ("flag", "pairs"))
    is_list = mark in ("*", "+") or kind == "pairs"
    given: dict[str, Any] = {"help": words.get("help"), "required": is_required}
    given |= {"default": words["default"]} if "default" in words else {}
    if words.get("argument", is_required):
        metavar = words.get("metavar", name.upper())
        metavar = metavar if is_required or metavar.startswith("[") else f"[{metavar}]"
        is_text = words.get("words", False)
        given |= {"callback": _as_text} if is_text else {}
        nargs = -1 if is_list or is_text else 1
        return click.Argument([name], nargs=nargs, type=_type(kind, words), metavar=metavar, **given)
    option = words.get("name", f"--{name.replace('_', '-')}")
    if kind == "flag":
        return click.Option([option, name], is_flag=True, help=words["help"])
    if kind == "bool":
        return click.Option([f"{option}/--no-{option[2:]}", name], default=None, **given)
    metavar = words.get("metavar", kind.upper())
    return click.Option([option, name], type=_type(kind, words), multiple=is_list, metavar=metavar, **given)


def _as_text(ctx: click.Context, parameter: click.Parameter, words: Sequence[str]) -> str | None:
    """Join the words of a text that was typed without quotes."""
    return " ".join(words) if words else None


def _type(kind: str, words: Mapping[str, Any]) -> click.ParamType[Any]:
    """Return the click type of a parameter: a name in `_TYPES`, a list of choices, or text."""
    choices = words["choices"] if kind == "choice" else get_args(getattr(model, kind, None))
    return click.Choice(choices) if choices else _TYPES.get(kind, click.STRING)


# output


def _print(answer: Any, context: CommandContext, typed: Mapping[str, Any]) -> int:
    """Print the answer of a verb; return the exit status."""
    if notice := getattr(answer, "notice", ""):
        context.notice(notice)
    output = answer if isinstance(answer, Output) else Output(data=_as_data(context.spec.get("data"), answer))
    try:
        if context.options.as_json:
            # As bytes: JSON is UTF-8, whatever the terminal's encoding.
            click.echo(json_text(output.data).encode())
        elif output.show is not None:
            output.show(context.out)
        elif context.verb in _VIEWS:
            _VIEWS[context.verb](context, answer)
        else:
            context.show(answer, typed)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe: what was asked for is done
        discard_stdout()
    except OSError as error:
        discard_stdout()
        raise UnavailableError(f"the output cannot be written: {error.strerror}") from error
    return output.exit_status or exit_status(answer)


def _as_data(data: str | list[str] | None, answer: Any) -> object:
    if isinstance(data, list):
        return {name: getattr(answer, name) for name in data}
    return answer if data is None else {data: answer}


def exit_status(answer: object) -> int:
    """Return the exit status for an answer; it is not 0 if the answer reports a failure."""
    match answer:
        case model.Run(state="failed"):
            return UnavailableError.exit_status
        case model.Report(ok=False):
            return StoreError.exit_status
        case model.MaintenanceReport(ok=False):
            return RicordoError.exit_status
    return 0
