"""The verb `demo`: a conversation of half a year, asked about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ricordo.interfaces.cli import show_runs
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.progress import embedded, progress_bar
from ricordo.interfaces.cli.screen import Answer, dim, shown
from ricordo.interfaces.cli.show_hits import reason, said
from ricordo.interfaces.cli.verb import verb
from ricordo.interfaces.demo import FIRST, TIME_ZONE, Asked, MorningAfter, ask, conversation, learning, questions
from ricordo.model import Run
from ricordo.settings import Settings

# Fewer answers than this and something is broken.
_ENOUGH = 9
_CONTEXTS_SHOWN = 2


@verb("demo", panel="Try it")
async def demo(door: Door) -> Answer:
    """Fill a throw-away memory with half a year of conversation and ask it questions.

    Two more conversations are then made into knowledge: by a scripted model, or by the one that --model names.
    """
    from ricordo.memory import Memory

    memory = Memory.open(
        ":memory:", embedder=door.embedder, settings=Settings(time_zone=TIME_ZONE), clock=MorningAfter()
    )
    async with memory:
        with conversation() as path, progress_bar(door.err, "Reading half a year of conversation") as progress:
            report = await memory.import_(path, progress=progress)
        await embedded(door.err, memory)
        with door.waiting("Asking…"):
            asked = [await ask(memory, question) for question in questions()]
    learnt = await _learnt(door)
    answerable = [each for each in asked if each.question.expected]
    answered = sum(each.is_answered for each in answerable)
    return Answer(
        data={
            "turns": report.read,
            "questions": [_plain(each) for each in asked],
            "asked": len(answerable),
            "answered": answered,
            "learnt": learnt,
        },
        show=lambda out: _show(out, asked, learnt, turns=report.read, answered=answered),
        exit_status=0 if answered >= _ENOUGH else 1,
    )


async def _learnt(door: Door) -> learning.Learnt:
    """Two more conversations, and a model that makes knowledge of them, in a memory of their own. A real one only where
    this command was told so: it may cost something.
    """
    from ricordo.memory import Memory

    name = None if door.given.model == "none" else door.given.model
    settings = Settings(time_zone=TIME_ZONE) if name is None else replace(door.settings(), time_zone=TIME_ZONE)
    async with Memory.open(
        ":memory:", embedder=door.embedder, model=name or learning.model(), settings=settings, clock=MorningAfter()
    ) as memory:
        if name is not None:
            door.notice(f"{name} reads two conversations; a small model on a processor takes minutes.")
        with door.waiting("Learning…"):
            return await learning.learn(memory)


def _plain(asked: Asked) -> dict[str, object]:
    """A question and its answer as JSON has them."""
    return {
        "question": asked.question.text,
        "expected": asked.question.expected,
        "place": asked.place,
        "hits": asked.results.hits[:FIRST],
        "context": asked.context,
    }


def _show(out: Console, asked: Sequence[Asked], learnt: learning.Learnt, *, turns: int, answered: int) -> None:
    out.print(
        f"A conversation of {turns} turns, from January to June 2026: Jonas, Vera and their assistant, partly"
        " in Russian. It is now the morning of 29 June, and the memory is asked:"
    )
    contexts = 0
    for each in asked:
        _show_question(out, each)
        if each.is_answered and contexts < _CONTEXTS_SHOWN:
            contexts += 1
            _show_context(out, each.context)
    answerable = sum(bool(each.question.expected) for each in asked)
    out.print()
    out.print(Rule(style="dim"))
    out.print(Text(f"{answered} of {answerable} answered within the first {_number(FIRST)}.", style="bold"))
    _show_learnt(out, learnt)
    out.print('Now your own: ricordo remember "..."  then  ricordo search "..."  and  ricordo search --trace "..."')
    out.print("A chat of yours, one JSON object a line: ricordo import FILE")


def _show_learnt(out: Console, learnt: learning.Learnt) -> None:
    """How knowledge comes of conversations, and what that changes."""
    out.print()
    out.print(
        f"All that was without a language model. One can read each conversation once it is over; here it is"
        f" {'a scripted one' if learnt.runs[0].model == 'scripted' else learnt.runs[0].model}. What comes of two"
        " evenings (+ learnt, - replaced, > led to, # in short, x refused):"
    )
    for run in learnt.runs:
        out.print(Text(f"\n{', '.join(run.sessions)}", style="bold"))
        show_runs.items(out, run.items)
    out.print(_account(learnt.runs))
    out.print(Text(f"\n{learnt.question}", style="bold"))
    for when, context in zip(("before", "then", "now"), learnt.contexts, strict=True):
        out.print(dim(f"  What an agent gets, {when}:"))
        _show_context(out, context, introduced=False)
    out.print(Rule(style="dim"))


def _account(runs: Sequence[Run]) -> Text:
    """What a model made of all conversations, in a line."""
    came = Counter(item.what for run in runs for item in run.items)
    lost = f" {came['failed']} of {len(runs)} conversations could not be read and wait." if came["failed"] else ""
    spent = f"{sum(run.tokens_in for run in runs):,} tokens in, {sum(run.tokens_out for run in runs):,} out"
    return Text(f"\nIn all: {came['added']} learnt, {came['refused']} refused; {spent}.{lost}", style="bold")


def _number(count: int) -> str:
    return {3: "three", 5: "five"}.get(count, str(count))


def _show_question(out: Console, asked: Asked) -> None:
    out.print()
    out.print(Text(asked.question.text, style="bold"))
    trace = asked.results.trace
    terms = frozenset(trace.terms if trace else ())
    grid = Table.grid(padding=(0, 1))
    for hit in asked.results.hits[:FIRST]:
        mark = Text("✓", style="bold green") if asked.question.is_answered_by(hit) else Text("·", style="dim")
        why = reason(hit, terms, interval=trace.interval if trace else "")
        grid.add_row("", mark, said(hit, terms))
        grid.add_row("", "", Text(f"{hit.event_time_local[:10]}, {hit.event_time_relative}, {why}", style="dim"))
    out.print(grid)
    out.print(_verdict(asked))


def _verdict(asked: Asked) -> Text:
    if asked.question.expected:
        if asked.is_answered:
            return Text(f"  found, in place {asked.place}", style="green")
        where = f"only in place {asked.place}" if asked.place else f"not among the first {len(asked.results.hits)}"
        return Text(f"  missed: the answer is {where}", style="red")
    if asked.context is None:
        return Text(
            "  nothing was ever said about this; these are the nearest guesses, and an agent gets none", style="yellow"
        )
    return Text(
        "  nothing was ever said about this; these are the nearest guesses, and an agent would get some", style="yellow"
    )


def _show_context(out: Console, context: str | None, *, introduced: bool = True) -> None:
    if context is not None:
        if introduced:
            out.print(dim("\n  What an agent would get of it, within 300 tokens:"))
        grid = Table.grid(padding=(0, 1))
        for line in shown(context).splitlines():
            grid.add_row(dim("  │"), Text(line))
        out.print(grid)
