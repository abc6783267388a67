"""Embedders: text to vectors. Importing this package imports no model and no numpy.

Local weights come inside installed packages, and nothing is loaded before the first text.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from ricordo.errors import InvalidError
from ricordo.models.embedding.vectors import checked_batch

if TYPE_CHECKING:
    from ricordo.models.embedding.openai import OpenAIEmbedder
    from ricordo.ports import Embedder

__all__ = ["LOCAL", "checked_batch", "is_remote", "resolve"]

LOCAL = ("default", "minilm", "multilingual", "hashing")
"""Names of the embedders that run in this process; each is a module of this package."""

_BASE_URLS = {"openai": "https://api.openai.com/v1", "ollama": "http://localhost:11434/v1"}
_DIMENSIONS = {
    # OpenAI's third generation can be shortened; at 256 dimensions a million memories fit into RAM.
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


def resolve(
    spec: str | Embedder | None,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout_s: float = 30.0,
    attempts: int = 4,
    first_wait_s: float = 0.2,
) -> Embedder | None:
    """Return the embedder of a name. None (full text only) and an embedder object are returned as they are.

    Args:
        spec: "default", "minilm", "multilingual", "hashing", "openai:MODEL", "ollama:MODEL" or
            "http(s)://HOST/v1#MODEL"; the last three may end in "@DIMENSION".
        api_key: for servers only; the caller reads it from the environment.
        base_url: replaces the server's default address.
        timeout_s: for one request, in seconds.
        attempts: how often a request is made before it counts as failed; at least 1.
        first_wait_s: seconds before the second attempt; the wait doubles, with jitter, for each further one.

    Raises:
        InvalidError: no embedder has this name, or the object is not an embedder.
        UnavailableError: the embedder's packages are not installed.
    """
    if spec is None:
        return None
    if not isinstance(spec, str):
        return _checked_object(spec)
    if spec in LOCAL:
        return cast("Embedder", import_module(f"ricordo.models.embedding.{spec}").embedder())
    if is_remote(spec):
        return _remote(
            spec, api_key=api_key, base_url=base_url, timeout_s=timeout_s, attempts=attempts, first_wait_s=first_wait_s
        )
    known = ", ".join([*LOCAL, "openai:MODEL", "ollama:MODEL", "http://HOST/v1#MODEL"])
    raise InvalidError(f"there is no embedder {spec!r}", hint=f"choose one of {known}")


def is_remote(spec: str) -> bool:
    """Whether a name stands for a server: openai:, ollama:, http:// or https://."""
    return spec.partition(":")[0] in {*_BASE_URLS, "http", "https"}


def _checked_object(candidate: Embedder) -> Embedder:
    missing = [part for part in ("name", "dimension", "embed", "embed_batch") if not hasattr(candidate, part)]
    if missing:
        raise InvalidError(f"a {type(candidate).__name__} is not an embedder: it lacks {', '.join(missing)}")
    return candidate


def _remote(
    spec: str, *, api_key: str | None, base_url: str | None, timeout_s: float, attempts: int, first_wait_s: float
) -> OpenAIEmbedder:
    provider, url, rest = _split(spec)
    model, _, given = rest.partition("@")
    if not model:
        raise InvalidError(f"the embedder {spec!r} names no model", hint="as in 'http://localhost:8000/v1#model'")
    dimension = _dimension(model, given)
    from ricordo.models.embedding.openai import OpenAIEmbedder, ServedModel
    from ricordo.models.http import Endpoint, bearer

    endpoint = Endpoint(
        base_url=base_url or url,
        what="embedding server",
        headers=bearer(api_key),
        timeout_s=timeout_s,
        attempts=attempts,
        first_wait_s=first_wait_s,
    )
    served = ServedModel(endpoint=endpoint, model=model, dimension=dimension, shortens=model.startswith(_SHORTENED))
    return OpenAIEmbedder(f"{provider}:{model}@{dimension}", served)


def _split(spec: str) -> tuple[str, str, str]:
    """Split a name into provider, base URL, and model with its dimension."""
    provider, _, rest = spec.partition(":")
    if provider in _BASE_URLS:
        return provider, _BASE_URLS[provider], rest
    url, _, model = spec.partition("#")
    return "http", url, model


def _dimension(model: str, given: str) -> int:
    if given:
        if not given.isdecimal() or not 1 <= int(given) <= 8192:
            raise InvalidError(f"{given!r} is not a dimension from 1 to 8192")
        return int(given)
    # A tag of an Ollama model changes its dimension only if it names a size.
    known = _DIMENSIONS.get(model) or _DIMENSIONS.get(model.removesuffix(":latest"))
    if known is None:
        raise InvalidError(
            f"the dimension of the embedding model {model!r} is unknown", hint=f"give it, as in '{model}@768'"
        )
    return known
