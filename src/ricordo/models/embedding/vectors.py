"""Vectors of texts, and of their words, from any embedder. Answers are checked: only sound vectors come through."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ricordo.errors import DeniedError, UnavailableError
from ricordo.text import function_words

if TYPE_CHECKING:
    from ricordo.ports import Embedder, Kind, Vector

_log = logging.getLogger(__name__)

_GIVE_UP_AFTER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A text's vector (None where it failed), its content words as the model cuts them, and float32[words, k]."""

    vector: Vector | None
    pieces: tuple[str, ...] = ()
    words: Vector | None = None


async def embed_with_words(embedder: Embedder, texts: Sequence[str], kind: Kind) -> list[Embedded]:
    """Embed texts, with their words where the embedder supports it. A bad text raises nothing.

    Returns:
        One result per text, in order.
    """
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


async def embed_question(embedder: Embedder, text: str) -> Embedded:
    """Embed a question with its words. Its vector is None where the embedder returned nothing sound.

    Raises:
        Exception: anything the embedder raises; the caller searches without it and reports that.
    """
    together = getattr(embedder, "embed_with_words", None)
    if together is not None:
        return _content(*(await together([text], kind="query"))[0])
    vector = sound(await embedder.embed(text, kind="query"), embedder.dimension)
    embed_words = getattr(embedder, "embed_words", None)
    return Embedded(vector=vector) if embed_words is None else _content(vector, *(await embed_words([text]))[0])


def _content(vector: Vector | None, pieces: Sequence[str], words: Vector) -> Embedded:
    """Keep only pieces that begin a word, without function words: the others match everything a little."""
    ignored = function_words("en")
    kept = [n for n, piece in enumerate(pieces) if piece[:1].isalnum() and piece not in ignored]
    return Embedded(vector=vector, pieces=tuple(pieces[n] for n in kept), words=words[kept] if kept else None)


async def checked_batch(embedder: Embedder, texts: Sequence[str], kind: Kind) -> list[Vector | None]:
    """Return one vector per text, finite float32[dimension], or None where there is none. Raises nothing.

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
