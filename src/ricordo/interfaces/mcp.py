"""The MCP server: tools, resources and prompts. The owner of the memory depends on the transport."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from ricordo.errors import NotFoundError, RicordoError
from ricordo.interfaces.call import Caller, Dispatcher, StoreConfig, nightly_maintenance
from ricordo.interfaces.catalog import (
    CATALOG,
    PROMPT_TEXTS,
    PROMPTS,
    RESOURCE_TEMPLATES,
    RESOURCES,
    Capability,
    instructions,
    tools,
)
from ricordo.interfaces.serialize import as_text, compact_value, error_value, json_text

if TYPE_CHECKING:
    from ricordo.memory import Memory

_log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]


def build(dispatcher: Dispatcher, *, profile: str, caller_of: Callable[[Context], Caller]) -> Server[Any]:
    """Build a server with the tools of a profile.

    Args:
        profile: "core", "full", "keywords", "connector", or names of tools separated by commas.
        caller_of: Returns the caller of a request, known from the process or the token, not from arguments.

    Raises:
        InvalidError: There is no such profile or tool.
    """

    def model_of(ctx: Context) -> Caller:
        return caller_of(ctx).at("mcp")

    toolbox = Toolbox(dispatcher, tools(profile), model_of)
    library = Library(dispatcher, profile, model_of)
    return Server(
        "ricordo",
        version=metadata.version("ricordo"),
        title="Ricordo",
        website_url=None,
        description="The user's long-term memory across conversations.",
        instructions=instructions(profile),
        on_list_tools=toolbox.list,
        on_call_tool=toolbox.call,
        on_list_resources=library.list,
        on_list_resource_templates=library.templates,
        on_read_resource=library.read,
        on_list_prompts=library.prompts,
        on_get_prompt=library.prompt,
    )


# tools, which models call


_LOOKS_FOR_NAMES = frozenset(("entity", "timeline", "search", "list"))
"""Methods that are given the name of a person or thing: that it is unknown is an answer, and no mistake in the call."""


class Toolbox:
    """The tools of a profile."""

    def __init__(
        self, dispatcher: Dispatcher, capabilities: tuple[Capability, ...], caller_of: Callable[[Context], Caller]
    ) -> None:
        self._dispatcher = dispatcher
        self._by_name = {each.tool: each for each in capabilities}
        self._caller_of = caller_of

    async def list(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """List the tools that the caller may use."""
        caller = self._caller_of(ctx)
        offered = [each for each in self._by_name.values() if caller.may(each.method)]
        return types.ListToolsResult(tools=[_tool(each, can_share=caller.can_share) for each in offered])

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool. Errors are returned as results, so that the model can correct its call."""
        capability = self._by_name.get(params.name)
        if capability is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}")

        def progress(done: int, total: int) -> None:
            self._dispatcher.run_in_background(ctx.session.report_progress(done, total))

        try:
            answer, text = await self._dispatcher.call_tool(
                capability, params.arguments or {}, caller=self._caller_of(ctx), progress=progress
            )
        except RicordoError as error:
            if error.code == NotFoundError.code and capability.method in _LOOKS_FOR_NAMES:
                nothing = types.TextContent(text=f"Nothing: {error.message}.")
                return types.CallToolResult(
                    content=[nothing], structured_content=_structured({"found": False}, capability)
                )
            return _failure(error)
        except Exception:  # noqa: BLE001  # a defect of ours must not end the client's connection
            _log.exception("%s failed", capability.tool)
            return _failure(RicordoError("an internal error occurred", hint="see the server's log"))
        return types.CallToolResult(
            content=[types.TextContent(text=text)], structured_content=_structured(answer, capability)
        )


def _failure(error: RicordoError) -> types.CallToolResult:
    content: Any = [types.TextContent(text=str(error))]
    return types.CallToolResult(content=content, structured_content=error_value(error), is_error=True)


def _structured(answer: object, capability: Capability) -> dict[str, Any]:
    """Return the answer as a JSON object with all its lists; any other value is wrapped as `{"result": ...}`."""
    from ricordo.interfaces.schema import empty_lists  # imports the memory

    value = compact_value(answer)
    return {**empty_lists(capability), **(value if isinstance(value, dict) else {"result": value})}


def _tool(capability: Capability, *, can_share: bool = True) -> types.Tool:
    from ricordo.interfaces.schema import brief_output_schema, input_schema  # imports the memory

    reads = capability.effect == "reads"
    return types.Tool(
        name=capability.tool,
        description=capability.summary,
        input_schema=input_schema(capability, as_tool=True, can_share=can_share),
        output_schema=brief_output_schema(capability),
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            open_world_hint=False,
            destructive_hint=None if reads else capability.effect == "removes",
            idempotent_hint=True if capability.is_idempotent and not reads else None,  # False is what clients assume
        ),
    )


# resources and prompts, which people add to a conversation

