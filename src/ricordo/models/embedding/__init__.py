"""Embedders: text to vectors. Weights come inside packages, and nothing is loaded before the first text.

Importing this package imports none of the models, nor numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from ricordo.errors import InvalidError
from ricordo.models.embedding.checked import checked_batch
from ricordo.models.embedding.remote import embedder as _remote
from ricordo.models.embedding.remote import is_remote

if TYPE_CHECKING:
    from ricordo.ports import Embedder

__all__ = ["LOCAL", "checked_batch", "is_remote", "resolve"]

LOCAL = ("default", "minilm", "multilingual", "hashing")
"""Names of embedders that compute in this process; each is a module of this package."""


def resolve(
    spec: str | Embedder | None,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout_s: float = 30.0,
    attempts: int = 4,
    first_wait_s: float = 0.2,
) -> Embedder | None:
    """The embedder of a name. None stays None: full text only. An object with the methods of one stays
    itself.

    Args:
        spec: "default", "minilm", "multilingual", "hashing", "openai:MODEL", "ollama:MODEL" or
            "http(s)://HOST/v1#MODEL"; the last three may end in "@DIMENSION".
        api_key: for the servers only; the caller reads it from the environment.
        base_url: in place of the server's own address.
        timeout_s: for one request, in seconds.
        attempts: how often a request is made before it counts as failed, at least once.
        first_wait_s: seconds before the second attempt; it doubles, with jitter, for each one after.

    Raises:
        InvalidError: there is no such embedder, or the object is none.
        UnavailableError: the embedder's packages are not installed.
    """
    if spec is None:
        return None
    if not isinstance(spec, str):
        return _brought(spec)
    if spec in LOCAL:
        return cast("Embedder", import_module(f"ricordo.models.embedding.{spec}").embedder())
    if is_remote(spec):
        return _remote(
            spec, api_key=api_key, base_url=base_url, timeout_s=timeout_s, attempts=attempts, first_wait_s=first_wait_s
        )
    known = ", ".join([*LOCAL, "openai:MODEL", "ollama:MODEL", "http://HOST/v1#MODEL"])
    raise InvalidError(f"there is no embedder {spec!r}", hint=f"known are {known}")


def _brought(candidate: Embedder) -> Embedder:
    """An embedder of the caller's own, if it has what one needs."""
    missing = [part for part in ("name", "dimension", "embed", "embed_batch") if not hasattr(candidate, part)]
    if missing:
        raise InvalidError(f"a {type(candidate).__name__} is no embedder: it lacks {', '.join(missing)}")
    return candidate
