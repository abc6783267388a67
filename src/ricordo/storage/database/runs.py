"""Sessions, reviews, runs, leases, proposals and receipts, and the evidence of derived memories."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, get_args

from ricordo.clock import from_ms, part_of_id, to_ms
from ricordo.model import (
    Conversation,
    Given,
    LeftOut,
    ModelUse,
    Node,
    Pause,
    Receipt,
    Review,
    ReviewKind,
    Run,
    RunItem,
    RunKind,
    RunState,
    Scope,
    Share,
)
from ricordo.storage.database.nodes import Nodes
from ricordo.storage.database.statements import (
    Group,
    Row,
    as_set,
    asks,
    column,
    first,
    keys_in_run,
    nothing,
    reading,
    review_of,
    row_as,
    rows_as,
    run_of,
    session_of,
)
from ricordo.storage.values import STANDING, ClosedFact, Failure, LearntFact, MessagePairs, Waiting, texts_in

_LATEST = 200


INTERRUPTED = "interrupted, or still running"
"""The reason of a run that called a model and has no recorded end."""


def _ended(run: Run, outcome: str, reason: str, failed: tuple[RunItem, ...]) -> Run:
    """Return a run in the state of its last record."""
    if outcome not in get_args(RunState):
        return replace(run, state="failed", reason=INTERRUPTED, items=failed)
    return replace(run, state=outcome, reason=reason, items=failed)  # type: ignore[arg-type]  # just checked


def _with_costs(run: Run, tokens_in: int, tokens_out: int, cost: float | None) -> Run:
    """Return a run with everything that was spent on it, including sessions of it that failed."""
    if tokens_in + tokens_out <= run.tokens_in + run.tokens_out:
        return run
    return replace(
        run, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost if run.cost is None else max(run.cost, cost or 0)
    )


_model_use = reading(ModelUse, "day owner chat model calls tokens_in tokens_out cost runs")
_model_use_before = reading(ModelUse, "day owner chat model calls tokens_in tokens_out")


class Runs(Group):
    """Conversations that wait for consolidation, runs, and the use of language models."""

    waiting = asks("sessions_waiting", "scope", rows_as(reading(Waiting)))

    def latest_waiting(self) -> list[tuple[tuple[str, str], str | None]]:
        rows = self._sql.rows("conversations_waiting_latest", {"most": _LATEST})
        return [((owner, chat), session) for owner, chat, session in rows]

    def waiting_episodes(self, scope: Scope, place: tuple[str, str], session: str | None) -> list[Node]:
        return self._episodes(scope, "episodes_waiting", place, session)

    def session_episodes(self, scope: Scope, place: tuple[str, str], session: str) -> list[Node]:
        return self._episodes(scope, "episodes_of", place, session)

    def _episodes(self, scope: Scope, statement: str, place: tuple[str, str], session: str | None) -> list[Node]:
        values = {"space": self._sql.space(*place), "session": session}
        return Nodes(self._sql).in_order(scope, column(self._sql.rows(statement, values)))

    def listed(self, scope: Scope, *, most: int) -> list[Run]:
        kept = self._runs(self._sql.rows("runs_listed", {**self._seen(scope), "most": most}))
        others = self._unlisted(scope, None, most=most)
        return (
            sorted((*kept, *others), key=lambda run: (run.started_at, run.id), reverse=True)[:most] if others else kept
        )

    def get(self, scope: Scope, run_id: str) -> Run | None:
        if not isinstance(run_id, str) or not run_id.isprintable():
            return None
        found = self._runs(self._sql.rows("run_by_id", {**self._seen(scope), "id": run_id}))
        if not found:
            return next(iter(self._unlisted(scope, run_id, most=1)), None)
        return self._with_texts(scope, replace(found[0], items=(*found[0].items, *self._failed_in(run_id))))

    def _unlisted(self, scope: Scope, run_id: str | None, *, most: int) -> list[Run]:
        """Return runs that called a model and left nothing: failed, interrupted, dry, proposed or undone ones."""
        rows = self._sql.rows("runs_unlisted", {**self._seen(scope), "id": run_id, "most": most})
        return [_ended(run_of(row[:14], {}), row[14], row[15], self._failed_in(row[1])) for row in rows]

    def _failed_in(self, run_id: str) -> tuple[RunItem, ...]:
        rows = self._sql.rows("run_failures", {"run": run_id})
        return tuple(RunItem(what="failed", text=session or "", reason=reason) for session, reason in rows)

    def _runs(self, rows: Sequence[tuple[Any, ...]]) -> list[Run]:
        keys = {key for row in rows for key in keys_in_run(row)}
        ids: dict[int, str] = dict(self._sql.rows("node_ids_of", {"keys": json.dumps(list(keys))}))
        runs = [run_of(row, ids) for row in rows]
        costs = {
            run: rest for run, *rest in self._sql.rows("run_costs", {"runs": json.dumps([run.id for run in runs])})
        }
        return [_with_costs(run, *costs[run.id]) if run.id in costs else run for run in runs]

    def _with_texts(self, scope: Scope, found: Run) -> Run:
        """Add the texts of the memories in a run's items; "" for an erased memory."""
        texts: dict[str, str] = {}
        for item in found.items:
            if item.id is not None and item.id not in texts and not item.text:
                node = Nodes(self._sql).get(scope, item.id)
                texts[item.id] = "" if node is None else node.content
        items = tuple(replace(item, text=item.text or texts.get(item.id or "", "")) for item in found.items)
        return replace(found, items=items)

    failures = asks("failures_of", "scope", rows_as(reading(Failure)))

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

    def begin_call(self, run: Run, session: str | None, *, day: str, at: int, tokens: int, most: int) -> int | None:
        values = {**self._call(run, session, day=day, at=at), "tokens_in": tokens, "most": most}
        rows = self._sql.rows("model_call_begin", values)
        return rows[0][0] if rows else None

    end_call = asks("model_call_end", "key tokens_in tokens_out cost", nothing)

    def note_outcome(self, run: Run, session: str | None, *, day: str, at: int) -> None:
        values = {**self._call(run, session, day=day, at=at), "outcome": run.state, "reason": run.reason}
        self._sql.rows("run_outcome_add", values)

    def _call(self, run: Run, session: str | None, *, day: str, at: int) -> dict[str, Any]:
        place = self._place((run.owner, run.chat), session)
        told = {"run": run.id, "kind": run.kind, "model": run.model, "prompt": run.prompt}
        return {**place, **told, "day": day, "at": at}

    def model_use(self, scope: Scope | None, *, since: str) -> list[ModelUse]:
        spaces = {"spaces": "[]"} if scope is None else self._seen(scope)
        rows = self._sql.rows("model_calls_of", {**spaces, "all": scope is None, "since": since})
        before = self._sql.rows("model_use_before", {"since": since}) if scope is None else []
        return [*map(_model_use, rows), *map(_model_use_before, before)]

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

    learnt_between = asks("learnt_between", "owner chat after before now most", column)

    def _seen(self, scope: Scope) -> dict[str, str]:
        spaces: Sequence[int] = self._sql.visible(scope)
        return {"spaces": json.dumps(spaces)}


