"""Embedders: text to vectors. Importing this package imports no model and no numpy.

Local weights are part of installed packages, and nothing is loaded before the first text. Vectors from embedders are
checked: those with a wrong shape or values that are not finite are rejected.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from ricordo.errors import DeniedError, InvalidError, UnavailableError
from ricordo.text.analyzer import function_words

if TYPE_CHECKING:
    from ricordo.ports import Embedder, Kind, Vector

_log = logging.getLogger(__name__)

LOCAL = {
    "default": "default:embedder",
    "minilm": "minilm:embedder",
    "multilingual": "multilingual:embedder",
    "hashing": "local:hashing_embedder",
}
"""The embedders that run in this process, by name: the module in this package and its factory function."""

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
    """Return the embedder with a name. None (full text only) and embedder objects are returned unchanged.

    Args:
        spec: "default", "minilm", "multilingual", "hashing", "openai:MODEL", "ollama:MODEL" or
            "http(s)://HOST/v1#MODEL"; the last three may end in "@DIMENSION".
        api_key: for servers only; the caller reads it from the environment.
        base_url: replaces the server's default address.
        timeout_s: for one request, in seconds.
        attempts: number of attempts before a request counts as failed; at least 1.
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
        local: Embedder = resolve_name(f"{__name__}.{LOCAL[spec]}")()
        return local
    if is_remote(spec):
        patience: dict[str, Any] = {"timeout_s": timeout_s, "attempts": attempts, "first_wait_s": first_wait_s}
        return _remote(spec, base_url, api_key, patience)
    known = ", ".join([*LOCAL, "openai:MODEL", "ollama:MODEL", "http://HOST/v1#MODEL"])
    raise InvalidError(f"there is no embedder {spec!r}", hint=f"choose one of {known}")


def is_remote(spec: str) -> bool:
    """Return whether a name refers to a server: openai:, ollama:, http:// or https://."""
    return spec.partition(":")[0] in {*_BASE_URLS, "http", "https"}


def _checked_object(candidate: Embedder) -> Embedder:
    missing = [part for part in ("name", "dimension", "embed", "embed_batch") if not hasattr(candidate, part)]
    if missing:
        raise InvalidError(f"a {type(candidate).__name__} is not an embedder: it lacks {', '.join(missing)}")
    return candidate


def _remote(spec: str, base_url: str | None, api_key: str | None, patience: dict[str, Any]) -> Embedder:
    provider, _, rest = spec.partition(":")
    url = _BASE_URLS.get(provider)
    if url is None:
        provider, (url, _, rest) = "http", spec.partition("#")
    model, _, given = rest.partition("@")
    if not model:
        raise InvalidError(
            f"the embedder {spec!r} does not name a model", hint="for example 'http://localhost:8000/v1#model'"
        )
    dimension = _dimension(model, given)
    from ricordo.models.embedding.openai import OpenAIEmbedder, ServedModel
    from ricordo.models.http import Endpoint, bearer, key_variable

    variable = "" if base_url else key_variable(provider)
    endpoint = Endpoint(
        base_url=base_url or url, what="embedding server", headers=bearer(api_key), key_variable=variable, **patience
    )
    served = ServedModel(endpoint=endpoint, model=model, dimension=dimension, shortens=model.startswith(_SHORTENED))
    return OpenAIEmbedder(f"{provider}:{model}@{dimension}", served)


def _dimension(model: str, given: str) -> int:
    if given:
        if not given.isdecimal() or not 1 <= int(given) <= 8192:
            raise InvalidError(f"{given!r} is not a dimension from 1 to 8192")
        return int(given)
    # A tag of an Ollama model changes its dimension only if it names a size.
    known = _DIMENSIONS.get(model) or _DIMENSIONS.get(model.removesuffix(":latest"))
    if known is None:
        raise InvalidError(
            f"the dimension of the embedding model {model!r} is unknown",
            hint=f"give the dimension, for example '{model}@768'",
        )
    return known


# vectors of texts and of their words

