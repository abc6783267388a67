"""The named points of the write path at which a process is killed: those of the calls of `faults.reached`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ricordo


def _points() -> Iterator[str]:
    for path in sorted(Path(ricordo.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "faults.reached":
                argument = node.args[0]
                choices = (argument.body, argument.orelse) if isinstance(argument, ast.IfExp) else (argument,)
                yield from (each.value for each in choices if isinstance(each, ast.Constant))


POINTS = tuple(dict.fromkeys(_points()))
