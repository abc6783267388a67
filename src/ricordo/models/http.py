"""JSON over HTTP to a provider of models: retries with backoff, one deadline for all of an answer, errors as ours.

What embedders and language models share. An answer is a stranger's: it may be late, huge, or no JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from ricordo.errors import DeniedError, InvalidError, RicordoError, UnavailableError

try:
    import httpx
    import stamina
    from httpx_sse import EventSource, SSEError
except ImportError as error:
    raise UnavailableError(
        "models over HTTP need packages that are not installed", hint="pip install 'ricordo[openai]'"
    ) from error

_LONGEST_WAIT_S = 30.0
_MOST_BYTES = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to ask and how patiently. `what` names the server in errors; `timeout_s` is for one answer, all of it."""

    base_url: str
    what: str
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 30.0
    attempts: int = 4
    first_wait_s: float = 0.2

    def url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{path}"

    def retries(self, attempts: int | None) -> Any:
        """What both kinds of loop go through."""
        return stamina.retry_context(
            on=_backoff,
            attempts=attempts or self.attempts,
            timeout=None,
            wait_initial=self.first_wait_s,
            wait_jitter=self.first_wait_s,
            wait_max=_LONGEST_WAIT_S,
        )


def bearer(api_key: str | None) -> Mapping[str, str]:
    """The header that carries a key; none without one."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def client_of(endpoint: Endpoint) -> httpx.Client:
    """A client whose connections are kept from call to call; the caller closes it."""
    return httpx.Client(headers=endpoint.headers, timeout=endpoint.timeout_s)


def post(client: httpx.Client, endpoint: Endpoint, path: str, body: Any, *, attempts: int | None = None) -> Any:
    """Ask, several times where that helps, and return the answer's JSON.

    Raises:
        UnavailableError: nobody answers, or with nothing that can be read.
        DeniedError: the server wants another key.
        InvalidError: it refuses what was sent.
    """
    url = endpoint.url(path)
    try:
        for attempt in endpoint.retries(attempts):
            with attempt, client.stream("POST", url, json=body) as response:
                answer = _collected(response, response.iter_bytes(), until=time.monotonic() + endpoint.timeout_s)
                _checked(response, answer)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _translated(error, url, endpoint.what) from error
    return _parsed(answer, endpoint.what)


async def post_async(endpoint: Endpoint, path: str, body: Any, *, attempts: int | None = None) -> Any:
    """Like `post`, with a connection of its own: an answer takes seconds, and whoever cancels is not kept waiting."""
    url = endpoint.url(path)
    try:
        async with httpx.AsyncClient(headers=endpoint.headers, timeout=endpoint.timeout_s) as client:
            async for attempt in endpoint.retries(attempts):
                with attempt:
                    answer = await _asked(client, endpoint, url, body)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _translated(error, url, endpoint.what) from error
    return _parsed(answer, endpoint.what)


async def stream_events(endpoint: Endpoint, path: str, body: Any) -> AsyncIterator[Any]:
    """Ask, several times where that helps, and give the JSON of each server-sent event as it comes; `[DONE]` ends it.

    `timeout_s` is for the first event and for each one after: an answer may take as long as it goes on.

    Raises:
        UnavailableError: nobody answers, with nothing that can be read, or the answer broke off.
        DeniedError: the server wants another key.
        InvalidError: it refuses what was sent.
    """
    url = endpoint.url(path)
    try:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(
                httpx.AsyncClient(headers=endpoint.headers, timeout=endpoint.timeout_s)
            )
            async for attempt in endpoint.retries(None):
                with attempt:
                    response = await stack.enter_async_context(client.stream("POST", url, json=body))
                    if response.is_error:
                        _checked(response, await _collected_async(response.aiter_bytes()))
            async for event in _events(response, endpoint):
                yield event
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _translated(error, url, endpoint.what) from error


async def _events(response: httpx.Response, endpoint: Endpoint) -> AsyncIterator[Any]:
    total, events = 0, EventSource(response).aiter_sse()
    while True:
        try:
            async with asyncio.timeout(endpoint.timeout_s):  # a server that sends empty lines keeps httpx content
                event = await anext(events)
        except StopAsyncIteration:
            return
        except SSEError as error:
            raise UnavailableError(f"the {endpoint.what} does not answer piece by piece") from error
        except TimeoutError as error:
            raise httpx.ReadTimeout("the answer stopped coming") from error
        total += len(event.data)
        if event.data.strip() == "[DONE]" or total > _MOST_BYTES:
            return
        if event.data:
            yield _parsed(event.data.encode(), endpoint.what)


async def _asked(client: httpx.AsyncClient, endpoint: Endpoint, url: str, body: Any) -> bytes:
    try:
        async with asyncio.timeout(endpoint.timeout_s), client.stream("POST", url, json=body) as response:
            answer = await _collected_async(response.aiter_bytes())
            _checked(response, answer)
            return answer
    except TimeoutError as error:  # a server that sends a byte now and then keeps httpx content for ever
        raise httpx.ReadTimeout("no whole answer in time") from error


def _collected(response: httpx.Response, parts: Iterator[bytes], *, until: float) -> bytes:
    answer = bytearray()
    for part in parts:
        answer += part
        if time.monotonic() > until:
            raise httpx.ReadTimeout("no whole answer in time", request=response.request)
        if len(answer) > _MOST_BYTES:
            break
    return bytes(answer)


async def _collected_async(parts: AsyncIterator[bytes]) -> bytes:
    answer = bytearray()
    async for part in parts:
        answer += part
        if len(answer) > _MOST_BYTES:
            break
    return bytes(answer)


class _StatusError(httpx.HTTPStatusError):
    """An error status with what the server said, as text."""

    def __init__(self, response: httpx.Response, said: bytes) -> None:
        super().__init__(str(response.status_code), request=response.request, response=response)
        self.said = said[:300].decode("utf-8", "replace")


def _checked(response: httpx.Response, answer: bytes) -> None:
    if response.is_error:
        raise _StatusError(response, answer)


def _backoff(error: Exception) -> bool | float:
    """Whether to try again (connection errors, 429, 5xx), after as long as the server says, with jitter."""
    if not isinstance(error, httpx.HTTPStatusError):
        return isinstance(error, httpx.TransportError)
    if error.response.status_code != 429 and error.response.status_code < 500:
        return False
    try:
        wait_s = float(error.response.headers["Retry-After"])
    except (KeyError, ValueError):  # absent, or a date: the usual backoff will do
        return True
    return min(max(wait_s, 0.0), _LONGEST_WAIT_S) * random.uniform(1.0, 1.1)


def _translated(error: Exception, url: str, what: str) -> RicordoError:
    if not isinstance(error, _StatusError):
        return UnavailableError(f"{url} does not answer: {type(error).__name__}")
    status = error.response.status_code
    if status in (401, 403):
        return DeniedError(f"the {what} refused the key ({status})", hint="set the provider's API key")
    if status == 429 or status >= 500:
        return UnavailableError(f"the {what} answered {status}: {error.said}")
    return InvalidError(f"the {what} answered {status}: {error.said}")


def _parsed(answer: bytes, what: str) -> Any:
    try:
        return json.loads(answer)
    except ValueError as error:
        raise UnavailableError(f"the {what}'s answer cannot be read") from error
