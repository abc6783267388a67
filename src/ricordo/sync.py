"""The blocking version of `ricordo.Memory`: the same methods without `await`.

The methods are created from that class. Type checkers read `sync.pyi`, which tools/generate_sync.py writes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ricordo.loop_thread import Portal, in_a_loop
from ricordo.memory import Memory as AsyncMemory
from ricordo.model import Scope


class Memory:
    """A long-term memory, blocking. Open it with `with Memory.open(path) as memory`, or `memory = Memory.open(path)`.

    It also works inside a running event loop, for example in a notebook, because its own loop runs in a thread.
    """

    def __init__(self, memory: AsyncMemory, portal: Portal, *, owns_portal: bool = True) -> None:
        self._memory = memory
        self._portal = portal
        self._owns_portal = owns_portal

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @classmethod
    def open(cls, *location: Any, **options: Any) -> Memory:
        portal = Portal()
        try:
            return cls(portal.call(AsyncMemory.open(*location, **options).__aenter__()), portal)
        except BaseException:
            portal.close()
            raise

    def scoped(self, scope: Scope) -> Memory:
        return Memory(self._memory.scoped(scope), self._portal, owns_portal=False)

    def close(self) -> None:
        if self._owns_portal and self._portal.is_open:
            self._portal.call(self._memory.close())
            self._portal.close()

    @property
    def scope(self) -> Scope:
        """The caller, who owns this memory."""
        return self._memory.scope


def _blocking(name: str, original: Any) -> Callable[..., Any]:
    """Return a method that waits for an asynchronous one."""

    def method(self: Memory, /, *args: Any, **options: Any) -> Any:
        answer = getattr(self._memory, name)(*args, **options)
        if inspect.isasyncgen(answer):
            return self._portal.each(answer)
        return self._portal.call(answer) if inspect.iscoroutine(answer) else answer

    def static_method(*args: Any, **options: Any) -> Any:
        return in_a_loop(original.__func__(*args, **options))

    return staticmethod(static_method) if isinstance(original, staticmethod) else method


for _name, _original in vars(AsyncMemory).items():
    if not _name.startswith("_") and not isinstance(_original, property):
        _method = vars(Memory).get(_name) or _blocking(_name, _original)
        _plain = getattr(_method, "__func__", _method)
        functools.update_wrapper(_plain, getattr(_original, "__func__", _original)).__module__ = __name__
        setattr(Memory, _name, _method)
