"""The links that follow from texts and names by rule, of any nodes, read from one snapshot: of today or of the past."""

from __future__ import annotations

from collections.abc import Sequence

from ricordo.encoding.mentions import Unlinked, candidates, mentions
from ricordo.store import Snapshot
from ricordo.store.sqlite import linking


def links(snapshot: Snapshot, space: int, keys: Sequence[int]) -> list[tuple[int, int]]:
    """(node key, entity key) of who is named where, by the names this snapshot knows."""
    texts = linking.texts(snapshot, keys)
    known = linking.known_names(snapshot, space, candidates(text for _, text in texts))
    return mentions([Unlinked(key=key, text=text) for key, text in texts], known)
