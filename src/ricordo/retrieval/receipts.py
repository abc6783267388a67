"""Receipts record what an answer contained and omitted. They are written with a delay, and two can be compared."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from ricordo.clock import from_ms, new_id
from ricordo.errors import RicordoError
from ricordo.model import (
    AnswerDifference,
    AnswerSentence,
    ContextLine,
    Entity,
    Given,
    Hit,
    Json,
    LeftOut,
    Node,
    Profile,
    Receipt,
    ReceiptId,
    RunItem,
    Scope,
    Share,
)
from ricordo.retrieval.query import Request
from ricordo.storage import Snapshot, Store

_log = logging.getLogger(__name__)

_WRITTEN_AFTER_S = 0.5
_AT_ONCE = 100
_WAITING_MOST = 10_000
_CLOSING_S = 2.0
LEFT_OUT_MOST = 10
_DIGITS = 6

_SHOWN = Node | Profile | Entity | ContextLine | RunItem
_NOT_ASKED = frozenset(("text", "trace", "why_not", "receipt", "verb"))
_USUAL = {each.name: each.default for each in fields(Request)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An answer to record. Nothing is copied or computed before it is written.

    Attributes:
        seen: the last commit in the snapshot; None if no snapshot was needed.
        others: (section, id) of context lines that are not hits; `sections` maps the ids of hits to sections.
        left_out: (id, reason), best first.
    """

    scope: Scope
    at: int
    request: Request | Mapping[str, Any]
    seen: int | None
    hits: Sequence[Hit] = ()
    sections: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[tuple[str, str]] = ()
    left_out: Sequence[tuple[str, str]] = ()
    degraded: Sequence[str] = ()

    def given(self) -> tuple[Given, ...]:
        """Return the contents of the answer, hits first, best first."""
        hits = (
            Given(
                id=hit.id,
                score=_rounded(hit.score),
                section=self.sections.get(hit.id, ""),
                why=tuple(
                    Share(strategy=each.strategy, rank=each.rank, raw=_rounded(each.raw), share=_rounded(each.share))
                    for each in hit.why
                ),
            )
            for hit in self.hits
        )
        return (*hits, *(Given(id=id_, section=section) for section, id_ in self.others))

    def receipt(self, id: str, *, seen: int, setup: Json) -> Receipt:
        """Return the receipt of the answer.

        Args:
            seen: the last commit visible to the caller.
        """
        asked = _asked(self.request)
        return Receipt(
            id=id,
            at=from_ms(self.at),
            verb=asked.pop("verb"),
            question=asked.pop("text"),
            asked=asked,
            owner=self.scope.owner,
            chat=self.scope.chat or "",
            trust=self.scope.trust,
            commit=seen,
            setup={**setup, "degraded": list(self.degraded)} if self.degraded else setup,
            given=self.given(),
            left_out=tuple(LeftOut(id=id_, reason=reason) for id_, reason in self.left_out[:LEFT_OUT_MOST]),
        )


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _asked(request: Request | Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a request that differ from their defaults, as JSON."""
    if not isinstance(request, Request):
        return {name: _plain(value) for name, value in request.items() if value is not None}
    given = {each.name: getattr(request, each.name) for each in fields(Request) if each.name not in _NOT_ASKED}
    changed = {name: _plain(value) for name, value in given.items() if value != _USUAL[name]}
    return {"verb": request.verb, "text": request.text, **changed}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple | set | frozenset) else value


def ids_in(answer: object) -> dict[str, None]:
    """Return the distinct ids of all memories and profiles in an answer, in order."""
    if isinstance(answer, list | tuple):
        return {id_: None for each in answer for id_ in ids_in(each)}
    if isinstance(answer, AnswerSentence):
        return dict.fromkeys(answer.ids)
    if not is_dataclass(answer):
        return {}
    own = {answer.id: None} if isinstance(answer, _SHOWN) and answer.id is not None else {}
    if isinstance(answer, Node):
        return own
    return own | {id_: None for each in fields(answer) for id_ in ids_in(getattr(answer, each.name))}


Screen = Callable[[Any], Any]
"""Returns a JSON value without data that must not be stored."""


def _screened(receipt: Receipt, screen: Screen) -> Receipt:
    """Return a receipt without credentials and personal data in its question and arguments."""
    return replace(receipt, question=screen(receipt.question or ""), asked=screen(receipt.asked))


class ReceiptLog:
    """Writes receipts with a delay. A crash loses the last half second of them.

    It belongs to the event loop that creates it.
    """

    def __init__(self, store: Store, setup: Callable[[], Json], *, screen: Screen | None) -> None:
        self._store = store
        self._screen = screen
        self._setup = setup
        self._waiting: list[tuple[str, Draft]] = []
        self._writing: asyncio.Task[None] | None = None
        self._flushing = asyncio.Lock()

    def keep(self, draft: Draft) -> ReceiptId:
        """Record an answer; return the id of its receipt."""
        id_ = ReceiptId(new_id(draft.at))
        if len(self._waiting) >= _WAITING_MOST:
            _log.warning("receipts: too many are waiting; an answer gets none")
            return id_
        self._waiting.append((id_, draft))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_soon(), name="ricordo-receipts")
        return id_

    async def _write_soon(self) -> None:
        await asyncio.sleep(_WRITTEN_AFTER_S)
        try:
            await self.flush()
        except RicordoError as error:
            _log.warning("receipts: they cannot be written: %s", error)

    async def flush(self) -> None:
        """Write the pending receipts in batches, so that other writers get in between.

        Raises:
            StoreError, UnavailableError: a batch cannot be written; it is dropped.
        """
        async with self._flushing:  # waits for batches that another caller is writing
            while self._waiting:
                some, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                await self._store.derive(partial(self._write, some))

    def _write(self, some: Sequence[tuple[str, Draft]], snapshot: Snapshot) -> None:
        setup = self._setup()
        for id_, draft in some:
            seen = snapshot.history.seen(draft.scope) if draft.seen is None else draft.seen
            receipt = draft.receipt(id_, seen=seen, setup=setup)
            snapshot.receipts.put(receipt if self._screen is None else _screened(receipt, self._screen))

    async def close(self) -> None:
        """Write the pending receipts, if the store is writable."""
        if self._writing is not None:
            self._writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writing
        with contextlib.suppress(TimeoutError, RicordoError):
            await asyncio.wait_for(self.flush(), _CLOSING_S)


_SAME = 1e-5
"""Two scores are equal if their relative difference is less than this, because receipts keep six digits."""


def differences(before: Sequence[Given], after: Sequence[Given]) -> tuple[AnswerDifference, ...]:
    """Return the differences between two answers, in the order of the first, then of the second. Pure."""
    return tuple(_differences(before, after))


def _differences(before: Sequence[Given], after: Sequence[Given]) -> Iterator[AnswerDifference]:
    was = {each.id: (place, each) for place, each in enumerate(before, 1)}
    now = {each.id: (place, each) for place, each in enumerate(after, 1)}
    for id_, (place, each) in was.items():
        if id_ not in now:
            yield AnswerDifference(id=id_, what="gone", rank_before=place, score_before=each.score)
            continue
        place_now, other = now[id_]
        changed = () if each.score is None or other.score is None else _changed(each.why, other.why)
        is_moved = place != place_now or each.section != other.section
        if is_moved or changed:
            yield AnswerDifference(
                id=id_,
                what="moved" if is_moved else "scored",
                rank_before=place,
                rank_after=place_now,
                score_before=each.score,
                score_after=other.score,
                shares=changed,
            )
    for id_, (place, each) in now.items():
        if id_ not in was:
            yield AnswerDifference(id=id_, what="new", rank_after=place, score_after=each.score)


def _changed(before: Sequence[Share], after: Sequence[Share]) -> tuple[str, ...]:
    """Return the names of the signals whose share changed."""
    was, now = ({each.strategy: each.share for each in shares} for shares in (before, after))
    names = dict.fromkeys((*was, *now))
    return tuple(name for name in names if not _is_same(was.get(name, 0.0), now.get(name, 0.0)))


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * max(1.0, abs(one), abs(other))
