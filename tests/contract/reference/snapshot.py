"""Questions to a state: every one a comprehension over rows, grouped as the storage port groups them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ricordo.clock import from_ms, shortens, to_ms
from ricordo.model import BY_AGENT, Chat, Commit, Entity, Node, Receipt, Scope, Stats
from ricordo.storage.candidates import CandidateQuery, CandidateSet, Shortlist
from ricordo.storage.values import (
    STANDING,
    ChangeEvent,
    EmbeddingModel,
    Everything,
    Floor,
    FormerText,
    Holdings,
    NewVectors,
    Unembedded,
    texts_in,
)
from tests.contract.reference.apply import Members, visible
from tests.contract.reference.candidates import Search, shortlist
from tests.contract.reference.conversations import Reviews, Runs, Sessions, is_document
from tests.contract.reference.erasure import Erasure
from tests.contract.reference.ledger import Ledger
from tests.contract.reference.memories import Evidence, Lifecycle, Nodes
from tests.contract.reference.people import Entities, Graph, Mentions
from tests.contract.reference.rows import Group, at_of, commit_of, has_expired, node_of, version_of, whole_of
from tests.contract.reference.suppression import Suppression
from tests.contract.reference.tables import TRUTH, Row, State
from tests.contract.reference.terms import terms_of

Keys = NDArray[np.int64]
T = TypeVar("T")


PROPOSAL_MS = 30 * 86_400_000


class History(Group):
    """Commits, and the versions of what they changed."""

    def commits(self, scope: Scope, *, before: int | None, most: int) -> list[Commit]:
        sees = self._sees(scope)
        rows = [row for row in self._state.commits.values() if sees(row) and (before is None or row["seq"] < before)]
        return [commit_of(row) for row in sorted(rows, key=lambda row: -row["seq"])[:most]]

    def versions(self, node: Node) -> list[tuple[Node, Commit | None]]:
        now = self._state.tables["nodes"][(node.key,)]
        former = [row for _, row in self._state.versions("nodes", (node.key,)) if row is not None and row != now]
        whose: Any = {name: getattr(node, name) for name in ("owner", "chat", "session", "about")}
        was = [(version_of(row, **whose), row["commit_seq"]) for row in former]
        return [*((each, self.get(seq)) for each, seq in was), (node, self.commit_of(node.key))]

    def recorded(self, nodes: Sequence[int]) -> dict[int, Commit]:
        first = {key: next(self._state.versions("nodes", (key,)), None) for key in nodes}
        made = {key: found[1]["commit_seq"] for key, found in first.items() if found and found[1]}
        return {key: commit_of(self._state.commits[seq]) for key, seq in made.items()}

    def get(self, seq: int) -> Commit | None:
        return commit_of(self._state.commits[seq]) if seq in self._state.commits else None

    def made(self, seq: int) -> Commit:
        return commit_of(self._state.commits[seq])

    def events(self, *, after: int, most: int) -> list[ChangeEvent]:
        found = []
        for seq, row in sorted(self._state.commits.items()):
            if seq > after and len(found) < most:
                space = self._state.tables["spaces"][(row["space"],)]
                who = {name: row[name] for name in ("actor", "origin")} | {
                    "owner": space["owner"],
                    "chat": space["chat"],
                }
                found.append(ChangeEvent(commit=seq, kinds=self._kinds(seq), **who))
        return found

    def _kinds(self, seq: int) -> frozenset[str]:
        """The tables that differ from before a commit, and those of rows that it wrote."""
        before, then = self._state.past[seq - 1], self._state.past[seq]
        wrote = {name for name in TRUTH if any(row["commit_seq"] == seq for row in then[name].values())}
        return frozenset(wrote | {name for name in TRUTH if before[name].keys() - then[name].keys()})

    def first(self, scope: Scope) -> Commit | None:
        return next(iter(reversed(self.commits(scope, before=None, most=1 << 30))), None)

    def seen(self, scope: Scope) -> int:
        sees = self._sees(scope)
        return max((seq for seq, row in self._state.commits.items() if sees(row)), default=0)

    def next_commit(self) -> int:
        return len(self._state.commits) + 1

    def commit_of(self, key: int) -> Commit:
        return commit_of(self._state.commits[self._state.tables["nodes"][(key,)]["commit_seq"]])

    def erasures(self, commits: Iterable[int]) -> list[int]:
        asked = set(commits)
        return sorted(row["commit_seq"] for row in self._state.all("erasures") if row["commit_seq"] in asked)

    def ledger(self) -> Ledger:
        return Ledger(self._state)


class Models(Group):
    """Embedding models. What lacks a vector is looked for from the beginning each time."""

    def known(self) -> list[EmbeddingModel]:
        return [EmbeddingModel(**row) for row in self._state.all("models")]

    def adopt(self, *, name: str, dimension: int, spec: str) -> EmbeddingModel:
        mine = [row for row in self._state.all("models") if (row["name"], row["dimension"]) == (name, dimension)]
        active = [row for row in self._state.all("models") if row["state"] == "active"]
        state = "active" if not active or active == mine else "coming"
        for row in self._state.all("models"):
            if row["state"] == "coming" and row not in mine:
                self._state.put("models", {**row, "state": "retiring"})
        key = mine[0]["key"] if mine else self._state.next_key("models")
        row = {"key": key, "name": name, "dimension": dimension, "spec": spec, "state": state}
        self._state.put("models", {**row, "spec": mine[0]["spec"]} if mine else row)
        return EmbeddingModel(**row)

    def switch(self, coming: int) -> bool:
        if Vectors(self._state).lacking(coming, after=0, most=1):
            return False
        for row in self._state.all("models"):
            if row["key"] == coming or row["state"] == "active":
                self._state.put("models", {**row, "state": "active" if row["key"] == coming else "retiring"})
        return True

    def progress(self, model: int) -> tuple[int, int, tuple[int, int]]:
        return 0, 0, (0, 0)

    def note_progress(self, model: int, after: int, removals: int) -> None:
        """Nothing is noted: the next opening looks at everything again."""

    def lost_since(self, removal: int) -> tuple[int, int | None]:
        return 0, 1

    def dropped_below(self) -> int:
        return 0

    def drop_removals(self) -> int:
        return 0

    def centres_due(self, model: int) -> list[tuple[int, str]]:
        return []

    def drop_retired(self) -> bool:
        retired = {row["key"] for row in self._state.drop("models", lambda row: row["state"] == "retiring")}
        self._state.drop("vectors", lambda row: row["model"] in retired)
        return bool(retired)


class Vectors(Group):
    """Vectors of nodes."""

    def lacking(self, model: int, *, after: int, most: int) -> list[Unembedded]:
        vectors = self._state.tables["vectors"]
        rows = self._live(lambda row: row["key"] > after and (row["key"], model) not in vectors)
        return [Unembedded(row["key"], row["content"], row["speaker"]) for row in rows[:most]]

    def of(self, model: int, keys: Iterable[int]) -> dict[int, Any]:
        vectors = self._state.tables["vectors"]
        return {key: vectors[(key, model)]["new"].vector for key in keys if (key, model) in vectors}

    def put(self, model: int, dimension: int, made: Sequence[NewVectors]) -> int | None:
        left = None
        for new in made:
            row = self._state.get("nodes", new.key)
            if row is not None and row["content"] == new.content and self._state.get("models", model) is not None:
                self._state.put("vectors", {"node": new.key, "model": model, "new": new})
            elif left is None:
                left = new.key
        return left

    def compact(self) -> bool:
        return False

    def recentre(self, model: int, dimension: int) -> bool:
        return False


class Upkeep(Group):
    """There is none."""

    def is_due(self) -> bool:
        return False

    def step(self) -> bool:
        return False


class Export(Group):
    """What a caller takes along."""

    def holdings(self, scope: Scope, *, now: int) -> Holdings:
        sees = self._sees(scope)
        rows = self._live(lambda row: row["type"] != "episodic" and sees(row) and not has_expired(row, now))
        rows.sort(key=lambda row: (row["event_time"], row["key"]))
        return Holdings(
            facts=[node_of(self._state, row) for row in rows],
            entities={entity.id: entity for entity in self._entities(scope)},
            relations=self._relations(scope),
        )

    def _entities(self, scope: Scope) -> tuple[Entity, ...]:
        keys = [row["key"] for row in self._state.all("entities", lambda row: row["closed_at"] is None)]
        return Entities(self._state).by_key(scope, keys)

    def _relations(self, scope: Scope) -> list[tuple[str | None, str, str]]:
        sees = self._sees(scope)
        rows = self._state.all(
            "relations", lambda row: sees(row) and row["closed_at"] is None and row["valid_until"] is None
        )
        found = []
        for row in rows:
            target = whole_of(self._state, row["target"])
            source = None if row["source"] is None else whole_of(self._state, row["source"])
            if target["closed_at"] is None and source != target:
                found.append((source and source["id"], row["predicate"], target["id"]))
        return found

    def everything(self, scope: Scope) -> Everything:
        sees, nodes = self._sees(scope), self._state.tables["nodes"]
        edges = self._state.all("edges", lambda row: row["closed_at"] is None)
        edges.sort(key=lambda row: (row["source"], row["target"]))
        return Everything(
            nodes=[node_of(self._state, row) for row in self._state.all("nodes", sees)],
            entities=self._entities(scope),
            relations=self._relations(scope),
            edges=[
                (self._id(row["source"]), row["relation_type"], self._id(row["target"]))
                for row in edges
                if sees(nodes[(row["source"],)]) and sees(nodes[(row["target"],)])
            ],
        )


class Statistics(Group):
    """Figures about a caller's memories."""

    def size(self, scope: Scope, shelves: Sequence[str]) -> tuple[int, int]:
        sees = self._sees(scope)
        rows = self._live(lambda row: row["shelf"] in shelves and sees(row))
        return len(rows), sum(len(row["content"]) for row in rows)

    def chats(self, scope: Scope, owner: str) -> list[Chat]:
        found = []
        for space in self._state.all("spaces", lambda row: row["owner"] == ""):
            key = space["key"]
            commits = [each for each in self._state.commits.values() if each["space"] == key]
            members = self._state.all("members", lambda row, key=key: row["space"] == key)
            is_own = not members and any(each["actor"] in (owner, owner + BY_AGENT) for each in commits)
            if not commits or not (is_own or key in visible(self._state, scope)):
                continue
            kinds = [row["type"] == "episodic" for row in self._live(lambda row, key=key: row["space"] == key)]
            found.append(
                Chat(
                    name=space["chat"],
                    messages=sum(kinds),
                    facts=len(kinds) - sum(kinds),
                    last_at=from_ms(commits[-1]["at"]),
                )
            )
        return sorted(sorted(found, key=lambda each: each.name), key=lambda each: each.last_at, reverse=True)

    def _is_known(self, session: Row) -> bool:
        """Return whether more is known of a session than what is quarantined."""
        said = self._state.all("nodes", lambda row: row["session"] == session["key"])
        return not said or any(row["closed_reason"] != "quarantined" for row in said)

    def summary(self, scope: Scope, *, whole_store: bool) -> Stats:
        sees, state = self._sees(scope), self._state
        nodes = self._live(sees)
        sessions = state.all("sessions", lambda row: sees(row) and self._is_known(row) and not is_document(row))
        models = {model.state: model for model in Models(state).known()}
        active, coming = models.get("active"), models.get("coming")
        edges = self._edges(nodes)
        times = [row["event_time"] for row in nodes]
        embedded = {
            each: sum((row["key"], each.key) in state.tables["vectors"] for row in nodes) for each in models.values()
        }
        decayed = Lifecycle(state).last_decay(scope)
        held = state.all("reviews", lambda row: row["kind"] == "quarantine" and row["decided_at"] is None and sees(row))
        return Stats(
            nodes=dict(Counter(row["type"] for row in nodes)),
            categories=dict(Counter(row["category"] for row in nodes if row["category"] is not None)),
            closed=len(self._closed(scope)),
            edges=edges,
            edges_per_node=sum(edges.values()) / max(1, len(nodes)),
            orphans=self._orphans(nodes),
            entities=len(state.all("entities", lambda row: row["closed_at"] is None and sees(row))),
            sessions=len(sessions),
            sessions_waiting=sum(row["consolidated_at"] is None for row in sessions),
            last_consolidation=at_of(max((row["consolidated_at"] or 0 for row in sessions), default=0) or None),
            last_decay=at_of(decayed),
            embedder=active.name if active else None,
            embedded=embedded[active] if active else 0,
            embedding_missing=len(nodes) - embedded[active] if active else 0,
            next_embedder=coming.name if coming else None,
            next_embedded=embedded[coming] if coming else 0,
            commits=sum(sees(row) for row in state.commits.values()),
            size_mb=0.0,
            oldest=at_of(min(times, default=None)),
            newest=at_of(max(times, default=None)),
            quarantined=sum(state.tables["nodes"][(row["newer"],)]["closed_reason"] == "quarantined" for row in held),
        )

    def _edges(self, nodes: list[Row]) -> dict[str, int]:
        """Asserted edges are open ones from any memory the caller sees; temporal ones follow from sessions."""
        spaces = {row["space"] for row in nodes}
        everything = self._state.tables["nodes"]
        edges = self._state.all(
            "edges", lambda row: row["closed_at"] is None and everything[(row["source"],)]["space"] in spaces
        )
        said = [row["session"] for row in nodes if row["type"] == "episodic" and row["session"] is not None]
        counts = Counter(row["relation_type"] for row in edges)
        counts["temporal"] = len(said) - len(set(said))
        return {kind: count for kind, count in counts.items() if count}

    def _orphans(self, nodes: list[Row]) -> int:
        linked = {row["node"] for table in ("subjects", "found_mentions") for row in self._state.all(table)}
        edges = self._state.all("edges", lambda row: row["closed_at"] is None)
        linked |= {row[end] for row in edges for end in ("source", "target")}
        return sum(row["session"] is None and row["key"] not in linked for row in nodes)

    def _closed(self, scope: Scope) -> list[Row]:
        sees = self._sees(scope)
        return self._state.all(
            "nodes", lambda row: row["closed_at"] is not None and row["closed_reason"] != "quarantined" and sees(row)
        )

    def closed(self, scope: Scope) -> dict[str, int]:
        return dict(Counter(row["closed_reason"] for row in self._closed(scope)))

    def closed_keys(self, scope: Scope, reason: str | None, *, limit: int) -> list[int]:
        rows = [row for row in self._closed(scope) if reason in (None, row["closed_reason"])]
        rows.sort(key=lambda row: (row["closed_at"], row["key"]), reverse=True)
        return [row["key"] for row in rows[:limit]]

    def floor(self, scope: Scope, *, model: int, rule: int) -> Floor | None:
        row = self._state.get("floors", tuple(visible(self._state, scope)), model)
        return row["floor"] if row is not None and row["rule"] == rule else None

    def put_floor(self, scope: Scope, floor: Floor, *, rule: int) -> None:
        spaces = tuple(visible(self._state, scope))
        self._state.put("floors", {"spaces": spaces, "model": floor.model, "rule": rule, "floor": floor})


