"""`ricordo-sb`: a JSON-RPC client for use inside a sandbox. It needs only Python's standard library."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_STATUS = {"invalid": 2, "not_found": 3, "conflict": 4, "denied": 5, "unauthorized": 5, "unavailable": 6, "store": 7}
_TIMEOUT_S = 60.0

_ABOUT = """Environment: RICORDO_SOCKET is the server's Unix socket; without it, RICORDO_URL is its address
(default http://127.0.0.1:7411) with RICORDO_TOKEN or RICORDO_TOKEN_FILE. RICORDO_USER_ID and RICORDO_CHAT_ID, if set,
must match the token."""


class _Refused(Exception):
    """The server refused the call, or did not answer."""

    def __init__(self, message: str, *, code: str = "unavailable", hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.code = code


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in the arguments; return the exit status, like `ricordo`."""
    given = _parser().parse_args(arguments)
    params = {name: value for name, value in vars(given).items() if name not in ("verb", "json", "group")}
    try:
        result = call(f"memory.{given.verb}", {name: value for name, value in params.items() if value is not None})
    except _Refused as error:
        sys.stderr.write(f"ricordo-sb: {error}\n")
        return _STATUS.get(error.code, 1)
    text = json.dumps(result, ensure_ascii=False, indent=2) if given.json else "\n".join(_lines(given.verb, result))
    sys.stdout.write(text + "\n" if text else "")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ricordo-sb", description=__doc__, epilog=_ABOUT)
    groups = parser.add_subparsers(dest="group", required=True, metavar="memory")
    verbs = groups.add_parser("memory", help="search, add, list, delete").add_subparsers(dest="verb", required=True)
    search = verbs.add_parser("search", help="search the memory")
    search.add_argument("query")
    search.add_argument("--limit", type=int)
    add = verbs.add_parser("add", help="store a fact")
    add.add_argument("content")
    add.add_argument("--expires-days", type=int, dest="expires_days")
    add.add_argument("--subject", action="append", dest="subjects", help="the person or thing it is about; repeatable")
    add.add_argument("--source")
    listing = verbs.add_parser("list", help="list the latest memories")
    listing.add_argument("--limit", type=int)
    listing.add_argument("--include-expired", action="store_true", dest="include_expired", default=None)
    delete = verbs.add_parser("delete", help="remove a memory from every answer")
    delete.add_argument("memory_id")
    for each in (search, add, listing, delete):
        each.add_argument("--json", action="store_true", help="print the server's answer as JSON")
    return parser


def call(method: str, params: Mapping[str, Any], *, environment: Mapping[str, str] | None = None) -> Any:
    """Call a method of the server named in the environment; return the result.

    Raises:
        _Refused: The server refused the call, or did not answer.
    """
    known = os.environ if environment is None else environment
    who = {"user_id": known.get("RICORDO_USER_ID"), "chat_id": known.get("RICORDO_CHAT_ID")}
    sent = {**params, **{name: value for name, value in who.items() if value}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": sent}).encode()
    connection, headers = _connection(known)
    try:
        connection.request("POST", "/rpc", body, {"Content-Type": "application/json", **headers})
        answer = json.loads(connection.getresponse().read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        hint = "is `ricordo serve` running? check RICORDO_SOCKET and RICORDO_URL"
        raise _Refused(f"no answer from the server: {error}", hint=hint) from error
    finally:
        connection.close()
    if "error" not in answer:
        return answer["result"]
    failure = answer["error"]
    data = failure.get("data") or {}
    code, hint = data.get("code", failure.get("code")), data.get("hint", failure.get("hint", ""))
    raise _Refused(failure["message"], code=str(code), hint=hint)


def _connection(known: Mapping[str, str]) -> tuple[http.client.HTTPConnection, dict[str, str]]:
    headers = {"Authorization": f"Bearer {token}"} if (token := _token(known)) else {}
    if path := known.get("RICORDO_SOCKET"):
        return _UnixConnection(path), headers
    url = urlsplit(known.get("RICORDO_URL") or "http://127.0.0.1:7411")
    if url.scheme not in ("http", "https") or not url.hostname:
        raise _Refused("RICORDO_URL is not an http address", code="invalid")
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    return kind(url.hostname, url.port, timeout=_TIMEOUT_S), headers


def _token(known: Mapping[str, str]) -> str:
    if token := known.get("RICORDO_TOKEN"):
        return token
    if not (file := known.get("RICORDO_TOKEN_FILE")):
        return ""
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise _Refused(f"RICORDO_TOKEN_FILE: {error}", code="invalid") from error


def _lines(verb: str, result: Any) -> list[str]:
    if verb == "search":
        return [_line(each) for each in result["hits"]]
    if verb == "list":
        return [_line(each) for each in result["nodes"]]
    return [_line(result)] if verb == "add" else [f"deleted {result['memory_id']}"]


def _line(memory: Mapping[str, Any]) -> str:
    """Return a memory on one line, without control characters."""
    about = f" (about {', '.join(memory['about'])})" if memory.get("about") else ""
    text = " ".join(f"{memory['content']}{about}".split())
    return f"{memory['id']}  {''.join(char if char.isprintable() else '�' for char in text)}"


if __name__ == "__main__":
    sys.exit(main())
