"""Consolidation of the demo's two evenings."""

from __future__ import annotations

from ricordo import Memory, Settings
from ricordo.interfaces.demo import TIME_ZONE, DemoClock, learn, scripted_model


async def test_two_evenings_become_knowledge_and_change_what_an_agent_gets():
    settings = Settings(time_zone=TIME_ZONE, durability="process")
    async with Memory.open(
        ":memory:", embedder="hashing", model=scripted_model(), settings=settings, clock=DemoClock()
    ) as memory:
        learnt = await learn(memory)
        first, second = learnt.runs
        assert {item.what for item in first.items} - {"entity"} == {"added", "cause", "summary", "refused"}
        assert {item.reason for item in first.items if item.what == "refused"} == {
            "has no evidence",
            "rests on the assistant's own words",
        }
        assert [item.text for item in second.items if item.what == "replaced"] == ["Sarah eats fish but no meat"]
        (boss,) = (await memory.entity("Sarah")).relations
        assert (boss.source_name, boss.predicate, boss.target_name) == ("Jonas", "boss", "Sarah"), "Jonas said so"
        assert (await memory.stats()).edges["causal"] == 2
        _, then, now = learnt.contexts
        assert then is not None and "eats fish but no meat (about Sarah)" in then
        assert now is not None and "eats plants alone (about Sarah)" in now
        assert all("eats plants alone" in line for line in now.splitlines() if "fish but no meat" in line), (
            "as what was"
        )
        await memory.undo(second.id)
        back = await memory.search("What does Sarah eat?", type="semantic")
        assert "Sarah eats fish but no meat" in [hit.content for hit in back.hits]
