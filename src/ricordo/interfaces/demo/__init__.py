"""The command `demo`: questions about half a year of conversation, then two conversations that are consolidated.

The answers to the questions are known. The two conversations, about dinners, show what a language model adds. By
default, a scripted model is used.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ricordo.interfaces.cli.hits import content, reason
from ricordo.interfaces.cli.knowledge import show_items
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.terminal import Output, dim, progress_bar, safe, wait_for_embeddings
from ricordo.interfaces.demo.script import DemoClock, dinners, scripted_model
from ricordo.model import Hit, Message, Results, Run
from ricordo.settings import Settings

if TYPE_CHECKING:
    from ricordo.memory import Memory

TIME_ZONE = "Europe/Berlin"
FIRST = 5
"""An answer is right if it is among this many hits."""

_CONTEXT_TOKENS = 300
_DATA = files("ricordo.interfaces.demo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question. A right answer contains one of the `expected` texts; without any, no hit is the right answer."""

    text: str
    expected: tuple[str, ...]
    note: str

    def is_answered_by(self, hit: Hit) -> bool:
        return any(part in hit.content for part in self.expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The outcome of a question. `place` is the rank of the first right hit, from 1, or None."""

    question: Question
    results: Results
    place: int | None
    context: str | None

    @property
    def is_right(self) -> bool:
        return self.place is not None and self.place <= FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """The contexts for a question, before the first consolidation and after each one, and the consolidation runs."""

    question: str
    contexts: tuple[str | None, ...]
    runs: tuple[Run, ...]


@contextmanager
def conversation() -> Iterator[Path]:
    """Yield the file of the conversation: 251 turns of two people and an assistant, in English and Russian."""
    with as_file(_DATA / "conversation.jsonl") as path:
        yield path


def questions() -> list[Question]:
    """Return all questions, in order."""
    lines = (_DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Question(text=row["question"], expected=tuple(row["expected"]), note=row["note"]) for row in rows]


async def ask(memory: Memory, question: Question) -> Answer:
    """Ask one question as an agent would."""
    results = await memory.search(question.text, trace=True)
    context = await memory.context(question.text, budget=_CONTEXT_TOKENS)
    right = (number for number, hit in enumerate(results.hits, start=1) if question.is_answered_by(hit))
    return Answer(question=question, results=results, place=next(right, None), context=context)


# what a language model adds


async def learn(memory: Memory) -> Learnt:
    """Record the two conversations, and consolidate each with the memory's model."""
    script = dinners()
    question = script["question"]
    contexts: list[str | None] = []
    runs: list[Run] = []
    for dinner in script["conversations"]:
        session = dinner["session"]
        await memory.add_many([Message(session=session, **turn) for turn in dinner["turns"]])
        await memory.settle()
        if not contexts:
            contexts.append(await memory.context(question, budget=_CONTEXT_TOKENS))
        runs.append(await memory.consolidate(session))
        await memory.settle()
        contexts.append(await memory.context(question, budget=_CONTEXT_TOKENS))
    return Learnt(question=question, contexts=tuple(contexts), runs=tuple(runs))


# the command


# With fewer right answers, the command fails.
_LEAST_RIGHT = 9
_SHOWN_CONTEXTS = 2


@command
async def demo(ctx: CommandContext, page: bool = False, port: int = 7411, no_browser: bool = False) -> Output:
    from ricordo.memory import Memory

    if page:
        return await _show_page(ctx, port=port, no_browser=no_browser)

    settings = Settings(time_zone=TIME_ZONE)
    async with Memory.open(":memory:", embedder=ctx.embedder, settings=settings, clock=DemoClock()) as memory:
        with conversation() as path, progress_bar(ctx.err, "Reading half a year of conversation") as progress:
            report = await memory.import_(path, progress=progress)
        await wait_for_embeddings(ctx.err, memory)
        with ctx.status("Asking…"):
            answers = [await ask(memory, question) for question in questions()]
    learnt = await _learn_dinners(ctx)
    answerable = [each for each in answers if each.question.expected]
    right = sum(each.is_right for each in answerable)
    asked = {"asked": len(answerable), "answered": right}
    return Output(
        data={"turns": report.read, "questions": [_plain(each) for each in answers], **asked, "learnt": learnt},
        show=lambda out: _show(out, answers, learnt, turns=report.read, right=right),
        exit_status=0 if right >= _LEAST_RIGHT else 1,
    )


async def _show_page(ctx: CommandContext, *, port: int, no_browser: bool) -> Output:
    """Serve a page with the demo's memories until the process is stopped. The store is temporary."""
    from ricordo.interfaces.cli.serve import link_shower, serve_page
    from ricordo.interfaces.demo.page import DemoConfig

    ctx.notice("Reading half a year of conversation…")
    with TemporaryDirectory(prefix="ricordo-demo-") as folder:
        config = DemoConfig(
            location=str(Path(folder) / "demo.db"),
            embedder=ctx.embedder,
            model=None,
            settings=Settings(time_zone=TIME_ZONE),
        )
        await serve_page(ctx, config, link_shower(ctx, no_browser=no_browser), port=port)
    return Output(data=None, show=lambda out: None)


async def _learn_dinners(ctx: CommandContext) -> Learnt:
    """Consolidate the two dinners, with a real model only if the command line names one, because it may cost money."""
    from ricordo.memory import Memory

    name = None if ctx.options.model == "none" else ctx.options.model
    settings = Settings(time_zone=TIME_ZONE) if name is None else replace(ctx.settings(), time_zone=TIME_ZONE)
    async with Memory.open(
        ":memory:", embedder=ctx.embedder, model=name or scripted_model(), settings=settings, clock=DemoClock()
    ) as memory:
        if name is not None:
            ctx.notice(f"{name} reads two conversations; a small model on a CPU takes minutes.")
        with ctx.status("Learning…"):
            return await learn(memory)


def _plain(answer: Answer) -> dict[str, object]:
    """Return a question and its answer for JSON."""
    return {
        "question": answer.question.text,
        "expected": answer.question.expected,
        "place": answer.place,
        "hits": answer.results.hits[:FIRST],
        "context": answer.context,
    }


def _show(out: Console, answers: Sequence[Answer], learnt: Learnt, *, turns: int, right: int) -> None:
    out.print(
        f"A conversation of {turns} turns, from January to June 2026: Jonas, Vera and their assistant, partly"
        " in Russian. It is now the morning of 29 June, and the memory is asked:"
    )
    contexts = 0
    for each in answers:
        _show_answer(out, each)
        if each.is_right and contexts < _SHOWN_CONTEXTS:
            contexts += 1
            out.print(dim("\n  The context an agent gets, within 300 tokens:"))
            _show_context(out, each.context)
    answerable = sum(bool(each.question.expected) for each in answers)
    out.print()
    out.print(Rule(style="dim"))
    out.print(Text(f"{right} of {answerable} answered within the first five.", style="bold"))
    _show_learnt(out, learnt)
    out.print('Now your own: ricordo remember "..."  then  ricordo search "..."  and  ricordo search --trace "..."')
    out.print("Import a chat, one JSON object per line: ricordo import FILE")


def _show_answer(out: Console, answer: Answer) -> None:
    out.print()
    out.print(Text(answer.question.text, style="bold"))
    trace = answer.results.trace
    terms = frozenset(trace.terms if trace else ())
    grid = Table.grid(padding=(0, 1))
    for hit in answer.results.hits[:FIRST]:
        mark = Text("✓", style="bold green") if answer.question.is_answered_by(hit) else dim("·")
        why = reason(hit, terms, interval=trace.interval if trace else "")
        grid.add_row("", mark, content(hit, terms))
        grid.add_row("", "", dim(f"{hit.event_time_local[:10]}, {hit.event_time_relative}, {why}"))
    out.print(grid)
    out.print(_verdict(answer))


def _verdict(answer: Answer) -> Text:
    if not answer.question.expected:
        gets = "gets none" if answer.context is None else "would get some"
        guesses = f"nothing was ever said about this; these are the nearest guesses, and an agent {gets}"
        return Text(f"  {guesses}", style="yellow")
    if answer.is_right:
        return Text(f"  found, in place {answer.place}", style="green")
    where = f"only in place {answer.place}" if answer.place else f"not among the first {len(answer.results.hits)}"
    return Text(f"  missed: the answer is {where}", style="red")


def _show_context(out: Console, context: str | None) -> None:
    if context is not None:
        grid = Table.grid(padding=(0, 1))
        for line in safe(context).splitlines():
            grid.add_row(dim("  │"), Text(line))
        out.print(grid)


def _show_learnt(out: Console, learnt: Learnt) -> None:
    """Print what the consolidations learnt, and how the context changed."""
    name = "a scripted one" if learnt.runs[0].model == "scripted" else learnt.runs[0].model
    out.print()
    out.print(
        "All of this worked without a language model. A model can read each conversation once it is over; here it is"
        f" {name}. The result of two evenings (+ learnt, - replaced, > led to, # summary, x refused):"
    )
    for run in learnt.runs:
        out.print(Text(f"\n{', '.join(run.sessions)}", style="bold"))
        show_items(out, run.items)
    out.print(_totals(learnt.runs))
    out.print(Text(f"\n{learnt.question}", style="bold"))
    for when, context in zip(("before", "then", "now"), learnt.contexts, strict=True):
        out.print(dim(f"  The context an agent gets, {when}:"))
        _show_context(out, context)
    out.print(Rule(style="dim"))


def _totals(runs: Sequence[Run]) -> Text:
    """Return one line with the totals of all runs."""
    kinds = Counter(item.what for run in runs for item in run.items)
    failed = f" {kinds['failed']} of {len(runs)} conversations could not be read and wait." if kinds["failed"] else ""
    tokens = f"{sum(run.tokens_in for run in runs):,} tokens in, {sum(run.tokens_out for run in runs):,} out"
    return Text(f"\nIn all: {kinds['added']} learnt, {kinds['refused']} refused; {tokens}.{failed}", style="bold")
