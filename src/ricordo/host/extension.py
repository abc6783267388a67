"""Extensions of the host: a manifest, `start` and `stop`, and the optional abilities of the protocols below."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError
from ricordo.ports import Clock, Turn
from ricordo.settings import Settings

if TYPE_CHECKING:
    from ricordo.host.bus import Bus
    from ricordo.host.router import ConversationKey, Router
    from ricordo.model import Role
    from ricordo.ports import ChatModel, LanguageModel


USUAL_PRIORITY = 100
"""The default priority of a context. The memory's has 50: others may build on it."""


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
            raise InvalidError(f"{file} is not a manifest: {error}", hint="it needs `name` and `version`") from error


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
        """Release everything. No event and no message follows."""
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
        """Return the answer as text; it also reports errors."""
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
    """Runs the jobs of its manifest. A job that failed or was interrupted is repeated, so it must be idempotent."""

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
        raise InvalidError(f"extensions: {', '.join(twice)} is there twice")
    for each in extensions:
        if missing := sorted(set(each.manifest.needs) - by_name.keys()):
            raise InvalidError(f"extensions: {each.manifest.name} needs {', '.join(missing)}", hint="add it")
    try:
        order = TopologicalSorter({name: each.manifest.needs for name, each in by_name.items()}).static_order()
        return [by_name[name] for name in order]
    except CycleError as error:
        raise InvalidError(f"extensions: {', '.join(error.args[1][1:])} need each other") from error


Part = Literal["chat", "consolidation"]


class Models:
    """The models of a host by role. They are created on first use; extensions get models here and never see keys."""

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
    def is_for_chat(self) -> bool:
        """Whether there is a model for chats."""
        return self._chat is not None

    @property
    def consolidation(self) -> str | LanguageModel | None:
        """For `Memory.open(model=...)`."""
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
