"""Estimate whether a statement without a date is passing: true for days rather than for months. Pure.

The score of a text is the sum of the weights of its character sequences, words and word pairs, divided by the square
root of how many there are: a naive Bayes log ratio. What was never seen in a fitted text weighs nothing, so nothing
passes in a language without fitted texts. `tools/fit_lifetimes.py` writes the weights to passing.bin, the rest to
passing.json.
"""

from __future__ import annotations

import json
import re
import sys
from array import array
from bisect import bisect_left
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

MOST_CHARS = 400
"""Longer texts are not single statements: nothing is known about them."""

BESIDE_MEANING = 0.5
"""The weight of the words beside that of the meaning."""

_LENGTHS = (4, 5)  # of the character sequences; with 2 and 3 a fifth fewer were recognised
_TECHNICAL = re.compile(r"[/\\@_=<>{}`]\w")
_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"\w+")


class _Fitted(NamedTuple):
    """What was fitted.

    Attributes:
        hashes, weights: sorted CRC-32 of character sequences, words and word pairs, and their weights in `scale`.
        meaning, bias: coefficients for vectors of the default embedder, float[256].
        least: the scores from which a statement passes: by its words, and by its words and its meaning together; higher
            ones where no words for what lasts guard it ("unguarded").
    """

    hashes: array[int]
    weights: array[int]
    scale: float
    meaning: tuple[float, ...]
    bias: float
    least: dict[str, float]


def passes(text: str, *, is_guarded: bool) -> bool:
    """Return whether a statement is passing by its words alone.

    Args:
        is_guarded: whether words for what lasts are known in its language, and it has none of them.
    """
    return len(text) <= MOST_CHARS and score(text) >= _fitted().least[_way("words", is_guarded)]


def likely_by_meaning(vectors: Mapping[int, NDArray[np.float32]]) -> dict[int, float]:
    """Return how much the meaning of statements speaks for their being passing, without those of which it does not.

    Args:
        vectors: of the default embedder, float32[256], by key.
    """
    if not vectors:
        return {}
    import numpy as np

    fitted = _fitted()
    found = np.stack(list(vectors.values())) @ np.asarray(fitted.meaning, np.float32) + fitted.bias
    return {key: likely for key, likely in zip(vectors, found.tolist(), strict=True) if likely > 0}


def passes_by_meaning(text: str, likely: float, *, is_guarded: bool) -> bool:
    """Return whether a statement is passing by its words and its meaning together.

    Args:
        likely: see `likely_by_meaning`.
        is_guarded: as for `passes`.
    """
    least = _fitted().least[_way("meaning", is_guarded)]
    return len(text) <= MOST_CHARS and likely + BESIDE_MEANING * score(text) >= least


def _way(by: str, is_guarded: bool) -> str:
    return by if is_guarded else f"{by}, unguarded"


def score(text: str) -> float:
    """Return how much the words of a statement speak for its being passing; 0 if nothing is known of them, or if it
    names addresses, paths or code, in which sequences of letters mean nothing.
    """
    if _TECHNICAL.search(text):
        return 0.0
    fitted, found = _fitted(), features(text)
    total = 0
    for key in found:
        place = bisect_left(fitted.hashes, key)
        if place < len(fitted.hashes) and fitted.hashes[place] == key:
            total += fitted.weights[place]
    return fitted.scale * total / sqrt(max(1, len(found)))


def features(text: str) -> set[int]:
    """Return the hashes of a text's character sequences, words and word pairs. They are the same on every platform."""
    text = f" {_SPACES.sub(' ', text.strip().lower())} "
    words = _WORD.findall(text)
    found = {text[start : start + chars] for chars in _LENGTHS for start in range(len(text) - chars + 1)}
    found.update(f"w:{word}" for word in words)
    found.update(f"b:{first}_{second}" for first, second in pairwise(words))
    return {crc32(each.encode(errors="surrogatepass")) for each in found}


@cache
def _fitted() -> _Fitted:
    rest = json.loads(files("ricordo.text").joinpath("passing.json").read_text("utf-8"))
    packed = files("ricordo.text").joinpath("passing.bin").read_bytes()
    hashes, weights = array("I"), array("b")
    count = len(packed) // (hashes.itemsize + 1)
    hashes.frombytes(packed[: count * hashes.itemsize])
    weights.frombytes(packed[count * hashes.itemsize :])
    if sys.byteorder == "big":
        hashes.byteswap()
    return _Fitted(hashes, weights, rest["scale"], tuple(rest["meaning"]), rest["bias"], rest["least"])