_GIVE_UP_AFTER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A text's vector (None if embedding failed), the word pieces of its content words, and their float32[words, k].

    `passages`: float32[passages, d] for a text that was embedded as several passages. The words of different passages
    are then separated by `PASSAGE_BREAK`, whose vector is zero.
    """

    vector: Vector | None
    passages: Vector | None = None
    pieces: tuple[str, ...] = ()
    words: Vector | None = None


async def embed_with_words(embedder: Embedder, texts: Sequence[str], kind: Kind) -> list[Embedded]:
    """Embed texts in order, with words if the embedder supports them. Raises nothing; failed ones have no vector."""
    together = getattr(embedder, "embed_with_words", None)
    if together is not None:
        return [_content(*found) for found in await together(texts, kind=kind)]
    vectors = await checked_batch(embedder, texts, kind)
    embed_words = getattr(embedder, "embed_words", None)
    if embed_words is None:
        return [Embedded(vector=vector) for vector in vectors]
    try:
        worded = await embed_words(texts)
        return [_content(vector, *found) for vector, found in zip(vectors, worded, strict=True)]
    except Exception as error:  # noqa: BLE001 - an embedder may be third-party code, and words are optional
        _log.warning("%s returned no words: %s", embedder.name, type(error).__name__)
        return [Embedded(vector=vector) for vector in vectors]


PASSAGE_BREAK = "¶"


async def embed_passages(embedder: Embedder, texts: Sequence[Sequence[str]]) -> list[Embedded]:
    """Embed texts that are split into passages, each passage once. The vector of a text is the mean of its passages'
    vectors, scaled to length 1; None if a passage failed. Raises nothing.
    """
    made = await embed_with_words(embedder, [passage for text in texts for passage in text], "passage")
    found, at = [], 0
    for text in texts:
        parts, at = made[at : at + len(text)], at + len(text)
        found.append(joined(parts))
    return found


def joined(parts: Sequence[Embedded]) -> Embedded:
    """Return what a text is embedded as, from its passages; its vector is None if a passage failed."""
    if len(parts) == 1:
        return parts[0]
    import numpy as np

    vectors = [each.vector for each in parts if each.vector is not None]
    if len(vectors) < len(parts):
        return Embedded(vector=None)
    passages = np.stack(vectors)
    mean = passages.mean(axis=0)
    vector = np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9), np.float32)
    width = next((each.words.shape[1] for each in parts if each.words is not None), 0)
    if not width:
        return Embedded(vector=vector, passages=passages)
    gap, none = np.zeros((1, width), np.float32), np.empty((0, width), np.float32)
    pieces, words = list(parts[0].pieces), [none if parts[0].words is None else parts[0].words]
    for each in parts[1:]:
        pieces += [PASSAGE_BREAK, *each.pieces]
        words += [gap, none if each.words is None else each.words]
    return Embedded(vector=vector, passages=passages, pieces=tuple(pieces), words=np.concatenate(words))


async def embed_question(embedder: Embedder, text: str) -> Embedded:
    """Embed a question with its words. The vector is None if the embedder returned an invalid one.

    Raises:
        Exception: any error of the embedder. The caller then searches without a vector and reports the error.
    """
    together = getattr(embedder, "embed_with_words", None)
    if together is not None:
        return _content(*(await together([text], kind="query"))[0])
    vector = sound(await embedder.embed(text, kind="query"), embedder.dimension)
    embed_words = getattr(embedder, "embed_words", None)
    return Embedded(vector=vector) if embed_words is None else _content(vector, *(await embed_words([text]))[0])


def _content(vector: Vector | None, pieces: Sequence[str], words: Vector) -> Embedded:
    """Keep only pieces that begin a content word. Other pieces are slightly similar to everything."""
    ignored = function_words("en")
    kept = [n for n, piece in enumerate(pieces) if piece[:1].isalnum() and piece not in ignored]
    return Embedded(vector=vector, pieces=tuple(pieces[n] for n in kept), words=words[kept] if kept else None)


async def checked_batch(embedder: Embedder, texts: Sequence[str], kind: Kind) -> list[Vector | None]:
    """Return one vector per text, finite float32[dimension], or None if embedding failed. Raises nothing.

    If the batch fails, each text is tried separately; if the provider is down or refuses the key three times in
    a row, the remaining texts are skipped. NaN, infinite or wrongly shaped vectors are refused. Both are logged,
    without the texts.
    """
    if not texts:
        return []
    try:
        answers: Sequence[object] = await embedder.embed_batch(texts, kind=kind)
        if len(answers) != len(texts):
            raise ValueError(f"{len(answers)} vectors for {len(texts)} texts")
    except Exception as error:  # noqa: BLE001 - an embedder may be third-party code
        # Only the beginning of the message: it may quote the text, which does not belong in a log.
        _log.warning("%s failed on a batch of %d: %s: %.200s", embedder.name, len(texts), type(error).__name__, error)
        answers = await _one_by_one(embedder, texts, kind)
    found = [sound(answer, embedder.dimension) for answer in answers]
    refused = sum(vector is None and answer is not None for vector, answer in zip(found, answers, strict=True))
    if refused:
        _log.warning("%s: %d of %d vectors refused as unsound", embedder.name, refused, len(texts))
    return found


async def _one_by_one(embedder: Embedder, texts: Sequence[str], kind: Kind) -> list[object]:
    found: list[object] = []
    failed = down = 0
    for text in texts:
        answer: object = None
        if down < _GIVE_UP_AFTER:
            try:
                answer = await embedder.embed(text, kind=kind)
                down = 0
            except (UnavailableError, DeniedError):
                down += 1
            except Exception:  # noqa: BLE001 - as above; one bad text must not cost the others
                down = 0
        failed += answer is None
        found.append(answer)
    if failed:
        _log.warning("%s returned no vector for %d of %d texts", embedder.name, failed, len(texts))
    return found


def sound(answer: object, dimension: int) -> Vector | None:
    """Return an embedder's answer as float32[dimension], or None if it is not a finite vector of that shape."""
    import numpy as np

    if answer is None:
        return None
    if isinstance(answer, np.ndarray) and answer.dtype == np.float32:
        vector = answer
    else:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # values beyond float32 are caught below
                vector = np.asarray(answer, dtype=np.float32)
        except (TypeError, ValueError, OverflowError):
            return None
    return vector if vector.shape == (dimension,) and bool(np.isfinite(vector).all()) else None
