"""The program: its verbs, its options, and what becomes of errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.exceptions import TyperException
from typer.main import get_command

from ricordo.errors import InvalidError, RicordoError
from ricordo.interfaces.cli import (  # noqa: F401  # importing them adds their verbs
    backup_verbs,
    chat_verb,
    concluding_verbs,
    demo_verb,
    erase_verb,
    evolving,
    fading_verbs,
    keeping,
    people_verbs,
    porting_verbs,
    quarantine_verb,
    recalling,
    run_verbs,
    serving,
    time_verbs,
    upkeep,
)
from ricordo.interfaces.cli.door import everywhere
from ricordo.interfaces.cli.json_text import json_text
from ricordo.interfaces.cli.screen import forgive_output, notices_console, shown
from ricordo.interfaces.cli.verb import app, with_common

__all__ = ["INTERRUPTED", "app", "main"]

INTERRUPTED = 130


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"ricordo {metadata.version('ricordo')}")
        raise typer.Exit


def _begin(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_say_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
    **common: Any,
) -> None:
    ctx.obj = everywhere(**common)
    if ctx.invoked_subcommand is None:
        if ctx.obj.as_json:
            raise InvalidError("no command is given", hint="`ricordo --help` lists them")
        typer.echo(ctx.get_help())


app.callback(invoke_without_command=True)(with_common(_begin))


def main(argv: Sequence[str]) -> int:
    """Do what the arguments say; return the exit status.

    With `--json`, an error is the one document on standard output: {"error": {"code", "message", "hint"}}.
    A caller then reads one stream and finds the answer or the reason; the exit status says which.
    """
    forgive_output()
    as_json = "--json" in argv
    try:
        status = get_command(app).main(list(argv), prog_name="ricordo", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except RicordoError as error:
        _complain(error.message, code=error.code, hint=error.hint, as_json=as_json)
        return error.exit_status
    except TyperException as error:
        return _misused(error, as_json=as_json)
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  # a defect of ours: who reads JSON gets a document all the same
        traceback.print_exc(file=sys.stderr)
        _complain(f"{type(error).__name__}: {error}", code="error", hint="please report this", as_json=as_json)
        return RicordoError.exit_status


def _misused(error: TyperException, *, as_json: bool) -> int:
    """A verb or option there is not, or one without its value."""
    context = getattr(error, "ctx", None)
    hint = f"see `{context.command_path} --help`" if context is not None else ""
    message = error.format_message().replace("Value error, ", "")  # the words of the library that checks the choices
    _complain(message, code=InvalidError.code, hint=hint, as_json=as_json)
    return InvalidError.exit_status


def _complain(message: str, *, code: str, hint: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json_text({"error": {"code": code, "message": message, "hint": hint}}).encode())
        return
    text = Text.assemble(("ricordo: ", "bold red"), shown(message))
    if hint:
        text.append(f"\n{shown(hint)}", style="dim")
    notices_console().print(text, soft_wrap=True)
