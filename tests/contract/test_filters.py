"""Every combination of conditions answers like the same conditions written in Python."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ricordo.clock import to_ms
from ricordo.model import Change, Closing, Entity, Scope
from ricordo.storage.values import Filter
from tests.contract.backends import BACKENDS, location, open_backend
from tests.storage.making import ME, NOON, WHY, fact

NODES = 150
TYPES = ("episodic", "semantic", "procedural", "opinion")
CATEGORIES = ("preference", "task", None)
TAGS = ("red", "blue", "a%b", "_", '"', "тег")
VALUES = (1, 1.0, True, False, None, "1", "", "x'y", 2**40, -0.5)
SESSIONS = ("s1", "s2", None)
SCOPES = (Scope(owner="me"), Scope(owner="you"), Scope(owner="me", chat="club"), Scope(owner="nobody"))


def minute(number):
    return to_ms(NOON + timedelta(minutes=number))


def a_node(dice, number):
    owner, chat = dice.choice((("me", ""), ("me", ""), ("you", ""), ("", "club")))
    return fact(
        f"node {number}",
        minutes=dice.randrange(20),
        type=dice.choice(TYPES),
        category=dice.choice(CATEGORIES),
        tags=tuple(dice.sample(TAGS, dice.randrange(4))),
        attributes={name: dice.choice(VALUES) for name in dice.sample("abc", dice.randrange(3))},
        session=dice.choice(SESSIONS),
        owner=owner,
        chat=chat,
        expires_at=dice.choice((None, None, NOON - timedelta(days=1), NOON + timedelta(days=1))),
    )


class World:
    """A store of random nodes, and the same nodes as plain values."""

    def __init__(self, where):
        dice = random.Random(4)
        self.loop = asyncio.new_event_loop()
        self.store = open_backend(where)
        self.nodes = [a_node(dice, number) for number in range(NODES)]
        self.closed = {node.id for node in self.nodes if dice.random() < 0.3}
        self.subjects = {node.id for node in self.nodes if dice.random() < 0.2}
        self.mentions = {node.id for node in self.nodes if dice.random() < 0.2}
        self.keys = {}
        self.loop.run_until_complete(self.fill())

    async def fill(self):
        anna = Entity(id="anna", type="person", name="Anna", first_seen=NOON, last_updated=NOON, owner="me")
        close = [Closing(id=node.id, at=NOON, reason="forgotten") for node in self.nodes if node.id in self.closed]
        first = Change(add=tuple(self.nodes), entities=(anna,), subjects=tuple((id_, "anna") for id_ in self.subjects))
        await self.store.write(lambda _: (first, None), scope=ME, reason=WHY, at=NOON)
        for scope in SCOPES:
            mine = tuple(end for end in close if self.sees(scope, self.by_id(end.id)))
            await self.store.write(lambda _, c=mine: (Change(close=c), None), scope=scope, reason=WHY, at=NOON)
        self.keys = await self.store.read(
            lambda tx: {
                node.id: tx.nodes.get(Scope(owner=node.owner, chat=node.chat or None), node.id).key
                for node in self.nodes
            }
        )
        mentioned = [(self.keys[id_], 1) for id_ in self.mentions]
        await self.store.derive(lambda tx: tx.mentions.put_links(mentioned))

    def by_id(self, id_):
        return next(node for node in self.nodes if node.id == id_)

    @staticmethod
    def sees(scope, node):
        return (node.owner, node.chat) in {(scope.owner, ""), ("", scope.chat)}

    def matches(self, scope, filter_, node):
        """What a filter means."""
        at = to_ms(node.event_time)
        shelf = "e" if node.type == "episodic" else "k"
        return (
            self.sees(scope, node)
            and shelf in filter_.shelves
            and (node.id in self.closed) == filter_.archived
            and (not filter_.types or node.type in filter_.types)
            and (not filter_.categories or node.category in filter_.categories)
            and (filter_.entity is None or node.id in self.subjects | self.mentions)
            and set(filter_.tags) <= set(node.tags)
            and all(same(node.attributes, name, value) for name, value in (filter_.where or {}).items())
            and (filter_.session is None or node.session == filter_.session)
            and (filter_.after is None or at >= filter_.after)
            and (filter_.before is None or at < filter_.before)
        )

    def expected(self, scope, filter_):
        return sorted(self.keys[node.id] for node in self.nodes if self.matches(scope, filter_, node))

    def ask(self, question):
        return self.loop.run_until_complete(self.store.read(question))


# A connection pool draws random numbers in a thread of its own, which Hypothesis takes for the strategy's.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")


def same(attributes, name, value):
    """Equal as JSON: true is not 1, and 1 is not 1.0."""
    return name in attributes and type(attributes[name]) is type(value) and attributes[name] == value


@pytest.fixture(scope="module", params=BACKENDS)
def world(request, tmp_path_factory):
    world = World(location(request.param, tmp_path_factory.mktemp("filters") / "memory"))
    yield world
    world.store.close()
    world.loop.close()


def several(of, most=2):
    return some.lists(some.sampled_from(of), max_size=most, unique=True).map(tuple)


FILTERS = some.builds(
    Filter,
    types=several(TYPES),
    shelves=several(("k", "e", "c"), 3),
    categories=several(CATEGORIES[:2]),
    entity=some.sampled_from((None, None, None, 1)),
    tags=several(TAGS),
    where=some.none() | some.dictionaries(some.sampled_from("abcz"), some.sampled_from(VALUES), max_size=2),
    session=some.sampled_from((None, None, "s1", "s2", "s3")),
    after=some.none() | some.integers(0, 20).map(minute),
    before=some.none() | some.integers(0, 20).map(minute),
    archived=some.booleans(),
)


@settings(max_examples=100, deadline=None)
@given(filter_=FILTERS, scope=some.sampled_from(SCOPES))
def test_filters_match_their_conditions(world, filter_, scope):
    assert world.ask(lambda tx: tx.nodes.matching(scope, filter_)).tolist() == world.expected(scope, filter_)


@settings(max_examples=50, deadline=None)
@given(filter_=FILTERS, scope=some.sampled_from(SCOPES), size=some.integers(1, 40))
def test_the_pages_of_a_listing_cover_all_matches_newest_first(world, filter_, scope, size):
    now = to_ms(NOON)
    pages, before = [], None
    while page := world.ask(
        lambda tx: tx.nodes.page(scope, filter_, now=now, before_key=before, limit=size)  # noqa: B023 - called at once
    ):
        pages += [node.key for node in page]
        before = pages[-1]
    gone = {world.keys[node.id] for node in world.nodes if node.expires_at and to_ms(node.expires_at) <= now}
    matches = set(world.expected(scope, filter_))
    # What is closed stays in the archive, expired or not.
    assert pages == sorted(matches if filter_.archived else matches - gone, reverse=True)


@settings(max_examples=50, deadline=None)
@given(filter_=FILTERS, scope=some.sampled_from(SCOPES), start=some.integers(0, 19), most=some.integers(1, 200))
def test_a_time_span_returns_its_latest_matches(world, filter_, scope, start, most):
    found = world.ask(
        lambda tx: tx.nodes.within(scope, filter_, after=minute(start), before=minute(start + 5), most=most)
    ).tolist()
    spanned = Filter(
        **{name: getattr(filter_, name) for name in Filter.__slots__}
        | {"after": minute(start), "before": minute(start + 5)}
    )
    at = {world.keys[node.id]: node.event_time for node in world.nodes}
    wanted = world.expected(scope, spanned)
    assert set(found) <= set(wanted)
    assert len(found) == min(most, len(wanted))
    left = set(wanted) - set(found)
    assert not left or not found or max(at[key] for key in left) <= min(at[key] for key in found)


CONDITIONS = (
    ({"a": {"eq": 1}}, lambda got: same(got, "a", 1)),
    ({"a": {"ne": "1"}}, lambda got: "a" in got and not same(got, "a", "1")),
    ({"a": {"gt": 0, "le": 1}}, lambda got: type(got.get("a")) in (int, float) and 0 < got["a"] <= 1),
    ({"b": {"ge": ""}}, lambda got: isinstance(got.get("b"), str)),
    ({"b": {"lt": 2}}, lambda got: type(got.get("b")) in (int, float) and got["b"] < 2),
    ({"c": {"in": [True, None, 2**40]}}, lambda got: any(same(got, "c", each) for each in (True, None, 2**40))),
    ({"c": {"contains": "'Y"}}, lambda got: isinstance(got.get("c"), str) and "'y" in got["c"]),
    ({"a": {"exists": False}}, lambda got: "a" not in got),
    ({"a": {"exists": True, "ne": 1}}, lambda got: "a" in got and not same(got, "a", 1)),
    ({"not": {"a": 1}}, lambda got: not same(got, "a", 1)),
    ({"or": [{"a": 1}, {"b": {"exists": True}}]}, lambda got: same(got, "a", 1) or "b" in got),
    (
        {"and": [{"a": {"exists": True}}, {"not": {"b": "1"}}], "c": None},
        lambda got: "a" in got and not same(got, "b", "1") and same(got, "c", None),
    ),
    ({"or": []}, lambda got: False),
)


@pytest.mark.parametrize(("where", "meets"), CONDITIONS, ids=[str(where)[:40] for where, _ in CONDITIONS])
def test_a_condition_on_attributes_means_the_same_everywhere(world, where, meets):
    for scope in SCOPES:
        filter_ = Filter(where=where)
        wanted = [
            world.keys[node.id]
            for node in world.nodes
            if world.sees(scope, node) and node.id not in world.closed and meets(node.attributes)
        ]
        found = world.ask(lambda tx, s=scope, f=filter_: tx.nodes.matching(s, f).tolist())
        assert found == sorted(wanted)
