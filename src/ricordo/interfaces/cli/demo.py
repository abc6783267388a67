"""The command `demo`: half a year of conversation and questions to it, then two dinners that become knowledge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ricordo.interfaces.cli.hits import content, reason
from ricordo.interfaces.cli.knowledge import show_items
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.terminal import Output, dim, progress_bar, safe, wait_for_embeddings
from ricordo.interfaces.demo import (
    FIRST,
    TIME_ZONE,
    Answer,
    DemoClock,
    Learnt,
    ask,
    conversation,
    learn,
    questions,
    scripted_model,
)
from ricordo.model import Run
from ricordo.settings import Settings

PANEL = "Try it"

# Fewer right answers than this mean that something is broken.
_LEAST_RIGHT = 9
_SHOWN_CONTEXTS = 2


@command("demo", panel=PANEL)
async def demo(ctx: CommandContext) -> Output:
    """Fill a temporary memory with half a year of conversation and ask it questions.

    Two more conversations then become knowledge, with a scripted model or the one given by --model.
    """
    from ricordo.memory import Memory

    settings = Settings(time_zone=TIME_ZONE)
    async with Memory.open(":memory:", embedder=ctx.embedder, settings=settings, clock=DemoClock()) as memory:
        with conversation() as path, progress_bar(ctx.err, "Reading half a year of conversation") as progress:
            report = await memory.import_(path, progress=progress)
        await wait_for_embeddings(ctx.err, memory)
        with ctx.status("Asking…"):
            answers = [await ask(memory, question) for question in questions()]
    learnt = await _learn(ctx)
    answerable = [each for each in answers if each.question.expected]
    right = sum(each.is_right for each in answerable)
    return Output(
        data={
            "turns": report.read,
            "questions": [_plain(each) for each in answers],
            "asked": len(answerable),
            "answered": right,
            "learnt": learnt,
        },
        show=lambda out: _show(out, answers, learnt, turns=report.read, right=right),
        exit_status=0 if right >= _LEAST_RIGHT else 1,
    )


async def _learn(ctx: CommandContext) -> Learnt:
    """Let a model read the two dinners. It is a real one only if this command names it: it may cost money."""
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
    out.print(Text(f"{right} of {answerable} answered within the first {_number(FIRST)}.", style="bold"))
    _show_learnt(out, learnt)
    out.print('Now your own: ricordo remember "..."  then  ricordo search "..."  and  ricordo search --trace "..."')
    out.print("Import a chat, one JSON object per line: ricordo import FILE")


def _number(count: int) -> str:
    return {3: "three", 5: "five"}.get(count, str(count))


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
    """Print how conversations become knowledge, and what that changes."""
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
    """Return what a model made of all conversations, in a line."""
    kinds = Counter(item.what for run in runs for item in run.items)
    failed = f" {kinds['failed']} of {len(runs)} conversations could not be read and wait." if kinds["failed"] else ""
    tokens = f"{sum(run.tokens_in for run in runs):,} tokens in, {sum(run.tokens_out for run in runs):,} out"
    return Text(f"\nIn all: {kinds['added']} learnt, {kinds['refused']} refused; {tokens}.{failed}", style="bold")
