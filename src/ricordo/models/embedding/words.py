"""Vectors of texts together with those of their words, from embedders that give both and from those that do not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ricordo.models.embedding.checked import checked_batch, sound
from ricordo.text import function_words

if TYPE_CHECKING:
    from ricordo.ports import Embedder, Kind, Vector

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A text's vector (None where it failed), its content words as the model cuts them, and float32[words, k]."""

    vector: Vector | None
    pieces: tuple[str, ...] = ()
    words: Vector | None = None


async def embed_with_words(embedder: Embedder, texts: Sequence[str], kind: Kind) -> list[Embedded]:
    """Parallel to `texts`. Words are there only where the embedder gives them; nothing is raised for a bad text."""
    together = getattr(embedder, "embed_with_words", None)
    if together is not None:
        return [_content(*found) for found in await together(texts, kind=kind)]
    vectors = await checked_batch(embedder, texts, kind)
    apart = getattr(embedder, "embed_words", None)
    if apart is None:
        return [Embedded(vector=vector) for vector in vectors]
    try:
        worded = await apart(texts)
        return [_content(vector, *found) for vector, found in zip(vectors, worded, strict=True)]
    except Exception as error:  # noqa: BLE001 - an embedder may be anybody's code, and words are an extra
        _log.warning("%s gave no words: %s", embedder.name, type(error).__name__)
        return [Embedded(vector=vector) for vector in vectors]


async def embed_question(embedder: Embedder, text: str) -> Embedded:
    """A question with its words. Its vector is None where the embedder gave nothing sound.

    Raises:
        Whatever the embedder raises: the caller answers without it and says so.
    """
    together = getattr(embedder, "embed_with_words", None)
    if together is not None:
        return _content(*(await together([text], kind="query"))[0])
    vector = sound(await embedder.embed(text, kind="query"), embedder.dimension)
    apart = getattr(embedder, "embed_words", None)
    return Embedded(vector=vector) if apart is None else _content(vector, *(await apart([text]))[0])


def _content(vector: Vector | None, pieces: Sequence[str], words: Vector) -> Embedded:
    """Only pieces that begin a word, and no function words: the others match everything a little."""
    ignored = function_words("en")
    kept = [n for n, piece in enumerate(pieces) if piece[:1].isalnum() and piece not in ignored]
    return Embedded(vector=vector, pieces=tuple(pieces[n] for n in kept), words=words[kept] if kept else None)
