"""What makes an asynchronous function a command: common options, event loop, and the answer's two forms."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import typer

from ricordo.errors import UnavailableError
from ricordo.interfaces.cli.door import Door, everywhere
from ricordo.interfaces.cli.json_text import json_text
from ricordo.interfaces.cli.screen import Answer, let_go_of_output

Work = Callable[..., Awaitable[Answer]]
"""A command: takes the door and its own arguments, gives an answer."""

app = typer.Typer(
    name="ricordo",
    help="A long-term memory: keep what is said, and find it again by what it means.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

_COMMON = inspect.signature(everywhere, eval_str=True).parameters


def with_common(work: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the options of every command among its parameters, in place of `**common`.

    Typer reads a command's parameters from its signature, so both kinds have to stand in it side by side.
    """
    own = inspect.signature(work, eval_str=True).parameters.values()
    named = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*named, *_COMMON.values())]

    def command(**arguments: Any) -> Any:
        return work(**arguments)

    command.__doc__ = work.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def verb(name: str, *, panel: str) -> Callable[[Work], Work]:
    """Make a function a command of that name, which takes the options of every command, too."""

    def register(work: Work) -> Work:
        app.command(name, rich_help_panel=panel)(_command(work))
        return work

    return register


def blocking_verb(name: str, *, panel: str) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """The same for a function that does without an event loop: the main thread is the keyboard's."""

    def register(work: Callable[..., Answer]) -> Callable[..., Answer]:
        def do(work: Callable[..., Answer], door: Door, arguments: dict[str, Any]) -> int:
            return given(work(door, **arguments), door)

        app.command(name, rich_help_panel=panel)(_command(work, do))
        return work

    return register


def _command(work: Callable[..., Any], do: Callable[..., int] | None = None) -> Callable[..., int]:
    """The blocking function that Typer calls: the signature is the work's, a context in place of the door."""

    def command(ctx: typer.Context, **arguments: Any) -> int:
        common = everywhere(**{each: arguments.pop(each) for each in _COMMON})
        return (do or perform)(work, Door(common.over(ctx.obj)), arguments)

    own = inspect.signature(work, eval_str=True)
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, *(each for each in own.parameters.values() if each.name != "door")]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__doc__ = work.__doc__
    return with_common(command)


def perform(work: Work, door: Door, arguments: dict[str, Any]) -> int:
    """Run a command and give its answer; return the exit status.

    Raises:
        UnavailableError: the answer cannot be written, to a full disk for instance.
    """
    return given(asyncio.run(_awaited(work, door, arguments)), door)


def given(answer: Answer, door: Door) -> int:
    """Give an answer; return the exit status. Raises as `perform` does."""
    try:
        _give(answer, door)
    except BrokenPipeError:  # who reads has read enough
        raise
    except OSError as error:
        let_go_of_output()
        raise UnavailableError(f"the answer cannot be written: {error.strerror}") from error
    return answer.exit_status


def _give(answer: Answer, door: Door) -> None:
    if door.given.as_json:
        # As bytes: JSON is UTF-8, whatever the terminal's encoding.
        typer.echo(json_text(answer.data).encode())
    else:
        answer.show(door.out)


async def _awaited(work: Work, door: Door, arguments: dict[str, Any]) -> Answer:
    return await work(door, **arguments)
