"""What must not be missed about some topics, such as allergies for a meal."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from ricordo.model import Hit, Node, Scope
from ricordo.retrieval.hits import as_own, as_shown, hit_of
from ricordo.retrieval.query import ALL_EPISODES, KNOWLEDGE, Needs
from ricordo.storage import Snapshot
from ricordo.storage.values import Filter
from ricordo.text.change import topics
from ricordo.text.sentences import plain_sentences

_FACTS = 6
TURNS = 3
"""The number of messages that are added at most."""


def needed_memories(
    snapshot: Snapshot, scope: Scope, needs: Needs, *, now: int, zone: ZoneInfo, until: float, turns: int = TURNS
) -> dict[int, Hit]:
    """Return what must not be missed about the topics of a prompt: facts, then what people last said of themselves.

    Args:
        until: deadline on the clock of `time.monotonic`, in seconds.
        turns: the number of messages.
    """

    def stating(*shelves: str) -> list[Node]:
        query = CandidateQuery(
            scope=scope, filter=Filter(shelves=shelves), terms=needs.terms, strategies=("words",), until=until
        )
        found = list(snapshot.candidates(query).found.get("words", {}))
        in_force = snapshot.shortlist(scope, found, archived=False, now=now).weights
        nodes = as_shown(snapshot, snapshot.nodes.by_key(scope, in_force))
        return [nodes[key] for key in found if key in nodes and needs.are_in(nodes[key].content)]

    from ricordo.storage.candidates import CandidateQuery  # it needs numpy

    facts, said = stating(KNOWLEDGE), stating(*ALL_EPISODES) if turns else []
    own = [node for node in said if node.role == "user" and _says_of_oneself(node.content, needs)]
    latest = sorted(own, key=lambda node: (node.event_time, node.key), reverse=True)
    nodes = [*facts[:_FACTS], *latest[:turns]]
    hits = {node.key: hit_of(node, score=0.0, shares=(), terms=(), now=now, zone=zone) for node in nodes}
    return {key: as_own(hit, scope.owner) for key, hit in hits.items()}


def _says_of_oneself(text: str, needs: Needs) -> bool:
    """Return whether a sentence of a message states a need of the speaker."""
    return any(
        needs.are_in(sentence) and topics(sentence).is_own and not sentence.endswith("?")
        for sentence in plain_sentences(text)
    )
