"""Conversion between rows and dataclasses, here and nowhere else.

A column that has the name of a field holds that field: instants as Unix milliseconds, tuples and objects as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ricordo.clock import from_ms, to_ms
from ricordo.model import Commit, Edge, Entity, Node, Relation, Review, Run, RunItem, Session
from ricordo.storage.database.hashes import seal, sealed
from ricordo.text import name_key, same_name_key

Row = tuple[Any, ...]
T = TypeVar("T")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _names(text: str) -> list[str]:
    return text.split()


def _list(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(json.loads(text))  # most are empty, and a search reads hundreds


def _object(text: str) -> dict[str, Any]:
    return {} if text == "{}" else dict(json.loads(text))


def _optional_at(ms: int | None) -> Any:
    return None if ms is None else from_ms(ms)


def _optional_ms(at: Any) -> int | None:
    return None if at is None else to_ms(at)


_INSTANTS = _names(
    "event_time created_at valid_from valid_until expires_at closed_at reinforced_at first_seen last_updated"
    " first_seen_at started_at ended_at consolidated_at decided_at"
)
_LISTS = _names("about tags evidence aliases sessions reasons")
_DECODE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_INSTANTS, _optional_at),
    **dict.fromkeys(_LISTS, _list),
    "attributes": _object,
    "protected": bool,
}
_ENCODE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_INSTANTS, _optional_ms),
    **dict.fromkeys((*_LISTS, "attributes"), _encode),
    **dict.fromkeys(("confidence", "decay_rate", "score", "weight"), float),
    "protected": int,
}


def _reading(cls: type[T], columns: str) -> Callable[[Row], T]:
    """Return a function that makes a dataclass of a row with these columns."""
    names = _names(columns)
    decoders = [(name, _DECODE[name]) for name in names if name in _DECODE]

    def read(row: Row) -> T:
        values = dict(zip(names, row, strict=True))
        for name, decode in decoders:
            values[name] = decode(values[name])
        return cls(**values)

    return read


def _writing(columns: str) -> Callable[..., Row]:
    """Return a function that makes a sealed row of a dataclass; what a row has besides is given by name."""
    encoders = [(name, _ENCODE.get(name)) for name in _names(columns)]

    def write(item: object, **given: Any) -> Row:
        return sealed(
            tuple(
                given[name] if name in given else encode(getattr(item, name)) if encode else getattr(item, name)
                for name, encode in encoders
            )
        )

    return write


node_of: Callable[[Row], Node] = _reading(
    Node,
    "key id type category content origin role speaker tags attributes event_time created_at valid_from valid_until"
    " expires_at closed_at closed_reason confidence decay_rate score reinforced_at owner chat session about",
)
"""Make a node of the columns of the statements that begin `node_` (see nodes.sql)."""

_node_row = _writing(
    "key id space shelf type category content origin role speaker session tags attributes event_time created_at"
    " valid_from valid_until expires_at closed_at closed_reason confidence decay_rate score reinforced_at commit"
)

_IN_IMAGE = {"origin": "source_type", "role": "source_role"}
_IMAGE_COLUMNS = [
    _IN_IMAGE.get(name, name)
    for name in _names(
        "id type category content origin role speaker tags attributes event_time created_at valid_from valid_until"
        " expires_at closed_at closed_reason confidence decay_rate score reinforced_at"
    )
]


def shelf_of(node: Node) -> str:
    """Return the shelf of a new node: "e" for an episode that is not consolidated, "k" for knowledge."""
    return "e" if node.type == "episodic" else "k"


def node_row(node: Node, *, key: int, space: int, shelf: str, session: int | None, commit: int) -> Row:
    """Return the sealed columns of `nodes`, in the order of the table."""
    return _node_row(node, key=key, space=space, shelf=shelf, session=session, commit=commit)


def former_node(node: Node, before: Mapping[str, Any]) -> Node:
    """Return the node a before-image shows. Its owner, session and subjects are those of its present row."""
    values = (before[name] for name in _IMAGE_COLUMNS)
    return node_of((node.key, *values, node.owner, node.chat, node.session, _encode(node.about)))


_commit = _reading(Commit, "seq at actor origin reason run_id hash")


def commit_of(row: Row) -> Commit:
    """Make a commit of (seq, at, actor, origin, reason, run id, hash)."""
    return _commit((row[0], from_ms(row[1]), *row[2:6], row[6].hex()))


session_of: Callable[[Row], Session] = _reading(
    Session, "key id first_seen_at ended_at consolidated_at summary owner chat"
)
"""Make a session of the columns of `session_row`."""

_session_row = _writing("key space id first_seen_at ended_at consolidated_at summary commit")


def session_row(session: Session, *, key: int, space: int, commit: int) -> Row:
    """Return the sealed columns of `sessions`, in the order of the table."""
    return _session_row(session, key=key, space=space, commit=commit)


asserted_edge: Callable[[Row], Edge] = _reading(Edge, "type source target predicate weight confidence evidence")
"""Make an edge of the columns of `edges_of_node`."""

_edge_row = _writing(
    "source type target predicate weight confidence valid_from valid_until evidence created_at closed_at commit"
)


def edge_row(edge: Edge, *, source: int, target: int, at: int, commit: int) -> Row:
    """Return the sealed columns of `edges`, in the order of the table."""
    times = {"valid_from": at, "valid_until": None, "created_at": at, "closed_at": None}
    return _edge_row(edge, source=source, target=target, commit=commit, **times)


def closed_edge_row(row: Row, *, at: int, commit: int) -> Row:
    """Return what `edge_close` takes for an edge from the columns of `edge_of`."""
    return (*row[:3], at, commit, seal((*row, at, commit)))


_review = _reading(Review, "key id kind newer older created_at decided_at decision reasons about owner chat")
_review_row = _writing("key id space kind newer older created_at decided_at decision reasons about commit")


def review_of(row: Row, nodes: Mapping[int, Node]) -> Review:
    """Make a review of the columns of `review_by_id` and its two nodes by key."""
    return _review((*row[:3], nodes[row[3]], nodes.get(row[4]), *row[5:]))


def review_row(review: Review, *, key: int, space: int, newer: int, older: int | None, commit: int) -> Row:
    """Return the sealed columns of `reviews`, in the order of the table."""
    return _review_row(review, key=key, space=space, newer=newer, older=older, commit=commit)


_run = _reading(
    Run, "key id kind model prompt sessions started_at ended_at tokens_in tokens_out cost items owner chat state"
)
_run_row = _writing(
    "key id space kind model prompt sessions started_at ended_at tokens_in tokens_out cost items commit"
)


def run_row(run: Run, *, key: int, space: int, commit: int, keys: Mapping[str, int], sessions: Sequence[int]) -> Row:
    """Return the sealed columns of `runs`. Its items are stored as keys and reasons, without content and ids."""
    items = [
        [item.what, item.reason, keys.get(item.id or ""), keys.get(item.other or ""), [keys[e] for e in item.evidence]]
        for item in run.items
    ]
    return _run_row(run, key=key, space=space, sessions=_encode(sessions), items=_encode(items), commit=commit)


def keys_in_run(row: Row) -> set[int]:
    """Return the keys of the nodes that the items of a run name."""
    items = json.loads(row[11])
    return {key for _, _, node, other, evidence in items for key in (node, other, *evidence) if key is not None}


def run_of(row: Row, ids: Mapping[int, str]) -> Run:
    """Make a run of the columns of the statements of runs.sql, without the texts of its items.

    Args:
        ids: by key, of the nodes that still exist.
    """
    items = tuple(
        RunItem(
            what=what,
            id=ids.get(node),
            other=ids.get(other),
            reason=reason,
            evidence=tuple(ids[each] for each in evidence if each in ids),
        )
        for what, reason, node, other, evidence in json.loads(row[11])
    )
    return _run((*row[:11], items, *row[12:], "done"))


_entity = _reading(
    Entity,
    "key id type name relation summary protected attributes first_seen last_updated closed_at merged_into owner chat"
    " aliases mention_count",
)
_entity_row = _writing(
    "key id space type name summary protected attributes first_seen last_updated closed_at merged_into commit"
)


def entity_of(row: Row) -> Entity:
    """Make an entity of the columns of the statements that begin `entity_` (see entities.sql)."""
    return _entity(row)


def entity_row(entity: Entity, *, key: int, space: int, merged_into: int | None, commit: int) -> Row:
    """Return the sealed columns of `entities`, in the order of the table."""
    return _entity_row(entity, key=key, space=space, merged_into=merged_into, commit=commit)


def alias_row(alias: str, *, entity: int, space: int, commit: int) -> Row:
    """Return the sealed columns of `aliases`, in the order of the table."""
    return sealed((space, name_key(alias), entity, alias, same_name_key(alias), commit))


relation_of: Callable[[Row], Relation] = _reading(
    Relation,
    "key id predicate source source_name target target_name valid_from valid_until evidence created_at owner chat",
)
"""Make a relation of the columns of the statements that begin `relation_` (see entities.sql)."""

_relation_row = _writing(
    "key id space source predicate target valid_from valid_until evidence created_at closed_at commit"
)


def relation_row(relation: Relation, *, key: int, space: int, source: int | None, target: int, commit: int) -> Row:
    """Return the sealed columns of `relations`, in the order of the table."""
    return _relation_row(relation, key=key, space=space, source=source, target=target, closed_at=None, commit=commit)
