"""Facts change in ordinary words: what replaces, what is only reviewed, and what is left alone."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, Scope
from ricordo.clock import to_ms
from ricordo.model import MaintenanceReport
from ricordo.text.change import cues, outdated
from ricordo.text.languages import languages_of
from tests.flows.conftest import HandClock

CHANGES = [
    ("I work at Acme", "I no longer work at Acme, I work at Globex now", "where do I work"),
    ("Lucy lives in Leeds", "Lucy has moved to Manchester", "Where does Lucy live?"),
    ("My day rate is 780 euros", "My day rate is 850 euros from July on", "What is my day rate?"),
    ("My dentist is Dr. Bell", "My dentist is Dr. Okafor", "Who is my dentist?"),
    ("Мой любимый цвет красный", "Мой любимый цвет синий", "какой мой любимый цвет?"),
    ("My wife's name is Sarah", "My wife's name is Anna", "What is my wife's name?"),
    ("I drive a Volvo", "Sold the Volvo and bought a Tesla", "What do I drive?"),
    ("The standup is at 9:30", "The standup moved to 10:15", "When is the standup?"),
    ("User prefers dark mode", "User prefers light mode", "Which mode does the user prefer?"),
    ("we use Postgres", "we moved to MySQL", "Which database do we use?"),
    ("Favorite color is red", "favorite color is blue", "What is the favorite color?"),
    ("The emergency contact is Tom", "The new emergency contact is Ida", "Who is the emergency contact?"),
    ("I work at Havenbedrijf", "I left Havenbedrijf", "Do I work at Havenbedrijf?"),
    ("Ich wohne in Kiel", "Ich bin nach Köln gezogen", "Wo wohne ich?"),
    ("Unser Hund heißt Bello und ist neun", "Bello ist gestern gestorben", "Wie geht es Bello?"),
    ("Я хожу в бассейн «Волна»", "Бассейн «Волна» закрыли, хожу теперь в «Дельфин»", "В какой бассейн я хожу?"),
    ("J'habite à Lyon", "J'habite à Lille", "Où est-ce que j'habite ?"),
    ("Mi dentista es el doctor Ruiz", "Mi dentista es el doctor Gil", "¿Quién es mi dentista?"),
    ("Abito a Torino", "Abito a Milano", "Dove abito?"),
    ("Lavoro alla Fiat", "Non lavoro più alla Fiat, adesso sono alla Enel", "Dove lavoro?"),
    ("Moro em Lisboa", "Moro no Porto", "Onde é que eu moro?"),
    ("Tenho um Fiat Uno", "Vendi o Fiat Uno e comprei um Tesla", "Que carro tenho?"),
    ("Inés vive en Madrid", "Inés se mudó a Valencia", "¿Dónde vive Inés?"),
    ("Inès habite à Paris", "Inès a déménagé à Lyon", "Où habite Inès ?"),
    ("Tom works at Globex", "Tom changed jobs in May, he is at Arup", "Where does Tom work?"),
]
STAYS = [
    ("I live in Oslo", "I've stopped taking the tram in Oslo"),
    ("Ich wohne in Kiel", "Ich habe aufgehört, in Kiel Straßenbahn zu fahren"),
    ("Я живу в Казани", "Я перестал ездить на трамвае в Казани"),
    ("I work at Acme", "If Acme closes I might look for work in Oslo"),
    ("We live in Leeds", "We still live in Leeds, the move fell through"),
    ("I drive a Volvo", "I dreamt that I sold the Volvo"),
    ("Mein Vermieter ist Herr Krug", "Vielleicht wechselt der Vermieter irgendwann"),
    ("Я работаю на заводе", "В книге герой говорит: «Я больше не работаю на заводе, я свободен»"),
    ("Anna is allergic to nuts", "My sister is allergic to milk"),
    ("Le chat des Morel s'appelle Filou", "Les Morel ont adopté une lapine, Praline, qui dort contre Filou"),
]

BY_NAME = [
    ("My name is Clara Weber", "Clara works at Acme", "I work at Globex now", "Where does Clara work?"),
    ("The user's name is Clara", "The user lives in Rome", "Clara moved to Oslo", "Where do I live?"),
    (
        "I'm called Clara",
        "Clara's favourite colour is blue",
        "My favourite colour is green",
        "Clara's favourite colour?",
    ),
    ("Ich heiße Klara", "Ich wohne in Köln", "Klara ist nach Bremen gezogen", "Wo wohne ich?"),
    ("Меня зовут Анна", "Анна работает в Яндексе", "Я теперь работаю в Сбере", "Где работает Анна?"),
    ("Je m'appelle Claire", "Claire habite à Lyon", "J'habite à Nantes", "Où habite Claire ?"),
    ("Me llamo Clara", "Clara trabaja en Acme", "Ahora trabajo en Globex", "¿Dónde trabajo?"),
    ("Mi chiamo Chiara", "Chiara vive a Roma", "Mi sono trasferita a Milano", "Dove vive Chiara?"),
    ("Me chamo Rita", "Rita mora em Lisboa", "Moro no Porto", "Onde é que eu moro?"),
]
OCCUPATIONS = [
    ("I work as a teacher", "I'm a bus driver now"),
    ("Ich bin Lehrer", "Ich bin jetzt Busfahrer"),
    ("Я учитель", "Теперь я водитель автобуса"),
    ("Je suis professeur", "Je suis maintenant chauffeur de bus"),
    ("Soy profesora", "Ahora soy conductora de autobús"),
    ("Sono insegnante", "Adesso faccio l'autista"),
    ("Sou professora", "Agora sou motorista de ônibus"),
]
ENDINGS = [
    ("Our cat Minka is 15 and gets half a tablet of Semintra every evening", "Minka died last night"),
    ("Our dog Rex eats chicken", "Rex died yesterday"),
    ("Unser Hund Rex frisst nur Huhn", "Rex ist gestern gestorben"),
    ("Invoice 2026-041 to Weber for 1,850 euros is open and due on 30 October", "Invoice 2026-041 has been paid"),
    ("Rechnung 2026-17 an Weber über 300 Euro ist offen", "Rechnung 2026-17 wurde bezahlt"),
    ("My flu shot was on Wednesday", "No, the flu shot was on Tuesday"),
    ("Unser Vermieter heißt Herr Albrecht", "Unsere neue Vermieterin ist Frau Sommer"),
    ("The user shoots with a Nikon Z8 and a Nikon D850", "The user sold the Nikon D850"),
]
NOT_MOVED = [
    ("I live in Leeds", "I moved my desk to the window"),
    ("The user lives in Leipzig", "The user moved the studio to Lindenau"),
    ("Invoice 2026-041 is open", "Invoice 2026-047 has been paid"),
    ("Vivo en Madrid", "Trasladé la oficina al centro"),
]
OF_OTHERS = [
    ("I am a teacher", "The plumber comes tomorrow"),
    ("I'm a freelancer", "My tutor cancelled today"),
    ("Ich bin Lehrerin", "Der Klempner kommt jetzt am Dienstag"),
    ("Мой брат водитель", "Я теперь учитель"),
]


BOTH_TRUE = [
    ("Mein Hausarzt ist Dr. Weiß", "Dr. Weiß ist im Urlaub"),
    ("My cleaner is Olga", "Olga comes on Fridays"),
    ("Мой терапевт — Иванова", "Иванова в отпуске до августа"),
    ("The user's favorite color is green", "The user's favorite food is ramen"),
    ("My sister lives in Leeds", "My sister has two cats"),
    ("Abito a Torino", "Mia sorella abita a Milano"),
    ("Moro em Lisboa", "Talvez um dia me mude para o Porto"),
    ("The user speaks German", "The user speaks Norwegian"),
    ("Nutzerin lebt in Wien", "Bruder Felix lebt in Graz"),
    ("I'm allergic to cats", "I'm also allergic to penicillin"),
    ("I'm allergic to cats", "I'm allergic to dogs"),
    ("Ich bin gegen Katzen allergisch", "Ich bin gegen Hunde allergisch"),
    ("У меня аллергия на кошек", "У меня аллергия на собак"),
    ("Je suis allergique aux chats", "Je suis allergique aux chiens"),
    ("I'm a member of the chess club", "I'm a member of the choir"),
    ("The user lives in Oslo", "The user works at Acme"),
    ("My landlord is Herr Vogt, his number is 0171 2345678", "We pay 1,180 euros of rent"),
]
LIFE = [
    "My sister Katrin works at Swisscom in Bern",
    "I'm allergic to penicillin",
    "We drive an old Passat",
    "Max started school in August",
    "My dentist is Dr. Lenz in the Marktgasse",
    "I swim on Tuesday evenings",
    "The wifi password is on the fridge",
    "We spend every Christmas with my parents in Kiel",
]
ANOTHER_TIME = [
    ("I train on Mondays with a friend", "I train on Thursdays with a friend"),
    ("Ich trainiere montags mit einem Freund", "Ich trainiere donnerstags mit einem Freund"),
    ("The meeting is on Monday, I'm afraid", "The meeting is on Tuesday, I'm afraid"),
]
OF_A_PERSON = [
    ("Tom's birthday is on 14 May", "Tom and I broke up", "When is Tom's birthday?"),
    ("My brother Pavel is allergic to walnuts", "Pavel moved out of mum's place", "What is Pavel allergic to?"),
    ("Tante Gisela kommt aus Graz", "Tante Gisela hat ihr Auto verkauft", "Woher kommt Tante Gisela?"),
    ("Игорь не ест рыбу", "Игорь продал мотоцикл", "Чего не ест Игорь?"),
]
A_HOME_OR_JOB_TOLD_IN_OTHER_WORDS = [
    (
        "Ben and I rented a small flat in Leith, the rent was 700 pounds.",
        "We bought a house in Stirling, with a mortgage until 2046.",
    ),
    (
        "Jonas und ich sind in eine Zweizimmerwohnung in Halle gezogen, die Miete beträgt 620 Euro.",
        "Wir haben ein Haus in Naumburg gekauft, mit einem Kredit der Sparkasse bis 2050.",
    ),
    (
        "Переехала с Мией в Таллин, снимаем квартиру на улице Кентманни.",
        "We bought a house in Viimsi, on Rohuneeme tee, with a mortgage from Swedbank until 2048.",
    ),
    ("Мы с Олегом сняли двушку в Твери, платим 25 тысяч.", "Купили дом в Торжке, на улице Мира, в ипотеку от Сбера."),
    ("Marcos y yo alquilamos un piso en Gijón, pagamos 600 euros.", "Compramos una casa en Avilés, con una hipoteca."),
    ("Paul et moi louons un deux-pièces à Dijon.", "Nous avons acheté une maison à Beaune, avec un crédit."),
    ("Io e Pietro ci siamo trasferiti in un bilocale a Udine.", "Abbiamo comprato una casa a Gorizia, con un mutuo."),
    ("Alugamos um apartamento em Braga, a renda é de 600 euros.", "Comprámos uma casa em Viana, com um crédito."),
    ("I do the payroll for Harrow Foods, mostly from home.", "I started at Kestrel Media as a financial analyst."),
    (
        "I started at Nordwind Logistics in Tallinn as a financial controller.",
        "Back from parental leave, but not there: I'm head of finance at Pipistrell, a drone start-up.",
    ),
]
IN_A_SENTENCE_OF_SEVERAL = [
    (
        "Oskar is allergic to eggs and to cashews. His EpiPen Junior is in the blue bag in the hall.",
        "Oskar has outgrown the egg allergy, but cashews are still forbidden.",
    ),
    (
        "Emil ist allergisch gegen Haselnüsse und Milch. Das Notfallset liegt im Flur.",
        "Emils Milchallergie ist weg, Haselnüsse sind aber weiter verboten.",
    ),
    (
        "Théo est allergique aux œufs et aux noix de cajou. Son stylo est dans le sac bleu.",
        "Théo n'est plus allergique aux œufs, mais les noix de cajou restent interdites.",
    ),
    (
        "Tommaso è allergico alle uova e agli anacardi. L'adrenalina è nella borsa blu.",
        "A Tommaso è passata l'allergia alle uova, ma gli anacardi restano vietati.",
    ),
    (
        "O Tomás é alérgico a ovos e a caju. A caneta está na mochila azul.",
        "O Tomás já não é alérgico a ovos, mas o caju continua proibido.",
    ),
]
OF_TWO_PEOPLE = [
    ("I work as a nurse at Saint Mary's.", "Tess finished her studies, she's an architect now and works in Leeds."),
    ("My brother Neil lives in Cardiff.", "Moved to Bristol with Neil's old car, renting a room on Park Street."),
    ("Meine Mutter arbeitet in der Stadtbücherei.", "Ich arbeite jetzt bei Zeiss in Jena."),
    ("Я работаю аналитиком в Озоне.", "Настя окончила институт, теперь она врач и работает в больнице в Казани."),
    ("Trabajo como diseñadora en Zara.", "Inés terminó la carrera, ahora es médica y trabaja en un hospital de Vigo."),
    ("Mon frère Luc habite à Brest.", "J'ai déménagé à Rennes avec Zoé."),
    ("Mia sorella Carla vive a Lecce.", "Mi sono trasferita a Trento con Tommaso."),
    ("Trabalho como analista na Sonae.", "A Inês acabou o curso, agora é médica e trabalha num hospital em Faro."),
]
NAMES_OF_TWO_RELATIVES = [
    ("Mi abuelo se llama Iker.", "El usuario tiene una abuela que se llama Alba."),
    ("O meu filho chama-se Rui.", "A filha da utilizadora se chama Ana."),
    ("Mio figlio si chiama Luca.", "L'utente ha una figlia che si chiama Anna."),
]
TWO_EVENTS_MOVED = [
    ("La consegna di Faro è stata spostata al 1 marzo 2027", "Il trasloco è stato spostato al 20 marzo 2027"),
    ("La cena di classe è stata spostata al 12 dicembre", "Il controllo dal dentista è stato spostato al 15 dicembre"),
    ("The class dinner was moved to 12 December", "The dentist check-up was moved to 15 December"),
    ("Le dîner de classe a été déplacé au 12 décembre", "Le contrôle chez le dentiste a été déplacé au 15 décembre"),
    ("Ужин класса перенесли на 12 декабря", "Приём у стоматолога перенесли на 15 декабря"),
]
SAME_UNIT = [
    ("Ich habe am 9. Dezember um 8:15 Uhr einen Zahnarzttermin", "Ich esse abends nichts nach 20 Uhr"),
    ("My son weighs 30 kilos", "I no longer lift more than 20 kilos"),
]
STILL_TO_BE_DONE = [
    ("The user's manager at Norrlink is Pernilla Sandqvist", "Task: send the test plan to Pernilla by 4 December 2026"),
    ("My dentist is Dr. Shah", "Call Dr. Shah to move the appointment"),
]
BESIDE_THE_SPEAKER = [
    ("I met Rob at the chess club, he is a plumber.", "Rob and I got married in Bath."),
    ("Ich muss für Lotte bis Freitag einen neuen Ranzen bestellen.", "Ich bin mit Lotte nach Weimar gezogen."),
    ("Познакомилась с Игорем на скалодроме, он электрик.", "Мы с Игорем поженились."),
    ("Marcos y yo adoptamos una gata, se llama Nube.", "Marcos y yo nos casamos."),
    ("J'ai rencontré Marc à la salle d'escalade, il est électricien.", "Marc et moi nous sommes mariés."),
    ("Io e Pietro abbiamo preso un gatto, si chiama Briciola.", "Io e Pietro ci siamo sposati."),
    ("Eu e o Rui adotámos uma gata, chama-se Pipoca.", "Eu e o Rui casámos."),
]
A_DATE_AND_A_SUM = [
    ("Zane gets married on 6 March 2027.", "Paid Zane back the 600 euros."),
    ("Elena se casa el 6 de marzo.", "Le devolví a Elena los 300 euros."),
    ("Julie se marie le 6 mars.", "J'ai remboursé les 300 euros à Julie."),
    ("A Sara casa-se a 6 de março.", "Paguei à Sara os 300 euros."),
]
TWO_DATES = [
    ("Doctor's appointment on 3 May", "Vet appointment on 4 June"),
    ("We booked a table at Luigi's for 3 May", "We booked a flight to Oslo for 7 June"),
    ("Ich habe am 3. Mai einen Zahnarzttermin", "Ich habe am 9. Juni einen Friseurtermin"),
    ("У меня 3 мая приём у стоматолога", "У меня 9 июня приём у окулиста"),
    ("Tengo cita con el dentista el 3 de mayo", "Tengo cita con el peluquero el 9 de junio"),
    ("J'ai rendez-vous chez le dentiste le 3 mai", "J'ai rendez-vous chez le coiffeur le 9 juin"),
]
WITH_A_PERSON = [
    ("I live with Tom", "Tom and I broke up"),
    ("Tom is my boyfriend", "Tom and I broke up"),
    ("Tom ist mein Freund", "Tom und ich haben uns getrennt"),
    ("Priya's flat is on Park Road", "Priya has sold the flat"),
]
ABOUT_THE_VALUE = [
    ("My GP is Dr. Shah", "Dr. Shah has retired"),
    ("My boss is Karen", "Karen left the company"),
    ("The user has a dog named Balder", "Balder died in August"),
    ("My cleaner is Olga", "Maria is my cleaner"),
    ("Моя сестра Оксана не ест мяса", "Оксана снова ест мясо"),
]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        *(*BOTH_TRUE, *OF_TWO_PEOPLE, *BESIDE_THE_SPEAKER, *A_DATE_AND_A_SUM, *NAMES_OF_TWO_RELATIVES),
        *(*TWO_EVENTS_MOVED, *SAME_UNIT, *STILL_TO_BE_DONE),
    ],
)
async def test_facts_about_two_things_are_not_reviewed_as_a_conflict(memory: Any, older: str, newer: str) -> None:
    await memory.remember(older)
    assert (await memory.remember(newer)).outdates == ()


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("We drive a Skoda Octavia", "We bought a Kia EV6"),
        ("Wir fahren einen Skoda Octavia", "Wir haben einen Kia EV6 gekauft"),
        ("Мы ездим на шкоде", "Мы купили теслу"),
        ("Conduzco un Renault Clio", "Me compré un Tesla"),
        ("Nous conduisons une Peugeot 208", "Nous avons acheté une Tesla"),
        ("I use an iPhone 12", "I switched to a Fairphone"),
    ],
)
async def test_a_thing_told_by_its_make_is_reviewed_when_another_is_bought(memory: Any, older: str, newer: str) -> None:
    old = await memory.remember(older)
    assert [each.id for each in (await memory.remember(newer)).outdates] == [old.id]
    assert (await memory.get(old.id)).is_live


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I drive a Volvo", "I work at Ford"),
        ("I drive a Volvo", "My brother bought a Tesla"),
        ("I work at Volvo", "I bought a Kia"),
        ("I own a Ford", "I sold my Honda"),
        ("I have a Toyota", "We also bought a Kia"),
    ],
)
async def test_another_make_alone_changes_nothing(memory: Any, older: str, newer: str) -> None:
    await memory.remember(older)
    assert (await memory.remember(newer)).outdates == ()


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Inês is vegetarian", "Inês eats fish again btw"),
        ("Tom is vegan", "Tom eats cheese again now"),
        ("Anna ist Vegetarierin", "Anna isst wieder Fisch"),
        ("Ana es vegetariana", "Ana come pescado otra vez"),
        ("Marie est végétarienne", "Marie remange du poisson"),
        ("Аня вегетарианка", "Аня снова ест рыбу"),
    ],
)
async def test_what_somebody_eats_again_is_reviewed(memory: Any, older: str, newer: str) -> None:
    await memory.remember(older)
    assert [each.content for each in (await memory.remember(newer)).outdates] == [older]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I work at Farfetch", "I start at Feedzai on 2 November"),
        ("I work at Farfetch", "starting at Feedzai on nov 2, fraud team"),
        ("I work at Farfetch", "first day at Feedzai today!"),
        ("The user works as a data analyst at Farfetch.", "The user starts at Feedzai on 2 November."),
        ("Ich arbeite bei Siemens", "ich fange am 1. Juni bei Bosch an"),
        ("Trabajo en Renfe", "empiezo en Iberia el 2 de noviembre"),
        ("Je travaille chez Orange", "je commence chez Free lundi"),
        ("Lavoro in Fiat", "inizio alla Ferrari lunedì"),
        ("Trabalho na Vivo", "começo na Claro segunda"),
        ("Работаю в Сбере", "со второго ноября выхожу в Яндекс"),
    ],
)
async def test_who_starts_somewhere_has_a_new_job(memory: Any, older: str, newer: str) -> None:
    old = await memory.remember(older, at="2026-01-01")
    now = await memory.remember(newer)
    assert [each.id for each in now.outdates] == [old.id]
    assert (await memory.search(older)).ids[:2] == [now.id, old.id]


@pytest.mark.parametrize(
    "newer", ["my sister starts at Feedzai", "the show starts at Nine Elms", "first day at the gym"]
)
async def test_another_beginning_is_no_new_job(memory: Any, newer: str) -> None:
    await memory.remember("I work at Farfetch")
    assert (await memory.remember(newer)).outdates == ()


@pytest.mark.parametrize(("older", "newer"), TWO_DATES)
async def test_two_events_of_one_kind_are_not_reviewed(memory: Any, older: str, newer: str) -> None:
    await memory.remember(older)
    await memory.remember(newer)
    assert await memory.review() == []


@pytest.mark.parametrize(("older", "newer"), ANOTHER_TIME)
async def test_another_time_is_reviewed_whoever_comes_along(memory: Any, older: str, newer: str) -> None:
    await memory.remember(older)
    assert [each.content for each in (await memory.remember(newer)).outdates] == [older]


@pytest.mark.parametrize(("older", "newer", "question"), OF_A_PERSON)
async def test_two_matters_of_a_person_are_no_change(memory: Any, older: str, newer: str, question: str) -> None:
    await memory.remember(older)
    assert (await memory.remember(newer)).outdates == ()
    assert (await memory.search(question)).hits[0].content == older


@pytest.mark.parametrize(("older", "newer"), WITH_A_PERSON)
async def test_what_a_person_is_to_the_speaker_can_end(memory: Any, older: str, newer: str) -> None:
    old = await memory.remember(older)
    assert [each.id for each in (await memory.remember(newer)).outdates] == [old.id]


@pytest.mark.parametrize(
    ("older", "newer"), ABOUT_THE_VALUE + IN_A_SENTENCE_OF_SEVERAL + A_HOME_OR_JOB_TOLD_IN_OTHER_WORDS
)
async def test_a_change_told_about_the_value_is_reviewed(memory: Any, older: str, newer: str) -> None:
    old = await memory.remember(older)
    assert [each.id for each in (await memory.remember(newer)).outdates] == [old.id]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I adopted a cat called Miso", "just kidding about the cat"),
        ("I adopted a cat called Miso", "I don't actually have a cat"),
        ("My rent is 950 euros", "I lied about the rent"),
        ("The trip to Oslo is on 12 January", "the Oslo trip isn't happening"),
        ("Ich habe eine Katze namens Miso", "das mit der Katze war nur ein Witz"),
        ("Die Reise nach Oslo ist am 12. Januar", "Oslo fällt aus"),
        ("Tengo un gato que se llama Miso", "era broma lo del gato"),
        ("El viaje a Oslo es el 12 de enero", "al final no voy a Oslo"),
        ("J'ai un chat qui s'appelle Miso", "je plaisantais pour le chat"),
        ("Ho un gatto di nome Miso", "quella del gatto era uno scherzo"),
        ("A viagem a Oslo é no dia 12 de janeiro", "a viagem a Oslo não vai acontecer"),
        ("У меня есть кот Мисо", "про кота я пошутил"),
    ],
)
async def test_what_was_a_joke_or_does_not_take_place_is_reviewed(memory: Any, older: str, newer: str) -> None:
    old = await memory.remember(older)
    assert [each.id for each in (await memory.remember(newer)).outdates] == [old.id]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I adopted a cat called Miso", "I'm not kidding about the cat"),
        ("I adopted a cat called Miso", "Tom told me a joke about a cat"),
        ("I have a cat called Miso", "the cat is not going to the vet after all"),
        ("I work at Bosch", "I never worked at Siemens"),
        ("El viaje a Oslo es el 12 de enero", "al final no compré la maleta para el viaje a Oslo"),
        ("Ho un gatto di nome Miso", "alla fine non ho portato il gatto dal veterinario"),
    ],
)
def test_a_joke_or_another_denial_takes_nothing_back(older: str, newer: str) -> None:
    assert not outdated({0: (older, None)}, (newer, None))


@pytest.mark.parametrize(("older", "newer", "question"), CHANGES)
async def test_the_newer_statement_comes_first_and_the_older_one_is_closed_or_in_review(
    memory: Any, older: str, newer: str, question: str
) -> None:
    old, new = await memory.remember(older), await memory.remember(newer)
    assert (await memory.search(question)).ids[:1] == [new.id]
    compared = {item.older.id for item in await memory.review() if item.older}
    assert not (await memory.get(old.id)).is_live or old.id in compared


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("Favorite color is red", "favorite color is blue", "What is the favorite color?"),
        ("Favourite band is Radiohead", "Favourite band is Portishead", "Which is the favourite band?"),
        ("Preferred editor is vim", "Preferred editor is Helix", "What is the preferred editor?"),
    ],
)
async def test_another_favourite_takes_the_place_of_the_last_one_by_words_alone(
    older: str, newer: str, question: str
) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        old, new = await memory.remember(older), await memory.remember(newer)
        assert (await memory.search(question)).ids == [new.id]
        assert not (await memory.get(old.id)).is_live


async def test_what_is_stored_names_the_older_facts_it_replaced_or_may_make_out_of_date(memory: Any) -> None:
    first = await memory.remember("I live in Leeds")
    assert first.outdates == ()
    moved = await memory.remember("I live in York")
    assert [(each.id, each.content, each.is_closed) for each in moved.outdates] == [(first.id, "I live in Leeds", True)]
    waiter = await memory.remember("I work as a waiter")
    singer = await memory.remember("I work as a singer")
    (older,) = singer.outdates
    assert (older.id, older.is_closed) == (waiter.id, False)
    assert older.review in {each.id for each in await memory.review(kind="conflict")}
    assert (await memory.remember("I work as a singer")).outdates == ()
    assert (await memory.get(singer.id)).outdates == ()


@pytest.mark.parametrize(("older", "newer"), STAYS)
async def test_wishes_dreams_quotations_and_others_close_nothing(memory: Any, older: str, newer: str) -> None:
    old = await memory.remember(older)
    await memory.remember(newer)
    assert (await memory.get(old.id)).is_live


async def test_statements_about_others_are_not_compared_for_a_shared_verb(memory: Any) -> None:
    await memory.remember("Amy Winehouse died in London")
    await memory.remember("Frank Zappa died in Los Angeles")
    await memory.remember("The capital of Norway is Oslo")
    await memory.remember("Robert Heinlein is a citizen of Norway")
    assert list(await memory.review()) == []


async def test_what_two_people_say_of_themselves_is_not_compared() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        for speaker, text in (("Gwen", "I live in Cardiff with my parents."), (None, "I live in Porto now.")):
            await memory.add(text, speaker=speaker, session="s1")
        await memory.end_session("s1")
        await memory.consolidate()
        facts = [node for node in (await memory.list(limit=50)).nodes if node.type != "episodic"]
        assert {(node.content.rstrip("."), node.about) for node in facts} >= {
            ("I live in Cardiff with my parents", ("Gwen",)),
            ("I live in Porto now", ()),
        }
        assert all(node.is_live for node in facts)
        assert list(await memory.review()) == []


async def test_what_the_user_decided_is_not_asked_again(memory: Any) -> None:
    await memory.remember("My dentist is Dr. Bell")
    newer = await memory.remember("My dentist is Dr. Okafor")
    (pair,) = await memory.review()
    await memory.resolve(pair, decision="keep both")
    found = await memory.search("Who is my dentist?")
    assert newer.id in found.ids
    assert list(await memory.review()) == []


async def test_a_fixed_part_of_the_pairs_keeps_its_figures() -> None:
    """`benchmarks/knowledge.py` measures all of them; these bounds are a little below what it measured."""
    rows = [
        json.loads(line)
        for line in (Path(__file__).parents[2] / "benchmarks/data/knowledge/pairs.jsonl")
        .read_text("utf-8")
        .splitlines()
    ][::2]
    first = closed_or_reviewed = outdated = closed_wrongly = 0
    async with Memory.open(":memory:", embedder=None) as memory:
        for row in rows:
            own = memory.scoped(Scope(owner=row["id"]))
            old, new = await own.remember(row["first"]), await own.remember(row["second"])
            is_closed = not (await own.get(old.id)).is_live
            if row["old"] == "live":
                closed_wrongly += is_closed
                continue
            outdated += 1
            compared = {item.older.id for item in await own.review() if item.older}
            closed_or_reviewed += is_closed or old.id in compared
            first += (await own.search(row["question"], limit=3)).ids[:1] == [new.id]
    assert closed_wrongly <= 1
    assert closed_or_reviewed / outdated >= 0.85
    assert first / outdated >= 0.8


async def test_facts_of_a_life_that_all_hold_seldom_raise_a_question() -> None:
    """As an agent writes them: "The user lives in Oslo", "The user's sister lives in Bergen"."""
    data = Path(__file__).parents[2] / "benchmarks/data/knowledge"
    lives = [json.loads(line) for line in (data / "lives.jsonl").read_text("utf-8").splitlines()]
    facts = asked = 0
    async with Memory.open(":memory:", embedder=None) as memory:
        for life in lives:
            own = memory.scoped(Scope(owner=life["id"]))
            told = [(await own.remember(fact)).outdates for fact in life["facts"]]
            assert not any(each.is_closed for outdated in told for each in outdated)
            facts += len(told)
            asked += sum(map(bool, told))
    assert asked / facts <= 0.07


def test_a_pair_is_less_likely_to_change_the_more_facts_share_its_words() -> None:
    alone = {0: ("The car is in the garage", None)}
    crowd = alone | {n: (f"Car number {n} stands in the yard", None) for n in range(1, 9)}
    new = ("Sold the car and bought a van", None)
    assert outdated(alone, new)[0].likelihood > 0.5
    assert 0 not in outdated(crowd, new) or outdated(crowd, new)[0].likelihood < outdated(alone, new)[0].likelihood


DESCRIBED = [
    ("The lighthouse at Skarn was built in 1822 and is 31 metres high.", "How high is the lighthouse at Skarn?"),
    ("In 1904 the lamp of the Skarn lighthouse was replaced by an electric one.", "What became electric in 1904?"),
    ("The keeper of Skarn left the island in 1961 and moved to Holmby.", "Where did the keeper move?"),
    ("Skarn has 140 inhabitants, most of whom live from fishing.", "What do the inhabitants of Skarn live from?"),
    ("Seals had left the bay by 1930, but some 200 have returned since.", "How many seals have returned to the bay?"),
    ("Башня в Скарне построена в 1822 году и имеет высоту 31 метр.", "Какой высоты башня в Скарне?"),
    ("В 1904 году лампу башни заменили электрической.", "Чем заменили лампу башни?"),
    ("Сторож башни уехал с острова и переехал в Хольмбю.", "Куда переехал сторож башни?"),
    ("Der Turm von Skarn wurde 1822 gebaut und ist 31 Meter hoch.", "Wie hoch ist der Turm von Skarn?"),
    ("Der Turmwärter verließ die Insel 1961 und zog nach Holmby.", "Wohin zog der Turmwärter?"),
]
ASIDE = [
    ("I am a nurse", "I dreamt that I was a pilot and flew to the moon", "What is my job?"),
    ("Ich arbeite als Bäcker", "Im Film sagt der Held: „Ich arbeite jetzt als Spion.“", "Was arbeite ich?"),
    ("Я работаю медсестрой", "Приснилось, что я работаю пилотом", "Кем я работаю?"),
    ("We heat the house with gas", "If we won a lottery we would heat the house by sunlight", "How do we heat it?"),
]


async def test_sentences_that_describe_or_narrate_are_no_new_values_of_each_other() -> None:
    async with Memory.open(":memory:") as memory:
        ids = [(await memory.remember(text)).id for text, _ in DESCRIBED]
        await memory.settle()
        first = [(await memory.search(question)).ids[0] for _, question in DESCRIBED]
        assert first == ids
        assert not await memory.review()


@pytest.mark.parametrize(("older", "newer", "question"), ASIDE)
async def test_a_dream_a_wish_or_a_quotation_stands_behind_what_was_stated(
    older: str, newer: str, question: str
) -> None:
    async with Memory.open(":memory:") as memory:
        stated, aside = await memory.remember(older), await memory.remember(newer)
        await memory.settle()
        assert (await memory.search(question)).ids[:1] == [stated.id]
        assert (await memory.search(newer)).ids[:1] == [aside.id]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I work at Acme", "I have never left Acme, whatever they say"),
        ("We live in Leeds", "We did not sell the house in Leeds"),
        ("Ich wohne bei meiner Mutter", "Ich bin nicht von meiner Mutter weggezogen"),
        ("Я работаю на заводе", "Я не уволился с завода"),
    ],
)
def test_a_denied_change_is_no_change(older: str, newer: str) -> None:
    assert not any(each.is_certain for each in outdated({0: (older, None)}, (newer, None)).values())
    assert "unchanged" in cues(newer, languages_of(newer))


async def test_two_facts_about_different_matters_keep_their_order() -> None:
    async with Memory.open(":memory:") as memory:
        allergy = await memory.remember("I'm allergic to peanuts")
        await memory.remember("I live in Rome")
        await memory.settle()
        assert (await memory.search("what must I not eat?")).ids[:1] == [allergy.id]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Vera's cat is called Mila", "Vera's dog is called Bruno and barks at the cat"),
        ("Vera's dog is called Bruno and barks at the cat", "The cat sitter of Vera costs 12 euros a day"),
        ("Unser Team nimmt jetzt PostgreSQL", "Das Passwort des Servers wird am Monatsersten geändert"),
        ("Наша команда решила использовать PostgreSQL вместо MongoDB", "Пароль от сервера меняют первого числа"),
    ],
)
async def test_things_of_two_owners_do_not_replace_each_other(older, newer):
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.remember(older)
        assert (await memory.remember(newer)).outdates == ()


@pytest.mark.parametrize(
    ("event", "state"),
    [
        ("I moved to Oslo", "I live in Oslo"),
        ("I joined Acme", "I work at Acme"),
        ("I work at Acme", "I joined Acme"),
        ("Ich bin nach Berlin gezogen", "Ich wohne in Berlin"),
        ("Я переехал в Берлин", "Я живу в Берлине"),
    ],
)
async def test_the_same_value_in_other_words_makes_nothing_out_of_date(memory: Any, event: str, state: str) -> None:
    await memory.remember(event)
    assert (await memory.remember(state)).outdates == ()


async def test_leaving_is_not_the_same_value_in_other_words(memory: Any) -> None:
    await memory.remember("I moved to Oslo")
    assert (await memory.remember("I no longer live in Oslo")).outdates


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I am allergic to nuts", "I'm allergic to shellfish too"),
        ("I subscribe to Netflix", "Besides that I subscribe to Mubi"),
        ("The user is allergic to peanuts", "The user is also allergic to latex"),
        ("Ich spreche Türkisch", "Ich spreche auch ein bisschen Polnisch"),
        ("У меня аллергия на орехи", "Ещё у меня аллергия на пенициллин"),
        ("Soy alérgico a los cacahuetes", "También soy alérgico a la penicilina"),
        ("Je suis allergique aux noix", "Je suis aussi allergique au gluten"),
    ],
)
async def test_what_is_added_makes_nothing_out_of_date(memory: Any, older: str, newer: str) -> None:
    await memory.remember(older)
    assert (await memory.remember(newer)).outdates == ()


async def test_an_addition_that_also_says_what_ended_is_a_change(memory: Any) -> None:
    drives = await memory.remember("I drive a Corolla")
    bought = await memory.remember("Sold the Corolla, also bought an Outback")
    assert [each.id for each in bought.outdates] == [drives.id]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I drink two cups of coffee a day", "Down to herbal tea these days, the caffeine was too much"),
        ("Ich fahre mit dem Rad ins Büro", "Inzwischen bringt mich die Straßenbahn zur Arbeit"),
    ],
)
async def test_upkeep_lists_a_change_in_other_words_and_undo_withdraws_it(older: str, newer: str) -> None:
    async with Memory.open(":memory:", embedder="default") as memory:
        old, _, _ = [await memory.remember(text) for text in (older, "My sister has two cats", "The car is a Golf")]
        new = await memory.remember(newer)
        await memory.settle()
        assert (new.outdates, await memory.review()) == ((), [])
        assert _changes(await memory.maintain(dry_run=True)) == "1 likely change would be looked at"
        assert _changes(await memory.maintain()) == "1 likely change looked at, 1 listed"
        assert _changes(await memory.maintain()) == "nothing to do"
        (listed,) = await memory.review()
        assert (listed.kind, listed.older.id, listed.newer.id) == ("conflict", old.id, new.id)
        assert (await memory.get(old.id)).is_live
        (run,) = [commit.run_id for commit in await memory.log() if commit.reason == "compared by meaning"]
        await memory.undo(run)
        assert await memory.review() == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I swim with Ana on Tuesdays", "Lent the tent to Ana"),
        ("I play chess with Tom on Mondays", "Gave Tom the drill"),
        ("Je cuisine avec Léa le dimanche", "J'ai envoyé les photos à Léa"),
    ],
)
async def test_upkeep_lists_no_two_facts_that_share_only_a_companion(older: str, newer: str) -> None:
    async with Memory.open(":memory:", embedder="default") as memory:
        for text in (older, "My sister has two cats", "The car is a Golf", newer):
            await memory.remember(text)
        await memory.settle()
        await memory.maintain()
        assert await memory.review() == []


async def test_a_dismissed_change_is_not_listed_again() -> None:
    async with Memory.open(":memory:", embedder="default") as memory:
        for text in ("I drink two cups of coffee a day", "Down to herbal tea these days, the caffeine was too much"):
            await memory.remember(text)
        await memory.settle()
        await memory.maintain()
        (listed,) = await memory.review()
        await memory.resolve(listed.id, decision="keep both")
        assert _changes(await memory.maintain()) == "nothing to do"
        assert await memory.review() == []


def _changes(report: MaintenanceReport) -> str:
    return next(step.detail for step in report.steps if step.name == "changes")


OF_WHOM = [
    ("We live in Oslo", "My sister lives in Bergen", "Where do we live?"),
    ("I'm allergic to penicillin", "My mother is allergic to nuts", "What am I allergic to?"),
    ("I wear size 43 shoes", "Ben wears size 39", "What's my shoe size?"),
    ("Dad's birthday is on 3 May", "My birthday is on 12 June", "When is Dad's birthday?"),
    ("Ich bin gegen Penicillin allergisch", "Meine Mutter ist gegen Nüsse allergisch", "Wogegen bin ich allergisch?"),
    ("У мамы аллергия на орехи", "У меня аллергия на пенициллин", "На что аллергия у мамы?"),
    ("Мы живём в Осло", "Моя сестра живёт в Бергене", "Где мы живём?"),
]


@pytest.mark.parametrize(("wanted", "other", "question"), OF_WHOM)
async def test_a_fact_about_whom_the_question_asks_comes_first(
    memory: Any, wanted: str, other: str, question: str
) -> None:
    for text in (other, wanted, other):  # whichever is newer
        await memory.remember(text)
        await memory.settle(600)  # else one of both may be without its vector yet
        hits = (await memory.search(question)).hits
        assert text == other or hits[0].content == wanted


ENDED = [
    ("My husband is called Tomas", "Tomas and I got divorced on 20 November", "Tomas"),
    ("My girlfriend is Lena", "I broke up with Lena last week", "Lena"),
    ("My boss is Tom", "Tom is no longer my boss", "Tom"),
    ("Mein Mann heißt Jonas", "Jonas und ich haben uns getrennt", "Jonas"),
    ("Моего мужа зовут Иван", "Мы с Иваном развелись", "Иван"),
    ("Mi marido se llama Carlos", "Carlos y yo nos divorciamos en mayo", "Carlos"),
    ("Mon mari s'appelle Luc", "Luc et moi avons divorcé", "Luc"),
]


@pytest.mark.parametrize(("stated", "ended", "name"), ENDED)
async def test_a_relation_ends_when_somebody_says_so(memory: Any, stated: str, ended: str, name: str) -> None:
    await memory.remember(stated)
    assert [each.relation for each in await memory.people() if each.name == name] != [None]
    await memory.remember(ended)
    assert [each.relation for each in await memory.people() if each.name == name] == [None]
    await memory.undo((await memory.log(1))[0].seq)
    assert [each.relation for each in await memory.people() if each.name == name] != [None]


@pytest.mark.parametrize(
    "said", ["Tomas and I split the bill", "If Tomas and I got divorced, I would move", "I left Tomas"]
)
async def test_a_relation_does_not_end_by_other_sentences(memory: Any, said: str) -> None:
    await memory.remember("My husband is called Tomas")
    await memory.remember(said)
    assert [each.relation for each in await memory.people() if each.name == "Tomas"] == ["husband"]


async def test_a_statement_of_several_things_gives_way_to_a_change_of_one(memory: Any) -> None:
    old = "The user's name is Katrin; she lives in Zürich and works as a UX designer at Swisscom"
    new = "The user quit at Swisscom and starts at Google in February"
    await memory.remember(old)
    answer = await memory.remember(new)
    assert [each.content for each in answer.outdates] == [old]
    assert old in {hit.content for hit in (await memory.search("What is the name of the user?")).hits}
    found = [hit.content for hit in (await memory.search("Where does the user work?")).hits]
    assert found.index(new) < found.index(old)


async def test_what_is_out_of_date_is_not_given_without_what_changed_it() -> None:
    async with Memory.open(":memory:", embedder="default") as memory:
        for text in (
            "Meine Mutter heißt Ingrid, sie ist 71 und wohnt in Freiburg",
            "Mein Bruder Ralf wohnt in Kiel",
            "Deploys go out on Thursdays via GitHub Actions to fly.io",
            "Meine Mutter ist nach Emmendingen umgezogen",
            "Decision: we moved from fly.io to Hetzner because fly was too expensive",
        ):
            await memory.remember(text)
        hits = (await memory.search("Wo wohnt meine Mutter?", only_relevant=True)).hits
        assert ["Emmendingen" in hits[0].content, "Freiburg" in hits[1].content] == [True, True]
        context = await memory.context("where do we deploy to?")
        assert context.index("Hetzner because") < context.index("Thursdays")


async def test_appointments_in_one_month_have_nothing_in_common(memory: Any) -> None:
    await memory.remember("Ich habe Karten für die Oper am 20. Dezember gekauft")
    dentist = await memory.remember("Zahnarzt am 12. Dezember um 9 Uhr")
    moved = await memory.remember("Zahnarzt auf den 15. Dezember um 14 Uhr verschoben")
    assert [each.id for each in moved.outdates] == [dentist.id]
    assert (await memory.remember("Записался к кардиологу на 20 декабря")).outdates == ()


async def test_a_newer_fact_takes_the_place_of_one_older_fact_only() -> None:
    async with Memory.open(":memory:", embedder="default") as memory:
        for fact in ("My landlord is Herr Vogt, his number is 0171 2345678", "We pay 1,180 euros of rent", *LIFE):
            await memory.remember(fact)
        await memory.remember("Rent goes up to 1,250 from January")
        await memory.settle()
        landlord = await memory.search("What's my landlord's phone number?", limit=3)
        rent = await memory.search("How much rent do we pay?", limit=3)
    assert landlord[0].content.startswith("My landlord")
    assert [hit.content for hit in rent[:2]] == ["Rent goes up to 1,250 from January", "We pay 1,180 euros of rent"]


async def test_of_several_older_facts_the_one_that_is_meant_is_reviewed(memory: Any) -> None:
    work = await memory.remember("I work as a nurse at the St. Georg hospital")
    await memory.remember("We moved to Dresden last week")
    new = await memory.remember("I quit at St. Georg and started at the University Hospital Dresden")
    assert [each.id for each in new.outdates] == [work.id]


@pytest.mark.parametrize(
    "told",
    [
        (
            "Our team chat is on Slack.",
            "We moved the team chat to Zulip.",
            "Nobody liked Zulip, our team chat is on Slack again.",
        ),
        ("My hair is brown.", "I dyed my hair teal.", "Sick of the teal, I dyed my hair back to brown."),
        (
            "По утрам пью кофе с молоком.",
            "Кофе бросил, по утрам пью цикорий.",
            "Цикорий надоел, по утрам опять пью кофе.",
        ),
    ],
)
async def test_going_back_to_an_earlier_version_outdates_the_later_one(memory: Any, told: tuple[str, ...]) -> None:
    _, later, _ = [await memory.remember(text) for text in told]
    listed = {item.older.id for item in await memory.review() if item.older}
    assert later.id in listed or not (await memory.get(later.id)).is_live


@pytest.mark.parametrize("change", ["reinforce", "confirm"])
async def test_an_older_fact_that_was_confirmed_since_does_not_rank_below_a_likely_change(change: str) -> None:
    async with Memory.open(":memory:", embedder="default") as memory:
        tea = await memory.remember("I drink green tea in the morning")
        await memory.remember("I drink black coffee in the morning")
        await memory.settle()
        assert (await memory.search("What do I drink in the morning, green tea?")).ids[0] != tea.id
        await getattr(memory, change)(tea.id)
        assert (await memory.search("What do I drink in the morning, green tea?")).ids[0] == tea.id


@pytest.mark.parametrize(
    ("lines", "question"),
    [
        (("Winter clothes are in box 14", "The sewing machine is in box 22"), "Where are the winter clothes?"),
        (("Die Winterkleider sind in Kiste 14", "Die Nähmaschine ist in Kiste 22"), "Wo sind die Winterkleider?"),
        (
            ("I vestiti invernali sono nella scatola 14", "La macchina da cucire è nella scatola 22"),
            "vestiti invernali",
        ),
        (("Зимняя одежда в коробке 14", "Швейная машина в коробке 22"), "Где зимняя одежда?"),
    ],
)
async def test_upkeep_does_not_compare_the_lines_of_one_note(
    tmp_path: Path, lines: tuple[str, ...], question: str
) -> None:
    (tmp_path / "Boxes.md").write_text("".join(f"- {line}.\n" for line in lines), encoding="utf-8")
    async with Memory.open(":memory:", embedder="default") as memory:
        await memory.import_(tmp_path / "Boxes.md")
        await memory.settle()
        assert _changes(await memory.maintain()) == "nothing to do"
        assert await memory.review() == []
        assert lines[0] in (await memory.search(question)).hits[0].content


@pytest.mark.parametrize("embedder", ["default", "hashing"])
async def test_versions_of_one_thing_rank_from_the_newest_to_the_oldest(embedder: str) -> None:
    said = ["I live in Rome", "I'm allergic to peanuts", "My dog is called Rex", "I live in Milan now"]
    said += ["Where do I live?", "My sister lives in Bergen", "My dog is called Max now", "I live in Turin"]
    async with Memory.open(":memory:", embedder=embedder) as memory:
        for day, text in enumerate(said, 1):
            await memory.add(text, at=f"2026-03-0{day}")
        await memory.settle()
        found = [hit.content for hit in await memory.search("Where do I live?", limit=8)]
    told = [text for text in found if text.startswith("I live in")]
    assert told == ["I live in Turin", "I live in Milan now", "I live in Rome"]


MAYA = [
    "I work for Acme",
    "I live in Rome",
    "My sister Anna is a vet",
    "I take 20 mg of lisinopril every morning",
    "I play the cello in an orchestra",
    "My car is parked at the station",
]


async def test_a_fact_that_says_that_another_has_changed_comes_with_it_though_it_shares_no_word_of_the_question() -> (
    None
):
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.remember(MAYA[0], attributes={"of": "work"})
        for fact in MAYA[1:]:
            await memory.remember(fact)
        stored = await memory.remember("I quit Acme and went over to Globex")
        assert [each.content for each in stored.outdates] == ["I work for Acme"]
        found = await memory.search("Who do I work for?")
        assert [hit.content for hit in found.hits[:2]] == ["I quit Acme and went over to Globex", "I work for Acme"]
        narrowed = await memory.search("Who do I work for?", where={"of": "work"})
        assert [hit.content for hit in narrowed.hits] == ["I work for Acme"]
        await memory.forget(stored.id)
        assert (await memory.search("Who do I work for?")).hits[0].content == "I work for Acme"


@pytest.mark.parametrize(("naming", "old", "new", "question"), BY_NAME)
async def test_facts_that_call_the_user_by_name_meet_their_own(
    memory: Memory, naming: str, old: str, new: str, question: str
) -> None:
    ann = memory.scoped(Scope(owner="ann"))
    await ann.remember(naming)
    await ann.remember(old)
    known = await ann.remember(new)
    assert [each.content for each in known.outdates] == [old]
    assert (await ann.search(question))[0].content == new


@pytest.mark.parametrize(("old", "new"), OCCUPATIONS)
def test_a_new_occupation_is_a_change(old: str, new: str) -> None:
    assert outdated({1: (old, None)}, (new, None))


@pytest.mark.parametrize(("old", "new"), OF_OTHERS)
def test_somebody_elses_occupation_is_none(old: str, new: str) -> None:
    assert not outdated({1: (old, None)}, (new, None))


async def test_a_fact_about_another_name_does_not_come_first(memory: Memory) -> None:
    await memory.remember("Sarah Mitchell lives in Cardiff")
    await memory.remember("Sarah Donnelly has moved to Swansea with the kids")
    assert (await memory.search("Where does Sarah Mitchell live?"))[0].content == "Sarah Mitchell lives in Cardiff"


@pytest.mark.parametrize(("old", "new"), ENDINGS)
async def test_what_has_ended_in_part_or_in_a_longer_fact_is_reviewed_and_not_closed(
    memory: Memory, old: str, new: str
) -> None:
    await memory.remember(old)
    known = await memory.remember(new)
    assert [(each.content, each.is_closed) for each in known.outdates] == [(old, False)]


@pytest.mark.parametrize(("old", "new"), NOT_MOVED)
async def test_a_thing_that_moved_or_another_number_changes_nothing(memory: Memory, old: str, new: str) -> None:
    await memory.remember(old)
    assert not (await memory.remember(new)).outdates


TO_COME = [
    ("My hourly rate is 110 euros", "From January my hourly rate will be 125 euros", "What is my current hourly rate?"),
    ("Mein Stundensatz ist 110 Euro", "Ab Januar ist mein Stundensatz 125 Euro", "Mein Stundensatz derzeit?"),
]


@pytest.mark.parametrize(("present", "coming", "question"), TO_COME)
async def test_what_is_to_come_does_not_answer_for_the_present(
    memory: Memory, clock: HandClock, present: str, coming: str, question: str
) -> None:
    clock.ms = to_ms(datetime(2026, 11, 28, 9, tzinfo=UTC))
    await memory.remember(present)
    await memory.remember(coming)
    assert (await memory.search(question))[0].content == present
    clock.ms = to_ms(datetime(2027, 2, 1, 9, tzinfo=UTC))
    assert (await memory.search(question))[0].content == coming


async def test_what_has_ended_once_is_not_closed_by_another_end(memory: Any) -> None:
    theory = await memory.remember("I passed the theory test for the driving licence")
    await memory.remember("I passed the driving test and have the licence")
    assert (await memory.get(theory.id)).is_live


@pytest.mark.parametrize(
    ("changed", "other", "newer"),
    [
        (
            "I have a Netflix subscription",
            "I cancelled everything for Porto",
            "I cancelled Netflix and took Mubi instead",
        ),
        ("I have a gym membership", "I quit smoking", "I quit the gym"),
        ("У меня подписка на Кинопоиск", "Я отменила поездку в Порту", "Я отменила подписку на Кинопоиск"),
    ],
)
async def test_an_end_ends_what_it_names_not_what_else_was_ended(
    memory: Any, changed: str, other: str, newer: str
) -> None:
    old = await memory.remember(changed)
    await memory.remember(other)
    assert [each.id for each in (await memory.remember(newer)).outdates] == [old.id]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My phone number is 5550101", "Anna's phone number is 5550102"),
        ("Meine Handynummer ist 0170 5550101", "Katrins Handynummer ist 0170 5550102"),
        ("My dentist is Dr Weiss", "Anna's dentist is Dr Schwarz"),
        ("I take 50 mg of sertraline", "My mother Ida, a retired nurse, lives in Bern and takes 100 mg of sertraline"),
        ("Ich nehme 50 mg Thyroxin", "Meine Mutter Inge wohnt in Kiel und nimmt 100 mg Thyroxin"),
        ("Я принимаю эутирокс 50", "Мама живёт в Твери и принимает эутирокс 100"),
    ],
)
async def test_the_same_of_the_user_and_of_somebody_else_is_not_reviewed(memory: Any, one: str, other: str) -> None:
    await memory.remember(one)
    await memory.remember(other)
    await memory.remember(one.replace("50 ", "60 ").replace("5550101", "5550103").replace("Weiss", "Blau"))
    listed = [(review.older.content, review.newer.content) for review in await memory.review()]
    assert not [pair for pair in listed if other in pair]


async def test_what_one_person_has_changes_nothing_of_another(memory: Any) -> None:
    await memory.remember("Emil is allergic to hazelnuts and cashews")
    own = await memory.remember("I'm allergic to wasp stings; the adrenaline pen expires in April 2027")
    await memory.settle(600)
    assert not own.outdates
    for question in ("What is Emil allergic to?", "Worauf ist Emil allergisch?"):
        assert (await memory.search(question))[0].content.startswith("Emil")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "The user has a dentist appointment on 4 March 2027.",
            "The user's brother Nuno gets married on 22 March 2027.",
        ),
        ("The car inspection is due on 14 January 2027.", "The user starts at Arup on 11 January 2027."),
        ("Der Pass muss bis 10. Dezember 2026 verlängert werden", "Mama wird am 19. Dezember 2026 siebzig"),
    ],
)
async def test_two_days_of_one_month_have_nothing_in_common(memory: Any, first: str, second: str) -> None:
    await memory.remember(first)
    assert not (await memory.remember(second)).outdates


OF_A_CLAUSE = [
    ("I live in Dover", "After the divorce I found a nice flat, and I live in Hastings"),
    ("I work at Arup", "I'm a structural engineer at Ferrovia Norte since May and live in Braga"),
    ("I'm an engineer at Ferrovia Norte and live in Braga", "I work at Arup"),
    ("I teach at Harrow High, live in Pinner and drive a Skoda", "I live in Watford"),
    ("The user works at Globex and lives in Lund", "The user lives in Ystad"),
    ("Ich lebe in Graz, arbeite bei Magna und fahre einen Seat", "Ich fahre einen Kia"),
    ("Ich wohne in Mainz", "Ich bin Lehrerin, verheiratet und wohne in Worms"),
    ("Я живу в Твери, работаю в Сбере и езжу на Тойоте", "Я езжу на Мазде"),
    ("Trabajo en Repsol", "Soy economista, estoy casada y trabajo en Cepsa"),
    ("J'habite à Dijon", "Je suis mariée, j'ai deux filles et j'habite à Beaune"),
    ("Abito a Parma, lavoro per Barilla e ho un cane", "Lavoro per Ferrari"),
    ("Moro em Faro, trabalho na EDP e tenho um cão", "Trabalho na Galp"),
]


@pytest.mark.parametrize(("older", "newer"), OF_A_CLAUSE)
async def test_a_change_of_one_clause_is_reviewed_and_the_other_clauses_stay(
    memory: Any, older: str, newer: str
) -> None:
    old = await memory.remember(older)
    assert [(each.id, each.is_closed) for each in (await memory.remember(newer)).outdates] == [(old.id, False)]
    assert (await memory.get(old.id)).is_live


UNRELATED = [
    ("I live in Dover and work at Arup", "My best friend lives in Hastings and works at Lidl"),
    ("I work at Arup and live in Braga", "My mother moved to Porto"),
    ("I work for Barclays and live in Ely", "I work at home on Fridays"),
    ("Ich wohne in Graz und arbeite bei Magna", "Meine Schwester wohnt in Linz und arbeitet bei Voest"),
    ("Moro em Faro e trabalho na EDP", "A minha prima mora em Lagos e trabalha na Galp"),
    ("Renew the mooring by 15 January", "The policy renews on 1 March"),
    ("Passport expires on 3 April 2029", "The parking permit expires on 30 June"),
    ("Book Anna's flight by 3 June", "Anna's thesis is due on 10 June"),
    ("Lotte's birthday is on 14 December 2016", "Elternabend in Lottes Schule am 8. Dezember"),
    ("Liegeplatz bis 15. Januar verlängern", "Die Versicherung verlängert sich am 1. März"),
    ("Загранпаспорт истекает 3 мая", "Полис истекает 9 июня"),
    ("El cumpleaños de Lucía es el 14 de diciembre", "Reunión de padres en el cole de Lucía el 8 de diciembre"),
    ("Le passeport expire le 3 mai", "L'abonnement expire le 9 juin"),
    ("Il passaporto scade il 3 maggio", "L'abbonamento scade il 9 giugno"),
    ("Renovar a amarração até 15 de janeiro", "A apólice renova-se a 1 de março"),
]


@pytest.mark.parametrize(("older", "newer"), UNRELATED)
async def test_a_date_an_owner_a_verb_of_duty_or_a_place_of_somebody_else_ties_no_facts(
    memory: Any, older: str, newer: str
) -> None:
    await memory.remember(older)
    assert (await memory.remember(newer)).outdates == ()
    assert list(await memory.review()) == []


async def test_another_date_of_one_thing_of_a_person_is_reviewed(memory: Any) -> None:
    old = await memory.remember("Anna's flight is on 3 June")
    assert [each.id for each in (await memory.remember("Anna's flight leaves on 10 June")).outdates] == [old.id]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Dentist on 8 December", "The dentist is moved to 15 December"),
        ("Dentist on 20 December", "The dentist is brought forward to 9 December"),
        ("Zahnarzttermin am 8. Dezember", "Der Zahnarzttermin wurde auf den 15. Dezember verlegt"),
        ("Стоматолог 8 декабря", "Стоматолога перенесли на 15 декабря"),
        ("Dentista el 8 de diciembre", "El dentista se ha movido al 15 de diciembre"),
        ("Dentiste le 8 décembre", "Le dentiste est reporté au 15 décembre"),
        ("Dentista l'8 dicembre", "Il dentista è spostato al 15 dicembre"),
        ("Dentista a 8 de dezembro", "O dentista foi adiado para 15 de dezembro"),
    ],
)
async def test_an_appointment_that_is_put_off_takes_the_place_of_the_first(memory: Any, older: str, newer: str) -> None:
    old, new = await memory.remember(older), await memory.remember(newer)
    assert (await memory.get(old.id)).closed_reason == "superseded"
    assert (await memory.get(new.id)).is_live


@pytest.mark.parametrize(
    ("facts", "newer"),
    [
        (["Dentist on 8 December", "Dentist on 20 January"], "The dentist is moved to 15 December"),
        (["Dentist on 8 December"], "The dentist may be moved to 15 December"),
        (["Dentist on 8 December"], "The dentist was not moved to 15 December"),
        (["Dentist for Mia on 8 December"], "The dentist for Leo is moved to 15 December"),
        (["Dentist on 8 December"], "The garden party after the dentist is moved to 15 December"),
    ],
)
async def test_what_may_be_another_appointment_closes_none(memory: Any, facts: list[str], newer: str) -> None:
    kept = [await memory.remember(fact) for fact in facts]
    await memory.remember(newer)
    assert all([(await memory.get(each.id)).is_live for each in kept])


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I work as a nurse in Tallinn", "I no longer live in Jūrmala or Tallinn"),
        ("I work at Pipistrell", "I left Nordwind and work at Pipistrell"),
        ("Ich arbeite bei Pipistrell", "Ich habe Nordwind verlassen und arbeite bei Pipistrell"),
        ("I live in Riga", "We also have a flat in Nida"),
        ("The wedding of Ada is on 12 June", "Ada's dress for the wedding is 850 euros"),
        ("Il matrimonio di Ada è il 12 giugno", "Il vestito di Ada per il matrimonio costa 850 euro"),
        ("Свадьба Ады 12 июня", "Платье Ады на свадьбу стоит 8500 рублей"),
        (
            "O prazo de entrega da Vila Verde é 12 de março de 2027",
            "O orçamento das vilas de hóspedes da Vila Verde é de 9500 euros",
        ),
    ],
)
async def test_what_still_holds_is_not_reviewed(memory: Any, older: str, newer: str) -> None:
    await memory.remember(older)
    assert not (await memory.remember(newer)).outdates


async def test_one_clause_that_holds_does_not_keep_what_another_one_ends(memory: Any) -> None:
    await memory.remember("I work at Nordwind")
    assert (await memory.remember("I left Nordwind and work at Pipistrell")).outdates
    await memory.remember("I live in Riga and work at Pipistrell")
    assert (await memory.remember("I moved to Nida and work at Pipistrell")).outdates


@pytest.mark.parametrize(
    ("plan", "end"),
    [
        ("The trip to Rome is on 12 June 2027", "The trip to Rome is cancelled"),
        ("Die Reise nach Rom ist am 12. Juni 2027", "Die Reise nach Rom ist abgesagt"),
        ("El viaje a Roma es el 12 de junio de 2027", "El viaje a Roma está cancelado"),
        ("Le voyage à Rome est le 12 juin 2027", "Le voyage à Rome est annulé"),
        ("Il viaggio a Roma è il 12 giugno 2027", "Il viaggio a Roma è annullato"),
        ("A viagem a Roma é em 12 de junho de 2027", "A viagem a Roma foi cancelada"),
        ("Поездка в Рим 12 июня 2027", "Поездка в Рим отменена"),
    ],
)
async def test_what_is_cancelled_is_no_longer_planned(memory: Any, plan: str, end: str) -> None:
    planned = await memory.remember(plan)
    other = await memory.remember(re.sub(r"Rom[ae]?\b|Рим", "Lisbon", plan))
    await memory.remember(end)
    assert (await memory.get(planned.id)).valid_until is not None
    assert (await memory.get(other.id)).valid_until is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (
            "La usuaria está aprendiendo a tocar la guitarra con su primo Andrés los jueves por la tarde.",
            "La usuaria ha dejado la guitarra.",
        ),
        (
            "El usuario está estudiando para ser apicultor con su vecino Andrés los domingos por la mañana.",
            "El usuario ha dejado de ser apicultor.",
        ),
    ],
)
async def test_a_weekday_at_the_end_does_not_hide_that_a_habit_ended(memory: Any, older: str, newer: str) -> None:
    old = await memory.remember(older)
    assert [each.id for each in (await memory.remember(newer)).outdates] == [old.id]


@pytest.mark.parametrize(
    ("before", "after", "is_news"),
    [
        ("Mr Oz hasn't paid the November rent yet", "Mr Oz paid the November rent today", True),
        ("Tom hat die Miete noch nicht überwiesen", "Tom hat die Miete heute überwiesen", True),
        ("Ainda não paguei a renda", "Já paguei a renda", True),
        ("Mr Oz hasn't paid the November rent yet", "Mr Oz will pay the November rent on Friday", False),
        ("Mr Oz hasn't paid the November rent yet", "Mr Brand paid the October rent", False),
    ],
)
async def test_what_had_not_happened_yet_has_happened(before: str, after: str, is_news: bool) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        old = await memory.remember(before)
        told = await memory.remember(after)
        assert [each.id for each in told.outdates] == [old.id] * is_news


@pytest.mark.parametrize(
    ("before", "after", "question"),
    [
        ("The team moved to Slack in 2026", "In autumn 2026 the team moved to Zulip", "What does the team chat on?"),
        ("My sister moved to Rome in March 2026", "My sister moved to Oslo in November 2026", "Where is my sister?"),
        ("Ich bin 2026 nach Bonn gezogen", "Ich bin im Herbst 2026 nach Kiel gezogen", "Wo wohne ich?"),
    ],
)
async def test_two_changes_of_one_year_are_two(before: str, after: str, question: str) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        old = await memory.remember(before)
        new = await memory.remember(after)
        assert [each.id for each in new.outdates] == [old.id]
        assert (await memory.search(question)).ids[0] == new.id


@pytest.mark.parametrize(
    ("planned", "moved"),
    [
        ("The go-live is planned for 15 February 2027", "The go-live was moved to 1 March 2027"),
        ("La entrega está prevista para el 15 de febrero", "La entrega se ha pasado al 1 de marzo"),
        ("A entrega está prevista para 15 de fevereiro", "A entrega foi adiada para 1 de março"),
        ("La consegna è prevista per il 15 febbraio 2027", "La consegna è stata spostata al 1 marzo 2027"),
        ("Die Abnahme ist für den 15. Februar geplant", "Die Abnahme wurde auf den 1. März verschoben"),
    ],
)
async def test_a_planned_event_that_is_moved_is_noticed(memory: Any, planned: str, moved: str) -> None:
    await memory.remember(planned)
    assert [each.content for each in (await memory.remember(moved)).outdates] == [planned]


@pytest.mark.parametrize(
    ("older", "newer", "kind"),
    [
        (
            "Ronan, le mari de l'utilisatrice, est infirmier de nuit au CHU.",
            "Ronan, le mari de l'utilisatrice, n'est plus infirmier de nuit au CHU, il est infirmier scolaire.",
            "replaced",
        ),
        (
            "Solenn, la sœur de l'utilisatrice, habite à Quimper avec ses deux chats.",
            "Solenn a déménagé, elle habite à Lorient maintenant.",
            "conflict",
        ),
        (
            "Lucia, la sorella dell'utente, abita a Bari con i suoi due gatti.",
            "Lucia si è trasferita, adesso abita a Lecce.",
            "conflict",
        ),
        (
            "Lúcia, a irmã do usuário, mora em Braga com os seus dois gatos.",
            "Lúcia mudou-se, agora mora em Porto.",
            "conflict",
        ),
    ],
)
async def test_who_somebody_is_to_the_user_may_stand_behind_the_name(
    memory: Any, older: str, newer: str, kind: str
) -> None:
    await memory.remember(older)
    await memory.remember(newer)
    assert [each.kind for each in await memory.review()] == [kind]


async def test_the_move_of_the_user_changes_nothing_of_a_relative_named_before_who_it_is(memory: Any) -> None:
    await memory.remember("Solenn, la sœur de l'utilisatrice, habite à Quimper.")
    await memory.remember("L'utilisatrice a déménagé, elle habite à Lorient maintenant.")
    assert not await memory.review()


async def test_the_husband_of_the_user_is_known_by_his_name(memory: Any) -> None:
    stored = await memory.remember("Ronan, the husband of the user, is a night nurse.")
    assert stored.about == ("Ronan",)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My tax adviser is Frau Ebbinghaus in Kirchzarten.", "Met Frau Lind, she wants cups, not mugs."),
        ("My tax adviser is Mrs Harper in Bath.", "Met Mrs Doyle, she wants cups, not mugs."),
        ("My dentist is Señora Gil.", "Met Señora Ruiz, she now wants cups."),
        ("Ma comptable est Mme Dupont.", "J'ai vu Mme Leroy, elle veut des tasses maintenant."),
        ("Mi dentista es la señora Gil.", "He visto a la señora Ruiz, ahora quiere tazas."),
        ("La mia vicina è la signora Bruni.", "Ho visto la signora Neri, adesso vuole tazze."),
        ("A minha contabilista é a dona Rosa.", "Encontrei a dona Lúcia, agora quer chávenas."),
        ("herr baumann finally brought the drill back", "herr baumann is now chair of the allotment club"),
        ("mme leroy a enfin rapporté la perceuse", "mme leroy est maintenant présidente du club"),
    ],
)
async def test_a_title_is_no_common_topic_and_names_a_person(memory: Any, older: str, newer: str) -> None:
    await memory.remember(older)
    await memory.remember(newer)
    assert not await memory.review()


async def test_a_change_of_one_with_a_title_is_noticed(memory: Any) -> None:
    old = await memory.remember("mr baumann is chair of the allotment club")
    new = await memory.remember("mr baumann is no longer chair of the allotment club")
    assert [each.id for each in new.outdates] == [old.id]


async def test_somebody_with_the_same_title_does_not_come_first() -> None:
    async with await Memory.open(":memory:") as memory:
        adviser = await memory.remember("My tax adviser is Frau Ebbinghaus in Kirchzarten.")
        await memory.remember("Met Frau Lind, she wants cups, not mugs.")
        assert (await memory.search("Who does my taxes?")).ids[0] == adviser.id


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("i now take 75 mg of thyroxin", "took 400 mg ibuprofen this morning instead of 200"),
        ("Ich nehme 75 mg Thyroxin", "Habe heute 400 mg Ibuprofen statt 200 genommen"),
        ("Prendo 75 mg di tiroxina", "Stamattina ho preso 400 mg di ibuprofene invece di 200"),
        ("Принимаю 75 мг тироксина", "Утром приняла 400 мг ибупрофена вместо 200"),
        (
            "The user's workshop is insured with MAIF until the end of January 2027.",
            "The user's car is insured with AXA.",
        ),
        ("The user's car is insured with AXA.", "The user's car is parked in the rue Voltaire."),
        ("Ma voiture est assurée chez AXA.", "Ma voiture est garée dans la rue Voltaire."),
        ("Mi coche está asegurado con AXA.", "Mi coche está aparcado en la calle Mayor."),
        ("La mia macchina è assicurata con AXA.", "La mia macchina è parcheggiata in via Verdi."),
    ],
)
async def test_a_unit_or_a_frame_alone_is_no_common_matter(memory: Any, older: str, newer: str) -> None:
    await memory.remember(older)
    await memory.remember(newer)
    assert not await memory.review()


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I take 50 mg of sertraline", "They raised it to 75 mg"),
        ("I take 50 mg of sertraline", "Switched from sertraline 50 mg to fluoxetine 20 mg"),
        ("My car is insured with AXA.", "My car is insured with MAIF."),
    ],
)
async def test_another_value_of_the_same_matter_is_noticed(memory: Any, older: str, newer: str) -> None:
    old = await memory.remember(older)
    assert [each.id for each in (await memory.remember(newer)).outdates] == [old.id]
