"""Newer before older: what was replaced or contradicted does not stand above what came after it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ricordo.retrieval.rank import Ranked


def in_succession(
    hits: Sequence[Ranked], *, links: Iterable[tuple[int, int]], successors: Mapping[int, int]
) -> list[Ranked]:
    """The hits, best first, with newer versions in the places of the older ones they are linked with.

    Places and scores change hands within a group of linked hits and nowhere else; a share "newer" says what a hit won
    or lost by that, so that its shares still add up to its score.

    Args:
        hits: best first.
        links: pairs (newer, older) of node keys; keys of nodes that are no hits may connect those that are.
        successors: for the key of a replaced node, that of its live newest version.
    """
    present = _succeeded(hits, successors)
    after: dict[int, set[int]] = {}
    for newer, older in links:
        after.setdefault(newer, set()).add(older)
    if not after:
        return present
    places = {each.key: place for place, each in enumerate(present)}
    ordered = list(present)
    for group in _groups(after, places):
        ranks = sorted(places[key] for key in group)
        newest = sorted(group, key=lambda key: (-len(_older(key, after)), places[key]))
        for place, key in zip(ranks, newest, strict=True):
            ordered[place] = _moved(present[places[key]], score=present[place].score)
    return ordered


def _succeeded(hits: Sequence[Ranked], successors: Mapping[int, int]) -> list[Ranked]:
    """Each replaced hit becomes its successor, which keeps its best place where it is a hit already."""
    found: dict[int, Ranked] = {}
    for hit in hits:
        key = successors.get(hit.key, hit.key)
        found.setdefault(key, hit if key == hit.key else hit._replace(key=key))
    return list(found.values())


def newest_of_equal(hits: Sequence[Ranked], *, said: Mapping[int, tuple[str, int]]) -> list[Ranked]:
    """Of hits that say the same only the newest, in the best place of them all.

    Args:
        said: the statement and subjects of a hit by key, and since when.
    """
    newest: dict[str, int] = {}
    for hit in hits:
        if hit.key in said:
            line, since = said[hit.key]
            other = newest.get(line)
            if other is None or (since, hit.key) > (said[other][1], other):
                newest[line] = hit.key
    if len(newest) == len(said):
        return list(hits)
    by_key = {hit.key: hit for hit in hits}
    shown: dict[str, Ranked] = {}
    for hit in hits:
        if hit.key not in said:
            shown[str(hit.key)] = hit
        elif (line := said[hit.key][0]) not in shown:
            shown[line] = _moved(by_key[newest[line]], score=hit.score)
    return list(shown.values())


def _groups(after: Mapping[int, set[int]], hits: Mapping[int, int]) -> list[list[int]]:
    """The hits that hang together by links, in groups of two and more."""
    neighbours: dict[int, set[int]] = {}
    for newer, olders in after.items():
        for older in olders:
            neighbours.setdefault(newer, set()).add(older)
            neighbours.setdefault(older, set()).add(newer)
    seen: set[int] = set()
    groups = []
    for start in hits:
        if start not in seen and start in neighbours:
            group = _reached(start, neighbours)
            seen |= group
            groups.append([key for key in group if key in hits])
    return [group for group in groups if len(group) > 1]


def _older(key: int, after: Mapping[int, set[int]]) -> set[int]:
    """Everything a node came after, however many steps away."""
    return _reached(key, after) - {key}


def _reached(start: int, steps: Mapping[int, set[int]]) -> set[int]:
    reached, left = {start}, [start]
    while left:
        for key in steps.get(left.pop(), ()):
            if key not in reached:
                reached.add(key)
                left.append(key)
    return reached


def _moved(hit: Ranked, *, score: float) -> Ranked:
    """A hit with the score of the place it takes."""
    return hit._replace(score=score, moved=hit.moved + score - hit.score)
