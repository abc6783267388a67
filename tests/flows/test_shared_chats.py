"""In a chat that several people see, it is known whose "I" a statement is."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import ConflictError, DeniedError, InvalidError, NotFoundError, Scope
from ricordo.interfaces.serialize import json_text

TEAM = "team"


def of(memory: Any, owner: str, **more: Any) -> Any:
    return memory.scoped(Scope(owner=owner, chat=TEAM, **more))


async def test_others_see_who_said_it_and_oneself_reads_it_as_ones_own(memory: Any) -> None:
    ann, ben = of(memory, "ann"), of(memory, "ben")
    await ann.add("I am allergic to walnuts.", session="lunch")
    await ann.remember("I work from Lisbon until March", shared=True)
    await ann.end_session("lunch")
    await ann.consolidate()
    asked = "What food am I allergic to, and where do I work?"
    seen = {(hit.content, hit.speaker) for hit in (await ben.search(asked)).hits}
    assert seen == {("I am allergic to walnuts", "ann"), ("I work from Lisbon until March", "ann")}
    assert {hit.speaker for hit in (await ann.search(asked)).hits} == {None}
    assert {hit.about for hit in (await ann.search(asked)).hits} == {()}
    told = await ben.context("What am I allergic to?")
    assert "I am allergic to walnuts (said by ann)" in told
    own = await ann.context("What am I allergic to?")
    assert "ann" not in own
    assert [str(each).count("I am allergic to walnuts") for each in (told, own)] == [1, 1]


@pytest.mark.parametrize(
    ("content", "about"),
    [
        ("My dog is called Rex", ("ann",)),
        ("The user lives in Rome", ("ann",)),
        ("Живу в Перми", ("ann",)),
        ("Ich wohne in Bonn", ("ann",)),
        ("We meet on Tuesdays at ten", ()),
        ("Unser Büro ist in Bonn", ()),
        ("The printer is on the second floor", ()),
        ("The doctor moved the check-up to Friday", ()),
        ("A chefe quer o relatório na sexta", ()),
        ("Заказчик перенёс сдачу на март", ()),
        ("Não usamos Redis", ()),
        ("Hoy tenemos reunión en la obra", ()),
        ("Abbiamo l'assicurazione con Generali", ()),
        ("Перешли на новый склад", ()),
        ("Ditched Stripe, going with Mollie because of the fees", ()),
        ("Нанял нового тестера", ()),
        ("Ем только рыбу", ("ann",)),
        ("По утрам бегаю", ("ann",)),
        ("почту проверяет секретарь", ()),
        ("кассу закрывают в девять", ()),
        ("воду привозят по вторникам", ()),
        ("мобилку пишем на React Native", ()),
        ("серверную часть переписывает подрядчик", ()),
        ("отдел переехал на пятый этаж", ()),
        ("школа закрыта на ремонт", ()),
        ("зал свободен по средам", ()),
        ("Sold my bike", ("ann",)),
        ("Dora plays the cello", ("Dora",)),
        ("My sister Anna lives in Rome", ("Anna",)),
    ],
)
async def test_a_shared_fact_is_about_its_owner_if_it_is_one_persons(memory: Any, content: str, about: Any) -> None:
    shared = await of(memory, "ann").remember(content, shared=True)
    assert shared.about == about
    is_own = about in (("ann",), ("Anna",))
    assert shared.speaker == ("ann" if is_own else None)


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        ("The gate will be oak", "The boss now wants the gate in steel", "What is the gate made of?"),
        ("Decidimos pintar a porta de verde", "Mudámos de ideias: a porta fica azul", "De que cor é a porta?"),
    ],
)
async def test_what_a_group_is_told_by_somebody_else_or_decides_replaces_what_it_knew(
    memory: Any, before: str, after: str, asked: str
) -> None:
    ann = of(memory, "ann")
    for told in (before, after):
        await ann.remember(told, shared=True)
    assert [hit.content for hit in (await ann.search(asked)).hits] == [after, before]
    assert [hit.speaker for hit in (await of(memory, "ben").search(asked)).hits] == [None, None]


async def test_a_relative_named_in_a_shared_fact_is_the_owners(memory: Any) -> None:
    await of(memory, "ann").remember("My sister is Clara", shared=True)
    found = (await of(memory, "ben").search("whose sister is Clara?")).hits[0]
    assert (found.about, found.speaker) == (("Clara",), "ann")
    assert "(about Clara, said by ann)" in await of(memory, "ben").context("What do we know about Clara?")
    relations = (await of(memory, "ben").entity("Clara")).relations
    assert [(each.source_name, each.predicate) for each in relations] == [("ann", "sister")]


async def test_two_peoples_own_facts_do_not_replace_each_other(memory: Any) -> None:
    first = await of(memory, "ann").remember("I live in Rome", shared=True)
    second = await of(memory, "ben").remember("I live in Oslo", shared=True)
    third = await of(memory, "ann").remember("I live in Lima", shared=True)
    assert not second.outdates
    assert [older.id for older in third.outdates] == [first.id]


async def test_named_speakers_tools_and_an_owner_called_me_are_as_given(memory: Any) -> None:
    ann = of(memory, "ann")
    await ann.add("I like tea", speaker="Dora", session="s")
    await ann.add("I can help", role="assistant", session="s")
    await ann.add("I am a page", origin="web", session="s")
    await of(memory, "me").add("I like rice", session="s")
    await memory.scoped(Scope(owner="ann")).add("I like figs", session="own")
    said = {turn.content: turn.speaker for turn in (await ann.session("s")).turns}
    assert said == {"I like tea": "Dora", "I can help": None, "I am a page": None, "I like rice": None}
    (own,) = (await memory.scoped(Scope(owner="ann")).session("own")).turns
    assert own.speaker is None


@pytest.mark.parametrize("is_space", [True, False])
async def test_what_a_member_writes_in_the_name_of_another_is_not_said_by_them(memory: Any, is_space: bool) -> None:
    if is_space:
        await memory.scoped(Scope(owner="anya")).create_space(TEAM)
        for member in ("dima", "boris"):
            await memory.scoped(Scope(owner="anya")).set_member(TEAM, member, "writer")
    anya, dima, boris = (of(memory, owner) for owner in ("anya", "dima", "boris"))
    await memory.scoped(Scope(owner="anya")).remember("I live in Rome")
    await anya.remember("I am allergic to nuts", shared=True)
    await dima.add("I am allergic to penicillin", speaker="anya", session="s")
    await dima.add("My sister is Clara.", speaker="Аня, as boris wrote", session="s")
    await dima.add("I am fond of tea", speaker="Dora", session="s")
    await dima.add("I am fond of coffee", speaker="Dima", session="s")
    await dima.end_session("s")
    messages = {turn.content: turn.speaker for turn in (await anya.session("s")).turns}
    assert messages == {
        "I am allergic to penicillin": "anya, as dima wrote",
        "My sister is Clara.": "Аня, as dima wrote",
        "I am fond of tea": "Dora",
        "I am fond of coffee": "Dima",
    }
    found = (await anya.search("penicillin, tea", type="episodic")).hits
    assert {(hit.content, hit.writer) for hit in found} >= {("I am fond of tea", "dima")}
    await dima.consolidate()
    for reader in (anya, boris):
        told = await reader.context("Which antibiotic am I allergic to, or anya, penicillin?")
        assert "I am allergic to penicillin (said by anya, as dima wrote)" in told
        (hit,) = [each for each in (await reader.search("penicillin")).hits if "penicillin" in each.content]
        assert (hit.speaker, hit.writer, hit.about) == ("anya, as dima wrote", "dima", ())
    assert "penicillin" not in json_text(await anya.entity("me"))
    assert [fact.content for fact in (await boris.entity("anya")).facts] == ["I am allergic to nuts"]
    assert "wrote" not in json_text(await boris.people())
    with pytest.raises(DeniedError, match="dima wrote this"):
        await anya.update(hit.id, shared=False)
    await anya.erase(id=hit.id)
    assert (await anya.remember("I am allergic to penicillin", shared=True)).id  # it was not Anya's that was erased


async def test_a_context_tells_who_noted_a_fact_that_names_nobody(memory: Any) -> None:
    await of(memory, "ann").remember("allergic to nuts", shared=True)
    assert "allergic to nuts (noted by ann)" in await of(memory, "ben").context("Who is allergic to nuts?")
    assert "noted by" not in await of(memory, "ann").context("Who is allergic to nuts?")


async def test_a_briefing_reads_ones_own_facts_as_ones_own(memory: Any) -> None:
    await of(memory, "ann").remember("I decided to keep the rabbits", shared=True)
    assert "I decided to keep the rabbits (said by ann)" in await of(memory, "ben").brief()
    told = await of(memory, "ann").brief()
    assert "I decided to keep the rabbits" in told and "ann" not in told.partition("rabbits")[2].splitlines()[0]


# a private fact is shared later, and a shared one made private


async def everything(memory: Any, owner: str) -> str:
    """All that a member is told about the chat, by every question that has an answer."""
    caller = of(memory, owner)
    hits = (await caller.search("staging server", archived=True)).hits + (await caller.search("staging server")).hits
    told: list[Any] = [hits, await caller.context("What is the staging server?"), await caller.brief()]
    told += [await caller.log(), await caller.list(), await caller.timeline(), await caller.people()]
    told += [await caller.archive(), await caller.sessions(), await caller.review(), await caller.weak()]
    told += [await caller.receipts(), await caller.stats(), await caller.runs(), await caller.documents()]
    for each in {hit.id for hit in hits}:
        told += [await caller.get(each), await caller.history(each), await caller.explain(each)]
    return json_text(told)


async def test_a_private_fact_is_shared_later_without_anything_of_its_source(memory: Any) -> None:
    own = memory.scoped(Scope(owner="ben"))
    await own.add_entity("Zyzzyva", relation="sister")
    await own.add("My staging server is db-7. I am looking for a new job at Qwertz.", session="qsecret talk")
    await own.end_session("qsecret talk")
    first = await own.remember(
        "My sister's staging server was qformer",
        about=["Zyzzyva", "Qperson"],
        tags=["qlabel"],
        attributes={"note": "qattribute"},
        session="qsecret talk",
    )
    second = await own.correct(first.id, "My sister's staging server is db-7")
    kept = await own.update(second.id, tags=["qlabel", "qsecond"])
    shared = await of(memory, "ben").update(kept.id, shared=True)
    assert (shared.content, shared.chat, shared.owner) == (kept.content, "team", "")
    assert (shared.session, shared.tags, shared.id != kept.id) == (None, (), True)
    assert [each.content for each in await of(memory, "cem").history(shared.id)] == [kept.content]
    seen = await everything(memory, "cem")
    assert "staging server is db-7" in seen and '"ben"' in seen
    for secret in ("qsecret", "qformer", "qlabel", "qattribute", "qwertz", "zyzzyva", "qperson", first.id, kept.id):
        assert secret.lower() not in seen.lower(), secret
    with pytest.raises(NotFoundError):
        await of(memory, "cem").get(kept.id)
    assert [hit.id for hit in (await of(memory, "ben").search("staging server")).hits if "sister" in hit.content] == [
        shared.id
    ]
    assert (await own.get(kept.id)).closed_reason == "forgotten"
    assert (await own.log())[0].reason == "shared with team"
    assert (await of(memory, "cem").log())[0].actor == "ben"
    with pytest.raises(ConflictError):
        await of(memory, "ben").update(kept.id, shared=True)
    await own.erase(owner="ben")
    assert (await of(memory, "cem").get(shared.id)).content == shared.content
    assert kept.id not in await everything(memory, "cem")


async def test_what_one_shared_can_be_made_private_and_what_others_shared_cannot(memory: Any) -> None:
    ann, ben, cem = (of(memory, owner) for owner in ("ann", "ben", "cem"))
    first = await ben.remember("The staging server is db-7", shared=True, tags=["infra"])
    with pytest.raises(DeniedError, match="ben wrote this"):
        await ann.update(first.id, shared=False)
    own = await ben.update(first.id, shared=False)
    assert (own.content, own.owner, own.chat, own.tags) == (first.content, "ben", "", ("infra",))
    assert not (await cem.search("staging server")).hits
    assert [hit.id for hit in (await ben.search("staging server")).hits] == [own.id]
    assert ((await cem.log())[0].actor, (await cem.log())[0].reason) == ("ben", "made private")
    assert own.id not in await everything(memory, "cem")
    again = await ben.update(own.id, shared=True)
    assert [hit.id for hit in (await cem.search("staging server")).hits] == [again.id]
    assert await ben.update(again.id, shared=True) == await ben.get(again.id)


async def test_undoing_a_sharing_takes_the_fact_from_the_others(memory: Any) -> None:
    ben = of(memory, "ben")
    kept = await ben.remember("The staging server is db-7")
    shared = await ben.update(kept.id, shared=True)
    made = (await ben.explain(shared.id)).made
    await ben.undo(made.seq)
    assert not (await of(memory, "cem").search("staging server")).hits
    await ben.restore(kept.id)
    assert [hit.id for hit in (await ben.search("staging server")).hits] == [kept.id]


async def test_sharing_later_needs_the_user_a_chat_and_a_fact_without_a_credential(memory: Any) -> None:
    ben = of(memory, "ben")
    kept = await ben.remember("The staging server is db-7")
    for caller, error in (
        (memory.scoped(Scope(owner="ben")), InvalidError),
        (of(memory, "ben", trust="agent"), DeniedError),
        (of(memory, "ben", propose=True), DeniedError),
    ):
        with pytest.raises(error):
            await caller.update(kept.id, shared=True)
    said = await memory.scoped(Scope(owner="ben")).add("The door is blue", session="s")
    secret = await ben.remember("The staging password is hunter2Xq9", keep_secrets=True)
    for id in (said, secret.id):
        with pytest.raises(InvalidError):
            await ben.update(id, shared=True)
    with pytest.raises(InvalidError, match="together"):
        await ben.update(kept.id, shared=True, tags=["x"])
    await ben.off_record()
    with pytest.raises(ConflictError, match="recorded"):
        await ben.update(kept.id, shared=True)
    await ben.on_record()
    assert (await ben.get(kept.id)).closed_at is None and (await ben.get(secret.id)).closed_at is None


async def test_a_hit_names_who_corrected_what_another_member_had_shared(memory: Any) -> None:
    ann, ben = of(memory, "ann"), of(memory, "ben")
    for told in ("I am on call on Monday", "The staging server is db-7"):
        kept = await ann.remember(told, shared=True)
        await ben.correct(kept.id, told.replace("Monday", "Tuesday").replace("db-7", "db-8"))
    for asked in ("Who is on call?", "staging server"):
        (hit,) = (await ann.search(asked)).hits[:1]
        assert hit.writer == "ben"
    assert "corrected by ben" in str(await ben.context("Who is on call on Tuesday?"))


async def test_a_hit_names_who_wrote_what_is_shared(memory: Any) -> None:
    ann, ben = of(memory, "ann"), of(memory, "ben")
    kept = await ann.remember("The staging server is db-7", shared=True)
    await of(memory, "cem", trust="agent").remember("The staging server runs Debian", shared=True, origin="agent")
    await ann.add("The staging server is slow", speaker="Dora", session="s")
    await ben.remember("The staging server bores me")
    await ben.reinforce(kept.id)
    for caller in (ann, ben):
        found = (await caller.search("staging server", type="any")).hits
        writers = {hit.content: hit.writer for hit in found if "bores" not in hit.content}
        assert writers == {
            "The staging server is db-7": "ann",
            "The staging server runs Debian": "cem",
            "The staging server is slow": "ann",  # who wrote what Dora said
        }
        assert all(hit.writer == "" for hit in found if "bores" in hit.content)


@pytest.mark.parametrize("said", ["Papa mag keinen Karpfen", "Mum is allergic to nuts", "Папа не любит рыбу"])
async def test_what_a_speaker_says_of_a_relative_is_not_about_the_speaker(memory: Any, said: str) -> None:
    await memory.add(f"{said}.", speaker="Ida", session="s1")
    await memory.end_session("s1")
    await memory.consolidate()
    facts = [node for node in (await memory.list()).nodes if node.type != "episodic"]
    assert all("Ida" not in node.about for node in facts)
    shared = await of(memory, "ann").remember(said, shared=True)
    assert ("ann" in shared.about, shared.speaker) == (False, "ann")


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("The deploy day is Tuesday", "The deploy day is Thursday now", "When is the deploy day?"),
        ("I live in Porto", "I moved to Braga last week", "Where do I live?"),
        ("Das Standup ist um 9:30 Uhr", "Das Standup ist jetzt um 10:15 Uhr", "Wann ist das Standup?"),
        ("Tom leads the project", "Eva leads the project now", "Who leads the project?"),
        ("Я работаю в Сбере", "Я теперь работаю в Яндексе", "Где я работаю?"),
    ],
)
@pytest.mark.parametrize("is_shared", [True, False])
async def test_a_change_is_told_and_ranked_across_spaces(
    memory: Any, older: str, newer: str, question: str, is_shared: bool
) -> None:
    anna = memory.scoped(Scope(owner="anna"))
    await anna.create_space("team")
    here = memory.scoped(Scope(owner="anna", chat="team"))
    old = await here.remember(older, shared=not is_shared)
    new = await here.remember(newer, shared=is_shared)
    told = [(each.id, each.is_closed, each.review, each.space) for each in new.outdates]
    assert told == [(old.id, False, None, "" if is_shared else "team")]
    assert [hit.id for hit in (await here.search(question)).hits] == [new.id, old.id]
    assert (await here.get(old.id)).is_live
    assert not await here.review()
    assert not (await anna.remember("Nobody has said anything of bicycles")).outdates


async def test_what_others_keep_for_themselves_is_not_told(memory: Any) -> None:
    anna = memory.scoped(Scope(owner="anna"))
    await anna.create_space("team")
    await memory.scoped(Scope(owner="bob")).remember("The deploy day is Tuesday")
    told = await memory.scoped(Scope(owner="anna", chat="team")).remember("The deploy day is Thursday now", shared=True)
    assert told.outdates == ()


async def test_what_others_state_of_themselves_answers_no_question_about_my_people(memory: Any) -> None:
    igor, dasha = of(memory, "igor"), of(memory, "dasha")
    await igor.remember("Моя жена Лена работает стоматологом")
    moved = await dasha.remember("Я переехала в Ереван и работаю теперь оттуда", shared=True)
    await igor.remember("I live in Tampere")
    first = [(await igor.search(asked)).hits[0].content for asked in ("кем работает моя жена?", "where do I live?")]
    assert first == ["Моя жена Лена работает стоматологом", "I live in Tampere"]
    assert (await igor.search("Where does Dasha live?")).ids[0] == moved.id


async def test_what_others_say_of_themselves_is_no_answer_to_a_question_for_ones_own(memory: Any) -> None:
    ann, tom = of(memory, "ann"), of(memory, "tom")
    for fact in (
        "My rent is 900 euros",
        "Ich wohne in Graz",
        "Soy alérgico a las nueces",
        "Our wifi password is a fish",
    ):
        await tom.remember(fact, shared=True)
    for asked, said in (("What is my rent?", "900"), ("Wo wohne ich?", "Graz")):
        found = (await ann.search(asked, only_relevant=True)).hits
        assert not any(said in hit.content for hit in found)
        assert (await tom.search(asked, only_relevant=True)).hits
    assert "900" in (await ann.search("What is Tom's rent?", only_relevant=True)).hits[0].content
    assert "fish" in (await ann.search("What is our wifi password?", only_relevant=True)).hits[0].content
