"""Questions to a state: every one a comprehension over rows, grouped as the storage port groups them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from ricordo.clock import from_ms
from ricordo.decay import STATED, Vital
from ricordo.errors import NotFoundError
from ricordo.model import (
    Commit,
    Edge,
    EdgeType,
    Entity,
    Node,
    Related,
    Relation,
    Review,
    Run,
    RunItem,
    Scope,
    Session,
    Stats,
)
from ricordo.storage.candidates import CandidateQuery, CandidateSet, Shortlist
from ricordo.storage.values import (
    ClosedFact,
    EmbeddingModel,
    Everything,
    Failure,
    Filter,
    Floor,
    Holdings,
    Kinds,
    LearntFact,
    LinkText,
    MessagePairs,
    Named,
    Near,
    NewVectors,
    RelationHolder,
    Sketch,
    Step,
    SubjectUse,
    Unembedded,
    Usage,
    Waiting,
    Weights,
)
from ricordo.text import index_terms, statement_line
from ricordo.text.kinship import known_relation, relation_named
from ricordo.text.names import Bearer, Likeness, NameIndex, candidates, likeness, look_up_keys, sound_keys
from ricordo.text.statement import MAX_STATEMENT_CHARS
from ricordo.trust import trust_of
from tests.contract.reference.apply import visible
from tests.contract.reference.candidates import Search, shortlist
from tests.contract.reference.erasure import Erasure
from tests.contract.reference.ledger import Ledger
from tests.contract.reference.suppression import Suppression
from tests.contract.reference.tables import Row, State
from tests.contract.reference.terms import terms_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.int64]

T = TypeVar("T")

DEPTH = 100
"""So many steps a chain of versions is followed."""
TOGETHER_MS = 60_000
COMPANIONS = 8
NEIGHBOURS = 3
WALK = 2_000
PROPOSAL_MS = 30 * 86_400_000
LATEST_WAITING = 200


# rows become values


def _at(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)


def whole_of(state: State, entity: int) -> Row:
    """Return the entity that an entity is one with: itself, or the one it was merged into."""
    row = state.tables["entities"][(entity,)]
    return row if row["merged_into"] is None else state.tables["entities"][(row["merged_into"],)]


def members_of(state: State, entity: int) -> list[int]:
    """Return an entity and those that were merged into it."""
    merged = [row["key"] for row in state.all("entities", lambda row: row["merged_into"] == entity)]
    return [entity, *merged]


def linked_nodes(state: State, entity: int) -> set[int]:
    """Return the memories that are about an entity or mention it."""
    tables = (state.all("subjects"), state.all("found_mentions"))
    return {row["node"] for table in tables for row in table if row["entity"] == entity}


def mention_count(state: State, entity: int) -> int:
    """Return how many live memories name an entity or one of those merged into it."""
    return sum(is_live(state, node) for member in members_of(state, entity) for node in linked_nodes(state, member))


def is_live(state: State, node: int) -> bool:
    """Return whether a memory is there and open."""
    row = state.get("nodes", node)
    return row is not None and row["closed_at"] is None


def node_of(state: State, row: Row) -> Node:
    """Return a memory as the rest of the library sees it."""
    space = state.tables["spaces"][(row["space"],)]
    session = None if row["session"] is None else state.tables["sessions"][(row["session"],)]["session_id"]
    about = [
        whole_of(state, each["entity"])["canonical_name"]
        for each in state.all("subjects", lambda each: each["node"] == row["key"])
    ]
    return _node(row, owner=space["owner"], chat=space["chat"], session=session, about=tuple(dict.fromkeys(about)))


def _node(row: Mapping[str, Any], *, owner: str, chat: str, session: str | None, about: tuple[str, ...]) -> Node:
    return Node(
        key=row["key"],
        id=row["id"],
        type=row["type"],
        category=row["category"],
        content=row["content"],
        origin=row["source_type"],
        role=row["source_role"],
        speaker=row["speaker"],
        tags=row["tags"],
        attributes=json.loads(row["attributes"]),
        event_time=from_ms(row["event_time"]),
        created_at=from_ms(row["created_at"]),
        valid_from=from_ms(row["valid_from"]),
        valid_until=_at(row["valid_until"]),
        expires_at=_at(row["expires_at"]),
        closed_at=_at(row["closed_at"]),
        closed_reason=row["closed_reason"],
        confidence=row["confidence"],
        decay_rate=row["decay_rate"],
        score=row["score"],
        reinforced_at=_at(row["reinforced_at"]),
        owner=owner,
        chat=chat,
        session=session,
        about=about,
    )


def commit_of(row: Row) -> Commit:
    """Return a commit as the rest of the library sees it."""
    return Commit(
        **{name: row[name] for name in ("seq", "actor", "origin", "reason", "run_id", "hash")}, at=from_ms(row["at"])
    )


class _Group:
    def __init__(self, state: State) -> None:
        self._state = state

    def _sees(self, scope: Scope) -> Callable[[Row], bool]:
        spaces = visible(self._state, scope)
        return lambda row: row["space"] in spaces

    def _live(self, where: Callable[[Row], object] = lambda row: True) -> list[Row]:
        return self._state.all("nodes", lambda row: row["closed_at"] is None and where(row))

    def _id(self, key: int) -> str:
        return str(self._state.tables["nodes"][(key,)]["id"])


class Nodes(_Group):
    """Memories by id, by key and by condition."""

    def get(self, scope: Scope, node_id: str) -> Node | None:
        sees = self._sees(scope)
        found = self._state.all("nodes", lambda row: row["id"] == node_id and sees(row))
        return node_of(self._state, found[0]) if found else None

    def known(self, scope: Scope, node_id: str) -> Node:
        node = self.get(scope, node_id)
        if node is not None:
            return node
        erased = self.erased_at(scope, node_id) if isinstance(node_id, str) else None
        if erased is not None:
            raise NotFoundError(f"memory {node_id} was erased on {erased:%Y-%m-%d}", hint="it is gone for good")
        raise NotFoundError(f"there is no memory {node_id}", hint="`list` or `search` show ids")

    def by_key(self, scope: Scope, keys: Iterable[int]) -> dict[int, Node]:
        wanted, sees = {int(key) for key in keys}, self._sees(scope)
        rows = self._state.all("nodes", lambda row: row["key"] in wanted and sees(row))
        return {row["key"]: node_of(self._state, row) for row in rows}

    def known_ids(self, ids: Sequence[str]) -> dict[str, tuple[int, str]]:
        wanted = set(ids)
        return {row["id"]: (row["space"], row["content"]) for row in self._state.all("nodes") if row["id"] in wanted}

    def _matching(self, scope: Scope, asked: Filter) -> list[Row]:
        sees = self._sees(scope)
        linked = None
        if asked.entity is not None:
            members = members_of(self._state, asked.entity)
            linked = set().union(*(linked_nodes(self._state, member) for member in members))
        return self._state.all("nodes", lambda row: sees(row) and self._matches(row, asked, linked))

    def _matches(self, row: Row, asked: Filter, linked: set[int] | None) -> bool:
        ended = row["closed_at"] is not None and row["closed_reason"] != "quarantined"
        session = self._state.get("sessions", row["session"])
        attributes = json.loads(row["attributes"])
        return (
            (ended if asked.archived else row["closed_at"] is None)
            and row["shelf"] in asked.shelves
            and (not asked.types or row["type"] in asked.types)
            and (not asked.categories or row["category"] in asked.categories)
            and (linked is None or row["key"] in linked)
            and set(asked.tags) <= set(row["tags"])
            and all(
                name in attributes and json.dumps(attributes[name]) == json.dumps(value)
                for name, value in (asked.where or {}).items()
            )
            and (asked.session is None or (session is not None and session["session_id"] == asked.session))
            and (asked.after is None or row["event_time"] >= asked.after)
            and (asked.before is None or row["event_time"] < asked.before)
        )

    def page(self, scope: Scope, filter_: Filter, *, now: int, before_key: int | None, limit: int) -> list[Node]:
        rows = [
            row
            for row in self._matching(scope, filter_)
            if (before_key is None or row["key"] < before_key) and not _has_expired(row, now)
        ]
        return [node_of(self._state, row) for row in rows[::-1][:limit]]

    def latest(self, scope: Scope, filter_: Filter, *, now: int, limit: int) -> list[Node]:
        rows = [row for row in self._matching(scope, filter_) if not _has_expired(row, now)]
        rows.sort(key=lambda row: (row["event_time"], row["key"]), reverse=True)
        return [node_of(self._state, row) for row in rows[:limit]]

    def matching(self, scope: Scope, filter_: Filter) -> Keys:
        return _keys(self._matching(scope, filter_))

    def within(self, scope: Scope, filter_: Filter, *, after: int, before: int, most: int) -> Keys:
        rows = self._matching(scope, replace(filter_, after=after, before=before))
        rows.sort(key=lambda row: row["event_time"], reverse=True)
        return _keys(rows[:most])

    def next_turns(self, keys: Iterable[int]) -> dict[int, int]:
        found = {}
        for row in self._state.all("nodes", lambda row: row["key"] in keys and row["session"] is not None):
            here = row["event_time"], row["key"]
            session = self._live(lambda each, row=row: each["session"] == row["session"])  # type: ignore[misc]
            after = [place for each in session if (place := (each["event_time"], each["key"])) > here]
            if after:
                found[row["key"]] = min(after)[1]
        return found

    def edges(self, scope: Scope, node: Node) -> list[Edge]:
        spaces, nodes = visible(self._state, scope), self._state.tables["nodes"]
        found = []
        for here, there in (("source", "target"), ("target", "source")):
            rows = self._state.all(
                "edges",
                lambda row, here=here, there=there: (
                    row[here] == node.key  # type: ignore[misc]
                    and row["closed_at"] is None
                    and nodes[(row[there],)]["space"] in spaces
                ),
            )
            found += sorted(rows, key=lambda row, here=here: (row["relation_type"], row[there]))  # type: ignore[misc]
        return [
            Edge(
                source=self._id(row["source"]),
                target=self._id(row["target"]),
                type=row["relation_type"],
                predicate=row["predicate"],
                weight=row["weight"],
                confidence=row["confidence"],
                evidence=row["evidence"],
            )
            for row in found
        ]

    def _superseding(self, key: int, *, back: bool) -> dict[int, int]:
        """Follow a chain of versions: node to the least number of steps to it."""
        here, there = ("source", "target") if back else ("target", "source")
        edges = self._state.all("edges", lambda row: row["relation_type"] == "supersedes" and row["closed_at"] is None)
        steps, front = {key: 0}, {key}
        for depth in range(1, DEPTH + 1):
            front = {row[there] for row in edges if row[here] in front} - steps.keys()
            steps |= dict.fromkeys(front, depth)
        return steps

    def replaced(self, key: int) -> list[int]:
        steps = self._superseding(key, back=True)
        return sorted(steps.keys() - {key}, key=lambda node: (steps[node], -node))

    def replacing(self, key: int) -> list[int]:
        steps = self._superseding(key, back=False)
        return sorted(steps.keys() - {key}, key=lambda node: (steps[node], node))

    def successor(self, key: int) -> int | None:
        steps = self._superseding(key, back=False)
        alive = [node for node in steps if is_live(self._state, node)]
        return max(alive, key=lambda node: steps[node]) if alive else None

    def lineage(self, scope: Scope, node: Node) -> list[Node]:
        keys = {*self._superseding(node.key, back=True), *self._superseding(node.key, back=False)} - {node.key}
        return [node, *self.by_key(scope, keys).values()]

    def succession(self, keys: Iterable[int]) -> list[tuple[int, int]]:
        asked = {int(key) for key in keys}
        edges = self._state.all("edges", lambda row: row["relation_type"] == "supersedes" and row["closed_at"] is None)
        reviews = self._state.all(
            "reviews", lambda row: row["decided_at"] is None and row["kind"] in ("conflict", "same")
        )
        pairs = {(row["source"], row["target"]) for row in edges} | {(row["newer"], row["older"]) for row in reviews}
        return sorted(pair for pair in pairs if asked & set(pair))

    def near_statements(self, owner: str, chat: str, subjects: Sequence[str], line: str) -> list[tuple[int, str]]:
        space = self._state.space(owner, chat)
        keys = {row["key"] for row in self._state.all("entities") if row["id"] in subjects}
        if space is None or len(keys) < len(set(subjects)):
            return []
        slots = sorted(
            (own, row["key"], row["content"])
            for row in self._live(lambda row: row["space"] == space and row["shelf"] == "k")
            if (own := statement_line(row["content"])) and self._subject_keys(row["key"]) == keys
        )
        first = line.partition(" ")[0]
        above = [slot for slot in slots if line <= slot[0] < f"{first}!"][:NEIGHBOURS]
        below = [slot for slot in slots if first <= slot[0] < line][::-1][:NEIGHBOURS]
        return [(key, content) for _, key, content in (*above, *below)]

    def _subject_keys(self, key: int) -> set[int]:
        return {row["entity"] for row in self._state.all("subjects") if row["node"] == key}

    def subjects(self, key: int) -> list[str]:
        return [self._state.tables["entities"][(each,)]["id"] for each in sorted(self._subject_keys(key))]

    def weights(self, scope: Scope, keys: Sequence[int]) -> dict[int, Weights]:
        return {
            key: Weights(
                node.confidence,
                node.score,
                _ms_of(node.reinforced_at or node.created_at),
                None if node.expires_at is None else _ms_of(node.expires_at),
                node.is_live,
                trust_of(node.origin, node.role),
            )
            for key, node in self.by_key(scope, keys).items()
        }

    def concluded_from(self, key: int) -> list[int]:
        edges = self._state.all("edges", lambda row: row["target"] == key and row["relation_type"] == "derived_from")
        sources = {row["source"] for row in edges}
        rows = self._live(lambda row: row["key"] in sources and row["category"] in ("reflection", "summary"))
        return [row["key"] for row in rows]

    def sources(self, key: int, *, most: int) -> list[int]:
        edges = self._state.all("edges", lambda row: row["source"] == key and row["relation_type"] == "derived_from")
        return sorted((row["target"] for row in edges if row["closed_at"] is None), reverse=True)[:most]

    def lost_a_source(self, key: int) -> bool:
        edges = self._state.all("edges", lambda row: row["source"] == key and row["relation_type"] == "derived_from")
        return any(not is_live(self._state, row["target"]) for row in edges)

    def names(self, key: int) -> list[str]:
        state = self._state
        about = {whole_of(state, row["entity"])["key"] for row in state.all("subjects") if row["node"] == key}
        named = {whole_of(state, row["entity"])["key"] for row in state.all("found_mentions") if row["node"] == key}
        return [state.tables["entities"][(each,)]["canonical_name"] for each in sorted(named - about)]

    def shelf(self, key: int) -> str | None:
        row = self._state.get("nodes", key)
        return row and row["shelf"]

    def erased_at(self, scope: Scope, node_id: str) -> datetime | None:
        sees = self._sees(scope)
        times = [row["at"] for row in self._state.all("erased_ids") if row["id"] == hash_of(node_id) and sees(row)]
        return from_ms(max(times)) if times else None


def _keys(rows: list[Row]) -> Keys:
    import numpy as np

    return np.array([row["key"] for row in rows], np.int64)


def hash_of(node_id: str) -> str:
    """Return what is kept of the id of a memory that was erased."""
    from hashlib import blake2b

    return blake2b(node_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _has_expired(row: Row, now: int) -> bool:
    return row["expires_at"] is not None and row["expires_at"] <= now


def _ms_of(at: datetime) -> int:
    from ricordo.clock import to_ms

    return to_ms(at)


class Entities(_Group):
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
            if sees(row) and (row["folded"] in keys or row["sound"] in sounds) and _is_known(entities[(row["entity"],)])
        }

    def by_folded_names(self, scope: Scope, names: Sequence[str]) -> list[Entity]:
        return list(self.by_key(scope, {key for _, key in self._alike(scope, names, ())}))

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
            valid_from=_at(row["valid_from"]),
            valid_until=_at(row["valid_until"]),
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
            closed_at=_at(row["closed_at"]),
            merged_into=into,
            owner=space["owner"],
            chat=space["chat"],
            aliases=tuple(dict.fromkeys(alias for *_, alias in aliases)),
            mention_count=mention_count(self._state, row["key"]),
        )

    def by_id(self, scope: Scope, entity_id: str) -> Entity | None:
        sees = self._sees(scope)
        rows = self._state.all("entities", lambda row: row["id"] == entity_id and sees(row) and _is_known(row))
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
                and not _has_expired(row, now)
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


def _is_known(row: Row) -> bool:
    return row["closed_at"] is None or row["merged_into"] is not None


class Graph(_Group):
    """What lies near some memories."""

    def kinds(self) -> Kinds:
        edges = self._state.all("edges")
        return Kinds(
            names=bool(self._state.tables["aliases"]),
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


class Sessions(_Group):
    """Sessions of a caller, and those that are off the record."""

    def get(self, scope: Scope, session_id: str) -> Session | None:
        sees = self._sees(scope)
        rows = self._state.all("sessions", lambda row: row["session_id"] == session_id and sees(row))
        if not rows:
            return None
        row, space = rows[0], self._state.tables["spaces"][(rows[0]["space"],)]
        return Session(
            key=row["key"],
            id=row["session_id"],
            first_seen_at=from_ms(row["first_seen_at"]),
            ended_at=_at(row["ended_at"]),
            consolidated_at=_at(row["consolidated_at"]),
            summary=row["summary"],
            owner=space["owner"],
            chat=space["chat"],
        )

    def off_record(self, owner: str, chat: str) -> set[str]:
        rows = self._state.all("off_record", lambda row: (row["owner"], row["chat"]) == (owner, chat))
        return {row["session"] for row in rows}

    def go_off_record(self, owner: str, chat: str, session: str) -> None:
        self._state.put("off_record", {"owner": owner, "chat": chat, "session": session})

    def go_on_record(self, owner: str, chat: str, session: str) -> None:
        self._state.tables["off_record"].pop((owner, chat, session), None)


class Reviews(_Group):
    """Questions that wait for a decision."""

    def listed(self, scope: Scope, *, most: int, kind: str | None = None) -> list[Review]:
        sees, order = self._sees(scope), ("quarantine", "several", "replaced")
        rows = self._state.all(
            "reviews",
            lambda row: (
                sees(row) and row["decided_at"] is None and kind in (None, row["kind"]) and self._can_be_decided(row)
            ),
        )
        rows.sort(key=lambda row: (order.index(row["kind"]) if row["kind"] in order else -1, -row["key"]))
        return [self._review(scope, row) for row in rows[:most]]

    def _can_be_decided(self, row: Row) -> bool:
        newer = self._state.tables["nodes"][(row["newer"],)]
        older = self._state.get("nodes", row["older"])
        if row["kind"] == "quarantine":
            return bool(newer["closed_reason"] == "quarantined")
        assert older is not None
        if row["kind"] == "replaced":
            return newer["closed_at"] is None and older["closed_reason"] == "superseded"
        return newer["closed_at"] is None and older["closed_at"] is None

    def get(self, scope: Scope, review_id: str) -> Review | None:
        sees = self._sees(scope)
        rows = self._state.all("reviews", lambda row: row["id"] == review_id and sees(row))
        return self._review(scope, rows[0]) if rows else None

    def of_quarantined(self, node: Node) -> Node | None:
        scope = Scope(owner=node.owner, chat=node.chat or None)
        space = self._state.space(node.owner, node.chat)
        rows = self._state.all("reviews", lambda row: (row["kind"], row["space"]) == ("quarantine", space))
        for row in rows[::-1]:
            held = self._state.tables["nodes"][(row["newer"],)]
            is_same = (held["content"], held["type"]) == (node.content, node.type)
            if is_same and held["closed_reason"] in (None, "quarantined"):
                return Nodes(self._state).get(scope, held["id"])
        return None

    def _review(self, scope: Scope, row: Row) -> Review:
        nodes = Nodes(self._state).by_key(scope, [key for key in (row["newer"], row["older"]) if key is not None])
        space = self._state.tables["spaces"][(row["space"],)]
        return Review(
            key=row["key"],
            id=row["id"],
            kind=row["kind"],
            newer=nodes[row["newer"]],
            older=nodes.get(row["older"]),
            created_at=from_ms(row["created_at"]),
            reasons=row["reasons"],
            about=row["about"],
            decided_at=_at(row["decided_at"]),
            decision=row["decision"],
            owner=space["owner"],
            chat=space["chat"],
        )


class Runs(_Group):
    """Conversations that wait to become knowledge, and the runs that made them so."""

    def waiting(self, scope: Scope) -> list[Waiting]:
        sees = self._sees(scope)
        places: dict[tuple[int, int | None], list[Row]] = {}
        for row in self._live(lambda row: row["shelf"] == "e" and sees(row)):
            places.setdefault((row["space"], row["session"]), []).append(row)
        oldest = sorted(
            places.items(),
            key=lambda each: (min(row["event_time"] for row in each[1]), min(row["key"] for row in each[1])),
        )
        return [self._waiting(*place, rows) for place, rows in oldest]

    def _waiting(self, space: int, session: int | None, rows: list[Row]) -> Waiting:
        known = self._state.get("sessions", session) or {"session_id": None, "ended_at": None}
        place = self._state.tables["spaces"][(space,)]
        return Waiting(
            owner=place["owner"],
            chat=place["chat"],
            session=known["session_id"],
            messages=len(rows),
            last_said_at=from_ms(max(row["event_time"] for row in rows)),
            last_added_at=from_ms(max(row["created_at"] for row in rows)),
            ended_at=_at(known["ended_at"]),
        )

    def latest_waiting(self) -> list[tuple[tuple[str, str], str | None]]:
        rows = self._live(lambda row: row["shelf"] == "e")[::-1][:LATEST_WAITING]
        places = dict.fromkeys((row["space"], row["session"]) for row in rows)
        return [(self._place(space), self._session_id(session)) for space, session in places]

    def _place(self, space: int) -> tuple[str, str]:
        row = self._state.tables["spaces"][(space,)]
        return row["owner"], row["chat"]

    def _session_id(self, session: int | None) -> str | None:
        row = self._state.get("sessions", session)
        return None if row is None else row["session_id"]

    def waiting_episodes(self, scope: Scope, place: tuple[str, str], session: str | None) -> list[Node]:
        return self._episodes(scope, place, session, lambda row: row["shelf"] == "e")

    def session_episodes(self, scope: Scope, place: tuple[str, str], session: str) -> list[Node]:
        return self._episodes(scope, place, session, lambda row: row["type"] == "episodic")

    def _episodes(
        self, scope: Scope, place: tuple[str, str], session: str | None, where: Callable[[Row], bool]
    ) -> list[Node]:
        sees, space = self._sees(scope), self._state.space(*place)
        rows = self._live(
            lambda row: (
                row["space"] == space and sees(row) and where(row) and self._session_id(row["session"]) == session
            )
        )
        rows.sort(key=lambda row: (row["event_time"], row["key"]))
        return [node_of(self._state, row) for row in rows]

    def listed(self, scope: Scope, *, most: int) -> list[Run]:
        return [self._run(row) for row in self._state.all("runs", self._sees(scope))[::-1][:most]]

    def get(self, scope: Scope, run_id: str) -> Run | None:
        sees, nodes = self._sees(scope), Nodes(self._state)
        for row in self._state.all("runs", lambda row: row["id"] == run_id and sees(row)):
            return self._run(row, text=lambda node_id: getattr(nodes.get(scope, node_id), "content", ""))
        return None

    def _run(self, row: Row, *, text: Callable[[str], str] = lambda node_id: "") -> Run:
        ids = {each["key"]: each["id"] for each in self._state.all("nodes")}
        owner, chat = self._place(row["space"])
        sessions = [self._session_id(key) for key in row["sessions"]]
        return Run(
            key=row["key"],
            id=row["id"],
            kind=row["kind"],
            state="done",
            model=row["model"],
            prompt=row["prompt"],
            sessions=tuple(each for each in sessions if each is not None),
            started_at=from_ms(row["started_at"]),
            ended_at=from_ms(row["ended_at"]),
            tokens_in=row["tokens_in"],
            tokens_out=row["tokens_out"],
            cost=row["cost"],
            owner=owner,
            chat=chat,
            items=tuple(
                RunItem(
                    what=what,
                    id=ids.get(node),
                    other=ids.get(other),
                    reason=reason,
                    evidence=tuple(ids[each] for each in evidence if each in ids),
                    text=text(ids[node]) if node in ids else "",
                )
                for what, reason, node, other, evidence in row["items"]
            ),
        )

    def failures(self, scope: Scope) -> list[Failure]:
        rows = sorted(self._state.all("failures", self._sees(scope)), key=lambda row: -row["at"])
        return [
            Failure(
                owner=self._place(row["space"])[0],
                chat=self._place(row["space"])[1],
                session=self._session_id(row["session"]),
                tries=row["tries"],
                at=from_ms(row["at"]),
                reason=row["reason"],
            )
            for row in rows
        ]

    def _key(self, place: tuple[str, str], session: str | None) -> tuple[int | None, int | None]:
        space = self._state.space(*place)
        rows = self._state.all("sessions", lambda row: (row["space"], row["session_id"]) == (space, session))
        return space, rows[0]["key"] if rows else None

    def note_failure(self, place: tuple[str, str], session: str | None, *, at: int, reason: str) -> None:
        space, key = self._key(place, session)
        tries = (self._state.get("failures", space, key) or {"tries": 0})["tries"] + 1
        self._state.put("failures", {"space": space, "session": key, "tries": tries, "at": at, "reason": reason})

    def forget_failures(self, place: tuple[str, str], session: str | None) -> None:
        self._state.tables["failures"].pop(self._key(place, session), None)

    def lease_of(self, place: tuple[str, str], session: str | None) -> str:
        space, key = self._key(place, session)
        return f"conversation {space}/{key or 0}"

    def note_use(self, *, day: str, model: str, calls: int, tokens_in: int, tokens_out: int) -> None:
        old = self._state.get("model_use", day, model) or {"calls": 0, "tokens_in": 0, "tokens_out": 0}
        new = {"calls": calls, "tokens_in": tokens_in, "tokens_out": tokens_out}
        self._state.put("model_use", {"day": day, "model": model} | {name: old[name] + new[name] for name in new})

    def tokens_used(self, *, day: str) -> int:
        rows = self._state.all("model_use", lambda row: row["day"] == day)
        return sum(row["tokens_in"] + row["tokens_out"] for row in rows)

    def items_of_last(self, owner: str, chat: str, kind: str) -> list[tuple[str, int | None, tuple[int, ...]]]:
        space = self._state.space(owner, chat)
        rows = self._state.all("runs", lambda row: (row["space"], row["kind"]) == (space, kind))
        return [(what, node, evidence) for row in rows[-1:] for what, _, node, _, evidence in row["items"]]

    def _extractions(self, place: tuple[str, str], session: str | None, model: str) -> list[Row]:
        space, key = self._key(place, session)
        wanted = (space, "extraction", model, () if key is None else (key,))
        return self._state.all("runs", lambda row: (row["space"], row["kind"], row["model"], row["sessions"]) == wanted)

    def extraction_of(self, place: tuple[str, str], session: str | None, *, model: str) -> str | None:
        rows = self._extractions(place, session, model)
        return rows[-1]["id"] if rows else None

    def read_by(self, place: tuple[str, str], session: str | None, *, model: str, among: Sequence[Node]) -> set[int]:
        items = [item for row in self._extractions(place, session, model) for item in row["items"]]
        return {key for what, *_, evidence in items if what == "looked" for key in evidence} & {n.key for n in among}

    def consecutive_messages(self, owner: str, chat: str, *, after: int, most: int) -> MessagePairs | None:
        space = self._state.space(owner, chat)
        said = self._live(
            lambda row: (
                row["space"] == space
                and (row["type"], row["source_role"]) == ("episodic", "user")
                and row["session"] is not None
            )
        )
        looked = [row for row in said if row["key"] > after][:most]
        pairs = []
        for row in looked:
            here = row["event_time"], row["key"]
            places = [(each["event_time"], each["key"]) for each in said if each["session"] == row["session"]]
            before = [place for place in places if place < here]
            pairs += [(max(before)[1], row["key"])] if before else []
        return MessagePairs(tuple(pairs), looked[-1]["key"]) if looked else None

    def learnt_between(self, owner: str, chat: str, *, after: int, before: int, now: int, most: int) -> list[int]:
        space = self._state.space(owner, chat)
        rows = self._live(
            lambda row: (
                row["space"] == space
                and row["type"] != "episodic"
                and row["category"] not in ("reflection", "summary")
                and after <= row["event_time"] < before
                and not _has_expired(row, now)
            )
        )
        rows.sort(key=lambda row: (row["event_time"], row["key"]))
        return [row["key"] for row in rows[-most:]]

    def evidence(self, scope: Scope, nodes: Iterable[int]) -> dict[int, tuple[str, ...]]:
        sees, rows = self._sees(scope), self._state.tables["nodes"]
        found: dict[int, tuple[str, ...]] = {}
        for node in nodes:
            edges = self._state.all(
                "edges",
                lambda row, node=node: (
                    row["source"] == node  # type: ignore[misc]
                    and row["relation_type"] == "derived_from"
                    and row["closed_at"] is None
                    and is_live(self._state, row["target"])
                    and sees(rows[(row["target"],)])
                ),
            )
            targets = sorted((rows[(row["target"],)]["event_time"], row["target"]) for row in edges)
            if targets:
                found[node] = tuple(self._id(key) for _, key in targets)
        return found


class Evidence(_Group):
    """What derived memories rest on."""

    def _sources(self, key: int, *, closed: bool) -> set[str]:
        edges = self._state.all("edges", lambda row: row["source"] == key and row["relation_type"] == "derived_from")
        return {self._id(edge["target"]) for edge in edges if closed or edge["closed_at"] is None}

    def learnt_from(
        self, owner: str, chat: str, content: str, *, evidence: Sequence[str], least: int
    ) -> LearntFact | None:
        space = self._state.space(owner, chat)
        mine = {row["id"] for row in self._state.all("nodes") if row["space"] == space} & set(evidence)
        rows = self._state.all(
            "nodes",
            lambda row: _says(row, content) and len(self._sources(row["key"], closed=True) & mine) >= max(1, least),
        )
        rows.sort(key=lambda row: (row["closed_at"] is not None, row["key"]))
        return LearntFact(rows[0]["id"], rows[0]["closed_at"] is None) if rows else None

    def count(self, key: int, *, among: Sequence[str]) -> int:
        return len(self._sources(key, closed=False) & set(among))

    def resting_on(self, evidence: Iterable[str], *, most: int) -> list[int]:
        wanted = set(evidence)
        rows = self._live(lambda row: bool(self._sources(row["key"], closed=False) & wanted))
        return [row["key"] for row in rows[:most]]

    def reflections_on(self, keys: Iterable[int]) -> list[int]:
        wanted = {self._id(key) for key in keys}
        rows = self._live(lambda row: row["category"] == "reflection")
        return [row["key"] for row in rows if self._sources(row["key"], closed=True) & wanted]

    def dismissed(
        self, owner: str, chat: str, type_: str, content: str, *, evidence: Sequence[str]
    ) -> list[ClosedFact]:
        space = self._state.space(owner, chat)
        rows = self._state.all(
            "nodes",
            lambda row: (
                (row["space"], row["type"]) == (space, type_) and row["closed_reason"] in ("forgotten", "retracted")
            ),
        )
        return [
            ClosedFact(row["content"], row["closed_at"], _says(row, content))
            for row in rows
            if _says(row, content) or self._sources(row["key"], closed=True) & set(evidence)
        ]


def _says(row: Row, content: str) -> bool:
    line = statement_line(content)
    return row["content"] == content or (line != "" and statement_line(row["content"]) == line)


class History(_Group):
    """Commits, and the versions of what they changed."""

    def commits(self, scope: Scope, *, before: int | None, most: int) -> list[Commit]:
        sees = self._sees(scope)
        rows = [row for row in self._state.commits.values() if sees(row) and (before is None or row["seq"] < before)]
        return [commit_of(row) for row in sorted(rows, key=lambda row: -row["seq"])[:most]]

    def versions(self, node: Node) -> list[tuple[Node, Commit | None]]:
        now = self._state.tables["nodes"][(node.key,)]
        former = [row for _, row in self._state.versions("nodes", (node.key,)) if row is not None and row != now]
        was = [
            (_node(row, owner=node.owner, chat=node.chat, session=node.session, about=node.about), row["commit_seq"])
            for row in former
        ]
        return [*((each, self.get(seq)) for each, seq in was), (node, self.commit_of(node.key))]

    def get(self, seq: int) -> Commit | None:
        return commit_of(self._state.commits[seq]) if seq in self._state.commits else None

    def made(self, seq: int) -> Commit:
        return commit_of(self._state.commits[seq])

    def next_commit(self) -> int:
        return len(self._state.commits) + 1

    def commit_of(self, key: int) -> Commit:
        return commit_of(self._state.commits[self._state.tables["nodes"][(key,)]["commit_seq"]])

    def erasures(self, commits: Iterable[int]) -> list[int]:
        asked = set(commits)
        return sorted(row["commit_seq"] for row in self._state.all("erasures") if row["commit_seq"] in asked)

    def ledger(self) -> Ledger:
        return Ledger(self._state)


class Lifecycle(_Group):
    """What decides how long memories are kept."""

    def vitals(self, scope: Scope, keys: Sequence[int], *, often: int) -> list[Vital]:
        sees = self._sees(scope)
        return [
            self._vital(row, often) for row in self._state.all("nodes", lambda row: row["key"] in keys and sees(row))
        ]

    def _vital(self, row: Row, often: int) -> Vital:
        usage = self._state.get("usage", row["key"]) or {"count": 0, "last_access": None}
        subjects = [each["entity"] for each in self._state.all("subjects") if each["node"] == row["key"]]
        wholes = [whole_of(self._state, each) for each in subjects]
        sources = [
            self._state.tables["nodes"][(edge["target"],)]
            for edge in self._state.all("edges", lambda edge: edge["source"] == row["key"])
            if edge["relation_type"] == "derived_from" and edge["closed_at"] is None
        ]
        own_word = _is_said(row, roles=("user", "system"))
        repeated = row["confidence"] >= STATED and any(_is_said(each, roles=("user",)) for each in sources)
        return Vital(
            key=row["key"],
            id=row["id"],
            category=row["category"],
            confidence=row["confidence"],
            rate=0.0 if row["type"] == "episodic" else row["decay_rate"],
            score=row["score"],
            created_at=row["created_at"],
            reinforced_at=row["reinforced_at"],
            valid_from=row["valid_from"],
            expires_at=row["expires_at"],
            shown=usage["count"],
            last_access=usage["last_access"],
            is_said=own_word or repeated,
            is_inferred=row["source_type"] in ("extraction", "consolidation"),
            is_protected=any(each["protected"] for each in wholes),
            is_frequent=often > 0
            and any(
                sum(is_live(self._state, node) for node in linked_nodes(self._state, each["key"])) > often
                for each in wholes
            ),
            size=len(row["content"].encode()),
        )

    def knowledge(self, scope: Scope) -> list[int]:
        return [row["key"] for row in self._knowledge(scope)]

    def _knowledge(self, scope: Scope) -> list[Row]:
        sees = self._sees(scope)
        return self._live(lambda row: row["type"] != "episodic" and sees(row))

    def size(self, scope: Scope) -> tuple[int, int]:
        rows = self._knowledge(scope)
        return len(rows), sum(len(row["content"].encode()) for row in rows)

    def scopes(self) -> list[Scope]:
        return [Scope(owner=row["owner"], chat=row["chat"] or None) for row in self._state.all("spaces")]

    def whose(self, node_id: str) -> Scope | None:
        for row in self._state.all("nodes", lambda row: row["id"] == node_id):
            space = self._state.tables["spaces"][(row["space"],)]
            return Scope(owner=space["owner"], chat=space["chat"] or None) if space["owner"] else None
        return None

    def note_decay(self, scope: Scope, *, at: int) -> None:
        for space in visible(self._state, scope):
            self._state.put("meta", {"name": f"decay {space}", "value": at})

    def last_decay(self, scope: Scope) -> int | None:
        noted = [self._state.get("meta", f"decay {space}") for space in visible(self._state, scope)]
        return max((row["value"] for row in noted if row is not None), default=None)


def _is_said(row: Row, *, roles: Collection[str]) -> bool:
    return row["source_type"] in ("user", "cli", "rpc") or (
        row["source_type"] == "conversation" and row["source_role"] in roles
    )


class Mentions(_Group):
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
            if _is_known(self._state.tables["entities"][(row["entity"],)]):
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
                and _is_known(self._state.tables["entities"][(row["target"],)])
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


class Models(_Group):
    """Embedding models. What lacks a vector is looked for from the beginning each time."""

    def known(self) -> list[EmbeddingModel]:
        return [EmbeddingModel(**row) for row in self._state.all("models")]

    def adopt(self, *, name: str, dimension: int, spec: str) -> EmbeddingModel:
        mine = [row for row in self._state.all("models") if (row["name"], row["dimension"]) == (name, dimension)]
        active = [row for row in self._state.all("models") if row["state"] == "active"]
        state = "active" if not active or active == mine else "coming"
        for row in self._state.all("models"):
            if row["state"] == "coming" and row not in mine:
                self._state.put("models", {**row, "state": "retiring"})
        key = mine[0]["key"] if mine else self._state.next_key("models")
        row = {"key": key, "name": name, "dimension": dimension, "spec": spec, "state": state}
        self._state.put("models", {**row, "spec": mine[0]["spec"]} if mine else row)
        return EmbeddingModel(**row)

    def switch(self, coming: int) -> bool:
        if Vectors(self._state).lacking(coming, after=0, most=1):
            return False
        for row in self._state.all("models"):
            if row["key"] == coming or row["state"] == "active":
                self._state.put("models", {**row, "state": "active" if row["key"] == coming else "retiring"})
        return True

    def progress(self, model: int) -> tuple[int, int, tuple[int, int]]:
        return 0, 0, (0, 0)

    def note_progress(self, model: int, after: int, removals: int) -> None:
        """Nothing is noted: the next opening looks at everything again."""

    def lost_since(self, removal: int) -> tuple[int, int | None]:
        return 0, 1

    def dropped_below(self) -> int:
        return 0

    def drop_removals(self) -> int:
        return 0

    def centres_due(self, model: int) -> list[tuple[int, str]]:
        return []

    def drop_retired(self) -> bool:
        retired = {row["key"] for row in self._state.drop("models", lambda row: row["state"] == "retiring")}
        self._state.drop("vectors", lambda row: row["model"] in retired)
        return bool(retired)


class Vectors(_Group):
    """Vectors of nodes."""

    def lacking(self, model: int, *, after: int, most: int) -> list[Unembedded]:
        vectors = self._state.tables["vectors"]
        rows = self._live(lambda row: row["key"] > after and (row["key"], model) not in vectors)
        return [Unembedded(row["key"], row["content"], row["speaker"]) for row in rows[:most]]

    def put(self, model: int, dimension: int, made: Sequence[NewVectors]) -> int | None:
        left = None
        for new in made:
            row = self._state.get("nodes", new.key)
            if row is not None and row["content"] == new.content and self._state.get("models", model) is not None:
                self._state.put("vectors", {"node": new.key, "model": model, "new": new})
            elif left is None:
                left = new.key
        return left

    def compact(self) -> bool:
        return False

    def recentre(self, model: int, dimension: int) -> bool:
        return False


class Upkeep(_Group):
    """There is none."""

    def is_due(self) -> bool:
        return False

    def step(self) -> bool:
        return False


class Export(_Group):
    """What a caller takes along."""

    def holdings(self, scope: Scope, *, now: int) -> Holdings:
        sees = self._sees(scope)
        rows = self._live(lambda row: row["type"] != "episodic" and sees(row) and not _has_expired(row, now))
        rows.sort(key=lambda row: (row["event_time"], row["key"]))
        return Holdings(
            facts=[node_of(self._state, row) for row in rows],
            entities={entity.id: entity for entity in self._entities(scope)},
            relations=self._relations(scope),
        )

    def _entities(self, scope: Scope) -> tuple[Entity, ...]:
        keys = [row["key"] for row in self._state.all("entities", lambda row: row["closed_at"] is None)]
        return Entities(self._state).by_key(scope, keys)

    def _relations(self, scope: Scope) -> list[tuple[str | None, str, str]]:
        sees = self._sees(scope)
        rows = self._state.all(
            "relations", lambda row: sees(row) and row["closed_at"] is None and row["valid_until"] is None
        )
        found = []
        for row in rows:
            target = whole_of(self._state, row["target"])
            source = None if row["source"] is None else whole_of(self._state, row["source"])
            if target["closed_at"] is None and source != target:
                found.append((source and source["id"], row["predicate"], target["id"]))
        return found

    def everything(self, scope: Scope) -> Everything:
        sees, nodes = self._sees(scope), self._state.tables["nodes"]
        edges = self._state.all("edges", lambda row: row["closed_at"] is None)
        edges.sort(key=lambda row: (row["source"], row["target"]))
        return Everything(
            nodes=[node_of(self._state, row) for row in self._state.all("nodes", sees)],
            entities=self._entities(scope),
            relations=self._relations(scope),
            edges=[
                (self._id(row["source"]), row["relation_type"], self._id(row["target"]))
                for row in edges
                if sees(nodes[(row["source"],)]) and sees(nodes[(row["target"],)])
            ],
        )


class Statistics(_Group):
    """Figures about a caller's memories."""

    def size(self, scope: Scope, shelves: Sequence[str]) -> tuple[int, int]:
        sees = self._sees(scope)
        rows = self._live(lambda row: row["shelf"] in shelves and sees(row))
        return len(rows), sum(len(row["content"]) for row in rows)

    def summary(self, scope: Scope, *, whole_store: bool) -> Stats:
        sees, state = self._sees(scope), self._state
        nodes, sessions = self._live(sees), state.all("sessions", sees)
        models = {model.state: model for model in Models(state).known()}
        active, coming = models.get("active"), models.get("coming")
        edges = self._edges(nodes)
        times = [row["event_time"] for row in nodes]
        embedded = {
            each: sum((row["key"], each.key) in state.tables["vectors"] for row in nodes) for each in models.values()
        }
        decayed = Lifecycle(state).last_decay(scope)
        held = state.all("reviews", lambda row: row["kind"] == "quarantine" and row["decided_at"] is None and sees(row))
        return Stats(
            nodes=dict(Counter(row["type"] for row in nodes)),
            categories=dict(Counter(row["category"] for row in nodes if row["category"] is not None)),
            closed=len(self._closed(scope)),
            edges=edges,
            edges_per_node=sum(edges.values()) / max(1, len(nodes)),
            orphans=self._orphans(nodes),
            entities=len(state.all("entities", lambda row: row["closed_at"] is None and sees(row))),
            sessions=len(sessions),
            sessions_waiting=sum(row["consolidated_at"] is None for row in sessions),
            last_consolidation=_at(max((row["consolidated_at"] or 0 for row in sessions), default=0) or None),
            last_decay=_at(decayed),
            embedder=active.name if active else None,
            embedded=embedded[active] if active else 0,
            embedding_missing=len(nodes) - embedded[active] if active else 0,
            next_embedder=coming.name if coming else None,
            next_embedded=embedded[coming] if coming else 0,
            commits=sum(sees(row) for row in state.commits.values()),
            size_mb=0.0,
            oldest=_at(min(times, default=None)),
            newest=_at(max(times, default=None)),
            quarantined=sum(state.tables["nodes"][(row["newer"],)]["closed_reason"] == "quarantined" for row in held),
        )

    def _edges(self, nodes: list[Row]) -> dict[str, int]:
        """Asserted edges are open ones from any memory the caller sees; temporal ones follow from sessions."""
        spaces = {row["space"] for row in nodes}
        everything = self._state.tables["nodes"]
        edges = self._state.all(
            "edges", lambda row: row["closed_at"] is None and everything[(row["source"],)]["space"] in spaces
        )
        said = [row["session"] for row in nodes if row["type"] == "episodic" and row["session"] is not None]
        counts = Counter(row["relation_type"] for row in edges)
        counts["temporal"] = len(said) - len(set(said))
        return {kind: count for kind, count in counts.items() if count}

    def _orphans(self, nodes: list[Row]) -> int:
        linked = {row["node"] for table in ("subjects", "found_mentions") for row in self._state.all(table)}
        edges = self._state.all("edges", lambda row: row["closed_at"] is None)
        linked |= {row[end] for row in edges for end in ("source", "target")}
        return sum(row["session"] is None and row["key"] not in linked for row in nodes)

    def _closed(self, scope: Scope) -> list[Row]:
        sees = self._sees(scope)
        return self._state.all(
            "nodes", lambda row: row["closed_at"] is not None and row["closed_reason"] != "quarantined" and sees(row)
        )

    def closed(self, scope: Scope) -> dict[str, int]:
        return dict(Counter(row["closed_reason"] for row in self._closed(scope)))

    def closed_keys(self, scope: Scope, reason: str | None, *, limit: int) -> list[int]:
        rows = [row for row in self._closed(scope) if reason in (None, row["closed_reason"])]
        rows.sort(key=lambda row: (row["closed_at"], row["key"]), reverse=True)
        return [row["key"] for row in rows[:limit]]

    def floor(self, scope: Scope, *, model: int, rule: int) -> Floor | None:
        row = self._state.get("floors", tuple(visible(self._state, scope)), model)
        return row["floor"] if row is not None and row["rule"] == rule else None

    def put_floor(self, scope: Scope, floor: Floor, *, rule: int) -> None:
        spaces = tuple(visible(self._state, scope))
        self._state.put("floors", {"spaces": spaces, "model": floor.model, "rule": rule, "floor": floor})


