"""What another model made of a run's conversations is taken over, whole or item by item, as one change.

What it adds is added. What it did not find again is closed, unless anybody or anything has touched it since the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ricordo.clock import from_ms, to_ms
from ricordo.consolidation.apply import Draft, Terms, learn_again
from ricordo.consolidation.judge import Accepted, Judged
from ricordo.errors import ConflictError, InvalidError, NotFoundError
from ricordo.model import Assertion, Change, Closing, Introduction, Node, Run, RunItem, Scope
from ricordo.storage import Snapshot
from ricordo.text import name_key

Offer = tuple[RunItem, Accepted | None]
"""An item of a replay, and the fact it would add."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proposed:
    """A replay as it was kept. `base` is the id of the run it replays, `shown` digests of messages by their ids."""

    run: Run
    base: str
    shown: Mapping[str, str]
    items: Sequence[Mapping[str, Any]]
    entities: Sequence[Mapping[str, Any]]
    relations: Sequence[Mapping[str, Any]]


def keep(
    snapshot: Snapshot, scope: Scope, run: Run, base: str, drafts: Sequence[Draft], offers: Sequence[Offer], *, now: int
) -> None:
    """Keep a replay until somebody accepts it; not where a message went while the model read.

    Args:
        base: the id of the run that was replayed.
        now: Unix milliseconds, UTC.
    """
    shown = {node.id: _digest(node) for draft in drafts for node in draft.episodes}
    space = snapshot.space(run.owner, run.chat)
    if space is None or len(_unchanged(snapshot, scope, run, shown)) < len(shown):
        return
    body = {
        "base": base,
        "shown": shown,
        "items": [_item(item, fact) for item, fact in offers],
        "run": {**asdict(replace(run, items=())), "started_at": to_ms(run.started_at), "ended_at": to_ms(run.ended_at)},
        "entities": [asdict(each) for draft in drafts for each in draft.judged.entities],
        "relations": [asdict(each) for draft in drafts for each in draft.judged.relations],
    }
    snapshot.proposals.put(run.id, space=space, at=now, body=json.dumps(body, ensure_ascii=False))


def _item(item: RunItem, fact: Accepted | None) -> dict[str, Any]:
    told = {"what": item.what, "id": item.id, "evidence": item.evidence}
    if fact is None or item.what != "added":  # what is known tells itself, and what was refused is not kept
        return told
    more = {name: getattr(fact, name) for name in ("type", "category", "about", "slot", "confidence", "sure")}
    return {**told, "text": item.text, "fact": more}


def _digest(node: Node) -> str:
    return hashlib.sha256(node.content.encode()).hexdigest()


def _unchanged(snapshot: Snapshot, scope: Scope, run: Run, shown: Mapping[str, str]) -> dict[str, Node]:
    """The messages that still say what a model was shown."""
    place = run.owner, run.chat
    there = [node for each in run.sessions for node in snapshot.runs.session_episodes(scope, place, each)]
    return {node.id: node for node in there if shown.get(node.id) == _digest(node)}


def accept(
    snapshot: Snapshot, scope: Scope, run_id: str, numbers: Sequence[int] | None, terms: Terms, *, now: int
) -> tuple[Change, Run]:
    """The change that takes a replay over, and the run with all that was taken over of it so far. Nothing twice.

    Args:
        run_id: its id, or the last 8 characters of it.
        numbers: of its items, counted from 1; all when None.
        now: Unix milliseconds, UTC.

    Raises:
        NotFoundError: no replay of that id is kept.
        InvalidError: it has no item of such a number, or that one cannot be accepted.
        ConflictError: its messages, or the run it replays, have changed since.
    """
    found = _proposed(snapshot, scope, run_id)
    chosen = _chosen(found.items, numbers)
    base = snapshot.runs.get(scope, found.base)
    if base is None:
        raise ConflictError(f"the run that {run_id} replays was undone", hint="consolidate anew")
    there = _unchanged(snapshot, scope, found.run, found.shown)
    if len(there) < len(found.shown):
        raise ConflictError(
            "a message that was read has changed or gone since", hint="replay the run once more and accept that"
        )
    before = snapshot.runs.get(scope, found.run.id)
    run = replace(found.run, items=() if before is None else before.items)
    draft = _draft(found, chosen, there, is_whole=numbers is None)
    change, done = learn_again(snapshot, draft, terms, run=run, now=now)
    closings, told = _closings(snapshot, scope, chosen, base, done, now=now)
    done = replace(done, items=(*done.items, *told), ended_at=from_ms(now))
    if change.is_empty and not told:  # nothing new, or nothing but refusals
        return Change(), done
    return replace(change, close=(*change.close, *closings), runs=(done,)), done


