"""Language models on servers: OpenAI's chat completions (also Ollama, llama.cpp, vLLM) and Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

from ricordo.errors import InvalidError, UnavailableError
from ricordo.models.http import Endpoint, bearer, post_async, stream_events
from ricordo.ports import Completion, Ending, Piece, Turn

T = TypeVar("T")

_ANTHROPIC_VERSION = "2023-06-01"
_ANTHROPIC_ENDINGS: Mapping[str, Ending] = {"max_tokens": "cut", "refusal": "refused"}
_OPENAI_ENDINGS: Mapping[str, Ending] = {"length": "cut", "content_filter": "refused"}
_SCHEMA_IN_WORDS = "Answer with one JSON object of this JSON schema, and nothing else:"


def headers(provider: str, api_key: str | None) -> Mapping[str, str]:
    """Return the headers of every request to a provider."""
    if provider != "anthropic":
        return bearer(api_key)
    key = {"x-api-key": api_key} if api_key else {}
    return {"anthropic-version": _ANTHROPIC_VERSION, **key}


def _checked(read: Callable[[Any], T]) -> Callable[[Any], T]:
    """Make a function raise UnavailableError if it cannot read a server's answer."""

    @wraps(read)
    def checked(answer: Any) -> T:
        try:
            return read(answer)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise UnavailableError("the model's server sent an unreadable answer") from error

    return checked


async def _streamed(events: AsyncIterator[Any], read: Callable[[Any], Piece]) -> AsyncIterator[Piece]:
    """Yield the texts of a stream, then a piece with all token counts. Raises UnavailableError if it breaks off."""
    last = Piece()
    async for event in events:
        piece = read(event)
        if piece.text:
            yield Piece(text=piece.text)
        last = Piece(
            ended=piece.ended or last.ended,
            tokens_in=piece.tokens_in or last.tokens_in,
            tokens_out=piece.tokens_out or last.tokens_out,
        )
    if last.ended is None:
        raise UnavailableError("the model's answer was cut off")
    yield last


def _messages(turns: Sequence[Turn]) -> list[dict[str, str]]:
    return [{"role": turn.role, "content": turn.text} for turn in turns]


class OpenAIModel:
    """A LanguageModel and a ChatModel over any server with OpenAI's chat completions protocol.

    Not all of these servers accept a schema. If a server refuses it, the model asks for any JSON object, with the
    schema in the prompt, and finally for a tool call. It remembers the first form that the server accepts.
    """

    def __init__(self, name: str, endpoint: Endpoint, *, model: str, context_tokens: int, is_openai: bool) -> None:
        self.name = name
        self.context_tokens = context_tokens
        self._endpoint = endpoint
        self._model = model
        self._is_openai = is_openai
        self._ways: tuple[Callable[[Mapping[str, Any]], dict[str, Any]], ...] = (_by_schema, _by_object, _by_tool)

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        """Return one answer.

        Raises:
            UnavailableError: there is no usable answer after several attempts.
            DeniedError: the server refuses the key.
            InvalidError: the server refuses the prompt or does not know the model.
        """
        while True:
            way = self._ways[0]
            try:
                answer = await post_async(self._endpoint, "chat/completions", self._body(turns, schema, max_tokens))
            except InvalidError as error:
                if not _is_about_form(error.message) or len(self._ways) == 1:
                    raise
                if self._ways[0] is way:  # another caller may have switched already
                    self._ways = self._ways[1:]
                continue
            return _openai_completion(answer)

    async def stream(self, turns: Sequence[Turn], *, max_tokens: int) -> AsyncIterator[Piece]:
        """Stream an answer. Raises as `complete` does, and UnavailableError if the answer breaks off."""
        body = {
            "model": self._model,
            "messages": _messages(turns),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_completion_tokens" if self._is_openai else "max_tokens": max_tokens,
        }
        async for piece in _streamed(stream_events(self._endpoint, "chat/completions", body), _openai_piece):
            yield piece

    def _body(self, turns: Sequence[Turn], schema: Mapping[str, Any], max_tokens: int) -> dict[str, Any]:
        form = self._ways[0](schema)
        messages = _messages(turns)
        if "tools" not in form and form["response_format"]["type"] == "json_object":
            messages[0]["content"] += f"\n\n{_SCHEMA_IN_WORDS}\n{as_text(schema)}"
        # OpenAI's newer models accept neither a temperature nor the older name of the limit.
        how = {"max_completion_tokens": max_tokens} if self._is_openai else {"max_tokens": max_tokens, "temperature": 0}
        return {"model": self._model, "messages": messages, **how, **form}


