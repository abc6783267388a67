"""The one form of a statement, and which statements say much the same.

What is forgotten is recognised in other words, and its neighbours are not it.
"""

from __future__ import annotations

import pytest

from ricordo.text.canonical import canonical, is_much_the_same, slot_named
from ricordo.text.sentences import in_first_person
from ricordo.text.statement import statement_line

SAME = """
I have a dog | The user has a dog named Rex
Allergic to peanuts | User has a peanut allergy
У меня аллергия на арахис | У пользователя аллергия на арахис
Моя сестра живёт в Праге | Сестра пользователя живёт в Праге
Ich habe einen Hund | Der Nutzer hat einen Hund namens Rex
I live in Rome | The user lives in Rome
I work as a nurse | User works as a nurse at the city hospital
User drinks two cups of coffee in the morning | The user has two cups of coffee each morning
Ich wohne in Rom | Der Nutzer wohnt in Rom
My sister Lena lives in Prague | User's sister Lena lives in Prague
Пользователь работает медсестрой | Я работаю медсестрой в больнице
У меня есть собака | У пользователя собака по кличке Рекс
"""
OTHERS = """
I have a dog | I live in Rome
I have a dog | I work as a nurse
User has a dog | User lives in Rome
My sister lives in Prague | My brother lives in Prague
I live in Rome | I live in Berlin
I live in Rome | I live in a flat with a balcony
Allergic to peanuts | allergic to walnuts
I have a dog | The dog ate my homework
User likes tea | User likes coffee
Anna likes tea | Ben likes tea
I have a dog | I don't have a dog
У меня есть собака | Я живу в Риме
Моя сестра живёт в Праге | Моя сестра работает врачом
Ich habe einen Hund | Ich wohne in Rom
Meine Schwester heißt Lena | Mein Bruder heißt Tom
My door code is 4711 | My door code is 4712
User works at Acme | User lives near Acme
I was born in 1980 in Rome | I was married in 2005 in Rome
Моя сестра живёт в Праге | Мой брат живёт в Праге
Meine Schwester wohnt in Prag | Mein Bruder wohnt in Prag
Я работаю в Яндексе | Я работаю по ночам
"""


def pairs(lines: str) -> list[list[str]]:
    return [line.split(" | ") for line in lines.strip().splitlines()]


@pytest.mark.parametrize(("one", "other"), pairs(SAME))
def test_the_same_in_other_words_is_recognised(one: str, other: str) -> None:
    assert is_much_the_same(one, other)
    assert is_much_the_same(other, one)


@pytest.mark.parametrize(("one", "other"), pairs(OTHERS))
def test_another_subject_value_or_polarity_is_another_statement(one: str, other: str) -> None:
    assert not is_much_the_same(one, other)
    assert not is_much_the_same(other, one)


MEET = """
I work at Globex | The user works at Globex
My wife is Olga | The user's wife is Olga
I'm a nurse | User is a nurse
I never eat meat | The user never eats meat
Ich arbeite bei Bosch | Der Nutzer arbeitet bei Bosch
Meine Frau heißt Petra | Die Frau des Nutzers heißt Petra
Ich fahre einen Golf | Die Nutzerin fährt einen Golf
Я живу в Перми | Пользователь живёт в Перми
Мой любимый цвет красный | Любимый цвет пользователя красный
У меня аллергия на арахис | У пользователя аллергия на арахис
Trabajo en Acme | El usuario trabaja en Acme
Mi color favorito es el azul | El color favorito del usuario es el azul
Ya no como carne | La usuaria ya no come carne
J'habite à Lyon | L'utilisateur habite à Lyon
Ma couleur préférée est le bleu | La couleur préférée de l'utilisatrice est le bleu
Vivo a Roma | L'utente vive a Roma
Non lavoro più per la Fiat | L'utente non lavora più per la Fiat
Moro em Lisboa | O usuário mora em Lisboa
A minha cor favorita é azul | A cor favorita da usuária é azul
"""


@pytest.mark.parametrize(("own", "by_a_model"), pairs(MEET))
def test_what_the_owner_says_and_what_a_model_writes_of_them_are_one_statement(own: str, by_a_model: str) -> None:
    assert statement_line(own) == statement_line(by_a_model)
    assert canonical(own).subject == canonical(by_a_model).subject == ""


OF_OTHERS = """
Anna | I work at Globex | Anna works at Globex
Anna | Ich wohne in Kiel | Anna wohnt in Kiel
Лена | Я учусь в МГУ | Лена учится в МГУ
Anna | I live in Rome | My sister Anna lives in Rome
"""


@pytest.mark.parametrize(("name", "own", "of_them"), pairs(OF_OTHERS))
def test_what_somebody_says_of_themselves_meets_what_is_said_of_them(name: str, own: str, of_them: str) -> None:
    by_them = canonical(own, speaker=name, owner="me", about=[name])
    said = canonical(of_them, owner="me", about=[name])
    assert by_them.verdict(said) == "same" and by_them.subject == said.subject


def test_facts_of_two_people_never_meet() -> None:
    mine, annas = canonical("I live in Leeds"), canonical("Anna lives in Rome", about=["Anna"])
    bobs = canonical("I live in Oslo", speaker="Bob", owner="me", about=["Bob"])
    assert mine.verdict(annas) is None and annas.verdict(bobs) is None and mine.verdict(bobs) is None


@pytest.mark.parametrize(
    "text", ["Users must log in", "Anna lives in Rome", "I use it", "The manual is for the users of the pump"]
)
def test_what_speaks_of_nobody_as_the_user_stays_as_it_is(text: str) -> None:
    assert in_first_person(text) == text


@pytest.mark.parametrize(
    ("label", "slot"),
    [("Place of residence", "home"), ("job_title", "occupation"), ("Wohnort", "home"), ("Место работы", "employer")],
)
def test_a_slot_is_recognised_by_other_names(label: str, slot: str) -> None:
    assert slot_named(label) == slot


@pytest.mark.parametrize(
    ("text", "slot"),
    [
        ("The user works at Globex", "employer"),
        ("I have settled in Manchester", "home"),
        ("Пользователь переехал в Казань", "home"),
        ("Der Nutzer ist mit Julia verheiratet", ""),
        ("The cat sleeps", ""),
    ],
)
def test_a_slot_is_recognised_in_a_statement(text: str, slot: str) -> None:
    assert canonical(text).slot == slot
