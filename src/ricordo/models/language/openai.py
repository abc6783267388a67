"""Any server that speaks OpenAI's protocol of chat completions: OpenAI, Ollama, llama.cpp, vLLM and others.

Not all of them take a schema. One that refuses is asked for any JSON object with the schema in the prompt, then for a
call of a tool; what it took is remembered.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from ricordo.errors import InvalidError, UnavailableError
from ricordo.models.http import Endpoint, post_async, stream_events
from ricordo.models.language.asking import as_text
from ricordo.ports import Completion, Ending, Piece, Turn

_ENDINGS: Mapping[str, Ending] = {"length": "cut", "content_filter": "refused"}
_SCHEMA_IN_WORDS = "Answer with one JSON object of this JSON schema, and nothing else:"


class OpenAIModel:
    """A LanguageModel and a ChatModel over HTTP."""

    def __init__(self, name: str, endpoint: Endpoint, *, model: str, context_tokens: int, is_openai: bool) -> None:
        self.name = name
        self.context_tokens = context_tokens
        self._endpoint = endpoint
        self._model = model
        self._is_openai = is_openai
        self._ways: tuple[Callable[[Mapping[str, Any]], dict[str, Any]], ...] = (_by_schema, _by_object, _by_tool)

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        """One answer.

        Raises:
            UnavailableError: no usable answer, after several tries.
            DeniedError: the server wants another key.
            InvalidError: the server refuses the prompt or does not know the model.
        """
        while True:
            way = self._ways[0]
            try:
                answer = await post_async(self._endpoint, "chat/completions", self._body(turns, schema, max_tokens))
            except InvalidError as error:
                if not _is_about_form(error.message) or len(self._ways) == 1:
                    raise
                if self._ways[0] is way:  # of two callers one may have moved on already
                    self._ways = self._ways[1:]
                continue
            return _read(answer)

    async def stream(self, turns: Sequence[Turn], *, max_tokens: int) -> AsyncIterator[Piece]:
        """An answer piece by piece. Raises as `complete` does; UnavailableError also where it breaks off."""
        messages = [{"role": turn.role, "content": turn.text} for turn in turns]
        body = {
            "model": self._model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_completion_tokens" if self._is_openai else "max_tokens": max_tokens,
        }
        last = Piece()
        async for event in stream_events(self._endpoint, "chat/completions", body):
            piece = _read_piece(event)
            if piece.text:
                yield Piece(text=piece.text)
            last = Piece(
                ended=piece.ended or last.ended,
                tokens_in=piece.tokens_in or last.tokens_in,
                tokens_out=piece.tokens_out or last.tokens_out,
            )
        if last.ended is None:
            raise UnavailableError("the model's answer broke off")
        yield last

    def _body(self, turns: Sequence[Turn], schema: Mapping[str, Any], max_tokens: int) -> dict[str, Any]:
        form = self._ways[0](schema)
        messages: list[dict[str, str]] = [{"role": turn.role, "content": turn.text} for turn in turns]
        if "tools" not in form and form["response_format"]["type"] == "json_object":
            messages[0]["content"] += f"\n\n{_SCHEMA_IN_WORDS}\n{as_text(schema)}"
        # OpenAI's newer models take neither a temperature nor the older name of the limit.
        how = {"max_completion_tokens": max_tokens} if self._is_openai else {"max_tokens": max_tokens, "temperature": 0}
        return {"model": self._model, "messages": messages, **how, **form}


def _by_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    named = {"name": schema["title"], "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _by_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"response_format": {"type": "json_object"}}


def _by_tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": schema["title"], "parameters": schema}
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": schema["title"]}},
    }


def _is_about_form(message: str) -> bool:
    """Whether a server's refusal may be one of the form that was asked for, and not of the key, model or length."""
    said = message.lower()
    return any(
        word in said for word in ("response_format", "json_schema", "json_object", "schema", "structured", "grammar")
    )


def _read(answer: Any) -> Completion:
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        called = message.get("tool_calls") or []
        text = called[0]["function"]["arguments"] if called else message.get("content") or ""
        used = answer.get("usage") or {}
        refused = bool(message.get("refusal"))
        ending: Ending = "refused" if refused else _ENDINGS.get(choice.get("finish_reason") or "", "done")
        return Completion(
            text=text if isinstance(text, str) else json.dumps(text),
            tokens_in=_count(used, "prompt_tokens"),
            tokens_out=_count(used, "completion_tokens"),
            ending=ending,
        )
    except (LookupError, TypeError, AttributeError) as error:
        raise UnavailableError("the model's server sent no answer that can be read") from error


def _read_piece(event: Any) -> Piece:
    """One event of a stream. The one with the count of tokens holds no choice."""
    try:
        if event.get("error"):
            raise UnavailableError("the model's server broke the answer off")
        choice = (event.get("choices") or [{}])[0]
        delta, why, used = choice.get("delta") or {}, choice.get("finish_reason"), event.get("usage") or {}
        ended = None if not why else _ENDINGS.get(why, "done")
        said = delta.get("content") or delta.get("refusal") or ""
        return Piece(
            text=said if isinstance(said, str) else "",
            ended=ended,
            tokens_in=_count(used, "prompt_tokens"),
            tokens_out=_count(used, "completion_tokens"),
        )
    except (LookupError, TypeError, AttributeError) as error:
        raise UnavailableError("the model's server sent no answer that can be read") from error


def _count(used: Mapping[str, Any], name: str) -> int:
    number = used.get(name)
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else 0
