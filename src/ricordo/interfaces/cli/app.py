"""The program: its commands, its top-level options, and the handling of errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click
from rich.text import Text

from ricordo.errors import InvalidError, RicordoError
from ricordo.interfaces import demo
from ricordo.interfaces.cli import chat, knowledge, read, serve, storage, write
from ricordo.interfaces.cli.options import Program, common_options, common_parameters
from ricordo.interfaces.cli.terminal import notices_console, replace_unprintable, safe
from ricordo.interfaces.serialize import json_text

__all__ = ["INTERRUPTED", "chat", "demo", "knowledge", "main", "program", "read", "serve", "storage", "write"]

INTERRUPTED = 130


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
    """Return the program; importing the modules above has registered the functions of its verbs."""
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


def main(argv: Sequence[str]) -> int:
    """Run the command in the arguments; return the exit status.

    With `--json`, an error is the one document on standard output: {"error": {"code", "message", "hint"}}.
    A caller then reads one stream and finds the answer or the reason; the exit status says which.
    """
    replace_unprintable()
    as_json = "--json" in argv
    try:
        status = program().main(list(argv), prog_name="ricordo", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except RicordoError as error:
        _print_error(error.message, code=error.code, hint=error.hint, as_json=as_json)
        return error.exit_status
    except click.ClickException as error:
        return _print_usage_error(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  # a defect of ours: a reader of JSON gets a document all the same
        traceback.print_exc(file=sys.stderr)
        _print_error(f"{type(error).__name__}: {error}", code="error", hint="please report this", as_json=as_json)
        return RicordoError.exit_status


def _print_usage_error(error: click.ClickException, *, as_json: bool) -> int:
    """Report an unknown command or option, or an option without its value."""
    context = getattr(error, "ctx", None)
    hint = f"see `{context.command_path} --help`" if context is not None else ""
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
