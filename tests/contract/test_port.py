"""The reference backend offers all that the port does, in the same form: so that it can stand for any other."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from ricordo.storage import protocol
from tests.contract.reference import ReferenceStore
from tests.contract.reference.snapshot import PastSnapshot, Snapshot
from tests.contract.reference.tables import State

PAST = PastSnapshot(State(), today=State(), commit=0, at=0)
GROUPS = {
    name: getattr(protocol, prop.fget.__annotations__["return"])
    for name, prop in vars(protocol.Snapshot).items()
    if isinstance(prop, property) and prop.fget.__annotations__["return"] not in ("bool", "int")
}


def missing(asked: type, given: Any) -> list[str]:
    """Return the members of a protocol that an object does not have in the same form."""
    members = {name: each for name, each in vars(asked).items() if not name.startswith("_")}
    lacking = [name for name in members if not hasattr(given, name)]
    methods = {name: each for name, each in members.items() if inspect.isfunction(each) and name not in lacking}
    return lacking + [name for name, each in methods.items() if _form(each) != _form(getattr(type(given), name))]


def _form(method: Any) -> list[tuple[str, Any]]:
    return [(each.name, each.kind) for each in inspect.signature(method).parameters.values()]


@pytest.mark.parametrize("group", GROUPS)
def test_the_reference_answers_every_question_of_a_group_in_the_same_form(group):
    assert missing(GROUPS[group], getattr(Snapshot(State()), group)) == []


def test_the_reference_has_all_that_a_store_and_its_snapshots_have():
    assert len(GROUPS) > 15
    assert missing(protocol.Snapshot, Snapshot(State())) == []
    assert missing(protocol.PastSnapshot, PAST) == []
    assert missing(protocol.Store, ReferenceStore("reference://port")) == []
