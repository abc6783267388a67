"""Statements as people type them: without apostrophes, without a subject, in the words of the day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ricordo import Memory

HOUR = 3_600_000


async def _memory_of(*facts: str, embedder: str | None = None) -> Memory:
    memory = await Memory.open(":memory:", embedder=embedder)
    for fact in facts:
        await memory.remember(fact)
    await memory.settle()
    return memory


@pytest.mark.parametrize(
    ("facts", "question", "first"),
    [
        (("i cycle to work", "im a nurse at St Olave's hospital"), "what's my job?", "im a nurse"),
        (("im a nurse at St Olave's hospital", "i cycle to work"), "where do i work?", "im a nurse"),
        (("i work at Siemens", "hired a cleaner for the stairs"), "where do i work", "i work at Siemens"),
        (("i work at Siemens", "rented a car in Pisa"), "where do i work", "i work at Siemens"),
        (("my landlord is Herr Brückner", "rented a car in Pisa"), "who is my landlord", "my landlord is"),
        (("my landlord is called Haslinger", "the rent is 1180 euro"), "who is my landlord", "my landlord is"),
        (
            ("mein Vermieter heißt Herr Haslinger", "Die Miete ist 1180 warm"),
            "Wer ist mein Vermieter?",
            "mein Vermieter",
        ),
        (("ich arbeite bei Bosch", "ich fahre mit dem Rad zur Arbeit"), "Wo arbeite ich?", "ich arbeite bei Bosch"),
        (("trabajo en Acme", "voy al trabajo en bici"), "¿Dónde trabajo?", "trabajo en Acme"),
        (("я работаю в Сбере", "езжу на работу на метро"), "Где я работаю?", "я работаю в Сбере"),
        (("my husband Kostya works at the port", "we work from nine now"), "where does my husband work?", "my husband"),
        (("мой муж Костя работает в порту", "теперь работаем с девяти"), "где работает мой муж?", "мой муж"),
    ],
)
async def test_what_only_sounds_like_it_answers_no_question_for_a_job_or_home(
    facts: tuple[str, ...], question: str, first: str
) -> None:
    async with await _memory_of(*facts, embedder="default") as memory:
        assert (await memory.search(question)).hits[0].content.startswith(first)


@pytest.mark.parametrize(
    ("written", "bare"),
    [
        ("I'm allergic to nuts", "im allergic to nuts"),
        ("I'm 34", "im 34"),
        ("I've quit Acme", "ive quit Acme"),
        ("I don't live in Leeds anymore", "i dont live in Leeds anymore"),
        ("we've moved to Leeds", "weve moved to Leeds"),
    ],
)
async def test_an_apostrophe_that_is_left_out_changes_nothing(written: str, bare: str) -> None:
    async with await _memory_of("I live in Leeds", "I work at Acme") as memory:
        first = await memory.remember(written)
    async with await _memory_of("I live in Leeds", "I work at Acme") as memory:
        second = await memory.remember(bare)
    told = [(each.category, each.about, sorted(older.content for older in each.outdates)) for each in (first, second)]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("my bike is a black Rose, locked in the yard", "somebody stole my bike from the yard yesterday"),
        ("im a member at the gym Fitinn", "i quit the gym yesterday"),
        ("i drive a white vw van", "i sold the van this morning"),
        ("Lou joue du violon", "Lou a lâché le violon pour la batterie"),
    ],
)
async def test_what_changes_a_lasting_fact_lasts(earlier: str, later: str) -> None:
    async with await _memory_of(earlier) as memory:
        changed = await memory.remember(later)
        assert changed.outdates and changed.expires_at is None
        assert (await memory.remember("i have a cold")).expires_at is not None


async def test_a_change_that_was_told_for_a_day_lasts_as_well(memory: Any) -> None:
    await memory.remember("I ride a steel Surly to work.", at="2026-06-09")
    told = "Somebody nicked my Surly outside the library; I've been taking the tram since."
    changed = await memory.remember(told, at="2026-07-10")
    assert changed.outdates and changed.expires_at is None


@pytest.mark.parametrize("expires", ["for 3 days", "for 30 days", "for a month", "2026-12-31"])
async def test_a_given_expiry_is_kept_even_of_a_change(memory: Any, clock: Any, expires: str) -> None:
    clock.ms += 334 * 24 * HOUR  # 1 December
    await memory.remember("im a member at the gym Fitinn")
    changed = await memory.remember("i quit the gym yesterday", expires=expires)
    assert changed.outdates and changed.expires_at is not None


async def test_a_german_im_is_no_speaker() -> None:
    async with await _memory_of("Mareike singt im Chor") as memory:
        assert not (await memory.remember("Mareike arbeitet nicht mehr bei der Post")).outdates


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("отдал ключи от фургона Оуэну", "отдал Лене долг"),
        ("lent my drill to Tom", "lent Mia twenty quid"),
        ("hab das alte Sofa verkauft", "hab mein Konzertticket verkauft"),
        ("vendí el sofá viejo", "vendí mi entrada del concierto"),
    ],
)
async def test_deeds_that_are_done_once_do_not_change_each_other(earlier: str, later: str) -> None:
    async with await _memory_of(earlier) as memory:
        assert not (await memory.remember(later)).outdates


@pytest.mark.parametrize(
    ("said", "relation", "name"),
    [
        ("meine Mutter ist Renate", "mother", "Renate"),
        ("mein Chef ist Thorsten", "boss", "Thorsten"),
        ("the new landlady is his daughter Katja Hale", "landlady", "Katja Hale"),
        ("Mr Hale died, the new landlady is his daughter Katja Hale", "landlady", "Katja Hale"),
        ("Herr Brückner ist gestorben, die neue Vermieterin ist Katja Brückner", "landlady", "Katja Brückner"),
        ("le nouveau chef s'appelle Luc Morel", "boss", "Luc Morel"),
        ("ahora mi jefa es Puri", "boss", "Puri"),
        ("mama heißt gudrun und wohnt in zwickau, papa ist 2019 gestorben", "mother", "Gudrun"),
        ("my sister birgit works at the post office", "sister", "Birgit"),
        ("mis hijas se llaman lucía y martina", "daughter", "Martina"),
        ("мой брат саша живёт в Риге", "brother", "Саша"),
        ("my doctor is dr silva", "doctor", "Silva"),
    ],
)
async def test_a_new_holder_of_a_relation_is_learnt(said: str, relation: str, name: str) -> None:
    async with await _memory_of(said) as memory:
        assert (name, relation) in {(each.name, each.relation) for each in await memory.people()}


async def test_a_description_is_no_name() -> None:
    async with await _memory_of("meine Frau ist Lehrerin", "meine Schwester ist Hebamme") as memory:
        assert not [each for each in await memory.people() if each.relation]


@pytest.mark.parametrize(
    "prompt",
    [
        "what do you know about me?",
        "hey, who am i",
        "tell me about myself",
        "was weißt du über mich?",
        "что ты обо мне знаешь?",
        "qué sabes de mí?",
        "que sais-tu de moi ?",
        "cosa sai di me?",
        "o que sabes de mim?",
    ],
)
async def test_a_question_about_the_user_gets_who_they_are(memory: Any, prompt: str) -> None:
    for fact in ("I live in Edinburgh", "I'm allergic to penicillin", "I work at Acme as a baker"):
        await memory.remember(fact)
    await memory.settle()
    context = await memory.context(prompt)
    assert context is not None
    assert all(part in context for part in ("Edinburgh", "penicillin", "Acme"))
    assert await memory.context("what do you know about Saturn?") is None


async def test_a_context_shows_the_latest_statement_beside_an_older_one(clock: Any) -> None:
    async with await Memory.open(":memory:", clock=clock) as memory:
        await memory.remember("estoy aprendiendo alemán")
        await memory.remember("I weigh 84 kilos")
        clock.ms += 24 * HOUR
        await memory.remember("dejé el alemán, me aburrió")
        await memory.remember("Stepped on the scales this morning: 79.6! The belt needs another hole.")
        await memory.settle()
        studied, weighed = await memory.context("¿qué estoy aprendiendo?"), await memory.context("How much do I weigh?")
        assert studied is not None and "dejé el alemán" in studied
        assert weighed is not None and "79.6" in weighed


async def test_forgetting_a_newer_fact_names_the_older_one_that_stays(memory: Any) -> None:
    older = await memory.remember("We're on the Nimbus plan")
    newer = await memory.remember("signed up for Stratus last week, Nimbus was too dear")
    assert [each.id for each in newer.outdates if not each.is_closed] == [older.id]
    assert "Nimbus plan" in (await memory.forget(newer.id)).notice
    assert (await memory.forget(older.id)).notice == ""


@pytest.mark.parametrize(
    ("said", "question"),
    [
        (
            (
                "l'idraulico viene giovedì",
                "idraulico rinviato a lunedì mattina",
                "lunedì ha dato buca, l'idraulico passa mercoledì",
            ),
            "Che giorno viene l'idraulico?",
        ),
        (
            (
                "la cena de empresa es en La Tasca",
                "cambian la cena de empresa al Zahara",
                "otra vez lío con la cena de empresa, al final en el Mirador",
            ),
            "¿Dónde es la cena de empresa?",
        ),
        (
            (
                "пью магний от бессонницы",
                "магний не помог, от бессонницы перешла на мелатонин",
                "врач мелатонин отменила, от бессонницы выписала донормил",
            ),
            "Что я пью от бессонницы?",
        ),
        (
            (
                "a diarista vem às terças",
                "diarista mudou pra quinta",
                "diarista agora só consegue vir sexta, paciência",
            ),
            "Que dia vem a diarista?",
        ),
        (
            (
                "Ella's new teacher is Mrs Padgett",
                "mrs padgett's on maternity leave, ella has Mr Oduya as teacher til easter",
                "another teacher swap for ella.. Ms Hendry took over the class",
            ),
            "who is Ella's teacher?",
        ),
    ],
)
async def test_of_three_versions_the_last_one_comes_first(clock: Any, said: tuple[str, ...], question: str) -> None:
    async with await Memory.open(":memory:", clock=clock) as memory:
        for each in said:
            last = await memory.remember(each)
            clock.ms += 200 * HOUR
        await memory.settle()
        assert (await memory.search(question)).ids[0] == last.id


@pytest.mark.parametrize(
    ("earlier", "later", "whose"),
    [
        ("The user's doctor is Dr Silva", "The user's doctor is now Dr Pires", ("my doctor", "Pires")),
        ("The users doctor is Dr Silva", "The users doctor is now Dr Pires", ("my doctor", "Pires")),
        ("Der Chef des Nutzers ist Karl Braun", "Der Chef des Nutzers ist jetzt Uwe Rabe", ("mein Chef", "Uwe Rabe")),
        (
            "Le chef de l'utilisateur est Guy Roux",
            "Le chef de l'utilisateur est maintenant Luc Ney",
            ("mon chef", "Luc Ney"),
        ),
    ],
)
async def test_an_agents_note_that_replaces_a_fact_ends_its_relation(
    memory: Any, earlier: str, later: str, whose: tuple[str, str]
) -> None:
    older = await memory.remember(earlier, origin="agent")
    newer = await memory.remember(later, origin="agent")
    assert [(each.id, each.is_closed) for each in newer.outdates] == [(older.id, True)]
    assert (await memory.entity(whose[0])).name == whose[1]


async def test_an_agents_note_ends_no_relation_that_something_else_states(memory: Any) -> None:
    await memory.add("Ran into my boss Ann Lee at the market")
    await memory.remember("The user's boss is Ann Lee", origin="agent")
    await memory.remember("The user's boss is now Tom Reed", origin="agent")
    assert (await memory.entity("my boss")).name == "Ann Lee"


async def test_a_correction_of_one_side_keeps_an_open_doubt(memory: Any) -> None:
    older = await memory.remember("My sister lives in Rome")
    newer = await memory.remember("My sister lives in Milan near the prak")
    assert [each.kind for each in await memory.review()] == ["conflict"]
    mended = await memory.correct(newer.id, "My sister lives in Milan near the park")
    (review,) = await memory.review()
    assert review.older is not None
    assert (review.older.id, review.newer.id) == (older.id, mended.id)


@pytest.mark.parametrize(
    ("said", "days"),
    [
        ("I'm pregnant", 280),
        ("Estoy embarazada", 280),
        ("My sister is on maternity leave", 420),
        ("Ich bin krankgeschrieben", 90),
        ("я в декрете", 420),
        ("I'm pregnant and allergic to latex", None),
        ("I was pregnant when we moved here", None),
        ("I take folic acid because I'm pregnant", None),
    ],
)
async def test_a_state_that_ends_by_itself_is_kept_as_long_as_it_may_last(
    memory: Any, clock: Any, said: str, days: int | None
) -> None:
    kept = await memory.remember(said)
    left = None if kept.expires_at is None else round((kept.expires_at.timestamp() - clock.ms / 1_000) / 86_400)
    assert left in ((None,) if days is None else (days, days + 1))


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ("breakfast ideas, remember I'm lactose intolerant", "I'm lactose intolerant"),
        ("just so you know, I don't eat pork", "I don't eat pork"),
        ("my doctor says I have high blood pressure", "I have high blood pressure"),
        ("reminder for sunday: I'm vegan and walnuts could literally kill me", "I'm vegan and walnuts could literally"),
        ("im moving to Galway lads", "I'm moving to Galway lads"),
        ("el médico dice que soy intolerante a la lactosa", "Soy intolerante a la lactosa"),
        ("vergiss nicht, ich bin Vegetarierin", "Ich bin Vegetarierin"),
        ("ricordati che sono vegana", "Sono vegana"),
        ("je déménage à Lyon", "Je déménage à Lyon"),
        ("не забудь, я вегетарианка", "Я вегетарианка"),
        ("my doctor said I should rest", None),
        ("make him move to Oslo and get a parrot", None),
        ("haz que se mude a Oslo", None),
        ("пусть он переедет в Осло", None),
    ],
)
async def test_what_somebody_says_of_themselves_behind_an_introduction_is_learnt(
    memory: Any, message: str, fact: str | None
) -> None:
    await memory.remember("My sister is in Oslo this week")
    await memory.add(message)
    await memory.consolidate()
    learnt = [each.content for each in (await memory.list(limit=10)).nodes if each.type != "episodic"]
    learnt.remove("My sister is in Oslo this week")
    assert [each.replace("Im ", "I'm ").startswith(fact or "?") for each in learnt] == [True] * (fact is not None)


async def test_somebody_known_in_full_is_meant_by_the_first_name(memory: Any) -> None:
    for text, speaker in [("I'm vegan and walnuts could kill me", "Priya Nair"), ("hi", "Tom Hale")]:
        await memory.add(text, speaker=speaker, session="dinner")
    await memory.end_session("dinner")
    await memory.consolidate()
    await memory.remember("My husband Declan is allergic to shellfish")
    context = await memory.context("I want to invite Priya for dinner, what can I cook?")
    assert context is not None
    assert "walnuts" in context
    assert "shellfish" not in context
    await memory.add_entity("Priya Shah")
    context = await memory.context("I want to invite Priya for dinner, what can I cook?")  # one of two
    assert context is not None
    assert "walnuts" in context
    assert "shellfish" in context


@pytest.mark.parametrize(
    ("said", "years_ago", "kept"),
    [
        ("My sister is in Tokyo this week", 5, False),
        ("Estoy embarazada", 3, False),
        ("I live in Oslo", 5, True),
        ("I stopped smoking last week", 5, True),
        ("I'm allergic to penicillin", 5, True),
        ("I'm pregnant", 0, True),
    ],
)
async def test_what_was_over_when_a_message_arrived_is_no_fact(
    memory: Any, clock: Any, said: str, years_ago: int, kept: bool
) -> None:
    at = datetime.fromtimestamp(clock.ms / 1_000, UTC) - timedelta(days=365 * years_ago)
    await memory.add(said, at=at, session="old")
    await memory.end_session("old")
    await memory.consolidate()
    facts = [each.content for each in (await memory.list(limit=10)).nodes if each.type != "episodic"]
    assert facts == ([said] if kept else [])
    assert (await memory.search(said)).ids


async def test_in_a_context_the_latest_medicine_stands_above_those_it_replaced(clock: Any) -> None:
    doses = [
        "nehme candesartan 8 mg morgens gegen den blutdruck",
        "dr. seidel hat die dosis verdoppelt, jetzt 16 mg",
        "dr. amsel stopped the candesartan, i take ramipril 5 mg instead",
        "kein ramipril mehr, reizhusten, jetzt wieder candesartan 8mg",
    ]
    async with await Memory.open(":memory:", clock=clock) as memory:
        for dose in doses:
            await memory.remember(dose)
            clock.ms += 200 * HOUR
        await memory.settle()
        context = await memory.context("what medicine do i take now?")
        assert context is not None
        lines = [line for line in context.splitlines() if line.startswith("- ")]
        assert "reizhusten" in lines[0]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("malte hat am 6. mai geburtstag", "nee quatsch malte hat am 16. mai"),
        ("bin allergisch gegen penicillin", "ach nee, stimmt gar nich, das mit penicillin war malte, ich vertrags"),
        ("malte landet am 28.", "malte landet doch erst am 29., gleiche uhrzeit"),
        ("My dentist appointment is on June 3", "oh wait no, the dentist is on June 13"),
        ("Мой приём у врача 3 мая", "ой нет, приём у врача 13 мая"),
        ("I work at Acme as a baker", "I start at Globex on Monday"),
        ("Ich arbeite bei Siemens", "Ich fange im Januar bei Bosch an"),
        ("Je travaille chez Acme", "Je commence chez Globex lundi"),
        ("Я работаю в Яндексе", "Вышла на работу в Сбер"),
    ],
)
async def test_a_change_in_the_words_of_a_chat_is_noticed(memory: Any, earlier: str, later: str) -> None:
    await memory.remember(earlier)
    assert [each.content for each in (await memory.remember(later)).outdates] == [earlier]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("mein handyvertrag is bei vodafone, 39,99", "ab jetzt is fleisch gestrichen, ich ess vegetarisch"),
        ("alkohol lass ich jetzt weg", "polizei hats gefunden, e-bike is wieder da, nur sattel weg"),
        ("wird n mädchen", "ich will kati weihnachten n antrag machen, ring liegt im werkzeugkasten"),
        ("I work at Acme", "My sister starts at Globex on Monday"),
        ("I work at Acme", "I got an offer from Netflix for 10 euros"),
        ("Ich arbeite bei Siemens", "Ich wechsle zu Netflix"),
    ],
)
async def test_words_of_a_chat_that_name_no_topic_link_nothing(memory: Any, earlier: str, later: str) -> None:
    await memory.remember(earlier)
    assert (await memory.remember(later)).outdates == ()
