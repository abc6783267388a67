"""Hits, answers and traces as text for people."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, get_args

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.clock import handle_of
from ricordo.interfaces.cli.terminal import dim, fields, one_line, safe
from ricordo.model import DOUBTS_SHOWN, Answer, Hit, Results, Share, SignalName, Trace
from ricordo.text.analyzer import index_terms
from ricordo.text.filing import place_label
from ricordo.text.sentences import plural
from ricordo.trust import is_untrusted, label

_WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)*")
_SIGNALS: frozenset[str] = frozenset(get_args(SignalName))
_WORD_SIGNALS = ("words in context", "words", "keywords")

_LEAST_PART = 0.1
"""A signal is named as a reason only if it gave at least this fraction of the score."""
_LEAST_SHARE = 0.0005
_LEAST_MS = 0.05
_MAX_WORDS = 5
_MAX_UNDER_FLOOR = 5
_SEARCHED_CHARS = 10_000


@cache
def _texts() -> Mapping[str, Any]:
    return tomllib.loads((files("ricordo.interfaces.cli") / "signals.toml").read_text(encoding="utf-8"))


def listing(out: Console, question: str, results: Results, *, left_out: int = 0) -> None:
    """Print the hits as a numbered list, or that there are none. Hits below the relevance floor are dimmed.

    Args:
        left_out: how many more such hits were found.
    """
    if not results.hits:
        out.print(Text(f"Nothing in the memory answers “{one_line(question, most=100)}”."))
        return
    terms = frozenset(results.trace.terms if results.trace else index_terms(question))
    interval = results.trace.interval if results.trace else ""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column()
    for number, hit in enumerate(results.hits, start=1):
        is_below, why = hit.is_relevant is False, reason(hit, terms, interval=interval)
        grid.add_row(str(number), dim(content(hit, frozenset()).plain) if is_below else content(hit, terms))
        grid.add_row("", dim(_circumstances(hit)))
        for newer in hit.doubted_by[:DOUBTS_SHOWN]:
            grid.add_row("", _newer(newer.content))
        found = (f"{why}, probably not relevant", "dim") if is_below else (why, "cyan")
        grid.add_row("", Text.assemble(found, ("  " + safe(hit.handle), "dim")))
        if number < len(results.hits):
            grid.add_row("", "")
    out.print(grid)
    if left_out:
        weaker = plural(left_out, "weaker hit")
        out.print(dim(f"\n{weaker} left out, probably not relevant. --limit {len(results) + left_out} shows all."))


def answer(out: Console, question: str, answer: Answer) -> None:
    """Print the sentences of an answer, with the numbered memories they cite."""
    if not answer.known:
        out.print(Text(f"Nothing in the memory answers “{one_line(question, most=100)}”."))
        return
    cited = list(dict.fromkeys(id for each in answer.sentences for id in each.ids))
    numbers = {id: number for number, id in enumerate(cited, start=1)}
    if answer.model is not None:
        said = Text()
        for each in answer.sentences:
            said.append(safe(each.text))
            said.append(f" [{', '.join(str(numbers[id]) for id in each.ids)}]", style="cyan")
            said.append("" if each.support == "stated" else " (in the model's words)", style="dim").append(" ")
        out.print(said, end="\n\n")
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", style="cyan", no_wrap=True)
    grid.add_column()
    terms = frozenset(index_terms(question))
    for hit in sorted((hit for hit in answer.hits if hit.id in numbers), key=lambda hit: numbers[hit.id]):
        grid.add_row(str(numbers[hit.id]), content(hit, terms))
        for newer in hit.doubted_by[:DOUBTS_SHOWN]:
            if newer.id not in numbers:
                grid.add_row("", _newer(newer.content))
        grid.add_row("", dim(f"{_circumstances(hit)}  {safe(hit.handle)}"))
    out.print(grid)
    for open_pair in answer.contradictions:
        pair = " and ".join(str(numbers.get(id, handle_of(id))) for id in (open_pair.newer, open_pair.older))
        out.print(Text(f"{pair} contradict each other; `ricordo review` decides.", style="yellow"))


def _newer(text: str) -> Text:
    return Text(f"perhaps out of date, newer: “{one_line(text, most=200)}” (ricordo review)", "yellow")


def content(hit: Hit, terms: frozenset[str]) -> Text:
    """Return the text of a hit with the matching words highlighted."""
    text = Text()
    if hit.type == "episodic" and (who := hit.place or hit.speaker or hit.role):
        text.append(f"{safe(who)}: ", style="bold")
    body = Text(safe(hit.excerpt).strip())
    for match in _WORD.finditer(body.plain):
        if not terms.isdisjoint(index_terms(match.group())):
            body.stylize("bold green", match.start(), match.end())
    return text.append_text(body)


def _circumstances(hit: Hit) -> str:
    """Return the time, category, certainty and source of a hit."""
    when = f"{hit.event_time_relative} ({hit.event_time_local})"
    about = f" about {one_line(', '.join(hit.about), most=60)}" if hit.about else ""
    if hit.space:
        about += f", in {one_line(place_label(hit.space), most=40)}"
        about += f" by {one_line(hit.writer, most=40)}" if hit.writer else ""
    kind = f"{hit.category or hit.type}{about}, " if hit.type != "episodic" else ""
    source = label(hit.trust) if is_untrusted(hit.trust) else ""
    if hit.place:
        source = f"{source} from {one_line(hit.place, most=100)}" if hit.type != "episodic" else ""
    warning = f"reads like an instruction: {', '.join(hit.warnings)}" if hit.warnings else ""
    return ", ".join(filter(None, (f"{kind}{when}", f"{hit.confidence:.0%} sure", source, warning, hit.notice)))


def reason(hit: Hit, terms: frozenset[str], *, interval: str) -> str:
    """Return why a hit was found: the signals that gave at least a tenth of its score, the strongest first."""
    shares: dict[str, float] = {}
    for share in hit.why:
        if name := _reason_name(share.strategy, hit, terms, interval):
            shares[name] = shares.get(name, 0.0) + share.share
    strong = [name for name, share in shares.items() if share >= _LEAST_PART * max(hit.score, 1e-9)]
    if strong:
        return "by " + ", by ".join(sorted(strong, key=lambda name: -shares[name]))
    if not hit.why:
        return "must not be missed"
    matched = matching_words(hit, terms)
    return f"by {_quoted(matched)}" if matched else "found"


def _reason_name(signal: str, hit: Hit, terms: frozenset[str], interval: str) -> str:
    if signal == "date" and interval:
        return f"the time “{interval}”"
    if signal in _WORD_SIGNALS:
        if matched := matching_words(hit, terms):
            return f"the word{'s' if len(matched) > 1 else ''} {_quoted(matched)}"
        signal = "words"
    return str(_texts()["reasons"].get(signal, ""))


def _quoted(found: list[str]) -> str:
    return ", ".join(f"“{word}”" for word in found[:_MAX_WORDS])


def matching_words(hit: Hit, terms: frozenset[str]) -> list[str]:
    """Return the words of a hit that match terms of the question, as written in the hit."""
    text = " ".join([hit.speaker or "", *hit.tags, hit.content[:_SEARCHED_CHARS]])
    written = {match.group().lower(): match.group() for match in reversed([*_WORD.finditer(text)])}
    matched = [word for word in written.values() if not terms.isdisjoint(index_terms(word))]
    return matched[::-1]


# traces


def trace(out: Console, results: Results, trace: Trace) -> None:
    """Print how the question was understood, and the parts of each hit's score."""
    facts = (
        ("words looked up", Text(", ".join(trace.terms) or "none")),
        ("words ignored", Text(", ".join(trace.ignored_terms) or "none")),
        ("asks for", Text(f"{results.intent}, {results.complexity}")),
        ("time understood", Text(trace.interval or "none")),
        ("candidates", _candidates(trace.candidates)),
        ("took", _timings(trace.timings_ms)),
    )
    out.print()
    out.print(fields(facts))
    if results.hits:
        out.print()
        out.print(dim(_texts()["legend"]))
    for number, hit in enumerate(results.hits, start=1):
        out.print()
        head = Text.assemble((f"{number}  ", "dim"), (f"{hit.score:.3f}", "bold"), f"  {one_line(hit.content)}")
        out.print(head, no_wrap=True, overflow="ellipsis")
        out.print(_sum(hit.why))
    if trace.under_floor:
        out.print()
        out.print(_under_floor(trace.under_floor))
    if results.hits:
        out.print()
        out.print(_glossary({share.strategy for hit in results.hits for share in hit.why if _counts(share)}))


