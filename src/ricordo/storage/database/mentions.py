"""Linking names in texts to entities: what is not linked yet, and writing links."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ricordo.storage import faults
from ricordo.storage.database.fulltext import space_postings
from ricordo.storage.database.rows import Row
from ricordo.storage.database.statements import Statements
from ricordo.storage.values import LinkText, RelationHolder
from ricordo.text import index_terms
from ricordo.text.names import Bearer

_MARK = "aliases linked through commit"


def _text(row: Row) -> LinkText:
    key, content, speaker, role, origin, at = row
    text = f"{speaker}: {content}" if speaker else content
    return LinkText(key=key, text=text, role=role, origin=origin, speaker=speaker, at=at)


class Mentions:
    """Linking names in texts to entities: what is not linked yet, and writing links."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def spaces_with_names(self) -> list[int]:
        """Return the spaces that have any entity name."""
        return [row[0] for row in self._sql.rows("spaces_with_aliases")]

    def spaces_to_link(self) -> list[int]:
        """Return the spaces with nodes to search again."""
        return [row[0] for row in self._sql.rows("to_link_spaces")]

    def to_link(self, space: int, most: int) -> list[tuple[int, int]]:
        """Return (note, node key) of nodes to search again, in the order they were noted."""
        return [(note, key) for note, key in self._sql.rows("to_link_of", {"space": space, "most": most})]

    def texts(self, keys: Sequence[int]) -> list[LinkText]:
        """Return the texts of nodes by key, in no order."""
        return [_text(row) for row in self._sql.rows("node_contents", {"keys": json.dumps(keys)})]

    def put_links_again(self, notes: Sequence[int], nodes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> None:
        """Replace the links of nodes that were searched again. Only inside `derive`."""
        self.drop_all_links(nodes)
        self.put_links(pairs)
        self._sql.rows("to_link_done", {"ids": json.dumps(notes)})

    def unlinked(self, space: int, most: int) -> list[LinkText]:
        """Return nodes that were not searched for names yet, oldest first."""
        return [_text(row) for row in self._sql.rows("unlinked", {"space": space, "most": most})]

    def known_names(self, space: int, keys: Sequence[str], sounds: Sequence[str]) -> dict[str, tuple[Bearer, ...]]:
        """Return which of these folded names and sounds a space knows, with their bearers."""
        found: dict[str, tuple[Bearer, ...]] = {}
        values = {"space": space, "keys": json.dumps(keys), "sounds": json.dumps(sounds)}
        for key, *bearer in self._sql.rows("names_known", values):
            found[key] = (*found.get(key, ()), Bearer(*bearer))
        return found

    def holders_of(self, space: int) -> list[RelationHolder]:
        """Return who is what to the owner of a space, the latest statement last."""
        rows = self._sql.rows("relations_in_space", {"space": space})
        return [
            RelationHolder(predicate=predicate, entity=entity, whole=whole, start=start, end=end)
            for predicate, entity, whole, start, end in rows
        ]

    def owner_of(self, space: int) -> str:
        """Return the owner of a space; "" if it is a chat's."""
        owner: str = self._sql.rows("space_owner", {"space": space})[0][0]
        return owner

    def new_names(self) -> list[tuple[int, str, str, int, int]]:
        """Return names learnt since older nodes were searched: (space, folded, as written, entity, commit)."""
        rows = self._sql.rows("aliases_since", {"seq": int(self._sql.meta(_MARK) or 0)})
        return [(space, folded, name, entity, commit) for space, folded, name, entity, commit in rows]

    def new_relations(self) -> list[tuple[int, str, int]]:
        """Return owner relations changed since texts that mention them were searched: (space, predicate, note)."""
        return [(space, predicate, note) for note, space, predicate in self._sql.rows("relations_to_link")]

    def texts_with(self, space: int, words: str, most: int) -> list[LinkText]:
        """Return the live nodes that hold every word."""
        terms = index_terms(words)
        if not terms:
            return []
        lists = [space_postings(self._sql, space, term, most=most) for term in terms]
        shared = set(lists[0]).intersection(*lists[1:])
        return [_text(row) for row in self._sql.rows("node_contents", {"keys": json.dumps(sorted(shared))})]

    def put_links(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Write mentions: (node key, entity key). Only inside `derive`."""
        faults.reached("linking: before storing")
        for node, entity in pairs:
            self._sql.rows("found_mention_insert", {"node": node, "entity": entity})

    def mark_linked(self, space: int, through: int) -> None:
        """Record that all nodes of a space up to a key were searched for all names. Only inside `derive`."""
        self._sql.rows("linked_through", {"space": space, "through": through})

    def mark_names(self, commit: int) -> None:
        """Record that older nodes were searched for all names learnt up to a commit. Only inside `derive`."""
        self._sql.rows("meta_put", {"name": _MARK, "value": str(commit)})

    def mark_relations(self, note: int) -> None:
        """Record that texts were searched for all relation changes up to a note. Only inside `derive`."""
        self._sql.rows("relations_to_link_done", {"through": note})

    def drop_all_links(self, nodes: Sequence[int]) -> None:
        """Delete all mentions in some nodes. Only inside `derive`."""
        self._sql.rows("links_drop", {"nodes": json.dumps(nodes)})

    def look_again(self, nodes: Sequence[int]) -> None:
        """Note nodes to be searched for names again. Only inside `derive`."""
        self._sql.rows("to_link_put", {"nodes": json.dumps(nodes)})

    def drop_links(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Delete mentions: (node key, entity key). Only inside `derive`."""
        for node, entity in pairs:
            self._sql.rows("found_mention_delete", {"node": node, "entity": entity})

    def mentions_of(self, entity: int) -> list[tuple[int, str]]:
        """Return (node key, text with its speaker) of all nodes that name an entity."""
        rows = self._sql.rows("mentions_of_entity", {"entity": entity})
        return [(key, f"{speaker}: {content}" if speaker else content) for key, content, speaker in rows]
