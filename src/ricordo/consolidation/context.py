"""What every work with a language model needs: the house it works for, its budget, and what it has spent so far."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import BaseModel

from ricordo.clock import from_ms
from ricordo.consolidation.apply import Terms
from ricordo.consolidation.judge import Rules
from ricordo.consolidation.prompts import instructions
from ricordo.errors import InvalidError, RicordoError, UnavailableError
from ricordo.ids import new_id
from ricordo.model import BY_RULE, Node, Reason, Run, RunKind, Scope
from ricordo.models.language import AnswerError, ask
from ricordo.ports import LanguageModel, TokenCounter, Turn
from ricordo.storage import Store

Shape = TypeVar("Shape", bound=BaseModel)

_ANSWER_TOKENS = 4_000
_FORM_TOKENS = 700
MOST_ROOM = 12_000
"""How many tokens of messages or memories a prompt has at most, whatever the model takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a run may go. Prices are for a million tokens; 0 stands for unknown, `daily_tokens` 0 for no limit."""

    daily_tokens: int
    price_in: float
    price_out: float


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """All that consolidating needs of the house, handed in.

    Without a `model` what is said plainly is kept by rule, and conversations wait on for one. `similar` gives the live
    memories that mean something near a text: (scope, text, type, names of whom it is about). `day` is today for the
    user, ISO 8601.
    """

    model: LanguageModel | None
    scope: Scope
    store: Store
    now: Callable[[], int]
    day: Callable[[], str]
    tokens: TokenCounter
    similar: Callable[[Scope, str, str, Sequence[str]], Awaitable[Sequence[Node]]]
    rules: Rules
    terms: Terms
    limits: Limits

    @property
    def place(self) -> tuple[str, str]:
        """(owner, chat) of what the caller keeps: their own, or the group's where there is no owner."""
        return self.scope.owner, "" if self.scope.owner else self.scope.chat or ""

    def reason(self, origin: str, run_id: str) -> Reason:
        """Of a commit that is part of a run."""
        return Reason(actor=self.scope.owner or self.scope.chat or "", origin=origin, reason=origin, run_id=run_id)


@dataclass(slots=True)
class Spent:
    """What work has cost so far, whether it succeeds or not."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class BudgetError(UnavailableError):
    """No more may be asked today; nothing is wrong with what was to be read."""


def new_run(house: House, kind: RunKind, *, prompt: str, dry_run: bool = False) -> Run:
    """A run that begins now and has done nothing yet."""
    owner, chat = house.place
    started = house.now()
    return Run(
        id=new_id(started),
        kind=kind,
        state="dry" if dry_run else "done",
        model=name_of(house.model),
        prompt="" if house.model is None else prompt,
        started_at=from_ms(started),
        ended_at=from_ms(started),
        owner=owner,
        chat=chat,
    )


def name_of(model: LanguageModel | None) -> str:
    """What stands in a run for a model, or for none."""
    return BY_RULE if model is None else model.name


def model_of(house: House) -> LanguageModel:
    """The model of a house, for what cannot be had by rule.

    Raises:
        UnavailableError: none is chosen.
    """
    if house.model is None:
        raise UnavailableError(
            "no language model is chosen", hint="open the memory with model=..., or give --model or $RICORDO_MODEL"
        )
    return house.model


def room_of(model: LanguageModel, tokens: TokenCounter, prompt: str) -> int:
    """How many tokens of messages fit beside the instructions, the form and the answer.

    Args:
        prompt: the name of the instructions, such as "extract.1".

    Raises:
        InvalidError: none do.
    """
    beside = tokens.count(instructions(prompt)) + _FORM_TOKENS
    room = model.context_tokens - _answer_tokens(model) - beside
    if room < 100:
        raise InvalidError(
            f"model: {model.name} takes {model.context_tokens} tokens, too few for any conversation",
            hint="choose another, or set model_context_tokens",
        )
    return min(room, MOST_ROOM)


def _answer_tokens(model: LanguageModel) -> int:
    return min(_ANSWER_TOKENS, model.context_tokens // 3)


async def asked(model: LanguageModel, turns: Sequence[Turn], shape: type[Shape], spent: Spent) -> Shape:
    """One answer of a shape; what it took is added to `spent`, also where it is of no use.

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
    except Exception as error:  # a model may be anybody's code
        raise UnavailableError(f"the model failed with {type(error).__name__}") from error
    spent.tokens_in += found.tokens_in
    spent.tokens_out += found.tokens_out
    return found.value


@asynccontextmanager
async def spending(house: House) -> AsyncIterator[Spent]:
    """A block that asks a model, within today's budget; what it took is written down however it ends.

    Raises:
        BudgetError: today's tokens are spent.
    """
    await check_budget(house)
    spent = Spent()
    try:
        yield spent
    finally:
        await note_use(house, spent)


def paid(run: Run, spent: Spent, limits: Limits) -> Run:
    """The run with what was spent added to it, and what all of it cost."""
    tokens_in, tokens_out = run.tokens_in + spent.tokens_in, run.tokens_out + spent.tokens_out
    is_priced = limits.price_in > 0 or limits.price_out > 0
    cost = (tokens_in * limits.price_in + tokens_out * limits.price_out) / 1_000_000 if is_priced else None
    return replace(run, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost)


async def check_budget(house: House) -> None:
    """Raises:
    BudgetError: today's tokens are spent.
    """
    if not house.limits.daily_tokens:
        return
    used = await house.store.read(lambda tx: tx.runs.tokens_used(day=house.day()))
    if used >= house.limits.daily_tokens:
        raise BudgetError(f"today's {house.limits.daily_tokens:,} tokens are spent")


async def note_use(house: House, spent: Spent) -> None:
    """Write down what was spent, for budgets."""
    model = house.model
    if model is not None and spent.calls:
        await house.store.derive(
            lambda tx: tx.runs.note_use(
                day=house.day(),
                model=model.name,
                calls=spent.calls,
                tokens_in=spent.tokens_in,
                tokens_out=spent.tokens_out,
            )
        )


def why_failed(error: RicordoError) -> str:
    """Why work failed, in words that hold nothing of what was said: a server's may be anybody's."""
    return error.message if isinstance(error, AnswerError) else error.message.partition(": ")[0]
