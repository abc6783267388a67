"""Recall tests: files that say what a memory must, may and must not find (docs/how-to/test-recall.md)."""

from ricordo.testing.cases import Case, Suite, load
from ricordo.testing.runner import Outcome, Report, run

__all__ = ["Case", "Outcome", "Report", "Suite", "load", "run"]
