"""Every public method has an example in the reference, and each example runs."""

from __future__ import annotations

import ast
import inspect
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory
from ricordo.language import ScriptedModel
from ricordo.ports import Turn
from ricordo.storage.key import has_cipher

EXAMPLES = tomllib.loads((Path(__file__).parents[2] / "tools/examples.toml").read_text("utf-8"))
METHODS = [
    name for name, method in vars(Memory).items() if not name.startswith("_") and not isinstance(method, property)
]


def test_every_public_method_has_an_example() -> None:
    assert sorted(EXAMPLES["methods"]) == sorted(METHODS)


def least(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> Any:
    """Return the shortest answer that a schema allows."""
    if "$ref" in schema:
        return least(parts[schema["$ref"].rpartition("/")[2]], parts)
    if "anyOf" in schema:
        return least(schema["anyOf"][0], parts)
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: least(each, parts) for name, each in schema.get("properties", {}).items()}
    return {"array": [], "string": "The trip was planned.", "number": 1, "integer": 1, "boolean": True}.get(
        schema.get("type", "")
    )


def brief(turns: Sequence[Turn], schema: Mapping[str, Any]) -> object:
    return least(schema, schema.get("$defs", {})) if schema else "Peanuts."


@pytest.mark.parametrize("name", sorted(EXAMPLES["methods"]))
async def test_the_example_of_a_method_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = EXAMPLES["methods"][name]
    assert f"{'Memory' if name in ('open', 'rekey', 'restore_backup', 'verify_backup') else ''}.{name}(" in example
    if name == "rekey" and not has_cipher():
        pytest.skip("another package brought its own apsw")
    monkeypatch.chdir(tmp_path)
    async with Memory.open("me.db", embedder=None, model=ScriptedModel(brief)) as memory:
        space: dict[str, Any] = {"memory": memory, "Memory": Memory}
        code = compile(EXAMPLES["before"] + example, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if inspect.iscoroutine(running := eval(code, space)):
            await running
