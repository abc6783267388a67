"""Answers and briefings written by a model. Code checks each sentence against the memories it cites.

They are not stored. Without a model, or if it fails, the best passages are the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, Field

from ricordo.consolidation import prompts
from ricordo.consolidation.context import (
    ConsolidationContext,
    Spent,
    as_shown,
    ask_model,
    batches,
    new_run,
    note_failure,
    note_outcome,
    prompt_room,
    require_model,
)
from ricordo.consolidation.evidence import doubt, new_values
from ricordo.errors import RicordoError
from ricordo.model import Answer, AnswerSentence, Contradiction, Hit, Node, Scope
from ricordo.storage import Snapshot
from ricordo.text.analyzer import index_terms, question_terms
from ricordo.text.languages import languages_of

_PROMPT = "answer.1"
_MAX_SENTENCES = 8
_PASSAGES = 3
_MOST_NEW_WORDS = 0.5
"""A sentence is unsupported if more than this share of its content words occurs in none of the memories it cites."""

_BRIEFING = "brief.1"
_MAX_LINES = 20
_LINE_CHARS = 1_000

Support = Literal["stated", "drawn", "none"]


class ProposedSentence(BaseModel, extra="ignore"):
    text: str
    evidence: list[str]


class ProposedAnswer(BaseModel, extra="ignore"):
    """An answer from memories."""

    known: bool
    sentences: list[ProposedSentence] = Field(max_length=40)


class ProposedLine(BaseModel, extra="ignore"):
    part: str = Field(json_schema_extra={"enum": ["decisions", "under_way", "open", "changed", "who"]})
    text: str
    evidence: list[str]


class ProposedBriefing(BaseModel, extra="ignore"):
    """What to know at the beginning of a session."""

    lines: list[ProposedLine] = Field(max_length=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The lines of a briefing written by a model and supported by memories: (part, text, ids of the memories)."""

    lines: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    cut: int = 0
    failed: str = ""


async def answer(context: ConsolidationContext, question: str, hits: Sequence[Hit], *, listed: int) -> Answer:
    """Answer a question from the memories that a search found relevant, best first.

    Args:
        hits: must not include hits that may not be quoted.
        listed: how many of the first hits the question asks for, if it asks for a list.
    """
    found, contradictions = await context.store.read(lambda tx: _remembered(tx, context, hits))
    kept = tuple(hit for hit in hits if hit.id in found)
    if not kept:
        return Answer()
    if context.model is None:
        return _passages(kept, contradictions, listed=listed)
    run = new_run(context, "answer", prompt=_PROMPT)
    spent = Spent(run=run)
    try:
        shown = _that_fit(context, [(hit, found[hit.id]) for hit in kept])
        turns = prompts.answering(question, _lines(shown), _undecided(shown, contradictions), day=context.day())
        proposed = await ask_model(context, turns, ProposedAnswer, spent)
    except RicordoError as error:
        reason = await note_failure(context, run, error)
        return replace(_passages(kept, contradictions, listed=listed), degraded=(f"model: {reason}",))
    await note_outcome(context, run)
    handed_out = {f"m{number}": node for number, (_, node) in enumerate(shown, 1)}
    sentences = checked(question, proposed, handed_out)
    written = len(proposed.sentences) if proposed.known else 0
    return Answer(
        text=" ".join(each.text for each in sentences),
        known=bool(sentences),
        sentences=sentences,
        hits=kept,
        contradictions=contradictions,
        model=context.model.name,
        cut=written - len(sentences),
    )


async def brief(context: ConsolidationContext, found: Sequence[tuple[str, str]]) -> Written:
    """Write a briefing from memories.

    Args:
        found: (part of the briefing, id of a memory), best first, without memories that may not be quoted.
    """
    model = require_model(context)
    parts = {id: part for part, id in reversed(found)}
    nodes = await context.store.read(lambda tx: _shown(tx, context, list(parts)))
    run, kept = new_run(context, "briefing", prompt=_BRIEFING), list(nodes.values())
    try:
        room = prompt_room(model, context.tokens, _BRIEFING)
        batch = batches(kept, lambda each: each.content[:_LINE_CHARS], room=room, most=len(kept), tokens=context.tokens)
        handles = {f"m{number}": node for number, node in enumerate(next(batch, []), 1)}
        lines = [
            f"{handle} ({parts[node.id]}, {node.event_time.date()}) {prompts.speaker_label(node)}: "
            f"{prompts.one_line(node.content[:_LINE_CHARS])}"
            for handle, node in handles.items()
        ]
        turns = prompts.briefing(lines, day=context.day())
        proposed = await ask_model(context, turns, ProposedBriefing, Spent(run=run))
    except RicordoError as error:
        return Written(failed=await note_failure(context, run, error))
    await note_outcome(context, run)
    written = [_supported(context, each, handles) for each in proposed.lines[:_MAX_LINES]]
    lines_ = tuple(each for each in written if each is not None)
    return Written(lines=lines_, cut=len(proposed.lines) - len(lines_))


def _supported(
    context: ConsolidationContext, line: ProposedLine, shown: Mapping[str, Node]
) -> tuple[str, str, tuple[str, ...]] | None:
    """Return a line with the ids of its evidence; None if the evidence does not support it, or it must not be shown."""
    cited = [shown[handle] for handle in dict.fromkeys(line.evidence) if handle in shown]
    text = prompts.one_line(line.text)
    if not cited or context.rules.has_credential(text) or context.rules.is_instruction(text):
        return None
    if support_of(text, cited) == "none":
        return None
    return line.part, text, tuple(node.id for node in cited)


