"""Conclusions from memories: reflections and causal links. `enrichment` has a third kind, summaries of entities.

Each kind runs in one process at a time and within the budget. Its result is stored completely or not at all. A
reflection is a memory of the category `reflection`: uncertain like all conclusions, linked to its evidence, and deleted
when its evidence is forgotten. A causal edge links two consecutive messages of people if one of them states the link.
Pairs in which neither does are not shown to a model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ricordo.clock import from_ms, new_id
from ricordo.consolidation.apply import add_items, causal_edge, conclusion, evidence_edges
from ricordo.consolidation.context import (
    ConsolidationContext,
    Spent,
    as_shown,
    ask_model,
    batches,
    failure_reason,
    new_run,
    note_outcome,
    prompt_room,
    require_model,
    with_cost,
)
from ricordo.consolidation.evidence import NEW_VALUE, new_values
from ricordo.consolidation.judge import Refused, cited, clean_handle, rejection, says_why
from ricordo.consolidation.prompts import causation, one_line, own_words, reflection, speaker_label
from ricordo.consolidation.proposed import Causes, ProposedReflection, Reflections
from ricordo.consolidation.resolve import is_withheld
from ricordo.errors import RicordoError
from ricordo.model import Change, Edge, Node, Run, RunItem, RunKind
from ricordo.storage import Snapshot
from ricordo.text.analyzer import name_terms
from ricordo.text.canonical import is_much_the_same
from ricordo.trust import UNAPPROVED, trust_of

MAX_CHARS = 500
"""Maximum length of a conclusion in characters."""

Decide = Callable[[Snapshot], tuple[Change, Run]]
"""Checks a model's answer against the state at the moment of writing; returns the change and the run with its items."""

Work = Callable[[Spent], Awaitable[Decide]]
"""Asks a model, outside any transaction, and returns the decision to run in one."""

_VERBS = {"reflection": "reflect", "enrichment": "enrich", "causes": "infer causes"}


async def run_alone(context: ConsolidationContext, run: Run, work: Work) -> Run:
    """Run work of one kind in one process at a time, and store its result as one commit under the id of its run.

    A failed or dry run stores nothing but its cost.
    """
    spent = Spent(run=run)
    try:
        if run.state == "dry":
            decide = await work(spent)
            found = await context.store.read(lambda tx: decide(tx)[1])
        else:
            space = await context.store.read(lambda tx: tx.space(*context.place))
            async with context.lease(f"{run.kind} {space}") as is_ours:
                busy = RunItem(what="left", reason="another process is already doing this")
                found = await _run_and_keep(context, run, work, spent) if is_ours else replace(run, items=(busy,))
    except RicordoError as error:
        reason = failure_reason(error)
        failed = replace(run, state="failed", reason=reason, items=(RunItem(what="failed", reason=reason),))
        found = with_cost(failed, spent, context.limits)
    if spent.calls or found.state == "failed":
        await note_outcome(context, found)
    return replace(found, ended_at=from_ms(context.now()))


async def _run_and_keep(context: ConsolidationContext, run: Run, work: Work, spent: Spent) -> Run:
    return await context.write(_VERBS[run.kind], await work(spent), run_id=run.id)


def may_conclude_from(node: Node) -> bool:
    """Return whether conclusions may be based on a memory. Content from tools and pages is excluded."""
    return trust_of(node.origin, node.role) not in UNAPPROVED


def unchanged(snapshot: Snapshot, context: ConsolidationContext, shown: Iterable[Node]) -> dict[str, Node]:
    """Return, by id, the memories that are live and would be shown to a model with the same text again."""
    before = {node.id: node for node in shown}
    found = (snapshot.nodes.get(context.scope, each) for each in before)
    present = [node for node in found if node is not None and node.is_live]
    return {node.id: node for node in as_shown(snapshot, present) if node.content == before[node.id].content}


def last_looked(
    snapshot: Snapshot, context: ConsolidationContext, kind: RunKind
) -> list[tuple[int | None, tuple[int, ...]]]:
    """Return how far the latest run of a kind came: (key of the last node it read, keys of the nodes it was shown)."""
    items = snapshot.runs.items_of_last(*context.place, kind)
    return [(node, evidence) for what, node, evidence in items if what == "looked"]


# ---- reflections

