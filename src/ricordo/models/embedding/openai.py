"""Embeddings from any server that speaks OpenAI's protocol: OpenAI itself, Ollama, vLLM, llama.cpp and
others.

The answers of a server are checked as a stranger's: how many, in which order, of what dimension, and finite.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ricordo.errors import DeniedError, RicordoError, UnavailableError
from ricordo.models.embedding.local import Lanes
from ricordo.models.http import Endpoint, client_of, post
from ricordo.ports import Kind

Floats = NDArray[np.float32]

_BATCH = 128
_CHUNK_CHARACTERS = 6_000  # under the 8,191 tokens of OpenAI's models in nearly any script
_MOST_CHUNKS = 4
_GIVE_UP_AFTER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Whom to ask for what. `dimension` is what every answer must have; `shortens` asks the server for it."""

    endpoint: Endpoint
    model: str
    dimension: int
    shortens: bool


class OpenAIEmbedder:
    """An Embedder over HTTP. Loads nothing and connects to nothing before the first text."""

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self.dimension = server.dimension
        self._lanes = Lanes(name, lambda: Client(server), size=_BATCH)

    async def embed(self, text: str, *, kind: Kind = "query") -> Floats:
        """One text as a unit vector float32[dimension]; a blank one is all zeros and asks nobody.

        Raises:
            UnavailableError: no usable answer, after several tries.
            DeniedError: the server wants another key.
            InvalidError: the server refuses the text or does not know the model.
        """
        return await self._lanes.single(text, lambda client, texts: client.request(texts))

    async def embed_batch(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Floats | None]:
        """Many texts, in order, at most 128 to a request; None for one that the server would not embed.

        Raises:
            DeniedError: the server wants another key.
        """
        return await self._lanes.batch(texts, lambda client, part: client.request_what_can_be(part))


class Client:
    """Blocking requests with retries; safe to call from several threads."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._http = client_of(server.endpoint)
        # An Embedder has no close of its own: connections end with the last reference to it.
        weakref.finalize(self, self._http.close)

    def request_what_can_be(self, texts: list[str]) -> list[Floats | None]:
        """A batch at once or, when that fails, one text at a time, tried once each."""
        try:
            return list(self.request(texts))
        except DeniedError:
            raise
        except RicordoError:
            if len(texts) == 1:
                return [None]
        found: list[Floats | None] = []
        for text in texts:
            # A server that is down is not asked 128 times over.
            is_down = len(found) >= _GIVE_UP_AFTER and all(v is None for v in found)
            found.append(None if is_down else self._one(text))
        return found

    def request(self, texts: list[str], *, attempts: int | None = None) -> list[Floats]:
        """Unit vectors of all texts, or an error. Long texts go as up to four chunks, whose mean counts."""
        chunks = [_chunks(text) for text in texts]
        flat = [chunk for of_text in chunks for chunk in of_text]
        answers: list[Floats] = []
        for at in range(0, len(flat), _BATCH):
            answers += self._post(flat[at : at + _BATCH], attempts)
        rest = iter(answers)
        return [self._mean([next(rest) for _ in of_text]) for of_text in chunks]

    def _one(self, text: str) -> Floats | None:
        try:
            return self.request([text], attempts=1)[0]
        except DeniedError:
            raise
        except RicordoError:
            return None

    def _mean(self, vectors: list[Floats]) -> Floats:
        total = np.zeros(self._server.dimension, np.float32)
        for vector in vectors:
            total += vector / max(float(np.linalg.norm(vector)), 1e-9)
        result: Floats = total / max(float(np.linalg.norm(total)), 1e-9)
        return result

    def _post(self, inputs: list[str], attempts: int | None) -> list[Floats]:
        server = self._server
        body: dict[str, Any] = {"model": server.model, "input": inputs, "encoding_format": "float"}
        if server.shortens:
            body["dimensions"] = server.dimension
        answer = post(self._http, server.endpoint, "embeddings", body, attempts=attempts)
        return _read(answer, len(inputs), server.dimension)


def _read(answer: Any, count: int, dimension: int) -> list[Floats]:
    """The vectors of an answer in the order of the inputs."""
    try:
        by_index = {int(item["index"]): item["embedding"] for item in answer["data"]}
        with np.errstate(over="ignore"):  # what does not fit float32 is caught below
            vectors = [np.asarray(by_index[index], dtype=np.float32) for index in range(count)]
    except (ValueError, KeyError, TypeError) as error:
        raise UnavailableError("the embedding server's answer cannot be read") from error
    if len(by_index) != count:
        raise UnavailableError(f"the embedding server sent {len(by_index)} vectors for {count} texts")
    for vector in vectors:
        if vector.shape != (dimension,):
            raise UnavailableError(
                f"the embedding server sent a vector of shape {vector.shape}, not ({dimension},)",
                hint="name the dimension, as in 'ollama:model@768'",
            )
        if not np.isfinite(vector).all():
            raise UnavailableError("the embedding server sent a vector with NaN or infinity")
    return vectors


def _chunks(text: str) -> list[str]:
    """At most four chunks, none blank: servers refuse empty input."""
    clean = text.encode("utf-8", "replace").decode("utf-8")[: _CHUNK_CHARACTERS * _MOST_CHUNKS]
    parts = [clean[at : at + _CHUNK_CHARACTERS] for at in range(0, len(clean), _CHUNK_CHARACTERS)]
    return [part for part in parts if part.strip()]
