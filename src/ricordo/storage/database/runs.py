"""Conversations that wait for consolidation, runs, and the use of language models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ricordo.clock import from_ms
from ricordo.model import Node, Run, RunKind, Scope
from ricordo.storage.database.nodes import Nodes
from ricordo.storage.database.rows import keys_in_run, run_of
from ricordo.storage.database.statements import Statements
from ricordo.storage.values import Failure, MessagePairs, Waiting

_LATEST = 200


class Runs:
    """Conversations that wait for consolidation, runs, and the use of language models."""

    def __init__(self, sql: Statements, nodes: Nodes) -> None:
        self._sql = sql
        self._nodes = nodes

    def waiting(self, scope: Scope) -> list[Waiting]:
        rows = self._sql.rows("sessions_waiting", self._seen(scope))
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

    def latest_waiting(self) -> list[tuple[tuple[str, str], str | None]]:
        rows = self._sql.rows("conversations_waiting_latest", {"most": _LATEST})
        return [((owner, chat), session) for owner, chat, session in rows]

    def waiting_episodes(self, scope: Scope, place: tuple[str, str], session: str | None) -> list[Node]:
        return self._episodes(scope, "episodes_waiting", place, session)

    def session_episodes(self, scope: Scope, place: tuple[str, str], session: str) -> list[Node]:
        return self._episodes(scope, "episodes_of", place, session)

    def _episodes(self, scope: Scope, statement: str, place: tuple[str, str], session: str | None) -> list[Node]:
        values = {"space": self._sql.space(*place), "session": session}
        keys = [key for (key,) in self._sql.rows(statement, values)]
        found = self._nodes.by_key(scope, keys)
        return [found[key] for key in keys if key in found]

    def listed(self, scope: Scope, *, most: int) -> list[Run]:
        return self._runs(self._sql.rows("runs_listed", {**self._seen(scope), "most": most}))

    def get(self, scope: Scope, run_id: str) -> Run | None:
        if not isinstance(run_id, str) or not run_id.isprintable():
            return None
        found = self._runs(self._sql.rows("run_by_id", {**self._seen(scope), "id": run_id}))
        return self._with_texts(scope, found[0]) if found else None

    def _runs(self, rows: Sequence[tuple[Any, ...]]) -> list[Run]:
        keys = {key for row in rows for key in keys_in_run(row)}
        ids: dict[int, str] = dict(self._sql.rows("node_ids_of", {"keys": json.dumps(list(keys))}))
        return [run_of(row, ids) for row in rows]

    def _with_texts(self, scope: Scope, found: Run) -> Run:
        """Fill in what the memories of a run's items say; erased ones say nothing."""
        texts: dict[str, str] = {}
        for item in found.items:
            if item.id is not None and item.id not in texts and not item.text:
                node = self._nodes.get(scope, item.id)
                texts[item.id] = "" if node is None else node.content
        items = tuple(replace(item, text=item.text or texts.get(item.id or "", "")) for item in found.items)
        return replace(found, items=items)

    def failures(self, scope: Scope) -> list[Failure]:
        rows = self._sql.rows("failures_of", self._seen(scope))
        return [
            Failure(owner=owner, chat=chat, session=session, tries=tries, at=from_ms(at), reason=reason)
            for owner, chat, session, tries, at, reason in rows
        ]

    def note_failure(self, place: tuple[str, str], session: str | None, *, at: int, reason: str) -> None:
        self._sql.rows("failure_add", {**self._place(place, session), "at": at, "reason": reason})

    def forget_failures(self, place: tuple[str, str], session: str | None) -> None:
        self._sql.rows("failure_drop", self._place(place, session))

    def lease_of(self, place: tuple[str, str], session: str | None) -> str:
        keys = self._place(place, session)
        return f"conversation {keys['space']}/{keys['session'] or 0}"

    def _place(self, place: tuple[str, str], session: str | None) -> dict[str, int | None]:
        space = self._sql.space(*place)
        key = None if session is None else self._sql.value("session_by_id", {"space": space, "session": session})
        return {"space": space, "session": key}

    def note_use(self, *, day: str, model: str, calls: int, tokens_in: int, tokens_out: int) -> None:
        values = {"day": day, "model": model, "calls": calls, "tokens_in": tokens_in, "tokens_out": tokens_out}
        self._sql.rows("model_use_add", values)

    def tokens_used(self, *, day: str) -> int:
        return int(self._sql.value("model_use_of", {"day": day}))

    def evidence(self, scope: Scope, nodes: Iterable[int]) -> dict[int, tuple[str, ...]]:
        found: dict[int, tuple[str, ...]] = {}
        values = {**self._seen(scope), "nodes": json.dumps(list(nodes))}
        for key, node_id in self._sql.rows("evidence_of", values):
            found[key] = (*found.get(key, ()), node_id)
        return found

    def items_of_last(self, owner: str, chat: str, kind: RunKind) -> list[tuple[str, int | None, tuple[int, ...]]]:
        items = self._sql.value("run_items_last", {"space": self._sql.space(owner, chat), "kind": kind})
        return [(what, node, tuple(evidence)) for what, _, node, _, evidence in json.loads(items or "[]")]

    def extraction_of(self, place: tuple[str, str], session: str | None, *, model: str) -> str | None:
        found: str | None = self._sql.value("extraction_of", {**self._place(place, session), "model": model})
        return found

    def read_by(self, place: tuple[str, str], session: str | None, *, model: str, among: Sequence[Node]) -> set[int]:
        values = {**self._place(place, session), "model": model, "keys": json.dumps([node.key for node in among])}
        return {key for (key,) in self._sql.rows("messages_read", values)}

    def consecutive_messages(self, owner: str, chat: str, *, after: int, most: int) -> MessagePairs | None:
        values = {"space": self._sql.space(owner, chat), "after": after, "most": most}
        through = self._sql.value("messages_after", values)
        if through is None:
            return None
        return MessagePairs(tuple((first, then) for first, then in self._sql.rows("pairs_to_look_at", values)), through)

    def learnt_between(self, owner: str, chat: str, *, after: int, before: int, now: int, most: int) -> list[int]:
        values = {"space": self._sql.space(owner, chat), "after": after, "before": before, "now": now, "most": most}
        return [key for (key,) in self._sql.rows("learnt_between", values)]

    def _seen(self, scope: Scope) -> dict[str, str]:
        spaces: Sequence[int] = self._sql.visible(scope)
        return {"spaces": json.dumps(spaces)}
