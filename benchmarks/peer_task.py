"""The input and output files of a peer, shared by `peers.py` and the peer's own process.

This module uses only the standard library, because peers' environments contain nothing else in common.
"""

from __future__ import annotations

import json
from array import array
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

Vector = list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One turn. `text` is "speaker: content", for stores without a speaker field; `dated` is "[date] speaker: content",
    for stores that do not search by time; `at` is ISO 8601, UTC.
    """

    id: str
    text: str
    dated: str
    content: str
    speaker: str
    session: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    text: str
    category: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation, which gets its own store."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The word pieces of a text, and the vector of each."""

    pieces: tuple[str, ...]
    vectors: tuple[Vector, ...]


@dataclass(frozen=True, kw_only=True)
class Task:
    """Conversations and the vectors of all their texts, computed once for all peers."""

    folder: Path

    @cached_property
    def conversations(self) -> list[Conversation]:
        return [
            Conversation(
                name=each["name"],
                documents=tuple(Document(**one) for one in each["documents"]),
                questions=tuple(Question(**one | {"evidence": tuple(one["evidence"])}) for one in each["questions"]),
            )
            for each in json.loads((self.folder / "conversations.json").read_text())
        ]

    @cached_property
    def dimension(self) -> int:
        return len(next(iter(self.vectors.values())))

    @cached_property
    def vectors(self) -> dict[str, Vector]:
        """Vectors of each document's text, with and without its date, and of each question."""
        texts = json.loads((self.folder / "texts.json").read_text())
        return dict(zip(texts, _read_rows(self.folder / "vectors.f32", len(texts)), strict=True))

    @cached_property
    def words(self) -> dict[str, Words]:
        """Word vectors of each text without a date and of each question. Only Ricordo uses them."""
        pieces = json.loads((self.folder / "pieces.json").read_text())
        rows = iter(_read_rows(self.folder / "words.f32", sum(map(len, pieces.values()))))
        return {
            text: Words(pieces=tuple(of_text), vectors=tuple(next(rows) for _ in of_text))
            for text, of_text in pieces.items()
        }


def write_task(
    folder: Path, conversations: list[Conversation], vectors: dict[str, Vector], words: dict[str, Words]
) -> Task:
    (folder / "conversations.json").write_text(json.dumps([asdict(each) for each in conversations]))
    (folder / "texts.json").write_text(json.dumps(list(vectors)))
    (folder / "pieces.json").write_text(json.dumps({text: found.pieces for text, found in words.items()}))
    _write_rows(folder / "vectors.f32", list(vectors.values()))
    _write_rows(folder / "words.f32", [row for found in words.values() for row in found.vectors])
    return Task(folder=folder)


def _write_rows(path: Path, rows: list[Vector]) -> None:
    with path.open("wb") as file:
        for row in rows:
            array("f", row).tofile(file)


def _read_rows(path: Path, count: int) -> list[Vector]:
    numbers = array("f", path.read_bytes())
    width = len(numbers) // count
    return [numbers[start : start + width].tolist() for start in range(0, len(numbers), width)]
