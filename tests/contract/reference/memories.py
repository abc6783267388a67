"""Questions about memories: by id and by condition, what they rest on, and how long they are kept."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ricordo.clock import from_ms, shortens
from ricordo.decay import STATED, Vital
from ricordo.errors import NotFoundError
from ricordo.model import Edge, Node, Scope
from ricordo.storage.values import ClosedFact, Filter, LearntFact, Weights, holds
from ricordo.text.statement import statement_line
from ricordo.trust import trust_of
from tests.contract.reference.apply import visible
from tests.contract.reference.rows import (
    Group,
    has_expired,
    is_live,
    linked_nodes,
    members_of,
    ms_of,
    node_of,
    whole_of,
)
from tests.contract.reference.tables import Row
from tests.contract.reference.terms import terms_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.int64]


DEPTH = 100
"""So many steps a chain of versions is followed."""


NEIGHBOURS = 3


class Nodes(Group):
    """Memories by id, by key and by condition."""

    def get(self, scope: Scope, node_id: str) -> Node | None:
        sees = self._sees(scope)
        found = self._state.all("nodes", lambda row: row["id"] == node_id and sees(row))
        return node_of(self._state, found[0]) if found else None

    def ids_with(self, scope: Scope, part: str) -> list[str]:
        sees = self._sees(scope)
        found = self._state.all("nodes", lambda row: sees(row) and shortens(part, row["id"]))
        return [row["id"] for row in found[:10]]

    def known(self, scope: Scope, node_id: str) -> Node:
        node = self.get(scope, node_id)
        if node is not None:
            return node
        erased = self.erased_at(scope, node_id) if isinstance(node_id, str) else None
        if erased is not None:
            raise NotFoundError(
                f"memory {node_id} was erased on {erased:%Y-%m-%d}", hint="erased memories cannot be restored"
            )
        raise NotFoundError(f"there is no memory {node_id}", hint="search for it, or list memories, to see its id")

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
            and {tag.casefold() for tag in asked.tags} <= {tag.casefold() for tag in row["tags"]}
            and holds(attributes, asked.where or {})
            and (asked.session is None or (session is not None and session["session_id"] == asked.session))
            and (asked.after is None or row["event_time"] >= asked.after)
            and (asked.before is None or row["event_time"] < asked.before)
        )

    def page(self, scope: Scope, filter_: Filter, *, now: int, before_key: int | None, limit: int) -> list[Node]:
        rows = [
            row
            for row in self._matching(scope, filter_)
            if (before_key is None or row["key"] < before_key)
            and (row["closed_at"] is not None or not has_expired(row, now))
        ]
        return [node_of(self._state, row) for row in rows[::-1][:limit]]

    def latest(self, scope: Scope, filter_: Filter, *, now: int, limit: int) -> list[Node]:
        rows = [row for row in self._matching(scope, filter_) if not has_expired(row, now)]
        rows.sort(key=lambda row: (row["event_time"], row["key"]), reverse=True)
        return [node_of(self._state, row) for row in rows[:limit]]

    def matching(self, scope: Scope, filter_: Filter) -> Keys:
        return _keys(self._matching(scope, filter_))

    def within(self, scope: Scope, filter_: Filter, *, after: int, before: int, most: int) -> Keys:
        rows = self._matching(scope, replace(filter_, after=after, before=before))
        rows.sort(key=lambda row: (row["event_time"], row["key"]), reverse=True)
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
        steps, nodes = self._superseding(key, back=True), self._state.tables["nodes"]
        found = [node for node in steps if node != key and nodes[(node,)]["closed_reason"] != "forgotten"]
        return sorted(found, key=lambda node: (steps[node], -node))

    def replaced_holding(self, scope: Scope, terms: Sequence[str], *, most: int) -> list[tuple[str, int]]:
        spaces, asked = visible(self._state, scope), set(terms)
        replaced = self._state.all(
            "nodes", lambda row: row["space"] in spaces and row["shelf"] == "k" and row["closed_reason"] == "superseded"
        )
        held = [(len(asked & terms_of(row)), row["key"], row["content"]) for row in replaced]
        best = sorted((each for each in held if each[0]), reverse=True)[:most]
        return [(content, newest) for _, key, content in best if (newest := self.successor(key)) is not None]

    def replacing(self, key: int) -> list[int]:
        steps = self._superseding(key, back=False)
        return sorted(steps.keys() - {key}, key=lambda node: (steps[node], node))

    def successor(self, key: int) -> int | None:
        steps = self._superseding(key, back=False)
        alive = [node for node in steps if is_live(self._state, node)]
        return max(alive, key=lambda node: steps[node]) if alive else None

    def succession(self, keys: Iterable[int]) -> list[tuple[int, int]]:
        asked = {int(key) for key in keys}
        edges = self._state.all("edges", lambda row: row["relation_type"] == "supersedes" and row["closed_at"] is None)
        reviews = self._state.all(
            "reviews", lambda row: row["decided_at"] is None and row["kind"] in ("conflict", "same")
        )
        pairs = {(row["source"], row["target"]) for row in edges} | {(row["newer"], row["older"]) for row in reviews}
        return sorted({pair for pair in pairs if asked & set(pair)} | self._replaced_sources(asked))

    def _replaced_sources(self, asked: Set[int]) -> set[tuple[int, int]]:
        """Return pairs of the newest version of a fact and a message that only an earlier one was learnt from."""
        edges = self._state.all(
            "edges", lambda row: row["relation_type"] == "derived_from" and row["closed_at"] is None
        )
        learnt = {(row["source"], row["target"]) for row in edges if row["target"] in asked}
        replaced = {row["key"] for row in self._state.all("nodes", lambda row: row["closed_reason"] == "superseded")}
        newest = {(self.successor(fact), message) for fact, message in learnt if fact in replaced}
        return {(newer, message) for newer, message in newest if newer is not None} - learnt

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

    def facts_with(
        self, owner: str, chat: str, words: Iterable[Sequence[str]], *, most: int
    ) -> dict[int, tuple[str, str | None]]:
        space = self._state.space(owner, chat)
        facts = self._live(lambda row: row["space"] == space and row["shelf"] == "k")
        found: dict[int, tuple[str, str | None]] = {}
        for terms in words:
            held = [row for row in facts if not terms_of(row).isdisjoint(terms)]
            for row in sorted(held, key=lambda row: row["key"], reverse=True)[:most]:
                found[row["key"]] = row["content"], row["speaker"]
        return found

    def _subject_keys(self, key: int) -> set[int]:
        return {row["entity"] for row in self._state.all("subjects") if row["node"] == key}

    def subjects(self, key: int) -> list[str]:
        return [self._state.tables["entities"][(each,)]["id"] for each in sorted(self._subject_keys(key))]

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

    def weights(self, scope: Scope, keys: Sequence[int]) -> dict[int, Weights]:
        return {
            key: Weights(
                node.confidence,
                node.score,
                ms_of(node.reinforced_at or node.created_at),
                None if node.expires_at is None else ms_of(node.expires_at),
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


class Evidence(Group):
    """What derived memories rest on."""

    def _sources(self, key: int, *, closed: bool) -> set[str]:
        edges = self._state.all("edges", lambda row: row["source"] == key and row["relation_type"] == "derived_from")
        return {self._id(edge["target"]) for edge in edges if closed or edge["closed_at"] is None}

    def _is_unlearnt(self, row: Row) -> bool:
        """Return whether accepting a replay closed it: it may be learnt again."""
        return row["closed_reason"] == "retracted" and self._state.commits[row["commit_seq"]]["origin"] == "accept"

    def learnt_from(
        self, owner: str, chat: str, content: str, *, evidence: Sequence[str], least: int
    ) -> LearntFact | None:
        space = self._state.space(owner, chat)
        mine = {row["id"] for row in self._state.all("nodes") if row["space"] == space} & set(evidence)
        rows = self._state.all(
            "nodes",
            lambda row: (
                _says(row, content)
                and not self._is_unlearnt(row)
                and len(self._sources(row["key"], closed=True) & mine) >= max(1, least)
            ),
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
                (row["space"], row["type"]) == (space, type_)
                and row["closed_reason"] in ("forgotten", "retracted")
                and not self._is_unlearnt(row)
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


class Lifecycle(Group):
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
        return [Scope.of(row["owner"], row["chat"]) for row in self._state.all("spaces")]

    def whose(self, node_id: str) -> Scope | None:
        for row in self._state.all("nodes", lambda row: row["id"] == node_id):
            space = self._state.tables["spaces"][(row["space"],)]
            return Scope.of(space["owner"], space["chat"]) if space["owner"] else None
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
