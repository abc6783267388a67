"""Anthropic's messages over plain HTTP: the form is asked for as the input of a tool that must be called."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ricordo.errors import UnavailableError
from ricordo.http_json import Endpoint, post_async
from ricordo.ports import Completion, Ending, Turn

_VERSION = "2023-06-01"
_ENDINGS: Mapping[str, Ending] = {"max_tokens": "cut", "refusal": "refused"}


def headers(api_key: str | None) -> Mapping[str, str]:
    """What every request carries."""
    key = {"x-api-key": api_key} if api_key else {}
    return {"anthropic-version": _VERSION, **key}


class AnthropicModel:
    """A LanguageModel over HTTP."""

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


def _read(answer: Any) -> Completion:
    try:
        called = [part["input"] for part in answer["content"] if part.get("type") == "tool_use"]
        said = "".join(part.get("text", "") for part in answer["content"] if part.get("type") == "text")
        used = answer.get("usage") or {}
        return Completion(
            text=json.dumps(called[0], ensure_ascii=False) if called else said,
            tokens_in=int(used.get("input_tokens") or 0), tokens_out=int(used.get("output_tokens") or 0),
            ending=_ENDINGS.get(answer.get("stop_reason") or "", "done"),
        )  # fmt: skip
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise UnavailableError("the model's server sent no answer that can be read") from error
