"""Random histories through the public API, with a clock that sometimes goes back."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from ricordo import ConflictError, Message, NotFoundError, RicordoError, Settings
from ricordo import Memory as AsyncMemory

START = 1_767_261_600_000  # 2026-01-01T10:00Z
HOUR = 3_600_000

PEOPLE = ("Anna", "Boris", "Chiara", "Dan Smith", "Эмма")
NICKNAMES = ("Annie", "Bo", "Kia", "Smithy", "Эм")
THINGS = ("tea", "the red bicycle", "a flat in Porto", "chess", "peanuts", "the night train")
RELATIONS = ("wife", "boss", "brother")
STATES = ("lives in", "works for", "was named by", "speaks")
VERBS = ("likes", "sold", "asked about", "is afraid of", "bought")


class HandClock:
    """A clock that tests move by hand, forwards and backwards."""

    def __init__(self, ms: int = START) -> None:
        self.ms = ms

    def now(self) -> int:
        return self.ms


class History:
    """A memory with random actions. `ids` are all memories that ever existed."""

    def __init__(
        self, memory: AsyncMemory, clock: HandClock, path: Path, *, seed: int, acts: Sequence[Choice] | None = None
    ) -> None:
        self.memory: Any = memory
        self.clock = clock
        self.path = path
        self.dice = random.Random(seed)
        self.acts = ACTS if acts is None else acts
        self.ids: list[str] = []
        self.entities: list[str] = []

    async def step(self) -> str:
        """Perform a random action and return it. A refused action changes nothing."""
        self.clock.ms += self.dice.choice((0, 1, HOUR, 30 * HOUR, -2 * HOUR, -1))
        acts = [act for act in self.acts if act[0] is None or hasattr(self.memory, act[0])]
        _, act = self.dice.choice(acts)
        try:
            await act(self)
        except RicordoError as error:
            return f"{act.__name__}: {error}"
        return act.__name__

    async def commit(self) -> int:
        """Return the number of the last commit."""
        commits = await self.memory.log(1)
        return int(commits[0].seq) if commits else 0

    def sentence(self) -> str:
        who = self.dice.choice(PEOPLE + NICKNAMES)
        return f"{who} {self.dice.choice(VERBS)} {self.dice.choice(THINGS)} {self.dice.randrange(50)}"

    def known(self) -> str:
        if not self.ids:
            raise NotFoundError("nothing yet")
        return self.dice.choice(self.ids)


Act = Callable[[History], Awaitable[None]]
Choice = tuple[str | None, Act]


async def add(at: History) -> None:
    speaker = at.dice.choice((*PEOPLE, None))
    at.ids.append(await at.memory.add(at.sentence(), speaker=speaker, session=at.dice.choice(("s1", "s2", None))))


async def add_many(at: History) -> None:
    messages = [
        Message(text=at.sentence(), session=at.dice.choice(("s1", "s3"))) for _ in range(at.dice.randrange(1, 5))
    ]
    at.ids += await at.memory.add_many(messages)


async def remember(at: History) -> None:
    about = at.dice.sample(PEOPLE, at.dice.randrange(3))
    expires = at.dice.choice((None, None, "in 3 days"))
    session = at.dice.choice((None, "s4"))
    node = await at.memory.remember(
        at.sentence(), about=about, expires=expires, session=session, tags=at.dice.choice(((), ("x",)))
    )
    at.ids.append(node.id)


async def forget(at: History) -> None:
    await at.memory.forget(at.known())


async def restore(at: History) -> None:
    await at.memory.restore(at.known())


async def add_entity(at: History) -> None:
    place = at.dice.randrange(len(PEOPLE))
    entity = await at.memory.add_entity(
        PEOPLE[place], aliases=at.dice.choice(((), (NICKNAMES[place],), (NICKNAMES[place],)))
    )
    at.entities.append(entity.id)


async def end_session(at: History) -> None:
    await at.memory.end_session(at.dice.choice(("s1", "s2", "s3")))


async def undo(at: History) -> None:
    last = await at.commit()
    number = at.dice.randrange(max(1, last - 6), last + 1) if last else 1
    await at.memory.undo(number, with_later=at.dice.random() < 0.3)


async def correct(at: History) -> None:
    at.ids.append((await at.memory.correct(at.known(), at.sentence())).id)


async def update(at: History) -> None:
    await at.memory.update(at.known(), content=at.dice.choice((None, at.sentence())), tags=["t"])


async def confirm(at: History) -> None:
    await at.memory.confirm(at.known())


async def reinforce(at: History) -> None:
    await at.memory.reinforce(at.known())


async def demote(at: History) -> None:
    await at.memory.demote(at.known())


async def merge(at: History) -> None:
    keep, other = at.dice.sample(PEOPLE, 2)
    await at.memory.merge(keep, other)


async def split(at: History) -> None:
    place = at.dice.randrange(len(PEOPLE))
    await at.memory.split(PEOPLE[place], [NICKNAMES[place]])


async def relate(at: History) -> None:
    await at.memory.relate(at.dice.choice(PEOPLE), at.dice.choice(RELATIONS))


async def tell_of_a_relation(at: History) -> None:
    said = f"my {at.dice.choice(RELATIONS)} {at.dice.choice(VERBS)} {at.dice.choice(THINGS)}"
    at.ids.append(await at.memory.add(said, session="s1"))


async def move(at: History) -> None:
    who, where = at.dice.choice(PEOPLE[:2]), at.dice.choice(("Rome", "Paris", "Terry"))
    node = await at.memory.remember(f"{who} {at.dice.choice(STATES)} {where}", about=[who])
    if node.id not in at.ids:
        at.ids.append(node.id)


async def resolve(at: History) -> None:
    open_reviews = await at.memory.review()
    if not open_reviews:
        raise NotFoundError("nothing to decide")
    decision = at.dice.choice(("replace", "keep both", "keep old"))
    await at.memory.resolve(at.dice.choice(open_reviews), decision=decision)


ACTS: tuple[Choice, ...] = (
    (None, add),
    (None, add),
    (None, add_many),
    (None, remember),
    (None, remember),
    (None, forget),
    (None, forget),
    (None, restore),
    (None, add_entity),
    (None, end_session),
    ("undo", undo),
    ("correct", correct),
    ("update", update),
    ("confirm", confirm),
    ("reinforce", reinforce),
    ("demote", demote),
    ("merge", merge),
    ("split", split),
    ("relate", relate),
    ("relate", tell_of_a_relation),
    ("resolve", move),
    ("resolve", move),
    ("resolve", resolve),
)
"""The possible actions and their methods; an action without a method is skipped."""

OPTIONS: dict[str, Any] = {"embedder": "hashing", "settings": Settings(durability="process")}

__all__ = ["HOUR", "OPTIONS", "PEOPLE", "ConflictError", "HandClock", "History"]
