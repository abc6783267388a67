"""A small real server on this machine that speaks OpenAI's and Anthropic's protocols, well or badly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = tuple[int, dict[str, str], str]
Answer = Callable[[dict], Reply]


class ModelServer:
    """Answers from `script` one by one, then as `always` does."""

    def __init__(self) -> None:
        self.requests: list[dict] = []
        self.headers: list[dict[str, str]] = []
        self.script: list[Answer] = []
        self.always: Answer = said({})
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append({**body, "path": self.path})
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, headers, text = (server.script.pop(0) if server.script else server.always)(body)
                try:
                    self.send_response(status)
                    for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(text.encode())
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client has given up

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        self._thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self._thread.join()
        self.http.server_close()


def said(value: object, *, reason: str = "stop", **message: object) -> Answer:
    """Return a chat completion whose content is a text, or the JSON of a value."""
    text = value if isinstance(value, str) else json.dumps(value)
    choice = {"message": {"role": "assistant", "content": text, **message}, "finish_reason": reason}
    body = {"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}
    return lambda asked: (200, {}, json.dumps(body))


def status(code: int, text: str = '{"error": "no"}', **headers: str) -> Answer:
    return lambda asked: (code, {name.replace("_", "-"): value for name, value in headers.items()}, text)
