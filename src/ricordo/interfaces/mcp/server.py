"""The MCP server: what a client sees and calls. Whose memory it is comes with the transport."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import metadata
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from ricordo.errors import RicordoError
from ricordo.interfaces.call import Caller, Calls
from ricordo.interfaces.catalog import Capability, instructions, tools
from ricordo.interfaces.formatted import lean, words
from ricordo.interfaces.mcp.resources import Reading

_log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]


def build(calls: Calls, *, profile: str, caller_of: Callable[[Context], Caller]) -> Server[Any]:
    """A server with the tools of a profile.

    Args:
        profile: "core", "full", "keywords", "connector", or names of tools with commas between.
        caller_of: who is at the other end; from the process or the request's token, never from its arguments.

    Raises:
        InvalidError: there is no such profile or tool.
    """
    toolbox = Toolbox(calls, tools(profile), caller_of)
    reading = Reading(calls, profile, caller_of)
    return Server(
        "ricordo",
        version=metadata.version("ricordo"),
        title="Ricordo",
        website_url=None,
        description="The user's long-term memory across conversations.",
        instructions=instructions(profile),
        on_list_tools=toolbox.list,
        on_call_tool=toolbox.call,
        on_list_resources=reading.list,
        on_list_resource_templates=reading.templates,
        on_read_resource=reading.read,
        on_list_prompts=reading.prompts,
        on_get_prompt=reading.prompt,
    )


class Toolbox:
    """The tools of a profile."""

    def __init__(self, calls: Calls, offered: tuple[Capability, ...], caller_of: Callable[[Context], Caller]) -> None:
        self._calls = calls
        self._offered = {each.tool: each for each in offered}
        self._caller_of = caller_of

    async def list(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Those the caller has the permission for."""
        access = self._caller_of(ctx).access
        return types.ListToolsResult(tools=[_tool(each) for each in self._offered.values() if each.access in access])

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Do it. What goes wrong is told in the result, so that a model can put it right."""
        capability = self._offered.get(params.name)
        if capability is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}")

        def progress(done: int, total: int) -> None:
            self._calls.beside(ctx.session.report_progress(done, total))

        try:
            answer = await self._calls.call(
                capability, params.arguments or {}, caller=self._caller_of(ctx), as_tool=True, progress=progress
            )
        except RicordoError as error:
            return _failed(error)
        except Exception:  # noqa: BLE001  # a defect of ours must not end the client's connection
            _log.exception("%s failed", capability.tool)
            return _failed(RicordoError("something went wrong inside the memory", hint="see the server's log"))
        return types.CallToolResult(
            content=[types.TextContent(text=words(answer))], structured_content=_structured(answer)
        )


def _failed(error: RicordoError) -> types.CallToolResult:
    told = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    return types.CallToolResult(content=[types.TextContent(text=str(error))], structured_content=told, is_error=True)


def _structured(answer: object) -> dict[str, Any]:
    """An object in any case: what is none by itself stands under `result`."""
    value = lean(answer)
    return value if isinstance(value, dict) else {"result": value}


def _tool(capability: Capability) -> types.Tool:
    from ricordo.interfaces.schema import input_schema  # brings the memory's own imports

    reads = capability.effect == "reads"
    return types.Tool(
        name=capability.tool,
        title=capability.title,
        description=capability.summary,
        input_schema=input_schema(capability, as_tool=True),
        output_schema=_told(capability),
        annotations=types.ToolAnnotations(
            title=capability.title,
            read_only_hint=reads,
            open_world_hint=False,
            destructive_hint=None if reads else capability.effect == "removes",
            idempotent_hint=None if reads else capability.is_idempotent,
        ),
    )


def _told(capability: Capability) -> dict[str, Any]:
    """The schema of `_structured`: an object in which anything may be left out."""
    from ricordo.interfaces.schema import output_schema

    schema = _optional(output_schema(capability))
    if schema.get("type") == "object" and "properties" in schema:
        return dict(schema)
    inner = {name: each for name, each in schema.items() if name != "$defs"}
    outer = {"type": "object", "properties": {"result": inner}}
    return outer | ({"$defs": schema["$defs"]} if "$defs" in schema else {})


def _optional(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _optional(each) for name, each in schema.items() if name != "required" or isinstance(each, dict)}
    return [_optional(each) for each in schema] if isinstance(schema, list) else schema
