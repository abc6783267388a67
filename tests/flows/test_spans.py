"""Spans of OpenTelemetry: which calls leave them, and that no text is in them."""

from __future__ import annotations

import sys

import pytest

from ricordo import InvalidError, Memory
from ricordo.language import ScriptedModel


@pytest.fixture(scope="module")
def exported():
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    yield exporter
    exporter.shutdown()  # a provider cannot be unset; one that is shut down would warn at each span of later tests


async def test_calls_leave_spans_without_text(exported):
    answer = {"sentences": [{"text": "Anna lives in Zqrome.", "evidence": [1]}]}
    async with Memory.open(":memory:", embedder="hashing", model=ScriptedModel([answer] * 9)) as memory:
        exported.clear()
        await memory.remember("Anna lives in Zqrome", about=["Anna"])
        await memory.add("I met Anna in Zqrome", session="s1")
        await memory.search("where does Anna live")
        await memory.context("where does Anna live")
        await memory.ask("where does Anna live")
        await memory.consolidate(dry_run=True)
        with pytest.raises(InvalidError):
            await memory.search("Zqrome", limit=0)
    spans = exported.get_finished_spans()
    by_name = {each.name: each for each in spans}
    assert {"ricordo.remember_many", "ricordo.add_many", "ricordo.search", "ricordo.context_parts"} <= by_name.keys()
    assert {"ricordo.ask", "ricordo.consolidate"} <= by_name.keys()
    first = next(each for each in spans if each.name == "ricordo.search")
    assert first.attributes["ricordo.hits"] == 2 and first.instrumentation_scope.name == "ricordo"
    call = next(each for each in spans if each.name.startswith("chat "))
    assert call.attributes["gen_ai.operation.name"] == "chat" and call.attributes["gen_ai.usage.input_tokens"] >= 0
    assert call.parent.span_id == by_name["ricordo.ask"].context.span_id
    failed = spans[-1]
    assert (failed.name, failed.attributes["error.type"], failed.status.is_ok) == ("ricordo.search", "invalid", False)
    told = " ".join(each.to_json() for each in spans)
    assert not [word for word in ("Zqrome", "Anna", "s1", '"me"') if word in told]


async def test_without_the_api_nothing_is_recorded_or_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.remember("Anna likes tea")
        assert (await memory.search("tea")).hits
    assert "opentelemetry.trace" not in sys.modules
