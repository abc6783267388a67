"""Newer facts rank before older ones, and the shares still add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.retrieval.ranking import Ranked, in_succession


def hit(key: int, score: float) -> Ranked:
    return Ranked(key=key, place=0, score=score)


def keys(hits: list[Ranked]) -> list[int]:
    return [each.key for each in hits]


def test_newer_hits_move_right_above_the_older_ones_they_are_linked_with() -> None:
    hits = [hit(1, 0.9), hit(7, 0.8), hit(2, 0.7), hit(3, 0.1)]
    ordered = in_succession(hits, links=[(2, 1), (3, 2)], successors={})
    assert keys(ordered) == [3, 2, 1, 7]
    assert [each.score for each in ordered] == [0.9, 0.9, 0.9, 0.8]
    assert [round(each.moved, 9) for each in ordered] == [0.8, 0.2, 0.0, 0.0]


def test_a_newer_hit_that_ranks_first_already_does_not_pull_the_older_one_up() -> None:
    hits = [hit(2, 0.9), hit(7, 0.8), hit(1, 0.1)]
    assert in_succession(hits, links=[(2, 1)], successors={}) == hits


def test_hits_are_linked_through_memories_that_are_not_hits() -> None:
    assert keys(in_succession([hit(1, 2.0), hit(3, 1.0)], links=[(2, 1), (3, 2)], successors={})) == [3, 1]


def test_a_replaced_fact_gives_its_rank_to_its_successor() -> None:
    hits = [hit(1, 0.9), hit(2, 0.5), hit(3, 0.4)]
    assert keys(in_succession(hits, links=[], successors={1: 3})) == [3, 2]


def test_a_cycle_of_links_ends() -> None:
    assert sorted(keys(in_succession([hit(1, 2.0), hit(2, 1.0)], links=[(1, 2), (2, 1)], successors={}))) == [1, 2]


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=20),
)
def test_hits_only_move_up_and_the_order_follows_the_scores(scores: list[float], links: list[tuple[int, int]]) -> None:
    hits = [hit(key, score) for key, score in enumerate(sorted(scores, reverse=True))]
    before = {each.key: each.score for each in hits}
    ordered = in_succession(hits, links=links, successors={})
    assert sorted(keys(ordered)) == sorted(keys(hits))
    found = [each.score for each in ordered]
    assert found == sorted(found, reverse=True)
    for each in ordered:
        assert each.moved >= 0
        assert each.moved + before[each.key] == pytest.approx(each.score)


def test_a_newer_one_far_below_the_older_one_answers_another_question():
    hits = [hit(key, 10.0 - key) for key in range(1, 8)]
    assert keys(in_succession(hits, links=[(5, 1)], successors={})) == [5, 1, 2, 3, 4, 6, 7]
    assert keys(in_succession(hits, links=[(6, 1)], successors={})) == [1, 2, 3, 4, 5, 6, 7]
    assert keys(in_succession(hits, links=[(9, 1)], successors={})) == [1, 2, 3, 4, 5, 6, 7]
