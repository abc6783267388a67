"""Candidates of a search, found by looking at every memory. `ricordo.storage.candidates` says what each value means.

Memories are found by words, time, entities and links; vectors are no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from math import exp
from typing import Any

import numpy as np

from ricordo.model import Scope
from ricordo.storage.candidates import (
    ALWAYS,
    ASSOCIATES_EACH,
    BY_DAYS,
    BY_ENTITY,
    BY_LINKS,
    BY_STATES,
    BY_TASKS,
    BY_TIME,
    BY_WORDS,
    CAUSAL_EDGES,
    CAUSAL_FADE,
    CAUSAL_NODES,
    COMMON_LEAST,
    COMMON_SHARE,
    ENTITY_WALK,
    EXPANDED,
    OF_A_TIME,
    REACH,
    STARTS,
    CandidateQuery,
    CandidateRows,
    CandidateSet,
    Shortlist,
    Turns,
    in_passages,
    inverse_frequency,
    open_tasks,
    spread_over,
)
from ricordo.text.analyzer import index_terms
from ricordo.text.passages import HEADER, traits_of
from tests.contract.reference.tables import Row
from tests.contract.reference.terms import besides, terms_of

Found = dict[int, float]

_NOBODY: Row = {"key": 0, "session": 0, "event_time": 0, "speaker": None}


class Search:
    """One query to one snapshot."""

    def __init__(self, snapshot: Any, query: CandidateQuery) -> None:
        self._snapshot = snapshot
        self._query = query
        self._state = snapshot.state
        self._spaces = snapshot.visible(query.scope)
        self._matching = {row["key"] for row in snapshot.nodes._matching(query.scope, query.filter)}

    def answer(self) -> CandidateSet:
        query = self._query
        total, characters = self._snapshot.statistics.size(query.scope, query.filter.shelves)
        found: dict[str, Found] = {}
        for name, find in (
            ("words", self._by_words),
            ("time", self._by_time),
            ("entity", self._by_entity),
            ("tasks", self._by_tasks),
            ("days", self._by_days),
            ("states", self._by_states),
        ):
            if name == "time" and "meaning" in query.strategies:
                found["meaning"] = {}
            if name in query.strategies:
                found[name] = find()
        for name, follow in (("causal", self._causal), ("associates", self._associates)):
            if name in query.strategies:
                found[name] = follow(found)
        most = self._most(total)
        return CandidateSet(
            total=total,
            characters=characters,
            frequencies={term: min(len(keys), most + 1) for term, keys in self._holders().items()},
            found=found,
            rows=self._rows(found),
            probe_matches=query.probe is None or query.probe in self._matching,
        )

    def _most(self, total: int) -> int:
        return max(COMMON_LEAST, int(total * COMMON_SHARE))

    def _searched(self) -> list[Row]:
        """What lies on the shelves of the query: live memories, or closed ones in the archive."""
        asked = self._query.filter
        rows: list[Row] = self._state.all(
            "nodes",
            lambda row: (
                row["space"] in self._spaces
                and row["shelf"] in asked.shelves
                and (row["closed_at"] is not None) == asked.archived
            ),
        )
        return rows

    def _holders(self) -> dict[str, list[int]]:
        terms = [(row["key"], terms_of(row)) for row in self._searched()]
        return {term: [key for key, held in terms if term in held] for term in self._query.terms}

    def _by_words(self) -> Found:
        return self._best(self._worth_by_words(), BY_WORDS)

    def _worth_by_words(self) -> Found:
        total, _ = self._snapshot.statistics.size(self._query.scope, self._query.filter.shelves)
        held = {term: keys for term, keys in self._holders().items() if keys}
        rare = {term: keys for term, keys in held.items() if len(keys) <= self._most(total)}
        sums: Found = {}
        for keys in (rare or held).values():
            for key in keys:
                sums[key] = sums.get(key, 0.0) + inverse_frequency(len(keys), total)
        return sums

    def _best(self, scores: Found, most: int) -> Found:
        kept = [key for key in scores if key in self._matching]
        return {key: scores[key] for key in sorted(kept, key=lambda key: (-scores[key], -key))[:most]}

    def _by_time(self) -> Found:
        span, query = self._query.interval, self._query
        if span is None:
            return {}
        anybody = replace(query.filter, entity=None)
        within = self._snapshot.nodes.within(query.scope, anybody, after=span[0], before=span[1], most=OF_A_TIME)
        sums, kept = self._worth_by_words(), [key for key in within.tolist() if key in self._matching]
        ranks = dict(zip(kept, spread_over(len(kept)).tolist(), strict=True))
        return dict.fromkeys(sorted(kept, key=lambda key: (-sums.get(key, 0.0), ranks[key]))[:BY_TIME], 1.0)

    def _by_entity(self) -> Found:
        worth: Found = {}
        for entity in self._query.entities if not self._query.filter.archived else ():
            for near in self._snapshot.graph.near_entity(self._query.scope, entity, walk=ENTITY_WALK):
                if near.shelf in self._query.filter.shelves:
                    worth[near.key] = near.confidence * exp(0.2 * near.score)
        return self._best(worth, BY_ENTITY)

    def _by_tasks(self) -> Found:
        if not self._query.tasks:
            return {}
        asked = open_tasks(self._query.filter)
        within = self._snapshot.nodes.within(self._query.scope, asked, after=ALWAYS[0], before=ALWAYS[1], most=BY_TASKS)
        return {key: 1.0 for key in within.tolist() if key in self._matching}

    def _by_days(self) -> Found:
        days = self._query.days
        if days is None or self._query.filter.archived:
            return {}
        found = []
        for row in self._searched():
            months, numbers, weekdays = (not terms_of(row).isdisjoint(terms) for terms in days)
            if weekdays or (months and (numbers or not days.numbers)):
                found.append(row["key"])
        return dict.fromkeys(sorted(self._matching.intersection(found), reverse=True)[:BY_DAYS], 1.0)

    def _by_states(self) -> Found:
        query = self._query
        if query.filter.archived:
            return {}
        holders = {key for term, keys in self._holders().items() if term in query.states for key in keys}
        anybody = replace(query.filter, entity=None)
        within = self._snapshot.nodes.within(query.scope, anybody, after=ALWAYS[0], before=ALWAYS[1], most=OF_A_TIME)
        latest = [key for key in within.tolist() if key in self._matching and key in holders]
        return dict.fromkeys(latest[:BY_STATES], 1.0)

    def _starts(self, found: Mapping[str, Found]) -> Found:
        starts: Found = {}
        for keys in found.values():
            for place, key in enumerate(islice(keys, STARTS)):
                starts[key] = max(1 - place / STARTS, starts.get(key, 0.0))
        return starts

    def _causal(self, found: Mapping[str, Found]) -> Found:
        front = self._starts(found)
        walked, strengths = set(front), Found()
        for _ in range(self._query.depth):
            if not front or len(walked) >= CAUSAL_NODES:
                break
            reached: Found = {}
            for step in self._snapshot.graph.causes_and_effects(self._query.scope, front, most=CAUSAL_EDGES):
                strength = CAUSAL_FADE * step.weight * front[step.origin]
                reached[step.key] = max(strength, reached.get(step.key, 0.0))
                if step.shelf in self._query.filter.shelves:
                    strengths[step.key] = max(strength, strengths.get(step.key, 0.0))
            front = {key: strength for key, strength in reached.items() if key not in walked}
            walked |= front.keys()
        return self._best(strengths, BY_LINKS)

    def _associates(self, found: Mapping[str, Found]) -> Found:
        starts, strengths = self._starts(found), Found()
        for step in self._snapshot.graph.associates(self._query.scope, starts, each=ASSOCIATES_EACH):
            if step.shelf in self._query.filter.shelves:
                strengths[step.key] = max(step.weight * starts[step.origin], strengths.get(step.key, 0.0))
        return self._best(strengths, BY_LINKS)

    # what ranking needs

    def _around(self, key: int) -> list[int]:
        """The turns one and two before a memory in its session, then those one and two after it; 0 for none."""
        here = self._state.tables["nodes"][(key,)]
        if here["session"] is None:
            return [0] * (2 * REACH)
        place = here["event_time"], key
        turns = sorted(
            (row["event_time"], row["key"])
            for row in self._state.all("nodes")
            if row["session"] == here["session"] and row["closed_at"] is None and row["space"] in self._spaces
        )
        before = [other for _, other in [turn for turn in turns if turn < place][::-1]]
        after = [other for _, other in [turn for turn in turns if turn > place]]
        return [found for side in (before, after) for found in [*side, *[0] * REACH][:REACH]]

    def _rows(self, found: Mapping[str, Found]) -> CandidateRows | None:
        candidates = {key for keys in found.values() for key in keys}
        if not candidates:
            return None
        best = islice(found.get("words", ()), EXPANDED)
        near = {other for key in list(best) for other in self._around(key)}
        chosen = sorted(candidates | (near & self._matching))
        around = {key: self._around(key) for key in chosen}
        others = sorted({other for each in around.values() for other in each} - {0} - set(chosen))
        keys = [*chosen, *others, 0]
        nearby = np.array([[keys.index(other) for other in around[key]] for key in chosen], np.intp).T
        turns, size = in_passages(self._turns(keys, nearby), len(chosen))
        linked = [self._snapshot.graph.linked_to(chosen, naming.entities) for naming in self._query.namings]
        of_passages = turns.keys[:size].tolist()
        return CandidateRows(
            turns=turns,
            size=size,
            counts=turns.counts(self._query.terms),
            cosines=np.zeros(len(turns), np.float32),
            about=np.array([[key in each for key in of_passages] for each in linked], np.bool_).reshape(-1, size),
        )

    def _turns(self, keys: list[int], nearby: Any) -> Turns:
        rows = [self._state.get("nodes", key) or _NOBODY for key in keys]
        traits = [np.frombuffer(_traits(row), "<u4") if row["key"] else np.zeros(HEADER, np.uint32) for row in rows]
        names = list(dict.fromkeys((None, *(row["speaker"] for row in rows))))
        sessions = [-row["key"] if row["session"] is None else row["session"] for row in rows]
        sizes = np.array([len(each) - HEADER for each in traits], np.intp)
        return Turns(
            keys=np.array(keys, np.int64),
            passages=np.zeros(len(keys), np.int32),
            several=np.zeros(len(keys), np.bool_),
            sessions=np.array(sessions, np.int64),
            event_times=np.array([row["event_time"] for row in rows], np.int64),
            speakers=np.array([names.index(row["speaker"]) for row in rows], np.int32),
            names=names,
            flags=np.array([each[0] for each in traits], np.uint32),
            lengths=np.array([each[1] for each in traits], np.float32),
            codes=np.concatenate([each[HEADER:] for each in traits]),
            starts=(sizes.cumsum() - sizes).astype(np.int64),
            sizes=sizes,
            nearby=nearby,
        )


def _traits(row: Row) -> bytes:
    return traits_of(row["content"], index_terms(row["content"]), besides(row), role=row["source_role"])


def shortlist(snapshot: Any, scope: Scope, keys: Any, *, archived: bool, now: int, model: int = 0) -> Shortlist:
    """Return what is known of the best candidates."""
    weights = snapshot.nodes.weights(scope, keys)
    if not archived:
        weights = {key: each for key, each in weights.items() if each.expires_at is None or each.expires_at > now}
    closed = [key for key, each in weights.items() if not each.is_live and not archived]
    successors = {key: newest for key in closed if (newest := snapshot.nodes.successor(key))}
    ranked = [*weights, *successors.values()]
    versions = [] if archived else snapshot.nodes.succession(ranked)
    newer = snapshot.nodes.weights(scope, {newer for newer, _ in versions} - {*keys})
    alive = [key for key, each in newer.items() if each.is_live and (each.expires_at is None or each.expires_at > now)]
    nodes = snapshot.nodes.by_key(scope, [*ranked, *alive])
    facts = [key for key, node in nodes.items() if node.type != "episodic"]
    lines = [] if archived else snapshot.graph.lines(facts)
    return Shortlist(
        nodes=nodes,
        weights=weights,
        shown=snapshot.suppression.shown(nodes),
        statements={key: (about, line, since) for key, about, line, since in lines},
        successors=successors,
        versions=versions,
        decided={frozenset((key, other)) for key in ranked for other in snapshot.reviews.decided_with(key)},
        evidence=snapshot.nodes.evidence(scope, facts),
        conflicts=[] if archived else snapshot.reviews.against({int(key) for key in keys}),
    )
