"""Commands that read: search, query, context, list, show, history, timeline, explain, weak and archive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from ricordo.errors import InvalidError
from ricordo.interfaces.cli import hits, nodes
from ricordo.interfaces.cli.options import CommandContext, command, parse_as_of
from ricordo.interfaces.cli.terminal import Output, safe
from ricordo.interfaces.serialize import resolve_id
from ricordo.model import ClosedReason, Results

if TYPE_CHECKING:
    from ricordo.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The options by which `search` and `list` choose memories, as typed; the memory checks them."""

    type: str | None = None
    category: list[str] | None = None
    entity: str | None = None
    tag: list[str] | None = None
    where: list[str] | None = None
    session: str | None = None
    after: str | None = None
    before: str | None = None
    as_of: str | None = None
    archived: bool = False

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Memory.search` and `Memory.list`.

        Raises:
            InvalidError: An attribute is not KEY=VALUE.
        """
        return asdict(self) | {"where": _attributes(self.where), "as_of": parse_as_of(self.as_of)}


@command()
async def search(
    ctx: CommandContext,
    memory: Memory,
    question: str,
    filters: Filters,
    only_relevant: bool = False,
    limit: int = 10,
    trace: bool = False,
    why_not: str | None = None,
) -> Output:
    """Find memories by meaning, words and time. Best first."""
    expected = None if why_not is None else await resolve_id(memory, why_not)
    results = await memory.search(
        question, **filters.arguments(), only_relevant=only_relevant, limit=limit, trace=True, why_not=expected
    )
    return _results(ctx, question, results, traced=trace or why_not is not None, whole=trace)


@command()
async def query(ctx: CommandContext, memory: Memory, keywords: str, limit: int = 5) -> Output:
    """Find memories by their words alone."""
    results = await memory.query(keywords, limit=limit)
    return _results(ctx, keywords, results, traced=False)


def _results(ctx: CommandContext, question: str, results: Results, *, traced: bool, whole: bool = True) -> Output:
    """Show hits with their whole trace, or only with what happened to the memory that was expected."""
    for part in results.degraded:
        ctx.notice(f"Part of the search was not available: {safe(part)}")

    def show(out: Console) -> None:
        hits.listing(out, question, results)
        if traced and results.trace is not None:
            if whole:
                hits.trace(out, results, results.trace)
            hits.absence(out, results, results.trace)
        elif results.trace is not None and results.hits:
            ctx.hint("Why these? Add --trace.")

    return Output(data=results if traced else replace(results, trace=None), show=show)


def _attributes(given: list[str] | None) -> Mapping[str, Any] | None:
    """Parse `KEY=VALUE`: a value that is JSON (a number, true, null) is that, any other is text."""
    if not given:
        return None
    found: dict[str, Any] = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not name or not sign:
            raise InvalidError(f"--where {each!r} is not KEY=VALUE", hint="for example --where task_id=7")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


@command()
async def context(
    ctx: CommandContext,
    memory: Memory,
    prompt: str,
    budget: int | None = None,
    session: str | None = None,
    as_of: str | None = None,
) -> Output:
    """Print the block of text an agent should read before it answers."""
    parts = await memory.context_parts(prompt, budget=budget, session=session, as_of=parse_as_of(as_of))

    def show(out: Console) -> None:
        if parts.text is None:
            ctx.notice("Nothing in the memory is relevant to this.")
        else:
            typer.echo(safe(parts.text))
            ctx.hint(f"About {parts.tokens} of at most {parts.budget} tokens.")

    data = {
        "context": parts.text,
        "tokens": parts.tokens,
        "budget": parts.budget,
        "complexity": parts.complexity,
        "sections": parts.sections,
    }
    return Output(data=data, show=show)


@command()
async def list_(
    ctx: CommandContext, memory: Memory, filters: Filters, limit: int = 20, cursor: str | None = None
) -> Output:
    """List memories, the latest first."""
    page = await memory.list(**filters.arguments(), limit=limit, cursor=cursor)

    def show(out: Console) -> None:
        nodes.listing(out, page.nodes, zone=ctx.zone)
        if page.cursor is not None:
            ctx.hint(f"There are more: add --cursor {page.cursor}")

    return Output(data=page, show=show)


@command()
async def show(ctx: CommandContext, memory: Memory, id: str, as_of: str | None = None) -> Output:
    """Show everything about one memory."""
    at = parse_as_of(as_of)
    why = await memory.explain(await resolve_id(memory, id, as_of=at), as_of=at)
    return Output(data=why.node, show=lambda out: nodes.card(out, why, zone=ctx.zone))


@command()
async def history(ctx: CommandContext, memory: Memory, id: str, as_of: str | None = None) -> Output:
    """Show every version of a memory, and the change that made it."""
    at = parse_as_of(as_of)
    versions = await memory.history(await resolve_id(memory, id, as_of=at), as_of=at)
    return Output(data={"versions": versions}, show=lambda out: nodes.history(out, versions, zone=ctx.zone))


@command()
async def timeline(
    ctx: CommandContext,
    memory: Memory,
    entity: str | None = None,
    after: str | None = None,
    before: str | None = None,
    as_of: str | None = None,
    limit: int = 50,
) -> Output:
    """Show what happened, day by day."""
    events = await memory.timeline(entity=entity, after=after, before=before, as_of=parse_as_of(as_of), limit=limit)

    def show(out: Console) -> None:
        nodes.timeline(out, events, zone=ctx.zone)
        if len(events) == limit:
            ctx.hint(f"There may be earlier ones: add --before {events[0].event_time.isoformat()}")

    return Output(data={"events": events}, show=show)


@command()
async def explain(ctx: CommandContext, memory: Memory, id: str, as_of: str | None = None) -> Output:
    """Show where a memory came from, what it replaced, and when it fades."""
    at = parse_as_of(as_of)
    why = await memory.explain(await resolve_id(memory, id, as_of=at), as_of=at)
    return Output(data=why, show=lambda out: nodes.explanation(out, why, zone=ctx.zone))


@command()
async def weak(ctx: CommandContext, memory: Memory, limit: int = 20) -> Output:
    """List memories that are uncertain, or will fade or expire soon; the next to go first."""
    found = await memory.weak(limit)
    return Output(data={"weak": found}, show=lambda out: nodes.weak(out, found, hint=ctx.hint))


@command()
async def archive(
    ctx: CommandContext,
    memory: Memory,
    question: str | None = None,
    reason: ClosedReason | None = None,
    limit: int = 20,
) -> Output:
    """List closed memories with when and why each was closed, the latest first; or search them."""
    if question is not None:
        results = await memory.search(question, archived=True, limit=limit)
        found = [await memory.get(hit.id) for hit in results.hits]
        kept = [node for node in found if reason in (None, node.closed_reason)]
        return Output(data={"nodes": kept}, show=lambda out: nodes.archive(out, kept, zone=ctx.zone, hint=ctx.hint))
    listed = await memory.archive(limit, reason=reason)
    return Output(
        data=listed,
        show=lambda out: nodes.archive(out, listed.nodes, zone=ctx.zone, hint=ctx.hint, totals=listed.counts),
    )
