"""What consolidation is handed of the other rooms: search for what is alike, who is who, what may not be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ricordo.consolidation.apply import Terms
from ricordo.consolidation.causal import infer_causes, looked
from ricordo.consolidation.context import House, Limits, new_run
from ricordo.consolidation.enrichment import enrich, to_enrich
from ricordo.consolidation.judge import Rules
from ricordo.consolidation.operations import Operations
from ricordo.consolidation.suppression import is_withheld
from ricordo.encoding.entity_extraction import acquaint
from ricordo.forgetting.upkeep import Concluded, Conclusion
from ricordo.model import Hit, Node, Scope
from ricordo.retrieval import service
from ricordo.retrieval.context import EstimatedTokens
from ricordo.retrieval.query import Request
from ricordo.text import name_key
from ricordo.text.injection import reasons
from ricordo.text.secrets import redact

if TYPE_CHECKING:
    from ricordo.engine import Engine
    from ricordo.ports import LanguageModel

_ALIKE = 5
_NEAR = {"words": 0.45, "meaning": 0.4}
"""What a search must have measured for a memory to be worth a model's look."""


def house_of(engine: Engine, scope: Scope, *, model: LanguageModel | None = None) -> House:
    """All that consolidating needs, with the engine's model or another; without either, by rule."""
    settings = engine.settings
    if scope.chat:  # what is said in a group is the group's, and so is what is learnt of it
        scope = Scope(owner="", chat=scope.chat)
    return House(
        model=model or engine.language,
        scope=scope,
        store=engine.store,
        now=engine.now,
        tokens=EstimatedTokens(),
        day=lambda: datetime.fromtimestamp(engine.now() / 1_000, UTC).astimezone(engine.zone).date().isoformat(),
        similar=lambda whose, text, kind, about: _similar(engine, whose, text, kind, about),
        rules=Rules(
            min_confidence=settings.extraction_min_confidence,
            is_instruction=_is_instruction,
            has_credential=(lambda text: False) if settings.secrets == "keep" else _has_credential,
        ),
        terms=Terms(
            min_conflict=settings.conflict_min_confidence,
            acquaint=acquaint,
            is_withheld=is_withheld,
            holds_untrusted=settings.untrusted_knowledge == "hold",
        ),
        limits=Limits(
            daily_tokens=settings.daily_tokens, price_in=settings.model_price_in, price_out=settings.model_price_out
        ),
    )


def operations_of(engine: Engine, scope: Scope, *, name: str) -> Operations:
    """The nine operations of the write path for an agent of that name, as one run."""
    house = house_of(engine, scope)
    return Operations(house=house, run=replace(new_run(house, "consolidation", prompt=""), model=name, prompt=""))


async def conclude(engine: Engine, kind: Conclusion, scope: Scope, dry_run: bool) -> Concluded:
    """A night's step that draws conclusions from what is known; without a model, and in a dry run, how much waits."""
    house = house_of(engine, scope)
    waited = len(await to_enrich(house)) if kind == "enrich" else len((await looked(house)).pairs)
    if not waited or dry_run or house.model is None:
        return Concluded(waited=waited, needs_model=house.model is None)
    run = await (enrich(house) if kind == "enrich" else infer_causes(house))
    engine.backlog.note(len(run.items))
    made = sum(item.what in ("added", "cause") for item in run.items)
    return Concluded(waited=waited, made=made, failed=run.reason if run.state == "failed" else "")


async def _similar(engine: Engine, scope: Scope, text: str, kind: str, about: Sequence[str]) -> Sequence[Node]:
    """Live memories of a type near a text or about the same, best first, by the hybrid search. Being looked at here is
    no use of them.
    """
    nobody: Callable[[Sequence[int]], None] = lambda keys: None  # noqa: E731
    asking = replace(engine.asking(scope), shown=nobody)
    results = await service.search(asking, Request(text=text, type=kind, limit=_ALIKE, trace=True))
    names = {name_key(name) for name in about}
    near = [hit.id for hit in results.hits if _is_near(hit) or not names.isdisjoint(map(name_key, hit.about))]
    found = await engine.store.read(lambda tx: [tx.nodes.get(scope, each) for each in near])
    return [node for node in found if node is not None and node.is_live]


def _is_near(hit: Hit) -> bool:
    return any(share.raw >= _NEAR.get(share.strategy, float("inf")) for share in hit.why)


def _has_credential(text: str) -> bool:
    return bool(redact(text).findings)


def _is_instruction(text: str) -> bool:
    return bool(reasons(text, is_foreign=False))