def absence(out: Console, results: Results, trace: Trace) -> None:
    """Print why an expected memory is missing; if it ranked too low, compare it with the last hit."""
    found = trace.absence
    if found is None:
        return
    out.print()
    out.print(Text.assemble(("Why not ", "bold"), (safe(found.id), "dim"), ("?", "bold")))
    out.print(Text.assemble((f"{_texts()['stages'][found.stage]}: ", "bold"), safe(found.detail)))
    if found.stage == "ranked below" and results.hits:
        out.print()
        out.print(_comparison(found.shares, results.hits[-1].why, number=len(results.hits)))
    elif found.shares:
        out.print(_sum(found.shares, with_meaning=True))


_MEASURED = "what it measures"


def _table(*columns: str) -> Table:
    """Return a table without borders. A name that ends in a colon marks a column of numbers."""
    made = Table(box=None, padding=(0, 2, 0, 0), show_header=True, header_style="dim", pad_edge=False)
    for name in columns:
        is_number = name.endswith(":")
        made.add_column(
            name.rstrip(":"), justify="right" if is_number else "left", no_wrap=name not in ("because", _MEASURED)
        )
    return made


def _under_floor(dropped: Sequence[tuple[str, float, str]]) -> Table:
    """Return the memories below the relevance floor: how far below it, and why."""
    table = _table("relevance:", "left out", "because")
    for id_, relevance, why in dropped[:_MAX_UNDER_FLOOR]:
        table.add_row(f"{relevance:+.1f}", dim(safe(id_)), why)
    if len(dropped) > _MAX_UNDER_FLOOR:
        table.add_row("", f"and {len(dropped) - _MAX_UNDER_FLOOR} more", "--json lists them")
    return table