_conversation = reading(
    Conversation, "id messages begun_at last_at ended_at consolidated_at summary owner chat title key"
)
_pause = reading(Pause)


class Sessions(Group):
    """Sessions of a caller, and which of them are off the record."""

    get = asks("session_row", "scope session", row_as(session_of))
    listed = asks("sessions_listed", "scope most session_id", rows_as(_conversation))
    off_record = asks("off_record_of", "owner chat", rows_as(_pause))
    paused = asks("off_record_open", "owner", rows_as(_pause))
    go_off_record = asks("off_record_begin", "owner chat session at", nothing)

    def go_on_record(self, owner: str, chat: str, session: str, *, at: int, kept: str) -> None:
        place = {"owner": owner, "chat": chat, "session": session}
        self._sql.rows("off_record_end", {**place, "at": at, "kept": kept})
        self._sql.rows("off_record_drop", place)


class Reviews(Group):
    """Questions that wait for a person's decision."""

    def listed(
        self, scope: Scope, *, most: int, kind: ReviewKind | None = None, node: int | None = None
    ) -> list[Review]:
        rows = self._sql.rows("reviews_open", self._sql.scoped(scope, most=most, kind=kind, node=node))
        nodes = Nodes(self._sql).by_key(scope, {key for row in rows for key in row[3:5] if key is not None})
        return [review_of(row, nodes) for row in rows]

    def get(self, scope: Scope, review_id: str) -> Review | None:
        if not isinstance(review_id, str) or not review_id.isprintable():
            return None
        rows = self._sql.rows("review_by_id", self._sql.scoped(scope, id=review_id))
        return review_of(rows[0], Nodes(self._sql).by_key(scope, filter(None, rows[0][3:5]))) if rows else None

    against = asks("reviews_against", "keys", list)
    decided_with = asks("reviews_decided_with", "node", as_set)

    def of_quarantined(self, node: Node) -> Review | None:
        values = {"space": self._sql.space(node.owner, node.chat), "content": node.content, "type": node.type}
        rows = self._sql.rows("review_of_held", values)
        return self.get(Scope.of(node.owner, node.chat), rows[0][0]) if rows else None


