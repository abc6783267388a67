"""Apply a `Change`: write it as the sealed rows of one commit, all or none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ricordo.clock import to_ms
from ricordo.errors import NotFoundError
from ricordo.model import Change, Closing, Edge, Entity, NameMove, Node, Reason, Relation, Review, Run, Scope, Session
from ricordo.storage import faults
from ricordo.storage.database.connection import besides_terms, stored_terms
from ricordo.storage.database.hashes import bare, sealed
from ricordo.storage.database.history import TABLES, put_back, renewed_spans, restored_rows
from ricordo.storage.database.integrity import put_commit, settle_digest
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import (
    Row,
    Statements,
    alias_row,
    closed_edge_row,
    column,
    edge_row,
    entity_row,
    node_row,
    relation_row,
    review_row,
    run_row,
    session_row,
    shelf_of,
)
from ricordo.text.analyzer import index_terms, raw_words
from ricordo.text.passages import traits_of
from ricordo.text.statement import statement_line

# Each time, the strength of an association grows by this share of what it lacks to 1.
_ASSOCIATED = 0.3

# These statements write only new rows, each once: the digest need not be read from the database.
_PLAIN = frozenset(("session_insert", "node_insert"))


@dataclass(slots=True)
class Rows:
    """The rows of one commit, by statement."""

    hashes: list[bytes] = field(default_factory=list)
    is_plain: bool = True
    grown: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    by_statement: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in TABLES["statements"]})

    def add(self, statement: str, row: Row) -> None:
        self.by_statement[statement].append(row)
        self.hashes.append(bare(row[-1]))
        self.is_plain = self.is_plain and statement in _PLAIN

    def index(self, row: Row, *, is_live: bool) -> None:
        """Add what is derived from the row of a new node: index terms, features, and its part in the counts."""
        key, _, space, shelf, _, _, content, _, role, speaker, session, tags, _, event_time, *_ = row
        words = raw_words(content)
        terms, besides = index_terms(content, words), besides_terms(tags, speaker)
        statement = "node_index" if is_live else "node_index_closed"
        self.by_statement[statement].append((key, stored_terms(terms + besides, f"{space}{shelf}")))
        traits = traits_of(content, terms, besides, words, role=role)
        self.by_statement["node_traits"].append((key, space, session or 0, event_time, speaker, traits))
        if is_live and shelf == "k" and (line := statement_line(content)):
            self.by_statement["node_slot"].append((key, space, line))
        if is_live:
            nodes, chars = self.grown.get((space, shelf), (0, 0))
            self.grown[space, shelf] = nodes + 1, chars + len(content)


def apply(snapshot: DatabaseSnapshot, change: Change, *, scope: Scope, reason: Reason, at: datetime) -> int:
    """Write a change inside the running transaction. Return the number of its commit. Raises NotFoundError."""
    writer = _RowBuilder(snapshot, scope)
    previous, head = (snapshot.rows("commit_last") or [(0, b"")])[0]
    writer.commit = previous + 1
    writer.write(change, at)
    restored = restored_rows(snapshot, change.rows, commit=writer.commit)
    space = writer.home(each.space for each in restored if each.space is not None)
    with renewed_spans(snapshot, writer.redated), snapshot.in_one_trip():
        commit = put_commit(snapshot, head, writer.commit, space=space, reason=reason, at=at, hashes=writer.rows.hashes)
        faults.reached("apply: after commit row")
        write_rows(snapshot, writer.rows)
    if altered := [*writer.rows.by_statement["node_update"], *writer.rows.by_statement["node_index_closed"]]:
        snapshot.reindex([row[0] for row in altered])
    put_back(snapshot, restored)
    _withhold(writer, change, at)
    if restored or not writer.rows.is_plain:
        settle_digest(snapshot, head, commit)
        snapshot.members_changed()
    return writer.commit


def _withhold(writer: _RowBuilder, change: Change, at: datetime) -> None:
    """Suppress what must not be learnt again, and lift the suppression of what was stated again."""
    if change.said_anew:
        writer.snapshot.suppression.lift(change.said_anew)
    spans = [(writer.key_of(node_id), *span) for node_id, *span in change.withheld_spans]
    writer.snapshot.many("withheld_span_put", spans)
    if change.withhold:
        keys = [writer.key_of(node_id) for node_id in change.withhold]
        writer.snapshot.suppression.withhold(writer.snapshot.nodes.in_order(writer.scope, keys), at=to_ms(at))


def write_rows(snapshot: Statements, given: Rows) -> None:
    """Write rows and update the counts that depend on them, in the running transaction."""
    for statement, rows in given.by_statement.items():
        if rows:
            snapshot.many(statement, rows)
        if statement == "node_insert":
            faults.reached("apply: after nodes")
    faults.reached("apply: before counts")
    grown = [(*shelf, *amounts) for shelf, amounts in given.grown.items()]
    snapshot.many("shelf_grew", grown)


class _RowBuilder:
    """Builds the rows of one commit. It assigns keys, which is safe under the write lock."""

    def __init__(self, snapshot: DatabaseSnapshot, scope: Scope) -> None:
        self.snapshot = snapshot
        self.scope = scope
        self.rows = Rows()
        self.commit = 0
        self.redated: list[int] = []
        """The keys of altered nodes that happened at another time than they said before."""
        self._spaces: dict[tuple[str, str], int] = {}
        self._sessions: dict[tuple[int, str], int] = {}
        self._node_keys: dict[str, int] = {}
        self._entity_keys: dict[str, int] = {}
        self._next: dict[str, int] = {}

    def home(self, restored: Iterable[int]) -> int:
        """Return the space under which the commit is listed: the space of its first row (`restored` ones first), or the
        owner's own if any row is in it: others must not see or undo a change that contains something private.
        """
        touched = [*restored, *self._spaces.values()]
        own = self.snapshot.space(self.scope.owner, "") if self.scope.owner else None
        if own in touched or not touched:
            return own or self.space(self.scope.owner, "" if self.scope.owner else self.scope.chat or "")
        return touched[0]

    def space(self, owner: str, chat: str) -> int:
        """Return the key of a space, creating the space at its first use."""
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
        """Return the key of a session, creating the session with its first message."""
        if (space, session_id) not in self._sessions:
            key = self.snapshot.value("session_by_id", {"space": space, "session": session_id})
            if key is None:
                key = self._next_key("session_last_key")
                self.snapshot.raise_sequence("sessions", key)
                fresh = Session(id=session_id, first_seen_at=at)
                self.rows.add("session_insert", session_row(fresh, key=key, space=space, commit=self.commit))
            self._sessions[space, session_id] = int(key)
        return self._sessions[space, session_id]

    def add_node(self, node: Node, at: datetime) -> None:
        space = self.space(node.owner, node.chat)
        session = None if node.session is None else self.session(space, node.session, at)
        key = self._next_key("node_last_key")
        self._node_keys[node.id] = key
        shelf = shelf_of(node)
        row = node_row(node, key=key, space=space, shelf=shelf, session=session, commit=self.commit)
        self.rows.add("node_insert", row)
        self.rows.index(row, is_live=node.is_live)

    def alter_node(self, node: Node) -> None:
        *place, happened = self._located(node.id)
        if happened != to_ms(node.event_time):
            self.redated.append(place[0])
        self._update(node, *place)

    def _update(self, node: Node, key: int, space: int, shelf: str, session: int | None) -> None:
        row = node_row(node, key=key, space=space, shelf=shelf, session=session, commit=self.commit)
        self._spaces.setdefault((node.owner, node.chat), space)
        self.rows.add("node_update", row)

    def place(self, node_id: str) -> Row:
        """Return (key, space, shelf, session) of a stored node."""
        return self._located(node_id)[:4]

    def _located(self, node_id: str) -> Row:
        """Return the place of a stored node, and when it happened."""
        for place in self.snapshot.rows("node_place", {"id": node_id}):
            return place
        raise NotFoundError(f"there is no memory {node_id}")

    def close_node(self, closing: Closing) -> None:
        """Close a node. Closing it again changes nothing, since a replay may repeat it."""
        key = self.key_of(closing.id)
        node = self.snapshot.nodes.by_key(self.scope, [key]).get(key)
        if node is not None and node.is_live:
            self.alter_node(replace(node, closed_at=closing.at, closed_reason=closing.reason))

    def mark_consolidated(self, ids: Sequence[str]) -> None:
        """Move episodes that were consolidated to the shelf of consolidated ones."""
        places = [self.place(node_id) for node_id in dict.fromkeys(ids)]
        nodes = self.snapshot.nodes.by_key(self.scope, column(places))
        for key, space, _, session in places:
            self._update(nodes[key], key, space, "c", session)

    def write(self, change: Change, at: datetime) -> None:
        """Build all rows: entities first, since nodes refer to them; then nodes; then the links between them."""
        for entity in change.entities:
            self.entity(entity)
        for entity in change.put_entities:
            self.alter_entity(entity)
        for node in change.add:
            self.add_node(node, at)
        for node in change.put:
            self.alter_node(node)
        for closing in change.close:
            self.close_node(closing)
        self.mark_consolidated(change.consolidated)
        for session in change.sessions:
            space = self.space(session.owner, session.chat)
            self.rows.add("session_update", session_row(session, key=session.key, space=space, commit=self.commit))
        for move in change.moved_names:
            self.move_name(move)
        for relation in (*change.relations, *change.put_relations):
            self.relation(relation)
        for node_id, source, target in change.moved_subjects:
            self.move_subject(node_id, source, target)
        used = {(node_id, entity_id): name for node_id, entity_id, name in change.subject_names}
        for node_id, entity_id in change.subjects:
            self.subject(node_id, entity_id, name=used.get((node_id, entity_id), ""))
        for edge in change.link:
            ends = {"source": self.key_of(edge.source), "target": self.key_of(edge.target)}
            self.rows.add("edge_put", edge_row(edge, **ends, at=to_ms(at), commit=self.commit))
        for edge in change.unlink:
            self.close_edge(edge, at)
        for review in change.reviews:
            self.review(review)
        for one, other in change.associates:  # proved useful together; derived rows, so without a seal
            pair = self.key_of(one), self.key_of(other)
            self.rows.by_statement["associate_put"] += [(*pair, _ASSOCIATED), (*pair[::-1], _ASSOCIATED)]
        for run in change.runs:
            self.run(run)
        for member in change.members:
            space = self.space("", member.space)
            row = (space, member.owner, member.role, to_ms(member.changed_at), self.commit)
            self.rows.add("member_put", sealed(row))

    def run(self, run: Run) -> None:
        """Write a run. Its items are stored as keys, so that no id of an erased memory stays here."""
        space = self.space(run.owner, run.chat)
        key = self.snapshot.value("run_place", {"id": run.id}) or self._next_key("run_last_key")
        named = {each for item in run.items for each in (item.id, item.other, *item.evidence) if each is not None}
        keys = {each: self.key_of(each) for each in named}
        sessions = [self.session(space, each, run.started_at) for each in run.sessions]
        row = run_row(run, key=key, space=space, commit=self.commit, keys=keys, sessions=sessions)
        self.rows.add("run_put", row)

    def entity(self, entity: Entity) -> None:
        space = self.space(entity.owner, entity.chat)
        key = self._next_key("entity_last_key")
        self._entity_keys[entity.id] = key
        self.rows.add("entity_insert", entity_row(entity, key=key, space=space, merged_into=None, commit=self.commit))
        for alias in dict.fromkeys((entity.name, *entity.aliases)):
            self.rows.add("alias_insert", alias_row(alias, entity=key, space=space, commit=self.commit))

    def alter_entity(self, entity: Entity) -> None:
        """Write an altered entity. New names are added; none are removed (see `move_name`)."""
        space, key = self.space(entity.owner, entity.chat), self.entity_key(entity.id)
        into = None if entity.merged_into is None else self.entity_key(entity.merged_into)
        self.rows.add("entity_update", entity_row(entity, key=key, space=space, merged_into=into, commit=self.commit))
        known = {row[0] for row in self.snapshot.rows("aliases_of_entity", {"entity": key})}
        for alias in dict.fromkeys((entity.name, *entity.aliases)):
            if alias not in known and into is None:
                self.rows.add("alias_insert", alias_row(alias, entity=key, space=space, commit=self.commit))

    def move_name(self, move: NameMove) -> None:
        source, target = self.entity_key(move.source), self.entity_key(move.target)
        (space,) = self.snapshot.rows("alias_space", {"entity": source, "alias": move.alias})[0]
        gone = alias_row(move.alias, entity=source, space=space, commit=self.commit)
        self.rows.by_statement["alias_delete"].append(gone[:4])
        self.rows.add("alias_insert", alias_row(move.alias, entity=target, space=space, commit=self.commit))

    def relation(self, relation: Relation) -> None:
        space = self.space(relation.owner, relation.chat)
        source = None if relation.source is None else self.entity_key(relation.source)
        target = self.entity_key(relation.target)
        key = relation.key or self._next_key("relation_last_key")
        ends = {"source": source, "target": target}
        row = relation_row(relation, key=key, space=space, **ends, closed_at=None, commit=self.commit)
        self.rows.add("relation_update" if relation.key else "relation_insert", row)

    def entity_key(self, entity_id: str) -> int:
        """Return the key of an entity that is stored or in this change."""
        if entity_id not in self._entity_keys:
            key = self.snapshot.value("entity_place", {"id": entity_id})
            if key is None:
                raise NotFoundError(f"there is no entity {entity_id}")
            self._entity_keys[entity_id] = int(key)
        return self._entity_keys[entity_id]

    def subject(self, node_id: str, entity_id: str, *, name: str) -> None:
        self.rows.add("subject_insert", sealed((self.key_of(node_id), self.entity_key(entity_id), name, self.commit)))

    def move_subject(self, node_id: str, source: str, target: str) -> None:
        """Move a memory to another entity, with the name it used."""
        node, was = self.key_of(node_id), self.entity_key(source)
        name = self.snapshot.value("subject_name", {"node": node, "entity": was}) or ""
        self.rows.by_statement["subject_delete"].append((node, was))
        self.subject(node_id, target, name=name)

    def close_edge(self, edge: Edge, at: datetime) -> None:
        """Close an edge. If it is missing or closed already, nothing changes."""
        ends = {"source": self.key_of(edge.source), "type": edge.type, "target": self.key_of(edge.target)}
        for row in self.snapshot.rows("edge_of", ends):
            self.rows.add("edge_close", closed_edge_row(row, at=to_ms(at), commit=self.commit))

    def review(self, review: Review) -> None:
        space = self.space(review.owner, review.chat)
        key = self.snapshot.value("review_place", {"id": review.id}) or self._next_key("review_last_key")
        newer = self.key_of(review.newer.id)
        older = None if review.older is None else self.key_of(review.older.id)
        row = review_row(review, key=key, space=space, newer=newer, older=older, commit=self.commit)
        self.rows.add("review_put", row)

    def key_of(self, node_id: str) -> int:
        """Return the key of a node that is stored or in this change."""
        if node_id not in self._node_keys:
            self._node_keys[node_id] = self.place(node_id)[0]
        return self._node_keys[node_id]
