"""Names that rules recognise without a model, and look-alikes."""

from __future__ import annotations

import pytest

from ricordo.text.entity_recognition import entities_named, is_deed
from ricordo.text.languages import default_language, is_ordinary

ENGLISH, RUSSIAN = default_language("LATIN"), default_language("CYRILLIC")


@pytest.mark.parametrize(
    ("said", "name", "kind"),
    [
        ("I had dinner with Marta Solberg last night.", "Marta Solberg", "person"),
        ("Our gardener, Tobias, is on holiday until May.", "Tobias", "person"),
        ("My doctor, Helen Voss, wants me to walk more.", "Helen Voss", "person"),
        ("Elena told me that the boiler is broken", "Elena", "person"),
        ("Bill cooked dinner twice", "Bill", "person"),
        ("Khaled told me that the boiler is broken", "Khaled", "person"),
        ("Gerrit kocht gern für uns alle.", "Gerrit", "person"),
        ("Вадим читает газету.", "Вадим", "person"),
        ("Людмила готовит отлично.", "Людмила", "person"),
        ("Clemente cocina bien.", "Clemente", "person"),
        ("Clément cuisine bien et il est gentil.", "Clément", "person"),
        ("Ravi and I are learning to climb.", "Ravi", "person"),
        ("Yesterday Oscar called from the airport.", "Oscar", "person"),
        ("Mira Aldous from the Hollow Road Trust rang.", "Mira Aldous", "person"),
        ("The Hollow Road Trust gave us a grant.", "Hollow Road Trust", "organization"),
        ("I work at Brightwater as a data engineer.", "Brightwater", "organization"),
        ("She studied at the University of Leeds", "University of Leeds", "organization"),
        ("We started the Lighthouse project in March.", "Lighthouse", "project"),
        ("He ended up using a CPA, Pell Haldane.", "Pell Haldane", "person"),
        ("We rewrote the monologue for Ivora Tinn.", "Ivora Tinn", "person"),
        ("It runs on the machines of Brightwater Systems.", "Brightwater Systems", "organization"),
        ("We spent an hour on the Dialogue Engine.", "Dialogue Engine", "project"),
        ("Someone broke the Type Systems error reports.", "Type Systems", "project"),
        ("Our house is near Aldermere.", "Aldermere", "place"),
        ("I grew up in Ennistymon.", "Ennistymon", "place"),
        ("I've been in Berlin for years", "Berlin", "place"),
        ("Наш садовник Тимур уехал до мая.", "Тимур", "person"),
        ("Лена рассказала, что сломался котёл.", "Лена", "person"),
        ("Мы с Игнатом учимся лазать по скалам.", "Игнат", "person"),
        ("Встретился с Мариной возле метро.", "Марина", "person"),
        ("Мой врач, Елена Фосс, советует больше ходить.", "Елена Фосс", "person"),
        ("Я работаю в компании «Ромашка» бухгалтером.", "Ромашка", "organization"),
        ("Yumara Felk определила редкий вид.", "Yumara Felk", "person"),
        ("Голос Saela должен звучать мягче.", "Saela", "person"),
        ("Лаборатория рядом с Aldermere закрыта.", "Aldermere", "place"),
        ("В марте мы начали проект «Маяк».", "Маяк", "project"),
        ("Живу в Зеленограде с родителями.", "Зеленоград", "place"),
        ("Мой брат живёт в Лиссабоне.", "Лиссабон", "place"),
        ("Я родом из Самары.", "Самара", "place"),
    ],
)
def test_names_are_classified_by_adjacent_words(said: str, name: str, kind: str) -> None:
    assert (name, kind) in [(found.name, found.type) for found in entities_named([said])]


