"""Fading and lifetimes: properties of pure functions."""

from __future__ import annotations

from math import exp, log
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ricordo.decay import DAY_MS, EPHEMERAL, FADED, Vital, due, fades_at, fate, remaining, standing, used, worth
from ricordo.forgetting.gc import removals_to_fit

NOW = 1_767_261_600_000
instants = st.integers(min_value=NOW - 4_000 * DAY_MS, max_value=NOW + 4_000 * DAY_MS)
CATEGORIES = ("preference", "identity", "relationship", "knowledge", "reflection", "summary", *sorted(EPHEMERAL))


def vital(**fields: Any) -> Vital:
    """A memory of full confidence, learnt now and never used."""
    known: dict[str, Any] = {
        "key": 1,
        "id": "a",
        "category": "knowledge",
        "confidence": 1.0,
        "rate": 0.1,
        "score": 0.0,
        "created_at": NOW,
        "reinforced_at": None,
        "valid_from": NOW,
        "expires_at": None,
        "shown": 0,
        "last_access": None,
        "is_said": False,
        "is_inferred": True,
        "is_protected": False,
        "is_frequent": False,
        "size": 10,
    }
    return Vital(**{**known, **fields})


vitals = st.builds(
    vital,
    category=st.sampled_from((None, *CATEGORIES)),
    confidence=st.floats(0, 1),
    rate=st.sampled_from((0.0, 0.01, 0.1, 2)),
    score=st.floats(-10, 10),
    created_at=instants,
    reinforced_at=st.none() | instants,
    valid_from=instants,
    expires_at=st.none() | instants,
    shown=st.integers(0, 10**6),
    last_access=st.none() | instants,
    is_said=st.booleans(),
    is_inferred=st.booleans(),
    is_protected=st.booleans(),
    is_frequent=st.booleans(),
    size=st.integers(1, 10**4),
)


def test_a_memory_of_full_confidence_fades_on_day_71() -> None:
    plain = vital()
    crossing = fades_at(plain)
    assert crossing is not None
    assert abs((crossing - NOW) / DAY_MS - (log(20) / 0.1) ** 1.25) < 1e-6  # 70.09 days
    assert remaining(plain, now=NOW + 70 * DAY_MS) > FADED > remaining(plain, now=NOW + 71 * DAY_MS)
    assert due(plain, now=NOW + 70 * DAY_MS, closes="ephemeral") is None
    assert due(plain, now=NOW + 71 * DAY_MS, closes="ephemeral") == "decayed"


@given(vitals, instants)
def test_retention_is_between_0_and_1_for_any_clock(known: Vital, now: int) -> None:
    assert 0 <= remaining(known, now=now) <= 1
    assert worth(known, now=now) <= standing(known, now=now)


@given(vitals, instants, st.integers(0, 10**9))
def test_retention_never_increases_with_time(known: Vital, now: int, later: int) -> None:
    assert remaining(known, now=now + later) <= remaining(known, now=now)


@given(vitals)
def test_a_memory_fades_at_its_predicted_time(known: Vital) -> None:
    crossing = fades_at(known)
    if crossing is None:
        assert not known.fades
        return
    assert remaining(known, now=crossing + 1_000) <= FADED * (1 + 1e-6)
    if crossing > known.touched_at:
        assert remaining(known, now=crossing - 1_000) >= FADED * (1 - 1e-6)


@given(vitals, instants)
def test_fading_alone_never_closes_what_the_user_said_or_what_is_kept_for_good(known: Vital, now: int) -> None:
    reason = due(known, now=now, closes="ephemeral")
    if known.is_said or known.rate == 0 or known.is_protected or known.is_frequent:
        assert reason != "decayed"
    if known.category not in EPHEMERAL and not known.is_inferred:
        assert reason != "decayed"
    assert (reason == "expired") == (known.expires_at is not None and known.expires_at <= now)


@given(vitals, instants, st.integers(0, 10**9))
def test_a_due_memory_stays_due(known: Vital, now: int, later: int) -> None:
    if due(known, now=now, closes="all") is not None:
        assert due(known, now=now + later, closes="all") is not None


@given(vitals, instants)
def test_being_shown_only_slows_fading(known: Vital, now: int) -> None:
    unseen = known._replace(shown=0, last_access=None)
    assert remaining(known, now=now) >= remaining(unseen, now=now) - 1e-12
    assert (standing(known, now=now), fate(known, "ephemeral")) == (
        standing(unseen, now=now),
        fate(unseen, "ephemeral"),
    )


@given(st.floats(0, 1), st.integers(0, 10**9))
def test_the_bonus_of_use_is_capped_at_one(confidence: float, shown: int) -> None:
    assert confidence <= used(confidence, shown) <= 1
    assert used(0.5, 20) < 0.54 < used(0.5, 40)


@given(st.lists(vitals, max_size=40), st.integers(1, 10**5), instants)
def test_pruning_removes_the_lowest_until_the_rest_fits(known: list[Vital], most: int, now: int) -> None:
    known = [each._replace(key=number) for number, each in enumerate(known)]
    parts = removals_to_fit(known, most=most, now=now)
    gone = [each for part in parts for each in part]
    rest = [each for each in known if each not in gone]
    assert all(each.fades for each in gone)
    assert sum(each.size for each in rest) <= most or not any(each.fades for each in rest)
    assert removals_to_fit(rest, most=most, now=now) == []
    if gone:
        heights = [standing(each, now=now) for each in rest if each.fades]
        assert max(standing(each, now=now) for each in gone) <= min(heights, default=float("inf"))
        before = [each for each in known if each not in gone[: -len(parts[-1])]]
        assert sum(each.size for each in before) > most


def test_retention_after_half_a_year_matches_the_formula() -> None:
    assert abs(remaining(vital(confidence=0.8), now=NOW + 182 * DAY_MS) - 0.8 * exp(-0.1 * 182**0.8)) < 1e-12