class Leases(_Group):
    """Who does a job that only one process is to do at a time."""

    def take(self, name: str, holder: str, *, now: int, until: int, is_gone: Callable[[str], bool]) -> bool:
        row = self._state.get("leases", name)
        if row is not None and row["holder"] != holder and row["until"] >= now and not is_gone(row["holder"]):
            return False
        self._state.put("leases", {"name": name, "holder": holder, "until": until})
        return True

    def drop(self, name: str, holder: str) -> None:
        self._state.drop("leases", lambda row: (row["name"], row["holder"]) == (name, holder))


class Proposals(_Group):
    """Replays of runs that may be accepted."""

    def put(self, run_id: str, *, space: int, at: int, body: str) -> None:
        self._state.drop("proposals", lambda row: row["at"] < at - PROPOSAL_MS)
        self._state.put("proposals", {"id": run_id, "space": space, "at": at, "body": body})

    def body(self, scope: Scope, run_id: str) -> str | None:
        sees = self._sees(scope)
        rows = self._state.all(
            "proposals",
            lambda row: sees(row) and (row["id"] == run_id or (len(run_id) == 8 and row["id"].endswith(run_id))),
        )
        return rows[0]["body"] if len(rows) == 1 else None


class Snapshot:
    """One moment of a store, its questions grouped by subject."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.nodes = Nodes(state)
        self.entities = Entities(state)
        self.graph = Graph(state)
        self.sessions = Sessions(state)
        self.reviews = Reviews(state)
        self.runs = Runs(state)
        self.history = History(state)
        self.evidence = Evidence(state)
        self.vectors = Vectors(state)
        self.upkeep = Upkeep(state)
        self.lifecycle = Lifecycle(state)
        self.mentions = Mentions(state)
        self.suppression = Suppression(state)
        self.models = Models(state)
        self.statistics = Statistics(state)
        self.export = Export(state)
        self.leases = Leases(state)
        self.proposals = Proposals(state)
        self.erasure = Erasure(state)

    def space(self, owner: str, chat: str) -> int | None:
        return self.state.space(owner, chat)

    def visible(self, scope: Scope) -> tuple[int, ...]:
        return tuple(visible(self.state, scope))

    def current(self, now: int) -> int:
        return now

    def until(self, moment: float, work: Callable[[], T]) -> T:
        if time.monotonic() >= moment:
            raise TimeoutError
        return work()

    def candidates(self, query: CandidateQuery) -> CandidateSet:
        return Search(self, query).answer()

    def shortlist(self, scope: Scope, keys: Sequence[int], *, archived: bool, now: int) -> Shortlist:
        return shortlist(self, scope, keys, archived=archived, now=now)

    def load_vectors(self, scope: Scope, shelves: Sequence[str]) -> None:
        """Everything is in memory."""

    def load_more_vectors(self) -> bool:
        return False

    def load_turns(self, scope: Scope, *, ahead: bool = False) -> bool:
        return True


class PastSnapshot(Snapshot):
    """The store as it was after a commit; `at` counts as now."""

    def __init__(self, state: State, *, at: int) -> None:
        super().__init__(state)
        self.at = at

    def current(self, now: int) -> int:
        return self.at
