"""Find known entities that texts mention, by rule and in any script. Nothing is added here.

Names are matched by `text.names`. "My wife" is looked up among the owner's relations.
"""

from __future__ import annotations

from collections.abc import Sequence

from ricordo.encoding.relations import is_owners_word
from ricordo.storage import Snapshot
from ricordo.storage.values import LinkText, RelationHolder
from ricordo.text.kinship import relations_in
from ricordo.text.names import MAX_CHARS, Known, candidates, meant, runs_in


def find_mentions(
    texts: Sequence[LinkText], known: Known, *, holders: Sequence[RelationHolder], owner: str
) -> list[tuple[int, int]]:
    """Return (node key, entity key) pairs: which node mentions which entity."""
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
    """Return the entities that "my wife" and the like meant when the text was said; none if there were several."""
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


def links(snapshot: Snapshot, space: int, keys: Sequence[int]) -> list[tuple[int, int]]:
    """Return (node key, entity key) pairs for some nodes, by the names and relations of this snapshot."""
    texts = snapshot.mentions.texts(keys)
    names, sounds = candidates(text.text for text in texts)
    known = snapshot.mentions.known_names(space, names, sounds)
    holders, owner = snapshot.mentions.holders_of(space), snapshot.mentions.owner_of(space)
    return find_mentions(texts, known, holders=holders, owner=owner)
