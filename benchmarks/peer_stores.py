"""Ricordo and its peers behind one interface, each used as its documentation shows, with its best built-in search.

    python peer_stores.py NAME TASK_FOLDER OUT.json

The script runs in the environment of one peer, which `peers.py` creates, so imports are local to each class. No peer
computes embeddings: vectors are looked up, which costs almost nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from peer_task import Document, Task, Vector

# The depth at which recall is measured: every peer is asked for this many hits.
LIMIT = 20


class Store(Protocol):
    """One conversation in one peer. `folder` is empty and private; its content after `close` counts as disk space."""

    def add(self, documents: Sequence[Document]) -> None: ...

    def search(self, question: str) -> list[str]:
        """Return ids of documents, best first, at most LIMIT."""
        ...

    def close(self) -> None: ...


class LookedUp:
    """An embedder that looks up the vector of each text, as every peer gets it."""

    name = "looked-up-256"

    def __init__(self, task: Task) -> None:
        import numpy as np

        self.dimension = task.dimension
        self.missed: list[str] = []
        self._vectors = {text: np.array(vector, np.float32) for text, vector in task.vectors.items()}

    async def embed(self, text: str, *, kind: str = "query") -> Any:
        return (await self.embed_batch([text]))[0]

    async def embed_batch(self, texts: Sequence[str], *, kind: str = "passage") -> list[Any]:
        self.missed += [text for text in texts if text not in self._vectors]
        return [self._vectors[text] for text in texts]


class LookedUpWithWords(LookedUp):
    """The complete output of Ricordo's default embedder: also word pieces and their vectors."""

    name = "ricordo-default-256-v1"

    def __init__(self, task: Task) -> None:
        import numpy as np

        super().__init__(task)
        self._words = {
            # Some questions consist of function words only.
            text: (
                list(found.pieces),
                np.array(found.vectors, np.float32).reshape(len(found.pieces), -1 if found.pieces else 0),
            )
            for text, found in task.words.items()
        }

    async def embed_with_words(self, texts: Sequence[str], *, kind: str = "passage") -> list[Any]:
        vectors = await self.embed_batch(texts)
        return [(vector, *self._words[text]) for text, vector in zip(texts, vectors, strict=True)]


class Ricordo:
    """Default configuration: on disk, each write survives a power loss. The default embedder, looked up."""

    embedder: Callable[[Task], LookedUp] = LookedUpWithWords

    def __init__(self, folder: Path, task: Task) -> None:
        from ricordo import Memory

        self._runner = asyncio.Runner()
        self._ids: dict[str, str] = {}
        self._embedder: Any = self.embedder(task)
        self._memory = self._runner.run(_opened(Memory, folder / "memory.db", self._embedder))

    def add(self, documents: Sequence[Document]) -> None:
        from datetime import datetime

        from ricordo import Message

        messages = [
            Message(
                text=each.content,
                speaker=each.speaker,
                session=each.session,
                at=datetime.fromisoformat(each.at) if each.at else None,
            )
            for each in documents
        ]
        ids = self._runner.run(self._memory.add_many(messages))
        self._runner.run(self._memory.settle())
        self._ids = dict(zip(ids, (each.id for each in documents), strict=True))

    def search(self, question: str) -> list[str]:
        results = self._runner.run(self._memory.search(question, limit=LIMIT))
        if results.degraded or self._embedder.missed:
            raise RuntimeError(f"degraded: {results.degraded}, without a vector: {self._embedder.missed[:3]}")
        return [self._ids[hit.id] for hit in results.hits]

    def close(self) -> None:
        self._runner.run(self._memory.close())
        self._runner.close()


async def _opened(memory: Any, path: Path, embedder: Any) -> Any:
    return await memory.open(path, embedder=embedder)


class RicordoOneVector(Ricordo):
    """One vector per text and no word vectors: exactly what the peers are given."""

    embedder = LookedUp


