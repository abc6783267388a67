"""Entities with their names, relations and links, and the mentions of them in texts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from ricordo.clock import from_ms
from ricordo.model import EdgeType, Entity, Related, Relation, Scope
from ricordo.storage import faults
from ricordo.storage.database.statements import Group, Row, entity_of, relation_of
from ricordo.storage.database.upkeep import space_postings
from ricordo.storage.values import Kinds, LinkText, Named, Near, RelationHolder, Sketch, Step, SubjectUse, Usage
from ricordo.text import index_terms
from ricordo.text.kinship import known_relation, relation_named
from ricordo.text.names import Bearer, Likeness, NameIndex, candidates, likeness, look_up_keys, sound_keys
from ricordo.text.statement import MAX_STATEMENT_CHARS

# How many of an entity's latest memories a profile looks at. Those of others than it asks for are walked past.
_WALK = 2_000

_ORDER: tuple[Likeness, ...] = ("same", "form", "sound")


class Entities(Group):
    """Entities by name, id and key, with their relations."""

    def named(self, scope: Scope, name: str) -> Named:
        if (predicate := relation_named(name)) and (related := self.related_as(scope, predicate)):
            return Named(entities=related, by="relation")  # before any name: who was "my wife" may be so no longer
        by_likeness: dict[Likeness, set[int]] = {}
        values = {
            "spaces": json.dumps(self._sql.visible(scope)),
            "keys": json.dumps(look_up_keys(name)),
            "sounds": json.dumps(sound_keys(name)),
        }
        for alias, key in self._sql.rows("names_like", values):
            found = likeness(name, alias)
            if found is not None:
                by_likeness.setdefault(found, set()).add(key)
        if "same" in by_likeness:
            return Named(entities=self.by_key(scope, by_likeness["same"]), by="same")
        if (predicate := known_relation(name)) and (related := self.related_as(scope, predicate)):
            return Named(entities=related, by="relation")
        for like in _ORDER:
            if like in by_likeness:
                return Named(entities=self.by_key(scope, by_likeness[like]), by=like)
        return Named()

    def related_as(self, scope: Scope, predicate: str) -> tuple[Entity, ...]:
        targets = {relation.target for relation in self.open_relations(scope, predicate)}
        keys = [self._sql.value("entity_place", {"id": target}) for target in targets]
        return self.by_key(scope, keys)

    def open_relations(self, scope: Scope, predicate: str) -> list[Relation]:
        space = self.home(scope)
        if space is None:
            return []
        rows = self._sql.rows("relations_of_owner", {"space": space, "predicate": predicate})
        return [relation for relation in map(relation_of, rows) if relation.valid_until is None]

    def home(self, scope: Scope) -> int | None:
        return self._sql.space(scope.owner, "") if scope.owner else self._sql.space("", scope.chat or "")

    def by_key(self, scope: Scope, keys: Sequence[int] | set[int]) -> tuple[Entity, ...]:
        values = {"keys": json.dumps(sorted(keys)), "spaces": json.dumps(self._sql.visible(scope))}
        return tuple(entity_of(row) for row in self._sql.rows("entities_by_key", values))

    def by_id(self, scope: Scope, entity_id: str) -> Entity | None:
        values = {"id": entity_id, "spaces": json.dumps(self._sql.visible(scope))}
        key = self._sql.value("entity_key_by_id", values) if entity_id.isprintable() else None
        return None if key is None else self.by_key(scope, [key])[0]

    def members(self, scope: Scope, key: int) -> tuple[Entity, ...]:
        keys = [row[0] for row in self._sql.rows("entity_members", {"entity": key})]
        return self.by_key(scope, keys)

    def own_names(self, key: int) -> list[str]:
        return [row[0] for row in self._sql.rows("aliases_of_entity", {"entity": key})]

    def people(self, scope: Scope, *, most: int) -> list[Entity]:
        values = {"spaces": json.dumps(self._sql.visible(scope)), "most": most}
        keys = [row[0] for row in self._sql.rows("people_listed", values)]
        found = {entity.key: entity for entity in self.by_key(scope, keys)}
        return [found[key] for key in keys]

    def relations(self, key: int) -> tuple[Relation, ...]:
        found = [relation_of(row) for row in self._sql.rows("relations_of_entity", {"entity": key})]
        return tuple(sorted(found, key=lambda relation: relation.valid_until is not None))

    def span(self, entity: Entity) -> tuple[datetime, datetime]:
        first, last = self._sql.rows("entity_span", {"entity": entity.key})[0]
        return (
            entity.first_seen if first is None else from_ms(first),
            entity.first_seen if last is None else from_ms(last),
        )

    def latest(self, key: int, link: Literal["subject", "mention"], *, now: int, most: int) -> list[Sketch]:
        statement = "subjects_latest" if link == "subject" else "mentions_latest"
        values = {"most": most, "walk": _WALK, "now": now}
        found: dict[int, Sketch] = {}
        for (member,) in self._sql.rows("entity_members", {"entity": key}):
            for node, type_, confidence, score in self._sql.rows(statement, {**values, "entity": member}):
                found[node] = Sketch(key=node, type=type_, confidence=confidence, score=score)
        return [found[each] for each in sorted(found, reverse=True)[:most]]

    def named_together(self, key: int, nodes: Sequence[int], *, most: int) -> tuple[Related, ...]:
        values = {"nodes": json.dumps(nodes), "entity": key, "most": most}
        rows = self._sql.rows("named_together", values)
        return tuple(Related(name=name, type=type_, together=count) for name, type_, count in rows)

    def by_folded_names(self, scope: Scope, names: Sequence[str]) -> list[Entity]:
        rows = self._sql.rows("names_like", self._sql.scoped(scope, keys=json.dumps(names), sounds="[]"))
        return list(self.by_key(scope, {key for _, key in rows}))

    def has_longer_name(self, scope: Scope, word: str) -> bool:
        # "!" comes right after a blank.
        return bool(self._sql.rows("names_longer", self._sql.scoped(scope, first=f"{word} ", after=f"{word}!")))

    def key_of(self, entity_id: str) -> int | None:
        found: int | None = self._sql.value("entity_place", {"id": entity_id})
        return found

    def subject_uses(self, key: int) -> list[SubjectUse]:
        return [SubjectUse(*row) for row in self._sql.rows("subjects_of_entity", {"entity": key})]

    def to_summarise(self, owner: str, chat: str, *, least: int, most: int) -> list[int]:
        values = {"space": self._sql.space(owner, chat), "least": least, "most": most}
        return [found for (found,) in self._sql.rows("entities_to_enrich", values)]


REINFORCED_TOGETHER_MS = 60_000
"""What is reinforced within so long of each other proved useful together."""

_COMPANIONS = 8


class Graph(Group):
    """What is linked to memories: entities, causes and effects, memories that proved useful together."""

    def kinds(self) -> Kinds:
        return self._sql.once(("kinds",), lambda: Kinds(*map(bool, self._sql.rows("kinds_of_links")[0])))

    def known_names(self, scope: Scope, text: str) -> NameIndex:
        keys, sounds = candidates([text])
        values = {"keys": json.dumps(keys), "sounds": json.dumps(sounds)}
        found: dict[str, tuple[Bearer, ...]] = {}
        for space in self._sql.visible(scope):
            for key, *bearer in self._sql.rows("names_known", {**values, "space": space}):
                found[key] = (*found.get(key, ()), Bearer(*bearer))
        return found

    def entity_keys(self, entities: Iterable[int]) -> list[int]:
        return [row[0] for entity in entities for row in self._sql.rows("entity_members", {"entity": entity})]

    def near_entity(self, scope: Scope, entity: int, *, walk: int) -> list[Near]:
        values = {"entity": entity, "walk": walk, "spaces": json.dumps(self._sql.visible(scope))}
        return [Near(*row) for row in self._sql.rows("entity_near", values)]

    def linked_to(self, nodes: Iterable[int], entities: Iterable[int]) -> set[int]:
        values = {"nodes": json.dumps(list(nodes)), "entities": json.dumps(list(entities))}
        return {row[0] for row in self._sql.rows("linked_to", values)}

    def causes_and_effects(self, scope: Scope, nodes: Iterable[int], *, most: int) -> list[Step]:
        values = {"nodes": json.dumps(list(nodes)), "most": most, "spaces": json.dumps(self._sql.visible(scope))}
        return [Step(*row) for row in self._sql.rows("causes_and_effects", values)]

    def is_causal_between(self, one: int, other: int) -> bool:
        return bool(self._sql.rows("causal_between", {"one": one, "other": other}))

    def associates(self, scope: Scope, nodes: Iterable[int], *, each: int) -> list[Step]:
        values = {"nodes": json.dumps(list(nodes)), "each": each, "spaces": json.dumps(self._sql.visible(scope))}
        return [Step(*row) for row in self._sql.rows("associates_of", values)]

    def has_edge(self, source: int, type: EdgeType, target: int) -> bool:
        return bool(self._sql.rows("edge_of", {"source": source, "type": type, "target": target}))

    def reinforced_with(self, owner: str, chat: str, node_id: str, *, at: int) -> list[str]:
        values = {"space": self._sql.space(owner, chat), "since": at - REINFORCED_TOGETHER_MS, "most": _COMPANIONS + 1}
        return [found for (found,) in self._sql.rows("reinforced_since", values) if found != node_id][:_COMPANIONS]

    def put_usage(self, shown: Mapping[int, Usage]) -> None:
        for node, usage in shown.items():
            self._sql.rows("usage_put", {"node": node, "count": usage.shown, "at": usage.last_access})

    def usage(self, nodes: Collection[int]) -> dict[int, Usage]:
        rows = self._sql.rows("usage_of", {"nodes": json.dumps(list(nodes))})
        return {node: Usage(count, last) for node, count, last in rows}

    def lines(self, nodes: Iterable[int]) -> list[tuple[int, str, str, int]]:
        if not self.kinds().lines:
            return []
        values = {"nodes": json.dumps(list(nodes)), "most": MAX_STATEMENT_CHARS}
        return [(key, subjects, line, since) for key, subjects, line, since in self._sql.rows("lines_of", values)]


_MARK = "aliases linked through commit"


def _text(row: Row) -> LinkText:
    key, content, speaker, role, origin, at = row
    text = f"{speaker}: {content}" if speaker else content
    return LinkText(key=key, text=text, role=role, origin=origin, speaker=speaker, at=at)


class Mentions(Group):
    """Linking names in texts to entities: what is not linked yet, and writing links."""

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
