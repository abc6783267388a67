"""The reference backend offers all that the port does, in the same form: so that it can stand for any other."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from ricordo.storage.database import reader
from tests.contract.reference.snapshot import Snapshot
from tests.contract.reference.tables import State

GROUPS = {
    name: getattr(reader, prop.func.__annotations__["return"])
    for name, prop in vars(reader.DatabaseSnapshot).items()
    if hasattr(prop, "func")
}


def _form(method: Any) -> list[tuple[str, Any]]:
    return [(each.name, each.kind) for each in inspect.signature(method).parameters.values()]


@pytest.mark.parametrize("group", GROUPS)
def test_the_reference_answers_every_question_of_a_group_in_the_same_form(group):
    asked, given = GROUPS[group], type(getattr(Snapshot(State()), group))
    for name, method in vars(asked).items():
        if not name.startswith("_") and callable(method):
            assert _form(getattr(given, name)) == _form(method), f"{group}.{name}"
