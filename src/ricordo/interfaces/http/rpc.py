"""JSON-RPC 2.0: `memory.search`, `memory.add`, `memory.list` and `memory.delete` for sandboxes, and `memory.NAME` for
every other route. A user or chat among the parameters must be the caller's own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ricordo.errors import DeniedError, InvalidError, RicordoError
from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.catalog import routes
from ricordo.interfaces.schema import first_problem
from ricordo.interfaces.serialize import plain_value
from ricordo.model import Origin

_log = logging.getLogger(__name__)
_MAX_BATCH = 50

_CODES = {
    "invalid": -32602,
    "not_found": -32004,
    "conflict": -32009,
    "denied": -32003,
    "unavailable": -32050,
    "store": -32051,
}


class _Params(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    user_id: str | None = None
    chat_id: str | None = None


class _Search(_Params):
    query: str
    limit: int = Field(10, ge=1, le=1_000)


class _Add(_Params):
    content: str
    source: Origin | None = None
    expires_days: int | None = Field(None, ge=1, le=36_500)
    subjects: list[str] = Field(default_factory=list)


class _List(_Params):
    limit: int = Field(50, ge=1, le=1_000)
    include_expired: bool = False


class _Delete(_Params):
    memory_id: str


class Rpc:
    """Answers a caller's JSON-RPC messages."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._routes = {f"memory.{each.method.rstrip('_')}": each for each in routes()}
        self._own: Mapping[str, tuple[type[_Params], Callable[[Any, Caller], Awaitable[Any]]]] = {
            "memory.search": (_Search, self._search),
            "memory.add": (_Add, self._add),
            "memory.list": (_List, self._list),
            "memory.delete": (_Delete, self._delete),
        }

    @property
    def methods(self) -> list[str]:
        """The names of all methods."""
        return sorted({*self._routes, *self._own})

    async def answer(self, body: bytes, caller: Caller) -> tuple[int, Any]:
        """Return the HTTP status and the document that answer a message or a batch; None if no answer is expected.

        A single call has the status of its error, so that proxies see refusals; a batch has 200.
        """
        try:
            message = json.loads(body)
        except ValueError:
            return 400, _error(None, -32700, "the body is not JSON")
        if not isinstance(message, list):
            return await self._one(message, caller)
        if not 1 <= len(message) <= _MAX_BATCH:
            return 400, _error(None, -32600, f"a batch has 1 to {_MAX_BATCH} calls")
        answers = [(await self._one(each, caller))[1] for each in message]
        expected = [each for each in answers if each is not None]
        return (200, expected) if expected else (204, None)

    async def _one(self, message: Any, caller: Caller) -> tuple[int, Any]:
        if (
            not isinstance(message, dict)
            or message.get("jsonrpc") != "2.0"
            or not isinstance(message.get("method"), str)
        ):
            return 400, _error(None, -32600, "this is not a JSON-RPC 2.0 call")
        number, params = message.get("id"), message.get("params", {})
        if not isinstance(number, str | int | float | None) or isinstance(number, bool):
            return 400, _error(None, -32600, "the id must be text or a number")
        if not isinstance(params, dict):
            return 422, _error(number, -32602, "params must be an object")
        try:
            result = await self._result(message["method"], params, caller)
        except RicordoError as error:
            code = -32601 if isinstance(error, _NoMethodError) else _CODES.get(error.code, -32603)
            answer = _error(number, code, error.message, data={"code": error.code, "hint": error.hint})
            return error.http_status, answer
        except Exception:  # noqa: BLE001  # a defect of ours: the caller gets an answer all the same
            _log.exception("%s failed", message["method"])
            return 500, _error(number, -32603, "something went wrong inside the memory")
        if "id" not in message:
            return 204, None
        return 200, {"jsonrpc": "2.0", "id": number, "result": plain_value(result)}

    async def _result(self, method: str, params: dict[str, Any], caller: Caller) -> Any:
        if method in self._own:
            kind, work = self._own[method]
            return await work(_check_params(kind, params, caller), caller)
        if method not in self._routes:
            raise _NoMethodError(f"there is no method {method[:100]!r}")
        own = {name: value for name, value in params.items() if name not in ("user_id", "chat_id")}
        _check_scope(params.get("user_id"), params.get("chat_id"), caller)
        return await self._call(method, own, caller)

    async def _call(self, method: str, arguments: dict[str, Any], caller: Caller) -> Any:
        # As bytes, so that types are checked as strictly as on the REST routes.
        given = json.dumps(arguments).encode()
        return await self._dispatcher.call(self._routes[method], given, caller=caller, as_tool=False)

    async def _search(self, params: _Search, caller: Caller) -> Any:
        return await self._call("memory.search", {"text": params.query, "limit": params.limit}, caller)

    async def _add(self, params: _Add, caller: Caller) -> Any:
        caller.require("write")
        memory = await self._dispatcher.memory(caller)
        expires = None if params.expires_days is None else f"in {params.expires_days} days"
        # A program of the user's own may state a more exact origin; others cannot.
        origin = (params.source or "rpc") if caller.trust == "user" else caller.origin
        return await memory.remember(params.content, about=params.subjects, expires=expires, origin=origin)

    async def _list(self, params: _List, caller: Caller) -> Any:
        page = await self._call("memory.list", {"limit": params.limit}, caller)
        if not params.include_expired:
            return {"nodes": page.nodes}
        closed = await self._call("memory.list", {"limit": params.limit, "archived": True}, caller)
        expired = [node for node in closed.nodes if node.closed_reason == "expired"]
        latest = sorted((*page.nodes, *expired), key=lambda node: node.created_at, reverse=True)
        return {"nodes": latest[: params.limit]}

    async def _delete(self, params: _Delete, caller: Caller) -> Any:
        await self._call("memory.forget", {"id": params.memory_id}, caller)
        return {"memory_id": params.memory_id, "deleted": True}


class _NoMethodError(RicordoError):
    """There is no such method."""

    code = "not_found"
    http_status = 404


def _check_params(kind: type[_Params], params: dict[str, Any], caller: Caller) -> _Params:
    try:
        given = kind.model_validate_json(json.dumps(params))
    except ValidationError as error:
        raise InvalidError(first_problem(error)) from error
    except ValueError as error:
        raise InvalidError("params are not valid JSON") from error
    _check_scope(given.user_id, given.chat_id, caller)
    return given


def _check_scope(user: Any, chat: Any, caller: Caller) -> None:
    """Raises:
    DeniedError: The user or chat named is not the caller's.
    """
    if user is not None and user != caller.owner:
        raise DeniedError("user_id is not that of this token", hint="omit it, or use that user's token")
    if chat is not None and chat != caller.chat:
        raise DeniedError("chat_id is not that of this token", hint="omit it, or use that chat's token")


def _error(number: Any, code: int, message: str, *, data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": number, "error": error}
