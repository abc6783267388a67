"""Ricordo: long-term memory for AI agents."""

from ricordo.errors import (
    ConflictError,
    DeniedError,
    InvalidError,
    NotFoundError,
    RicordoError,
    StoreError,
    UnavailableError,
)
from ricordo.memory import Memory
from ricordo.model import Fact, Hit, Message, Node, Results, Scope
from ricordo.ports import Embedder
from ricordo.settings import Settings

__all__ = [
    "ConflictError",
    "DeniedError",
    "Embedder",
    "Fact",
    "Hit",
    "InvalidError",
    "Memory",
    "Message",
    "Node",
    "NotFoundError",
    "Results",
    "RicordoError",
    "Scope",
    "Settings",
    "StoreError",
    "UnavailableError",
]
