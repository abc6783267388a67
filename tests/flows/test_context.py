"""The context of an agent, and that recalled text is not learnt again."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import InvalidError, Memory, Message
from ricordo.text.prompt_text import BEGIN, END, PLACE
from tests.flows.conftest import DAY, HandClock


async def household(memory: Any) -> None:
    await memory.add_entity("Helen", relation="wife", aliases=["Lena"])
    await memory.add_entity("Zoya", relation="daughter")
    old = await memory.remember("Helen works at the library", about=["Helen"])
    await memory.correct(old.id, "Helen works at the museum")
    await memory.remember("Helen is allergic to peanuts", about=["Helen"])
    await memory.remember("Zoya plays the cello on Fridays", about=["Zoya"])
    await memory.remember("The boiler was serviced in January")
    await memory.add("Helen said that the museum is closed on Mondays", speaker="Oleg", session="monday")
    await memory.add("We deploy on Tuesdays", speaker="Oleg", session="tuesday")


async def test_a_context_has_sections_and_introduces_people(memory: Any) -> None:
    await household(memory)
    parts = await memory.context_parts("Where does Helen work, at the museum?")
    by_name = {section.name: [line.text for line in section.lines] for section in parts.sections}
    assert "Helen works at the museum (about Helen) (before: “Helen works at the library”)" in by_name["facts"][0]
    assert "Helen (wife, also Lena)" in by_name["people"][0]
    assert "is allergic to peanuts" in "".join([*by_name["people"], *by_name["facts"]])
    assert "Known people" not in parts.text
    asked = await memory.context("Who works at the museum?")
    assert "Helen works at the museum" in asked and "Known people" not in asked
    assert "Oleg (2026-01-01, just now): “Helen said" in by_name["timeline"][0]
    assert parts.text.count(BEGIN) == parts.text.count(END) == 1
    assert parts.tokens <= parts.budget == 1_000
    assert parts.text == await memory.context("Where does Helen work, at the museum?")


@pytest.mark.parametrize(
    "asked",
    [
        "Who do you know?",
        "Which people do I know?",
        "Wen kennst du alles?",
        "¿A quién conoces?",
        "Qui connais-tu ?",
        "Chi conosci?",
        "Quem é que você conhece?",
        "Кого ты знаешь?",
        "Каких людей я знаю?",
    ],
)
async def test_a_question_for_the_known_people_gets_their_list(memory: Any, asked: str) -> None:
    await household(memory)
    told = await memory.context(asked)
    for name in ("Helen (wife)", "Oleg", "Zoya (daughter)"):
        assert name in told.partition("- Known people: ")[2]


async def test_a_person_of_whom_only_the_name_is_known_has_no_line(memory: Any) -> None:
    for who in ("Marina", "Oleg"):
        await memory.add_entity(who)
    await memory.remember("Marina and Oleg repair the coffee machine", about=["Marina", "Oleg"])
    await memory.remember("Oleg is allergic to nuts", about=["Oleg"])
    told = await memory.context("What about the coffee machine?")
    assert "Marina and Oleg repair the coffee machine" in told
    assert "- Marina (person)" not in told and "- Oleg (person): Oleg is allergic to nuts" in told
    assert await memory.context("Who won the hockey championship?") is None


async def test_a_complex_prompt_gets_a_larger_budget_and_an_explicit_one_is_kept(memory: Any) -> None:
    await household(memory)
    asked = "Compare everything that we know about Helen and Zoya and the museum and the boiler, please"
    assert (await memory.context_parts(asked)).budget == 3_000
    for budget in (60, 90, 150, 400):
        parts = await memory.context_parts(asked, budget=budget)
        assert parts.tokens <= budget == parts.budget
    with pytest.raises(InvalidError, match="budget"):
        await memory.context_parts(asked, budget=0)


async def test_the_current_conversation_is_left_out(memory: Any) -> None:
    await household(memory)
    asked = "When is the museum closed?"
    assert "Mondays" in await memory.context(asked)
    without = await memory.context(asked, session="monday")
    assert "Mondays" not in (without or "")


async def test_a_question_turn_brings_its_reply_into_the_context(memory: Any) -> None:
    for text in ("The boiler is loud again", "When does the plumber come for the boiler?", "Thursday at nine", "Good"):
        await memory.add(text, speaker="Oleg", session="monday")
    await memory.add("Zoya wants a kitten", speaker="Oleg", session="tuesday")
    parts = await memory.context_parts("Which day does the plumber come for the boiler?")
    said = [line.text for section in parts.sections if section.name == "timeline" for line in section.lines]
    assert len(said) == len(set(said))
    place = next(place for place, line in enumerate(said) if "When does the plumber" in line)
    assert "Thursday at nine" in said[place + 1]
    assert not any("kitten" in line for line in said)
    assert (await memory.context_parts("Which day does the plumber come?", session="monday")).text is None


async def test_a_nod_of_the_person_a_question_names_is_left_out(memory: Any) -> None:
    said = (
        ("Katja", "hi all, the picnic is on saturday"),
        ("Ilja", "nice"),
        ("Tom", "can't do saturdays"),
        ("Ilja", "haha yes"),
        ("Katja", "Ilja is allergic to walnuts, mind the cake"),
        ("Ilja", "thank you all"),
    )
    for day, (speaker, text) in enumerate(said, 1):
        await memory.add(text, speaker=speaker, session="picnic", at=f"2025-08-{day:02}")
    context = await memory.context("What is Ilja allergic to?")
    assert "walnuts" in context
    assert not any(nod in context for nod in ("nice", "haha", "thank"))


@pytest.mark.parametrize(
    ("said", "question", "answer"),
    [
        (("Where are the cabin keys?", "ok", "haha", "Peter has them", "lol"), "Where are the cabin keys?", "Peter"),
        (("Wann fährt der Zug?", "haha", "ja", "um sieben, Gleis drei", "ok"), "Wann fährt der Zug?", "Gleis"),
        (("¿Dónde está el coche?", "jaja", "vale", "delante del museo", "jeje"), "¿Dónde está el coche?", "museo"),
        (("Где ключи от дачи?", "ага", "хаха", "ключи у соседа", "ок"), "Где ключи от дачи?", "соседа"),
        (("Shall we go hiking?", "haha", "no, it rains", "lol"), "Shall we go hiking?", "rains"),
    ],
)
async def test_nods_around_an_answer_are_neither_above_it_nor_replies(
    memory: Any, said: tuple[str, ...], question: str, answer: str
) -> None:
    for minute, text in enumerate(said):
        await memory.add(text, session="chat", at=f"2025-08-01T10:{minute:02}")
    found = [hit.content for hit in (await memory.search(question)).hits]
    nods = [place for place, text in enumerate(found) if text in said and len(text) < 5]
    assert min(nods, default=len(found)) > next(place for place, text in enumerate(found) if answer in text)
    context = await memory.context(question)
    assert answer in context
    assert not any(f"“{nod}”" in context for nod in said if len(nod) < 5)


async def test_yes_answers_a_question_that_it_may_answer(memory: Any) -> None:
    for minute, text in enumerate(("Does Peter have the cabin keys?", "yes")):
        await memory.add(text, session="chat", at=f"2025-08-01T10:{minute:02}")
    assert "“yes”" in await memory.context("Does Peter have the cabin keys?")


@pytest.mark.parametrize(
    ("prompt", "brought", "left_out"),
    [
        ("I've got a new car now. What is my rent?", "rent", "Skoda"),
        ("Ich habe jetzt ein neues Auto, wie hoch ist meine Miete?", "Miete", "Skoda"),
        ("He comprado un coche nuevo. ¿Cuánto pago de alquiler?", "alquiler", "Skoda"),
        ("J'ai acheté une voiture, combien je paie de loyer ?", "loyer", "Skoda"),
        ("Я купил новую машину. Сколько я плачу за квартиру?", "квартиру", "Skoda"),
        ("My sister moved to Graz last week. Any ideas for a gift?", "orchids", "Graz"),
    ],
)
async def test_the_question_of_a_message_decides_and_not_what_it_tells(
    memory: Any, prompt: str, brought: str, left_out: str
) -> None:
    for fact in (
        "My rent is 800 euros",
        "Meine Miete beträgt 800 Euro",
        "Pago 800 euros de alquiler",
        "Je paie 800 euros de loyer",
        "Я плачу за квартиру 800 евро",
        "My new car, coche nuevo, voiture, neues Auto, новая машина, is a Skoda",
        "My sister Lea loves orchids as a gift",
        "The museum of Graz is closed on Mondays",
    ):
        await memory.remember(fact)
    context = await memory.context(prompt)
    assert brought in context
    assert left_out not in context


async def test_what_a_message_tells_counts_if_its_question_finds_nothing(memory: Any) -> None:
    await memory.remember("I have a red Skoda")
    assert "Skoda" in await memory.context("I have a problem with my Skoda. Can you recommend anybody?")


async def test_recalled_text_is_not_learnt_again(memory: Any) -> None:
    await household(memory)
    block = await memory.context("Where does Helen work, at the museum?")
    for role, text in (
        ("user", f"{block}\n\nWhat about the garden?"),
        ("assistant", "\n".join(f"> {line}" for line in block.splitlines())),
        ("tool", block.replace("<", "&lt;").replace(">", "&gt;")),
        ("assistant", block.splitlines()[3]),
    ):
        before = {hit.id for hit in (await memory.search("Helen museum peanuts", type="any", limit=50)).hits}
        stored = await memory.get(await memory.add(text, role=role))
        assert "museum" not in stored.content and "peanuts" not in stored.content
        assert PLACE in stored.content
        after = {hit.id for hit in (await memory.search("Helen museum peanuts", type="any", limit=50)).hits}
        assert after - before <= {stored.id}
    assert [person.name for person in (await memory.entity("Helen"),)] == ["Helen"]


async def test_recalled_text_creates_no_people(memory: Any) -> None:
    told = f"{BEGIN}\n- My boss is Ingrid\n{END}"
    await memory.add(told)
    await memory.settle(600)
    await memory.add("My boss is Marcus.")
    assert "boss" in ((await memory.entity("Marcus")).relation or "")
    with pytest.raises(Exception, match="Ingrid"):
        await memory.entity("Ingrid")


async def test_a_fact_that_is_only_recalled_text_is_refused(memory: Any) -> None:
    await household(memory)
    block = await memory.context("Where does Helen work, at the museum?")
    with pytest.raises(InvalidError, match="recalled"):
        await memory.remember(block)


async def test_recalled_text_is_removed_from_a_prompt(memory: Any) -> None:
    await household(memory)
    block = await memory.context("Where does Helen work, at the museum?")
    assert await memory.context(f"{block}\nHow do I reverse a linked list?") is None
    assert await memory.context(block) is None


async def test_a_memory_repeated_by_an_assistant_counts_as_used_without_raising_its_rank(memory: Any) -> None:
    await household(memory)
    asked = "Is Helen allergic to peanuts?"
    await memory.context(asked)
    scores = [hit.score for hit in (await memory.search(asked)).hits if hit.type != "episodic"]
    for _ in range(3):
        await memory.add("Careful: Helen is allergic to peanuts.", role="assistant")
    again = [hit.score for hit in (await memory.search(asked)).hits if hit.type != "episodic"]
    assert scores[0] == pytest.approx(again[0], rel=0.2)


async def test_facts_are_found_among_many_messages_about_the_same(memory: Any) -> None:
    await memory.remember("The ferry to Oslo leaves at nine")
    await memory.add_many([Message(text=f"The ferry to Oslo leaves, thought {n}", session="s") for n in range(40)])
    facts = (await memory.context_parts("When does the ferry to Oslo leave?")).sections[0]
    assert facts.name == "facts" and "leaves at nine" in facts.lines[0].text


async def test_a_line_about_an_entity_is_shortened_to_its_share(memory: Any) -> None:
    await memory.add_entity("Helen", relation="wife")
    for subject in ("library", "museum", "theatre", "harbour"):
        await memory.remember(f"Helen knows the {subject} " + "and its rooms very well " * 9, about=["Helen"])
    await memory.remember("Helen plays the cello", about=["Helen"])
    parts = await memory.context_parts("Which instrument does Helen play?", budget=260)
    people = next(section for section in parts.sections if section.name == "people")
    assert people.lines[0].text.startswith("- Helen (wife)") and "[id:" in people.lines[0].text


async def test_a_follow_up_is_about_the_latest_turns_of_its_conversation(memory: Any) -> None:
    await memory.remember("The boiler was serviced in January by Mr. Lund")
    await memory.remember("Zoya plays the cello on Fridays")
    await memory.add("Who serviced the boiler?", session="now")
    for prompt in ("Tell me more about it", "and when was that?"):
        assert "serviced in January" in (await memory.context(prompt, session="now") or "")
        assert await memory.context(prompt) is None
        assert await memory.context(prompt, session="another") is None
        assert (await memory.search(prompt, only_relevant=True)).hits == ()


async def test_what_was_said_in_the_same_words_before_is_one_line_with_its_days(memory: Any, clock: HandClock) -> None:
    for _ in range(6):
        await memory.add("We had chess club at the Morel house", speaker="Ann")
        await memory.add("The chess club moved its pieces to the attic", speaker="Bob")
        clock.ms += DAY
    block = await memory.context("What was said about the chess club?")
    lines = [line for line in str(block).splitlines() if "chess club" in line]
    assert len(lines) == 2
    assert "; also 2026-01-05, 2026-01-04, 2026-01-03 and 2 more days): “We had chess club" in lines[0]
    assert len({line.partition("[id:")[2] for line in lines}) == 2


async def test_an_assistants_repetition_is_not_told_beside_what_it_repeats(memory: Any) -> None:
    await memory.remember("The spare keys are with Mrs. Novak in flat four")
    await memory.add("The spare keys are with Mrs. Novak in flat four.", role="assistant", session="s")
    await memory.add("Mrs. Novak has the spare keys and a new phone number, 555-0199", role="assistant", session="s")
    block = await memory.context("Where are the spare keys of the flat?")
    assert block.count("in flat four") == 1


@pytest.mark.parametrize("prompt", ["hi", "Thanks, that was really helpful!", "What can you do?", "Привет, как дела?"])
async def test_small_talk_gets_no_context(memory: Any, prompt: str) -> None:
    for text in ("hi, how are you doing?", "thanks, that was helpful", "Привет, как дела?", "What can you do on skis?"):
        await memory.add(text, speaker="Oleg", session="monday")
    assert await memory.context(prompt) is None
    assert (await memory.search(prompt, only_relevant=True)).hits == ()
    assert (await memory.search(prompt)).hits


@pytest.mark.parametrize(
    "prompt",
    [
        "hago una tarta de nueces",
        "Ein Nusskuchen, geht das?",
        "je prends une glace",
        "¿me tomo un batido?",
        "мне можно хачапури?",
        "What shall I cook tonight?",
        "Suggest a cake recipe",
        "Was soll ich heute Abend kochen?",
        "Что приготовить на ужин?",
        "¿Qué cocino hoy?",
        "今晚做饭吃什么",
    ],
)
async def test_a_meal_is_planned_with_what_people_must_not_eat(memory: Any, prompt: str) -> None:
    await memory.remember("The user is allergic to hazelnuts")
    await memory.remember("Нора не ест рыбу")
    await memory.remember("Mein Vater hat Zöliakie")
    await memory.remember("We go to Bergen in May")
    context = await memory.context(prompt)
    assert all(said in context for said in ("hazelnuts", "рыбу", "Zöliakie"))
    assert "Bergen" not in context


@pytest.mark.parametrize(
    ("prompt", "needed"),
    [
        ("What should I cook for Lena?", "I am vegetarian, Lena is allergic to nuts"),
        ("What can my son eat?", "I am vegetarian, Emil is lactose intolerant"),
        ("Was koche ich heute für Lena?", "I am vegetarian, Lena is allergic to nuts"),
        ("Which painkiller can I take?", "I am allergic to penicillin"),
        ("Which painkiller can I give Lena?", "I am allergic to penicillin, Lena is allergic to nuts"),
        ("What should I cook tonight?", "I am vegetarian, Lena is allergic to nuts, Emil is lactose intolerant"),
    ],
)
async def test_needs_of_other_relatives_are_left_out(memory: Any, prompt: str, needed: str) -> None:
    needs = ("I am vegetarian", "I am allergic to penicillin", "Lena is allergic to nuts", "Emil is lactose intolerant")
    for text in ("My sister Lena lives in Porto", "My son Emil plays the cello", *needs):
        await memory.remember(text)
    context = await memory.context(prompt)
    assert all(need in context for need in needed.split(", "))
    others = set(needs[2:]) - set(needed.split(", "))
    assert not any(need in context for need in others)


_ALLERGIES = {
    "en": ("I am allergic to penicillin", "I am allergic to peanuts", "I am allergic to penicillin and walnuts"),
    "de": ("Ich bin allergisch gegen Ibuprofen", "Ich vertrage keine Milch", "Ich bin Vegetarier mit zwei Katzen"),
    "fr": ("Je suis allergique à la pénicilline", "Je suis allergique aux noix", "Je suis végétarien, j'ai un chat"),
    "es": ("Soy alérgico al polen", "Soy alérgico a las nueces", "Soy alérgico al polen y a las fresas"),
    "it": ("Sono allergico ai gatti", "Sono allergico alle noci", "Sono allergico ai gatti e alle fragole"),
    "pt": ("Sou alérgico à penicilina", "Sou alérgico a amendoim", "Sou alérgico a aspirina e amendoim"),
    "ru": ("У меня аллергия на пыльцу", "У меня аллергия на орехи", "У меня аллергия на пыльцу и клубнику"),
    "zh": ("我对青霉素过敏", "我对花生过敏", "我对虾过敏"),
}


@pytest.mark.parametrize("language", _ALLERGIES)
async def test_a_meal_brings_what_one_must_not_eat_and_a_medicine_all_allergies(memory: Any, language: str) -> None:
    elsewhere, *food = _ALLERGIES[language]
    for fact in (elsewhere, *food):
        await memory.remember(fact)
    meal = await memory.context("What should I cook tonight?")
    assert f"- {elsewhere} [" not in meal and all(f"- {need}" in meal for need in food)
    assert elsewhere in await memory.context("Which painkiller can I take?")


@pytest.mark.parametrize(
    "prompt",
    [
        "My knee hurts",
        "Mir tut der Kopf weh",
        "J'ai mal à la tête",
        "Me duele la cabeza",
        "Ho mal di testa",
        "Mi fa male il ginocchio",
        "Dói-me a cabeça",
        "Болит голова",
    ],
)
async def test_a_pain_brings_what_the_user_does_not_tolerate(memory: Any, prompt: str) -> None:
    for fact in ("I am allergic to ibuprofen", "My mother is allergic to penicillin", "My sister Ida is a nurse"):
        await memory.remember(fact)
    context = await memory.context(prompt)
    assert "ibuprofen" in context
    assert "penicillin" not in context and "nurse" not in context


@pytest.mark.parametrize(
    "prompt",
    [
        "Préparer une présentation pour lundi",
        "How do I prepare for the exam?",
        "Wie bereite ich mich auf die Prüfung vor?",
        "¿Cómo preparo la presentación?",
        "J'ai mal dormi",
        "No está mal, gracias",
    ],
)
async def test_what_is_neither_a_meal_nor_a_pain_brings_no_needs(memory: Any, prompt: str) -> None:
    for fact in ("I am allergic to ibuprofen", "I am a vegetarian"):
        await memory.remember(fact)
    assert await memory.context(prompt) is None


@pytest.mark.parametrize(
    ("told", "doctor", "prompt"),
    [
        (
            "Penicillin doesn't agree with me, I get a rash",
            "My GP is Dr Wise",
            "The doctor wants to give me antibiotics",
        ),
        ("I come out in hives whenever I take ibuprofen", "My GP is Dr Wise", "Can I take a painkiller today?"),
        (
            "Penicillin vertrage ich nicht, davon bekomme ich Ausschlag",
            "Mein Hausarzt ist Dr. Wiesner",
            "Der Arzt will mir Antibiotika geben",
        ),
        ("Penicillin vertrage ich nicht", "Mein Hausarzt ist Dr. Wiesner", "Kann ich eine Schmerztablette nehmen?"),
        ("Je ne supporte pas la pénicilline", "Mon médecin est M. Roux", "Le médecin veut me donner des antibiotiques"),
        ("La penicilina me da urticaria", "Mi médico es el doctor Ruiz", "¿Puedo tomar un analgésico?"),
        ("Non tollero la penicillina", "Il mio medico è il dottor Rossi", "Posso prendere un antidolorifico?"),
        ("Non tollero la penicillina", "Il mio medico è il dottor Rossi", "Il medico vuole darmi degli antibiotici"),
        ("La penicilina me da urticaria", "Mi médico es el doctor Ruiz", "El médico quiere darme antibióticos"),
        (
            "Penicillin doesn't agree with me, I get a rash",
            "I take 8 mg of candesartan every morning",
            "The doctor wants to give me antibiotics",
        ),
        ("Não tolero a penicilina", "O meu médico é o doutor Reis", "Posso tomar um analgésico?"),
        ("Пенициллин не переношу, сразу сыпь", "Мой врач — доктор Розов", "Можно мне обезболивающее?"),
    ],
)
async def test_a_prompt_about_medicine_begins_with_what_one_does_not_tolerate(
    memory: Any, told: str, doctor: str, prompt: str
) -> None:
    for text in (told, doctor, "The rent was paid today"):
        await memory.remember(text)
    lines = [line for line in (await memory.context(prompt)).splitlines() if line.startswith("- ")]
    assert told in lines[0]


async def test_who_needs_something_is_described_only_if_the_prompt_is_about_them(memory: Any) -> None:
    for text in ("My son Emil plays the cello", "Emil is lactose intolerant", "Emil loves noodles"):
        await memory.remember(text)
    assert "noodles" not in await memory.context("What should I cook tonight?")
    context = await memory.context("What should I cook for Emil?")
    assert "noodles" in context and "lactose" in context and "cello" not in context


@pytest.mark.parametrize("embedder", ["default", None])
@pytest.mark.parametrize(
    ("prompt", "brought", "left_out"),
    [
        ("Where does Lea live?", ("Vienna",), ("dog", "lawyer", "orchids", "nuts")),
        ("When is Lea's birthday?", ("3 May",), ("dog", "lawyer", "orchids", "nuts")),
        ("Any ideas for a birthday present for Lea?", ("3 May", "orchids"), ("lawyer", "Vienna")),
        ("Wann hat Lea Geburtstag?", ("3 May",), ()),
        ("Tell me about Lea", ("Vienna", "lawyer", "orchids", "3 May", "dog", "nuts"), ()),
    ],
)
async def test_of_a_known_person_a_context_brings_what_the_prompt_is_about(
    prompt: str, brought: tuple[str, ...], left_out: tuple[str, ...], embedder: str | None
) -> None:
    async with Memory.open(":memory:", embedder=embedder) as memory:
        for fact in (
            "My sister Lea lives in Vienna",
            "Lea works as a lawyer",
            "Lea loves orchids",
            "Lea's birthday is on 3 May",
            "Lea has a dog",
            "Lea is allergic to nuts",
            "My neighbour Carl has a spare key",
            "Carl keeps bees on his balcony",
            "I work as a nurse in Linz",
            "My rent is 800 euros",
        ):
            await memory.remember(fact)
        context = await memory.context(prompt)
        assert context is not None or embedder is None
        assert all(said in (context or said) for said in brought)
        assert not any(said in (context or "") for said in left_out)


async def test_a_need_of_somebody_without_a_known_relation_stays(memory: Any) -> None:
    await memory.remember("Clara is allergic to penicillin", about=["Clara"])
    assert "penicillin" in await memory.context("Which antibiotic can I take?")


async def test_a_meal_is_planned_with_what_people_said_of_themselves_in_passing(memory: Any) -> None:
    await memory.add("yes! but not that café, I'm allergic to hazelnuts", speaker="Katrin", session="whatsapp")
    await memory.add("Ich bin übrigens jetzt Vegetarierin", speaker="Katrin", session="whatsapp")
    await memory.add("there is a great vegan bakery in Hackney", speaker="Tom", session="whatsapp")
    await memory.add("Are you allergic to anything?", speaker="Tom", session="whatsapp")
    await memory.add("You are allergic to work", role="assistant", session="whatsapp")
    context = await memory.context("What should I cook for dinner?")
    assert "hazelnuts" in context and "Vegetarierin" in context
    assert not any(said in context for said in ("bakery", "allergic to anything", "allergic to work"))


async def test_needs_are_left_out_where_nobody_eats_or_takes_anything(memory: Any) -> None:
    await memory.remember("I am allergic to penicillin")
    assert "penicillin" in await memory.context("Which antibiotic can I take?")
    for prompt in ("How do vaccines work?", "Hello, back from lunch", "Which train goes to Oslo?"):
        assert "penicillin" not in (await memory.context(prompt) or "") or "lunch" in prompt


async def test_a_context_does_not_show_a_plan_without_its_cancellation(memory: Any) -> None:
    await memory.remember("We are going to Slovenia in July, camping at Lake Bohinj")
    await memory.remember("Slovenia is cancelled because of my knee; we go to Texel instead")
    await memory.remember("We bought a Kia")
    context = await memory.context("Where did we go on summer holiday?")
    assert context is None or "Bohinj" not in context or context.index("Texel") < context.index("Bohinj")


async def test_a_need_that_is_over_is_not_shown(memory: Any, clock: HandClock) -> None:
    await memory.remember("I am on a gluten free diet", expires="in 3 days")
    assert "gluten" in await memory.context("What shall I cook tonight?")
    clock.ms += 4 * DAY
    assert await memory.context("What shall I cook tonight?") is None


async def test_facts_in_a_line_about_an_entity_have_ids_of_their_own(memory: Any) -> None:
    await memory.add_entity("Emil", relation="son")
    await memory.remember("Emil plays handball on Mondays", about=["Emil"])
    dose = await memory.remember("Emil takes 6 units of Lantus every evening", about=["Emil"])
    parts = await memory.context_parts("Who is Emil?")
    lines = [line.text for section in parts.sections for line in section.lines if dose.id[-8:] in line.text]
    assert lines and all(f"[id:{dose.id[-8:]}]" in line for line in lines)


@pytest.mark.parametrize(
    ("told", "prompt"),
    [
        (("Our dog is called Rex", "My sister lives in Lyon"), "my sister and my dog"),
        (("Marta leads the frontend team", "Rent is 1,200 euros"), "Tell me about Marta, and the rent"),
        (("Unser Hund heißt Rex", "Meine Schwester wohnt in Lyon"), "Meine Schwester und mein Hund"),
        (("Нашу собаку зовут Рекс", "Моя сестра живёт в Лионе"), "моя сестра и моя собака"),
    ],
)
async def test_a_list_of_names_and_topics_gets_what_is_known_of_each(
    memory: Any, told: tuple[str, str], prompt: str
) -> None:
    for each in (*told, "The boiler was serviced in January", "I take the bus to work"):
        await memory.remember(each)
    context = await memory.context(prompt) or ""
    assert all(each in context for each in told), context
    assert "boiler" not in context


async def test_a_second_topic_about_the_person_a_question_names_is_theirs(memory: Any) -> None:
    await memory.remember("Marta eats porridge for breakfast")
    await memory.remember("My dinner is at seven")
    assert "at seven" not in (await memory.context("What does Marta eat for breakfast and dinner?") or "")