class Chroma:
    """A persistent client with a collection in cosine space."""

    def __init__(self, folder: Path, task: Task) -> None:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(path=str(folder), settings=settings)
        self._collection = self._client.create_collection(
            "turns", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        self._vectors = task.vectors

    def add(self, documents: Sequence[Document]) -> None:
        self._collection.add(
            ids=[each.id for each in documents],
            documents=[each.text for each in documents],
            embeddings=[self._vectors[each.text] for each in documents],
            metadatas=[{"speaker": each.speaker, "session": each.session, "at": each.at} for each in documents],
        )

    def search(self, question: str) -> list[str]:
        found = self._collection.query(query_embeddings=[self._vectors[question]], n_results=LIMIT)
        return list(found["ids"][0])

    def close(self) -> None:
        self._client.close()


class Txtai:
    """`hybrid=True`: dense and BM25 scores combined; content stored, as an application needs it."""

    def __init__(self, folder: Path, task: Task) -> None:
        import numpy as np
        from txtai import Embeddings

        known = {text: np.array(vector, np.float32) for text, vector in task.vectors.items()}
        self._folder = folder
        self._embeddings = Embeddings(
            method="external",
            transform=lambda texts: np.array([known[text] for text in texts]),
            hybrid=True,
            content=True,
        )

    def add(self, documents: Sequence[Document]) -> None:
        self._embeddings.index((each.id, {"text": each.text, "at": each.at}, None) for each in documents)
        self._embeddings.save(str(self._folder / "index"))

    def search(self, question: str) -> list[str]:
        return [found["id"] for found in self._embeddings.search(question, LIMIT)]

    def close(self) -> None:
        self._embeddings.close()


class LanceDB:
    """Hybrid search: vectors and a full text index, fused by its default reranker (RRF)."""

    def __init__(self, folder: Path, task: Task) -> None:
        import lancedb

        self._database = lancedb.connect(folder)
        self._table: Any = None
        self._vectors = task.vectors

    def add(self, documents: Sequence[Document]) -> None:
        self._table = self._database.create_table(
            "turns",
            [
                {"id": each.id, "text": each.text, "at": each.at, "vector": self._vectors[each.text]}
                for each in documents
            ],
        )
        self._table.create_fts_index("text")

    def search(self, question: str) -> list[str]:
        asked = self._table.search(query_type="hybrid").vector(self._vectors[question]).text(question)
        return [found["id"] for found in asked.limit(LIMIT).to_list()[:LIMIT]]

    def close(self) -> None:
        del self._table


class LangGraphMemory:
    """`InMemoryStore` with an index; nothing is kept on disk."""

    def __init__(self, folder: Path, task: Task) -> None:
        from langgraph.store.memory import InMemoryStore

        self._store: Any = InMemoryStore(index=langgraph_index(task))

    def add(self, documents: Sequence[Document]) -> None:
        from langgraph.store.base import PutOp

        self._store.batch(
            [PutOp(namespace=("turns",), key=each.id, value={"text": each.text, "at": each.at}) for each in documents]
        )

    def search(self, question: str) -> list[str]:
        return [found.key for found in self._store.search(("turns",), query=question, limit=LIMIT)]

    def close(self) -> None:
        return


class LangGraphSqlite(LangGraphMemory):
    """`SqliteStore` of langgraph-checkpoint-sqlite with an index."""

    def __init__(self, folder: Path, task: Task) -> None:
        from langgraph.store.sqlite import SqliteStore

        # Its documentation uses a connection of the standard library. Many Pythons are built without loadable
        # extensions, which the store needs; this is the same module with them.
        from pysqlite3 import dbapi2

        self._connection = dbapi2.connect(str(folder / "store.db"), check_same_thread=False, isolation_level=None)
        self._store = SqliteStore(self._connection, index=langgraph_index(task))
        self._store.setup()

    def close(self) -> None:
        self._connection.close()


def langgraph_index(task: Task) -> Any:
    vectors = task.vectors
    return {
        "dims": task.dimension,
        "embed": lambda texts: [vectors[text] for text in texts],
        "fields": ["text"],
        "text_fields": ["text"],  # SqliteStore 3.1.2 reads this instead of the documented "fields"
    }


class Mem0:
    """Without its language model (`infer=False`): every turn stored as it is, in its default store, a local Qdrant."""

    def __init__(self, folder: Path, task: Task) -> None:
        from mem0 import Memory

        # Neither the model nor the embedder of its configuration is called; they only require some key.
        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        self._memory = Memory.from_config(
            {
                "llm": unused,
                "embedder": unused,
                "vector_store": {
                    "provider": "qdrant",
                    "config": {"path": str(folder / "qdrant"), "embedding_model_dims": task.dimension, "on_disk": True},
                },
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = mem0_embedder(task)

    def add(self, documents: Sequence[Document]) -> None:
        for each in documents:
            self._memory.add(each.text, user_id="u", infer=False, metadata={"turn": each.id, "at": each.at})

    def search(self, question: str) -> list[str]:
        # No threshold: its default of .1 hides hits that others show.
        found = self._memory.search(question, top_k=LIMIT, filters={"user_id": "u"}, threshold=0.0)
        return [each["metadata"]["turn"] for each in found["results"]]

    def close(self) -> None:
        self._memory.close()


def mem0_embedder(task: Task) -> Any:
    from mem0.embeddings.base import EmbeddingBase

    vectors = {text.strip(): vector for text, vector in task.vectors.items()}  # mem0 strips whitespace from queries

    class Known(EmbeddingBase):  # type: ignore[misc]
        def embed(self, text: str, memory_action: str | None = None) -> Vector:
            return vectors[text.strip()]

    return Known()


class MemPalace:
    """Each turn is a drawer; `search_memories` with its defaults. Its other strategy, "union", found no more in four
    times the time.
    """

    def __init__(self, folder: Path, task: Task) -> None:
        from mempalace import embedding
        from mempalace.palace import get_collection

        known = known_to_chroma(task)
        # It downloads its embedders at first use; replacing the function that selects one is the only way to pass
        # vectors.
        embedding.get_embedding_function = lambda *_, **__: known
        self._palace = str(folder / "palace")
        self._drawers = get_collection(self._palace)

    def add(self, documents: Sequence[Document]) -> None:
        self._drawers.upsert(
            ids=[each.id for each in documents],
            documents=[each.text for each in documents],
            metadatas=[
                {"wing": "chat", "room": f"session-{each.session}", "source_file": each.id, "filed_at": each.at}
                for each in documents
            ],
        )

    def search(self, question: str) -> list[str]:
        from mempalace.searcher import search_memories

        found = search_memories(question, self._palace, n_results=LIMIT)
        return [each["source_file"] for each in found["results"]]

    def close(self) -> None:
        return


def known_to_chroma(task: Task) -> Any:
    import numpy as np
    from chromadb import EmbeddingFunction

    vectors = {text: np.array(vector, np.float32) for text, vector in task.vectors.items()}

    class Known(EmbeddingFunction):  # type: ignore[misc]
        def __init__(self) -> None:
            return

        def __call__(self, input: Any) -> Any:
            return [vectors[text] for text in input]

        @staticmethod
        def name() -> str:
            return "default"

    return Known()


class LlamaIndex:
    """`VectorStoreIndex` and `BM25Retriever`, fused by `QueryFusionRetriever` (reciprocal rank), without a model."""

    def __init__(self, folder: Path, task: Task) -> None:
        self._folder = folder
        self._vectors = task.vectors
        self._retriever: Any = None

    def add(self, documents: Sequence[Document]) -> None:
        from llama_index.core import VectorStoreIndex
        from llama_index.core.llms import MockLLM
        from llama_index.core.retrievers import QueryFusionRetriever
        from llama_index.core.schema import TextNode
        from llama_index.retrievers.bm25 import BM25Retriever

        nodes = [
            TextNode(id_=each.id, text=each.text, embedding=self._vectors[each.text], metadata={"at": each.at})
            for each in documents
        ]
        index = VectorStoreIndex(nodes, embed_model=llama_embedder(self._vectors))
        self._retriever = QueryFusionRetriever(
            [
                index.as_retriever(similarity_top_k=LIMIT),
                BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=LIMIT),
            ],
            llm=MockLLM(),
            mode="reciprocal_rerank",
            similarity_top_k=LIMIT,
            num_queries=1,
            use_async=False,
        )
        index.storage_context.persist(str(self._folder))

    def search(self, question: str) -> list[str]:
        return [found.node.node_id for found in self._retriever.retrieve(question)]

    def close(self) -> None:
        return


def llama_embedder(vectors: dict[str, Vector]) -> Any:
    from llama_index.core.base.embeddings.base import BaseEmbedding

    class Known(BaseEmbedding):  # type: ignore[misc]
        def _get_query_embedding(self, query: str) -> Vector:
            return vectors[query]

        async def _aget_query_embedding(self, query: str) -> Vector:
            return vectors[query]

        def _get_text_embedding(self, text: str) -> Vector:
            return vectors[text]

    return Known()


class Haystack:
    """`InMemoryDocumentStore`: BM25 and embeddings, fused by `DocumentJoiner` (reciprocal rank)."""

    def __init__(self, folder: Path, task: Task) -> None:
        from haystack.components.joiners import DocumentJoiner
        from haystack.document_stores.in_memory import InMemoryDocumentStore

        self._folder = folder
        self._vectors = task.vectors
        self._store = InMemoryDocumentStore(embedding_similarity_function="cosine")
        self._joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=LIMIT)

    def add(self, documents: Sequence[Document]) -> None:
        from haystack import Document as Turn

        self._store.write_documents(
            [
                Turn(id=each.id, content=each.text, embedding=self._vectors[each.text], meta={"at": each.at})
                for each in documents
            ]
        )
        self._store.save_to_disk(str(self._folder / "store.json"))

    def search(self, question: str) -> list[str]:
        by_words = self._store.bm25_retrieval(question, top_k=LIMIT)
        by_meaning = self._store.embedding_retrieval(self._vectors[question], top_k=LIMIT)
        return [found.id for found in self._joiner.run([by_words, by_meaning])["documents"]]

    def close(self) -> None:
        return


class SqliteVec:
    """The recipe of sqlite-vec's author: FTS5 and vec0 in one file, fused by reciprocal rank, k = 60."""

    FUSED = """
    WITH words AS (
        SELECT rowid, row_number() OVER (ORDER BY rank) AS place FROM turns_fts
        WHERE turns_fts MATCH :words ORDER BY rank LIMIT :most
    ), meaning AS (
        SELECT rowid, row_number() OVER (ORDER BY distance) AS place FROM turns_vec
        WHERE embedding MATCH :vector AND k = :most ORDER BY distance
    )
    SELECT id FROM words FULL OUTER JOIN meaning USING (rowid) JOIN turns USING (rowid)
    ORDER BY coalesce(1.0 / (60 + words.place), 0) + coalesce(1.0 / (60 + meaning.place), 0) DESC LIMIT :limit
    """

    def __init__(self, folder: Path, task: Task) -> None:
        import sqlite_vec
        from pysqlite3 import dbapi2

        self._vectors = {text: sqlite_vec.serialize_float32(vector) for text, vector in task.vectors.items()}
        self._connection = dbapi2.connect(str(folder / "turns.db"))
        self._connection.enable_load_extension(True)
        sqlite_vec.load(self._connection)
        self._connection.executescript(
            f"""
            PRAGMA journal_mode = WAL;
            CREATE TABLE turns (rowid INTEGER PRIMARY KEY, id TEXT, text TEXT, at TEXT);
            CREATE VIRTUAL TABLE turns_fts USING fts5(text, content='turns', tokenize='porter unicode61');
            CREATE VIRTUAL TABLE turns_vec USING vec0(embedding float[{task.dimension}] distance_metric=cosine);
            """
        )

    def add(self, documents: Sequence[Document]) -> None:
        with self._connection as connection:
            connection.executemany(
                "INSERT INTO turns VALUES (?, ?, ?, ?)", ((n, d.id, d.text, d.at) for n, d in enumerate(documents))
            )
            connection.execute("INSERT INTO turns_fts (rowid, text) SELECT rowid, text FROM turns")
            connection.executemany(
                "INSERT INTO turns_vec (rowid, embedding) VALUES (?, ?)",
                ((n, self._vectors[each.text]) for n, each in enumerate(documents)),
            )

    def search(self, question: str) -> list[str]:
        words = "".join(char if char.isalnum() else " " for char in question).split()
        values = {
            "words": " OR ".join(f'"{word}"' for word in words),
            "vector": self._vectors[question],
            "most": 3 * LIMIT,
            "limit": LIMIT,
        }
        return [row[0] for row in self._connection.execute(self.FUSED, values)]

    def close(self) -> None:
        self._connection.close()


class Bm25s:
    """Full text only: English stop words removed, English stemmer, the library's default BM25."""

    def __init__(self, folder: Path, task: Task) -> None:
        import Stemmer

        self._folder = folder
        self._stemmer = Stemmer.Stemmer("english")
        self._retriever: Any = None
        self._ids: list[str] = []

    def add(self, documents: Sequence[Document]) -> None:
        import bm25s

        self._retriever = bm25s.BM25()
        self._retriever.index(self._tokens([each.text for each in documents]), show_progress=False)
        self._ids = [each.id for each in documents]
        self._retriever.save(self._folder, corpus=[each.text for each in documents])

    def search(self, question: str) -> list[str]:
        found, _ = self._retriever.retrieve(self._tokens([question]), k=LIMIT, show_progress=False)
        return [self._ids[place] for place in found[0]]

    def _tokens(self, texts: list[str]) -> Any:
        import bm25s

        return bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)

    def close(self) -> None:
        return


