"""Trust levels, and what each may do to other memories."""

from __future__ import annotations

from itertools import product
from typing import get_args

from ricordo.model import Origin, Role, Trust
from ricordo.trust import capped, is_untrusted, least_of, lower, may_override, role_of_derived, trust_of

TIERS: tuple[Trust, ...] = get_args(Trust)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
ROLES: tuple[Role | None, ...] = (*get_args(Role), None)


def test_the_role_never_lifts_an_origin_nor_the_origin_a_role() -> None:
    for origin, role in product(ORIGINS, ROLES):
        assert lower(trust_of(origin, role), trust_of(origin, "user")) == trust_of(origin, role)
        assert lower(trust_of(origin, role), trust_of("user", role)) == trust_of(origin, role)


def test_only_an_assistant_that_notes_user_statements_overrides_higher_trust() -> None:
    for new, old in product(TIERS, TIERS):
        if is_untrusted(new) and lower(new, old) == new != old:
            assert not may_override(new, old)
        else:
            assert may_override(new, old)
    assert may_override("agent", "user")


def test_capped_trust_is_at_most_that_of_the_caller() -> None:
    for origin, role, caller in product(ORIGINS, ROLES, TIERS):
        before, after = trust_of(origin, role), trust_of(capped(origin, role, caller=caller), role)
        assert after == lower(before, caller)


def test_derived_trust_is_that_of_the_least_trusted_source() -> None:
    for one, other in product(TIERS, TIERS):
        derived = trust_of("extraction", role_of_derived([one, other]))
        assert lower(derived, least_of([one, other])) == derived or (derived, least_of([one, other])) == ("tool", "web")
