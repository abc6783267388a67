"""Answers the question of a receipt again, as of its commit and from today's memories.

The past is a temporary copy of the store in which the later commits are undone one after the other. So every ranking
signal has its earlier value, and each commit that changes the answer is found by its effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from ricordo.clock import from_ms, to_ms
from ricordo.engine import Engine
from ricordo.errors import ConflictError
from ricordo.forgetting import forget
from ricordo.model import Change, Given, Json, Reason, Receipt, ReceiptId, ReceiptReplay, Scope
from ricordo.retrieval import service
from ricordo.retrieval.context import brief
from ricordo.retrieval.query import Request
from ricordo.retrieval.receipts import Draft, differences
from ricordo.storage import Snapshot
from ricordo.storage.staging import temporary_folder

_ANSWERS = frozenset(("search", "query", "context", "ask"))
# Each step answers the question once more. If there are more commits, one step undoes several of them.
_REPLAY_STEPS = 200


async def replayed(engine: Engine, scope: Scope, receipt: Receipt) -> ReceiptReplay:
    """Answer the question of a receipt as of its commit and from today's memories. Raises ConflictError."""
    if receipt.verb not in _ANSWERS:
        raise ConflictError(f"receipt {receipt.id} records a `{receipt.verb}` call, which cannot be replayed")
    if receipt.question is None:
        raise ConflictError(f"the question of receipt {receipt.id} was erased", hint="its results are still listed")
    if receipt.chat != (scope.chat or ""):
        place = f"in the chat {receipt.chat}" if receipt.chat else "outside any chat"
        raise ConflictError(f"receipt {receipt.id} belongs to a call {place}", hint="replay it with that scope")
    today = then = await _again(engine, scope, receipt)
    since = await engine.store.seen_by(scope).read(lambda tx: _visible_since(tx, scope, receipt.commit))
    makers: list[int] = []
    if since and "as_of" not in receipt.asked:
        async with _copy(engine) as past:
            for commits in _in_steps(since):
                await _roll_back(past, scope, to=commits[0] - 1)
                earlier = await _again(past, scope, receipt)
                if differences(earlier, then):
                    makers += commits
                then = earlier
    lost = differences(receipt.given, then)
    erasures = await engine.store.seen_by(scope).read(lambda tx: tx.history.erasures(since)) if lost else []
    return ReceiptReplay(
        receipt=receipt,
        then=then,
        today=today,
        differs_from_receipt=lost,
        differs_today=differences(then, today),
        commits=tuple(
            await engine.store.seen_by(scope).read(lambda tx: [tx.history.made(seq) for seq in sorted(makers)])
        ),
        reasons=tuple(_reasons(receipt.setup, engine.setup(), erasures)) if lost else (),
    )


def _visible_since(snapshot: Snapshot, scope: Scope, commit: int) -> list[int]:
    later = range(commit + 1, snapshot.history.next_commit())
    return sorted(snapshot.history.ledger().visible(scope, later))


def _in_steps(commits: Sequence[int]) -> list[list[int]]:
    """Return commits in groups, latest group first, each in ascending order."""
    size = -(-len(commits) // _REPLAY_STEPS)
    groups = [list(commits[at : at + size]) for at in range(0, len(commits), size)]
    return groups[::-1]


@asynccontextmanager
async def _copy(engine: Engine) -> AsyncIterator[Engine]:
    """Provide an engine on a temporary copy of the store. Its only background work is embedding and linking."""
    with temporary_folder(Path(engine.store.path)) as folder:
        await asyncio.to_thread(engine.store.copy_to, folder / "past.db")
        past = await engine.on_copy(folder / "past.db")
        try:
            yield past
        finally:
            await past.close()


async def _roll_back(engine: Engine, scope: Scope, *, to: int) -> None:
    """Reset the store of an engine to its state right after a commit."""

    def decide(snapshot: Snapshot) -> tuple[Change, None]:
        return forget.rolled_back(snapshot, to=to), None

    reason = Reason(actor="", origin="undo", reason="replay")
    await engine.store.write(decide, scope=scope, reason=reason, at=from_ms(engine.now()))
    engine.backlog.note(1)
    await engine.settle(None)


async def _again(engine: Engine, scope: Scope, receipt: Receipt) -> tuple[Given, ...]:
    """Return an engine's answer to a receipt's question, at the receipt's time, without counting or recording it."""
    drafts: list[Draft] = []

    def keep(draft: Draft) -> ReceiptId:
        drafts.append(draft)
        return ReceiptId()

    asking = replace(
        engine.asking(scope), now=to_ms(receipt.at), keep=keep, shown=lambda keys: None, told=lambda hits: None
    )
    question, asked = receipt.question or "", dict(receipt.asked)
    if receipt.verb == "context":
        given = {name: asked.get(name) for name in ("budget", "session", "as_of")}
        await brief(asking, question, **given, receipt=True)
    else:
        await service.search(asking, Request(text=question, verb=receipt.verb, receipt=True, **asked))
    return drafts[-1].given()


def _reasons(then: Json, now: Json, erasures: Sequence[int]) -> list[str]:
    """Return causes outside the commits that may explain a different answer."""
    found = [f"then: {each}" for each in then.get("degraded", ())]
    found += [f"change {seq} erased memories" for seq in erasures]
    changed = (name for name in sorted({*then, *now} - {"degraded"}) if then.get(name) != now.get(name))
    found += [f"{name} was {then.get(name)!r} and is {now.get(name)!r}" for name in changed]
    return found or ["what is computed from memories: vectors, links of names, calibration"]