class Leases(Group):
    """Who does a job that only one process is to do at a time."""

    def take(self, name: str, holder: str, *, now: int, until: int, is_gone: Callable[[str], bool]) -> bool:
        row = self._state.get("leases", name)
        if row is not None and row["holder"] != holder and row["until"] >= now and not is_gone(row["holder"]):
            return False
        self._state.put("leases", {"name": name, "holder": holder, "until": until})
        return True

    def drop(self, name: str, holder: str) -> None:
        self._state.drop("leases", lambda row: (row["name"], row["holder"]) == (name, holder))


class Proposals(Group):
    """Replays of runs that may be accepted."""

    def put(self, run_id: str, *, space: int, at: int, body: str) -> None:
        self._state.drop("proposals", lambda row: row["at"] < at - PROPOSAL_MS)
        self._state.put("proposals", {"id": run_id, "space": space, "at": at, "body": body})

    def drop(self, ids: Iterable[str]) -> None:
        wanted = set(ids)
        self._state.drop("proposals", lambda row: row["id"] in wanted)

    def body(self, scope: Scope, run_id: str) -> str | None:
        sees = self._sees(scope)
        rows = self._state.all("proposals", lambda row: sees(row) and shortens(run_id, row["id"]))
        return rows[0]["body"] if len(rows) == 1 else None