def _counts(share: Share) -> bool:
    return abs(share.share) >= _LEAST_SHARE


def _glossary(names: Collection[str]) -> Table:
    """Return the meaning of each named signal."""
    return fields((name, dim(meaning)) for name, meaning in _texts()["meanings"].items() if name in names)


def _candidates(counts: Mapping[str, int]) -> Text:
    found = [f"{count:,} by {name}" for name, count in counts.items() if name != "in all" and count]
    return _unbroken([f"{counts.get('in all', 0):,} in all", *found, "and the turns around them"], ", ")


def _timings(timings_ms: Mapping[str, float]) -> Text:
    parts = [f"{name} {ms:.1f} ms" for name, ms in timings_ms.items() if ms >= _LEAST_MS]
    return _unbroken([f"{sum(timings_ms.values()):.1f} ms in all", *parts], " · ")


def _unbroken(parts: Sequence[str], between: str) -> Text:
    return Text(between.join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in parts))


def _sum(shares: Sequence[Share], *, with_meaning: bool = False) -> Table:
    """Return a score as a table, one line per part: first what the signals add, then the factors of the memory.

    Args:
        with_meaning: with what each part measures.
    """
    table = _table("   adds:", "signal", "measured:", "place:", *([_MEASURED] if with_meaning else []))
    for share in sorted(filter(_counts, shares), key=_order):
        row = f"{share.share:+.3f}", share.strategy, dim(_measured(share)), dim(str(share.rank or ""))
        table.add_row(*row, *([dim(_meaning(share.strategy))] if with_meaning else []))
    return table


def _meaning(signal: str) -> str:
    """Return what a signal measures."""
    return str(_texts()["meanings"].get(signal, ""))


def _order(share: Share) -> tuple[int, float]:
    """Sort key: signals first, the strongest before the weakest; then factors in the order in which they apply."""
    return (0, -share.share) if share.strategy in _SIGNALS else (1, 0.0)


def _measured(share: Share) -> str:
    """Return the raw value of a signal, or the multiplier of a factor."""
    if share.strategy in _SIGNALS:
        return f"{share.raw:.3f}"
    return "" if share.strategy in ("same session", "newer") else f"x {share.raw:.3f}"


def _comparison(mine: Sequence[Share], theirs: Sequence[Share], *, number: int) -> Table:
    """Return two scores side by side, the parts in which `mine` lost most first."""
    one = {share.strategy: share.share for share in mine}
    other = {share.strategy: share.share for share in theirs}
    table = _table("this one:", f"hit {number}:", "signal", _MEASURED)
    names = sorted(dict.fromkeys([*other, *one]), key=lambda name: one.get(name, 0.0) - other.get(name, 0.0))
    for name in names:
        pair = one.get(name, 0.0), other.get(name, 0.0)
        if max(map(abs, pair)) >= _LEAST_SHARE:
            table.add_row(*(f"{value:+.3f}" if value else "" for value in pair), name, dim(_meaning(name)))
    table.add_row(f"{sum(one.values()):.3f}", f"{sum(other.values()):.3f}", "score", "", style="bold")
    return table
