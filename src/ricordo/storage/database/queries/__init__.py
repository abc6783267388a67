"""The named statements of the `.sql` files beside this module."""

from __future__ import annotations

from ricordo.storage.sql import named_statements


def statements() -> dict[str, str]:
    """Return every statement by name."""
    return named_statements(__package__)


def sql(name: str) -> str:
    """Return the statement of a name."""
    return statements()[name]