_TOOLS = {each.tool: each for each in CATALOG}
_NOTHING = "Nothing relevant is remembered."

_RESOURCES = tuple(types.Resource(**each) for each in RESOURCES)
_TEMPLATES = tuple(types.ResourceTemplate(**each) for each in RESOURCE_TEMPLATES)
_PROMPTS = tuple(types.Prompt(**each) for each in PROMPTS)


class Library:
    """The resources and prompts of the server."""

    def __init__(self, dispatcher: Dispatcher, profile: str, caller_of: Callable[[Context], Caller]) -> None:
        self._dispatcher = dispatcher
        self._profile = profile
        self._caller_of = caller_of

    async def list(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=list(_RESOURCES))

    async def templates(
        self, ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(_TEMPLATES))

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Return the text of a resource."""
        parts = urlsplit(str(params.uri))
        name, given = parts.netloc, unquote(parts.path.removeprefix("/") + (f"?{parts.query}" if parts.query else ""))
        kinds = {each["name"]: each["mime_type"] for each in (*RESOURCES, *RESOURCE_TEMPLATES)}
        if parts.scheme != "ricordo" or name not in kinds:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {params.uri}")
        text = await self._text(ctx, name, given)
        contents = types.TextResourceContents(uri=params.uri, mime_type=kinds[name], text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _text(self, ctx: Context, name: str, given: str) -> str:
        if name == "context":
            return str(await self._call(ctx, "get_context", prompt=given) or _NOTHING)
        if name == "briefing":
            return str(await self._call(ctx, "get_briefing") or _NOTHING)
        if name == "entity":
            return as_text(await self._call(ctx, "get_entity_info", name=given))
        if name == "people":
            return as_text(await self._call(ctx, "list_people"))
        if name == "stats":
            return json_text(await self._call(ctx, "memory_stats"))
        node = await self._call(ctx, "get_memory", id=given)
        return json_text({"memory": node, "history": await self._call(ctx, "memory_history", id=node.id)})

    async def _call(self, ctx: Context, tool: str, **arguments: str) -> Any:
        try:
            return await self._dispatcher.call(_TOOLS[tool], arguments, caller=self._caller_of(ctx), as_tool=True)
        except RicordoError as error:
            code = types.INVALID_PARAMS if isinstance(error, NotFoundError) else types.INTERNAL_ERROR
            raise MCPError(code, str(error), data={"code": error.code}) from error

    async def prompts(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=list(_PROMPTS))

    async def prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Return the messages of a prompt."""
        if params.name == "use_memory":
            return _message(instructions(self._profile), "How to use the memory")
        if params.name == "keep":
            return _message(PROMPT_TEXTS["keep"], "Remember this conversation")
        topic = (params.arguments or {}).get("topic")
        if params.name != "recall" or not topic:
            problem = "topic is required" if params.name == "recall" else f"there is no prompt {params.name!r}"
            raise MCPError(types.INVALID_PARAMS, problem)
        block = str(await self._call(ctx, "get_context", prompt=topic) or _NOTHING)
        text = f"This is what your memory holds about {json.dumps(topic, ensure_ascii=False)}:\n\n{block}"
        return _message(text, "What is remembered")


def _message(text: str, about: str) -> types.GetPromptResult:
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=about, messages=[message])


# standard input and output


async def serve_stdio(config: StoreConfig, *, caller: Caller, profile: str) -> None:
    """Serve on standard input and output until the client closes its end or a signal ends the process, then finish
    pending writes.

    The client started this process, so all requests have the same caller. The first answer does not wait for the store,
    which is opened only after it.

    Raises:
        InvalidError: There is no such profile or tool.
    """
    answered = asyncio.Event()
    dispatcher = Dispatcher(_open_after(answered, config))
    _end_on_signals(dispatcher)
    try:
        async with nightly_maintenance(config, dispatcher):
            server = build(dispatcher, profile=profile, caller_of=lambda ctx: caller)
            _set_after_first_answer(server, answered)
            async with stdio_server() as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await dispatcher.close()


def _end_on_signals(dispatcher: Dispatcher) -> None:
    """End the process at SIGINT and SIGTERM once pending writes are done: the thread that waits for the client's next
    line cannot be interrupted.
    """
    loop = asyncio.get_running_loop()

    async def end(number: int) -> None:
        await dispatcher.close()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    def begin(number: int) -> None:
        ending.append(loop.create_task(end(number)))

    ending: list[asyncio.Task[None]] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            loop.add_signal_handler(number, begin, number)


def _set_after_first_answer(server: Server[Any], answered: asyncio.Event) -> None:
    async def middleware(ctx: Any, call_next: Any) -> Any:
        try:
            return await call_next(ctx)
        finally:
            answered.set()

    server.middleware.append(middleware)


async def _open_after(answered: asyncio.Event, config: StoreConfig) -> Memory:
    await answered.wait()
    await asyncio.sleep(0)  # send the answer before modules are loaded
    return await config.open()