_REFLECTION_PROMPT = "reflect.1"
_MIN_EVIDENCE = 2  # a reflection on a single memory only rephrases it
_MAX_MEMORIES = 200
_MAX_REFLECTIONS = 5
_MEMORY_CHARS = 300
_MAX_ABOUT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reflection:
    """A reflection that may be stored, the model's certainty, and the evidence."""

    text: str
    about: tuple[str, ...]
    sure: float
    evidence: tuple[Node, ...]


async def reflect(context: ConsolidationContext, *, after: int, before: int, dry_run: bool = False) -> Run:
    """Have a model reflect on what was learnt in a span of time, unless the last run saw all of it.

    Args:
        after, before: Unix milliseconds; `before` is exclusive.

    Raises:
        UnavailableError: no language model is configured.
    """
    model = require_model(context)
    run = new_run(context, "reflection", prompt=_REFLECTION_PROMPT, dry_run=dry_run)
    learnt, seen = await context.store.read(lambda tx: _learnt_between(tx, context, after=after, before=before))
    shown = _latest_that_fit(context, learnt, room=prompt_room(model, context.tokens, _REFLECTION_PROMPT))
    if len(shown) < _MIN_EVIDENCE or {node.key for node in shown} <= seen:
        return run

    async def work(spent: Spent) -> Decide:
        out = {f"m{number}": node for number, node in enumerate(shown, start=1)}
        lines = [(handle, node.event_time.date().isoformat(), _memory_line(node)) for handle, node in out.items()]
        span = f"from {from_ms(after).date()} to {from_ms(before - 1).date()}"
        answer = await ask_model(context, reflection(lines, span=span), Reflections, spent)
        judged = [_judge_reflection(context, each, out) for each in answer.reflections[:_MAX_REFLECTIONS]]
        paid = with_cost(run, spent, context.limits)
        return lambda tx: _reflection_change(tx, context, paid, shown, judged)

    return await run_alone(context, run, work)


def _learnt_between(
    snapshot: Snapshot, context: ConsolidationContext, *, after: int, before: int
) -> tuple[list[Node], set[int]]:
    """Return the memories learnt in a span, in order of time, and the keys shown to the latest reflection."""
    keys = snapshot.runs.learnt_between(
        *context.place, after=after, before=before, now=context.now(), most=_MAX_MEMORIES
    )
    seen = {key for _, shown in last_looked(snapshot, context, "reflection") for key in shown}
    found = snapshot.nodes.by_key(context.scope, keys)
    kept = [found[key] for key in keys if key in found and may_conclude_from(found[key])]
    return list(as_shown(snapshot, kept)), seen


def _latest_that_fit(context: ConsolidationContext, nodes: Sequence[Node], *, room: int) -> list[Node]:
    """Return the latest nodes that fit into a prompt, in order."""
    fitting: list[Node] = []
    for node in reversed(nodes):
        room -= context.tokens.count(_memory_line(node)) + 12
        if room < 0:
            break
        fitting.append(node)
    return fitting[::-1]


def _memory_line(node: Node) -> str:
    return one_line(node.content)[:_MEMORY_CHARS]


def _judge_reflection(
    context: ConsolidationContext, given: ProposedReflection, out: dict[str, Node]
) -> _Reflection | Refused:
    """Return a reflection that may be stored, or the reason for refusal."""
    text = " ".join(given.text.split())
    evidence = cited(given.evidence, out)
    reason = rejection(text, evidence, context.rules, sure=given.confidence, least=_MIN_EVIDENCE, max_chars=MAX_CHARS)
    if reason or evidence is None:
        return Refused(text=text[:MAX_CHARS], reason=reason)
    if new_values(text, [" ".join((node.content, *node.about)) for node in evidence]):
        return Refused(text=text[:MAX_CHARS], reason=NEW_VALUE)
    used = {term for node in evidence for term in name_terms(" ".join((node.content, *node.about)))}
    names = (" ".join(name.split()) for name in given.about[:_MAX_ABOUT])
    about = tuple(dict.fromkeys(name for name in names if name and used.issuperset(name_terms(name))))
    return _Reflection(text=text, about=about, sure=given.confidence, evidence=evidence)


