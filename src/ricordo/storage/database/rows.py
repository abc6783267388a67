"""Rows become dataclasses, and dataclasses rows, here and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ricordo.clock import from_ms, to_ms
from ricordo.making import Maker
from ricordo.model import Commit, Edge, Entity, Node, Relation, Review, Run, RunItem, Session
from ricordo.storage.database.hashes import seal, sealed
from ricordo.text import name_key, same_name_key

Row = tuple[Any, ...]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def shelf_of(node: Node) -> str:
    """Where a fresh node is indexed: knowledge, or episodes still waiting to become knowledge."""
    return "e" if node.type == "episodic" else "k"


def node_row(node: Node, *, key: int, space: int, shelf: str, session: int | None, commit: int) -> Row:
    """The columns of `nodes` in the order of its table, sealed."""
    event_time = to_ms(node.event_time)
    # What is said now is one instant three times: an import turns it into a number once.
    created_at = event_time if node.created_at is node.event_time else to_ms(node.created_at)
    valid_from = event_time if node.valid_from is node.event_time else to_ms(node.valid_from)
    return sealed(
        (
            key,
            node.id,
            space,
            shelf,
            node.type,
            node.category,
            node.content,
            node.origin,
            node.role,
            node.speaker,
            session,
            _encode(node.tags) if node.tags else "[]",
            _encode(node.attributes) if node.attributes else "{}",
            event_time,
            created_at,
            valid_from,
            _optional_ms(node.valid_until),
            _optional_ms(node.expires_at),
            _optional_ms(node.closed_at),
            node.closed_reason,
            float(node.confidence),
            float(node.decay_rate),
            float(node.score),
            _optional_ms(node.reinforced_at),
            commit,
        )
    )


def _optional_ms(at: Any) -> int | None:
    return None if at is None else to_ms(at)


def node_of(row: Row) -> Node:
    """A node from the columns of the statements that begin `node_` (see nodes.sql)."""
    (
        key,
        node_id,
        type_,
        category,
        content,
        origin,
        role,
        speaker,
        tags,
        attributes,
        event_time,
        created_at,
        valid_from,
        valid_until,
        expires_at,
        closed_at,
        closed_reason,
        confidence,
        decay_rate,
        score,
        reinforced_at,
        owner,
        chat,
        session,
        about,
    ) = row
    happened = from_ms(event_time)  # what was said as it was stored bears one time
    return _node(
        node_id,
        type_,
        content,
        happened,
        happened if created_at == event_time else from_ms(created_at),
        happened if valid_from == event_time else from_ms(valid_from),
        owner,
        chat,
        category,
        role,
        speaker,
        session,
        origin,
        _list(about),
        _list(tags),
        json.loads(attributes) if attributes != "{}" else {},
        _optional_at(valid_until),
        _optional_at(expires_at),
        _optional_at(closed_at),
        closed_reason,
        confidence,
        decay_rate,
        score,
        _optional_at(reinforced_at),
        key,
    )


_node = Maker(Node)


def _list(text: str) -> tuple[str, ...]:
    """Most are empty, and a search reads hundreds."""
    return () if text == "[]" else tuple(json.loads(text))


def _optional_at(ms: int | None) -> Any:
    return None if ms is None else from_ms(ms)


def former_node(node: Node, before: dict[str, Any]) -> Node:
    """The node a before-image shows. Whose it is and whom it is about is taken from its present row."""
    columns = (
        "id",
        "type",
        "category",
        "content",
        "source_type",
        "source_role",
        "speaker",
        "tags",
        "attributes",
        "event_time",
        "created_at",
        "valid_from",
        "valid_until",
        "expires_at",
        "closed_at",
        "closed_reason",
        "confidence",
        "decay_rate",
        "score",
        "reinforced_at",
    )
    values = (before[name] for name in columns)
    return node_of((node.key, *values, node.owner, node.chat, node.session, _encode(node.about)))


def commit_of(row: Row) -> Commit:
    """A commit from (seq, at, actor, origin, reason, run id, hash)."""
    seq, at, actor, origin, reason, run_id, hashed = row
    return Commit(seq=seq, at=from_ms(at), actor=actor, origin=origin, reason=reason, run_id=run_id, hash=hashed.hex())


def session_of(row: Row) -> Session:
    """A session from the columns of `session_row`."""
    key, session_id, first_seen_at, ended_at, consolidated_at, summary, owner, chat = row
    return Session(
        key=key,
        id=session_id,
        first_seen_at=from_ms(first_seen_at),
        ended_at=_optional_at(ended_at),
        consolidated_at=_optional_at(consolidated_at),
        summary=summary,
        owner=owner,
        chat=chat,
    )


def session_row(session: Session, *, key: int, space: int, commit: int) -> Row:
    """The columns of `sessions` in the order of its table, sealed."""
    return sealed(
        (
            key,
            space,
            session.id,
            to_ms(session.first_seen_at),
            _optional_ms(session.ended_at),
            _optional_ms(session.consolidated_at),
            session.summary,
            commit,
        )
    )


def asserted_edge(row: Row) -> Edge:
    """An edge from the columns of `edges_of_node`."""
    kind, source, target, predicate, weight, confidence, evidence = row
    return Edge(
        source=source,
        target=target,
        type=kind,
        predicate=predicate,
        weight=weight,
        confidence=confidence,
        evidence=_list(evidence),
    )


def edge_row(edge: Edge, *, source: int, target: int, at: int, commit: int) -> Row:
    """The columns of `edges` in the order of its table, sealed."""
    return sealed(
        (
            source,
            edge.type,
            target,
            edge.predicate,
            float(edge.weight),
            float(edge.confidence),
            at,
            None,
            _encode(edge.evidence),
            at,
            None,
            commit,
        )
    )


def closed_edge_row(row: Row, *, at: int, commit: int) -> Row:
    """What `edge_close` takes for an edge from the columns of `edge_of`."""
    return (*row[:3], at, commit, seal((*row, at, commit)))


def review_row(review: Review, *, key: int, space: int, newer: int, older: int | None, commit: int) -> Row:
    """The columns of `reviews` in the order of its table, sealed."""
    return sealed(
        (
            key,
            review.id,
            space,
            review.kind,
            newer,
            older,
            to_ms(review.created_at),
            _optional_ms(review.decided_at),
            review.decision,
            _encode(review.reasons),
            _encode(review.about),
            commit,
        )
    )


def review_of(row: Row, nodes: Mapping[int, Node]) -> Review:
    """A review from the columns of `review_by_id`; its two facts are read apart."""
    (key, review_id, kind, newer, older, created_at, decided_at, decision, reasons, about, owner, chat) = row
    return Review(
        key=key,
        id=review_id,
        kind=kind,
        newer=nodes[newer],
        older=nodes.get(older),
        created_at=from_ms(created_at),
        reasons=_list(reasons),
        about=_list(about),
        decided_at=_optional_at(decided_at),
        decision=decision,
        owner=owner,
        chat=chat,
    )


def run_row(run: Run, *, key: int, space: int, commit: int, keys: Mapping[str, int], sessions: Sequence[int]) -> Row:
    """The columns of `runs` in the order of its table, sealed. Of what it did, keys and reasons: no content, no ids."""
    items = [
        [item.what, item.reason, keys.get(item.id or ""), keys.get(item.other or ""), [keys[e] for e in item.evidence]]
        for item in run.items
    ]
    return sealed(
        (
            key,
            run.id,
            space,
            run.kind,
            run.model,
            run.prompt,
            _encode(sessions),
            to_ms(run.started_at),
            to_ms(run.ended_at),
            run.tokens_in,
            run.tokens_out,
            run.cost,
            _encode(items),
            commit,
        )
    )


def keys_in_run(row: Row) -> set[int]:
    """The nodes that the items of a run name."""
    items = json.loads(row[11])
    return {key for _, _, node, other, evidence in items for key in (node, other, *evidence) if key is not None}


def run_of(row: Row, ids: Mapping[int, str]) -> Run:
    """A run from the columns of the statements of runs.sql; `ids` by key, of what is still there. What its items say is
    read apart.
    """
    (
        key,
        run_id,
        kind,
        model,
        prompt,
        sessions,
        started_at,
        ended_at,
        tokens_in,
        tokens_out,
        cost,
        items,
        owner,
        chat,
    ) = row
    return Run(
        key=key,
        id=run_id,
        kind=kind,
        state="done",
        model=model,
        prompt=prompt,
        sessions=_list(sessions),
        started_at=from_ms(started_at),
        ended_at=from_ms(ended_at),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=cost,
        owner=owner,
        chat=chat,
        items=tuple(
            RunItem(
                what=what,
                id=ids.get(node),
                other=ids.get(other),
                reason=reason,
                evidence=tuple(ids[each] for each in evidence if each in ids),
            )
            for what, reason, node, other, evidence in json.loads(items)
        ),
    )


def entity_row(entity: Entity, *, key: int, space: int, merged_into: int | None, commit: int) -> Row:
    """The columns of `entities` in the order of its table, sealed."""
    return sealed(
        (
            key,
            entity.id,
            space,
            entity.type,
            entity.name,
            entity.summary,
            int(entity.protected),
            _encode(entity.attributes),
            to_ms(entity.first_seen),
            to_ms(entity.last_updated),
            _optional_ms(entity.closed_at),
            merged_into,
            commit,
        )
    )


def entity_of(row: Row) -> Entity:
    """An entity from the columns of the statements that begin `entity_` (see entities.sql)."""
    (
        key,
        entity_id,
        type_,
        name,
        relation,
        summary,
        protected,
        attributes,
        first_seen,
        last_updated,
        closed_at,
        merged_into,
        owner,
        chat,
        aliases,
        mentions,
    ) = row
    return Entity(
        key=key,
        id=entity_id,
        type=type_,
        name=name,
        relation=relation,
        summary=summary,
        protected=bool(protected),
        attributes=json.loads(attributes),
        first_seen=from_ms(first_seen),
        last_updated=from_ms(last_updated),
        closed_at=_optional_at(closed_at),
        merged_into=merged_into,
        owner=owner,
        chat=chat,
        aliases=_list(aliases),
        mention_count=mentions,
    )


def alias_row(alias: str, *, entity: int, space: int, commit: int) -> Row:
    """The columns of `aliases` in the order of its table, sealed."""
    return sealed((space, name_key(alias), entity, alias, same_name_key(alias), commit))


def relation_row(relation: Relation, *, key: int, space: int, source: int | None, target: int, commit: int) -> Row:
    """The columns of `relations` in the order of its table, sealed."""
    return sealed(
        (
            key,
            relation.id,
            space,
            source,
            relation.predicate,
            target,
            _optional_ms(relation.valid_from),
            _optional_ms(relation.valid_until),
            _encode(relation.evidence),
            to_ms(relation.created_at),
            None,
            commit,
        )
    )


def relation_of(row: Row) -> Relation:
    """A relation from the columns of the statements that begin `relation_` (see entities.sql)."""
    (
        key,
        relation_id,
        predicate,
        source,
        source_name,
        target,
        target_name,
        valid_from,
        valid_until,
        evidence,
        created_at,
        owner,
        chat,
    ) = row
    return Relation(
        key=key,
        id=relation_id,
        predicate=predicate,
        source=source,
        source_name=source_name,
        target=target,
        target_name=target_name,
        valid_from=_optional_at(valid_from),
        valid_until=_optional_at(valid_until),
        evidence=_list(evidence),
        created_at=from_ms(created_at),
        owner=owner,
        chat=chat,
    )
