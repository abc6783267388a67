"""What a peer is given and what it hands back: the files between `peers.py` and the peer's own process.

Standard library only, since nothing else is in every peer's environment.
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
    """One turn. `text` is "speaker: content", for stores that know no speaker; `dated` is "[date] speaker: content",
    for stores that know no time either; `at` is ISO 8601, UTC.
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
    """A store of its own."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A text's word pieces as the embedder cuts them, and the vector of each."""

    pieces: tuple[str, ...]
    vectors: tuple[Vector, ...]


@dataclass(frozen=True, kw_only=True)
class Task:
    """Conversations, and the vectors of all their texts, made once for everybody."""

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
        """Of each document's text, with and without its date, and each question."""
        texts = json.loads((self.folder / "texts.json").read_text())
        return dict(zip(texts, _read_rows(self.folder / "vectors.f32", len(texts)), strict=True))

    @cached_property
    def words(self) -> dict[str, Words]:
        """Of each text without a date and each question. Only Ricordo has a use for them."""
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
