"""Nodes by id, by key and by condition; data that decides how long they are kept; and what an export contains."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ricordo.clock import from_ms
from ricordo.decay import STATED, Vital
from ricordo.errors import NotFoundError
from ricordo.model import Chat, Member, MemberRole, Node, Scope, Stats
from ricordo.storage.candidates import is_statement
from ricordo.storage.database.embeddings import EmbeddingModels
from ricordo.storage.database.entities import Entities
from ricordo.storage.database.hashes import row_sum
from ricordo.storage.database.integrity import FINGERPRINT_KEY, id_fingerprint
from ricordo.storage.database.statements import (
    Asked,
    Group,
    Row,
    asks,
    asserted_edge,
    column,
    columns_of_node,
    first,
    flag,
    node_of,
    reading,
    rows_as,
)
from ricordo.storage.database.vector_math import numbers_in
from ricordo.storage.database.word_index import matching
from ricordo.storage.values import Everything, Filter, Floor, Holdings, Weights, has_operators
from ricordo.trust import trust_of

Keys = NDArray[np.int64]

# If one statement asks for more ids than this, they are fetched in slices.
_SLICE = 5_000
_WEIGHING = columns_of_node("origin role created_at expires_at closed_at confidence score reinforced_at")
_STATING = columns_of_node("type session role speaker content")
# How many statements are read on either side of a line: statements with the same beginning are next to each other.
_NEIGHBOURS = 3


def replaced_holding(spaces: Sequence[int], terms: Sequence[str], *, most: int) -> Asked:
    """Return what asks for the replaced facts in some spaces that hold most of some index terms."""
    matches = [matching([term], spaces, "k") for term in terms]
    return "replaced_holding", {"matches": json.dumps(matches), "most": most}


class LazyNodes(Mapping[int, Node]):
    """Nodes by key, each built from its row when first used: a search reads three times as many as it shows."""

    def __init__(self, rows: Mapping[int, Row]) -> None:
        self._rows = rows
        self._made: dict[int, Node] = {}

    def __getitem__(self, key: int) -> Node:
        if key not in self._made:
            self._made[key] = node_of(self._rows[key])
        return self._made[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __or__(self, others: LazyNodes) -> LazyNodes:
        return LazyNodes({**self._rows, **others._rows})

    def of(self, keys: Iterable[int]) -> LazyNodes:
        """Return the nodes with these keys, in this order, as far as they are here."""
        return LazyNodes({key: self._rows[key] for key in keys if key in self._rows})

    def weights(self) -> dict[int, Weights]:
        """Return the properties that ranking uses besides the words, by key."""
        return {key: _weights(row) for key, row in self._rows.items()}

    def knowledge(self) -> list[int]:
        """Return the keys of the nodes that are not episodes."""
        return [key for key, row in self._rows.items() if row[2] != "episodic"]

    def statements(self) -> list[int]:
        """Return the keys of the nodes that a search compares with each other, see `is_statement`."""
        return [key for key, row in self._rows.items() if is_statement(*_STATING(row))]


def _weights(row: Row) -> Weights:
    origin, role, created_at, expires_at, closed_at, confidence, score, reinforced_at = _WEIGHING(row)
    since = created_at if reinforced_at is None else reinforced_at
    return Weights(confidence, score, since, expires_at, closed_at is None, trust_of(origin, role))


class Nodes(Group):
    """Nodes by id, by key and by condition."""

    def get(self, scope: Scope, node_id: str) -> Node | None:
        if not isinstance(node_id, str) or not node_id.isprintable():  # SQLite cannot take some characters
            return None
        rows = self._sql.rows("node_by_id", self._sql.scoped(scope, id=node_id))
        return node_of(rows[0]) if rows else None

    def known(self, scope: Scope, node_id: str) -> Node:
        node = self.get(scope, node_id)
        if node is None:
            erased = self.erased_at(scope, node_id) if isinstance(node_id, str) else None
            if erased is not None:
                raise NotFoundError(
                    f"memory {node_id} was erased on {erased:%Y-%m-%d}", hint="erased memories cannot be restored"
                )
            raise NotFoundError(f"there is no memory {node_id}", hint="search for it, or list memories, to see its id")
        return node

    ids_with = asks("node_ids_with", "scope part", column)

    def by_key(self, scope: Scope, keys: Iterable[int]) -> dict[int, Node]:
        return {key: node_of(row) for key, row in self._rows_by_key(scope, keys).items()}

    def in_order(self, scope: Scope, keys: Sequence[int]) -> list[Node]:
        """Return nodes in the order of their keys, without those the caller may not see."""
        found = self.by_key(scope, keys)
        return [found[key] for key in keys if key in found]

    def lazily(self, scope: Scope, keys: Iterable[int]) -> LazyNodes:
        """Return nodes as `by_key` does, each built when first used."""
        return LazyNodes(self._rows_by_key(scope, keys))

    def _rows_by_key(self, scope: Scope, keys: Iterable[int]) -> dict[int, Row]:
        wanted = [int(key) for key in keys]
        found: dict[int, Row] = {}
        for start in range(0, len(wanted), _SLICE):
            values = self._sql.scoped(scope, keys=json.dumps(wanted[start : start + _SLICE]))
            found.update((row[0], row) for row in self._sql.rows("nodes_by_key", values))
        return found

    known_ids = asks("node_ids_known", "ids", lambda rows: {id_: (space, text) for id_, space, text in rows})

    _matching = "SELECT group_concat(key) FROM (SELECT n.key FROM nodes AS n WHERE {})"

    def _conditions(self, scope: Scope, filter_: Filter) -> tuple[str, dict[str, object]]:
        """Return the WHERE clause over `nodes AS n`, and its parameters except `:spaces`."""
        return conditions(filter_)

    def page(self, scope: Scope, filter_: Filter, *, now: int, before_key: int | None, limit: int) -> list[Node]:
        clause, values = self._conditions(scope, filter_)
        # The archive includes expired nodes.
        query = (
            f"SELECT n.key FROM nodes AS n WHERE {clause} AND n.key < :before_key AND (n.closed_at IS NOT NULL"
            " OR n.expires_at IS NULL OR n.expires_at > :now) ORDER BY n.key DESC LIMIT :limit"
        )
        values |= self._sql.scoped(scope, before_key=before_key or 1 << 62, limit=limit, now=now)
        return self.in_order(scope, column(self._sql.connection.execute(query, values).fetchall()))

    def latest(self, scope: Scope, filter_: Filter, *, now: int, limit: int) -> list[Node]:
        clause, values = self._conditions(scope, filter_)
        query = (
            f"SELECT n.key FROM nodes AS n WHERE {clause} AND (n.expires_at IS NULL OR n.expires_at > :now)"
            " ORDER BY n.event_time DESC, n.key DESC LIMIT :limit"
        )
        values |= self._sql.scoped(scope, limit=limit, now=now)
        return self.in_order(scope, column(self._sql.connection.execute(query, values).fetchall()))

    edges = asks("edges_of_node", "scope key", rows_as(asserted_edge))

    def matching(self, scope: Scope, filter_: Filter) -> Keys:
        clause, values = self._conditions(scope, filter_)
        query = self._matching.format(clause)
        return np.sort(numbers_in(self._sql.connection.execute(query, values | self._sql.scoped(scope)).get))

    def within(self, scope: Scope, filter_: Filter, *, after: int, before: int, most: int) -> Keys:
        anytime = replace(filter_, after=None, before=None)
        if anytime == Filter(shelves=filter_.shelves):
            asked = during(self._sql.scoped(scope)["spaces"], filter_.shelves, after, before, most=most)
            return numbers_in(self._sql.rows(*asked)[0][0])
        clause, values = self._conditions(scope, anytime)
        query = (
            f"SELECT n.key FROM nodes AS n WHERE {clause} AND n.event_time >= :start AND n.event_time < :end"
            " ORDER BY n.event_time DESC, n.key DESC LIMIT :most"
        )
        values |= self._sql.scoped(scope, start=after, end=before, most=most)
        return np.array(column(self._sql.connection.execute(query, values).fetchall()), np.int64)

    successor = asks("superseded_by", "key", first)
    replaced = asks("replaced_by_node", "key", column)
    replacing = asks("replacing_node", "key", column)
    sources = asks("sources_of_node", "key most", column)
    lost_a_source = asks("rests_on_ended", "node", flag)

    def next_turns(self, keys: Iterable[int]) -> dict[int, int]:
        rows = self._sql.rows("windows", {"keys": json.dumps(list(keys)), "each": 1})
        return {key: int(after) for key, _, after in rows if after is not None}

    shelf = asks("node_shelf", "key", first)
    names = asks("names_in_node", "key", column)

    succession = asks("succession", "keys", list)

    def near_statements(self, owner: str, chat: str, subjects: Sequence[str], line: str) -> list[tuple[int, str]]:
        space = self._sql.space(owner, chat)
        keys = self._sql.values("entity_place", [{"id": each} for each in subjects])
        if space is None or None in keys:
            return []
        first = line.partition(" ")[0]
        values = {
            "space": space,
            "subjects": ",".join(map(str, sorted(keys))),
            "line": line,
            "most": _NEIGHBOURS,
            "first": first,
            "after": f"{first}!",  # "!" is the character after the space
        }
        return [(key, content) for key, content in self._sql.rows("slots_near", values)]

    def facts_with(
        self, owner: str, chat: str, words: Iterable[Sequence[str]], *, most: int
    ) -> dict[int, tuple[str, str | None]]:
        space = self._sql.space(owner, chat)
        if space is None:
            return {}
        asked = [{"match": matching(terms, [space], "k"), "most": most} for terms in words]
        found = chain.from_iterable(self._sql.rows_of_each("facts_with", asked))
        return {key: (content, who) for key, content, who in found}

    subjects = asks("subjects_of", "node", column)

    def replaced_holding(self, scope: Scope, terms: Sequence[str], *, most: int) -> list[tuple[str, int]]:
        spaces = self._sql.visible(scope)
        rows = self._sql.rows(*replaced_holding(spaces, terms, most=most)) if terms and spaces else []
        found: dict[int, tuple[str, int]] = {}
        for key, content, newest in rows:
            found.setdefault(key, (content, newest))
        return list(found.values())

    def evidence(self, scope: Scope, nodes: Iterable[int]) -> dict[int, tuple[str, ...]]:
        found: dict[int, tuple[str, ...]] = {}
        values = self._sql.scoped(scope, nodes=json.dumps(list(nodes)))
        for key, node_id in self._sql.rows("evidence_of", values):
            found[key] = (*found.get(key, ()), node_id)
        return found

    concluded_from = asks("concluded_from", "node", column)

    def erased_at(self, scope: Scope, node_id: str) -> datetime | None:
        key = self._sql.meta(FINGERPRINT_KEY)
        if key is None:
            return None
        hashed = id_fingerprint(bytes.fromhex(key), node_id)
        at: int | None = self._sql.value("erased_id_at", self._sql.scoped(scope, id=hashed))
        return None if at is None else from_ms(at)


# Quarantined nodes are closed, but not part of the archive.
_ARCHIVED = "n.closed_at IS NOT NULL AND n.closed_reason != 'quarantined'"
_FRAGMENTS: Mapping[str, str] = {
    "types": "n.type IN (SELECT value FROM json_each(:types))",
    "categories": "n.category IN (SELECT value FROM json_each(:categories))",
    "entity": (
        "n.key IN (SELECT node FROM subjects WHERE entity IN (SELECT key FROM entities WHERE key = :entity"
        " OR merged_into = :entity) UNION SELECT node FROM found_mentions WHERE entity IN (SELECT key FROM entities"
        " WHERE key = :entity OR merged_into = :entity))"
    ),
    "tags": (
        "NOT EXISTS (SELECT 1 FROM json_each(:tags) AS t WHERE t.value NOT IN"
        " (SELECT case_folded(value) FROM json_each(n.tags)))"
    ),
    "where": (
        "NOT EXISTS (SELECT 1 FROM json_each(:where) AS w WHERE NOT EXISTS (SELECT 1 FROM json_each(n.attributes)"
        " AS a WHERE a.key = w.key AND a.type = w.type AND a.value IS w.value))"
    ),
    "condition": "attributes_meet(n.attributes, :condition)",
    "session": (
        "n.session IN (SELECT key FROM sessions"
        " WHERE space IN (SELECT value FROM json_each(:spaces)) AND session_id = :session)"
    ),
    "after": "n.event_time >= :after",
    "before": "n.event_time < :before",
    "spaces": "n.space IN (SELECT value FROM json_each(:spaces))",
    "shelves": "n.shelf IN (SELECT value FROM json_each(:shelves))",
}


def during(spaces: str, shelves: Sequence[str], start: int, end: int, *, most: int) -> Asked:
    """Return what asks for the latest live memories of a span, in spaces given as a list of keys."""
    span = {"start": start, "end": end, "most": most}
    return "live_within", {"spaces": spaces, "shelves": json.dumps(shelves), **span}


def conditions(filter_: Filter, fragments: Mapping[str, str] = _FRAGMENTS) -> tuple[str, dict[str, object]]:
    """Return the WHERE clause over `nodes AS n`, and its parameters except `:spaces`."""
    values: dict[str, object] = {
        "types": json.dumps(filter_.types) if filter_.types else None,
        "categories": json.dumps(filter_.categories) if filter_.categories else None,
        "entity": filter_.entity,
        "tags": json.dumps([tag.casefold() for tag in filter_.tags]) if filter_.tags else None,
        "condition" if has_operators(filter_.where or {}) else "where": (
            json.dumps(dict(filter_.where)) if filter_.where else None
        ),
        "session": filter_.session,
        "after": filter_.after,
        "before": filter_.before,
    }
    given = {name: value for name, value in values.items() if value is not None}
    clauses = [
        fragments["spaces"],
        fragments["shelves"],
        _ARCHIVED if filter_.archived else "n.closed_at IS NULL",
        *(fragments[name] for name in given),
    ]
    return " AND ".join(clauses), {**given, "shelves": json.dumps(filter_.shelves)}


class Export(Group):
    """What an export contains: knowledge and entities of the spaces a caller sees."""

    _facts = asks("facts_alive", "scope now", column)
    _memories = asks("memories_all", "scope", column)
    _entities = asks("entities_alive", "scope", column)
    _relations = asks("relations_alive", "scope", list)
    _edges = asks("edges_all", "scope", list)

    def holdings(self, scope: Scope, *, now: int) -> Holdings:
        facts = Nodes(self._sql).in_order(scope, self._facts(scope, now))
        entities = {entity.id: entity for entity in Entities(self._sql).by_key(scope, self._entities(scope))}
        return Holdings(facts=facts, entities=entities, relations=self._relations(scope))

    def everything(self, scope: Scope) -> Everything:
        return Everything(
            nodes=Nodes(self._sql).in_order(scope, self._memories(scope)),
            entities=Entities(self._sql).by_key(scope, self._entities(scope)),
            relations=self._relations(scope),
            edges=self._edges(scope),
        )


# The property of the store that records, per space, when fading was last checked.
_LAST_DECAY = "last decay at"


class Members(Group):
    """The members of shared spaces."""

    def joined(self, owner: str) -> dict[str, MemberRole]:
        return dict(self._sql.joined(owner).values())

    def of(self, space: str) -> list[Member]:
        key = self._sql.space("", space)
        rows = [] if key is None else self._sql.rows("members_of_space", {"space": key})
        return [Member(space=name, owner=who, role=role, changed_at=from_ms(at)) for name, who, role, at in rows]

    def place(self, space: int) -> str:
        return str(self._sql.value("space_chat", {"space": space}) or "")


class Lifecycle(Group):
    """Data that decides how long memories are kept."""

    def vitals(self, scope: Scope, keys: Sequence[int], *, often: int) -> list[Vital]:
        values = self._sql.scoped(scope, keys=json.dumps(list(keys)), often=often, stated=STATED)
        rows = self._sql.rows("vitals_of", values)
        return [Vital._make((*row[:12], *map(bool, row[12:16]), row[16])) for row in rows]

    def knowledge(self, scope: Scope) -> list[int]:
        text = self._sql.value("live_knowledge", self._sql.scoped(scope))
        return sorted(int(key) for key in text.split(",")) if text else []

    size = asks("knowledge_size", "scope", lambda rows: rows[0])

    def scopes(self) -> list[Scope]:
        return [Scope.of(owner, chat) for owner, chat in self._sql.rows("spaces_all")]

    def whose(self, node_id: str) -> Scope | None:
        known = Nodes(self._sql).known_ids([node_id]).get(node_id)
        if known is None:
            return None
        ((owner, chat),) = self._sql.rows("space_owner", {"space": known[0]})
        return Scope.of(owner, chat) if owner else None

    def note_decay(self, scope: Scope, *, at: int) -> None:
        for space in self._sql.visible(scope):
            self._sql.rows("meta_put", {"name": f"{_LAST_DECAY} {space}", "value": str(at)})

    def last_decay(self, scope: Scope) -> int | None:
        noted = (self._sql.meta(f"{_LAST_DECAY} {space}") for space in self._sql.visible(scope))
        return max((int(at) for at in noted if at is not None), default=None)


class Statistics(Group):
    """Figures about a caller's memories: counts, sizes, and the scores that unrelated prompts reach."""

    def size(self, scope: Scope, shelves: Sequence[str]) -> tuple[int, int]:
        rows = [row for row in self._sql.rows_of_store("shelf_counts", self._sql.scoped(scope)) if row[1] in shelves]
        return sum(row[2] for row in rows), sum(row[3] for row in rows)

    chats = asks("chats_of", "scope owner", rows_as(reading(Chat)))

    def summary(self, scope: Scope, *, whole_store: bool) -> Stats:
        models = {model.state: model for model in EmbeddingModels(self._sql).known()}
        active, coming = models.get("active"), models.get("coming")
        nodes: dict[str, int] = dict(self._rows(scope, "count_types"))
        embedded, arrived = (
            self._rows(scope, "count_embedded", model=model.key)[0][0] if model else 0 for model in (active, coming)
        )
        sessions, waiting = self._rows(scope, "count_sessions")[0]
        oldest, newest = self._rows(scope, "event_span")[0]
        edges = {kind: count for kind, count in self._rows(scope, "count_edges") if count}
        consolidated = self._value(scope, "last_consolidated")
        decayed = Lifecycle(self._sql).last_decay(scope)
        size = self._sql.value("store_bytes") if whole_store else self._value(scope, "own_bytes")
        return Stats(
            nodes=nodes,
            categories=dict(self._rows(scope, "count_categories")),
            closed=self._value(scope, "count_closed"),
            edges=edges,
            edges_per_node=sum(edges.values()) / max(1, sum(nodes.values())),
            orphans=self._value(scope, "count_orphans"),
            entities=self._value(scope, "count_entities"),
            sessions=sessions,
            sessions_waiting=waiting,
            last_consolidation=None if consolidated is None else from_ms(consolidated),
            last_decay=None if decayed is None else from_ms(decayed),
            embedder=active.name if active else None,
            embedded=embedded,
            embedding_missing=sum(nodes.values()) - embedded if active else 0,
            next_embedder=coming.name if coming else None,
            next_embedded=arrived,
            commits=self._value(scope, "count_commits"),
            size_mb=size / 1_000_000,
            oldest=None if oldest is None else from_ms(oldest),
            newest=None if newest is None else from_ms(newest),
            quarantined=self._value(scope, "count_held"),
        )

    def closed(self, scope: Scope) -> dict[str, int]:
        return dict(self._rows(scope, "archive_counts"))

    closed_keys = asks("archive_listed", "scope reason limit", column)

    def floor(self, scope: Scope, *, model: int, rule: int) -> Floor | None:
        """Return the stored calibration; None if there is none, or it was made by another rule or is damaged."""
        rows = self._sql.rows_of_store("floor_of", self._sql.scoped(scope, model=model))
        if not rows:
            return None
        known, count, middle, spread, chance = rows[0]
        if known != self._floor_sum(scope, rule, model, count, middle, spread, chance):
            return None
        middle, spread = tuple(json.loads(middle)), tuple(json.loads(spread))
        return Floor(model=model, count=count, middle=middle, spread=spread, chance=chance)

    def put_floor(self, scope: Scope, floor: Floor, *, rule: int) -> None:
        lists = {"middle": json.dumps(floor.middle), "spread": json.dumps(floor.spread)}
        row = {"model": floor.model, "count": floor.count, **lists, "chance": float(floor.chance)}
        self._rows(scope, "floor_put", **row, rule=self._floor_sum(scope, rule, *row.values()))

    def _floor_sum(self, scope: Scope, *values: Any) -> int:
        """Return a checksum over a calibration, with its caller and rule: a flipped bit could change any answer."""
        return row_sum(self._sql.scoped(scope)["spaces"], *values)

    def _rows(self, scope: Scope, name: str, **values: Any) -> list[Row]:
        return self._sql.rows(name, self._sql.scoped(scope, **values))

    def _value(self, scope: Scope, name: str) -> Any:
        return self._rows(scope, name)[0][0]
