"""What a transaction has changed, as lines: the rows of its commits, what they replaced, and what is kept beside."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import apsw

from ricordo.storage.database.ledger import current_image
from ricordo.storage.database.queries import sql
from ricordo.storage.database.reader import DatabaseSnapshot
from ricordo.storage.folder.layout import COMMITS, HISTORY, MEMORIES, SEQUENCE, SETTINGS, STORE, VECTORS, file_of
from ricordo.storage.folder.lines import Line, Shape, Shapes, content_hash, data, iso, summed

_VECTORS = "embeddings"


def where_key(shape: Shape) -> str:
    """The condition that finds a row that is kept by its key, in which bytes stand as hexadecimal digits."""
    blobs = {each.name for each in shape.columns if each.kind == "blob"}
    return " AND ".join(f'"{name}" = {"unhex(?)" if name in blobs else "?"}' for name in shape.table.key)


def watch(connection: apsw.Connection, shapes: Shapes) -> None:
    """Have a connection note what it changes outside the truth. Names come from the schema: statements put together."""
    connection.execute(sql("touched_table"))
    for shape in shapes.kept.values():
        for event, side in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
            # What is to be erased stays written down until all of it has gone from the files, too.
            if (shape.table.name, event) != ("to_erase", "DELETE"):
                _watch(connection, shape.table.name, shape.table.key, event, side)
    for event, side in (("INSERT", "NEW"), ("DELETE", "OLD")):
        _watch(connection, _VECTORS, ("node", "model"), event, side)


def _watch(connection: apsw.Connection, table: str, key: tuple[str, ...], event: str, side: str) -> None:
    row = ", ".join(
        f'CASE typeof({side}."{name}") WHEN \'blob\' THEN hex({side}."{name}") ELSE {side}."{name}" END' for name in key
    )
    kept = f"WHEN {side}.name IN ({', '.join(map(repr, SETTINGS))}, '')" if table == "meta" else ""
    connection.execute(
        f'CREATE TEMP TRIGGER IF NOT EXISTS "touched_{table}_{event}" AFTER {event} ON main."{table}" {kept} BEGIN '
        f"INSERT INTO touched VALUES ('{table}', json_array({row})) ON CONFLICT DO NOTHING; END"
    )


def commits_after(connection: apsw.Connection, seq: int) -> list[int]:
    """The commits made since one."""
    return [row[0] for row in connection.execute(sql("commits_after"), {"seq": seq})]


def lines_of_commit(connection: apsw.Connection, shapes: Shapes, seq: int, extra: Line) -> Iterator[tuple[str, bytes]]:
    """(file, line) of all that a commit wrote, replaced and removed, its own line last. To be asked before the next
    commit is made.

    Args:
        extra: what the commit's line says beside.
    """
    for shape in shapes.rows.values():
        for row in connection.execute(f"{shape.select} WHERE t.commit_seq = ?", (seq,)):
            yield row_line(shape, row)
    for name, row, before in DatabaseSnapshot(connection).rows("history_of_commit", {"seq": seq}):
        yield HISTORY, history_line(seq, name, row, before)
        table = shapes.truth.tables[name]
        if current_image(connection, table, table.row_id(table.image(before, row))) is None:
            yield removal_line(shapes.rows[name], row, seq)
    yield COMMITS, commit_line(connection, seq, extra)


def row_line(shape: Shape, row: tuple[Any, ...]) -> tuple[str, bytes]:
    """(file, line) of a row of the shape's `select`."""
    values = dict(zip((each.name for each in shape.columns), row, strict=False))
    extra = {"row": text_of_key(shape.key_of(row)), "commit": values["commit_seq"], "seal": values["seal"].hex()}
    return file_of(shape.table.name, values), data(shape.line(row, extra))


def text_of_key(key: tuple[Any, ...]) -> str:
    """How `history` and the lines name a row."""
    return ">".join(str(part) for part in key)


