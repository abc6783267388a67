"""The commands consolidate, runs, run and summarise, with a real model server."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.flows.test_consolidation import fact, person, proposal
from tests.interfaces.conftest import Cli
from tests.models.language.serving import ModelServer, said, status


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        server.always = said(
            proposal(
                fact("Sarah likes tea", "e1", about=["Sarah"]),
                fact("Sarah likes jazz"),
                entities=[person("Sarah", "e1")],
                summary="Tea.",
            )
        )
        yield server


def told(cli: Cli) -> None:
    cli("add", "Sarah likes tea, and Boris plays the flute.", "--session", "monday")


def test_a_run_is_shown_and_undone(cli: Cli, server: ModelServer):
    told(cli)
    model = ("--model", f"{server.url}#tiny")
    dry = cli("consolidate", "--dry-run", *model)
    assert (dry.status, "dry run" in dry.out) == (0, True)
    assert "monday: dry run" in cli("runs").out, "it cost tokens"
    done = cli("consolidate", "monday", *model)
    assert done.status == 0
    assert "+ Sarah likes tea" in done.out and "x Sarah likes jazz  has no evidence" in done.out
    assert "tokens in" in done.out and "ricordo run undo" in done.out
    listed = cli("runs", "--json").json["runs"]
    assert listed[0]["model"] == "http:tiny" and listed[0]["sessions"] == ["monday"]
    handle = listed[0]["id"][-8:]
    assert handle in cli("runs").out
    assert "+ Sarah likes tea" in cli("run", "show", handle).out
    again = cli("run", "replay", handle, *model)
    assert "= Sarah likes tea" in again.out and "Nothing was changed" in again.out
    usual = server.always
    server.always = said(proposal(fact("Sarah likes tea", "e1"), fact("Boris plays the flute", "e1")))
    accept_some(cli, handle, *model)
    server.always = usual
    assert "wait again" in cli("run", "undo", handle).out
    states = {run["id"][-8:]: run["state"] for run in cli("runs", "--json").json["runs"]}
    assert states[handle] == "undone" and "done" not in states.values()
    assert cli("consolidate", *model, "--json").json["state"] == "done"
    assert "No conversation is waiting" in cli("consolidate", *model).out


def test_ask_asks_the_model(cli: Cli, server: ModelServer):
    cli("remember", "Sarah likes tea")
    sentence = {"text": "Sarah likes tea.", "evidence": ["m1"]}
    server.always = said({"known": True, "sentences": [sentence]})
    answer = cli("ask", "What does Sarah like?", "--model", f"{server.url}#tiny", "--json").json
    assert (answer["model"], answer["text"]) == ("http:tiny", "Sarah likes tea.")
    assert cli("ask", "What does Sarah like?", "--json").json["model"] is None


def accept_some(cli: Cli, handle: str, *model: str) -> None:
    offered = cli("run", "replay", handle, *model, "--json").json
    number = str([item["what"] for item in offered["items"]].index("added") + 1)
    shown = cli("run", "replay", handle, *model).out
    assert f"{number} +" in shown and "ricordo run accept" in shown
    assert cli("run", "accept", offered["id"], "--item", "99", "--json").status == 2
    assert cli("run", "show", handle, "--item", "1", "--json").status == 2
    part = cli("run", "accept", offered["id"][-8:], "--item", number)
    assert part.status == 0 and "+ Boris plays" in part.out and "ricordo run undo" in part.out
    assert cli("run", "accept", offered["id"], "--json").json["state"] == "done"
    assert cli("run", "accept", "nonsense", "--json").status == 3
    undone = cli("run", "undo", offered["id"][-8:])
    assert undone.status == 0 and "earlier knowledge is back" in undone.out and "wait again" not in undone.out


def test_maintenance_uses_the_model_and_says_what_waits(cli: Cli, server: ModelServer, monkeypatch: pytest.MonkeyPatch):
    told(cli)
    cli("consolidate", "monday")
    assert "the rules have read 1 conversation" in cli("consolidate", "monday").out
    assert "No conversation is waiting" not in cli("consolidate").out
    cli("end-session", "monday")
    without = cli("maintain")
    assert (without.status, "1 conversation waits for a language model" in without.out) == (0, True)
    monkeypatch.setenv("RICORDO_MODEL", f"{server.url}#tiny")
    done = cli("maintain")
    assert "1 conversation became knowledge" in done.out
    assert "sessions  nothing to do" in cli("maintain").out and "No conversation is waiting" in cli("consolidate").out


def test_spending_is_listed_by_day_and_owner(cli: Cli, server: ModelServer):
    assert "No language model was asked" in cli("spending").out
    told(cli)
    cli("consolidate", "--model", f"{server.url}#tiny")
    (use,) = cli("spending", "--json").json["spending"]
    assert (use["model"], use["runs"]) == ("http:tiny", 1) and use["tokens_in"] > 0
    assert "http:tiny" in cli("spending", "--days", "1").out
    assert cli("spending", "--days", "0", "--json").status == 2


def test_model_errors_are_reported_and_other_commands_need_no_model(cli: Cli, server: ModelServer):
    told(cli)
    by_rule = cli("consolidate", "--json")
    assert (by_rule.status, by_rule.json["model"]) == (0, "rules")
    refused = cli("summarise", "monday", "--json")
    assert (refused.status, refused.json["error"]["code"]) == (6, "unavailable")
    server.always = status(500)
    failed = cli("consolidate", "--model", f"{server.url}#tiny")
    assert failed.status == 6 and "answered 500" in failed.out
    assert cli("run", "show", "nope", "--json").status == 3
    assert cli("run", "burn", "nope", "--json").status == 2
    assert cli("consolidate", "--model", "nonsense", "--json").json["error"]["code"] == "invalid"
    assert cli("search", "tea", "--model", "nonsense").status == 0


def test_a_conversation_is_summarised(cli: Cli, server: ModelServer):
    told(cli)
    server.always = said({"summary": "Sarah likes tea."})
    model = ("--model", f"{server.url}#tiny")
    assert cli("summarise", "monday", *model).out.strip() == "Sarah likes tea."
    assert json.loads(cli("summarise", "monday", *model, "--json").out)["summary"] == "Sarah likes tea."
    assert cli("summarise", "tuesday", *model, "--json").status == 3
