"""The program: its commands, its top-level options, and the handling of errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer
from rich.text import Text
from typer.exceptions import TyperException
from typer.main import get_command

from ricordo.errors import InvalidError, RicordoError
from ricordo.interfaces import demo
from ricordo.interfaces.cli import chat, knowledge, read, serve, storage, write
from ricordo.interfaces.cli.options import CommonOptions, add_commands, parameter, with_common_options
from ricordo.interfaces.cli.terminal import notices_console, replace_unprintable, safe
from ricordo.interfaces.serialize import json_text

__all__ = ["INTERRUPTED", "chat", "demo", "knowledge", "main", "program", "read", "serve", "storage", "write"]

INTERRUPTED = 130


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"ricordo {metadata.version('ricordo')}")
        raise typer.Exit


def _top_level(ctx: typer.Context, common: CommonOptions, version: bool = False) -> None:
    ctx.obj = common
    if ctx.invoked_subcommand is None:
        if common.as_json:
            raise InvalidError("no command is given", hint="`ricordo --help` lists the commands")
        typer.echo(ctx.get_help())


_version = parameter("version", {"type": "flag", "help": "Print the version."}, callback=_print_version, is_eager=True)


def program(argv: Sequence[str] = ()) -> Any:
    """Return the program that runs these arguments: building one command takes 1 ms, all of them 35 ms."""
    app = typer.Typer(
        name="ricordo",
        help="A long-term memory for AI agents and people: store what was said, and find it by meaning.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.callback(invoke_without_command=True)(with_common_options(_top_level, [_version]))
    add_commands(app, argv)  # importing the modules above has registered their functions
    return get_command(app)


def main(argv: Sequence[str]) -> int:
    """Run the command in the arguments; return the exit status.

    With `--json`, an error is the one document on standard output: {"error": {"code", "message", "hint"}}.
    A caller then reads one stream and finds the answer or the reason; the exit status says which.
    """
    replace_unprintable()
    as_json = "--json" in argv
    try:
        status = program(argv).main(list(argv), prog_name="ricordo", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except RicordoError as error:
        _print_error(error.message, code=error.code, hint=error.hint, as_json=as_json)
        return error.exit_status
    except TyperException as error:
        return _print_usage_error(error, as_json=as_json)
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  # a defect of ours: a reader of JSON gets a document all the same
        traceback.print_exc(file=sys.stderr)
        _print_error(f"{type(error).__name__}: {error}", code="error", hint="please report this", as_json=as_json)
        return RicordoError.exit_status


def _print_usage_error(error: TyperException, *, as_json: bool) -> int:
    """Report an unknown command or option, or an option without its value."""
    context = getattr(error, "ctx", None)
    hint = f"see `{context.command_path} --help`" if context is not None else ""
    message = error.format_message().replace("Value error, ", "")  # pydantic's prefix
    _print_error(message, code=InvalidError.code, hint=hint, as_json=as_json)
    return InvalidError.exit_status


def _print_error(message: str, *, code: str, hint: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json_text({"error": {"code": code, "message": message, "hint": hint}}).encode())
        return
    text = Text.assemble(("ricordo: ", "bold red"), safe(message))
    if hint:
        text.append(f"\n{safe(hint)}", style="dim")
    notices_console().print(text, soft_wrap=True)
