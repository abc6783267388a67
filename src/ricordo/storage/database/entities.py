"""Entities with their names, relations and links, and the mentions of them in texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Literal

from ricordo.clock import from_ms
from ricordo.model import Entity, Related, Relation, Scope
from ricordo.storage import faults
from ricordo.storage.database.statements import (
    Group,
    Row,
    as_set,
    asks,
    column,
    entity_of,
    first,
    flag,
    nothing,
    reading,
    relation_of,
    rows_as,
)
from ricordo.storage.database.word_index import nodes_with
from ricordo.storage.values import (
    Kinds,
    KnownName,
    LinkText,
    Named,
    Near,
    RelationHolder,
    Sketch,
    Step,
    SubjectUse,
    Usage,
)
from ricordo.text.analyzer import name_key
from ricordo.text.names import (
    Bearer,
    Likeness,
    NameIndex,
    candidates,
    folded_name,
    known_relation,
    likeness,
    look_up_keys,
    relation_named,
    sound_keys,
)
from ricordo.text.statement import MAX_STATEMENT_CHARS

# How many of an entity's latest memories are examined for a profile; unsuitable ones count, too.
_WALK = 2_000

_ORDER: tuple[Likeness, ...] = ("same", "form", "sound")


class Entities(Group):
    """Entities by name, id and key, with their relations."""

    def named(self, scope: Scope, name: str) -> Named:
        if (predicate := relation_named(name)) and (related := self.related_as(scope, predicate)):
            return Named(entities=related, by="relation")  # before any name: "my wife" may now be another person
        by_likeness: dict[Likeness, set[int]] = {}
        values = self._sql.scoped(scope, keys=json.dumps(look_up_keys(name)), sounds=json.dumps(sound_keys(name)))
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
        space = self._sql.space(scope.owner, "") if scope.owner else self._sql.space("", scope.chat or "")
        if space is None:
            return []
        rows = self._sql.rows("relations_of_owner", {"space": space, "predicate": predicate})
        return [relation for relation in map(relation_of, rows) if relation.valid_until is None]

    def by_key(self, scope: Scope, keys: Sequence[int] | set[int]) -> tuple[Entity, ...]:
        rows = self._sql.rows("entities_by_key", self._sql.scoped(scope, keys=json.dumps(sorted(keys))))
        return tuple(map(entity_of, rows))

    def by_id(self, scope: Scope, entity_id: str) -> Entity | None:
        if not entity_id.isprintable():  # SQLite cannot take some of these characters as a parameter
            return None
        return next(
            iter(self.by_key(scope, column(self._sql.rows("entity_key_by_id", self._sql.scoped(scope, id=entity_id))))),
            None,
        )

    def members(self, scope: Scope, key: int) -> tuple[Entity, ...]:
        return self.by_key(scope, column(self._sql.rows("entity_members", {"entity": key})))

    own_names = asks("aliases_of_entity", "entity", column)

    def people(self, scope: Scope, *, most: int) -> list[Entity]:
        keys = column(self._sql.rows("people_listed", self._sql.scoped(scope, most=most)))
        found = {entity.key: entity for entity in self.by_key(scope, keys)}
        return [found[key] for key in keys]

    def relations(self, key: int) -> tuple[Relation, ...]:
        found = [relation_of(row) for row in self._sql.rows("relations_of_entity", {"entity": key})]
        return tuple(sorted(found, key=lambda relation: relation.valid_until is not None))

    was_named = asks("entity_span", "entity", lambda rows: rows[0][0] is not None)

    def span(self, entity: Entity) -> tuple[datetime, datetime]:
        first, last = self._sql.rows("entity_span", {"entity": entity.key})[0]
        return (
            entity.first_seen if first is None else from_ms(first),
            entity.first_seen if last is None else from_ms(last),
        )

    def latest(self, key: int, link: Literal["subject", "mention"], *, now: int, most: int) -> list[Sketch]:
        statement = "subjects_latest" if link == "subject" else "mentions_latest"
        values = {"most": most, "walk": _WALK, "now": now}
        members = self._sql.rows("entity_members", {"entity": key})
        rows = self._sql.rows_of_each(statement, [{**values, "entity": member} for (member,) in members])
        found = {
            node: Sketch(key=node, type=type_, confidence=confidence, score=score)
            for node, type_, confidence, score in chain.from_iterable(rows)
        }
        return [found[each] for each in sorted(found, reverse=True)[:most]]

    named_together = asks("named_together", "entity nodes most", lambda rows: tuple(map(reading(Related), rows)))

    def by_folded_names(self, scope: Scope, names: Sequence[str]) -> list[Entity]:
        keys = json.dumps(list(dict.fromkeys(map(name_key, names))))
        rows = self._sql.rows("names_like", self._sql.scoped(scope, keys=keys, sounds="[]"))
        wanted = frozenset(names)
        return list(self.by_key(scope, {key for alias, key in rows if folded_name(alias) in wanted}))

    all_names = asks("names_all", "scope", rows_as(KnownName._make))
    related_by = asks("related_by", "scope predicates", list)

    def begun_by(self, scope: Scope, words: Sequence[str]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for word, entity in self._sql.rows("names_longer", self._sql.scoped(scope, words=json.dumps(words))):
            found.setdefault(word, []).append(entity)
        return found

    key_of = asks("entity_place", "id", first)
    subject_uses = asks("subjects_of_entity", "entity", rows_as(SubjectUse._make))
    to_summarise = asks("entities_to_enrich", "owner chat least most", column)


REINFORCED_TOGETHER_MS = 60_000
"""Memories reinforced within this time of each other proved useful together."""

_COMPANIONS = 8


class Graph(Group):
    """Links of memories: to entities, to causes and effects, and to memories that proved useful together."""

    def kinds(self) -> Kinds:
        return self._sql.once(("kinds",), lambda: Kinds(*map(bool, self._sql.rows("kinds_of_links")[0])))

    def has_names(self, scope: Scope) -> bool:
        return bool(self._sql.rows_of_store("names_any", self._sql.scoped(scope))[0][0])

    def known_names(self, scope: Scope, text: str) -> NameIndex:
        keys, sounds = candidates([text])
        found: dict[str, tuple[Bearer, ...]] = {}
        for space in self._sql.visible(scope):
            for key, bearers in Mentions(self._sql).known_names(space, keys, sounds).items():
                found[key] = (*found.get(key, ()), *bearers)
        return found

    def related(self, scope: Scope, predicate: str) -> list[int]:
        space = self._sql.space(scope.owner, "") if scope.owner else self._sql.space("", scope.chat or "")
        return column(self._sql.rows("related_to_owner", self._sql.scoped(scope, space=space, predicate=predicate)))

    def entity_keys(self, entities: Iterable[int]) -> list[int]:
        rows = self._sql.rows_of_each("entity_members", [{"entity": entity} for entity in entities])
        return column(list(chain.from_iterable(rows)))

    near_entity = asks("entity_near", "scope entity walk", rows_as(Near._make))
    linked_to = asks("linked_to", "nodes entities", as_set)
    causes_and_effects = asks("causes_and_effects", "scope nodes most", rows_as(Step._make))
    is_causal_between = asks("causal_between", "one other", flag)
    associates = asks("associates_of", "scope nodes each", rows_as(Step._make))
    has_edge = asks("edge_of", "source type target", bool)

    def reinforced_with(self, owner: str, chat: str, node_id: str, *, at: int) -> list[str]:
        values = {"space": self._sql.space(owner, chat), "since": at - REINFORCED_TOGETHER_MS, "most": _COMPANIONS + 1}
        return [found for (found,) in self._sql.rows("reinforced_since", values) if found != node_id][:_COMPANIONS]

    def put_usage(self, shown: Mapping[int, Usage]) -> None:
        given = [(node, usage.shown, usage.last_access) for node, usage in shown.items()]
        self._sql.rows("usage_put", {"shown": json.dumps(given)})

    usage = asks("usage_of", "nodes", lambda rows: {node: Usage(count, last) for node, count, last in rows})

    def lines(self, nodes: Iterable[int]) -> list[tuple[int, str, str, int]]:
        if not self.kinds().lines:
            return []
        values = {"nodes": json.dumps(list(nodes)), "most": MAX_STATEMENT_CHARS}
        return [(key, subjects, line, since) for key, subjects, line, since in self._sql.rows("lines_of", values)]


_MARK = "aliases linked through commit"


def _spoken(content: str, speaker: str | None) -> str:
    return f"{speaker}: {content}" if speaker else content


def _text(row: Row) -> LinkText:
    key, content, speaker, role, origin, at = row
    return LinkText(key=key, text=_spoken(content, speaker), role=role, origin=origin, speaker=speaker, at=at)


class Mentions(Group):
    """Linking names in texts to entities: finding nodes to link, and writing links."""

    spaces_with_names = asks("spaces_with_aliases", "", column)
    spaces_to_link = asks("to_link_spaces", "", column)
    to_link = asks("to_link_of", "space most", list)
    texts = asks("node_contents", "keys", rows_as(_text))

    def put_links_again(self, notes: Sequence[int], nodes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> None:
        self.drop_all_links(nodes)
        self.put_links(pairs)
        self._sql.rows("to_link_done", {"ids": json.dumps(notes)})

    unlinked = asks("unlinked", "space most", rows_as(_text))

    def known_names(self, space: int, keys: Sequence[str], sounds: Sequence[str]) -> dict[str, tuple[Bearer, ...]]:
        values = {"space": space, "keys": json.dumps(keys), "sounds": json.dumps(sounds)}
        found: dict[str, tuple[Bearer, ...]] = {}
        for key, *bearer in self._sql.rows("names_known", values):
            found[key] = (*found.get(key, ()), Bearer(*bearer))
        return found

    holders_of = asks("relations_in_space", "space", rows_as(reading(RelationHolder)))
    owner_of = asks("space_owner", "space", first)

    def new_names(self) -> list[tuple[int, str, str, int, int]]:
        return self._sql.rows("aliases_since", {"seq": int(self._sql.meta(_MARK) or 0)})

    new_relations = asks("relations_to_link", "", list)

    def texts_with(self, space: int, words: str, most: int) -> list[LinkText]:
        keys = nodes_with(self._sql, space, words, most=most)
        return [_text(row) for row in self._sql.rows("node_contents", {"keys": json.dumps(keys)})]

    def put_links(self, pairs: Sequence[tuple[int, int]]) -> None:
        faults.reached("linking: before storing")
        self._sql.many("found_mention_insert", pairs)

    mark_linked = asks("linked_through", "space through", nothing)

    def mark_names(self, commit: int) -> None:
        self._sql.rows("meta_put", {"name": _MARK, "value": str(commit)})

    mark_relations = asks("relations_to_link_done", "through", nothing)
    drop_all_links = asks("links_drop", "nodes", nothing)
    look_again = asks("to_link_put", "nodes", nothing)

    def drop_links(self, pairs: Sequence[tuple[int, int]]) -> None:
        self._sql.many("found_mention_delete", pairs)

    mentions_of = asks("mentions_of_entity", "entity", rows_as(lambda row: (row[0], _spoken(*row[1:]))))