class Receipts(Group):
    """What callers were given. Each row holds the receipt whole."""

    def put(self, receipt: Receipt) -> None:
        owner, chat = (receipt.owner, "") if receipt.owner else ("", receipt.chat)
        space = self._state.make_space(owner, chat)
        if self._state.get("receipts", receipt.id) is None:
            self._state.put("receipts", {"id": receipt.id, "space": space, "receipt": self._left(receipt, blanks=True)})

    def standing(self, scope: Scope) -> list[Receipt]:
        return [each for each in reversed(self._own(scope, standing=True)) if each.question is not None]

    def answer(self, receipt: Receipt) -> bool:
        row = self._state.get("receipts", receipt.id)
        if row is None or row["receipt"].verb != STANDING or row["receipt"].question is None:
            return False
        left = self._left(receipt, blanks=False)
        news = {"at": left.at, "commit": left.commit, "setup": left.setup, "given": left.given}
        self._state.put("receipts", {**row, "receipt": replace(row["receipt"], **news)})
        return True

    def unanswer(self, space: int) -> None:
        for row in self._seen_from(space):
            if row["receipt"].verb == STANDING:
                self._state.put("receipts", {**row, "receipt": replace(row["receipt"], setup={})})

    def _left(self, receipt: Receipt, *, blanks: bool) -> Receipt:
        tables = [self._state.tables, *self._state.past]
        held = {row["id"] for each in tables for name in ("nodes", "entities") for row in each[name].values()}
        if all(each.id in held for each in (*receipt.given, *receipt.left_out)):
            return receipt
        given = tuple(each for each in receipt.given if each.id in held)
        left_out = tuple(each for each in receipt.left_out if each.id in held)
        asked = {"question": None, "asked": {}} if blanks else {}
        setup = {} if receipt.verb == STANDING else receipt.setup
        return replace(receipt, given=given, left_out=left_out, setup=setup, **asked)

    def _own(self, scope: Scope, *, standing: bool = False) -> list[Receipt]:
        space = self._state.space(scope.owner, "") if scope.owner else self._state.space("", scope.chat or "")
        rows = self._state.all("receipts", lambda row: row["space"] == space)
        return [row["receipt"] for row in reversed(rows) if (row["receipt"].verb == STANDING) == standing]

    def _seen_from(self, space: int) -> list[Row]:
        chat = self._state.tables["spaces"][(space,)]["chat"]
        members = self._state.all("members", lambda row: row["space"] == space)
        own = {space, *(self._state.space(row["member"], "") for row in members)}
        return self._state.all("receipts", lambda row: row["space"] in own or (chat and row["receipt"].chat == chat))

    def get(self, scope: Scope, receipt_id: str) -> Receipt | None:
        found = [each for each in self._own(scope) if shortens(receipt_id, each.id)]
        return found[0] if len(found) == 1 else None

    def listed(self, scope: Scope, *, before: str | None, most: int) -> list[Receipt]:
        return [each for each in self._own(scope) if before is None or each.id < before][:most]

    def expire(self, scope: Scope, *, before: int) -> int:
        dropped = (each for each in self._own(scope, standing=True) if each.question is None)
        old = {each.id for each in (*self._own(scope), *dropped) if to_ms(each.at) < before}
        return len(self._state.drop("receipts", lambda row: row["id"] in old))

    def asked(self, space: int) -> list[tuple[str, str, list[str]]]:
        found = [row["receipt"] for row in self._seen_from(space) if row["receipt"].question is not None]
        named = ([one.id for one in (*each.given, *each.left_out)] for each in found)
        texts = ("\n".join([each.question, *texts_in(each.asked)]) for each in found)
        return list(zip((each.id for each in found), texts, named, strict=True))

    def blank(self, ids: Iterable[str]) -> None:
        for id_ in set(ids):
            row = self._state.tables["receipts"][(id_,)]
            blank = replace(row["receipt"], question=None, asked={})
            if blank.verb == STANDING:
                blank = replace(blank, setup={}, given=(), left_out=())
            self._state.put("receipts", {**row, "receipt": blank})

    def sweep(self) -> None:
        for row in self._state.all("receipts"):
            self._state.put("receipts", {**row, "receipt": self._left(row["receipt"], blanks=False)})


