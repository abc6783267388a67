"""Why a memory is not among the hits: the first step of a search at which it fell out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ricordo.clock import to_ms
from ricordo.model import Absence, Node, Scope
from ricordo.retrieval.plan import Plan
from ricordo.retrieval.pool import Pool
from ricordo.retrieval.rank import Ranked, Ranking
from ricordo.retrieval.relevance import Judged
from ricordo.storage import Snapshot
from ricordo.storage.candidates import CandidateSet, inverse_frequency
from ricordo.text import index_terms


def absence_of(
    snapshot: Snapshot,
    scope: Scope,
    plan: Plan,
    node: Node | None,
    found: CandidateSet,
    pool: Pool | None,
    ranking: Ranking,
    weighed: Sequence[Ranked],
    judged: Judged | None = None,
) -> Absence:
    """Where the memory that `why_not` names stands in a search, or where it fell out."""
    if node is None:
        return Absence(id=plan.query.why_not or "", stage="unknown", detail="there is no such memory")
    if reason := _left_out(snapshot, plan, node, matches=found.probe_matches):
        return Absence(id=node.id, stage="left out", detail=reason)
    place = _place(pool, node.key)
    if place is None:
        return Absence(id=node.id, stage="not found", detail=_not_found(plan, found, node))
    keys = [each.key for each in weighed]
    if (newer := _said_newer(snapshot, scope, node, keys)) is not None:
        return Absence(id=node.id, stage="ranked below", detail=f"{newer} says the same and is newer")
    if node.key not in keys:
        rank = 1 + int((ranking.totals > ranking.totals[place]).sum())
        detail = f"{rank} of {len(ranking.totals)} candidates by its signals; only the best {len(keys)} went further"
        told = ranking.told(Ranked(key=node.key, place=place, score=float(ranking.totals[place])))
        return Absence(id=node.id, stage="ranked below", detail=detail, rank=rank, shares=told)
    rank = 1 + keys.index(node.key)
    if judged is not None and node.key in judged.reasons:
        detail = f"{rank} of {len(ranking.totals)} candidates, relevance {judged.relevance[node.key]:.1f}: "
        return Absence(
            id=node.id,
            stage="not relevant",
            rank=rank,
            shares=ranking.told(weighed[rank - 1]),
            detail=detail + judged.reasons[node.key],
        )
    shown = rank <= plan.query.limit
    beaten = "" if rank == 1 else f", {weighed[rank - 2].score - weighed[rank - 1].score:.3f} behind the one before it"
    return Absence(
        id=node.id,
        stage="found" if shown else "ranked below",
        rank=rank,
        shares=ranking.told(weighed[rank - 1]),
        detail=f"{rank} of {len(ranking.totals)} candidates{beaten}"
        + ("" if shown else f"; only {plan.query.limit} were asked for"),
    )


def _left_out(snapshot: Snapshot, plan: Plan, node: Node, *, matches: bool) -> str:
    """Why the search could not have given it, whatever its words."""
    query = plan.query
    if not node.is_live and not query.archived:
        return f"it is closed ({node.closed_reason}); --archived searches closed memories"
    if node.is_live and query.archived:
        return "it is alive, and only the archive was searched"
    if node.expires_at is not None and plan.now >= node.expires_at.timestamp() * 1_000:
        return "it has expired"
    if not matches:
        return "a condition of the question leaves it out (type, category, entity, tag, session, time or attributes)"
    shelf = snapshot.nodes.shelf(node.key)
    if shelf not in plan.shelves:
        return "it is a turn whose conversation has become knowledge; type=any searches such turns"
    return ""


def _said_newer(snapshot: Snapshot, scope: Scope, node: Node, keys: Sequence[int]) -> str | None:
    """The id of the hit that stands for a fact because it says the same and is newer."""
    if node.key in keys:
        return None
    said = {key: (about, line) for key, about, line, _ in snapshot.graph.lines([node.key, *keys])}
    found = next((key for key in keys if key in said and said[key] == said.get(node.key)), None)
    return None if found is None else snapshot.nodes.by_key(scope, [found])[found].id


def _place(pool: Pool | None, key: int) -> int | None:
    if pool is None:
        return None
    found = np.flatnonzero(pool.turns.keys[: pool.size] == key).tolist()
    return found[0] if found else None


def _not_found(plan: Plan, found: CandidateSet, node: Node) -> str:
    """What it shares with the question, and what the last candidate of each strategy had."""
    terms = set(index_terms(node.content))
    held = [term for term in plan.terms if term in terms]
    least = {name: min(keys.values()) for name, keys in found.found.items() if keys}
    said = []
    if not held:
        said.append("it holds no word of the question")
    elif "words" in least:
        known = found.frequencies
        weight = sum(inverse_frequency(known[term], found.total) for term in held if term in known)
        said.append(
            f"it holds {', '.join(held)}, worth {weight:.2f} (the {len(found.found['words'])} found by words: "
            f"{least['words']:.2f} and more)"
        )
    if plan.question_vectors:
        mine = found.probe_similarity
        if mine is None:
            said.append("it has no vector yet")
        elif "meaning" in least:
            said.append(
                f"its meaning scores {mine:.2f} (the {len(found.found['meaning'])} found by meaning: "
                f"{least['meaning']:.2f} and more)"
            )
    if (span := plan.interval) is not None:
        is_within = span.start <= to_ms(node.event_time) < span.end
        said.append("only the latest of its time were found by time" if is_within else "it is of another time")
    return "; ".join(said)
