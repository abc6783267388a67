"""A fact must answer the question, not only be about the named person."""

from __future__ import annotations

import numpy as np
import pytest

from ricordo.retrieval.answerability import EVERYTHING, answer_odds, asked_for, asks_of_themselves, features, parts_of
from ricordo.text.analyzer import index_terms
from ricordo.text.names import nominatives


def found(
    met: list[float] | list[list[float]],
    *,
    anchored: list[bool],
    letters: list[float] | None = None,
    worded: list[bool] | None = None,
) -> dict[str, np.ndarray]:
    """Return `met` for the whole question, or for it and each part."""
    said = np.atleast_2d(np.array(met, np.float64))
    size = said.shape[1]
    return features(
        cosines=np.zeros(size),
        said=said,
        by_chance=np.full(len(said), 0.2),
        letters=np.array(letters or [0.0] * size),
        worded=np.array(worded or [True] * size),
        anchored=np.array(anchored),
        texts=["Anna is away"] * size,
        question="What does Anna wear?",
    )


def test_names_and_ask_words_are_not_what_is_asked_for() -> None:
    (shoe,), (anna,), (tell,) = (index_terms(word) for word in ("shoe", "Anna", "tell"))
    words = (shoe, anna, tell, "piece")
    terms = dict.fromkeys((shoe, anna, tell), None)
    assert asked_for(words, terms=terms, names=frozenset((anna,))).tolist() == [True, False, False, False]


def test_of_facts_about_one_person_only_the_matching_one_is_likely() -> None:
    likely, other, stranger = answer_odds(
        found([0.9, 0.2, 0.3], anchored=[True, True, False], letters=[3.0, 0.0, 0.0]), is_named=True, asks_all=False
    )
    assert likely > 0 > other > stranger


def test_a_question_for_everything_returns_all_facts_about_the_person() -> None:
    told = answer_odds(found([0.0, 0.0, 0.0], anchored=[True, False, True]), is_named=True, asks_all=True)
    assert (told == EVERYTHING).tolist() == [True, False, True] and told[1] < 0


def test_a_single_fact_has_no_comparison() -> None:
    assert np.isfinite(answer_odds(found([0.4], anchored=[True]), is_named=True, asks_all=False)).all()
    assert np.isfinite(answer_odds(found([0.4], anchored=[False]), is_named=False, asks_all=False)).all()


def test_fleeting_vowels_in_pet_names_are_restored() -> None:
    for written, name in (("пушка", "пушок"), ("пушку", "пушок"), ("орешком", "орешек"), ("огонька", "огонек")):
        assert name in nominatives(written)
    assert "анек" not in nominatives("анькой")


def test_a_fact_that_answers_one_part_is_ahead_in_that_part() -> None:
    whole = found([0.5, 0.5, 0.3], anchored=[False] * 3)["ahead of its like"]
    parts = found([[0.5, 0.5, 0.3], [1.0, 0.1, 0.3], [0.0, 0.9, 0.3]], anchored=[False] * 3)["ahead of its like"]
    assert (whole <= 0).all()
    assert (parts > 0).tolist() == [True, True, False]


def test_word_matches_are_not_compared_with_whole_text_cosines() -> None:
    ahead = found([0.5, 0.2, 0.7, 0.6], anchored=[False] * 4, worded=[True, True, False, False])["ahead of its like"]
    assert ahead == pytest.approx([0.3, -0.3, 0.1, -0.1])


def test_the_parts_of_a_question_each_ask_for_something() -> None:
    (car,), (tyre,) = index_terms("car"), index_terms("tyres")
    parts = parts_of("What about the car, and what about its tyres?", [car, tyre])
    assert [each.tolist() for each in parts] == [[0], [1]]
    assert parts_of("Thanks, what about the car and its tyres", [car]) == []


@pytest.mark.parametrize(
    ("question", "is_own"),
    [
        ("Tell me a story", False),
        ("How do I sort a list?", False),
        ("Расскажи мне сказку", False),
        ("Tell me about my car", True),
        ("Where do I work?", True),
        ("Где мои ключи?", True),
    ],
)
def test_tell_me_is_not_a_question_about_the_asker(question: str, is_own: bool) -> None:
    assert asks_of_themselves(question) == is_own