def _shown(snapshot: Snapshot, context: ConsolidationContext, ids: Sequence[str]) -> dict[str, Node]:
    """Return memories by id, in the form that may be shown to a model."""
    nodes = [node for id in ids if (node := snapshot.nodes.get(context.scope, id)) is not None]
    shown = [node for node in as_shown(snapshot, nodes) if not context.rules.has_credential(node.content)]
    return {node.id: _as_own(node, context.scope) for node in shown}


def _as_own(node: Node, scope: Scope) -> Node:
    """Return a memory as the caller reads it: what they said to a chat themselves is the user's."""
    return replace(node, speaker=None) if node.chat and node.speaker == scope.owner else node


def _remembered(
    snapshot: Snapshot, context: ConsolidationContext, hits: Sequence[Hit]
) -> tuple[dict[str, Node], tuple[Contradiction, ...]]:
    """Return the memories of hits in the form shown to models, and undecided contradictions between them."""
    shown = _shown(snapshot, context, [hit.id for hit in hits])
    by_key = {node.key: node for node in shown.values() if node.is_live}
    pairs = snapshot.nodes.succession(by_key)
    found = (
        Contradiction(newer=by_key[newer].id, older=by_key[older].id)
        for newer, older in pairs
        if newer in by_key and older in by_key
    )
    return shown, tuple(found)


def _that_fit(context: ConsolidationContext, found: Sequence[tuple[Hit, Node]]) -> list[tuple[Hit, Node]]:
    room = prompt_room(require_model(context), context.tokens, _PROMPT)
    return next(batches(found, lambda each: each[0].excerpt, room=room, most=len(found), tokens=context.tokens))


def _lines(shown: Sequence[tuple[Hit, Node]]) -> list[str]:
    return [
        f"m{number} ({hit.event_time_iso[:10]}) {prompts.speaker_label(node)}: {prompts.one_line(hit.excerpt)}"
        for number, (hit, node) in enumerate(shown, 1)
    ]


def _undecided(shown: Sequence[tuple[Hit, Node]], contradictions: Sequence[Contradiction]) -> list[str]:
    handles = {node.id: f"m{number}" for number, (_, node) in enumerate(shown, 1)}
    pairs = ((handles.get(each.newer), handles.get(each.older)) for each in contradictions)
    return [
        f"({newer} and {older} contradict each other; nobody has decided)" for newer, older in pairs if newer and older
    ]


def _passages(hits: Sequence[Hit], contradictions: tuple[Contradiction, ...], *, listed: int) -> Answer:
    """Answer with the best memories, and with all of the list that the question asks for."""
    best = hits[: max(_PASSAGES, listed)]
    sentences = tuple(AnswerSentence(text=hit.excerpt, ids=(hit.id,), support="stated") for hit in best)
    text = "\n".join(each.text for each in sentences)
    return Answer(text=text, known=True, sentences=sentences, hits=tuple(hits), contradictions=contradictions)


# ---- checks of a model's text


def checked(question: str, proposed: ProposedAnswer, shown: Mapping[str, Node]) -> tuple[AnswerSentence, ...]:
    """Return the sentences that are supported by the memories they cite, each with these memories.

    Args:
        shown: the memories that were shown to the model, by handle.
    """
    if not proposed.known:
        return ()
    found = []
    for each in proposed.sentences[:_MAX_SENTENCES]:
        cited = [shown[handle] for handle in dict.fromkeys(each.evidence) if handle in shown]
        text = prompts.one_line(each.text)
        support = support_of(text, cited, question=question)
        if support != "none":
            ids = tuple(node.id for node in cited if support_of(text, [node], question=question) != "none")
            found.append(AnswerSentence(text=text, ids=ids or tuple(node.id for node in cited), support=support))
    return tuple(found)


def support_of(sentence: str, cited: Sequence[Node], *, question: str = "") -> Support:
    """Return whether memories state a sentence, say it in other words as far as words can tell, or do not say it.

    Words from the question, if there is one, count as said. If the memories and the question (and so its answer) are in
    different languages, only numbers can be compared.
    """
    if not sentence or not cited:
        return "none"
    as_said = [node if node.type == "episodic" else replace(node, role="user") for node in cited]
    if not doubt(sentence, as_said):
        return "stated"
    shown = [f"{prompts.speaker_label(node)} {' '.join(node.about)} {node.content}" for node in cited]
    new_names = new_values(f"- {sentence}", [*shown, question])
    if question and all(languages_of(text) != languages_of(question) for text in shown):
        return "none" if any(char.isdigit() for name in new_names for char in name) else "drawn"
    if new_names:
        return "none"
    said, asked = ({term for text in texts for term in index_terms(text)} for texts in (shown, [question]))
    wanted = question_terms(sentence)
    told = [term for term in wanted if term not in asked]
    # An answer that only repeats the question's words, such as a yes, must have them from the memories.
    new = sum(term not in said for term in told or wanted)
    return "none" if new > _MOST_NEW_WORDS * len(told or wanted) else "drawn"
