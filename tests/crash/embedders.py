"""A second tiny embedder, so that a store can change its model without waiting for a real one."""

from __future__ import annotations

import numpy as np


class Letters:
    """How often each letter occurs: float32[26], of length one."""

    name = "letters"
    dimension = 26

    async def embed(self, text, *, kind="query"):
        del kind
        counts = np.array([text[:2_000].lower().count(chr(97 + place)) for place in range(26)], np.float32)
        return counts / max(1.0, float(np.linalg.norm(counts)))

    async def embed_batch(self, texts, *, kind="passage"):
        return [await self.embed(text, kind=kind) for text in texts]

    async def embed_words(self, texts):
        """Vectors of the first words of each text, too, as some embedders give them."""
        pieces = [text[:200].split()[:8] for text in texts]
        return [
            (each, np.array([await self.embed(piece) for piece in each], np.float32).reshape(-1, self.dimension))
            for each in pieces
        ]
