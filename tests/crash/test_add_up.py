"""Parts of a long run, added up."""

import pytest

from tests.crash.add_up import added


def test_numbers_are_added_lists_joined_and_seeds_kept():
    one = {"backends": ["a"], "store": "file", "kills": 5, "lost": [], "during": {"add": 2}, "seed": 1}
    other = {"backends": ["a"], "store": "file", "kills": 7, "lost": ["x"], "during": {"add": 1, "gc": 4}, "seed": 2}
    whole = {
        "backends": ["a"],
        "store": "file",
        "kills": 12,
        "lost": ["x"],
        "during": {"add": 3, "gc": 4},
        "seed": [1, 2],
    }
    assert added(one, other) == whole
    assert added(whole, one)["seed"] == [1, 2, 1]


def test_parts_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="parts of one run"):
        added({"store": "file"}, {"store": "folder"})
