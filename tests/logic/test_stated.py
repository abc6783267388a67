"""Of a fact it is not enough that it is about whom the question names."""

from __future__ import annotations

import numpy as np

from ricordo.retrieval.stated import EVERYTHING, asked_for, features, stated
from ricordo.words import index_terms
from ricordo.words.names import nominatives


def found(met: list[float], *, anchored: list[bool], letters: list[float] | None = None) -> dict[str, np.ndarray]:
    size = len(met)
    return features(
        cosines=np.zeros(size), words=np.zeros(size), met=np.array(met), letters=np.array(letters or [0.0] * size),
        scores=np.zeros(size), even=np.zeros(size), anchored=np.array(anchored), names_others=~np.array(anchored),
        is_own=False,
    )  # fmt: skip


def test_what_is_asked_for_is_neither_the_name_nor_that_one_wants_to_know() -> None:
    (shoe,), (anna,), (tell,) = (index_terms(word) for word in ("shoe", "Anna", "tell"))
    words = (shoe, anna, tell, "piece")
    terms = dict.fromkeys((shoe, anna, tell), None)
    assert asked_for(words, terms=terms, names=frozenset((anna,))).tolist() == [True, False, False, False]


def test_of_facts_about_the_same_the_one_that_meets_what_is_asked_for_is_likely_and_the_others_are_not() -> None:
    likely, other, stranger = stated(
        found([0.9, 0.2, 0.3], anchored=[True, True, False], letters=[3.0, 0.0, 0.0]), is_named=True, asks_all=False
    )
    assert likely > 0 > other > stranger


def test_whoever_asks_for_everything_is_told_all_about_whom_they_name() -> None:
    told = stated(found([0.0, 0.0, 0.0], anchored=[True, False, True]), is_named=True, asks_all=True)
    assert (told == EVERYTHING).tolist() == [True, False, True] and told[1] < 0


def test_the_only_fact_has_nothing_to_be_compared_with() -> None:
    assert np.isfinite(stated(found([0.4], anchored=[True]), is_named=True, asks_all=False)).all()
    assert np.isfinite(stated(found([0.4], anchored=[False]), is_named=False, asks_all=False)).all()


def test_a_vowel_that_flees_from_the_names_of_pets_comes_back() -> None:
    for written, name in (("пушка", "пушок"), ("пушку", "пушок"), ("орешком", "орешек"), ("огонька", "огонек")):
        assert name in nominatives(written)
    assert "анек" not in nominatives("анькой")
