"""The people and pets that somebody names in passing are known by their relation, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import Memory, NotFoundError

BESIDE = """
My wife Sarah hates cilantro | my wife | Sarah
I had lunch with my brother Owen, who is a vet | my brother | Owen
Tom, my younger brother, is in the navy | my brother | Tom
Sarah (my wife) sings in a choir | my wife | Sarah
Marcus — that's my husband — broke the kitchen | my husband | Marcus
I share an office with Ingrid, who happens to be my wife | my wife | Ingrid
Mum (Jeanette) is having her hip done | my mother | Jeanette
The landlord (Mr. Okafor) is on holiday | my landlord | Okafor
My husband Piotr can't eat gluten, any good pizza places? | my husband | Piotr
Meine Frau Katrin hat nächste Woche Geburtstag | meine Frau | Katrin
Das ist Jochen, mein Chef | my boss | Jochen
Unser Vermieter, Herr Wiesner, ist nett | mein Vermieter | Wiesner
Моя сестра Алина учится в Перми | моя сестра | Алина
Вчера ездили к моему брату Денису | мой брат | Денис
Соседка наша, Зоя, опять шумит | моя соседка | Зоя
Mi mujer, Rocío, es celíaca | mi mujer | Rocío
Bérénice, ma grande sœur, habite à Lyon | ma sœur | Bérénice
Nicoletta, mia sorella minore, vive a Trieste | mia sorella | Nicoletta
Mia moglie Ornella è intollerante al lattosio | mia moglie | Ornella
""".strip().splitlines()
STATED = """
my boss is Karen :-) | my boss | Karen
My sister's name is Megan | my sister | Megan
I have a brother called Anders | my brother | Anders
Since you asked, my neighbour is Gwen at number 9 | my neighbour | Gwen
reminder: my doctor is called Feldman | my doctor | Feldman
I have a sister. Her name is Anna. | my sister | Anna
I need a present for Dad. His name's Leonard. | my father | Leonard
The woman you met was Gwen. She is my cousin. | my cousin | Gwen
Wir haben seit Ostern einen Bruder im Haus, er heißt Lennart | mein Bruder | Lennart
Mein Bruder heißt Lennart und wohnt in Rostock | mein Bruder | Lennart
Моего начальника зовут Виктор Павлович | мой начальник | Виктор Павлович
У меня есть сестра, её зовут Катя | моя сестра | Катя
Vivo en Lima y mi jefa se llama Carmen | mi jefa | Carmen
J'ai un frère qui s'appelle Hugo | mon frère | Hugo
Il mio capo si chiama Fabrizio | my boss | Fabrizio
Vivo a Roma e mia figlia si chiama Anna | mia figlia | Anna
""".strip().splitlines()
SEVERAL = """
My kids Ben and Lily are home | child | Ben, Lily
My two boys, Callum and Reece, share a room | son | Callum, Reece
Alan, Moira and Pat are my colleagues | colleague | Alan, Moira, Pat
Meine beiden Jungs, Mats und Jonte, klettern gern | son | Mats, Jonte
У меня двое сыновей: Матвей и Глеб | son | Матвей, Глеб
Tengo dos hijas, Jimena y Carlota | daughter | Jimena, Carlota
I miei figli Luca e Sara sono a scuola | child | Luca, Sara
We have two kids. Their names are Lotte and Emil. | child | Lotte, Emil
We have two kids, Lotte (7) and Emil (4) | child | Lotte, Emil
Our children's names are Lotte and Emil | child | Lotte, Emil
I have five cousins: Ann, Ben, Carl, Dora and Emil | cousin | Ann, Ben, Carl, Dora, Emil
We have two kids called Lotte and Emil | child | Lotte, Emil
My kids — Lotte and Emil — love skiing | child | Lotte, Emil
Wir haben zwei Kinder, sie heißen Lotte und Emil | child | Lotte, Emil
Wir haben fünf Kinder, die Anna, Bernd, Emil, Hugo und Lotte heißen | child | Anna, Bernd, Emil, Hugo, Lotte
Die Namen unserer Kinder sind Lotte und Emil | child | Lotte, Emil
Наших детей зовут Лотта и Эмиль | child | Лотта, Эмиль
У нас двое детей, их зовут Лотта и Эмиль | child | Лотта, Эмиль
У меня две сестры, Анна и Мария | sister | Анна, Мария
Мои дочери Анна и Мария любят лыжи | daughter | Анна, Мария
Tengo dos hermanas, Ana e Isabel | sister | Ana, Isabel
Tenemos dos hijos. Se llaman Lotte y Emil | child | Lotte, Emil
Nous avons deux enfants : Lotte et Emil | child | Lotte, Emil
Nous avons deux enfants. Ils s'appellent Lotte et Emil | child | Lotte, Emil
Abbiamo due figli: Lotte ed Emil | child | Lotte, Emil
I nostri figli si chiamano Lotte ed Emil | child | Lotte, Emil
Temos dois filhos: Lotte e Emil | child | Lotte, Emil
Os nossos filhos chamam-se Lotte e Emil | child | Lotte, Emil
""".strip().splitlines()
PETS = """
Our dog Rufus sleeps all day | my dog | Rufus
We got a rescue greyhound in March, she's called Biscuit | my dog | Biscuit
Unsere Katze Minka frisst nichts | meine Katze | Minka
У нас живёт кот Батон | мой кот | Батон
Mi perra se llama Canela | mi perra | Canela
On a adopté un chat, il s'appelle Moustache | my cat | Moustache
Il nostro gatto si chiama Birillo | my cat | Birillo
""".strip().splitlines()
NOT_TOLD = """
My sister Berlin trip is in October | my sister
My boss Excel files are a mess | my boss
Met my brother Monday in town | my brother
My cousin Vinny DVD is gone | my cousin
I told my wife Sarah called | my wife
I invited Karen, Tom, my boss and Anna | my boss
I love my sister, Karen, and Tom | my sister
I saw Karen, Tom, my boss. | my boss
I saw Karen, Tom, my boss, and Bob | my boss
The sister of my husband Tom called | my husband
Is my boss Karen in today? | my boss
If my brother Tom calls, hang up | my brother
I wish I had a sister called Matilda | my sister
I had a dog named Rex | my dog
Back in Bristol my boss Yvonne made us sing | my boss
My former boss Karen called | my boss
In the novel my brother Karl is the narrator | my brother
Let's roleplay. I am a widow and my husband Reginald was found in the library. | my husband
Dear Abby, my husband Phil never does the dishes | my husband
How do you say in Japanese: my sister Claire lives in Paris | my sister
He said: "I am Tom. My wife Laura is late. She is ill." | my wife
> my brother Tom is late | my brother
Oh sure, and Beyoncé is my cousin | my cousin
Our partner Siemens signed | my partner
Watched My Cousin Vinny again | my cousin
My sister met a guy. His name is Tom. | my sister
My mother bought a boat, her name is Dolly | my mother
My dog Walker is late | my dog
My boss is called Karen, I think | my boss
Meine Schwester Hamburg Reise ist ins Wasser gefallen | meine Schwester
Meine Mutter Sprache ist Türkisch | meine Mutter
Unsere Kinder sind Lehrer und Anwalt | mein Kind
We have two kids called when Anna and Bob left | my kid
Früher war Anke meine Chefin | meine Chefin
Hätte ich einen Bruder, er heißt Tom | mein Bruder
Моему коту Вискас нельзя | мой кот
Моя мама Питер обожает | моя мама
Моя сестра Ольгу не видела | моя сестра
Муж моей сестры Олег уехал | моя сестра
Mi madre Semana Santa la pasa en Málaga | mi madre
La novia de mi hermano Ana canta | mi hermano
Mon père Noël, il le passe devant la télé | mon père
Mia madre Pasqua la vuole da noi | mia madre
Se mia sorella Irene venisse, sarei felice | mia sorella
""".strip().splitlines()


@pytest.mark.parametrize("line", [*BESIDE, *STATED, *PETS])
async def test_a_person_or_pet_named_in_passing_is_known(memory: Any, line: str) -> None:
    said, who, name = line.split(" | ")
    await memory.add(said)
    assert (await memory.entity(who)).name == name


@pytest.mark.parametrize("line", SEVERAL)
async def test_several_people_are_named_together(memory: Any, line: str) -> None:
    said, relation, expected = line.split(" | ")
    await memory.add(said)
    for name in expected.split(", "):
        assert (await memory.entity(name)).relation == relation


@pytest.mark.parametrize("line", PETS)
async def test_a_pet_is_nobody(memory: Any, line: str) -> None:
    await memory.add(line.split(" | ")[0])
    assert list(await memory.people()) == []


async def test_a_pet_and_a_person_of_one_name_are_two(memory: Any) -> None:
    await memory.add("My brother Max lives in Kiel")
    await memory.add("Our dog Max is old")
    assert (await memory.entity("my brother")).name == "Max"
    with pytest.raises(NotFoundError):
        await memory.entity("my dog")


@pytest.mark.parametrize("line", NOT_TOLD)
async def test_what_is_not_told_plainly_teaches_nobody(memory: Any, line: str) -> None:
    said, who = line.split(" | ")
    await memory.add(said)
    with pytest.raises(NotFoundError):
        await memory.entity(who)


async def test_characters_that_stand_for_relations_do_no_harm(memory: Any) -> None:
    await memory.add("My wife Sarah and \ue000 Tom, \ue001 Ann and Bob, \ue002 (Eve)")
    assert [person.name for person in await memory.people()] == ["Sarah"]


async def test_a_laugh_takes_back_a_statement_but_no_name_in_passing(memory: Any) -> None:
    await memory.add("My brother Dario burnt the salad 😂")
    await memory.add("My cousin is Elvis 😂")
    assert (await memory.entity("my brother")).name == "Dario"
    with pytest.raises(NotFoundError):
        await memory.entity("my cousin")


@pytest.mark.parametrize(
    ("before", "after", "who", "name"),
    [
        ("My landlord is Mr. Quinn", "My landlord is Mr. Abbott now", "my landlord", "Abbott"),
        ("My boss is Simon Archer", "Ines Duarte is my boss now", "my boss", "Ines Duarte"),
        ("My boss is Simon Archer", "Since May my boss is Ines Duarte", "my boss", "Ines Duarte"),
        ("My boss is Simon Archer", "Simon Archer retired, my boss is Ines Duarte", "my boss", "Ines Duarte"),
        ("My boss is Simon Archer", "Simon Archer left, my new boss is Ines Duarte", "my boss", "Ines Duarte"),
        ("Mi jefe es Diego Soto", "Diego Soto se fue, mi nuevo jefe es Pablo Ruiz", "mi jefe", "Pablo Ruiz"),
        ("Simon ist mein Chef", "Jetzt ist Ines Duarte mein Chef", "my boss", "Ines Duarte"),
        ("Мой начальник — Семён Гуров", "Мой начальник теперь Олег Белов", "мой начальник", "Олег Белов"),
        ("Мой начальник — Семён Гуров", "Олег Белов теперь мой начальник", "мой начальник", "Олег Белов"),
        ("Mi jefe es Diego Soto", "Mi jefe es ahora Pablo Ruiz", "mi jefe", "Pablo Ruiz"),
        ("Mon chef est Paul Petit", "Luc Martin est maintenant mon chef", "my boss", "Luc Martin"),
        ("Il mio capo è Luca Bianchi", "Adesso il mio capo è Marco Rossi", "my boss", "Marco Rossi"),
        ("O meu chefe é Rui Costa", "João Silva é agora o meu chefe", "o meu chefe", "João Silva"),
    ],
)
async def test_a_word_for_change_hides_no_new_holder_of_a_relation(
    memory: Any, before: str, after: str, who: str, name: str
) -> None:
    await memory.remember(before)
    stored = await memory.remember(after)
    assert (await memory.entity(who)).name == name
    assert [each.content for each in stored.outdates] == [before], "whatever the order of the words"


@pytest.mark.parametrize(
    "text",
    [
        "Is Ines Duarte my boss now?",
        "Ines Duarte is not my boss now",
        "If Ines Duarte is now my boss, I quit",
        "Ines Duarte war früher mein Chef, jetzt ist sie in Rom",
        "Ines Duarte ya no es mi jefe",
        "He left and said, my boss is Ines Duarte now",
        "Tom wrote, my new boss is Ines Duarte",
    ],
)
async def test_a_word_for_change_makes_no_relation_of_a_doubt(memory: Any, text: str) -> None:
    await memory.remember("My boss is Simon Archer")
    await memory.remember(text)
    assert (await memory.entity("my boss")).name == "Simon Archer"


async def test_a_new_friend_or_a_second_dentist_is_no_change(memory: Any) -> None:
    await memory.remember("My friend is Simon Archer")
    await memory.remember("My dentist is Dr. Bell")
    for text in ("Ines Duarte is my friend now", "Dr. Okafor is my dentist"):
        assert (await memory.remember(text)).outdates == ()


@pytest.mark.parametrize("question", ["What does my father take?", "Was nimmt mein Vater?", "Что принимает мой папа?"])
async def test_a_contact_named_by_a_relation_is_that_relative(memory: Any, question: str) -> None:
    for speaker, text in (("Papa", "Ich nehme jetzt Metformin"), ("Tom", "Ich nehme Ibuprofen"), ("Papa", "Hallo")):
        await memory.add(text, speaker=speaker, session="family")
    assert (await memory.search(question)).hits[0].content == "Ich nehme jetzt Metformin"
    assert (await memory.entity("my father")).name == "Papa"


async def test_a_stated_relation_counts_more_than_a_name_that_is_one(memory: Any) -> None:
    await memory.add("I take insulin", speaker="Papa", session="friends")
    await memory.remember("My father is Karl")
    assert (await memory.entity("my father")).name == "Karl"


UNKNOWN_RELATIVES = (
    "Where does my mother-in-law live?",
    "Was macht meine Schwiegermutter?",
    "Où travaille mon oncle ?",
    "¿Dónde vive mi suegra?",
    "Dove lavora mio fratello?",
    "Onde mora a minha tia?",
    "Кем работает моя тёща?",
)


@pytest.mark.parametrize("embedder", ["default", None])
async def test_what_is_known_of_others_answers_no_question_about_an_unknown_relative(embedder: str | None) -> None:
    async with Memory.open(":memory:", embedder=embedder) as memory:
        for text in (
            "I work at Globex as an accountant",
            "I live in Leipzig",
            "My sister Nadine is a florist",
            "Meine Mutter Ilse wohnt in Bonn",
            "My grandma bakes on Sundays",
            "My boss Karen is strict",
            "Karen lives in Halle",
        ):
            await memory.remember(text)
        await memory.settle(600)
        for question in UNKNOWN_RELATIVES:
            assert not await memory.search(question, only_relevant=True), question
            assert await memory.context(question) is None, question
        for question, answer in (
            ("What does my sister do?", "My sister Nadine is a florist"),
            ("When does my grandmother bake?", "My grandma bakes on Sundays"),
            ("Where does my boss live?", "Karen lives in Halle"),
        ):
            assert (await memory.search(question, only_relevant=True))[0].content == answer