def _reflection_change(
    snapshot: Snapshot,
    context: ConsolidationContext,
    run: Run,
    shown: Sequence[Node],
    judged: Sequence[_Reflection | Refused],
) -> tuple[Change, Run]:
    """Keep the reflections whose evidence is unchanged and that do not repeat an earlier one."""
    there = unchanged(snapshot, context, shown)
    items = [
        RunItem(what="refused", text=each.text, reason=each.reason) for each in judged if isinstance(each, Refused)
    ]
    added: dict[str, tuple[Node, _Reflection]] = {}
    for each in judged:
        if isinstance(each, Refused):
            continue
        evidence = tuple(node.id for node in each.evidence)
        node = conclusion(
            each.text,
            each.evidence,
            place=context.place,
            node_id=new_id(context.now()),
            at=from_ms(context.now()),
            type="opinion",
            category="reflection",
            sure=each.sure,
            about=each.about,
        )
        if not set(evidence) <= there.keys():
            items.append(RunItem(what="refused", text=each.text, reason="its evidence has changed"))
        elif is_withheld(snapshot, node, each.evidence):
            items.append(RunItem(what="refused", text=each.text, reason="was forgotten"))
        elif (same := _said_before(snapshot, context, each)) is not None:
            items.append(RunItem(what="repeated", id=same.id, text=each.text, evidence=evidence))
        else:
            added[node.id] = node, each
            items.append(RunItem(what="added", id=node.id, text=each.text, evidence=evidence))
    seen = RunItem(what="looked", reason=f"{len(there)} memories", evidence=tuple(there))
    done = add_items(run, [*items, seen], at=from_ms(context.now()))
    nodes = tuple(node for node, _ in added.values())
    change = context.learning.add_entities(snapshot, Change(add=nodes), (), (), scope=context.scope, now=context.now())
    links = tuple(edge for node, each in added.values() for edge in evidence_edges(node, each.evidence, sure=each.sure))
    return replace(change, link=links, runs=(done,)), done


def _said_before(snapshot: Snapshot, context: ConsolidationContext, given: _Reflection) -> Node | None:
    """Return an earlier reflection with a similar statement and some of the same evidence."""
    keys = snapshot.evidence.reflections_on([node.key for node in given.evidence])
    found = snapshot.nodes.by_key(context.scope, keys)
    return next((node for node in found.values() if is_much_the_same(node.content, given.text)), None)


# ---- causes

_CAUSES_PROMPT = "causes.1"
_MAX_PAIRS = 50
_PAIRS_IN_PROMPT = 25
_MESSAGES_AT_ONCE = 1_000
_MESSAGE_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    first: Node
    then: Node

    @property
    def lines(self) -> tuple[str, str]:
        """Both messages as shown to a model."""
        return _message_line(self.first), _message_line(self.then)


def _message_line(node: Node) -> str:
    return f"{speaker_label(node)}: {one_line(own_words(node))}"[:_MESSAGE_CHARS]


@dataclass(frozen=True, slots=True, kw_only=True)
class CausePairs:
    """The pairs for one run, and the key of the last message that was searched."""

    pairs: tuple[_Pair, ...] = ()
    through: int = 0


async def infer_causes(context: ConsolidationContext, *, dry_run: bool = False) -> Run:
    """Link messages to the messages they led to, and likewise the facts learnt from them.

    Raises:
        UnavailableError: no language model is configured.
    """
    require_model(context)
    run = new_run(context, "causes", prompt=_CAUSES_PROMPT, dry_run=dry_run)
    look = await cause_pairs(context)
    if not look.pairs:
        return run

    async def work(spent: Spent) -> Decide:
        found = await _ask_causes(context, look.pairs, spent)
        paid = with_cost(run, spent, context.limits)
        return lambda tx: _causes_change(tx, context, paid, look, found)

    return await run_alone(context, run, work)


async def cause_pairs(context: ConsolidationContext) -> CausePairs:
    """Return the next pairs in which a message states a reason, starting where the previous run ended."""
    through = await context.store.read(lambda tx: _searched_through(tx, context))
    pairs: list[_Pair] = []
    while len(pairs) < _MAX_PAIRS:
        part = await context.store.read(lambda tx, after=through: _next_pairs(tx, context, after))  # type: ignore[misc]
        if part is None:
            break
        fits = part.pairs[: _MAX_PAIRS - len(pairs)]
        pairs += fits
        through = part.through if len(fits) == len(part.pairs) else fits[-1].then.key
    return CausePairs(pairs=tuple(pairs), through=through)


def _searched_through(snapshot: Snapshot, context: ConsolidationContext) -> int:
    return max((node for node, _ in last_looked(snapshot, context, "causes") if node is not None), default=0)


