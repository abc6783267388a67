"""Recall tests: files that state what a memory must, may and must not find (docs/how-to/test-recall.md)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ricordo.testing.cases import Case, Suite, load
    from ricordo.testing.runner import Outcome, Report, run

__all__ = ["Case", "Outcome", "Report", "Suite", "load", "run"]


def __getattr__(name: str) -> object:
    """Import the rest on first use, because pytest loads the plugin of this package in every project."""
    if name in __all__:
        from ricordo.testing import cases, runner

        return getattr(cases if name in ("Case", "Suite", "load") else runner, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
