"""The default embedder: MiniLM (English) and the sentence encoder (16 languages) in one space of 256 dimensions.

The space is MiniLM's, centred and reduced to 256 dimensions. `read` is MiniLM's vector of a text in it; `heard` is
the sentence encoder's, brought there by a fitted linear map. The result is `trust * read + 0.75 * heard`, scaled to
length 1. In English `trust` is 1, and two models that err differently are better than either. In other languages
MiniLM's vector is noise and the two models disagree; `trust` is therefore a function of the cosine between them, and
no language has to be guessed. A Russian question meets an English fact because both lie where their English meaning
lies.

`docs/decisions/0002-default-embedder.md` has the figures; `tools/fit_embedding.py` fits the map.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ricordo.models.embedding.local import Floats, LocalWordEmbedder, Worded
from ricordo.models.embedding.minilm import DIMENSION as MINILM_DIMENSION
from ricordo.models.embedding.minilm import WORD_DIMENSION, MiniLM, load_fitted, unit
from ricordo.models.embedding.sentence_encoder import SentenceEncoder
from ricordo.ports import Kind
from ricordo.text.features import is_latin

NAME = "ricordo-default-256-v1"
DIMENSION = 256

_HEARD_WEIGHT = 0.75
# Cosines of read and heard: 99 % of English chat lies above .44; 95 % of Russian below .17, and half of the
# German, Spanish, French and Italian below .14 to .22, though one line in twenty passes .45 to .61.
_NO_TRUST, _FULL_TRUST = 0.1, 0.3


class Default:
    """Both models and the fitted map; safe to call from several threads."""

    def __init__(self) -> None:
        # One thread inflates weights while the other reads vocabularies: a third faster than in sequence.
        with ThreadPoolExecutor(1) as pool:
            encoder = pool.submit(SentenceEncoder)
            self._minilm = MiniLM()
            self._encoder = encoder.result()
        self._fitted = load_fitted("read_") | load_fitted("heard_")

    def encode(self, texts: Sequence[str], kind: Kind) -> Floats:
        """Return unit vectors float32[n, 256]; zeros for a blank text. Both kinds are embedded alike."""
        latin = [i for i, text in enumerate(texts) if is_latin(text)]
        read = np.zeros((len(texts), MINILM_DIMENSION), np.float32)
        if latin:
            read[latin] = self._minilm.encode([texts[i] for i in latin], kind)
        return self._join(read, self._encoder.encode(texts))

    def encode_words(self, texts: Sequence[str], kind: Kind) -> list[Worded]:
        """Return the same vectors, and each text's MiniLM pieces with their unit vectors float32[pieces, 64].

        A text in a script other than Latin has no pieces: MiniLM would read single letters, at three times the cost.
        """
        latin = [i for i, text in enumerate(texts) if is_latin(text)]
        worded = dict(zip(latin, self._minilm.encode_words([texts[i] for i in latin], kind), strict=True))
        nothing = Worded(np.zeros(MINILM_DIMENSION, np.float32), [], np.empty((0, WORD_DIMENSION), np.float32))
        found = [worded.get(i, nothing) for i in range(len(texts))]
        read = np.stack([of_text.vector for of_text in found]) if found else np.empty((0, MINILM_DIMENSION), "f4")
        vectors = self._join(read, self._encoder.encode(texts))
        return [Worded(vector, *of_text[1:]) for vector, of_text in zip(vectors, found, strict=True)]

    def _join(self, minilm: Floats, sentence: Floats) -> Floats:
        """Combine both models' vectors, float32[n, 384] and float32[n, 512], into float32[n, 256]."""
        fitted = self._fitted
        read = _project(minilm, fitted["read_mean"], fitted["read_basis"])
        heard = _project(sentence, fitted["heard_mean"], fitted["heard_basis"])
        agreement = np.einsum("ij,ij->i", read, heard)
        trust = np.clip((agreement - _NO_TRUST) / (_FULL_TRUST - _NO_TRUST), 0.0, 1.0)
        return unit(trust[:, None] * read + _HEARD_WEIGHT * heard)


def embedder() -> LocalWordEmbedder:
    """Return the default embedder: unit vectors of 256 dimensions, 16 languages in one space."""
    return LocalWordEmbedder(NAME, dimension=DIMENSION, load=Default)


def _project(vectors: Floats, mean: Floats, basis: Floats) -> Floats:
    """Centre, project and scale to length 1; zeros (blank texts) stay zeros."""
    has_text = np.any(vectors, axis=1, keepdims=True)
    return unit((vectors - mean) @ basis * has_text)
