"""A change becomes rows of one commit, and what follows from rows that change is noted with them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from hashlib import blake2b
from typing import Any

from ricordo.clock import from_ms, to_ms
from ricordo.errors import NotFoundError
from ricordo.model import Change, Edge, Entity, Member, Node, Reason, Relation, Review, RowState, Run, Scope
from ricordo.text.analyzer import index_terms, name_key
from ricordo.text.names import same_name_key
from tests.contract.reference.suppression import Suppression
from tests.contract.reference.tables import TRUTH, Key, Row, State, drop_derived, key_of
from tests.contract.reference.terms import terms_of

ASSOCIATED = 0.3
"""How much of the way to 1 a tie between memories covers each time they prove useful together."""


def apply(state: State, change: Change, *, scope: Scope, reason: Reason, at: datetime) -> int:
    """Write a change to a state as its next commit; return the commit's number.

    Raises:
        NotFoundError: the change names a memory or an entity that is not there.
    """
    writer = _Writer(state, scope, at)
    for entity in change.entities:
        writer.add_entity(entity)
    for entity in change.put_entities:
        writer.put_entity(entity)
    for node in change.add:
        writer.add_node(node)
    for node in change.put:
        writer.put_node(node)
    for closing in change.close:
        writer.close_node(closing.id, at=closing.at, reason=closing.reason)
    for node_id in change.consolidated:
        row = writer.node(node_id)
        writer.use(row["space"])
        writer.write("nodes", {**row, "shelf": "c"})
    for session in change.sessions:
        writer.put_session(session)
    for move in change.moved_names:
        writer.move_name(move.alias, move.source, move.target)
    for relation in (*change.relations, *change.put_relations):
        writer.put_relation(relation)
    for node_id, source, target in change.moved_subjects:
        writer.move_subject(node_id, source, target)
    used = {(node_id, entity_id): name for node_id, entity_id, name in change.subject_names}
    for node_id, entity_id in change.subjects:
        writer.add_subject(node_id, entity_id, name=used.get((node_id, entity_id), ""))
    for edge in change.link:
        writer.put_edge(edge)
    for edge in change.unlink:
        writer.close_edge(edge)
    for review in change.reviews:
        writer.put_review(review)
    for one, other in change.associates:
        writer.associate(one, other)
        writer.associate(other, one)
    for run in change.runs:
        writer.put_run(run)
    for member in change.members:
        row = {"space": writer.space("", member.space), "member": member.owner, "role": member.role}
        writer.write("members", {**row, "changed_at": to_ms(member.changed_at)})
    put_back(writer, change.rows)
    _suppress(writer, change)
    return writer.commit(reason)


def _suppress(writer: _Writer, change: Change) -> None:
    suppression = Suppression(writer.state)
    if change.said_anew:
        suppression.lift(change.said_anew)
    spans = [(writer.node(node_id)["key"], start, length, by) for node_id, start, length, by in change.withheld_spans]
    suppression.put_spans(spans)
    for node_id in change.withhold:
        suppression.withhold_row(writer.node(node_id), at=to_ms(writer.at))


def put_back(writer: _Writer, states: Iterable[RowState]) -> None:
    """Make rows what they were. What goes is removed before what it refers to; what comes back comes after it."""
    state, order = writer.state, list(TRUTH)
    given = [(each.row.table, each.row.key, each.values) for each in states]
    known = [each for each in given if each[2] is not None or state.get(each[0], *each[1]) is not None]
    known.sort(key=lambda each: order.index(each[0]))
    for table, key, values in known:
        image = state.get(table, *key) or values or {}
        if image.get("space") is not None:
            writer.use_first(image["space"])
    for table, key, values in reversed(known):
        if values is None:
            remove(state, table, key)
    back = []
    for table, key, values in known:
        if values is not None:
            back += [values] if table == "nodes" and state.get(table, *key) is None else []
            writer.write(table, dict(values))
    for image in back:
        note_to_link(state, image["key"])
        if image["closed_at"] is None:
            set_lifted(state, image["key"], is_lifted=True)


def remove(state: State, table: str, key: Key) -> None:
    """Delete a row with what was derived from it."""
    drop_derived(state, table, key)
    row = state.tables[table].pop(key)
    if table == "aliases":
        note_names_changed(state, row["entity"])
        note_name_gone(state, row)
    if table == "relations" and row["source"] is None:
        note_relation(state, row)


def write(state: State, table: str, row: Row) -> None:
    """Put a row of the truth, and note what follows from how it differs from the one it replaces."""
    old = state.get(table, *key_of(table, row))
    state.put(table, row)
    if table == "nodes" and old is not None:
        _note_node(state, old, row)
    if table == "relations":
        noted = {(each["space"], each["predicate"]) for each in (old, row) if each is not None}
        if row["source"] is None or (old is not None and old["source"] is None):
            for space, predicate in sorted(noted):
                note_relation(state, {"space": space, "predicate": predicate})
    ends = ("closed_at", "merged_into")
    if table == "entities" and old is not None and any(old[name] != row[name] for name in ends):
        for each in state.all("relations", lambda r: r["target"] == row["key"] and r["source"] is None):
            note_relation(state, each)


def _note_node(state: State, old: Row, new: Row) -> None:
    if old["content"] != new["content"] or old["speaker"] != new["speaker"]:
        note_to_link(state, new["key"])
    if old["content"] != new["content"]:
        state.drop("vectors", lambda row: row["node"] == new["key"])
    was_forgotten, is_forgotten = (row["closed_reason"] == "forgotten" for row in (old, new))
    if (old["closed_at"] is not None and new["closed_at"] is None) or (was_forgotten and not is_forgotten):
        set_lifted(state, new["key"], is_lifted=True)
    if is_forgotten and not was_forgotten:
        set_lifted(state, new["key"], is_lifted=False)


def set_lifted(state: State, node: int, *, is_lifted: bool) -> None:
    """What is suppressed for a memory is so as long as the memory is forgotten."""
    for row in state.all("withheld", lambda row: row["node"] == node):
        state.put("withheld", {**row, "is_lifted": is_lifted})


def note_to_link(state: State, node: int) -> None:
    """Names are to be looked for in a memory again."""
    state.put("to_link", {"key": state.next_key("to_link"), "node": node})


def note_names_changed(state: State, entity: int) -> None:
    """Names are to be looked for again wherever an entity was found, because it lost a name."""
    for found in state.all("found_mentions", lambda row: row["entity"] == entity):
        note_to_link(state, found["node"])


def note_name_gone(state: State, alias: Row) -> None:
    """The texts with a name that somebody no longer bears may now mean another."""
    terms = set(index_terms(alias["alias"]))
    for node in state.all("nodes", lambda row: row["space"] == alias["space"] and terms <= terms_of(row)):
        note_to_link(state, node["key"])


def note_relation(state: State, relation: Row) -> None:
    """What speaks of "my wife" is to be searched again."""
    key = state.next_key("relations_to_link")
    noted = {"key": key, "space": relation["space"], "predicate": relation["predicate"]}
    state.put("relations_to_link", noted)


def visible(state: State, scope: Scope) -> list[int]:
    """Return the spaces that a caller sees: their own, that of the chat, and the shared ones they are a member of."""
    own = [state.space(scope.owner, "")] if scope.owner else []
    chat = state.space("", scope.chat) if scope.chat else None
    rows = state.all("members", lambda row: row["member"] == scope.who and row["role"] != "none")
    joined = {row["space"]: state.tables["spaces"][(row["space"],)]["chat"] for row in rows if scope.who}
    is_shared = bool(state.all("members", lambda row: row["space"] == chat))
    if is_shared and chat not in joined and not scope.is_chat_itself:
        chat = None
    others = [key for key, name in joined.items() if scope.spaces is None or name in scope.spaces]
    return [key for key in dict.fromkeys((*own, chat, *others)) if key is not None]


class Members:
    """Who is in which shared space."""

    def __init__(self, state: State) -> None:
        self._state = state

    def joined(self, owner: str) -> dict[str, Any]:
        rows = self._state.all("members", lambda row: row["member"] == owner and row["role"] != "none")
        return {self.place(row["space"]): row["role"] for row in rows}

    def of(self, space: str) -> list[Member]:
        key = self._state.space("", space)
        rows = self._state.all("members", lambda row: row["space"] == key)
        return [
            Member(space=space, owner=row["member"], role=row["role"], changed_at=from_ms(row["changed_at"]))
            for row in rows
        ]

    def place(self, space: int) -> str:
        return str(self._state.tables["spaces"][(space,)]["chat"])


def put_commit(state: State, *, space: int, reason: Reason, at_ms: int) -> int:
    """Append a commit, with the truth as it is now; return its number."""
    seq = len(state.commits) + 1
    head = state.commits[seq - 1]["hash"] if seq > 1 else ""
    row = {"seq": seq, "space": space, "at": at_ms, "actor": reason.actor, "origin": reason.origin}
    row |= {"reason": reason.reason, "run_id": reason.run_id}
    row["hash"] = blake2b(repr((head, row)).encode(), digest_size=16).hexdigest()
    state.commits[seq] = row
    state.past.append(state.truth())
    return seq


class _Writer:
    """Writes the rows of one commit."""

    def __init__(self, state: State, scope: Scope, at: datetime) -> None:
        self.state = state
        self.scope = scope
        self.at = at
        self.seq = len(state.commits) + 1
        self._spaces: list[int] = []
        self._restored: list[int] = []

    def use(self, space: int) -> int:
        self._spaces.append(space)
        return space

    def use_first(self, space: int) -> None:
        self._restored.append(space)

    def space(self, owner: str, chat: str) -> int:
        return self.use(self.state.make_space(owner, chat))

    def write(self, table: str, row: Row) -> None:
        write(self.state, table, {**row, "commit_seq": self.seq})

    def commit(self, reason: Reason) -> int:
        """The commit belongs to the space of its first row, but to the owner's own if any row lies there."""
        touched = [*self._restored, *self._spaces]
        own = self.state.space(self.scope.owner, "") if self.scope.owner else None
        if not touched or own in touched:
            home = own or self.state.make_space(self.scope.owner, "" if self.scope.owner else self.scope.chat or "")
        else:
            home = touched[0]
        return put_commit(self.state, space=home, reason=reason, at_ms=to_ms(self.at))

    def node(self, node_id: str) -> Row:
        found = self.state.all("nodes", lambda row: row["id"] == node_id)
        if not found:
            raise NotFoundError(f"there is no memory {node_id}")
        return found[0]

    def entity_key(self, entity_id: str) -> int:
        found = self.state.all("entities", lambda row: row["id"] == entity_id)
        if not found:
            raise NotFoundError(f"there is no entity {entity_id}")
        return int(found[0]["key"])

    def session(self, space: int, session_id: str, at: datetime) -> int:
        known = self.state.all("sessions", lambda row: (row["space"], row["session_id"]) == (space, session_id))
        if known:
            return int(known[0]["key"])
        key = self.state.next_key("sessions")
        row = {"key": key, "space": space, "session_id": session_id, "first_seen_at": to_ms(at)}
        self.write("sessions", {**row, "ended_at": None, "consolidated_at": None, "summary": None})
        return key

    def add_node(self, node: Node) -> None:
        space = self.space(node.owner, node.chat)
        session = None if node.session is None else self.session(space, node.session, self.at)
        place = {"key": self.state.next_key("nodes"), "space": space, "session": session}
        self.write("nodes", place | {"shelf": "e" if node.type == "episodic" else "k"} | _node_values(node))

    def put_node(self, node: Node) -> None:
        row = self.node(node.id)
        self.use(row["space"])
        self.write("nodes", {**row, **_node_values(node)})

    def close_node(self, node_id: str, *, at: datetime, reason: str) -> None:
        row = self.node(node_id)
        if row["closed_at"] is None and row["space"] in visible(self.state, self.scope):
            self.use(row["space"])
            self.write("nodes", {**row, "closed_at": to_ms(at), "closed_reason": reason})

    def put_session(self, session: Any) -> None:
        space = self.space(session.owner, session.chat)
        row = {"key": session.key, "space": space, "session_id": session.id, "summary": session.summary}
        row |= {"first_seen_at": to_ms(session.first_seen_at), "ended_at": _ms(session.ended_at)}
        self.write("sessions", {**row, "consolidated_at": _ms(session.consolidated_at)})

    def add_entity(self, entity: Entity) -> None:
        space = self.space(entity.owner, entity.chat)
        key = self.state.next_key("entities")
        self.write("entities", {"key": key, "space": space, **_entity_values(entity), "merged_into": None})
        for alias in dict.fromkeys((entity.name, *entity.aliases)):
            self.add_alias(alias, entity=key, space=space)

    def put_entity(self, entity: Entity) -> None:
        """New names are added; none are taken away."""
        space, key = self.space(entity.owner, entity.chat), self.entity_key(entity.id)
        into = None if entity.merged_into is None else self.entity_key(entity.merged_into)
        self.write("entities", {"key": key, "space": space, **_entity_values(entity), "merged_into": into})
        known = {row["alias"] for row in self.state.all("aliases", lambda row: row["entity"] == key)}
        for alias in dict.fromkeys((entity.name, *entity.aliases)):
            if alias not in known and into is None:
                self.add_alias(alias, entity=key, space=space)

    def add_alias(self, alias: str, *, entity: int, space: int) -> None:
        row = {"space": space, "folded": name_key(alias), "entity": entity, "alias": alias}
        if self.state.get("aliases", *row.values()) is None:
            self.write("aliases", {**row, "sound": same_name_key(alias)})

    def move_name(self, alias: str, source: str, target: str) -> None:
        held = self.entity_key(source)
        (row,) = self.state.all("aliases", lambda row: row["entity"] == held and row["alias"] == alias)
        remove(self.state, "aliases", key_of("aliases", row))
        self.add_alias(alias, entity=self.entity_key(target), space=row["space"])

    def put_relation(self, relation: Relation) -> None:
        space = self.space(relation.owner, relation.chat)
        source = None if relation.source is None else self.entity_key(relation.source)
        row = {"key": relation.key or self.state.next_key("relations"), "id": relation.id, "space": space}
        row |= {"source": source, "predicate": relation.predicate, "target": self.entity_key(relation.target)}
        row |= {"valid_from": _ms(relation.valid_from), "valid_until": _ms(relation.valid_until), "closed_at": None}
        self.write("relations", {**row, "evidence": relation.evidence, "created_at": to_ms(relation.created_at)})

    def add_subject(self, node_id: str, entity_id: str, *, name: str) -> None:
        row = {"node": self.node(node_id)["key"], "entity": self.entity_key(entity_id)}
        if self.state.get("subjects", *row.values()) is None:
            self.write("subjects", {**row, "name": name})

    def move_subject(self, node_id: str, source: str, target: str) -> None:
        key = self.node(node_id)["key"], self.entity_key(source)
        name = self.state.tables["subjects"][key]["name"] if key in self.state.tables["subjects"] else ""
        if key in self.state.tables["subjects"]:
            remove(self.state, "subjects", key)
        self.add_subject(node_id, target, name=name)

    def put_edge(self, edge: Edge) -> None:
        row = {"source": self.node(edge.source)["key"], "relation_type": edge.type}
        row |= {"target": self.node(edge.target)["key"], "predicate": edge.predicate, "weight": float(edge.weight)}
        row |= {"confidence": float(edge.confidence), "valid_from": to_ms(self.at), "valid_until": None}
        self.write("edges", {**row, "evidence": edge.evidence, "created_at": to_ms(self.at), "closed_at": None})

    def close_edge(self, edge: Edge) -> None:
        row = self.state.get("edges", self.node(edge.source)["key"], edge.type, self.node(edge.target)["key"])
        if row is not None and row["closed_at"] is None:
            self.write("edges", {**row, "closed_at": to_ms(self.at)})

    def put_review(self, review: Review) -> None:
        space = self.space(review.owner, review.chat)
        decided = {"decided_at": _ms(review.decided_at), "decision": review.decision}
        for row in self.state.all("reviews", lambda row: row["id"] == review.id):
            self.write("reviews", {**row, **decided})
            return
        older = None if review.older is None else self.node(review.older.id)["key"]
        row = {"key": self.state.next_key("reviews"), "id": review.id, "space": space, "kind": review.kind}
        row |= {"newer": self.node(review.newer.id)["key"], "older": older, "created_at": to_ms(review.created_at)}
        self.write("reviews", {**row, **decided, "reasons": review.reasons, "about": review.about})

    def associate(self, one: str, other: str) -> None:
        node, beside = self.node(one)["key"], self.node(other)["key"]
        known = self.state.get("associates", node, beside)
        weight = known["weight"] if known else 0.0
        weight = weight + ASSOCIATED * (1 - weight) if known else ASSOCIATED
        self.state.put("associates", {"node": node, "other": beside, "weight": weight})

    def put_run(self, run: Run) -> None:
        """What a run did is kept as keys, so that nothing is left of a memory that is erased."""
        space = self.space(run.owner, run.chat)
        items = tuple(
            (
                item.what,
                item.reason,
                None if item.id is None else self.node(item.id)["key"],
                None if item.other is None else self.node(item.other)["key"],
                tuple(self.node(each)["key"] for each in item.evidence),
            )
            for item in run.items
        )
        sessions = tuple(self.session(space, each, run.started_at) for each in run.sessions)
        row = {"sessions": sessions, "ended_at": to_ms(run.ended_at), "tokens_in": run.tokens_in}
        row |= {"tokens_out": run.tokens_out, "cost": run.cost, "items": items}
        for known in self.state.all("runs", lambda row: row["id"] == run.id):
            self.write("runs", {**known, **row})
            return
        row |= {"key": self.state.next_key("runs"), "id": run.id, "space": space, "kind": run.kind}
        self.write("runs", {**row, "model": run.model, "prompt": run.prompt, "started_at": to_ms(run.started_at)})


