"""What of the linking of names needs the store: finding what is not linked yet, and writing links."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ricordo.store.sqlite import faults
from ricordo.store.sqlite.snapshot import Snapshot
from ricordo.words import index_terms

_MARK = "aliases linked through commit"


def spaces_with_names(snapshot: Snapshot) -> list[int]:
    """Spaces in which any name is known."""
    return [row[0] for row in snapshot.rows("spaces_with_aliases")]


def unlinked(snapshot: Snapshot, space: int, most: int) -> list[tuple[int, str]]:
    """(node key, text with its speaker) of nodes that have not been searched for names, oldest first."""
    rows = snapshot.rows("unlinked", {"space": space, "most": most})
    return [(key, f"{speaker}: {content}" if speaker else content) for key, _, content, speaker in rows]


def spaces_to_link(snapshot: Snapshot) -> list[int]:
    """Spaces with nodes that are to be searched again."""
    return [row[0] for row in snapshot.rows("to_link_spaces")]


def to_link(snapshot: Snapshot, space: int, most: int) -> list[tuple[int, int]]:
    """(note, node key) of nodes that are to be searched again, in the order they were noted."""
    return [(note, key) for note, key in snapshot.rows("to_link_of", {"space": space, "most": most})]


def texts(snapshot: Snapshot, keys: Sequence[int]) -> list[tuple[int, str]]:
    """(node key, text with its speaker) of nodes, in no order."""
    rows = snapshot.rows("node_contents", {"keys": json.dumps(keys)})
    return [(key, f"{speaker}: {content}" if speaker else content) for key, content, speaker in rows]


def link_again(
    snapshot: Snapshot, notes: Sequence[int], nodes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> None:
    """Put the links of nodes that were searched again in place of those they had."""
    snapshot.rows("links_drop", {"nodes": json.dumps(nodes)})
    put_links(snapshot, pairs)
    snapshot.rows("to_link_done", {"ids": json.dumps(notes)})


def known_names(snapshot: Snapshot, space: int, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Which of these folded names are known in a space, and who goes by them."""
    found: dict[str, tuple[int, ...]] = {}
    for name, entity in snapshot.rows("alias_hits", {"space": space, "names": json.dumps(names)}):
        found[name] = (*found.get(name, ()), entity)
    return found


def new_names(snapshot: Snapshot) -> list[tuple[int, str, str, int, int]]:
    """Names learnt since older nodes were last searched: (space, folded, as written, entity, commit)."""
    rows = snapshot.rows("aliases_since", {"seq": int(snapshot.meta(_MARK) or 0)})
    return [(space, folded, name, entity, commit) for space, folded, name, entity, commit in rows]


def holders(snapshot: Snapshot, space: int, name: str, most: int) -> list[tuple[int, str]]:
    """(node key, text) of the nodes that hold every word of a name."""
    terms = index_terms(name)
    if not terms:
        return []
    lists = [snapshot.space_postings(space, term, most=most) for term in terms]
    shared = set(lists[0]).intersection(*lists[1:])
    rows = snapshot.rows("node_contents", {"keys": json.dumps(sorted(shared))})
    return [(key, f"{speaker}: {content}" if speaker else content) for key, content, speaker in rows]


def put_links(snapshot: Snapshot, pairs: Sequence[tuple[int, int]]) -> None:
    """Write mentions: (node key, entity key)."""
    faults.reached("linking: before storing")
    for node, entity in pairs:
        snapshot.rows("found_mention_insert", {"node": node, "entity": entity})


def mark_linked(snapshot: Snapshot, space: int, through: int) -> None:
    """Everything of a space up to a node key has been searched for all names."""
    snapshot.rows("linked_through", {"space": space, "through": through})


def mark_names(snapshot: Snapshot, commit: int) -> None:
    """Older nodes have been searched for all names learnt up to a commit."""
    snapshot.rows("meta_put", {"name": _MARK, "value": str(commit)})
