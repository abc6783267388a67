"""Names in several scripts, inflections and spellings, and direct statements about people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.text.names import (
    likeness,
    look_up_keys,
    nominatives,
    predicate_of,
    relation_named,
    relations_in,
    runs_in,
    same_name_key,
    sound_keys,
)
from ricordo.text.relations import is_owners_word, plain_subjects, stated_own_names
from ricordo.text.relatives import stated_relations

ONE_NAME = [
    "Йонас Jonas Yonas",
    "Сара Sarah Sara",
    "Юлия Yulia Julia Yuliya Julija",
    "Сергей Sergey Sergei Sergej",
    "Александр Alexander Aleksandr",
    "Виктория Victoria Viktoria",
    "Джон John",
    "Ханна Hannah Hanna",
    "Фёдор Федор Fyodor Fedor",
    "Пётр Pyotr Petr Peter",
    "Татьяна Tatiana Tatyana Tatjana",
    "Дмитрий Dmitry Dmitri Dmitriy",
    "Елена Elena Yelena Jelena",
    "Γιάννης Yannis",
    "Ελένη Eleni",
    "Γιώργος Yorgos",
    "Шмидт Schmidt",
    "Ксения Xenia Kseniya",
    "Мориц Moritz",
    "Алексей Alexey Aleksei",
    "Майя Maya Maja",
    "Марта Martha Marta",
    "さくら Sakura",
    "王伟 WangWei",
    "Юрген Jürgen",
    "Софья София Sofia Sophia",
    "Екатерина Ekaterina Yekaterina",
    "Наталья Наталия Natalia Natalya",
    "Юрий Yuri Yury Juri",
    "José Jose",
]

MANY_NAMES = [
    "Anna",
    "Maria",
    "Mario",
    "Mary",
    "Marie",
    "Jan",
    "Ian",
    "Ivan",
    "Яна",
    "Жанна",
    "Eva",
    "Eve",
    "Виктор",
    "Виктория",
    "Марфа",
    "Мара",
    "Марк",
    "Александр",
    "Александра",
    "Paul",
    "Paula",
    "Max",
    "Maxim",
    "Lena",
    "Elena",
    "Nina",
    "Nika",
    "Nick",
    "Tom",
    "Tim",
    "Bob",
    "Rob",
    "Olga",
    "Olaf",
    "Irina",
    "Arina",
    "Карина",
    "Марина",
    "Дарья",
    "Дана",
    "שרה",
    "דוד",
    "دינה",
    "محمد",
    "王伟",
    "李娜",
    "さくら",
    "ゆき",
    "김민준",
    "이서연",
]


@pytest.mark.parametrize("spellings", ONE_NAME)
def test_one_name_has_one_key_in_all_its_scripts_and_spellings(spellings: str) -> None:
    assert len({same_name_key(name) for name in spellings.split()}) == 1


def test_different_names_have_different_keys() -> None:
    assert len({same_name_key(name) for name in MANY_NAMES}) == len(MANY_NAMES)


@given(st.text(max_size=40))
def test_any_text_has_a_key_that_is_plain_and_its_own_key(text: str) -> None:
    key = same_name_key(text)
    assert key.isascii()
    assert key == key.lower()
    assert (likeness(text, text) == "same") is True
    look_up_keys(text)
    sound_keys(text)
    runs_in(text)
    stated_relations(text)
    plain_subjects(text)


@pytest.mark.parametrize(
    ("written", "known", "expected"),
    [
        ("Сары", "Сара", "form"),
        ("Сарой", "Сара", "form"),
        ("Сергеем", "Сергей", "form"),
        ("Игоря", "Игорь", "form"),
        ("Павлом", "Павел", "form"),
        ("Юлии", "Юлия", "form"),
        ("Ильёй", "Илья", "form"),
        ("Маше", "Маша", "form"),
        ("Анной Петровой", "Анна Петрова", "form"),
        ("Петровского", "Петровский", "form"),
        ("Любовью", "Любовь", "form"),
        ("Κώστα", "Κώστας", "form"),
        ("Йонасом", "Jonas", "sound"),
        ("Сарой", "Sarah", "sound"),
        ("САРА", "Сара", "same"),
        ("José", "jose", "same"),
        ("Мара", "Мария", None),
        ("Виктория", "Виктор", None),
        ("Сарай", "Сара", None),
        ("Express", "Expression", None),
        ("Ян", "Яна", None),
        ("Anna", "Anna Petrova", None),
        ("Бо", "Bo", None),
    ],
)
def test_degrees_of_likeness_between_names(written: str, known: str, expected: str | None) -> None:
    assert likeness(written, known) == expected


def test_only_russian_names_get_a_nominative() -> None:
    assert "сара" in nominatives("сарой")
    assert nominatives("sarah") == ("sarah",)
    assert nominatives("שרה") == ("שרה",)


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("my wife", "wife"),
        ("My Wife", "wife"),
        ("моя жена", "wife"),
        ("моей жене", "wife"),
        ("моего мужа", "husband"),
        ("my mum", "mother"),
        ("моей маме", "mother"),
        ("my older brother", "brother"),
        ("my ex-wife", "ex-wife"),
        ("моей бывшей жены", "ex-wife"),
        ("my mother-in-law", "mother-in-law"),
        ("my manager", "boss"),
        ("our son", "son"),
        ("the user's wife", "wife"),
        ("wife", None),
        ("his wife", None),
        ("my wife's sister", None),
        ("my wives", None),
        ("Sarah", None),
        ("", None),
    ],
)
def test_a_relation_is_named_by_whole_phrases(text: str, relation: str | None) -> None:
    assert relation_named(text) == relation


def test_relations_mentioned_in_a_text() -> None:
    assert relations_in("I told my wife and my older brother; моей бывшей жене не сказал") == {
        "wife",
        "brother",
        "ex-wife",
    }
    assert relations_in("His wife told my wifi provider") == frozenset()
    assert (predicate_of("жена"), predicate_of(" My  Boss "), predicate_of("Chess partner")) == (
        "wife",
        "boss",
        "chess partner",
    )


LEARNT = {
    "my wife is Sarah": ("wife", "Sarah"),
    "My wife's name is Sarah Connor!": ("wife", "Sarah Connor"),
    "Sarah is my wife": ("wife", "Sarah"),
    "Hi! By the way, my boss is Dr. Karen Smith, she is nice": ("boss", "Karen Smith"),
    "This is Tom, my brother": ("brother", "Tom"),
    "my dog is Rex": ("dog", "Rex"),
    "Meet my daughter Zoë": ("daughter", "Zoë"),
    "I went to Rome with my wife Sarah": ("wife", "Sarah"),
    "my wife, Sarah, is a vet": ("wife", "Sarah"),
    "The user's boss is Ivan Petrov": ("boss", "Ivan Petrov"),
    "My mother-in-law is Olga and she cooks": ("mother-in-law", "Olga"),
    "Note: my best friend is Li Wei": ("best friend", "Li Wei"),
    "My wife is Sarah Monday": ("wife", "Sarah"),
    "моя жена — Сара": ("wife", "Сара"),
    "Моя жена Сара любит тюльпаны": ("wife", "Сара"),
    "мою жену зовут Сарой": ("wife", "Сара"),
    "Сара моя жена": ("wife", "Сара"),
    "Мой начальник — Иван Петрович": ("boss", "Иван Петрович"),
    "Моего сына зовут Александром": ("son", "Александр"),
    "Моего брата зовут Сергей": ("brother", "Сергей"),
    "Мою дочь зовут Машей": ("daughter", "Маша"),
    "Мою маму зовут Анной Петровой": ("mother", "Анна Петрова"),
}

NOT_LEARNT = [
    'Tom said "I came with my wife Sarah"',
    "Is my wife Sarah?",
    "My wife was Sarah",
    "My wife's name was Sarah",
    "My wife is not Sarah",
    "My wife isn't Sarah",
    'Tom said "my wife is Sarah"',
    "He said: «моя жена — Сара»",
    "Tom: my wife is Sarah",
    "‘My wife is Sarah’",
    "My wife is German",
    "My wife is a doctor",
    "My wife is Sarah's friend",
    "my wife's sister is Anna",
    "Sarah is my wife's sister",
    "She is my wife",
    "This is my wife",
    "Music is my best friend",
    "My boss is CEO",
    "If my wife is Sarah then",
    "I told my wife Sarah called",
    "His wife is Sarah",
    "Tom's wife is Sarah",
    "My late wife Sarah loved it",
    "My brother Tuesday",
    "my dog is Happy",
    "Running is my therapist",
    "My wife is Sarah or Anna?",
    "My wife is Very happy",
    "мою жену звали Сара",
    "моя жена не Сара",
    "Моя жена была Сара",
    "Моя жена врач",
    "Это моя жена",
    "Она — моя жена",
    "Работа — моя жена",
    "Жена Тома — Сара",
    "Моего брата зовут Игорем",
    "My wife is happy",
]


@pytest.mark.parametrize("said", LEARNT)
def test_direct_statements_are_learnt(said: str) -> None:
    assert [(found.predicate, found.name) for found in stated_relations(said)] == [LEARNT[said]]


@pytest.mark.parametrize("said", NOT_LEARNT)
def test_indirect_statements_are_not_learnt(said: str) -> None:
    assert stated_relations(said) == []


OWN_NAMES = [
    "My name is Clara",
    "The user is called Clara",
    "Меня зовут Клара",
    "Известно, что пользователя зовут Клара",
    "Die Nutzerin heißt Clara",
    "L'utilisatrice s'appelle Clara",
    "La usuaria se llama Clara",
    "L'utente si chiama Clara",
    "A usuária se chama Clara",
]
NAMES_OF_OTHERS = [
    "The user's dog is called Rex",
    "Собаку пользователя зовут Рекс",
    "Кота у меня зовут Барсик",
    "Die Frau der Nutzerin heißt Anna",
    "Der Mann der Benutzerin heißt Tom",
    "Le chien de l'utilisateur s'appelle Rex",
    "El perro del usuario se llama Rex",
    "La esposa de la usuaria se llama Ana",
    "Il cane dell'utente si chiama Rex",
    "O cachorro do usuário se chama Rex",
    "A filha da usuária se chama Ana",
]


@pytest.mark.parametrize("text", OWN_NAMES)
def test_the_users_name_is_learnt(text: str) -> None:
    assert stated_own_names(text) in (("Clara",), ("Клара",))


@pytest.mark.parametrize("text", NAMES_OF_OTHERS)
def test_the_name_of_somebody_of_the_user_is_not_the_users(text: str) -> None:
    assert stated_own_names(text) == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Anna lives in Paris", ("Anna",)),
        ("Anna and Bob live here", ("Anna", "Bob")),
        ("Анна живёт в Париже", ("Анна",)),
        ("Anna's sister lives in Rome", ()),
        ("Anna, my sister, is here", ()),
        ("anna lives here", ("Anna",)),
        ("art lives here", ()),
        ("Anna: hello there", ()),
        ("Anna", ()),
        ("Anna Karenina", ()),
    ],
)
def test_a_statement_begins_with_its_subject(text: str, names: tuple[str, ...]) -> None:
    assert plain_subjects(text) == names


def test_trust_follows_from_origin_and_role() -> None:
    assert is_owners_word("user", "conversation", None, owner="me")
    assert is_owners_word("user", "conversation", "Анна", owner="anna")
    assert not is_owners_word("user", "conversation", "Tom", owner="anna")
    assert not is_owners_word("assistant", "conversation", None, owner="me")
    assert not is_owners_word("user", "web", None, owner="me")
    assert not is_owners_word("user", "conversation", None, owner="")
