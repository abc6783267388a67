"""A language model with scripted answers, for tests and demonstrations."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from ricordo.errors import UnavailableError
from ricordo.ports import Completion, Piece, Turn

Script = Callable[[Sequence[Turn], Mapping[str, Any]], object]
"""Returns the answer to a prompt and a schema: a JSON value, a text, a `Completion`, or an error to raise."""


class ScriptedModel:
    """Answers from a list, in order, or from a function. `prompts` records the prompts it received.

    If an answer has no token counts, a token is counted as four characters.
    """

    def __init__(
        self, answers: Iterable[object] | Script, *, name: str = "scripted", context_tokens: int = 8_192
    ) -> None:
        self.name = name
        self.context_tokens = context_tokens
        self.prompts: list[Sequence[Turn]] = []
        self._script: Script | None = answers if callable(answers) else None
        self._answers: list[object] = [] if callable(answers) else list(answers)

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        """Return the next answer. Raises UnavailableError if none is left, and any error of the script."""
        self.prompts.append(turns)
        answer = self._next(turns, schema)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Completion):
            return answer
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        asked = sum(len(turn.text) for turn in turns)
        return Completion(text=text, tokens_in=asked // 4, tokens_out=len(text) // 4)

    async def stream(self, turns: Sequence[Turn], *, max_tokens: int) -> AsyncIterator[Piece]:
        """Stream the next answer word by word. A script function gets an empty schema. Raises as `complete` does."""
        said = await self.complete(turns, schema={}, max_tokens=max_tokens)
        for word in re.findall(r"\s*\S+\s*$|\s*\S+", said.text):
            yield Piece(text=word)
            await asyncio.sleep(0)
        yield Piece(ended=said.ending, tokens_in=said.tokens_in, tokens_out=said.tokens_out)

    def _next(self, turns: Sequence[Turn], schema: Mapping[str, Any]) -> object:
        if self._script is not None:
            return self._script(turns, schema)
        if not self._answers:
            raise UnavailableError("the scripted model has no answers left")
        return self._answers.pop(0)
