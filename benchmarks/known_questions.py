"""The `hashing` embedder with precomputed vectors for some questions, so that its own time is not measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ricordo.models.embedding import local
from ricordo.ports import Kind

Floats = NDArray[np.float32]


class KnownQuestions:
    """An embedder."""

    def __init__(self, known: dict[str, Floats]) -> None:
        self._embedder = local.hashing_embedder()
        self.name, self.dimension = self._embedder.name, self._embedder.dimension
        self._known = known

    @classmethod
    async def of(cls, questions: Sequence[str]) -> KnownQuestions:
        """Embed the questions now."""
        embedder = local.hashing_embedder()
        return cls({text: await embedder.embed(text, kind="query") for text in questions})

    async def embed(self, text: str, *, kind: Kind = "query") -> Floats:
        return self._known[text] if text in self._known else await self._embedder.embed(text, kind=kind)

    async def embed_batch(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Floats | None]:
        return await self._embedder.embed_batch(texts, kind=kind)
