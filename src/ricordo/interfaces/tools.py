"""Tools for an agent in the same process: name, description, schema and function.

`ricordo.integrations` turns them into tools of each framework. The tools work for the owner of the memory, and texts
that they store have at most the trust level "agent". The nine operations of the write path are for an agent that reads
conversations in the background. Do not give them to the agent that talks to the user: the texts they read and write
do not come from the user.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from ricordo.consolidation.operations import Operations
from ricordo.consolidation.proposed import ProposedEntity, ProposedFact, ProposedRelation
from ricordo.errors import InvalidError, RicordoError
from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.catalog import WRITE_PATH, Capability, instructions, tools
from ricordo.interfaces.schema import closed_model, first_problem, input_schema, tidy

if TYPE_CHECKING:
    from ricordo.memory import Memory


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: `parameters` is the JSON schema of its arguments; `run` returns the answer as text."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any]], Awaitable[str]]
    show_error: Callable[[RicordoError], str] = "Error: {}".format

    async def __call__(self, arguments: Mapping[str, Any] | str) -> str:
        """Return the answer as text. Errors are returned as text, too, so that the model can correct its call."""
        try:
            return await self.run(json_object(arguments))
        except RicordoError as error:
            return self.show_error(error)


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


class Arguments(BaseModel):
    """The arguments of a tool, for frameworks that require a pydantic model. The tool itself checks them."""

    model_config = ConfigDict(extra="allow")


def arguments_model(tool: Tool) -> type[Arguments]:
    """Return a model that accepts any arguments and has the JSON schema of the tool."""

    class Shown(Arguments):
        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return copy.deepcopy(tool.parameters)

    Shown.__name__ = tool.name
    return Shown


def agent_tools(memory: Memory, profile: str = "core") -> tuple[Tool, ...]:
    """Return the tools of a profile, for the caller that `memory` is scoped to.

    Raises:
        InvalidError: There is no such profile or tool, or `memory` is the blocking one.
    """
    _check_asynchronous(memory)

    async def opened() -> Memory:
        return memory

    @cache
    def dispatcher() -> Dispatcher:  # created at the first call, because it needs an event loop
        return Dispatcher(opened())

    caller = Caller(owner=memory.scope.owner, chat=memory.scope.chat, trust=memory.scope.trust)

    def tool(capability: Capability) -> Tool:
        async def run(arguments: dict[str, Any]) -> str:
            return (await dispatcher().call_tool(capability, arguments, caller=caller.at("tools")))[1]

        schema = input_schema(capability, as_tool=True, can_share=caller.can_share)
        return Tool(capability.tool, capability.summary, dict(schema), run)

    return tuple(map(tool, tools(profile)))


def _check_asynchronous(memory: object) -> None:
    from ricordo.sync import Memory as Blocking

    if isinstance(memory, Blocking):
        raise InvalidError("memory: tools are asynchronous", hint="pass a `ricordo.Memory`, not one of `ricordo.sync`")


async def agent_instructions(memory: Memory, prompt: str, profile: str = "core", *, session: str | None = None) -> str:
    """Return instructions for an agent: how to use its memory, and the context for the prompt.

    Args:
        session: the present conversation. It is left out of the context, because the agent knows it.
    """
    block = await memory.context(prompt, session=session) if prompt.strip() else None
    return f"{instructions(profile)}\n\n{block}" if block else instructions(profile)


# the write path

WRITE_TOOL_NAMES: tuple[str, ...] = tuple(WRITE_PATH["tools"])
"""The operations of the write path, in the order in which an agent uses them."""

WRITE_INSTRUCTIONS: str = WRITE_PATH["instructions"]
"""The prompt for an agent with the operations of the write path."""

_ITEMS: Mapping[str, Any] = {
    "nodes": list[ProposedFact],
    "entities": list[ProposedEntity],
    "relations": list[ProposedRelation],
    "pairs": list[dict[str, str]],
}
"""The item types of parameters that are lists of objects; other parameters have the types in the signature."""


def write_tools(memory: Memory, *, name: str = "agent") -> tuple[Tool, ...]:
    """Return the nine operations of the write path. Their changes form one run, which `undo` reverts.

    Args:
        name: The name of the model behind the agent, for the run.
    """

    @cache
    def operations() -> Operations:  # created at the first call, when the memory is open
        from ricordo.memory import write_operations

        return write_operations(memory, name=name)

    def tool(name: str) -> Tool:
        work = getattr(Operations, name)
        hints = get_type_hints(work)
        taken = [each for each in inspect.signature(work).parameters.values() if each.name != "self"]
        members = {
            each.name: (_ITEMS.get(each.name, hints[each.name]), ... if each.default is each.empty else each.default)
            for each in taken
        }
        model = closed_model(name, members)

        async def run(arguments: dict[str, Any]) -> str:
            try:
                checked = model.model_validate(arguments)
            except ValidationError as error:
                raise InvalidError(first_problem(error), hint=f"{name} takes {', '.join(members)}") from error
            given = {each: _plain(getattr(checked, each)) for each in checked.model_fields_set}
            return json.dumps(await getattr(operations(), name)(**given), ensure_ascii=False)

        description = " ".join((inspect.getdoc(work) or "").split())
        return Tool(name, description, tidy(model.model_json_schema()), run, _json_error)

    return tuple(map(tool, WRITE_TOOL_NAMES))


def _json_error(error: RicordoError) -> str:
    return json.dumps({"error": str(error)}, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return (
        [each.model_dump() if isinstance(each, BaseModel) else each for each in value]
        if isinstance(value, list)
        else value
    )
