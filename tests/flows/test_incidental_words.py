"""Statements that share a word, but not what they are about."""

from __future__ import annotations

from typing import Any

import pytest


async def _outdated(memory: Any, older: str, newer: str) -> list[tuple[str, bool]]:
    """Return what a statement replaces or may make out of date, and whether that is closed."""
    await memory.remember(older)
    return [(each.content, each.is_closed) for each in (await memory.remember(newer)).outdates]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("my phone is a pixel 6", "we got two rats, pixel and bit"),
        ("my car is a golf", "we got two tickets for golf on sunday"),
        ("my laptop is a thinkpad", "got a new bag for the thinkpad"),
        ("mein auto is ein golf", "wir haben zwei karten fuer golf am sonntag gekriegt"),
        ("Mein Auto ist ein Golf", "Wir haben zwei Hasen bekommen, Golf und Polo"),
        ("mi coche es un ibiza", "hemos comprado dos billetes para ibiza"),
        ("ma voiture est une clio", "on a adopté deux chats, clio et pacha"),
        ("la mia macchina è una panda", "abbiamo comprato due biglietti per panda"),
        ("o meu carro é um polo", "comprei dois bilhetes para o polo"),
        ("моя машина лада", "купили два билета на ладу"),
        ("мой телефон пиксель", "мы завели двух крыс, пиксель и бит"),
    ],
)
async def test_getting_something_else_does_not_change_what_has_the_same_name(
    memory: Any, older: str, newer: str
) -> None:
    assert await _outdated(memory, older, newer) == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("my car is a golf", "we got a new golf"),
        ("my car is a golf", "bought a kia, the golf went to my brother"),
        ("my phone is a pixel 6", "i got myself an iphone 15"),
        ("mein auto is ein golf", "den golf haben wir verkauft"),
        ("Телефон Ани 555-01-82", "У Ани новый номер: 555-77-41"),
    ],
)
async def test_getting_another_one_does(memory: Any, older: str, newer: str) -> None:
    assert [content for content, _ in await _outdated(memory, older, newer)] == [older]


@pytest.mark.parametrize(
    ("owned", "named", "question"),
    [
        ("my phone is a pixel 6", "we got two rats, pixel and bit", "what phone do i have"),
        ("i drive a skoda", "we adopted a cat called clio", "what car do i drive"),
        ("ich fahre einen golf", "wir haben jetzt eine katze namens clio", "welches auto fahre ich?"),
        ("je roule en clio", "on a adopté deux lapins, golf et polo", "quelle voiture ai-je ?"),
        ("guido una fiat", "abbiamo preso due gatti, clio e golf", "che macchina ho?"),
    ],
)
async def test_an_animal_with_the_name_of_a_make_is_none(memory: Any, owned: str, named: str, question: str) -> None:
    await memory.remember(owned)
    await memory.remember(named)
    assert [hit.content for hit in await memory.search(question)][:1] == [owned]


async def test_a_car_that_is_called_something_is_one(memory: Any) -> None:
    await memory.remember("i drive a skoda")
    await memory.remember("got a new car called a kia ceed")
    found = await memory.search("which car do i drive?")
    assert found[0].content == "got a new car called a kia ceed"


