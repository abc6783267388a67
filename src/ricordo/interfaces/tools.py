"""The tools of the catalog for an agent in the same process: name, description, schema, and the call.

What frameworks do with these is written in an adapter for each. Whose memory it is comes with the memory they are
given, and what an agent says is believed as an agent's word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ricordo.errors import InvalidError, RicordoError
from ricordo.interfaces.call import Caller, Calls
from ricordo.interfaces.catalog import Capability, instructions, tools

if TYPE_CHECKING:
    from ricordo.memory import Memory


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: `parameters` is the JSON schema of its arguments."""

    calls: _Calls
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
        """The answer as text; what goes wrong is told in it, so that a model can put it right."""
        from ricordo.interfaces.formatted import words

        try:
            return words(await self.calls.call(self.capability, _object(arguments)))
        except RicordoError as error:
            return f"Error: {error}"


def _object(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    try:
        given = json.loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments)
    except ValueError as error:
        raise InvalidError("the arguments are no JSON", hint="send an object") from error
    if not isinstance(given, dict):
        raise InvalidError("the arguments are no JSON object", hint="send an object")
    return given


class _Calls:
    """Opened at the first call: only then there is a loop."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._calls: Calls | None = None

    async def call(self, capability: Capability, arguments: Mapping[str, Any]) -> Any:
        if self._calls is None:
            self._calls = Calls(self._opened())
        scope = self._memory.scope
        caller = Caller(owner=scope.owner, chat=scope.chat, trust="agent")
        return await self._calls.call(capability, dict(arguments), caller=caller, as_tool=True)

    async def _opened(self) -> Memory:
        return self._memory


def offered(memory: Memory, profile: str = "core") -> tuple[Tool, ...]:
    """The tools of a profile, for the caller that `memory` is scoped to.

    Raises:
        InvalidError: there is no such profile or tool.
    """
    calls = _Calls(memory)
    return tuple(Tool(calls, each) for each in tools(profile))


async def told(memory: Memory, prompt: str, profile: str = "core") -> str:
    """What an agent should be told before it answers: how to use its memory, and what that knows of the prompt."""
    block = await memory.context(prompt) if prompt.strip() else None
    return f"{instructions(profile)}\n\n{block}" if block else instructions(profile)
