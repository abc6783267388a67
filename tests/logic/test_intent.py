"""Intent of a question, by its words and by similarity to known questions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ricordo.retrieval.calibration import calibrated, known_questions
from ricordo.retrieval.query import INTENTS, asked_in, complexity_of, follows_up, intent_of
from ricordo.text.languages import all_languages

QUESTIONS = {
    "why": (
        "Why did Melanie take up pottery?",
        "How come the launch slipped to March?",
        "What made you choose Postgres?",
        "What was the reason for switching doctors?",
        "What led to the breakup?",
        "why are we still on the old plan",
        "Tell me why the tests were failing",
        "What did Tom need the ladder for?",
        "Do you remember why Anna cried?",
        "What caused the outage last week?",
        "Почему мы отказались от Redis?",
        "Зачем Павел купил вторую машину?",
        "Из-за чего отменили поездку?",
        "По какой причине перенесли релиз?",
        "Что заставило Олю сменить работу?",
        "Отчего у меня болела спина?",
        "А почему ты не поехал когда звали?",
    ),
    "when": (
        "When is Sarah's birthday?",
        "What time does the train leave?",
        "In which year did we buy the house?",
        "How long ago did I see the dentist?",
        "On what date was the contract signed?",
        "Since when am I vegan?",
        "when did caroline go to the support group",
        "Do you remember when we met Ivan?",
        "What month is the rent due to rise?",
        "What is the date of the wedding?",
        "How long has she been in Rome?",
        "Когда у Сары день рождения?",
        "В каком году мы купили дом?",
        "Во сколько отходит поезд?",
        "Как давно я был у врача?",
        "Какого числа подписали договор?",
        "С каких пор я не ем мясо?",
        "Помнишь, когда мы познакомились?",
    ),
    "who": (
        "Who recommended the plumber?",
        "Whose birthday is in May?",
        "With whom did Anna go to Lisbon?",
        "Who's my contact at Acme?",
        "who was there when the pipe burst",
        "Which of my colleagues speaks Polish?",
        "Do you know who fixed the roof?",
        "Кто порекомендовал сантехника?",
        "Чья это была куртка?",
        "С кем Анна ездила в Лиссабон?",
        "Кому я одолжил дрель?",
        "О ком мы говорили вчера?",
        "Кем работает мой сосед?",
    ),
    "what": (
        "What is my sister allergic to?",
        "Which editor does Tom prefer?",
        "Where does John live now?",
        "What did we decide about the database?",
        "How many cats has Lena got?",
        "what's the wifi password",
        "What are Anna's hobbies?",
        "How much did the sofa cost?",
        "На что у сестры аллергия?",
        "Какой редактор любит Том?",
        "Где сейчас живёт Иван?",
        "Что мы решили насчёт базы данных?",
        "Сколько у Лены кошек?",
        "О чём договорились на встрече?",
    ),
    "general": (
        "peanut allergy",
        "Tell me about the migration project",
        "favourite colour",
        "Acme contract terms",
        "Does Anna have a car?",
        "anything on the kitchen renovation",
        "Is Tom married?",
        "I know you were tired",
        "Guess if I like jazz",
        "аллергия на арахис",
        "Расскажи про переезд",
        "любимый цвет",
        "У Анны есть машина?",
        "Том женат?",
        "напомни кое-что про ремонт кухни",
    ),
}
ASKED = [(question, intent) for intent, questions in QUESTIONS.items() for question in questions]


@pytest.mark.parametrize(("question", "intent"), ASKED, ids=[question for question, _ in ASKED])
def test_words_give_the_intent(question, intent):
    assert intent_of(question) == intent


SIMPLE = (
    "Where does John live?",
    "When is Sarah's birthday?",
    "Why did the build fail?",
    "cats or dogs",
    "peanut allergy",
    "Где живёт Иван?",
    "Когда у Сары день рождения?",
    "Кто починил крышу?",
    "Что любит Том и Анна?",
)
COMPLEX = (
    "List all the books Melanie has read",
    "What do Anna and Tom have in common?",
    "Compare the two offers",
    "How has my opinion of the project changed?",
    "Summarize the discussion",
    "How many times did we meet?",
    "Who came, and what did they bring, and where did they sleep?",
    "What did each of them say?",
    "What did the doctor say about my knee after the second operation in May?",
    "Перечисли все книги Мелани",
    "Что общего у Анны и Тома?",
    "Сравни два предложения",
    "Сколько раз мы встречались?",
    "Кто пришёл, и что принесли, и где спали?",
    "Что сказал врач про моё колено после второй операции в мае прошлого года?",
)


@pytest.mark.parametrize("question", SIMPLE)
def test_a_plain_question_is_simple(question):
    assert complexity_of(question) == "simple"


@pytest.mark.parametrize("question", COMPLEX)
def test_a_question_that_is_long_or_for_many_things_is_complex(question):
    assert complexity_of(question) == "complex"


@pytest.mark.parametrize("text", ["", "   ", "?", "\u0000", "why" * 100_000, "кто " * 50_000, "🙂"])
def test_unusual_texts_have_an_intent_too(text):
    assert intent_of(text) in (*INTENTS, "general")
    assert complexity_of(text) in ("simple", "complex")


def around(centres, count, spread, seed=1):
    """Return vectors around one centre per intent, with all centres far from the origin."""
    random = np.random.default_rng(seed)
    rows = [centre + spread * random.standard_normal(centre.shape) for centre in centres for _ in range(count)]
    return np.asarray(rows, np.float32) + 5


def test_the_threshold_is_the_embedders_own():
    centres = np.eye(4, 32, dtype=np.float32)
    intents = [intent for intent in INTENTS for _ in range(12)]
    sharp, soft = (calibrated(around(centres, 12, spread), intents) for spread in (0.02, 0.1))
    assert sharp.accuracy == soft.accuracy == 1
    assert sharp.threshold > soft.threshold > 0
    assert [sharp.intent_of(centre + 5) for centre in centres] == list(INTENTS)
    assert sharp.intent_of(np.asarray(centres[:2].mean(axis=0) + 5, np.float32)) is None  # between two
    assert sharp.intent_of(np.ones(7, np.float32)) is None  # of another embedder


def test_an_embedder_that_cannot_separate_intents_is_not_used():
    intents = [intent for intent in INTENTS for _ in range(12)]
    blurred = calibrated(around(np.eye(4, 32, dtype=np.float32), 12, 50.0), intents)
    assert blurred.accuracy < 0.7
    assert all(blurred.intent_of(row) is None for row in around(np.eye(4, 32, dtype=np.float32), 3, 0.1))


def test_there_are_exemplars_of_each_intent_in_both_languages():
    questions = known_questions()
    for intent in INTENTS:
        russian = [text for text in questions[intent] if any("а" <= char <= "я" for char in text.lower())]
        assert len(russian) >= 5 and len(questions[intent]) - len(russian) >= 7


TALK = Path(__file__).parents[1] / "fixtures" / "relevance" / "small_talk.jsonl"
TALKED = [json.loads(line) for line in TALK.read_text(encoding="utf-8").splitlines()]
WITH_A_RECORD = {language.code for language in all_languages()}


def test_small_talk_asks_nothing_in_every_language_with_a_record():
    talk = [row["text"] for row in TALKED if row["kind"] != "asks" and row["language"] in WITH_A_RECORD]
    heard = [text for text in talk if asked_in(text)]
    assert len(talk) >= 100 and len(heard) <= 0.1 * len(talk), heard


def test_a_greeting_does_not_silence_a_question():
    assert [row["text"] for row in TALKED if row["kind"] == "asks" and not asked_in(row["text"])] == []


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Hi, what was my sister's address again?", "what was my sister's address again?"),
        ("Спасибо! А где ключи?", "А где ключи?"),
        ("Danke, und wie hieß der Klempner?", "und wie hieß der Klempner?"),
        ("Hello Anna", ""),
        ("Hello, Anna?", "Anna?"),
        ("Who am I?", "Who am I?"),
        ("", ""),
    ],
)
def test_what_a_text_asks_is_left_of_it(text, asked):
    assert asked_in(text) == asked


@pytest.mark.parametrize(
    "text", ["and when was that?", "Tell me more about it", "а когда это было?", "Und wann war das?"]
)
def test_a_question_about_what_was_just_said_is_a_follow_up(text):
    assert follows_up(text)


@pytest.mark.parametrize("text", ["When was that trip?", "What happened last month?", "Who am I?", "Anna"])
def test_a_question_that_names_something_is_no_follow_up(text):
    assert not follows_up(text)


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("Tell me everything about Anna", "what"),
        ("Timeline of events in spring", "when"),
        ("What happened after the move?", "when"),
        ("What did she eat?", "what"),
    ],
)
def test_overviews_and_orders_of_events_have_an_intent(question, intent):
    assert intent_of(question) == intent


@pytest.mark.parametrize(
    "text",
    [
        "tell me the peanut stories",
        "Tell me something about Anna",
        "Give me a few facts about the landlord",
        "Write a poem for Anna",
        "Erzähl mir die Geschichte von Opa",
        "Erzähl mir was Neues von Anna",
        "Расскажи что-нибудь про Анну",
        "Расскажи историю про дедушку",
        "Dime algo interesante sobre Ana",
        "Raconte-moi quelque chose sur Anna",
        "Raccontami qualcosa su Anna",
        "Me conta algo sobre a Ana",
    ],
)
def test_a_request_that_names_something_is_no_small_talk(text):
    assert asked_in(text) == text
