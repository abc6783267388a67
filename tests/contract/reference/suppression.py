"""Sentences that were forgotten or erased: they are not learnt again, and answers leave them out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ricordo.model import Node
from ricordo.storage.values import (
    MIN_GLOBAL_WORDS,
    NOBODY,
    Match,
    Withhold,
    in_voices,
    is_mark,
    of_text,
    of_wordless,
    voices_of,
    voices_of_message,
    without,
    words_said,
)
from ricordo.text.sentences import Sentence, sentences
from tests.contract.reference.tables import Row, State
from tests.contract.reference.terms import terms_of

_SPARED = range(4, 41)
"""So many words a sentence has if one word more or less makes no other sentence of it."""
_MOST_WORDS = 60
_MOST_TEXTS = 500


def _is_same(said: frozenset[str], withheld: frozenset[str]) -> bool:
    """Whether two sentences have the same words, but for one that either may have more."""
    marks = frozenset(filter(is_mark, said))
    if marks != frozenset(filter(is_mark, withheld)):
        return False
    if said == withheld:
        return True
    if said < withheld:
        return len(withheld - said) == 1 and len(withheld - marks) in _SPARED
    return said > withheld and len(said - withheld) == 1 and len(said - marks) in _SPARED


def _says(words: frozenset[str], wanted: frozenset[str], *, is_source: bool) -> bool:
    if is_source:
        return len(words & wanted) >= 0.5 * len(wanted)
    return words >= wanted and len(words) <= 2 * len(wanted) + 4


class Suppression:
    """Sentences that were forgotten or erased."""

    def __init__(self, state: State) -> None:
        self._state = state

    def withhold(self, node: Node, *, at: int) -> None:
        """Suppress what a memory says, and the sentences it came from."""
        self.withhold_row(self._state.tables["nodes"][(node.key,)], at=at)

    def withhold_row(self, row: Row, *, at: int) -> None:
        node = self._node(row)
        gone = {each["key"] for each in self._state.drop("withheld", lambda each: each["node"] == node.key)}
        self._state.drop("withheld_spans", lambda each: each["withheld"] in gone)
        self.put(row["space"], [*of_text(node, is_erased=False, spans=False), *self.sources(node, row["space"])], at=at)

    def _node(self, row: Row) -> Node:
        from tests.contract.reference.rows import node_of  # it reads rows, as this does

        return node_of(self._state, row)

    def put(self, space: int, withhold: Iterable[Withhold], *, at: int) -> None:
        """Suppress sentences from now on."""
        for each in withhold:
            number = self._state.next_key("withheld")
            row = {"key": number, "space": space, "node": each.cause, "at": at, "session": each.session}
            row |= {"is_bound": each.is_bound, "is_erased": each.is_erased, "is_shared": each.is_shared}
            self._state.put("withheld", {**row, "is_lifted": False, "readings": each.readings})
            self.put_spans([(node, start, length, number) for node, start, length in each.spans])

    def put_spans(self, spans: Sequence[tuple[int, int, int, int]]) -> None:
        """Suppress pieces of texts: (node, start, length, number of the suppressed sentence)."""
        for node, start, length, number in spans:
            if self._state.get("withheld_spans", node, start, number) is None:
                row = {"node": node, "start": start, "length": length, "withheld": number}
                self._state.put("withheld_spans", row)

    def lift(self, numbers: Collection[int]) -> None:
        """Allow what was said again; the sentences of a fact go together."""
        shared = {
            row["node"] for row in self._state.all("withheld", lambda row: row["key"] in numbers and row["is_shared"])
        }
        for row in self._state.all("withheld"):
            if row["key"] in numbers or (row["is_shared"] and row["node"] in shared):
                self._state.put("withheld", {**row, "is_lifted": True})

    def withholds(self, space: int) -> bool:
        """Return whether anything is suppressed in a space."""
        return bool(self._suppressed(space))

    def _suppressed(self, space: int) -> list[Row]:
        return self._state.all("withheld", lambda row: row["space"] == space and not row["is_lifted"])

    def _saying_it(self, space: int, sentence: Sentence, voices: Collection[str]) -> list[Row]:
        asked = [*in_voices(sentence, voices)]
        return [
            row
            for row in self._suppressed(space)
            if any(_is_same(words, reading) for words in asked for reading in row["readings"])
        ]

    def matches(
        self, space: int, text: str, *, session: str | None, said_at: int | None, voices: Iterable[str] = (NOBODY,)
    ) -> list[Match]:
        """Return the suppressed sentences of a text. Said later by a person it is new, except in its own session."""
        found, voices = [], tuple(voices)
        for sentence in sentences(text):
            rows = [
                row
                for row in self._saying_it(space, sentence, voices)
                if (not row["is_bound"] or row["session"] == session)
                and (
                    said_at is None
                    or said_at <= row["at"]
                    or (row["session"] is not None and row["session"] == session)
                )
            ]
            rows.sort(key=lambda row: not row["is_erased"])
            if rows:
                found.append(Match(sentence, rows[0]["key"], rows[0]["is_erased"]))
        return found

    def is_erased(self, space: int, node: Node, *, said_at: int | None) -> bool:
        """Return whether a message without meaningful words was erased, and not stored again later."""
        wanted = [each.words for each in of_wordless(node)]
        rows = [row for row in self._suppressed(space) if said_at is None or said_at <= row["at"]]
        return any(row["readings"][0] in wanted for row in rows)

    def said_anew(self, space: int, text: str, *, voices: Iterable[str] = (NOBODY,)) -> list[int]:
        """Return the numbers of the suppressed sentences that a text says."""
        asked = tuple(voices)
        return [row["key"] for sentence in sentences(text) for row in self._saying_it(space, sentence, asked)]

    def shown(self, nodes: Mapping[int, Node]) -> dict[int, str]:
        """Return the texts of nodes of which a part is suppressed, without that part."""
        spans: dict[int, list[tuple[int, int]]] = {}
        for row in self._state.all("withheld_spans", lambda row: row["node"] in nodes):
            cause = self._state.get("withheld", row["withheld"])
            if cause is not None and not cause["is_lifted"]:
                spans.setdefault(row["node"], []).append((row["start"], row["length"]))
        return {node: without(nodes[node].content, pieces) for node, pieces in spans.items()}

    def sources(self, node: Node, space: int) -> list[Withhold]:
        """Return the sentences a fact came from: in its sources, and in other texts that say all of it."""
        wanted: frozenset[str] = frozenset().union(*(each.words for each in sentences(node.content)))
        if node.type == "episodic" or not wanted:
            return []
        edges = self._state.all(
            "edges", lambda row: row["source"] == node.key and row["relation_type"] == "derived_from"
        )
        derived = {row["target"] for row in edges}
        asked, whose = derived | self._saying(space, wanted), voices_of(node)

        def says(row: Row) -> tuple[str, ...]:
            return voices_of_message(row["speaker"], row["source_role"], row["source_type"], owner=node.owner)

        return [
            Withhold(
                cause=node.key,
                words=words_said(each),
                voices=says(row),
                session=None
                if row["session"] is None
                else self._state.tables["sessions"][(row["session"],)]["session_id"],
                is_bound=len(each.words) < MIN_GLOBAL_WORDS,
                is_erased=False,
                is_shared=True,
                spans=((row["key"], each.start, len(each.text)),),
            )
            for row in self._state.all("nodes", lambda row: row["key"] in asked and row["type"] == "episodic")
            if row["key"] in derived or not (whose and says(row)) or not set(whose).isdisjoint(says(row))
            for each in sentences(row["content"])
            if _says(each.words, wanted, is_source=row["key"] in derived)
        ]

    def _saying(self, space: int, wanted: frozenset[str]) -> set[int]:
        """Return the memories that hold all of these words; none if too many do."""
        words = set(sorted(wanted)[:_MOST_WORDS])
        rows = self._state.all("nodes", lambda row: row["space"] == space and words <= terms_of(row))
        return {row["key"] for row in rows} if len(rows) <= _MOST_TEXTS else set()
