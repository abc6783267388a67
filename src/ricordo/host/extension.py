"""Extensions of the host: a manifest, `start` and `stop`, and the optional abilities of the protocols below.

The memory is the first of them.
"""

from __future__ import annotations

import hashlib
import logging
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError, NotFoundError, UnavailableError
from ricordo.host.router import SESSION_COMPLETED, ConversationKey
from ricordo.model import Scope
from ricordo.ports import Clock, Turn
from ricordo.settings import Settings

if TYPE_CHECKING:
    from ricordo.host.bus import Bus, Event
    from ricordo.host.router import Router
    from ricordo.memory import Memory
    from ricordo.model import Role
    from ricordo.ports import ChatModel, LanguageModel


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """A scheduled job of an extension: a name, and a cron expression in the owner's time zone."""

    name: str
    cron: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Identifies an extension. `needs` names the extensions that must start before it."""

    name: str
    version: str
    summary: str = ""
    needs: tuple[str, ...] = ()
    schedules: tuple[PlannedJob, ...] = ()

    @classmethod
    def read(cls, file: Path) -> Manifest:
        """Read a TOML file with `name`, `version`, `summary`, `needs`, and `[schedules]` of names and plans.

        Raises:
            InvalidError: it cannot be read, lacks a name or a version, or has unknown fields.
        """
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8"))
            plans = found.pop("schedules", {})
            schedules = tuple(PlannedJob(name=name, cron=cron) for name, cron in plans.items())
            return cls(**{**found, "needs": tuple(found.get("needs", ())), "schedules": schedules})
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise InvalidError(
                f"{file} is not a valid manifest: {error}", hint="it needs `name` and `version`"
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class HostServices:
    """What the host provides to an extension."""

    bus: Bus
    router: Router
    models: Models
    clock: Clock
    zone: ZoneInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A message of the user, before a model answers."""

    text: str
    place: ConversationKey
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """A message of a conversation, of the user or the assistant."""

    text: str
    role: Role
    place: ConversationKey
    session: str
    is_off_record: bool = False
    attributes: Mapping[str, Any] | None = None


class Extension(Protocol):
    """Anything with a manifest. The protocols below are optional."""

    @property
    def manifest(self) -> Manifest: ...

    async def start(self, around: HostServices) -> None:
        """Start: subscribe to events, open resources. The extensions it needs have started."""
        ...

    async def stop(self) -> None:
        """Release everything. No event or message follows."""
        ...


class Tool(Protocol):
    """A tool that a model may call; `parameters` is the JSON schema of its arguments."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    async def __call__(self, arguments: Mapping[str, Any] | str) -> str:
        """Return the answer, or an error, as text."""
        ...


@runtime_checkable
class ToolProvider(Protocol):
    """Provides tools for the agent."""

    def tools(self) -> Sequence[Tool]: ...


@runtime_checkable
class ContextProvider(Protocol):
    """Provides context for the agent's answer. The lowest priority comes first."""

    @property
    def context_priority(self) -> int: ...

    async def context(self, prompt: Prompt) -> str | None:
        """Return text for the prompt, or None."""
        ...


@runtime_checkable
class SchedulerProvider(Protocol):
    """Runs the jobs of its manifest. A failed or interrupted job is repeated, so it must be idempotent."""

    async def run_schedule(self, name: str) -> None: ...


@runtime_checkable
class MessageListener(Protocol):
    """Receives the messages of conversations. The host waits for it."""

    async def hear(self, said: Utterance) -> None: ...


@runtime_checkable
class HistoryProvider(Protocol):
    """Provides the earlier messages of a session."""

    async def recent(self, place: ConversationKey, session: str, limit: int) -> Sequence[Turn]:
        """Return the last messages of a session, in order."""
        ...


def in_order(extensions: Sequence[Extension]) -> list[Extension]:
    """Order extensions so that each follows those it needs; otherwise keep the given order.

    Raises:
        InvalidError: one is missing, two have the same name, or two need each other.
    """
    by_name = {each.manifest.name: each for each in extensions}
    if len(by_name) != len(extensions):
        names = [each.manifest.name for each in extensions]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InvalidError(f"extensions: {', '.join(twice)} is listed twice", hint="remove one of the two entries")
    for each in extensions:
        if missing := sorted(set(each.manifest.needs) - by_name.keys()):
            raise InvalidError(f"extensions: {each.manifest.name} needs {', '.join(missing)}", hint="add it")
    try:
        order = TopologicalSorter({name: each.manifest.needs for name, each in by_name.items()}).static_order()
        return [by_name[name] for name in order]
    except CycleError as error:
        raise InvalidError(
            f"extensions: {', '.join(error.args[1][1:])} depend on each other", hint="remove one of these dependencies"
        ) from error


class Models:
    """The models of a host by role. They are created on first use. Extensions get models here and never see keys."""

    def __init__(
        self,
        settings: Settings,
        *,
        chat: str | ChatModel | None = None,
        consolidation: str | LanguageModel | None = None,
    ) -> None:
        """Args:
        chat: answers in chats; by default the setting `chat_model`, else the consolidation model.
        consolidation: turns conversations into knowledge; by default the setting `model`.
        """
        self._settings = settings
        self._consolidation = consolidation or named(settings.model)
        self._chat = chat or named(settings.chat_model) or self._consolidation
        self._made: ChatModel | None = None

    @property
    def consolidation(self) -> str | LanguageModel | None:
        """The consolidation model, for `Memory.open(model=...)`."""
        return self._consolidation

    def chat(self) -> ChatModel | None:
        """Return the model for chats, or None.

        Raises:
            InvalidError: no model has this name, or it cannot stream.
            UnavailableError: its packages are not installed.
        """
        if self._made is None and self._chat is not None:
            from ricordo.models.language import chat_model_from_settings  # pydantic takes a tenth of a second to import

            self._made = chat_model_from_settings(self._chat, self._settings)
        return self._made


def named(spec: str) -> str | None:
    """Return a model's name from the settings; None for "" and "none"."""
    return spec if spec not in ("", "none") else None


# ---- the memory

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
        """Return the tools given at construction."""
        return self._tools

    @property
    def context_priority(self) -> int:
        """The priority of its context: before most others."""
        return CONTEXT_PRIORITY

    async def context(self, prompt: Prompt) -> str | None:
        """Return memories about the prompt, except from this session, which the model already knows."""
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
        """Run the nightly upkeep, or prune memories above the limit. A failed step is repeated the next night. A
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
            return  # it has no messages, or none that may be stored
        run = await memory.consolidate(session)
        if run.state == "failed":
            raise UnavailableError(f"the conversation could not be consolidated: {run.reason}")
        if any(item.what == "left" for item in run.items):
            raise UnavailableError("another process is consolidating the conversation")

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
