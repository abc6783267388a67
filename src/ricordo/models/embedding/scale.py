"""Make the cosines of any embedder comparable with those of the default embedder.

Whether a fact changes another one is judged by coefficients that were fitted on cosines of the default embedder. With
another one, facts about different people may have .75 instead of .1. So each embedder is asked once for a few facts.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ricordo.errors import UnavailableError
from ricordo.models.embedding import checked_batch
from ricordo.models.embedding.default import NAME
from ricordo.models.embedding.local import HASHING
from ricordo.ports import Embedder

_FACTS = (
    ("Anna lives in Rome", "Anna likes tea"),
    ("Victor is a dentist", "Victor sings in a choir"),
    ("My landlord speaks Polish", "My landlord owns a boat"),
    ("Priya plays chess", "Priya is allergic to nuts"),
    ("The bakery closes at five", "The bakery was painted blue"),
    ("Тимур учит японский", "Тимур держит кошку"),
    ("Frau Krüger backt gern", "Frau Krüger hört schlecht"),
    ("Lucía trabaja en un banco", "Lucía corre maratones"),
)
"""Two facts each about one person or thing, with nothing else in common."""

_LEAST_APART = 0.02  # an embedder whose cosines lie nearer to each other tells nothing

Cosines = TypeVar("Cosines", float, NDArray[np.float32])


class Scale(NamedTuple):
    """The mean cosines of an embedder.

    Attributes:
        apart: of facts about different people.
        of_one: of two facts about one person.
    """

    apart: float
    of_one: float

    def as_default(self, cosines: Cosines) -> Cosines:
        """Return what the cosines would be with the default embedder, which has the scale `DEFAULT`.

        >>> round(Scale(apart=0.7, of_one=0.82).as_default(0.7) - DEFAULT.apart, 6)
        0.0
        """
        if self == DEFAULT:
            return cosines
        return DEFAULT.apart + (cosines - self.apart) * ((DEFAULT.of_one - DEFAULT.apart) / (self.of_one - self.apart))


DEFAULT = Scale(apart=0.0844, of_one=0.4874)
"""Of the default embedder, as measured here."""

_MEASURED = frozenset((NAME, HASHING))
"""Embedders whose own cosines were measured in benchmarks/knowledge.py."""


async def scale_of(embedder: Embedder) -> Scale | None:
    """Measure the scale of an embedder by one batch of short texts.

    Returns:
        None if its cosines do not tell meanings apart.

    Raises:
        UnavailableError: the embedder fails.
    """
    if embedder.name in _MEASURED:
        return DEFAULT
    found = await checked_batch(embedder, [text for each in _FACTS for text in each], "passage")
    vectors = [vector for vector in found if vector is not None]
    if len(vectors) < len(found):
        raise UnavailableError(f"{embedder.name} failed on {len(found) - len(vectors)} of {len(found)} short texts")
    rows = np.stack(vectors)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    cosines = rows[::2] @ rows[1::2].T
    is_of_one = np.eye(len(cosines), dtype=bool)
    scale = Scale(float(cosines[~is_of_one].mean()), float(cosines[is_of_one].mean()))
    return scale if scale.of_one - scale.apart >= _LEAST_APART else None
