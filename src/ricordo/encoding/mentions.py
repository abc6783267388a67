"""Who and what a text names, among those that are known. Rules only, in any script; nobody new is made here.

Every run of up to four words is looked up among the folded names. Latin names must match as whole words; a name
that is also a function word ("Will", "May") counts only where it is capitalised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ricordo.words import function_words, name_terms

MAX_NAME_WORDS = 4
# Names stand at the beginning of long documents; a 10 MB text must not be cut into forty million runs.
MAX_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlinked:
    """A node whose text has not been searched for names."""

    key: int
    text: str


def names_in(text: str) -> list[str]:
    """Every run of one to four folded words, distinct: what could be a name."""
    words = name_terms(text[:MAX_CHARS])
    runs = (
        " ".join(words[start : start + size])
        for start in range(len(words))
        for size in range(1, min(MAX_NAME_WORDS, len(words) - start) + 1)
    )
    return list(dict.fromkeys(runs))


def mentions(nodes: Sequence[Unlinked], known: Mapping[str, tuple[int, ...]]) -> list[tuple[int, int]]:
    """Pairs (node key, entity key): which node names whom. Pure.

    Args:
        known: folded name to the entities that go by it.
    """
    return [
        (node.key, entity)
        for node in nodes
        for name in names_in(node.text)
        if name in known and is_name_here(name, node.text)
        for entity in known[name]
    ]


def is_name_here(name: str, text: str) -> bool:
    """Whether a folded name can be one in this text: function words only where they are capitalised."""
    if name not in _ambiguous():
        return True
    return re.search(rf"(?<!^)(?<![.!?] )\b{re.escape(name.capitalize())}\b", text[:MAX_CHARS]) is not None


def _ambiguous() -> frozenset[str]:
    return function_words("en") | frozenset(("may", "april", "june", "august", "mark", "rose", "grace", "hope", "joy"))


def candidates(texts: Iterable[str]) -> list[str]:
    """All possible names of several texts, for one look-up."""
    return list(dict.fromkeys(name for text in texts for name in names_in(text)))
