"""Hits and traces for people."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import get_args

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.interfaces.cli.screen import one_line, shown
from ricordo.model import Hit, Results, Share, SignalName, Trace
from ricordo.text import index_terms
from ricordo.trust import is_untrusted, label

_WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)*")

# A signal that gave less than this part of the score is no reason worth naming.
_TELLING = 0.1
_SIGNALS: frozenset[str] = frozenset(get_args(SignalName))
_OF_WORDS = ("words in context", "words", "keywords")
_SAYS = {
    "meaning": "meaning",
    "person": "who said it",
    "kind of answer": "the kind of answer",
    "date": "its time",
    "replies": "what it replies to",
    "own experience": "who it is told of",
} | dict.fromkeys(_OF_WORDS, "related words")
_MEANS = {
    "words in context": "how well it and the turns around it meet the question's words",
    "words": "how well it meets them alone",
    "keywords": "how often the words stand in and around it, rare ones for more (BM25)",
    "meaning": "how near its meaning is, and that of the turns around it",
    "person": "1: said by whom the question names, -1: by another",
    "kind of answer": "holds what is asked for: a time, a number or a name",
    "date": "is of the time asked for",
    "replies": "comes after a question",
    "own experience": "the one who is named speaks of themselves",
    "asks": "is itself a question",
    "name": "names somebody or something",
    "length": "says more than most, or less",
    "entity": "is about whom or what is named",
    "linked": "led to what answers best, or came of it",
    "session": "other turns of its conversation answer well",
    "same session": "better ones of its conversation come before it",
    "confidence": "how sure it is",
    "reinforcement": "how often it was confirmed or demoted",
    "recency": "how long ago it was recorded",
    "trust": "whose word it is: less for a tool or a page",
    "order": "reads like an order, and is nobody's word: it stands last",
    "newer": "it changed places with an older or a newer version of itself",
}
_STAGES = {
    "unknown": "Unknown",
    "left out": "Left out",
    "not found": "Not among the candidates",
    "ranked below": "Ranked below",
    "not relevant": "Not relevant",
    "found": "It was found",
}
_LEGEND = (
    "A score is the sum of what each signal adds: what it measured times its weight (by its place instead of its "
    "measure where fusion is rrf). The place is that among all candidates by this signal alone."
)
_SHOWN_SHARE = 0.0005
_SHOWN_MS = 0.05
_SHOWN_WORDS = 5
_SHOWN_FALLEN = 5
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
    told = [f"{hit.confidence:.0%} sure", label(hit.trust) if is_untrusted(hit.trust) else ""]
    told.append(f"reads like an order: {', '.join(hit.warnings)}" if hit.warnings else "")
    return ", ".join([f"{kind}{when}", *filter(None, told)])


def reason(hit: Hit, terms: frozenset[str], *, interval: str) -> str:
    """Why a hit was found, in a few words: the signals that gave a good part of its score, the strongest first."""
    given: dict[str, float] = {}
    for share in hit.why:
        if share.strategy in _SAYS:
            name = _named(share.strategy, hit, terms, interval)
            given[name] = given.get(name, 0.0) + share.share
    telling = [name for name, share in given.items() if share >= _TELLING * max(hit.score, 1e-9)]
    if telling:
        return "by " + ", by ".join(sorted(telling, key=lambda name: -given[name]))
    matched = matching_words(hit, terms)
    return f"by {_quoted(matched)}" if matched else "found"


def _named(signal: str, hit: Hit, terms: frozenset[str], interval: str) -> str:
    if signal == "date" and interval:
        return f"the time “{interval}”"
    if signal in _OF_WORDS and (matched := matching_words(hit, terms)):
        return f"the word{'s' if len(matched) > 1 else ''} {_quoted(matched)}"
    return _SAYS[signal]


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
    facts.add_row("candidates", _candidates(trace.candidates))
    facts.add_row("took", _took(trace.timings_ms))
    out.print()
    out.print(facts)
    if results.hits:
        out.print()
        out.print(Text(_LEGEND, style="dim"))
    for number, hit in enumerate(results.hits, start=1):
        out.print()
        out.print(
            Text.assemble((f"{number}  ", "dim"), (f"{hit.score:.3f}", "bold"), f"  {one_line(hit.content)}"),
            no_wrap=True,
            overflow="ellipsis",
        )
        out.print(_sum(hit.why))
    if trace.under_floor:
        out.print()
        out.print(_under_floor(trace.under_floor))
    if results.hits:
        out.print()
        out.print(_glossary({share.strategy for hit in results.hits for share in hit.why if _counts(share)}))


def absence(out: Console, results: Results, trace: Trace) -> None:
    """What became of the memory that was expected, beside the last of the hits."""
    found = trace.absence
    if found is None:
        return
    out.print()
    out.print(Text.assemble(("Why not ", "bold"), (shown(found.id), "dim"), ("?", "bold")))
    out.print(Text.assemble((f"{_STAGES[found.stage]}: ", "bold"), shown(found.detail)))
    if found.stage == "ranked below" and results.hits:
        out.print()
        out.print(_beside(found.shares, results.hits[-1].why, number=len(results.hits)))
    elif found.shares:
        out.print(_sum(found.shares))


def _under_floor(fallen: Sequence[tuple[str, float, str]]) -> Table:
    """What was found and is not relevant: how far from the floor, and why it fell out."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=True, header_style="dim", pad_edge=False)
    table.add_column("relevance", justify="right", no_wrap=True)
    table.add_column("left out", no_wrap=True, style="dim")
    table.add_column("because")
    for id_, relevance, reason in fallen[:_SHOWN_FALLEN]:
        table.add_row(f"{relevance:+.1f}", shown(id_), reason)
    if len(fallen) > _SHOWN_FALLEN:
        table.add_row("", f"and {len(fallen) - _SHOWN_FALLEN} more", "")
    return table