def _ms(at: datetime | None) -> int | None:
    return None if at is None else to_ms(at)


def _node_values(node: Node) -> Row:
    """The columns of a memory that say something, without where it lies."""
    return {
        "id": node.id,
        "type": node.type,
        "category": node.category,
        "content": node.content,
        "source_type": node.origin,
        "source_role": node.role,
        "speaker": node.speaker,
        "tags": tuple(node.tags),
        "attributes": json.dumps(dict(node.attributes), ensure_ascii=False),
        "event_time": to_ms(node.event_time),
        "created_at": to_ms(node.created_at),
        "valid_from": to_ms(node.valid_from),
        "valid_until": _ms(node.valid_until),
        "expires_at": _ms(node.expires_at),
        "closed_at": _ms(node.closed_at),
        "closed_reason": node.closed_reason,
        "confidence": float(node.confidence),
        "decay_rate": float(node.decay_rate),
        "score": float(node.score),
        "reinforced_at": _ms(node.reinforced_at),
    }


def _entity_values(entity: Entity) -> Row:
    return {
        "id": entity.id,
        "type": entity.type,
        "canonical_name": entity.name,
        "summary": entity.summary,
        "protected": bool(entity.protected),
        "attributes": json.dumps(dict(entity.attributes), ensure_ascii=False),
        "first_seen": to_ms(entity.first_seen),
        "last_updated": to_ms(entity.last_updated),
        "closed_at": _ms(entity.closed_at),
    }
