"""Words as the index and queries analyse them."""

from __future__ import annotations

import pytest

from ricordo.text.analyzer import index_terms, name_key, question_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Sarah's peanuts", ["sarah", "peanut"]),
        ("Ёлки и ёжики", ["елк", "и", "ежик"]),
        ("café CAFÉ cafe", ["cafe", "cafe", "cafe"]),
        ("Straße", ["strass"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("don't O'Neil", ["dont", "oneil"]),
        ("2026-03-01", ["2026", "03", "01"]),
        ("\ud800 \0 ---", []),
    ],
)
def test_words_are_folded_and_stemmed_for_their_script(text: str, terms: list[str]) -> None:
    assert index_terms(text) == terms


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What did Caroline do last week?", ["carolin", "last", "week"]),
        ("Что любит моя тётя?", ["люб", "тет"]),
        ("see https://example.org/a?b=c for the recipe", ["see", "recip"]),
        ("who am I?", ["who", "am"]),
        ("Wo wohnt meine Tante?", ["wohnt", "tant"]),
    ],
)
def test_function_words_leave_a_question_by_its_language(question: str, terms: list[str]) -> None:
    assert question_terms(question) == terms


def test_an_article_written_onto_a_word_leaves_the_word_findable() -> None:
    told = index_terms("L'allergie de l'enfant n'est pas à l'école, c'est aujourd'hui")
    for noun in ("une allergie", "cet enfant", "une école"):
        assert set(index_terms(noun)) & set(told) - {"un", "une", "cet"}, noun
    assert not [
        term for text in ("Wie geht's dir denn heute?", "l'heure d'été") for term in index_terms(text) if "'" in term
    ]


def test_a_name_is_one_name_however_it_is_written() -> None:
    assert name_key("José  Álvarez") == name_key("jose alvarez")
    assert name_key("Саша") == name_key("Сашу")
    assert name_key("Express") != name_key("expression")


@pytest.mark.parametrize(
    "forms",
    [
        "Андрей Андрея Андрею Андреем Андрее",
        "Сергей Сергея Сергею Сергеем",
        "Павел Павла Павлу Павлом Павле",
        "Лев Льва Льву Львом",
        "Марина Марины Марине Марину Мариной",
        "Илья Ильи Илье Илью Ильёй",
    ],
)
def test_a_russian_name_is_itself_in_every_case(forms: str) -> None:
    assert len({name_key(form) for form in forms.split()}) == 1
