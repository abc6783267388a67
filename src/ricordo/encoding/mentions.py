"""Who and what a text names, among those that are known. Rules only, in any script; nobody new is made here.

Names are found as `words.naming` says. "My wife" is looked up among the owner's relations.
"""

from __future__ import annotations

from collections.abc import Sequence

from ricordo.encoding.speakers import is_owners_word
from ricordo.storage.values import LinkText, RelationHolder
from ricordo.text.kinship import relations_in
from ricordo.text.names import MAX_CHARS, Known, meant, runs_in


def mentions(
    texts: Sequence[LinkText], known: Known, *, holders: Sequence[RelationHolder], owner: str
) -> list[tuple[int, int]]:
    """Pairs (node key, entity key): which node names whom. Pure."""
    pairs: dict[tuple[int, int], None] = {}
    for text in texts:
        for run in runs_in(text.text):
            for entity in meant(run, known, text.text):
                pairs[text.key, entity] = None
        if holders and is_owners_word(text.role, text.origin, text.speaker, owner=owner):
            for entity in _related(text, holders):
                pairs[text.key, entity] = None
    return list(pairs)


def _related(text: LinkText, holders: Sequence[RelationHolder]) -> list[int]:
    """Whom "my wife" and the like mean in a text, by who it was when it was said; of several brothers nobody."""
    found: list[int] = []
    for predicate in relations_in(text.text[:MAX_CHARS]):
        at_the_time = [
            holder
            for holder in holders
            if holder.predicate == predicate
            and (holder.start is None or holder.start <= text.at)
            and (holder.end is None or text.at < holder.end)
        ]
        if len({holder.whole for holder in at_the_time}) == 1:
            found += [holder.entity for holder in at_the_time]
    return found