class Leases(Group):
    """Leases: which process does a job that only one may do at a time. A lease expires, and no truth depends on it."""

    def take(self, name: str, holder: str, *, now: int, until: int, is_gone: Callable[[str], bool]) -> bool:
        values = {"name": name, "holder": holder, "now": now, "until": until}
        if self._sql.rows("lease_take", values):
            return True
        for (other,) in self._sql.rows("lease_holder", {"name": name}):
            if is_gone(other):
                self.drop(name, other)
                return bool(self._sql.rows("lease_take", values))
        return False

    drop = asks("lease_drop", "name holder", nothing)


_KEPT_MS = 30 * 86_400_000


class Proposals(Group):
    """Replays that may be accepted. They are derived data: a lost one can be run again, and any erasure deletes all."""

    def put(self, run_id: str, *, space: int, at: int, body: str) -> None:
        self._sql.rows("proposals_drop", {"before": at - _KEPT_MS})
        self._sql.rows("proposal_put", {"id": run_id, "space": space, "at": at, "body": body})

    drop = asks("proposals_remove", "ids", nothing)

    def body(self, scope: Scope, run_id: str) -> str | None:
        if not isinstance(run_id, str) or not run_id.isprintable():
            return None
        values = {"id": run_id, "part": part_of_id(run_id), "spaces": json.dumps(self._sql.visible(scope))}
        found = self._sql.rows("proposal_by_id", values)
        return str(found[0][0]) if len(found) == 1 else None


_given = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_LAST_ID = "~"
_DROPPED = {"setup": "{}", "given": "[]", "left_out": "[]"}


def _receipt(row: Row) -> Receipt:
    asked, setup, given, left_out = map(json.loads, row[7:])
    return Receipt(
        id=row[0],
        owner=row[1],
        chat=row[2],
        trust=row[3],
        verb=row[4],
        at=from_ms(row[5]),
        commit=row[6],
        question=asked.pop("text", None),
        asked=asked,
        setup=setup,
        given=tuple(
            Given(
                id=id_,
                score=score,
                section=section,
                why=tuple(Share(strategy=name, rank=rank, raw=raw, share=share) for name, rank, raw, share in why),
            )
            for id_, score, section, why in given
        ),
        left_out=tuple(LeftOut(id=id_, reason=reason) for id_, reason in left_out),
    )