class Snapshot:
    """One moment of a store, its questions grouped by subject."""

    generation = 0
    is_past = False

    def __init__(self, state: State) -> None:
        self.state = state
        self.nodes = Nodes(state)
        self.members = Members(state)
        self.entities = Entities(state)
        self.graph = Graph(state)
        self.sessions = Sessions(state)
        self.reviews = Reviews(state)
        self.runs = Runs(state)
        self.history = History(state)
        self.evidence = Evidence(state)
        self.vectors = Vectors(state)
        self.upkeep = Upkeep(state)
        self.lifecycle = Lifecycle(state)
        self.mentions = Mentions(state)
        self.suppression = Suppression(state)
        self.models = Models(state)
        self.statistics = Statistics(state)
        self.export = Export(state)
        self.leases = Leases(state)
        self.proposals = Proposals(state)
        self.receipts = Receipts(state)
        self.erasure = Erasure(state)

    def space(self, owner: str, chat: str) -> int | None:
        return self.state.space(owner, chat)

    def visible(self, scope: Scope) -> tuple[int, ...]:
        return tuple(visible(self.state, scope))

    def current(self, now: int) -> int:
        return now

    def until(self, moment: float, work: Callable[[], T]) -> T:
        if time.monotonic() >= moment:
            raise TimeoutError
        return work()

    def together(self, *reads: Callable[[], Any]) -> list[Any]:
        return [read() for read in reads]

    def candidates(self, query: CandidateQuery) -> CandidateSet:
        return Search(self, query).answer()

    def shortlist(self, scope: Scope, keys: Sequence[int], *, archived: bool, now: int, model: int = 0) -> Shortlist:
        return shortlist(self, scope, keys, archived=archived, now=now, model=model)

    def load_vectors(self, scope: Scope, shelves: Sequence[str]) -> None:
        """Everything is in memory."""

    def load_more_vectors(self) -> bool:
        return False

    def load_turns(self, scope: Scope, *, ahead: bool = False) -> bool:
        return True


