"""`ricordo-sb`: a JSON-RPC client for use inside a sandbox. It needs only Python's standard library."""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import socket
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ricordo.interfaces.outbox import Outbox, RefusedError, Waiting

_STATUS = {"invalid": 2, "not_found": 3, "conflict": 4, "denied": 5, "unauthorized": 5, "unavailable": 6, "store": 7}
_TIMEOUT_S = 60.0
_DEFAULT_URL = "http://127.0.0.1:7411"
_DIGEST = 16
_MOST_DOUBTFUL = 3  # as in `serialize`, whose modules would take too long to load here

_ABOUT = """Environment: RICORDO_SOCKET is the server's Unix socket; without it, RICORDO_URL is its address
(default http://127.0.0.1:7411) with RICORDO_TOKEN or RICORDO_TOKEN_FILE. RICORDO_USER_ID and RICORDO_CHAT_ID, if set,
must match the token. With RICORDO_OUTBOX, the path of a folder, `memory add` also works while the server is away: facts
wait there, and the next `memory add` or `outbox send` delivers them in order."""


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
    params = {name: value for name, value in params.items() if value is not None}
    try:
        if given.group == "outbox":
            return _on_outbox(given.verb, _outbox(), params, as_json=given.json)
        if given.verb == "add" and os.environ.get("RICORDO_OUTBOX"):
            return _add_later(_outbox(), params, as_json=given.json)
        result = call(f"memory.{given.verb}", params)
    except RefusedError as error:
        sys.stderr.write(f"ricordo-sb: {error}\n")
        return _STATUS.get(error.code, 1)
    if given.verb == "search" and given.limit is None and not given.json:
        return _show_shortened(result["hits"])
    return _show(given.verb, result, as_json=given.json)


def _show_shortened(hits: Sequence[Mapping[str, Any]]) -> int:
    """Print hits like `ricordo search`: few of those at the end that are probably not relevant."""
    relevant = [place for place, hit in enumerate(hits) if hit.get("is_relevant") is not False]
    kept = (relevant[-1] + 1 if relevant else 0) + _MOST_DOUBTFUL
    lines = [_line(each) for each in hits[:kept]]
    if len(hits) > kept:
        lines.append(f"{len(hits) - kept} more, probably not relevant: --limit {len(hits)} shows all.")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _show(verb: str, result: Any, *, as_json: bool) -> int:
    text = json.dumps(result, ensure_ascii=False, indent=2) if as_json else "\n".join(_lines(verb, result))
    sys.stdout.write(text + "\n" if text else "")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ricordo-sb", description=__doc__, epilog=_ABOUT)
    groups = parser.add_subparsers(dest="group", required=True, metavar="memory")
    verbs = groups.add_parser("memory", help="search, add, list, delete, decide").add_subparsers(
        dest="verb", required=True
    )
    search = verbs.add_parser("search", help="search the memory")
    search.add_argument("query")
    search.add_argument("--limit", type=int)
    add = verbs.add_parser("add", help="store a fact")
    add.add_argument("content")
    add.add_argument("--expires-days", type=int, dest="expires_days")
    add.add_argument("--subject", action="append", dest="subjects", help="the person or thing it is about; repeatable")
    add.add_argument("--source")
    add.add_argument("--shared", action="store_true", default=None, help="store it for all in the chat of the token")
    listing = verbs.add_parser("list", help="list the latest memories")
    listing.add_argument("--limit", type=int)
    listing.add_argument("--include-expired", action="store_true", dest="include_expired", default=None)
    delete = verbs.add_parser("delete", help="remove a memory from every answer")
    delete.add_argument("memory_id")
    staged = verbs.add_parser("staged", help="list the proposals that wait for approval")
    staged.add_argument("--limit", type=int)
    approve = verbs.add_parser("approve", help="approve proposals; needs a token of trust user")
    refuse = verbs.add_parser("refuse", help="refuse proposals; needs a token of trust user")
    for each in (approve, refuse):
        each.add_argument("ids", nargs="+", metavar="id")
    outbox = groups.add_parser("outbox", help="list, send, drop").add_subparsers(dest="verb", required=True)
    waiting = outbox.add_parser("list", help="show what was not delivered yet")
    send = outbox.add_parser("send", help="deliver it")
    send.add_argument("--any-token", action="store_true", help="also what was kept with another token for this server")
    drop = outbox.add_parser("drop", help="delete one of them")
    drop.add_argument("number", type=int)
    for each in (search, add, listing, delete, staged, approve, refuse, waiting, send, drop):
        each.add_argument("--json", action="store_true", help="print the server's answer as JSON")
    return parser


