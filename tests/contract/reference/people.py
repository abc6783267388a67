"""Questions about entities: who is meant by a name, what lies about them, and the linking of names."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from ricordo.clock import from_ms
from ricordo.model import EdgeType, Entity, Related, Relation, Scope
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
from ricordo.text.analyzer import index_terms, name_key
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
from ricordo.text.statement import MAX_STATEMENT_CHARS, statement_line
from tests.contract.reference.apply import visible
from tests.contract.reference.memories import Nodes
from tests.contract.reference.rows import (
    Group,
    at_of,
    has_expired,
    is_known,
    is_live,
    linked_nodes,
    members_of,
    mention_count,
    whole_of,
)
from tests.contract.reference.tables import Row
from tests.contract.reference.terms import terms_of

TOGETHER_MS = 60_000


COMPANIONS = 8


WALK = 2_000


class Entities(Group):
    """Who is meant by a name, and what lies about them."""

    def named(self, scope: Scope, name: str) -> Named:
        if (predicate := relation_named(name)) and (related := self.related_as(scope, predicate)):
            return Named(entities=related, by="relation")
        by_likeness: dict[Likeness, set[int]] = {}
        for alias, key in self._alike(scope, look_up_keys(name), sound_keys(name)):
            found = likeness(name, alias)
            if found is not None:
                by_likeness.setdefault(found, set()).add(key)
        if "same" in by_likeness:
            return Named(entities=self.by_key(scope, by_likeness["same"]), by="same")
        if (predicate := known_relation(name)) and (related := self.related_as(scope, predicate)):
            return Named(entities=related, by="relation")
        for like in ("form", "sound"):
            if like in by_likeness:
                return Named(entities=self.by_key(scope, by_likeness[like]), by=like)  # type: ignore[index]
        return Named()

    def _alike(self, scope: Scope, keys: Collection[str], sounds: Collection[str]) -> set[tuple[str, int]]:
        sees, entities = self._sees(scope), self._state.tables["entities"]
        return {
            (row["alias"], whole_of(self._state, row["entity"])["key"])
            for row in self._state.all("aliases")
            if sees(row) and (row["folded"] in keys or row["sound"] in sounds) and is_known(entities[(row["entity"],)])
        }

    def by_folded_names(self, scope: Scope, names: Sequence[str]) -> list[Entity]:
        alike = self._alike(scope, {name_key(name) for name in names}, ())
        return list(self.by_key(scope, {key for alias, key in alike if folded_name(alias) in names}))

    def all_names(self, scope: Scope) -> list[KnownName]:
        sees, entities = self._sees(scope), self._state.tables["entities"]
        return [
            KnownName(row["alias"], whole_of(self._state, row["entity"])["key"], entity["attributes"])
            for row in self._state.all("aliases")
            if sees(row) and is_known(entity := entities[(row["entity"],)])
        ]

    def related_by(self, scope: Scope, predicates: Sequence[str]) -> list[tuple[int, int]]:
        sees = self._sees(scope)
        pairs = [
            (whole_of(self._state, row["source"])["key"], whole_of(self._state, row["target"])["key"])
            for row in self._state.all("relations")
            if sees(row)
            and row["source"] is not None
            and row["predicate"] in predicates
            and row["closed_at"] is None
            and row["valid_until"] is None
        ]
        return [pair for pair in pairs if pair[0] != pair[1]]

    def begun_by(self, scope: Scope, words: Sequence[str]) -> dict[str, list[int]]:
        sees, entities = self._sees(scope), self._state.tables["entities"]
        found: dict[str, list[int]] = {}
        for row in self._state.all("aliases"):
            entity = entities[(row["entity"],)]
            first, blank, _ = row["folded"].partition(" ")
            if sees(row) and blank and first in words and entity["type"] == "person" and is_known(entity):
                found.setdefault(first, []).append(entity["merged_into"] or row["entity"])
        return {word: sorted(set(keys)) for word, keys in found.items()}

    def related_as(self, scope: Scope, predicate: str) -> tuple[Entity, ...]:
        targets = {relation.target for relation in self.open_relations(scope, predicate)}
        keys = [row["key"] for row in self._state.all("entities", lambda row: row["id"] in targets)]
        return self.by_key(scope, keys)

    def open_relations(self, scope: Scope, predicate: str) -> list[Relation]:
        space = self.home(scope)
        rows = self._state.all(
            "relations",
            lambda row: (
                row["space"] == space
                and row["source"] is None
                and row["predicate"] == predicate
                and row["closed_at"] is None
                and row["valid_until"] is None
                and whole_of(self._state, row["target"])["closed_at"] is None
            ),
        )
        return [self._relation(row) for row in rows[::-1]]

    def _relation(self, row: Row) -> Relation:
        target = whole_of(self._state, row["target"])
        source = None if row["source"] is None else whole_of(self._state, row["source"])
        space = self._state.tables["spaces"][(row["space"],)]
        return Relation(
            key=row["key"],
            id=row["id"],
            predicate=row["predicate"],
            source=source and source["id"],
            source_name=source and source["canonical_name"],
            target=target["id"],
            target_name=target["canonical_name"],
            valid_from=at_of(row["valid_from"]),
            valid_until=at_of(row["valid_until"]),
            evidence=row["evidence"],
            created_at=from_ms(row["created_at"]),
            owner=space["owner"],
            chat=space["chat"],
        )

    def home(self, scope: Scope) -> int | None:
        return self._state.space(scope.owner, "") if scope.owner else self._state.space("", scope.chat or "")

    def by_key(self, scope: Scope, keys: Collection[int]) -> tuple[Entity, ...]:
        sees = self._sees(scope)
        return tuple(self._entity(row) for row in self._state.all("entities") if row["key"] in keys and sees(row))

    def _entity(self, row: Row) -> Entity:
        members = members_of(self._state, row["key"])
        aliases = sorted(
            (each["entity"], each["space"], each["folded"], each["alias"])
            for each in self._state.all("aliases")
            if each["entity"] in members and each["alias"] != row["canonical_name"]
        )
        predicates = [
            each["predicate"]
            for each in sorted(self._state.all("relations"), key=lambda each: (each["target"], each["key"]))
            if each["target"] in members
            and each["source"] is None
            and each["space"] == row["space"]
            and each["closed_at"] is None
            and each["valid_until"] is None
        ]
        space = self._state.tables["spaces"][(row["space"],)]
        into = None if row["merged_into"] is None else self._state.tables["entities"][(row["merged_into"],)]["id"]
        return Entity(
            key=row["key"],
            id=row["id"],
            type=row["type"],
            name=row["canonical_name"],
            relation=", ".join(dict.fromkeys(predicates)) or None,
            summary=row["summary"],
            protected=row["protected"],
            attributes=json.loads(row["attributes"]),
            first_seen=from_ms(row["first_seen"]),
            last_updated=from_ms(row["last_updated"]),
            closed_at=at_of(row["closed_at"]),
            merged_into=into,
            owner=space["owner"],
            chat=space["chat"],
            aliases=tuple(dict.fromkeys(alias for *_, alias in aliases)),
            mention_count=mention_count(self._state, row["key"]),
        )

    def by_id(self, scope: Scope, entity_id: str) -> Entity | None:
        sees = self._sees(scope)
        rows = self._state.all("entities", lambda row: row["id"] == entity_id and sees(row) and is_known(row))
        return self.by_key(scope, [whole_of(self._state, rows[0]["key"])["key"]])[0] if rows else None

    def members(self, scope: Scope, key: int) -> tuple[Entity, ...]:
        return self.by_key(scope, members_of(self._state, key))

    def own_names(self, key: int) -> list[str]:
        return [row["alias"] for row in self._state.all("aliases", lambda row: row["entity"] == key)]

    def people(self, scope: Scope, *, most: int) -> list[Entity]:
        sees = self._sees(scope)
        rows = self._state.all(
            "entities", lambda row: row["type"] == "person" and row["closed_at"] is None and sees(row)
        )
        rows.sort(key=lambda row: (-mention_count(self._state, row["key"]), row["key"]))
        return [self._entity(row) for row in rows[:most]]

    def relations(self, key: int) -> tuple[Relation, ...]:
        members = members_of(self._state, key)
        rows = [
            row
            for row in self._state.all("relations")[::-1]
            if row["closed_at"] is None
            and (row["target"] in members or row["source"] in members)
            and (target := whole_of(self._state, row["target"]))["closed_at"] is None
            and (row["source"] is None or whole_of(self._state, row["source"]) != target)
        ]
        return tuple(sorted(map(self._relation, rows), key=lambda relation: relation.valid_until is not None))

    def was_named(self, key: int) -> bool:
        return any(linked_nodes(self._state, member) for member in members_of(self._state, key))

    def span(self, entity: Entity) -> tuple[datetime, datetime]:
        nodes = set().union(*(linked_nodes(self._state, member) for member in members_of(self._state, entity.key)))
        times = [row["event_time"] for row in self._state.all("nodes", lambda row: row["key"] in nodes)]
        return (from_ms(min(times)), from_ms(max(times))) if times else (entity.first_seen, entity.first_seen)

    def latest(self, key: int, link: str, *, now: int, most: int) -> list[Sketch]:
        found: dict[int, Sketch] = {}
        for member in members_of(self._state, key):
            about = {row["node"] for row in self._state.all("subjects") if row["entity"] == member}
            named = {row["node"] for row in self._state.all("found_mentions") if row["entity"] == member}
            walked = sorted(about if link == "subject" else named, reverse=True)[:WALK]
            rows = [self._state.tables["nodes"][(node,)] for node in walked]
            fitting = [
                row
                for row in rows
                if row["closed_at"] is None
                and not has_expired(row, now)
                and (row["type"] != "episodic" if link == "subject" else row["key"] not in about)
            ]
            for row in fitting[:most]:
                found[row["key"]] = Sketch(
                    key=row["key"], type=row["type"], confidence=row["confidence"], score=row["score"]
                )
        return [found[each] for each in sorted(found, reverse=True)[:most]]

    def named_together(self, key: int, nodes: Sequence[int], *, most: int) -> tuple[Related, ...]:
        together: dict[int, set[int]] = {}
        for row in (*self._state.all("subjects"), *self._state.all("found_mentions")):
            if row["node"] in nodes:
                together.setdefault(whole_of(self._state, row["entity"])["key"], set()).add(row["node"])
        entities = self._state.tables["entities"]
        others = [each for each in together if each != key and entities[(each,)]["closed_at"] is None]
        others.sort(key=lambda each: (-len(together[each]), each))
        return tuple(
            Related(name=row["canonical_name"], type=row["type"], together=len(together[row["key"]]))
            for row in (entities[(each,)] for each in others[:most])
        )

    def key_of(self, entity_id: str) -> int | None:
        rows = self._state.all("entities", lambda row: row["id"] == entity_id)
        return rows[0]["key"] if rows else None

    def subject_uses(self, key: int) -> list[SubjectUse]:
        rows = self._state.all("subjects", lambda row: row["entity"] == key)
        nodes = self._state.tables["nodes"]
        return [SubjectUse(nodes[(row["node"],)]["id"], row["name"], nodes[(row["node"],)]["content"]) for row in rows]

    def to_summarise(self, owner: str, chat: str, *, least: int, most: int) -> list[int]:
        space = self._state.space(owner, chat)
        rows = self._state.all("entities", lambda row: row["space"] == space and row["closed_at"] is None)
        counts = {row["key"]: mention_count(self._state, row["key"]) for row in rows}
        due = [row["key"] for row in rows if counts[row["key"]] >= least and self._needs_summary(row)]
        return sorted(due, key=lambda key: (-counts[key], key))[:most]

    def _needs_summary(self, row: Row) -> bool:
        about = {each["node"] for each in self._state.all("subjects") if each["entity"] == row["key"]}
        summaries = self._state.all("nodes", lambda node: node["key"] in about and node["category"] == "summary")
        if any(node["closed_reason"] in ("forgotten", "retracted") for node in summaries):
            return False
        if row["summary"] is None:
            return True
        made = json.loads(row["attributes"]).get("summary_memory")
        for node in self._state.all("nodes", lambda node: node["id"] == made and node["content"] == row["summary"]):
            if node["closed_at"] is None:
                return Nodes(self._state).lost_a_source(node["key"])
            return node["closed_reason"] in ("expired", "decayed", "pruned", "evicted")
        return False


class Graph(Group):
    """What lies near some memories."""

    def has_names(self, scope: Scope) -> bool:
        spaces = visible(self._state, scope)
        return bool(self._state.all("aliases", lambda row: row["space"] in spaces))

    def kinds(self) -> Kinds:
        edges = self._state.all("edges")
        return Kinds(
            causal=any(row["relation_type"] == "causal" for row in edges),
            associates=bool(self._state.tables["associates"]),
            versions=bool(edges or self._state.tables["reviews"]),
            lines=any(row["shelf"] == "k" and statement_line(row["content"]) for row in self._live()),
        )

    def is_causal_between(self, one: int, other: int) -> bool:
        return self.has_edge(one, "causal", other) or self.has_edge(other, "causal", one)

    def has_edge(self, source: int, type: EdgeType, target: int) -> bool:
        row = self._state.get("edges", source, type, target)
        return row is not None and row["closed_at"] is None

    def known_names(self, scope: Scope, text: str) -> NameIndex:
        keys, sounds = candidates([text])
        found: dict[str, tuple[Bearer, ...]] = {}
        for space in visible(self._state, scope):
            for key, bearers in Mentions(self._state).known_names(space, keys, sounds).items():
                found[key] = (*found.get(key, ()), *bearers)
        return found

    def related(self, scope: Scope, predicate: str) -> list[int]:
        return [entity.key for entity in Entities(self._state).related_as(scope, predicate)]

    def entity_keys(self, entities: Iterable[int]) -> list[int]:
        return [member for entity in entities for member in members_of(self._state, entity)]

    def near_entity(self, scope: Scope, entity: int, *, walk: int) -> list[Near]:
        sees, nodes = self._sees(scope), linked_nodes(self._state, entity)
        rows = self._live(lambda row: row["key"] in nodes and sees(row))
        return [Near(row["key"], row["shelf"], row["confidence"], row["score"]) for row in rows]

    def linked_to(self, nodes: Iterable[int], entities: Iterable[int]) -> set[int]:
        return set(nodes) & set().union(*(linked_nodes(self._state, entity) for entity in entities))

    def causes_and_effects(self, scope: Scope, nodes: Iterable[int], *, most: int) -> list[Step]:
        asked, sees, rows = set(nodes), self._sees(scope), self._state.tables["nodes"]
        edges = self._state.all("edges", lambda row: row["relation_type"] == "causal" and row["closed_at"] is None)
        onward = [(row["target"], row["source"], row) for row in edges if row["source"] in asked][:most]
        back = [(row["source"], row["target"], row) for row in edges if row["target"] in asked][:most]
        return [
            Step(node, rows[(node,)]["shelf"], origin, row["weight"] * row["confidence"])
            for node, origin, row in (*onward, *back)
            if is_live(self._state, node) and sees(rows[(node,)])
        ]

    def associates(self, scope: Scope, nodes: Iterable[int], *, each: int) -> list[Step]:
        sees, rows, found = self._sees(scope), self._state.tables["nodes"], []
        for node in nodes:
            ties = self._state.all("associates", lambda row, node=node: row["node"] == node)  # type: ignore[misc]
            ties.sort(key=lambda row: (-row["weight"], row["other"]))
            found += [
                Step(row["other"], rows[(row["other"],)]["shelf"], node, row["weight"])
                for row in ties[:each]
                if is_live(self._state, row["other"]) and sees(rows[(row["other"],)])
            ]
        return found

    def reinforced_with(self, owner: str, chat: str, node_id: str, *, at: int) -> list[str]:
        space = self._state.space(owner, chat)
        rows = self._live(
            lambda row: (
                row["space"] == space and row["reinforced_at"] is not None and row["reinforced_at"] >= at - TOGETHER_MS
            )
        )
        rows.sort(key=lambda row: (row["reinforced_at"], row["key"]), reverse=True)
        return [row["id"] for row in rows[: COMPANIONS + 1] if row["id"] != node_id][:COMPANIONS]

    def put_usage(self, shown: Mapping[int, Usage]) -> None:
        for node, usage in shown.items():
            if self._state.get("nodes", node) is not None:
                old = self._state.get("usage", node) or {"count": 0, "last_access": 0}
                row = {"node": node, "count": old["count"] + usage.shown}
                self._state.put("usage", {**row, "last_access": max(old["last_access"], usage.last_access)})

    def usage(self, nodes: Collection[int]) -> dict[int, Usage]:
        rows = self._state.all("usage", lambda row: row["node"] in nodes)
        return {row["node"]: Usage(row["count"], row["last_access"]) for row in rows}

    def lines(self, nodes: Iterable[int]) -> list[tuple[int, str, str, int]]:
        asked, questions = set(nodes), Nodes(self._state)
        rows = self._live(lambda row: row["key"] in asked and row["shelf"] == "k")
        return [
            (row["key"], ",".join(map(str, sorted(questions._subject_keys(row["key"])))), line, row["valid_from"])
            for row in rows
            if len(row["content"]) <= MAX_STATEMENT_CHARS and (line := statement_line(row["content"]))
        ]


class Mentions(Group):
    """The linking of names: what is not linked yet, and the links."""

    def spaces_with_names(self) -> list[int]:
        return sorted({row["space"] for row in self._state.all("aliases")})

    def spaces_to_link(self) -> list[int]:
        return sorted({row["space"] for _, row in self._noted()})

    def _noted(self) -> list[tuple[int, Row]]:
        noted = [(note["key"], self._state.get("nodes", note["node"])) for note in self._state.all("to_link")]
        return [(note, row) for note, row in noted if row is not None]

    def to_link(self, space: int, most: int) -> list[tuple[int, int]]:
        return [(note, row["key"]) for note, row in self._noted() if row["space"] == space][:most]

    def texts(self, keys: Sequence[int]) -> list[LinkText]:
        return [_text(row) for row in self._state.all("nodes", lambda row: row["key"] in keys)]

    def put_links_again(self, notes: Sequence[int], nodes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> None:
        self.drop_all_links(nodes)
        self.put_links(pairs)
        alive = self._state.tables["nodes"]
        self._state.drop("to_link", lambda row: row["key"] in notes or (row["node"],) not in alive)

    def unlinked(self, space: int, most: int) -> list[LinkText]:
        through = (self._state.get("linked", space) or {"through": 0})["through"]
        rows = self._state.all("nodes", lambda row: row["space"] == space and row["key"] > through)
        return [_text(row) for row in rows[:most]]

    def known_names(self, space: int, keys: Sequence[str], sounds: Sequence[str]) -> dict[str, tuple[Bearer, ...]]:
        found: set[tuple[str, str, int, int]] = set()
        for row in self._state.all("aliases", lambda row: row["space"] == space):
            if is_known(self._state.tables["entities"][(row["entity"],)]):
                whole = whole_of(self._state, row["entity"])["key"]
                by = [row["folded"]] * (row["folded"] in keys) + [row["sound"]] * (row["sound"] in sounds)
                found |= {(key, row["alias"], row["entity"], whole) for key in by}
        known: dict[str, tuple[Bearer, ...]] = {}
        for key, *bearer in sorted(found):
            known[key] = (*known.get(key, ()), Bearer(*bearer))
        return known

    def holders_of(self, space: int) -> list[RelationHolder]:
        rows = self._state.all(
            "relations",
            lambda row: (
                row["space"] == space
                and row["source"] is None
                and row["closed_at"] is None
                and is_known(self._state.tables["entities"][(row["target"],)])
            ),
        )
        return [
            RelationHolder(
                predicate=row["predicate"],
                entity=row["target"],
                whole=whole_of(self._state, row["target"])["key"],
                start=row["valid_from"],
                end=row["valid_until"],
            )
            for row in rows
        ]

    def owner_of(self, space: int) -> str:
        return str(self._state.tables["spaces"][(space,)]["owner"])

    def new_names(self) -> list[tuple[int, str, str, int, int]]:
        through = (self._state.get("meta", "names") or {"value": 0})["value"]
        rows = self._state.all("aliases", lambda row: row["commit_seq"] > through)
        columns = ("space", "folded", "alias", "entity", "commit_seq")
        return [tuple(row[name] for name in columns) for row in sorted(rows, key=lambda row: row["commit_seq"])]  # type: ignore[misc]

    def new_relations(self) -> list[tuple[int, str, int]]:
        last = {(row["space"], row["predicate"]): row["key"] for row in self._state.all("relations_to_link")}
        return sorted(((*place, note) for place, note in last.items()), key=lambda each: each[2])

    def texts_with(self, space: int, words: str, most: int) -> list[LinkText]:
        terms = set(index_terms(words))
        rows = self._state.all("nodes", lambda row: row["space"] == space and terms <= terms_of(row))
        return [_text(row) for row in rows][:most] if terms else []

    def put_links(self, pairs: Sequence[tuple[int, int]]) -> None:
        for node, entity in pairs:
            if self._state.get("nodes", node) and self._state.get("entities", entity):
                self._state.put("found_mentions", {"node": node, "entity": entity})

    def mark_linked(self, space: int, through: int) -> None:
        known = (self._state.get("linked", space) or {"through": 0})["through"]
        self._state.put("linked", {"space": space, "through": max(known, through)})

    def mark_names(self, commit: int) -> None:
        self._state.put("meta", {"name": "names", "value": commit})

    def mark_relations(self, note: int) -> None:
        self._state.drop("relations_to_link", lambda row: row["key"] <= note)

    def drop_all_links(self, nodes: Sequence[int]) -> None:
        self._state.drop("found_mentions", lambda row: row["node"] in nodes)

    def look_again(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            self._state.put("to_link", {"key": self._state.next_key("to_link"), "node": node})

    def drop_links(self, pairs: Sequence[tuple[int, int]]) -> None:
        self._state.drop("found_mentions", lambda row: (row["node"], row["entity"]) in pairs)

    def mentions_of(self, entity: int) -> list[tuple[int, str]]:
        nodes = [row["node"] for row in self._state.all("found_mentions") if row["entity"] == entity]
        return [(text.key, text.text) for text in self.texts(nodes)]


def _text(row: Row) -> LinkText:
    return LinkText(
        key=row["key"],
        text=f"{row['speaker']}: {row['content']}" if row["speaker"] else row["content"],
        role=row["source_role"],
        origin=row["source_type"],
        speaker=row["speaker"],
        at=row["event_time"],
    )
