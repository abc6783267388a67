"""The structure that import-linter cannot check: no import cycles, no SQL above storage, the formatter always wins."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
MODULES = {
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): path for path in SRC.rglob("*.py")
}
SPEAKS_SQL = re.compile(r"^ricordo\.(storage|host\.journal)\b")
STATEMENT = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|PRAGMA)\b", re.S
)


def test_no_modules_import_each_other() -> None:
    """Imports for types and imports inside functions count."""
    graph = {name: set(_imported(path)) - {name} for name, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(reversed(error.args[1]))}")


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield from _known(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield from _known(alias.name)


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _known(name: str) -> Iterator[str]:
    """The module that a dotted name lies in, if it is ours."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    if name:
        yield name


@pytest.mark.parametrize("name", sorted(name for name in MODULES if not SPEAKS_SQL.match(name)))
def test_nothing_above_storage_speaks_sql_or_names_a_statement(name: str) -> None:
    nodes = list(ast.walk(_parsed(MODULES[name])))
    called = {
        node.args[0].value
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("rows", "value", "each", "counts", "rows_of_store")
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert not called & _statements()
    assert not [text for text in texts if STATEMENT.search(text)]


@cache
def _statements() -> set[str]:
    queries = [each for each in (files("ricordo.storage.database") / "queries").iterdir() if each.name.endswith(".sql")]
    found = {name for each in queries for name in re.findall(r"-- name: (\w+)", each.read_text(encoding="utf-8"))}
    assert len(found) > 100, "the names of the statements were not found"
    return found


def test_the_formatter_decides_every_line_break() -> None:
    exempt = "# fmt" + ": "
    trees = [ROOT / name for name in ("src", "tests", "tools", "benchmarks", "examples")]
    found = [path for tree in trees for path in tree.rglob("*.py") if exempt in path.read_text(encoding="utf-8")]
    assert not found