@pytest.mark.parametrize(
    "said",
    [
        "Paris said no to the plan.",
        "London told us to wait.",
        "Moscow called.",
        "Customers want a dark theme.",
        "Started learning Italian",
        "You'll love exploring the culture there.",
        "Bread is baking",
        "Hot drinks are impossible to chug",
        "Honestly cooked dinner twice",
        "Vegan lives matter",
        "Vielleicht kocht er heute.",
        "Manchmal weint sie.",
        "Gelernt kocht sie nicht.",
        "Angefangen wohnt hier niemand",
        "Начал рисует плохо.",
        "Отлично готовит.",
        "Siempre cocina bien.",
        "Mañana llamó a casa.",
        "Finalmente contó todo.",
        "Peut-être cuisine bien.",
        "Keep going, and sure, come along!",
        "Lots has been going on since then!",
        "Mum said dinner is at eight.",
        "Dancing helps me a lot.",
        "Yeah, a buddy of mine adopted last year.",
        "Thankfully, my son is fine.",
        "Simple stretching helps.",
        "Netflix told me to pay.",
        "Kubernetes and I are no friends",
        "I love Mondays in October.",
        "I believe in Santa.",
        "The new iPhone works with Bluetooth and Wi-Fi.",
        "Reading War and Peace on the train.",
        "I prefer Python to Java for scripts.",
        "Do you know Anna Bell from Hollow Lab?",
        "If I lived in Rome I would eat gelato every day.",
        "Imagine Anna lives in Atlantis.",
        'She said "Tom Alder lives in Rome".',
        "The Book Club meets at noon.",
        "Our dog, Rex, is at the vet.",
        "MY BOSS TOLD ME OFF",
        "Москва сказала нет.",
        "Клиенты хотят тёмную тему.",
        "Мама сказала, что ужин в восемь.",
        "Вчера обсудили план.",
        "Дождь закончился только вечером.",
        "Ты знаешь Анну Белову?",
        "Если бы я жил в Риме, я бы ел мороженое.",
        "Читаю Толстого в поезде.",
        "Я ездила к Марку.",
        "我和安娜住在巴黎",
        "Ich wohne mit Freude in Köln",
        "",
    ],
)
def test_ambiguous_names_create_no_entity(said: str) -> None:
    assert entities_named([said]) == ()


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("i climb with Wiebke on mondays", ["Wiebke"]),
        ("told marta about the trip", ["Marta"]),
        ("Lou joue du violon", ["Lou"]),
        ("Ich wohne mit Anna in Köln", ["Anna"]),
        ("хожу в зал с Катей", ["Катя"]),
        ("Cené con Lucía", ["Lucía"]),
        ("Los Völker summen", []),
        ("I gave her a rose", []),
        ("I love Taylor Swift", []),
        ("We sailed on Lake Victoria", []),
        ("mi wifi se llama luna", []),
        ("ma soeur se marie en mai", []),
        ("oggi c'è il sole", []),
        ("la casa es mía", []),
        ("we ate at nando's", []),
        ("mail me at tom@home.org", []),
    ],
)
def test_a_given_name_names_a_person_without_any_other_sign(said: str, names: list[str]) -> None:
    assert [each.name for each in entities_named([said]) if each.type == "person"] == names


def test_contradicting_kinds_create_no_entity() -> None:
    assert entities_named(["I had lunch with Ennis.", "I grew up in Ennis."]) == ()


def test_a_first_name_refers_to_the_full_name() -> None:
    found = entities_named(["I met with Iset Karrow.", "Iset told me about bees."])
    assert [(each.name, each.texts) for each in found] == [("Iset Karrow", (0,))]


def test_a_word_used_as_a_word_is_no_name() -> None:
    assert entities_named(["Bramble told me off."]) != ()
    assert entities_named(["Bramble told me off.", "The bramble is in flower."]) == ()


def test_inflected_forms_are_matched_by_their_base() -> None:
    assert is_ordinary("tracing", ENGLISH)
    assert is_ordinary("stories", ENGLISH)
    assert not is_ordinary("solas", ENGLISH)
    assert is_deed("нарисовала", RUSSIAN)
    assert is_deed("whistled", ENGLISH)
    assert not is_deed("whistle", ENGLISH)
    assert not is_deed("закончился", RUSSIAN)


def test_long_texts_cost_no_more_than_their_beginning() -> None:
    assert len(entities_named(["I met with Marta Solberg. " + "Word " * 200_000])) == 1
    assert entities_named(["A" * 1_000_000]) == ()


def test_a_german_genitive_and_a_saint_are_nobody() -> None:
    assert [each.name for each in entities_named(["Jules Handynummer ist die alte"])] == []
    assert [each.name for each in entities_named(["Ich liege im Krankenhaus St. Georg"]) if each.type == "person"] == []
    said = "Ich war gestern mit Jules Schwester und Andreas bei Gudrun"
    assert [each.name for each in entities_named([said])] == ["Andreas", "Gudrun"]
