"""Conditions on attributes, wherever `where` is taken."""

from __future__ import annotations

import pytest

from ricordo import InvalidError, Memory


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ({"price": {"less": 3}}, "where.price: 'less' is not an operator"),
        ({"price": {}}, "where.price: no operator"),
        ({"price": {"lt": None}}, "where.price.lt"),
        ({"price": {"lt": True}}, "where.price.lt"),
        ({"price": {"in": 3}}, "where.price.in"),
        ({"price": {"in": [[1]]}}, "where.price.in"),
        ({"price": {"exists": 1}}, "where.price.exists"),
        ({"or": [{"a": 1}, 3]}, "where.or.1"),
        ({"or": [{"a": {"not": 3}}]}, "where.or.0.a"),
        ({"price": [1]}, "where.price"),
        ({"a": {"eq": float("nan")}}, "where"),
        ([1], "where"),
    ],
)
async def test_a_condition_that_is_wrong_is_refused_by_its_place(where, named):
    async with Memory.open(":memory:", embedder=None) as memory:
        with pytest.raises(InvalidError) as refused:
            await memory.list(where=where)
        assert refused.value.message.startswith(named)


async def test_a_condition_narrows_searches_and_lists(tmp_path):
    async with Memory.open(tmp_path / "me.db", embedder=None) as memory:
        cheap = await memory.remember("the red lamp", attributes={"price": 5, "kind": "lamp"})
        dear = await memory.remember("the blue lamp", attributes={"price": 50, "kind": "lamp"})
        bare = await memory.remember("the old lamp")
        under = {"price": {"lt": 10}}
        assert (await memory.search("lamp", where=under)).ids == [cheap.id]
        assert [each.id for each in (await memory.list(where={"not": under})).nodes] == [bare.id, dear.id]
        both = {"kind": "lamp", "or": [{"price": {"in": [5]}}, {"price": {"ge": 50}}]}
        assert {each.id for each in (await memory.list(where=both)).nodes} == {cheap.id, dear.id}
        before = (await memory.log(1))[0].seq
        await memory.update(dear.id, attributes={"price": 1})
        assert [each.id for each in (await memory.list(where=under)).nodes] == [dear.id, cheap.id]
        assert [each.id for each in (await memory.list(where=under, as_of=before)).nodes] == [cheap.id]
