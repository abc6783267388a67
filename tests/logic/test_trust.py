"""Tiers: who is believed, and what they may do to what others said."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from ricordo.errors import DeniedError
from ricordo.model import Origin, Role, Trust
from ricordo.trust import (
    awaits_a_word,
    capped,
    check_may_alter,
    is_untrusted,
    least_of,
    lower,
    may_decide,
    may_override,
    role_of_derived,
    trust_of,
)

TIERS: tuple[Trust, ...] = get_args(Trust)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
ROLES: tuple[Role | None, ...] = (*get_args(Role), None)


def test_the_role_never_lifts_an_origin_nor_the_origin_a_role() -> None:
    for origin, role in product(ORIGINS, ROLES):
        assert lower(trust_of(origin, role), trust_of(origin, "user")) == trust_of(origin, role)
        assert lower(trust_of(origin, role), trust_of("user", role)) == trust_of(origin, role)


def test_nobody_overrides_upwards_but_an_assistant_who_notes_what_the_user_says() -> None:
    for new, old in product(TIERS, TIERS):
        if is_untrusted(new) and lower(new, old) == new != old:
            assert not may_override(new, old)
        else:
            assert may_override(new, old)
    assert may_override("agent", "user")


def test_what_is_capped_is_believed_no_more_than_its_caller_and_no_less_than_it_was() -> None:
    for origin, role, caller in product(ORIGINS, ROLES, TIERS):
        before, after = trust_of(origin, role), trust_of(capped(origin, role, caller=caller), role)
        assert after == lower(before, caller)


def test_what_is_derived_is_believed_no_more_than_its_least_source() -> None:
    for one, other in product(TIERS, TIERS):
        derived = trust_of("extraction", role_of_derived([one, other]))
        assert lower(derived, least_of([one, other])) == derived or (derived, least_of([one, other])) == ("tool", "web")


def test_only_the_user_decides_and_only_who_speaks_for_them_alters() -> None:
    assert [tier for tier in TIERS if may_decide(tier)] == ["user"]
    assert [tier for tier in TIERS if awaits_a_word(tier)] == ["tool", "web"]
    for tier in ("import", "tool", "web"):
        with pytest.raises(DeniedError):
            check_may_alter(tier)
    check_may_alter("agent")
