"""Tools for an agent in the same process: name, description, schema, and the call.

An adapter for each framework turns these into the framework's own tools. The memory they are given decides the owner,
and what an agent writes is trusted as an agent's word. Besides the tools of the catalog there are the nine operations
of the write path, for an agent that reads conversations in the background. Do not give those to the agent that talks
to the user: what they read and write is not the user's word.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from ricordo.consolidation.judge import ProposedEntity, ProposedFact, ProposedRelation
from ricordo.consolidation.operations import Operations
from ricordo.errors import InvalidError, RicordoError
from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.catalog import WRITE_PATH, Capability, instructions, tools
from ricordo.interfaces.schema import first_problem, input_schema
from ricordo.interfaces.serialize import as_text
from ricordo.trust import check_may_alter

if TYPE_CHECKING:
    from ricordo.memory import Memory


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: `parameters` is the JSON schema of its arguments."""

    agent: _Agent
    capability: Capability

    @property
    def name(self) -> str:
        return self.capability.tool

    @property
    def description(self) -> str:
        return self.capability.summary

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(input_schema(self.capability, as_tool=True))

    async def __call__(self, arguments: Mapping[str, Any] | str) -> str:
        """Return the answer as text. An error is part of the answer, so that a model can correct its call."""
        try:
            return as_text(await self.agent.call(self.capability, json_object(arguments)))
        except RicordoError as error:
            return f"Error: {error}"


def json_object(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return a tool's arguments as a dict.

    Raises:
        InvalidError: They are not a JSON object.
    """
    try:
        given = json.loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments)
    except ValueError as error:
        raise InvalidError("the arguments are not valid JSON", hint="send a JSON object") from error
    if not isinstance(given, dict):
        raise InvalidError("the arguments are not a JSON object", hint="send a JSON object")
    return given


class _Agent:
    """The agent behind the tools. Its dispatcher is made at the first call: only then is there an event loop."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._dispatcher: Dispatcher | None = None

    async def call(self, capability: Capability, arguments: dict[str, Any]) -> Any:
        if self._dispatcher is None:
            self._dispatcher = Dispatcher(self._opened())
        scope = self._memory.scope
        caller = Caller(owner=scope.owner, chat=scope.chat, trust="agent")
        return await self._dispatcher.call(capability, arguments, caller=caller, as_tool=True)

    async def _opened(self) -> Memory:
        return self._memory


def agent_tools(memory: Memory, profile: str = "core") -> tuple[Tool, ...]:
    """Return the tools of a profile, for the caller that `memory` is scoped to.

    Raises:
        InvalidError: There is no such profile or tool.
    """
    agent = _Agent(memory)
    return tuple(Tool(agent, each) for each in tools(profile))


async def agent_instructions(memory: Memory, prompt: str, profile: str = "core") -> str:
    """Return what to tell an agent before it answers: how to use its memory, and what is known about the prompt."""
    block = await memory.context(prompt) if prompt.strip() else None
    return f"{instructions(profile)}\n\n{block}" if block else instructions(profile)


# the write path

WRITE_TOOL_NAMES = (
    "is_session_consolidated",
    "get_session_episodes",
    "save_nodes_batch",
    "extract_and_link_entities",
    "detect_conflicts",
    "resolve_conflict",
    "mark_session_consolidated",
    "save_causal_edges",
    "update_entity_summary",
)
"""The operations, in the order in which an agent uses them."""

WRITE_INSTRUCTIONS: str = WRITE_PATH["instructions"]
"""The prompt for such an agent."""

_TYPES: Mapping[str, Any] = {
    "nodes": list[ProposedFact],
    "entities": list[ProposedEntity],
    "relations": list[ProposedRelation],
    "pairs": list[dict[str, str]],
    "ids": list[str],
    "evidence": list[str],
    "session": str,
    "page": int,
    "new": str,
    "old": str,
    "confidence": float,
    "summary": str,
    "entity": str,
}


@dataclass(frozen=True, slots=True)
class WriteTool:
    """One operation as a tool."""

    operations: _Run
    name: str

    @property
    def description(self) -> str:
        """What a model reads before it chooses."""
        return " ".join((inspect.getdoc(getattr(Operations, self.name)) or "").split())

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        taken = _write_parameters(self.name)
        schema = {name: TypeAdapter(_TYPES[name]).json_schema() for name in taken}
        defs = {name: each for part in schema.values() for name, each in part.pop("$defs", {}).items()}
        required = [name for name, each in taken.items() if each.default is inspect.Parameter.empty]
        whole = {"type": "object", "properties": schema, "required": required, "additionalProperties": False}
        return {**whole, "$defs": defs} if defs else whole

    async def __call__(self, arguments: Mapping[str, Any] | str) -> str:
        """Return the answer as JSON. An error is part of the answer, so that a model can correct its call."""
        try:
            given = _check_write_arguments(self.name, arguments)
            return json.dumps(await getattr(self.operations.all, self.name)(**given), ensure_ascii=False)
        except RicordoError as error:
            return json.dumps({"error": str(error)}, ensure_ascii=False)


def _write_parameters(name: str) -> dict[str, inspect.Parameter]:
    return {key: each for key, each in inspect.signature(getattr(Operations, name)).parameters.items() if key != "self"}


def _check_write_arguments(name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return the arguments in their types.

    Raises:
        InvalidError: An argument is missing, unknown or of the wrong type.
    """
    taken, given = _write_parameters(name), json_object(arguments)
    if not given.keys() <= taken.keys():
        raise InvalidError(f"{name} takes {', '.join(taken)}", hint="send them as a JSON object")
    missing = [key for key, each in taken.items() if each.default is inspect.Parameter.empty and key not in given]
    if missing:
        raise InvalidError(f"{name} needs {', '.join(missing)}")
    try:
        found = {key: TypeAdapter(_TYPES[key]).validate_python(value) for key, value in given.items()}
    except ValidationError as error:
        raise InvalidError(first_problem(error)) from error
    return {key: [_plain(each) for each in value] if isinstance(value, list) else value for key, value in found.items()}


def _plain(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else value


class _Run:
    """The run that all calls of the tools belong to."""

    def __init__(self, memory: Memory, name: str) -> None:
        self._memory = memory
        self._name = name

    @cached_property
    def all(self) -> Operations:
        """The operations, made at the first call: only then is the memory open."""
        check_may_alter(self._memory.scope.trust)
        return self._memory._opened.write_operations(self._memory.scope, name=self._name)

    @property
    def run_id(self) -> str:
        return self.all.run.id


def write_tools(memory: Memory, *, name: str = "agent") -> tuple[WriteTool, ...]:
    """Return the nine operations for the caller that `memory` is scoped to, as one run that `undo` reverts.

    Args:
        name: The name of the model behind the agent, for the run.
    """
    run = _Run(memory, name)
    return tuple(WriteTool(run, each) for each in WRITE_TOOL_NAMES)
