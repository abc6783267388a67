"""Progress bars on standard error, for work that takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from ricordo.ports import Progress as Told

if TYPE_CHECKING:
    from ricordo.memory import Memory

_LOOK_S = 0.2


@contextmanager
def progress_bar(console: Console, doing: str) -> Iterator[Told]:
    """A bar that is told how far things are; nothing at all where no terminal shows it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:
        bar = bars.add_task(doing, total=None)

        def told(done: int, total: int) -> None:
            bars.update(bar, completed=done, total=total)

        yield told


@contextmanager
def progress_bar_once_told(console: Console, doing: str) -> Iterator[Told]:
    """A bar for what is seldom to do: it is there from when it is told of something until that is done."""
    with ExitStack() as bars:
        bar: Told | None = None

        def told(done: int, total: int) -> None:
            nonlocal bar
            if bar is None and done < total:
                bar = bars.enter_context(progress_bar(console, doing))
            if bar is not None:
                bar(done, total)
            if done >= total:
                bar = None
                bars.close()

        yield told


async def embedded(console: Console, memory: Memory) -> None:
    """Stay until every memory is found by meaning, however long that takes."""
    work = asyncio.create_task(memory.settle())
    with progress_bar(console, "Working out what it means") as told:
        while not work.done():
            if console.is_terminal:
                figures = await memory.stats()
                told(figures.embedded, figures.embedded + figures.embedding_missing)
            await asyncio.wait([work], timeout=_LOOK_S)
    await work
