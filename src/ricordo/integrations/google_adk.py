"""Ricordo in Google's Agent Development Kit: a memory service for a runner, and tools. Each user is an owner.

Source: google.github.io/adk-docs, "Memory"; google-adk 2.13, `BaseMemoryService` and `BaseToolset`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

from ricordo.errors import InvalidError
from ricordo.interfaces.tools import Tool, agent_tools
from ricordo.model import Fact, Message, Scope

if TYPE_CHECKING:
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from ricordo.memory import Memory

__all__ = ["RicordoMemoryService", "RicordoToolset"]

_USER = "user"
"""The author of the user's events."""


class RicordoMemoryService(BaseMemoryService):
    """A memory service for `Runner(memory_service=...)`. Use it in the event loop in which `memory` was opened.

    The memories of a user of an application belong to the owner "APPLICATION/USER". No call reaches those of others.
    """

    def __init__(self, memory: Memory, *, limit: int = 10) -> None:
        """Args:
        memory: from `Memory.open`, not `scoped`, because it is used for many owners.
        limit: the maximum number of memories that a search returns.
        """
        self._memory = memory
        self._limit = limit

    def memory_of(self, app_name: str, user_id: str) -> Memory:
        """Return the memory of a user, for calls that `BaseMemoryService` does not have."""
        owner = f"{quote(app_name, safe='')}/{quote(user_id, safe='@')}"
        return self._memory.scoped(Scope(owner=owner, trust=self._memory.scope.trust))

    async def add_session_to_memory(self, session: Session) -> None:
        """Record the messages of a session. If it is added again, only new messages are stored."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Record the messages of some events, as one commit. Forgotten messages are not stored again."""
        memory = self.memory_of(app_name, user_id)
        await memory.add_many([*_messages(events, owner=memory.scope.owner, session=session_id)])

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember texts as facts. A fact with a newer value replaces the older one.

        Raises:
            InvalidError: an entry has no text.
        """
        facts = [Fact(content=_text(each.content), origin="agent") for each in memories]
        await self.memory_of(app_name, user_id).remember_many(facts)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the facts and messages of a user that match a query, best first."""
        hits = (await self.memory_of(app_name, user_id).search(query, limit=self._limit)).hits
        return SearchMemoryResponse(
            memories=[
                MemoryEntry(
                    id=hit.id,
                    content=types.Content(role=hit.role or _USER, parts=[types.Part(text=hit.content)]),
                    author=hit.speaker or hit.role,
                    timestamp=hit.event_time_iso,
                )
                for hit in hits
            ]
        )

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget a memory that a search returned. Raises NotFoundError if the user has no memory with this id."""
        if memory_id:
            await self.memory_of(app_name, user_id).forget(memory_id)


class RicordoToolset(BaseToolset):
    """Memory tools for `Agent(tools=[...])`. They use the memory of the user whose message the agent answers."""

    def __init__(self, service: RicordoMemoryService, profile: str = "core") -> None:
        """Args:
        service: the memory service of the runner.
        profile: the set of tools for the agent.
        """
        super().__init__()
        self._service = service
        self._profile = profile

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Return the tools for the user of the present invocation. Raises InvalidError without one."""
        if readonly_context is None:
            raise InvalidError("the tools need a user, and none is known", hint="give the toolset to an agent")
        session = readonly_context.session
        memory = self._service.memory_of(session.app_name, session.user_id)
        return [_Tool(each) for each in agent_tools(memory, self._profile)]


class _Tool(BaseTool):
    def __init__(self, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._tool = tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._tool.parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> str:
        return await self._tool(args)


def _messages(events: Sequence[Event], *, owner: str, session: str | None) -> Iterator[Message]:
    """Yield the messages in events, except tool calls, which have no text, and partial events, which are sent again."""
    for event in events:
        said = [part.text for part in (event.content.parts or []) if part.text] if event.content else []
        text = "\n".join(said).strip()
        if not text or event.partial:
            continue
        is_user = event.author == _USER
        yield Message(
            text=text,
            role="user" if is_user else "assistant",
            speaker=None if is_user else event.author,
            session=session,
            at=datetime.fromtimestamp(event.timestamp, UTC),
            id=_id(owner, session, event.id),
        )


def _id(*names: str | None) -> str:
    """Return an id that is unique in the store. Ids of events are unique only in their session."""
    return f"adk-{hashlib.sha256(json.dumps(names).encode()).hexdigest()[:32]}"


def _text(content: types.Content) -> str:
    return "\n".join(part.text for part in content.parts or [] if part.text)
