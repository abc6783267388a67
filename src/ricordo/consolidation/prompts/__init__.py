"""What models are told: short files with a version in their names, and the data they are to look at, fenced. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from importlib.resources import files

from ricordo.ports import Turn

VERSION = "extract.1+verify.2"
"""What is recorded with a run. A prompt that changes gets a new file and a new number."""


@cache
def instructions(name: str) -> str:
    """The text of a prompt file, such as "extract.1"."""
    return (files(__package__) / f"{name}.md").read_text(encoding="utf-8").strip()


def extraction(lines: Sequence[str], *, before: Sequence[str], day: str, name: str = "extract.1") -> list[Turn]:
    """What to make of a page of a conversation.

    Args:
        lines: one a message, each beginning with its handle.
        before: the last lines of the page before, to be understood and not to be used.
        day: of the first message, ISO 8601.
        name: of the prompt: "extract.1" or "summarise.1".
    """
    mark = _mark((*before, *lines))
    earlier = ["(said before, for understanding only)", *before, "(from here on)"] if before else []
    fenced = "\n".join((f"<<<{mark}", *earlier, *lines, f"{mark}>>>"))
    return [Turn(role="system", text=instructions(name)), Turn(role="user", text=f"Begun on {day}.\n{fenced}")]


def verification(pairs: Sequence[tuple[str, str, str]]) -> list[Turn]:
    """What new statements are to older ones. `pairs` are (handle, new, old)."""
    lines = [f"{handle} new: {one_line(new)}\n{handle} old: {one_line(old)}" for handle, new, old in pairs]
    return _asking("verify.2", lines)


def causation(pairs: Sequence[tuple[str, str, str]]) -> list[Turn]:
    """Which of two messages led to the other. `pairs` are (handle, what was said first, what was said then)."""
    return _asking(
        "causes.1",
        [f"{handle} first: {one_line(first)}\n{handle} then: {one_line(then)}" for handle, first, then in pairs],
    )


def enrichment(known: Sequence[tuple[str, str, Sequence[tuple[str, str]]]]) -> list[Turn]:
    """Who somebody is. `known` are (handle, name and what it is, (handle, text) of what is known of it)."""
    lines = [
        line
        for handle, name, memories in known
        for line in (f"{handle} {one_line(name)}", *(f"{each} {one_line(text)}" for each, text in memories))
    ]
    return _asking("enrich.1", lines)


def reflection(memories: Sequence[tuple[str, str, str]], *, span: str) -> list[Turn]:
    """What a span of time has taught. `memories` are (handle, day, text)."""
    lines = [f"{handle} ({day}) {one_line(text)}" for handle, day, text in memories]
    return _asking("reflect.1", lines, before=f"Learnt {span}.")


def _asking(name: str, lines: Sequence[str], *, before: str = "") -> list[Turn]:
    """Instructions, and lines of data between two marks."""
    mark = _mark(lines)
    fenced = "\n".join((*([before] if before else []), f"<<<{mark}", *lines, f"{mark}>>>"))
    return [Turn(role="system", text=instructions(name)), Turn(role="user", text=fenced)]


def one_line(text: str) -> str:
    """A text as a line of a fenced part: who writes line breaks cannot make lines of their own."""
    return " / ".join(part for line in text.splitlines() if (part := line.strip()))


def _mark(lines: Sequence[str]) -> str:
    """What stands around the data. Made from it, so that no text can hold its own."""
    return blake2b("\n".join(lines).encode("utf-8", "replace"), digest_size=5).hexdigest()
