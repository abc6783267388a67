"""LangGraph's `BaseStore` on Ricordo, compared with LangGraph's in-memory store: the same calls, the same answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed: make adapters")

from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from ricordo import InvalidError, NotFoundError, Scope
from ricordo.integrations.langgraph import RicordoStore
from tests.flows.conftest import DAY, HandClock

MINUTE = DAY // 1_440


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def store(tmp_path: Path, clock: HandClock) -> Iterator[RicordoStore]:
    with RicordoStore(tmp_path / "graph.db", embedder="hashing", clock=clock) as opened:
        yield opened


@pytest.fixture(params=["langgraph's", "ricordo's"])
def either(request: pytest.FixtureRequest, store: RicordoStore) -> Any:
    return InMemoryStore() if request.param == "langgraph's" else store


def keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


def test_random_keys_stay_as_they_are(either):
    key = "0b8fd6c4-6f5e-4e0e-9d0a-3f0c8f1f2a77"
    either.put(("memories", key), key, {"text": "allergic to peanuts"})
    assert either.get(("memories", key), key).key == key
    found = either.search(("memories",))[0]
    either.delete(found.namespace, found.key)
    assert either.search(("memories",)) == []


def test_put_get_update_delete(either):
    space = ("users", "ann")
    either.put(space, "prefs", {"theme": "dark", "deep": {"list": [1, None, 2.5, "x"]}})
    item = either.get(space, "prefs")
    assert (item.namespace, item.key) == (space, "prefs")
    assert item.value == {"theme": "dark", "deep": {"list": [1, None, 2.5, "x"]}}
    assert item.created_at.tzinfo is not None and item.updated_at >= item.created_at
    either.put(space, "prefs", {"theme": "light"})
    assert either.get(space, "prefs").value == {"theme": "light"}
    either.delete(space, "prefs")
    either.delete(space, "prefs")
    assert either.get(space, "prefs") is None
    assert either.search(("users",)) == []
    either.put(space, "prefs", {"theme": "blue"})
    assert either.get(space, "prefs").value == {"theme": "blue"}
    assert either.get(("users",), "prefs") is None


def test_equal_items_stay_separate(either):
    for name in ("ann", "bob"):
        either.put(("users", name), "home", {"content": "I live in Rome"})
    either.put(("users", "ann"), "other", {"content": "I live in Milan"})
    assert len(either.search(("users",))) == 3
    either.delete(("users", "ann"), "home")
    assert keys(either.search(("users", "bob"))) == ["home"]
    assert either.get(("users", "bob"), "home").value == {"content": "I live in Rome"}


def test_search_by_prefix_filter_and_page(either):
    for number in range(5):
        either.put(
            ("docs", "a" if number % 2 else "b"),
            f"k{number}",
            {"number": number, "kind": "even" if number % 2 == 0 else "odd", "meta": {"x": number}},
        )
    either.put(("docsother",), "k", {"number": 9})
    assert keys(either.search(("docs", "a"))) == ["k1", "k3"]
    assert sorted(keys(either.search(("docs",), limit=10))) == ["k0", "k1", "k2", "k3", "k4"]
    assert len(either.search((), limit=10)) == 6
    assert len(either.search(("docs",), limit=2)) == 2
    assert len(either.search(("docs",), limit=10, offset=3)) == 2
    for filter_, met in [
        ({"kind": "even"}, ["k0", "k2", "k4"]),
        ({"number": {"$gt": 2}}, ["k3", "k4"]),
        ({"number": {"$gte": 1, "$lt": 3}}, ["k1", "k2"]),
        ({"number": {"$lte": 0}}, ["k0"]),
        ({"number": {"$ne": 0}, "kind": "even"}, ["k2", "k4"]),
        ({"number": {"$eq": 3}}, ["k3"]),
        ({"meta": {"x": 2}}, ["k2"]),
        ({"kind": "none"}, []),
    ]:
        assert sorted(keys(either.search(("docs",), filter=filter_))) == met, filter_
    with pytest.raises(ValueError):
        either.search(("docs",), filter={"number": {"$near": 2}})


def test_namespaces(either):
    for space in [
        ("a", "b", "c"),
        ("a", "b", "d", "e"),
        ("a", "b", "d", "i"),
        ("a", "b", "f"),
        ("a", "c", "f"),
        ("z",),
    ]:
        either.put(space, "k", {"x": 1})
    assert either.list_namespaces(prefix=("a", "b"), max_depth=3) == [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]
    assert either.list_namespaces(suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f")]
    assert either.list_namespaces(prefix=("a", "*", "f")) == [("a", "b", "f"), ("a", "c", "f")]
    assert either.list_namespaces(limit=2, offset=1) == [("a", "b", "d", "e"), ("a", "b", "d", "i")]
    assert len(either.list_namespaces()) == 6


def test_a_batch_reads_previous_values_and_the_last_write_wins(either):
    either.put(("n",), "k", {"v": 0})
    ops = [
        GetOp(("n",), "k"),
        PutOp(("n",), "k", {"v": 1}),
        PutOp(("n",), "k", {"v": 2}),
        SearchOp(("n",)),
        ListNamespacesOp(),
        PutOp(("m",), "k", {"v": 3}),
        GetOp(("m",), "k"),
    ]
    got, _, _, found, spaces, _, nothing = either.batch(ops)
    assert (got.value, [item.value for item in found], spaces, nothing) == ({"v": 0}, [{"v": 0}], [("n",)], None)
    assert (either.get(("n",), "k").value, either.get(("m",), "k").value) == ({"v": 2}, {"v": 3})


async def test_the_same_with_await(either):
    await either.aput(("n",), "k", {"text": "tea"})
    assert (await either.aget(("n",), "k")).value == {"text": "tea"}
    assert keys(await either.asearch(("n",))) == ["k"]
    assert await either.alist_namespaces() == [("n",)]
    await either.adelete(("n",), "k")
    assert await either.aget(("n",), "k") is None


@pytest.mark.parametrize("space", [(), ("a.b",), ("",), ("langgraph", "x"), (1,)])
def test_an_invalid_namespace_is_refused(either, space):
    with pytest.raises(InvalidNamespaceError):
        either.put(space, "k", {"x": 1})


def test_the_best_match_comes_first(store):
    store.put(("notes",), "food", {"content": "Ann is allergic to peanuts"})
    store.put(("notes",), "trip", {"content": "The cabin in Norway is booked for July"})
    store.put(("notes",), "dark", {"content": "peanuts, kept out of the index"}, index=False)
    store.put(("notes",), "part", {"title": "peanuts", "body": "wine"}, index=["body"])
    found = store.search(("notes",), query="peanuts allergy", limit=4)
    assert found[0].key == "food" and found[0].score is not None
    assert next(item for item in found if item.key == "dark").score is None
    assert keys(store.search(("notes",), query="peanuts", filter={"title": "peanuts"})) in (["part"], [])


@pytest.mark.parametrize("embedder", ["default", "hashing"])
def test_of_statements_that_changed_the_newest_comes_first(tmp_path, clock, embedder):
    said = ["I live in Rome", "I'm allergic to peanuts", "My dog is called Rex", "I live in Milan now"]
    said += ["Where do I live?", "My sister lives in Bergen", "My dog is called Max now", "I live in Turin"]
    with RicordoStore(tmp_path / "said.db", embedder=embedder, clock=clock) as opened:
        for key, text in enumerate(said):
            opened.put(("memories", "ann"), str(key), {"text": text})
            clock.ms += DAY

        def found(query: str) -> list[str]:
            return [item.value["text"] for item in opened.search(("memories", "ann"), query=query, limit=8)]

        told = [text for text in found("Where do I live?") if text.startswith("I live in")]
        assert told == ["I live in Turin", "I live in Milan now", "I live in Rome"]
        dogs = [text for text in found("What is my dog called?") if "dog" in text]
        assert dogs == ["My dog is called Max now", "My dog is called Rex"]
        opened.put(("memories", "ann"), "0", {"text": "I live in Oslo"})  # an older item with a newer value
        assert next(text for text in found("Where do I live?") if text.startswith("I live in")) == "I live in Oslo"
        assert opened.get(("memories", "ann"), "3").value == {"text": "I live in Milan now"}


def test_time_to_live(store, clock):
    store.put(("n",), "short", {"x": 1}, ttl=10)
    store.put(("n",), "long", {"x": 2})
    clock.ms += 8 * MINUTE
    assert store.get(("n",), "short") is not None  # its time to live restarts
    clock.ms += 8 * MINUTE
    assert store.get(("n",), "short", refresh_ttl=False) is not None
    clock.ms += 3 * MINUTE
    assert store.get(("n",), "short") is None
    assert keys(store.search(("n",))) == ["long"]
    store.put(("n",), "short", {"x": 3})
    clock.ms += DAY
    assert store.get(("n",), "short").value == {"x": 3}


def test_items_survive_a_restart_and_are_private(tmp_path, store):
    store.put(("n",), "k", {"x": 1})
    store.close()
    with RicordoStore(tmp_path / "graph.db", embedder="hashing") as again:
        assert again.get(("n",), "k").value == {"x": 1}
    with RicordoStore(tmp_path / "graph.db", embedder="hashing", scope=Scope(owner="bob")) as other:
        assert other.get(("n",), "k") is None and other.search(()) == []
        other.put(("n",), "k", {"x": 2})
    with RicordoStore(tmp_path / "graph.db", embedder="hashing") as again:
        assert again.get(("n",), "k").value == {"x": 1}


async def test_the_store_closes_at_the_end_of_an_async_with_block(tmp_path: Path) -> None:
    async with RicordoStore(tmp_path / "a.db", embedder=None) as store:
        await store.aput(("ann",), "food", {"text": "no peanuts"})
        assert [item.key for item in await store.asearch(("ann",))] == ["food"]
    with RicordoStore(tmp_path / "a.db", embedder=None) as store:
        assert store.get(("ann",), "food") is not None


SPACE = ("memories",)


def items_by_hand(store: RicordoStore) -> Any:
    return store._portal.call(store._memory.list(type="any")).nodes


@pytest.mark.parametrize("verb", ["correct", "update"])
def test_an_item_corrected_elsewhere_is_found_by_its_key(store, verb):
    store.put(SPACE, "budget", {"text": "budget 9600 euros", "year": 2026})
    for said in ("budget 11500 euros", "budget 12000 euros"):
        (node,) = items_by_hand(store)
        if verb == "correct":
            store._portal.call(store._memory.correct(node.id, said))
        else:
            store._portal.call(store._memory.update(node.id, content=said))
        assert store.get(SPACE, "budget").value == {"text": said, "year": 2026}
        assert [each.value for each in store.search(SPACE, query="budget")] == [{"text": said, "year": 2026}]
        assert [each.key for each in store.search(SPACE, filter={"text": said})] == ["budget"]
    store.put(SPACE, "budget", {"text": "budget 15000 euros"})
    assert [each.value for each in store.search(SPACE)] == [{"text": "budget 15000 euros"}]
    store.delete(SPACE, "budget")
    assert store.get(SPACE, "budget") is None
    store.put(SPACE, "budget", {"text": "budget 1 euro"})
    assert store.get(SPACE, "budget").value == {"text": "budget 1 euro"}


def test_a_corrected_item_keeps_the_time_of_its_first_put_and_its_place(store, clock):
    for key in ("rent", "budget", "car"):
        store.put(SPACE, key, {"text": f"The {key} is 9600 euros"})
        clock.ms += DAY
    created = store.get(SPACE, "budget").created_at
    for said in ("The budget is 11500 euros since Monday", "The budget is 12000 euros"):
        node = next(each for each in items_by_hand(store) if "budget" in each.content)
        store._portal.call(store._memory.correct(node.id, said))
        corrected = clock.ms
        clock.ms += DAY
        item = store.get(SPACE, "budget")
        assert (item.created_at, item.updated_at.timestamp() * 1000) == (created, corrected)
        assert keys(store.search(SPACE)) == ["rent", "budget", "car"]
    store.put(SPACE, "budget", {"text": "The budget is 1 euro"})
    assert store.get(SPACE, "budget").created_at == created


@pytest.mark.parametrize(
    ("value", "said", "got"),
    [
        ({"a": "tea", "b": ["rice", 3]}, "coffee\nrice", {"a": "coffee", "b": ["rice", 3]}),
        ({"a": "tea", "b": "rice"}, "only coffee", {"a": "tea", "b": "rice", "corrected": "only coffee"}),
        ({"n": 1}, '{"n": 2}', {"n": 2}),
        ({"n": 1}, "two", {"n": 1, "corrected": "two"}),
    ],
)
def test_a_correction_goes_into_the_text_it_changes(store, value, said, got):
    store.put(SPACE, "k", value)
    assert store.get(SPACE, "k").value == value
    store._portal.call(store._memory.correct(items_by_hand(store)[0].id, said))
    assert store.get(SPACE, "k").value == got


def test_a_namespace_is_erased_with_what_was_deleted_before(tmp_path):
    with RicordoStore(tmp_path / "graph.db", embedder=None) as store:
        for user in ("aiko", "leon"):
            store.put(("memories", user), "cat", {"text": f"{user} has a cat called Zyzzyva{user}"})
        store.put(("memories", "aiko"), "dog", {"text": "The former value is Quokka"})
        store.put(("memories", "aiko"), "dog", {"text": "The value is Wombat"})
        store.delete(("memories", "aiko"), "cat")
        report = store.erase(("memories", "aiko"))
        assert [(each.kind, each.count) for each in report.erased] == [("episodic", 2)]
        assert store.list_namespaces() == [("memories", "leon")]
        with pytest.raises(NotFoundError):
            store.erase(("memories", "aiko"))
        with pytest.raises(InvalidError):
            store._portal.call(store._memory.erase(where={"and": []}))
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"Zyzzyvaleon" in left and not any(word in left for word in (b"Zyzzyvaaiko", b"Quokka", b"Wombat"))


@pytest.mark.parametrize("namespace", [(), [], None, "", "memories", ("memories", ""), ("memories", None)])
def test_an_empty_namespace_erases_nothing_and_says_what_to_do(store, namespace):
    for user in ("aiko", "leon"):
        store.put(("memories", user), "cat", {"text": "a cat"})
    store.put(("memories",), "dog", {"text": "a dog"})
    with pytest.raises(InvalidError, match=r"namespace: .* is not .*list_namespaces.*erase\(owner=\.\.\.\)"):
        store.erase(namespace)
    assert len(store.search(())) == 3


ALLERGIES = (
    "Soy alérgica a las nueces",
    "I am allergic to walnuts and to almonds",
    "Ich bin allergisch gegen Walnüsse",
    "Je suis allergique aux noix",
    "Sono allergica alle noci",
    "Sou alérgica a nozes",
    "У меня аллергия на орехи",
    "👍",
)


@pytest.mark.parametrize("text", ALLERGIES)
@pytest.mark.parametrize("way", ["erase", "delete"])
def test_words_erased_or_deleted_for_one_user_are_stored_for_every_user_who_says_them_later(store, clock, text, way):
    marta, lucia = ("memories", "marta"), ("memories", "lucia")
    values = {"alone": {"text": text}, "number": {"n": 5}, "more": {"text": f"¿Qué hago? {text}. Vivo en Gijón."}}
    for key, value in values.items():
        store.put(marta, key, value)
    if way == "erase":
        store.erase(marta)
    else:
        for key in values:
            store.delete(marta, key)
    clock.ms += MINUTE
    for user in (lucia, marta):
        for key, value in values.items():
            store.put(user, key, value)
        assert {key: store.get(user, key).value for key in values} == values
        assert len(store.search(user, query=text)) == len(values)


@pytest.mark.parametrize("page", [{"limit": -1}, {"offset": -1}])
def test_a_page_before_the_first_item_is_refused(store, page):
    store.put(SPACE, "tea", {"text": "likes tea"})
    for query in (None, "tea"):
        with pytest.raises(InvalidError, match="must not be negative"):
            store.search(SPACE, query=query, **page)


@pytest.mark.parametrize("owner", [" ", "\t", "\u00a0"])
def test_an_owner_of_blanks_is_refused(store, owner):
    with pytest.raises(InvalidError, match=r"owner.* is blank"):
        store.scoped(Scope(owner=owner))


def test_one_open_store_serves_many_users(tmp_path):
    with RicordoStore(tmp_path / "graph.db", embedder=None) as store:
        users = {name: store.scoped(Scope(owner=name)) for name in ("tomas", "aiko")}
        files, threads = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
        for name, mine in users.items():
            mine.put(SPACE, "tea", {"text": f"{name} likes tea"})
        for name, mine in users.items():
            assert [each.value["text"] for each in mine.search(SPACE, query="tea")] == [f"{name} likes tea"]
            mine.close()
        assert users["aiko"].get(SPACE, "tea") is not None
        assert threading.active_count() <= threads + 2 and len(list(Path("/proc/self/fd").iterdir())) <= files + 2


def test_values_that_cannot_be_stored_are_named(store):
    with pytest.raises(InvalidError, match="value of 'when' is not JSON"):
        store.put(SPACE, "when", {"at": datetime.now()})
    with pytest.raises(InvalidError, match="value of 'long' has 120,012 characters"):
        store.put(SPACE, "long", {"text": "x" * 120_000})
    assert store.search(SPACE) == []
