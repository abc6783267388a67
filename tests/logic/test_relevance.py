"""What chance reaches is measured twice: by each measure, and by all of them together."""

from __future__ import annotations

import numpy as np
import pytest

from ricordo.retrieval.relevance import MEASURES, Evidence, floor_of, relevance_of


def found(*candidates: tuple[float, ...]) -> np.ndarray:
    return np.array(candidates, np.float32).T


def evidence(values: np.ndarray) -> Evidence:
    size = values.shape[1]
    return Evidence(
        values=values, met=np.zeros((0, size), np.float32), worth=np.zeros(0, np.float32),
        anchored=np.zeros(size, np.bool_), names_others=np.zeros(size, np.bool_),
        said=np.zeros(size, np.float32), letters=np.zeros(size, np.float32),
    )  # fmt: skip


def prompts(*, together: bool) -> list[np.ndarray]:
    """What prompts find: the best by words and the best by meaning are one memory, or two."""
    steps = np.linspace(0.2, 0.6, 9)
    if together:
        return [found((step, step, 0.5, 2.0)) for step in steps]
    return [found((step, 0.0, 0.5, 2.0), (0.0, step, 0.5, 2.0)) for step in steps]


@pytest.mark.parametrize("model", [0, 1])
def test_the_floor_lies_above_what_the_best_reach_together(model: int) -> None:
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
