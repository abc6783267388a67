"""Anthropic's memory tool, stored in Ricordo: search also finds the files that Claude writes under /memories.

Source: platform.claude.com, "Memory tool"; anthropic 2.12, `anthropic.lib.tools.BetaAsyncAbstractMemoryTool`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from anthropic.lib.tools import BetaAsyncAbstractMemoryTool, ToolError

from ricordo.errors import RicordoError
from ricordo.integrations.items import MemoryFiles

if TYPE_CHECKING:
    from ricordo.memory import Memory

__all__ = ["RicordoMemoryTool"]


class RicordoMemoryTool(BetaAsyncAbstractMemoryTool):
    """A tool for `AsyncAnthropic().beta.messages.tool_runner(tools=[...])`, in the event loop of `memory`."""

    def __init__(self, memory: Memory, **options: Any) -> None:
        super().__init__(**options)
        self._files = MemoryFiles(memory)

    async def view(self, command: Any) -> str:
        return await _answer(self._files.view(command.path, command.view_range))

    async def create(self, command: Any) -> str:
        return await _answer(self._files.create(command.path, command.file_text))

    async def str_replace(self, command: Any) -> str:
        return await _answer(self._files.replace(command.path, command.old_str, command.new_str))

    async def insert(self, command: Any) -> str:
        return await _answer(self._files.insert(command.path, command.insert_line, command.insert_text))

    async def delete(self, command: Any) -> str:
        return await _answer(self._files.delete(command.path))

    async def rename(self, command: Any) -> str:
        return await _answer(self._files.rename(command.old_path, command.new_path))

    async def clear_all_memory(self) -> str:
        return await _answer(self._files.clear())


async def _answer(work: Awaitable[str]) -> str:
    """Return the result of a command; raise errors as the library's `ToolError`, which the model sees."""
    try:
        return await work
    except RicordoError as error:
        raise ToolError(str(error)) from error
