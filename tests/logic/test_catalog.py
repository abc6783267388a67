"""Every capability is in the catalog once, and no entry has a parameter that belongs to the connection."""

from __future__ import annotations

import inspect
import json
import re

import click
import pytest
from tests.interfaces.conftest import ROUTED_BY_OTHER_VERBS

from ricordo import InvalidError, Memory
from ricordo.interfaces.catalog import BOUND, CATALOG, INSTRUCTIONS, NOT_SHOWN, Capability, instructions, routes, tools
from ricordo.interfaces.cli.app import program
from ricordo.interfaces.schema import (
    argument_model,
    check_arguments,
    function_of,
    input_schema,
    output_schema,
    parameters,
)

PUBLIC = {name for name, _ in inspect.getmembers(Memory, inspect.isroutine) if not name.startswith("_")}


def test_a_public_method_is_in_the_catalog_or_left_out_for_a_reason() -> None:
    shown = {each.method for each in CATALOG}
    assert shown - PUBLIC == set()
    assert PUBLIC - shown - set(NOT_SHOWN) == set(), "give it an entry in catalog.py, or a reason in NOT_SHOWN"
    assert shown & set(NOT_SHOWN) == set()


def test_a_method_has_one_route_and_a_tool_one_entry() -> None:
    assert len({each.tool for each in CATALOG}) == len(CATALOG)
    methods = [each.method for each in CATALOG if not each.is_tool_only]
    assert len(set(methods)) == len(methods)
    assert {each.method for each in routes()} == {each.method for each in CATALOG if not each.needs_files}


def test_the_command_line_has_every_capability() -> None:
    verbs = set(program().list_commands(click.Context(program())))
    named = {each.method: each.method.strip("_").replace("_", "-") for each in CATALOG}
    missing = {method for method, verb in named.items() if verb not in verbs} - set(ROUTED_BY_OTHER_VERBS)
    assert missing == set()
    assert set(ROUTED_BY_OTHER_VERBS.values()) <= verbs


@pytest.mark.parametrize("capability", CATALOG, ids=lambda each: each.tool)
@pytest.mark.parametrize("as_tool", [True, False])
def test_no_parameter_names_the_owner_or_the_caller(capability: Capability, as_tool: bool) -> None:
    schema = input_schema(capability, as_tool=as_tool)
    assert argument_model(capability, as_tool=as_tool).model_config["extra"] == "forbid"
    offered = set(schema["properties"]).union(
        *(inner["properties"] for inner in schema.get("$defs", {}).values() if "properties" in inner)
    )
    confirmed = {"owner"} if capability.method == "erase" and not as_tool else set()
    assert offered & (BOUND | {"progress"}) == confirmed


@pytest.mark.parametrize("capability", CATALOG, ids=lambda each: each.tool)
def test_catalog_entries_describe_existing_parameters(capability: Capability) -> None:
    names = set(inspect.signature(function_of(capability)).parameters)
    assert set(capability.notes) | set(capability.renamed) | set(capability.shown or ()) <= names
    assert output_schema(capability)
    assert capability.summary.endswith((".", "?"))


def test_the_profiles_are_as_specified() -> None:
    assert [each.tool for each in tools("core")] == [
        "search_memory",
        "get_briefing",
        "get_entity_info",
        "get_timeline",
        "remember_fact",
        "correct_fact",
        "memory_update",
        "confirm_fact",
        "resolve_review",
        "forget_memory",
    ]
    assert {each.tool for each in tools("keywords")} == {
        "memory_store",
        "memory_query",
        "memory_reinforce",
        "memory_demote",
        "memory_update",
        "resolve_review",
    }
    users_alone = {"staged", "approve", "refuse"}
    users_alone |= {"resolve_many", "forget_where", "update_where"}  # an agent does not decide on much at once
    users_alone |= {"add_document", "documents", "document", "remove_document"}  # the list of tools is short
    users_alone |= {"context_parts", "brief_parts"}  # a tool returns the text
    users_alone |= {"keep_question", "questions", "question", "renew_questions", "drop_question"}
    users_alone |= {"spaces", "chats", "create_space", "set_member", "remove_member"}  # nor who is in a shared space
    assert {each.method for each in tools("full")} == {each.method for each in routes()} - users_alone
    assert [each.tool for each in tools("get_memory, search_memory")] == ["get_memory", "search_memory"]
    with pytest.raises(InvalidError, match="no profile or tool 'nonsense'"):
        tools("core,nonsense")
    assert [each.tool for each in tools("connector,core,fetch")][:3] == ["search", "fetch", "search_memory"]
    assert "up to three times" in instructions("keywords")


@pytest.mark.parametrize("profile", INSTRUCTIONS)
def test_instructions_name_only_tools_the_agent_has(profile: str) -> None:
    names = {each.tool for each in CATALOG}
    said = {word.strip(".,;:()") for word in instructions(profile).split()} & names - {"search", "fetch"}
    assert said <= {each.tool for each in tools(profile)}


def test_invalid_arguments_are_reported_by_name() -> None:
    remember = next(each for each in routes() if each.method == "remember_many")
    for given, complaint in (
        (b'{"facts": [{"content": 5}]}', "facts.0.content"),
        (b'{"facts": [], "owner": "ann"}', "owner"),
        (b'{"facts": [{"content": "x", "origin": "user"}]}', "facts.0.origin"),
        (b"[]", "object"),
        (b"{", "JSON"),
    ):
        with pytest.raises(InvalidError, match=complaint):
            check_arguments(remember, given, as_tool=False)
    found = check_arguments(remember, b'{"facts": [{"content": "tea", "expires": "in 3 days"}]}', as_tool=False)
    assert [(fact.content, fact.expires) for fact in found["facts_"]] == [("tea", "in 3 days")]


def test_every_tool_parameter_is_described() -> None:
    for capability in tools("core") + tools("keywords"):
        assert [each.shown for each in parameters(capability, as_tool=True) if not each.description] == []


@pytest.mark.parametrize("profile", INSTRUCTIONS)
def test_a_profile_names_only_tools_that_it_has(profile: str) -> None:
    """A model cannot call the others, and would promise its user what it cannot do."""
    known, had = {each.tool for each in CATALOG}, {each.tool for each in tools(profile)}
    texts = {each.tool: f"{each.summary} {json.dumps(input_schema(each, as_tool=True))}" for each in tools(profile)}
    texts["instructions"] = instructions(profile)
    missing = {name: {*re.findall(r"\w+", text)} & known - had for name, text in texts.items()}
    assert {name: named for name, named in missing.items() if named} == {}
