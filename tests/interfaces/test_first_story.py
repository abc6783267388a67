"""A first story on the command line, with the built-in embedder."""

from __future__ import annotations

from tests.interfaces.conftest import Cli

BUILT_IN = "default"


def found(cli: Cli, question: str, *options: str) -> list[str]:
    """Return the hits of a search, best first."""
    return [hit["content"] for hit in cli("search", question, "--json", *options, embedder=BUILT_IN).json["hits"]]


def test_a_remembered_fact_is_known_later(cli: Cli) -> None:
    for told in (
        ("remember", "I'm allergic to peanuts"),
        ("add", "My wife's name is Sarah"),
        ("remember", "Sarah likes Italian food", "--about", "my wife"),
        ("remember", "My favourite colour is red"),
        ("remember", "I have a dentist's appointment in two weeks", "--expires", "in 2 weeks"),
        ("remember", "My favourite colour is blue"),
    ):
        assert cli(*told, embedder=BUILT_IN).status == 0

    assert "I'm allergic to peanuts" in cli("context", "What should I avoid eating?", embedder=BUILT_IN).out
    assert found(cli, "What does my wife like?")[0] == "Sarah likes Italian food"
    assert cli("entity", "my wife", "--json").json["name"] == "Sarah"
    assert "Sarah" in cli("people").out
    assert "about Sarah" in cli("search", "What does my wife like?", embedder=BUILT_IN).out

    colours = found(cli, "What's my favourite colour?")
    assert colours[0] == "My favourite colour is blue"
    assert "My favourite colour is red" not in colours
    assert found(cli, "favourite colour", "--archived") == ["My favourite colour is red"]
    assert found(cli, "dentist")[0] == "I have a dentist's appointment in two weeks"