def whole_id(snapshot: Snapshot, scope: Scope, run_id: str) -> str:
    """The id of a replay that is kept, by it or the last 8 characters of it. Raises NotFoundError."""
    return _proposed(snapshot, scope, run_id).run.id


def _proposed(snapshot: Snapshot, scope: Scope, run_id: str) -> _Proposed:
    body = snapshot.proposals.body(scope, run_id)
    if body is None:
        raise NotFoundError(f"there is no replay {run_id} to accept", hint="replay a run; the replay's id accepts it")
    given = json.loads(body)
    told = given["run"]
    run = Run(
        **{
            **told,
            "state": "done",
            "started_at": from_ms(told["started_at"]),
            "items": (),
            "ended_at": from_ms(told["ended_at"]),
            "sessions": tuple(told["sessions"]),
        }
    )
    return _Proposed(
        run=run,
        base=given["base"],
        shown=given["shown"],
        items=given["items"],
        entities=given["entities"],
        relations=given["relations"],
    )


def _chosen(items: Sequence[Mapping[str, Any]], numbers: Sequence[int] | None) -> list[Mapping[str, Any]]:
    """The items of these numbers; of what is known already, or was refused, there is nothing to accept.

    Raises:
        InvalidError: one is no number of an item that can be accepted.
    """
    if numbers is None:
        return [item for item in items if item["what"] in ("added", "missing")]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(items):
            raise InvalidError(f"items: there is no item {number!r}", hint=f"they are counted from 1 to {len(items)}")
        if (what := items[number - 1]["what"]) not in ("added", "missing"):
            raise InvalidError(f"items: item {number} is {what!r}", hint='only "added" and "missing" can be accepted')
    return [items[number - 1] for number in dict.fromkeys(numbers)]


def _draft(
    found: _Proposed, chosen: Iterable[Mapping[str, Any]], there: Mapping[str, Node], *, is_whole: bool
) -> Draft:
    """What is to be added, with whom it is about; all people and relations only with the whole."""
    facts = [
        Accepted(
            **{**item["fact"], "about": tuple(item["fact"]["about"])},
            content=item["text"],
            evidence=tuple(there[each] for each in item["evidence"]),
        )
        for item in chosen
        if item["what"] == "added"
    ]
    named = {name_key(name) for fact in facts for name in fact.about}
    entities = [
        Introduction(**{**each, "aliases": tuple(each["aliases"]), "evidence": tuple(each["evidence"])})
        for each in found.entities
        if is_whole or not named.isdisjoint(map(name_key, (each["name"], *each["aliases"])))
    ]
    relations = [Assertion(**{**each, "evidence": tuple(each["evidence"])}) for each in found.relations if is_whole]
    judged = Judged(facts=tuple(facts), entities=tuple(entities), relations=tuple(relations))
    place = found.run.owner, found.run.chat
    return Draft(place=place, session=None, episodes=tuple(there.values()), judged=judged, waits_on=True)


def _closings(
    snapshot: Snapshot, scope: Scope, chosen: Iterable[Mapping[str, Any]], base: Run, done: Run, *, now: int
) -> tuple[list[Closing], list[RunItem]]:
    """What the replayed run made, nobody touched, and the other model did not find."""
    closings, told = list[Closing](), list[RunItem]()
    known = {(item.what, item.id) for item in done.items}
    for item in chosen:
        node = snapshot.nodes.get(scope, item["id"]) if item["what"] == "missing" else None
        if node is None or not node.is_live:
            continue
        if _is_as_made(snapshot, node, base):
            closings.append(Closing(id=node.id, at=from_ms(now), reason="retracted"))
            told.append(RunItem(what="missing", id=node.id, text=node.content))
        elif ("kept", node.id) not in known:
            told.append(RunItem(what="kept", id=node.id, text=node.content, reason="was touched since"))
    return closings, told


def _is_as_made(snapshot: Snapshot, node: Node, base: Run) -> bool:
    """Whether a memory is the run's own and as the run left it: not confirmed, corrected, reinforced, demoted, updated,
    nor said again. What was done and undone does not count.
    """
    versions = snapshot.history.versions(node)
    first = versions[0][1]
    mine = [was for was, commit in versions if commit is not None and commit.run_id == base.id]
    return first is not None and first.run_id == base.id and mine[-1] == node
