"""Questions about sessions, reviews and runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, get_args

from ricordo.clock import from_ms
from ricordo.model import DOCUMENT, Conversation, ModelUse, Node, Pause, Review, Run, RunItem, RunState, Scope, Session
from ricordo.storage.database.runs import INTERRUPTED
from ricordo.storage.values import Failure, MessagePairs, Waiting
from tests.contract.reference.memories import Nodes
from tests.contract.reference.rows import Group, at_of, has_expired, node_of
from tests.contract.reference.tables import Row

LATEST_WAITING = 200


def _conversation(session: Session, times: list[int], *, first: int) -> Conversation:
    return Conversation(
        id=session.id,
        messages=len(times),
        begun_at=from_ms(min(times)),
        last_at=from_ms(max(times)),
        ended_at=session.ended_at,
        consolidated_at=session.consolidated_at,
        summary=session.summary,
        owner=session.owner,
        chat=session.chat,
        key=first,
    )


def _cost(rows: list[Row]) -> float | None:
    costs = [row["cost"] for row in rows if row["cost"] is not None]
    return sum(costs) if costs else None


# rows become values


class Sessions(Group):
    """Sessions of a caller, and those that are off the record."""

    def get(self, scope: Scope, session_id: str) -> Session | None:
        sees = self._sees(scope)
        rows = self._state.all("sessions", lambda row: row["session_id"] == session_id and sees(row))
        if not rows:
            return None
        row = min(rows, key=lambda row: row["key"])
        space = self._state.tables["spaces"][(row["space"],)]
        return Session(
            key=row["key"],
            id=row["session_id"],
            first_seen_at=from_ms(row["first_seen_at"]),
            ended_at=at_of(row["ended_at"]),
            consolidated_at=at_of(row["consolidated_at"]),
            summary=row["summary"],
            owner=space["owner"],
            chat=space["chat"],
        )

    def listed(self, scope: Scope, *, most: int, session_id: str | None = None) -> list[Conversation]:
        found = []
        for row in self._state.all("sessions", self._sees(scope)):
            rows = self._state.all("nodes", lambda node, key=row["key"]: node["session"] == key)
            told = [node for node in rows if node["type"] == "episodic" and node["closed_at"] is None]
            wanted = session_id == row["session_id"] or (session_id is None and not is_document(row))
            if told and wanted:
                known, times = self.get(scope, row["session_id"]), [node["event_time"] for node in told]
                found.append(
                    (max(times), row["key"], _conversation(known, times, first=min(node["key"] for node in told)))
                )
        return [each for *_, each in sorted(found, key=lambda each: each[:2], reverse=True)][:most]

    def off_record(self, owner: str, chat: str) -> list[Pause]:
        return [_pause(row) for row in self._pauses(owner=owner) if row["chat"] in ("", chat)]

    def paused(self, owner: str) -> list[Pause]:
        return [_pause(row) for row in self._pauses(owner=owner, ended_at=None)]

    def go_off_record(self, owner: str, chat: str, session: str, *, at: int) -> None:
        place = {"owner": owner, "chat": chat, "session": session}
        if not self._pauses(**place, ended_at=None):
            self._state.put("off_record", {**place, "begun_at": at, "ended_at": None})

    def go_on_record(self, owner: str, chat: str, session: str, *, at: int, kept: str) -> None:
        for row in self._pauses(owner=owner, chat=chat, session=session, ended_at=None):
            self._state.tables["off_record"].pop((owner, chat, session, row["begun_at"]))
            self._state.put("off_record", row | {"session": kept, "ended_at": at})

    def _pauses(self, **wanted: object) -> list[Row]:
        return self._state.all("off_record", lambda row: wanted.items() <= row.items())


def _pause(row: Row) -> Pause:
    return Pause(
        chat=row["chat"], session=row["session"], begun_at=from_ms(row["begun_at"]), ended_at=at_of(row["ended_at"])
    )


def is_document(session: Row) -> bool:
    """Return whether a session holds the passages of a document."""
    return str(session["session_id"]).startswith(DOCUMENT)


class Reviews(Group):
    """Questions that wait for a decision."""

    def listed(self, scope: Scope, *, most: int, kind: str | None = None, node: int | None = None) -> list[Review]:
        sees, order = self._sees(scope), ("quarantine", "several", "replaced")
        rows = self._state.all(
            "reviews",
            lambda row: (
                sees(row)
                and row["decided_at"] is None
                and kind in (None, row["kind"])
                and node in (None, row["newer"], row["older"])
                and self._can_be_decided(row)
            ),
        )
        rows.sort(key=lambda row: (order.index(row["kind"]) if row["kind"] in order else -1, -row["key"]))
        return [self._review(scope, row) for row in rows[:most]]

    def _can_be_decided(self, row: Row) -> bool:
        newer = self._state.tables["nodes"][(row["newer"],)]
        older = self._state.get("nodes", row["older"])
        if row["kind"] == "quarantine":
            return bool(newer["closed_reason"] == "quarantined")
        assert older is not None
        if row["kind"] == "replaced":
            return newer["closed_at"] is None and older["closed_reason"] == "superseded"
        return newer["closed_at"] is None and older["closed_at"] is None

    def get(self, scope: Scope, review_id: str) -> Review | None:
        sees = self._sees(scope)
        rows = self._state.all("reviews", lambda row: row["id"] == review_id and sees(row))
        return self._review(scope, rows[0]) if rows else None

    def against(self, keys: Collection[int]) -> list[tuple[int, int, str]]:
        rows = self._state.all("reviews", lambda row: row["decided_at"] is None and row["kind"] == "conflict")
        return [(row["older"], row["newer"], row["id"]) for row in rows if row["older"] in keys]

    def decided_with(self, node: int) -> set[int]:
        rows = self._state.all(
            "reviews", lambda row: node in (row["newer"], row["older"]) and row["decided_at"] is not None
        )
        return {row[side] for row in rows for side in ("newer", "older")} - {node, None}

    def of_quarantined(self, node: Node) -> Review | None:
        scope = Scope.of(node.owner, node.chat)
        space = self._state.space(node.owner, node.chat)
        rows = self._state.all("reviews", lambda row: (row["kind"], row["space"]) == ("quarantine", space))
        for row in rows[::-1]:
            held = self._state.tables["nodes"][(row["newer"],)]
            is_same = (held["content"], held["type"]) == (node.content, node.type)
            if is_same and held["closed_reason"] in (None, "quarantined"):
                return self._review(scope, row)
        return None

    def _review(self, scope: Scope, row: Row) -> Review:
        nodes = Nodes(self._state).by_key(scope, [key for key in (row["newer"], row["older"]) if key is not None])
        space = self._state.tables["spaces"][(row["space"],)]
        return Review(
            key=row["key"],
            id=row["id"],
            kind=row["kind"],
            newer=nodes[row["newer"]],
            older=nodes.get(row["older"]),
            created_at=from_ms(row["created_at"]),
            reasons=row["reasons"],
            about=row["about"],
            decided_at=at_of(row["decided_at"]),
            decision=row["decision"],
            owner=space["owner"],
            chat=space["chat"],
        )


class Runs(Group):
    """Conversations that wait to become knowledge, and the runs that made them so."""

    def waiting(self, scope: Scope) -> list[Waiting]:
        sees = self._sees(scope)
        places: dict[tuple[int, int | None], list[Row]] = {}
        for row in self._live(lambda row: row["shelf"] == "e" and sees(row) and not self._is_passage(row)):
            places.setdefault((row["space"], row["session"]), []).append(row)
        oldest = sorted(
            places.items(),
            key=lambda each: (min(row["event_time"] for row in each[1]), min(row["key"] for row in each[1])),
        )
        return [self._waiting(*place, rows) for place, rows in oldest]

    def _waiting(self, space: int, session: int | None, rows: list[Row]) -> Waiting:
        known = self._state.get("sessions", session) or {"session_id": None, "ended_at": None}
        place = self._state.tables["spaces"][(space,)]
        return Waiting(
            owner=place["owner"],
            chat=place["chat"],
            session=known["session_id"],
            messages=len(rows),
            last_said_at=from_ms(max(row["event_time"] for row in rows)),
            last_added_at=from_ms(max(row["created_at"] for row in rows)),
            ended_at=at_of(known["ended_at"]),
        )

    def latest_waiting(self) -> list[tuple[tuple[str, str], str | None]]:
        rows = self._live(lambda row: row["shelf"] == "e" and not self._is_passage(row))[::-1][:LATEST_WAITING]
        places = dict.fromkeys((row["space"], row["session"]) for row in rows)
        return [(self._place(space), self._session_id(session)) for space, session in places]

    def _is_passage(self, row: Row) -> bool:
        session = self._state.get("sessions", row["session"])
        return session is not None and is_document(session)

    def _place(self, space: int) -> tuple[str, str]:
        row = self._state.tables["spaces"][(space,)]
        return row["owner"], row["chat"]

    def _session_id(self, session: int | None) -> str | None:
        row = self._state.get("sessions", session)
        return None if row is None else row["session_id"]

    def waiting_episodes(self, scope: Scope, place: tuple[str, str], session: str | None) -> list[Node]:
        return self._episodes(scope, place, session, lambda row: row["shelf"] == "e")

    def session_episodes(self, scope: Scope, place: tuple[str, str], session: str) -> list[Node]:
        return self._episodes(scope, place, session, lambda row: row["type"] == "episodic")

    def _episodes(
        self, scope: Scope, place: tuple[str, str], session: str | None, where: Callable[[Row], bool]
    ) -> list[Node]:
        sees, space = self._sees(scope), self._state.space(*place)
        rows = self._live(
            lambda row: (
                row["space"] == space and sees(row) and where(row) and self._session_id(row["session"]) == session
            )
        )
        rows.sort(key=lambda row: (row["event_time"], row["key"]))
        return [node_of(self._state, row) for row in rows]

    def listed(self, scope: Scope, *, most: int) -> list[Run]:
        kept = [self._run(row) for row in self._state.all("runs", self._sees(scope))[::-1]]
        runs = kept + self._unlisted(scope, {run.id for run in kept})
        return (
            sorted(runs, key=lambda run: (run.started_at, run.id), reverse=True)[:most]
            if len(runs) > len(kept)
            else kept[:most]
        )

    def get(self, scope: Scope, run_id: str) -> Run | None:
        sees, nodes = self._sees(scope), Nodes(self._state)
        for row in self._state.all("runs", lambda row: row["id"] == run_id and sees(row)):
            run = self._run(row, text=lambda node_id: getattr(nodes.get(scope, node_id), "content", ""))
            return replace(run, items=(*run.items, *self._failed_in(run_id)))
        return next((run for run in self._unlisted(scope, set()) if run.id == run_id), None)

    def _calls(self, run_id: str) -> list[Row]:
        return self._state.all("model_calls", lambda row: row["run"] == run_id)

    def _failed_in(self, run_id: str) -> tuple[RunItem, ...]:
        rows = [
            row for row in self._calls(run_id) if (row["calls"], row["outcome"]) == (0, "failed") and row["session"]
        ]
        return tuple(
            RunItem(what="failed", text=self._session_id(row["session"]), reason=row["reason"]) for row in rows
        )

    def _unlisted(self, scope: Scope, kept: set[str]) -> list[Run]:
        """Return the runs that asked a model and left nothing, latest first."""
        ids = dict.fromkeys(row["run"] for row in self._state.all("model_calls", self._sees(scope)))
        return [self._unlisted_run(each, self._calls(each)) for each in list(ids)[::-1] if each not in kept]

    def _unlisted_run(self, run_id: str, rows: list[Row]) -> Run:
        last, place = rows[-1], self._place(rows[0]["space"])
        is_over = last["outcome"] in get_args(RunState)
        sessions = dict.fromkeys(self._session_id(row["session"]) for row in rows if row["session"])
        return Run(
            id=run_id,
            kind=last["kind"],
            state=last["outcome"] if is_over else "failed",
            reason=last["reason"] if is_over else INTERRUPTED,
            model=last["model"],
            prompt=max(row["prompt"] for row in rows),
            sessions=tuple(each for each in sessions if each is not None),
            started_at=from_ms(min(row["at"] for row in rows)),
            ended_at=from_ms(max(row["at"] for row in rows)),
            tokens_in=sum(row["tokens_in"] for row in rows),
            tokens_out=sum(row["tokens_out"] for row in rows),
            cost=_cost(rows),
            owner=place[0],
            chat=place[1],
            items=self._failed_in(run_id),
        )

    def _run(self, row: Row, *, text: Callable[[str], str] = lambda node_id: "") -> Run:
        ids = {each["key"]: each["id"] for each in self._state.all("nodes")}
        owner, chat = self._place(row["space"])
        sessions = [self._session_id(key) for key in row["sessions"]]
        return Run(
            key=row["key"],
            id=row["id"],
            kind=row["kind"],
            state="done",
            model=row["model"],
            prompt=row["prompt"],
            sessions=tuple(each for each in sessions if each is not None),
            started_at=from_ms(row["started_at"]),
            ended_at=from_ms(row["ended_at"]),
            tokens_in=max(row["tokens_in"], sum(each["tokens_in"] for each in self._calls(row["id"]))),
            tokens_out=max(row["tokens_out"], sum(each["tokens_out"] for each in self._calls(row["id"]))),
            cost=row["cost"],
            owner=owner,
            chat=chat,
            items=tuple(
                RunItem(
                    what=what,
                    id=ids.get(node),
                    other=ids.get(other),
                    reason=reason,
                    evidence=tuple(ids[each] for each in evidence if each in ids),
                    text=text(ids[node]) if node in ids else "",
                )
                for what, reason, node, other, evidence in row["items"]
            ),
        )

    def failures(self, scope: Scope) -> list[Failure]:
        rows = sorted(self._state.all("failures", self._sees(scope)), key=lambda row: -row["at"])
        return [
            Failure(
                owner=self._place(row["space"])[0],
                chat=self._place(row["space"])[1],
                session=self._session_id(row["session"]),
                tries=row["tries"],
                at=from_ms(row["at"]),
                reason=row["reason"],
            )
            for row in rows
        ]

    def _key(self, place: tuple[str, str], session: str | None) -> tuple[int | None, int | None]:
        space = self._state.space(*place)
        rows = self._state.all("sessions", lambda row: (row["space"], row["session_id"]) == (space, session))
        return space, rows[0]["key"] if rows else None

    def note_failure(self, place: tuple[str, str], session: str | None, *, at: int, reason: str) -> None:
        space, key = self._key(place, session)
        tries = (self._state.get("failures", space, key) or {"tries": 0})["tries"] + 1
        self._state.put("failures", {"space": space, "session": key, "tries": tries, "at": at, "reason": reason})

    def forget_failures(self, place: tuple[str, str], session: str | None) -> None:
        self._state.tables["failures"].pop(self._key(place, session), None)

    def lease_of(self, place: tuple[str, str], session: str | None) -> str:
        space, key = self._key(place, session)
        return f"conversation {space}/{key or 0}"

    def begin_call(self, run: Run, session: str | None, *, day: str, at: int, tokens: int, most: int) -> int | None:
        space = self._state.space(run.owner, run.chat)
        rows = self._state.all("model_calls", lambda row: (row["space"], row["day"]) == (space, day))
        if most and sum(row["tokens_in"] + row["tokens_out"] for row in rows) >= most:
            return None
        return self._put_call(run, session, day=day, at=at, calls=1, tokens_in=tokens, outcome="open", reason="")

    def end_call(self, number: int, *, tokens_in: int, tokens_out: int, cost: float | None) -> None:
        row = self._state.get("model_calls", number)
        used = {"tokens_in": tokens_in, "tokens_out": tokens_out, "cost": cost, "outcome": ""}
        self._state.put("model_calls", row | used)

    def note_outcome(self, run: Run, session: str | None, *, day: str, at: int) -> None:
        self._put_call(run, session, day=day, at=at, calls=0, tokens_in=0, outcome=run.state, reason=run.reason)

    def _put_call(self, run: Run, session: str | None, **fields: Any) -> int:
        space, key = self._key((run.owner, run.chat), session)
        number = self._state.next_key("model_calls")
        told = {"run": run.id, "kind": run.kind, "model": run.model, "prompt": run.prompt}
        row = {"key": number, "space": space, "session": key, "tokens_out": 0, "cost": None, **told, **fields}
        self._state.put("model_calls", row)
        return number

    def model_use(self, scope: Scope | None, *, since: str) -> list[ModelUse]:
        sees = (lambda row: True) if scope is None else self._sees(scope)
        rows = self._state.all("model_calls", lambda row: sees(row) and row["calls"] and row["day"] >= since)
        places: dict[tuple[str, str, str, str], list[Row]] = {}
        for row in rows:
            places.setdefault((row["day"], *self._place(row["space"]), row["model"]), []).append(row)
        found = [
            ModelUse(
                day=day,
                owner=owner,
                chat=chat,
                model=model,
                calls=sum(row["calls"] for row in rows),
                tokens_in=sum(row["tokens_in"] for row in rows),
                tokens_out=sum(row["tokens_out"] for row in rows),
                cost=_cost(rows),
                runs=len({row["run"] for row in rows}),
            )
            for (day, owner, chat, model), rows in sorted(places.items())
        ]
        return sorted(found, key=lambda use: use.day, reverse=True)

    def items_of_last(self, owner: str, chat: str, kind: str) -> list[tuple[str, int | None, tuple[int, ...]]]:
        space = self._state.space(owner, chat)
        rows = self._state.all("runs", lambda row: (row["space"], row["kind"]) == (space, kind))
        return [(what, node, evidence) for row in rows[-1:] for what, _, node, _, evidence in row["items"]]

    def _extractions(self, place: tuple[str, str], session: str | None, model: str) -> list[Row]:
        space, key = self._key(place, session)
        wanted = (space, "extraction", model, () if key is None else (key,))
        return self._state.all("runs", lambda row: (row["space"], row["kind"], row["model"], row["sessions"]) == wanted)

    def extraction_of(self, place: tuple[str, str], session: str | None, *, model: str) -> str | None:
        rows = self._extractions(place, session, model)
        return rows[-1]["id"] if rows else None

    def read_by(self, place: tuple[str, str], session: str | None, *, model: str, among: Sequence[Node]) -> set[int]:
        items = [item for row in self._extractions(place, session, model) for item in row["items"]]
        return {key for what, *_, evidence in items if what == "looked" for key in evidence} & {n.key for n in among}

    def consecutive_messages(self, owner: str, chat: str, *, after: int, most: int) -> MessagePairs | None:
        space = self._state.space(owner, chat)
        said = self._live(
            lambda row: (
                row["space"] == space
                and (row["type"], row["source_role"]) == ("episodic", "user")
                and row["session"] is not None
            )
        )
        looked = [row for row in said if row["key"] > after][:most]
        pairs = []
        for row in looked:
            here = row["event_time"], row["key"]
            places = [(each["event_time"], each["key"]) for each in said if each["session"] == row["session"]]
            before = [place for place in places if place < here]
            pairs += [(max(before)[1], row["key"])] if before else []
        return MessagePairs(tuple(pairs), looked[-1]["key"]) if looked else None

    def learnt_between(self, owner: str, chat: str, *, after: int, before: int, now: int, most: int) -> list[int]:
        space = self._state.space(owner, chat)
        rows = self._live(
            lambda row: (
                row["space"] == space
                and row["type"] != "episodic"
                and row["category"] not in ("reflection", "summary")
                and after <= row["event_time"] < before
                and not has_expired(row, now)
            )
        )
        rows.sort(key=lambda row: (row["event_time"], row["key"]))
        return [row["key"] for row in rows[-most:]]
