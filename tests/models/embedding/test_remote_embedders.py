"""Embeddings over HTTP, against a small real server on this machine."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from ricordo.errors import DeniedError, InvalidError, UnavailableError
from ricordo.models.embedding import resolve

Reply = tuple[int, dict[str, str], str]


class Server:
    """Answers with vectors that encode the length of a text, unless `script` has other answers."""

    def __init__(self) -> None:
        self.requests: list[dict] = []
        self.headers: list[dict[str, str]] = []
        self.script: list[Callable[[dict], Reply]] = []
        self.always: Callable[[dict], Reply] = answer
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append({**body, "path": self.path})
                server.headers.append(dict(self.headers))
                status, headers, text = (server.script.pop(0) if server.script else server.always)(body)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def embedder(self, spec: str = "#tiny@3", **options):
        embedder = resolve(f"{self.url}{spec}", first_wait_s=0.01, **options)
        assert embedder is not None
        return embedder


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.http.shutdown()
    thread.join()
    server.http.server_close()


def vector_of(text: str) -> list[float]:
    return [float(len(text)), 1.0, 0.0]


def answer(body: dict) -> Reply:
    data = [{"index": i, "embedding": vector_of(text)} for i, text in enumerate(body["input"])]
    return 200, {}, json.dumps({"data": data})


def status(code: int, **headers: str) -> Callable[[dict], Reply]:
    return lambda body: (code, {k.replace("_", "-"): v for k, v in headers.items()}, '{"error": "no"}')


def data(*vectors: object) -> Callable[[dict], Reply]:
    rows = [{"index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return lambda body: (200, {}, json.dumps({"data": rows}))


def expected(text: str) -> np.ndarray:
    vector = np.array(vector_of(text), np.float32)
    return vector / np.linalg.norm(vector)


def embed(embedder, text: str) -> np.ndarray:
    return asyncio.run(embedder.embed(text))


def batch(embedder, texts: list[str]) -> list[np.ndarray | None]:
    return asyncio.run(embedder.embed_batch(texts))


def test_a_text_is_sent_with_key_and_model_and_comes_back_at_length_one(server):
    embedder = server.embedder(api_key="secret")
    assert np.allclose(embed(embedder, "hello"), expected("hello"))
    assert server.requests[0]["path"] == "/v1/embeddings"
    assert server.requests[0]["model"] == "tiny" and "dimensions" not in server.requests[0]
    assert server.headers[0]["Authorization"] == "Bearer secret"
    assert embedder.name == "http:tiny@3" and embedder.dimension == 3


def test_openais_third_generation_is_asked_for_256_dimensions(server):
    server.always = lambda body: (200, {}, json.dumps({"data": [{"index": 0, "embedding": [1.0] * 256}]}))
    embedder = resolve("openai:text-embedding-3-large", api_key="k", base_url=server.url)
    assert embedder.dimension == 256 and embed(embedder, "x").shape == (256,)
    assert server.requests[0]["dimensions"] == 256


def test_no_key_sends_no_authorization(server):
    embed(server.embedder(), "x")
    assert "Authorization" not in server.headers[0]


def test_large_batches_are_split_and_stay_in_order(server):
    texts = ["x" * (n % 50 + 1) for n in range(300)]
    found = batch(server.embedder(), texts)
    assert all(np.allclose(v, expected(t)) for v, t in zip(found, texts, strict=True))
    assert [len(r["input"]) for r in server.requests] == [128, 128, 44]


def test_answers_out_of_order_are_put_in_order_by_index(server):
    def backwards(body: dict) -> Reply:
        code, headers, text = answer(body)
        return code, headers, json.dumps({"data": json.loads(text)["data"][::-1]})

    server.always = backwards
    texts = ["a", "bb", "ccc"]
    assert all(np.allclose(v, expected(t)) for v, t in zip(batch(server.embedder(), texts), texts, strict=True))


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_server_that_is_busy_is_asked_again(server, code):
    server.script = [status(code), status(code)]
    assert np.allclose(embed(server.embedder(), "hello"), expected("hello"))
    assert len(server.requests) == 3


def test_retry_after_is_honoured(server):
    server.script = [status(429, Retry_After="0.5")]
    started = time.perf_counter()
    embed(server.embedder(), "hello")
    assert time.perf_counter() - started >= 0.5


def test_a_server_that_stays_busy_is_unavailable(server):
    server.always = status(503)
    with pytest.raises(UnavailableError, match="503"):
        embed(server.embedder(attempts=3), "hello")
    assert len(server.requests) == 3


def test_a_wrong_request_is_not_repeated(server):
    server.always = status(404)
    with pytest.raises(InvalidError, match="404"):
        embed(server.embedder(), "hello")
    assert len(server.requests) == 1


def test_a_refused_key_is_denied_and_never_shown(server):
    server.always = status(401)
    with pytest.raises(DeniedError) as caught:
        embed(server.embedder(api_key="secret-key"), "hello")
    assert "secret-key" not in str(caught.value)


def test_a_slow_server_times_out(server):
    def sleepy(body: dict) -> Reply:
        time.sleep(0.6)
        return answer(body)

    server.always = sleepy
    with pytest.raises(UnavailableError, match="does not answer in time"):
        embed(server.embedder(timeout_s=0.1, attempts=2), "hello")
    assert len(server.requests) == 2


def test_nobody_at_the_address_is_unavailable():
    embedder = resolve("http://127.0.0.1:9/v1#m@3", attempts=2, first_wait_s=0.01)
    with pytest.raises(UnavailableError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        embed(embedder, "hello")


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (data([1.0, 2.0]), "shape"),
        (data([[1.0, 2.0, 3.0]]), "shape"),
        (data([float("nan"), 1.0, 2.0]), "NaN"),
        (data([float("inf"), 1.0, 2.0]), "infinity"),
        (data(), "cannot be read"),
        (data([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), "2 vectors for 1"),
        (data(["a", "b", "c"]), "cannot be read"),
        (data(None), "shape|cannot be read"),
        (lambda body: (200, {}, "not json"), "cannot be read"),
        (lambda body: (200, {}, "[]"), "cannot be read"),
    ],
)
def test_answers_that_make_no_sense_are_refused(server, reply, message):
    server.always = reply
    with pytest.raises(UnavailableError, match=message):
        embed(server.embedder(), "hello")


def test_a_batch_with_one_bad_text_loses_only_that_one(server):
    server.always = lambda body: status(400)(body) if "bad" in body["input"] else answer(body)
    found = batch(server.embedder(), ["good", "bad", "better"])
    assert found[1] is None and np.allclose(found[0], expected("good")) and np.allclose(found[2], expected("better"))


def test_a_server_that_is_down_is_not_asked_once_for_each_text(server):
    server.always = status(500)
    assert batch(server.embedder(attempts=2), ["text"] * 100) == [None] * 100
    assert len(server.requests) == 2 + 3


def test_blank_texts_are_not_sent_and_odd_ones_are(server):
    found = batch(server.embedder(), ["", "  \n", "\ud800 lone", "a\x00b"])
    assert not found[0].any() and not found[1].any()
    assert [r["input"] for r in server.requests] == [["? lone", "a\x00b"]]


def test_a_long_text_is_sent_as_at_most_four_chunks(server):
    vector = embed(server.embedder(), "word " * 200_000)
    assert [len(part) for part in server.requests[0]["input"]] == [6_000] * 4
    assert np.allclose(vector, expected("x" * 6_000))
