"""A small host for agents: what `ricordo chat` runs on, and what extensions are written for.

>>> from ricordo.host import Host, Manifest, MemoryExtension
"""

from ricordo.host.bus import Bus, DeadLetter, Event, Outgoing, Patience
from ricordo.host.conversation import Conversation, Exchange
from ricordo.host.extension import (
    Around,
    ContextProvider,
    Extension,
    HistoryProvider,
    Manifest,
    MessageListener,
    Planned,
    Prompt,
    Said,
    SchedulerProvider,
    Tool,
    ToolProvider,
)
from ricordo.host.host import Host, Told
from ricordo.host.memory_extension import MemoryExtension
from ricordo.host.models import Models
from ricordo.host.router import SESSION_COMPLETED, Place, Router
from ricordo.host.schedule import Job, Schedule

__all__ = [
    "SESSION_COMPLETED",
    "Around",
    "Bus",
    "ContextProvider",
    "Conversation",
    "DeadLetter",
    "Event",
    "Exchange",
    "Extension",
    "HistoryProvider",
    "Host",
    "Job",
    "Manifest",
    "MemoryExtension",
    "MessageListener",
    "Models",
    "Outgoing",
    "Patience",
    "Place",
    "Planned",
    "Prompt",
    "Router",
    "Said",
    "Schedule",
    "SchedulerProvider",
    "Told",
    "Tool",
    "ToolProvider",
]
