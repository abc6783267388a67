"""Suppressed sentences: what was forgotten or erased and must not be learnt or shown again. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ricordo.model import Node
from ricordo.text.sentences import Sentence, sentences

MIN_GLOBAL_WORDS = 3
"""A sentence with fewer words is too general to suppress outside its own session."""


class Match(NamedTuple):
    """A suppressed sentence in a text: the number of the suppression, and whether what it said was erased."""

    sentence: Sentence
    withheld: int
    is_erased: bool


class Withhold(NamedTuple):
    """A sentence to suppress.

    Attributes:
        cause: key of the memory that was forgotten or erased.
        words: the content words of the sentence.
        session: where it was said, if anywhere.
        is_bound: suppressed in its session only.
        is_shared: suppressed only as long as the other sentences of its cause are.
        spans: (node key, start, length) of the texts that say it.
    """

    cause: int
    words: frozenset[str]
    session: str | None
    is_bound: bool
    is_erased: bool
    is_shared: bool
    spans: tuple[tuple[int, int, int], ...] = ()


def of_text(node: Node, *, is_erased: bool, spans: bool) -> list[Withhold]:
    """Return the sentences of a memory. Those of a fact are suppressed everywhere, not only in its session.

    Args:
        spans: also hide the sentences in the memory's own text.
    """
    is_fact = node.type != "episodic"
    return [
        Withhold(
            cause=node.key,
            words=each.words,
            session=node.session,
            is_bound=not is_fact and len(each.words) < MIN_GLOBAL_WORDS,
            is_erased=is_erased,
            is_shared=is_fact,
            spans=((node.key, each.start, len(each.text)),) if spans else (),
        )
        for each in sentences(node.content)
    ]


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text without some (start, length) pieces; "" if what is left says nothing."""
    kept, end = [], 0
    for start, length in sorted(spans):
        kept.append(text[end : max(start, end)])
        end = max(end, start + length)
    kept.append(text[end:])
    left = " … ".join(piece.strip() for piece in kept if piece.strip())
    return left if next(sentences(left), None) else ""
