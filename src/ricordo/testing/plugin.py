"""A pytest plugin: each case of a file `*.recall.yaml` is a test. Installing Ricordo activates it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ricordo.testing import Outcome, Report, Suite


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the files of recall tests."""
    if not file_path.name.endswith((".recall.yaml", ".recall.yml")):
        return None
    return RecallFile.from_parent(parent, path=file_path)


class RecallFile(pytest.File):
    """A file of recall tests. Its memory is created once for all cases."""

    _suite: Suite
    _report: Report | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each case."""
        from ricordo.errors import RicordoError
        from ricordo.testing import load

        try:
            self._suite = load(self.path)
        except RicordoError as error:
            raise self.CollectError(str(error)) from None
        for number, case in enumerate(self._suite.cases):
            yield RecallCase.from_parent(self, name=case.ask, number=number)

    def outcome(self, number: int) -> Outcome:
        """Return the outcome of a case. The first call runs all cases."""
        if self._report is None:
            import asyncio
            from concurrent.futures import ThreadPoolExecutor

            from ricordo.testing import run

            with ThreadPoolExecutor(1) as apart:  # this thread may have an event loop
                self._report = apart.submit(lambda: asyncio.run(run(self._suite))).result()
        return self._report.outcomes[number]


class RecallCase(pytest.Item):
    """One case of a file."""

    def __init__(self, *, number: int, **given: Any) -> None:
        super().__init__(**given)
        self._number = number

    def runtest(self) -> None:
        """Fail if the answer does not meet the expectations of the case."""
        outcome = self._file.outcome(self._number)
        if not outcome.passed:
            raise _Failed(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the text that describes a failure."""
        from ricordo.errors import RicordoError

        if isinstance(excinfo.value, RicordoError):
            return str(excinfo.value)
        if not isinstance(excinfo.value, _Failed):
            return super().repr_failure(excinfo, style)
        outcome = excinfo.value.outcome
        return "\n".join((*outcome.failures, "found:", *(f"  {text}" for text in outcome.found or ("nothing",))))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the location of the case, and its name."""
        return self.path, self._number, self.name

    @property
    def _file(self) -> RecallFile:
        assert isinstance(self.parent, RecallFile)
        return self.parent


class _Failed(AssertionError):
    def __init__(self, outcome: Outcome) -> None:
        super().__init__("; ".join(outcome.failures))
        self.outcome = outcome
