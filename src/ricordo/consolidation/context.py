"""What all work with a language model needs: its context, its budget, and what it has spent so far."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import BaseModel

from ricordo.clock import from_ms
from ricordo.consolidation.apply import LearningRules
from ricordo.consolidation.judge import Rules
from ricordo.consolidation.prompts import instructions
from ricordo.errors import InvalidError, RicordoError, UnavailableError
from ricordo.ids import new_id
from ricordo.model import BY_RULE, Node, Reason, Run, RunKind, Scope
from ricordo.models.language import AnswerError, ask
from ricordo.ports import LanguageModel, TokenCounter, Turn
from ricordo.storage import Snapshot, Store
from ricordo.storage.leases import LeaseHolder

Shape = TypeVar("Shape", bound=BaseModel)

LEASE_MS = 30_000
"""How long a lease on a conversation lasts, where other processes cannot tell that its holder has died."""

_ANSWER_TOKENS = 4_000
_SCHEMA_TOKENS = 700
MAX_PROMPT_TOKENS = 12_000
"""The most tokens of messages or memories in a prompt, however many the model takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a run may spend. Prices are per million tokens; 0 means unknown. `daily_tokens` 0 means no limit."""

    daily_tokens: int
    price_in: float
    price_out: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationContext:
    """All that consolidation needs of a memory, passed in.

    Attributes:
        model: None keeps plain statements by rule; conversations then keep waiting for a model.
        now: returns Unix milliseconds, UTC.
        day: returns the user's current date, ISO 8601.
        similar: finds live memories with a meaning near a text: (scope, text, type, names of its subjects).
    """

    model: LanguageModel | None
    scope: Scope
    store: Store
    now: Callable[[], int]
    day: Callable[[], str]
    tokens: TokenCounter
    similar: Callable[[Scope, str, str, Sequence[str]], Awaitable[Sequence[Node]]]
    rules: Rules
    learning: LearningRules
    limits: Limits

    @property
    def place(self) -> tuple[str, str]:
        """(owner, chat) under which the caller's knowledge is stored: the owner's, or the chat's without an owner."""
        return self.scope.owner, "" if self.scope.owner else self.scope.chat or ""

    def reason(self, origin: str, run_id: str | None = None) -> Reason:
        """Return the reason for a commit, as part of a run if one is given."""
        return Reason(actor=self.scope.owner or self.scope.chat or "", origin=origin, reason=origin, run_id=run_id)

    def lease(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Hold a lease during a block; yield whether it is ours.

        It only saves money: every commit checks the present state of the store, with or without a lease.
        """
        return LeaseHolder(self.store, name, lease_ms=LEASE_MS).held()

    @asynccontextmanager
    async def conversation(self, place: tuple[str, str], session: str | None, *, dry_run: bool) -> AsyncIterator[bool]:
        """Hold the lease on a conversation during a block, so that a model is paid once; yield whether it is ours.

        Rules and dry runs need no lease.
        """
        if dry_run or self.model is None:
            yield True
            return
        name = await self.store.read(lambda tx: tx.runs.lease_of(place, session))
        async with self.lease(name) as is_ours:
            yield is_ours


@dataclass(slots=True)
class Spent:
    """What work has cost so far, whether or not it succeeds."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class BudgetError(UnavailableError):
    """Today's tokens are used up. The conversation itself is fine."""


def new_run(context: ConsolidationContext, kind: RunKind, *, prompt: str, dry_run: bool = False) -> Run:
    """Return a run that starts now and has done nothing yet."""
    owner, chat = context.place
    started = context.now()
    return Run(
        id=new_id(started),
        kind=kind,
        state="dry" if dry_run else "done",
        model=model_name(context.model),
        prompt="" if context.model is None else prompt,
        started_at=from_ms(started),
        ended_at=from_ms(started),
        owner=owner,
        chat=chat,
    )


def model_name(model: LanguageModel | None) -> str:
    """Return the name that a run records for a model, or for the rules when None."""
    return BY_RULE if model is None else model.name


def require_model(context: ConsolidationContext) -> LanguageModel:
    """Return the language model.

    Raises:
        UnavailableError: none is chosen.
    """
    if context.model is None:
        raise UnavailableError(
            "no language model is chosen", hint="open the memory with model=..., or give --model or $RICORDO_MODEL"
        )
    return context.model


def prompt_room(model: LanguageModel, tokens: TokenCounter, prompt: str) -> int:
    """Return how many tokens of messages fit beside the instructions, the answer's schema and the answer.

    Args:
        prompt: name of the instructions, such as "extract.1".

    Raises:
        InvalidError: the model's context is too small.
    """
    room = model.context_tokens - _answer_tokens(model) - tokens.count(instructions(prompt)) - _SCHEMA_TOKENS
    if room < 100:
        raise InvalidError(
            f"model: {model.name} takes {model.context_tokens} tokens, too few for any conversation",
            hint="choose another, or set model_context_tokens",
        )
    return min(room, MAX_PROMPT_TOKENS)


def _answer_tokens(model: LanguageModel) -> int:
    return min(_ANSWER_TOKENS, model.context_tokens // 3)


async def ask_model(model: LanguageModel, turns: Sequence[Turn], shape: type[Shape], spent: Spent) -> Shape:
    """Return one answer of a shape, and add its cost to `spent`, even if the answer is unusable.

    Raises:
        RicordoError: there is no usable answer.
    """
    spent.calls += 1
    try:
        found = await ask(model, turns, shape, max_tokens=_answer_tokens(model))
    except AnswerError as error:
        spent.tokens_in += error.tokens_in
        spent.tokens_out += error.tokens_out
        raise
    except RicordoError:
        raise
    except Exception as error:  # a model may be the caller's own code
        raise UnavailableError(f"the model failed with {type(error).__name__}") from error
    spent.tokens_in += found.tokens_in
    spent.tokens_out += found.tokens_out
    return found.value


@asynccontextmanager
async def within_budget(context: ConsolidationContext) -> AsyncIterator[Spent]:
    """Check today's budget, run a block that asks a model, and record what it spent however it ends.

    Raises:
        BudgetError: today's tokens are used up.
    """
    await check_budget(context)
    spent = Spent()
    try:
        yield spent
    finally:
        await note_use(context, spent)


def with_cost(run: Run, spent: Spent, limits: Limits) -> Run:
    """Return the run with what was spent added, and the price of all its tokens."""
    tokens_in, tokens_out = run.tokens_in + spent.tokens_in, run.tokens_out + spent.tokens_out
    is_priced = limits.price_in > 0 or limits.price_out > 0
    cost = (tokens_in * limits.price_in + tokens_out * limits.price_out) / 1_000_000 if is_priced else None
    return replace(run, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost)


async def check_budget(context: ConsolidationContext) -> None:
    """Raise BudgetError if today's tokens are used up."""
    if not context.limits.daily_tokens:
        return
    used = await context.store.read(lambda tx: tx.runs.tokens_used(day=context.day()))
    if used >= context.limits.daily_tokens:
        raise BudgetError(f"today's {context.limits.daily_tokens:,} tokens are spent")


async def note_use(context: ConsolidationContext, spent: Spent) -> None:
    """Record what was spent, for budgets."""
    model = context.model
    if model is not None and spent.calls:
        await context.store.derive(
            lambda tx: tx.runs.note_use(
                day=context.day(),
                model=model.name,
                calls=spent.calls,
                tokens_in=spent.tokens_in,
                tokens_out=spent.tokens_out,
            )
        )


def failure_reason(error: RicordoError) -> str:
    """Return why work failed, without content: the text after a colon may quote a server or a conversation."""
    return error.message if isinstance(error, AnswerError) else error.message.partition(": ")[0]


def as_shown(snapshot: Snapshot, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return messages and memories as a model is shown them: without forgotten sentences, and without nodes that
    consist of nothing else.
    """
    cut = snapshot.suppression.shown({node.key: node for node in nodes})
    kept = (replace(node, content=cut[node.key]) if node.key in cut else node for node in nodes)
    return tuple(node for node in kept if node.content)
