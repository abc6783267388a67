"""Ricordo: long-term memory for AI agents."""

from typing import TYPE_CHECKING

from ricordo.errors import (
    ConflictError,
    DeniedError,
    InvalidError,
    NotFoundError,
    RicordoError,
    StoreError,
    UnavailableError,
)
from ricordo.model import Fact, Hit, Message, Node, Results, Review, Scope
from ricordo.ports import Embedder, LanguageModel
from ricordo.settings import Settings

if TYPE_CHECKING:
    from ricordo.memory import Memory

__all__ = [
    "ConflictError",
    "DeniedError",
    "Embedder",
    "Fact",
    "Hit",
    "InvalidError",
    "LanguageModel",
    "Memory",
    "Message",
    "Node",
    "NotFoundError",
    "Results",
    "Review",
    "RicordoError",
    "Scope",
    "Settings",
    "StoreError",
    "UnavailableError",
]


def __getattr__(name: str) -> object:
    """Return `Memory` on first use. It imports numpy, and `ricordo --help` need not wait for that."""
    if name == "Memory":
        from ricordo.memory import Memory

        globals()[name] = Memory
        return Memory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
