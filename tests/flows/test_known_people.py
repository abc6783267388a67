"""People become known by what is said: speakers, people named in facts, and relatives. They can be corrected."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import ConflictError, InvalidError, NotFoundError, Scope
from ricordo.interfaces.tools import agent_tools

NAMED = """
My coworkers Hamid and Sunniva share an office. | Hamid, Sunniva
We hired a nanny named Oriana. | Oriana
Grace is my accountant. | Grace
Kwame walks our dog at noon. | Kwame
I have a brother, Nathaniel, but everybody calls him Nate. | Nathaniel, Nate
Ida quit the clinic, she works at the aquarium now. | Ida
Наш участковый врач — Громова Наталья Андреевна. | Громова Наталья Андреевна
У мужа, Игоря, четвёртая группа крови. | Игорь
Ключ от клуба у вахтёрши Зои. | Зоя
Тимлид у нас Роман. | Роман
Колян боится высоты. | Колян
Unsere Kinder heißen Jette und Ole. | Jette, Ole
Meine Schwester Ilka hat ihr Büro am Hafen. | Ilka
Frau Czerny ist Anwältin für Mietrecht. | Frau Czerny
Mein Patenonkel heißt Friedhelm, aber alle nennen ihn Fiete. | Friedhelm, Fiete
Rosa ist meine Tanzpartnerin. | Rosa
mira isst kein fleisch seit sie 16 is | Mira
sara is moving to berlin in june | Sara
luca a acheté une nouvelle voiture | Luca
tom trabaja en un banco del centro | Tom
marta lavora in ospedale di notte | Marta
ben mora em lisboa com o irmão | Ben
tobi hat jetz glasfaser von der telekom | Tobi
""".strip().splitlines()
NOBODY = """
In our family we say grace before dinner.
Traffic stopped on the bridge.
Docker runs on my laptop.
I grew up in Paris.
По ночам я пишу роман про моряков.
Моя вера мне помогает.
Нашего пса зовут Граф.
Im Sommer fahren wir immer an die Ostsee.
Kaffee hilft mir immer.
Hinter unserm Schuppen wohnt ein Fuchs.
Our beagle is old, his name is Hank.
If Rowan walks the dog, I can sleep.
mira esto que te mando ahora
hope you are all fine today
linda mañana de sol hoy en casa
wohn in leipzig in der karl heine str 41
bin jetzt bei praxis lorenz am kreuz
die ambulanz is im st georg
the scan is at saint thomas on monday
vivo en la calle pablo iglesias 4
abito in via giuseppe verdi 5
rue Victor Hugo, c'est là que je dors
""".strip().splitlines()


async def names(memory: Any) -> set[str]:
    return {person.name for person in await memory.people()}


async def test_speakers_are_known_people(memory: Any) -> None:
    for speaker in ("Caroline", "Женя", "Jörg", "me", "user_17", "assistant", "+49 151 23456"):
        await memory.add("see you at eight", speaker=speaker, session="s")
    await memory.add("I am a bot", speaker="Helper", role="assistant")
    await memory.add("buy now", speaker="Shop", origin="web")
    assert await names(memory) == {"Caroline", "Женя", "Jörg"}
    assert (await memory.entity("Caroline")).type == "person"
    assert not await names(memory.scoped(Scope(owner="eve")))


@pytest.mark.parametrize("line", NAMED)
async def test_people_named_in_a_fact_are_known(memory: Any, line: str) -> None:
    text, expected = line.split(" | ")
    await memory.remember(text)
    assert await names(memory) == set(expected.split(", "))


@pytest.mark.parametrize("text", NOBODY)
async def test_a_word_that_is_no_person_makes_none(memory: Any, text: str) -> None:
    await memory.remember(text)
    assert await names(memory) == set()


NOTED = [
    "My wife's name is Sarah",
    "The user's wife is Sarah",
    "My wife is Sarah",
    "Die Frau des Nutzers heißt Sarah",
    "Жену пользователя зовут Sarah",
]


@pytest.mark.parametrize("text", NOTED)
async def test_an_agents_note_teaches_people_and_relations(memory: Any, text: str) -> None:
    if not hasattr(memory, "_engine"):
        pytest.skip("tools need the asynchronous memory")
    (tool,) = [each for each in agent_tools(memory) if each.name == "remember_fact"]
    await tool({"content": text})
    assert (await memory.entity("my wife")).name == "Sarah"
    await memory.add("Off to the lake with my wife Sarah")
    await tool({"content": "My wife is Eve"})  # an agent's note does not end what the owner said
    assert (await memory.entity("my wife")).name == "Sarah"
    await memory.remember("My wife is Anna")
    assert (await memory.entity("my wife")).name == "Anna"


OF_THE_USER = """
The user has a son, Bruno. | my son | Bruno
The user lives in Bern. The user has a cousin called Asha. | my cousin | Asha
The user's manager at Reed & Sons is Owen Pryce. | my manager | Owen Pryce
El hermano del usuario se llama Iker. | mi hermano | Iker
La usuaria tiene una prima que se llama Alba. | mi prima | Alba
A irmã da utilizadora se chama Beatriz. | minha irmã | Beatriz
O utilizador tem um filho chamado Nuno. | meu filho | Nuno
Le mari de l'utilisatrice s'appelle Bruno. | mon mari | Bruno
L'utilisateur a une sœur qui s'appelle Odile. | ma sœur | Odile
La moglie dell'utente si chiama Ornella. | mia moglie | Ornella
L'utente ha un figlio di nome Dario. | mio figlio | Dario
Der Nutzer hat eine Schwester namens Jutta. | meine Schwester | Jutta
У пользователя есть сын по имени Артём. | мой сын | Артём
""".strip().splitlines()


@pytest.mark.parametrize("line", OF_THE_USER)
async def test_a_note_about_the_user_teaches_their_relations(memory: Any, line: str) -> None:
    said, who, name = map(str.strip, line.split("|"))
    await memory.remember(said, origin="agent")
    assert (await memory.entity(who)).name == name


@pytest.mark.parametrize(
    "said",
    ["The user met Ida and her son Karl.", "The user's friend has a daughter, Eva.", "The user said her boss was Tom"],
)
async def test_a_note_about_the_user_teaches_no_relation_of_others(memory: Any, said: str) -> None:
    await memory.remember(said, origin="agent")
    for who in ("my son", "my daughter", "my boss"):
        with pytest.raises(NotFoundError):
            await memory.entity(who)


@pytest.mark.parametrize(
    ("said", "who", "name"),
    [
        ("My name is Marta and my daughter is called Mia", "my daughter", "Mia"),
        ("I'm Marta, I'm 34, my husband is Jan and my daughter is Mia", "my husband", "Jan"),
        ("Eva is my sister and Paul is my brother", "my brother", "Paul"),
        ("Ich heiße Marta und meine Tochter heißt Mia", "meine Tochter", "Mia"),
        ("Меня зовут Марта, а мою дочь зовут Мия", "моя дочь", "Мия"),
        ("Живу в Перми, мой муж — Олег", "мой муж", "Олег"),
        ("Arbeite in Kiel, meine Chefin heißt Karin", "meine Chefin", "Karin"),
        ("Je m'appelle Marta et ma fille s'appelle Mia", "ma fille", "Mia"),
        ("Me llamo Marta y mi hija se llama Mia", "mi hija", "Mia"),
    ],
)
async def test_a_relation_told_in_a_later_clause_is_known(memory: Any, said: str, who: str, name: str) -> None:
    await memory.remember(said)
    assert (await memory.entity(who)).name == name


@pytest.mark.parametrize(
    "said",
    [
        "In the novel I am a knight and my boss is Zelda",
        "Anna says that Tom left and my boss is Karen",
        "I heard that my boss is Karen's friend",
        "I asked him: I am a pirate, my boss is Hook",
        "I work in Berlin and my boss is German",
        "I live in Kiel and my boss's friend is Paul",
        "Ich arbeite in Kiel und meine Chefin ist Ärztin",
    ],
)
async def test_a_later_clause_that_tells_no_relation_teaches_none(memory: Any, said: str) -> None:
    await memory.remember(said)
    with pytest.raises(NotFoundError):
        await memory.entity("my boss")


async def test_what_a_page_says_names_nobody(memory: Any) -> None:
    await memory.remember("Mallory is my accountant.", origin="web")
    assert await names(memory) == set()


async def test_a_stated_type_corrects_a_guessed_one(memory: Any) -> None:
    node = await memory.remember("They pay well", about=["Acme"])
    assert (await memory.entity("Acme")).type == "person"
    acme = await memory.add_entity("Acme", type="organization", aliases=["Acme Corp"])
    assert (acme.type, acme.aliases) == ("organization", ("Acme Corp",))
    assert (await memory.entity("Acme Corp")).facts[0].id == node.id
    assert await names(memory) == set()
    await memory.remember("I work at Globex", about=["Globex"])
    assert (await memory.entity("Globex")).type == "organization"


async def test_an_id_in_about_means_that_entity(memory: Any) -> None:
    sarah = await memory.add_entity("Sarah")
    node = await memory.remember("Likes sushi", about=[sarah.id])
    assert node.about == ("Sarah",)
    assert await names(memory) == {"Sarah"}


async def test_adding_a_known_person_adds_names_and_relations(memory: Any) -> None:
    robert = await memory.add_entity("Robert")
    again = await memory.add_entity("Robert", aliases=["Bob"], relation="brother")
    assert (again.id, again.aliases, again.relation) == (robert.id, ("Bob",), "brother")
    assert (await memory.entity("my brother")).name == (await memory.entity("Bob")).name == "Robert"
    with pytest.raises(ConflictError):
        await memory.add_entity("Robert", aliases=["Bob"])


async def test_a_known_person_can_be_changed(memory: Any) -> None:
    one = await memory.add_entity("Acme")
    altered = await memory.update_entity(
        "Acme", type="organization", aliases=["ACME Corp"], attributes={"city": "Graz"}, protected=True
    )
    assert (altered.id, altered.type, altered.protected) == (one.id, "organization", True)
    profile = await memory.entity("ACME Corp")
    assert (profile.name, profile.type, profile.attributes) == ("Acme", "organization", {"city": "Graz"})
    number = (await memory.log())[0].seq
    await memory.undo(number)
    assert (await memory.entity("Acme")).type == "person"
    for fields in ({}, {"type": "firm"}, {"attributes": {"a": float("nan")}}):
        with pytest.raises(InvalidError):
            await memory.update_entity("Acme", **fields)
    with pytest.raises(NotFoundError):
        await memory.update_entity("Nobody", type="place")


async def test_a_relation_gets_its_start_its_end_and_its_evidence(memory: Any) -> None:
    for name in ("Sarah", "Acme"):
        await memory.add_entity(name)
    said = await memory.add("Sarah starts at Acme in May", session="s")
    await memory.relate("Acme", "employer", source="Sarah")
    await memory.relate("Acme", "employer", source="Sarah", valid_from="2024-05-01", evidence=[said])
    await memory.relate("Acme", "employer", source="Sarah", valid_until="2025-11-30")
    (relation,) = (await memory.entity("Sarah")).relations
    assert [at.date().isoformat() for at in (relation.valid_from, relation.valid_until)] == ["2024-04-30", "2025-11-29"]
    assert relation.evidence == (said,)
    with pytest.raises(InvalidError, match="valid_until"):
        await memory.relate("Acme", "client", source="Sarah", valid_from="2025-05-01", valid_until="2025-04-01")
    with pytest.raises(InvalidError, match="valid_until"):
        await memory.relate("Acme", "employer", source="Sarah", valid_until="2020-01-01")
    with pytest.raises(NotFoundError):
        await memory.relate("Acme", "client", source="Sarah", evidence=["no-such-memory"])


async def test_two_of_one_name_are_left_open(memory: Any) -> None:
    await memory.add_entity("Sara", type="person")
    await memory.add_entity("Sara", type="place")
    with pytest.raises(InvalidError, match="may be any of"):
        await memory.remember("Likes sushi", about=["Sara"])
    await memory.add_entity("Paris")
    await memory.add_entity("Paris", type="place")
    said = await memory.add("I read about Paris", session="s")
    await memory.settle(600)
    assert (await memory.explain(said)).mentions == ()


async def test_a_word_in_lower_case_is_not_the_person(memory: Any) -> None:
    await memory.add_entity("Вера")
    faith = await memory.add("моя вера мне помогает", session="s")
    person = await memory.add("Встретила Веру в метро", session="s")
    await memory.settle(600)
    assert (await memory.explain(faith)).mentions == ()
    assert (await memory.explain(person)).mentions == ("Вера",)


async def test_a_known_place_is_linked_where_it_is_named(memory: Any) -> None:
    await memory.add_entity("Paris", type="place")
    said = await memory.add("We flew to Paris in May", session="s")
    fact = await memory.remember("The office in Paris has a garden")
    await memory.settle(600)
    assert (await memory.explain(said)).mentions == (await memory.explain(fact.id)).mentions == ("Paris",)
    assert (await memory.entity("Paris")).type == "place"


NUMBERED = [
    "Room 1 | Room 11",
    "Gate 7 | Gate 77",
    "Boeing 707 | Boeing 7077",
    "Сервер 2 | Сервер 22",
    "Bus 10 | Bus 100",
]


@pytest.mark.parametrize("pair", NUMBERED)
async def test_names_with_different_numbers_are_different(memory: Any, pair: str) -> None:
    one, other = pair.split(" | ")
    await memory.remember(f"{one} is clean", about=[one])
    assert (await memory.remember(f"{other} is dirty", about=[other])).about == (other,)


async def test_a_school_or_a_club_that_a_fact_is_about_is_no_person(memory: Any) -> None:
    await memory.remember("Mia is there until four", about=["Mia", "Kita Regenbogen", "Harbour Choir"])
    assert [each.name for each in await memory.people()] == ["Mia"]
    assert (await memory.entity("Kita Regenbogen")).type == "organization"


CORRECTED = """
My sister's name is Norma | My sister's name is Nora | Norma
Ключ от гаража у соседа Вадима | Ключ от гаража у соседа Валерия | Вадим
Our neighbour Klaus plays chess | Our neighbour Karl plays chess | Klaus
Meine Schwester heißt Norma | Meine Schwester heißt Nora | Norma
Mi hermana se llama Norma | Mi hermana se llama Nora | Norma
Ma sœur s'appelle Norma | Ma sœur s'appelle Nora | Norma
""".strip().splitlines()


async def known(memory: Any) -> str:
    """Return the line of a context that lists the known people."""
    lines = str(await memory.context("Who do you know?")).splitlines()
    return next((line for line in lines if line.startswith("- Known people: ")), "")


@pytest.mark.parametrize("line", CORRECTED)
async def test_a_name_that_a_correction_took_away_is_no_known_person(memory: Any, line: str) -> None:
    wrong, right, gone = line.split(" | ")
    fact = await memory.remember(wrong)
    await memory.settle()
    assert gone in await known(memory)
    fact = await memory.correct(fact.id, right)
    await memory.settle()
    assert gone not in (found := await known(memory)) and found
    await memory.correct(fact.id, wrong)
    await memory.settle()
    assert gone in await known(memory)


async def test_people_added_by_hand_and_speakers_stay_known_without_a_memory_that_names_them(memory: Any) -> None:
    await memory.add_entity("Helen")
    await memory.add("see you at eight", speaker="Oleg", session="s")
    await memory.remember("The chess club meets on Mondays")
    fact = await memory.remember("Our neighbour Klaus plays chess with Helen")
    await memory.settle()
    assert "Klaus" in await known(memory)
    await memory.forget(fact.id)
    await memory.settle()
    found = await known(memory)
    assert "Helen" in found and "Oleg" in found and "Klaus" not in found


DENIED = """
I often climb with Norma | I often climb with Nora, not Norma
I share a desk with Norma | I share a desk not with Norma but with Nora
Ich gehe oft mit Norma klettern | Ich gehe oft nicht mit Norma, sondern mit Nora klettern
Voy a escalar con Norma | Voy a escalar con Nora, no con Norma
Je grimpe souvent avec Norma | Je grimpe souvent avec Nora, pas avec Norma
Vado spesso in barca con Norma | Vado spesso in barca con Nora, non con Norma
Vou escalar com a Norma | Vou escalar com a Nora, não com a Norma
Я часто лазаю с Нормой | Я часто лазаю не с Нормой, а с Норой
""".strip().splitlines()


@pytest.mark.parametrize("line", DENIED)
async def test_nobody_is_often_with_those_whom_a_sentence_denies(memory: Any, line: str) -> None:
    wrong, right = line.split(" | ")
    for name in ("Norma", "Nora"):
        await memory.add_entity(name)
    fact = await memory.remember(wrong)
    await memory.correct(fact.id, right)
    await memory.remember(f"{right}.")
    await memory.settle()
    assert not (await memory.entity("Norma")).mentions
    assert (nora := await memory.entity("Nora")).mentions
    assert "Norma" not in [each.name for each in nora.related]


@pytest.mark.parametrize(
    ("wrong", "right", "asked", "name"),
    [
        ("My sister's name is Norma", "My sister's name is Nora, not Norma", "my sister", "Nora"),
        ("Our landlord is Mr. Oduya", "Our landlord is Mrs. Lind, not Mr. Oduya", "my landlord", "Lind"),
        ("Meine Tante heißt Tessa", "Meine Tante heißt nicht Tessa, sondern Ada", "my aunt", "Ada"),
        ("Mi hermana se llama Norma", "Mi hermana se llama Nora, no Norma", "my sister", "Nora"),
        ("Ma sœur s'appelle Norma", "Ma sœur s'appelle Nora, pas Norma", "my sister", "Nora"),
        ("Мою сестру зовут Норма", "Мою сестру зовут не Норма, а Нора", "my sister", "Нора"),
    ],
)
async def test_a_correction_that_denies_a_name_is_not_about_it(
    memory: Any, wrong: str, right: str, asked: str, name: str
) -> None:
    corrected = await memory.correct((await memory.remember(wrong)).id, right)
    await memory.settle()
    assert corrected.about == (name,)
    assert (await memory.entity(asked)).name == name


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("Wann ist Lauras Geburtstag?", "Laura hat am 3. Mai Geburtstag"),
        ("wie heisst katrins mann", "Katrin ist mit Sven verheiratet"),
        ("when is lauras birthday", "Laura was born on 3 May"),
    ],
)
async def test_a_possessive_form_without_an_apostrophe_names_the_person(memory: Any, question: str, fact: str) -> None:
    node = await memory.remember(fact)
    await memory.settle()
    name = fact.split()[0]
    assert (await memory.entity(name)).type == "person"
    kept = await memory.remember(question.replace("?", "").replace("when is", "I forgot"))
    await memory.settle()
    assert {node.id, kept.id} <= {each.id for each in await memory.search("party", entity=name, limit=20)}


@pytest.mark.parametrize(
    ("name", "text"), [("Andrea", "Ich war bei Andreas im Büro"), ("Rose", "roses are red and lovely")]
)
async def test_another_name_or_a_word_is_no_possessive_form(memory: Any, name: str, text: str) -> None:
    await memory.remember(f"My sister {name} lives in Bonn.")
    other = await memory.remember(text)
    await memory.settle()
    assert other.id not in {each.id for each in await memory.search("party", entity=name, limit=20)}


@pytest.mark.parametrize(
    ("question", "own", "others"),
    [
        ("What does Nadine do?", "Nadine works as a florist", ["Tom told Nadine about it", "I lent Nadine the drill"]),
        ("Tell me about Nadine", "Nadine works as a florist", ["I lent Nadine the drill"]),
        ("Was macht Lena?", "Lena arbeitet als Floristin", ["Ich habe Lena die Bohrmaschine geliehen"]),
        ("Que fait Chloé ?", "Chloé est fleuriste", ["J'ai prêté la perceuse à Chloé"]),
    ],
)
async def test_what_is_about_a_person_precedes_what_only_mentions_the_person(
    memory: Any, question: str, own: str, others: list[str]
) -> None:
    fact = await memory.remember(own)
    for other in others:
        await memory.remember(other)
    await memory.settle()
    assert (await memory.search(question)).ids[0] == fact.id


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What did I lend to Nadine?", "I lent the drill to Nadine"),
        ("What does Nadine's brother do?", "Nadine's brother works as a plumber"),
    ],
)
async def test_a_question_about_somebody_else_finds_what_mentions_the_person(
    memory: Any, question: str, first: str
) -> None:
    fact = await memory.remember(first)
    await memory.remember("Nadine is a florist")
    await memory.settle()
    assert (await memory.search(question)).ids[0] == fact.id


SOURCES = (
    "Priya wrote that the boiler is leaking",
    "Priya told me the office closes at 6",
    "Priya meint, die Heizung ist kaputt",
    "Priya a dit que le chauffage est en panne",
    "Priya dijo que la caldera pierde agua",
    "Priya ha detto che il forno è rotto",
    "Priya disse que o gás acabou",
    "Лена сказала, что котёл течёт",
)
OWN = (
    "Priya told me she moved",
    "Priya says hi",
    "Priya wrote a book about bees",
    "Priya confirmed the booking",
    "Priya sagt, sie kommt später",
    "Priya a dit qu'elle déménage",
    "Priya dijo que vive en Roma",
    "Priya ha detto che vive a Roma",
    "Priya disse que mora em Lisboa",
    "Лена сказала, что переехала",
)


async def test_who_tells_something_is_its_source_and_not_its_subject(memory: Any) -> None:
    await memory.remember("My colleague Priya plays the cello")
    await memory.remember("Моя коллега Лена играет на скрипке")
    assert [text for text in SOURCES if (await memory.remember(text)).about] == []
    assert [text for text in OWN if not (await memory.remember(text)).about] == []
    await memory.settle(600)
    assert SOURCES[0] in [hit.content for hit in await memory.search("What did Priya write?")]