@pytest.mark.parametrize(
    ("home", "moved", "question"),
    [
        ("i live in leeds", "moved banks, now with monzo", "where do I live?"),
        ("i live in leeds", "moved to linux on the laptop", "where do I live?"),
        ("i live in leeds", "our office moved to york", "where do I live?"),
        ("ich wohne in leipzig", "hab alles zur ing umgezogen, die gebuehren waren mir zu bloed", "wo wohne ich?"),
        ("ich wohne in leipzig", "hab die Server nach Frankfurt umgezogen", "wo wohne ich?"),
        ("ich wohne in leipzig", "weil ich mein konto zur ing umgezogen habe", "wo wohne ich?"),
        ("ich wohne in leipzig", "unsere Firma ist nach Halle umgezogen", "wo wohne ich?"),
        ("vivo en valencia", "mudé todas mis notas a obsidian", "¿dónde vivo?"),
        ("vivo en valencia", "nos mudamos a un servidor nuevo", "¿dónde vivo?"),
        ("j'habite à lyon", "on a tout déménagé sur un nouveau serveur", "où est-ce que j'habite ?"),
        ("j'habite à lyon", "le bureau a déménagé à paris", "où est-ce que j'habite ?"),
        ("abito a torino", "ho trasferito tutte le note su obsidian", "dove abito?"),
        ("abito a torino", "l'ufficio si è trasferito a milano", "dove abito?"),
        ("moro em braga", "mudei tudo para o activobank", "onde moro?"),
        ("moro em braga", "mudei para o linux", "onde moro?"),
        ("я живу в перми", "переехали на новый сервер", "где я живу?"),
        ("я живу в перми", "переехала с эверноута в обсидиан", "где я живу?"),
    ],
)
async def test_moving_something_else_tells_no_home(memory: Any, home: str, moved: str, question: str) -> None:
    assert await _outdated(memory, home, moved) == []
    assert (await memory.search(question)).hits[0].content == home


@pytest.mark.parametrize(
    ("home", "moved", "question"),
    [
        ("i live in leeds", "we moved everything out and live in york now", "where do I live?"),
        ("i live in leeds", "moved in with tom in york", "where do I live?"),
        ("ich wohne in leipzig", "am wochenende umgezogen!! jetz connewitz, bornaische str 88", "wo wohne ich?"),
        ("ich wohne in leipzig", "sind mit allem drum und dran nach Halle umgezogen", "wo wohne ich?"),
        ("vivo en valencia", "me mudé a un piso en madrid", "¿dónde vivo?"),
        ("j'habite à lyon", "j'ai déménagé dans un studio à paris", "où est-ce que j'habite ?"),
        ("abito a torino", "ci siamo trasferiti a milano", "dove abito?"),
        ("moro em braga", "mudei-me para lisboa", "onde moro?"),
        ("я живу в перми", "мы переехали в новую квартиру в казани", "где я живу?"),
    ],
)
async def test_moving_house_does(memory: Any, home: str, moved: str, question: str) -> None:
    await _outdated(memory, home, moved)
    assert (await memory.search(question)).hits[0].content == moved


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("meine chefin is frau yilmaz", "wir sind verlobt seit gestern"),
        ("meine hausaerztin is frau dr weidlich in plagwitz", "wir sind verlobt seit gestern"),
        ("Meine Vermieterin heißt Frau Petzold", "Ich bin jetzt geschieden"),
        ("mi jefa es la señora garcía", "me he casado"),
        ("ma patronne est madame durand", "je me suis marié"),
        ("la mia capa è la signora rossi", "mi sono sposato"),
        ("minha chefe é a dona marta", "casei na semana passada"),
        ("моя начальница госпожа иванова", "я женился"),
        ("my boss is mrs miller", "i got married last week"),
    ],
)
async def test_a_title_before_a_name_is_no_marriage(memory: Any, older: str, newer: str) -> None:
    assert await _outdated(memory, older, newer) == []


