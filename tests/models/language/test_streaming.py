"""Streamed answers, from a small real server and from a script."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest

from ricordo.errors import DeniedError, InvalidError, UnavailableError
from ricordo.language import ScriptedModel
from ricordo.models.language import chat_model_from_settings, resolve
from ricordo.ports import ChatModel, Piece, Turn
from ricordo.settings import Settings
from tests.models.language.serving import Answer, ModelServer, status

PROMPT = [Turn(role="system", text="Be brief."), Turn(role="user", text="How are you?")]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def streamed(*events: object, done: bool = True, kind: str = "text/event-stream") -> Answer:
    text = "".join(f"data: {json.dumps(each)}\n\n" for each in events) + ("data: [DONE]\n\n" if done else "")
    return lambda asked: (200, {"Content-Type": kind}, text)


def delta(text: str | None, reason: str | None = None) -> dict:
    return {"choices": [{"delta": {} if text is None else {"content": text}, "finish_reason": reason}]}


def pieces(model: ChatModel) -> list[Piece]:
    async def read() -> list[Piece]:
        return [piece async for piece in model.stream(PROMPT, max_tokens=50)]

    return asyncio.run(read())


def model_of(server: ModelServer, spec: str = "openai:gpt", **options):
    return resolve(spec, base_url=server.url, api_key="k", **{"first_wait_s": 0.01, "timeout_s": 5.0, **options})


def test_openais_protocol_gives_pieces_and_then_what_it_took(server) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}
    server.always = streamed(delta(""), delta("Fine"), delta(", thanks"), delta(None, "stop"), usage)
    found = pieces(model_of(server))
    assert [each.text for each in found[:-1]] == ["Fine", ", thanks"]
    assert found[-1] == Piece(ended="done", tokens_in=9, tokens_out=3)
    assert server.requests[0]["stream"] is True and server.requests[0]["max_completion_tokens"] == 50
    assert pieces(model_of(server, "ollama:x"))[-1].ended == "done"
    assert server.requests[1]["max_tokens"] == 50


def test_anthropics_protocol_gives_the_same(server) -> None:
    server.always = streamed(
        {"type": "message_start", "message": {"usage": {"input_tokens": 9}}},
        {"type": "ping"},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Fine"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": ", thanks"}},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
        done=False,
    )
    found = pieces(model_of(server, "anthropic:claude"))
    assert "".join(each.text for each in found) == "Fine, thanks"
    assert found[-1] == Piece(ended="cut", tokens_in=9, tokens_out=3)
    assert server.requests[0]["system"] == "Be brief." and len(server.requests[0]["messages"]) == 1
    assert server.headers[0]["x-api-key"] == "k"


@pytest.mark.parametrize("spec", ["openai:gpt", "anthropic:claude"])
def test_what_breaks_off_or_is_no_stream_is_an_error_not_an_end(server, spec) -> None:
    for always in (
        streamed(delta("Fin"), done=False),
        streamed({"error": {"message": "no"}, "type": "error"}),
        streamed(delta("Fin"), kind="application/json"),
        streamed({"choices": 3, "type": "message_start"}),
    ):
        server.always = always
        with pytest.raises(UnavailableError):
            pieces(model_of(server, spec))


def test_a_busy_server_is_asked_again_a_wrong_key_is_not(server) -> None:
    server.script = [status(503), status(429, Retry_After="0")]
    server.always = streamed(delta("Fine", "stop"))
    assert "".join(each.text for each in pieces(model_of(server))) == "Fine"
    assert len(server.requests) == 3
    server.always = status(401)
    with pytest.raises(DeniedError):
        pieces(model_of(server))
    assert len(server.requests) == 4
    server.always = status(503)
    with pytest.raises(UnavailableError, match="503"):
        pieces(model_of(server))


def test_a_server_that_falls_silent_is_not_waited_for_for_ever(server) -> None:
    def silent(asked):
        time.sleep(1.5)
        return status(500)(asked)

    server.always = silent
    with pytest.raises(UnavailableError, match="does not answer"):
        pieces(model_of(server, timeout_s=0.2, attempts=1))


def test_a_script_speaks_word_by_word() -> None:
    found = pieces(ScriptedModel(["Fine,  thanks.\n"]))
    assert [each.text for each in found] == ["Fine,", "  thanks.\n", ""]
    assert found[-1].ended == "done"


def test_a_model_that_cannot_stream_is_refused_for_chat() -> None:
    class Mute:
        name, context_tokens = "mute", 100

        async def complete(self, turns, *, schema, max_tokens): ...

    with pytest.raises(InvalidError, match="mute cannot stream"):
        chat_model_from_settings(Mute(), Settings())
    assert chat_model_from_settings(None, Settings()) is None
    assert isinstance(chat_model_from_settings("ollama:x", Settings()), ChatModel)
