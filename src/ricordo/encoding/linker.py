"""The links that follow from texts and names by rule, of any nodes, read from one snapshot: of today or of the past."""

from __future__ import annotations

from collections.abc import Sequence

from ricordo.encoding.mentions import mentions
from ricordo.storage import Snapshot
from ricordo.text.names import candidates


def links(snapshot: Snapshot, space: int, keys: Sequence[int]) -> list[tuple[int, int]]:
    """(node key, entity key) of who is named where, by the names and relations this snapshot knows."""
    texts = snapshot.mentions.texts(keys)
    names, sounds = candidates(text.text for text in texts)
    known = snapshot.mentions.known_names(space, names, sounds)
    holders, owner = snapshot.mentions.holders_of(space), snapshot.mentions.owner_of(space)
    return mentions(texts, known, holders=holders, owner=owner)
