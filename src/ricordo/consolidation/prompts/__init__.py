"""Prompts: versioned instruction files, and the fenced data for a model to read. Pure.

A conversation is cut into pages with a limited number of messages and tokens. Each line has a short handle, by which
the model names its evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files

from ricordo.model import Node
from ricordo.ports import TokenCounter, Turn
from ricordo.text.prompt_text import PLACE, without_recalled

EXTRACT = "extract.2"
CHECK = "check.1"
VERSION = f"{EXTRACT}+{CHECK}+verify.2"
"""The version that a run records. A changed prompt gets a new file and a new number."""

PAGE = 30
"""Maximum number of messages per page."""

_BEFORE = 2
_BEFORE_CHARS = 300


@cache
def instructions(name: str) -> str:
    """Return the text of a prompt file, such as "extract.2"."""
    return (files(__package__) / f"{name}.md").read_text(encoding="utf-8").strip()


def extraction(lines: Sequence[str], *, before: Sequence[str], day: str, name: str = "extract.2") -> list[Turn]:
    """Ask what to learn from a page of a conversation.

    Args:
        lines: one per message, beginning with its handle.
        before: the last lines of the previous page, as context that must not be used as evidence.
        day: date of the first message, ISO 8601.
        name: name of the prompt: "extract.2" or "summarise.1".
    """
    mark = _mark((*before, *lines))
    earlier = ["(said before, for understanding only)", *before, "(from here on)"] if before else []
    fenced = "\n".join((f"<<<{mark}", *earlier, *lines, f"{mark}>>>"))
    return [Turn(role="system", text=instructions(name)), Turn(role="user", text=f"Begun on {day}.\n{fenced}")]


def check(claims: Sequence[tuple[str, str, Sequence[str], Sequence[str]]]) -> list[Turn]:
    """Ask whether statements are supported by their lines. `claims` are (handle, statement, lines before, lines)."""
    lines = [
        line
        for handle, claim, before, cited in claims
        for line in (f"{handle} note: {one_line(claim)}", *(f"{handle} [{each}]" for each in before), *cited)
    ]
    return _asking(CHECK, lines)


def verification(pairs: Sequence[tuple[str, str, str]]) -> list[Turn]:
    """Ask how new statements relate to older ones. `pairs` are (handle, new, old)."""
    lines = [f"{handle} new: {one_line(new)}\n{handle} old: {one_line(old)}" for handle, new, old in pairs]
    return _asking("verify.2", lines)


def causation(pairs: Sequence[tuple[str, str, str]]) -> list[Turn]:
    """Ask which of two messages led to the other. `pairs` are (handle, first message, next message)."""
    return _asking(
        "causes.1",
        [f"{handle} first: {one_line(first)}\n{handle} then: {one_line(then)}" for handle, first, then in pairs],
    )


def enrichment(known: Sequence[tuple[str, str, Sequence[tuple[str, str]]]]) -> list[Turn]:
    """Ask for summaries of entities. `known` are (handle, name and kind, (handle, text) of each memory)."""
    lines = [
        line
        for handle, name, memories in known
        for line in (f"{handle} {one_line(name)}", *(f"{each} {one_line(text)}" for each, text in memories))
    ]
    return _asking("enrich.1", lines)


def reflection(memories: Sequence[tuple[str, str, str]], *, span: str) -> list[Turn]:
    """Ask what memories of a span of time show together. `memories` are (handle, day, text)."""
    lines = [f"{handle} ({day}) {one_line(text)}" for handle, day, text in memories]
    return _asking("reflect.1", lines, before=f"Learnt {span}.")


def answering(question: str, lines: Sequence[str], undecided: Sequence[str], *, day: str) -> list[Turn]:
    """Ask a question about memories.

    Args:
        lines: one per memory, beginning with its handle.
        undecided: lines that state which memories contradict each other.
        day: today, ISO 8601.
    """
    return _asking("answer.1", [*lines, *undecided], before=f"Today is {day}. The question: {one_line(question)}")


def briefing(lines: Sequence[str], *, day: str) -> list[Turn]:
    """Ask for a briefing. Each line is a memory, beginning with its handle; `day` is today, ISO 8601."""
    return _asking("brief.1", lines, before=f"Today is {day}.")


def _asking(name: str, lines: Sequence[str], *, before: str = "") -> list[Turn]:
    """Return instructions, and lines of data between two fence marks."""
    mark = _mark(lines)
    fenced = "\n".join((*([before] if before else []), f"<<<{mark}", *lines, f"{mark}>>>"))
    return [Turn(role="system", text=instructions(name)), Turn(role="user", text=fenced)]


def one_line(text: str) -> str:
    """Return a text on one line of fenced data, so that its line breaks cannot start a line."""
    return " / ".join(part for line in text.splitlines() if (part := line.strip()))


def _mark(lines: Sequence[str]) -> str:
    """Return the fence mark: a hash of the data, so that no text can contain its own mark."""
    return blake2b("\n".join(lines).encode("utf-8", "replace"), digest_size=5).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a conversation: its lines, the last lines before them, and its messages by handle."""

    lines: tuple[str, ...]
    before: tuple[str, ...]
    episodes: Mapping[str, Node]

    @property
    def day(self) -> str:
        return next(iter(self.episodes.values())).event_time.date().isoformat()


