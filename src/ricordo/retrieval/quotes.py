"""What an agent was told and then says itself: use of a memory, and no news."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from ricordo.model import Hit, Scope
from ricordo.text import raw_words
from ricordo.text.recalled import cited

_KEPT = 300
_LEAST_WORDS = 4


class Told:
    """The latest memories that contexts told in this process, by scope."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[Scope, str], tuple[str, str]] = OrderedDict()

    def keep(self, scope: Scope, hits: Iterable[Hit]) -> None:
        """These memories were told."""
        for hit in hits:
            self._told[scope, hit.id] = hit.handle, _folded(hit.content[:1_000])
            self._told.move_to_end((scope, hit.id))
        while len(self._told) > _KEPT:
            self._told.popitem(last=False)

    def quoted_in(self, scope: Scope, text: str) -> list[str]:
        """The ids of the memories that a text quotes word for word, or cites by their handle."""
        if not self._told:
            return []
        handles, said = set(cited(text)), f" {_folded(text)} "
        return [
            id
            for (whose, id), (handle, words) in self._told.items()
            if whose == scope and (handle in handles or (words.count(" ") >= _LEAST_WORDS - 1 and f" {words} " in said))
        ]


def _folded(text: str) -> str:
    return " ".join(raw_words(text))
