"""A second small embedder, to change the embedder of a store quickly."""

from __future__ import annotations

import numpy as np


class Letters:
    """Letter frequencies: float32[26], unit length."""

    name = "letters"
    dimension = 26

    async def embed(self, text, *, kind="query"):
        del kind
        counts = np.array([text[:2_000].lower().count(chr(97 + place)) for place in range(26)], np.float32)
        return counts / max(1.0, float(np.linalg.norm(counts)))

    async def embed_batch(self, texts, *, kind="passage"):
        return [await self.embed(text, kind=kind) for text in texts]

    async def embed_words(self, texts):
        """Also returns vectors of the first words of each text, as some embedders do."""
        pieces = [text[:200].split()[:8] for text in texts]
        return [
            (each, np.array([await self.embed(piece) for piece in each], np.float32).reshape(-1, self.dimension))
            for each in pieces
        ]
