"""What an erasure finds in the history alone, among what was undone."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from ricordo.clock import from_ms
from ricordo.model import Json, Node
from ricordo.storage.values import ErasureTargets, Undone, UndoneRow, holds

_STATED = ("remember", "correct")
_INTRODUCED = ("add entity", "relate", "split")
# Origins of commits: what the user stated does not depend on what it was derived from.

Copy = tuple[str, int | None]
"""The text of a memory, and when it was said (Unix milliseconds, UTC); no time for knowledge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to look for in the history.

    Attributes:
        is_meant: recognises a memory that is asked for.
        ids: ids of memories that are erased.
        copies: what memories that are erased say: stored again after an undo, they can have other ids.
        sessions: ids of sessions.
        names: recognises an erased name in a text; None if no entity is asked for.
        entities: recognises an entity that is asked for.
        with_versions: also erase what replaced these memories, or was replaced by them.
    """

    is_meant: Callable[[UndoneRow], bool] = lambda row: False
    ids: frozenset[str] = frozenset()
    copies: frozenset[Copy] = frozenset()
    sessions: frozenset[str] = frozenset()
    names: Callable[[str], bool] | None = None
    entities: Callable[[UndoneRow], bool] = lambda row: False
    with_versions: bool = False


def having(where: Json) -> Callable[[UndoneRow], bool]:
    """Return a function that recognises memories with attributes."""
    return lambda row: any(holds(json.loads(each), where) for each in row.values("attributes"))


def with_undone(targets: ErasureTargets, undone: Undone, wanted: Wanted) -> ErasureTargets:
    """Add the rows that exist only in the history and belong to an erasure. Pure."""
    return _Search(targets, undone, wanted).found()


def listed(targets: ErasureTargets, undone: Undone) -> Iterator[tuple[str, str]]:
    """Yield (kind, id) of each row among the targets that exists only in the history, as a report shows them."""
    named = {"nodes": ("", "id"), "entities": ("entity", "id"), "relations": ("relation", "id")}
    for table, (kind, column) in {**named, "sessions": ("session", "session_id")}.items():
        going = frozenset(getattr(targets, table))
        for row in undone[table]:
            if targets.whole_space or row.key in going:
                last = row.versions[-1]
                yield kind or last["type"], last[column]


def former(undone: Undone, keys: frozenset[int], *, session: Callable[[int], str | None]) -> Iterator[tuple[int, Node]]:
    """Yield (space, memory) of each version of memories that exist only in the history, with their texts and times.

    Args:
        keys: those of the memories.
        session: returns the id of a session by its key.
    """
    ids = {key: key and session(key) for row in undone["nodes"] if row.key in keys for key in row.values("session")}
    for row in undone["nodes"]:
        for each in row.versions if row.key in keys else ():
            yield (
                row.space,
                Node(
                    key=row.key,
                    id=each["id"],
                    type=each["type"],
                    content=each["content"],
                    session=ids[each["session"]],
                    event_time=from_ms(each["event_time"]),
                    valid_from=from_ms(each["valid_from"]),
                    created_at=from_ms(each["created_at"]),
                ),
            )


def undone_sessions(undone: Undone, name: str) -> frozenset[str]:
    """Return the ids of sessions that exist only in the history and have an id or a title."""
    titled = {
        key
        for row in undone["nodes"]
        if any(json.loads(each).get("title") == name for each in row.values("attributes"))
        for key in row.values("session")
    }
    ids = (
        row.values("session_id") for row in undone["sessions"] if name in row.values("session_id") or row.key in titled
    )
    return frozenset().union(*ids)


def summed_up_with(targets: ErasureTargets, undone: Undone) -> frozenset[tuple[str, int]]:
    """Return (table, key) of other sessions and entities whose summary may rest on erased memories that were undone."""
    going = [row for row in undone["nodes"] if row.key in set(targets.nodes)]
    found = {("sessions", key) for row in going for key in row.values("session") if key not in targets.sessions}
    return frozenset(found | {("entities", key) for row in going for key in _linked(row, "about")})


@dataclass(slots=True)
class _Search:
    targets: ErasureTargets
    undone: Undone
    wanted: Wanted
    _nodes: set[int] = field(default_factory=set)
    _copies: set[Copy] = field(default_factory=set)

    def found(self) -> ErasureTargets:
        entities = {row.key for row in self.undone["entities"] if self.wanted.entities(row)}
        self._copies = set(self.wanted.copies)
        self._add(lambda row: row.key in self.targets.nodes)
        self._nodes |= set(self.targets.nodes)
        sessions = set(self.targets.sessions)
        sessions |= {row.key for row in self.undone["sessions"] if row.values("session_id") & self.wanted.sessions}
        about = entities.union(self.targets.entities) if self.wanted.names else set()
        self._add(lambda row: self._is_asked_for(row, sessions, about))
        while self._add(self._follows):
            pass
        relations = {row.key for row in self.undone["relations"] if self._loses_its_ground(row, entities)}
        entities |= set(self._forsaken(relations))
        sessions |= set(self._emptied())
        return replace(
            self.targets,
            nodes=tuple(dict.fromkeys((*self.targets.nodes, *sorted(self._nodes)))),
            sessions=tuple(dict.fromkeys((*self.targets.sessions, *sorted(sessions)))),
            entities=tuple(dict.fromkeys((*self.targets.entities, *sorted(entities)))),
            relations=tuple(dict.fromkeys((*self.targets.relations, *sorted(relations)))),
        )

    def _add(self, belongs: Callable[[UndoneRow], bool]) -> bool:
        """Add memories; return whether there were any."""
        fresh = {row.key for row in self.undone["nodes"] if row.key not in self._nodes and belongs(row)}
        self._nodes |= fresh
        self._copies |= {each for row in self.undone["nodes"] if row.key in fresh for each in _copies(row)}
        return bool(fresh)

    def _is_asked_for(self, row: UndoneRow, sessions: Collection[int], about: Collection[int]) -> bool:
        wanted = self.wanted
        if wanted.is_meant(row) or row.values("id") & wanted.ids:
            return True
        if not row.values("session").isdisjoint(sessions) or not _linked(row, "about").isdisjoint(about):
            return True
        return wanted.names is not None and wanted.names(row.text)

    def _follows(self, row: UndoneRow) -> bool:
        """Return whether a memory says the same as an erased one, rests on such alone, or is another version of one."""
        if not _copies(row).isdisjoint(self._copies):
            return True
        sources = _linked(row, "derived_from")
        rests = sources <= self._nodes or (
            row.values("category") == {"summary"} and row.values("session") != {None} and bool(sources & self._nodes)
        )
        if sources and rests and row.origin not in _STATED:
            return True
        if not self.wanted.with_versions:
            return False
        return bool(_linked(row, "supersedes") & self._nodes) or any(
            row.key in _linked(other, "supersedes") for other in self.undone["nodes"] if other.key in self._nodes
        )

    def _loses_its_ground(self, row: UndoneRow, entities: Collection[int]) -> bool:
        ids = self.wanted.ids.union(*(each.values("id") for each in self.undone["nodes"] if each.key in self._nodes))
        evidence = frozenset(id for each in row.values("evidence") for id in json.loads(each))
        ends = row.values("source") | row.values("target")
        return (bool(evidence) and evidence <= ids) or not ends.isdisjoint({*entities, *self.targets.entities})

    def _forsaken(self, relations: Collection[int]) -> Iterator[int]:
        """Yield the entities that only erased memories and relations refer to and that were not added explicitly."""
        texts = {row.key: row.text.casefold() for row in self.undone["nodes"]}
        tied = {True: set[int](), False: set[int]()}
        for row in self.undone["relations"]:
            tied[row.key in relations] |= row.values("source") | row.values("target")
        for entity in self.undone["entities"]:
            if any(entity.values("protected")) or entity.origin in _INTRODUCED or entity.key in tied[False]:
                continue
            names = [name.casefold() for name in entity.names]
            mentioning = {
                row.key
                for row in self.undone["nodes"]
                if entity.key in _linked(row, "about") or any(name in texts[row.key] for name in names)
            }
            if (mentioning or entity.key in tied[True]) and mentioning <= self._nodes:
                yield entity.key

    def _emptied(self) -> Iterator[int]:
        """Yield the sessions of erased memories that hold no others."""
        left = {key for row in self.undone["nodes"] if row.key not in self._nodes for key in row.values("session")}
        held = {key for row in self.undone["nodes"] if row.key in self._nodes for key in row.values("session")}
        yield from (row.key for row in self.undone["sessions"] if row.key in held - left)


def _linked(row: UndoneRow, kind: str) -> frozenset[int]:
    return row.linked.get(kind, frozenset())


def _copies(row: UndoneRow) -> frozenset[Copy]:
    return frozenset(
        (each["content"], each["event_time"] if each["type"] == "episodic" else None) for each in row.versions
    )
