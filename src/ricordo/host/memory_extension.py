"""The memory as an extension of the host: it records, recalls, consolidates ended sessions, and does upkeep."""

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
        all_owners: maintain the memories of all owners in the store, not only those of the memory's scope.
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
        """Subscribe to the ends of sessions."""
        await around.bus.subscribe(f"memory of {self._whose}", SESSION_COMPLETED, self._learn)

    async def stop(self) -> None:
        """Do nothing: the opener of the memory closes it."""

    def tools(self) -> Sequence[Tool]:
        """Return the tools that were given."""
        return self._tools

    @property
    def context_priority(self) -> int:
        """The priority of its context: before most others."""
        return CONTEXT_PRIORITY

    async def context(self, prompt: Prompt) -> str | None:
        """Return memories about the prompt, without this session, which the model knows already."""
        return await self._of(prompt.place).context(prompt.text, session=prompt.session)

    async def hear(self, said: Utterance) -> None:
        """Record a message durably, unless it is off the record."""
        if not said.is_off_record and said.text.strip():
            await self._of(said.place).add(said.text, role=said.role, session=said.session, attributes=said.attributes)

    async def recent(self, place: ConversationKey, session: str, limit: int) -> Sequence[Turn]:
        """Return the last messages of a session, in order."""
        page = await self._of(place).list(type="episodic", session=session, limit=limit)
        return [_turn(node.role, node.content) for node in reversed(page.nodes)]

    async def run_schedule(self, name: str) -> None:
        """Run the nightly upkeep, or prune memories above the limit. A failed step is repeated the next night; a
        conversation that fails too often is listed for review.
        """
        if name.startswith("prune "):
            await self._memory.prune(all_owners=self._all_owners)
            return
        report = await self._memory.maintain(all_owners=self._all_owners)
        for step in report.steps:
            if not step.ok:
                _log.warning("upkeep could not do all of %s: %s", step.name, step.detail)

    async def _learn(self, event: Event) -> None:
        """Consolidate a session that ended. The same commit marks it, so a repeated event changes nothing."""
        place, session = _place(event.payload), str(event.payload.get("session") or "")
        if not self._all_owners and _of(_scope(place)) != self._whose:
            return
        memory = self._of(place)
        try:
            await memory.end_session(session)
        except NotFoundError:
            return  # it has no messages, or none that may be kept
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
    """Return a short name of a scope that reveals nothing in the journal."""
    return hashlib.sha256(f"{scope.owner}\0{scope.chat or ''}".encode()).hexdigest()[:16]


def _turn(role: str | None, text: str) -> Turn:
    if role == "assistant":
        return Turn(role="assistant", text=text)
    return Turn(role="user", text=text)
