"""The TypeScript client is in step with the OpenAPI description, and works with a real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces.serving import house, served
from tools.generate_typescript import TARGET, routes, types

from ricordo.interfaces.schema import document

SCRIPT = Path(__file__).with_name("typescript_client.mjs")


def test_the_types_and_routes_are_those_of_the_description() -> None:
    described = document()
    advice = "run: python tools/generate_typescript.py"
    assert (TARGET / "index.d.ts").read_text("utf-8") == types(described), advice
    assert (TARGET / "routes.js").read_text("utf-8") == routes(described), advice


def test_types_follow_the_description() -> None:
    described = document()
    properties: Any = described["components"]["schemas"]["Node"]["properties"]
    properties["flavour"] = {"anyOf": [{"enum": ["sweet", "sour"], "type": "string"}, {"type": "null"}]}
    described["paths"]["/v1/taste_it"] = {"post": {**described["paths"]["/v1/get"]["post"], "operationId": "taste_it"}}
    text = types(described)
    assert 'flavour?: "sweet" | "sour" | null;' in text
    assert "tasteIt(parameters: TasteItParameters, options?: CallOptions): Promise<TasteItResult>;" in text
    assert 'tasteIt: "/v1/taste_it",' in routes(described)


def test_every_route_and_error_has_a_type() -> None:
    text = (TARGET / "index.d.ts").read_text("utf-8")
    methods = set(re.findall(r"^  (\w+)\(", text, re.M))
    assert len(methods - {"constructor", "call", "changes"}) == len(document()["paths"])
    assert '"not_found"' in re.search(r"ErrorCode = (.*);", text)[1]  # type: ignore[index]
    assert "unknown[]" not in text


def test_the_client_needs_no_package() -> None:
    package = json.loads((TARGET / "package.json").read_text("utf-8"))
    assert not {"dependencies", "devDependencies", "peerDependencies"} & package.keys()
    imported = re.findall(r"from \"(.*)\"", (TARGET / "index.js").read_text("utf-8"))
    assert imported == ["./routes.js"] and set(package["files"]) <= {each.name for each in TARGET.iterdir()}


def run(program: Path, url: str, token: str) -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    given = {"RICORDO_URL": url, "RICORDO_TOKEN": token, "CLIENT": str(TARGET / "index.js")}
    done = subprocess.run(
        [node, str(program)], env={**os.environ, **given}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_client_works_with_a_server(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        told = json.loads(run(SCRIPT, server.url, server.token))
        example = (TARGET / "example.ts").read_text("utf-8")
        plain = re.sub(r"^declare .*\n|(?<=\w): (?:Node|Hit\[\])|, type Hit, type Node", "", example, flags=re.M)
        program = tmp_path / "example.mjs"
        program.write_text(plain.replace("./index.js", str(TARGET / "index.js")), "utf-8")
        assert "hazelnuts" in run(program, server.url, server.token)
    assert told["change"][0] and told["ended"]
    assert told["found"] == ["Sarah is allergic to peanuts"] and not set(told["found"]) & set(told["after"])
    assert told["people"] == ["Sarah"]
    assert told["boat"] == "Ünïcode 🌊: my boat is called Marlin"
    assert told["missing"] == [True, "RicordoError", "not_found", 404, True]
    assert (told["invalid"], told["denied"], told["strange"]) == ("invalid", 401, ["error", 502])
    assert told["cancelled"] == "AbortError" and told["methods"] == []
    assert told["speakers"] == [None, None]  # both names are the owner's


async def test_the_client_comes_with_the_package_and_the_server_names_it(tmp_path: Path) -> None:
    built = tomllib.loads((TARGET.parents[1] / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    assert built["targets"]["wheel"]["force-include"] == {"clients/typescript": "ricordo/clients/typescript"}
    async with house(tmp_path / "me.db") as at:
        assert "clients/typescript" in (await at.client(None).get("/docs")).text
