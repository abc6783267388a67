"""Reads the names of embedders behind HTTP: who is asked, for which model, and of what dimension it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ricordo.errors import InvalidError

if TYPE_CHECKING:
    from ricordo.models.embedding.openai import OpenAIEmbedder

_BASES = {"openai": "https://api.openai.com/v1", "ollama": "http://localhost:11434/v1"}
_DIMENSIONS = {
    # OpenAI's third generation can be cut short; 256 keeps a million memories in memory.
    "text-embedding-3-large": 256,
    "text-embedding-3-small": 256,
    "text-embedding-ada-002": 1536,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
    "snowflake-arctic-embed": 1024,
    "bge-m3": 1024,
    "all-minilm": 384,
    "embeddinggemma": 768,
}
_SHORTENED = "text-embedding-3-"


def is_remote(spec: str) -> bool:
    """Whether a name asks for a server: openai:, ollama:, http:// or https://."""
    return spec.partition(":")[0] in {*_BASES, "http", "https"}


def embedder(
    spec: str, *, api_key: str | None, base_url: str | None, timeout_s: float, attempts: int, first_wait_s: float
) -> OpenAIEmbedder:
    """The embedder of `openai:MODEL`, `ollama:MODEL` or `http(s)://HOST/v1#MODEL`, each with `@DIMENSION` or
    not.

    Raises:
        InvalidError: no model is named, or its dimension is not known and not given.
        UnavailableError: the packages of the extra are not installed.
    """
    provider, where, rest = _split(spec)
    model, _, given = rest.partition("@")
    if not model:
        raise InvalidError(f"the embedder {spec!r} names no model", hint="as in 'http://localhost:8000/v1#model'")
    dimension = _dimension(model, given)
    from ricordo.models.embedding.openai import OpenAIEmbedder, Server
    from ricordo.models.http import Endpoint, bearer

    endpoint = Endpoint(
        base_url=base_url or where,
        what="embedding server",
        headers=bearer(api_key),
        timeout_s=timeout_s,
        attempts=attempts,
        first_wait_s=first_wait_s,
    )
    server = Server(endpoint=endpoint, model=model, dimension=dimension, shortens=model.startswith(_SHORTENED))
    return OpenAIEmbedder(f"{provider}:{model}@{dimension}", server)


def _split(spec: str) -> tuple[str, str, str]:
    """Provider, base address, and model with its dimension."""
    provider, _, rest = spec.partition(":")
    if provider in _BASES:
        return provider, _BASES[provider], rest
    where, _, model = spec.partition("#")
    return "http", where, model


def _dimension(model: str, given: str) -> int:
    if given:
        if not given.isdecimal() or not 1 <= int(given) <= 8192:
            raise InvalidError(f"{given!r} is not a dimension from 1 to 8192")
        return int(given)
    # Ollama's models carry a tag, which does not change their dimension unless it names a size.
    known = _DIMENSIONS.get(model) or _DIMENSIONS.get(model.removesuffix(":latest"))
    if known is None:
        raise InvalidError(
            f"the dimension of the embedding model {model!r} is not known", hint=f"name it, as in '{model}@768'"
        )
    return known
