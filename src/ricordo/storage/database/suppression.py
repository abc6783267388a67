"""Suppressed sentences: what was forgotten or erased and must not be learnt again, kept as keyed hashes only.

A sentence is identified by the set of its content words, and by that set without each single word, so that a sentence
with one word more or less still matches. The key is random and differs in each store, so that hashes of two stores
cannot be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from ricordo.model import Node
from ricordo.storage.database.integrity import fingerprint_key
from ricordo.storage.database.statements import Group, asks, flag, nothing
from ricordo.storage.database.word_index import space_postings
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

_PRINT_BYTES = 8
# A shorter sentence matches only with all its words: "brother lives in Rome" without one says something else.
_LEAST_TO_SPARE = 4
_MOST_TO_SPARE = 40
_WHOLE_MOST = 60

Postings = dict[tuple[int, str], frozenset[int]]
"""The memories of a space that hold a term."""


def _says(words: frozenset[str], wanted: frozenset[str], *, is_source: bool) -> bool:
    """Return whether a sentence says what a fact says, and little else; a source, worded differently, half of it."""
    if is_source:
        return len(words & wanted) >= 0.5 * len(wanted)
    return words >= wanted and len(words) <= 2 * len(wanted) + 4


def _prints(key: bytes, words: frozenset[str]) -> tuple[bytes, list[bytes]]:
    """Return the hash of a set of words, and of the set without each one."""
    spared = sorted(word for word in words if not is_mark(word))
    is_spared = _LEAST_TO_SPARE <= len(spared) <= _MOST_TO_SPARE
    less = [_print(key, words - {word}) for word in spared] if is_spared else []
    return _print(key, words), less


def _print(key: bytes, words: frozenset[str]) -> bytes:
    return blake2b("\0".join(sorted(words)).encode(), key=key, digest_size=_PRINT_BYTES).digest()


def _session_print(key: bytes, session: str | None) -> bytes | None:
    if session is None:
        return None
    return blake2b(session.encode(), key=key, digest_size=16, person=b"session").digest()


class Suppression(Group):
    """Suppressed sentences: what was forgotten or erased and must not be learnt or shown again."""

    def withhold(self, nodes: Iterable[Node], *, at: int) -> None:
        postings: Postings = {}
        for node in nodes:
            space = self._sql.space(node.owner, node.chat)
            assert space is not None
            self._sql.rows("withheld_drop", {"node": node.key})
            self.put(space, [*of_text(node, is_erased=False, spans=False), *self.sources(node, space, postings)], at=at)

    def put(self, space: int, withhold: Iterable[Withhold], *, at: int) -> None:
        key = fingerprint_key(self._sql)
        for each in withhold:
            values = {"space": space, "node": each.cause, "at": at, "session": _session_print(key, each.session)}
            values |= {name: int(getattr(each, name)) for name in ("is_bound", "is_erased", "is_shared")}
            number = self._sql.value("withheld_put", values)
            for words in each.readings:
                whole, less = _prints(key, words)
                rows = [(space, whole, number, 1), *((space, one, number, 0) for one in less)]
                self._sql.many("withheld_print_put", rows)
            spans = [(node, start, length, number) for node, start, length in each.spans]
            self._sql.many("withheld_span_put", spans)

    lift = asks("withheld_lift", "numbers", nothing)
    withholds = asks("withheld_any", "space", flag)

    def matches(
        self, space: int, text: str, *, session: str | None, said_at: int | None, voices: Iterable[str] = (NOBODY,)
    ) -> list[Match]:
        if not self.withholds(space):
            return []
        where = {"session": _session_print(fingerprint_key(self._sql), session), "said_at": said_at}
        asked = self._asked(space, text, voices)
        found = ((sentence, self._sql.rows("withheld_matching", values | where)) for sentence, values in asked)
        return [Match(sentence, rows[0][0], bool(rows[0][1])) for sentence, rows in found if rows]

    def is_erased(self, space: int, node: Node, *, said_at: int | None) -> bool:
        key = fingerprint_key(self._sql)
        prints = (json.dumps([_print(key, each.words).hex()]) for each in of_wordless(node))
        asked = ({"space": space, "whole": whole, "less": "[]"} for whole in prints)
        where = {"session": None, "said_at": said_at}
        return any(self._sql.rows("withheld_matching", values | where) for values in asked)

    def said_anew(self, space: int, text: str, *, voices: Iterable[str] = (NOBODY,)) -> list[int]:
        found = (self._sql.rows("withheld_saying", values) for _, values in self._asked(space, text, voices))
        return [number for rows in found for (number,) in rows]

    def _asked(self, space: int, text: str, voices: Iterable[str]) -> Iterator[tuple[Sentence, dict[str, Any]]]:
        """Yield the sentences of a text with the hashes to look for; none where nothing is suppressed."""
        voices = tuple(voices)
        for sentence in sentences(text) if self.withholds(space) else ():
            key = fingerprint_key(self._sql)
            found = [_prints(key, words) for words in in_voices(sentence, voices)]
            whole, less = [one.hex() for one, _ in found], [one.hex() for _, several in found for one in several]
            yield sentence, {"space": space, "whole": json.dumps(whole), "less": json.dumps(less)}

    def shown(self, nodes: Mapping[int, Node]) -> dict[int, str]:
        if not self._sql.rows_of_store("withheld_spans_any")[0][0]:
            return {}
        rows = self._sql.rows("withheld_spans_of", {"nodes": json.dumps(list(nodes))})
        spans: dict[int, list[tuple[int, int]]] = {}
        for node, start, length in rows:
            spans.setdefault(node, []).append((start, length))
        return {node: without(nodes[node].content, pieces) for node, pieces in spans.items()}

    def sources(self, node: Node, space: int, postings: Postings | None = None) -> list[Withhold]:
        wanted = frozenset().union(*(each.words for each in sentences(node.content)))
        if node.type == "episodic" or not wanted:
            return []
        derived = {key for (key,) in self._sql.rows("withheld_sources", {"node": node.key})}
        saying = derived | self._saying(space, wanted, postings)
        whose = voices_of(node)
        texts = [
            (key, content, session, voices_of_message(*said, owner=node.owner))
            for key, content, session, *said in self._sql.rows("withheld_texts", {"nodes": json.dumps(sorted(saying))})
        ]
        return [
            Withhold(
                cause=node.key,
                words=words_said(each),
                voices=voices,
                session=session,
                is_bound=len(each.words) < MIN_GLOBAL_WORDS,
                is_erased=False,
                is_shared=True,
                spans=((key, each.start, len(each.text)),),
            )
            for key, content, session, voices in texts
            if key in derived or not (whose and voices) or not set(whose).isdisjoint(voices)
            for each in sentences(content)
            if _says(each.words, wanted, is_source=key in derived)
        ]

    def _saying(self, space: int, wanted: frozenset[str], postings: Postings | None) -> set[int]:
        """Return the memories that hold all of these words; none if there are too many.

        Args:
            postings: those of words that were read for other memories; more are added.
        """
        known: Postings = {} if postings is None else postings
        terms = sorted(wanted)[:_WHOLE_MOST]
        for term in terms:
            if (space, term) not in known:
                known[space, term] = frozenset(space_postings(self._sql, space, term, most=5_000))
        holders = sorted((known[space, term] for term in terms), key=len)
        found = set(holders[0].intersection(*holders[1:]))
        return found if len(found) <= 500 else set()
