"""What must not be missed about some topics, such as allergies for a meal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

from ricordo.model import Hit, Node, Scope
from ricordo.retrieval.hits import as_own, as_shown, hit_of, newer_in_doubt, writers
from ricordo.retrieval.owner import most_telling, own_facts
from ricordo.retrieval.query import ALL_EPISODES, KNOWLEDGE, Needs, namings
from ricordo.storage import Snapshot, owner_names
from ricordo.storage.values import Filter
from ricordo.text.change import topics
from ricordo.text.names import folded_name, own_relatives, relations_in
from ricordo.text.sentences import plain_sentences

_FACTS = 6
_OF_OWNER = 12


def needed_memories(
    snapshot: Snapshot, scope: Scope, prompt: str, needs: Needs, *, now: int, zone: ZoneInfo, until: float, turns: int
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
        known = snapshot.shortlist(scope, found, archived=False, now=now)
        evidence.update(known.evidence)
        nodes = as_shown(snapshot, snapshot.nodes.by_key(scope, known.weights))
        return [nodes[key] for key in found if key in nodes and needs.are_in(nodes[key].content)]

    from ricordo.storage.candidates import CandidateQuery  # it needs numpy

    evidence: dict[int, tuple[str, ...]] = {}
    stated = sorted(stating(KNOWLEDGE), key=lambda node: not needs.warn_in(node.content))
    facts = _of_those_asked(snapshot, scope, prompt, stated, of_oneself=needs.of_oneself)
    said = stating(*ALL_EPISODES) if turns else []
    own = [node for node in said if node.role == "user" and _says_of_oneself(node.content, needs)]
    latest = sorted(own, key=lambda node: (node.event_time, node.key), reverse=True)
    nodes = {node.key: node for node in (*facts[:_FACTS], *latest[:turns])}
    return _as_hits(snapshot, scope, nodes, evidence=evidence, now=now, zone=zone)


def own_memories(snapshot: Snapshot, scope: Scope, *, now: int, zone: ZoneInfo) -> dict[int, Hit]:
    """Return the facts that say who the owner is, by key, the most telling first."""
    facts = [each for each in own_facts(snapshot, scope, now=now) if each.category != "task"]
    telling = most_telling(facts, owner_names(snapshot, scope.owner))[:_OF_OWNER]
    nodes = as_shown(snapshot, {node.key: node for node in telling})
    return _as_hits(snapshot, scope, nodes, evidence={}, now=now, zone=zone)


def _as_hits(
    snapshot: Snapshot,
    scope: Scope,
    nodes: Mapping[int, Node],
    *,
    evidence: Mapping[int, tuple[str, ...]],
    now: int,
    zone: ZoneInfo,
) -> dict[int, Hit]:
    doubted = newer_in_doubt(snapshot, scope, nodes, now=now)
    wrote = writers(snapshot, nodes.values())
    hits = {
        key: hit_of(
            node,
            score=0.0,
            shares=(),
            terms=(),
            now=now,
            zone=zone,
            evidence=evidence.get(key, ()),
            author=wrote.get(key),
            doubted_by=doubted.get(key, ()),
        )
        for key, node in nodes.items()
    }
    return {key: as_own(hit, scope.owner) for key, hit in hits.items()}


def _of_those_asked(
    snapshot: Snapshot, scope: Scope, prompt: str, facts: Sequence[Node], *, of_oneself: bool
) -> list[Node]:
    """Return the needs that a prompt may be about, those of the people it names first.

    If it names people ("What shall I cook for Lena?") or asks for the user alone ("What can I take for a headache?"),
    those of other relatives are left out. Anybody without a known relation may be the user by name, so they stay.
    """
    named = {key for naming in namings(snapshot, scope, prompt) for key in naming.entities}
    if named or of_oneself:
        facts = [node for node in facts if relations_in(prompt).issuperset(_relative_in(node.content))]
    subjects = [folded_name(name) for node in facts for name in node.about] if named or of_oneself else []
    if not subjects:
        return list(facts)
    relatives = [each for each in snapshot.entities.by_folded_names(scope, subjects) if each.relation]
    asked = snapshot.entities.by_key(scope, sorted(named))
    ids = {each.id for each in asked}
    others = {folded_name(name) for each in relatives if each.id not in ids for name in (each.name, *each.aliases)}
    meant = {folded_name(name) for each in asked for name in (each.name, *each.aliases)}
    kept = [node for node in facts if not node.about or not others.issuperset(map(folded_name, node.about))]
    return sorted(kept, key=lambda node: meant.isdisjoint(map(folded_name, node.about)))


def _relative_in(fact: str) -> frozenset[str]:
    """Return the relation of the relative that a fact begins with: "My mother is allergic to nuts"."""
    first = next(iter(own_relatives(fact)), "")
    return relations_in(first) if first and len(fact.partition(first)[0].split()) <= 1 else frozenset()


def _says_of_oneself(text: str, needs: Needs) -> bool:
    """Return whether a sentence of a message states a need of the speaker."""
    return any(
        needs.are_in(sentence) and topics(sentence).is_own and not sentence.endswith("?")
        for sentence in plain_sentences(text)
    )
