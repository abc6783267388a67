"""Why a memory is not among the hits: the first step of a search at which it fell out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ricordo.clock import to_ms
from ricordo.model import Absence, Node
from ricordo.retrieval.candidates import Candidates, Lookup
from ricordo.retrieval.pool import Pool
from ricordo.retrieval.rank import Ranked, Ranking
from ricordo.retrieval.relevance import Judged
from ricordo.text import index_terms


def absence_of(
    look: Lookup,
    seeds: Mapping[str, Candidates],
    pool: Pool | None,
    ranking: Ranking,
    weighed: Sequence[Ranked],
    judged: Judged | None = None,
) -> Absence:
    """Where the memory that `why_not` names stands in a search, or where it fell out."""
    asked = look.plan.query.why_not or ""
    node = look.snapshot.nodes.get(look.scope, asked)
    if node is None:
        return Absence(id=asked, stage="unknown", detail="there is no such memory")
    if reason := _left_out(look, node):
        return Absence(id=node.id, stage="left out", detail=reason)
    place = _place(pool, node.key)
    if place is None:
        return Absence(id=node.id, stage="not found", detail=_not_found(look, seeds, node))
    keys = [each.key for each in weighed]
    if (newer := _said_newer(look, node, keys)) is not None:
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
    shown = rank <= look.plan.query.limit
    beaten = "" if rank == 1 else f", {weighed[rank - 2].score - weighed[rank - 1].score:.3f} behind the one before it"
    return Absence(
        id=node.id,
        stage="found" if shown else "ranked below",
        rank=rank,
        shares=ranking.told(weighed[rank - 1]),
        detail=f"{rank} of {len(ranking.totals)} candidates{beaten}"
        + ("" if shown else f"; only {look.plan.query.limit} were asked for"),
    )


def _left_out(look: Lookup, node: Node) -> str:
    """Why the search could not have given it, whatever its words."""
    query = look.plan.query
    if not node.is_live and not query.archived:
        return f"it is closed ({node.closed_reason}); --archived searches closed memories"
    if node.is_live and query.archived:
        return "it is alive, and only the archive was searched"
    if node.expires_at is not None and look.plan.now >= node.expires_at.timestamp() * 1_000:
        return "it has expired"
    if look.allowed is not None and node.key not in look.allowed:
        return "a condition of the question leaves it out (type, category, entity, tag, session, time or attributes)"
    shelf = look.snapshot.nodes.shelf(node.key)
    if shelf not in look.plan.shelves:
        return "it is a turn whose conversation has become knowledge; type=any searches such turns"
    return ""


def _said_newer(look: Lookup, node: Node, keys: Sequence[int]) -> str | None:
    """The id of the hit that stands for a fact because it says the same and is newer."""
    if node.key in keys:
        return None
    said = {key: (about, line) for key, about, line, _ in look.snapshot.graph.lines([node.key, *keys])}
    found = next((key for key in keys if key in said and said[key] == said.get(node.key)), None)
    return None if found is None else look.snapshot.nodes.by_key(look.scope, [found])[found].id


def _place(pool: Pool | None, key: int) -> int | None:
    if pool is None:
        return None
    found = np.flatnonzero(pool.turns.keys[: pool.size] == key).tolist()
    return found[0] if found else None


def _not_found(look: Lookup, seeds: Mapping[str, Candidates], node: Node) -> str:
    """What it shares with the question, and what the last candidate of each strategy had."""
    terms = set(index_terms(node.content))
    held = [term for term in look.plan.terms if term in terms]
    least = {name: min(found.values()) for name, found in seeds.items() if found}
    said = []
    if not held:
        said.append("it holds no word of the question")
    elif "words" in least:
        weight = sum(look.terms[term].idf for term in held if term in look.terms)
        said.append(
            f"it holds {', '.join(held)}, worth {weight:.2f} (the {len(seeds['words'])} found by words: "
            f"{least['words']:.2f} and more)"
        )
    if any(question.vector is not None for question in look.plan.vectors.values()):
        mine = _cosine(look, node)
        if mine is None:
            said.append("it has no vector yet")
        elif "meaning" in least:
            said.append(
                f"its meaning scores {mine:.2f} (the {len(seeds['meaning'])} found by meaning: "
                f"{least['meaning']:.2f} and more)"
            )
    if (span := look.plan.interval) is not None:
        is_within = span.start <= to_ms(node.event_time) < span.end
        said.append("only the latest of its time were found by time" if is_within else "it is of another time")
    return "; ".join(said)


def _cosine(look: Lookup, node: Node) -> float | None:
    for model, question in look.plan.vectors.items():
        if question.vector is not None:
            rows = look.vectors.vectors(
                look.snapshot,
                np.array([node.key], np.int64),
                model=model,
                dimension=len(question.vector),
                spaces=look.snapshot.visible(look.scope),
                shelves=look.plan.shelves,
            )
            if not np.isnan(rows[0, 0]):
                return float(rows[0] @ question.vector)
    return None
