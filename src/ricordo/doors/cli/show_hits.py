"""Hits and traces for people."""

from __future__ import annotations

import re

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.doors.cli.screen import one_line, shown
from ricordo.model import Hit, Results, Share, Trace
from ricordo.words import index_terms

_WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)*")

# A strategy that gave less than this part of the score is no reason worth naming.
_TELLING = 0.1
_SHOWN_WORDS = 5
_SEARCHED_CHARS = 10_000


def hits(out: Console, question: str, results: Results) -> None:
    """The hits as a numbered list, or a word on there being none."""
    if not results.hits:
        out.print(Text(f"Nothing in the memory answers “{one_line(question, most=100)}”."))
        return
    terms = frozenset(results.trace.terms if results.trace else index_terms(question))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column()
    for number, hit in enumerate(results.hits, start=1):
        grid.add_row(str(number), said(hit, terms))
        grid.add_row("", Text(_circumstances(hit), style="dim"))
        why = reason(hit, terms, interval=results.trace.interval if results.trace else "")
        grid.add_row("", Text.assemble((why, "cyan"), ("  " + shown(hit.id), "dim")))
        if number < len(results.hits):
            grid.add_row("", "")
    out.print(grid)


def said(hit: Hit, terms: frozenset[str]) -> Text:
    """The memory itself, with the words that were asked for standing out."""
    text = Text()
    if hit.type == "episodic" and (hit.speaker or hit.role):
        text.append(f"{shown(hit.speaker or hit.role or '')}: ", style="bold")
    body = Text(shown(hit.excerpt).strip())
    for match in _WORD.finditer(body.plain):
        if not terms.isdisjoint(index_terms(match.group())):
            body.stylize("bold green", match.start(), match.end())
    return text.append_text(body)


def _circumstances(hit: Hit) -> str:
    """When it was said, what it is, and how sure."""
    when = f"{hit.event_time_relative} ({hit.event_time_local})"
    about = f" about {one_line(', '.join(hit.about), most=60)}" if hit.about else ""
    kind = f"{hit.category or hit.type}{about}, " if hit.type != "episodic" else ""
    return f"{kind}{when}, {hit.confidence:.0%} sure"


def reason(hit: Hit, terms: frozenset[str], *, interval: str) -> str:
    """Why a hit was found, in a few words: the strategies that gave a good part of its score."""
    telling = [share for share in hit.why if share.rank and share.share >= _TELLING * max(hit.score, 1e-9)]
    reasons = [_named(share, hit, terms, interval) for share in sorted(telling, key=lambda share: -share.share)]
    if reasons:
        return "by " + ", by ".join(reasons)
    matched = matching_words(hit, terms)
    return f"by {_quoted(matched)}" if matched else "found"


def _named(share: Share, hit: Hit, terms: frozenset[str], interval: str) -> str:
    if share.strategy == "meaning":
        return f"meaning ({share.raw:.2f})"
    if share.strategy == "words" and (matched := matching_words(hit, terms)):
        return f"the word{'s' if len(matched) > 1 else ''} {_quoted(matched)}"
    if share.strategy == "time" and interval:
        return f"the time “{interval}”"
    return share.strategy


def _quoted(found: list[str]) -> str:
    return ", ".join(f"“{word}”" for word in found[:_SHOWN_WORDS])


def matching_words(hit: Hit, terms: frozenset[str]) -> list[str]:
    """The words of a memory that the index takes for terms of the question, as they are written there."""
    text = " ".join([hit.speaker or "", *hit.tags, hit.content[:_SEARCHED_CHARS]])
    written = {match.group().lower(): match.group() for match in reversed([*_WORD.finditer(text)])}
    matched = [word for word in written.values() if not terms.isdisjoint(index_terms(word))]
    return matched[::-1]


def trace(out: Console, results: Results, trace: Trace) -> None:
    """How an answer came about: what was looked for, and each hit's score as a sum."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    facts.add_row("words looked up", Text(", ".join(trace.terms) or "none"))
    facts.add_row("words ignored", Text(", ".join(trace.ignored_terms) or "none"))
    facts.add_row("asks for", Text(f"{results.intent}, {results.complexity}"))
    facts.add_row("time understood", Text(trace.interval or "none"))
    facts.add_row("candidates", _pairs({name: f"{count:,}" for name, count in trace.candidates.items()}))
    facts.add_row("took", _pairs({name: f"{ms:.1f} ms" for name, ms in trace.timings_ms.items()}))
    out.print()
    out.print(facts)
    if results.hits:
        out.print()
        out.print(_shares(results))


def absence(out: Console, trace: Trace) -> None:
    """What became of the memory that was expected, and what each signal gave it."""
    found = trace.absence
    if found is None:
        return
    out.print()
    out.print(Text.assemble((f"{found.stage}: ", "bold"), shown(found.detail), ("  " + shown(found.id), "dim")))
    for share in found.shares:
        out.print(Text(f"  {share.strategy:<18}{share.share:+.3f}", style="dim"))


def _pairs(values: dict[str, str]) -> Text:
    return Text(" · ".join(f"{name} {value}".replace(" ", "\N{NO-BREAK SPACE}") for name, value in values.items()))


def _shares(results: Results) -> Table:
    """A line for each signal of each hit; the shares of a hit add up to its score."""
    table = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False, expand=True)
    table.add_column("#", justify="right", style="dim")
    table.add_column("signal", no_wrap=True)
    for name in ("rank", "raw", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("memory", no_wrap=True, overflow="ellipsis", ratio=1, style="dim")
    for number, hit in enumerate(results.hits, start=1):
        head = (str(number), one_line(hit.content))
        for share in hit.why:
            rank = "" if share.rank is None else str(share.rank)
            table.add_row(head[0], share.strategy, rank, f"{share.raw:.3f}", f"{share.share:+.3f}", Text(head[1]))
            head = ("", "")
        score = Text(f"{hit.score:.3f}", style="bold")
        table.add_row(head[0], Text("score", style="bold"), "", "", score, Text(head[1]))
        table.add_row()
    return table
