"""What must not be missed about some topics, such as allergies for a meal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ricordo.model import Hit, Node
from ricordo.retrieval.hits import as_own, as_shown, hit_of
from ricordo.retrieval.query import ALL_EPISODES, KNOWLEDGE, Needs
from ricordo.storage import Snapshot
from ricordo.storage.values import Filter
from ricordo.text.change import topics
from ricordo.text.sentences import plain_sentences

if TYPE_CHECKING:
    from ricordo.retrieval.service import Asking

_FACTS = 6
_TURNS = 3


def needed_memories(snapshot: Snapshot, asking: Asking, needs: Needs, *, turns: int = _TURNS) -> dict[int, Hit]:
    """Return what must not be missed about the topics of a prompt: facts, then what people last said of themselves.

    Args:
        turns: the number of messages.
    """
    facts = _stating(snapshot, asking, needs, (KNOWLEDGE,))
    said = _stating(snapshot, asking, needs, ALL_EPISODES) if turns else []
    own = [node for node in said if node.role == "user" and _says_of_oneself(node.content, needs)]
    latest = sorted(own, key=lambda node: (node.event_time, node.key), reverse=True)
    nodes = [*facts[:_FACTS], *latest[:turns]]
    hits = {node.key: hit_of(node, score=0.0, shares=(), terms=(), now=asking.now, zone=asking.zone) for node in nodes}
    return {key: as_own(hit, asking.scope.owner) for key, hit in hits.items()}


def _stating(snapshot: Snapshot, asking: Asking, needs: Needs, shelves: tuple[str, ...]) -> list[Node]:
    from ricordo.storage.candidates import CandidateQuery  # it needs numpy

    query = CandidateQuery(
        scope=asking.scope,
        filter=Filter(shelves=shelves),
        terms=needs.terms,
        strategies=("words",),
        until=time.monotonic() + asking.deadline_s,
    )
    found = list(snapshot.candidates(query).found.get("words", {}))
    in_force = snapshot.shortlist(asking.scope, found, archived=False, now=asking.now).weights
    nodes = as_shown(snapshot, snapshot.nodes.by_key(asking.scope, in_force))
    return [nodes[key] for key in found if key in nodes and needs.are_in(nodes[key].content)]


def _says_of_oneself(text: str, needs: Needs) -> bool:
    """Return whether a sentence of a message states a need of the speaker."""
    return any(
        needs.are_in(sentence) and topics(sentence).is_own and not sentence.endswith("?")
        for sentence in plain_sentences(text)
    )
