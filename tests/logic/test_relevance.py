"""The chance level is measured for each measure and for their sum."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from ricordo.model import Node
from ricordo.retrieval.query import Query
from ricordo.retrieval.ranking import Ranked
from ricordo.retrieval.relevance import MEASURES, Evidence, Floor, floor_of, judge, relevance_of


def found(*candidates: tuple[float, ...]) -> np.ndarray:
    return np.array(candidates, np.float32).T


def evidence(values: np.ndarray) -> Evidence:
    size = values.shape[1]
    return Evidence(
        values=values,
        met=np.zeros((0, size), np.float32),
        worth=np.zeros(0, np.float32),
        anchored=np.zeros(size, np.bool_),
        of_named_speaker=np.zeros(size, np.bool_),
        names_others=np.zeros(size, np.bool_),
        said=np.zeros((1, size), np.float32),
        beside=np.zeros((0, size), np.float32),
        letters=np.zeros(size, np.float32),
        worded=np.zeros(size, np.bool_),
        in_period=np.zeros(size, np.bool_),
        says_little=np.zeros(size, np.float32),
    )


def prompts(*, together: bool) -> list[np.ndarray]:
    """Return scores of prompts: the best by words and by meaning are one memory, or two."""
    steps = np.linspace(0.2, 0.6, 9)
    if together:
        return [found((step, step, 0.5, 2.0)) for step in steps]
    return [found((step, 0.0, 0.5, 2.0), (0.0, step, 0.5, 2.0)) for step in steps]


@pytest.mark.parametrize("model", [0, 1])
def test_the_floor_is_above_the_combined_chance_level(model: int) -> None:
    one, two = (floor_of(prompts(together=together), model=model, count=20) for together in (True, False))
    assert one.middle == two.middle and one.spread == two.spread
    assert len(one.middle) == len(MEASURES)
    assert (two.chance < one.chance) == bool(model)
    answer = evidence(found((0.7, 0.7, 1.0, 4.0)))
    assert relevance_of(answer, two)[0][0] - relevance_of(answer, one)[0][0] == pytest.approx(one.chance - two.chance)


def test_a_store_that_finds_nothing_has_a_floor() -> None:
    floor = floor_of([], model=1, count=0)
    assert floor.chance == 0.0
    assert relevance_of(evidence(found((0.0, 0.0, 0.0, 0.0))), floor)[0][0] < 0


AT = datetime(2026, 1, 1, tzinfo=UTC)
CHANCE = Floor(model=1, count=100, middle=(0.0,) * 4, spread=(0.1,) * 4)
CLEARS, FALLS_SHORT = (0.6, 0.2, 0.6, 0.6), (0.1, 0.0, 0.1, 0.0)


def judged(*scores: float, clears: bool, with_leading: bool = True) -> list[int]:
    """Return the ranks that stay, if the first hit passes the floor or not and all others are far below it."""
    size = len(scores)
    best = [Ranked(key=place, place=place, score=score) for place, score in enumerate(scores)]
    nodes = {
        key: Node(id=f"{key}", type="episodic", content="", event_time=AT, created_at=AT, valid_from=AT, key=key)
        for key in range(size)
    }
    values = found(CLEARS if clears else FALLS_SHORT, *[FALLS_SHORT] * (size - 1))
    query = Query(text="where?", only_relevant=True, with_leading=with_leading)
    return [each.key for each in judge(best, evidence(values), CHANCE, nodes=nodes, query=query).kept]


def test_the_first_hits_stay_in_a_context_if_any_hit_passes() -> None:
    assert judged(1.0, 0.9, *(0.8 - n / 100 for n in range(10)), clears=True) == [*range(10)]
    assert judged(1.0, 0.9, 0.59, 0.5, clears=True) == [0, 1]  # this much below the best
    assert judged(1.0, 0.9, 0.8, clears=False) == []
    assert judged(1.0, 0.9, 0.8, clears=True, with_leading=False) == [0]
