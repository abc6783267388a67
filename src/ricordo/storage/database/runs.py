"""Conversations that wait to become knowledge, the runs that made them so, and what models were asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ricordo.clock import from_ms
from ricordo.model import Node, Run, Scope
from ricordo.storage.database.reader import Snapshot
from ricordo.storage.database.rows import keys_in_run, run_of
from ricordo.storage.values import Failure, Waiting

_LATEST = 200


def waiting(snapshot: Snapshot, scope: Scope) -> list[Waiting]:
    """The oldest conversation first."""
    rows = snapshot.rows("sessions_waiting", _seen(snapshot, scope))
    return [
        Waiting(
            owner=owner,
            chat=chat,
            session=session,
            messages=count,
            last_said_at=from_ms(said),
            last_added_at=from_ms(added),
            ended_at=None if ended is None else from_ms(ended),
        )
        for owner, chat, session, count, said, added, ended in rows
    ]


def latest_waiting(snapshot: Snapshot) -> list[tuple[tuple[str, str], str | None]]:
    """Whose the latest messages are that have not become knowledge: (owner, chat) and session, anybody's."""
    rows = snapshot.rows("conversations_waiting_latest", {"most": _LATEST})
    return [((owner, chat), session) for owner, chat, session in rows]


def waiting_episodes(snapshot: Snapshot, scope: Scope, place: tuple[str, str], session: str | None) -> list[Node]:
    """The messages of one conversation that have not become knowledge, in order; `place` is (owner, chat)."""
    return _episodes(snapshot, scope, "episodes_waiting", place, session)


def session_episodes(snapshot: Snapshot, scope: Scope, place: tuple[str, str], session: str) -> list[Node]:
    """All live messages of one conversation, in order."""
    return _episodes(snapshot, scope, "episodes_of", place, session)


def _episodes(
    snapshot: Snapshot, scope: Scope, statement: str, place: tuple[str, str], session: str | None
) -> list[Node]:
    values = {"space": snapshot.space(*place), "session": session}
    keys = [key for (key,) in snapshot.rows(statement, values)]
    found = snapshot.nodes(scope, keys)
    return [found[key] for key in keys if key in found]


def runs(snapshot: Snapshot, scope: Scope, *, most: int) -> list[Run]:
    """The latest first, without the texts of their items."""
    return _runs(snapshot, snapshot.rows("runs_listed", {**_seen(snapshot, scope), "most": most}))


def run(snapshot: Snapshot, scope: Scope, run_id: str) -> Run | None:
    """One run with the texts of its items as they are now; None where this caller sees none of that id."""
    if not isinstance(run_id, str) or not run_id.isprintable():
        return None
    found = _runs(snapshot, snapshot.rows("run_by_id", {**_seen(snapshot, scope), "id": run_id}))
    return told(snapshot, scope, found[0]) if found else None


def _runs(snapshot: Snapshot, rows: Sequence[tuple[Any, ...]]) -> list[Run]:
    keys = {key for row in rows for key in keys_in_run(row)}
    ids: dict[int, str] = dict(snapshot.rows("node_ids_of", {"keys": json.dumps(list(keys))}))
    return [run_of(row, ids) for row in rows]


def told(snapshot: Snapshot, scope: Scope, found: Run) -> Run:
    """A run with what the memories of its items say; what has been erased says nothing."""
    texts: dict[str, str] = {}
    for item in found.items:
        if item.id is not None and item.id not in texts and not item.text:
            node = snapshot.node(scope, item.id)
            texts[item.id] = "" if node is None else node.content
    items = tuple(replace(item, text=item.text or texts.get(item.id or "", "")) for item in found.items)
    return replace(found, items=items)


def failures(snapshot: Snapshot, scope: Scope) -> list[Failure]:
    """Conversations that could not be consolidated, the latest first."""
    rows = snapshot.rows("failures_of", _seen(snapshot, scope))
    return [
        Failure(owner=owner, chat=chat, session=session, tries=tries, at=from_ms(at), reason=reason)
        for owner, chat, session, tries, at, reason in rows
    ]


def note_failure(snapshot: Snapshot, place: tuple[str, str], session: str | None, *, at: int, reason: str) -> None:
    """A try failed; `at` in Unix milliseconds, `reason` without content."""
    snapshot.rows("failure_add", {**_place(snapshot, place, session), "at": at, "reason": reason})


def forget_failures(snapshot: Snapshot, place: tuple[str, str], session: str | None) -> None:
    """It worked, or is to be tried anew."""
    snapshot.rows("failure_drop", _place(snapshot, place, session))


def lease_of(snapshot: Snapshot, place: tuple[str, str], session: str | None) -> str:
    """The name of the lease on a conversation: of keys, so that it says nothing of anybody."""
    keys = _place(snapshot, place, session)
    return f"conversation {keys['space']}/{keys['session'] or 0}"


def _place(snapshot: Snapshot, place: tuple[str, str], session: str | None) -> dict[str, int | None]:
    space = snapshot.space(*place)
    key = None if session is None else snapshot.value("session_by_id", {"space": space, "session": session})
    return {"space": space, "session": key}


def note_use(snapshot: Snapshot, *, day: str, model: str, calls: int, tokens_in: int, tokens_out: int) -> None:
    """What a model was asked for on a day of the user's."""
    values = {"day": day, "model": model, "calls": calls, "tokens_in": tokens_in, "tokens_out": tokens_out}
    snapshot.rows("model_use_add", values)


def tokens_used(snapshot: Snapshot, *, day: str) -> int:
    """Of all models, in and out, on a day."""
    return int(snapshot.value("model_use_of", {"day": day}))


def evidence(snapshot: Snapshot, scope: Scope, nodes: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """The ids of the messages that memories rest on, by key; what rests on none is left out."""
    found: dict[int, tuple[str, ...]] = {}
    values = {**_seen(snapshot, scope), "nodes": json.dumps(list(nodes))}
    for key, node_id in snapshot.rows("evidence_of", values):
        found[key] = (*found.get(key, ()), node_id)
    return found


def _seen(snapshot: Snapshot, scope: Scope) -> dict[str, str]:
    spaces: Sequence[int] = snapshot.visible(scope)
    return {"spaces": json.dumps(spaces)}
