"""Entities by name, id and key, with their relations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from ricordo.clock import from_ms
from ricordo.model import Entity, Related, Relation, Scope
from ricordo.storage.database.rows import entity_of, relation_of
from ricordo.storage.database.statements import Statements
from ricordo.storage.values import Named, Sketch, SubjectUse
from ricordo.text.kinship import known_relation, relation_named
from ricordo.text.names import Likeness, likeness, look_up_keys, sound_keys

# How many of an entity's latest memories a profile looks at. Those of others than it asks for are walked past.
_WALK = 2_000

_ORDER: tuple[Likeness, ...] = ("same", "form", "sound")


class Entities:
    """Entities by name, id and key, with their relations."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

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

    def key_of(self, entity_id: str) -> int | None:
        found: int | None = self._sql.value("entity_place", {"id": entity_id})
        return found

    def subject_uses(self, key: int) -> list[SubjectUse]:
        return [SubjectUse(*row) for row in self._sql.rows("subjects_of_entity", {"entity": key})]

    def to_summarise(self, owner: str, chat: str, *, least: int, most: int) -> list[int]:
        values = {"space": self._sql.space(owner, chat), "least": least, "most": most}
        return [found for (found,) in self._sql.rows("entities_to_enrich", values)]
