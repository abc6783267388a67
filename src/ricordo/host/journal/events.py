"""Events and deliveries in the journal. Each function is one part of a transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ricordo.errors import InvalidError, UnavailableError
from ricordo.host.journal.file import Rows
from ricordo.ids import new_id

MOST_WAITING = 100_000
KEPT_MS = 7 * 86_400_000
KEPT_EVENTS = 10_000
DEAD_MS = 90 * 86_400_000
DEAD_LETTERS = 1_000
_MOST_CHARS = 65_536
_DEADLY = "the process ended each time while it was dealt with"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A delivery that somebody has taken. `at` in Unix milliseconds; `tries` counts this one."""

    event: int
    id: str
    topic: str
    payload: Mapping[str, Any]
    at: int
    tries: int


def put(rows: Rows, topic: str, payload: Mapping[str, Any], *, once: str | None, now: int) -> str:
    """Write an event down for all who listen; returns its id. One with a known `once` is that event again.

    Raises:
        InvalidError: the payload is not a JSON object, or is longer than 64 kB.
        UnavailableError: too many deliveries wait.
    """
    text = _as_json(payload)
    if rows.ask("deliveries_many", {"most": MOST_WAITING - 1}):
        raise UnavailableError(f"{MOST_WAITING:,} events wait already", hint="start what deals with them")
    seen = None if once is None else hashlib.sha256(once.encode()).hexdigest()
    values = {"id": new_id(now), "topic": topic, "payload": text, "once": seen, "at": now}
    made = rows.ask("event_put", values)
    if not made:
        return str(rows.ask("event_by_once", {"once": seen})[0][0])
    rows.ask("deliveries_put", {"event": made[0][0], "topic": topic, "at": now})
    return str(values["id"])


def _as_json(payload: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(dict(payload), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError) as error:
        raise InvalidError("payload: not a JSON object", hint="use text, numbers, lists and objects") from error
    if len(text) > _MOST_CHARS:
        raise InvalidError("payload: it is longer than 64 kB", hint="send an id, and keep the rest in a store")
    return text


def read(payload: str) -> Mapping[str, Any]:
    """A payload as it was given."""
    found: Mapping[str, Any] = json.loads(payload)
    return found


def take(
    rows: Rows,
    handler: str,
    *,
    holder: str,
    now: int,
    wall: int,
    until: int,
    most_tries: int,
    is_gone: Callable[[str], bool],
) -> Row | None:
    """The oldest delivery that is due and free, now the holder's. What was tried too often is buried on the way.

    Args:
        now: Unix milliseconds of the caller's clock, by which deliveries are due.
        wall, until: of the machine's clock, by which they are held.
    """
    holders = [name for (name,) in rows.ask("delivery_holders", {"handler": handler})]
    gone = json.dumps([name for name in holders if is_gone(name)])
    while found := rows.ask("delivery_next", {"handler": handler, "now": now, "wall": wall, "gone": gone}):
        event, id_, topic, payload, at, tries = found[0]
        place = {"event": event, "handler": handler}
        if tries >= most_tries:
            rows.ask("delivery_bury", {**place, "holder": None, "reason": _DEADLY})
            continue
        rows.ask("delivery_take", {**place, "holder": holder, "until": until})
        return Row(event=event, id=id_, topic=topic, payload=read(payload), at=at, tries=tries + 1)
    return None


def done(rows: Rows, row: Row, handler: str, *, holder: str) -> bool:
    """A delivery is dealt with. False where it is another's by now."""
    gone = rows.ask("delivery_done", {"event": row.event, "handler": handler, "holder": holder})
    if gone:
        rows.ask("event_blank", {"event": row.event})
    return bool(gone)


def failed(rows: Rows, row: Row, handler: str, *, holder: str, due_at: int | None, reason: str) -> None:
    """A delivery could not be dealt with: again at `due_at`, or, with None, never of itself."""
    place = {"event": row.event, "handler": handler}
    if due_at is None:
        rows.ask("delivery_bury", {**place, "holder": holder, "reason": reason})
    else:
        rows.ask("delivery_again", {**place, "holder": holder, "due_at": due_at, "reason": reason})


def tidy(rows: Rows, *, now: int) -> None:
    """Let go of what nobody needs: the file stays small however long the host runs."""
    rows.ask("deliveries_orphaned", {"before": now - DEAD_MS})
    rows.ask("subscriptions_old", {"before": now - DEAD_MS})
    rows.ask("dead_letters_old", {"before": now - DEAD_MS, "most": DEAD_LETTERS})
    rows.ask("events_old", {"before": now - KEPT_MS, "most": KEPT_EVENTS})
    rows.ask("conversations_old", {"before": now - DEAD_MS})


def open_deliveries(rows: Rows, handlers: Sequence[str], *, now: int) -> tuple[int, int]:
    """How many deliveries to some handlers wait, and how many of these are due."""
    waiting, due = rows.ask("deliveries_open", {"handlers": json.dumps(list(handlers)), "now": now})[0]
    return int(waiting), int(due)
