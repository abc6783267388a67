"""The memory as the first extension of the host: it hears, recalls, learns when a session is over, and keeps house."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from ricordo.errors import NotFoundError, UnavailableError
from ricordo.host.extension import HostServices, Manifest, PlannedJob, Prompt, Tool, Utterance
from ricordo.host.router import SESSION_COMPLETED, ConversationKey
from ricordo.model import Scope
from ricordo.ports import Turn

if TYPE_CHECKING:
    from ricordo.host.bus import Event
    from ricordo.memory import Memory
    from ricordo.settings import Settings

_log = logging.getLogger(__name__)

CONTEXT_PRIORITY = 50


class MemoryExtension:
    """ToolProvider, ContextProvider, SchedulerProvider, MessageListener and HistoryProvider over one memory."""

    def __init__(
        self, memory: Memory, settings: Settings, *, tools: Sequence[Tool] = (), all_owners: bool = False
    ) -> None:
        """Args:
        memory: an open memory; its opener closes it.
        tools: the tools that a model may call.
        all_owners: look after everybody's memories in the store, not only those of the memory's scope.
        """
        self._memory = memory
        self._tools = tools
        self._all_owners = all_owners
        self._whose = "everybody" if all_owners else _of(memory.scope)
        plans = (
            PlannedJob(name=f"maintain {self._whose}", cron=settings.maintain_at),
            PlannedJob(name=f"prune {self._whose}", cron=settings.prune_at),
        )
        self.manifest = Manifest(
            name="memory",
            version=metadata.version("ricordo"),
            schedules=plans,
            summary="A long-term memory: recall before each answer, knowledge of each conversation.",
        )

    async def start(self, around: HostServices) -> None:
        """Listen for the ends of sessions."""
        await around.bus.subscribe(f"memory of {self._whose}", SESSION_COMPLETED, self._learn)

    async def stop(self) -> None:
        """Do nothing: the opener of the memory closes it."""

    def tools(self) -> Sequence[Tool]:
        """As they were given."""
        return self._tools

    @property
    def context_priority(self) -> int:
        """Before most others, which may build on it."""
        return CONTEXT_PRIORITY

    async def context(self, prompt: Prompt) -> str | None:
        """What is remembered that concerns the prompt; what was said in this session is known already."""
        return await self._of(prompt.place).context(prompt.text, session=prompt.session)

    async def hear(self, said: Utterance) -> None:
        """Record a message, durably; nothing of what is off the record."""
        if not said.is_off_record and said.text.strip():
            await self._of(said.place).add(said.text, role=said.role, session=said.session, attributes=said.attributes)

    async def recent(self, place: ConversationKey, session: str, limit: int) -> Sequence[Turn]:
        """What was said in a session before, in order."""
        page = await self._of(place).list(type="episodic", session=session, limit=limit)
        return [_turn(node.role, node.content) for node in reversed(page.nodes)]

    async def run_schedule(self, name: str) -> None:
        """A night's work, or the check that what is known does not grow too large. What a step could not do waits for
        the next night: a conversation that fails too often is put aside for its owner to look at.
        """
        if name.startswith("prune "):
            await self._memory.prune(all_owners=self._all_owners)
            return
        report = await self._memory.maintain(all_owners=self._all_owners)
        for step in report.steps:
            if not step.ok:
                _log.warning("upkeep could not do all of %s: %s", step.name, step.detail)

    async def _learn(self, event: Event) -> None:
        """A session is over: it becomes knowledge, once. One commit marks it so, and what is marked is left alone, so
        hearing of it again, from another handler or after a crash, does nothing more.
        """
        place, session = _place(event.payload), str(event.payload.get("session") or "")
        if not self._all_owners and _of(_scope(place)) != self._whose:
            return
        memory = self._of(place)
        try:
            await memory.end_session(session)
        except NotFoundError:
            return  # nothing was said in it, or nothing that may be kept
        run = await memory.consolidate(session)
        if run.state == "failed":
            raise UnavailableError(f"the conversation waits: {run.reason}")
        if any(item.what == "left" for item in run.items):
            raise UnavailableError("the conversation is being taken in by another process")

    def _of(self, place: ConversationKey) -> Memory:
        return self._memory.scoped(_scope(place))


def _scope(place: ConversationKey) -> Scope:
    return Scope(owner=place.owner, chat=place.chat or None)


def _place(payload: Any) -> ConversationKey:
    return ConversationKey(owner=str(payload.get("owner") or ""), chat=str(payload.get("chat") or ""))


def _of(scope: Scope) -> str:
    """A short name for whose memory it is, that says nothing in the journal."""
    return hashlib.sha256(f"{scope.owner}\0{scope.chat or ''}".encode()).hexdigest()[:16]


def _turn(role: str | None, text: str) -> Turn:
    if role == "assistant":
        return Turn(role="assistant", text=text)
    return Turn(role="user", text=text)
