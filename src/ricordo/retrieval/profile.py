"""What is known of an entity. However much that is, only the latest of it is read: counts are kept, not counted."""

from __future__ import annotations

from math import exp

from ricordo.model import SUMMARY_MEMORY, Entity, Profile, Scope
from ricordo.retrieval.hits import told
from ricordo.retrieval.names import entity_meant
from ricordo.storage import Snapshot, values

# The best of so many of the latest facts are shown.
_FACTS_READ = 200
_MENTIONS_READ = 60
_RELATED = 8


def profile(snapshot: Snapshot, scope: Scope, name: str, *, now: int, limit: int) -> Profile:
    """Everything about one entity, with at most `limit` facts and mentions.

    Raises:
        NotFoundError: nobody and nothing goes by that name.
        InvalidError: it may be one of several.
    """
    entity = entity_meant(snapshot, scope, name)
    about = snapshot.entities.latest(entity.key, "subject", now=now, most=_FACTS_READ)
    named = snapshot.entities.latest(entity.key, "mention", now=now, most=_MENTIONS_READ)
    summary = _summary(snapshot, scope, entity)
    best = [sketch.key for sketch in sorted(about, key=_worth, reverse=True)[:limit]]
    rest = [sketch.key for sketch in sorted(named, key=lambda each: each.type != "episodic", reverse=True)[:limit]]
    nodes = told(snapshot, snapshot.nodes.by_key(scope, [*best, *rest]))
    both = [sketch.key for sketch in (*about, *named)]
    first, last = snapshot.entities.span(entity)
    return Profile(
        id=entity.id,
        type=entity.type,
        name=entity.name,
        aliases=entity.aliases,
        relation=entity.relation,
        relations=snapshot.entities.relations(entity.key),
        summary=summary,
        protected=entity.protected,
        attributes=entity.attributes,
        first_seen=first,
        last_seen=last,
        mention_count=entity.mention_count,
        facts=tuple(nodes[key] for key in best if key in nodes and nodes[key].category != "summary"),
        mentions=tuple(nodes[key] for key in rest if key in nodes),
        related=snapshot.entities.named_together(entity.key, both, most=_RELATED),
    )


def _summary(snapshot: Snapshot, scope: Scope, entity: Entity) -> str | None:
    """Who somebody is in short; of what a model made of it only what still holds, and as it was corrected."""
    made = entity.attributes.get(SUMMARY_MEMORY)
    node = snapshot.nodes.get(scope, made) if made else None
    if node is None:
        return entity.summary
    latest = snapshot.nodes.successor(node.key)
    node = None if latest is None else snapshot.nodes.by_key(scope, [latest]).get(latest)
    if node is None or (node.id == made and snapshot.nodes.lost_a_source(node.key)):
        return None
    return node.content


def _worth(fact: values.Sketch) -> float:
    """How much a fact is held true and was found useful. Sorting is stable: among equals the latest comes first."""
    return fact.confidence * exp(0.2 * fact.score)


def known_people(snapshot: Snapshot, scope: Scope, *, most: int) -> tuple[Entity, ...]:
    """People, those who are named most often first."""
    return tuple(snapshot.entities.people(scope, most=most))
