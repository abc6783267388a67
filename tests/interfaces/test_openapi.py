"""The OpenAPI description is correct: generated requests cause no server error and no undescribed answer.

`make fuzz-http` runs many more of them.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from tests.interfaces.serving import Served, served

from ricordo.interfaces.catalog import routes
from ricordo.interfaces.schema import document, path_of

EXAMPLES = int(os.environ.get("RICORDO_HTTP_EXAMPLES", "3"))
OUT = os.environ.get("RICORDO_HTTP_OUT")
"""Path for the results, written after success."""

CANARY = "zyzzyva-4711"


def no_server_error(context: Any, response: Any, case: Any) -> None:
    """503 is expected: no language model is set here."""
    assert response.status_code < 500 or response.status_code == 503, response.text


# The schema allows any text as a time, so refusing an invalid time is correct.
CHECKED = [
    no_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    ignored_auth,
    unsupported_method,
]


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (each for name, each in value.items() if name == "$ref")
        yield from (ref for each in value.values() for ref in _refs(each))
    elif isinstance(value, list):
        yield from (ref for each in value for ref in _refs(each))


def test_every_route_is_described_and_every_reference_resolves() -> None:
    described = document()
    assert set(described["paths"]) == {*map(path_of, routes()), "/v1/import"}
    for ref in _refs(described):
        found: Any = described
        for part in ref.removeprefix("#/").split("/"):
            found = found[part]
    split = described["paths"]["/v1/split"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert split == {"type": "array", "items": {"$ref": "#/components/schemas/Entity"}, "minItems": 2, "maxItems": 2}
    assert '"key"' not in json.dumps(described["components"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("fuzzed"), "--rate", "100000") as started:
        with started.client() as mine:
            for text in (f"Zenobia's locker is {CANARY}", "Tea is at five"):
                assert mine.post("/v1/remember", json={"content": text, "about": ["Zenobia"]}).status_code == 200
        yield started


def _ask(operation: Any, mode: GenerationMode, url: str, headers: dict[str, str]) -> int:
    """Call one operation several times; return how often."""
    asked = 0

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        nonlocal asked
        answer = case.call_and_validate(base_url=url, headers=headers, checks=CHECKED, timeout=120)
        assert CANARY not in answer.text
        asked += 1

    ask()
    return asked


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the generator's own libraries
def test_generated_requests_are_answered_as_described(server: Served) -> None:
    """Call as a second user, who must see nothing of the first."""
    from tests.interfaces.test_served import add_token

    allowed = "read,write,admin,erase"
    other = {"Authorization": f"Bearer {add_token(server, 'bob', '--owner', 'bob', '--access', allowed)}"}
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json", headers=other)
    seen = Counter[str]()
    for result in schema.get_all_operations():
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            seen[mode.value] += _ask(result.ok(), mode, server.url, other)
    assert seen.total() >= len(routes())
    with server.client() as mine:
        assert CANARY in mine.post("/v1/search", json={"text": "Zenobia's locker"}).text
        assert mine.post("/v1/doctor").json()["findings"]
    if OUT:
        report = {"routes": len(routes()), "requests": dict(seen), "server errors": 0, "answers not as described": 0}
        Path(OUT).write_text(json.dumps({**report, "canaries seen": 0}, indent=1) + "\n")


@pytest.mark.slow
def test_the_store_outlives_it(server: Served) -> None:
    assert Path(server.store).stat().st_size > 0
