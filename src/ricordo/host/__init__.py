"""A small host for agents: what `ricordo chat` runs on, and what extensions are written for.

>>> from ricordo.host import Host, Manifest, MemoryExtension
"""

from ricordo.host.bus import Bus, DeadLetter, Event, Job, Outgoing, Patience, Schedule
from ricordo.host.extension import (
    ContextProvider,
    Extension,
    HistoryProvider,
    HostServices,
    Manifest,
    MemoryExtension,
    MessageListener,
    Models,
    PlannedJob,
    Prompt,
    SchedulerProvider,
    Tool,
    ToolProvider,
    Utterance,
)
from ricordo.host.host import Conversation, Exchange, GatheredContext, Host
from ricordo.host.router import SESSION_COMPLETED, ConversationKey, ConversationState, Router

__all__ = [
    "SESSION_COMPLETED",
    "Bus",
    "ContextProvider",
    "Conversation",
    "ConversationKey",
    "ConversationState",
    "DeadLetter",
    "Event",
    "Exchange",
    "Extension",
    "GatheredContext",
    "HistoryProvider",
    "Host",
    "HostServices",
    "Job",
    "Manifest",
    "MemoryExtension",
    "MessageListener",
    "Models",
    "Outgoing",
    "Patience",
    "PlannedJob",
    "Prompt",
    "Router",
    "Schedule",
    "SchedulerProvider",
    "Tool",
    "ToolProvider",
    "Utterance",
]