def _counts(share: Share) -> bool:
    return abs(share.share) >= _SHOWN_SHARE


def _glossary(names: Collection[str]) -> Table:
    """What the names in a sum stand for."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(style="dim")
    for name in (name for name in _MEANS if name in names):
        table.add_row(name, _MEANS[name])
    return table


def _candidates(counts: Mapping[str, int]) -> Text:
    """ "158 (14 by words, 80 by meaning, and what was said around them)"."""
    found = [f"{count:,} by {name}" for name, count in counts.items() if name != "in all" and count]
    return _unbroken([f"{counts.get('in all', 0):,} in all", *found, "and what was said around them"], ", ")


def _took(timings_ms: Mapping[str, float]) -> Text:
    parts = [f"{name} {ms:.1f} ms" for name, ms in timings_ms.items() if ms >= _SHOWN_MS]
    return _unbroken([f"{sum(timings_ms.values()):.1f} ms in all", *parts], " · ")


def _unbroken(parts: Sequence[str], between: str) -> Text:
    return Text(between.join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in parts))


def _sum(shares: Sequence[Share]) -> Table:
    """A line for each part of a score: signals by what they add, then what the memory itself changes."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=True, header_style="dim", pad_edge=False)
    table.add_column("   adds", justify="right", no_wrap=True)
    table.add_column("signal", no_wrap=True)
    table.add_column("measured", justify="right", no_wrap=True, style="dim")
    table.add_column("place", justify="right", no_wrap=True, style="dim")
    for share in sorted(shares, key=_order):
        if _counts(share):
            table.add_row(f"{share.share:+.3f}", share.strategy, _measured(share), str(share.rank or ""))
    return table


def _order(share: Share) -> tuple[int, float]:
    """Signals first, the strongest before the weakest; factors as they are applied."""
    return (0, -share.share) if share.strategy in _SIGNALS else (1, 0.0)


def _measured(share: Share) -> str:
    """A signal's own measure; of a factor what it multiplies by."""
    if share.strategy in _SIGNALS:
        return f"{share.raw:.3f}"
    return "" if share.strategy in ("same session", "newer") else f"x {share.raw:.3f}"


def _beside(mine: Sequence[Share], theirs: Sequence[Share], *, number: int) -> Table:
    """Two sums side by side, the greatest differences first."""
    one = {share.strategy: share.share for share in mine}
    other = {share.strategy: share.share for share in theirs}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("this one", justify="right", no_wrap=True)
    table.add_column(f"hit {number}", justify="right", no_wrap=True)
    table.add_column("signal", no_wrap=True)
    names = sorted(dict.fromkeys([*other, *one]), key=lambda name: one.get(name, 0.0) - other.get(name, 0.0))
    for name in names:
        pair = one.get(name, 0.0), other.get(name, 0.0)
        if max(map(abs, pair)) >= _SHOWN_SHARE:
            table.add_row(*(f"{value:+.3f}" if value else "" for value in pair), name)
    table.add_row(f"{sum(one.values()):.3f}", f"{sum(other.values()):.3f}", "score", style="bold")
    return table