def as_text(schema: Mapping[str, Any]) -> str:
    """Return a schema as text for the prompt of a server that accepts no schemas."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


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


_ABOUT_FORM = ("response_format", "json_schema", "json_object", "schema", "structured", "grammar")


def _is_about_form(message: str) -> bool:
    """Return whether a refusal may concern the requested form rather than the key, model or length."""
    return any(word in message.lower() for word in _ABOUT_FORM)


@_checked
def _openai_completion(answer: Any) -> Completion:
    choice, used = answer["choices"][0], answer.get("usage") or {}
    message = choice["message"]
    called = message.get("tool_calls") or []
    text = called[0]["function"]["arguments"] if called else message.get("content") or ""
    refused = bool(message.get("refusal"))
    return Completion(
        text=text if isinstance(text, str) else json.dumps(text),
        tokens_in=_count(used, "prompt_tokens"),
        tokens_out=_count(used, "completion_tokens"),
        ending="refused" if refused else _OPENAI_ENDINGS.get(choice.get("finish_reason") or "", "done"),
    )


@_checked
def _openai_piece(event: Any) -> Piece:
    """Read one event of a stream. The event with the token counts has no choice."""
    if event.get("error"):
        raise UnavailableError("the model's server ended the answer with an error")
    choice, used = (event.get("choices") or [{}])[0], event.get("usage") or {}
    delta, why = choice.get("delta") or {}, choice.get("finish_reason")
    text = delta.get("content") or delta.get("refusal") or ""
    return Piece(
        text=text if isinstance(text, str) else "",
        ended=_OPENAI_ENDINGS.get(why, "done") if why else None,
        tokens_in=_count(used, "prompt_tokens"),
        tokens_out=_count(used, "completion_tokens"),
    )


def _count(used: Mapping[str, Any], name: str) -> int:
    number = used.get(name)
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else 0


class AnthropicModel:
    """A LanguageModel and a ChatModel over Anthropic's Messages API. JSON is requested as input of a required tool."""

    def __init__(self, name: str, endpoint: Endpoint, *, model: str, context_tokens: int) -> None:
        self.name = name
        self.context_tokens = context_tokens
        self._endpoint = endpoint
        self._model = model

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        """Return one answer. Raises as `OpenAIModel.complete` does."""
        body = self._body(turns, max_tokens) | {
            "tools": [{"name": schema["title"], "description": "The answer.", "input_schema": schema}],
            "tool_choice": {"type": "tool", "name": schema["title"]},
        }
        return _anthropic_completion(await post_async(self._endpoint, "messages", body))

    async def stream(self, turns: Sequence[Turn], *, max_tokens: int) -> AsyncIterator[Piece]:
        """Stream an answer. Raises as `complete` does, and UnavailableError if the answer breaks off."""
        body = self._body(turns, max_tokens) | {"stream": True}
        async for piece in _streamed(stream_events(self._endpoint, "messages", body), _anthropic_piece):
            yield piece

    def _body(self, turns: Sequence[Turn], max_tokens: int) -> dict[str, Any]:
        system = "\n\n".join(turn.text for turn in turns if turn.role == "system")
        messages = _messages([turn for turn in turns if turn.role != "system"])
        return {"model": self._model, "system": system, "max_tokens": max_tokens, "messages": messages}


@_checked
def _anthropic_piece(event: Any) -> Piece:
    """Read one event of a stream: the count of input tokens, a piece of text, or the end."""
    match event.get("type"):
        case "message_start":
            return Piece(tokens_in=int(event["message"]["usage"].get("input_tokens") or 0))
        case "content_block_delta":
            return Piece(text=str(event["delta"].get("text") or ""))
        case "message_delta" if event["delta"].get("stop_reason"):
            spent = int((event.get("usage") or {}).get("output_tokens") or 0)
            return Piece(ended=_ANTHROPIC_ENDINGS.get(event["delta"]["stop_reason"], "done"), tokens_out=spent)
        case "error":
            raise UnavailableError("the model's server ended the answer with an error")
    return Piece()


@_checked
def _anthropic_completion(answer: Any) -> Completion:
    called = [part["input"] for part in answer["content"] if part.get("type") == "tool_use"]
    text = "".join(part.get("text", "") for part in answer["content"] if part.get("type") == "text")
    used = answer.get("usage") or {}
    return Completion(
        text=json.dumps(called[0], ensure_ascii=False) if called else text,
        tokens_in=int(used.get("input_tokens") or 0),
        tokens_out=int(used.get("output_tokens") or 0),
        ending=_ANTHROPIC_ENDINGS.get(answer.get("stop_reason") or "", "done"),
    )