def _outbox() -> Outbox:
    if not (path := os.environ.get("RICORDO_OUTBOX")):
        raise RefusedError("RICORDO_OUTBOX is not set", code="invalid", hint="set it to the path of a folder")
    return Outbox(path, address=address_of(os.environ))


def address_of(environment: Mapping[str, str]) -> str:
    """Return the address for the outbox of a client: its server, its caller and its token, as a digest."""
    token = _token(environment)
    digest = f"token:{hashlib.sha256(token.encode()).hexdigest()[:_DIGEST]}" if token else ""
    return " ".join(filter(None, (*_place_of(environment), digest)))


def _place_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    server = environment.get("RICORDO_SOCKET") or environment.get("RICORDO_URL") or _DEFAULT_URL
    return server, *(environment.get(name, "") for name in ("RICORDO_USER_ID", "RICORDO_CHAT_ID"))


def _take_over(outbox: Outbox) -> None:
    """Let what was kept for this server and caller be sent with the present token."""
    place = " ".join(filter(None, _place_of(os.environ)))
    for each in outbox.waiting():
        if each.address.partition(" token:")[0] == place:
            replace(each, address=outbox.address).write()


def _add_later(outbox: Outbox, params: Mapping[str, Any], *, as_json: bool) -> int:
    """Keep a fact, and deliver it behind those that wait already."""
    params = {**params, "id": str(uuid.uuid4())}
    try:
        kept = outbox.keep("memory.add", params)
    except OSError as error:
        raise RefusedError(f"{outbox.folder} cannot be written: {error}", code="store") from error
    sent = outbox.send(call)
    if kept in sent.answers:
        return _show("add", sent.answers[kept], as_json=as_json)
    waiting = outbox.waiting()
    mine = next((each for each in waiting if each.path == kept), None)
    if mine is not None and mine.refused:
        mine.remove()
        raise RefusedError(mine.refused, code="invalid")
    if mine is not None:  # otherwise another process delivered it
        sys.stderr.write(f"Kept for later, {len(waiting)} waiting: {sent.away}\n")
    return _show("add", params, as_json=as_json)


def _on_outbox(verb: str, outbox: Outbox, params: Mapping[str, Any], *, as_json: bool) -> int:
    if verb == "drop":
        _drop(outbox, params["number"])
    if params.get("any_token"):
        _take_over(outbox)
    sent = outbox.send(call) if verb == "send" else None
    waiting = outbox.waiting()
    mine = [each for each in waiting if each.address in (outbox.address, "")]  # "" is a damaged file
    if as_json:
        found = [{**asdict(each), "path": str(each.path), "kept_at": _day(each)} for each in mine]
        done = {} if sent is None else {"delivered": len(sent.answers)}
        sys.stdout.write(f"{json.dumps({**done, 'waiting': found}, ensure_ascii=False, indent=2)}\n")
    else:
        held = (
            [each for each in sent.answers.values() if isinstance(each, dict) and each.get("closed_reason")]
            if sent
            else []
        )
        approval = f" ({len(held)} not stored yet: approval is needed)" if held else ""
        lines = [] if sent is None else [f"{len(sent.answers)} delivered{approval}, {len(mine)} waiting."]
        for each in waiting if verb == "list" or sent else []:
            why = f" (refused: {each.refused})" if each.refused else ""
            said = _said(each) + why if each in mine else f"(for {each.address}: another server, caller or token)"
            lines.append(f"{each.number}  {_day(each)}  {_clean(said)}")
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    if sent is not None and sent.away:
        raise RefusedError(sent.away)
    return 0


