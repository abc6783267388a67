"""Embeddings from any server that speaks OpenAI's protocol: OpenAI, Ollama, vLLM, llama.cpp and others.

Answers are untrusted: their number, order, dimension and values are checked.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ricordo.errors import DeniedError, RicordoError, UnavailableError
from ricordo.models.embedding.local import Floats, Lanes
from ricordo.models.http import Endpoint, client_of, post
from ricordo.ports import Kind

_BATCH = 128
_CHUNK_CHARACTERS = 6_000  # below the 8,191 tokens of OpenAI's models in nearly any script
_MOST_CHUNKS = 4
_GIVE_UP_AFTER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model on a server. All vectors must have `dimension`; with `shortens`, requests include it as a parameter."""

    endpoint: Endpoint
    model: str
    dimension: int
    shortens: bool


class OpenAIEmbedder:
    """An Embedder over HTTP. It connects to the server at the first text."""

    def __init__(self, name: str, served: ServedModel) -> None:
        self.name = name
        self.dimension = served.dimension
        self._lanes = Lanes(name, lambda: Client(served), size=_BATCH)

    async def embed(self, text: str, *, kind: Kind = "query") -> Floats:
        """Return one text as a unit vector float32[dimension]; a blank text is all zeros and makes no request.

        Raises:
            UnavailableError: no usable answer after several attempts.
            DeniedError: the server refuses the key.
            InvalidError: the server refuses the text or does not know the model.
        """
        return await self._lanes.single(text, lambda client, texts: client.request(texts))

    async def embed_batch(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Floats | None]:
        """Embed many texts, in order, at most 128 per request; None for a text that the server does not embed.

        Raises:
            DeniedError: the server refuses the key.
        """
        return await self._lanes.batch(texts, lambda client, part: client.request_each(part))


class Client:
    """Blocking requests with retries; safe to call from several threads."""

    def __init__(self, served: ServedModel) -> None:
        self._served = served
        self._http = client_of(served.endpoint)
        # An Embedder has no `close`: connections end with the last reference to it.
        weakref.finalize(self, self._http.close)

    def request_each(self, texts: list[str]) -> list[Floats | None]:
        """Embed a batch at once; if that fails, one text at a time, one attempt each."""
        try:
            return list(self.request(texts))
        except DeniedError:
            raise
        except RicordoError:
            if len(texts) == 1:
                return [None]
        found: list[Floats | None] = []
        for text in texts:
            # A server that is down is not asked 128 times.
            is_down = len(found) >= _GIVE_UP_AFTER and all(v is None for v in found)
            found.append(None if is_down else self._one(text))
        return found

    def request(self, texts: list[str], *, attempts: int | None = None) -> list[Floats]:
        """Return the unit vectors of all texts. The vector of a long text is the mean of at most four chunks.

        Raises:
            RicordoError: a text cannot be embedded.
        """
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
        total = np.zeros(self._served.dimension, np.float32)
        for vector in vectors:
            total += vector / max(float(np.linalg.norm(vector)), 1e-9)
        result: Floats = total / max(float(np.linalg.norm(total)), 1e-9)
        return result

    def _post(self, inputs: list[str], attempts: int | None) -> list[Floats]:
        served = self._served
        body: dict[str, Any] = {"model": served.model, "input": inputs, "encoding_format": "float"}
        if served.shortens:
            body["dimensions"] = served.dimension
        answer = post(self._http, served.endpoint, "embeddings", body, attempts=attempts)
        return _read(answer, len(inputs), served.dimension)


def _read(answer: Any, count: int, dimension: int) -> list[Floats]:
    """Return the vectors of an answer in the order of the inputs."""
    try:
        by_index = {int(item["index"]): item["embedding"] for item in answer["data"]}
        with np.errstate(over="ignore"):  # values beyond float32 are caught below
            vectors = [np.asarray(by_index[index], dtype=np.float32) for index in range(count)]
    except (ValueError, KeyError, TypeError) as error:
        raise UnavailableError("the embedding server's answer cannot be read") from error
    if len(by_index) != count:
        raise UnavailableError(f"the embedding server sent {len(by_index)} vectors for {count} texts")
    for vector in vectors:
        if vector.shape != (dimension,):
            raise UnavailableError(
                f"the embedding server sent a vector of shape {vector.shape}, not ({dimension},)",
                hint="give the dimension, for example 'ollama:model@768'",
            )
        if not np.isfinite(vector).all():
            raise UnavailableError("the embedding server sent a vector with NaN or infinity")
    return vectors


def _chunks(text: str) -> list[str]:
    """Cut a text into at most four chunks. None of them is blank, because servers refuse empty input."""
    clean = text.encode("utf-8", "replace").decode("utf-8")[: _CHUNK_CHARACTERS * _MOST_CHUNKS]
    parts = [clean[at : at + _CHUNK_CHARACTERS] for at in range(0, len(clean), _CHUNK_CHARACTERS)]
    return [part for part in parts if part.strip()]
