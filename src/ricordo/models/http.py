"""JSON over HTTP to model providers: retries with backoff, a deadline for the complete answer, and our own errors.

Used by embedders and language models. An answer is untrusted: it may be late, huge, or not JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from ricordo.errors import DeniedError, InvalidError, RicordoError, UnavailableError

try:
    import httpx
    from httpx_sse import EventSource, SSEError
except ImportError as error:
    raise UnavailableError(
        "models over HTTP need packages that are not installed", hint='pip install "ricordo[openai]"'
    ) from error

_LONGEST_WAIT_S = 30.0
_MOST_BYTES = 64_000_000
_KEY_HEADERS = {"authorization", "x-api-key"}
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}
_OLLAMA_PORT = 11434


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server and its limits.

    Args:
        what: the name of the server in error messages.
        key_variable: the environment variable with the API key, if the server requires a key.
        timeout_s: the limit for one complete answer.
    """

    base_url: str
    what: str
    headers: Mapping[str, str] = field(default_factory=dict)
    key_variable: str = ""
    timeout_s: float = 30.0
    attempts: int = 4
    first_wait_s: float = 0.2

    def url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{path}"

    @property
    def place(self) -> str:
        """The server's address without the path."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def check_key(self) -> None:
        """Raise DeniedError early if the server requires a key and there is none."""
        if self.key_variable and not {name.lower() for name in self.headers} & _KEY_HEADERS:
            raise DeniedError(f"the {self.what} at {self.place} needs a key", hint=f"set {self.key_variable}")

    def wait_s(self, error: Exception, tried: int, attempts: int | None = None) -> float:
        """Return the seconds to wait before the next attempt; raise the error if it was the last."""
        asked = _backoff(error)
        if asked is False or tried >= (attempts or self.attempts):
            raise error
        if asked is not True:
            return asked
        return min(self.first_wait_s * (2.0 ** (tried - 1) + random.random()), _LONGEST_WAIT_S)


def bearer(api_key: str | None) -> Mapping[str, str]:
    """Return the header with an API key; empty without a key."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def key_variable(provider: str) -> str:
    """Return the environment variable of a provider's key; empty if the provider may not need a key."""
    return f"{provider.upper()}_API_KEY" if provider in ("openai", "anthropic", "cohere", "jina") else ""


def client_of(endpoint: Endpoint) -> httpx.Client:
    """Return a client that reuses its connections; the caller closes it."""
    return httpx.Client(headers=endpoint.headers, timeout=endpoint.timeout_s)


def post(client: httpx.Client, endpoint: Endpoint, path: str, body: Any, *, attempts: int | None = None) -> Any:
    """Post JSON, with retries, and return the JSON of the answer.

    Raises:
        UnavailableError: there is no answer, or it cannot be read.
        DeniedError: the server refuses the key.
        InvalidError: the server refuses the request.
    """
    endpoint.check_key()
    try:
        for tried in count(1):
            try:
                answer = _answer(client, endpoint, endpoint.url(path), body)
                break
            except httpx.HTTPError as error:
                time.sleep(endpoint.wait_s(error, tried, attempts))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _as_our_error(error, endpoint) from error
    return _parse(answer, endpoint.what)


async def post_async(endpoint: Endpoint, path: str, body: Any) -> Any:
    """Post like `post`, without blocking and over a new connection, so that cancelling does not wait for the answer."""
    endpoint.check_key()
    try:
        async with httpx.AsyncClient(headers=endpoint.headers, timeout=endpoint.timeout_s) as client:
            for tried in count(1):
                try:
                    answer = await _answer_async(client, endpoint, endpoint.url(path), body)
                    break
                except httpx.HTTPError as error:
                    await asyncio.sleep(endpoint.wait_s(error, tried))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _as_our_error(error, endpoint) from error
    return _parse(answer, endpoint.what)


async def stream_events(endpoint: Endpoint, path: str, body: Any) -> AsyncIterator[Any]:
    """Post JSON, with retries, and yield the JSON of each server-sent event as it arrives; `[DONE]` ends the stream.

    `timeout_s` applies to each event, not to the complete answer.

    Raises:
        UnavailableError: there is no answer, or it cannot be read or breaks off.
        DeniedError: the server refuses the key.
        InvalidError: the server refuses the request.
    """
    endpoint.check_key()
    try:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(
                httpx.AsyncClient(headers=endpoint.headers, timeout=endpoint.timeout_s)
            )
            for tried in count(1):
                try:
                    asked = client.stream("POST", endpoint.url(path), json=body)
                    response = await stack.enter_async_context(asked)
                    if response.is_error:
                        _check_status(response, await _read_all_async(response.aiter_bytes()))
                    break
                except httpx.HTTPError as error:
                    await asyncio.sleep(endpoint.wait_s(error, tried))
            async for event in _events(response, endpoint):
                yield event
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _as_our_error(error, endpoint) from error


