"""What a conversation tells, taken from it as it goes on: new messages are read once, and the conversation waits on.

Whatever reads it as a whole later finds what was taken here, and does not repeat it. What holds for the moment only is
left out. Each conversation has one run that grows with it; it notes which messages were read, in the commit that keeps
what they told, so that a crash loses nothing and reads nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ricordo.clock import from_ms
from ricordo.consolidation.apply import Draft, learn
from ricordo.consolidation.context import House, Spent, check_budget, name_of, new_run, note_use, paid, why_failed
from ricordo.consolidation.draft import Talk, drafted, talk
from ricordo.consolidation.judge import Judged, Refused
from ricordo.consolidation.lease import leased
from ricordo.consolidation.prompts import VERSION
from ricordo.consolidation.suppression import as_shown
from ricordo.errors import NotFoundError, RicordoError
from ricordo.model import Change, Node, Run, RunItem, Scope
from ricordo.models.language import AnswerError
from ricordo.storage import Snapshot
from ricordo.storage import values as values_

MOMENTARY = frozenset(("context", "observation"))
"""Categories of what holds for the moment only: nothing to be kept while the moment lasts."""

_BEFORE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fresh:
    """What is new in a conversation, and the last of what was read of it before."""

    talk: Talk
    before: tuple[Node, ...]


async def extract(house: House, session: str | None, *, dry_run: bool = False) -> Run:
    """Take from a conversation, or from all that wait, what was said since it was last read.

    Raises:
        NotFoundError: nothing was said in that session.
    """
    waiting = await house.store.read(lambda tx: _waiting(tx, house.scope, session))
    run = new_run(house, "extraction", prompt=VERSION, dry_run=dry_run)
    for each in waiting:
        place = each.owner, each.chat
        part = await extract_one(house, place, each.session, dry_run=dry_run)
        run = _together(run, part)
        if part.state == "failed" and part.reason and not part.sessions:
            break  # who is not there for one is not there for the next
    return replace(run, ended_at=from_ms(house.now()))


def _waiting(snapshot: Snapshot, scope: Scope, session: str | None) -> list[values_.Waiting]:
    if session is not None and snapshot.sessions.get(scope, session) is None:
        raise NotFoundError(f"session: nothing was said in {session!r}")
    return [each for each in snapshot.runs.waiting(scope) if session in (None, each.session)]


def _together(run: Run, part: Run) -> Run:
    """What the runs of several conversations did, as one; of a single one, its own."""
    if not run.items:
        return part if part.items else run
    failed = run.state == "failed" and part.state == "failed"
    return replace(
        run,
        state="failed" if failed else "dry" if run.state == "dry" else "done",
        sessions=(*run.sessions, *part.sessions),
        items=(*run.items, *part.items),
        tokens_in=run.tokens_in + part.tokens_in,
        tokens_out=run.tokens_out + part.tokens_out,
        cost=None if run.cost is None or part.cost is None else run.cost + part.cost,
    )


async def extract_one(house: House, place: tuple[str, str], session: str | None, *, dry_run: bool = False) -> Run:
    """Read what is new in one conversation, unless somebody is at it already. What fails leaves it as it was."""
    run = new_run(house, "extraction", prompt=VERSION, dry_run=dry_run)
    spent = Spent()
    try:
        if dry_run or house.model is None:
            return await _read(house, place, session, run, spent, dry_run=dry_run)
        name = await house.store.read(lambda tx: tx.runs.lease_of(place, session))
        async with leased(house.store, name) as is_ours:
            if is_ours:
                return await _read(house, place, session, run, spent, dry_run=False)
        left = RunItem(what="left", text=session or "", reason="somebody else is taking it in just now")
        return replace(run, items=(left,))
    except RicordoError as error:
        reason = why_failed(error)
        known = (session,) if session and isinstance(error, AnswerError) else ()
        failed = RunItem(what="failed", text=session or "", reason=reason)
        return replace(run, state="failed", reason=reason, sessions=known, items=(failed,))
    finally:
        await note_use(house, spent)


async def _read(
    house: House, place: tuple[str, str], session: str | None, run: Run, spent: Spent, *, dry_run: bool
) -> Run:
    fresh = await house.store.read(lambda tx: _fresh(tx, house, place, session))
    if fresh is None:
        return run
    await check_budget(house)
    draft = await drafted(house, fresh.talk, spent, before=fresh.before)
    draft = replace(draft, judged=_lasting(draft.judged, tells=house.model is not None), waits_on=True)
    if dry_run:
        return await house.store.read(lambda tx: _learnt(tx, house, draft, run, spent)[1])
    run_id = await house.store.read(lambda tx: _run_of(tx, house, place, session)) or run.id
    fresh_run = replace(run, id=run_id)
    return await house.store.write(
        lambda tx: _learnt(tx, house, draft, fresh_run, spent),
        scope=fresh.talk.scope,
        reason=house.reason("extract", run_id),
        at=from_ms(house.now()),
    )


def _fresh(snapshot: Snapshot, house: House, place: tuple[str, str], session: str | None) -> _Fresh | None:
    """What was said since the last reading; None where no person said anything."""
    waiting = snapshot.runs.waiting_episodes(house.scope, place, session)
    read = _already_read(snapshot, house, place, session, waiting)
    fresh = [node for node in waiting if node.key not in read]
    if not any(node.role == "user" for node in fresh):
        return None
    first = waiting.index(fresh[0])
    return _Fresh(
        talk=talk(snapshot, place, session, fresh), before=as_shown(snapshot, waiting[max(0, first - _BEFORE) : first])
    )


def _already_read(
    snapshot: Snapshot, house: House, place: tuple[str, str], session: str | None, waiting: Sequence[Node]
) -> set[int]:
    """The keys of those messages that this very model was shown."""
    values = {
        **_place(snapshot, place, session),
        "model": name_of(house.model),
        "keys": json.dumps([node.key for node in waiting]),
    }
    return {key for (key,) in snapshot.rows("messages_read", values)}


def _run_of(snapshot: Snapshot, house: House, place: tuple[str, str], session: str | None) -> str | None:
    """The id of the run that grows with a conversation."""
    values = {**_place(snapshot, place, session), "model": name_of(house.model)}
    found: str | None = snapshot.value("extraction_of", values)
    return found


def _place(snapshot: Snapshot, place: tuple[str, str], session: str | None) -> dict[str, int | None]:
    space = snapshot.space(*place)
    key = None if session is None else snapshot.value("session_by_id", {"space": space, "session": session})
    return {"space": space, "session": key}


def _lasting(judged: Judged, *, tells: bool) -> Judged:
    """Without what holds for the moment only. The rules find the same each time, and need not tell."""
    kept = tuple(fact for fact in judged.facts if fact.category not in MOMENTARY)
    gone = [fact for fact in judged.facts if fact.category in MOMENTARY]
    refused = tuple(Refused(text=fact.content, reason="holds for the moment only") for fact in gone)
    return replace(judged, facts=kept, summary="", refused=(*judged.refused, *refused) if tells else ())


def _learnt(snapshot: Snapshot, house: House, draft: Draft, run: Run, spent: Spent) -> tuple[Change, Run]:
    """What the new messages told, under the run that grows; told is only what is new."""
    before = snapshot.runs.get(draft.scope, run.id)
    base = run if before is None else replace(before, state=run.state)
    change, done = learn(snapshot, draft, house.terms, run=paid(base, spent, house.limits), now=house.now())
    if house.model is None:
        return change, replace(done, items=done.items[len(base.items) :])
    there = [node.id for node in draft.episodes if (now := snapshot.nodes.get(draft.scope, node.id)) and now.is_live]
    seen = RunItem(what="looked", reason=f"{len(there)} messages", evidence=tuple(there))
    known = (draft.session,) if draft.session and draft.session not in done.sessions else ()
    whole = replace(done, sessions=(*done.sessions, *known), items=(*done.items, seen), ended_at=from_ms(house.now()))
    return replace(change, runs=(whole,)), replace(whole, items=whole.items[len(base.items) :])
