"""The verbs that read: search, context, list and the like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, cast

import typer
from rich.console import Console

from ricordo.errors import InvalidError
from ricordo.interfaces.cli import show_fading, show_hits, show_nodes
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.ids import whole_id
from ricordo.interfaces.cli.keeping import MemoryId
from ricordo.interfaces.cli.screen import Answer, shown
from ricordo.interfaces.cli.verb import verb
from ricordo.model import Category, Results

_PANEL = "Recall"

_TypeOption = Annotated[
    str | None, typer.Option(metavar="TYPE", help="semantic, procedural, opinion, episodic (all that was said) or any.")
]
_CategoryOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="preference, identity, event, task, ... Repeatable.")
]
_EntityOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only what is linked to this person or thing.")]
_TagOption = Annotated[list[str] | None, typer.Option(metavar="TAG", help="Only with this label. Repeatable.")]
_WhereOption = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only with this attribute. Repeatable.")
]
_SessionOption = Annotated[str | None, typer.Option(metavar="ID", help="Only of this conversation.")]
_AfterOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only from then on: 2026-03-01, last_week, '3 days ago'.")
]
_BeforeOption = Annotated[str | None, typer.Option(metavar="TIME", help="Only before then.")]
AsOfOption = Annotated[
    str | None, typer.Option(metavar="TIME|N", help="What was known at a time, or right after change N of the log.")
]
_ArchivedOption = Annotated[
    bool, typer.Option("--archived", metavar="", help="Among what was forgotten or replaced, instead.")
]


@verb("search", panel=_PANEL)
async def search(
    door: Door,
    question: Annotated[str, typer.Argument(help="In your own words.")],
    type: _TypeOption = None,
    category: _CategoryOption = None,
    entity: _EntityOption = None,
    tag: _TagOption = None,
    where: _WhereOption = None,
    session: _SessionOption = None,
    after: _AfterOption = None,
    before: _BeforeOption = None,
    as_of: AsOfOption = None,
    archived: _ArchivedOption = False,
    only_relevant: Annotated[
        bool, typer.Option("--only-relevant", metavar="", help="Leave out what chance would bring up, too.")
    ] = False,
    limit: Annotated[int, typer.Option(metavar="N", help="How many at most.")] = 10,
    trace: Annotated[bool, typer.Option("--trace", metavar="", help="Show how the answer came about.")] = False,
    why_not: Annotated[
        str | None, typer.Option("--why-not", metavar="ID", help="A memory you expected: show where it fell out.")
    ] = None,
) -> Answer:
    """Find memories by what they mean, by their words and by their time. Best first."""
    async with door.open() as memory:
        expected = None if why_not is None else await whole_id(memory, why_not)
        results = await memory.search(
            question,
            type=type,
            category=_categories(category),
            entity=entity,
            tag=tag,
            where=_attributes(where),
            session=session,
            after=after,
            before=before,
            as_of=moment(as_of),
            archived=archived,
            only_relevant=only_relevant,
            limit=limit,
            trace=True,
            why_not=expected,
        )
    return _results(door, question, results, traced=trace or why_not is not None, whole=trace)


@verb("query", panel=_PANEL)
async def query(
    door: Door,
    keywords: Annotated[str, typer.Argument(help="Words that stand in what is sought.")],
    limit: Annotated[int, typer.Option(metavar="N", help="How many at most.")] = 5,
) -> Answer:
    """Find memories by their words alone."""
    async with door.open() as memory:
        results = await memory.query(keywords, limit=limit)
    return _results(door, keywords, results, traced=False)


def _results(door: Door, question: str, results: Results, *, traced: bool, whole: bool = True) -> Answer:
    """Hits to show, with their trace: all of it, or only what became of the memory that was asked for."""
    for part in results.degraded:
        door.notice(f"Part of the search could not help: {shown(part)}")

    def show(out: Console) -> None:
        show_hits.hits(out, question, results)
        if traced and results.trace is not None:
            if whole:
                show_hits.trace(out, results, results.trace)
            show_hits.absence(out, results, results.trace)
        elif results.trace is not None and results.hits:
            door.hint("Why these? Add --trace.")

    return Answer(data=results if traced else replace(results, trace=None), show=show)


def moment(given: str | None) -> str | int | None:
    """A time as it was typed, or a change's number. "2026" is a year: numbers of four digits are written with a #."""
    if given is None:
        return None
    digits = given.removeprefix("#")
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(digits) if is_number and (digits != given or len(digits) != 4) else given


