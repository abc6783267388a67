"""Recall before each model call of a LangChain agent: a middleware for `create_agent`, for one user or for many.

Source: docs.langchain.com, "Custom middleware" (`wrap_model_call`) and "Runtime"; langchain 1.5.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, SystemMessage

from ricordo.errors import InvalidError

if TYPE_CHECKING:
    from ricordo.memory import Memory

__all__ = ["RicordoMiddleware"]


class RicordoMiddleware(AgentMiddleware[Any, Any, Any]):
    """A middleware for `create_agent(middleware=[...])`. Before each model call, it adds the memory's context for the
    user's last message to the system message. Run the agent with `ainvoke`, in the event loop of `memory`.
    """

    def __init__(self, memory: Memory, *, owner: str | Callable[[Any], str] | None = None) -> None:
        """Args:
        owner: where the run says whose memory it needs: the name of a field of its context, or a function of
            LangGraph's `Runtime`. None: the owner of `memory`, for agents with one user.
        """
        super().__init__()
        self._memory = memory
        self._owner = owner

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the model with the context.

        Raises:
            InvalidError: the run does not name its owner.
        """
        memory = self._memory_of(request.runtime)
        said = next((each.text for each in reversed(request.messages) if isinstance(each, HumanMessage)), "")
        known = await memory.context(said) if said.strip() else ""
        if not known:
            return await handler(request)
        return await handler(request.override(system_message=_extended(request.system_message, str(known))))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Raise InvalidError: the memory is asynchronous."""
        raise InvalidError("the memory is asynchronous", hint="run the agent with `await agent.ainvoke(...)`")

    def _memory_of(self, runtime: Any) -> Memory:
        if self._owner is None:
            return self._memory
        owner = self._owner(runtime) if callable(self._owner) else _field(runtime.context, self._owner)
        if not isinstance(owner, str) or not owner:
            is_missing = runtime.context is None
            hint = "pass `context=` to `ainvoke`" if is_missing else f"the owner must be text, and is {owner!r}"
            raise InvalidError("the run does not name its owner", hint=hint)
        return self._memory.scoped(replace(self._memory.scope, owner=owner))


def _extended(given: SystemMessage | None, known: str) -> SystemMessage:
    """Return a system message with a text after it; marks of its parts, such as for caching, stay."""
    if given is None:
        return SystemMessage(known)
    if isinstance(given.content, str):
        return SystemMessage(f"{given.content}\n\n{known}")
    return SystemMessage([*given.content, {"type": "text", "text": f"\n\n{known}"}])


def _field(context: Any, name: str) -> Any:
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
