"""A small share of `python -m tests.postgres.broken`: clients are killed and the server stops while they write."""

from __future__ import annotations

import os

import pytest

from tests.postgres import broken

pytestmark = pytest.mark.skipif(
    os.environ.get("RICORDO_TEST_POSTGRES") != "1", reason="stops a server of its own, from the package"
)


@pytest.fixture(scope="module")
def server() -> broken.Server:
    return broken.Server()


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing(server):
    assert broken.many_writers(server.address, writers=3, each=80)["wrong"] == []


@pytest.mark.slow
def test_a_killed_client_leaves_whole_commits(server):
    result = broken.kills(server.address, runs=len(broken.POINTS))
    assert result["kills"] == len(broken.POINTS)
    assert result["wrong"] == []


def test_clients_go_on_after_the_server_stopped_at_once(server):
    assert broken.stops(server, runs=1)["wrong"] == []
