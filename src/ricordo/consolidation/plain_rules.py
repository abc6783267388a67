"""What is worth keeping of a message, by rule: what is said so plainly that it needs no model. Pure.

English and Russian; of other languages nothing is learnt. Conservative, for junk is worse than a gap: what waits for a
model stays an episode and is found all the same. A sentence is kept whole, as it was said. A question, a quotation, a
guess or a wish teaches nothing, nor does small talk ("I love it", "I think so").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ricordo.consolidation.pages import Page, own_words
from ricordo.consolidation.proposal import MOST_ITEMS, Proposal, ProposedEntity, ProposedFact
from ricordo.model import Category
from ricordo.text.categories import infer_category
from ricordo.text.dates import mentions_time
from ricordo.text.entity_recognition import plainly_named
from ricordo.text.plain_cues import CUES, DOUBTFUL, LEAD, TOLD, UNLIKELY, VAGUE, WILL, Kind
from ricordo.text.spoken import MAX_CHARS, SENTENCE
from ricordo.trust import trust_of

_LEAST_WORDS, _MOST_WORDS = 3, 60
_OPENING = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A statement worth keeping: the sentence, without what leads up to it, and what kind of knowledge it is."""

    kind: Kind
    text: str


def plainly_said(text: str) -> tuple[Plain, ...]:
    """The statements of a message that are worth keeping, in order, each once.

    >>> [(found.kind, found.text) for found in plainly_said("Well, I love hiking. Do you? I think so.")]
    [('preference', 'I love hiking')]
    """
    found = (_statement(sentence) for sentence in _sentences(text[:MAX_CHARS]))
    return tuple(dict.fromkeys(each for each in found if each is not None))


def proposed(page: Page) -> Proposal:
    """What the people of a page say plainly, as a model would propose it: judged like any other proposal."""
    facts: dict[tuple[str, str], ProposedFact] = {}
    for handle, node in page.episodes.items():
        for said in plainly_said(node.content) if node.role == "user" else ():
            fact = ProposedFact(
                text=said.text,
                kind=_KINDS[said.kind],
                category=_CATEGORIES.get(said.kind, infer_category(said.text)),
                about=[],
                slot="",
                evidence=[handle],
                said=True,
                confidence=1.0,
            )
            facts.setdefault((node.id, said.text), fact)
    return Proposal(facts=list(facts.values())[:MOST_ITEMS], entities=_named(page)[:MOST_ITEMS])


def _named(page: Page) -> list[ProposedEntity]:
    """Who and what the people of a page name plainly. Of a page or a tool that somebody quotes nobody is made."""
    told = [
        (handle, own_words(node))
        for handle, node in page.episodes.items()
        if node.role == "user" and trust_of(node.origin, node.role) == "user"
    ]
    return [
        ProposedEntity(
            name=found.name,
            type=found.type,
            aliases=[],
            relation="",
            evidence=[told[place][0] for place in found.texts],
        )
        for found in plainly_named([text for _, text in told])
    ]


_KINDS: Mapping[Kind, str] = {
    "fact": "fact",
    "decision": "fact",
    "commitment": "fact",
    "preference": "preference",
    "opinion": "opinion",
}
_CATEGORIES: Mapping[Kind, Category] = {"commitment": "task", "decision": "knowledge", "opinion": "knowledge"}


def _statement(sentence: str) -> Plain | None:
    if told := TOLD.match(sentence):
        return _kept("fact", sentence[told.end() :])
    said = LEAD.sub("", sentence)
    if VAGUE.search(" ".join(said.split()[:_OPENING])):
        return None
    for kind, pattern in CUES:
        if pattern.search(said):
            return _kept(kind, said)
    is_promise = WILL.match(said) is not None and mentions_time(said) and not UNLIKELY.search(said)
    return _kept("commitment", said) if is_promise else None


def _kept(kind: Kind, said: str) -> Plain | None:
    said = said.strip(" ,:;—–-")
    if not _LEAST_WORDS <= len(said.split()) <= _MOST_WORDS:
        return None
    return Plain(kind=kind, text=said[0].upper() + said[1:])


_QUOTED = re.compile(r"^\s*[\"«“„>]|[\"“”„]")


def _sentences(text: str) -> Iterator[str]:
    for part in SENTENCE.finditer(text):
        sentence = part.group().strip()
        if not (sentence.endswith("?") or _QUOTED.search(sentence) or DOUBTFUL.search(sentence)):
            yield sentence.rstrip(".!… ")
