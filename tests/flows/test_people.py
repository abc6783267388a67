"""Entities: names in every script, relations to the owner, merge and split."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import ConflictError, Fact, InvalidError, Message, NotFoundError, Scope
from tests.flows.conftest import DAY, HandClock


async def ids(memory: Any, entity: str) -> set[str]:
    return {node.id for node in (await memory.list(entity=entity)).nodes}


async def test_my_wife_sarah_and_my_boss_resolve_to_one_entity(memory: Any) -> None:
    tulips = await memory.remember("She loves tulips", about=["my wife"])
    said = await memory.add("By the way, my wife is Sarah.")
    await memory.add("It is a small firm: Sarah is my boss, too")
    await memory.add("My boss is Sarah")
    strict = await memory.remember("She is strict about deadlines", about=["my boss"])
    sarah = await memory.entity("Sarah")
    assert sarah.name == "Sarah"
    assert {relation.predicate for relation in sarah.relations} == {"wife", "boss"}
    assert {fact.id for fact in sarah.facts} == {tulips.id, strict.id}
    for name in ("my wife", "my boss", "моей жене", "Сара", "Сарой", "wife", "МОЯ НАЧАЛЬНИЦА"):
        assert (await memory.entity(name)).id == sarah.id
    assert {each.name for each in await memory.people()} == {"Sarah"}
    boss = next(each for each in sarah.relations if each.predicate == "boss")
    assert boss.evidence != ()
    assert (await memory.get(boss.evidence[0])).content == "My boss is Sarah"
    await memory.settle(600)
    assert said in await ids(memory, "my wife")


@pytest.mark.parametrize(
    ("said", "relation", "name"),
    [
        ("my wife is Sarah", "wife", "Sarah"),
        ("Sarah is my wife", "wife", "Sarah"),
        ("моя жена — Сара", "wife", "Сара"),
        ("Моего брата зовут Йонасом", "brother", "Йонас"),
        ("My older sister Anna lives in Rome", "sister", "Anna"),
    ],
)
async def test_a_stated_relation_is_learnt_with_its_evidence(memory: Any, said: str, relation: str, name: str) -> None:
    message = await memory.add(said)
    found = await memory.entity(f"my {relation}")
    assert (found.name, found.relation) == (name, relation)
    assert [(each.predicate, each.source, each.evidence) for each in found.relations] == [(relation, None, (message,))]


@pytest.mark.parametrize(
    "message",
    [
        Message(text="My wife's name was Sarah"),
        Message(text="Is my wife Sarah?"),
        Message(text="My wife is not Sarah"),
        Message(text='Tom said "my wife is Sarah"'),
        Message(text="My wife is German"),
        Message(text="Tom's wife is Sarah"),
        Message(text="my wife is Sarah", role="assistant"),
        Message(text="my wife is Sarah", role="tool", origin="tool_result"),
        Message(text="my wife is Sarah", speaker="Tom"),
        Message(text="my wife is Sarah", origin="web"),
    ],
    ids=lambda message: f"{message.text} ({message.role}, {message.speaker}, {message.origin})",
)
async def test_indirect_statements_teach_no_relation(memory: Any, message: Message) -> None:
    await memory.add_many([message])
    assert {each.name for each in await memory.people()} == ({"Sarah", "Tom"} if message.speaker else set())
    with pytest.raises(NotFoundError):
        await memory.entity("my wife")


async def test_in_a_group_my_wife_belongs_to_the_speaker_only(memory: Any) -> None:
    ann = memory.scoped(Scope(owner="ann", chat="team"))
    await ann.add_many([Message(text="my husband is Bob", speaker="Eve")])
    assert {each.name for each in await ann.people()} == {"Bob", "Eve"}
    with pytest.raises(NotFoundError):
        await ann.entity("my husband")
    await ann.add("my husband is Tom")
    assert (await ann.entity("my husband")).name == "Tom"
    assert {each.name for each in await memory.scoped(Scope(owner="eve", chat="team")).people()} == {"Bob", "Eve"}


async def test_relations_of_another_speaker_belong_to_that_speaker(memory: Any) -> None:
    await memory.add_entity("Tom")
    for _ in range(2):
        await memory.add("My wife is Sarah", speaker="Tom")
    await memory.add("My wife is Eve", speaker="Nobody known")
    await memory.add("My wife is Anna")
    assert (await memory.entity("my wife")).name == "Anna"
    assert [(each.predicate, each.source_name) for each in (await memory.entity("Sarah")).relations] == [
        ("wife", "Tom")
    ]
    assert {each.name for each in await memory.people()} == {"Tom", "Sarah", "Anna"}


async def test_people_of_other_owners_never_resolve(memory: Any) -> None:
    other = memory.scoped(Scope(owner="eve"))
    await memory.remember("My wife is Sarah")
    sarah = await memory.entity("Sarah")
    for name in ("Sarah", "my wife", "Сара", sarah.id):
        with pytest.raises(NotFoundError):
            await other.entity(name)
        with pytest.raises(NotFoundError):
            await other.search("anything", entity=name)
    assert await other.people() == ()
    theirs = await other.remember("Likes rain", about=["my wife"])
    assert (await memory.entity("my wife")).facts[0].id != theirs.id
    assert (await other.entity("my wife")).id != sarah.id
    await other.add("My wife is Sarah")
    assert (await other.entity("Sarah")).id != sarah.id
    with pytest.raises(NotFoundError):
        await other.merge("Sarah", sarah.id)


async def test_a_new_wife_ends_the_previous_relation(memory: Any, clock: HandClock) -> None:
    await memory.add("My wife is Sarah")
    clock.ms += 400 * DAY
    await memory.add("My wife is Anna")
    assert (await memory.entity("my wife")).name == "Anna"
    former = await memory.entity("Sarah")
    assert former.relation is None
    assert [each.valid_until is None for each in former.relations] == [False]


async def test_an_unnamed_wife_gets_her_name_later(memory: Any, clock: HandClock) -> None:
    first = await memory.remember("Loves tulips", about=["my wife"])
    assert first.about == ("my wife",)
    nodes = await memory.remember_many(
        [
            Fact(content="Sarah sings", about=["Sarah"]),
            Fact(content="My wife is Sarah"),
            Fact(content="Sarah is my boss"),
        ]
    )
    assert nodes[1].about == ("Sarah",)
    assert {each.id for each in (await memory.entity("my wife")).facts} == {first.id, *(node.id for node in nodes)}
    assert (await memory.get(first.id)).about == ("Sarah",)
    clock.ms += DAY
    await memory.remember("My wife is Anna")
    later = await memory.add("Dinner with my wife")
    theirs = await memory.add("Dinner with my wife", speaker="Tom")
    await memory.settle(600)
    assert (await memory.entity("my wife")).name == "Anna"
    assert later in await ids(memory, "Anna")
    assert not {later, theirs} & await ids(memory, "Sarah")
    assert (await memory.doctor()).ok


async def test_a_title_makes_no_second_person(memory: Any) -> None:
    await memory.remember("My dentist is Dr. Bell")
    await memory.remember("My boss is Mr. Lee")
    await memory.remember("Mrs. Lee bakes bread")
    assert {person.name for person in await memory.people()} == {"Bell", "Lee", "Mrs. Lee"}
    assert (await memory.entity("Dr. Bell")).name == "Bell"


@pytest.mark.parametrize(
    "line",
    [
        "Dr. Seidel moved to Bern | Seidel plays chess | Seidel",
        "Seidel is my dentist | Dr. Seidel moved to Bern | Dr. Seidel",
        "Frau Dr. Weber ist meine Chefin | Dr. Weber wohnt in Bern | Weber",
        "Tante Hilde wohnt in Bern | Hilde hat im Mai Geburtstag | Hilde",
        "Hilde kocht gern für uns | Tante Hilde wohnt in Bern | Tante Hilde",
        "My aunt Vera lives in Leeds | Aunt Vera likes tea | Aunt Vera",
        "Uncle Bob lives in Leeds | Bob likes tea | Bob",
        "Тётя Галина живёт в Омске | Галина любит чай | Галина",
    ],
)
async def test_a_name_with_a_title_and_without_is_one_person(memory: Any, line: str) -> None:
    first, second, name = line.split(" | ")
    await memory.remember(first)
    newer = await memory.remember(second)
    (person,) = await memory.people()
    assert (await memory.entity(name)).id == person.id
    assert newer.about == (person.name,)


async def test_two_people_of_one_surname_stay_two(memory: Any) -> None:
    await memory.remember("My neighbour is Mrs. Seidel")
    await memory.remember("My boss is Mr. Seidel")
    assert (await memory.remember("Mr. Seidel teaches maths")).about == ("Mr. Seidel",)
    assert (await memory.remember("Seidel called")).about == ()  # either of them
    assert {(person.name, person.relation) for person in await memory.people()} == {
        ("Seidel", "neighbor"),
        ("Mr. Seidel", "boss"),
    }


async def test_an_uncle_is_no_colleague_of_his_name(memory: Any) -> None:
    await memory.remember("My colleague Bob likes tea")
    await memory.remember("Uncle Bob lives in Leeds")
    assert (await memory.remember("Bob plays chess")).about == ("Bob",)
    assert (await memory.remember("Uncle Bob is ill")).about == ("Uncle Bob",)


async def test_a_name_of_two_in_a_conversation_adds_no_third(memory: Any) -> None:
    for said in ("My neighbour is Mrs. Seidel", "My boss is Mr. Seidel"):
        await memory.add(said, session="s")
    await memory.consolidate("s")
    assert len(await memory.people()) == 2
    assert list(await memory.review()) == []


async def test_several_brothers_are_ambiguous(memory: Any) -> None:
    await memory.add_many([Message(text="My brother is Tom"), Message(text="My brother is Max")])
    for name in ("Tom", "Max"):
        assert (await memory.entity(name)).relation == "brother"
    with pytest.raises(InvalidError, match=r"Tom \(.*, Max \("):
        await memory.entity("my brother")
    with pytest.raises(InvalidError, match=r"Tom \(.*, Max \("):
        await memory.remember("He moved to Oslo", about=["my brother"])


async def test_my_wife_is_linked_in_earlier_and_later_messages(memory: Any) -> None:
    before = await memory.add("I cooked for my wife")
    theirs = await memory.add("I cooked for my wife as well", speaker="Tom")
    await memory.add("My wife is Sarah")
    after = await memory.add("Подарил моей жене цветы")
    await memory.settle(600)
    linked = await ids(memory, "Sarah")
    assert {before, after} <= linked
    assert theirs not in linked


@pytest.mark.parametrize(
    ("known", "written"),
    [
        ("Jonas", "Йонас"),
        ("Ludmila", "Людмила"),
        ("Людмила", "Ludmila"),
        ("Сара", "Sarah"),
        ("Юлия", "Julia"),
        ("Julia", "Yulia"),
        ("Сара", "Сары"),
        ("Сергей", "Сергеем"),
        ("Анна Петрова", "Анне Петровой"),
        ("Павел", "Павлу"),
        ("Ελένη", "Eleni"),
        ("王伟", "Wang Wei"),
        ("さくら", "Sakura"),
        ("שרה", "שרה"),
        ("김민준", "김민준"),
        ("José", "jose"),
    ],
)
async def test_a_name_is_recognised_in_another_script_case_or_spelling(memory: Any, known: str, written: str) -> None:
    fact = await memory.remember("Likes long walks", about=[known])
    profile = await memory.entity(written)
    assert (profile.name, [each.id for each in profile.facts]) == (known, [fact.id])
    again = await memory.remember("Plays the viola", about=[written])
    assert again.about == (known,)
    assert len(await memory.people()) == 1


async def test_texts_in_another_script_or_case_are_linked(memory: Any) -> None:
    await memory.add_entity("Jonas")
    await memory.add_entity("Сара")
    await memory.add_entity("王伟")
    named = await memory.add_many(
        [Message(text="Вчера видел Йонаса"), Message(text="Ужинали с Сарой"), Message(text="我和王伟去了公园")]
    )
    await memory.add_many([Message(text="Nothing about anybody"), Message(text="Сарай сгорел")])
    await memory.settle(600)
    assert [await ids(memory, name) for name in ("Jonas", "Сара", "王伟")] == [{each} for each in named]


async def test_a_sentence_start_that_sounds_like_a_name_is_not_linked(memory: Any) -> None:
    await memory.add_entity("Mary")
    named = await memory.add("Then I saw Marry, as she spells it")
    await memory.add("Marry me! Let us marry.")
    await memory.settle(600)
    assert await ids(memory, "Mary") == {named}


async def test_two_known_people_are_never_confused(memory: Any) -> None:
    names = ["Александр", "Александра", "Alexandra", "Jonas", "Йонас", "Мария", "Мара", "Виктор", "Виктория"]
    for name in names:
        await memory.add_entity(name)
    facts = await memory.remember_many([Fact(content=f"{name} reads", about=[name]) for name in names])
    assert [fact.about for fact in facts] == [(name,) for name in names]
    for name, fact in zip(names, facts, strict=True):
        assert [each.id for each in (await memory.entity(name)).facts] == [fact.id]


async def test_a_name_of_its_own_is_not_an_inflection(memory: Any) -> None:
    await memory.add_entity("Александр")
    node = await memory.remember("Александра любит лыжи", about=["Александра"])
    assert node.about == ("Александра",)
    assert len(await memory.people()) == 2


async def test_a_plain_statement_is_about_the_person_it_begins_with(memory: Any) -> None:
    await memory.add_entity("Anna")
    await memory.add_entity("Сара")
    plain = await memory.remember("Anna lives in Paris")
    russian = await memory.remember("Сара живёт в Риге")
    for other in (
        "Anna's sister lives in Rome",
        "Anna Karenina is a novel",
        "Сестра Сары живёт в Осло",
        "Bobs know Anna",
    ):
        assert (await memory.remember(other)).about == ()
    assert (plain.about, russian.about) == (("Anna",), ("Сара",))
    await memory.settle(600)
    profile = await memory.entity("Anna")
    assert [fact.id for fact in profile.facts] == [plain.id]
    assert {node.content for node in profile.mentions} >= {"Anna's sister lives in Rome", "Bobs know Anna"}


async def test_merging_brings_names_facts_relations_and_mentions_together(memory: Any) -> None:
    one = await memory.remember("Sarah bakes bread", about=["Sarah"])
    two = await memory.remember("Runs marathons", about=["Sally"])
    await memory.add("My boss is Sally")
    said = await memory.add("I met Sally at the bakery")
    await memory.settle(600)
    commits = len(await memory.log())
    merged = await memory.merge("Sarah", "Sally")
    assert len(await memory.log()) == commits + 1
    assert (merged.name, merged.aliases, merged.relation) == ("Sarah", ("Sally",), "boss")
    profile = await memory.entity("Sally")
    assert (profile.name, profile.aliases, profile.relation) == ("Sarah", ("Sally",), "boss")
    assert {fact.id for fact in profile.facts} == {one.id, two.id}
    assert {one.id, two.id, said} <= await ids(memory, "Sarah")
    assert (await memory.get(two.id)).about == ("Sarah",)
    assert (await memory.entity("my boss")).name == "Sarah"
    assert [(each.name, each.mention_count) for each in await memory.people()] == [("Sarah", profile.mention_count)]
    later = await memory.remember("Sally moved to Leeds", about=["Sally"])
    assert later.about == ("Sarah",)
    with pytest.raises(ConflictError):
        await memory.merge("Sarah", "Sally")
    assert (await memory.doctor()).ok


async def test_a_split_reverses_a_merge_and_facts_follow_their_names(memory: Any) -> None:
    one = await memory.remember("Bakes bread", about=["Sarah"])
    two = await memory.remember("Runs marathons", about=["Sally"])
    before = await memory.entity("Sally")
    await memory.merge("Sarah", "Sally")
    three = await memory.remember("Moved to Leeds", about=["Sally"])
    said = await memory.add("I met Sally at the bakery")
    await memory.settle(600)
    kept, other = await memory.split("Sarah", ["Sally"])
    assert (kept.name, other.name, other.id) == ("Sarah", "Sally", before.id)
    await memory.settle(600)
    assert await ids(memory, "Sarah") == {one.id}
    assert await ids(memory, "Sally") == {two.id, three.id, said}
    assert (await memory.get(three.id)).about == ("Sally",)
    assert (await memory.doctor()).ok


async def test_an_alias_can_be_split_into_a_new_entity(memory: Any) -> None:
    await memory.add_entity("Alexander", aliases=["Alex", "Sascha"])
    full = await memory.remember("Alexander plays chess", about=["Alexander"])
    short = await memory.remember("Alex plays tennis", about=["Alex"])
    said = await memory.add("Yesterday Alex called")
    await memory.settle(600)
    kept, other = await memory.split("Alexander", ["Alex"])
    await memory.settle(600)
    assert (kept.aliases, other.name, other.aliases) == (("Sascha",), "Alex", ())
    assert await ids(memory, "Alexander") == {full.id}
    assert await ids(memory, "Alex") == {short.id, said}
    with pytest.raises(InvalidError, match="own name"):
        await memory.split("Alexander", ["Alexander"])
    with pytest.raises(NotFoundError):
        await memory.split("Alexander", ["Alex"])
    with pytest.raises(InvalidError):
        await memory.split("Alexander", [])
    assert (await memory.doctor()).ok


async def test_merging_never_crosses_memories(memory: Any) -> None:
    ann = memory.scoped(Scope(owner="ann", chat="team"))
    await memory.scoped(Scope(owner="", chat="team")).add_entity("Tom")
    await ann.add_entity("Thomas")
    with pytest.raises(ConflictError, match="different owners or chats"):
        await ann.merge("Thomas", "Tom")


async def test_a_profile_describes_a_person(memory: Any, clock: HandClock) -> None:
    await memory.add_entity("Sarah", aliases=["Sal"], relation="жена", protected=True)
    await memory.add_entity("Acme", type="organization")
    await memory.relate("Acme", "employer", source="Sarah", valid_from="2024-01-01")
    await memory.add("Sarah likes it at Acme", at="2025-03-01")
    loved = await memory.remember("Sarah loves tulips", about=["Sarah", "Acme"])
    dropped = await memory.remember("Sarah hates tulips", about=["Sarah"], expires="2026-01-05")
    clock.ms += 10 * DAY
    forgotten = await memory.remember("Sarah paints", about=["Sarah"])
    await memory.forget(forgotten.id)
    await memory.settle(600)
    sarah = await memory.entity("sal")
    assert (sarah.name, sarah.type, sarah.aliases, sarah.relation, sarah.protected) == (
        "Sarah",
        "person",
        ("Sal",),
        "wife",
        True,
    )
    assert [(each.predicate, each.source_name, each.target_name) for each in sarah.relations] == [
        ("employer", "Sarah", "Acme"),
        ("wife", None, "Sarah"),
    ]
    assert [fact.id for fact in sarah.facts] == [loved.id]
    assert dropped.id not in {fact.id for fact in sarah.facts}
    assert sarah.mention_count == 3
    assert sarah.first_seen.isoformat() == "2025-02-28T23:00:00+00:00"
    assert (sarah.last_seen - sarah.first_seen).days > 300
    assert [(each.name, each.together) for each in sarah.related] == [("Acme", 2)]


async def test_a_custom_relation_label_is_kept(memory: Any) -> None:
    entity = await memory.add_entity("Kim", relation="Sparring partner")
    assert entity.relation == "sparring partner"
    assert (await memory.entity("Kim")).relation == "sparring partner"


@pytest.mark.parametrize("name", ["", "  ", "\0", "\ud800", 7, "x" * 600, "!?"])
async def test_an_invalid_name_is_refused_or_unknown(memory: Any, name: Any) -> None:
    with pytest.raises((InvalidError, NotFoundError)):
        await memory.entity(name)
    with pytest.raises((InvalidError, NotFoundError)):
        await memory.merge(name, "Sarah")


async def test_an_unknown_person_is_reported_as_unknown(memory: Any) -> None:
    await memory.add_entity("Sarah")
    for call in (
        memory.entity("Nobody"),
        memory.merge("Sarah", "Nobody"),
        memory.split("Nobody", ["x"]),
        memory.relate("Nobody", "wife"),
    ):
        with pytest.raises(NotFoundError, match="no person or thing is known"):
            await call


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        (("My name is Marta", "I live in Porto", "My daughter is called Mia"), ("me", "about me", "Who am I?")),
        (("Ich heiße Jonas", "Ich wohne in Bonn", "Meine Tochter heißt Mia"), ("ich", "über mich", "Wer bin ich?")),
        (("Меня зовут Лена", "Я живу в Казани", "Мою дочь зовут Мия"), ("я", "обо мне", "Кто я?")),
        (("Me llamo Inés", "Yo vivo en Vigo", "Mi hija se llama Lucía"), ("yo", "sobre mí", "¿Quién soy?")),
        (
            ("Je m'appelle Zoé", "J'habite à Lyon", "Ma fille s'appelle Louise"),
            ("moi", "à propos de moi", "Qui suis-je ?"),
        ),
    ],
)
async def test_the_owner_is_a_person(memory: Any, told: tuple[str, ...], asked: tuple[str, ...]) -> None:
    for name in asked:
        with pytest.raises(NotFoundError):
            await memory.entity(name)
    for text in told:
        await memory.remember(text)
    name = told[0].split()[-1]
    for each in (*asked, name):
        found = await memory.entity(each)
        assert (found.name, found.relation) == (name, "self")
        assert [fact.content for fact in found.facts] == list(told)
        assert [relation.predicate for relation in found.relations] == ["daughter"]


async def test_the_owner_is_told_from_others(memory: Any, clock: HandClock) -> None:
    name = await memory.remember("My name is Marta")
    await memory.remember("Marta plays the cello", origin="agent")
    await memory.remember("Collects stamps", about=["user"], origin="agent")
    await memory.remember("Tom is allergic to cats", about=["Tom"])
    facts = {fact.content for fact in (await memory.entity("me")).facts}
    assert facts == {"My name is Marta", "Marta plays the cello", "Collects stamps"}
    assert (await memory.entity("Tom")).relation is None
    other = memory.scoped(Scope(owner="ben"))
    with pytest.raises(NotFoundError):
        await other.entity("me")
    await other.remember("My friend Marta lives in Rome")
    await other.remember("I live in Oslo")
    assert (await other.entity("Marta")).relation == "friend"
    assert (await other.entity("me")).facts[0].content == "I live in Oslo"
    clock.ms += DAY
    await memory.correct(name.id, "My name is Marta Silva")
    assert (await memory.entity("who am I")).name == "Marta Silva"
    with pytest.raises(NotFoundError):
        await memory.scoped(Scope(owner="", chat="team")).entity("me")


async def test_a_person_is_looked_up_by_a_part_of_the_name(memory: Any) -> None:
    await memory.remember("My friend Katharina Weber lives in Bonn")
    await memory.add_entity("Tom Weber")
    weber = await memory.entity("Katharina")
    assert weber.name == "Katharina Weber"
    assert await ids(memory, "Katharina") == await ids(memory, "Katharina Weber") != set()
    with pytest.raises(InvalidError, match=r"may be any of .*since \d{4}-\d\d-\d\d: "):
        await memory.entity("Weber")
    with pytest.raises(NotFoundError):
        await memory.entity("Kathar")
    with pytest.raises(NotFoundError):  # what deletes wants the whole name
        await memory.erase(entity="Katharina")


@pytest.mark.parametrize("how", ["forget", "forget_where"])
async def test_a_forgotten_statement_takes_its_relation_along(memory: Any, how: str) -> None:
    stated = await memory.remember("My husband is called Tomás")
    await memory.remember("Tomás likes tea")
    assert (await memory.entity("my husband")).name == "Tomás"
    if how == "forget":
        await memory.forget(stated.id)
    else:
        await memory.forget_where(entity="Tomás", protected=True)
    with pytest.raises(NotFoundError):
        await memory.entity("my husband")
    assert [each.relation for each in await memory.people()] == [None]
    assert "husband" not in str(await memory.brief())
    await memory.restore(stated.id)
    assert (await memory.entity("my husband")).name == "Tomás"
    await memory.forget(stated.id)
    (latest,) = await memory.log(1)
    await memory.undo(latest.seq)
    assert (await memory.entity("my husband")).name == "Tomás"


async def test_a_relation_that_something_else_states_stays(memory: Any, clock: HandClock) -> None:
    await memory.add_entity("Tom Berg")
    await memory.relate("Tom Berg", "brother")
    clock.ms += DAY
    told = await memory.remember("My brother is Tom Berg")
    await memory.remember("My wife is Sarah")
    said = await memory.remember("Sarah, my wife, likes tea")
    for node in (told, said):
        await memory.forget(node.id)
    assert (await memory.entity("my brother")).name == "Tom Berg"
    assert (await memory.entity("my wife")).name == "Sarah"


async def test_what_a_message_says_of_a_forgotten_relation_is_gone_too(memory: Any) -> None:
    await memory.add("My wife is Sarah. She likes tea", session="s")
    await memory.settle(600)
    await memory.consolidate("s")
    (fact,) = [node for node in (await memory.list(type="semantic")).nodes if node.content == "My wife is Sarah"]
    await memory.forget(fact.id)
    assert [each.relation for each in await memory.people()] == [None]


@pytest.mark.parametrize(
    "line",
    [
        "My mother is called Helga | My mother's birthday is on 3 May | When is my mother's birthday? | Helga",
        "Mein Vater heißt Karl | Der Geburtstag meines Vaters ist am 3. Mai | Wann hat mein Vater Geburtstag? | Karl",
        "Mein Onkel heißt Fritz | Das Auto meines Onkels ist rot | Welche Farbe hat das Auto meines Onkels? | Fritz",
        "Meine Schwester heißt Lena | Meine Schwester hat am 3. Mai Geburtstag | Wann hat Lena Geburtstag? | Lena",
        "Мою маму зовут Галина | День рождения моей мамы 3 мая | Когда день рождения у моей мамы? | Галина",
        "Mi madre se llama Carmen | El cumpleaños de mi madre es el 3 de mayo | ¿Cuándo cumple años mi madre? | Carmen",
        "Ma mère s'appelle Claire | L'anniversaire de ma mère est le 3 mai | Quand est son anniversaire ? | Claire",
        "Mia madre si chiama Ornella | Il compleanno di mia madre è il 3 maggio | Quando è il compleanno? | Ornella",
        "Minha mãe se chama Helena | O aniversário da minha mãe é 3 de maio | Quando é o aniversário? | Helena",
    ],
)
async def test_a_fact_about_a_relative_is_found_by_the_relation_and_by_the_name(memory: Any, line: str) -> None:
    named, told, question, name = line.split(" | ")
    for facts in ((told, named), ("My brother has a dog", "I live in Rome")):  # the name may come later
        for fact in facts:
            await memory.remember(fact)
    await memory.settle(600)
    assert (await memory.search(question)).hits[0].content == told
    assert told in [hit.content for hit in (await memory.search(told, entity=name)).hits]
    assert told in [node.content for node in (await memory.list(entity=name)).nodes]


@pytest.mark.parametrize("word", ["me", "the user", "ich", "Я"])
async def test_a_later_subject_in_the_owners_own_words_is_the_owner(memory: Any, word: str) -> None:
    stored = await memory.remember("Collects stamps")
    assert (await memory.update(stored.id, about=word)).about == ("the user",)
    assert (await memory.remember("Collects stamps", about=word)).about == ("the user",)
    assert word not in [each.name for each in await memory.people()]


async def test_a_german_word_for_a_relative_or_a_job_is_no_part_of_a_name(memory: Any) -> None:
    await memory.remember("Meine Schwägerin Nele wohnt in Kassel")
    await memory.remember("Juno geht zur Schule, ihre Lehrerin Frau Adler ist streng")
    await memory.remember("Onkel Theo kommt am Sonntag")
    await memory.settle(600)
    assert {each.name for each in await memory.people()} >= {"Nele", "Frau Adler", "Onkel Theo"}
    assert not {each.name for each in await memory.people()} & {"Schwägerin Nele", "Lehrerin Frau Adler"}


@pytest.mark.parametrize(
    ("known", "told", "predicate"),
    [
        ("My partner is called Graham", "Meine Freundin Anke wohnt in Freiburg", "friend"),
        ("Mein Mann heißt Graham", "Meine Freundin heißt Anke", "friend"),
        ("My husband is Graham", "Ma copine Anke habite à Lyon", "friend"),
        ("My husband is Graham", "My girlfriend Anke lives in Lyon", "girlfriend"),
        ("My boss is Graham", "Meine Freundin Anke wohnt in Freiburg", "girlfriend"),
        ("My partner is called Anke", "Meine Freundin Anke wohnt in Freiburg", "girlfriend"),
    ],
)
async def test_a_word_for_partners_and_friends_means_a_friend_beside_a_partner(
    memory: Any, known: str, told: str, predicate: str
) -> None:
    await memory.remember(known)
    await memory.remember(told)
    assert predicate in {each.predicate for each in (await memory.entity("Anke")).relations}


@pytest.mark.parametrize(
    ("older", "newer", "names"),
    [
        (
            "The user's manager at Norrlink is Pernilla Sandqvist.",
            "The user's new manager is Tobias Ek.",
            ("Pernilla Sandqvist", "Tobias Ek"),
        ),
        ("My boss is Karen Hill", "My new boss is Tom Reed", ("Karen Hill", "Tom Reed")),
    ],
)
async def test_a_decision_for_an_agents_note_ends_the_relation_it_replaces(
    memory: Any, older: str, newer: str, names: tuple[str, str]
) -> None:
    async def boss() -> str:
        return (await memory.entity("my boss")).name

    await memory.remember(older, origin="agent")
    await memory.remember(newer, origin="agent")
    assert await boss() == names[0]
    (review,) = await memory.review()
    decided = await memory.resolve(review, decision="replace")
    assert await boss() == names[1]
    await memory.undo(decided.commit)
    assert await boss() == names[0]


@pytest.mark.parametrize(
    ("said", "name", "relation"),
    [
        ("Der Chef des Nutzers ist Karl Braun", "Karl Braun", "boss"),
        ("Mein Chef ist Karl Braun", "Karl Braun", "boss"),
        ("Le chef de l'utilisateur est Paul Morel", "Paul Morel", "boss"),
        ("Il capo dell'utente è Marco Riva", "Marco Riva", "boss"),
        ("El jefe del usuario es Raúl Gómez", "Raúl Gómez", "boss"),
        ("Начальник пользователя - Игорь Петров", "Игорь Петров", "boss"),
    ],
)
async def test_a_relation_is_learnt_from_an_agents_note(memory: Any, said: str, name: str, relation: str) -> None:
    await memory.remember(said, origin="agent")
    assert [(each.name, each.relation) for each in await memory.people()] == [(name, relation)]


@pytest.mark.parametrize("said", ["Mein Vater ist Leitender Arzt", "Mein Bruder ist Deutscher Meister"])
async def test_a_noun_with_a_capital_is_no_name(memory: Any, said: str) -> None:
    await memory.remember(said)
    assert not [each for each in await memory.people() if each.relation]


async def test_a_thing_of_which_people_speak_as_of_somebody_is_nobody(memory: Any) -> None:
    for said in ("Стейджинг живёт на Hetzner", "Деплой переехал на среду", "Стендап переехал на 10:15"):
        await memory.remember(said)
    assert not await memory.people()
