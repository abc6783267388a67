"""The catalog's tools for an agent in the same process: name, description, schema, and the call.

An adapter for each framework turns these into the framework's own tools. The memory they are given decides the owner,
and what an agent writes is trusted as an agent's word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ricordo.errors import InvalidError, RicordoError
from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.catalog import Capability, instructions, tools
from ricordo.interfaces.serialize import as_text

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
        from ricordo.interfaces.schema import input_schema

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
