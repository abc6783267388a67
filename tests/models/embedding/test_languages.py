"""A question in one language finds the fact in the other, among facts in both."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from ricordo.ports import Embedder

DATA = json.loads((Path(__file__).parent / "pairs.json").read_text(encoding="utf-8"))
TRIED = DATA["pairs"][:20]


def hits(embedder: Embedder, *, question: int, fact: int) -> int:
    """Return how many questions (2 English, 3 Russian) find their fact (0 English, 1 Russian) in the first three.

    Each is among a hundred other facts and those of the other pairs, half in each language.
    """
    others = [pair[n % 2] for n, pair in enumerate(TRIED)]
    facts = [pair[fact] for pair in TRIED]
    questions = [pair[question] for pair in TRIED]
    noise = [*DATA["others_en"], *DATA["others_ru"]]
    batch = asyncio.run(embedder.embed_batch([*facts, *others, *noise]))
    found_facts, found_others, found_noise = batch[:20], batch[20:40], batch[40:]
    count = 0
    for n, asked in enumerate(asyncio.run(embedder.embed_batch(questions, kind="query"))):
        rivals = np.stack([*found_others[:n], *found_others[n + 1 :], *found_noise])
        count += int((rivals @ asked > found_facts[n] @ asked).sum() < 3)
    return count


@pytest.mark.parametrize(
    ("question", "fact"), [(3, 0), (2, 1), (2, 0), (3, 1)], ids=["ru-en", "en-ru", "en-en", "ru-ru"]
)
def test_questions_find_their_facts_whatever_the_languages(default, question, fact):
    assert hits(default, question=question, fact=fact) >= 18


def test_the_check_above_can_fail_minilm_alone_does_not_cross_languages(minilm):
    assert hits(minilm, question=3, fact=0) <= 5


@pytest.mark.parametrize("mixed", ["Anna работает в Porto", "Встреча в Zoom at 5 pm", "I love борщ with sour cream"])
def test_mixed_texts_stand_near_their_translation(default, mixed):
    translated = {
        "Anna работает в Porto": "Anna works in Porto",
        "Встреча в Zoom at 5 pm": "The meeting is on Zoom at 5 pm",
        "I love борщ with sour cream": "I love beetroot soup with sour cream",
    }
    near, far = asyncio.run(default.embed_batch([translated[mixed], "The printer is out of ink."]))
    vector = asyncio.run(default.embed(mixed))
    assert vector @ near > vector @ far + 0.25