class Receipts(Group):
    """What callers were given, as ids: only the answer to a standing question contains text of a memory."""

    def put(self, receipt: Receipt) -> None:
        asked = {} if receipt.question is None else {"text": receipt.question, **receipt.asked}
        given = [
            (each.id, each.score, each.section, [(why.strategy, why.rank, why.raw, why.share) for why in each.why])
            for each in receipt.given
        ]
        left_out = [(each.id, each.reason) for each in receipt.left_out]
        owner, chat = _home(receipt.owner, receipt.chat)
        space = self._sql.space(owner, chat)
        if space is None:
            space = int(self._sql.value("space_insert", {"owner": owner, "chat": chat}))
        row = {
            "id": receipt.id,
            "space": space,
            "in_chat": receipt.chat,
            "trust": receipt.trust,
            "verb": receipt.verb,
            "at": to_ms(receipt.at),
            "commit_number": receipt.commit,
            "setup": _given(receipt.setup),
        }
        held = self._left([(receipt.id, receipt.verb, _given(asked), row["setup"], _given(given), _given(left_out))])
        self._sql.rows("receipt_put", {**row, **held[0]})

    def get(self, scope: Scope, receipt_id: str) -> Receipt | None:
        if not isinstance(receipt_id, str) or not receipt_id.isprintable():
            return None
        values = {"id": receipt_id, "part": part_of_id(receipt_id), "space": self._space(scope)}
        rows = self._sql.rows("receipt_by_id", values)
        return _receipt(rows[0]) if len(rows) == 1 or (rows and rows[0][0] == receipt_id) else None

    def listed(self, scope: Scope, *, before: str | None, most: int) -> list[Receipt]:
        values = {"space": self._space(scope), "before": before or _LAST_ID, "most": most}
        return [*map(_receipt, self._sql.rows("receipts_listed", values))]

    def standing(self, scope: Scope) -> list[Receipt]:
        return [*map(_receipt, self._sql.rows("receipts_standing", {"space": self._space(scope)}))]

    def answer(self, receipt: Receipt) -> bool:
        given = _given([(each.id, each.score, each.section, ()) for each in receipt.given])
        held = self._left([(receipt.id, receipt.verb, "{}", _given(receipt.setup), given, "[]")])[0]
        row = {"at": to_ms(receipt.at), "commit_number": receipt.commit, "setup": held["setup"], "given": held["given"]}
        return bool(self._sql.rows("receipt_answer", {"id": receipt.id, **row}))

    unanswer = asks("receipts_unanswer", "space", nothing)

    def expire(self, scope: Scope, *, before: int) -> int:
        return len(self._sql.rows("receipts_expire", {"space": self._space(scope), "before": before}))

    def _space(self, scope: Scope) -> int | None:
        found: int | None = self._sql.space(*_home(scope.owner, scope.chat or ""))
        return found

    def asked(self, space: int) -> list[tuple[str, str, list[str]]]:
        rows = self._sql.rows("receipts_asked", {"space": space})
        return [
            (id_, "\n".join(texts_in(json.loads(asked))), [each[0] for each in (*json.loads(given), *json.loads(left))])
            for id_, asked, given, left in rows
        ]

    def blank(self, ids: Iterable[str]) -> None:
        wanted = set(ids)
        for id_, verb, _, setup, given, left_out in self._sql.rows("receipts_all") if wanted else ():
            if id_ in wanted:
                kept = _DROPPED if verb == STANDING else {"setup": setup, "given": given, "left_out": left_out}
                self._sql.rows("receipt_rewrite", {"id": id_, "asked": "{}", **kept})

    def sweep(self) -> None:
        rows = self._sql.rows("receipts_all")
        for (id_, _, asked, *held), left in zip(rows, self._left(rows), strict=True):
            left["asked"] = asked
            if tuple(left.values()) != (id_, asked, *held):
                self._sql.rows("receipt_rewrite", left)

    def _left(self, rows: Sequence[Row]) -> list[dict[str, str]]:
        """Return what may stay of receipts (id, verb, asked, setup, given, left out): no ids that are gone, no
        questions that led to them, and no standing answers that depend on them.
        """
        parsed = [(*row[:4], json.loads(row[4]), json.loads(row[5])) for row in rows]
        named = {each[0] for row in parsed for listed in row[4:] for each in listed}
        known = as_set(self._sql.rows("ids_known", {"ids": json.dumps(sorted(named))})) if named else named
        found = []
        for id_, verb, asked, setup, *lists in parsed:
            kept = [[each for each in listed if each[0] in known] for listed in lists]
            if kept != lists:
                asked, setup = "{}", "{}" if verb == STANDING else setup
            found.append(
                {"id": id_, "asked": asked, "setup": setup, "given": _given(kept[0]), "left_out": _given(kept[1])}
            )
        return found


def _home(owner: str, chat: str) -> tuple[str, str]:
    """Return the owner and chat of the space that holds a caller's receipts."""
    return (owner, "") if owner else ("", chat)


class Evidence(Group):
    """Sources of derived memories. A memory rests on a node if it has a `derived_from` edge to the node."""

    learnt_from = asks(
        "learnt_already", "owner chat content evidence least", row_as(lambda row: LearntFact(row[0], bool(row[1])))
    )
    count = asks("rests_on_count", "node among", first)
    resting_on = asks("resting_on", "evidence most", column)
    reflections_on = asks("reflections_on", "nodes", column)

    dismissed = asks(
        "forgotten_like",
        "owner chat type content evidence",
        rows_as(lambda row: ClosedFact(row[0], row[1], bool(row[2]))),
    )
