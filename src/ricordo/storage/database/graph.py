"""What lies near some memories: by whom they are about, by cause and effect, by having proved useful together."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

from ricordo.model import Scope
from ricordo.storage.database.reader import Snapshot
from ricordo.storage.values import Kinds, Near, Step, Usage
from ricordo.text.name_matching import Bearer, Known, candidates
from ricordo.text.statement import MAX_STATEMENT_CHARS

REINFORCED_TOGETHER_MS = 60_000
"""What is reinforced within so long of each other proved useful together."""

_COMPANIONS = 8


def kinds(snapshot: Snapshot) -> Kinds:
    """Which kinds of links there are to follow, anywhere in the store."""
    return snapshot.once(("kinds",), lambda: Kinds(*map(bool, snapshot.rows("kinds_of_links")[0])))


def known_names(snapshot: Snapshot, scope: Scope, text: str) -> Known:
    """Which of the names that a text may hold are known to a caller."""
    keys, sounds = candidates([text])
    values = {"keys": json.dumps(keys), "sounds": json.dumps(sounds)}
    found: dict[str, tuple[Bearer, ...]] = {}
    for space in snapshot.visible(scope):
        for key, *bearer in snapshot.rows("names_known", {**values, "space": space}):
            found[key] = (*found.get(key, ()), Bearer(*bearer))
    return found


def members(snapshot: Snapshot, entities: Iterable[int]) -> list[int]:
    """Entities with all that were merged into them."""
    return [row[0] for entity in entities for row in snapshot.rows("entity_members", {"entity": entity})]


def near_entity(snapshot: Snapshot, scope: Scope, entity: int, *, walk: int) -> list[Near]:
    """The latest live memories about an entity or naming it, in no order; `walk` of either kind are looked at."""
    values = {"entity": entity, "walk": walk, "spaces": json.dumps(snapshot.visible(scope))}
    return [Near(*row) for row in snapshot.rows("entity_near", values)]


def linked_to(snapshot: Snapshot, nodes: Iterable[int], entities: Iterable[int]) -> set[int]:
    """Which of some nodes are about one of some entities, or name one."""
    values = {"nodes": json.dumps(list(nodes)), "entities": json.dumps(list(entities))}
    return {row[0] for row in snapshot.rows("linked_to", values)}


def causes_and_effects(snapshot: Snapshot, scope: Scope, nodes: Iterable[int], *, most: int) -> list[Step]:
    """One step along causal edges, either way; along at most `most` of them each way."""
    values = {"nodes": json.dumps(list(nodes)), "most": most, "spaces": json.dumps(snapshot.visible(scope))}
    return [Step(*row) for row in snapshot.rows("causes_and_effects", values)]


def associates(snapshot: Snapshot, scope: Scope, nodes: Iterable[int], *, each: int) -> list[Step]:
    """The strongest few associates of each of some nodes."""
    values = {"nodes": json.dumps(list(nodes)), "each": each, "spaces": json.dumps(snapshot.visible(scope))}
    return [Step(*row) for row in snapshot.rows("associates_of", values)]


def reinforced_with(snapshot: Snapshot, owner: str, chat: str, node_id: str, *, at: int) -> list[str]:
    """The ids of what proved useful together with a node that is reinforced now (`at`, Unix milliseconds)."""
    values = {"space": snapshot.space(owner, chat), "since": at - REINFORCED_TOGETHER_MS, "most": _COMPANIONS + 1}
    return [found for (found,) in snapshot.rows("reinforced_since", values) if found != node_id][:_COMPANIONS]


def put_usage(snapshot: Snapshot, shown: Mapping[int, Usage]) -> None:
    """Add what was shown since to what is known of each memory."""
    for node, usage in shown.items():
        snapshot.rows("usage_put", {"node": node, "count": usage.shown, "at": usage.last_access})


def usage(snapshot: Snapshot, nodes: Collection[int]) -> dict[int, Usage]:
    """How memories were used, by key; those never shown are left out."""
    rows = snapshot.rows("usage_of", {"nodes": json.dumps(list(nodes))})
    return {node: Usage(count, last) for node, count, last in rows}


def lines(snapshot: Snapshot, nodes: Iterable[int]) -> list[tuple[int, str, str, int]]:
    """Of facts whose line tells all of them: (key, about whom, the line, since when in Unix milliseconds)."""
    if not kinds(snapshot).lines:
        return []
    values = {"nodes": json.dumps(list(nodes)), "most": MAX_STATEMENT_CHARS}
    return [(key, subjects, line, since) for key, subjects, line, since in snapshot.rows("lines_of", values)]
