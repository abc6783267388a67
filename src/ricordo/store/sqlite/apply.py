"""A `Change` becomes rows: all of them sealed, under one commit, or none."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from ricordo.clock import to_ms
from ricordo.errors import NotFoundError
from ricordo.model import Change, Closing, Entity, Node, Reason, Scope, Session
from ricordo.store.sqlite import faults
from ricordo.store.sqlite.connection import stored_terms
from ricordo.store.sqlite.queries import sql
from ricordo.store.sqlite.restoring import put_back, restored_rows
from ricordo.store.sqlite.rows import (
    Row,
    chain,
    digest,
    edge_row,
    entity_row,
    node_row,
    sealed,
    session_row,
    shelf_of,
)
from ricordo.store.sqlite.snapshot import Snapshot
from ricordo.words import name_key


@dataclass(slots=True)
class _Rows:
    """What one commit writes, by statement, in the order the references between tables ask for."""

    seals: list[bytes] = field(default_factory=list)
    grown: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    by_statement: dict[str, list[Row]] = field(
        default_factory=lambda: {
            "session_insert": [], "entity_insert": [], "alias_insert": [], "node_insert": [], "node_index": [],
            "node_index_closed": [], "node_update": [], "session_update": [],
            "subject_insert": [], "edge_put": [],
        }
    )  # fmt: skip

    def add(self, statement: str, row: Row) -> None:
        self.by_statement[statement].append(row)
        self.seals.append(row[-1])

    def index(self, node: Node, *, key: int, space: int, shelf: str, tags: str) -> None:
        """What the row of a new node brings along: its terms, and its part in the counts."""
        terms = stored_terms(node.content, tags, node.speaker, f"{space}{shelf}")
        self.by_statement["node_index" if node.is_live else "node_index_closed"].append((key, terms))
        if node.is_live:
            nodes, chars = self.grown.get((space, shelf), (0, 0))
            self.grown[space, shelf] = nodes + 1, chars + len(node.content)


def apply(snapshot: Snapshot, change: Change, *, scope: Scope, reason: Reason, at: datetime) -> int:
    """Write a change inside the running transaction; return its commit's number.

    Raises:
        NotFoundError: the change names a node that is not there.
    """
    writer = _Writer(snapshot, scope)
    previous, head = (snapshot.rows("commit_last") or [(0, b"")])[0]
    writer.commit = previous + 1
    for entity in change.entities:
        writer.entity(entity)
    for node in change.add:
        writer.new_node(node, at)
    for node in change.put:
        writer.altered_node(node)
    for closing in change.close:
        writer.closed_node(closing)
    for session in change.sessions:
        space = writer.space(session.owner, session.chat)
        writer.rows.add("session_update", session_row(session, key=session.key, space=space, commit=writer.commit))
    for node_id, entity_id in change.subjects:
        writer.subject(node_id, entity_id)
    for edge in change.link:
        source, target = writer.key_of(edge.source), writer.key_of(edge.target)
        writer.rows.add("edge_put", edge_row(edge, source=source, target=target, at=to_ms(at), commit=writer.commit))
    restored = restored_rows(snapshot, change.rows, commit=writer.commit)
    writer.rows.seals += [each.seal for each in restored if each.seal is not None]
    space = next((each.space for each in restored if each.space is not None), None) or writer.home()
    values = (
        writer.commit,
        space,
        to_ms(at),
        reason.actor,
        reason.origin,
        reason.reason,
        reason.run_id,
        digest(writer.rows.seals),
    )
    snapshot.connection.execute(sql("commit_insert"), (*values, chain(head, values)))
    faults.reached("apply: after commit row")
    for statement, rows in writer.rows.by_statement.items():
        if rows:
            snapshot.connection.executemany(sql(statement), rows)
        if statement == "node_insert":
            faults.reached("apply: after nodes")
    faults.reached("apply: before counts")
    grown = [(*shelf, *amounts) for shelf, amounts in writer.rows.grown.items()]
    snapshot.connection.executemany(sql("shelf_grew"), grown)
    put_back(snapshot, restored)
    return writer.commit


class _Writer:
    """Builds the rows of one commit. Keys are handed out here: the write lock is held, nobody else can."""

    def __init__(self, snapshot: Snapshot, scope: Scope) -> None:
        self.snapshot = snapshot
        self.scope = scope
        self.rows = _Rows()
        self.commit = 0
        self._spaces: dict[tuple[str, str], int] = {}
        self._sessions: dict[tuple[int, str], int] = {}
        self._node_keys: dict[str, int] = {}
        self._entity_keys: dict[str, int] = {}
        self._next: dict[str, int] = {}

    def home(self) -> int:
        """The space the commit is listed under: that of its first row, else the caller's own."""
        return next(iter(self._spaces.values()), None) or self.space(self.scope.owner, "")

    def space(self, owner: str, chat: str) -> int:
        """The key of a space, made at its first use."""
        if (owner, chat) not in self._spaces:
            key = self.snapshot.space(owner, chat)
            if key is None:
                key = self.snapshot.value("space_insert", {"owner": owner, "chat": chat})
            self._spaces[owner, chat] = int(key)
        return self._spaces[owner, chat]

    def _next_key(self, statement: str) -> int:
        last = self._next.get(statement)
        self._next[statement] = key = (self.snapshot.value(statement) if last is None else last) + 1
        return int(key)

    def session(self, space: int, session_id: str, at: datetime) -> int:
        """The key of a session, made when its first message arrives."""
        if (space, session_id) not in self._sessions:
            key = self.snapshot.value("session_by_id", {"space": space, "session": session_id})
            if key is None:
                key = self._next_key("session_last_key")
                fresh = Session(id=session_id, first_seen_at=at)
                self.rows.add("session_insert", session_row(fresh, key=key, space=space, commit=self.commit))
            self._sessions[space, session_id] = int(key)
        return self._sessions[space, session_id]

    def new_node(self, node: Node, at: datetime) -> None:
        space = self.space(node.owner, node.chat)
        session = None if node.session is None else self.session(space, node.session, at)
        key = self._next_key("node_last_key")
        self._node_keys[node.id] = key
        shelf = shelf_of(node)
        row = node_row(node, key=key, space=space, shelf=shelf, session=session, commit=self.commit)
        self.rows.add("node_insert", row)
        self.rows.index(node, key=key, space=space, shelf=shelf, tags=row[11])

    def altered_node(self, node: Node) -> None:
        places = self.snapshot.rows("node_place", {"id": node.id})
        if not places:
            raise NotFoundError(f"there is no memory {node.id}")
        key, space, shelf, session = places[0]
        row = node_row(node, key=key, space=space, shelf=shelf, session=session, commit=self.commit)
        self._spaces.setdefault((node.owner, node.chat), space)
        self.rows.add("node_update", row)

    def closed_node(self, closing: Closing) -> None:
        """Closing twice is no change: a replay may repeat it."""
        key = self.key_of(closing.id)
        node = self.snapshot.nodes(self.scope, [key]).get(key)
        if node is not None and node.is_live:
            self.altered_node(replace(node, closed_at=closing.at, closed_reason=closing.reason))

    def entity(self, entity: Entity) -> None:
        space = self.space(entity.owner, entity.chat)
        key = self._next_key("entity_last_key")
        self._entity_keys[entity.id] = key
        self.rows.add("entity_insert", entity_row(entity, key=key, space=space, commit=self.commit))
        for alias in dict.fromkeys((entity.name, *entity.aliases)):
            self.rows.add("alias_insert", sealed((space, name_key(alias), key, alias, self.commit)))

    def subject(self, node_id: str, entity_id: str) -> None:
        entity = self._entity_keys.get(entity_id) or self.snapshot.value("entity_place", {"id": entity_id})
        if entity is None:
            raise NotFoundError(f"there is no entity {entity_id}")
        self.rows.add("subject_insert", sealed((self.key_of(node_id), entity, self.commit)))

    def key_of(self, node_id: str) -> int:
        """The key of a node of this change or of the store."""
        if node_id not in self._node_keys:
            places = self.snapshot.rows("node_place", {"id": node_id})
            if not places:
                raise NotFoundError(f"there is no memory {node_id}")
            self._node_keys[node_id] = places[0][0]
        return self._node_keys[node_id]