async def _events(response: httpx.Response, endpoint: Endpoint) -> AsyncIterator[Any]:
    total, events = 0, EventSource(response).aiter_sse()
    while True:
        try:
            async with asyncio.timeout(endpoint.timeout_s):  # httpx's own timeout restarts at each empty line
                event = await anext(events)
        except StopAsyncIteration:
            return
        except SSEError as error:
            raise UnavailableError(f"the {endpoint.what} cannot stream answers") from error
        except TimeoutError as error:
            raise httpx.ReadTimeout("the answer stopped coming") from error
        total += len(event.data)
        if event.data.strip() == "[DONE]" or total > _MOST_BYTES:
            return
        if event.data:
            yield _parse(event.data.encode(), endpoint.what)


def _answer(client: httpx.Client, endpoint: Endpoint, url: str, body: Any) -> bytes:
    with client.stream("POST", url, json=body) as response:
        answer = _read_all(response, response.iter_bytes(), until=time.monotonic() + endpoint.timeout_s)
        _check_status(response, answer)
        return answer


async def _answer_async(client: httpx.AsyncClient, endpoint: Endpoint, url: str, body: Any) -> bytes:
    try:
        async with asyncio.timeout(endpoint.timeout_s), client.stream("POST", url, json=body) as response:
            answer = await _read_all_async(response.aiter_bytes())
            _check_status(response, answer)
            return answer
    except TimeoutError as error:  # httpx's own timeout restarts at each byte
        raise httpx.ReadTimeout("the answer was not complete in time") from error


def _read_all(response: httpx.Response, parts: Iterator[bytes], *, until: float) -> bytes:
    answer = bytearray()
    for part in parts:
        answer += part
        if time.monotonic() > until:
            raise httpx.ReadTimeout("the answer was not complete in time", request=response.request)
        if len(answer) > _MOST_BYTES:
            break
    return bytes(answer)


async def _read_all_async(parts: AsyncIterator[bytes]) -> bytes:
    answer = bytearray()
    async for part in parts:
        answer += part
        if len(answer) > _MOST_BYTES:
            break
    return bytes(answer)


class _StatusError(httpx.HTTPStatusError):
    """An error status with the beginning of the server's answer as text."""

    def __init__(self, response: httpx.Response, answer: bytes) -> None:
        super().__init__(str(response.status_code), request=response.request, response=response)
        self.text = answer[:300].decode("utf-8", "replace")


def _check_status(response: httpx.Response, answer: bytes) -> None:
    if response.is_error:
        raise _StatusError(response, answer)


def _backoff(error: Exception) -> bool | float:
    """Return whether to retry (connection errors, 429, 5xx), or the seconds requested by the server, with jitter."""
    if not isinstance(error, httpx.HTTPStatusError):
        return isinstance(error, httpx.TransportError)
    if error.response.status_code != 429 and error.response.status_code < 500:
        return False
    try:
        wait_s = float(error.response.headers["Retry-After"])
    except (KeyError, ValueError):  # absent, or a date: use the normal backoff
        return True
    return min(max(wait_s, 0.0), _LONGEST_WAIT_S) * random.uniform(1.0, 1.1)


def _as_our_error(error: Exception, endpoint: Endpoint) -> RicordoError:
    what = endpoint.what
    if not isinstance(error, _StatusError):
        return UnavailableError(f"the {what} at {endpoint.place} {_failure(error)}", hint=_remedy(error, endpoint))
    status = error.response.status_code
    if status in (401, 403):
        hint = f"check {endpoint.key_variable or 'the API key of the provider'}"
        return DeniedError(f"the {what} at {endpoint.place} refused the key ({status})", hint=hint)
    if status == 429 or status >= 500:
        return UnavailableError(f"the {what} answered {status}: {error.text}")
    return InvalidError(f"the {what} answered {status}: {error.text}")


def _failure(error: Exception) -> str:
    """Describe how a server failed to send a complete answer."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.UnsupportedProtocol | httpx.InvalidURL):
        return "cannot be reached"
    if isinstance(error, httpx.TimeoutException):
        return "does not answer in time"
    return f"does not answer: {type(error).__name__}"


def _remedy(error: Exception, endpoint: Endpoint) -> str:
    place = urlsplit(endpoint.base_url)
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return "try again, or allow more time: `model_timeout_s` and `provider_timeout_s` in ricordo.toml"
    if place.hostname not in _LOCAL_HOSTS:
        return "check the address and the connection to the internet"
    return "start it with `ollama serve`" if place.port == _OLLAMA_PORT else "start the server, or check its address"


def _parse(answer: bytes, what: str) -> Any:
    try:
        return json.loads(answer)
    except ValueError as error:
        raise UnavailableError(f"the {what}'s answer cannot be read") from error
