"""Messages are stored and found."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ricordo import ConflictError, InvalidError, Message, NotFoundError
from tests.flows.conftest import HandClock


async def test_a_message_is_searchable_as_soon_as_add_returns(memory: Any) -> None:
    said = await memory.add("Rex hates the vacuum cleaner", speaker="Ann", session="monday")
    assert (await memory.search("what is the vacuum to Rex")).ids[0] == said


async def test_a_message_added_without_waiting_has_its_id_at_once_and_is_there_after_settling(memory: Any) -> None:
    said = memory.add_nowait("The boiler man comes on Thursday")
    await memory.settle(600)
    assert (await memory.get(said)).content == "The boiler man comes on Thursday"


async def test_the_same_id_with_the_same_text_is_stored_once(memory: Any) -> None:
    for _ in range(2):
        assert await memory.add("once only", id="m1") == "m1"
    assert len((await memory.list()).nodes) == 1


async def test_an_id_with_another_text_is_refused_with_the_whole_batch(memory: Any) -> None:
    await memory.add("the first", id="m1")
    with pytest.raises(ConflictError, match="m1"):
        await memory.add_many([Message(text="a new one"), Message(text="another", id="m1")])
    assert [node.content for node in (await memory.list()).nodes] == ["the first"]


async def test_messages_are_ordered_by_event_time(memory: Any) -> None:
    times = [datetime(2025, 12, day, tzinfo=UTC) for day in (3, 1, 2)]
    for at in times:
        await memory.add(f"said on day {at.day}", session="s", at=at)
    stats = await memory.stats()
    assert stats.edges == {"temporal": 2}


async def test_two_messages_of_a_session_at_once_make_one_session(memory: Any) -> None:
    import asyncio

    await asyncio.gather(*(memory.add(f"message {n}", session="s") for n in range(20)))
    stats = await memory.stats()
    assert (stats.sessions, stats.nodes["episodic"], stats.edges["temporal"]) == (1, 20, 19)


async def test_a_session_can_be_ended_unless_it_is_empty(memory: Any) -> None:
    await memory.add("hello", session="s")
    await memory.end_session("s")
    await memory.end_session("s")
    with pytest.raises(NotFoundError, match="there is no session"):
        await memory.end_session("another")


async def test_off_the_record_messages_are_not_stored(memory: Any) -> None:
    await memory.off_record("secret talk")
    gone = await memory.add("the surprise party is on Friday", session="secret talk")
    kept = await memory.add("we need more milk", session="daily")
    with pytest.raises(NotFoundError):
        await memory.get(gone)
    await memory.on_record("secret talk")
    again = await memory.add("the cake is ordered", session="secret talk")
    assert {node.id for node in (await memory.list()).nodes} == {kept, again}


async def test_off_the_record_until_further_notice_holds_for_everything(memory: Any) -> None:
    await memory.off_record()
    await memory.add("not stored")
    await memory.on_record()
    await memory.add("stored")
    assert [node.content for node in (await memory.list()).nodes] == ["stored"]


async def test_a_credential_is_redacted_before_it_is_stored(memory: Any) -> None:
    said = await memory.add("my wifi password is hunter2-Tr0ub4dor&3, please note it")
    node = await memory.get(said)
    assert "Tr0ub4dor" not in node.content
    assert "[redacted: " in node.content


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"text": ""}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": "half a pair \ud83d"}, "text"),
        ({"text": "x", "role": "king"}, "role"),
        ({"text": "x", "at": "in a while"}, "at"),
        ({"text": "x", "at": datetime(2026, 1, 1)}, "at"),
        ({"text": "x", "session": " "}, "session"),
        ({"text": "x", "attributes": {"n": float("nan")}}, "attributes"),
        ({"text": "x", "id": "two\nlines"}, "id"),
    ],
)
async def test_bad_input_is_refused_with_the_name_of_the_field(memory: Any, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidError, match=named):
        await memory.add(**fields)
    assert (await memory.list()).nodes == ()


async def test_a_listing_comes_in_pages_newest_first(memory: Any) -> None:
    for n in range(5):
        await memory.add(f"message {n}")
    first = await memory.list(limit=3)
    second = await memory.list(limit=3, cursor=first.cursor)
    assert [node.content[-1] for node in (*first.nodes, *second.nodes)] == list("43210")
    assert second.cursor is None


async def test_filters_narrow_a_search(memory: Any, clock: HandClock) -> None:
    await memory.add("we talked about tea", session="a", at="2025-11-03", attributes={"task_id": 7})
    await memory.add("we talked about tea again", session="b", at="2025-12-24")
    await memory.remember("Tea is best at four", tags=["drinks"], category="preference")

    async def found(**conditions: Any) -> list[str]:
        return sorted(hit.content for hit in (await memory.search("tea", **conditions)).hits)

    assert await found(session="a") == ["we talked about tea"]
    assert await found(after="2025-12-01", type="episodic") == ["we talked about tea again"]
    assert await found(before="2025-12-01") == ["we talked about tea"]
    assert await found(tag="drinks") == await found(category="preference") == await found(type="semantic")
    assert await found(where={"task_id": 7}) == ["we talked about tea"]
    assert await found(where={"task_id": "7"}) == []


async def test_a_time_in_the_question_raises_events_of_that_time(memory: Any) -> None:
    await memory.add("We went to the lake and swam", at="2025-06-14")
    await memory.add("We went to the lake and it rained", at="2025-09-20")
    hits = (await memory.search("what happened at the lake in September 2025?")).hits
    assert "rained" in hits[0].content


@pytest.mark.parametrize(
    ("answer", "question", "about_the_question"),
    [
        (
            "Our flight leaves on 14 November at 7:40.",
            "When does our flight leave?",
            "What did I ask about the flight?",
        ),
        ("Unser Flug geht am 14. November um 7:40.", "Wann geht unser Flug?", "Was habe ich zum Flug gefragt?"),
        ("Мы вылетаем 14 ноября в 7:40.", "Когда мы вылетаем?", "О чём я спрашивал: когда мы вылетаем?"),
        ("El vuelo es el 14 de noviembre a las 7:40.", "¿Cuándo es el vuelo?", "¿Qué pregunté sobre el vuelo?"),
        ("Le vol part le 14 novembre à 7h40.", "Quand part le vol ?", "Qu'ai-je demandé sur le vol ?"),
        ("Il volo parte il 14 novembre alle 7:40.", "Quando parte il volo?", "Cosa ho chiesto sul volo?"),
        ("O voo parte a 14 de novembro às 7:40.", "Quando parte o voo?", "O que perguntei sobre o voo?"),
    ],
)
async def test_a_question_asked_again_finds_the_answer_before_the_question(
    memory: Any, answer: str, question: str, about_the_question: str
) -> None:
    await memory.add(answer, session="october", at="2025-10-01")
    await memory.add(question, session="november", at="2025-11-01")
    await memory.add("I have to buy bread on Saturday", session="november", at="2025-11-01T00:01")
    assert (await memory.search(question)).hits[0].content == answer
    assert (await memory.search(about_the_question)).hits[0].content == question


async def test_a_hit_gives_its_time_in_four_forms(memory: Any) -> None:
    await memory.add("The heating broke", at="2025-12-30T09:30:00Z", speaker="Ann")
    (hit,) = (await memory.search("heating")).hits
    assert hit.event_time_iso == "2025-12-30T09:30:00Z"
    assert hit.event_time_local.startswith("2025-12-30 10:30")
    assert hit.event_time_tz == "Europe/Berlin"
    assert hit.event_time_relative == "2 days ago"


async def test_the_shares_of_a_hit_add_up_to_its_score(memory: Any, clock: HandClock) -> None:
    for n in range(30):
        await memory.add(f"the cat number {n} sat on the mat in room {n % 7}", speaker="Ann" if n % 2 else "Bob")
    await memory.remember("Cats sleep a lot", confidence=0.6)
    clock.ms += 40 * 86_400_000
    results = await memory.search("which cat sat in room 3?", trace=True)
    assert results.trace is not None
    for hit in results.hits:
        assert sum(share.share for share in hit.why) == pytest.approx(hit.score)


async def test_credentials_in_unawaited_messages_are_redacted(memory: Any) -> None:
    said = memory.add_nowait("The password of the router is hunter2!")
    await memory.settle()
    assert "hunter2" not in (await memory.get(said)).content


CORRECTED = {
    "en": (
        "Hello, the survey of the roof is on 3 May at 10",
        "Ok, I'll bring the ladder",
        "Sorry, the survey is postponed to 9 May",
        "When is the survey of the roof?",
    ),
    "de": (
        "Hallo, die Begehung vom Dach ist am 3. Mai um 10",
        "Ok, ich bringe die Leiter mit",
        "Die Begehung wurde doch auf den 9. Mai verschoben",
        "Wann ist die Begehung vom Dach?",
    ),
    "ru": (
        "Привет, осмотр крыши 3 мая в 10",
        "Хорошо, я возьму лестницу",
        "Осмотр всё-таки перенесли на 9 мая",
        "Когда осмотр крыши?",
    ),
    "es": (
        "Hola, la inspección del tejado es el 3 de mayo a las 10",
        "Vale, llevo la escalera",
        "Al final la inspección se aplazó al 9 de mayo",
        "¿Cuándo es la inspección del tejado?",
    ),
    "fr": (
        "Bonjour, la visite du toit est le 3 mai à 10h",
        "D'accord, j'apporte l'échelle",
        "Finalement la visite est reportée au 9 mai",
        "Quand est la visite du toit ?",
    ),
    "it": (
        "Ciao, il sopralluogo del tetto è il 3 maggio alle 10",
        "Ok, porto la scala",
        "Alla fine il sopralluogo è rinviato al 9 maggio",
        "Quando è il sopralluogo del tetto?",
    ),
    "pt": (
        "Olá, a visita ao telhado é a 3 de maio às 10h",
        "Ok, levo a escada",
        "Afinal a visita foi adiada para 9 de maio",
        "Quando é a visita ao telhado?",
    ),
}


@pytest.mark.parametrize("language", CORRECTED)
async def test_a_correction_in_a_conversation_comes_before_what_it_corrects(memory: Any, language: str) -> None:
    *said, question = CORRECTED[language]
    for number, text in enumerate((*said[:2], "The cement is here, 40 bags in the garage", said[2])):
        await memory.add(text, session="site", speaker="Ada" if number == 1 else "Bo", at=f"2025-04-0{number + 1}")
    assert [hit.content for hit in (await memory.search(question)).hits[:2]] == [said[2], said[0]]


async def test_a_correction_of_something_else_in_a_conversation_does_not_come_first(memory: Any) -> None:
    said = ("The call with Ann is on Monday at 9", "I moved the call with Ben to Friday", "We moved the desk on Sunday")
    for text in said:
        await memory.add(text, session="work")
    assert (await memory.search("When is the call with Ann?")).hits[0].content == said[0]


@pytest.mark.parametrize(
    ("planned", "cancelled", "question"),
    [
        ("We looked at a flat in Leith today", "The flat in Leith fell through", "Which flat do we look at?"),
        ("Abbiamo visto un bilocale a Lecce", "Il bilocale di Lecce è saltato", "Quale bilocale guardiamo?"),
        ("Wir haben ein Haus in Kiel angeschaut", "Das Haus in Kiel ist geplatzt", "Welches Haus schauen wir an?"),
        ("Смотрели дом в Твери с садом", "Дом в Твери сорвался", "Какой дом мы смотрим?"),
    ],
)
async def test_a_plan_that_fell_through_in_a_conversation_comes_after_that_news(
    memory: Any, planned: str, cancelled: str, question: str
) -> None:
    for number, text in enumerate((planned, "Ok", "The cement is here", "See you at nine", cancelled)):
        await memory.add(text, session="home", at=f"2025-04-0{number + 1}")
    found = [hit.content for hit in (await memory.search(question)).hits]
    assert found.index(cancelled) < found.index(planned)


CHANGED_BETWEEN_CONVERSATIONS = [
    ("My rent is 950 euros a month", "They raised my rent to 1,020 euros", "How much is my rent?"),
    ("Ich nehme Ramipril 5 mg", "Der Arzt hat Ramipril auf 10 mg erhöht", "Wie viel Ramipril nehme ich?"),
    ("El gimnasio cuesta 38 euros", "Me han subido el gimnasio a 45 euros", "¿Cuánto cuesta el gimnasio?"),
    ("Я работаю в Яндексе", "Я уволился из Яндекса", "Где я работаю?"),
]


@pytest.mark.parametrize(("before", "now", "question"), CHANGED_BETWEEN_CONVERSATIONS)
@pytest.mark.parametrize("told", ["two messages", "a fact and a message", "a message and a fact"])
async def test_what_the_user_says_later_comes_first_also_in_another_conversation(
    memory: Any, before: str, now: str, question: str, told: str
) -> None:
    for number, text in enumerate((before, now)):
        if told == "two messages" or ("message", "fact")[number] == told.split()[1]:
            await memory.add(text, session=f"talk {number}")
        else:
            await memory.remember(text)
    assert [hit.content for hit in await memory.search(question)][:2] == [now, before]


async def test_what_named_people_tell_each_other_in_two_conversations_keeps_its_order(memory: Any) -> None:
    await memory.add("My rent is 950 euros a month", session="a", speaker="Ada")
    await memory.add("They raised my rent to 1,020 euros", session="b", speaker="Bo")
    assert (await memory.search("What is Ada's rent?"))[0].content == "My rent is 950 euros a month"


async def test_a_question_for_a_number_is_answered_by_what_has_it(memory: Any) -> None:
    said = ("Invoice RE-2041 was changed to 850 euros", "Invoice RE-2042 was changed to 910 euros")
    for number, text in enumerate(said):
        await memory.add(text, session=f"talk {number}")
    for number, text in zip(("RE-2041", "RE-2042"), said, strict=True):
        assert (await memory.search(f"How much is invoice {number}?"))[0].content == text