def pages(episodes: Sequence[Node], *, room: int, tokens: TokenCounter) -> list[Page]:
    """Cut messages into pages. A message longer than a page continues on the next pages.

    Args:
        room: maximum number of tokens for the lines of a page.
    """
    found: list[Page] = []
    lines: list[str] = []
    held: dict[str, Node] = {}
    taken = 0
    for node in episodes:
        for part in _parts(node, room=max(room, 50), tokens=tokens):
            cost = tokens.count(part) + 6
            if lines and (len(lines) >= PAGE or taken + cost > room):
                found.append(_page(lines, held, found))
                lines, held, taken = [], {}, 0
            handle = f"e{len(lines) + 1}"
            lines.append(f"{handle} {speaker_label(node)}: {part}")
            held[handle] = node
            taken += cost
    if lines:
        found.append(_page(lines, held, found))
    return found


def lines_of(episodes: Sequence[Node]) -> tuple[str, ...]:
    """Return messages as lines without handles, as context that must not be used as evidence."""
    return tuple(f"{speaker_label(node)}: {one_line(own_words(node))}"[:_BEFORE_CHARS] for node in episodes[-_BEFORE:])


def _page(lines: list[str], held: dict[str, Node], earlier: Sequence[Page]) -> Page:
    last = earlier[-1].lines[-_BEFORE:] if earlier else ()
    before = tuple(line.partition(" ")[2][:_BEFORE_CHARS] for line in last)
    return Page(lines=tuple(lines), before=before, episodes=dict(held))


def speaker_label(node: Node) -> str:
    """Return the speaker of a line, as shown to a model."""
    if node.speaker:
        name = one_line(node.speaker)
        return f"{name} ({node.role})" if node.role in ("assistant", "tool", "system") else name
    return "the user" if node.role == "user" else node.role or "somebody"


def own_words(node: Node) -> str:
    """Return a message without text recalled from this memory, which would otherwise confirm itself."""
    return without_recalled(node.content).replace(PLACE, " ")


def _parts(node: Node, *, room: int, tokens: TokenCounter) -> Iterator[str]:
    """Yield a message as one line, or cut at spaces into as many lines as needed."""
    text = one_line(own_words(node))
    while tokens.count(text) > room:
        most = max(100, len(text) * room // max(1, tokens.count(text)) - 50)
        cut = text.rfind(" ", most // 2, most)
        cut = most if cut < 0 else cut
        yield text[:cut]
        text = text[cut:].lstrip()
    if text:
        yield text
