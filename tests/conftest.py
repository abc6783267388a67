"""No test depends on timing, because the machine may be busy. What takes longest begins first."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

LONGEST = ("crash", "interfaces", "page", "spaces", "leaks", "contract", "quality", "recall", "adversaries", "devices")
"""Folders with files that take long, often because they start programs. Each file is run by one process, so the last
ones to begin should be short."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONGEST.index(folder) if (folder := _folder(item)) in LONGEST else len(LONGEST))


def _folder(item: pytest.Item) -> str:
    """Return the folder in `tests` that a test is in."""
    here = Path(__file__).parent
    return item.path.relative_to(here).parts[0] if item.path.is_relative_to(here) else ""
