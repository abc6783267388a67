"""Relations that a model proposes need evidence that states them, and never override a person's own word."""

from __future__ import annotations

from typing import Any

from tests.flows.test_consolidation import contents, fact, opened, person, proposal  # noqa: F401  # a fixture

NOT_STATED = "its evidence does not state the relation"


def relation(source: str, predicate: str, target: str, *evidence: str) -> dict[str, Any]:
    return {"source": source, "predicate": predicate, "target": target, "evidence": list(evidence)}


async def wife(memory: Any) -> str:
    return (await memory.entity("my wife")).name


async def test_a_guess_does_not_replace_a_wife(opened):  # noqa: F811
    memory = await opened(proposal(entities=[person("Ingrid", "e1", relation="wife")]))
    await memory.remember("My wife is Olga")
    await memory.add("I met Ingrid at the tram stop, Olga was late.", session="s")
    run = await memory.consolidate("s")
    assert await wife(memory) == "Olga"
    assert [item.reason for item in run.items if item.what == "refused"] == [NOT_STATED]


async def test_a_relation_that_would_end_another_waits_for_review(opened):  # noqa: F811
    memory = await opened(proposal(entities=[person("Ingrid", "e1", relation="wife")]))
    await memory.remember("My wife is Olga")
    await memory.add("All is well with the family, and Ingrid says as wife she is happy.", session="s")
    await memory.consolidate("s")
    assert await wife(memory) == "Olga"
    (review,) = await memory.review(kind="quarantine")
    assert review.newer.content == "The user's wife is Ingrid" and "another one is known" in review.reasons


async def test_an_invented_relation_between_others_is_refused(opened):  # noqa: F811
    people = [person("Ingrid", "e1"), person("Olga", "e1")]
    memory = await opened(proposal(entities=people, relations=[relation("Ingrid", "murderer", "Olga", "e1")]))
    await memory.add("I met Ingrid at the tram stop, Olga was late.", session="s")
    run = await memory.consolidate("s")
    assert NOT_STATED in {item.reason for item in run.items}
    assert not (await memory.entity("Ingrid")).relations


async def test_a_relation_that_is_said_is_kept_and_listed_in_the_run(opened):  # noqa: F811
    memory = await opened(proposal(entities=[person("Tom", "e1", relation="boss")]))
    await memory.add("Tom, who has been my boss at the mill since May, shouts a lot.", session="s")
    run = await memory.consolidate("s")
    assert (await memory.entity("my boss")).name == "Tom"
    assert [item.text for item in run.items if item.what == "relation"] == ["boss"]


async def test_an_alias_of_a_known_person_makes_no_second_person(opened):  # noqa: F811
    robert = person("Robert", "e1", aliases=["Bob"])
    memory = await opened(proposal(fact("Bob plays chess", "e2", about=["Bob"]), entities=[robert]))
    await memory.add_entity("Robert")
    await memory.add("Robert came by; we call him Bob.", session="s")
    await memory.add("Bob plays chess.", session="s")
    await memory.consolidate("s")
    assert [each.name for each in await memory.people()] == ["Robert"]
    known = await memory.entity("Bob")
    assert known.name == "Robert" and "Bob" in known.aliases
    assert [node.content for node in known.facts] == ["Bob plays chess"]
    assert await contents(memory) == {"Bob plays chess"}
