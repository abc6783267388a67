"""A conversation in pages that a model can take: so many messages, so many tokens, a short handle a line. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ricordo.consolidation.prompts import one_line
from ricordo.model import Node
from ricordo.ports import TokenCounter
from ricordo.text.recalled import PLACE, without_recalled

PAGE = 30
"""How many messages a page has at most."""

_BEFORE = 2
_BEFORE_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a conversation. `episodes` are its messages by the handles that were handed out; `lines` show them."""

    lines: tuple[str, ...]
    before: tuple[str, ...]
    episodes: Mapping[str, Node]

    @property
    def day(self) -> str:
        return next(iter(self.episodes.values())).event_time.date().isoformat()


def pages(episodes: Sequence[Node], *, room: int, tokens: TokenCounter) -> list[Page]:
    """Every message on a page; one that is longer than a page goes on over several.

    Args:
        room: how many tokens the lines of a page may have.
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
            lines.append(f"{handle} {who(node)}: {part}")
            held[handle] = node
            taken += cost
    if lines:
        found.append(_page(lines, held, found))
    return found


def lines_of(episodes: Sequence[Node]) -> tuple[str, ...]:
    """The last few messages as lines that are to be understood and not to be used."""
    return tuple(f"{who(node)}: {one_line(own_words(node))}"[:_BEFORE_CHARS] for node in episodes[-_BEFORE:])


def _page(lines: list[str], held: dict[str, Node], earlier: Sequence[Page]) -> Page:
    last = earlier[-1].lines[-_BEFORE:] if earlier else ()
    before = tuple(line.partition(" ")[2][:_BEFORE_CHARS] for line in last)
    return Page(lines=tuple(lines), before=before, episodes=dict(held))


def who(node: Node) -> str:
    """Who says a line, as the model is told."""
    if node.speaker:
        name = one_line(node.speaker)
        return f"{name} ({node.role})" if node.role in ("assistant", "tool", "system") else name
    return "the user" if node.role == "user" else node.role or "somebody"


def own_words(node: Node) -> str:
    """What a message says of its own: what was recalled from this very memory would confirm itself."""
    return without_recalled(node.content).replace(PLACE, " ")


def _parts(node: Node, *, room: int, tokens: TokenCounter) -> Iterator[str]:
    """A message on one line, or cut at blanks into as many as it takes."""
    text = one_line(own_words(node))
    while tokens.count(text) > room:
        most = max(100, len(text) * room // max(1, tokens.count(text)) - 50)
        cut = text.rfind(" ", most // 2, most)
        cut = most if cut < 0 else cut
        yield text[:cut]
        text = text[cut:].lstrip()
    if text:
        yield text