def history_line(seq: int, table: str, row: str, before: str) -> bytes:
    """A before-image as a line."""
    return data({"commit": seq, "table": table, "row": row, "before": json.loads(before)})


def removal_line(shape: Shape, row: str, seq: int) -> tuple[str, bytes]:
    """What is written of a row that is gone; how it was is in the history."""
    kind = {"kind": shape.form.kind} if shape.form.kind else {}
    file = MEMORIES if shape.table.name == "nodes" else shape.form.file
    return file, data({**kind, "row": row, "commit": seq, "removed": True})


def commit_line(connection: apsw.Connection, seq: int, extra: Line) -> bytes:
    """The line that makes a commit's other lines count."""
    row = connection.execute(sql("commit_line"), {"seq": seq}).fetchone()
    assert row is not None
    _, owner, chat, at, actor, origin, reason, run_id, seal, digest, hashed = row
    run = {"run_id": run_id} if run_id is not None else {}
    return data(
        {
            "commit": seq,
            "at": iso(at),
            "actor": actor,
            "origin": origin,
            "reason": reason,
            **run,
            "owner_user_id": owner or None,
            "chat_id": chat or None,
            "seal": seal.hex(),
            "digest": digest.hex(),
            "hash": hashed.hex(),
            **extra,
        }
    )


def touched_lines(connection: apsw.Connection, shapes: Shapes) -> list[tuple[str, bytes]]:
    """(file, line) of what was changed outside the truth in this transaction, and no more of it."""
    found = []
    for table, key in DatabaseSnapshot(connection).rows("touched_rows"):
        if table == _VECTORS:
            found += vector_lines(connection, *json.loads(key))
        else:
            found.append(kept_line(connection, shapes.kept[table], json.loads(key)))
    if found:
        connection.execute(sql("touched_forget"))
    return found


def vector_lines(connection: apsw.Connection, node: int, model: int) -> list[tuple[str, bytes]]:
    """The line of a vector, or of its going; none where the memory has gone, too."""
    row = connection.execute(sql("vector_lines"), (node, model)).fetchone()
    if row is None:
        gone = connection.execute(sql("vector_gone"), (node, model))
        return [
            (VECTORS, summed({"memory": memory, "model": name, "dimension": dimension, "removed": True}))
            for memory, name, dimension in gone
        ]
    memory, name, dimension, content, speaker, vector, pieces, words = row
    line: Line = {"memory": memory, "model": name, "dimension": dimension}
    line |= {"made_from": content_hash(content, speaker), "vector": b64encode(vector).decode()}
    if pieces is not None:
        line |= {"pieces": pieces, "words": b64encode(words).decode()}
    return [(VECTORS, summed(line))]


def kept_line(connection: apsw.Connection, shape: Shape, key: list[Any]) -> tuple[str, bytes]:
    """The line of a row that is kept beside the truth, or of its going."""
    row = connection.execute(f"{shape.select} WHERE {where_key(shape)}", key).fetchone()
    if row is None:
        return shape.form.file, summed({"kind": shape.form.kind, "row": key, "removed": True})
    return kept_row_line(shape, row)


def sequence_lines(connection: apsw.Connection, shapes: Shapes) -> list[tuple[str, bytes]]:
    """(file, line) of up to where keys were given out, of the tables that have lines."""
    found = DatabaseSnapshot(connection).rows("sequences")
    return [
        (STORE, summed({"kind": SEQUENCE, "table": table, "last": last}))
        for table, last in found
        if table in shapes.rows or table in shapes.kept
    ]


def kept_row_line(shape: Shape, row: tuple[Any, ...]) -> tuple[str, bytes]:
    """(file, line) of a row of the shape's `select` that is kept beside the truth."""
    extra = {"row": text_of_key(shape.key_of(row))} if shape.table.key == ("key",) else {}
    return shape.form.file, summed(shape.line(row, extra))
