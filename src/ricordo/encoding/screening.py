"""Screen incoming text for what was forgotten or erased: it is not learnt again unless a person states it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ricordo.clock import to_ms
from ricordo.encoding.relations import is_persons_word
from ricordo.model import Node
from ricordo.storage import Snapshot, suppression

Span = tuple[str, int, int, int]
"""A part of a message that answers leave out: node id, start, length, and the number of what withholds it."""

# Origins that are no person's own words: derived from messages, or brought from elsewhere.
_SECOND_HAND = frozenset(("extraction", "consolidation", "import", "tool_result", "web"))


class Screened(NamedTuple):  # not a dataclass: an import makes one for each message, and a tuple is made faster
    """A message as it may be stored, or None; the part that may be learnt from; and what it states again."""

    node: Node | None
    heard: str
    spans: tuple[Span, ...] = ()
    restated: tuple[int, ...] = ()


def all_screened(snapshot: Snapshot, nodes: Sequence[Node]) -> list[Screened]:
    """Screen the messages of one caller, in order. Usually nothing is withheld, and no message is looked at."""
    space = snapshot.space(nodes[0].owner, nodes[0].chat) if nodes else None
    if space is None or not snapshot.suppression.withholds(space):
        return [Screened(node, node.content) for node in nodes]
    return [screened(snapshot, node) for node in nodes]


def screened(snapshot: Snapshot, node: Node) -> Screened:
    """Return a message without what was erased before, and with spans over what was forgotten before."""
    space = snapshot.space(node.owner, node.chat)
    if space is None:
        return Screened(node=node, heard=node.content)
    said_at = to_ms(node.event_time) if is_persons_word(node.role, node.origin) else None
    text = node.content
    found = snapshot.suppression.matches(space, text, session=node.session, said_at=said_at)
    if erased := [each.sentence for each in found if each.is_erased]:
        text = suppression.without(text, [(each.start, len(each.text)) for each in erased])
        if not text:
            return Screened(node=None, heard="")
        found = snapshot.suppression.matches(space, text, session=node.session, said_at=said_at)
    pieces = [(each.sentence.start, len(each.sentence.text), each.withheld) for each in found]
    heard = suppression.without(text, [piece[:2] for piece in pieces]) if pieces else text
    return Screened(
        node=node if text == node.content else replace(node, content=text),
        heard=heard,
        spans=tuple((node.id, *piece) for piece in pieces),
        restated=() if said_at is None or not heard else tuple(snapshot.suppression.said_anew(space, heard)),
    )


def may_learn(snapshot: Snapshot, fact: Node) -> bool:
    """Return whether a fact may be kept: a person may state it again, but it may not be derived again."""
    if fact.origin not in _SECOND_HAND:
        return True
    return not snapshot.suppression.is_withheld(fact.owner, fact.chat, fact.content, session=fact.session)


def said_again(snapshot: Snapshot, facts: Sequence[Node]) -> tuple[int, ...]:
    """Return the numbers of what was forgotten and is now stated again."""
    found: dict[int, None] = {}
    for fact in facts:
        space = snapshot.space(fact.owner, fact.chat)
        if space is not None:
            found.update(dict.fromkeys(snapshot.suppression.said_anew(space, fact.content)))
    return tuple(found)
