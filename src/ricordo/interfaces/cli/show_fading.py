"""What fades and what has ended, for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.text import Text

from ricordo.decay import lifetime_days
from ricordo.ids import handle_of
from ricordo.interfaces.cli.screen import a, dim, one_line
from ricordo.interfaces.cli.show_nodes import minute, plain_table
from ricordo.model import ArchiveReport, Explanation, MaintenanceReport, Node, Weak

Hint = Callable[[str], None]

_BAR = 10
_TOLD = 20

_FADING = {"never": "never", "sinks": "then it stands further down in answers", "closes": "then it goes to the archive"}


def bar(part: float) -> Text:
    """How much is left, from 0 to 1, as a bar and a figure."""
    full = round(max(0.0, min(1.0, part)) * _BAR)
    colour = "red" if part < 0.2 else "yellow" if part < 0.5 else "green"
    return Text.assemble(("█" * full, colour), ("░" * (_BAR - full), "dim"), f" {part:4.0%}")


def weak(out: Console, found: Sequence[Weak], *, hint: Hint) -> None:
    """A pair of lines for each: how much is left and of what; why it stands here, and what becomes of it."""
    if not found:
        out.print("Nothing is weak: all that is known is sure, and fresh enough.")
        return
    lines = plain_table("id", "left", "memory")
    for each in found:
        handle = Text(one_line(handle_of(each.node.id)), style="dim")
        lines.add_row(handle, bar(each.retention), Text(one_line(each.node.content)))
        lines.add_row("", "", Text(f"{each.why}, {_becomes(each)}", style="dim"))
    out.print(lines)
    hint("`ricordo confirm ID` keeps one for good, `ricordo reinforce ID` for longer.")


def _becomes(each: Weak) -> str:
    if each.leaves_at is not None:
        return "then archived"
    return "sinks in answers" if each.fading == "sinks" else "stays"


def report(out: Console, done: ArchiveReport, *, hint: Hint) -> None:
    """What went to the archive or would, by reason, and the first of it."""
    if not done.archived:
        out.print(f"Nothing to do: none of what is known ({done.live:,}) is over.")
        _over(out, done)
        return
    goes = "would go" if done.dry_run else "went"
    counted = ", ".join(f"{count:,} {reason}" for reason, count in done.archived.items())
    out.print(Text(f"{counted}: {goes} to the archive. {done.live:,} memories are left."))
    lines = plain_table("id", "why", "memory")
    for leaving in done.items[:_TOLD]:
        handle = Text(one_line(handle_of(leaving.node.id)), style="dim")
        lines.add_row(handle, Text(one_line(leaving.why, most=60)), Text(one_line(leaving.node.content)))
    out.print(lines)
    if (more := sum(done.archived.values()) - _TOLD) > 0:
        out.print(dim(f"and {more:,} more"))
    _over(out, done)
    for run in done.runs[:1]:
        hint(f"`ricordo undo {run}` brings all of it back, `ricordo restore ID` one.")


def _over(out: Console, done: ArchiveReport) -> None:
    if not done.fits:
        out.print(Text("It is still more than the settings allow; `gc` and `prune` see to that.", style="yellow"))


def steps(out: Console, done: MaintenanceReport) -> None:
    """A line for each step of a night's work."""
    for step in done.steps:
        mark = ("ok      ", "green") if step.ok else ("FAILED  ", "bold red")
        would = "would do: " if done.dry_run and step.report is not None and step.report.archived else ""
        out.print(Text.assemble(mark, (f"{step.name:10}", "bold"), f"{would}{one_line(step.detail)}"))


def archive(
    out: Console, nodes: Sequence[Node], *, zone: ZoneInfo, hint: Hint, counts: Mapping[str, int] | None = None
) -> None:
    """A line for each memory that ended: when, why and what it was."""
    if not nodes:
        out.print("Nothing in the archive fits." if counts is None or counts else "The archive is empty.")
        return
    lines = plain_table("id", "ended", "because", "memory")
    for node in nodes:
        who = f"{node.speaker or node.role}: " if node.type == "episodic" else ""
        lines.add_row(
            Text(one_line(handle_of(node.id)), style="dim"),
            minute(node.closed_at, zone),
            node.closed_reason or "",
            Text(one_line(who + node.content)),
        )
    out.print(lines)
    if counts:
        out.print(dim("In all: " + ", ".join(f"{count:,} {reason}" for reason, count in counts.items())))
    hint("`ricordo restore ID` brings one back.")


def prospects(why: Explanation, zone: ZoneInfo) -> list[tuple[str, str]]:
    """How much of a memory is left and what becomes of it, as labelled lines; what is empty is left out."""
    if why.node.closed_at is not None:
        return []
    fades = f"{minute(why.fades_at, zone)}, {_FADING[why.fading]}" if why.fades_at else _FADING["never"]
    return [("still held", f"{why.retention:.0%}"), ("fades", fades), ("kept", kept_until(why, zone))]


def kept_until(why: Explanation, zone: ZoneInfo) -> str:
    """When its time is over, and who says so; "" where it has no end."""
    if why.ends_at is None:
        return ""
    days = lifetime_days(why.node.category)
    by = "as was said" if why.ends_by == "expiry" else f"as {a(why.node.category or '')} is, for {days} days"
    return f"until {minute(why.ends_at, zone)}, {by}"
