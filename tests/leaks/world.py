"""A store with two people and two groups, in which every text, name, id and label of one person is a canary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ricordo import Memory, Message, Scope
from ricordo.ports import Turn
from tests.flows.conftest import confirmed

_LETTERS = "bcdfghjklmnpqrstvwxz"


def extracted(turns: Sequence[Turn], schema: Mapping[str, Any]) -> object:
    """The scripted model's answer: for a conversation, one fact with a word of it, resting on its first message;
    for memories, that they are unchanged.
    """
    if schema["title"] == "Checks":
        return confirmed(turns)
    words = re.findall("zq[a-z]+7", turns[-1].text)
    said = f"About {' '.join(words[:20])}"
    if schema["title"] == "Reflections":
        return {"reflections": [{"text": said, "about": [], "evidence": ["m1", "m2"], "confidence": 0.9}]}
    if schema["title"] == "Summaries":
        return {"summaries": [{"entity": "p1", "text": said, "evidence": ["m1"]}]}
    if schema["title"] == "Causes":
        return {"causes": [{"pair": "p1", "cause": "first", "confidence": 0.9}]}
    return {
        "facts": [
            {
                "text": f"The user likes {words[0]}",
                "evidence": ["1"],
                "kind": "fact",
                "category": "preference",
                "about": [],
                "slot": "",
                "said": True,
                "confidence": 0.9,
            }
        ],
        "entities": [],
        "relations": [],
        "causes": [],
        "summary": f"about {words[0]}",
    }


@dataclass(slots=True)
class World:
    """Forbidden items by kind for some callers; `canaries` are the texts they must not see."""

    texts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    reviews: list[str] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    receipts: list[str] = field(default_factory=list)
    canaries: list[str] = field(default_factory=list)

    @property
    def secret(self) -> frozenset[str]:
        """Return the canaries except those that callers store themselves."""
        told = " ".join((*self.texts[:2], *self.sessions[:2], *self.names[:2])).lower()
        return frozenset(canary for canary in self.canaries if canary not in told)

    def token(self, random: Random) -> str:
        """Return a canary: an invented word that no stemmer changes."""
        made = "zq" + "".join(random.choice(_LETTERS) for _ in range(9)) + "7"
        self.canaries.append(made)
        return made


async def private(memory: Memory, random: Random) -> World:
    """Fill ann's own memory."""
    world = World(owners=["ann"])
    ann = memory.scoped(Scope(owner="ann"))
    for number in range(12):
        session, name = world.token(random), world.token(random).capitalize()
        text = f"I met {name} at the {world.token(random)} and we spoke of {world.token(random)}"
        message = Message(
            text=text,
            speaker=name,
            session=session,
            id=world.token(random),
            attributes={"note": world.token(random)},
            at=f"2025-12-{number + 1:02}T10:00:00Z",
        )
        world.ids += await ann.add_many([message])
        world.texts.append(text)
        world.sessions.append(session)
        world.names.append(name)
    for number in range(12):
        tag, name = world.token(random), world.names[number]
        text = f"{name} lives in {world.token(random).capitalize()}"
        node = await ann.remember(
            text,
            about=[name],
            tags=[tag],
            attributes={"note": world.token(random)},
            id=world.token(random),
            session=world.sessions[number],
        )
        world.ids.append(node.id)
        world.tags.append(tag)
        world.texts.append(text)
    await _changes(ann, world, random)
    run = await ann.consolidate(world.sessions[9])
    assert run.items
    world.runs.append(run.id)
    for text in world.texts[2:5]:
        world.receipts.append((await ann.search(text, receipt=True)).receipt or "")
        world.receipts.append((await ann.keep_question(text)).id)
    await ann.off_record(world.token(random))
    world.entities += [entity.id for entity in await ann.people()]
    world.commits += [commit.seq for commit in await ann.log(200)]
    return world


async def _changes(ann: Memory, world: World, random: Random) -> None:
    """Add data with traces elsewhere: versions, archive, reviews, quarantine, relations, merges."""
    for number in (12, 13):
        corrected = await ann.correct(world.ids[number], f"{world.names[number - 12]} moved to {world.token(random)}")
        world.ids.append(corrected.id)
    await ann.update(world.ids[14], content=f"{world.names[2]} works at {world.token(random)}", tags=[world.tags[2]])
    await ann.forget(world.ids[15], world.token(random))
    await ann.remember(f"my wife is {world.names[4]}")
    await ann.remember(f"My sister lives in {world.token(random).capitalize()}")
    await ann.remember(f"My sister lives in {world.token(random).capitalize()}")
    await ann.remember(f"The museum of {world.token(random)} opens at ten", origin="web")
    await ann.relate(world.names[5], "boss", source=world.names[6])
    await ann.merge(world.names[7], world.names[8])
    await ann.confirm(world.ids[16])
    await ann.reinforce(world.ids[17])
    world.reviews += [review.id for review in await ann.review()]


async def group(memory: Memory, random: Random) -> World:
    """Fill the memory of the team's chat."""
    world = World()
    ann = memory.scoped(Scope(owner="ann", chat="team"))
    for _ in range(6):
        session, name = world.token(random), world.token(random).capitalize()
        text = f"the standup of {name} is at {world.token(random)}"
        world.ids.append(await ann.add(text, speaker=name, session=session, id=world.token(random)))
        node = await ann.remember(f"{name} leads {world.token(random)}", about=[name], tags=["lead"], shared=True)
        world.ids.append(node.id)
        world.texts.append(text)
        world.sessions.append(session)
        world.names.append(name)
    team = memory.scoped(Scope(owner="", chat="team"))
    await team.remember("The team's place is Rome")
    await team.remember("The team's place is Oslo")
    world.entities += [entity.id for entity in await team.people()]
    world.reviews += [review.id for review in await team.review()]
    world.commits += [commit.seq for commit in await team.log(200)]
    return world


async def others(memory: Memory) -> dict[str, Any]:
    """Fill eve's own memory, which is not secret to her."""
    eve = memory.scoped(Scope(owner="eve"))
    for number in range(5):
        await eve.add(f"I spoke with Bob about plan {number}", speaker="Eve", session=f"s{number}")
    kept = await eve.remember("Bob lives in Paris", about=["Bob"], tags=["friend"])
    await eve.remember("my brother is Carl")
    return {"id": kept.id, "name": "Bob"}
