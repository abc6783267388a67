"""Plain statements that rules extract without a model, and look-alikes."""

from __future__ import annotations

import pytest

from ricordo.consolidation.plain_rules import plain_statements
from ricordo.text.work import asks_to_forget, is_bare_question


@pytest.mark.parametrize(
    ("said", "kind", "kept"),
    [
        ("Well, I really love hiking in the Alps.", "preference", "I really love hiking in the Alps"),
        ("Olga prefers tea to coffee!", "preference", "Olga prefers tea to coffee"),
        ("My favourite colour is green.", "preference", "My favourite colour is green"),
        ("I can't stand cilantro", "preference", "I can't stand cilantro"),
        ("Hi, my name is Vera", "fact", "My name is Vera"),
        ("I live in Lisbon since 2019. Do you?", "fact", "I live in Lisbon since 2019"),
        ("I'm allergic to peanuts.", "fact", "I'm allergic to peanuts"),
        ("My daughter is called Mia", "fact", "My daughter is called Mia"),
        ("Remember that the spare key hangs in the shed.", "fact", "The spare key hangs in the shed"),
        ("FYI: the boiler was serviced in May", "fact", "The boiler was serviced in May"),
        ("My wedding is on June 3rd", "fact", "My wedding is on June 3rd"),
        ("We decided to sell the car.", "decision", "We decided to sell the car"),
        ("I promised Anna to water her plants", "commitment", "I promised Anna to water her plants"),
        ("I'll send Tom the slides by Friday.", "commitment", "I'll send Tom the slides by Friday"),
        ("I think remote work suits small teams best", "opinion", "I think remote work suits small teams best"),
        ("I prefer night trains, so ask me before you book", "preference", "I prefer night trains"),
        ("I decided to sell the boat, can you help me with the advert", "decision", "I decided to sell the boat"),
        ("I work in a small bakery and", "fact", "I work in a small bakery"),
        ("Absolutely, my favourite season is autumn", "preference", "My favourite season is autumn"),
        ("I used to live in Ghent", "fact", "I used to live in Ghent"),
        ("I've been teaching chemistry for twelve years", "fact", "I've been teaching chemistry for twelve years"),
        ("We run along the canal every Sunday", "fact", "We run along the canal every Sunday"),
        ("I think hotels by the sea are overrated", "opinion", "I think hotels by the sea are overrated"),
        (
            "Ich finde Hotels überschätzt und teuer, kannst du mir helfen",
            "opinion",
            "Ich finde Hotels überschätzt und teuer",
        ),
        ("Я очень люблю грузинскую кухню.", "preference", "Я очень люблю грузинскую кухню"),
        ("Мне не нравится громкая музыка", "preference", "Мне не нравится громкая музыка"),
        ("Привет, меня зовут Олег", "fact", "Меня зовут Олег"),
        ("У меня аллергия на орехи.", "fact", "У меня аллергия на орехи"),
        ("Запомни, что ключ лежит в сарае", "fact", "Ключ лежит в сарае"),
        ("Мы решили продать машину.", "decision", "Мы решили продать машину"),
        ("Обещал Анне полить цветы до пятницы", "commitment", "Обещал Анне полить цветы до пятницы"),
        ("btw I'm fully vegan now", "fact", "I'm fully vegan now"),
        ("I can't do that café, I'm allergic to hazelnuts", "fact", "I'm allergic to hazelnuts"),
        ("I was diagnosed with coeliac disease", "fact", "I was diagnosed with coeliac disease"),
        ("We've just moved to Bristol!", "fact", "We've just moved to Bristol"),
        ("I started at Airbus yesterday", "fact", "I started at Airbus yesterday"),
        ("My mum passed away in March", "fact", "My mum passed away in March"),
        ("Du weißt ja, ich bin übrigens jetzt Vegetarierin", "fact", "Ich bin übrigens jetzt Vegetarierin"),
        ("Wir sind letzte Woche nach Kiel gezogen", "fact", "Wir sind letzte Woche nach Kiel gezogen"),
        ("Ich hab bei Bosch gekündigt", "fact", "Ich hab bei Bosch gekündigt"),
        ("Я теперь веганка", "fact", "Я теперь веганка"),
        ("Мы наконец переехали в Казань", "fact", "Мы наконец переехали в Казань"),
        ("Ahora soy vegana y mi hermana también", "fact", "Ahora soy vegana y mi hermana también"),
        ("On a déménagé à Lyon avec les enfants", "fact", "On a déménagé à Lyon avec les enfants"),
        ("По-моему, удалёнка подходит не всем", "opinion", "По-моему, удалёнка подходит не всем"),
    ],
)
def test_a_plain_statement_is_kept_as_it_was_said(said: str, kind: str, kept: str) -> None:
    assert [(found.kind, found.text) for found in plain_statements(said)] == [(kind, kept)]


