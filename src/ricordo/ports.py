"""What Ricordo calls out to. Anything with these methods will do; nothing needs to inherit."""

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
"""Told (how much is done, how much there is in all) as long work goes on."""


class Embedder(Protocol):
    """Turns text into vectors whose dot product says how near two texts are in meaning.

    `name` identifies the vector space: vectors of two embedders of one name may be compared. A result of
    `embed_batch` may be None for a text that could not be embedded, without losing the others.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, text: str, *, kind: Kind = "query") -> Vector:
        """One text as float32[dimension]."""
        ...

    async def embed_batch(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Vector | None]:
        """Many texts, in order: float32[dimension] each, or None where one failed."""
        ...


@runtime_checkable
class WordEmbedder(Protocol):
    """An embedder that also gives a vector for each word piece, for late interaction."""

    async def embed_words(self, texts: Sequence[str]) -> list[tuple[list[str], Vector]]:
        """For each text its word pieces and their vectors, float32[pieces, k]."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One part of what a language model is given."""

    role: Literal["system", "user", "assistant"]
    text: str


Ending = Literal["done", "cut", "refused"]
"""Why a model stopped: it had said all, it ran out of tokens, or it would not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a language model said, and what that took. `text` should be JSON of the schema that was asked for."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    ending: Ending = "done"


class LanguageModel(Protocol):
    """Answers with JSON. It is given text that others wrote, as data; what it answers is checked as a stranger's word.

    `name` says which model it is; `context_tokens` how many tokens a prompt and its answer may have together.
    """

    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int: ...

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        """One answer, in the form of a JSON schema (an object whose properties are all required; `title` names it).

        Raises:
            RicordoError: no answer could be had, after several tries where that may help.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of an answer as it comes. The last one says how it `ended` and, where the model tells, what it took."""

    text: str = ""
    ended: Ending | None = None
    tokens_in: int = 0
    tokens_out: int = 0


@runtime_checkable
class ChatModel(Protocol):
    """Answers with text, piece by piece, for somebody who reads along. Most language models are one, too."""

    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int: ...

    def stream(self, turns: Sequence[Turn], *, max_tokens: int) -> AsyncIterator[Piece]:
        """The answer; who stops reading ends it.

        Raises:
            RicordoError: no answer could be had, or it broke off in the middle.
        """
        ...


class Clock(Protocol):
    """Where "now" comes from, so that a test can move it."""

    def now(self) -> int:
        """Unix milliseconds, UTC."""
        ...


class TokenCounter(Protocol):
    """How many tokens a model would see in a text."""

    def count(self, text: str) -> int: ...