class PastSnapshot(Snapshot):
    """The store as it was after a commit; `at` counts as now."""

    is_past = True

    def __init__(self, state: State, *, today: State, commit: int, at: int) -> None:
        super().__init__(state)
        self.today = Snapshot(today)
        self.commit_number = commit
        self.at = at

    def current(self, now: int) -> int:
        return self.at

    @property
    def altered(self) -> dict[int, FormerText]:
        columns = ("content", "speaker", "tags", "space")
        found = {}
        for row in self.state.all("nodes"):
            now = self.today.state.get("nodes", row["key"])
            if now is None or any(now[name] != row[name] for name in columns):
                tags = json.dumps(list(row["tags"]), ensure_ascii=False)
                found[row["key"]] = FormerText(row["content"], row["speaker"], tags, row["space"])
        return found

    def holders(self, scope: Scope, term: str) -> set[int]:
        spaces = visible(self.state, scope)
        rows = self.state.all("nodes", lambda row: row["space"] in spaces and term in terms_of(row))
        return {row["key"] for row in rows}

    def closed_since(self, keys: Keys) -> Keys:
        asked = set(keys.tolist())
        rows = self.today.state.all("nodes", lambda row: row["key"] in asked and row["closed_at"] is not None)
        return np.array([row["key"] for row in rows], np.int64)

    def similar(
        self, scope: Scope, vectors: Mapping[int, Any], *, among: Keys, shelves: Sequence[str], most: int
    ) -> dict[int, float]:
        """Vectors are no part of the reference."""
        return {}