@pytest.mark.parametrize("wife", ["meine frau heisst mira", "Meine Frau Mira arbeitet im Krankenhaus"])
async def test_a_wife_with_a_name_is_one(memory: Any, wife: str) -> None:
    assert [content for content, _ in await _outdated(memory, wife, "ich bin jetzt geschieden")] == [wife]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        # a unit
        ("learning spanish on duolingo, 20 min a day", "i go to work by bike, about 25 min"),
        ("ich lerne 20 minuten am tag spanisch", "die fahrt zur arbeit dauert 25 minuten"),
        ("je cours 20 minutes le matin", "je mets 25 minutes en vélo"),
        ("я учу испанский 20 минут в день", "на работу еду 25 минут"),
        # a place beside the change of something else
        ("moved all my notes over to obsidian", "wifi key changed, its on the yellow note behind the router"),
        ("das auto steht in der garage", "das schloss wurde ausgetauscht, der schlüssel liegt in der garage"),
        ("mes notes sont dans notion", "la clé wifi a changé, elle est sur la note jaune derrière la box"),
        ("mis notas están en evernote", "la clave ha cambiado, está en la nota amarilla"),
        # a number that is no date
        ("miras birthday is 14th of march", "mira wants an iphone 15 for her birthday"),
        ("el cumpleaños de ana es el 14 de marzo", "ana quiere un iphone 15 para su cumpleaños"),
        ("signed at Nordlicht today, start 1st of november", "erster tag bei nordlicht, buero is im 4. stock"),
        # the name of one of the family
        ("meine freundin heisst mira", "mira is pregnant"),
        ("mi novia se llama lucia", "lucia está embarazada"),
        ("la mia ragazza si chiama giulia", "giulia è incinta"),
        ("minha namorada se chama ana", "ana está grávida"),
        ("мою девушку зовут катя", "катя беременна"),
        ("mira is pregnant!!! due in january", "mira eats meat again, pregnancy cravings, steak at midnight"),
        # somebody else's
        ("tobi hat telekom glasfaser, neidisch", "in der neuen bude surfen wir ueber die telekom"),
        # what was over before
        ("i used to work in a bakery during school", "work gave me a macbook pro, the thinkpad is now felix's"),
        ("früher habe ich in einer bäckerei gearbeitet", "ich arbeite jetzt bei nordlicht"),
        ("quand j'étais petit j'habitais à nantes", "j'habite à lyon maintenant"),
        ("раньше я жил в казани", "теперь я живу в перми"),
    ],
)
async def test_a_word_in_passing_makes_nothing_out_of_date(memory: Any, older: str, newer: str) -> None:
    assert await _outdated(memory, older, newer) == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("i meditate 20 min a day", "i meditate 30 min a day now"),
        ("my notes are all in evernote", "moved all my notes over to obsidian, the elephant was too slow"),
        ("team standup is every monday at 9:30", "team standup is at 10:15"),
        ("my girlfriend is called mira", "mira and i broke up"),
        ("my boss is anna", "anna moved to sales"),
        ("mira is a vegetarian", "mira eats meat again"),
        ("i used to smoke but now i vape", "i quit vaping"),
    ],
)
async def test_a_change_of_what_was_said_does(memory: Any, older: str, newer: str) -> None:
    assert [content for content, _ in await _outdated(memory, older, newer)] == [older]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("we got two rats, pixel and bit", "bit died on sunday, only one rat left"),
        ("we have a cat called Mogli, 12 yrs old", "mogli mussten wir gestern einschlaefern lassen :("),
        ("blood pressure pills: ramipril 5mg every morning", "ramipril abgesetzt wegen husten, nehm jetz candesartan"),
        ("katrins mann heisst sven, is lokfuehrer", "sven faehrt keine zuege mehr, is jetz disponent im buero"),
        ("wir haben zwei hasen, flocke und moritz", "moritz ist am sonntag gestorben"),
        ("tenemos un gato que se llama simba, 12 años", "simba murió ayer"),
        ("on a une chatte qui s'appelle luna, 12 ans", "luna est morte hier"),
        ("abbiamo un gatto che si chiama romeo, 12 anni", "romeo è morto ieri"),
        ("temos um gato que se chama mingau, 12 anos", "mingau morreu ontem"),
        ("мою сестру зовут катя, она водит поезда", "катя больше не водит поезда"),
        ("my cleaner is called olga, comes on tuesdays", "olga quit last week"),
    ],
)
async def test_the_end_of_what_was_introduced_by_name_is_reviewed(memory: Any, older: str, newer: str) -> None:
    assert await _outdated(memory, older, newer) == [(older, False)]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("meine freundin heisst mira", "mira isst kein fleisch mehr"),
        ("my brother is called tom", "tom quit the choir"),
        ("we have a cat called mogli, 12 yrs old", "mogli might have died, we dont know yet"),
    ],
)
async def test_what_ends_for_somebody_with_a_known_name_is_not(memory: Any, older: str, newer: str) -> None:
    assert await _outdated(memory, older, newer) == []