def _next_pairs(snapshot: Snapshot, context: ConsolidationContext, after: int) -> CausePairs | None:
    """Return the pairs among the next messages; None if there are no more messages."""
    found = snapshot.runs.consecutive_messages(*context.place, after=after, most=_MESSAGES_AT_ONCE)
    if found is None:
        return None
    nodes = snapshot.nodes.by_key(context.scope, {key for pair in found.pairs for key in pair})
    shown = {node.key: node for node in as_shown(snapshot, list(nodes.values())) if may_conclude_from(node)}
    pairs = (_Pair(first=shown[one], then=shown[two]) for one, two in found.pairs if one in shown and two in shown)
    return CausePairs(pairs=tuple(each for each in pairs if _is_worth_asking(snapshot, each)), through=found.through)


def _is_worth_asking(snapshot: Snapshot, pair: _Pair) -> bool:
    is_said = any(says_why(line) for line in pair.lines)
    return is_said and not snapshot.graph.is_causal_between(pair.first.key, pair.then.key)


async def _ask_causes(context: ConsolidationContext, pairs: Sequence[_Pair], spent: Spent) -> list[tuple[Node, Node]]:
    """Return the pairs (cause, effect) for which a model finds a causal statement in the messages."""
    model, causes = require_model(context), list[tuple[Node, Node]]()
    room, tokens = prompt_room(model, context.tokens, _CAUSES_PROMPT), context.tokens
    for part in batches(pairs, lambda pair: "\n".join(pair.lines), room=room, most=_PAIRS_IN_PROMPT, tokens=tokens):
        handles = {f"p{number}": pair for number, pair in enumerate(part, start=1)}
        shown = [(handle, *pair.lines) for handle, pair in handles.items()]
        answer = await ask_model(context, causation(shown), Causes, spent)
        for each in answer.causes:
            pair = handles.get(clean_handle(each.pair))
            if pair is None or not context.rules.min_confidence <= each.confidence <= 1:
                continue
            if each.cause in ("first", "then"):
                causes.append((pair.first, pair.then) if each.cause == "first" else (pair.then, pair.first))
    return list({frozenset((cause.id, effect.id)): (cause, effect) for cause, effect in causes}.values())


def _causes_change(
    snapshot: Snapshot, context: ConsolidationContext, run: Run, look: CausePairs, found: Sequence[tuple[Node, Node]]
) -> tuple[Change, Run]:
    """Keep the edges between unchanged messages, and record the last message searched."""
    if _searched_through(snapshot, context) >= look.through:  # another run came first
        return Change(), run
    there = unchanged(snapshot, context, {node.id: node for pair in found for node in pair}.values())
    links: dict[tuple[str, str], Edge] = {}
    items: list[RunItem] = []
    for cause, effect in found:
        if not {cause.id, effect.id} <= there.keys() or snapshot.graph.is_causal_between(cause.key, effect.key):
            continue
        for source, target in ((cause.id, effect.id), *_learnt_from(snapshot, context, cause, effect)):
            links.setdefault((source, target), causal_edge(source, target, evidence=(cause.id, effect.id)))
        items.append(RunItem(what="cause", id=cause.id, text=cause.content, other=effect.id))
    last = snapshot.nodes.by_key(context.scope, [look.through]).get(look.through)
    last_id = look.pairs[-1].then.id if last is None else last.id
    seen = RunItem(what="looked", id=last_id, reason=f"{len(look.pairs)} pairs")
    done = add_items(run, [*items, seen], at=from_ms(context.now()))
    return Change(link=tuple(links.values()), runs=(done,)), done


def _learnt_from(snapshot: Snapshot, context: ConsolidationContext, cause: Node, effect: Node) -> list[tuple[str, str]]:
    """Return the ids of the first memories based on each of two messages, if both have one."""
    first = [_first_resting(snapshot, context, node) for node in (cause, effect)]
    return [(first[0], first[1])] if first[0] and first[1] and first[0] != first[1] else []


def _first_resting(snapshot: Snapshot, context: ConsolidationContext, node: Node) -> str | None:
    nodes = snapshot.nodes.by_key(context.scope, snapshot.evidence.resting_on([node.id], most=5))
    kept = (each for each in nodes.values() if each.category not in ("reflection", "summary"))
    return next((each.id for each in kept), None)