STORES: dict[str, Callable[[Path, Task], Store]] = {
    "ricordo": Ricordo,
    "ricordo, one vector": RicordoOneVector,
    "chroma": Chroma,
    "txtai": Txtai,
    "lancedb": LanceDB,
    "langgraph memory": LangGraphMemory,
    "langgraph sqlite": LangGraphSqlite,
    "mem0": Mem0,
    "mempalace": MemPalace,
    "llama-index": LlamaIndex,
    "haystack": Haystack,
    "sqlite-vec + fts5": SqliteVec,
    "bm25s": Bm25s,
}


def measure(make: Callable[[Path, Task], Store], task: Task, *, dated: bool) -> dict[str, Any]:
    """Ask every question of every conversation, each conversation in its own store.

    Args:
        dated: put the date into each document's text.

    Returns:
        Rankings parallel to the questions, milliseconds of each search, and for all conversations together the
        seconds of adding and the bytes on disk after closing.
    """
    rankings: list[list[str]] = []
    search_ms: list[float] = []
    added_s, disk_bytes = 0.0, 0
    for conversation in task.conversations:
        documents = [replace(each, text=each.dated) if dated else each for each in conversation.documents]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            store = make(folder, task)
            begun = time.perf_counter()
            store.add(documents)
            added_s += time.perf_counter() - begun
            store.search(conversation.questions[0].text)  # loading at the first search does not count
            for question in conversation.questions:
                begun = time.perf_counter()
                found = store.search(question.text)
                search_ms.append((time.perf_counter() - begun) * 1_000)
                rankings.append(found)
            store.close()
            disk_bytes += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"rankings": rankings, "search_ms": search_ms, "added_s": added_s, "disk_bytes": disk_bytes}


def main() -> None:
    name, folder, out, *packages = sys.argv[1:]
    logging.disable(logging.WARNING)
    task = Task(folder=Path(folder))
    figures = measure(STORES[name], task, dated=False)
    if not name.startswith("ricordo"):  # it has a field for the time
        figures["dated_rankings"] = measure(STORES[name], task, dated=True)["rankings"]
    figures["versions"] = {package: version(package) for package in packages}
    Path(out).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
