"""The context of all work with a language model, its budget, and its cost so far."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from ricordo.clock import from_ms, new_id
from ricordo.consolidation.apply import LearningRules
from ricordo.consolidation.judge import Rules
from ricordo.consolidation.prompts import instructions
from ricordo.errors import InvalidError, RicordoError, UnavailableError
from ricordo.model import BY_RULE, Change, Node, Reason, Run, RunKind, Scope
from ricordo.models.language import ask
from ricordo.ports import Completion, LanguageModel, TokenCounter, Turn
from ricordo.spans import span
from ricordo.storage import Snapshot, Store
from ricordo.storage.leases import LeaseHolder

Shape = TypeVar("Shape", bound=BaseModel)
T = TypeVar("T")

LEASE_MS = 30_000
"""How long a lease on a conversation lasts if other processes cannot tell that its holder has died."""

_QUOTED_ANSWER = re.compile(r"( answered \d{3}): .*", re.DOTALL)
_ANSWER_TOKENS = 4_000
_SCHEMA_TOKENS = 700
MAX_PROMPT_TOKENS = 12_000
"""Maximum number of tokens for messages or memories in a prompt, whatever the model's limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """An owner's daily limits. Prices are per million tokens. 0 means no limit, or an unknown price."""

    daily_tokens: int
    price_in: float
    price_out: float

    def price(self, tokens_in: int, tokens_out: int) -> float | None:
        """Return the cost of tokens; None without prices."""
        if self.price_in <= 0 and self.price_out <= 0:
            return None
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationContext:
    """The parts of a memory that consolidation needs.

    Attributes:
        model: if None, plain statements are stored by rule, and conversations keep waiting for a model.
        now: returns Unix milliseconds, UTC.
        day: returns the user's current date, ISO 8601.
        similar: finds live memories similar in meaning to a text: (scope, text, type, names of its subjects).
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
        """(owner, chat) under which the caller's knowledge is stored: the owner's, or else the chat's."""
        return self.scope.owner, "" if self.scope.owner else self.scope.chat or ""

    async def write(
        self,
        verb: str,
        decide: Callable[[Snapshot], tuple[Change, T]],
        *,
        run_id: str | None = None,
        scope: Scope | None = None,
    ) -> T:
        """Write a change now, as part of a run if one is given; in another scope than the caller's if one is given."""
        reason = Reason(actor=self.scope.actor, origin=verb, reason=verb, run_id=run_id)
        return await self.store.write(decide, scope=scope or self.scope, reason=reason, at=from_ms(self.now()))

    def lease(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Hold a lease during a block; yield whether it was acquired.

        The lease only saves money: every commit checks the current state of the store, with or without a lease.
        """
        return LeaseHolder(self.store, name, lease_ms=LEASE_MS).held()

    @asynccontextmanager
    async def conversation(self, place: tuple[str, str], session: str | None, *, dry_run: bool) -> AsyncIterator[bool]:
        """Hold the lease on a conversation, so that a model is paid only once; yield whether it was acquired.

        Rules and dry runs need no lease.
        """
        if dry_run or self.model is None:
            yield True
            return
        name = await self.store.read(lambda tx: tx.runs.lease_of(place, session))
        async with self.lease(name) as is_ours:
            yield is_ours


@dataclass(slots=True, kw_only=True)
class Spent:
    """The cost of a run so far, whether or not it succeeds.

    `session` is the session it reads; `lost` counts items of answers that had the wrong form.
    """

    run: Run
    session: str | None = None
    calls: int = 0
    lost: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class BudgetError(UnavailableError):
    """The owner's token budget for today is used up. The conversation itself is not affected."""


def new_run(context: ConsolidationContext, kind: RunKind, *, prompt: str, dry_run: bool = False) -> Run:
    """Return a run that starts now and has no items yet."""
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
    """Return the name that a run records for a model, or for the rules if there is no model."""
    return BY_RULE if model is None else model.name


def require_model(context: ConsolidationContext) -> LanguageModel:
    """Return the language model.

    Raises:
        UnavailableError: no model is configured.
    """
    if context.model is None:
        raise UnavailableError(
            "no language model is chosen", hint="open the memory with model=..., or give --model or $RICORDO_MODEL"
        )
    return context.model


def prompt_room(model: LanguageModel, tokens: TokenCounter, prompt: str) -> int:
    """Return how many tokens of messages fit besides the instructions, the answer's schema and the answer.

    Args:
        prompt: name of the instructions, such as "extract.2".

    Raises:
        InvalidError: the model's context is too small.
    """
    room = model.context_tokens - _answer_tokens(model) - tokens.count(instructions(prompt)) - _SCHEMA_TOKENS
    if room < 100:
        raise InvalidError(
            f"model: {model.name} takes {model.context_tokens} tokens, too few for any conversation",
            hint="choose another model, or set model_context_tokens",
        )
    return min(room, MAX_PROMPT_TOKENS)


def _answer_tokens(model: LanguageModel) -> int:
    return min(_ANSWER_TOKENS, model.context_tokens // 3)


async def ask_model(context: ConsolidationContext, turns: Sequence[Turn], shape: type[Shape], spent: Spent) -> Shape:
    """Ask the model for an answer of the given shape. Each call is checked against the budget and recorded.

    Raises:
        BudgetError: the owner's token budget for the day is used up.
        RicordoError: there is no usable answer.
    """
    model = RecordedModel(require_model(context), context, spent)
    answer = await ask(model, turns, shape, max_tokens=_answer_tokens(model))
    spent.lost += answer.lost
    return answer.value


class RecordedModel:
    """A language model whose calls are recorded individually: first with estimated tokens, then with actual ones."""

    def __init__(self, model: LanguageModel, context: ConsolidationContext, spent: Spent) -> None:
        self._model = model
        self._context = context
        self._spent = spent
        self.name = model.name
        self.context_tokens = model.context_tokens

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        number = await self._begin(sum(self._context.tokens.count(turn.text) for turn in turns))
        self._spent.calls += 1
        try:
            found = await self._complete(turns, schema, max_tokens)
        except RicordoError:
            await self._end(number, 0, 0)
            raise
        except Exception as error:  # a model may be the caller's own code
            await self._end(number, 0, 0)
            raise UnavailableError(f"the model failed with {type(error).__name__}") from error
        await self._end(number, found.tokens_in, found.tokens_out)
        return found

    async def _complete(self, turns: Sequence[Turn], schema: Mapping[str, Any], max_tokens: int) -> Completion:
        asked = {"gen_ai__operation__name": "chat", "gen_ai__request__model": self.name}
        with span(f"chat {self.name}", **asked) as current:
            found = await self._model.complete(turns, schema=schema, max_tokens=max_tokens)
            if current is not None:
                used = {"input_tokens": found.tokens_in, "output_tokens": found.tokens_out}
                current.set_attributes({f"gen_ai.usage.{name}": value for name, value in used.items()})
            return found

    async def _begin(self, tokens: int) -> int:
        context, spent, at = self._context, self._spent, self._context.now()
        most, day = context.limits.daily_tokens, context.day()
        number = await context.store.derive(
            lambda tx: tx.runs.begin_call(spent.run, spent.session, day=day, at=at, tokens=tokens, most=most)
        )
        if number is None:
            raise BudgetError(f"today's limit of {most:,} tokens is used up")
        return number

    async def _end(self, number: int, tokens_in: int, tokens_out: int) -> None:
        self._spent.tokens_in += tokens_in
        self._spent.tokens_out += tokens_out
        cost = self._context.limits.price(tokens_in, tokens_out)
        await self._context.store.derive(
            lambda tx: tx.runs.end_call(number, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost)
        )


def with_cost(run: Run, spent: Spent, limits: Limits) -> Run:
    """Return the run with the spent tokens added, and the price of all its tokens."""
    tokens_in, tokens_out = run.tokens_in + spent.tokens_in, run.tokens_out + spent.tokens_out
    return replace(run, tokens_in=tokens_in, tokens_out=tokens_out, cost=limits.price(tokens_in, tokens_out))


async def note_outcome(context: ConsolidationContext, run: Run, session: str | None = None) -> None:
    """Record the outcome of a run that may have asked a model, or of one failed session."""
    if context.model is not None:
        day, at = context.day(), context.now()
        await context.store.derive(lambda tx: tx.runs.note_outcome(run, session, day=day, at=at))


async def note_failure(context: ConsolidationContext, run: Run, error: RicordoError, session: str | None = None) -> str:
    """Record that a run, or one of its sessions, failed; return the reason."""
    reason = failure_reason(error)
    await note_outcome(context, replace(run, state="failed", reason=reason), session)
    return reason


def failure_reason(error: RicordoError) -> str:
    """Return why work failed, without the server's response, which may quote a conversation."""
    return _QUOTED_ANSWER.sub(r"\1", error.message)


def as_shown(snapshot: Snapshot, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return messages and memories as shown to models: without forgotten sentences, and without empty nodes."""
    cut = snapshot.suppression.shown({node.key: node for node in nodes})
    kept = (replace(node, content=cut[node.key]) if node.key in cut else node for node in nodes)
    return tuple(node for node in kept if node.content)


def batches(
    items: Sequence[T], text: Callable[[T], str], *, room: int, most: int, tokens: TokenCounter
) -> Iterator[list[T]]:
    """Yield batches of consecutive items that fit into a prompt. A single item always fits.

    Args:
        room: tokens of a batch.
        most: maximum number of items in a batch.
    """
    held: list[T] = []
    taken = 0
    for item in items:
        cost = tokens.count(text(item)) + 6
        if held and (len(held) >= most or taken + cost > room):
            yield held
            held, taken = [], 0
        held.append(item)
        taken += cost
    if held:
        yield held
