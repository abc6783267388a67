"""Passes functions of other packages to consolidation: search, entities, and text checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from ricordo.clock import to_ms
from ricordo.consolidation.apply import LearningRules
from ricordo.consolidation.conclusions import cause_pairs, infer_causes, reflect
from ricordo.consolidation.context import ConsolidationContext, Limits, RecordedModel, Spent, new_run, require_model
from ricordo.consolidation.enrichment import enrich, to_enrich
from ricordo.consolidation.judge import Rules
from ricordo.consolidation.operations import Operations
from ricordo.encoding.entities import add_entities
from ricordo.forgetting.upkeep import Concluded, Conclusion
from ricordo.model import Node, Scope
from ricordo.retrieval import service
from ricordo.retrieval.context import EstimatedTokens
from ricordo.retrieval.query import Request
from ricordo.retrieval.service import Asking
from ricordo.settings import Settings
from ricordo.storage import Store
from ricordo.text.analyzer import name_key
from ricordo.text.lifetimes import is_over, timed
from ricordo.text.prompt_text import reasons
from ricordo.text.secrets import redact

if TYPE_CHECKING:
    from ricordo.ports import LanguageModel

_SIMILAR = 5
_DAY_MS = 86_400_000
_MOST_RUNS = 1_000


def consolidation_context(
    scope: Scope,
    *,
    store: Store,
    settings: Settings,
    model: LanguageModel | None,
    now: Callable[[], int],
    zone: ZoneInfo,
    asking: Callable[[Scope], Asking],
) -> ConsolidationContext:
    """Return the parts of a memory that consolidation needs.

    Args:
        model: if None, consolidate by rules.
        now: returns Unix milliseconds, UTC.
        asking: returns the parts that a search in a scope needs.
    """
    # What is said in a group belongs to the group, and so does what is learnt from it. What is learnt from the owner's
    # own conversations rests on nothing else, whatever spaces the owner reads.
    scope = scope.chat_alone() if scope.chat else replace(scope, spaces=())
    return ConsolidationContext(
        model=model,
        scope=scope,
        store=store,
        now=now,
        tokens=EstimatedTokens(),
        day=lambda: datetime.fromtimestamp(now() / 1_000, UTC).astimezone(zone).date().isoformat(),
        similar=lambda whose, text, kind, about: _similar(store, asking(whose), text, kind, about),
        rules=Rules(
            min_confidence=settings.extraction_min_confidence,
            is_instruction=lambda text: bool(reasons(text, is_foreign=False)),
            has_credential=lambda text: settings.secrets != "keep" and bool(redact(text).findings),
        ),
        learning=LearningRules(
            min_conflict=settings.conflict_min_confidence,
            add_entities=add_entities,
            holds_untrusted=settings.untrusted_knowledge == "hold",
            timed=partial(timed, zone=zone),
            is_over=partial(is_over, zone=zone),
        ),
        limits=Limits(
            daily_tokens=settings.daily_tokens, price_in=settings.model_price_in, price_out=settings.model_price_out
        ),
    )


def write_operations(context: ConsolidationContext, *, name: str) -> Operations:
    """Return the nine operations of the write path as one run of an agent with the given name."""
    return Operations(context=context, run=replace(new_run(context, "consolidation", prompt=""), model=name, prompt=""))


def recorded_model(context: ConsolidationContext) -> LanguageModel:
    """Return the language model for a search. Its calls are checked against the budget and recorded.

    Raises:
        UnavailableError: no model is configured.
    """
    return RecordedModel(require_model(context), context, Spent(run=new_run(context, "search", prompt="")))


async def conclude(
    context: ConsolidationContext,
    kind: Conclusion,
    *,
    dry_run: bool,
    note: Callable[[int], None],
    reflect_days: int = 0,
) -> Concluded:
    """Run a maintenance step that asks a model. Without a model, and in a dry run, only count the waiting items.

    Args:
        note: called with the number of items of the run.
        reflect_days: number of days between reflections.
    """
    waited = await _waiting_for(context, kind, reflect_days=reflect_days)
    if not waited or dry_run or context.model is None:
        return Concluded(waited=waited, needs_model=context.model is None)
    if kind == "reflect":
        run = await reflect(context, after=context.now() - reflect_days * _DAY_MS, before=context.now() + 1)
    else:
        run = await (enrich(context) if kind == "enrich" else infer_causes(context))
    note(len(run.items))
    made = sum(item.what in ("added", "cause") for item in run.items)
    return Concluded(waited=waited, made=made, failed=run.reason if run.state == "failed" else "")


async def _waiting_for(context: ConsolidationContext, kind: Conclusion, *, reflect_days: int) -> int:
    """Return the number of items that wait for a model. A reflection waits if the last one is `reflect_days` old."""
    if kind == "enrich":
        return len(await to_enrich(context))
    if kind == "causes":
        return len((await cause_pairs(context)).pairs)
    runs = await context.store.read(lambda tx: tx.runs.listed(context.scope, most=_MOST_RUNS))
    last = max((to_ms(run.started_at) for run in runs if (run.kind, run.state) == ("reflection", "done")), default=0)
    return int(context.now() - last >= reflect_days * _DAY_MS)


async def _similar(store: Store, asking: Asking, text: str, kind: str, about: Sequence[str]) -> Sequence[Node]:
    """Return live memories of a type, similar to a text or with its subjects, best first; not counted as use."""
    results = await service.search(
        replace(asking, shown=lambda keys: None),
        Request(text=text, type=kind, limit=_SIMILAR, trace=True, rerank=False),
    )
    names = {name_key(name) for name in about}
    near = [hit.id for hit in results.hits if service.is_close(hit) or not names.isdisjoint(map(name_key, hit.about))]
    found = await store.read(lambda tx: [tx.nodes.get(asking.scope, each) for each in near])
    return [node for node in found if node is not None and node.is_live]
