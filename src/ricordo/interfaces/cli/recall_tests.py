"""The command that runs recall tests, or records a case."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ricordo.errors import InvalidError, RicordoError
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.terminal import Output, dim, safe, table

if TYPE_CHECKING:
    from ricordo.testing import Outcome, Report

_MOST_CONFIGURATIONS = 64


@command
async def test(
    ctx: CommandContext,
    files: Sequence[Path],
    junit: Path | None = None,
    matrix: Sequence[str] = (),
    record: str | None = None,
    receipt: str | None = None,
    **wanted: Any,
) -> Output:
    from ricordo.testing import load, run

    if receipt is not None:
        if record is not None:
            raise InvalidError("record, receipt: give only one of them", hint="a receipt contains its own question")
        record, wanted = await _from_receipt(ctx, receipt, wanted)
    if record is not None:
        return _recorded(ctx, files, record, wanted)
    suites = [load(path) for path in files]
    reports = []
    with ctx.status("Testing…"):
        for configuration in _configurations(matrix):
            reports += [await run(suite, configuration) for suite in suites]
    if junit is not None:
        from ricordo.testing.junit import junit as as_xml

        try:
            await asyncio.to_thread(junit.write_text, as_xml(reports), encoding="utf-8")
        except OSError as error:
            raise InvalidError(f"junit: {junit} cannot be written: {error.strerror}") from error
    failed = sum(len(each.outcomes) - each.passed for each in reports)
    return Output(
        data={"failed": failed, "reports": [_as_data(each) for each in reports]},
        show=lambda out: _show(out, reports),
        exit_status=RicordoError.exit_status if failed else 0,
    )


def _configurations(matrix: Sequence[str]) -> list[dict[str, str]]:
    """Return every combination of the values of a matrix; without a matrix, one empty configuration."""
    values = []
    for row in matrix:
        name, equals, listed = row.partition("=")
        if not equals or not listed:
            raise InvalidError(f"matrix: {row!r} is not NAME=A,B", hint="for example embedder=none,default")
        values.append([(name.strip(), each.strip()) for each in listed.split(",")])
    found = [dict(each) for each in product(*values)]
    if len(found) > _MOST_CONFIGURATIONS:
        raise InvalidError(f"matrix: {len(found)} configurations are too many", hint=f"at most {_MOST_CONFIGURATIONS}")
    return found


async def _from_receipt(ctx: CommandContext, id: str, wanted: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the question of a receipt, and the test case: `wanted` or, by default, its first hit."""
    async with ctx.open() as memory:
        found = await memory.receipt(id)
    if found.question is None:
        raise InvalidError(f"receipt: the question of {id} was erased", hint="give it with --record")
    case = {name: list(value) if isinstance(value, tuple | list) else value for name, value in wanted.items()}
    if not any(case.values()):
        best = next((each.id for each in found.given), None)
        case = {"silent": True} if best is None else {"must": [f"id:{best}"]}
    if found.verb == "context":
        case["in"] = "context"
    if found.verb == "search" and (limit := found.asked.get("limit")) is not None:
        case["limit"] = limit
    return found.question, case


def _recorded(ctx: CommandContext, files: Sequence[Path], question: str, wanted: Mapping[str, Any]) -> Output:
    from ricordo.testing.cases import add_case

    if len(files) != 1:
        raise InvalidError("record: a case is written to exactly one file", hint="give one FILE")
    given = {name: list(value) if isinstance(value, tuple | list) else value for name, value in wanted.items()}
    case = {"ask": question, **{name: value for name, value in given.items() if value}}
    if ctx.owner != "me" or ctx.chat is not None:
        case["for"] = {"owner": ctx.owner} | ({} if ctx.chat is None else {"chat": ctx.chat})
    add_case(files[0], case, store=str(Path(ctx.location).absolute()))
    return Output(data={"case": case}, show=lambda out: out.print(f"Added to {safe(str(files[0]))}."))


def _as_data(report: Report) -> dict[str, Any]:
    return {
        "path": str(report.path),
        "configuration": dict(report.configuration),
        "passed": report.passed,
        "cases": [
            {"ask": each.case.ask, "passed": each.passed, "failures": each.failures, "found": each.found}
            for each in report.outcomes
        ],
    }


def _show(out: Console, reports: Sequence[Report]) -> None:
    """Print the failures of each file and, for several configurations, a table that compares them."""
    for report in reports:
        chosen = ", ".join(f"{name}={value}" for name, value in report.configuration.items())
        head = Text(f"{safe(str(report.path))}", "bold").append(f"  {chosen}" if chosen else "", "cyan")
        style = "green" if report.passed == len(report.outcomes) else "bold red"
        out.print(head.append(f"  {report.passed} of {len(report.outcomes)} passed", style))
        for each in report.outcomes:
            if not each.passed:
                _show_failure(out, each)
    if len({tuple(each.configuration.items()) for each in reports}) > 1:
        _show_matrix(out, reports)


def _show_failure(out: Console, outcome: Outcome) -> None:
    out.print(Text("  ✗ ", "red").append(safe(outcome.case.ask), ""))
    for failure in outcome.failures:
        out.print(Text(f"      {safe(failure)}"))
    for text in outcome.found[:3]:
        out.print(dim(f"      found: {safe(' '.join(text.split()))[:100]}"))


def _show_matrix(out: Console, reports: Sequence[Report]) -> None:
    lines = table("configuration", "passed", "seconds")
    totals: dict[tuple[tuple[str, str], ...], list[Report]] = {}
    for report in reports:
        totals.setdefault(tuple(report.configuration.items()), []).append(report)
    for chosen, same in totals.items():
        passed, cases = sum(each.passed for each in same), [case for each in same for case in each.outcomes]
        name = ", ".join(f"{name}={value}" for name, value in chosen)
        lines.add_row(safe(name), f"{passed} of {len(cases)}", f"{sum(each.seconds for each in cases):.2f}")
    out.print()
    out.print(lines)
