"""Forgotten facts are in no answer and do not come back from their source, until someone says them again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ricordo import Memory, Message, Scope
from ricordo.errors import NotFoundError
from tests.flows.conftest import ConfirmingModel
from tests.flows.test_consolidation import fact, proposal

DAY = 86_400_000
TALK = [
    ("user", "Good morning! By the way, I am allergic to peanuts. I keep bees on the roof."),
    ("assistant", "Noted: you are allergic to peanuts."),
    ("user", "My sister is Zelinda. She paints."),
]


async def said(memory, clock, **options):
    at = "2026-01-01T09:00:00Z"
    return await memory.add_many(
        [Message(text=text, role=role, session="talk", at=at, **options) for role, text in TALK]
    )


async def told(memory, *questions):
    """Return the text of all answers: hits, contexts, timelines."""
    found = []
    for question in (*questions, "peanuts allergic food", "what am I allergic to?", "peanuts"):
        found += [hit.content + hit.excerpt for hit in (await memory.search(question, type="any", limit=50)).hits]
        found += [hit.content for hit in (await memory.query(question)).hits]
        found.append(str(await memory.context(question)))
    found += [node.content for node in await memory.timeline()]
    return "\n".join(found)


async def test_a_forgotten_fact_and_its_sentence_are_in_no_answer(memory, clock):
    ids = await said(memory, clock)
    fact = await memory.remember("User is allergic to peanuts")
    assert "peanut" in await told(memory)
    clock.ms += DAY
    await memory.forget(fact.id)
    answers = await told(memory, "bees")
    assert "peanut" not in answers
    assert "I keep bees on the roof" in answers
    assert "peanuts" in (await memory.get(ids[0])).content  # the stored message is unchanged


async def test_replaying_the_session_does_not_bring_it_back(memory, clock, tmp_path):
    await said(memory, clock)
    fact = await memory.remember("User is allergic to peanuts")
    clock.ms += DAY
    await memory.forget(fact.id)
    clock.ms += DAY
    await said(memory, clock)  # as it was
    for role, text in TALK:  # as if said now, in the same session
        await memory.add(text, role=role, session="talk")
    for text in ("i am ALLERGIC to peanuts", "I'm very allergic to peanuts!!", "Peanuts: I am allergic to."):
        await memory.add(text, session="elsewhere", at="2025-12-24T10:00:00Z")
    chat = tmp_path / "chat.jsonl"
    at = "2026-01-01T09:00:00Z"
    lines = [json.dumps({"role": role, "text": text, "session": "file", "time": at}) for role, text in TALK]
    chat.write_text("\n".join(lines))
    await memory.import_(chat)
    await memory.remember("The user is allergic to peanuts.", origin="extraction")
    answers = await told(memory, "bees")
    assert "peanut" not in answers.lower()
    assert answers.count("bees") >= 3


async def test_a_fact_said_again_is_known_again(memory, clock):
    await said(memory, clock)
    fact = await memory.remember("User is allergic to peanuts")
    clock.ms += DAY
    await memory.forget(fact.id)
    clock.ms += DAY
    await memory.add("You are allergic to peanuts, are you not?", role="assistant", session="later")
    assert "peanut" not in await told(memory)
    await memory.add("I am allergic to peanuts.", session="later")
    assert "I am allergic to peanuts." in await told(memory)


async def test_an_explicit_remember_makes_it_known_again(memory, clock):
    await said(memory, clock)
    fact = await memory.remember("User is allergic to peanuts")
    await memory.forget(fact.id)
    again = await memory.remember("User is allergic to peanuts")
    assert again.id in (await memory.search("peanuts")).ids
    assert "By the way, I am allergic to peanuts" in await told(memory)


@pytest.mark.parametrize("way", ["restore", "undo", "undo twice"])
async def test_restore_and_undo_bring_the_sentence_back(memory, clock, way):
    await said(memory, clock)
    fact = await memory.remember("User is allergic to peanuts")
    await memory.forget(fact.id)
    assert "peanut" not in await told(memory)
    if way == "restore":
        await memory.restore(fact.id)
    else:
        undone = await memory.undo((await memory.log())[0].seq)
    assert "By the way, I am allergic to peanuts" in await told(memory)
    if way == "undo twice":
        await memory.undo(undone.seq)
        assert "peanut" not in await told(memory)


async def test_a_forgotten_relation_is_not_learnt_again(memory, clock):
    ids = await said(memory, clock)
    assert (await memory.entity("Zelinda")).relation == "sister"
    clock.ms += DAY
    await memory.erase(id=ids[2])
    with pytest.raises(NotFoundError):
        await memory.entity("Zelinda")
    await said(memory, clock)
    with pytest.raises(NotFoundError):
        await memory.entity("Zelinda")
    clock.ms += DAY
    await memory.add("My sister is Zelinda", session="another")
    assert (await memory.entity("Zelinda")).relation == "sister"


async def test_erased_text_is_not_stored_again(memory, clock):
    mine = [f"m{number}" for number in range(len(TALK))]

    async def replay():
        at = "2026-01-01T09:00:00Z"
        messages = [
            Message(text=text, role=role, session="talk", at=at, id=id_)
            for (role, text), id_ in zip(TALK, mine, strict=True)
        ]
        return await memory.add_many(messages)

    await replay()
    clock.ms += DAY
    await memory.erase(session="talk")
    assert await replay() == mine
    assert (await memory.list()).nodes == ()
    await memory.add("So, I keep bees, on the roof! Tea? I am allergic to tea.", at="2026-01-01T09:00:00Z")
    (kept,) = (await memory.list()).nodes
    assert kept.content == "Tea? I am allergic to tea."
    assert (await memory.doctor()).ok


SHORT = ["👍", "ok", "🎉🎉🎉", "?!", "…", "Ja!", "👍", "42", ":-)", "<3", "See you at the station 🎉", "and"]


def whatsapp(path: Path, name: str) -> Path:
    lines = (f"31/12/2023, 22:{minute} - {name}: {text}\n" for minute, text in enumerate(SHORT, start=10))
    path.mkdir(exist_ok=True)
    file = path / f"WhatsApp Chat with {name}.txt"
    file.write_text("".join(lines), "utf-8")
    return file


@pytest.mark.parametrize("scale", ["session", "each"])
async def test_an_import_brings_back_no_erased_text_of_any_kind(memory, clock, tmp_path, scale):
    ann, bob = whatsapp(tmp_path / "in", "Ann"), whatsapp(tmp_path / "in", "Bob")
    assert (await memory.import_(ann)).added == len(SHORT)
    clock.ms += DAY
    if scale == "session":
        await memory.erase(session="whatsapp/Ann")
    else:
        for node in (await memory.list()).nodes:
            await memory.erase(id=node.id)
    for dry_run in (True, False):
        again = await memory.import_(ann, dry_run=dry_run)
        assert (again.added, again.refused) == (0, (f"{len(SHORT)} not stored: erased before",))
    assert not await memory.sessions()
    assert (await memory.import_(bob)).added == len(SHORT)  # another chat, so nobody erased it
    await memory.add("👍", session="whatsapp/Ann")  # said now
    assert [node.content for node in (await memory.list(session="whatsapp/Ann")).nodes] == ["👍"]
    assert (await memory.doctor()).ok


async def test_an_erased_text_without_words_does_not_come_back_with_its_time(memory, clock):
    said = {"session": "talk", "at": "2026-01-01T09:00:00Z"}
    await memory.erase(id=await memory.add("👍", **said))
    await memory.add("👍", **said)
    assert (await memory.list()).nodes == ()
    await memory.add("👍", session="talk", at="2026-01-01T09:01:00Z")
    await memory.add("👍", session="walk", at=said["at"])
    assert len((await memory.list()).nodes) == 2


async def test_what_is_said_again_later_keeps_its_attributes(memory, clock):
    said = {"text": "I keep bees on the roof", "attributes": {"note": "I keep bees on the roof"}}
    await memory.erase(id=await memory.add(**said))
    clock.ms += DAY
    again = await memory.get(await memory.add(**said))
    assert (again.content, again.attributes) == (said["text"], said["attributes"])


async def test_another_fact_of_the_same_shape_is_not_withheld(memory, clock):
    fact = await memory.remember("My brother Tom lives in Rome")
    await memory.add("My brother Bob lives in Rome. Tom and my brother and I live well, not in Rome", session="s")
    long = " ".join(f"word{number}" for number in range(50))
    await memory.add(f"my brother, Tom, a live band, {long}, Rome")
    await memory.forget(fact.id)
    said = await told(memory, "brother Rome Tom Bob")
    assert "Bob lives in Rome" in said
    assert "a live band" in said
    await memory.add("My brother Tom lives in Oslo. I live in Rome.", at="2025-01-01T09:00:00Z")
    assert "Oslo" in await told(memory, "Where does Tom live?")
    assert "I live in Rome" in await told(memory, "Where do I live?")


async def test_another_owner_may_say_it(memory, clock):
    fact = await memory.remember("User is allergic to peanuts")
    await memory.forget(fact.id)
    bobs = memory.scoped(Scope(owner="bob"))
    await bobs.add("I am allergic to peanuts", at="2025-01-01T09:00:00Z")
    assert "peanuts" in await told(bobs)


FORGOTTEN = [
    ("By the way, I am allergic to peanuts. I bake.", "I am allergic to peanuts", "The user is allergic to peanuts"),
    ("Моя сестра живёт в Праге. Я держу пчёл.", "Моя сестра живёт в Праге", "Сестра пользователя живёт в Праге"),
    ("У меня аллергия на арахис. Я держу пчёл.", "У меня аллергия на арахис", "У пользователя аллергия на арахис"),
    ("Ach, mein Bruder wohnt in Prag. Ich backe.", "Mein Bruder wohnt in Prag", "Nutzer: Bruder wohnt in Prag"),
    ("And so my husband is from Sandhausen.", "My husband is from Sandhausen", "User's husband is from Sandhausen"),
]


@pytest.mark.parametrize(("message", "stated", "proposed"), FORGOTTEN)
async def test_a_model_does_not_bring_back_what_was_forgotten_in_any_language(place, clock, message, stated, proposed):
    model = ConfirmingModel([proposal(fact(proposed, "e1"))])
    async with Memory.open(place.location, embedder=None, model=model, clock=clock) as memory:
        await memory.add(message, session="s")
        known = await memory.remember(stated)
        clock.ms += DAY
        await memory.forget(known.id)
        clock.ms += DAY
        await memory.end_session("s")
        await memory.consolidate("s")
        assert (await memory.list(type="semantic")).nodes == ()
        hits = (await memory.search(stated, type="any", limit=50)).hits
        words = stated.split()[-1].lower()
        assert [hit.content for hit in hits if words in hit.content.lower()] == []
        assert words not in str(await memory.context(stated)).lower()


NEIGHBOURS = [
    (
        "I have a dog. I live in Rome. I work as a nurse.",
        "I have a dog",
        ["User lives in Rome", "User works as a nurse"],
        ("Where do I live?", "Rome"),
    ),
    (
        "У меня есть собака. Моя сестра живёт в Праге. Мой брат живёт в Праге.",
        "Моя сестра живёт в Праге",
        ["У пользователя есть собака", "Брат пользователя живёт в Праге"],
        ("Есть ли у меня собака?", "собака"),
    ),
    (
        "Ich habe einen Hund. Ich wohne in Rom. Ich arbeite als Pfleger.",
        "Ich habe einen Hund",
        ["Der Nutzer wohnt in Rom", "Der Nutzer arbeitet als Pfleger"],
        ("Wo wohne ich?", "Rom"),
    ),
]


@pytest.mark.parametrize(("message", "forgotten", "others", "asked"), NEIGHBOURS)
async def test_forgetting_one_fact_does_not_block_its_neighbours(place, clock, message, forgotten, others, asked):
    model = ConfirmingModel([proposal(*(fact(text, "e1") for text in [forgotten, *others]))] * 2)
    async with Memory.open(place.location, embedder="hashing", model=model, clock=clock) as memory:
        await memory.add(message, session="s")
        known = await memory.remember(forgotten)
        clock.ms += DAY
        await memory.forget(known.id)
        run = await memory.consolidate("s")
        assert [item.text for item in run.items if item.what == "refused"] == [forgotten]
        assert {item.text for item in run.items if item.what == "added"} == set(others)
        question, answer = asked
        assert answer in (await memory.context(question) or "")


@pytest.mark.parametrize(
    ("message", "fact", "word"),
    [
        ("Моя сестра живёт в Праге. Я держу пчёл.", "Моя сестра живёт в Праге", "Праге"),
        ("Meine Schwester wohnt in Prag. Ich halte Bienen.", "Meine Schwester wohnt in Prag", "Prag"),
        ("My sister lives in Prague. I keep bees.", "My sister lives in Prague", "Prague"),
    ],
)
async def test_an_erased_fact_is_in_no_answer_from_the_message_that_said_it(memory, clock, message, fact, word):
    said = await memory.add(message, session="s")
    known = await memory.remember(fact)
    clock.ms += DAY
    report = await memory.erase(id=known.id)
    assert [(kept.ids, kept.why) for kept in report.kept] == [
        ((said,), "messages that say the same: the sentence is in no answer any more")
    ]
    answers = await told(memory, fact, word)
    assert word not in answers
    assert "пчёл" in answers or "Bienen" in answers or "bees" in answers


GROUP = [("Katja", "hi all"), ("Tom", "maybe"), ("Tom", "I'm not allergic to nuts"), ("Tom", "I moved to Halle")]
LATER = [("Katja", "maybe not"), ("Katja", "I'm allergic to nuts"), ("Lukas", "I moved to Halle"), ("Tom", "maybe")]


async def heard(memory, messages):
    at = "2026-01-01T09:00:00Z"
    said = [Message(text=text, role="user", speaker=name, session="group", at=at) for name, text in messages]
    return await memory.add_many([replace(each, speaker=None) if each.speaker == "Katja" else each for each in said])


async def test_erasing_a_person_keeps_what_others_say_in_the_same_words_in_the_same_chat(memory, clock):
    await heard(memory, GROUP)
    await memory.erase(entity="Tom")
    clock.ms += DAY
    await heard(memory, [*GROUP, *LATER])
    told = [(node.speaker, node.content) for node in await memory.list(type="episodic")]
    assert sorted(said for said in told if said[0] == "Tom") == []
    assert {text for _, text in told} == {"hi all", "maybe not", "I'm allergic to nuts", "I moved to Halle"}


async def test_forgetting_what_one_person_said_hides_it_from_nobody_else(memory, clock):
    await heard(memory, GROUP)
    await memory.consolidate()
    fact = next(node for node in await memory.list(type="semantic") if "Halle" in node.content)
    await memory.forget(fact.id)
    clock.ms += DAY
    await heard(memory, LATER)
    found = [(hit.speaker, hit.excerpt) for hit in await memory.search("Who moved to Halle?", type="episodic")]
    assert [said for said in found if "Halle" in said[1]] == [("Lukas", "I moved to Halle")]


async def test_what_a_person_denies_later_is_not_what_was_forgotten(memory, clock):
    await memory.add("I'm not allergic to nuts.", session="talk")
    fact = await memory.remember("I'm not allergic to nuts")
    await memory.forget(fact.id)
    clock.ms += DAY
    await memory.add("I'm allergic to nuts.", session="talk")
    assert [hit.content for hit in await memory.search("nuts", type="episodic")] == ["I'm allergic to nuts."]


async def test_the_owner_who_once_spoke_under_a_name_says_nothing_again(memory, clock):
    await heard(memory, [("Tom", "I moved to Halle on Friday")])
    await memory.remember("My name is Tom")
    (said,) = await memory.list(type="episodic")
    await memory.erase(id=said.id)
    await memory.add("I moved to Halle on Friday", session="group", at="2026-01-01T09:00:00Z")
    assert [node.content for node in await memory.list(type="episodic")] == []


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("tengo un gato que se llama Tomate, ya lo veras", "La usuaria tiene un gato que se llama Tomate"),
        ("J'habite à Lyon. Il pleut.", "L'utilisateur habite à Lyon"),
        ("Abito a Torino. Piove sempre.", "L'utente abita a Torino"),
        ("Moro no Porto. Chove.", "O usuário mora no Porto"),
        ("Ich habe eine Katze namens Miso.", "Der Nutzer hat eine Katze namens Miso"),
        ("Живу в Перми. Холодно.", "Пользователь живёт в Перми"),
    ],
)
async def test_forgetting_what_an_agent_noted_hides_what_the_user_said(memory, clock, said, noted):
    await memory.add(said, session="talk")
    fact = await memory.remember(noted, origin="agent")
    clock.ms += DAY
    await memory.forget(fact.id)
    name = noted.split()[-1]
    assert name not in str(await memory.context(noted)) + "".join(hit.excerpt for hit in await memory.search(noted))


async def test_erased_words_stay_away_when_their_speaker_has_a_longer_name_in_the_next_export(memory, clock):
    await heard(memory, GROUP)
    await memory.erase(entity="Tom")
    await heard(memory, [("Tom (Halle)", "I moved to Halle"), ("Lukas", "I moved to Halle")])
    found = [node.speaker for node in await memory.list(type="episodic") if "Halle" in node.content]
    assert found == ["Lukas"]
