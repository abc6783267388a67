"""Takes what an embedder answers for what it is: somebody else's. Only sound vectors come through."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ricordo.errors import DeniedError, UnavailableError

if TYPE_CHECKING:
    from ricordo.ports import Embedder, Kind, Vector

_log = logging.getLogger(__name__)

_GIVE_UP_AFTER = 3


async def checked_batch(embedder: Embedder, texts: Sequence[str], kind: Kind) -> list[Vector | None]:
    """Sound vectors parallel to `texts`: finite float32[dimension], or None where there is none to be had.

    When the batch fails as a whole, in any way, each text is tried by itself; when the provider is down or
    refuses the key three times in a row, the rest is left. Vectors that are NaN, infinite or of another shape
    are refused. Both are logged, without the texts. Raises nothing.
    """
    if not texts:
        return []
    try:
        answers: Sequence[object] = await embedder.embed_batch(texts, kind=kind)
        if len(answers) != len(texts):
            raise ValueError(f"{len(answers)} vectors for {len(texts)} texts")
    except Exception as error:  # noqa: BLE001 - an embedder may be anybody's code
        _log.warning("%s failed on a batch of %d: %s", embedder.name, len(texts), _brief(error))
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
        _log.warning("%s gave no vector for %d of %d texts", embedder.name, failed, len(texts))
    return found


def sound(answer: object, dimension: int) -> Vector | None:
    """An embedder's answer as float32[dimension], or None where it is no finite vector of that shape."""
    import numpy as np

    if answer is None:
        return None
    if isinstance(answer, np.ndarray) and answer.dtype == np.float32:
        vector = answer
    else:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what does not fit float32 is caught below
                vector = np.asarray(answer, dtype=np.float32)
        except (TypeError, ValueError, OverflowError):
            return None
    return vector if vector.shape == (dimension,) and bool(np.isfinite(vector).all()) else None


def _brief(error: Exception) -> str:
    """Class and beginning: a provider's message may quote the text, which does not belong in a log."""
    return f"{type(error).__name__}: {str(error)[:200]}"
