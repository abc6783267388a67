"""Which statements say much the same: what is forgotten is recognised in other words, and its neighbours are not it."""

from __future__ import annotations

import pytest

from ricordo.text.likeness import is_much_the_same

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
