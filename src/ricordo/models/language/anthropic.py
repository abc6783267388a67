"""Anthropic's messages over plain HTTP: the form is asked for as the input of a tool that must be called."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from ricordo.errors import UnavailableError
from ricordo.models.http import Endpoint, post_async, stream_events
from ricordo.ports import Completion, Ending, Piece, Turn

_VERSION = "2023-06-01"
_ENDINGS: Mapping[str, Ending] = {"max_tokens": "cut", "refusal": "refused"}


def headers(api_key: str | None) -> Mapping[str, str]:
    """What every request carries."""
    key = {"x-api-key": api_key} if api_key else {}
    return {"anthropic-version": _VERSION, **key}


class AnthropicModel:
    """A LanguageModel and a ChatModel over HTTP."""

    def __init__(self, name: str, endpoint: Endpoint, *, model: str, context_tokens: int) -> None:
        self.name = name
        self.context_tokens = context_tokens
        self._endpoint = endpoint
        self._model = model

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        """One answer.

        Raises:
            UnavailableError: no usable answer, after several tries.
            DeniedError: the server wants another key.
            InvalidError: the server refuses the prompt or does not know the model.
        """
        system = "\n\n".join(turn.text for turn in turns if turn.role == "system")
        body = {
            "model": self._model,
            "system": system,
            "max_tokens": max_tokens,
            "messages": [{"role": turn.role, "content": turn.text} for turn in turns if turn.role != "system"],
            "tools": [{"name": schema["title"], "description": "The answer.", "input_schema": schema}],
            "tool_choice": {"type": "tool", "name": schema["title"]},
        }
        return _read(await post_async(self._endpoint, "messages", body))

    async def stream(self, turns: Sequence[Turn], *, max_tokens: int) -> AsyncIterator[Piece]:
        """An answer piece by piece. Raises as `complete` does; UnavailableError also where it breaks off."""
        system = "\n\n".join(turn.text for turn in turns if turn.role == "system")
        body = {
            "model": self._model,
            "system": system,
            "max_tokens": max_tokens,
            "stream": True,
            "messages": [{"role": turn.role, "content": turn.text} for turn in turns if turn.role != "system"],
        }
        tokens_in, last = 0, Piece()
        async for event in stream_events(self._endpoint, "messages", body):
            piece = _read_piece(event)
            tokens_in = piece.tokens_in or tokens_in
            if piece.text:
                yield Piece(text=piece.text)
            if piece.ended:
                last = piece
        if last.ended is None:
            raise UnavailableError("the model's answer broke off")
        yield Piece(ended=last.ended, tokens_in=tokens_in, tokens_out=last.tokens_out)


def _read_piece(event: Any) -> Piece:
    """One event of a stream: how many tokens it took in, a piece of text, or how it ended."""
    try:
        match event.get("type"):
            case "message_start":
                return Piece(tokens_in=int(event["message"]["usage"].get("input_tokens") or 0))
            case "content_block_delta":
                return Piece(text=str(event["delta"].get("text") or ""))
            case "message_delta" if event["delta"].get("stop_reason"):
                spent = int((event.get("usage") or {}).get("output_tokens") or 0)
                return Piece(ended=_ENDINGS.get(event["delta"]["stop_reason"], "done"), tokens_out=spent)
            case "error":
                raise UnavailableError("the model's server broke the answer off")
        return Piece()
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise UnavailableError("the model's server sent no answer that can be read") from error


def _read(answer: Any) -> Completion:
    try:
        called = [part["input"] for part in answer["content"] if part.get("type") == "tool_use"]
        said = "".join(part.get("text", "") for part in answer["content"] if part.get("type") == "text")
        used = answer.get("usage") or {}
        return Completion(
            text=json.dumps(called[0], ensure_ascii=False) if called else said,
            tokens_in=int(used.get("input_tokens") or 0),
            tokens_out=int(used.get("output_tokens") or 0),
            ending=_ENDINGS.get(answer.get("stop_reason") or "", "done"),
        )
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise UnavailableError("the model's server sent no answer that can be read") from error
