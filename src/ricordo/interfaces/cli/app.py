"""The program: commands, top-level options and error handling."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from ricordo import settings
from ricordo.errors import InvalidError, RicordoError, UnavailableError
from ricordo.interfaces import demo
from ricordo.interfaces.cli import agents, chat, knowledge, read, recall_tests, serve, storage, write
from ricordo.interfaces.cli.options import CommandContext, Program, command, common_options, common_parameters
from ricordo.interfaces.cli.terminal import Output, dim, notices_console, one_line, replace_unprintable, safe, table
from ricordo.interfaces.serialize import json_text

__all__ = [
    "INTERRUPTED",
    "agents",
    "chat",
    "demo",
    "knowledge",
    "main",
    "program",
    "read",
    "recall_tests",
    "serve",
    "storage",
    "write",
]

INTERRUPTED = 130
_COMPLETION = "_RICORDO_COMPLETE"
_SHELLS = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/ricordo.fish"}
"""The startup file or folder for completions, by shell."""


def _print_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        click.echo(f"ricordo {metadata.version('ricordo')}")
        ctx.exit()


@click.pass_context
def _top_level(ctx: click.Context, /, **given: Any) -> None:
    ctx.obj = common_options(given)
    if ctx.invoked_subcommand is None:
        if ctx.obj.as_json:
            raise InvalidError("no command is given", hint="`ricordo --help` lists the commands")
        click.echo(ctx.get_help())


def program() -> Program:
    """Return the program. Its verbs were registered by importing the modules above."""
    version = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Print the version.",
    )
    return Program(
        "ricordo",
        callback=_top_level,
        params=[version, *common_parameters()],
        help="A long-term memory for AI agents and people: store what was said, and find it by meaning.",
        invoke_without_command=True,
    )


# verbs about the program itself


@command
def help_(ctx: CommandContext, verb: str | None = None) -> Output:
    """Print the help of the program or of one verb."""
    here = click.get_current_context()
    top = here.find_root()
    page = top.get_help()
    if verb is not None:
        name, found, _ = top.command.resolve_command(top, [verb])  # type: ignore[attr-defined]
        page = found.get_help(click.Context(found, info_name=name, parent=top))
    return Output(data={"help": page}, show=lambda out: click.echo(page))


@command
def completion(ctx: CommandContext, shell: str) -> Output:
    """Print click's completion script for a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "click knows each shell among the choices"
    try:
        script = kind(program(), {}, "ricordo", _COMPLETION).source()
    except RuntimeError as error:  # an old bash
        raise UnavailableError(str(error)) from error

    def show(out: Console) -> None:
        click.echo(script)
        ctx.hint(f"To use it in every new {shell}: ricordo completion {shell} >> {_SHELLS[shell]}")

    return Output(data={"shell": shell, "script": script}, show=show)


@command
def config(ctx: CommandContext, action: str = "show", name: str | None = None, value: str | None = None) -> Output:
    """Show each setting and its source, change one, or print a commented sample."""
    if action == "sample":
        text = settings.sample()
        return Output(data={"sample": text}, show=lambda out: click.echo(text, nl=False))
    if action == "set":
        return _changed_setting(ctx, name, value)
    if value is not None:
        raise InvalidError("`config show` takes one name", hint="to change a setting: ricordo config set NAME VALUE")
    rows = _settings_in_force(ctx)
    if name is not None:
        rows = [row for row in rows if row["name"] == name]
        if not rows:
            raise settings.unknown_setting(name)

    def show(out: Console) -> None:
        lines = table("setting", "value", "set by", "meaning")
        for row in rows:
            style = "bold" if row["set_by"] != "default" else ""
            shown = one_line(str(row["value"]), most=30)
            lines.add_row(
                Text(row["name"], style), Text(shown), dim(row["set_by"].rpartition("/")[2]), dim(row["meaning"])
            )
        out.print(lines)
        ctx.notice(f"File: {ctx.settings_file}{'' if ctx.settings_file.exists() else ' (does not exist yet)'}")
        ctx.tip("To change one: ricordo config set NAME VALUE. `ricordo config sample` prints a whole file.")

    return Output(data={"file": str(ctx.settings_file), "settings": rows}, show=show)