@pytest.mark.parametrize(
    "said",
    [
        "Do you love hiking?",
        "Write to me when you arrive in Rome",
        "They always write to me at Christmas",
        "Always lock the front door",
        "Schreib mir, wenn du da bist",
        "Пиши мне завтра",
        "I think the second one tastes better than the first",
        "I think that was a very good concert",
        "I think she is heading to the station by now",
        "I think starting with a small trial makes the most sense",
        "I think im too tired to write the letter now",
        "I think my uncle keeps bees somewhere near Lyon",
        "I love going back to that place",
        "They love skating and hockey",
        "You promised to send a working link by Monday",
        "I promise I won't laugh at the drawings",
        "I'll show you tomorrow what the garden looks like",
        "I decided to try a new curry",
        "I hate to say that the soup was cold",
        "Well I hate knitting in the evening then!!!",
        "I really like option 2",
        "I've been playing for about four months",
        "I don't really eat a lot of their cakes",
        "Ich glaube, er ist schon nach Hause gegangen",
        "Думаю, он уже давно уехал домой на поезде",
        "I love it!",
        "I like your new haircut",
        "I'd love to see the photos",
        "I would like a coffee",
        "I think so",
        "I think I left my keys there",
        "It looks like rain",
        "Sounds like a great plan, John",
        "Maybe I love hiking",
        "If I lived in Lisbon, I would surf",
        'She said "I hate mondays"',
        "I haven't decided yet",
        "I'll see you tomorrow",
        "I'll definitely try",
        "I'm a bit tired",
        "We moved to the next topic",
        "I'm engaged in a long debate with them",
        "I stopped drinking my coffee when he came",
        "I lost my job interview notes",
        "She thinks I'm vegan",
        "I would be vegan if I could cook",
        "Ich habe das Abo gekündigt",
        "Ich bin schon wieder ins Bett gezogen worden",
        "I love the colors",
        "They love them",
        "Я люблю тебя",
        "Мне нравится эта картина",
        "Ты любишь чай?",
        "Может быть, я люблю чай",
        "Думаю, что да",
        "Ещё не решил",
        "как дела",
        "",
    ],
)
def test_small_talk_and_guesses_teach_nothing(said: str) -> None:
    assert plain_statements(said) == ()


def test_abbreviations_and_decimals_do_not_end_a_sentence() -> None:
    (found,) = plain_statements("I live in St. Gallen at 2.5 km from Dr. Weber's practice. Nice.")
    assert found.text == "I live in St. Gallen at 2.5 km from Dr. Weber's practice"


def test_long_texts_cost_no_more_than_their_beginning() -> None:
    assert len(plain_statements("I love tea. " + "word " * 200_000)) == 1
    assert plain_statements("a" * 1_000_000) == ()


@pytest.mark.parametrize(
    "question",
    [
        "Where did I park?",
        "Do you know where Anna lives? And her sister?",
        "Weißt du, wo Anna wohnt?",
        "Где живёт Анна?",
        "¿Dónde vive Ana?",
        "Où habite Anne ?",
        "Dove abita Anna?",
        "Onde mora a Ana?",
        "安娜住在哪里？",
    ],
)
def test_a_text_of_questions_only_tells_nothing(question: str) -> None:
    assert is_bare_question(question)


@pytest.mark.parametrize(
    "said",
    [
        "I asked where I parked",
        "Open question: who pays for the hosting?",
        "Anna moved out. Where does she live now?",
        'Her favourite line is "To be or not to be?"',
        "Please remember that I parked in row 7, ok?",
        "",
    ],
)
def test_what_tells_or_notes_something_is_no_bare_question(said: str) -> None:
    assert not is_bare_question(said)


@pytest.mark.parametrize(
    "asked",
    [
        "forget what i told you about the cat",
        "please delete that thing about leaving my job",
        "dont remember this: i cried at work",
        "Off the record: my boss is an idiot",
        "scratch what I said about my boss",
        "Vergiss bitte, was ich dir gesagt habe",
        "Olvida lo que te dije del gato",
        "Oublie ce que je t'ai dit",
        "Dimentica quello che ti ho detto",
        "Esquece o que eu te disse",
        "Забудь, что я говорил про кота",
        "Forget that Théo owes the user 300 euros.",
        "Forget Théo owes the user 300 euros",
        "The user asked me to forget her old address.",
        "The user wants the note about Paul deleted.",
        "Vergiss bitte, dass ich nicht gern koche",
        "Die Nutzerin bat darum, die Sache mit Theo zu vergessen.",
        "Oublie que Théo me doit 300 euros",
        "L'utilisatrice a demandé d'oublier son adresse",
        "Olvida que Théo me debe 300 euros",
        "La usuaria pidió que olvides su dirección",
        "Dimentica che Théo mi deve 300 euro",
        "L'utente ha chiesto di dimenticare l'indirizzo",
        "Esquece que o Théo me deve 300 euros",
        "O usuário pediu que esqueças a morada",
        "Забудь, что Тео должен мне 300 евро",
        "Пользователь попросил забыть адрес",
        "请忘记我欠钱的事",
    ],
)
def test_what_asks_to_forget_tells_nothing(asked: str) -> None:
    assert asks_to_forget(asked)


@pytest.mark.parametrize(
    "said",
    [
        "I forget names",
        "Delete the old branch before Friday",
        "Never forget that I told Kim",
        "Scratch the car and you pay",
        "Lösche freitags die Logs",
        "Remove everything from the fridge before the holidays",
        "The user wants to forget her ex and move on",
        "The user asked Marc to delete the photos",
        "The user wants the old sofa gone",
        "Forget-me-nots grow in the user's garden",
        "Vergiss bitte nicht den Arzttermin",
        "Vergissmeinnicht wachsen im Garten",
        "Die Nutzerin möchte, dass ihr Bruder das Auto verkauft",
        "N'oublie pas le pain",
        "Oublie toujours ses clés",
        "Olvida los nombres con facilidad",
        "Dimentica sempre le chiavi",
        "Esquece sempre as chaves",
        "Не забудь купить хлеб",
        "我忘记了钥匙",
    ],
)
def test_a_task_or_a_habit_does_not_ask_to_forget(said: str) -> None:
    assert not asks_to_forget(said)
