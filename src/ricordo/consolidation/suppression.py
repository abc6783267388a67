"""What was forgotten stays forgotten: it is not learnt again from messages that were there before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from ricordo.clock import to_ms
from ricordo.model import Node
from ricordo.storage import Snapshot
from ricordo.text import question_terms, statement_line

_MUCH = 0.5


def is_withheld(snapshot: Snapshot, fact: Node, evidence: Sequence[Node]) -> bool:
    """Whether a fact was forgotten, erased or decided against, and its evidence is older than that: nobody has said it
    anew. What says it is known by its words, and by keyed hashes of them where it was erased or is being replayed.

    The same words count wherever they come from; other words only from the same messages, where they say much the same.
    """
    space = snapshot.space(fact.owner, fact.chat)
    if space is None or not evidence:
        return False
    values = {
        "space": space,
        "type": fact.type,
        "content": fact.content,
        "line": statement_line(fact.content),
        "evidence": json.dumps([node.id for node in evidence]),
    }
    said = [to_ms(node.event_time) for node in evidence if node.role == "user" and node.origin == "conversation"]
    session = evidence[0].session
    if snapshot.suppression.matches(space, fact.content, session=session, said_at=max(said, default=None)):
        return True
    told_at = max(to_ms(node.created_at) for node in evidence)
    return any(
        told_at <= closed_at and (is_same or is_much_the_same(content, fact.content))
        for content, closed_at, is_same in snapshot.rows("forgotten_like", values)
    )


def as_shown(snapshot: Snapshot, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Messages and memories as a model is shown them: without the sentences that were forgotten, and those that say
    nothing else not at all.
    """
    cut = snapshot.suppression.shown({node.key: node for node in nodes})
    kept = (replace(node, content=cut[node.key]) if node.key in cut else node for node in nodes)
    return tuple(node for node in kept if node.content)


def is_much_the_same(one: str, other: str) -> bool:
    """Whether two statements share at least half of the telling words of the shorter. Pure."""
    terms, others = set(question_terms(one)), set(question_terms(other))
    return bool(terms and others) and len(terms & others) >= _MUCH * min(len(terms), len(others))
