"""Language models over HTTP, against a small real server on this machine."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from ricordo.errors import DeniedError, InvalidError, UnavailableError
from ricordo.language import ScriptedModel
from ricordo.models.language import Answer, AnswerError, ask, resolve, schema_of
from ricordo.ports import Completion, Turn
from tests.models.language.serving import ModelServer, said, status


class Colours(BaseModel, extra="forbid"):
    colours: list[str]
    count: int = 0


GOOD = {"colours": ["red", "blue"], "count": 2}
PROMPT = [Turn(role="system", text="Name colours."), Turn(role="user", text="The flag of France.")]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        server.always = said(GOOD)
        yield server


def asked(model, prompt=PROMPT) -> Answer[Colours]:
    return asyncio.run(ask(model, prompt, Colours, max_tokens=100))


def model_of(server: ModelServer, spec: str = "", **options):
    options = {"first_wait_s": 0.01, "timeout_s": 5.0, **options}
    if spec:
        return resolve(spec, base_url=server.url, **options)
    return resolve(f"{server.url}#tiny", **options)


def test_an_answer_comes_back_in_its_form_with_what_it_took(server):
    found = asked(model_of(server, api_key="secret"))
    assert found.value == Colours(colours=["red", "blue"], count=2)
    assert (found.tokens_in, found.tokens_out) == (100, 20)
    request = server.requests[0]
    assert request["path"] == "/v1/chat/completions" and request["model"] == "tiny"
    form = request["response_format"]["json_schema"]
    assert form["strict"] and form["schema"]["required"] == ["colours", "count"]
    assert form["schema"]["additionalProperties"] is False
    assert server.headers[0]["authorization"] == "Bearer secret"


def test_no_key_sends_no_authorization(server):
    asked(model_of(server))
    assert "authorization" not in server.headers[0]


def test_openai_is_asked_with_its_own_name_of_the_limit(server):
    assert asked(model_of(server, "openai:gpt-5", api_key="k")).value.count == 2
    assert server.requests[0]["max_completion_tokens"] == 100 and "temperature" not in server.requests[0]


def test_a_server_without_schemas_is_asked_for_an_object_and_that_is_remembered(server):
    server.script = [status(400, '{"error": "json_schema is not supported"}')]
    model = model_of(server)
    assert asked(model).value.count == 2 and asked(model).value.count == 2
    assert [r["response_format"]["type"] for r in server.requests] == ["json_schema", "json_object", "json_object"]
    assert '"colours"' in server.requests[1]["messages"][0]["content"]


def test_a_server_without_either_is_asked_for_a_tool_call(server):
    call = [{"type": "function", "function": {"name": "Colours", "arguments": json.dumps(GOOD)}}]
    refused = status(400, '{"error": "unknown field response_format"}')
    server.script = [refused, refused, said("", tool_calls=call)]
    assert asked(model_of(server)).value.count == 2
    assert server.requests[2]["tool_choice"]["function"]["name"] == "Colours"


def test_anthropic_is_asked_for_a_tool_call(server):
    answer = {"content": [{"type": "tool_use", "input": GOOD}], "usage": {"input_tokens": 7, "output_tokens": 3}}
    server.always = lambda body: (200, {}, json.dumps(answer))
    found = asked(model_of(server, "anthropic:claude", api_key="k"))
    assert found.value.count == 2 and (found.tokens_in, found.tokens_out) == (7, 3)
    request = server.requests[0]
    assert request["path"] == "/v1/messages" and request["system"] == "Name colours."
    assert request["messages"] == [{"role": "user", "content": "The flag of France."}]
    assert server.headers[0]["x-api-key"] == "k" and "anthropic-version" in server.headers[0]


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_server_that_is_busy_is_asked_again(server, code):
    server.script = [status(code), status(code)]
    assert asked(model_of(server)).value.count == 2 and len(server.requests) == 3


def test_retry_after_is_honoured(server):
    server.script = [status(429, Retry_After="0.5")]
    started = time.perf_counter()
    asked(model_of(server))
    assert time.perf_counter() - started >= 0.5


@pytest.mark.parametrize("code", [429, 500])
def test_a_server_that_stays_busy_is_unavailable_after_three_tries(server, code):
    server.always = status(code)
    with pytest.raises(UnavailableError, match=str(code)):
        asked(model_of(server))
    assert len(server.requests) == 3


def test_a_refused_key_is_denied_and_never_shown(server):
    server.always = status(401)
    with pytest.raises(DeniedError) as caught:
        asked(model_of(server, api_key="secret-key"))
    assert "secret-key" not in str(caught.value) and len(server.requests) == 1


def test_an_unknown_model_is_said_to_be_so_at_once(server):
    server.always = status(404, "no such model")
    with pytest.raises(InvalidError, match="no such model"):
        asked(model_of(server))
    assert len(server.requests) == 1


def test_a_hang_ends_after_the_time_for_an_answer(server):
    server.always = lambda body: (time.sleep(1.0), said(GOOD)(body))[1]
    with pytest.raises(UnavailableError, match="does not answer in time"):
        asked(model_of(server, timeout_s=0.2, attempts=2))


async def test_a_cancelled_question_stops_waiting(server):
    was_asked, may_answer = threading.Event(), threading.Event()
    server.always = lambda body: (was_asked.set(), may_answer.wait(60), said(GOOD)(body))[2]
    waiting = asyncio.ensure_future(ask(model_of(server), PROMPT, Colours, max_tokens=10))
    assert await asyncio.to_thread(was_asked.wait, 30)
    waiting.cancel()
    await asyncio.wait([waiting], timeout=30)
    is_waiting_for_the_answer = not waiting.done()
    may_answer.set()
    assert not is_waiting_for_the_answer
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize(
    "bad",
    [
        said("not json"),
        said('{"colours": ["red"'),
        said(GOOD, reason="length"),
        said({"colours": "red"}),
        said({**GOOD, "extra": 1}),
        said([GOOD]),
        said(""),
    ],
)
def test_what_does_not_fit_is_repaired_once(server, bad):
    server.script = [bad]
    found = asked(model_of(server))
    assert found.value.count == 2 and (found.tokens_in, found.tokens_out) == (200, 40)
    repair = server.requests[1]["messages"][-1]["content"]
    assert "not the JSON" in repair
    server.script = [bad, bad]
    with pytest.raises(AnswerError) as caught:
        asked(model_of(server))
    assert (caught.value.tokens_in, caught.value.tokens_out) == (200, 40)


def test_an_answer_in_a_fence_is_read(server):
    server.always = said(f"```json\n{json.dumps(GOOD)}\n```")
    assert asked(model_of(server)).value.count == 2 and len(server.requests) == 1


@pytest.mark.parametrize("refusal", [said("", refusal="I cannot"), said("no", reason="content_filter")])
def test_a_refusal_is_not_argued_with(server, refusal):
    server.always = refusal
    with pytest.raises(AnswerError, match="refused"):
        asked(model_of(server))
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", ["not json", "[]", "{}", '{"choices": []}', '{"choices": [{"message": null}]}'])
def test_what_no_server_should_send_is_unavailable(server, body):
    server.always = lambda asked: (200, {}, body)
    with pytest.raises(UnavailableError, match="read"):
        asked(model_of(server))


def test_nobody_at_the_address_is_unavailable():
    with pytest.raises(UnavailableError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        asked(resolve("http://127.0.0.1:9/v1#m", attempts=2, first_wait_s=0.01))


def test_a_scripted_model_says_its_lines_and_then_nothing():
    model = ScriptedModel([GOOD, UnavailableError("down"), Completion(text=json.dumps(GOOD), tokens_in=5)])
    assert asked(model).value.count == 2
    with pytest.raises(UnavailableError, match="down"):
        asked(model)
    assert asked(model).tokens_in == 5
    with pytest.raises(UnavailableError, match="no answers left"):
        asked(model)
    assert len(model.prompts) == 4


def test_a_schema_names_all_its_properties():
    assert schema_of(Colours)["required"] == ["colours", "count"]
    assert "default" not in schema_of(Colours)["properties"]["count"]


@pytest.mark.parametrize("spec", ["", "gpt", "openai:", "http://host/v1", "file:", "ftp://x#y"])
def test_what_is_no_model_is_refused(spec):
    with pytest.raises(InvalidError, match="no language model"):
        resolve(spec)


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(InvalidError, match="does not exist"):
        resolve("file:/nowhere/tiny.gguf")


def test_an_object_without_the_methods_is_no_model():
    with pytest.raises(InvalidError, match="context_tokens, complete"):
        resolve(type("Half", (), {"name": "half"})())
    assert resolve(None) is None


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.delitem(sys.modules, "ricordo.models.http", raising=False)
    monkeypatch.delitem(sys.modules, "ricordo.models.language.openai", raising=False)
    with pytest.raises(UnavailableError, match=r'pip install "ricordo\[openai\]"'):
        resolve("ollama:m")
