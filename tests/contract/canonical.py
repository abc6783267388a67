"""All that a memory shows of itself, through its public API: equal histories give equal dumps on every backend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from ricordo import Memory, RicordoError
from ricordo.model import Commit, Node

Dump = dict[str, Any]

_LARGEST = 1_000
QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("who likes tea or chess", {"type": "any"}),
    ("Anna the red bicycle", {}),
    ("what did Эмма do yesterday", {"type": "any"}),
    ("who was asked about peanuts", {"archived": True, "type": "any"}),
)


async def canonical(memory: Memory, *, ids: Iterable[str], names: Iterable[str], points: Sequence[int] = ()) -> Dump:
    """Return everything that a caller may see.

    Args:
        ids: memories to look at one by one, whether they are there or not.
        names: entities to look at.
        points: numbers of commits after which the memory is looked at as it was then.
    """
    found: Dump = {
        "memories": [_node(node) for node in await _listed(memory)],
        "archived": [_node(node) for node in await _listed(memory, archived=True)],
        "timeline": [node.id for node in await memory.timeline(limit=100)],
        "log": [_commit(commit) for commit in await memory.log(_LARGEST)],
        "people": [_plain(person) for person in await memory.people(limit=_LARGEST)],
        "reviews": [_plain(review) for review in await memory.review(limit=_LARGEST)],
        "runs": [_plain(await memory.run(run.id)) for run in await memory.runs(_LARGEST)],
        "weak": [_plain(weak) for weak in await memory.weak(limit=_LARGEST)],
        "stats": _fields(await memory.stats(), "size_mb"),
    }
    archive = await memory.archive(limit=_LARGEST)
    found["archive"] = {"ids": [node.id for node in archive.nodes], "counts": dict(sorted(archive.counts.items()))}
    for node_id in dict.fromkeys(ids):
        found[f"memory {node_id}"] = await _one(memory, node_id)
    for name in dict.fromkeys(names):
        found[f"entity {name}"] = await _asked(_profile(memory, name))
    for point in points:
        then = [_node(node) for node in await _listed(memory, as_of=point)]
        found[f"as of {point}"] = [*then, *[_node(node) for node in await _listed(memory, as_of=point, archived=True)]]
        for name in dict.fromkeys(names):
            found[f"entity {name} as of {point}"] = await _asked(_profile(memory, name, as_of=point))
    return found


async def searched(memory: Memory, *, points: Sequence[int] = ()) -> Dump:
    """Return what some searches find. Being found is use, which shows in a dump: so this comes after it."""
    found: Dump = {}
    for question, conditions in QUESTIONS:
        for point in (None, *points):
            answer = await memory.search(question, limit=30, as_of=point, **conditions)
            found[f"search {question} {conditions} as of {point}"] = [
                (hit.id, round(hit.score, 9), hit.content, hit.about, hit.evidence, hit.warnings) for hit in answer.hits
            ]
    return found


async def _listed(memory: Memory, **conditions: Any) -> list[Node]:
    nodes, cursor = [], None
    while True:
        page = await memory.list(type="any", limit=100, cursor=cursor, **conditions)
        nodes += page.nodes
        cursor = page.cursor
        if cursor is None:
            return nodes


async def _asked(work: Any) -> Any:
    """What an answer is, or why there is none."""
    try:
        return await work
    except RicordoError as error:
        return f"{type(error).__name__}: {error}"


async def _one(memory: Memory, node_id: str) -> Any:
    return [await _asked(_history(memory, node_id)), await _asked(_explained(memory, node_id))]


async def _history(memory: Memory, node_id: str) -> Any:
    return [
        (_node(version.node), version.commit and _commit(version.commit)) for version in await memory.history(node_id)
    ]


async def _explained(memory: Memory, node_id: str) -> Dump:
    found = await memory.explain(node_id)
    chains = {name: [node.id for node in getattr(found, name)] for name in ("sources", "supersedes", "superseded_by")}
    plain = _fields(found, "node", "made", "versions", *chains)
    return plain | chains | {"edges": sorted(map(repr, found.edges)), "made": found.made and _commit(found.made)}


async def _profile(memory: Memory, name: str, **when: Any) -> Dump:
    """First and last sight of an entity are left out: a backend may count what named it once."""
    found = await memory.entity(name, **when)
    nodes = {part: [node.id for node in getattr(found, part)] for part in ("facts", "mentions")}
    return _fields(found, "first_seen", "last_seen", *nodes) | nodes


def _node(node: Node) -> Dump:
    return _fields(node)


def _commit(commit: Commit) -> Dump:
    return _fields(commit, "hash")


def _plain(value: Any) -> Any:
    """A value as dictionaries and lists, without the keys of the store, however deep they lie."""
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _fields(value: Any, *left_out: str) -> Dump:
    return {name: _plain(getattr(value, name)) for name in _names(type(value)) if name not in left_out}


@cache
def _names(of: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(of) if each.name != "key")


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Return where two dumps differ, each place in a line."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            line for name in {**one, **other} for line in differences(one.get(name), other.get(name), f"{path}/{name}")
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for place, pair in pairs for line in differences(*pair, f"{path}[{place}]")]
    return [] if one == other else [f"{path}: {one!r:.300} | {other!r:.300}"]
