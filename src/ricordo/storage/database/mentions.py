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
        return [row[0] for row in self._sql.rows("spaces_with_aliases")]

    def spaces_to_link(self) -> list[int]:
        return [row[0] for row in self._sql.rows("to_link_spaces")]

    def to_link(self, space: int, most: int) -> list[tuple[int, int]]:
        return [(note, key) for note, key in self._sql.rows("to_link_of", {"space": space, "most": most})]

    def texts(self, keys: Sequence[int]) -> list[LinkText]:
        return [_text(row) for row in self._sql.rows("node_contents", {"keys": json.dumps(keys)})]

    def put_links_again(self, notes: Sequence[int], nodes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> None:
        self.drop_all_links(nodes)
        self.put_links(pairs)
        self._sql.rows("to_link_done", {"ids": json.dumps(notes)})

    def unlinked(self, space: int, most: int) -> list[LinkText]:
        return [_text(row) for row in self._sql.rows("unlinked", {"space": space, "most": most})]

    def known_names(self, space: int, keys: Sequence[str], sounds: Sequence[str]) -> dict[str, tuple[Bearer, ...]]:
        found: dict[str, tuple[Bearer, ...]] = {}
        values = {"space": space, "keys": json.dumps(keys), "sounds": json.dumps(sounds)}
        for key, *bearer in self._sql.rows("names_known", values):
            found[key] = (*found.get(key, ()), Bearer(*bearer))
        return found

    def holders_of(self, space: int) -> list[RelationHolder]:
        rows = self._sql.rows("relations_in_space", {"space": space})
        return [
            RelationHolder(predicate=predicate, entity=entity, whole=whole, start=start, end=end)
            for predicate, entity, whole, start, end in rows
        ]

    def owner_of(self, space: int) -> str:
        owner: str = self._sql.rows("space_owner", {"space": space})[0][0]
        return owner

    def new_names(self) -> list[tuple[int, str, str, int, int]]:
        rows = self._sql.rows("aliases_since", {"seq": int(self._sql.meta(_MARK) or 0)})
        return [(space, folded, name, entity, commit) for space, folded, name, entity, commit in rows]

    def new_relations(self) -> list[tuple[int, str, int]]:
        return [(space, predicate, note) for note, space, predicate in self._sql.rows("relations_to_link")]

    def texts_with(self, space: int, words: str, most: int) -> list[LinkText]:
        terms = index_terms(words)
        if not terms:
            return []
        lists = [space_postings(self._sql, space, term, most=most) for term in terms]
        shared = set(lists[0]).intersection(*lists[1:])
        return [_text(row) for row in self._sql.rows("node_contents", {"keys": json.dumps(sorted(shared))})]

    def put_links(self, pairs: Sequence[tuple[int, int]]) -> None:
        faults.reached("linking: before storing")
        for node, entity in pairs:
            self._sql.rows("found_mention_insert", {"node": node, "entity": entity})

    def mark_linked(self, space: int, through: int) -> None:
        self._sql.rows("linked_through", {"space": space, "through": through})

    def mark_names(self, commit: int) -> None:
        self._sql.rows("meta_put", {"name": _MARK, "value": str(commit)})

    def mark_relations(self, note: int) -> None:
        self._sql.rows("relations_to_link_done", {"through": note})

    def drop_all_links(self, nodes: Sequence[int]) -> None:
        self._sql.rows("links_drop", {"nodes": json.dumps(nodes)})

    def look_again(self, nodes: Sequence[int]) -> None:
        self._sql.rows("to_link_put", {"nodes": json.dumps(nodes)})

    def drop_links(self, pairs: Sequence[tuple[int, int]]) -> None:
        for node, entity in pairs:
            self._sql.rows("found_mention_delete", {"node": node, "entity": entity})

    def mentions_of(self, entity: int) -> list[tuple[int, str]]:
        rows = self._sql.rows("mentions_of_entity", {"entity": entity})
        return [(key, f"{speaker}: {content}" if speaker else content) for key, content, speaker in rows]
