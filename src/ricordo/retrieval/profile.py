"""What is known of an entity. However much that is, only the latest of it is read: counts are kept, not counted."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from ricordo.clock import to_ms
from ricordo.model import Entity, Node, Profile, Scope
from ricordo.retrieval.names import entity_meant
from ricordo.store import Snapshot
from ricordo.store.sqlite import people

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
    about = _present(people.latest(snapshot, scope, entity.key, "subjects_latest", most=_FACTS_READ), now=now)
    named = _present(people.latest(snapshot, scope, entity.key, "mentions_latest", most=_MENTIONS_READ), now=now)
    first, last = people.span(snapshot, entity)
    return Profile(
        id=entity.id, type=entity.type, name=entity.name, aliases=entity.aliases, relation=entity.relation,
        relations=people.relations(snapshot, entity.key), summary=entity.summary, protected=entity.protected,
        attributes=entity.attributes, first_seen=first, last_seen=last, mention_count=entity.mention_count,
        facts=tuple(sorted(about, key=_worth, reverse=True)[:limit]),
        mentions=tuple(sorted(named, key=lambda node: node.type != "episodic", reverse=True)[:limit]),
        related=people.named_together(snapshot, entity.key, [*about, *named], most=_RELATED),
    )  # fmt: skip


def _present(nodes: Sequence[Node], *, now: int) -> list[Node]:
    return [node for node in nodes if node.expires_at is None or to_ms(node.expires_at) > now]


def _worth(node: Node) -> float:
    """How much a fact is held true and was found useful. Sorting is stable: among equals the latest comes first."""
    return node.confidence * exp(0.2 * node.score)


def known_people(snapshot: Snapshot, scope: Scope, *, most: int) -> tuple[Entity, ...]:
    """People, those who are named most often first."""
    return tuple(people.listed(snapshot, scope, most=most))