def _categories(given: list[str] | None) -> list[Category] | None:
    """As typed: the memory checks them, and says which there are."""
    return cast("list[Category] | None", given)


def _attributes(given: list[str] | None) -> Mapping[str, Any] | None:
    """`KEY=VALUE` as attributes: a value that is JSON (a number, true, null) is that, any other is text."""
    if not given:
        return None
    found: dict[str, Any] = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not name or not sign:
            raise InvalidError(f"where: {each!r} is not KEY=VALUE")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


@verb("context", panel=_PANEL)
async def context(
    door: Door,
    prompt: Annotated[str, typer.Argument(help="What the agent is about to answer.")],
    budget: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="How long it may be. [default: a setting]")
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="The conversation at hand; what was said in it is left out.")
    ] = None,
    as_of: AsOfOption = None,
) -> Answer:
    """Print the block of text an agent should read before it answers."""
    async with door.open() as memory:
        parts = await memory.context_parts(prompt, budget=budget, session=session, as_of=moment(as_of))

    def show(out: Console) -> None:
        if parts.text is None:
            door.notice("Nothing in the memory matters for this.")
        else:
            typer.echo(shown(parts.text))
            door.hint(f"About {parts.tokens} of at most {parts.budget} tokens.")

    data = {
        "context": parts.text,
        "tokens": parts.tokens,
        "budget": parts.budget,
        "complexity": parts.complexity,
        "sections": parts.sections,
    }
    return Answer(data=data, show=show)


@verb("list", panel=_PANEL)
async def list_(
    door: Door,
    type: _TypeOption = None,
    category: _CategoryOption = None,
    entity: _EntityOption = None,
    tag: _TagOption = None,
    where: _WhereOption = None,
    session: _SessionOption = None,
    after: _AfterOption = None,
    before: _BeforeOption = None,
    as_of: AsOfOption = None,
    archived: _ArchivedOption = False,
    limit: Annotated[int, typer.Option(metavar="N", help="How many at most.")] = 20,
    cursor: Annotated[str | None, typer.Option(metavar="TEXT", help="Go on where a list ended.")] = None,
) -> Answer:
    """List memories, the latest first."""
    async with door.open() as memory:
        page = await memory.list(
            type=type,
            category=_categories(category),
            entity=entity,
            tag=tag,
            where=_attributes(where),
            session=session,
            after=after,
            before=before,
            as_of=moment(as_of),
            archived=archived,
            limit=limit,
            cursor=cursor,
        )

    def show(out: Console) -> None:
        show_nodes.table(out, page.nodes, zone=door.zone)
        if page.cursor is not None:
            door.hint(f"There are more: add --cursor {page.cursor}")

    return Answer(data=page, show=show)


@verb("show", panel=_PANEL)
async def show(door: Door, id: MemoryId, as_of: AsOfOption = None) -> Answer:
    """Show everything about one memory."""
    async with door.open() as memory:
        why = await memory.explain(await whole_id(memory, id, as_of=moment(as_of)), as_of=moment(as_of))

    def show(out: Console) -> None:
        more = show_fading.prospects(why, door.zone) if why.node.type != "episodic" else ()
        show_nodes.card(out, why.node, zone=door.zone, more=more)

    return Answer(data=why.node, show=show)


@verb("history", panel=_PANEL)
async def history(door: Door, id: MemoryId, as_of: AsOfOption = None) -> Answer:
    """Show what a memory was before, and what changed it."""
    async with door.open() as memory:
        versions = await memory.history(await whole_id(memory, id, as_of=moment(as_of)), as_of=moment(as_of))
    return Answer(data={"versions": versions}, show=lambda out: show_nodes.history(out, versions, zone=door.zone))