def _settings_in_force(ctx: CommandContext) -> list[dict[str, Any]]:
    in_force = ctx.settings()
    given = settings.given(file=ctx.settings_file)
    return [
        {
            "name": each.name,
            "value": settings.shown(each.name, getattr(in_force, each.name)),
            "default": each.default,
            "set_by": given[each.name][1] if each.name in given else "default",
            "meaning": each.metadata["meaning"],
        }
        for each in fields(settings.Settings)
    ]


def _changed_setting(ctx: CommandContext, name: str | None, value: str | None) -> Output:
    if name is None or value is None:
        raise InvalidError("the name and the value are required", hint="ricordo config set NAME VALUE")
    file = ctx.settings_file
    now = settings.change(file, name, value)
    overruled = settings.given(file=file)[name][1]
    if overruled != str(file):
        ctx.notice(f"{overruled} is set, and overrides it.")
    now = settings.shown(name, now)
    done = Text.assemble(("Set: ", "green"), f"{name} = {now!r} in {file}")
    return Output(
        data={"name": name, "value": now, "file": str(file)}, show=lambda out: out.print(done, soft_wrap=True)
    )


def main(argv: Sequence[str]) -> int:
    """Run the command in the arguments; return the exit status.

    With `--json`, an error is printed to standard output as {"error": {"code", "message", "hint"}}, so that a caller
    reads only one stream. The exit status tells errors from answers.
    """
    replace_unprintable()
    as_json = "--json" in argv
    try:
        status = program().main(list(argv), prog_name="ricordo", complete_var=_COMPLETION, standalone_mode=False)
        return status if isinstance(status, int) else 0
    except RicordoError as error:
        _print_error(error.message, code=error.code, hint=error.hint, as_json=as_json)
        return error.exit_status
    except click.ClickException as error:
        return _print_usage_error(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  # even after a bug, the output is valid JSON
        traceback.print_exc(file=sys.stderr)
        _print_error(f"{type(error).__name__}: {error}", code="error", hint="please report this", as_json=as_json)
        return RicordoError.exit_status


def _print_usage_error(error: click.ClickException, *, as_json: bool) -> int:
    """Report an unknown command or option, or an option without its value."""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        # the dashes alone make "--speaker" like "--after"
        named = error.option_name.lstrip("-")
        alike = [each for each in error.possibilities if get_close_matches(named, [each.lstrip("-")])]
        error = click.NoSuchOption(error.option_name, possibilities=alike, ctx=error.ctx)
    hint = f"see `{context.command_path} --help`" if context is not None else ""
    if isinstance(error, click.NoSuchOption) and not error.option_name.startswith("--"):
        hint = f'put `--` before a text that begins with "-"\n{hint}'
    if isinstance(error, click.MissingParameter) and (meaning := getattr(error.param, "help", None)):
        hint = f"{error.param.make_metavar(context)}: {meaning}\n{hint}"  # type: ignore[union-attr,arg-type]
    if error.format_message().startswith("Got unexpected extra"):
        hint = f'put a text of several words in quotes: "..."\n{hint}'
    _print_error(error.format_message(), code=InvalidError.code, hint=hint, as_json=as_json)
    return InvalidError.exit_status


def _print_error(message: str, *, code: str, hint: str, as_json: bool) -> None:
    if as_json:
        click.echo(json_text({"error": {"code": code, "message": message, "hint": hint}}).encode())
        return
    text = Text.assemble(("ricordo: ", "bold red"), safe(message))
    if hint:
        text.append(f"\n{safe(hint)}", style="dim")
    notices_console().print(text, soft_wrap=True)
