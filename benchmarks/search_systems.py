"""The systems that `quality.py` compares, behind one interface: Ricordo, BM25, and BM25 fused with vectors.

BM25 is `bm25s` over whole texts ("speaker: text") with English stop words and an English stemmer, one configuration for
all sets. The hybrid fuses it with the vectors of Ricordo's default embedder by reciprocal rank (k = 60), which is what
vector stores with full text do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np

from ricordo import Fact, Memory, Message, Settings
from ricordo.models.embedding import resolve

BM25, HYBRID = "bm25", "hybrid"
Form = Literal["messages", "facts", "facts in order"]
Row = Mapping[str, Any]
# LoCoMo, REALTALK, BEAM, RealMem.
DATE_FORMS = ("%I:%M %p on %d %B, %Y", "%d.%m.%Y, %H:%M:%S", "%B-%d-%Y", "%Y-%m-%d (%A)")
_RRF_K = 60
_FUSED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Documents that can be searched.

    Attributes:
        ids: the id of each turn's document by the turn's name. Two equal facts share one.
        find: returns the ids of the best documents for a question, best first, at most so many.
    """

    ids: Mapping[str, str]
    find: Callable[[str, int], Awaitable[Sequence[str]]]


@asynccontextmanager
async def opened(system: str, turns: Sequence[Row], form: Form, *, reranker: str = "") -> AsyncIterator[Index]:
    """Open a system filled with turns; it is gone at the end.

    Args:
        system: "bm25", "hybrid", "none" (Ricordo without an embedder), or an embedder of Ricordo.
        reranker: of Ricordo; it may take a minute for a question.
    """
    if system in (BM25, HYBRID):
        yield await _baseline(turns, with_vectors=system == HYBRID)
        return
    embedder = None if system == "none" else system
    settings = Settings(
        durability="process", reranker=reranker, reranker_deadline_ms=60_000, search_deadline_ms=120_000
    )
    async with Memory.open(":memory:", embedder=embedder, settings=settings) as memory:
        ids = await _kept(memory, turns, form)
        await memory.settle()
        yield index_of(memory, {row["id"]: id for row, id in zip(turns, ids, strict=True)})


def index_of(memory: Memory, ids: Mapping[str, str]) -> Index:
    async def find(question: str, limit: int) -> Sequence[str]:
        return (await memory.search(question, limit=limit)).ids

    return Index(ids=ids, find=find)


async def _kept(memory: Memory, turns: Sequence[Row], form: Form) -> list[str]:
    if form == "messages":
        return await memory.add_many([message(row) for row in turns])
    if form == "facts":
        return [node.id for node in await memory.remember_many([Fact(content=row["text"]) for row in turns])]
    return [(await memory.remember(row["text"])).id for row in turns]


def message(row: Row) -> Message:
    text = row["text"] or ""
    if row.get("caption"):
        text = f"{text} [shows a picture: {row['caption']}]".strip()
    at = instant(row["date"]) if row.get("date") else None
    speaker = row.get("speaker")
    if speaker in ("user", "assistant"):  # in a conversation with an assistant, the speakers are roles
        return Message(text=text, role=speaker, session=row.get("session"), at=at)
    return Message(text=text, speaker=speaker, session=row.get("session"), at=at)


def instant(date: str) -> datetime:
    for form in DATE_FORMS:
        try:
            return datetime.strptime(date, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"date: {date} has none of the formats {', '.join(DATE_FORMS)}")


async def _baseline(turns: Sequence[Row], *, with_vectors: bool) -> Index:
    names = [row["id"] for row in turns]
    texts = [f"{row['speaker']}: {message(row).text}" if row.get("speaker") else message(row).text for row in turns]
    by_words = _bm25(texts)
    by_meaning = await _dense(texts) if with_vectors else None

    async def find(question: str, limit: int) -> Sequence[str]:
        places = by_words(question, max(limit, _FUSED))
        if by_meaning is not None:
            places = _fused(places, await by_meaning(question, max(limit, _FUSED)))
        return [names[place] for place in places[:limit]]

    return Index(ids={name: name for name in names}, find=find)


def _bm25(texts: Sequence[str]) -> Callable[[str, int], list[int]]:
    """Return a function from a question to the places of the texts that share a word with it, best first."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokens(part: Sequence[str]) -> Any:
        return bm25s.tokenize(list(part), stopwords="en", stemmer=stemmer, show_progress=False)

    retriever = bm25s.BM25()
    retriever.index(tokens(texts), show_progress=False)

    def find(question: str, limit: int) -> list[int]:
        places, scores = retriever.retrieve(tokens([question]), k=min(limit, len(texts)), show_progress=False)
        return [int(place) for place, score in zip(places[0], scores[0], strict=True) if score > 0]

    return find


async def _dense(texts: Sequence[str]) -> Callable[[str, int], Awaitable[list[int]]]:
    """Return a function from a question to the places of the nearest texts."""
    embedder = resolve("default")
    assert embedder is not None
    vectors = []
    for start in range(0, len(texts), 64):
        vectors += [each for each in await embedder.embed_batch(texts[start : start + 64]) if each is not None]
    matrix = np.stack(vectors)

    async def find(question: str, limit: int) -> list[int]:
        nearness = matrix @ await embedder.embed(question)
        return [int(place) for place in np.argsort(-nearness)[:limit]]

    return find


def _fused(*lists: Sequence[int]) -> list[int]:
    """Return the places by the sum of their reciprocal ranks."""
    scores: dict[int, float] = defaultdict(float)
    for found in lists:
        for rank, place in enumerate(found, start=1):
            scores[place] += 1 / (_RRF_K + rank)
    return sorted(scores, key=lambda place: -scores[place])
