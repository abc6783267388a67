"""What an extension of the host is: a manifest, a beginning and an end, and whichever of these abilities it has."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError
from ricordo.ports import Clock, Turn

if TYPE_CHECKING:
    from ricordo.host.bus import Bus
    from ricordo.host.router import ConversationKey, Router
    from ricordo.model import Role
from typing import TYPE_CHECKING, Literal

from ricordo.settings import Settings

if TYPE_CHECKING:
    from ricordo.ports import ChatModel, LanguageModel


USUAL_PRIORITY = 100
"""Where a context stands that does not say. The memory's own has 50: others may build on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """What an extension has done at its hour: a name, and a cron expression in the owner's time zone."""

    name: str
    cron: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Who an extension is. `needs` names the extensions that must have begun before it."""

    name: str
    version: str
    summary: str = ""
    needs: tuple[str, ...] = ()
    schedules: tuple[PlannedJob, ...] = ()

    @classmethod
    def read(cls, file: Path) -> Manifest:
        """The manifest of a TOML file: `name`, `version`, `summary`, `needs`, and `[schedules]` of names and plans.

        Raises:
            InvalidError: it cannot be read, lacks a name or a version, or holds what no manifest does.
        """
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8"))
            plans = found.pop("schedules", {})
            schedules = tuple(PlannedJob(name=name, cron=cron) for name, cron in plans.items())
            return cls(**{**found, "needs": tuple(found.get("needs", ())), "schedules": schedules})
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise InvalidError(f"{file} is no manifest: {error}", hint="it needs `name` and `version`") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class HostServices:
    """What the host gives an extension to work with."""

    bus: Bus
    router: Router
    models: Models
    clock: Clock
    zone: ZoneInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What the user has just said, before a model answers."""

    text: str
    place: ConversationKey
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """A message of a conversation, by the user or by the assistant."""

    text: str
    role: Role
    place: ConversationKey
    session: str
    is_off_record: bool = False
    attributes: Mapping[str, Any] | None = None


class Extension(Protocol):
    """Anything with a manifest. What else it can do is told by the protocols below."""

    @property
    def manifest(self) -> Manifest: ...

    async def start(self, around: HostServices) -> None:
        """Begin: subscribe to events, open what is needed. Those it needs have begun."""
        ...

    async def stop(self) -> None:
        """Let go of everything. No event and no message comes any more."""
        ...


class Tool(Protocol):
    """Something a model may call: `parameters` is the JSON schema of its arguments."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    async def __call__(self, arguments: Mapping[str, Any] | str) -> str:
        """The answer as text; what goes wrong is told in it."""
        ...


@runtime_checkable
class ToolProvider(Protocol):
    """Has tools for the agent."""

    def tools(self) -> Sequence[Tool]: ...


@runtime_checkable
class ContextProvider(Protocol):
    """Knows something an agent should be told before it answers. The lowest priority is asked and stands first."""

    @property
    def context_priority(self) -> int: ...

    async def context(self, prompt: Prompt) -> str | None:
        """Text for the prompt, or None where there is nothing to say."""
        ...


@runtime_checkable
class SchedulerProvider(Protocol):
    """Does what its manifest plans. Asked again where that failed or was cut off: doing it twice must be doing it
    once.
    """

    async def run_schedule(self, name: str) -> None: ...


@runtime_checkable
class MessageListener(Protocol):
    """Hears what is said. The host waits for it before it goes on."""

    async def hear(self, said: Utterance) -> None: ...


@runtime_checkable
class HistoryProvider(Protocol):
    """Knows what was said in a session before."""

    async def recent(self, place: ConversationKey, session: str, limit: int) -> Sequence[Turn]:
        """The last messages of a session, in order."""
        ...


def in_order(extensions: Sequence[Extension]) -> list[Extension]:
    """Each after those it needs; else as given.

    Raises:
        InvalidError: one is missing, two bear one name, or two need each other.
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
    """The models of a host by their part. Made when first asked for; an extension asks here, and never for keys."""

    def __init__(
        self,
        settings: Settings,
        *,
        chat: str | ChatModel | None = None,
        consolidation: str | LanguageModel | None = None,
    ) -> None:
        """Args:
        chat: who answers; the setting `chat_model` where None, else the model that consolidates.
        consolidation: who turns conversations into knowledge; the setting `model` where None.
        """
        self._settings = settings
        self._consolidation = consolidation or named(settings.model)
        self._chat = chat or named(settings.chat_model) or self._consolidation
        self._made: ChatModel | None = None

    @property
    def is_for_chat(self) -> bool:
        """Whether there is a model that answers."""
        return self._chat is not None

    @property
    def consolidation(self) -> str | LanguageModel | None:
        """For `Memory.open(model=...)`."""
        return self._consolidation

    def chat(self) -> ChatModel | None:
        """Who answers, or None.

        Raises:
            InvalidError: there is no such model, or it cannot answer piece by piece.
            UnavailableError: its packages are not installed.
        """
        if self._made is None and self._chat is not None:
            from ricordo.models.language import chat_model_from_settings  # pydantic takes a tenth of a second to import

            self._made = chat_model_from_settings(self._chat, self._settings)
        return self._made


def named(spec: str) -> str | None:
    """A model's name as settings give it; "" and "none" are none."""
    return spec if spec not in ("", "none") else None
