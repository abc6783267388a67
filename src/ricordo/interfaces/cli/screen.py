"""What people see: consoles for results and for notices, and text made safe for a terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.text import Text

# Where no terminal is near (a job, a test) there is no width to ask for; rich's 80 would cut tables early.
_FILE_WIDTH = 120

# A memory may come from the web: its text must not move the cursor, retitle the window or reverse the line.
_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command found: as data for `--json`, and a way to show it to people."""

    data: object
    show: Callable[[Console], None]
    exit_status: int = 0


def results_console() -> Console:
    """Where results go: standard output."""
    return _console(sys.stdout)


def notices_console() -> Console:
    """Where progress, hints and errors go: standard error."""
    return _console(sys.stderr)


def _console(file: TextIO) -> Console:
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    if not any(os.isatty(descriptor) for descriptor in (0, 1, 2)) and "COLUMNS" not in os.environ:
        console.width = _FILE_WIDTH
    return console


def shown(text: str) -> str:
    """The text without what a terminal would obey instead of show."""
    return _UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def one_line(text: str, *, most: int = 300) -> str:
    """The beginning of a text, its lines joined."""
    joined = " ".join(shown(text[: most * 4]).split())
    return joined if len(joined) <= most else joined[: most - 1].rstrip() + "…"


def dim(text: str) -> Text:
    return Text(text, style="dim")


def forgive_output() -> None:
    """A terminal that cannot show a character shows a mark in its place instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def a(name: str) -> str:
    """The name of a category with its article, where it has one."""
    if name in ("knowledge", "context"):
        return name
    return f"{'an' if name[:1] in tuple('aeio') else 'a'} {name}"


def let_go_of_output() -> None:
    """Standard output cannot be written: what is left in its buffer must not fail again when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
