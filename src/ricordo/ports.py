"""Protocols of external components: embedders, rerankers, language models, clocks.

Implementations need not inherit from them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

Kind = Literal["query", "passage"]

Progress = Callable[[int, int], None]
"""Called with (done so far, total) during long work."""


class Embedder(Protocol):
    """Turns text into vectors whose dot product measures similarity of meaning.

    `name` identifies the vector space: vectors from embedders with the same name can be compared. A result of
    `embed_batch` may be None for a text that could not be embedded; the other results stay valid.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, text: str, *, kind: Kind = "query") -> Vector:
        """Return the vector of one text, float32[dimension]."""
        ...

    async def embed_batch(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Vector | None]:
        """Return a float32[dimension] per text in order, or None for one that failed."""
        ...


class Reranker(Protocol):
    """Rates how well texts answer a question, by reading the question and each text together."""

    @property
    def name(self) -> str: ...

    async def rerank(self, question: str, texts: Sequence[str]) -> Sequence[float | None]:
        """Return one rating per text in order, higher for a better answer, on any scale; None for no rating."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of the prompt for a language model."""

    role: Literal["system", "user", "assistant"]
    text: str


Ending = Literal["done", "cut", "refused"]
"""Why a model stopped: the answer was complete, the token limit was reached, or the model refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The answer of a language model, and the tokens used. `text` should be JSON of the requested schema."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    ending: Ending = "done"


class LanguageModel(Protocol):
    """Answers with JSON. Its prompt contains untrusted text as data, and its answer is validated like any untrusted
    input.

    `name` identifies the model; `context_tokens` limits a prompt and its answer together.
    """

    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int: ...

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        """Return one answer that matches a JSON schema (an object whose properties are all required; `title` names it).

        Raises:
            RicordoError: there was no answer, even after retries if those might help.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a streamed answer. The last one has `ended` and, if the model reports it, the number of tokens used."""

    text: str = ""
    ended: Ending | None = None
    tokens_in: int = 0
    tokens_out: int = 0


@runtime_checkable
class ChatModel(Protocol):
    """Streams a text answer to a reader. Most language models are also chat models."""

    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int: ...

    def stream(self, turns: Sequence[Turn], *, max_tokens: int) -> AsyncIterator[Piece]:
        """Stream the answer. Closing the iterator stops it.

        Raises:
            RicordoError: there was no answer, or it was interrupted.
        """
        ...


class Clock(Protocol):
    """The source of "now"; tests can move it."""

    def now(self) -> int:
        """Return Unix milliseconds, UTC."""
        ...


class TokenCounter(Protocol):
    """Counts the tokens of a text for a model."""

    def count(self, text: str) -> int: ...
