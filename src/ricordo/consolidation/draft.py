"""What a model, or the rules, make of messages: shown, judged, and compared with what is alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ricordo.consolidation.apply import Compared, Draft
from ricordo.consolidation.context import MOST_ROOM, House, Spent, asked, room_of
from ricordo.consolidation.judge import Accepted, clean_handle, joined, judge
from ricordo.consolidation.pages import Page, lines_of, pages
from ricordo.consolidation.plain_rules import proposed
from ricordo.consolidation.prompts import extraction, verification
from ricordo.consolidation.proposal import Proposal, Verdicts
from ricordo.consolidation.suppression import as_shown
from ricordo.model import Node, Scope
from ricordo.models.language import AnswerError
from ricordo.ports import LanguageModel
from ricordo.storage import Snapshot

_PAIRS = 20
_PAIR_CHARS = 400
_CANDIDATES = 3
_RESTING = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Messages of one conversation as they are, and as anybody is shown them: without what was forgotten of them."""

    place: tuple[str, str]
    session: str | None
    episodes: tuple[Node, ...]
    shown: tuple[Node, ...]

    @property
    def scope(self) -> Scope:
        """That of the conversation."""
        owner, chat = self.place
        return Scope(owner=owner, chat=chat or None)


def waiting_talk(snapshot: Snapshot, scope: Scope, place: tuple[str, str], session: str | None) -> Talk:
    """The messages of a conversation that have not become knowledge."""
    found = snapshot.runs.waiting_episodes(scope, place, session)
    return talk(snapshot, place, session, found)


def talk(snapshot: Snapshot, place: tuple[str, str], session: str | None, episodes: Sequence[Node]) -> Talk:
    """Some messages of a conversation, in order."""
    return Talk(place=place, session=session, episodes=tuple(episodes), shown=as_shown(snapshot, episodes))


def pages_of(house: House, shown: Sequence[Node], *, prompt: str, before: Sequence[Node] = ()) -> list[Page]:
    """Messages in pages that fit the model beside a prompt; without a model, beside none.

    Args:
        before: what was said before the first of them, to be understood and not to be used.
    """
    room = MOST_ROOM if house.model is None else room_of(house.model, house.tokens, prompt)
    found = pages(shown, room=room, tokens=house.tokens)
    return [replace(found[0], before=lines_of(before)), *found[1:]] if found and before else found


async def drafted(
    house: House, talk: Talk, spent: Spent, *, compares: bool = True, before: Sequence[Node] = ()
) -> Draft:
    """What a model, or the rules, make of messages, judged, and compared with what is alike.

    Raises:
        AnswerError: nothing of it rests on the messages.
        RicordoError: the model gave no usable answer.
    """
    model = house.model
    judged = []
    for page in pages_of(house, talk.shown, prompt="extract.1", before=before):
        turns = extraction(page.lines, before=page.before, day=page.day)
        proposal = proposed(page) if model is None else await asked(model, turns, Proposal, spent)
        judged.append(judge(proposal, page, house.rules))
    found = joined(judged)
    if found.is_unfounded:  # else the messages would answer no more, and nothing in their place
        raise AnswerError("nothing that the model says rests on the conversation")
    by_rule = model is None
    draft = Draft(
        place=talk.place,
        session=talk.session,
        episodes=talk.episodes,
        judged=found,
        waits_on=by_rule,
        is_verbatim=by_rule,
    )
    if model is None or not compares:
        return draft
    return replace(draft, compared=await _compared(house, model, draft, spent))


async def _compared(house: House, model: LanguageModel, draft: Draft, spent: Spent) -> tuple[Compared, ...]:
    """What the model says each fact is to the memories that are like it. No such memories, no question."""
    pairs: dict[str, tuple[int, Node]] = {}
    for place, fact in enumerate(draft.judged.facts):
        for old in await _alike(house, draft, fact):
            pairs[f"p{len(pairs) + 1}"] = place, old
    found: list[Compared] = []
    for start in range(0, len(pairs), _PAIRS):
        part = dict(list(pairs.items())[start : start + _PAIRS])
        shown = [
            (handle, draft.judged.facts[place].content[:_PAIR_CHARS], old.content[:_PAIR_CHARS])
            for handle, (place, old) in part.items()
        ]
        said = await asked(model, verification(shown), Verdicts, spent)
        for verdict in said.verdicts:
            pair = part.get(clean_handle(verdict.pair))
            if pair and verdict.is_ in ("same", "contradicts") and 0 <= verdict.confidence <= 1:
                place, old = pair
                found.append(Compared(fact=place, old=old, says=verdict.is_, confidence=verdict.confidence))  # type: ignore[arg-type]  # just looked at
    return tuple(found)


async def _alike(house: House, draft: Draft, fact: Accepted) -> list[Node]:
    """The few memories about the same that a fact may repeat or contradict."""
    found = await house.similar(draft.scope, fact.content, fact.type, fact.about)
    place = draft.place
    near = [node for node in found if (node.owner, node.chat) == place and node.content != fact.content][:_CANDIDATES]
    resting = await house.store.read(lambda tx: _resting(tx, draft.scope, fact))
    return list({node.id: node for node in (*near, *resting)}.values())


def _resting(snapshot: Snapshot, scope: Scope, fact: Accepted) -> list[Node]:
    """What was learnt earlier of the very messages a fact rests on: it may say the same in other words."""
    values = {"evidence": json.dumps([node.id for node in fact.evidence]), "most": _RESTING}
    keys = [key for (key,) in snapshot.rows("resting_on", values)]
    found = snapshot.nodes.by_key(scope, keys).values()
    return [node for node in found if node.type == fact.type and node.content != fact.content]