def call(method: str, params: Mapping[str, Any], *, environment: Mapping[str, str] | None = None) -> Any:
    """Call a method of the server named in the environment; return the result.

    Raises:
        RefusedError: The server refused the call, or did not answer.
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
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            hint = "if the certificate is your own, set SSL_CERT_FILE to it"
        raise RefusedError(f"no answer from the server: {error}", hint=hint) from error
    finally:
        connection.close()
    if "error" not in answer:
        return answer["result"]
    failure = answer["error"]
    data = failure.get("data") or {}
    code, hint = data.get("code", failure.get("code")), data.get("hint", failure.get("hint", ""))
    raise RefusedError(failure["message"], code=str(code), hint=hint)


def _connection(known: Mapping[str, str]) -> tuple[http.client.HTTPConnection, dict[str, str]]:
    headers = {"Authorization": f"Bearer {token}"} if (token := _token(known)) else {}
    if path := known.get("RICORDO_SOCKET"):
        return _UnixConnection(path), headers
    url = urlsplit(known.get("RICORDO_URL") or _DEFAULT_URL)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise RefusedError("RICORDO_URL is not an http address", code="invalid")
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
        raise RefusedError(f"RICORDO_TOKEN_FILE: {error}", code="invalid") from error


def _lines(verb: str, result: Any) -> list[str]:
    if verb == "search":
        return [_line(each) for each in result["hits"]]
    if verb == "list":
        return [_line(each) for each in result["nodes"]]
    if verb in ("staged", "approve", "refuse"):
        return [line for each in result for line in _of_review(each)]
    if verb == "delete":
        gone = f"deleted {result['memory_id']}"
        return [gone] if result["deleted"] else [f"not {gone}: proposal {result['proposal']}", result["notice"]]
    if not result["id"]:
        return [f"not stored: {_clean(result['content'])} ({result.get('notice')})"]
    waits = "not stored yet: " if result.get("closed_reason") == "quarantined" else ""
    return [f"{waits}{_line(result)}", *filter(None, [result.get("notice")])]


def _of_review(review: Mapping[str, Any]) -> list[str]:
    """Return a proposal as lines: what is proposed, who proposed it, and each change."""
    done = {"approve": "approved: ", "refuse": "refused: "}.get(review.get("decision") or "", "")
    method = " ".join(review["reasons"][1:2])
    what = f"{method} {_line(review.get('older') or review['newer'])}".strip()
    by = f"  [{review['by']}]" if review.get("by") else ""
    details = [f"{each['field']}: {each['old']} → {each['new']}" for each in review.get("changes", ())]
    if review.get("older"):
        details += review["reasons"][2:]
    return [f"{done}{review['id']}  {_clean(what + by)}", *(f"    {_clean(each)}" for each in details)]


def _line(memory: Mapping[str, Any]) -> str:
    """Return a memory on one line, without control characters."""
    about = f" (about {', '.join(memory['about'])})" if memory.get("about") else ""
    notes = [
        memory.get("speaker") or (memory.get("role") if memory.get("type") == "episodic" else None),
        memory.get("event_time_relative"),
        f"in {memory['space']}" if memory.get("space") else None,
        "probably not relevant" if memory.get("is_relevant") is False else None,
        "reads like an instruction" if memory.get("warnings") else None,
    ]
    marks = f"  [{', '.join(filter(None, notes))}]" if memory.get("event_time_relative") else ""
    return f"{memory['id']}  {_clean(memory['content'] + about + marks)}"


def _drop(outbox: Outbox, number: int) -> None:
    found = [each for each in outbox.waiting() if each.number == number]
    if not found:
        raise RefusedError(f"nothing with the number {number} is waiting", code="not_found")
    for each in found:
        each.remove()


def _day(each: Waiting) -> str:
    return datetime.fromtimestamp(each.kept_at, UTC).strftime("%Y-%m-%d %H:%MZ")


def _said(each: Waiting) -> str:
    params = each.params
    told = params.get("messages") or params.get("facts_") or [params]
    return " / ".join(str(one.get("content") or one.get("text") or each.method) for one in told)


def _clean(text: str) -> str:
    return "".join(char if char.isprintable() else "�" for char in " ".join(text.split()))


if __name__ == "__main__":
    sys.exit(main())
