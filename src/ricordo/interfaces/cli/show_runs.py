"""What runs did, for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.interfaces.cli.screen import one_line
from ricordo.model import BY_RULE, Run, RunItem

_MARKS = {
    "added": ("+", "green"),
    "repeated": ("=", "dim"),
    "replaced": ("-", "red"),
    "held": ("?", "yellow"),
    "in doubt": ("?", "yellow"),
    "entity": ("@", "cyan"),
    "relation": ("@", "cyan"),
    "cause": (">", "cyan"),
    "summary": ("#", "dim"),
    "missing": ("-", "yellow"),
    "refused": ("x", "dim"),
    "failed": ("!", "bold red"),
    "left": ("~", "yellow"),
    "kept": ("=", "yellow"),
    "looked": ("·", "dim"),
}


def items(out: Console, found: Sequence[RunItem], *, numbered: bool = False) -> None:
    """A readable diff: what came, what went, what was not believed; with numbers where some of it can be chosen."""
    lines = Table.grid(padding=(0, 1))
    for number, item in sorted(enumerate(found, start=1), key=lambda each: each[1].what == "refused"):
        mark, style = _MARKS[item.what]
        why = f"  {one_line(item.reason, most=160)}" if item.reason else ""
        text = one_line(item.text, most=200) or item.what
        which = (Text(str(number), style="dim"),) if numbered else ()
        lines.add_row(
            *which, Text(mark, style=style), Text.assemble((text, style if style != "dim" else ""), (why, "dim"))
        )
    out.print(lines)


def cost(run: Run) -> str:
    """What a run was made by, and what that took."""
    if run.model == BY_RULE:
        return "Kept by rule, without a language model; the conversations wait for one."
    paid = "" if run.cost is None else f", {run.cost:.4f}"
    count = len(run.sessions)
    read = f"{count} conversation{'' if count == 1 else 's'}, " if count else ""
    return f"{read}{run.model}, {run.tokens_in:,} tokens in and {run.tokens_out:,} out{paid}, prompts {run.prompt}"
