"""Resources and prompts: what a person puts into a conversation by hand, where tools are what a model calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from ricordo.errors import NotFoundError, RicordoError
from ricordo.interfaces.call import Caller, Calls
from ricordo.interfaces.catalog import CATALOG, instructions
from ricordo.interfaces.cli.json_text import json_text
from ricordo.interfaces.formatted import words

Context = ServerRequestContext[Any, Any]

_TOOLS = {each.tool: each for each in CATALOG}
_NOTHING = "Nothing that is remembered matters here."

_RESOURCES = (
    types.Resource(
        name="people",
        title="People",
        uri="ricordo://people",
        mime_type="text/plain",
        description="Who is known, those who are named most often first.",
    ),
    types.Resource(
        name="stats",
        title="Figures",
        uri="ricordo://stats",
        mime_type="application/json",
        description="How much is remembered, and of which kinds.",
    ),
)

_TEMPLATES = (
    types.ResourceTemplate(
        name="context",
        title="What matters for a message",
        uri_template="ricordo://context/{prompt}",
        mime_type="text/markdown",
        description="A block of what to know before answering the message.",
    ),
    types.ResourceTemplate(
        name="entity",
        title="A person or thing",
        uri_template="ricordo://entity/{name}",
        mime_type="text/plain",
        description="All that is known of a person, project, place or other thing.",
    ),
    types.ResourceTemplate(
        name="memory",
        title="A memory",
        uri_template="ricordo://memory/{id}",
        mime_type="application/json",
        description="A memory with all its versions.",
    ),
)

_PROMPTS = (
    types.Prompt(
        name="use_memory",
        title="How to use the memory",
        description="When to look something up, when to keep something, and with which tool.",
    ),
    types.Prompt(
        name="recall",
        title="Recall what matters",
        description="What is remembered that matters for a topic.",
        arguments=[types.PromptArgument(name="topic", description="A message, question or topic.", required=True)],
    ),
    types.Prompt(
        name="keep",
        title="Keep what was said",
        description="Have the agent keep what is worth knowing later from this conversation.",
    ),
)

_KEEP = """Look through our conversation for what is worth knowing in later ones: preferences, decisions, facts about \
people, plans with their dates, how things are done. Search the memory first; keep only what is new, correct what has \
changed, each as one sentence that stands alone. No passwords, keys or card numbers. Then tell me in a short list what \
you kept."""


class Reading:
    """What can be read and asked for by name."""

    def __init__(self, calls: Calls, profile: str, caller_of: Callable[[Context], Caller]) -> None:
        self._calls = calls
        self._profile = profile
        self._caller_of = caller_of

    async def list(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=list(_RESOURCES))

    async def templates(
        self, ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(_TEMPLATES))

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """The text of a resource."""
        parts = urlsplit(str(params.uri))
        name, given = parts.netloc, unquote(parts.path.removeprefix("/") + (f"?{parts.query}" if parts.query else ""))
        kinds = {each.name: each.mime_type for each in (*_RESOURCES, *_TEMPLATES)}
        if parts.scheme != "ricordo" or name not in kinds:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {params.uri}")
        text = await self._told(ctx, name, given)
        contents = types.TextResourceContents(uri=params.uri, mime_type=kinds[name], text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _told(self, ctx: Context, name: str, given: str) -> str:
        if name == "context":
            return str(await self._ask(ctx, "get_context", prompt=given) or _NOTHING)
        if name == "entity":
            return words(await self._ask(ctx, "get_entity_info", name=given))
        if name == "people":
            return words(await self._ask(ctx, "list_people"))
        if name == "stats":
            return json_text(await self._ask(ctx, "memory_stats"))
        node = await self._ask(ctx, "get_memory", id=given)
        return json_text({"memory": node, "history": await self._ask(ctx, "memory_history", id=node.id)})

    async def _ask(self, ctx: Context, tool: str, **arguments: str) -> Any:
        try:
            return await self._calls.call(_TOOLS[tool], arguments, caller=self._caller_of(ctx), as_tool=True)
        except RicordoError as error:
            code = types.INVALID_PARAMS if isinstance(error, NotFoundError) else types.INTERNAL_ERROR
            raise MCPError(code, str(error), data={"code": error.code}) from error

    async def prompts(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=list(_PROMPTS))

    async def prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """The messages of a prompt."""
        if params.name == "use_memory":
            return _said(instructions(self._profile), "How to use the memory")
        if params.name == "keep":
            return _said(_KEEP, "Keep what was said")
        topic = (params.arguments or {}).get("topic")
        if params.name != "recall" or not topic:
            wanted = "topic: it is missing" if params.name == "recall" else f"there is no prompt {params.name!r}"
            raise MCPError(types.INVALID_PARAMS, wanted)
        block = str(await self._ask(ctx, "get_context", prompt=topic) or _NOTHING)
        asked = f"This is what your memory holds about {json.dumps(topic, ensure_ascii=False)}:\n\n{block}"
        return _said(asked, "What is remembered")


def _said(text: str, about: str) -> types.GetPromptResult:
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=about, messages=[message])
