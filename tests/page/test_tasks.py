"""Tasks of people who have never seen the page: one try of each of ten; `make tries` does five of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2", reason="the extra `server` is not installed")

from tests.page.browsing import chromium, demo_config, serving
from tests.page.tries import KINDS, TASKS, tried

SHARE = [
    pytest.param(number, (number + 2) % len(KINDS), id=f"{task.__name__}-{KINDS[(number + 2) % len(KINDS)].name}")
    for number, task in enumerate(TASKS)
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize(("number", "route"), SHARE)
def test_a_visitor_does_it_from_the_page_alone(browser: Any, tmp_path: Path, number: int, route: int) -> None:
    with serving(demo_config(tmp_path)) as site:
        assert not tried(browser, site, TASKS[number], route).problem
