"""Rows leave for good: from the tables, and from all that is known of the past."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ricordo.model import BY_AGENT, Reason, Scope
from ricordo.storage.values import Derived, ErasureTargets, OpenErasure, Undone, undone_rows
from tests.contract.reference.apply import note_name_gone
from tests.contract.reference.tables import (
    SHAPES,
    TRUTH,
    Key,
    Row,
    State,
    Tables,
    children,
    drop_derived,
    key_of,
    parents,
)

STAYS = frozenset(("spaces", "erasures", "erasing", "erased_ids"))
"""Tables that name a space and stay when the space is erased: they hold nothing that anybody said."""
INTRODUCED = ("add entity", "relate", "split")
"""Commits that introduce an entity on somebody's word: it stays when the memories about it go."""


class Erasure:
    """Erases rows for good, and tells what an erasure would remove."""

    def __init__(self, state: State) -> None:
        self._state = state

    def begin(self, targets: ErasureTargets, *, at: int) -> int:
        state = self._state
        targets = replace(targets, space=targets.space or state.make_space(targets.owner, ""))
        held = {row["space"] for row in state.all("nodes", lambda row: row["key"] in targets.nodes)}
        self._forget_measured({targets.space, *held}, at=at)
        number = state.next_key("erasing")
        begun = {"key": number, "space": targets.space, "kind": targets.kind, "at": at, "state": "rows"}
        state.put("erasing", begun)
        listed = {name: getattr(targets, name) for name in ("nodes", "relations", "entities", "sessions")}
        listed["spaces"] = (targets.space,) if targets.whole_space else ()
        for table, keys in listed.items():
            for key in keys:
                state.put("to_erase", {"erasing": number, "table": table, "row": key})
        if targets.whole_space:
            self._unname(targets.space, targets.owner)
        for table, key in targets.summarised:
            self._take_out(table, key)
        for row, seq in targets.former:
            self._forget_version(int(row), seq)
        return number

    def imports(self, space: int, nodes: Sequence[int]) -> list[tuple[int, str]]:
        wrote = {row["commit_seq"] for row in self._state.all("nodes", lambda row: row["key"] in nodes)}
        return [
            (seq, commit["reason"])
            for seq, commit in self._state.commits.items()
            if commit["origin"] == "import" and commit["reason"] not in ("", "import")
            if commit["space"] == space or seq in wrote
        ]

    def forget_files(self, erasing: int, imports: Collection[int]) -> None:
        for seq in imports:
            self._state.commits[seq]["reason"] = ""

    def _unname(self, space: int, owner: str) -> None:
        for commit in self._state.commits.values():
            if commit["space"] == space or commit["actor"] in (owner, owner + BY_AGENT):
                commit["actor"] = commit["reason"] = ""
        self._state.put("spaces", {"key": space, "owner": "erased", "chat": f"erased {space}"})
        self._state.drop("off_record", lambda row: row["owner"] == owner)

    def _rewrite_past(self, rewrite: Callable[[int, str, Key, Row], Row | None]) -> None:
        """Put another row in place of each row of the past, or none; then the commit that wrote it loses its words."""
        past: list[Tables] = []
        for seq, tables in enumerate(self._state.past):
            past.append({})
            for name, rows in tables.items():
                kept = {key: rewrite(seq, name, key, row) for key, row in rows.items()}
                past[-1][name] = {key: row for key, row in kept.items() if row}
                for key in rows.keys() - past[-1][name].keys():
                    self._blank(self._state.commits[rows[key]["commit_seq"]])
        self._state.past = past

    def _take_out(self, table: str, key: int) -> None:
        """A row loses its summary; former versions with another summary go."""
        now = self._state.get(table, key)
        if now is None:
            return
        fresh = {**now, "summary": None}
        self._state.put(table, fresh)

        def rewrite(seq: int, name: str, each: Key, row: Row) -> Row | None:
            if (name, each) != (table, (key,)):
                return row
            return fresh if row == now else row if row["summary"] is None else None

        self._rewrite_past(rewrite)

    def _forget_version(self, node: int, replaced: int) -> None:
        gone = self._state.past[replaced - 1]["nodes"].get((node,))
        self._rewrite_past(
            lambda seq, name, key, row: None if (name, key, row) == ("nodes", (node,), gone) and seq < replaced else row
        )

    def step(self, erasing: int, *, kind: str, at: int) -> int:
        """Erase all of one table that is noted; return how many rows, 0 when nothing is noted any more."""
        for table in ("nodes", "relations", "entities", "sessions", "spaces"):
            wanted = (erasing, table)
            noted = self._state.drop("to_erase", lambda row, wanted=wanted: (row["erasing"], row["table"]) == wanted)
            keys = [row["row"] for row in noted]
            if keys and table == "spaces":
                self._purge_space(keys[0])
            for key in keys if table != "spaces" else ():
                if self._is_needed(table, key, kind):
                    self._take_out(table, key)
                else:
                    self._purge(table, (key,), keeps_id=kind != "owner", at=at)
            if keys:
                return len(keys)
        return 0

    def _is_needed(self, table: str, key: int, kind: str) -> bool:
        """Whether something that was written since refers to what was to go along with other things."""
        if (table, kind) in (
            ("entities", "memory"),
            ("entities", "session"),
            ("sessions", "memory"),
            ("sessions", "entity"),
        ):
            users = children(self._state, table, (key,), among=TRUTH)
            return any(name != "aliases" for name, _ in users)
        return False

    def _purge_space(self, space: int) -> None:
        for table in sorted(SHAPES, key=lambda name: name != "nodes"):
            rows = [] if table in STAYS else self._state.all(table, lambda row: row.get("space") == space)
            for row in rows:
                if table in TRUTH:
                    self._purge(table, key_of(table, row), keeps_id=False, at=0)
                else:
                    self._state.drop(table, lambda each, row=row: each == row)  # type: ignore[misc]
        gone = {name: self._gone(name) for name in TRUTH if SHAPES[name].key == ("key",) and name not in STAYS}
        for table, images in gone.items():
            for key in {row["key"] for row in images if row["space"] == space}:
                self._purge(table, (key,), keeps_id=False, at=0)

    def _gone(self, table: str) -> list[Row]:
        """The versions of rows that are in the past alone, oldest first."""
        found: dict[tuple[Key, int], Row] = {}
        for tables in self._state.past:
            for key, row in tables[table].items() if tables else ():
                if key not in self._state.tables[table]:
                    found[key, row["commit_seq"]] = row
        return [*found.values()]

    def _purge(self, table: str, key: Key, *, keeps_id: bool, at: int) -> None:
        """A row and all that refers to it, now and ever."""
        row = self._state.get(table, *key)
        former = [each for each in self._gone(table) if key_of(table, each) == key] if row is None else []
        if row is None and not former:
            return
        is_there, row = row is not None, row or former[-1]
        if table == "nodes" and keeps_id:
            from tests.contract.reference.memories import hash_of

            self._state.put("erased_ids", {"space": row["space"], "id": hash_of(row["id"]), "at": at})
            self._take_out_evidence(row["id"])
        drop_derived(self._state, table, key)
        for name, child in children(self._state, table, key, among=TRUTH):
            self._purge(name, child, keeps_id=keeps_id, at=at)
        if is_there:
            del self._state.tables[table][key]
        if table == "aliases":
            note_name_gone(self._state, row)
        self._rewrite_past(lambda seq, name, each, image: None if (name, each) == (table, key) else image)

    def _blank(self, commit: Row) -> None:
        """What a person said when they made a change goes; an undo names a number only. An import names its file as
        long as a memory of it is left.
        """
        names_file = commit["origin"] == "import" and any(
            self._state.all("nodes", lambda row: row["commit_seq"] == commit["seq"])
        )
        if commit["reason"] != commit["origin"] and commit["origin"] != "undo" and not names_file:
            commit["reason"] = ""

    def _take_out_evidence(self, node_id: str) -> None:
        def without(row: Row) -> Row:
            if node_id not in row.get("evidence", ()):
                return row
            return {**row, "evidence": tuple(each for each in row["evidence"] if each != node_id)}

        for table in ("edges", "relations"):
            for row in self._state.all(table):
                self._state.put(table, without(row))
        self._rewrite_past(lambda seq, name, key, row: without(row))

    def finish(self, erasing: int, *, space: int, kind: str, at: int, actor: str) -> None:
        from tests.contract.reference.apply import put_commit

        begun = self._state.get("erasing", erasing)
        if begun is None or begun["state"] != "rows":
            return
        self._sweep()
        state = self._state
        related = {(row["space"], row["predicate"]) for row in state.all("relations")}
        state.drop("relations_to_link", lambda row: (row["space"], row["predicate"]) not in related)
        state.drop("to_link", lambda row: (row["node"],) not in state.tables["nodes"])
        self._forget_measured({space}, at=at)
        seq = len(state.commits) + 1
        state.put("erasures", {"key": erasing, "space": space, "kind": kind, "at": at, "commit_seq": seq})
        state.put("erasing", {**begun, "state": "bytes"})
        put_commit(state, space=space, reason=Reason(actor=actor, origin="erase", reason="erase"), at_ms=at)

    def _forget_measured(self, spaces: set[int], *, at: int) -> None:
        """Drop the calibrations and replays that used some spaces, and replays that ran during the erasure."""
        self._state.drop("proposals", lambda row: row["space"] in spaces or row["at"] >= at)
        self._state.drop("floors", lambda row: bool(spaces.intersection(row["spaces"])))

    def _sweep(self) -> None:
        """Former rows that had gone before, and that refer to what is nowhere any more; and what refers to these."""
        while True:
            known = {(name, key) for tables in self._state.past for name, rows in tables.items() for key in rows}

            def refers_to_nothing(table: str, row: Row, known: set[tuple[str, Key]] = known) -> bool:
                return any(parent not in known for parent in parents(table, row) if table != "entities")

            past = [
                (name, row) for tables in self._state.past for name, rows in tables.items() for row in rows.values()
            ]
            if not any(refers_to_nothing(name, row) for name, row in past):
                return
            self._rewrite_past(lambda seq, name, key, row: None if refers_to_nothing(name, row) else row)

    def unfinished(self) -> list[OpenErasure]:
        names = ("key", "space", "kind", "at", "state")
        return [OpenErasure(*(row[name] for name in names)) for row in self._state.all("erasing")]

    def end(self, erasures: Sequence[int]) -> None:
        self._state.drop("erasing", lambda row: row["key"] in erasures and row["state"] == "bytes")

    # what an erasure would remove

    def older_versions(self, node: int) -> list[int]:
        found, front = {node}, {node}
        while front:
            edges = self._state.all("edges", lambda row: row["relation_type"] == "supersedes")
            front = {row["target"] for row in edges if row["source"] in front} - found
            found |= front
        return list(found)

    def sessions(self, scope: Scope, session: str) -> list[int]:
        from tests.contract.reference.apply import visible

        spaces = visible(self._state, scope)
        rows = self._state.all("sessions", lambda row: row["session_id"] == session and row["space"] in spaces)
        return [row["key"] for row in rows]

    def nodes_in(self, sessions: Sequence[int]) -> list[int]:
        return [row["key"] for row in self._state.all("nodes", lambda row: row["session"] in sessions)]

    def members(self, entity: int) -> list[int]:
        found, front = {entity}, {entity}
        while front:
            front = {row["key"] for row in self._state.all("entities") if row["merged_into"] in front} - found
            found |= front
        return sorted(found)

    def own_names(self, entities: Sequence[int]) -> list[str]:
        def is_shared(row: Row) -> bool:
            return any(
                (other["space"], other["folded"]) == (row["space"], row["folded"])
                and other["entity"] not in entities
                and self._state.tables["entities"][(other["entity"],)]["closed_at"] is None
                for other in self._state.all("aliases")
            )

        rows = self._state.all("aliases", lambda row: row["entity"] in entities)
        return [row["alias"] for row in rows if not is_shared(row)]

    def nodes_naming(self, entities: Sequence[int]) -> set[int]:
        tables = (self._state.all("subjects"), self._state.all("found_mentions"))
        return {row["node"] for table in tables for row in table if row["entity"] in entities}

    def texts(self, space: int) -> Iterator[tuple[int, str]]:
        return ((row["key"], _written(row)) for row in self._state.all("nodes", lambda row: row["space"] == space))

    def summaries(self, space: int) -> list[tuple[str, int, str]]:
        return [
            (table, row["key"], row["summary"])
            for table in ("sessions", "entities")
            for row in self._state.all(table, lambda row: row["space"] == space and row["summary"] is not None)
        ]

    def former_texts(self, space: int) -> Iterator[tuple[str, int, str]]:
        keys = dict.fromkeys(key for tables in self._state.past for key in tables["nodes"])
        for key in keys:
            versions = list(self._state.versions("nodes", key))
            for (_, row), (replaced, _) in pairwise(versions):
                if row is not None and row["space"] == space:
                    yield str(key[0]), replaced, _written(row)

    def undone(self, spaces: Collection[int]) -> Undone:
        tables = ("nodes", "sessions", "entities", "relations")
        images = {name: [_image(row) for row in self._gone(name) if row["space"] in spaces] for name in tables}
        links = [(row["node"], "about", row["entity"]) for row in self._gone("subjects")]
        links += [(row["source"], row["relation_type"], row["target"]) for row in self._gone("edges")]
        names = [(row["entity"], row["alias"]) for row in self._gone("aliases")]
        names += [(row["key"], row["canonical_name"]) for row in images["entities"]]
        return undone_rows(images, links, names, origin=lambda seq: str(self._state.commits[seq]["origin"]))

    def derived(self, nodes: Sequence[int]) -> list[Derived]:
        edges = self._state.all("edges", lambda row: row["relation_type"] == "derived_from")
        found = []
        for row in self._state.all("nodes"):
            sources = [edge["target"] for edge in edges if edge["source"] == row["key"]]
            matching = [source for source in sources if source in nodes]
            if matching and row["category"] == "summary" and row["session"] is not None:
                matching = sources  # the summary of a conversation rests on each of its messages
            if matching:
                origin = self._made_by("nodes", row)
                found.append(Derived(row["key"], len(sources), len(matching), origin, row["id"]))
        return found

    def _made_by(self, table: str, row: Row) -> str:
        """The origin of the commit that made the first version of a row that is known."""
        return str(self._first_commit(table, row)["origin"])

    def _first_commit(self, table: str, row: Row) -> Row:
        versions = [each["commit_seq"] for _, each in self._state.versions(table, key_of(table, row)) if each]
        return self._state.commits[min(versions, default=row["commit_seq"])]

    def proposed(self, nodes: Sequence[int]) -> list[int]:
        ids = {row["id"] for row in self._state.all("nodes", lambda row: row["key"] in nodes)}
        held = self._state.all("nodes", lambda row: row["closed_reason"] == "quarantined")
        return [row["key"] for row in held if _proposed_about(row) in ids]

    def sources(self, nodes: Sequence[int]) -> list[str]:
        edges = self._state.all("edges", lambda row: row["relation_type"] == "derived_from" and row["source"] in nodes)
        targets = {row["target"] for row in edges} - set(nodes)
        return [row["id"] for row in self._state.all("nodes", lambda row: row["key"] in targets)]

    def relations(self, nodes: Sequence[int], entities: Sequence[int]) -> list[int]:
        ids = {row["id"] for row in self._state.all("nodes", lambda row: row["key"] in nodes)}
        return [
            row["key"]
            for row in self._state.all("relations")
            if row["source"] in entities
            or row["target"] in entities
            or (row["evidence"] and set(row["evidence"]) <= ids)
        ]

    def orphaned_entities(self, nodes: Sequence[int], relations: Sequence[int]) -> list[int]:
        links = [*self._state.all("subjects"), *self._state.all("found_mentions")]
        ties = self._state.all("relations")
        spoken_of = {row["entity"] for row in links if row["node"] in nodes}
        spoken_of |= {each for row in ties if row["key"] in relations for each in (row["source"], row["target"])}
        kept = {row["entity"] for row in links if row["node"] not in nodes}
        kept |= {each for row in ties if row["key"] not in relations for each in (row["source"], row["target"])}
        kept |= {row["merged_into"] for row in self._state.all("entities")}
        return [
            row["key"]
            for row in self._state.all("entities")
            if row["key"] in spoken_of - kept
            and not row["protected"]
            and self._made_by("entities", row) not in INTRODUCED
        ]

    def emptied_sessions(self, nodes: Sequence[int]) -> list[int]:
        rows = self._state.all("nodes", lambda row: row["session"] is not None)
        left = {row["session"] for row in rows if row["key"] not in nodes}
        return sorted({row["session"] for row in rows if row["key"] in nodes} - left)

    def summarised(self, nodes: Sequence[int]) -> list[tuple[str, int]]:
        sessions = {row["session"] for row in self._state.all("nodes", lambda row: row["key"] in nodes)}
        links = [*self._state.all("subjects"), *self._state.all("found_mentions")]
        entities = {row["entity"] for row in links if row["node"] in nodes}
        return [
            (table, row["key"])
            for table, keys in (("sessions", sessions), ("entities", entities))
            for row in self._state.all(table)
            if row["key"] in keys and row["summary"] is not None
        ]

    def listed(self, targets: ErasureTargets) -> Iterator[tuple[str, str]]:
        def goes(table: str) -> Callable[[Row], Any]:
            if targets.whole_space:
                return lambda row: row["space"] == targets.space
            return lambda row: row["key"] in getattr(targets, table)

        yield from ((row["type"], row["id"]) for row in self._state.all("nodes", goes("nodes")))
        yield from (("entity", row["id"]) for row in self._state.all("entities", goes("entities")))
        yield from (("relation", row["id"]) for row in self._state.all("relations", goes("relations")))
        yield from (("session", row["session_id"]) for row in self._state.all("sessions", goes("sessions")))

    def said_in_chats(self, owner: str) -> int:
        spaces = {row["key"] for row in self._state.all("spaces", lambda row: row["owner"] == "")}
        return sum(
            row["speaker"] == owner or self._first_commit("nodes", row)["actor"] in (owner, owner + BY_AGENT)
            for row in self._state.all("nodes", lambda row: row["space"] in spaces)
        )

    def changes_by(self, owner: str) -> int:
        return sum(commit["actor"] in (owner, owner + BY_AGENT) for commit in self._state.commits.values())


def _image(row: Row) -> Row:
    """A row with its lists as JSON."""
    lists = {name: json.dumps(list(row[name]), ensure_ascii=False) for name in ("tags", "evidence") if name in row}
    return {**row, **lists}


def _written(row: Row) -> str:
    """All that is written in a memory."""
    tags = json.dumps(list(row["tags"]), ensure_ascii=False, separators=(",", ":"))
    return "\n".join((row["content"], row["speaker"] or "", tags, row["attributes"]))


def _proposed_about(row: Row) -> object:
    given = json.loads(row["attributes"]).get("proposes")
    return given.get("id") if isinstance(given, dict) else None
