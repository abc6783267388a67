"""Features of turns and of questions, in both languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.retrieval.signals import asks_for_a_list
from ricordo.text.analyzer import raw_words
from ricordo.text.passages import FIRST_PERSON, NAME, NUMBER, TIME, traits_of


def holds(text: str, trait: int) -> bool:
    return bool(int.from_bytes(traits_of(text, [], [])[:4], "little") & trait)


@pytest.mark.parametrize(
    ("trait", "texts"),
    [
        (NUMBER, ["we were seventeen", "about a million", "нас было двое", "из пяти человек", "ему восемьдесят один"]),
        (FIRST_PERSON, ["she gave it to me", "это для моего брата", "нами гордятся"]),
        (NAME, ["we met Özgür there", "и встретили Лизу", "over to Élodie"]),
        (TIME, ["at ten in the morning", "в десять утра", "прошлой ночью", "во вторник"]),
    ],
)
def test_a_feature_is_detected(trait: int, texts: list[str]) -> None:
    assert [text for text in texts if not holds(text, trait)] == []


@pytest.mark.parametrize(
    ("trait", "texts"),
    [
        (NUMBER, ["someone came", "вдоль реки"]),
        (NAME, ["and I'm tired", "so I’ll go", "Anfang", "а я устал"]),
        (TIME, ["the sofa is grey", "среда обитания"]),
    ],
)
def test_a_feature_is_not_invented(trait: int, texts: list[str]) -> None:
    assert [text for text in texts if holds(text, trait)] == []


@pytest.mark.parametrize(
    "question",
    [
        "what books has she read?",
        "which two cities",
        "list the guests",
        "both dogs",
        "какие книги она читала",
        "с какими людьми он дружит",
        "назови всех гостей",
        "перечисли города",
        "у обоих братьев",
        "все города",
    ],
)
def test_a_question_for_several_things_is_recognised(question: str) -> None:
    assert asks_for_a_list(question)


@pytest.mark.parametrize(
    "question", ["what is his name", "where was she", "какая книга", "он все ещё в Казани?", "ему все равно?"]
)
def test_a_question_for_one_thing_is_not_a_list_question(question: str) -> None:
    assert not asks_for_a_list(question)


_PIECES = st.sampled_from(
    ("I", "m", "'", "’", "2", "1999", "12.5.2024", " ", "seven", "Monday", "ten", "_", "я", "?", "x")
)


@given(st.lists(_PIECES, max_size=8).map("".join))
def test_cached_words_change_no_result(text: str) -> None:
    assert traits_of(text, [], [], raw_words(text)) == traits_of(text, [], [])
