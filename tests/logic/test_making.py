"""Fast construction equals `__init__`."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from ricordo.making import Maker
from ricordo.model import Commit, Hit, Node


@pytest.mark.parametrize("cls", [Node, Hit, Commit])
def test_all_fields_are_in_init_order(cls):
    values = {field.name: f"the {field.name}" for field in dataclasses.fields(cls)}
    made = Maker(cls)(*values.values())
    assert made == cls(**values)
    assert dataclasses.asdict(made) == values
    assert copy.copy(made) == made
    assert dataclasses.replace(made) == made
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, next(iter(values)), "another")


def test_a_value_too_few_or_too_many_is_an_error():
    values = [field.name for field in dataclasses.fields(Hit)]
    for wrong in (values[:-1], [*values, "one more"]):
        with pytest.raises(ValueError, match="zip"):
            Maker(Hit)(*wrong)
